/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Keys over memory that other processes can map. A NIC keeps the pages that
 * were registered, whatever the program does to its addresses afterwards; so
 * does a mapping of the same file made by whoever executes a request. Bytes
 * between two such mappings need no system call.
 *
 * Only memory that cannot shrink qualifies, because a load beyond a file's end
 * is a signal and not an answer: memfds sealed against it, and what has no name
 * to truncate it by (anonymous shared memory, System V segments). The pages of
 * all else are reached by the kernel's copy, where a hole is EFAULT.
 *
 * The owner keeps a descriptor of the file, one for all keys over it, for as
 * long as a key lives; a peer opens that through /proc, maps, and closes it
 * again. A peer's mapping is a view. Views are few and given up when their key
 * is gone; a view is taken away only while no thread of this process has
 * announced (struct nic_exec) a key that could be its own.
 */

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "nic.h"

#ifndef F_SEAL_SHRINK
#define F_LINUX_SPECIFIC_BASE 1024
#define F_GET_SEALS           (F_LINUX_SPECIFIC_BASE + 10)
#define F_SEAL_SHRINK         0x0002
#endif

/* Descriptors kept at most. Also never the last quarter of those allowed. */
#define SHARE_FILES 320

/* linux/fs.h, since Linux 6.11 */
#ifndef PROCMAP_QUERY
struct procmap_query {
    uint64_t size;
    uint64_t query_flags;
    uint64_t query_addr;
    uint64_t vma_start;
    uint64_t vma_end;
    uint64_t vma_flags;
    uint64_t vma_page_size;
    uint64_t vma_offset;
    uint64_t inode;
    uint32_t dev_major;
    uint32_t dev_minor;
    uint32_t vma_name_size;
    uint32_t build_id_size;
    uint64_t vma_name_addr;
    uint64_t build_id_addr;
};
#define PROCMAP_QUERY            _IOWR('f', 17, struct procmap_query)
#define PROCMAP_QUERY_VMA_SHARED 0x08
#endif

/* A range of this process's addresses that is one range of a shared file */
struct share_range {
    uint64_t start, end;
    uint64_t first_end;        /* of the first mapping in it */
    uint64_t off;              /* in the file, of start */
    uint64_t dev, ino;
    char     name[64];
};

/* A file of which this process keeps a descriptor */
struct share_file {
    uint64_t dev, ino;
    int      fd;
    uint32_t refs;             /* 0: empty */
    bool     fixed;            /* cannot shrink, though it has no seal */
    uint32_t page;
};

struct nic_view_set nic_views[NIC_VIEW_SETS];
_Atomic uint32_t    nic_share_seen;  /* the epoch at the last trim */

static struct {
    pthread_mutex_t   mutex;
    struct share_file file[SHARE_FILES];
    /* beside nic_views: what is mapped, for which key */
    struct {
        uint32_t slot;
        void    *map;
        size_t   len;
    } view[NIC_VIEW_SETS][NIC_VIEW_WAYS];
    unsigned          next_way;
} share = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static int sys_open(const char *path, int flags)
{
    return syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);
}

static void sys_close(int fd)
{
    syscall(SYS_close, fd);
}

static bool file_is(int fd, uint64_t dev, uint64_t ino, struct stat *st)
{
    return (syscall(SYS_fstat, fd, st) == 0) && (st->st_dev == dev) &&
           (st->st_ino == ino);
}

/* ---- what is at an address ---- */

/* Appends the next mapping. False: it does not go on where the range ends. */
static bool range_grow(struct share_range *range, const struct share_range *vma)
{
    if (range->end == 0) {
        *range           = *vma;
        range->first_end = vma->end;
        return true;
    }
    if ((vma->start != range->end) || (vma->dev != range->dev) ||
        (vma->ino != range->ino) ||
        (vma->off != range->off + (range->end - range->start))) {
        return false;
    }

    range->end = vma->end;
    return true;
}

static bool range_add_shared(struct share_range *range, struct share_range *vma,
                             uint64_t major, uint64_t minor, bool shared)
{
    vma->dev = makedev(major, minor);
    return shared && (vma->ino != 0) && range_grow(range, vma);
}

/* -1: this kernel has no such question */
static int range_query(int maps, uint64_t addr, uint64_t end,
                       struct share_range *range)
{
    struct procmap_query query;
    struct share_range vma;

    while (addr < end) {
        memset(&query, 0, sizeof(query));
        vma.name[0]         = '\0';
        query.size          = sizeof(query);
        query.query_addr    = addr;
        query.vma_name_addr = (uintptr_t)vma.name;
        query.vma_name_size = sizeof(vma.name);
        if (syscall(SYS_ioctl, maps, PROCMAP_QUERY, &query) != 0) {
            /* a name that is too long is none of those looked for */
            return ((errno == ENOENT) || (errno == ENAMETOOLONG)) ? 0 : -1;
        }

        vma.start = query.vma_start;
        vma.end   = query.vma_end;
        vma.off   = query.vma_offset;
        vma.ino   = query.inode;
        if (!range_add_shared(range, &vma, query.dev_major, query.dev_minor,
                              query.vma_flags & PROCMAP_QUERY_VMA_SHARED)) {
            return 0;
        }
        addr = vma.end;
    }

    return 1;
}

/* The same from the text, for older kernels */
static int range_parse(int maps, uint64_t addr, uint64_t end,
                       struct share_range *range)
{
    unsigned long start, stop, off, ino;
    unsigned major, minor;
    struct share_range vma;
    int fd     = syscall(SYS_dup, maps);
    FILE *file = (fd < 0) ? NULL : fdopen(fd, "r");
    char line[512], perms[8];
    int found  = 0, at;

    if (file == NULL) {
        if (fd >= 0) {
            sys_close(fd);
        }
        return 0;
    }

    while ((found == 0) && (fgets(line, sizeof(line), file) != NULL)) {
        at = 0;
        if ((sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %n", &start, &stop, perms,
                    &off, &major, &minor, &ino, &at) < 7) || (stop <= addr)) {
            continue;
        }
        vma.start = start;
        vma.end   = stop;
        vma.off   = off;
        vma.ino   = ino;
        snprintf(vma.name, sizeof(vma.name), "%.*s",
                 (int)strcspn(line + at, "\n"), line + at);
        if ((start > addr) ||
            !range_add_shared(range, &vma, major, minor, perms[3] == 's')) {
            break;
        }
        addr  = stop;
        found = addr >= end;
    }

    fclose(file);
    return found;
}

/* Is [addr, addr + len) one range of one shared file? */
static bool range_find(uint64_t addr, uint64_t len, struct share_range *range)
{
    int maps = sys_open("/proc/self/maps", O_RDONLY), found;

    if (maps < 0) {
        return false;
    }

    range->end = 0;
    found      = range_query(maps, addr, addr + len, range);
    if (found < 0) {
        range->end = 0;
        found      = range_parse(maps, addr, addr + len, range);
    }
    sys_close(maps);
    return found > 0;
}

/* ---- the owner's side ---- */

/* Shared memory that was never a file of anybody: /dev/zero and System V on
 * the file system where memfds are as well. */
static bool range_is_nameless(const struct share_range *range)
{
    static _Atomic uint64_t shm_dev;
    struct stat st;
    int fd;

    if ((strcmp(range->name, "/dev/zero (deleted)") != 0) &&
        (strncmp(range->name, "/SYSV", 5) != 0)) {
        return false;
    }

    if (atomic_load(&shm_dev) == 0) {
        fd = syscall(SYS_memfd_create, "vhca", 1u /* MFD_CLOEXEC */);
        if (fd < 0) {
            return false;
        }
        if (syscall(SYS_fstat, fd, &st) == 0) {
            atomic_store(&shm_dev, st.st_dev);
        }
        sys_close(fd);
    }
    return range->dev == atomic_load(&shm_dev);
}

static bool fd_sealed(int fd)
{
    long seals = syscall(SYS_fcntl, fd, F_GET_SEALS);

    return (seals >= 0) && (seals & F_SEAL_SHRINK);
}

/* By the mapping itself: only where this process has the capabilities */
static int open_by_mapping(const struct share_range *range)
{
    static _Atomic bool refused;
    char path[64];
    int fd;

    if (atomic_load(&refused)) {
        return -1;
    }

    snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx",
             (unsigned long)range->start, (unsigned long)range->first_end);
    fd = sys_open(path, O_RDWR);
    if ((fd < 0) && (errno == EPERM)) {
        atomic_store(&refused, true);
    }
    return fd;
}

/* A descriptor that the program has of the file, for writing, as our own one */
static int open_by_descriptor(uint64_t dev, uint64_t ino)
{
    struct dirent *entry;
    struct stat st;
    int fd = -1, flags;
    DIR *dir;

    dir = opendir("/proc/self/fd");
    if (dir == NULL) {
        return -1;
    }

    while ((fd < 0) && ((entry = readdir(dir)) != NULL)) {
        char *end;
        int its = strtol(entry->d_name, &end, 10);

        if ((*end != '\0') || !file_is(its, dev, ino, &st)) {
            continue;
        }
        flags = syscall(SYS_fcntl, its, F_GETFL);
        if ((flags >= 0) && ((flags & O_ACCMODE) == O_RDWR)) {
            fd = syscall(SYS_fcntl, its, F_DUPFD_CLOEXEC, 0);
        }
    }

    closedir(dir);
    return fd;
}

/* Not so many that the program runs out of them */
static bool fd_affordable(int fd)
{
    struct rlimit limit;

    return (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) == 0) &&
           ((rlim_t)fd < limit.rlim_cur - limit.rlim_cur / 4);
}

static int file_open(const struct share_range *range,
                     struct share_file *file_p)
{
    bool nameless = range_is_nameless(range);
    struct stat st;
    int fd;

    /* only these can be sealed */
    if (!nameless && (strncmp(range->name, "/memfd:", 7) != 0)) {
        return -1;
    }

    fd = open_by_mapping(range);
    if (fd < 0) {
        fd = open_by_descriptor(range->dev, range->ino);
    }
    if (fd < 0) {
        return -1;
    }

    if (!fd_affordable(fd) || !file_is(fd, range->dev, range->ino, &st) ||
        !(nameless || fd_sealed(fd))) {
        sys_close(fd);
        return -1;
    }

    *file_p = (struct share_file) {
        .dev   = range->dev,
        .ino   = range->ino,
        .fd    = fd,
        .refs  = 1,
        .fixed = nameless,
        /* hugetlbfs: the size of its pages */
        .page  = ((uint32_t)st.st_blksize > NIC_PAGE) ? st.st_blksize : NIC_PAGE
    };
    return 0;
}

/* Ours may have been closed by a program that closes what it does not know. */
static bool file_stands(const struct share_file *file)
{
    struct stat st;

    return file_is(file->fd, file->dev, file->ino, &st);
}

/* Under the mutex. A reference to the file of the range, or NULL. */
static struct share_file *file_get(const struct share_range *range)
{
    struct share_file *file, *empty = NULL;

    for (file = share.file; file < share.file + SHARE_FILES; ++file) {
        if (file->refs == 0) {
            empty = (empty == NULL) ? file : empty;
        } else if ((file->dev == range->dev) && (file->ino == range->ino) &&
                   file_stands(file)) {
            ++file->refs;
            return file;
        }
    }

    return ((empty != NULL) && (file_open(range, empty) == 0)) ? empty :
                                                                       NULL;
}

/* When a key is made: can others map what it is over? */
void nic_share_record(struct nic_mkey *key)
{
    uint64_t start         = key->start + key->va_delta;
    struct nic_share *what = &key->share;
    struct share_range range;
    struct share_file *file;
    int saved              = errno;

    key->share_id = 0;
    if (!range_find(start, key->len, &range)) {
        goto out;
    }

    pthread_mutex_lock(&share.mutex);
    file = file_get(&range);
    if (file != NULL) {
        what->dev   = file->dev;
        what->ino   = file->ino;
        what->off   = range.off + (start - range.start);
        what->fd    = file->fd;
        what->file  = file - share.file;
        what->page  = file->page;
        what->fixed = file->fixed;
        atomic_store(&what->viewed, 0);
        key->share_id = atomic_fetch_add(&NIC_FAB->hdr.share_ids, 1) + 1;
        vhca_stat_add("share.key", 1);
    }
    pthread_mutex_unlock(&share.mutex);

out:
    errno = saved;
}

/* When nobody uses the key any more */
void nic_share_release(struct nic_mkey *key)
{
    struct share_file *file = &share.file[key->share.file];
    int saved               = errno;

    if (key->share_id == 0) {
        return;
    }

    pthread_mutex_lock(&share.mutex);
    if (--file->refs == 0) {
        if (file_stands(file)) {
            sys_close(file->fd);
        }
    }
    pthread_mutex_unlock(&share.mutex);

    key->share_id = 0;
    vhca_stat_add("share.key", -1);
    if (atomic_load(&key->share.viewed)) {
        atomic_fetch_add(&NIC_FAB->hdr.share_epoch, 1);
    }
    nic_share_trim();
    errno = saved;
}

/* ---- views ---- */

/* Under the mutex. False: somebody may be using it right now. */
static bool view_drop(unsigned set, unsigned way, uint64_t spare)
{
    struct nic_view *view = &nic_views[set].way[way];
    uint64_t id           = atomic_load(&view->id);
    uint64_t bit          = 1ull << share.view[set][way].slot % 64;
    uint32_t i;

    if (id == 0) {
        return true;
    }
    if (spare & bit) {
        return false;
    }

    /* Announced first, looked up then: either they do not find it, or are
     * seen here. */
    atomic_store(&view->id, 0);
    for (i = 0; i < atomic_load(&nic_self.proc->nexec); ++i) {
        if (atomic_load(&nic_self.proc->exec[i].keys) & bit) {
            atomic_store(&view->id, id);
            return false;
        }
    }

    if (share.view[set][way].map != NULL) {
        syscall(SYS_munmap, share.view[set][way].map,
                share.view[set][way].len);
        share.view[set][way].map = NULL;
        vhca_stat_add("share.view", -1);
    }
    return true;
}

static int view_open(const struct nic_mkey *key, uint32_t pid, int flags)
{
    char path[48];

    if (atomic_load(&key->obj.claim) == nic_self.id) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", key->share.fd);
    } else {
        snprintf(path, sizeof(path), "/proc/%u/fd/%d", pid, key->share.fd);
    }
    return sys_open(path, flags);
}

/* The pages of the key, or MAP_FAILED */
static void *view_map(const struct nic_mkey *key, uint32_t pid, size_t *len_p,
                      uint64_t *lead_p)
{
    const struct nic_share *what = &key->share;
    bool write    = key->rights & (NIC_LW | NIC_RW | NIC_RA);
    uint64_t page = what->page;
    uint64_t from = what->off / page * page;
    uint64_t to   = (what->off + key->len + page - 1) / page * page;
    void *map     = MAP_FAILED;
    struct stat st;
    int fd;

    fd = view_open(key, pid, write ? O_RDWR : O_RDONLY);
    if (fd < 0) {
        return MAP_FAILED;
    }

    if (file_is(fd, what->dev, what->ino, &st) &&
        ((uint64_t)st.st_size >= what->off + key->len) &&
        (what->fixed || fd_sealed(fd))) {
        map = (void*)syscall(SYS_mmap, NULL, to - from,
                             PROT_READ | (write ? PROT_WRITE : 0),
                             MAP_SHARED | MAP_NORESERVE, fd, from);
    }
    sys_close(fd);
    if (map == MAP_FAILED) {
        return MAP_FAILED;
    }

    syscall(SYS_madvise, map, to - from, MADV_DONTFORK);
    syscall(SYS_madvise, map, to - from, MADV_DONTDUMP);
    syscall(SYS_madvise, map, to - from, MADV_HUGEPAGE);
    *len_p  = to - from;
    *lead_p = what->off - from;
    return map;
}

/* Makes the view. One that cannot be made is remembered as well, with no
 * address. spare: bits of the keys that the caller is using. */
void *nic_share_view(struct nic_mkey *key, uint64_t addr, uint64_t spare)
{
    uint64_t id           = key->share_id, lead = 0;
    unsigned set          = id % NIC_VIEW_SETS, way, i;
    struct nic_proc *proc = nic_proc_of(atomic_load(&key->obj.claim));
    int saved             = errno;
    struct nic_view *view;
    size_t len            = 0;
    void *base            = NULL;
    void *map;

    if (proc == NULL) {
        return NULL;
    }

    pthread_mutex_lock(&share.mutex);
    for (way = 0; way < NIC_VIEW_WAYS; ++way) {
        view = &nic_views[set].way[way];
        if (atomic_load(&view->id) == id) {
            base = view->base; /* another thread was quicker */
            goto out;
        }
    }

    for (i = 0, way = share.next_way++; i < NIC_VIEW_WAYS; ++i, ++way) {
        way %= NIC_VIEW_WAYS;
        if (view_drop(set, way, spare)) {
            break;
        }
    }
    if (i == NIC_VIEW_WAYS) {
        goto out;
    }

    view = &nic_views[set].way[way];
    map  = view_map(key, atomic_load(&proc->who) >> 40, &len, &lead);
    if (map != MAP_FAILED) {
        base = (char*)map + lead;
        atomic_store(&key->share.viewed, 1);
        vhca_stat_add("share.view", 1);
    }
    share.view[set][way].slot = nic_obj_index(NIC_MKEY, &key->obj);
    share.view[set][way].map  = (map == MAP_FAILED) ? NULL : map;
    share.view[set][way].len  = len;
    view->base                = base;
    atomic_store(&view->id, id);

out:
    pthread_mutex_unlock(&share.mutex);
    errno = saved;
    return (base == NULL) ? NULL : (char*)base + (addr - key->start);
}

/* Gives up the views of keys that are gone, as soon as some key that somebody
 * had a view of is. */
void nic_share_trim_now(uint32_t epoch)
{
    bool done = true;
    unsigned set, way;
    int saved = errno;

    pthread_mutex_lock(&share.mutex);
    for (set = 0; set < NIC_VIEW_SETS; ++set) {
        for (way = 0; way < NIC_VIEW_WAYS; ++way) {
            uint64_t id = atomic_load(&nic_views[set].way[way].id);
            struct nic_mkey *key;

            if (id == 0) {
                continue;
            }
            key = &NIC_FAB->mkey[share.view[set][way].slot];
            if ((atomic_load(&key->obj.number) == 0) ||
                (key->share_id != id)) {
                done &= view_drop(set, way, 0);
            }
        }
    }
    if (done) {
        atomic_store(&nic_share_seen, epoch);
    }
    pthread_mutex_unlock(&share.mutex);
    errno = saved;
}

/* The views are not inherited (MADV_DONTFORK), the descriptors are. */
void nic_share_fork_child(void)
{
    struct share_file *file;

    for (file = share.file; file < share.file + SHARE_FILES; ++file) {
        if ((file->refs != 0) && file_stands(file)) {
            sys_close(file->fd);
        }
    }
    memset(share.file, 0, sizeof(share.file));
    memset(share.view, 0, sizeof(share.view));
    memset(nic_views, 0, sizeof(nic_views));
    pthread_mutex_init(&share.mutex, NULL);
}
