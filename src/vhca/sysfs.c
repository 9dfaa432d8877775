/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The device in sysfs. Paths below /sys/class/infiniband* lead into a real tree
 * of files and links, VHCA_DIR (/dev/shm)/vhca.<uid>/sysfs-..., which the first
 * process that looks makes and later ones use. Where libibverbs and UCX look,
 * and for what: rdma-core libibverbs/init.c, sysfs.c; UCX
 * uct/ib/base/ib_device.c.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_verbs.h>

#include "vhca/kernel.h"

#define SYSFS_CLASS   "/sys/class/infiniband"
#define CDEV_PREFIX   "/dev/infiniband/uverbs"
/* Goes into the tree's name: a tree made by another version is not used. */
#define SYSFS_VERSION 2

static pthread_once_t sysfs_once = PTHREAD_ONCE_INIT;
static char           sysfs_root[300]; /* empty: could not be made */

/* Everything below is relative to `at`, the tree's root. */

static int put_file(int at, const char *dir, const char *name,
                    const char *fmt, ...)
{
    char path[224], text[128];
    int fd, len, ret;
    va_list ap;

    va_start(ap, fmt);
    len = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = openat(at, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0) {
        return -errno;
    }

    ret = (write(fd, text, len) == len) ? 0 : -EIO;
    close(fd);
    return ret;
}

static int put_dir(int at, const char *dir)
{
    char path[160];
    char *slash;

    snprintf(path, sizeof(path), "%s", dir);
    for (slash = path; slash != NULL;) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
        if ((mkdirat(at, path, 0755) != 0) && (errno != EEXIST)) {
            return -errno;
        }
        if (slash != NULL) {
            *slash = '/';
        }
    }

    return 0;
}

static int put_link(int at, const char *dir, const char *name,
                    const char *target)
{
    char path[224];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return (symlinkat(target, at, path) != 0) ? -errno : 0;
}

static void guid_str(uint64_t guid, char *str, size_t size)
{
    snprintf(str, size, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48),
             (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
             (unsigned)guid & 0xffff);
}

static int put_gid(int at, const char *port_dir, unsigned dev, unsigned i)
{
    const struct vhca_port_cfg *port = vhca_port_cfg(dev);
    const uint8_t *gid = port->gid[i];
    char gids[144], types[144], ndevs[144];
    char name[12], text[48];
    unsigned g;
    int ret;

    snprintf(gids, sizeof(gids), "%s/gids", port_dir);
    snprintf(types, sizeof(types), "%s/gid_attrs/types", port_dir);
    snprintf(ndevs, sizeof(ndevs), "%s/gid_attrs/ndevs", port_dir);
    snprintf(name, sizeof(name), "%u", i);
    for (g = 0; g < 8; ++g) {
        snprintf(text + 5 * g, sizeof(text) - 5 * g, "%02x%02x%s",
                 gid[2 * g], gid[2 * g + 1], (g < 7) ? ":" : "");
    }

    ret = put_dir(at, gids) ?: put_dir(at, types) ?: put_dir(at, ndevs) ?:
          put_file(at, gids, name, "%s\n", text);
    if ((ret != 0) || !port->roce || (i >= port->num_gids)) {
        return ret; /* on IB, and for an unused entry, the kernel says EINVAL */
    }

    return put_file(at, types, name, "%s\n",
                    (port->gid_type[i] == IB_UVERBS_GID_TYPE_ROCE_V2) ?
                    "RoCE v2" : "IB/RoCE v1") ?:
           put_file(at, ndevs, name, "%s\n",
                    vhca_port_netdev(dev) ?: "vhca0");
}

static int put_port(int at, const char *ib, unsigned dev)
{
    const struct vhca_port_cfg *port = vhca_port_cfg(dev);
    char dir[112], pkeys[144], name[12];
    unsigned i;
    int ret;

    snprintf(dir, sizeof(dir), "%s/ports/1", ib);
    snprintf(pkeys, sizeof(pkeys), "%s/pkeys", dir);
    ret = put_dir(at, pkeys) ?:
          put_file(at, dir, "state", "4: ACTIVE\n") ?:
          put_file(at, dir, "phys_state", "5: LinkUp\n") ?:
          put_file(at, dir, "rate", "100 Gb/sec (4X EDR)\n") ?:
          put_file(at, dir, "lid", "0x%x\n", port->lid) ?:
          put_file(at, dir, "sm_lid", "0x%x\n", port->roce ? 0 : VHCA_SM_LID) ?:
          put_file(at, dir, "lid_mask_count", "0\n") ?:
          put_file(at, dir, "link_layer", "%s\n",
                   port->roce ? "Ethernet" : "InfiniBand");
    for (i = 0; (ret == 0) && (i < VHCA_GID_TABLE); ++i) {
        ret = put_gid(at, dir, dev, i);
    }

    for (i = 0; (ret == 0) && (i < vhca_num_pkeys(dev)); ++i) {
        snprintf(name, sizeof(name), "%u", i);
        ret = put_file(at, pkeys, name, "0x%04x\n", (i == 0) ? 0xffff : 0);
    }

    return ret;
}

static int put_pci(int at, const char *pci, bool roce)
{
    return put_dir(at, pci) ?:
           put_file(at, pci, "vendor", "0x15b3\n") ?:
           put_file(at, pci, "device", "0x1019\n") ?:
           put_file(at, pci, "subsystem_vendor", "0x15b3\n") ?:
           put_file(at, pci, "subsystem_device", "0x0008\n") ?:
           put_file(at, pci, "class", "0x%s\n", roce ? "020000" : "020700") ?:
           put_file(at, pci, "modalias",
                    "pci:v000015B3d00001019sv000015B3sd00000008bc02sc%02xi00\n",
                    roce ? 0 : 7) ?:
           put_file(at, pci, "current_link_width", "16\n") ?:
           put_file(at, pci, "current_link_speed", "16.0 GT/s PCIe\n") ?:
           put_file(at, pci, "numa_node", "-1\n") ?:
           put_file(at, pci, "local_cpus", "ffffffff,ffffffff\n") ?:
           put_file(at, pci, "local_cpulist", "0-63\n");
}

static int put_netdev(int at, const char *pci, unsigned dev)
{
    const char *name = vhca_port_netdev(dev);
    uint8_t mac[6];
    char dir[96];

    if (name == NULL) {
        return 0;
    }

    snprintf(dir, sizeof(dir), "%s/net/%s", pci, name);
    vhca_port_mac(dev, mac);
    return put_dir(at, dir) ?:
           put_file(at, dir, "address", "%02x:%02x:%02x:%02x:%02x:%02x\n",
                    mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

/* A PCI function with the InfiniBand and the uverbs device below it; the class
 * directories link to them, as the kernel's do. */
static int put_device(int at, unsigned dev)
{
    char pci[48], ib[80], uv[96], name[24], target[112], guid[24];
    int ret;

    snprintf(pci, sizeof(pci), "devices/pci0000:00/0000:%02x:00.0",
             (3 + dev) & 0xff);
    snprintf(ib, sizeof(ib), "%s/infiniband/mlx5_%u", pci, dev);
    snprintf(uv, sizeof(uv), "%s/infiniband_verbs/uverbs%u", pci, dev);
    guid_str(vhca_node_guid(dev), guid, sizeof(guid));

    ret = put_pci(at, pci, vhca_port_cfg(dev)->roce) ?:
          put_netdev(at, pci, dev) ?:
          put_dir(at, ib) ?:
          put_file(at, ib, "node_type", "1: CA\n") ?:
          put_file(at, ib, "node_guid", "%s\n", guid) ?:
          put_file(at, ib, "sys_image_guid", "%s\n", guid) ?:
          put_file(at, ib, "node_desc", "vhca mlx5_%u\n", dev) ?:
          put_file(at, ib, "fw_ver", "16.35.2000\n") ?:
          put_file(at, ib, "hw_rev", "0\n") ?:
          put_file(at, ib, "hca_type", "MT4121\n") ?:
          put_file(at, ib, "board_id", "VHCA000000001\n") ?:
          put_link(at, ib, "device", "../..") ?:
          put_port(at, ib, dev) ?:
          put_dir(at, uv) ?:
          put_file(at, uv, "ibdev", "mlx5_%u\n", dev) ?:
          put_file(at, uv, "abi_version", "1\n") ?:
          put_file(at, uv, "dev", "%u:%u\n", VHCA_CDEV_MAJOR,
                   VHCA_CDEV_MINOR + dev) ?:
          put_link(at, uv, "device", "../..");
    if (ret != 0) {
        return ret;
    }

    snprintf(name, sizeof(name), "mlx5_%u", dev);
    snprintf(target, sizeof(target), "../../%s", ib);
    ret = put_link(at, "class/infiniband", name, target);
    if (ret != 0) {
        return ret;
    }

    snprintf(name, sizeof(name), "uverbs%u", dev);
    snprintf(target, sizeof(target), "../../%s", uv);
    return put_link(at, "class/infiniband_verbs", name, target);
}

static int put_tree(const char *root)
{
    unsigned dev;
    int at, ret;

    if (mkdir(root, 0755) != 0) {
        return -errno;
    }

    at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) {
        return -errno;
    }

    ret = put_dir(at, "class/infiniband") ?:
          put_dir(at, "class/infiniband_verbs") ?:
          put_file(at, "class/infiniband_verbs", "abi_version", "6\n");
    /* tmpfs lists the youngest first: so device 0 comes first for whoever takes
     * the first one */
    for (dev = vhca_num_devices(); (ret == 0) && (dev-- > 0);) {
        ret = put_device(at, dev);
    }

    close(at);
    return ret;
}

static void remove_tree(int at, const char *name)
{
    struct dirent *ent;
    DIR *dir;
    int fd;

    if ((unlinkat(at, name, 0) == 0) || (errno == ENOENT)) {
        return;
    }

    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    dir = (fd >= 0) ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        return;
    }

    while ((ent = readdir(dir)) != NULL) {
        if ((strcmp(ent->d_name, ".") != 0) &&
            (strcmp(ent->d_name, "..") != 0)) {
            remove_tree(fd, ent->d_name);
        }
    }

    closedir(dir);
    (void)unlinkat(at, name, AT_REMOVEDIR);
}

/* The directory is private, so nobody else can put files into it. */
static int private_dir(const char *dir)
{
    struct stat st;

    if ((mkdir(dir, 0700) != 0) && (errno != EEXIST)) {
        return -errno;
    }

    if (lstat(dir, &st) != 0) {
        return -errno;
    }

    return (S_ISDIR(st.st_mode) && (st.st_uid == geteuid()) &&
            !(st.st_mode & 022)) ? 0 : -EPERM;
}

static void sysfs_make(void)
{
    const char *base = getenv("VHCA_DIR"), *netdev;
    char dir[256], tmp[sizeof(sysfs_root) + 16];
    int saved = errno;
    struct stat st;
    int ret;

    snprintf(dir, sizeof(dir), "%.200s/vhca.%u",
             ((base != NULL) && (base[0] != '\0')) ? base : "/dev/shm",
             (unsigned)geteuid());
    netdev = vhca_port_netdev(0);
    snprintf(sysfs_root, sizeof(sysfs_root), "%s/sysfs-v%d-%s-%u%s%s", dir,
             SYSFS_VERSION, vhca_port_cfg(0)->roce ? "roce" : "ib",
             vhca_num_devices(), (netdev != NULL) ? "-" : "", netdev ?: "");

    ret = private_dir(dir);
    if (ret != 0) {
        goto out;
    }

    if (stat(sysfs_root, &st) == 0) {
        goto out; /* complete: it got its name as a whole */
    }

    snprintf(tmp, sizeof(tmp), "%s.%d", sysfs_root, (int)getpid());
    remove_tree(AT_FDCWD, tmp); /* of a dead process with our id */
    ret = put_tree(tmp);
    if ((ret == 0) && (rename(tmp, sysfs_root) != 0)) {
        /* another process was faster */
        ret = (stat(sysfs_root, &st) == 0) ? 0 : -errno;
        remove_tree(AT_FDCWD, tmp);
    } else if (ret != 0) {
        remove_tree(AT_FDCWD, tmp);
    }

out:
    if (ret != 0) {
        fprintf(stderr, "vhca: no device, %s: %s\n", sysfs_root,
                strerror(-ret));
        sysfs_root[0] = '\0';
    }
    errno = saved;
}

const char *vhca_sysfs_path(const char *path, char *buf, size_t size)
{
    if (strncmp(path, SYSFS_CLASS, sizeof(SYSFS_CLASS) - 1) != 0) {
        return path;
    }

    pthread_once(&sysfs_once, sysfs_make);
    if (sysfs_root[0] == '\0') {
        return path;
    }

    snprintf(buf, size, "%s%s", sysfs_root, path + sizeof("/sys") - 1);
    return buf;
}

int vhca_cdev_number(const char *path)
{
    unsigned dev;

    if (strncmp(path, CDEV_PREFIX, sizeof(CDEV_PREFIX) - 1) != 0) {
        return -1;
    }

    path += sizeof(CDEV_PREFIX) - 1;
    dev   = (unsigned)(path[0] - '0');
    return ((path[0] != '\0') && (path[1] == '\0') &&
            (dev < vhca_num_devices())) ? (int)dev : -1;
}
