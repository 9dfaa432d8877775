/* SPDX-License-Identifier: BSD-3-Clause */

/* UCP as the tests use it: one context and worker a process; every failure
 * ends the process. */

#ifndef HXT_UCP_H_
#define HXT_UCP_H_

#include "peers.h"

#include <ucp/api/ucp.h>

#define HXT_UCP_FEATURES \
    (UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_STREAM)

struct hxt_ucp {
    struct hxt_proc *proc;
    ucp_context_h    context;
    ucp_worker_h     worker;
    ucp_ep_h         ep[HXT_MAX_PROCS]; /* by rank; NULL: none */
};

/* Memory of another process */
struct hxt_remote {
    uint64_t   addr;
    size_t     len;
    ucp_rkey_h rkey;
};

/** Context and worker; hxt_barrier() and the like progress it from now on. */
void hxt_ucp_open(struct hxt_ucp *u, struct hxt_proc *proc, uint64_t features);
/** A second worker, say, of the same context. */
ucp_worker_h hxt_ucp_worker(struct hxt_ucp *u);
/** Endpoints both ways between all processes, and to itself if `self`. */
void hxt_ucp_connect_all(struct hxt_ucp *u, bool self);
/** Closes the endpoints after everybody is done, then worker and context. */
void hxt_ucp_close(struct hxt_ucp *u);

/** This worker's address for everybody; then ucp endpoints from blobs. */
struct hxt_blob *hxt_ucp_gather_addresses(struct hxt_ucp *u);
ucp_ep_h hxt_ucp_ep(struct hxt_ucp *u, const void *address);
void hxt_ucp_ep_close(struct hxt_ucp *u, ucp_ep_h ep);
/** In error mode PEER; its failure is noted in *seen. */
ucp_ep_h hxt_ucp_ep_peer(struct hxt_ucp *u, const void *address,
                         struct hxt_failure *seen);
/** Closes it whatever is outstanding; dies unless that is done within so many
 *  seconds. */
void hxt_ucp_ep_force_close(struct hxt_ucp *u, ucp_ep_h ep, double limit);

void hxt_ucp_progress(struct hxt_ucp *u);
/** Until it is complete; frees it. NULL and a status pass through. */
ucs_status_t hxt_ucp_wait(struct hxt_ucp *u, ucs_status_ptr_t request);
/** As hxt_ucp_wait(), but dies after so many seconds. */
ucs_status_t hxt_ucp_within(struct hxt_ucp *u, double limit, const char *what,
                            ucs_status_ptr_t request);
/** Waits and dies unless it succeeded. */
void hxt_ucp_ok(struct hxt_ucp *u, const char *what, ucs_status_ptr_t request);
void hxt_ucp_flush(struct hxt_ucp *u, ucp_ep_h ep);

ucp_mem_h hxt_ucp_map(struct hxt_ucp *u, void *addr, size_t len);
void hxt_ucp_unmap(struct hxt_ucp *u, ucp_mem_h memh);
/** Gathers everybody's exposed memory; one entry a rank, the own one and who
 *  gave length 0 without a key. `memh` NULL: exposes nothing. */
void hxt_ucp_expose(struct hxt_ucp *u, void *addr, size_t len, ucp_mem_h memh,
                    struct hxt_remote remotes[HXT_MAX_PROCS]);
void hxt_ucp_forget(struct hxt_remote remotes[HXT_MAX_PROCS]);

/* Blocking, each until it is complete here */
void hxt_ucp_put(struct hxt_ucp *u, unsigned rank, const void *buf, size_t len,
                 const struct hxt_remote *remote, size_t offset,
                 ucp_mem_h memh);
void hxt_ucp_get(struct hxt_ucp *u, unsigned rank, void *buf, size_t len,
                 const struct hxt_remote *remote, size_t offset,
                 ucp_mem_h memh);

/* Not blocking; memh may be NULL */
ucs_status_ptr_t hxt_ucp_isend(struct hxt_ucp *u, ucp_ep_h ep, const void *buf,
                               size_t len, ucp_tag_t tag, ucp_mem_h memh);
ucs_status_ptr_t hxt_ucp_irecv(struct hxt_ucp *u, void *buf, size_t len,
                               ucp_tag_t tag, ucp_mem_h memh);

#endif
