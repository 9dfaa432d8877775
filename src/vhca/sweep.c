/* SPDX-License-Identifier: BSD-3-Clause */

/* Who is alive, and burying who is not: nothing in a process needs to run when
 * it ends, the next one that attaches or meets it as a peer cleans up. */

#include <sys/mman.h>
#include <sys/syscall.h>

#include "nic.h"

struct nic_proc *nic_proc_of(uint32_t id)
{
    struct nic_proc *proc = &NIC_FAB->proc[id % NIC_PROCS];

    return ((id != 0) && (atomic_load(&proc->id) == id)) ? proc : NULL;
}

/* Cheap while the thread that attached lives: the kernel itself marks the
 * robust mutex when that thread ends. */
bool nic_proc_alive(uint32_t id)
{
    struct nic_proc *proc = nic_proc_of(id);
    uint64_t who;

    if (proc == NULL) {
        return false;
    }

    if (nic_life_held(proc)) {
        return true;
    }

    /* entered by this process under another id: before exec() */
    who = atomic_load(&proc->who);
    if ((nic_self.proc != NULL) && (id != nic_self.id) &&
        (who == atomic_load(&nic_self.proc->who))) {
        return false;
    }

    return nic_who_alive(who) && (atomic_load(&proc->id) == id);
}

/* Its QPs: hidden, then freed once nobody executes one or answers for it.
 * False: somebody who is stopped may be inside, the rest has to wait for
 * another sweep. */
static bool sweep_qps(uint32_t id)
{
    uint32_t high = atomic_load(&NIC_FAB->hdr.table[NIC_QP].high), i, number;
    bool done     = true;

    for (i = 0; i < high; ++i) {
        struct nic_qp *qp = &NIC_FAB->qp[i];

        if (atomic_load(&qp->obj.claim) != id) {
            continue;
        }
        number = atomic_load(&qp->obj.number);
        nic_obj_hide(&qp->obj);
        if (((number != 0) && !nic_quiesce_qp(number)) || !nic_sq_seize(qp)) {
            done = false;
            continue;
        }
        nic_obj_free(NIC_QP, &qp->obj);
    }

    return done;
}

static void sweep_hide(enum nic_kind kind, uint32_t id)
{
    uint32_t high = atomic_load(&NIC_FAB->hdr.table[kind].high), i;

    for (i = 0; i < high; ++i) {
        struct nic_obj *obj = nic_obj_slot(kind, i);

        if (atomic_load(&obj->claim) == id) {
            nic_obj_hide(obj);
        }
    }
}

static void sweep_free(enum nic_kind kind, uint32_t id)
{
    uint32_t high = atomic_load(&NIC_FAB->hdr.table[kind].high), i;

    for (i = 0; i < high; ++i) {
        struct nic_obj *obj = nic_obj_slot(kind, i);

        if (atomic_load(&obj->claim) != id) {
            continue;
        }
        if (kind == NIC_CHAN) {
            nic_chan_release((struct nic_chan*)(void*)obj);
        }
        nic_obj_free(kind, obj);
    }
}

/* A CQ or RMP may be locked by somebody alive who is about to write into its
 * pages: wait for that. */
static bool sweep_lock(struct nic_lock *lock)
{
    if (nic_lock_take(lock) == NIC_LOCK_TIMEOUT) {
        return false;
    }
    nic_lock_drop(lock);
    return true;
}

static bool sweep_locks(uint32_t id)
{
    struct nic_header *hdr = &NIC_FAB->hdr;
    bool done              = true;
    uint32_t i;

    for (i = 0; i < atomic_load(&hdr->table[NIC_CQ].high); ++i) {
        if (atomic_load(&NIC_FAB->cq[i].obj.claim) == id) {
            done &= sweep_lock(&NIC_FAB->cq[i].lock);
        }
    }
    for (i = 0; i < atomic_load(&hdr->table[NIC_RMP].high); ++i) {
        if (atomic_load(&NIC_FAB->rmp[i].obj.claim) == id) {
            done &= sweep_lock(&NIC_FAB->rmp[i].lock);
        }
    }
    return done;
}

static void sweep_pages(uint32_t id)
{
    uint32_t high = atomic_load(&NIC_FAB->hdr.pool_high), i, n;

    for (i = 1; i < high; i += n) {
        n = 1;
        if (atomic_load(&NIC_FAB->page_owner[i]) != id) {
            continue;
        }
        while ((i + n < high) &&
               (atomic_load(&NIC_FAB->page_owner[i + n]) == id)) {
            ++n;
        }
        syscall(SYS_madvise, NIC_FAB->pool[i], (size_t)n * NIC_PAGE,
                MADV_REMOVE);
        for (uint32_t k = 0; k < n; ++k) {
            atomic_store(&NIC_FAB->page_owner[i + k], 0);
        }
    }
}

static void sweep_counters(struct nic_proc *proc)
{
    struct nic_header *hdr = &NIC_FAB->hdr;
    unsigned i;

    for (i = 0; i < NIC_STATS; ++i) {
        atomic_fetch_add(&hdr->past[i], atomic_exchange(&proc->stat[i], 0));
    }
    for (i = 0; i < NIC_GAUGES; ++i) {
        atomic_fetch_sub(&hdr->gauge[i].now, atomic_exchange(&proc->gauge[i],
                                                             0));
    }
}

static bool sweep_now(struct nic_proc *proc, uint32_t id)
{
    static const enum nic_kind kinds[] = {
        NIC_RMP, NIC_CQ, NIC_MKEY, NIC_PD, NIC_SUB, NIC_CHAN, NIC_OWNER
    };
    const unsigned n = sizeof(kinds) / sizeof(kinds[0]);
    unsigned i;

    for (i = 0; i < n; ++i) {
        sweep_hide(kinds[i], id);
    }
    if (!sweep_qps(id) || !sweep_locks(id)) {
        return false;
    }
    /* before the pages: an object that is gone names no page any more */
    for (i = 0; i < n; ++i) {
        sweep_free(kinds[i], id);
    }
    /* its keys are gone, and with them what others had mapped of them */
    atomic_fetch_add(&NIC_FAB->hdr.share_epoch, 1);
    sweep_pages(id);
    sweep_counters(proc);
    for (i = 0; i < NIC_EXECS; ++i) {
        atomic_store(&proc->exec[i].qp, 0);
        atomic_store(&proc->exec[i].keys, 0);
        atomic_store(&proc->exec[i].claim, 0);
    }
    for (i = 0; i < sizeof(proc->stalled) / sizeof(proc->stalled[0]); ++i) {
        atomic_store(&proc->stalled[i], 0);
    }
    atomic_store(&proc->nexec, 0);
    atomic_store(&proc->timer_on, 0);
    return true;
}

void nic_proc_sweep(uint32_t id)
{
    struct nic_proc *proc = nic_proc_of(id);
    uint32_t sweeper;
    uint64_t who;

    if ((proc == NULL) || nic_proc_alive(id)) {
        return;
    }

    sweeper = atomic_load(&proc->sweeper);
    if ((sweeper != 0) && nic_proc_alive(sweeper)) {
        return;
    }
    if (!atomic_compare_exchange_strong(&proc->sweeper, &sweeper,
                                        nic_self.id)) {
        return;
    }

    /* somebody may have buried it since the look at it */
    if (atomic_load(&proc->id) == id) {
        who = atomic_load(&proc->who);
        if (sweep_now(proc, id)) {
            atomic_store(&proc->id, 0);
            atomic_compare_exchange_strong(&proc->who, &who, 0);
        }
    }
    atomic_store(&proc->sweeper, 0);
}

void nic_sweep_all(void)
{
    uint32_t n = atomic_load(&NIC_FAB->hdr.nprocs), i, id;
    uint64_t who;

    for (i = 0; i < n; ++i) {
        id  = atomic_load(&NIC_FAB->proc[i].id);
        who = atomic_load(&NIC_FAB->proc[i].who);
        if ((id == 0) && (who != 0) && !nic_who_alive(who)) {
            /* died between claiming the slot and entering */
            atomic_compare_exchange_strong(&NIC_FAB->proc[i].who, &who, 0);
        } else if ((id != 0) && (id != nic_self.id)) {
            nic_proc_sweep(id);
        }
    }
}
