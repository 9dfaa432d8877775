/* SPDX-License-Identifier: BSD-3-Clause */

/* Limits of the process that a system call ran into: which, how high, and what
 * raises it. */

#include "hx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* No stdio and no malloc: there may be no descriptor or no mapping left */
static long read_long(const char *path)
{
    int fd     = open(path, O_RDONLY | O_CLOEXEC);
    char buf[32];
    ssize_t n;

    if (fd < 0) {
        return -1;
    }

    n = read(fd, buf, sizeof(buf) - 1);
    close(fd);
    if (n <= 0) {
        return -1;
    }
    buf[n] = '\0';
    return strtol(buf, NULL, 10);
}

static long count_mappings(void)
{
    int fd     = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    long count = 0;
    char buf[4096];
    ssize_t n, i;

    if (fd < 0) {
        return -1;
    }

    while ((n = read(fd, buf, sizeof(buf))) > 0) {
        for (i = 0; i < n; ++i) {
            count += buf[i] == '\n';
        }
    }
    close(fd);
    return count;
}

static void files_hint(int err, char *buf, size_t size)
{
    struct rlimit limit;

    if ((err == EMFILE) && (getrlimit(RLIMIT_NOFILE, &limit) == 0)) {
        snprintf(buf, size, "; the process has reached its limit of %llu open "
                 "files (raise it with ulimit -n)",
                 (unsigned long long)limit.rlim_cur);
    } else if (err == ENFILE) {
        snprintf(buf, size, "; the system has reached its limit of open files "
                 "(raise it with sysctl fs.file-max)");
    }
}

static void pin_hint(char *buf, size_t size)
{
    struct rlimit limit;

    if ((getrlimit(RLIMIT_MEMLOCK, &limit) == 0) &&
        (limit.rlim_cur != RLIM_INFINITY)) {
        snprintf(buf, size, "; perhaps for RLIMIT_MEMLOCK, which is %llu KiB "
                 "(raise it with ulimit -l or in limits.conf)",
                 (unsigned long long)limit.rlim_cur / 1024);
    }
}

/* The kernel compares before it makes one more, and needs two to split one */
static void map_hint(char *buf, size_t size)
{
    long max   = read_long("/proc/sys/vm/max_map_count");
    long count = count_mappings();
    struct rlimit limit;

    if ((max > 0) && (count + 2 >= max)) {
        snprintf(buf, size, "; the process has %ld mappings, and "
                 "vm.max_map_count is %ld (raise it with sysctl)", count, max);
    } else if ((getrlimit(RLIMIT_AS, &limit) == 0) &&
               (limit.rlim_cur != RLIM_INFINITY)) {
        snprintf(buf, size, "; perhaps for RLIMIT_AS, which is %llu KiB (raise "
                 "it with ulimit -v)", (unsigned long long)limit.rlim_cur /
                 1024);
    }
}

const char *hx_limit_hint(enum hx_limit_use use, int err, char *buf,
                          size_t size)
{
    int saved = errno;

    buf[0] = '\0';
    if ((err == EMFILE) || (err == ENFILE)) {
        files_hint(err, buf, size);
    } else if ((err == ENOMEM) && (use == HX_LIMIT_PIN)) {
        pin_hint(buf, size);
    } else if ((err == ENOMEM) && (use == HX_LIMIT_MAP)) {
        map_hint(buf, size);
    }

    errno = saved;
    return buf;
}
