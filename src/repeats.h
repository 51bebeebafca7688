/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that come again in a sequence of tokens, found while it grows. Knows
 * nothing of what a token stands for.
 *
 * A block counts once it was followed by itself. Loops in loops are found from
 * the inside out: where an inner loop ends, the place where it ended the last
 * times says how long the outer one may be.
 */
#ifndef CGS_REPEATS_H
#define CGS_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

/** Longest block. */
#define CGS_REPEATS_MAX 16384u

/** Tokens that tell a place. */
#define CGS_REPEATS_GRAM 4u

/** Loops in each other that are looked at. */
#define CGS_REPEATS_LEVELS 3

/** A sequence; owned by one thread. */
typedef struct cgs_repeats cgs_repeats_t;

/** @return NULL without memory. */
cgs_repeats_t *cgs_repeats_create(void);

/** Free it; NULL is fine. */
void cgs_repeats_destroy(cgs_repeats_t *repeats);

/** Add the next token. No allocation.
 *  @return whether the sequence is in a loop. */
bool cgs_repeats_add(cgs_repeats_t *repeats, uint64_t token);

/** Forget all loops: what comes is not what follows. */
void cgs_repeats_break(cgs_repeats_t *repeats);

/** How many tokens there were. */
uint64_t cgs_repeats_count(const cgs_repeats_t *repeats);

/**
 * The loop that the sequence is in.
 *
 * @param level  From 0, the innermost.
 * @param length Set to how many of the last tokens are those of one period
 *               before.
 *
 * @return Its period in tokens, or 0.
 */
uint32_t cgs_repeats_period(const cgs_repeats_t *repeats, int level,
                            uint64_t *length);

/** The same as cgs_repeats_hash(repeats, 0, CGS_REPEATS_GRAM). */
uint64_t cgs_repeats_gram(const cgs_repeats_t *repeats);

/** A hash of the tokens that end `back` before the last one; of any number up
 *  to CGS_REPEATS_MAX, and 0 where they are not kept. Equal ones have equal
 *  hashes. */
uint64_t cgs_repeats_hash(const cgs_repeats_t *repeats, uint64_t back,
                          uint32_t num);

/** The token `back` before the last one, which must be kept. */
uint64_t cgs_repeats_token(const cgs_repeats_t *repeats, uint64_t back);

#endif
