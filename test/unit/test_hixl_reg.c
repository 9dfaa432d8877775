/* SPDX-License-Identifier: BSD-3-Clause */

/* The registration budget over a device whose keys are counted here. */

#include <uct_hixl/hixl_budget.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

#define ACCESS_RMA   ((uint64_t)UCT_MD_MEM_ACCESS_RMA)
#define ACCESS_HIDE  (ACCESS_RMA | UCT_MD_MEM_FLAG_HIDE_ERRORS)
#define BASE         0x100000000ul
#define LEN          0x10000ul
#define NUM_KEYS     65536
#define TIB          (1ul << 40)

/* ---- the device ---- */

typedef struct fake_key {
    volatile int live;
    uintptr_t    start;
    size_t       length;
    uint32_t     access;
} fake_key_t;

static struct {
    pthread_mutex_t lock;
    fake_key_t      keys[NUM_KEYS];
    uint32_t        next;
    unsigned        live;
    unsigned        max_live;
    unsigned        created;
    unsigned        capacity;  /* more keys: ENOSPC */
    int             fail;      /* errno of every creation; 0: none fails */
    void          (*on_create)(void);
} fake = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};

static int fake_create(struct hx_dev *dev, void *addr, size_t len,
                       uint32_t access, struct hx_mkey *mkey_p)
{
    fake_key_t *key;
    int ret = 0;

    (void)dev;
    if (fake.on_create != NULL) {
        fake.on_create();
    }

    pthread_mutex_lock(&fake.lock);
    if ((fake.fail != 0) || (fake.live >= fake.capacity)) {
        ret = (fake.fail != 0) ? -fake.fail : -ENOSPC;
        goto out;
    }

    do {
        fake.next = (fake.next + 1) % NUM_KEYS;
        key       = &fake.keys[fake.next];
    } while (key->live);

    key->start  = (uintptr_t)addr;
    key->length = len;
    key->access = access;
    __atomic_store_n(&key->live, 1, __ATOMIC_RELEASE);
    memset(mkey_p, 0, sizeof(*mkey_p));
    mkey_p->key = fake.next;

    ++fake.created;
    ++fake.live;
    fake.max_live = ucs_max(fake.max_live, fake.live);

out:
    pthread_mutex_unlock(&fake.lock);
    return ret;
}

static void fake_destroy(struct hx_mkey *mkey)
{
    pthread_mutex_lock(&fake.lock);
    if (!fake.keys[mkey->key].live) {
        fprintf(stderr, "key %u destroyed twice\n", mkey->key);
        abort();
    }
    __atomic_store_n(&fake.keys[mkey->key].live, 0, __ATOMIC_RELEASE);
    --fake.live;
    pthread_mutex_unlock(&fake.lock);
}

/* Whether a key is good for a range just now */
static int fake_key_covers(uint32_t key, const uct_hixl_mem_t *mem)
{
    const fake_key_t *k = &fake.keys[key];

    return __atomic_load_n(&k->live, __ATOMIC_ACQUIRE) &&
           (k->start <= (uintptr_t)mem->address) &&
           (k->start + k->length >= (uintptr_t)mem->address + mem->length);
}

static const uct_hixl_reg_ops_t fake_ops = {
    .create  = fake_create,
    .destroy = fake_destroy
};

/* ---- what is logged ---- */

static struct {
    unsigned errors, warnings, quiet;
    char     last[1024];       /* of any of these */
} logged;

static ucs_log_func_rc_t
log_catch(const char *file, unsigned line, const char *function,
          ucs_log_level_t level, const ucs_log_component_config_t *config,
          const char *format, va_list ap)
{
    (void)file, (void)line, (void)function, (void)config;
    if (level > UCS_LOG_LEVEL_DIAG) {
        return UCS_LOG_FUNC_RC_STOP;
    }

    logged.errors   += (level <= UCS_LOG_LEVEL_ERROR);
    logged.warnings += (level == UCS_LOG_LEVEL_WARN);
    logged.quiet    += (level == UCS_LOG_LEVEL_DIAG);
    vsnprintf(logged.last, sizeof(logged.last), format, ap);
    return UCS_LOG_FUNC_RC_STOP;
}

static void assert_logged(const char *text)
{
    if (strstr(logged.last, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, logged.last);
    }
}

/* ---- a domain ---- */

typedef struct fixture {
    struct hx_dev dev;
    uct_hixl_md_t md;
} fixture_t;

static fixture_t fix;

static void open_domain(unsigned max_regs, size_t max_host_mem)
{
    const uct_hixl_md_config_t config = {
        .max_regs     = max_regs,
        .max_host_mem = max_host_mem
    };

    memset(&fix, 0, sizeof(fix));
    strcpy(fix.dev.name, "mlx5_0");
    fix.dev.caps.atomic = true;
    fix.md.dev          = &fix.dev;

    assert_int_equal(uct_hixl_budget.num_mds, 0); /* else: an earlier test */
    fake.max_live  = 0;
    fake.created   = 0;
    fake.capacity  = UINT_MAX;
    fake.fail      = 0;
    fake.on_create = NULL;
    memset(&logged, 0, sizeof(logged));

    assert_int_equal(uct_hixl_reg_open(&fix.md, &config), UCS_OK);
}

static void close_domain(void)
{
    uct_hixl_reg_close(&fix.md);
    assert_int_equal(fake.live, 0);
}

static uct_hixl_mem_t *reg_at(uintptr_t start, size_t length, uint64_t flags)
{
    uct_hixl_mem_t *mem;

    assert_int_equal(uct_hixl_mem_reg(&fix.md, (void*)start, length, flags,
                                      &mem),
                     UCS_OK);
    return mem;
}

/* The nth of ranges that do not touch */
static uct_hixl_mem_t *reg_nth(unsigned n)
{
    return reg_at(BASE + n * 2 * LEN, LEN, ACCESS_RMA);
}

static void use(uct_hixl_mem_t *mem)
{
    uct_hixl_region_t *region = uct_hixl_mem_pin(mem);

    assert_non_null(region);
    assert_true(fake_key_covers(region->key, mem));
    uct_hixl_region_unpin(region);
}

static unsigned print_seed(void)
{
    const char *env = getenv("HIXL_TEST_SEED");
    unsigned seed   = (env != NULL) ? (unsigned)strtoul(env, NULL, 0) :
                                      (unsigned)time(NULL);

    print_message("seed %u (HIXL_TEST_SEED)\n", seed);
    return seed;
}

/* ---- tests ---- */

static void mem_pin__10000_mems_at_random__keys_within_limit(void **state)
{
    enum { NUM = 10000, HELD = 200, STEPS = 100000 };
    uct_hixl_region_t *held[HELD] = {NULL};
    unsigned seed                 = print_seed();
    uct_hixl_mem_t **mems         = calloc(NUM, sizeof(*mems));
    uct_hixl_mem_t *held_mem[HELD];
    unsigned i, slot;

    (void)state;
    assert_non_null(mems);
    open_domain(256, TIB);
    for (i = 0; i < NUM; ++i) {
        mems[i] = reg_nth(i);
    }

    for (i = 0; i < STEPS; ++i) {
        slot = rand_r(&seed) % HELD;
        if (held[slot] != NULL) {
            assert_true(fake_key_covers(held[slot]->key, held_mem[slot]));
            uct_hixl_region_unpin(held[slot]);
        }

        held_mem[slot] = mems[rand_r(&seed) % NUM];
        held[slot]     = uct_hixl_mem_pin(held_mem[slot]);
        assert_non_null(held[slot]); /* 200 held: one of 256 is always idle */
        assert_true(fake_key_covers(held[slot]->key, held_mem[slot]));
    }

    assert_int_equal(fake.max_live, 256);
    assert_int_equal(fake.live, 256);
    assert_int_equal(*hx_counter("hixl.regions_max"), 256);

    for (slot = 0; slot < HELD; ++slot) {
        if (held[slot] != NULL) {
            uct_hixl_region_unpin(held[slot]);
        }
    }
    for (i = 0; i < NUM; ++i) {
        uct_hixl_mem_dereg(mems[i]);
    }
    assert_int_equal(fake.live, 0);
    close_domain();
    free(mems);
}

static void mem_pin__all_places_pinned__null_until_unpin(void **state)
{
    uct_hixl_region_t *regions[2];
    uct_hixl_mem_t *mems[3];
    unsigned i;

    (void)state;
    open_domain(2, TIB);
    for (i = 0; i < 3; ++i) {
        mems[i] = reg_nth(i);
    }
    for (i = 0; i < 2; ++i) {
        regions[i] = uct_hixl_mem_pin(mems[i]);
        assert_non_null(regions[i]);
    }

    assert_null(uct_hixl_mem_pin(mems[2]));
    assert_int_equal(fake.max_live, 2);

    uct_hixl_region_unpin(regions[1]);
    use(mems[2]);
    assert_null(mems[1]->region);
    assert_true(fake_key_covers(regions[0]->key, mems[0]));

    uct_hixl_region_unpin(regions[0]);
    for (i = 0; i < 3; ++i) {
        uct_hixl_mem_dereg(mems[i]);
    }
    close_domain();
}

/* As a thread does that read mem->region before the region went */
static void late_pin(void)
{
    uint32_t pins = __atomic_fetch_add(&uct_hixl_budget.slots[0].super.pins, 1,
                                       __ATOMIC_ACQUIRE);

    assert_true(pins & UCT_HIXL_REGION_GONE);
}

static void mem_pin__late_pin_of_reused_region__can_be_taken_back(void **state)
{
    uct_hixl_mem_t *a, *b;

    (void)state;
    open_domain(1, TIB);
    a = reg_nth(0);

    fake.on_create = late_pin;
    b              = reg_nth(1);
    fake.on_create = NULL;
    assert_null(a->region);
    assert_non_null(b->region);

    /* Looks busy for the moment, no more */
    assert_null(uct_hixl_mem_pin(a));
    use(b);
    uct_hixl_region_unpin(b->region);
    assert_int_equal(b->region->pins, 0);
    use(a);

    uct_hixl_mem_dereg(a);
    uct_hixl_mem_dereg(b);
    close_domain();
}

static void mem_expose__at_limits__one_more_fails_and_says_why(void **state)
{
    static const unsigned limits[] = {1, 8, 256};
    uct_hixl_mem_t *mems[257];
    uint32_t keys[257];
    char text[64];
    unsigned i, l, n;

    (void)state;
    for (l = 0; l < sizeof(limits) / sizeof(limits[0]); ++l) {
        n = limits[l];
        open_domain(n, TIB);
        for (i = 0; i <= n; ++i) {
            mems[i] = reg_nth(i);
        }

        for (i = 0; i < n; ++i) {
            assert_int_equal(uct_hixl_mem_expose(mems[i], &keys[i]), UCS_OK);
        }
        assert_int_equal(logged.errors, 0);

        keys[n] = 0xdead;
        assert_int_equal(uct_hixl_mem_expose(mems[n], &keys[n]),
                         UCS_ERR_EXCEEDS_LIMIT);
        assert_int_equal(keys[n], 0xdead);
        assert_int_equal(logged.errors, 1);
        snprintf(text, sizeof(text), "(UCX_HIXL_MAX_REGS=%u)", n);
        assert_logged(text);
        snprintf(text, sizeof(text), "%u are exposed", n);
        assert_logged(text);
        assert_logged("set UCX_HIXL_MAX_REGS higher");

        /* Every key that was given out still holds, and packs again alike */
        for (i = 0; i < n; ++i) {
            assert_true(fake_key_covers(keys[i], mems[i]));
            assert_int_equal(uct_hixl_mem_expose(mems[i], &keys[n]), UCS_OK);
            assert_int_equal(keys[n], keys[i]);
        }

        /* A local operation does not fail: it has no region */
        assert_null(uct_hixl_mem_pin(mems[n]));

        uct_hixl_mem_dereg(mems[0]);
        assert_int_equal(uct_hixl_mem_expose(mems[n], &keys[n]), UCS_OK);
        assert_int_equal(fake.max_live, n);
        for (i = 1; i <= n; ++i) {
            uct_hixl_mem_dereg(mems[i]);
        }
        close_domain();
    }
}

static void mem_reg__same_range__one_key_until_last_dereg(void **state)
{
    uct_hixl_mem_t *a, *b, *other_access;
    uint32_t key_a, key_b;

    (void)state;
    open_domain(8, TIB);
    a = reg_nth(0);
    b = reg_nth(0);
    assert_int_equal(fake.created, 1);
    assert_ptr_equal(a->region, b->region);

    assert_int_equal(uct_hixl_mem_expose(a, &key_a), UCS_OK);
    assert_int_equal(uct_hixl_mem_expose(b, &key_b), UCS_OK);
    assert_int_equal(key_a, key_b);
    assert_int_equal(uct_hixl_budget.num_exposed, 1);

    uct_hixl_mem_dereg(a);
    assert_int_equal(uct_hixl_budget.num_exposed, 1);
    assert_true(fake_key_covers(key_b, b));

    /* A key of fewer rights is another key */
    other_access = reg_at(BASE, LEN, UCT_MD_MEM_ACCESS_REMOTE_GET);
    assert_int_equal(uct_hixl_mem_expose(other_access, &key_a), UCS_OK);
    assert_int_not_equal(key_a, key_b);
    assert_int_equal(fake.keys[key_a].access, IBV_ACCESS_REMOTE_READ);
    uct_hixl_mem_dereg(other_access);

    uct_hixl_mem_dereg(b);
    assert_int_equal(fake.live, 0);
    assert_int_equal(uct_hixl_budget.host_mem, 0);
    close_domain();
}

static void mem_reg__range_inside_another__region_of_its_own(void **state)
{
    uct_hixl_mem_t *whole, *part;
    uint32_t key;

    (void)state;
    open_domain(8, TIB);
    whole = reg_at(BASE, LEN, ACCESS_RMA);
    part  = reg_at(BASE + 100, LEN - 100, ACCESS_RMA);
    assert_ptr_not_equal(part->region, whole->region);

    /* What a peer gets has the bounds that were registered */
    assert_int_equal(uct_hixl_mem_expose(part, &key), UCS_OK);
    assert_int_equal(fake.keys[key].start, BASE + 100);
    assert_int_equal(fake.keys[key].length, LEN - 100);

    uct_hixl_mem_dereg(whole);
    assert_true(fake_key_covers(key, part));
    uct_hixl_mem_dereg(part);
    assert_int_equal(fake.live, 0);
    close_domain();
}

static void budget_give_up__one_region_in_use__others_go_first(void **state)
{
    enum { PLACES = 4, NUM = 40 };
    uct_hixl_mem_t *hot, *mems[NUM];
    uct_hixl_region_t *region;
    unsigned i, lost;

    (void)state;
    open_domain(PLACES, TIB);
    hot  = reg_at(BASE - 2 * LEN, LEN, ACCESS_RMA);
    lost = 0;
    for (i = 0; i < NUM; ++i) {
        use(hot);
        region  = hot->region;
        mems[i] = reg_nth(i);
        lost   += (hot->region != region);
    }

    /* Used between any two others, which are not: the clock finds those */
    assert_int_equal(lost, 0);
    assert_int_equal(fake.live, PLACES);

    for (i = 0; i < NUM; ++i) {
        uct_hixl_mem_dereg(mems[i]);
    }
    uct_hixl_mem_dereg(hot);
    close_domain();
}

static void mem_reg__hide_errors_over_limit__quiet_failure(void **state)
{
    uint64_t unbound = *hx_counter("hixl.unbound_regs");
    uct_hixl_mem_t *a, *b, *again, *mem = NULL;
    uint32_t key;

    (void)state;
    open_domain(2, TIB);
    a = reg_at(BASE, LEN, ACCESS_HIDE);
    b = reg_at(BASE + LEN, LEN, ACCESS_HIDE);
    assert_int_equal(uct_hixl_mem_reg(&fix.md, (void*)(BASE + 2 * LEN), LEN,
                                      ACCESS_HIDE, &mem),
                     UCS_ERR_EXCEEDS_LIMIT);
    assert_null(mem);
    assert_int_equal(logged.errors + logged.warnings, 0);
    assert_int_equal(uct_hixl_budget.host_mem, 2 * LEN);

    /* The exposure of the same range is shared */
    again = reg_at(BASE, LEN, ACCESS_HIDE);
    uct_hixl_mem_dereg(again);

    mem = reg_at(BASE + 2 * LEN, LEN, ACCESS_RMA);
    assert_null(mem->region);
    assert_null(uct_hixl_mem_pin(mem));
    assert_int_equal(*hx_counter("hixl.unbound_regs"), unbound + 1);
    assert_int_equal(logged.errors + logged.warnings, 0);

    /* What was reserved is there, whatever happens to the device */
    fake.fail = EIO;
    assert_int_equal(uct_hixl_mem_expose(a, &key), UCS_OK);
    assert_true(fake_key_covers(key, a));
    fake.fail = 0;

    uct_hixl_mem_dereg(b);
    use(mem);
    uct_hixl_mem_dereg(a);
    uct_hixl_mem_dereg(mem);
    close_domain();
}

static void mem_reg__over_max_host_mem__error_names_limit(void **state)
{
    uct_hixl_mem_t *a, *same, *mem = NULL;

    (void)state;
    open_domain(8, 3 * LEN);
    a    = reg_at(BASE, 2 * LEN, ACCESS_RMA);
    same = reg_at(BASE, 2 * LEN, ACCESS_RMA);
    assert_int_equal(uct_hixl_mem_reg(&fix.md, (void*)(BASE + 8 * LEN), LEN + 1,
                                      ACCESS_RMA, &mem),
                     UCS_ERR_EXCEEDS_LIMIT);
    assert_null(mem);
    assert_int_equal(logged.errors, 1);
    assert_logged("65537 bytes");
    assert_logged("131072 of at most 196608 bytes");
    assert_logged("UCX_HIXL_MAX_HOST_MEM");

    mem = reg_at(BASE + 8 * LEN, LEN, ACCESS_RMA);
    uct_hixl_mem_dereg(mem);
    uct_hixl_mem_dereg(a);
    uct_hixl_mem_dereg(same);
    mem = reg_at(BASE + 8 * LEN, 3 * LEN, ACCESS_RMA);
    uct_hixl_mem_dereg(mem);
    close_domain();
}

static void mem_reg__bad_arguments__refused(void **state)
{
    uct_hixl_mem_t *mem = NULL;

    (void)state;
    open_domain(8, TIB);
    assert_int_equal(uct_hixl_mem_reg(&fix.md, NULL, 1, ACCESS_RMA, &mem),
                     UCS_ERR_INVALID_PARAM);
    assert_int_equal(uct_hixl_mem_reg(&fix.md, (void*)BASE, 0, ACCESS_RMA,
                                      &mem),
                     UCS_ERR_INVALID_PARAM);
    assert_int_equal(uct_hixl_mem_reg(&fix.md, (void*)BASE, SIZE_MAX,
                                      ACCESS_RMA, &mem),
                     UCS_ERR_INVALID_PARAM);
    assert_null(mem);
    assert_int_equal(logged.errors, 3);
    close_domain();
}

static void mem_reg__memory_not_there__clean_error(void **state)
{
    uct_hixl_mem_t *mem = NULL;

    (void)state;
    open_domain(8, TIB);
    fake.fail = EFAULT;
    assert_int_equal(uct_hixl_mem_reg(&fix.md, (void*)BASE, LEN, ACCESS_RMA,
                                      &mem),
                     UCS_ERR_INVALID_ADDR);
    assert_int_equal(logged.errors, 1);
    assert_logged("not mapped, or not writable");

    assert_int_equal(uct_hixl_mem_reg(&fix.md, (void*)BASE, LEN, ACCESS_HIDE,
                                      &mem),
                     UCS_ERR_INVALID_ADDR);
    assert_int_equal(logged.errors, 1);
    assert_null(mem);
    assert_int_equal(uct_hixl_budget.host_mem, 0);
    assert_int_equal(uct_hixl_budget.num_free, 8);
    close_domain();
}

static void mem_reg__device_full__idle_regions_make_room(void **state)
{
    uct_hixl_mem_t *mems[6];
    uint32_t key;
    unsigned i;

    (void)state;
    open_domain(256, TIB);
    fake.capacity = 4;
    for (i = 0; i < 6; ++i) {
        mems[i] = reg_nth(i);
        assert_non_null(mems[i]->region);
    }
    assert_int_equal(fake.live, 4);
    assert_int_equal(logged.errors + logged.warnings, 0);

    for (i = 0; i < 4; ++i) {
        assert_int_equal(uct_hixl_mem_expose(mems[i], &key), UCS_OK);
    }
    assert_int_equal(uct_hixl_mem_expose(mems[4], &key), UCS_ERR_NO_RESOURCE);
    assert_int_equal(logged.errors, 1);
    assert_logged(strerror(ENOSPC));
    assert_null(uct_hixl_mem_pin(mems[5]));

    for (i = 0; i < 6; ++i) {
        uct_hixl_mem_dereg(mems[i]);
    }
    close_domain();
}

static void mem_reg__device_out_of_memory__unbound_and_cause_named(void **state)
{
    struct rlimit saved, limit;
    uct_hixl_mem_t *mem;
    uint32_t key;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &saved), 0);
    limit          = saved;
    limit.rlim_cur = ucs_min(saved.rlim_max, 65536);
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);

    open_domain(8, TIB);
    fake.fail = ENOMEM;
    mem       = reg_nth(0);
    assert_null(mem->region);
    assert_int_equal(logged.errors, 0);
    assert_null(uct_hixl_mem_pin(mem));

    assert_int_equal(uct_hixl_mem_expose(mem, &key), UCS_ERR_NO_RESOURCE);
    assert_int_equal(logged.errors, 1);
    assert_logged("RLIMIT_MEMLOCK, which is 64 KiB");

    fake.fail = 0;
    use(mem);
    uct_hixl_mem_dereg(mem);
    close_domain();
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &saved), 0);
}

static void mem_dereg__operation_in_flight__key_outlives_it(void **state)
{
    uct_hixl_mem_t *mem, *same, *other;
    uct_hixl_region_t *region;
    unsigned created;
    uint32_t key;

    (void)state;
    open_domain(1, TIB);
    mem    = reg_nth(0);
    other  = reg_nth(1);
    region = uct_hixl_mem_pin(mem);
    assert_non_null(region);
    key     = region->key;
    created = fake.created;
    uct_hixl_mem_dereg(mem);

    /* It has the place, and nobody new gets its key */
    same = reg_nth(0);
    assert_null(same->region);
    assert_null(uct_hixl_mem_pin(other));
    assert_int_equal(region->key, key);
    assert_int_equal(fake.created, created);
    assert_true(fake.keys[key].live);

    uct_hixl_region_unpin(region);
    use(other);
    assert_false(fake.keys[key].live);
    assert_int_equal(fake.live, 1);
    use(same);
    uct_hixl_mem_dereg(same);
    uct_hixl_mem_dereg(other);
    assert_int_equal(fake.live, 0);
    close_domain();
}

/* ---- keys that are taken back ---- */

static unsigned dead_calls;

static void on_dead(uct_completion_t *comp)
{
    assert_int_equal(comp->status, UCS_OK);
    ++dead_calls;
}

static uct_completion_t *dead_comp(void)
{
    static uct_completion_t comp;

    comp.func   = on_dead;
    comp.count  = 1;
    comp.status = UCS_OK;
    dead_calls  = 0;
    return &comp;
}

static void mem_invalidate__alone__key_dead_at_once_and_nobody_joins(
        void **state)
{
    uct_hixl_mem_t *mem, *later;
    uint32_t key, again;

    (void)state;
    open_domain(8, TIB);
    mem = reg_nth(0);
    assert_int_equal(uct_hixl_mem_expose_own(mem, &key), UCS_OK);
    assert_int_equal(uct_hixl_mem_expose_own(mem, &again), UCS_OK);
    assert_int_equal(key, again);
    assert_int_equal(fake.live, 1); /* it needs no second one */
    later = reg_nth(0);
    use(later);
    assert_int_equal(fake.live, 2);

    uct_hixl_mem_invalidate(mem, dead_comp());
    assert_int_equal(dead_calls, 1);
    assert_false(fake.keys[key].live);
    use(later);
    assert_int_equal(fake.live, 1);
    uct_hixl_mem_dereg(later);
    assert_int_equal(uct_hixl_budget.host_mem, 0);
    assert_int_equal(uct_hixl_budget.num_exposed, 0);
    close_domain();
}

static void mem_invalidate__shared_and_exposed__others_keep_their_key(
        void **state)
{
    uct_hixl_mem_t *mem, *other;
    uint32_t key, other_key;

    (void)state;
    open_domain(8, TIB);
    other = reg_nth(0);
    mem   = reg_at(BASE, LEN, ACCESS_HIDE);
    assert_int_equal(uct_hixl_mem_expose(other, &other_key), UCS_OK);
    assert_int_equal(uct_hixl_mem_expose_own(mem, &key), UCS_OK);
    assert_int_not_equal(key, other_key);
    assert_true(fake_key_covers(key, mem));
    assert_int_equal(uct_hixl_budget.host_mem, LEN);
    assert_int_equal(uct_hixl_budget.num_exposed, 2);

    uct_hixl_mem_invalidate(mem, dead_comp());
    assert_int_equal(dead_calls, 1);
    assert_false(fake.keys[key].live);
    assert_true(fake_key_covers(other_key, other));
    use(other);
    assert_int_equal(uct_hixl_budget.num_exposed, 1);

    /* deregistered in the usual way it goes as well */
    mem = reg_nth(0);
    assert_int_equal(uct_hixl_mem_expose_own(mem, &key), UCS_OK);
    uct_hixl_mem_dereg(mem);
    assert_false(fake.keys[key].live);
    uct_hixl_mem_dereg(other);
    assert_int_equal(uct_hixl_budget.host_mem, 0);
    close_domain();
}

static void mem_invalidate__shared_without_place__ends_with_the_last_exposure(
        void **state)
{
    uct_hixl_mem_t *mem, *other;
    uint32_t key, other_key;

    (void)state;
    open_domain(1, TIB);
    other = reg_nth(0);
    mem   = reg_nth(0);

    /* the others have not exposed it: they get another */
    assert_int_equal(uct_hixl_mem_expose(mem, &other_key), UCS_OK);
    assert_int_equal(uct_hixl_mem_expose_own(mem, &key), UCS_OK);
    assert_int_equal(key, other_key);
    uct_hixl_mem_invalidate(mem, dead_comp());
    assert_int_equal(dead_calls, 1);
    assert_false(fake.keys[key].live);
    use(other);

    mem = reg_nth(0);
    assert_int_equal(uct_hixl_mem_expose(other, &other_key), UCS_OK);
    assert_int_equal(uct_hixl_mem_expose_own(mem, &key), UCS_OK);
    assert_int_equal(key, other_key);
    uct_hixl_mem_invalidate(mem, dead_comp());
    assert_int_equal(dead_calls, 0);
    assert_true(fake_key_covers(other_key, other));
    uct_hixl_mem_dereg(other);
    assert_int_equal(dead_calls, 1);
    assert_int_equal(fake.live, 0);
    close_domain();
}

static void mem_invalidate__operation_in_flight__told_when_it_is_done(
        void **state)
{
    uct_hixl_region_t *region;
    uct_hixl_mem_t *mem;
    uint32_t key;

    (void)state;
    open_domain(4, TIB);
    mem = reg_nth(0);
    assert_int_equal(uct_hixl_mem_expose_own(mem, &key), UCS_OK);
    region = uct_hixl_mem_pin(mem);
    assert_non_null(region);
    uct_hixl_mem_invalidate(mem, dead_comp());
    assert_int_equal(dead_calls, 0);
    assert_true(fake.keys[key].live);
    uct_hixl_region_unpin(region);
    uct_hixl_mem_dereg(reg_nth(1));
    assert_int_equal(dead_calls, 1);
    assert_int_equal(fake.live, 0);
    close_domain();
}

static void mem_invalidate__never_given_out__told_at_once(void **state)
{
    uct_hixl_mem_t *mem, *other;

    (void)state;
    open_domain(4, TIB);
    mem   = reg_nth(0);
    other = reg_nth(0);
    uct_hixl_mem_invalidate(mem, dead_comp());
    assert_int_equal(dead_calls, 1);
    use(other);
    assert_int_equal(fake.created, 1);
    uct_hixl_mem_dereg(other);
    close_domain();
}

static void reg_open__second_domain__shares_the_limit(void **state)
{
    uct_hixl_md_config_t config = {
        .max_regs = 8, .max_host_mem = TIB
    };
    struct hx_dev dev           = {.name = "mlx5_1"};
    uct_hixl_md_t md            = {.dev = &dev};
    uct_hixl_mem_t *a, *b;
    uint32_t key;

    (void)state;
    open_domain(1, TIB);
    assert_int_equal(uct_hixl_reg_open(&md, &config), UCS_OK);
    assert_int_equal(logged.warnings, 1);
    assert_logged("UCX_HIXL_MAX_REGS=8 is ignored");

    a = reg_nth(0);
    assert_int_equal(uct_hixl_mem_reg(&md, (void*)BASE, LEN, ACCESS_RMA, &b),
                     UCS_OK);
    assert_int_equal(fake.max_live, 1);
    assert_int_equal(uct_hixl_mem_expose(a, &key), UCS_OK);
    assert_int_equal(uct_hixl_mem_expose(b, &key), UCS_ERR_EXCEEDS_LIMIT);
    uct_hixl_mem_dereg(b);
    uct_hixl_reg_close(&md);
    uct_hixl_mem_dereg(a);
    close_domain();

    config.max_regs = 0;
    assert_int_equal(uct_hixl_reg_open(&md, &config), UCS_ERR_INVALID_PARAM);
    config.max_regs = 4097;
    assert_int_equal(uct_hixl_reg_open(&md, &config), UCS_ERR_INVALID_PARAM);
    assert_logged("UCX_HIXL_MAX_REGS=4097 is not in 1..4096");
}

/* ---- threads ---- */

enum {
    STRESS_THREADS = 6,
    STRESS_SHARED  = 64,
    STRESS_STEPS   = 30000
};

static uct_hixl_mem_t *stress_mems[STRESS_SHARED];
static unsigned stress_bounced, stress_pinned, stress_exposed;

typedef struct stress_thread {
    pthread_t thread;
    unsigned  seed;
    unsigned  index;
    unsigned  errors;
} stress_thread_t;

/* The key is good for as long as the pin is held */
static void stress_pin(stress_thread_t *t, uct_hixl_mem_t *mem)
{
    uct_hixl_region_t *region = uct_hixl_mem_pin(mem);
    unsigned i, spin;

    if (region == NULL) {
        __atomic_fetch_add(&stress_bounced, 1, __ATOMIC_RELAXED);
        return;
    }

    __atomic_fetch_add(&stress_pinned, 1, __ATOMIC_RELAXED);
    spin = rand_r(&t->seed) % 50;
    for (i = 0; i <= spin; ++i) {
        t->errors += !fake_key_covers(region->key, mem);
    }
    if (rand_r(&t->seed) % 8 == 0) {
        sched_yield();
        t->errors += !fake_key_covers(region->key, mem);
    }
    uct_hixl_region_unpin(region);
}

static void stress_register(stress_thread_t *t)
{
    uintptr_t start = BASE + (rand_r(&t->seed) % 32) * LEN;
    uint64_t flags  = (rand_r(&t->seed) % 4) ? ACCESS_RMA : ACCESS_HIDE;
    uct_hixl_mem_t *mem;
    ucs_status_t status;
    uint32_t key;

    status = uct_hixl_mem_reg(&fix.md, (void*)start, LEN, flags, &mem);
    if (status != UCS_OK) {
        t->errors += (status != UCS_ERR_EXCEEDS_LIMIT) ||
                     (flags != ACCESS_HIDE);
        return;
    }

    if ((flags == ACCESS_HIDE) || (rand_r(&t->seed) % 4 == 0)) {
        status = uct_hixl_mem_expose(mem, &key);
        if (status == UCS_OK) {
            __atomic_fetch_add(&stress_exposed, 1, __ATOMIC_RELAXED);
            t->errors += !fake_key_covers(key, mem);
            t->errors += (fake.keys[key].length != LEN);
        } else {
            t->errors += (status != UCS_ERR_EXCEEDS_LIMIT) ||
                         (flags == ACCESS_HIDE);
        }
    }

    stress_pin(t, mem);
    uct_hixl_mem_dereg(mem);
}

static void *stress_run(void *arg)
{
    stress_thread_t *t = arg;
    unsigned i;

    for (i = 0; i < STRESS_STEPS; ++i) {
        if (rand_r(&t->seed) % 8 == 0) {
            stress_register(t);
        } else {
            stress_pin(t, stress_mems[rand_r(&t->seed) % STRESS_SHARED]);
        }
    }

    return NULL;
}

static void stress(unsigned max_regs)
{
    stress_thread_t threads[STRESS_THREADS];
    unsigned seed = print_seed();
    unsigned i;

    open_domain(max_regs, TIB);
    stress_bounced = stress_pinned = stress_exposed = 0;
    for (i = 0; i < STRESS_SHARED; ++i) {
        /* Half of them are of ranges that threads come and go with */
        stress_mems[i] = reg_at(BASE + i * LEN, LEN, ACCESS_RMA);
    }

    for (i = 0; i < STRESS_THREADS; ++i) {
        threads[i].seed   = seed + i;
        threads[i].index  = i;
        threads[i].errors = 0;
        assert_int_equal(pthread_create(&threads[i].thread, NULL, stress_run,
                                        &threads[i]),
                         0);
    }
    for (i = 0; i < STRESS_THREADS; ++i) {
        assert_int_equal(pthread_join(threads[i].thread, NULL), 0);
        assert_int_equal(threads[i].errors, 0);
    }

    print_message("%u places: %u pinned, %u without a region, %u exposed, %u "
                  "keys made\n", max_regs, stress_pinned, stress_bounced,
                  stress_exposed, fake.created);
    assert_true(fake.max_live <= max_regs);
    assert_true(stress_pinned > 0);
    assert_true(stress_exposed > 0);

    /* No pin was lost or left over: all places can be had again */
    for (i = 0; i < STRESS_SHARED; ++i) {
        use(stress_mems[i]);
        uct_hixl_mem_dereg(stress_mems[i]);
    }
    for (i = 0; i < max_regs; ++i) {
        assert_int_equal(uct_hixl_budget.slots[i].super.pins &
                         ~UCT_HIXL_REGION_GONE, 0);
    }
    assert_int_equal(uct_hixl_budget.num_exposed, 0);
    assert_int_equal(uct_hixl_budget.host_mem, 0);
    close_domain();
}

static void mem_pin__threads_few_places__keys_hold_while_pinned(void **state)
{
    (void)state;
    stress(1);
    stress(3);
}

static void mem_pin__threads_more_places__keys_hold_while_pinned(void **state)
{
    (void)state;
    stress(8);
    stress(80);
}

static int setup(void **state)
{
    (void)state;
    ucs_log_push_handler(log_catch);
    uct_hixl_reg_set_ops(&fake_ops);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    uct_hixl_reg_set_ops(NULL);
    ucs_log_pop_handler();
    return 0;
}

int main(int argc, char **argv)
{
#ifdef __SANITIZE_THREAD__
    /* UCX's default hooks, patched into libc's code, crash under it */
    if (getenv("UCX_MEM_MMAP_HOOK_MODE") == NULL) {
        setenv("UCX_MEM_MMAP_HOOK_MODE", "reloc", 1);
        execv("/proc/self/exe", argv);
    }
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mem_pin__10000_mems_at_random__keys_within_limit),
        cmocka_unit_test(mem_pin__all_places_pinned__null_until_unpin),
        cmocka_unit_test(
                mem_pin__late_pin_of_reused_region__can_be_taken_back),
        cmocka_unit_test(mem_expose__at_limits__one_more_fails_and_says_why),
        cmocka_unit_test(mem_reg__same_range__one_key_until_last_dereg),
        cmocka_unit_test(mem_reg__range_inside_another__region_of_its_own),
        cmocka_unit_test(budget_give_up__one_region_in_use__others_go_first),
        cmocka_unit_test(
                mem_reg__hide_errors_over_limit__quiet_failure),
        cmocka_unit_test(mem_reg__over_max_host_mem__error_names_limit),
        cmocka_unit_test(mem_reg__bad_arguments__refused),
        cmocka_unit_test(mem_reg__memory_not_there__clean_error),
        cmocka_unit_test(mem_reg__device_full__idle_regions_make_room),
        cmocka_unit_test(
                mem_reg__device_out_of_memory__unbound_and_cause_named),
        cmocka_unit_test(mem_dereg__operation_in_flight__key_outlives_it),
        cmocka_unit_test(
                mem_invalidate__alone__key_dead_at_once_and_nobody_joins),
        cmocka_unit_test(
                mem_invalidate__shared_and_exposed__others_keep_their_key),
        cmocka_unit_test(
           mem_invalidate__shared_without_place__ends_with_the_last_exposure),
        cmocka_unit_test(
                mem_invalidate__operation_in_flight__told_when_it_is_done),
        cmocka_unit_test(mem_invalidate__never_given_out__told_at_once),
        cmocka_unit_test(reg_open__second_domain__shares_the_limit),
        cmocka_unit_test(
                mem_pin__threads_few_places__keys_hold_while_pinned),
        cmocka_unit_test(
                mem_pin__threads_more_places__keys_hold_while_pinned),
    };

    (void)argc;
    (void)argv;
    return cmocka_run_group_tests_name("hixl_reg", tests, setup, teardown);
}
