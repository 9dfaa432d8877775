/* SPDX-License-Identifier: BSD-3-Clause */

/* The parent of a test's processes: starts them, relays, watches, ends. */

#include "peers.h"

#include "stat.h"
#include "wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define DEADLINE_DEFAULT 120

struct child {
    pid_t           pid;      /* 0: reaped */
    int             pidfd;
    int             fd;       /* to the child; -1: it closed its end */
    bool            gathering;
    struct hxt_blob blob;     /* what it gave to the gather under way */
};

static struct {
    char     fabric[64];
    char     log_dir[64];
    uint64_t seed;
} test;

static struct child children[HXT_MAX_PROCS];

/* The test is to end now: its processes and its fabric go with it */
static volatile sig_atomic_t terminated;

double hxt_seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* ---- a test's own fabric and logs ---- */

static void on_term(int signo)
{
    (void)signo;
    terminated = 1;
}

int hxt_setup(void **state)
{
    const struct sigaction action = { .sa_handler = on_term };
    const char *seed = getenv("HIXL_TEST_SEED");
    static unsigned serial;
    struct timespec ts;

    (void)state;
    if (terminated) {
        return 1;
    }
    sigaction(SIGTERM, &action, NULL); /* poll() shall return */
    clock_gettime(CLOCK_REALTIME, &ts);
    test.seed = seed != NULL ? strtoull(seed, NULL, 0) :
                (uint64_t)ts.tv_sec << 20 ^ ts.tv_nsec ^ getpid();
    printf("seed: HIXL_TEST_SEED=0x%" PRIx64 "\n", test.seed);
    fflush(stdout);

    snprintf(test.fabric, sizeof(test.fabric), "test-%d-%u", getpid(),
             serial++);
    setenv("VHCA_FABRIC", test.fabric, 1);
    snprintf(test.log_dir, sizeof(test.log_dir), "/tmp/hixl-test-XXXXXX");
    return mkdtemp(test.log_dir) == NULL;
}

uint64_t hxt_seed(void)
{
    return test.seed;
}

static void remove_dir(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    if (dir == NULL) {
        return;
    }

    while ((entry = readdir(dir)) != NULL) {
        unlinkat(dirfd(dir), entry->d_name, 0); /* . and .. refuse */
    }
    closedir(dir);
    rmdir(path);
}

int hxt_teardown(void **state)
{
    const char *dir = getenv("VHCA_DIR");
    char path[4096];

    (void)state;
    snprintf(path, sizeof(path), "%s/vhca.%u/%s",
             dir != NULL ? dir : "/dev/shm", getuid(), test.fabric);
    remove_dir(path);
    remove_dir(test.log_dir);
    return 0;
}

/* ---- starting ---- */

static void exec_child(const struct hxt_run *run, unsigned rank, int fd)
{
    const char *tls = getenv("HIXL_TEST_TLS");
    char exe[4096], numbers[4][32], log_file[128];
    const char *argv[10];
    unsigned argc = 0, i;
    ssize_t len;

    for (i = 0; run->env != NULL && run->env[i] != NULL; i++) {
        putenv(strdup(run->env[i]));
    }
    snprintf(log_file, sizeof(log_file), "%s/%u.log", test.log_dir, rank);
    setenv("UCX_LOG_FILE", log_file, 1);
    setenv("UCX_TLS", tls != NULL ? tls : "hixl", 0);
    setenv("UCX_HANDLE_ERRORS", "bt", 0);

    len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[len < 0 ? 0 : len] = '\0';
    snprintf(numbers[0], sizeof(numbers[0]), "%u", rank);
    snprintf(numbers[1], sizeof(numbers[1]), "%u", run->count);
    snprintf(numbers[2], sizeof(numbers[2]), "0x%" PRIx64, test.seed);
    snprintf(numbers[3], sizeof(numbers[3]), "%d", fd);

    if (tls == NULL) {
        argv[argc++] = getenv("HIXL_RUN");
        argv[argc++] = "--vhca";
    }
    argv[argc++] = exe;
    argv[argc++] = "--proc";
    argv[argc++] = run->scenario;
    for (i = 0; i < 4; i++) {
        argv[argc++] = numbers[i];
    }
    argv[argc] = NULL;

    execvp(argv[0], (char *const*)(uintptr_t)argv);
    fprintf(stderr, "cannot run %s: %m\n", argv[0]);
}

static void start_child(const struct hxt_run *run, unsigned rank)
{
    pid_t parent = getpid(), pid;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds),
                     0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* whoever ends the test ends its processes */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            fcntl(fds[1], F_SETFD, 0);
            exec_child(run, rank, fds[1]);
        }
        _exit(127);
    }

    close(fds[1]);
    children[rank] = (struct child){
        .pid   = pid,
        .pidfd = pidfd_open(pid, 0),
        .fd    = fds[0]
    };
    assert_true(children[rank].pidfd >= 0);
}

/* ---- relaying ---- */

/* Answers the gather once everybody has asked. */
static bool relay_gather(unsigned count)
{
    uint32_t total = 0, len;
    unsigned i, j;
    bool ok;

    for (i = 0; i < count; i++) {
        if (!children[i].gathering) {
            return true;
        }
        total += children[i].blob.len;
    }

    for (i = 0; i < count; i++) {
        ok = hxt_write_all(children[i].fd, &total, sizeof(total));
        for (j = 0; ok && j < count; j++) {
            len = children[j].blob.len;
            ok  = hxt_write_all(children[i].fd, &len, sizeof(len)) &&
                  hxt_write_all(children[i].fd, children[j].blob.data, len);
        }
        if (!ok) {
            return false;
        }
    }

    for (i = 0; i < count; i++) {
        free(children[i].blob.data);
        children[i].blob.data = NULL;
        children[i].gathering = false;
    }
    return true;
}

static bool answer_stat(struct child *child, const char *name)
{
    uint64_t value = hxt_foreign() ? 0 : hxt_stat(name);

    return hxt_write_all(child->fd, &value, sizeof(value));
}

/* False: the child has closed its end, which is no error in itself. */
static bool serve(struct child *child, unsigned count)
{
    struct hxt_msg msg;
    char *data;
    bool ok;

    if (!hxt_read_all(child->fd, &msg, sizeof(msg))) {
        return false;
    }
    data = malloc(msg.len + 1);
    assert_non_null(data);
    if (!hxt_read_all(child->fd, data, msg.len)) {
        free(data);
        return false;
    }

    switch (msg.type) {
    case HXT_MSG_GATHER:
        child->blob      = (struct hxt_blob){ data, msg.len };
        child->gathering = true;
        return relay_gather(count);
    case HXT_MSG_STAT:
        data[msg.len] = '\0';
        ok = answer_stat(child, data);
        free(data);
        return ok;
    default:
        free(data);
        return false;
    }
}

/* ---- ending ---- */

static void print_file(const char *title, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[1024];

    if (file == NULL) {
        return;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        printf("%s: %s", title, line);
    }
    fclose(file);
}

void hxt_print_stacks(pid_t pid)
{
    char command[128];

    printf("stacks of process %d:\n", pid);
    fflush(stdout);
    snprintf(command, sizeof(command),
             "timeout 60 gdb -nx -batch -p %d -ex 'thread apply all bt' 2>&1",
             pid);
    if (system(command) != 0) {
        printf("(gdb could not show them)\n");
    }
}

static void print_hang(const struct hxt_run *run)
{
    char title[32], path[128];
    unsigned i;

    for (i = 0; i < run->count; i++) {
        if (children[i].pid != 0) {
            printf("process %u%s: ", i,
                   children[i].gathering ? " (waits for the others)" : "");
            hxt_print_stacks(children[i].pid);
        }
        snprintf(title, sizeof(title), "UCX's log %u", i);
        snprintf(path, sizeof(path), "%s/%u.log", test.log_dir, i);
        print_file(title, path);
    }
}

/* Reaps one; true if it succeeded. */
static bool reap(struct child *child, unsigned rank)
{
    int status;

    if (waitpid(child->pid, &status, 0) != child->pid) {
        return false;
    }
    child->pid = 0;
    close(child->pidfd);
    child->pidfd = -1;

    if (WIFSIGNALED(status)) {
        printf("process %u: ended by signal %d (%s)\n", rank,
               WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0) {
        printf("process %u: exit status %d\n", rank, WEXITSTATUS(status));
    }
    fflush(stdout);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void end_all(unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        if (children[i].pid != 0) {
            kill(children[i].pid, SIGKILL);
            waitpid(children[i].pid, NULL, 0);
            close(children[i].pidfd);
        }
        if (children[i].fd >= 0) {
            close(children[i].fd);
        }
        free(children[i].blob.data);
        children[i] = (struct child){ .fd = -1, .pidfd = -1 };
    }
}

/* Serves whoever asks and reaps whoever ends. False: somebody failed. */
static bool step(unsigned count, unsigned *running_p, int timeout_ms)
{
    struct pollfd pfds[2 * HXT_MAX_PROCS];
    unsigned i;

    for (i = 0; i < count; i++) {
        pfds[2 * i]     = (struct pollfd){ children[i].fd, POLLIN, 0 };
        pfds[2 * i + 1] = (struct pollfd){ children[i].pidfd, POLLIN, 0 };
    }
    if (poll(pfds, 2 * count, timeout_ms) < 0) {
        return errno == EINTR && !terminated;
    }

    for (i = 0; i < count; i++) {
        if (pfds[2 * i].revents != 0 && !serve(&children[i], count)) {
            close(children[i].fd);
            children[i].fd = -1;
        }
        if (pfds[2 * i + 1].revents != 0) {
            if (!reap(&children[i], i)) {
                return false;
            }
            (*running_p)--;
        }
    }
    return true;
}

static bool holds_all(const char *line, const char *const *texts)
{
    if (texts == NULL) {
        return false;
    }
    for (; *texts != NULL; texts++) {
        if (strstr(line, *texts) == NULL) {
            return false;
        }
    }
    return true;
}

/* UCX says in its log what it does not say by a status. */
static bool check_logs(const struct hxt_run *run)
{
    bool found = false, ok = true;
    char line[2048], path[128];
    FILE *file;
    unsigned i;

    for (i = 0; i < run->count; i++) {
        snprintf(path, sizeof(path), "%s/%u.log", test.log_dir, i);
        file = fopen(path, "r");
        while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
            if (holds_all(line, run->expect_log)) {
                found = true;
            } else {
                printf("UCX's log %u: %s", i, line);
                ok = ok && strstr(line, " ERROR ") == NULL &&
                     strstr(line, " FATAL ") == NULL;
            }
        }
        if (file != NULL) {
            fclose(file);
            unlink(path);
        }
    }

    if (run->expect_log != NULL && !found && !hxt_foreign()) {
        printf("no line of UCX's log holds what it must: %s ...\n",
               run->expect_log[0]);
        ok = false;
    }
    return ok;
}

void hxt_run(const struct hxt_run *run)
{
    unsigned seconds = hxt_slower() *
                       (run->deadline != 0 ? run->deadline : DEADLINE_DEFAULT);
    double deadline  = hxt_seconds() + seconds;
    unsigned running = run->count, i;
    bool ok = true;
    double left;

    if (getenv("HIXL_RUN") == NULL && !hxt_foreign()) {
        fail_msg("HIXL_RUN is not set: run the tests by make check");
    }
    assert_in_range(run->count, 1, HXT_MAX_PROCS);
    fflush(NULL);
    for (i = 0; i < run->count; i++) {
        start_child(run, i);
    }

    while (ok && running > 0) {
        left = deadline - hxt_seconds();
        if (left <= 0) {
            printf("%s: not done after %u seconds\n", run->scenario, seconds);
            print_hang(run);
            break;
        }
        ok = step(run->count, &running, (int)(left * 1000) + 1);
    }

    end_all(run->count);
    ok = check_logs(run) && ok;
    if (!ok || running > 0) {
        fail_msg("%s failed", run->scenario);
    }
}
