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

# Regions that begin and end at kernels: up to the next one, up to another one,
# and so many calls.
cat > "$scratch/kernels" << 'END'
CGSHIM_REGION_next=from=k_hash
CGSHIM_REGION_to="from=k_a[dx]* to=k_[cs]*"
CGSHIM_REGION_calls="from=k_* calls=5"
END

# Each chunk has one of these configurations: what is a region, and keys of the
# defaults. The word says which ranges are regions (none: those that are without
# any rule; each: those with a rule of their own; all: all by one rule), or what
# is one without a mark (auto: what is found, and no range; auto+ranges: both;
# between: what is between two waits; from: what begins at kernels).
cat > "$scratch/configurations" << 'END'
none gate=off
auto gate=off
each gate=off chunk=2
none gate=off streams=separate
each gate=off max_defer_us=50
from gate=off
none gate=off chunk=1
each gate=off chunk=3 max_defer_us=50
none gate=random
all gate=off variants=1
auto+ranges gate=off chunk=3
none gate=off chunk=7
none gate=off verify=1
each gate=off memory_mb=1
none gate=off chunk=all
between gate=off
each gate=off
none gate=off variants=2 chunk=3
each gate=off verify=2 chunk=3 streams=separate
all gate=off on_change=recapture
auto gate=random streams=separate
none gate=off streams=separate chunk=2
each gate=random max_defer_us=50
none gate=off memory_mb=1 chunk=1
none gate=off on_change=eager
none gate=off variants=1 chunk=2
from gate=random chunk=2 variants=2
auto gate=off verify=2
each gate=off streams=separate max_defer_us=50
none gate=off variants=2
none gate=random chunk=3 variants=2
all gate=off chunk=1 max_defer_us=50
none gate=off on_change=recapture chunk=2
none
each gate=off streams=separate chunk=7 variants=1
none gate=random streams=separate
auto+ranges gate=random memory_mb=1
all gate=random memory_mb=1
none gate=off memory_mb=1 chunk=all
each gate=off chunk=all max_defer_us=50
none gate=off on_change=eager chunk=3
all gate=on chunk=2 max_defer_us=50
END

# configure NUMBER: the configuration of a chunk, for run-pair.sh.
configure()
{
    [ "${RANDOM_ONLY:-0}" = 0 ] || return 0
    lines=$(wc -l < "$scratch/configurations")
    line=$(sed -n "$(($1 % lines + 1))p" "$scratch/configurations")
    case $line in
        each*) PAIR_ENV="CGSHIM_CONFIG=$scratch/rules" ;;
        all*) PAIR_ENV="CGSHIM_REGION_all=nvtx=*" ;;
        auto+ranges*) PAIR_ENV=CGSHIM_AUTO=1 ;;
        auto*) PAIR_ENV="CGSHIM_AUTO=1 CGSHIM_REGION_none=nvtx=none" ;;
        between*) PAIR_ENV=CGSHIM_REGION_span=between=sync ;;
        from*) PAIR_ENV="CGSHIM_CONFIG=$scratch/kernels" ;;
        *) PAIR_ENV= ;;
    esac
    PAIR_DEFAULTS=${line#* }
    [ "$PAIR_DEFAULTS" != "$line" ] || PAIR_DEFAULTS=
    export PAIR_ENV PAIR_DEFAULTS
}

# run_chunk NUMBER: one process plain and one under the shim.
run_chunk()
{
    begin=$((first + $1 * chunk))
    configure "$1"
    # Every fourth has a driver that gives no handle twice, and crashes where
    # it is given one that is dead.
    if [ $(($1 % 4)) = 2 ]; then
        SIM_STRICT=1
        export SIM_STRICT
    else
        unset SIM_STRICT
    fi
    SEEDS=$(($1 + 1)) "$here/run-pair.sh" "$random" "$begin" "$chunk" \
        > "$scratch/$1.out" 2>&1
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
    configure "$number"
    if [ "$status" -eq 1 ] && [ "${RANDOM_SHRINK:-1}" != 0 ]; then
        SEEDS=$((number + 1)) "$here/random-shrink.sh" "$begin" "$chunk"
    fi
    echo "programs $begin to $((begin + chunk - 1))," \
        "SEEDS=$((number + 1)) PAIR_ENV='${PAIR_ENV:-}'" \
        "PAIR_DEFAULTS='${PAIR_DEFAULTS:-}'"
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
passed=$(wc -l < "$scratch/passed")
echo "$((passed * chunk)) random programs from seed $first"
