/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Which kind of key a device gets. There are kernels and firmwares that do not
 * take keys over umems, or are said not to; no capability tells, so the device
 * is tried once a process.
 */

#include "hx.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the self-test found on a device, however often it is opened */
struct verdict {
    struct verdict *next;
    uint64_t        guid;         /* a name alone may be given to another */
    int             ret;
    char            name[64];
    char            reason[256];
};

/* Guards the list, and who decides for a device */
static pthread_mutex_t reg_lock = PTHREAD_MUTEX_INITIALIZER;
static struct verdict *verdicts;

static struct verdict *verdict_find(const struct hx_dev *dev)
{
    uint64_t guid = ibv_get_device_guid(dev->ibv->device);
    struct verdict *verdict;

    for (verdict = verdicts; verdict != NULL; verdict = verdict->next) {
        if ((verdict->guid == guid) &&
            (strcmp(verdict->name, dev->name) == 0)) {
            break;
        }
    }

    return verdict;
}

static void verdict_add(const struct hx_dev *dev, int ret, const char *reason)
{
    struct verdict *verdict = calloc(1, sizeof(*verdict));

    if (verdict == NULL) {
        return; /* the next to open the device tries again */
    }

    verdict->guid = ibv_get_device_guid(dev->ibv->device);
    verdict->ret  = ret;
    snprintf(verdict->name, sizeof(verdict->name), "%s", dev->name);
    snprintf(verdict->reason, sizeof(verdict->reason), "%s", reason);
    verdict->next = verdicts;
    verdicts      = verdict;
}

/* What another try may find otherwise */
static bool reg_is_passing_error(int ret)
{
    return (ret == -ENOMEM) || (ret == -EAGAIN) || (ret == -EMFILE) ||
           (ret == -ENFILE) || (ret == -ENETDOWN);
}

static int reg_try(struct hx_dev *dev)
{
    struct hx_port port;
    unsigned num;

    for (num = 1; num <= dev->caps.num_ports; ++num) {
        if ((hx_port_query(dev, num, HX_GID_INDEX_AUTO, &port) == 0) &&
            port.active) {
            return hx_selftest_umem_keys(dev, &port);
        }
    }

    hx_log(HX_LOG_ERROR, "%s: no port is up to try keys over umems on",
           dev->name);
    return -ENETDOWN;
}

/* Needs the lock. The reason is a sentence without an end. */
static int reg_prove(struct hx_dev *dev, char *reason, size_t size, bool *new_p)
{
    struct verdict *verdict = verdict_find(dev);
    struct hx_log_hold hold;
    int ret;

    *new_p = verdict == NULL;
    if (verdict != NULL) {
        snprintf(reason, size, "%s", verdict->reason);
        return verdict->ret;
    }

    hx_log_hold_begin(&hold, reason, size);
    ret = reg_try(dev);
    hx_log_hold_end(&hold);

    if (ret == 0) {
        snprintf(reason, size, "keys over umems passed the self-test");
    }
    if (!reg_is_passing_error(ret)) {
        verdict_add(dev, ret, reason);
    }

    return ret;
}

/* Needs the lock. Release: who reads the mode without it may read the reason */
static void reg_set(struct hx_dev *dev, enum hx_reg_mode mode,
                    const char *reason)
{
    snprintf(dev->reg_reason, sizeof(dev->reg_reason), "%s", reason);
    __atomic_store_n(&dev->reg_mode, mode, __ATOMIC_RELEASE);
}

/* Needs the lock */
static void reg_decide(struct hx_dev *dev)
{
    char reason[256];
    bool is_new;

    if (reg_prove(dev, reason, sizeof(reason), &is_new) == 0) {
        hx_log(HX_LOG_DEBUG, "%s: %s", dev->name, reason);
        reg_set(dev, HX_REG_UMEM, reason);
        return;
    }

    if (is_new) {
        hx_log(HX_LOG_NOTICE, "%s: memory is registered with ibv_reg_mr,"
               " because keys over umems did not pass the self-test: %s",
               dev->name, reason);
    }
    reg_set(dev, HX_REG_MR, reason);
}

int hx_dev_set_reg_mode(struct hx_dev *dev, enum hx_reg_mode mode)
{
    char reason[256] = "asked for";
    int ret          = 0;
    bool is_new;

    pthread_mutex_lock(&reg_lock);
    if (mode == HX_REG_UMEM) {
        ret = reg_prove(dev, reason, sizeof(reason), &is_new);
    }
    if (ret == 0) {
        reg_set(dev, mode, (mode == HX_REG_AUTO) ? "" : reason);
    }
    pthread_mutex_unlock(&reg_lock);

    if (ret != 0) {
        hx_log(HX_LOG_ERROR, "keys over umems did not pass the self-test: %s",
               reason);
    }

    return ret;
}

enum hx_reg_mode hx_dev_reg_mode(struct hx_dev *dev)
{
    enum hx_reg_mode mode = __atomic_load_n(&dev->reg_mode, __ATOMIC_ACQUIRE);

    if (__builtin_expect(mode == HX_REG_AUTO, 0)) {
        pthread_mutex_lock(&reg_lock);
        if (dev->reg_mode == HX_REG_AUTO) {
            reg_decide(dev);
        }
        mode = dev->reg_mode;
        pthread_mutex_unlock(&reg_lock);
    }

    return mode;
}

const char *hx_dev_reg_reason(const struct hx_dev *dev)
{
    return dev->reg_reason;
}
