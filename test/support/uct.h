/* SPDX-License-Identifier: BSD-3-Clause */

/* Two processes with one UCT interface each and an endpoint between them;
 * every failure ends the process. */

#ifndef HXT_UCT_H_
#define HXT_UCT_H_

#include "peers.h"

#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

/* Registered memory here, and what the peer may know of it */
struct hxt_uct_mem {
    uint8_t  *addr;
    size_t    len;
    uct_mem_h memh;
};

struct hxt_uct {
    struct hxt_proc     *proc;
    ucs_async_context_t *async;
    uct_worker_h         worker;
    uct_component_h      component;
    uct_md_h             md;
    uct_md_attr_t        md_attr;
    uct_iface_h          iface;
    uct_iface_attr_t     attr;
    uct_ep_h             ep;
    struct hxt_uct_mem   mem;        /* the peer writes and reads it */
    uint64_t             peer_addr;  /* the peer's `mem` */
    uct_rkey_bundle_t    peer_rkey;
    struct hxt_blob     *dev_addrs;  /* by rank; NULL: not connected so */
    struct hxt_blob     *iface_addrs;
};

/** Who is told of an endpoint's failure, of interfaces opened from now on;
 *  nobody: UCX logs it as an error. */
void hxt_uct_on_error(uct_error_handler_t func, void *arg);
/** Such a func: notes it in the struct hxt_failure that is its arg. */
ucs_status_t hxt_uct_note_failure(void *arg, uct_ep_h ep, ucs_status_t status);

/** Interface of the transport "hixl" (or HIXL_TEST_TLS), memory of `len`
 *  bytes, and an endpoint to the other process: to its interface, or to the
 *  endpoint that it made. */
void hxt_uct_open(struct hxt_uct *u, struct hxt_proc *proc, size_t len,
                  bool to_ep);
void hxt_uct_close(struct hxt_uct *u);
/** One more endpoint to the other's interface, to which u->ep must go, too. */
uct_ep_h hxt_uct_ep_new(struct hxt_uct *u);

void hxt_uct_progress(struct hxt_uct *u);
/** All that this side posted is complete, also at the peer. */
void hxt_uct_flush(struct hxt_uct *u);

void hxt_uct_mem_reg(struct hxt_uct *u, size_t len, struct hxt_uct_mem *mem);
void hxt_uct_mem_dereg(struct hxt_uct *u, struct hxt_uct_mem *mem);

/* A completion, and the answer of who was given it */
struct hxt_uct_comp {
    uct_completion_t super;
    unsigned         called;
};

void hxt_uct_comp_init(struct hxt_uct_comp *comp);
/** `status` is what the call said: OK, or INPROGRESS and then it waits. */
void hxt_uct_comp_wait(struct hxt_uct *u, struct hxt_uct_comp *comp,
                       ucs_status_t status, const char *what);

#endif
