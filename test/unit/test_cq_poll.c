/* SPDX-License-Identifier: BSD-3-Clause */

/* CQEs written by hand and polled; arming; the receive ring. */

#include "golden.h"

#include "mlx5/cq_poll.h"

#include <stdio.h>

#define LOG_SIZE 2
#define SIZE     (1 << LOG_SIZE)

struct queue {
    struct hx_cq  cq;
    struct hx_uar uar;
    uint32_t      dbrec[2];
    uint8_t       page[64];
    uint8_t       ring[SIZE][64] __attribute__((aligned(64)));
};

static void queue_init(struct queue *q)
{
    unsigned i;

    memset(q, 0, sizeof(*q));
    q->cq.ring       = q->ring;
    q->cq.dbrec      = q->dbrec;
    q->cq.mask       = SIZE - 1;
    q->cq.log_size   = LOG_SIZE;
    q->cq.cqn        = 0xabcdef;
    q->cq.uar        = &q->uar;
    q->uar.base_addr = q->page;
    for (i = 0; i < SIZE; ++i) {
        q->ring[i][0x3f] = 0xf1;
    }
}

/* What the device writes as CQE number n of the queue's life, all the bytes
 * that our software reads apart */
static uint8_t *device_cqe(struct queue *q, unsigned n, uint8_t opcode)
{
    uint8_t *cqe = q->ring[n % SIZE];

    memset(cqe, 0xee, 64);
    cqe[0x3f] = opcode << 4 | ((n / SIZE) & 1);
    return cqe;
}

static void put_be32(uint8_t *p, uint32_t value)
{
    p[0] = value >> 24;
    p[1] = value >> 16;
    p[2] = value >> 8;
    p[3] = value;
}

static void poll__fresh_queue__empty(void **state)
{
    struct hx_wc wc = {0};
    struct queue q;

    (void)state;
    queue_init(&q);
    assert_false(hx_cq_poll(&q.cq, &wc));
    assert_int_equal(q.cq.ci, 0);
}

static void poll__requester_cqe__qpn_and_counter(void **state)
{
    struct hx_wc wc = {0};
    struct queue q;
    uint8_t *cqe;

    (void)state;
    queue_init(&q);
    cqe = device_cqe(&q, 0, 0);
    put_be32(cqe + 0x38, 0x08123456); /* send opcode, qpn */
    cqe[0x3c] = 0xab;
    cqe[0x3d] = 0xcd;
    assert_true(hx_cq_poll(&q.cq, &wc));
    assert_int_equal(wc.kind, HX_CQE_REQ);
    assert_int_equal(wc.qpn, 0x123456);
    assert_int_equal(wc.wqe_counter, 0xabcd);
    assert_false(wc.has_imm);
    assert_int_equal(q.cq.ci, 1);
    assert_false(hx_cq_poll(&q.cq, &wc));
}

static void poll__receive_cqes__length_and_immediate(void **state)
{
    static const struct {
        uint8_t opcode;
        bool    has_imm;
    } cases[] = {{1, true}, {2, false}, {3, true}, {4, false}};
    struct hx_wc wc = {0};
    struct queue q;
    uint8_t *cqe;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        queue_init(&q);
        cqe = device_cqe(&q, 0, cases[i].opcode);
        put_be32(cqe + 0x24, 0x01020304);
        put_be32(cqe + 0x2c, 0x00011000);
        put_be32(cqe + 0x38, 0x00fffffe);
        cqe[0x3c] = 0x00;
        cqe[0x3d] = 0x07;
        assert_true(hx_cq_poll(&q.cq, &wc));
        assert_int_equal(wc.kind, HX_CQE_RECV);
        assert_int_equal(wc.qpn, 0xfffffe);
        assert_int_equal(wc.wqe_counter, 7);
        assert_int_equal(wc.byte_cnt, 0x11000);
        assert_int_equal(wc.has_imm, cases[i].has_imm);
        if (wc.has_imm) {
            assert_int_equal(wc.imm, 0x01020304);
        }
    }
}

static void poll__error_cqes__syndromes(void **state)
{
    static const struct {
        uint8_t          opcode;
        enum hx_cqe_kind kind;
    } cases[] = {{13, HX_CQE_REQ_ERR}, {14, HX_CQE_RECV_ERR}};
    struct hx_wc wc = {0};
    struct queue q;
    uint8_t *cqe;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        queue_init(&q);
        cqe = device_cqe(&q, 0, cases[i].opcode);
        cqe[0x36] = 0x88;
        cqe[0x37] = 0x13;
        put_be32(cqe + 0x38, 0x08000042);
        cqe[0x3c] = 0xff;
        cqe[0x3d] = 0xfe;
        assert_true(hx_cq_poll(&q.cq, &wc));
        assert_int_equal(wc.kind, cases[i].kind);
        assert_int_equal(wc.qpn, 0x42);
        assert_int_equal(wc.wqe_counter, 0xfffe);
        assert_int_equal(wc.syndrome, 0x13);
        assert_int_equal(wc.vendor_syndrome, 0x88);
        assert_false(wc.has_imm);
    }
}

static void poll__format_bits__ignored(void **state)
{
    struct hx_wc wc = {0};
    struct queue q;
    uint8_t *cqe;

    (void)state;
    queue_init(&q);
    cqe        = device_cqe(&q, 0, 2);
    cqe[0x3f] |= 0x0e; /* se and cqe_format */
    assert_true(hx_cq_poll(&q.cq, &wc));
    assert_int_equal(wc.kind, HX_CQE_RECV);
}

static void poll__several_passes__owner_bit_alternates(void **state)
{
    struct hx_wc wc = {0};
    struct queue q;
    unsigned n;

    (void)state;
    queue_init(&q);
    for (n = 0; n < 10 * SIZE; ++n) {
        /* what the pass before left here is not taken for a new CQE */
        assert_false(hx_cq_poll(&q.cq, &wc));
        device_cqe(&q, n, 0)[0x3d] = n;
        assert_true(hx_cq_poll(&q.cq, &wc));
        assert_int_equal(wc.wqe_counter & 0xff, n);
    }
    assert_int_equal(q.cq.ci, 10 * SIZE);
}

static void poll__full_ring__all_in_order(void **state)
{
    struct hx_wc wc = {0};
    struct queue q;
    unsigned n;

    (void)state;
    queue_init(&q);
    q.cq.ci = 3;
    for (n = 3; n < 3 + SIZE; ++n) {
        device_cqe(&q, n, 0)[0x3d] = n;
    }
    for (n = 3; n < 3 + SIZE; ++n) {
        assert_true(hx_cq_poll(&q.cq, &wc));
        assert_int_equal(wc.wqe_counter & 0xff, n);
    }
    assert_false(hx_cq_poll(&q.cq, &wc));
}

static void update_ci__any__24_bits_in_word_0(void **state)
{
    struct queue q;

    (void)state;
    queue_init(&q);
    q.cq.ci = 0x12345678;
    hx_cq_update_ci(&q.cq);
    assert_int_equal(golden_be32(&q.dbrec[0]), 0x345678);
    assert_int_equal(q.dbrec[1], 0);
}

static unsigned soft_calls, soft_type;
static uint32_t soft_number;

static int soft_doorbell(unsigned type, uint32_t number)
{
    ++soft_calls;
    soft_type   = type;
    soft_number = number;
    return 0;
}

static void arm__any_event__record_and_register(void **state)
{
    struct queue q;

    (void)state;
    queue_init(&q);
    q.cq.ci        = 0x01000005;
    q.cq.arm_sn    = 6; /* two bits of it count */
    q.cq.ring_soft = soft_doorbell;
    soft_calls     = 0;

    hx_cq_arm(&q.cq, false);
    assert_int_equal(golden_be32(&q.dbrec[1]), 0x20000005);
    assert_int_equal(q.dbrec[0], 0);
    GOLDEN(q.page, sizeof(q.page), {0x20, 0x20000005}, {0x24, 0x00abcdef});
    assert_int_equal(soft_calls, 1);
    assert_int_equal(soft_type, 2);
    assert_int_equal(soft_number, 0xabcdef);
}

static void arm__solicited__command_bit(void **state)
{
    struct queue q;

    (void)state;
    queue_init(&q);
    q.cq.arm_sn = 1;
    hx_cq_arm(&q.cq, true);
    assert_int_equal(golden_be32(&q.dbrec[1]), 0x11000000);
    GOLDEN(q.page, sizeof(q.page), {0x20, 0x11000000}, {0x24, 0x00abcdef});
}

static void syndrome_str__each_value__has_its_number(void **state)
{
    static const uint8_t known[] = {0x01, 0x02, 0x04, 0x05, 0x06, 0x10, 0x11,
                                    0x12, 0x13, 0x14, 0x15, 0x16, 0x22};
    char number[8];
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(known); ++i) {
        snprintf(number, sizeof(number), "(0x%02x)", known[i]);
        assert_non_null(strstr(hx_cqe_syndrome_str(known[i]), number));
    }
    for (i = 0; i < 256; ++i) {
        assert_non_null(hx_cqe_syndrome_str(i));
    }
    assert_string_equal(hx_cqe_syndrome_str(0x13),
                        "remote access error (0x13)");
}

/* Receives: 3, 0, 2 and 1 are the list */

struct receives {
    struct hx_rmp      rmp;
    uint32_t           dbrec[2];
    struct hx_wqe_recv ring[4];
};

static void receives_init(struct receives *r, uint16_t pi)
{
    memset(r, 0, sizeof(*r));
    r->rmp.ring       = r->ring;
    r->rmp.dbrec      = r->dbrec;
    r->rmp.mask       = 3;
    r->rmp.log_stride = 5;
    r->rmp.rmpn       = 0x77;
    r->rmp.pi         = pi;
    r->rmp.head       = 3;
    r->rmp.tail       = 1;
    r->ring[3].next.next_wqe_index = htobe16(0);
    r->ring[0].next.next_wqe_index = htobe16(2);
    r->ring[2].next.next_wqe_index = htobe16(1);
}

static void rmp_post__along_the_list__data_segment_behind_the_next(
        void **state)
{
    struct receives r;

    (void)state;
    receives_init(&r, 0xffff);
    assert_int_equal(hx_rmp_post(&r.rmp, 0x0102030405060708, 0x2000,
                                 0xaabbccdd), 3);
    assert_int_equal(hx_rmp_post(&r.rmp, 0x1112131415161718, 0x4000,
                                 0x11223344), 0);
    GOLDEN(r.ring, sizeof(r.ring),
           /* next of 0 and 2 */
           {0x00, 0x00000002}, {0x40, 0x00000001},
           /* 3 */
           {0x70, 0x00002000}, {0x74, 0xaabbccdd}, {0x78, 0x01020304},
           {0x7c, 0x05060708},
           /* 0 */
           {0x10, 0x00004000}, {0x14, 0x11223344}, {0x18, 0x11121314},
           {0x1c, 0x15161718});
    assert_int_equal(r.rmp.pi, 1);
    assert_int_equal(r.dbrec[0], 0); /* not rung yet */
}

static void rmp_free__out_of_order__posted_last_in_that_order(void **state)
{
    struct receives r;

    (void)state;
    receives_init(&r, 0);
    assert_int_equal(hx_rmp_post(&r.rmp, 0, 1, 2), 3);
    assert_int_equal(hx_rmp_post(&r.rmp, 0, 1, 2), 0);
    hx_rmp_free(&r.rmp, 0);
    assert_int_equal(hx_rmp_post(&r.rmp, 0, 1, 2), 2);
    assert_int_equal(hx_rmp_post(&r.rmp, 0, 1, 2), 1);
    hx_rmp_free(&r.rmp, 1);
    hx_rmp_free(&r.rmp, 3);
    assert_int_equal(hx_rmp_post(&r.rmp, 0, 1, 2), 0);
    assert_int_equal(hx_rmp_post(&r.rmp, 0, 1, 2), 1);
    assert_int_equal(r.rmp.head, 3);
    assert_int_equal(r.rmp.pi, 6);
}

static void rmp_ring__any__record_and_soft_doorbell(void **state)
{
    struct receives r;

    (void)state;
    receives_init(&r, 0xfffe);
    r.rmp.ring_soft = soft_doorbell;
    soft_calls      = 0;
    hx_rmp_post(&r.rmp, 0, 1, 2);
    hx_rmp_ring(&r.rmp);
    assert_int_equal(golden_be32(&r.dbrec[0]), 0xffff);
    assert_int_equal(r.dbrec[1], 0);
    assert_int_equal(soft_calls, 1);
    assert_int_equal(soft_type, 1);
    assert_int_equal(soft_number, 0x77);

    hx_rmp_post(&r.rmp, 0, 1, 2);
    hx_rmp_ring(&r.rmp);
    assert_int_equal(golden_be32(&r.dbrec[0]), 0); /* 16 bits */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poll__fresh_queue__empty),
        cmocka_unit_test(poll__requester_cqe__qpn_and_counter),
        cmocka_unit_test(poll__receive_cqes__length_and_immediate),
        cmocka_unit_test(poll__error_cqes__syndromes),
        cmocka_unit_test(poll__format_bits__ignored),
        cmocka_unit_test(poll__several_passes__owner_bit_alternates),
        cmocka_unit_test(poll__full_ring__all_in_order),
        cmocka_unit_test(update_ci__any__24_bits_in_word_0),
        cmocka_unit_test(arm__any_event__record_and_register),
        cmocka_unit_test(arm__solicited__command_bit),
        cmocka_unit_test(syndrome_str__each_value__has_its_number),
        cmocka_unit_test(
                rmp_post__along_the_list__data_segment_behind_the_next),
        cmocka_unit_test(rmp_free__out_of_order__posted_last_in_that_order),
        cmocka_unit_test(rmp_ring__any__record_and_soft_doorbell),
    };

    return cmocka_run_group_tests_name("cq_poll", tests, NULL, NULL);
}
