/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * For tests of the NIC side: a node is everything one end of a connection
 * needs, made with the NIC's own calls; a peer is a node in another process,
 * which does what it is told through a shared page. WQEs are written byte by
 * byte, as the PRM draws them.
 */

#ifndef TEST_VHCA_NODE_H_
#define TEST_VHCA_NODE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vhca/doorbell.h"
#include "vhca/nic.h"

#define NODE_LOG_SQ   6
#define NODE_LOG_CQ   6
#define NODE_LOG_RMP  4
#define NODE_STRIDE   64u           /* next segment, three data segments */
#define NODE_RX_SIZE  4096u         /* of each posted receive */
#ifndef NODE_BUF
#define NODE_BUF      (1u << 20)
#endif
#define NODE_DEADLINE 20            /* seconds until a wait fails the test */

struct node_cfg {
    bool     no_oi;                 /* the CQ looks at set_ci */
    uint8_t  cqe_size;              /* 0: 64 */
    bool     cyclic;
    bool     own_rq;                /* instead of the RMP */
    uint8_t  rnr_retry, retry_count, ack_timeout, min_rnr_nak;
    uint8_t  mtu, log_msg_max;      /* 0: 1024 bytes, 1 GiB */
    bool     no_rre, no_rwe, no_rae;
    uint8_t  log_cq;
    bool     silent;                /* does not ring by call */
};

struct node_info {
    uint32_t qpn, rkey;
    uint64_t buf;
};

struct node {
    struct node_cfg cfg;
    uint32_t owner, pdn, cqn, rmpn, qpn, lkey, index;
    uint8_t *sq, *cq, *rq, *buf, *rx;
    uint32_t *db;                   /* QP 0, CQ 16, RMP 32 (in words) */
    uint16_t pi;
    uint32_t ci;
    uint16_t posted;
    struct node_info peer;
};

static struct vhca_port_cfg node_port = {
    .roce     = true,
    .lid      = 1,
    .gid      = { { 0xfe, 0x80, [15] = 1 }, { 0xfe, 0x80, [15] = 2 } },
    .num_gids = 2,
    .mtu      = 5
};

const struct vhca_port_cfg *vhca_port_cfg(unsigned dev)
{
    return (dev == 0) ? &node_port : NULL;
}

/* An assertion that fails in a child would go on with the tests of its parent:
 * a child opens one node, and starts no others. */
static pid_t node_main;
static unsigned node_opened;

static inline void node_child_ends(unsigned opened)
{
    if ((node_main != 0) && (getpid() != node_main) && (opened > 1)) {
        _exit(99);
    }
}

static inline void *node_pages(size_t len)
{
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

static inline void node_key(struct node *n, void *addr, size_t len,
                            uint8_t tag, const char *rights, uint32_t *index_p)
{
    struct vhca_mkey_attr attr = {
        .owner = n->owner, .pdn = n->pdn, .start = (uint64_t)addr, .len = len,
        .qpn = 0xffffff, .tag = tag, .over_umem = true,
        .lr = strstr(rights, "lr"), .lw = strstr(rights, "lw"),
        .rr = strstr(rights, "rr"), .rw = strstr(rights, "rw"),
        .a = strstr(rights, "at")
    };
    struct vhca_fw fw;

    assert_true(vhca_mkey_create(&attr, index_p, &fw));
}

static inline void node_recv(struct node *n, void *addr, uint32_t len)
{
    uint32_t mask = (1u << NODE_LOG_RMP) - 1;
    uint8_t *wqe  = n->rq + (n->posted & mask) * NODE_STRIDE;
    struct wqe_data *seg;

    seg  = (void*)(wqe + (n->cfg.own_rq ? 0 : 16));
    *seg = (struct wqe_data) {
        htobe32(len), htobe32(n->lkey), htobe64((uint64_t)addr)
    };
    seg[1] = (struct wqe_data) { 0, htobe32(0x100), 0 };
    ++n->posted;
}

static inline int node_recv_ring(struct node *n)
{
    uint32_t *db = n->cfg.own_rq ? &n->db[0] : &n->db[32];

    __atomic_store_n(db, htobe32(n->posted), __ATOMIC_SEQ_CST);
    return vhca_doorbell(n->cfg.own_rq ? VHCA_DOORBELL_QP_RQ :
                                         VHCA_DOORBELL_RQ,
                         n->cfg.own_rq ? n->qpn : n->rmpn);
}

static inline void node_open(struct node *n, const struct node_cfg *cfg)
{
    struct vhca_cq_attr cq   = { 0 };
    struct vhca_rmp_attr rmp = { 0 };
    struct vhca_qp_attr qp   = { 0 };
    struct vhca_fw fw;
    unsigned i;

    node_child_ends((getpid() == node_main) ? 0 : ++node_opened);
    memset(n, 0, sizeof(*n));
    n->cfg = *cfg;
    if (n->cfg.cqe_size == 0) {
        n->cfg.cqe_size = 64;
    }
    if (n->cfg.log_cq == 0) {
        n->cfg.log_cq = NODE_LOG_CQ;
    }
    assert_int_equal(vhca_fabric_attach(), 0);
    assert_int_equal(vhca_owner_open(0, &n->owner), 0);
    assert_int_equal(vhca_pd_alloc(n->owner, &n->pdn), 0);

    n->sq  = node_pages(64u << NODE_LOG_SQ);
    n->cq  = node_pages(128u << n->cfg.log_cq);
    n->rq  = node_pages(NODE_STRIDE << NODE_LOG_RMP);
    n->db  = node_pages(4096);
    n->buf = node_pages(NODE_BUF);
    n->rx  = node_pages(NODE_RX_SIZE << NODE_LOG_RMP);

    cq.owner    = n->owner;
    cq.ring     = n->cq;
    cq.log_size = n->cfg.log_cq;
    cq.cqe_size = n->cfg.cqe_size;
    cq.dbrec    = &n->db[16];
    cq.oi       = !cfg->no_oi;
    assert_true(vhca_cq_create(&cq, &n->cqn, &fw));

    rmp.owner      = n->owner;
    rmp.pdn        = n->pdn;
    rmp.ring       = n->rq;
    rmp.log_size   = NODE_LOG_RMP;
    rmp.log_stride = 6;
    rmp.cyclic     = cfg->cyclic;
    rmp.dbrec      = &n->db[32];
    for (i = 0; i < 1u << NODE_LOG_RMP; ++i) {
        *(uint16_t*)(void*)(n->rq + i * NODE_STRIDE + 2) =
                htobe16((i + 1) % (1u << NODE_LOG_RMP));
    }
    if (!cfg->own_rq) {
        assert_true(vhca_rmp_create(&rmp, &n->rmpn, &fw));
    }

    qp.owner         = n->owner;
    qp.pdn           = n->pdn;
    qp.sq            = n->sq;
    qp.log_sq_size   = NODE_LOG_SQ;
    qp.rmpn          = n->rmpn;
    qp.rq            = cfg->own_rq ? n->rq : NULL;
    qp.log_rq_size   = NODE_LOG_RMP;
    qp.log_rq_stride = 6;
    qp.cqn_snd       = n->cqn;
    qp.cqn_rcv       = n->cqn;
    qp.dbrec         = &n->db[0];
    qp.user_index    = 0xabcdef;
    assert_true(vhca_qp_create(&qp, &n->qpn, &fw));
    assert_int_not_equal(n->qpn & 0xff000000, 0xff000000);
    if (!cfg->silent) {
        /* from now on nobody watches its queues: what a test rings for is done
         * when the call returns */
        assert_int_equal(vhca_doorbell(VHCA_DOORBELL_SQ, n->qpn), 0);
    }

    node_key(n, n->buf, NODE_BUF, 0x5a, "lr lw rr rw at", &n->index);
    n->lkey = n->index << 8 | 0x5a;
    {
        uint32_t index;

        /* receives are covered by a key of their own */
        node_key(n, n->rx, NODE_RX_SIZE << NODE_LOG_RMP, 0x11, "lw", &index);
    }
}

static inline bool node_modify(struct node *n, uint16_t opcode,
                               uint8_t *status_p)
{
    struct vhca_qp_modify mod = {
        .opcode         = opcode,
        .port           = 1,
        .rre            = !n->cfg.no_rre,
        .rwe            = !n->cfg.no_rwe,
        .rae            = !n->cfg.no_rae,
        .opt_param_mask = 0,
        .mtu            = n->cfg.mtu ? n->cfg.mtu : 3,
        .log_msg_max    = n->cfg.log_msg_max ? n->cfg.log_msg_max : 30,
        .remote_qpn     = n->peer.qpn,
        .rgid           = { 0xfe, 0x80, [15] = 1 },
        .rlid           = 1,
        .retry_count    = n->cfg.retry_count,
        .rnr_retry      = n->cfg.rnr_retry,
        .ack_timeout    = n->cfg.ack_timeout,
        .min_rnr_nak    = n->cfg.min_rnr_nak
    };
    struct vhca_fw fw = { 0, 0 };
    bool ok           = vhca_qp_modify(n->owner, n->qpn, &mod, &fw);

    if (status_p != NULL) {
        *status_p = fw.status;
    }
    return ok;
}

static inline void node_connect(struct node *n, uint16_t until)
{
    uint16_t opcode;

    for (opcode = 0x502; opcode <= until; ++opcode) {
        assert_true(node_modify(n, opcode, NULL));
    }
}

static inline struct node_info node_info(const struct node *n)
{
    return (struct node_info) { n->qpn, n->lkey, (uint64_t)n->buf };
}

static inline void node_close(struct node *n)
{
    vhca_owner_close(n->owner);
    munmap(n->sq, 64u << NODE_LOG_SQ);
    munmap(n->cq, 128u << n->cfg.log_cq);
    munmap(n->rq, NODE_STRIDE << NODE_LOG_RMP);
    munmap(n->db, 4096);
    munmap(n->buf, NODE_BUF);
    munmap(n->rx, NODE_RX_SIZE << NODE_LOG_RMP);
}

/* ---- send WQEs ---- */

struct post {
    uint8_t  opcode, fm_ce_se, opmod;
    bool     raddr;
    uint64_t addr;
    uint32_t rkey, imm;
    const void *inl;
    uint32_t inl_len;
    unsigned nseg;
    struct { uint64_t addr; uint32_t len, lkey; } seg[8];
    /* raw changes, for WQEs that are wrong */
    uint8_t  ds_delta;
    uint16_t index_delta;
    uint32_t qpn_delta;
};

static inline void node_byte(struct node *n, size_t at, uint8_t byte)
{
    n->sq[(n->pi * 64u + at) % (64u << NODE_LOG_SQ)] = byte;
}

static inline void node_be(struct node *n, size_t at, uint64_t value,
                           unsigned len)
{
    while (len-- > 0) {
        node_byte(n, at++, value >> (len * 8));
    }
}

/* Writes the WQE and moves the producer index; no doorbell. Returns its first
 * block's index. */
static inline uint16_t node_write_wqe(struct node *n, const struct post *p)
{
    uint16_t index = n->pi;
    size_t at      = 16, i;
    uint8_t ds;

    if (p->raddr) {
        node_be(n, 16, p->addr, 8);
        node_be(n, 24, p->rkey, 4);
        node_be(n, 28, 0, 4);
        at = 32;
    }
    if (p->inl != NULL) {
        node_be(n, at, p->inl_len | 0x80000000u, 4);
        for (i = 0; i < p->inl_len; ++i) {
            node_byte(n, at + 4 + i, ((const uint8_t*)p->inl)[i]);
        }
        at += (4 + p->inl_len + 15) / 16 * 16;
    }
    for (i = 0; i < p->nseg; ++i, at += 16) {
        node_be(n, at, p->seg[i].len, 4);
        node_be(n, at + 4, p->seg[i].lkey, 4);
        node_be(n, at + 8, p->seg[i].addr, 8);
    }
    ds = at / 16 + p->ds_delta;
    node_be(n, 0, (uint32_t)p->opmod << 24 |
                  (uint32_t)(uint16_t)(n->pi + p->index_delta) << 8 |
                  p->opcode, 4);
    node_be(n, 4, (n->qpn + p->qpn_delta) << 8 | ds, 4);
    node_be(n, 8, p->fm_ce_se, 4);
    node_be(n, 12, p->imm, 4);
    n->pi += (at + 63) / 64;
    return index;
}

static inline int node_ring(struct node *n)
{
    __atomic_store_n(&n->db[1], htobe32(n->pi), __ATOMIC_SEQ_CST);
    return vhca_doorbell(VHCA_DOORBELL_SQ, n->qpn);
}

static inline uint16_t node_post(struct node *n, const struct post *p)
{
    uint16_t index = node_write_wqe(n, p);

    assert_int_equal(node_ring(n), 0);
    return index;
}

static inline struct post post_rdma(struct node *n, uint8_t opcode,
                                    uint32_t off, uint32_t roff, uint32_t len)
{
    return (struct post) {
        .opcode = opcode, .fm_ce_se = 8, .raddr = true,
        .addr = n->peer.buf + roff, .rkey = n->peer.rkey, .nseg = 1,
        .seg = { { (uint64_t)n->buf + off, len, n->lkey } }
    };
}

static inline struct post post_send(struct node *n, uint32_t off, uint32_t len)
{
    return (struct post) {
        .opcode = 0x0a, .fm_ce_se = 8, .nseg = 1,
        .seg = { { (uint64_t)n->buf + off, len, n->lkey } }
    };
}

/* ---- completions ---- */

static inline double now_s(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static inline const struct cqe64 *node_poll(struct node *n)
{
    uint32_t size = 1u << n->cfg.log_cq;
    const uint8_t *at = n->cq + (n->ci & (size - 1)) * n->cfg.cqe_size +
                        n->cfg.cqe_size - 64;
    uint8_t op_own = __atomic_load_n(at + 63, __ATOMIC_ACQUIRE);

    if ((op_own >> 4 == 15) || ((op_own & 1) != !!(n->ci & size))) {
        return NULL;
    }
    ++n->ci;
    __atomic_store_n(&n->db[16], htobe32(n->ci & 0xffffff), __ATOMIC_RELEASE);
    return (const void*)at;
}

static inline const struct cqe64 *node_wait(struct node *n)
{
    double end = now_s() + NODE_DEADLINE;
    const struct cqe64 *cqe;

    while ((cqe = node_poll(n)) == NULL) {
        if (now_s() > end) {
            fail_msg("no CQE within %d s", NODE_DEADLINE);
        }
        sched_yield();
    }
    return cqe;
}

static inline void cqe_is(const struct cqe64 *cqe, uint8_t opcode,
                          uint8_t syndrome, uint16_t counter)
{
    const struct cqe64_err *err = (const void*)cqe;

    assert_non_null(cqe);
    if ((cqe->op_own >> 4 == 13) || (cqe->op_own >> 4 == 14)) {
        assert_int_equal(err->syndrome, syndrome);
    } else {
        assert_int_equal(syndrome, 0);
    }
    assert_int_equal(cqe->op_own >> 4, opcode);
    assert_int_equal(be16toh(cqe->wqe_counter), counter);
}

/* ---- another process ---- */

enum peer_cmd {
    PEER_NONE, PEER_CONNECT, PEER_RTS, PEER_RECV, PEER_GET, PEER_SET,
    PEER_CQE, PEER_POST, PEER_MODIFY, PEER_EXIT, PEER_FLOOD
};

struct peer_page {
    struct node_info  info, other;
    _Atomic uint32_t  ready, cmd, done;
    uint32_t          arg[4];
    _Atomic uint32_t  progress;
    struct post       post;
    struct cqe64      cqe;
    uint8_t           data[NODE_BUF];
};

struct peer {
    struct peer_page *page;
    pid_t             pid;
};

static inline void wait_for(_Atomic uint32_t *word, uint32_t value)
{
    double end = now_s() + NODE_DEADLINE;

    while (atomic_load(word) != value) {
        if (now_s() > end) {
            fail_msg("the other process did not answer within %d s",
                     NODE_DEADLINE);
        }
        sched_yield();
    }
}

static inline void peer_do(struct node *n, struct peer_page *page)
{
    const struct cqe64 *cqe;
    uint32_t i;

    switch (atomic_load(&page->cmd)) {
    case PEER_CONNECT:
        n->peer = page->other;
        node_connect(n, page->arg[0]);
        break;
    case PEER_RTS:
        assert_true(node_modify(n, 0x504, NULL));
        break;
    case PEER_RECV: /* arg: how many, length, key or 0 */
        for (i = 0; i < page->arg[0]; ++i) {
            uint32_t lkey = n->lkey;

            if (page->arg[2] != 0) {
                n->lkey = page->arg[2];
            }
            node_recv(n, n->buf + (n->posted % 16) * NODE_RX_SIZE,
                      page->arg[1]);
            n->lkey = lkey;
        }
        assert_int_equal(node_recv_ring(n), 0);
        break;
    case PEER_GET:
        memcpy(page->data, n->buf + page->arg[0], page->arg[1]);
        break;
    case PEER_SET:
        memcpy(n->buf + page->arg[0], page->data, page->arg[1]);
        break;
    case PEER_CQE:
        cqe       = node_wait(n);
        page->cqe = *cqe;
        break;
    case PEER_POST:
        node_post(n, &page->post);
        break;
    case PEER_MODIFY:
        assert_true(node_modify(n, page->arg[0], NULL));
        break;
    case PEER_FLOOD: /* traffic until killed */
        for (;;) {
            struct post p = post_rdma(n, 8, 0, 0, 1 + rand() % 5000);

            node_post(n, &p);
            p = post_send(n, 0, 1 + rand() % 4000);
            node_post(n, &p);
            while (node_poll(n) != NULL) {
            }
            atomic_fetch_add(&page->progress, 1);
        }
    default:
        break;
    }
}

static inline void peer_main(struct peer_page *page, const struct node_cfg *cfg)
{
    struct node n;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    node_open(&n, cfg);
    page->info = node_info(&n);
    atomic_store(&page->ready, 1);
    for (;;) {
        while (atomic_load(&page->cmd) == PEER_NONE) {
            sched_yield();
        }
        if (atomic_load(&page->cmd) == PEER_EXIT) {
            node_close(&n);
            _exit(0);
        }
        peer_do(&n, page);
        atomic_store(&page->cmd, PEER_NONE);
    }
}

/* Before this process attaches or after: the child enters as itself. */
static inline void peer_start(struct peer *p, const struct node_cfg *cfg)
{
    node_child_ends(2);
    p->page = mmap(NULL, sizeof(*p->page), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p->page != MAP_FAILED);
    fflush(NULL);
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        peer_main(p->page, cfg);
    }
    wait_for(&p->page->ready, 1);
}

static inline void peer_tell(struct peer *p, uint32_t cmd, uint32_t a,
                             uint32_t b, uint32_t c)
{
    p->page->arg[0] = a;
    p->page->arg[1] = b;
    p->page->arg[2] = c;
    atomic_store(&p->page->cmd, cmd);
}

static inline void peer_call(struct peer *p, uint32_t cmd, uint32_t a,
                             uint32_t b, uint32_t c)
{
    peer_tell(p, cmd, a, b, c);
    wait_for(&p->page->cmd, PEER_NONE);
}

static inline const struct cqe64 *peer_cqe(struct peer *p)
{
    peer_call(p, PEER_CQE, 0, 0, 0);
    return &p->page->cqe;
}

static inline void peer_kill(struct peer *p)
{
    int status;

    kill(p->pid, SIGKILL);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    munmap(p->page, sizeof(*p->page));
}

static inline void peer_stop(struct peer *p)
{
    int status;

    atomic_store(&p->page->cmd, PEER_EXIT);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    assert_int_equal(status, 0);
    munmap(p->page, sizeof(*p->page));
}

/* Node here, peer there, connected until RTS at both ends */
static inline void pair_open(struct node *n, struct peer *p,
                             const struct node_cfg *cfg)
{
    peer_start(p, cfg);
    node_open(n, cfg);
    n->peer        = p->page->info;
    p->page->other = node_info(n);
    peer_call(p, PEER_CONNECT, 0x504, 0, 0);
    node_connect(n, 0x504);
}

static inline void pair_close(struct node *n, struct peer *p)
{
    node_close(n);
    peer_stop(p);
}

/* ---- a fabric of the test's own ---- */

static char node_dir[256];

static inline int node_rm(const char *path, const struct stat *st, int type,
                          struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int node_group_setup(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    node_main = getpid();
    snprintf(node_dir, sizeof(node_dir), "%s/vhca-test.XXXXXX",
             tmp ? tmp : "/tmp");
    if (mkdtemp(node_dir) == NULL) {
        return -1;
    }
    setenv("VHCA_DIR", node_dir, 1);
    unsetenv("VHCA_FABRIC");
    return 0;
}

static int node_group_teardown(void **state)
{
    (void)state;
    node_child_ends(2);
    return nftw(node_dir, node_rm, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
