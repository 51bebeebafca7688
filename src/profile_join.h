/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings together what was noted of runs and what CUPTI recorded: each call to
 * the run in whose thread and time it was made, the device's work to its call.
 */
#ifndef CGS_PROFILE_JOIN_H
#define CGS_PROFILE_JOIN_H

#include "profile_cupti.h"
#include "profile_judge.h"
#include "profile_region.h"

/** What there is to join. */
typedef struct {
    uint64_t                   clock_ns; /**< what a reading takes */
    const cgs_profile_region_t *regions; /**< last one first */
    cgs_profile_run_t          *runs;    /**< are sorted */
    size_t                     num_runs;
    uint64_t                   runs_left_out;
    uint64_t                   elapsed_ns;
    uint64_t                   plain_ns, recorded_ns; /**< CUPTI off, on */
    bool                       was_recorded;
    const cgs_profile_records_t *records; /**< are sorted */
} cgs_profile_source_t;

/** The whole profile. */
typedef struct {
    cgs_profile_figures_t *region; /**< in order of appearance */
    size_t                num_regions;
    cgs_profile_figures_t outside;
    uint64_t              elapsed_ns, recorded_ns;
    uint64_t              left_out; /**< records and runs */
    bool                  was_recorded;
} cgs_profile_t;

/** Join and judge. @return 0, or -ENOMEM; result is to be released in both
 *  cases. */
int cgs_profile_join(const cgs_profile_source_t *source,
                     cgs_profile_t *result);

/** Free what cgs_profile_join() has made. */
void cgs_profile_release(cgs_profile_t *result);

#endif
