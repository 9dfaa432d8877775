/* SPDX-License-Identifier: BSD-3-Clause */

/* Telling a process from a later one with the same pid. Also vhca-stat's. */

#include <fcntl.h>
#include <sys/syscall.h>

#include "nic.h"

/* /proc/<pid>/stat: pid (comm) state ... num_threads(20) . starttime(22) */
static bool proc_stat(uint32_t pid, char *state_p, long *threads_p,
                      uint64_t *start_p)
{
    char path[32], buf[1024], *at;
    unsigned field;
    ssize_t len;
    int fd;

    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }

    len = syscall(SYS_read, fd, buf, sizeof(buf) - 1);
    syscall(SYS_close, fd);
    if (len <= 0) {
        return false;
    }

    buf[len] = '\0';
    at       = strrchr(buf, ')');
    if ((at == NULL) || (at[1] == '\0')) {
        return false;
    }

    *state_p = at[2];
    for (field = 2; (field < 20) && (at != NULL); ++field) {
        at = strchr(at + 1, ' ');
    }
    if (at == NULL) {
        return false;
    }

    *threads_p = strtol(at + 1, &at, 10);
    at         = strchr(at + 1, ' ');
    *start_p   = (at == NULL) ? 0 : strtoull(at + 1, NULL, 10);
    return at != NULL;
}

/* pid << 40 | start time of a live process, 0 if there is none */
static uint64_t who_is(uint32_t pid)
{
    uint64_t start;
    long threads;
    char state;

    if (!proc_stat(pid, &state, &threads, &start)) {
        return 0;
    }
    /* a zombie whose other threads go on is alive */
    if (((state == 'Z') || (state == 'X')) && (threads <= 1)) {
        return 0;
    }

    return (uint64_t)pid << 40 | (start & ((1ull << 40) - 1));
}

uint64_t nic_who_self(void)
{
    return who_is(getpid());
}

bool nic_who_alive(uint64_t who)
{
    return (who != 0) && (who_is(who >> 40) == who);
}
