/* SPDX-License-Identifier: BSD-3-Clause */

/* The device half's messages, in UCX's log or kept for a message of our own. */

#ifndef UCT_HIXL_LOG_H_
#define UCT_HIXL_LOG_H_

#include <stddef.h>

/** Messages of the device half go to UCX's log from now on. */
void uct_hixl_log_init(void);

/**
 * Until the end: what the device half says on this thread is not logged as an
 * error or a warning; the first such message is kept in buf ("" if none), for
 * a caller that may still have another way, or knows more of the cause.
 */
void uct_hixl_log_hold_begin(char *buf, size_t size);
void uct_hixl_log_hold_end(void);

#endif
