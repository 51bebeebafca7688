/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of lives: of events and streams that graphs hold, on a driver that
 * crashes where it is given a dead one, and of graphs whose work goes on.
 */
#define _GNU_SOURCE 1
#include "region_run.h"

#include <pthread.h>
#include <unistd.h>

enum {
    STEPS    = 3,
    WORDS    = 64,
    PATIENCE = 200     /* milliseconds that the other thread has */
};

/* The driver function that the other thread comes in before. */
static CUresult (*real_instantiate)(CUgraphExec *exec, CUgraph graph,
                                    unsigned long long flags);
static CUresult (*real_upload)(CUgraphExec exec, CUstream stream);

static CUevent     event;
static pthread_t   other;
static atomic_bool has_begun, is_destroyed;

/* Before the library's own constructor keeps the environment. */
__attribute__((constructor(101))) static void configure(void)
{
    setenv("CGSHIM_DEFAULTS", "max_defer_us=1000000000 gate=off chunk=all", 1);
    setenv("SIM_STRICT", "1", 1);
}

static void *destroy(void *arg)
{
    (void)arg;
    PRG_CHECK(cuCtxSetCurrent(core.context));
    PRG_CHECK(cuEventDestroy_v2(event));
    atomic_store(&is_destroyed, true);
    return NULL;
}

/* The other thread destroys the event, as fast as it can. */
static void come_in_between(void)
{
    int i;

    if (atomic_exchange(&has_begun, true)) {
        return;
    }
    ck_assert_int_eq(pthread_create(&other, NULL, destroy, NULL), 0);
    for (i = 0; (i < PATIENCE) && !atomic_load(&is_destroyed); ++i) {
        usleep(1000);
    }
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph,
                            unsigned long long flags)
{
    come_in_between();
    return real_instantiate(exec, graph, flags);
}

static CUresult upload(CUgraphExec exec, CUstream stream)
{
    come_in_between();
    return real_upload(exec, stream);
}

static void make_event(void)
{
    PRG_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
}

static void run(CUevent recorded)
{
    unsigned i;

    enter("r");
    for (i = 0; i < STEPS; ++i) {
        step(i + 1);
    }
    PRG_CHECK(cuEventRecord(recorded, core_stream));
    step(7);
    leave();
}

/* The event of the last run ends while this run begins; it has its own. */
static void check_run(void)
{
    CUevent own;
    int     i;

    PRG_CHECK(cuEventCreate(&own, CU_EVENT_DISABLE_TIMING));
    run(own);
    ck_assert(atomic_load(&has_begun));
    PRG_CHECK(pthread_join(other, NULL) == 0 ? CUDA_SUCCESS :
                                               CUDA_ERROR_UNKNOWN);
    ck_assert(atomic_load(&is_destroyed));
    for (i = 0; i < 3; ++i) {
        run(own);
    }
    PRG_CHECK(cuEventSynchronize(own));
    check_word();
    ck_assert_uint_gt(cgs_region_find("r")->stats.launches, 1);
}

START_TEST(an_event_ends_while_a_graph_is_made_of_it)
{
    make_event();
    run(event);
    real_instantiate = CGS_REAL(cuGraphInstantiateWithFlags);
    cgs_real[CGS_INDEX_cuGraphInstantiateWithFlags] = (void *)instantiate;
    check_run();
}
END_TEST

START_TEST(an_event_ends_while_a_graph_of_it_is_sent)
{
    make_event();
    run(event);
    real_upload = CGS_REAL(cuGraphUpload);
    cgs_real[CGS_INDEX_cuGraphUpload] = (void *)upload;
    check_run();
}
END_TEST

/* From memory that is something else at once. */
static void copy_pageable(CUdeviceptr to, int value)
{
    uint32_t words[WORDS];

    memset(words, value, sizeof(words));
    PRG_CHECK(cuMemcpyHtoDAsync_v2(to, words, sizeof(words), core_stream));
    memset(words, 0, sizeof(words));
}

static void run_on_two(CUdeviceptr to, CUstream side)
{
    enter("r");
    copy_pageable(to, 0x5a);
    step(1);
    PRG_CHECK(cuEventRecord(event, core_stream));
    PRG_CHECK(cuStreamWaitEvent(side, event, 0));
    PRG_CHECK(step_on(side, 2));
    model = model * 1664525u + 2;
    PRG_CHECK(cuEventRecord(event, side));
    PRG_CHECK(cuStreamWaitEvent(core_stream, event, 0));
    leave();
}

/* What it holds back is issued, and only the streams of that are looked at. */
START_TEST(a_stream_may_end_that_a_shorter_run_is_not_on)
{
    CUdeviceptr to = core_alloc(WORDS * sizeof(uint32_t), 0);
    CUstream    side;
    int         i;

    PRG_CHECK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    make_event();
    for (i = 0; i < 4; ++i) {
        run_on_two(to, side);
    }
    ck_assert_uint_gt(cgs_region_find("r")->stats.launches, 0);
    PRG_CHECK(cuStreamDestroy_v2(side));
    enter("r");
    copy_pageable(to, 0x5b);
    step(3);
    leave();
    check_word();
    ck_assert_uint_eq(core_word(to), 0x5b5b5b5b);
}
END_TEST

static atomic_bool may_go_on;

static void wait_for_the_program(void *data)
{
    (void)data;
    while (!atomic_load(&may_go_on)) {
        usleep(1000);
    }
}

/* A run whose work waits, and whose copies go to places of their own. */
static void run_that_waits(CUdeviceptr to, int i)
{
    enter("r");
    copy_pageable(to, 0);
    PRG_CHECK(cuLaunchHostFunc(core_stream, wait_for_the_program, NULL));
    copy_pageable(to + (CUdeviceptr)i * WORDS * sizeof(uint32_t), i);
    step(1);
    leave();
}

/* Work of a graph may wait for what the program does after the graph's end;
 * its memory is not another graph's before it is done. */
START_TEST(the_end_of_a_graph_does_not_wait_for_its_work)
{
    CUdeviceptr to = core_alloc(10 * WORDS * sizeof(uint32_t), 0);
    int         i;

    atomic_store(&may_go_on, true);
    for (i = 1; i <= 3; ++i) {
        run_that_waits(to, i);
        PRG_CHECK(cuStreamSynchronize(core_stream));
    }
    ck_assert_uint_gt(cgs_region_find("r")->stats.launches, 0);
    atomic_store(&may_go_on, false);
    run_that_waits(to, 4);
    ck_assert(cgs_region_destroy(cgs_region_find("r"), "the test says so"));
    for (i = 5; i <= 9; ++i) {
        run_that_waits(to, i);
    }
    atomic_store(&may_go_on, true);
    check_word();
    for (i = 1; i <= 9; ++i) {
        ck_assert_uint_eq(core_word(to + (CUdeviceptr)i * WORDS *
                                    sizeof(uint32_t)), i * 0x01010101u);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lives");
    TCase *tests = tcase_create("lives");

    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_add_test(tests, an_event_ends_while_a_graph_is_made_of_it);
    tcase_add_test(tests, an_event_ends_while_a_graph_of_it_is_sent);
    tcase_add_test(tests, a_stream_may_end_that_a_shorter_run_is_not_on);
    tcase_add_test(tests, the_end_of_a_graph_does_not_wait_for_its_work);
    suite_add_tcase(suite, tests);
    return core_run(suite);
}
