/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons: strings that live on and are equal exactly when their addresses
 * are, so that they can be counted.
 */
#ifndef CGS_REASON_H
#define CGS_REASON_H

#include "entries.h"

/** "cuGraphLaunch: CUDA_ERROR_OUT_OF_MEMORY". Any thread; calls the driver. */
const char *cgs_reason_driver(const char *function, CUresult result);

/** Two strings joined by a space. Any thread. */
const char *cgs_reason_join(const char *first, const char *second);

#endif
