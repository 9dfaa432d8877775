/* SPDX-License-Identifier: BSD-3-Clause */

/* Work queue elements and error completions as lines of VHCA_TRACE. */

#include <endian.h>

#include "nic.h"
#include "trace.h"

int nic_trace_load(void)
{
    int ret = vhca_trace_open();

    if ((ret == 0) && vhca_tracing()) {
        nic_hooks |= NIC_HOOK_TRACE;
    }
    return ret;
}

static void add_opcode(struct vhca_trace *trace, uint8_t opcode)
{
    static const struct {
        uint8_t opcode;
        char    name[15];
    } names[] = {
        {WQE_OP_NOP, "NOP"}, {WQE_OP_RDMA_WRITE, "RDMA_WRITE"},
        {WQE_OP_RDMA_WRITE_IMM, "RDMA_WRITE_IMM"}, {WQE_OP_SEND, "SEND"},
        {WQE_OP_SEND_IMM, "SEND_IMM"}, {WQE_OP_RDMA_READ, "RDMA_READ"},
        {WQE_OP_ATOMIC_CS, "ATOMIC_CS"}, {WQE_OP_ATOMIC_FA, "ATOMIC_FA"},
        {WQE_OP_MASKED_CS, "MASKED_CS"}, {WQE_OP_MASKED_FA, "MASKED_FA"}
    };
    unsigned i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        if (names[i].opcode == opcode) {
            vhca_trace_add(trace, " %s", names[i].name);
            return;
        }
    }
    vhca_trace_add(trace, " opcode=0x%02x", opcode);
}

/* Bytes before the data segments, as the opcode has them */
static size_t add_fixed(struct vhca_trace *trace, const uint8_t *wqe,
                        size_t end)
{
    const struct wqe_ctrl *ctrl   = (const void*)wqe;
    const struct wqe_raddr *raddr = (const void*)(wqe + WQE_SEG);
    uint32_t word                 = be32toh(ctrl->opmod_idx_opcode);
    uint8_t opcode                = word;
    size_t at                     = WQE_SEG, len;
    uint64_t value;

    if ((opcode == WQE_OP_SEND_IMM) || (opcode == WQE_OP_RDMA_WRITE_IMM)) {
        vhca_trace_add(trace, " imm=0x%08x", be32toh(ctrl->imm));
    }
    if ((opcode == WQE_OP_NOP) || (opcode == WQE_OP_SEND) ||
        (opcode == WQE_OP_SEND_IMM)) {
        return at;
    }
    if (end < at + sizeof(*raddr)) {
        return end;
    }

    vhca_trace_add(trace, " raddr=0x%llx rkey=0x%x",
                   (unsigned long long)be64toh(raddr->raddr),
                   be32toh(raddr->rkey));
    at += sizeof(*raddr);
    if ((opcode >= WQE_OP_ATOMIC_CS) && (opcode <= WQE_OP_MASKED_FA)) {
        len = ((opcode == WQE_OP_MASKED_CS) && (word >> 24 & 3)) ? 32 : 16;
        end = (end < at + len) ? end : at + len;
        for (; at + sizeof(value) <= end; at += sizeof(value)) {
            memcpy(&value, wqe + at, sizeof(value));
            vhca_trace_add(trace, " 0x%llx",
                           (unsigned long long)be64toh(value));
        }
    }
    return at;
}

/* Lengths and addresses: data itself is nobody's affair */
static void add_data(struct vhca_trace *trace, const uint8_t *wqe, size_t at,
                     size_t end)
{
    const struct wqe_data *seg;
    uint64_t total = 0;
    uint32_t count;

    for (; at + 4 <= end; at += sizeof(*seg)) {
        seg   = (const void*)(wqe + at);
        count = be32toh(seg->byte_count);
        if (count & WQE_INLINE) {
            count &= ~WQE_INLINE;
            vhca_trace_add(trace, " [inline %u]", count);
            at    += (4 + (size_t)count + WQE_SEG - 1) / WQE_SEG * WQE_SEG -
                     sizeof(*seg);
            total += count;
        } else {
            vhca_trace_add(trace, " [0x%llx +%u lkey=0x%x]",
                           (unsigned long long)be64toh(seg->addr), count,
                           be32toh(seg->lkey));
            total += (count == 0) ? 1ull << 31 : count;
        }
    }
    vhca_trace_add(trace, " bytes=%llu", (unsigned long long)total);
}

/* Whose queue it is, if another process executes it */
static void add_owner(struct vhca_trace *trace, uint32_t claim)
{
    struct nic_proc *proc;

    if (claim != nic_self.id) {
        proc = nic_proc_of(claim);
        vhca_trace_add(trace, " of=%u", (proc == NULL) ? 0 :
                       (unsigned)(atomic_load(&proc->who) >> 40));
    }
}

/* The WQE at `index`, of which `len` bytes were read */
void nic_trace_wqe(const struct nic_qp *qp, const void *wqe, size_t len,
                   uint32_t index)
{
    const struct wqe_ctrl *ctrl = wqe;
    uint32_t word               = be32toh(ctrl->opmod_idx_opcode);
    size_t ds                   = be32toh(ctrl->qpn_ds) & 0xff;
    size_t end                  = (ds * WQE_SEG < len) ? ds * WQE_SEG : len;
    struct vhca_trace trace;

    vhca_trace_begin(&trace, "wqe");
    vhca_trace_add(&trace, " qp=0x%x index=%u", atomic_load(&qp->obj.number),
                   index & 0xffff);
    add_opcode(&trace, word);
    vhca_trace_add(&trace, " ds=%zu ce=%u", ds,
                   (ctrl->fm_ce_se & WQE_CTRL_CE_MASK) >> 2);
    if (ctrl->fm_ce_se >> WQE_CTRL_FM_SHIFT) {
        vhca_trace_add(&trace, " fm=%u", ctrl->fm_ce_se >> WQE_CTRL_FM_SHIFT);
    }
    if (ctrl->fm_ce_se & WQE_CTRL_SE) {
        vhca_trace_add(&trace, " se");
    }
    if ((word >> 24) != 0) {
        vhca_trace_add(&trace, " opmod=0x%x", word >> 24);
    }
    /* what cannot be right, shown as it is */
    if ((word >> 8 & 0xffff) != (index & 0xffff)) {
        vhca_trace_add(&trace, " wqe_index=%u", word >> 8 & 0xffff);
    }
    if (be32toh(ctrl->qpn_ds) >> 8 != atomic_load(&qp->obj.number)) {
        vhca_trace_add(&trace, " qpn=0x%x", be32toh(ctrl->qpn_ds) >> 8);
    }
    add_owner(&trace, atomic_load(&qp->obj.claim));
    if ((uint8_t)word != WQE_OP_NOP) {
        add_data(&trace, wqe, add_fixed(&trace, wqe, end), end);
    }
    vhca_trace_end(&trace);
}

static const char *syndrome_name(uint8_t syndrome)
{
    switch (syndrome) {
    case CQE_SYND_LOCAL_LENGTH:
        return "local length";
    case CQE_SYND_LOCAL_QP_OP:
        return "local QP operation";
    case CQE_SYND_LOCAL_PROT:
        return "local protection";
    case CQE_SYND_FLUSHED:
        return "flushed";
    case CQE_SYND_BAD_RESP:
        return "bad response";
    case CQE_SYND_LOCAL_ACCESS:
        return "local access";
    case CQE_SYND_REMOTE_INVAL_REQ:
        return "remote invalid request";
    case CQE_SYND_REMOTE_ACCESS:
        return "remote access";
    case CQE_SYND_REMOTE_OP:
        return "remote operation";
    case CQE_SYND_RETRY_EXCEEDED:
        return "retry exceeded";
    case CQE_SYND_RNR_RETRY_EXCEEDED:
        return "RNR retry exceeded";
    default:
        return "?";
    }
}

void nic_trace_cqe(uint32_t cqn, const struct nic_cqe *cqe)
{
    struct vhca_trace trace;

    vhca_trace_begin(&trace, "cqe");
    vhca_trace_add(&trace, " qp=0x%x index=%u cq=0x%x %s", cqe->qpn,
                   cqe->counter, cqn,
                   (cqe->opcode == CQE_REQ_ERR) ? "REQ_ERR" : "RESP_ERR");
    if (cqe->opcode == CQE_REQ_ERR) {
        add_opcode(&trace, cqe->wqe_opcode);
    }
    vhca_trace_add(&trace, " syndrome=0x%02x (%s)", cqe->syndrome,
                   syndrome_name(cqe->syndrome));
    vhca_trace_end(&trace);
}
