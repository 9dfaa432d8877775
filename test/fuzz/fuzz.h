/* SPDX-License-Identifier: BSD-3-Clause */

/* A fuzz target: libFuzzer calls it, or corpus.c with inputs that stay. */

#ifndef HXT_FUZZ_H_
#define HXT_FUZZ_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process as a sanitizer would */
#define FUZZ_CHECK(_cond) \
    do { \
        if (!(_cond)) { \
            abort(); \
        } \
    } while (0)

#endif
