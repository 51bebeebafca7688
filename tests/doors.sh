#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Doors under unusual drivers and for programs that are none of ours: a driver
# that looks up its own functions by dlsym, one without cuGetProcAddress_v2, one
# whose symbols have versions (dlvsym finds those only), an old one, shells and
# their children, the shim switched off.
#
# DOORS_DIR says where the door programs are, PROGRAMS_DIR where the others are,
# SIM_VERSIONED_DIR where a simulated driver is whose symbols have versions; the
# rest of the environment is run-pair.sh's.

set -u

pair=$(dirname "$0")/run-pair.sh
doors=${DOORS_DIR:-doors}
programs=${PROGRAMS_DIR:-programs}
failed=0

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

# promise TEXT COMMAND...: the commands are functions named after what they try.
# shellcheck disable=SC2317
promise()
{
    text=$1
    shift
    if "$@"; then
        echo "ok: $text"
    else
        echo "FAILED: $text"
        failed=$((failed + 1))
    fi
}

driver_that_looks_itself_up()
{
    for program in linked by_dlsym by_dlvsym by_getproc_v1 by_getproc_v2; do
        env SIM_SELF_DLSYM=1 SEEDS=1 "$pair" "$doors/$program" || return 1
    done
    env SIM_SELF_DLSYM=1 SEEDS=1 "$pair" "$programs/copies_sets"
}

# The name in a copy of the driver becomes another one of the same length, under
# which nobody looks.
driver_without_v2()
{
    mkdir -p "$scratch/old"
    sed -e 's/cuGetProcAddress_v2/cuGetProcAddress_vX/g' \
        "$SIM_DIR/libcuda.so.1" > "$scratch/old/libcuda.so.1" || return 1
    for program in linked by_dlsym by_getproc_v1 missing_name rtld_default; do
        env SIM_DIR="$scratch/old" SEEDS=1 "$pair" "$doors/$program" || return 1
    done
}

# SIM_VERSIONED_DIR: the same driver, linked with doors/versioned.map.
driver_with_versions()
{
    for program in by_dlvsym by_dlsym linked threads; do
        env SIM_DIR="$SIM_VERSIONED_DIR" DOOR_VERSION=SIM_1 SEEDS=1 \
            "$pair" "$doors/$program" || return 1
    done
}

old_driver_passes_through()
{
    for version in 11080 12000 12030; do
        for program in "$doors/by_dlsym" "$doors/by_getproc_v1" \
            "$programs/changing_args"; do
            env SIM_DRIVER_VERSION=$version SEEDS=1 "$pair" "$program" ||
                return 1
        done
    done
}

# A shim that is off, or excluded, changes nothing and swallows nothing.
switched_off_is_plain()
{
    for setting in CGSHIM=off "CGSHIM_EXCLUDE=no,const_*" CGSHIM=observe; do
        env PAIR_ENV="$setting" SEEDS=1 "$pair" "$programs/const_args" ||
            return 1
    done
}

if [ -n "${EMULATOR:-}" ]; then
    echo "not tried: shells and tools, which are not of the emulated CPU"
else
    promise shells_are_left_alone \
        "$pair" /bin/sh -c 'echo out; echo error >&2; sh -c true; (exit 0)'
    promise other_programs_are_left_alone "$pair" "$(command -v env)" true
fi
promise switched_off_is_plain switched_off_is_plain
if [ -n "${SIM_DIR:-}" ]; then
    promise driver_that_looks_itself_up driver_that_looks_itself_up
    promise driver_without_v2 driver_without_v2
    promise driver_with_versions driver_with_versions
    promise old_driver_passes_through old_driver_passes_through
fi
exit $failed
