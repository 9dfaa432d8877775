#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# concurrency.sh [PROGRAM...]: each program of concurrency.txt HIXL_TEST_RUNS
# times (1), in an order drawn at random, while all processors are loaded: one
# more run at a time than there are processors, and beside them a loop on each
# that takes what is left. The seed of a run is printed and given to it as
# HIXL_TEST_SEED; if that is set it is where the seeds come from. A run that
# fails, is skipped, or hangs (its stacks are printed) fails the whole.

. "$(dirname "${BASH_SOURCE[0]}")/support/lib.sh"
unset HIXL_TEST_LONG
export HIXL_TEST_BRIEF=1 # many short runs show more than few long ones
runs=${HIXL_TEST_RUNS:-1}
programs=("$@")
[ $# -gt 0 ] ||
    mapfile -t programs < <(sed '/^#/d' "$HIXL_TOP/test/concurrency.txt")
limit=120
[ -z "${HIXL_SANITIZER:-}" ] || limit=600

first=${HIXL_TEST_SEED:-$(date +%s)}
RANDOM=$((first & 0x7fffffff))
processors=$(nproc)
echo "HIXL_TEST_SEED=$first: ${#programs[@]} programs, $runs runs of each," \
    "$((processors + 1)) at a time on $processors processors"

# In the order of the seeds, which are different numbers
plan() {
    local run program

    for ((run = 0; run < runs; run++)); do
        for program in "${programs[@]}"; do
            echo "$((RANDOM << 30 | RANDOM << 15 | RANDOM)) $program"
        done
    done | sort -n
}

one() {
    local seed=$1 program=$2 out=$tmp/out.$1 began=$EPOCHREALTIME rc=0

    HIXL_TEST_SEED=$seed "$HIXL_TOP/test/support/run-one" "$limit" \
        "$HIXL_BUILD/$program" >"$out" 2>&1 || rc=$?
    ! grep -qa '^\[ *SKIPPED' "$out" || rc=skipped
    if [ "$rc" = 0 ]; then
        echo "ok     $program HIXL_TEST_SEED=$seed" \
            "$(((${EPOCHREALTIME/./} - ${began/./}) / 1000)) ms"
    else
        echo "FAILED $program HIXL_TEST_SEED=$seed ($rc)"
        tail -n 400 "$out"
    fi
    rm -f "$out"
    [ "$rc" = 0 ]
}

for ((i = 0; i < processors; i++)); do
    (trap - TERM EXIT; exec nice -n 15 bash -c 'while :; do :; done') &
    pids+=($!)
    disown
done
loops=("${pids[@]}")

declare -A runners
end_of_one() {
    local pid rc=0

    wait -n -p pid "${!runners[@]}" || rc=$?
    unset "runners[$pid]"
    cases=$((cases + 1))
    [ $rc -eq 0 ] || failures=$((failures + 1))
}

while read -r seed program; do
    [ ${#runners[@]} -le "$processors" ] || end_of_one
    (trap - EXIT; one "$seed" "$program") &
    runners[$!]=
    pids=("${loops[@]}" "${!runners[@]}")
done < <(plan)
while [ ${#runners[@]} -gt 0 ]; do
    end_of_one
done
verdict
