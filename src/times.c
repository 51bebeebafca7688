/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs count by the time from one start to the next, as the gate's do: that is
 * what the user feels.
 */
#include "times.h"

/* Runs of one kind in a row before their times count: the device still has
 * work of the other kind. */
#define UNCOUNTED 2

static cgs_sample_t *sample_of(cgs_times_t *times, cgs_path_t path)
{
    switch (path) {
    case CGS_PATH_PLAIN:
        return &times->plain_runs;
    case CGS_PATH_EXACT:
    case CGS_PATH_PATCHED:
    case CGS_PATH_VARIANT:
        return &times->replayed_runs;
    default:
        return NULL; /* recorded, or compared in vain */
    }
}

void cgs_times_start(cgs_times_t *times, const cgs_gate_t *gate,
                     uint64_t now_ns)
{
    cgs_sample_t *sample = sample_of(times, gate->path);

    if ((times->started_ns != 0) && (sample != NULL) &&
        ((gate->alike > UNCOUNTED) || (times->runs > UNCOUNTED))) {
        cgs_sample_add(sample, (now_ns - times->started_ns) / times->runs);
    }
    times->started_ns = now_ns;
    times->runs       = 1;
}
