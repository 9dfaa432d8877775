/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A process of test_kill: puts, gets and messages with every other one that
 * there is, whatever becomes of them. Nothing in its loop waits; what does not
 * end in time ends the process.
 */

#include "kill_board.h"

#include <support/bytes.h>
#include <support/peers.h>

#include <ucp/api/ucp.h>

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART      (256ul << 10) /* of each memory, for each writer */
#define MSG_MAX   4096ul
#define NUM_RECVS 8
#define WINDOW    4             /* messages that the other has not seen yet */
#define LATEST    20.0          /* seconds that any operation may take */
#define AGAIN     0.02          /* before the next try to connect */

enum step { STEP_PUT, STEP_FLUSH, STEP_GET, STEP_SEND, NUM_STEPS };

/* Another process as it is now, and the one operation with it under way */
struct peer {
    unsigned         rank;
    uint32_t         life;
    ucp_ep_h         ep;
    ucp_rkey_h       rkey;
    uint64_t         addr;     /* my part of its memory */
    bool             failed;
    double           not_before;
    ucs_status_ptr_t request;
    ucs_status_ptr_t closing;
    double           since;    /* request or closing */
    double           well;     /* when something last succeeded */
    enum step        step;
    size_t           len;
    uint64_t         key;      /* of the bytes under way */
    uint64_t         sent;     /* messages, since the endpoint was made */
    uint64_t         got;      /* what the other had got then */
    uint8_t         *out;
    uint8_t         *in;
};

static struct {
    struct kill_board *board;
    struct kill_slot  *slot;
    unsigned           rank;
    ucp_context_h      context;
    ucp_worker_h       worker;
    uint8_t           *mem;
    ucp_mem_h          memh;
    struct hxt_rng     rng;
    struct peer        peer[KILL_PROCS];
    ucs_status_ptr_t   recv[NUM_RECVS];
    uint8_t            msg[NUM_RECVS][MSG_MAX];
} me;

static void ok(ucs_status_t status, const char *what)
{
    HXT_CHECK(status == UCS_OK, "%s: %s", what, ucs_status_string(status));
}

/* ---- beginning and end ---- */

static void show_myself(uint32_t life)
{
    ucp_address_t *address;
    size_t len;
    void *rkey;

    ok(ucp_worker_get_address(me.worker, &address, &len), "address");
    HXT_CHECK(len <= sizeof(me.slot->addr), "an address of %zu bytes", len);
    memcpy(me.slot->addr, address, len);
    me.slot->addr_len = len;
    ucp_worker_release_address(me.worker, address);

    ok(ucp_rkey_pack(me.context, me.memh, &rkey, &len), "rkey_pack");
    HXT_CHECK(len <= sizeof(me.slot->rkey), "a key of %zu bytes", len);
    memcpy(me.slot->rkey, rkey, len);
    me.slot->rkey_len = len;
    ucp_rkey_buffer_release(rkey);

    me.slot->mem_addr = (uintptr_t)me.mem;
    me.slot->failed   = 0;
    me.slot->quiet    = 0;
    me.slot->idle     = 0;
    memset(me.slot->done, 0, sizeof(me.slot->done));
    memset(me.slot->got, 0, sizeof(me.slot->got));
    KILL_SET(me.slot->life, life);
}

static void open_all(uint32_t life)
{
    ucp_params_t params        = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_RMA | UCP_FEATURE_TAG
    };
    ucp_worker_params_t worker = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };
    ucp_mem_map_params_t map   = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .length     = KILL_PROCS * PART
    };
    unsigned i;

    ok(ucp_init(&params, NULL, &me.context), "ucp_init");
    ok(ucp_worker_create(me.context, &worker, &me.worker), "worker_create");
    me.mem      = hxt_alloc(map.length);
    map.address = me.mem;
    ok(ucp_mem_map(me.context, &map, &me.memh), "mem_map");
    for (i = 0; i < KILL_PROCS; i++) {
        me.peer[i].rank = i;
        me.peer[i].out  = hxt_alloc(PART);
        me.peer[i].in   = hxt_alloc(PART);
    }
    show_myself(life);
}

/* ---- endpoints ---- */

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct peer *peer = arg;

    (void)status;
    HXT_CHECK(peer->ep == ep && !peer->failed, "told twice, or of another");
    peer->failed = true;
    me.slot->failed++;
}

/* False: it is being written now, or nobody is there */
static bool read_slot(unsigned rank, struct kill_slot *slot)
{
    struct kill_slot *from = &me.board->slot[rank];

    slot->life = KILL_GET(from->life);
    if (slot->life == 0) {
        return false;
    }
    slot->mem_addr = from->mem_addr;
    slot->rkey_len = from->rkey_len;
    slot->addr_len = from->addr_len;
    memcpy(slot->addr, from->addr, sizeof(slot->addr));
    memcpy(slot->rkey, from->rkey, sizeof(slot->rkey));
    /* not before what was read above */
    return __atomic_fetch_add(&from->life, 0, __ATOMIC_ACQ_REL) == slot->life;
}

static void connect_to(struct peer *peer)
{
    struct kill_slot slot;
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address         = (ucp_address_t*)slot.addr,
        .err_mode        = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = on_error,
        .err_handler.arg = peer
    };
    ucs_status_t status;

    if (hxt_seconds() < peer->not_before || !read_slot(peer->rank, &slot)) {
        return;
    }

    peer->not_before = hxt_seconds() + AGAIN;
    peer->failed     = false;
    status           = ucp_ep_create(me.worker, &params, &peer->ep);
    if (status != UCS_OK) {
        peer->ep = NULL; /* it died in this moment */
        return;
    }

    ok(ucp_ep_rkey_unpack(peer->ep, slot.rkey, &peer->rkey), "rkey_unpack");
    peer->life = slot.life;
    peer->addr = slot.mem_addr + me.rank * PART;
    peer->step = STEP_PUT;
    peer->well = hxt_seconds();
    peer->sent = 0;
    peer->got  = KILL_GET(me.board->slot[peer->rank].got[me.rank]);
}

static void close_peer(struct peer *peer, bool force)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = force ? UCP_EP_CLOSE_FLAG_FORCE : 0
    };

    ucp_rkey_destroy(peer->rkey);
    peer->closing = ucp_ep_close_nbx(peer->ep, &param);
    peer->since   = hxt_seconds();
    peer->rkey    = NULL;
    if (!UCS_PTR_IS_PTR(peer->closing)) {
        peer->closing = NULL;
        peer->ep      = NULL;
    }
}

/* ---- operations ---- */

static void post(struct peer *peer)
{
    ucp_request_param_t param = { .op_attr_mask = 0 };
    struct kill_slot *other   = &me.board->slot[peer->rank];
    uint64_t got              = KILL_GET(other->got[me.rank]);

    if (peer->step == STEP_SEND && peer->sent + peer->got >= got + WINDOW) {
        peer->step = STEP_PUT; /* what waits there takes receive buffers */
    }

    switch (peer->step) {
    case STEP_PUT:
        peer->len = hxt_rng_size(&me.rng, PART);
        peer->key = hxt_rng_next(&me.rng);
        hxt_fill(peer->out, peer->len, peer->key, 0);
        peer->request = ucp_put_nbx(peer->ep, peer->out, peer->len, peer->addr,
                                    peer->rkey, &param);
        break;
    case STEP_FLUSH:
        peer->request = ucp_ep_flush_nbx(peer->ep, &param);
        break;
    case STEP_GET:
        memset(peer->in, 0, peer->len);
        peer->request = ucp_get_nbx(peer->ep, peer->in, peer->len, peer->addr,
                                    peer->rkey, &param);
        break;
    default:
        /* the tag is the key of the bytes, and says who sends them */
        peer->len = hxt_rng_size(&me.rng, MSG_MAX);
        peer->key = hxt_rng_next(&me.rng) / KILL_PROCS * KILL_PROCS + me.rank;
        hxt_fill(peer->out, peer->len, peer->key, 0);
        peer->request = ucp_tag_send_nbx(peer->ep, peer->out, peer->len,
                                         peer->key, &param);
        peer->sent++;
        break;
    }
    peer->since = hxt_seconds();
}

/* What has ended; false: it has not. */
static bool take(ucs_status_ptr_t *request_p, ucs_status_t *status_p)
{
    if (UCS_PTR_IS_PTR(*request_p)) {
        *status_p = ucp_request_check_status(*request_p);
        if (*status_p == UCS_INPROGRESS) {
            return false;
        }
        ucp_request_free(*request_p);
    } else {
        *status_p = UCS_PTR_STATUS(*request_p);
    }
    *request_p = NULL;
    return true;
}

static void ended(struct peer *peer, ucs_status_t status)
{
    if (status != UCS_OK) {
        /* the error handler is called now, or will be */
        HXT_CHECK(UCS_STATUS_IS_ERR(status), "%s", ucs_status_string(status));
        HXT_CHECK(peer->failed || hxt_seconds() - peer->well < LATEST,
                  "operations with process %u (step %u) fail, and its endpoint"
                  " does not: %s", peer->rank, peer->step,
                  ucs_status_string(status));
        return;
    }

    if (peer->step == STEP_GET) {
        hxt_verify("get", peer->in, peer->len, peer->key, 0);
    }
    peer->well = hxt_seconds();
    me.slot->done[peer->rank]++;
    peer->step = (peer->step + 1) % NUM_STEPS;
}

static void check_time(const struct peer *peer, const char *what)
{
    HXT_CHECK(hxt_seconds() - peer->since < LATEST,
              "%s with process %u (step %u, endpoint %s) does not end", what,
              peer->rank, peer->step, peer->failed ? "failed" : "well");
}

/* Who closes an endpoint answers no more on it: only when nobody asks. (An
 * endpoint to which the other side has made a connection is not destroyed by
 * UCP; no operation here makes it do so.) */
static bool all_idle(uint32_t word)
{
    unsigned i;

    for (i = 0; i < KILL_PROCS; i++) {
        if (KILL_GET(me.board->slot[i].idle) != word) {
            return false;
        }
    }
    return true;
}

static void turn_peer(struct peer *peer, uint32_t word)
{
    bool quiet = word & 1;
    ucs_status_t status;

    if (peer->closing != NULL) {
        check_time(peer, "closing");
        if (take(&peer->closing, &status)) {
            peer->ep = NULL;
        }
    } else if (peer->ep == NULL) {
        if (!quiet) {
            connect_to(peer);
        }
    } else if (peer->request != NULL) {
        check_time(peer, "an operation");
        if (take(&peer->request, &status)) {
            ended(peer, status);
        }
    } else if (peer->failed ||
               (KILL_GET(me.board->slot[peer->rank].life) != peer->life)) {
        close_peer(peer, true);
    } else if (quiet) {
        if (all_idle(word)) {
            close_peer(peer, false);
        }
    } else {
        post(peer);
        if (!UCS_PTR_IS_PTR(peer->request)) {
            status        = UCS_PTR_STATUS(peer->request);
            peer->request = NULL;
            ended(peer, status);
        }
    }
}

static void turn_recv(unsigned i)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL
    };
    ucp_tag_recv_info_t info;
    ucs_status_t status;

    if (me.recv[i] != NULL) {
        status = ucp_tag_recv_request_test(me.recv[i], &info);
        if (status == UCS_INPROGRESS) {
            return;
        }
        ucp_request_free(me.recv[i]);
        if (status == UCS_OK) {
            hxt_verify("message", me.msg[i], info.length, info.sender_tag, 0);
            me.slot->got[info.sender_tag % KILL_PROCS]++;
        }
    }

    me.recv[i] = ucp_tag_recv_nbx(me.worker, me.msg[i], MSG_MAX, 0, 0, &param);
    HXT_CHECK(UCS_PTR_IS_PTR(me.recv[i]), "no receive");
}

static void turn(void)
{
    uint32_t word = KILL_GET(me.board->quiet);
    bool in_use = false, busy = false;
    unsigned i;

    for (i = 0; i < KILL_PROCS; i++) {
        if (i != me.rank) {
            turn_peer(&me.peer[i], word);
            in_use |= me.peer[i].ep != NULL;
            busy   |= me.peer[i].request != NULL;
        }
    }
    for (i = 0; i < NUM_RECVS; i++) {
        turn_recv(i);
    }
    for (i = 0; i < 10 && ucp_worker_progress(me.worker) != 0; i++) {
    }
    sched_yield();

    if ((word & 1) && !busy) {
        KILL_SET(me.slot->idle, word);
    }
    if ((word & 1) && !in_use) {
        KILL_SET(me.slot->quiet, word);
    }
    KILL_SET(me.slot->turns, me.slot->turns + 1);
}

void kill_worker(struct kill_board *board, unsigned rank, uint32_t life,
                 uint64_t seed)
{
    unsigned i;

    me.board = board;
    me.slot  = &board->slot[rank];
    me.rank  = rank;
    me.rng   = hxt_rng_derive(seed, rank, life, 0);
    open_all(life);
    while (!KILL_GET(board->stop)) {
        turn();
    }

    for (i = 0; i < NUM_RECVS; i++) {
        ucp_request_cancel(me.worker, me.recv[i]);
        while (ucp_request_check_status(me.recv[i]) == UCS_INPROGRESS) {
            ucp_worker_progress(me.worker);
        }
        ucp_request_free(me.recv[i]);
    }
    ok(ucp_mem_unmap(me.context, me.memh), "mem_unmap");
    ucp_worker_destroy(me.worker);
    ucp_cleanup(me.context);
}
