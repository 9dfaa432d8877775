/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What happens to a process's whole device: it is removed, its port goes down
 * or comes back. Told by an asynchronous event, as the kernel does. Also
 * vhca-stat's, which has the fabric mapped and is not in it.
 */

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "nic.h"

/* struct ib_uverbs_async_event_desc */
struct async_desc {
    uint64_t element;
    uint32_t event_type;
    uint32_t reserved;
};

/* Name of the channel's socket. If the directory is too long for an address,
 * *dirfd_p is to be closed after use. */
bool nic_chan_addr(const char *dir, uint32_t chan, struct sockaddr_un *addr,
                   int *dirfd_p)
{
    char path[sizeof(nic_self.dir) + 16];

    *dirfd_p         = -1;
    addr->sun_family = AF_UNIX;
    snprintf(path, sizeof(path), "%s/c.%x", dir, chan);
    if (strlen(path) < sizeof(addr->sun_path)) {
        strcpy(addr->sun_path, path);
        return true;
    }

    *dirfd_p = syscall(SYS_openat, AT_FDCWD, dir,
                       O_PATH | O_CLOEXEC | O_DIRECTORY);
    snprintf(addr->sun_path, sizeof(addr->sun_path), "/proc/self/fd/%d/c.%x",
             *dirfd_p, chan);
    return *dirfd_p >= 0;
}

void nic_chan_addr_done(int dirfd)
{
    if (dirfd >= 0) {
        syscall(SYS_close, dirfd);
    }
}

/* A socket of its own: it happens rarely, and whoever calls may be in no
 * state to share one. */
static void tell(const char *dir, uint32_t chan, const struct async_desc *desc)
{
    struct sockaddr_un addr;
    int fd, dirfd;

    fd = syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }

    if (nic_chan_addr(dir, chan, &addr, &dirfd)) {
        syscall(SYS_sendto, fd, desc, sizeof(*desc),
                MSG_DONTWAIT | MSG_NOSIGNAL, &addr, sizeof(addr));
        nic_chan_addr_done(dirfd);
    }
    syscall(SYS_close, fd);
}

void nic_device_event(struct nic_fabric *fab, const char *dir, uint32_t id,
                      uint32_t event)
{
    struct async_desc desc = {
        .element    = (event == VHCA_EVENT_DEVICE_FATAL) ? 0 : 1, /* port */
        .event_type = event
    };
    struct nic_proc *proc  = &fab->proc[id % NIC_PROCS];
    uint32_t high, number, i;

    if (event == VHCA_EVENT_DEVICE_FATAL) {
        if (atomic_exchange(&proc->removed, id) == id) {
            return;
        }
        atomic_fetch_add(&fab->hdr.removals, 1);
    }

    high = atomic_load(&fab->hdr.table[NIC_CHAN].high);
    for (i = 0; i < high; ++i) {
        number = atomic_load(&fab->chan[i].obj.number);
        if ((number != 0) && (atomic_load(&fab->chan[i].obj.claim) == id) &&
            (fab->chan[i].kind == VHCA_CHANNEL_ASYNC)) {
            tell(dir, number, &desc);
        }
    }
}
