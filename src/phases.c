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

static uint64_t hash_recording(const cgs_recording_t *recording)
{
    uint64_t            hash = 0xcbf29ce484222325u;
    const cgs_segment_t *segment;
    uint32_t            s, i;

    for (s = 0; s < recording->num_segments; ++s) {
        segment = &recording->segments[s];
        for (i = 0; i < segment->num_ops; ++i) {
            hash = cgs_op_kinds[segment->ops[i].kind]->hash(&segment->ops[i],
                                                            hash);
        }
    }
    return hash;
}

static uint64_t num_nodes(const cgs_recording_t *recording)
{
    uint64_t num = 0;
    uint32_t s;

    for (s = 0; s < recording->num_segments; ++s) {
        num += recording->segments[s].num_ops;
    }
    return num;
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

void cgs_phases_collapse(cgs_phases_t *phases)
{
    cgs_recording_t kept = *cgs_phases_current(phases);
    uint32_t        i;

    memset(cgs_phases_current(phases), 0, sizeof(kept));
    for (i = 0; i < CGS_MAX_PHASES; ++i) {
        cgs_recording_release(&phases->recording[i]);
    }
    phases->recording[0] = kept;
    phases->current      = 0;
    phases->num          = 1;
    phases->num_history  = 0;
    phases->futile       = 0;
    phases->wanted       = 0;
}

void cgs_phases_release(cgs_phases_t *phases)
{
    cgs_phases_collapse(phases);
    cgs_recording_release(cgs_phases_current(phases));
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
        op    = &phases->recording[phase].segments[0].ops[0];
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

/* The run that has ended becomes a phase; the current recording serves for
 * what comes after the last of them. */
static void add_phase(cgs_phases_t *phases)
{
    cgs_recording_t *copy = &phases->recording[phases->num];

    if (cgs_recording_copy(cgs_phases_current(phases), copy) != 0) {
        cgs_recording_release(copy);
        cgs_phases_collapse(phases);
        sleep_longer(phases);
        return;
    }
    ++phases->num;
}

void cgs_phases_learn(cgs_phases_t *phases, uint64_t patched)
{
    uint32_t period;

    phases->num = phases->num > 0 ? phases->num : 1;
    if (phases->wanted > phases->num) {
        add_phase(phases);
        return;
    }
    if (2 * patched < num_nodes(cgs_phases_current(phases))) {
        phases->futile = 0;
        return;
    }
    if (phases->asleep > 0) {
        --phases->asleep;
        return;
    }
    if (++phases->futile > PATIENCE) {
        cgs_phases_collapse(phases);
        sleep_longer(phases);
        return;
    }
    if (phases->num > 1) {
        return;
    }
    period = find_period(phases, hash_recording(cgs_phases_current(phases)));
    if (period > 1) {
        phases->wanted = period;
        phases->futile = 0;
        add_phase(phases);
    }
}
