#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes kernels.ptx and kernels_ptx.h anew from kernels.cu. Both are kept in the
# tree, so that only a change of the kernels needs nvcc.
#
#     kernels_ptx.sh [NVCC]

set -eu

nvcc=${1:-${NVCC:-nvcc}}
cd "$(dirname "$0")"

# The oldest architecture that the toolkits in use can still compile for. No
# fused multiply-add: the simulated driver's bodies have none.
"$nvcc" -ptx -arch=compute_75 -fmad=false -o kernels.new kernels.cu

# nvcc writes its own version, which an older driver would refuse, though
# nothing in the text is that new: ptxas proves it.
sed -e 's/^\.version .*/.version 7.0/' kernels.new > kernels.ptx
rm -f kernels.new
"${nvcc%nvcc}ptxas" -arch=sm_75 -o /dev/null kernels.ptx

{
    cat <<'END'
/* SPDX-License-Identifier: Apache-2.0 */
/* Made from kernels.cu by kernels_ptx.sh: the text of kernels.ptx. */
#ifndef KRN_KERNELS_PTX_H
#define KRN_KERNELS_PTX_H

static const char krn_kernels_ptx[] =
END
    grep -v -e '^//' -e '^[[:space:]]*$' kernels.ptx |
        sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^.*$/    "&\\n"/'
    printf '    ;\n\n#endif\n'
} > kernels_ptx.h
