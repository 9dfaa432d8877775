/* SPDX-License-Identifier: BSD-3-Clause */

/* The side of a test's process: how it talks with its parent. */

#include "peers.h"

#include "bytes.h"
#include "wire.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned proc_rank;

bool hxt_write_all(int fd, const void *buf, size_t len)
{
    const char *pos = buf;
    ssize_t ret;

    for (; len > 0; pos += ret, len -= ret) {
        ret = send(fd, pos, len, MSG_NOSIGNAL);
        if (ret < 0 && errno == EINTR) {
            ret = 0;
        } else if (ret <= 0) {
            return false;
        }
    }

    return true;
}

bool hxt_read_all(int fd, void *buf, size_t len)
{
    char *pos = buf;
    ssize_t ret;

    for (; len > 0; pos += ret, len -= ret) {
        ret = read(fd, pos, len);
        if (ret < 0 && errno == EINTR) {
            ret = 0;
        } else if (ret <= 0) {
            return false;
        }
    }

    return true;
}

unsigned hxt_slower(void)
{
    const char *times = getenv("HIXL_TEST_SLOWER"); /* from run-one */
    long value        = times != NULL ? strtol(times, NULL, 10) : 1;

    return value > 1 ? value : 1;
}

void hxt_die(const char *file, int line, const char *fmt, ...)
{
    char message[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    fflush(stdout);
    /* in one piece: others may die at the same time */
    dprintf(STDERR_FILENO, "%s:%d: process %u: %s\n", file, line, proc_rank,
            message);
    /* no exit handlers: the transport may be what is broken */
    _exit(1);
}

void hxt_verify(const char *what, const void *buf, size_t len, uint64_t key,
                uint64_t pos)
{
    ptrdiff_t bad = hxt_differs(buf, len, key, pos);
    const uint8_t *bytes = buf;
    uint8_t expected;

    if (bad >= 0) {
        hxt_fill(&expected, 1, key, pos + bad);
        hxt_die(__FILE__, __LINE__,
                "%s: byte %td of %zu is 0x%02x and not 0x%02x "
                "(pattern 0x%" PRIx64 " + %" PRIu64 ")",
                what, bad, len, bytes[bad], expected, key, pos);
    }
}

bool hxt_foreign(void)
{
    return getenv("HIXL_TEST_TLS") != NULL;
}

void *hxt_alloc(size_t len)
{
    void *ptr = mmap(NULL, len, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    HXT_CHECK(ptr != MAP_FAILED, "no %zu bytes of memory: %m", len);
    return ptr;
}

static void ask(struct hxt_proc *proc, enum hxt_msg_type type,
                const void *data, size_t len)
{
    struct hxt_msg msg = { .type = type, .len = len };

    HXT_CHECK(hxt_write_all(proc->fd, &msg, sizeof(msg)) &&
              hxt_write_all(proc->fd, data, len), "the parent is gone");
}

/* Until the parent has answered. Others may need our progress meanwhile. */
static void wait_answer(struct hxt_proc *proc)
{
    struct pollfd pfd = { .fd = proc->fd, .events = POLLIN };

    if (proc->progress == NULL) {
        return; /* the read blocks */
    }

    while (poll(&pfd, 1, 0) == 0) {
        proc->progress(proc->progress_arg);
    }
}

static void get_answer(struct hxt_proc *proc, void *data, size_t len)
{
    HXT_CHECK(hxt_read_all(proc->fd, data, len), "the parent is gone");
}

struct hxt_blob *hxt_gather(struct hxt_proc *proc, const void *data,
                            size_t len)
{
    struct hxt_blob *blobs;
    uint32_t total, part;
    unsigned i;
    char *pos;

    ask(proc, HXT_MSG_GATHER, data, len);
    wait_answer(proc);
    get_answer(proc, &total, sizeof(total));

    blobs = malloc(proc->count * sizeof(*blobs) + total);
    HXT_CHECK(blobs != NULL, "no memory");
    pos = (char*)(blobs + proc->count);
    for (i = 0; i < proc->count; i++) {
        get_answer(proc, &part, sizeof(part));
        get_answer(proc, pos, part);
        blobs[i] = (struct hxt_blob){ .data = pos, .len = part };
        pos += part;
    }

    return blobs;
}

void hxt_barrier(struct hxt_proc *proc)
{
    free(hxt_gather(proc, "", 0));
}

void hxt_barrier_idle(struct hxt_proc *proc)
{
    void (*progress)(void *arg) = proc->progress;

    proc->progress = NULL;
    hxt_barrier(proc);
    proc->progress = progress;
}

uint64_t hxt_proc_stat(struct hxt_proc *proc, const char *name)
{
    uint64_t value;

    ask(proc, HXT_MSG_STAT, name, strlen(name) + 1);
    wait_answer(proc);
    get_answer(proc, &value, sizeof(value));
    return value;
}

void hxt_proc_main(int argc, char **argv, const struct hxt_scenario *scenarios)
{
    const struct hxt_scenario *scenario;
    struct hxt_proc proc;

    if (argc != 7 || strcmp(argv[1], "--proc") != 0) {
        return;
    }

    proc = (struct hxt_proc){
        .rank  = strtoul(argv[3], NULL, 10),
        .count = strtoul(argv[4], NULL, 10),
        .seed  = strtoul(argv[5], NULL, 0),
        .fd    = strtol(argv[6], NULL, 10)
    };
    proc_rank = proc.rank;
    setvbuf(stdout, NULL, _IOLBF, 0);

    for (scenario = scenarios; scenario->name != NULL; scenario++) {
        if (strcmp(scenario->name, argv[2]) == 0) {
            scenario->run(&proc);
            fflush(stdout);
            exit(0);
        }
    }

    hxt_die(__FILE__, __LINE__, "no scenario %s", argv[2]);
}
