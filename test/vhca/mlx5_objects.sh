#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The device half's objects on the emulated device, with either link layer.
set -u

status=0
for link in ib roce; do
    echo "link layer: $link"
    VHCA_LINK=$link "$HIXL_RUN" --vhca \
        "$HIXL_BUILD/test/vhca/test_mlx5_objects" || status=$?
done
exit $status
