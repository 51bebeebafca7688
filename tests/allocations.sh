#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Replay allocates nothing: a library that is preloaded counts allocations of
# the shim in a thousand runs of regions that are settled; neither does a trace.
#
# PROGRAMS_DIR and run-pair.sh's environment are as everywhere.

set -u

here=$(dirname "$0")
programs=${PROGRAMS_DIR:-programs}

if [ -z "${SIM_DIR:-}" ]; then
    echo "which allocations are a driver's is known of the simulated one alone"
    exit 77
fi
if LC_ALL=C grep -q -e __asan_init -e __tsan_init "$SHIM_LIB"; then
    echo "a sanitizer has an allocator of its own"
    exit 77
fi
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

SEEDS=${SEEDS:-1 2}
PAIR_SWALLOWED=95
PAIR_PRELOAD=$programs/.libs/liballocations.so
export SEEDS PAIR_SWALLOWED PAIR_PRELOAD
"$here/run-pair.sh" "$programs/settled" || exit
CGSHIM_TRACE=$scratch/trace "$here/run-pair.sh" "$programs/settled" || exit
[ -s "$scratch/trace" ]
