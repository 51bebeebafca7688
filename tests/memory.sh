#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# memory_mb= is never exceeded: neither by what the report says that regions
# hold at the end, nor, at any time, by what graphs have of the device, which
# the simulated driver counts. Regions that come often keep their graphs.
#
# SHIM_LIB, SIM_DIR and PROGRAMS_DIR are as everywhere.

set -u

programs=${PROGRAMS_DIR:-programs}
failed=0

if [ -z "${SHIM_LIB:-}" ]; then
    echo "memory.sh: SHIM_LIB is not set" >&2
    exit 99
fi
if [ -z "${SIM_DIR:-}" ]; then
    echo "what graphs have of a device is counted on the simulated one alone"
    exit 77
fi
LD_LIBRARY_PATH=$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# Regions that were given back at the end would show what they had before.
SCALE_LEAVES=1
export LD_LIBRARY_PATH SCALE_LEAVES

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

complain()
{
    echo "FAILED: memory_mb=$cap $*"
    failed=$((failed + 1))
}

# sum REGIONS "KEY ...": over regions whose names begin so and that were not
# destroyed.
sum()
{
    awk -v names="$1" -v keys=" $2 " '
        { key = $1; gsub(/[":]/, "", key); value = $2; gsub(/[",]/, "", value) }
        key == "name" { wanted = index(value, names) == 1 }
        key == "state" && value == "ended" { wanted = 0 }
        wanted && index(keys, " " key " ") { n += value }
        END { print n + 0 }' "$scratch/shim.json"
}

# keeps_to CAP PROGRAM ARGUMENT...
keeps_to()
{
    cap=$1
    program=$2
    shift 2
    rm -f "$scratch"/shim.* "$scratch"/plain.*
    timeout 300 "$programs/$program" "$@" > "$scratch/plain.out" 2>&1 ||
        complain "$program $*: fails plain"
    timeout 300 env CGSHIM_REPORT="$scratch/shim.json" \
        SIM_REPORT="$scratch/shim.calls" \
        CGSHIM_DEFAULTS="memory_mb=$cap gate=off $keys" \
        LD_PRELOAD="$SHIM_LIB" "$programs/$program" "$@" \
        > "$scratch/shim.out" 2>&1 || complain "$program $*: exit status $?"
    cmp -s "$scratch/plain.out" "$scratch/shim.out" ||
        complain "$program $* differs: $(head -n 3 "$scratch/shim.out")"
    if [ ! -r "$scratch/shim.json" ] || [ ! -r "$scratch/shim.calls" ]; then
        complain "$program $*: no report"
        return
    fi
    held=$(sum "" "host_bytes device_bytes")
    [ "$held" -le $((cap << 20)) ] ||
        complain "$program $*: regions hold $held bytes"
    most=$(awk '$1 == "graphs" { print $2 }' "$scratch/shim.calls")
    [ "${most:-0}" -le $((cap << 20)) ] ||
        complain "$program $*: graphs had $most bytes of the device"
}

keys=
keeps_to 1 scale ops 5000
keeps_to 1 scale regions 1000
keeps_to 1 scale shapes 2000
keeps_to 1 scale names 5000
keeps_to 4 scale regions 1000
keeps_to 1 random_ops 1 50
# However slow the machine is.
keys="chunk=all max_defer_us=1000000000"
keeps_to 1 scale hot 1000
[ $(($(sum hot swallowed) * 100)) -ge $(($(sum hot calls) * 90)) ] ||
    complain "hot regions: $(sum hot swallowed) of $(sum hot calls) calls" \
        "swallowed"
exit $((failed > 0))
