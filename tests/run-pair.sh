#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a program plain and under the shim, and fails where they differ.
#
#     run-pair.sh PROGRAM [ARGUMENT...]
#
# Compared are stdout, stderr, the exit status and, on the simulated driver, how
# often each kernel, copy and set was executed. What the environment says:
#
#     SHIM_LIB        the shim (libcgshim.so)
#     SIM_DIR         the folder of the simulated libcuda.so.1; empty or unset:
#                     the machine's own driver
#     SEEDS           seeds of the simulated driver's scheduler ("1 2 3 4 5")
#     PAIR_PLAIN      "each": a plain run for each seed; "once": only for the
#                     first, for programs whose plain runs agree ("each")
#     PAIR_COUNTS     0: do not compare executions (1)
#     PAIR_SWALLOWED  at least so many percent of the calls in regions must have
#                     been swallowed, as the shim's report says (0: not looked
#                     at, and no report is written)
#     PAIR_TIMEOUT    seconds that one run may take (60)
#     PAIR_PRELOAD    more libraries to preload in both runs, after the shim
#     PAIR_ENV        "NAME=VALUE ..." only for the run under the shim
#     PAIR_DEFAULTS   keys for CGSHIM_DEFAULTS there
#
# A program that fails plain has shown nothing, so it fails the test too. One
# that finds no device exits 77, and so does this script.

set -uf

if [ $# -lt 1 ] || [ -z "${SHIM_LIB:-}" ]; then
    echo "usage: SHIM_LIB=libcgshim.so run-pair.sh PROGRAM [ARGUMENT...]" >&2
    exit 99
fi
if [ ! -r "$SHIM_LIB" ]; then
    echo "run-pair.sh: no shim at $SHIM_LIB" >&2
    exit 99
fi

program=$1
shift
name=$(basename "$program")
counts=${PAIR_COUNTS:-1}
swallowed=${PAIR_SWALLOWED:-0}
preload=${PAIR_PRELOAD:-}
seeds=${SEEDS:-1 2 3 4 5}

case $name in
    # What is pending when a process ends may run or not.
    exit_inside) counts=0 ;;
    # The leak sanitizer finds what is no leak in the child of a fork, which
    # lacks the timer's thread.
    forks)
        ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
        export ASAN_OPTIONS ;;
    # Waits for work without calling the driver, which must then work by itself.
    polls_mapped)
        SIM_WORKER=1
        export SIM_WORKER
        PAIR_TIMEOUT=${PAIR_TIMEOUT:-20} ;;
esac

# What is verified is executed twice.
case ${PAIR_DEFAULTS:-} in
    *verify=*) counts=0 ;;
esac

if [ -n "${SIM_DIR:-}" ]; then
    if [ ! -r "$SIM_DIR/libcuda.so.1" ]; then
        echo "run-pair.sh: no simulated driver in $SIM_DIR" >&2
        exit 99
    fi
    driver_path=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
else
    driver_path=${LD_LIBRARY_PATH:-}
    seeds="-"
    counts=0
fi

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

# run_one plain|shim SEED ARGUMENT...: the libraries are given to env, so that
# neither it nor timeout is run with them.
run_one()
{
    kind=$1
    seed=$2
    shift 2
    out=$scratch/$kind
    libraries=$preload
    more=
    defaults=
    if [ "$kind" = shim ]; then
        libraries=$SHIM_LIB${preload:+:$preload}
        more=${PAIR_ENV:-}
        defaults=${PAIR_DEFAULTS:-}
        if [ "$swallowed" != 0 ]; then
            more="CGSHIM_REPORT=$scratch/report.json $more"
            # A machine that is busy is no program that has stopped calling,
            # and times on the simulated driver say nothing.
            if [ -n "${SIM_DIR:-}" ]; then
                defaults="max_defer_us=1000000000 gate=off $chunk $defaults"
            fi
        fi
    fi
    # shellcheck disable=SC2086
    timeout "${PAIR_TIMEOUT:-60}" env SIM_SEED="$seed" \
        SIM_REPORT="$out.report" LD_LIBRARY_PATH="$driver_path" \
        LD_PRELOAD="$libraries" ${defaults:+"CGSHIM_DEFAULTS=$defaults"} \
        $more \
        "$program" "$@" > "$out.out" 2> "$out.err"
    echo "exit status $?" > "$out.status"
    case $name in
        # A lookup through the whole program of a name that we export and the
        # driver lacks fails as it should, but dlerror() names us: README,
        # Limits.
        rtld_default | dlerror_state | missing_name | by_dlvsym)
            sed -i "s|^\(.*\)$SHIM_LIB: undefined|\1$program: undefined|" \
                "$out.out" ;;
    esac
    : > "$out.executed"
    if [ -r "$out.report" ]; then
        grep -E '^(kernel|copy|set) ' "$out.report" > "$out.executed"
        rm -f "$out.report"
    fi
}

# differs FILE: whether the runs differ in it; says so and how.
differs()
{
    cmp -s "$scratch/plain.$1" "$scratch/shim.$1" && return 1
    echo "$name, seed $seed: $2 differs (- plain, + shim):"
    diff -u "$scratch/plain.$1" "$scratch/shim.$1" | sed -e 1,2d | head -n 60
    return 0
}

# A sum over all regions of the report.
report_sum()
{
    tr -d ' \t\n' < "$scratch/report.json" | sed -e 's/[][,{}]/\n/g' |
        sed -n "s/^\"$1\":\\([0-9]*\\)\$/\\1/p" |
        { sum=0; while read -r n; do sum=$((sum + n)); done; echo "$sum"; }
}

enough_swallowed()
{
    [ "$swallowed" != 0 ] || return 0
    [ "$(cat "$scratch/plain.status")" = "exit status 0" ] || return 0
    if [ ! -r "$scratch/report.json" ]; then
        echo "$name, seed $seed: the shim wrote no report"
        return 1
    fi
    calls=$(report_sum calls)
    taken=$(report_sum swallowed)
    rm -f "$scratch/report.json"
    if [ $((taken * 100)) -lt $((calls * swallowed)) ] || [ "$calls" = 0 ]; then
        echo "$name, seed $seed: $taken of $calls calls swallowed, not" \
            "$swallowed%"
        return 1
    fi
}

# Whether the run under the shim differs from the plain one.
any_differs()
{
    failed=no
    differs status "exit status" && failed=yes
    differs out stdout && failed=yes
    differs err stderr && failed=yes
    if [ "$counts" != 0 ]; then
        differs executed "what was executed" && failed=yes
    fi
    [ "$failed" = yes ]
}

# shim_run SEED ARGUMENT...: as users have it, and if that held back too little,
# then whatever the pace of the calls: where a machine is busy or a build slow,
# a chunk may not be worth being held back.
shim_run()
{
    chunk=
    run_one shim "$@"
    any_differs && return 1
    enough_swallowed > "$scratch/few" && return 0
    if [ -n "${SIM_DIR:-}" ]; then
        case ${PAIR_DEFAULTS:-} in
            *chunk=*) ;;
            *)
                chunk=chunk=all
                run_one shim "$@"
                any_differs && return 1
                enough_swallowed > "$scratch/few" && return 0
                ;;
        esac
    fi
    cat "$scratch/few"
    return 1
}

first=yes
for seed in $seeds; do
    if [ $first = yes ] || [ "${PAIR_PLAIN:-each}" != once ]; then
        run_one plain "$seed" "$@"
    fi
    shim_run "$seed" "$@" || exit 1
    case $(cat "$scratch/plain.status") in
        "exit status 0") ;;
        "exit status 77")
            cat "$scratch/plain.err"
            exit 77
            ;;
        *)
            echo "$name, seed $seed: fails plain:" \
                "$(cat "$scratch/plain.status")"
            cat "$scratch/plain.err"
            exit 1
            ;;
    esac
    first=no
done
exit 0
