#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A driver call that the shim makes on its own behalf fails: the program's
# result, its errors and what was executed stay as they are plain.
#
# The functions are found by running each program plain and under the shim and
# comparing what the simulated driver was asked: those that only the shim calls
# are made to fail, at the first call, a later one, and from the first on.
#
#     FAULT_PROGRAMS   programs ("changing_args copies_sets attributes heat")
#     FAULT_FUNCTIONS  functions, instead of those found
#     FAULT_CALLS      which call fails ("1 2 3 7 1+"; N+ is from the Nth on)
#     FAULT_CODES      what it answers ("2 999": out of memory, unknown)
#
# and PROGRAMS_DIR and run-pair.sh's environment.

set -u

here=$(dirname "$0")
programs_dir=${PROGRAMS_DIR:-programs}

if [ -z "${SHIM_LIB:-}" ]; then
    echo "faults.sh: SHIM_LIB is not set" >&2
    exit 99
fi
if [ -z "${SIM_DIR:-}" ]; then
    echo "faults are made by the simulated driver alone"
    exit 77
fi

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

# calls_of LIBRARY OUTPUT PROGRAM...: the names of the functions called, bare.
calls_of()
{
    library=$1
    output=$2
    shift 2
    env SIM_REPORT="$scratch/report" LD_LIBRARY_PATH="$SIM_DIR" \
        LD_PRELOAD="$library" "$@" > "$scratch/out" 2>&1 || {
        echo "$1 failed:"
        cat "$scratch/out"
        exit 1
    }
    sed -n -e 's/^call \([^ ]*\) .*$/\1/p' "$scratch/report" |
        sed -e 's/_pts[zd]$//' -e 's/_v[0-9]$//' | sort -u > "$output"
}

failed=0
tried=0
for name in ${FAULT_PROGRAMS:-changing_args copies_sets attributes heat}; do
    program=$programs_dir/$name
    argument=
    [ "$name" != heat ] || argument=--small

    calls_of "" "$scratch/plain" "$program" $argument
    calls_of "$SHIM_LIB" "$scratch/shim" "$program" $argument
    functions=$(comm -13 "$scratch/plain" "$scratch/shim")
    if [ -n "${FAULT_FUNCTIONS:-}" ]; then
        # Only those that the program does not call itself.
        functions=$(for f in $FAULT_FUNCTIONS; do
            grep -qx "$f" "$scratch/plain" || echo "$f"
        done)
    fi
    for function in $functions; do
        # The program could not do without it, nor find its own calls.
        case $function in cuInit | cuGetProcAddress) continue ;; esac
        for call in ${FAULT_CALLS:-1 2 3 7 1+}; do
            for code in ${FAULT_CODES:-2 999}; do
                tried=$((tried + 1))
                if ! PAIR_ENV="SIM_FAIL=$function:$call:$code" SEEDS=$tried \
                    "$here/run-pair.sh" "$program" $argument; then
                    echo "$name: $function, call $call, code $code: FAILED"
                    failed=$((failed + 1))
                fi
            done
        done
    done
    echo "$name:" $functions
done

echo "$tried faults, $failed failed"
[ "$failed" = 0 ] && [ "$tried" -gt 0 ]
