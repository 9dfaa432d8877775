/* SPDX-License-Identifier: BSD-3-Clause */

/* Where an interface listens, and how it takes connections from anybody
 * without letting them take anything else. */

#include "hixl_cm_int.h"

#include <ucs/debug/log.h>
#include <ucs/sys/sock.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Accepted before other sockets have their turn */
#define UCT_HIXL_CM_ACCEPT_BATCH 16

/* The port that the kernel gave for the first IP may be taken on the second */
#define UCT_HIXL_CM_PORT_TRIES   16

#define UCT_HIXL_CM_LOG_INTERVAL (60 * UCT_HIXL_CM_NSEC_PER_SEC)

void uct_hixl_cm_report_no_fd(uct_hixl_cm_t *cm, const char *what, int err)
{
    uint64_t now = uct_hixl_cm_now();

    if ((cm->no_fd_logged != 0) &&
        (now - cm->no_fd_logged < UCT_HIXL_CM_LOG_INTERVAL)) {
        return;
    }

    cm->no_fd_logged = now;
    if (err == EMFILE) {
        ucs_error("hixl: %s failed: EMFILE, the process has reached its limit"
                  " of %d open files; a link takes one at either end; raise it"
                  " with ulimit -n", what, ucs_sys_max_open_files());
    } else if (err == ENFILE) {
        ucs_error("hixl: %s failed: ENFILE, the system has reached its limit"
                  " of open files (fs.file-max)", what);
    } else {
        ucs_error("hixl: %s failed: %s", what, strerror(err));
    }
}

ucs_status_t uct_hixl_cm_socket(uct_hixl_cm_t *cm, int family, int *fd_p)
{
    /* A dead host shows within ten seconds, on an idle socket or with data on
     * the way. Accepted sockets inherit these from the listening one. */
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 10000}, /* ms */
        {IPPROTO_TCP, TCP_KEEPIDLE, 5},
        {IPPROTO_TCP, TCP_KEEPINTVL, 1},
        {IPPROTO_TCP, TCP_KEEPCNT, 5},
        {SOL_SOCKET, SO_KEEPALIVE, 1}
    };
    unsigned i;
    int fd;

    fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        if ((errno == EMFILE) || (errno == ENFILE)) {
            uct_hixl_cm_report_no_fd(cm, "socket()", errno);
        }
        return UCS_ERR_IO_ERROR;
    }

    for (i = 0; i < ucs_static_array_size(options); ++i) {
        ucs_socket_setopt(fd, options[i].level, options[i].name,
                          &options[i].value, sizeof(options[i].value));
    }

    *fd_p = fd;
    return UCS_OK;
}

socklen_t uct_hixl_cm_sockaddr(const uct_hixl_cm_ip_t *ip, uint16_t port,
                               struct sockaddr_storage *saddr_p)
{
    struct sockaddr_in *in   = (struct sockaddr_in*)saddr_p;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6*)saddr_p;

    memset(saddr_p, 0, sizeof(*saddr_p));
    if (ip->is_v6) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port   = htons(port);
        memcpy(&in6->sin6_addr, ip->bytes, UCS_IPV6_ADDR_LEN);
        return sizeof(*in6);
    }

    in->sin_family = AF_INET;
    in->sin_port   = htons(port);
    memcpy(&in->sin_addr, ip->bytes, UCS_IPV4_ADDR_LEN);
    return sizeof(*in);
}

static void uct_hixl_cm_ip_from_sockaddr(const struct sockaddr *saddr,
                                         uct_hixl_cm_ip_t *ip_p)
{
    memset(ip_p, 0, sizeof(*ip_p));
    ip_p->is_v6 = saddr->sa_family == AF_INET6;
    memcpy(ip_p->bytes, ucs_sockaddr_get_inet_addr(saddr),
           ip_p->is_v6 ? UCS_IPV6_ADDR_LEN : UCS_IPV4_ADDR_LEN);
}

/* An address of this host at which another one may find it */
static int uct_hixl_cm_ifaddr_usable(const struct ifaddrs *ifa)
{
    const struct sockaddr *saddr = ifa->ifa_addr;

    if ((saddr == NULL) || !ucs_netif_flags_is_active(ifa->ifa_flags) ||
        (ifa->ifa_flags & IFF_LOOPBACK) || !ucs_sockaddr_is_known_af(saddr)) {
        return 0;
    }

    if (saddr->sa_family == AF_INET6) {
        return !IN6_IS_ADDR_LINKLOCAL(ucs_sockaddr_get_inet_addr(saddr));
    }

    /* 169.254/16: link local */
    return memcmp(ucs_sockaddr_get_inet_addr(saddr), "\xa9\xfe", 2) != 0;
}

/* The first IPv4 and the first IPv6 address, else the first two of whichever
 * there is, else loopback. */
static unsigned uct_hixl_cm_auto_ips(uct_hixl_cm_ip_t *ips)
{
    static const uct_hixl_cm_ip_t loopback = {.bytes = {127, 0, 0, 1}};
    unsigned found[2] = {0, 0};
    uct_hixl_cm_ip_t by_family[2][UCT_HIXL_CM_MAX_IPS];
    struct ifaddrs *ifaddrs, *ifa;
    unsigned count = 0;
    unsigned i, v6;

    if (getifaddrs(&ifaddrs) == 0) {
        for (ifa = ifaddrs; ifa != NULL; ifa = ifa->ifa_next) {
            if (!uct_hixl_cm_ifaddr_usable(ifa)) {
                continue;
            }

            v6 = ifa->ifa_addr->sa_family == AF_INET6;
            if (found[v6] < UCT_HIXL_CM_MAX_IPS) {
                uct_hixl_cm_ip_from_sockaddr(ifa->ifa_addr,
                                             &by_family[v6][found[v6]++]);
            }
        }
        freeifaddrs(ifaddrs);
    } else {
        ucs_debug("hixl: getifaddrs() failed: %m");
    }

    for (i = 0; i < UCT_HIXL_CM_MAX_IPS; ++i) {
        for (v6 = 0; v6 < 2; ++v6) {
            if ((i < found[v6]) && (count < UCT_HIXL_CM_MAX_IPS)) {
                ips[count++] = by_family[v6][i];
            }
        }
    }

    if (count == 0) {
        ips[count++] = loopback;
    }

    return count;
}

static ucs_status_t
uct_hixl_cm_config_ips(const char *config, uct_hixl_cm_ip_t *ips,
                       unsigned *count_p)
{
    struct sockaddr_storage saddr;
    char list[2 * INET6_ADDRSTRLEN + 2];
    unsigned count = 0;
    char *word, *save;

    if (strlen(config) >= sizeof(list)) {
        goto err;
    }

    strcpy(list, config);
    for (word = strtok_r(list, ", ", &save); word != NULL;
         word = strtok_r(NULL, ", ", &save)) {
        memset(&saddr, 0, sizeof(saddr));
        if ((count == UCT_HIXL_CM_MAX_IPS) ||
            (ucs_sock_ipstr_to_sockaddr(word, &saddr) != UCS_OK) ||
            ucs_sockaddr_is_inaddr_any((struct sockaddr*)&saddr)) {
            goto err;
        }

        uct_hixl_cm_ip_from_sockaddr((struct sockaddr*)&saddr, &ips[count++]);
    }

    if (count == 0) {
        goto err;
    }

    *count_p = count;
    return UCS_OK;

err:
    ucs_error("UCX_HIXL_CM_ADDR=\"%s\": wanted are one or two IP addresses of"
              " this host, separated by a comma, or nothing", config);
    return UCS_ERR_INVALID_PARAM;
}

static ucs_status_t uct_hixl_cm_listen_one(uct_hixl_cm_t *cm,
                                           const uct_hixl_cm_ip_t *ip,
                                           uint16_t *port, int *fd_p)
{
    static const int on = 1;
    struct sockaddr_storage saddr;
    socklen_t length;
    int fd, err;

    length = uct_hixl_cm_sockaddr(ip, *port, &saddr);
    if (uct_hixl_cm_socket(cm, saddr.ss_family, &fd) != UCS_OK) {
        return UCS_ERR_IO_ERROR;
    }

    if ((ip->is_v6 && (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on,
                                  sizeof(on)) != 0)) ||
        (bind(fd, (struct sockaddr*)&saddr, length) != 0) ||
        (listen(fd, ucs_socket_max_conn()) != 0) ||
        (getsockname(fd, (struct sockaddr*)&saddr, &length) != 0)) {
        err = errno;
        close(fd);
        errno = err;
        return (err == EADDRINUSE) ? UCS_ERR_BUSY : UCS_ERR_IO_ERROR;
    }

    ucs_sockaddr_get_port((struct sockaddr*)&saddr, port);
    *fd_p = fd;
    return UCS_OK;
}

/* One port on all the IPs. Of IPs that nobody asked for by name, those that
 * cannot be had (not ready yet, no IPv6 in the kernel) are left out. */
static ucs_status_t
uct_hixl_cm_listen_ips(uct_hixl_cm_t *cm, const uct_hixl_cm_ip_t *ips,
                       unsigned count, int is_auto, uct_hixl_cm_addr_t *addr)
{
    char name[INET6_ADDRSTRLEN];
    ucs_status_t status;
    unsigned i;

    addr->port    = 0;
    addr->num_ips = 0;
    for (i = 0; i < count; ++i) {
        status = uct_hixl_cm_listen_one(cm, &ips[i], &addr->port,
                                        &cm->listen_fd[cm->num_listen]);
        if (status == UCS_OK) {
            addr->ip[addr->num_ips++] = ips[i];
            cm->num_listen++;
            continue;
        }

        if ((status == UCS_ERR_BUSY) && (addr->port != 0)) {
            goto err_cleanup;
        }

        inet_ntop(ips[i].is_v6 ? AF_INET6 : AF_INET, ips[i].bytes, name,
                  sizeof(name));
        if (!is_auto) {
            ucs_error("UCX_HIXL_CM_ADDR: cannot listen on %s: %m", name);
            goto err_cleanup;
        }
        ucs_debug("hixl: cannot listen on %s: %m", name);
    }

    if (addr->num_ips != 0) {
        return UCS_OK;
    }

    status = UCS_ERR_NO_DEVICE;
err_cleanup:
    uct_hixl_cm_listen_cleanup(cm);
    return status;
}

ucs_status_t uct_hixl_cm_listen_init(uct_hixl_cm_t *cm,
                                     uct_hixl_cm_addr_t *addr_p)
{
    static const uct_hixl_cm_ip_t loopback[UCT_HIXL_CM_MAX_IPS] = {
        {.bytes = {127, 0, 0, 1}},
        {.is_v6 = 1, .bytes = {[15] = 1}}
    };
    const char *config = cm->iface->config.cm_addr;
    int is_auto        = (config == NULL) || (config[0] == '\0');
    uct_hixl_cm_ip_t ips[UCT_HIXL_CM_MAX_IPS];
    ucs_status_t status;
    unsigned count, tries;

    cm->num_listen = 0;
    if (is_auto) {
        count = uct_hixl_cm_auto_ips(ips);
    } else {
        status = uct_hixl_cm_config_ips(config, ips, &count);
        if (status != UCS_OK) {
            return status;
        }
    }

    tries = 0;
    do {
        status = uct_hixl_cm_listen_ips(cm, ips, count, is_auto, addr_p);
    } while ((status == UCS_ERR_BUSY) && (++tries < UCT_HIXL_CM_PORT_TRIES));

    if (is_auto && (status != UCS_OK)) {
        status = uct_hixl_cm_listen_ips(cm, loopback, 2, 1, addr_p);
        if (status != UCS_OK) {
            ucs_error("hixl: cannot listen on any address of this host,"
                      " not even on 127.0.0.1; UCX_HIXL_CM_ADDR can name one");
        }
    } else if (status == UCS_ERR_BUSY) {
        ucs_error("UCX_HIXL_CM_ADDR=\"%s\": found no port that is free on both"
                  " addresses", config);
    }

    if (status == UCS_OK) {
        status = uct_hixl_cm_listen_resume(cm);
        if (status != UCS_OK) {
            uct_hixl_cm_listen_cleanup(cm);
        }
    }

    return status;
}

void uct_hixl_cm_listen_cleanup(uct_hixl_cm_t *cm)
{
    while (cm->num_listen > 0) {
        close(cm->listen_fd[--cm->num_listen]);
    }
}

ucs_status_t uct_hixl_cm_listen_resume(uct_hixl_cm_t *cm)
{
    struct epoll_event ev = {.events = EPOLLIN};
    unsigned i;

    for (i = 0; i < cm->num_listen; ++i) {
        ev.data.ptr = &cm->listen_fd[i];
        if ((epoll_ctl(cm->epoll_fd, EPOLL_CTL_ADD, cm->listen_fd[i],
                       &ev) != 0) && (errno != EEXIST)) {
            ucs_debug("hixl: epoll_ctl() failed: %m");
            return UCS_ERR_IO_ERROR;
        }
    }

    return UCS_OK;
}

/* A listening socket that nobody accepts from stays readable, so it has to
 * leave the set. */
void uct_hixl_cm_listen_pause(uct_hixl_cm_t *cm)
{
    unsigned i;

    for (i = 0; i < cm->num_listen; ++i) {
        epoll_ctl(cm->epoll_fd, EPOLL_CTL_DEL, cm->listen_fd[i], NULL);
    }
}

/* Whether one more may be accepted; the one that has been silent for longest
 * makes room for it. */
static int uct_hixl_cm_make_room(uct_hixl_cm_t *cm)
{
    uct_hixl_cm_conn_t *oldest;

    if (cm->half_open < cm->max_half_open) {
        return 1;
    }

    if (!ucs_list_is_empty(&cm->greeting)) {
        oldest = ucs_list_head(&cm->greeting, uct_hixl_cm_conn_t, list);
        if (uct_hixl_cm_now() - oldest->accepted_at >= UCT_HIXL_CM_GRACE) {
            uct_hixl_cm_conn_refuse(oldest, "silent, and its place is needed");
            return 1;
        }
    }

    return 0;
}

/* UCS_ERR_NO_PROGRESS: nobody is waiting, UCS_ERR_NO_RESOURCE: rest first */
static ucs_status_t uct_hixl_cm_accept_one(uct_hixl_cm_t *cm, int listen_fd)
{
    uct_hixl_cm_conn_t *conn;
    int fd;

    fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        switch (errno) {
        case EAGAIN:
            return UCS_ERR_NO_PROGRESS;
        case EINTR:
        case ECONNABORTED:
            return UCS_OK;
        case EMFILE:
        case ENFILE:
            uct_hixl_cm_report_no_fd(cm, "accept()", errno);
            return UCS_ERR_NO_RESOURCE;
        default:
            ucs_debug("hixl: accept() failed: %m");
            return UCS_ERR_NO_RESOURCE;
        }
    }

    conn = uct_hixl_cm_conn_new(cm, UCT_HIXL_CM_GREETING);
    if (conn == NULL) {
        close(fd);
        return UCS_ERR_NO_RESOURCE;
    }

    ucs_list_del(&conn->list);
    ucs_list_add_tail(&cm->greeting, &conn->list);
    conn->fd          = fd;
    conn->accepted_at = uct_hixl_cm_now();
    conn->half_open   = 1;
    cm->half_open++;
    if (uct_hixl_cm_watch(conn, EPOLLIN) != UCS_OK) {
        uct_hixl_cm_conn_lost(conn, UCS_ERR_IO_ERROR);
        return UCS_ERR_NO_RESOURCE;
    }

    uct_hixl_cm_deadline_set(conn, conn->accepted_at + cm->timeout);
    return UCS_OK;
}

void uct_hixl_cm_accept(uct_hixl_cm_t *cm, unsigned index)
{
    unsigned count = 0;
    ucs_status_t status;

    if (cm->rest_until != 0) {
        return; /* the other listening socket found that there is no room */
    }

    do {
        if (!uct_hixl_cm_make_room(cm)) {
            uct_hixl_cm_rest(cm, UCT_HIXL_CM_REST_FULL);
            return;
        }

        status = uct_hixl_cm_accept_one(cm, cm->listen_fd[index]);
    } while ((status == UCS_OK) && (++count < UCT_HIXL_CM_ACCEPT_BATCH));

    if (status == UCS_ERR_NO_RESOURCE) {
        uct_hixl_cm_rest(cm, UCT_HIXL_CM_REST_NO_FD);
    }
}
