/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that grows and is freed as a whole: what one recording holds.
 */
#ifndef CGS_ARENA_H
#define CGS_ARENA_H

#include <stddef.h>

struct cgs_arena_block;

/** All zero is the empty arena. Owned by one recording, under its lock. */
typedef struct {
    struct cgs_arena_block *blocks; /**< newest first */
    size_t                 bytes;   /**< held from the system */
} cgs_arena_t;

/** Zeroed memory, aligned for any type, that stays where it is until
 *  cgs_arena_release(). @return NULL where memory ran out. */
void *cgs_arena_take(cgs_arena_t *arena, size_t bytes);

/** Free all; the arena is empty after that. */
void cgs_arena_release(cgs_arena_t *arena);

#endif
