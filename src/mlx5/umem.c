/* SPDX-License-Identifier: BSD-3-Clause */

/* UARs, umems, and the memory of rings. */

#include "umem.h"
#include "hx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define UMEM_LOG_PAGE_MIN 12
#define UMEM_LOG_PAGE_MAX 30

static struct mlx5dv_devx_uar *uar_alloc(struct ibv_context *ibv)
{
    /* Write combining first; not every device has it, or pages enough. The last
     * kind is one page that the whole process shares. */
    static const uint32_t types[] = {
        MLX5DV_UAR_ALLOC_TYPE_BF,
#ifdef MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED
        MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED,
#endif
        MLX5DV_UAR_ALLOC_TYPE_NC
    };
    struct mlx5dv_devx_uar *uar = NULL;
    unsigned i;

    for (i = 0; (uar == NULL) && (i < sizeof(types) / sizeof(*types)); ++i) {
        uar = mlx5dv_devx_alloc_uar(ibv, types[i]);
    }

    return uar;
}

int hx_uar_create(struct hx_dev *dev, struct hx_uar **uar_p)
{
    struct hx_uar *uar;
    int ret;

    uar = calloc(1, sizeof(*uar));
    if (uar == NULL) {
        hx_log(HX_LOG_ERROR, "%s: no memory for a UAR", dev->name);
        return -ENOMEM;
    }

    uar->dv = uar_alloc(dev->ibv);
    if (uar->dv == NULL) {
        ret = -errno;
        hx_log(HX_LOG_ERROR, "%s: allocating a UAR failed: %s%s", dev->name,
               strerror(errno),
               (errno == ENOMEM) ? " (is PF_LOG_BAR_SIZE too small?)" : "");
        free(uar);
        return ret;
    }

    uar->reg_addr  = uar->dv->reg_addr;
    uar->base_addr = uar->dv->base_addr;
    uar->page_id   = uar->dv->page_id;

    *uar_p = uar;
    return 0;
}

void hx_uar_destroy(struct hx_uar *uar)
{
    mlx5dv_devx_free_uar(uar->dv);
    free(uar);
}

/*
 * A direct key over a umem needs (offset of the memory in its first page) ==
 * (start_addr mod page size), for the page size that the kernel chose. It looks
 * at DMA addresses, so it may find pages larger than addr is aligned to; then
 * the command fails with syndrome 0x317175, or not, by chance. So no page may
 * be larger than the alignment of the page that holds addr. 4 KiB always holds,
 * and the kernel must have it to fall back to.
 */
uint64_t hx_umem_pgsz_bitmap(uint64_t addr)
{
    uint64_t page    = addr >> UMEM_LOG_PAGE_MIN << UMEM_LOG_PAGE_MIN;
    unsigned log_max = UMEM_LOG_PAGE_MAX;

    if ((page != 0) && (__builtin_ctzll(page) < UMEM_LOG_PAGE_MAX)) {
        log_max = __builtin_ctzll(page);
    }

    return (UINT64_C(2) << log_max) - (UINT64_C(1) << UMEM_LOG_PAGE_MIN);
}

int hx_umem_reg(struct hx_dev *dev, void *addr, size_t len, uint32_t access,
                struct hx_umem *umem_p)
{
    struct mlx5dv_devx_umem_in in = {
        .addr        = addr,
        .size        = len,
        .access      = access,
        .pgsz_bitmap = hx_umem_pgsz_bitmap((uintptr_t)addr)
    };
    char hint[HX_LIMIT_HINT_MAX];
    struct mlx5dv_devx_umem *dv;
    int ret;

    dv = mlx5dv_devx_umem_reg_ex(dev->ibv, &in);
    if ((dv == NULL) && ((errno == EPROTONOSUPPORT) || (errno == EOPNOTSUPP))) {
        /* A kernel that does not know the bitmap goes by the alignment of the
         * address itself */
        dv = mlx5dv_devx_umem_reg(dev->ibv, addr, len, access);
    }

    if (dv == NULL) {
        ret = -errno;
        hx_log(HX_LOG_ERROR, "%s: registering %zu bytes at %p as a umem"
               " failed: %s%s", dev->name, len, addr, strerror(-ret),
               hx_limit_hint(HX_LIMIT_PIN, -ret, hint, sizeof(hint)));
        return ret;
    }

    umem_p->dv   = dv;
    umem_p->addr = addr;
    umem_p->len  = len;
    umem_p->id   = dv->umem_id;
    return 0;
}

void hx_umem_dereg(struct hx_umem *umem)
{
    int err = mlx5dv_devx_umem_dereg(umem->dv);

    if (err != 0) {
        hx_log(HX_DESTROY_LOG_LEVEL(err),
               "deregistering umem %u at %p failed: %s", umem->id, umem->addr,
               strerror(err));
    }
}

int hx_buf_alloc(struct hx_dev *dev, size_t len, struct hx_buf *buf_p)
{
    size_t page = sysconf(_SC_PAGESIZE);
    size_t size = (len + page - 1) / page * page;
    char hint[HX_LIMIT_HINT_MAX];
    struct hx_buf buf;
    int ret;

    buf.addr = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buf.addr == MAP_FAILED) {
        ret = -errno;
        hx_log(HX_LOG_ERROR, "%s: no memory for a ring of %zu bytes: %s%s",
               dev->name, size, strerror(-ret),
               hx_limit_hint(HX_LIMIT_MAP, -ret, hint, sizeof(hint)));
        return ret;
    }

    /* After a fork the device must keep the pages of the parent, which a write
     * by either side would replace in the parent */
    madvise(buf.addr, size, MADV_DONTFORK);

    buf.len = size;
    ret     = hx_umem_reg(dev, buf.addr, size, IBV_ACCESS_LOCAL_WRITE,
                          &buf.umem);
    if (ret != 0) {
        munmap(buf.addr, size);
        return ret;
    }

    *buf_p = buf;
    return 0;
}

void hx_buf_free(struct hx_buf *buf)
{
    hx_umem_dereg(&buf->umem);
    munmap(buf->addr, buf->len);
}
