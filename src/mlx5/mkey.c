/* SPDX-License-Identifier: BSD-3-Clause */

/* Keys: CREATE_MKEY over a umem. */

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

int hx_mkey_create(struct hx_dev *dev, void *addr, size_t len, uint32_t access,
                   struct hx_mkey *mkey_p)
{
    const struct hx_caps *caps   = &dev->caps;
    struct hx_cmd_mkey_attr attr = {
        .addr   = (uintptr_t)addr,
        .len    = len,
        .pdn    = dev->pdn,
        .access = access,
        .tag    = mkey_next_tag()
    };
    struct hx_mkey mkey;
    bool relaxed;
    int ret;

    if (len == 0) {
        hx_log(HX_LOG_ERROR, "%s: a key over no memory, at %p", dev->name,
               addr);
        return -EINVAL;
    }

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

void hx_mkey_destroy(struct hx_mkey *mkey)
{
    hx_cmd_destroy(mkey->obj, "mkey", mkey->key);
    hx_umem_dereg(&mkey->umem);
}
