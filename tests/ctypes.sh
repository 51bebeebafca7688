#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Python finds the library's functions in its own process: tests/api_ctypes.py
# under the shim, on the simulated driver.

set -u

if [ -z "${SIM_DIR:-}" ]; then
    echo "what is recorded is known on the simulated driver alone"
    exit 77
fi
if [ -n "${EMULATOR:-}" ]; then
    echo "python3 is not of the emulated CPU"
    exit 77
fi
if ! python3 -c 'import ctypes' 2> /dev/null; then
    echo "there is no python3 with ctypes here"
    exit 77
fi
if LC_ALL=C grep -q -e __asan_init -e __tsan_init "$SHIM_LIB"; then
    echo "python3 is not built with a sanitizer"
    exit 77
fi
# By its own name: what stands on PATH may be a script.
python=$(python3 -c 'import sys; print(sys.executable)')
LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec timeout 60 env LD_PRELOAD="$SHIM_LIB" \
    CGSHIM_DEFAULTS="max_defer_us=1000000000 gate=off chunk=all" \
    CGSHIM_REGION_solver="nvtx=cgshim:solve*" CGSHIM_REGION_step= \
    "$python" "$(dirname "$0")/api_ctypes.py"
