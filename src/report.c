/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report: what was seen and done in this process, as a table or as JSON.
 */
#define _GNU_SOURCE 1
#include "report.h"

#include "file.h"
#include "log.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
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
    cgs_text_escape(out, CGS_REPORT_MAX_NAME + 1, region->state);
}

/* Rounded down: 100% is all of them and not nearly so */
static void cgs_report_format_share(char *out,
                                    const cgs_region_report_t *region)
{
    double   share;
    unsigned tenths;

    if (region->swallowed >= region->calls) {
        tenths = region->calls > 0 ? 1000 : 0;
    } else {
        share  = (double)region->swallowed / (double)region->calls;
        tenths = (unsigned)(share * 1000);
        tenths = tenths < 1000 ? tenths : 999;
    }
    cgs_report_format_tenths(out, tenths, "%");
}

static void cgs_report_format_build(char *out,
                                    const cgs_region_report_t *region)
{
    cgs_report_format_tenths(out, region->build_ns / 100000 +
                                  (region->build_ns % 100000 >= 50000), "");
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
    {"graphs", offsetof(cgs_region_report_t, launches), NULL, false},
    {"patched", offsetof(cgs_region_report_t, patched), NULL, false},
    {"nodes", offsetof(cgs_region_report_t, nodes), NULL, false},
    {"build ms", 0, cgs_report_format_build, false},
    {"device KB", 0, cgs_report_format_device, false},
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
        /* The blank after the comma of the part before */
        while (text->length > 0 && text->data[text->length - 1] == ' ') {
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

static void cgs_report_print_divergence(cgs_text_t *text,
                                        const cgs_divergence_t *divergence)
{
    size_t     line = text->length;
    cgs_text_t part = {0};

    cgs_text_print(text, "    first divergence: run %" PRIu64 ", call %" PRIu64
                   ", ", divergence->run, divergence->op_index);
    if (divergence->kernel != NULL) {
        cgs_text_print(&part, "%s", strcmp(divergence->kernel, "copy") == 0 ||
                       strcmp(divergence->kernel, "set") == 0 ? "" :
                       "kernel ");
        cgs_report_print_escaped(&part, divergence->kernel);
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

static void cgs_report_print_region(cgs_text_t *text, const size_t *widths,
                                    const cgs_region_report_t *region)
{
    cgs_report_print_row(text, widths, region);
    if (region->first_divergence.valid) {
        cgs_report_print_divergence(text, &region->first_divergence);
    }
    cgs_report_print_reasons(text, "plain", region->fallbacks,
                             region->num_fallbacks);
    cgs_report_print_reasons(text, "cut", region->cuts, region->num_cuts);
}

static void cgs_report_print_head(cgs_text_t *text, const cgs_report_t *report)
{
    const char *mode = report->mode;

    cgs_text_print(text, "cgshim ");
    cgs_report_print_escaped(text, report->version);
    cgs_text_print(text, ": ");
    cgs_report_print_escaped(text, report->program);
    cgs_text_print(text, " (pid %d), driver ", report->pid);
    if (report->driver_version > 0) {
        cgs_text_print(text, "%d.%d, ", report->driver_version / 1000,
                       report->driver_version % 1000 / 10);
    } else {
        cgs_text_print(text, "not known, ");
    }
    if (mode != NULL && strcmp(mode, "on") == 0) {
        mode = "replaying";
    } else if (mode != NULL && strcmp(mode, "observe") == 0) {
        mode = "observing";
    }
    cgs_report_print_escaped(text, mode);
    cgs_text_print(text, "\n  seen: %" PRIu64 " launches, %" PRIu64
                   " copies, %" PRIu64 " sets\n", report->launches,
                   report->copies, report->sets);
    if (report->note != NULL) {
        cgs_text_print(text, "  note: ");
        cgs_report_print_escaped(text, report->note);
        cgs_text_add(text, "\n", 1);
    }
}

static void cgs_report_table(cgs_text_t *text, const cgs_report_t *report)
{
    size_t   widths[CGS_REPORT_NUM_COLUMNS] = {0};
    char     cell[CGS_REPORT_MAX_CELL];
    uint64_t runs = 0;
    size_t   row, i, width;

    cgs_report_print_head(text, report);
    for (row = 0; row < report->num_regions; ++row) {
        runs += report->regions[row].runs;
    }
    if (runs == 0) {
        cgs_text_print(text, "  no region ran; regions are NVTX ranges, or "
                       "what CGSHIM_REGION_<name> rules name\n");
    }
    if (report->num_regions == 0) {
        return;
    }
    for (row = 0; row <= report->num_regions; ++row) {
        for (i = 0; i < CGS_REPORT_NUM_COLUMNS; ++i) {
            cgs_report_cell(cell, &cgs_report_columns[i],
                            row > 0 ? &report->regions[row - 1] : NULL);
            width     = cgs_report_text_width(cell);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    cgs_report_print_row(text, widths, NULL);
    for (row = 0; row < report->num_regions; ++row) {
        cgs_report_print_region(text, widths, &report->regions[row]);
    }
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
    {"calls", offsetof(cgs_region_report_t, calls)},
    {"swallowed", offsetof(cgs_region_report_t, swallowed)},
    {"launches", offsetof(cgs_region_report_t, launches)},
    {"patched", offsetof(cgs_region_report_t, patched)},
    {"barriers", offsetof(cgs_region_report_t, barriers)},
    {"variants", offsetof(cgs_region_report_t, variants)},
    {"chunks", offsetof(cgs_region_report_t, chunks)},
    {"nodes", offsetof(cgs_region_report_t, nodes)},
    {"builds", offsetof(cgs_region_report_t, builds)},
    {"build_ns", offsetof(cgs_region_report_t, build_ns)},
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

static void cgs_report_json_bytes(cgs_report_json_t *json, const char *key,
                                  const uint8_t *bytes, uint32_t count)
{
    char     digits[2 * CGS_REPORT_MAX_BYTES + 1] = "";
    uint32_t i;

    for (i = 0; i < count && i < CGS_REPORT_MAX_BYTES; ++i) {
        snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
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

static void cgs_report_json_region(cgs_report_json_t *json,
                                   const cgs_region_report_t *region)
{
    size_t i;

    cgs_report_json_open(json, NULL, "{");
    cgs_report_json_string(json, "name", region->name);
    cgs_report_json_string(json, "state", region->state);
    for (i = 0; i < CGS_REPORT_NUM_COUNTERS; ++i) {
        cgs_report_json_unsigned(json, cgs_report_counters[i].name,
            cgs_report_counter(region, cgs_report_counters[i].offset));
    }
    cgs_report_json_reasons(json, "fallbacks", region->fallbacks,
                            region->num_fallbacks);
    cgs_report_json_reasons(json, "cuts", region->cuts, region->num_cuts);
    cgs_report_json_divergence(json, &region->first_divergence);
    cgs_report_json_close(json, "}");
}

static void cgs_report_json(cgs_text_t *text, const cgs_report_t *report)
{
    cgs_report_json_t json = {.depth = 0};
    size_t            i;

    cgs_report_json_open(&json, NULL, "{");
    cgs_report_json_string(&json, "version", report->version);
    cgs_report_json_string(&json, "program", report->program);
    cgs_report_json_int(&json, "pid", report->pid);
    cgs_report_json_string(&json, "mode", report->mode);
    cgs_report_json_int(&json, "driver_version", report->driver_version);
    cgs_report_json_string(&json, "note", report->note);
    cgs_report_json_unsigned(&json, "launches", report->launches);
    cgs_report_json_unsigned(&json, "copies", report->copies);
    cgs_report_json_unsigned(&json, "sets", report->sets);
    cgs_report_json_open(&json, "regions", "[");
    for (i = 0; i < report->num_regions; ++i) {
        cgs_report_json_region(&json, &report->regions[i]);
    }
    cgs_report_json_close(&json, "]");
    cgs_report_json_close(&json, "}");
    cgs_text_add(&json.text, "\n", 1);
    *text = json.text;
}

/* ---- Where it goes ---- */

int cgs_report_write(const cgs_report_t *report, const char *target)
{
    bool       to_stderr   = strcmp(target, "stderr") == 0;
    int        saved_errno = errno;
    cgs_text_t text        = {0};
    int        cancel_state, status;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    if (to_stderr) {
        cgs_report_table(&text, report);
    } else {
        cgs_report_json(&text, report);
    }
    if (text.failed) {
        status = -ENOMEM;
    } else if (to_stderr) {
        status = cgs_log_write(STDERR_FILENO, text.data, text.length);
    } else {
        status = cgs_file_write(target, text.data, text.length);
    }
    cgs_text_release(&text);
    pthread_setcancelstate(cancel_state, NULL);
    errno = saved_errno;
    return status;
}
