/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory of ours for copies from pageable memory. Such a call returns
 * once its source may be used again, so the source is copied here at call time
 * and the graph copies from here.
 */
#ifndef CGS_STAGING_H
#define CGS_STAGING_H

#include <stddef.h>
#include <stdint.h>

#include "entries.h"

/** Most bytes of one copy that is staged; larger ones are barriers. */
#define CGS_MAX_STAGED ((size_t)256 * 1024)

/** The staging memory of one chunk; under its region's lock. */
typedef struct cgs_staging cgs_staging_t;

/**
 * Make staging memory. Calls the driver; the chunk's context is current.
 *
 * @param bytes   Bytes that one run of the chunk stages.
 * @param staging Set to the new one.
 */
CUresult cgs_staging_create(size_t bytes, cgs_staging_t **staging);

/** Have done with it: it is put aside until nothing reads from it. Neither
 *  waits nor calls the driver. NULL is fine. */
void cgs_staging_destroy(cgs_staging_t *staging);

/** Before a context may end, and with it memory and events that were made in
 *  it: give back what was put aside, and forget what is still read. */
void cgs_staging_forget_all(void);

/**
 * Memory for this run. Waits for the run that used it before, if that is
 * still on its way.
 *
 * @return `bytes` bytes, or NULL after an error of the device.
 */
char *cgs_staging_memory(cgs_staging_t *staging);

/** The work that was issued last is issued again from the same memory. Nothing
 *  reads it any more. NULL is fine. */
void cgs_staging_issue_again(cgs_staging_t *staging);

/** The work that reads this run's memory was put on these streams; the next
 *  run gets other memory. NULL is fine. */
void cgs_staging_issued(cgs_staging_t *staging, const CUstream *streams,
                        uint32_t num_streams);

#endif
