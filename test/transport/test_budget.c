/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The registration budget, seen from UCP: however many local buffers a process
 * uses, its keys over user memory stay within 256, and only the 257th exposed
 * one is refused. The emulated device counts the keys.
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

#define BUDGET  256
#define BUFFERS 10000

/* Buffers lie apart by more than their size: no two share a registration. */
#define BUF_LEN    (16ul << 10)
#define BUF_STRIDE (20ul << 10)

#define RNDV_AT_ONCE 300
#define RNDV_LEN     (256ul << 10)

enum { WRITER = 0, OWNER = 1 };

static uint8_t *buffer(uint8_t *base, unsigned i)
{
    return base + i * BUF_STRIDE;
}

/* ---- 10,000 buffers registered at once, and all used ---- */

static void use_for_put(struct hxt_ucp *u, uint8_t *base, ucp_mem_h *memhs,
                        const struct hxt_remote *remote)
{
    unsigned i;

    for (i = 0; i < BUFFERS; i++) {
        hxt_fill(buffer(base, i), BUF_LEN, u->proc->seed, i * BUF_LEN);
        hxt_ucp_put(u, OWNER, buffer(base, i), BUF_LEN, remote, i * BUF_LEN,
                    memhs[i]);
    }
    hxt_ucp_flush(u, u->ep[OWNER]);
}

static void use_for_get(struct hxt_ucp *u, uint8_t *base, ucp_mem_h *memhs,
                        const struct hxt_remote *remote)
{
    unsigned i;

    memset(base, 0, BUFFERS * BUF_STRIDE);
    for (i = 0; i < BUFFERS; i++) {
        hxt_ucp_get(u, OWNER, buffer(base, i), BUF_LEN, remote, i * BUF_LEN,
                    memhs[i]);
    }
    for (i = 0; i < BUFFERS; i++) {
        hxt_verify("get", buffer(base, i), BUF_LEN, u->proc->seed,
                   i * BUF_LEN);
    }
}

static void writer_registered_at_once(struct hxt_ucp *u,
                                      const struct hxt_remote *remote)
{
    uint8_t *base    = hxt_alloc(BUFFERS * BUF_STRIDE);
    ucp_mem_h *memhs = calloc(BUFFERS, sizeof(*memhs));
    unsigned i;

    HXT_CHECK(memhs != NULL, "no memory");
    for (i = 0; i < BUFFERS; i++) {
        memhs[i] = hxt_ucp_map(u, buffer(base, i), BUF_LEN);
    }
    use_for_put(u, base, memhs, remote);
    hxt_barrier(u->proc);
    use_for_get(u, base, memhs, remote);
    for (i = 0; i < BUFFERS; i++) {
        hxt_ucp_ok(u, "send", hxt_ucp_isend(u, u->ep[OWNER], buffer(base, i),
                                            BUF_LEN, i, NULL));
    }
    for (i = 0; i < BUFFERS; i++) {
        hxt_ucp_unmap(u, memhs[i]);
    }
    free(memhs);
}

static void owner_registered_at_once(struct hxt_ucp *u, uint8_t *target)
{
    uint8_t *base    = hxt_alloc(BUFFERS * BUF_STRIDE);
    ucp_mem_h *memhs = calloc(BUFFERS, sizeof(*memhs));
    unsigned i;

    HXT_CHECK(memhs != NULL, "no memory");
    hxt_barrier(u->proc);
    hxt_verify("put", target, BUFFERS * BUF_LEN, u->proc->seed, 0);

    for (i = 0; i < BUFFERS; i++) {
        memhs[i] = hxt_ucp_map(u, buffer(base, i), BUF_LEN);
    }
    for (i = 0; i < BUFFERS; i++) {
        hxt_ucp_ok(u, "receive", hxt_ucp_irecv(u, buffer(base, i), BUF_LEN, i,
                                               memhs[i]));
        hxt_verify("rendezvous", buffer(base, i), BUF_LEN, u->proc->seed,
                   i * BUF_LEN);
    }
    for (i = 0; i < BUFFERS; i++) {
        hxt_ucp_unmap(u, memhs[i]);
    }
    free(memhs);
}

static void run_registered_at_once(struct hxt_proc *proc)
{
    struct hxt_remote remotes[HXT_MAX_PROCS];
    uint8_t *target = NULL;
    ucp_mem_h memh  = NULL;
    struct hxt_ucp u;

    hxt_ucp_open(&u, proc, HXT_UCP_FEATURES);
    hxt_ucp_connect_all(&u, false);
    if (proc->rank == OWNER) {
        target = hxt_alloc(BUFFERS * BUF_LEN);
        memh   = hxt_ucp_map(&u, target, BUFFERS * BUF_LEN);
    }
    hxt_ucp_expose(&u, target, BUFFERS * BUF_LEN, memh, remotes);

    if (proc->rank == OWNER) {
        owner_registered_at_once(&u, target);
    } else {
        writer_registered_at_once(&u, &remotes[OWNER]);
    }

    hxt_ucp_forget(remotes);
    hxt_barrier(proc);
    if (memh != NULL) {
        hxt_ucp_unmap(&u, memh);
    }
    hxt_ucp_close(&u);
}

static void buffers_10000_registered__put_get_rndv__within_256(void **state)
{
    static const char *const env[] = {
        "UCX_ZCOPY_THRESH=1k", "UCX_RNDV_THRESH=1k", NULL
    };
    static const struct hxt_expect expect[] = {
        { "max.key_remote_per_process", HXT_AT_MOST, BUDGET },
        { "max.key_remote_per_process", HXT_AT_LEAST, BUDGET / 2 },
        { "wqe.rdma_write", HXT_AT_LEAST, BUFFERS },
        /* gets, and the rendezvous as the receiver's gets */
        { "wqe.rdma_read", HXT_AT_LEAST, 2 * BUFFERS },
        /* nothing is exposed for long: a region was to be had each time */
        { "sw.hixl.bounce_put_bytes", HXT_IS, 0 },
        { "sw.hixl.bounce_get_bytes", HXT_IS, 0 },
        { "sw.hixl.bounce_am_bytes", HXT_IS, 0 },
        { "sw.hixl.evictions", HXT_AT_LEAST, BUFFERS }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "registered_at_once",
        .count    = 2,
        .deadline = 150,
        .env      = env
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

/* ---- 10,000 buffers one after the other ---- */

static void run_one_after_another(struct hxt_proc *proc)
{
    uint8_t *base = hxt_alloc(BUFFERS * BUF_STRIDE);
    struct hxt_ucp u;
    unsigned i;

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG);
    hxt_ucp_connect_all(&u, false);
    for (i = 0; i < BUFFERS; i++) {
        if (proc->rank == WRITER) {
            hxt_fill(buffer(base, i), BUF_LEN, proc->seed, i * BUF_LEN);
            hxt_ucp_ok(&u, "send", hxt_ucp_isend(&u, u.ep[OWNER],
                                                 buffer(base, i), BUF_LEN, i,
                                                 NULL));
        } else {
            hxt_ucp_ok(&u, "receive", hxt_ucp_irecv(&u, buffer(base, i),
                                                    BUF_LEN, i, NULL));
            hxt_verify("rendezvous", buffer(base, i), BUF_LEN, proc->seed,
                       i * BUF_LEN);
        }
    }
    hxt_ucp_close(&u);
}

static void buffers_10000_one_after_another__rndv__within_256(void **state)
{
    static const char *const env[] = { "UCX_RNDV_THRESH=1k", NULL };
    static const struct hxt_expect expect[] = {
        { "max.key_remote_per_process", HXT_AT_MOST, BUDGET },
        { "wqe.rdma_read", HXT_AT_LEAST, BUFFERS },
        { "sw.hixl.bounce_get_bytes", HXT_IS, 0 },
        { "sw.hixl.bounce_am_bytes", HXT_IS, 0 }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "one_after_another",
        .count    = 2,
        .deadline = 100,
        .env      = env
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

/* ---- exposed memory: the only thing that is ever refused ---- */

/* Maps one more buffer and packs its key. */
static ucs_status_t expose(struct hxt_ucp *u, uint8_t *base, unsigned i,
                           ucp_mem_h *memh_p)
{
    ucs_status_t status;
    void *rkey;
    size_t size;

    *memh_p = hxt_ucp_map(u, buffer(base, i), BUF_LEN);
    status  = ucp_rkey_pack(u->context, *memh_p, &rkey, &size);
    if (status == UCS_OK) {
        ucp_rkey_buffer_release(rkey);
    }
    return status;
}

static void run_expose_257(struct hxt_proc *proc)
{
    uint8_t *base = hxt_alloc((BUDGET + 2) * BUF_STRIDE);
    ucp_mem_h memhs[BUDGET + 2];
    ucs_status_t status;
    struct hxt_ucp u;
    unsigned i;

    hxt_ucp_open(&u, proc, HXT_UCP_FEATURES);
    for (i = 0; i < BUDGET; i++) {
        status = expose(&u, base, i, &memhs[i]);
        HXT_CHECK(status == UCS_OK, "exposing number %u: %s", i + 1,
                  ucs_status_string(status));
    }

    status = expose(&u, base, BUDGET, &memhs[BUDGET]);
    HXT_CHECK(hxt_foreign() || status == UCS_ERR_EXCEEDS_LIMIT,
              "exposing number 257: %s", ucs_status_string(status));

    /* what one gives up another may have */
    hxt_ucp_unmap(&u, memhs[7]);
    status = expose(&u, base, BUDGET + 1, &memhs[BUDGET + 1]);
    HXT_CHECK(status == UCS_OK, "exposing after an unmap: %s",
              ucs_status_string(status));

    for (i = 0; i < BUDGET + 2; i++) {
        if (i != 7) {
            hxt_ucp_unmap(&u, memhs[i]);
        }
    }
    hxt_ucp_close(&u);
}

/* The refusal is logged with the variable, its value, and the way out. */
static void rkey_pack_257__default_budget__exceeds_limit(void **state)
{
    static const char *const message[] = {
        "set UCX_HIXL_MAX_REGS higher", "UCX_HIXL_MAX_REGS=256", NULL
    };
    static const struct hxt_expect expect[] = {
        { "max.key_remote_per_process", HXT_IS, BUDGET }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario   = "expose_257",
        .count      = 1,
        .expect_log = message
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

/* ---- with the budget taken, local buffers go through bounce buffers ---- */

#define BOUNCED     (1ul << 20)
#define BOUNCED_LEN (BOUNCED + 321)

static void writer_all_exposed(struct hxt_ucp *u,
                               const struct hxt_remote *remote)
{
    uint8_t *base = hxt_alloc(BUDGET * BUF_STRIDE);
    uint8_t *buf  = hxt_alloc(BOUNCED_LEN + 64) + 13;
    ucp_mem_h memhs[BUDGET], memh;
    unsigned i;

    for (i = 0; i < BUDGET; i++) {
        HXT_CHECK(expose(u, base, i, &memhs[i]) == UCS_OK, "exposing");
    }

    /* registering still works, it only binds nothing */
    memh = hxt_ucp_map(u, buf, BOUNCED_LEN);
    hxt_fill(buf, BOUNCED_LEN, u->proc->seed, 0);
    hxt_ucp_put(u, OWNER, buf, BOUNCED_LEN, remote, 5, memh);
    hxt_ucp_flush(u, u->ep[OWNER]);
    memset(buf, 0, BOUNCED_LEN);
    hxt_ucp_get(u, OWNER, buf, BOUNCED_LEN, remote, 5, memh);
    hxt_verify("bounced put and get", buf, BOUNCED_LEN, u->proc->seed, 0);

    /* and a rendezvous finds its way without an exposed key */
    hxt_ucp_ok(u, "send", hxt_ucp_isend(u, u->ep[OWNER], buf, BOUNCED_LEN, 1,
                                        NULL));

    hxt_ucp_unmap(u, memh);
    for (i = 0; i < BUDGET; i++) {
        hxt_ucp_unmap(u, memhs[i]);
    }
}

static void run_all_exposed(struct hxt_proc *proc)
{
    struct hxt_remote remotes[HXT_MAX_PROCS];
    uint8_t *target = NULL, *buf;
    ucp_mem_h memh  = NULL;
    struct hxt_ucp u;

    hxt_ucp_open(&u, proc, HXT_UCP_FEATURES);
    hxt_ucp_connect_all(&u, false);
    if (proc->rank == OWNER) {
        target = hxt_alloc(BOUNCED_LEN + 64);
        memh   = hxt_ucp_map(&u, target, BOUNCED_LEN + 64);
    }
    hxt_ucp_expose(&u, target, BOUNCED_LEN + 64, memh, remotes);

    if (proc->rank == OWNER) {
        buf = hxt_alloc(BOUNCED_LEN);
        hxt_ucp_ok(&u, "receive", hxt_ucp_irecv(&u, buf, BOUNCED_LEN, 1,
                                                NULL));
        hxt_verify("rendezvous", buf, BOUNCED_LEN, proc->seed, 0);
        hxt_verify("bounced put", target + 5, BOUNCED_LEN, proc->seed, 0);
        HXT_CHECK(hxt_not_all(target, 5, 0) < 0 &&
                  hxt_not_all(target + 5 + BOUNCED_LEN, 59, 0) < 0,
                  "the bounced put wrote outside its range");
    } else {
        writer_all_exposed(&u, &remotes[OWNER]);
    }

    hxt_ucp_forget(remotes);
    hxt_barrier(proc);
    if (memh != NULL) {
        hxt_ucp_unmap(&u, memh);
    }
    hxt_ucp_close(&u);
}

static void budget_all_exposed__put_get__go_through_bounce_buffers(void **state)
{
    static const char *const env[] = { "UCX_ZCOPY_THRESH=1k", NULL };
    static const struct hxt_expect expect[] = {
        { "max.key_remote_per_process", HXT_IS, BUDGET },
        { "sw.hixl.bounce_put_bytes", HXT_AT_LEAST, BOUNCED_LEN },
        { "sw.hixl.bounce_get_bytes", HXT_IS, BOUNCED_LEN }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "all_exposed",
        .count    = 2,
        .env      = env
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

/* ---- more rendezvous at once than there are regions ---- */

static void run_rndv_at_once(struct hxt_proc *proc)
{
    unsigned other = 1 - proc->rank, i;
    uint8_t *send  = hxt_alloc(RNDV_AT_ONCE * (RNDV_LEN + BUF_STRIDE));
    uint8_t *recv  = hxt_alloc(RNDV_AT_ONCE * (RNDV_LEN + BUF_STRIDE));
    ucs_status_ptr_t sends[RNDV_AT_ONCE], recvs[RNDV_AT_ONCE];
    struct hxt_ucp u;
    size_t pos;

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG);
    hxt_ucp_connect_all(&u, false);
    for (i = 0; i < RNDV_AT_ONCE; i++) {
        pos = i * (RNDV_LEN + BUF_STRIDE);
        hxt_fill(send + pos, RNDV_LEN, proc->seed + proc->rank, pos);
        sends[i] = hxt_ucp_isend(&u, u.ep[other], send + pos, RNDV_LEN, i,
                                 NULL);
    }
    for (i = 0; i < RNDV_AT_ONCE; i++) {
        pos      = i * (RNDV_LEN + BUF_STRIDE);
        recvs[i] = hxt_ucp_irecv(&u, recv + pos, RNDV_LEN, i, NULL);
    }
    for (i = 0; i < RNDV_AT_ONCE; i++) {
        pos = i * (RNDV_LEN + BUF_STRIDE);
        hxt_ucp_ok(&u, "receive", recvs[i]);
        hxt_verify("rendezvous", recv + pos, RNDV_LEN, proc->seed + other,
                   pos);
    }
    for (i = 0; i < RNDV_AT_ONCE; i++) {
        hxt_ucp_ok(&u, "send", sends[i]);
    }
    hxt_ucp_close(&u);
}

static void rndv_300_at_once__both_directions__all_complete(void **state)
{
    static const char *const env[] = { "UCX_RNDV_THRESH=1k", NULL };
    static const struct hxt_expect expect[] = {
        { "max.key_remote_per_process", HXT_AT_MOST, BUDGET },
        { "wqe.rdma_read", HXT_AT_LEAST, 1 }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "rndv_at_once",
        .count    = 2,
        .env      = env
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "registered_at_once", run_registered_at_once },
        { "one_after_another", run_one_after_another },
        { "expose_257", run_expose_257 },
        { "all_exposed", run_all_exposed },
        { "rndv_at_once", run_rndv_at_once },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(buffers_10000_registered__put_get_rndv__within_256),
        TEST(buffers_10000_one_after_another__rndv__within_256),
        TEST(rkey_pack_257__default_budget__exceeds_limit),
        TEST(budget_all_exposed__put_get__go_through_bounce_buffers),
        TEST(rndv_300_at_once__both_directions__all_complete)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
