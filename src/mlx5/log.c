/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages of the device half. */

#include "hx.h"

#include <stdarg.h>
#include <stdio.h>

static hx_log_fn log_fn;
static __thread struct hx_log_hold *log_hold;

void hx_log_set(hx_log_fn fn)
{
    log_fn = fn;
}

void hx_log_hold_begin(struct hx_log_hold *hold, char *buf, size_t size)
{
    buf[0]      = '\0';
    hold->buf   = buf;
    hold->size  = size;
    hold->outer = log_hold;
    log_hold    = hold;
}

void hx_log_hold_end(struct hx_log_hold *hold)
{
    log_hold = hold->outer;
}

/* Keeps a message back if this thread asked for it; its level then */
static enum hx_log_level log_level_held(enum hx_log_level level,
                                        const char *msg)
{
    if ((log_hold == NULL) ||
        ((level != HX_LOG_ERROR) && (level != HX_LOG_WARN))) {
        return level;
    }

    if (log_hold->buf[0] == '\0') {
        snprintf(log_hold->buf, log_hold->size, "%s", msg);
    }

    return HX_LOG_DEBUG;
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

    level = log_level_held(level, msg);
    if (log_fn != NULL) {
        log_fn(level, file, line, func, msg);
    } else if (level != HX_LOG_DEBUG) {
        fprintf(stderr, "hixl %s: %s\n",
                (level == HX_LOG_ERROR) ? "error" : "warning", msg);
    }
}
