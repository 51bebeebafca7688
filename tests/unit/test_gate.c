/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate, on a clock of the test's own: which times open and close it, how
 * often it tries again, and what that costs.
 */
#include "gate.h"

#include <check.h>
#include <stdlib.h>

enum {
    RUNS = 20000
};

/* A program whose runs take so long on each path. */
typedef struct {
    cgs_gate_t gate;
    uint64_t   now_ns;
    uint64_t   cost_ns[CGS_PATH_NUM + 1]; /* of a recording, too */
    uint64_t   noise_ns; /* at most, by chance */
    unsigned   replayed, plain;
} program_t;

static void run(program_t *program, cgs_path_t replay)
{
    bool       pass = cgs_gate_enter(&program->gate, CGS_GATE_ON,
                                     program->now_ns);
    cgs_path_t path = pass ? replay : CGS_PATH_PLAIN;

    program->now_ns += program->cost_ns[path];
    if (program->noise_ns > 0) {
        program->now_ns += (uint64_t)rand() % program->noise_ns;
    }
    cgs_gate_leave(&program->gate, path);
    *(pass ? &program->replayed : &program->plain) += 1;
}

static program_t new_program(uint64_t plain_ns, uint64_t replay_ns)
{
    program_t program = {.now_ns = 1000000000};

    program.cost_ns[CGS_PATH_PLAIN]   = plain_ns;
    program.cost_ns[CGS_PATH_EXACT]   = replay_ns;
    program.cost_ns[CGS_PATH_PATCHED] = replay_ns;
    program.cost_ns[CGS_PATH_VARIANT] = replay_ns;
    program.cost_ns[CGS_PATH_FUTILE]  = replay_ns;
    return program;
}

static void run_n(program_t *program, cgs_path_t replay, unsigned times)
{
    while (times-- > 0) {
        run(program, replay);
    }
}

START_TEST(a_faster_path_is_replayed)
{
    program_t program = new_program(300000, 75000);

    run_n(&program, CGS_PATH_EXACT, RUNS);
    /* What the trials cost: plain runs, at four times the time. */
    ck_assert_uint_le(program.plain, RUNS / 300);
    ck_assert_uint_gt(program.plain, 0);
}
END_TEST

START_TEST(a_slower_path_goes_plain)
{
    program_t program = new_program(100000, 110000);

    run_n(&program, (cgs_path_t)_i, RUNS);
    ck_assert_uint_le(program.replayed, RUNS / 100);
}
END_TEST

START_TEST(it_is_never_given_up_for_good)
{
    program_t program = new_program(100000, 200000);

    run_n(&program, CGS_PATH_EXACT, RUNS);
    program.cost_ns[CGS_PATH_EXACT] = 50000;
    program.replayed                = 0;
    run_n(&program, CGS_PATH_EXACT, RUNS);
    ck_assert_uint_gt(program.replayed, 0);
    run_n(&program, CGS_PATH_EXACT, RUNS);
    ck_assert_uint_gt(program.replayed, RUNS / 2);
}
END_TEST

START_TEST(a_program_that_becomes_slower_is_noticed)
{
    program_t program = new_program(100000, 50000);

    run_n(&program, CGS_PATH_EXACT, RUNS);
    program.cost_ns[CGS_PATH_EXACT] = 200000;
    run_n(&program, CGS_PATH_EXACT, 8 * RUNS);
    program.plain = 0;
    run_n(&program, CGS_PATH_EXACT, RUNS);
    ck_assert_uint_gt(program.plain, RUNS / 2);
}
END_TEST

/* A program's own time that varies by far more than the two differ. */
START_TEST(noise_seldom_closes_it)
{
    unsigned  closed = 0;
    unsigned  i;
    program_t program;

    srand(1);
    for (i = 0; i < 100; ++i) {
        program          = new_program(100000, 95000);
        program.noise_ns = 20000;
        run_n(&program, CGS_PATH_EXACT, 1000);
        closed += cgs_gate_is_closed(&program.gate);
    }
    ck_assert_uint_le(closed, 5);
}
END_TEST

START_TEST(runs_without_a_graph_go_plain_soon)
{
    program_t program = new_program(1000, 1000);

    run_n(&program, CGS_PATH_FUTILE, RUNS);
    ck_assert_uint_le(program.replayed, RUNS / 200);
}
END_TEST

START_TEST(recordings_are_no_measure)
{
    program_t program = new_program(100000, 50000);

    run_n(&program, CGS_PATH_NONE, 5);
    ck_assert_uint_eq(program.replayed, 5);
    run_n(&program, CGS_PATH_EXACT, 50);
    ck_assert_uint_gt(program.replayed, 40);
}
END_TEST

START_TEST(paths_are_timed_apart)
{
    program_t program = new_program(100000, 50000);
    unsigned  i;

    program.cost_ns[CGS_PATH_PATCHED] = 150000;
    for (i = 0; i < RUNS; ++i) {
        run(&program, CGS_PATH_PATCHED);
    }
    ck_assert_uint_le(program.replayed, RUNS / 100);
    program = new_program(100000, 50000);
    program.cost_ns[CGS_PATH_PATCHED] = 150000;
    run_n(&program, CGS_PATH_EXACT, RUNS);
    ck_assert_uint_gt(program.replayed, RUNS - RUNS / 100);
}
END_TEST

START_TEST(off_and_random_are_what_they_say)
{
    cgs_gate_t gate = {0};
    unsigned   passed = 0;
    unsigned   i;

    for (i = 0; i < 1000; ++i) {
        ck_assert(cgs_gate_enter(&gate, CGS_GATE_OFF, i));
        cgs_gate_leave(&gate, CGS_PATH_EXACT);
    }
    for (i = 0; i < 1000; ++i) {
        passed += cgs_gate_enter(&gate, CGS_GATE_RANDOM, i);
        cgs_gate_leave(&gate, CGS_PATH_EXACT);
    }
    ck_assert_uint_gt(passed, 500);
    ck_assert_uint_lt(passed, 900);
}
END_TEST

int main(void)
{
    Suite   *suite = suite_create("gate");
    TCase   *tests = tcase_create("gate");
    SRunner *runner;
    int     failed;

    tcase_add_test(tests, a_faster_path_is_replayed);
    tcase_add_loop_test(tests, a_slower_path_goes_plain, CGS_PATH_EXACT,
                        CGS_PATH_NUM);
    tcase_add_test(tests, it_is_never_given_up_for_good);
    tcase_add_test(tests, a_program_that_becomes_slower_is_noticed);
    tcase_add_test(tests, noise_seldom_closes_it);
    tcase_add_test(tests, runs_without_a_graph_go_plain_soon);
    tcase_add_test(tests, recordings_are_no_measure);
    tcase_add_test(tests, paths_are_timed_apart);
    tcase_add_test(tests, off_and_random_are_what_they_say);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
