/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Verbs queue pairs and shared receive queues through the real libibverbs and
 * libmlx5: two QPs of one process. libmlx5 does not ring by call, so everything
 * here happens because somebody watches its doorbell records. Needs the device
 * preloaded; run by verbs_objects.sh.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define DEADLINE 20  /* seconds */
#define MEM_LEN  (1 << 20)
#define DEPTH    16
#define GID      3   /* RoCE v2, IPv4 */
#define QKEY     0x1234

struct fixture {
    struct ibv_context      *ctx;
    struct ibv_pd           *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq           *scq, *rcq; /* rcq: with the channel */
    struct ibv_mr           *mr;
    struct ibv_srq          *srq;
    struct ibv_qp           *qp[2];
    struct ibv_port_attr     port;
    uint8_t                 *mem;
};

static time_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

/* ---- making things ---- */

static int setup(void **state)
{
    struct fixture *f        = calloc(1, sizeof(*f));
    struct ibv_device **list = ibv_get_device_list(NULL);

    assert_non_null(list);
    f->ctx = ibv_open_device(list[0]);
    assert_non_null(f->ctx);
    ibv_free_device_list(list);
    assert_int_equal(ibv_query_port(f->ctx, 1, &f->port), 0);
    f->pd = ibv_alloc_pd(f->ctx);
    assert_non_null(f->pd);
    f->channel = ibv_create_comp_channel(f->ctx);
    assert_non_null(f->channel);
    f->scq = ibv_create_cq(f->ctx, 4 * DEPTH, NULL, NULL, 0);
    f->rcq = ibv_create_cq(f->ctx, 4 * DEPTH, f, f->channel, 0);
    assert_non_null(f->scq);
    assert_non_null(f->rcq);
    f->mem = aligned_alloc(4096, MEM_LEN);
    assert_non_null(f->mem);
    memset(f->mem, 0, MEM_LEN);
    f->mr = ibv_reg_mr(f->pd, f->mem, MEM_LEN,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    assert_non_null(f->mr);
    *state = f;
    return 0;
}

/* Everything can be destroyed, whatever events nobody has read. */
static int teardown(void **state)
{
    struct fixture *f = *state;
    unsigned i;

    for (i = 0; i < 2; ++i) {
        if (f->qp[i] != NULL) {
            assert_int_equal(ibv_destroy_cq(f->rcq), EBUSY);
            assert_int_equal(ibv_destroy_qp(f->qp[i]), 0);
        }
    }
    if (f->srq != NULL) {
        assert_int_equal(ibv_destroy_srq(f->srq), 0);
    }
    assert_int_equal(ibv_dereg_mr(f->mr), 0);
    assert_int_equal(ibv_destroy_cq(f->scq), 0);
    assert_int_equal(ibv_destroy_cq(f->rcq), 0);
    assert_int_equal(ibv_destroy_comp_channel(f->channel), 0);
    assert_int_equal(ibv_dealloc_pd(f->pd), 0);
    assert_int_equal(ibv_close_device(f->ctx), 0);
    free(f->mem);
    free(f);
    return 0;
}

static void make_qps(struct fixture *f, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr attr = {
        .send_cq    = f->scq,
        .recv_cq    = f->rcq,
        .srq        = f->srq,
        .qp_type    = type,
        .sq_sig_all = 1,
        .cap        = {DEPTH, (f->srq == NULL) ? DEPTH : 0, 4, 2, 64}
    };
    unsigned i;

    for (i = 0; i < 2; ++i) {
        f->qp[i] = ibv_create_qp(f->pd, &attr);
        assert_non_null(f->qp[i]);
    }
}

static void fill_ah(const struct fixture *f, struct ibv_ah_attr *ah)
{
    ah->port_num = 1;
    ah->dlid     = f->port.lid;
    if (f->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        ah->is_global      = 1;
        ah->grh.sgid_index = GID;
        ah->grh.hop_limit  = 64;
        assert_int_equal(ibv_query_gid(f->ctx, 1, GID, &ah->grh.dgid), 0);
    }
}

/* The attributes of every step of a QP's life, and which of them it needs */
static void fill_attr(const struct fixture *f, struct ibv_qp_attr *attr,
                      uint32_t dest)
{
    memset(attr, 0, sizeof(*attr));
    attr->qp_access_flags    = IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC;
    attr->port_num           = 1;
    attr->qkey               = QKEY;
    attr->path_mtu           = IBV_MTU_1024;
    attr->dest_qp_num        = dest;
    attr->rq_psn             = 0x111111;
    attr->sq_psn             = 0x111111;
    attr->max_dest_rd_atomic = 4;
    attr->max_rd_atomic      = 4;
    attr->min_rnr_timer      = 12;
    attr->timeout            = 14;
    attr->retry_cnt          = 7;
    attr->rnr_retry          = 7;
    fill_ah(f, &attr->ah_attr);
}

static const struct step {
    enum ibv_qp_type  type;
    enum ibv_qp_state from, to;
    int               needs;
} steps[] = {
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
     IBV_QP_MAX_QP_RD_ATOMIC},
    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN}
};

#define NUM_STEPS (sizeof(steps) / sizeof(steps[0]))

static int take_step(struct fixture *f, const struct step *step, unsigned i,
                     int mask)
{
    struct ibv_qp_attr attr;

    fill_attr(f, &attr, f->qp[!i]->qp_num);
    attr.qp_state = step->to;
    return ibv_modify_qp(f->qp[i], &attr, mask);
}

static void connect_qps(struct fixture *f, enum ibv_qp_type type)
{
    unsigned i, k;

    make_qps(f, type);
    for (k = 0; k < NUM_STEPS; ++k) {
        for (i = 0; (i < 2) && (steps[k].type == type); ++i) {
            assert_int_equal(take_step(f, &steps[k], i,
                                       steps[k].needs | IBV_QP_STATE), 0);
        }
    }
}

static int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

/* ---- using them ---- */

static struct ibv_sge sge_of(const struct fixture *f, unsigned at, uint32_t len)
{
    return (struct ibv_sge) {(uintptr_t)f->mem + at, len, f->mr->lkey};
}

static void post_recv(struct fixture *f, unsigned i, unsigned at, uint32_t len)
{
    struct ibv_sge sge     = sge_of(f, at, len);
    struct ibv_recv_wr *bad, wr = {
        .wr_id = at, .sg_list = &sge, .num_sge = 1
    };

    assert_int_equal((f->srq != NULL) ?
                     ibv_post_srq_recv(f->srq, &wr, &bad) :
                     ibv_post_recv(f->qp[i], &wr, &bad), 0);
}

static void post(struct fixture *f, unsigned i, enum ibv_wr_opcode opcode,
                 unsigned at, uint32_t len, unsigned remote, uint32_t rkey)
{
    struct ibv_sge sge     = sge_of(f, at, len);
    struct ibv_send_wr *bad, wr = {
        .wr_id = at, .sg_list = &sge, .num_sge = 1, .opcode = opcode
    };

    wr.wr.rdma.remote_addr = (uintptr_t)f->mem + remote;
    wr.wr.rdma.rkey        = rkey;
    assert_int_equal(ibv_post_send(f->qp[i], &wr, &bad), 0);
}

static struct ibv_wc wait_wc(struct ibv_cq *cq)
{
    time_t deadline = now() + DEADLINE;
    struct ibv_wc wc;
    int n;

    do {
        n = ibv_poll_cq(cq, 1, &wc);
        assert_true(n >= 0);
    } while ((n == 0) && (now() < deadline));
    assert_int_equal(n, 1);
    return wc;
}

static void expect_wc(struct ibv_cq *cq, enum ibv_wc_status status,
                      uint64_t wr_id)
{
    struct ibv_wc wc = wait_wc(cq);

    assert_int_equal(wc.status, status);
    assert_int_equal(wc.wr_id, wr_id);
}

static bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

static void expect_async(struct fixture *f, enum ibv_event_type type,
                         const void *element)
{
    struct ibv_async_event event;

    assert_true(readable(f->ctx->async_fd, DEADLINE * 1000));
    assert_int_equal(ibv_get_async_event(f->ctx, &event), 0);
    assert_int_equal(event.event_type, type);
    assert_ptr_equal(event.element.qp, element);
    ibv_ack_async_event(&event);
}

/* ---- steps ---- */

static void steps_of(struct fixture *f, enum ibv_qp_type type)
{
    int bit, needs, extra = (type == IBV_QPT_RC) ? IBV_QP_QKEY : IBV_QP_AV;
    unsigned k, wrong;

    make_qps(f, type);
    for (k = 0; k < NUM_STEPS; ++k) {
        if (steps[k].type != type) {
            continue;
        }
        needs = steps[k].needs | IBV_QP_STATE;
        for (bit = 2; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
            if (needs & bit) {
                assert_int_equal(take_step(f, &steps[k], 0, needs & ~bit),
                                 EINVAL);
            }
        }
        if ((steps[k].needs & extra) == 0) {
            assert_int_equal(take_step(f, &steps[k], 0, needs | extra |
                                                        IBV_QP_RETRY_CNT |
                                                        IBV_QP_TIMEOUT),
                             EINVAL);
        }
        for (wrong = 0; wrong < NUM_STEPS; ++wrong) {
            /* from here only one of them leads on; INIT may be said again */
            if ((steps[wrong].type == type) &&
                (steps[wrong].from != steps[k].from) &&
                !((steps[wrong].to == IBV_QPS_INIT) &&
                  (steps[k].from == IBV_QPS_INIT))) {
                assert_int_equal(take_step(f, &steps[wrong], 0,
                                           steps[wrong].needs | IBV_QP_STATE),
                                 EINVAL);
            }
        }
        assert_int_equal(state_of(f->qp[0]), steps[k].from);
        assert_int_equal(take_step(f, &steps[k], 0, needs), 0);
        assert_int_equal(state_of(f->qp[0]), steps[k].to);
    }
    assert_int_equal(to_state(f->qp[0], IBV_QPS_SQD), EINVAL);
    assert_int_equal(to_state(f->qp[0], IBV_QPS_RTS), 0);
    assert_int_equal(to_state(f->qp[0], IBV_QPS_ERR), 0);
    assert_int_equal(to_state(f->qp[0], IBV_QPS_RTS), EINVAL);
    assert_int_equal(to_state(f->qp[0], IBV_QPS_RESET), 0);
    assert_int_equal(to_state(f->qp[0], IBV_QPS_RESET), 0);
    assert_int_equal(to_state(f->qp[0], IBV_QPS_ERR), EINVAL);
}

static void modify__rc__needs_its_attributes_in_order(void **state)
{
    steps_of(*state, IBV_QPT_RC);
}

static void modify__ud__needs_its_attributes_in_order(void **state)
{
    steps_of(*state, IBV_QPT_UD);
}

static void modify__attribute_out_of_range__einval(void **state)
{
    const int init = IBV_QP_STATE | steps[0].needs;
    const int rtr  = IBV_QP_STATE | steps[1].needs;
    struct fixture *f = *state;
    struct ibv_qp_attr attr;

    make_qps(f, IBV_QPT_RC);
    fill_attr(f, &attr, f->qp[1]->qp_num);
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 2;
    assert_int_equal(ibv_modify_qp(f->qp[0], &attr, init), EINVAL);
    attr.port_num   = 1;
    attr.pkey_index = 0x7fff;
    assert_int_equal(ibv_modify_qp(f->qp[0], &attr, init), EINVAL);
    attr.pkey_index = 0;
    assert_int_equal(ibv_modify_qp(f->qp[0], &attr, init), 0);

    attr.qp_state           = IBV_QPS_RTR;
    attr.max_dest_rd_atomic = 17;
    assert_int_equal(ibv_modify_qp(f->qp[0], &attr, rtr), EINVAL);
    attr.max_dest_rd_atomic = 16;
    attr.path_mtu           = 6;
    assert_int_equal(ibv_modify_qp(f->qp[0], &attr, rtr), EINVAL);
    attr.path_mtu               = IBV_MTU_4096;
    attr.ah_attr.is_global      = 1;
    attr.ah_attr.grh.sgid_index = 200;
    assert_int_equal(ibv_modify_qp(f->qp[0], &attr, rtr), EINVAL);
}

static void query__ready_to_send__is_what_was_set(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    connect_qps(f, IBV_QPT_RC);
    assert_int_equal(ibv_query_qp(f->qp[0], &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_RTS);
    assert_int_equal(attr.path_mtu, IBV_MTU_1024);
    assert_int_equal(attr.dest_qp_num, f->qp[1]->qp_num);
    assert_int_equal(attr.rq_psn, 0x111111);
    assert_int_equal(attr.sq_psn, 0x111111);
    assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE |
                                           IBV_ACCESS_REMOTE_READ |
                                           IBV_ACCESS_REMOTE_ATOMIC);
    assert_int_equal(attr.max_rd_atomic, 4);
    assert_int_equal(attr.max_dest_rd_atomic, 4);
    assert_int_equal(attr.min_rnr_timer, 12);
    assert_int_equal(attr.timeout, 14);
    assert_int_equal(attr.retry_cnt, 7);
    assert_int_equal(attr.rnr_retry, 7);
    assert_int_equal(attr.ah_attr.dlid, f->port.lid);
    assert_int_equal(attr.cap.max_recv_wr, DEPTH);
    assert_int_equal(attr.cap.max_recv_sge, 2);
    assert_int_equal(init.sq_sig_all, 1);
}

/* ---- data ---- */

/* Up to 32 bytes come in the CQE, which is libmlx5's to copy out. */
static void send__sizes__arrive(void **state)
{
    static const uint32_t sizes[] = {1, 31, 32, 33, 64, 65, 1024, 200000};
    struct fixture *f = *state;
    unsigned i;

    connect_qps(f, IBV_QPT_RC);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        memset(f->mem, (int)(0x30 + i), sizes[i]);
        memset(f->mem + MEM_LEN / 2, 0, sizes[i] + 1);
        post_recv(f, 1, MEM_LEN / 2, sizes[i]);
        post(f, 0, IBV_WR_SEND, 0, sizes[i], 0, 0);
        expect_wc(f->scq, IBV_WC_SUCCESS, 0);
        expect_wc(f->rcq, IBV_WC_SUCCESS, MEM_LEN / 2);
        assert_memory_equal(f->mem, f->mem + MEM_LEN / 2, sizes[i]);
        assert_int_equal(f->mem[MEM_LEN / 2 + sizes[i]], 0);
    }
}

static void read__sizes__arrive(void **state)
{
    static const uint32_t sizes[] = {1, 32, 33, 4096};
    struct fixture *f = *state;
    unsigned i;

    connect_qps(f, IBV_QPT_RC);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        memset(f->mem + MEM_LEN / 2, (int)(0x50 + i), sizes[i]);
        memset(f->mem, 0, sizes[i] + 1);
        post(f, 0, IBV_WR_RDMA_READ, 0, sizes[i], MEM_LEN / 2, f->mr->rkey);
        expect_wc(f->scq, IBV_WC_SUCCESS, 0);
        assert_memory_equal(f->mem, f->mem + MEM_LEN / 2, sizes[i]);
        assert_int_equal(f->mem[sizes[i]], 0);
    }
}

/* A receive that comes late is found, too. */
static void send__no_receive_yet__waits_for_it(void **state)
{
    struct fixture *f = *state;

    connect_qps(f, IBV_QPT_RC);
    f->mem[0] = 0x77;
    post(f, 0, IBV_WR_SEND, 0, 100, 0, 0);
    post(f, 0, IBV_WR_RDMA_WRITE, 0, 1, 5000, f->mr->rkey);
    assert_int_equal(ibv_poll_cq(f->scq, 1, &(struct ibv_wc) {0}), 0);
    post_recv(f, 1, MEM_LEN / 2, 100);
    expect_wc(f->rcq, IBV_WC_SUCCESS, MEM_LEN / 2);
    expect_wc(f->scq, IBV_WC_SUCCESS, 0);
    expect_wc(f->scq, IBV_WC_SUCCESS, 0);
    assert_int_equal(f->mem[5000], 0x77);
}

static void write__wrong_key__fails_and_says_so(void **state)
{
    struct fixture *f = *state;

    connect_qps(f, IBV_QPT_RC);
    post_recv(f, 0, MEM_LEN / 2, 64);
    post(f, 0, IBV_WR_RDMA_WRITE, 0, 64, 4096, f->mr->rkey ^ 0x100);
    expect_wc(f->scq, IBV_WC_REM_ACCESS_ERR, 0);
    expect_wc(f->rcq, IBV_WC_WR_FLUSH_ERR, MEM_LEN / 2);
    assert_int_equal(state_of(f->qp[0]), IBV_QPS_ERR);
    assert_int_equal(state_of(f->qp[1]), IBV_QPS_ERR);
    expect_async(f, IBV_EVENT_QP_ACCESS_ERR, f->qp[1]);

    /* what is posted afterwards is flushed */
    post_recv(f, 0, 8192, 64);
    expect_wc(f->rcq, IBV_WC_WR_FLUSH_ERR, 8192);
    post(f, 0, IBV_WR_SEND, 64, 64, 0, 0);
    expect_wc(f->scq, IBV_WC_WR_FLUSH_ERR, 64);
}

/* ---- events ---- */

static void expect_comp(struct fixture *f)
{
    struct ibv_cq *cq;
    void *context;

    assert_true(readable(f->channel->fd, DEADLINE * 1000));
    assert_int_equal(ibv_get_cq_event(f->channel, &cq, &context), 0);
    assert_ptr_equal(cq, f->rcq);
    assert_ptr_equal(context, f);
    ibv_ack_cq_events(cq, 1);
}

static void send_one(struct fixture *f)
{
    post_recv(f, 1, MEM_LEN / 2, 64);
    post(f, 0, IBV_WR_SEND, 0, 64, 0, 0);
    expect_wc(f->scq, IBV_WC_SUCCESS, 0);
}

static void completion__armed_before__one_event(void **state)
{
    struct fixture *f = *state;

    connect_qps(f, IBV_QPT_RC);
    assert_int_equal(ibv_req_notify_cq(f->rcq, 0), 0);
    send_one(f);
    send_one(f);
    expect_comp(f);
    assert_false(readable(f->channel->fd, 50));
}

static void completion__armed_after__event_of_the_unseen(void **state)
{
    struct fixture *f = *state;

    connect_qps(f, IBV_QPT_RC);
    assert_int_equal(ibv_req_notify_cq(f->rcq, 0), 0);
    send_one(f);
    expect_comp(f);
    expect_wc(f->rcq, IBV_WC_SUCCESS, MEM_LEN / 2);
    send_one(f);
    assert_false(readable(f->channel->fd, 50));
    assert_int_equal(ibv_req_notify_cq(f->rcq, 0), 0);
    expect_comp(f);
}

/* Whoever sends the event may not have counted it when the CQ goes: destroying
 * waits for exactly those that were read. */
static void completion__cq_destroyed_at_once__counts_fit(void **state)
{
    struct fixture *f = *state;
    unsigned i, k;

    for (i = 0; i < 200; ++i) {
        connect_qps(f, IBV_QPT_RC);
        assert_int_equal(ibv_req_notify_cq(f->rcq, 0), 0);
        post_recv(f, 1, MEM_LEN / 2, 64);
        post(f, 0, IBV_WR_SEND, 0, 64, 0, 0);
        expect_comp(f);
        /* this one comes from whoever watches the CQ, not from a QP's work */
        assert_int_equal(ibv_req_notify_cq(f->rcq, 0), 0);
        expect_comp(f);
        for (k = 0; k < 2; ++k) {
            assert_int_equal(ibv_destroy_qp(f->qp[k]), 0);
            f->qp[k] = NULL;
        }
        assert_int_equal(ibv_destroy_cq(f->rcq), 0);
        f->rcq = ibv_create_cq(f->ctx, 4 * DEPTH, f, f->channel, 0);
        assert_non_null(f->rcq);
    }
}

static void srq__limit__event_once(void **state)
{
    struct fixture *f = *state;
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq_attr attr      = {.srq_limit = 2};
    unsigned i;

    f->srq = ibv_create_srq(f->pd, &init);
    assert_non_null(f->srq);
    assert_true(init.attr.max_wr >= 8);
    connect_qps(f, IBV_QPT_RC);
    for (i = 0; i < 4; ++i) {
        post_recv(f, 1, 4096 * (i + 1), 64);
    }
    assert_int_equal(ibv_modify_srq(f->srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
    attr.srq_limit = 1 << 20;
    assert_int_equal(ibv_modify_srq(f->srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    attr.srq_limit = 2;
    assert_int_equal(ibv_modify_srq(f->srq, &attr, IBV_SRQ_LIMIT), 0);
    assert_int_equal(ibv_query_srq(f->srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 2);

    for (i = 0; i < 4; ++i) {
        assert_false((i < 3) && readable(f->ctx->async_fd, 0));
        post(f, i & 1, IBV_WR_SEND, 0, 64, 0, 0);
        expect_wc(f->scq, IBV_WC_SUCCESS, 0);
        expect_wc(f->rcq, IBV_WC_SUCCESS, 4096 * (i + 1));
    }
    expect_async(f, IBV_EVENT_SRQ_LIMIT_REACHED, f->srq);
    assert_false(readable(f->ctx->async_fd, 50));
    assert_int_equal(ibv_query_srq(f->srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 0);
}

/* ---- datagrams ---- */

static void post_ud(struct fixture *f, struct ibv_ah *ah, unsigned at,
                    uint32_t qkey)
{
    struct ibv_sge sge     = sge_of(f, at, 256);
    struct ibv_send_wr *bad, wr = {
        .wr_id = at, .sg_list = &sge, .num_sge = 1,
        .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = 0x44332211
    };

    wr.wr.ud.ah          = ah;
    wr.wr.ud.remote_qpn  = f->qp[1]->qp_num;
    wr.wr.ud.remote_qkey = qkey;
    assert_int_equal(ibv_post_send(f->qp[0], &wr, &bad), 0);
    expect_wc(f->scq, IBV_WC_SUCCESS, at);
}

static void datagram__wrong_key_or_no_receive__is_lost(void **state)
{
    struct fixture *f         = *state;
    struct ibv_ah_attr ahattr = {0};
    struct ibv_ah *ah;
    struct ibv_wc wc;

    connect_qps(f, IBV_QPT_UD);
    fill_ah(f, &ahattr);
    ah = ibv_create_ah(f->pd, &ahattr);
    assert_non_null(ah);
    memset(f->mem + 4096, 0x5a, 256);
    post_ud(f, ah, 0, QKEY);                 /* no receive */
    post_recv(f, 1, MEM_LEN / 2, 40 + 256);
    post_ud(f, ah, 0, QKEY + 1);             /* another key */
    post_ud(f, ah, 4096, QKEY);
    wc = wait_wc(f->rcq);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, 40 + 256);
    assert_int_equal(wc.src_qp, f->qp[0]->qp_num);
    assert_int_equal(wc.imm_data, 0x44332211);
    assert_int_equal(!!(wc.wc_flags & IBV_WC_GRH), ahattr.is_global);
    assert_memory_equal(f->mem + MEM_LEN / 2 + 40, f->mem + 4096, 256);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

#define TEST(_name) cmocka_unit_test_setup_teardown(_name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(modify__rc__needs_its_attributes_in_order),
        TEST(modify__ud__needs_its_attributes_in_order),
        TEST(modify__attribute_out_of_range__einval),
        TEST(query__ready_to_send__is_what_was_set),
        TEST(send__sizes__arrive),
        TEST(read__sizes__arrive),
        TEST(send__no_receive_yet__waits_for_it),
        TEST(write__wrong_key__fails_and_says_so),
        TEST(completion__armed_before__one_event),
        TEST(completion__armed_after__event_of_the_unseen),
        TEST(completion__cq_destroyed_at_once__counts_fit),
        TEST(srq__limit__event_once),
        TEST(datagram__wrong_key_or_no_receive__is_lost)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
