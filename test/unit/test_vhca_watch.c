/* SPDX-License-Identifier: BSD-3-Clause */

/* Software that does not ring by call is served by a thread, which is there for
 * no other, and which costs next to nothing while nothing moves. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dirent.h>

#include "vhca_node.h"

/* The thread's id, 0 if there is none */
static int watcher(void)
{
    char path[300], comm[32];
    struct dirent *entry;
    int tid = 0;
    DIR *dir;
    FILE *f;

    dir = opendir("/proc/self/task");
    assert_non_null(dir);
    while ((tid == 0) && ((entry = readdir(dir)) != NULL)) {
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
                 entry->d_name);
        f = fopen(path, "r");
        if (f == NULL) {
            continue;
        }
        if ((fgets(comm, sizeof(comm), f) != NULL) &&
            (strcmp(comm, "vhca-watch\n") == 0)) {
            tid = atoi(entry->d_name);
        }
        fclose(f);
    }
    closedir(dir);
    return tid;
}

static void wait_watcher(bool there)
{
    double end = now_s() + NODE_DEADLINE;

    while ((watcher() != 0) != there) {
        assert_true(now_s() < end);
        sched_yield();
    }
}

static double cpu_s(int tid)
{
    struct timespec ts;

    /* the clock of another thread (Linux: MAKE_THREAD_CPUCLOCK) */
    assert_int_equal(clock_gettime((clockid_t)((~(unsigned)tid << 3) | 6),
                                   &ts), 0);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void loop_open(struct node *n, const struct node_cfg *cfg)
{
    node_open(n, cfg);
    n->peer = node_info(n);
    node_connect(n, 0x504);
}

static void post_silently(struct node *n, const struct post *post)
{
    (void)node_write_wqe(n, post);
    __atomic_store_n(&n->db[1], htobe32(n->pi), __ATOMIC_SEQ_CST);
}

static void silent__record_written__executed(void **state)
{
    struct node_cfg cfg = { .silent = true };
    struct post post;
    struct node n;
    unsigned i;

    (void)state;
    loop_open(&n, &cfg);
    for (i = 0; i < 100; ++i) {
        n.buf[0] = (uint8_t)(i + 1);
        post     = post_rdma(&n, 0x08, 0, 4096, 1);
        post_silently(&n, &post);
        cqe_is(node_wait(&n), 0, 0, (uint16_t)i);
        assert_int_equal(n.buf[4096], i + 1);
    }
    assert_int_not_equal(watcher(), 0);
    node_close(&n);
    wait_watcher(false);
}

static void silent__receive_posted_late__found(void **state)
{
    struct node_cfg cfg = { .silent = true, .rnr_retry = 7,
                            .min_rnr_nak = 0 /* 655 ms */ };
    double start;
    struct post post;
    struct node n;

    (void)state;
    loop_open(&n, &cfg);
    post = post_send(&n, 0, 30);
    post_silently(&n, &post);
    while (atomic_load(&NIC_FIND(NIC_QP, nic_qp, n.qpn)->stall) !=
           NIC_STALL_RNR) {
        sched_yield();
    }
    node_recv(&n, n.buf + 4096, 64);
    start = now_s();
    __atomic_store_n(&n.db[32], htobe32(n.posted), __ATOMIC_SEQ_CST);
    (void)node_wait(&n);
    (void)node_wait(&n);
    /* long before the sender would have tried again by itself */
    assert_true(now_s() - start < 0.3);
    node_close(&n);
}

static void silent__in_error__flushed(void **state)
{
    struct node_cfg cfg = { .silent = true, .own_rq = true };
    struct post post;
    struct node n;

    (void)state;
    loop_open(&n, &cfg);
    assert_true(node_modify(&n, 0x507, NULL));
    post = post_rdma(&n, 0x08, 0, 4096, 1);
    post_silently(&n, &post);
    cqe_is(node_wait(&n), 13, 0x05, 0);
    node_recv(&n, n.buf + 4096, 64);
    __atomic_store_n(&n.db[0], htobe32(n.posted), __ATOMIC_SEQ_CST);
    cqe_is(node_wait(&n), 14, 0x05, 0);
    node_close(&n);
}

static void by_call__from_the_start__no_thread(void **state)
{
    struct node_cfg cfg = { .no_oi = false };
    struct post post;
    struct node n;

    (void)state;
    wait_watcher(false);
    loop_open(&n, &cfg);
    post = post_rdma(&n, 0x08, 0, 4096, 1);
    node_post(&n, &post);
    cqe_is(node_poll(&n), 0, 0, 0);
    assert_int_equal(watcher(), 0);
    node_close(&n);
}

static void by_call__all_queues_later__thread_ends(void **state)
{
    struct node_cfg cfg = { .silent = true };
    struct post post;
    struct node n;

    (void)state;
    loop_open(&n, &cfg);
    wait_watcher(true);
    post = post_rdma(&n, 0x08, 0, 4096, 1);
    node_post(&n, &post);
    cqe_is(node_wait(&n), 0, 0, 0);
    assert_int_equal(node_recv_ring(&n), 0);
    assert_int_equal(vhca_doorbell(VHCA_DOORBELL_CQ_ARM, n.cqn), 0);
    wait_watcher(false);
    node_close(&n);
}

static void silent__nothing_moves__hardly_any_time(void **state)
{
    struct node_cfg cfg = { .silent = true };
    struct post post;
    struct node n;
    double begin, cpu;
    int tid;

    (void)state;
    loop_open(&n, &cfg);
    wait_watcher(true);
    tid   = watcher();
    begin = now_s();
    cpu   = cpu_s(tid);
    while (now_s() - begin < 1) {
        usleep(10000);
    }
    assert_true(cpu_s(tid) - cpu < 0.1);
    /* and it still looks */
    post = post_rdma(&n, 0x08, 0, 4096, 1);
    post_silently(&n, &post);
    cqe_is(node_wait(&n), 0, 0, 0);
    node_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent__record_written__executed),
        cmocka_unit_test(silent__receive_posted_late__found),
        cmocka_unit_test(silent__in_error__flushed),
        cmocka_unit_test(by_call__from_the_start__no_thread),
        cmocka_unit_test(by_call__all_queues_later__thread_ends),
        cmocka_unit_test(silent__nothing_moves__hardly_any_time)
    };

    return cmocka_run_group_tests(tests, node_group_setup,
                                  node_group_teardown);
}
