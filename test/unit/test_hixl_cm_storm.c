/* SPDX-License-Identifier: BSD-3-Clause */

/* Links made and given up at random, from two threads, while the async thread
 * connects them: for a sanitizer to look at, and nothing may be left. */

#include "hixl_cm_fixture.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define STORM_EPS   6
#define STORM_READY 400

typedef struct storm {
    test_node_t *node, *peer;
    test_ep_t   ep[STORM_EPS];
    unsigned    seed;
    unsigned    connects, ready, reused;
} storm_t;

static void storm_step(storm_t *storm)
{
    test_ep_t *ep = &storm->ep[rand_r(&storm->seed) % STORM_EPS];

    if (ep->link == NULL) {
        test_connect_node(storm->node, ep, storm->peer);
        storm->connects++;
        storm->reused += ep->ready;
    } else if (ep->ready || ep->failed) {
        storm->ready += ep->ready;
        if ((rand_r(&storm->seed) % 8) == 0) {
            uct_hixl_cm_abort(ep->link);
            ep->link = NULL;
        } else {
            test_release(ep);
        }
    } else if ((rand_r(&storm->seed) % 64) == 0) {
        test_release(ep); /* in the middle of the exchange */
    }
}

static void *storm_thread(void *arg)
{
    storm_t *storm = arg;
    double end     = test_seconds() + WAIT_SECONDS;
    unsigned i;

    while ((storm->ready < STORM_READY) && (test_seconds() < end)) {
        storm_step(storm);
        if (__atomic_load_n(&storm->node->iface.cm_events, __ATOMIC_ACQUIRE)) {
            uct_hixl_cm_progress(&storm->node->iface);
        }
        sched_yield();
    }

    for (i = 0; i < STORM_EPS; ++i) {
        if (storm->ep[i].link != NULL) {
            test_release(&storm->ep[i]);
        }
    }
    return NULL;
}

static void storm__connect_release_abort__nothing_left(void **state)
{
    test_node_t a, b;
    storm_t storm[2] = {{.node = &a, .peer = &b}, {.node = &b, .peer = &a}};
    const char *env  = getenv("HIXL_TEST_SEED");
    pthread_t thread[2];
    unsigned i;

    (void)state;
    test_node_open(&a, "127.0.0.1", WAIT_SECONDS);
    test_node_open(&b, "127.0.0.1", WAIT_SECONDS);
    storm[0].seed = env ? strtoul(env, NULL, 0) : (unsigned)time(NULL);
    storm[1].seed = storm[0].seed + 1;
    print_message("HIXL_TEST_SEED=%u\n", storm[0].seed);
    for (i = 0; i < 2; ++i) {
        assert_int_equal(pthread_create(&thread[i], NULL, storm_thread,
                                        &storm[i]), 0);
    }
    for (i = 0; i < 2; ++i) {
        pthread_join(thread[i], NULL);
        print_message("%u connects, %u ready, of them %u links of the peer\n",
                      storm[i].connects, storm[i].ready, storm[i].reused);
    }

    WAIT_FOR((test_node_links(&a) == 0) && (test_node_links(&b) == 0) &&
             (test_node_half_open(&a) == 0) && (test_node_half_open(&b) == 0));
    assert_true(storm[0].ready >= STORM_READY);
    assert_true(storm[1].ready >= STORM_READY);
    test_node_close(&a);
    test_node_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storm__connect_release_abort__nothing_left)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
