/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Links that come and go without a pause, from both sides, while others are
 * used: what the handlers of connections do in their thread, against posts and
 * progress in the application's, which takes no lock (UCS_THREAD_MODE_SINGLE).
 * Most of use under ThreadSanitizer.
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
#define PIECE      2048ul
#define NUM_EPS    8
#define TURNS      3000
#define TURNS_LONG 200000
#define WITHIN     30.0 /* seconds */

/* An endpoint that comes and goes, and its own piece of the other's memory */
struct flyer {
    uct_ep_h            ep;
    struct hxt_uct_comp comp;
    bool                busy; /* comp is under way */
    uint64_t            key;
    struct hxt_uct_mem  mem;
};

static struct hxt_uct u;
static struct hxt_rng rng;
static struct flyer flyers[NUM_EPS];

static ucs_status_t on_error(void *arg, uct_ep_h ep, ucs_status_t status)
{
    (void)arg;
    (void)ep;
    hxt_die(__FILE__, __LINE__, "an endpoint failed: %s",
            ucs_status_string(status));
}

static void put(struct flyer *flyer, unsigned index)
{
    uct_iov_t iov = {
        .buffer = flyer->mem.addr,
        .length = PIECE,
        .memh   = flyer->mem.memh,
        .count  = 1
    };
    uint64_t addr = u.peer_addr + index * PIECE;
    ucs_status_t status;

    flyer->key = hxt_rng_next(&rng);
    hxt_fill(flyer->mem.addr, PIECE, flyer->key, 0);
    hxt_uct_comp_init(&flyer->comp);
    status = uct_ep_put_zcopy(flyer->ep, &iov, 1, addr, u.peer_rkey.rkey,
                              &flyer->comp.super);
    HXT_CHECK(status == UCS_INPROGRESS || status == UCS_ERR_NO_RESOURCE,
              "put: %s", ucs_status_string(status));
    flyer->busy = status == UCS_INPROGRESS;
}

/* One step of one endpoint. Some are destroyed before they are connected. With
 * an operation under way none is: that breaks the link, and the other side may
 * be using it, too. */
static void step(struct flyer *flyer, unsigned index)
{
    if (flyer->busy && flyer->comp.called != 0) {
        HXT_CHECK(flyer->comp.super.status == UCS_OK, "put: %s",
                  ucs_status_string(flyer->comp.super.status));
        flyer->busy = false;
    }

    switch (hxt_rng_range(&rng, 0, 3)) {
    case 0:
        if (flyer->ep == NULL) {
            flyer->ep = hxt_uct_ep_new(&u);
        }
        break;
    case 1:
        if (flyer->ep != NULL && !flyer->busy) {
            uct_ep_destroy(flyer->ep);
            flyer->ep = NULL;
        }
        break;
    default:
        if (flyer->ep != NULL && !flyer->busy) {
            put(flyer, index);
        }
        break;
    }
}

/* An endpoint that stays, and has to work all the time */
static void use_steady(uint64_t turn)
{
    ucs_status_t status;

    status = uct_ep_put_short(u.ep, &turn, sizeof(turn),
                              u.peer_addr + NUM_EPS * PIECE,
                              u.peer_rkey.rkey);
    HXT_CHECK(status == UCS_OK || status == UCS_ERR_NO_RESOURCE,
              "steady put: %s", ucs_status_string(status));
}

/* Bytes through every endpoint, after all that */
static void check_all(void)
{
    double end = hxt_seconds() + WITHIN;
    unsigned i;

    for (i = 0; i < NUM_EPS; i++) {
        if (flyers[i].ep == NULL) {
            flyers[i].ep = hxt_uct_ep_new(&u);
        }
        while (flyers[i].busy && flyers[i].comp.called == 0) {
            HXT_CHECK(hxt_seconds() < end, "a put does not end");
            hxt_uct_progress(&u);
        }
        do {
            HXT_CHECK(hxt_seconds() < end, "an endpoint does not get ready");
            hxt_uct_progress(&u);
            put(&flyers[i], i);
        } while (!flyers[i].busy);
        hxt_uct_comp_wait(&u, &flyers[i].comp, UCS_INPROGRESS, "put");
        uct_ep_destroy(flyers[i].ep);
    }
    hxt_uct_flush(&u);
}

static void run_storm(struct hxt_proc *proc)
{
    unsigned turns = getenv("HIXL_TEST_LONG") != NULL ? TURNS_LONG : TURNS;
    uint64_t keys[NUM_EPS];
    struct hxt_blob *blobs;
    unsigned turn, i;

    hxt_uct_on_error(on_error, NULL);
    hxt_uct_open(&u, proc, MEM_LEN, false);
    rng = hxt_rng_derive(proc->seed, proc->rank, 0, 0);
    for (i = 0; i < NUM_EPS; i++) {
        hxt_uct_mem_reg(&u, PIECE, &flyers[i].mem);
    }

    for (turn = 0; turn < turns; turn++) {
        i = hxt_rng_range(&rng, 0, NUM_EPS - 1);
        step(&flyers[i], i);
        use_steady(turn);
        hxt_uct_progress(&u);
    }
    hxt_barrier(proc);
    check_all();

    for (i = 0; i < NUM_EPS; i++) {
        keys[i] = flyers[i].key;
    }
    blobs = hxt_gather(proc, keys, sizeof(keys));
    memcpy(keys, blobs[1 - proc->rank].data, sizeof(keys));
    free(blobs);
    for (i = 0; i < NUM_EPS; i++) {
        hxt_verify("memory", u.mem.addr + i * PIECE, PIECE, keys[i], 0);
        hxt_uct_mem_dereg(&u, &flyers[i].mem);
    }
    hxt_uct_close(&u);
}

static void storm_of_connects_and_closes__against_posts__all_works(void **state)
{
    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "storm", .count = 2, .deadline = 250
    });
    assert_int_equal(hxt_stat("objects.qp"), 0);
    assert_int_equal(hxt_stat("objects.umem"), 0);
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "storm", run_storm },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(storm_of_connects_and_closes__against_posts__all_works)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
