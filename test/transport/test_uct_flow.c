/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the UCT API says of the order of things: flush, fence, the pending
 * queue, a link that is not up yet; and the memory that the memory domain
 * allocates.
 */

#include <support/bytes.h>
#include <support/peers.h>
#include <support/uct.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MEM_LEN  (8ul << 20)
#define AM_ID    9
#define SEQ_LEN  64
#define REQUESTS 20

static struct hxt_uct u;

/* ---- messages that count ---- */

static uint32_t am_received;

static ucs_status_t am_handler(void *arg, void *data, size_t length,
                               unsigned flags)
{
    uint32_t seq;

    (void)arg;
    (void)flags;
    HXT_CHECK(length == SEQ_LEN, "a message of %zu bytes", length);
    memcpy(&seq, data, sizeof(seq));
    HXT_CHECK(seq == am_received, "message %u where %u comes next", seq,
              am_received);
    am_received++;
    return UCS_OK;
}

static size_t pack_seq(void *dest, void *arg)
{
    memset(dest, 0, SEQ_LEN);
    memcpy(dest, arg, sizeof(uint32_t));
    return SEQ_LEN;
}

static ucs_status_t send_seq(uint32_t seq)
{
    ssize_t ret = uct_ep_am_bcopy(u.ep, AM_ID, pack_seq, &seq, 0);

    HXT_CHECK(ret == SEQ_LEN || ret == UCS_ERR_NO_RESOURCE, "am_bcopy: %s",
              ucs_status_string((ucs_status_t)ret));
    return ret < 0 ? (ucs_status_t)ret : UCS_OK;
}

/* Sends until nothing more is taken; returns the next number. */
static uint32_t send_until_full(uint32_t seq)
{
    uint32_t first = seq;

    while (send_seq(seq) == UCS_OK) {
        seq++;
        HXT_CHECK(seq - first < 1000000, "a send queue without an end");
    }
    return seq;
}

/* What stands at `seq_p` says how many messages the other must get. */
static void expect_messages(uint32_t sent)
{
    struct hxt_blob *blobs = hxt_gather(u.proc, &sent, sizeof(sent));
    uint32_t expected;

    memcpy(&expected, blobs[1 - u.proc->rank].data, sizeof(expected));
    free(blobs);
    while (am_received < expected) {
        hxt_uct_progress(&u);
    }
    hxt_barrier(u.proc);
    HXT_CHECK(am_received == expected, "%u messages and not %u", am_received,
              expected);
}

static void begin(struct hxt_proc *proc, bool to_ep)
{
    hxt_uct_open(&u, proc, MEM_LEN, to_ep);
    HXT_CHECK(uct_iface_set_am_handler(u.iface, AM_ID, am_handler, NULL, 0) ==
                      UCS_OK, "am handler");
    am_received = 0;
    hxt_barrier(proc);
}

/* ---- pending ---- */

struct request {
    uct_pending_req_t super;
    uint32_t          seq;
    bool              sent;
    unsigned          order;    /* of the callbacks, from 1 */
    unsigned          refused;  /* times that the callback found no room */
};

static unsigned callbacks;

static ucs_status_t pending_send(uct_pending_req_t *self)
{
    struct request *req = (struct request*)self;
    ucs_status_t status = send_seq(req->seq);

    if (status == UCS_OK) {
        HXT_CHECK(!req->sent, "request %u is called twice", req->seq);
        req->sent  = true;
        req->order = ++callbacks;
    } else {
        req->refused++;
    }
    return status;
}

/* Adds one, or sends it if there is room after all; true if it was added. */
static bool add_or_send(struct request *req, uint32_t seq)
{
    ucs_status_t status;

    *req = (struct request){ .super.func = pending_send, .seq = seq };
    status = uct_ep_pending_add(u.ep, &req->super, 0);
    if (status == UCS_OK) {
        return true;
    }
    HXT_CHECK(status == UCS_ERR_BUSY, "pending_add: %s",
              ucs_status_string(status));
    HXT_CHECK(send_seq(seq) == UCS_OK, "busy, and yet no room");
    req->sent  = true;
    req->order = ++callbacks;
    return false;
}

static uint32_t fill_and_wait(uint32_t seq)
{
    static struct request reqs[REQUESTS];
    unsigned i, added = 0;

    callbacks = 0;
    seq       = send_until_full(seq);
    for (i = 0; i < REQUESTS; i++) {
        added += add_or_send(&reqs[i], seq + i);
    }
    HXT_CHECK(added > 0, "the queue was full and nothing waits");
    /* nothing overtakes what waits */
    HXT_CHECK(send_seq(0) == UCS_ERR_NO_RESOURCE,
              "a send passes those that wait");
    hxt_barrier_idle(u.proc);

    while (callbacks < REQUESTS) {
        hxt_uct_progress(&u);
    }
    for (i = 0; i < REQUESTS; i++) {
        HXT_CHECK(reqs[i].sent && reqs[i].order == i + 1,
                  "request %u was number %u", i, reqs[i].order);
    }
    return seq + REQUESTS;
}

static void pending(struct hxt_proc *proc, bool to_ep)
{
    uint32_t seq = 0;
    unsigned i;

    begin(proc, to_ep);
    for (i = 0; i < 20; i++) {
        if (proc->rank == 0) {
            seq = fill_and_wait(seq);
            hxt_uct_flush(&u);
        } else {
            hxt_barrier_idle(proc); /* who receives does not, until then */
        }
        hxt_barrier(proc);
    }
    expect_messages(seq);
    hxt_uct_close(&u);
}

static void run_pending_iface(struct hxt_proc *proc)
{
    pending(proc, false);
}

static void run_pending_ep(struct hxt_proc *proc)
{
    pending(proc, true);
}

/* ---- purge ---- */

static unsigned purged;

static void purge_cb(uct_pending_req_t *self, void *arg)
{
    struct request *req = (struct request*)self;

    HXT_CHECK(arg == &purged, "purge's argument");
    HXT_CHECK(!req->sent, "request %u was sent before", req->seq);
    req->order = ++purged;
}

static void run_purge(struct hxt_proc *proc)
{
    static struct request reqs[REQUESTS];
    unsigned i, added = 0;
    uint32_t seq = 0;

    begin(proc, false);
    if (proc->rank == 0) {
        seq = send_until_full(0);
        for (i = 0; i < REQUESTS; i++) {
            if (!add_or_send(&reqs[added], seq)) {
                seq++;
            } else {
                added++;
            }
        }
        HXT_CHECK(added > 0, "the queue was full and nothing waits");
        uct_ep_pending_purge(u.ep, purge_cb, &purged);
        HXT_CHECK(purged == added, "%u of %u purged", purged, added);
        for (i = 0; i < added; i++) {
            HXT_CHECK(reqs[i].order == i + 1, "request %u purged as number %u",
                      i, reqs[i].order);
        }
        hxt_barrier_idle(proc);
        /* what is purged never runs, and nothing stands in the way any more */
        while (send_seq(seq) != UCS_OK) {
            hxt_uct_progress(&u);
        }
        seq++;
        hxt_uct_flush(&u);
        for (i = 0; i < added; i++) {
            HXT_CHECK(!reqs[i].sent, "a purged request was sent");
        }
    } else {
        hxt_barrier_idle(proc);
    }
    expect_messages(seq);
    hxt_uct_close(&u);
}

/* ---- a link that is not up yet ---- */

/* The first thing after ep_create: it must not be lost, and not overtaken. */
static void run_early(struct hxt_proc *proc)
{
    static struct request reqs[REQUESTS];
    uint32_t seq = 0;
    unsigned i;

    hxt_uct_open(&u, proc, MEM_LEN, false);
    HXT_CHECK(uct_iface_set_am_handler(u.iface, AM_ID, am_handler, NULL, 0) ==
                      UCS_OK, "am handler");
    if (proc->rank == 0) {
        callbacks = 0;
        for (i = 0; i < REQUESTS; i++) {
            add_or_send(&reqs[i], seq++);
        }
        while (callbacks < REQUESTS) {
            hxt_uct_progress(&u);
        }
    }
    expect_messages(seq);
    hxt_uct_close(&u);
}

/* ---- flush ---- */

static void put_all(uint64_t key, struct hxt_uct_mem *local)
{
    struct hxt_uct_comp comp;
    size_t part = MEM_LEN / 16, pos;
    ucs_status_t status;

    hxt_fill(local->addr, MEM_LEN, key, 0);
    for (pos = 0; pos < MEM_LEN; pos += part) {
        uct_iov_t iov = {
            .buffer = local->addr + pos,
            .length = part,
            .memh   = local->memh,
            .count  = 1
        };

        do {
            hxt_uct_comp_init(&comp);
            status = uct_ep_put_zcopy(u.ep, &iov, 1, u.peer_addr + pos,
                                      u.peer_rkey.rkey, NULL);
            hxt_uct_progress(&u);
        } while (status == UCS_ERR_NO_RESOURCE);
        HXT_CHECK(status == UCS_OK || status == UCS_INPROGRESS,
                  "put_zcopy: %s", ucs_status_string(status));
    }
}

/* The three flushes there are; each means that the peer has the bytes. */
static void flush_by(unsigned way)
{
    struct hxt_uct_comp comp;
    ucs_status_t status;

    if (way == 0) {
        hxt_uct_flush(&u);
        return;
    }
    do {
        hxt_uct_comp_init(&comp);
        status = way == 1 ? uct_ep_flush(u.ep, UCT_FLUSH_FLAG_LOCAL,
                                         &comp.super) :
                            uct_iface_flush(u.iface, UCT_FLUSH_FLAG_LOCAL,
                                            NULL);
        if (way == 2 || status == UCS_ERR_NO_RESOURCE) {
            hxt_uct_progress(&u);
        }
    } while (status == UCS_ERR_NO_RESOURCE ||
             (way == 2 && status == UCS_INPROGRESS));
    hxt_uct_comp_wait(&u, &comp, status, "flush");
}

static void run_flush(struct hxt_proc *proc)
{
    struct hxt_uct_mem local;
    unsigned way;

    begin(proc, false);
    hxt_uct_mem_reg(&u, MEM_LEN, &local);
    for (way = 0; way < 3; way++) {
        if (proc->rank == 0) {
            put_all(way + 1, &local);
            flush_by(way);
        }
        hxt_barrier_idle(proc); /* without progress: it must be there */
        if (proc->rank == 1) {
            hxt_verify("flushed put", u.mem.addr, MEM_LEN, way + 1, 0);
        }
        hxt_barrier(proc);
    }
    hxt_uct_mem_dereg(&u, &local);
    hxt_uct_close(&u);
}

/* ---- fence: what comes after it lands after what came before ---- */

static void put_word(uint64_t value, struct hxt_uct_mem *local, bool zcopy)
{
    uct_iov_t iov = {
        .buffer = local->addr,
        .length = 8,
        .memh   = local->memh,
        .count  = 1
    };
    struct hxt_uct_comp comp;
    ucs_status_t status;

    do {
        hxt_uct_comp_init(&comp);
        memcpy(local->addr, &value, 8);
        status = zcopy ? uct_ep_put_zcopy(u.ep, &iov, 1, u.peer_addr,
                                          u.peer_rkey.rkey, &comp.super) :
                         uct_ep_put_short(u.ep, &value, 8, u.peer_addr,
                                          u.peer_rkey.rkey);
        if (status == UCS_ERR_NO_RESOURCE) {
            hxt_uct_progress(&u);
        }
    } while (status == UCS_ERR_NO_RESOURCE);
    hxt_uct_comp_wait(&u, &comp, status, "put");
}

static void run_fence(struct hxt_proc *proc)
{
    struct hxt_uct_mem local;
    uint64_t i, word;

    begin(proc, false);
    hxt_uct_mem_reg(&u, 4096, &local);
    if (proc->rank == 0) {
        for (i = 1; i <= 1000; i++) {
            put_word(i, &local, i % 2);
            HXT_CHECK((i % 3 ? uct_ep_fence(u.ep, 0) :
                               uct_iface_fence(u.iface, 0)) == UCS_OK,
                      "fence");
        }
        hxt_uct_flush(&u);
    }
    hxt_barrier(proc);
    if (proc->rank == 1) {
        memcpy(&word, u.mem.addr, 8);
        HXT_CHECK(word == 1000, "the last of the fenced puts left %zu", word);
    }
    hxt_uct_mem_dereg(&u, &local);
    hxt_uct_close(&u);
}

/* ---- memory that the memory domain allocates ---- */

static void use_allocated(struct hxt_proc *proc, size_t len)
{
    const uct_alloc_method_t method    = UCT_ALLOC_METHOD_MD;
    const uct_mem_alloc_params_t params = {
        .field_mask = UCT_MEM_ALLOC_PARAM_FIELD_FLAGS |
                      UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE |
                      UCT_MEM_ALLOC_PARAM_FIELD_MDS |
                      UCT_MEM_ALLOC_PARAM_FIELD_NAME,
        .flags      = UCT_MD_MEM_ACCESS_ALL,
        .mem_type   = UCS_MEMORY_TYPE_HOST,
        .mds        = { .mds = &u.md, .count = 1 },
        .name       = "test"
    };
    uct_allocated_memory_t mem;
    struct hxt_uct_comp comp;
    ucs_status_t status;
    uct_iov_t iov;

    status = uct_mem_alloc(len, &method, 1, &params, &mem);
    HXT_CHECK(status == UCS_OK, "uct_mem_alloc of %zu bytes: %s", len,
              ucs_status_string(status));
    HXT_CHECK(mem.length >= len && (uintptr_t)mem.address % 4096 == 0,
              "%zu bytes at %p for %zu", mem.length, mem.address, len);
    HXT_CHECK(mem.method == UCT_ALLOC_METHOD_MD && mem.memh != NULL,
              "not by the memory domain");

    hxt_fill(mem.address, mem.length, len, 0);
    hxt_verify("allocated", mem.address, mem.length, len, 0);
    iov = (uct_iov_t){ .buffer = mem.address, .length = len,
                       .memh = mem.memh, .count = 1 };
    do {
        hxt_uct_comp_init(&comp);
        status = uct_ep_put_zcopy(u.ep, &iov, 1,
                                  u.peer_addr + proc->rank * 64,
                                  u.peer_rkey.rkey, &comp.super);
        hxt_uct_progress(&u);
    } while (status == UCS_ERR_NO_RESOURCE);
    hxt_uct_comp_wait(&u, &comp, status, "put from allocated memory");
    hxt_uct_flush(&u);
    HXT_CHECK(uct_mem_free(&mem) == UCS_OK, "uct_mem_free");
}

static void run_alloc(struct hxt_proc *proc)
{
    static const size_t sizes[] = { 1, 4095, 4096, 4097, 65536, 2 << 20,
                                    (4 << 20) - 5 };
    unsigned i;

    begin(proc, false);
    if (!(u.md_attr.cap.flags & UCT_MD_FLAG_ALLOC)) {
        HXT_CHECK(hxt_foreign(), "the memory domain allocates nothing");
        hxt_uct_close(&u);
        return;
    }
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (proc->rank == 0) {
            use_allocated(proc, sizes[i]);
        }
        hxt_barrier(proc);
        if (proc->rank == 1) {
            hxt_verify("put from allocated memory", u.mem.addr, sizes[i],
                       sizes[i], 0);
        }
        hxt_barrier(proc);
    }
    hxt_uct_close(&u);
}

/* ---- the tests ---- */

static void run_two(const char *scenario)
{
    hxt_run(&(struct hxt_run){
        .scenario = scenario, .count = 2, .deadline = 60
    });
    hxt_expect(NULL, 0);
}

static void pending_add__queue_full_to_iface__in_order(void **state)
{
    (void)state;
    run_two("pending_iface");
}

static void pending_add__queue_full_to_ep__in_order(void **state)
{
    (void)state;
    run_two("pending_ep");
}

static void pending_purge__queue_full__in_order_and_never_sent(void **state)
{
    (void)state;
    run_two("purge");
}

static void pending_add__link_not_up__sent_once_it_is(void **state)
{
    (void)state;
    run_two("early");
}

static void flush__each_kind__bytes_are_at_the_peer(void **state)
{
    (void)state;
    if (hxt_foreign()) {
        skip(); /* others write in the peer's progress */
    }
    run_two("flush");
}

static void fence__between_puts__the_last_one_stays(void **state)
{
    (void)state;
    if (hxt_foreign()) {
        skip();
    }
    run_two("fence");
}

static void mem_alloc__all_sizes__usable_for_zero_copy(void **state)
{
    (void)state;
    run_two("alloc");
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "pending_iface", run_pending_iface },
        { "pending_ep", run_pending_ep },
        { "purge", run_purge },
        { "early", run_early },
        { "flush", run_flush },
        { "fence", run_fence },
        { "alloc", run_alloc },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(pending_add__queue_full_to_iface__in_order),
        TEST(pending_add__queue_full_to_ep__in_order),
        TEST(pending_purge__queue_full__in_order_and_never_sent),
        TEST(pending_add__link_not_up__sent_once_it_is),
        TEST(flush__each_kind__bytes_are_at_the_peer),
        TEST(fence__between_puts__the_last_one_stays),
        TEST(mem_alloc__all_sizes__usable_for_zero_copy)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
