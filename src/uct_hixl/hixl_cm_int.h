/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Inside of the connection manager: hixl_cm.c (what the endpoints call),
 * hixl_cm_proto.c (bytes), hixl_cm_conn.c (one socket), hixl_cm_exchange.c
 * (what is said on it, and what follows), hixl_cm_listen.c (addresses,
 * accepting), hixl_cm_loop.c (waiting, time).
 *
 * Everything here is under cm->lock, which both the async thread and the
 * application's thread take. Nothing that could wait for the async thread is
 * called with it held. All sockets of an interface are in one epoll set, and
 * only that set is given to UCX's async thread: UCX limits the number of its
 * handlers, and one handler is one thing to remove, synchronously, before the
 * rest is freed. The handler has no async context, so it runs whatever mode
 * the worker has and whatever locks its thread holds.
 */

#ifndef UCT_HIXL_CM_INT_H_
#define UCT_HIXL_CM_INT_H_

#include "hixl_cm_proto.h"

#include <ucs/datastruct/list.h>

#include <pthread.h>
#include <sys/socket.h>

#define UCT_HIXL_CM_NSEC_PER_SEC  1000000000ull

/* How long the peer may take to answer a BYE */
#define UCT_HIXL_CM_BYE_TIMEOUT   (10 * UCT_HIXL_CM_NSEC_PER_SEC)

/* Accepted sockets in the middle of an exchange. Where all places are taken,
 * one that has said nothing for the grace period makes room, or the others
 * wait in the kernel's backlog. */
#define UCT_HIXL_CM_MAX_HALF_OPEN 1024
#define UCT_HIXL_CM_GRACE         (UCT_HIXL_CM_NSEC_PER_SEC / 10)

/* How long accepting rests when there is no place, or no file descriptor */
#define UCT_HIXL_CM_REST_FULL     (UCT_HIXL_CM_NSEC_PER_SEC / 100)
#define UCT_HIXL_CM_REST_NO_FD    (UCT_HIXL_CM_NSEC_PER_SEC / 10)

/* How often each of a peer's IPs is tried: a peer with no place left closes
 * sockets that had no time to speak */
#define UCT_HIXL_CM_MAX_PASSES    3

typedef enum uct_hixl_cm_state {
    UCT_HIXL_CM_GREETING,   /* passive: accepted; no HELLO yet, no QP */
    UCT_HIXL_CM_OFFERED,    /* passive: ACCEPT said, waits for READY */
    UCT_HIXL_CM_CONNECTING, /* connector: waits for TCP */
    UCT_HIXL_CM_HELLO,      /* connector: HELLO said, waits for ACCEPT */
    UCT_HIXL_CM_UP,         /* both QPs are connected */
    UCT_HIXL_CM_BYE,        /* BYE said, waits for the answer */
    UCT_HIXL_CM_DOWN        /* no socket; only progress may destroy the QP */
} uct_hixl_cm_state_t;

typedef enum uct_hixl_cm_event {
    UCT_HIXL_CM_EVENT_NONE,
    UCT_HIXL_CM_EVENT_READY,
    UCT_HIXL_CM_EVENT_FAILED,
    UCT_HIXL_CM_EVENT_CLOSED /* nobody uses it: destroy */
} uct_hixl_cm_event_t;

/* A connection: one socket and, from HELLO on, the link that it makes */
typedef struct uct_hixl_cm_link uct_hixl_cm_conn_t;

struct uct_hixl_cm_link {
    uct_hixl_cm_t       *cm;
    uct_hixl_cm_state_t state;
    int                 fd;            /* -1: none */
    uint32_t            epoll_events;
    uct_hixl_link_t     *link;
    uct_hixl_ep_t       *ep;           /* who uses it here; NULL: nobody */
    ucs_list_link_t     list;          /* in one of cm's lists */
    ucs_list_link_t     wait_list;     /* in cm->waiting if deadline != 0 */
    ucs_list_link_t     event_list;    /* in cm->events if event != NONE */
    uint64_t            deadline;
    uint64_t            accepted_at;
    uct_hixl_cm_event_t event;
    ucs_status_t        status;        /* of the FAILED event */
    uint8_t             half_open;     /* counted in cm->half_open */
    uint8_t             dead_ips;      /* connector: bit n, IP n is no use */
    uint8_t             attempt;       /* connector: IPs tried so far */
    uint8_t             addr_len;
    uint8_t             addr[UCT_HIXL_IFACE_ADDR_MAX]; /* the peer's */
    uct_hixl_cm_addr_t  target;        /* connector: addr, parsed */
    uint64_t            give_up;       /* connector: end of all attempts */
    uint32_t            generation;    /* of the last BYE said here */
    uint16_t            rx_len;
    uint16_t            tx_len;
    uint8_t             rx[UCT_HIXL_CM_MSG_MAX];
    /* Longest: an ACCEPT or a HELLO, and answers to a few BYEs */
    uint8_t             tx[2 * UCT_HIXL_CM_MSG_MAX];
};

struct uct_hixl_cm {
    pthread_mutex_t  lock;
    uct_hixl_iface_t *iface;
    int              epoll_fd;
    int              timer_fd;
    int              listen_fd[UCT_HIXL_CM_MAX_IPS];
    unsigned         num_listen;
    uint8_t          key[UCT_HIXL_CM_KEY_LEN];
    size_t           addr_len;
    uint8_t          addr[UCT_HIXL_IFACE_ADDR_MAX];
    ucs_list_link_t  greeting; /* GREETING, oldest first */
    ucs_list_link_t  busy;     /* in an exchange, used, or going */
    ucs_list_link_t  idle;     /* UP and used by nobody here */
    ucs_list_link_t  dead;     /* freed when the handler has gone through */
    ucs_list_link_t  waiting;  /* has a deadline */
    ucs_list_link_t  events;   /* for progress */
    unsigned         half_open;
    unsigned         max_half_open;
    uint64_t         armed;    /* what the timer is set to; 0: not */
    uint64_t         rest_until; /* accepting rests; 0: it does not */
    uint64_t         no_fd_logged;
    uint64_t         timeout;  /* of an exchange */
    uint64_t         bye_timeout;
    uint64_t         *rejected; /* counters */
    uint64_t         *made;
    uint64_t         *reused;
};

/* ---- hixl_cm_loop.c: one epoll set, one timer. Times are of
 * CLOCK_MONOTONIC, in nanoseconds. ---- */

ucs_status_t uct_hixl_cm_loop_init(uct_hixl_cm_t *cm);
/** Returns when the handler does not run and never will again. */
void uct_hixl_cm_loop_stop(uct_hixl_cm_t *cm);
ucs_status_t uct_hixl_cm_loop_start(uct_hixl_cm_t *cm);
void uct_hixl_cm_loop_cleanup(uct_hixl_cm_t *cm);

uint64_t uct_hixl_cm_now(void);
/** Calls uct_hixl_cm_conn_expired() at that time; 0: not any more. */
void uct_hixl_cm_deadline_set(uct_hixl_cm_conn_t *conn, uint64_t deadline);
/** Calls uct_hixl_cm_listen_resume() after that time. */
void uct_hixl_cm_rest(uct_hixl_cm_t *cm, uint64_t duration);
/** What epoll waits for on a socket: EPOLLIN, EPOLLOUT. */
ucs_status_t uct_hixl_cm_watch(uct_hixl_cm_conn_t *conn, uint32_t events);

/* ---- hixl_cm_listen.c ---- */

ucs_status_t uct_hixl_cm_listen_init(uct_hixl_cm_t *cm,
                                     uct_hixl_cm_addr_t *addr_p);
void uct_hixl_cm_listen_cleanup(uct_hixl_cm_t *cm);
ucs_status_t uct_hixl_cm_listen_resume(uct_hixl_cm_t *cm);
void uct_hixl_cm_listen_pause(uct_hixl_cm_t *cm);
void uct_hixl_cm_accept(uct_hixl_cm_t *cm, unsigned index);

/** A non-blocking TCP socket; says so by name when there are no descriptors
 *  left. Sets errno on failure. */
ucs_status_t uct_hixl_cm_socket(uct_hixl_cm_t *cm, int family, int *fd_p);
/** Logs once a minute that an attempt to get a descriptor failed with err. */
void uct_hixl_cm_report_no_fd(uct_hixl_cm_t *cm, const char *what, int err);
socklen_t uct_hixl_cm_sockaddr(const uct_hixl_cm_ip_t *ip, uint16_t port,
                               struct sockaddr_storage *saddr_p);

/* ---- hixl_cm_conn.c ---- */

/** In cm->busy, without socket and link. NULL: no memory. */
uct_hixl_cm_conn_t *uct_hixl_cm_conn_new(uct_hixl_cm_t *cm,
                                         uct_hixl_cm_state_t state);
/** Closes and frees; what becomes of the link is the caller's business. Not
 *  while the handler goes through its events, see cm->dead. */
void uct_hixl_cm_conn_free(uct_hixl_cm_conn_t *conn);
void uct_hixl_cm_conn_move(uct_hixl_cm_conn_t *conn, ucs_list_link_t *list);
/** The exchange is over, one way or the other. */
void uct_hixl_cm_conn_settle(uct_hixl_cm_conn_t *conn);
void uct_hixl_cm_conn_close(uct_hixl_cm_conn_t *conn);
/** No socket any more; whoever is concerned learns it from progress. */
void uct_hixl_cm_conn_down(uct_hixl_cm_conn_t *conn, ucs_status_t status);
void uct_hixl_cm_conn_event(uct_hixl_cm_conn_t *conn,
                            uct_hixl_cm_event_t event);
void uct_hixl_cm_conn_cancel_event(uct_hixl_cm_conn_t *conn);
/** arg: the reason of a REJECT, the generation of a BYE. UCS_ERR_...: the
 *  socket is of no use any more. */
ucs_status_t uct_hixl_cm_conn_say(uct_hixl_cm_conn_t *conn,
                                  uct_hixl_cm_msg_type_t type, uint32_t arg);
ucs_status_t uct_hixl_cm_conn_flush(uct_hixl_cm_conn_t *conn);

/* ---- hixl_cm_exchange.c ---- */

/** Tries the target's IPs until one answers or is being waited for. */
ucs_status_t uct_hixl_cm_conn_dial(uct_hixl_cm_conn_t *conn);
/** The socket broke or ended: what follows from it for each state. */
void uct_hixl_cm_conn_lost(uct_hixl_cm_conn_t *conn, ucs_status_t status);
/** As lost, but the peer is to blame: counted. */
void uct_hixl_cm_conn_refuse(uct_hixl_cm_conn_t *conn, const char *why);
void uct_hixl_cm_conn_expired(uct_hixl_cm_conn_t *conn);
void uct_hixl_cm_conn_ready(uct_hixl_cm_conn_t *conn, uint32_t epoll_events);

static inline void uct_hixl_cm_count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#endif
