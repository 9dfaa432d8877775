# SPDX-License-Identifier: BSD-3-Clause
# perftest.sh [PATTERN]: ucx_perftest, which nobody here wrote, between two
# processes over hixl: by UCT, by UCP, and by UCP to itself. After each run the
# device's counters must show the kind of work that was asked for. PATTERN
# takes only the cases whose name matches it.

. "$(dirname "${BASH_SOURCE[0]}")/../support/lib.sh"

pattern=${1:-*}
iters=200
warmup=20
limit=60

# Which message sizes a layout takes: "short" ends at what a WQE can carry
# inline, "bcopy" and active messages at a receive buffer (8 KiB); only
# zero-copy put and get are as large as one likes.
small="8"
segment="8 4096"
all="8 4096 65536 1048576"
declare -A sizes=(
    [put_lat:short]=$small  [put_lat:bcopy]=$segment  [put_lat:zcopy]=$all
    [put_bw:short]=$small   [put_bw:bcopy]=$segment   [put_bw:zcopy]=$all
    [get:bcopy]=$segment    [get:zcopy]=$all
    [am_lat:short]=$small   [am_lat:bcopy]=$segment   [am_lat:zcopy]=$segment
    [am_bw:short]=$small    [am_bw:bcopy]=$segment    [am_bw:zcopy]=$segment
)
uct_cases=(put_lat:short put_lat:bcopy put_lat:zcopy put_bw:short put_bw:bcopy
           put_bw:zcopy get:bcopy get:zcopy am_lat:short am_lat:bcopy
           am_lat:zcopy am_bw:short am_bw:bcopy am_bw:zcopy)
ucp_cases=(ucp_put_lat ucp_put_bw ucp_get tag_lat tag_bw stream_bw ucp_am_lat)

serial=0

# run NAME PEERS ARG...: the two processes, or with PEERS 1 the one. False
# with $why, and the output shown, if they failed.
run() {
    local peers=$2 rc

    shift 2
    serial=$((serial + 1))
    fabric_begin $serial
    if [ "$peers" -eq 2 ]; then
        run_pair "$@"
    else
        "$HIXL_RUN" --vhca ucx_perftest "$@" -l -n $iters -w $warmup -f \
            >"$tmp/client" 2>&1 </dev/null &
        pids=($!)
        finish $limit "${pids[@]}"
    fi
    rc=$?
    if [ $rc -ne 0 ]; then
        why="ucx_perftest failed"
    elif grep -hE ' (ERROR|FATAL) ' "$tmp"/server "$tmp"/client; then
        why="UCX logged an error"
        rc=1
    elif ! stats_read; then
        why="vhca-stat shows nothing"
        rc=1
    fi
    if [ $rc -ne 0 ]; then
        sed 's/^/    server: /' "$tmp/server"
        sed 's/^/    client: /' "$tmp/client"
    fi
    return $rc
}

# Where MRs take the place of umems' keys: no such key was given out; and if
# that is so because the device refuses them, each process has said it, once.
registered_as_told() {
    local log count

    case ${UCX_HIXL_REG:-}:${VHCA_FAULT:-} in
    mr: | :mkey_umem=refuse) expect max.mkey_remote -eq 0 || return ;;
    *) return 0 ;;
    esac
    [ -n "${VHCA_FAULT:-}" ] || return 0
    for log in "$tmp"/server "$tmp"/client; do
        [ -s "$log" ] || continue # one process to itself has no server
        count=$(grep -c 'memory is registered with ibv_reg_mr' "$log")
        if [ "$count" -ne 1 ]; then
            why="${log##*/} says $count times that it uses MRs"
            return 1
        fi
    done
}

# The server either listens or has ended (its port was taken meanwhile).
up_or_ended() { listens "$1" || ended "$2"; }

run_pair() {
    local port server

    while :; do
        free_port
        "$HIXL_RUN" --vhca ucx_perftest "$@" -p $port -n $iters -w $warmup \
            >"$tmp/server" 2>&1 </dev/null &
        server=$!
        pids=($server)
        wait_until $limit up_or_ended $port $server || break
        if ended $server && grep -q 'bind() failed' "$tmp/server"; then
            continue
        fi
        break
    done
    "$HIXL_RUN" --vhca ucx_perftest localhost "$@" -p $port -n $iters \
        -w $warmup -f >"$tmp/client" 2>&1 </dev/null &
    pids=($server $!)
    finish $limit "${pids[@]}"
}

# ---- what the counters must show; each says why not in $why ----

# Bytes of an opcode are those of its WQEs: each one message, whole.
bytes_fit() {
    local op=$1 size=$2 count=${stat[wqe.$1]}

    expect "bytes.$op" -eq $((count * size))
}

no_errors() {
    expect cqe.error -eq 0 && expect sw.hixl.bounce_put_bytes -eq 0 &&
        expect sw.hixl.bounce_get_bytes -eq 0 &&
        expect sw.hixl.bounce_am_bytes -eq 0 && expect objects.qp -eq 0 &&
        registered_as_told
}

check_uct() {
    local test=$1 layout=$2 size=$3 least=$iters

    # a ping-pong goes both ways
    case $test in
    *_lat) least=$((2 * iters)) ;;
    esac
    no_errors || return
    case $test in
    put_*)
        expect wqe.rdma_write -ge $least && bytes_fit rdma_write "$size" &&
            expect wqe.rdma_read -eq 0 && expect wqe.send -eq 0 || return
        if [ "$layout" = short ]; then
            expect wqe_inline.rdma_write -eq "${stat[wqe.rdma_write]}"
        else
            expect wqe_inline.rdma_write -eq 0
        fi
        ;;
    get)
        expect wqe.rdma_read -ge $least && bytes_fit rdma_read "$size" &&
            expect wqe.rdma_write -eq 0 && expect wqe.send -eq 0
        ;;
    am_*)
        # a message has the transport's own header before it
        expect wqe.send -ge $least &&
            expect bytes.send -ge $((stat[wqe.send] * size)) &&
            expect bytes.send -le $((stat[wqe.send] * (size + 16))) &&
            expect wqe.rdma_write -eq 0 && expect wqe.rdma_read -eq 0 || return
        case $layout in
        short) expect wqe_inline.send -eq "${stat[wqe.send]}" ;;
        bcopy) expect wqe_inline.send -eq 0 ;;
        esac
        ;;
    esac
}

check_ucp() {
    local test=$1 peers=$2 size=$3 least=$iters rdma

    case $test:$peers in
    *_lat:2) least=$((2 * iters)) ;;
    esac
    no_errors || return
    rdma=$((stat[bytes.rdma_read] + stat[bytes.rdma_write]))
    case $test in
    ucp_put_*)
        expect wqe.rdma_write -ge $least &&
            expect bytes.rdma_write -ge $((least * size)) &&
            expect wqe.rdma_read -eq 0 && expect wqe.send -eq 0 || return
        [ "$size" -ne 8 ] ||
            expect wqe_inline.rdma_write -eq "${stat[wqe.rdma_write]}"
        ;;
    ucp_get)
        expect wqe.rdma_read -ge $least &&
            expect bytes.rdma_read -ge $((least * size)) &&
            expect wqe.rdma_write -eq 0 && expect wqe.send -eq 0
        ;;
    stream_*)
        # UCX has no rendezvous for streams
        expect wqe.send -ge $least &&
            expect bytes.send -ge $((least * size)) &&
            expect bytes.rdma_read -eq 0 && expect bytes.rdma_write -eq 0
        ;;
    *)
        # eager messages are sends; from where rendezvous is worth it on,
        # the data is read or written, and the sends only arrange that
        expect wqe.send -ge $least || return
        if [ "$size" -le 4096 ]; then
            expect bytes.send -ge $((least * size)) &&
                expect bytes.rdma_read -eq 0 &&
                expect bytes.rdma_write -eq 0
        elif [ "$size" -ge 1048576 ]; then
            if [ $rdma -lt $((least * size)) ]; then
                why="only $rdma of $((least * size)) bytes by RDMA"
                return 1
            fi
            expect bytes.send -lt $((least * size / 4))
        elif [ $((rdma + stat[bytes.send])) -lt $((least * size)) ]; then
            why="only $rdma + ${stat[bytes.send]} bytes by the device"
            return 1
        fi
        ;;
    esac
}

# one NAME PEERS CHECK CHECKARGS... -- ARG...: a case
one() {
    local name=$1 peers=$2 check=()

    shift 2
    # shellcheck disable=SC2053 # a pattern
    [[ $name == $pattern ]] || return 0
    while [ "$1" != -- ]; do
        check+=("$1")
        shift
    done
    shift
    : >"$tmp/server" >"$tmp/client"
    if run "$name" "$peers" "$@" && "${check[@]}"; then
        passed "$name"
    else
        failed "$name" "$why"
    fi
}

for case in "${uct_cases[@]}"; do
    test=${case%:*} layout=${case#*:}
    for size in ${sizes[$case]}; do
        one "uct $test $layout $size" 2 check_uct $test $layout "$size" -- \
            -d mlx5_0:1 -x hixl -t $test -D $layout -s "$size"
    done
done

export UCX_TLS=hixl
for test in "${ucp_cases[@]}"; do
    for size in $all; do
        one "ucp $test $size" 2 check_ucp "$test" 2 "$size" -- \
            -t "$test" -s "$size"
        one "ucp loopback $test $size" 1 check_ucp "$test" 1 "$size" -- \
            -t "$test" -s "$size"
    done
done

# Blocked instead of polling: UCX waits at the descriptors of the interfaces.
# Not for puts and gets: with those ucx_perftest does not end, nor does its get
# over UCX's posix.
check_sleep() {
    check_ucp "$@" && expect doorbell.arm -gt 0
}

for test in tag_lat tag_bw ucp_am_lat; do
    for size in 8 65536; do
        one "ucp sleep $test $size" 2 check_sleep "$test" 2 "$size" -- \
            -t "$test" -s "$size" -E sleep
    done
done

verdict
