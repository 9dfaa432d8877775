# SPDX-License-Identifier: BSD-3-Clause
# For contrib/check and contrib/quickstart: steps with progress, and the build.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${HIXL_BUILD:-$top/build}
mkdir -p "$build" || exit 1
build=$(cd "$build" && pwd)
export HIXL_BUILD=$build

steps=0
step=0
start=$SECONDS

# Shown after the elapsed time while a step runs; a step's caller may set one.
progress() { :; }

# step_run LIMIT NAME COMMAND...: runs COMMAND, ended after LIMIT seconds, its
# output in $log. Shows the time as it goes: on a terminal in place, else a
# line each half minute.
step_run() {
    local limit=$1 name=$2 pid began=$SECONDS shown=0 now rc head

    shift 2
    step=$((step + 1))
    head="[$step/$steps] $name"
    log=$build/log/$step-${name//[^A-Za-z0-9]/-}.log
    mkdir -p "$build/log"
    echo "$head ..."
    timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        sleep 0.2
        now=$((SECONDS - began))
        if [ -t 1 ] && [ $now -gt $shown ]; then
            shown=$now
            printf '\r%s ... %d s%s ' "$head" $now "$(progress)"
        elif [ $now -ge $((shown + 30)) ]; then
            shown=$now
            echo "$head ... $now s$(progress)"
        fi
    done
    rc=0
    wait $pid || rc=$?
    [ ! -t 1 ] || printf '\r\033[K'
    now=$((SECONDS - began))
    if [ $rc -eq 0 ]; then
        echo "$head: done in $now s"
    elif [ $rc -eq 124 ] || [ $rc -eq 137 ]; then
        echo "$head: ended, it took more than $limit s"
    else
        echo "$head: failed after $now s (status $rc)"
    fi
    return $rc
}

# What the log of a failed step says, and where the rest of it is.
step_failed() {
    echo "--- the end of $log:"
    tail -n "${1:-25}" "$log"
    echo "---"
    echo "The whole log: $log"
}

# A place of its own for what the emulated device shares between processes, so
# that nothing else on this host meets it; removed in the end.
private_fabric() {
    VHCA_DIR=$(mktemp -d /dev/shm/hixl.XXXXXX) || exit 1
    export VHCA_DIR
    trap 'rm -rf "$VHCA_DIR"' EXIT
}

# build_configure SOURCE BUILD: with the flags in HIXL_CONFIGURE; without it, a
# build tree keeps the flags that it has. Other flags are another build: make
# does not know that objects depend on them.
build_configure() {
    set -e
    cd "$1"
    if [ ! -x configure ] || [ ! -f build-aux/ltmain.sh ]; then
        ./autogen.sh
    fi
    cd "$2"
    if [ -f Makefile ] && { [ -z "${HIXL_CONFIGURE+set}" ] ||
                            [ "$HIXL_CONFIGURE" = "$(cat log/flags)" ]; }; then
        return
    fi
    # shellcheck disable=SC2086 # several flags
    "$1/configure" ${HIXL_CONFIGURE-}
    make clean
    echo "${HIXL_CONFIGURE-}" >log/flags
}
export -f build_configure

# build_all: from nothing to a build, four steps.
build_all() {
    step_run 1800 "checking packages" "$top/contrib/install-deps" || return
    step_run 600 "fetching the UCX source" "$top/contrib/ucx-headers" || return
    step_run 600 "configuring" bash -c 'build_configure "$@"' configuring \
        "$top" "$build" || return
    step_run 1800 "building" make -C "$build" -j"$(nproc)"
}
