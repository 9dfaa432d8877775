/* SPDX-License-Identifier: BSD-3-Clause */

/* hixl_info: devices. Each is opened the way the transport opens it, and its
 * queues and a key are made, so that "usable" is something that was tried. */

#include "info.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mlx5/caps.h>

#define SYSFS_CLASS "/sys/class/infiniband"

/* A device while it is looked at. What is NULL could not be opened. */
struct look {
    struct ibv_device     *ibv_dev;
    const char            *name;
    char                   node[300];
    struct ibv_context    *ibv;      /* as verbs programs open it */
    struct ibv_device_attr attr;
    struct hx_dev         *dev;      /* as the transport does */
    struct info_why        why;
};

static const char *yes_no(bool yes)
{
    return yes ? "yes" : "no";
}

/* ---- capabilities ---- */

static void show_atomics(const struct hx_caps *caps)
{
    static const char *const names[] = {
        "compare-swap", "fetch-add", "masked-compare-swap", "masked-fetch-add"
    };
    char text[160] = "";
    size_t len = 0;
    unsigned bit;

    if (!caps->atomic) {
        info_line("cap-atomics", "none");
        return;
    }

    for (bit = 0; bit < 4; ++bit) {
        if (caps->atomic_operations & (1u << bit)) {
            len += snprintf(text + len, sizeof(text) - len, " %s", names[bit]);
        }
    }
    info_line("cap-atomics", "%s%s%s of%s", (caps->atomic_size_qp & 4) ?
              "4 " : "", (caps->atomic_size_qp & 8) ? "8 " : "", "bytes",
              (len > 0) ? text : " no kind");
}

static void show_caps(const struct hx_caps *caps)
{
    info_line("cap-contexts", "2^%u (log_max_uctx)", caps->log_max_uctx);
    info_line("cap-umems", "2^%u (log_max_umem)", caps->log_max_umem);
    info_line("cap-receive-pools", "2^%u (log_max_rmp)", caps->log_max_rmp);
    info_line("cap-send-queue", "2^%u blocks of 64 bytes, work requests of"
              " %u bytes", caps->log_max_qp_sz, caps->max_wqe_sz_sq);
    info_line("cap-completions", "2^%u in a queue, version %u",
              caps->log_max_cq_sz, caps->cqe_version);
    info_line("cap-message", "2^%u bytes", caps->log_max_msg);
    info_line("cap-reads", "%u sent, %u answered at a time by a queue pair",
              1u << caps->log_max_ra_req_qp, 1u << caps->log_max_ra_res_qp);
    show_atomics(caps);
    info_line("cap-relaxed-order", "write %s, read %s",
              yes_no(caps->relaxed_ordering_write),
              yes_no(caps->relaxed_ordering_read));
    if (caps->roce) {
        info_line("cap-roce-ports", "UDP %u to %u",
                  caps->r_roce_min_src_udp_port, caps->r_roce_max_src_udp_port);
    }
}

/* ---- opening ---- */

static void look_not_mlx5(struct look *look)
{
    info_why_not_mlx5(&look->why, (look->ibv != NULL) ? look->attr.vendor_id :
                                                        0);
}

/* Opened as verbs programs do, libmlx5 goes on without DevX: so the two tell
 * apart what stops everybody and what stops DevX. */
static void look_open_verbs(struct look *look, bool emulated)
{
    const char *part;

    look->ibv = ibv_open_device(look->ibv_dev);
    if (look->ibv == NULL) {
        info_why_open(&look->why, look->node, emulated, errno);
        return;
    }

    if (ibv_query_device(look->ibv, &look->attr) != 0) {
        memset(&look->attr, 0, sizeof(look->attr));
        return;
    }

    part = info_part_name(look->attr.vendor_part_id);
    info_line("part", "vendor 0x%04x, part %u%s%s%s", look->attr.vendor_id,
              look->attr.vendor_part_id, (part != NULL) ? " (" : "",
              (part != NULL) ? part : "", (part != NULL) ? ")" : "");
    info_line("firmware", "%s", look->attr.fw_ver);
}

/* What the device can do is shown also where that is too little. */
static void look_caps(struct look *look)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    struct hx_log_hold hold;
    struct ibv_context *ibv;
    const char *missing;
    struct hx_caps caps;
    char text[256];
    int ret;

    ibv = mlx5dv_open_device(look->ibv_dev, &attr);
    if (ibv == NULL) {
        info_why_devx(&look->why, errno);
        return;
    }

    hx_log_hold_begin(&hold, text, sizeof(text));
    ret = hx_caps_query(ibv, &caps, HX_LOG_ERROR);
    hx_log_hold_end(&hold);
    if (ret != 0) {
        info_why_call(&look->why, "it does not tell what it can do", text, ret,
                      info_memlock());
    } else {
        show_caps(&caps);
        missing = hx_caps_missing(&caps);
        if (missing != NULL) {
            info_why_missing(&look->why, look->attr.vendor_part_id, missing);
        }
    }

    ibv_close_device(ibv);
}

static void look_open(struct look *look)
{
    struct hx_log_hold hold;
    char text[256];
    int ret;

    hx_log_hold_begin(&hold, text, sizeof(text));
    ret = hx_dev_open(look->name, &look->dev);
    hx_log_hold_end(&hold);
    if (ret != 0) {
        look->dev = NULL;
        info_why_call(&look->why, "it does not open", text, ret,
                      info_memlock());
    }
}

/* ---- registering, and what else an interface makes ---- */

static enum hx_reg_mode wanted_reg_mode(void)
{
    const char *text = getenv("UCX_HIXL_REG");

    if ((text != NULL) && (strcasecmp(text, "umem") == 0)) {
        return HX_REG_UMEM;
    } else if ((text != NULL) && (strcasecmp(text, "mr") == 0)) {
        return HX_REG_MR;
    }
    return HX_REG_AUTO;
}

static bool look_reg_mode(struct look *look)
{
    static const char *const names[] = {
        [HX_REG_AUTO] = "auto", [HX_REG_UMEM] = "umem", [HX_REG_MR] = "mr"
    };
    enum hx_reg_mode wanted = wanted_reg_mode();
    struct hx_log_hold hold;
    char text[320];
    int ret;

    hx_log_hold_begin(&hold, text, sizeof(text));
    ret = hx_dev_set_reg_mode(look->dev, wanted);
    hx_log_hold_end(&hold);
    if (ret != 0) {
        info_line("registration", "none: UCX_HIXL_REG=%s", names[wanted]);
        info_why_umem_keys(&look->why, text);
        return false;
    }

    info_line("registration", "%s (UCX_HIXL_REG=%s): %s",
              names[hx_dev_reg_mode(look->dev)], names[wanted],
              hx_dev_reg_reason(look->dev));
    return true;
}

static int try_qp(struct hx_dev *dev, struct hx_uar *uar)
{
    struct hx_qp_attr attr = {.uar = uar, .log_sq_bb = 6};
    struct hx_qp *qp;
    struct hx_cq *cq;
    int ret;

    ret = hx_cq_create(dev, uar, 6, NULL, &cq);
    if (ret != 0) {
        return ret;
    }

    ret = hx_rmp_create(dev, uar, 6, &attr.rmp);
    if (ret != 0) {
        goto out_destroy_cq;
    }

    attr.send_cq = cq;
    attr.recv_cq = cq;
    ret          = hx_qp_create(dev, &attr, &qp);
    if (ret == 0) {
        hx_qp_destroy(qp);
    }

    hx_rmp_destroy(attr.rmp);
out_destroy_cq:
    hx_cq_destroy(cq);
    return ret;
}

static int try_key(struct hx_dev *dev)
{
    size_t len = sysconf(_SC_PAGESIZE);
    struct hx_mkey mkey;
    void *mem;
    int ret;

    mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
               -1, 0);
    if (mem == MAP_FAILED) {
        return -errno;
    }

    ret = hx_mkey_create(dev, mem, len, IBV_ACCESS_LOCAL_WRITE |
                         IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
                         &mkey);
    if (ret == 0) {
        hx_mkey_destroy(&mkey);
    }

    munmap(mem, len);
    return ret;
}

static void look_try(struct look *look)
{
    struct hx_log_hold hold;
    struct hx_uar *uar;
    char text[256];
    int ret;

    hx_log_hold_begin(&hold, text, sizeof(text));
    ret = hx_uar_create(look->dev, &uar);
    if (ret == 0) {
        ret = try_qp(look->dev, uar);
        hx_uar_destroy(uar);
    }
    hx_log_hold_end(&hold);
    if (ret != 0) {
        info_why_call(&look->why, "its queues cannot be made", text, ret,
                      info_memlock());
        return;
    }

    hx_log_hold_begin(&hold, text, sizeof(text));
    ret = try_key(look->dev);
    hx_log_hold_end(&hold);
    if (ret != 0) {
        info_why_call(&look->why, "memory cannot be registered", text, ret,
                      info_memlock());
    }
}

/* ---- one after the other ---- */

static bool look_ok(const struct look *look)
{
    return look->why.why[0] == '\0';
}

/* Ports are shown of every device that opens at all. */
static void look_ports(struct look *look, struct info_found *found)
{
    struct info_why why = {{0}, {0}};
    struct hx_port port;

    if (info_ports(look->ibv, look->dev, look->attr.phys_port_cnt, &port,
                   found, &why) || (look->dev == NULL)) {
        return;
    }

    if (why.why[0] == '\0') {
        info_why_no_port(&why, false, "it has none");
    }
    if (look_ok(look)) {
        look->why = why;
    }
}

static void look_through(struct look *look, struct info_found *found)
{
    look_open_verbs(look, found->emulated);
    if (!mlx5dv_is_supported(look->ibv_dev)) {
        look_not_mlx5(look);
    } else if (look->ibv != NULL) {
        look_caps(look);
    }
    if (look_ok(look)) {
        look_open(look);
    }
    if (look->ibv != NULL) {
        look_ports(look, found);
    }
    if (look_ok(look) && look_reg_mode(look)) {
        look_try(look);
    }

    if (look->dev != NULL) {
        hx_dev_close(look->dev);
    }
    if (look->ibv != NULL) {
        ibv_close_device(look->ibv);
    }
}

static void judge(struct info_found *found, const struct info_why *why)
{
    info_line("usable", "%s", yes_no(why->why[0] == '\0'));
    if (why->why[0] == '\0') {
        ++found->num_usable;
        return;
    }

    info_line("why", "%s", why->why);
    info_line("todo", "%s", why->todo);
    if (found->first.why[0] == '\0') {
        found->first = *why;
    }
}

static void look_at(struct ibv_device *ibv_dev, struct info_found *found)
{
    struct look look = {
        .ibv_dev = ibv_dev,
        .name    = ibv_get_device_name(ibv_dev)
    };
    unsigned num_ports = found->num_ports;

    snprintf(look.node, sizeof(look.node), "/dev/infiniband/%s",
             ibv_dev->dev_name);
    ++found->num_devices;

    info_section(INFO_WIDTH, "device %s", look.name);
    info_line("node", "%s", look.node);
    look_through(&look, found);
    if (!look_ok(&look)) {
        found->num_ports = num_ports;
    }
    judge(found, &look.why);
}

/* ---- all of them ---- */

static bool is_listed(struct ibv_device **list, int n, const char *name)
{
    int i;

    for (i = 0; i < n; ++i) {
        if (strcmp(ibv_get_device_name(list[i]), name) == 0) {
            return true;
        }
    }
    return false;
}

static bool have_node(void)
{
    struct dirent *ent;
    bool found = false;
    DIR *dir;

    dir = opendir("/dev/infiniband");
    if (dir == NULL) {
        return false;
    }
    while (!found && ((ent = readdir(dir)) != NULL)) {
        found = strncmp(ent->d_name, "uverbs", 6) == 0;
    }
    closedir(dir);
    return found;
}

static void show_unlisted(struct ibv_device **list, int n,
                          struct info_found *found)
{
    struct info_why why = {{0}, {0}};
    struct dirent *ent;
    DIR *dir;

    dir = opendir(SYSFS_CLASS);
    if (dir == NULL) {
        return;
    }

    while ((ent = readdir(dir)) != NULL) {
        if ((ent->d_name[0] == '.') || is_listed(list, n, ent->d_name)) {
            continue;
        }
        ++found->num_devices;
        info_section(INFO_WIDTH, "device %s", ent->d_name);
        info_why_unlisted(&why, have_node());
        judge(found, &why);
    }
    closedir(dir);
}

/* A function on PCI of the vendor of mlx5 devices */
static bool have_pci(void)
{
    char path[300], text[16];
    struct dirent *ent;
    bool found = false;
    FILE *file;
    DIR *dir;

    dir = opendir("/sys/bus/pci/devices");
    if (dir == NULL) {
        return false;
    }

    while (!found && ((ent = readdir(dir)) != NULL)) {
        snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.200s/vendor",
                 ent->d_name);
        file = fopen(path, "re");
        if (file != NULL) {
            found = (fgets(text, sizeof(text), file) != NULL) &&
                    (strtoul(text, NULL, 16) == 0x15b3);
            fclose(file);
        }
    }
    closedir(dir);
    return found;
}

void info_devices(struct info_found *found)
{
    struct ibv_device **list;
    int i, n = 0;

    list = ibv_get_device_list(&n);
    if (list == NULL) {
        n = 0;
    }

    for (i = 0; i < n; ++i) {
        look_at(list[i], found);
    }
    show_unlisted(list, n, found);
    if (list != NULL) {
        ibv_free_device_list(list);
    }

    if (found->num_devices == 0) {
        info_section(INFO_WIDTH, "devices");
        info_line("usable", "no");
        info_why_none(&found->first, have_pci());
        info_line("why", "%s", found->first.why);
        info_line("todo", "%s", found->first.todo);
    }
}
