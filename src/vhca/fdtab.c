/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Which file descriptors of the process stand for the device or for one of its
 * event channels. A bitmap answers the common question, "is it ours", without
 * a lock. A device file is a sparse memory file, so that mapping a doorbell
 * page needs no help.
 *
 * A child of fork() owns nothing: the descriptors it inherits still look like
 * the device, but every ioctl fails. A child of vfork() shares the parent's
 * memory until it execs, so what it closes must not change anything here.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vhca/kernel.h"

#define FD_MAX       (1 << 20)
#define FD_WORD(_fd) ((unsigned)(_fd) / 64)
#define FD_BIT(_fd)  (1ull << ((unsigned)(_fd) % 64))

/* UAR page n is at offset n * 4096 of the file; page ids have 24 bits. */
#define DEVICE_FILE_SIZE (1ll << 36)

struct fd_entry {
    int                    fd;
    struct vhca_ctx       *ctx;     /* NULL: inherited by fork() */
    bool                   device;
    unsigned               dev;
    uint32_t               chan;
    enum vhca_channel_kind kind;
    struct fd_entry       *next;
};

static uint64_t         fd_bits[FD_MAX / 64];
static struct fd_entry *fd_list;
static pthread_mutex_t  fd_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t   fd_once = PTHREAD_ONCE_INIT;
static pid_t            fd_pid;

static void fd_atfork_child(void)
{
    struct fd_entry *entry;

    pthread_mutex_init(&fd_lock, NULL);
    fd_pid = getpid();
    for (entry = fd_list; entry != NULL; entry = entry->next) {
        entry->ctx = NULL;
    }
}

static void fd_atfork_prepare(void)
{
    pthread_mutex_lock(&fd_lock); /* the list is whole in the child */
}

static void fd_atfork_parent(void)
{
    pthread_mutex_unlock(&fd_lock);
}

static void fd_init(void)
{
    fd_pid = getpid();
    pthread_atfork(fd_atfork_prepare, fd_atfork_parent, fd_atfork_child);
}

bool vhca_fd_is_ours(int fd)
{
    return ((unsigned)fd < FD_MAX) &&
           ((__atomic_load_n(&fd_bits[FD_WORD(fd)], __ATOMIC_RELAXED) &
             FD_BIT(fd)) != 0);
}

static struct fd_entry *fd_find(int fd)
{
    struct fd_entry *entry;

    for (entry = fd_list; entry != NULL; entry = entry->next) {
        if (entry->fd == fd) {
            return entry;
        }
    }

    return NULL;
}

static int fd_add(int fd, const struct fd_entry *what)
{
    struct fd_entry *entry;

    if ((unsigned)fd >= FD_MAX) {
        return -EMFILE;
    }

    entry = malloc(sizeof(*entry));
    if (entry == NULL) {
        return -ENOMEM;
    }

    *entry      = *what;
    entry->fd   = fd;
    pthread_mutex_lock(&fd_lock);
    if (entry->device) {
        ++entry->ctx->refs;
    }
    entry->next = fd_list;
    fd_list     = entry;
    __atomic_or_fetch(&fd_bits[FD_WORD(fd)], FD_BIT(fd), __ATOMIC_RELAXED);
    pthread_mutex_unlock(&fd_lock);
    return 0;
}

static struct fd_entry *fd_remove(int fd)
{
    struct fd_entry **prev, *entry;

    for (prev = &fd_list; (entry = *prev) != NULL; prev = &entry->next) {
        if (entry->fd == fd) {
            *prev = entry->next;
            __atomic_and_fetch(&fd_bits[FD_WORD(fd)], ~FD_BIT(fd),
                               __ATOMIC_RELAXED);
            return entry;
        }
    }

    return NULL;
}

/* The last reference is gone: what the process left behind is destroyed. The
 * channels' descriptors stay open, they are the user's. */
static void ctx_destroy(struct vhca_ctx *ctx)
{
    struct fd_entry **prev, *entry;

    pthread_mutex_lock(&ctx->lock);
    vhca_uobj_destroy_all(ctx);
    pthread_mutex_unlock(&ctx->lock);

    pthread_mutex_lock(&fd_lock);
    for (prev = &fd_list; (entry = *prev) != NULL;) {
        if (entry->ctx != ctx) {
            prev = &entry->next;
            continue;
        }

        *prev = entry->next;
        __atomic_and_fetch(&fd_bits[FD_WORD(entry->fd)], ~FD_BIT(entry->fd),
                           __ATOMIC_RELAXED);
        free(entry);
    }
    pthread_mutex_unlock(&fd_lock);

    if (ctx->opened) {
        vhca_owner_close(ctx->owner);
    }

    pthread_mutex_destroy(&ctx->lock);
    free(ctx);
}

void vhca_fd_put_ctx(struct vhca_ctx *ctx)
{
    bool last;

    pthread_mutex_lock(&fd_lock);
    last = (--ctx->refs == 0);
    pthread_mutex_unlock(&fd_lock);
    if (last) {
        ctx_destroy(ctx);
    }
}

struct vhca_ctx *vhca_fd_get_ctx(int fd)
{
    struct vhca_ctx *ctx = NULL;
    struct fd_entry *entry;

    if (getpid() != fd_pid) {
        return NULL;
    }

    pthread_mutex_lock(&fd_lock);
    entry = fd_find(fd);
    if ((entry != NULL) && entry->device && (entry->ctx != NULL)) {
        ctx = entry->ctx;
        ++ctx->refs;
    }
    pthread_mutex_unlock(&fd_lock);
    return ctx;
}

bool vhca_fd_device(int fd, unsigned *dev_p)
{
    struct fd_entry *entry;
    bool device = false;

    pthread_mutex_lock(&fd_lock);
    entry = fd_find(fd);
    if ((entry != NULL) && entry->device) {
        *dev_p = entry->dev;
        device = true;
    }
    pthread_mutex_unlock(&fd_lock);
    return device;
}

int vhca_fd_open_device(unsigned dev, int flags, int *fd_p)
{
    struct fd_entry what = {.device = true, .dev = dev};
    struct vhca_ctx *ctx;
    int fd, ret;

    /* Here and not in an ioctl: it takes a lock that is never given back, so no
     * other may be held. */
    ret = vhca_fabric_attach();
    if (ret != 0) {
        return ret;
    }

    pthread_once(&fd_once, fd_init);
    ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL) {
        return -ENOMEM;
    }

    pthread_mutex_init(&ctx->lock, NULL);
    ctx->dev = dev;
    what.ctx = ctx;

    fd = memfd_create("uverbs", (flags & O_CLOEXEC) ? MFD_CLOEXEC : 0);
    if (fd < 0) {
        ret = -errno;
        goto err_free;
    }

    if (ftruncate(fd, DEVICE_FILE_SIZE) != 0) {
        ret = -errno;
        goto err_close;
    }

    ret = fd_add(fd, &what);
    if (ret != 0) {
        goto err_close;
    }

    *fd_p = fd;
    return 0;

err_close:
    syscall(SYS_close, fd);
err_free:
    pthread_mutex_destroy(&ctx->lock);
    free(ctx);
    return ret;
}

int vhca_fd_add_channel(struct vhca_ctx *ctx, int fd, uint32_t chan,
                        enum vhca_channel_kind kind)
{
    struct fd_entry what = {.ctx = ctx, .dev = ctx->dev, .chan = chan,
                            .kind = kind};

    return fd_add(fd, &what);
}

bool vhca_fd_channel(struct vhca_ctx *ctx, int fd, enum vhca_channel_kind kind,
                     uint32_t *chan_p)
{
    struct fd_entry *entry;
    bool found = false;

    pthread_mutex_lock(&fd_lock);
    entry = fd_find(fd);
    if ((entry != NULL) && !entry->device && (entry->ctx == ctx) &&
        (entry->kind == kind)) {
        *chan_p = entry->chan;
        found   = true;
    }
    pthread_mutex_unlock(&fd_lock);
    return found;
}

void vhca_fd_forget(int fd)
{
    struct vhca_ctx *ctx = NULL;
    struct fd_entry *entry, *other;
    bool last_channel    = false;

    if (getpid() != fd_pid) {
        return; /* a vfork() child: the parent still has it */
    }

    pthread_mutex_lock(&fd_lock);
    entry = fd_remove(fd);
    if ((entry != NULL) && (entry->ctx != NULL)) {
        if (entry->device) {
            ctx = entry->ctx;
        } else {
            last_channel = true;
            for (other = fd_list; other != NULL; other = other->next) {
                if ((other->ctx == entry->ctx) && !other->device &&
                    (other->chan == entry->chan)) {
                    last_channel = false; /* a dup() of it is open */
                }
            }
        }
    }
    pthread_mutex_unlock(&fd_lock);

    if (last_channel) {
        vhca_channel_destroy(entry->chan);
    }
    if (ctx != NULL) {
        vhca_fd_put_ctx(ctx);
    }
    free(entry);
}

void vhca_fd_duped(int from, int to)
{
    struct fd_entry what, *entry;
    bool found = false;

    if (getpid() != fd_pid) {
        return;
    }

    pthread_mutex_lock(&fd_lock);
    entry = fd_find(from);
    if ((entry != NULL) && (entry->ctx != NULL)) {
        what  = *entry;
        found = true;
    }
    pthread_mutex_unlock(&fd_lock);

    if (found) {
        (void)fd_add(to, &what);
    }
}
