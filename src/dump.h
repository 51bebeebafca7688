/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs as files to look at (CGSHIM_DUMP): for each that is built its nodes
 * and edges for Graphviz, and a list of its calls with all their arguments.
 */
#ifndef CGS_DUMP_H
#define CGS_DUMP_H

#include <stdbool.h>

#include "chunk.h"

/** Files that one process writes; there are two for each graph. */
#define CGS_DUMP_MAX_FILES 1000

/** Whether files are wanted; changed by dump.c alone. */
extern bool cgs_dump_on;

/**
 * Dump from now on. Once; prints a line where the directory is of no use.
 *
 * @param directory Its name, with %p and %h, or NULL for no dump.
 * @param max_files How many files to write.
 */
void cgs_dump_start(const char *directory, unsigned max_files);

/** What cgs_dump_graph() calls once it is known that files are wanted. */
void cgs_dump_write(const char *region, const cgs_chunk_t *chunk);

/** Dump a chunk whose graph was just built, under the lock of its region.
 *  Calls the driver. */
static inline void cgs_dump_graph(const char *region, const cgs_chunk_t *chunk)
{
    if (__builtin_expect(__atomic_load_n(&cgs_dump_on, __ATOMIC_ACQUIRE),
                         0)) {
        cgs_dump_write(region, chunk);
    }
}

#endif
