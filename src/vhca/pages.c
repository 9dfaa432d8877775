/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Queue memory. A queue lives in the program's own pages; for as long as it
 * exists these are pages of the fabric, so that every process reaches them
 * through its own mapping. A page may carry parts of several queues and is
 * exchanged once. System calls are made raw: libc's mmap() belongs to whoever
 * hooks it.
 */

#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "memcheck.h"
#include "nic.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* One exchanged page of this process */
struct xpage {
    uint64_t va;               /* 0: empty */
    uint32_t page;             /* of the pool */
    uint32_t refs;
};

static struct {
    pthread_mutex_t mutex;
    struct xpage   *slot;      /* open addressing */
    size_t          size, used;
} xp = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static size_t xp_hash(uint64_t va)
{
    return (va / NIC_PAGE * 0x9e3779b97f4a7c15ull >> 20) & (xp.size - 1);
}

static struct xpage *xp_find(uint64_t va)
{
    size_t i;

    if (xp.size == 0) {
        return NULL;
    }
    for (i = xp_hash(va); xp.slot[i].va != 0; i = (i + 1) & (xp.size - 1)) {
        if (xp.slot[i].va == va) {
            return &xp.slot[i];
        }
    }
    return NULL;
}

static void xp_put(struct xpage entry)
{
    size_t i = xp_hash(entry.va);

    while (xp.slot[i].va != 0) {
        i = (i + 1) & (xp.size - 1);
    }
    xp.slot[i] = entry;
}

/* Room for n more, at most half full */
static bool xp_reserve(size_t n)
{
    struct xpage *old = xp.slot, *slot;
    size_t old_size   = xp.size, size = old_size ? old_size : 64, i;

    while (size < 2 * (xp.used + n)) {
        size *= 2;
    }
    if (size == old_size) {
        return true;
    }

    slot = calloc(size, sizeof(*slot));
    if (slot == NULL) {
        return false;
    }

    xp.slot = slot;
    xp.size = size;
    for (i = 0; i < old_size; ++i) {
        if (old[i].va != 0) {
            xp_put(old[i]);
        }
    }
    free(old);
    return true;
}

static void xp_remove(struct xpage *entry)
{
    size_t i = entry - xp.slot, k;
    struct xpage moved;

    entry->va = 0;
    --xp.used;
    for (k = (i + 1) & (xp.size - 1); xp.slot[k].va != 0;
         k = (k + 1) & (xp.size - 1)) {
        moved         = xp.slot[k];
        xp.slot[k].va = 0;
        xp_put(moved);
    }
}

/* Makes part of the fabric's file exist: a full tmpfs must be an error here,
 * not a signal at the first store. Old kernels do not know the advice. */
bool nic_populate(const volatile void *at, size_t len)
{
    uintptr_t from = (uintptr_t)at & ~(uintptr_t)(NIC_PAGE - 1);
    uintptr_t to   = ((uintptr_t)at + len + NIC_PAGE - 1) &
                     ~(uintptr_t)(NIC_PAGE - 1);

    return (syscall(SYS_madvise, from, to - from, MADV_POPULATE_WRITE) == 0) ||
           (errno == EINVAL);
}

static bool pool_populate(uint32_t first, uint32_t n)
{
    (void)VALGRIND_MAKE_MEM_DEFINED(NIC_FAB->pool[first],
                                    (size_t)n * NIC_PAGE);
    return nic_populate(NIC_FAB->pool[first], (size_t)n * NIC_PAGE);
}

/* A run of n free pages of the pool, now ours. 0: none. */
static uint32_t pool_alloc(uint32_t n)
{
    struct nic_header *hdr = &NIC_FAB->hdr;
    uint32_t first, run = 0, i, tried, high, res = 0;

    if (nic_lock_take(&hdr->pool_lock) == NIC_LOCK_TIMEOUT) {
        return 0;
    }

    i = hdr->pool_next;
    if (!nic_populate(&NIC_FAB->page_owner[i],
                      (n + 1024) * sizeof(uint32_t))) {
        goto out;
    }
    for (tried = 0; tried < NIC_POOL_PAGES + n; ++tried, ++i) {
        if (i >= NIC_POOL_PAGES) {
            i   = 0;
            run = 0;
        }
        run = ((i > 0) && (atomic_load_explicit(&NIC_FAB->page_owner[i],
                                                memory_order_relaxed) == 0)) ?
              run + 1 : 0;
        if (run == n) {
            break;
        }
    }
    if (run != n) {
        goto out;
    }

    first = i + 1 - n;
    high  = atomic_load(&hdr->pool_high);
    if (high < i + 1) {
        atomic_store(&hdr->pool_high, i + 1);
    }
    for (i = first; i < first + n; ++i) {
        atomic_store(&NIC_FAB->page_owner[i], nic_self.id);
    }
    /* move on, so that a page just given back rests, but stay low */
    hdr->pool_next = (first + n < 4096) ? first + n : 0;
    res            = first;

out:
    nic_lock_drop(&hdr->pool_lock);
    return res;
}

static void pool_free(uint32_t first, uint32_t n)
{
    uint32_t i;

    syscall(SYS_madvise, NIC_FAB->pool[first], (size_t)n * NIC_PAGE,
            MADV_REMOVE);
    (void)VALGRIND_MAKE_MEM_NOACCESS(NIC_FAB->pool[first],
                                     (size_t)n * NIC_PAGE);
    for (i = first; i < first + n; ++i) {
        atomic_store(&NIC_FAB->page_owner[i], 0);
    }
}

/* The pool's pages at va as well. Old size 0 is a second mapping of the same
 * shared pages: it needs no descriptor and no name. valgrind does not let it
 * through, though the kernel would. */
static bool run_map(uint32_t first, uint64_t va, size_t len)
{
    void *pages = NIC_FAB->pool[first];

    if ((uint64_t)syscall(SYS_mremap, pages, 0ul, len,
                          MREMAP_MAYMOVE | MREMAP_FIXED, va) == va) {
        return true;
    }
    return (errno == EINVAL) && nic_fabric_map_again(pages, len, va);
}

/* [va, va + n pages) becomes pages of the pool, with what was in them. */
static bool run_exchange(uint64_t va, uint32_t n)
{
    size_t len     = (size_t)n * NIC_PAGE;
    uint32_t first = pool_alloc(n), i;
    struct iovec to, from;

    if (first == 0) {
        return false;
    }

    to   = (struct iovec) { NIC_FAB->pool[first], len };
    from = (struct iovec) { (void*)va, len };
    if (!pool_populate(first, n) ||
        (syscall(SYS_process_vm_readv, getpid(), &to, 1ul, &from, 1ul, 0ul) !=
         (long)len)) {
        goto err_free;
    }

    if (!run_map(first, va, len)) {
        goto err_free;
    }
    syscall(SYS_madvise, va, len, MADV_DODUMP);

    for (i = 0; i < n; ++i) {
        xp_put((struct xpage) { va + (uint64_t)i * NIC_PAGE, first + i, 0 });
    }
    xp.used += n;
    return true;

err_free:
    pool_free(first, n);
    return false;
}

/* Private pages with the same contents take the place of ours in one step. */
static void run_restore(uint64_t va, uint32_t n, const void *contents)
{
    size_t len = (size_t)n * NIC_PAGE;
    void *copy = (void*)syscall(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0ul);

    if (copy == MAP_FAILED) {
        fprintf(stderr, "vhca: queue memory at %#lx cannot be restored: %s\n",
                (unsigned long)va, strerror(errno));
        return;
    }

    memcpy(copy, contents, len);
    if ((uint64_t)syscall(SYS_mremap, copy, len, len,
                          MREMAP_MAYMOVE | MREMAP_FIXED, va) != va) {
        syscall(SYS_munmap, copy, len);
    }
}

/* Is the program's page still a shared one, as ours is? It may have unmapped
 * it, and mapped something else there, before the queue was destroyed. Only a
 * private anonymous page takes the advice; it is taken back. */
static bool page_still_shared(uint64_t va)
{
    if (syscall(SYS_madvise, va, (size_t)NIC_PAGE, MADV_WIPEONFORK) == 0) {
        syscall(SYS_madvise, va, (size_t)NIC_PAGE, MADV_KEEPONFORK);
        return false;
    }
    return errno == EINVAL; /* ENOMEM: nothing is there */
}

/* Drops one reference of every page in the range, restores those that were
 * the last, in runs. */
static void range_put(uint64_t va, uint64_t end)
{
    uint64_t at, run_va = 0;
    uint32_t run_page = 0, run_n = 0;
    struct xpage *entry;

    for (at = va; at <= end; at += NIC_PAGE) {
        entry = (at < end) ? xp_find(at) : NULL;
        if ((entry != NULL) && (--entry->refs == 0) &&
            ((run_n == 0) || (entry->page == run_page + run_n))) {
            if (run_n == 0) {
                run_va   = at;
                run_page = entry->page;
            }
            ++run_n;
            continue;
        }

        if (run_n != 0) {
            if (page_still_shared(run_va) &&
                page_still_shared(at - NIC_PAGE)) {
                run_restore(run_va, run_n, NIC_FAB->pool[run_page]);
            }
            for (; run_n > 0; --run_n, ++run_page, run_va += NIC_PAGE) {
                xp_remove(xp_find(run_va));
                pool_free(run_page, 1);
            }
        }
        if ((entry = (at < end) ? xp_find(at) : NULL) != NULL &&
            (entry->refs == 0)) {
            run_va   = at;
            run_page = entry->page;
            run_n    = 1;
        }
    }
}

/* When the pages are no one run: a table of them, in the pool as well */
static bool table_make(uint64_t va, uint32_t n, struct nic_mem *mem)
{
    uint32_t pages = (n * 4 + NIC_PAGE - 1) / NIC_PAGE, i;
    uint32_t first = pool_alloc(pages), *list;

    if (first == 0) {
        return false;
    }
    if (!pool_populate(first, pages)) {
        pool_free(first, pages);
        return false;
    }

    list = (void*)NIC_FAB->pool[first];
    for (i = 0; i < n; ++i) {
        list[i] = xp_find(va + (uint64_t)i * NIC_PAGE)->page;
    }
    mem->table       = first;
    mem->table_pages = pages;
    return true;
}

bool nic_mem_map(void *addr, size_t len, struct nic_mem *mem_p)
{
    uint64_t va  = (uint64_t)addr & ~(uint64_t)(NIC_PAGE - 1);
    uint64_t end = ((uint64_t)addr + len + NIC_PAGE - 1) &
                   ~(uint64_t)(NIC_PAGE - 1);
    uint32_t n   = (end - va) / NIC_PAGE, run = 0;
    struct nic_mem mem = {
        .va = (uint64_t)addr, .len = len, .page_off = (uint64_t)addr - va
    };
    bool one_run = true;
    uint64_t at;

    if ((len == 0) || (end <= va)) {
        return false;
    }

    pthread_mutex_lock(&xp.mutex);
    if (!xp_reserve(n)) {
        goto err_unlock;
    }

    for (at = va; at <= end; at += NIC_PAGE) {
        if ((at < end) && (xp_find(at) == NULL)) {
            ++run;
            continue;
        }
        if ((run > 0) && !run_exchange(at - (uint64_t)run * NIC_PAGE, run)) {
            goto err_put;
        }
        run = 0;
    }

    mem.first = xp_find(va)->page;
    for (at = va; at < end; at += NIC_PAGE) {
        one_run &= xp_find(at)->page == mem.first + (at - va) / NIC_PAGE;
    }
    if (!one_run && !table_make(va, n, &mem)) {
        goto err_put;
    }

    for (at = va; at < end; at += NIC_PAGE) {
        ++xp_find(at)->refs;
    }
    pthread_mutex_unlock(&xp.mutex);
    *mem_p = mem;
    return true;

err_put:
    /* what was exchanged here has no reference: give each one, take it back */
    for (at = va; at < end; at += NIC_PAGE) {
        if (xp_find(at) != NULL) {
            ++xp_find(at)->refs;
        }
    }
    range_put(va, end);
err_unlock:
    pthread_mutex_unlock(&xp.mutex);
    return false;
}

void nic_mem_unmap(const struct nic_mem *mem)
{
    uint64_t va = mem->va - mem->page_off;

    if (mem->len == 0) {
        return;
    }

    pthread_mutex_lock(&xp.mutex);
    range_put(va, (mem->va + mem->len + NIC_PAGE - 1) &
                  ~(uint64_t)(NIC_PAGE - 1));
    if (mem->table != 0) {
        pool_free(mem->table, mem->table_pages);
    }
    pthread_mutex_unlock(&xp.mutex);
}

void nic_pages_fork_prepare(void)
{
    pthread_mutex_lock(&xp.mutex);
}

void nic_pages_fork_parent(void)
{
    pthread_mutex_unlock(&xp.mutex);
}

/* The child sees the fabric's pages: it gets copies, as of any private page. */
void nic_pages_fork_child(void)
{
    size_t i;

    for (i = 0; i < xp.size; ++i) {
        if (xp.slot[i].va != 0) {
            run_restore(xp.slot[i].va, 1, (const void*)xp.slot[i].va);
        }
    }
    free(xp.slot);
    xp.slot = NULL;
    xp.size = 0;
    xp.used = 0;
    pthread_mutex_unlock(&xp.mutex);
}
