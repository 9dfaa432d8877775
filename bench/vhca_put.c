/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Zero-copy puts between two processes, one at a time, by UCT: over hixl in
 * memory that its memory domain allocated and in memory of malloc(), over cma
 * in memory of malloc(), and a plain memcpy() from allocated memory to
 * allocated memory, in turns. Prints for each the best and the median time of
 * a put, in nanoseconds. The argument is the size, 1 MiB by default.
 */

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#define ROUNDS 41
#define PUTS   50
#define BLOB   256

#define CHECK(_cond) \
    do { \
        if (!(_cond)) { \
            fprintf(stderr, "vhca_put: %s failed\n", #_cond); \
            exit(1); \
        } \
    } while (0)

#define OK(_call) CHECK((_call) == UCS_OK)

enum { HIXL_ALLOC, HIXL_MALLOC, CMA_MALLOC, MEMCPY, WAYS };

#define HIXL_OTHER MEMCPY /* memory that only memcpy() goes to */

static const char *const way_name[WAYS] = {
    "hixl.alloc", "hixl.malloc", "cma.malloc", "memcpy"
};

struct shared {
    struct {
        uint8_t  device[BLOB], iface[BLOB], rkey[WAYS][BLOB];
        uint64_t addr[WAYS];
    } end[2];
    _Atomic unsigned step[2];
};

struct tl {
    uct_component_h  component;
    uct_md_h         md;
    uct_md_attr_t    md_attr;
    uct_iface_h      iface;
    uct_iface_attr_t attr;
    uct_ep_h         ep;
};

struct mem {
    uct_allocated_memory_t alloc;  /* of the memory domain */
    void                  *addr;
    uct_mem_h              memh;
    uct_rkey_bundle_t      rkey;   /* of the other end's */
};

static struct shared *shared;
static int me;
static size_t size = 1 << 20;
static uct_worker_h worker;

static double now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static void meet(unsigned step)
{
    atomic_store(&shared->step[me], step);
    while (atomic_load(&shared->step[!me]) < step) {
        uct_worker_progress(worker);
        sched_yield();
    }
}

/* ---- a transport ---- */

static bool md_open(struct tl *tl, const char *md_name, const char *name,
                    char *dev_name)
{
    uct_tl_resource_desc_t *tls;
    uct_md_config_t *config;
    bool found = false;
    unsigned n, i;

    OK(uct_md_config_read(tl->component, NULL, NULL, &config));
    if (uct_md_open(tl->component, md_name, config, &tl->md) == UCS_OK) {
        OK(uct_md_query_tl_resources(tl->md, &tls, &n));
        for (i = 0; (i < n) && !found; ++i) {
            found = strcmp(tls[i].tl_name, name) == 0;
            strcpy(dev_name, tls[i].dev_name);
        }
        uct_release_tl_resource_list(tls);
        if (!found) {
            uct_md_close(tl->md);
        }
    }
    uct_config_release(config);
    return found;
}

static bool component_open(struct tl *tl, const char *name, char *dev_name)
{
    uct_md_resource_desc_t mds[16];
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    bool found = false;
    unsigned i;

    OK(uct_component_query(tl->component, &attr));
    if (attr.md_resource_count > sizeof(mds) / sizeof(mds[0])) {
        return false;
    }
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = mds;
    OK(uct_component_query(tl->component, &attr));
    for (i = 0; (i < attr.md_resource_count) && !found; ++i) {
        found = md_open(tl, mds[i].md_name, name, dev_name);
    }
    return found;
}

static void tl_open(struct tl *tl, const char *name)
{
    char dev_name[UCT_DEVICE_NAME_MAX + 1] = "";
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = name,
        .mode.device.dev_name = dev_name
    };
    uct_component_h *components;
    uct_iface_config_t *config;
    uct_ep_params_t ep;
    bool found = false;
    unsigned n, i;

    OK(uct_query_components(&components, &n));
    for (i = 0; (i < n) && !found; ++i) {
        tl->component = components[i];
        found         = component_open(tl, name, dev_name);
    }
    uct_release_component_list(components);
    CHECK(found);

    OK(uct_md_query(tl->md, &tl->md_attr));
    OK(uct_md_iface_config_read(tl->md, name, NULL, NULL, &config));
    OK(uct_iface_open(tl->md, worker, &params, config, &tl->iface));
    uct_config_release(config);
    uct_iface_progress_enable(tl->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    OK(uct_iface_query(tl->iface, &tl->attr));
    CHECK((tl->attr.device_addr_len <= BLOB) &&
          (tl->attr.iface_addr_len <= BLOB) &&
          (tl->md_attr.rkey_packed_size <= BLOB));
    OK(uct_iface_get_device_address(tl->iface,
                                    (void*)shared->end[me].device));
    OK(uct_iface_get_address(tl->iface, (void*)shared->end[me].iface));
    meet(shared->step[me] + 1);

    ep = (uct_ep_params_t) {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = tl->iface,
        .dev_addr   = (void*)shared->end[!me].device,
        .iface_addr = (void*)shared->end[!me].iface
    };
    OK(uct_ep_create(&ep, &tl->ep));
    meet(shared->step[me] + 1);
}

static void tl_close(struct tl *tl)
{
    uct_ep_destroy(tl->ep);
    meet(shared->step[me] + 1);
    uct_iface_close(tl->iface);
    uct_md_close(tl->md);
}

/* ---- memory ---- */

static void mem_open(struct tl *tl, struct mem *mem, int way)
{
    uct_alloc_method_t method = UCT_ALLOC_METHOD_MD;
    uct_mem_alloc_params_t params = {
        .field_mask = UCT_MEM_ALLOC_PARAM_FIELD_FLAGS |
                      UCT_MEM_ALLOC_PARAM_FIELD_MDS |
                      UCT_MEM_ALLOC_PARAM_FIELD_NAME,
        .flags      = UCT_MD_MEM_ACCESS_ALL,
        .name       = "bench",
        .mds        = { &tl->md, 1 }
    };

    if ((way == HIXL_ALLOC) || (way == HIXL_OTHER)) {
        OK(uct_mem_alloc(size, &method, 1, &params, &mem->alloc));
        mem->addr = mem->alloc.address;
        mem->memh = mem->alloc.memh;
    } else {
        CHECK(posix_memalign(&mem->addr, 4096, size) == 0);
        OK(uct_md_mem_reg(tl->md, mem->addr, size, UCT_MD_MEM_ACCESS_ALL,
                          &mem->memh));
    }

    memset(mem->addr, me + 1, size);
    shared->end[me].addr[way] = (uintptr_t)mem->addr;
    OK(uct_md_mkey_pack(tl->md, mem->memh, shared->end[me].rkey[way]));
    meet(shared->step[me] + 1);
    OK(uct_rkey_unpack(tl->component, shared->end[!me].rkey[way], &mem->rkey));
}

static void mem_close(struct tl *tl, struct mem *mem, int way)
{
    OK(uct_rkey_release(tl->component, &mem->rkey));
    if ((way == HIXL_ALLOC) || (way == HIXL_OTHER)) {
        OK(uct_mem_free(&mem->alloc));
    } else {
        OK(uct_md_mem_dereg(tl->md, mem->memh));
        free(mem->addr);
    }
}

/* ---- measuring ---- */

static void done_cb(uct_completion_t *comp)
{
    (void)comp;
}

static void put(struct tl *tl, struct mem *mem, int way)
{
    uct_completion_t comp = { .func = done_cb, .count = 1, .status = UCS_OK };
    uct_iov_t iov = {
        .buffer = mem->addr, .length = size, .memh = mem->memh, .count = 1
    };
    ucs_status_t status;

    do {
        status = uct_ep_put_zcopy(tl->ep, &iov, 1, shared->end[!me].addr[way],
                                  mem->rkey.rkey, &comp);
        if (status == UCS_ERR_NO_RESOURCE) {
            uct_worker_progress(worker);
        }
    } while (status == UCS_ERR_NO_RESOURCE);
    if (status == UCS_OK) {
        return;
    }

    CHECK(status == UCS_INPROGRESS);
    while (comp.count != 0) {
        uct_worker_progress(worker);
    }
    CHECK(comp.status == UCS_OK);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double*)a, y = *(const double*)b;

    return (x > y) - (x < y);
}

static void measure(struct tl *hixl, struct tl *cma, struct mem *mem,
                    void *other)
{
    static double took[WAYS][ROUNDS];
    int way, round, i;
    double start;

    for (round = -1; round < ROUNDS; ++round) { /* one to warm up */
        for (way = 0; way < WAYS; ++way) {
            start = now_ns();
            for (i = 0; i < PUTS; ++i) {
                if (way == MEMCPY) {
                    memcpy(other, mem[HIXL_ALLOC].addr, size);
                    __asm__ volatile("" ::: "memory");
                } else {
                    put((way == CMA_MALLOC) ? cma : hixl, &mem[way], way);
                }
            }
            if (round >= 0) {
                took[way][round] = (now_ns() - start) / PUTS;
            }
        }
    }

    for (way = 0; way < WAYS; ++way) {
        qsort(took[way], ROUNDS, sizeof(took[way][0]), compare);
        printf("%s %.0f %.0f\n", way_name[way], took[way][0],
               took[way][ROUNDS / 2]);
    }
}

int main(int argc, char **argv)
{
    ucs_async_context_t *async;
    struct tl hixl, cma;
    struct mem mem[MEMCPY], other;
    int way, status;
    pid_t child;

    if (argc > 1) {
        size = strtoul(argv[1], NULL, 0);
    }
    CHECK(size > 0);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    child = fork();
    CHECK(child >= 0);
    me = child == 0;
    if (me == 1) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }

    OK(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async));
    OK(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker));
    tl_open(&hixl, "hixl");
    tl_open(&cma, "cma");
    for (way = 0; way < MEMCPY; ++way) {
        mem_open((way == CMA_MALLOC) ? &cma : &hixl, &mem[way], way);
    }
    /* where memcpy() goes: memory as that of the puts */
    mem_open(&hixl, &other, HIXL_OTHER);
    if (me == 0) {
        measure(&hixl, &cma, mem, other.addr);
    }
    meet(shared->step[me] + 1);
    mem_close(&hixl, &other, HIXL_OTHER);
    for (way = 0; way < MEMCPY; ++way) {
        CHECK((me == 0) || (((uint8_t*)mem[way].addr)[size - 1] == 1));
        mem_close((way == CMA_MALLOC) ? &cma : &hixl, &mem[way], way);
    }
    tl_close(&cma);
    tl_close(&hixl);
    uct_worker_destroy(worker);
    ucs_async_context_destroy(async);
    if (me == 0) {
        CHECK((waitpid(child, &status, 0) == child) && (status == 0));
    }
    return 0;
}
