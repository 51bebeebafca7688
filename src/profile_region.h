/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the profile keeps of a region while the program runs.
 */
#ifndef CGS_PROFILE_REGION_H
#define CGS_PROFILE_REGION_H

#include "profile_calls.h"

/** Plain runs that are kept: the last ones, before CUPTI was loaded and
 *  after. */
#define CGS_PROFILE_SAMPLES 256

/** A run while CUPTI was off, from its start to the start of the next one. */
typedef struct {
    uint64_t run_ns;
    uint64_t calls, call_ns; /**< that put work on a stream, in the range */
    uint64_t waits, wait_ns; /**< for the device, also behind the range */
    uint64_t waits_in;       /**< in the range */
} cgs_profile_sample_t;

typedef struct cgs_profile_region {
    cgs_profile_owner_t       owner;   /**< first: calls know no more */
    struct cgs_profile_region *next;
    const char                *name;
    bool                      has_rule; /**< that named it */

    /* By the lock of profile.c. */
    uint64_t runs, profiled; /**< all, and those that CUPTI saw whole */
    uint64_t samples[2];     /**< taken, before CUPTI was loaded and after */
    cgs_profile_sample_t *sample[2]; /**< the last ones */
    uint64_t first_ns;       /**< its first start */
    unsigned num_open;
    uint64_t window;         /**< when it was last entered, */
    uint64_t in_window;      /**< and how often since that began */

    /* The last run, until the next one starts. */
    bool                 is_pending;
    uint64_t             began_ns, began_window;
    int                  thread;
    cgs_profile_counts_t in;
} cgs_profile_region_t;

/** A run that CUPTI saw whole. */
typedef struct {
    cgs_profile_region_t *region;
    uint64_t             began_ns, ended_ns;
    uint32_t             thread;  /**< by gettid() */
    uint32_t             pthread; /**< pthread_self(), cut to 32 bits */
} cgs_profile_run_t;

#endif
