#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes random programs that differ under the shim as small as they can be, and
# prints them, in short and as a file in C (random-c.sh).
#
#     random-shrink.sh SEED [COUNT]    programs SEED, SEED + 1, ... (COUNT of
#                                      them) in one process
#
# SHRINK_FILE names a file for the C, which else comes first in the output.
#
# PROGRAMS_DIR and run-pair.sh's environment are as for random.sh. SEEDS are the
# seeds of the scheduler to try: with several threads one program may differ
# only now and then, so SHRINK_TRIES (3) runs have to be equal before an
# operation is said to be needed.

set -u

here=$(dirname "$0")
random=${PROGRAMS_DIR:-programs}/random_ops
seed=$1
count=${2:-1}
tries=${SHRINK_TRIES:-3}
SEEDS=${SEEDS:-1 2 3 4 5}
PAIR_TIMEOUT=${PAIR_TIMEOUT:-10}
export SEEDS PAIR_TIMEOUT

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

# What is in a file of numbers, as RANDOM_DROP takes it.
ranges()
{
    sort -un "$1" | awk '
        function out() { if (a != "") printf a == b ? "%d " : "%d-%d ", a, b }
        a != "" && $1 == b + 1 { b = $1; next }
        { out(); a = b = $1 }
        END { out() }'
}

# list HOW: no driver is called, but there must be one to load.
list()
{
    LD_LIBRARY_PATH="${SIM_DIR:-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        "$random" "$1" "$seed" "$count"
}

# differs FILE: whether the program without the operations in the file does.
differs()
{
    RANDOM_DROP=$(ranges "$1")
    export RANDOM_DROP
    try=0
    while [ $try -lt "$tries" ]; do
        "$here/run-pair.sh" "$random" "$seed" "$count" > "$scratch/out" 2>&1
        if grep -q ' differs (' "$scratch/out"; then
            cp "$scratch/out" "$scratch/difference"
            return 0
        fi
        try=$((try + 1))
    done
    return 1
}

# shrink FIELDS: drops groups of operations that agree in these fields of
# `random_ops -p`, first many groups at a time, then fewer.
shrink()
{
    RANDOM_DROP=$(ranges "$scratch/drop") list -p |
        awk -v fields="$1" '{
            n = split(fields, f, " "); key = ""
            for (i = 1; i <= n; ++i) key = key " " $f[i]
            if (!(key in number)) number[key] = groups++
            print number[key], $1
        }' > "$scratch/groups"
    total=$(awk '{ n = $1 + 1 > n ? $1 + 1 : n } END { print n + 0 }' \
        "$scratch/groups")
    size=$(((total + 1) / 2))
    while [ "$total" -gt 0 ]; do
        begin=0
        while [ $begin -lt "$total" ]; do
            awk -v a=$begin -v b=$((begin + size)) \
                '$1 >= a && $1 < b { print $2 }' "$scratch/groups" |
                cat "$scratch/drop" - > "$scratch/try"
            if ! cmp -s "$scratch/try" "$scratch/drop" &&
                differs "$scratch/try"; then
                mv "$scratch/try" "$scratch/drop"
            fi
            begin=$((begin + size))
        done
        [ "$size" -gt 1 ] || break
        size=$(((size + 1) / 2))
    done
}

: > "$scratch/drop"
if ! differs "$scratch/drop"; then
    echo "no difference in programs $seed to $((seed + count - 1))"
    exit 1
fi

shrink 2            # whole programs
shrink "2 3"        # loops
shrink "2 3 4"      # repetitions
shrink "2 3 5"      # places in a loop, in all its repetitions
shrink 1            # single operations
shrink 1

RANDOM_DROP=$(ranges "$scratch/drop")
export RANDOM_DROP
if [ -n "${SHRINK_FILE:-}" ]; then
    "$here/random-c.sh" "$seed" "$count" > "$SHRINK_FILE"
else
    "$here/random-c.sh" "$seed" "$count"
fi
list -l
cat "$scratch/difference"
echo "RANDOM_DROP='$RANDOM_DROP' SEEDS='$SEEDS' PAIR_ENV='${PAIR_ENV:-}'" \
    "PAIR_DEFAULTS='${PAIR_DEFAULTS:-}'" \
    "run-pair.sh random_ops $seed $count"
