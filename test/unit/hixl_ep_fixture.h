/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the tests of interface and endpoint share: a real interface over doubles
 * of the device half, of the registrations and of the connection manager. The
 * device works off WQEs only when a test steps it, so queues fill, and it fails
 * where it is told to.
 */

#ifndef HIXL_EP_FIXTURE_H_
#define HIXL_EP_FIXTURE_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <ucs/sys/string.h>
#include <uct_hixl/hixl_cm.h>
#include <uct_hixl/hixl_ep.h>

#define TEST_RKEY 0x7e57

/* A QP of the double; it executes WQEs for the QP that it is connected to */
typedef struct test_qp {
    struct hx_qp    super;
    uint16_t        hw_ci;       /* next WQE to execute */
    int             connected;
    int             error;
    uint8_t         fail_syndrome; /* of the next WQE; 0: none */
    uint32_t        remote_qpn;
    int             hold;        /* SENDs take a receive, and end later */
    unsigned        executed;    /* WQEs, flushed ones not */
    unsigned        count[256];  /* by opcode */
    uint8_t         last_fm_ce_se;
    struct hx_rmp  *rmp;
    struct hx_cq   *send_cq;
    struct hx_cq   *recv_cq;
} test_qp_t;

/* A completion that counts its calls */
typedef struct test_comp {
    uct_completion_t super;
    unsigned         calls;
    ucs_status_t     status;     /* of the last call */
} test_comp_t;

/* A pending request that runs a function and remembers the order */
typedef struct test_req {
    uct_pending_req_t super;
    ucs_status_t      (*run)(struct test_req *req);
    uct_ep_h          ep;
    void             *arg;
    unsigned          calls;
    unsigned          order;     /* 1: the first request that got done */
} test_req_t;

typedef struct test_env {
    uct_hixl_iface_config_t config;
    size_t                  rx_headroom;
    uct_iface_h             tl_iface;
    uct_hixl_iface_t       *iface;
    unsigned                err_calls;  /* of the error handler */
    uct_ep_h                err_ep;
    ucs_status_t            err_status;
    unsigned                released;   /* links: uct_hixl_cm_release() */
    unsigned                aborted;    /* uct_hixl_cm_abort() */
    unsigned                order;      /* requests that got done */
    unsigned                destroyed_live; /* QPs, connected and no error */
    int                     refuse_keys; /* hx_mkey_create() fails */
    unsigned                keys_refused;
} test_env_t;

extern test_env_t env;

/* Regions that can be bound from now on; -1: any number */
extern int test_bindable;
/* What reading the event channel fails with, and how often it did */
extern int test_channel_error;
extern unsigned test_channel_reads;
/** Pins that were not undone. */
unsigned test_pins(void);

/** Sets the defaults of env.config; tests change them before test_open(). */
int test_setup(void **state);
/** Closes what is open and asserts that nothing is left. */
int test_teardown(void **state);
void test_open(void);
/** The same, and may fail. */
ucs_status_t test_try_open(void);

/** An endpoint that is connected to `peer`, or to itself (NULL). */
uct_ep_h test_ep_new(uct_ep_h peer);
/** Made by the double of the connection manager, not ready yet. */
uct_ep_h test_ep_new_to_iface(void);
void test_ep_ready(uct_ep_h ep, uct_ep_h peer);
test_qp_t *test_ep_qp(uct_ep_h ep);
uct_hixl_ep_t *test_ep(uct_ep_h ep);

/** Executes up to max WQEs of every QP; returns how many. */
unsigned test_step(unsigned max);
unsigned test_qp_step(test_qp_t *qp, unsigned max);
/** The device takes a receive; returns its index. */
uint16_t test_rmp_take(struct hx_rmp *rmp);
/** Ends what was held, see test_qp_t.hold. */
void test_deliver_held(void);
/** Progress of the interface, until it finds nothing more. */
unsigned test_progress(void);
/** Steps and progresses until nothing happens. */
void test_run(void);
/** CQEs that the device wrote and progress has not taken. */
unsigned test_cq_used(const struct hx_cq *cq);

void test_comp_init(test_comp_t *comp);
/** A local piece. */
uct_iov_t test_iov(void *buffer, size_t length);
void test_req_init(test_req_t *req, uct_ep_h ep,
                   ucs_status_t (*run)(test_req_t *req), void *arg);
void test_fill(void *buffer, size_t length, unsigned seed);
uint64_t test_counter(const char *name);

#endif
