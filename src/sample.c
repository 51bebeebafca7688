/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reservoir: of n times each is kept with the chance SIZE / n.
 */
#include "sample.h"

#include <stdlib.h>
#include <string.h>

static uint32_t draw(uint32_t *state)
{
    *state  = *state != 0 ? *state : 0x9e3779b9u;
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

void cgs_sample_add(cgs_sample_t *sample, uint64_t ns)
{
    uint64_t place = sample->num++;

    if (place >= CGS_SAMPLE_SIZE) {
        /* A number below num, without a division. After four billion times
         * the earlier ones are good enough. */
        place = ((uint64_t)draw(&sample->chance) *
                 (uint32_t)(place < UINT32_MAX ? place + 1 : UINT32_MAX)) >>
                32;
    }
    if (place < CGS_SAMPLE_SIZE) {
        sample->ns[place] = ns;
    }
}

static int compare_times(const void *a, const void *b)
{
    uint64_t left  = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

bool cgs_sample_mean(const cgs_sample_t *sample, uint64_t least, uint64_t *ns)
{
    uint64_t sorted[CGS_SAMPLE_SIZE];
    uint64_t num = sample->num < CGS_SAMPLE_SIZE ? sample->num :
                   CGS_SAMPLE_SIZE;
    uint64_t sum = 0;
    uint64_t i;

    if ((sample->num < least) || (num == 0)) {
        return false;
    }
    memcpy(sorted, sample->ns, num * sizeof(sorted[0]));
    qsort(sorted, num, sizeof(sorted[0]), compare_times);
    for (i = num / 4; i < num - num / 4; ++i) {
        sum += sorted[i];
    }
    *ns = sum / (num - num / 4 - num / 4);
    return true;
}
