/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Processes that die at any moment, by kill -9, and are started again; one that
 * is stopped for a while. The others may lose endpoints, but neither time nor
 * anything that they hold: descriptors, mappings, objects of the device.
 */

#include "kill_board.h"

#include <support/bytes.h>
#include <support/peers.h>

#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define KILLS       30
#define KILLS_LONG  1000
#define STOP        2.0  /* seconds */
#define STOP_LONG   10.0
#define PATIENCE    60.0 /* for anything that has to happen */
#define NUM_OBJECTS 8

static struct kill_board *board;
static int board_fd;
static pid_t pids[KILL_PROCS];
static uint32_t lives;
static struct hxt_rng rng;

/* What a process holds, and what the device has */
struct holding {
    unsigned fds;
    unsigned sockets;
    unsigned mappings; /* of shared memory */
    uint64_t objects[NUM_OBJECTS];
};

static const char *const object_names[NUM_OBJECTS] = {
    "objects.proc", "objects.qp", "objects.cq", "objects.rmp", "objects.uar",
    "objects.pd", "objects.mkey", "objects.umem"
};

static bool is_long(void)
{
    return getenv("HIXL_TEST_LONG") != NULL;
}

/* ---- processes ---- */

static void exec_worker(unsigned rank)
{
    char exe[4096], numbers[4][32];
    const char *argv[10];
    unsigned argc = 0, i;
    ssize_t len;

    setenv("UCX_TLS", "hixl", 1);
    setenv("UCX_HANDLE_ERRORS", "bt", 0);
    len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[len < 0 ? 0 : len] = '\0';
    snprintf(numbers[0], sizeof(numbers[0]), "%u", rank);
    snprintf(numbers[1], sizeof(numbers[1]), "%u", lives);
    snprintf(numbers[2], sizeof(numbers[2]), "0x%" PRIx64, hxt_seed());
    snprintf(numbers[3], sizeof(numbers[3]), "%d", board_fd);
    argv[argc++] = getenv("HIXL_RUN");
    argv[argc++] = "--vhca";
    argv[argc++] = exe;
    argv[argc++] = "--worker";
    for (i = 0; i < 4; i++) {
        argv[argc++] = numbers[i];
    }
    argv[argc] = NULL;
    execvp(argv[0], (char *const*)(uintptr_t)argv);
    fprintf(stderr, "cannot run %s: %m\n", argv[0]);
}

static void start(unsigned rank)
{
    pid_t parent = getpid(), pid;

    lives++;
    KILL_SET(board->slot[rank].life, 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            exec_worker(rank);
        }
        _exit(127);
    }
    pids[rank] = pid;
}

static void end_now(unsigned rank)
{
    if (pids[rank] != 0) {
        kill(pids[rank], SIGKILL);
        waitpid(pids[rank], NULL, 0);
        pids[rank] = 0;
    }
}

static void give_up(const char *what)
{
    unsigned rank, i;

    for (rank = 0; rank < KILL_PROCS; rank++) {
        printf("process %u: life %u, %" PRIu64 " turns, done", rank,
               board->slot[rank].life, board->slot[rank].turns);
        for (i = 0; i < KILL_PROCS; i++) {
            printf(" %" PRIu64, board->slot[rank].done[i]);
        }
        printf(", %" PRIu64 " endpoints failed\n", board->slot[rank].failed);
        if (pids[rank] != 0) {
            hxt_print_stacks(pids[rank]);
        }
    }
    fail_msg("%s", what);
}

/* Nobody ends by itself. */
static void check_alive(void)
{
    unsigned rank;
    int status;

    for (rank = 0; rank < KILL_PROCS; rank++) {
        if (pids[rank] != 0 &&
            waitpid(pids[rank], &status, WNOHANG) == pids[rank]) {
            pids[rank] = 0;
            if (WIFSIGNALED(status)) {
                printf("process %u: ended by signal %d (%s)\n", rank,
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
            } else {
                printf("process %u: exit status %d\n", rank,
                       WEXITSTATUS(status));
            }
            give_up("a process ended that was not killed");
        }
    }
}

#define WAIT_FOR(_cond, _what) \
    do { \
        double end_ = hxt_seconds() + PATIENCE; \
        while (!(_cond)) { \
            check_alive(); \
            if (hxt_seconds() > end_) { \
                give_up(_what); \
            } \
            poll(NULL, 0, 1); \
        } \
    } while (0)

/* ---- what they do ---- */

static uint64_t done_with(unsigned rank, unsigned other)
{
    return KILL_GET(board->slot[rank].done[other]);
}

/* Every pair of these gets a few rounds of all kinds done, in both directions:
 * UCP has nothing more to settle between them then. */
static void all_move(unsigned except)
{
    uint64_t before[KILL_PROCS][KILL_PROCS];
    unsigned i, j;

    for (i = 0; i < KILL_PROCS; i++) {
        for (j = 0; j < KILL_PROCS; j++) {
            before[i][j] = done_with(i, j);
        }
    }

    for (i = 0; i < KILL_PROCS; i++) {
        for (j = 0; j < KILL_PROCS; j++) {
            if (i != j && i != except && j != except) {
                WAIT_FOR(done_with(i, j) > before[i][j] + 12,
                         "two processes that live do not get on");
            }
        }
    }
}

static void all_turn(unsigned except)
{
    uint64_t before[KILL_PROCS];
    unsigned i;

    for (i = 0; i < KILL_PROCS; i++) {
        before[i] = KILL_GET(board->slot[i].turns);
    }
    for (i = 0; i < KILL_PROCS; i++) {
        if (i != except) {
            WAIT_FOR(KILL_GET(board->slot[i].turns) > before[i] + 1,
                     "a process hangs");
        }
    }
}

static void wait_there(unsigned rank)
{
    WAIT_FOR(KILL_GET(board->slot[rank].life) != 0,
             "a process does not get ready");
}

/* ---- what they hold ---- */

static unsigned count_fds(pid_t pid, unsigned *sockets_p)
{
    char path[64], target[64];
    unsigned count = 0;
    struct dirent *entry;
    ssize_t len;
    DIR *dir;

    *sockets_p = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        len = readlinkat(dirfd(dir), entry->d_name, target,
                         sizeof(target) - 1);
        if (len > 0) {
            target[len] = '\0';
            count++;
            *sockets_p += strncmp(target, "socket:", 7) == 0;
        }
    }
    closedir(dir);
    return count;
}

static unsigned count_mappings(pid_t pid)
{
    char path[64], line[512];
    unsigned count = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        count += strchr(line, 's') == line + strcspn(line, " ") + 4;
    }
    fclose(file);
    return count;
}

static bool all_quiet(uint32_t word)
{
    unsigned i;

    for (i = 0; i < KILL_PROCS; i++) {
        if (KILL_GET(board->slot[i].quiet) != word) {
            return false;
        }
    }
    return true;
}

/* When nobody has an endpoint, and closing behind UCP's back is done */
static struct holding take_stock(void)
{
    struct holding holding;
    unsigned i;

    KILL_SET(board->quiet, board->quiet + 1);
    WAIT_FOR(all_quiet(board->quiet), "endpoints are not closed");
    WAIT_FOR(hxt_stat("objects.qp") == 0, "QPs are left");
    holding.fds      = count_fds(pids[0], &holding.sockets);
    holding.mappings = count_mappings(pids[0]);
    for (i = 0; i < NUM_OBJECTS; i++) {
        holding.objects[i] = hxt_stat(object_names[i]);
    }
    KILL_SET(board->quiet, board->quiet + 1);
    return holding;
}

static void print_holding(const char *when, const struct holding *holding)
{
    unsigned i;

    printf("%s: %u descriptors, %u of them sockets, %u shared mappings", when,
           holding->fds, holding->sockets, holding->mappings);
    for (i = 0; i < NUM_OBJECTS; i++) {
        printf(", %s %" PRIu64, object_names[i], holding->objects[i]);
    }
    printf("\n");
}

/* ---- the tests ---- */

static int setup(void **state)
{
    unsigned i;

    if (hxt_setup(state) != 0) {
        return 1;
    }
    rng      = hxt_rng_derive(hxt_seed(), 1, 2, 3);
    board_fd = memfd_create("board", 0);
    if (board_fd < 0 || ftruncate(board_fd, sizeof(*board)) != 0) {
        return 1;
    }
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED,
                 board_fd, 0);
    if (board == MAP_FAILED) {
        return 1;
    }
    for (i = 0; i < KILL_PROCS; i++) {
        start(i);
    }
    return 0;
}

static int teardown(void **state)
{
    unsigned i;

    for (i = 0; i < KILL_PROCS; i++) {
        end_now(i);
    }
    munmap(board, sizeof(*board));
    close(board_fd);
    return hxt_teardown(state);
}

/* All end in good order, and nothing is left anywhere. */
static void end_well(void)
{
    double end = hxt_seconds() + PATIENCE;
    unsigned rank, i;
    int status;

    KILL_SET(board->quiet, board->quiet + 1);
    WAIT_FOR(all_quiet(board->quiet), "endpoints are not closed");
    KILL_SET(board->stop, 1);
    for (rank = 0; rank < KILL_PROCS; rank++) {
        while (waitpid(pids[rank], &status, WNOHANG) != pids[rank]) {
            if (hxt_seconds() > end) {
                give_up("a process does not end");
            }
            poll(NULL, 0, 1);
        }
        pids[rank] = 0;
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    for (i = 0; i < NUM_OBJECTS; i++) {
        assert_int_equal(hxt_stat(object_names[i]), 0);
    }
}

static void start_all(void)
{
    unsigned i;

    for (i = 0; i < KILL_PROCS; i++) {
        wait_there(i);
    }
    all_move(KILL_PROCS);
}

/* Once in a while before it has begun, else in the middle of its work */
static void kill_one(void)
{
    unsigned rank = hxt_rng_range(&rng, 1, KILL_PROCS - 1);

    if (hxt_rng_range(&rng, 0, 7) != 0) {
        wait_there(rank);
    }
    usleep(hxt_rng_range(&rng, 0, 60000));
    end_now(rank);
    all_turn(rank);
    start(rank);
}

static void kill_9__at_random_points__others_lose_nothing(void **state)
{
    const char *kills = getenv("HIXL_TEST_KILLS");
    unsigned count    = kills != NULL ? strtoul(kills, NULL, 0) :
                        is_long() ? KILLS_LONG : KILLS, i;
    struct holding before, after;

    (void)state;
    start_all();
    before = take_stock();
    print_holding("before", &before);
    for (i = 0; i < count; i++) {
        kill_one();
        if (i % 10 == 9) {
            start_all();
        }
    }
    start_all();
    after = take_stock();
    print_holding("after", &after);
    printf("%" PRIu64 " endpoints of process 0 failed\n",
           board->slot[0].failed);

    assert_in_range(board->slot[0].failed, 1, UINT32_MAX);
    assert_int_equal(after.fds, before.fds);
    assert_int_equal(after.sockets, before.sockets);
    assert_in_range(after.mappings, 0, before.mappings);
    for (i = 0; i < NUM_OBJECTS; i++) {
        assert_int_equal(after.objects[i], before.objects[i]);
    }
    end_well();
}

static void sigstop__of_one__others_go_on_and_it_comes_back(void **state)
{
    double end;
    unsigned i;

    (void)state;
    start_all();
    for (i = 0; i < (is_long() ? 5 : 2); i++) {
        kill(pids[3], SIGSTOP);
        end = hxt_seconds() + (is_long() ? STOP_LONG : STOP);
        do {
            all_turn(3);
            all_move(3);
        } while (hxt_seconds() < end);
        kill(pids[3], SIGCONT);
        start_all();
    }
    end_well();
}

#define TEST(_name) cmocka_unit_test_setup_teardown(_name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(kill_9__at_random_points__others_lose_nothing),
        TEST(sigstop__of_one__others_go_on_and_it_comes_back)
    };

    if (argc == 6 && strcmp(argv[1], "--worker") == 0) {
        board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED,
                     atoi(argv[5]), 0);
        if (board == MAP_FAILED) {
            return 1;
        }
        kill_worker(board, atoi(argv[2]), atoi(argv[3]),
                    strtoull(argv[4], NULL, 0));
        return 0;
    }

    if (getenv("HIXL_RUN") == NULL) {
        fprintf(stderr, "HIXL_RUN is not set: run the tests by make check\n");
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
