#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of the transport once more, with MRs in place of umems and their keys
# because the device refuses such keys.
set -u

. "$HIXL_TOP/test/support/lib.sh"

dir=$HIXL_BUILD/test/transport

# suite COMMAND...: a whole test program, or a script
suite() {
    local name=${*: -1}

    if env VHCA_FAULT=mkey_umem=refuse "$@"; then
        passed "${name##*/} with VHCA_FAULT=mkey_umem=refuse"
    else
        failed "${name##*/} with VHCA_FAULT=mkey_umem=refuse" "see above"
    fi
}

suite "$dir/test_budget"
if [ -n "${HIXL_TEST_LONG:-}" ]; then
    suite "$dir/test_traffic_ib"
    suite "$dir/test_traffic_roce"
    for name in order links uct uct_flow; do
        suite "$dir/test_$name"
    done
    suite bash "$HIXL_TOP/test/apps/perftest.sh"
fi
verdict
