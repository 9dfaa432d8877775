/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What UCT says of an endpoint that failed: keys and addresses that give no
 * right, a cancelled flush, a peer that is gone. Process 1 only lets its memory
 * be used.
 */

#include <support/bytes.h>
#include <support/peers.h>
#include <support/uct.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define MEM_LEN    65536ul
#define PIECE      4096ul
#define BEHIND     5   /* operations behind the one that fails */
#define NUM_QUEUED 10
#define MAX_FULL   4096
#define WITHIN     5.0 /* seconds: then everybody knows */

/* Where there is no right to go */
enum fault {
    FAULT_KEY_INDEX,   /* a key that is not there */
    FAULT_KEY_VARIANT, /* the low byte: one that is no more */
    FAULT_PAST_END,
    FAULT_READ_ONLY,
    NUM_FAULTS
};

enum op {
    OP_PUT_SHORT,
    OP_PUT_BCOPY,
    OP_PUT_ZCOPY,
    OP_GET_BCOPY,
    OP_GET_ZCOPY,
    NUM_OPS
};

struct target {
    uint64_t   addr;
    uct_rkey_t rkey;
};

/* A completion that knows when it was called among the others */
struct comp {
    uct_completion_t super;
    unsigned         called;
    unsigned         turn;
};

static struct {
    uct_ep_h     ep;
    ucs_status_t status;
    unsigned     calls;
    bool         destroy; /* the endpoint, at once */
    unsigned     turns;   /* of completions */
} seen;

static struct hxt_uct u;
static struct hxt_uct_mem local;
static struct hxt_uct_mem read_only; /* the peer must not write it */
static uct_rkey_bundle_t read_only_rkey;
static uint64_t read_only_addr;

static ucs_status_t on_error(void *arg, uct_ep_h ep, ucs_status_t status)
{
    (void)arg;
    seen.ep     = ep;
    seen.status = status;
    seen.calls++;
    if (seen.destroy) {
        uct_ep_destroy(ep);
    }
    return UCS_OK;
}

static void comp_called(uct_completion_t *self)
{
    struct comp *comp = (struct comp*)self;

    comp->called++;
    comp->turn = seen.turns++;
}

static void comp_init(struct comp *comp)
{
    comp->super.func   = comp_called;
    comp->super.count  = 1;
    comp->super.status = UCS_OK;
    comp->called       = 0;
}

#define WAIT_FOR(_cond, ...) \
    do { \
        double end_ = hxt_seconds() + WITHIN; \
        while (!(_cond)) { \
            HXT_CHECK(hxt_seconds() < end_, __VA_ARGS__); \
            hxt_uct_progress(&u); \
        } \
    } while (0)

/* ---- operations ---- */

static size_t pack(void *dest, void *arg)
{
    memcpy(dest, arg, PIECE);
    return PIECE;
}

static void unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

static ucs_status_t post(uct_ep_h ep, enum op op, const struct target *target,
                         struct comp *comp)
{
    uct_iov_t iov = {
        .buffer = local.addr,
        .length = PIECE,
        .memh   = local.memh,
        .count  = 1
    };
    ssize_t ret;

    switch (op) {
    case OP_PUT_SHORT:
        return uct_ep_put_short(ep, "sixteen letters", 16, target->addr,
                                target->rkey);
    case OP_PUT_BCOPY:
        ret = uct_ep_put_bcopy(ep, pack, local.addr, target->addr,
                               target->rkey);
        return ret < 0 ? (ucs_status_t)ret : UCS_OK;
    case OP_PUT_ZCOPY:
        return uct_ep_put_zcopy(ep, &iov, 1, target->addr, target->rkey,
                                &comp->super);
    case OP_GET_BCOPY:
        return uct_ep_get_bcopy(ep, unpack, local.addr, PIECE, target->addr,
                                target->rkey, &comp->super);
    default:
        return uct_ep_get_zcopy(ep, &iov, 1, target->addr, target->rkey,
                                &comp->super);
    }
}

static bool completes(enum op op)
{
    return op >= OP_PUT_ZCOPY;
}

static struct target right(void)
{
    return (struct target){ u.peer_addr, u.peer_rkey.rkey };
}

static struct target wrong(enum fault fault)
{
    struct target target = right();

    switch (fault) {
    case FAULT_KEY_INDEX:
        target.rkey ^= 0x5a5a00;
        break;
    case FAULT_KEY_VARIANT:
        target.rkey ^= 0x5a;
        break;
    case FAULT_PAST_END:
        target.addr += MEM_LEN - 8;
        break;
    default:
        target = (struct target){ read_only_addr, read_only_rkey.rkey };
        break;
    }
    return target;
}

static void put_and_flush(uct_ep_h ep)
{
    const struct target target = right();
    ucs_status_t status;

    do {
        status = post(ep, OP_PUT_SHORT, &target, NULL);
        hxt_uct_progress(&u);
    } while (status == UCS_ERR_NO_RESOURCE);
    HXT_CHECK(status == UCS_OK, "put: %s", ucs_status_string(status));
    do {
        hxt_uct_progress(&u);
        status = uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, NULL);
    } while (status == UCS_INPROGRESS || status == UCS_ERR_NO_RESOURCE);
    HXT_CHECK(status == UCS_OK, "flush: %s", ucs_status_string(status));
}

/* An endpoint that works */
static uct_ep_h fresh_ep(void)
{
    uct_ep_h ep = hxt_uct_ep_new(&u);

    put_and_flush(ep);
    return ep;
}

/* ---- set up ---- */

static void open_both(struct hxt_proc *proc)
{
    uct_md_attr_t attr;
    struct hxt_blob *blobs;
    uint64_t *mine;

    hxt_uct_on_error(on_error, NULL);
    hxt_uct_open(&u, proc, MEM_LEN, false);
    hxt_uct_mem_reg(&u, PIECE, &local);
    attr           = u.md_attr;
    read_only.len  = MEM_LEN;
    read_only.addr = hxt_alloc(MEM_LEN);

    mine = calloc(1, sizeof(*mine) + attr.rkey_packed_size);
    HXT_CHECK(mine != NULL, "no memory");
    HXT_CHECK(uct_md_mem_reg(u.md, read_only.addr, MEM_LEN,
                             UCT_MD_MEM_ACCESS_LOCAL_READ |
                             UCT_MD_MEM_ACCESS_REMOTE_GET,
                             &read_only.memh) == UCS_OK, "read-only memory");
    mine[0] = (uintptr_t)read_only.addr;
    HXT_CHECK(uct_md_mkey_pack(u.md, read_only.memh, &mine[1]) == UCS_OK,
              "its key");
    blobs = hxt_gather(proc, mine, sizeof(*mine) + attr.rkey_packed_size);
    memcpy(&read_only_addr, blobs[1 - proc->rank].data, sizeof(uint64_t));
    HXT_CHECK(uct_rkey_unpack(u.component,
                              (char*)blobs[1 - proc->rank].data +
                              sizeof(uint64_t), &read_only_rkey) == UCS_OK,
              "the other's key");
    free(blobs);
    free(mine);

    /* Both may have connected at once: then a link more is there, which the
     * next endpoint would take, and which fails for its maker, too */
    put_and_flush(u.ep);
    hxt_barrier(proc);
    if (proc->rank != 0) {
        uct_ep_destroy(u.ep);
        u.ep = NULL;
        hxt_barrier(proc);
        HXT_CHECK(hxt_not_all(read_only.addr, MEM_LEN, 0) < 0,
                  "the read-only memory was written");
    }
}

static void close_both(struct hxt_proc *proc)
{
    if (proc->rank == 0) {
        put_and_flush(u.ep);
        hxt_barrier(proc);
    }
    HXT_CHECK(uct_rkey_release(u.component, &read_only_rkey) == UCS_OK,
              "rkey_release");
    hxt_uct_mem_dereg(&u, &read_only);
    hxt_uct_mem_dereg(&u, &local);
    hxt_uct_close(&u);
}

/* ---- no right to go there ---- */

/* Whoever goes on after a failure hears of it, and nobody waits for ever. */
static void check_failed_ep(uct_ep_h ep, ucs_status_t status)
{
    const struct target target = right();
    uct_pending_req_t req;
    struct comp comp;
    ucs_status_t ret;
    enum op op;

    for (op = 0; op < NUM_OPS; op++) {
        comp_init(&comp);
        ret = post(ep, op, &target, &comp);
        HXT_CHECK(ret == status, "a post on a failed endpoint: %s",
                  ucs_status_string(ret));
        HXT_CHECK(comp.called == 0, "a refused post was completed");
    }
    ret = uct_ep_pending_add(ep, &req, 0);
    HXT_CHECK(ret == UCS_ERR_BUSY, "pending_add: %s", ucs_status_string(ret));
    ret = uct_ep_check(ep, 0, NULL);
    HXT_CHECK(ret == status, "ep_check: %s", ucs_status_string(ret));
    ret = uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, NULL);
    HXT_CHECK(ret == status, "flush: %s", ucs_status_string(ret));

    comp_init(&comp);
    ret = uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, &comp.super);
    if (ret == UCS_INPROGRESS) {
        WAIT_FOR(comp.called != 0, "a cancelled flush does not end");
    } else {
        HXT_CHECK(ret == UCS_OK, "cancelled flush: %s",
                  ucs_status_string(ret));
    }
    HXT_CHECK(seen.calls == 1, "told %u times", seen.calls);
}

static void one_fault(enum fault fault, enum op op, bool destroy)
{
    const struct target bad = wrong(fault), good = right();
    uct_ep_h ep             = fresh_ep();
    struct comp comps[1 + BEHIND], other;
    ucs_status_t status;
    unsigned i, turn = 0;

    memset(&seen, 0, sizeof(seen));
    seen.destroy = destroy;
    comp_init(&other);
    comp_init(&comps[0]);
    status = post(u.ep, OP_PUT_ZCOPY, &good, &other);
    HXT_CHECK(status == UCS_INPROGRESS, "put of another endpoint: %s",
              ucs_status_string(status));
    status = post(ep, op, &bad, &comps[0]);
    HXT_CHECK(status == (completes(op) ? UCS_INPROGRESS : UCS_OK),
              "op %u: %s", op, ucs_status_string(status));
    for (i = 1; i <= BEHIND; i++) {
        comp_init(&comps[i]);
        status = post(ep, i % 2 ? OP_PUT_ZCOPY : OP_GET_ZCOPY, &good,
                      &comps[i]);
        HXT_CHECK(status == UCS_INPROGRESS, "behind it: %s",
                  ucs_status_string(status));
    }

    WAIT_FOR(seen.calls != 0, "fault %u, op %u: nobody was told", fault, op);
    HXT_CHECK(seen.ep == ep, "the wrong endpoint failed");
    HXT_CHECK(UCS_STATUS_IS_ERR(seen.status), "failed with %s",
              ucs_status_string(seen.status));
    for (i = completes(op) ? 0 : 1; i <= BEHIND; i++) {
        WAIT_FOR(comps[i].called != 0, "operation %u is never completed", i);
        HXT_CHECK(comps[i].called == 1, "completed %u times",
                  comps[i].called);
        HXT_CHECK(UCS_STATUS_IS_ERR(comps[i].super.status),
                  "operation %u on a failed endpoint: %s", i,
                  ucs_status_string(comps[i].super.status));
        HXT_CHECK(turn == 0 || comps[i].turn > turn, "out of order");
        turn = comps[i].turn;
    }

    WAIT_FOR(other.called != 0, "another endpoint hangs");
    HXT_CHECK(other.super.status == UCS_OK, "another endpoint: %s",
              ucs_status_string(other.super.status));
    put_and_flush(u.ep);
    if (!destroy) {
        check_failed_ep(ep, seen.status);
        uct_ep_destroy(ep);
    }
    HXT_CHECK(seen.calls == 1, "told %u times", seen.calls);
}

static void run_faults(struct hxt_proc *proc)
{
    enum fault fault;
    enum op op;

    open_both(proc);
    for (fault = 0; proc->rank == 0 && fault < NUM_FAULTS; fault++) {
        for (op = 0; op < NUM_OPS; op++) {
            if (fault != FAULT_READ_ONLY || op <= OP_PUT_ZCOPY) {
                one_fault(fault, op, false);
                one_fault(fault, op, true);
            }
        }
    }
    close_both(proc);
}

static void no_right__each_operation__only_its_endpoint_fails(void **state)
{
    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "faults", .count = 2, .deadline = 100
    });
    assert_true(hxt_stat("cqe.error") > 0);
    assert_int_equal(hxt_stat("objects.qp"), 0);
    assert_int_equal(hxt_stat("objects.umem"), 0);
}

/* ---- what waits ---- */

struct queued {
    uct_pending_req_t super;
    unsigned          number;
};

static unsigned purged;
static struct queued queue[NUM_QUEUED];

static ucs_status_t never(uct_pending_req_t *req)
{
    (void)req;
    hxt_die(__FILE__, __LINE__, "a request of a failed endpoint was given"
            " its turn");
}

static void on_purge(uct_pending_req_t *req, void *arg)
{
    struct queued *queued = (struct queued*)req;

    HXT_CHECK(arg == &purged, "not the argument");
    HXT_CHECK(queued->number == purged, "request %u was purged as number %u",
              queued->number, purged);
    purged++;
}

/* Until it takes no more, then requests that wait; returns how many it took */
static unsigned fill(uct_ep_h ep, struct comp comps[MAX_FULL])
{
    const struct target good = right();
    ucs_status_t status;
    unsigned count = 0, i;

    do {
        HXT_CHECK(count < MAX_FULL, "an endpoint without end");
        comp_init(&comps[count]);
        status = post(ep, OP_PUT_ZCOPY, &good, &comps[count]);
    } while (status == UCS_INPROGRESS && ++count);
    HXT_CHECK(status == UCS_ERR_NO_RESOURCE, "full: %s",
              ucs_status_string(status));

    purged = 0;
    for (i = 0; i < NUM_QUEUED; i++) {
        queue[i] = (struct queued){ .super.func = never, .number = i };
        status   = uct_ep_pending_add(ep, &queue[i].super, 0);
        HXT_CHECK(status == UCS_OK, "pending_add: %s",
                  ucs_status_string(status));
    }
    return count;
}

static void wait_comps(const struct comp *comps, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        WAIT_FOR(comps[i].called != 0, "%u of %u were completed", i, count);
        HXT_CHECK(comps[i].called == 1, "completed twice");
        HXT_CHECK(i == 0 || comps[i].turn == comps[i - 1].turn + 1,
                  "completed out of order");
    }
}

static void run_waiting(struct hxt_proc *proc)
{
    static struct comp comps[MAX_FULL], flush;
    struct target bad;
    ucs_status_t status;
    unsigned count;
    uct_ep_h ep;

    open_both(proc);
    if (proc->rank == 0) {
        /* a failure */
        ep  = fresh_ep();
        bad = wrong(FAULT_KEY_INDEX);
        memset(&seen, 0, sizeof(seen));
        HXT_CHECK(post(ep, OP_PUT_SHORT, &bad, NULL) == UCS_OK, "put");
        count = fill(ep, comps);
        WAIT_FOR(seen.calls != 0, "nobody was told");
        uct_ep_pending_purge(ep, on_purge, &purged);
        HXT_CHECK(purged == NUM_QUEUED, "%u were purged", purged);
        wait_comps(comps, count);
        check_failed_ep(ep, seen.status);
        uct_ep_destroy(ep);

        /* the user's wish */
        ep = fresh_ep();
        memset(&seen, 0, sizeof(seen));
        count = fill(ep, comps);
        comp_init(&flush);
        status = uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, &flush.super);
        HXT_CHECK(status == UCS_INPROGRESS || status == UCS_OK, "cancel: %s",
                  ucs_status_string(status));
        uct_ep_pending_purge(ep, on_purge, &purged);
        HXT_CHECK(purged == NUM_QUEUED, "%u were purged", purged);
        wait_comps(comps, count);
        if (status == UCS_INPROGRESS) {
            WAIT_FOR(flush.called != 0, "a cancelled flush does not end");
        }
        HXT_CHECK(seen.calls == 0, "a cancelled endpoint is no failure");
        HXT_CHECK(UCS_STATUS_IS_ERR(post(ep, OP_PUT_SHORT, &bad, NULL)),
                  "a cancelled endpoint takes a put");
        uct_ep_destroy(ep);
    }
    close_both(proc);
}

static void full_endpoint__fails_or_is_cancelled__purges_in_order(void **state)
{
    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "waiting", .count = 2, .deadline = 60
    });
    assert_int_equal(hxt_stat("objects.qp"), 0);
}

/* ---- a peer that is gone ---- */

static void check_dead_peer(struct hxt_proc *proc, bool to_ep)
{
    ucs_status_t status;
    double end;

    hxt_uct_on_error(on_error, NULL);
    hxt_uct_open(&u, proc, MEM_LEN, to_ep);
    put_and_flush(u.ep);
    hxt_barrier(proc);
    if (proc->rank == 1) {
        _exit(0); /* without a word to anybody */
    }

    end = hxt_seconds() + WITHIN;
    do {
        HXT_CHECK(hxt_seconds() < end, "nothing was said of the peer's end");
        status = uct_ep_check(u.ep, 0, NULL);
        hxt_uct_progress(&u);
    } while (status == UCS_OK);
    WAIT_FOR(seen.calls != 0, "nobody was told");
    HXT_CHECK(status == seen.status, "%s, but %s", ucs_status_string(status),
              ucs_status_string(seen.status));
    uct_ep_destroy(u.ep);
    u.proc->progress = NULL;
    uct_iface_close(u.iface);
    uct_md_close(u.md);
    _exit(0);
}

static void run_dead_peer_iface(struct hxt_proc *proc)
{
    check_dead_peer(proc, false);
}

static void run_dead_peer_ep(struct hxt_proc *proc)
{
    check_dead_peer(proc, true);
}

/* With a socket at once; without one, when the QP has tried often enough */
static void ep_check__the_peer_ended_without_a_word__says_so(void **state)
{
    static const char *const env[] = {
        "UCX_HIXL_TIMEOUT=14", NULL /* 67 ms */
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "dead_peer_iface", .count = 2, .deadline = 60
    });
    hxt_run(&(struct hxt_run){
        .scenario = "dead_peer_ep", .count = 2, .deadline = 60, .env = env
    });
    assert_int_equal(hxt_stat("objects.qp"), 0);
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "faults", run_faults },
        { "waiting", run_waiting },
        { "dead_peer_iface", run_dead_peer_iface },
        { "dead_peer_ep", run_dead_peer_ep },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(no_right__each_operation__only_its_endpoint_fails),
        TEST(full_endpoint__fails_or_is_cancelled__purges_in_order),
        TEST(ep_check__the_peer_ended_without_a_word__says_so)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
