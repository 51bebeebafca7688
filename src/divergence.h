/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says which call was not as recorded. Under the region's lock.
 */
#ifndef CGS_DIVERGENCE_H
#define CGS_DIVERGENCE_H

#include "region.h"

/** For the report, the first time, and in some runs for its statistics; `call`
 *  is NULL where the run ended. */
void cgs_divergence_note(cgs_region_t *region, const cgs_call_t *call);

/** For the log, each time. */
void cgs_divergence_log(cgs_region_t *region, const cgs_call_t *call);

#endif
