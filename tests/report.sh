#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the report says of programs whose calls are known: it is whole JSON with
# the keys that the manual has, it names the first call that was not as
# recorded, what differs most often, and why something was plain, and advises.
#
# SHIM_LIB, SIM_DIR and PROGRAMS_DIR are as everywhere.

set -u

here=$(dirname "$0")
programs=${PROGRAMS_DIR:-programs}
# However slow the machine is: what is held back waits for the program, and is
# replayed.
defaults="max_defer_us=1000000000 gate=off chunk=all"
failed=0

if [ -z "${SHIM_LIB:-}" ]; then
    echo "report.sh: SHIM_LIB is not set" >&2
    exit 99
fi
if [ -z "${SIM_DIR:-}" ]; then
    echo "what is counted is known on the simulated driver alone"
    exit 77
fi
LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM
report=$scratch/report.json

complain()
{
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# run PROGRAM VARIABLE=VALUE...: under the shim, with a report. What it says on
# stderr is a failure, or goes to the file that `errors` names.
errors=
run()
{
    program=$1
    argument=
    [ "$program" != heat ] || argument=--small
    [ "$program" != loops ] || argument=1
    shift
    rm -f "$report"
    env CGSHIM_REPORT="$report" CGSHIM_DEFAULTS="$defaults" "$@" \
        LD_PRELOAD="$SHIM_LIB" "$programs/$program" $argument \
        > "$scratch/out" 2> "$scratch/err" ||
        complain "$program: exit status $?"
    if [ -n "$errors" ]; then
        mv "$scratch/err" "$errors"
    elif [ -s "$scratch/err" ]; then
        complain "$program: $(cat "$scratch/err")"
    fi
    if [ ! -r "$report" ]; then
        complain "$program: no report"
        : > "$report"
    fi
    is_json "$report" || complain "$program: the report is no JSON"
    sed -n 's/^ *"\([a-z_]*\)": .*/\1/p' "$report" >> "$scratch/keys"
}

# A small reader of JSON: the text must be one value and nothing more.
is_json()
{
    if command -v python3 > /dev/null; then
        python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$1" \
            2> /dev/null || return 1
    fi
    tr -d '\n' < "$1" | LC_ALL=C awk '
    function blank() { sub(/^[ \t]+/, "", text) }
    function take(token) {
        blank()
        if (substr(text, 1, length(token)) != token) return 0
        text = substr(text, length(token) + 1)
        return 1
    }
    function string() {
        blank()
        if (!match(text, /^"([^"\\\001-\037]|\\(["\\\/bfnrt]|u[0-9a-fA-F]+))*"/))
            return 0
        text = substr(text, RLENGTH + 1)
        return 1
    }
    function list(end, named) {
        if (take(end)) return 1
        do {
            if (named && !(string() && take(":"))) return 0
            if (!value()) return 0
        } while (take(","))
        return take(end)
    }
    function value() {
        if (take("{")) return list("}", 1)
        if (take("[")) return list("]", 0)
        if (take("true") || take("false") || take("null")) return 1
        blank()
        if (match(text, /^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?/)) {
            text = substr(text, RLENGTH + 1)
            return 1
        }
        return string()
    }
    { text = $0; good = value(); blank(); exit !(good && text == "") }'
}

# get KEY [REGION]: a value of the whole, or of a region, its first of the name.
get()
{
    awk -v key="$1" -v region="${2:-}" '
    {
        line = $0
        sub(/^ */, "", line)
        sub(/,$/, "", line)
        if (line ~ /^"name": /) inside = line == "\"name\": \"" region "\""
        if (region == "" && line ~ /^"regions": /) exit
        if ((region == "" || inside) && index(line, "\"" key "\": ") == 1) {
            sub(/^[^:]*: /, "", line)
            print line
            exit
        }
    }' "$report"
}

# is KEY VALUE [REGION]
is()
{
    value=$(get "$1" "${3:-}")
    [ "$value" = "$2" ] ||
        complain "$program${3:+, region $3}: $1 is $value, not $2"
}

# at_least KEY NUMBER [REGION]
at_least()
{
    value=$(get "$1" "${3:-}")
    [ "${value:-0}" -ge "$2" ] ||
        complain "$program${3:+, region $3}: $1 is $value, less than $2"
}

says()
{
    grep -qF -e "$1" "$report" || complain "$program: nothing says $1"
}

says_not()
{
    ! grep -qF -e "$1" "$report" || complain "$program: something says $1"
}

# The process.
run const_args
says '"version": "'
is program "\"$programs/const_args\""
is mode '"on"'
is note null
is driver_version 13000
is launches 300
is runs 12 constant
is replayed_runs 11 constant
is recordings 1 constant
is plain_runs 0 constant
is calls 300 constant
is swallowed 275 constant
is launches 11 constant
is patched 0 constant
is nodes 25 constant
is builds 1 constant
at_least host_bytes 1000 constant
at_least device_bytes 1 constant
at_least build_ns 1 constant
says '"fallbacks": []'
says '"first_divergence": null'

is schema 1
is kind '"report"'
is active true
is why_not null
is graphs 11
is swallowed_launches 275
is swallowed_launches 275 constant
is advice '[]' constant

# What was saved is what the swallowed calls would have taken, less what was
# done in their place: of measured figures alone.
run changing_args
for region in pointers scalar mixed; do
    call_ns=$(get plain_call_ns $region)
    [ "${call_ns:-null}" != null ] || complain "$region: plain_call_ns is null"
    at_least graph_ns 1 $region
    is host_saved_ns $(($(get swallowed $region) * ${call_ns:-0} -
        $(get graph_ns $region) - $(get build_ns $region))) $region
done
# With the gate off no run is plain, so nothing is known of what one takes.
is plain_run_ns null scalar
at_least replayed_run_ns 1 scalar

# With it on some runs are: both are known, whichever wins.
run heat CGSHIM_DEFAULTS="max_defer_us=1000000000 chunk=all" \
    CGSHIM_REGION_step=
at_least plain_runs 1 step
at_least plain_run_ns 1 step
at_least replayed_run_ns 1 step
at_least plain_call_ns 1 step

# Over 95% of the demonstration are swallowed.
run heat
calls=$(get calls step)
swallowed=$(get swallowed step)
[ $((swallowed * 100)) -gt $((calls * 95)) ] ||
    complain "heat: $swallowed of $calls swallowed"
at_least runs 50 step
is state '"ended"' step

# The first call that is not as recorded.
run changing_args
is run 2 scalar
is op_index 1 scalar
is kernel '"k_axpy"' scalar
is what '"argument"' scalar
is arg 3 scalar
is offset 0 scalar
is size 4 scalar
is old_bytes '"01000000"' scalar
is new_bytes '"03000000"' scalar
is kernel '"k_struct"' struct
is arg 1 struct
is size 32 struct
is recordings 1 struct
is patched 90 scalar
says '"call": "kernel"'

# What differs most often. Runs that alternate are learned; until then they
# differ.
# differs REGION KEY VALUE: of the place that a region has first.
differs()
{
    value=$(awk -v name="\"name\": \"$1\"," -v key="\"$2\": " '
        index($0, "\"name\": ") { inside = index($0, name) }
        index($0, "\"divergences\": ") { listed = inside }
        inside && listed && index($0, key) {
            sub(/^[^:]*: /, ""); sub(/,$/, ""); print; exit
        }' "$report")
    [ "$value" = "$3" ] || complain "$1: first of divergences: $2 is $value," \
        "not $3"
}
is watched_runs 15 scalar
differs scalar op_index 1
differs scalar kernel '"k_axpy"'
differs scalar arg 3
differs scalar runs 15
differs scalar share 1.000
differs scalar pattern '"grows"'
differs struct pattern '"a new value each time"'
differs pointers arg 0
differs pointers pattern '"alternates among 2 buffers"'

# Calls that are no kernels are called what they are.
run event_pool
is call '"event record"' pool
is kernel '"event record"' pool
is what '"event"' pool

run changing_sequence
is run 4 sequence
is op_index 5 sequence
is kernel '"k_chain"' sequence
is what '"kernel"' sequence
is old_text '"k_chain"' sequence
is new_text '"k_hash"' sequence
says '"reason": "a call was not as recorded"'
says '"reason": "it ended before the recording did"'
says 'with a larger variants= more ways are kept'

# Why nothing is replayed.
run const_args SIM_FAIL=cuGraphInstantiateWithFlags:1+
is swallowed 0 constant
is active false
is why_not '"no graph was launched"'
is host_saved_ns 0
says 'give a smaller memory_mb'
is state '"ended"' constant
says '"reason": "cuGraphInstantiate: CUDA_ERROR_OUT_OF_MEMORY"'
run const_args SIM_DRIVER_VERSION=12030
is note '"the driver is older than CUDA 12.4"'
is active false
is why_not '"the driver is older than CUDA 12.4"'
is driver_version 12030
run program_graphs
says "a stream capture of the program's own"
run sync_inside
says '"reason": "a cut that was not recorded: cu'

# Rules and ranges.
run const_args CGSHIM_REGION_mine="nvtx='const*' warmup=5"
is runs 12 mine
is plain_runs 5 mine
is replayed_runs 6 mine
says_not '"name": "constant"'
run const_args CGSHIM_REGION_constant=enable=0
says '"regions": []'
run const_args CGSHIM_DEFAULTS=enable=0
says '"regions": []'
is active false
is why_not '"no region ran"'
says 'mark the work that comes again by an NVTX range'
run nested_ranges
is runs 8 outer
is calls 80 outer
is runs 8 inner
says_not '"name": "first"'          # of start/end ranges only rules are regions
says_not '"name": "innermost"'
run nested_ranges CGSHIM_REGION_first=
is runs 16 first

# Rules that nothing matches, and what there was.
run const_args CGSHIM_REGION_other="nvtx=misspelt" CGSHIM_REGION_k="from=k_none"
says '"rule": "other"'
says '"of": "range"'
says '"rule": "k"'
says '"of": "kernel"'
says '    "constant"'
says '    "k_'
is why_not '"no region ran"'
run const_args CGSHIM_REGION_mine="nvtx='const*'"
says '"unmatched": [],'
run const_args CGSHIM_REGION_off="nvtx=misspelt enable=0"
says '"unmatched": [],'

# What automatic regions would come to; where there are regions nobody asks.
run loops
says 'or set CGSHIM_AUTO=1, which finds loops'
looked_at()
{
    sed -n 's/^  "looked_at": \([0-9]*\),$/\1/p' "$report"
}
[ "$(looked_at)" -gt 1000 ] || complain "looked at $(looked_at) calls"
run const_args
[ "$(looked_at)" -lt 20 ] || complain "looked at $(looked_at) calls"

# Each call of the program is seen: those that the driver is asked for plain.
run copies_sets CGSHIM=observe
is mode '"observe"'
is why_not '"CGSHIM=observe only compares"'
SIM_REPORT=$scratch/plain "$programs/copies_sets" > "$scratch/plain.out"
cmp -s "$scratch/out" "$scratch/plain.out" ||
    complain "copies_sets: another output in observe mode"
calls_of()
{
    awk -v names="$1" '$1 == "call" && $2 ~ "^(" names ")$" { sum += $3 }
        END { print sum + 0 }' "$scratch/plain"
}
is launches "$(calls_of 'cuLaunch(Kernel|KernelEx|CooperativeKernel)(_ptsz)?')"
is copies "$(calls_of \
    'cuMemcpy((DtoD|HtoD|DtoH|2D|3D)?Async|DtoD)(_v2)?(_ptsz|_ptds)?')"
is sets "$(calls_of \
    'cuMemsetD(2D)?(8|16|32)(Async|_v2)(_ptsz|_ptds)?')"
at_least copies 100
grep '"swallowed": ' "$report" | grep -qv ': 0,$' &&
    complain "copies_sets: something is swallowed in observe mode"
grep '"builds": ' "$report" | grep -qv ': 0,$' &&
    complain "copies_sets: something is built in observe mode"

# What is held back when the process ends is issued: the simulated driver then
# completes it.
for seed in 1 2 3; do
    run exit_inside SIM_SEED=$seed SIM_REPORT="$scratch/shim"
    SIM_SEED=$seed SIM_REPORT=$scratch/plain "$programs/exit_inside" \
        > "$scratch/plain.out" 2>&1
    [ "$(grep '^kernel' "$scratch/plain")" = \
        "$(grep '^kernel' "$scratch/shim")" ] ||
        complain "exit_inside: $(grep '^kernel' "$scratch/shim"), plain" \
            "$(grep '^kernel' "$scratch/plain")"
done

# A child writes no report of its parent's.
rm -rf "$scratch/reports"
mkdir "$scratch/reports"
env CGSHIM_REPORT="$scratch/reports/%p" LD_PRELOAD="$SHIM_LIB" \
    "$programs/forks" > "$scratch/out" 2>&1
[ "$(ls "$scratch/reports" | wc -l)" = 1 ] ||
    complain "forks: $(ls "$scratch/reports" | wc -l) reports"

# On stderr, for people; the program's own output is as it was.
"$programs/changing_sequence" > "$scratch/plain.out"
env CGSHIM_REPORT=stderr \
    CGSHIM_DEFAULTS="max_defer_us=1000000000 gate=off chunk=all" \
    LD_PRELOAD="$SHIM_LIB" "$programs/changing_sequence" \
    > "$scratch/out" 2> "$scratch/err"
cmp -s "$scratch/out" "$scratch/plain.out" || complain "stdout differs"
for text in "$programs/changing_sequence" swallowed sequence \
    ": active in $programs/changing_sequence (pid " "% of launches swallowed" \
    "most often: in " "host time saved: " "    advice: " \
    "first divergence: run 4, call 5, kernel k_chain" "k_chain -> k_hash" \
    "9 times: a call was not as recorded"; do
    grep -qF -e "$text" "$scratch/err" || complain "stderr lacks '$text'"
done
env CGSHIM_REPORT=stderr CGSHIM_DEFAULTS=enable=0 LD_PRELOAD="$SHIM_LIB" \
    "$programs/const_args" 2>&1 > /dev/null | grep -q "no region ran" ||
    complain "no hint where no region ran"

# A graph that is wrong is said on stderr too.
errors=$scratch/wrong
SIM_PLANT=drop
export SIM_PLANT
run changing_args CGSHIM_DEFAULTS="$defaults verify=1"
unset SIM_PLANT
grep -q "left other bytes than these calls leave" "$errors" ||
    complain "a wrong graph is not told"
says "report it as an issue"
errors=

# Each key of the reports is in the manual, and each of the manual's is there.
sort -u "$scratch/keys" > "$scratch/reported"
sed -n '/<!-- report keys -->/,/<!-- end report keys -->/p' \
    "$here/../README.md" | sed -n 's/^| \(`[^|]*\)|.*/\1/p' | tr -c 'a-z_' '\n' | grep . | sort -u \
    > "$scratch/documented"
diff "$scratch/documented" "$scratch/reported" > "$scratch/diff" ||
    complain "keys of the manual (<) and of reports (>): $(cat "$scratch/diff")"

# A program that diverges in each run writes no line for each.
lines=$scratch/log
env CGSHIM_LOG=debug CGSHIM_LOG_FILE="$lines" CGSHIM_REPORT="$report" \
    CGSHIM_DEFAULTS="$defaults on_change=eager" LD_PRELOAD="$SHIM_LIB" \
    "$programs/heat" --size 16 --tile 4 --steps 1500 > "$scratch/out" 2>&1 ||
    complain "heat: exit status $?"
program=heat
diverged=$(awk '/"reason": "a call was not as recorded"/ { getline
    gsub(/[^0-9]/, ""); sum += $0 } END { print sum + 0 }' "$report")
written=$(grep -c ': recorded kernel .*, called kernel ' "$lines")
left_out=$(grep ' more lines "region %s: run %llu, call ' "$lines" |
    sed 's/.* \([0-9]*\) more lines .*/\1/' | awk '{ sum += $0 } END { print sum + 0 }')
[ "$diverged" -gt 1000 ] || complain "heat: diverged only $diverged times"
[ "$left_out" -gt 0 ] || complain "heat: no line of the log is left out"
[ $((written + left_out)) = "$diverged" ] ||
    complain "heat: $written lines and $left_out left out, not $diverged"

[ $failed = 0 ]
