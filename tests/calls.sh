#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The benchmark of a call's cost still runs: plain, with the hooks that it is
# compared with and with the shim, by few calls that are not timed. And a
# program without CUDA gets no thread from the shim.
#
# BENCH_DIR says where the programs are, SHIM_LIB and SIM_DIR as for
# run-pair.sh.

set -u

bench=${BENCH_DIR:-bench}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
failed=0

fail()
{
    echo "$*"
    failed=1
}

# calls NAME LIBRARY [ARGUMENT...]: ends well and has all of its rows.
calls()
{
    name=$1
    library=$2
    shift 2
    env LD_LIBRARY_PATH="$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        LD_PRELOAD="$library" CGSHIM_REPORT="$work/$name.report" \
        "$bench/calls" --calls 200 --launches 200 --regions 4 \
        --json "$work/$name.json" "$@" > "$work/$name.out" 2>&1 || {
        fail "calls, $name: $(cat "$work/$name.out")"
        return
    }
    rows=$(grep -c '"ns"' "$work/$name.json")
    [ "$rows" = 12 ] || fail "calls, $name: $rows rows, not 12"
}

if [ -z "${SIM_DIR:-}" ]; then
    echo "the simulated driver is needed"
    exit 77
fi
calls plain ""
calls shim "$SHIM_LIB"
for region in calls-symbol calls-cuGetProcAddress; do
    grep -q "\"$region\"" "$work/shim.report" ||
        fail "calls: no region $region in $(cat "$work/shim.report")"
done
# A sanitizer has threads of its own, and looks up what it needs before the
# hooks can.
if grep -q 'lib[at]san\.so' "$SHIM_LIB"; then
    exit $failed
fi
calls hook "$bench/.libs/libnoop_hook.so"
calls swallow "$bench/.libs/libnoop_swallow.so" --swallowed

if [ -n "${EMULATOR:-}" ]; then
    echo "not tried: tools, which are not of the emulated CPU"
    exit $failed
fi
"$bench/spawn" "$SHIM_LIB" 3 /bin/true || fail "spawn: exit status $?"
threads=$(LD_PRELOAD=$SHIM_LIB grep Threads: /proc/self/status)
[ "$(echo "$threads" | tr -dc 0-9)" = 1 ] ||
    fail "a program without CUDA has threads of the shim's: $threads"
exit $failed
