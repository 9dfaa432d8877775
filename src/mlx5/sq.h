/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Building and posting send WQEs. A builder writes one WQE at sq->pi and
 * returns its basic blocks, for hx_sq_post(); the caller has checked that
 * hx_sq_room() >= HX_WQE_MAX_BB. In 16-byte segments:
 *
 *   WRITE, READ      ctrl | raddr | data ...          one piece: 48 bytes
 *   WRITE inline     ctrl | raddr | inline            28 bytes fit one block
 *   SEND inline      ctrl | inline                    44 bytes fit one block
 *   SEND             ctrl | inline header | data ...
 *   NOP              ctrl
 *
 * WQEs begin at a basic block and may wrap at the end of the ring, between two
 * segments or inside of inline data. One of one block never does.
 */

#ifndef HX_SQ_H_
#define HX_SQ_H_

#include "hx.h"
#include "mmio.h"
#include "wqe.h"

#include <string.h>

/* fm_ce_se of the ctrl segment, given to every builder */
#define HX_WQE_SOLICITED   0x02
#define HX_WQE_CQ_UPDATE   0x08 /* a CQE, not only for an error */
#define HX_WQE_FENCE_SMALL 0x20
#define HX_WQE_FENCE       0x40

/* One local piece of a zero-copy operation, at most 2^30 bytes */
struct hx_sge {
    uint64_t addr;
    uint32_t len;
    uint32_t lkey;
};

/* What HX_WQE_MAX_BB basic blocks hold: inline bytes, and pieces */
#define HX_WRITE_INLINE_MAX (HX_WQE_MAX_BB * HX_BB_SIZE - 16 - 16 - 4)
#define HX_SEND_INLINE_MAX  (HX_WQE_MAX_BB * HX_BB_SIZE - 16 - 4)
#define HX_RDMA_SGE_MAX     ((HX_WQE_MAX_BB * HX_BB_SIZE - 32) / 16)
#define HX_SEND_SGE_MAX     ((HX_WQE_MAX_BB * HX_BB_SIZE - 16) / 16)

/* Of hx_sq_send()'s inline header, which takes room from the pieces: see
 * hx_sq_send_ds() */
#define HX_SEND_HDR_MAX 64

/** Free basic blocks. A CQE names the first block of its WQE, so up to
 *  HX_WQE_MAX_BB blocks that are free are not known to be; as many are kept
 *  spare, so that a queue with nothing in flight always has room for a WQE. */
static inline unsigned hx_sq_room(const struct hx_sq *sq)
{
    unsigned size = sq->mask + 1 - 2 * HX_WQE_MAX_BB;
    unsigned used = (uint16_t)(sq->pi - sq->ci);

    return (used < size) ? size - used : 0;
}

static inline void *hx_sq_block(const struct hx_sq *sq, uint16_t index)
{
    return (uint8_t *)sq->ring + (size_t)(index & sq->mask) * HX_BB_SIZE;
}

static inline uint8_t *hx_sq_end(const struct hx_sq *sq)
{
    return (uint8_t *)sq->ring + (size_t)(sq->mask + 1) * HX_BB_SIZE;
}

/* The place n bytes behind `at`, at most one WQE: wraps at the end */
static inline void *hx_sq_advance(const struct hx_sq *sq, void *at, size_t n)
{
    uint8_t *next = (uint8_t *)at + n;

    return (next < hx_sq_end(sq)) ? next :
                                    next - (size_t)(sq->mask + 1) * HX_BB_SIZE;
}

static inline unsigned hx_ds_to_bb(unsigned ds)
{
    return (ds + 3) / 4;
}

/* Segments that n inline bytes and their header take */
static inline unsigned hx_inline_ds(unsigned n)
{
    return (HX_WQE_INLINE_HDR + n + HX_WQE_DS_SIZE - 1) / HX_WQE_DS_SIZE;
}

/* Copies a WQE's worth of bytes without a call. Each size class ends with a
 * copy that overlaps the one before, so nothing is read or written outside. */
static inline void hx_copy_inline(void *dst, const void *src, size_t n)
{
    uint8_t *d       = (uint8_t *)dst;
    const uint8_t *s = (const uint8_t *)src;
    size_t i;

    if (n >= 16) {
        for (i = 0; i < n - 16; i += 16) {
            __builtin_memcpy(d + i, s + i, 16);
        }
        __builtin_memcpy(d + n - 16, s + n - 16, 16);
    } else if (n >= 8) {
        __builtin_memcpy(d, s, 8);
        __builtin_memcpy(d + n - 8, s + n - 8, 8);
    } else if (n >= 4) {
        __builtin_memcpy(d, s, 4);
        __builtin_memcpy(d + n - 4, s + n - 4, 4);
    } else if (n > 0) {
        d[0]     = s[0];
        d[n / 2] = s[n / 2];
        d[n - 1] = s[n - 1];
    }
}

/* The same into the ring; returns the place behind the copy */
static inline void *hx_sq_copy(const struct hx_sq *sq, void *dst,
                               const void *src, size_t n)
{
    size_t left = hx_sq_end(sq) - (uint8_t *)dst;

    if (__builtin_expect(n < left, 1)) {
        hx_copy_inline(dst, src, n);
        return (uint8_t *)dst + n;
    }

    hx_copy_inline(dst, src, left);
    hx_copy_inline(sq->ring, (const uint8_t *)src + left, n - left);
    return (uint8_t *)sq->ring + (n - left);
}

static inline void hx_wqe_set_ctrl(const struct hx_sq *sq, void *seg,
                                   uint8_t opcode, unsigned ds,
                                   uint8_t fm_ce_se)
{
    uint32_t idx_opcode = (uint32_t)sq->pi << 8 | opcode;
    uint32_t qpn_ds     = sq->qpn << 8 | ds;

    *(struct hx_wqe_ctrl *)seg = (struct hx_wqe_ctrl) {
        .opmod_idx_opcode_qpn_ds = htobe64((uint64_t)idx_opcode << 32 |
                                           qpn_ds),
        .fm_ce_se_imm            = htobe64((uint64_t)fm_ce_se << 32),
    };
}

static inline void hx_wqe_set_raddr(void *seg, uint64_t raddr, uint32_t rkey)
{
    *(struct hx_wqe_raddr *)seg = (struct hx_wqe_raddr) {
        .raddr     = htobe64(raddr),
        .rkey_rsvd = htobe64((uint64_t)rkey << 32),
    };
}

static inline void hx_wqe_set_data(void *seg, const struct hx_sge *sge)
{
    *(struct hx_wqe_data *)seg = (struct hx_wqe_data) {
        .byte_count_lkey = htobe64((uint64_t)sge->len << 32 | sge->lkey),
        .addr            = htobe64(sge->addr),
    };
}

static inline void hx_wqe_set_inline(void *seg, unsigned len)
{
    *(uint32_t *)seg = htobe32(HX_WQE_INLINE | len);
}

/* Data segments from `seg` on, none for an empty piece; returns how many */
static inline unsigned hx_sq_set_sges(const struct hx_sq *sq, void *seg,
                                      const struct hx_sge *sge, unsigned nsge)
{
    unsigned ds = 0;
    unsigned i;

    for (i = 0; i < nsge; ++i) {
        if (sge[i].len != 0) {
            hx_wqe_set_data(seg, &sge[i]);
            seg = hx_sq_advance(sq, seg, HX_WQE_DS_SIZE);
            ++ds;
        }
    }

    return ds;
}

/** RDMA_WRITE of at most HX_WRITE_INLINE_MAX bytes, which are copied */
static inline unsigned hx_sq_write_inline(struct hx_sq *sq, const void *data,
                                          unsigned len, uint64_t raddr,
                                          uint32_t rkey, uint8_t fm_ce_se)
{
    uint8_t *wqe = (uint8_t *)hx_sq_block(sq, sq->pi);
    unsigned ds  = 2;

    hx_wqe_set_raddr(wqe + 16, raddr, rkey);
    if (len != 0) {
        hx_wqe_set_inline(wqe + 32, len);
        if (len <= HX_BB_SIZE - 36) {
            hx_copy_inline(wqe + 36, data, len); /* one block: no wrap */
        } else {
            hx_sq_copy(sq, wqe + 36, data, len);
        }
        ds += hx_inline_ds(len);
    }

    hx_wqe_set_ctrl(sq, wqe, HX_WQE_OP_RDMA_WRITE, ds, fm_ce_se);
    return hx_ds_to_bb(ds);
}

static inline unsigned hx_sq_rdma(struct hx_sq *sq, uint8_t opcode,
                                  const struct hx_sge *sge, unsigned nsge,
                                  uint64_t raddr, uint32_t rkey,
                                  uint8_t fm_ce_se)
{
    uint8_t *wqe = (uint8_t *)hx_sq_block(sq, sq->pi);
    unsigned ds  = 2;

    hx_wqe_set_raddr(wqe + 16, raddr, rkey);
    if (__builtin_expect(nsge == 1, 1)) {
        if (__builtin_expect(sge->len != 0, 1)) {
            hx_wqe_set_data(wqe + 32, sge);
            ds = 3;
        }
        hx_wqe_set_ctrl(sq, wqe, opcode, ds, fm_ce_se);
        return 1;
    }

    ds += hx_sq_set_sges(sq, wqe + 32, sge, nsge);
    hx_wqe_set_ctrl(sq, wqe, opcode, ds, fm_ce_se);
    return hx_ds_to_bb(ds);
}

/** RDMA_WRITE of at most HX_RDMA_SGE_MAX pieces */
static inline unsigned hx_sq_write(struct hx_sq *sq, const struct hx_sge *sge,
                                   unsigned nsge, uint64_t raddr,
                                   uint32_t rkey, uint8_t fm_ce_se)
{
    return hx_sq_rdma(sq, HX_WQE_OP_RDMA_WRITE, sge, nsge, raddr, rkey,
                      fm_ce_se);
}

/** RDMA_READ into at most HX_RDMA_SGE_MAX pieces */
static inline unsigned hx_sq_read(struct hx_sq *sq, const struct hx_sge *sge,
                                  unsigned nsge, uint64_t raddr, uint32_t rkey,
                                  uint8_t fm_ce_se)
{
    return hx_sq_rdma(sq, HX_WQE_OP_RDMA_READ, sge, nsge, raddr, rkey,
                      fm_ce_se);
}

/** SEND of a header and a payload, either may be empty, together at most
 *  HX_SEND_INLINE_MAX bytes; both are copied */
static inline unsigned hx_sq_send_inline(struct hx_sq *sq, const void *hdr,
                                         unsigned hdr_len, const void *data,
                                         unsigned len, uint8_t fm_ce_se)
{
    uint8_t *wqe = (uint8_t *)hx_sq_block(sq, sq->pi);
    unsigned ds  = 1;
    void *at;

    if (hdr_len + len != 0) {
        hx_wqe_set_inline(wqe + 16, hdr_len + len);
        at  = hx_sq_copy(sq, wqe + 20, hdr, hdr_len);
        hx_sq_copy(sq, at, data, len);
        ds += hx_inline_ds(hdr_len + len);
    }

    hx_wqe_set_ctrl(sq, wqe, HX_WQE_OP_SEND, ds, fm_ce_se);
    return hx_ds_to_bb(ds);
}

/** Segments of a SEND with hdr_len inline bytes and nsge pieces: at most
 *  HX_WQE_MAX_BB * 4 */
static inline unsigned hx_sq_send_ds(unsigned hdr_len, unsigned nsge)
{
    return 1 + ((hdr_len != 0) ? hx_inline_ds(hdr_len) : 0) + nsge;
}

/** SEND of an inline header, at most HX_SEND_HDR_MAX bytes or none, and then
 *  pieces, see hx_sq_send_ds() */
static inline unsigned hx_sq_send(struct hx_sq *sq, const void *hdr,
                                  unsigned hdr_len, const struct hx_sge *sge,
                                  unsigned nsge, uint8_t fm_ce_se)
{
    uint8_t *wqe = (uint8_t *)hx_sq_block(sq, sq->pi);
    unsigned ds  = 1;

    if (hdr_len != 0) {
        hx_wqe_set_inline(wqe + 16, hdr_len);
        hx_sq_copy(sq, wqe + 20, hdr, hdr_len);
        ds += hx_inline_ds(hdr_len);
    }

    ds += hx_sq_set_sges(sq, hx_sq_advance(sq, wqe, ds * HX_WQE_DS_SIZE), sge,
                         nsge);
    hx_wqe_set_ctrl(sq, wqe, HX_WQE_OP_SEND, ds, fm_ce_se);
    return hx_ds_to_bb(ds);
}

/** Does nothing, in order; with HX_WQE_CQ_UPDATE and a fence it says when all
 *  before it is done */
static inline unsigned hx_sq_nop(struct hx_sq *sq, uint8_t fm_ce_se)
{
    hx_wqe_set_ctrl(sq, hx_sq_block(sq, sq->pi), HX_WQE_OP_NOP, 1, fm_ce_se);
    return 1;
}

/** Hands the WQE of bb basic blocks at pi to the device */
static inline void hx_sq_post(struct hx_sq *sq, unsigned bb)
{
    const struct hx_wqe_ctrl *ctrl = (const struct hx_wqe_ctrl *)
            hx_sq_block(sq, sq->pi);
    uint16_t pi                    = sq->pi + bb;

    hx_dma_wmb();
    *sq->dbrec = htobe32(pi);
    sq->pi     = pi;

    /* The UAR takes the first 8 bytes of the WQE */
    hx_wc_start();
    hx_mmio_write64(sq->uar_reg, ctrl->opmod_idx_opcode_qpn_ds);
    hx_wc_flush();

    if (sq->ring_soft != NULL) {
        sq->ring_soft(HX_RING_SOFT_SQ, sq->qpn);
    }
}

/** A CQE named wqe_counter, the first block of a WQE: what lies before it is
 *  free. Its own blocks are free too, but how many they are is not known here;
 *  hx_sq_room() keeps spare ones instead. */
static inline void hx_sq_complete(struct hx_sq *sq, uint16_t wqe_counter)
{
    sq->ci = wqe_counter;
}

#endif
