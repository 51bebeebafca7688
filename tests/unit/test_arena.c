/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a recording: where it lies, what it holds, and that it goes.
 */
#include "arena.h"

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUM_TAKEN = 3000
};

static bool is_filled(const unsigned char *bytes, size_t size, int value)
{
    size_t i;

    for (i = 0; i < size; ++i) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return true;
}

static size_t odd_size(unsigned i)
{
    return i % 97 == 0 ? 70000 + i : i * 37 % 517;
}

START_TEST(what_was_taken_is_zeroed_apart_and_stays_where_it_is)
{
    static unsigned char *taken[NUM_TAKEN];
    cgs_arena_t          arena = {0};
    unsigned             i;

    for (i = 0; i < NUM_TAKEN; ++i) {
        taken[i] = cgs_arena_take(&arena, odd_size(i));
        ck_assert_ptr_nonnull(taken[i]);
        ck_assert_msg(is_filled(taken[i], odd_size(i), 0), "piece %u", i);
        memset(taken[i], (int)(i % 255 + 1), odd_size(i));
    }
    for (i = 0; i < NUM_TAKEN; ++i) {
        ck_assert_msg(is_filled(taken[i], odd_size(i), (int)(i % 255 + 1)),
                      "piece %u was written over", i);
    }
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(any_type_may_be_put_there)
{
    cgs_arena_t arena = {0};
    size_t      size;

    for (size = 0; size < 200; ++size) {
        ck_assert_uint_eq((uintptr_t)cgs_arena_take(&arena, size) %
                          _Alignof(max_align_t), 0);
    }
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(the_bytes_held_are_counted)
{
    cgs_arena_t arena = {0};
    size_t      taken = 0, before;
    unsigned    i;

    for (i = 0; i < NUM_TAKEN; ++i) {
        cgs_arena_take(&arena, 100);
        taken += 100;
        ck_assert_uint_ge(arena.bytes, taken);
    }
    ck_assert_uint_lt(arena.bytes, 2 * taken);
    before = arena.bytes;
    ck_assert_ptr_nonnull(cgs_arena_take(&arena, 10 << 20));
    ck_assert_uint_ge(arena.bytes, before + (10 << 20));
    cgs_arena_release(&arena);
    ck_assert_uint_eq(arena.bytes, 0);
}
END_TEST

START_TEST(a_small_recording_holds_a_few_kilobytes)
{
    cgs_arena_t arena = {0};

    cgs_arena_take(&arena, 1000);
    ck_assert_uint_le(arena.bytes, 8192);
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(what_cannot_be_had_changes_nothing)
{
    cgs_arena_t arena  = {0};
    char        *first = cgs_arena_take(&arena, 8);
    size_t      bytes  = arena.bytes;

    ck_assert_ptr_null(cgs_arena_take(&arena, SIZE_MAX));
    ck_assert_ptr_null(cgs_arena_take(&arena, SIZE_MAX / 2 + 1));
    ck_assert_uint_eq(arena.bytes, bytes);
    strcpy(first, "is kept");
    ck_assert_ptr_nonnull(cgs_arena_take(&arena, 8));
    ck_assert_str_eq(first, "is kept");
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(a_released_arena_is_as_new)
{
    cgs_arena_t arena = {0};
    int         round;

    cgs_arena_release(&arena);
    for (round = 0; round < 3; ++round) {
        unsigned char *bytes = cgs_arena_take(&arena, 5000);

        ck_assert_ptr_nonnull(bytes);
        ck_assert(is_filled(bytes, 5000, 0));
        memset(bytes, 0xff, 5000);
        cgs_arena_release(&arena);
        ck_assert_ptr_null(arena.blocks);
    }
}
END_TEST

int main(void)
{
    Suite   *suite  = suite_create("arena");
    TCase   *tests  = tcase_create("arena");
    SRunner *runner = srunner_create(suite);
    int     failed;

    tcase_add_test(tests,
                   what_was_taken_is_zeroed_apart_and_stays_where_it_is);
    tcase_add_test(tests, any_type_may_be_put_there);
    tcase_add_test(tests, the_bytes_held_are_counted);
    tcase_add_test(tests, a_small_recording_holds_a_few_kilobytes);
    tcase_add_test(tests, what_cannot_be_had_changes_nothing);
    tcase_add_test(tests, a_released_arena_is_as_new);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
