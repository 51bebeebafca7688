/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which NVTX ranges are open: a depth per thread and domain for push/pop, one
 * table for the process for start/end.  No locks, as in nvtx_names.h.
 */
#ifndef CGS_NVTX_TRACK_H
#define CGS_NVTX_TRACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** A started range that waits for its end. */
typedef struct cgs_nvtx_range {
    struct cgs_nvtx_range *next;
    atomic_uint_least64_t key;  /**< what the program ends it by */
    uint64_t              id;   /**< what the sink knows it by */
    bool                  ours; /**< no tool knows the key */
} cgs_nvtx_range_t;

/**
 * Count one more open range of the calling thread.
 *
 * @param domain  index of the domain's name, 0 for the default domain.
 * @return 0, or -ENOMEM: the range is not counted and its pop will be stray.
 */
int cgs_nvtx_depth_push(uint32_t domain);

/** Count one less; false where none of this thread and domain was open. */
bool cgs_nvtx_depth_pop(uint32_t domain);

/**
 * Reserve a place for a range that is about to start.  Any thread.
 *
 * @param key  what the program will end it by.
 * @return the place, to be filled in and then published, or NULL where there
 *         is no memory.
 */
cgs_nvtx_range_t *cgs_nvtx_range_claim(uint64_t key);

/** Let the range be ended from now on. */
void cgs_nvtx_range_publish(cgs_nvtx_range_t *range, uint64_t key);

/**
 * End a range: of several threads that try, one succeeds.  Any thread.
 *
 * @param key     as given to cgs_nvtx_range_publish().
 * @param id_p    filled with the range's id.
 * @param ours_p  filled with its `ours`.
 * @return 0, or -ENOENT where no such range is open.
 */
int cgs_nvtx_range_take(uint64_t key, uint64_t *id_p, bool *ours_p);

#endif /* CGS_NVTX_TRACK_H */
