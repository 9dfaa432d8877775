/* SPDX-License-Identifier: BSD-3-Clause */

/* The connection manager's wire format: golden bytes written by hand, and
 * every truncation and every changed field. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include <uct_hixl/hixl_cm_proto.h>

#define KEY 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, \
            0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f

/* 192.0.2.7 and 2001:db8::9, port 0x1234 */
#define ADDR 1, 2, KEY, 0x12, 0x34, 2, \
             192, 0, 2, 7, \
             0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9
#define ADDR_LEN 41

#define QP_ADDR 0xa1, 0xa2, 0xa3, 0xb1, 0xb2, 0xb3
#define DEV_ADDR 0x31, 0x01, 0x02, \
                 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, \
                 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8

#define HEAD(_type, _length) 'H', 'X', 'C', 'M', 1, _type, 0, _length

static const uint8_t key[] = {KEY};
static const uint8_t golden_addr[] = {ADDR};
static const uint8_t golden_hello[] = {
    HEAD(1, 16 + 6 + 27 + 1 + ADDR_LEN), KEY, QP_ADDR, DEV_ADDR, ADDR_LEN, ADDR
};
static const uint8_t golden_accept[]     = {HEAD(2, 33), QP_ADDR, DEV_ADDR};
static const uint8_t golden_reject[]     = {HEAD(3, 1), 2};
static const uint8_t golden_ready[]      = {HEAD(4, 0)};
static const uint8_t golden_bye[]        = {HEAD(5, 4), 1, 2, 3, 4};
static const uint8_t golden_bye_ack[]    = {HEAD(6, 4), 1, 2, 3, 4};
static const uint8_t golden_bye_in_use[] = {HEAD(7, 4), 1, 2, 3, 4};
static const uint8_t golden_leave[]      = {HEAD(8, 0)};

#define GOLDEN(_name) {golden_ ## _name, sizeof(golden_ ## _name)}

static const struct {
    const uint8_t *bytes;
    size_t        length;
} golden[] = {
    [UCT_HIXL_CM_MSG_HELLO]      = GOLDEN(hello),
    [UCT_HIXL_CM_MSG_ACCEPT]     = GOLDEN(accept),
    [UCT_HIXL_CM_MSG_REJECT]     = GOLDEN(reject),
    [UCT_HIXL_CM_MSG_READY]      = GOLDEN(ready),
    [UCT_HIXL_CM_MSG_BYE]        = GOLDEN(bye),
    [UCT_HIXL_CM_MSG_BYE_ACK]    = GOLDEN(bye_ack),
    [UCT_HIXL_CM_MSG_BYE_IN_USE] = GOLDEN(bye_in_use),
    [UCT_HIXL_CM_MSG_LEAVE]      = GOLDEN(leave)
};

static uct_hixl_cm_addr_t make_addr(void)
{
    static const uint8_t v6[] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0,
                                 0, 0, 0, 0, 0, 0, 0, 9};
    uct_hixl_cm_addr_t addr   = {
        .port    = 0x1234,
        .num_ips = 2,
        .ip      = {{.bytes = {192, 0, 2, 7}}, {.is_v6 = 1}}
    };

    memcpy(addr.key, key, sizeof(key));
    memcpy(addr.ip[1].bytes, v6, sizeof(v6));
    return addr;
}

static uct_hixl_cm_msg_t make_msg(unsigned type)
{
    static const uint8_t qp_addr[]  = {QP_ADDR};
    static const uint8_t dev_addr[] = {DEV_ADDR};
    uct_hixl_cm_msg_t msg           = {
        .type       = type,
        .addr_len   = ADDR_LEN,
        .reason     = UCT_HIXL_CM_REJECT_PATH,
        .generation = 0x01020304
    };

    memcpy(msg.key, key, sizeof(key));
    memcpy(&msg.qp_addr, qp_addr, sizeof(qp_addr));
    memcpy(&msg.dev_addr, dev_addr, sizeof(dev_addr));
    memcpy(msg.addr, golden_addr, sizeof(golden_addr));
    return msg;
}

/* At the end of a block of its own, so that a sanitizer sees a byte too far */
static ucs_status_t parse_msg(const uint8_t *bytes, size_t length,
                              uct_hixl_cm_msg_t *msg_p, size_t *length_p)
{
    uint8_t *copy = test_malloc(length + 1);
    ucs_status_t status;

    memcpy(copy + 1, bytes, length);
    status = uct_hixl_cm_msg_parse(copy + 1, length, msg_p, length_p);
    test_free(copy);
    return status;
}

static ucs_status_t parse_addr(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = test_malloc(length + 1);
    uct_hixl_cm_addr_t addr;
    ucs_status_t status;
    size_t used;

    memcpy(copy + 1, bytes, length);
    status = uct_hixl_cm_addr_parse(copy + 1, length, &addr, &used);
    test_free(copy);
    return status;
}

static void addr_pack__two_ips__golden_bytes(void **state)
{
    uct_hixl_cm_addr_t addr = make_addr();
    uint8_t buf[UCT_HIXL_IFACE_ADDR_MAX];

    (void)state;
    assert_int_equal(uct_hixl_cm_addr_pack(&addr, buf), ADDR_LEN);
    assert_memory_equal(buf, golden_addr, ADDR_LEN);
}

static void addr_pack__two_ipv6__fits_limit(void **state)
{
    uct_hixl_cm_addr_t addr = make_addr();
    uint8_t buf[UCT_HIXL_IFACE_ADDR_MAX];

    (void)state;
    addr.ip[0] = addr.ip[1];
    assert_int_equal(uct_hixl_cm_addr_pack(&addr, buf), 53);
    assert_int_equal(parse_addr(buf, 53), UCS_OK);
}

static void addr_parse__golden_bytes__all_fields(void **state)
{
    uct_hixl_cm_addr_t expected = make_addr();
    uint8_t buf[UCT_HIXL_IFACE_ADDR_MAX];
    uct_hixl_cm_addr_t addr;
    size_t length;

    (void)state;
    memset(buf, 0xff, sizeof(buf)); /* what follows is somebody else's */
    memcpy(buf, golden_addr, ADDR_LEN);
    assert_int_equal(uct_hixl_cm_addr_parse(buf, sizeof(buf), &addr, &length),
                     UCS_OK);
    assert_int_equal(length, ADDR_LEN);
    assert_memory_equal(&addr, &expected, sizeof(addr));
}

static void addr_parse__every_truncation__refused(void **state)
{
    size_t length;

    (void)state;
    for (length = 0; length < ADDR_LEN; ++length) {
        assert_int_equal(parse_addr(golden_addr, length),
                         UCS_ERR_INVALID_ADDR);
    }
}

static void addr_parse__bad_field__refused(void **state)
{
    static const struct {
        unsigned offset;
        uint8_t  value;
    } bad[] = {
        {0, 0}, {0, 2}, {0, 0xff},           /* version */
        {1, 4}, {1, 0x80}, {1, 0xfe},        /* flags that do not exist */
        {20, 0}, {20, 3}, {20, 0xff}         /* number of IPs */
    };
    uint8_t buf[ADDR_LEN];
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        memcpy(buf, golden_addr, ADDR_LEN);
        buf[bad[i].offset] = bad[i].value;
        assert_int_equal(parse_addr(buf, ADDR_LEN), UCS_ERR_INVALID_ADDR);
    }

    memcpy(buf, golden_addr, ADDR_LEN);
    memset(&buf[18], 0, 2); /* no port */
    assert_int_equal(parse_addr(buf, ADDR_LEN), UCS_ERR_INVALID_ADDR);

    memcpy(buf, golden_addr, ADDR_LEN);
    memset(&buf[21], 0, 4); /* 0.0.0.0 */
    assert_int_equal(parse_addr(buf, ADDR_LEN), UCS_ERR_INVALID_ADDR);

    memcpy(buf, golden_addr, ADDR_LEN);
    memset(&buf[25], 0, 16); /* :: */
    assert_int_equal(parse_addr(buf, ADDR_LEN), UCS_ERR_INVALID_ADDR);

    memcpy(buf, golden_addr, ADDR_LEN);
    buf[20] = 1; /* a flag for an IP that is not there */
    assert_int_equal(parse_addr(buf, ADDR_LEN), UCS_ERR_INVALID_ADDR);
}

static void msg_pack__every_type__golden_bytes(void **state)
{
    uint8_t buf[UCT_HIXL_CM_MSG_MAX];
    uct_hixl_cm_msg_t msg;
    unsigned type;

    (void)state;
    for (type = UCT_HIXL_CM_MSG_HELLO; type < UCT_HIXL_CM_MSG_LAST; ++type) {
        msg = make_msg(type);
        assert_int_equal(uct_hixl_cm_msg_pack(&msg, buf),
                         golden[type].length);
        assert_memory_equal(buf, golden[type].bytes, golden[type].length);
    }
}

static void msg_parse__every_type__its_fields(void **state)
{
    uct_hixl_cm_msg_t expected, msg;
    unsigned type;
    size_t length;

    (void)state;
    for (type = UCT_HIXL_CM_MSG_HELLO; type < UCT_HIXL_CM_MSG_LAST; ++type) {
        expected = make_msg(type);
        assert_int_equal(parse_msg(golden[type].bytes, golden[type].length,
                                   &msg, &length), UCS_OK);
        assert_int_equal(length, golden[type].length);
        assert_int_equal(msg.type, type);

        if (type == UCT_HIXL_CM_MSG_HELLO) {
            assert_memory_equal(msg.key, expected.key, sizeof(msg.key));
            assert_int_equal(msg.addr_len, ADDR_LEN);
            assert_memory_equal(msg.addr, expected.addr, ADDR_LEN);
        }

        if (type <= UCT_HIXL_CM_MSG_ACCEPT) {
            assert_memory_equal(&msg.qp_addr, &expected.qp_addr,
                                sizeof(msg.qp_addr));
            assert_memory_equal(&msg.dev_addr, &expected.dev_addr,
                                sizeof(msg.dev_addr));
        }

        if (type == UCT_HIXL_CM_MSG_REJECT) {
            assert_int_equal(msg.reason, expected.reason);
        }

        if ((type >= UCT_HIXL_CM_MSG_BYE) &&
            (type <= UCT_HIXL_CM_MSG_BYE_IN_USE)) {
            assert_int_equal(msg.generation, expected.generation);
        }
    }
}

static void msg_parse__every_truncation__wants_more(void **state)
{
    uct_hixl_cm_msg_t msg;
    size_t length, used;
    unsigned type;

    (void)state;
    for (type = UCT_HIXL_CM_MSG_HELLO; type < UCT_HIXL_CM_MSG_LAST; ++type) {
        for (length = 0; length < golden[type].length; ++length) {
            assert_int_equal(parse_msg(golden[type].bytes, length, &msg,
                                       &used), UCS_INPROGRESS);
        }
    }
}

static void msg_parse__two_messages__first_one(void **state)
{
    static const uint8_t both[] = {HEAD(4, 0), HEAD(5, 4), 0, 0, 0, 9};
    uct_hixl_cm_msg_t msg;
    size_t length;

    (void)state;
    assert_int_equal(parse_msg(both, sizeof(both), &msg, &length), UCS_OK);
    assert_int_equal(msg.type, UCT_HIXL_CM_MSG_READY);
    assert_int_equal(length, 8);
}

/* Refused as soon as the wrong byte is there, whatever is still to come */
static void msg_parse__wrong_header_byte__refused_at_once(void **state)
{
    uint8_t buf[sizeof(golden_hello)];
    uct_hixl_cm_msg_t msg;
    unsigned offset, value;
    size_t length, used;

    (void)state;
    for (offset = 0; offset < 6; ++offset) {
        for (value = 0; value < 256; ++value) {
            memcpy(buf, golden_hello, sizeof(buf));
            if ((value == buf[offset]) ||
                ((offset == 5) && (value >= UCT_HIXL_CM_MSG_HELLO) &&
                 (value < UCT_HIXL_CM_MSG_LAST))) {
                continue;
            }

            buf[offset] = value;
            for (length = offset + 1; length <= sizeof(buf); ++length) {
                assert_int_equal(parse_msg(buf, length, &msg, &used),
                                 UCS_ERR_INVALID_PARAM);
            }
        }
    }
}

static void msg_parse__wrong_length__refused_before_the_body(void **state)
{
    static const struct {
        unsigned min, max;
    } allowed[] = {
        [UCT_HIXL_CM_MSG_HELLO]      = {50, 113},
        [UCT_HIXL_CM_MSG_ACCEPT]     = {33, 33},
        [UCT_HIXL_CM_MSG_REJECT]     = {1, 1},
        [UCT_HIXL_CM_MSG_READY]      = {0, 0},
        [UCT_HIXL_CM_MSG_BYE]        = {4, 4},
        [UCT_HIXL_CM_MSG_BYE_ACK]    = {4, 4},
        [UCT_HIXL_CM_MSG_BYE_IN_USE] = {4, 4},
        [UCT_HIXL_CM_MSG_LEAVE]      = {0, 0}
    };
    uint8_t head[8] = {HEAD(0, 0)};
    uct_hixl_cm_msg_t msg;
    unsigned type, length;
    ucs_status_t status;
    size_t used;

    (void)state;
    for (type = UCT_HIXL_CM_MSG_HELLO; type < UCT_HIXL_CM_MSG_LAST; ++type) {
        head[5] = type;
        for (length = 0; length <= UINT16_MAX; ++length) {
            head[6] = length >> 8;
            head[7] = length;
            status  = parse_msg(head, sizeof(head), &msg, &used);
            if ((length < allowed[type].min) || (length > allowed[type].max)) {
                assert_int_equal(status, UCS_ERR_INVALID_PARAM);
            } else {
                assert_int_equal(status, (length == 0) ? UCS_OK :
                                                         UCS_INPROGRESS);
            }
        }
    }
}

static void msg_parse__hello_address_length_differs__refused(void **state)
{
    uint8_t buf[sizeof(golden_hello)];
    uct_hixl_cm_msg_t msg;
    unsigned value;
    size_t used;

    (void)state;
    for (value = 0; value < 256; ++value) {
        memcpy(buf, golden_hello, sizeof(buf));
        buf[8 + 16 + 6 + 27] = value;
        assert_int_equal(parse_msg(buf, sizeof(buf), &msg, &used),
                         (value == ADDR_LEN) ? UCS_OK : UCS_ERR_INVALID_PARAM);
    }
}

/* The address inside is shorter than HELLO says */
static void msg_parse__hello_address_ends_early__refused(void **state)
{
    uint8_t buf[sizeof(golden_hello)];
    uct_hixl_cm_msg_t msg;
    size_t used;

    (void)state;
    memcpy(buf, golden_hello, sizeof(buf));
    buf[sizeof(buf) - ADDR_LEN + 20] = 1; /* one IP */
    buf[sizeof(buf) - ADDR_LEN + 1]  = 0;
    assert_int_equal(parse_msg(buf, sizeof(buf), &msg, &used),
                     UCS_ERR_INVALID_PARAM);
}

static void msg_parse__refused__outputs_untouched(void **state)
{
    uct_hixl_cm_msg_t untouched, msg;
    uint8_t buf[sizeof(golden_hello)];
    size_t used = 77;

    (void)state;
    memset(&msg, 0x5a, sizeof(msg));
    memset(&untouched, 0x5a, sizeof(untouched));
    memcpy(buf, golden_hello, sizeof(buf));
    buf[sizeof(buf) - ADDR_LEN] = 9; /* the address's version */
    assert_int_equal(parse_msg(buf, sizeof(buf), &msg, &used),
                     UCS_ERR_INVALID_PARAM);
    assert_int_equal(used, 77);
    assert_memory_equal(&msg, &untouched, sizeof(msg));
}

static void key_equal__any_bit_differs__not_equal(void **state)
{
    uint8_t other[UCT_HIXL_CM_KEY_LEN];
    unsigned bit;

    (void)state;
    memcpy(other, key, sizeof(other));
    assert_true(uct_hixl_cm_key_equal(key, other));
    for (bit = 0; bit < 8 * sizeof(other); ++bit) {
        other[bit / 8] ^= 1 << (bit % 8);
        assert_false(uct_hixl_cm_key_equal(key, other));
        other[bit / 8] ^= 1 << (bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addr_pack__two_ips__golden_bytes),
        cmocka_unit_test(addr_pack__two_ipv6__fits_limit),
        cmocka_unit_test(addr_parse__golden_bytes__all_fields),
        cmocka_unit_test(addr_parse__every_truncation__refused),
        cmocka_unit_test(addr_parse__bad_field__refused),
        cmocka_unit_test(msg_pack__every_type__golden_bytes),
        cmocka_unit_test(msg_parse__every_type__its_fields),
        cmocka_unit_test(msg_parse__every_truncation__wants_more),
        cmocka_unit_test(msg_parse__two_messages__first_one),
        cmocka_unit_test(msg_parse__wrong_header_byte__refused_at_once),
        cmocka_unit_test(msg_parse__wrong_length__refused_before_the_body),
        cmocka_unit_test(msg_parse__hello_address_length_differs__refused),
        cmocka_unit_test(msg_parse__hello_address_ends_early__refused),
        cmocka_unit_test(msg_parse__refused__outputs_untouched),
        cmocka_unit_test(key_equal__any_bit_differs__not_equal)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
