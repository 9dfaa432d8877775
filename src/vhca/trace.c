/* SPDX-License-Identifier: BSD-3-Clause */

/* The lines of VHCA_TRACE. Raw system calls: libc's would tell whoever hooks
 * memory or files, and the preload itself. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "vhca/trace.h"

/* Where it goes; path is absolute, since the process may change its directory.
 * fd < 0: nothing is traced */
static struct {
    int             fd;
    dev_t           dev;
    ino_t           ino;
    pthread_mutex_t lock;          /* of the above, when they change */
    char            path[4096];
} trace_file = { .fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

bool vhca_tracing(void)
{
    return __atomic_load_n(&trace_file.fd, __ATOMIC_RELAXED) >= 0;
}

/* Is the descriptor still the file? Programs close what they do not know, and
 * the number is soon somebody else's. */
static bool still_ours(int fd)
{
    struct stat st;

    return (syscall(SYS_fstat, fd, &st) == 0) &&
           (st.st_dev == trace_file.dev) && (st.st_ino == trace_file.ino);
}

static int open_file(void)
{
    struct stat st;
    int fd;

    fd = syscall(SYS_openat, AT_FDCWD, trace_file.path,
                 O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if ((fd < 0) || (syscall(SYS_fstat, fd, &st) != 0)) {
        return -errno;
    }

    trace_file.dev = st.st_dev;
    trace_file.ino = st.st_ino;
    __atomic_store_n(&trace_file.fd, fd, __ATOMIC_RELEASE);
    return 0;
}

/* name, made absolute */
static int set_path(const char *name)
{
    char dir[2048] = "";

    /* counts the end of the string */
    if ((name[0] != '/') &&
        (syscall(SYS_getcwd, dir, sizeof(dir)) <= 0)) {
        return -errno;
    }
    if ((size_t)snprintf(trace_file.path, sizeof(trace_file.path), "%s%s%s",
                         dir, (name[0] == '/') ? "" : "/", name) >=
        sizeof(trace_file.path)) {
        return -ENAMETOOLONG;
    }
    return 0;
}

int vhca_trace_open(void)
{
    const char *name = getenv("VHCA_TRACE");
    int ret;

    if ((name == NULL) || (name[0] == '\0') || vhca_tracing()) {
        return 0;
    }

    ret = set_path(name);
    if (ret == 0) {
        ret = open_file();
    }
    if (ret != 0) {
        fprintf(stderr, "vhca: VHCA_TRACE, %s: %s\n", name, strerror(-ret));
    }
    return ret;
}

void vhca_trace_begin(struct vhca_trace *trace, const char *what)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    trace->len = 0;
    vhca_trace_add(trace, "%02ld:%02ld:%02ld.%06ld %d/%ld %s",
                   (long)(now.tv_sec / 3600 % 24),
                   (long)(now.tv_sec / 60 % 60), (long)(now.tv_sec % 60),
                   now.tv_nsec / 1000, (int)getpid(), syscall(SYS_gettid),
                   what);
}

void vhca_trace_add(struct vhca_trace *trace, const char *fmt, ...)
{
    size_t room = sizeof(trace->line) - 1 - trace->len; /* one for the \n */
    va_list ap;
    int len;

    va_start(ap, fmt);
    len = vsnprintf(trace->line + trace->len, room, fmt, ap);
    va_end(ap);
    if (len < 0) {
        return;
    }
    if ((size_t)len < room) {
        trace->len += len;
        return;
    }

    trace->len = sizeof(trace->line) - 2;
    memcpy(trace->line + trace->len - 3, "...", 3);
}

void vhca_trace_end(struct vhca_trace *trace)
{
    int saved = errno, fd = __atomic_load_n(&trace_file.fd, __ATOMIC_ACQUIRE);

    if (fd < 0) {
        return;
    }
    if (!still_ours(fd)) {
        pthread_mutex_lock(&trace_file.lock);
        if (!still_ours(trace_file.fd)) {
            open_file();
        }
        fd = trace_file.fd;
        pthread_mutex_unlock(&trace_file.lock);
    }

    /* One write of a file opened to append: lines of other threads and
     * processes stand before or behind it. A full disk loses the line. */
    trace->line[trace->len] = '\n';
    if (still_ours(fd)) {
        (void)!syscall(SYS_write, fd, trace->line, trace->len + 1);
    }
    errno = saved;
}
