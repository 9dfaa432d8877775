/* SPDX-License-Identifier: BSD-3-Clause */

/* What the tests of the emulated device's decoders share. */

#ifndef VHCA_DEVX_FIXTURE_H_
#define VHCA_DEVX_FIXTURE_H_

#include "vhca/kernel.h"
#include "vhca_nic_fixture.h"

#define MBOX 272 /* bytes of every mailbox here */

/* Objects are made in this order, so their handles and ids are known: PD 1,
 * UAR 2 (page 0x1002), umem 3 (id 0x100003), CQ 4, RMP 5, QP 6. */
enum { UAR_PAGE = 0x1002, UMEM_LEN = 64 * 1024 };

struct fixture {
    struct vhca_ctx   ctx;
    struct vhca_uobj *pd, *uar, *umem, *cq, *rmp, *qp;
    uint8_t          *mem;      /* 64 KiB */
    uint8_t           out[4112];
    size_t            outlen;
    uint32_t          handle;   /* of the last OBJ_CREATE */
};

/* Golden mailboxes */
extern const uint8_t fix_mkey[MBOX], fix_cq[MBOX], fix_rmp[MBOX], fix_qp[MBOX],
                     fix_2init[MBOX], fix_2rtr[MBOX], fix_2rtr_ib[MBOX],
                     fix_2rts[MBOX];

/* cmocka's: *state is the fixture. A process has one link layer. */
int fix_setup(void **state);
int fix_setup_ib(void **state);
int fix_teardown(void **state);
/** An ioctl; 0 or a negative errno. */
int fix_call(struct fixture *f, uint16_t object, uint16_t method,
             const struct ib_uverbs_attr *attrs, unsigned num);
/** OBJ_CREATE, OBJ_MODIFY or OBJ_QUERY. */
int fix_obj_call(struct fixture *f, uint16_t method, uint32_t handle,
                 const uint8_t *in, size_t inlen);
int fix_create(struct fixture *f, const uint8_t *in, size_t inlen);
int fix_modify(struct fixture *f, const uint8_t *in, size_t inlen);
uint32_t fix_be32(const uint8_t *p);
void fix_put_be64(uint8_t *p, uint64_t value);
/** The firmware refused it, and the NIC side was not asked. */
void fix_refused(struct fixture *f, int ret, uint8_t status,
                        uint32_t syndrome);
/** fix_mkey with the address of the fixture's memory. */
void fix_mkey_mailbox(const struct fixture *f, uint8_t *in);

#endif
