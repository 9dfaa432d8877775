# SPDX-License-Identifier: BSD-3-Clause
# The kernel side of the emulated device, with either link layer and with two
# devices.
set -u

status=0
run() {
    echo "$*"
    env "$@" "$HIXL_RUN" --vhca \
        "$HIXL_BUILD/test/vhca/test_kernel_side" || status=$?
}

run VHCA_LINK=roce
run VHCA_LINK=ib
run VHCA_LINK=roce VHCA_DEVICES=2
exit $status
