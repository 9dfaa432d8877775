/* SPDX-License-Identifier: BSD-3-Clause */

/* The command mailboxes, compared with bytes written by hand from the PRM. */

#include "golden.h"

#include "mlx5/cmd.h"

#include <errno.h>

#define MBOX_LEN 272 /* of every command with a context */

static void query_hca_cap__atomic_type__current_values(void **state)
{
    uint64_t in[2] = {0};

    (void)state;
    hx_cmd_fill_query_hca_cap(in, PRM_HCA_CAP_ATOMIC);
    GOLDEN(in, sizeof(in), {0x00, 0x01000000}, {0x04, 0x00000007});
    assert_int_equal(PRM_BYTES(query_hca_cap_in), sizeof(in));
    assert_int_equal(PRM_BYTES(query_hca_cap_out), 4112);
}

static void query_lag__always__opcode_only(void **state)
{
    uint64_t in[2] = {0};

    (void)state;
    hx_cmd_fill_query_lag(in);
    GOLDEN(in, sizeof(in), {0x00, 0x08420000});
    assert_int_equal(PRM_BYTES(query_lag_in), sizeof(in));
}

static void create_mkey__read_write__golden(void **state)
{
    const struct hx_cmd_mkey_attr attr = {
        .addr    = 0x7f1234567890,
        .len     = 0x12345,
        .pdn     = 0xabcdef,
        .umem_id = 0x1234,
        .access  = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                   IBV_ACCESS_REMOTE_WRITE,
        .tag     = 0x5a
    };
    uint64_t in[MBOX_LEN / 8] = {0};

    (void)state;
    hx_cmd_fill_create_mkey(in, &attr);
    GOLDEN(in, sizeof(in),
           {0x00, 0x02000000}, /* opcode */
           {0x0c, 0x40000000}, /* mkey_umem_valid */
           {0x10, 0x00003d00}, /* rw rr lw lr, MTT */
           {0x14, 0xffffff5a}, /* qpn, mkey_7_0 */
           {0x1c, 0x00abcdef}, /* pd */
           {0x20, 0x00007f12}, /* start_addr */
           {0x24, 0x34567890},
           {0x2c, 0x00012345}, /* len */
           {0x60, 0x00000001}, /* translations_octword_actual_size */
           {0x64, 0x00001234}); /* mkey_umem_id */
    assert_int_equal(PRM_BYTES(create_mkey_in), sizeof(in));
}

static void create_mkey__local_read__only_lr(void **state)
{
    const struct hx_cmd_mkey_attr attr = {.addr = 0x1000, .len = 1};
    uint64_t in[MBOX_LEN / 8]          = {0};

    (void)state;
    hx_cmd_fill_create_mkey(in, &attr);
    GOLDEN(in, sizeof(in), {0x00, 0x02000000}, {0x0c, 0x40000000},
           {0x10, 0x00000500}, {0x14, 0xffffff00}, {0x24, 0x00001000},
           {0x2c, 0x00000001}, {0x60, 0x00000001});
}

static void create_mkey__atomic_relaxed__bits_set(void **state)
{
    const struct hx_cmd_mkey_attr attr = {
        .len           = UINT64_C(0x100000000),
        .access        = IBV_ACCESS_REMOTE_ATOMIC,
        .relaxed_write = true,
        .relaxed_read  = true
    };
    uint64_t in[MBOX_LEN / 8] = {0};

    (void)state;
    hx_cmd_fill_create_mkey(in, &attr);
    GOLDEN(in, sizeof(in), {0x00, 0x02000000}, {0x0c, 0x40000000},
           {0x10, 0x00044500},  /* relaxed_ordering_write, a, lr, MTT */
           {0x14, 0xffffff00},
           {0x28, 0x00000001},  /* len, high */
           {0x48, 0x00000040},  /* relaxed_ordering_read */
           {0x60, 0x00000001});
}

static void create_cq__any__golden(void **state)
{
    const struct hx_cmd_cq_attr attr = {
        .umem_id     = 0x11,
        .dbr_umem_id = 0x22,
        .dbr_addr    = 0x300040000,
        .eqn         = 7,
        .uar_page    = 0x345678,
        .log_size    = 12
    };
    uint64_t in[MBOX_LEN / 8] = {0};

    (void)state;
    hx_cmd_fill_create_cq(in, &attr);
    GOLDEN(in, sizeof(in),
           {0x00, 0x04000000}, /* opcode */
           {0x10, 0x02000000}, /* dbr_umem_valid */
           {0x14, 0x00000022}, /* dbr_umem_id */
           {0x1c, 0x0c345678}, /* log_cq_size, uar_page */
           {0x24, 0x00000007}, /* c_eqn */
           {0x48, 0x00000003}, /* dbr_addr */
           {0x4c, 0x00040000},
           {0x58, 0x00000011}, /* cq_umem_id */
           {0x5c, 0x80000000}); /* cq_umem_valid */
    assert_int_equal(PRM_BYTES(create_cq_in), sizeof(in));
}

static void create_rmp__any__golden(void **state)
{
    const struct hx_cmd_rmp_attr attr = {
        .pdn         = 0x123,
        .umem_id     = 0x11,
        .dbr_umem_id = 0x22,
        .dbr_addr    = 0x8000,
        .log_size    = 10,
        .log_stride  = 5
    };
    uint64_t in[MBOX_LEN / 8] = {0};

    (void)state;
    hx_cmd_fill_create_rmp(in, &attr);
    GOLDEN(in, sizeof(in),
           {0x00, 0x090c0000}, /* opcode */
           {0x20, 0x00100000}, /* rmpc: state RDY */
           {0x58, 0x00000123}, /* pd */
           {0x64, 0x00008000}, /* dbr_addr */
           {0x70, 0x0005000a}, /* log_wq_stride, log_wq_sz */
           {0x74, 0xc0000000}, /* dbr_umem_valid, wq_umem_valid */
           {0x78, 0x00000022}, /* dbr_umem_id */
           {0x7c, 0x00000011}); /* wq_umem_id */
    assert_int_equal(PRM_BYTES(create_rmp_in), sizeof(in));
}

static void create_qp__with_rmp__golden(void **state)
{
    const struct hx_cmd_qp_attr attr = {
        .pdn         = 0x1,
        .uar_page    = 0x2,
        .cqn_snd     = 0x3,
        .cqn_rcv     = 0x4,
        .rq_type     = PRM_QPC_RQ_TYPE_SRQ,
        .rmpn        = 0x5,
        .log_sq_size = 8,
        .ts_format   = PRM_QPC_TS_FORMAT_DEFAULT,
        .user_index  = PRM_QPC_USER_INDEX_NONE,
        .umem_id     = 0x66,
        .dbr_umem_id = 0x77,
        .dbr_addr    = 0x4000
    };
    uint64_t in[MBOX_LEN / 8] = {0};

    (void)state;
    hx_cmd_fill_create_qp(in, &attr);
    GOLDEN(in, sizeof(in),
           {0x00, 0x05000000},  /* opcode */
           {0x18, 0x00001800},  /* qpc: st RC, pm_state MIGRATED */
           {0x1c, 0x00000001},  /* pd */
           {0x20, 0x00004040},  /* log_sq_size, ts_format */
           {0x24, 0x00000002},  /* uar_page */
           {0x28, 0x00ffffff},  /* user_index */
           {0x94, 0x00000003},  /* cqn_snd */
           {0xb4, 0x00000004},  /* cqn_rcv */
           {0xbc, 0x00004000},  /* dbr_addr */
           {0xc4, 0x01000005},  /* rq_type, srqn_rmpn_xrqn */
           {0xe8, 0x10000000},  /* dbr_umem_valid */
           {0xfc, 0x00000077},  /* dbr_umem_id */
           {0x108, 0x00000066}, /* wq_umem_id */
           {0x10c, 0x80000000}); /* wq_umem_valid */
    assert_int_equal(PRM_BYTES(create_qp_in), sizeof(in));
}

static void create_qp__no_receives__rq_type_3(void **state)
{
    const struct hx_cmd_qp_attr attr = {
        .rq_type     = PRM_QPC_RQ_TYPE_NONE,
        .log_sq_size = 15
    };
    uint64_t in[MBOX_LEN / 8] = {0};

    (void)state;
    hx_cmd_fill_create_qp(in, &attr);
    GOLDEN(in, sizeof(in), {0x00, 0x05000000}, {0x18, 0x00001800},
           {0x20, 0x00007800}, {0xc4, 0x03000000}, {0xe8, 0x10000000},
           {0x10c, 0x80000000});
}

static void rst2init__atomics__golden(void **state)
{
    const struct hx_cmd_rst2init_attr attr = {
        .port_num    = 1,
        .pkey_index  = 0xbeef,
        .atomic_mode = PRM_QPC_ATOMIC_MODE_EXT
    };
    uint64_t in[MBOX_LEN / 8] = {0};

    (void)state;
    hx_cmd_fill_rst2init_qp(in, 0x123456, &attr);
    GOLDEN(in, sizeof(in),
           {0x00, 0x05020000}, /* opcode */
           {0x08, 0x00123456}, /* qpn */
           {0x18, 0x00001800}, /* pm_state */
           {0x30, 0x0000beef}, /* pkey_index */
           {0x54, 0x00010000}, /* vhca_port_num */
           {0xa8, 0x0003e000}); /* atomic_mode, rre, rwe, rae */
    assert_int_equal(PRM_BYTES(rst2init_qp_in), sizeof(in));
}

static void rst2init__no_atomics__rae_clear(void **state)
{
    const struct hx_cmd_rst2init_attr attr = {.port_num = 2};
    uint64_t in[MBOX_LEN / 8]              = {0};

    (void)state;
    hx_cmd_fill_rst2init_qp(in, 1, &attr);
    GOLDEN(in, sizeof(in), {0x00, 0x05020000}, {0x08, 0x00000001},
           {0x18, 0x00001800}, {0x54, 0x00020000}, {0xa8, 0x0000c000});
}

static const uint8_t test_gid[16] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05,
                                     0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b,
                                     0x0c, 0x0d, 0x0e, 0x0f};

static void init2rtr__ib_with_grh__golden(void **state)
{
    struct hx_cmd_init2rtr_attr attr = {
        .remote_qpn     = 0x20,
        .rq_psn         = 0x30,
        .mtu            = IBV_MTU_4096,
        .log_msg_max    = 30,
        .log_rra_max    = 4,
        .min_rnr_nak    = 12,
        .atomic_mode    = PRM_QPC_ATOMIC_MODE_IB,
        .port_num       = 1,
        .sl             = 3,
        .grh            = true,
        .rlid           = 0x1234,
        .src_addr_index = 2,
        .hop_limit      = 64,
        .tclass         = 0x5a
    };
    uint64_t in[MBOX_LEN / 8] = {0};

    (void)state;
    memcpy(attr.rgid, test_gid, sizeof(test_gid));
    hx_cmd_fill_init2rtr_qp(in, 0x10, &attr);
    GOLDEN(in, sizeof(in),
           {0x00, 0x05030000}, /* opcode */
           {0x08, 0x00000010}, /* qpn */
           {0x10, 0x0000000e}, /* opt_param_mask: RRE, RAE, RWE */
           {0x18, 0x00001800}, /* pm_state */
           {0x20, 0xbe000000}, /* mtu, log_msg_max */
           {0x2c, 0x00000020}, /* remote_qpn */
           {0x34, 0x00801234}, /* grh, rlid */
           {0x38, 0x00020040}, /* src_addr_index, hop_limit */
           {0x3c, 0x05a00000}, /* tclass */
           {0x40, 0x00010203}, /* rgid */
           {0x44, 0x04050607},
           {0x48, 0x08090a0b},
           {0x4c, 0x0c0d0e0f},
           {0x54, 0x03010000}, /* sl, vhca_port_num */
           {0xa8, 0x0081e000}, /* log_rra_max, atomic_mode, rre, rwe, rae */
           {0xac, 0x0c000030}); /* min_rnr_nak, next_rcv_psn */
    assert_int_equal(PRM_BYTES(init2rtr_qp_in), sizeof(in));
}

static void init2rtr__ib_without_grh__lid_only(void **state)
{
    struct hx_cmd_init2rtr_attr attr = {
        .mtu            = IBV_MTU_1024,
        .log_msg_max    = 30,
        .port_num       = 1,
        .rlid           = 7,
        .src_addr_index = 2, /* what a GRH needs is left out */
        .hop_limit      = 64,
        .tclass         = 1
    };
    uint64_t in[MBOX_LEN / 8] = {0};

    (void)state;
    memcpy(attr.rgid, test_gid, sizeof(test_gid));
    hx_cmd_fill_init2rtr_qp(in, 0x10, &attr);
    GOLDEN(in, sizeof(in), {0x00, 0x05030000}, {0x08, 0x00000010},
           {0x10, 0x0000000a}, {0x18, 0x00001800}, {0x20, 0x7e000000},
           {0x34, 0x00000007}, {0x54, 0x00010000}, {0xa8, 0x0000c000});
}

static void init2rtr__roce_v2_with_lag__golden(void **state)
{
    struct hx_cmd_init2rtr_attr attr = {
        .remote_qpn     = 0xffffff,
        .mtu            = IBV_MTU_1024,
        .log_msg_max    = 30,
        .lag_tx_port    = 2,
        .port_num       = 1,
        .sl             = 5,
        .roce           = true,
        .rlid           = 0x1234, /* IB only: left out */
        .src_addr_index = 3,
        .hop_limit      = 1,
        .tclass         = 0xb8,
        .rmac           = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55},
        .dscp           = 0x2e,
        .udp_sport      = 0xc123
    };
    uint64_t in[MBOX_LEN / 8] = {0};

    (void)state;
    memcpy(attr.rgid, test_gid, sizeof(test_gid));
    hx_cmd_fill_init2rtr_qp(in, 0x10, &attr);
    GOLDEN(in, sizeof(in), {0x00, 0x05030000}, {0x08, 0x00000010},
           {0x10, 0x0000800a}, /* opt_param_mask: RRE, RWE, LAG_TX_AFF */
           {0x18, 0x02001800}, /* lag_tx_port_affinity, pm_state */
           {0x20, 0x7e000000}, {0x2c, 0x00ffffff},
           {0x38, 0x00030001}, /* src_addr_index, hop_limit */
           {0x3c, 0x0b800000}, /* tclass */
           {0x40, 0x00010203}, {0x44, 0x04050607}, {0x48, 0x08090a0b},
           {0x4c, 0x0c0d0e0f},
           {0x50, 0x002ec123}, /* dscp, udp_sport */
           {0x54, 0x50010211}, /* eth_prio, vhca_port_num, rmac_47_32 */
           {0x58, 0x22334455}, /* rmac_31_0 */
           {0xa8, 0x0000c000});
}

static void rtr2rts__any__golden(void **state)
{
    const struct hx_cmd_rtr2rts_attr attr = {
        .sq_psn      = 0xabcdef,
        .log_sra_max = 4,
        .retry_count = 7,
        .rnr_retry   = 6,
        .ack_timeout = 14
    };
    uint64_t in[MBOX_LEN / 8] = {0};

    (void)state;
    hx_cmd_fill_rtr2rts_qp(in, 0x10, &attr);
    GOLDEN(in, sizeof(in),
           {0x00, 0x05040000}, /* opcode */
           {0x08, 0x00000010}, /* qpn */
           {0x18, 0x00001800}, /* pm_state */
           {0x38, 0x70000000}, /* ack_timeout */
           {0x88, 0x0087c000}, /* log_sra_max, retry_count, rnr_retry */
           {0x90, 0x00abcdef}); /* next_send_psn */
    assert_int_equal(PRM_BYTES(rtr2rts_qp_in), sizeof(in));
}

static void to_err__any__golden(void **state)
{
    uint64_t in[2] = {0};

    (void)state;
    hx_cmd_fill_2err_qp(in, 0x123456);
    GOLDEN(in, sizeof(in), {0x00, 0x05070000}, {0x08, 0x00123456});
    assert_int_equal(PRM_BYTES(qp_2err_in), sizeof(in));
}

static void outputs__object_number__low_24_bits_of_dword_2(void **state)
{
    uint64_t out[2] = {0};

    (void)state;
    golden_bits(out, 0x48, 24, 1);
    assert_int_equal(PRM_GET(create_mkey_out, out, mkey_index), 0xffffff);
    assert_int_equal(PRM_GET(create_cq_out, out, cqn), 0xffffff);
    assert_int_equal(PRM_GET(create_rmp_out, out, rmpn), 0xffffff);
    assert_int_equal(PRM_GET(create_qp_out, out, qpn), 0xffffff);
    assert_int_equal(PRM_GET(mbox_out, out, status), 0);
    assert_int_equal(PRM_GET(mbox_out, out, syndrome), 0);
    assert_int_equal(PRM_BYTES(create_mkey_out), sizeof(out));
}

static void outputs__lag_state__low_bits_of_dword_2(void **state)
{
    uint64_t out[2] = {0};

    (void)state;
    golden_bits(out, 0x40 + 0x1d, 3, 1);
    assert_int_equal(PRM_GET(query_lag_out, out, ctx.lag_state), 7);
}

static void cmd_errno__kernel_error__itself(void **state)
{
    uint64_t out[2] = {0};

    (void)state;
    golden_bits(out, 0, 8, 1);
    assert_int_equal(hx_cmd_errno(ENOSPC, out), -ENOSPC);
    assert_int_equal(hx_cmd_errno(0, out), -EIO);
}

static void cmd_errno__refused__by_status(void **state)
{
    static const struct {
        uint8_t status;
        int     ret;
    } cases[] = {
        {0x01, -EIO},    {0x02, -EINVAL}, {0x03, -EINVAL}, {0x04, -EIO},
        {0x05, -EINVAL}, {0x06, -EBUSY},  {0x08, -ENOMEM}, {0x09, -EINVAL},
        {0x0a, -EINVAL}, {0x0f, -EAGAIN}, {0x10, -EINVAL}, {0x30, -EINVAL},
        {0x40, -EINVAL}, {0x50, -EIO},    {0x51, -EIO},    {0x00, -EIO},
        {0xff, -EIO}
    };
    uint8_t out[16] = {0};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        out[0] = cases[i].status;
        assert_int_equal(hx_cmd_errno(EREMOTEIO, out), cases[i].ret);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(query_hca_cap__atomic_type__current_values),
        cmocka_unit_test(query_lag__always__opcode_only),
        cmocka_unit_test(create_mkey__read_write__golden),
        cmocka_unit_test(create_mkey__local_read__only_lr),
        cmocka_unit_test(create_mkey__atomic_relaxed__bits_set),
        cmocka_unit_test(create_cq__any__golden),
        cmocka_unit_test(create_rmp__any__golden),
        cmocka_unit_test(create_qp__with_rmp__golden),
        cmocka_unit_test(create_qp__no_receives__rq_type_3),
        cmocka_unit_test(rst2init__atomics__golden),
        cmocka_unit_test(rst2init__no_atomics__rae_clear),
        cmocka_unit_test(init2rtr__ib_with_grh__golden),
        cmocka_unit_test(init2rtr__ib_without_grh__lid_only),
        cmocka_unit_test(init2rtr__roce_v2_with_lag__golden),
        cmocka_unit_test(rtr2rts__any__golden),
        cmocka_unit_test(to_err__any__golden),
        cmocka_unit_test(outputs__object_number__low_24_bits_of_dword_2),
        cmocka_unit_test(outputs__lag_state__low_bits_of_dword_2),
        cmocka_unit_test(cmd_errno__kernel_error__itself),
        cmocka_unit_test(cmd_errno__refused__by_status),
    };

    return cmocka_run_group_tests_name("cmd", tests, NULL, NULL);
}
