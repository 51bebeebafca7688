/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which loops are found in a sequence, and when.
 */
#include "repeats.h"

#include <check.h>
#include <stdlib.h>

static cgs_repeats_t *repeats;
static uint32_t      chance = 1;

static void set_up(void)
{
    repeats = cgs_repeats_create();
    ck_assert_ptr_nonnull(repeats);
}

static void tear_down(void)
{
    cgs_repeats_destroy(repeats);
    repeats = NULL;
}

static uint64_t token(uint32_t number)
{
    return (number + 1) * UINT64_C(0xd1342543de82ef95);
}

static void add(uint32_t number)
{
    cgs_repeats_add(repeats, token(number));
}

/* Tokens `first`, `first` + 1, ... */
static void add_row(uint32_t first, uint32_t num)
{
    uint32_t i;

    for (i = 0; i < num; ++i) {
        add(first + i);
    }
}

/* Numbers that do not come again. */
static void add_noise(uint32_t num)
{
    static uint32_t last = 1u << 20;

    while (num-- > 0) {
        add(last++);
    }
}

static uint32_t next(uint32_t below)
{
    chance = chance * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)chance * below) >> 32);
}

static bool has_period(uint32_t period)
{
    uint64_t length;
    int      level;

    for (level = 0; level < CGS_REPEATS_LEVELS; ++level) {
        if ((cgs_repeats_period(repeats, level, &length) == period) &&
            (length >= period)) {
            return true;
        }
    }
    return false;
}

START_TEST(a_loop_is_found_when_it_has_come_twice)
{
    static const uint32_t periods[] = {4, 9, 18, 157, 569, 4000, 16384};
    uint32_t i;

    for (i = 0; i < sizeof(periods) / sizeof(periods[0]); ++i) {
        add_noise(100);
        add_row(periods[i] * 100, periods[i]);
        add_row(periods[i] * 100, periods[i] - 1);
        ck_assert(!has_period(periods[i]));
        add_row(periods[i] * 100 + periods[i] - 1, 1);
        /* Of many tokens some places are forgotten, but not all. */
        add_row(periods[i] * 100, periods[i] > 1000 ? 60 : 0);
        ck_assert_msg(has_period(periods[i]), "period %u", periods[i]);
    }
}
END_TEST

START_TEST(blocks_in_the_order_of_thue_and_morse_are_not_the_same)
{
    uint32_t i, half;

    /* Token i is told by the number of bits in i; in the second half each is
     * the other one, and only the ends of both are the same. */
    for (half = 0; half < 2; ++half) {
        for (i = 0; i < 2048; ++i) {
            add(((uint32_t)__builtin_popcount(i) + half) % 2);
        }
        add_row(10, 4);
    }
    ck_assert(!has_period(2052));
    ck_assert_uint_ne(cgs_repeats_hash(repeats, 0, 2052),
                      cgs_repeats_hash(repeats, 2052, 2052));
    ck_assert_uint_eq(cgs_repeats_hash(repeats, 0, 4),
                      cgs_repeats_hash(repeats, 2052, 4));
}
END_TEST

START_TEST(a_row_of_one_token_has_period_1)
{
    uint64_t length;
    uint32_t i;

    add_noise(10);
    for (i = 0; i < 20; ++i) {
        add(3);
    }
    ck_assert_uint_eq(cgs_repeats_period(repeats, 0, &length), 1);
    ck_assert_uint_ge(length, 16);
}
END_TEST

START_TEST(a_loop_with_rows_of_one_token_in_it_is_found)
{
    uint32_t run, i, row;

    for (run = 0; run < 4; ++run) {
        for (row = 0; row < 5; ++row) {
            for (i = 0; i < 8 + row; ++i) {
                add(row);
            }
            add_row(100 + 10 * row, 3);
        }
    }
    ck_assert(has_period(8 + 9 + 10 + 11 + 12 + 15));
}
END_TEST

START_TEST(the_loop_around_a_loop_is_found)
{
    uint32_t run, i;

    for (run = 0; run < 3; ++run) {
        for (i = 0; i < 10; ++i) {
            add_row(0, 7);
        }
        add_row(1000, 5);
    }
    /* It is known from the second time on that the inner loop ends. */
    for (i = 0; i < 10; ++i) {
        add_row(0, 7);
    }
    add(1000);
    ck_assert(has_period(75));
}
END_TEST

START_TEST(three_loops_in_each_other_are_found)
{
    uint32_t run, middle, i;

    for (run = 0; run < 5; ++run) {
        for (middle = 0; middle < 4; ++middle) {
            for (i = 0; i < 6; ++i) {
                add_row(0, 5);
            }
            add_row(1000, 4);
        }
        add_row(2000, 30);
    }
    ck_assert(has_period(4 * 34 + 30));
}
END_TEST

START_TEST(what_does_not_come_again_has_no_period)
{
    uint32_t i, found = 0;
    uint64_t length;

    for (i = 0; i < 100000; ++i) {
        add(next(1000));
        found += (cgs_repeats_period(repeats, 0, &length) > 1);
    }
    ck_assert_uint_eq(found, 0);
}
END_TEST

START_TEST(after_a_break_what_was_before_is_no_sighting)
{
    add_noise(10);
    add_row(0, 50);
    cgs_repeats_break(repeats);
    add_row(0, 50);
    ck_assert(!has_period(50));
    add_row(0, 50);
    ck_assert(has_period(50));
}
END_TEST

START_TEST(equal_stretches_have_equal_hashes_and_others_do_not)
{
    add_noise(1000);
    add_row(5, 300);
    add_noise(70000);
    add_row(5, 300);
    ck_assert_uint_eq(cgs_repeats_hash(repeats, 70300, 300), 0);
    add_noise(33);
    add_row(5, 300);
    ck_assert_uint_ne(cgs_repeats_hash(repeats, 0, 300), 0);
    ck_assert_uint_eq(cgs_repeats_hash(repeats, 0, 300),
                      cgs_repeats_hash(repeats, 333, 300));
    ck_assert_uint_ne(cgs_repeats_hash(repeats, 1, 299),
                      cgs_repeats_hash(repeats, 333, 299));
    ck_assert_uint_eq(cgs_repeats_token(repeats, 299), token(5));
    ck_assert_uint_eq(cgs_repeats_count(repeats), 1000 + 300 + 70000 + 633);
}
END_TEST

START_TEST(more_tokens_than_are_kept_change_nothing)
{
    uint32_t i;

    for (i = 0; i < 3000; ++i) {
        add_row(0, 41);
    }
    ck_assert(has_period(41));
    add_noise(5);
    ck_assert(!has_period(41));
    add_row(0, 41);
    add_row(0, 41);
    ck_assert(has_period(41));
}
END_TEST

int main(void)
{
    Suite   *suite  = suite_create("repeats");
    TCase   *tcase  = tcase_create("repeats");
    SRunner *runner = srunner_create(suite);
    int     failed;

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_loop_is_found_when_it_has_come_twice);
    tcase_add_test(tcase, a_row_of_one_token_has_period_1);
    tcase_add_test(tcase,
                   blocks_in_the_order_of_thue_and_morse_are_not_the_same);
    tcase_add_test(tcase, a_loop_with_rows_of_one_token_in_it_is_found);
    tcase_add_test(tcase, the_loop_around_a_loop_is_found);
    tcase_add_test(tcase, three_loops_in_each_other_are_found);
    tcase_add_test(tcase, what_does_not_come_again_has_no_period);
    tcase_add_test(tcase, after_a_break_what_was_before_is_no_sighting);
    tcase_add_test(tcase,
                   equal_stretches_have_equal_hashes_and_others_do_not);
    tcase_add_test(tcase, more_tokens_than_are_kept_change_nothing);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
