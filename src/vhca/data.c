/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Moving bytes between two processes, one of which is the caller. What is
 * mapped here for good (share.c) is copied like any memory. User memory may be
 * unmapped, read-only or gone at any moment: there the kernel copies, and an
 * address it cannot use is an answer, not a signal.
 */

#include <sys/syscall.h>

#include "nic.h"

#define MOVE_CHUNK (4u << 20)  /* then look whether the keys still stand */
#define MOVE_TAIL  8u          /* what is visible last */

enum where {
    HERE, AWAY, ANYWHERE
};

static long vm_call(long number, uint32_t pid, const struct iovec *mine,
                    unsigned nmine, const struct iovec *theirs,
                    unsigned ntheirs)
{
    long ret;

    nic_stat_add(NIC_STAT_COPY_CALLS, 1);
    do {
        ret = syscall(number, pid, mine, (unsigned long)nmine, theirs,
                      (unsigned long)ntheirs, 0ul);
    } while ((ret < 0) && (errno == EINTR));
    return ret;
}

static uint32_t pid_of(uint32_t id)
{
    struct nic_proc *proc = nic_proc_of(id);

    return (proc == NULL) ? 0 : atomic_load(&proc->who) >> 40;
}

static unsigned side_find(const struct nic_side *side, uint64_t *off)
{
    unsigned i;

    for (i = 0; (i < side->n) && (*off >= side->iov[i].iov_len); ++i) {
        *off -= side->iov[i].iov_len;
    }
    return i;
}

/* The pieces of a side from off on, at most len bytes of them, as far as they
 * are where they are wanted. Those that are here are given as they are here. */
static unsigned side_slice(const struct nic_side *side, uint64_t off,
                           uint64_t len, enum where where, struct iovec *out)
{
    unsigned i = side_find(side, &off), n = 0;
    uint64_t part;

    for (; (i < side->n) && (len > 0); ++i, off = 0) {
        if ((where != ANYWHERE) &&
            ((side->here[i] != NULL) != (where == HERE))) {
            break;
        }
        part = side->iov[i].iov_len - off;
        if (part > len) {
            part = len;
        }
        out[n].iov_base  = (char*)((side->here[i] != NULL) ?
                                   side->here[i] : side->iov[i].iov_base) + off;
        out[n++].iov_len = part;
        len -= part;
    }

    return n;
}

/* Which side does not take the byte at off? Only the source is asked: reading
 * changes nothing. */
static enum nic_moved who_faults(const struct nic_side *src, uint64_t off)
{
    uint64_t in = off;
    unsigned i  = side_find(src, &in);
    struct iovec from, to;
    char byte;

    to   = (struct iovec) { &byte, 1 };
    from = (struct iovec) { (char*)src->iov[i].iov_base + in, 1 };
    if ((src->here[i] != NULL) ||
        (vm_call(SYS_process_vm_readv, pid_of(src->proc), &to, 1, &from, 1) ==
         1)) {
        return NIC_MOVED_DST_FAULT;
    }
    return (errno == ESRCH) ? NIC_MOVED_PEER_GONE : NIC_MOVED_SRC_FAULT;
}

static enum nic_moved moved_error(const struct nic_side *src, uint64_t off,
                                  int err)
{
    static _Atomic bool told;

    switch (err) {
    case EFAULT:
        return who_faults(src, off);
    case ESRCH:
        return NIC_MOVED_PEER_GONE;
    default:
        if (!atomic_exchange(&told, true)) {
            fprintf(stderr,
                    "vhca: no access to the memory of a peer: %s\n",
                    strerror(err));
        }
        return NIC_MOVED_PEER_GONE;
    }
}

static bool keys_stand(const struct nic_key_use *keys, unsigned nkeys)
{
    unsigned i;

    for (i = 0; i < nkeys; ++i) {
        if (atomic_load(&keys[i].key->obj.number) != keys[i].number) {
            return false;
        }
    }
    return true;
}

/* Whoever polls the last bytes finds the others there: a NIC writes in order,
 * a long copy need not. Both sides may be the same memory. */
static void copy_here(void *to, const void *from, uint64_t len)
{
    if (__builtin_expect(len == MOVE_TAIL, 1)) {
        memcpy(to, from, MOVE_TAIL);
        return;
    }
    if (len > MOVE_TAIL) {
        uint64_t last;

        len -= MOVE_TAIL;
        memcpy(&last, (const char*)from + len, sizeof(last));
        memmove(to, from, len);
        atomic_thread_fence(memory_order_release);
        to   = (char*)to + len;
        memcpy(to, &last, sizeof(last));
        return;
    }
    memmove(to, from, len);
}

/* Both sides are here at this offset: as far as that goes. 0: they are not. */
static uint64_t move_here(const struct nic_side *dst,
                          const struct nic_side *src, uint64_t off,
                          uint64_t len)
{
    uint64_t to    = off, from = off;
    unsigned d     = side_find(dst, &to), s = side_find(src, &from);

    if ((dst->here[d] == NULL) || (src->here[s] == NULL)) {
        return 0;
    }

    if (len > dst->iov[d].iov_len - to) {
        len = dst->iov[d].iov_len - to;
    }
    if (len > src->iov[s].iov_len - from) {
        len = src->iov[s].iov_len - from;
    }
    copy_here((char*)dst->here[d] + to, (char*)src->here[s] + from, len);
    return len;
}

/* By the kernel. If the other side is here, then as memory of this process, so
 * that it does not matter what its owner has at that address by now. */
static long move_by_call(const struct nic_side *dst, const struct nic_side *src,
                         uint64_t off, uint64_t len)
{
    struct iovec mine[WQE_MAX_SGE], theirs[WQE_MAX_SGE];
    bool push                   = src->proc == nic_self.id;
    const struct nic_side *near = push ? src : dst;
    const struct nic_side *far  = push ? dst : src;
    uint64_t in                 = off;
    unsigned nmine, ntheirs;
    bool here;

    here = far->here[side_find(far, &in)] != NULL;
    /* A pid says little: another process may have got it. */
    if (!here && !nic_proc_alive(far->proc)) {
        errno = ESRCH;
        return -1;
    }

    ntheirs = side_slice(far, off, len, here ? HERE : AWAY, theirs);
    nmine   = side_slice(near, off, len, here ? AWAY : ANYWHERE, mine);
    return vm_call(push ? SYS_process_vm_writev : SYS_process_vm_readv,
                   pid_of(here ? nic_self.id : far->proc), mine, nmine, theirs,
                   ntheirs);
}

enum nic_moved nic_move(struct nic_side *dst, struct nic_side *src,
                        uint64_t len, const struct nic_key_use *keys,
                        unsigned nkeys)
{
    uint64_t off, part;
    long ret;

    for (off = 0; off < len; off += ret) {
        if ((off > 0) && !keys_stand(keys, nkeys)) {
            return NIC_MOVED_REVOKED;
        }
        part = (len - off < MOVE_CHUNK) ? len - off : MOVE_CHUNK;
        ret  = move_here(dst, src, off, part);
        if (ret > 0) {
            continue;
        }
        ret = move_by_call(dst, src, off, part);
        if (ret <= 0) {
            return moved_error(src, off, (ret < 0) ? errno : EFAULT);
        }
    }

    return NIC_MOVED;
}
