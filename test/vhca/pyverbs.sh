# SPDX-License-Identifier: BSD-3-Clause
# rdma-core's own tests of the installed version (Debian: python3-pyverbs and
# the tests in rdma-core's doc folder) on the emulated device, with either link
# layer. Nothing may fail, and what skips must be in pyverbs-skips.txt.
# usage: pyverbs.sh [MODULE...]
set -u

modules=(test_device test_pd test_mr test_cq test_cqex test_cq_events test_qp
         test_addr test_atomic test_parent_domain test_fork test_odp
         test_mlx5_devx test_mlx5_uar test_mlx5_raw_wqe test_mlx5_cq)
all=yes
[ $# -eq 0 ] || { modules=("$@"); all=no; }

if [ "${HIXL_SANITIZER:-}" = thread ]; then
    echo "ThreadSanitizer's runtime does not go with a Python without it"
    exit 77
fi

# Debian's: it is the one that Debian's modules are built for
python=/usr/bin/python3
where=/usr/share/doc/rdma-core/tests
skips=$HIXL_TOP/test/vhca/pyverbs-skips.txt
limit=120 # seconds for the tests of one link

if [ ! -e $where/test_pd.py ] ||
   ! $python -c 'import pyverbs.device, scapy.packet' 2>/dev/null; then
    echo "python3-pyverbs, python3-scapy or rdma-core's tests are missing;" \
         "type: contrib/install-deps"
    exit 77
fi

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cp -r $where "$tmp/tests" && gunzip -rf "$tmp/tests" || exit 1

# For RoCE the tests ask ip(8) for the addresses of the port's interface. The
# emulated port has none in the kernel: these are its own addresses.
mkdir "$tmp/bin"
cat >"$tmp/bin/ip" <<'EOF'
#!/bin/sh
echo '[{"ifname": "vhca0", "address": "02:00:c6:12:00:01",
        "addr_info": [{"family": "inet", "local": "198.18.0.1"}]}]'
EOF
chmod +x "$tmp/bin/ip"

# One line a test: verdict, module.class.test, what it said.
cat >"$tmp/run.py" <<'EOF'
import importlib, os, sys, unittest

top = os.path.dirname(os.path.abspath(__file__))
sys.path[0:0] = [top, os.path.join(top, 'tests')]
from args_parser import parser
names, sys.argv[1:] = sys.argv[1:], []
parser.parse_args()

class Lines(unittest.TestResult):
    def say(self, verdict, test, text=''):
        # a failing setUpClass has no test of its own
        print(verdict, test.id().replace('tests.', '', 1),
              ' '.join(str(text).split()), flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.say('start', test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.say('ok', test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say('skip', test, reason)

    def addError(self, test, err):
        super().addError(test, err)
        self.say('error', test, err[1])
        print(self.errors[-1][1], file=sys.stderr)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.say('fail', test, err[1])
        print(self.failures[-1][1], file=sys.stderr)

for name in names:
    suite = unittest.defaultTestLoader.loadTestsFromModule(
        importlib.import_module('tests.' + name))
    suite.run(Lines())
print('end', flush=True)
EOF

failures=0
failed() {
    failures=$((failures + 1))
    echo "FAILED: $*"
}

# The list's lines that count for this link: "TEST TEXT"
listed() {
    awk -v links="$*" '
        /^[ \t]*(#|$)/ || !index(" " links " ", " " $1 " ") { next }
        { sub(/^[^ ]+ +/, ""); print }' "$skips"
}

# All modules of a link in one process, both links side by side
run_link() {
    VHCA_LINK=$1 VHCA_NETDEV=vhca0 PATH=$tmp/bin:$PATH \
        timeout -k 5 $limit "$HIXL_RUN" --vhca $python "$tmp/run.py" \
        "${modules[@]}" >"$tmp/$1" 2>"$tmp/$1.err"
    echo $? >"$tmp/$1.rc"
}

check_module() {
    local link=$1 module=$2 verdict rest ran=0 skipped=0 before=$failures

    while read -r verdict rest; do
        case $verdict in
        ok) ran=$((ran + 1)) ;;
        skip)
            skipped=$((skipped + 1))
            grep -qxF "$rest" "$tmp/listed" ||
                failed "$link: not in the list of skips: $rest"
            ;;
        *) failed "$link: $verdict: $rest" ;;
        esac
    done < <(grep -E "^(ok|skip|fail|error) ([a-zA-Z]+ \()?$module\." \
                  "$tmp/$link")
    [ $((ran + skipped)) -ne 0 ] || failed "$link: $module has run no test"
    printf '%-4s %-20s %3d ran %3d skipped %3d failed\n' "$link" "$module" \
        $ran $skipped $((failures - before))
}

check_link() {
    local link=$1 module line

    listed both "$link" may >"$tmp/listed"
    for module in "${modules[@]}"; do
        check_module "$link" "$module"
    done
    if [ "$(cat "$tmp/$link.rc")" -ne 0 ] || ! grep -qx end "$tmp/$link"; then
        failed "$link: ended with $(cat "$tmp/$link.rc") after:" \
               "$(tail -n 1 "$tmp/$link")"
    fi
    [ "$all" = yes ] || return
    # A skip that has become a test that runs must leave the list, so that it
    # does not skip again unseen; what may skip may run.
    while read -r line; do
        grep -qxF "skip $line" "$tmp/$link" ||
            failed "$link: in the list of skips, but did not skip: $line"
    done < <(listed both "$link")
}

for link in ib roce; do
    run_link $link &
done
wait
for link in ib roce; do
    before=$failures
    check_link $link
    if [ $failures -ne $before ]; then
        tail -n 100 "$tmp/$link.err" | sed 's/^/    /'
    fi
done
[ $failures -eq 0 ]
