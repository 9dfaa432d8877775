/* SPDX-License-Identifier: BSD-3-Clause */

/* hixl_info: why a device cannot be used, and what to do. */

#include "info.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WHY(_why, ...) \
    snprintf((_why)->why, sizeof((_why)->why), __VA_ARGS__)
#define REMEDY(_why, ...) \
    snprintf((_why)->todo, sizeof((_why)->todo), __VA_ARGS__)

/* mlx5's PCI device numbers */
static const struct {
    uint32_t    part;
    bool        old;
    const char *name;
} parts[] = {
    {0x1011, true, "Connect-IB"},
    {0x1012, true, "Connect-IB virtual function"},
    {0x1013, true, "ConnectX-4"},
    {0x1014, true, "ConnectX-4 virtual function"},
    {0x1015, true, "ConnectX-4 Lx"},
    {0x1016, true, "ConnectX-4 Lx virtual function"},
    {0x1017, false, "ConnectX-5"},
    {0x1018, false, "ConnectX-5 virtual function"},
    {0x1019, false, "ConnectX-5 Ex"},
    {0x101a, false, "ConnectX-5 Ex virtual function"},
    {0x101b, false, "ConnectX-6"},
    {0x101c, false, "ConnectX-6 virtual function"},
    {0x101d, false, "ConnectX-6 Dx"},
    {0x101e, false, "ConnectX family virtual function"},
    {0x101f, false, "ConnectX-6 Lx"},
    {0x1021, false, "ConnectX-7"},
    {0x1023, false, "ConnectX-8"},
    {0xa2d2, false, "BlueField"},
    {0xa2d3, false, "BlueField virtual function"},
    {0xa2d6, false, "BlueField-2"},
    {0xa2dc, false, "BlueField-3"},
};

const char *info_part_name(uint32_t part)
{
    size_t i;

    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
        if (parts[i].part == part) {
            return parts[i].name;
        }
    }
    return NULL;
}

bool info_part_is_old(uint32_t part)
{
    size_t i;

    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
        if (parts[i].part == part) {
            return parts[i].old;
        }
    }
    return false;
}

void info_why_not_mlx5(struct info_why *why, uint32_t vendor)
{
    WHY(why, "it is not an mlx5 device (vendor 0x%04x)", vendor);
    REMEDY(why, "use a ConnectX-5 or later, or the emulated device:"
         " hixl-run --vhca hixl_info");
}

void info_why_open(struct info_why *why, const char *node, bool emulated,
                   int err)
{
    WHY(why, "%s cannot be opened: %s", node, strerror(err));
    if (emulated) {
        REMEDY(why, "the emulated device says why in a line that begins with"
             " vhca: (above); a fabric of its own is VHCA_FABRIC=NAME hixl-run"
             " --vhca hixl_info");
        return;
    }

    switch (err) {
    case EACCES:
    case EPERM:
        REMEDY(why, "give your user access to %s: ls -l shows its group, or"
             " chmod 666 %s as root; in a container, also a device rule"
             " (docker run --device %s)", node, node, node);
        break;
    case ENOENT:
    case ENXIO:
    case ENODEV:
        REMEDY(why, "modprobe ib_uverbs as root; in a container, put the device"
             " in: docker run --device %s", node);
        break;
    case EMFILE:
    case ENFILE:
        REMEDY(why, "raise the limit of open files: ulimit -n");
        break;
    default:
        REMEDY(why, "look for what the driver said in dmesg");
        break;
    }
}

void info_why_devx(struct info_why *why, int err)
{
    WHY(why, "it does not open with DevX: %s", strerror(err));
    switch (err) {
    case EACCES:
    case EPERM:
        REMEDY(why, "DevX takes no privilege, so look for what refuses it: a"
             " seccomp filter or a security module of this container");
        break;
    case EOPNOTSUPP:
    case ENOSYS:
    case ENOTTY:
    case EPROTONOSUPPORT:
        REMEDY(why, "use a kernel of 4.19 or later with"
             " CONFIG_INFINIBAND_USER_ACCESS=y: this one has no DevX");
        break;
    case EINVAL:
        REMEDY(why, "allow user contexts in the firmware (mlxconfig -d DEVICE"
             " set UCTX_EN=1, then a reset; for a virtual function, on its"
             " host), or use a kernel of 4.19 or later");
        break;
    default:
        REMEDY(why, "look for what the driver said in dmesg");
        break;
    }
}

void info_why_missing(struct info_why *why, uint32_t part, const char *missing)
{
    const char *name = info_part_name(part);

    if (info_part_is_old(part)) {
        WHY(why, "a %s is too old: it lacks %s", name, missing);
        REMEDY(why, "use a ConnectX-5 or later");
    } else {
        WHY(why, "it lacks %s", missing);
        REMEDY(why, "update the firmware, and allow what is missing (mlxconfig;"
             " for a virtual function, on its host)");
    }
}

void info_why_no_port(struct info_why *why, bool roce, const char *state)
{
    WHY(why, "no port is up (%s)", state);
    if (roce) {
        REMEDY(why, "ip link set DEV up, of the port's network interface, and"
             " look at the cable");
    } else {
        REMEDY(why, "look at the cable, and that a subnet manager runs (a port"
             " that stays in INIT has none): ibstat, sminfo");
    }
}

void info_why_umem_keys(struct info_why *why, const char *reason)
{
    WHY(why, "UCX_HIXL_REG=umem, and %s", reason);
    REMEDY(why, "unset UCX_HIXL_REG, or set it to mr: then memory is registered"
         " by ibv_reg_mr");
}

void info_why_call(struct info_why *why, const char *what, const char *msg,
                   int ret, uint64_t memlock)
{
    WHY(why, "%s: %s", what, (msg[0] != '\0') ? msg : strerror(-ret));
    if ((ret == -ENOMEM) && (memlock != UINT64_MAX)) {
        REMEDY(why, "raise the limit of locked memory, which is %llu KiB:"
             " ulimit -l unlimited, or memlock in limits.conf",
             (unsigned long long)(memlock / 1024));
    } else if ((ret == -EMFILE) || (ret == -ENFILE)) {
        REMEDY(why, "raise the limit of open files: ulimit -n");
    } else {
        REMEDY(why, "look the message up in docs/troubleshooting.md, and for"
             " what the driver said in dmesg");
    }
}

void info_why_unlisted(struct info_why *why, bool node)
{
    WHY(why, "the kernel has it, but libibverbs does not list it");
    if (node) {
        REMEDY(why, "install its driver for libibverbs (Debian:"
             " ibverbs-providers); ibv_devices then shows it");
    } else {
        REMEDY(why, "modprobe ib_uverbs as root, since there is no"
             " /dev/infiniband/uverbs*; in a container, put it in: docker run"
             " --device /dev/infiniband");
    }
}

void info_why_none(struct info_why *why, bool pci)
{
    if (pci) {
        WHY(why, "there is no RDMA device, but a PCI device of the vendor"
            " 0x15b3: its driver is not loaded");
        REMEDY(why, "modprobe mlx5_ib as root");
    } else {
        WHY(why, "there is no RDMA device: /sys/class/infiniband has none");
        REMEDY(why, "hixl-run --vhca hixl_info");
    }
}
