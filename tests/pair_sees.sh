#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run-pair.sh sees what a wrong shim does: a launch dropped, doubled or moved, a
# stray line, another exit status; and it sees nothing where nothing is wrong.
#
# PAIR_BREAKER is the library made of programs/pair_breaker.c; PROGRAMS_DIR and
# SIM_DIR are as everywhere.

set -u

here=$(dirname "$0")
breaker=${PAIR_BREAKER:-programs/libpair_breaker.so}
program=${PROGRAMS_DIR:-programs}/changing_args
failed=0

if [ -z "${SIM_DIR:-}" ]; then
    exit 77
fi

for how in nothing drop double swap stdout stderr status; do
    SHIM_LIB=$breaker SEEDS=1 PAIR_ENV="PAIR_BREAK=$how" \
        "$here/run-pair.sh" "$program" > /dev/null
    status=$?
    expected=1
    [ $how != nothing ] || expected=0
    if [ $status = $expected ]; then
        echo "ok: $how"
    else
        echo "FAILED: $how: exit status $status, not $expected"
        failed=1
    fi
done
exit $failed
