/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Pools of buffers for the device: each chunk has a key of its own, which
 * allows local writes and nothing to a peer. Chunks are shared memory: a fork
 * child's first touch moves no page away from the device, and an emulated
 * device may map them in the peer.
 */

#include "hixl_iface.h"

#include <string.h>
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

/* Returns NULL with the reason in text */
static void *uct_hixl_pool_make_chunk(uct_hixl_pool_t *pool, size_t size,
                                      char *text, size_t text_size)
{
    size_t length = ucs_align_up(size + sizeof(uct_hixl_chunk_t),
                                 ucs_get_page_size());
    char hint[HX_LIMIT_HINT_MAX];
    uct_hixl_chunk_t *chunk;
    struct hx_log_hold hold;
    struct hx_mkey mkey;
    int fd, ret, err;

    chunk = uct_hixl_pool_map(length, &fd);
    if (chunk == MAP_FAILED) {
        err = errno;
        snprintf(text, text_size, "no shared memory: %s%s", strerror(err),
                 hx_limit_hint(HX_LIMIT_MAP, err, hint, sizeof(hint)));
        return NULL;
    }

    hx_log_hold_begin(&hold, text, text_size);
    ret = hx_mkey_create(pool->dev, chunk, length, IBV_ACCESS_LOCAL_WRITE,
                         &mkey);
    hx_log_hold_end(&hold);
    close(fd); /* while the key is made, the device can find the file */
    if (ret != 0) {
        munmap(chunk, length);
        return NULL;
    }

    chunk->mkey   = mkey;
    chunk->length = length;
    return chunk + 1;
}

ucs_status_t uct_hixl_pool_chunk_alloc(ucs_mpool_t *mp, size_t *size_p,
                                       void **chunk_p)
{
    uct_hixl_pool_t *pool = ucs_container_of(mp, uct_hixl_pool_t, mp);
    void *chunk           = pool->spare;
    char text[256];

    if (chunk == NULL) {
        chunk = uct_hixl_pool_make_chunk(pool, *size_p, text, sizeof(text));
        if (chunk == NULL) {
            ucs_error("%s: cannot make the first %zu bytes of buffers: %s",
                      pool->dev->name, *size_p, text);
            return UCS_ERR_NO_MEMORY;
        }
        pool->chunk_size = *size_p;
    }

    ucs_assert(*size_p <= pool->chunk_size);
    pool->spare = NULL;
    *chunk_p    = chunk;
    *size_p     = uct_hixl_chunk(chunk)->length - sizeof(uct_hixl_chunk_t);
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
    unsigned count = ucs_min(grow, max_elems);
    ucs_status_t status;

    pool->dev        = dev;
    pool->chunk_size = 0;
    pool->spare      = NULL;
    pool->stuck      = 0;

    status = uct_hixl_compat_mpool_init(&pool->mp, elem_size, align_offset,
                                        alignment, count, max_elems, ops, name);
    if (status != UCS_OK) {
        return status;
    }

    ucs_mpool_grow(&pool->mp, count);
    if (pool->mp.freelist == NULL) {
        ucs_mpool_cleanup(&pool->mp, 0);
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}

/* A mpool logs an error each time that it gets no chunk. Here that is no error:
 * buffers come back. So it is asked for one only when there is one. */
int uct_hixl_pool_grow(uct_hixl_pool_t *pool)
{
    char text[256];

    if (ucs_mpool_is_empty(&pool->mp)) {
        return 0; /* at its limit */
    }

    pool->spare = uct_hixl_pool_make_chunk(pool, pool->chunk_size, text,
                                           sizeof(text));
    if (pool->spare == NULL) {
        ucs_log(pool->stuck ? UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_WARN,
                "%s: cannot make another %zu bytes of %s, so whoever wants a "
                "buffer waits until one comes back: %s", pool->dev->name,
                pool->chunk_size, ucs_mpool_name(&pool->mp), text);
        pool->stuck = 1;
        return 0;
    }

    ucs_mpool_grow(&pool->mp, 1); /* takes the spare, however many it holds */
    pool->stuck = 0;
    return 1;
}

void uct_hixl_pool_cleanup(uct_hixl_pool_t *pool)
{
    ucs_mpool_cleanup(&pool->mp, 1);
}
