#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Random programs leave the same memory plain and under the shim.
#
#     RANDOM_FIRST    seed of the first program (1)
#     RANDOM_COUNT    number of programs (5000)
#     RANDOM_CHUNK    programs in one process (50); the number of the chunk is
#                     the seed of its scheduler
#
# and PROGRAMS_DIR and run-pair.sh's environment. A failing program is run again
# by: SEEDS=CHUNK run-pair.sh random_ops SEED.

set -u

here=$(dirname "$0")
random=${PROGRAMS_DIR:-programs}/random_ops
first=${RANDOM_FIRST:-1}
count=${RANDOM_COUNT:-5000}
chunk=${RANDOM_CHUNK:-50}

number=0
done=0
while [ "$done" -lt "$count" ]; do
    number=$((number + 1))
    SEEDS=$number "$here/run-pair.sh" "$random" $((first + done)) "$chunk"
    status=$?
    if [ $status -ne 0 ]; then
        echo "programs $((first + done)) to $((first + done + chunk - 1))," \
            "scheduler seed $number"
        exit $status
    fi
    done=$((done + chunk))
done
echo "$done random programs from seed $first"
