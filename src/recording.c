/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing and pruning of what is recorded.
 */
#include "recording.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(cgs_variant_t) + sizeof(cgs_place_t) +
               sizeof(cgs_variant_t *) <= CGS_CHUNK_OVERHEAD,
               "a chunk is counted with what keeps it");

cgs_place_t *cgs_place_create(void)
{
    cgs_place_t *place = calloc(1, sizeof(*place));

    if (place != NULL) {
        place->refs = 1;
    }
    return place;
}

cgs_place_t *cgs_place_hold(cgs_place_t *place)
{
    if (place != NULL) {
        ++place->refs;
    }
    return place;
}

static void unlink_variant(cgs_recording_t *recording, cgs_variant_t *variant)
{
    cgs_place_t *place = variant->place;
    uint32_t    i;

    for (i = 0; (i < place->num) && (place->variants[i] != variant); ++i) {
    }
    place->variants[i] = place->variants[--place->num];
    if (place->current == variant) {
        place->current = place->num > 0 ? place->variants[0] : NULL;
    }
    *(variant->newer != NULL ? &variant->newer->older : &recording->all) =
        variant->older;
    if (variant->older != NULL) {
        variant->older->newer = variant->newer;
    }
    --recording->num_variants;
}

/* One holder fewer; a place without any joins the list of those that are to be
 * destroyed. Not by recursion: a way may be as long as it likes. */
static void let_go(cgs_place_t *place, cgs_place_t **doomed)
{
    if ((place != NULL) && (--place->refs == 0)) {
        place->doomed = *doomed;
        *doomed       = place;
    }
}

static void destroy_variant(cgs_recording_t *recording, cgs_variant_t *variant,
                            cgs_place_t **doomed)
{
    unlink_variant(recording, variant);
    let_go(variant->next, doomed);
    cgs_phases_release(&variant->phases);
    free(variant);
}

static void destroy_doomed(cgs_recording_t *recording, cgs_place_t *doomed)
{
    cgs_place_t *place;

    while (doomed != NULL) {
        place  = doomed;
        doomed = place->doomed;
        while (place->num > 0) {
            /* That unlinks it, so the first one is another one then.
             * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
            destroy_variant(recording, place->variants[0], &doomed);
        }
        free(place->variants);
        free(place);
    }
}

void cgs_place_release(cgs_recording_t *recording, cgs_place_t *place)
{
    cgs_place_t *doomed = NULL;

    let_go(place, &doomed);
    destroy_doomed(recording, doomed);
}

static bool make_room(cgs_place_t *place)
{
    uint32_t      capacity = place->capacity > 0 ? 2 * place->capacity : 1;
    cgs_variant_t **variants;

    if (place->num < place->capacity) {
        return true;
    }
    variants = realloc(place->variants, capacity * sizeof(*variants));
    if (variants == NULL) {
        return false;
    }
    place->variants = variants;
    place->capacity = capacity;
    return true;
}

cgs_variant_t *cgs_recording_add(cgs_recording_t *recording,
                                 cgs_place_t *place, cgs_chunk_t *chunk)
{
    cgs_variant_t *variant = calloc(1, sizeof(*variant));

    if ((chunk == NULL) || (variant == NULL) || !make_room(place)) {
        cgs_chunk_destroy(chunk);
        free(variant);
        return NULL;
    }
    cgs_phases_init(&variant->phases, chunk);
    variant->place                = place;
    place->variants[place->num++] = variant;
    place->current                = variant;
    variant->older                = recording->all;
    if (variant->older != NULL) {
        variant->older->newer = variant;
    }
    recording->all = variant;
    ++recording->num_variants;
    return variant;
}

void cgs_variant_lead(cgs_recording_t *recording, cgs_variant_t *variant,
                      cgs_place_t *place)
{
    cgs_place_t *before = variant->next;

    variant->next = cgs_place_hold(place);
    cgs_place_release(recording, before);
}

void cgs_recording_remove(cgs_recording_t *recording, cgs_variant_t *variant)
{
    cgs_place_t *doomed = NULL;

    destroy_variant(recording, variant, &doomed);
    destroy_doomed(recording, doomed);
}

cgs_variant_t *cgs_place_oldest(const cgs_place_t *place,
                                const cgs_variant_t *keep)
{
    cgs_variant_t *oldest = NULL;
    uint32_t      i;

    for (i = 0; i < place->num; ++i) {
        if ((place->variants[i] != keep) &&
            ((oldest == NULL) ||
             (place->variants[i]->last_run < oldest->last_run))) {
            oldest = place->variants[i];
        }
    }
    return oldest;
}

void cgs_recording_release(cgs_recording_t *recording)
{
    cgs_place_release(recording, recording->first);
    recording->first    = NULL;
    recording->has_work = false;
}

size_t cgs_recording_bytes(const cgs_recording_t *recording)
{
    const cgs_variant_t *variant;
    size_t              bytes = 0;

    for (variant = recording->all; variant != NULL;
         variant = variant->older) {
        bytes += cgs_phases_bytes(&variant->phases);
    }
    return bytes;
}

static const cgs_variant_t *followed_last(const cgs_place_t *place)
{
    return place != NULL ? place->current : NULL;
}

cgs_walk_t cgs_walk_begin(const cgs_recording_t *recording)
{
    return (cgs_walk_t){.variant = followed_last(recording->first)};
}

bool cgs_walk_next(cgs_walk_t *walk)
{
    while (walk->variant != NULL) {
        walk->chunk = cgs_variant_chunk(walk->variant);
        if (walk->next < walk->chunk->num_ops) {
            walk->op = &walk->chunk->ops[walk->next++];
            ++walk->num;
            return true;
        }
        walk->variant = followed_last(walk->variant->next);
        walk->next    = 0;
    }
    return false;
}
