/* SPDX-License-Identifier: BSD-3-Clause */

/* Any bytes as an interface address: read no further than they go; what is one
 * is packed into the same bytes. */

#include "fuzz.h"

#include <uct_hixl/hixl_cm_proto.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t packed[UCT_HIXL_IFACE_ADDR_MAX];
    uint8_t *exact = malloc(size); /* the next byte is out of bounds */
    uct_hixl_cm_addr_t addr;
    size_t length;

    FUZZ_CHECK((exact != NULL) || (size == 0));
    if (size > 0) {
        memcpy(exact, data, size);
    }
    if (uct_hixl_cm_addr_parse(exact, size, &addr, &length) == UCS_OK) {
        FUZZ_CHECK((length > 0) && (length <= size));
        FUZZ_CHECK((addr.num_ips >= 1) &&
                   (addr.num_ips <= UCT_HIXL_CM_MAX_IPS));
        FUZZ_CHECK(uct_hixl_cm_addr_pack(&addr, packed) == length);
        FUZZ_CHECK(memcmp(packed, exact, length) == 0);
    }
    free(exact);
    return 0;
}
