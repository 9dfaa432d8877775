#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# contrib/hixl-run: the environment that a command gets, and its own words.
set -u

libs=$HIXL_BUILD/.libs
. "$HIXL_BUILD/hixl-run.vars"
unset LD_PRELOAD HIXL_TRANSPORT UCX_PLUGIN_PATH UCX_RCACHE_MAX_REGIONS
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

minor=${ucx_version#*.}
minor=${minor%%.*}
first=$sanitizer_lib${sanitizer_lib:+:}
load=$libs/libhixl_load.so
[ "$minor" -lt 22 ] || load=

is() {
    [ "$1" = "$2" ] && return
    echo "is: $1"
    echo "expected: $2"
    return 1
}

preload_of() {
    "$HIXL_RUN" "$@" printenv LD_PRELOAD
}

vhca__command__is_first_in_preload() {
    is "$(preload_of --vhca)" "$first$libs/libvhca.so${load:+:$load}"
}

preload_of_user__command__is_kept_last() {
    is "$(LD_PRELOAD=libm.so.6 preload_of --vhca)" \
        "$first$libs/libvhca.so${load:+:$load}:libm.so.6"
}

hixl_run_below_hixl_run__command__adds_nothing() {
    is "$("$HIXL_RUN" --vhca "$HIXL_RUN" --vhca printenv LD_PRELOAD)" \
        "$(preload_of --vhca)"
}

no_vhca_below_vhca__command__runs() {
    is "$("$HIXL_RUN" --vhca "$HIXL_RUN" echo ran)" ran
}

# Only where there is no device; with one it has to run the command.
no_vhca__as_the_machine_is__says_what_is_missing_or_runs() {
    "$HIXL_RUN" echo ran >"$dir/out" 2>"$dir/err"
    local rc=$?

    if compgen -G '/dev/infiniband/uverbs*' >/dev/null; then
        is "$rc $(cat "$dir/out")" "0 ran"
    else
        is "$rc $(wc -l <"$dir/err") $(cat "$dir/out")" "1 3 " &&
        grep -q "hixl-run --vhca echo ran" "$dir/err"
    fi
}

command__status__is_passed_on() {
    "$HIXL_RUN" --vhca bash -c 'exit 42'
    is $? 42
}

arguments__with_spaces__arrive_as_given() {
    is "$("$HIXL_RUN" --vhca printf '<%s>' 'a b' '' '*')" '<a b><><*>'
}

no_command__usage__status_2() {
    "$HIXL_RUN" --vhca 2>"$dir/err"
    is "$? $(head -c 6 "$dir/err")" "2 usage:"
}

other_build__missing__names_it() {
    HIXL_BUILD=$dir/none "$HIXL_RUN" --vhca true 2>"$dir/err"
    is $? 1 && grep -q "$dir/none" "$dir/err"
}

user_of_ucx_tls__command__is_left_alone() {
    is "$(UCX_TLS=tcp "$HIXL_RUN" --vhca printenv UCX_TLS)" tcp &&
    is "$(env -u UCX_TLS "$HIXL_RUN" --vhca printenv UCX_TLS)" ""
}

# What every shell and launcher below it pays: two small libraries.
shell__below_vhca__maps_no_ucx_and_no_verbs() {
    "$HIXL_RUN" --vhca bash -c 'cat /proc/$$/maps' >"$dir/out" || return 1
    grep -q libvhca "$dir/out" &&
    ! grep -qE 'libuc[pstm]\.|libibverbs|libmlx5' "$dir/out"
}

rcache_limit__by_version__half_of_the_budget() {
    local got

    got=$(UCX_HIXL_MAX_REGS=64 "$HIXL_RUN" --vhca \
              printenv UCX_RCACHE_MAX_REGIONS)
    if [ "$minor" -ge 16 ]; then is "$got" 32; else is "$got" ""; fi
}

tests=$(sed -n 's/^\([a-z_0-9]*__[a-z_0-9]*\)() {$/\1/p' "$0")
echo "[==========] Running $(echo "$tests" | wc -w) test(s)."
for t in $tests; do
    if $t; then
        echo "[       OK ] $t"
    else
        echo "[  FAILED  ] $t"
        failed=1
    fi
done
exit $failed
