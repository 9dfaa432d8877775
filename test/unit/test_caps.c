/* SPDX-License-Identifier: BSD-3-Clause */

/* Capabilities: every field at its place, and what makes a device usable. */

#include "golden.h"

#include "mlx5/caps.h"
#include "mlx5/prm.h"

#define CAP_LEN 4096

typedef void (*decode_fn)(const void *cap, struct hx_caps *caps);

struct field {
    const char *name;
    unsigned    off;   /* bits, as in the PRM's table */
    unsigned    width;
    uint32_t    (*get)(const struct hx_caps *caps);
};

#define GETTER(_fld) \
    static uint32_t get_##_fld(const struct hx_caps *caps) \
    { \
        return caps->_fld; \
    }

#define FIELD(_fld, _off, _width) {#_fld, _off, _width, get_##_fld}

GETTER(log_max_uctx)
GETTER(log_max_umem)
GETTER(log_max_qp_sz)
GETTER(log_max_cq_sz)
GETTER(log_max_ra_req_qp)
GETTER(log_max_ra_res_qp)
GETTER(log_max_msg)
GETTER(log_max_rmp)
GETTER(cqe_version)
GETTER(num_ports)
GETTER(max_wqe_sz_sq)
GETTER(atomic)
GETTER(cq_oi)
GETTER(ece)
GETTER(fixed_buffer_size)
GETTER(init2_lag_tx_port_affinity)
GETTER(num_lag_ports)
GETTER(roce)
GETTER(r_roce_min_src_udp_port)
GETTER(r_roce_max_src_udp_port)
GETTER(qp_ts_format)
GETTER(mkc_order_write_after_write_ro_only)
GETTER(relaxed_ordering_write)
GETTER(atomic_operations)
GETTER(atomic_size_qp)

static const struct field general[] = {
    FIELD(log_max_qp_sz, 0x88, 8),
    FIELD(ece, 0xa3, 1),
    FIELD(log_max_cq_sz, 0xc8, 8),
    FIELD(relaxed_ordering_write, 0xe8, 1),
    FIELD(fixed_buffer_size, 0x108, 1),
    FIELD(log_max_ra_req_qp, 0x14a, 6),
    FIELD(log_max_ra_res_qp, 0x15a, 6),
    FIELD(num_ports, 0x1b8, 8),
    FIELD(log_max_msg, 0x1c3, 5),
    FIELD(init2_lag_tx_port_affinity, 0x1f8, 1),
    FIELD(cqe_version, 0x1fc, 4),
    FIELD(roce, 0x21d, 1),
    FIELD(atomic, 0x21e, 1),
    FIELD(cq_oi, 0x220, 1),
    FIELD(num_lag_ports, 0x27c, 4),
    FIELD(max_wqe_sz_sq, 0x290, 16),
    FIELD(log_max_rmp, 0x383, 5),
    FIELD(mkc_order_write_after_write_ro_only, 0x3a9, 1),
    FIELD(log_max_uctx, 0x463, 5),
    FIELD(log_max_umem, 0x46b, 5),
};

static const struct field atomics[] = {
    FIELD(atomic_operations, 0x90, 16),
    FIELD(atomic_size_qp, 0xb0, 16),
};

static const struct field roce_fields[] = {
    FIELD(qp_ts_format, 0x1e, 2),
    FIELD(r_roce_max_src_udp_port, 0xc0, 16),
    FIELD(r_roce_min_src_udp_port, 0xd0, 16),
};

/* A field is exactly its bits: all of them and no other */
static void check_fields(decode_fn decode, const struct field *fields, size_t n)
{
    uint64_t cap[CAP_LEN / 8];
    struct hx_caps caps;
    size_t i;

    for (i = 0; i < n; ++i) {
        const struct field *field = &fields[i];

        memset(cap, 0, sizeof(cap));
        memset(&caps, 0, sizeof(caps));
        golden_bits(cap, field->off, field->width, 1);
        decode(cap, &caps);
        if (field->get(&caps) != (UINT32_C(1) << field->width) - 1) {
            fail_msg("%s: 0x%x of its own bits", field->name,
                     field->get(&caps));
        }

        memset(cap, 0xff, sizeof(cap));
        golden_bits(cap, field->off, field->width, 0);
        decode(cap, &caps);
        if (field->get(&caps) != 0) {
            fail_msg("%s: 0x%x of other bits", field->name, field->get(&caps));
        }
    }
}

static void decode_general__each_field__its_bits_only(void **state)
{
    (void)state;
    check_fields(hx_caps_decode_general, general,
                 sizeof(general) / sizeof(general[0]));
}

static void decode_atomic__each_field__its_bits_only(void **state)
{
    (void)state;
    check_fields(hx_caps_decode_atomic, atomics,
                 sizeof(atomics) / sizeof(atomics[0]));
}

static void decode_roce__each_field__its_bits_only(void **state)
{
    (void)state;
    check_fields(hx_caps_decode_roce, roce_fields,
                 sizeof(roce_fields) / sizeof(roce_fields[0]));
}

static void decode_general__port_type__ethernet_is_1(void **state)
{
    uint64_t cap[CAP_LEN / 8] = {0};
    struct hx_caps caps       = {0};

    (void)state;
    hx_caps_decode_general(cap, &caps);
    assert_false(caps.port_type_roce);

    golden_bits(cap, 0x1b7, 1, 1); /* the low bit of two */
    hx_caps_decode_general(cap, &caps);
    assert_true(caps.port_type_roce);
}

static void decode_general__relaxed_read__either_bit(void **state)
{
    uint64_t cap[CAP_LEN / 8] = {0};
    struct hx_caps caps       = {0};

    (void)state;
    hx_caps_decode_general(cap, &caps);
    assert_false(caps.relaxed_ordering_read);

    golden_bits(cap, 0xe9, 1, 1);
    hx_caps_decode_general(cap, &caps);
    assert_true(caps.relaxed_ordering_read);

    golden_bits(cap, 0xe9, 1, 0);
    golden_bits(cap, 0x32a, 1, 1);
    hx_caps_decode_general(cap, &caps);
    assert_true(caps.relaxed_ordering_read);
}

static void decode_atomic__endianness_mode__any_bit(void **state)
{
    uint64_t cap[CAP_LEN / 8] = {0};
    struct hx_caps caps       = {0};

    (void)state;
    hx_caps_decode_atomic(cap, &caps);
    assert_false(caps.atomic_req_8B_endianness_mode);
    golden_bits(cap, 0x41, 1, 1);
    hx_caps_decode_atomic(cap, &caps);
    assert_true(caps.atomic_req_8B_endianness_mode);
}

static struct hx_caps usable_caps(void)
{
    return (struct hx_caps) {
        .log_max_uctx  = 4,
        .log_max_umem  = 8,
        .log_max_rmp   = 1,
        .log_max_msg   = 30,
        .cqe_version   = 1,
        .max_wqe_sz_sq = 256
    };
}

static void missing__minimum__nothing(void **state)
{
    struct hx_caps caps = usable_caps();

    (void)state;
    assert_null(hx_caps_missing(&caps));
}

static void missing__one_below_the_minimum__named(void **state)
{
    struct hx_caps caps;

    (void)state;
#define LACKS(_fld, _value, _word) \
    caps      = usable_caps(); \
    caps._fld = _value; \
    assert_non_null(hx_caps_missing(&caps)); \
    assert_non_null(strstr(hx_caps_missing(&caps), _word))

    LACKS(log_max_uctx, 0, "log_max_uctx");
    LACKS(log_max_umem, 0, "log_max_umem");
    LACKS(log_max_rmp, 0, "log_max_rmp");
    LACKS(log_max_msg, 29, "log_max_msg");
    LACKS(cqe_version, 0, "cqe_version");
    LACKS(max_wqe_sz_sq, 255, "max_wqe_sz_sq");
#undef LACKS
}

static void atomic_mode__by_operations_and_sizes(void **state)
{
    static const struct {
        bool     atomic;
        uint16_t operations;
        uint16_t sizes;
        uint8_t  mode;
    } cases[] = {
        {false, 0xf, 12, PRM_QPC_ATOMIC_MODE_NONE},
        {true, 0xf, 12, PRM_QPC_ATOMIC_MODE_EXT},
        {true, 0x3, 12, PRM_QPC_ATOMIC_MODE_IB},
        {true, 0xf, 8, PRM_QPC_ATOMIC_MODE_IB},
        {true, 0xf, 4, PRM_QPC_ATOMIC_MODE_NONE},
        {true, 0x1, 8, PRM_QPC_ATOMIC_MODE_NONE},
        {true, 0x2, 8, PRM_QPC_ATOMIC_MODE_NONE},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        struct hx_caps caps = {
            .atomic            = cases[i].atomic,
            .atomic_operations = cases[i].operations,
            .atomic_size_qp    = cases[i].sizes
        };

        assert_int_equal(hx_caps_atomic_mode(&caps), cases[i].mode);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_general__each_field__its_bits_only),
        cmocka_unit_test(decode_atomic__each_field__its_bits_only),
        cmocka_unit_test(decode_roce__each_field__its_bits_only),
        cmocka_unit_test(decode_general__port_type__ethernet_is_1),
        cmocka_unit_test(decode_general__relaxed_read__either_bit),
        cmocka_unit_test(decode_atomic__endianness_mode__any_bit),
        cmocka_unit_test(missing__minimum__nothing),
        cmocka_unit_test(missing__one_below_the_minimum__named),
        cmocka_unit_test(atomic_mode__by_operations_and_sizes),
    };

    return cmocka_run_group_tests_name("caps", tests, NULL, NULL);
}
