#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The device half's objects on the emulated device, with either link layer and
# either kind of key.
set -u

status=0
for link in ib roce; do
    for reg in umem mr; do
        echo "link layer: $link, keys: $reg"
        VHCA_LINK=$link HIXL_TEST_REG=$reg "$HIXL_RUN" --vhca \
            "$HIXL_BUILD/test/vhca/test_mlx5_objects" || status=$?
    done
done
exit $status
