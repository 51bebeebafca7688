#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The public header compiles without a warning as C99 and as C++, what it looks
# up is what the library exports, and a C++ program does with the library what
# it does without.
#
# CC, SHIM_LIB, SHIM_SYMBOLS, SIM_DIR and PROGRAMS_DIR are as everywhere; CXX is
# a C++ compiler (g++).

set -u

here=$(dirname "$0")
include=$here/../include
programs=${PROGRAMS_DIR:-programs}
strict="-Wall -Wextra -Wshadow -Wconversion -pedantic-errors -Werror"
cxx=${CXX:-g++}
failed=0

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 99' HUP INT TERM

complain()
{
    echo "FAILED: $*"
    failed=1
}

grep -E '^cgshim_' "$SHIM_SYMBOLS" | LC_ALL=C sort > "$scratch/exported"
sed -n 's/^CGSHIM_FORWARD_(.*, \(cgshim_[a-z_]*\),.*/\1/p' \
    "$include/cgshim.h" | LC_ALL=C sort > "$scratch/looked-up"
[ -s "$scratch/looked-up" ] || complain "the header looks nothing up"
diff "$scratch/looked-up" "$scratch/exported" ||
    complain "the header looks up what is not exported, or not all of it"

printf '#include <cgshim.h>\nint main(void) { return (int)%s(); }\n' \
    cgshim_region_count > "$scratch/user.c"
cp "$scratch/user.c" "$scratch/user.cc"
# shellcheck disable=SC2086
for compiler in "$CC -std=c99" "$CC -std=c99 -DCGSHIM_DECLARE_ONLY" \
    "$CC -std=c11"; do
    $compiler $strict -I "$include" -c -o "$scratch/user.o" \
        "$scratch/user.c" || complain "$compiler"
done

if [ -n "${EMULATOR:-}" ]; then
    echo "not tried as C++: $cxx is for another CPU"
    exit $failed
fi
if ! command -v "$cxx" > /dev/null; then
    echo "there is no $cxx here: not tried as C++"
    exit $failed
fi
# shellcheck disable=SC2086
for standard in c++98 c++11 c++17; do
    "$cxx" -std=$standard $strict -Wno-long-long -I "$include" -c \
        -o "$scratch/user.o" "$scratch/user.cc" || complain "$standard"
done

if [ -z "${SIM_DIR:-}" ] || LC_ALL=C grep -q __asan_init "$SHIM_LIB" ||
    LC_ALL=C grep -q __tsan_init "$SHIM_LIB"; then
    echo "not run as C++: no simulated driver, or a sanitizer"
    exit $failed
fi
# shellcheck disable=SC2086
"$cxx" -x c++ -D_GNU_SOURCE ${CUDA_CPPFLAGS:-} -I "$include" \
    -I "$here/programs" -o "$scratch/api_user" "$here/programs/api_user.c" \
    -x none -rdynamic -Wl,-u,simk_k_nothing \
    "$programs/.libs/libprograms.a" "$SIM_DIR/libcuda.so" -ldl -lpthread -lm ||
    complain "api_user as C++"
[ ! -x "$scratch/api_user" ] ||
    "$here/run-pair.sh" "$scratch/api_user" || failed=1
exit $failed
