/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments that come again by turns: which periods are learned, that nothing
 * else is, and that what is held stays bounded whatever comes.
 */
#define _GNU_SOURCE 1
#include "phases.h"

#include "region_run.h"

enum {
    STEPS = 6
};

/* Before the library's own constructor keeps the environment. */
__attribute__((constructor(101))) static void configure(void)
{
    /* However slow the machine is: what is held stays held. */
    setenv("CGSHIM_DEFAULTS", "max_defer_us=1000000000 gate=off chunk=all", 1);
    setenv("CGSHIM_REGION_phases", "", 1);
    setenv("CGSHIM_REGION_recapture", "on_change=recapture", 1);
}

static void run(uint32_t first)
{
    run_steps("phases", first, STEPS);
}

static const cgs_region_t *region(void)
{
    return cgs_region_find("phases");
}

static const cgs_phases_t *phases(void)
{
    static const cgs_phases_t none;

    return cgs_recording_is_empty(&region()->recording) ? &none :
           &region()->recording.first->current->phases;
}

static size_t host_bytes(void)
{
    cgs_region_t *all = cgs_region_find("phases");

    cgs_region_measure(all);
    return all->stats.host_bytes;
}

static uint64_t num_nodes(void)
{
    cgs_region_t *all = cgs_region_find("phases");

    cgs_region_measure(all);
    return all->stats.nodes;
}

/* Nodes patched in so many runs of a period. */
static uint64_t patched_in(unsigned runs, unsigned period)
{
    uint64_t before = region() != NULL ? region()->stats.patched : 0;
    unsigned i;

    for (i = 0; i < runs * period; ++i) {
        run(100 * (i % period));
    }
    return region()->stats.patched - before;
}

START_TEST(a_period_of_2_3_or_4_runs_is_learned)
{
    unsigned period = (unsigned)_i;

    patched_in(8, period);
    ck_assert_uint_eq(phases()->num, period);
    ck_assert_uint_eq(patched_in(20, period), 0);
    ck_assert_uint_eq(region()->stats.recordings, 1);
    ck_assert_uint_eq(num_nodes(), period * STEPS);
    ck_assert_uint_eq(region()->stats.replayed_runs, 28 * period - 1);
    check_word();
}
END_TEST

START_TEST(a_longer_period_is_patched)
{
    ck_assert_uint_gt(patched_in(40, 5), 0);
    ck_assert_uint_gt(patched_in(4, 5), 0);
    ck_assert_uint_le(phases()->num, 1);
    ck_assert_uint_eq(region()->stats.recordings, 1);
    check_word();
}
END_TEST

START_TEST(constant_arguments_have_one_phase)
{
    ck_assert_uint_eq(patched_in(50, 1), 0);
    ck_assert_uint_le(phases()->num, 1);
    check_word();
}
END_TEST

/* The runs' first step alone takes turns. */
START_TEST(few_changes_are_patched_and_make_no_phase)
{
    unsigned i, j;

    for (i = 0; i < 60; ++i) {
        enter("phases");
        for (j = 0; j < STEPS; ++j) {
            step(j == 0 ? i % 2 : j);
        }
        leave();
    }
    ck_assert_uint_le(phases()->num, 1);
    ck_assert_uint_eq(region()->stats.patched, 59);
    check_word();
}
END_TEST

START_TEST(a_drifting_sequence_never_grows)
{
    size_t   first, bytes;
    unsigned i;

    run(0);
    run(STEPS);
    first = host_bytes();
    for (i = 2; i < 3000; ++i) {
        run(STEPS * i);
        if (i % 100 == 0) {
            bytes = host_bytes();
            ck_assert_msg(bytes <= first, "%zu bytes after %u runs", bytes, i);
            ck_assert_uint_le(phases()->num, 1);
            ck_assert_uint_eq(num_nodes(), STEPS);
        }
    }
    ck_assert_uint_eq(region()->stats.recordings, 1);
    ck_assert_uint_eq(region()->stats.replayed_runs, 2999);
    check_word();
}
END_TEST

START_TEST(a_drifting_sequence_is_not_looked_at_for_ever)
{
    unsigned i;

    for (i = 0; i < 200; ++i) {
        run(STEPS * i);
    }
    ck_assert_uint_gt(phases()->sleeps, 0);
    ck_assert_uint_lt(phases()->sleeps, 8);
}
END_TEST

START_TEST(runs_that_slip_find_their_phase_again)
{
    unsigned period = (unsigned)_i;
    uint64_t before;
    unsigned i, phase = 0;

    patched_in(8, period);
    before = region()->stats.patched;
    for (i = 0; i < 100; ++i) {
        run(100 * phase);
        /* Every seventh run comes twice, every eleventh is left out. */
        phase += (i % 7 != 0) + (i % 11 == 0);
        phase %= period;
    }
    ck_assert_uint_eq(region()->stats.patched, before);
    ck_assert_uint_eq(phases()->num, period);
    check_word();
}
END_TEST

/* The first call is the same in each phase: that it is followed rightly shows
 * at the second one. */
START_TEST(phases_that_begin_alike_are_patched_rightly)
{
    unsigned i, j, phase;

    for (i = 0; i < 200; ++i) {
        phase = i % 7 == 0 ? 0 : i % 2;
        enter("phases");
        for (j = 0; j < STEPS; ++j) {
            step(j == 0 ? 1 : 100 * phase + j);
        }
        leave();
    }
    check_word();
    ck_assert_uint_eq(region()->stats.recordings, 1);
}
END_TEST

START_TEST(a_program_that_moves_on_is_followed)
{
    size_t   largest = 0, single, bytes, before, after, total;
    unsigned round, i;

    PRG_CHECK(cuMemGetInfo_v2(&before, &total));
    run(1);
    run(1);
    single = host_bytes();
    PRG_CHECK(cuMemGetInfo_v2(&after, &total));
    ck_assert_uint_lt(after, before);
    before = before - CGS_MAX_PHASES * (before - after);
    for (round = 0; round < 12; ++round) {
        patched_in(20, 2 + round % 3);
        for (i = 0; i < 70; ++i) {
            run(1000 * round + STEPS * i);
        }
        bytes   = host_bytes();
        largest = bytes > largest ? bytes : largest;
        ck_assert_uint_le(phases()->num, CGS_MAX_PHASES);
        ck_assert_uint_le(num_nodes(), CGS_MAX_PHASES * STEPS);
        PRG_CHECK(cuMemGetInfo_v2(&after, &total));
        ck_assert_uint_ge(after, before);
    }
    ck_assert_msg(largest <= CGS_MAX_PHASES * single + 65536,
                  "%zu bytes, %zu for one phase", largest, single);
    check_word();
}
END_TEST

START_TEST(another_sequence_of_calls_leaves_the_phases_alone)
{
    patched_in(8, 3);
    ck_assert_uint_eq(phases()->num, 3);
    run_steps("phases", 7, STEPS - 1);
    ck_assert_uint_eq(phases()->num, 1);
    run_times("phases", 3, 7, STEPS - 1);
    ck_assert_uint_eq(num_nodes(), 3 * STEPS + STEPS - 1);
    check_word();
}
END_TEST

START_TEST(phases_are_destroyed_with_their_region)
{
    patched_in(8, 4);
    ck_assert_uint_eq(num_nodes(), 4 * STEPS);
    cgs_region_destroy(cgs_region_find("phases"), "a test");
    ck_assert_uint_eq(num_nodes(), 0);
    patched_in(8, 4);
    ck_assert_uint_eq(phases()->num, 4);
    check_word();
}
END_TEST

START_TEST(only_patched_regions_have_phases)
{
    unsigned i;

    for (i = 0; i < 60; ++i) {
        run_steps("recapture", 100 * (i % 2), STEPS);
    }
    ck_assert_uint_le(cgs_region_find("recapture")->recording.first->current->phases.num, 1);
    ck_assert_uint_eq(cgs_region_find("recapture")->stats.patched, 0);
    check_word();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("phases");
    TCase *tests = tcase_create("phases");

    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_period_of_2_3_or_4_runs_is_learned, 2, 5);
    tcase_add_test(tests, a_longer_period_is_patched);
    tcase_add_test(tests, constant_arguments_have_one_phase);
    tcase_add_test(tests, few_changes_are_patched_and_make_no_phase);
    tcase_add_test(tests, a_drifting_sequence_never_grows);
    tcase_add_test(tests, a_drifting_sequence_is_not_looked_at_for_ever);
    tcase_add_loop_test(tests, runs_that_slip_find_their_phase_again, 2, 5);
    tcase_add_test(tests, phases_that_begin_alike_are_patched_rightly);
    tcase_add_test(tests, a_program_that_moves_on_is_followed);
    tcase_add_test(tests,
                   another_sequence_of_calls_leaves_the_phases_alone);
    tcase_add_test(tests, phases_are_destroyed_with_their_region);
    tcase_add_test(tests, only_patched_regions_have_phases);
    suite_add_tcase(suite, tests);
    return core_run(suite);
}
