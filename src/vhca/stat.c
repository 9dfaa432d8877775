/* SPDX-License-Identifier: BSD-3-Clause */

/* What vhca-stat shows: gauges with their high-water marks, and named cells. */

#include <ctype.h>

#include "doorbell.h"
#include "nic.h"

#define EXPORT __attribute__((visibility("default")))

static void raise_to(_Atomic int64_t *mark, int64_t value)
{
    int64_t seen = atomic_load_explicit(mark, memory_order_relaxed);

    while ((seen < value) &&
           !atomic_compare_exchange_weak(mark, &seen, value)) {
    }
}

void nic_gauge_add(enum nic_gauge gauge, int64_t delta)
{
    struct nic_gauge_cell *cell = &NIC_FAB->hdr.gauge[gauge];

    raise_to(&cell->max, atomic_fetch_add(&cell->now, delta) + delta);
    raise_to(&cell->max_per_proc,
             atomic_fetch_add(&nic_self.proc->gauge[gauge], delta) + delta);
}

/* The cell of a name, made if there is none. Names of a process that died
 * while it wrote one are passed over. */
static struct nic_cell *cell_of(const char *prefix, const char *name)
{
    char full[NIC_CELL_NAME];
    uint32_t hash = 2166136261u, i, state;
    struct nic_cell *cell;
    const char *at;

    if ((size_t)snprintf(full, sizeof(full), "%s%s", prefix, name) >=
        sizeof(full)) {
        return NULL;
    }
    for (at = full; *at != '\0'; ++at) {
        if (!isalnum((unsigned char)*at) && (strchr("._-", *at) == NULL)) {
            return NULL;
        }
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    }

    for (i = 0; i < NIC_CELLS; ++i) {
        cell  = &NIC_FAB->hdr.cell[(hash + i) % NIC_CELLS];
        state = 0;
        if (atomic_compare_exchange_strong(&cell->state, &state, 1)) {
            strcpy(cell->name, full);
            atomic_store(&cell->state, 2);
            return cell;
        }
        if ((state == 2) && (strcmp(cell->name, full) == 0)) {
            return cell;
        }
    }

    return NULL;
}

void vhca_stat_add(const char *name, int64_t delta)
{
    static const char *const gauges[NIC_GAUGES] = { NIC_GAUGE_NAMES };
    struct nic_cell *cell;
    unsigned i;

    if (NIC_FAB == NULL) {
        return;
    }

    for (i = 0; i < NIC_GAUGES; ++i) {
        if (strcmp(gauges[i], name) == 0) {
            nic_gauge_add(i, delta);
            return;
        }
    }

    cell = cell_of("", name);
    if (cell != NULL) {
        __atomic_fetch_add(&cell->value, delta, __ATOMIC_RELAXED);
    }
}

EXPORT uint64_t *vhca_counter(const char *name)
{
    struct nic_cell *cell;

    if (vhca_fabric_attach() != 0) {
        return NULL;
    }

    cell = cell_of("sw.", name);
    return (cell == NULL) ? NULL : &cell->value;
}
