/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Queues whose software does not ring by call: libmlx5, and whoever writes
 * doorbell records himself. One thread a process looks at the records; it
 * exists while there is such a queue.
 *
 * Verbs queues are watched as soon as their QP can do something. A DevX queue
 * is too, unless the software of its device context has rung by call before.
 * The first call for a queue ends the watching.
 *
 * A main program that polls its CQ leaves no core free for somebody who spins
 * as well: the thread sleeps, a little when something moved just now, longer
 * and longer after that.
 */

#include <endian.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "nic.h"

#define WATCH_SLEEP_MIN  25000ll
#define WATCH_SLEEP_MAX  1000000ll
#define WATCH_GROWTH     8           /* sleeps this part of the time idle */
#define WATCH_LINGER     200000000ll /* without queues, before it ends */

#define WATCH_SLICE      100000ull   /* the shortest there is */

#define WATCH_WORDS      ((1u << NIC_LOG_QPS) / 64)

_Static_assert((NIC_LOG_QPS == NIC_LOG_CQS) && (NIC_LOG_QPS == NIC_LOG_RMPS),
               "one size of bitmap");

/* By slot; set by whoever makes a queue, cleared before the slot is free */
struct watch_set {
    _Atomic uint64_t bits[WATCH_WORDS];
    _Atomic uint32_t words;      /* those ever used */
};

static struct {
    struct watch_set qp, rmp, cq;
    _Atomic uint32_t num;        /* bits set in all of them */
    _Atomic uint32_t seq;        /* +1: look now */
    _Atomic uint32_t on;         /* the thread is there */
} watch;

static struct watch_set *set_of(enum nic_kind kind)
{
    return (kind == NIC_QP) ? &watch.qp :
           (kind == NIC_CQ) ? &watch.cq : &watch.rmp;
}

static void set_add(enum nic_kind kind, const struct nic_obj *obj)
{
    struct watch_set *set = set_of(kind);
    uint32_t slot         = nic_obj_index(kind, obj);
    uint32_t words        = atomic_load(&set->words);
    uint64_t bit          = 1ull << slot % 64;

    while ((words <= slot / 64) &&
           !atomic_compare_exchange_weak(&set->words, &words, slot / 64 + 1)) {
    }
    if (!(atomic_fetch_or(&set->bits[slot / 64], bit) & bit)) {
        atomic_fetch_add(&watch.num, 1);
    }
}

void nic_watch_forget(enum nic_kind kind, const struct nic_obj *obj)
{
    struct watch_set *set = set_of(kind);
    uint32_t slot         = nic_obj_index(kind, obj);
    uint64_t bit          = 1ull << slot % 64;

    if ((atomic_load_explicit(&set->bits[slot / 64], memory_order_relaxed) &
         bit) &&
        (atomic_fetch_and(&set->bits[slot / 64], ~bit) & bit)) {
        atomic_fetch_sub(&watch.num, 1);
    }
}

/* What is to be done about a QP? 1: its send queue, 2: receives that were
 * posted to be flushed, in the error state only. Nothing of it is read after
 * whoever destroys it has waited for this (nic_quiesce_qp). */
enum { LOOK_SQ = 1, LOOK_RQ = 2 };

static unsigned look_qp_work(struct nic_exec *x, struct nic_qp *qp,
                             uint32_t number)
{
    uint32_t state, ci;
    unsigned work = 0;

    nic_exec_use(x, number);
    if (atomic_load(&qp->obj.number) != number) {
        goto out; /* gone, or going */
    }
    state = atomic_load(&qp->state);
    if ((state != VHCA_QP_RTS) && (state != VHCA_QP_ERR)) {
        goto out;
    }

    ci = atomic_load(&qp->ci);
    if (qp->has_sq &&
        ((uint16_t)(be32toh(atomic_load((const _Atomic uint32_t*)
                                        nic_mem_at(&qp->db, 4))) - ci) != 0) &&
        ((state == VHCA_QP_ERR) ||
         (atomic_load(&qp->stall) == NIC_STALL_NONE))) {
        work |= LOOK_SQ;
    }
    if ((state == VHCA_QP_ERR) && (qp->attr.rq != NULL)) {
        work |= LOOK_RQ;
    }

out:
    nic_exec_let_go(x);
    return work;
}

static bool look_qp(struct nic_exec *x, struct nic_qp *qp)
{
    uint32_t number = atomic_load(&qp->obj.number), ci;
    unsigned work   = (number != 0) ? look_qp_work(x, qp, number) : 0;
    bool moved      = false;
    struct nic_rmp *rq;

    if (work & LOOK_SQ) {
        ci = atomic_load(&qp->ci);
        nic_stat_add(NIC_STAT_WATCH_SQ, 1);
        nic_sq_run(x, qp);
        moved = atomic_load(&qp->ci) != ci;
    }
    if (work & LOOK_RQ) {
        rq = NIC_FIND(NIC_RMP, nic_rmp, qp->rq);
        if ((rq != NULL) && nic_rmp_posted(rq)) {
            nic_qp_flush_rq(qp);
            moved = true;
        }
    }
    return moved;
}

static bool look_rmp(struct nic_exec *x, struct nic_rmp *rmp)
{
    uint32_t number = atomic_load(&rmp->obj.number);

    if ((number == 0) || (atomic_load(&rmp->nstalled) == 0) ||
        !nic_rmp_posted(rmp)) {
        return false;
    }

    nic_stat_add(NIC_STAT_WATCH_RQ, 1);
    nic_rmp_refilled(number, x);
    return true;
}

static bool look_cq(struct nic_cq *cq)
{
    uint32_t number = atomic_load(&cq->obj.number);

    return (number != 0) && nic_cq_look(cq, number);
}

static bool look_at(struct nic_exec *x, enum nic_kind kind, uint32_t slot)
{
    switch (kind) {
    case NIC_QP:
        return look_qp(x, &NIC_FAB->qp[slot]);
    case NIC_RMP:
        return look_rmp(x, &NIC_FAB->rmp[slot]);
    default:
        return look_cq(&NIC_FAB->cq[slot]);
    }
}

static bool look_at_all(struct nic_exec *x)
{
    static const enum nic_kind kinds[] = { NIC_QP, NIC_RMP, NIC_CQ };
    bool moved = false;
    struct watch_set *set;
    uint32_t words, i, k;
    uint64_t bits;

    for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); ++k) {
        set   = set_of(kinds[k]);
        words = atomic_load_explicit(&set->words, memory_order_relaxed);
        for (i = 0; i < words; ++i) {
            for (bits = atomic_load_explicit(&set->bits[i],
                                             memory_order_relaxed);
                 bits != 0; bits &= bits - 1) {
                moved |= look_at(x, kinds[k],
                                 i * 64 + __builtin_ctzll(bits));
            }
        }
    }

    return moved;
}

/* Between half of the time and one and a half: two processes that answer each
 * other would else fall into step, each looking just before the other's message
 * is there. */
static int64_t sleep_time(int64_t idle, uint32_t *random)
{
    int64_t wait = idle / WATCH_GROWTH;

    if (wait < WATCH_SLEEP_MIN) {
        wait = WATCH_SLEEP_MIN;
    } else if (wait > WATCH_SLEEP_MAX) {
        wait = WATCH_SLEEP_MAX;
    }

    *random = *random * 1664525u + 1013904223u;
    return wait / 2 + (wait * (*random >> 16) >> 16);
}

/* False: there is work again, left by somebody who saw the thread still on. */
static bool watch_ends(uint32_t seq)
{
    uint32_t off = 0;

    atomic_store(&watch.on, 0);
    return (atomic_load(&watch.seq) == seq) ||
           !atomic_compare_exchange_strong(&watch.on, &off, 1);
}

/* Mostly asleep, and wanted at once when it wakes: by a short time slice the
 * scheduler lets it go before a program that polls (Linux 6.12; older ones do
 * not look at it). Timers are exact, or each sleep would be 50 us longer. */
static void watch_schedule(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t  nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr;

    prctl(PR_SET_NAME, "vhca-watch", 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    if ((syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) == 0) &&
        (attr.policy == SCHED_OTHER)) {
        attr.runtime = WATCH_SLICE;
        syscall(SYS_sched_setattr, 0, &attr, 0);
    }
}

static void *watch_main(void *arg)
{
    int64_t moved_at = nic_now(), queues_at = moved_at, now;
    uint32_t random  = (uint32_t)moved_at;
    struct nic_exec *x;
    uint32_t seq;
    bool moved;

    watch_schedule();
    for (;;) {
        seq   = atomic_load(&watch.seq);
        x     = nic_exec_enter();
        moved = look_at_all(x);
        nic_exec_leave(x);
        now = nic_now();
        if (moved) {
            moved_at = now;
        }
        if (atomic_load(&watch.num) != 0) {
            queues_at = now;
        } else if ((now - queues_at > WATCH_LINGER) && watch_ends(seq)) {
            return arg;
        }

        nic_futex_wait(&watch.seq, seq, sleep_time(now - moved_at, &random));
    }
}

static void watch_start(void)
{
    uint32_t off = 0;
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_t thread;

    atomic_fetch_add(&watch.seq, 1);
    if (!atomic_compare_exchange_strong(&watch.on, &off, 1)) {
        nic_futex_wake(&watch.seq, 1);
        return;
    }

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, watch_main, NULL) != 0) {
        fprintf(stderr, "vhca: no thread to watch doorbells: %s\n",
                strerror(errno));
        atomic_store(&watch.on, 0);
    } else {
        vhca_stat_add("watch.threads", 1);
    }
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* The QP can do something from here on: its queues are watched. */
void nic_watch_qp(struct nic_qp *qp)
{
    struct nic_owner *owner = NIC_FIND(NIC_OWNER, nic_owner, qp->attr.owner);
    struct nic_rmp *rq      = NIC_FIND(NIC_RMP, nic_rmp, qp->rq);
    struct nic_cq *snd      = NIC_FIND(NIC_CQ, nic_cq, qp->attr.cqn_snd);
    struct nic_cq *rcv      = NIC_FIND(NIC_CQ, nic_cq, qp->attr.cqn_rcv);

    if (!qp->attr.verbs && ((owner == NULL) || atomic_load(&owner->by_call))) {
        return;
    }

    if (!atomic_load(&qp->by_call)) {
        set_add(NIC_QP, &qp->obj);
    }
    if ((rq != NULL) && !atomic_load(&rq->by_call)) {
        set_add(NIC_RMP, &rq->obj);
    }
    if ((snd != NULL) && !atomic_load(&snd->by_call)) {
        set_add(NIC_CQ, &snd->obj);
    }
    if ((rcv != NULL) && !atomic_load(&rcv->by_call)) {
        set_add(NIC_CQ, &rcv->obj);
    }
    if (atomic_load(&watch.num) != 0) {
        watch_start();
    }
}

/* The queue was rung by call, for the first time. */
void nic_watch_called(enum nic_kind kind, struct nic_obj *obj,
                      _Atomic uint32_t *by_call)
{
    struct nic_owner *owner = NIC_FIND(NIC_OWNER, nic_owner, obj->owner);

    atomic_store(by_call, 1);
    if (owner != NULL) {
        atomic_store(&owner->by_call, 1);
    }
    nic_watch_forget(kind, obj);
}

/* The thread stayed with the parent, whose the queues are. */
void nic_watch_fork_child(void)
{
    memset(&watch.qp, 0, sizeof(watch.qp));
    memset(&watch.rmp, 0, sizeof(watch.rmp));
    memset(&watch.cq, 0, sizeof(watch.cq));
    atomic_store(&watch.num, 0);
    atomic_store(&watch.on, 0);
}
