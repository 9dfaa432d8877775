/* SPDX-License-Identifier: BSD-3-Clause */

/* What UCX's virtual file system shows of the transport. */

#ifndef UCT_HIXL_VFS_H_
#define UCT_HIXL_VFS_H_

#include <uct/api/uct.h>

/** Below uct/component/hixl/memory_domain/<name>: the device, how memory is
 *  registered, and the budget, which is the process's. */
void uct_hixl_md_vfs_init(uct_md_h tl_md);

/** Below the interface: its port, endpoints, credits, bounced bytes. */
void uct_hixl_iface_vfs_refresh(uct_iface_h tl_iface);

#endif
