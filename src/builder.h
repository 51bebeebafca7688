/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a region's graphs are built, and what that took.
 */
#ifndef CGS_BUILDER_H
#define CGS_BUILDER_H

#include "region.h"

/** Build the graphs that the recording of the present phase lacks, where they
 *  are wanted. Under the region's lock; nothing is held back. Calls the
 *  driver. */
void cgs_builder_run(cgs_region_t *region);

/** Have the chunks of the way that runs take now cut anew, by what was learned
 *  of the program's pace since. Under the region's lock; nothing is held
 *  back. */
void cgs_builder_plan_again(cgs_region_t *region);

#endif
