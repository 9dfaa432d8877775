/* SPDX-License-Identifier: BSD-3-Clause */

/* The device half on a device: objects, two RC QPs connected to each other, and
 * every kind of WQE between them. HIXL_TEST_DEV names the device; exit status
 * 77 if there is none. HIXL_TEST_REG=mr: keys are MRs. */

#include "mlx5/cq_poll.h"
#include "mlx5/hx.h"
#include "mlx5/sq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>

#define DEADLINE_SEC 10
#define MEM_LEN      (1 << 20)
#define LOG_SQ       5 /* small, so that it wraps */
#define LOG_RMP      3
#define RECV_LEN     4096
#define FLAGS        HX_WQE_CQ_UPDATE
#define KEY_ACCESS   (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
                      IBV_ACCESS_REMOTE_READ)

static char *dev_name;

/* Everything that a test needs; qp[0] sends to qp[1] and back */
struct env {
    struct hx_dev     *dev;
    struct hx_port     port;
    struct hx_uar     *uar;
    struct hx_channel *chan;
    struct hx_cq      *send_cq;
    struct hx_cq      *recv_cq;
    struct hx_rmp     *rmp;
    struct hx_qp      *qp[2];
    uint8_t           *local;
    uint8_t           *remote;
    uint8_t           *recv;
    struct hx_mkey     local_key;
    struct hx_mkey     remote_key;
    struct hx_mkey     recv_key;
};

static enum hx_reg_mode reg_mode(void)
{
    const char *mode = getenv("HIXL_TEST_REG");

    return ((mode != NULL) && (strcmp(mode, "mr") == 0)) ? HX_REG_MR :
                                                           HX_REG_UMEM;
}

static uint8_t *mem_alloc(void)
{
    void *p = mmap(NULL, MEM_LEN, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

static void mem_pattern(uint8_t *p, size_t n, unsigned seed)
{
    size_t i;

    for (i = 0; i < n; ++i) {
        seed = seed * 1103515245 + 12345;
        p[i] = seed >> 16;
    }
}

static void qp_connect(struct env *env, unsigned i)
{
    struct hx_qp_path path = {
        .remote_qpn  = env->qp[!i]->qpn,
        .remote_psn  = 0x100 + !i,
        .local_psn   = 0x100 + i,
        .mtu         = env->port.active_mtu,
        .lid         = env->port.lid,
        .gid         = env->port.gid,
        .ack_timeout = 14,
        .retry_count = 7,
        .rnr_retry   = 7,
        .min_rnr_nak = 12
    };

    assert_int_equal(hx_qp_init(env->qp[i], &env->port, 0), 0);
    assert_int_equal(hx_qp_rtr(env->qp[i], &env->port, &path), 0);
    assert_int_equal(hx_qp_rts(env->qp[i], &path), 0);
}

static int env_setup(void **state)
{
    struct env *env = calloc(1, sizeof(*env));
    struct hx_qp_attr attr;
    unsigned i;

    assert_non_null(env);
    assert_int_equal(hx_dev_open(dev_name, &env->dev), 0);
    assert_int_equal(hx_dev_set_reg_mode(env->dev, reg_mode()), 0);
    assert_int_equal(hx_port_query(env->dev, 1, HX_GID_INDEX_AUTO, &env->port),
                     0);
    assert_int_equal(hx_uar_create(env->dev, &env->uar), 0);
    assert_int_equal(hx_channel_create(env->dev, &env->chan), 0);
    assert_int_equal(hx_cq_create(env->dev, env->uar, 6, env->chan,
                                  &env->send_cq), 0);
    assert_int_equal(hx_cq_create(env->dev, env->uar, 6, env->chan,
                                  &env->recv_cq), 0);
    assert_int_equal(hx_rmp_create(env->dev, env->uar, LOG_RMP, &env->rmp), 0);

    attr = (struct hx_qp_attr) {
        .uar       = env->uar,
        .send_cq   = env->send_cq,
        .recv_cq   = env->recv_cq,
        .rmp       = env->rmp,
        .log_sq_bb = LOG_SQ
    };
    for (i = 0; i < 2; ++i) {
        assert_int_equal(hx_qp_create(env->dev, &attr, &env->qp[i]), 0);
    }
    qp_connect(env, 0);
    qp_connect(env, 1);

    env->local  = mem_alloc();
    env->remote = mem_alloc();
    env->recv   = mem_alloc();
    assert_int_equal(hx_mkey_create(env->dev, env->local, MEM_LEN,
                                    IBV_ACCESS_LOCAL_WRITE, &env->local_key),
                     0);
    assert_int_equal(hx_mkey_create(env->dev, env->remote, MEM_LEN, KEY_ACCESS,
                                    &env->remote_key), 0);
    assert_int_equal(hx_mkey_create(env->dev, env->recv, MEM_LEN,
                                    IBV_ACCESS_LOCAL_WRITE, &env->recv_key),
                     0);
    *state = env;
    return 0;
}

static int env_teardown(void **state)
{
    struct env *env = *state;

    hx_qp_destroy(env->qp[0]);
    hx_qp_destroy(env->qp[1]);
    hx_rmp_destroy(env->rmp);
    hx_cq_destroy(env->recv_cq);
    hx_cq_destroy(env->send_cq);
    hx_channel_destroy(env->chan);
    hx_mkey_destroy(&env->recv_key);
    hx_mkey_destroy(&env->remote_key);
    hx_mkey_destroy(&env->local_key);
    hx_uar_destroy(env->uar);
    hx_dev_close(env->dev);
    munmap(env->recv, MEM_LEN);
    munmap(env->remote, MEM_LEN);
    munmap(env->local, MEM_LEN);
    free(env);
    return 0;
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static struct hx_wc wait_cqe(struct hx_cq *cq)
{
    double end      = now() + DEADLINE_SEC;
    struct hx_wc wc = {0};

    while (!hx_cq_poll(cq, &wc)) {
        if (now() > end) {
            fail_msg("no CQE in CQ 0x%x after %d s", cq->cqn, DEADLINE_SEC);
        }
        sched_yield();
    }

    hx_cq_update_ci(cq);
    return wc;
}

/* Waits for the CQE of the WQE that began at `first` on qp[0] */
static void wait_sent(struct env *env, uint16_t first)
{
    struct hx_wc wc = wait_cqe(env->send_cq);

    if (wc.kind != HX_CQE_REQ) {
        fail_msg("error CQE: %s, vendor 0x%x", hx_cqe_syndrome_str(wc.syndrome),
                 wc.vendor_syndrome);
    }
    assert_int_equal(wc.qpn, env->qp[0]->qpn);
    assert_int_equal(wc.wqe_counter, first);
    hx_sq_complete(&env->qp[0]->sq, wc.wqe_counter);
}

static void wait_error(struct env *env, uint8_t syndrome)
{
    struct hx_wc wc = wait_cqe(env->send_cq);

    assert_int_equal(wc.kind, HX_CQE_REQ_ERR);
    assert_int_equal(wc.qpn, env->qp[0]->qpn);
    assert_string_equal(hx_cqe_syndrome_str(wc.syndrome),
                        hx_cqe_syndrome_str(syndrome));
}

static void post_and_wait(struct env *env, unsigned bb)
{
    uint16_t first = env->qp[0]->sq.pi;

    hx_sq_post(&env->qp[0]->sq, bb);
    wait_sent(env, first);
}

static struct hx_sge local_sge(struct env *env, size_t off, uint32_t len)
{
    return (struct hx_sge) {
        .addr = (uintptr_t)env->local + off,
        .len  = len,
        .lkey = env->local_key.key
    };
}

static uint64_t raddr(struct env *env, size_t off)
{
    return (uintptr_t)env->remote + off;
}

/* Slot of the RMP's ring -> its receive buffer */
static uint8_t *recv_slot(struct env *env, uint16_t index)
{
    return env->recv + (index & env->rmp->mask) * RECV_LEN;
}

static void post_recv(struct env *env)
{
    hx_rmp_post(env->rmp, (uintptr_t)recv_slot(env, env->rmp->head), RECV_LEN,
                env->recv_key.key);
    hx_rmp_ring(env->rmp);
}

static uint8_t *wait_recv(struct env *env, uint32_t len)
{
    struct hx_wc wc = wait_cqe(env->recv_cq);

    assert_int_equal(wc.kind, HX_CQE_RECV);
    assert_int_equal(wc.qpn, env->qp[1]->qpn);
    assert_int_equal(wc.byte_cnt, len);
    assert_false(wc.has_imm);
    hx_rmp_free(env->rmp, wc.wqe_counter);
    return recv_slot(env, wc.wqe_counter);
}

static void list__device_there__named(void **state)
{
    unsigned count, i, found = 0;
    char **names;

    (void)state;
    assert_int_equal(hx_dev_list(&names, &count), 0);
    for (i = 0; i < count; ++i) {
        found += strcmp(names[i], dev_name) == 0;
        free(names[i]);
    }
    free(names);
    assert_int_equal(found, 1);
}

static void open__unknown_name__enodev(void **state)
{
    struct hx_dev *dev = NULL;

    (void)state;
    assert_int_equal(hx_dev_open("mlx5_none", &dev), -ENODEV);
    assert_null(dev);
}

static void port__first__active_with_a_gid(void **state)
{
    static const union ibv_gid zero;
    struct env *env = *state;
    struct hx_port port;

    assert_true(env->port.active);
    assert_int_equal(env->port.num, 1);
    assert_memory_not_equal(&env->port.gid, &zero, sizeof(zero));
    assert_int_equal(env->port.roce, env->dev->caps.port_type_roce);
    if (!env->port.roce) {
        assert_int_not_equal(env->port.lid, 0);
    } else {
        assert_int_equal(env->port.gid_type, IBV_GID_TYPE_ROCE_V2);
    }
    assert_true(hx_port_query(env->dev, 1, 255, &port) < 0);
    assert_true(hx_port_query(env->dev, 200, 0, &port) < 0);
}

static void write_inline__each_length__arrives(void **state)
{
    struct env *env = *state;
    uint8_t data[HX_WRITE_INLINE_MAX];
    unsigned len;

    for (len = 0; len <= HX_WRITE_INLINE_MAX; ++len) {
        mem_pattern(data, sizeof(data), len);
        memset(env->remote, 0xaa, 4096);
        post_and_wait(env, hx_sq_write_inline(&env->qp[0]->sq, data, len,
                                              raddr(env, 65),
                                              env->remote_key.key, FLAGS));
        assert_memory_equal(env->remote + 65, data, len);
        assert_int_equal(env->remote[64], 0xaa);
        assert_int_equal(env->remote[65 + len], 0xaa);
    }
}

static void write__one_piece__arrives(void **state)
{
    static const uint32_t lens[] = {1, 7, 64, 4095, 4096, 4097, 65536, 1000000};
    struct env *env              = *state;
    size_t i;

    for (i = 0; i < sizeof(lens) / sizeof(lens[0]); ++i) {
        struct hx_sge sge = local_sge(env, 3, lens[i]);

        mem_pattern(env->local, MEM_LEN, i);
        memset(env->remote, 0xaa, MEM_LEN);
        post_and_wait(env, hx_sq_write(&env->qp[0]->sq, &sge, 1,
                                       raddr(env, 1001), env->remote_key.key,
                                       FLAGS));
        assert_memory_equal(env->remote + 1001, env->local + 3, lens[i]);
        assert_int_equal(env->remote[1000], 0xaa);
        assert_int_equal(env->remote[1001 + lens[i]], 0xaa);
    }
}

/* n pieces of 1000 + i bytes, with gaps, from byte 17 on */
static uint32_t many_sges(struct env *env, struct hx_sge *sge, unsigned n)
{
    uint32_t total = 0;
    unsigned i;

    for (i = 0; i < n; ++i) {
        sge[i]  = local_sge(env, 17 + i * 5000, 1000 + i);
        total  += 1000 + i;
    }

    return total;
}

static void write__each_number_of_pieces__gathered(void **state)
{
    struct env *env = *state;
    struct hx_sge sge[HX_RDMA_SGE_MAX];
    unsigned n, i;
    size_t off;

    mem_pattern(env->local, MEM_LEN, 1);
    for (n = 1; n <= HX_RDMA_SGE_MAX; ++n) {
        many_sges(env, sge, n);
        memset(env->remote, 0xaa, MEM_LEN);
        post_and_wait(env, hx_sq_write(&env->qp[0]->sq, sge, n, raddr(env, 9),
                                       env->remote_key.key, FLAGS));
        for (off = 9, i = 0; i < n; off += sge[i++].len) {
            assert_memory_equal(env->remote + off, (void *)sge[i].addr,
                                sge[i].len);
        }
        assert_int_equal(env->remote[off], 0xaa);
    }
}

static void read__each_number_of_pieces__scattered(void **state)
{
    struct env *env = *state;
    struct hx_sge sge[HX_RDMA_SGE_MAX];
    unsigned n, i;
    size_t off;

    mem_pattern(env->remote, MEM_LEN, 2);
    for (n = 1; n <= HX_RDMA_SGE_MAX; ++n) {
        many_sges(env, sge, n);
        memset(env->local, 0xaa, MEM_LEN);
        post_and_wait(env, hx_sq_read(&env->qp[0]->sq, sge, n, raddr(env, 9),
                                      env->remote_key.key, FLAGS));
        for (off = 9, i = 0; i < n; off += sge[i++].len) {
            assert_memory_equal(env->remote + off, (void *)sge[i].addr,
                                sge[i].len);
            assert_int_equal(*(uint8_t *)(sge[i].addr + sge[i].len), 0xaa);
        }
    }
}

static void send_inline__header_and_payload__arrive_as_one(void **state)
{
    struct env *env = *state;
    uint8_t data[HX_SEND_INLINE_MAX];
    unsigned len, hdr_len;
    uint8_t *msg;

    /* more messages than the receive ring has slots: it wraps */
    for (len = 1; len <= HX_SEND_INLINE_MAX; ++len) {
        hdr_len = len % 40;
        hdr_len = (hdr_len > len) ? len : hdr_len;
        mem_pattern(data, sizeof(data), len);
        post_recv(env);
        post_and_wait(env, hx_sq_send_inline(&env->qp[0]->sq, data, hdr_len,
                                             data + hdr_len, len - hdr_len,
                                             FLAGS));
        msg = wait_recv(env, len);
        assert_memory_equal(msg, data, len);
    }
}

static void send__header_and_pieces__arrive_as_one(void **state)
{
    struct env *env = *state;
    struct hx_sge sge[3];
    uint8_t hdr[HX_SEND_HDR_MAX], *msg;
    unsigned hdr_len, n;
    uint32_t total;

    mem_pattern(hdr, sizeof(hdr), 1);
    mem_pattern(env->local, MEM_LEN, 2);
    for (hdr_len = 0; hdr_len <= HX_SEND_HDR_MAX; ++hdr_len) {
        for (n = 0; n <= 3; ++n) {
            total = many_sges(env, sge, n);
            post_recv(env);
            post_and_wait(env, hx_sq_send(&env->qp[0]->sq, hdr, hdr_len, sge,
                                          n, FLAGS));
            msg = wait_recv(env, hdr_len + total);
            assert_memory_equal(msg, hdr, hdr_len);
            if (n > 0) {
                assert_memory_equal(msg + hdr_len, (void *)sge[0].addr,
                                    sge[0].len);
            }
            if (n > 2) {
                assert_memory_equal(msg + hdr_len + total - sge[2].len,
                                    (void *)sge[2].addr, sge[2].len);
            }
        }
    }
}

static void unsignaled__followed_by_nop__one_cqe(void **state)
{
    struct env *env  = *state;
    struct hx_sq *sq = &env->qp[0]->sq;
    struct hx_wc wc  = {0};
    uint64_t value;
    unsigned i;

    memset(env->remote, 0, 64);
    for (i = 0; i < 5; ++i) {
        value = i + 1;
        hx_sq_post(sq, hx_sq_write_inline(sq, &value, 8, raddr(env, i * 8),
                                          env->remote_key.key, 0));
    }
    post_and_wait(env, hx_sq_nop(sq, FLAGS | HX_WQE_FENCE));
    for (i = 0; i < 5; ++i) {
        assert_int_equal(((uint64_t *)env->remote)[i], i + 1);
    }
    assert_false(hx_cq_poll(env->send_cq, &wc));
}

static void mkey__any_alignment__exactly_its_bytes(void **state)
{
    static const struct {
        size_t off, len;
    } cases[] = {{1, 1}, {4095, 2}, {4096, 4096}, {100, 70000}, {8191, 1}};
    struct env *env = *state;
    struct hx_mkey key;
    uint8_t data[HX_WRITE_INLINE_MAX];
    uint32_t n;
    size_t i;

    mem_pattern(data, sizeof(data), 77);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        uint8_t *begin = env->remote + cases[i].off;

        assert_int_equal(hx_mkey_create(env->dev, begin, cases[i].len,
                                        KEY_ACCESS, &key), 0);
        n = (cases[i].len < sizeof(data)) ? cases[i].len : sizeof(data);
        memset(env->remote, 0xaa, MEM_LEN);
        post_and_wait(env, hx_sq_write_inline(&env->qp[0]->sq, data, n,
                                              (uintptr_t)begin +
                                              cases[i].len - n, key.key,
                                              FLAGS));
        assert_memory_equal(begin + cases[i].len - n, data, n);
        assert_int_equal(begin[cases[i].len], 0xaa);
        hx_mkey_destroy(&key);
    }
}

static void write_with_key(struct env *env, uint64_t addr, uint32_t rkey)
{
    struct hx_sq *sq = &env->qp[0]->sq;
    uint64_t value   = 0xbadbadbadbadbad;

    hx_sq_post(sq, hx_sq_write_inline(sq, &value, 8, addr, rkey, 0));
}

static void write__wrong_rkey__remote_access_error_then_flush(void **state)
{
    struct env *env  = *state;
    struct hx_sq *sq = &env->qp[0]->sq;

    /* an error CQE comes without having been asked for */
    write_with_key(env, raddr(env, 0), env->remote_key.key ^ 0x5500);
    wait_error(env, 0x13);
    hx_sq_post(sq, hx_sq_nop(sq, FLAGS));
    wait_error(env, 0x05);
}

static void write__past_the_end__remote_access_error(void **state)
{
    struct env *env = *state;

    write_with_key(env, raddr(env, MEM_LEN - 7), env->remote_key.key);
    wait_error(env, 0x13);
}

static void write__key_without_the_right__remote_access_error(void **state)
{
    struct env *env = *state;

    memset(env->local, 0, 8);
    write_with_key(env, (uintptr_t)env->local, env->local_key.key);
    wait_error(env, 0x13);
    assert_int_equal(*(uint64_t *)env->local, 0);
}

static void write__destroyed_key__remote_access_error(void **state)
{
    struct env *env = *state;
    struct hx_mkey key, next;

    assert_int_equal(hx_mkey_create(env->dev, env->remote, 4096, KEY_ACCESS,
                                    &key), 0);
    hx_mkey_destroy(&key);
    /* the index may be the same, the tag is not */
    assert_int_equal(hx_mkey_create(env->dev, env->remote, 4096, KEY_ACCESS,
                                    &next), 0);
    assert_int_not_equal(next.key, key.key);
    memset(env->remote, 0, 8);
    write_with_key(env, raddr(env, 0), key.key);
    wait_error(env, 0x13);
    assert_int_equal(*(uint64_t *)env->remote, 0);
    hx_mkey_destroy(&next);
}

static void write__wrong_lkey__local_protection_error(void **state)
{
    struct env *env   = *state;
    struct hx_sq *sq  = &env->qp[0]->sq;
    struct hx_sge sge = local_sge(env, 0, 64);

    sge.lkey ^= 0x5500;
    hx_sq_post(sq, hx_sq_write(sq, &sge, 1, raddr(env, 0),
                               env->remote_key.key, FLAGS));
    wait_error(env, 0x04);
}

static void qp_err__then_post__flushed(void **state)
{
    struct env *env  = *state;
    struct hx_sq *sq = &env->qp[0]->sq;

    assert_int_equal(hx_qp_err(env->qp[0]), 0);
    hx_sq_post(sq, hx_sq_nop(sq, FLAGS));
    wait_error(env, 0x05);
}

static void write__peer_in_error__retry_exceeded(void **state)
{
    struct env *env = *state;

    assert_int_equal(hx_qp_err(env->qp[1]), 0);
    memset(env->remote, 0, 8);
    write_with_key(env, raddr(env, 0), env->remote_key.key);
    wait_error(env, 0x15);
    assert_int_equal(*(uint64_t *)env->remote, 0);
}

static int channel_readable(struct env *env, int timeout_ms)
{
    struct pollfd pfd = {.fd = env->chan->fd, .events = POLLIN};

    return poll(&pfd, 1, timeout_ms);
}

/* Sends one message with both CQs armed, and takes all events: from here on it
 * is known that neither is armed */
static void disarm(struct env *env)
{
    struct hx_sq *sq = &env->qp[0]->sq;
    uint16_t first   = sq->pi;

    hx_channel_drain(env->chan);
    hx_cq_arm(env->send_cq, false);
    hx_cq_arm(env->recv_cq, false);
    post_recv(env);
    hx_sq_post(sq, hx_sq_send_inline(sq, "abc", 3, NULL, 0, FLAGS));
    wait_recv(env, 3);
    wait_sent(env, first);
    while ((env->send_cq->arm_sn == 0) || (env->recv_cq->arm_sn == 0)) {
        assert_int_equal(channel_readable(env, DEADLINE_SEC * 1000), 1);
        assert_true(hx_channel_drain(env->chan) > 0);
    }
}

static void event__armed__one_for_the_next_cqe(void **state)
{
    struct env *env  = *state;
    struct hx_sq *sq = &env->qp[0]->sq;
    unsigned i;

    disarm(env);
    for (i = 0; i < 10; ++i) {
        uint16_t first = sq->pi;
        uint32_t sn    = env->send_cq->arm_sn;

        assert_int_equal(hx_channel_drain(env->chan), 0);
        hx_cq_arm(env->send_cq, false);
        assert_int_equal(channel_readable(env, 0), 0);

        hx_sq_post(sq, hx_sq_nop(sq, FLAGS));
        assert_int_equal(channel_readable(env, DEADLINE_SEC * 1000), 1);
        assert_int_equal(hx_channel_drain(env->chan), 1);
        assert_int_equal(env->send_cq->arm_sn, sn + 1);
        wait_sent(env, first);
        assert_int_equal(channel_readable(env, 0), 0);
    }
}

static void event__not_armed__none(void **state)
{
    struct env *env  = *state;
    struct hx_sq *sq = &env->qp[0]->sq;

    disarm(env);
    post_and_wait(env, hx_sq_nop(sq, FLAGS));
    post_and_wait(env, hx_sq_nop(sq, FLAGS));
    assert_int_equal(channel_readable(env, 0), 0);
}

static void event__cqe_not_polled__at_once(void **state)
{
    struct env *env           = *state;
    struct hx_sq *sq          = &env->qp[0]->sq;
    volatile uint64_t *memory = (volatile uint64_t *)env->remote;
    double end                = now() + DEADLINE_SEC;
    uint64_t one              = 1;
    uint16_t first;

    disarm(env);
    first   = sq->pi;
    *memory = 0;

    /* the write follows in order, so the CQE is there when memory shows it */
    hx_sq_post(sq, hx_sq_nop(sq, FLAGS));
    hx_sq_post(sq, hx_sq_write_inline(sq, &one, 8, raddr(env, 0),
                                      env->remote_key.key, 0));
    while (*memory == 0) {
        assert_true(now() < end);
        sched_yield();
    }

    assert_int_equal(channel_readable(env, 0), 0);
    hx_cq_arm(env->send_cq, false);
    assert_int_equal(channel_readable(env, DEADLINE_SEC * 1000), 1);
    assert_int_equal(hx_channel_drain(env->chan), 1);
    wait_sent(env, first);
}

static void event__solicited__only_for_a_solicited_send(void **state)
{
    struct env *env  = *state;
    struct hx_sq *sq = &env->qp[0]->sq;
    uint32_t send_sn, recv_sn;

    disarm(env);
    send_sn = env->send_cq->arm_sn;
    recv_sn = env->recv_cq->arm_sn;

    hx_cq_arm(env->recv_cq, true);
    post_recv(env);
    post_and_wait(env, hx_sq_send_inline(sq, "abc", 3, NULL, 0, FLAGS));
    wait_recv(env, 3);
    assert_int_equal(channel_readable(env, 0), 0);

    post_recv(env);
    post_and_wait(env, hx_sq_send_inline(sq, "abc", 3, NULL, 0,
                                         FLAGS | HX_WQE_SOLICITED));
    assert_int_equal(channel_readable(env, DEADLINE_SEC * 1000), 1);
    assert_int_equal(hx_channel_drain(env->chan), 1);
    assert_int_equal(env->recv_cq->arm_sn, recv_sn + 1);
    assert_int_equal(env->send_cq->arm_sn, send_sn);
    wait_recv(env, 3);
}

static void send__no_receive_posted__waits_for_one(void **state)
{
    struct env *env  = *state;
    struct hx_sq *sq = &env->qp[0]->sq;
    uint16_t first   = sq->pi;
    struct hx_wc wc  = {0};

    hx_sq_post(sq, hx_sq_send_inline(sq, "hello", 5, NULL, 0, FLAGS));
    assert_false(hx_cq_poll(env->send_cq, &wc));
    assert_false(hx_cq_poll(env->recv_cq, &wc));
    post_recv(env);
    assert_memory_equal(wait_recv(env, 5), "hello", 5);
    wait_sent(env, first);
}

static void create__invalid__refused_and_nothing_left(void **state)
{
    struct env *env = *state;
    struct hx_mkey key;

    /* not mapped: the kernel cannot pin it */
    uint8_t *hole = mem_alloc();

    munmap(hole, MEM_LEN);
    assert_true(hx_mkey_create(env->dev, hole, 4096, KEY_ACCESS, &key) < 0);
}

/* HIXL_TEST_DEV or the first device; NULL: there is none */
static char *choose_device(void)
{
    const char *wanted = getenv("HIXL_TEST_DEV");
    char *name         = NULL;
    unsigned count, i;
    char **names;

    if (wanted != NULL) {
        return strdup(wanted);
    }

    if (hx_dev_list(&names, &count) == 0) {
        if (count > 0) {
            name = strdup(names[0]);
        }
        for (i = 0; i < count; ++i) {
            free(names[i]);
        }
        free(names);
    }

    return name;
}

int main(void)
{
#define ON_ENV(_test) \
    cmocka_unit_test_setup_teardown(_test, env_setup, env_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list__device_there__named),
        cmocka_unit_test(open__unknown_name__enodev),
        ON_ENV(port__first__active_with_a_gid),
        ON_ENV(write_inline__each_length__arrives),
        ON_ENV(write__one_piece__arrives),
        ON_ENV(write__each_number_of_pieces__gathered),
        ON_ENV(read__each_number_of_pieces__scattered),
        ON_ENV(send_inline__header_and_payload__arrive_as_one),
        ON_ENV(send__header_and_pieces__arrive_as_one),
        ON_ENV(unsignaled__followed_by_nop__one_cqe),
        ON_ENV(mkey__any_alignment__exactly_its_bytes),
        ON_ENV(write__wrong_rkey__remote_access_error_then_flush),
        ON_ENV(write__past_the_end__remote_access_error),
        ON_ENV(write__key_without_the_right__remote_access_error),
        ON_ENV(write__destroyed_key__remote_access_error),
        ON_ENV(write__wrong_lkey__local_protection_error),
        ON_ENV(qp_err__then_post__flushed),
        ON_ENV(write__peer_in_error__retry_exceeded),
        ON_ENV(event__armed__one_for_the_next_cqe),
        ON_ENV(event__not_armed__none),
        ON_ENV(event__cqe_not_polled__at_once),
        ON_ENV(event__solicited__only_for_a_solicited_send),
        ON_ENV(send__no_receive_posted__waits_for_one),
        ON_ENV(create__invalid__refused_and_nothing_left),
    };
    int ret;

    dev_name = choose_device();
    if (dev_name == NULL) {
        print_message("no mlx5 device with DevX here\n");
        return 77;
    }

    ret = cmocka_run_group_tests_name("mlx5_objects", tests, NULL, NULL);
    free(dev_name);
    return ret;
}
