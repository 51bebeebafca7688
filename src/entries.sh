#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes entries.def: one line CGS_ENTRY(index, name, kind) for each driver
# function that cuda.h declares, in every version and stream flavour.
#
#   entries.sh KINDS OUTPUT PREPROCESSOR-COMMAND...
#
# The names come from the preprocessed header, so that they are exactly the
# exported ones (_v2, _ptsz, ...); KINDS (kinds.txt) gives a meaning to some,
# all others are barriers. A name of KINDS that this header lacks is left out.
set -eu
kinds=$1
output=$2
shift 2
{
    echo '#define __CUDA_API_VERSION_INTERNAL'
    echo '#include <cuda.h>'
    echo '#include <cudaProfiler.h>'
} > "$output.c"
"$@" "$output.c" > "$output.i"
tr '\n' ' ' < "$output.i" | tr ';{}' '\n\n\n' |
    sed -n 's/^.*CUresult[ ]*\(cu[A-Z][A-Za-z0-9_]*\)[ ]*(.*$/\1/p' |
    LC_ALL=C sort -u > "$output.names"
awk -v kinds="$kinds" '
BEGIN {
    while ((getline line < kinds) > 0) {
        sub(/#.*/, "", line)
        n = split(line, word, " ")
        for (i = 2; i <= n; i++) kind[word[i]] = word[1]
    }
}
{
    base = $1
    sub(/_pt[ds][sz]$/, "", base)
    k = $1 in kind ? kind[$1] : base in kind ? kind[base] : "BARRIER"
    printf "CGS_ENTRY(%d, %s, %s)\n", NR - 1, $1, k
}
END { if (NR < 300) exit 1 }' "$output.names" > "$output.tmp" || {
    echo "entries.sh: too few driver functions found in cuda.h" >&2
    exit 1
}
echo "#define CGS_NUM_ENTRIES $(wc -l < "$output.tmp")" > "${output%/*}/entries-count.h"
mv "$output.tmp" "$output"
rm -f "$output.c" "$output.i" "$output.names"
