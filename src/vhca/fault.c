/* SPDX-License-Identifier: BSD-3-Clause */

/* Faults at work: which rule hits what the device is about to do. */

#include "fault.h"
#include "nic.h"

uint32_t nic_hooks;

/* VHCA_FAULT's, of this process alone */
static struct vhca_faults own_faults;

/* Before the fabric can be used: 0 or a negative errno. */
int nic_fault_load(void)
{
    const char *text = getenv("VHCA_FAULT");
    struct vhca_fault_rule rules[VHCA_FAULT_RULES];
    char why[400];
    unsigned num = 0;

    if (text == NULL) {
        text = "";
    }
    if (!vhca_fault_parse(text, rules, &num, why, sizeof(why))) {
        fprintf(stderr, "vhca: VHCA_FAULT, %s\n", why);
        return -EINVAL;
    }

    vhca_faults_set(&own_faults, text, rules, num);
    nic_hooks = (num == 0) ? nic_hooks & ~NIC_HOOK_FAULT :
                             nic_hooks | NIC_HOOK_FAULT;
    return 0;
}

/* What is asked: does a rule of this kind hit here? */
struct question {
    enum vhca_fault_kind kind;
    uint32_t             what;
    uint32_t             qpn[2];    /* either end of the link; device: a pid */
};

static bool concerns(const struct vhca_fault_rule *rule,
                     const struct question *q)
{
    if (rule->kind != q->kind) {
        return false;
    }

    switch (rule->kind) {
    case VHCA_FAULT_CMD:
        return rule->what == q->what;
    case VHCA_FAULT_WQE:
        return ((rule->what == q->what) || (rule->what == VHCA_FAULT_ANY)) &&
               ((rule->qpn == 0) || (rule->qpn == q->qpn[0]));
    case VHCA_FAULT_LINK:
        return (rule->qpn == 0) || (rule->qpn == q->qpn[0]) ||
               (rule->qpn == q->qpn[1]);
    case VHCA_FAULT_DEVICE:
        return (rule->qpn == 0) || (rule->qpn == q->qpn[0]);
    case VHCA_FAULT_MKEYS:
        return q->what >= rule->what;
    default:
        return true;
    }
}

/* Adds one and gives what was there; false if the rule was replaced. */
static bool count_up(_Atomic uint64_t *word, uint32_t seq, uint32_t *before_p)
{
    uint64_t seen = atomic_load(word);

    do {
        if (seen >> 32 != seq) {
            return false;
        }
        *before_p = seen;
        /* it stays at the top instead of beginning anew */
    } while (((uint32_t)seen != UINT32_MAX) &&
             !atomic_compare_exchange_weak(word, &seen, seen + 1));

    return true;
}

/* Each rule counts for itself; the first that hits decides. */
static bool table_hits(struct vhca_faults *faults, const struct question *q,
                       struct vhca_fault_rule *hit_p)
{
    uint32_t seq = atomic_load(&faults->seq), before, ignored, first;
    uint32_t num = atomic_load(&faults->num), i;
    struct vhca_fault_rule rule;
    bool hit = false;

    for (i = 0; (i < num) && (i < VHCA_FAULT_RULES) && !(seq & 1); ++i) {
        rule = faults->rule[i];
        atomic_thread_fence(memory_order_acquire);
        if ((atomic_load(&faults->seq) != seq)) {
            break;
        }
        first = (rule.nth == 0) ? 1 : rule.nth;
        if (!concerns(&rule, q) ||
            !count_up(&faults->seen[i], seq, &before) || hit ||
            (before + 1 < first) ||
            ((rule.count != VHCA_FAULT_ALL) &&
             (before + 1 - first >= rule.count))) {
            continue;
        }
        hit    = true;
        *hit_p = rule;
        count_up(&faults->hits[i], seq, &ignored);
    }

    return hit;
}

static bool ask(const struct question *q, struct vhca_fault_rule *hit_p)
{
    bool hit;

    if (NIC_FAB == NULL) {
        return false;
    }

    hit = (nic_hooks & NIC_HOOK_FAULT) && table_hits(&own_faults, q, hit_p);
    if (!hit && (atomic_load(&NIC_FAB->hdr.faults.num) != 0)) {
        hit = table_hits(&NIC_FAB->hdr.faults, q, hit_p);
    }
    if (hit) {
        nic_stat_add(NIC_STAT_FAULT_HITS, 1);
    }
    return hit;
}

static bool ask_verdict(const struct question *q, struct vhca_fw *fw)
{
    struct vhca_fault_rule rule;

    if (!ask(q, &rule)) {
        return false;
    }

    fw->status   = rule.status;
    fw->syndrome = rule.syndrome;
    return true;
}

static int ask_errno(enum vhca_fault_kind kind)
{
    const struct question q = { .kind = kind };
    struct vhca_fault_rule rule;

    return ask(&q, &rule) ? -(int)rule.err : 0;
}

bool vhca_fault_cmd(uint16_t opcode, struct vhca_fw *fw)
{
    const struct question q = { .kind = VHCA_FAULT_CMD, .what = opcode };

    return ask_verdict(&q, fw);
}

int vhca_fault_umem(void)
{
    return ask_errno(VHCA_FAULT_UMEM);
}

bool vhca_fault_mkey_umem(struct vhca_fw *fw)
{
    const struct question q = { .kind = VHCA_FAULT_MKEY_UMEM };

    return ask_verdict(&q, fw);
}

int vhca_fault_mkey_kernel(void)
{
    return ask_errno(VHCA_FAULT_MKEY_KERNEL);
}

bool nic_fault_mkeys(struct vhca_fw *fw)
{
    const struct question q = {
        .kind = VHCA_FAULT_MKEYS,
        .what = atomic_load(&nic_self.proc->gauge[NIC_GAUGE_MKEY])
    };

    return ask_verdict(&q, fw);
}

uint8_t nic_fault_wqe(const struct nic_qp *qp, uint8_t opcode)
{
    const struct question q = {
        .kind = VHCA_FAULT_WQE,
        .what = opcode,
        .qpn  = { atomic_load(&qp->obj.number), 0 }
    };
    struct vhca_fault_rule rule;

    return ask(&q, &rule) ? rule.syndrome : 0;
}

/* With each WQE: its process is the one that may lose its device. */
void nic_fault_device(const struct nic_qp *qp)
{
    uint32_t id             = atomic_load(&qp->obj.claim);
    struct nic_proc *proc   = nic_proc_of(id);
    const struct question q = {
        .kind = VHCA_FAULT_DEVICE,
        .qpn  = { (proc == NULL) ? 0 : atomic_load(&proc->who) >> 40, 0 }
    };
    struct vhca_fault_rule rule;

    if ((proc != NULL) && ask(&q, &rule)) {
        nic_device_event(NIC_FAB, nic_self.dir, id, rule.what);
    }
}

bool nic_fault_link(const struct nic_qp *qp)
{
    const struct question q = {
        .kind = VHCA_FAULT_LINK,
        .qpn  = { atomic_load(&qp->obj.number), qp->last.remote_qpn }
    };
    struct vhca_fault_rule rule;

    return ask(&q, &rule);
}
