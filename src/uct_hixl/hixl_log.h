/* SPDX-License-Identifier: BSD-3-Clause */

/* The device half's messages, in UCX's log. */

#ifndef UCT_HIXL_LOG_H_
#define UCT_HIXL_LOG_H_

/** Messages of the device half go to UCX's log from now on. */
void uct_hixl_log_init(void);

#endif
