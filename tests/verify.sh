#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# verify=N: a graph that leaves what its calls leave passes, one that does not
# is named and does no harm, and what cannot be verified is said. Graphs go
# wrong on the simulated driver as SIM_PLANT says.
#
# SHIM_LIB, SIM_DIR and PROGRAMS_DIR are as everywhere.

set -u

programs=${PROGRAMS_DIR:-programs}
# However slow the machine is: what is held back waits for the program.
pace="max_defer_us=1000000000 gate=off chunk=all"
failed=0

if [ -z "${SHIM_LIB:-}" ]; then
    echo "verify.sh: SHIM_LIB is not set" >&2
    exit 99
fi
if [ -z "${SIM_DIR:-}" ]; then
    echo "no graph goes wrong but on the simulated driver"
    exit 77
fi
LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

complain()
{
    echo "FAILED: $program: $*"
    failed=$((failed + 1))
}

# run KEYS PROGRAM [ARGUMENT...]: plain and under the shim.
run()
{
    keys=$1
    program=$2
    shift 2
    "$programs/$program" "$@" > "$scratch/plain" 2>&1 || complain "fails plain"
    env CGSHIM_REPORT="$scratch/report" CGSHIM_DEFAULTS="$pace $keys" \
        LD_PRELOAD="$SHIM_LIB" SIM_PLANT="${plant:-}" \
        SIM_FAIL="${fail:-}" SIM_STALL_NS="${stall:-0}" \
        "$programs/$program" "$@" \
        > "$scratch/shim" 2> "$scratch/err" || complain "exit status $?"
}

# A sum over all regions.
sum()
{
    awk -v key="\"$1\":" '$1 == key { n += $2 } END { print n + 0 }' \
        "$scratch/report"
}

is_as_plain()
{
    cmp -s "$scratch/plain" "$scratch/shim" ||
        complain "it prints something else"
}

# One line of the report says it.
says()
{
    grep -q -- "$1" "$scratch/report" || complain "the report lacks: $1"
}

# passes LEAST KEYS PROGRAM [ARGUMENT...]: at least so many graphs are verified,
# and none is wrong.
passes()
{
    least=$1
    shift
    run "$@"
    is_as_plain
    [ "$(sum verified)" -ge "$least" ] ||
        complain "$(sum verified) graphs verified, not $least"
    ! grep -q '"mistake": {' "$scratch/report" || complain "a graph is wrong"
    [ ! -s "$scratch/err" ] || complain "stderr: $(cat "$scratch/err")"
}

# A driver whose graphs go wrong: the program computes something else, unless
# each graph is verified; then it is plain after the first one.
finds()
{
    plant=$1
    program=$2
    run "" "$program"
    ! cmp -s "$scratch/plain" "$scratch/shim" ||
        complain "$plant does no harm"
    run verify=1 "$program"
    is_as_plain
    says '"mistake": {'
    says 'a graph left other bytes than its calls'
    grep -q "left other bytes than these calls leave; buffer 0x[0-9a-f]* of \
[0-9]* bytes, first at byte [0-9]*, is last taken by call [0-9]*, k_" \
        "$scratch/err" || complain "stderr: $(cat "$scratch/err")"
    plant=
}

# leaves REASON KEYS PROGRAM
leaves()
{
    reason=$1
    shift
    run "$@"
    is_as_plain
    says "\"reason\": \"$reason\""
}

passes 10 verify=1 const_args
passes 60 verify=1 changing_args
passes 60 verify=1 heat --small
passes 10 verify=1 copies_sets
passes 10 verify=1 pageable
passes 1 verify=1 event_pool
passes 1 verify=1 halves
passes 1 verify=1 halves both
# What another thread's calls write is not undone, however long they take.
stall=1000000
passes 1 verify=1 halves
passes 1 verify=1 halves both
stall=0
passes 1 verify=1 joins
passes 1 verify=1 alternating
pace="max_defer_us=1000000000 gate=off chunk=4"
passes 10 verify=3 const_args
pace="max_defer_us=1000000000 gate=off chunk=all"
passes 1 verify=1 threads_at_once
passes 1 verify=1 two_threads_in_turn

leaks=${ASAN_OPTIONS:-}
# A thread that is cancelled takes no turn with it. ASan itself stumbles over the
# stack of such a thread where it has signals on one of their own.
ASAN_OPTIONS=$leaks:use_sigaltstack=0
export ASAN_OPTIONS
passes 1 verify=1 cancels

# The leak sanitizer finds what is no leak in the child of a fork, which lacks
# the timer's thread.
ASAN_OPTIONS=$leaks:detect_leaks=0
export ASAN_OPTIONS
passes 1 verify=1 forks
passes 1 "verify=1 streams=separate" forks
ASAN_OPTIONS=$leaks

finds patch changing_args
finds drop changing_args
finds swap changing_args

# The plain run has no cgshim to ask.
program=api_user
env USER_VERIFIES=1 CGSHIM_DEFAULTS="$pace verify=1" LD_PRELOAD="$SHIM_LIB" \
    "$programs/api_user" > "$scratch/shim" 2>&1 ||
    complain "$(cat "$scratch/shim")"

# Every third run and no other.
run verify=3 const_args
thrice=$(sum verified)
run verify=1 const_args
[ "$thrice" = $(($(sum verified) / 3)) ] ||
    complain "verify=3: $thrice graphs verified, verify=1: $(sum verified)"

leaves "it uses more memory than verify_mb allows to keep" \
    "verify=1 verify_mb=1" const_args
leaves "a host function would be called twice" verify=1 hazards/hazards \
    host_functions_and_callbacks
# It is waited for once.
leaves "a call of another thread did not end in a second" verify=1 stuck_call
# The calls are made only from the bytes that the graph had: else what it has
# left stays.
fail=cuPointerGetAttributes:3+
leaves "the driver does not say what memory it uses" verify=1 const_args
for call in 1 2 5; do
    fail=cuMemcpyHtoD:$call
    leaves "cuMemcpyHtoD: CUDA_ERROR_OUT_OF_MEMORY" verify=1 const_args
    fail=cuMemcpyDtoH:$call
    run verify=1 heat --small
    is_as_plain
done
fail=
plant=noise
run verify=1 const_args
says "its calls leave other bytes each time"
! grep -q '"mistake": {' "$scratch/report" || complain "noise is a mistake"
plant=

exit $((failed > 0))
