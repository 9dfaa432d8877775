/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Nothing overtakes and nothing is lost, however small the registration budget
 * is: a thousand sends and receives at once in both directions, and eager
 * zero-copy sends before short ones.
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
#include <cmocka.h>

#define MESSAGES 1000
#define MSG_LEN  (1ul << 20)

/* The messages that are sent overlap in one buffer, each at an own place, and
 * so have contents and registrations of their own. */
#define MSG_STEP (12ul << 10)
#define SEND_LEN (MESSAGES * MSG_STEP + MSG_LEN)

#define TAG_MSG 9

/* ---- 1,000 Isend and 1,000 Irecv of 1 MiB, the same tag for all ---- */

struct crossing {
    struct hxt_ucp   u;
    ucs_status_ptr_t sends[MESSAGES];
    ucs_status_ptr_t recvs[MESSAGES];
    uint8_t         *send;
    uint8_t         *recv;
};

static void post_crossing(struct crossing *c, unsigned other)
{
    unsigned i;

    for (i = 0; i < MESSAGES; i++) {
        c->recvs[i] = hxt_ucp_irecv(&c->u, c->recv + i * MSG_LEN, MSG_LEN,
                                    TAG_MSG, NULL);
        c->sends[i] = hxt_ucp_isend(&c->u, c->u.ep[other],
                                    c->send + i * MSG_STEP, MSG_LEN, TAG_MSG,
                                    NULL);
    }
}

static void run_crossing(struct hxt_proc *proc)
{
    static struct crossing c;
    unsigned other = 1 - proc->rank, i;

    c.send = hxt_alloc(SEND_LEN);
    c.recv = hxt_alloc(MESSAGES * MSG_LEN);
    hxt_fill(c.send, SEND_LEN, proc->seed + proc->rank, 0);
    hxt_ucp_open(&c.u, proc, UCP_FEATURE_TAG);
    hxt_ucp_connect_all(&c.u, false);
    hxt_barrier(proc);

    post_crossing(&c, other);
    for (i = 0; i < MESSAGES; i++) {
        hxt_ucp_ok(&c.u, "receive", c.recvs[i]);
        /* the i-th receive holds the i-th message that was sent */
        hxt_verify("message", c.recv + i * MSG_LEN, MSG_LEN,
                   proc->seed + other, i * MSG_STEP);
    }
    for (i = 0; i < MESSAGES; i++) {
        hxt_ucp_ok(&c.u, "send", c.sends[i]);
    }
    hxt_ucp_close(&c.u);
}

static void crossing(const char *const *env, uint64_t max_regs)
{
    const struct hxt_expect expect[] = {
        { "max.key_remote_per_process", HXT_AT_MOST, max_regs }
    };

    hxt_run(&(struct hxt_run){
        .scenario = "crossing",
        .count    = 2,
        .deadline = 90,
        .env      = env
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
    if (!hxt_foreign()) {
        /* by whichever of the device's ways, but every byte by the device */
        assert_true(hxt_stat("bytes.rdma_write") + hxt_stat("bytes.rdma_read") +
                    hxt_stat("bytes.send") >= 2 * MESSAGES * MSG_LEN);
    }
}

static void crossing_1000_of_1m__max_regs_1__in_tag_order(void **state)
{
    static const char *const env[] = { "UCX_HIXL_MAX_REGS=1", NULL };

    (void)state;
    crossing(env, 1);
}

static void crossing_1000_of_1m__max_regs_8__in_tag_order(void **state)
{
    static const char *const env[] = { "UCX_HIXL_MAX_REGS=8", NULL };

    (void)state;
    crossing(env, 8);
}

static void crossing_1000_of_1m__max_regs_256__in_tag_order(void **state)
{
    static const char *const env[] = { "UCX_HIXL_MAX_REGS=256", NULL };

    (void)state;
    crossing(env, 256);
}

/* ---- an eager zero-copy message, then a short one ---- */

#define PAIRS      200
#define EAGER_MAX  (256ul << 10)
#define SHORT_LEN  8
#define EAGER_STEP (EAGER_MAX + 4096)

/* Both ends know the sizes: from 2 KiB, zero-copy all, to many fragments. */
static size_t eager_len(uint64_t seed, unsigned i)
{
    struct hxt_rng rng = hxt_rng_derive(seed, i, 1, 1);

    return 2048 + hxt_rng_size(&rng, EAGER_MAX - 2048);
}

static void send_pairs(struct hxt_ucp *u, unsigned other)
{
    uint8_t *base = hxt_alloc(PAIRS * EAGER_STEP);
    ucs_status_ptr_t reqs[2 * PAIRS];
    uint64_t words[PAIRS], seed = u->proc->seed;
    size_t len;
    unsigned i;

    for (i = 0; i < PAIRS; i++) {
        len      = eager_len(seed, i);
        words[i] = i;
        hxt_fill(base + i * EAGER_STEP, len, seed, i * EAGER_STEP);
        reqs[2 * i]     = hxt_ucp_isend(u, u->ep[other], base + i * EAGER_STEP,
                                        len, TAG_MSG, NULL);
        reqs[2 * i + 1] = hxt_ucp_isend(u, u->ep[other], &words[i], SHORT_LEN,
                                        TAG_MSG, NULL);
    }
    for (i = 0; i < 2 * PAIRS; i++) {
        hxt_ucp_ok(u, "send", reqs[i]);
    }
}

static void receive_in_order(struct hxt_ucp *u, void *buf, size_t expected)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL
    };
    ucp_tag_recv_info_t info;
    ucs_status_ptr_t request;
    ucs_status_t status;

    request = ucp_tag_recv_nbx(u->worker, buf, EAGER_MAX, TAG_MSG, UINT64_MAX,
                               &param);
    HXT_CHECK(UCS_PTR_IS_PTR(request), "ucp_tag_recv_nbx");
    while ((status = ucp_tag_recv_request_test(request, &info)) ==
           UCS_INPROGRESS) {
        hxt_ucp_progress(u);
    }
    ucp_request_free(request);
    HXT_CHECK(status == UCS_OK, "receive: %s", ucs_status_string(status));
    HXT_CHECK(info.length == expected,
              "a message of %zu bytes where one of %zu comes next",
              info.length, expected);
}

static void receive_pairs(struct hxt_ucp *u)
{
    uint8_t *buf  = hxt_alloc(EAGER_MAX);
    uint64_t seed = u->proc->seed, word;
    size_t len;
    unsigned i;

    for (i = 0; i < PAIRS; i++) {
        len = eager_len(seed, i);
        receive_in_order(u, buf, len);
        hxt_verify("eager zero-copy", buf, len, seed, i * EAGER_STEP);
        receive_in_order(u, buf, SHORT_LEN);
        memcpy(&word, buf, SHORT_LEN);
        HXT_CHECK(word == i, "word %zu where %u comes next", word, i);
    }
    munmap(buf, EAGER_MAX);
}

/* `taken`: all of the budget is exposed, so zero-copy has to bounce. */
static void pairs(struct hxt_proc *proc, bool taken)
{
    unsigned max_regs = atoi(getenv("UCX_HIXL_MAX_REGS")), i;
    ucp_mem_h *memhs  = calloc(max_regs, sizeof(*memhs));
    uint8_t *exposed  = hxt_alloc(max_regs * 8192);
    struct hxt_ucp u;
    size_t size;
    void *rkey;

    HXT_CHECK(memhs != NULL, "no memory");
    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG | UCP_FEATURE_RMA);
    hxt_ucp_connect_all(&u, false);
    for (i = 0; taken && i < max_regs; i++) {
        memhs[i] = hxt_ucp_map(&u, exposed + i * 8192, 4096);
        HXT_CHECK(ucp_rkey_pack(u.context, memhs[i], &rkey, &size) == UCS_OK,
                  "exposing number %u", i + 1);
        ucp_rkey_buffer_release(rkey);
    }
    hxt_barrier(proc);

    if (proc->rank == 0) {
        send_pairs(&u, 1);
        receive_pairs(&u);
    } else {
        receive_pairs(&u);
        send_pairs(&u, 0);
    }

    for (i = 0; taken && i < max_regs; i++) {
        hxt_ucp_unmap(&u, memhs[i]);
    }
    free(memhs);
    hxt_ucp_close(&u);
}

static void run_pairs(struct hxt_proc *proc)
{
    pairs(proc, false);
}

static void run_pairs_taken(struct hxt_proc *proc)
{
    pairs(proc, true);
}

static void expect_pairs(const char *scenario, const char *max_regs,
                         bool bounced)
{
    const char *const env[] = {
        max_regs, "UCX_ZCOPY_THRESH=1k", "UCX_RNDV_THRESH=inf", NULL
    };
    const struct hxt_expect expect[] = {
        { "wqe.rdma_read", HXT_IS, 0 },
        { "wqe.rdma_write", HXT_IS, 0 },
        { "wqe.send", HXT_AT_LEAST, 4 * PAIRS },
        { "sw.hixl.bounce_am_bytes", bounced ? HXT_AT_LEAST : HXT_IS,
          bounced ? PAIRS * 2048 : 0 }
    };

    hxt_run(&(struct hxt_run){
        .scenario = scenario,
        .count    = 2,
        .env      = env
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

static void eager_zcopy_then_short__max_regs_256__in_order(void **state)
{
    (void)state;
    expect_pairs("pairs", "UCX_HIXL_MAX_REGS=256", false);
}

static void eager_zcopy_then_short__budget_all_exposed__in_order(void **state)
{
    (void)state;
    expect_pairs("pairs_taken", "UCX_HIXL_MAX_REGS=8", true);
}

static void eager_zcopy_then_short__single_region_exposed__in_order(
        void **state)
{
    (void)state;
    expect_pairs("pairs_taken", "UCX_HIXL_MAX_REGS=1", true);
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "crossing", run_crossing },
        { "pairs", run_pairs },
        { "pairs_taken", run_pairs_taken },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(crossing_1000_of_1m__max_regs_1__in_tag_order),
        TEST(crossing_1000_of_1m__max_regs_8__in_tag_order),
        TEST(crossing_1000_of_1m__max_regs_256__in_tag_order),
        TEST(eager_zcopy_then_short__max_regs_256__in_order),
        TEST(eager_zcopy_then_short__budget_all_exposed__in_order),
        TEST(eager_zcopy_then_short__single_region_exposed__in_order)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
