/* SPDX-License-Identifier: BSD-3-Clause */

/* Firmware commands that the emulated device's kernel or firmware refuses, and
 * with which verdict. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include "vhca_devx_fixture.h"

/* ---- verdicts ---- */

static void create__too_short__bad_input_length(void **state)
{
    struct fixture *f = *state;

    fix_refused(f, fix_create(f, fix_cq, MBOX - 1), VHCA_FW_BAD_INPUT_LEN,
                VHCA_SYN_INLEN);
}

static void create__bytes_behind__bad_input_length(void **state)
{
    struct fixture *f       = *state;
    uint8_t in[MBOX + 16]   = {0};

    memcpy(in, fix_cq, MBOX);
    assert_int_equal(fix_create(f, in, sizeof(in)), 0);
    fix_nic.calls = 0;
    in[MBOX + 7]  = 1;
    fix_refused(f, fix_create(f, in, sizeof(in)), VHCA_FW_BAD_INPUT_LEN,
                VHCA_SYN_INLEN);
}

static void query_hca_cap__small_output__bad_output_length(void **state)
{
    static const uint8_t in[16] = {0x01, 0x00, [7] = 0x01};
    struct fixture *f           = *state;
    struct ib_uverbs_attr attrs[] = {
        {.attr_id = 0x1000, .len = sizeof(in), .data = (uintptr_t)in},
        {.attr_id = 0x1001, .len = 2063, .data = (uintptr_t)f->out},
    };

    fix_refused(f,
                fix_call(f, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER,
                         attrs, 2),
                VHCA_FW_BAD_OUTPUT_LEN, VHCA_SYN_OUTLEN);
    /* half a page, a whole one */
    attrs[1].len = 2064;
    f->out[2064] = 0xee;
    assert_int_equal(fix_call(f, MLX5_IB_OBJECT_DEVX,
                              MLX5_IB_METHOD_DEVX_OTHER, attrs, 2), 0);
    assert_int_equal(f->out[16 + 0x1c0 / 8] & 0x1f, 30); /* log_max_msg */
    assert_int_equal(f->out[2064], 0xee);
    attrs[1].len = 4112;
    assert_int_equal(fix_call(f, MLX5_IB_OBJECT_DEVX,
                              MLX5_IB_METHOD_DEVX_OTHER, attrs, 2), 0);
    assert_int_equal(f->out[16 + 0x1c0 / 8] & 0x1f, 30); /* log_max_msg */
    assert_int_equal(f->out[16 + 0x1f8 / 8] & 0x0f, 1);  /* cqe_version */
}

static void create_mkey__header_and_context__is_the_kernels_minimum(
        void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    fix_mkey_mailbox(f, in);
    assert_int_equal(fix_create(f, in, 79), -EINVAL);
    fix_refused(f, fix_create(f, in, 80), VHCA_FW_BAD_INPUT_LEN,
                VHCA_SYN_INLEN);
}

static void create_mkey__umem_unknown_or_too_small__is_refused(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    fix_mkey_mailbox(f, in);
    in[0x67] = 0x04;
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_RESOURCE,
                VHCA_SYN_UMEM);

    fix_mkey_mailbox(f, in);
    fix_put_be64(&in[0x28], UMEM_LEN - 4096 + 1);
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM,
                VHCA_SYN_UMEM_SIZE);

    fix_mkey_mailbox(f, in);
    fix_put_be64(&in[0x68], ~4095ull); /* offset + len wraps */
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM,
                VHCA_SYN_UMEM_SIZE);
}

static void create_mkey__address_does_not_fit_the_page__317175(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    fix_mkey_mailbox(f, in);
    fix_put_be64(&in[0x20], (uintptr_t)f->mem + 4096 + 8);
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM, 0x317175);
}

static void create_mkey__large_page_umem_at_odd_place__317175(void **state)
{
    struct fixture *f = *state;
    struct vhca_uobj *umem;
    uint8_t in[MBOX];
    uint64_t start = ((uintptr_t)f->mem + 0x7fff) & ~0x7fffull;

    /* 32 KiB that begin in the middle of 32 KiB of addresses: with every page
     * size allowed the device takes one page, and the address does not fit. */
    start += ((start + 0x1000 + 0x8000) <= (uintptr_t)f->mem + UMEM_LEN) ?
             0x1000 : -0x7000ull;
    assert_int_equal(vhca_umem_reg(&f->ctx, start, 0x8000, 1, ~0xfffull,
                                   &umem), 0);
    assert_int_equal(umem->umem.page_size, 0x8000);
    fix_mkey_mailbox(f, in);
    in[0x67] = (uint8_t)umem->handle;
    fix_put_be64(&in[0x20], start);
    fix_put_be64(&in[0x28], 0x8000);
    fix_put_be64(&in[0x68], 0);
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM, 0x317175);

    /* with the bitmap capped it does */
    assert_int_equal(vhca_umem_reg(&f->ctx, start, 0x8000, 1, 0x1000, &umem),
                     0);
    in[0x67] = (uint8_t)umem->handle;
    assert_int_equal(fix_create(f, in, MBOX), 0);
}

static void create_mkey__other_pd_or_mode__is_refused(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    fix_mkey_mailbox(f, in);
    in[0x1f] = 0x24;
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_RESOURCE, VHCA_SYN_PD);

    fix_mkey_mailbox(f, in);
    in[0x12] = 0x3e; /* KLM */
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM,
                VHCA_SYN_ACCESS_MODE);
}

static void create_cq__misplaced_queue_or_record__is_refused(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    memcpy(in, fix_cq, MBOX);
    in[0x57] = 0x20; /* not a multiple of 64 */
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM, 0x357275);

    memcpy(in, fix_cq, MBOX);
    in[0x4f] = 0xc4; /* not a multiple of 8 */
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM,
                VHCA_SYN_DBR_ALIGN);

    memcpy(in, fix_cq, MBOX);
    in[0x56] = 0xf0; /* 8 KiB at 60 KiB */
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM,
                VHCA_SYN_UMEM_SIZE);

    memcpy(in, fix_cq, MBOX);
    in[0x1f] = 0x03;
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_RESOURCE, VHCA_SYN_UAR);

    memcpy(in, fix_cq, MBOX);
    in[0x1c] = 23;
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM, VHCA_SYN_SIZE);
}

static void create_cq__unknown_eq__the_kernel_refuses(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    memcpy(in, fix_cq, MBOX);
    in[0x27] = 0;
    assert_int_equal(fix_create(f, in, MBOX), -ENOENT);
    assert_int_equal(fix_nic.calls, 0);
}

static void create_qp__wrong_objects__are_refused(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    memcpy(in, fix_qp, MBOX);
    in[0x97] = 0x04;
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_RESOURCE, VHCA_SYN_CQN);

    memcpy(in, fix_qp, MBOX);
    in[0xc7] = 0x05;
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_RESOURCE,
                VHCA_SYN_RMPN);

    memcpy(in, fix_qp, MBOX);
    in[0x19] = 0x02; /* UD */
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM, VHCA_SYN_VALUE);
}

static void create__reserved_bit__names_the_field(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    memcpy(in, fix_qp, MBOX);
    in[0x24] = 1; /* counter_set_id, at 0x60 of the context */
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM,
                   VHCA_SYN_FIELD + 0x60);
}

static void create__nic_refuses__verdict_is_passed_on(void **state)
{
    struct fixture *f = *state;

    fix_nic.fail = true;
    assert_int_equal(fix_create(f, fix_cq, MBOX), -EREMOTEIO);
    assert_int_equal(f->out[0], VHCA_FW_BAD_RES_STATE);
    assert_int_equal(fix_be32(&f->out[4]), 0x123456);
    assert_int_equal(f->umem->users, 0);
}

static void create__command_without_object__kernel_or_firmware_refuses(
        void **state)
{
    uint8_t in[MBOX]  = {0x05, 0x0b}; /* QUERY_QP is no creation */
    struct fixture *f = *state;

    assert_int_equal(fix_create(f, in, MBOX), -EINVAL);
    in[0] = 0x07;
    in[1] = 0x10; /* CREATE_DCT: let through, not implemented */
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_OP, 0);
}

static void general__command_the_kernel_passes_on__bad_opcode(void **state)
{
    static const struct {
        uint8_t in[16];
        int     ret;
    } cases[] = {
        {{0x01, 0x01}, -EREMOTEIO},  /* QUERY_ADAPTER */
        {{0x0b, 0x22}, -EREMOTEIO},  /* of the range of general ones */
        {{0x0c, 0xff}, -EREMOTEIO},
        {{0x0d, 0x00}, -EINVAL},     /* behind it */
        {{0x07, 0x64}, -EINVAL},     /* QUERY_HCA_VPORT_GID */
        {{0x05, 0x00}, -EINVAL},     /* CREATE_QP is no general one */
        {{0x07, 0x62}, -EREMOTEIO},  /* QUERY_HCA_VPORT_CONTEXT: not on RoCE */
    };
    struct fixture *f = *state;
    unsigned i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const struct ib_uverbs_attr attrs[] = {
            {.attr_id = 0x1000, .len = 16, .data = (uintptr_t)cases[i].in},
            {.attr_id = 0x1001, .len = 528, .data = (uintptr_t)f->out},
        };

        assert_int_equal(fix_call(f, MLX5_IB_OBJECT_DEVX,
                                  MLX5_IB_METHOD_DEVX_OTHER, attrs, 2),
                         cases[i].ret);
        if (cases[i].ret == -EREMOTEIO) {
            assert_int_equal(f->out[0], VHCA_FW_BAD_OP);
        }
    }
}

static void general__without_user_id__only_what_needs_none(void **state)
{
    static const uint8_t cap[16] = {0x01, 0x00, [7] = 0x01};
    static const uint8_t lag[16] = {0x08, 0x42};
    struct fixture *f            = *state;
    struct ib_uverbs_attr attrs[] = {
        {.attr_id = 0x1000, .len = 16, .data = (uintptr_t)cap},
        {.attr_id = 0x1001, .len = 4112, .data = (uintptr_t)f->out},
    };

    f->ctx.devx = false;
    assert_int_equal(fix_call(f, MLX5_IB_OBJECT_DEVX,
                              MLX5_IB_METHOD_DEVX_OTHER, attrs, 2), 0);
    attrs[0].data = (uintptr_t)lag;
    assert_int_equal(fix_call(f, MLX5_IB_OBJECT_DEVX,
                              MLX5_IB_METHOD_DEVX_OTHER, attrs, 2), -EINVAL);
    assert_int_equal(fix_create(f, fix_cq, MBOX), -EINVAL);
}

static void modify__other_number_than_the_handle__the_kernel_refuses(
        void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    memcpy(in, fix_2init, MBOX);
    in[0x0b] = 0x06;
    assert_int_equal(fix_modify(f, in, MBOX), -EINVAL);
    assert_int_equal(fix_obj_call(f, MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
                              f->cq->handle, fix_2init, MBOX), -EINVAL);
    assert_int_equal(fix_obj_call(f, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, 999,
                              fix_2init, MBOX), -ENOENT);
    assert_int_equal(fix_nic.calls, 0);
}

static void modify__ib_address_on_roce__is_refused(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    memcpy(in, fix_2rtr, MBOX);
    in[0x37] = 0x11; /* rlid */
    fix_refused(f, fix_modify(f, in, MBOX), VHCA_FW_BAD_PARAM, VHCA_SYN_AV);

    memcpy(in, fix_2rtr, MBOX);
    in[0x52] = 0x41; /* below the range of source ports */
    fix_refused(f, fix_modify(f, in, MBOX), VHCA_FW_BAD_PARAM, VHCA_SYN_AV);
}

static void modify__past_the_capabilities__is_refused(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    memcpy(in, fix_2rtr, MBOX);
    in[0x20] = 0xbf; /* 2^31 bytes */
    fix_refused(f, fix_modify(f, in, MBOX), VHCA_FW_BAD_PARAM, VHCA_SYN_SIZE);

    memcpy(in, fix_2rtr, MBOX);
    in[0xa9] = 0xa1; /* 2^5 reads */
    fix_refused(f, fix_modify(f, in, MBOX), VHCA_FW_BAD_PARAM, VHCA_SYN_SIZE);

    memcpy(in, fix_2rts, MBOX);
    in[0x89] = 0xa7;
    fix_refused(f, fix_modify(f, in, MBOX), VHCA_FW_BAD_PARAM, VHCA_SYN_SIZE);

    memcpy(in, fix_2rtr, MBOX);
    in[0x12] = 0x80; /* LAG_TX_AFF */
    fix_refused(f, fix_modify(f, in, MBOX), VHCA_FW_BAD_PARAM,
                VHCA_SYN_OPT_PARAM);
}

static void create_mkey__sizes_of_the_translation__none_too_small(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    /* 64 KiB of 4 KiB pages, two a word: 8. DPDK says half the bytes. */
    fix_mkey_mailbox(f, in);
    in[0x46] = in[0x62] = 0x80;
    in[0x47] = in[0x63] = 0;
    in[0x4b] = 12;
    assert_int_equal(fix_create(f, in, MBOX), 0);
    fix_nic.calls = 0;

    fix_mkey_mailbox(f, in);
    in[0x47] = 7;
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM,
                VHCA_SYN_TRANSLATION);

    fix_mkey_mailbox(f, in);
    in[0x63] = 7;
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM,
                VHCA_SYN_TRANSLATION);

    fix_mkey_mailbox(f, in);
    in[0x4b] = 13;
    fix_refused(f, fix_create(f, in, MBOX), VHCA_FW_BAD_PARAM,
                VHCA_SYN_TRANSLATION);
}

static void command__for_another_function__the_kernel_refuses(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    memcpy(in, fix_cq, MBOX);
    in[0x05] = 1; /* vhca_tunnel_id */
    assert_int_equal(fix_create(f, in, MBOX), -EINVAL);
    memcpy(in, fix_2init, MBOX);
    in[0x04] = 0x80;
    assert_int_equal(fix_modify(f, in, MBOX), -EINVAL);
    assert_int_equal(fix_nic.calls, 0);
}

static void command__shorter_than_its_header__the_kernel_refuses(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fix_create(f, fix_cq, 15), -EINVAL);
    assert_int_equal(fix_modify(f, fix_2init, 15), -EINVAL);
    f->outlen = 15;
    assert_int_equal(fix_create(f, fix_cq, MBOX), -EINVAL);
    assert_int_equal(fix_nic.calls, 0);
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, fix_setup, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(create__too_short__bad_input_length),
        TEST(create__bytes_behind__bad_input_length),
        TEST(query_hca_cap__small_output__bad_output_length),
        TEST(create_mkey__header_and_context__is_the_kernels_minimum),
        TEST(create_mkey__umem_unknown_or_too_small__is_refused),
        TEST(create_mkey__address_does_not_fit_the_page__317175),
        TEST(create_mkey__large_page_umem_at_odd_place__317175),
        TEST(create_mkey__other_pd_or_mode__is_refused),
        TEST(create_cq__misplaced_queue_or_record__is_refused),
        TEST(create_cq__unknown_eq__the_kernel_refuses),
        TEST(create_qp__wrong_objects__are_refused),
        TEST(create__reserved_bit__names_the_field),
        TEST(create__nic_refuses__verdict_is_passed_on),
        TEST(create__command_without_object__kernel_or_firmware_refuses),
        TEST(general__command_the_kernel_passes_on__bad_opcode),
        TEST(general__without_user_id__only_what_needs_none),
        TEST(modify__other_number_than_the_handle__the_kernel_refuses),
        TEST(modify__ib_address_on_roce__is_refused),
        TEST(modify__past_the_capabilities__is_refused),
        TEST(create_mkey__sizes_of_the_translation__none_too_small),
        TEST(command__for_another_function__the_kernel_refuses),
        TEST(command__shorter_than_its_header__the_kernel_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
