/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts and forecasts: what was measured of replayed programs (README,
 * "Measured") is what is forecast from figures of their plain runs.
 */
#include "profile_judge.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* A launch of a chain: nearly all of its time (3.6 of 3.7 us). */
#define LAUNCH_NS 3600
#define TINY_NS   930

static cgs_profile_figures_t figures;

/* A region of so many kernels in a row that takes so long. */
static void set_up(uint64_t kernels, double run_us)
{
    figures = (cgs_profile_figures_t){
        .name          = "step",
        .runs          = 100,
        .plain_runs    = 36,
        .profiled_runs = 64,
        .is_timed      = true,
        .is_profiled   = true,
        .run_ns        = (uint64_t)(run_us * 1000),
        .calls         = kernels,
        .launches      = kernels,
        .call_ns       = kernels * LAUNCH_NS,
        .busy_ns       = kernels * TINY_NS,
        .graph_ns      = kernels * TINY_NS,
        .alike_percent = 100,
    };
}

/* The forecast is within a fifth of what was achieved. */
static void expect_gain(double achieved)
{
    double gain;

    cgs_profile_judge(&figures);
    ck_assert(figures.has_gain);
    gain = cgs_profile_gain(&figures);
    ck_assert_msg((gain > achieved / 1.2) && (gain < achieved * 1.2),
                  "forecast %.2f, achieved %.2f", gain, achieved);
}

START_TEST(chains_gain_what_was_measured)
{
    static const struct {
        uint64_t kernels;
        double   plain_us, gain;
    } row[] = {
        {2, 7.4, 2.38}, {16, 58.9, 3.73}, {64, 227.8, 3.81},
        {256, 944.7, 3.99}, {1024, 3820.2, 4.07},
    };
    size_t i;

    for (i = 0; i < sizeof(row) / sizeof(row[0]); ++i) {
        set_up(row[i].kernels, row[i].plain_us);
        expect_gain(row[i].gain);
        ck_assert_int_eq(figures.bound, CGS_BOUND_LAUNCHES);
        ck_assert_str_eq(figures.advice,
                         "CGSHIM_REGION_step= CGSHIM_REPORT=stderr");
    }
}
END_TEST

START_TEST(a_wait_after_each_run_gains_what_was_measured)
{
    static const struct {
        uint64_t kernels;
        double   plain_us, gain;
    } row[] = {
        {16, 64.3, 2.83}, {64, 239.4, 3.56}, {256, 963.8, 3.93},
    };
    size_t i;

    for (i = 0; i < sizeof(row) / sizeof(row[0]); ++i) {
        set_up(row[i].kernels, row[i].plain_us);
        figures.waits = figures.waits_in = 1;
        figures.wait_ns = figures.run_ns - figures.call_ns;
        expect_gain(row[i].gain);
    }
}
END_TEST

START_TEST(work_of_the_host_gains_what_was_measured)
{
    /* 5 us before each launch, then a wait. */
    set_up(64, 562.7);
    figures.waits = figures.waits_in = 1;
    figures.wait_ns = 7000;
    expect_gain(1.49);
    ck_assert_int_eq(figures.bound, CGS_BOUND_HOST);

    /* 20 us, kernels as long. */
    set_up(64, 1551.8);
    figures.waits = figures.waits_in = 1;
    figures.wait_ns  = 27000;
    figures.graph_ns = figures.busy_ns = 64 * 20500;
    expect_gain(1.08);

    /* 100 torch.mul into the same tensor. */
    set_up(100, 582.8);
    expect_gain(2.44);
    ck_assert_int_eq(figures.bound, CGS_BOUND_LAUNCHES);
}
END_TEST

START_TEST(long_kernels_are_bound_by_the_device)
{
    /* 50 us each, with a wait and without one. */
    set_up(64, 3329.3);
    figures.waits = figures.waits_in = 1;
    figures.wait_ns  = figures.run_ns - figures.call_ns;
    figures.graph_ns = figures.busy_ns = 64 * 51000;
    expect_gain(1.01);
    ck_assert_int_eq(figures.bound, CGS_BOUND_DEVICE);
    ck_assert_str_eq(figures.advice, "CGSHIM_REGION_step=enable=0");

    /* The host runs ahead of it: the time from start to start says little. */
    set_up(64, 230);
    figures.graph_ns = figures.busy_ns = 64 * 51000;
    expect_gain(1);
    ck_assert_int_eq(figures.bound, CGS_BOUND_DEVICE);
    ck_assert_uint_eq(figures.plain_ns, figures.graph_ns);
}
END_TEST

START_TEST(what_cannot_be_a_graph_gains_nothing)
{
    set_up(1, 3.6);
    expect_gain(1);
    ck_assert_int_eq(figures.bound, CGS_BOUND_FEW);

    set_up(0, 3.6);
    expect_gain(1);

    /* A wait after each launch. */
    set_up(64, 700);
    figures.waits = figures.waits_in = 64;
    figures.wait_ns = 400000;
    expect_gain(1);
    ck_assert_int_eq(figures.bound, CGS_BOUND_WAITS);

    /* 100 us of the host's own before each. */
    set_up(64, 6656.4);
    figures.waits = figures.waits_in = 1;
    expect_gain(1);
    ck_assert_int_eq(figures.bound, CGS_BOUND_HOST);

    /* Always others. */
    set_up(64, 235.4);
    figures.alike_percent = 0;
    expect_gain(1);
    ck_assert_int_eq(figures.bound, CGS_BOUND_CHANGES);
}
END_TEST

START_TEST(too_few_runs_say_nothing)
{
    set_up(64, 230);
    figures.profiled_runs = 3;
    cgs_profile_judge(&figures);
    ck_assert_int_eq(figures.bound, CGS_BOUND_UNKNOWN);
    ck_assert(!figures.has_gain);
    ck_assert_ptr_nonnull(strstr(figures.why, "3 recorded"));

    /* Nor do calls of which CUPTI did not tell what came of them. */
    set_up(64, 230);
    figures.busy_ns = 0;
    cgs_profile_judge(&figures);
    ck_assert(!figures.has_gain);

    set_up(64, 230);
    figures.is_timed = false;
    cgs_profile_judge(&figures);
    ck_assert(!figures.has_gain);
    ck_assert_str_eq(figures.advice, "");
}
END_TEST

START_TEST(advice_is_a_rule_that_a_shell_can_read)
{
    static const struct {
        const char *name, *advice;
    } row[] = {
        {"a b", "CGSHIM_REGION_a_b=\"nvtx='a b'\" CGSHIM_REPORT=stderr"},
        {"a:b", "CGSHIM_REGION_a_b=\"nvtx='a\\:b'\" CGSHIM_REPORT=stderr"},
        {"", "CGSHIM_REPORT=stderr"},
        {"a'b", "CGSHIM_REPORT=stderr"},
        {"a$b", "CGSHIM_REPORT=stderr"},
        {"a*", "CGSHIM_REPORT=stderr"},
        {"\033[1m", "CGSHIM_REPORT=stderr"},
    };
    size_t i;

    for (i = 0; i < sizeof(row) / sizeof(row[0]); ++i) {
        set_up(64, 230);
        figures.name = row[i].name;
        cgs_profile_judge(&figures);
        ck_assert_str_eq(figures.advice, row[i].advice);
    }
    set_up(64, 230);
    figures.has_rule = true;
    cgs_profile_judge(&figures);
    ck_assert_str_eq(figures.advice, "CGSHIM_REPORT=stderr");
}
END_TEST

START_TEST(outside_of_regions_a_range_is_advised)
{
    set_up(2000, 8000);
    figures.name      = NULL;
    figures.sequences = 100;
    figures.commonest = 98;
    figures.distinct  = 3;
    figures.length    = 20;
    cgs_profile_judge(&figures);
    ck_assert_int_eq(figures.bound, CGS_BOUND_LAUNCHES);
    ck_assert_ptr_nonnull(strstr(figures.advice, "NVTX range"));
    ck_assert_ptr_nonnull(strstr(figures.advice, "98 of 100"));
}
END_TEST

int main(void)
{
    Suite   *suite  = suite_create("profile");
    TCase   *tests  = tcase_create("judging");
    SRunner *runner = srunner_create(suite);
    int     failed;

    tcase_add_test(tests, chains_gain_what_was_measured);
    tcase_add_test(tests, a_wait_after_each_run_gains_what_was_measured);
    tcase_add_test(tests, work_of_the_host_gains_what_was_measured);
    tcase_add_test(tests, long_kernels_are_bound_by_the_device);
    tcase_add_test(tests, what_cannot_be_a_graph_gains_nothing);
    tcase_add_test(tests, too_few_runs_say_nothing);
    tcase_add_test(tests, advice_is_a_rule_that_a_shell_can_read);
    tcase_add_test(tests, outside_of_regions_a_range_is_advised);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
