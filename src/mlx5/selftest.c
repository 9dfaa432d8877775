/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Whether keys over umems work: two ranges of two pages each, one that begins
 * with a page and one that does not, and between them RDMA writes and reads
 * over two QPs connected to each other, with either range as the remote one.
 * After each, all the memory must be what it should be.
 */

#include "cq_poll.h"
#include "hx.h"
#include "mkey.h"
#include "sq.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SELFTEST_SEC    1     /* for all the operations */
#define SELFTEST_SKEW   0x335 /* of the range that does not begin with a page */
#define SELFTEST_MORE   0x4d1 /* its length beyond a page */
#define SELFTEST_SHIFT  0x77  /* where in the other range its bytes belong */
#define SELFTEST_LOG_SQ 4
#define SELFTEST_LOG_CQ 4
#define SELFTEST_PSN    0x5e1f

/* The QPs; the second only answers */
enum { SENDER, TARGET };

struct selftest_range {
    size_t         pos;       /* in the memory */
    size_t         len;
    size_t         at;        /* in the range: what is moved */
    struct hx_mkey key;
};

struct selftest {
    struct hx_dev        *dev;
    const struct hx_port *port;
    struct hx_uar        *uar;
    struct hx_cq         *cq;
    struct hx_qp         *qp[2];
    uint8_t              *mem;
    uint8_t              *expect;   /* what it must hold */
    size_t                len;
    struct selftest_range aligned;
    struct selftest_range skewed;
    uint32_t              seed;
    struct timespec       end;
};

/* ---- the operations ---- */

static void selftest_fill(struct selftest *st, uint32_t seed)
{
    size_t i;

    for (i = 0; i < st->len; ++i) {
        seed       = seed * 1103515245 + 12345;
        st->mem[i] = seed >> 16;
    }
    memcpy(st->expect, st->mem, st->len);
}

static const char *selftest_op_name(bool read)
{
    return read ? "RDMA read" : "RDMA write";
}

static bool selftest_is_late(const struct selftest *st)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec > st->end.tv_sec) ||
           ((now.tv_sec == st->end.tv_sec) &&
            (now.tv_nsec >= st->end.tv_nsec));
}

static int selftest_wait(struct selftest *st, bool read)
{
    struct hx_wc wc = {0};

    while (!hx_cq_poll(st->cq, &wc)) {
        if (selftest_is_late(st)) {
            hx_log(HX_LOG_ERROR, "%s: %s by keys over umems: not done after"
                   " %u s", st->dev->name, selftest_op_name(read),
                   SELFTEST_SEC);
            return -ETIMEDOUT;
        }
        sched_yield();
    }

    hx_cq_update_ci(st->cq);
    if (wc.kind != HX_CQE_REQ) {
        hx_log(HX_LOG_ERROR, "%s: %s by keys over umems: %s, vendor syndrome"
               " 0x%x", st->dev->name, selftest_op_name(read),
               hx_cqe_syndrome_str(wc.syndrome), wc.vendor_syndrome);
        return -EIO;
    }

    hx_sq_complete(&st->qp[SENDER]->sq, wc.wqe_counter);
    return 0;
}

/* For whoever counts what others send: how much of it was a self-test's */
static void selftest_count(bool read, size_t len)
{
    __atomic_fetch_add(hx_counter(read ? "selftest.wqe.rdma_read" :
                                         "selftest.wqe.rdma_write"), 1,
                       __ATOMIC_RELAXED);
    __atomic_fetch_add(hx_counter(read ? "selftest.bytes.rdma_read" :
                                         "selftest.bytes.rdma_write"), len,
                       __ATOMIC_RELAXED);
    __atomic_fetch_add(hx_counter("selftest.cqe.req"), 1, __ATOMIC_RELAXED);
}

static int selftest_compare(const struct selftest *st, bool read)
{
    size_t i;

    if (memcmp(st->mem, st->expect, st->len) == 0) {
        return 0;
    }

    for (i = 0; (i < st->len - 1) && (st->mem[i] == st->expect[i]); ++i) {
    }
    hx_log(HX_LOG_ERROR, "%s: %s by keys over umems at page offsets 0 and"
           " 0x%x: byte 0x%zx of the memory is 0x%02x and not 0x%02x",
           st->dev->name, selftest_op_name(read), SELFTEST_SKEW, i,
           st->mem[i], st->expect[i]);
    return -EILSEQ;
}

static int selftest_run_op(struct selftest *st,
                           const struct selftest_range *local,
                           const struct selftest_range *remote, bool read)
{
    size_t near             = local->pos + local->at;
    size_t far              = remote->pos + remote->at;
    uint64_t raddr          = (uintptr_t)st->mem + far;
    size_t len              = st->skewed.len;
    struct hx_sq *sq        = &st->qp[SENDER]->sq;
    const struct hx_sge sge = {
        .addr = (uintptr_t)st->mem + near,
        .len  = len,
        .lkey = local->key.key
    };
    unsigned bb;
    int ret;

    selftest_fill(st, st->seed++);
    if (read) {
        memcpy(st->expect + near, st->expect + far, len);
        bb = hx_sq_read(sq, &sge, 1, raddr, remote->key.key, HX_WQE_CQ_UPDATE);
    } else {
        memcpy(st->expect + far, st->expect + near, len);
        bb = hx_sq_write(sq, &sge, 1, raddr, remote->key.key,
                         HX_WQE_CQ_UPDATE);
    }
    hx_sq_post(sq, bb);

    ret = selftest_wait(st, read);
    if (ret != 0) {
        return ret;
    }

    selftest_count(read, len);
    return selftest_compare(st, read);
}

static int selftest_create_key(struct selftest *st,
                               struct selftest_range *range, uint32_t access)
{
    return hx_mkey_create_umem(st->dev, st->mem + range->pos, range->len,
                               IBV_ACCESS_LOCAL_WRITE | access, &range->key);
}

/* A write and a read. Only the remote side's key lets a peer in, so there is
 * no more than one of these at a time. */
static int selftest_run_pair(struct selftest *st, struct selftest_range *local,
                             struct selftest_range *remote)
{
    int ret;

    ret = selftest_create_key(st, local, 0);
    if (ret != 0) {
        return ret;
    }

    ret = selftest_create_key(st, remote,
                              IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    if (ret != 0) {
        goto out_destroy_local;
    }

    ret = selftest_run_op(st, local, remote, false);
    if (ret == 0) {
        ret = selftest_run_op(st, local, remote, true);
    }

    hx_mkey_destroy(&remote->key);
out_destroy_local:
    hx_mkey_destroy(&local->key);
    return ret;
}

static int selftest_run(struct selftest *st)
{
    int ret;

    clock_gettime(CLOCK_MONOTONIC, &st->end);
    st->end.tv_sec += SELFTEST_SEC;

    ret = selftest_run_pair(st, &st->aligned, &st->skewed);
    return (ret != 0) ? ret : selftest_run_pair(st, &st->skewed, &st->aligned);
}

/* ---- what they need ---- */

static int selftest_map(struct selftest *st)
{
    size_t page = sysconf(_SC_PAGESIZE);
    int ret;

    st->len     = 4 * page;
    st->aligned = (struct selftest_range) {
        .len = 2 * page,
        .at  = SELFTEST_SHIFT
    };
    st->skewed = (struct selftest_range) {
        .pos = 2 * page + SELFTEST_SKEW,
        .len = page + SELFTEST_MORE
    };

    st->expect = malloc(st->len);
    if (st->expect == NULL) {
        ret = -ENOMEM;
        goto err;
    }

    st->mem = mmap(NULL, st->len, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (st->mem == MAP_FAILED) {
        ret = -errno;
        goto err_free;
    }

    /* Another thread may fork: the device keeps the pages of this process */
    madvise(st->mem, st->len, MADV_DONTFORK);
    return 0;

err_free:
    free(st->expect);
err:
    hx_log(HX_LOG_ERROR, "%s: no memory to try keys over umems: %s",
           st->dev->name, strerror(-ret));
    return ret;
}

static void selftest_unmap(struct selftest *st)
{
    munmap(st->mem, st->len);
    free(st->expect);
}

static int selftest_connect(struct selftest *st, unsigned i)
{
    const struct hx_port *port = st->port;
    struct hx_qp_path path     = {
        .remote_qpn  = st->qp[!i]->qpn,
        .remote_psn  = SELFTEST_PSN,
        .local_psn   = SELFTEST_PSN,
        .mtu         = port->active_mtu,
        .lid         = port->lid,
        .ack_timeout = 12, /* 17 ms: nothing is far here */
        .retry_count = 3,
        .min_rnr_nak = 12
    };
    int ret;

    if (port->roce) {
        path.gid = port->gid;
    }

    ret = hx_qp_init(st->qp[i], port, 0);
    if (ret == 0) {
        ret = hx_qp_rtr(st->qp[i], port, &path);
    }
    if (ret == 0) {
        ret = hx_qp_rts(st->qp[i], &path);
    }

    return ret;
}

static int selftest_create_qps(struct selftest *st)
{
    const struct hx_qp_attr attr = {
        .uar       = st->uar,
        .send_cq   = st->cq,
        .recv_cq   = st->cq,
        .log_sq_bb = SELFTEST_LOG_SQ
    };
    int ret;

    ret = hx_qp_create(st->dev, &attr, &st->qp[SENDER]);
    if (ret != 0) {
        return ret;
    }

    ret = hx_qp_create(st->dev, &attr, &st->qp[TARGET]);
    if (ret != 0) {
        goto err_destroy_sender;
    }

    ret = selftest_connect(st, SENDER);
    if (ret != 0) {
        goto err_destroy_target;
    }

    ret = selftest_connect(st, TARGET);
    if (ret != 0) {
        goto err_destroy_target;
    }

    return 0;

err_destroy_target:
    hx_qp_destroy(st->qp[TARGET]);
err_destroy_sender:
    hx_qp_destroy(st->qp[SENDER]);
    return ret;
}

static void selftest_destroy_qps(struct selftest *st)
{
    hx_qp_destroy(st->qp[TARGET]);
    hx_qp_destroy(st->qp[SENDER]);
}

int hx_selftest_umem_keys(struct hx_dev *dev, const struct hx_port *port)
{
    struct selftest st = {.dev = dev, .port = port};
    int ret;

    ret = selftest_map(&st);
    if (ret != 0) {
        return ret;
    }

    ret = hx_uar_create(dev, &st.uar);
    if (ret != 0) {
        goto out_unmap;
    }

    ret = hx_cq_create(dev, st.uar, SELFTEST_LOG_CQ, NULL, &st.cq);
    if (ret != 0) {
        goto out_destroy_uar;
    }

    ret = selftest_create_qps(&st);
    if (ret != 0) {
        goto out_destroy_cq;
    }

    ret = selftest_run(&st);

    /* From now on nothing reaches the memory, whatever was in flight */
    selftest_destroy_qps(&st);
out_destroy_cq:
    hx_cq_destroy(st.cq);
out_destroy_uar:
    hx_uar_destroy(st.uar);
out_unmap:
    selftest_unmap(&st);
    return ret;
}
