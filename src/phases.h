/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of the same calls that differ in values only and take turns:
 * programs with ping-pong buffers have two.
 *
 * A graph can be patched for other values, but a launch that has to bring
 * every node up to date runs slower on the device. Where the values of
 * a whole chunk come again with a small period, each phase of it gets a chunk
 * and a graph of its own.
 */
#ifndef CGS_PHASES_H
#define CGS_PHASES_H

#include "chunk.h"

/** The longest period that is learned, in runs. */
#define CGS_MAX_PHASES 4

/** Owned by a variant. */
typedef struct {
    cgs_chunk_t *chunk[CGS_MAX_PHASES];
    uint32_t    num;     /**< chunks in use */
    uint32_t    current; /**< the one that the run follows */

    uint64_t history[CGS_MAX_PHASES]; /**< hashes of the last runs' values */
    uint32_t num_history;
    uint32_t wanted;   /**< phases to be made, 0 while none was found */
    uint32_t futile;   /**< runs that were patched all the same */
    uint32_t asleep;   /**< runs that are not looked at any more */
    uint32_t sleeps;   /**< how often it fell asleep */
} cgs_phases_t;

/** The chunk that the run follows. */
static inline cgs_chunk_t *cgs_phases_current(const cgs_phases_t *phases)
{
    return phases->chunk[phases->current];
}

/** One phase; the chunk is theirs from now on. */
void cgs_phases_init(cgs_phases_t *phases, cgs_chunk_t *chunk);

/** A new run: expect the next phase. */
void cgs_phases_advance(cgs_phases_t *phases);

/** The first call of the chunk: follow the phase that it belongs to, if the
 *  expected one would have to be changed for it. */
void cgs_phases_choose(cgs_phases_t *phases, cgs_call_t *call);

/** The chunk was replayed, and so many of its nodes had to be patched.
 *  @return whether there is a new phase, without a graph. */
bool cgs_phases_learn(cgs_phases_t *phases, uint64_t patched);

/** Keep the current chunk alone. Calls the driver. */
void cgs_phases_collapse(cgs_phases_t *phases);

/** Destroy all. Calls the driver. */
void cgs_phases_release(cgs_phases_t *phases);

/** Bytes of host memory held by the chunks. */
size_t cgs_phases_bytes(const cgs_phases_t *phases);

#endif
