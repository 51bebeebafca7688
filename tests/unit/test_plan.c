/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where chunks end.
 */
#include "plan.h"

#include <check.h>
#include <stdlib.h>

#include "config.h"

enum {
    MAX_OPS = 4096
};

static cgs_op_t    ops[MAX_OPS];
static cgs_chunk_t chunk;
static uint32_t    *ends;
static uint32_t    num;

static void set_up(void)
{
    uint32_t i;

    chunk = (cgs_chunk_t){.ops = ops, .num_streams = 1};
    for (i = 0; i < MAX_OPS; ++i) {
        ops[i] = (cgs_op_t){.kind = CGS_OP_KERNEL};
    }
}

static void plan_for(uint32_t num_ops, unsigned limit, bool synced)
{
    cgs_plan_rule_t rule = {.limit = limit, .synced = synced};
    uint32_t        i;

    free(ends);
    ends          = NULL;
    chunk.num_ops = num_ops;
    num           = cgs_plan_chunks(&chunk, &rule, &ends);
    ck_assert_uint_gt(num, 0);
    ck_assert_uint_eq(ends[num - 1], num_ops);
    for (i = 1; i < num; ++i) {
        ck_assert_uint_gt(ends[i], ends[i - 1]);
    }
}

static void plan(uint32_t num_ops, unsigned limit)
{
    plan_for(num_ops, limit, true);
}

static void set_gaps(uint32_t gap_ns)
{
    uint32_t i;

    for (i = 0; i < MAX_OPS; ++i) {
        ops[i].gap_ns = gap_ns;
    }
}

START_TEST(a_fixed_size_is_kept)
{
    uint32_t i;

    plan(100, 7);
    ck_assert_uint_eq(num, 15);
    for (i = 0; i + 1 < num; ++i) {
        ck_assert_uint_eq(ends[i], 7 * (i + 1));
    }
    plan(100, 1);
    ck_assert_uint_eq(num, 100);
    plan(100, CGS_CHUNK_ALL);
    ck_assert_uint_eq(num, 1);
}
END_TEST

/* The device starts after a few calls, and the rest are few graphs. */
START_TEST(chunks_grow_where_calls_are_quick)
{
    uint32_t i;

    plan(1024, CGS_CHUNK_AUTO);
    ck_assert_uint_le(ends[0], 16);
    ck_assert_uint_le(num, 6);
    for (i = 2; i + 1 < num; ++i) {
        ck_assert_uint_ge(ends[i] - ends[i - 1], ends[i - 1] - ends[i - 2]);
    }
    plan(64, CGS_CHUNK_AUTO);
    ck_assert_uint_eq(num, 2);
    plan(16, CGS_CHUNK_AUTO);
    ck_assert_uint_eq(num, 1);
}
END_TEST

START_TEST(who_never_waits_has_larger_graphs)
{
    plan_for(1024, CGS_CHUNK_AUTO, false);
    ck_assert_uint_eq(num, 1);
    set_gaps(5000);
    plan_for(64, CGS_CHUNK_AUTO, false);
    ck_assert_uint_le(num, 3);
    set_gaps(100000);
    plan_for(64, CGS_CHUNK_AUTO, false);
    ck_assert_uint_ge(num, 32);
}
END_TEST

/* No chunk lasts longer than half of what launches would have taken. */
START_TEST(no_chunk_is_late_for_longer_than_it_gains)
{
    static const uint32_t gaps[] = {1000, 5000, 20000, 100000, 5000000};
    uint64_t              host_ns;
    uint32_t              g, i, begin;

    for (g = 0; g < sizeof(gaps) / sizeof(gaps[0]); ++g) {
        set_gaps(gaps[g]);
        plan(64, CGS_CHUNK_AUTO);
        for (i = 0, begin = 0; i < num; begin = ends[i++]) {
            host_ns = (uint64_t)(ends[i] - begin - 1) * gaps[g];
            ck_assert_uint_le(host_ns, 64 * 1500);
        }
    }
    /* Graphs of one call are no graphs: these go plain. */
    ck_assert_uint_eq(num, 64);
}
END_TEST

START_TEST(a_long_pause_ends_a_chunk)
{
    ops[20].gap_ns = 1000000;
    plan(28, CGS_CHUNK_AUTO);
    ck_assert_uint_eq(num, 2);
    ck_assert_uint_eq(ends[0], 20);
}
END_TEST

/* A wait stays with its record, and other streams with the first. */
START_TEST(edges_are_not_cut)
{
    ops[2].kind            = CGS_OP_RECORD;
    ops[30].kind           = CGS_OP_WAIT;
    ops[30].event.distance = 28;
    plan(64, 8);
    ck_assert_uint_eq(ends[0], 31);

    ops[30].kind      = CGS_OP_KERNEL;
    ops[2].kind       = CGS_OP_KERNEL;
    chunk.num_streams = 2;
    ops[8].lane       = 1;
    ops[9].lane       = 1;
    plan(64, 8);
    ck_assert_uint_eq(ends[0], 11);
}
END_TEST

int main(void)
{
    Suite   *suite = suite_create("plan");
    TCase   *tests = tcase_create("plan");
    SRunner *runner;
    int     failed;

    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, a_fixed_size_is_kept);
    tcase_add_test(tests, chunks_grow_where_calls_are_quick);
    tcase_add_test(tests, no_chunk_is_late_for_longer_than_it_gains);
    tcase_add_test(tests, who_never_waits_has_larger_graphs);
    tcase_add_test(tests, a_long_pause_ends_a_chunk);
    tcase_add_test(tests, edges_are_not_cut);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
