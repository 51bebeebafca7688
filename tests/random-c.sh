#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints random programs as one file in C, which needs no other file but CUDA's
# headers:
#
#     random-c.sh SEED [COUNT]     programs SEED, SEED + 1, ... (COUNT of them)
#
# PROGRAMS_DIR, SIM_DIR and RANDOM_DROP are as for random-shrink.sh.

set -eu

here=$(dirname "$0")
random=${PROGRAMS_DIR:-programs}/random_ops

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

# No driver is called, but there must be one to load.
LD_LIBRARY_PATH="${SIM_DIR:-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    "$random" -c "$@" > "$scratch/steps"

# What the steps launch, and what their beginning does.
kernels=$( {
    echo K_FILL
    echo K_TURN
    grep -o 'K_[A-Z0-9]*' "$scratch/steps"
} | sort -u)

cat <<'END'
/*
 * Random programs of cgshim's tests, step by step.
 *
 *     cc -I CUDA/include FILE.c -lcuda -lpthread -ldl
 *     cc -rdynamic -I CUDA/include -I tests/sim FILE.c \
 *         tests/programs/kernels.c SIM_DIR/libcuda.so.1 -lpthread -ldl
 *
 * for a GPU and for the simulated driver, which takes the kernels' bodies from
 * kernels.c. What it prints are hashes of memory.
 */

END

# The text of the kernels, without those that are not used.
echo 'static const char ptx[] ='
awk -v names="$(echo "$kernels" | tr 'A-Z\n' 'a-z ')" '
    BEGIN {
        n = split(names, name, " ")
        for (i = 1; i <= n; ++i) used[name[i]]
    }
    !/^    "/ { next }
    /\.entry/ {
        match($0, /k_[a-z0-9]+/)
        skip = !(substr($0, RSTART, RLENGTH) in used)
    }
    !skip { print }
    /^    "}\\n"/ { skip = 0 }
' "$here/programs/kernels_ptx.h"
printf '    ;\n\n'

echo 'enum {'
for kernel in $kernels; do
    echo "    $kernel,"
done
printf '    NUM_KERNELS\n};\n\n'

echo 'static const char *const kernel_names[] = {'
for kernel in $kernels; do
    echo "    \"$(echo "$kernel" | tr '[:upper:]' '[:lower:]')\","
done
printf '};\n\n'

cat "$here/programs/random_head.h"
printf '\n/* The programs: each loop of each thread */\n\n'
cat "$scratch/steps"
