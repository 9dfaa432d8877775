# SPDX-License-Identifier: BSD-3-Clause
# For the test scripts: fabrics of their own, counters, pairs of processes with
# a deadline, and counting what failed.

: "${HIXL_TOP:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
: "${HIXL_BUILD:=$HIXL_TOP/build}"
: "${HIXL_RUN:=$HIXL_TOP/contrib/hixl-run}"
export HIXL_TOP HIXL_BUILD HIXL_RUN

tmp=$(mktemp -d /tmp/hixl-test-XXXXXX) || exit 1
pids=()
failures=0
cases=0

# Something that can be waited on and never comes: a wait without a process
mkfifo "$tmp/never" && exec {never}<>"$tmp/never"

on_exit() {
    local pid

    for pid in "${pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null
    done
    fabric_end
    rm -rf "$tmp"
}
trap on_exit EXIT
trap 'exit 1' TERM INT

# pause: between two looks at a condition
pause() { read -rt 0.01 -u "$never" || :; }

# wait_until SECONDS COMMAND...: true as soon as COMMAND is
wait_until() {
    local deadline=$((SECONDS + $1))

    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || return 1
        pause
    done
}

# A fabric of the script's own until fabric_end, or the next fabric_begin
fabric_begin() {
    fabric_end
    own_fabric=test-$$-$1
    export VHCA_FABRIC=$own_fabric
}

fabric_dir() {
    echo "${VHCA_DIR:-/dev/shm}/vhca.$(id -u)/$own_fabric"
}

fabric_end() {
    [ -z "${own_fabric:-}" ] || rm -rf "$(fabric_dir)"
    own_fabric=
    unset VHCA_FABRIC
}

# stats_read: every counter of the fabric into the array `stat`, without what
# the transport's self-test did (it counts that itself)
declare -A stat
stats_read() {
    local name value program=${HX_VHCA_STAT:-$HIXL_BUILD/vhca-stat}

    stat=()
    while read -r name value; do
        stat[$name]=$value
    done < <("$program")
    for name in "${!stat[@]}"; do
        case $name in
        sw.selftest.*)
            value=${name#sw.selftest.}
            stat[$value]=$((${stat[$value]:-0} - ${stat[$name]}))
            ;;
        esac
    done
    [ ${#stat[@]} -gt 0 ]
}

# expect NAME OPERATOR VALUE: by the counters last read; sets `why` if not so.
# The cells of software exist only once it has counted something.
expect() {
    local value=${stat[$1]:-}

    case $1 in
    sw.* | cqe.syndrome.*) value=${value:-0} ;;
    esac
    if [ -z "$value" ]; then
        why="vhca-stat has no $1"
        return 1
    fi
    if ! [ "$value" "$2" "$3" ]; then
        why="$1 is $value, expected $2 $3"
        return 1
    fi
}

ended() { ! kill -0 "$1" 2>/dev/null; }

# finish SECONDS PID...: their end, else their stacks and then their end; true
# if all ended well.
finish() {
    local limit=$1 pid rc=0

    shift
    for pid in "$@"; do
        if ! wait_until "$limit" ended "$pid"; then
            echo "not done after $limit seconds"
            "$HIXL_TOP/test/support/stacks" "$@"
            kill -KILL "$@" 2>/dev/null
            rc=1
        fi
        wait "$pid" || rc=1
    done
    pids=()
    return $rc
}

listens() {
    local port

    printf -v port ':%04X' "$1"
    grep -qE "^ *[0-9]+: [0-9A-F]+$port [0-9A-F:]+ 0A " /proc/net/tcp \
        /proc/net/tcp6 2>/dev/null
}

# free_port: one that nobody listens on now, in $port
free_port() {
    port=$((20000 + RANDOM % 12000))
    while listens $port; do
        port=$((20000 + RANDOM % 12000))
    done
}

# passed NAME / failed NAME WHY
passed() {
    cases=$((cases + 1))
    echo "ok      $1"
}

failed() {
    cases=$((cases + 1))
    failures=$((failures + 1))
    echo "FAILED  $1: $2"
}

# For the end of a script
verdict() {
    echo "$cases cases, $failures failed"
    [ "$cases" -gt 0 ] && [ "$failures" -eq 0 ]
    exit
}
