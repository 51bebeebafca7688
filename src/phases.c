/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the period with which arguments come again, by a hash over all of
 * them at the end of a run. Hashing goes on only while runs are patched a lot
 * and there is hope; it sleeps longer each time that there was none.
 */
#include "phases.h"

#include <string.h>

/* Runs without a period, or with phases that do not help, before sleep. */
#define PATIENCE  8
/* Runs of the first sleep, doubled each time. */
#define SLEEP     64
#define MAX_SLEEPS 10

static uint64_t hash_chunk(const cgs_chunk_t *chunk)
{
    uint64_t       hash = 0xcbf29ce484222325u;
    const cgs_op_t *op;

    for (op = chunk->ops; op < chunk->ops + chunk->num_ops; ++op) {
        hash = cgs_op_kinds[op->kind]->hash(op, hash);
    }
    return hash;
}

static void sleep_longer(cgs_phases_t *phases)
{
    uint32_t shift = phases->sleeps < MAX_SLEEPS ? phases->sleeps : MAX_SLEEPS;

    phases->asleep      = SLEEP << shift;
    phases->num_history = 0;
    phases->futile      = 0;
    phases->wanted      = 0;
    ++phases->sleeps;
}

void cgs_phases_init(cgs_phases_t *phases, cgs_chunk_t *chunk)
{
    *phases = (cgs_phases_t){.chunk = {chunk}, .num = 1};
}

void cgs_phases_collapse(cgs_phases_t *phases)
{
    cgs_chunk_t *kept = cgs_phases_current(phases);
    uint32_t    i;

    for (i = 0; i < CGS_MAX_PHASES; ++i) {
        if (phases->chunk[i] != kept) {
            cgs_chunk_destroy(phases->chunk[i]);
        }
        phases->chunk[i] = NULL;
    }
    phases->chunk[0]    = kept;
    phases->current     = 0;
    phases->num         = 1;
    phases->num_history = 0;
    phases->futile      = 0;
    phases->wanted      = 0;
}

void cgs_phases_release(cgs_phases_t *phases)
{
    uint32_t i;

    for (i = 0; i < CGS_MAX_PHASES; ++i) {
        cgs_chunk_destroy(phases->chunk[i]);
        phases->chunk[i] = NULL;
    }
    phases->num = 0;
}

size_t cgs_phases_bytes(const cgs_phases_t *phases)
{
    size_t   bytes = 0;
    uint32_t i;

    for (i = 0; i < phases->num; ++i) {
        bytes += cgs_chunk_bytes(phases->chunk[i]);
    }
    return bytes;
}

void cgs_phases_advance(cgs_phases_t *phases)
{
    if (phases->num > 1) {
        phases->current = (phases->current + 1) % phases->num;
    }
}

void cgs_phases_choose(cgs_phases_t *phases, cgs_call_t *call)
{
    const cgs_op_t *op;
    uint32_t       i, phase;

    for (i = 0; i < phases->num; ++i) {
        phase = (phases->current + i) % phases->num;
        op    = &phases->chunk[phase]->ops[0];
        if ((op->kind == call->kind) &&
            (cgs_op_kinds[op->kind]->compare(op, call) == CGS_MATCH_SAME)) {
            phases->current = phase;
            return;
        }
    }
}

/* Runs ago that the arguments were the same, or 0. */
static uint32_t find_period(cgs_phases_t *phases, uint64_t hash)
{
    uint32_t period = 0;
    uint32_t i;

    for (i = 0; (i < phases->num_history) && (period == 0); ++i) {
        if (phases->history[i] == hash) {
            period = i + 1;
        }
    }
    memmove(phases->history + 1, phases->history,
            sizeof(phases->history) - sizeof(phases->history[0]));
    phases->history[0]   = hash;
    phases->num_history += phases->num_history < CGS_MAX_PHASES;
    return period;
}

/* The run that has ended becomes a phase; the current chunk serves for what
 * comes after the last of them. */
static bool add_phase(cgs_phases_t *phases)
{
    const cgs_chunk_t *current = cgs_phases_current(phases);
    cgs_chunk_t       *copy    = cgs_chunk_copy(current, 0, current->num_ops);

    if (copy == NULL) {
        cgs_phases_collapse(phases);
        sleep_longer(phases);
        return false;
    }
    phases->chunk[phases->num++] = copy;
    return true;
}

bool cgs_phases_learn(cgs_phases_t *phases, uint64_t patched)
{
    uint32_t period;

    if (phases->wanted > phases->num) {
        return add_phase(phases);
    }
    if (2 * patched < cgs_phases_current(phases)->num_ops) {
        phases->futile = 0;
        return false;
    }
    if (phases->asleep > 0) {
        --phases->asleep;
        return false;
    }
    if (++phases->futile > PATIENCE) {
        cgs_phases_collapse(phases);
        sleep_longer(phases);
        return false;
    }
    if (phases->num > 1) {
        return false;
    }
    period = find_period(phases, hash_chunk(cgs_phases_current(phases)));
    if (period <= 1) {
        return false;
    }
    phases->wanted = period;
    phases->futile = 0;
    return add_phase(phases);
}
