/* SPDX-License-Identifier: BSD-3-Clause */

/* Faults on demand as software sees them, through the real libibverbs and
 * libmlx5: set while the process runs, by vhca-stat. With the argument "open":
 * only whether a device opens; with "device": what happens to the device as a
 * whole, which is not there any more in the end. Run by faults.sh. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "support/stat.h"

#define MEM_LEN  16384
#define DEADLINE 20 /* seconds until a wait fails the test */

struct env {
    struct ibv_context *context;
    struct ibv_pd      *pd;
    uint8_t            *mem;
};

static struct env env;

static void fault_set(const char *rules)
{
    char command[700];

    snprintf(command, sizeof(command), "%s/vhca-stat --fault '%s'",
             getenv("HIXL_BUILD"), rules);
    assert_int_equal(system(command), 0);
}

static uint64_t stat_get(const char *name)
{
    static struct hxt_stats stats;
    uint64_t value;

    assert_true(hxt_stats_read(&stats));
    assert_true(hxt_stats_find(&stats, name, &value));
    return value;
}

static struct ibv_context *open_first(void)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    struct ibv_device **list        = ibv_get_device_list(NULL);
    struct ibv_context *context     = NULL;

    if ((list != NULL) && (list[0] != NULL)) {
        context = mlx5dv_open_device(list[0], &attr);
    }
    ibv_free_device_list(list);
    return context;
}

static int group_setup(void **state)
{
    (void)state;
    env.context = open_first();
    assert_non_null(env.context);
    env.pd = ibv_alloc_pd(env.context);
    assert_non_null(env.pd);
    /* as aligned as the largest page a umem of it may have */
    env.mem = aligned_alloc(MEM_LEN, MEM_LEN);
    assert_non_null(env.mem);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    free(env.mem);
    ibv_dealloc_pd(env.pd);
    return ibv_close_device(env.context);
}

static int fault_end(void **state)
{
    (void)state;
    fault_set("");
    return 0;
}

/* ---- commands ---- */

/* QUERY_LAG: a command that needs nothing; errno, and the output's header */
static int query_lag(uint8_t *status_p, uint32_t *syndrome_p)
{
    uint8_t in[16] = {0x08, 0x42}, out[16] = {0};
    uint32_t word;
    int ret;

    errno = 0;
    ret   = mlx5dv_devx_general_cmd(env.context, in, sizeof(in), out,
                                    sizeof(out));
    memcpy(&word, out + 4, sizeof(word));
    *status_p   = out[0];
    *syndrome_p = ntohl(word);
    return (ret != 0) ? errno : 0;
}

static void cmd__nth__fails_with_status_and_syndrome(void **state)
{
    uint64_t before = stat_get("fault.hits");
    uint32_t syndrome;
    uint8_t status;
    unsigned i;

    (void)state;
    fault_set("cmd=QUERY_LAG,nth=2,count=2,status=0xf,syndrome=0x1234");
    for (i = 1; i <= 4; ++i) {
        if ((i == 1) || (i == 4)) {
            assert_int_equal(query_lag(&status, &syndrome), 0);
            assert_int_equal(status, 0);
        } else {
            assert_int_equal(query_lag(&status, &syndrome), EREMOTEIO);
            assert_int_equal(status, 0x0f);
            assert_int_equal(syndrome, 0x1234);
        }
    }
    assert_int_equal(stat_get("fault.hits"), before + 2);
}

static void cmd__made_by_the_kernel__fails_as_well(void **state)
{
    struct ibv_mr *mr;
    struct ibv_cq *cq;

    (void)state;
    fault_set("cmd=CREATE_MKEY,status=EXCEED_LIM;cmd=CREATE_CQ");
    mr = ibv_reg_mr(env.pd, env.mem, MEM_LEN, IBV_ACCESS_LOCAL_WRITE);
    assert_null(mr);
    assert_int_equal(errno, ENOMEM);
    mr = ibv_reg_mr(env.pd, env.mem, MEM_LEN, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    cq = ibv_create_cq(env.context, 16, NULL, NULL, 0);
    assert_null(cq);
    cq = ibv_create_cq(env.context, 16, NULL, NULL, 0);
    assert_non_null(cq);
    ibv_destroy_cq(cq);
    ibv_dereg_mr(mr);
}

/* ---- umems and keys ---- */

static void umem__refused__the_errno_asked_for(void **state)
{
    struct mlx5dv_devx_umem *umem;

    (void)state;
    fault_set("umem=refuse,errno=EFAULT,nth=2,count=1");
    umem = mlx5dv_devx_umem_reg(env.context, env.mem, MEM_LEN, 0);
    assert_non_null(umem);
    mlx5dv_devx_umem_dereg(umem);
    umem = mlx5dv_devx_umem_reg(env.context, env.mem, MEM_LEN, 0);
    assert_null(umem);
    assert_int_equal(errno, EFAULT);
    umem = mlx5dv_devx_umem_reg(env.context, env.mem, MEM_LEN, 0);
    assert_non_null(umem);
    mlx5dv_devx_umem_dereg(umem);
}

static void put32(uint8_t *box, size_t byte, uint32_t value)
{
    value = htonl(value);
    memcpy(box + byte, &value, sizeof(value));
}

/* CREATE_MKEY over a umem: MTT, local read, any QP, exactly the umem */
static struct mlx5dv_devx_obj *umem_key(struct mlx5dv_devx_umem *umem,
                                        uint8_t *status_p)
{
    struct mlx5dv_pd dvpd;
    struct mlx5dv_obj dv        = {.pd = {.in = env.pd, .out = &dvpd}};
    uint8_t in[0x880 / 8]       = {0x02, 0x00}, out[16] = {0};
    struct mlx5dv_devx_obj *obj;

    assert_int_equal(mlx5dv_init_obj(&dv, MLX5DV_OBJ_PD), 0);
    put32(in, 0x10, 0x00000400 | 1 << 8);     /* lr; access_mode_1_0 */
    put32(in, 0x14, 0xffffff00);              /* qpn, mkey_7_0 */
    put32(in, 0x1c, dvpd.pdn);
    put32(in, 0x20, (uintptr_t)env.mem >> 32);
    put32(in, 0x24, (uint32_t)(uintptr_t)env.mem);
    put32(in, 0x2c, MEM_LEN);
    put32(in, 0x60, 1);                       /* translations */
    put32(in, 0x64, umem->umem_id);
    obj       = mlx5dv_devx_obj_create(env.context, in, sizeof(in), out,
                                       sizeof(out));
    *status_p = out[0];
    return obj;
}

static void mkey_umem__refused__by_firmware_or_kernel_and_mrs_work(void **state)
{
    struct mlx5dv_devx_umem *umem;
    struct mlx5dv_devx_obj *key;
    struct ibv_mr *mr;
    uint8_t status;

    (void)state;
    umem = mlx5dv_devx_umem_reg(env.context, env.mem, MEM_LEN, 0);
    assert_non_null(umem);
    key = umem_key(umem, &status);
    assert_non_null(key);
    mlx5dv_devx_obj_destroy(key);

    fault_set("mkey_umem=refuse");
    assert_null(umem_key(umem, &status));
    assert_int_equal(errno, EREMOTEIO);
    assert_int_equal(status, 0x03);
    mr = ibv_reg_mr(env.pd, env.mem, MEM_LEN, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    ibv_dereg_mr(mr);

    fault_set("mkey_umem=refuse,errno=EOPNOTSUPP");
    assert_null(umem_key(umem, &status));
    assert_int_equal(errno, EOPNOTSUPP);
    mlx5dv_devx_umem_dereg(umem);
}

static void mkeys__limit__of_either_kind_together(void **state)
{
    uint64_t have = stat_get("objects.mkey");
    struct mlx5dv_devx_umem *umem;
    struct mlx5dv_devx_obj *key;
    struct ibv_mr *mr;
    char rules[40];
    uint8_t status;

    (void)state;
    snprintf(rules, sizeof(rules), "mkeys=%u", (unsigned)have + 2);
    fault_set(rules);
    umem = mlx5dv_devx_umem_reg(env.context, env.mem, MEM_LEN, 0);
    assert_non_null(umem);
    key = umem_key(umem, &status);
    assert_non_null(key);
    mr = ibv_reg_mr(env.pd, env.mem, MEM_LEN, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    assert_null(ibv_reg_mr(env.pd, env.mem, MEM_LEN, IBV_ACCESS_LOCAL_WRITE));
    assert_int_equal(errno, ENOMEM);
    assert_null(umem_key(umem, &status));
    assert_int_equal(status, 0x08);
    ibv_dereg_mr(mr);
    mlx5dv_devx_obj_destroy(key);
    mlx5dv_devx_umem_dereg(umem);
}

/* ---- a QP connected to itself ---- */

struct loop {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
};

static int loop_modify(struct loop *loop, enum ibv_qp_state state)
{
    struct ibv_port_attr port;
    struct ibv_qp_attr attr = {
        .qp_state = state, .port_num = 1, .qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
        .path_mtu = IBV_MTU_1024, .dest_qp_num = loop->qp->qp_num,
        .max_dest_rd_atomic = 1, .min_rnr_timer = 1, .timeout = 14,
        .retry_cnt = 1, .rnr_retry = 7, .max_rd_atomic = 1
    };
    int mask = IBV_QP_STATE;

    assert_int_equal(ibv_query_port(env.context, 1, &port), 0);
    switch (state) {
    case IBV_QPS_INIT:
        mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        break;
    case IBV_QPS_RTR:
        attr.ah_attr.port_num = 1;
        attr.ah_attr.dlid     = port.lid;
        if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
            attr.ah_attr.is_global     = 1;
            attr.ah_attr.grh.hop_limit = 1;
            assert_int_equal(ibv_query_gid(env.context, 1, 0,
                                           &attr.ah_attr.grh.dgid), 0);
        }
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        break;
    default:
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
        break;
    }
    return ibv_modify_qp(loop->qp, &attr, mask);
}

static struct ibv_qp *loop_qp(struct loop *loop)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = loop->cq, .recv_cq = loop->cq,
        .cap     = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1,
                    .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC, .sq_sig_all = 1
    };

    return ibv_create_qp(env.pd, &attr);
}

static void loop_open(struct loop *loop)
{
    loop->cq = ibv_create_cq(env.context, 16, NULL, NULL, 0);
    assert_non_null(loop->cq);
    loop->qp = loop_qp(loop);
    assert_non_null(loop->qp);
    loop->mr = ibv_reg_mr(env.pd, env.mem, MEM_LEN, IBV_ACCESS_LOCAL_WRITE |
                          IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    assert_non_null(loop->mr);
    assert_int_equal(loop_modify(loop, IBV_QPS_INIT), 0);
    assert_int_equal(loop_modify(loop, IBV_QPS_RTR), 0);
    assert_int_equal(loop_modify(loop, IBV_QPS_RTS), 0);
}

static void loop_close(struct loop *loop)
{
    ibv_destroy_qp(loop->qp);
    ibv_destroy_cq(loop->cq);
    ibv_dereg_mr(loop->mr);
}

static enum ibv_wc_status loop_post(struct loop *loop, enum ibv_wr_opcode op)
{
    struct ibv_sge sge     = {(uintptr_t)env.mem, 100, loop->mr->lkey};
    struct ibv_send_wr wr  = {
        .sg_list = &sge, .num_sge = 1, .opcode = op,
        .wr.rdma = {(uintptr_t)env.mem + 4096, loop->mr->rkey}
    };
    struct ibv_send_wr *bad;
    struct timespec begin, now;
    struct ibv_wc wc;
    int n;

    assert_int_equal(ibv_post_send(loop->qp, &wr, &bad), 0);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while ((n = ibv_poll_cq(loop->cq, 1, &wc)) == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        assert_true(now.tv_sec - begin.tv_sec < DEADLINE);
        sched_yield();
    }
    assert_int_equal(n, 1);
    return wc.status;
}

static void wqe__nth_write__fails_and_the_next_qp_works(void **state)
{
    struct loop loop;

    (void)state;
    loop_open(&loop);
    fault_set("wqe=RDMA_WRITE,nth=2,syndrome=0x13");
    assert_int_equal(loop_post(&loop, IBV_WR_RDMA_READ), IBV_WC_SUCCESS);
    assert_int_equal(loop_post(&loop, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
    assert_int_equal(loop_post(&loop, IBV_WR_RDMA_WRITE),
                     IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(loop_post(&loop, IBV_WR_RDMA_WRITE),
                     IBV_WC_WR_FLUSH_ERR);
    loop_close(&loop);

    loop_open(&loop);
    assert_int_equal(loop_post(&loop, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
    loop_close(&loop);
}

static void link__down__retry_exceeded(void **state)
{
    struct loop loop;

    (void)state;
    loop_open(&loop);
    fault_set("link=down");
    assert_int_equal(loop_post(&loop, IBV_WR_RDMA_WRITE),
                     IBV_WC_RETRY_EXC_ERR);
    loop_close(&loop);
}

static void qp__create_or_modify_refused__then_works(void **state)
{
    struct loop loop;

    (void)state;
    loop.cq = ibv_create_cq(env.context, 16, NULL, NULL, 0);
    assert_non_null(loop.cq);
    fault_set("cmd=CREATE_QP,status=NO_RESOURCES;cmd=INIT2RTR_QP,nth=1");
    assert_null(loop_qp(&loop));
    loop.qp = loop_qp(&loop);
    assert_non_null(loop.qp);
    assert_int_equal(loop_modify(&loop, IBV_QPS_INIT), 0);
    assert_int_not_equal(loop_modify(&loop, IBV_QPS_RTR), 0);
    assert_int_equal(loop_modify(&loop, IBV_QPS_RTR), 0);
    ibv_destroy_qp(loop.qp);
    ibv_destroy_cq(loop.cq);
}

/* ---- the device as a whole ---- */

static void device_set(const char *what)
{
    char rule[64];

    snprintf(rule, sizeof(rule), "device=%s,pid=%d", what, (int)getpid());
    fault_set(rule);
}

static void event_is(enum ibv_event_type type)
{
    struct pollfd pfd = { .fd = env.context->async_fd, .events = POLLIN };
    struct ibv_async_event event;

    assert_int_equal(poll(&pfd, 1, DEADLINE * 1000), 1);
    assert_int_equal(ibv_get_async_event(env.context, &event), 0);
    assert_int_equal(event.event_type, type);
    if (type != IBV_EVENT_DEVICE_FATAL) {
        assert_int_equal(event.element.port_num, 1);
    }
    ibv_ack_async_event(&event);
    assert_int_equal(poll(&pfd, 1, 0), 0);
}

static void device__port_down_and_up__events_and_all_goes_on(void **state)
{
    struct loop loop;

    (void)state;
    loop_open(&loop);
    device_set("port_down");
    event_is(IBV_EVENT_PORT_ERR);
    assert_int_equal(loop_post(&loop, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
    device_set("port_up");
    event_is(IBV_EVENT_PORT_ACTIVE);
    assert_int_equal(loop_post(&loop, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
    loop_close(&loop);
}

/* The last: an object whose destruction failed is the library's for ever. */
static void device__fatal__event_and_eio_and_nothing_moves(void **state)
{
    struct ibv_sge sge     = { (uintptr_t)env.mem, 100, 0 };
    struct ibv_send_wr wr  = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE
    };
    struct ibv_send_wr *bad;
    struct loop loop;
    struct ibv_wc wc;

    (void)state;
    loop_open(&loop);
    assert_int_equal(loop_post(&loop, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
    device_set("fatal");
    event_is(IBV_EVENT_DEVICE_FATAL);

    memset(env.mem, 1, 100);
    memset(env.mem + 4096, 2, 100);
    sge.lkey            = loop.mr->lkey;
    wr.wr.rdma.rkey     = loop.mr->rkey;
    wr.wr.rdma.remote_addr = (uintptr_t)env.mem + 4096;
    assert_int_equal(ibv_post_send(loop.qp, &wr, &bad), 0);
    errno = 0;
    assert_null(ibv_alloc_pd(env.context));
    assert_int_equal(errno, EIO);
    assert_int_equal(ibv_destroy_qp(loop.qp), EIO);
    assert_int_equal(ibv_dereg_mr(loop.mr), EIO);
    assert_int_equal(ibv_poll_cq(loop.cq, 1, &wc), 0);
    assert_int_equal(env.mem[4096], 2);
    assert_int_equal(ibv_destroy_cq(loop.cq), EIO);
    assert_int_equal(stat_get("objects.qp"), 0);
    assert_int_equal(stat_get("objects.cq"), 0);
    assert_null(open_first());
}

static int device_teardown(void **state)
{
    (void)state;
    free(env.mem);
    return ibv_close_device(env.context);
}

static int device_main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device__port_down_and_up__events_and_all_goes_on),
        cmocka_unit_test(device__fatal__event_and_eio_and_nothing_moves),
    };

    return cmocka_run_group_tests(tests, group_setup, device_teardown);
}

int main(int argc, char **argv)
{
#define TEST(_test) cmocka_unit_test_teardown(_test, fault_end)
    const struct CMUnitTest tests[] = {
        TEST(cmd__nth__fails_with_status_and_syndrome),
        TEST(cmd__made_by_the_kernel__fails_as_well),
        TEST(umem__refused__the_errno_asked_for),
        TEST(mkey_umem__refused__by_firmware_or_kernel_and_mrs_work),
        TEST(mkeys__limit__of_either_kind_together),
        TEST(wqe__nth_write__fails_and_the_next_qp_works),
        TEST(link__down__retry_exceeded),
        TEST(qp__create_or_modify_refused__then_works),
    };

    if ((argc == 2) && (strcmp(argv[1], "device") == 0)) {
        return device_main();
    }
    if ((argc == 2) && (strcmp(argv[1], "open") == 0)) {
        env.context = open_first();
        printf("%s\n", (env.context != NULL) ? "opened" : "refused");
        return 0;
    }
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
