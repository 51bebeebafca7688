/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trials: some replayed runs, then some plain ones, then a comparison of their
 * medians. A path that is slower closes the gate; it is tried again after a
 * while, each time after a longer one, and never given up for good.
 */
#include "gate.h"

#include <stdlib.h>
#include <string.h>

/* Runs before the first trial: the first launches of a graph are slow. */
#define SETTLING     16
/* Runs of one kind in a row before their times count: the device still has
 * work of the other kind. */
#define UNCOUNTED    2
/* Runs of one kind that a trial may take. */
#define MAX_TRIAL    32
/* Slower by more than one part in so many is too slow. */
#define TOLERANCE    32
/* Differences below the noise of a clock and a busy machine. */
#define MIN_LOSS_NS  200
/* Runs until the next trial, doubled each time. */
#define FIRST_OPEN   1024
#define FIRST_CLOSED 128
#define MAX_DOUBLINGS 7

static int compare_times(const void *a, const void *b)
{
    uint64_t left  = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

/* A quantile of the times, in quarters of the way. */
static uint64_t quarter(const cgs_gate_times_t *times, uint32_t quarters)
{
    uint64_t sorted[CGS_GATE_TIMES];

    memcpy(sorted, times->ns, times->num * sizeof(sorted[0]));
    qsort(sorted, times->num, sizeof(sorted[0]), compare_times);
    return sorted[(times->num - 1) * quarters / 4];
}

/* A program's own time varies: it takes both the median and the faster runs to
 * say that a path is slower. */
static bool is_slower(const cgs_gate_times_t *times,
                      const cgs_gate_times_t *plain)
{
    uint64_t median = quarter(plain, 2);
    uint64_t low    = quarter(plain, 1);
    uint64_t loss   = median / TOLERANCE;

    loss = loss > MIN_LOSS_NS ? loss : MIN_LOSS_NS;
    return (quarter(times, 2) > median + loss) &&
           (quarter(times, 1) > low + low / TOLERANCE);
}

static uint32_t doubled(uint32_t first, uint32_t times)
{
    return first << (times < MAX_DOUBLINGS ? times : MAX_DOUBLINGS);
}

static void begin_trial(cgs_gate_t *gate)
{
    memset(gate->times, 0, sizeof(gate->times));
    gate->state  = CGS_GATE_REPLAYS;
    gate->replay = CGS_PATH_EXACT;
    gate->left   = MAX_TRIAL;
}

static bool is_full(const cgs_gate_times_t *times)
{
    return times->num == CGS_GATE_TIMES;
}

static bool is_too_slow(const cgs_gate_t *gate)
{
    const cgs_gate_times_t *plain  = &gate->times[CGS_PATH_PLAIN];
    const cgs_gate_times_t *replay = &gate->times[gate->replay];

    return (gate->replay == CGS_PATH_FUTILE) ||
           (is_full(plain) && is_full(replay) && is_slower(replay, plain));
}

static void judge(cgs_gate_t *gate)
{
    if (is_too_slow(gate)) {
        gate->opened = 0;
        gate->left   = doubled(FIRST_CLOSED, gate->closed[gate->replay]++);
        gate->state  = CGS_GATE_CLOSED;
    } else {
        gate->closed[gate->replay] = 0;
        gate->left                 = doubled(FIRST_OPEN, gate->opened++);
        gate->state                = CGS_GATE_OPEN;
    }
}

/* The state's time is over. A trial that could not time one path, because
 * none came often enough, says nothing. */
static void step(cgs_gate_t *gate)
{
    if ((gate->state == CGS_GATE_PLAINS) ||
        ((gate->state == CGS_GATE_REPLAYS) &&
         (!is_full(&gate->times[gate->replay]) ||
          (gate->replay == CGS_PATH_FUTILE)))) {
        judge(gate);
    } else if (gate->state == CGS_GATE_REPLAYS) {
        gate->state = CGS_GATE_PLAINS;
        gate->left  = MAX_TRIAL;
    } else {
        begin_trial(gate);
    }
}

/* The last run has lasted until now. */
static void count(cgs_gate_t *gate, uint64_t now_ns)
{
    cgs_gate_times_t *times;
    bool is_trial = gate->state == (gate->was_plain ? CGS_GATE_PLAINS :
                                                      CGS_GATE_REPLAYS);

    if (!is_trial || (gate->path == CGS_PATH_NONE) ||
        (gate->alike <= UNCOUNTED)) {
        return;
    }
    times = &gate->times[gate->path];
    if (!is_full(times)) {
        times->ns[times->num++] = now_ns - gate->started_ns;
    }
    if (is_full(times)) {
        gate->replay = gate->was_plain ? gate->replay : gate->path;
        gate->left   = 1;
    }
}

static bool by_chance(cgs_gate_t *gate)
{
    gate->chance  = gate->chance != 0 ? gate->chance : 0x9e3779b9u;
    gate->chance ^= gate->chance << 13;
    gate->chance ^= gate->chance >> 17;
    gate->chance ^= gate->chance << 5;
    return gate->chance % 3 != 0;
}

bool cgs_gate_enter(cgs_gate_t *gate, cgs_gate_mode_t mode, uint64_t now_ns)
{
    if (mode != CGS_GATE_ON) {
        return (mode == CGS_GATE_OFF) || by_chance(gate);
    }
    count(gate, now_ns);
    gate->started_ns = now_ns;
    if (gate->left == 0) {
        gate->left = SETTLING; /* a new gate */
    } else if (--gate->left == 0) {
        step(gate);
    }
    return (gate->state != CGS_GATE_PLAINS) &&
           (gate->state != CGS_GATE_CLOSED);
}

void cgs_gate_leave(cgs_gate_t *gate, cgs_path_t path)
{
    bool plain = path == CGS_PATH_PLAIN;

    gate->alike     = plain == gate->was_plain ? gate->alike + 1 : 1;
    gate->was_plain = plain;
    gate->path      = path;
}
