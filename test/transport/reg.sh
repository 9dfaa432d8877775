#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# UCX_HIXL_REG: which devices are used, what is said, and which keys there are,
# on a device that takes keys over umems and on one that refuses them.
set -u

. "$HIXL_TOP/test/support/lib.sh"

refuse=mkey_umem=refuse
warning='memory is registered with ibv_reg_mr'

# One line for a process, which says why; and nothing goes over a umem's key.
auto_refused() {
    local name="auto on a device that refuses" log=$tmp/auto why= port count

    fabric_begin auto
    free_port
    VHCA_FAULT=$refuse UCX_TLS=hixl timeout 60 "$HIXL_RUN" --vhca \
        ucx_perftest -p "$port" >"$log.server" 2>&1 &
    pids=($!)
    wait_until 20 listens "$port"
    VHCA_FAULT=$refuse UCX_TLS=hixl timeout 60 "$HIXL_RUN" --vhca \
        ucx_perftest -p "$port" -t ucp_put_bw -s 1000000 -n 50 127.0.0.1 \
        >"$log.client" 2>&1 || why="the client failed"
    finish 20 "${pids[@]}" || why=${why:-"the server failed"}

    stats_read
    for side in server client; do
        count=$(grep -c "$warning" "$log.$side")
        [ "$count" -eq 1 ] || why=${why:-"$count lines in the $side's log"}
        grep "$warning" "$log.$side" | grep -q 'CREATE_MKEY failed.*status' ||
            why=${why:-"the $side does not say why"}
    done
    if [ -z "$why" ]; then
        expect max.mkey_remote -eq 0 && expect max.mr_remote -ge 1 &&
            expect wqe.rdma_write -ge 50 &&
            expect sw.hixl.bounce_put_bytes -eq 0
    fi
    if [ -z "$why" ]; then
        passed "$name"
    else
        cat "$log.server" "$log.client"
        failed "$name" "$why"
    fi
}

hixl_devices() { grep -c 'Transport: hixl' "$1"; }

# The devices that ucx_info shows for a setting, and what is said
listed() {
    local name="UCX_HIXL_REG=$1 ${3:+on a device that refuses: }$2 listed"
    local log=$tmp/info why=

    fabric_begin info
    VHCA_FAULT=${3:-} UCX_HIXL_REG=$1 timeout 60 "$HIXL_RUN" --vhca \
        ucx_info -d >"$log" 2>&1
    [ "$(hixl_devices "$log")" -eq "$2" ] ||
        why="$(hixl_devices "$log") devices are listed"
    if [ "$2" -eq 0 ]; then
        grep 'not usable with UCX_HIXL_REG=umem: .*CREATE_MKEY failed' "$log" |
            grep -q 'set UCX_HIXL_REG=mr' || why=${why:-"it is not said why"}
    elif grep -q 'not usable' "$log"; then
        why=${why:-"and yet it is said to be not usable"}
    fi
    if [ -z "$why" ]; then
        passed "$name"
    else
        cat "$log"
        failed "$name" "$why"
    fi
}

listed auto 1
listed umem 1
listed mr 1
listed auto 1 $refuse
listed mr 1 $refuse
listed umem 0 $refuse
auto_refused
verdict
