/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place that is not kept takes over that of one which has not differed for
 * long; where all of them do, the first ones to differ stay.
 */
#include "changes.h"

#include <stddef.h>
#include <string.h>

/* Runs that are all watched, so that values that alternate are seen in turn. */
#define FIRST_RUNS 64
/* Then one of so many; a prime, since programs repeat themselves by tens and
 * powers of two. */
#define STRIDE     17
/* Watched runs after which a place that did not differ may go. */
#define STALE      UINT64_C(32)
/* Values from which a pattern is told. */
#define MIN_VALUES 4
/* One value of so many is no part of the pattern. */
#define SELDOM     50

bool cgs_changes_start(cgs_changes_t *changes)
{
    ++changes->runs;
    if ((changes->runs > FIRST_RUNS) && (changes->runs % STRIDE != 0)) {
        return false;
    }
    ++changes->watched;
    return true;
}

static bool is_kept(const cgs_change_t *change, uint64_t value)
{
    uint32_t i;

    for (i = 0; i < change->num_values; ++i) {
        if (change->values[i] == value) {
            return true;
        }
    }
    return false;
}

/* The value last seen is the last one. */
static void keep(cgs_change_t *change, uint64_t value)
{
    if (change->num_values == CGS_MAX_VALUES) {
        memmove(change->values, change->values + 1,
                sizeof(change->values) - sizeof(change->values[0]));
        --change->num_values;
    }
    change->values[change->num_values++] = value;
}

static void add_value(cgs_change_t *change, const cgs_differing_t *differing)
{
    uint64_t old = differing->old;
    uint64_t now = differing->now;

    if (change->num == 0) {
        keep(change, old);
    }
    ++change->num;
    change->grew   += now > old;
    change->shrank += now < old;
    if (!is_kept(change, now)) {
        /* Those that fill the place first may be all there are. */
        change->fresh += 1;
        keep(change, now);
    }
}

static bool is_of(const cgs_change_t *change, const cgs_differing_t *differing)
{
    return (change->op_index == differing->op_index) &&
           (change->what == differing->what) &&
           (change->arg == differing->arg);
}

/* Room for one more place, or NULL. */
static cgs_change_t *make_room(cgs_changes_t *changes, uint64_t run)
{
    cgs_change_t *oldest = &changes->entry[0];
    uint32_t     i;

    if (changes->num < CGS_MAX_CHANGES) {
        return &changes->entry[changes->num++];
    }
    for (i = 1; i < CGS_MAX_CHANGES; ++i) {
        if (changes->entry[i].last_run < oldest->last_run) {
            oldest = &changes->entry[i];
        }
    }
    return (oldest->last_run +
            STALE * (changes->runs > FIRST_RUNS ? STRIDE : 1) < run) ?
           oldest : NULL;
}

cgs_change_t *cgs_changes_add(cgs_changes_t *changes,
                              const cgs_differing_t *differing)
{
    cgs_change_t *change = NULL;
    bool         is_new  = false;
    uint32_t     i;

    for (i = 0; (i < changes->num) && (change == NULL); ++i) {
        if (is_of(&changes->entry[i], differing)) {
            change = &changes->entry[i];
        }
    }
    if (change == NULL) {
        change = make_room(changes, differing->run);
        if (change == NULL) {
            return NULL;
        }
        is_new  = true;
        *change = (cgs_change_t){
            .op_index = differing->op_index,
            .what     = differing->what,
            .arg      = differing->arg,
        };
    }
    if (differing->has_value) {
        add_value(change, differing);
    }
    change->runs    += change->last_run != differing->run;
    change->last_run = differing->run;
    return is_new ? change : NULL;
}

void cgs_changes_sort(const cgs_changes_t *changes,
                      const cgs_change_t *order[CGS_MAX_CHANGES])
{
    const cgs_change_t *change;
    uint32_t           i, j;

    for (i = 0; i < changes->num; ++i) {
        change = &changes->entry[i];
        for (j = i; (j > 0) &&
             ((order[j - 1]->runs < change->runs) ||
              ((order[j - 1]->runs == change->runs) &&
               (order[j - 1]->op_index > change->op_index))); --j) {
            order[j] = order[j - 1];
        }
        order[j] = change;
    }
}

cgs_pattern_t cgs_change_pattern(const cgs_change_t *change)
{
    uint32_t most = change->num - change->num / 10;

    if (change->num < MIN_VALUES) {
        return CGS_PATTERN_NONE;
    }
    if ((change->fresh < CGS_MAX_VALUES) && (change->fresh < change->num)) {
        return CGS_PATTERN_ALTERNATES;
    }
    /* What begins anew now and then, as a sequence does, still grows. */
    if ((SELDOM * change->shrank <= change->num) && !change->is_address) {
        return CGS_PATTERN_GROWS;
    }
    if ((SELDOM * change->grew <= change->num) && !change->is_address) {
        return CGS_PATTERN_SHRINKS;
    }
    return change->fresh >= most ? CGS_PATTERN_NEW : CGS_PATTERN_MANY;
}
