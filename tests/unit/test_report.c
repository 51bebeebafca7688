/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as people read it on stderr and as programs read it in a file.
 */
#define _GNU_SOURCE 1
#include "report.h"

#include "capture.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const cgs_fallback_t fallbacks[] = {
    {"cuMemcpyDtoH needs the host to wait", 3},
    {"a capture of the program was open", 1},
};

static const cgs_fallback_t unverified[] = {
    {"a copy to an array", 1},
};

/* Argument 1 of k_axpy takes two buffers by turns; a grid grows */
static const cgs_changes_t changes = {
    .runs = 996, .watched = 100, .num = 2,
    .entry = {
        {
            .op_index = 9, .call = "kernel", .kernel = "k_sum",
            .what = "grid", .arg = -1, .runs = 71, .num = 71, .fresh = 71,
            .grew = 71, .num_values = 8,
        },
        {
            .op_index = 7, .call = "kernel", .kernel = "k_axpy",
            .what = "argument", .arg = 1, .is_address = true, .runs = 99,
            .num = 99, .fresh = 1, .grew = 50, .shrank = 49, .num_values = 2,
        },
    },
};

static const cgs_region_report_t regions[] = {
    {
        .name = "step", .state = "replaying", .runs = 1000,
        .replayed_runs = 996, .recordings = 1, .plain_runs = 3,
        .calls = 200000, .seen_launches = 199000,
        .swallowed = 199800, .launches = 1998,
        .patched = 7, .barriers = 1000, .variants = 3, .chunks = 2,
        .nodes = 200,
        .builds = 2, .build_ns = 1249999, .device_bytes = 831489,
        .host_bytes = 65536, .swallowed_launches = 198801,
        .graph_ns = 19980000, .plain_call_ns = {true, 2500},
        .host_saved_ns = {true, 478270001}, .plain_run_ns = {true, 58912},
        .replayed_run_ns = {true, 15840}, .changes = &changes,
        .fallbacks = fallbacks, .num_fallbacks = 2,
        .verified = 12, .unverified = unverified, .num_unverified = 1,
        .mistake = {
            .valid = true, .run = 3, .nodes = 40, .base = 0x7f0000001000,
            .bytes = 4096, .offset = 17, .op = 39, .kernel = "k_hash",
        },
        .first_divergence = {
            .valid = true, .run = 2, .op_index = 7, .call = "kernel",
            .kernel = "k_axpy", .what = "argument", .arg = 2, .offset = 0,
            .size = 8,
            .old_bytes = {0x00, 0x10, 0x00, 0x00, 0xff, 0x7f},
            .new_bytes = {0x00, 0x20, 0x00, 0x00, 0xff, 0x7f},
            .num_bytes = 8,
        },
    },
    {
        .name = "caf\xc3\xa9 of a name too long for the table",
        .state = "recording", .runs = 1, .recordings = 1, .calls = 12345678,
        .first_divergence = {.arg = -1},
    },
};

static const cgs_report_t report = {
    .version = "0.1.0", .program = "./heat", .pid = 4242, .mode = "on",
    .driver_version = 13010, .note = NULL, .launches = 199000,
    .copies = 1000, .sets = 20, .regions = regions, .num_regions = 2,
};

/* A report of one region whose first divergence is this */
static cgs_report_t report_of(const cgs_divergence_t *divergence,
                              cgs_region_report_t *region)
{
    cgs_report_t whole = report;

    *region                  = regions[1];
    region->name             = "r";
    region->first_divergence = *divergence;
    whole.regions            = region;
    whole.num_regions        = 1;
    return whole;
}

/* What goes to stderr, to be freed */
static char *table_of(const cgs_report_t *whole)
{
    capture_t capture;

    capture_begin(&capture);
    ck_assert_int_eq(cgs_report_write(whole, "stderr"), 0);
    capture_end(&capture);
    return capture.text;
}

static void expect_in_table(const cgs_report_t *whole, const char *text)
{
    char *table = table_of(whole);

    ck_assert_msg(strstr(table, text) != NULL, "no \"%s\" in\n%s", text,
                  table);
    free(table);
}

static void expect_not_in_table(const cgs_report_t *whole, const char *text)
{
    char *table = table_of(whole);

    ck_assert_msg(strstr(table, text) == NULL, "\"%s\" in\n%s", text, table);
    free(table);
}

/* ---- A reader of JSON, as strict as RFC 8259. Each function gets the first
 * character of a value and returns what follows it, NULL for an error ---- */

static const char *json_value(const char *s);

static const char *json_blank(const char *s)
{
    return s + strspn(s, " \n\r\t");
}

static const char *json_string(const char *s)
{
    if (*s++ != '"') {
        return NULL;
    }
    for (; *s != '"'; ++s) {
        if ((unsigned char)*s < 0x20) {
            return NULL;
        }
        if (*s == '\\') {
            ++s;
            if (*s == '\0' || strchr("\"\\/bfnrtu", *s) == NULL ||
                (*s == 'u' && strspn(s + 1, "0123456789abcdef") < 4)) {
                return NULL;
            }
        }
    }
    return s + 1;
}

static const char *json_number(const char *s)
{
    size_t digits;

    s     += *s == '-';
    digits = strspn(s, "0123456789");
    if (digits == 0 || (*s == '0' && digits > 1)) {
        return NULL;
    }
    s += digits;
    if (*s != '.') {
        return s;
    }
    digits = strspn(s + 1, "0123456789");
    return digits > 0 ? s + 1 + digits : NULL;
}

static const char *json_members(const char *s, char close)
{
    s = json_blank(s + 1);
    if (*s == close) {
        return s + 1;
    }
    for (;;) {
        if (close == '}') {
            s = json_string(s);
            if (s == NULL || *(s = json_blank(s)) != ':') {
                return NULL;
            }
            s = json_blank(s + 1);
        }
        s = json_value(s);
        if (s == NULL) {
            return NULL;
        }
        s = json_blank(s);
        if (*s == close) {
            return s + 1;
        } else if (*s != ',') {
            return NULL;
        }
        s = json_blank(s + 1);
    }
}

static const char *json_value(const char *s)
{
    if (*s == '{') {
        return json_members(s, '}');
    } else if (*s == '[') {
        return json_members(s, ']');
    } else if (*s == '"') {
        return json_string(s);
    } else if (strncmp(s, "null", 4) == 0 || strncmp(s, "true", 4) == 0) {
        return s + 4;
    } else if (strncmp(s, "false", 5) == 0) {
        return s + 5;
    }
    return json_number(s);
}

static void expect_json(const char *text)
{
    const char *end = json_value(text);

    ck_assert_msg(end != NULL && strcmp(end, "\n") == 0, "%s", text);
}

/* ---- The table ---- */

START_TEST(the_table_is_aligned_and_says_all)
{
    char *table = table_of(&report);

    ck_assert_str_eq(table,
"cgshim 0.1.0: active in ./heat (pid 4242), driver 13.1\n"
"  total: 99.9% of launches swallowed, 1998 graphs launched, host time saved: "
"478.2 ms (1 region not known)\n"
"  seen: 199000 launches, 1000 copies, 20 sets in 1001 runs, 996 of them "
"replayed, 3 plain\n"
"  region               runs  replayed   calls  swallowed  saved ms  graphs  "
"patched  build ms  GPU KB  state\n"
"  step                 1000       996  200000      99.9%     478.2    1998  "
"      7       1.2     813  replaying\n"
"    from run to run: 58.9 us plain, 15.8 us replayed\n"
"    first divergence: run 2, call 7, kernel k_axpy, argument 2 (offset 0 of "
"8): 0x00007fff00001000\n"
"        -> 0x00007fff00002000\n"
"    most often: in 99.0% of runs call 7, kernel k_axpy, argument 1: "
"alternates among 2 buffers\n"
"    plain: 3 times: cuMemcpyDtoH needs the host to wait\n"
"    plain: 1 time: a capture of the program was open\n"
"    verified: 12 graphs left what their calls leave\n"
"    not verified: 1 time: a copy to an array\n"
"    WRONG: run 3, a graph of 40 calls left other bytes than these calls leave:\n"
"        buffer 0x7f0000001000 of 4096 bytes, first at byte 17, last taken by "
"call 39, k_hash\n"
"  caf\xc3\xa9 of a name t...     1         0   12.3M       0.0%         -     "
"  0        0       0.0       0  recording\n"
"    advice: it ran once, and only what comes again is replayed\n");
    free(table);
}
END_TEST

START_TEST(runs_that_nobody_looked_at_are_taken_to_be_like_the_others)
{
    cgs_region_report_t region = regions[0];
    cgs_report_t        whole  = report;

    /* A tenth of the runs is seen, and nearly all of that is swallowed. */
    region.runs          = 10010;
    region.plain_runs    = 9013;
    region.unseen_runs   = 9010;
    whole.regions        = &region;
    whole.num_regions    = 1;
    expect_in_table(&whole, "\n  total: about 9.9% of launches swallowed, ");
    expect_in_table(&whole, " in 1000 runs, 996 of them replayed, 3 plain\n"
                    "  not looked at: 9010 runs that the gate sent plain\n");
    expect_in_table(&whole, "  200000      ~9.9%  ");
    region.state = "ended";
    expect_in_table(&whole, "  ended after replays\n");
    region.launches = 0;
    expect_in_table(&whole, "  ended\n");
}
END_TEST

START_TEST(rules_that_nothing_matched_are_named_with_what_there_was)
{
    static const cgs_stray_t strays[] = {
        {"step", false, false}, {"k", true, false}, {"late", true, true}
    };
    static const char *const ranges[] = {
        "forward", "backward of the network", "optimizer step",
        "a range\nof two lines", "evaluation of the model"
    };
    cgs_report_t whole = report;

    whole.strays     = strays;
    whole.num_strays = 3;
    whole.ranges     = ranges;
    whole.num_ranges = 5;
    expect_in_table(&whole, "replayed, 3 plain\n"
        "  no range matched CGSHIM_REGION_step; there were forward, backward "
        "of the network, optimizer step,\n"
        "        a range\\nof two lines, evaluation of the model\n"
        "  no kernel matched CGSHIM_REGION_k; there was none\n"
        "  CGSHIM_REGION_late never began: where it matches, a rule before it "
        "does, or a region is open\n");
}
END_TEST

START_TEST(the_report_says_what_automatic_regions_would_come_to)
{
    cgs_report_t whole = report;

    whole.num_regions = 0;
    whole.looked_at   = 65536;
    whole.repeating   = 62000;
    expect_in_table(&whole, "  advice: or set CGSHIM_AUTO=1, which finds loops "
                    "without any mark: of the first 65536 calls 94%\n"
                    "        came again in loops\n");
    whole.repeating   = 6000;
    expect_in_table(&whole, "  advice: CGSHIM_AUTO=1 would find little: of the "
                    "first 65536 calls 9% came again in loops\n");
    whole.looked_at   = 60;
    expect_in_table(&whole, "  advice: or let CGSHIM_AUTO=1 look for calls");
}
END_TEST

START_TEST(verifying_that_came_to_nothing_is_said)
{
    cgs_region_report_t region = regions[1];
    cgs_report_t        whole  = report;

    whole.regions     = &region;
    whole.num_regions = 1;
    region.verifies   = true;
    expect_in_table(&whole, "\n    verified: none\n");
}
END_TEST

START_TEST(the_first_line_says_whether_it_is_active_or_why_not)
{
    cgs_report_t        whole = report;
    cgs_region_report_t region;
    char                *table;

    whole.num_regions    = 0;
    whole.regions        = NULL;
    whole.note           = "driver older\nthan 12.4";
    whole.mode           = "observe";
    whole.driver_version = 0;
    table                = table_of(&whole);
    ck_assert_str_eq(table,
"cgshim 0.1.0: NOT ACTIVE in ./heat (pid 4242), driver not known: "
"driver older\\nthan 12.4\n"
"  total: 0.0% of launches swallowed, 0 graphs launched, host time saved: 0.0 "
"us\n"
"  seen: 199000 launches, 1000 copies, 20 sets in 0 runs, 0 of them "
"replayed, 0 plain\n");
    free(table);
    whole.note = NULL;
    expect_in_table(&whole, "driver not known: CGSHIM=observe only compares\n");
    whole.mode = "on";
    expect_in_table(&whole, "driver not known: no region ran\n");
    expect_in_table(&whole, "\n  seen: nothing, since no region ran\n");
    expect_in_table(&whole, "\n  advice: mark the work that comes again by an "
                    "NVTX range (push and pop),");
    region             = regions[1];
    whole.regions      = &region;
    whole.num_regions  = 1;
    expect_in_table(&whole, "driver not known: no graph was launched\n");
    region.launches    = 1;
    whole.note         = "no thread";
    expect_in_table(&whole, ": active in ./heat (pid 4242), driver not known\n"
                    "  note: no thread\n");
}
END_TEST

START_TEST(what_was_not_measured_is_not_known)
{
    cgs_region_report_t region = regions[0];
    cgs_report_t        whole  = report;

    whole.regions     = &region;
    whole.num_regions = 1;
    region.host_saved_ns.known = region.plain_run_ns.known = false;
    expect_in_table(&whole, "1998 graphs launched, host time saved: not "
                    "known\n");
    expect_in_table(&whole, "  99.9%         -    1998  ");
    expect_not_in_table(&whole, "from run to run");
    region.host_saved_ns = (cgs_figure_t){true, -123456789};
    expect_in_table(&whole, "host time saved: -123.4 ms\n");
    expect_in_table(&whole, "  -123.4  ");
    region.host_saved_ns.value = -99;
    expect_in_table(&whole, "host time saved: 0.0 us\n");
    region.host_saved_ns.value = 12345678901;
    expect_in_table(&whole, "host time saved: 12.3 s\n");
}
END_TEST

START_TEST(regions_that_ran_once_are_no_rows_among_many)
{
    static char         names[40][32];
    cgs_region_report_t many[40] = {regions[0]};
    cgs_report_t        whole    = report;
    char                *table;
    int                 i;

    for (i = 1; i < 40; ++i) {
        snprintf(names[i], sizeof(names[i]), "epoch %d", i);
        many[i].name = names[i];
        many[i].runs = 1;
    }
    whole.regions     = many;
    whole.num_regions = 40;
    table             = table_of(&whole);
    ck_assert_ptr_nonnull(strstr(table, "\n  step "));
    ck_assert_ptr_null(strstr(table, "\n  epoch "));
    ck_assert_ptr_nonnull(strstr(table, "\n  39 regions that ran once are "
                                 "left out\n"));
    ck_assert_ptr_nonnull(strstr(table, "advice: 39 regions \"epoch ...\" ran "
                                 "once: make them one by"));
    ck_assert_ptr_nonnull(strstr(table, "CGSHIM_REGION_epoch='nvtx=\"epoch "
                                 "*\"'"));
    free(table);
}
END_TEST

START_TEST(a_divergence_shows_bytes_as_numbers_or_in_order)
{
    static const struct {
        uint32_t   num_bytes;
        const char *shown;
    } cases[] = {
        {1, "(offset 4 of 40): 0x01 -> 0xf1\n"},
        {2, "(offset 4 of 40): 0x0201 -> 0xf2f1\n"},
        {3, "(offset 4 of 40): 01 02 03 -> f1 f2 f3\n"},
        {4, "(offset 4 of 40): 0x04030201 -> 0xf4f3f2f1\n"},
        {8, "(offset 4 of 40): 0x0807060504030201\n"
         "        -> 0xf8f7f6f5f4f3f2f1\n"},
        {1000, " 1d 1e 1f 20\n        -> f1 f2 f3 f4 "},
    };
    cgs_divergence_t    divergence = {.valid = true, .what = "argument",
                                      .call = "kernel", .kernel = "k",
                                      .offset = 4, .size = 40};
    cgs_region_report_t region;
    cgs_report_t        whole;
    size_t              i;

    for (i = 0; i < CGS_REPORT_MAX_BYTES; ++i) {
        divergence.old_bytes[i] = (uint8_t)(i + 1);
        divergence.new_bytes[i] = (uint8_t)(i + 0xf1);
    }
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        divergence.num_bytes = cases[i].num_bytes;
        whole                = report_of(&divergence, &region);
        expect_in_table(&whole, cases[i].shown);
    }
}
END_TEST

START_TEST(a_divergence_without_bytes_shows_texts_or_nothing)
{
    cgs_divergence_t    divergence = {.valid = true, .run = 9, .op_index = 1,
                                      .call = "kernel", .kernel = "k",
                                      .what = "grid",
                                      .arg = -1};
    cgs_region_report_t region;
    cgs_report_t        whole;

    divergence.old_text = "(8, 1, 1)";
    divergence.new_text = "(9, 1, 1)";
    whole               = report_of(&divergence, &region);
    expect_in_table(&whole, "    first divergence: run 9, call 1, kernel k, "
                    "grid: (8, 1, 1) -> (9, 1, 1)\n");
    divergence.what     = "missing call";
    divergence.new_text = NULL;
    whole               = report_of(&divergence, &region);
    expect_in_table(&whole, "kernel k, missing call: (8, 1, 1) -> none\n");
    divergence.what     = "stream";
    divergence.call     = divergence.kernel = "copy";
    divergence.old_text = NULL;
    whole               = report_of(&divergence, &region);
    expect_in_table(&whole, "call 1, copy, stream\n");
    divergence.call = divergence.kernel = "event record";
    whole           = report_of(&divergence, &region);
    expect_in_table(&whole, "call 1, event record, stream\n");
    divergence.call   = "kernel"; /* whatever the kernel is called */
    divergence.kernel = "copy";
    whole             = report_of(&divergence, &region);
    expect_in_table(&whole, "call 1, kernel copy, stream\n");
}
END_TEST

START_TEST(a_long_kernel_name_is_whole_and_on_a_line_of_its_own)
{
    char                name[301];
    cgs_divergence_t    divergence = {.valid = true, .call = "kernel",
                                      .kernel = name,
                                      .what = "block", .arg = -1,
                                      .old_text = "a", .new_text = "b"};
    cgs_region_report_t region;
    cgs_report_t        whole;
    char                expected[512];

    memset(name, 'k', 300);
    name[300] = '\0';
    whole     = report_of(&divergence, &region);
    snprintf(expected, sizeof(expected), "call 0,\n        kernel %s,\n"
             "        block: a -> b\n", name);
    expect_in_table(&whole, expected);
}
END_TEST

START_TEST(lines_of_the_table_stay_short)
{
    cgs_region_report_t region = regions[1];
    cgs_report_t        whole  = report;
    char                *table, *line, *rest;

    region.runs      = region.replayed_runs = region.calls = UINT64_MAX;
    region.swallowed = region.launches = region.patched = UINT64_MAX;
    region.nodes     = region.build_ns = region.device_bytes = UINT64_MAX;
    whole.regions    = &region;
    whole.num_regions = 1;
    table = rest = table_of(&whole);
    while ((line = strsep(&rest, "\n")) != NULL) {
        ck_assert_uint_le(strlen(line), 125);
    }
    free(table);
    table = rest = table_of(&report);
    while ((line = strsep(&rest, "\n")) != NULL) {
        ck_assert_uint_le(strlen(line), 115);
    }
    free(table);
}
END_TEST

START_TEST(names_that_are_blank_leave_no_line_empty)
{
    char                blanks[121];
    cgs_region_report_t region;
    cgs_report_t        whole;
    char                *table;

    memset(blanks, ' ', sizeof(blanks) - 1);
    blanks[sizeof(blanks) - 1] = '\0';
    whole = report_of(&(cgs_divergence_t){
        .valid = true, .call = "kernel", .kernel = blanks, .what = blanks,
        .arg = -1, .old_text = blanks, .new_text = blanks,
    }, &region);
    table = table_of(&whole);
    ck_assert_msg(strstr(table, "\n\n") == NULL, "%s", table);
    free(table);
}
END_TEST

START_TEST(sums_that_are_too_large_are_as_large_as_can_be)
{
    cgs_region_report_t both[2] = {regions[0], regions[0]};
    cgs_report_t        whole   = report;

    whole.regions         = both;
    both[0].host_saved_ns = (cgs_figure_t){true, INT64_MAX};
    both[1].host_saved_ns = (cgs_figure_t){true, 1};
    expect_in_table(&whole, "host time saved: 9223372036.8 s\n");
    both[0].host_saved_ns = (cgs_figure_t){true, INT64_MIN};
    both[1].host_saved_ns = (cgs_figure_t){true, -1};
    expect_in_table(&whole, "host time saved: -9223372036.8 s\n");
}
END_TEST

START_TEST(a_share_of_100_percent_is_all_of_the_calls)
{
    static const struct {
        uint64_t   swallowed, calls;
        const char *shown;
    } cases[] = {
        {0, 0, "  0.0%  "}, {0, 5, "  0.0%  "}, {1, 3, "  33.3%  "},
        {999999, 1000000, "  99.9%  "},
        {UINT64_MAX - 1, UINT64_MAX, "  99.9%  "}, {5, 5, "  100.0%  "},
    };
    cgs_region_report_t region = regions[1];
    cgs_report_t        whole  = report;
    size_t              i;

    whole.regions     = &region;
    whole.num_regions = 1;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        region.swallowed = cases[i].swallowed;
        region.calls     = cases[i].calls;
        expect_in_table(&whole, cases[i].shown);
    }
}
END_TEST

/* ---- JSON ---- */

START_TEST(json_holds_every_field)
{
    char *scratch = scratch_enter();
    char *text;

    ck_assert_int_eq(cgs_report_write(&report, "r.json"), 0);
    text = file_text("r.json");
    expect_json(text);
    ck_assert_str_eq(text,
"{\n"
"  \"schema\": 1,\n"
"  \"kind\": \"report\",\n"
"  \"version\": \"0.1.0\",\n"
"  \"program\": \"./heat\",\n"
"  \"pid\": 4242,\n"
"  \"mode\": \"on\",\n"
"  \"active\": true,\n"
"  \"why_not\": null,\n"
"  \"driver_version\": 13010,\n"
"  \"note\": null,\n"
"  \"launches\": 199000,\n"
"  \"copies\": 1000,\n"
"  \"sets\": 20,\n"
"  \"swallowed_launches\": 198801,\n"
"  \"graphs\": 1998,\n"
"  \"host_saved_ns\": 478270001,\n"
"  \"looked_at\": 0,\n"
"  \"repeating\": 0,\n"
"  \"unmatched\": [],\n"
"  \"other_ranges\": [],\n"
"  \"other_kernels\": [],\n"
"  \"advice\": [],\n"
"  \"regions\": [\n"
"    {\n"
"      \"name\": \"step\",\n"
"      \"state\": \"replaying\",\n"
"      \"runs\": 1000,\n"
"      \"replayed_runs\": 996,\n"
"      \"recordings\": 1,\n"
"      \"plain_runs\": 3,\n"
"      \"unseen_runs\": 0,\n"
"      \"calls\": 200000,\n"
"      \"seen_launches\": 199000,\n"
"      \"swallowed\": 199800,\n"
"      \"swallowed_launches\": 198801,\n"
"      \"launches\": 1998,\n"
"      \"patched\": 7,\n"
"      \"barriers\": 1000,\n"
"      \"variants\": 3,\n"
"      \"chunks\": 2,\n"
"      \"nodes\": 200,\n"
"      \"builds\": 2,\n"
"      \"build_ns\": 1249999,\n"
"      \"graph_ns\": 19980000,\n"
"      \"device_bytes\": 831489,\n"
"      \"host_bytes\": 65536,\n"
"      \"plain_call_ns\": 2500,\n"
"      \"host_saved_ns\": 478270001,\n"
"      \"plain_run_ns\": 58912,\n"
"      \"replayed_run_ns\": 15840,\n"
"      \"fallbacks\": [\n"
"        {\n"
"          \"reason\": \"cuMemcpyDtoH needs the host to wait\",\n"
"          \"count\": 3\n"
"        },\n"
"        {\n"
"          \"reason\": \"a capture of the program was open\",\n"
"          \"count\": 1\n"
"        }\n"
"      ],\n"
"      \"cuts\": [],\n"
"      \"verifies\": false,\n"
"      \"verified\": 12,\n"
"      \"unverified\": [\n"
"        {\n"
"          \"reason\": \"a copy to an array\",\n"
"          \"count\": 1\n"
"        }\n"
"      ],\n"
"      \"mistake\": {\n"
"        \"run\": 3,\n"
"        \"nodes\": 40,\n"
"        \"base\": 139637976731648,\n"
"        \"bytes\": 4096,\n"
"        \"offset\": 17,\n"
"        \"op_index\": 39,\n"
"        \"kernel\": \"k_hash\"\n"
"      },\n"
"      \"first_divergence\": {\n"
"        \"run\": 2,\n"
"        \"op_index\": 7,\n"
"        \"call\": \"kernel\",\n"
"        \"kernel\": \"k_axpy\",\n"
"        \"what\": \"argument\",\n"
"        \"arg\": 2,\n"
"        \"offset\": 0,\n"
"        \"size\": 8,\n"
"        \"old_bytes\": \"00100000ff7f0000\",\n"
"        \"new_bytes\": \"00200000ff7f0000\",\n"
"        \"old_text\": null,\n"
"        \"new_text\": null\n"
"      },\n"
"      \"watched_runs\": 100,\n"
"      \"divergences\": [\n"
"        {\n"
"          \"op_index\": 7,\n"
"          \"call\": \"kernel\",\n"
"          \"kernel\": \"k_axpy\",\n"
"          \"what\": \"argument\",\n"
"          \"arg\": 1,\n"
"          \"runs\": 99,\n"
"          \"share\": 0.990,\n"
"          \"pattern\": \"alternates among 2 buffers\"\n"
"        },\n"
"        {\n"
"          \"op_index\": 9,\n"
"          \"call\": \"kernel\",\n"
"          \"kernel\": \"k_sum\",\n"
"          \"what\": \"grid\",\n"
"          \"arg\": -1,\n"
"          \"runs\": 71,\n"
"          \"share\": 0.710,\n"
"          \"pattern\": \"grows\"\n"
"        }\n"
"      ],\n"
"      \"advice\": []\n"
"    },\n"
"    {\n"
"      \"name\": \"caf\xc3\xa9 of a name too long for the table\",\n"
"      \"state\": \"recording\",\n"
"      \"runs\": 1,\n"
"      \"replayed_runs\": 0,\n"
"      \"recordings\": 1,\n"
"      \"plain_runs\": 0,\n"
"      \"unseen_runs\": 0,\n"
"      \"calls\": 12345678,\n"
"      \"seen_launches\": 0,\n"
"      \"swallowed\": 0,\n"
"      \"swallowed_launches\": 0,\n"
"      \"launches\": 0,\n"
"      \"patched\": 0,\n"
"      \"barriers\": 0,\n"
"      \"variants\": 0,\n"
"      \"chunks\": 0,\n"
"      \"nodes\": 0,\n"
"      \"builds\": 0,\n"
"      \"build_ns\": 0,\n"
"      \"graph_ns\": 0,\n"
"      \"device_bytes\": 0,\n"
"      \"host_bytes\": 0,\n"
"      \"plain_call_ns\": null,\n"
"      \"host_saved_ns\": null,\n"
"      \"plain_run_ns\": null,\n"
"      \"replayed_run_ns\": null,\n"
"      \"fallbacks\": [],\n"
"      \"cuts\": [],\n"
"      \"verifies\": false,\n"
"      \"verified\": 0,\n"
"      \"unverified\": [],\n"
"      \"mistake\": null,\n"
"      \"first_divergence\": null,\n"
"      \"watched_runs\": 0,\n"
"      \"divergences\": [],\n"
"      \"advice\": [\n"
"        \"it ran once, and only what comes again is replayed\"\n"
"      ]\n"
"    }\n"
"  ]\n"
"}\n");
    free(text);
    scratch_leave(scratch);
}
END_TEST

START_TEST(any_name_gives_well_formed_json_and_lines)
{
    static const char *const names[] = {
        "\"", "\\", "{", "[", "a\nb\r\t\x01\x7f", "\xff\xfe", "\xc3",
        "caf\xc3\xa9", "\xed\xa0\x80", "", NULL,
    };
    static const char *const quoted[] = {
        "\"\\\"\"", "\"\\\\\"", "\"{\"", "\"[\"",
        "\"a\\u000ab\\u000d\\u0009\\u0001\\u007f\"", "\"\\ufffd\\ufffd\"",
        "\"\\ufffd\"", "\"caf\xc3\xa9\"", "\"\\ufffd\\ufffd\\ufffd\"",
        "\"\"", "null",
    };
    char                *scratch = scratch_enter();
    cgs_region_report_t region;
    cgs_report_t        whole;
    cgs_fallback_t      fallback;
    cgs_changes_t       differing;
    cgs_divergence_t    divergence = {.valid = true, .arg = -1};
    char                expected[128], *text, *c;
    size_t              i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        differing                 = changes;
        differing.entry[1].call   = differing.entry[1].kernel = names[i];
        differing.entry[1].what   = names[i];
        divergence.call           = names[i];
        divergence.kernel   = divergence.what = names[i];
        divergence.old_text = divergence.new_text = names[i];
        whole               = report_of(&divergence, &region);
        whole.version       = whole.program = whole.mode = names[i];
        whole.note          = region.name = region.state = names[i];
        region.changes       = &differing;
        region.cuts          = &fallback;
        region.num_cuts      = 1;
        region.runs          = 10;
        fallback.reason      = names[i];
        fallback.count       = 1;
        region.fallbacks     = &fallback;
        region.num_fallbacks = 1;
        ck_assert_int_eq(cgs_report_write(&whole, "r.json"), 0);
        text = file_text("r.json");
        expect_json(text);
        snprintf(expected, sizeof(expected), "\"name\": %s,", quoted[i]);
        ck_assert_msg(strstr(text, expected) != NULL, "no %s in\n%s",
                      expected, text);
        free(text);
        text = table_of(&whole);
        for (c = text; *c != '\0'; ++c) {
            ck_assert(*c == '\n' || ((unsigned char)*c >= 0x20 &&
                                     *c != 0x7f));
        }
        free(text);
    }
    scratch_leave(scratch);
}
END_TEST

START_TEST(no_locale_of_the_program_changes_the_report)
{
    char *before = table_of(&report), *after;

    /* Those of them that are installed */
    setlocale(LC_ALL, "de_DE.UTF-8");
    setlocale(LC_ALL, "fr_FR.UTF-8");
    after = table_of(&report);
    setlocale(LC_ALL, "C");
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
}
END_TEST

/* ---- Where it goes ---- */

static unsigned count_files(void)
{
    FILE     *list = popen("ls -A | wc -l", "r");
    unsigned count = 0;

    ck_assert_ptr_nonnull(list);
    ck_assert_int_eq(fscanf(list, "%u", &count), 1);
    pclose(list);
    return count;
}

START_TEST(pid_and_host_are_expanded_in_the_file_name)
{
    char *scratch = scratch_enter();
    char host[HOST_NAME_MAX + 1], name[512];

    ck_assert_int_eq(cgs_report_write(&report, "r.%h.%p.json"), 0);
    ck_assert_int_eq(gethostname(host, sizeof(host)), 0);
    snprintf(name, sizeof(name), "r.%s.%d.json", host, (int)getpid());
    ck_assert_int_eq(access(name, R_OK), 0);
    ck_assert_uint_eq(count_files(), 1);
    scratch_leave(scratch);
}
END_TEST

START_TEST(a_report_replaces_the_file_and_not_what_a_reader_has_open)
{
    char        *scratch = scratch_enter();
    mode_t      mask     = umask(022);
    char        bytes[8] = "";
    struct stat st;
    char        *text;
    int         fd;

    file_write("r.json", "earlier", 7);
    fd = open("r.json", O_RDONLY);
    ck_assert_int_ge(fd, 0);
    errno = EDOM;
    ck_assert_int_eq(cgs_report_write(&report, "r.json"), 0);
    ck_assert_int_eq(errno, EDOM);
    ck_assert_int_eq(read(fd, bytes, 7), 7);
    ck_assert_str_eq(bytes, "earlier");
    close(fd);
    text = file_text("r.json");
    expect_json(text);
    free(text);
    ck_assert_int_eq(stat("r.json", &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0644);
    ck_assert_uint_eq(count_files(), 1);
    umask(mask);
    scratch_leave(scratch);
}
END_TEST

START_TEST(a_symbolic_link_is_refused)
{
    char *scratch = scratch_enter();
    char *text;

    file_write("victim", "kept", 4);
    ck_assert_int_eq(symlink("victim", "r.json"), 0);
    ck_assert_int_eq(symlink("nowhere", "loose"), 0);
    ck_assert_int_eq(cgs_report_write(&report, "r.json"), -ELOOP);
    ck_assert_int_eq(cgs_report_write(&report, "loose"), -ELOOP);
    text = file_text("victim");
    ck_assert_str_eq(text, "kept");
    free(text);
    ck_assert_uint_eq(count_files(), 3);
    scratch_leave(scratch);
}
END_TEST

START_TEST(what_cannot_be_written_is_an_error_and_leaves_nothing)
{
    char *scratch = scratch_enter();

    ck_assert_int_eq(cgs_report_write(&report, "missing/r.json"), -ENOENT);
    ck_assert_int_eq(cgs_report_write(&report, "."), -EISDIR);
    ck_assert_int_eq(mkfifo("fifo", 0644), 0);
    ck_assert_int_eq(cgs_report_write(&report, "fifo"), -ENXIO);
    ck_assert_int_eq(cgs_report_write(&report, "/dev/full"), -ENOSPC);
    ck_assert_int_eq(cgs_report_write(&report, "/dev/null"), 0);
    ck_assert_uint_eq(count_files(), 1);
    scratch_leave(scratch);
}
END_TEST

START_TEST(a_file_cut_by_a_limit_is_not_put_in_place)
{
    char          *scratch = scratch_enter();
    struct rlimit limit    = {100, 100};
    int           status;
    char          *text;
    pid_t         pid;

    file_write("r.json", "earlier", 7);
    fflush(NULL);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        setrlimit(RLIMIT_FSIZE, &limit);
        _exit(cgs_report_write(&report, "r.json") == -EFBIG ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    text = file_text("r.json");
    ck_assert_str_eq(text, "earlier");
    free(text);
    ck_assert_uint_eq(count_files(), 1);
    scratch_leave(scratch);
}
END_TEST

START_TEST(without_stderr_or_reader_it_is_an_error_and_no_signal)
{
    int   ends[2], status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (pipe(ends) != 0 || close(ends[0]) != 0 || close(2) != 0 ||
            cgs_report_write(&report, "stderr") != -EBADF ||
            dup2(ends[1], 2) != 2) {
            _exit(1);
        }
        _exit(cgs_report_write(&report, "stderr") == -EPIPE ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
    Suite   *suite  = suite_create("report");
    TCase   *tests  = tcase_create("report");
    SRunner *runner = srunner_create(suite);
    int     failed;

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests,
                   runs_that_nobody_looked_at_are_taken_to_be_like_the_others);
    tcase_add_test(tests, verifying_that_came_to_nothing_is_said);
    tcase_add_test(tests,
                   rules_that_nothing_matched_are_named_with_what_there_was);
    tcase_add_test(tests,
                   the_report_says_what_automatic_regions_would_come_to);
    tcase_add_test(tests, the_table_is_aligned_and_says_all);
    tcase_add_test(tests,
                   the_first_line_says_whether_it_is_active_or_why_not);
    tcase_add_test(tests, what_was_not_measured_is_not_known);
    tcase_add_test(tests, regions_that_ran_once_are_no_rows_among_many);
    tcase_add_test(tests, a_divergence_shows_bytes_as_numbers_or_in_order);
    tcase_add_test(tests, a_divergence_without_bytes_shows_texts_or_nothing);
    tcase_add_test(tests,
                   a_long_kernel_name_is_whole_and_on_a_line_of_its_own);
    tcase_add_test(tests, lines_of_the_table_stay_short);
    tcase_add_test(tests, names_that_are_blank_leave_no_line_empty);
    tcase_add_test(tests, sums_that_are_too_large_are_as_large_as_can_be);
    tcase_add_test(tests, a_share_of_100_percent_is_all_of_the_calls);
    tcase_add_test(tests, json_holds_every_field);
    tcase_add_test(tests, any_name_gives_well_formed_json_and_lines);
    tcase_add_test(tests, no_locale_of_the_program_changes_the_report);
    tcase_add_test(tests, pid_and_host_are_expanded_in_the_file_name);
    tcase_add_test(tests,
                   a_report_replaces_the_file_and_not_what_a_reader_has_open);
    tcase_add_test(tests, a_symbolic_link_is_refused);
    tcase_add_test(tests,
                   what_cannot_be_written_is_an_error_and_leaves_nothing);
    tcase_add_test(tests, a_file_cut_by_a_limit_is_not_put_in_place);
    tcase_add_test(tests,
                   without_stderr_or_reader_it_is_an_error_and_no_signal);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
