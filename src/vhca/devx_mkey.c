/* SPDX-License-Identifier: BSD-3-Clause */

/* CREATE_MKEY over a umem, QUERY_MKEY. */

#include "vhca/fault.h"
#include "vhca/kernel.h"
#include "vhca/prm_table.h"

#define MKC_ACCESS_MODE_MTT 1

/*
 * How many 16-byte words of translations (two pages each) software says there
 * are. Over a umem the firmware has its own list: UCX 1.14 says actual size 1,
 * rdma-core and libdpcp 0, DPDK half the number of bytes and 4 KiB pages,
 * whatever the umem's are. So what is said must not be too small for the list,
 * nor the page larger than the umem's.
 */
static bool check_translations(const struct vhca_cmd *cmd, const uint8_t *mkc,
                               const struct vhca_uobj *umem)
{
    uint64_t pages    = (umem->umem.page_offset + umem->umem.len +
                         umem->umem.page_size - 1) / umem->umem.page_size;
    uint64_t octwords = (pages + 1) / 2;
    uint64_t actual   = PRM_GET(create_mkey_in, cmd->in,
                                translations_octword_actual_size);
    uint64_t size     = PRM_GET(mkc, mkc, translations_octword_size);
    uint64_t page     = 1ull << PRM_GET(mkc, mkc, log_page_size);

    return ((page == 1) ||
            ((page >= VHCA_PAGE_SIZE) && (page <= umem->umem.page_size))) &&
           ((size == 0) || (size >= octwords)) &&
           ((actual <= 1) || (actual >= octwords));
}

bool vhca_cmd_create_mkey(struct vhca_cmd *cmd)
{
    const uint8_t *mkc         = PRM_CADDR(create_mkey_in, cmd->in,
                                           memory_key_mkey_entry);
    struct vhca_mkey_attr attr = {.owner = cmd->ctx->owner, .over_umem = true};
    uint64_t offset;
    struct vhca_uobj *pd, *umem;

    if (PRM_GET(mkc, mkc, access_mode_1_0) != MKC_ACCESS_MODE_MTT) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_ACCESS_MODE);
    }

    pd = vhca_cmd_pd(cmd, (uint32_t)PRM_GET(mkc, mkc, pd));
    if (pd == NULL) {
        return false;
    }

    umem = vhca_umem_by_id(cmd->ctx, (uint32_t)PRM_GET(create_mkey_in, cmd->in,
                                                       mkey_umem_id));
    if (umem == NULL) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_RESOURCE, VHCA_SYN_UMEM);
    }
    if (vhca_fault_mkey_umem(&cmd->fw)) {
        return false;
    }

    offset     = PRM_GET(create_mkey_in, cmd->in, mkey_umem_offset);
    attr.start = PRM_GET(mkc, mkc, start_addr);
    attr.len   = PRM_GET(mkc, mkc, len);
    if ((attr.len == 0) || (offset > umem->umem.len) ||
        (attr.len > umem->umem.len - offset)) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_UMEM_SIZE);
    }

    /* Both the memory and its virtual address are translated page by page, so
     * they must lie alike in a page. */
    if ((umem->umem.page_offset + offset - attr.start) %
        umem->umem.page_size != 0) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM,
                             VHCA_SYN_MKEY_PAGE_OFFSET);
    }

    if (!check_translations(cmd, mkc, umem)) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_TRANSLATION);
    }

    attr.pdn      = pd->number;
    attr.va_delta = umem->umem.addr + offset - attr.start;
    attr.qpn      = (uint32_t)PRM_GET(mkc, mkc, qpn);
    attr.tag      = (uint8_t)PRM_GET(mkc, mkc, mkey_7_0);
    attr.lr       = PRM_GET(mkc, mkc, lr);
    attr.lw       = PRM_GET(mkc, mkc, lw);
    attr.rr       = PRM_GET(mkc, mkc, rr);
    attr.rw       = PRM_GET(mkc, mkc, rw);
    attr.a        = PRM_GET(mkc, mkc, a);
    if (!vhca_mkey_create(&attr, &cmd->obj->number, &cmd->fw)) {
        return false;
    }

    vhca_uobj_use(cmd->obj, pd);
    vhca_uobj_use(cmd->obj, umem);
    PRM_SET(create_mkey_out, cmd->out, mkey_index, cmd->obj->number);
    return true;
}

bool vhca_cmd_query_mkey(struct vhca_cmd *cmd)
{
    uint8_t *mkc = PRM_ADDR(query_mkey_out, cmd->out, memory_key_mkey_entry);
    struct vhca_mkey_attr attr;

    if (!vhca_mkey_query(cmd->ctx->owner, cmd->obj->number, &attr, &cmd->fw)) {
        return false;
    }

    PRM_SET(mkc, mkc, access_mode_1_0, MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, lr, attr.lr);
    PRM_SET(mkc, mkc, lw, attr.lw);
    PRM_SET(mkc, mkc, rr, attr.rr);
    PRM_SET(mkc, mkc, rw, attr.rw);
    PRM_SET(mkc, mkc, a, attr.a);
    PRM_SET(mkc, mkc, qpn, attr.qpn);
    PRM_SET(mkc, mkc, mkey_7_0, attr.tag);
    PRM_SET(mkc, mkc, pd, attr.pdn);
    PRM_SET(mkc, mkc, start_addr, attr.start);
    PRM_SET(mkc, mkc, len, attr.len);
    return true;
}
