/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes, in any portions, from a peer in each state of a connection: the
 * handshake and what follows it, up to the end of the socket. The first byte
 * chooses the state; then portions, each behind a byte with its length. The
 * key is known, so that the inputs can hold it.
 */

#include "fuzz.h"

#include "../unit/hixl_cm_fixture.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEY_BYTE 0x4b

static test_node_t node;

static void open_once(void)
{
    if (node.iface.cm == NULL) {
        test_node_open(&node, "127.0.0.1", 3600);
        memset(node.iface.cm->key, KEY_BYTE, sizeof(node.iface.cm->key));
    }
}

/* A connection in that state over this socket, which only we read from: it is
 * in no epoll set. Under the lock. */
static uct_hixl_cm_conn_t *make_conn(unsigned which, int fd, test_ep_t *ep)
{
    static const uct_hixl_cm_state_t states[] = {
        UCT_HIXL_CM_GREETING, UCT_HIXL_CM_OFFERED, UCT_HIXL_CM_HELLO,
        UCT_HIXL_CM_UP, UCT_HIXL_CM_BYE
    };
    uct_hixl_cm_t *cm        = node.iface.cm;
    uct_hixl_cm_conn_t *conn = uct_hixl_cm_conn_new(cm, states[which % 5]);

    FUZZ_CHECK(conn != NULL);
    conn->fd             = fd;
    conn->epoll_events   = EPOLLIN;
    conn->target.num_ips = 1;
    conn->attempt        = UCT_HIXL_CM_MAX_PASSES; /* dials nobody */
    if (conn->state == UCT_HIXL_CM_GREETING) {
        uct_hixl_cm_conn_move(conn, &cm->greeting);
    } else {
        FUZZ_CHECK(uct_hixl_link_create(&node.iface, &conn->link) == UCS_OK);
        conn->link->cm = conn;
    }
    if ((conn->state == UCT_HIXL_CM_GREETING) ||
        (conn->state == UCT_HIXL_CM_OFFERED)) {
        conn->half_open = 1;
        cm->half_open++;
    }

    /* a connector has an endpoint, a link that is up may have one */
    if ((conn->state == UCT_HIXL_CM_HELLO) ||
        ((conn->state == UCT_HIXL_CM_UP) && (which & 0x80))) {
        conn->ep = (uct_hixl_ep_t*)ep;
        ep->link = conn->link;
    }
    return conn;
}

static void bury_dead(uct_hixl_cm_t *cm)
{
    uct_hixl_cm_conn_t *conn, *tmp;

    ucs_list_for_each_safe(conn, tmp, &cm->dead, list) {
        uct_hixl_cm_conn_free(conn);
    }
}

/* Returns 0 when the connection has no use for more. */
static int say(uct_hixl_cm_conn_t *conn, int fd, const void *data, size_t size)
{
    char waste[4096];

    if ((size > 0) && (send(fd, data, size, MSG_NOSIGNAL) < 0)) {
        return 0;
    }
    uct_hixl_cm_conn_ready(conn, EPOLLIN);
    while (recv(fd, waste, sizeof(waste), MSG_DONTWAIT) > 0) {
    }
    return conn->fd != -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    test_ep_t ep = {0};
    uct_hixl_cm_conn_t *conn;
    uct_hixl_cm_t *cm;
    size_t portion;
    int fds[2], open, events;

    if (size == 0) {
        return 0;
    }

    open_once();
    cm = node.iface.cm;
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    pthread_mutex_lock(&cm->lock);
    conn = make_conn(*data, fds[0], &ep);
    for (++data, --size, open = 1; open && (size > 1); ) {
        portion = ucs_min((size_t)*data, size - 1);
        open    = say(conn, fds[1], data + 1, portion);
        data   += portion + 1;
        size   -= portion + 1;
    }
    shutdown(fds[1], SHUT_RDWR);
    /* epoll tells again until all was read, which may be too much for once */
    for (events = 0; open && (conn->fd != -1); ++events) {
        FUZZ_CHECK(events < 4);
        uct_hixl_cm_conn_ready(conn, EPOLLIN | EPOLLHUP);
    }
    bury_dead(cm);
    pthread_mutex_unlock(&cm->lock);

    test_progress();
    if (ep.link != NULL) {
        FUZZ_CHECK(ep.ready <= 1);
        FUZZ_CHECK(ep.failed == 1);
        test_release(&ep);
    }
    FUZZ_CHECK(test_node_links(&node) == 0);
    FUZZ_CHECK(test_node_half_open(&node) == 0);
    close(fds[1]);
    return 0;
}
