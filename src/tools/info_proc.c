/* SPDX-License-Identifier: BSD-3-Clause */

/* hixl_info: a process, its limits and how much of each it uses, from /proc. */

#include "info.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#define CAP_IPC_LOCK_BIT 14

/* Less than this is soon used up by queues and receive buffers */
#define MEMLOCK_LOW (64ull << 20)

static FILE *proc_file(pid_t pid, const char *name)
{
    char path[64];

    if (pid == 0) {
        snprintf(path, sizeof(path), "/proc/self/%s", name);
    } else {
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    }
    return fopen(path, "re");
}

static int proc_read_env(struct info_proc *proc)
{
    size_t size = 0, got;
    FILE *file;
    char *env;

    file = proc_file(proc->pid, "environ");
    if (file == NULL) {
        return -errno;
    }

    do {
        env = realloc(proc->env, size + 4096 + 1);
        if (env == NULL) {
            fclose(file);
            return -ENOMEM;
        }
        proc->env = env;
        got       = fread(env + size, 1, 4096, file);
        size     += got;
    } while (got > 0);

    proc->env[size] = '\0';
    proc->env_len   = size;
    fclose(file);
    return 0;
}

/* Keeps the path if its file has this name, a version behind it or not */
static void maps_keep(char *path, size_t size, const char *found,
                      const char *name)
{
    const char *slash = strrchr(found, '/');

    if ((path[0] == '\0') && (slash != NULL) &&
        (strncmp(slash + 1, name, strlen(name)) == 0)) {
        snprintf(path, size, "%s", found);
    }
}

static int proc_read_maps(struct info_proc *proc)
{
    char *line  = NULL;
    size_t size = 0;
    char *path;
    FILE *file;

    file = proc_file(proc->pid, "maps");
    if (file == NULL) {
        return -errno;
    }

    while (getline(&line, &size, file) > 0) {
        ++proc->num_maps;
        line[strcspn(line, "\n")] = '\0';
        path = strchr(line, '/');
        if (path != NULL) {
            maps_keep(proc->vhca, sizeof(proc->vhca), path, "libvhca.so");
            maps_keep(proc->load, sizeof(proc->load), path,
                      "libhixl_load.so");
            maps_keep(proc->transport, sizeof(proc->transport), path,
                      "libuct_hixl.so");
        }
    }
    free(line);
    fclose(file);
    return 0;
}

int info_proc_read(pid_t pid, struct info_proc *proc)
{
    int ret;

    memset(proc, 0, sizeof(*proc));
    proc->pid = pid;

    ret = proc_read_env(proc);
    if (ret == 0) {
        ret = proc_read_maps(proc);
    }
    if (ret != 0) {
        info_proc_free(proc);
    }
    return ret;
}

void info_proc_free(struct info_proc *proc)
{
    free(proc->env);
}

bool info_emulated(void)
{
    struct info_proc self = {0};

    return (proc_read_maps(&self) == 0) && (self.vhca[0] != '\0');
}

const char *info_proc_env(const struct info_proc *proc, const char *name)
{
    size_t len = strlen(name);
    const char *at;

    for (at = proc->env; at < proc->env + proc->env_len;
         at += strlen(at) + 1) {
        if ((strncmp(at, name, len) == 0) && (at[len] == '=')) {
            return at + len + 1;
        }
    }
    return NULL;
}

/* ---- limits ---- */

const char *info_size(uint64_t bytes, char *buf, size_t size)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = bytes;
    unsigned i   = 0;

    while ((value >= 1024) && (i < 4)) {
        value /= 1024;
        ++i;
    }
    snprintf(buf, size, ((i == 0) || (value == (uint64_t)value)) ?
             "%.0f %s" : "%.1f %s", value, units[i]);
    return buf;
}

/* "Name:  number" of a file of such lines; base 10 or 16; else `none` */
static uint64_t file_number(FILE *file, const char *name, int base,
                            uint64_t none)
{
    size_t len = strlen(name);
    char line[256];

    if (file == NULL) {
        return none;
    }
    rewind(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if ((strncmp(line, name, len) == 0) && (line[len] == ':')) {
            return strtoull(line + len + 1, NULL, base);
        }
    }
    return none;
}

/* The soft limit, UINT64_MAX: none */
static uint64_t proc_limit(pid_t pid, int resource)
{
    struct rlimit limit;

    if ((prlimit(pid, resource, NULL, &limit) != 0) ||
        (limit.rlim_cur == RLIM_INFINITY)) {
        return UINT64_MAX;
    }
    return limit.rlim_cur;
}

static bool proc_may_lock(pid_t pid)
{
    FILE *file = proc_file(pid, "status");
    uint64_t caps;

    caps = file_number(file, "CapEff", 16, 0);
    if (file != NULL) {
        fclose(file);
    }
    return (caps >> CAP_IPC_LOCK_BIT) & 1;
}

uint64_t info_memlock(void)
{
    return proc_may_lock(0) ? UINT64_MAX : proc_limit(0, RLIMIT_MEMLOCK);
}

static void show_memlock(const struct info_proc *proc)
{
    uint64_t limit = proc_limit(proc->pid, RLIMIT_MEMLOCK);
    bool may_lock  = proc_may_lock(proc->pid);
    char text[32], used[32];
    const char *hint = "";
    uint64_t kib;
    FILE *file;

    file = proc_file(proc->pid, "status");
    kib  = file_number(file, "VmLck", 10, 0) +
           file_number(file, "VmPin", 10, 0);
    if (file != NULL) {
        fclose(file);
    }

    if (limit == UINT64_MAX) {
        snprintf(text, sizeof(text), "unlimited");
    } else {
        info_size(limit, text, sizeof(text));
        if (may_lock) {
            hint = "; does not count for this process (CAP_IPC_LOCK)";
        } else if (limit < MEMLOCK_LOW) {
            hint = "; LOW: registered memory counts, type: ulimit -l unlimited";
        }
    }
    info_line("locked-memory", "%s (RLIMIT_MEMLOCK), %s used%s", text,
              info_size(kib * 1024, used, sizeof(used)), hint);
}

static void show_files(const struct info_proc *proc)
{
    uint64_t limit = proc_limit(proc->pid, RLIMIT_NOFILE);
    unsigned used  = 0;
    struct dirent *ent;
    char path[64];
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)proc->pid);
    dir = opendir((proc->pid == 0) ? "/proc/self/fd" : path);
    if (dir != NULL) {
        while ((ent = readdir(dir)) != NULL) {
            used += ent->d_name[0] != '.';
        }
        closedir(dir);
        used -= proc->pid == 0; /* the directory itself */
    }

    info_line("open-files", "%llu (RLIMIT_NOFILE), %u used; a link takes one"
              " at either end%s", (unsigned long long)limit, used,
              (used + 64 > limit) ? "; LOW, raise it: ulimit -n" : "");
}

static void show_maps(const struct info_proc *proc)
{
    FILE *file    = fopen("/proc/sys/vm/max_map_count", "re");
    unsigned most = 0;

    if (file != NULL) {
        if (fscanf(file, "%u", &most) != 1) {
            most = 0;
        }
        fclose(file);
    }
    info_line("mappings", "%u (vm.max_map_count), %u used%s", most,
              proc->num_maps, (proc->num_maps > most / 10 * 9) ?
              "; LOW, raise it: sysctl vm.max_map_count" : "");
}

/* The transport's own registered memory; it does without them as well */
static void show_huge_pages(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char size[32];

    info_line("huge-pages", "%llu of %s, %llu free",
              (unsigned long long)file_number(file, "HugePages_Total", 10, 0),
              info_size(file_number(file, "Hugepagesize", 10, 0) * 1024, size,
                        sizeof(size)),
              (unsigned long long)file_number(file, "HugePages_Free", 10, 0));
    if (file != NULL) {
        fclose(file);
    }
}

static const char *setting(const struct info_proc *proc, const char *name,
                           const char *by_default, const char **how_p)
{
    const char *value = info_proc_env(proc, name);

    *how_p = (value != NULL) ? "set" : "the default";
    return (value != NULL) ? value : by_default;
}

static void show_budget(const struct info_proc *proc)
{
    FILE *file = fopen("/proc/meminfo", "re");
    const char *value, *how;
    unsigned long regs;
    char size[32];
    char *end;

    value = setting(proc, "UCX_HIXL_MAX_REGS", "256", &how);
    regs  = strtoul(value, &end, 10);
    if ((*end != '\0') || (regs < 1) || (regs > 4096)) {
        info_line("registrations", "WRONG: UCX_HIXL_MAX_REGS=%s is not in"
                  " 1..4096; the transport refuses it", value);
    } else {
        info_line("registrations", "%lu a process (UCX_HIXL_MAX_REGS, %s)%s",
                  regs, how, (proc->vhca[0] != '\0') ?
                  "; used: vhca-stat --procs shows mkey_remote" : "");
    }

    value = setting(proc, "UCX_HIXL_MAX_HOST_MEM", "1t", &how);
    info_line("registered-memory", "%s a process (UCX_HIXL_MAX_HOST_MEM, %s);"
              " this host has %s", value, how,
              info_size(file_number(file, "MemTotal", 10, 0) * 1024, size,
                        sizeof(size)));
    if (file != NULL) {
        fclose(file);
    }
}

void info_limits(const struct info_proc *proc)
{
    if (proc->pid == 0) {
        info_section(INFO_WIDTH, "limits");
    } else {
        info_section(INFO_WIDTH, "limits of process %d", (int)proc->pid);
    }
    show_budget(proc);
    show_memlock(proc);
    show_files(proc);
    show_maps(proc);
    show_huge_pages();
}
