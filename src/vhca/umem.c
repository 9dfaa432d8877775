/* SPDX-License-Identifier: BSD-3-Clause */

/* User memory registered for firmware commands: pinning, the page size the
 * kernel would choose, lookup by the id that mailboxes carry. */

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_verbs.h>

#include "vhca/fault.h"
#include "vhca/kernel.h"

/* Ids are no handles: whoever mixes them up is told so. */
#define UMEM_ID_BASE 0x100000u

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static long populate(uint64_t start, uint64_t len, bool write)
{
    return syscall(SYS_madvise, start, len,
                   write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

/* Kernels before 5.14 know no populating. EINVAL also is the answer to memory
 * that may not be touched so; a page of ours tells which of both it was. */
static bool can_populate(void)
{
    char page;

    return populate((uintptr_t)&page & ~(uintptr_t)(VHCA_PAGE_SIZE - 1),
                    VHCA_PAGE_SIZE, true) == 0;
}

/*
 * The kernel pins (ib_umem_get, pin_user_pages): pages come into being, a
 * hole is EFAULT, and so is memory that may not be written when the device
 * may write it. Raw calls: libc's would tell memory hooks.
 */
int vhca_pin(uint64_t addr, uint64_t len, bool write)
{
    uint64_t start = addr & ~(uint64_t)(VHCA_PAGE_SIZE - 1);
    uint64_t end   = (addr + len + VHCA_PAGE_SIZE - 1) &
                     ~(uint64_t)(VHCA_PAGE_SIZE - 1);
    int saved      = errno;
    int ret        = 0;

    /* ib_umem_get: an overflow is EINVAL, nothing at all too */
    if ((len == 0) || (addr + len < addr) || (end < start)) {
        return -EINVAL;
    }

    if ((populate(start, end - start, write) != 0) &&
        ((errno != EINVAL) || can_populate() ||
         /* without populating, only holes are found */
         (syscall(SYS_msync, start, end - start, MS_ASYNC) != 0))) {
        ret = -EFAULT;
    }

    errno = saved;
    return ret;
}

/*
 * devx.c, devx_umem_find_best_pgsize: the largest page size of the bitmap that
 * the physical memory allows, not above the power of two that holds the umem;
 * above 4K the umem must be whole pages. Which sizes physical memory allows is
 * chance on a real host. Here every page-aligned umem lies on memory that is
 * contiguous and aligned, whatever its virtual address: the case in which a
 * virtual address that does not fit the page size fails (0x317175).
 */
static uint64_t umem_page_size(uint64_t addr, uint64_t len,
                               uint64_t pgsz_bitmap)
{
    uint64_t cap = VHCA_PAGE_SIZE;
    uint64_t page;

    while ((cap < len) && (cap < (1ull << 62))) {
        cap <<= 1;
    }

    pgsz_bitmap &= (cap | (cap - 1)) & ~(uint64_t)(VHCA_PAGE_SIZE - 1);
    if ((addr % VHCA_PAGE_SIZE != 0) || (len % VHCA_PAGE_SIZE != 0)) {
        /* Larger pages have an offset or a tail; the kernel halves them down
         * to its own page size, allowed by the bitmap or not. */
        return (pgsz_bitmap != 0) ? VHCA_PAGE_SIZE : 0;
    }

    if (pgsz_bitmap == 0) {
        return 0;
    }

    page = 1ull << (63 - __builtin_clzll(pgsz_bitmap));
    while ((len % page != 0) && (page > VHCA_PAGE_SIZE)) {
        page >>= 1;
    }

    return page;
}

int vhca_umem_reg(struct vhca_ctx *ctx, uint64_t addr, uint64_t len,
                  uint32_t access, uint64_t pgsz_bitmap,
                  struct vhca_uobj **obj_p)
{
    const uint32_t allowed = IB_UVERBS_ACCESS_LOCAL_WRITE |
                             IB_UVERBS_ACCESS_REMOTE_WRITE |
                             IB_UVERBS_ACCESS_REMOTE_READ;
    struct vhca_uobj *obj;
    uint64_t page_size;
    int ret;

    /* devx.c, devx_umem_get: any other flag, ATOMIC and ON_DEMAND included;
     * ib_check_mr_access: a remote write needs a local one */
    if ((access & ~allowed) ||
        ((access & IB_UVERBS_ACCESS_REMOTE_WRITE) &&
         !(access & IB_UVERBS_ACCESS_LOCAL_WRITE))) {
        return -EINVAL;
    }

    ret = vhca_fault_umem();
    if (ret == 0) {
        ret = vhca_pin(addr, len, access & IB_UVERBS_ACCESS_LOCAL_WRITE);
    }
    if (ret != 0) {
        return ret;
    }

    page_size = umem_page_size(addr, len, pgsz_bitmap);
    if (page_size == 0) {
        return -EINVAL; /* devx.c, devx_umem_reg_cmd_alloc */
    }

    ret = vhca_uobj_alloc(ctx, VHCA_UOBJ_UMEM, &obj);
    if (ret != 0) {
        return ret;
    }

    obj->umem.addr        = addr;
    obj->umem.len         = len;
    obj->umem.access      = access;
    obj->umem.page_size   = page_size;
    obj->umem.page_offset = (page_size > VHCA_PAGE_SIZE) ? 0 :
                            (uint32_t)(addr % VHCA_PAGE_SIZE);
    vhca_stat_add("umem", 1);
    *obj_p = obj;
    return 0;
}

uint32_t vhca_umem_id(const struct vhca_uobj *umem)
{
    return UMEM_ID_BASE + umem->handle;
}

struct vhca_uobj *vhca_umem_by_id(struct vhca_ctx *ctx, uint32_t id)
{
    return (id > UMEM_ID_BASE) ?
           vhca_uobj_get(ctx, id - UMEM_ID_BASE, VHCA_UOBJ_UMEM) : NULL;
}
