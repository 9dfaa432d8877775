/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Hand-written mailboxes through the emulated device's decoders: what arrives
 * at the NIC side, and that no bit of a mailbox goes unnoticed.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <rdma/mlx5_user_ioctl_cmds.h>

#include "vhca/prm_table.h"
#include "vhca_devx_fixture.h"

/* ---- what a good mailbox means ---- */

static void create_mkey__golden__arrives_as_written(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    fix_mkey_mailbox(f, in);
    assert_int_equal(fix_create(f, in, sizeof(in)), 0);
    assert_int_equal(fix_be32(&f->out[0]), 0);
    assert_int_equal(fix_be32(&f->out[8]), FIX_MKEY);
    assert_int_equal(fix_nic.mkey.owner, FIX_OWNER);
    assert_int_equal(fix_nic.mkey.pdn, FIX_PDN);
    assert_true(fix_nic.mkey.start == (uintptr_t)f->mem + 4096);
    assert_true(fix_nic.mkey.len == 4096);
    assert_true(fix_nic.mkey.va_delta == 0);
    assert_int_equal(fix_nic.mkey.qpn, 0xffffff);
    assert_int_equal(fix_nic.mkey.tag, 0x5a);
    assert_true(fix_nic.mkey.lr && fix_nic.mkey.lw && fix_nic.mkey.rr &&
                fix_nic.mkey.rw && !fix_nic.mkey.a && fix_nic.mkey.over_umem);
}

static void create_mkey__other_addresses__delta_leads_to_the_memory(
        void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    fix_mkey_mailbox(f, in);
    fix_put_be64(&in[0x20], 0x10000000);
    assert_int_equal(fix_create(f, in, sizeof(in)), 0);
    assert_true(fix_nic.mkey.start == 0x10000000);
    assert_true(fix_nic.mkey.start + fix_nic.mkey.va_delta ==
                (uintptr_t)f->mem + 4096);
}

static void create_cq__golden__arrives_as_written(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fix_create(f, fix_cq, MBOX), 0);
    assert_int_equal(fix_be32(&f->out[8]), FIX_CQN);
    assert_ptr_equal(fix_nic.cq.ring, f->mem + 0x4000);
    assert_ptr_equal(fix_nic.cq.dbrec, f->mem + 0x2fc0);
    assert_int_equal(fix_nic.cq.log_size, 7);
    assert_int_equal(fix_nic.cq.cqe_size, 64);
    assert_int_equal(fix_nic.cq.uar_page, UAR_PAGE);
    assert_false(fix_nic.cq.oi || fix_nic.cq.verbs);
}

static void create_rmp__golden__arrives_as_written(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fix_create(f, fix_rmp, MBOX), 0);
    assert_int_equal(fix_be32(&f->out[8]), FIX_RMPN);
    assert_int_equal(fix_nic.rmp.pdn, FIX_PDN);
    assert_ptr_equal(fix_nic.rmp.ring, f->mem + 0x8000);
    assert_ptr_equal(fix_nic.rmp.dbrec, f->mem + 0x3080);
    assert_int_equal(fix_nic.rmp.log_size, 6);
    assert_int_equal(fix_nic.rmp.log_stride, 5);
    assert_false(fix_nic.rmp.cyclic || fix_nic.rmp.basic_cyclic_rcv_wqe);
}

static void create_qp__golden__arrives_as_written(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fix_create(f, fix_qp, MBOX), 0);
    assert_int_equal(fix_be32(&f->out[8]), FIX_QPN);
    assert_int_equal(fix_nic.qp.pdn, FIX_PDN);
    assert_ptr_equal(fix_nic.qp.sq, f->mem + 0xc000);
    assert_int_equal(fix_nic.qp.log_sq_size, 6);
    assert_null(fix_nic.qp.rq);
    assert_int_equal(fix_nic.qp.rmpn, FIX_RMPN);
    assert_int_equal(fix_nic.qp.cqn_snd, FIX_CQN);
    assert_int_equal(fix_nic.qp.cqn_rcv, FIX_CQN);
    assert_ptr_equal(fix_nic.qp.dbrec, f->mem + 0x2040);
    assert_int_equal(fix_nic.qp.uar_page, UAR_PAGE);
    assert_int_equal(fix_nic.qp.user_index, 0xffffff);
}

static void create_qp__own_receive_queue__lies_before_the_send_queue(
        void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    memcpy(in, fix_qp, MBOX);
    in[0xc4] = 0;                           /* own */
    in[0xc5] = in[0xc6] = in[0xc7] = 0;
    in[0x21] = 0x21;                        /* 2^4 WQEs of 2^(4+1) bytes */
    assert_int_equal(fix_create(f, in, MBOX), 0);
    assert_ptr_equal(fix_nic.qp.rq, f->mem + 0xc000);
    assert_int_equal(fix_nic.qp.log_rq_size, 4);
    assert_int_equal(fix_nic.qp.log_rq_stride, 5);
    assert_ptr_equal(fix_nic.qp.sq, f->mem + 0xc000 + 512);
}

static void modify__golden_steps__arrive_as_written(void **state)
{
    static const uint8_t gid[16] = {[10] = 0xff, 0xff, 0xc6, 0x12, 0, 1};
    static const uint8_t mac[6]  = {0x02, 0x00, 0xc6, 0x12, 0x00, 0x01};
    struct vhca_qp_modify *m     = &fix_nic.modify;
    struct fixture *f            = *state;

    assert_int_equal(fix_modify(f, fix_2init, MBOX), 0);
    assert_int_equal(m->opcode, 0x502);
    assert_int_equal(m->port, 1);
    assert_true(m->rre && m->rwe && !m->rae);

    assert_int_equal(fix_modify(f, fix_2rtr, MBOX), 0);
    assert_int_equal(m->opcode, 0x503);
    assert_int_equal(m->opt_param_mask, 0x0a);
    assert_int_equal(m->mtu, 5);
    assert_int_equal(m->log_msg_max, 30);
    assert_int_equal(m->remote_qpn, 0x0a0b0c);
    assert_int_equal(m->sgid_index, 3);
    assert_int_equal(m->hop_limit, 64);
    assert_true(m->grh);
    assert_memory_equal(m->rgid, gid, 16);
    assert_memory_equal(m->rmac, mac, 6);
    assert_int_equal(m->udp_sport, 0xc123);
    assert_int_equal(m->log_rra_max, 4);
    assert_int_equal(m->atomic_mode, 1);
    assert_int_equal(m->min_rnr_nak, 12);
    assert_int_equal(m->next_rcv_psn, 0x112233);

    assert_int_equal(fix_modify(f, fix_2rts, MBOX), 0);
    assert_int_equal(m->opcode, 0x504);
    assert_int_equal(m->log_sra_max, 4);
    assert_int_equal(m->retry_count, 7);
    assert_int_equal(m->rnr_retry, 7);
    assert_int_equal(m->ack_timeout, 14);
    assert_int_equal(m->next_send_psn, 0x112233);
}

static void query_qp__after_steps__tells_what_was_set(void **state)
{
    static const uint8_t in[16] = {0x05, 0x0b, [9] = 0x03, 0x04, 0x05};
    struct fixture *f           = *state;

    assert_int_equal(fix_modify(f, fix_2rtr, MBOX), 0);
    fix_nic.qp_state    = VHCA_QP_RTR;
    fix_nic.qp.sq       = f->mem;
    f->outlen           = MBOX;
    assert_int_equal(fix_obj_call(f, MLX5_IB_METHOD_DEVX_OBJ_QUERY,
                                  f->qp->handle, in, sizeof(in)), 0);
    assert_int_equal(f->out[0x18] >> 4, 2);                    /* RTR */
    assert_int_equal(f->out[0x20], 0xbe);
    assert_memory_equal(&f->out[0x2d], &fix_2rtr[0x2d], 3); /* remote_qpn */
    assert_memory_equal(&f->out[0x38], &fix_2rtr[0x38], 36);/* path */
    assert_int_equal(fix_be32(&f->out[0x94]), FIX_CQN);
}

/* ---- every bit counts ---- */

/* Bits that may change without any effect, and why */
static const struct {
    const char *structure, *field, *why;
} exceptions[] = {
    {"*", "uid", "the kernel writes it"},
    {"*", "mkey_umem_valid", "the kernel writes it"},
    {"*", "cq_umem_valid", "the kernel writes it"},
    {"*", "wq_umem_valid", "the kernel writes it"},
    {"*", "dbr_umem_valid", "the kernel writes it"},
    {"create_mkey_in", "pg_access", "over a umem both values are in use"},
    {"create_mkey_in", "translations_octword_actual_size",
     "0, 1 and more than is needed are in use"},
    {"mkc", "translations_octword_size",
     "0 and more than is needed are in use"},
    {"mkc", "log_page_size", "0, 4 KiB and the umem's are in use"},
    {"mkc", "relaxed_ordering_write", "allows an order, asks for none"},
    {"mkc", "relaxed_ordering_read", "allows an order, asks for none"},
    {"cqc", "c_eqn_or_apu_element", "any of the EQs will do"},
    {"qpc", "ts_format", "0 and 1 are free-running"},
    {"qpc", "log_ack_req_freq", "a hint to the requester"},
    {"ads", "flow_label", "marks packets: there are none"},
    {"ads", "dscp", "marks packets: there are none"},
    {"ads", "mlid", "path bits: the port has one LID"},
    {"query_hca_cap_in", "op_mod", "bit 0: the maximum is what is current"},
};

static const char *excepted(const struct vhca_prm_struct *s, unsigned base,
                            unsigned bit)
{
    const struct vhca_prm_field *field;
    unsigned i, j;

    for (i = 0; i < s->num_fields; ++i) {
        field = &s->fields[i];
        if ((bit < base + field->offset) ||
            (bit >= base + field->offset + field->width)) {
            continue;
        }
        if (field->how & PRM_SUBS) {
            return excepted(&vhca_prm_structs[field->how & ~PRM_SUBS],
                            base + field->offset, bit);
        }
        for (j = 0; j < sizeof(exceptions) / sizeof(exceptions[0]); ++j) {
            if ((strcmp(exceptions[j].field, field->name) == 0) &&
                ((exceptions[j].structure[0] == '*') ||
                 (strcmp(exceptions[j].structure, s->name) == 0))) {
                return exceptions[j].why;
            }
        }
        return NULL;
    }

    return NULL;
}

typedef int (*send_func)(struct fixture *f, const uint8_t *in, size_t inlen);

static void flip_every_bit(struct fixture *f, const char *structure,
                           const uint8_t *golden, send_func send)
{
    const struct vhca_prm_struct *s = vhca_prm_find_struct(structure);
    struct fix_nic wanted, saved    = fix_nic;
    unsigned bit, refused = 0, differed = 0;
    uint8_t in[MBOX];
    int ret;

    assert_int_equal(send(f, golden, MBOX), 0);
    wanted       = fix_nic;
    wanted.calls = 0;
    for (bit = 0; bit < MBOX * 8; ++bit) {
        fix_nic = saved;
        memcpy(in, golden, MBOX);
        in[bit / 8] ^= (uint8_t)(0x80 >> (bit % 8));
        ret           = send(f, in, MBOX);
        fix_nic.calls = 0;
        if (ret != 0) {
            ++refused;
        } else if (memcmp(&fix_nic, &wanted, sizeof(wanted)) != 0) {
            ++differed;
        } else if (excepted(s, 0, bit) == NULL) {
            fail_msg("%s: bit 0x%x makes no difference", structure, bit);
        }
    }

    /* most of a mailbox is reserved or not implemented */
    assert_true(refused > MBOX * 8 / 2);
    assert_true(differed > 20);
}

static void mutation__create_mkey__every_bit_is_noticed(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    fix_mkey_mailbox(f, in);
    flip_every_bit(f, "create_mkey_in", in, fix_create);
}

static void mutation__create_cq__every_bit_is_noticed(void **state)
{
    flip_every_bit(*state, "create_cq_in", fix_cq, fix_create);
}

static void mutation__create_rmp__every_bit_is_noticed(void **state)
{
    flip_every_bit(*state, "create_rmp_in", fix_rmp, fix_create);
}

static void mutation__create_qp__every_bit_is_noticed(void **state)
{
    flip_every_bit(*state, "create_qp_in", fix_qp, fix_create);
}

static void mutation__rst2init__every_bit_is_noticed(void **state)
{
    const struct vhca_prm_struct *s = vhca_prm_find_struct("rst2init_qp_in");
    struct fixture *f               = *state;
    uint8_t in[MBOX];
    unsigned bit;

    /* fewer fields than the others: rre, rwe, rae, atomic_mode differ */
    for (bit = 0; bit < MBOX * 8; ++bit) {
        memcpy(in, fix_2init, MBOX);
        in[bit / 8] ^= (uint8_t)(0x80 >> (bit % 8));
        memset(&fix_nic.modify, 0, sizeof(fix_nic.modify));
        if (fix_modify(f, in, MBOX) == 0) {
            assert_true((excepted(s, 0, bit) != NULL) ||
                        !fix_nic.modify.rre || !fix_nic.modify.rwe ||
                        fix_nic.modify.rae || fix_nic.modify.atomic_mode);
        }
    }
}

static void mutation__init2rtr__every_bit_is_noticed(void **state)
{
    flip_every_bit(*state, "init2rtr_qp_in", fix_2rtr, fix_modify);
}

static void mutation__rtr2rts__every_bit_is_noticed(void **state)
{
    flip_every_bit(*state, "rtr2rts_qp_in", fix_2rts, fix_modify);
}

static void mutation__create_rmp_cyclic__every_bit_is_noticed(void **state)
{
    uint8_t in[MBOX];

    memcpy(in, fix_rmp, MBOX);
    in[0x24] |= 0x80; /* basic_cyclic_rcv_wqe */
    in[0x50] |= 0x10; /* cyclic */
    flip_every_bit(*state, "create_rmp_in", in, fix_create);
}

static void mutation__create_qp_own_rq__every_bit_is_noticed(void **state)
{
    uint8_t in[MBOX];

    memcpy(in, fix_qp, MBOX);
    in[0xc4] = 0;                       /* a receive queue of its own */
    in[0xc5] = in[0xc6] = in[0xc7] = 0;
    in[0x21] = 0x21;                    /* 2^4 WQEs of 2^(4+1) bytes */
    flip_every_bit(*state, "create_qp_in", in, fix_create);
}

static void mutation__init2rtr_ib__every_bit_is_noticed(void **state)
{
    flip_every_bit(*state, "init2rtr_qp_in", fix_2rtr_ib, fix_modify);
}

static void mutation__init2rtr_ib_grh__every_bit_is_noticed(void **state)
{
    uint8_t in[MBOX];

    memcpy(in, fix_2rtr_ib, MBOX);
    in[0x35] |= 0x80;                   /* grh */
    in[0x3b]  = 0x40;                   /* hop limit */
    in[0x40]  = 0xfe;                   /* rgid */
    in[0x41]  = 0x80;
    in[0x4f]  = 0x01;
    flip_every_bit(*state, "init2rtr_qp_in", in, fix_modify);
}

/* Mailboxes that are a header: 16 bytes. They may show in the output alone. */
static void flip_header(struct fixture *f, const char *structure,
                        const uint8_t *golden, send_func send)
{
    const struct vhca_prm_struct *s = vhca_prm_find_struct(structure);
    static uint8_t wanted_out[sizeof(f->out)];
    struct fix_nic wanted;
    uint8_t in[16];
    unsigned bit;

    assert_int_equal(send(f, golden, sizeof(in)), 0);
    memcpy(wanted_out, f->out, sizeof(f->out));
    wanted = fix_nic;
    for (bit = 0; bit < sizeof(in) * 8; ++bit) {
        memcpy(in, golden, sizeof(in));
        in[bit / 8]   ^= (uint8_t)(0x80 >> (bit % 8));
        fix_nic.modify = (struct vhca_qp_modify) {0};
        if ((send(f, in, sizeof(in)) == 0) &&
            (memcmp(f->out, wanted_out, f->outlen) == 0) &&
            (memcmp(&fix_nic.modify, &wanted.modify,
                    sizeof(wanted.modify)) == 0) &&
            (excepted(s, 0, bit) == NULL)) {
            fail_msg("%s: bit 0x%x makes no difference", structure, bit);
        }
    }
}

static int send_other(struct fixture *f, const uint8_t *in, size_t inlen)
{
    const struct ib_uverbs_attr attrs[] = {
        {.attr_id = 0x1000, .len = (uint16_t)inlen, .data = (uintptr_t)in},
        {.attr_id = 0x1001, .len = (uint16_t)f->outlen,
         .data = (uintptr_t)f->out},
    };

    memset(f->out, 0xee, sizeof(f->out));
    return fix_call(f, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, attrs,
                    2);
}

static uint32_t query_handle;

static int send_query(struct fixture *f, const uint8_t *in, size_t inlen)
{
    return fix_obj_call(f, MLX5_IB_METHOD_DEVX_OBJ_QUERY, query_handle, in,
                        inlen);
}

static void mutation__2err_2rst__every_bit_is_noticed(void **state)
{
    static const uint8_t to_err[16] = {0x05, 0x07, [9] = 0x03, 0x04, 0x05};
    static const uint8_t to_rst[16] = {0x05, 0x0a, [9] = 0x03, 0x04, 0x05};

    flip_header(*state, "qp_2err_in", to_err, fix_modify);
    flip_header(*state, "qp_2rst_in", to_rst, fix_modify);
}

static void mutation__queries__every_bit_is_noticed(void **state)
{
    static const uint8_t qp[16] = {0x05, 0x0b, [9] = 0x03, 0x04, 0x05};
    uint8_t mkey[16]            = {0x02, 0x01};
    struct fixture *f           = *state;
    uint8_t in[MBOX];

    query_handle   = f->qp->handle;
    f->outlen      = MBOX;
    fix_nic.qp.sq  = f->mem;
    flip_header(f, "query_qp_in", qp, send_query);

    fix_mkey_mailbox(f, in);
    f->outlen = 16;
    assert_int_equal(fix_create(f, in, sizeof(in)), 0);
    query_handle = f->handle;
    memcpy(&mkey[9], &f->out[9], 3);
    f->outlen = PRM_BYTES(query_mkey_out);
    flip_header(f, "query_mkey_in", mkey, send_query);
}

static void mutation__general__every_bit_is_noticed(void **state)
{
    static const uint8_t cap[16] = {0x01, 0x00, [7] = 0x01};
    static const uint8_t lag[16] = {0x08, 0x42};
    struct fixture *f            = *state;

    f->outlen = PRM_BYTES(query_hca_cap_out);
    flip_header(f, "query_hca_cap_in", cap, send_other);
    f->outlen = 16;
    flip_header(f, "query_lag_in", lag, send_other);
}

/* On IB, where a port has one of these */
static void mutation__vport__every_bit_is_noticed(void **state)
{
    static const uint8_t in[16] = {0x07, 0x62};
    struct fixture *f           = *state;

    f->outlen = PRM_BYTES(query_hca_vport_context_out);
    flip_header(f, "query_hca_vport_context_in", in, send_other);
    assert_int_equal(send_other(f, in, sizeof(in)), 0);
    assert_int_equal(f->out[16 + 0x118 / 8], 0x44);  /* active, active */
    assert_int_equal(f->out[16 + 0x300 / 8 + 1], 0x11); /* lid */
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, fix_setup, fix_teardown)
#define TEST_IB(_name) \
    cmocka_unit_test_setup_teardown(_name, fix_setup_ib, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(create_mkey__golden__arrives_as_written),
        TEST(create_mkey__other_addresses__delta_leads_to_the_memory),
        TEST(create_cq__golden__arrives_as_written),
        TEST(create_rmp__golden__arrives_as_written),
        TEST(create_qp__golden__arrives_as_written),
        TEST(create_qp__own_receive_queue__lies_before_the_send_queue),
        TEST(modify__golden_steps__arrive_as_written),
        TEST(query_qp__after_steps__tells_what_was_set),
        TEST(mutation__create_mkey__every_bit_is_noticed),
        TEST(mutation__create_cq__every_bit_is_noticed),
        TEST(mutation__create_rmp__every_bit_is_noticed),
        TEST(mutation__create_qp__every_bit_is_noticed),
        TEST(mutation__rst2init__every_bit_is_noticed),
        TEST(mutation__init2rtr__every_bit_is_noticed),
        TEST(mutation__rtr2rts__every_bit_is_noticed),
        TEST(mutation__create_rmp_cyclic__every_bit_is_noticed),
        TEST(mutation__create_qp_own_rq__every_bit_is_noticed),
        TEST(mutation__2err_2rst__every_bit_is_noticed),
        TEST(mutation__queries__every_bit_is_noticed),
        TEST(mutation__general__every_bit_is_noticed),
    };
    const struct CMUnitTest ib_tests[] = {
        TEST_IB(mutation__init2rtr_ib__every_bit_is_noticed),
        TEST_IB(mutation__init2rtr_ib_grh__every_bit_is_noticed),
        TEST_IB(mutation__vport__every_bit_is_noticed),
    };
    int status = 1;
    pid_t pid;

    /* A process keeps the link layer that it saw first. */
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        return cmocka_run_group_tests(ib_tests, NULL, NULL);
    }
    if ((pid < 0) || (waitpid(pid, &status, 0) != pid) || (status != 0)) {
        fprintf(stderr, "the tests on IB failed\n");
        return 1;
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
