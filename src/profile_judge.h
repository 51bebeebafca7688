/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the figures of a region mean: what bounds it, what replaying it is
 * expected to give, and what to set next.
 */
#ifndef CGS_PROFILE_JUDGE_H
#define CGS_PROFILE_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGS_PROFILE_GAPS 3
#define CGS_PROFILE_TEXT 512

/** What keeps the program from being faster. */
typedef enum {
    CGS_BOUND_UNKNOWN,  /**< too few runs */
    CGS_BOUND_FEW,      /**< too few launches for a graph */
    CGS_BOUND_LAUNCHES, /**< the calls that launch */
    CGS_BOUND_DEVICE,   /**< the device works nearly all the time */
    CGS_BOUND_HOST,     /**< the program's own work between calls */
    CGS_BOUND_WAITS,    /**< waits for the device, that idles meanwhile */
    CGS_BOUND_CHANGES,  /**< launch-bound, but no run is like another */
    CGS_BOUND_NUM
} cgs_bound_t;

/** A time in which the device did nothing, between two pieces of work. */
typedef struct {
    uint64_t   ns; /**< 0: none */
    const char *before, *after;
} cgs_profile_gap_t;

/** Figures of one region, of one run unless said otherwise; or of all that is
 *  outside of regions, then of all the time in which it was recorded. */
typedef struct {
    const char *name;        /**< NULL: what is outside */
    bool       has_rule;     /**< a CGSHIM_REGION_<name> has named it */
    uint64_t   runs, plain_runs, profiled_runs; /**< all, timed, recorded */

    /* Where some were timed. */
    bool       is_timed;
    uint64_t   run_ns;       /**< start to start */
    uint64_t   calls, call_ns; /**< that put work on a stream */
    uint64_t   waits, wait_ns; /**< for the device */
    uint64_t   waits_in;     /**< of these in the range */

    /* Where some were recorded. */
    bool       is_profiled;
    uint64_t   launches, copies, sets;
    uint64_t   busy_ns, idle_ns; /**< of the device */
    uint64_t   graph_ns;     /**< time that a graph of it takes there, no less
                                  than so */
    cgs_profile_gap_t gap[CGS_PROFILE_GAPS]; /**< the longest of all runs */
    uint64_t   sequences, distinct; /**< calls between two waits, of all
                                         recorded runs; how many differ */
    uint64_t   commonest, length; /**< how often the commonest came, and its
                                       calls */
    unsigned   alike_percent; /**< of recorded runs that came again in the
                                   order of their kernels */

    /* By cgs_profile_judge(). */
    cgs_bound_t bound;
    bool       has_gain;
    uint64_t   plain_ns;     /**< run_ns, or the device's time if that is
                                  more */
    uint64_t   expected_ns;
    char       why[CGS_PROFILE_TEXT];
    char       advice[CGS_PROFILE_TEXT];
} cgs_profile_figures_t;

/** Judge a region, or what is outside of any. Any thread. */
void cgs_profile_judge(cgs_profile_figures_t *figures);

/** A bound in words. */
const char *cgs_profile_bound_name(cgs_bound_t bound);

/** Plain time over the expected one. */
double cgs_profile_gain(const cgs_profile_figures_t *figures);

#endif
