/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Four processes, everybody with everybody and with itself, all kinds of UCP
 * traffic at once in both directions: random sizes at random offsets, every
 * byte checked. Built once a link type, HXT_LINK.
 */

#include <support/bytes.h>
#include <support/peers.h>
#include <support/ucp.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#ifndef HXT_LINK
#define HXT_LINK "roce"
#endif

#define PROCS    4
#define ROUNDS   40
#define BRIEF    10              /* rounds, when run many times */
#define MAX_LEN  (8ul << 20)
#define SLACK    4096ul          /* room for the random offset, and guards */
#define AREA     (MAX_LEN + SLACK)
#define AM_ID    3

/* Inbox bytes that no put may touch */
#define GUARD 0xa5

enum kind { KIND_PUT, KIND_GET, KIND_TAG, KIND_AM, KIND_STREAM, KINDS };

enum tag { TAG_DATA = 1, TAG_WRITTEN, TAG_CHECKED };

/* What one operation of a round looks like: both ends compute it alike. */
struct op {
    size_t   len;
    size_t   offset;    /* of the far buffer: put, get */
    size_t   skew;      /* of the near buffer, against its alignment */
    uint64_t key;
};

struct am_hdr {
    uint32_t round;
    uint32_t from;
};

struct peer {
    uint8_t         *inbox;     /* the peer puts here */
    uint8_t         *bufs[KINDS];
    uint8_t         *tag_recv, *am_recv, *stream_recv;
    ucs_status_ptr_t reqs[8];
    unsigned         num_reqs;
    uint64_t         word_out, word_in;
    bool             am_arrived; /* this round's, in am_recv */
};

struct traffic {
    struct hxt_ucp    u;
    struct hxt_proc  *proc;
    struct peer       peer[PROCS];
    struct hxt_remote inboxes[PROCS][HXT_MAX_PROCS]; /* [writer][owner] */
    struct hxt_remote outboxes[HXT_MAX_PROCS];
    uint8_t          *outbox;
    ucp_mem_h         outbox_memh;
    ucp_mem_h         inbox_memh[PROCS];
    uint32_t          round;
};

static struct traffic traffic;

static struct op op_of(uint64_t seed, uint32_t round, unsigned from,
                       unsigned to, enum kind kind)
{
    struct hxt_rng rng = hxt_rng_derive(seed, round, from * PROCS + to, kind);
    struct op op;

    /* the first rounds take the ends of the range for sure */
    op.len    = round == 0 ? MAX_LEN : round == 1 ? 1 :
                hxt_rng_size(&rng, MAX_LEN);
    op.offset = hxt_rng_range(&rng, 1, SLACK - 1);
    op.skew   = hxt_rng_range(&rng, 0, 63);
    op.key    = hxt_rng_next(&rng);
    return op;
}

static uint64_t tag_of(enum tag what, unsigned from)
{
    return (uint64_t)what << 32 | from;
}

static uint64_t outbox_key(unsigned owner)
{
    return hxt_rng_derive(traffic.proc->seed, owner, 77, 77).state;
}

static void add(struct peer *peer, ucs_status_ptr_t req)
{
    HXT_CHECK(!UCS_PTR_IS_ERR(req), "an operation fails at once: %s",
              ucs_status_string(UCS_PTR_STATUS(req)));
    HXT_CHECK(peer->num_reqs < 8, "too many requests");
    peer->reqs[peer->num_reqs++] = req;
}

static void wait_all(struct peer *peer, const char *what)
{
    unsigned i;

    for (i = 0; i < peer->num_reqs; i++) {
        hxt_ucp_ok(&traffic.u, what, peer->reqs[i]);
    }
    peer->num_reqs = 0;
}

/* ---- active messages ---- */

static void am_received(void *request, ucs_status_t status, size_t length,
                        void *user_data)
{
    struct peer *peer = user_data;

    (void)length;
    HXT_CHECK(status == UCS_OK, "am rendezvous: %s", ucs_status_string(status));
    peer->am_arrived = true;
    ucp_request_free(request);
}

static ucs_status_t am_handler(void *arg, const void *header,
                               size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    struct traffic *t = arg;
    ucp_request_param_t recv_param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv_am   = am_received
    };
    struct am_hdr hdr;
    struct peer *peer;
    struct op op;

    HXT_CHECK(header_length == sizeof(hdr), "am header of %zu bytes",
              header_length);
    memcpy(&hdr, header, sizeof(hdr));
    HXT_CHECK(hdr.from < PROCS && hdr.round == t->round,
              "am of round %u from %u in round %u", hdr.round, hdr.from,
              t->round);
    peer = &t->peer[hdr.from];
    op   = op_of(t->proc->seed, hdr.round, hdr.from, t->proc->rank, KIND_AM);
    HXT_CHECK(length == op.len, "am of %zu and not %zu bytes", length, op.len);
    HXT_CHECK(!peer->am_arrived, "am twice in round %u", hdr.round);

    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        recv_param.user_data = peer;
        HXT_CHECK(UCS_PTR_IS_PTR(ucp_am_recv_data_nbx(t->u.worker, data,
                                                      peer->am_recv, length,
                                                      &recv_param)),
                  "ucp_am_recv_data_nbx");
        return UCS_INPROGRESS;
    }

    memcpy(peer->am_recv, data, length);
    peer->am_arrived = true;
    return UCS_OK;
}

static void set_am_handler(void)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id         = AM_ID,
        .flags      = UCP_AM_FLAG_WHOLE_MSG,
        .cb         = am_handler,
        .arg        = &traffic
    };

    HXT_CHECK(ucp_worker_set_am_recv_handler(traffic.u.worker, &param) ==
                      UCS_OK, "am handler");
}

/* ---- one round ---- */

/* Bytes to send: this round's pattern at a skewed address. */
static uint8_t *filled(struct peer *peer, enum kind kind, const struct op *op)
{
    uint8_t *buf = peer->bufs[kind] + op->skew;

    hxt_fill(buf, op->len, op->key, 0);
    return buf;
}

static void post_receives(unsigned rank)
{
    struct peer *peer = &traffic.peer[rank];
    ucp_request_param_t stream_param = {
        .op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_STREAM_RECV_FLAG_WAITALL
    };
    unsigned me = traffic.proc->rank;
    struct op op;
    size_t len;

    memset(peer->inbox, GUARD, AREA);
    op = op_of(traffic.proc->seed, traffic.round, rank, me, KIND_TAG);
    add(peer, hxt_ucp_irecv(&traffic.u, peer->tag_recv + op.skew, op.len,
                            tag_of(TAG_DATA, rank), NULL));
    op = op_of(traffic.proc->seed, traffic.round, rank, me, KIND_STREAM);
    add(peer, ucp_stream_recv_nbx(traffic.u.ep[rank],
                                  peer->stream_recv + op.skew, op.len, &len,
                                  &stream_param));
}

static void post_sends(unsigned rank)
{
    static ucp_request_param_t param; /* the am header must outlive the call */
    static struct am_hdr hdr;
    struct peer *peer = &traffic.peer[rank];
    ucp_ep_h ep       = traffic.u.ep[rank];
    unsigned me       = traffic.proc->rank;
    uint64_t seed     = traffic.proc->seed;
    const struct hxt_remote *inbox, *outbox;
    struct op op;

    op    = op_of(seed, traffic.round, me, rank, KIND_PUT);
    inbox = &traffic.inboxes[me][rank];
    add(peer, ucp_put_nbx(ep, filled(peer, KIND_PUT, &op), op.len,
                          inbox->addr + op.offset, inbox->rkey, &param));

    op     = op_of(seed, traffic.round, me, rank, KIND_GET);
    outbox = &traffic.outboxes[rank];
    add(peer, ucp_get_nbx(ep, peer->bufs[KIND_GET] + op.skew, op.len,
                          outbox->addr + op.offset, outbox->rkey, &param));

    op = op_of(seed, traffic.round, me, rank, KIND_TAG);
    add(peer, hxt_ucp_isend(&traffic.u, ep, filled(peer, KIND_TAG, &op),
                            op.len, tag_of(TAG_DATA, me), NULL));

    op  = op_of(seed, traffic.round, me, rank, KIND_AM);
    hdr = (struct am_hdr){ .round = traffic.round, .from = me };
    add(peer, ucp_am_send_nbx(ep, AM_ID, &hdr, sizeof(hdr),
                              filled(peer, KIND_AM, &op), op.len, &param));

    op = op_of(seed, traffic.round, me, rank, KIND_STREAM);
    add(peer, ucp_stream_send_nbx(ep, filled(peer, KIND_STREAM, &op), op.len,
                                  &param));
}

static void check_received(unsigned rank)
{
    struct peer *peer = &traffic.peer[rank];
    unsigned me       = traffic.proc->rank;
    uint64_t seed     = traffic.proc->seed;
    struct op op;

    op = op_of(seed, traffic.round, rank, me, KIND_TAG);
    hxt_verify("tag", peer->tag_recv + op.skew, op.len, op.key, 0);
    op = op_of(seed, traffic.round, rank, me, KIND_STREAM);
    hxt_verify("stream", peer->stream_recv + op.skew, op.len, op.key, 0);
    op = op_of(seed, traffic.round, me, rank, KIND_GET);
    hxt_verify("get", peer->bufs[KIND_GET] + op.skew, op.len, outbox_key(rank),
               op.offset);

    while (!peer->am_arrived) {
        hxt_ucp_progress(&traffic.u);
    }
    op = op_of(seed, traffic.round, rank, me, KIND_AM);
    hxt_verify("am", peer->am_recv, op.len, op.key, 0);
}

/* The put, all of it and nothing beside it */
static void check_inbox(unsigned rank)
{
    const uint8_t *inbox = traffic.peer[rank].inbox;
    struct op op         = op_of(traffic.proc->seed, traffic.round, rank,
                                 traffic.proc->rank, KIND_PUT);

    hxt_verify("put", inbox + op.offset, op.len, op.key, 0);
    HXT_CHECK(hxt_not_all(inbox, op.offset, GUARD) < 0 &&
              hxt_not_all(inbox + op.offset + op.len,
                          AREA - op.offset - op.len, GUARD) < 0,
              "the put of round %u from %u wrote outside its range",
              traffic.round, rank);
}

/* Exchanges one word with everybody, in band, while all else goes on. */
static void notify_all(enum tag what)
{
    ucs_status_ptr_t sends[PROCS], recvs[PROCS];
    struct peer *peer;
    unsigned rank;

    for (rank = 0; rank < PROCS; rank++) {
        peer           = &traffic.peer[rank];
        peer->word_out = traffic.round;
        recvs[rank]    = hxt_ucp_irecv(&traffic.u, &peer->word_in, 8,
                                       tag_of(what, rank), NULL);
        sends[rank]    = hxt_ucp_isend(&traffic.u, traffic.u.ep[rank],
                                       &peer->word_out, 8,
                                       tag_of(what, traffic.proc->rank), NULL);
    }
    for (rank = 0; rank < PROCS; rank++) {
        peer = &traffic.peer[rank];
        hxt_ucp_ok(&traffic.u, "notify, send", sends[rank]);
        hxt_ucp_ok(&traffic.u, "notify, receive", recvs[rank]);
        HXT_CHECK(peer->word_in == traffic.round, "word of round %zu in %u",
                  peer->word_in, traffic.round);
    }
}

static void run_round(void)
{
    unsigned rank;

    for (rank = 0; rank < PROCS; rank++) {
        post_receives(rank);
    }
    /* nobody puts before every inbox is clean */
    notify_all(TAG_CHECKED);
    for (rank = 0; rank < PROCS; rank++) {
        post_sends(rank);
    }
    for (rank = 0; rank < PROCS; rank++) {
        wait_all(&traffic.peer[rank], "traffic");
        hxt_ucp_flush(&traffic.u, traffic.u.ep[rank]);
    }
    notify_all(TAG_WRITTEN);
    for (rank = 0; rank < PROCS; rank++) {
        check_inbox(rank);
        check_received(rank);
    }
}

/* ---- the processes ---- */

static void prepare(struct hxt_proc *proc)
{
    unsigned rank, kind, me = proc->rank;
    struct peer *peer;

    traffic.proc = proc;
    hxt_ucp_open(&traffic.u, proc, HXT_UCP_FEATURES);
    set_am_handler();
    hxt_ucp_connect_all(&traffic.u, true);

    traffic.outbox      = hxt_alloc(AREA);
    traffic.outbox_memh = hxt_ucp_map(&traffic.u, traffic.outbox, AREA);
    hxt_fill(traffic.outbox, AREA, outbox_key(me), 0);
    hxt_ucp_expose(&traffic.u, traffic.outbox, AREA, traffic.outbox_memh,
                   traffic.outboxes);

    for (rank = 0; rank < PROCS; rank++) {
        peer        = &traffic.peer[rank];
        peer->inbox = hxt_alloc(AREA);
        for (kind = 0; kind < KINDS; kind++) {
            peer->bufs[kind] = hxt_alloc(AREA);
        }
        peer->tag_recv           = hxt_alloc(AREA);
        peer->am_recv            = hxt_alloc(AREA);
        peer->stream_recv        = hxt_alloc(AREA);
        traffic.inbox_memh[rank] = hxt_ucp_map(&traffic.u, peer->inbox, AREA);
        hxt_ucp_expose(&traffic.u, peer->inbox, AREA, traffic.inbox_memh[rank],
                       traffic.inboxes[rank]);
    }
}

static unsigned num_rounds(void)
{
    return (getenv("HIXL_TEST_BRIEF") != NULL) ? BRIEF : ROUNDS;
}

static void run_traffic(struct hxt_proc *proc)
{
    unsigned rounds = num_rounds(), rank;

    prepare(proc);
    for (traffic.round = 0; traffic.round < rounds; traffic.round++) {
        run_round();
        for (rank = 0; rank < PROCS; rank++) {
            traffic.peer[rank].am_arrived = false;
        }
    }

    for (rank = 0; rank < PROCS; rank++) {
        hxt_ucp_forget(traffic.inboxes[rank]);
    }
    hxt_ucp_forget(traffic.outboxes);
    hxt_barrier(proc);
    for (rank = 0; rank < PROCS; rank++) {
        hxt_ucp_unmap(&traffic.u, traffic.inbox_memh[rank]);
    }
    hxt_ucp_unmap(&traffic.u, traffic.outbox_memh);
    hxt_ucp_close(&traffic.u);
}

static void traffic__four_processes_all_kinds__every_byte_arrives(void **state)
{
    static const char *const env[]   = { "VHCA_LINK=" HXT_LINK, NULL };
    const uint64_t count             = num_rounds() * PROCS * PROCS;
    const struct hxt_expect expect[] = {
        /* every put is a write at least, every get a read */
        { "wqe.rdma_write", HXT_AT_LEAST, count },
        { "wqe.rdma_read", HXT_AT_LEAST, count },
        { "wqe.send", HXT_AT_LEAST, count },
        { "max.key_remote_per_process", HXT_AT_MOST, 256 },
        { "sw.hixl.bounce_put_bytes", HXT_IS, 0 },
        { "sw.hixl.bounce_get_bytes", HXT_IS, 0 },
        { "sw.hixl.bounce_am_bytes", HXT_IS, 0 }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "traffic",
        .count    = PROCS,
        .deadline = 200,
        .env      = env
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "traffic", run_traffic },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
                traffic__four_processes_all_kinds__every_byte_arrives,
                hxt_setup, hxt_teardown)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
