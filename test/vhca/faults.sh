# SPDX-License-Identifier: BSD-3-Clause
# Faults on demand through the real libibverbs and libmlx5, with either link
# layer; VHCA_FAULT when a device is opened; a trace of all of it.
set -u

program=$HIXL_BUILD/test/vhca/test_faults
tmp=$(mktemp -d /tmp/hixl-test-XXXXXX) || exit 1
trap 'rm -rf "$tmp"' EXIT
status=0

failed() {
    echo "FAILED: $*"
    status=1
}

for link in roce ib; do
    echo "link layer: $link"
    VHCA_LINK=$link VHCA_TRACE=$tmp/trace-$link "$HIXL_RUN" --vhca \
        "$program" || status=1
    VHCA_LINK=$link "$HIXL_RUN" --vhca "$program" device || status=1
done

# opens RULES WHAT TEXT: whether the device opens, and what is said of it
opens() {
    VHCA_FAULT=$1 "$HIXL_RUN" --vhca "$program" open >"$tmp/out" 2>&1
    grep -qx "$2" "$tmp/out" && grep -qF "$3" "$tmp/out" ||
        failed "VHCA_FAULT='$1': not $2 with '$3', but: $(<"$tmp/out")"
}
opens '' opened ''
opens 'cmd=CREATE_QP,nth=7' opened ''
opens 'cmd=CREATE_QP,nht=7' refused \
    'vhca: VHCA_FAULT, character 15: after cmd may follow: nth count'

VHCA_TRACE=$tmp/none/trace "$HIXL_RUN" --vhca "$program" open >"$tmp/out" 2>&1
grep -qx refused "$tmp/out" && grep -q '^vhca: VHCA_TRACE, .*/none/trace: No' \
    "$tmp/out" || failed "a trace that cannot be made: $(<"$tmp/out")"

# shown TEXT: a line of the trace, without time and process, begins with it
shown() {
    cut -d' ' -f3- "$tmp/trace-roce" | grep -qF "$1" ||
        failed "the trace has no \"$1\""
}
shown 'cmd QUERY_HCA_CAP OK in: opcode=0x100'
shown 'cmd QUERY_LAG NO_RESOURCES (status=0x0f syndrome=0x1234) in: opcode=0x842'
shown 'cmd CREATE_MKEY OK in: opcode=0x200 '
shown 'cmd CREATE_MKEY BAD_PARAM (status=0x03 syndrome=0x0) in: opcode=0x200 '
shown 'cmd DESTROY_MKEY OK in: mkey_index=0x'
shown 'REQ_ERR RDMA_WRITE syndrome=0x13 (remote access)'
shown 'REQ_ERR RDMA_WRITE syndrome=0x05 (flushed)'
shown 'REQ_ERR RDMA_WRITE syndrome=0x15 (retry exceeded)'
grep -qvE '^[0-9:.]{15} [0-9]+/[0-9]+ (cmd|wqe|cqe) ' "$tmp"/trace-* &&
    failed "lines that are none: $(grep -hvE \
        '^[0-9:.]{15} [0-9]+/[0-9]+ (cmd|wqe|cqe) ' "$tmp"/trace-* | head -3)"

exit $status
