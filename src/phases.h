/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of one region that differ in arguments only and take turns:
 * programs with ping-pong buffers have two.
 *
 * A graph can be patched for other arguments, but a launch that has to bring
 * every node up to date runs slower on the device. Where the arguments of
 * whole runs come again with a small period, each phase of it gets a recording
 * and a graph of its own.
 */
#ifndef CGS_PHASES_H
#define CGS_PHASES_H

#include "recording.h"

/** The longest period that is learned, in runs. */
#define CGS_MAX_PHASES 4

/** All zero is the empty one. Owned by a region, under its lock. */
typedef struct {
    cgs_recording_t recording[CGS_MAX_PHASES];
    uint32_t        num;     /**< recordings in use, 0 is as 1 */
    uint32_t        current; /**< the one that the run follows */

    uint64_t history[CGS_MAX_PHASES]; /**< hashes of the last runs' arguments */
    uint32_t num_history;
    uint32_t wanted;   /**< phases to be made, 0 while none was found */
    uint32_t futile;   /**< runs that were patched all the same */
    uint32_t asleep;   /**< runs that are not looked at any more */
    uint32_t sleeps;   /**< how often it fell asleep */
} cgs_phases_t;

/** The recording that the run follows. */
static inline cgs_recording_t *cgs_phases_current(cgs_phases_t *phases)
{
    return &phases->recording[phases->current];
}

/** A new run: expect the next phase. */
void cgs_phases_advance(cgs_phases_t *phases);

/** The first call of a run: follow the phase that it belongs to, if the
 *  expected one would have to be changed for it. */
void cgs_phases_choose(cgs_phases_t *phases, cgs_call_t *call);

/** A whole run was replayed, and so many of its nodes had to be patched. */
void cgs_phases_learn(cgs_phases_t *phases, uint64_t patched);

/** Keep the current recording alone. Calls the driver. */
void cgs_phases_collapse(cgs_phases_t *phases);

/** Destroy all. Calls the driver. */
void cgs_phases_release(cgs_phases_t *phases);

#endif
