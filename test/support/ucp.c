/* SPDX-License-Identifier: BSD-3-Clause */

/* UCP as the tests use it. */

#include "ucp.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define OK(_status, _what) \
    do { \
        ucs_status_t ok_status = (_status); \
        HXT_CHECK(ok_status == UCS_OK, "%s: %s", _what, \
                  ucs_status_string(ok_status)); \
    } while (0)

static void progress_cb(void *arg)
{
    hxt_ucp_progress(arg);
}

void hxt_ucp_progress(struct hxt_ucp *u)
{
    /* there may be fewer processors than processes */
    if (ucp_worker_progress(u->worker) == 0) {
        sched_yield();
    }
}

ucp_worker_h hxt_ucp_worker(struct hxt_ucp *u)
{
    ucp_worker_params_t params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };
    ucp_worker_h worker;

    OK(ucp_worker_create(u->context, &params, &worker), "ucp_worker_create");
    return worker;
}

void hxt_ucp_open(struct hxt_ucp *u, struct hxt_proc *proc, uint64_t features)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = features
    };

    memset(u, 0, sizeof(*u));
    u->proc = proc;
    OK(ucp_init(&params, NULL, &u->context), "ucp_init");
    u->worker          = hxt_ucp_worker(u);
    proc->progress     = progress_cb;
    proc->progress_arg = u;
}

struct hxt_blob *hxt_ucp_gather_addresses(struct hxt_ucp *u)
{
    struct hxt_blob *blobs;
    ucp_address_t *address;
    size_t len;

    OK(ucp_worker_get_address(u->worker, &address, &len), "worker address");
    blobs = hxt_gather(u->proc, address, len);
    ucp_worker_release_address(u->worker, address);
    return blobs;
}

ucp_ep_h hxt_ucp_ep(struct hxt_ucp *u, const void *address)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = address
    };
    ucp_ep_h ep;

    OK(ucp_ep_create(u->worker, &params, &ep), "ucp_ep_create");
    return ep;
}

static void note_failure(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct hxt_failure *seen = arg;

    seen->ep     = ep;
    seen->status = status;
    seen->calls++;
}

ucp_ep_h hxt_ucp_ep_peer(struct hxt_ucp *u, const void *address,
                         struct hxt_failure *seen)
{
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address         = address,
        .err_mode        = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = note_failure,
        .err_handler.arg = seen
    };
    ucp_ep_h ep;

    OK(ucp_ep_create(u->worker, &params, &ep), "ucp_ep_create");
    return ep;
}

ucs_status_t hxt_ucp_within(struct hxt_ucp *u, double limit, const char *what,
                            ucs_status_ptr_t request)
{
    double end = hxt_seconds() + limit;
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        HXT_CHECK(hxt_seconds() < end, "%s does not end", what);
        hxt_ucp_progress(u);
    }
    ucp_request_free(request);
    return status;
}

void hxt_ucp_ep_force_close(struct hxt_ucp *u, ucp_ep_h ep, double limit)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_EP_CLOSE_FLAG_FORCE
    };

    (void)hxt_ucp_within(u, limit, "closing", ucp_ep_close_nbx(ep, &param));
}

void hxt_ucp_ep_close(struct hxt_ucp *u, ucp_ep_h ep)
{
    ucp_request_param_t param = { .op_attr_mask = 0 };

    hxt_ucp_ok(u, "ucp_ep_close", ucp_ep_close_nbx(ep, &param));
}

void hxt_ucp_connect_all(struct hxt_ucp *u, bool self)
{
    struct hxt_blob *blobs = hxt_ucp_gather_addresses(u);
    unsigned rank;

    for (rank = 0; rank < u->proc->count; rank++) {
        if (self || rank != u->proc->rank) {
            u->ep[rank] = hxt_ucp_ep(u, blobs[rank].data);
        }
    }
    free(blobs);
}

void hxt_ucp_close(struct hxt_ucp *u)
{
    unsigned rank;

    hxt_barrier(u->proc);
    for (rank = 0; rank < u->proc->count; rank++) {
        if (u->ep[rank] != NULL) {
            hxt_ucp_ep_close(u, u->ep[rank]);
        }
    }
    hxt_barrier(u->proc);
    u->proc->progress = NULL;
    ucp_worker_destroy(u->worker);
    ucp_cleanup(u->context);
}

ucs_status_t hxt_ucp_wait(struct hxt_ucp *u, ucs_status_ptr_t request)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        hxt_ucp_progress(u);
    }
    ucp_request_free(request);
    return status;
}

void hxt_ucp_ok(struct hxt_ucp *u, const char *what, ucs_status_ptr_t request)
{
    OK(hxt_ucp_wait(u, request), what);
}

void hxt_ucp_flush(struct hxt_ucp *u, ucp_ep_h ep)
{
    ucp_request_param_t param = { .op_attr_mask = 0 };

    hxt_ucp_ok(u, "ucp_ep_flush", ucp_ep_flush_nbx(ep, &param));
}

ucp_mem_h hxt_ucp_map(struct hxt_ucp *u, void *addr, size_t len)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = addr,
        .length     = len
    };
    ucp_mem_h memh;

    OK(ucp_mem_map(u->context, &params, &memh), "ucp_mem_map");
    return memh;
}

void hxt_ucp_unmap(struct hxt_ucp *u, ucp_mem_h memh)
{
    OK(ucp_mem_unmap(u->context, memh), "ucp_mem_unmap");
}

/* What hxt_ucp_expose() gathers; the packed key follows */
struct exposed {
    uint64_t addr;
    uint64_t len;
};

void hxt_ucp_expose(struct hxt_ucp *u, void *addr, size_t len, ucp_mem_h memh,
                    struct hxt_remote remotes[HXT_MAX_PROCS])
{
    struct exposed *mine, theirs;
    struct hxt_blob *blobs;
    void *rkey       = NULL;
    size_t rkey_size = 0;
    unsigned rank;

    if (memh != NULL) {
        OK(ucp_rkey_pack(u->context, memh, &rkey, &rkey_size),
           "ucp_rkey_pack");
    }
    mine = malloc(sizeof(*mine) + rkey_size);
    HXT_CHECK(mine != NULL, "no memory");
    mine->addr = (uintptr_t)addr;
    mine->len  = memh != NULL ? len : 0;
    if (rkey != NULL) {
        memcpy(mine + 1, rkey, rkey_size);
        ucp_rkey_buffer_release(rkey);
    }
    blobs = hxt_gather(u->proc, mine, sizeof(*mine) + rkey_size);
    free(mine);

    memset(remotes, 0, HXT_MAX_PROCS * sizeof(remotes[0]));
    for (rank = 0; rank < u->proc->count; rank++) {
        memcpy(&theirs, blobs[rank].data, sizeof(theirs));
        remotes[rank].addr = theirs.addr;
        remotes[rank].len  = theirs.len;
        if (theirs.len != 0 && u->ep[rank] != NULL) {
            OK(ucp_ep_rkey_unpack(u->ep[rank],
                                  (char*)blobs[rank].data + sizeof(theirs),
                                  &remotes[rank].rkey),
               "ucp_ep_rkey_unpack");
        }
    }
    free(blobs);
}

void hxt_ucp_forget(struct hxt_remote remotes[HXT_MAX_PROCS])
{
    unsigned rank;

    for (rank = 0; rank < HXT_MAX_PROCS; rank++) {
        if (remotes[rank].rkey != NULL) {
            ucp_rkey_destroy(remotes[rank].rkey);
            remotes[rank].rkey = NULL;
        }
    }
}

static ucp_request_param_t param_with(ucp_mem_h memh)
{
    ucp_request_param_t param = { .op_attr_mask = 0 };

    if (memh != NULL) {
        param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
        param.memh         = memh;
    }
    return param;
}

void hxt_ucp_put(struct hxt_ucp *u, unsigned rank, const void *buf, size_t len,
                 const struct hxt_remote *remote, size_t offset,
                 ucp_mem_h memh)
{
    ucp_request_param_t param = param_with(memh);

    hxt_ucp_ok(u, "ucp_put", ucp_put_nbx(u->ep[rank], buf, len,
                                         remote->addr + offset, remote->rkey,
                                         &param));
}

void hxt_ucp_get(struct hxt_ucp *u, unsigned rank, void *buf, size_t len,
                 const struct hxt_remote *remote, size_t offset,
                 ucp_mem_h memh)
{
    ucp_request_param_t param = param_with(memh);

    hxt_ucp_ok(u, "ucp_get", ucp_get_nbx(u->ep[rank], buf, len,
                                         remote->addr + offset, remote->rkey,
                                         &param));
}

ucs_status_ptr_t hxt_ucp_isend(struct hxt_ucp *u, ucp_ep_h ep, const void *buf,
                               size_t len, ucp_tag_t tag, ucp_mem_h memh)
{
    ucp_request_param_t param = param_with(memh);

    (void)u;
    return ucp_tag_send_nbx(ep, buf, len, tag, &param);
}

ucs_status_ptr_t hxt_ucp_irecv(struct hxt_ucp *u, void *buf, size_t len,
                               ucp_tag_t tag, ucp_mem_h memh)
{
    ucp_request_param_t param = param_with(memh);

    return ucp_tag_recv_nbx(u->worker, buf, len, tag, UINT64_MAX, &param);
}
