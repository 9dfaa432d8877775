/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the connection manager's tests share: interfaces whose links are counted
 * and recorded instead of made on a device, endpoints that remember what they
 * were told, sockets that speak (or break) the protocol by hand.
 */

#ifndef HIXL_CM_FIXTURE_H_
#define HIXL_CM_FIXTURE_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <uct_hixl/hixl_cm_int.h>

/* Long, for machines that are busy; nothing waits for it in vain */
#define WAIT_SECONDS 60

/* An interface of the test, and what its links were told to do */
typedef struct test_node {
    uct_hixl_iface_t iface;
    int              links;          /* alive: test_node_links() */
    int              fail_create;    /* ucs_status_t to fail with, or 0 */
    int              fail_connect;
    struct test_node *next;
} test_node_t;

typedef struct test_link {
    uct_hixl_link_t        super;
    uint32_t               qpn;
    int                    connected;
    uct_hixl_qp_addr_t     peer_qp;
    uct_hixl_device_addr_t peer_dev;
} test_link_t;

typedef struct test_ep {
    uct_hixl_link_t *link;
    int             ready;
    int             failed;
    ucs_status_t    status;
} test_ep_t;

void test_node_open(test_node_t *node, const char *cm_addr, double timeout);
void test_node_close(test_node_t *node);
/** Runs progress of every open node. */
void test_progress(void);
/** Asserts that the connect succeeded; the endpoint may be ready at once. */
void test_connect(test_node_t *node, test_ep_t *ep, const void *addr);
void test_connect_node(test_node_t *node, test_ep_t *ep, test_node_t *peer);
void test_connect_ready(test_node_t *node, test_ep_t *ep, test_node_t *peer);
void test_release(test_ep_t *ep);
/** Links of the node that are alive. */
int test_node_links(test_node_t *node);
int test_node_idle(test_node_t *node);
int test_node_half_open(test_node_t *node);
uint64_t test_counter(const char *name);

/** The async thread does nothing from hold to let_go. */
void test_async_hold(void);
void test_async_let_go(void);

/** A peer made by hand: a listening socket and its interface address. */
int test_raw_listen(uint8_t *addr, const uint8_t *first_ip);
int test_raw_accept(int listen_fd);
/** A socket connected to the node's listener. */
int test_raw_connect(test_node_t *node);
void test_raw_send(int fd, const void *data, size_t length);
void test_raw_say(int fd, const uct_hixl_cm_msg_t *msg);
/** The next message; fails the test if the socket ends. */
uct_hixl_cm_msg_t test_raw_hear(int fd);
/** Waits for the peer to close it, and closes. */
void test_raw_wait_end(int fd);
/** A right HELLO to the node. */
uct_hixl_cm_msg_t test_hello(test_node_t *node);
/** Connects to the node by hand, up to a link that it holds idle. */
int test_raw_link(test_node_t *node, uct_hixl_cm_msg_t *hello);

/** What was logged as a warning or an error since, by a part of its text. */
void test_log_start(void);
int test_log_count(const char *text);
void test_log_stop(void);

double test_seconds(void);

#define WAIT_FOR(_cond) \
    do { \
        double _end = test_seconds() + WAIT_SECONDS; \
        while (!(_cond)) { \
            if (test_seconds() > _end) { \
                fail_msg("waited in vain for " #_cond); \
            } \
            test_progress(); \
            test_pause(); \
        } \
    } while (0)

/** Gives the processor to the async thread. */
void test_pause(void);

#endif
