/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report: what was seen and done in this process, as a table or as JSON.
 */
#define _GNU_SOURCE 1
#include "report.h"

#include "advice.h"
#include "file.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Width of the table, and where its wrapped lines go on */
#define CGS_REPORT_WIDTH  100
#define CGS_REPORT_INDENT 8
/* Longest cell, and longest name of a region in it */
#define CGS_REPORT_MAX_CELL 96
#define CGS_REPORT_MAX_NAME 20
/* Longest string in a line under the table: mangled names are long */
#define CGS_REPORT_MAX_TEXT 4096
/* Regions from which those that ran once are no rows of the table */
#define CGS_REPORT_MANY 16

/* ---- Values for people ---- */

/* Tenths, without the comma that the program's locale may have */
static void cgs_report_format_tenths(char *out, uint64_t tenths,
                                     const char *unit)
{
    snprintf(out, CGS_REPORT_MAX_CELL, "%" PRIu64 ".%u%s", tenths / 10,
             (unsigned)(tenths % 10), unit);
}

/* Up to six characters; all digits are in the JSON */
static void cgs_report_format_count(char *out, uint64_t count)
{
    static const char *const units[] = {"M", "G", "T", "P", "E"};
    uint64_t                 tenths  = count / 100000;
    unsigned                 unit    = 0;

    if (count < 1000000) {
        snprintf(out, CGS_REPORT_MAX_CELL, "%" PRIu64, count);
        return;
    }
    while (tenths >= 10000) {
        tenths /= 1000;
        ++unit;
    }
    cgs_report_format_tenths(out, tenths, units[unit]);
}

static void cgs_report_format_name(char *out,
                                   const cgs_region_report_t *region)
{
    cgs_text_escape(out, CGS_REPORT_MAX_NAME + 1, region->name);
}

static void cgs_report_format_state(char *out,
                                    const cgs_region_report_t *region)
{
    bool ended = region->state != NULL && strcmp(region->state, "ended") == 0;

    cgs_text_escape(out, CGS_REPORT_MAX_NAME + 1,
                    ended && region->launches > 0 ? "ended after replays" :
                    region->state);
}

/* In thousandths. Rounded down: all of them is all and not nearly so */
static unsigned cgs_report_share(uint64_t part, uint64_t whole)
{
    double   share;
    unsigned thousandths;

    if (part >= whole) {
        return whole > 0 ? 1000 : 0;
    }
    share       = (double)part / (double)whole;
    thousandths = (unsigned)(share * 1000);
    return thousandths < 1000 ? thousandths : 999;
}

/* What all runs came to, where those that nobody looked at were like the
 * others */
static uint64_t cgs_report_in_all_runs(uint64_t seen,
                                       const cgs_region_report_t *region)
{
    uint64_t runs = region->runs - region->unseen_runs;
    double   all;

    if (region->unseen_runs == 0 || region->unseen_runs >= region->runs) {
        return seen;
    }
    all = (double)seen * (double)region->runs / (double)runs;
    return all < (double)INT64_MAX ? (uint64_t)all : INT64_MAX;
}

static void cgs_report_format_share(char *out,
                                    const cgs_region_report_t *region)
{
    uint64_t calls = cgs_report_in_all_runs(region->calls, region);

    *out = '~';
    cgs_report_format_tenths(out + (region->unseen_runs > 0),
                             cgs_report_share(region->swallowed, calls), "%");
}

static void cgs_report_format_build(char *out,
                                    const cgs_region_report_t *region)
{
    cgs_report_format_tenths(out, region->build_ns / 100000 +
                                  (region->build_ns % 100000 >= 50000), "");
}

/* "58.9 us" */
static void cgs_report_format_time(char *out, int64_t ns)
{
    static const struct {
        uint64_t   ns;
        const char *name;
    } units[] = {{1000000000, " s"}, {1000000, " ms"}, {1000, " us"}};
    uint64_t left = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    size_t   unit = 0;

    while (unit < 2 && left < units[unit].ns) {
        ++unit;
    }
    left /= units[unit].ns / 10;
    *out  = '-';
    cgs_report_format_tenths(out + (ns < 0 && left > 0), left,
                             units[unit].name);
}

/* In milliseconds, as the builds are */
static void cgs_report_format_saved(char *out,
                                    const cgs_region_report_t *region)
{
    int64_t tenths = region->host_saved_ns.value / 100000;

    if (!region->host_saved_ns.known) {
        snprintf(out, CGS_REPORT_MAX_CELL, "-");
        return;
    }
    *out = '-';
    cgs_report_format_tenths(out + (tenths < 0),
                             tenths < 0 ? 0 - (uint64_t)tenths :
                             (uint64_t)tenths, "");
}

static void cgs_report_format_device(char *out,
                                     const cgs_region_report_t *region)
{
    /* Rounded up: what is held is never shown as nothing */
    cgs_report_format_count(out, region->device_bytes / 1024 +
                                 (region->device_bytes % 1024 != 0));
}

/* Bytes of an argument: a number where they have the size of one (all our
 * machines are little-endian), in the order of memory otherwise */
static void cgs_report_print_bytes(cgs_text_t *text, const uint8_t *bytes,
                                   const cgs_divergence_t *divergence)
{
    uint32_t count = divergence->num_bytes < CGS_REPORT_MAX_BYTES ?
                     divergence->num_bytes : CGS_REPORT_MAX_BYTES;
    uint64_t value = 0;
    uint32_t i;

    if (count == 1 || count == 2 || count == 4 || count == 8) {
        memcpy(&value, bytes, count);
        cgs_text_print(text, "0x%0*" PRIx64, (int)count * 2, value);
        return;
    }
    for (i = 0; i < count; ++i) {
        cgs_text_print(text, "%s%02x", i > 0 ? " " : "", bytes[i]);
    }
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "cgs_report_print_bytes() shows memory as numbers");

/* ---- Table ---- */

typedef struct {
    const char *title;
    size_t     offset; /* of a uint64_t, where there is no format */
    void       (*format)(char *out, const cgs_region_report_t *region);
    bool       left;   /* aligned */
} cgs_report_column_t;

static const cgs_report_column_t cgs_report_columns[] = {
    {"region", 0, cgs_report_format_name, true},
    {"runs", offsetof(cgs_region_report_t, runs), NULL, false},
    {"replayed", offsetof(cgs_region_report_t, replayed_runs), NULL, false},
    {"calls", offsetof(cgs_region_report_t, calls), NULL, false},
    {"swallowed", 0, cgs_report_format_share, false},
    {"saved ms", 0, cgs_report_format_saved, false},
    {"graphs", offsetof(cgs_region_report_t, launches), NULL, false},
    {"patched", offsetof(cgs_region_report_t, patched), NULL, false},
    {"build ms", 0, cgs_report_format_build, false},
    {"GPU KB", 0, cgs_report_format_device, false},
    {"state", 0, cgs_report_format_state, true},
};

#define CGS_REPORT_NUM_COLUMNS \
    (sizeof(cgs_report_columns) / sizeof(cgs_report_columns[0]))

static uint64_t cgs_report_counter(const cgs_region_report_t *region,
                                   size_t offset)
{
    uint64_t value;

    memcpy(&value, (const char *)region + offset, sizeof(value));
    return value;
}

/* region NULL: the title */
static void cgs_report_cell(char *out, const cgs_report_column_t *column,
                            const cgs_region_report_t *region)
{
    if (region == NULL) {
        snprintf(out, CGS_REPORT_MAX_CELL, "%s", column->title);
    } else if (column->format != NULL) {
        column->format(out, region);
    } else {
        cgs_report_format_count(out, cgs_report_counter(region,
                                                        column->offset));
    }
}

/* Characters, near enough: no locale is ours to ask how wide they are */
static size_t cgs_report_text_width(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; ++text) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

static void cgs_report_print_row(cgs_text_t *text, const size_t *widths,
                                 const cgs_region_report_t *region)
{
    char   cell[CGS_REPORT_MAX_CELL];
    size_t i;
    int    fill;

    for (i = 0; i < CGS_REPORT_NUM_COLUMNS; ++i) {
        cgs_report_cell(cell, &cgs_report_columns[i], region);
        fill = (int)(widths[i] - cgs_report_text_width(cell));
        if (!cgs_report_columns[i].left) {
            cgs_text_print(text, "  %*s%s", fill, "", cell);
        } else if (i + 1 < CGS_REPORT_NUM_COLUMNS) {
            cgs_text_print(text, "  %s%*s", cell, fill, "");
        } else {
            cgs_text_print(text, "  %s", cell);
        }
    }
    cgs_text_add(text, "\n", 1);
}

/* Append a part to the line that begins at *line, or to a new one where it
 * would leave the table; a part is never cut */
static void cgs_report_print_part(cgs_text_t *text, size_t *line,
                                  cgs_text_t *part)
{
    size_t width = text->length - *line;

    if (width > CGS_REPORT_INDENT && width + part->length > CGS_REPORT_WIDTH) {
        /* The blank after the comma of the part before; names may be blank
         * and the indentation is */
        while (text->length > *line + CGS_REPORT_INDENT &&
               text->data[text->length - 1] == ' ') {
            --text->length;
        }
        *line = text->length + 1;
        cgs_text_print(text, "\n%*s", CGS_REPORT_INDENT, "");
    }
    cgs_text_add(text, part->data, part->length);
    text->failed = text->failed || part->failed;
    part->length = 0;
}

static void cgs_report_print_escaped(cgs_text_t *text, const char *string)
{
    char escaped[CGS_REPORT_MAX_TEXT];

    cgs_text_add(text, escaped, cgs_text_escape(escaped, sizeof(escaped),
                                                string));
}

static void cgs_report_print_value(cgs_text_t *text, const char *string,
                                   const uint8_t *bytes,
                                   const cgs_divergence_t *divergence)
{
    if (string != NULL) {
        cgs_report_print_escaped(text, string);
    } else if (divergence->num_bytes > 0) {
        cgs_report_print_bytes(text, bytes, divergence);
    } else {
        cgs_text_print(text, "none");
    }
}

/* "kernel NAME"; other calls have no names but what they are */
static void cgs_report_print_call(cgs_text_t *text, const char *call,
                                  const char *name)
{
    if (call != NULL && strcmp(call, "kernel") == 0) {
        cgs_text_print(text, "kernel ");
    }
    cgs_report_print_escaped(text, name);
}

static void cgs_report_print_divergence(cgs_text_t *text,
                                        const cgs_divergence_t *divergence)
{
    size_t     line = text->length;
    cgs_text_t part = {0};

    cgs_text_print(text, "    first divergence: run %" PRIu64 ", call %" PRIu64
                   ", ", divergence->run, divergence->op_index);
    if (divergence->kernel != NULL) {
        cgs_report_print_call(&part, divergence->call, divergence->kernel);
        cgs_text_print(&part, ", ");
        cgs_report_print_part(text, &line, &part);
    }
    cgs_report_print_escaped(&part, divergence->what);
    if (divergence->arg >= 0) {
        cgs_text_print(&part, " %d (offset %" PRIu32 " of %" PRIu32 ")",
                       divergence->arg, divergence->offset, divergence->size);
    }
    cgs_text_print(&part, ": ");
    cgs_report_print_part(text, &line, &part);
    if (divergence->num_bytes > 0 || divergence->old_text != NULL ||
        divergence->new_text != NULL) {
        cgs_report_print_value(&part, divergence->old_text,
                               divergence->old_bytes, divergence);
        cgs_text_print(&part, " ");
        cgs_report_print_part(text, &line, &part);
        cgs_text_print(&part, "-> ");
        cgs_report_print_value(&part, divergence->new_text,
                               divergence->new_bytes, divergence);
        cgs_report_print_part(text, &line, &part);
    } else {
        text->length -= text->length > line + 2 ? 2 : 0;
    }
    cgs_text_add(text, "\n", 1);
    cgs_text_release(&part);
}

static void cgs_report_print_reasons(cgs_text_t *text, const char *what,
                                     const cgs_fallback_t *reasons, size_t num)
{
    size_t i;

    for (i = 0; i < num; ++i) {
        cgs_text_print(text, "    %s: %" PRIu64 " time%s: ", what,
                       reasons[i].count, reasons[i].count == 1 ? "" : "s");
        cgs_report_print_escaped(text, reasons[i].reason);
        cgs_text_add(text, "\n", 1);
    }
}

static void cgs_report_print_mistake(cgs_text_t *text,
                                     const cgs_mistake_t *mistake)
{
    if (!mistake->valid) {
        return;
    }
    cgs_text_print(text, "    WRONG: run %" PRIu64 ", a graph of %" PRIu64
                   " calls left other bytes than these calls leave:\n"
                   "        buffer 0x%" PRIx64 " of %" PRIu64 " bytes, first "
                   "at byte %" PRIu64 ", last taken by call %" PRIu64 ", ",
                   mistake->run, mistake->nodes, mistake->base, mistake->bytes,
                   mistake->offset, mistake->op);
    cgs_report_print_escaped(text, mistake->kernel);
    cgs_text_add(text, "\n", 1);
}

/* How the values of a place differ; "" where nothing can be said */
static void cgs_report_format_pattern(char *out, const cgs_change_t *change)
{
    static const struct {
        const char *value, *address;
    } words[] = {
        [CGS_PATTERN_NONE]    = {"", ""},
        [CGS_PATTERN_GROWS]   = {"grows", "grows"},
        [CGS_PATTERN_SHRINKS] = {"shrinks", "shrinks"},
        [CGS_PATTERN_NEW]     = {"a new value each time",
                                 "a new buffer each time"},
        [CGS_PATTERN_MANY]    = {"one of many values", "one of many buffers"},
    };
    cgs_pattern_t pattern = cgs_change_pattern(change);

    if (pattern == CGS_PATTERN_ALTERNATES) {
        snprintf(out, CGS_REPORT_MAX_CELL, "alternates among %u %s",
                 change->num_values, change->is_address ? "buffers" :
                                                          "values");
    } else {
        snprintf(out, CGS_REPORT_MAX_CELL, "%s", change->is_address ?
                 words[pattern].address : words[pattern].value);
    }
}

/* The place that differs most often, and how many do so as often */
static void cgs_report_print_often(cgs_text_t *text,
                                   const cgs_region_report_t *region)
{
    const cgs_change_t *order[CGS_MAX_CHANGES];
    const cgs_change_t *change;
    size_t             line = text->length;
    cgs_text_t         part = {0};
    char               cell[CGS_REPORT_MAX_CELL];
    unsigned           share;

    if (region->changes == NULL || region->changes->num == 0) {
        return;
    }
    cgs_changes_sort(region->changes, order);
    change = order[0];
    share  = cgs_report_share(change->runs, region->changes->watched);
    cgs_text_print(text, "    most often: in %u.%u%% of runs call %" PRIu64
                   ", ", share / 10, share % 10, change->op_index);
    cgs_report_print_call(&part, change->call, change->kernel);
    cgs_text_print(&part, ", ");
    cgs_report_print_part(text, &line, &part);
    cgs_report_print_escaped(&part, change->what);
    if (change->arg >= 0) {
        cgs_text_print(&part, " %d", change->arg);
    }
    cgs_report_format_pattern(cell, change);
    if (cell[0] != '\0') {
        cgs_text_print(&part, ": %s", cell);
    }
    cgs_report_print_part(text, &line, &part);
    cgs_text_add(text, "\n", 1);
    cgs_text_release(&part);
}

/* What a run takes, where both are known */
static void cgs_report_print_times(cgs_text_t *text,
                                   const cgs_region_report_t *region)
{
    char plain[CGS_REPORT_MAX_CELL], replayed[CGS_REPORT_MAX_CELL];

    if (!region->plain_run_ns.known || !region->replayed_run_ns.known) {
        return;
    }
    cgs_report_format_time(plain, region->plain_run_ns.value);
    cgs_report_format_time(replayed, region->replayed_run_ns.value);
    cgs_text_print(text, "    from run to run: %s plain, %s replayed\n", plain,
                   replayed);
}

/* Word by word, so that no line is longer than the table */
static void cgs_report_print_advice(cgs_text_t *text, const char *indent,
                                    const cgs_advice_t *advice)
{
    unsigned   i;
    const char *word;
    size_t     line, length;
    cgs_text_t part = {0};

    for (i = 0; i < advice->num; ++i) {
        line = text->length;
        cgs_text_print(text, "%sadvice: ", indent);
        for (word = advice->line[i]; *word != '\0'; word += length) {
            length  = strcspn(word, " ");
            length += word[length] == ' ';
            cgs_text_add(&part, word, length);
            cgs_report_print_part(text, &line, &part);
        }
        cgs_text_add(text, "\n", 1);
    }
    cgs_text_release(&part);
}

static void cgs_report_print_region(cgs_text_t *text, const size_t *widths,
                                    const cgs_report_t *report,
                                    const cgs_region_report_t *region)
{
    cgs_advice_t advice;

    cgs_report_print_row(text, widths, region);
    cgs_report_print_times(text, region);
    if (region->first_divergence.valid) {
        cgs_report_print_divergence(text, &region->first_divergence);
    }
    cgs_report_print_often(text, region);
    cgs_report_print_reasons(text, "plain", region->fallbacks,
                             region->num_fallbacks);
    cgs_report_print_reasons(text, "cut", region->cuts, region->num_cuts);
    if (region->verified > 0) {
        cgs_text_print(text, "    verified: %" PRIu64 " graph%s left what %s "
                       "calls leave\n", region->verified,
                       region->verified == 1 ? "" : "s",
                       region->verified == 1 ? "its" : "their");
    } else if (region->verifies) {
        cgs_text_print(text, "    verified: none\n");
    }
    cgs_report_print_reasons(text, "not verified", region->unverified,
                             region->num_unverified);
    cgs_report_print_mistake(text, &region->mistake);
    cgs_advise_region(report, region, &advice);
    cgs_report_print_advice(text, "    ", &advice);
}

/* All regions together */
typedef struct {
    uint64_t     runs, replayed_runs, plain_runs, unseen_runs;
    uint64_t     launches;      /* with those of runs that were not seen */
    uint64_t     swallowed_launches, graphs;
    cgs_figure_t host_saved_ns; /* of those of which it is known */
    size_t       num_unknown;   /* regions of which it is not */
} cgs_report_total_t;

/* Or as much as there can be */
static int64_t cgs_report_add(int64_t a, int64_t b)
{
    int64_t sum;

    if (__builtin_add_overflow(a, b, &sum)) {
        return a > 0 ? INT64_MAX : INT64_MIN;
    }
    return sum;
}

static cgs_report_total_t cgs_report_sum(const cgs_report_t *report)
{
    const cgs_region_report_t *region = report->regions;
    cgs_report_total_t        total   = {0};
    size_t                    i;

    total.launches = report->launches;
    for (i = 0; i < report->num_regions; ++i, ++region) {
        total.launches           += cgs_report_in_all_runs(
            region->seen_launches, region) - region->seen_launches;
        total.unseen_runs        += region->unseen_runs;
        total.runs               += region->runs;
        total.replayed_runs      += region->replayed_runs;
        total.plain_runs         += region->plain_runs;
        total.swallowed_launches += region->swallowed_launches;
        total.graphs             += region->launches;
        if (!region->host_saved_ns.known) {
            ++total.num_unknown;
        } else if (region->launches > 0 || region->builds > 0) {
            total.host_saved_ns.known = true;
            total.host_saved_ns.value =
                cgs_report_add(total.host_saved_ns.value,
                               region->host_saved_ns.value);
        }
    }
    if (total.num_unknown == 0) {
        total.host_saved_ns.known = true; /* there was nothing to save */
    }
    return total;
}

/* Calls outside of regions are counted too then */
static bool cgs_report_observes(const cgs_report_t *report)
{
    return report->mode != NULL && strcmp(report->mode, "observe") == 0;
}

/* Why no graph was launched, or NULL: some were */
static const char *cgs_report_why_not(const cgs_report_t *report,
                                      const cgs_report_total_t *total)
{
    if (total->graphs > 0) {
        return NULL;
    } else if (report->note != NULL) {
        return report->note;
    } else if (cgs_report_observes(report)) {
        return "CGSHIM=observe only compares";
    }
    return total->runs == 0 ? "no region ran" : "no graph was launched";
}

static void cgs_report_print_head(cgs_text_t *text, const cgs_report_t *report,
                                  const cgs_report_total_t *total)
{
    const char *why_not = cgs_report_why_not(report, total);

    cgs_text_print(text, "cgshim ");
    cgs_report_print_escaped(text, report->version);
    cgs_text_print(text, ": %s in ", why_not == NULL ? "active" :
                                                       "NOT ACTIVE");
    cgs_report_print_escaped(text, report->program);
    cgs_text_print(text, " (pid %d), driver ", report->pid);
    if (report->driver_version > 0) {
        cgs_text_print(text, "%d.%d", report->driver_version / 1000,
                       report->driver_version % 1000 / 10);
    } else {
        cgs_text_print(text, "not known");
    }
    if (why_not != NULL) {
        cgs_text_print(text, ": ");
        cgs_report_print_escaped(text, why_not);
    }
    cgs_text_add(text, "\n", 1);
    if (report->note != NULL && report->note != why_not) {
        cgs_text_print(text, "  note: ");
        cgs_report_print_escaped(text, report->note);
        cgs_text_add(text, "\n", 1);
    }
}

static void cgs_report_print_total(cgs_text_t *text,
                                   const cgs_report_t *report,
                                   const cgs_report_total_t *total)
{
    unsigned share = cgs_report_share(total->swallowed_launches,
                                      total->launches);
    char     saved[CGS_REPORT_MAX_CELL] = "not known";

    if (total->host_saved_ns.known) {
        cgs_report_format_time(saved, total->host_saved_ns.value);
    }
    cgs_text_print(text, "  total: %s%u.%u%% of launches swallowed, %" PRIu64
                   " graph%s launched, host time saved: %s",
                   total->unseen_runs > 0 ? "about " : "", share / 10,
                   share % 10, total->graphs, total->graphs == 1 ? "" : "s",
                   saved);
    if (total->host_saved_ns.known && total->num_unknown > 0) {
        cgs_text_print(text, " (%zu region%s not known)",
                       total->num_unknown, total->num_unknown == 1 ? "" : "s");
    }
    if (total->runs == 0 && !cgs_report_observes(report)) {
        cgs_text_print(text, "\n  seen: nothing, since no region ran\n");
        return;
    }
    cgs_text_print(text, "\n  seen: %" PRIu64 " launches, %" PRIu64
                   " copies, %" PRIu64 " sets in %" PRIu64 " runs, %" PRIu64
                   " of them replayed, %" PRIu64 " plain", report->launches,
                   report->copies, report->sets,
                   total->runs - total->unseen_runs, total->replayed_runs,
                   total->plain_runs - total->unseen_runs);
    if (total->unseen_runs > 0) {
        cgs_text_print(text, "\n  not looked at: %" PRIu64 " run%s that the "
                       "gate sent plain", total->unseen_runs,
                       total->unseen_runs == 1 ? "" : "s");
    }
    cgs_text_add(text, "\n", 1);
}

/* The names that a rule could have matched */
static void cgs_report_print_names(cgs_text_t *text, size_t *line,
                                   const char *const *names, size_t num)
{
    cgs_text_t part = {0};
    size_t     i;

    for (i = 0; i < num; ++i) {
        cgs_text_print(&part, i == 0 ? " there were " : "");
        cgs_report_print_escaped(&part, names[i]);
        cgs_text_print(&part, i + 1 < num ? ", " : "");
        cgs_report_print_part(text, line, &part);
    }
    cgs_text_print(&part, num == 0 ? " there was none" : "");
    cgs_report_print_part(text, line, &part);
    cgs_text_release(&part);
}

/* Rules that nothing has matched are often misspelt */
static void cgs_report_print_strays(cgs_text_t *text,
                                    const cgs_report_t *report)
{
    const cgs_stray_t *stray;
    size_t            line, i;

    for (i = 0; i < report->num_strays; ++i) {
        stray = &report->strays[i];
        line  = text->length;
        if (stray->is_hidden) {
            cgs_text_print(text, "  CGSHIM_REGION_");
            cgs_report_print_escaped(text, stray->name);
            cgs_text_print(text, " never began: where it matches, a rule "
                           "before it does, or a region is open\n");
            continue;
        }
        cgs_text_print(text, "  no %s matched CGSHIM_REGION_",
                       stray->is_kernel ? "kernel" : "range");
        cgs_report_print_escaped(text, stray->name);
        cgs_text_print(text, ";");
        if (stray->is_kernel) {
            cgs_report_print_names(text, &line, report->kernels,
                                   report->num_kernels);
        } else {
            cgs_report_print_names(text, &line, report->ranges,
                                   report->num_ranges);
        }
        cgs_text_add(text, "\n", 1);
    }
}

/* Whether a region has a row: many that ran once hide the others */
static bool cgs_report_is_row(const cgs_report_t *report,
                              const cgs_region_report_t *region)
{
    return report->num_regions <= CGS_REPORT_MANY || region->runs > 1;
}

static void cgs_report_print_regions(cgs_text_t *text,
                                     const cgs_report_t *report)
{
    size_t                    widths[CGS_REPORT_NUM_COLUMNS] = {0};
    const cgs_region_report_t *region;
    char                      cell[CGS_REPORT_MAX_CELL];
    size_t                    row, i, width, num_left_out = 0;

    for (row = 0; row <= report->num_regions; ++row) {
        region = row > 0 ? &report->regions[row - 1] : NULL;
        if (region != NULL && !cgs_report_is_row(report, region)) {
            ++num_left_out;
            continue;
        }
        for (i = 0; i < CGS_REPORT_NUM_COLUMNS; ++i) {
            cgs_report_cell(cell, &cgs_report_columns[i], region);
            width     = cgs_report_text_width(cell);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    if (num_left_out < report->num_regions) {
        cgs_report_print_row(text, widths, NULL);
    }
    for (row = 0; row < report->num_regions; ++row) {
        if (cgs_report_is_row(report, &report->regions[row])) {
            cgs_report_print_region(text, widths, report,
                                    &report->regions[row]);
        }
    }
    if (num_left_out > 0) {
        cgs_text_print(text, "  %zu regions that ran once are left out\n",
                       num_left_out);
    }
}

static void cgs_report_table(cgs_text_t *text, const cgs_report_t *report)
{
    cgs_report_total_t total = cgs_report_sum(report);
    cgs_advice_t       advice;

    cgs_report_print_head(text, report, &total);
    cgs_report_print_total(text, report, &total);
    cgs_report_print_strays(text, report);
    cgs_advise(report, &advice);
    cgs_report_print_advice(text, "  ", &advice);
    cgs_report_print_regions(text, report);
}

/* ---- JSON ---- */

/* Text, and how deep in objects and arrays its end is */
typedef struct {
    cgs_text_t text;
    int        depth;
} cgs_report_json_t;

/* Counters of a region that are written as they are */
static const struct {
    const char *name;
    size_t     offset;
} cgs_report_counters[] = {
    {"runs", offsetof(cgs_region_report_t, runs)},
    {"replayed_runs", offsetof(cgs_region_report_t, replayed_runs)},
    {"recordings", offsetof(cgs_region_report_t, recordings)},
    {"plain_runs", offsetof(cgs_region_report_t, plain_runs)},
    {"unseen_runs", offsetof(cgs_region_report_t, unseen_runs)},
    {"calls", offsetof(cgs_region_report_t, calls)},
    {"seen_launches", offsetof(cgs_region_report_t, seen_launches)},
    {"swallowed", offsetof(cgs_region_report_t, swallowed)},
    {"swallowed_launches", offsetof(cgs_region_report_t, swallowed_launches)},
    {"launches", offsetof(cgs_region_report_t, launches)},
    {"patched", offsetof(cgs_region_report_t, patched)},
    {"barriers", offsetof(cgs_region_report_t, barriers)},
    {"variants", offsetof(cgs_region_report_t, variants)},
    {"chunks", offsetof(cgs_region_report_t, chunks)},
    {"nodes", offsetof(cgs_region_report_t, nodes)},
    {"builds", offsetof(cgs_region_report_t, builds)},
    {"build_ns", offsetof(cgs_region_report_t, build_ns)},
    {"graph_ns", offsetof(cgs_region_report_t, graph_ns)},
    {"device_bytes", offsetof(cgs_region_report_t, device_bytes)},
    {"host_bytes", offsetof(cgs_region_report_t, host_bytes)},
};

#define CGS_REPORT_NUM_COUNTERS \
    (sizeof(cgs_report_counters) / sizeof(cgs_report_counters[0]))

/* What stands before a value; key NULL in an array. The comma shows itself to
 * be needed by what the text ends in */
static void cgs_report_json_begin(cgs_report_json_t *json, const char *key)
{
    cgs_text_t *text = &json->text;

    if (text->length > 0) {
        if (strchr("{[", text->data[text->length - 1]) == NULL) {
            cgs_text_add(text, ",", 1);
        }
        cgs_text_print(text, "\n%*s", json->depth * 2, "");
    }
    if (key != NULL) {
        cgs_text_print(text, "\"%s\": ", key);
    }
}

static void cgs_report_json_open(cgs_report_json_t *json, const char *key,
                                 const char *bracket)
{
    cgs_report_json_begin(json, key);
    cgs_text_add(&json->text, bracket, 1);
    ++json->depth;
}

static void cgs_report_json_close(cgs_report_json_t *json, const char *bracket)
{
    cgs_text_t *text = &json->text;

    --json->depth;
    if (text->length > 0 &&
        strchr("{[", text->data[text->length - 1]) == NULL) {
        cgs_text_print(text, "\n%*s", json->depth * 2, "");
    }
    cgs_text_add(text, bracket, 1);
}

static void cgs_report_json_string(cgs_report_json_t *json, const char *key,
                                   const char *value)
{
    cgs_report_json_begin(json, key);
    if (value == NULL) {
        cgs_text_print(&json->text, "null");
    } else {
        cgs_text_add_json(&json->text, value);
    }
}

static void cgs_report_json_unsigned(cgs_report_json_t *json, const char *key,
                                     uint64_t value)
{
    cgs_report_json_begin(json, key);
    cgs_text_print(&json->text, "%" PRIu64, value);
}

static void cgs_report_json_int(cgs_report_json_t *json, const char *key,
                                int value)
{
    cgs_report_json_begin(json, key);
    cgs_text_print(&json->text, "%d", value);
}

static void cgs_report_json_figure(cgs_report_json_t *json, const char *key,
                                   cgs_figure_t figure)
{
    cgs_report_json_begin(json, key);
    if (figure.known) {
        cgs_text_print(&json->text, "%" PRId64, figure.value);
    } else {
        cgs_text_print(&json->text, "null");
    }
}

static void cgs_report_json_bool(cgs_report_json_t *json, const char *key,
                                 bool value)
{
    cgs_report_json_begin(json, key);
    cgs_text_print(&json->text, "%s", value ? "true" : "false");
}

static void cgs_report_json_bytes(cgs_report_json_t *json, const char *key,
                                  const uint8_t *bytes, uint32_t count)
{
    char     digits[2 * CGS_REPORT_MAX_BYTES + 1] = "";
    uint32_t i;

    for (i = 0; i < count && i < CGS_REPORT_MAX_BYTES; ++i) {
        snprintf(digits + (size_t)2 * i, 3, "%02x", bytes[i]);
    }
    cgs_report_json_string(json, key, digits);
}

static void cgs_report_json_divergence(cgs_report_json_t *json,
                                       const cgs_divergence_t *divergence)
{
    if (!divergence->valid) {
        cgs_report_json_string(json, "first_divergence", NULL);
        return;
    }
    cgs_report_json_open(json, "first_divergence", "{");
    cgs_report_json_unsigned(json, "run", divergence->run);
    cgs_report_json_unsigned(json, "op_index", divergence->op_index);
    cgs_report_json_string(json, "call", divergence->call);
    cgs_report_json_string(json, "kernel", divergence->kernel);
    cgs_report_json_string(json, "what", divergence->what);
    cgs_report_json_int(json, "arg", divergence->arg);
    cgs_report_json_unsigned(json, "offset", divergence->offset);
    cgs_report_json_unsigned(json, "size", divergence->size);
    cgs_report_json_bytes(json, "old_bytes", divergence->old_bytes,
                          divergence->num_bytes);
    cgs_report_json_bytes(json, "new_bytes", divergence->new_bytes,
                          divergence->num_bytes);
    cgs_report_json_string(json, "old_text", divergence->old_text);
    cgs_report_json_string(json, "new_text", divergence->new_text);
    cgs_report_json_close(json, "}");
}

static void cgs_report_json_reasons(cgs_report_json_t *json, const char *name,
                                    const cgs_fallback_t *reasons, size_t num)
{
    size_t i;

    cgs_report_json_open(json, name, "[");
    for (i = 0; i < num; ++i) {
        cgs_report_json_open(json, NULL, "{");
        cgs_report_json_string(json, "reason", reasons[i].reason);
        cgs_report_json_unsigned(json, "count", reasons[i].count);
        cgs_report_json_close(json, "}");
    }
    cgs_report_json_close(json, "]");
}

static void cgs_report_json_mistake(cgs_report_json_t *json,
                                    const cgs_mistake_t *mistake)
{
    if (!mistake->valid) {
        cgs_report_json_string(json, "mistake", NULL);
        return;
    }
    cgs_report_json_open(json, "mistake", "{");
    cgs_report_json_unsigned(json, "run", mistake->run);
    cgs_report_json_unsigned(json, "nodes", mistake->nodes);
    cgs_report_json_unsigned(json, "base", mistake->base);
    cgs_report_json_unsigned(json, "bytes", mistake->bytes);
    cgs_report_json_unsigned(json, "offset", mistake->offset);
    cgs_report_json_unsigned(json, "op_index", mistake->op);
    cgs_report_json_string(json, "kernel", mistake->kernel);
    cgs_report_json_close(json, "}");
}

/* Places that differ, the most often first */
static void cgs_report_json_changes(cgs_report_json_t *json,
                                    const cgs_changes_t *changes)
{
    const cgs_change_t *order[CGS_MAX_CHANGES];
    char               pattern[CGS_REPORT_MAX_CELL];
    unsigned           share;
    uint32_t           i, num = changes != NULL ? changes->num : 0;

    cgs_report_json_unsigned(json, "watched_runs",
                             changes != NULL ? changes->watched : 0);
    cgs_report_json_open(json, "divergences", "[");
    if (num > 0) {
        cgs_changes_sort(changes, order);
    }
    for (i = 0; i < num; ++i) {
        cgs_report_json_open(json, NULL, "{");
        cgs_report_json_unsigned(json, "op_index", order[i]->op_index);
        cgs_report_json_string(json, "call", order[i]->call);
        cgs_report_json_string(json, "kernel", order[i]->kernel);
        cgs_report_json_string(json, "what", order[i]->what);
        cgs_report_json_int(json, "arg", order[i]->arg);
        cgs_report_json_unsigned(json, "runs", order[i]->runs);
        share = cgs_report_share(order[i]->runs, changes->watched);
        cgs_report_json_begin(json, "share");
        cgs_text_print(&json->text, "%u.%03u", share / 1000, share % 1000);
        cgs_report_format_pattern(pattern, order[i]);
        cgs_report_json_string(json, "pattern", pattern[0] != '\0' ? pattern :
                                                                     NULL);
        cgs_report_json_close(json, "}");
    }
    cgs_report_json_close(json, "]");
}

static void cgs_report_json_advice(cgs_report_json_t *json,
                                   const cgs_advice_t *advice)
{
    unsigned i;

    cgs_report_json_open(json, "advice", "[");
    for (i = 0; i < advice->num; ++i) {
        cgs_report_json_string(json, NULL, advice->line[i]);
    }
    cgs_report_json_close(json, "]");
}

static void cgs_report_json_names(cgs_report_json_t *json, const char *key,
                                  const char *const *names, size_t num)
{
    size_t i;

    cgs_report_json_open(json, key, "[");
    for (i = 0; i < num; ++i) {
        cgs_report_json_string(json, NULL, names[i]);
    }
    cgs_report_json_close(json, "]");
}

static void cgs_report_json_strays(cgs_report_json_t *json,
                                   const cgs_report_t *report)
{
    size_t i;

    cgs_report_json_open(json, "unmatched", "[");
    for (i = 0; i < report->num_strays; ++i) {
        cgs_report_json_open(json, NULL, "{");
        cgs_report_json_string(json, "rule", report->strays[i].name);
        cgs_report_json_string(json, "of", report->strays[i].is_kernel ?
                               "kernel" : "range");
        cgs_report_json_bool(json, "hidden", report->strays[i].is_hidden);
        cgs_report_json_close(json, "}");
    }
    cgs_report_json_close(json, "]");
}

static void cgs_report_json_region(cgs_report_json_t *json,
                                   const cgs_report_t *report,
                                   const cgs_region_report_t *region)
{
    cgs_advice_t advice;
    size_t       i;

    cgs_report_json_open(json, NULL, "{");
    cgs_report_json_string(json, "name", region->name);
    cgs_report_json_string(json, "state", region->state);
    for (i = 0; i < CGS_REPORT_NUM_COUNTERS; ++i) {
        cgs_report_json_unsigned(json, cgs_report_counters[i].name,
            cgs_report_counter(region, cgs_report_counters[i].offset));
    }
    cgs_report_json_figure(json, "plain_call_ns", region->plain_call_ns);
    cgs_report_json_figure(json, "host_saved_ns", region->host_saved_ns);
    cgs_report_json_figure(json, "plain_run_ns", region->plain_run_ns);
    cgs_report_json_figure(json, "replayed_run_ns", region->replayed_run_ns);
    cgs_report_json_reasons(json, "fallbacks", region->fallbacks,
                            region->num_fallbacks);
    cgs_report_json_reasons(json, "cuts", region->cuts, region->num_cuts);
    cgs_report_json_bool(json, "verifies", region->verifies);
    cgs_report_json_unsigned(json, "verified", region->verified);
    cgs_report_json_reasons(json, "unverified", region->unverified,
                            region->num_unverified);
    cgs_report_json_mistake(json, &region->mistake);
    cgs_report_json_divergence(json, &region->first_divergence);
    cgs_report_json_changes(json, region->changes);
    cgs_advise_region(report, region, &advice);
    cgs_report_json_advice(json, &advice);
    cgs_report_json_close(json, "}");
}

static void cgs_report_json(cgs_text_t *text, const cgs_report_t *report)
{
    cgs_report_json_t  json  = {.depth = 0};
    cgs_report_total_t total = cgs_report_sum(report);
    const char         *why_not = cgs_report_why_not(report, &total);
    cgs_advice_t       advice;
    size_t             i;

    cgs_report_json_open(&json, NULL, "{");
    cgs_report_json_int(&json, "schema", CGS_REPORT_SCHEMA);
    cgs_report_json_string(&json, "kind", "report");
    cgs_report_json_string(&json, "version", report->version);
    cgs_report_json_string(&json, "program", report->program);
    cgs_report_json_int(&json, "pid", report->pid);
    cgs_report_json_string(&json, "mode", report->mode);
    cgs_report_json_bool(&json, "active", why_not == NULL);
    cgs_report_json_string(&json, "why_not", why_not);
    cgs_report_json_int(&json, "driver_version", report->driver_version);
    cgs_report_json_string(&json, "note", report->note);
    cgs_report_json_unsigned(&json, "launches", report->launches);
    cgs_report_json_unsigned(&json, "copies", report->copies);
    cgs_report_json_unsigned(&json, "sets", report->sets);
    cgs_report_json_unsigned(&json, "swallowed_launches",
                             total.swallowed_launches);
    cgs_report_json_unsigned(&json, "graphs", total.graphs);
    cgs_report_json_figure(&json, "host_saved_ns", total.host_saved_ns);
    cgs_report_json_unsigned(&json, "looked_at", report->looked_at);
    cgs_report_json_unsigned(&json, "repeating", report->repeating);
    cgs_report_json_strays(&json, report);
    cgs_report_json_names(&json, "other_ranges", report->ranges,
                          report->num_ranges);
    cgs_report_json_names(&json, "other_kernels", report->kernels,
                          report->num_kernels);
    cgs_advise(report, &advice);
    cgs_report_json_advice(&json, &advice);
    cgs_report_json_open(&json, "regions", "[");
    for (i = 0; i < report->num_regions; ++i) {
        cgs_report_json_region(&json, report, &report->regions[i]);
    }
    cgs_report_json_close(&json, "]");
    cgs_report_json_close(&json, "}");
    cgs_text_add(&json.text, "\n", 1);
    *text = json.text;
}

/* ---- Where it goes ---- */

int cgs_report_write(const cgs_report_t *report, const char *target)
{
    cgs_text_t text = {0};

    if (strcmp(target, "stderr") == 0) {
        cgs_report_table(&text, report);
    } else {
        cgs_report_json(&text, report);
    }
    return cgs_file_deliver(&text, target);
}
