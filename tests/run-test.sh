#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# How `make check` runs a test program: those of tests/programs and tests/doors
# plain and under the shim, fuzz targets over their corpus, others by themselves.

case $1 in
    # Leaks are nothing that LeakSanitizer can tell about where a child of fork
    # lacks threads, or where the tests leave to the process what they got.
    */programs/forks | */unit/test_op)
        ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
        export ASAN_OPTIONS
        ;;
esac

case $1 in
    */programs/* | */doors/*) exec "$(dirname "$0")/run-pair.sh" "$@" ;;
    */fuzz/*) exec "$@" "$(dirname "$0")/fuzz/corpus/${1##*/fuzz_}" ;;
    */sim/*) LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        export LD_LIBRARY_PATH ;;
esac
exec "$@"
