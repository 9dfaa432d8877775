/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Both ends of several connections post without pause: each message says what
 * an RDMA write before it put where, so order and every byte can be checked by
 * its receiver, who is often late with receives. Then the same while a key of
 * the same process comes and goes.
 */

#include "vhca_node.h"

enum {
    STORM_SLOTS = 8,            /* writes that may be on their way */
    STORM_SLOT  = 40000,        /* bytes of one, from STORM_AREA on */
    STORM_AREA  = 256 * 1024,
    STORM_RX    = 8,            /* receives posted at most */
    STORM_OUT   = 64 * 1024     /* what is written, from here on */
};

struct message {
    uint32_t seq, slot, len, seed;
};

static void pattern(uint8_t *at, uint32_t len, uint32_t pattern_seed)
{
    uint32_t x = pattern_seed, i;

    for (i = 0; i < len; ++i) {
        x     = x * 1664525u + 1013904223u;
        at[i] = x >> 24;
    }
}

static bool pattern_is(const uint8_t *at, uint32_t len, uint32_t pattern_seed)
{
    uint32_t x = pattern_seed, i;

    for (i = 0; i < len; ++i) {
        x = x * 1664525u + 1013904223u;
        if (at[i] != x >> 24) {
            return false;
        }
    }
    return true;
}

struct storm {
    struct node *n;
    unsigned     seed;
    uint32_t     sent, received, done_tx;
    unsigned     owed;          /* receives not yet posted again */
    /* how much either end has checked, beside the device */
    _Atomic uint32_t *checked, *peer_checked;
};

static void storm_refill(struct storm *s, unsigned count)
{
    for (; count > 0; --count) {
        node_recv(s->n, s->n->buf + NODE_BUF - 65536 +
                        (s->n->posted % 16) * 64, 64);
    }
    node_recv_ring(s->n);
}

static void storm_send(struct storm *s)
{
    struct node *n     = s->n;
    uint32_t slot      = s->sent % STORM_SLOTS;
    struct message msg = {
        .seq = s->sent, .slot = slot, .len = 1 + rand_r(&s->seed) % STORM_SLOT,
        .seed = rand_r(&s->seed)
    };
    struct post post;

    if (rand_r(&s->seed) % 2) {
        msg.len = 1 + msg.len % 200;
    }
    pattern(n->buf + STORM_OUT, msg.len, msg.seed);
    post = post_rdma(n, 0x08, STORM_OUT, STORM_AREA + slot * STORM_SLOT,
                     msg.len);
    post.fm_ce_se = 0;
    node_write_wqe(n, &post);
    post = (struct post) {
        .opcode = 0x0a, .fm_ce_se = 8, .inl = &msg, .inl_len = sizeof(msg)
    };
    node_write_wqe(n, &post);
    assert_int_equal(node_ring(n), 0);
    ++s->sent;
}

static void storm_got(struct storm *s, const struct cqe64 *cqe)
{
    const uint8_t *at = s->n->buf + NODE_BUF - 65536 +
                        (s->received % 16) * 64;
    struct message msg;

    assert_int_equal(be32toh(cqe->byte_cnt), sizeof(msg));
    memcpy(&msg, at, sizeof(msg));
    assert_int_equal(msg.seq, s->received);
    if (!pattern_is(s->n->buf + STORM_AREA + msg.slot * STORM_SLOT, msg.len,
                    msg.seed)) {
        fail_msg("message %u: the write before it differs", msg.seq);
    }
    ++s->received;
    atomic_store(s->checked, s->received);
    ++s->owed;
}

static void storm_run(struct storm *state, uint32_t rounds, bool keys)
{
    double end     = now_s() + 3 * NODE_DEADLINE;
    struct storm s = *state;
    struct node *n = s.n;
    const struct cqe64 *cqe;
    unsigned seen;

    storm_refill(&s, STORM_RX);
    while ((s.done_tx < rounds) || (s.received < rounds)) {
        /* the source is written again only when it has been taken, and the
         * place it goes to only when it has been checked */
        if ((s.sent < rounds) && (s.done_tx == s.sent) &&
            (s.sent - atomic_load(s.peer_checked) < STORM_SLOTS)) {
            storm_send(&s);
        }
        seen = 0;
        for (; (cqe = node_poll(n)) != NULL; ++seen) {
            if (cqe->op_own >> 4 == 0) {
                ++s.done_tx;
            } else if (cqe->op_own >> 4 == 2) {
                storm_got(&s, cqe);
            } else {
                fail_msg("syndrome 0x%x after %u sent, %u received",
                         ((const struct cqe64_err*)(const void*)cqe)->syndrome,
                         s.sent, s.received);
            }
        }
        if ((s.owed > 0) && (rand_r(&s.seed) % 16 == 0)) {
            storm_refill(&s, s.owed);
            s.owed = 0;
        }
        if (keys) {
            struct vhca_fw fw;
            uint32_t index;

            node_key(n, n->buf, 64, 1, "lr lw rw", &index);
            assert_true(vhca_mkey_destroy(n->owner, index, &fw));
        }
        if (seen == 0) {
            sched_yield(); /* more processes than processors */
        }
        if (now_s() > end) {
            fail_msg("stuck: sent %u done %u received %u of %u", s.sent,
                     s.done_tx, s.received, rounds);
        }
    }
}

static unsigned seed;

static const struct node_cfg storm_cfg = {
    .rnr_retry = 7, .min_rnr_nak = 1, .retry_count = 7, .ack_timeout = 18
};

static void storm(unsigned pairs, uint32_t rounds, bool keys)
{
    struct node_info *info = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    _Atomic uint32_t *ready = (_Atomic uint32_t*)(void*)(info + 64);
    _Atomic uint32_t *done  = ready + 1;
    pid_t pid[16];
    unsigned i;
    int status;

    assert_true(info != MAP_FAILED);
    fflush(NULL);
    for (i = 0; i < 2 * pairs; ++i) {
        pid[i] = fork();
        assert_true(pid[i] >= 0);
        if (pid[i] == 0) {
            struct node n;

            prctl(PR_SET_PDEATHSIG, SIGKILL);
            node_open(&n, &storm_cfg);
            info[i] = node_info(&n);
            atomic_fetch_add(ready, 1);
            wait_for(ready, 2 * pairs);
            n.peer = info[i ^ 1];
            node_connect(&n, 0x504);
            storm_run(&(struct storm) {
                          .n = &n, .seed = seed + i, .checked = &ready[2 + i],
                          .peer_checked = &ready[2 + (i ^ 1)]
                      }, rounds, keys);
            atomic_fetch_add(done, 1);
            while (atomic_load(done) < 2 * pairs) {
                sched_yield(); /* the other end may still read from us */
            }
            node_close(&n);
            _exit(0);
        }
    }
    for (i = 0; i < 2 * pairs; ++i) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        if (status != 0) {
            fail_msg("process %u: status 0x%x", i, status);
        }
    }
    munmap(info, 4096);
}

static uint32_t rounds_of(uint32_t normal)
{
    const char *env = getenv("HIXL_TEST_ROUNDS");

    return env ? strtoul(env, NULL, 0) : normal;
}

static void storm__one_pair__every_byte_in_order(void **state)
{
    (void)state;
    storm(1, rounds_of(2000), false);
}

static void storm__three_pairs__every_byte_in_order(void **state)
{
    (void)state;
    storm(3, rounds_of(600), false);
}

static void storm__keys_come_and_go__every_byte_in_order(void **state)
{
    (void)state;
    storm(2, rounds_of(600), true);
}

static int group_setup(void **state)
{
    const char *env = getenv("HIXL_TEST_SEED");

    seed = env ? strtoul(env, NULL, 0) : (unsigned)time(NULL);
    print_message("HIXL_TEST_SEED=%u\n", seed);
    return node_group_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storm__one_pair__every_byte_in_order),
        cmocka_unit_test(storm__three_pairs__every_byte_in_order),
        cmocka_unit_test(storm__keys_come_and_go__every_byte_in_order)
    };

    return cmocka_run_group_tests(tests, group_setup, node_group_teardown);
}
