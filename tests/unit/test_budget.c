/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that does not suffice for all regions: who gives theirs back.
 */
#define _GNU_SOURCE 1
#include "region_run.h"

#include <stdio.h>

enum {
    STEPS = 40, /* a quarter of what memory_mb allows, and some */
    IDLE  = 6,
    RUNS  = 40
};

/* Before the library's own constructor keeps the environment. */
__attribute__((constructor(101))) static void configure(void)
{
    setenv("CGSHIM_DEFAULTS", "max_defer_us=1000000000 gate=off chunk=all "
           "memory_mb=1", 1);
}

static uint64_t num_nodes(const char *name)
{
    cgs_region_t *region = cgs_region_find(name);

    cgs_region_measure(region);
    return region->stats.nodes;
}

/* Each idle region in its turn, not the first of them over and over. */
START_TEST(idle_regions_give_back_until_there_is_room)
{
    char     name[16];
    unsigned i;

    for (i = 0; i < IDLE; ++i) {
        snprintf(name, sizeof(name), "idle %u", i);
        run_times(name, 3, 1, STEPS);
    }
    for (i = 0; i < RUNS; ++i) {
        run_steps("a", 1, 2 * STEPS);
        run_steps("b", 1, 2 * STEPS);
    }
    check_word();
    ck_assert_uint_eq(num_nodes("a"), 2 * STEPS);
    ck_assert_uint_eq(num_nodes("b"), 2 * STEPS);
}
END_TEST

/* Regions that take turns and do not all fit: some are kept, and not one is
 * built over and over. */
START_TEST(regions_that_take_turns_are_kept)
{
    uint64_t builds = 0;
    char     name[16];
    unsigned i, n;

    for (i = 0; i < RUNS; ++i) {
        for (n = 0; n < IDLE; ++n) {
            snprintf(name, sizeof(name), "turn %u", n);
            run_steps(name, 1, STEPS);
        }
    }
    check_word();
    for (n = 0; n < IDLE; ++n) {
        snprintf(name, sizeof(name), "turn %u", n);
        builds += cgs_region_find(name)->stats.builds;
    }
    ck_assert_uint_gt(num_nodes("turn 0"), 0);
    ck_assert_uint_le(builds, IDLE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("budget");
    TCase *tests = tcase_create("budget");

    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_add_test(tests, idle_regions_give_back_until_there_is_room);
    tcase_add_test(tests, regions_that_take_turns_are_kept);
    suite_add_tcase(suite, tests);
    return core_run(suite);
}
