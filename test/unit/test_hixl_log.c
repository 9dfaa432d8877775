/* SPDX-License-Identifier: BSD-3-Clause */

/* The device half's messages: to UCX's log, or held for the caller. */

#include <uct_hixl/hixl_log.h>

#include <mlx5/hx.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <ucs/debug/log.h>

static struct {
    unsigned        count;
    ucs_log_level_t level;
    char            text[256];
} logged;

static ucs_log_func_rc_t
log_catch(const char *file, unsigned line, const char *function,
          ucs_log_level_t level, const ucs_log_component_config_t *config,
          const char *format, va_list ap)
{
    (void)file, (void)line, (void)function, (void)config;
    ++logged.count;
    logged.level = level;
    vsnprintf(logged.text, sizeof(logged.text), format, ap);
    return UCS_LOG_FUNC_RC_STOP;
}

static int setup(void **state)
{
    (void)state;
    memset(&logged, 0, sizeof(logged));
    return 0;
}

static void log_init__message__at_its_level_in_ucx_log(void **state)
{
    (void)state;
    hx_log(HX_LOG_ERROR, "%s: 100%% %u", "mlx5_0", 7);
    assert_int_equal(logged.count, 1);
    assert_int_equal(logged.level, UCS_LOG_LEVEL_ERROR);
    assert_string_equal(logged.text, "mlx5_0: 100% 7");

    hx_log(HX_LOG_WARN, "careful");
    assert_int_equal(logged.level, UCS_LOG_LEVEL_WARN);
    assert_int_equal(logged.count, 2);
}

static void *log_elsewhere(void *arg)
{
    hx_log(HX_LOG_ERROR, "%s", (const char*)arg);
    return NULL;
}

static void log_hold__messages__first_is_kept_and_none_logged(void **state)
{
    char other[] = "another thread's";
    struct hx_log_hold hold;
    pthread_t thread;
    char text[8];

    (void)state;
    hx_log_hold_begin(&hold, text, sizeof(text));
    assert_string_equal(text, "");
    hx_log(HX_LOG_ERROR, "the cause");
    hx_log(HX_LOG_ERROR, "what followed");
    assert_int_equal(logged.count, 0);

    /* Other threads' messages are not held */
    assert_int_equal(pthread_create(&thread, NULL, log_elsewhere, other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(logged.count, 1);
    assert_string_equal(logged.text, other);

    hx_log_hold_end(&hold);
    assert_string_equal(text, "the cau");

    hx_log(HX_LOG_ERROR, "after");
    assert_int_equal(logged.count, 2);
    assert_string_equal(logged.text, "after");
}

static void log_hold__inside_another__each_keeps_its_own(void **state)
{
    struct hx_log_hold outer, inner;
    char outer_text[32], inner_text[32];

    (void)state;
    hx_log_hold_begin(&outer, outer_text, sizeof(outer_text));
    hx_log_hold_begin(&inner, inner_text, sizeof(inner_text));
    hx_log(HX_LOG_WARN, "inside");
    hx_log_hold_end(&inner);
    assert_string_equal(inner_text, "inside");
    assert_string_equal(outer_text, "");

    hx_log(HX_LOG_ERROR, "outside");
    hx_log_hold_end(&outer);
    assert_string_equal(inner_text, "inside");
    assert_string_equal(outer_text, "outside");
    assert_int_equal(logged.count, 0);
}

static void log_hold__notice__logged_all_the_same(void **state)
{
    struct hx_log_hold hold;
    char text[8];

    (void)state;
    hx_log_hold_begin(&hold, text, sizeof(text));
    hx_log(HX_LOG_NOTICE, "so it is");
    hx_log_hold_end(&hold);
    assert_string_equal(text, "");
    assert_int_equal(logged.count, 1);
    assert_int_equal(logged.level, UCS_LOG_LEVEL_WARN);
    assert_string_equal(logged.text, "so it is");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(log_init__message__at_its_level_in_ucx_log,
                               setup),
        cmocka_unit_test_setup(
                log_hold__messages__first_is_kept_and_none_logged, setup),
        cmocka_unit_test_setup(log_hold__inside_another__each_keeps_its_own,
                               setup),
        cmocka_unit_test_setup(log_hold__notice__logged_all_the_same, setup),
    };
    int ret;

    ucs_log_push_handler(log_catch);
    uct_hixl_log_init();
    ret = cmocka_run_group_tests_name("hixl_log", tests, NULL, NULL);
    hx_log_set(NULL);
    ucs_log_pop_handler();
    return ret;
}
