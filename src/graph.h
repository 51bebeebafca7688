/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a chunk into an instantiated graph, keeps it in step with the ops,
 * and launches it. Knows nothing of why.
 */
#ifndef CGS_GRAPH_H
#define CGS_GRAPH_H

#include <stdbool.h>
#include <stddef.h>

#include "chunk.h"

/** Result of a driver call made for a graph. */
typedef struct {
    CUresult   result;
    const char *function; /**< the call that failed */
} cgs_graph_status_t;

/**
 * Build a chunk's graph from its ops. On an error the chunk is left
 * without one. Calls the driver; the chunk's context is current meanwhile.
 * Its stream is not used: the program may have destroyed it.
 */
cgs_graph_status_t cgs_graph_build(cgs_chunk_t *chunk);

/**
 * Send a fresh graph to the device, or its first launch would pay for it.
 *
 * @param stream A stream that the program has just used.
 */
cgs_graph_status_t cgs_graph_upload(cgs_chunk_t *chunk, CUstream stream);

/** Call the stream-ordered frees among the ops. */
CUresult cgs_graph_call_frees(cgs_chunk_t *chunk);

/**
 * Bring the dirty nodes up to date and launch the graph on the chunk's first
 * stream, the others joined before and after it. Frees are not called. After
 * an error nothing was launched, and the graph may no longer agree with the
 * ops: destroy it. The chunk's context must be current.
 *
 * @param patched Increased by the number of nodes patched.
 * @param late    Set to an error that came once the graph was launched.
 */
cgs_graph_status_t cgs_graph_launch(cgs_chunk_t *chunk, uint64_t *patched,
                                    CUresult *late);

/** Destroy a chunk's graph, if it has one. May be called while the graph is
 *  running: the driver frees it afterwards. */
void cgs_graph_destroy(cgs_chunk_t *chunk);

/** Make a context current for work of ours.
 *  @return whether it must be left again by cgs_graph_leave_context(). */
bool cgs_graph_enter_context(CUcontext ctx);
void cgs_graph_leave_context(void);

#endif
