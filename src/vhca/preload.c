/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The calls of libc through which a process meets the device. Each decides with
 * one or two comparisons that it is not meant and goes on to the next
 * definition (libc's, or another preloaded library's). There is no constructor:
 * they may be called before one would run, and a process that never looks for
 * the device pays nothing else.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vhca/kernel.h"

/* The library is linked without start files, whose code would run in every
 * process. This is all of them that is needed: it names the library to
 * pthread_atfork(). */
extern void *__dso_handle __attribute__((visibility("hidden")));
void        *__dso_handle = &__dso_handle;

#define EXPORT __attribute__((visibility("default")))

/* The next definition of the function this is used in. Racing threads find the
 * same. */
#define NEXT(_name)                                                     \
    ({                                                                  \
        static __typeof__(&_name) next_;                                \
        __typeof__(&_name) fn_ = __atomic_load_n(&next_,                \
                                                 __ATOMIC_RELAXED);     \
        if (__builtin_expect(fn_ == NULL, 0)) {                         \
            fn_ = (__typeof__(&_name))next_symbol(#_name);              \
            __atomic_store_n(&next_, fn_, __ATOMIC_RELAXED);            \
        }                                                               \
        fn_;                                                            \
    })

static void *next_symbol(const char *name)
{
    int saved = errno;
    void *sym = dlsym(RTLD_NEXT, name);

    if (sym == NULL) {
        abort(); /* libc has them all */
    }

    errno = saved;
    return sym;
}

/* Absolute, and below /sys/class/inf... or /dev/inf...: everything else ends
 * here. */
static inline bool path_maybe_ours(const char *path)
{
    return (path != NULL) && (path[0] == '/') &&
           (((path[1] == 's') && (strncmp(path, "/sys/class/inf", 14) == 0)) ||
            ((path[1] == 'd') && (strncmp(path, "/dev/inf", 8) == 0)));
}

static int set_errno(int ret)
{
    errno = -ret;
    return -1;
}

static int open_device(int dev, int flags)
{
    int fd  = -1;
    int ret = vhca_fd_open_device((unsigned)dev, flags, &fd);

    return (ret == 0) ? fd : set_errno(ret);
}

static void fill_cdev_stat(struct stat *st, unsigned dev)
{
    memset(st, 0, sizeof(*st));
    st->st_mode    = S_IFCHR | 0666;
    st->st_nlink   = 1;
    st->st_ino     = 0x7668 + dev;
    st->st_dev     = 5;
    st->st_rdev    = makedev(VHCA_CDEV_MAJOR, VHCA_CDEV_MINOR + dev);
    st->st_blksize = VHCA_PAGE_SIZE;
}

static void fill_cdev_statx(struct statx *stx, const struct stat *st)
{
    memset(stx, 0, sizeof(*stx));
    stx->stx_mask       = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_INO;
    stx->stx_mode       = (uint16_t)st->st_mode;
    stx->stx_nlink      = (uint32_t)st->st_nlink;
    stx->stx_ino        = st->st_ino;
    stx->stx_dev_minor  = minor(st->st_dev);
    stx->stx_rdev_major = VHCA_CDEV_MAJOR;
    stx->stx_rdev_minor = minor(st->st_rdev);
    stx->stx_blksize    = (uint32_t)st->st_blksize;
}

/* struct stat and struct stat64 are one on x86-64 */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "LP64");

/* ---- open ---- */

static mode_t open_mode(int flags, va_list ap)
{
    return ((flags & O_CREAT) || ((flags & O_TMPFILE) == O_TMPFILE)) ?
           (mode_t)va_arg(ap, int) : 0;
}

#define DEFINE_OPEN(_name)                                          \
    EXPORT int _name(const char *path, int flags, ...)              \
    {                                                               \
        char buf[PATH_MAX];                                         \
        va_list ap;                                                 \
        mode_t mode;                                                \
        int dev;                                                    \
                                                                    \
        va_start(ap, flags);                                        \
        mode = open_mode(flags, ap);                                \
        va_end(ap);                                                 \
        if (__builtin_expect(path_maybe_ours(path), 0)) {           \
            dev = vhca_cdev_number(path);                           \
            if (dev >= 0) {                                         \
                return open_device(dev, flags);                     \
            }                                                       \
            path = vhca_sysfs_path(path, buf, sizeof(buf));         \
        }                                                           \
        return NEXT(_name)(path, flags, mode);                      \
    }

#define DEFINE_OPENAT(_name)                                        \
    EXPORT int _name(int dirfd, const char *path, int flags, ...)   \
    {                                                               \
        char buf[PATH_MAX];                                         \
        va_list ap;                                                 \
        mode_t mode;                                                \
        int dev;                                                    \
                                                                    \
        va_start(ap, flags);                                        \
        mode = open_mode(flags, ap);                                \
        va_end(ap);                                                 \
        if (__builtin_expect(path_maybe_ours(path), 0)) {           \
            dev = vhca_cdev_number(path);                           \
            if (dev >= 0) {                                         \
                return open_device(dev, flags);                     \
            }                                                       \
            path = vhca_sysfs_path(path, buf, sizeof(buf));         \
        }                                                           \
        return NEXT(_name)(dirfd, path, flags, mode);               \
    }

DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

#define DEFINE_FOPEN(_name)                                         \
    EXPORT FILE *_name(const char *path, const char *mode)          \
    {                                                               \
        char buf[PATH_MAX];                                         \
                                                                    \
        if (__builtin_expect(path_maybe_ours(path), 0)) {           \
            path = vhca_sysfs_path(path, buf, sizeof(buf));         \
        }                                                           \
        return NEXT(_name)(path, mode);                             \
    }

DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)

EXPORT DIR *opendir(const char *path)
{
    char buf[PATH_MAX];

    if (__builtin_expect(path_maybe_ours(path), 0)) {
        path = vhca_sysfs_path(path, buf, sizeof(buf));
    }

    return NEXT(opendir)(path);
}

/* ---- stat ---- */

#define DEFINE_STAT(_name, _struct)                                 \
    EXPORT int _name(const char *path, struct _struct *st)          \
    {                                                               \
        char buf[PATH_MAX];                                         \
        int dev;                                                    \
                                                                    \
        if (__builtin_expect(path_maybe_ours(path), 0)) {           \
            dev = vhca_cdev_number(path);                           \
            if (dev >= 0) {                                         \
                fill_cdev_stat((struct stat*)st, (unsigned)dev);    \
                return 0;                                           \
            }                                                       \
            path = vhca_sysfs_path(path, buf, sizeof(buf));         \
        }                                                           \
        return NEXT(_name)(path, st);                               \
    }

DEFINE_STAT(stat, stat)
DEFINE_STAT(stat64, stat64)
DEFINE_STAT(lstat, stat)
DEFINE_STAT(lstat64, stat64)

#define DEFINE_FSTAT(_name, _struct)                                \
    EXPORT int _name(int fd, struct _struct *st)                    \
    {                                                               \
        unsigned dev;                                               \
                                                                    \
        if (__builtin_expect(vhca_fd_is_ours(fd), 0) &&             \
            vhca_fd_device(fd, &dev)) {                             \
            fill_cdev_stat((struct stat*)st, dev);                  \
            return 0;                                               \
        }                                                           \
        return NEXT(_name)(fd, st);                                 \
    }

DEFINE_FSTAT(fstat, stat)
DEFINE_FSTAT(fstat64, stat64)

/* coreutils' ls and stat use it. */
EXPORT int statx(int dirfd, const char *path, int flags, unsigned mask,
                 struct statx *stx)
{
    char buf[PATH_MAX];
    struct stat st;
    int dev;

    if (__builtin_expect(path_maybe_ours(path), 0)) {
        dev = vhca_cdev_number(path);
        if (dev >= 0) {
            fill_cdev_stat(&st, (unsigned)dev);
            fill_cdev_statx(stx, &st);
            return 0;
        }
        path = vhca_sysfs_path(path, buf, sizeof(buf));
    }

    return NEXT(statx)(dirfd, path, flags, mask, stx);
}

/* Programs linked with a glibc before 2.33 call these. */
extern int __xstat(int ver, const char *path, struct stat *st);
extern int __xstat64(int ver, const char *path, struct stat64 *st);
extern int __fxstat(int ver, int fd, struct stat *st);
extern int __fxstat64(int ver, int fd, struct stat64 *st);

#define DEFINE_XSTAT(_name, _struct)                                \
    EXPORT int _name(int ver, const char *path, struct _struct *st) \
    {                                                               \
        char buf[PATH_MAX];                                         \
        int dev;                                                    \
                                                                    \
        if (__builtin_expect(path_maybe_ours(path), 0)) {           \
            dev = vhca_cdev_number(path);                           \
            if (dev >= 0) {                                         \
                fill_cdev_stat((struct stat*)st, (unsigned)dev);    \
                return 0;                                           \
            }                                                       \
            path = vhca_sysfs_path(path, buf, sizeof(buf));         \
        }                                                           \
        return NEXT(_name)(ver, path, st);                          \
    }

#define DEFINE_FXSTAT(_name, _struct)                               \
    EXPORT int _name(int ver, int fd, struct _struct *st)           \
    {                                                               \
        unsigned dev;                                               \
                                                                    \
        if (__builtin_expect(vhca_fd_is_ours(fd), 0) &&             \
            vhca_fd_device(fd, &dev)) {                             \
            fill_cdev_stat((struct stat*)st, dev);                  \
            return 0;                                               \
        }                                                           \
        return NEXT(_name)(ver, fd, st);                            \
    }

DEFINE_XSTAT(__xstat, stat)
DEFINE_XSTAT(__xstat64, stat64)
DEFINE_FXSTAT(__fxstat, stat)
DEFINE_FXSTAT(__fxstat64, stat64)

EXPORT int access(const char *path, int mode)
{
    char buf[PATH_MAX];

    if (__builtin_expect(path_maybe_ours(path), 0)) {
        if (vhca_cdev_number(path) >= 0) {
            return (mode & X_OK) ? set_errno(-EACCES) : 0;
        }
        path = vhca_sysfs_path(path, buf, sizeof(buf));
    }

    return NEXT(access)(path, mode);
}

EXPORT ssize_t readlink(const char *path, char *out, size_t size)
{
    char buf[PATH_MAX];

    if (__builtin_expect(path_maybe_ours(path), 0)) {
        path = vhca_sysfs_path(path, buf, sizeof(buf));
    }

    return NEXT(readlink)(path, out, size);
}

EXPORT char *realpath(const char *path, char *resolved)
{
    char buf[PATH_MAX];

    if (__builtin_expect(path_maybe_ours(path), 0)) {
        path = vhca_sysfs_path(path, buf, sizeof(buf));
    }

    return NEXT(realpath)(path, resolved);
}

/* realpath() of programs built with _FORTIFY_SOURCE */
extern char *__realpath_chk(const char *path, char *resolved, size_t size);

EXPORT char *__realpath_chk(const char *path, char *resolved, size_t size)
{
    char buf[PATH_MAX];

    if (__builtin_expect(path_maybe_ours(path), 0)) {
        path = vhca_sysfs_path(path, buf, sizeof(buf));
    }

    return NEXT(__realpath_chk)(path, resolved, size);
}

/* ---- file descriptors ---- */

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    struct vhca_ctx *ctx;
    va_list ap;
    void *arg;
    int ret;

    va_start(ap, request);
    arg = va_arg(ap, void*);
    va_end(ap);

    if (__builtin_expect(request == RDMA_VERBS_IOCTL, 0) &&
        vhca_fd_is_ours(fd)) {
        ctx = vhca_fd_get_ctx(fd);
        if (ctx == NULL) {
            return set_errno(-EIO); /* in a child of fork() */
        }

        ret = vhca_uverbs_ioctl(ctx, arg);
        vhca_fd_put_ctx(ctx);
        return (ret == 0) ? 0 : set_errno(ret);
    }

    return NEXT(ioctl)(fd, request, arg);
}

EXPORT int close(int fd)
{
    if (__builtin_expect(vhca_fd_is_ours(fd), 0)) {
        vhca_fd_forget(fd);
    }

    return NEXT(close)(fd);
}

/* With a kernel that has RDMA of its own, libibverbs would ask it for its
 * devices by netlink and never look into sysfs. */
EXPORT int socket(int domain, int type, int protocol)
{
    if (__builtin_expect(domain == AF_NETLINK, 0) &&
        (protocol == NETLINK_RDMA)) {
        return set_errno(-EPROTONOSUPPORT);
    }

    return NEXT(socket)(domain, type, protocol);
}

EXPORT int dup(int fd)
{
    int new_fd = NEXT(dup)(fd);

    if (__builtin_expect(vhca_fd_is_ours(fd), 0) && (new_fd >= 0)) {
        vhca_fd_duped(fd, new_fd);
    }

    return new_fd;
}

static void before_dup_to(int fd, int to)
{
    if (__builtin_expect(vhca_fd_is_ours(to), 0) && (fd != to)) {
        vhca_fd_forget(to);
    }
}

static int after_dup_to(int fd, int to, int ret)
{
    if (__builtin_expect(vhca_fd_is_ours(fd), 0) && (ret >= 0) && (fd != to)) {
        vhca_fd_duped(fd, ret);
    }

    return ret;
}

EXPORT int dup2(int fd, int to)
{
    before_dup_to(fd, to);
    return after_dup_to(fd, to, NEXT(dup2)(fd, to));
}

EXPORT int dup3(int fd, int to, int flags)
{
    before_dup_to(fd, to);
    return after_dup_to(fd, to, NEXT(dup3)(fd, to, flags));
}

#define DEFINE_FCNTL(_name)                                         \
    EXPORT int _name(int fd, int cmd, ...)                          \
    {                                                               \
        va_list ap;                                                 \
        void *arg;                                                  \
        int ret;                                                    \
                                                                    \
        va_start(ap, cmd);                                          \
        arg = va_arg(ap, void*);                                    \
        va_end(ap);                                                 \
        ret = NEXT(_name)(fd, cmd, arg);                            \
        if (((cmd == F_DUPFD) || (cmd == F_DUPFD_CLOEXEC)) &&       \
            (ret >= 0) && vhca_fd_is_ours(fd)) {                    \
            vhca_fd_duped(fd, ret);                                 \
        }                                                           \
        return ret;                                                 \
    }

DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)
