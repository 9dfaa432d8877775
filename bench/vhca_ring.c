/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The emulated device's doorbell: an 8-byte inline RDMA write into the memory
 * of another process, from the WQE's first byte until its CQE was polled.
 * Prints "ns per write" of the best round and of the median one.
 */

#include "mlx5/cq_poll.h"
#include "mlx5/hx.h"
#include "mlx5/sq.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define MEM_LEN 4096
#define ROUNDS  41
#define WRITES  20000

#define CHECK(_cond) \
    do { \
        if (!(_cond)) { \
            fprintf(stderr, "vhca_ring: %s failed\n", #_cond); \
            exit(1); \
        } \
    } while (0)

/* What the two processes know of each other */
struct shared {
    struct {
        uint32_t qpn, key;
        uint64_t addr;
    } end[2];
    _Atomic unsigned step[2];
};

struct end {
    struct hx_dev  *dev;
    struct hx_port  port;
    struct hx_uar  *uar;
    struct hx_cq   *cq;
    struct hx_rmp  *rmp;
    struct hx_qp   *qp;
    struct hx_mkey  key;
    uint64_t       *mem;
};

static double now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* Until both have come this far */
static void meet(struct shared *s, int me, unsigned step)
{
    atomic_store(&s->step[me], step);
    while (atomic_load(&s->step[!me]) < step) {
        sched_yield();
    }
}

/* As the transport's memory domain allocates it */
static void *mem_alloc(int *fd_p)
{
    int fd = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *mem;

    CHECK((fd >= 0) && (ftruncate(fd, MEM_LEN) == 0));
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    mem = mmap(NULL, MEM_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(mem != MAP_FAILED);
    *fd_p = fd;
    return mem;
}

static void end_open(struct end *e)
{
    struct hx_qp_attr attr = { .log_sq_bb = 8 };
    unsigned count;
    char **names;
    int fd;

    CHECK((hx_dev_list(&names, &count) == 0) && (count > 0));
    CHECK(hx_dev_open(names[0], &e->dev) == 0);
    CHECK(hx_dev_set_reg_mode(e->dev, HX_REG_UMEM) == 0);
    CHECK(hx_port_query(e->dev, 1, HX_GID_INDEX_AUTO, &e->port) == 0);
    CHECK(hx_uar_create(e->dev, &e->uar) == 0);
    CHECK(hx_cq_create(e->dev, e->uar, 8, NULL, &e->cq) == 0);
    CHECK(hx_rmp_create(e->dev, e->uar, 4, &e->rmp) == 0);
    attr.uar     = e->uar;
    attr.send_cq = attr.recv_cq = e->cq;
    attr.rmp     = e->rmp;
    CHECK(hx_qp_create(e->dev, &attr, &e->qp) == 0);
    e->mem = mem_alloc(&fd);
    CHECK(hx_mkey_create(e->dev, e->mem, MEM_LEN, IBV_ACCESS_LOCAL_WRITE |
                         IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
                         &e->key) == 0);
    close(fd);
}

static void end_connect(struct end *e, struct shared *s, int me)
{
    struct hx_qp_path path = {
        .remote_qpn  = s->end[!me].qpn,
        .mtu         = e->port.active_mtu,
        .lid         = e->port.lid,
        .gid         = e->port.gid, /* both are on one port */
        .ack_timeout = 14, .retry_count = 7, .rnr_retry = 7, .min_rnr_nak = 12
    };

    CHECK(hx_qp_init(e->qp, &e->port, 0) == 0);
    CHECK(hx_qp_rtr(e->qp, &e->port, &path) == 0);
    CHECK(hx_qp_rts(e->qp, &path) == 0);
}

static void end_close(struct end *e)
{
    hx_qp_destroy(e->qp);
    hx_mkey_destroy(&e->key);
    hx_rmp_destroy(e->rmp);
    hx_cq_destroy(e->cq);
    hx_uar_destroy(e->uar);
    hx_dev_close(e->dev);
}

static void write8(struct end *e, uint64_t addr, uint32_t key, uint64_t value)
{
    struct hx_wc wc;
    unsigned n;

    n = hx_sq_write_inline(&e->qp->sq, &value, sizeof(value), addr, key,
                           HX_WQE_CQ_UPDATE);
    hx_sq_post(&e->qp->sq, n);
    while (!hx_cq_poll(e->cq, &wc)) {
    }
    CHECK(wc.kind == HX_CQE_REQ);
    hx_cq_update_ci(e->cq);
    e->qp->sq.ci = wc.wqe_counter + 1;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double*)a, y = *(const double*)b;

    return (x > y) - (x < y);
}

static void measure(struct end *e, struct shared *s)
{
    double took[ROUNDS], start;
    uint64_t value = 0;
    unsigned i, k;

    for (k = 0; k < ROUNDS; ++k) {
        start = now_ns();
        for (i = 0; i < WRITES; ++i) {
            write8(e, s->end[1].addr + 64, s->end[1].key, ++value);
        }
        took[k] = (now_ns() - start) / WRITES;
    }
    qsort(took, ROUNDS, sizeof(took[0]), compare);
    printf("%.0f %.0f\n", took[0], took[ROUNDS / 2]);
}

int main(void)
{
    struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct end e;
    int me, status;
    pid_t child;

    CHECK(s != MAP_FAILED);
    child = fork();
    CHECK(child >= 0);
    me = child == 0;
    if (me == 1) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    end_open(&e);
    s->end[me].qpn  = e.qp->qpn;
    s->end[me].key  = e.key.key;
    s->end[me].addr = (uintptr_t)e.mem;
    meet(s, me, 1);
    end_connect(&e, s, me);
    meet(s, me, 2);
    if (me == 0) {
        measure(&e, s);
        atomic_store(&s->step[0], 3);
        CHECK((waitpid(child, &status, 0) == child) && (status == 0));
    } else {
        /* it shall not take a processor from who is measured */
        while (atomic_load(&s->step[0]) < 3) {
            usleep(1000);
        }
        CHECK(e.mem[8] == (uint64_t)ROUNDS * WRITES);
    }
    end_close(&e);
    return 0;
}
