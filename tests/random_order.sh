#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Random programs leave CUDA no choice: by rules that know nothing of how they
# were made, nor of the simulated driver, something says of any two steps that
# use the same which one is first (random_ops -r).
#
#     ORDER_COUNT     number of programs (20000)
#     ORDER_LOOSE     number of programs that lose what orders them (60): where
#                     the simulated driver has such a one print something else,
#                     races have to be found in it
#
# PROGRAMS_DIR and SIM_DIR are as everywhere.

set -u

random=${PROGRAMS_DIR:-programs}/random_ops
count=${ORDER_COUNT:-20000}
loose=${ORDER_LOOSE:-60}

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

if [ -z "${SIM_DIR:-}" ]; then
    exit 77
fi
LD_LIBRARY_PATH=$SIM_DIR
export LD_LIBRARY_PATH

# In two processes.
half=$((count / 2))
"$random" -r 1 $half > "$scratch/first" &
"$random" -r $((half + 1)) $half > "$scratch/second"
second=$?
if ! wait $! || [ $second -ne 0 ]; then
    head -n 20 "$scratch/first" "$scratch/second"
    exit 1
fi
echo "no race in $((2 * half)) programs"

# loosen SEED EVERY: whether the scheduler sees, and whether the rules do.
loosen()
{
    RANDOM_LOOSE=$2
    export RANDOM_LOOSE
    sums=$(for seed in 1 2 3; do
        SIM_SEED=$seed timeout 60 "$random" "$1" 2> /dev/null | cksum
    done | sort -u | wc -l)
    "$random" -r "$1" > "$scratch/found"
    found=$?
    unset RANDOM_LOOSE
    [ "$sums" -eq 1 ] || echo seen
    [ $found -eq 0 ] || echo found
    [ "$sums" -eq 1 ] || [ $found -ne 0 ] || echo "missed $1 $2"
}

seed=1
while [ $seed -le "$loose" ]; do
    loosen $seed $((1 + seed % 7))
    seed=$((seed + 1))
done > "$scratch/loose"
if grep missed "$scratch/loose"; then
    echo "a program prints something else, and no race is found"
    exit 1
fi
seen=$(grep -c seen "$scratch/loose")
found=$(grep -c found "$scratch/loose")
echo "of $loose programs that lost steps, $seen print something else, and" \
    "races are found in $found"
[ "$loose" -eq 0 ] || [ $((2 * seen)) -gt "$loose" ]
