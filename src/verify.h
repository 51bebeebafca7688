/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifying (`verify=N`): a graph is launched, what it wrote is read and taken
 * back, its calls are made one by one, and both must have left the same bytes.
 * What the calls have left stays.
 *
 * Meanwhile calls of other threads wait (turns.h), and the
 * device must be idle before and after each step. Under the region's lock.
 */
#ifndef CGS_VERIFY_H
#define CGS_VERIFY_H

#include "graph.h"
#include "region.h"

/**
 * Launch the cursor's chunk as cgs_graph_launch() does, and verify it. Where it
 * cannot be verified it is only launched, and the region's counters say why.
 *
 * @param patched As for cgs_graph_launch().
 * @param late    Likewise.
 */
cgs_graph_status_t cgs_verify_launch(cgs_region_t *region, cgs_chunk_t *chunk,
                                     uint64_t *patched, CUresult *late);

/** Add CGSHIM_ACCESS_WRITTEN to what verified runs were seen to write. */
void cgs_verify_mark(const cgs_region_t *region, cgshim_buffer_t *buffer);

#endif
