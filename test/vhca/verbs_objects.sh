# SPDX-License-Identifier: BSD-3-Clause
# Verbs queue pairs and receive queues of one process, with either link layer
set -u

status=0
for link in ib roce; do
    echo "VHCA_LINK=$link"
    VHCA_LINK=$link "$HIXL_RUN" --vhca "$HIXL_BUILD/test/vhca/test_verbs" ||
        status=$?
done
exit $status
