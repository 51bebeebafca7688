#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Regions without marks: loops that programs have are found and replayed
# (CGSHIM_AUTO), by rules regions begin and end at kernels and waits, and what
# was found can be set as rules (CGSHIM_SAVE). Programs print what they print
# plain.
#
#     AUTO_SEEDS    seeds of programs of loops ("1" to "12")
#
# SHIM_LIB, SIM_DIR and PROGRAMS_DIR are as everywhere.

set -u

programs=${PROGRAMS_DIR:-programs}
seeds=${AUTO_SEEDS:-1 2 3 4 5 6 7 8 9 10 11 12}
# However slow the machine is: what is held back waits for the program.
defaults="max_defer_us=1000000000 gate=off chunk=all"
failed=0

if [ -z "${SHIM_LIB:-}" ]; then
    echo "auto.sh: SHIM_LIB is not set" >&2
    exit 99
fi
if [ -z "${SIM_DIR:-}" ]; then
    echo "what is executed is counted on the simulated driver alone"
    exit 77
fi
LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

complain()
{
    echo "FAILED: $what: $*"
    failed=$((failed + 1))
}

# run "VARIABLE=VALUE ..." PROGRAM [ARGUMENT...]: plain and under the shim; sets
# how many kernels were executed and how many launches were swallowed.
run()
{
    variables=$1
    shift
    what="$variables $*"
    program=$programs/$1
    shift
    rm -f "$scratch/report" "$scratch/executed"
    "$program" "$@" > "$scratch/plain" 2>&1 || complain "fails plain"
    # shellcheck disable=SC2086
    timeout 60 env SIM_REPORT="$scratch/executed" \
        CGSHIM_REPORT="$scratch/report" CGSHIM_DEFAULTS="$defaults" \
        $variables LD_PRELOAD="$SHIM_LIB" \
        "$program" "$@" > "$scratch/shim" 2>&1 || complain "exit status $?"
    cmp -s "$scratch/plain" "$scratch/shim" ||
        complain "it prints something else: $(cat "$scratch/shim")"
    executed=$(awk '$1 == "kernel" { n += $3 } END { print n + 0 }' \
        "$scratch/executed")
    swallowed=$(sed -n 's/^  "swallowed_launches": \([0-9]*\),$/\1/p' \
        "$scratch/report")
}

# at_least PERCENT: of what was executed was swallowed.
at_least()
{
    [ $((${swallowed:-0} * 100)) -ge $((executed * $1)) ] ||
        complain "${swallowed:-0} of $executed launches swallowed, not $1%"
}

# says TEXT: a line of the report.
says()
{
    grep -q -e "$1" "$scratch/report" || complain "the report lacks $1"
}

all=0
taken=0
for seed in $seeds; do
    run CGSHIM_AUTO=1 loops "$seed"
    at_least 80
    all=$((all + executed))
    taken=$((taken + swallowed))
done
what="loops $seeds"
[ $((taken * 100)) -ge $((all * 90)) ] ||
    complain "$taken of $all launches swallowed, not 90%"
for seed in $seeds; do
    run CGSHIM_AUTO=1 loops "$seed" 2
    at_least 50
done

# Whatever cuts a loop short. What is not waited for when the program ends, or
# its context, may be executed or not: so nothing is counted here.
leaks=${ASAN_OPTIONS:-}
export ASAN_OPTIONS
# TSan itself crashes in the last destructors of a thread.
destructors=destructors
! LC_ALL=C grep -q -e __tsan_init "$SHIM_LIB" || destructors=
for how in threads streams_of_threads $destructors many fork capture unload \
    stream reset destroy contexts api regions default_stream exit
do
    # The leak sanitizer finds what is no leak in the child of a fork, which
    # lacks the timer's thread.
    [ $how != fork ] || ASAN_OPTIONS=$leaks:detect_leaks=0
    run CGSHIM_AUTO=1 cut_loops $how
    # Where another thread goes on destroying regions it may be too fast.
    [ "${swallowed:-0}" -gt 0 ] || [ $how = regions ] ||
        complain "nothing was swallowed"
    run "CGSHIM_REGION_span=between=sync" cut_loops $how
    ASAN_OPTIONS=$leaks
done

# A watch that comes to nothing rests, and finds what comes after that: as many
# calls are made in the loop as before it.
run CGSHIM_AUTO=1 cut_loops late 1
[ $((${swallowed:-0} * 6)) -gt "$executed" ] ||
    complain "${swallowed:-0} of $executed launches swallowed: it never woke"
[ $((${swallowed:-0} * 3)) -lt "$executed" ] ||
    complain "${swallowed:-0} of $executed launches swallowed: it never rested"

# What is kept of a thread goes with it.
[ -z "$destructors" ] || run CGSHIM_AUTO=1 cut_loops destructors 40

# Nobody has asked for it, or it has nothing to find, or ranges come first.
run "" loops 1
[ "$swallowed" = 0 ] || complain "$swallowed launches swallowed"
run CGSHIM_AUTO=0 loops 1
[ "$swallowed" = 0 ] || complain "$swallowed launches swallowed"
run CGSHIM_AUTO=1 bad_launch
run CGSHIM_AUTO=1 const_args
! grep -q '"name": "auto:' "$scratch/report" ||
    complain "a region was found where there are ranges"

# What was found can be set.
run "CGSHIM_AUTO=1 CGSHIM_SAVE=$scratch/saved" loops 2
says '"name": "auto:k_hash:24"'
grep -q "^CGSHIM_REGION_auto_1=from='k_hash' calls=24$" "$scratch/saved" ||
    complain "saved: $(cat "$scratch/saved")"
run "CGSHIM_CONFIG=$scratch/saved" loops 2
at_least 80
says '"name": "auto_1"'

# Of rules that begin at one kernel the first takes all.
run "CGSHIM_REGION_a=from=k_heat_source CGSHIM_REGION_b=from=k_heat_source" \
    heat --small
says '"hidden": true'
run "CGSHIM_REGION_a=from=k_heat_source CGSHIM_REGION_b=from=k_none" heat --small
says '"hidden": false'
[ "$(grep -c '^CGSHIM_REGION.*k_scale' "$scratch/saved")" = 1 ] ||
    complain "saved: $(cat "$scratch/saved")"

rm -f "$scratch/saved"
env CGSHIM_SAVE="$scratch/saved" LD_PRELOAD="$SHIM_LIB" "$programs/const_args" \
    2>&1 > /dev/null | grep -q "^cgshim: CGSHIM_SAVE=.*CGSHIM_AUTO=1" ||
    complain "saves what was not looked for"
[ ! -e "$scratch/saved" ] || complain "saved what was not looked for"

# From one kernel to another, to the next one of the same name, so many calls.
run "CGSHIM_REGION_step=from=k_heat_* CGSHIM_REGION_none=nvtx=none" heat --small
says '"runs": 60,'
at_least 85
run "CGSHIM_REGION_step=from=k_heat_source CGSHIM_REGION_r=nvtx=residual" \
    heat --small
at_least 85
cat > "$scratch/rules" << 'END'
CGSHIM_REGION_step=from=k_heat_source to=k_nothing
CGSHIM_REGION_none=nvtx=none
END
run "CGSHIM_CONFIG=$scratch/rules" heat --small
says '"runs": 1,'
cat > "$scratch/rules" << 'END'
CGSHIM_REGION_first=from=k_heat_source calls=3
END
run "CGSHIM_CONFIG=$scratch/rules" heat --small
says '"calls": 180,'

# Runs that the gate sends plain are as long as the others, though kernels that
# a run could begin with are in the midst of it.
given=$defaults
defaults="max_defer_us=1000000000 chunk=all gate=random"
cat > "$scratch/rules" << 'END'
CGSHIM_REGION_a=from=k_* calls=17
END
run "CGSHIM_CONFIG=$scratch/rules" loops 2
runs=$(sed -n 's/^ *"runs": \([0-9]*\),$/\1/p' "$scratch/report" | head -n 1)
[ "${runs:-0}" -gt 100 ] && [ "$runs" -le $((executed / 17 + 20)) ] ||
    complain "$runs runs of 17 calls, $executed kernels"
defaults=$given

# Rules that are too many are told of, and harm nobody.
number=0
while [ $number -lt 40 ]; do
    echo "CGSHIM_REGION_rule_$number=from=k_hash"
    number=$((number + 1))
done > "$scratch/rules"
what="40 rules"
"$programs/loops" 4 > "$scratch/plain" 2>&1
CGSHIM_CONFIG=$scratch/rules LD_PRELOAD="$SHIM_LIB" "$programs/loops" 4 \
    > "$scratch/shim" 2> "$scratch/told" || complain "exit status $?"
cmp -s "$scratch/plain" "$scratch/shim" || complain "it prints something else"
[ "$(cat "$scratch/told")" = "cgshim: CGSHIM_REGION_rule_32: 32 rules with \
from or between are taken; this one and later ones are ignored" ] ||
    complain "told: $(cat "$scratch/told")"

# Between two waits.
run "CGSHIM_REGION_span=between=sync" loops 4
says '"name": "span"'
at_least 50

exit $((failed > 0))
