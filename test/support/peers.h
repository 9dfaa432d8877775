/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Tests of several processes. The parent runs cmocka and never touches UCX; it
 * starts each process of a scenario as a new execution of the same program
 * under contrib/hixl-run, relays what they tell each other, watches deadlines,
 * and afterwards reads what the emulated device counted.
 *
 * Environment: HIXL_RUN and HIXL_BUILD as in test/local.mk. HIXL_TEST_SEED
 * repeats a run. HIXL_TEST_TLS=tcp (say) runs the same processes over another
 * transport of the installed UCX, without hixl-run and without what only the
 * emulated device can tell: to learn whether a test or the transport is wrong.
 */

#ifndef HXT_PEERS_H_
#define HXT_PEERS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HXT_MAX_PROCS 8

/* What was last said of an endpoint's failure, for UCT and UCP alike */
struct hxt_failure {
    const void *ep;
    int         status;             /* ucs_status_t */
    unsigned    calls;
};

/** For deadlines: of a clock that is never set. */
double hxt_seconds(void);

/* One process of a scenario, as it sees itself */
struct hxt_proc {
    unsigned rank;
    unsigned count;
    uint64_t seed;
    int      fd;                    /* to the parent */
    void   (*progress)(void *arg);  /* called while it waits; may be NULL */
    void    *progress_arg;
};

struct hxt_blob {
    void  *data;
    size_t len;
};

struct hxt_scenario {
    const char *name;
    void      (*run)(struct hxt_proc *proc);
};

/* ---- in a process ---- */

/** Ends the process with a message; its scenario has failed. */
void hxt_die(const char *file, int line, const char *fmt, ...)
        __attribute__((format(printf, 3, 4), noreturn));
#define HXT_CHECK(_cond, ...) \
    do { \
        if (!(_cond)) { \
            hxt_die(__FILE__, __LINE__, __VA_ARGS__); \
        } \
    } while (0)

/** Dies unless buf holds the pattern (bytes.h). */
void hxt_verify(const char *what, const void *buf, size_t len, uint64_t key,
                uint64_t pos);

/** Every process gives a blob and gets everybody's, in order of rank. The
 *  returned array is freed with free(). */
struct hxt_blob *hxt_gather(struct hxt_proc *proc, const void *data,
                            size_t len);
void hxt_barrier(struct hxt_proc *proc);
/** As hxt_barrier, but without progress: a process that only waits. */
void hxt_barrier_idle(struct hxt_proc *proc);
/** What the emulated device has counted so far; 0 over another transport. */
uint64_t hxt_proc_stat(struct hxt_proc *proc, const char *name);
/** True over another transport than hixl. */
bool hxt_foreign(void);
/** Page-aligned private memory, zeroed. */
void *hxt_alloc(size_t len);

/** How often the usual time a test has: more than 1 with a sanitizer. */
unsigned hxt_slower(void);

/* ---- in the parent ---- */

struct hxt_run {
    const char        *scenario;
    unsigned           count;
    unsigned           deadline;    /* seconds; 0: 120 */
    const char *const *env;         /* "NAME=value" ..., NULL; may be NULL */
    /* Texts that one line of UCX's log must hold, NULL-terminated; any other
     * error there is a failure. NULL: none */
    const char *const *expect_log;
};

enum hxt_rule { HXT_IS, HXT_AT_LEAST, HXT_AT_MOST };

struct hxt_expect {
    const char   *name;             /* as vhca-stat names it */
    enum hxt_rule rule;
    uint64_t      value;
};

/** For main(): runs the process and never returns, if this is one. */
void hxt_proc_main(int argc, char **argv,
                   const struct hxt_scenario *scenarios);

/** cmocka setup and teardown: a fabric and a log directory of its own. */
int hxt_setup(void **state);
int hxt_teardown(void **state);
/** The seed that hxt_setup() printed. */
uint64_t hxt_seed(void);

/** Runs a scenario to its end; fails the test if one of them failed. */
void hxt_run(const struct hxt_run *run);
/** Fails the test unless all hold. cqe.error must be 0 besides. */
void hxt_expect(const struct hxt_expect *expect, unsigned count);
uint64_t hxt_stat(const char *name);
/** All stacks of a process that does not end, by gdb. */
void hxt_print_stacks(pid_t pid);

#endif
