/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that is recorded of a region: places, and the variants that lead on from
 * each.
 *
 *     first --- variant --- place --- variant --- place --- variant --- (end)
 *                             |                     |
 *                             +------ variant ------+
 *
 * A variant is a chunk of ops, and the place where a run stands after it.
 * Where runs differ, a place has several variants; they may lead to the same
 * place again or go ways of their own. Places never lead back.
 */
#ifndef CGS_RECORDING_H
#define CGS_RECORDING_H

#include "phases.h"

/** Variants that one place may have; the `variants` key allows fewer. */
#define CGS_MAX_VARIANTS 64

typedef struct cgs_place   cgs_place_t;
typedef struct cgs_variant cgs_variant_t;

/** One recorded way on from a place. */
struct cgs_variant {
    cgs_place_t  *place;    /**< where it begins */
    cgs_place_t  *next;     /**< where it leads to, NULL: to the run's end */
    cgs_phases_t phases;    /**< the chunk, or several that take turns */
    uint64_t     last_run;  /**< of the region, that passed here */
    uint64_t     launched_run; /**< that launched it last */
    uint64_t     patched;   /**< nodes, for that launch */
    bool         is_open;   /**< what follows goes on without a barrier: the
                                 cut is ours */
    bool         is_raw;    /**< just recorded: not yet cut into chunks */
    bool         is_wanted; /**< a run has come this way again: it is worth its
                                 graphs */
    cgs_variant_t *newer, *older; /**< all of the recording */
};

/** A point of the region's way. */
struct cgs_place {
    cgs_variant_t **variants;
    uint32_t      num, capacity;
    cgs_variant_t *current; /**< the one that was followed last, or NULL */
    uint32_t      refs;     /**< variants that lead here, and other holders */
    cgs_place_t   *doomed;  /**< next one to be destroyed */
};

/** All zero is the empty one. Owned by its region, under the region's lock. */
typedef struct {
    cgs_place_t   *first; /**< where runs begin; NULL: nothing is recorded */
    cgs_variant_t *all;   /**< newest first */
    uint32_t      num_variants;
    bool          has_work; /**< chunks to cut or graphs to build */
} cgs_recording_t;

/** The chunk of a variant that the run follows. */
static inline cgs_chunk_t *cgs_variant_chunk(const cgs_variant_t *variant)
{
    return cgs_phases_current(&variant->phases);
}

/** A walk over the ops that runs go through, at each place by the variant that
 *  was followed last. */
typedef struct {
    const cgs_variant_t *variant; /**< NULL past the end */
    uint32_t            next;     /**< op of its chunk */
    const cgs_chunk_t   *chunk;   /**< of the op */
    const cgs_op_t      *op;      /**< where the walk has come to */
    uint64_t            num;      /**< ops up to this one */
} cgs_walk_t;

/** Set out; cgs_walk_next() goes to the first op. The recording may not change
 *  meanwhile. */
cgs_walk_t cgs_walk_begin(const cgs_recording_t *recording);

/** Go on to the next op. @return false past the last one. */
bool cgs_walk_next(cgs_walk_t *walk);

/** Whether nothing is recorded. */
static inline bool cgs_recording_is_empty(const cgs_recording_t *recording)
{
    return recording->all == NULL;
}

/** A place with one holder. @return NULL without memory. */
cgs_place_t *cgs_place_create(void);

/** One holder more (may be NULL), or one fewer: without any, the place and
 *  all that only it leads to are destroyed. @{ */
cgs_place_t *cgs_place_hold(cgs_place_t *place);
void cgs_place_release(cgs_recording_t *recording, cgs_place_t *place);
/** @} */

/** Add a variant to a place; the chunk is its own then, also after an error.
 *  It leads to the run's end. @return NULL without memory. */
cgs_variant_t *cgs_recording_add(cgs_recording_t *recording,
                                 cgs_place_t *place, cgs_chunk_t *chunk);

/** Have a variant lead to a place, or to the end (NULL). */
void cgs_variant_lead(cgs_recording_t *recording, cgs_variant_t *variant,
                      cgs_place_t *place);

/** Destroy a variant; its place stays. Calls the driver. */
void cgs_recording_remove(cgs_recording_t *recording, cgs_variant_t *variant);

/** The variant of a place, other than `keep`, that was followed longest ago;
 *  NULL where there is none. */
cgs_variant_t *cgs_place_oldest(const cgs_place_t *place,
                                const cgs_variant_t *keep);

/** Destroy all. Calls the driver. */
void cgs_recording_release(cgs_recording_t *recording);

/** Bytes of host memory held. */
size_t cgs_recording_bytes(const cgs_recording_t *recording);

#endif
