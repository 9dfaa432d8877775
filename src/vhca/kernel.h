/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Private header of the kernel side: an open device file (context), the
 * objects a process has in it, and the pieces that answer its ioctls. Functions
 * that return int return 0 or the negative errno the kernel would give, unless
 * said otherwise.
 */

#ifndef VHCA_KERNEL_H_
#define VHCA_KERNEL_H_

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#include "vhca/vhca.h"

#define VHCA_PAGE_SIZE     4096u
#define VHCA_CDEV_MAJOR    231  /* the kernel's uverbs devices */
#define VHCA_CDEV_MINOR    192
#define VHCA_COMP_VECTORS  4
#define VHCA_FIRST_EQN     5    /* completion vector v is EQ 5 + v */

/* Limits that both a capability page and a check state (caps.c tells them) */
enum {
    VHCA_LOG_MAX_QP        = 16, /* and CQs, RMPs: the fabric's tables */
    VHCA_LOG_MAX_MKEY      = 18,
    VHCA_LOG_MAX_PD        = 14,
    VHCA_LOG_MAX_QP_SZ     = 15, /* send queue, 64-byte blocks; receive WQEs */
    VHCA_LOG_MAX_CQ_SZ     = 22,
    VHCA_LOG_MAX_SRQ_SZ    = 15,
    VHCA_LOG_MAX_STRIDE    = 9,  /* receive WQE, bytes: max_wqe_sz_rq 512 */
    VHCA_LOG_MAX_MSG       = 30,
    VHCA_LOG_MAX_RA        = 4,  /* RDMA reads and atomics in flight */
    VHCA_MAX_WQE_SQ        = 1024,
    VHCA_GID_TABLE         = 8,
    VHCA_SM_LID            = 1,  /* IB: of the subnet manager */
    VHCA_SUBNET_TIMEOUT    = 18,
    VHCA_MIN_UDP_SPORT     = 0xc000
};

/*
 * Syndromes. 0x317175 and 0x357275 are the firmware's (reported by users of
 * UCX and DPDK for these causes); the firmware's others are not public, so
 * those from VHCA_SYN_OWN on are this device's own.
 */
enum {
    VHCA_SYN_MKEY_PAGE_OFFSET = 0x317175, /* umem offset != VA mod page */
    VHCA_SYN_WQ_OFFSET        = 0x357275, /* not a multiple of page / 64 */
    VHCA_SYN_OWN              = 0xfc0000,
    VHCA_SYN_FIELD            = 0xfc0000, /* + bit offset of the field */
    VHCA_SYN_INLEN            = 0xfc8001,
    VHCA_SYN_OUTLEN,
    VHCA_SYN_PD,                          /* no such PD in this context */
    VHCA_SYN_UMEM,                        /* no such umem in this context */
    VHCA_SYN_UMEM_SIZE,                   /* queue or key reaches past it */
    VHCA_SYN_UAR,                         /* no such UAR in this context */
    VHCA_SYN_CQN,
    VHCA_SYN_RMPN,
    VHCA_SYN_DBR_ALIGN,
    VHCA_SYN_SIZE,                        /* past a capability */
    VHCA_SYN_VALUE,                       /* an encoding that does not exist */
    VHCA_SYN_ACCESS_MODE,
    VHCA_SYN_TRANSLATION,
    VHCA_SYN_AV,                          /* address vector and link type */
    VHCA_SYN_OPT_PARAM,
    VHCA_SYN_CAP_PAGE
};

/* ---- the device's configuration: caps.c ---- */

unsigned vhca_num_devices(void);
/** Entries of the partition key table; entry 0 is 0xffff. */
unsigned vhca_num_pkeys(unsigned dev);
/** Capability mask of the port (PortInfo:CapabilityMask). */
uint32_t vhca_port_cap_flags(unsigned dev);
uint64_t vhca_node_guid(unsigned dev);
uint64_t vhca_port_guid(unsigned dev);
void vhca_port_mac(unsigned dev, uint8_t mac[6]);
/** VHCA_NETDEV: the network interface that sysfs shows the RoCE port of device
 *  0 with, for programs that ask it for the port's addresses. NULL: none. */
const char *vhca_port_netdev(unsigned dev);
/** The Ethernet address of whoever owns the GID; false if nobody does. */
bool vhca_gid_to_mac(const uint8_t gid[16], uint8_t mac[6]);
/** QUERY_HCA_CAP: page for op_mod into cap[4096]; false: no such page. */
bool vhca_cap_page(unsigned dev, unsigned op_mod, uint8_t *cap);

/* ---- objects of a context: uobj.c ---- */

enum vhca_uobj_kind {
    /* Destroyed in this order when the file is closed */
    VHCA_UOBJ_DEVX_QP, VHCA_UOBJ_QP, VHCA_UOBJ_DEVX_RMP, VHCA_UOBJ_SRQ,
    VHCA_UOBJ_DEVX_CQ, VHCA_UOBJ_CQ, VHCA_UOBJ_DEVX_MKEY, VHCA_UOBJ_MR,
    VHCA_UOBJ_AH, VHCA_UOBJ_UMEM, VHCA_UOBJ_UAR, VHCA_UOBJ_PD, VHCA_UOBJ_LAST
};

#define VHCA_UOBJ_MAX_USES 6

/* What the kernel remembers of a verbs QP, beside the device */
struct vhca_kqp {
    uint8_t  type;               /* enum ib_uverbs_qp_type */
    uint8_t  state;              /* enum ib_qp_state, as last modified */
    bool     sq_sig_all;
    uint8_t  access;             /* flags and depth as last asked for: what */
    uint8_t  dest_rd_atomic;     /* is enabled follows from both */
    uint32_t max_send_wr, max_send_sge, max_inline;
    uint32_t max_recv_wr, max_recv_sge;
};

struct vhca_ksrq {
    uint32_t max_wr, max_sge;
};

struct vhca_uobj {
    enum vhca_uobj_kind kind;
    uint32_t            handle;
    unsigned            users;   /* objects made on top of this one */
    struct vhca_uobj   *uses[VHCA_UOBJ_MAX_USES];
    uint32_t            number;  /* PDN, QPN, CQN, RMPN, mkey index, page id */
    struct {                     /* umem */
        uint64_t addr;
        uint64_t len;
        uint32_t access;
        uint64_t page_size;      /* unit of its translation */
        uint32_t page_offset;    /* of its first byte in the first page */
    } umem;
    uint8_t             cqe_size; /* verbs CQ */
    struct vhca_kqp     qp;
    struct vhca_ksrq    srq;
};

struct vhca_ctx {
    pthread_mutex_t    lock;
    unsigned           dev;
    int                refs;     /* files and running ioctls: fdtab.c */
    bool               opened;   /* GET_CONTEXT was called */
    bool               devx;     /* has a firmware user id */
    uint32_t           owner;
    uint8_t            next_tag; /* low byte of the next MR's key */
    struct vhca_uobj **objs;     /* by handle - 1 */
    uint32_t           num_objs;
    uint32_t           free_hint;
};

int  vhca_uobj_alloc(struct vhca_ctx *ctx, enum vhca_uobj_kind kind,
                     struct vhca_uobj **obj_p);
void vhca_uobj_free(struct vhca_ctx *ctx, struct vhca_uobj *obj);
void vhca_uobj_use(struct vhca_uobj *obj, struct vhca_uobj *used);
/** NULL: no such handle, or of another kind. */
struct vhca_uobj *vhca_uobj_get(struct vhca_ctx *ctx, uint32_t handle,
                                enum vhca_uobj_kind kind);
struct vhca_uobj *vhca_uobj_by_number(struct vhca_ctx *ctx, uint32_t number,
                                      enum vhca_uobj_kind kind);
/** Destroys it in the device and frees it. -EBUSY while something uses it.
 *  Events the software must acknowledge go to counts_p, which may be NULL. */
int  vhca_uobj_destroy(struct vhca_ctx *ctx, struct vhca_uobj *obj,
                       struct vhca_event_counts *counts_p);
void vhca_uobj_destroy_all(struct vhca_ctx *ctx);

/* ---- memory: umem.c ---- */

/** What pinning for a device finds out: is it mapped, may it be written. */
int vhca_pin(uint64_t addr, uint64_t len, bool write);
int vhca_umem_reg(struct vhca_ctx *ctx, uint64_t addr, uint64_t len,
                  uint32_t access, uint64_t pgsz_bitmap,
                  struct vhca_uobj **obj_p);
uint32_t          vhca_umem_id(const struct vhca_uobj *umem);
struct vhca_uobj *vhca_umem_by_id(struct vhca_ctx *ctx, uint32_t id);

/* ---- files: fdtab.c ---- */

bool vhca_fd_is_ours(int fd);
int  vhca_fd_open_device(unsigned dev, int flags, int *fd_p);
int  vhca_fd_add_channel(struct vhca_ctx *ctx, int fd, uint32_t chan,
                         enum vhca_channel_kind kind);
bool vhca_fd_channel(struct vhca_ctx *ctx, int fd, enum vhca_channel_kind kind,
                     uint32_t *chan_p);
/** Takes a reference; NULL if fd is no device file of this process. */
struct vhca_ctx *vhca_fd_get_ctx(int fd);
void             vhca_fd_put_ctx(struct vhca_ctx *ctx);
/** The device a file stands for; false if fd is not a device file. */
bool vhca_fd_device(int fd, unsigned *dev_p);
/** fd is about to be closed; what it held is released. */
void vhca_fd_forget(int fd);
void vhca_fd_duped(int from, int to);

/* ---- sysfs.c ---- */

/** The path to use instead; `path` itself if it is none of ours. Makes the
 *  tree if it is needed. */
const char *vhca_sysfs_path(const char *path, char *buf, size_t size);
/** The number of /dev/infiniband/uverbs<n>, or -1. */
int vhca_cdev_number(const char *path);

/* ---- ioctl: uverbs.c and the methods ---- */

struct vhca_req {
    struct vhca_ctx            *ctx;
    struct ib_uverbs_ioctl_hdr *hdr;
};

int vhca_uverbs_ioctl(struct vhca_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr);

bool        vhca_req_has(const struct vhca_req *req, uint16_t id);
/** The attribute's bytes, wherever they are; NULL if absent. */
const void *vhca_req_in(const struct vhca_req *req, uint16_t id, size_t *len_p);
/** Copies at most size bytes, zero after the attribute's end. */
int         vhca_req_copy(const struct vhca_req *req, uint16_t id, void *buf,
                          size_t size);
uint64_t    vhca_req_u64(const struct vhca_req *req, uint16_t id,
                         uint64_t dflt);
/** Object handles, file descriptors. */
uint32_t    vhca_req_handle(const struct vhca_req *req, uint16_t id);
void        vhca_req_set_handle(struct vhca_req *req, uint16_t id, int64_t val);
/** Where an output is to go; NULL if the caller did not ask for it. */
void       *vhca_req_out(struct vhca_req *req, uint16_t id, size_t *len_p);
void        vhca_req_reply(struct vhca_req *req, uint16_t id, const void *data,
                           size_t len);

int vhca_dev_get_context(struct vhca_req *req);
int vhca_dev_query_context(struct vhca_req *req);
int vhca_dev_query_port(struct vhca_req *req);
int vhca_dev_query_gid_entry(struct vhca_req *req);
int vhca_dev_query_gid_table(struct vhca_req *req);
int vhca_dev_invoke_write(struct vhca_req *req);

int vhca_obj_pd_destroy(struct vhca_req *req);
int vhca_obj_pd_query(struct vhca_req *req);
int vhca_obj_mr_destroy(struct vhca_req *req);
int vhca_obj_mr_query(struct vhca_req *req);
int vhca_obj_ah_destroy(struct vhca_req *req);
int vhca_obj_uar_alloc(struct vhca_req *req);
int vhca_obj_uar_destroy(struct vhca_req *req);
int vhca_obj_umem_reg(struct vhca_req *req);
int vhca_obj_umem_dereg(struct vhca_req *req);
int vhca_obj_cq_create(struct vhca_req *req);
int vhca_obj_cq_destroy(struct vhca_req *req);
int vhca_obj_cq_resize(struct vhca_req *req); /* legacy */
int vhca_obj_async_alloc(struct vhca_req *req);
int vhca_obj_event_fd_alloc(struct vhca_req *req);
/* Legacy commands, by INVOKE_WRITE */
int vhca_obj_alloc_pd(struct vhca_req *req);
int vhca_obj_create_ah(struct vhca_req *req);
int vhca_obj_reg_mr(struct vhca_req *req);
int vhca_obj_rereg_mr(struct vhca_req *req);
int vhca_obj_comp_channel(struct vhca_req *req);

/* Verbs queue pairs and shared receive queues */
int vhca_qp_obj_create(struct vhca_req *req);
int vhca_qp_obj_destroy(struct vhca_req *req);
int vhca_qp_obj_modify(struct vhca_req *req);    /* legacy */
int vhca_qp_obj_modify_ex(struct vhca_req *req); /* legacy */
int vhca_qp_obj_query(struct vhca_req *req);     /* legacy */
int vhca_srq_obj_create(struct vhca_req *req);
int vhca_srq_obj_destroy(struct vhca_req *req);
int vhca_srq_obj_modify(struct vhca_req *req);   /* legacy */
int vhca_srq_obj_query(struct vhca_req *req);    /* legacy */
/** The errno the kernel makes of a command's status. */
int vhca_fw_errno(const struct vhca_fw *fw);
/** Events of these types go to the file of asynchronous events that attribute
 *  `id` names, if it does. */
int vhca_subscribe_async(struct vhca_req *req, uint16_t id,
                         const uint16_t *types, unsigned num, uint32_t number,
                         uint64_t cookie);

/* ---- firmware commands: devx.c and one file an object ---- */

struct vhca_cmd {
    struct vhca_ctx  *ctx;
    uint8_t          *in;      /* a copy: the kernel's fields are filled in */
    size_t            inlen;
    uint8_t          *out;     /* zeroed; status and syndrome by devx.c */
    size_t            outlen;
    struct vhca_fw    fw;
    struct vhca_uobj *obj;     /* CREATE: allocated; others: the handle's */
};

int vhca_devx_other(struct vhca_req *req);
int vhca_devx_obj_create(struct vhca_req *req);
int vhca_devx_obj_modify(struct vhca_req *req);
int vhca_devx_obj_query(struct vhca_req *req);
int vhca_devx_obj_destroy(struct vhca_req *req);
int vhca_devx_query_eqn(struct vhca_req *req);
int vhca_devx_query_uar(struct vhca_req *req);
int vhca_devx_subscribe_event(struct vhca_req *req);

/** Sets the verdict; false, so that a decoder can return it. */
bool vhca_cmd_fail(struct vhca_cmd *cmd, uint8_t status, uint32_t syndrome);

/* Decoders: true, or false with cmd->fw set */
bool vhca_cmd_query_hca_cap(struct vhca_cmd *cmd);
bool vhca_cmd_query_lag(struct vhca_cmd *cmd);
bool vhca_cmd_query_hca_vport_context(struct vhca_cmd *cmd);
bool vhca_cmd_create_mkey(struct vhca_cmd *cmd);
bool vhca_cmd_query_mkey(struct vhca_cmd *cmd);
bool vhca_cmd_create_cq(struct vhca_cmd *cmd);
bool vhca_cmd_create_rmp(struct vhca_cmd *cmd);
bool vhca_cmd_create_qp(struct vhca_cmd *cmd);
bool vhca_cmd_modify_qp(struct vhca_cmd *cmd);
bool vhca_cmd_query_qp(struct vhca_cmd *cmd);

/* Shared by the decoders; each fails the command and returns NULL/false */
struct vhca_uobj *vhca_cmd_pd(struct vhca_cmd *cmd, uint32_t pdn);
bool  vhca_cmd_uar(struct vhca_cmd *cmd, uint32_t page_id);
/** A work or completion queue of `len` bytes in a umem. */
void *vhca_cmd_ring(struct vhca_cmd *cmd, uint32_t umem_id, uint64_t offset,
                    uint64_t len);
/** An 8-byte doorbell record in a umem. */
void *vhca_cmd_dbrec(struct vhca_cmd *cmd, uint32_t umem_id, uint64_t offset);

#endif
