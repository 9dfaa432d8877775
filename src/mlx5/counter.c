/* SPDX-License-Identifier: BSD-3-Clause */

/* Named counters, in the emulated device's table where there is one. */

#include "hx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct counter {
    struct counter *next;
    uint64_t       *cell;
    uint64_t        own;
    char            name[];
};

typedef uint64_t *(*counter_fn)(const char *name);

static pthread_mutex_t counter_lock = PTHREAD_MUTEX_INITIALIZER;
static struct counter *counters;
static bool            counter_looked_up;
static counter_fn      counter_device;

/* For names that no memory was left for: counted, and never shown */
static uint64_t counter_lost;

static struct counter *counter_find(const char *name)
{
    struct counter *counter;

    for (counter = counters; counter != NULL; counter = counter->next) {
        if (strcmp(counter->name, name) == 0) {
            break;
        }
    }

    return counter;
}

static struct counter *counter_add(const char *name)
{
    size_t len = strlen(name) + 1;
    struct counter *counter;

    if (!counter_looked_up) {
        union {
            void      *sym;
            counter_fn fn;
        } u = {.sym = dlsym(RTLD_DEFAULT, "vhca_counter")};

        counter_device    = u.fn;
        counter_looked_up = true;
    }

    counter = calloc(1, sizeof(*counter) + len);
    if (counter == NULL) {
        return NULL;
    }

    memcpy(counter->name, name, len);
    counter->cell = (counter_device != NULL) ? counter_device(name) : NULL;
    if (counter->cell == NULL) {
        counter->cell = &counter->own;
    }

    counter->next = counters;
    counters      = counter;
    return counter;
}

uint64_t *hx_counter(const char *name)
{
    struct counter *counter;
    uint64_t *cell;

    pthread_mutex_lock(&counter_lock);
    counter = counter_find(name);
    if (counter == NULL) {
        counter = counter_add(name);
    }
    cell = (counter != NULL) ? counter->cell : &counter_lost;
    pthread_mutex_unlock(&counter_lock);

    return cell;
}
