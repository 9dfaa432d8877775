/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The real libibverbs and libmlx5 on the emulated device: every call that the
 * transport makes, and what must be refused. Needs the device preloaded; the
 * mailboxes are written byte by byte.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE     4096
#define MEM_LEN  (16 * PAGE)
#define MBOX     272

struct fixture {
    struct ibv_device    **list;
    struct ibv_device     *dev;     /* mlx5_0 */
    struct ibv_context    *ctx;
    struct ibv_pd         *pd;
    uint32_t               pdn;
    struct mlx5dv_devx_uar *uar;
    uint8_t               *mem;
    struct mlx5dv_devx_umem *umem;
    bool                   roce;
    uint8_t                out[4112];
};

static void put(uint8_t *in, unsigned offset, unsigned bytes, uint64_t value)
{
    while (bytes-- > 0) {
        in[offset + bytes] = (uint8_t)value;
        value            >>= 8;
    }
}

static uint32_t get(const uint8_t *out, unsigned offset, unsigned bytes)
{
    uint32_t value = 0;

    while (bytes-- > 0) {
        value = value << 8 | out[offset++];
    }

    return value;
}

static struct ibv_context *open_devx(struct ibv_device *dev)
{
    struct mlx5dv_context_attr attr = {
        .flags = MLX5DV_CONTEXT_FLAGS_DEVX
    };

    return mlx5dv_open_device(dev, &attr);
}

static uint32_t get_pdn(struct ibv_pd *pd)
{
    struct mlx5dv_pd out  = {0};
    struct mlx5dv_obj obj = {.pd = {.in = pd, .out = &out}};

    assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD), 0);
    return out.pdn;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct ibv_port_attr port;
    int i, num;

    f->list = ibv_get_device_list(&num);
    assert_non_null(f->list);
    assert_true(num >= 1);
    for (i = 0; strcmp(ibv_get_device_name(f->list[i]), "mlx5_0") != 0; ++i) {
        assert_true(i + 1 < num);
    }
    f->dev = f->list[i];
    f->ctx = open_devx(f->dev);
    assert_non_null(f->ctx);
    f->pd = ibv_alloc_pd(f->ctx);
    assert_non_null(f->pd);
    f->pdn = get_pdn(f->pd);
    f->uar = mlx5dv_devx_alloc_uar(f->ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
    assert_non_null(f->uar);
    f->mem = mmap(NULL, MEM_LEN, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(f->mem != MAP_FAILED);
    f->umem = mlx5dv_devx_umem_reg_ex(f->ctx, &(struct mlx5dv_devx_umem_in) {
            .addr = f->mem, .size = MEM_LEN, .access = IBV_ACCESS_LOCAL_WRITE,
            .pgsz_bitmap = PAGE});
    assert_non_null(f->umem);
    assert_int_equal(ibv_query_port(f->ctx, 1, &port), 0);
    f->roce = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    *state  = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mlx5dv_devx_umem_dereg(f->umem), 0);
    munmap(f->mem, MEM_LEN);
    mlx5dv_devx_free_uar(f->uar);
    assert_int_equal(ibv_dealloc_pd(f->pd), 0);
    assert_int_equal(ibv_close_device(f->ctx), 0);
    ibv_free_device_list(f->list);
    free(f);
    return 0;
}

/* ---- mailboxes ---- */

static struct mlx5dv_devx_obj *create(struct fixture *f, const uint8_t *in)
{
    memset(f->out, 0, sizeof(f->out));
    errno = 0;
    return mlx5dv_devx_obj_create(f->ctx, in, MBOX, f->out, 16);
}

static void fill_mkey(const struct fixture *f, uint8_t *in)
{
    memset(in, 0, MBOX);
    put(in, 0x00, 2, 0x200);
    in[0x12] = 0x3d;                          /* rw rr lw lr, MTT */
    put(in, 0x14, 4, 0xffffff11);             /* any QP, tag 0x11 */
    put(in, 0x1d, 3, f->pdn);
    put(in, 0x20, 8, (uintptr_t)f->mem);
    put(in, 0x28, 8, MEM_LEN);
    put(in, 0x60, 4, 1);
    put(in, 0x64, 4, f->umem->umem_id);
}

static struct mlx5dv_devx_obj *create_cq(struct fixture *f, uint32_t *cqn_p)
{
    uint8_t in[MBOX] = {0x04, 0x00};
    struct mlx5dv_devx_obj *obj;
    uint32_t eqn;

    assert_int_equal(mlx5dv_devx_query_eqn(f->ctx, 0, &eqn), 0);
    memset(f->mem + 0x4000, 0xf1, 64 * 64);
    put(in, 0x14, 4, f->umem->umem_id);
    in[0x1c] = 6;
    put(in, 0x1d, 3, f->uar->page_id);
    put(in, 0x24, 4, eqn);
    put(in, 0x48, 8, 0x1000);                 /* dbr_addr */
    put(in, 0x50, 8, 0x4000);
    put(in, 0x58, 4, f->umem->umem_id);
    obj = create(f, in);
    assert_non_null(obj);
    *cqn_p = get(f->out, 9, 3);
    return obj;
}

static struct mlx5dv_devx_obj *create_rmp(struct fixture *f, uint32_t *rmpn_p)
{
    uint8_t in[MBOX] = {0x09, 0x0c};
    struct mlx5dv_devx_obj *obj;

    in[0x21] = 0x10;
    put(in, 0x59, 3, f->pdn);
    put(in, 0x60, 8, 0x1040);
    in[0x71] = 5;
    in[0x73] = 5;
    put(in, 0x78, 4, f->umem->umem_id);
    put(in, 0x7c, 4, f->umem->umem_id);
    put(in, 0x80, 8, 0x8000);
    obj = create(f, in);
    assert_non_null(obj);
    *rmpn_p = get(f->out, 9, 3);
    return obj;
}

static struct mlx5dv_devx_obj *create_qp(struct fixture *f, uint32_t cqn,
                                         uint32_t rmpn, uint32_t *qpn_p)
{
    uint8_t in[MBOX] = {0x05, 0x00};
    struct mlx5dv_devx_obj *obj;

    in[0x1a] = 0x18;
    put(in, 0x1d, 3, f->pdn);
    in[0x22] = 6 << 3;
    put(in, 0x25, 3, f->uar->page_id);
    put(in, 0x29, 3, 0xffffff);
    put(in, 0x95, 3, cqn);
    put(in, 0xb5, 3, cqn);
    put(in, 0xb8, 8, 0x1080);
    in[0xc4] = 1;
    put(in, 0xc5, 3, rmpn);
    put(in, 0xfc, 4, f->umem->umem_id);
    put(in, 0x100, 8, 0xc000);
    put(in, 0x108, 4, f->umem->umem_id);
    obj = create(f, in);
    assert_non_null(obj);
    *qpn_p = get(f->out, 9, 3);
    return obj;
}

static int modify(struct fixture *f, struct mlx5dv_devx_obj *qp,
                  const uint8_t *in, size_t inlen)
{
    memset(f->out, 0, sizeof(f->out));
    return mlx5dv_devx_obj_modify(qp, in, inlen, f->out, 16);
}

static int to_init(struct fixture *f, struct mlx5dv_devx_obj *qp, uint32_t qpn)
{
    uint8_t in[MBOX] = {0x05, 0x02};

    put(in, 9, 3, qpn);
    in[0x1a] = 0x18;
    in[0x55] = 1;
    in[0xaa] = 0xc0;
    return modify(f, qp, in, sizeof(in));
}

static int to_rtr(struct fixture *f, struct mlx5dv_devx_obj *qp, uint32_t qpn,
                  const struct mlx5dv_ah *av)
{
    uint8_t in[MBOX] = {0x05, 0x03};
    struct ibv_port_attr port;

    put(in, 9, 3, qpn);
    in[0x1a] = 0x18;
    in[0x20] = 5 << 5 | 30;
    put(in, 0x2d, 3, qpn);                    /* to itself */
    if (f->roce) {
        in[0x39] = 3;
        in[0x3b] = 64;
        memcpy(&in[0x40], av->av->rgid, 16);
        put(in, 0x52, 2, 0xc000);
        memcpy(&in[0x56], av->av->rmac, 6);
    } else {
        assert_int_equal(ibv_query_port(f->ctx, 1, &port), 0);
        put(in, 0x36, 2, port.lid);
    }
    in[0xac] = 12;
    return modify(f, qp, in, sizeof(in));
}

static int to_rts(struct fixture *f, struct mlx5dv_devx_obj *qp, uint32_t qpn)
{
    uint8_t in[MBOX] = {0x05, 0x04};

    put(in, 9, 3, qpn);
    in[0x1a] = 0x18;
    in[0x38] = 14 << 3;
    in[0x89] = 7;
    in[0x8a] = 7 << 5;
    return modify(f, qp, in, sizeof(in));
}

static int to_simple(struct fixture *f, struct mlx5dv_devx_obj *qp,
                     uint16_t opcode, uint32_t qpn)
{
    uint8_t in[16] = {0};

    put(in, 0, 2, opcode);
    put(in, 9, 3, qpn);
    return modify(f, qp, in, sizeof(in));
}

static unsigned qp_state(struct fixture *f, struct mlx5dv_devx_obj *qp,
                         uint32_t qpn)
{
    uint8_t in[16] = {0x05, 0x0b};

    put(in, 9, 3, qpn);
    assert_int_equal(mlx5dv_devx_obj_query(qp, in, sizeof(in), f->out, MBOX),
                     0);
    return f->out[0x18] >> 4;
}

static struct ibv_ah *create_ah(struct fixture *f, const union ibv_gid *dgid)
{
    struct ibv_ah_attr attr = {.port_num = 1, .dlid = 0x11};

    if (f->roce) {
        attr.is_global      = 1;
        attr.grh.dgid       = *dgid;
        attr.grh.sgid_index = 3;
        attr.grh.hop_limit  = 64;
    }

    return ibv_create_ah(f->pd, &attr);
}

/* ---- what the device is ---- */

static void device_list__name_guid_node__as_in_sysfs(void **state)
{
    const char *devices = getenv("VHCA_DEVICES");
    struct fixture *f   = *state;
    int num             = 0;
    int i;

    while (f->list[num] != NULL) {
        ++num;
    }

    assert_int_equal(num, (devices != NULL) ? atoi(devices) : 1);
    for (i = 0; i < num; ++i) {
        assert_memory_equal(ibv_get_device_name(f->list[i]), "mlx5_", 5);
        assert_true(ibv_get_device_guid(f->list[i]) != 0);
    }
    assert_true((num == 1) || (ibv_get_device_guid(f->list[0]) !=
                               ibv_get_device_guid(f->list[1])));
    assert_int_equal(f->dev->node_type, IBV_NODE_CA);
    assert_true(mlx5dv_is_supported(f->dev));
}

static void device_list__every_device__opens(void **state)
{
    struct fixture *f = *state;
    struct ibv_context *ctx;
    unsigned i;

    for (i = 0; f->list[i] != NULL; ++i) {
        ctx = open_devx(f->list[i]);
        assert_non_null(ctx);
        assert_int_equal(ibv_close_device(ctx), 0);
    }
}

static void query_device__attributes__as_the_capabilities(void **state)
{
    struct fixture *f = *state;
    struct ibv_device_attr_ex attr;
    struct mlx5dv_context dv = {.comp_mask = 0};

    assert_int_equal(ibv_query_device_ex(f->ctx, NULL, &attr), 0);
    assert_int_equal(attr.orig_attr.phys_port_cnt, 1);
    assert_int_equal(attr.orig_attr.vendor_part_id, 0x1019);
    assert_int_equal(attr.orig_attr.atomic_cap, IBV_ATOMIC_HCA);
    assert_int_equal(f->ctx->num_comp_vectors, 4);
    assert_int_equal(mlx5dv_query_device(f->ctx, &dv), 0);
    assert_int_equal(dv.version, 0);
    assert_true(dv.flags & MLX5DV_CONTEXT_FLAGS_CQE_V1);
}

static void query_port__link_layer__as_configured(void **state)
{
    const char *link  = getenv("VHCA_LINK");
    struct fixture *f = *state;
    struct ibv_port_attr port;

    assert_int_equal(ibv_query_port(f->ctx, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_ACTIVE);
    assert_int_equal(port.active_mtu, IBV_MTU_4096);
    assert_true(port.max_msg_sz == 1u << 30);
    assert_int_equal(f->roce, (link == NULL) || strcmp(link, "ib") != 0);
    assert_int_equal(port.lid != 0, !f->roce);
    assert_int_equal(!!(port.flags & IBV_QPF_GRH_REQUIRED), f->roce);
    assert_int_not_equal(ibv_query_port(f->ctx, 2, &port), 0);
}

static void query_gid__table_and_entries__agree(void **state)
{
    struct fixture *f = *state;
    struct ibv_gid_entry table[8], entry;
    union ibv_gid gid;
    ssize_t num, i;

    num = ibv_query_gid_table(f->ctx, table, 8, 0);
    assert_int_equal(num, f->roce ? 4 : 1);
    for (i = 0; i < num; ++i) {
        assert_int_equal(ibv_query_gid(f->ctx, 1, (int)i, &gid), 0);
        assert_memory_equal(gid.raw, table[i].gid.raw, 16);
        assert_int_equal(ibv_query_gid_ex(f->ctx, 1, (uint32_t)i, &entry, 0),
                         0);
        assert_int_equal(entry.gid_type, table[i].gid_type);
    }

    assert_int_equal(table[num - 1].gid_type,
                     f->roce ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB);
    assert_int_equal(ibv_query_gid_ex(f->ctx, 1, 7, &entry, 0), ENODATA);
    assert_int_equal(ibv_query_gid_ex(f->ctx, 1, 8, &entry, 0), EINVAL);
    assert_int_equal(ibv_query_gid_table(f->ctx, table, (size_t)num - 1, 0),
                     -EINVAL); /* no room for all */
}

static void query_pkey__entry_0__is_the_default_key(void **state)
{
    struct fixture *f = *state;
    __be16 pkey;

    assert_int_equal(ibv_query_pkey(f->ctx, 1, 0, &pkey), 0);
    assert_int_equal(pkey, 0xffff);
}

static void sysfs__paths_others_know_by_heart__are_there(void **state)
{
    char path[PATH_MAX], text[64] = {0};
    struct fixture *f = *state;
    struct stat st;
    FILE *file;
    int fd;

    assert_non_null(realpath("/sys/class/infiniband/mlx5_0", path));
    assert_non_null(strstr(path, "/0000:03:00.0/infiniband/mlx5_0"));
    assert_int_equal(stat("/dev/infiniband/uverbs0", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(access("/dev/infiniband/uverbs0", R_OK | W_OK), 0);
    assert_int_not_equal(access("/dev/infiniband/uverbs7", R_OK), 0);

    file = fopen("/sys/class/infiniband_verbs/uverbs0/dev", "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    assert_string_equal(text, "231:192\n");

    fd = open("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3",
              O_RDONLY);
    assert_int_equal(fd >= 0, f->roce);
    if (fd >= 0) {
        assert_int_equal(read(fd, text, 7), 7);
        assert_memory_equal(text, "RoCE v2", 7);
        close(fd);
    }
}

static void device_file__fstat_dup_close__behave_as_a_device(void **state)
{
    struct fixture *f = *state;
    struct ibv_port_attr port;
    struct stat st;
    int saved, fd;

    assert_int_equal(fstat(f->ctx->cmd_fd, &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_true(st.st_rdev == makedev(231, 192));

    /* the context lives as long as one of its descriptors */
    fd = dup(f->ctx->cmd_fd);
    assert_true(fd >= 0);
    saved          = f->ctx->cmd_fd;
    f->ctx->cmd_fd = fd;
    assert_int_equal(ibv_query_port(f->ctx, 1, &port), 0);
    f->ctx->cmd_fd = saved;
    close(fd);
    assert_int_equal(fstat(fd, &st), -1);
    assert_int_equal(ibv_query_port(f->ctx, 1, &port), 0);
}

static void fork__child__owns_nothing_and_harms_nothing(void **state)
{
    struct fixture *f = *state;
    struct ibv_port_attr port;
    int status;
    pid_t pid;

    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* the device is gone here, and closing it here is not felt there */
        status = (ibv_query_port(f->ctx, 1, &port) == EIO) ? 0 : 1;
        close(f->ctx->cmd_fd);
        close(f->ctx->async_fd);
        _exit(status);
    }

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(ibv_query_port(f->ctx, 1, &port), 0);
}

/* ---- address handles, memory ---- */

static void create_ah__own_gid__resolves_the_mac(void **state)
{
    struct fixture *f     = *state;
    struct mlx5dv_obj obj = {0};
    struct mlx5dv_ah av   = {0};
    union ibv_gid gid;
    struct ibv_ah *ah;

    assert_int_equal(ibv_query_gid(f->ctx, 1, f->roce ? 3 : 0, &gid), 0);
    ah = create_ah(f, &gid);
    assert_non_null(ah);
    obj.ah.in  = ah;
    obj.ah.out = &av;
    assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH), 0);
    if (f->roce) {
        assert_memory_equal(av.av->rgid, gid.raw, 16);
        assert_int_equal(av.av->rmac[0], 0x02);
        assert_memory_equal(&av.av->rmac[2], &gid.raw[12], 4);
    }
    assert_int_equal(ibv_destroy_ah(ah), 0);

    if (f->roce) {
        gid.raw[15] = 0xee; /* nobody's */
        assert_null(create_ah(f, &gid));
        assert_int_equal(errno, EHOSTUNREACH);
    }
}

static void reg_mr__keys__are_real_and_checked(void **state)
{
    struct fixture *f = *state;
    struct ibv_mr *mr, *other;

    mr = ibv_reg_mr(f->pd, f->mem + 10, 1000,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(mr);
    other = ibv_reg_mr(f->pd, f->mem + 10, 1000, 0);
    assert_non_null(other);
    assert_int_not_equal(mr->lkey, other->lkey);
    assert_int_equal(mr->lkey, mr->rkey);
    assert_int_equal(ibv_dealloc_pd(f->pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(other), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);

    assert_null(ibv_reg_mr(f->pd, f->mem, 1000, IBV_ACCESS_REMOTE_WRITE));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_reg_mr(f->pd, (void*)(uintptr_t)0x1000, 1000, 0));
    assert_int_equal(errno, EFAULT);
}

static void umem_reg__bad_access_or_memory__as_the_kernel(void **state)
{
    struct fixture *f = *state;

    assert_null(mlx5dv_devx_umem_reg(f->ctx, f->mem, PAGE,
                                     IBV_ACCESS_LOCAL_WRITE |
                                     IBV_ACCESS_REMOTE_ATOMIC));
    assert_int_equal(errno, EINVAL);
    assert_null(mlx5dv_devx_umem_reg(f->ctx, (void*)(uintptr_t)0x1000, PAGE,
                                     0));
    assert_int_equal(errno, EFAULT);
    assert_null(mlx5dv_devx_umem_reg_ex(
            f->ctx, &(struct mlx5dv_devx_umem_in) {
                    .addr = f->mem, .size = PAGE, .pgsz_bitmap = 0}));
    assert_int_equal(errno, EINVAL);
}

static void create_mkey__golden_and_refused__status_and_syndrome(void **state)
{
    struct fixture *f = *state;
    uint8_t query[16] = {0x02, 0x01};
    struct mlx5dv_devx_obj *obj;
    uint8_t in[MBOX];
    uint32_t index;

    fill_mkey(f, in);
    obj = create(f, in);
    assert_non_null(obj);
    index = get(f->out, 9, 3);
    assert_int_equal(mlx5dv_devx_umem_dereg(f->umem), EBUSY);

    put(query, 9, 3, index);
    assert_int_equal(mlx5dv_devx_obj_query(obj, query, sizeof(query), f->out,
                                           0x130), 0);
    assert_memory_equal(&f->out[0x10], &in[0x10], 32);
    assert_int_equal(mlx5dv_devx_obj_destroy(obj), 0);

    put(in, 0x20, 8, (uintptr_t)f->mem + 1);
    assert_null(create(f, in));
    assert_int_equal(errno, EREMOTEIO);
    assert_int_equal(f->out[0], 3);
    assert_int_equal(get(f->out, 4, 4), 0x317175);

    fill_mkey(f, in);
    put(in, 0x64, 4, 0x12345678);
    assert_null(create(f, in));
    assert_int_equal(f->out[0], 5);
}

/* ---- queues ---- */

static void queues__whole_life__states_and_order_of_destruction(void **state)
{
    struct mlx5dv_devx_obj *cq, *rmp, *qp;
    struct fixture *f     = *state;
    struct mlx5dv_obj obj = {0};
    struct mlx5dv_ah av   = {0};
    uint32_t cqn, rmpn, qpn;
    union ibv_gid gid;
    struct ibv_ah *ah;

    assert_int_equal(ibv_query_gid(f->ctx, 1, f->roce ? 3 : 0, &gid), 0);
    ah = create_ah(f, &gid);
    assert_non_null(ah);
    obj.ah.in  = ah;
    obj.ah.out = &av;
    assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH), 0);

    cq  = create_cq(f, &cqn);
    rmp = create_rmp(f, &rmpn);
    qp  = create_qp(f, cqn, rmpn, &qpn);
    assert_int_equal(qp_state(f, qp, qpn), 0);

    /* no step may be left out */
    assert_int_equal(to_rts(f, qp, qpn), EREMOTEIO);
    assert_int_not_equal(f->out[0], 0);
    assert_int_equal(to_init(f, qp, qpn), 0);
    assert_int_equal(qp_state(f, qp, qpn), 1);
    assert_int_equal(to_rtr(f, qp, qpn, &av), 0);
    assert_int_equal(qp_state(f, qp, qpn), 2);
    assert_int_equal(get(f->out, 0x2d, 3), qpn);
    assert_int_equal(to_rts(f, qp, qpn), 0);
    assert_int_equal(qp_state(f, qp, qpn), 3);
    assert_int_equal(to_simple(f, qp, 0x507, qpn), 0);
    assert_int_equal(qp_state(f, qp, qpn), 6);
    assert_int_equal(to_simple(f, qp, 0x50a, qpn), 0);
    assert_int_equal(qp_state(f, qp, qpn), 0);

    assert_int_equal(mlx5dv_devx_obj_destroy(cq), EBUSY);
    assert_int_equal(mlx5dv_devx_obj_destroy(rmp), EBUSY);
    assert_int_equal(mlx5dv_devx_obj_destroy(qp), 0);
    assert_int_equal(mlx5dv_devx_obj_destroy(rmp), 0);
    assert_int_equal(mlx5dv_devx_obj_destroy(cq), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void event_channel__subscribe__kinds_of_events(void **state)
{
    struct mlx5dv_devx_event_channel *chan;
    uint16_t completion = 0, nonsense = 0x77, port = 0x09;
    struct fixture *f   = *state;
    struct mlx5dv_devx_obj *cq;
    struct pollfd pfd;
    uint32_t cqn;

    chan = mlx5dv_devx_create_event_channel(
            f->ctx, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
    assert_non_null(chan);
    cq = create_cq(f, &cqn);
    assert_int_equal(mlx5dv_devx_subscribe_devx_event(
                             chan, cq, sizeof(completion), &completion, 42),
                     0);
    assert_int_equal(mlx5dv_devx_subscribe_devx_event(
                             chan, cq, sizeof(nonsense), &nonsense, 42),
                     EINVAL);
    assert_int_equal(mlx5dv_devx_subscribe_devx_event(
                             chan, NULL, sizeof(port), &port, 43), 0);
    assert_int_equal(mlx5dv_devx_subscribe_devx_event(
                             chan, NULL, sizeof(completion), &completion, 43),
                     EINVAL);

    pfd.fd     = chan->fd;
    pfd.events = POLLIN;
    assert_int_equal(poll(&pfd, 1, 0), 0);
    assert_int_equal(mlx5dv_devx_obj_destroy(cq), 0);
    mlx5dv_devx_destroy_event_channel(chan);
}

static void query_eqn__vector_out_of_range__is_refused(void **state)
{
    struct fixture *f = *state;
    uint32_t eqn;

    assert_int_equal(mlx5dv_devx_query_eqn(f->ctx, 3, &eqn), 0);
    assert_int_equal(mlx5dv_devx_query_eqn(f->ctx, 4, &eqn), EINVAL);
}

static void uar__mapping__is_writable_and_distinct(void **state)
{
    struct fixture *f = *state;
    struct mlx5dv_devx_uar *other;

    other = mlx5dv_devx_alloc_uar(f->ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
    assert_non_null(other);
    *(volatile uint64_t*)f->uar->reg_addr = 1;
    if (other->page_id != f->uar->page_id) {
        assert_ptr_not_equal(other->base_addr, f->uar->base_addr);
    }
    mlx5dv_devx_free_uar(other);
}

/* ---- verbs ---- */

static void verbs__cq_and_rc_qp__are_made_and_uc_is_not(void **state)
{
    struct fixture *f = *state;
    struct ibv_comp_channel *channel;
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UC};
    struct ibv_cq *cq;
    struct ibv_qp *qp;

    channel = ibv_create_comp_channel(f->ctx);
    assert_non_null(channel);
    cq = ibv_create_cq(f->ctx, 100, NULL, channel, 0);
    assert_non_null(cq);
    assert_int_equal(cq->cqe, 127);
    assert_int_equal(ibv_poll_cq(cq, 1, &(struct ibv_wc) {0}), 0);

    attr.send_cq         = cq;
    attr.recv_cq         = cq;
    attr.cap.max_send_wr = 1;
    attr.cap.max_recv_wr = 1;
    attr.cap.max_send_sge = 1;
    attr.cap.max_recv_sge = 1;
    assert_null(ibv_create_qp(f->pd, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
    attr.qp_type = IBV_QPT_RC;
    qp           = ibv_create_qp(f->pd, &attr);
    assert_non_null(qp);
    assert_int_equal(ibv_destroy_cq(cq), EBUSY);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static void general_command__not_a_general_one__is_refused(void **state)
{
    struct fixture *f = *state;
    uint8_t in[16]    = {0x01, 0x00, [7] = 0x01};

    assert_int_equal(mlx5dv_devx_general_cmd(f->ctx, in, sizeof(in), f->out,
                                             4112), 0);
    assert_int_equal(f->out[16 + 0x1c3 / 8] & 0x1f, 30); /* log_max_msg */
    in[0] = 0x05; /* CREATE_QP */
    assert_int_equal(mlx5dv_devx_general_cmd(f->ctx, in, sizeof(in), f->out,
                                             16), EINVAL);
    in[0] = 0x01;
    in[1] = 0x01; /* QUERY_ADAPTER: let through, not there */
    assert_int_equal(mlx5dv_devx_general_cmd(f->ctx, in, sizeof(in), f->out,
                                             16), EREMOTEIO);
    assert_int_equal(f->out[0], 2);
}

static void close__objects_alive__device_cleans_up(void **state)
{
    struct fixture *f       = *state;
    struct ibv_context *old = f->ctx;
    uint32_t cqn, rmpn, qpn;
    unsigned i;

    /* as a process that exits: nothing is destroyed before the file closes.
     * libmlx5's own memory of the objects is lost; the device's must not be:
     * again and again there is room. */
    for (i = 0; i < 300; ++i) {
        struct fixture inner = {0};

        inner.ctx = open_devx(f->dev);
        assert_non_null(inner.ctx);
        inner.mem  = f->mem;
        inner.pd   = ibv_alloc_pd(inner.ctx);
        inner.uar  = mlx5dv_devx_alloc_uar(inner.ctx,
                                           MLX5DV_UAR_ALLOC_TYPE_BF);
        inner.umem = mlx5dv_devx_umem_reg_ex(
                inner.ctx, &(struct mlx5dv_devx_umem_in) {
                        .addr = f->mem, .size = MEM_LEN,
                        .access = IBV_ACCESS_LOCAL_WRITE, .pgsz_bitmap = PAGE});
        assert_true((inner.pd != NULL) && (inner.uar != NULL) &&
                    (inner.umem != NULL));
        inner.pdn = get_pdn(inner.pd);
        (void)create_cq(&inner, &cqn);
        (void)create_rmp(&inner, &rmpn);
        (void)create_qp(&inner, cqn, rmpn, &qpn);
        assert_int_equal(ibv_close_device(inner.ctx), 0);
    }

    assert_ptr_equal(f->ctx, old);
}

#define TEST(_name) cmocka_unit_test_setup_teardown(_name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(device_list__name_guid_node__as_in_sysfs),
        TEST(device_list__every_device__opens),
        TEST(query_device__attributes__as_the_capabilities),
        TEST(query_port__link_layer__as_configured),
        TEST(query_gid__table_and_entries__agree),
        TEST(query_pkey__entry_0__is_the_default_key),
        TEST(sysfs__paths_others_know_by_heart__are_there),
        TEST(device_file__fstat_dup_close__behave_as_a_device),
        TEST(fork__child__owns_nothing_and_harms_nothing),
        TEST(create_ah__own_gid__resolves_the_mac),
        TEST(reg_mr__keys__are_real_and_checked),
        TEST(umem_reg__bad_access_or_memory__as_the_kernel),
        TEST(create_mkey__golden_and_refused__status_and_syndrome),
        TEST(queues__whole_life__states_and_order_of_destruction),
        TEST(event_channel__subscribe__kinds_of_events),
        TEST(query_eqn__vector_out_of_range__is_refused),
        TEST(uar__mapping__is_writable_and_distinct),
        TEST(verbs__cq_and_rc_qp__are_made_and_uc_is_not),
        TEST(general_command__not_a_general_one__is_refused),
        TEST(close__objects_alive__device_cleans_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
