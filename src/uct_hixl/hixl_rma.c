/* SPDX-License-Identifier: BSD-3-Clause */

/* RDMA: put and get, short, buffered and zero-copy. */

#include "hixl_ep.h"

static ucs_mpool_ops_t uct_hixl_op_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free
};

ucs_status_t uct_hixl_op_mpool_init(uct_hixl_iface_t *iface)
{
    ucs_status_t status;

    status = uct_hixl_compat_mpool_init(&iface->tx.op_mp,
                                        sizeof(uct_hixl_zcopy_op_t), 0,
                                        UCS_SYS_CACHE_LINE_SIZE, 128, UINT_MAX,
                                        &uct_hixl_op_mpool_ops, "hixl_ops");
    if (status != UCS_OK) {
        return status;
    }

    status = uct_hixl_compat_mpool_init(&iface->tx.bounce_mp,
                                        sizeof(uct_hixl_bounce_t), 0,
                                        UCS_SYS_CACHE_LINE_SIZE, 16, UINT_MAX,
                                        &uct_hixl_op_mpool_ops, "hixl_bounce");
    if (status != UCS_OK) {
        ucs_mpool_cleanup(&iface->tx.op_mp, 0);
    }
    return status;
}

void uct_hixl_op_mpool_cleanup(uct_hixl_iface_t *iface)
{
    ucs_mpool_cleanup(&iface->tx.bounce_mp, 1);
    ucs_mpool_cleanup(&iface->tx.op_mp, 1);
}

static UCS_F_ALWAYS_INLINE void
uct_hixl_zcopy_op_unpin(uct_hixl_zcopy_op_t *op)
{
    unsigned i;

    for (i = 0; i < op->nregions; ++i) {
        uct_hixl_region_unpin(op->regions[i]);
    }
}

int uct_hixl_zcopy_op_pin_many(uct_hixl_zcopy_op_t *op, const uct_iov_t *iov,
                               size_t iovcnt, struct hx_sge *sge)
{
    size_t length, i;

    op->nregions = 0;
    for (i = 0; i < iovcnt; ++i) {
        length = uct_iov_get_length(&iov[i]);
        if (length == 0) {
            continue;
        }

        if (!uct_hixl_iov_pin(&iov[i], length, &sge[op->nregions],
                              &op->regions[op->nregions])) {
            uct_hixl_zcopy_op_unpin(op);
            return -1;
        }
        ++op->nregions;
    }

    return op->nregions;
}

void uct_hixl_zcopy_handler(uct_hixl_op_t *op, ucs_status_t status)
{
    uct_completion_t *comp = op->comp;

    uct_hixl_zcopy_op_unpin(ucs_derived_of(op, uct_hixl_zcopy_op_t));
    ucs_mpool_put_inline(op);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

void uct_hixl_desc_handler(uct_hixl_op_t *op, ucs_status_t status)
{
    uct_completion_t *comp = op->comp;

    ucs_mpool_put_inline(op);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

static void uct_hixl_get_bcopy_handler(uct_hixl_op_t *op, ucs_status_t status)
{
    uct_hixl_tx_desc_t *desc = ucs_derived_of(op, uct_hixl_tx_desc_t);

    if (ucs_likely(status == UCS_OK)) {
        desc->unpack_cb(desc->arg, desc->data, desc->length);
    }
    uct_hixl_desc_handler(op, status);
}

ucs_status_t uct_hixl_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                   unsigned length, uint64_t remote_addr,
                                   uct_rkey_t rkey)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);
    uint8_t fm_ce_se;
    unsigned bb;

    UCT_CHECK_LENGTH(length, 0, iface->config.max_put_short, "put_short");
    UCT_HIXL_CHECK_RESOURCES(iface, ep);

    fm_ce_se = uct_hixl_ep_moderate(iface, ep) | ep->fence;
    bb       = hx_sq_write_inline(ep->sq, buffer, length, remote_addr,
                                  uct_hixl_rkey(rkey), fm_ce_se);
    uct_hixl_ep_post(iface, ep, bb, fm_ce_se);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, SHORT, length);
    return UCS_OK;
}

ssize_t uct_hixl_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                              void *arg, uint64_t remote_addr, uct_rkey_t rkey)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);
    uct_hixl_tx_desc_t *desc;
    struct hx_sge sge;
    uint8_t fm_ce_se;
    size_t length;
    unsigned bb;

    UCT_HIXL_CHECK_RESOURCES(iface, ep);
    UCT_HIXL_GET_TX_DESC(iface, ep, desc);

    length = pack_cb(desc->data, arg);
    UCT_SKIP_ZERO_LENGTH(length, desc);
    ucs_assert(length <= iface->config.seg_size);

    fm_ce_se            = uct_hixl_ep_moderate(iface, ep) | ep->fence;
    sge                 = uct_hixl_tx_desc_sge(desc, length);
    bb                  = hx_sq_write(ep->sq, &sge, 1, remote_addr,
                                      uct_hixl_rkey(rkey), fm_ce_se);
    desc->super.handler = uct_hixl_desc_handler;
    desc->super.comp    = NULL;
    uct_hixl_ep_post_op(iface, ep, bb, fm_ce_se, &desc->super);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, BCOPY, length);
    return length;
}

ucs_status_t uct_hixl_ep_get_bcopy(uct_ep_h tl_ep,
                                   uct_unpack_callback_t unpack_cb, void *arg,
                                   size_t length, uint64_t remote_addr,
                                   uct_rkey_t rkey, uct_completion_t *comp)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);
    uint8_t fm_ce_se = HX_WQE_CQ_UPDATE | ep->fence;
    uct_hixl_tx_desc_t *desc;
    struct hx_sge sge;
    unsigned bb;

    UCT_CHECK_LENGTH(length, 0, iface->config.seg_size, "get_bcopy");
    UCT_SKIP_ZERO_LENGTH(length);
    UCT_HIXL_CHECK_RESOURCES(iface, ep);
    UCT_HIXL_GET_TX_DESC(iface, ep, desc);

    sge                 = uct_hixl_tx_desc_sge(desc, length);
    bb                  = hx_sq_read(ep->sq, &sge, 1, remote_addr,
                                     uct_hixl_rkey(rkey), fm_ce_se);
    desc->super.handler = uct_hixl_get_bcopy_handler;
    desc->super.comp    = comp;
    desc->unpack_cb     = unpack_cb;
    desc->arg           = arg;
    desc->length        = length;
    uct_hixl_ep_post_op(iface, ep, bb, fm_ce_se, &desc->super);
    ep->reads           = 1;
    UCT_TL_EP_STAT_OP(&ep->super, GET, BCOPY, length);
    return UCS_INPROGRESS;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_hixl_ep_rdma_zcopy(uct_hixl_iface_t *iface, uct_hixl_ep_t *ep, int is_get,
                       const uct_iov_t *iov, size_t iovcnt, size_t length,
                       uint64_t remote_addr, uct_rkey_t rkey,
                       uct_completion_t *comp)
{
    uint8_t fm_ce_se = HX_WQE_CQ_UPDATE | ep->fence;
    struct hx_sge sge[HX_RDMA_SGE_MAX];
    uct_hixl_zcopy_op_t *op;
    unsigned bb;
    int count;

    UCT_HIXL_CHECK_RESOURCES(iface, ep);

    op = ucs_mpool_get_inline(&iface->tx.op_mp);
    if (ucs_unlikely(op == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }

    count = uct_hixl_zcopy_op_pin(op, iov, iovcnt, length, sge);
    if (ucs_unlikely(count <= 0)) {
        ucs_mpool_put_inline(op);
        return (count == 0) ? UCS_OK :
               uct_hixl_bounce_start(ep, is_get, iov, iovcnt, remote_addr,
                                     rkey, comp);
    }

    if (is_get) {
        bb        = hx_sq_read(ep->sq, sge, count, remote_addr,
                               uct_hixl_rkey(rkey), fm_ce_se);
        ep->reads = 1;
    } else {
        bb        = hx_sq_write(ep->sq, sge, count, remote_addr,
                                uct_hixl_rkey(rkey), fm_ce_se);
    }

    op->super.handler = uct_hixl_zcopy_handler;
    op->super.comp    = comp;
    uct_hixl_ep_post_op(iface, ep, bb, fm_ce_se, &op->super);
    return UCS_INPROGRESS;
}

ucs_status_t uct_hixl_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                   size_t iovcnt, uint64_t remote_addr,
                                   uct_rkey_t rkey, uct_completion_t *comp)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);
    size_t length = uct_iov_total_length(iov, iovcnt);
    ucs_status_t status;

    UCT_CHECK_IOV_SIZE(iovcnt, (size_t)iface->config.max_iov,
                       "uct_hixl_ep_put_zcopy");
    UCT_CHECK_LENGTH(length, 0, iface->config.max_zcopy, "put_zcopy");

    status = uct_hixl_ep_rdma_zcopy(iface, ep, 0, iov, iovcnt, length,
                                    remote_addr, rkey, comp);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, PUT, ZCOPY, length);
    return status;
}

ucs_status_t uct_hixl_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                   size_t iovcnt, uint64_t remote_addr,
                                   uct_rkey_t rkey, uct_completion_t *comp)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);
    size_t length = uct_iov_total_length(iov, iovcnt);
    ucs_status_t status;

    UCT_CHECK_IOV_SIZE(iovcnt, (size_t)iface->config.max_iov,
                       "uct_hixl_ep_get_zcopy");
    UCT_CHECK_LENGTH(length, 0, iface->config.max_zcopy, "get_zcopy");

    status = uct_hixl_ep_rdma_zcopy(iface, ep, 1, iov, iovcnt, length,
                                    remote_addr, rkey, comp);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, GET, ZCOPY, length);
    return status;
}
