/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the report says of places that differ: how often, and in which way.
 */
#include "changes.h"

#include <check.h>
#include <stdlib.h>

static const char argument[] = "argument";

/* One argument of a call has taken another value in a run */
static cgs_change_t *differ(cgs_changes_t *changes, uint64_t run,
                            uint64_t op_index, uint64_t old, uint64_t now)
{
    cgs_differing_t differing = {
        .run = run, .op_index = op_index, .what = argument, .arg = 2,
        .has_value = true, .old = old, .now = now,
    };

    return cgs_changes_add(changes, &differing);
}

/* The pattern of a place with these values, by turns where `period` > 0 */
static cgs_pattern_t pattern_of(uint64_t first, int64_t step, unsigned period,
                                bool is_address)
{
    cgs_changes_t changes = {0};
    uint64_t      old     = first;
    uint64_t      now;
    unsigned      i;

    for (i = 1; i <= 40; ++i) {
        now = first + (uint64_t)(step * (period > 0 ? i % period : i));
        differ(&changes, i, 7, old, now);
        changes.entry[0].is_address = is_address;
        old = now;
    }
    return cgs_change_pattern(&changes.entry[0]);
}

START_TEST(values_by_turns_alternate_and_their_number_is_known)
{
    cgs_changes_t changes = {0};
    unsigned      i;

    for (i = 2; i <= CGS_MAX_VALUES; ++i) {
        ck_assert_int_eq(pattern_of(100, 8, i, false),
                         CGS_PATTERN_ALTERNATES);
    }
    for (i = 1; i < 30; ++i) {
        differ(&changes, i, 0, (i - 1) % 3, i % 3);
    }
    ck_assert_uint_eq(changes.entry[0].num_values, 3);
    ck_assert_int_eq(pattern_of(100, 8, CGS_MAX_VALUES + 5, false),
                     CGS_PATTERN_NEW);
}
END_TEST

START_TEST(values_that_never_come_again_grow_shrink_or_are_new)
{
    ck_assert_int_eq(pattern_of(100, 1, 0, false), CGS_PATTERN_GROWS);
    ck_assert_int_eq(pattern_of(100, -1, 0, false), CGS_PATTERN_SHRINKS);
    ck_assert_int_eq(pattern_of(1 << 20, 512, 0, true), CGS_PATTERN_NEW);
}
END_TEST

START_TEST(a_few_values_are_no_pattern)
{
    cgs_changes_t changes = {0};

    differ(&changes, 2, 7, 1, 2);
    differ(&changes, 3, 7, 2, 3);
    differ(&changes, 4, 7, 3, 4);
    ck_assert_int_eq(cgs_change_pattern(&changes.entry[0]), CGS_PATTERN_NONE);
}
END_TEST

START_TEST(a_place_is_named_once_and_counts_runs)
{
    cgs_changes_t changes = {0};

    ck_assert_ptr_eq(differ(&changes, 2, 7, 1, 2), &changes.entry[0]);
    ck_assert_ptr_null(differ(&changes, 2, 7, 2, 1));
    ck_assert_ptr_null(differ(&changes, 3, 7, 1, 2));
    ck_assert_ptr_eq(differ(&changes, 3, 8, 1, 2), &changes.entry[1]);
    ck_assert_uint_eq(changes.num, 2);
    ck_assert_uint_eq(changes.entry[0].runs, 2);
    ck_assert_uint_eq(changes.entry[0].num, 3);
    ck_assert_uint_eq(changes.entry[1].runs, 1);
}
END_TEST

START_TEST(where_all_calls_differ_the_first_ones_are_kept)
{
    cgs_changes_t changes = {0};
    uint64_t      run, op;

    for (run = 1; run < 500; ++run) {
        for (op = 0; op < 100; ++op) {
            differ(&changes, run, op, run, run + 1);
        }
    }
    ck_assert_uint_eq(changes.num, CGS_MAX_CHANGES);
    for (op = 0; op < CGS_MAX_CHANGES; ++op) {
        ck_assert_uint_eq(changes.entry[op].op_index, op);
        ck_assert_uint_eq(changes.entry[op].runs, 499);
    }
}
END_TEST

START_TEST(what_differs_no_more_makes_room)
{
    cgs_changes_t      changes = {0};
    const cgs_change_t *order[CGS_MAX_CHANGES];
    uint64_t           run, op;

    for (op = 0; op < CGS_MAX_CHANGES; ++op) {
        differ(&changes, 2, op, 1, 2);
    }
    for (run = 3; run < 100; ++run) {
        differ(&changes, run, 55, run, run + 1);
    }
    cgs_changes_sort(&changes, order);
    ck_assert_uint_eq(order[0]->op_index, 55);
    ck_assert_uint_gt(order[0]->runs, 60);
    ck_assert_uint_eq(order[CGS_MAX_CHANGES - 1]->runs, 1);
}
END_TEST

START_TEST(the_first_runs_are_watched_and_then_some)
{
    cgs_changes_t changes = {0};
    unsigned      first = 0, later = 0, i;

    for (i = 0; i < 64; ++i) {
        first += cgs_changes_start(&changes);
    }
    for (i = 0; i < 1700; ++i) {
        later += cgs_changes_start(&changes);
    }
    ck_assert_uint_eq(first, 64);
    ck_assert_uint_eq(later, 100);
    ck_assert_uint_eq(changes.watched, 164);
    ck_assert_uint_eq(changes.runs, 1764);
}
END_TEST

int main(void)
{
    Suite   *suite  = suite_create("changes");
    TCase   *tests  = tcase_create("changes");
    SRunner *runner = srunner_create(suite);
    int     failed;

    tcase_add_test(tests,
                   values_by_turns_alternate_and_their_number_is_known);
    tcase_add_test(tests,
                   values_that_never_come_again_grow_shrink_or_are_new);
    tcase_add_test(tests, a_few_values_are_no_pattern);
    tcase_add_test(tests, a_place_is_named_once_and_counts_runs);
    tcase_add_test(tests, where_all_calls_differ_the_first_ones_are_kept);
    tcase_add_test(tests, what_differs_no_more_makes_room);
    tcase_add_test(tests, the_first_runs_are_watched_and_then_some);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
