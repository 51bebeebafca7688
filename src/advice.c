/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables: what to do about each reason for going out plainly, about each reason
 * for a cut, and rules for what no reason says. The first rules that
 * hold speak, the most telling ones first.
 */
#include "advice.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

/* Regions that ran once from which they are probably one region. */
#define MANY_ONCE 8
/* Calls of a run below which a graph can gain nothing. */
#define FEW_CALLS 3
/* Calls of which it says something whether they repeat, and percent of them
 * that are worth it. */
#define LEAST_LOOKED_AT 100
#define LEAST_REPEATING 20
/* Longest name in a line. */
#define MAX_NAME  128

/* Reasons; one that ends in '*' begins so, and the rest of it stands between
 * `before` and `after`. NULL: nothing is to be done. */
typedef struct {
    const char *reason;
    const char *before, *after;
} remedy_t;

static const remedy_t plain_remedies[] = {
    {"a call was not as recorded",
     "its runs differ: with a larger variants= more ways are kept; or move "
     "what varies out of the range, or make smaller ranges", ""},
    {"it ended before the recording did",
     "its runs are of different lengths: with a larger variants= more ways are "
     "kept; or make smaller ranges", ""},
    {"a cut that was not recorded: *",
     "take ", " out of the range, or make it in every run at the same place"},
    {"recordings did not last, so the next one waits",
     "it seldom comes as it was recorded: move what varies out of the range, "
     "make smaller ranges, or leave it alone with enable=0", ""},
    {"memory_mb is used up",
     "give more memory_mb in CGSHIM_DEFAULTS, or leave regions that matter "
     "little alone with enable=0", ""},
    {"work was held back for max_defer_us",
     "the program pauses in the middle of it: take the pause out of the range, "
     "or give a larger max_defer_us", ""},
    {"another thread's call came in between",
     "let other threads make their calls outside of the range, or at its end",
     ""},
    {"it was open in another thread",
     "give the range another name in each thread: a region has one run at a "
     "time", ""},
    {"a graph left other bytes than its calls",
     "this is a mistake of cgshim's: please report it as an issue", ""},
    {"a stream capture of the program's own", NULL, NULL},
    {"the program ended", NULL, NULL},
    {"too much pageable memory: *",
     "copy from pinned memory (cudaMallocHost), or give a smaller chunk", ""},
    {"too many waits in a row: *", "give streams=separate", ""},
    {"the program ran out of device memory",
     "leave graphs less memory: give a smaller memory_mb, or fewer or smaller "
     "regions", ""},
    {"it has too many calls", "make smaller ranges", ""},
    {"out of host memory", "make fewer or smaller regions", ""},
    {"cu*: CUDA_ERROR_OUT_OF_MEMORY",
     "leave graphs less memory: give a smaller memory_mb, or fewer or smaller "
     "regions", ""},
    {"cu*: *", "the driver refused a graph: please report it as an issue", ""},
    {"cu*", "take cu", " out of the range: it ends all graphs"},
};

static const remedy_t gate_remedies[] = {
    {"it is no faster replayed than plain, or that is tried",
     "replaying it gains nothing here (see When it helps): leave it alone with "
     "enable=0, or see with gate=off what replaying comes to", ""},
};

static const remedy_t cut_remedies[] = {
    {"a wait for an event of outside",
     "record the event that it waits for inside the range as well, or wait for "
     "it before the range", ""},
    {"an event used with flags",
     "record and wait for events without flags in it", ""},
    {"a copy with memory that is pageable, managed or of another device",
     "copy from and to pinned memory (cudaMallocHost) in it", ""},
    {"the per-thread default stream",
     "use streams of your own in it: the per-thread default stream is not "
     "replayed", ""},
    {"a call that failed", "a call in it fails: see the program's errors", ""},
    {"a *", NULL, NULL},
    {"an *", NULL, NULL},
    {"the *", NULL, NULL},
    {"cu*", "a graph ends at each cu",
     ": take it out of the range, or make ranges between these calls"},
};

/* Whether a reason is of an entry; `rest` is what stands for the last '*'. */
static bool is_of(const char *pattern, const char *reason, const char **rest)
{
    for (; (*pattern != '\0') && (*pattern != '*'); ++pattern, ++reason) {
        if (*pattern != *reason) {
            return false;
        }
    }
    *rest = reason;
    if (pattern[0] != '*') {
        return *reason == '\0';
    }
    if (pattern[1] == '\0') {
        return true;
    }
    for (; *reason != '\0'; ++reason) {
        if (is_of(pattern + 1, reason, rest)) {
            return true;
        }
    }
    return false;
}

static const remedy_t *find_remedy(const remedy_t *table, size_t num,
                                   const char *reason, const char **rest)
{
    size_t i;

    for (i = 0; (reason != NULL) && (i < num); ++i) {
        if (is_of(table[i].reason, reason, rest)) {
            return table[i].before != NULL ? &table[i] : NULL;
        }
    }
    return NULL;
}

static void say(cgs_advice_t *advice, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void say(cgs_advice_t *advice, const char *fmt, ...)
{
    char    text[CGS_ADVICE_LENGTH];
    va_list ap;

    if (advice->num == CGS_ADVICE_LINES) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    cgs_text_escape(advice->line[advice->num++], CGS_ADVICE_LENGTH, text);
}

/* Say what to do about the reason that came most often, of those that came
 * `least` times or more and can be helped. @return whether there is one. */
static bool say_remedy(cgs_advice_t *advice, const remedy_t *table,
                       size_t num, const cgs_fallback_t *reasons,
                       size_t num_reasons, uint64_t least)
{
    const cgs_fallback_t *worst = NULL;
    const remedy_t       *remedy;
    const char           *rest;
    size_t               i;

    for (i = 0; i < num_reasons; ++i) {
        if ((reasons[i].count >= least) &&
            ((worst == NULL) || (reasons[i].count > worst->count)) &&
            (find_remedy(table, num, reasons[i].reason, &rest) != NULL)) {
            worst = &reasons[i];
        }
    }
    if (worst == NULL) {
        return false;
    }
    remedy = find_remedy(table, num, worst->reason, &rest);
    say(advice, "%s%s%s", remedy->before, remedy->after[0] != '\0' ? rest : "",
        remedy->after);
    return true;
}

#define TABLE(_table) _table, sizeof(_table) / sizeof(_table[0])

/* Runs whose calls were looked at. */
static uint64_t looked_at(const cgs_region_report_t *region)
{
    return region->runs - region->plain_runs;
}

/* Most runs go plain because of the gate. */
static bool is_shut(const cgs_region_report_t *region)
{
    return 4 * region->plain_runs >= region->runs;
}

/* As much as can be is swallowed: all but the run that was recorded. */
static bool does_well(const cgs_region_report_t *region)
{
    double runs  = (double)looked_at(region);
    double least = 0.9 * (double)region->calls * (runs - 1) / runs;

    return (runs > 1) && !is_shut(region) && (region->launches > 0) &&
           ((double)region->swallowed >= least);
}

/* ---- Rules for what no reason says; each speaks or not ---- */

typedef bool rule_t(const cgs_region_report_t *region, cgs_advice_t *advice);

static bool say_once(const cgs_region_report_t *region, cgs_advice_t *advice)
{
    if (region->runs != 1) {
        return false;
    }
    say(advice, "it ran once, and only what comes again is replayed");
    return true;
}

static bool say_short(const cgs_region_report_t *region, cgs_advice_t *advice)
{
    uint64_t runs = looked_at(region);

    if ((runs == 0) || (region->calls >= FEW_CALLS * runs)) {
        return false;
    }
    say(advice, "a run of it has %s: make the range larger, since a graph pays "
        "by the calls that it replaces", region->calls == 0 ? "no call that "
        "puts work on a stream" : region->calls < 2 * runs ? "one call" :
        "two calls");
    return true;
}

static bool say_plain(const cgs_region_report_t *region, cgs_advice_t *advice)
{
    uint64_t runs  = looked_at(region);
    uint64_t least = runs / 20 > 2 ? runs / 20 : 2;

    return say_remedy(advice, TABLE(plain_remedies), region->fallbacks,
                      region->num_fallbacks, least);
}

/* Where it sends few runs plain, the gate is no trouble. */
static bool say_shut(const cgs_region_report_t *region, cgs_advice_t *advice)
{
    return is_shut(region) &&
           say_remedy(advice, TABLE(gate_remedies), region->fallbacks,
                      region->num_fallbacks, 1);
}

/* What is no value that could be patched. */
static bool is_structure(const char *what)
{
    static const char *const structures[] = {
        "missing call", "extra call", "call", "kernel", "stream or context",
        "attribute", "number of attributes", "way of launching",
    };
    size_t i;

    for (i = 0; i < sizeof(structures) / sizeof(structures[0]); ++i) {
        if ((what != NULL) && (strcmp(structures[i], what) == 0)) {
            return true;
        }
    }
    return false;
}

/* The place that differs most often. */
static bool say_differing(const cgs_region_report_t *region,
                          cgs_advice_t *advice)
{
    const cgs_change_t *order[CGS_MAX_CHANGES];
    const cgs_change_t *change;
    char               name[MAX_NAME];

    if ((region->changes == NULL) || (region->changes->num == 0)) {
        return false;
    }
    cgs_changes_sort(region->changes, order);
    change = order[0];
    if (10 * change->runs < region->changes->watched) {
        return false;
    }
    cgs_text_escape(name, sizeof(name), change->kernel);
    if (change->is_address && (cgs_change_pattern(change) ==
                               CGS_PATTERN_NEW)) {
        say(advice, "keep the buffer of argument %d of %s (call %" PRIu64 ") "
            "from run to run instead of allocating it anew", change->arg,
            name, change->op_index);
        return true;
    }
    if (!is_structure(change->what)) {
        return false;
    }
    say(advice, "leave call %" PRIu64 " (%s) out of the range, or let one "
        "range end before it and another begin after it", change->op_index,
        name);
    return true;
}

static bool say_cut(const cgs_region_report_t *region, cgs_advice_t *advice)
{
    return say_remedy(advice, TABLE(cut_remedies), region->cuts,
                      region->num_cuts, 1);
}

static bool say_slow_pace(const cgs_region_report_t *region,
                          cgs_advice_t *advice)
{
    if ((looked_at(region) < 3) || (region->num_cuts > 0) ||
        (region->num_fallbacks > 0) || (region->variants == 0)) {
        return false;
    }
    say(advice, "the program takes its time between the calls of it, so "
        "graphs are small or none: chunk=all makes them whatever the pace");
    return true;
}

static rule_t *const rules[] = {
    say_once, say_short, say_shut, say_differing, say_plain, say_cut,
    say_slow_pace,
};

void cgs_advise_region(const cgs_report_t *report,
                       const cgs_region_report_t *region, cgs_advice_t *advice)
{
    bool   only_looks = (report->mode != NULL) &&
                        (strcmp(report->mode, "on") != 0);
    size_t i;

    advice->num = 0;
    if ((report->note != NULL) || only_looks || (region->runs == 0) ||
        does_well(region)) {
        return;
    }
    for (i = 0; i < sizeof(rules) / sizeof(rules[0]); ++i) {
        /* What ran once or is short has no other trouble worth a line. */
        if (rules[i](region, advice) && (i < 2)) {
            return;
        }
    }
}

/* ---- The process ---- */

/* Bytes of a name before its first digit. */
static size_t stem_of(const char *name)
{
    return strcspn(name, "0123456789");
}

static bool has_stem(const cgs_region_report_t *region, const char *stem,
                     size_t length)
{
    return (region->runs == 1) && (region->name != NULL) &&
           (stem_of(region->name) == length) &&
           (strncmp(region->name, stem, length) == 0);
}

/* The beginning that most names of regions that ran once have, if any has. */
static const char *common_stem(const cgs_report_t *report, size_t *length,
                               size_t *num)
{
    const char *stem = NULL;
    size_t     votes = 0;
    size_t     i;

    for (i = 0; i < report->num_regions; ++i) {
        const cgs_region_report_t *region = &report->regions[i];

        if ((region->runs != 1) || (region->name == NULL)) {
            continue;
        }
        if (votes == 0) {
            stem    = region->name;
            *length = stem_of(stem);
            votes   = 1;
        } else if (has_stem(region, stem, *length)) {
            ++votes;
        } else {
            --votes;
        }
    }
    for (i = 0, *num = 0; (stem != NULL) && (i < report->num_regions); ++i) {
        *num += has_stem(&report->regions[i], stem, *length);
    }
    return stem;
}

static bool is_plain_text(const char *text, size_t length)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        if ((unsigned char)text[i] < ' ' ||
            (strchr("*?[\\\"':", text[i]) != NULL)) {
            return false;
        }
    }
    return (length > 0) && (length < MAX_NAME);
}

/* "step 1", "step 2", ...: one rule makes them one region. */
static bool say_many_once(const cgs_report_t *report, cgs_advice_t *advice)
{
    size_t     length = 0, num = 0;
    const char *stem  = common_stem(report, &length, &num);
    int        word;

    if ((num < MANY_ONCE) || (2 * num < report->num_regions)) {
        return false;
    }
    if (!is_plain_text(stem, length)) {
        say(advice, "%zu regions ran once: a name that is another one each "
            "time never comes again; one rule CGSHIM_REGION_<name>="
            "'nvtx=<glob>' makes them one region", num);
        return true;
    }
    word = (int)strspn(stem, "abcdefghijklmnopqrstuvwxyz"
                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    say(advice, "%zu regions \"%.*s...\" ran once: make them one by "
        "CGSHIM_REGION_%.*s='nvtx=\"%.*s*\"' (with any rule, ranges that none "
        "matches are left alone)", num, (int)length, stem,
        word > 0 ? word : 6, word > 0 ? stem : "region", (int)length, stem);
    return true;
}

/* What CGSHIM_AUTO=1 would come to. */
static void say_automatic(const cgs_report_t *report, cgs_advice_t *advice)
{
    unsigned share;

    if (report->looked_at < LEAST_LOOKED_AT) {
        say(advice, "or let CGSHIM_AUTO=1 look for calls that come again, "
            "without any mark");
        return;
    }
    share = (unsigned)(100 * report->repeating / report->looked_at);
    if (share < LEAST_REPEATING) {
        say(advice, "CGSHIM_AUTO=1 would find little: of the first %" PRIu64
            " calls %u%% came again in loops", report->looked_at, share);
    } else {
        say(advice, "or set CGSHIM_AUTO=1, which finds loops without any mark: "
            "of the first %" PRIu64 " calls %u%% came again in loops",
            report->looked_at, share);
    }
}

void cgs_advise(const cgs_report_t *report, cgs_advice_t *advice)
{
    uint64_t runs = 0;
    size_t   i;

    advice->num = 0;
    if (report->note != NULL) {
        return;
    }
    for (i = 0; i < report->num_regions; ++i) {
        runs += report->regions[i].runs;
    }
    if (runs == 0) {
        say(advice, "mark the work that comes again by an NVTX range (push and "
            "pop), or by cgshim_region_begin(); with any CGSHIM_REGION_<name> "
            "rule only the ranges that rules match are regions");
        say_automatic(report, advice);
        return;
    }
    say_many_once(report, advice);
}
