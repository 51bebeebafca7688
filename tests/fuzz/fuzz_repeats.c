/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes again in a sequence: each byte adds a token, or says that the last
 * ones come again, by their number in the next byte, perhaps with two tokens
 * in each other's place, or that the sequence breaks.
 *
 * Each loop that is told is one, token by token; equal stretches have equal
 * hashes and others have not; and what is kept is told as it was.
 */
#include "repeats.h"

#include "fuzz.h"

#define MAX_TOKENS 80000u
/* Half of the tokens that the ring has room for. */
#define KEPT (2u * CGS_REPEATS_MAX)

typedef struct {
    cgs_repeats_t *repeats;
    uint64_t      token[MAX_TOKENS];
    uint64_t      num, from; /* nothing before is of a loop */
    uint32_t      period[CGS_REPEATS_LEVELS];
    uint64_t      length[CGS_REPEATS_LEVELS];
} sequence_t;

static bool is_same(const sequence_t *sequence, uint64_t begin,
                    uint64_t other, uint64_t num)
{
    return memcmp(&sequence->token[begin], &sequence->token[other],
                  num * sizeof(uint64_t)) == 0;
}

/* A loop that goes on has one token more, a new one is looked at whole. */
static void check_level(sequence_t *sequence, int level)
{
    uint64_t length, known;
    uint32_t period = cgs_repeats_period(sequence->repeats, level, &length);

    known = period == sequence->period[level] ? sequence->length[level] : 0;
    if (period != 0) {
        FUZZ_CHECK(period <= CGS_REPEATS_MAX, "%u", period);
        FUZZ_CHECK((length >= period) &&
                   (length + period <= sequence->num - sequence->from),
                   "%u of %llu", period, (unsigned long long)length);
        known = length == known + 1 ? known : 0;
        FUZZ_CHECK(is_same(sequence, sequence->num - length + known,
                           sequence->num - length + known - period,
                           length - known),
                   "level %d: no loop of %u tokens ends at %llu", level,
                   period, (unsigned long long)sequence->num);
    }
    sequence->period[level] = period;
    sequence->length[level] = length;
}

static void add(sequence_t *sequence, uint64_t token)
{
    bool in_loop, expected = false;
    int  i;

    if (sequence->num == MAX_TOKENS) {
        return;
    }
    sequence->token[sequence->num++] = token;
    in_loop = cgs_repeats_add(sequence->repeats, token);
    for (i = 0; i < CGS_REPEATS_LEVELS; ++i) {
        check_level(sequence, i);
        expected |= sequence->period[i] != 0;
    }
    FUZZ_CHECK(in_loop == expected, "%d", in_loop);
}

static void add_again(sequence_t *sequence, uint64_t num, bool swapped)
{
    uint64_t first = sequence->num > 0 ? sequence->token[0] : 0;
    uint64_t begin = num <= sequence->num ? sequence->num - num : 0;
    uint64_t i, token, end = sequence->num;

    for (i = begin; i < end; ++i) {
        token = sequence->token[i];
        if (swapped) {
            token = token == first ? first + 2 : token == first + 2 ? first :
                                                                      token;
        }
        add(sequence, token);
    }
}

/* Two stretches of the last tokens. */
static void check_hashes(const sequence_t *sequence, uint64_t back,
                         uint64_t other, uint32_t num)
{
    uint64_t count = sequence->num;
    uint64_t hash  = cgs_repeats_hash(sequence->repeats, back, num);
    uint64_t second = cgs_repeats_hash(sequence->repeats, other, num);

    FUZZ_CHECK((back + num <= count) || (hash == 0), "%u", num);
    if ((num == 0) || (back + num > count) || (other + num > count) ||
        (back + num >= KEPT) || (other + num >= KEPT)) {
        return;
    }
    FUZZ_CHECK((hash == second) ==
               is_same(sequence, count - back - num, count - other - num, num),
               "%u tokens, %llu and %llu back", num, (unsigned long long)back,
               (unsigned long long)other);
    FUZZ_CHECK((hash != 0) && (cgs_repeats_token(sequence->repeats, back) ==
                               sequence->token[count - 1 - back]), "%llu",
               (unsigned long long)back);
}

/* Up to some thousands in one byte. */
static uint64_t read_length(fuzz_input_t *input)
{
    uint64_t num = fuzz_byte(input);

    return num < 128 ? num : (num - 127) * 137;
}

static void step(sequence_t *sequence, fuzz_input_t *input)
{
    unsigned byte = fuzz_byte(input);
    uint64_t num;
    int      i;

    switch (byte % 8) {
    case 0:
        add_again(sequence, read_length(input), false);
        break;
    case 1:
        add_again(sequence, read_length(input), true);
        break;
    case 2:
        add_again(sequence, sequence->num - sequence->from, byte & 8);
        break;
    case 3:
        if ((byte & 0xf8) == 0) {
            cgs_repeats_break(sequence->repeats);
            sequence->from = sequence->num;
            for (i = 0; i < CGS_REPEATS_LEVELS; ++i) {
                check_level(sequence, i);
            }
        }
        break;
    case 4:
        num = read_length(input);
        check_hashes(sequence, num, num + byte / 8, (uint32_t)num);
        check_hashes(sequence, byte / 8, num, (uint32_t)num);
        break;
    default:
        add(sequence, byte / 8);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input_t input     = {data, data + size};
    sequence_t   *sequence = calloc(1, sizeof(*sequence));

    FUZZ_CHECK(sequence != NULL, "no memory");
    sequence->repeats = cgs_repeats_create();
    FUZZ_CHECK(sequence->repeats != NULL, "no memory");
    while ((input.at < input.end) && (sequence->num < MAX_TOKENS)) {
        step(sequence, &input);
    }
    FUZZ_CHECK(cgs_repeats_count(sequence->repeats) == sequence->num, "%llu",
               (unsigned long long)sequence->num);
    cgs_repeats_destroy(sequence->repeats);
    free(sequence);
    return 0;
}
