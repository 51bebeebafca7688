/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run takes the host the time of its launches, that of its waits, and the
 * rest, which is the program's own. Replayed, a launch costs what a swallowed
 * call does, and the device does the work of graphs: the run takes as long as
 * the longer of the two. Where the program waits for the device in each run
 * the device ends later than the host, by its last graph.
 */
#include "profile_judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "costs.h"

/* A graph has two calls or more; a run with a wait after every so many has no
 * graph worth it. */
#define MIN_CALLS       2
#define MIN_CALLS_A_WAIT 2
/* The device is busy for so much of the time. */
#define BUSY_PERCENT    85
/* A gain that is worth a user's while, in percent. */
#define MIN_GAIN        5
/* Runs alike, below which replaying cannot be. */
#define MIN_ALIKE       50
/* Runs of both kinds that say something. */
#define MIN_RUNS        4

static const char *const names[CGS_BOUND_NUM] = {
    [CGS_BOUND_UNKNOWN]  = "not known",
    [CGS_BOUND_FEW]      = "too few launches",
    [CGS_BOUND_LAUNCHES] = "launch-bound",
    [CGS_BOUND_DEVICE]   = "device-bound",
    [CGS_BOUND_HOST]     = "host-bound",
    [CGS_BOUND_WAITS]    = "waits-bound",
    [CGS_BOUND_CHANGES]  = "always different",
};

const char *cgs_profile_bound_name(cgs_bound_t bound)
{
    return names[bound];
}

double cgs_profile_gain(const cgs_profile_figures_t *figures)
{
    return figures->expected_ns > 0 ? (double)figures->plain_ns /
                                      (double)figures->expected_ns : 1;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t work_of(const cgs_profile_figures_t *figures)
{
    return figures->launches + figures->copies + figures->sets;
}

/* The program's own time in a run. */
static uint64_t own_ns(const cgs_profile_figures_t *figures)
{
    return less(figures->run_ns, figures->call_ns + figures->wait_ns);
}

/* Calls of one graph, by what plan.c does: none takes the program longer than
 * a part of what launching all of them costs. */
static uint64_t calls_of_graph(const cgs_profile_figures_t *figures)
{
    uint64_t late = figures->calls * CGS_COST_LAUNCH_NS /
                    (figures->waits > 0 ? CGS_COST_LATENESS : 1);
    uint64_t each = own_ns(figures) / figures->calls + CGS_COST_SWALLOW_NS;
    uint64_t num  = late / each;
    uint64_t rows; /* between two waits in the range, the last at its end */

    rows = figures->waits_in > 0 ? figures->waits_in : 1;
    if (num * rows > figures->calls) {
        num = figures->calls / rows;
    }
    return num < 1 ? 1 : num;
}

/* A run that is replayed from end to end. */
static uint64_t replayed_ns(const cgs_profile_figures_t *figures)
{
    uint64_t size   = calls_of_graph(figures);
    uint64_t graphs = (figures->calls + size - 1) / size;
    uint64_t host   = own_ns(figures) + graphs * CGS_COST_GRAPH_NS +
                      figures->calls * CGS_COST_SWALLOW_NS;
    uint64_t device = figures->graph_ns + graphs * CGS_COST_NEXT_GRAPH_NS;

    if (size < MIN_CALLS) {
        return figures->plain_ns;
    }
    if (figures->waits == 0) {
        return most(host, device);
    }
    if (host > device) {
        host += device / graphs;
    }
    return most(host, device) + CGS_COST_WAIT_NS;
}

static void expect(cgs_profile_figures_t *figures)
{
    uint64_t replayed;

    figures->has_gain    = true;
    figures->plain_ns    = most(figures->run_ns, figures->graph_ns);
    figures->expected_ns = figures->plain_ns;
    if ((work_of(figures) < MIN_CALLS) || (figures->calls < MIN_CALLS)) {
        return;
    }
    replayed = replayed_ns(figures);
    /* The gate sees to it that none is slower for long. */
    if (replayed < figures->plain_ns) {
        figures->expected_ns -= (figures->plain_ns - replayed) / 100 *
                                figures->alike_percent;
    }
}

static cgs_bound_t find_bound(const cgs_profile_figures_t *figures)
{
    uint64_t waiting = less(figures->wait_ns, figures->graph_ns);
    uint64_t own     = own_ns(figures);

    if (work_of(figures) < MIN_CALLS) {
        return CGS_BOUND_FEW;
    }
    if (figures->graph_ns * 100 >= figures->plain_ns * BUSY_PERCENT) {
        return CGS_BOUND_DEVICE;
    }
    if (figures->calls < figures->waits_in * MIN_CALLS_A_WAIT) {
        return CGS_BOUND_WAITS;
    }
    if ((waiting > own) && (waiting > figures->call_ns)) {
        return CGS_BOUND_WAITS;
    }
    if (own > figures->call_ns) {
        return CGS_BOUND_HOST;
    }
    return figures->alike_percent < MIN_ALIKE ? CGS_BOUND_CHANGES :
                                                CGS_BOUND_LAUNCHES;
}

/* ---- Words ---- */

/* Microseconds, with the point that the program's locale may not have. */
static const char *us(uint64_t ns, char *out, size_t size)
{
    snprintf(out, size, "%" PRIu64 ".%u us", ns / 1000,
             (unsigned)(ns % 1000 / 100));
    return out;
}

/* There were launches, but no work came of them. */
static bool is_silent(const cgs_profile_figures_t *figures)
{
    return figures->is_profiled && (work_of(figures) > 0) &&
           (figures->busy_ns == 0);
}

static void explain_unknown(cgs_profile_figures_t *figures)
{
    if (figures->name == NULL) {
        snprintf(figures->why, sizeof(figures->why), "%s",
                 figures->is_profiled ? "nothing was launched outside of "
                 "regions while CUPTI was off, so its times are not known" :
                 "nothing of it was recorded");
    } else if (is_silent(figures)) {
        snprintf(figures->why, sizeof(figures->why), "CUPTI did not tell what "
                 "the GPU did for these calls");
    } else if (!figures->is_timed) {
        snprintf(figures->why, sizeof(figures->why), "%" PRIu64 " runs, none "
                 "of which was timed from its start to the next one's",
                 figures->runs);
    } else {
        snprintf(figures->why, sizeof(figures->why), "%" PRIu64 " runs, of "
                 "which %" PRIu64 " were timed and %" PRIu64 " recorded: "
                 "the program has to run longer", figures->runs,
                 figures->plain_runs, figures->profiled_runs);
    }
}

static void explain(cgs_profile_figures_t *figures)
{
    static const char *const texts[CGS_BOUND_NUM] = {
        [CGS_BOUND_UNKNOWN]  = "",
        [CGS_BOUND_FEW]      = "a graph needs two calls or more",
        [CGS_BOUND_LAUNCHES] = "the GPU waits for launches",
        [CGS_BOUND_DEVICE]   = "the GPU works nearly all the time",
        [CGS_BOUND_HOST]     = "the host does most of the work between calls",
        [CGS_BOUND_WAITS]    = "the host waits for the GPU after every few "
                               "calls, and the GPU idles",
        [CGS_BOUND_CHANGES]  = "the GPU waits for launches, but runs do not "
                               "come again",
    };
    char run[32], call[32], own[32], wait[32], busy[32];

    snprintf(figures->why, sizeof(figures->why),
             "%s: of %s, %" PRIu64 " launching calls take %s, waits %s and the "
             "program's own work %s; the GPU has work for %s; %u%% of the "
             "recorded runs came again", texts[figures->bound],
             us(figures->plain_ns, run, sizeof(run)), figures->calls,
             us(figures->call_ns, call, sizeof(call)),
             us(figures->wait_ns, wait, sizeof(wait)),
             us(own_ns(figures), own, sizeof(own)),
             us(figures->graph_ns, busy, sizeof(busy)),
             figures->alike_percent);
}

/* Letters that a range's text may have for a rule to be made of it, and those
 * of them that a variable's name may not have. */
#define PLAIN  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define STRANGE "-. /:+,=@#()"

/* The rule of a region that has none, for a shell, with a key or "". @return
 * false where its name is too long or too strange. */
static bool make_rule(const char *name, const char *key, char *out,
                      size_t size)
{
    bool   is_plain = name[strspn(name, PLAIN)] == '\0';
    size_t length;
    char   *end;

    if ((name[0] == '\0') || (strlen(name) > 100) ||
        (name[strspn(name, PLAIN STRANGE)] != '\0')) {
        return false;
    }
    length = (size_t)snprintf(out, size, "CGSHIM_REGION_%s", name);
    for (end = out; (end = strpbrk(end, STRANGE)) != NULL;) {
        *end = '_';
    }
    if (is_plain) {
        snprintf(out + length, size - length, "=%s", key);
        return true;
    }
    length += (size_t)snprintf(out + length, size - length, "=\"nvtx='");
    for (; *name != '\0'; ++name) {
        /* A colon would end a domain. */
        length += (size_t)snprintf(out + length, size - length, "%s%c",
                                   *name == ':' ? "\\" : "", *name);
    }
    snprintf(out + length, size - length, "'%s%s\"", key[0] != '\0' ? " " : "",
             key);
    return true;
}

static void advise_region(cgs_profile_figures_t *figures)
{
    bool is_worth = cgs_profile_gain(figures) * 100 >= 100 + MIN_GAIN;
    char rule[300];

    if (!figures->has_gain) {
        return;
    }
    if (figures->has_rule) {
        snprintf(figures->advice, sizeof(figures->advice), "%s%s",
                 is_worth ? "CGSHIM_REPORT=stderr" :
                            "enable=0 in CGSHIM_REGION_",
                 is_worth ? "" : figures->name);
    } else if (make_rule(figures->name, is_worth ? "" : "enable=0", rule,
                         sizeof(rule))) {
        snprintf(figures->advice, sizeof(figures->advice), "%s%s", rule,
                 is_worth ? " CGSHIM_REPORT=stderr" : "");
    } else if (is_worth) {
        snprintf(figures->advice, sizeof(figures->advice),
                 "CGSHIM_REPORT=stderr");
    }
}

static void advise_outside(cgs_profile_figures_t *figures)
{
    char   *advice = figures->advice;
    size_t size    = sizeof(figures->advice);

    if (!figures->is_profiled || (work_of(figures) == 0)) {
        return;
    }
    if (figures->commonest > 1) {
        snprintf(advice, size, "an NVTX range around what comes again: "
                 "%" PRIu64 " of %" PRIu64 " rows of calls between two waits "
                 "are the same %" PRIu64 " calls", figures->commonest,
                 figures->sequences, figures->length);
    } else {
        snprintf(advice, size, "an NVTX range around what comes again, such as "
                 "one step; between two waits nothing did");
    }
}

void cgs_profile_judge(cgs_profile_figures_t *figures)
{
    bool is_known = figures->is_timed && figures->is_profiled &&
                    (figures->run_ns > 0) && !is_silent(figures) &&
                    ((figures->name == NULL) ||
                     ((figures->plain_runs >= MIN_RUNS) &&
                      (figures->profiled_runs >= MIN_RUNS)));

    figures->bound = CGS_BOUND_UNKNOWN;
    if (is_known) {
        expect(figures);
        figures->bound = find_bound(figures);
        explain(figures);
    } else {
        explain_unknown(figures);
    }
    if (figures->name != NULL) {
        advise_region(figures);
    } else {
        advise_outside(figures);
    }
}
