/* SPDX-License-Identifier: BSD-3-Clause */

/* hixl_info, inside: who is looked at, what is said of it, what is found. */

#ifndef HIXL_INFO_H_
#define HIXL_INFO_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <mlx5/hx.h>

#define INFO_TEXT  768
#define INFO_WIDTH 18

/* Why something is not usable, and what the user can do; "" if it is */
struct info_why {
    char why[INFO_TEXT];
    char todo[INFO_TEXT];
};

/* What is known in the end */
struct info_found {
    bool            emulated;     /* libvhca is here */
    unsigned        num_devices;
    unsigned        num_usable;
    struct info_why first;        /* of the first device that is not usable */
    char          (*ports)[80];   /* "mlx5_0:1" of the usable ones */
    unsigned        num_ports;
    bool            loadable;     /* UCX would find the transport */
    char            load_todo[INFO_TEXT];
};

/* A process: this one, or the one that --pid names */
struct info_proc {
    pid_t    pid;                 /* 0: this one */
    char    *env;                 /* strings that end with NUL, one by one */
    size_t   env_len;
    unsigned num_maps;
    char     vhca[256];           /* paths of what is mapped, or "" */
    char     load[256];
    char     transport[256];
};

/* ---- hixl_info.c: output ---- */

/** width: of the keys that follow. */
void info_section(int width, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/** A key and its value; keys stay what they are, values are for reading. */
void info_line(const char *key, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));

/* ---- info_why.c: causes and remedies, by what failed ---- */

void info_why_not_mlx5(struct info_why *why, uint32_t vendor);
/** Opening the device as verbs programs do; node: of /dev/infiniband;
 *  emulated: what is there is libvhca's. */
void info_why_open(struct info_why *why, const char *node, bool emulated,
                   int err);
/** Opening it with DevX, after opening it without succeeded. */
void info_why_devx(struct info_why *why, int err);
void info_why_missing(struct info_why *why, uint32_t part, const char *missing);
void info_why_no_port(struct info_why *why, bool roce, const char *state);
void info_why_umem_keys(struct info_why *why, const char *reason);
/** A call of the device half: its message, and what it returned. memlock is
 *  the limit in bytes, UINT64_MAX if there is none. */
void info_why_call(struct info_why *why, const char *what, const char *msg,
                   int ret, uint64_t memlock);
/** The kernel has it, libibverbs does not list it; node: one is there. */
void info_why_unlisted(struct info_why *why, bool node);
/** There is no device at all; pci: of the vendor, without a driver. */
void info_why_none(struct info_why *why, bool pci);

/** NULL: not known. Those below ConnectX-5 are said to be too old. */
const char *info_part_name(uint32_t part);
bool info_part_is_old(uint32_t part);

/* ---- info_dev.c, info_port.c ---- */

void info_devices(struct info_found *found);
/** Shows the ports; the first that can be used in *port_p, else false and
 *  why. */
bool info_ports(struct ibv_context *ibv, struct hx_dev *dev, unsigned num_ports,
                struct hx_port *port_p, struct info_found *found,
                struct info_why *why);

/* ---- info_proc.c, info_env.c, info_ucx.c ---- */

/** 0 or a negative errno. */
int info_proc_read(pid_t pid, struct info_proc *proc);
void info_proc_free(struct info_proc *proc);
/** Whether this process has the emulated device. */
bool info_emulated(void);
/** NULL: not set. */
const char *info_proc_env(const struct info_proc *proc, const char *name);
void info_limits(const struct info_proc *proc);
/** RLIMIT_MEMLOCK of this process as it counts: UINT64_MAX if there is none or
 *  the process may lock what it wants. */
uint64_t info_memlock(void);
/** "12.3 GiB" */
const char *info_size(uint64_t bytes, char *buf, size_t size);

void info_environment(const struct info_proc *proc,
                      const struct info_found *found);
/** Whether a list as UCX and Open MPI take it, "a,b" or "^a,b", has the name;
 *  all: what stands for every name. */
bool info_list_has(const char *list, const char *name, const char *all);

void info_ucx(const struct info_proc *proc, struct info_found *found);

#endif
