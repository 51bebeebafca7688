/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges as the beginnings and ends of region runs.
 */
#ifndef CGS_RANGES_H
#define CGS_RANGES_H

#include "nvtx.h"

/** Where nvtx.c sends the ranges of the program. */
extern const cgs_range_sink_t cgs_ranges_sink;

#endif
