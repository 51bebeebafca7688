#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Regions that differ from run to run do the same plain and under the shim, with
# graphs of any length and variants of any number; with the defaults most of
# their calls are swallowed.
#
# PROGRAMS_DIR and run-pair.sh's environment are as everywhere.

set -u

here=$(dirname "$0")
ways=${PROGRAMS_DIR:-programs}/ways
failed=0

# Under a sanitizer everything takes its time; the one thread of these programs
# and the timer's meet for TSan's sake.
seeds="1 2"
keys="chunk=1 chunk=3 chunk=all variants=1,chunk=7 variants=2 memory_mb=1 \
streams=separate,chunk=2 max_defer_us=50"
if LC_ALL=C grep -q -e __asan_init -e __tsan_init "${SHIM_LIB:-/dev/null}"
then
    seeds=1
    keys="chunk=3 variants=1,chunk=7 max_defer_us=50"
fi
! LC_ALL=C grep -q __tsan_init "${SHIM_LIB:-/dev/null}" || keys=max_defer_us=50

# way CASE SWALLOWED: the percentage holds for the defaults.
way()
{
    SEEDS="$seeds" PAIR_SWALLOWED=$2 \
        "$here/run-pair.sh" "$ways" "$1" || failed=$((failed + 1))
    for key in $keys; do
        key=$(echo "$key" | tr , ' ')
        SEEDS="$seeds" PAIR_PLAIN=once PAIR_DEFAULTS="gate=off $key" \
            "$here/run-pair.sh" "$ways" "$1" || {
            echo "with $key"
            failed=$((failed + 1))
        }
    done
}

way shape_drifts      95
way shape_alternates  95
way two_alternatives  95
way five_alternatives 90
way insertion         85
way omission          85
way another_tail      95
way prefix            90
exit $((failed > 0))
