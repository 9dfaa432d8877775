/* SPDX-License-Identifier: BSD-3-Clause */

/* What a process of a test and its parent say to each other. */

#ifndef HXT_WIRE_H_
#define HXT_WIRE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hxt_msg_type {
    HXT_MSG_GATHER, /* a blob; the answer is every rank's {length, bytes} */
    HXT_MSG_STAT    /* a counter's name; the answer is its uint64_t */
};

struct hxt_msg {
    uint32_t type;
    uint32_t len;
};

/** Whole buffers, or false: the other end is gone. */
bool hxt_write_all(int fd, const void *buf, size_t len);
bool hxt_read_all(int fd, void *buf, size_t len);

#endif
