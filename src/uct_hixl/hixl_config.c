/* SPDX-License-Identifier: BSD-3-Clause */

/* The interface's configuration, and what becomes of it. */

#include "hixl_ep.h"

#include <ucs/sys/math.h>

/* Of a send queue, in basic blocks: two moderation periods and WQEs to spare */
#define UCT_HIXL_MIN_TX_QUEUE   64
#define UCT_HIXL_MIN_TX_CQ      256
#define UCT_HIXL_MAX_CQ         UCS_BIT(22)
#define UCT_HIXL_MIN_RX_QUEUE   16
#define UCT_HIXL_MAX_QUEUE      UCS_BIT(15) /* indexes have 16 bits */

/* A wireup message of UCP fits the smallest */
#define UCT_HIXL_MIN_SEG        ((size_t)UCS_KBYTE)
#define UCT_HIXL_MAX_SEG        ((size_t)UCS_MBYTE)

#define UCT_HIXL_MAX_ZCOPY      ((size_t)UCS_GBYTE)

ucs_config_field_t uct_hixl_iface_config_table[] = {
    {"", "", NULL,
     ucs_offsetof(uct_hixl_iface_config_t, super),
     UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},

    {"SEG_SIZE", "8kb",
     "Size of receive buffers and of the buffers of buffered copies: the\n"
     "largest active message.",
     ucs_offsetof(uct_hixl_iface_config_t, seg_size),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"TX_QUEUE_LEN", "256",
     "Length of an endpoint's send queue, in blocks of 64 bytes (a work\n"
     "request takes one to four), rounded up to a power of two.",
     ucs_offsetof(uct_hixl_iface_config_t, tx_queue_len),
     UCS_CONFIG_TYPE_UINT},

    {"RX_QUEUE_LEN", "512",
     "Number of receive buffers that all endpoints share, rounded up to a\n"
     "power of two.",
     ucs_offsetof(uct_hixl_iface_config_t, rx_queue_len),
     UCS_CONFIG_TYPE_UINT},

    {"TX_CQ_LEN", "4096",
     "Length of the send completion queue: how many blocks of 64 bytes may\n"
     "be outstanding on all endpoints together, rounded up to a power of two.",
     ucs_offsetof(uct_hixl_iface_config_t, tx_cq_len),
     UCS_CONFIG_TYPE_UINT},

    {"TX_MODERATION", "64",
     "How many blocks of 64 bytes of short and buffered operations are posted\n"
     "before one of them asks for a completion; at most a quarter of\n"
     "TX_QUEUE_LEN.",
     ucs_offsetof(uct_hixl_iface_config_t, tx_moderation),
     UCS_CONFIG_TYPE_UINT},

    {"MAX_INLINE", "220",
     "Largest payload of short operations, which is copied into the send\n"
     "queue; at most 220 bytes for put, 235 for active messages.",
     ucs_offsetof(uct_hixl_iface_config_t, max_inline),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"MAX_IOV", "14",
     "Most local buffers of one zero-copy operation; at most 14, and 10 for\n"
     "active messages.",
     ucs_offsetof(uct_hixl_iface_config_t, max_iov),
     UCS_CONFIG_TYPE_UINT},

    {"TX_MAX_BUFS", "-1",
     "Most send buffers of an interface. -1 is infinite.",
     ucs_offsetof(uct_hixl_iface_config_t, tx_mpool.max_bufs),
     UCS_CONFIG_TYPE_INT},

    {"TX_BUFS_GROW", "0",
     "How many send buffers are added when there are none left. 0: 64.",
     ucs_offsetof(uct_hixl_iface_config_t, tx_mpool.bufs_grow),
     UCS_CONFIG_TYPE_UINT},

    {"RX_MAX_BUFS", "-1",
     "Most receive buffers of an interface, those in the queue and those\n"
     "that the application has not released yet. -1 is infinite.",
     ucs_offsetof(uct_hixl_iface_config_t, rx_mpool.max_bufs),
     UCS_CONFIG_TYPE_INT},

    {"RX_BUFS_GROW", "0",
     "How many receive buffers are added when there are none left. 0: an\n"
     "eighth more than RX_QUEUE_LEN.",
     ucs_offsetof(uct_hixl_iface_config_t, rx_mpool.bufs_grow),
     UCS_CONFIG_TYPE_UINT},

    {"CM_ADDR", "",
     "IP addresses, at most two, at which this process takes connections,\n"
     "with a comma between them. Empty: chosen from those of the host.",
     ucs_offsetof(uct_hixl_iface_config_t, cm_addr),
     UCS_CONFIG_TYPE_STRING},

    {"CM_TIMEOUT", "10s",
     "How long making a connection may take before the endpoint fails.",
     ucs_offsetof(uct_hixl_iface_config_t, cm_timeout),
     UCS_CONFIG_TYPE_TIME},

    {"GID_INDEX", "auto",
     "Index of the port's GID. auto: RoCE version 2 with an IPv4 address\n"
     "first, then any of version 2, then the first.",
     ucs_offsetof(uct_hixl_iface_config_t, gid_index),
     UCS_CONFIG_TYPE_ULUNITS},

    {"TIMEOUT", "18",
     "How long the device waits for an acknowledgement before it sends again,\n"
     "as the exponent n of 4.096 us * 2^n; 18 is 1.07 s. 0 is infinite.",
     ucs_offsetof(uct_hixl_iface_config_t, timeout),
     UCS_CONFIG_TYPE_UINT},

    {"RETRY_COUNT", "7",
     "How often the device sends again before the endpoint fails; at most 7.",
     ucs_offsetof(uct_hixl_iface_config_t, retry_count),
     UCS_CONFIG_TYPE_UINT},

    {"RNR_RETRY_COUNT", "7",
     "How often the device sends again when the peer has no receive buffer;\n"
     "at most 7, which is infinite.",
     ucs_offsetof(uct_hixl_iface_config_t, rnr_retry),
     UCS_CONFIG_TYPE_UINT},

    {NULL}
};

/* log2 of a length rounded up, within what the device and our indexes take */
static unsigned uct_hixl_log_len(unsigned length, unsigned min, unsigned max,
                                 unsigned log_dev_max)
{
    unsigned rounded = ucs_roundup_pow2(ucs_min(ucs_max(length, min), max));

    return ucs_min(ucs_ilog2(rounded), log_dev_max);
}

unsigned uct_hixl_config_log_tx_cq(const uct_hixl_iface_config_t *config,
                                   const struct hx_caps *caps)
{
    return uct_hixl_log_len(config->tx_cq_len, UCT_HIXL_MIN_TX_CQ,
                            UCT_HIXL_MAX_CQ, caps->log_max_cq_sz);
}

unsigned uct_hixl_config_log_rx_queue(const uct_hixl_iface_config_t *config,
                                      const struct hx_caps *caps)
{
    /* The completion queue is twice as long */
    return uct_hixl_log_len(config->rx_queue_len, UCT_HIXL_MIN_RX_QUEUE,
                            UCT_HIXL_MAX_QUEUE, caps->log_max_cq_sz - 1);
}

ucs_status_t uct_hixl_iface_init_config(uct_hixl_iface_t *iface,
                                        const uct_hixl_iface_config_t *config)
{
    const struct hx_caps *caps = &iface->md->dev->caps;

    if ((config->timeout > 31) || (config->retry_count > 7) ||
        (config->rnr_retry > 7) || (config->seg_size < UCT_HIXL_MIN_SEG) ||
        (config->seg_size > UCT_HIXL_MAX_SEG)) {
        ucs_error("%s: UCX_HIXL_TIMEOUT must be at most 31, RETRY_COUNT and "
                  "RNR_RETRY_COUNT at most 7, SEG_SIZE %zu to %zu",
                  iface->md->dev->name, UCT_HIXL_MIN_SEG, UCT_HIXL_MAX_SEG);
        return UCS_ERR_INVALID_PARAM;
    }

    iface->config.log_sq_bb     = uct_hixl_log_len(config->tx_queue_len,
                                                   UCT_HIXL_MIN_TX_QUEUE,
                                                   UCT_HIXL_MAX_QUEUE,
                                                   caps->log_max_qp_sz);
    iface->config.timeout       = config->timeout;
    iface->config.retry_count   = config->retry_count;
    iface->config.rnr_retry     = config->rnr_retry;
    iface->config.cm_addr       = config->cm_addr;
    iface->config.cm_timeout    = config->cm_timeout;
    iface->config.seg_size      = config->seg_size;
    iface->config.max_put_short = ucs_min(config->max_inline,
                                          (size_t)HX_WRITE_INLINE_MAX);
    iface->config.max_am_short  = ucs_min(config->max_inline,
                                          (size_t)HX_SEND_INLINE_MAX - 1);
    iface->config.max_zcopy     = ucs_min(UCT_HIXL_MAX_ZCOPY,
                                          UCS_BIT(caps->log_max_msg));
    iface->config.max_iov       = ucs_min(config->max_iov,
                                          (unsigned)HX_RDMA_SGE_MAX);
    iface->config.am_max_iov    = ucs_min(config->max_iov,
                                          UCT_HIXL_AM_MAX_IOV);
    iface->tx.moderation        = ucs_min(config->tx_moderation,
                                          UCS_BIT(iface->config.log_sq_bb) / 4);
    return UCS_OK;
}
