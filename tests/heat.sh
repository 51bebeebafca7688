#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The demonstration is the same plain and under the shim for every seed of the
# scheduler, and over 95% of its launches are swallowed and replayed.
#
# HEAT_SEEDS says how many seeds (1000), PROGRAMS_DIR where the programs are;
# the rest of the environment is run-pair.sh's.

set -u

here=$(dirname "$0")
heat=${PROGRAMS_DIR:-programs}/heat
last=${HEAT_SEEDS:-1000}
reported=20             # seeds whose report is looked at as well

if [ -z "${SIM_DIR:-}" ]; then
    PAIR_SWALLOWED=95 exec "$here/run-pair.sh" "$heat"
fi

[ "$last" -gt $reported ] || reported=$last
PAIR_PLAIN=once
export PAIR_PLAIN
SEEDS=$(seq 1 "$reported") PAIR_SWALLOWED=95 \
    "$here/run-pair.sh" "$heat" --small || exit
[ "$last" = "$reported" ] ||
    SEEDS=$(seq $((reported + 1)) "$last") \
        "$here/run-pair.sh" "$heat" --small || exit
echo "$last seeds"
