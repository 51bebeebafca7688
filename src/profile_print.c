/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each number of the JSON is a row of a table of fields, which says when it is
 * known; what is not is null.
 */
#define _GNU_SOURCE
#include "profile_print.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "text.h"

/* Changed where a field goes or changes its meaning. */
#define SCHEMA    1
#define MAX_SHOWN 1024
#define MAX_NAME  20
/* Of a kernel, and of a line. */
#define MAX_KERNEL 64
#define WIDTH      100
/* Shorter gaps are nobody's affair. */
#define MIN_GAP_NS 2000

/* When a number is known. */
typedef enum {
    ALWAYS,
    IN_REGIONS, /* not of what is outside */
    TIMED,
    PROFILED,
    JUDGED
} known_t;

static const struct {
    const char *name;
    size_t     offset;
    known_t    known;
} fields[] = {
#define FIELD(_name, _member, _known) \
    {_name, offsetof(cgs_profile_figures_t, _member), _known}
    FIELD("runs", runs, IN_REGIONS),
    FIELD("timed_runs", plain_runs, IN_REGIONS),
    FIELD("profiled_runs", profiled_runs, IN_REGIONS),
    FIELD("launches", launches, PROFILED),
    FIELD("copies", copies, PROFILED),
    FIELD("sets", sets, PROFILED),
    FIELD("run_ns", run_ns, TIMED),
    FIELD("calls", calls, TIMED),
    FIELD("call_ns", call_ns, TIMED),
    FIELD("waits", waits, TIMED),
    FIELD("wait_ns", wait_ns, TIMED),
    FIELD("device_busy_ns", busy_ns, PROFILED),
    FIELD("device_idle_ns", idle_ns, PROFILED),
    FIELD("graph_ns", graph_ns, PROFILED),
    FIELD("sequences", sequences, PROFILED),
    FIELD("distinct_sequences", distinct, PROFILED),
    FIELD("commonest_sequence", commonest, PROFILED),
    FIELD("commonest_length", length, PROFILED),
    FIELD("expected_run_ns", expected_ns, JUDGED),
#undef FIELD
};

static bool is_known(const cgs_profile_figures_t *figures, known_t known)
{
    switch (known) {
    case IN_REGIONS:
        return figures->name != NULL;
    case TIMED:
        return figures->is_timed;
    case PROFILED:
        return figures->is_profiled;
    case JUDGED:
        return figures->has_gain;
    default:
        return true;
    }
}

/* ---- JSON ---- */

static void add_string(cgs_text_t *text, const char *before, const char *value)
{
    cgs_text_print(text, "%s", before);
    if ((value == NULL) || (value[0] == '\0')) {
        cgs_text_print(text, "null");
    } else {
        cgs_text_add_json(text, value);
    }
}

/* Hundredths, without the comma that the program's locale may have. */
static void add_gain(cgs_text_t *text, const cgs_profile_figures_t *figures)
{
    unsigned long hundredths = (unsigned long)
        (cgs_profile_gain(figures) * 100 + 0.5);

    cgs_text_print(text, "%lu.%02lu", hundredths / 100, hundredths % 100);
}

static void add_gaps(cgs_text_t *text, const cgs_profile_figures_t *figures)
{
    unsigned i;

    cgs_text_print(text, ", \"longest_gaps\": [");
    for (i = 0; (i < CGS_PROFILE_GAPS) && (figures->gap[i].ns > 0); ++i) {
        cgs_text_print(text, "%s{\"ns\": %" PRIu64, i > 0 ? ", " : "",
                       figures->gap[i].ns);
        add_string(text, ", \"before\": ", figures->gap[i].before);
        add_string(text, ", \"after\": ", figures->gap[i].after);
        cgs_text_print(text, "}");
    }
    cgs_text_print(text, "]");
}

static void add_figures(cgs_text_t *text, const cgs_profile_figures_t *figures)
{
    uint64_t value;
    size_t   i;

    cgs_text_print(text, "{\"name\": ");
    if (figures->name != NULL) {
        cgs_text_add_json(text, figures->name);
    } else {
        cgs_text_print(text, "null");
    }
    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); ++i) {
        memcpy(&value, (const char *)figures + fields[i].offset,
               sizeof(value));
        cgs_text_print(text, ", \"%s\": ", fields[i].name);
        if (is_known(figures, fields[i].known)) {
            cgs_text_print(text, "%" PRIu64, value);
        } else {
            cgs_text_print(text, "null");
        }
    }
    cgs_text_print(text, ", \"expected_gain\": ");
    if (figures->has_gain) {
        add_gain(text, figures);
    } else {
        cgs_text_print(text, "null");
    }
    if (figures->is_profiled) {
        cgs_text_print(text, ", \"alike_percent\": %u",
                       figures->alike_percent);
    } else {
        cgs_text_print(text, ", \"alike_percent\": null");
    }
    add_gaps(text, figures);
    add_string(text, ", \"verdict\": ",
               cgs_profile_bound_name(figures->bound));
    add_string(text, ", \"why\": ", figures->why);
    add_string(text, ", \"advice\": ", figures->advice);
    cgs_text_print(text, "}");
}

static void print_json(cgs_text_t *text, const cgs_profile_t *profile)
{
    size_t i;

    cgs_text_print(text, "{\"schema\": %d, \"kind\": \"profile\"", SCHEMA);
    add_string(text, ", \"version\": ", PACKAGE_VERSION);
    add_string(text, ",\n \"program\": ", program_invocation_name);
    cgs_text_print(text, ", \"pid\": %d, \"elapsed_ns\": %" PRIu64
                   ", \"profiled_ns\": %" PRIu64 ", \"left_out\": %" PRIu64
                   ",\n \"regions\": [", (int)getpid(), profile->elapsed_ns,
                   profile->recorded_ns, profile->left_out);
    for (i = 0; i < profile->num_regions; ++i) {
        cgs_text_print(text, "%s\n  ", i > 0 ? "," : "");
        add_figures(text, &profile->region[i]);
    }
    cgs_text_print(text, "],\n \"outside\": ");
    add_figures(text, &profile->outside);
    cgs_text_print(text, "}\n");
}

/* ---- The table ---- */

static void add_escaped(cgs_text_t *text, const char *string)
{
    char shown[MAX_SHOWN];

    cgs_text_escape(shown, sizeof(shown), string);
    cgs_text_print(text, "%s", shown);
}

/* Microseconds in a column, or "-". */
static void add_us(cgs_text_t *text, bool known, uint64_t ns)
{
    if (known) {
        cgs_text_print(text, " %8" PRIu64 ".%u", ns / 1000,
                       (unsigned)(ns % 1000 / 100));
    } else {
        cgs_text_print(text, " %10s", "-");
    }
}

static void add_row(cgs_text_t *text, const cgs_profile_figures_t *figures)
{
    char name[MAX_NAME + 1];

    cgs_text_escape(name, sizeof(name), figures->name != NULL ?
                    figures->name : "(outside)");
    cgs_text_print(text, "  %-20s", name);
    if (figures->name != NULL) {
        cgs_text_print(text, " %7" PRIu64, figures->runs);
    } else {
        cgs_text_print(text, " %7s", "-");
    }
    if (figures->is_profiled) {
        cgs_text_print(text, " %8" PRIu64, figures->launches +
                       figures->copies + figures->sets);
    } else {
        cgs_text_print(text, " %8s", "-");
    }
    add_us(text, figures->is_timed, figures->run_ns);
    add_us(text, figures->is_timed, figures->call_ns);
    add_us(text, figures->is_profiled, figures->busy_ns);
    add_us(text, figures->has_gain, figures->expected_ns);
    if (figures->has_gain) {
        cgs_text_print(text, "  ");
        add_gain(text, figures);
    } else {
        cgs_text_print(text, "     -");
    }
    cgs_text_print(text, "  %s\n", cgs_profile_bound_name(figures->bound));
}

/* Words, in lines that are no longer than the table. */
static void add_wrapped(cgs_text_t *text, const char *first,
                        const char *string)
{
    char   shown[MAX_SHOWN];
    char   *word, *rest;
    size_t column = strlen(first);

    cgs_text_escape(shown, sizeof(shown), string);
    cgs_text_print(text, "%s", first);
    for (word = strtok_r(shown, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        if (column + strlen(word) + 1 > WIDTH) {
            cgs_text_print(text, "\n     ");
            column = 5;
        }
        cgs_text_print(text, " %s", word);
        column += strlen(word) + 1;
    }
    cgs_text_print(text, "\n");
}

static void add_kernel(cgs_text_t *text, const char *before, const char *name)
{
    char shown[MAX_KERNEL];

    cgs_text_escape(shown, sizeof(shown), name);
    cgs_text_print(text, "%s%s", before, shown);
}

static void add_lines(cgs_text_t *text, const cgs_profile_figures_t *figures)
{
    unsigned i;

    add_wrapped(text, "   ", figures->why);
    if (figures->sequences > 0) {
        cgs_text_print(text, "    between waits: %" PRIu64 " rows of calls, %"
                       PRIu64 " different; the commonest has %" PRIu64
                       " calls and came %" PRIu64 " times\n",
                       figures->sequences, figures->distinct, figures->length,
                       figures->commonest);
    }
    for (i = 0; (i < CGS_PROFILE_GAPS) && (figures->gap[i].ns > MIN_GAP_NS);
         ++i) {
        cgs_text_print(text, "    the GPU idle for %" PRIu64 ".%u us",
                       figures->gap[i].ns / 1000,
                       (unsigned)(figures->gap[i].ns % 1000 / 100));
        add_kernel(text, " between ", figures->gap[i].before);
        add_kernel(text, " and ", figures->gap[i].after);
        cgs_text_print(text, "\n");
    }
    if (figures->advice[0] != '\0') {
        cgs_text_print(text, "    next: ");
        add_escaped(text, figures->advice);
        cgs_text_print(text, "\n");
    }
}

static bool is_shown(const cgs_profile_figures_t *outside,
                     const cgs_profile_t *profile)
{
    return (profile->num_regions == 0) ||
           (outside->launches + outside->copies + outside->sets > 0);
}

static void print_table(cgs_text_t *text, const cgs_profile_t *profile)
{
    size_t i;

    cgs_text_print(text, "cgshim %s profile: ", PACKAGE_VERSION);
    add_escaped(text, program_invocation_name);
    cgs_text_print(text, " (pid %d), nothing replayed, CUPTI on for %" PRIu64
                   " of %" PRIu64 " ms\n", (int)getpid(),
                   profile->recorded_ns / 1000000,
                   profile->elapsed_ns / 1000000);
    if (!profile->was_recorded) {
        cgs_text_print(text, "  the program ended before CUPTI was switched "
                       "on: it needs 16 runs of a region, or without one a "
                       "third of a second and 500 calls\n");
    }
    if (profile->left_out > 0) {
        cgs_text_print(text, "  %" PRIu64 " records and runs were left out: "
                       "there was no room for them\n", profile->left_out);
    }
    cgs_text_print(text, "  %-20s %7s %8s %10s %10s %10s %10s  %4s  %s\n",
                   "region", "runs", "work", "run us", "launch us",
                   "GPU us", "replayed", "gain", "verdict");
    for (i = 0; i < profile->num_regions; ++i) {
        add_row(text, &profile->region[i]);
        add_lines(text, &profile->region[i]);
    }
    if (is_shown(&profile->outside, profile)) {
        add_row(text, &profile->outside);
        add_lines(text, &profile->outside);
    }
}

int cgs_profile_print(const cgs_profile_t *profile, const char *target)
{
    cgs_text_t text = {0};

    if (strcmp(target, "stderr") == 0) {
        print_table(&text, profile);
    } else {
        print_json(&text, profile);
    }
    return cgs_file_deliver(&text, target);
}
