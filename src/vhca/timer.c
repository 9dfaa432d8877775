/* SPDX-License-Identifier: BSD-3-Clause */

/* What happens later: one thread a process, which exists while a send queue of
 * the process waits for something, or an event did not fit. */

#include <signal.h>

#include "nic.h"

#define TIMER_TICK   20000000ll   /* the dead are noticed this fast */
#define TIMER_LINGER 200000000ll  /* without work, before it ends */
#define BACKLOG_TICK 1000000ll

static _Atomic uint64_t *word_of(const struct nic_qp *qp,
                                 struct nic_proc *proc, uint64_t *bit_p)
{
    uint32_t slot = nic_obj_index(NIC_QP, &qp->obj);

    *bit_p = 1ull << slot % 64;
    return &proc->stalled[slot / 64];
}

static void timer_wake(struct nic_proc *proc)
{
    atomic_fetch_add(&proc->timer_seq, 1);
    nic_futex_wake(&proc->timer_seq, 1);
}

/* One queue. Returns when it wants to be looked at again. */
static int64_t timer_visit(struct nic_exec *x, struct nic_qp *qp, int64_t now)
{
    uint32_t run, number = atomic_load(&qp->obj.number);
    int64_t next;
    _Atomic uint64_t *word;
    uint64_t bit;

    if ((number == 0) || (atomic_load(&qp->obj.claim) != nic_self.id)) {
        goto out_clear;
    }

    if (atomic_load(&qp->stall) == NIC_STALL_NONE) {
        run = atomic_load(&qp->run) & ~NIC_RUN_KICK;
        if (run == 0) {
            goto out_clear;
        }
        if ((run != nic_self.id) && !nic_proc_alive(run)) {
            nic_sq_run(x, qp);
        }
        return now + TIMER_TICK;
    }

    next = atomic_load(&qp->stall_next);
    if (now >= next) {
        nic_sq_resume(x, qp);
        next = (atomic_load(&qp->stall) == NIC_STALL_NONE) ? now :
               atomic_load(&qp->stall_next);
    }
    return next;

out_clear:
    word = word_of(qp, nic_self.proc, &bit);
    atomic_fetch_and(word, ~bit);
    /* it may have stalled between the look and this */
    if ((atomic_load(&qp->obj.claim) == nic_self.id) &&
        ((atomic_load(&qp->stall) != NIC_STALL_NONE) ||
         (atomic_load(&qp->run) != 0))) {
        atomic_fetch_or(word, bit);
        return now;
    }
    return NIC_NEVER;
}

/* Returns when the next queue is due, NIC_NEVER when none waits. */
static int64_t timer_scan(struct nic_exec *x)
{
    struct nic_proc *proc = nic_self.proc;
    int64_t now = nic_now(), first = NIC_NEVER, next;
    uint32_t high = atomic_load(&NIC_FAB->hdr.table[NIC_QP].high), i;
    uint64_t bits;

    for (i = 0; i < (high + 63) / 64; ++i) {
        for (bits = atomic_load(&proc->stalled[i]); bits != 0;
             bits &= bits - 1) {
            next  = timer_visit(x, &NIC_FAB->qp[i * 64 +
                                                __builtin_ctzll(bits)], now);
            first = (next < first) ? next : first;
        }
    }

    return first;
}

static void *timer_main(void *arg)
{
    struct nic_proc *proc = nic_self.proc;
    int64_t idle_since    = nic_now(), now, next, wait;
    struct nic_exec *x;
    uint32_t seq, off;
    bool backlog;

    for (;;) {
        seq     = atomic_load(&proc->timer_seq);
        x       = nic_exec_enter();
        next    = timer_scan(x);
        nic_exec_leave(x);
        backlog = nic_event_backlog_run();
        now     = nic_now();
        if ((next == NIC_NEVER) && !backlog) {
            if (now - idle_since > TIMER_LINGER) {
                atomic_store(&proc->timer_on, 0);
                /* somebody may have seen it on, and left us work */
                off = 0;
                if ((atomic_load(&proc->timer_seq) == seq) ||
                    !atomic_compare_exchange_strong(&proc->timer_on, &off,
                                                    1)) {
                    return arg;
                }
            }
            wait = TIMER_TICK;
        } else {
            idle_since = now;
            wait       = backlog ? BACKLOG_TICK : TIMER_TICK;
            if (next - now < wait) {
                wait = next - now;
            }
        }

        if (wait > 0) {
            nic_futex_wait(&proc->timer_seq, seq, wait);
        }
    }
}

/* The thread is there, or is made: only a process itself can do that. */
void nic_timer_poke(void)
{
    struct nic_proc *proc = nic_self.proc;
    uint32_t off          = 0;
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_t thread;

    atomic_fetch_add(&proc->timer_seq, 1);
    if (!atomic_compare_exchange_strong(&proc->timer_on, &off, 1)) {
        nic_futex_wake(&proc->timer_seq, 1);
        return;
    }

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, timer_main, NULL) != 0) {
        atomic_store(&proc->timer_on, 0);
    }
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* qp waits: its process's timer looks after it. */
void nic_timer_stall(struct nic_qp *qp)
{
    struct nic_proc *proc = nic_proc_of(atomic_load(&qp->obj.claim));
    _Atomic uint64_t *word;
    uint64_t bit;

    if (proc == NULL) {
        return;
    }

    word = word_of(qp, proc, &bit);
    atomic_fetch_or(word, bit);
    if (proc == nic_self.proc) {
        nic_timer_poke();
    } else {
        timer_wake(proc);
    }
}

bool nic_timer_serves(const struct nic_qp *qp)
{
    struct nic_proc *proc = nic_proc_of(atomic_load(&qp->obj.claim));

    return (proc != NULL) && (atomic_load(&proc->timer_on) != 0);
}
