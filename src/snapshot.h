/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the calls of one chunk may write: kept before they run, put
 * back, and compared.
 *
 * All functions are called under the region's lock, while the device is idle
 * and the chunk's context is current.
 */
#ifndef CGS_SNAPSHOT_H
#define CGS_SNAPSHOT_H

#include "chunk.h"

/** Memory in one piece: an allocation of the device's, or what a copy writes
 *  to the host. */
typedef struct {
    uint64_t base, bytes;
    bool     is_host;
    uint32_t last_op; /**< the last one of the chunk that takes it */
    size_t   place;   /**< of its bytes in the images */
} cgs_span_t;

/** All zero is the empty one. */
typedef struct {
    cgs_span_t *spans;
    size_t     num, capacity;
    size_t     bytes;     /**< of all spans */
    char       *before;   /**< the bytes when it was taken */
    char       *after;    /**< as they were last read */
    char       *block;    /**< room for reading */
} cgs_snapshot_t;

/** The first byte that was another one. */
typedef struct {
    const cgs_span_t *span;
    uint64_t         offset; /**< in the span */
} cgs_snapshot_byte_t;

/**
 * Find what a chunk may write, and keep it.
 *
 * @param limit    Bytes of host memory that this may take.
 * @param snapshot The empty one. To be released, whatever is returned.
 *
 * @return NULL, or why that cannot be done; a string that lives on.
 */
const char *cgs_snapshot_take(const cgs_chunk_t *chunk, size_t limit,
                              cgs_snapshot_t *snapshot);

/** Read all of it as it is now. */
CUresult cgs_snapshot_read(cgs_snapshot_t *snapshot);

/**
 * Read it again.
 *
 * @param byte Set to the first byte that is not as it was last read; its span
 *             is NULL where all are.
 */
CUresult cgs_snapshot_compare(cgs_snapshot_t *snapshot,
                              cgs_snapshot_byte_t *byte);

/** Put back what it was when it was taken, where it was last read as something
 *  else. Where that fails it is what was last read, as far as the driver lets
 *  it be written. */
CUresult cgs_snapshot_restore(const cgs_snapshot_t *snapshot);

/** Whether a span was last read as something else than when it was taken. */
bool cgs_snapshot_is_written(const cgs_snapshot_t *snapshot,
                             const cgs_span_t *span);

/** Free what it holds; it is the empty one after that. */
void cgs_snapshot_release(cgs_snapshot_t *snapshot);

#endif
