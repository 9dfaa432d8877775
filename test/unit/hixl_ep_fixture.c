/* SPDX-License-Identifier: BSD-3-Clause */

/* Doubles of the device half, the registrations and the connection manager. */

#include "hixl_ep_fixture.h"

#include <mlx5/cq_poll.h>
#include <uct_hixl/hixl_async.h>

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <ucs/async/async.h>
#include <unistd.h>

#define MAX_QPS    64
#define MAX_KEYS   256
#define FIRST_QPN  0x4000
#define REGION_KEY 0x1000

test_env_t env;
int test_bindable;
int test_channel_error;
unsigned test_channel_reads;

static test_qp_t *qps[MAX_QPS];
static unsigned num_qps;
static uint32_t live_keys[MAX_KEYS];
static unsigned num_keys, keys_made;
static unsigned num_objects; /* UARs, CQs, RMPs, keys */
static ucs_async_context_t *async;
static uct_worker_h worker;
static struct hx_dev dev;
static uct_hixl_md_t md;
static struct {
    const char *name;
    uint64_t    value;
} counters[8];
static uct_hixl_region_t region;

/* ---- what else the sources under test refer to ---- */

uct_component_t uct_hixl_component;
extern uct_tl_t uct_hixl_tl;

ucs_status_t
uct_hixl_query_devices(uct_md_h tl_md UCS_V_UNUSED,
                       uct_tl_device_resource_t **tl_devices_p UCS_V_UNUSED,
                       unsigned *num_tl_devices_p UCS_V_UNUSED)
{
    return UCS_ERR_UNSUPPORTED;
}

uct_iface_internal_ops_t uct_hixl_iface_internal_ops = {
    .iface_estimate_perf = uct_base_iface_estimate_perf,
    .iface_vfs_refresh   = (uct_iface_vfs_refresh_func_t)ucs_empty_function,
    .ep_query            = (uct_ep_query_func_t)
                           ucs_empty_function_return_unsupported,
    .ep_invalidate       = (uct_ep_invalidate_func_t)
                           ucs_empty_function_return_unsupported
};

/* ---- registrations: one key for all memory ---- */

uct_hixl_region_t *uct_hixl_mem_bind_pin(uct_hixl_mem_t *mem UCS_V_UNUSED)
{
    if (test_bindable == 0) {
        return NULL;
    }

    if (test_bindable > 0) {
        --test_bindable;
    }
    region.key = REGION_KEY;
    __atomic_fetch_add(&region.pins, 1, __ATOMIC_RELAXED);
    return &region;
}

unsigned test_pins(void)
{
    return region.pins;
}

uint64_t *hx_counter(const char *name)
{
    unsigned i;

    for (i = 0; counters[i].name != NULL; ++i) {
        if (strcmp(counters[i].name, name) == 0) {
            return &counters[i].value;
        }
    }
    counters[i].name = name;
    return &counters[i].value;
}

uint64_t test_counter(const char *name)
{
    return *hx_counter(name);
}

void hx_log_write(enum hx_log_level level UCS_V_UNUSED,
                  const char *file UCS_V_UNUSED, unsigned line UCS_V_UNUSED,
                  const char *func UCS_V_UNUSED, const char *fmt UCS_V_UNUSED,
                  ...)
{
}

/* The one reason that is ever held back: see hx_mkey_create() */
void hx_log_hold_begin(struct hx_log_hold *hold, char *buf, size_t size)
{
    ucs_strncpy_safe(buf, "keys are refused", size);
    hold->buf = buf;
}

void hx_log_hold_end(struct hx_log_hold *hold UCS_V_UNUSED)
{
}

const char *hx_limit_hint(enum hx_limit_use use UCS_V_UNUSED,
                          int err UCS_V_UNUSED, char *buf,
                          size_t size UCS_V_UNUSED)
{
    buf[0] = '\0';
    return buf;
}

const char *hx_cqe_syndrome_str(uint8_t syndrome)
{
    return (syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR) ? "flushed" : "failed";
}

/* ---- objects ---- */

int hx_port_query(struct hx_dev *hxdev UCS_V_UNUSED, uint8_t port_num,
                  uint32_t gid_index UCS_V_UNUSED, struct hx_port *port_p)
{
    *port_p = (struct hx_port) {
        .num        = port_num,
        .active     = true,
        .roce       = true,
        .active_mtu = IBV_MTU_4096
    };
    return 0;
}

int hx_uar_create(struct hx_dev *hxdev UCS_V_UNUSED, struct hx_uar **uar_p)
{
    *uar_p = calloc(1, sizeof(**uar_p));
    ++num_objects;
    return 0;
}

void hx_uar_destroy(struct hx_uar *uar)
{
    free(uar);
    --num_objects;
}

/* The producer's index lives in arm_sn, which nobody else uses here */
int hx_cq_create(struct hx_dev *hxdev UCS_V_UNUSED,
                 struct hx_uar *uar UCS_V_UNUSED, unsigned log_size,
                 struct hx_channel *chan UCS_V_UNUSED, struct hx_cq **cq_p)
{
    struct hx_cq *cq = calloc(1, sizeof(*cq));
    unsigned i;

    cq->ring     = calloc(1ul << log_size, sizeof(struct hx_cqe));
    cq->dbrec    = calloc(2, sizeof(*cq->dbrec));
    cq->mask     = (1u << log_size) - 1;
    cq->log_size = log_size;
    for (i = 0; i <= cq->mask; ++i) {
        ((struct hx_cqe*)cq->ring)[i].op_own = HX_CQE_INIT;
    }
    ++num_objects;
    *cq_p = cq;
    return 0;
}

void hx_cq_destroy(struct hx_cq *cq)
{
    free((void*)(uintptr_t)cq->dbrec);
    free(cq->ring);
    free(cq);
    --num_objects;
}

/* ---- events: the channel is an eventfd, its count the events ---- */

int hx_channel_create(struct hx_dev *hxdev UCS_V_UNUSED,
                      struct hx_channel **chan_p)
{
    struct hx_channel *chan = calloc(1, sizeof(*chan));

    chan->fd = eventfd(0, EFD_NONBLOCK);
    *chan_p  = chan;
    ++num_objects;
    return 0;
}

void hx_channel_destroy(struct hx_channel *chan)
{
    close(chan->fd);
    free(chan);
    --num_objects;
}

int hx_channel_drain(struct hx_channel *chan)
{
    uint64_t count;

    if (test_channel_error != 0) {
        ++test_channel_reads;
        return test_channel_error;
    }
    return (read(chan->fd, &count, sizeof(count)) == sizeof(count)) ?
           (int)count : 0;
}

int hx_cq_set_channel(struct hx_dev *hxdev UCS_V_UNUSED, struct hx_cq *cq,
                      struct hx_channel *chan)
{
    cq->chan = chan;
    return 0;
}

void hx_cq_unset_channel(struct hx_cq *cq)
{
    cq->chan = NULL;
}

static void cq_event(struct hx_cq *cq)
{
    uint64_t one = 1;

    assert_int_equal(write(cq->chan->fd, &one, sizeof(one)), sizeof(one));
    cq->dbrec[1] = 0;
}

/* The arm word says that it is armed; a CQE that nobody took is an event */
void hx_cq_arm(struct hx_cq *cq, bool solicited UCS_V_UNUSED)
{
    cq->dbrec[1] = 1;
    if (test_cq_used(cq) > 0) {
        cq_event(cq);
    }
}

unsigned test_cq_used(const struct hx_cq *cq)
{
    return (cq->arm_sn - be32toh(cq->dbrec[0])) & 0xffffff;
}

static void cq_write(struct hx_cq *cq, uint8_t opcode, uint32_t qpn,
                     uint16_t counter, uint32_t byte_cnt, uint8_t syndrome)
{
    struct hx_cqe *cqe = (struct hx_cqe*)cq->ring + (cq->arm_sn & cq->mask);

    assert_true(test_cq_used(cq) <= cq->mask); /* an overrun otherwise */
    cqe->opcode_qpn  = htobe32(qpn);
    cqe->wqe_counter = htobe16(counter);
    cqe->byte_cnt    = htobe32(byte_cnt);
    cqe->syndrome    = syndrome;
    cqe->op_own      = opcode << 4 | !!(cq->arm_sn & (cq->mask + 1));
    ++cq->arm_sn;
    if (cq->dbrec[1] != 0) {
        cq_event(cq);
    }
}

/* Where the device is in the list */
typedef struct test_rmp {
    struct hx_rmp super;
    uint16_t      taken;   /* WQEs so far */
    uint16_t      next;    /* index */
} test_rmp_t;

int hx_rmp_create(struct hx_dev *hxdev UCS_V_UNUSED,
                  struct hx_uar *uar UCS_V_UNUSED, unsigned log_size,
                  struct hx_rmp **rmp_p)
{
    struct hx_rmp *rmp = calloc(1, sizeof(test_rmp_t));
    struct hx_wqe_recv *wqe;
    uint32_t i;

    wqe        = calloc(1ul << log_size, sizeof(*wqe));
    rmp->ring  = wqe;
    rmp->dbrec = calloc(1, sizeof(*rmp->dbrec));
    rmp->mask  = (1u << log_size) - 1;
    rmp->tail  = rmp->mask;
    for (i = 0; i < rmp->mask; ++i) {
        wqe[i].next.next_wqe_index = htobe16(i + 1);
    }
    ++num_objects;
    *rmp_p = rmp;
    return 0;
}

void hx_rmp_destroy(struct hx_rmp *rmp)
{
    free((void*)(uintptr_t)rmp->dbrec);
    free(rmp->ring);
    free(rmp);
    --num_objects;
}

int hx_mkey_create(struct hx_dev *hxdev UCS_V_UNUSED, void *addr, size_t len,
                   uint32_t access, struct hx_mkey *mkey_p)
{
    assert_int_equal(access, IBV_ACCESS_LOCAL_WRITE);
    if (env.refuse_keys) {
        ++env.keys_refused;
        return -EAGAIN;
    }

    memset(mkey_p, 0, sizeof(*mkey_p));
    mkey_p->umem.addr     = addr;
    mkey_p->umem.len      = len;
    mkey_p->key           = REGION_KEY + ++keys_made;
    live_keys[num_keys++] = mkey_p->key;
    return 0;
}

void hx_mkey_destroy(struct hx_mkey *mkey)
{
    unsigned i;

    for (i = 0; i < num_keys; ++i) {
        if (live_keys[i] == mkey->key) {
            live_keys[i] = live_keys[--num_keys];
            return;
        }
    }
    fail_msg("key 0x%x is not alive", mkey->key);
}

static void key_check(uint32_t key)
{
    unsigned i;

    if (key == REGION_KEY) {
        assert_true(region.pins > 0); /* held while the device uses it */
        return;
    }

    for (i = 0; i < num_keys; ++i) {
        if (live_keys[i] == key) {
            return;
        }
    }
    fail_msg("key 0x%x is not alive", key);
}

/* ---- QPs ---- */

int hx_qp_create(struct hx_dev *hxdev, const struct hx_qp_attr *attr,
                 struct hx_qp **qp_p)
{
    static uint32_t qpn = FIRST_QPN;
    test_qp_t *qp       = calloc(1, sizeof(*qp));
    struct hx_sq *sq    = &qp->super.sq;

    assert_true(num_qps < MAX_QPS);
    sq->ring      = aligned_alloc(64, (size_t)HX_BB_SIZE << attr->log_sq_bb);
    sq->mask      = (1u << attr->log_sq_bb) - 1;
    sq->dbrec     = calloc(1, sizeof(*sq->dbrec));
    sq->uar_reg   = calloc(1, sizeof(uint64_t));
    sq->qpn       = qpn;
    /* Close to where 16-bit indexes wrap */
    sq->pi        = UINT16_MAX - 3;
    sq->ci        = sq->pi;
    qp->hw_ci     = sq->pi;
    qp->super.qpn = qpn++;
    qp->super.dev = hxdev;
    qp->rmp       = attr->rmp;
    qp->send_cq   = attr->send_cq;
    qp->recv_cq   = attr->recv_cq;

    qps[num_qps++] = qp;
    *qp_p          = &qp->super;
    return 0;
}

int hx_qp_init(struct hx_qp *qp UCS_V_UNUSED,
               const struct hx_port *port UCS_V_UNUSED,
               uint16_t pkey_index UCS_V_UNUSED)
{
    return 0;
}

int hx_qp_rtr(struct hx_qp *hxqp, const struct hx_port *port UCS_V_UNUSED,
              const struct hx_qp_path *path)
{
    test_qp_t *qp = ucs_container_of(hxqp, test_qp_t, super);

    qp->remote_qpn = path->remote_qpn;
    return 0;
}

int hx_qp_rts(struct hx_qp *hxqp, const struct hx_qp_path *path UCS_V_UNUSED)
{
    ucs_container_of(hxqp, test_qp_t, super)->connected = 1;
    return 0;
}

int hx_qp_err(struct hx_qp *hxqp)
{
    ucs_container_of(hxqp, test_qp_t, super)->error = 1;
    return 0;
}

void hx_qp_destroy(struct hx_qp *hxqp)
{
    test_qp_t *qp = ucs_container_of(hxqp, test_qp_t, super);
    unsigned i;

    for (i = 0; i < num_qps; ++i) {
        if (qps[i] == qp) {
            break;
        }
    }
    assert_true(i < num_qps);
    env.destroyed_live += qp->connected && !qp->error;
    qps[i] = qps[--num_qps];
    free(hxqp->sq.ring);
    free((void*)(uintptr_t)hxqp->sq.dbrec);
    free(hxqp->sq.uar_reg);
    free(qp);
}

/* ---- executing ---- */

typedef struct test_wqe {
    uint8_t  bytes[256];
    uint8_t  opcode;
    uint8_t  fm_ce_se;
    unsigned ds;
} test_wqe_t;

static unsigned wqe_fetch(const test_qp_t *qp, test_wqe_t *wqe)
{
    const struct hx_sq *sq = &qp->super.sq;
    const struct hx_wqe_ctrl *ctrl;
    unsigned blocks, i;
    uint64_t word;

    ctrl          = (const struct hx_wqe_ctrl*)hx_sq_block(sq, qp->hw_ci);
    word          = be64toh(ctrl->opmod_idx_opcode_qpn_ds);
    wqe->opcode   = word >> 32;
    wqe->ds       = word & 0xff;
    wqe->fm_ce_se = be64toh(ctrl->fm_ce_se_imm) >> 32;
    blocks        = (wqe->ds + 3) / 4;
    assert_int_equal((uint16_t)(word >> 40), qp->hw_ci);
    assert_int_equal((word & 0xffffffff) >> 8, sq->qpn);
    assert_in_range(blocks, 1, HX_WQE_MAX_BB);
    for (i = 0; i < blocks; ++i) {
        memcpy(wqe->bytes + i * HX_BB_SIZE, hx_sq_block(sq, qp->hw_ci + i),
               HX_BB_SIZE);
    }
    return blocks;
}

/* Moves between the WQE's segments from `at` on and flat memory */
static size_t wqe_move(const test_wqe_t *wqe, unsigned at, uint8_t *flat,
                       int to_flat)
{
    size_t total = 0;
    uint32_t len;
    void *addr;

    while (at < wqe->ds * HX_WQE_DS_SIZE) {
        memcpy(&len, wqe->bytes + at, sizeof(len));
        len = be32toh(len);
        if (len & HX_WQE_INLINE) {
            len &= ~HX_WQE_INLINE;
            assert_true(to_flat);
            memcpy(flat + total, wqe->bytes + at + 4, len);
            at += (4 + len + HX_WQE_DS_SIZE - 1) / HX_WQE_DS_SIZE *
                  HX_WQE_DS_SIZE;
        } else {
            struct hx_wqe_data seg;

            memcpy(&seg, wqe->bytes + at, sizeof(seg));
            key_check((uint32_t)be64toh(seg.byte_count_lkey));
            addr = (void*)be64toh(seg.addr);
            assert_true(len > 0);
            if (to_flat) {
                memcpy(flat + total, addr, len);
            } else {
                memcpy(addr, flat + total, len);
            }
            at += HX_WQE_DS_SIZE;
        }
        total += len;
    }
    return total;
}

static test_qp_t *qp_find(uint32_t qpn)
{
    unsigned i;

    for (i = 0; i < num_qps; ++i) {
        if (qps[i]->super.qpn == qpn) {
            return qps[i];
        }
    }
    return NULL;
}

/* A message that has taken a receive WQE */
typedef struct test_message {
    const test_qp_t   *peer;
    test_wqe_t         wqe;
    struct hx_wqe_recv recv;
    uint16_t           slot;
} test_message_t;

static test_message_t held[4];
static unsigned num_held;

static void message_deliver(const test_message_t *msg)
{
    uint64_t count_key = be64toh(msg->recv.data.byte_count_lkey);
    size_t len;

    key_check((uint32_t)count_key);
    len = wqe_move(&msg->wqe, HX_WQE_DS_SIZE,
                   (uint8_t*)be64toh(msg->recv.data.addr), 1);
    assert_true(len <= count_key >> 32);
    cq_write(msg->peer->recv_cq, HX_CQE_OP_RESP_SEND, msg->peer->super.qpn,
             msg->slot, len, 0);
}

void test_deliver_held(void)
{
    while (num_held > 0) {
        message_deliver(&held[--num_held]);
    }
}

uint16_t test_rmp_take(struct hx_rmp *hxrmp)
{
    test_rmp_t *rmp               = ucs_derived_of(hxrmp, test_rmp_t);
    const struct hx_wqe_recv *wqe = (const struct hx_wqe_recv*)hxrmp->ring +
                                    rmp->next;
    uint16_t index                = rmp->next;

    assert_true((uint16_t)(hxrmp->pi - rmp->taken) <= hxrmp->mask);
    rmp->taken++;
    rmp->next = be16toh(wqe->next.next_wqe_index);
    return index;
}

/* 0: no receive is posted */
static int qp_receive(const test_qp_t *qp, const test_qp_t *peer,
                      const test_wqe_t *wqe)
{
    test_rmp_t *rmp    = ucs_derived_of(peer->rmp, test_rmp_t);
    test_message_t msg = {
        .peer = peer,
        .wqe  = *wqe
    };

    /* One WQE stays unposted */
    if ((uint16_t)be32toh(*rmp->super.dbrec) == rmp->taken) {
        return 0;
    }

    msg.slot = test_rmp_take(&rmp->super);
    msg.recv = ((const struct hx_wqe_recv*)rmp->super.ring)[msg.slot];
    if (!qp->hold) {
        message_deliver(&msg);
    } else {
        assert_true(num_held < ucs_static_array_size(held));
        held[num_held++] = msg;
    }
    return 1;
}

/* Returns 0 if it must be tried again later */
static int wqe_execute(test_qp_t *qp, const test_wqe_t *wqe)
{
    test_qp_t *peer = qp_find(qp->remote_qpn);
    struct hx_wqe_raddr raddr;

    assert_non_null(peer);
    memcpy(&raddr, wqe->bytes + HX_WQE_DS_SIZE, sizeof(raddr));
    switch (wqe->opcode) {
    case HX_WQE_OP_NOP:
        assert_int_equal(wqe->ds, 1);
        return 1;
    case HX_WQE_OP_RDMA_WRITE:
    case HX_WQE_OP_RDMA_READ:
        if (wqe->ds > 2) {
            assert_int_equal(be64toh(raddr.rkey_rsvd) >> 32, TEST_RKEY);
        }
        wqe_move(wqe, 2 * HX_WQE_DS_SIZE, (uint8_t*)be64toh(raddr.raddr),
                 wqe->opcode == HX_WQE_OP_RDMA_WRITE);
        return 1;
    case HX_WQE_OP_SEND:
        return qp_receive(qp, peer, wqe);
    default:
        fail_msg("opcode 0x%x", wqe->opcode);
        return 0;
    }
}

unsigned test_qp_step(test_qp_t *qp, unsigned max)
{
    unsigned count = 0;
    test_wqe_t wqe;
    unsigned blocks;

    if (qp->hw_ci != qp->super.sq.pi) {
        assert_true(qp->connected);
        assert_int_equal((uint16_t)be32toh(*qp->super.sq.dbrec),
                         qp->super.sq.pi);
    }

    while ((count < max) && (qp->hw_ci != qp->super.sq.pi)) {
        blocks = wqe_fetch(qp, &wqe);
        if (qp->error || (qp->fail_syndrome != 0)) {
            cq_write(qp->send_cq, HX_CQE_OP_REQ_ERR, qp->super.qpn, qp->hw_ci,
                     0, qp->error ? MLX5_CQE_SYNDROME_WR_FLUSH_ERR :
                     qp->fail_syndrome);
            qp->error         = 1;
            qp->fail_syndrome = 0;
        } else {
            if (!wqe_execute(qp, &wqe)) {
                break;
            }
            ++qp->executed;
            ++qp->count[wqe.opcode];
            qp->last_fm_ce_se = wqe.fm_ce_se;
            if (wqe.fm_ce_se & HX_WQE_CQ_UPDATE) {
                cq_write(qp->send_cq, HX_CQE_OP_REQ, qp->super.qpn, qp->hw_ci,
                         0, 0);
            }
        }
        qp->hw_ci += blocks;
        ++count;
    }
    return count;
}

unsigned test_step(unsigned max)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < num_qps; ++i) {
        count += test_qp_step(qps[i], max);
    }
    return count;
}

/* ---- connection manager: links without sockets ---- */

ucs_status_t uct_hixl_cm_open(uct_hixl_iface_t *iface UCS_V_UNUSED)
{
    return UCS_OK;
}

void uct_hixl_cm_close(uct_hixl_iface_t *iface UCS_V_UNUSED)
{
}

size_t uct_hixl_cm_address_length(const uct_hixl_iface_t *iface UCS_V_UNUSED)
{
    return 1;
}

void uct_hixl_cm_get_address(const uct_hixl_iface_t *iface UCS_V_UNUSED,
                             uct_iface_addr_t *addr)
{
    *(uint8_t*)addr = 1;
}

ucs_status_t
uct_hixl_cm_connect(uct_hixl_iface_t *iface, uct_hixl_ep_t *ep UCS_V_UNUSED,
                    const uct_device_addr_t *dev_addr UCS_V_UNUSED,
                    const uct_iface_addr_t *iface_addr UCS_V_UNUSED,
                    uct_hixl_link_t **link_p, int *ready_p)
{
    ucs_status_t status = uct_hixl_link_create(iface, link_p);

    assert_int_equal(status, UCS_OK);
    (*link_p)->cm = (struct uct_hixl_cm_link*)&env;
    *ready_p      = 0;
    return UCS_OK;
}

static void link_check(uct_hixl_link_t *link)
{
    assert_null(link->ep);
    assert_true(ucs_queue_is_empty(&link->outstanding));
    assert_null(uct_hixl_qp_table_get(&link->iface->qps, link->qp->qpn));
}

void uct_hixl_cm_release(uct_hixl_link_t *link)
{
    link_check(link);
    ++env.released;
    uct_hixl_link_destroy(link);
}

void uct_hixl_cm_abort(uct_hixl_link_t *link)
{
    link_check(link);
    ++env.aborted;
    uct_hixl_link_destroy(link);
}

unsigned uct_hixl_cm_progress(uct_hixl_iface_t *iface)
{
    iface->cm_events = 0;
    return 0;
}

/* ---- the device's end: tests set dev->gone and cm_events themselves ---- */

ucs_status_t uct_hixl_async_watch(uct_hixl_iface_t *iface UCS_V_UNUSED)
{
    return UCS_OK;
}

void uct_hixl_async_unwatch(uct_hixl_iface_t *iface UCS_V_UNUSED)
{
}

/* ---- the environment of a test ---- */

static ucs_status_t err_handler(void *arg UCS_V_UNUSED, uct_ep_h ep,
                                ucs_status_t status)
{
    ++env.err_calls;
    env.err_ep     = ep;
    env.err_status = status;
    return UCS_OK;
}

int test_setup(void **state)
{
    (void)state;
    memset(&env, 0, sizeof(env));
    memset(counters, 0, sizeof(counters));
    dev.gone      = false;
    test_bindable      = -1;
    test_channel_error = 0;
    test_channel_reads = 0;
    env.config    = (uct_hixl_iface_config_t) {
        .super.failure     = UCS_LOG_LEVEL_DEBUG,
        .super.max_num_eps = SIZE_MAX,
        .seg_size          = 1024,
        .tx_queue_len      = 64,
        .rx_queue_len      = 64,
        .tx_cq_len         = 256,
        .tx_moderation     = 16,
        .max_inline        = 220,
        .max_iov           = 14,
        .tx_mpool          = {.max_bufs = UINT_MAX},
        .rx_mpool          = {.max_bufs = UINT_MAX},
        .gid_index         = UCS_ULUNITS_AUTO,
        .timeout           = 18,
        .retry_count       = 7,
        .rnr_retry         = 7
    };

    dev = (struct hx_dev) {
        .name = "mlx5_0",
        .caps = {
            .log_max_qp_sz = 15,
            .log_max_cq_sz = 22,
            .log_max_msg   = 30,
            .num_ports     = 1
        }
    };
    md.dev = &dev;
    assert_int_equal(ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async),
                     UCS_OK);
    assert_int_equal(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker),
                     UCS_OK);
    return 0;
}

ucs_status_t test_try_open(void)
{
    ucs_status_t status;

    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE |
                                UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                                UCT_IFACE_PARAM_FIELD_ERR_HANDLER,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.dev_name = "mlx5_0:1",
        .rx_headroom          = env.rx_headroom,
        .err_handler          = err_handler
    };

    status = uct_hixl_tl.iface_open(&md.super, worker, &params,
                                    &env.config.super, &env.tl_iface);
    if (status == UCS_OK) {
        env.iface = ucs_derived_of(env.tl_iface, uct_hixl_iface_t);
    }
    return status;
}

void test_open(void)
{
    assert_int_equal(test_try_open(), UCS_OK);
}

int test_teardown(void **state)
{
    uct_hixl_ep_t *ep, *tmp;

    (void)state;
    if (env.tl_iface != NULL) {
        test_bindable = -1;
        ucs_list_for_each_safe(ep, tmp, &env.iface->ep_list, list) {
            uct_ep_destroy(&ep->super.super);
        }
        uct_iface_close(env.tl_iface);
    }
    uct_worker_destroy(worker);
    ucs_async_context_destroy(async);
    assert_int_equal(num_qps, 0);
    assert_int_equal(num_keys, 0);
    assert_int_equal(num_objects, 0);
    assert_int_equal(region.pins, 0);
    return 0;
}

uct_hixl_ep_t *test_ep(uct_ep_h ep)
{
    return ucs_derived_of(ep, uct_hixl_ep_t);
}

test_qp_t *test_ep_qp(uct_ep_h ep)
{
    return ucs_container_of(test_ep(ep)->link->qp, test_qp_t, super);
}

static void connect_to(uct_ep_h ep, uct_ep_h peer)
{
    uct_hixl_device_addr_t dev_addr;
    uct_hixl_qp_addr_t addr;

    uct_hixl_iface_fill_device_addr(env.iface, &dev_addr);
    assert_int_equal(uct_ep_get_address(peer, (uct_ep_addr_t*)&addr), UCS_OK);
    assert_int_equal(uct_ep_connect_to_ep(ep, (uct_device_addr_t*)&dev_addr,
                                          (uct_ep_addr_t*)&addr), UCS_OK);
}

uct_ep_h test_ep_new(uct_ep_h peer)
{
    const uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE,
        .iface      = env.tl_iface
    };
    uct_ep_h ep;

    assert_int_equal(uct_ep_create(&params, &ep), UCS_OK);
    connect_to(ep, (peer == NULL) ? ep : peer);
    return ep;
}

uct_ep_h test_ep_new_to_iface(void)
{
    uct_hixl_device_addr_t dev_addr;
    uint8_t iface_addr           = 1;
    const uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE |
                      UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = env.tl_iface,
        .dev_addr   = (const uct_device_addr_t*)&dev_addr,
        .iface_addr = (const uct_iface_addr_t*)&iface_addr
    };
    uct_ep_h ep;

    uct_hixl_iface_fill_device_addr(env.iface, &dev_addr);
    assert_int_equal(uct_ep_create(&params, &ep), UCS_OK);
    return ep;
}

void test_ep_ready(uct_ep_h ep, uct_ep_h peer)
{
    connect_to(ep, (peer == NULL) ? ep : peer);
}

unsigned test_progress(void)
{
    unsigned total = 0;
    unsigned count;

    do {
        count  = uct_iface_progress(env.tl_iface);
        total += count;
    } while ((count > 0) || (env.iface->tx.todo & UCT_HIXL_TODO_DRAIN));
    return total;
}

void test_run(void)
{
    unsigned idle = 0;

    /* Twice nothing: what the first progress posted is executed by then */
    while (idle < 2) {
        idle = (test_step(UINT_MAX) + test_progress() == 0) ? idle + 1 : 0;
    }
}

static void comp_cb(uct_completion_t *self)
{
    test_comp_t *comp = ucs_container_of(self, test_comp_t, super);

    ++comp->calls;
    comp->status = self->status;
}

void test_comp_init(test_comp_t *comp)
{
    *comp = (test_comp_t) {
        .super = {
            .func   = comp_cb,
            .count  = 1,
            .status = UCS_OK
        }
    };
}

uct_iov_t test_iov(void *buffer, size_t length)
{
    static uct_hixl_mem_t mem; /* never bound: each pin asks anew */

    return (uct_iov_t) {
        .buffer = buffer,
        .length = length,
        .memh   = &mem,
        .count  = 1
    };
}

static ucs_status_t req_func(uct_pending_req_t *self)
{
    test_req_t *req = ucs_container_of(self, test_req_t, super);
    ucs_status_t status;

    ++req->calls;
    status = req->run(req);
    if (status == UCS_OK) {
        req->order = ++env.order;
    }
    return status;
}

void test_req_init(test_req_t *req, uct_ep_h ep,
                   ucs_status_t (*run)(test_req_t *req), void *arg)
{
    *req = (test_req_t) {
        .super.func = req_func,
        .run        = run,
        .ep         = ep,
        .arg        = arg
    };
}

void test_fill(void *buffer, size_t length, unsigned seed)
{
    uint8_t *bytes = buffer;
    size_t i;

    for (i = 0; i < length; ++i) {
        bytes[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + seed);
    }
}
