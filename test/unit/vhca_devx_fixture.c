/* SPDX-License-Identifier: BSD-3-Clause */

/* The context, the objects and the hand-written mailboxes of the decoders'
 * tests. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include "vhca_devx_fixture.h"

static struct vhca_uobj *fix_add(struct vhca_ctx *ctx, enum vhca_uobj_kind kind,
                             uint32_t number)
{
    struct vhca_uobj *obj;

    assert_int_equal(vhca_uobj_alloc(ctx, kind, &obj), 0);
    obj->number = number;
    return obj;
}

static int fix_setup_link(void **state, const char *link)
{
    struct fixture *f = calloc(1, sizeof(*f));

    setenv("VHCA_LINK", link, 1);
    memset(&fix_nic, 0, sizeof(fix_nic));
    pthread_mutex_init(&f->ctx.lock, NULL);
    f->ctx.opened = true;
    f->ctx.devx   = true;
    f->ctx.owner  = FIX_OWNER;
    f->outlen     = 16;
    f->mem        = mmap(NULL, UMEM_LEN, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(f->mem != MAP_FAILED);
    f->pd  = fix_add(&f->ctx, VHCA_UOBJ_PD, FIX_PDN);
    f->uar = fix_add(&f->ctx, VHCA_UOBJ_UAR, UAR_PAGE);
    assert_int_equal(vhca_umem_reg(&f->ctx, (uintptr_t)f->mem, UMEM_LEN,
                                   IB_UVERBS_ACCESS_LOCAL_WRITE, 4096,
                                   &f->umem), 0);
    assert_int_equal(vhca_umem_id(f->umem), 0x100003);
    f->cq  = fix_add(&f->ctx, VHCA_UOBJ_DEVX_CQ, FIX_CQN);
    f->rmp = fix_add(&f->ctx, VHCA_UOBJ_DEVX_RMP, FIX_RMPN);
    f->qp  = fix_add(&f->ctx, VHCA_UOBJ_DEVX_QP, FIX_QPN);
    fix_nic.qp.pdn     = FIX_PDN;
    fix_nic.qp.cqn_snd = FIX_CQN;
    fix_nic.qp.cqn_rcv = FIX_CQN;
    *state             = f;
    return 0;
}

int fix_setup(void **state)
{
    return fix_setup_link(state, "roce");
}

int fix_setup_ib(void **state)
{
    return fix_setup_link(state, "ib");
}

int fix_teardown(void **state)
{
    struct fixture *f = *state;

    vhca_uobj_destroy_all(&f->ctx);
    munmap(f->mem, UMEM_LEN);
    free(f);
    return 0;
}

int fix_call(struct fixture *f, uint16_t object, uint16_t method,
                const struct ib_uverbs_attr *attrs, unsigned num)
{
    struct {
        struct ib_uverbs_ioctl_hdr hdr;
        struct ib_uverbs_attr      attrs[6];
    } req;
    int ret;

    memset(&req, 0, sizeof(req));
    memcpy(req.attrs, attrs, num * sizeof(*attrs));
    req.hdr.length    = (uint16_t)(sizeof(req.hdr) + num * sizeof(*attrs));
    req.hdr.object_id = object;
    req.hdr.method_id = method;
    req.hdr.num_attrs = (uint16_t)num;
    req.hdr.driver_id = RDMA_DRIVER_MLX5;
    ret               = vhca_uverbs_ioctl(&f->ctx, &req.hdr);
    f->handle         = (uint32_t)req.attrs[0].data;
    return ret;
}

/* Attribute numbers of CREATE, MODIFY and QUERY are handle, in, out alike */
int fix_obj_call(struct fixture *f, uint16_t method, uint32_t handle,
                    const uint8_t *in, size_t inlen)
{
    const struct ib_uverbs_attr attrs[] = {
        {.attr_id = 0x1000, .flags = UVERBS_ATTR_F_MANDATORY, .data = handle},
        {.attr_id = 0x1001, .len = (uint16_t)inlen,
         .flags = UVERBS_ATTR_F_MANDATORY, .data = (uintptr_t)in},
        {.attr_id = 0x1002, .len = (uint16_t)f->outlen,
         .flags = UVERBS_ATTR_F_MANDATORY, .data = (uintptr_t)f->out},
    };

    memset(f->out, 0xee, sizeof(f->out));
    return fix_call(f, MLX5_IB_OBJECT_DEVX_OBJ, method, attrs, 3);
}

int fix_create(struct fixture *f, const uint8_t *in, size_t inlen)
{
    return fix_obj_call(f, MLX5_IB_METHOD_DEVX_OBJ_CREATE, 0, in, inlen);
}

int fix_modify(struct fixture *f, const uint8_t *in, size_t inlen)
{
    return fix_obj_call(f, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, f->qp->handle, in,
                    inlen);
}

uint32_t fix_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

void fix_put_be64(uint8_t *p, uint64_t value)
{
    unsigned i;

    for (i = 0; i < 8; ++i) {
        p[i] = (uint8_t)(value >> (56 - 8 * i));
    }
}

void fix_refused(struct fixture *f, int ret, uint8_t status,
                           uint32_t syndrome)
{
    assert_int_equal(ret, -EREMOTEIO);
    assert_int_equal(f->out[0], status);
    assert_int_equal(fix_be32(&f->out[4]), syndrome);
    assert_int_equal(fix_nic.calls, 0);
}

/* ---- golden mailboxes, byte by byte ---- */

/* Bytes 4096..8191 of the umem; start_addr and len are set by the test */
const uint8_t fix_mkey[MBOX] = {
    [0x00] = 0x02, [0x01] = 0x00,                   /* CREATE_MKEY */
    [0x12] = 0x3d,                                  /* rw rr lw lr, MTT */
    [0x14] = 0xff, [0x15] = 0xff, [0x16] = 0xff,    /* qpn: any */
    [0x17] = 0x5a,                                  /* mkey_7_0 */
    [0x1e] = 0x01, [0x1f] = 0x23,                   /* pd */
    [0x2e] = 0x10, [0x2f] = 0x00,                   /* len 4096 */
    [0x63] = 0x01,                                  /* actual size */
    [0x65] = 0x10, [0x67] = 0x03,                   /* mkey_umem_id */
    [0x6e] = 0x10, [0x6f] = 0x00,                   /* mkey_umem_offset */
};

const uint8_t fix_cq[MBOX] = {
    [0x00] = 0x04, [0x01] = 0x00,                   /* CREATE_CQ */
    [0x15] = 0x10, [0x17] = 0x03,                   /* dbr_umem_id */
    [0x1c] = 0x07,                                  /* 128 entries */
    [0x1e] = 0x10, [0x1f] = 0x02,                   /* uar_page */
    [0x27] = 0x05,                                  /* c_eqn */
    [0x4e] = 0x2f, [0x4f] = 0xc0,                   /* dbr_addr 0x2fc0 */
    [0x56] = 0x40,                                  /* cq_umem_offset 0x4000 */
    [0x59] = 0x10, [0x5b] = 0x03,                   /* cq_umem_id */
};

const uint8_t fix_rmp[MBOX] = {
    [0x00] = 0x09, [0x01] = 0x0c,                   /* CREATE_RMP */
    [0x21] = 0x10,                                  /* state: ready */
    [0x50] = 0x00,                                  /* linked list */
    [0x5a] = 0x01, [0x5b] = 0x23,                   /* pd */
    [0x66] = 0x30, [0x67] = 0x80,                   /* dbr_addr 0x3080 */
    [0x71] = 0x05,                                  /* 32-byte WQEs */
    [0x73] = 0x06,                                  /* 64 of them */
    [0x79] = 0x10, [0x7b] = 0x03,                   /* dbr_umem_id */
    [0x7d] = 0x10, [0x7f] = 0x03,                   /* wq_umem_id */
    [0x86] = 0x80,                                  /* wq_umem_offset 0x8000 */
};

const uint8_t fix_qp[MBOX] = {
    [0x00] = 0x05, [0x01] = 0x00,                   /* CREATE_QP */
    [0x19] = 0x00, [0x1a] = 0x18,                   /* RC, migrated */
    [0x1e] = 0x01, [0x1f] = 0x23,                   /* pd */
    [0x22] = 0x30,                                  /* 64 blocks to send */
    [0x23] = 0x40,                                  /* ts_format default */
    [0x26] = 0x10, [0x27] = 0x02,                   /* uar_page */
    [0x29] = 0xff, [0x2a] = 0xff, [0x2b] = 0xff,    /* user_index */
    [0x95] = 0x01, [0x96] = 0x02, [0x97] = 0x03,    /* cqn_snd */
    [0xb5] = 0x01, [0xb6] = 0x02, [0xb7] = 0x03,    /* cqn_rcv */
    [0xbe] = 0x20, [0xbf] = 0x40,                   /* dbr_addr 0x2040 */
    [0xc4] = 0x01,                                  /* rq_type: SRQ or RMP */
    [0xc5] = 0x02, [0xc6] = 0x03, [0xc7] = 0x04,    /* rmpn */
    [0xfd] = 0x10, [0xff] = 0x03,                   /* dbr_umem_id */
    [0x106] = 0xc0,                                 /* wq_umem_offset 0xc000 */
    [0x109] = 0x10, [0x10b] = 0x03,                 /* wq_umem_id */
};

const uint8_t fix_2init[MBOX] = {
    [0x00] = 0x05, [0x01] = 0x02,                   /* RST2INIT */
    [0x09] = 0x03, [0x0a] = 0x04, [0x0b] = 0x05,    /* qpn */
    [0x1a] = 0x18,
    [0x55] = 0x01,                                  /* vhca_port_num */
    [0xaa] = 0xc0,                                  /* rre rwe */
};

const uint8_t fix_2rtr[MBOX] = {
    [0x00] = 0x05, [0x01] = 0x03,                   /* INIT2RTR */
    [0x09] = 0x03, [0x0a] = 0x04, [0x0b] = 0x05,    /* qpn */
    [0x13] = 0x0a,                                  /* may set rre, rwe */
    [0x1a] = 0x18,
    [0x20] = 0xbe,                                  /* mtu 4096, 2^30 bytes */
    [0x2d] = 0x0a, [0x2e] = 0x0b, [0x2f] = 0x0c,    /* remote_qpn */
    [0x39] = 0x03, [0x3b] = 0x40,                   /* sgid 3, hop limit 64 */
    [0x4a] = 0xff, [0x4b] = 0xff,                   /* ::ffff:198.18.0.1 */
    [0x4c] = 0xc6, [0x4d] = 0x12, [0x4e] = 0x00, [0x4f] = 0x01,
    [0x52] = 0xc1, [0x53] = 0x23,                   /* udp_sport */
    [0x56] = 0x02, [0x57] = 0x00, [0x58] = 0xc6,    /* rmac */
    [0x59] = 0x12, [0x5a] = 0x00, [0x5b] = 0x01,
    [0xa9] = 0x81,                                  /* 2^4 reads, atomic 1 */
    [0xaa] = 0xc0,                                  /* rre rwe */
    [0xac] = 0x0c,                                  /* min_rnr_nak */
    [0xad] = 0x11, [0xae] = 0x22, [0xaf] = 0x33,    /* next_rcv_psn */
};

const uint8_t fix_2rtr_ib[MBOX] = {
    [0x00] = 0x05, [0x01] = 0x03,                   /* INIT2RTR */
    [0x09] = 0x03, [0x0a] = 0x04, [0x0b] = 0x05,    /* qpn */
    [0x1a] = 0x18,
    [0x20] = 0xbe,                                  /* mtu 4096, 2^30 bytes */
    [0x2d] = 0x0a, [0x2e] = 0x0b, [0x2f] = 0x0c,    /* remote_qpn */
    [0x37] = 0x12,                                  /* rlid */
    [0x54] = 0x03,                                  /* sl */
    [0xa9] = 0x81,                                  /* 2^4 reads, atomic 1 */
    [0xaa] = 0xc0,                                  /* rre rwe */
    [0xac] = 0x0c,                                  /* min_rnr_nak */
    [0xad] = 0x11, [0xae] = 0x22, [0xaf] = 0x33,    /* next_rcv_psn */
};

const uint8_t fix_2rts[MBOX] = {
    [0x00] = 0x05, [0x01] = 0x04,                   /* RTR2RTS */
    [0x09] = 0x03, [0x0a] = 0x04, [0x0b] = 0x05,    /* qpn */
    [0x1a] = 0x18,
    [0x38] = 0x70,                                  /* ack_timeout 14 */
    [0x89] = 0x87,                                  /* 2^4 reads, retry 7 */
    [0x8a] = 0xe0,                                  /* rnr_retry 7 */
    [0x91] = 0x11, [0x92] = 0x22, [0x93] = 0x33,    /* next_send_psn */
};

void fix_mkey_mailbox(const struct fixture *f, uint8_t *in)
{
    memcpy(in, fix_mkey, MBOX);
    fix_put_be64(&in[0x20], (uintptr_t)f->mem + 4096);
}
