/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DevX: which firmware commands the kernel lets a process send (kernel
 * drivers/infiniband/hw/mlx5/devx.c), what it fills in, and the checks that
 * every command's mailbox must pass before its decoder sees it.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/mlx5_user_ioctl_cmds.h>

#include "vhca/fault.h"
#include "vhca/kernel.h"
#include "vhca/prm_table.h"
#include "vhca/trace.h"

/* Every command starts alike (mlx5_ifc.h, general_obj_in_cmd_hdr) */
#define HDR_BYTES 16u

/* rdma-core's tests (mlx5_prm_structs.py, QueryCmdHcaCapOut) ask for the first
 * half of a capability page; the drivers for all of it. */
#define CAP_OUT_BYTES (HDR_BYTES + 2048)

enum cmd_class { CLASS_GENERAL, CLASS_CREATE, CLASS_MODIFY, CLASS_QUERY };

struct command {
    uint16_t            opcode;
    uint8_t             cls;
    uint8_t             check;   /* PRM_ALL, or the step of a QP's life */
    enum vhca_prm_id    in;
    uint16_t            in_bytes, out_bytes;
    enum vhca_uobj_kind kind;    /* the object it makes or is about */
    bool                (*run)(struct vhca_cmd *cmd);
    char                stat[24];
};

#define COMMAND(_opcode, _cls, _check, _in, _out_bytes, _kind, _run, _name) \
    {_opcode, _cls, _check, VHCA_PRM_ID_##_in, PRM_BYTES(_in), _out_bytes,  \
     _kind, _run, "cmd." _name}

static const struct command commands[] = {
    COMMAND(0x100, CLASS_GENERAL, PRM_ALL, query_hca_cap_in, CAP_OUT_BYTES,
            VHCA_UOBJ_LAST, vhca_cmd_query_hca_cap, "QUERY_HCA_CAP"),
    COMMAND(0x842, CLASS_GENERAL, PRM_ALL, query_lag_in,
            PRM_BYTES(query_lag_out), VHCA_UOBJ_LAST, vhca_cmd_query_lag,
            "QUERY_LAG"),
    COMMAND(0x762, CLASS_GENERAL, PRM_ALL, query_hca_vport_context_in,
            PRM_BYTES(query_hca_vport_context_out), VHCA_UOBJ_LAST,
            vhca_cmd_query_hca_vport_context, "QUERY_HCA_VPORT"),
    COMMAND(0x200, CLASS_CREATE, PRM_ALL, create_mkey_in,
            PRM_BYTES(create_mkey_out), VHCA_UOBJ_DEVX_MKEY,
            vhca_cmd_create_mkey, "CREATE_MKEY"),
    COMMAND(0x201, CLASS_QUERY, PRM_ALL, query_mkey_in,
            PRM_BYTES(query_mkey_out), VHCA_UOBJ_DEVX_MKEY,
            vhca_cmd_query_mkey, "QUERY_MKEY"),
    COMMAND(0x400, CLASS_CREATE, PRM_ALL, create_cq_in,
            PRM_BYTES(create_cq_out), VHCA_UOBJ_DEVX_CQ, vhca_cmd_create_cq,
            "CREATE_CQ"),
    COMMAND(0x90c, CLASS_CREATE, PRM_ALL, create_rmp_in,
            PRM_BYTES(create_rmp_out), VHCA_UOBJ_DEVX_RMP,
            vhca_cmd_create_rmp, "CREATE_RMP"),
    COMMAND(0x500, CLASS_CREATE, PRM_CRE, create_qp_in,
            PRM_BYTES(create_qp_out), VHCA_UOBJ_DEVX_QP, vhca_cmd_create_qp,
            "CREATE_QP"),
    COMMAND(0x502, CLASS_MODIFY, PRM_INI, rst2init_qp_in, HDR_BYTES,
            VHCA_UOBJ_DEVX_QP, vhca_cmd_modify_qp, "RST2INIT_QP"),
    COMMAND(0x503, CLASS_MODIFY, PRM_RTR, init2rtr_qp_in, HDR_BYTES,
            VHCA_UOBJ_DEVX_QP, vhca_cmd_modify_qp, "INIT2RTR_QP"),
    COMMAND(0x504, CLASS_MODIFY, PRM_RTS, rtr2rts_qp_in, HDR_BYTES,
            VHCA_UOBJ_DEVX_QP, vhca_cmd_modify_qp, "RTR2RTS_QP"),
    COMMAND(0x507, CLASS_MODIFY, PRM_ALL, qp_2err_in, HDR_BYTES,
            VHCA_UOBJ_DEVX_QP, vhca_cmd_modify_qp, "2ERR_QP"),
    COMMAND(0x50a, CLASS_MODIFY, PRM_ALL, qp_2rst_in, HDR_BYTES,
            VHCA_UOBJ_DEVX_QP, vhca_cmd_modify_qp, "2RST_QP"),
    COMMAND(0x50b, CLASS_QUERY, PRM_ALL, query_qp_in,
            PRM_BYTES(query_qp_out), VHCA_UOBJ_DEVX_QP, vhca_cmd_query_qp,
            "QUERY_QP"),
};

/* What else devx_is_obj_create_cmd, .._modify_cmd, .._query_cmd and
 * devx_is_general_cmd let through; this device's firmware has none of it. */
static const uint16_t others_create[] = {
    0x600, 0x700, 0x705, 0x710, 0x717, 0x771, 0x782, 0x800, 0x806, 0x80e,
    0x816, 0x827, 0x829, 0x900, 0x904, 0x908, 0x912, 0x916, 0x930, 0x933,
    0x936, 0x939, 0x93d, 0x940, 0xa00
};
static const uint16_t others_modify[] = {
    0x403, 0x505, 0x506, 0x50c, 0x50e, 0x703, 0x708, 0x71a, 0x714, 0x785,
    0x901, 0x905, 0x909, 0x90d, 0x913, 0x917, 0x92f, 0xa01
};
static const uint16_t others_query[] = {
    0x402, 0x702, 0x707, 0x713, 0x719, 0x773, 0x784, 0x903, 0x907, 0x90b,
    0x90f, 0x915, 0x919, 0x932, 0x935, 0x937, 0x93b, 0xa02
};
static const uint16_t others_general[] = {
    0x101, 0x10a, 0x740, 0x750, 0x752, 0x754, 0x760, 0x76f, 0x770, 0x80a,
    0x80d, 0x822, 0x824, 0x826
};

/* A range of opcodes that are general by their number (mlx5_ifc.h,
 * MLX5_CMD_OP_GENERAL_START and _END) */
#define GENERAL_FIRST 0xb00
#define GENERAL_LAST  0xcff

#define ARRAY_SIZE(_a) (sizeof(_a) / sizeof((_a)[0]))

static bool kernel_allows(enum cmd_class cls, uint16_t opcode)
{
    static const struct {
        const uint16_t *ops;
        unsigned        num;
    } lists[] = {
        [CLASS_GENERAL] = {others_general, ARRAY_SIZE(others_general)},
        [CLASS_CREATE]  = {others_create, ARRAY_SIZE(others_create)},
        [CLASS_MODIFY]  = {others_modify, ARRAY_SIZE(others_modify)},
        [CLASS_QUERY]   = {others_query, ARRAY_SIZE(others_query)},
    };
    unsigned i;

    if ((cls == CLASS_GENERAL) && (opcode >= GENERAL_FIRST) &&
        (opcode <= GENERAL_LAST)) {
        return true;
    }

    for (i = 0; i < lists[cls].num; ++i) {
        if (lists[cls].ops[i] == opcode) {
            return true;
        }
    }

    return false;
}

bool vhca_cmd_fail(struct vhca_cmd *cmd, uint8_t status, uint32_t syndrome)
{
    cmd->fw.status   = status;
    cmd->fw.syndrome = syndrome;
    return false;
}

/* Lengths, then every field: what the firmware checks first */
static bool check_mailbox(const struct command *command, struct vhca_cmd *cmd)
{
    const struct vhca_prm_field *bad;
    size_t i;

    if (cmd->inlen < command->in_bytes) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_INPUT_LEN, VHCA_SYN_INLEN);
    }
    if (cmd->outlen < command->out_bytes) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_OUTPUT_LEN, VHCA_SYN_OUTLEN);
    }

    bad = vhca_prm_check(command->in, cmd->in, command->check);
    if (bad != NULL) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM,
                             VHCA_SYN_FIELD + bad->offset);
    }

    /* A page list behind: with umems there is none */
    for (i = command->in_bytes; i < cmd->inlen; ++i) {
        if (cmd->in[i] != 0) {
            return vhca_cmd_fail(cmd, VHCA_FW_BAD_INPUT_LEN, VHCA_SYN_INLEN);
        }
    }

    return true;
}

static const struct command *find_command(enum cmd_class cls, uint16_t opcode)
{
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(commands); ++i) {
        if ((commands[i].opcode == opcode) && (commands[i].cls == cls)) {
            return &commands[i];
        }
    }

    return NULL;
}

static void trace_command(const struct command *command,
                          const struct vhca_cmd *cmd, bool ok)
{
    if (command == NULL) {
        vhca_trace_cmd(cmd, NULL, NULL, ok);
    } else {
        vhca_trace_cmd(cmd, command->stat + strlen("cmd."),
                       vhca_prm_structs[command->in].name, ok);
    }
}

/* Runs the command and writes the output mailbox. A verdict other than OK is
 * EREMOTEIO, the output is copied nevertheless (mlx5_cmd_do). */
static int run_command(struct vhca_req *req, const struct command *command,
                       struct vhca_cmd *cmd, uint16_t attr_out)
{
    uint16_t opcode = (uint16_t)vhca_prm_get(cmd->in, 0, 16);
    bool ok         = false;

    if (vhca_fault_cmd(opcode, &cmd->fw)) {
        /* told to fail */
    } else if (command == NULL) {
        ok = vhca_cmd_fail(cmd, VHCA_FW_BAD_OP, 0);
    } else {
        ok = check_mailbox(command, cmd) && command->run(cmd);
        vhca_stat_add(command->stat, 1);
    }

    if (!ok) {
        vhca_stat_add("cmd.failed", 1);
        memset(cmd->out, 0, cmd->outlen);
        cmd->out[0] = cmd->fw.status;
        vhca_prm_set(cmd->out, 0x20, 0x20, cmd->fw.syndrome);
    }
    if (vhca_tracing()) {
        trace_command(command, cmd, ok);
    }

    vhca_req_reply(req, attr_out, cmd->out, cmd->outlen);
    return ok ? 0 : -EREMOTEIO;
}

/* devx_is_whitelist_cmd: these go with an id of the driver's own */
static bool needs_no_uid(uint16_t opcode)
{
    return (opcode == 0x100) || /* QUERY_HCA_CAP */
           (opcode == 0x740) || /* QUERY_ESW_FUNCTIONS */
           (opcode == 0x752) || /* QUERY_ESW_VPORT_CONTEXT */
           (opcode == 0x762);   /* QUERY_HCA_VPORT_CONTEXT */
}

/* The mailboxes of a request; *opcode_p from the input */
static int get_mailboxes(struct vhca_req *req, uint16_t attr_in,
                         uint16_t attr_out, struct vhca_cmd *cmd,
                         uint16_t *opcode_p)
{
    const void *in;

    memset(cmd, 0, sizeof(*cmd));
    cmd->ctx = req->ctx;
    in       = vhca_req_in(req, attr_in, &cmd->inlen);
    (void)vhca_req_out(req, attr_out, &cmd->outlen);
    /* UVERBS_ATTR_MIN_SIZE of the headers */
    if ((cmd->inlen < HDR_BYTES) || (cmd->outlen < HDR_BYTES)) {
        return -EINVAL;
    }
    /* devx_get_uid */
    *opcode_p = (uint16_t)vhca_prm_get(in, 0, 16);
    if (!req->ctx->devx && !needs_no_uid(*opcode_p)) {
        return -EINVAL;
    }

    cmd->in  = calloc(1, cmd->inlen + 1);
    cmd->out = calloc(1, cmd->outlen);
    if ((cmd->in == NULL) || (cmd->out == NULL)) {
        free(cmd->in);
        free(cmd->out);
        return -ENOMEM;
    }

    memcpy(cmd->in, in, cmd->inlen);
    vhca_prm_set(cmd->in, 0x10, 0x10, req->ctx->owner & 0xffff); /* uid */
    return 0;
}

static void put_mailboxes(struct vhca_cmd *cmd)
{
    free(cmd->in);
    free(cmd->out);
}

/* The same of a command about an object: none of them goes to another function
 * of the device (vhca_tunnel_id of the header) */
static int get_obj_mailboxes(struct vhca_req *req, uint16_t attr_in,
                             uint16_t attr_out, struct vhca_cmd *cmd,
                             uint16_t *opcode_p)
{
    int ret = get_mailboxes(req, attr_in, attr_out, cmd, opcode_p);

    if ((ret == 0) && (vhca_prm_get(cmd->in, 0x20, 0x10) != 0)) {
        put_mailboxes(cmd);
        return -EINVAL;
    }

    return ret;
}

int vhca_devx_other(struct vhca_req *req)
{
    struct vhca_cmd cmd;
    const struct command *command;
    uint16_t opcode;
    int ret;

    ret = get_mailboxes(req, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN,
                        MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, &cmd, &opcode);
    if (ret != 0) {
        return ret;
    }

    command = find_command(CLASS_GENERAL, opcode);
    if ((command == NULL) && !kernel_allows(CLASS_GENERAL, opcode)) {
        ret = -EINVAL;
    } else {
        ret = run_command(req, command, &cmd,
                          MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT);
    }

    put_mailboxes(&cmd);
    return ret;
}

/* What the kernel itself looks at before the firmware does */
static int kernel_check_create(const struct vhca_cmd *cmd, uint16_t opcode)
{
    uint32_t eqn;

    switch (opcode) {
    case 0x200:
        /* devx_handle_mkey_create: the header and the mkey context */
        return (cmd->inlen < PRM_OFFSET(create_mkey_in,
                                        memory_key_mkey_entry) / 8 +
                             PRM_BYTES(mkc)) ? -EINVAL :
               vhca_fault_mkey_kernel();
    case 0x400:
        if (cmd->inlen < PRM_BYTES(create_cq_in)) {
            return 0; /* the firmware refuses it */
        }
        /* mlx5_create_cq: the EQ must be one of the driver's */
        eqn = (uint32_t)PRM_GET(cqc, PRM_CADDR(create_cq_in, cmd->in,
                                               cq_context),
                                c_eqn_or_apu_element);
        return ((eqn < VHCA_FIRST_EQN) ||
                (eqn >= VHCA_FIRST_EQN + VHCA_COMP_VECTORS)) ? -ENOENT : 0;
    default:
        return 0;
    }
}

int vhca_devx_obj_create(struct vhca_req *req)
{
    struct vhca_cmd cmd;
    const struct command *command;
    uint16_t opcode;
    int ret;

    ret = get_obj_mailboxes(req, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN,
                            MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, &cmd,
                            &opcode);
    if (ret != 0) {
        return ret;
    }

    command = find_command(CLASS_CREATE, opcode);
    if ((command == NULL) && !kernel_allows(CLASS_CREATE, opcode)) {
        ret = -EINVAL;
        goto out;
    }

    ret = kernel_check_create(&cmd, opcode);
    if (ret != 0) {
        goto out;
    }

    if (command != NULL) {
        ret = vhca_uobj_alloc(req->ctx, command->kind, &cmd.obj);
        if (ret != 0) {
            goto out;
        }
    }

    ret = run_command(req, command, &cmd,
                      MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT);
    if (ret == 0) {
        vhca_req_set_handle(req, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE,
                            cmd.obj->handle);
    } else if (cmd.obj != NULL) {
        vhca_uobj_free(req->ctx, cmd.obj);
    }

out:
    put_mailboxes(&cmd);
    return ret;
}

static struct vhca_uobj *devx_obj(struct vhca_ctx *ctx, uint32_t handle)
{
    static const enum vhca_uobj_kind kinds[] = {
        VHCA_UOBJ_DEVX_QP, VHCA_UOBJ_DEVX_RMP, VHCA_UOBJ_DEVX_CQ,
        VHCA_UOBJ_DEVX_MKEY
    };
    struct vhca_uobj *obj;
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(kinds); ++i) {
        obj = vhca_uobj_get(ctx, handle, kinds[i]);
        if (obj != NULL) {
            return obj;
        }
    }

    return NULL;
}

/* MODIFY and QUERY name the object twice: by handle and in the mailbox */
static int obj_command(struct vhca_req *req, enum cmd_class cls,
                       uint16_t attr_handle, uint16_t attr_in,
                       uint16_t attr_out)
{
    struct vhca_cmd cmd;
    const struct command *command;
    uint16_t opcode;
    int ret;

    ret = get_obj_mailboxes(req, attr_in, attr_out, &cmd, &opcode);
    if (ret != 0) {
        return ret;
    }

    cmd.obj = devx_obj(req->ctx, vhca_req_handle(req, attr_handle));
    command = find_command(cls, opcode);
    if (cmd.obj == NULL) {
        ret = -ENOENT;
    } else if ((command == NULL) && !kernel_allows(cls, opcode)) {
        ret = -EINVAL;
    } else if ((command == NULL) || (command->kind != cmd.obj->kind) ||
               /* qpn, rmpn, cqn and mkey_index share their place */
               (PRM_GET(query_qp_in, cmd.in, qpn) != cmd.obj->number)) {
        ret = -EINVAL; /* devx_is_valid_obj_id */
    } else {
        ret = run_command(req, command, &cmd, attr_out);
    }

    put_mailboxes(&cmd);
    return ret;
}

int vhca_devx_obj_modify(struct vhca_req *req)
{
    return obj_command(req, CLASS_MODIFY, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE,
                       MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
                       MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT);
}

int vhca_devx_obj_query(struct vhca_req *req)
{
    return obj_command(req, CLASS_QUERY, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE,
                       MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
                       MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT);
}

int vhca_devx_obj_destroy(struct vhca_req *req)
{
    struct vhca_uobj *obj;

    obj = devx_obj(req->ctx,
                   vhca_req_handle(req, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE));
    return (obj != NULL) ? vhca_uobj_destroy(req->ctx, obj, NULL) : -ENOENT;
}

int vhca_devx_query_eqn(struct vhca_req *req)
{
    uint32_t eqn;
    uint64_t vector;

    vector = vhca_req_u64(req, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, 0);
    if (vector >= VHCA_COMP_VECTORS) {
        return -EINVAL; /* mlx5_comp_eqn_get */
    }

    eqn = VHCA_FIRST_EQN + (uint32_t)vector;
    vhca_req_reply(req, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, &eqn,
                   sizeof(eqn));
    return 0;
}

int vhca_devx_query_uar(struct vhca_req *req)
{
    (void)req;
    return -EINVAL; /* bfregn_to_uar_index: no doorbell pages of GET_CONTEXT */
}

/* devx.c, is_legacy_obj_event_num: event types an object may have */
static bool obj_event(uint16_t type)
{
    switch (type) {
    case 0x00: case 0x01: case 0x02: case 0x03: case 0x04: case 0x05:
    case 0x07: case 0x10: case 0x11: case 0x12: case 0x13: case 0x14:
    case 0x18: case 0x1c: case 0x1d:
        return true;
    default:
        return false;
    }
}

int vhca_devx_subscribe_event(struct vhca_req *req)
{
    struct vhca_uobj *obj = NULL;
    const uint8_t *list;
    uint16_t type;
    uint64_t cookie;
    uint32_t chan, handle;
    size_t len, i;
    int ret;

    if (!req->ctx->devx) {
        return -EINVAL;
    }
    if (vhca_req_has(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM)) {
        /* the kernel: a cookie has no place in an eventfd */
        return vhca_req_has(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE) ?
               -EINVAL : -EOPNOTSUPP;
    }
    if (!vhca_fd_channel(req->ctx,
                         (int)vhca_req_handle(
                                 req,
                                 MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE),
                         VHCA_CHANNEL_DEVX_EVENT, &chan)) {
        return -EBADF;
    }

    if (vhca_req_has(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE)) {
        handle = vhca_req_handle(
                req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE);
        obj    = devx_obj(req->ctx, handle);
        if (obj == NULL) {
            return -ENOENT;
        }
    }

    cookie = vhca_req_u64(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, 0);
    list   = vhca_req_in(req,
                         MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST,
                         &len);
    if ((len == 0) || (len % sizeof(type) != 0) ||
        (len / sizeof(type) > 16 /* MAX_NUM_EVENTS */)) {
        return -EINVAL;
    }

    /* is_valid_events_legacy: an object's events, or the port's */
    for (i = 0; i < len; i += sizeof(type)) {
        memcpy(&type, list + i, sizeof(type));
        if ((obj != NULL) ? !obj_event(type) : (type != 0x09)) {
            return -EINVAL;
        }
    }

    for (i = 0; i < len; i += sizeof(type)) {
        memcpy(&type, list + i, sizeof(type));
        ret = vhca_event_subscribe(chan, type,
                                   (obj != NULL) ? obj->number : 0, cookie);
        if (ret != 0) {
            return ret;
        }
    }

    return 0;
}
