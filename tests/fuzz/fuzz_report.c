/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as table and as JSON: strings end at a NUL ("-" is none), each
 * number is a byte.
 *
 * Whatever regions and kernels are called and whatever the numbers, the table
 * is whole lines, and the JSON is JSON in which names are as they were.
 */
/* What is printed is static there. */
#include "../../src/report.c"

#include "fuzz.h"

#define MAX_REGIONS 40
#define MAX_REASONS 4
#define MAX_STRINGS (16 + MAX_REGIONS * (20 + 3 * MAX_REASONS))

/* A report, and what it points to. */
typedef struct {
    fuzz_input_t        input;
    cgs_report_t        report;
    cgs_region_report_t regions[MAX_REGIONS];
    cgs_changes_t       changes[MAX_REGIONS];
    cgs_fallback_t      reasons[MAX_REGIONS][3][MAX_REASONS];
    char                *strings[MAX_STRINGS];
    size_t              num_strings;
} made_t;

static const char *make_string(made_t *made)
{
    char *string = fuzz_string_or_null(&made->input);

    FUZZ_CHECK(made->num_strings < MAX_STRINGS, "too many strings");
    made->strings[made->num_strings++] = string;
    return string;
}

/* What is never NULL where it counts. */
static const char *make_name(made_t *made)
{
    const char *name = make_string(made);

    return name != NULL ? name : "";
}

static cgs_figure_t make_figure(made_t *made)
{
    unsigned byte = fuzz_byte(&made->input);

    return (cgs_figure_t){
        .known = byte & 1,
        .value = (int64_t)(byte & 2 ? fuzz_number(&made->input) :
                                      0 - fuzz_number(&made->input)),
    };
}

static size_t make_reasons(made_t *made, cgs_fallback_t *reasons)
{
    size_t num = fuzz_byte(&made->input) % (MAX_REASONS + 1), i;

    for (i = 0; i < num; ++i) {
        reasons[i].count  = fuzz_number(&made->input);
        reasons[i].reason = make_string(made);
    }
    return num;
}

static void make_divergence(made_t *made, cgs_divergence_t *divergence)
{
    unsigned i;

    divergence->valid     = fuzz_byte(&made->input) & 1;
    divergence->run       = fuzz_number(&made->input);
    divergence->op_index  = fuzz_number(&made->input);
    divergence->arg       = (int)fuzz_number(&made->input);
    divergence->offset    = (uint32_t)fuzz_number(&made->input);
    divergence->size      = (uint32_t)fuzz_number(&made->input);
    divergence->num_bytes = (uint32_t)fuzz_number(&made->input);
    for (i = 0; i < CGS_REPORT_MAX_BYTES; ++i) {
        divergence->old_bytes[i] = (uint8_t)(i * 37);
        divergence->new_bytes[i] = (uint8_t)(i * 91);
    }
    divergence->call     = make_string(made);
    divergence->kernel   = make_string(made);
    divergence->what     = make_string(made);
    divergence->old_text = make_string(made);
    divergence->new_text = make_string(made);
}

static void make_mistake(made_t *made, cgs_mistake_t *mistake)
{
    mistake->valid  = fuzz_byte(&made->input) & 1;
    mistake->run    = fuzz_number(&made->input);
    mistake->nodes  = fuzz_number(&made->input);
    mistake->base   = fuzz_number(&made->input);
    mistake->bytes  = fuzz_number(&made->input);
    mistake->offset = fuzz_number(&made->input);
    mistake->op     = fuzz_number(&made->input);
    mistake->kernel = make_string(made);
}

/* Made by changes.c, which has tests of its own: values are in its bounds. */
static void make_changes(made_t *made, cgs_changes_t *changes)
{
    cgs_change_t *change;
    uint32_t     i;

    changes->watched = fuzz_number(&made->input);
    changes->num     = fuzz_byte(&made->input) % (CGS_MAX_CHANGES + 1);
    for (i = 0; i < changes->num; ++i) {
        change             = &changes->entry[i];
        change->op_index   = fuzz_number(&made->input);
        change->arg        = (int)fuzz_number(&made->input);
        change->is_address = fuzz_byte(&made->input) & 1;
        change->runs       = fuzz_number(&made->input);
        change->num        = (uint32_t)fuzz_number(&made->input);
        change->fresh      = (uint32_t)fuzz_number(&made->input);
        change->grew       = (uint32_t)fuzz_number(&made->input);
        change->shrank     = (uint32_t)fuzz_number(&made->input);
        change->num_values = fuzz_byte(&made->input) % (CGS_MAX_VALUES + 1);
        change->call       = make_string(made);
        change->kernel     = make_string(made);
        change->what       = make_string(made);
    }
}

static void make_region(made_t *made, size_t index)
{
    cgs_region_report_t *region = &made->regions[index];
    cgs_fallback_t      (*reasons)[MAX_REASONS] = made->reasons[index];
    uint64_t            number;
    size_t              i;

    region->name  = make_name(made);
    region->state = make_string(made);
    for (i = 0; i < CGS_REPORT_NUM_COUNTERS; ++i) {
        number = fuzz_number(&made->input);
        memcpy((char *)region + cgs_report_counters[i].offset, &number,
               sizeof(number));
    }
    region->verified        = fuzz_number(&made->input);
    region->plain_call_ns   = make_figure(made);
    region->host_saved_ns   = make_figure(made);
    region->plain_run_ns    = make_figure(made);
    region->replayed_run_ns = make_figure(made);
    region->fallbacks       = reasons[0];
    region->num_fallbacks   = make_reasons(made, reasons[0]);
    region->cuts            = reasons[1];
    region->num_cuts        = make_reasons(made, reasons[1]);
    region->unverified      = reasons[2];
    region->num_unverified  = make_reasons(made, reasons[2]);
    make_divergence(made, &region->first_divergence);
    make_mistake(made, &region->mistake);
    if (fuzz_byte(&made->input) & 1) {
        make_changes(made, &made->changes[index]);
        region->changes = &made->changes[index];
    }
}

static void make_report(made_t *made)
{
    cgs_report_t *report = &made->report;
    size_t       i;

    report->num_regions    = fuzz_byte(&made->input) % (MAX_REGIONS + 1);
    report->version        = make_string(made);
    report->program        = make_string(made);
    report->mode           = make_string(made);
    report->note           = make_string(made);
    report->pid            = (int)fuzz_number(&made->input);
    report->driver_version = (int)fuzz_number(&made->input);
    report->launches       = fuzz_number(&made->input);
    report->copies         = fuzz_number(&made->input);
    report->sets           = fuzz_number(&made->input);
    report->regions        = made->regions;
    for (i = 0; i < report->num_regions; ++i) {
        make_region(made, i);
    }
}

/* ---- What is in the JSON ---- */

typedef struct {
    const made_t *made;
    size_t       num_names;
} seen_t;

static void look_at(const char *key, const char *value, void *arg)
{
    seen_t *seen = arg;
    char   *expected;

    if ((key == NULL) || (strcmp(key, "name") != 0)) {
        return;
    }
    FUZZ_CHECK(seen->num_names < seen->made->report.num_regions, "%s", value);
    expected = fuzz_replaced(seen->made->regions[seen->num_names++].name);
    FUZZ_CHECK(strcmp(value, expected) == 0, "%s is %s", expected, value);
    free(expected);
}

static void check_report(const made_t *made)
{
    cgs_text_t text = {0};
    seen_t     seen = {.made = made};

    cgs_report_table(&text, &made->report);
    FUZZ_CHECK(!text.failed, "no memory");
    FUZZ_CHECK(fuzz_are_lines(text.data, text.length), "%.*s",
               (int)text.length, text.data);
    FUZZ_CHECK(memmem(text.data, text.length, "\n\n", 2) == NULL,
               "an empty line: %.*s", (int)text.length, text.data);
    cgs_text_release(&text);

    cgs_report_json(&text, &made->report);
    FUZZ_CHECK(!text.failed, "no memory");
    FUZZ_CHECK(fuzz_is_json(text.data, text.length, look_at, &seen), "%.*s",
               (int)text.length, text.data);
    FUZZ_CHECK(seen.num_names == made->report.num_regions, "%zu",
               seen.num_names);
    cgs_text_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    made_t *made = calloc(1, sizeof(*made));
    size_t i;

    FUZZ_CHECK(made != NULL, "no memory");
    made->input = (fuzz_input_t){data, data + size};
    make_report(made);
    check_report(made);
    for (i = 0; i < made->num_strings; ++i) {
        free(made->strings[i]);
    }
    free(made);
    return 0;
}
