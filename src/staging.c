/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of a few slots, each as large as one run of its chunk needs, and
 * an event for each that says when its readers are done.
 *
 * The end of a chunk may not wait for its readers: the program did not ask to,
 * and what they wait for may be a call that comes later. So memory is put
 * aside then, and given to another chunk when nobody reads it. It is not given
 * back, since freeing host memory waits for the whole device.
 */
#include "staging.h"

#include <stdbool.h>
#include <stdlib.h>

#include "thread.h"

/* Runs that may be on their way at a time. */
#define NUM_SLOTS 4
/* Streams that may read one slot: those of a chunk. */
#define MAX_READERS 8
/* Bytes of the smallest slot; others are twice as large, and so on, ... */
#define MIN_ROOM 4096
/* ... and how much larger than needed they may be. */
#define MAX_WASTE 4

struct cgs_staging {
    char     *memory; /* NUM_SLOTS times room */
    CUevent  done[NUM_SLOTS][MAX_READERS]; /* made when first needed */
    uint32_t readers[NUM_SLOTS];           /* of these were recorded */
    unsigned slot;
    bool     taken; /* the slot is this run's */
    size_t   room;  /* bytes that each slot has */
    CUcontext     ctx;   /* that the events are of */
    cgs_staging_t *next; /* that is put aside */
};

/* Memory put aside, newest first. */
static struct {
    cgs_lock_t    lock;
    cgs_staging_t *first;
} aside;

static bool is_read(const cgs_staging_t *staging)
{
    unsigned slot, i;

    for (slot = 0; slot < NUM_SLOTS; ++slot) {
        for (i = 0; i < staging->readers[slot]; ++i) {
            if (CGS_REAL(cuEventQuery)(staging->done[slot][i]) ==
                CUDA_ERROR_NOT_READY) {
                return true;
            }
        }
    }
    return false;
}

/* Nobody reads it. */
static void give_back(cgs_staging_t *staging)
{
    unsigned slot, i;

    for (slot = 0; slot < NUM_SLOTS; ++slot) {
        for (i = 0; i < MAX_READERS; ++i) {
            if (staging->done[slot][i] != NULL) {
                CGS_REAL(cuEventDestroy_v2)(staging->done[slot][i]);
            }
        }
    }
    CGS_REAL(cuMemFreeHost)(staging->memory);
}

/* Memory that was put aside, or NULL. */
static cgs_staging_t *use_again(size_t room, CUcontext ctx)
{
    cgs_staging_t *found = NULL;
    cgs_staging_t **place;
    unsigned      slot;

    cgs_lock(&aside.lock);
    for (place = &aside.first; (*place != NULL) && (found == NULL);) {
        if (((*place)->ctx == ctx) && ((*place)->room >= room) &&
            ((*place)->room / MAX_WASTE <= room) && !is_read(*place)) {
            found  = *place;
            *place = found->next;
        } else {
            place = &(*place)->next;
        }
    }
    cgs_unlock(&aside.lock);
    for (slot = 0; (found != NULL) && (slot < NUM_SLOTS); ++slot) {
        found->readers[slot] = 0;
    }
    return found;
}

CUresult cgs_staging_create(size_t bytes, cgs_staging_t **staging_p)
{
    CUcontext     ctx  = NULL;
    size_t        room = MIN_ROOM;
    cgs_staging_t *staging;
    void          *memory;
    CUresult      result;

    while (room < bytes) {
        room *= 2;
    }
    CGS_REAL(cuCtxGetCurrent)(&ctx);
    staging = use_again(room, ctx);
    if (staging == NULL) {
        staging = calloc(1, sizeof(*staging));
        if (staging == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        result = CGS_REAL(cuMemHostAlloc)(&memory, NUM_SLOTS * room,
                                          CU_MEMHOSTALLOC_PORTABLE);
        if (result != CUDA_SUCCESS) {
            free(staging);
            return result;
        }
        staging->memory = memory;
        staging->room   = room;
        staging->ctx    = ctx;
    }
    *staging_p = staging;
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
    if (staging == NULL) {
        return;
    }
    staging->taken = false;
    cgs_lock(&aside.lock);
    staging->next = aside.first;
    aside.first   = staging;
    cgs_unlock(&aside.lock);
}

void cgs_staging_forget_all(void)
{
    cgs_staging_t *staging, *next;

    cgs_lock(&aside.lock);
    staging     = aside.first;
    aside.first = NULL;
    cgs_unlock(&aside.lock);
    for (; staging != NULL; staging = next) {
        next = staging->next;
        if (!is_read(staging)) {
            give_back(staging);
        }
        free(staging);
    }
}

char *cgs_staging_memory(cgs_staging_t *staging)
{
    if (!staging->taken) {
        if (wait_for(staging, staging->slot) != CUDA_SUCCESS) {
            return NULL;
        }
        staging->taken = true;
    }
    return staging->memory + staging->slot * staging->room;
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
