#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# CGSHIM_PROFILE: the program does what it does without, its numbers are what
# is known of it, launch-bound and device-bound programs are told apart, and
# where CUPTI cannot be had one line says so. Without the variable nothing of
# CUPTI is loaded.
#
# SHIM_LIB, SIM_DIR and PROGRAMS_DIR are as everywhere; needs python3.

set -u

programs=${PROGRAMS_DIR:-programs}
failed=0

if [ -z "${SHIM_LIB:-}" ]; then
    echo "profile.sh: SHIM_LIB is not set" >&2
    exit 99
fi
if [ -z "${SIM_DIR:-}" ]; then
    echo "times are known on the simulated driver alone"
    exit 77
fi
if [ -n "${EMULATOR:-}" ]; then
    echo "times under an emulator are no program's own"
    exit 77
fi
if [ ! -r "$SIM_DIR/libcupti.so.13" ]; then
    echo "built without the headers of CUPTI"
    exit 77
fi
if ! python3 -c 'import json' 2> /dev/null; then
    echo "there is no python3 to read the profile"
    exit 77
fi
built=$(cd "$SIM_DIR/../.." && pwd)
LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
# Where another CUPTI might be found.
unset CUDA_HOME

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM
profile=$scratch/profile.json

complain()
{
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# run WHAT ENV... -- PROGRAM ARGUMENT...: profiled, prints what it prints plain.
run()
{
    what=$1
    shift
    settings=
    while [ "$1" != -- ]; do
        settings="$settings $1"
        shift
    done
    shift
    program=$1
    shift
    rm -f "$profile"
    # No setting of these tests has a blank.
    # shellcheck disable=SC2086
    env $settings CGSHIM_PROFILE= timeout 100 "$programs/$program" "$@" \
        > "$scratch/plain" 2> /dev/null
    plain=$?
    # shellcheck disable=SC2086
    timeout 100 env CGSHIM_PROFILE="$profile" $settings \
        LD_PRELOAD="$SHIM_LIB" "$programs/$program" "$@" \
        > "$scratch/out" 2> "$scratch/err"
    status=$?
    [ $status = $plain ] || complain "$what: exit status $status, plain $plain"
    cmp -s "$scratch/plain" "$scratch/out" || complain "$what: stdout differs"
}

# silent WHAT: nothing was said, and there is a profile.
silent()
{
    [ ! -s "$scratch/err" ] || complain "$1: $(cat "$scratch/err")"
    [ -s "$profile" ] || complain "$1: no profile"
}

# check WHAT EXPRESSION...: of p, the profile, and r, its regions by name.
check()
{
    of=$1
    shift
    for expression; do
        python3 - "$profile" "$expression" > "$scratch/said" 2>&1 << 'END' ||
import json, sys
p = json.load(open(sys.argv[1]))
r = {region["name"]: region for region in p["regions"]}
o = p["outside"]
first = p["regions"][0] if p["regions"] else o
if not eval("(" + sys.argv[2] + ")"):
    print(json.dumps(p, indent=1))
    sys.exit(1)
END
            complain "$of: not $expression: $(cat "$scratch/said")"
    done
}

# said WHAT PATTERN: one line and no profile.
said()
{
    [ "$(wc -l < "$scratch/err")" = 1 ] ||
        complain "$1: $(wc -l < "$scratch/err") lines: $(cat "$scratch/err")"
    grep -q "^cgshim: CGSHIM_PROFILE=.*$2.*there is no profile" \
        "$scratch/err" ||
        complain "$1: $(cat "$scratch/err")"
    [ ! -e "$profile" ] || complain "$1: there is a profile"
}

# A program bound by its launches, with known numbers.
run launch-bound SIM_LAUNCH_NS=20000 -- profiled --runs 200 --kernels 20 \
    --copies 1 --sets 2
silent launch-bound
check launch-bound 'p["schema"] == 1 and p["kind"] == "profile"' \
    'p["left_out"] == 0 and p["pid"] > 0 and p["version"]' \
    'list(r) == ["range 0"] and first["runs"] == 200' \
    'first["timed_runs"] + first["profiled_runs"] <= 200' \
    'first["profiled_runs"] >= 64 or (first["profiled_runs"] >= 8 and
     p["profiled_ns"] >= 1000000000)' \
    'first["launches"] == 20 and first["copies"] == 1 and first["sets"] == 2' \
    'first["calls"] == 23 and first["waits"] == 0' \
    'first["device_busy_ns"] == 20 * 1000 + 3 * 2000' \
    'first["verdict"] == "launch-bound" and first["expected_gain"] > 3' \
    'first["call_ns"] >= 23 * 20000 and first["run_ns"] >= first["call_ns"]' \
    'first["device_idle_ns"] > first["device_busy_ns"]' \
    'first["distinct_sequences"] == 1 and first["commonest_length"] == 23' \
    'first["sequences"] == first["commonest_sequence"]' \
    'first["sequences"] == first["profiled_runs"]' \
    'first["alike_percent"] == 100' \
    '{first["longest_gaps"][0][k] for k in ("before", "after")} <=
     {"k_scale", "k_axpy", "[copy]", "[set]"}' \
    'first["advice"] == "CGSHIM_REGION_range_0=\"nvtx='"'range 0'"'\" " +
     "CGSHIM_REPORT=stderr"'

# The same kernels, long ones.
run device-bound SIM_KERNEL_NS=1000000 -- profiled --runs 60 --kernels 20 \
    --wait 20
silent device-bound
check device-bound 'first["verdict"] == "device-bound"' \
    'first["expected_gain"] < 1.3 and first["launches"] == 20' \
    'first["device_busy_ns"] == 20 * 1000000' \
    'first["run_ns"] > first["device_busy_ns"]' \
    'first["waits"] == 2 and first["wait_ns"] > 0' \
    'first["distinct_sequences"] == 1'

# The host, waits, too few calls, always others.
run host-bound SIM_LAUNCH_NS=1000 -- profiled --runs 100 --kernels 10 \
    --host 300
check host-bound 'first["verdict"] == "host-bound"' \
    'first["expected_gain"] < 1.2'
run waits-bound SIM_KERNEL_NS=2000 -- profiled --runs 100 --wait 1
check waits-bound 'first["verdict"] == "waits-bound"' \
    'first["expected_gain"] == 1 and first["waits"] == 21'
run few SIM_LAUNCH_NS=5000 -- profiled --runs 100 --kernels 1
check few 'first["verdict"] == "too few launches"' \
    'first["expected_gain"] == 1 and first["launches"] == 1'
run different SIM_LAUNCH_NS=20000 -- profiled --runs 150 --vary 1
check different 'first["verdict"] == "always different"' \
    'first["expected_gain"] == 1 and first["alike_percent"] == 0' \
    'first["distinct_sequences"] == first["profiled_runs"]'

# What CUPTI costs is not in the times.
run slow SIM_LAUNCH_NS=20000 SIM_CUPTI_NS=1000000 -- profiled --runs 150
check slow 'first["run_ns"] < 20 * 1000000' \
    'first["verdict"] == "launch-bound" and first["launches"] == 20'

# Regions by turns, threads, and a thread that joins the run of another.
run regions SIM_LAUNCH_NS=2000 -- profiled --runs 300 --ranges 3
check regions 'list(r) == ["range 0", "range 1", "range 2"]' \
    'all(x["runs"] == 100 and x["launches"] == 20 for x in p["regions"])'
run threads SIM_LAUNCH_NS=2000 -- profiled --runs 200 --threads 3
check threads 'len(r) == 3 and all(x["runs"] == 200 for x in p["regions"])' \
    'all(x["launches"] in (20, None) for x in p["regions"])' \
    'any(x["launches"] == 20 for x in p["regions"])'
run other SIM_LAUNCH_NS=2000 -- profiled --runs 100 --other 1
check other 'first["launches"] == 40 and first["calls"] == 40'

# Without any range: what comes again, and what a range would give.
run outside SIM_LAUNCH_NS=20000 -- profiled --runs 4000 --ranges 0 --wait 20
silent outside
check outside 'p["regions"] == [] and o["runs"] is None' \
    'o["verdict"] == "launch-bound" and o["expected_gain"] > 3' \
    'o["launches"] > 1000 and o["commonest_length"] == 20' \
    'o["commonest_sequence"] > 50 and "NVTX range" in o["advice"]'
run set-up SIM_LAUNCH_NS=1000 -- profiled --runs 20 --ranges 0 --sleep 500
check set-up 'o["launches"] is None and o["run_ns"] is None' \
    'o["verdict"] == "not known" and o["expected_gain"] is None'

# Too short to say anything, and no region at all.
run short -- profiled --runs 6
silent short
check short 'first["runs"] == 6 and first["launches"] is None' \
    'first["verdict"] == "not known" and first["run_ns"] > 0' \
    'first["expected_run_ns"] is None and first["longest_gaps"] == []'

# A region that a rule has named; one that is left alone; odd names.
run rule SIM_LAUNCH_NS=20000 CGSHIM_REGION_mine=nvtx=range* -- profiled
check rule 'list(r) == ["mine"]' 'first["advice"] == "CGSHIM_REPORT=stderr"'
run disabled CGSHIM_DEFAULTS=enable=0 -- profiled
silent disabled
check disabled 'p["regions"] == []'
name=$(printf 'a"b\\c\td\033e\377/../f')
env SIM_LAUNCH_NS=5000 CGSHIM_PROFILE="$profile" LD_PRELOAD="$SHIM_LIB" \
    "CGSHIM_REGION_$name=nvtx=range*" "$programs/profiled" \
    > /dev/null 2> "$scratch/err"
silent names
check names 'list(r) == ["a\"b\\c\td\x1be\ufffd/../f"]'
env SIM_LAUNCH_NS=5000 CGSHIM_PROFILE=stderr LD_PRELOAD="$SHIM_LIB" \
    "CGSHIM_REGION_$name=nvtx=range*" "$programs/profiled" \
    > /dev/null 2> "$scratch/err"
grep -q "^  a\"b.*100.*launch-bound" "$scratch/err" ||
    complain "the table: $(cat "$scratch/err")"
LC_ALL=C grep -q "$(printf '[\033\377\t]')" "$scratch/err" &&
    complain "the table is not escaped"

# An old CUPTI: another clock, other thread ids, all calls.
run old LD_LIBRARY_PATH="$built/cupti_old/.libs:$LD_LIBRARY_PATH" \
    SIM_KERNEL_NS=100000 -- profiled --runs 100 --wait 20 --threads 2
silent old
check old 'any(x["launches"] == 20 for x in p["regions"])' \
    'all(x["launches"] in (20, None) for x in p["regions"])' \
    'all(x["launches"] is None or
         abs(x["device_busy_ns"] - 2000000) < 2000 for x in p["regions"])'

# Where it cannot be had.
run busy SIM_CUPTI=busy -- profiled
said busy "another tool uses CUPTI"
run denied SIM_CUPTI=denied -- profiled
said denied "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
run broken LD_LIBRARY_PATH="$built/cupti_broken/.libs:$LD_LIBRARY_PATH" \
    -- profiled
said broken "CUPTI lacks cuptiActivityFlushAll"
mkdir "$scratch/none"
for name in libcupti.so.13 libcupti.so.12 libcupti.so; do
    echo "no library" > "$scratch/none/$name"
done
run none LD_LIBRARY_PATH="$scratch/none:$LD_LIBRARY_PATH" -- profiled
said none "CUPTI was not found"
run nowhere CGSHIM_PROFILE="$scratch/no/profile" -- profiled
said nowhere "cannot be written (No such file"
run off CGSHIM=off -- profiled
[ ! -s "$scratch/err" ] || complain "CGSHIM=off: $(cat "$scratch/err")"
[ ! -e "$profile" ] || complain "CGSHIM=off: there is a profile"

# It is loaded for a profile alone.
for value in "" "$profile"; do
    env LD_DEBUG=files LD_DEBUG_OUTPUT="$scratch/loaded" \
        LD_PRELOAD="$SHIM_LIB" ${value:+CGSHIM_PROFILE="$value"} "$programs/const_args" > /dev/null
    cat "$scratch"/loaded.* > "$scratch/all"
    rm -f "$scratch"/loaded.*
    if [ -z "$value" ]; then
        ! grep -q libcupti "$scratch/all" || complain "CUPTI is loaded always"
    else
        grep -q libcupti "$scratch/all" || complain "LD_DEBUG does not tell"
    fi
done

# Whatever a program does, it does the same.
SIM_WORKER=1
export SIM_WORKER
for program in heat alternating attributes bad_launch contexts copies_sets \
    event_pool execs_shell exit_inside foreign_sync function_attributes joins \
    many_args modules nested_ranges pageable polls_mapped program_graphs \
    streams_default sync_inside threads_at_once two_threads_in_turn \
    unknown_call; do
    argument=
    [ $program != heat ] || argument=--small
    # shellcheck disable=SC2086
    run "$program" -- $program $argument
    check "$program" 'p["left_out"] == 0'
done
# The leak sanitizer finds what is no leak in the child of a fork.
run forks CGSHIM_PROFILE="$scratch/of.%p" \
    ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" -- forks
[ "$(find "$scratch" -name 'of.*' | wc -l)" = 1 ] ||
    complain "forks: $(find "$scratch" -name 'of.*' | wc -l) profiles"

[ $failed = 0 ]
