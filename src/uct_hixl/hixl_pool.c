/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Pools of buffers for the device: each chunk has a key of its own, which
 * allows local writes and nothing to a peer. Chunks are shared memory: a fork
 * child's first touch moves no page away from the device, and an emulated
 * device may map them in the peer.
 */

#include "hixl_iface.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>
#include <unistd.h>

/* What precedes a chunk */
typedef struct uct_hixl_chunk {
    struct hx_mkey mkey;
    size_t         length;
} UCS_V_ALIGNED(UCS_SYS_CACHE_LINE_SIZE) uct_hixl_chunk_t;

static const uct_hixl_chunk_t *uct_hixl_chunk(const void *chunk)
{
    return (const uct_hixl_chunk_t*)chunk - 1;
}

uint32_t uct_hixl_pool_chunk_key(const void *chunk)
{
    return uct_hixl_chunk(chunk)->mkey.key;
}

/* MAP_SHARED of a memfd that nobody can make shorter; the descriptor is the
 * caller's to close */
static void *uct_hixl_pool_map(size_t length, int *fd_p)
{
    void *addr = MAP_FAILED;
    int fd;

    fd = memfd_create("hixl-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return MAP_FAILED;
    }

    if (ftruncate(fd, length) == 0) {
        (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
        addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (addr == MAP_FAILED) {
        close(fd);
        return MAP_FAILED;
    }

    *fd_p = fd;
    return addr;
}

ucs_status_t uct_hixl_pool_chunk_alloc(ucs_mpool_t *mp, size_t *size_p,
                                       void **chunk_p)
{
    uct_hixl_pool_t *pool = ucs_container_of(mp, uct_hixl_pool_t, mp);
    size_t length         = ucs_align_up(*size_p + sizeof(uct_hixl_chunk_t),
                                         ucs_get_page_size());
    uct_hixl_chunk_t *chunk;
    struct hx_mkey mkey;
    int fd, ret;

    chunk = uct_hixl_pool_map(length, &fd);
    if (chunk == MAP_FAILED) {
        ucs_error("%s: cannot map %zu bytes of shared memory for buffers: %m",
                  pool->dev->name, length);
        return UCS_ERR_NO_MEMORY;
    }

    ret = hx_mkey_create(pool->dev, chunk, length, IBV_ACCESS_LOCAL_WRITE,
                         &mkey);
    close(fd); /* while the key is made, the device can find the file */
    if (ret != 0) {
        munmap(chunk, length);
        return UCS_ERR_NO_MEMORY;
    }

    chunk->mkey   = mkey;
    chunk->length = length;
    *chunk_p      = chunk + 1;
    *size_p       = length - sizeof(*chunk);
    return UCS_OK;
}

void uct_hixl_pool_chunk_release(ucs_mpool_t *mp UCS_V_UNUSED, void *chunk)
{
    struct hx_mkey mkey = uct_hixl_chunk(chunk)->mkey;
    size_t length       = uct_hixl_chunk(chunk)->length;

    hx_mkey_destroy(&mkey);
    munmap((uct_hixl_chunk_t*)chunk - 1, length);
}

ucs_status_t
uct_hixl_pool_init(uct_hixl_pool_t *pool, struct hx_dev *dev, size_t elem_size,
                   size_t align_offset, size_t alignment, unsigned grow,
                   unsigned max_elems, ucs_mpool_ops_t *ops, const char *name)
{
    pool->dev = dev;
    return uct_hixl_compat_mpool_init(&pool->mp, elem_size, align_offset,
                                      alignment, ucs_min(grow, max_elems),
                                      max_elems, ops, name);
}

void uct_hixl_pool_cleanup(uct_hixl_pool_t *pool)
{
    ucs_mpool_cleanup(&pool->mp, 1);
}
