/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where runs differ: going over from one variant to another.
 *
 * All functions are called under the region's lock.
 */
#ifndef CGS_BRANCH_H
#define CGS_BRANCH_H

#include "region.h"

/** The cursor stands at a place, before its first call; NULL: past the end. */
void cgs_branch_enter(cgs_region_t *region, cgs_place_t *place);

/** The cursor's chunk has passed: on to the place that it leads to. */
void cgs_branch_leave(cgs_region_t *region);

/** Hold a call against an op of a chunk, its stream and context included. */
cgs_match_t cgs_branch_compare(const cgs_chunk_t *chunk, uint32_t index,
                               cgs_call_t *call, CUcontext ctx);

/** Whether a replay may take a call that matches so. */
bool cgs_branch_accepts(const cgs_region_t *region, cgs_match_t match);

/**
 * The call is not the next op of the variant that is followed: go over to
 * another one of the same place, where the calls so far were the same and this
 * one is. What is held back stays so if it can.
 *
 * @param call The call; NULL where none comes: the variant that ends here.
 *
 * @return false where there is no such variant.
 */
bool cgs_branch_follow(cgs_region_t *region, cgs_call_t *call, CUcontext ctx);

#endif
