/* SPDX-License-Identifier: BSD-3-Clause */

/* Doubles of what the connection manager calls, and sockets made by hand. */

#include "hixl_cm_fixture.h"

#include <ucs/async/async.h>
#include <ucs/debug/log.h>
#include <ucs/sys/sock.h>

#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static test_node_t *nodes;
static uint32_t next_qpn = 0x100;

double test_seconds(void)
{
    return uct_hixl_cm_now() * 1e-9;
}

void test_pause(void)
{
    poll(NULL, 0, 1);
}

/* ---- doubles ---- */

uint64_t *hx_counter(const char *name)
{
    static struct {
        const char *name;
        uint64_t   value;
    } counters[8];
    unsigned i;

    for (i = 0; counters[i].name != NULL; ++i) {
        if (strcmp(counters[i].name, name) == 0) {
            return &counters[i].value;
        }
    }

    assert_true(i < 7);
    counters[i].name = name;
    return &counters[i].value;
}

uint64_t test_counter(const char *name)
{
    return __atomic_load_n(hx_counter(name), __ATOMIC_RELAXED);
}

static test_node_t *node_of(const uct_hixl_iface_t *iface)
{
    return ucs_container_of(iface, test_node_t, iface);
}

ucs_status_t uct_hixl_link_create(uct_hixl_iface_t *iface,
                                  uct_hixl_link_t **link_p)
{
    test_node_t *node = node_of(iface);
    test_link_t *link;

    if (node->fail_create != 0) {
        return node->fail_create;
    }

    link              = calloc(1, sizeof(*link));
    link->super.iface = iface;
    link->qpn         = __atomic_add_fetch(&next_qpn, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&node->links, 1, __ATOMIC_RELAXED);
    *link_p = &link->super;
    return UCS_OK;
}

void uct_hixl_link_get_addr(const uct_hixl_link_t *link,
                            uct_hixl_qp_addr_t *addr_p)
{
    uint32_t qpn = ucs_container_of(link, test_link_t, super)->qpn;

    memset(addr_p, 0, sizeof(*addr_p));
    addr_p->qpn[0] = qpn >> 16;
    addr_p->qpn[1] = qpn >> 8;
    addr_p->qpn[2] = qpn;
}

ucs_status_t uct_hixl_link_connect(uct_hixl_link_t *link,
                                   const uct_hixl_device_addr_t *dev_addr,
                                   const uct_hixl_qp_addr_t *qp_addr)
{
    test_link_t *test_link = ucs_container_of(link, test_link_t, super);

    if (node_of(link->iface)->fail_connect != 0) {
        return node_of(link->iface)->fail_connect;
    }

    test_link->peer_dev = *dev_addr;
    test_link->peer_qp  = *qp_addr;
    test_link->connected++;
    return UCS_OK;
}

void uct_hixl_link_destroy(uct_hixl_link_t *link)
{
    __atomic_sub_fetch(&node_of(link->iface)->links, 1, __ATOMIC_RELAXED);
    free(ucs_container_of(link, test_link_t, super));
}

void uct_hixl_iface_fill_device_addr(const uct_hixl_iface_t *iface,
                                     uct_hixl_device_addr_t *addr)
{
    memset(addr, 0, sizeof(*addr));
    memcpy(addr->gid, &iface, sizeof(iface)); /* tells the nodes apart */
}

void uct_hixl_ep_link_ready(uct_hixl_ep_t *ep, uct_hixl_link_t *link)
{
    test_ep_t *test_ep = (test_ep_t*)ep;

    assert_ptr_equal(test_ep->link, link);
    assert_int_equal(test_ep->failed, 0);
    test_ep->ready++;
}

void uct_hixl_ep_link_failed(uct_hixl_ep_t *ep, uct_hixl_link_t *link,
                             ucs_status_t status)
{
    test_ep_t *test_ep = (test_ep_t*)ep;

    assert_ptr_equal(test_ep->link, link);
    test_ep->failed++;
    test_ep->status = status;
}

/* ---- nodes and endpoints ---- */

void test_node_open(test_node_t *node, const char *cm_addr, double timeout)
{
    memset(node, 0, sizeof(*node));
    node->iface.config.cm_addr    = cm_addr;
    node->iface.config.cm_timeout = timeout;
    assert_int_equal(uct_hixl_cm_open(&node->iface), UCS_OK);
    node->next = nodes;
    nodes      = node;
}

void test_node_close(test_node_t *node)
{
    test_node_t **p;

    for (p = &nodes; *p != node; p = &(*p)->next) {
    }
    *p = node->next;
    uct_hixl_cm_close(&node->iface);
    assert_int_equal(node->links, 0);
}

static void node_progress(test_node_t *node)
{
    if (__atomic_load_n(&node->iface.cm_events, __ATOMIC_ACQUIRE)) {
        uct_hixl_cm_progress(&node->iface);
    }
}

void test_progress(void)
{
    test_node_t *node;

    for (node = nodes; node != NULL; node = node->next) {
        node_progress(node);
    }
}

void test_connect(test_node_t *node, test_ep_t *ep, const void *addr)
{
    int ready;

    memset(ep, 0, sizeof(*ep));
    assert_int_equal(uct_hixl_cm_connect(&node->iface, (uct_hixl_ep_t*)ep,
                                         NULL, addr, &ep->link, &ready),
                     UCS_OK);
    ep->ready = ready;
}

void test_connect_node(test_node_t *node, test_ep_t *ep, test_node_t *peer)
{
    uint8_t addr[UCT_HIXL_IFACE_ADDR_MAX];

    uct_hixl_cm_get_address(&peer->iface, (uct_iface_addr_t*)addr);
    test_connect(node, ep, addr);
}

void test_connect_ready(test_node_t *node, test_ep_t *ep, test_node_t *peer)
{
    test_connect_node(node, ep, peer);
    WAIT_FOR(ep->ready);
}

void test_release(test_ep_t *ep)
{
    uct_hixl_cm_release(ep->link);
    ep->link = NULL;
}

int test_node_links(test_node_t *node)
{
    return __atomic_load_n(&node->links, __ATOMIC_RELAXED);
}

int test_node_idle(test_node_t *node)
{
    uct_hixl_cm_t *cm = node->iface.cm;
    int count;

    pthread_mutex_lock(&cm->lock);
    count = ucs_list_length(&cm->idle);
    pthread_mutex_unlock(&cm->lock);
    return count;
}

int test_node_half_open(test_node_t *node)
{
    uct_hixl_cm_t *cm = node->iface.cm;
    int count;

    pthread_mutex_lock(&cm->lock);
    count = cm->half_open;
    pthread_mutex_unlock(&cm->lock);
    return count;
}

/* ---- the async thread ---- */

static sem_t hold_entered, hold_end;
static int hold_fd = -1;

static void hold_handler(int fd, ucs_event_set_types_t events, void *arg)
{
    uint64_t count;

    (void)events;
    (void)arg;
    if (read(fd, &count, sizeof(count)) == sizeof(count)) {
        sem_post(&hold_entered);
        sem_wait(&hold_end);
    }
}

void test_async_hold(void)
{
    sem_init(&hold_entered, 0, 0);
    sem_init(&hold_end, 0, 0);
    hold_fd = eventfd(1, EFD_NONBLOCK);
    assert_true(hold_fd >= 0);
    assert_int_equal(ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                                 hold_fd, UCS_EVENT_SET_EVREAD,
                                                 hold_handler, NULL, NULL),
                     UCS_OK);
    sem_wait(&hold_entered);
}

void test_async_let_go(void)
{
    sem_post(&hold_end);
    ucs_async_remove_handler(hold_fd, 1);
    close(hold_fd);
    hold_fd = -1;
}

/* ---- sockets by hand ---- */

static void raw_bound_wait(int fd)
{
    struct timeval tv = {.tv_sec = WAIT_SECONDS};

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)),
                     0);
}

int test_raw_listen(uint8_t *addr_buf, const uint8_t *first_ip)
{
    struct sockaddr_in saddr = {
        .sin_family = AF_INET,
        .sin_addr   = {htonl(INADDR_LOOPBACK)}
    };
    uct_hixl_cm_addr_t addr  = {
        .num_ips = 1,
        .ip      = {{.bytes = {127, 0, 0, 1}}}
    };
    socklen_t length         = sizeof(saddr);
    int fd                   = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr*)&saddr, length), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr*)&saddr, &length), 0);
    raw_bound_wait(fd);

    addr.port = ntohs(saddr.sin_port);
    memset(addr.key, 0x77, sizeof(addr.key));
    if (first_ip != NULL) {
        addr.num_ips = 2;
        addr.ip[1]   = addr.ip[0];
        memcpy(addr.ip[0].bytes, first_ip, 4);
    }
    uct_hixl_cm_addr_pack(&addr, addr_buf);
    return fd;
}

int test_raw_accept(int listen_fd)
{
    int fd = accept(listen_fd, NULL, NULL);

    assert_true(fd >= 0);
    raw_bound_wait(fd);
    return fd;
}

int test_raw_connect(test_node_t *node)
{
    struct sockaddr_storage saddr;
    uct_hixl_cm_addr_t addr;
    size_t addr_len;
    socklen_t length;
    int fd;

    assert_int_equal(uct_hixl_cm_addr_parse(node->iface.cm->addr,
                                            node->iface.cm->addr_len, &addr,
                                            &addr_len), UCS_OK);
    length = uct_hixl_cm_sockaddr(&addr.ip[0], addr.port, &saddr);
    fd     = socket(saddr.ss_family, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr*)&saddr, length), 0);
    raw_bound_wait(fd);
    return fd;
}

void test_raw_send(int fd, const void *data, size_t length)
{
    assert_int_equal(send(fd, data, length, MSG_NOSIGNAL), length);
}

void test_raw_say(int fd, const uct_hixl_cm_msg_t *msg)
{
    uint8_t buf[UCT_HIXL_CM_MSG_MAX];

    test_raw_send(fd, buf, uct_hixl_cm_msg_pack(msg, buf));
}

uct_hixl_cm_msg_t test_raw_hear(int fd)
{
    uint8_t buf[UCT_HIXL_CM_MSG_MAX];
    uct_hixl_cm_msg_t msg;
    size_t length, used;

    /* byte by byte, so that what follows stays in the socket */
    for (length = 0; length < sizeof(buf);) {
        assert_int_equal(recv(fd, &buf[length++], 1, 0), 1);
        if (uct_hixl_cm_msg_parse(buf, length, &msg, &used) == UCS_OK) {
            return msg;
        }
    }

    fail_msg("no message");
    return msg;
}

void test_raw_wait_end(int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    char waste[256];
    ssize_t ret;

    /* progress goes on meanwhile: it may be what closes the socket */
    do {
        WAIT_FOR(poll(&pfd, 1, 0) == 1);
        ret = recv(fd, waste, sizeof(waste), MSG_DONTWAIT);
    } while (ret > 0);
    close(fd);
}

uct_hixl_cm_msg_t test_hello(test_node_t *node)
{
    uct_hixl_cm_addr_t addr = {
        .port    = 1,
        .num_ips = 1,
        .ip      = {{.bytes = {127, 0, 0, 1}}}
    };
    uct_hixl_cm_msg_t msg   = {.type = UCT_HIXL_CM_MSG_HELLO};

    memset(addr.key, 0x33, sizeof(addr.key));
    memcpy(msg.key, node->iface.cm->key, sizeof(msg.key));
    msg.addr_len      = uct_hixl_cm_addr_pack(&addr, msg.addr);
    msg.qp_addr.qpn[2] = 0x99;
    return msg;
}

int test_raw_link(test_node_t *node, uct_hixl_cm_msg_t *hello)
{
    uct_hixl_cm_msg_t ready = {.type = UCT_HIXL_CM_MSG_READY};
    int idle                = test_node_idle(node);
    int fd                  = test_raw_connect(node);

    *hello = test_hello(node);
    test_raw_say(fd, hello);
    assert_int_equal(test_raw_hear(fd).type, UCT_HIXL_CM_MSG_ACCEPT);
    test_raw_say(fd, &ready);
    WAIT_FOR(test_node_idle(node) == idle + 1);
    return fd;
}

/* ---- the log ---- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[65536];

static ucs_log_func_rc_t
log_handler(const char *file, unsigned line, const char *function,
            ucs_log_level_t level,
            const ucs_log_component_config_t *comp_conf, const char *format,
            va_list ap)
{
    size_t length;

    (void)file;
    (void)line;
    (void)function;
    (void)comp_conf;
    if (level > UCS_LOG_LEVEL_WARN) {
        return UCS_LOG_FUNC_RC_CONTINUE;
    }

    pthread_mutex_lock(&log_lock);
    length = strlen(log_text);
    vsnprintf(log_text + length, sizeof(log_text) - length, format, ap);
    pthread_mutex_unlock(&log_lock);
    return UCS_LOG_FUNC_RC_STOP;
}

void test_log_start(void)
{
    pthread_mutex_lock(&log_lock);
    log_text[0] = '\0';
    pthread_mutex_unlock(&log_lock);
    ucs_log_push_handler(log_handler);
}

int test_log_count(const char *text)
{
    int count = 0;
    const char *p;

    pthread_mutex_lock(&log_lock);
    for (p = strstr(log_text, text); p != NULL; p = strstr(p + 1, text)) {
        ++count;
    }
    pthread_mutex_unlock(&log_lock);
    return count;
}

void test_log_stop(void)
{
    ucs_log_pop_handler();
}
