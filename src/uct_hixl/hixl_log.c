/* SPDX-License-Identifier: BSD-3-Clause */

/* The device half's messages, in UCX's log. */

#include "hixl_log.h"

#include <mlx5/hx.h>
#include <ucs/debug/log.h>

static void uct_hixl_log_write(enum hx_log_level level, const char *file,
                               unsigned line, const char *func, const char *msg)
{
    static const ucs_log_level_t levels[] = {
        [HX_LOG_ERROR]  = UCS_LOG_LEVEL_ERROR,
        [HX_LOG_WARN]   = UCS_LOG_LEVEL_WARN,
        [HX_LOG_DEBUG]  = UCS_LOG_LEVEL_DEBUG,
        [HX_LOG_NOTICE] = UCS_LOG_LEVEL_WARN
    };
    ucs_log_level_t ucs_level = levels[level];

    if (ucs_log_is_enabled(ucs_level)) {
        ucs_log_dispatch(file, line, func, ucs_level,
                         &ucs_global_opts.log_component, "%s", msg);
    }
}

void uct_hixl_log_init(void)
{
    hx_log_set(uct_hixl_log_write);
}
