#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# LD_PRELOAD reaches every program, and costs one that has nothing to do with
# CUDA no thread, no process and no file but the library itself.
#
# SHIM_LIB and DOORS_DIR are as everywhere; needs strace.

set -u

doors=${DOORS_DIR:-doors}
failed=0

if [ -z "${SHIM_LIB:-}" ]; then
    echo "preload.sh: SHIM_LIB is not set" >&2
    exit 99
fi
if [ -n "${EMULATOR:-}" ]; then
    echo "the shells and tools here are not of the emulated CPU"
    exit 77
fi
if ! strace -f -o /dev/null true 2> /dev/null; then
    echo "there is no strace here, or it may not trace"
    exit 77
fi
if LC_ALL=C grep -q -e __asan_init -e __tsan_init "$SHIM_LIB"; then
    echo "a sanitizer opens files of its own"
    exit 77
fi

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

complain()
{
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# trace plain|shim LIBRARY COMMAND...: its calls that open files, or start
# threads and processes. Those of env, before it, are left out.
trace()
{
    kind=$1
    library=$2
    shift 2
    strace -f -qq -o "$scratch/$kind" \
        -e trace=%file,%process,socket,pipe2,eventfd2,timer_create \
        -E LD_PRELOAD="$library" "$@" > /dev/null 2>&1 ||
        complain "$1: exit status $?"
    sed -n 's/^[0-9]* *[a-z0-9_]*open[a-z0-9]*(.*"\(.*\)".* = [0-9]*$/\1/p' \
        "$scratch/$kind" | sort -u > "$scratch/$kind.opened"
    sed -n 's/^[0-9]* *\([a-z0-9_]*\)(.*/\1/p' "$scratch/$kind" |
        grep -e clone -e fork -e exec -e socket -e pipe -e eventfd -e timer |
        sort > "$scratch/$kind.started"
}

# Libraries that the shim needs of libc are the loader's to open.
costs_nothing()
{
    trace plain "" "$@"
    trace shim "$SHIM_LIB" "$@"
    comm -13 "$scratch/plain.opened" "$scratch/shim.opened" |
        grep -v -x -F "$SHIM_LIB" |
        grep -v -E '/lib(c|dl|pthread|m)\.so\.[0-9]+$' > "$scratch/more"
    [ ! -s "$scratch/more" ] ||
        complain "$1 opens $(tr '\n' ' ' < "$scratch/more")"
    cmp -s "$scratch/plain.started" "$scratch/shim.started" ||
        complain "$1 starts $(comm -13 "$scratch/plain.started" \
            "$scratch/shim.started" | tr '\n' ' ')"
    grep -q -x -F "$SHIM_LIB" "$scratch/shim.opened" ||
        complain "$1 did not load the library"
}

for command in /bin/true "$(command -v env)" "$doors/no_thread"; do
    costs_nothing "$command"
done
costs_nothing /bin/sh -c '/bin/true; /bin/true | /bin/true'
# Nor does a report that is asked for, or a rule, where no region ever was.
CGSHIM_REPORT=$scratch/report CGSHIM_REGION_a='nvtx=a' \
    CGSHIM_LOG_FILE=$scratch/log
export CGSHIM_REPORT CGSHIM_REGION_a CGSHIM_LOG_FILE
costs_nothing /bin/true
exit $((failed > 0))
