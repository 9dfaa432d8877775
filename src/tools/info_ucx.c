/* SPDX-License-Identifier: BSD-3-Clause */

/* hixl_info: the installed UCX, and whether it would find the transport. The
 * library is loaded and asked for its version, UCX is not opened. */

#include "info.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The first that finds transports by UCX_PLUGIN_PATH; see src/load/load.c */
#define UCX_PLUGIN_MINOR 22

#define TRANSPORT "libuct_hixl.so.0"

typedef void (*get_version_t)(unsigned *major, unsigned *minor,
                              unsigned *release);

/* Shows it; false: there is none */
static bool ucx_version(unsigned *major_p, unsigned *minor_p)
{
    get_version_t get_version = NULL;
    unsigned release;
    void *libucp;
    Dl_info info;

    libucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL);
    if (libucp == NULL) {
        info_line("version", "none: %s", dlerror());
        return false;
    }

    get_version = (get_version_t)dlsym(libucp, "ucp_get_version");
    if (get_version == NULL) {
        info_line("version", "unknown: libucp.so.0 has no ucp_get_version");
        return false;
    }

    get_version(major_p, minor_p, &release);
    info_line("version", "%u.%u.%u (%s)", *major_p, *minor_p, release,
              (dladdr((void*)get_version, &info) != 0) ? info.dli_fname :
                                                         "libucp.so.0");
    return true;
}

/* As the loader finds it */
static bool loader_transport(const struct info_proc *proc, char *path,
                             size_t size)
{
    const char *env = info_proc_env(proc, "HIXL_TRANSPORT");

    if (env != NULL) {
        snprintf(path, size, "%s", env);
    } else {
        snprintf(path, size, "%.*s/ucx-hixl/" TRANSPORT,
                 (int)(strrchr(proc->load, '/') - proc->load), proc->load);
    }
    return access(path, R_OK) == 0;
}

/* As UCX finds it: in one of the directories */
static bool plugin_transport(const struct info_proc *proc, char *path,
                             size_t size)
{
    const char *dirs = info_proc_env(proc, "UCX_PLUGIN_PATH");
    size_t len;

    if (dirs == NULL) {
        return false;
    }
    for (; *dirs != '\0'; dirs += len + (dirs[len] == ':')) {
        len = strcspn(dirs, ":");
        snprintf(path, size, "%.*s/" TRANSPORT, (int)len, dirs);
        if (access(path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

static void not_loadable(struct info_found *found, const char *why,
                         const char *todo)
{
    info_line("transport", "would not be loaded: %s", why);
    snprintf(found->load_todo, sizeof(found->load_todo), "%s", todo);
}

static void show_transport(const struct info_proc *proc, unsigned major,
                           unsigned minor, struct info_found *found)
{
    char path[PATH_MAX] = "", why[PATH_MAX + 64];
    bool plugin         = (major > 1) || (minor >= UCX_PLUGIN_MINOR);

    if ((major != HX_UCX_MAJOR) || (minor != HX_UCX_MINOR)) {
        not_loadable(found, "it was built for another version",
                     "build ucx-hixl again, for the UCX that is installed:"
                     " contrib/ucx-headers, configure, make");
    } else if (!plugin && (proc->load[0] == '\0')) {
        not_loadable(found, "libhixl_load.so is not preloaded",
                     "hixl-run hixl_info");
    } else if (plugin && !plugin_transport(proc, path, sizeof(path))) {
        not_loadable(found, "UCX_PLUGIN_PATH does not lead to it",
                     "hixl-run hixl_info");
    } else if (!plugin && !loader_transport(proc, path, sizeof(path))) {
        snprintf(why, sizeof(why), "%s cannot be read", path);
        not_loadable(found, why, "install ucx-hixl again, and unset"
                     " HIXL_TRANSPORT");
    } else {
        info_line("transport", "%s %s",
                  (proc->transport[0] != '\0') ? "is loaded:" :
                                                 "would be loaded:",
                  (proc->transport[0] != '\0') ? proc->transport : path);
        found->loadable = true;
    }
}

void info_ucx(const struct info_proc *proc, struct info_found *found)
{
    unsigned major, minor;

    info_section(INFO_WIDTH, "ucx");
    snprintf(found->load_todo, sizeof(found->load_todo),
             "install UCX (Debian: libucx0)");
    if (!ucx_version(&major, &minor)) {
        return;
    }

    info_line("built-for", "%d.%d", HX_UCX_MAJOR, HX_UCX_MINOR);
    show_transport(proc, major, minor, found);
}
