/* SPDX-License-Identifier: BSD-3-Clause */

/* Wakeup: a descriptor to wait at instead of polling. */

#ifndef UCT_HIXL_EVENT_H_
#define UCT_HIXL_EVENT_H_

#include "hixl_iface.h"

/* Operations of uct_iface_ops_t; progress's thread */
ucs_status_t uct_hixl_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p);
/** UCS_ERR_BUSY: progress has work, or had some since the last time. */
ucs_status_t uct_hixl_iface_event_arm(uct_iface_h tl_iface, unsigned events);

/** Makes the descriptor readable, if there is one. Any thread, after what
 *  progress is to find was stored (sequentially consistent). */
void uct_hixl_iface_wake(uct_hixl_iface_t *iface);

/** After the CQs and whoever may call uct_hixl_iface_wake() are gone. */
void uct_hixl_event_cleanup(uct_hixl_iface_t *iface);

#endif
