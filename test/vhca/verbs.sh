# SPDX-License-Identifier: BSD-3-Clause
# verbs.sh [PATTERN]: programs that know verbs only, none of them written here,
# between two processes on the emulated device: rdma-core's ping-pongs, UCX's
# own transports for mlx5, perftest. They do not ring by call, so the thread
# that watches doorbell records has to serve them. The device's counters must
# show what was asked for. PATTERN takes only the cases whose name matches it;
# HIXL_TEST_LONG=1 runs everything on both link layers, perftest in all sizes.

. "$(dirname "${BASH_SOURCE[0]}")/../support/lib.sh"

pattern=${1:-*}
long=${HIXL_TEST_LONG:-}
limit=60
serial=0

for program in ibv_rc_pingpong ib_write_bw ucx_perftest; do
    if ! command -v $program >/dev/null; then
        echo "no $program; type: contrib/install-deps"
        exit 1
    fi
done

# The server either listens or has ended (its port was taken meanwhile).
up_or_ended() { listens "$1" || ended "$2"; }

# pair COMMAND...: two processes, the second one told where the first is
pair() {
    local port server

    serial=$((serial + 1))
    fabric_begin $serial
    free_port
    "$HIXL_RUN" --vhca "$@" -p $port >"$tmp/server" 2>&1 </dev/null &
    server=$!
    pids=($server)
    wait_until $limit up_or_ended $port $server
    "$HIXL_RUN" --vhca "$@" -p $port localhost >"$tmp/client" 2>&1 \
        </dev/null &
    pids=($server $!)
    finish $limit "${pids[@]}"
}

# ran COMMAND...: both ended well, without an error CQE, nothing left behind
ran() {
    if ! pair "$@"; then
        why="failed: $*"
    elif ! stats_read; then
        why="vhca-stat shows nothing"
    else
        expect cqe.error -eq 0 && expect objects.qp -eq 0 &&
            expect objects.cq -eq 0 && expect watch.sq -gt 0 && return
    fi
    sed 's/^/    server: /' "$tmp/server"
    sed 's/^/    client: /' "$tmp/client"
    return 1
}

# check NAME FUNCTION ARG...
check() {
    local name=$1

    shift
    # shellcheck disable=SC2254 # a pattern is meant
    case $name in
    $pattern) ;;
    *) return 0 ;;
    esac
    why=
    if "$@"; then
        passed "$name"
    else
        failed "$name" "$why"
    fi
}

# ---- rdma-core's examples ----

pingpong() {
    ran "$@" -n 200 && expect wqe.send -ge 400 &&
        expect bytes.send -eq $((4096 * ${stat[wqe.send]}))
}

devinfo() {
    fabric_begin devinfo
    "$HIXL_RUN" --vhca ibv_devinfo -v >"$tmp/client" 2>&1 &&
        grep -q 'state:.*PORT_ACTIVE' "$tmp/client" && return
    why="no active port: $(head -n 3 "$tmp/client")"
    return 1
}

examples() {
    local gid=()

    [ "$VHCA_LINK" = ib ] || gid=(-g 3)
    check $VHCA_LINK-devinfo devinfo
    check $VHCA_LINK-rc pingpong ibv_rc_pingpong -c "${gid[@]}"
    check $VHCA_LINK-rc-events pingpong ibv_rc_pingpong -c -e "${gid[@]}"
    check $VHCA_LINK-srq pingpong ibv_srq_pingpong -c "${gid[@]}"
    check $VHCA_LINK-srq-events pingpong ibv_srq_pingpong -c -e "${gid[@]}"
    check $VHCA_LINK-ud ran ibv_ud_pingpong -c -n 200 -s 1024 "${gid[@]}"
}

# ---- UCX's transports ----

# uct TRANSPORT TEST COUNTER LAYOUT SIZE
uct() {
    ran ucx_perftest -d mlx5_0:1 -x "$1" -t "$2" -D "$4" -s "$5" -n 200 -w 5 \
        -f && expect "wqe.$3" -ge 200 || return
    # UCX turns to nothing else: what it logs is no success
    ! grep -hE ' (ERROR|FATAL) ' "$tmp/server" "$tmp/client"
}

ucx_transport() {
    local tl=$1 name=$VHCA_LINK-$1

    check $name-put_lat uct $tl put_lat rdma_write short 8
    check $name-put_bw uct $tl put_bw rdma_write zcopy 65536
    check $name-get uct $tl get rdma_read bcopy 4096
    check $name-get-zcopy uct $tl get rdma_read zcopy 65536
    check $name-am_lat uct $tl am_lat send short 8
    check $name-am_bw uct $tl am_bw send bcopy 4096
    check $name-am_bw-zcopy uct $tl am_bw send zcopy 4096
    check $name-add_lat uct $tl add_lat atomic short 8
    check $name-add_mr uct $tl add_mr atomic short 8
    check $name-fadd uct $tl fadd atomic short 8
    check $name-cswap uct $tl cswap atomic short 8
    # verbs has no swap
    [ $tl = rc_verbs ] || check $name-swap uct $tl swap atomic short 8
}

# ---- perftest ----

# perf PROGRAM COUNTER ARG...
perf() {
    local program=$1 counter=$2

    shift 2
    ran $program -F -d mlx5_0 "$@" && expect "wqe.$counter" -gt 0
}

perftest() {
    local gid=() sizes=() verb what

    [ "$VHCA_LINK" = ib ] || gid=(-x 3)
    [ -z "$long" ] || sizes=(-a)
    for verb in write:rdma_write read:rdma_read send:send; do
        for what in bw lat; do
            check $VHCA_LINK-ib_${verb%:*}_$what perf ib_${verb%:*}_$what \
                ${verb#*:} -n 20 "${sizes[@]}" "${gid[@]}"
        done
    done
    check $VHCA_LINK-ib_atomic_bw perf ib_atomic_bw atomic -n 20 "${gid[@]}"
    check $VHCA_LINK-ib_atomic_lat perf ib_atomic_lat atomic -n 20 "${gid[@]}"
}

# ---- who rings by call has no thread that watches ----

nobody_watches() {
    serial=$((serial + 1))
    UCX_TLS=hixl pair ucx_perftest -t ucp_put_lat -s 8 -n 200 -w 5 -f ||
        { why="ucx_perftest failed"; return 1; }
    stats_read && expect wqe.rdma_write -ge 200 && expect watch.sq -eq 0 ||
        return
    why="threads were made to watch: ${stat[watch.threads]:-}"
    [ "${stat[watch.threads]:-0}" -eq 0 ]
}

[ -z "$long" ] || limit=300
if [ -n "$long" ]; then
    for VHCA_LINK in ib roce; do
        export VHCA_LINK
        examples
        ucx_transport rc_mlx5
        ucx_transport rc_verbs
        perftest
    done
else
    export VHCA_LINK=ib
    examples
    ucx_transport rc_verbs
    perftest
    export VHCA_LINK=roce
    examples
    ucx_transport rc_mlx5
fi
check nobody-watches nobody_watches
fabric_end
verdict
