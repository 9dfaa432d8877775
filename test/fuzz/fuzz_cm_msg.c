/* SPDX-License-Identifier: BSD-3-Clause */

/* Any bytes as a stream of messages: read no further than they go; what is a
 * message is packed into the same bytes, and each part of it is the beginning
 * of one. */

#include "fuzz.h"

#include <uct_hixl/hixl_cm_proto.h>

#include <string.h>

/* Returns the length of the message at the start, 0 if there is none. */
static size_t one_message(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size); /* the next byte is out of bounds */
    uint8_t packed[UCT_HIXL_CM_MSG_MAX];
    uct_hixl_cm_msg_t msg, other;
    ucs_status_t status;
    size_t length, part;

    FUZZ_CHECK(exact != NULL);
    memcpy(exact, data, size);
    status = uct_hixl_cm_msg_parse(exact, size, &msg, &length);
    if (status != UCS_OK) {
        FUZZ_CHECK((status == UCS_ERR_INVALID_PARAM) ||
                   ((status == UCS_INPROGRESS) &&
                    (size < UCT_HIXL_CM_MSG_MAX)));
        free(exact);
        return 0;
    }

    FUZZ_CHECK((length > 0) && (length <= size) &&
               (length <= UCT_HIXL_CM_MSG_MAX));
    FUZZ_CHECK(uct_hixl_cm_msg_pack(&msg, packed) == length);
    FUZZ_CHECK(memcmp(packed, exact, length) == 0);
    FUZZ_CHECK(uct_hixl_cm_msg_name(msg.type) != NULL);
    for (part = 1; part < length; ++part) {
        FUZZ_CHECK(uct_hixl_cm_msg_parse(packed, part, &other, &size) ==
                   UCS_INPROGRESS);
    }
    free(exact);
    return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t length;

    while (size > 0) {
        length = one_message(data, size);
        if (length == 0) {
            break;
        }
        data += length;
        size -= length;
    }
    return 0;
}
