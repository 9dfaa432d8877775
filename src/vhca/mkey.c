/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory keys: who may touch which bytes of which process. */

#include "nic.h"

static enum nic_gauge gauge_of(const struct nic_mkey *key)
{
    bool remote = key->rights & (NIC_RR | NIC_RW | NIC_RA);

    return key->over_umem ?
           (remote ? NIC_GAUGE_MKEY_REMOTE : NIC_GAUGE_MKEY_LOCAL) :
           (remote ? NIC_GAUGE_MR_REMOTE : NIC_GAUGE_MR_LOCAL);
}

static bool mkey_attr_ok(const struct vhca_mkey_attr *attr, struct vhca_fw *fw)
{
    if (!nic_obj_mine(nic_obj_find(NIC_PD, attr->pdn), attr->owner)) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }
    if ((attr->len == 0) || (attr->start + attr->len - 1 < attr->start)) {
        return nic_fail(fw, VHCA_FW_BAD_PARAM, 0);
    }

    return true;
}

static void mkey_set(struct nic_mkey *key, const struct vhca_mkey_attr *attr)
{
    key->pdn      = attr->pdn;
    key->qpn      = attr->qpn;
    key->start    = attr->start;
    key->len      = attr->len;
    key->va_delta = attr->va_delta;
    key->rights   = (attr->lr ? NIC_LR : 0) | (attr->lw ? NIC_LW : 0) |
                    (attr->rr ? NIC_RR : 0) | (attr->rw ? NIC_RW : 0) |
                    (attr->a ? NIC_RA : 0);
}

bool vhca_mkey_create(const struct vhca_mkey_attr *attr, uint32_t *index_p,
                      struct vhca_fw *fw)
{
    struct nic_mkey *key;

    if (NIC_FAB == NULL) {
        return nic_fail(fw, VHCA_FW_BAD_SYS_STATE, 0);
    }
    if (!mkey_attr_ok(attr, fw) || nic_fault_mkeys(fw)) {
        return false;
    }

    key = (struct nic_mkey*)(void*)nic_obj_alloc(NIC_MKEY, attr->owner);
    if (key == NULL) {
        return nic_fail(fw, VHCA_FW_NO_RESOURCES, 0);
    }

    key->tag       = attr->tag;
    key->over_umem = attr->over_umem;
    mkey_set(key, attr);
    nic_share_record(key);
    nic_gauge_add(NIC_GAUGE_MKEY, 1);
    nic_gauge_add(gauge_of(key), 1);
    *index_p = nic_obj_publish(NIC_MKEY, &key->obj);
    return true;
}

static struct nic_mkey *mkey_mine(uint32_t owner, uint32_t index)
{
    struct nic_mkey *key;

    if (NIC_FAB == NULL) {
        return NULL;
    }

    key = NIC_FIND(NIC_MKEY, nic_mkey, index);
    return ((key != NULL) && nic_obj_mine(&key->obj, owner)) ? key : NULL;
}

/* When this returns nobody moves bytes with the key any more, but a process
 * that was stopped in the middle of it: see the limits in docs/vhca.md. */
bool vhca_mkey_destroy(uint32_t owner, uint32_t index, struct vhca_fw *fw)
{
    struct nic_mkey *key = mkey_mine(owner, index);

    if (key == NULL) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }

    nic_obj_hide(&key->obj);
    nic_quiesce_key(index);
    nic_share_release(key);
    nic_gauge_add(NIC_GAUGE_MKEY, -1);
    nic_gauge_add(gauge_of(key), -1);
    nic_obj_free(NIC_MKEY, &key->obj);
    return true;
}

/* Meanwhile nobody finds it; who moves bytes with it is waited for, as above */
bool vhca_mkey_modify(uint32_t index, const struct vhca_mkey_attr *attr,
                      struct vhca_fw *fw)
{
    struct nic_mkey *key = mkey_mine(attr->owner, index);

    if (key == NULL) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }
    if (!mkey_attr_ok(attr, fw)) {
        return false;
    }

    nic_obj_hide(&key->obj);
    nic_quiesce_key(index);
    nic_gauge_add(gauge_of(key), -1);
    nic_share_release(key);
    mkey_set(key, attr);
    nic_share_record(key);
    nic_gauge_add(gauge_of(key), 1);
    atomic_store(&key->obj.number, index);
    return true;
}

bool vhca_mkey_query(uint32_t owner, uint32_t index,
                     struct vhca_mkey_attr *attr_p, struct vhca_fw *fw)
{
    struct nic_mkey *key = mkey_mine(owner, index);

    if (key == NULL) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }

    *attr_p = (struct vhca_mkey_attr) {
        .owner     = owner,
        .pdn       = key->pdn,
        .start     = key->start,
        .len       = key->len,
        .va_delta  = key->va_delta,
        .qpn       = key->qpn,
        .tag       = key->tag,
        .lr        = key->rights & NIC_LR,
        .lw        = key->rights & NIC_LW,
        .rr        = key->rights & NIC_RR,
        .rw        = key->rights & NIC_RW,
        .a         = key->rights & NIC_RA,
        .over_umem = key->over_umem
    };
    return true;
}

/* The key if it allows this. The caller has announced its index (nic_exec). */
struct nic_mkey *nic_mkey_check(uint32_t key32, uint32_t pdn, uint32_t qpn,
                                uint64_t addr, uint64_t len, uint8_t rights)
{
    struct nic_mkey *key = NIC_FIND(NIC_MKEY, nic_mkey, key32 >> 8);

    if ((key == NULL) || (key->tag != (key32 & 0xff)) || (key->pdn != pdn) ||
        ((key->rights & rights) != rights) ||
        ((key->qpn != 0xffffff) && (key->qpn != qpn))) {
        return NULL;
    }

    /* in this order nothing can wrap */
    if ((addr < key->start) || (len > key->len) ||
        (addr - key->start > key->len - len)) {
        return NULL;
    }

    return key;
}
