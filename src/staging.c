/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of a few slots, each as large as one run of its chunk needs, and
 * an event for each that says when its readers are done.
 */
#include "staging.h"

#include <stdbool.h>
#include <stdlib.h>

/* Runs that may be on their way at a time. */
#define NUM_SLOTS 4
/* Streams that may read one slot: those of a chunk. */
#define MAX_READERS 8

struct cgs_staging {
    char     *memory; /* NUM_SLOTS times bytes */
    size_t   bytes;
    CUevent  done[NUM_SLOTS][MAX_READERS]; /* made when first needed */
    uint32_t readers[NUM_SLOTS];           /* of these were recorded */
    unsigned slot;
    bool     taken; /* the slot is this run's */
};

CUresult cgs_staging_create(size_t bytes, cgs_staging_t **staging_p)
{
    cgs_staging_t *staging = calloc(1, sizeof(*staging));
    void          *memory;
    CUresult      result;

    if (staging == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    staging->bytes = bytes;
    result = CGS_REAL(cuMemHostAlloc)(&memory, NUM_SLOTS * bytes,
                                      CU_MEMHOSTALLOC_PORTABLE);
    if (result != CUDA_SUCCESS) {
        free(staging);
        return result;
    }
    staging->memory = memory;
    *staging_p      = staging;
    return CUDA_SUCCESS;
}

/* Wait until nothing reads a slot. */
static CUresult wait_for(cgs_staging_t *staging, unsigned slot)
{
    CUresult result = CUDA_SUCCESS;
    uint32_t i;

    for (i = 0; (i < staging->readers[slot]) && (result == CUDA_SUCCESS);
         ++i) {
        result = CGS_REAL(cuEventSynchronize)(staging->done[slot][i]);
    }
    staging->readers[slot] = 0;
    return result;
}

void cgs_staging_destroy(cgs_staging_t *staging)
{
    int slot, i;

    if (staging == NULL) {
        return;
    }
    for (slot = 0; slot < NUM_SLOTS; ++slot) {
        wait_for(staging, slot);
        for (i = 0; i < MAX_READERS; ++i) {
            if (staging->done[slot][i] != NULL) {
                CGS_REAL(cuEventDestroy_v2)(staging->done[slot][i]);
            }
        }
    }
    CGS_REAL(cuMemFreeHost)(staging->memory);
    free(staging);
}

char *cgs_staging_memory(cgs_staging_t *staging)
{
    if (!staging->taken) {
        if (wait_for(staging, staging->slot) != CUDA_SUCCESS) {
            return NULL;
        }
        staging->taken = true;
    }
    return staging->memory + staging->slot * staging->bytes;
}

static CUresult record_reader(cgs_staging_t *staging, uint32_t reader,
                              CUstream stream)
{
    CUevent  *event = &staging->done[staging->slot][reader];
    CUresult result = CUDA_SUCCESS;

    if (*event == NULL) {
        result = CGS_REAL(cuEventCreate)(event, CU_EVENT_DISABLE_TIMING);
    }
    if (result != CUDA_SUCCESS) {
        *event = NULL;
        return result;
    }
    return CGS_REAL(cuEventRecord)(*event, stream);
}

void cgs_staging_issue_again(cgs_staging_t *staging)
{
    if (staging != NULL) {
        staging->slot  = (staging->slot + NUM_SLOTS - 1) % NUM_SLOTS;
        staging->taken = true;
        staging->readers[staging->slot] = 0;
    }
}

void cgs_staging_issued(cgs_staging_t *staging, const CUstream *streams,
                        uint32_t num_streams)
{
    uint32_t i;

    if ((staging == NULL) || !staging->taken) {
        return;
    }
    for (i = 0; i < num_streams; ++i) {
        if (record_reader(staging, staging->readers[staging->slot],
                          streams[i]) == CUDA_SUCCESS) {
            ++staging->readers[staging->slot];
        } else {
            /* Nothing would say when the memory is free again. */
            CGS_REAL(cuStreamSynchronize)(streams[i]);
        }
    }
    staging->taken = false;
    staging->slot  = (staging->slot + 1) % NUM_SLOTS;
}
