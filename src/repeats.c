/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of the last tokens, with hashes of all tokens up to each: the hash of
 * any stretch is a difference of two, so that two stretches are compared in no
 * time, however long they are.
 *
 * Hashes are polynomials modulo a prime. Modulo a power of two there are
 * sequences that have the same one whatever the base is, and programs may well
 * make such calls: of two in the order of Thue and Morse, 2048 in a row are
 * like the next 2048, in which each is the other one.
 */
#include "repeats.h"

#include <stdlib.h>

/* Tokens that are kept: two longest blocks and what finds them. */
#define KEPT (UINT64_C(4) * CGS_REPEATS_MAX)
/* Places that are remembered by the tokens before them. */
#define PLACES (UINT64_C(2) * CGS_REPEATS_MAX)
/* Ends of loops that are remembered, and how many of one kind. */
#define ENDS           1024u
#define ENDS_OF_A_KIND 4
/* Tokens by which ends of loops are told apart. */
#define END_GRAM 32u
#define BASE  UINT64_C(0x1e3779b97f4a7c15)
/* Of Mersenne: the remainder takes no division. */
#define PRIME ((UINT64_C(1) << 61) - 1)

_Static_assert((KEPT & (KEPT - 1)) == 0, "places in the ring are masked");

/* Where loops of one kind ended, the last one first. */
typedef struct {
    uint64_t key;
    uint64_t position[ENDS_OF_A_KIND];
} end_t;

typedef struct {
    uint32_t period; /* 0: none */
    uint64_t length; /* last tokens that are as one period before */
} level_t;

struct cgs_repeats {
    uint64_t count;
    uint64_t gram;             /* hash of the last few, 0: there are less */
    uint64_t from;             /* what was before is of no loop */
    level_t  level[CGS_REPEATS_LEVELS];
    uint64_t power[CGS_REPEATS_MAX + 1]; /* of BASE */
    uint64_t token[KEPT];
    uint64_t hash[KEPT];       /* of all tokens up to this one */
    uint64_t place[PLACES];    /* by the tokens up to there: how many there
                                  were */
    end_t    end[ENDS];
};

/* The remainder of a number below 2^122. */
static uint64_t reduce(unsigned __int128 number)
{
    uint64_t sum = (uint64_t)(number & PRIME) + (uint64_t)(number >> 61);

    return sum >= PRIME ? sum - PRIME : sum;
}

/* Of numbers below the prime. */
static uint64_t times(uint64_t a, uint64_t b)
{
    return reduce((unsigned __int128)a * b);
}

cgs_repeats_t *cgs_repeats_create(void)
{
    cgs_repeats_t *repeats = calloc(1, sizeof(*repeats));
    uint32_t      i;

    if (repeats == NULL) {
        return NULL;
    }
    repeats->power[0] = 1;
    for (i = 1; i <= CGS_REPEATS_MAX; ++i) {
        repeats->power[i] = times(repeats->power[i - 1], BASE);
    }
    return repeats;
}

void cgs_repeats_destroy(cgs_repeats_t *repeats)
{
    free(repeats);
}

uint64_t cgs_repeats_count(const cgs_repeats_t *repeats)
{
    return repeats->count;
}

/* Of all tokens before number `end`. */
static uint64_t hash_up_to(const cgs_repeats_t *repeats, uint64_t end)
{
    return end > 0 ? repeats->hash[(end - 1) & (KEPT - 1)] : 0;
}

/* Of the tokens before number `end`, never 0. */
static uint64_t hash_of(const cgs_repeats_t *repeats, uint64_t end,
                        uint32_t num)
{
    return reduce(hash_up_to(repeats, end) + PRIME -
                  times(hash_up_to(repeats, end - num),
                        repeats->power[num])) + 1;
}

uint64_t cgs_repeats_hash(const cgs_repeats_t *repeats, uint64_t back,
                          uint32_t num)
{
    uint64_t end = repeats->count - back;

    return (back + num < KEPT) && (back + num <= repeats->count) ?
           hash_of(repeats, end, num) : 0;
}

uint64_t cgs_repeats_token(const cgs_repeats_t *repeats, uint64_t back)
{
    return repeats->token[(repeats->count - 1 - back) & (KEPT - 1)];
}

uint32_t cgs_repeats_period(const cgs_repeats_t *repeats, int level,
                            uint64_t *length)
{
    *length = repeats->level[level].length;
    return repeats->level[level].period;
}

void cgs_repeats_break(cgs_repeats_t *repeats)
{
    int i;

    repeats->from = repeats->count;
    for (i = 0; i < CGS_REPEATS_LEVELS; ++i) {
        repeats->level[i] = (level_t){0};
    }
}

/* Tokens of one block followed by the same again, up to the last one. */
static bool is_twice(const cgs_repeats_t *repeats, uint64_t period)
{
    uint64_t end = repeats->count;

    return (period <= CGS_REPEATS_MAX) && (repeats->from + 2 * period <= end) &&
           (hash_of(repeats, end, (uint32_t)period) ==
            hash_of(repeats, end - period, (uint32_t)period));
}

/* A loop has ended with the last token. If such a loop has ended before, and
 * all that came since came before that too, there is one around it. */
static void look_around(cgs_repeats_t *repeats, int level, uint64_t key)
{
    end_t    *end  = &repeats->end[key % ENDS];
    level_t  *outer = &repeats->level[level];
    uint64_t period;
    int      i;

    if (end->key != key) {
        *end = (end_t){.key = key};
    }
    for (i = 0; (i < ENDS_OF_A_KIND) && (outer->period == 0); ++i) {
        period = repeats->count - end->position[i];
        if ((end->position[i] > 0) && is_twice(repeats, period)) {
            outer->period = (uint32_t)period;
            outer->length = period;
        }
    }
    for (i = ENDS_OF_A_KIND - 1; i > 0; --i) {
        end->position[i] = end->position[i - 1];
    }
    end->position[0] = repeats->count;
}

/* The token is not as one period before. */
static void end_loop(cgs_repeats_t *repeats, int level)
{
    level_t  *ended  = &repeats->level[level];
    uint64_t key     = hash_of(repeats, repeats->count, END_GRAM) +
                       ended->period * BASE;

    *ended = (level_t){0};
    if ((repeats->count >= END_GRAM) && (level + 1 < CGS_REPEATS_LEVELS)) {
        look_around(repeats, level + 1, key);
    }
}

/* Where the last tokens were seen the last time a block may have ended that has
 * just come again. */
static void find_loop(cgs_repeats_t *repeats)
{
    level_t  *inner = &repeats->level[0];
    uint64_t end    = repeats->count;
    uint64_t *place = &repeats->place[(repeats->gram * BASE >> 32) % PLACES];
    uint64_t period = end - *place;

    if ((inner->period == 0) && (*place > repeats->from) &&
        is_twice(repeats, period)) {
        inner->period = (uint32_t)period;
        inner->length = period;
    }
    *place = end;
}

uint64_t cgs_repeats_gram(const cgs_repeats_t *repeats)
{
    return repeats->gram;
}

bool cgs_repeats_add(cgs_repeats_t *repeats, uint64_t token)
{
    uint64_t at       = repeats->count & (KEPT - 1);
    bool     is_loop  = false;
    level_t  *level;
    int      i;

    repeats->hash[at]  = reduce((unsigned __int128)hash_up_to(
                                    repeats, repeats->count) * BASE +
                                reduce(token));
    repeats->token[at] = token;
    ++repeats->count;
    /* From the outside in: where several end, the inner ones tell nothing
     * new. */
    for (i = CGS_REPEATS_LEVELS - 1; i >= 0; --i) {
        level = &repeats->level[i];
        if (level->period == 0) {
            continue;
        }
        if (token == repeats->token[(at - level->period) & (KEPT - 1)]) {
            ++level->length;
        } else {
            end_loop(repeats, i);
        }
    }
    if (repeats->count >= CGS_REPEATS_GRAM) {
        repeats->gram = hash_of(repeats, repeats->count, CGS_REPEATS_GRAM);
        find_loop(repeats);
    }
    for (i = 0; i < CGS_REPEATS_LEVELS; ++i) {
        is_loop |= repeats->level[i].period != 0;
    }
    return is_loop;
}
