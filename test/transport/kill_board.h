/* SPDX-License-Identifier: BSD-3-Clause */

/* What the processes of test_kill and their parent know of each other: one
 * page of shared memory, so that nobody waits for somebody who is dead. */

#ifndef KILL_BOARD_H_
#define KILL_BOARD_H_

#include <stdint.h>

#define KILL_PROCS 4

/* A process writes its own slot only; `life` last, when the rest is there. The
 * parent clears `life` before it starts the next one. */
struct kill_slot {
    uint32_t life;               /* 0: not there; else a new number each time */
    uint32_t idle;               /* nothing under way, since that `quiet` */
    uint32_t quiet;              /* and no endpoint, since that one */
    uint64_t turns;              /* of its loop */
    uint64_t done[KILL_PROCS];   /* operations with each other process */
    uint64_t got[KILL_PROCS];    /* messages from each other process */
    uint64_t failed;             /* endpoints that failed */
    uint64_t mem_addr;
    uint32_t addr_len;
    uint32_t rkey_len;
    uint8_t  addr[512];
    uint8_t  rkey[256];
};

struct kill_board {
    uint32_t         quiet;      /* odd: nobody has endpoints, please */
    uint32_t         stop;
    struct kill_slot slot[KILL_PROCS];
};

#define KILL_GET(_word)         __atomic_load_n(&(_word), __ATOMIC_ACQUIRE)
#define KILL_SET(_word, _value) \
    __atomic_store_n(&(_word), _value, __ATOMIC_RELEASE)

/** One process: moves bytes to and from all others until board->stop. */
void kill_worker(struct kill_board *board, unsigned rank, uint32_t life,
                 uint64_t seed);

#endif
