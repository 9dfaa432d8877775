# SPDX-License-Identifier: BSD-3-Clause
# fuzz.sh: the fuzz targets. Always: their corpora, with variations. With
# HIXL_TEST_LONG=1 or HIXL_FUZZ_SECONDS=N: each by clang's libFuzzer for its
# share of N seconds (default 600), under AddressSanitizer. Without libFuzzer
# that is skipped, which is no success: test/skips.txt does not list it.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
targets="cm_addr cm_msg rkey cm_exchange"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export ASAN_OPTIONS=${ASAN_OPTIONS-detect_leaks=0}

for target in $targets; do
    printf '%s: ' "$target"
    "$HIXL_BUILD/test/fuzz/corpus_$target" "$here/corpus/$target" || exit 1
done

[ -n "${HIXL_TEST_LONG:-}${HIXL_FUZZ_SECONDS:-}" ] || exit 0

echo 'int LLVMFuzzerTestOneInput(const void *d, unsigned long n);
      int LLVMFuzzerTestOneInput(const void *d, unsigned long n)
      { (void)d; (void)n; return 0; }' >"$tmp/probe.c"
if ! clang -fsanitize=fuzzer,address -o "$tmp/probe" "$tmp/probe.c" \
        2>/dev/null; then
    echo "no clang with libFuzzer here (Debian 12: clang, libclang-rt-14-dev)"
    exit 77
fi

# The flags that make has, with paths as seen from the build tree
. "$HIXL_BUILD/test/fuzz/flags"
cd "$HIXL_BUILD" || exit 1
src=$HIXL_TOP/src
read -ra flags <<<"$cppflags"
read -ra link <<<"$libs"

# What a target is made of. The fixture doubles what the exchange calls.
sources() {
    case $1 in
    rkey) echo "$src"/uct_hixl/*.c "$src"/mlx5/*.c ;;
    cm_exchange)
        echo "$src"/uct_hixl/hixl_{cm*,event}.c \
            "$src"/mlx5/{cq,event,cmd,umem,limits,log}.c \
            "$HIXL_TOP/test/unit/hixl_cm_fixture.c"
        ;;
    *) echo "$src/uct_hixl/hixl_cm_proto.c" ;;
    esac
}

seconds=$((${HIXL_FUZZ_SECONDS:-600} / 4))
for target in $targets; do
    read -ra files <<<"$(sources "$target")"
    clang -g -O1 -std=gnu11 -fsanitize=fuzzer,address,undefined \
        -fno-sanitize-recover=undefined \
        -fno-sanitize=alignment,null,object-size -w \
        "${flags[@]}" -o "$tmp/$target" "$here/fuzz_$target.c" \
        "${files[@]}" "${link[@]}" || exit 1
    mkdir "$tmp/new_$target"
    if ! "$tmp/$target" -max_total_time=$seconds -max_len=2048 -timeout=20 \
            -artifact_prefix="$HIXL_BUILD/test/fuzz/finding_${target}_" \
            "$tmp/new_$target" "$here/corpus/$target" >"$tmp/log" 2>&1; then
        tail -n 60 "$tmp/log"
        echo "finding: see $HIXL_BUILD/test/fuzz/finding_${target}_*"
        exit 1
    fi
    tail -n 1 "$tmp/log"
done
