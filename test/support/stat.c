/* SPDX-License-Identifier: BSD-3-Clause */

/* Reading the emulated device's counters by the program vhca-stat. */

#include "stat.h"

#include "peers.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void find_program(char *path, size_t len)
{
    const char *program = getenv("HX_VHCA_STAT");
    const char *build   = getenv("HIXL_BUILD");

    if (program != NULL) {
        snprintf(path, len, "%s", program);
        return;
    }
    if (build != NULL) {
        snprintf(path, len, "%s/vhca-stat", build);
        if (access(path, X_OK) == 0) {
            return;
        }
    }
    snprintf(path, len, "vhca-stat");
}

static uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int index_of(const struct hxt_stats *stats, const char *name)
{
    unsigned i;

    for (i = 0; i < stats->count; i++) {
        if (strcmp(stats->cell[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* The transport proves keys over umems with a few operations of its own, and
 * counts them: they are not what a test looks at. */
static void forget_selftest(struct hxt_stats *stats)
{
    static const char prefix[] = "sw.selftest.";
    const size_t len = sizeof(prefix) - 1;
    unsigned i;
    int of;

    for (i = 0; i < stats->count; i++) {
        if (strncmp(stats->cell[i].name, prefix, len) == 0) {
            of = index_of(stats, stats->cell[i].name + len);
            if (of >= 0) {
                stats->cell[of].value -= min(stats->cell[of].value,
                                             stats->cell[i].value);
            }
        }
    }
}

/* Regions are keys over umems or MRs, never both in one process */
static void add_region_keys(struct hxt_stats *stats)
{
    int umem = index_of(stats, "max.mkey_remote_per_process");
    int mr   = index_of(stats, "max.mr_remote_per_process");

    if (umem >= 0 && mr >= 0 && stats->count < HXT_STAT_MAX) {
        stats->cell[stats->count].value = stats->cell[umem].value +
                                          stats->cell[mr].value;
        strcpy(stats->cell[stats->count].name, "max.key_remote_per_process");
        stats->count++;
    }
}

bool hxt_stats_read(struct hxt_stats *stats)
{
    char path[4096], line[256];
    FILE *pipe;

    find_program(path, sizeof(path));
    pipe = popen(path, "r");
    if (pipe == NULL) {
        return false;
    }

    stats->count = 0;
    while (fgets(line, sizeof(line), pipe) != NULL &&
           stats->count < HXT_STAT_MAX) {
        if (sscanf(line, "%63s %" SCNu64, stats->cell[stats->count].name,
                   &stats->cell[stats->count].value) == 2) {
            stats->count++;
        }
    }
    forget_selftest(stats);
    add_region_keys(stats);
    return pclose(pipe) == 0 && stats->count > 0;
}

bool hxt_stats_find(const struct hxt_stats *stats, const char *name,
                    uint64_t *value_p)
{
    int i = index_of(stats, name);

    if (i < 0) {
        return false;
    }
    *value_p = stats->cell[i].value;
    return true;
}

/* Cells that do not exist before something happened */
static bool made_on_demand(const char *name)
{
    return strncmp(name, "sw.", 3) == 0 ||
           strncmp(name, "cqe.syndrome.", 13) == 0;
}

static uint64_t value_of(const struct hxt_stats *stats, const char *name)
{
    uint64_t value = 0;

    if (!hxt_stats_find(stats, name, &value) && !made_on_demand(name)) {
        fail_msg("vhca-stat has no %s", name);
    }
    return value;
}

static void read_or_fail(struct hxt_stats *stats)
{
    if (!hxt_stats_read(stats)) {
        fail_msg("vhca-stat cannot be run, or shows nothing");
    }
}

uint64_t hxt_stat(const char *name)
{
    static struct hxt_stats stats;

    read_or_fail(&stats);
    return value_of(&stats, name);
}

static bool holds(const struct hxt_expect *expect, uint64_t value)
{
    switch (expect->rule) {
    case HXT_IS:
        return value == expect->value;
    case HXT_AT_LEAST:
        return value >= expect->value;
    case HXT_AT_MOST:
        return value <= expect->value;
    }
    return false;
}

void hxt_expect(const struct hxt_expect *expect, unsigned count)
{
    static const char *const words[] = {
        [HXT_IS]       = "",
        [HXT_AT_LEAST] = "at least ",
        [HXT_AT_MOST]  = "at most "
    };
    static const struct hxt_expect no_error = { "cqe.error", HXT_IS, 0 };
    static struct hxt_stats stats;
    const struct hxt_expect *this;
    unsigned i, bad = 0;
    uint64_t value;

    if (hxt_foreign()) {
        printf("another transport: the device's counters are not checked\n");
        return;
    }

    read_or_fail(&stats);
    for (i = 0; i <= count; i++) {
        this  = i < count ? &expect[i] : &no_error;
        value = value_of(&stats, this->name);
        if (!holds(this, value)) {
            printf("%s is %" PRIu64 ", expected %s%" PRIu64 "\n", this->name,
                   value, words[this->rule], this->value);
            bad++;
        }
    }
    if (bad > 0) {
        fail_msg("%u counter(s) are not as expected", bad);
    }
}
