/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages of the device half. */

#include "hx.h"

#include <stdarg.h>
#include <stdio.h>

static hx_log_fn log_fn;

void hx_log_set(hx_log_fn fn)
{
    log_fn = fn;
}

void hx_log_write(enum hx_log_level level, const char *file, unsigned line,
                  const char *func, const char *fmt, ...)
{
    char msg[512];
    va_list ap;

    if ((log_fn == NULL) && (level == HX_LOG_DEBUG)) {
        return;
    }

    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);

    if (log_fn != NULL) {
        log_fn(level, file, line, func, msg);
    } else {
        fprintf(stderr, "hixl %s: %s\n",
                (level == HX_LOG_ERROR) ? "error" : "warning", msg);
    }
}
