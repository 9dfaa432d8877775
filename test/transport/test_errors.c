/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Error mode PEER, seen from UCP: an endpoint that went where it has no right
 * to fails within seconds, with one call of its error handler; its process,
 * other endpoints of its worker, and all others go on. (Memory without the
 * right is test_errors_uct.c's: UCP maps all for everything.)
 */

#include <support/bytes.h>
#include <support/peers.h>
#include <support/ucp.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define MEM_LEN 65536ul
#define BIG     (1ul << 20)
#define WITHIN  5.0 /* seconds: then everybody knows */

enum memory {
    MEMORY_RIGHT,
    MEMORY_GONE,      /* its key is no more */
    NUM_MEMORIES
};

/* Process 1 is done wrong to, by process 0; process 2 is a bystander. */
enum { VICTIM = 1, BYSTANDER = 2 };

static struct hxt_ucp u;
static uint8_t *memories[NUM_MEMORIES];
static ucp_mem_h memhs[NUM_MEMORIES];

/* Everybody's memories: where, and the packed key behind it */
static struct hxt_blob *exposed[NUM_MEMORIES];

static struct hxt_failure seen;

static struct hxt_blob *expose(void *addr, ucp_mem_h memh)
{
    struct hxt_blob *blobs;
    uint64_t *mine;
    size_t size;
    void *rkey;

    HXT_CHECK(ucp_rkey_pack(u.context, memh, &rkey, &size) == UCS_OK,
              "rkey_pack");
    mine = malloc(sizeof(*mine) + size);
    HXT_CHECK(mine != NULL, "no memory");
    *mine = (uintptr_t)addr;
    memcpy(mine + 1, rkey, size);
    ucp_rkey_buffer_release(rkey);
    blobs = hxt_gather(u.proc, mine, sizeof(*mine) + size);
    free(mine);
    return blobs;
}

/* Everybody's memory of every kind; then MEMORY_GONE goes. */
static void expose_memories(void)
{
    enum memory i;

    for (i = 0; i < NUM_MEMORIES; i++) {
        memories[i] = hxt_alloc(MEM_LEN);
        memhs[i]    = hxt_ucp_map(&u, memories[i], MEM_LEN);
        exposed[i]  = expose(memories[i], memhs[i]);
    }

    hxt_ucp_unmap(&u, memhs[MEMORY_GONE]);
    munmap(memories[MEMORY_GONE], MEM_LEN);
    hxt_barrier(u.proc);
}

/* A key is good for one endpoint */
static struct hxt_remote unpack(ucp_ep_h ep, enum memory memory, unsigned rank)
{
    const uint64_t *theirs   = exposed[memory][rank].data;
    struct hxt_remote remote = { .len = MEM_LEN };

    memcpy(&remote.addr, theirs, sizeof(*theirs));
    HXT_CHECK(ucp_ep_rkey_unpack(ep, theirs + 1, &remote.rkey) == UCS_OK,
              "rkey_unpack");
    return remote;
}

/* Bytes there and back, over an endpoint that has to be well */
static void use(ucp_ep_h ep, unsigned rank, uint64_t key)
{
    static uint8_t out[MEM_LEN / 2], in[MEM_LEN / 2];
    struct hxt_remote remote  = unpack(ep, MEMORY_RIGHT, rank);
    ucp_request_param_t param = { .op_attr_mask = 0 };
    ucs_status_t status;

    hxt_fill(out, sizeof(out), key, 0);
    memset(in, 0, sizeof(in));
    status = hxt_ucp_within(&u, WITHIN, "a put",
                            ucp_put_nbx(ep, out, sizeof(out), remote.addr,
                                        remote.rkey, &param));
    HXT_CHECK(status == UCS_OK, "put: %s", ucs_status_string(status));
    status = hxt_ucp_within(&u, WITHIN, "a flush",
                            ucp_ep_flush_nbx(ep, &param));
    HXT_CHECK(status == UCS_OK, "flush: %s", ucs_status_string(status));
    status = hxt_ucp_within(&u, WITHIN, "a get",
                            ucp_get_nbx(ep, in, sizeof(in), remote.addr,
                                        remote.rkey, &param));
    HXT_CHECK(status == UCS_OK, "get: %s", ucs_status_string(status));
    hxt_verify("get", in, sizeof(in), key, 0);
    ucp_rkey_destroy(remote.rkey);
}

/* ---- no right to go there ---- */

struct fault {
    const char *name;
    enum memory memory;
    bool        past_end;
    bool        is_get;
    size_t      len;
};

static const struct fault faults[] = {
    { "put, no such key", MEMORY_GONE, false, false, 32768 },
    { "small put, no such key", MEMORY_GONE, false, false, 8 },
    { "get, no such key", MEMORY_GONE, false, true, 32768 },
    { "put past the end", MEMORY_RIGHT, true, false, 32768 },
    { "small put past the end", MEMORY_RIGHT, true, false, 8 },
    { "get past the end", MEMORY_RIGHT, true, true, 32768 }
};
#define NUM_FAULTS (sizeof(faults) / sizeof(faults[0]))

static void one_fault(const struct fault *fault, const void *address)
{
    static uint8_t buf[MEM_LEN];
    ucp_request_param_t param = { .op_attr_mask = 0 };
    ucp_ep_h ep               = hxt_ucp_ep_peer(&u, address, &seen);
    struct hxt_remote remote  = unpack(ep, fault->memory, VICTIM);
    uint64_t addr             = remote.addr +
                                (fault->past_end ? MEM_LEN - 4 : 0);
    ucs_status_t status, flush_status;
    ucs_status_ptr_t request;
    double end;

    use(ep, VICTIM, 1);
    memset(&seen, 0, sizeof(seen));
    request = fault->is_get ?
              ucp_get_nbx(ep, buf, fault->len, addr, remote.rkey, &param) :
              ucp_put_nbx(ep, buf, fault->len, addr, remote.rkey, &param);
    flush_status = hxt_ucp_within(&u, WITHIN, "a flush",
                                  ucp_ep_flush_nbx(ep, &param));
    status       = hxt_ucp_within(&u, WITHIN, fault->name, request);
    HXT_CHECK(UCS_STATUS_IS_ERR(status) || UCS_STATUS_IS_ERR(flush_status),
              "%s: it succeeded", fault->name);

    end = hxt_seconds() + WITHIN;
    while (seen.calls == 0) {
        HXT_CHECK(hxt_seconds() < end, "%s: nobody was told", fault->name);
        hxt_ucp_progress(&u);
    }
    HXT_CHECK(seen.ep == ep, "%s: the wrong endpoint failed", fault->name);
    HXT_CHECK(UCS_STATUS_IS_ERR(seen.status), "%s: %s", fault->name,
              ucs_status_string(seen.status));

    /* to the same process, over the same interface; to another one */
    use(u.ep[VICTIM], VICTIM, 2);
    use(u.ep[BYSTANDER], BYSTANDER, 3);
    status = hxt_ucp_within(&u, WITHIN, "a post",
                            ucp_put_nbx(ep, buf, 8, addr, remote.rkey,
                                        &param));
    HXT_CHECK(UCS_STATUS_IS_ERR(status), "%s: a put on a failed endpoint: %s",
              fault->name, ucs_status_string(status));
    ucp_rkey_destroy(remote.rkey);
    hxt_ucp_ep_force_close(&u, ep, WITHIN);
    HXT_CHECK(seen.calls == 1, "%s: told %u times", fault->name, seen.calls);
}

static void run_faults(struct hxt_proc *proc)
{
    struct hxt_blob *addresses;
    enum memory i;
    unsigned f;

    hxt_ucp_open(&u, proc, UCP_FEATURE_RMA);
    addresses = hxt_ucp_gather_addresses(&u);
    for (i = 0; proc->rank == 0 && i < proc->count; i++) {
        u.ep[i] = i == 0 ? NULL : hxt_ucp_ep_peer(&u, addresses[i].data, &seen);
    }
    expose_memories();

    for (f = 0; proc->rank == 0 && f < NUM_FAULTS; f++) {
        one_fault(&faults[f], addresses[VICTIM].data);
    }
    hxt_barrier(proc);

    free(addresses);
    for (i = 0; i < NUM_MEMORIES; i++) {
        free(exposed[i]);
        if (i != MEMORY_GONE) {
            hxt_ucp_unmap(&u, memhs[i]);
        }
    }
    hxt_ucp_close(&u);
}

static void no_right__each_kind__one_endpoint_fails_others_go_on(void **state)
{
    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "faults", .count = 3, .deadline = 90
    });
    if (!hxt_foreign()) {
        assert_in_range(hxt_stat("cqe.error"), NUM_FAULTS, 1000000);
        assert_int_equal(hxt_stat("objects.qp"), 0);
        assert_int_equal(hxt_stat("objects.umem"), 0);
    }
}

/* ---- a peer that is gone ---- */

static const uint64_t TAG = 7;

/* Big messages wait for the other side's answer: it dies between. */
static void run_peer_ends(struct hxt_proc *proc)
{
    struct hxt_blob *addresses;
    ucs_status_ptr_t send, recv;
    ucs_status_t status;
    uint8_t *buf = hxt_alloc(BIG);
    unsigned rank;
    double end;

    hxt_ucp_open(&u, proc, UCP_FEATURE_RMA | UCP_FEATURE_TAG);
    addresses = hxt_ucp_gather_addresses(&u);
    for (rank = 0; rank < proc->count; rank++) {
        u.ep[rank] = rank == proc->rank ? NULL :
                     hxt_ucp_ep_peer(&u, addresses[rank].data, &seen);
    }
    free(addresses);
    expose_memories();
    if (proc->rank == 0) {
        use(u.ep[VICTIM], VICTIM, 4);
    }
    hxt_barrier(proc);
    if (proc->rank == VICTIM) {
        _exit(0); /* without a word to anybody */
    }

    memset(&seen, 0, sizeof(seen));
    recv   = hxt_ucp_irecv(&u, buf, BIG, TAG, NULL);
    send   = hxt_ucp_isend(&u, u.ep[VICTIM], buf, BIG, TAG, NULL);
    status = hxt_ucp_within(&u, WITHIN, "a message to the dead", send);
    HXT_CHECK(UCS_STATUS_IS_ERR(status), "sent to the dead");
    end    = hxt_seconds() + WITHIN;
    while (seen.calls == 0) {
        HXT_CHECK(hxt_seconds() < end, "nobody was told");
        hxt_ucp_progress(&u);
    }
    HXT_CHECK(seen.ep == u.ep[VICTIM] && seen.calls == 1, "told %u times",
              seen.calls);
    ucp_request_cancel(u.worker, recv);
    status = hxt_ucp_within(&u, WITHIN, "a cancelled receive", recv);
    HXT_CHECK(status == UCS_ERR_CANCELED, "cancel: %s",
              ucs_status_string(status));
    hxt_ucp_ep_force_close(&u, u.ep[VICTIM], WITHIN);
    if (proc->rank == 0) {
        use(u.ep[BYSTANDER], BYSTANDER, 5);
    }
    end = hxt_seconds() + 1;
    while (hxt_seconds() < end) {
        hxt_ucp_progress(&u); /* the other one may be at work on us */
    }
    _exit(0);
}

static void peer_ends__without_a_word__its_endpoints_fail(void **state)
{
    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "peer_ends", .count = 3, .deadline = 60
    });
}

/* ---- rendezvous ---- */

static void run_rendezvous(struct hxt_proc *proc)
{
    unsigned other = 1 - proc->rank, i;
    uint8_t *in = hxt_alloc(BIG), *out = hxt_alloc(BIG);
    struct hxt_blob *addresses;
    ucs_status_ptr_t send, recv;

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG);
    addresses   = hxt_ucp_gather_addresses(&u);
    u.ep[other] = hxt_ucp_ep_peer(&u, addresses[other].data, &seen);
    free(addresses);
    for (i = 0; i < 5; i++) {
        hxt_fill(out, BIG, proc->rank, i);
        memset(in, 0, BIG);
        recv = hxt_ucp_irecv(&u, in, BIG, TAG, NULL);
        send = hxt_ucp_isend(&u, u.ep[other], out, BIG, TAG, NULL);
        hxt_ucp_ok(&u, "receive", recv);
        hxt_ucp_ok(&u, "send", send);
        hxt_verify("message", in, BIG, other, i);
    }
    HXT_CHECK(seen.calls == 0, "an endpoint failed");
    hxt_ucp_close(&u);
}

static void rendezvous__error_mode_peer__arrives(void **state)
{
    static const struct hxt_expect expect[] = {
        { "bytes.send", HXT_AT_LEAST, 1 },
        { "sw.hixl.bounce_am_bytes", HXT_IS, 0 },
        { "objects.qp", HXT_IS, 0 }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "rendezvous", .count = 2, .deadline = 60
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "faults", run_faults },
        { "peer_ends", run_peer_ends },
        { "rendezvous", run_rendezvous },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(no_right__each_kind__one_endpoint_fails_others_go_on),
        TEST(peer_ends__without_a_word__its_endpoints_fail),
        TEST(rendezvous__error_mode_peer__arrives)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
