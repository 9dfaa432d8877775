/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The NIC side's own header: the layout of the fabric, one sparse file on tmpfs
 * that every process of the fabric maps whole, and what the NIC's files call
 * from each other.
 *
 * Rules, because any process may be killed or stopped at any instruction:
 * - never two locks of the fabric at once, and every wait has an end;
 * - a lock names its holder, and whoever finds the holder dead inherits it;
 * - whoever takes an object away makes its number vanish first, then waits for
 *   those who announced (struct nic_exec) that they use it;
 * - commit order: data, CQE body, op_own, producer index, consumer index.
 */

#ifndef VHCA_NIC_H_
#define VHCA_NIC_H_

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fault.h"
#include "vhca.h"
#include "wqe.h"

#define NIC_MAGIC      0x0062616661636876ull /* "vhcafab" */
#define NIC_VERSION    3

#define NIC_PAGE       4096u
#define NIC_PROCS      1024u
#define NIC_LOG_OWNERS 12
#define NIC_LOG_PDS    14
#define NIC_LOG_MKEYS  18
#define NIC_LOG_CQS    16
#define NIC_LOG_RMPS   16
#define NIC_LOG_QPS    16
#define NIC_LOG_CHANS  13
#define NIC_LOG_SUBS   16
#define NIC_POOL_PAGES (3u << 20)    /* 12 GiB of queue memory at most */

#define NIC_EXECS      32            /* threads of a process in the engine */
#define NIC_OBJ_SUBS   8             /* subscriptions of one object */
#define NIC_STALLED    512           /* remembered waiters of a receive queue */
#define NIC_CELLS      512           /* named counters */
#define NIC_CELL_NAME  48

#define NIC_MAX_MSG    (1ull << 30)
#define NIC_LOG_MAX_RA 4             /* outstanding reads and atomics of a QP */

#define NIC_NEVER      INT64_MAX

/* ---- locks ---- */

/* Bits 0..29: the holder's process id (struct nic_proc), 31: somebody sleeps */
struct nic_lock {
    _Atomic uint32_t word;
};

#define NIC_LOCK_WAITERS 0x80000000u

enum nic_locked {
    NIC_LOCKED,
    NIC_LOCKED_DEAD,   /* the holder died inside: repair first */
    NIC_LOCK_TIMEOUT
};

/* ---- counters ---- */

enum nic_stat {
    NIC_STAT_WQE_NOP,
    NIC_STAT_WQE_RDMA_WRITE,
    NIC_STAT_WQE_RDMA_WRITE_IMM,
    NIC_STAT_WQE_RDMA_READ,
    NIC_STAT_WQE_SEND,
    NIC_STAT_WQE_SEND_IMM,
    NIC_STAT_WQE_ATOMIC,
    NIC_STAT_WQE_OTHER,
    NIC_STAT_INLINE_RDMA_WRITE,
    NIC_STAT_INLINE_SEND,
    NIC_STAT_BYTES_RDMA_WRITE,
    NIC_STAT_BYTES_RDMA_READ,
    NIC_STAT_BYTES_SEND,
    NIC_STAT_CQE_REQ,
    NIC_STAT_CQE_RESP,
    NIC_STAT_CQE_ERROR,
    NIC_STAT_RNR_STALLS,
    NIC_STAT_RETRY_STALLS,
    NIC_STAT_DOORBELL_SQ,
    NIC_STAT_DOORBELL_RQ,
    NIC_STAT_DOORBELL_ARM,
    NIC_STAT_WATCH_SQ,        /* found in a doorbell record, not by a call */
    NIC_STAT_WATCH_RQ,
    NIC_STAT_EVENT_SENT,
    NIC_STAT_EVENT_DEFERRED,
    NIC_STAT_RECOVERED,       /* locks and queues inherited from the dead */
    NIC_STAT_FAULT_HITS,
    NIC_STAT_COPY_CALLS,      /* bytes that the kernel copied: system calls */
    NIC_STAT_SYNDROME,        /* + syndrome */
    NIC_STATS = NIC_STAT_SYNDROME + 0x30
};

/* Names of the first ones, in the order of the enum */
#define NIC_STAT_NAMES \
    "wqe.nop", "wqe.rdma_write", "wqe.rdma_write_imm", "wqe.rdma_read", \
    "wqe.send", "wqe.send_imm", "wqe.atomic", "wqe.other", \
    "wqe_inline.rdma_write", "wqe_inline.send", "bytes.rdma_write", \
    "bytes.rdma_read", "bytes.send", "cqe.req", "cqe.resp", "cqe.error", \
    "rnr.stalls", "retry.stalls", "doorbell.sq", "doorbell.rq", \
    "doorbell.arm", "watch.sq", "watch.rq", "event.sent", "event.deferred", \
    "engine.recovered", "fault.hits", "copy.calls"

/* Gauges: how many there are now, the most there have been, and the most that
 * one process has had */
enum nic_gauge {
    NIC_GAUGE_PROC,
    NIC_GAUGE_CTX,
    NIC_GAUGE_PD,
    NIC_GAUGE_UMEM,
    NIC_GAUGE_UAR,
    NIC_GAUGE_MKEY,
    NIC_GAUGE_CQ,
    NIC_GAUGE_RMP,
    NIC_GAUGE_QP,
    NIC_GAUGE_MKEY_REMOTE,
    NIC_GAUGE_MKEY_LOCAL,
    NIC_GAUGE_MR_REMOTE,       /* keys over no umem */
    NIC_GAUGE_MR_LOCAL,
    NIC_GAUGES
};

#define NIC_GAUGE_NAMES \
    "proc", "ctx", "pd", "umem", "uar", "mkey", "cq", "rmp", "qp", \
    "mkey_remote", "mkey_local", "mr_remote", "mr_local"

struct nic_gauge_cell {
    _Atomic int64_t now, max, max_per_proc;
};

struct nic_cell {
    _Atomic uint32_t state;    /* 0 free, 1 being named, 2 in use */
    char             name[NIC_CELL_NAME];
    uint64_t         value;    /* added to atomically, also from outside */
};

/* ---- processes ---- */

/* One thread in the engine. What it says here holds from before it looks at
 * the object until it is done with it. */
struct nic_exec {
    _Atomic uint32_t claim;
    _Atomic uint32_t seq;      /* +1 whenever it lets go */
    _Atomic uint32_t qp;       /* responder QP in use */
    _Atomic uint64_t keys;     /* bit (index % 64) of each key in use */
} __attribute__((aligned(64)));

struct nic_proc {
    /* pid << 40 | start time in clock ticks: claimed by compare-and-swap */
    _Atomic uint64_t who;
    _Atomic uint32_t id;       /* gen << 10 | index; 0: not (or no longer) in */
    uint32_t         gen;
    _Atomic uint32_t sweeper;  /* id of who buries it */
    _Atomic uint32_t nexec;    /* exec slots ever used */
    /* A robust mutex the attaching thread never releases: the kernel marks it
     * when that thread ends, so that one load tells "alive, for sure". */
    pthread_mutex_t  life;
    _Atomic uint32_t timer_seq;
    _Atomic uint32_t timer_on;
    _Atomic uint32_t removed;  /* == id: its device was taken away */
    _Atomic int64_t  gauge[NIC_GAUGES];
    _Atomic uint64_t stat[NIC_STATS];
    struct nic_exec  exec[NIC_EXECS];
    /* Send queues of this process that need its timer, by slot */
    _Atomic uint64_t stalled[(1u << NIC_LOG_QPS) / 64];
} __attribute__((aligned(4096)));

/* ---- objects ---- */

enum nic_kind {
    NIC_OWNER, NIC_PD, NIC_MKEY, NIC_CQ, NIC_RMP, NIC_QP, NIC_CHAN, NIC_SUB,
    NIC_KINDS
};

/* Head of every slot. claim is the process id of the one it belongs to (0:
 * free), number what others know it by (0: not to be found). */
struct nic_obj {
    _Atomic uint32_t number;
    _Atomic uint32_t claim;
    uint32_t         gen;
    uint32_t         owner;
};

struct nic_owner {
    struct nic_obj   obj;
    _Atomic uint32_t by_call;  /* its software rings by call: watch.c */
    uint32_t       dev;
    uint32_t       roce;
};

struct nic_pd {
    struct nic_obj   obj;
    _Atomic uint32_t users;
};

#define NIC_LR 0x01
#define NIC_LW 0x02
#define NIC_RR 0x04
#define NIC_RW 0x08
#define NIC_RA 0x10

/* How another process comes to the memory of a key: share.c */
struct nic_share {
    uint64_t         dev, ino;
    uint64_t         off;      /* in the file, of the key's first byte */
    int32_t          fd;       /* of the owner */
    uint32_t         file;     /* the owner's note of it */
    uint32_t         page;
    uint32_t         fixed;    /* needs no seal: it cannot shrink anyway */
    _Atomic uint32_t viewed;   /* somebody has mapped it */
};

struct nic_mkey {
    struct nic_obj obj;
    uint32_t       pdn;
    uint32_t       qpn;
    uint64_t       start, len;
    uint64_t       va_delta;
    uint8_t        tag;
    uint8_t        rights;
    uint8_t        over_umem;
    uint64_t       share_id;   /* never used again; 0: cannot be mapped */
    struct nic_share share;
} __attribute__((aligned(64)));

/* Queue memory: pages of the pool, in one run or listed in a table */
struct nic_mem {
    uint64_t va;               /* in the owner's process */
    uint64_t len;
    uint32_t page_off;
    uint32_t first;            /* pool page */
    uint32_t table;            /* pool page of a uint32_t[], 0: one run */
    uint32_t table_pages;
};

struct nic_subs {
    _Atomic uint32_t sub[NIC_OBJ_SUBS]; /* slot + 1 */
};

struct nic_cq {
    struct nic_obj   obj;
    _Atomic uint32_t by_call;  /* its software has rung by call */
    struct nic_lock  lock;
    uint8_t          log_size;
    uint8_t          cqe_size;
    uint8_t          oi;
    uint8_t          verbs;
    _Atomic uint32_t pi;       /* free-running */
    _Atomic uint32_t error;    /* overrun: nothing is written any more */
    _Atomic uint32_t armed;    /* by a doorbell call */
    uint32_t         fired;    /* arm word of the last event */
    _Atomic uint32_t sol_pi;   /* pi behind the last solicited or error CQE */
    _Atomic uint32_t users;
    struct nic_mem   ring, db;
    struct nic_subs  subs;
} __attribute__((aligned(64)));

/* A receive queue: an RMP, or the own one of a QP */
struct nic_rmp {
    struct nic_obj   obj;
    _Atomic uint32_t by_call;  /* its software has rung by call */
    struct nic_lock  lock;
    uint32_t         pdn;
    uint8_t          log_size, log_stride;
    uint8_t          cyclic, no_next;
    uint8_t          own_of_qp;
    /* head index << 16 | number taken, one word so that it cannot tear */
    _Atomic uint32_t pos;
    _Atomic uint32_t users;
    /* QPs whose peer waits for a receive, under the lock */
    _Atomic uint32_t nstalled;
    uint32_t         stalled_all; /* too many: look at every QP */
    uint32_t         stalled[NIC_STALLED];
    _Atomic uint32_t limit;       /* an event when fewer are left, once */
    struct nic_mem   ring, db;
    struct nic_subs  subs;
} __attribute__((aligned(64)));

enum nic_stall {
    NIC_STALL_NONE, NIC_STALL_RNR, NIC_STALL_RETRY, NIC_STALL_HANDOVER
};

struct nic_qp {
    struct nic_obj   obj;
    _Atomic uint32_t by_call;     /* its software has rung by call */
    struct vhca_qp_attr   attr;   /* addresses: of the owner's process */
    struct vhca_qp_modify last;
    _Atomic uint32_t state;       /* enum vhca_qp_state */
    uint32_t         rq;          /* number of the RMP or own receive queue */
    uint32_t         dev;
    uint32_t         roce;
    uint32_t         has_sq;
    uint32_t         mtu_bytes;
    _Atomic uint32_t epoch;       /* +1 at every INIT2RTR */
    struct nic_mem   sq, db;
    struct nic_subs  subs;

    /* responder: written by whoever executes the peer's send queue */
    _Atomic uint32_t rcv_psn __attribute__((aligned(64)));
    _Atomic uint32_t rx_busy;     /* 1 << 31 | counter of a WQE taken */
    _Atomic uint64_t rx_journal;  /* where its CQE went */
    _Atomic uint32_t ud_rx;       /* id of who delivers a datagram */

    /* requester: by the holder of run */
    _Atomic uint32_t run __attribute__((aligned(64)));
    _Atomic uint32_t ci;          /* free-running, 16 bits count */
    uint32_t         send_psn;
    _Atomic uint64_t journal;     /* where the CQE of WQE ci went */
    uint64_t         path_seen;   /* peer's epoch << 32 | number, verified */
    _Atomic uint32_t stall;       /* enum nic_stall */
    _Atomic uint32_t resume;
    _Atomic int64_t  stall_until, stall_next;
} __attribute__((aligned(64)));

#define NIC_RUN_KICK 0x40000000u  /* beside the holder's id in run */
#define NIC_RX_BUSY  0x80000000u
#define NIC_JOURNAL  (1ull << 63) /* | (ci & mask) << 32 | producer index */
#define NIC_CI_MASK  0x7fffffffu

struct nic_chan {
    struct nic_obj obj;
    uint32_t       kind;
    uint32_t       omit_data;
    int32_t        fd;            /* of the owner, and what it must still be */
    uint64_t       inode;
} __attribute__((aligned(64)));

struct nic_sub {
    struct nic_obj   obj;
    uint32_t         chan;
    uint32_t         target;
    uint16_t         type;
    _Atomic uint32_t pending;     /* events that did not fit, kept by senders */
    _Atomic uint32_t sent;
    _Atomic int32_t  senders;     /* between looking at it and counting */
    uint64_t         cookie;
} __attribute__((aligned(64)));

struct nic_table {
    _Atomic uint32_t live;
    _Atomic uint32_t high;        /* slots ever used */
    _Atomic uint32_t hint;
};

struct nic_header {
    uint64_t         magic;
    uint32_t         version;
    uint32_t         layout;      /* hash of the sizes below */
    _Atomic uint32_t ready;
    _Atomic uint32_t nprocs;      /* slots ever used */
    struct nic_table table[NIC_KINDS];
    struct nic_lock  pool_lock;
    uint32_t         pool_next;
    struct nic_lock  atomic_lock[64]; /* by hash of the address */
    _Atomic uint32_t pool_high;
    struct nic_gauge_cell gauge[NIC_GAUGES];
    _Atomic uint64_t past[NIC_STATS]; /* counters of processes that are gone */
    struct nic_cell  cell[NIC_CELLS];
    struct vhca_faults faults;    /* of every process */
    _Atomic uint32_t removals;    /* devices taken away so far */
    /* Read at every doorbell, written when a key goes that others had mapped */
    _Atomic uint32_t share_epoch __attribute__((aligned(64)));
    _Atomic uint64_t share_ids   __attribute__((aligned(64)));
};

struct nic_fabric {
    struct nic_header hdr    __attribute__((aligned(4096)));
    struct nic_proc   proc[NIC_PROCS];
    struct nic_owner  owner[1u << NIC_LOG_OWNERS] __attribute__((aligned(4096)));
    struct nic_pd     pd[1u << NIC_LOG_PDS]       __attribute__((aligned(4096)));
    struct nic_mkey   mkey[1u << NIC_LOG_MKEYS]   __attribute__((aligned(4096)));
    struct nic_cq     cq[1u << NIC_LOG_CQS]       __attribute__((aligned(4096)));
    struct nic_rmp    rmp[1u << NIC_LOG_RMPS]     __attribute__((aligned(4096)));
    struct nic_qp     qp[1u << NIC_LOG_QPS]       __attribute__((aligned(4096)));
    struct nic_chan   chan[1u << NIC_LOG_CHANS]   __attribute__((aligned(4096)));
    struct nic_sub    sub[1u << NIC_LOG_SUBS]     __attribute__((aligned(4096)));
    /* id of the process a page belongs to; page 0 is never given */
    _Atomic uint32_t  page_owner[NIC_POOL_PAGES]  __attribute__((aligned(4096)));
    uint8_t           pool[NIC_POOL_PAGES][NIC_PAGE]
                                                  __attribute__((aligned(4096)));
};

/* The file is as long as this, nearly all of it a hole */
#define NIC_FILE_SIZE  sizeof(struct nic_fabric)

#define NIC_LAYOUT \
    ((uint32_t)((sizeof(struct nic_header) * 31 + sizeof(struct nic_proc)) * \
                    31 + \
                offsetof(struct nic_fabric, cq) * 7 + \
                offsetof(struct nic_fabric, qp) * 11 + \
                offsetof(struct nic_fabric, pool) * 13 + \
                sizeof(struct nic_qp) * 101 + sizeof(struct nic_rmp) * 103 + \
                sizeof(pthread_mutex_t) * 107 + NIC_STATS * 109))

/* ---- this process ---- */

struct nic_self {
    struct nic_fabric *fab;      /* NULL: not attached (or a fork child) */
    struct nic_proc   *proc;
    uint32_t           id;
    char               dir[256]; /* of the fabric, on the file system */
    uint64_t           file[2];  /* the fabric's: device, inode */
};

extern struct nic_self nic_self;

/* Where the fabric's file is: VHCA_DIR (/dev/shm)/vhca.<uid>/VHCA_FABRIC
 * (default). 0 or a negative errno. Also vhca-stat's way to it. */
static inline int nic_fabric_dir(char *dir, size_t len)
{
    const char *base = getenv("VHCA_DIR");
    const char *name = getenv("VHCA_FABRIC");
    int n;

    if ((base == NULL) || (base[0] == '\0')) {
        base = "/dev/shm";
    }
    if ((name == NULL) || (name[0] == '\0')) {
        name = "default";
    }
    if ((strchr(name, '/') != NULL) || (name[0] == '.')) {
        return -EINVAL;
    }

    n = snprintf(dir, len, "%s/vhca.%u/%s", base, (unsigned)getuid(), name);
    return ((n < 0) || ((size_t)n >= len)) ? -ENAMETOOLONG : 0;
}

#define NIC_FAB (nic_self.fab)

/* The thread that locked it lives: FUTEX_TID_MASK and FUTEX_OWNER_DIED of the
 * word that the kernel marks at a thread's end. */
static inline bool nic_life_held(const struct nic_proc *proc)
{
    unsigned word = __atomic_load_n(&proc->life.__data.__lock,
                                    __ATOMIC_RELAXED);

    return ((word & 0x3fffffffu) != 0) && !(word & 0x40000000u);
}

/* fabric.c */
void    nic_life_renew(void);

/* sweep.c */
struct nic_proc *nic_proc_of(uint32_t id); /* NULL: left */
bool    nic_proc_alive(uint32_t id);
void    nic_proc_sweep(uint32_t id);       /* buries it if it is dead */
void    nic_sweep_all(void);

/* who.c */
bool    nic_who_alive(uint64_t who);
uint64_t nic_who_self(void);

/* sync.c */
int64_t nic_now(void);                     /* ns, CLOCK_MONOTONIC */
enum nic_locked nic_lock_take(struct nic_lock *lock);
void    nic_lock_drop(struct nic_lock *lock);
int     nic_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns);
void    nic_futex_wake(_Atomic uint32_t *word, int count);
struct nic_exec *nic_exec_enter(void);
void    nic_exec_leave(struct nic_exec *x);
void    nic_exec_use(struct nic_exec *x, uint32_t qpn);
void    nic_exec_use_keys(struct nic_exec *x, uint64_t keys);
void    nic_exec_let_go(struct nic_exec *x);
bool    nic_quiesce_qp(uint32_t qpn);
bool    nic_quiesce_key(uint32_t index);

/* table.c: slots by number */
struct nic_obj *nic_obj_alloc(enum nic_kind kind, uint32_t owner);
uint32_t nic_obj_publish(enum nic_kind kind, struct nic_obj *obj);
void    nic_obj_hide(struct nic_obj *obj);
void    nic_obj_free(enum nic_kind kind, struct nic_obj *obj);
struct nic_obj *nic_obj_find(enum nic_kind kind, uint32_t number);
struct nic_obj *nic_obj_slot(enum nic_kind kind, uint32_t slot);
uint32_t nic_obj_index(enum nic_kind kind, const struct nic_obj *obj);
bool    nic_obj_mine(const struct nic_obj *obj, uint32_t owner);

#define NIC_FIND(_kind, _type, _number) \
    ((struct _type *)(void *)nic_obj_find(_kind, _number))

/* pages.c */
bool    nic_populate(const volatile void *at, size_t len);
/* Part of the fabric's mapping, a second time, in place of what is at va. False
 * also when the file has been removed or replaced. */
bool    nic_fabric_map_again(const void *part, size_t len, uint64_t va);
bool    nic_mem_map(void *va, size_t len, struct nic_mem *mem_p);
void    nic_mem_unmap(const struct nic_mem *mem);
void    nic_pages_fork_prepare(void);
void    nic_pages_fork_parent(void);
void    nic_pages_fork_child(void);

static inline void *nic_mem_at(const struct nic_mem *mem, uint64_t off)
{
    uint64_t pos = off + mem->page_off;

    if (__builtin_expect(mem->table == 0, 1)) {
        return NIC_FAB->pool[mem->first] + pos;
    }

    return NIC_FAB->pool[((const uint32_t*)(const void*)
                          NIC_FAB->pool[mem->table])[pos / NIC_PAGE]] +
           pos % NIC_PAGE;
}

/* stat.c */
void    nic_gauge_add(enum nic_gauge gauge, int64_t delta);

static inline void nic_stat_add(enum nic_stat stat, uint64_t delta)
{
    atomic_fetch_add_explicit(&nic_self.proc->stat[stat], delta,
                              memory_order_relaxed);
}

/* mkey.c */
struct nic_key_use {
    struct nic_mkey *key;
    uint32_t         number;
};

struct nic_mkey *nic_mkey_check(uint32_t key, uint32_t pdn, uint32_t qpn,
                                uint64_t addr, uint64_t len, uint8_t rights);

/* data.c: moving bytes between two processes */
struct nic_side {
    uint32_t     proc;             /* id; the calling process is one of both */
    unsigned     n;
    struct iovec iov[WQE_MAX_SGE];
    /* The same bytes in the calling process, where touching them cannot fault;
     * NULL: nowhere */
    void        *here[WQE_MAX_SGE];
};

static inline void nic_side_add(struct nic_side *side, void *at,
                                uint64_t len, void *here)
{
    side->iov[side->n]    = (struct iovec) { at, len };
    side->here[side->n++] = here;
}

enum nic_moved {
    NIC_MOVED,
    NIC_MOVED_SRC_FAULT,
    NIC_MOVED_DST_FAULT,
    NIC_MOVED_PEER_GONE,           /* the process that is not ours */
    NIC_MOVED_REVOKED              /* a key was destroyed meanwhile */
};

enum nic_moved nic_move(struct nic_side *dst, struct nic_side *src,
                        uint64_t len, const struct nic_key_use *keys,
                        unsigned nkeys);

/* share.c: the memory of keys, mapped here */
#define NIC_VIEW_SETS 256
#define NIC_VIEW_WAYS 4

struct nic_view {
    _Atomic uint64_t id;           /* of the key's share; 0: empty */
    void            *base;         /* NULL: cannot be mapped */
};

struct nic_view_set {
    struct nic_view way[NIC_VIEW_WAYS];
} __attribute__((aligned(64)));

extern struct nic_view_set nic_views[NIC_VIEW_SETS];
extern _Atomic uint32_t    nic_share_seen;

void    nic_share_record(struct nic_mkey *key);
void    nic_share_release(struct nic_mkey *key);
void   *nic_share_view(struct nic_mkey *key, uint64_t addr, uint64_t spare);
void    nic_share_trim_now(uint32_t epoch);
void    nic_share_fork_child(void);

/* Where the key's address is in this process, or NULL. The caller has announced
 * the key, and `spare` is what it announced of all. */
static inline void *nic_share_here(struct nic_mkey *key, uint64_t addr,
                                   uint64_t spare)
{
    uint64_t id = key->share_id;
    struct nic_view *view;
    unsigned i;

    if (id == 0) {
        return NULL;
    }

    view = nic_views[id % NIC_VIEW_SETS].way;
    for (i = 0; i < NIC_VIEW_WAYS; ++i, ++view) {
        if (atomic_load(&view->id) == id) {
            return (view->base == NULL) ?
                   NULL : (char*)view->base + (addr - key->start);
        }
    }

    return nic_share_view(key, addr, spare);
}

/* Outside of any request */
static inline void nic_share_trim(void)
{
    uint32_t epoch = atomic_load_explicit(&NIC_FAB->hdr.share_epoch,
                                          memory_order_relaxed);

    if (__builtin_expect(epoch != atomic_load_explicit(&nic_share_seen,
                                                       memory_order_relaxed),
                         0)) {
        nic_share_trim_now(epoch);
    }
}

/* cq.c */
struct nic_cqe {
    uint8_t  opcode;
    uint8_t  wqe_opcode;
    bool     solicited;
    uint8_t  syndrome;
    uint16_t counter;
    uint32_t qpn, uidx, rqpn;
    uint32_t byte_cnt;
    uint16_t slid;
    uint32_t imm;                  /* as it came, big endian */
    uint8_t  ninline;              /* bytes of data in the CQE itself */
    uint8_t  inline_room;          /* 32 or 64: where they lie */
    const void *inline_data;
};

bool    nic_cq_post(uint32_t cqn, const struct nic_cqe *cqe,
                    _Atomic uint64_t *journal, uint32_t ci);
uint32_t nic_cq_pi(uint32_t cqn, bool *valid_p);
int     nic_cq_arm(struct nic_cq *cq);
bool    nic_cq_look(struct nic_cq *cq, uint32_t cqn);
void    nic_cq_release(struct nic_cq *cq);

/* srq.c */
struct nic_rwqe {
    uint16_t counter;
    unsigned n;
    struct wqe_data seg[32];
};

enum nic_taken {
    NIC_TAKEN, NIC_TAKEN_EMPTY, NIC_TAKEN_GONE
};

enum nic_taken nic_rmp_take(uint32_t rmpn, struct nic_qp *qp, bool wait,
                            struct nic_rwqe *rwqe_p);
bool    nic_rmp_take_flush(uint32_t rmpn, uint16_t *counter_p);
void    nic_rmp_refilled(uint32_t rmpn, struct nic_exec *x);
bool    nic_rmp_posted(const struct nic_rmp *rmp);
void    nic_rmp_release(struct nic_rmp *rmp);

/* qp.c */
void    nic_qp_fail(struct nic_qp *qp, uint16_t event);
void    nic_qp_flush_rq(struct nic_qp *qp);
void    nic_qp_release(struct nic_qp *qp);
bool    nic_qp_path_ok(struct nic_qp *qp, struct nic_qp *peer);

/* exec.c */
void    nic_sq_run(struct nic_exec *x, struct nic_qp *qp);
void    nic_sq_resume(struct nic_exec *x, struct nic_qp *qp);
void    nic_sq_reset(struct nic_exec *x, struct nic_qp *qp);
bool    nic_sq_seize(struct nic_qp *qp);

/* resp.c: one request, as executed against its responder */
enum nic_verdict {
    NIC_DONE,
    NIC_FAILED,                    /* syndrome says how */
    NIC_WAIT_RNR,
    NIC_WAIT_RETRY
};

struct nic_op {
    struct nic_exec *x;
    struct nic_qp   *qp;           /* requester */
    struct nic_qp   *peer;         /* responder, while x says so */
    uint8_t          opcode, opmod;
    bool             solicited, inl, signalled;
    uint32_t         imm;
    uint64_t         raddr;
    uint32_t         rkey;
    struct wqe_av    av;           /* UD, as in the WQE */
    uint64_t         atomic[4];    /* as in the WQE */
    unsigned         atomic_len;   /* bytes of them */
    uint64_t         len;
    uint8_t          syndrome;
    uint32_t         flush_peer;   /* its send queue is to be flushed */
    uint64_t         key_mask;     /* what x says of them */
    unsigned         nkeys;
    struct nic_key_use keys[2 * WQE_MAX_SGE + 1];
    struct nic_side  local;
    uint64_t         inline_data[WQE_MAX_DS * WQE_SEG / 8];
    unsigned         cqe_len;      /* data that the requester's CQE carries */
    uint64_t         cqe_data[8];  /* or the responder's */
};

enum nic_verdict nic_resp_execute(struct nic_op *op);
uint8_t nic_resp_scatter(struct nic_op *op, const struct nic_rwqe *rwqe,
                         struct nic_side *side);
enum nic_verdict nic_ud_execute(struct nic_op *op); /* ud.c */
bool    nic_resp_reachable(struct nic_exec *x, struct nic_qp *qp);
enum nic_verdict nic_atomic(struct nic_op *op);
bool    nic_op_use_key(struct nic_op *op, struct nic_side *side, uint32_t key,
                       uint32_t pdn, uint32_t qpn, uint64_t addr, uint64_t len,
                       uint8_t rights);

/* fault.c and trace_wqe.c: what a process or the fabric has switched on */
#define NIC_HOOK_FAULT 0x1
#define NIC_HOOK_TRACE 0x2

extern uint32_t nic_hooks;             /* set before the fabric is used */

/* All that the engine looks at while nothing is switched on. */
static inline bool nic_hooked(void)
{
    return __builtin_expect((nic_hooks |
                             atomic_load_explicit(&NIC_FAB->hdr.faults.num,
                                                  memory_order_relaxed) |
                             atomic_load_explicit(&NIC_FAB->hdr.removals,
                                                  memory_order_relaxed)) != 0,
                            0);
}

int     nic_fault_load(void);
bool    nic_fault_mkeys(struct vhca_fw *fw);
uint8_t nic_fault_wqe(const struct nic_qp *qp, uint8_t opcode);
bool    nic_fault_link(const struct nic_qp *qp);
void    nic_fault_device(const struct nic_qp *qp);
int     nic_trace_load(void);
void    nic_trace_wqe(const struct nic_qp *qp, const void *wqe, size_t len,
                      uint32_t index);
void    nic_trace_cqe(uint32_t cqn, const struct nic_cqe *cqe);

/* timer.c */
void    nic_timer_stall(struct nic_qp *qp);
bool    nic_timer_serves(const struct nic_qp *qp);
void    nic_timer_poke(void);

/* watch.c: queues whose software does not ring by call */
void    nic_watch_qp(struct nic_qp *qp);
void    nic_watch_forget(enum nic_kind kind, const struct nic_obj *obj);
void    nic_watch_called(enum nic_kind kind, struct nic_obj *obj,
                         _Atomic uint32_t *by_call);
void    nic_watch_fork_child(void);

/* event.c */
void    nic_event_send(const struct nic_subs *subs, uint16_t type,
                       uint32_t number);
bool    nic_event_backlog_run(void);
void    nic_event_fork_child(void);
void    nic_chan_release(struct nic_chan *chan);

/* device.c */
struct sockaddr_un;
bool    nic_chan_addr(const char *dir, uint32_t chan,
                      struct sockaddr_un *addr, int *dirfd_p);
void    nic_chan_addr_done(int dirfd);
/* To the process of that id: VHCA_EVENT_DEVICE_FATAL takes its device away. */
void    nic_device_event(struct nic_fabric *fab, const char *dir, uint32_t id,
                         uint32_t event);

/* What it has posted stays undone, who sends to it gets no answer. */
static inline bool nic_device_removed(uint32_t id)
{
    return __builtin_expect(
                   atomic_load_explicit(&NIC_FAB->hdr.removals,
                                        memory_order_relaxed) != 0, 0) &&
           (atomic_load(&NIC_FAB->proc[id % NIC_PROCS].removed) == id);
}

static inline bool nic_fail(struct vhca_fw *fw, uint8_t status,
                            uint32_t syndrome)
{
    fw->status   = status;
    fw->syndrome = syndrome;
    return false;
}

#endif
