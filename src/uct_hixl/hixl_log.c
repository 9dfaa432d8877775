/* SPDX-License-Identifier: BSD-3-Clause */

/* The device half's messages, in UCX's log or kept for a message of our own. */

#include "hixl_log.h"

#include <mlx5/hx.h>
#include <ucs/debug/log.h>
#include <ucs/sys/string.h>

static __thread struct {
    char  *buf;
    size_t size;
} uct_hixl_log_hold;

static void uct_hixl_log_write(enum hx_log_level level, const char *file,
                               unsigned line, const char *func, const char *msg)
{
    static const ucs_log_level_t levels[] = {
        [HX_LOG_ERROR] = UCS_LOG_LEVEL_ERROR,
        [HX_LOG_WARN]  = UCS_LOG_LEVEL_WARN,
        [HX_LOG_DEBUG] = UCS_LOG_LEVEL_DEBUG
    };
    ucs_log_level_t ucs_level = levels[level];

    if ((uct_hixl_log_hold.buf != NULL) && (level != HX_LOG_DEBUG)) {
        if (uct_hixl_log_hold.buf[0] == '\0') {
            ucs_strncpy_zero(uct_hixl_log_hold.buf, msg,
                             uct_hixl_log_hold.size);
        }
        ucs_level = UCS_LOG_LEVEL_DEBUG;
    }

    if (ucs_log_is_enabled(ucs_level)) {
        ucs_log_dispatch(file, line, func, ucs_level,
                         &ucs_global_opts.log_component, "%s", msg);
    }
}

void uct_hixl_log_init(void)
{
    hx_log_set(uct_hixl_log_write);
}

void uct_hixl_log_hold_begin(char *buf, size_t size)
{
    buf[0]                 = '\0';
    uct_hixl_log_hold.buf  = buf;
    uct_hixl_log_hold.size = size;
}

void uct_hixl_log_hold_end(void)
{
    uct_hixl_log_hold.buf = NULL;
}
