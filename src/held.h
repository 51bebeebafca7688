/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the open run holds back: the calls of the cursor's chunk that were
 * swallowed. They leave as a graph when the chunk is whole, or one by one.
 *
 * All functions are called under the region's lock.
 */
#ifndef CGS_HELD_H
#define CGS_HELD_H

#include "region.h"

/** The chunk that the cursor follows or appends to. */
static inline cgs_chunk_t *cgs_cursor_chunk(const cgs_region_t *region)
{
    return cgs_variant_chunk(region->cursor.variant);
}

static inline uint32_t cgs_held(const cgs_region_t *region)
{
    return atomic_load_explicit(&region->held, memory_order_relaxed);
}

/** All calls before the cursor's op are held back now. */
void cgs_held_grow(cgs_region_t *region, bool is_event);

/** Issue what is held back, in order; the rest of the chunk goes through. */
void cgs_held_issue(cgs_region_t *region);

/** All of the chunk is verified: launch it, or issue it where that fails.
 *  @return what its last call is to be answered. */
CUresult cgs_held_launch(cgs_region_t *region);

/** Tell an error of work that was answered with success at the next call. */
void cgs_held_keep_error(cgs_region_t *region, CUresult error);

#endif
