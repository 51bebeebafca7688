/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's side of kernels.c. kernels_ptx.sh makes kernels.ptx and
 * kernels_ptx.h from it.
 */
#include "kernels.c"
