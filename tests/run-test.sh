#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# How `make check` runs a test program: those of tests/programs and tests/doors
# plain and under the shim, fuzz targets over their corpus, others by
# themselves. START_DIR is where programs are started from, in place of tests/
# of the build.

program=${1#./}
program=$START_DIR/${program#tests/}
shift
set -- "$program" "$@"

case $1 in
    # Leaks are nothing that LeakSanitizer can tell about where a child of fork
    # lacks threads, or where the tests leave to the process what they got.
    */programs/forks | */unit/test_op)
        ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
        export ASAN_OPTIONS
        ;;
esac

case ${EMULATOR:+${1##*/}} in
    execs_shell)
        echo "the shells that it starts are not of the emulated CPU"
        exit 77
        ;;
    no_thread)
        echo "the emulator has threads of its own"
        exit 77
        ;;
esac

case $1 in
    */programs/* | */doors/*) exec "$(dirname "$0")/run-pair.sh" "$@" ;;
    */fuzz/*) exec "$@" "$(dirname "$0")/fuzz/corpus/${1##*/fuzz_}" ;;
    */sim/*) LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        export LD_LIBRARY_PATH ;;
esac
exec "$@"
