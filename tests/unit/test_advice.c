/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the report advises, by what a user is to be told in which case.
 */
#include "advice.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cgs_report_t on = {.mode = "on"};

/* 1000 runs of 100 calls, of which so many percent are swallowed */
static cgs_region_report_t region_of(unsigned percent)
{
    return (cgs_region_report_t){
        .name = "step", .runs = 1000, .calls = 100000, .variants = 1,
        .swallowed = percent * 1000u, .launches = percent > 0 ? 1000 : 0,
    };
}

static void expect(const cgs_region_report_t *region, unsigned num,
                   const char *text)
{
    cgs_advice_t advice;

    cgs_advise_region(&on, region, &advice);
    ck_assert_uint_eq(advice.num, num);
    ck_assert_msg(num == 0 || strstr(advice.line[0], text) != NULL ||
                  (num > 1 && strstr(advice.line[1], text) != NULL),
                  "no \"%s\" in \"%s\"", text, advice.line[0]);
}

/* A region of which nothing is swallowed, for one reason */
static void expect_for(const char *reason, uint64_t count, unsigned num,
                       const char *text)
{
    cgs_region_report_t region   = region_of(0);
    cgs_fallback_t      fallback = {reason, count};

    region.fallbacks     = &fallback;
    region.num_fallbacks = 1;
    expect(&region, num, text);
}

static void expect_for_cut(const char *reason, unsigned num, const char *text)
{
    cgs_region_report_t region = region_of(20);
    cgs_fallback_t      cut    = {reason, 3};

    region.cuts     = &cut;
    region.num_cuts = 1;
    expect(&region, num, text);
}

START_TEST(a_region_that_does_well_gets_no_advice)
{
    cgs_region_report_t region   = region_of(98);
    cgs_fallback_t      fallback = {"a call was not as recorded", 100};
    cgs_advice_t        advice;
    cgs_report_t        report   = on;

    region.fallbacks     = &fallback;
    region.num_fallbacks = 1;
    expect(&region, 0, "");
    /* Two runs: the first one had to be recorded */
    region.runs      = 2;
    region.calls     = 200;
    region.swallowed = 100;
    expect(&region, 0, "");
    region.runs = 0;
    expect(&region, 0, "");
    report.mode = "observe";
    region      = region_of(0);
    cgs_advise_region(&report, &region, &advice);
    ck_assert_uint_eq(advice.num, 0);
}
END_TEST

START_TEST(each_reason_of_the_manual_has_its_advice)
{
    expect_for("a call was not as recorded", 900, 1, "variants=");
    expect_for("it ended before the recording did", 900, 1, "variants=");
    expect_for("a cut that was not recorded: cuCtxSynchronize", 900, 1,
               "take cuCtxSynchronize out of the range");
    expect_for("recordings did not last, so the next one waits", 900, 1,
               "enable=0");
    expect_for("memory_mb is used up", 900, 1, "more memory_mb");
    expect_for("work was held back for max_defer_us", 900, 1,
               "larger max_defer_us");
    expect_for("another thread's call came in between", 900, 1,
               "other threads");
    expect_for("it was open in another thread", 900, 1, "another name");
    expect_for("too much pageable memory: CUDA_ERROR_NOT_SUPPORTED", 900, 1,
               "pinned memory");
    expect_for("too many waits in a row: CUDA_ERROR_NOT_SUPPORTED", 900, 1,
               "streams=separate");
    expect_for("the program ran out of device memory", 900, 1, "memory_mb");
    expect_for("it has too many calls", 900, 1, "smaller ranges");
    expect_for("out of host memory", 900, 1, "smaller");
    expect_for("cuGraphAddNode: CUDA_ERROR_OUT_OF_MEMORY", 900, 1,
               "smaller memory_mb");
    expect_for("cuGraphAddNode: CUDA_ERROR_INVALID_VALUE", 900, 1, "issue");
    expect_for("cuModuleUnload", 900, 1,
               "take cuModuleUnload out of the range");
    expect_for("a stream capture of the program's own", 900, 0, "");
    /* What comes seldom is no trouble */
    expect_for("memory_mb is used up", 3, 0, "");
}
END_TEST

START_TEST(each_cut_of_the_manual_has_its_advice)
{
    expect_for_cut("cuStreamSynchronize", 1,
                   "a graph ends at each cuStreamSynchronize: take it out");
    expect_for_cut("a wait for an event of outside", 1, "inside the range");
    expect_for_cut("an event used with flags", 1, "without flags");
    expect_for_cut("a copy with memory that is pageable, managed or of another "
                   "device", 1, "pinned memory");
    expect_for_cut("the per-thread default stream", 1, "streams of your own");
    expect_for_cut("a call that failed", 1, "fails");
    expect_for_cut("a set of no bytes", 0, "");
}
END_TEST

START_TEST(a_region_that_the_gate_sends_plain_is_told_of_it)
{
    cgs_region_report_t region    = region_of(99);
    cgs_fallback_t      fallback  = {"it is no faster replayed than plain, or "
                                     "that is tried", 3};

    region.fallbacks     = &fallback;
    region.num_fallbacks = 1;
    region.plain_runs    = 100; /* some are timed: that is as it should be */
    expect(&region, 0, "");
    region.plain_runs    = 900;
    region.calls         = 10000;
    region.swallowed     = 9900;
    expect(&region, 1, "enable=0");
}
END_TEST

START_TEST(short_regions_and_those_that_ran_once_are_told_so)
{
    cgs_region_report_t region = region_of(0);

    region.calls = 2000;
    expect(&region, 1, "a run of it has two calls: make the range larger");
    region.calls = 1000;
    expect(&region, 1, "has one call");
    region.calls = 0;
    expect(&region, 1, "no call that puts work on a stream");
    region.runs  = 1;
    region.calls = 100;
    expect(&region, 1, "it ran once");
}
END_TEST

START_TEST(a_buffer_that_is_new_each_time_is_named)
{
    cgs_changes_t       changes = {.watched = 100, .num = 1};
    cgs_region_report_t region  = region_of(50);

    changes.entry[0] = (cgs_change_t){
        .op_index = 14, .call = "kernel", .kernel = "k_axpy",
        .what = "argument", .arg = 2, .is_address = true, .runs = 71,
        .num = 71, .fresh = 71, .grew = 71, .num_values = 8,
    };
    region.changes = &changes;
    expect(&region, 2, "keep the buffer of argument 2 of k_axpy (call 14)");
    changes.entry[0].runs = 5;
    expect(&region, 1, "chunk=all");
    changes.entry[0]      = (cgs_change_t){
        .op_index = 14, .kernel = "k_axpy", .what = "extra call", .arg = -1,
        .runs = 71,
    };
    expect(&region, 2, "leave call 14 (k_axpy) out of the range");
    changes.entry[0].what = "memory freed since"; /* that is patched */
    expect(&region, 1, "chunk=all");
}
END_TEST

START_TEST(a_pace_that_leaves_no_graphs_is_told)
{
    cgs_region_report_t region = region_of(0);

    expect(&region, 1, "chunk=all");
}
END_TEST

/* Advice for the process where there are so many regions of these names */
static void expect_for_names(const char *fmt, unsigned num, unsigned lines,
                             const char *text)
{
    cgs_region_report_t *regions = calloc(num + 1, sizeof(*regions));
    char                (*names)[32] = calloc(num + 1, sizeof(*names));
    cgs_report_t        report       = on;
    cgs_advice_t        advice;
    unsigned            i;

    regions[0] = region_of(98);
    for (i = 1; i <= num; ++i) {
        regions[i]      = region_of(0);
        regions[i].runs = 1;
        regions[i].name = names[i];
        snprintf(names[i], sizeof(names[i]), fmt, i);
    }
    report.regions     = regions;
    report.num_regions = num + 1;
    cgs_advise(&report, &advice);
    ck_assert_uint_eq(advice.num, lines);
    ck_assert_msg(lines == 0 || strstr(advice.line[0], text) != NULL,
                  "no \"%s\" in \"%s\"", text, advice.line[0]);
    free(regions);
    free(names);
}

START_TEST(names_that_never_come_again_get_a_rule_with_a_glob)
{
    expect_for_names("step %u", 300, 1, "300 regions \"step ...\" ran once: "
                     "make them one by CGSHIM_REGION_step='nvtx=\"step *\"'");
    expect_for_names("it%u/x", 300, 1, "CGSHIM_REGION_it='nvtx=\"it*\"'");
    expect_for_names("[%u]", 300, 1, "CGSHIM_REGION_<name>='nvtx=<glob>'");
    expect_for_names("%u", 300, 1, "CGSHIM_REGION_<name>='nvtx=<glob>'");
    expect_for_names("step %u", 7, 0, "");
}
END_TEST

START_TEST(a_process_without_regions_is_told_what_one_is)
{
    cgs_report_t report = on;
    cgs_advice_t advice;

    cgs_advise(&report, &advice);
    ck_assert_uint_eq(advice.num, 2);
    ck_assert_ptr_nonnull(strstr(advice.line[1], "CGSHIM_AUTO=1"));
    ck_assert_ptr_nonnull(strstr(advice.line[0], "NVTX range"));
    report.note = "the driver is older than CUDA 12.4";
    cgs_advise(&report, &advice);
    ck_assert_uint_eq(advice.num, 0);
}
END_TEST

int main(void)
{
    Suite   *suite  = suite_create("advice");
    TCase   *tests  = tcase_create("advice");
    SRunner *runner = srunner_create(suite);
    int     failed;

    tcase_add_test(tests, a_region_that_does_well_gets_no_advice);
    tcase_add_test(tests, each_reason_of_the_manual_has_its_advice);
    tcase_add_test(tests, each_cut_of_the_manual_has_its_advice);
    tcase_add_test(tests, a_region_that_the_gate_sends_plain_is_told_of_it);
    tcase_add_test(tests, short_regions_and_those_that_ran_once_are_told_so);
    tcase_add_test(tests, a_buffer_that_is_new_each_time_is_named);
    tcase_add_test(tests, a_pace_that_leaves_no_graphs_is_told);
    tcase_add_test(tests, names_that_never_come_again_get_a_rule_with_a_glob);
    tcase_add_test(tests, a_process_without_regions_is_told_what_one_is);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
