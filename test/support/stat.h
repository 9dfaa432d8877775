/* SPDX-License-Identifier: BSD-3-Clause */

/* Reading the emulated device's counters by the program vhca-stat. */

#ifndef HXT_STAT_H_
#define HXT_STAT_H_

#include <stdbool.h>
#include <stdint.h>

#define HXT_STAT_MAX 1024

struct hxt_stats {
    unsigned count;
    struct {
        char     name[64];
        uint64_t value;
    } cell[HXT_STAT_MAX];
};

/** All counters of the fabric that VHCA_FABRIC names, without what the
 *  transport's self-test did; and max.key_remote_per_process, the most keys
 *  over user memory that a process had, be they of umems or MRs. HX_VHCA_STAT
 *  says which program; else the one in HIXL_BUILD; else the one on PATH. */
bool hxt_stats_read(struct hxt_stats *stats);
/** False: there is none of that name. */
bool hxt_stats_find(const struct hxt_stats *stats, const char *name,
                    uint64_t *value_p);

#endif
