/* SPDX-License-Identifier: BSD-3-Clause */

/* Firmware commands as lines of VHCA_TRACE: the fields that are not zero, by
 * the layouts of prm_layout.h. */

#include <stdio.h>
#include <string.h>

#include "vhca/kernel.h"
#include "vhca/prm_table.h"
#include "vhca/trace.h"

static const char *status_name(uint8_t status)
{
    switch (status) {
    case VHCA_FW_OK:
        return "OK";
    case VHCA_FW_INTERNAL_ERR:
        return "INTERNAL_ERR";
    case VHCA_FW_BAD_OP:
        return "BAD_OP";
    case VHCA_FW_BAD_PARAM:
        return "BAD_PARAM";
    case VHCA_FW_BAD_SYS_STATE:
        return "BAD_SYS_STATE";
    case VHCA_FW_BAD_RESOURCE:
        return "BAD_RESOURCE";
    case VHCA_FW_RESOURCE_BUSY:
        return "RESOURCE_BUSY";
    case VHCA_FW_EXCEED_LIM:
        return "EXCEED_LIM";
    case VHCA_FW_BAD_RES_STATE:
        return "BAD_RES_STATE";
    case VHCA_FW_BAD_INDEX:
        return "BAD_INDEX";
    case VHCA_FW_NO_RESOURCES:
        return "NO_RESOURCES";
    case VHCA_FW_BAD_QP_STATE:
        return "BAD_QP_STATE";
    case VHCA_FW_BAD_PKT:
        return "BAD_PKT";
    case VHCA_FW_BAD_SIZE:
        return "BAD_SIZE";
    case VHCA_FW_BAD_INPUT_LEN:
        return "BAD_INPUT_LEN";
    case VHCA_FW_BAD_OUTPUT_LEN:
        return "BAD_OUTPUT_LEN";
    default:
        return "?";
    }
}

static bool is_zero(const uint8_t *box, unsigned bit, unsigned width)
{
    unsigned end = bit + width, part;

    for (; bit < end; bit += part) {
        part = (end - bit < 64) ? end - bit : 64;
        if (vhca_prm_get(box, bit, part) != 0) {
            return false;
        }
    }
    return true;
}

/* A number; whole bytes, if it is longer than numbers are */
static void add_field(struct vhca_trace *trace, const char *prefix,
                      const struct vhca_prm_field *field, const uint8_t *box,
                      unsigned bit)
{
    unsigned at;

    vhca_trace_add(trace, " %s%s=0x", prefix, field->name);
    if (field->width <= 64) {
        vhca_trace_add(trace, "%llx",
                       (unsigned long long)vhca_prm_get(box, bit,
                                                        field->width));
        return;
    }
    if (field->width > 128) {
        vhca_trace_add(trace, "(%u bits)", field->width);
        return;
    }
    for (at = 0; at + 8 <= field->width; at += 8) {
        vhca_trace_add(trace, "%02x",
                       (unsigned)vhca_prm_get(box, bit + at, 8));
    }
}

/* `bits`: how much of the mailbox there is */
static void add_fields(struct vhca_trace *trace, const char *prefix,
                       const struct vhca_prm_struct *s, const uint8_t *box,
                       unsigned base, size_t bits)
{
    const struct vhca_prm_field *field;
    const struct vhca_prm_struct *sub;
    unsigned i, bit;
    char path[64];

    for (i = 0; i < s->num_fields; ++i) {
        field = &s->fields[i];
        bit   = base + field->offset;
        if (((size_t)bit + field->width > bits) ||
            is_zero(box, bit, field->width)) {
            continue;
        }
        if (field->how & PRM_SUBS) {
            sub = &vhca_prm_structs[field->how & ~PRM_SUBS];
            snprintf(path, sizeof(path), "%s%s.", prefix, sub->name);
            /* both paths of a QP are of one structure */
            if (strcmp(field->name, "secondary_address_path") == 0) {
                snprintf(path, sizeof(path), "%ssecondary.", prefix);
            }
            add_fields(trace, path, sub, box, bit, bits);
        } else {
            add_field(trace, prefix, field, box, bit);
        }
    }
}

/* The capability page that was asked for (op_mod: page << 1 | current) */
static const char *cap_struct(const struct vhca_cmd *cmd)
{
    switch (PRM_GET(query_hca_cap_in, cmd->in, op_mod) >> 1) {
    case 0:
        return "cmd_hca_cap";
    case 3:
        return "atomic_caps";
    case 4:
        return "roce_cap";
    default:
        return "";
    }
}

static void add_output(struct vhca_trace *trace, const struct vhca_cmd *cmd,
                       const char *in)
{
    size_t len = strlen(in);
    const struct vhca_prm_struct *s;
    char name[40];

    if (strcmp(in, "query_hca_cap_in") == 0) {
        s = vhca_prm_find_struct(cap_struct(cmd));
        if (s != NULL) {
            vhca_trace_add(trace, " out:");
            add_fields(trace, "", s, cmd->out,
                       PRM_OFFSET(query_hca_cap_out, capability),
                       cmd->outlen * 8);
        }
        return;
    }

    /* <command>_in answers with <command>_out, if with more than a header */
    if ((len < 3) || (len > sizeof(name) - 2)) {
        return;
    }
    snprintf(name, sizeof(name), "%.*s_out", (int)len - 3, in);
    s = vhca_prm_find_struct(name);
    if (s != NULL) {
        vhca_trace_add(trace, " out:");
        add_fields(trace, "", s, cmd->out, 0, cmd->outlen * 8);
    }
}

void vhca_trace_cmd(const struct vhca_cmd *cmd, const char *name,
                    const char *in, bool ok)
{
    const struct vhca_prm_struct *s = (in == NULL) ? NULL :
                                      vhca_prm_find_struct(in);
    struct vhca_trace trace;

    vhca_trace_begin(&trace, "cmd");
    if (name != NULL) {
        vhca_trace_add(&trace, " %s", name);
    } else {
        vhca_trace_add(&trace, " 0x%03x",
                       (unsigned)vhca_prm_get(cmd->in, 0, 16));
    }
    if (ok) {
        vhca_trace_add(&trace, " OK");
    } else {
        vhca_trace_add(&trace, " %s (status=0x%02x syndrome=0x%x)",
                       status_name(cmd->fw.status), cmd->fw.status,
                       cmd->fw.syndrome);
    }

    if (s != NULL) {
        vhca_trace_add(&trace, " in:");
        add_fields(&trace, "", s, cmd->in, 0, cmd->inlen * 8);
        if (ok) {
            add_output(&trace, cmd, in);
        }
    }
    vhca_trace_end(&trace);
}

void vhca_trace_destroy(const struct vhca_uobj *obj, bool ok)
{
    static const struct {
        char name[14], number[12];
    } what[VHCA_UOBJ_LAST] = {
        [VHCA_UOBJ_DEVX_QP]   = {"DESTROY_QP", "qpn"},
        [VHCA_UOBJ_QP]        = {"DESTROY_QP", "qpn"},
        [VHCA_UOBJ_DEVX_RMP]  = {"DESTROY_RMP", "rmpn"},
        [VHCA_UOBJ_SRQ]       = {"DESTROY_RMP", "rmpn"},
        [VHCA_UOBJ_DEVX_CQ]   = {"DESTROY_CQ", "cqn"},
        [VHCA_UOBJ_CQ]        = {"DESTROY_CQ", "cqn"},
        [VHCA_UOBJ_DEVX_MKEY] = {"DESTROY_MKEY", "mkey_index"},
        [VHCA_UOBJ_MR]        = {"DESTROY_MKEY", "mkey_index"}
    };
    struct vhca_trace trace;

    if (what[obj->kind].name[0] == '\0') {
        return;
    }
    vhca_trace_begin(&trace, "cmd");
    vhca_trace_add(&trace, " %s %s in: %s=0x%x", what[obj->kind].name,
                   ok ? "OK" : "refused", what[obj->kind].number, obj->number);
    vhca_trace_end(&trace);
}
