/* SPDX-License-Identifier: BSD-3-Clause */

/* Locks between processes that may die or be stopped anywhere, and waiting
 * until nobody uses an object any more. */

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nic.h"

#define LOCK_SPINS    200
#define LOCK_SLICE    2000000ll    /* look at the holder this often */
#define LOCK_LIMIT    1000000000ll /* then it counts as stopped */
#define QUIESCE_LIMIT 3000000000ll

int64_t nic_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

int nic_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns)
{
    struct timespec ts = {
        .tv_sec  = ns / 1000000000ll,
        .tv_nsec = ns % 1000000000ll
    };

    return syscall(SYS_futex, word, FUTEX_WAIT, value, &ts, NULL, 0);
}

void nic_futex_wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}

/* The lock is held by `seen`: takes it over if the holder is dead. */
static bool lock_inherit(struct nic_lock *lock, uint32_t seen)
{
    if (nic_proc_alive(seen & ~NIC_LOCK_WAITERS)) {
        return false;
    }

    return atomic_compare_exchange_strong(&lock->word, &seen,
                                          nic_self.id | NIC_LOCK_WAITERS);
}

enum nic_locked nic_lock_take(struct nic_lock *lock)
{
    int64_t deadline = 0, now;
    uint32_t seen;
    int i;

    for (i = 0; i < LOCK_SPINS; ++i) {
        seen = 0;
        if (atomic_compare_exchange_weak(&lock->word, &seen, nic_self.id)) {
            return NIC_LOCKED;
        }
        __builtin_ia32_pause();
    }

    for (;;) {
        seen = atomic_load(&lock->word);
        if (seen == 0) {
            /* others may sleep: whoever slept keeps the flag up */
            if (atomic_compare_exchange_strong(
                        &lock->word, &seen, nic_self.id | NIC_LOCK_WAITERS)) {
                return NIC_LOCKED;
            }
            continue;
        }

        if (!(seen & NIC_LOCK_WAITERS)) {
            if (!atomic_compare_exchange_strong(&lock->word, &seen,
                                                seen | NIC_LOCK_WAITERS)) {
                continue;
            }
            seen |= NIC_LOCK_WAITERS;
        }

        now = nic_now();
        if (deadline == 0) {
            deadline = now + LOCK_LIMIT;
        } else if (lock_inherit(lock, seen)) {
            nic_stat_add(NIC_STAT_RECOVERED, 1);
            return NIC_LOCKED_DEAD;
        } else if (now > deadline) {
            return NIC_LOCK_TIMEOUT;
        }

        nic_futex_wait(&lock->word, seen, LOCK_SLICE);
    }
}

void nic_lock_drop(struct nic_lock *lock)
{
    uint32_t seen = atomic_exchange(&lock->word, 0);

    if (seen & NIC_LOCK_WAITERS) {
        nic_futex_wake(&lock->word, 1);
    }
}

struct nic_exec *nic_exec_enter(void)
{
    struct nic_proc *proc = nic_self.proc;
    static __thread unsigned hint;
    uint32_t none, used;
    unsigned i;

    for (i = hint;; i = (i + 1) % NIC_EXECS) {
        none = 0;
        if (atomic_compare_exchange_strong(&proc->exec[i].claim, &none, 1)) {
            break;
        }
        if ((i + 1) % NIC_EXECS == hint) {
            sched_yield();
        }
    }

    hint = i;
    used = atomic_load_explicit(&proc->nexec, memory_order_relaxed);
    while ((used <= i) &&
           !atomic_compare_exchange_weak(&proc->nexec, &used, i + 1)) {
    }
    return &proc->exec[i];
}

void nic_exec_leave(struct nic_exec *x)
{
    atomic_store_explicit(&x->claim, 0, memory_order_release);
}

/* Both before anything is read of the QP or the keys. */
void nic_exec_use(struct nic_exec *x, uint32_t qpn)
{
    atomic_store(&x->qp, qpn);
}

void nic_exec_use_keys(struct nic_exec *x, uint64_t keys)
{
    atomic_store(&x->keys, keys);
}

void nic_exec_let_go(struct nic_exec *x)
{
    uint32_t seq = atomic_load_explicit(&x->seq, memory_order_relaxed);

    atomic_store_explicit(&x->keys, 0, memory_order_release);
    atomic_store_explicit(&x->qp, 0, memory_order_release);
    atomic_store_explicit(&x->seq, seq + 1, memory_order_release);
}

static bool exec_uses(const struct nic_exec *x, uint32_t qpn, uint64_t keys)
{
    return ((qpn != 0) && (atomic_load(&x->qp) == qpn)) ||
           ((atomic_load(&x->keys) & keys) != 0);
}

/* Waits until x has let go of what it used at the call. */
static bool exec_wait(const struct nic_proc *proc, const struct nic_exec *x,
                      uint32_t qpn, uint64_t keys, int64_t deadline)
{
    uint32_t seq = atomic_load(&x->seq);
    uint32_t id  = atomic_load(&proc->id);
    int turn     = 0;

    while (exec_uses(x, qpn, keys) && (atomic_load(&x->seq) == seq)) {
        if (++turn % 64 != 0) {
            __builtin_ia32_pause();
            continue;
        }
        if ((turn % 4096 == 0) && !nic_proc_alive(id)) {
            return true;
        }
        if (nic_now() > deadline) {
            return false;
        }
        sched_yield();
    }

    return true;
}

static bool quiesce(uint32_t qpn, uint64_t keys)
{
    uint32_t n       = atomic_load(&NIC_FAB->hdr.nprocs), i, k;
    int64_t deadline = 0;
    bool done        = true;

    atomic_thread_fence(memory_order_seq_cst);
    for (i = 0; i < n; ++i) {
        struct nic_proc *proc = &NIC_FAB->proc[i];

        if (atomic_load(&proc->id) == 0) {
            continue;
        }
        for (k = 0; k < atomic_load(&proc->nexec); ++k) {
            if (!exec_uses(&proc->exec[k], qpn, keys)) {
                continue;
            }
            if (deadline == 0) {
                deadline = nic_now() + QUIESCE_LIMIT;
            }
            done &= exec_wait(proc, &proc->exec[k], qpn, keys, deadline);
        }
    }

    return done;
}

/* Returns false when a stopped process still may be inside. */
bool nic_quiesce_qp(uint32_t qpn)
{
    return quiesce(qpn, 0);
}

bool nic_quiesce_key(uint32_t index)
{
    return quiesce(0, 1ull << (index % 64));
}
