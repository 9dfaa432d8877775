# SPDX-License-Identifier: BSD-3-Clause
# valgrind.sh: put and get by ucx_perftest between two processes, both below
# memcheck. No memory that is lost for good may have been allocated, and nothing
# invalid be touched, with a function of ours among the callers. What libibverbs
# and UCX do among themselves does not count. What a peer's device has written
# memcheck has not seen: it does not look for undefined values.

. "$(dirname "${BASH_SOURCE[0]}")/../support/lib.sh"

if [ -n "${HIXL_SANITIZER:-}" ]; then
    echo "memcheck does not go with a sanitizer's runtime: skipped"
    exit 77
fi
if ! command -v valgrind >/dev/null; then
    echo "valgrind is not installed: skipped"
    exit 77
fi

iters=20
limit=60
memcheck=(valgrind --tool=memcheck --xml=yes --leak-check=full
          --show-leak-kinds=definite --undef-value-errors=no --num-callers=40
          --keep-debuginfo=yes --child-silent-after-fork=yes)

# ours DIR XML...: each report of memcheck's that has an object below DIR in the
# stack of the access, or of the allocation, as a line each of its frames.
ours() {
    local dir=$1

    shift
    awk -v dir="$dir/" '
        function value(line) {
            gsub(/<[^>]*>|^ +/, "", line)
            return line
        }
        /<error>/ { report = ""; in_error = 1; found = 0 }
        !in_error { next }
        /<kind>/ { report = "  " value($0) "\n" }
        /<(what|text|auxwhat)>/ { report = report "  " value($0) "\n" }
        /<frame>/ { fn = "?"; obj = ""; place = "" }
        /<obj>/ { obj = value($0); found = found || index(obj, dir) == 1 }
        /<fn>/ { fn = value($0) }
        /<file>/ { place = value($0) }
        /<line>/ { place = place ":" value($0) }
        /<\/frame>/ { report = report "    " fn " " place " " obj "\n" }
        /<\/error>/ { if (found) printf "%s", report; in_error = 0 }
    ' "$@"
}

# whole XML: memcheck has seen the program to its end.
whole() {
    grep -q '<state>FINISHED</state>' "$1" &&
        grep -q '</valgrindoutput>' "$1"
}

# ---- that a leak and an access to freed memory would be seen ----

cat >"$tmp/wrong.c" <<'END'
#include <stdlib.h>

static char *volatile kept;

int main(void)
{
    kept = malloc(100);
    kept = malloc(10);
    free(kept);
    return kept[5] == 1;
}
END
if ! ${CC:-gcc} -g -O0 -w -o "$tmp/wrong" "$tmp/wrong.c"; then
    failed "a program that is wrong" "it does not compile"
else
    "${memcheck[@]}" --xml-file="$tmp/wrong.xml" "$tmp/wrong" \
        >/dev/null 2>&1 </dev/null
    seen=$(ours "$tmp" "$tmp/wrong.xml")
    if ! whole "$tmp/wrong.xml" || [[ $seen != *Leak_DefinitelyLost* ]] ||
       [[ $seen != *InvalidRead* ]]; then
        failed "a program that is wrong" "memcheck's reports: ${seen:-none}"
    elif [ -n "$(ours "$tmp/elsewhere" "$tmp/wrong.xml")" ]; then
        failed "a program that is wrong" "it is taken for one of ours"
    else
        passed "a program that is wrong"
    fi
fi

# ---- put and get ----

# In a process of its own: in its place comes memcheck
perftest() {
    local name=$1

    shift
    exec "$HIXL_RUN" --vhca "${memcheck[@]}" --xml-file="$tmp/$name.xml" \
        ucx_perftest "$@" -n $iters -w 1 >"$tmp/$name.out" 2>&1 </dev/null
}

# The server either listens or has ended (its port was taken meanwhile).
up_or_ended() { listens "$1" || ended "$2"; }

run_pair() {
    local port server

    rm -f "$tmp"/server.* "$tmp"/client.*
    while :; do
        free_port
        perftest server "$@" -p $port &
        server=$!
        pids=($server)
        wait_until $limit up_or_ended $port $server || break
        if ended $server && grep -q 'bind() failed' "$tmp/server.out"; then
            continue
        fi
        break
    done
    perftest client localhost "$@" -p $port &
    pids=($server $!)
    finish $limit "${pids[@]}"
}

# check NAME COUNTER ARG...: a run in which the device has counted the messages
check() {
    local name=$1 counter=$2 seen

    shift 2
    fabric_begin "$name"
    if ! run_pair "$@"; then
        sed 's/^/    /' "$tmp"/server.out "$tmp"/client.out
        failed "$name" "ucx_perftest failed"
    elif ! whole "$tmp/server.xml" || ! whole "$tmp/client.xml"; then
        failed "$name" "memcheck did not come to its end"
    elif ! stats_read || ! expect "$counter" -ge $iters; then
        failed "$name" "${why:-vhca-stat shows nothing}"
    else
        seen=$(ours "$HIXL_BUILD/.libs" "$tmp/server.xml" "$tmp/client.xml")
        if [ -n "$seen" ]; then
            echo "$seen"
            failed "$name" "reports with a function of ours"
        else
            passed "$name"
        fi
    fi
}

check put wqe.rdma_write -x hixl -d mlx5_0:1 -t put_bw -D zcopy -s 4096
check get wqe.rdma_read -x hixl -d mlx5_0:1 -t get -D zcopy -s 4096

verdict
