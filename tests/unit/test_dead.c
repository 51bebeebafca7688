/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other threads end the lives of events while the library makes graphs that
 * record them: on a driver that crashes where it is given a dead one.
 */
#define _GNU_SOURCE 1
#include "region_run.h"

#include <pthread.h>
#include <unistd.h>

enum {
    STEPS    = 3,
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
    PRG_CHECK(cuEventDestroy(event));
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

int main(void)
{
    Suite *suite = suite_create("dead");
    TCase *tests = tcase_create("dead");

    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_add_test(tests, an_event_ends_while_a_graph_is_made_of_it);
    tcase_add_test(tests, an_event_ends_while_a_graph_of_it_is_sent);
    suite_add_tcase(suite, tests);
    return core_run(suite);
}
