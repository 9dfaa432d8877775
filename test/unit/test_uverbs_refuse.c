/* SPDX-License-Identifier: BSD-3-Clause */

/* What the emulated device's kernel refuses whatever the firmware says: ioctls,
 * contexts, memory, objects in use, steps of a queue pair, subscriptions. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include "vhca/uverbs_qp.h"
#include "vhca_devx_fixture.h"

/* ---- contexts ---- */

static int get_context(struct fixture *f,
                       const struct mlx5_ib_alloc_ucontext_req_v2 *in,
                       size_t inlen)
{
    struct mlx5_ib_alloc_ucontext_resp out;
    const struct ib_uverbs_attr attrs[] = {
        {.attr_id = UVERBS_ATTR_UHW_IN, .len = (uint16_t)inlen,
         .data = (uintptr_t)in},
        {.attr_id = UVERBS_ATTR_UHW_OUT, .len = sizeof(out),
         .data = (uintptr_t)&out},
    };

    f->ctx.opened = false;
    return fix_call(f, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, attrs,
                    2);
}

static void get_context__request__as_the_kernel(void **state)
{
    const struct mlx5_ib_alloc_ucontext_req_v2 good = {
        .total_num_bfregs = 16, .num_low_latency_bfregs = 4,
        .flags = MLX5_IB_ALLOC_UCTX_DEVX, .max_cqe_version = 1,
        .lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR
    };
    struct mlx5_ib_alloc_ucontext_req_v2 in;
    struct fixture *f = *state;

    assert_int_equal(get_context(f, &good, sizeof(good)), 0);
    /* neither the first version nor as much of the second as there must be */
    assert_int_equal(get_context(f, &good, 15), -EINVAL);
    assert_int_equal(get_context(f, &good, 12), -EINVAL);

    in       = good;
    in.flags = 2;
    assert_int_equal(get_context(f, &in, sizeof(in)), -EOPNOTSUPP);
    in           = good;
    in.comp_mask = 1;
    assert_int_equal(get_context(f, &in, sizeof(in)), -EOPNOTSUPP);
    in           = good;
    in.reserved0 = 1;
    assert_int_equal(get_context(f, &in, sizeof(in)), -EOPNOTSUPP);
    in           = good;
    in.reserved1 = 1;
    assert_int_equal(get_context(f, &in, sizeof(in)), -EOPNOTSUPP);
    in           = good;
    in.reserved2 = 1;
    assert_int_equal(get_context(f, &in, sizeof(in)), -EOPNOTSUPP);

    in                        = good;
    in.num_low_latency_bfregs = 16;
    assert_int_equal(get_context(f, &in, sizeof(in)), -EINVAL);
    in.num_low_latency_bfregs = 15;
    assert_int_equal(get_context(f, &in, sizeof(in)), 0);
}

static void get_context__no_dynamic_uars__unsupported(void **state)
{
    const struct mlx5_ib_alloc_ucontext_req_v2 in = {
        .total_num_bfregs = 16, .max_cqe_version = 1,
        .lib_caps = MLX5_LIB_CAP_4K_UAR
    };
    struct fixture *f = *state;

    assert_int_equal(get_context(f, &in, sizeof(in)), -EOPNOTSUPP);
    /* the first version of the request has no capabilities */
    assert_int_equal(get_context(f, &in,
                                 sizeof(struct mlx5_ib_alloc_ucontext_req)),
                     -EOPNOTSUPP);
}

static void query_uar__no_static_ones__is_refused(void **state)
{
    struct fixture *f = *state;
    uint32_t index    = 0xee;
    const struct ib_uverbs_attr attrs[] = {
        {.attr_id = MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, .len = 4, .data = 0},
        {.attr_id = MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, .len = 4,
         .data = (uintptr_t)&index},
    };

    assert_int_equal(fix_call(f, MLX5_IB_OBJECT_DEVX,
                              MLX5_IB_METHOD_DEVX_QUERY_UAR, attrs, 2),
                     -EINVAL);
    assert_int_equal(index, 0xee);
}

static void subscribe__to_an_eventfd__unsupported(void **state)
{
    struct fixture *f = *state;
    const struct ib_uverbs_attr attrs[] = {
        {.attr_id = MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, .data = 3},
        {.attr_id = MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, .len = 2,
         .data = 0x09},
        {.attr_id = MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, .len = 4,
         .data = 1},
        {.attr_id = MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, .len = 8,
         .data = 77},
    };

    assert_int_equal(fix_call(f, MLX5_IB_OBJECT_DEVX,
                              MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, attrs, 3),
                     -EOPNOTSUPP);
    assert_int_equal(fix_call(f, MLX5_IB_OBJECT_DEVX,
                              MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, attrs, 4),
                     -EINVAL);
    assert_int_equal(fix_nic.sub_cookie, 0);
}

/* ---- umems and objects ---- */

static void umem_reg__access_and_range__as_the_kernel(void **state)
{
    struct fixture *f = *state;
    struct vhca_uobj *umem;
    uint64_t addr = (uintptr_t)f->mem;

    assert_int_equal(vhca_umem_reg(&f->ctx, addr, 4096, 8, ~0xfffull, &umem),
                     -EINVAL); /* REMOTE_ATOMIC */
    assert_int_equal(vhca_umem_reg(&f->ctx, addr, 4096, 0x40, ~0xfffull,
                                   &umem), -EINVAL); /* ON_DEMAND */
    assert_int_equal(vhca_umem_reg(&f->ctx, addr, 4096, 2, ~0xfffull, &umem),
                     -EINVAL); /* REMOTE_WRITE alone */
    assert_int_equal(vhca_umem_reg(&f->ctx, addr, 0, 1, ~0xfffull, &umem),
                     -EINVAL);
    assert_int_equal(vhca_umem_reg(&f->ctx, ~0ull - 100, 4096, 1, ~0xfffull,
                                   &umem), -EINVAL);
    assert_int_equal(vhca_umem_reg(&f->ctx, addr, 4096, 1, 0x100000, &umem),
                     -EINVAL); /* no page size fits */
    assert_int_equal(vhca_umem_reg(&f->ctx, addr + 100, 1, 0, ~0xfffull,
                                   &umem), 0);
    assert_int_equal(umem->umem.page_offset, (addr + 100) % 4096);
}

static void umem_reg__hole_or_read_only__efault(void **state)
{
    struct fixture *f = *state;
    struct vhca_uobj *umem;
    uint8_t *mem;

    mem = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(mem != MAP_FAILED);
    munmap(mem + 4096, 4096);
    assert_int_equal(vhca_umem_reg(&f->ctx, (uintptr_t)mem, 3 * 4096, 1,
                                   ~0xfffull, &umem), -EFAULT);
    assert_int_equal(mprotect(mem, 4096, PROT_READ), 0);
    assert_int_equal(vhca_umem_reg(&f->ctx, (uintptr_t)mem, 4096, 1,
                                   ~0xfffull, &umem), -EFAULT);
    assert_int_equal(vhca_umem_reg(&f->ctx, (uintptr_t)mem, 4096, 0,
                                   ~0xfffull, &umem), 0);
    munmap(mem, 4096);
    munmap(mem + 2 * 4096, 4096);
}

static void umem_reg__dma_buf__unsupported(void **state)
{
    struct fixture *f = *state;
    uint32_t id;
    const struct ib_uverbs_attr attrs[] = {
        {.attr_id = MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE},
        {.attr_id = MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, .len = 8,
         .data = (uintptr_t)f->mem},
        {.attr_id = MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, .len = 8, .data = 4096},
        {.attr_id = MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, .len = 4, .data = 1},
        {.attr_id = MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, .len = 4,
         .data = (uintptr_t)&id},
        {.attr_id = MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, .data_s64 = 3},
    };

    assert_int_equal(fix_call(f, MLX5_IB_OBJECT_DEVX_UMEM,
                              MLX5_IB_METHOD_DEVX_UMEM_REG, attrs, 5), 0);
    assert_int_equal(fix_call(f, MLX5_IB_OBJECT_DEVX_UMEM,
                              MLX5_IB_METHOD_DEVX_UMEM_REG, attrs, 6),
                     -EOPNOTSUPP);
}

static void destroy__in_use__busy_until_the_user_is_gone(void **state)
{
    struct fixture *f = *state;
    struct vhca_uobj *cq;

    assert_int_equal(fix_create(f, fix_cq, MBOX), 0);
    cq = vhca_uobj_get(&f->ctx, f->handle, VHCA_UOBJ_DEVX_CQ);
    assert_non_null(cq);
    assert_int_equal(vhca_uobj_destroy(&f->ctx, f->umem, NULL), -EBUSY);
    assert_int_equal(vhca_uobj_destroy(&f->ctx, cq, NULL), 0);
    assert_int_equal(vhca_uobj_destroy(&f->ctx, f->umem, NULL), 0);
    assert_null(vhca_umem_by_id(&f->ctx, 0x100003));
}

static void close__everything_alive__destroyed_users_first(void **state)
{
    struct fixture *f = *state;
    uint8_t in[MBOX];

    fix_mkey_mailbox(f, in);
    assert_int_equal(fix_create(f, in, MBOX), 0);
    assert_int_equal(fix_create(f, fix_rmp, MBOX), 0);
    assert_int_equal(fix_create(f, fix_qp, MBOX), 0);
    fix_nic.destroyed = 0;
    vhca_uobj_destroy_all(&f->ctx);
    assert_string_equal(fix_nic.order, "qqrrcmp");
}

static void ioctl__unknown_mandatory_attribute__protocol_error(void **state)
{
    struct fixture *f            = *state;
    struct ib_uverbs_attr attrs[] = {
        {.attr_id = UVERBS_ATTR_DESTROY_PD_HANDLE, .data = 999},
        {.attr_id = 0x100f, .flags = UVERBS_ATTR_F_MANDATORY},
    };

    assert_int_equal(fix_call(f, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY,
                              attrs, 2), -EPROTONOSUPPORT);
    attrs[1].flags = 0;
    assert_int_equal(fix_call(f, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY,
                              attrs, 2), -ENOENT);
    assert_int_equal(fix_call(f, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY,
                              attrs, 0), -EINVAL);
}

/* A PD_DESTROY that would be right but for what `change` does */
static int ioctl_changed(struct fixture *f,
                         void (*change)(struct ib_uverbs_ioctl_hdr *hdr))
{
    struct {
        struct ib_uverbs_ioctl_hdr hdr;
        struct ib_uverbs_attr      attrs[2];
    } req = {
        .hdr = {.length = sizeof(req.hdr) + sizeof(req.attrs[0]),
                .object_id = UVERBS_OBJECT_PD,
                .method_id = UVERBS_METHOD_PD_DESTROY, .num_attrs = 1,
                .driver_id = RDMA_DRIVER_MLX5},
        .attrs = {{.attr_id = UVERBS_ATTR_DESTROY_PD_HANDLE, .data = 999}}
    };

    req.attrs[1] = req.attrs[0];
    change(&req.hdr);
    return vhca_uverbs_ioctl(&f->ctx, &req.hdr);
}

static void change_nothing(struct ib_uverbs_ioctl_hdr *hdr)
{
    (void)hdr;
}

static void change_length(struct ib_uverbs_ioctl_hdr *hdr)
{
    ++hdr->length;
}

static void change_reserved1(struct ib_uverbs_ioctl_hdr *hdr)
{
    hdr->reserved1 = 1;
}

static void change_reserved2(struct ib_uverbs_ioctl_hdr *hdr)
{
    hdr->reserved2 = 1;
}

static void change_both(struct ib_uverbs_ioctl_hdr *hdr)
{
    change_length(hdr);
    change_reserved1(hdr);
}

static void change_driver(struct ib_uverbs_ioctl_hdr *hdr)
{
    ++hdr->driver_id;
}

static void change_to_twice(struct ib_uverbs_ioctl_hdr *hdr)
{
    hdr->num_attrs = 2;
    hdr->length   += sizeof(hdr->attrs[0]);
}

static void ioctl__header__is_checked(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ioctl_changed(f, change_nothing), -ENOENT);
    assert_int_equal(ioctl_changed(f, change_length), -EINVAL);
    assert_int_equal(ioctl_changed(f, change_reserved1), -EPROTONOSUPPORT);
    assert_int_equal(ioctl_changed(f, change_reserved2), -EPROTONOSUPPORT);
    assert_int_equal(ioctl_changed(f, change_both), -EINVAL);
    assert_int_equal(ioctl_changed(f, change_driver), -EINVAL);
    assert_int_equal(ioctl_changed(f, change_to_twice), -EINVAL);
    f->ctx.opened = false;
    assert_int_equal(ioctl_changed(f, change_nothing), -EINVAL);
}

/* A legacy command, as libibverbs sends it */
static int write_command(struct fixture *f, uint64_t command, const void *in,
                         size_t inlen, void *out, size_t outlen)
{
    const struct ib_uverbs_attr attrs[] = {
        {.attr_id = UVERBS_ATTR_CORE_IN, .len = (uint16_t)inlen,
         .data = (uintptr_t)in},
        {.attr_id = UVERBS_ATTR_CORE_OUT, .len = (uint16_t)outlen,
         .data = (uintptr_t)out},
        {.attr_id = UVERBS_ATTR_WRITE_CMD, .len = 8, .data = command},
    };

    return fix_call(f, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, attrs,
                    3);
}

static void rereg_mr__flags_and_addresses__as_the_kernel(void **state)
{
    struct fixture *f           = *state;
    struct ib_uverbs_reg_mr reg = {
        .start = (uintptr_t)f->mem, .hca_va = 0x10000000, .length = 4096,
        .pd_handle = f->pd->handle, .access_flags = 1
    };
    struct ib_uverbs_rereg_mr in       = {.flags = 4, .access_flags = 3};
    struct ib_uverbs_reg_mr_resp mr    = {0};
    struct ib_uverbs_rereg_mr_resp out = {0};

    ++reg.start; /* the addresses differ within a page */
    assert_int_equal(write_command(f, IB_USER_VERBS_CMD_REG_MR, &reg,
                                   sizeof(reg), &mr, sizeof(mr)), -EINVAL);
    --reg.start;
    assert_int_equal(write_command(f, IB_USER_VERBS_CMD_REG_MR, &reg,
                                   sizeof(reg), &mr, sizeof(mr)), 0);

    in.mr_handle = mr.mr_handle + 1000;
    assert_int_equal(write_command(f, IB_USER_VERBS_CMD_REREG_MR, &in,
                                   sizeof(in), &out, sizeof(out)), -ENOENT);
    in.mr_handle = mr.mr_handle;
    assert_int_equal(write_command(f, IB_USER_VERBS_CMD_REREG_MR, &in,
                                   sizeof(in), &out, sizeof(out)), 0);
    assert_int_equal(out.rkey, mr.rkey);
    assert_true(fix_nic.mkey.rw && fix_nic.mkey.lw && !fix_nic.mkey.rr);
    assert_true(fix_nic.mkey.start == 0x10000000);

    in.flags = 0;
    assert_int_equal(write_command(f, IB_USER_VERBS_CMD_REREG_MR, &in,
                                   sizeof(in), &out, sizeof(out)), -EINVAL);
    in.flags = 8;
    assert_int_equal(write_command(f, IB_USER_VERBS_CMD_REREG_MR, &in,
                                   sizeof(in), &out, sizeof(out)),
                     -EOPNOTSUPP);
    in.flags = 2; /* another PD: there is none */
    in.pd_handle = 999;
    assert_int_equal(write_command(f, IB_USER_VERBS_CMD_REREG_MR, &in,
                                   sizeof(in), &out, sizeof(out)), -EINVAL);
    in.flags        = 4; /* a remote write without a local one */
    in.access_flags = 2;
    assert_int_equal(write_command(f, IB_USER_VERBS_CMD_REREG_MR, &in,
                                   sizeof(in), &out, sizeof(out)), -EINVAL);
    in.flags  = 1;
    in.start  = (uintptr_t)f->mem + 8192;
    in.hca_va = 0x20000008;
    in.length = 100;
    assert_int_equal(write_command(f, IB_USER_VERBS_CMD_REREG_MR, &in,
                                   sizeof(in), &out, sizeof(out)), -EINVAL);
    in.hca_va = 0x20000000;
    assert_int_equal(write_command(f, IB_USER_VERBS_CMD_REREG_MR, &in,
                                   sizeof(in), &out, sizeof(out)), 0);
    assert_true((fix_nic.mkey.start == 0x20000000) &&
                (fix_nic.mkey.len == 100) && fix_nic.mkey.rw);
}

/* ---- a queue pair of verbs ---- */

static int modify_qp(struct fixture *f, const struct ib_uverbs_modify_qp *in)
{
    return write_command(f, IB_USER_VERBS_CMD_MODIFY_QP, in, sizeof(*in), NULL,
                         0);
}

static void modify_qp__attributes_the_device_lacks__unsupported(void **state)
{
    struct fixture *f = *state;
    struct ib_uverbs_modify_qp in = {
        .attr_mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
                     IB_QP_ACCESS_FLAGS,
        .qp_state = IB_QPS_INIT, .port_num = 1, .alt_port_num = 1,
        .alt_dest = {.port_num = 1}
    };
    struct vhca_uobj *qp;

    assert_int_equal(vhca_uobj_alloc(&f->ctx, VHCA_UOBJ_QP, &qp), 0);
    qp->number  = FIX_QPN;
    qp->qp.type = IB_UVERBS_QPT_RC;
    in.qp_handle = qp->handle;

    in.attr_mask |= 1u << 21; /* the first behind the standard ones */
    assert_int_equal(modify_qp(f, &in), -EOPNOTSUPP);
    in.attr_mask ^= 1u << 21 | IB_QP_ALT_PATH;
    assert_int_equal(modify_qp(f, &in), -EOPNOTSUPP);
    in.alt_port_num = 2; /* wrong before it is unsupported */
    assert_int_equal(modify_qp(f, &in), -EINVAL);
    in.attr_mask ^= IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE;
    assert_int_equal(modify_qp(f, &in), -EOPNOTSUPP);
    assert_int_equal(fix_nic.calls, 0);
    in.attr_mask ^= IB_QP_PATH_MIG_STATE;
    assert_int_equal(modify_qp(f, &in), 0);
}

static void ioctl__object_without_support__eopnotsupp(void **state)
{
    struct fixture *f           = *state;
    struct ib_uverbs_attr attr = {0};

    assert_int_equal(fix_call(f, UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY,
                              &attr, 0), -EOPNOTSUPP);
    assert_int_equal(fix_call(f, 0x7777, 0, &attr, 0), -EPROTONOSUPPORT);
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, fix_setup, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(get_context__request__as_the_kernel),
        TEST(get_context__no_dynamic_uars__unsupported),
        TEST(query_uar__no_static_ones__is_refused),
        TEST(subscribe__to_an_eventfd__unsupported),
        TEST(umem_reg__dma_buf__unsupported),
        TEST(umem_reg__access_and_range__as_the_kernel),
        TEST(umem_reg__hole_or_read_only__efault),
        TEST(destroy__in_use__busy_until_the_user_is_gone),
        TEST(close__everything_alive__destroyed_users_first),
        TEST(ioctl__unknown_mandatory_attribute__protocol_error),
        TEST(ioctl__header__is_checked),
        TEST(rereg_mr__flags_and_addresses__as_the_kernel),
        TEST(ioctl__object_without_support__eopnotsupp),
        TEST(modify_qp__attributes_the_device_lacks__unsupported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
