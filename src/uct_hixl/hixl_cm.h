/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How two interfaces make a link (HIXL's Connect): a TCP listener an
 * interface, a non-blocking exchange, a socket that stays open for the life of
 * the link. Runs in async handlers; what progress must know is queued and
 * announced by iface->cm_events, delivered by uct_hixl_cm_progress().
 */

#ifndef UCT_HIXL_CM_H_
#define UCT_HIXL_CM_H_

#include "hixl_link.h"

/* Longest interface address that UCX's v1 worker address takes */
#define UCT_HIXL_IFACE_ADDR_MAX 63

/** Listens (UCX_HIXL_CM_ADDR chooses the address), makes the 128-bit key.
 *  Uses iface->config.cm_addr, cm_timeout; sets iface->cm. */
ucs_status_t uct_hixl_cm_open(uct_hixl_iface_t *iface);
/** Removes the handlers (synchronously), closes every socket, destroys links
 *  nobody here uses. Endpoints were destroyed before, and their links given
 *  back by release or abort. Waits for no peer. */
void uct_hixl_cm_close(uct_hixl_iface_t *iface);

size_t uct_hixl_cm_address_length(const uct_hixl_iface_t *iface);
void uct_hixl_cm_get_address(const uct_hixl_iface_t *iface,
                             uct_iface_addr_t *addr);

/**
 * A link towards the interface with this address, for `ep`: one that the
 * peer made and nobody here uses, ready at once (*ready_p = 1), or a new one,
 * for which uct_hixl_ep_link_ready() or _failed() is called from progress
 * later. UCS_ERR_UNREACHABLE, UCS_ERR_INVALID_ADDR: refused here and now.
 * The CM calls the endpoint by this pointer until the link is released.
 */
ucs_status_t uct_hixl_cm_connect(uct_hixl_iface_t *iface, uct_hixl_ep_t *ep,
                                 const uct_device_addr_t *dev_addr,
                                 const uct_iface_addr_t *iface_addr,
                                 uct_hixl_link_t **link_p, int *ready_p);

/** The endpoint is done with the link: nothing outstanding (link->ep is NULL
 *  and the QP table no longer has it). Also for a link still connecting. The
 *  CM says BYE and gets rid of it, or keeps it for the peer. */
void uct_hixl_cm_release(uct_hixl_link_t *link);

/** After an error CQE: as release, but the peer must not use it either. */
void uct_hixl_cm_abort(uct_hixl_link_t *link);

/** Makes the next progress look, at the end of what it delivers. Any thread. */
void uct_hixl_cm_wake(uct_hixl_iface_t *iface);

/** Delivers what the handlers queued; called by progress when
 *  iface->cm_events was seen set. Returns how many it delivered. */
unsigned uct_hixl_cm_progress(uct_hixl_iface_t *iface);

/* ---- what the CM calls, from uct_hixl_cm_progress() only (hixl_ep.c) ---- */

void uct_hixl_ep_link_ready(uct_hixl_ep_t *ep, uct_hixl_link_t *link);
/**
 * The link died; the CM has forgotten the socket; the endpoint still owns the
 * link and later calls uct_hixl_cm_release(). At most once for a link.
 *  UCS_ERR_NOT_CONNECTED     the peer closed its interface in good order
 *  UCS_ERR_CONNECTION_RESET  the socket ended without a word: the peer died,
 *                            or gave the link up after an error
 *  UCS_ERR_ENDPOINT_TIMEOUT  the peer's host does not answer
 * and, instead of ready:
 *  UCS_ERR_UNREACHABLE       none of the addresses could be connected to
 *  UCS_ERR_REJECTED          the peer does not want this link
 *  UCS_ERR_TIMED_OUT         no answer within cm_timeout
 *  or what uct_hixl_link_connect() said.
 */
void uct_hixl_ep_link_failed(uct_hixl_ep_t *ep, uct_hixl_link_t *link,
                             ucs_status_t status);

#endif
