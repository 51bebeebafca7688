#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the library shows to the dynamic linker: it exports exactly its list,
# needs none of CUDA's libraries, and leaves nothing undefined but libc's.
#
# SHIM_LIB is the library, SHIM_SYMBOLS the list it was linked with.

set -u

failed=0
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

complain()
{
    echo "FAILED: $*"
    failed=1
}

nm -D --defined-only "$SHIM_LIB" | awk '{ print $3 }' |
    LC_ALL=C sort > "$scratch/exported"
LC_ALL=C sort "$SHIM_SYMBOLS" > "$scratch/wanted"
diff "$scratch/wanted" "$scratch/exported" ||
    complain "exported symbols are not those of the list"
[ "$(wc -l < "$scratch/exported")" -gt 500 ] ||
    complain "too few symbols for all of the driver's functions"

needed=$(readelf -d "$SHIM_LIB" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for library in $needed; do
    case $library in
        libc.so.* | libdl.so.* | libpthread.so.* | ld-linux*) ;;
        libasan.so.* | libubsan.so.* | libtsan.so.* | libgcc_s.so.* | \
        libm.so.*) ;;   # of a build with sanitizers
        *) complain "NEEDED $library" ;;
    esac
done

nm -D --undefined-only "$SHIM_LIB" | awk '{ print $2 }' |
    grep -E '^(cu|cuda|cupti)[A-Z]' &&
    complain "undefined symbols of CUDA's libraries"
readelf -d "$SHIM_LIB" | grep -q TEXTREL && complain "text relocations"
readelf -l "$SHIM_LIB" | grep -q 'GNU_STACK.*RWE' &&
    complain "an executable stack"
exit $failed
