/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording: the first run of a region, and what differs from then on. A
 * recording that began beside an older one finds its way back into it.
 *
 * All functions are called under the region's lock.
 */
#ifndef CGS_RECORDER_H
#define CGS_RECORDER_H

#include "region.h"

/** Record from the cursor on, beside what was recorded there.
 *  @param replace  In its place instead. */
void cgs_recorder_begin(cgs_region_t *region, bool replace);

/** Add a call that the program has made. The call is admitted.
 *  @return 0; -ENOMEM or -EDQUOT where it could not be. */
int cgs_recorder_add(cgs_region_t *region, cgs_call_t *call, CUcontext ctx);

/** The next call begins a chunk: nothing may be held back until then. */
void cgs_recorder_cut(cgs_region_t *region);

/** The cursor lets go of the older way. */
void cgs_recorder_end(cgs_region_t *region);

/** Whether the chunk being recorded can take a wait: it records the event.
 *  Sets how far back that is. */
bool cgs_recorder_has_record(const cgs_region_t *region, cgs_call_t *call,
                             CUcontext ctx);

/** The same for a chunk, before op `end`. */
bool cgs_recorder_is_wait_inside(const cgs_region_t *region,
                                 const cgs_chunk_t *chunk, uint32_t end,
                                 cgs_call_t *call, CUcontext ctx);

#endif
