#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The self-test of keys over umems, on a device that takes them, with either
# link layer, and on one that refuses them.
set -u

status=0
# run FAULT LINK OUTCOME: on a fabric of its own, whose counters begin at 0
run() {
    echo "keys over umems: $3, link layer: $2"
    VHCA_FABRIC=$VHCA_FABRIC-$2-$3 VHCA_LINK=$2 VHCA_FAULT=$1 \
        HIXL_TEST_KEYS=$3 \
        "$HIXL_RUN" --vhca "$HIXL_BUILD/test/vhca/test_selftest" || status=$?
    rm -rf "${VHCA_DIR:-/dev/shm}/vhca.$(id -u)/$VHCA_FABRIC-$2-$3"
}

run '' ib taken
run '' roce taken
run mkey_umem=refuse roce refused
exit $status
