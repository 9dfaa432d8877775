/* SPDX-License-Identifier: BSD-3-Clause */

/* hixl_info: the environment, and what in it keeps the transport from being
 * used. */

#include "info.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Shown where they are set; names, or their beginnings with a star */
static const char *const shown[] = {
    "UCX_TLS", "UCX_NET_DEVICES", "UCX_HIXL_*", "UCX_PLUGIN_PATH",
    "UCX_RCACHE_MAX_REGIONS", "UCX_MEM_MMAP_HOOK_MODE", "UCX_PROTO_ENABLE",
    "UCX_LOG_LEVEL", "LD_PRELOAD", "LD_LIBRARY_PATH", "HIXL_*", "VHCA_*",
    "OMPI_MCA_pml", "OMPI_MCA_osc", "OMPI_MCA_btl",
    "OMPI_MCA_opal_common_ucx_*", "MPIR_CVAR_CH4_NETMOD"
};

bool info_list_has(const char *list, const char *name, const char *all)
{
    bool negated = *list == '^', has = false;
    size_t len;

    for (list += negated; *list != '\0'; list += len) {
        list += strspn(list, ", ");
        list += *list == '\\'; /* UCX: exactly this name */
        len   = strcspn(list, ", ");
        has   = has || ((len == strlen(name)) && !strncmp(list, name, len)) ||
                (!negated && (len == strlen(all)) && !strncmp(list, all, len));
    }
    return has != negated;
}

/* One of the ports, or a device as a whole, which UCX from 1.16 on takes */
static bool names_a_port(const char *list, const struct info_found *found)
{
    char dev[80];
    unsigned i;

    for (i = 0; i < found->num_ports; ++i) {
        snprintf(dev, sizeof(dev), "%.*s",
                 (int)strcspn(found->ports[i], ":"), found->ports[i]);
        if (info_list_has(list, found->ports[i], "all") &&
            ((*list != '^') || info_list_has(list, dev, "all"))) {
            return true;
        }
        if ((*list != '^') && info_list_has(list, dev, "all")) {
            return true;
        }
    }
    return false;
}

static const char *remark_ompi(const char *name, const char *value)
{
    if ((strcmp(name, "OMPI_MCA_pml") == 0) &&
        !info_list_has(value, "ucx", "")) {
        return "Open MPI does not use UCX for messages: set it to ucx";
    }
    if ((strcmp(name, "OMPI_MCA_osc") == 0) &&
        !info_list_has(value, "ucx", "")) {
        return "Open MPI does not use UCX for one-sided calls: set it to ucx";
    }
    if ((strcmp(name, "OMPI_MCA_opal_common_ucx_tls") == 0) &&
        !info_list_has(value, "hixl", "any")) {
        return "leaves hixl out, so Open MPI may not use UCX: set it to any";
    }
    return NULL;
}

/* What is wrong with a value for this transport; NULL: nothing */
static const char *remark(const char *name, const char *value,
                          const struct info_found *found)
{
    if ((strcmp(name, "UCX_TLS") == 0) &&
        !info_list_has(value, "hixl", "all")) {
        return "leaves hixl out";
    }
    if ((strcmp(name, "UCX_NET_DEVICES") == 0) && (found->num_ports > 0) &&
        !names_a_port(value, found)) {
        return "names none of the ports that hixl can use";
    }
    if ((strcmp(name, "UCX_HIXL_REG") == 0) && strcasecmp(value, "auto") &&
        strcasecmp(value, "umem") && strcasecmp(value, "mr")) {
        return "is none of auto, umem, mr: UCX refuses it";
    }
    return remark_ompi(name, value);
}

static bool is_shown(const char *name)
{
    size_t i, len;

    for (i = 0; i < sizeof(shown) / sizeof(shown[0]); ++i) {
        len = strlen(shown[i]);
        if ((shown[i][len - 1] == '*') ?
            (strncmp(name, shown[i], len - 1) == 0) :
            (strcmp(name, shown[i]) == 0)) {
            return true;
        }
    }
    return false;
}

static void show_variable(const char *at, const struct info_found *found)
{
    size_t len = strcspn(at, "=");
    const char *wrong;
    char name[128];

    if ((at[len] == '\0') || (len >= sizeof(name))) {
        return;
    }
    snprintf(name, sizeof(name), "%.*s", (int)len, at);
    if (!is_shown(name)) {
        return;
    }

    wrong = remark(name, at + len + 1, found);
    info_line(name, "%s%s%s%s", at + len + 1, (wrong != NULL) ? "  (" : "",
              (wrong != NULL) ? wrong : "", (wrong != NULL) ? ")" : "");
}

void info_environment(const struct info_proc *proc,
                      const struct info_found *found)
{
    const char *at;

    if (proc->pid == 0) {
        info_section(30, "environment");
    } else {
        info_section(30, "environment of process %d", (int)proc->pid);
    }

    info_line("emulated-device", "%s", (proc->vhca[0] != '\0') ? proc->vhca :
              "no");
    info_line("loader", "%s", (proc->load[0] != '\0') ? proc->load : "no");
    for (at = proc->env; at < proc->env + proc->env_len;
         at += strlen(at) + 1) {
        show_variable(at, found);
    }
    if (info_proc_env(proc, "OMPI_MCA_opal_common_ucx_tls") == NULL) {
        info_line("OMPI_MCA_opal_common_ucx_tls", "not set  (Open MPI: leaves"
                  " hixl out; set it to any, and _devices as well)");
    }
}
