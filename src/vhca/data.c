/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Moving bytes between two processes, one of which is the caller. User memory
 * may be unmapped, read-only or gone at any moment: the kernel copies, and an
 * address it cannot use is an answer, not a signal. This is the one place that
 * would know a shorter way to memory which both processes can map.
 */

#include <sys/syscall.h>

#include "nic.h"

#define MOVE_CHUNK (4u << 20)  /* then look whether the keys still stand */

static long vm_call(long number, uint32_t pid, const struct iovec *mine,
                    unsigned nmine, const struct iovec *theirs,
                    unsigned ntheirs)
{
    long ret;

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

/* The pieces of a side that hold bytes [off, off + len) */
static unsigned side_slice(const struct nic_side *side, uint64_t off,
                           uint64_t len, struct iovec *out)
{
    unsigned n = 0, i;
    uint64_t part;

    for (i = 0; (i < side->n) && (len > 0); ++i) {
        if (off >= side->iov[i].iov_len) {
            off -= side->iov[i].iov_len;
            continue;
        }
        part = side->iov[i].iov_len - off;
        if (part > len) {
            part = len;
        }
        out[n].iov_base  = (char*)side->iov[i].iov_base + off;
        out[n++].iov_len = part;
        len -= part;
        off  = 0;
    }

    return n;
}

/* Which side does not take the byte at off? Only the source is asked: reading
 * changes nothing. */
static enum nic_moved who_faults(const struct nic_side *src, uint64_t off)
{
    struct iovec from, to;
    char byte;

    to = (struct iovec) { &byte, 1 };
    if ((side_slice(src, off, 1, &from) == 1) &&
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

enum nic_moved nic_move(struct nic_side *dst, struct nic_side *src,
                        uint64_t len, const struct nic_key_use *keys,
                        unsigned nkeys)
{
    struct iovec to[WQE_MAX_SGE], from[WQE_MAX_SGE];
    bool push   = src->proc == nic_self.id;
    uint32_t id = push ? dst->proc : src->proc;
    unsigned nto, nfrom;
    uint64_t off, part;
    long ret;

    /* A pid says little: another process may have got it. */
    if (!nic_proc_alive(id)) {
        return NIC_MOVED_PEER_GONE;
    }

    for (off = 0; off < len; off += ret) {
        if ((off > 0) && !keys_stand(keys, nkeys)) {
            return NIC_MOVED_REVOKED;
        }
        part  = (len - off < MOVE_CHUNK) ? len - off : MOVE_CHUNK;
        nto   = side_slice(dst, off, part, to);
        nfrom = side_slice(src, off, part, from);
        ret   = push ? vm_call(SYS_process_vm_writev, pid_of(id), from, nfrom,
                               to, nto) :
                       vm_call(SYS_process_vm_readv, pid_of(id), to, nto, from,
                               nfrom);
        if (ret <= 0) {
            return moved_error(src, off, (ret < 0) ? errno : EFAULT);
        }
    }

    return NIC_MOVED;
}
