# SPDX-License-Identifier: BSD-3-Clause
# What hixl-run preloads costs a program that opens no device next to nothing:
# no UCX and no RDMA library comes into a shell, and a program starts within 2 %
# of its usual instructions (callgrind counts them; ld.so's work is among them).

. "$(dirname "${BASH_SOURCE[0]}")/../support/lib.sh"

if [ -n "${HIXL_SANITIZER:-}" ]; then
    echo "a sanitizer's runtime is in every process of this build: skipped"
    exit 77
fi
if ! command -v valgrind >/dev/null; then
    echo "valgrind is not installed: skipped"
    exit 77
fi

fabric_begin preload

# ---- what is mapped ----

# In the shell itself, and in a program that it starts
# shellcheck disable=SC2016 # for the inner shell
"$HIXL_RUN" --vhca bash -c 'while read -r line; do echo "$line"; done \
    </proc/$$/maps; cat /proc/self/maps' >"$tmp/maps"
foreign='libuc[mpts]|libuct_|libibverbs|libmlx5|librdmacm|libpthread_dbg'
if ! grep -q 'libvhca\.so' "$tmp/maps" ||
   ! grep -q 'libhixl_load\.so' "$tmp/maps"; then
    failed "shell, what is mapped" "the preloaded libraries are not there"
elif grep -E "$foreign" "$tmp/maps"; then
    failed "shell, what is mapped" "more than the two preloaded libraries"
else
    passed "shell, what is mapped"
fi

# The libraries need libc and nothing else, so that nothing else can come.
for lib in libvhca.so libhixl_load.so; do
    needed=$(LC_ALL=C readelf -d "$HIXL_BUILD/.libs/$lib" |
             sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' |
             grep -vE '^(libc\.so\.6|ld-linux-x86-64\.so\.2)$')
    if [ -n "$needed" ]; then
        failed "$lib, libraries needed" "$needed"
    else
        passed "$lib, libraries needed"
    fi
done

# No process that opened no device has entered the fabric.
if [ -e "$(fabric_dir)" ]; then
    failed "shell, fabric" "it made $(fabric_dir)"
else
    passed "shell, fabric"
fi

# ---- instructions ----

preload=$("$HIXL_RUN" --vhca bash -c 'echo $LD_PRELOAD')

# instructions PRELOAD PROGRAM ARG...: what the program executes, ld.so's work
# included. valgrind hands LD_PRELOAD on to the program that it runs.
instructions() {
    local preload=$1

    shift
    LD_PRELOAD=$preload valgrind --tool=callgrind \
        --callgrind-out-file="$tmp/callgrind" "$@" \
        >/dev/null 2>"$tmp/valgrind" </dev/null || return
    sed -n 's/^totals: //p' "$tmp/callgrind"
}

# Two libraries with nothing in them: what ld.so takes to load any two
empty=
echo >"$tmp/empty.c"
if ${CC:-gcc} -shared -o "$tmp/empty1.so" "$tmp/empty.c" &&
   ${CC:-gcc} -shared -o "$tmp/empty2.so" "$tmp/empty.c"; then
    empty=$tmp/empty1.so:$tmp/empty2.so
fi

percent() {
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%+.2f", (a - b) / b * 100 }'
}
within() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b * 1.02) }'
}

# measure RULE PROGRAM ARG...: RULE "all": within 2 % altogether. RULE "own": a
# program so small that loading any two libraries already takes more; what ours
# take beyond that is within 2 %. RULE "shown": smaller still, nothing to pass.
measure() {
    local rule=$1 plain with floor against what

    shift
    command -v "$1" >/dev/null || return 0
    if ! plain=$(instructions "" "$@") ||
       ! with=$(instructions "$preload" "$@") ||
       ! floor=$(instructions "$empty" "$@") || [ -z "$plain" ] ||
       [ -z "$with" ] || [ -z "$floor" ]; then
        sed 's/^/    /' "$tmp/valgrind"
        failed "$*" "callgrind failed"
        return
    fi
    printf '%-28s %11d; preloaded %s %%, two empty libraries %s %%\n' \
        "$*" "$plain" "$(percent "$with" "$plain")" \
        "$(percent "$floor" "$plain")"
    [ "$rule" != shown ] || return 0
    against=$plain
    what="$*, within 2 %"
    if [ "$rule" = own ]; then
        against=$((plain > floor ? plain : floor))
        what="$*, within 2 % of it with two empty libraries"
    fi
    if within "$with" "$against"; then
        passed "$what"
    else
        failed "$what" "$with instructions, $against without"
    fi
}

measure all perl -MPOSIX -e 1
measure all /usr/bin/python3 -c pass
measure own bash -c :
measure shown ls /usr
measure shown cat /dev/null

verdict
