/* SPDX-License-Identifier: BSD-3-Clause */

/* hixl_info: what the hixl transport finds on this machine, and if it cannot be
 * used, why not and what to do. UCX is not opened for it. */

#include "info.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: hixl_info [OPTION...]\n"
    "What the hixl transport finds here: RDMA devices and whether they can\n"
    "be used, limits, the environment, the installed UCX. Below hixl-run it\n"
    "shows what a command below hixl-run finds.\n"
    "\n"
    "  -p, --pid PID   limits and environment of that process\n"
    "  -v, --verbose   on stderr, also what is said while a device is tried\n"
    "  -h, --help      this text\n"
    "\n"
    "Exit status: 0 a device can be used, 1 none can (the last line says what\n"
    "to do next), 2 wrong options.\n";

static bool verbose;
static int key_width;

void info_section(int width, const char *fmt, ...)
{
    static bool again;
    va_list ap;

    if (again) {
        putchar('\n');
    }
    again     = true;
    key_width = width;

    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void info_line(const char *key, const char *fmt, ...)
{
    va_list ap;

    printf("  %-*s ", key_width, key);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

/* What a message means for the user is said in its place in the output, so the
 * messages themselves are for --verbose. */
static void log_write(enum hx_log_level level, const char *file, unsigned line,
                      const char *func, const char *msg)
{
    (void)level;
    (void)func;
    if (verbose) {
        fprintf(stderr, "%s:%u: %s\n", file, line, msg);
    }
}

static int parse_options(int argc, char **argv, pid_t *pid_p)
{
    static const struct option options[] = {
        {"pid", required_argument, NULL, 'p'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}
    };
    char *end;
    long pid;
    int c;

    while ((c = getopt_long(argc, argv, "p:vh", options, NULL)) != -1) {
        switch (c) {
        case 'p':
            pid = strtol(optarg, &end, 10);
            if ((pid <= 0) || (pid > INT32_MAX) || (*end != '\0')) {
                fprintf(stderr, "hixl_info: %s is not a process number\n",
                        optarg);
                return 2;
            }
            *pid_p = (pid_t)pid;
            break;
        case 'v':
            verbose = true;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs(usage, stderr);
            return 2;
        }
    }

    if (optind != argc) {
        fputs(usage, stderr);
        return 2;
    }

    return 0;
}

/* The last line is what to type next. */
static int show_result(const struct info_found *found)
{
    info_section(INFO_WIDTH, "result");
    info_line("usable-devices", "%u of %u", found->num_usable,
              found->num_devices);
    if (found->num_usable == 0) {
        info_line("why", "%s", found->first.why);
        info_line("next", "%s", found->first.todo);
        return 1;
    }

    if (found->loadable) {
        info_line("next", "UCX_TLS=hixl hixl-run PROGRAM, where PROGRAM uses"
                  " UCX; ucx_info -d shows the transport");
    } else {
        info_line("next", "%s", found->load_todo);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct info_found found = {0};
    struct info_proc proc;
    pid_t pid = 0;
    int ret;

    ret = parse_options(argc, argv, &pid);
    if (ret != 0) {
        return ret;
    }

    ret = info_proc_read(pid, &proc);
    if (ret != 0) {
        fprintf(stderr, "hixl_info: process %d cannot be read: %s\n", (int)pid,
                strerror(-ret));
        return 2;
    }

    hx_log_set(log_write);
    found.emulated = info_emulated();
    info_devices(&found);
    info_limits(&proc);
    info_environment(&proc, &found);
    info_ucx(&proc, &found);
    ret = show_result(&found);

    free(found.ports);
    info_proc_free(&proc);
    return ((fflush(stdout) != 0) || ferror(stdout)) ? 2 : ret;
}
