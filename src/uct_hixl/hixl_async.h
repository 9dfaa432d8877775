/* SPDX-License-Identifier: BSD-3-Clause */

/* A device that is removed under us: who is told, and what ends. */

#ifndef UCT_HIXL_ASYNC_H_
#define UCT_HIXL_ASYNC_H_

#include "hixl_iface.h"

/* As for a peer that does not answer: UCP takes it for the end of endpoints
 * that have an error handler, not of the process. */
#define UCT_HIXL_GONE_STATUS UCS_ERR_ENDPOINT_TIMEOUT

void uct_hixl_async_init(uct_hixl_async_t *async);
void uct_hixl_async_cleanup(uct_hixl_async_t *async);

/** From now on iface->cm_events is set when its device is gone, as
 *  md->dev->gone then is. UCS_ERR_NO_DEVICE: it is already. */
ucs_status_t uct_hixl_async_watch(uct_hixl_iface_t *iface);
/** No handler will touch the interface any more. */
void uct_hixl_async_unwatch(uct_hixl_iface_t *iface);

/** Progress, when it sees that the device is gone: every endpoint fails, what
 *  is outstanding ends with an error. Later calls do nothing. */
void uct_hixl_iface_device_gone(uct_hixl_iface_t *iface);

#endif
