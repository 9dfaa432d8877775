/* SPDX-License-Identifier: BSD-3-Clause */

/* The component: how UCX comes to know of the transport. */

#include "hixl_log.h"
#include "hixl_md.h"
#include "hixl_vfs.h"

#include <ucs/sys/compiler_def.h>

/* hixl_iface.c, by UCT_TL_DEFINE_ENTRY */
extern uct_tl_t uct_hixl_tl;

uct_component_t uct_hixl_component = {
    .query_md_resources = uct_hixl_query_md_resources,
    .md_open            = uct_hixl_md_open,
    .cm_open            = (uct_component_cm_open_func_t)
                          ucs_empty_function_return_unsupported,
    .rkey_unpack        = uct_hixl_compat_rkey_unpack,
    .rkey_ptr           = (uct_component_rkey_ptr_func_t)
                          ucs_empty_function_return_unsupported,
    .rkey_release       = uct_hixl_rkey_release,
    UCT_HIXL_COMPONENT_RKEY_COMPARE
    .name               = UCT_HIXL_NAME,
    .md_config          = {
        .name   = "HIXL memory domain",
        .prefix = UCT_HIXL_CONFIG_PREFIX,
        .table  = uct_hixl_md_config_table,
        .size   = sizeof(uct_hixl_md_config_t),
    },
    .cm_config          = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list            = UCT_COMPONENT_TL_LIST_INITIALIZER(
                              &uct_hixl_component),
    .flags              = 0,
    .md_vfs_init        = uct_hixl_md_vfs_init,
};

/* In place of UCT_COMPONENT_REGISTER and UCT_TL_DEFINE: a UCX of another minor
 * version has other structs, and must not get to see ours. */
UCS_STATIC_INIT
{
    if (!uct_hixl_compat_check_version()) {
        return;
    }

    uct_hixl_log_init();
    uct_component_register(&uct_hixl_component);
    uct_tl_register(&uct_hixl_component, &uct_hixl_tl);
}
