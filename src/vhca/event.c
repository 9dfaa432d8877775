/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Events. A channel is a datagram socket bound in the fabric's directory, which
 * only its user can enter: every process of the fabric sends to it, none can be
 * made to wait. What does not fit into a full socket is kept by the sender,
 * whose timer tries again.
 */

#include <endian.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "nic.h"

#define BACKLOG_MAX  1024
#define PURGE_MAX    1024
#define SENDER_LIMIT 1000000000ll /* ns */

struct event_msg {
    uint64_t cookie;
    uint8_t  data[64];
};

struct backlog {
    uint32_t sub;              /* number */
    uint16_t type;
    uint32_t target;
};

static struct {
    pthread_mutex_t  mutex;
    _Atomic uint32_t n;
    struct backlog   entry[BACKLOG_MAX];
} backlog = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* The socket this process sends with */
static struct {
    pthread_mutex_t mutex;
    int             fd;
    uint64_t        inode;
} sender = { .mutex = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* Other threads of the parent may have held them. */
void nic_event_fork_child(void)
{
    pthread_mutex_init(&backlog.mutex, NULL);
    pthread_mutex_init(&sender.mutex, NULL);
    atomic_store(&backlog.n, 0);
}

static uint64_t inode_of(int fd)
{
    struct stat st;

    return ((fd >= 0) && (syscall(SYS_fstat, fd, &st) == 0)) ? st.st_ino : 0;
}

/* A program may close all descriptors it does not know: the number alone does
 * not say that it is still ours. */
static int sender_fd(void)
{
    pthread_mutex_lock(&sender.mutex);
    if ((sender.fd < 0) || (inode_of(sender.fd) != sender.inode)) {
        sender.fd    = syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC,
                               0);
        sender.inode = inode_of(sender.fd);
    }
    pthread_mutex_unlock(&sender.mutex);
    return sender.fd;
}

static int chan_send(uint32_t chan, const void *msg, size_t len)
{
    struct sockaddr_un addr;
    int dirfd, ret;

    if (!nic_chan_addr(nic_self.dir, chan, &addr, &dirfd)) {
        return -errno;
    }

    ret = syscall(SYS_sendto, sender_fd(), msg, len,
                  MSG_DONTWAIT | MSG_NOSIGNAL, &addr, sizeof(addr));
    ret = (ret < 0) ? -errno : 0;
    nic_chan_addr_done(dirfd);
    return ret;
}

int vhca_channel_create(uint32_t owner, enum vhca_channel_kind kind,
                        bool omit_data, int *fd_p, uint32_t *chan_p)
{
    struct nic_chan *chan;
    struct sockaddr_un addr;
    int fd, dirfd, ret;

    if ((NIC_FAB == NULL) ||
        !nic_obj_mine(nic_obj_find(NIC_OWNER, owner), 0)) {
        return -EINVAL;
    }

    chan = (struct nic_chan*)(void*)nic_obj_alloc(NIC_CHAN, owner);
    if (chan == NULL) {
        return -ENOSPC;
    }

    fd = syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        ret = -errno;
        goto err_free;
    }

    chan->kind      = kind;
    chan->omit_data = omit_data;
    chan->fd        = fd;
    chan->inode     = inode_of(fd);
    nic_obj_publish(NIC_CHAN, &chan->obj);
    if (!nic_chan_addr(nic_self.dir, atomic_load(&chan->obj.number), &addr,
                       &dirfd)) {
        ret = -errno;
        goto err_close;
    }

    syscall(SYS_unlink, addr.sun_path); /* left by a crash of the machine */
    ret = (syscall(SYS_bind, fd, &addr, sizeof(addr)) == 0) ? 0 : -errno;
    nic_chan_addr_done(dirfd);
    if (ret != 0) {
        goto err_close;
    }

    *fd_p   = fd;
    *chan_p = atomic_load(&chan->obj.number);
    return 0;

err_close:
    syscall(SYS_close, fd);
err_free:
    nic_obj_free(NIC_CHAN, &chan->obj);
    return ret;
}

bool vhca_device_removed(void)
{
    return (NIC_FAB != NULL) && nic_device_removed(nic_self.id);
}

/* Removes the name; also for a process that is gone. Its number may be hidden
 * by now: it follows from the slot. */
void nic_chan_release(struct nic_chan *chan)
{
    struct sockaddr_un addr;
    uint32_t number = chan->obj.gen << NIC_LOG_CHANS |
                      nic_obj_index(NIC_CHAN, &chan->obj);
    int dirfd;

    if (nic_chan_addr(nic_self.dir, number, &addr, &dirfd)) {
        syscall(SYS_unlink, addr.sun_path);
        nic_chan_addr_done(dirfd);
    }
}

static struct nic_subs *subs_of(uint32_t number)
{
    struct nic_obj *obj;

    switch (number >> 21) {
    case 4: case 5:
        obj = nic_obj_find(NIC_CQ, number);
        return obj ? &((struct nic_cq*)(void*)obj)->subs : NULL;
    case 2: case 3:
        obj = nic_obj_find(NIC_QP, number);
        return obj ? &((struct nic_qp*)(void*)obj)->subs : NULL;
    case 1:
        obj = nic_obj_find(NIC_RMP, number);
        return obj ? &((struct nic_rmp*)(void*)obj)->subs : NULL;
    default:
        return NULL;
    }
}

static void sub_drop(struct nic_sub *sub)
{
    struct nic_subs *subs = subs_of(sub->target);
    uint32_t ref          = nic_obj_index(NIC_SUB, &sub->obj) + 1, seen;
    unsigned i;

    for (i = 0; (subs != NULL) && (i < NIC_OBJ_SUBS); ++i) {
        seen = ref;
        atomic_compare_exchange_strong(&subs->sub[i], &seen, 0);
    }
    nic_obj_free(NIC_SUB, &sub->obj);
}

void vhca_channel_destroy(uint32_t number)
{
    struct nic_chan *chan = (NIC_FAB == NULL) ? NULL :
                            NIC_FIND(NIC_CHAN, nic_chan, number);
    uint32_t high, i;

    if ((chan == NULL) || (atomic_load(&chan->obj.claim) != nic_self.id)) {
        return;
    }

    nic_obj_hide(&chan->obj);
    high = atomic_load(&NIC_FAB->hdr.table[NIC_SUB].high);
    for (i = 0; i < high; ++i) {
        struct nic_sub *sub = &NIC_FAB->sub[i];

        if ((atomic_load(&sub->obj.claim) == nic_self.id) &&
            (atomic_load(&sub->obj.number) != 0) && (sub->chan == number)) {
            sub_drop(sub);
        }
    }
    nic_chan_release(chan);
    nic_obj_free(NIC_CHAN, &chan->obj);
}

int vhca_event_subscribe(uint32_t chan, uint16_t type, uint32_t number,
                         uint64_t cookie)
{
    struct nic_obj *obj   = (NIC_FAB == NULL) ? NULL :
                            nic_obj_find(NIC_CHAN, chan);
    struct nic_subs *subs = NULL;
    struct nic_sub *sub;
    uint32_t none;
    unsigned i;

    if ((obj == NULL) || (atomic_load(&obj->claim) != nic_self.id)) {
        return -EINVAL;
    }
    if (number != 0) {
        subs = subs_of(number);
        if (subs == NULL) {
            return -EINVAL;
        }
    }

    sub = (struct nic_sub*)(void*)nic_obj_alloc(NIC_SUB, obj->owner);
    if (sub == NULL) {
        return -ENOSPC;
    }

    sub->chan   = chan;
    sub->target = number;
    sub->type   = type;
    sub->cookie = cookie;
    atomic_store(&sub->pending, 0);
    atomic_store(&sub->sent, 0);
    nic_obj_publish(NIC_SUB, &sub->obj);
    for (i = 0; (subs != NULL) && (i < NIC_OBJ_SUBS); ++i) {
        none = 0;
        if (atomic_compare_exchange_strong(
                    &subs->sub[i], &none,
                    nic_obj_index(NIC_SUB, &sub->obj) + 1)) {
            return 0;
        }
    }
    if (subs == NULL) {
        return 0;
    }

    nic_obj_free(NIC_SUB, &sub->obj);
    return -ENOSPC;
}

/* Takes unread messages with this cookie out of the channel; the others keep
 * their order. Returns how many there were. */
static uint32_t chan_purge(struct nic_chan *chan, uint32_t number,
                           uint64_t cookie)
{
    struct event_msg *kept;
    uint16_t *len;
    uint32_t purged = 0, n = 0, i;
    ssize_t ret;

    if ((chan == NULL) || (inode_of(chan->fd) != chan->inode)) {
        return 0;
    }

    kept = malloc(PURGE_MAX * (sizeof(*kept) + sizeof(*len)));
    if (kept == NULL) {
        return 0;
    }

    len = (uint16_t*)(void*)(kept + PURGE_MAX);
    while (n < PURGE_MAX) {
        ret = syscall(SYS_recvfrom, chan->fd, &kept[n], sizeof(kept[n]),
                      MSG_DONTWAIT, NULL, NULL);
        if (ret < 0) {
            break;
        }
        if ((ret >= 8) && (kept[n].cookie == cookie)) {
            ++purged;
        } else {
            len[n++] = ret;
        }
    }
    for (i = 0; i < n; ++i) {
        chan_send(number, &kept[i], len[i]);
    }
    free(kept);
    return purged;
}

/* Waits for senders. One that was killed or is stopped on its way does not stop
 * this for long. */
static void sub_quiesce(struct nic_sub *sub)
{
    int64_t deadline = nic_now() + SENDER_LIMIT;

    atomic_thread_fence(memory_order_seq_cst);
    while (atomic_load(&sub->senders) > 0) {
        if (nic_now() > deadline) {
            atomic_store(&sub->senders, 0);
            return;
        }
        sched_yield();
    }
}

struct vhca_event_counts vhca_event_unsubscribe(uint32_t number)
{
    struct vhca_event_counts counts = { 0, 0 };
    uint32_t high = (NIC_FAB == NULL) ? 0 :
                    atomic_load(&NIC_FAB->hdr.table[NIC_SUB].high);
    uint32_t i, read;

    for (i = 0; i < high; ++i) {
        struct nic_sub *sub = &NIC_FAB->sub[i];
        struct nic_chan *chan;

        if ((atomic_load(&sub->obj.claim) != nic_self.id) ||
            (atomic_load(&sub->obj.number) == 0) ||
            (sub->target != number)) {
            continue;
        }

        chan = NIC_FIND(NIC_CHAN, nic_chan, sub->chan);
        nic_obj_hide(&sub->obj); /* no backlog is sent any more */
        sub_quiesce(sub);
        read = atomic_load(&sub->sent) -
               chan_purge(chan, sub->chan, sub->cookie);
        if ((chan != NULL) && (chan->kind == VHCA_CHANNEL_COMP)) {
            counts.comp += read;
        } else if ((chan != NULL) && (chan->kind == VHCA_CHANNEL_ASYNC)) {
            counts.async += read;
        }
        sub_drop(sub);
    }

    return counts;
}

/* PRM event type to enum ib_event_type */
static uint32_t ib_event(uint16_t type)
{
    switch (type) {
    case EQE_CQ_ERROR:
        return 0;
    case EQE_WQ_CATAS:
        return 1;
    case EQE_WQ_INVAL_REQ:
        return 2;
    case EQE_WQ_ACCESS:
        return 3;
    case EQE_COMM_ESTABLISHED:
        return 4;
    case EQE_SRQ_CATAS:
        return 14;
    case EQE_SRQ_LIMIT:
        return 15;
    default:
        return 16; /* last WQE reached */
    }
}

static size_t event_format(const struct nic_chan *chan,
                           const struct nic_sub *sub, uint16_t type,
                           uint32_t number, struct event_msg *msg)
{
    uint32_t word;

    memset(msg, 0, sizeof(*msg));
    msg->cookie = sub->cookie;
    switch (chan->kind) {
    case VHCA_CHANNEL_ASYNC:
        word = ib_event(type);
        memcpy(msg->data, &word, sizeof(word));
        return 16;
    case VHCA_CHANNEL_COMP:
        return 8;
    default:
        break;
    }
    if (chan->omit_data) {
        return 8;
    }

    /* EQE: type in byte 1, the object's number in its event data; a CQ error
     * has it first, with the syndrome (1: overrun) in the third word */
    word         = htobe32(number);
    msg->data[1] = type;
    memcpy(&msg->data[(type == EQE_CQ_ERROR) ? 32 : 56], &word, sizeof(word));
    if (type == EQE_CQ_ERROR) {
        msg->data[43] = 1;
    }
    return sizeof(*msg);
}

/* 0, -EAGAIN when the channel is full, another errno when it, or the
 * subscription of this number, is gone */
static int sub_send(struct nic_sub *sub, uint32_t sub_number, uint16_t type,
                    uint32_t number)
{
    struct nic_chan *chan;
    struct event_msg msg;
    int ret = -ENOENT;

    /* whoever takes the subscription away hides its number, then waits for
     * those who had seen it: what they have sent is counted by then */
    atomic_fetch_add(&sub->senders, 1);
    chan = NIC_FIND(NIC_CHAN, nic_chan, sub->chan);
    if ((atomic_load(&sub->obj.number) == sub_number) && (chan != NULL)) {
        ret = chan_send(sub->chan, &msg, event_format(chan, sub, type, number,
                                                      &msg));
        if (ret == 0) {
            atomic_fetch_add(&sub->sent, 1);
            nic_stat_add(NIC_STAT_EVENT_SENT, 1);
        }
    }
    atomic_fetch_sub(&sub->senders, 1);
    return ret;
}

static void backlog_add(const struct nic_chan *chan, struct nic_sub *sub,
                        uint32_t number, uint16_t type, uint32_t target)
{
    uint32_t n;

    /* without data one pending event says it all */
    if ((atomic_exchange(&sub->pending, 1) != 0) && (chan != NULL) &&
        chan->omit_data) {
        return;
    }

    pthread_mutex_lock(&backlog.mutex);
    n = atomic_load(&backlog.n);
    if (n < BACKLOG_MAX) {
        backlog.entry[n] = (struct backlog) { number, type, target };
        atomic_store(&backlog.n, n + 1);
    }
    pthread_mutex_unlock(&backlog.mutex);
    nic_stat_add(NIC_STAT_EVENT_DEFERRED, 1);
    nic_timer_poke();
}

/* Tries again what did not fit. True: some of it still does not. */
bool nic_event_backlog_run(void)
{
    uint32_t n, i, left = 0;

    if (atomic_load(&backlog.n) == 0) {
        return false;
    }

    pthread_mutex_lock(&backlog.mutex);
    n = atomic_load(&backlog.n);
    for (i = 0; i < n; ++i) {
        struct backlog entry = backlog.entry[i];
        struct nic_sub *sub  = NIC_FIND(NIC_SUB, nic_sub, entry.sub);

        if (sub == NULL) {
            continue;
        }
        atomic_store(&sub->pending, 0);
        if (sub_send(sub, entry.sub, entry.type, entry.target) == -EAGAIN) {
            atomic_store(&sub->pending, 1);
            backlog.entry[left++] = entry;
        }
    }
    atomic_store(&backlog.n, left);
    pthread_mutex_unlock(&backlog.mutex);
    return left > 0;
}

void nic_event_send(const struct nic_subs *subs, uint16_t type,
                    uint32_t number)
{
    struct nic_sub *sub;
    uint32_t ref, sub_number;
    unsigned i;

    for (i = 0; i < NIC_OBJ_SUBS; ++i) {
        ref = atomic_load_explicit(&subs->sub[i], memory_order_acquire);
        if (ref == 0) {
            continue;
        }

        sub        = &NIC_FAB->sub[ref - 1];
        sub_number = atomic_load(&sub->obj.number);
        if ((sub_number == 0) || (sub->type != type) ||
            (sub->target != number)) {
            continue;
        }
        if (sub_send(sub, sub_number, type, number) == -EAGAIN) {
            backlog_add(NIC_FIND(NIC_CHAN, nic_chan, sub->chan), sub,
                        sub_number, type, number);
        }
    }
}
