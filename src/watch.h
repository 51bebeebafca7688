/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Automatic regions of one thread: what comes again in the sequence of its
 * calls outside of regions, and when it begins.
 *
 * A token stands for what a call does, not for the values that it is given, so
 * that a loop is seen whose buffers alternate or whose grids grow.
 */
#ifndef CGS_WATCH_H
#define CGS_WATCH_H

#include "op.h"
#include "region.h"

/** Owned by its thread. */
typedef struct cgs_watch cgs_watch_t;

/** @return NULL without memory. */
cgs_watch_t *cgs_watch_create(void);

/** Free it, and give back its regions; NULL is fine. */
void cgs_watch_destroy(cgs_watch_t *watch);

/**
 * The next call that puts work on a stream, and no region of the thread is
 * open. Calls the driver where a region is entered for the first time.
 *
 * @return The region that is entered with it, by cgs_region_enter(), or NULL.
 *         What came of that is told to cgs_watch_entered().
 */
cgs_region_t *cgs_watch_call(cgs_watch_t *watch, const cgs_call_t *call);

/** A call that begins no region, whatever it is. */
void cgs_watch_pass(cgs_watch_t *watch, const cgs_call_t *call);

/** A call, or one that nothing is held back across, that is only looked at.
 *  @return whether it is one of a loop.
 *  @{ */
bool cgs_watch_see_call(cgs_watch_t *watch, const cgs_call_t *call);
bool cgs_watch_see_barrier(cgs_watch_t *watch, unsigned index);
/** @} */

/** How many calls its run has. */
uint32_t cgs_watch_calls(const cgs_watch_t *watch);

/** Whether the region was entered; if not, the call is one like any other. */
void cgs_watch_entered(cgs_watch_t *watch, cgs_enter_t entered);

/**
 * Whether a call, or one that nothing is held back across, is the next one of
 * the run.
 *
 * @param calls That the run has made so far.
 *
 * @{
 */
bool cgs_watch_expects_call(const cgs_watch_t *watch, uint64_t calls,
                            const cgs_call_t *call);
bool cgs_watch_expects_barrier(cgs_watch_t *watch, uint64_t calls,
                               unsigned index);
/** @} */

/** How a run has ended. */
typedef struct {
    bool             is_known; /**< its calls were those of the unit, but for
                                    the last one where `call` is given */
    const cgs_call_t *call;    /**< that was another one, or NULL */
    uint64_t         calls;    /**< of the run, that one too */
} cgs_watch_end_t;

/** The region's run has ended. */
void cgs_watch_left(cgs_watch_t *watch, const cgs_watch_end_t *end);

/** A call that nothing is held back across, outside of regions. */
void cgs_watch_barrier(cgs_watch_t *watch, unsigned index);

/** Where little has come again for long.
 *  @return How many calls may be made without telling of them; often 0. */
uint64_t cgs_watch_take_rest(cgs_watch_t *watch);

/** Calls that are not told of come in between. */
void cgs_watch_break(cgs_watch_t *watch);

#endif
