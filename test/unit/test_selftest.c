/* SPDX-License-Identifier: BSD-3-Clause */

/* The self-test of keys over umems on a device that is wrong in one way: it
 * must find that, in time, and leave nothing behind. */

#include "mlx5/hx.h"
#include "mlx5/mkey.h"
#include "mlx5/wqe.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define RING_BB  16
#define CQ_SIZE  16
#define QPN      0x100
#define SYNDROME 0x13

/* ---- the device ---- */

enum wrong {
    WRONG_NOTHING,
    WRONG_SHORT,        /* a byte is not moved */
    WRONG_SHIFTED,      /* all lie a byte further */
    WRONG_BEYOND,       /* one byte more */
    WRONG_ONLY_READS,   /* as WRONG_SHORT */
    WRONG_CQE,          /* an error */
    WRONG_SILENT        /* no CQE */
};

static struct {
    enum wrong wrong;
    unsigned   fail_call;        /* this one fails; 0: none */
    unsigned   calls;
    int        live;             /* objects */
    unsigned   remote, max_remote;
    unsigned   ops;
    uint8_t    ring[RING_BB * HX_BB_SIZE] __attribute__((aligned(HX_BB_SIZE)));
    struct hx_cqe cqes[CQ_SIZE];
    uint32_t   dbrec[2];
    uint64_t   uar_reg;
    struct hx_uar uar;
    struct hx_cq  cq;
    struct hx_qp  qp[2];
    unsigned   num_qps;
    uint64_t   counter;
    char       text[512];
} fake;

static struct hx_dev dev = {.name = "mlx5_0"};
static const struct hx_port port = {.num = 1, .active = true};

static int call(int objects)
{
    if (++fake.calls == fake.fail_call) {
        hx_log(HX_LOG_ERROR, "call %u failed", fake.calls);
        return -ENOSPC;
    }

    fake.live += objects;
    return 0;
}

int hx_mkey_create_umem(struct hx_dev *hx_dev, void *addr, size_t len,
                        uint32_t access, struct hx_mkey *mkey_p)
{
    bool remote = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    int ret     = call(1);

    (void)hx_dev;
    if (ret == 0) {
        *mkey_p          = (struct hx_mkey) {.key = remote};
        mkey_p->umem.len = len;
        memset(addr, 0, len); /* it must be there */
        fake.remote     += remote;
        fake.max_remote  = (fake.remote > fake.max_remote) ? fake.remote :
                                                             fake.max_remote;
    }
    return ret;
}

void hx_mkey_destroy(struct hx_mkey *mkey)
{
    fake.remote -= mkey->key;
    --fake.live;
}

int hx_uar_create(struct hx_dev *hx_dev, struct hx_uar **uar_p)
{
    (void)hx_dev;
    *uar_p = &fake.uar;
    return call(1);
}

void hx_uar_destroy(struct hx_uar *uar)
{
    (void)uar;
    --fake.live;
}

int hx_cq_create(struct hx_dev *hx_dev, struct hx_uar *uar, unsigned log_size,
                 struct hx_channel *chan, struct hx_cq **cq_p)
{
    unsigned i;

    (void)hx_dev, (void)uar, (void)chan;
    assert_true(1u << log_size <= CQ_SIZE);
    for (i = 0; i < CQ_SIZE; ++i) {
        fake.cqes[i].op_own = HX_CQE_INIT;
    }
    fake.cq = (struct hx_cq) {
        .ring  = fake.cqes,
        .dbrec = fake.dbrec,
        .mask  = (1u << log_size) - 1
    };
    *cq_p = &fake.cq;
    return call(1);
}

void hx_cq_destroy(struct hx_cq *cq)
{
    (void)cq;
    --fake.live;
}

static void complete(uint16_t counter)
{
    struct hx_cqe *cqe = &fake.cqes[fake.ops++ % CQ_SIZE];
    bool error         = fake.wrong == WRONG_CQE;

    cqe->opcode_qpn  = htobe32(QPN);
    cqe->wqe_counter = htobe16(counter);
    cqe->syndrome    = error ? SYNDROME : 0;
    cqe->op_own      = (error ? HX_CQE_OP_REQ_ERR : HX_CQE_OP_REQ) << 4;
}

static void move(uint8_t *dst, const uint8_t *src, uint32_t len, bool read)
{
    enum wrong wrong = fake.wrong;

    if (wrong == WRONG_ONLY_READS) {
        wrong = read ? WRONG_SHORT : WRONG_NOTHING;
    }

    switch (wrong) {
    case WRONG_SHORT:
        memcpy(dst, src, len - 1);
        dst[len - 1] ^= 1; /* it differs, whatever was there */
        break;
    case WRONG_SHIFTED:
        memcpy(dst + 1, src, len);
        break;
    case WRONG_BEYOND:
        memcpy(dst, src, len);
        dst[len] ^= 1;
        break;
    default:
        memcpy(dst, src, len);
        break;
    }
}

/* Executes what was posted: the last block, RDMA with one data segment */
static int ring(unsigned type, uint32_t number)
{
    uint16_t index                   = (be32toh(fake.dbrec[1]) - 1) &
                                       (RING_BB - 1);
    const void *wqe                  = fake.ring + index * HX_BB_SIZE;
    const struct hx_wqe_ctrl *ctrl   = wqe;
    const struct hx_wqe_raddr *raddr = (const void *)(ctrl + 1);
    const struct hx_wqe_data *data   = (const void *)(raddr + 1);
    uint64_t first                   = be64toh(ctrl->opmod_idx_opcode_qpn_ds);
    uint8_t opcode                   = first >> 32;
    uint64_t len_key                 = be64toh(data->byte_count_lkey);
    uint8_t *local                   = (uint8_t *)be64toh(data->addr);
    uint8_t *remote                  = (uint8_t *)be64toh(raddr->raddr);
    bool read                        = opcode == HX_WQE_OP_RDMA_READ;

    (void)type, (void)number;
    assert_true(read || (opcode == HX_WQE_OP_RDMA_WRITE));
    assert_int_equal(len_key & UINT32_MAX, 0);       /* no remote rights */
    assert_int_equal(be64toh(raddr->rkey_rsvd) >> 32, 1);
    if (fake.wrong != WRONG_CQE) {
        move(read ? local : remote, read ? remote : local, len_key >> 32,
             read);
    }
    if (fake.wrong != WRONG_SILENT) {
        complete(index);
    }
    return 0;
}

int hx_qp_create(struct hx_dev *hx_dev, const struct hx_qp_attr *attr,
                 struct hx_qp **qp_p)
{
    struct hx_qp *qp = &fake.qp[fake.num_qps];
    int ret          = call(1);

    (void)hx_dev;
    if (ret == 0) {
        assert_null(attr->rmp);
        assert_true(1u << attr->log_sq_bb <= RING_BB);
        *qp = (struct hx_qp) {
            .sq.ring      = fake.ring,
            .sq.mask      = (1u << attr->log_sq_bb) - 1,
            .sq.qpn       = QPN,
            .sq.dbrec     = &fake.dbrec[1],
            .sq.uar_reg   = &fake.uar_reg,
            .sq.ring_soft = ring,
            .qpn          = QPN + fake.num_qps++
        };
        *qp_p = qp;
    }
    return ret;
}

int hx_qp_init(struct hx_qp *qp, const struct hx_port *hx_port,
               uint16_t pkey_index)
{
    (void)qp, (void)hx_port, (void)pkey_index;
    return call(0);
}

int hx_qp_rtr(struct hx_qp *qp, const struct hx_port *hx_port,
              const struct hx_qp_path *path)
{
    (void)hx_port;
    assert_int_equal(path->remote_qpn, QPN + !(qp->qpn - QPN));
    return call(0);
}

int hx_qp_rts(struct hx_qp *qp, const struct hx_qp_path *path)
{
    (void)qp, (void)path;
    return call(0);
}

void hx_qp_destroy(struct hx_qp *qp)
{
    (void)qp;
    --fake.live;
}

const char *hx_cqe_syndrome_str(uint8_t syndrome)
{
    return (syndrome == SYNDROME) ? "remote access error" : "?";
}

uint64_t *hx_counter(const char *name)
{
    (void)name;
    return &fake.counter;
}

static void log_catch(enum hx_log_level level, const char *file, unsigned line,
                      const char *func, const char *msg)
{
    (void)level, (void)file, (void)line, (void)func;
    assert_string_equal(fake.text, ""); /* once */
    snprintf(fake.text, sizeof(fake.text), "%s", msg);
}

static int setup(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof(fake));
    return 0;
}

static void check(enum wrong wrong, int ret, unsigned ops, const char *text)
{
    fake.wrong = wrong;
    assert_int_equal(hx_selftest_umem_keys(&dev, &port), ret);
    assert_int_equal(fake.live, 0);
    assert_int_equal(fake.ops, ops);
    assert_true(fake.max_remote <= 1);
    if (strstr(fake.text, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, fake.text);
    }
}

static void device_is_right__passes_and_says_nothing(void **state)
{
    (void)state;
    check(WRONG_NOTHING, 0, 4, "");
    assert_string_equal(fake.text, "");
    assert_int_equal(fake.max_remote, 1);
}

static void last_byte_not_moved__found(void **state)
{
    (void)state;
    check(WRONG_SHORT, -EILSEQ, 1, "mlx5_0: RDMA write by keys over umems");
}

static void all_bytes_moved_elsewhere__found(void **state)
{
    (void)state;
    check(WRONG_SHIFTED, -EILSEQ, 1, "of the memory is");
}

static void byte_beyond_the_end__found(void **state)
{
    (void)state;
    check(WRONG_BEYOND, -EILSEQ, 1, "of the memory is");
}

static void only_reads_wrong__found(void **state)
{
    (void)state;
    check(WRONG_ONLY_READS, -EILSEQ, 2,
          "mlx5_0: RDMA read by keys over umems");
}

static void error_cqe__fails_and_names_the_syndrome(void **state)
{
    (void)state;
    check(WRONG_CQE, -EIO, 1, "RDMA write by keys over umems: remote access"
          " error");
}

static void no_cqe__given_up_within_two_seconds(void **state)
{
    struct timespec start, end;

    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &start);
    check(WRONG_SILENT, -ETIMEDOUT, 0, "not done after 1 s");
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(end.tv_sec - start.tv_sec <= 2);
}

static void any_call_fails__error_and_nothing_left(void **state)
{
    unsigned calls, n;
    char text[32];

    check(WRONG_NOTHING, 0, 4, "");
    calls = fake.calls;
    assert_true(calls > 10);
    for (n = 1; n <= calls; ++n) {
        setup(state);
        fake.fail_call = n;
        assert_int_equal(hx_selftest_umem_keys(&dev, &port), -ENOSPC);
        assert_int_equal(fake.live, 0);
        snprintf(text, sizeof(text), "call %u failed", n);
        assert_string_equal(fake.text, text);
    }
}

int main(void)
{
#define TEST(_test) cmocka_unit_test_setup(_test, setup)
    const struct CMUnitTest tests[] = {
        TEST(device_is_right__passes_and_says_nothing),
        TEST(last_byte_not_moved__found),
        TEST(all_bytes_moved_elsewhere__found),
        TEST(byte_beyond_the_end__found),
        TEST(only_reads_wrong__found),
        TEST(error_cqe__fails_and_names_the_syndrome),
        TEST(no_cqe__given_up_within_two_seconds),
        TEST(any_call_fails__error_and_nothing_left),
    };

    hx_log_set(log_catch);
    return cmocka_run_group_tests_name("selftest", tests, NULL, NULL);
}
