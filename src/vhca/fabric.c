/* SPDX-License-Identifier: BSD-3-Clause */

/* Entering the fabric: the shared file, this process's place in it, owners and
 * protection domains. */

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "memcheck.h"
#include "nic.h"

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER     0x59616d61
#define PR_SET_PTRACER_ANY ((unsigned long)-1)
#endif

struct nic_self nic_self;

static pthread_mutex_t attach_mutex = PTHREAD_MUTEX_INITIALIZER;

/* A fork child owns nothing. The mapping stays, for the counters its software
 * may hold; the queues' pages become private copies. */
static void fork_prepare(void)
{
    pthread_mutex_lock(&attach_mutex);
    nic_pages_fork_prepare();
}

static void fork_parent(void)
{
    nic_pages_fork_parent();
    pthread_mutex_unlock(&attach_mutex);
}

static void fork_child(void)
{
    nic_self.fab  = NULL;
    nic_self.proc = NULL;
    nic_self.id   = 0;
    nic_pages_fork_child();
    nic_event_fork_child();
    nic_watch_fork_child();
    nic_share_fork_child();
    pthread_mutex_unlock(&attach_mutex);
}

static int make_dirs(char *dir)
{
    char *slash = strrchr(dir, '/');
    struct stat st;
    int pass;

    for (pass = 0; pass < 2; ++pass) {
        if (pass == 0) {
            *slash = '\0';
        }
        if ((mkdir(dir, 0700) != 0) && (errno != EEXIST)) {
            return -errno;
        }
        /* raw: the preload has its own idea of lstat() */
        if (syscall(SYS_newfstatat, AT_FDCWD, dir, &st, AT_SYMLINK_NOFOLLOW) !=
            0) {
            return -errno;
        }
        if (!S_ISDIR(st.st_mode) || (st.st_uid != getuid()) ||
            ((st.st_mode & 077) != 0)) {
            fprintf(stderr,
                    "vhca: %s must be a directory of user %u with mode 0700\n",
                    dir, (unsigned)getuid());
            return -EPERM;
        }
        *slash = '/';
    }

    return 0;
}

/* Not for ever: the holder may be stopped. */
static int lock_file(int fd)
{
    int turn;

    for (turn = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; ++turn) {
        if ((errno != EWOULDBLOCK) && (errno != EINTR)) {
            return -errno;
        }
        if (turn == 5000) {
            return -ETIMEDOUT;
        }
        usleep(1000);
    }
    return 0;
}

/* Under flock(): nobody maps a file that is half made. */
static int check_or_make(int fd, const char *path)
{
    struct nic_header *hdr;
    struct stat st;
    int ret = 0;

    if (syscall(SYS_fstat, fd, &st) != 0) {
        return -errno;
    }
    if ((st.st_size == 0) && (syscall(SYS_ftruncate, fd, NIC_FILE_SIZE) != 0)) {
        return -errno;
    }

    hdr = (void*)syscall(SYS_mmap, NULL, sizeof(*hdr), PROT_READ | PROT_WRITE,
                         MAP_SHARED, fd, 0ul);
    if (hdr == MAP_FAILED) {
        return -errno;
    }

    if (st.st_size == 0) {
        hdr->magic   = NIC_MAGIC;
        hdr->version = NIC_VERSION;
        hdr->layout  = NIC_LAYOUT;
        atomic_store(&hdr->ready, 1);
    } else if (((size_t)st.st_size < sizeof(*hdr)) ||
               (hdr->magic != NIC_MAGIC)) {
        fprintf(stderr, "vhca: %s is not a fabric\n", path);
        ret = -EINVAL;
    } else if ((hdr->version != NIC_VERSION) || (hdr->layout != NIC_LAYOUT) ||
               ((size_t)st.st_size != NIC_FILE_SIZE)) {
        fprintf(stderr,
                "vhca: %s was made by another version of vhca (layout %u/%08x,"
                " ours %u/%08x): remove it, or set VHCA_FABRIC\n",
                path, hdr->version, hdr->layout, NIC_VERSION, NIC_LAYOUT);
        ret = -EPROTO;
    }

    syscall(SYS_munmap, hdr, sizeof(*hdr));
    return ret;
}

static int open_file(const char *dir, int flags)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/fabric", dir);
    return syscall(SYS_openat, AT_FDCWD, path,
                   O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

/* The file by its name is still the one that is mapped. */
static bool file_is_ours(int fd)
{
    struct stat st;

    return (syscall(SYS_fstat, fd, &st) == 0) &&
           (st.st_dev == nic_self.file[0]) && (st.st_ino == nic_self.file[1]);
}

bool nic_fabric_map_again(const void *part, size_t len, uint64_t va)
{
    int fd  = open_file(nic_self.dir, 0);
    bool ok = false;

    if (fd < 0) {
        return false;
    }
    if (file_is_ours(fd)) {
        ok = (uint64_t)syscall(SYS_mmap, va, len, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_FIXED, fd,
                               (const uint8_t*)part -
                               (const uint8_t*)NIC_FAB) == va;
    }
    syscall(SYS_close, fd);
    return ok;
}

/* valgrind looks for pointers in all memory there is: the pool is nearly all a
 * hole, which that would take minutes to read. Pages in use by this process are
 * shown again (pages.c); those of others are no error. */
static void memcheck_hide(struct nic_fabric *fab)
{
    (void)VALGRIND_MAKE_MEM_NOACCESS(fab->pool, sizeof(fab->pool));
    (void)VALGRIND_DISABLE_ADDR_ERROR_REPORTING_IN_RANGE(fab->pool,
                                                         sizeof(fab->pool));
}

static int map_file(const char *dir, struct nic_fabric **fab_p)
{
    int fd = open_file(dir, O_CREAT), ret;
    char path[300];
    struct stat st;
    void *map;

    if (fd < 0) {
        return -errno;
    }
    snprintf(path, sizeof(path), "%s/fabric", dir);

    ret = lock_file(fd);
    if (ret != 0) {
        goto out_close;
    }

    ret = check_or_make(fd, path);
    flock(fd, LOCK_UN); /* the mapping would keep it */
    if (ret != 0) {
        goto out_close;
    }

    if (syscall(SYS_fstat, fd, &st) != 0) {
        ret = -errno;
        goto out_close;
    }
    map = (void*)syscall(SYS_mmap, NULL, NIC_FILE_SIZE, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_NORESERVE, fd, 0ul);
    if (map == MAP_FAILED) {
        ret = -errno;
        goto out_close;
    }

    syscall(SYS_madvise, map, NIC_FILE_SIZE, MADV_DONTDUMP);
    memcheck_hide(map);
    nic_self.file[0] = st.st_dev;
    nic_self.file[1] = st.st_ino;
    *fab_p           = map;

out_close:
    syscall(SYS_close, fd); /* pages are exchanged through the mapping */
    return ret;
}

static int life_init(struct nic_proc *proc)
{
    pthread_mutexattr_t attr;
    int ret;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    memset(&proc->life, 0, sizeof(proc->life));
    ret = pthread_mutex_init(&proc->life, &attr);
    pthread_mutexattr_destroy(&attr);
    return -ret;
}

/* Nobody holds it yet, or the thread that did has ended and the process goes
 * on: this one takes over. */
void nic_life_renew(void)
{
    pthread_mutex_t *life = &nic_self.proc->life;

    if (!nic_life_held(nic_self.proc) &&
        (pthread_mutex_trylock(life) == EOWNERDEAD)) {
        pthread_mutex_consistent(life);
    }
}

static int enter(struct nic_fabric *fab)
{
    uint64_t who = nic_who_self(), none;
    struct nic_proc *proc;
    uint32_t i, n;
    int ret;

    if (who == 0) {
        fprintf(stderr, "vhca: /proc/self/stat cannot be read\n");
        return -ENOSYS;
    }
    if (!nic_populate(&fab->hdr, sizeof(fab->hdr)) ||
        !nic_populate(fab->proc, 8 * sizeof(fab->proc[0]))) {
        fprintf(stderr, "vhca: the file system of %s is full\n",
                nic_self.dir);
        return -ENOSPC;
    }

    for (i = 0; i < NIC_PROCS; ++i) {
        none = 0;
        if (atomic_compare_exchange_strong(&fab->proc[i].who, &none, who)) {
            goto found;
        }
    }

    fprintf(stderr, "vhca: %u processes are on the fabric, no more fit\n",
            NIC_PROCS);
    return -EUSERS;

found:
    proc = &fab->proc[i];
    ret  = life_init(proc);
    if (ret != 0) {
        atomic_store(&proc->who, 0);
        return ret;
    }

    proc->gen = proc->gen % ((1u << 20) - 1) + 1;
    n         = atomic_load(&fab->hdr.nprocs);
    while ((n <= i) &&
           !atomic_compare_exchange_weak(&fab->hdr.nprocs, &n, i + 1)) {
    }

    nic_self.proc = proc;
    nic_self.id   = proc->gen << 10 | i;
    atomic_store(&proc->id, nic_self.id);
    return 0;
}

/* Bytes cross by process_vm_writev(): Yama must let peers in, and a seccomp
 * filter must not be in the way. */
static int check_vm_access(void)
{
    char from = 1, to     = 0;
    struct iovec src      = { &from, 1 }, dst = { &to, 1 };

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (syscall(SYS_process_vm_writev, getpid(), &src, 1ul, &dst, 1ul, 0ul) !=
        1) {
        fprintf(stderr,
                "vhca: process_vm_writev is refused (%s): a seccomp filter"
                " of this container?\n", strerror(errno));
        return -EPERM;
    }

    return 0;
}

int vhca_fabric_attach(void)
{
    static bool hooked;
    struct nic_fabric *fab = NULL;
    int ret                = 0;

    if (nic_self.fab != NULL) {
        return 0;
    }

    pthread_mutex_lock(&attach_mutex);
    if (nic_self.fab != NULL) {
        goto out;
    }

    ret = nic_fault_load();
    if (ret == 0) {
        ret = nic_trace_load();
    }
    if (ret != 0) {
        goto out; /* it was said what is wrong */
    }

    ret = nic_fabric_dir(nic_self.dir, sizeof(nic_self.dir));
    if (ret == 0) {
        ret = make_dirs(nic_self.dir);
    }
    if (ret == 0) {
        ret = check_vm_access();
    }
    if (ret == 0) {
        ret = map_file(nic_self.dir, &fab);
    }
    if (ret != 0) {
        fprintf(stderr, "vhca: no fabric at %s: %s\n", nic_self.dir,
                strerror(-ret));
        goto out;
    }

    ret = enter(fab);
    if (ret != 0) {
        syscall(SYS_munmap, fab, NIC_FILE_SIZE);
        goto out;
    }

    if (!hooked) {
        pthread_atfork(fork_prepare, fork_parent, fork_child);
        hooked = true;
    }
    __atomic_store_n(&nic_self.fab, fab, __ATOMIC_RELEASE);
    nic_sweep_all();
    nic_gauge_add(NIC_GAUGE_PROC, 1);

out:
    pthread_mutex_unlock(&attach_mutex);
    if (ret == 0) {
        nic_life_renew();
    }
    return ret;
}

int vhca_owner_open(unsigned dev, uint32_t *owner_p)
{
    const struct vhca_port_cfg *port = vhca_port_cfg(dev);
    struct nic_owner *owner;

    if ((NIC_FAB == NULL) || (port == NULL)) {
        return -ENODEV;
    }

    nic_life_renew();
    owner = (struct nic_owner*)(void*)nic_obj_alloc(NIC_OWNER, 0);
    if (owner == NULL) {
        return -ENOSPC;
    }

    atomic_store(&owner->by_call, 0);
    owner->dev  = dev;
    owner->roce = port->roce;
    *owner_p    = nic_obj_publish(NIC_OWNER, &owner->obj);
    nic_gauge_add(NIC_GAUGE_CTX, 1);
    return 0;
}

typedef void (*release_fn)(struct nic_obj*);

static void owner_drop(enum nic_kind kind, uint32_t owner, release_fn release)
{
    uint32_t high = atomic_load(&NIC_FAB->hdr.table[kind].high), i;

    for (i = 0; i < high; ++i) {
        struct nic_obj *obj = nic_obj_slot(kind, i);

        if (nic_obj_mine(obj, owner) && (atomic_load(&obj->number) != 0)) {
            release(obj);
        }
    }
}

static void drop_qp(struct nic_obj *obj)
{
    nic_qp_release((struct nic_qp*)(void*)obj);
}

static void drop_rmp(struct nic_obj *obj)
{
    nic_rmp_release((struct nic_rmp*)(void*)obj);
}

static void drop_cq(struct nic_obj *obj)
{
    nic_cq_release((struct nic_cq*)(void*)obj);
}

static void drop_mkey(struct nic_obj *obj)
{
    struct vhca_fw fw;

    vhca_mkey_destroy(obj->owner, atomic_load(&obj->number), &fw);
}

static void drop_chan(struct nic_obj *obj)
{
    vhca_channel_destroy(atomic_load(&obj->number));
}

static void drop_pd(struct nic_obj *obj)
{
    nic_gauge_add(NIC_GAUGE_PD, -1);
    nic_obj_free(NIC_PD, obj);
}

void vhca_owner_close(uint32_t owner)
{
    struct nic_obj *obj;

    if (NIC_FAB == NULL) {
        return;
    }

    obj = nic_obj_find(NIC_OWNER, owner);
    if (!nic_obj_mine(obj, 0)) {
        return;
    }

    owner_drop(NIC_QP, owner, drop_qp);
    owner_drop(NIC_RMP, owner, drop_rmp);
    owner_drop(NIC_CQ, owner, drop_cq);
    owner_drop(NIC_MKEY, owner, drop_mkey);
    owner_drop(NIC_CHAN, owner, drop_chan);
    owner_drop(NIC_PD, owner, drop_pd);
    nic_obj_free(NIC_OWNER, obj);
    nic_gauge_add(NIC_GAUGE_CTX, -1);
}

int vhca_pd_alloc(uint32_t owner, uint32_t *pdn_p)
{
    struct nic_obj *obj;

    if ((NIC_FAB == NULL) ||
        !nic_obj_mine(nic_obj_find(NIC_OWNER, owner), 0)) {
        return -EINVAL;
    }

    obj = nic_obj_alloc(NIC_PD, owner);
    if (obj == NULL) {
        return -ENOSPC;
    }

    *pdn_p = nic_obj_publish(NIC_PD, obj);
    nic_gauge_add(NIC_GAUGE_PD, 1);
    return 0;
}

void vhca_pd_free(uint32_t owner, uint32_t pdn)
{
    struct nic_obj *obj;

    if (NIC_FAB == NULL) {
        return;
    }

    obj = nic_obj_find(NIC_PD, pdn);
    if (nic_obj_mine(obj, owner)) {
        drop_pd(obj);
    }
}
