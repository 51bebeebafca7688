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
#define HOPELESS     8
/* Runs of one kind in a row before their times count: the device still has
 * work of the other kind. */
#define UNCOUNTED    2
/* Runs of one kind that a trial may take. */
#define MAX_TRIAL    32
#define SHORT_TRIAL  4
/* Slower by more than one part in so many is too slow. */
#define TOLERANCE    32
/* Differences below the noise of a clock and a busy machine. */
#define MIN_LOSS_NS  200
/* Runs until the next trial, doubled each time. */
#define FIRST_OPEN   1024
#define FIRST_CLOSED 128
#define FIRST_MARGINAL 128
/* A gain of one part in so many is much. */
#define MUCH 8
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

static bool is_full(const cgs_gate_times_t *times)
{
    return times->num == CGS_GATE_TIMES;
}

static void begin(cgs_gate_t *gate, cgs_gate_state_t state, uint32_t runs)
{
    gate->state  = state;
    gate->left   = runs;
    gate->futile = 0;
}

/* One that was of no use last time is short. */
static void begin_trial(cgs_gate_t *gate)
{
    memset(gate->times, 0, sizeof(gate->times));
    gate->replay = CGS_PATH_EXACT;
    begin(gate, CGS_GATE_REPLAYS, gate->closed[CGS_PATH_FUTILE] > 0 ?
                                  SHORT_TRIAL : MAX_TRIAL);
}

static void close_for(cgs_gate_t *gate, cgs_path_t path)
{
    gate->opened = 0;
    begin(gate, CGS_GATE_CLOSED, doubled(FIRST_CLOSED, gate->closed[path]++));
}

/* Looked at again soon where the gain is small: what a trial costs is small
 * then, too. */
static void open_again(cgs_gate_t *gate, bool gains_much)
{
    gate->closed[gate->replay]    = 0;
    gate->closed[CGS_PATH_FUTILE] = 0;
    begin(gate, CGS_GATE_OPEN, doubled(gains_much ? FIRST_OPEN : FIRST_MARGINAL,
                                       gate->opened++));
}

/* What the plain runs said of the path that was tried. */
static void judge(cgs_gate_t *gate)
{
    const cgs_gate_times_t *plain  = &gate->times[CGS_PATH_PLAIN];
    const cgs_gate_times_t *replay = &gate->times[gate->replay];

    if (!is_full(plain) || !is_full(replay)) {
        open_again(gate, true);
    } else if (is_slower(replay, plain)) {
        close_for(gate, gate->replay);
    } else {
        open_again(gate, (MUCH - 1) * quarter(plain, 2) >
                         MUCH * quarter(replay, 2));
    }
}

/* The state's time is over. */
static void step(cgs_gate_t *gate, uint32_t runs)
{
    bool replays = (gate->state == CGS_GATE_SETTLING) ||
                   (gate->state == CGS_GATE_REPLAYS);

    if (replays && (4 * gate->futile >= 3 * runs)) {
        close_for(gate, CGS_PATH_FUTILE);
    } else if (gate->state == CGS_GATE_PLAINS) {
        judge(gate);
    } else if (gate->state != CGS_GATE_REPLAYS) {
        begin_trial(gate);
    } else if (is_full(&gate->times[gate->replay])) {
        begin(gate, CGS_GATE_PLAINS, MAX_TRIAL);
    } else {
        open_again(gate, true); /* no path came often enough to be timed */
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

uint32_t cgs_gate_take_closed(cgs_gate_t *gate)
{
    uint32_t runs = gate->left - 1;

    if (gate->state != CGS_GATE_CLOSED) {
        return 0;
    }
    gate->left = 1;
    return runs;
}

/* Not one of the first runs was of any use. */
static bool is_hopeless(const cgs_gate_t *gate)
{
    return (gate->state == CGS_GATE_SETTLING) && (gate->runs >= HOPELESS) &&
           (gate->futile >= gate->runs);
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
    } else if ((--gate->left == 0) || is_hopeless(gate)) {
        step(gate, gate->runs);
        gate->runs = 0;
    }
    ++gate->runs;
    return (gate->state != CGS_GATE_PLAINS) &&
           (gate->state != CGS_GATE_CLOSED);
}

void cgs_gate_leave(cgs_gate_t *gate, cgs_path_t path)
{
    bool plain = path == CGS_PATH_PLAIN;

    gate->alike     = plain == gate->was_plain ? gate->alike + 1 : 1;
    gate->was_plain = plain;
    gate->path      = path;
    gate->futile   += (path == CGS_PATH_FUTILE) || (path == CGS_PATH_NONE);
}
