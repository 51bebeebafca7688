/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a recorded row of ops is cut into chunks, each a graph of its own.
 *
 * A graph is launched when its last call has been verified. With few calls in
 * it the device starts early, with many it costs less: 64 tiny kernels in 1, 2,
 * 4 and 8 graphs took 61.2, 63.5, 65.1 and 70.5 us on one H200, and 79.7, 71.0,
 * 74.9 and 77.0 us where the program waited after each run.
 */
#ifndef CGS_PLAN_H
#define CGS_PLAN_H

#include "chunk.h"

/** What to cut by. */
typedef struct {
    unsigned limit;  /**< most ops of one, CGS_CHUNK_AUTO or CGS_CHUNK_ALL */
    bool     synced; /**< the program waits for the device in each run, so the
                          device has nothing else to do at its beginning */
} cgs_plan_rule_t;

/**
 * The ends of chunks.
 *
 * @param chunk  All the ops, with the times between them.
 * @param rule   What to cut by.
 * @param ends   Set to as many ends as there are chunks, to be freed; the last
 *               is the number of ops.
 *
 * @return How many; 0 without memory.
 */
uint32_t cgs_plan_chunks(const cgs_chunk_t *chunk,
                         const cgs_plan_rule_t *rule, uint32_t **ends);

#endif
