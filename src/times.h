/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a region's runs and calls take, replayed and plain, as far as it was
 * measured. For the report alone; what is decided is decided by the gate.
 */
#ifndef CGS_TIMES_H
#define CGS_TIMES_H

#include "gate.h"
#include "sample.h"

/** All zero is that of a new region. Under the region's lock. */
typedef struct {
    cgs_sample_t plain_calls;   /**< a call of the driver's that went out
                                     plainly */
    cgs_sample_t plain_runs;    /**< from a start to the next one */
    cgs_sample_t replayed_runs; /**< the same of those that launched graphs */
    bool         watched;       /**< these are calls of a run that was sent
                                     plain to be timed */
    uint64_t     graph_ns;      /**< patching and launching of all graphs */
    uint64_t     started_ns;    /**< the last run, 0: that is not known */
    uint32_t     runs;          /**< since then, all of them of one kind */
} cgs_times_t;

/**
 * A run begins, and the gate says how the one before it went; to be called
 * before the gate is asked about this one.
 */
void cgs_times_start(cgs_times_t *times, const cgs_gate_t *gate,
                     uint64_t now_ns);

/** The run that was started and `more` after it go plain unseen. */
static inline void cgs_times_skip(cgs_times_t *times, uint32_t more)
{
    times->runs += more;
}

/** The run that was started is one whose calls are timed. Those of recordings
 *  no longer count: then things are done for the first time. */
static inline void cgs_times_watch(cgs_times_t *times)
{
    if (!times->watched) {
        times->watched     = true;
        times->plain_calls = (cgs_sample_t){0};
    }
}

/** Whatever comes until the next start is no measure of anything. */
static inline void cgs_times_break(cgs_times_t *times)
{
    times->started_ns = 0;
}

#endif
