/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs from run to run, and how: the few places of a region that
 * differ most often, and the last values that each has had.
 *
 * Not all runs are watched, so that counting costs next to nothing; those that
 * are count by all that differs in them. Nothing here allocates.
 */
#ifndef CGS_CHANGES_H
#define CGS_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

/** Places that are kept. */
#define CGS_MAX_CHANGES 4

/** Values of one place that are kept. */
#define CGS_MAX_VALUES 8

/** One thing of one call. */
typedef struct {
    uint64_t   op_index; /**< call of the run, from 0 */
    const char *call;    /**< what it is: "kernel", "copy", ... */
    const char *kernel;  /**< its name, or as `call` */
    const char *what;    /**< as in a divergence */
    int        arg;      /**< number of the argument from 0, or -1 */
    bool       is_address; /**< its values are addresses of device memory */
    uint64_t   runs;     /**< watched runs in which it differed */
    uint64_t   last_run; /**< the last of them */
    uint32_t   num;      /**< values that it has taken */
    uint32_t   fresh;    /**< of these, that were not among the kept ones */
    uint32_t   grew, shrank; /**< and larger, or smaller, than before */
    uint32_t   num_values; /**< kept, up to CGS_MAX_VALUES */
    uint64_t   values[CGS_MAX_VALUES]; /**< or hashes of them */
} cgs_change_t;

/** All zero is that of a new region. Under the region's lock. */
typedef struct {
    uint64_t     runs;    /**< replayed or compared */
    uint64_t     watched; /**< of these */
    uint32_t     num;
    cgs_change_t entry[CGS_MAX_CHANGES];
} cgs_changes_t;

/** A run begins that is held against a recording.
 *  @return whether it is watched: the first ones, then some. */
bool cgs_changes_start(cgs_changes_t *changes);

/** What differed: a place, and its values where it has any. */
typedef struct {
    uint64_t   run;      /**< the region's number of it */
    uint64_t   op_index;
    const char *what;    /**< a literal */
    int        arg;
    bool       has_value;
    uint64_t   old, now;
} cgs_differing_t;

/**
 * Something differed in a watched run.
 *
 * @return Its place if that is a new one, to be given its names; else NULL.
 */
cgs_change_t *cgs_changes_add(cgs_changes_t *changes,
                              const cgs_differing_t *differing);

/** The places by how often they differed, the most often first.
 *  @param order Set to so many pointers as there are places. */
void cgs_changes_sort(const cgs_changes_t *changes,
                      const cgs_change_t *order[CGS_MAX_CHANGES]);

/** How the values of a place differ. */
typedef enum {
    CGS_PATTERN_NONE,       /**< it has none, or too few were seen */
    CGS_PATTERN_ALTERNATES, /**< among num_values */
    CGS_PATTERN_GROWS,
    CGS_PATTERN_SHRINKS,
    CGS_PATTERN_NEW,        /**< never one of the kept ones */
    CGS_PATTERN_MANY        /**< more than are kept, again and again */
} cgs_pattern_t;

cgs_pattern_t cgs_change_pattern(const cgs_change_t *change);

#endif
