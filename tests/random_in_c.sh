#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Random programs that are printed as C do what they do when they are run: the
# hashes of memory are the same.
#
# PROGRAMS_DIR, SIM_DIR and PAIR_BREAKER are as everywhere; CC and CUDA_CPPFLAGS
# compile.

set -u

# The printed programs are no part of a build with a sanitizer, nor is the shim
# of this test.
if LC_ALL=C grep -q -e __asan_init -e __tsan_init \
    "${SIM_DIR:-.}/libcuda.so.1" 2> /dev/null; then
    echo "a driver with a sanitizer wants programs with it"
    exit 77
fi

here=$(dirname "$0")
programs=${PROGRAMS_DIR:-programs}
failed=0

if [ -z "${SIM_DIR:-}" ]; then
    exit 77
fi

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

# compile NAME
compile()
{
    # shellcheck disable=SC2086
    ${CC:-cc} -std=gnu11 -ffp-contract=off -Wall -Werror \
        -Wno-unused-function -rdynamic ${CUDA_CPPFLAGS:-} \
        -I "$here/sim" -o "$scratch/$1" "$scratch/$1.c" \
        "$here/programs/kernels.c" "$SIM_DIR/libcuda.so.1" -lpthread -ldl -lm
}

# check SEED COUNT DROP: what random-shrink.sh would print.
check()
{
    RANDOM_DROP=$3
    export RANDOM_DROP
    "$here/random-c.sh" "$1" "$2" > "$scratch/program.c"
    if ! compile program; then
        echo "FAILED: seed $1: does not compile"
        failed=1
        return
    fi
    LD_LIBRARY_PATH=$SIM_DIR timeout 60 ${START_PROGRAM:-} "$scratch/program" \
        > "$scratch/c.out" 2>&1
    LD_LIBRARY_PATH=$SIM_DIR timeout 60 "$programs/random_ops" "$1" "$2" \
        > "$scratch/run.out" 2>&1
    if [ -s "$scratch/c.out" ] && cmp -s "$scratch/c.out" "$scratch/run.out"
    then
        echo "ok: seed $1"
    else
        echo "FAILED: seed $1"
        diff -u "$scratch/run.out" "$scratch/c.out" | head -n 20
        failed=1
    fi
}

# What a wrong shim breaks is made small, and then it compiles too.
check_shrunk()
{
    SHIM_LIB=${PAIR_BREAKER:-programs/libpair_breaker.so} SEEDS=1 \
        PAIR_ENV="PAIR_BREAK=double PAIR_BREAK_LAUNCH=9" SHRINK_TRIES=1 \
        SHRINK_FILE="$scratch/shrunk.c" \
        "$here/random-shrink.sh" 23 > "$scratch/list" || cat "$scratch/list"
    if compile shrunk && LD_LIBRARY_PATH=$SIM_DIR timeout 60 \
        ${START_PROGRAM:-} "$scratch/shrunk" > "$scratch/c.out" && [ -s "$scratch/c.out" ]; then
        echo "ok: $(grep -c '/\* operation' "$scratch/list") operations left"
    else
        echo "FAILED: the program that was made small"
        failed=1
    fi
}

# Together they have all kinds of operation.
check 1 30 ""
check 53 24 ""
check 31 2 "5-20 60-90 3510-3600"
check_shrunk
exit $failed
