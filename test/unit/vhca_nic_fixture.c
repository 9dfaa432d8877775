/* SPDX-License-Identifier: BSD-3-Clause */

/* The functions of vhca.h's NIC side: they record and succeed. */

#include <string.h>
#include <sys/socket.h>

#include "vhca/fault.h"
#include "vhca_nic_fixture.h"

struct fix_nic fix_nic;

static bool done(struct vhca_fw *fw)
{
    ++fix_nic.calls;
    if (fix_nic.fail) {
        fix_nic.fail = false;
        fw->status   = VHCA_FW_BAD_RES_STATE;
        fw->syndrome = 0x123456;
        return false;
    }

    return true;
}

static bool destroyed(char what)
{
    if (fix_nic.destroyed < sizeof(fix_nic.order) - 1) {
        fix_nic.order[fix_nic.destroyed] = what;
    }
    ++fix_nic.destroyed;
    return true;
}

int vhca_fabric_attach(void)
{
    return 0;
}

int vhca_owner_open(unsigned dev, uint32_t *owner_p)
{
    (void)dev;
    *owner_p = FIX_OWNER;
    return 0;
}

void vhca_owner_close(uint32_t owner)
{
    (void)owner;
}

int vhca_pd_alloc(uint32_t owner, uint32_t *pdn_p)
{
    (void)owner;
    *pdn_p = FIX_PDN;
    return 0;
}

void vhca_pd_free(uint32_t owner, uint32_t pdn)
{
    (void)owner;
    (void)pdn;
    (void)destroyed('p');
}

void vhca_stat_add(const char *name, int64_t delta)
{
    (void)name;
    (void)delta;
}

int vhca_channel_create(uint32_t owner, enum vhca_channel_kind kind,
                        bool omit_data, int *fd_p, uint32_t *chan_p)
{
    int fds[2];

    (void)owner;
    (void)kind;
    (void)omit_data;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) != 0) {
        return -1;
    }

    *fd_p   = fds[0];
    *chan_p = (uint32_t)fds[1];
    return 0;
}

void vhca_channel_destroy(uint32_t chan)
{
    (void)chan;
}

bool vhca_device_removed(void)
{
    return false;
}

int vhca_event_subscribe(uint32_t chan, uint16_t type, uint32_t number,
                         uint64_t cookie)
{
    (void)chan;
    fix_nic.sub_type   = type;
    fix_nic.sub_number = number;
    fix_nic.sub_cookie = cookie;
    return 0;
}

struct vhca_event_counts vhca_event_unsubscribe(uint32_t number)
{
    (void)number;
    return (struct vhca_event_counts) {0, 0};
}

bool vhca_mkey_create(const struct vhca_mkey_attr *attr, uint32_t *index_p,
                      struct vhca_fw *fw)
{
    fix_nic.mkey = *attr;
    *index_p     = FIX_MKEY;
    return done(fw);
}

bool vhca_mkey_destroy(uint32_t owner, uint32_t index, struct vhca_fw *fw)
{
    (void)owner;
    (void)index;
    return done(fw) && destroyed('m');
}

bool vhca_mkey_modify(uint32_t index, const struct vhca_mkey_attr *attr,
                      struct vhca_fw *fw)
{
    (void)index;
    fix_nic.mkey = *attr;
    return done(fw);
}

bool vhca_mkey_query(uint32_t owner, uint32_t index,
                     struct vhca_mkey_attr *attr_p, struct vhca_fw *fw)
{
    (void)owner;
    (void)index;
    *attr_p = fix_nic.mkey;
    return done(fw);
}

bool vhca_cq_create(const struct vhca_cq_attr *attr, uint32_t *cqn_p,
                    struct vhca_fw *fw)
{
    fix_nic.cq = *attr;
    *cqn_p     = FIX_CQN;
    return done(fw);
}

bool vhca_cq_destroy(uint32_t owner, uint32_t cqn, struct vhca_fw *fw)
{
    (void)owner;
    (void)cqn;
    return done(fw) && destroyed('c');
}

bool vhca_cq_resize(uint32_t owner, uint32_t cqn, void *ring,
                    uint8_t log_size, struct vhca_fw *fw)
{
    (void)owner;
    (void)cqn;
    fix_nic.cq.ring     = ring;
    fix_nic.cq.log_size = log_size;
    return done(fw);
}

bool vhca_rmp_create(const struct vhca_rmp_attr *attr, uint32_t *rmpn_p,
                     struct vhca_fw *fw)
{
    fix_nic.rmp = *attr;
    *rmpn_p     = FIX_RMPN;
    return done(fw);
}

bool vhca_rmp_destroy(uint32_t owner, uint32_t rmpn, struct vhca_fw *fw)
{
    (void)owner;
    (void)rmpn;
    return done(fw) && destroyed('r');
}

bool vhca_rmp_set_limit(uint32_t owner, uint32_t rmpn, uint32_t limit,
                        struct vhca_fw *fw)
{
    (void)owner;
    (void)rmpn;
    fix_nic.rmp_limit = limit;
    return done(fw);
}

bool vhca_rmp_get_limit(uint32_t owner, uint32_t rmpn, uint32_t *limit_p,
                        struct vhca_fw *fw)
{
    (void)owner;
    (void)rmpn;
    *limit_p = fix_nic.rmp_limit;
    return done(fw);
}

bool vhca_qp_create(const struct vhca_qp_attr *attr, uint32_t *qpn_p,
                    struct vhca_fw *fw)
{
    fix_nic.qp       = *attr;
    fix_nic.qp_state = VHCA_QP_RST;
    *qpn_p           = FIX_QPN;
    return done(fw);
}

bool vhca_qp_modify(uint32_t owner, uint32_t qpn,
                    const struct vhca_qp_modify *mod, struct vhca_fw *fw)
{
    (void)owner;
    (void)qpn;
    fix_nic.modify = *mod;
    return done(fw);
}

bool vhca_qp_query(uint32_t owner, uint32_t qpn, struct vhca_qp_info *info_p,
                   struct vhca_fw *fw)
{
    (void)owner;
    (void)qpn;
    (void)fw;
    memset(info_p, 0, sizeof(*info_p));
    info_p->attr  = fix_nic.qp;
    info_p->last  = fix_nic.modify;
    info_p->state = fix_nic.qp_state;
    return true;
}

bool vhca_qp_destroy(uint32_t owner, uint32_t qpn, struct vhca_fw *fw)
{
    (void)owner;
    (void)qpn;
    return done(fw) && destroyed('q');
}

/* Nothing is told to fail. */
bool vhca_fault_cmd(uint16_t opcode, struct vhca_fw *fw)
{
    (void)opcode;
    (void)fw;
    return false;
}

int vhca_fault_umem(void)
{
    return 0;
}

bool vhca_fault_mkey_umem(struct vhca_fw *fw)
{
    (void)fw;
    return false;
}

int vhca_fault_mkey_kernel(void)
{
    return 0;
}
