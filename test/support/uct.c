/* SPDX-License-Identifier: BSD-3-Clause */

/* Two processes with one UCT interface each and an endpoint between them. */

#include "uct.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OK(_call) \
    do { \
        ucs_status_t ok_status = (_call); \
        HXT_CHECK(ok_status == UCS_OK, "%s: %s", #_call, \
                  ucs_status_string(ok_status)); \
    } while (0)

static struct {
    uct_error_handler_t func;
    void               *arg;
} on_error;

void hxt_uct_on_error(uct_error_handler_t func, void *arg)
{
    on_error.func = func;
    on_error.arg  = arg;
}

ucs_status_t hxt_uct_note_failure(void *arg, uct_ep_h ep, ucs_status_t status)
{
    struct hxt_failure *seen = arg;

    seen->ep     = ep;
    seen->status = status;
    seen->calls++;
    return UCS_OK;
}

static void progress_cb(void *arg)
{
    hxt_uct_progress(arg);
}

void hxt_uct_progress(struct hxt_uct *u)
{
    if (uct_worker_progress(u->worker) == 0) {
        sched_yield();
    }
}

/* ---- the device and the interface ---- */

/* Opens the memory domain if it has the transport; its first device. */
static bool open_md(struct hxt_uct *u, const char *md_name, const char *tl,
                    char *dev_name, size_t len)
{
    uct_tl_resource_desc_t *tls;
    uct_md_config_t *config;
    unsigned count, i;
    bool found = false;

    OK(uct_md_config_read(u->component, NULL, NULL, &config));
    if (uct_md_open(u->component, md_name, config, &u->md) == UCS_OK) {
        OK(uct_md_query_tl_resources(u->md, &tls, &count));
        for (i = 0; i < count && !found; i++) {
            if (strcmp(tls[i].tl_name, tl) == 0) {
                found = true;
                strncpy(dev_name, tls[i].dev_name, len);
            }
        }
        uct_release_tl_resource_list(tls);
        if (!found) {
            uct_md_close(u->md);
        }
    }
    uct_config_release(config);
    return found;
}

static bool open_component(struct hxt_uct *u, const char *tl, char *dev_name,
                           size_t len)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    bool found = false;
    unsigned i;

    OK(uct_component_query(u->component, &attr));
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count + 1,
                               sizeof(*attr.md_resources));
    HXT_CHECK(attr.md_resources != NULL, "no memory");
    OK(uct_component_query(u->component, &attr));
    for (i = 0; i < attr.md_resource_count && !found; i++) {
        found = open_md(u, attr.md_resources[i].md_name, tl, dev_name, len);
    }
    free(attr.md_resources);
    return found;
}

static void open_iface(struct hxt_uct *u)
{
    const char *tl = hxt_foreign() ? getenv("HIXL_TEST_TLS") : "hixl";
    char dev_name[UCT_DEVICE_NAME_MAX + 1] = "";
    uct_component_h *components;
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = tl,
        .mode.device.dev_name = dev_name
    };
    uct_iface_config_t *config;
    bool found = false;
    unsigned count, i;

    OK(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &u->async));
    OK(uct_worker_create(u->async, UCS_THREAD_MODE_SINGLE, &u->worker));
    OK(uct_query_components(&components, &count));
    for (i = 0; i < count && !found; i++) {
        u->component = components[i];
        found = open_component(u, tl, dev_name, sizeof(dev_name) - 1);
    }
    uct_release_component_list(components);
    HXT_CHECK(found, "no component has the transport %s", tl);
    if (on_error.func != NULL) {
        params.field_mask     |= UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                                 UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                                 UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS;
        params.err_handler     = on_error.func;
        params.err_handler_arg = on_error.arg;
    }

    OK(uct_md_query(u->md, &u->md_attr));
    OK(uct_md_iface_config_read(u->md, tl, NULL, NULL, &config));
    OK(uct_iface_open(u->md, u->worker, &params, config, &u->iface));
    uct_config_release(config);
    uct_iface_progress_enable(u->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    OK(uct_iface_query(u->iface, &u->attr));
}

/* ---- the endpoint ---- */


static struct hxt_blob *gather_iface_address(struct hxt_uct *u)
{
    struct hxt_blob *blobs;
    void *addr = calloc(1, u->attr.iface_addr_len + 1);

    HXT_CHECK(addr != NULL, "no memory");
    OK(uct_iface_get_address(u->iface, addr));
    blobs = hxt_gather(u->proc, addr, u->attr.iface_addr_len);
    free(addr);
    return blobs;
}

static struct hxt_blob *gather_device_address(struct hxt_uct *u)
{
    struct hxt_blob *blobs;
    void *addr = calloc(1, u->attr.device_addr_len + 1);

    HXT_CHECK(addr != NULL, "no memory");
    OK(uct_iface_get_device_address(u->iface, addr));
    blobs = hxt_gather(u->proc, addr, u->attr.device_addr_len);
    free(addr);
    return blobs;
}

static struct hxt_blob *gather_ep_address(struct hxt_uct *u)
{
    struct hxt_blob *blobs;
    void *addr = calloc(1, u->attr.ep_addr_len + 1);

    HXT_CHECK(addr != NULL, "no memory");
    OK(uct_ep_get_address(u->ep, addr));
    blobs = hxt_gather(u->proc, addr, u->attr.ep_addr_len);
    free(addr);
    return blobs;
}

uct_ep_h hxt_uct_ep_new(struct hxt_uct *u)
{
    const void *dev_addr   = u->dev_addrs[1 - u->proc->rank].data;
    const void *iface_addr = u->iface_addrs[1 - u->proc->rank].data;
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE |
                      UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = u->iface,
        .dev_addr   = dev_addr,
        .iface_addr = iface_addr
    };
    uct_ep_h ep;

    HXT_CHECK(uct_iface_is_reachable(u->iface, dev_addr, iface_addr),
              "not reachable");
    OK(uct_ep_create(&params, &ep));
    return ep;
}

static void connect_to_iface(struct hxt_uct *u)
{
    HXT_CHECK(u->attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE,
              "no CONNECT_TO_IFACE");
    u->dev_addrs   = gather_device_address(u);
    u->iface_addrs = gather_iface_address(u);
    u->ep          = hxt_uct_ep_new(u);
}

static void connect_to_ep(struct hxt_uct *u, unsigned other)
{
    struct hxt_blob *dev   = gather_device_address(u), *ep;
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE,
        .iface      = u->iface
    };

    HXT_CHECK(u->attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_EP,
              "no CONNECT_TO_EP");
    OK(uct_ep_create(&params, &u->ep));
    ep = gather_ep_address(u);
    OK(uct_ep_connect_to_ep(u->ep, dev[other].data, ep[other].data));
    free(ep);
    free(dev);
    hxt_barrier(u->proc);
}

/* ---- memory ---- */

void hxt_uct_mem_reg(struct hxt_uct *u, size_t len, struct hxt_uct_mem *mem)
{
    mem->addr = hxt_alloc(len);
    mem->len  = len;
    OK(uct_md_mem_reg(u->md, mem->addr, len, UCT_MD_MEM_ACCESS_ALL,
                      &mem->memh));
}

void hxt_uct_mem_dereg(struct hxt_uct *u, struct hxt_uct_mem *mem)
{
    OK(uct_md_mem_dereg(u->md, mem->memh));
    munmap(mem->addr, mem->len);
}

/* Gathers {address, packed key} and unpacks the other's. */
static void exchange_memory(struct hxt_uct *u, unsigned other)
{
    size_t len = sizeof(uint64_t) + u->md_attr.rkey_packed_size;
    struct hxt_blob *blobs;
    uint64_t *mine = calloc(1, len + 8);

    HXT_CHECK(mine != NULL, "no memory");
    mine[0] = (uintptr_t)u->mem.addr;
    OK(uct_md_mkey_pack(u->md, u->mem.memh, &mine[1]));
    blobs = hxt_gather(u->proc, mine, len);
    memcpy(&u->peer_addr, blobs[other].data, sizeof(uint64_t));
    OK(uct_rkey_unpack(u->component,
                       (char*)blobs[other].data + sizeof(uint64_t),
                       &u->peer_rkey));
    free(blobs);
    free(mine);
}

void hxt_uct_open(struct hxt_uct *u, struct hxt_proc *proc, size_t len,
                  bool to_ep)
{
    unsigned other = 1 - proc->rank;

    memset(u, 0, sizeof(*u));
    u->proc = proc;
    open_iface(u);
    hxt_uct_mem_reg(u, len, &u->mem);
    proc->progress     = progress_cb;
    proc->progress_arg = u;
    exchange_memory(u, other);
    if (to_ep) {
        connect_to_ep(u, other);
    } else {
        connect_to_iface(u);
    }
}

void hxt_uct_close(struct hxt_uct *u)
{
    hxt_barrier(u->proc);
    if (u->ep != NULL) {
        uct_ep_destroy(u->ep);
    }
    hxt_barrier(u->proc);
    OK(uct_rkey_release(u->component, &u->peer_rkey));
    hxt_uct_mem_dereg(u, &u->mem);
    u->proc->progress = NULL;
    uct_iface_close(u->iface);
    uct_md_close(u->md);
    uct_worker_destroy(u->worker);
    ucs_async_context_destroy(u->async);
    free(u->iface_addrs);
    free(u->dev_addrs);
}

/* ---- completions ---- */

void hxt_uct_flush(struct hxt_uct *u)
{
    ucs_status_t status;

    do {
        status = uct_ep_flush(u->ep, UCT_FLUSH_FLAG_LOCAL, NULL);
        hxt_uct_progress(u);
    } while (status == UCS_INPROGRESS || status == UCS_ERR_NO_RESOURCE);
    HXT_CHECK(status == UCS_OK, "uct_ep_flush: %s", ucs_status_string(status));
}

static void comp_called(uct_completion_t *self)
{
    struct hxt_uct_comp *comp = (struct hxt_uct_comp*)self;

    comp->called++;
}

void hxt_uct_comp_init(struct hxt_uct_comp *comp)
{
    comp->super.func   = comp_called;
    comp->super.count  = 1;
    comp->super.status = UCS_OK;
    comp->called       = 0;
}

void hxt_uct_comp_wait(struct hxt_uct *u, struct hxt_uct_comp *comp,
                       ucs_status_t status, const char *what)
{
    if (status != UCS_INPROGRESS) {
        HXT_CHECK(status == UCS_OK, "%s: %s", what, ucs_status_string(status));
        HXT_CHECK(comp->called == 0, "%s: done, and completed besides", what);
        return;
    }

    while (comp->called == 0) {
        hxt_uct_progress(u);
    }
    HXT_CHECK(comp->called == 1 && comp->super.count == 0,
              "%s: completed %u times", what, comp->called);
    HXT_CHECK(comp->super.status == UCS_OK, "%s: %s", what,
              ucs_status_string(comp->super.status));
}
