# SPDX-License-Identifier: BSD-3-Clause
# The kernel refuses memory or a descriptor: the transport names the limit, its
# value and what raises it, and UCX goes on without the device.
set -u

tmp=$(mktemp -d /tmp/hixl-test-XXXXXX) || exit 1
trap 'rm -rf "$tmp"' EXIT
status=0

# said LIMIT VALUE REMEDY: in one line of the last run's output
said() {
    grep "$1" "$tmp/out" | grep "$2" | grep -q "$3" || {
        echo "FAILED: no line with '$1', '$2' and '$3':"
        cat "$tmp/out"
        status=1
    }
}

# As of a process that may lock 64 KiB: the rings of an interface
(
    ulimit -l 64
    VHCA_FAULT='umem=refuse,errno=ENOMEM' UCX_HIXL_REG=mr \
        "$HIXL_RUN" --vhca ucx_info -d >"$tmp/out" 2>&1
) || { echo "FAILED: ucx_info"; status=1; }
said RLIMIT_MEMLOCK '64 KiB' 'ulimit -l'

exit $status
