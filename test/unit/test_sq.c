/* SPDX-License-Identifier: BSD-3-Clause */

/* Send WQEs, compared with bytes written by hand from the PRM, at each place of
 * the ring; room, completion and the doorbell. */

#include "golden.h"

#include "mlx5/sq.h"

#define RING_BB  16
#define RING_LEN (RING_BB * 64)
#define GUARD    64
#define FILL     0xcc
#define QPN      0x123456
#define RKEY     0xa1b2c3d4
#define RADDR    UINT64_C(0x1122334455667788)

struct queue {
    struct hx_sq sq;
    uint32_t     dbrec[2];
    uint64_t     uar;
    uint8_t      before[GUARD];
    uint8_t      ring[RING_LEN] __attribute__((aligned(64)));
    uint8_t      after[GUARD];
};

/* Places where a WQE is put: at the begin, before and at the ring's end, and
 * where the index wraps at 16 bits */
static const uint16_t places[] = {0, 1, 12, 13, 14, 15, 0x7ffe, 0xffff};

#define N_PLACES (sizeof(places) / sizeof(places[0]))

static void queue_init(struct queue *q, uint16_t pi)
{
    memset(q, FILL, sizeof(*q));
    memset(&q->sq, 0, sizeof(q->sq));
    q->sq.ring    = q->ring;
    q->sq.mask    = RING_BB - 1;
    q->sq.pi      = pi;
    q->sq.ci      = pi;
    q->sq.qpn     = QPN;
    q->sq.dbrec   = &q->dbrec[1];
    q->sq.uar_reg = &q->uar;
}

/* The bytes of the WQE at pi, out of the ring */
static void queue_copy(const struct queue *q, uint8_t *wqe, unsigned len)
{
    unsigned i;

    for (i = 0; i < len; ++i) {
        wqe[i] = q->ring[(q->sq.pi * 64 + i) % RING_LEN];
    }
}

/* Nothing but the blocks of the WQE at pi was written */
static void queue_check_rest(const struct queue *q, unsigned bb)
{
    unsigned i;

    for (i = bb * 64; i < RING_LEN; ++i) {
        assert_int_equal(q->ring[(q->sq.pi * 64 + i) % RING_LEN], FILL);
    }
    for (i = 0; i < GUARD; ++i) {
        assert_int_equal(q->before[i], FILL);
        assert_int_equal(q->after[i], FILL);
    }
}

static uint32_t ctrl0(const struct queue *q, uint8_t opcode)
{
    return (uint32_t)q->sq.pi << 8 | opcode;
}

static void write__one_piece__48_bytes_in_one_block(void **state)
{
    const struct hx_sge sge = {0x0102030405060708, 0x1000, 0x55667788};
    struct queue q;
    uint8_t wqe[48];
    size_t i;

    (void)state;
    for (i = 0; i < N_PLACES; ++i) {
        queue_init(&q, places[i]);
        assert_int_equal(hx_sq_write(&q.sq, &sge, 1, RADDR, RKEY,
                                     HX_WQE_CQ_UPDATE), 1);
        queue_copy(&q, wqe, sizeof(wqe));
        GOLDEN(wqe, sizeof(wqe),
               {0x00, ctrl0(&q, 0x08)}, {0x04, 0x12345603}, {0x08, 0x00000008},
               {0x10, 0x11223344}, {0x14, 0x55667788}, {0x18, 0xa1b2c3d4},
               {0x20, 0x00001000}, {0x24, 0x55667788}, {0x28, 0x01020304},
               {0x2c, 0x05060708});
        queue_check_rest(&q, 1);
        assert_int_equal(q.sq.pi, places[i]);
    }
}

static void read__one_piece__opcode_0x10(void **state)
{
    const struct hx_sge sge = {0x0102030405060708, 0x40000000, 0x55667788};
    struct queue q;
    uint8_t wqe[48];

    (void)state;
    queue_init(&q, 15);
    assert_int_equal(hx_sq_read(&q.sq, &sge, 1, RADDR, RKEY,
                                HX_WQE_FENCE | HX_WQE_FENCE_SMALL), 1);
    queue_copy(&q, wqe, sizeof(wqe));
    GOLDEN(wqe, sizeof(wqe),
           {0x00, 0x00000f10}, {0x04, 0x12345603}, {0x08, 0x00000060},
           {0x10, 0x11223344}, {0x14, 0x55667788}, {0x18, 0xa1b2c3d4},
           {0x20, 0x40000000}, {0x24, 0x55667788}, {0x28, 0x01020304},
           {0x2c, 0x05060708});
    queue_check_rest(&q, 1);
}

/* Pieces 0..n-1 with distinct values */
static void make_sges(struct hx_sge *sge, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; ++i) {
        sge[i].addr = 0x7f0000001000 + i;
        sge[i].len  = 0x100 + i;
        sge[i].lkey = 0xcafe0000 + i;
    }
}

/* Their data segments, from byte `off` of the WQE on */
static void check_sges(const uint8_t *wqe, unsigned off, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; ++i, off += 16) {
        assert_int_equal(golden_be32(wqe + off), 0x100 + i);
        assert_int_equal(golden_be32(wqe + off + 4), 0xcafe0000 + i);
        assert_int_equal(golden_be32(wqe + off + 8), 0x00007f00);
        assert_int_equal(golden_be32(wqe + off + 12), 0x00001000 + i);
    }
}

static void write__each_number_of_pieces__segments_follow(void **state)
{
    struct hx_sge sge[HX_RDMA_SGE_MAX];
    uint8_t wqe[256];
    struct queue q;
    unsigned n, bb;
    size_t i;

    (void)state;
    assert_int_equal(HX_RDMA_SGE_MAX, 14);
    make_sges(sge, HX_RDMA_SGE_MAX);
    for (i = 0; i < N_PLACES; ++i) {
        for (n = 0; n <= HX_RDMA_SGE_MAX; ++n) {
            queue_init(&q, places[i]);
            bb = hx_sq_write(&q.sq, sge, n, RADDR, RKEY, 0);
            assert_int_equal(bb, (n <= 2) ? 1 : (n <= 6) ? 2 :
                                 (n <= 10) ? 3 : 4);
            queue_copy(&q, wqe, sizeof(wqe));
            GOLDEN(wqe, 32, {0x00, ctrl0(&q, 0x08)},
                   {0x04, 0x12345600 | (2 + n)}, {0x10, 0x11223344},
                   {0x14, 0x55667788}, {0x18, 0xa1b2c3d4});
            check_sges(wqe, 32, n);
            queue_check_rest(&q, bb);
        }
    }
}

static void write__empty_pieces__get_no_segment(void **state)
{
    struct hx_sge sge[3];
    uint8_t wqe[64];
    struct queue q;

    (void)state;
    make_sges(sge, 3);
    sge[0].len = 0;
    queue_init(&q, 0);
    assert_int_equal(hx_sq_write(&q.sq, sge, 1, RADDR, RKEY, 0), 1);
    queue_copy(&q, wqe, sizeof(wqe));
    assert_int_equal(golden_be32(wqe + 4), 0x12345602);
    assert_int_equal(wqe[32], FILL);

    make_sges(sge, 3);
    sge[2]     = sge[1];
    sge[1].len = 0;
    queue_init(&q, 0);
    assert_int_equal(hx_sq_write(&q.sq, sge, 3, RADDR, RKEY, 0), 1);
    queue_copy(&q, wqe, sizeof(wqe));
    assert_int_equal(golden_be32(wqe + 4), 0x12345604);
    check_sges(wqe, 32, 2);
}

static void make_bytes(uint8_t *p, unsigned n, uint8_t first)
{
    unsigned i;

    for (i = 0; i < n; ++i) {
        p[i] = first + i;
    }
}

static void write_inline__each_length__bytes_behind_the_header(void **state)
{
    uint8_t data[HX_WRITE_INLINE_MAX], wqe[256];
    unsigned len, ds, bb;
    struct queue q;
    size_t i;

    (void)state;
    assert_int_equal(HX_WRITE_INLINE_MAX, 220);
    make_bytes(data, sizeof(data), 1);
    for (i = 0; i < N_PLACES; ++i) {
        for (len = 1; len <= HX_WRITE_INLINE_MAX; ++len) {
            queue_init(&q, places[i]);
            bb = hx_sq_write_inline(&q.sq, data, len, RADDR, RKEY, 0);
            ds = 3 + (len + 3) / 16;
            assert_int_equal(bb, (len <= 28) ? 1 : (len <= 92) ? 2 :
                                 (len <= 156) ? 3 : 4);
            queue_copy(&q, wqe, sizeof(wqe));
            GOLDEN(wqe, 36, {0x00, ctrl0(&q, 0x08)}, {0x04, 0x12345600 | ds},
                   {0x10, 0x11223344}, {0x14, 0x55667788}, {0x18, 0xa1b2c3d4},
                   {0x20, 0x80000000 | len});
            assert_memory_equal(wqe + 36, data, len);
            /* nor is anything written behind the data */
            if (36 + len < sizeof(wqe)) {
                assert_int_equal(wqe[36 + len], FILL);
            }
            queue_check_rest(&q, bb);
        }
    }
}

static void write_inline__8_bytes__golden(void **state)
{
    const uint8_t data[8] = {0xde, 0xad, 0xbe, 0xef, 0x01, 0x23, 0x45, 0x67};
    struct queue q;
    uint8_t wqe[44];

    (void)state;
    queue_init(&q, 15);
    assert_int_equal(hx_sq_write_inline(&q.sq, data, 8, RADDR, RKEY,
                                        HX_WQE_CQ_UPDATE |
                                        HX_WQE_SOLICITED), 1);
    queue_copy(&q, wqe, sizeof(wqe));
    GOLDEN(wqe, sizeof(wqe),
           {0x00, 0x00000f08}, {0x04, 0x12345603}, {0x08, 0x0000000a},
           {0x10, 0x11223344}, {0x14, 0x55667788}, {0x18, 0xa1b2c3d4},
           {0x20, 0x80000008}, {0x24, 0xdeadbeef}, {0x28, 0x01234567});
}

static void write_inline__nothing__no_inline_segment(void **state)
{
    struct queue q;
    uint8_t wqe[64];

    (void)state;
    queue_init(&q, 3);
    assert_int_equal(hx_sq_write_inline(&q.sq, NULL, 0, RADDR, RKEY, 0), 1);
    queue_copy(&q, wqe, sizeof(wqe));
    GOLDEN(wqe, 32, {0x00, 0x00000308}, {0x04, 0x12345602},
           {0x10, 0x11223344}, {0x14, 0x55667788}, {0x18, 0xa1b2c3d4});
    assert_int_equal(wqe[32], FILL);
}

static void send_inline__each_split__header_then_payload(void **state)
{
    uint8_t hdr[HX_SEND_INLINE_MAX], data[HX_SEND_INLINE_MAX], wqe[256];
    unsigned hdr_len, len, total, bb;
    struct queue q;
    size_t i;

    (void)state;
    assert_int_equal(HX_SEND_INLINE_MAX, 236);
    make_bytes(hdr, sizeof(hdr), 1);
    make_bytes(data, sizeof(data), 0x80);
    for (i = 0; i < N_PLACES; ++i) {
        for (hdr_len = 0; hdr_len <= HX_SEND_INLINE_MAX; hdr_len += 3) {
            for (len = 0; hdr_len + len <= HX_SEND_INLINE_MAX; ++len) {
                total = hdr_len + len;
                if (total == 0) {
                    continue;
                }

                queue_init(&q, places[i]);
                bb = hx_sq_send_inline(&q.sq, hdr, hdr_len, data, len, 0);
                queue_copy(&q, wqe, sizeof(wqe));
                assert_int_equal(bb, (total <= 44) ? 1 : (total <= 108) ? 2 :
                                     (total <= 172) ? 3 : 4);
                GOLDEN(wqe, 20, {0x00, ctrl0(&q, 0x0a)},
                       {0x04, 0x12345600 | (2 + (total + 3) / 16)},
                       {0x10, 0x80000000 | total});
                assert_memory_equal(wqe + 20, hdr, hdr_len);
                assert_memory_equal(wqe + 20 + hdr_len, data, len);
                if (20 + total < sizeof(wqe)) {
                    assert_int_equal(wqe[20 + total], FILL);
                }
                queue_check_rest(&q, bb);
            }
        }
    }
}

static void send_inline__nothing__ctrl_only(void **state)
{
    struct queue q;
    uint8_t wqe[64];

    (void)state;
    queue_init(&q, 2);
    assert_int_equal(hx_sq_send_inline(&q.sq, NULL, 0, NULL, 0,
                                       HX_WQE_SOLICITED), 1);
    queue_copy(&q, wqe, sizeof(wqe));
    GOLDEN(wqe, 16, {0x00, 0x0000020a}, {0x04, 0x12345601},
           {0x08, 0x00000002});
    assert_int_equal(wqe[16], FILL);
}

static void send__header_and_pieces__inline_then_data(void **state)
{
    struct hx_sge sge[HX_SEND_SGE_MAX];
    uint8_t hdr[HX_SEND_HDR_MAX], wqe[256];
    unsigned hdr_len, n, ds, bb, hdr_ds;
    struct queue q;
    size_t i;

    (void)state;
    assert_int_equal(HX_SEND_SGE_MAX, 15);
    make_bytes(hdr, sizeof(hdr), 1);
    make_sges(sge, HX_SEND_SGE_MAX);
    for (i = 0; i < N_PLACES; ++i) {
        for (hdr_len = 0; hdr_len <= HX_SEND_HDR_MAX; ++hdr_len) {
            hdr_ds = (hdr_len == 0) ? 0 : 1 + (hdr_len + 3) / 16;
            for (n = 0; n <= 15 - hdr_ds; ++n) {
                ds = 1 + hdr_ds + n;
                assert_int_equal(hx_sq_send_ds(hdr_len, n), ds);

                queue_init(&q, places[i]);
                bb = hx_sq_send(&q.sq, hdr, hdr_len, sge, n, 0);
                assert_int_equal(bb, (ds + 3) / 4);
                queue_copy(&q, wqe, sizeof(wqe));
                GOLDEN(wqe, 16, {0x00, ctrl0(&q, 0x0a)},
                       {0x04, 0x12345600 | ds});
                if (hdr_len != 0) {
                    assert_int_equal(golden_be32(wqe + 16),
                                     0x80000000 | hdr_len);
                    assert_memory_equal(wqe + 20, hdr, hdr_len);
                }
                check_sges(wqe, 16 + hdr_ds * 16, n);
                queue_check_rest(&q, bb);
            }
        }
    }
}

static void nop__signaled__ctrl_only(void **state)
{
    struct queue q;
    uint8_t wqe[64];

    (void)state;
    queue_init(&q, 0xffff);
    assert_int_equal(hx_sq_nop(&q.sq, HX_WQE_CQ_UPDATE), 1);
    queue_copy(&q, wqe, sizeof(wqe));
    GOLDEN(wqe, 16, {0x00, 0x00ffff00}, {0x04, 0x12345601},
           {0x08, 0x00000008});
    assert_int_equal(wqe[16], FILL);
    queue_check_rest(&q, 1);
}

/* Room and completion */

static void room__empty_queue__all_but_the_spare_blocks(void **state)
{
    struct queue q;

    (void)state;
    queue_init(&q, 0);
    assert_int_equal(hx_sq_room(&q.sq), RING_BB - 8);
    queue_init(&q, 0xfff0);
    assert_int_equal(hx_sq_room(&q.sq), RING_BB - 8);
}

static void room__posted_blocks__taken_until_completed(void **state)
{
    struct queue q;

    (void)state;
    queue_init(&q, 0xfffe);
    hx_sq_post(&q.sq, 4);
    assert_int_equal(hx_sq_room(&q.sq), 4);
    hx_sq_post(&q.sq, 4);
    assert_int_equal(hx_sq_room(&q.sq), 0);

    hx_sq_complete(&q.sq, 0xfffe); /* the first WQE: its size is not known */
    assert_int_equal(hx_sq_room(&q.sq), 0);
    hx_sq_complete(&q.sq, 0x0002);
    assert_int_equal(hx_sq_room(&q.sq), 4);
}

static void room__all_completed__a_largest_wqe_fits(void **state)
{
    struct queue q;
    unsigned i;

    (void)state;
    queue_init(&q, 0);
    for (i = 0; i < 100000; ++i) {
        unsigned bb = 1 + i % HX_WQE_MAX_BB;
        uint16_t first = q.sq.pi;

        assert_true(hx_sq_room(&q.sq) >= HX_WQE_MAX_BB);
        hx_sq_post(&q.sq, bb);
        hx_sq_complete(&q.sq, first);
    }
}

static void room__largest_queue__no_overflow(void **state)
{
    struct queue q;

    (void)state;
    queue_init(&q, 0x9000);
    q.sq.mask = 32767;
    assert_int_equal(hx_sq_room(&q.sq), 32768 - 8);
    q.sq.ci = q.sq.pi - 32760;
    assert_int_equal(hx_sq_room(&q.sq), 0);
    q.sq.ci = q.sq.pi - 32756;
    assert_int_equal(hx_sq_room(&q.sq), 4);
}

/* Doorbell */

static struct queue *soft_queue;
static unsigned soft_calls;
static uint32_t soft_record;
static uint64_t soft_uar;

static int soft_doorbell(unsigned type, uint32_t number)
{
    assert_int_equal(type, 0);
    assert_int_equal(number, QPN);
    ++soft_calls;
    soft_record = golden_be32(&soft_queue->dbrec[1]);
    soft_uar    = soft_queue->uar;
    return 0;
}

static void post__any__record_then_uar_then_soft_doorbell(void **state)
{
    const struct hx_sge sge = {0x1000, 8, 1};
    struct queue q;
    unsigned bb;

    (void)state;
    queue_init(&q, 0xffff);
    q.sq.ring_soft = soft_doorbell;
    soft_queue     = &q;
    soft_calls     = 0;

    bb = hx_sq_write(&q.sq, &sge, 1, RADDR, RKEY, 0);
    hx_sq_post(&q.sq, bb);
    assert_int_equal(q.sq.pi, 0); /* the index has 16 bits */
    assert_int_equal(golden_be32(&q.dbrec[1]), 0);
    assert_int_equal(q.dbrec[0], 0xcccccccc); /* receives: not ours */
    GOLDEN(&q.uar, 8, {0x00, 0x00ffff08}, {0x04, 0x12345603});
    assert_int_equal(soft_calls, 1);
    assert_int_equal(soft_record, 0);
    assert_true(soft_uar == q.uar);

    bb = hx_sq_send_inline(&q.sq, &sge, 16, NULL, 0, 0);
    hx_sq_post(&q.sq, bb);
    assert_int_equal(golden_be32(&q.dbrec[1]), 1);
    GOLDEN(&q.uar, 8, {0x00, 0x0000000a}, {0x04, 0x12345603});
    assert_int_equal(soft_calls, 2);
    assert_int_equal(soft_record, 1);
}

static void post__no_soft_doorbell__record_and_uar(void **state)
{
    struct queue q;

    (void)state;
    queue_init(&q, 5);
    hx_sq_post(&q.sq, hx_sq_nop(&q.sq, 0));
    assert_int_equal(golden_be32(&q.dbrec[1]), 6);
    GOLDEN(&q.uar, 8, {0x00, 0x00000500}, {0x04, 0x12345601});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write__one_piece__48_bytes_in_one_block),
        cmocka_unit_test(read__one_piece__opcode_0x10),
        cmocka_unit_test(write__each_number_of_pieces__segments_follow),
        cmocka_unit_test(write__empty_pieces__get_no_segment),
        cmocka_unit_test(write_inline__each_length__bytes_behind_the_header),
        cmocka_unit_test(write_inline__8_bytes__golden),
        cmocka_unit_test(write_inline__nothing__no_inline_segment),
        cmocka_unit_test(send_inline__each_split__header_then_payload),
        cmocka_unit_test(send_inline__nothing__ctrl_only),
        cmocka_unit_test(send__header_and_pieces__inline_then_data),
        cmocka_unit_test(nop__signaled__ctrl_only),
        cmocka_unit_test(room__empty_queue__all_but_the_spare_blocks),
        cmocka_unit_test(room__posted_blocks__taken_until_completed),
        cmocka_unit_test(room__all_completed__a_largest_wqe_fits),
        cmocka_unit_test(room__largest_queue__no_overflow),
        cmocka_unit_test(post__any__record_then_uar_then_soft_doorbell),
        cmocka_unit_test(post__no_soft_doorbell__record_and_uar),
    };

    return cmocka_run_group_tests_name("sq", tests, NULL, NULL);
}
