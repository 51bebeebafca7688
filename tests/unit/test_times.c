/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a region's runs and calls take: which of them count, and that a few long
 * ones do not spoil the mean.
 */
#include "times.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static cgs_times_t times;
static cgs_gate_t  gate;
static uint64_t    now_ns;

static void set_up(void)
{
    memset(&times, 0, sizeof(times));
    memset(&gate, 0, sizeof(gate));
    now_ns = 1000;
}

/* Runs of one kind that take so long */
static void run(unsigned num, cgs_path_t path, uint64_t ns)
{
    for (; num > 0; --num) {
        cgs_times_start(&times, &gate, now_ns);
        cgs_gate_leave(&gate, path);
        now_ns += ns;
    }
}

static void expect_mean(const cgs_sample_t *sample, uint64_t expected)
{
    uint64_t ns = 0;

    ck_assert(cgs_sample_mean(sample, 4, &ns));
    ck_assert_uint_eq(ns, expected);
}

START_TEST(too_few_times_are_no_mean)
{
    cgs_sample_t sample = {0};
    uint64_t     ns     = 42;

    ck_assert(!cgs_sample_mean(&sample, 0, &ns));
    cgs_sample_add(&sample, 5);
    cgs_sample_add(&sample, 5);
    cgs_sample_add(&sample, 5);
    ck_assert(!cgs_sample_mean(&sample, 4, &ns));
    ck_assert_uint_eq(ns, 42);
    cgs_sample_add(&sample, 5);
    expect_mean(&sample, 5);
}
END_TEST

START_TEST(long_ones_do_not_spoil_the_mean)
{
    cgs_sample_t sample = {0};
    uint64_t     ns;
    unsigned     i;

    for (i = 0; i < 20; ++i) {
        cgs_sample_add(&sample, i % 5 == 0 ? UINT64_MAX : 100 + i % 3);
    }
    ck_assert(cgs_sample_mean(&sample, 4, &ns));
    ck_assert_uint_ge(ns, 100);
    ck_assert_uint_le(ns, 102);
}
END_TEST

START_TEST(each_time_is_kept_with_the_same_chance)
{
    cgs_sample_t sample;
    unsigned     from_second_half = 0, trial, i;

    for (trial = 0; trial < 100; ++trial) {
        memset(&sample, 0, sizeof(sample));
        sample.chance = trial + 1;
        for (i = 0; i < 1000; ++i) {
            cgs_sample_add(&sample, i);
        }
        for (i = 0; i < CGS_SAMPLE_SIZE; ++i) {
            from_second_half += sample.ns[i] >= 500;
        }
    }
    /* Of 3200 about half: 1600, within eight times what chance makes of it */
    ck_assert_uint_gt(from_second_half, 1600 - 230);
    ck_assert_uint_lt(from_second_half, 1600 + 230);
}
END_TEST

START_TEST(plain_and_replayed_runs_are_apart)
{
    run(30, CGS_PATH_EXACT, 700);
    run(30, CGS_PATH_PLAIN, 2000);
    run(30, CGS_PATH_PATCHED, 700);
    expect_mean(&times.replayed_runs, 700);
    expect_mean(&times.plain_runs, 2000);
}
END_TEST

START_TEST(the_first_runs_after_those_of_the_other_kind_do_not_count)
{
    unsigned i;

    for (i = 0; i < 50; ++i) {
        run(2, CGS_PATH_EXACT, 700);
        run(2, CGS_PATH_PLAIN, 2000);
    }
    ck_assert_uint_eq(times.replayed_runs.num, 0);
    ck_assert_uint_eq(times.plain_runs.num, 0);
}
END_TEST

START_TEST(runs_that_were_recorded_or_in_vain_do_not_count)
{
    run(30, CGS_PATH_NONE, 5000);
    run(30, CGS_PATH_FUTILE, 5000);
    ck_assert_uint_eq(times.replayed_runs.num, 0);
    ck_assert_uint_eq(times.plain_runs.num, 0);
}
END_TEST

START_TEST(plain_runs_that_pass_unseen_count_by_their_mean)
{
    unsigned i;

    for (i = 0; i < 4; ++i) {
        cgs_times_start(&times, &gate, now_ns);
        cgs_times_skip(&times, 127);
        cgs_gate_leave(&gate, CGS_PATH_PLAIN);
        now_ns += 128 * 2000;
        run(3, CGS_PATH_EXACT, 700);
    }
    expect_mean(&times.plain_runs, 2000);
}
END_TEST

START_TEST(what_is_between_runs_that_were_not_timed_does_not_count)
{
    run(10, CGS_PATH_EXACT, 700);
    cgs_times_break(&times);
    now_ns += 1000000;
    run(10, CGS_PATH_EXACT, 700);
    ck_assert_uint_eq(times.replayed_runs.num, 7 + 9);
    expect_mean(&times.replayed_runs, 700);
}
END_TEST

START_TEST(calls_of_a_recording_do_not_count_beside_those_of_a_plain_run)
{
    unsigned i;

    for (i = 0; i < 20; ++i) {
        cgs_sample_add(&times.plain_calls, 90000);
    }
    cgs_times_watch(&times);
    for (i = 0; i < 20; ++i) {
        cgs_sample_add(&times.plain_calls, 2000);
    }
    cgs_times_watch(&times);
    expect_mean(&times.plain_calls, 2000);
}
END_TEST

int main(void)
{
    Suite   *suite  = suite_create("times");
    TCase   *tests  = tcase_create("times");
    SRunner *runner = srunner_create(suite);
    int     failed;

    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, too_few_times_are_no_mean);
    tcase_add_test(tests, long_ones_do_not_spoil_the_mean);
    tcase_add_test(tests, each_time_is_kept_with_the_same_chance);
    tcase_add_test(tests, plain_and_replayed_runs_are_apart);
    tcase_add_test(tests,
        the_first_runs_after_those_of_the_other_kind_do_not_count);
    tcase_add_test(tests, runs_that_were_recorded_or_in_vain_do_not_count);
    tcase_add_test(tests, plain_runs_that_pass_unseen_count_by_their_mean);
    tcase_add_test(tests,
                   what_is_between_runs_that_were_not_timed_does_not_count);
    tcase_add_test(tests,
        calls_of_a_recording_do_not_count_beside_those_of_a_plain_run);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
