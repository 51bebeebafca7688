#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# How `make check` runs a test program: those of tests/programs and tests/doors
# plain and under the shim, others by themselves.

case $1 in
    */programs/* | */doors/*) exec "$(dirname "$0")/run-pair.sh" "$@" ;;
    */sim/*) LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        export LD_LIBRARY_PATH ;;
esac
exec "$@"
