#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of the transport once more, with MRs in place of umems and their keys
# because that was asked for.
set -u

. "$HIXL_TOP/test/support/lib.sh"

dir=$HIXL_BUILD/test/transport

# suite COMMAND...: a whole test program, or a script
suite() {
    local name=${*: -1}

    if env UCX_HIXL_REG=mr "$@"; then
        passed "${name##*/} with UCX_HIXL_REG=mr"
    else
        failed "${name##*/} with UCX_HIXL_REG=mr" "see above"
    fi
}

suite "$dir/test_traffic_ib"
if [ -n "${HIXL_TEST_LONG:-}" ]; then
    suite "$dir/test_traffic_roce"
    suite "$dir/test_budget"
    for name in order links uct uct_flow; do
        suite "$dir/test_$name"
    done
    suite bash "$HIXL_TOP/test/apps/perftest.sh"
fi
verdict
