/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are filled from the front. Calls that follow each other in the
 * program lie next to each other here, which is what comparing them wants.
 */
#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

/* Blocks double from the first to the largest: most chunks are small. */
#define FIRST_BYTES ((size_t)1024)
#define MAX_BYTES   ((size_t)64 * 1024)
#define ALIGNMENT   16

struct cgs_arena_block {
    struct cgs_arena_block *next;
    size_t                 used, size;
    alignas(ALIGNMENT) char data[];
};

void *cgs_arena_take(cgs_arena_t *arena, size_t bytes)
{
    struct cgs_arena_block *block = arena->blocks;
    size_t                 size;
    void                   *memory;

    if (bytes > SIZE_MAX / 2) {
        return NULL;
    }
    bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if ((block == NULL) || (block->size - block->used < bytes)) {
        size  = block == NULL ? FIRST_BYTES : 2 * block->size;
        size  = size < MAX_BYTES ? size : MAX_BYTES;
        size  = bytes > size ? bytes : size;
        block = calloc(1, sizeof(*block) + size);
        if (block == NULL) {
            return NULL;
        }
        block->size    = size;
        block->next    = arena->blocks;
        arena->blocks  = block;
        arena->bytes  += sizeof(*block) + size;
    }
    memory       = block->data + block->used;
    block->used += bytes;
    return memory;
}

void cgs_arena_release(cgs_arena_t *arena)
{
    struct cgs_arena_block *block, *next;

    for (block = arena->blocks; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    arena->blocks = NULL;
    arena->bytes  = 0;
}
