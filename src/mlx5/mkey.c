/* SPDX-License-Identifier: BSD-3-Clause */

/* Keys: CREATE_MKEY over a umem, or an MR. */

#include "mkey.h"
#include "cmd.h"

#include <errno.h>

/* A key is not modified: destroying it is the only revocation, and firmware
 * gives the index to the next one. A tag that rotates makes the old key
 * value wrong for the next 255 keys. */
static uint8_t mkey_next_tag(void)
{
    static uint8_t tag;

    return __atomic_fetch_add(&tag, 1, __ATOMIC_RELAXED);
}

static uint32_t mkey_umem_access(uint32_t access)
{
    uint32_t umem_access = access & (IBV_ACCESS_LOCAL_WRITE |
                                     IBV_ACCESS_REMOTE_WRITE |
                                     IBV_ACCESS_REMOTE_READ);

    /* The kernel refuses REMOTE_ATOMIC on a umem, and REMOTE_WRITE without
     * LOCAL_WRITE; the key's own rights are another matter */
    if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) {
        umem_access |= IBV_ACCESS_LOCAL_WRITE;
    }

    return umem_access;
}

int hx_mkey_create_umem(struct hx_dev *dev, void *addr, size_t len,
                        uint32_t access, struct hx_mkey *mkey_p)
{
    const struct hx_caps *caps   = &dev->caps;
    struct hx_cmd_mkey_attr attr = {
        .addr   = (uintptr_t)addr,
        .len    = len,
        .pdn    = dev->pdn,
        .access = access,
        .tag    = mkey_next_tag()
    };
    struct hx_mkey mkey = {0};
    bool relaxed;
    int ret;

    /* With mkc_order_write_after_write_ro_only a key must be relaxed */
    relaxed            = !!(access & IBV_ACCESS_RELAXED_ORDERING) ||
                         caps->mkc_order_write_after_write_ro_only;
    attr.relaxed_write = relaxed && caps->relaxed_ordering_write;
    attr.relaxed_read  = relaxed && caps->relaxed_ordering_read;

    ret = hx_umem_reg(dev, addr, len, mkey_umem_access(access), &mkey.umem);
    if (ret != 0) {
        return ret;
    }

    attr.umem_id = mkey.umem.id;
    ret          = hx_cmd_create_mkey(dev, &attr, &mkey.obj, &mkey.key);
    if (ret != 0) {
        goto err_dereg;
    }

    *mkey_p = mkey;
    return 0;

err_dereg:
    hx_umem_dereg(&mkey.umem);
    return ret;
}

/* mlx5 gives an MR one number as lkey and rkey, and it is exact as well */
static int mkey_create_mr(struct hx_dev *dev, void *addr, size_t len,
                          uint32_t access, struct hx_mkey *mkey_p)
{
    struct hx_mkey mkey = {0};
    char hint[HX_LIMIT_HINT_MAX];
    int ret;

    /* Verbs' rule: who may write from afar may write here */
    if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) {
        access |= IBV_ACCESS_LOCAL_WRITE;
    }

    mkey.mr = ibv_reg_mr(dev->pd, addr, len, access);
    if (mkey.mr == NULL) {
        ret = (errno > 0) ? -errno : -ENOMEM;
        hx_log(HX_LOG_ERROR, "%s: registering %zu bytes at %p as an MR"
               " failed: %s%s", dev->name, len, addr, strerror(-ret),
               hx_limit_hint(HX_LIMIT_PIN, -ret, hint, sizeof(hint)));
        return ret;
    }

    mkey.key = mkey.mr->rkey;
    *mkey_p  = mkey;
    return 0;
}

int hx_mkey_create(struct hx_dev *dev, void *addr, size_t len, uint32_t access,
                   struct hx_mkey *mkey_p)
{
    if (len == 0) {
        hx_log(HX_LOG_ERROR, "%s: a key over no memory, at %p", dev->name,
               addr);
        return -EINVAL;
    }

    return (hx_dev_reg_mode(dev) == HX_REG_MR) ?
           mkey_create_mr(dev, addr, len, access, mkey_p) :
           hx_mkey_create_umem(dev, addr, len, access, mkey_p);
}

void hx_mkey_destroy(struct hx_mkey *mkey)
{
    int err;

    if (mkey->mr == NULL) {
        hx_cmd_destroy(mkey->obj, "mkey", mkey->key);
        hx_umem_dereg(&mkey->umem);
        return;
    }

    err = ibv_dereg_mr(mkey->mr);
    if (err != 0) {
        hx_log(HX_DESTROY_LOG_LEVEL(err),
               "deregistering the MR of key 0x%x failed: %s", mkey->key,
               strerror(err));
    }
}
