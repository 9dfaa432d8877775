/* SPDX-License-Identifier: BSD-3-Clause */

/* Capabilities: what QUERY_HCA_CAP returns, decoded. */

#ifndef HX_CAPS_H_
#define HX_CAPS_H_

#include "hx.h"

/* Maximal message of a QP: what mlx5 devices take, and RC's own is 2^31 */
#define HX_LOG_MAX_MSG 30

/* Each decodes one type of capability (4096 bytes) into its part of caps */
void hx_caps_decode_general(const void *cap, struct hx_caps *caps);
void hx_caps_decode_atomic(const void *cap, struct hx_caps *caps);
void hx_caps_decode_roce(const void *cap, struct hx_caps *caps);

/** What the device lacks for us, NULL if nothing */
const char *hx_caps_missing(const struct hx_caps *caps);

/** Of a QP's responder: PRM_QPC_ATOMIC_MODE_* */
uint8_t hx_caps_atomic_mode(const struct hx_caps *caps);

/** Queries all types that the device has; failures are logged at `level` */
int hx_caps_query(struct ibv_context *ibv, struct hx_caps *caps_p,
                  enum hx_log_level level);

#endif
