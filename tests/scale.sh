#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Programs of a size do the same plain and under the shim, and what the shim
# does for them grows as they do and no faster: recordings, builds and calls of
# the driver are counted, nothing is timed. What they hold in memory stays.
#
#     scale.sh [CASE...]      only those
#
#     SCALE_PART      all counts are divided by it (1; 20 under a sanitizer)
#
# SHIM_LIB, SIM_DIR and PROGRAMS_DIR are as everywhere.

set -u

scale=${PROGRAMS_DIR:-programs}/scale
wanted=" $* "
failed=0

if [ -z "${SHIM_LIB:-}" ]; then
    echo "scale.sh: SHIM_LIB is not set" >&2
    exit 99
fi
if [ -z "${SIM_DIR:-}" ]; then
    echo "what the driver is called for is counted on the simulated one alone"
    exit 77
fi

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

# What a sanitizer holds back of freed memory says nothing.
sanitized=no
! LC_ALL=C grep -q -e __asan_init -e __tsan_init "$SHIM_LIB" || sanitized=yes
part=${SCALE_PART:-$([ $sanitized = yes ] && echo 20 || echo 1)}

complain()
{
    echo "FAILED: $name: $*"
    failed=$((failed + 1))
}

# run plain|shim COUNT LIBRARY
run()
{
    rm -f "$scratch/$1".*
    timeout 300 env SCALE_RESIDENT="$scratch/$1.resident" \
        SIM_REPORT="$scratch/$1.calls" \
        CGSHIM_REPORT="$scratch/$1.json" CGSHIM_DEFAULTS="$defaults" \
        LD_LIBRARY_PATH="$SIM_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        LD_PRELOAD="$3" "$scale" "$name" "$2" \
        > "$scratch/$1.out" 2> "$scratch/$1.err" ||
        complain "$1: exit status $?: $(cat "$scratch/$1.err")"
}

# A sum over all regions of the last report.
sum()
{
    tr -d ' \t\n' < "$scratch/shim.json" | sed -e 's/[][,{}]/\n/g' |
        awk -F: -v key="\"$1\"" '$1 == key { n += $2 } END { print n + 0 }'
}

# All calls that the driver got.
driver_calls()
{
    awk '$1 == "call" { n += $3 } END { print n + 0 }' "$scratch/shim.calls"
}

# at_most WHAT MOST VALUE
at_most()
{
    [ "$3" -le "$2" ] || complain "$1: $3, more than $2"
}

# stays_resident KIND MOST: KB after the first tenth or so.
stays_resident()
{
    read -r early late < "$scratch/$1.resident"
    [ $sanitized = yes ] ||
        at_most "KB more ($1, from $early)" "$2" $((late - early))
}

# scale_case NAME COUNT SWALLOWED RECORDINGS BUILDS RESIDENT: at least so many
# percent of all calls are swallowed, and there are at most so many recordings,
# builds and KB more in memory.
scale_case()
{
    name=$1
    case $wanted in
        "  " | *" $name "*) ;;
        *) return ;;
    esac
    count=$(($2 / part))
    run shim $((count / 10)) "$SHIM_LIB"
    tenth=$(driver_calls)
    run plain "$count" ""
    run shim "$count" "$SHIM_LIB"
    for part_of in out err; do
        cmp -s "$scratch/plain.$part_of" "$scratch/shim.$part_of" ||
            complain "std$part_of differs: $(cat "$scratch/shim.$part_of")"
    done
    [ -r "$scratch/shim.json" ] || { complain "no report"; return; }
    [ $(($(sum swallowed) * 100)) -ge $(($(sum calls) * $3)) ] ||
        complain "$(sum swallowed) of $(sum calls) calls swallowed, not $3%"
    at_most recordings "$4" "$(sum recordings)"
    at_most builds "$5" "$(sum builds)"
    at_most "calls of the driver, $tenth for a tenth of it" \
        $((tenth * 11 + 1000)) "$(driver_calls)"
    stays_resident plain 1024
    stays_resident shim "$6"
}

# However slow the machine is: what is held back waits for the program, and is
# replayed. A node has 4 KB of the simulated device.
defaults="max_defer_us=1000000000 gate=off chunk=all memory_mb=1024"
scale_case ops     100000  70    2  6250  4096
scale_case regions 1000    60 2000  2000  4096
scale_case shapes  10000   95  100   100  4096
# 65536 names are remembered.
scale_case names   100000   0 4096     0 12288
scale_case runs    1000000 99   10    20  4096
exit $((failed > 0))
