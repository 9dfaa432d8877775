/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * VHCA_TRACE: what the device was told and what it answered, one line each,
 * for a person to read. trace.c writes lines, trace_cmd.c decodes firmware
 * commands, trace_wqe.c work queue elements and error completions.
 */

#ifndef VHCA_TRACE_H_
#define VHCA_TRACE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VHCA_TRACE_LINE 8192   /* a line is never longer */

struct vhca_trace {
    size_t len;
    char   line[VHCA_TRACE_LINE];
};

/** Opens the file that VHCA_TRACE names; nothing if it names none. 0, or a
 *  negative errno, said on stderr. */
int  vhca_trace_open(void);
bool vhca_tracing(void);

/** A line: time, process and thread, then what is added, then its write. */
void vhca_trace_begin(struct vhca_trace *trace, const char *what);
void vhca_trace_add(struct vhca_trace *trace, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
void vhca_trace_end(struct vhca_trace *trace);

struct vhca_cmd;
struct vhca_uobj;

/** A firmware command and its verdict. `name` as the PRM names it, `in` the
 *  name of the input's structure; NULL: the device has no such command. */
void vhca_trace_cmd(const struct vhca_cmd *cmd, const char *name,
                    const char *in, bool ok);
/** Of the destruction only what is destroyed is known: the kernel makes it. */
void vhca_trace_destroy(const struct vhca_uobj *obj, bool ok);

#endif
