/* SPDX-License-Identifier: BSD-3-Clause */

/* Any bytes as a packed remote key: it is as long as the memory domain says,
 * and what comes of it is a number, that the device judges. */

#include "fuzz.h"

#include <uct_hixl/hixl_md.h>

#include <string.h>

#define PACKED_SIZE sizeof(uct_hixl_packed_rkey_t)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uct_rkey_unpack_params_t params = { .field_mask = 0 };
    uint8_t *exact                        = malloc(PACKED_SIZE);
    void *handle                          = NULL;
    uct_rkey_t rkey;

    FUZZ_CHECK(exact != NULL);
    memset(exact, 0, PACKED_SIZE);
    memcpy(exact, data, size < PACKED_SIZE ? size : PACKED_SIZE);
    if (uct_hixl_rkey_unpack(NULL, exact, &params, &rkey, &handle) == UCS_OK) {
        (void)uct_hixl_rkey(rkey);
        FUZZ_CHECK(uct_hixl_rkey_release(NULL, rkey, handle) == UCS_OK);
    }
    free(exact);
    return 0;
}
