/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate of a region: whether its next run is replayed or goes plain.
 *
 * The time from one start of the region to the next is what the user feels; it
 * is compared between runs that were replayed and runs that went plain. The
 * two are tried in turn now and then, most seldom where the gain is large.
 */
#ifndef CGS_GATE_H
#define CGS_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

/** How a run went. */
typedef enum {
    CGS_PATH_PLAIN,
    CGS_PATH_EXACT,   /**< replayed as recorded */
    CGS_PATH_PATCHED, /**< replayed, with nodes patched */
    CGS_PATH_VARIANT, /**< it went from one variant to another, or part of it
                           went out plainly */
    CGS_PATH_FUTILE,  /**< held against a recording, and no graph launched */
    CGS_PATH_NUM,
    CGS_PATH_NONE = CGS_PATH_NUM /**< no measure of anything: a recording */
} cgs_path_t;

/** Times of one path that one trial looks at. */
#define CGS_GATE_TIMES 6

typedef struct {
    uint64_t ns[CGS_GATE_TIMES];
    uint32_t num;
} cgs_gate_times_t;

typedef enum {
    CGS_GATE_SETTLING, /**< replayed; nothing is known yet */
    CGS_GATE_REPLAYS,  /**< a trial: replayed runs are timed */
    CGS_GATE_PLAINS,   /**< a trial: plain runs are timed */
    CGS_GATE_OPEN,     /**< replayed until the next trial */
    CGS_GATE_CLOSED    /**< plain until the next trial */
} cgs_gate_state_t;

/** All zero is the gate of a new region. Under the region's lock. */
typedef struct {
    cgs_gate_state_t state;
    uint64_t         started_ns; /**< the last run, 0: there was none */
    cgs_path_t       path;       /**< that it took */
    cgs_path_t       replay;     /**< the one that is tried */
    bool             was_plain;  /**< the kind of the last run */
    uint32_t         alike;      /**< runs of that kind in a row */
    uint32_t         left;       /**< runs until the state changes */
    uint32_t         runs;       /**< of this state */
    uint32_t         futile;     /**< runs of this state that launched
                                      nothing, or recorded */
    uint32_t         opened;     /**< trials in a row that opened it */
    uint32_t         closed[CGS_PATH_NUM]; /**< that closed it, by path */
    uint32_t         chance;     /**< state of the random gate */
    cgs_gate_times_t times[CGS_PATH_NUM];
} cgs_gate_t;

/** A run begins. @return whether it may be replayed. */
bool cgs_gate_enter(cgs_gate_t *gate, cgs_gate_mode_t mode, uint64_t now_ns);

/** What became of the run that began last. */
void cgs_gate_leave(cgs_gate_t *gate, cgs_path_t path);

/** Runs that go plain without a question: the caller may take them all at once,
 *  and asks again after them. */
uint32_t cgs_gate_take_closed(cgs_gate_t *gate);

/** Whether the run that was entered is a plain one that the trial does not
 *  time: who looks at its calls spoils nothing. */
static inline bool cgs_gate_is_untimed(const cgs_gate_t *gate)
{
    return (gate->state == CGS_GATE_PLAINS) && !gate->was_plain;
}

/** Whether runs go plain, for the report. */
static inline bool cgs_gate_is_closed(const cgs_gate_t *gate)
{
    return gate->state == CGS_GATE_CLOSED;
}

#endif
