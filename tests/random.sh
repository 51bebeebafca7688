#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Random programs leave the same memory plain and under the shim, and plain ones
# leave the same memory whatever the scheduler does.
#
#     RANDOM_FIRST    seed of the first program (1)
#     RANDOM_COUNT    number of programs (6000)
#     RANDOM_CHUNK    programs in one process (50); the number of the chunk is
#                     the seed of its scheduler
#     RANDOM_JOBS     processes at a time (2)
#     RANDOM_PLAIN    number of programs that are also run plain with 20 seeds
#                     of the scheduler (100)
#     RANDOM_SECONDS  seconds after which no more processes are started (0: no
#                     such limit)
#     RANDOM_SHRINK   0: programs that differ are not made smaller (1)
#     RANDOM_ONLY     1: only the configuration that the environment says (0:
#                     one of a few by turns)
#
# and PROGRAMS_DIR and run-pair.sh's environment. Programs that differ are
# made as small as they can be and printed (random-shrink.sh).

set -u

here=$(dirname "$0")
random=${PROGRAMS_DIR:-programs}/random_ops
first=${RANDOM_FIRST:-1}
count=${RANDOM_COUNT:-6000}
chunk=${RANDOM_CHUNK:-50}
jobs=${RANDOM_JOBS:-2}
plain=${RANDOM_PLAIN:-100}
seconds=${RANDOM_SECONDS:-0}
began=$(date +%s)

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

# A rule for each name that a range may have makes regions of start/end ranges
# too.
for n in 0 1 2 4 5 6 8 9 10 11 12 13 14; do
    echo "CGSHIM_REGION_loop_$n=nvtx=\"loop $n\""
done > "$scratch/rules"

# The configuration of a chunk, for run-pair.sh.
configuration()
{
    [ "${RANDOM_ONLY:-0}" = 0 ] || { echo "${PAIR_ENV:-}"; return; }
    case $(($1 % 8)) in
        1 | 5) echo "CGSHIM_CONFIG=$scratch/rules" ;;
        2) echo "CGSHIM_DEFAULTS=streams=separate" ;;
        3) echo "CGSHIM_CONFIG=$scratch/rules" \
            "CGSHIM_DEFAULTS=max_defer_us=50" ;;
        6) echo "CGSHIM_DEFAULTS=on_change=recapture" ;;
        7) echo "CGSHIM_REGION_all=nvtx=*" ;;
        *) echo ;;
    esac
}

# run_chunk NUMBER: one process plain and one under the shim.
run_chunk()
{
    begin=$((first + $1 * chunk))
    PAIR_ENV=$(configuration "$1") SEEDS=$(($1 + 1)) "$here/run-pair.sh" \
        "$random" "$begin" "$chunk" > "$scratch/$1.out" 2>&1
    status=$?
    if [ $status -ne 0 ]; then
        echo "$1 $status" >> "$scratch/failed"
    else
        rm -f "$scratch/$1.out"
        echo "$1" >> "$scratch/passed"
    fi
}

in_time()
{
    [ "$seconds" = 0 ] || [ $(($(date +%s) - began)) -lt "$seconds" ]
}

# run_job NUMBER: every so many chunks.
run_job()
{
    number=$1
    while [ $((number * chunk)) -lt "$count" ] &&
        [ ! -e "$scratch/failed" ] && in_time
    do
        run_chunk "$number"
        number=$((number + jobs))
    done
}

# Not one of the scheduler's seeds makes a plain program print something else.
check_plain()
{
    expected=
    for seed in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        sum=$(SIM_SEED=$seed LD_LIBRARY_PATH="$SIM_DIR" timeout 60 "$random" \
            "$first" "$plain" | cksum)
        expected=${expected:-$sum}
        if [ "$sum" != "$expected" ]; then
            echo "plain programs $first to $((first + plain - 1)) print" \
                "something else with scheduler seed $seed"
            exit 1
        fi
    done
}

report()
{
    read -r number status < "$scratch/failed"
    begin=$((first + number * chunk))
    cat "$scratch/$number.out"
    if [ "$status" -eq 1 ] && [ "${RANDOM_SHRINK:-1}" != 0 ]; then
        PAIR_ENV=$(configuration "$number") SEEDS=$((number + 1)) \
            "$here/random-shrink.sh" "$begin" "$chunk"
    fi
    echo "programs $begin to $((begin + chunk - 1))," \
        "SEEDS=$((number + 1)) PAIR_ENV='$(configuration "$number")'"
    exit "$status"
}

: > "$scratch/passed"
if [ -n "${SIM_DIR:-}" ] && [ "$plain" -gt 0 ]; then
    check_plain
fi
job=0
while [ $job -lt "$jobs" ]; do
    run_job $job &
    job=$((job + 1))
done
wait
[ ! -e "$scratch/failed" ] || report
echo "$(($(wc -l < "$scratch/passed") * chunk)) random programs from seed $first"
