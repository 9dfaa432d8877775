#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# libhixl_load.so against stand-ins of UCX's libraries: which libuct it finds,
# when it loads the transport, and what it costs a program without UCX.
set -u

lib=$HIXL_BUILD/.libs/libhixl_load.so
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cc=(${CC:-gcc} -g -O0 -fPIC -pthread)
# What the library was built for; the stand-ins must say the same.
. "$HIXL_BUILD/hixl-run.vars"
major=${ucx_version%%.*} minor=${ucx_version#*.}
minor=${minor%%.*}
failed=0

run() {
    if "$1"; then
        echo "[       OK ] $1"
    else
        echo "[  FAILED  ] $1"
        failed=1
    fi
}

# expect FILE TEXT: the whole of FILE is TEXT.
expect() {
    [ "$(cat "$1")" = "$2" ] && return
    printf '%s is:\n%s\nexpected:\n%s\n' "$1" "$(cat "$1")" "$2"
    return 1
}

cat >"$dir/uct.c" <<'C'
static int count = 1;
void stub_register(void) { __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST); }
signed char uct_query_components(void ***components_p, unsigned *num_p)
{
    *components_p = 0;
    *num_p        = __atomic_load_n(&count, __ATOMIC_SEQ_CST);
    return TAG;
}
C
cat >"$dir/ucp.c" <<'C'
#include <stdio.h>
signed char uct_query_components(void ***components_p, unsigned *num_p);
void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release)
{
    *major   = MAJOR;
    *minor   = MINOR;
    *release = 0;
}
void ucp_show(void)
{
    unsigned num = 0;
    void **components;
    int status = uct_query_components(&components, &num);
    printf("status %d, %u components\n", status, num);
    fflush(stdout);
}
C
cat >"$dir/hixl.c" <<'C'
#include <unistd.h>
void stub_register(void);
static __attribute__((constructor)) void init(void)
{
    usleep(20000); /* so that a thread that does not wait would be seen */
    stub_register();
}
C
cat >"$dir/linked.c" <<'C'
void ucp_show(void);
int main(void) { ucp_show(); ucp_show(); return 0; }
C
cat >"$dir/local.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *ucp = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (ucp == 0) { puts(dlerror()); return 1; }
        ((void (*)(void))dlsym(ucp, "ucp_show"))();
    }
    return 0;
}
C
cat >"$dir/threads.c" <<'C'
#include <pthread.h>
void ucp_show(void);
static void *go(void *arg) { ucp_show(); return arg; }
int main(void)
{
    pthread_t t[8];
    for (int i = 0; i < 8; i++) pthread_create(&t[i], 0, go, 0);
    for (int i = 0; i < 8; i++) pthread_join(t[i], 0);
    return 0;
}
C
cat >"$dir/nouct.c" <<'C'
#include <stdio.h>
signed char uct_query_components(void ***components_p, unsigned *num_p)
    __attribute__((weak));
int main(void)
{
    printf("status %d\n", uct_query_components(0, 0));
    return 0;
}
C

# ucx DIR MAJOR MINOR STATUS [SUFFIX]: libuct and libucp of one installation.
ucx() {
    local s=${5:-}

    mkdir -p "$dir/$1"
    "${cc[@]}" -shared -DTAG="$4" -Wl,-soname,libuct$s.so.0 \
        -o "$dir/$1/libuct$s.so.0" "$dir/uct.c" &&
    "${cc[@]}" -shared -DMAJOR="$2" -DMINOR="$3" -Wl,-soname,libucp$s.so.0 \
        -Wl,-rpath,"\$ORIGIN" -o "$dir/$1/libucp$s.so.0" "$dir/ucp.c" \
        "$dir/$1/libuct$s.so.0"
}

ucx same "$major" "$minor" 0 && ucx other "$major" 14 0 &&
ucx plugin 1 22 0 && ucx private "$major" "$minor" 7 -private || exit 1
[ "$minor" != 14 ] || ucx other "$major" 13 0 || exit 1
mkdir -p "$dir/inst/ucx-hixl"
cp "$lib" "$dir/inst/libhixl_load.so" &&
"${cc[@]}" -shared -Wl,-soname,libuct_hixl.so.0 -o \
    "$dir/inst/ucx-hixl/libuct_hixl.so.0" "$dir/hixl.c" \
    "$dir/same/libuct.so.0" &&
"${cc[@]}" -o "$dir/linked" "$dir/linked.c" "$dir/same/libucp.so.0" \
    -Wl,-rpath-link,"$dir/same" &&
"${cc[@]}" -o "$dir/threads" "$dir/threads.c" "$dir/same/libucp.so.0" \
    -Wl,-rpath-link,"$dir/same" &&
"${cc[@]}" -o "$dir/nouct" "$dir/nouct.c" "$dir/inst/libhixl_load.so" &&
"${cc[@]}" -o "$dir/local" "$dir/local.c" || exit 1

# preloaded DIR COMMAND...: with that UCX, and the library as installed.
preloaded() {
    local ucx=$1

    shift
    env -u HIXL_TRANSPORT LD_LIBRARY_PATH="$dir/$ucx" \
        LD_PRELOAD="$dir/inst/libhixl_load.so" "$@" >"$dir/out" 2>"$dir/err"
}

linked_app__same_version__transport_is_there() {
    preloaded same "$dir/linked"
    expect "$dir/err" "" && expect "$dir/out" \
        "status 0, 2 components
status 0, 2 components"
}

# What the case above would show if the library did nothing.
linked_app__no_preload__transport_is_absent() {
    LD_LIBRARY_PATH="$dir/same" "$dir/linked" >"$dir/out" 2>&1
    expect "$dir/out" \
        "status 0, 1 components
status 0, 1 components"
}

local_app__same_version__transport_is_there() {
    preloaded same "$dir/local" libucp.so.0
    expect "$dir/err" "" && expect "$dir/out" "status 0, 2 components"
}

threads__first_query_at_once__all_see_the_transport() {
    preloaded same "$dir/threads"
    expect "$dir/err" "" &&
    [ "$(sort "$dir/out" | uniq -c | sed 's/^ *//')" = \
        "8 status 0, 2 components" ]
}

other_minor__two_queries__forwards_and_says_so_once() {
    preloaded other "$dir/linked"
    [ "$(wc -l <"$dir/err")" = 1 ] &&
    grep -q "built for UCX $major.$minor, this is UCX" "$dir/err" &&
    expect "$dir/out" \
        "status 0, 1 components
status 0, 1 components"
}

plugin_aware_ucx__query__stays_out_silently() {
    preloaded plugin "$dir/local" libucp.so.0
    expect "$dir/err" "" && expect "$dir/out" "status 0, 1 components"
}

# A wheel's own copy of UCX, its names changed, beside the system's.
second_ucx__query__gets_its_own_libuct() {
    preloaded same "$dir/local" libucp.so.0 \
        "$dir/private/libucp-private.so.0"
    grep -q "not the process's libuct.so.0" "$dir/err" &&
    expect "$dir/out" \
        "status 0, 2 components
status 7, 1 components"
}

transport_missing__query__forwards_and_names_the_file() {
    LD_LIBRARY_PATH="$dir/same" LD_PRELOAD="$dir/inst/libhixl_load.so" \
        HIXL_TRANSPORT="$dir/none.so" "$dir/linked" >"$dir/out" 2>"$dir/err"
    [ "$(wc -l <"$dir/err")" = 1 ] && grep -q "$dir/none.so" "$dir/err" &&
    expect "$dir/out" \
        "status 0, 1 components
status 0, 1 components"
}

transport_named__query__loads_that_one() {
    cp "$dir/inst/ucx-hixl/libuct_hixl.so.0" "$dir/named.so" &&
    LD_LIBRARY_PATH="$dir/same" LD_PRELOAD="$lib" \
        HIXL_TRANSPORT="$dir/named.so" "$dir/local" libucp.so.0 \
        >"$dir/out" 2>"$dir/err"
    expect "$dir/err" "" && expect "$dir/out" "status 0, 2 components"
}

no_libuct__query__is_unsupported() {
    preloaded same "$dir/nouct"
    grep -q "no libuct" "$dir/err" && expect "$dir/out" "status -22"
}

library__dependencies__libc_alone() {
    [ "$(readelf -d "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')" = \
        libc.so.6 ]
}

library__constructors__none() {
    ! readelf -dW "$lib" | grep -E '\((INIT|FINI)'
}

# It is mapped into every program that hixl-run starts.
library__relocations__few() {
    local n

    n=$(readelf -rW "$lib" | grep -c R_X86_64_)
    echo "$n relocations"
    [ "$n" -gt 0 ] && [ "$n" -le 12 ]
}

shell__preloaded__maps_no_ucx() {
    LD_PRELOAD="$lib" bash -c 'cat /proc/$$/maps' >"$dir/out" || return 1
    grep -q libhixl_load "$dir/out" && ! grep -q 'libuc[pstm]\.' "$dir/out"
}

tests=$(sed -n 's/^\([a-z_]*__[a-z_]*\)() {$/\1/p' "$0")
echo "[==========] Running $(echo "$tests" | wc -w) test(s)."
for t in $tests; do
    run "$t"
done
exit $failed
