/* SPDX-License-Identifier: BSD-3-Clause */

/* Keys of a kind that the caller chose. */

#ifndef HX_MKEY_H_
#define HX_MKEY_H_

#include "hx.h"

/** A umem and a direct key over it, whatever the device's mode; len > 0.
 *  hx_mkey_destroy() destroys it. */
int hx_mkey_create_umem(struct hx_dev *dev, void *addr, size_t len,
                        uint32_t access, struct hx_mkey *mkey_p);

#endif
