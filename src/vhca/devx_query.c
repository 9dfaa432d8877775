/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about no object: QUERY_HCA_CAP, QUERY_LAG,
 * QUERY_HCA_VPORT_CONTEXT. */

#include <string.h>

#include "vhca/kernel.h"
#include "vhca/prm_table.h"

/* PRM: port_state, port_physical_state of hca_vport_context */
enum {
    PORT_STATE_ACTIVE     = 4,
    PORT_PHYSICAL_LINK_UP = 5
};

/* The page has 4 KiB; an output that is shorter gets its beginning. */
bool vhca_cmd_query_hca_cap(struct vhca_cmd *cmd)
{
    size_t len      = cmd->outlen - PRM_OFFSET(query_hca_cap_out,
                                               capability) / 8;
    unsigned op_mod = (unsigned)PRM_GET(query_hca_cap_in, cmd->in, op_mod);
    uint8_t page[4096];

    if (!vhca_cap_page(cmd->ctx->dev, op_mod, page)) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_CAP_PAGE);
    }

    memcpy(PRM_ADDR(query_hca_cap_out, cmd->out, capability), page,
           (len < sizeof(page)) ? len : sizeof(page));
    return true;
}

bool vhca_cmd_query_lag(struct vhca_cmd *cmd)
{
    (void)cmd;
    return true; /* lag_state 0: ports are not bonded */
}

bool vhca_cmd_query_hca_vport_context(struct vhca_cmd *cmd)
{
    const struct vhca_port_cfg *port = vhca_port_cfg(cmd->ctx->dev);
    uint8_t *vport = PRM_ADDR(query_hca_vport_context_out, cmd->out,
                              hca_vport_context);

    if (port->roce) {
        /* an Ethernet port has a NIC vport instead (QUERY_NIC_VPORT_CONTEXT) */
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_OP, 0);
    }

    PRM_SET(hca_vport_context, vport, port_physical_state,
            PORT_PHYSICAL_LINK_UP);
    PRM_SET(hca_vport_context, vport, port_state, PORT_STATE_ACTIVE);
    PRM_SET(hca_vport_context, vport, vport_state, PORT_STATE_ACTIVE);
    PRM_SET(hca_vport_context, vport, system_image_guid,
            vhca_node_guid(cmd->ctx->dev));
    PRM_SET(hca_vport_context, vport, node_guid,
            vhca_node_guid(cmd->ctx->dev));
    PRM_SET(hca_vport_context, vport, port_guid,
            vhca_port_guid(cmd->ctx->dev));
    PRM_SET(hca_vport_context, vport, cap_mask1,
            vhca_port_cap_flags(cmd->ctx->dev));
    PRM_SET(hca_vport_context, vport, lid, port->lid);
    PRM_SET(hca_vport_context, vport, sm_lid, VHCA_SM_LID);
    PRM_SET(hca_vport_context, vport, subnet_timeout, VHCA_SUBNET_TIMEOUT);
    return true;
}
