/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that differ: what is recorded beside what, how a run finds its way back,
 * and what is kept.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sys/mman.h>

#include "budget.h"
#include "region_run.h"

enum {
    CHUNK = 8
};

#ifdef __SANITIZE_THREAD__
#define ALL_TAKES_ITS_TIME 1
#else
/* Under an emulator it does too. */
#define ALL_TAKES_ITS_TIME (getenv("EMULATOR") != NULL)
#endif

/* Before the library's own constructor keeps the environment. */
__attribute__((constructor(101))) static void configure(void)
{
    /* However slow the machine is: what is held stays held. */
    setenv("CGSHIM_DEFAULTS", "max_defer_us=1000000000 gate=off chunk=8", 1);
    setenv("CGSHIM_REGION_r", "", 1);
    setenv("CGSHIM_REGION_one", "variants=1", 1);
    setenv("CGSHIM_REGION_three", "variants=3", 1);
    setenv("CGSHIM_REGION_recapture", "on_change=recapture", 1);
    setenv("CGSHIM_REGION_whole", "chunk=all", 1);
    setenv("CGSHIM_REGION_auto", "chunk=auto", 1);
    setenv("CGSHIM_REGION_auto_one", "chunk=auto variants=1", 1);
}

static const cgs_region_stats_t *stats(const char *name)
{
    cgs_region_t *region = cgs_region_find(name);

    cgs_region_measure(region);
    return &region->stats;
}

static uint64_t stats_or_zero(const char *name)
{
    return cgs_region_find(name) != NULL ? stats(name)->swallowed : 0;
}

/* A word beside the chain's, for a call of another shape. */
static CUdeviceptr other;

static void variants_open(void)
{
    region_open();
    other = core_alloc(sizeof(uint32_t), 0);
}

/* Something else than a step. */
static void make_other(bool is_set)
{
    uint32_t n = 1;

    if (is_set) {
        PRG_CHECK(cuMemsetD8Async(other, 7, 4, core_stream));
    } else {
        PRG_CHECK(prg_launch(prg_kernel(&core, "k_fill"), core_stream, 1,
                             (void *[]){&other, &n, &n}));
    }
}

/* A step on a stream, here and in the model */
static void step_there(CUstream stream, uint32_t value)
{
    PRG_CHECK(step_on(stream, value));
    model = model * 1664525u + value;
}

/* Each letter is a call: c a step of the chain, x and y something else and a
 * step. A bar is a synchronisation. */
static void run(const char *name, const char *letters)
{
    uint32_t value = 1;

    enter(name);
    for (; *letters != '\0'; ++letters) {
        if (*letters == 'c') {
            step(value++);
        } else if (*letters == '|') {
            PRG_CHECK(cuStreamSynchronize(core_stream));
        } else {
            make_other(*letters == 'x');
            step(value++);
        }
    }
    leave();
}

static void run_n(const char *name, unsigned times, const char *letters)
{
    while (times-- > 0) {
        run(name, letters);
    }
}

static uint64_t swallowed_by(const char *name, const char *letters)
{
    uint64_t before = stats(name)->swallowed;

    run(name, letters);
    return stats(name)->swallowed - before;
}

START_TEST(two_ways_are_both_replayed)
{
    unsigned i;

    for (i = 0; i < 4; ++i) {
        run("r", "ccxcc");
        run("r", "ccycc");
    }
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(swallowed_by("r", "ccxcc"), 6);
    ck_assert_uint_eq(swallowed_by("r", "ccycc"), 6);
    ck_assert_uint_eq(stats("r")->variants, 2);
    check_word();
}
END_TEST

/* The prefix that is held back moves with its values of this run. */
START_TEST(values_move_with_the_run)
{
    unsigned i;

    for (i = 0; i < 8; ++i) {
        enter("r");
        step(10 * i);
        step(10 * i + 1);
        make_other(i % 2 == 0);
        step(10 * i + 2);
        leave();
        check_word();
    }
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(stats("r")->swallowed, 6 * 4);
}
END_TEST

/* What was staged is not read again: its source may be gone. */
START_TEST(staged_copies_move_without_their_source)
{
    CUdeviceptr third = core_alloc(sizeof(uint32_t), 0);
    uint32_t    *page;
    unsigned    i;

    for (i = 0; i < 8; ++i) {
        enter("r");
        step(10 * i);
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(page, MAP_FAILED);
        *page = i + 1;
        PRG_CHECK(cuMemcpyHtoDAsync_v2(third, page, sizeof(*page),
                                       core_stream));
        munmap(page, 4096);
        make_other(i % 2 == 0);
        step(10 * i + 1);
        leave();
        check_word();
        ck_assert_uint_eq(core_word(third), i + 1);
    }
    ck_assert_uint_eq(stats("r")->recordings, 2);
}
END_TEST

/* Of one place; the ones that were followed last. */
START_TEST(no_more_variants_are_kept_than_the_rule_says)
{
    static const char *const ways[] = {"cx", "cyc", "cxx", "cyy", "cxy"};
    unsigned                 i;

    for (i = 0; i < 20; ++i) {
        run("three", ways[i % 5]);
        ck_assert_uint_le(cgs_region_find("three")->recording.first->num, 3);
    }
    check_word();
}
END_TEST

START_TEST(one_variant_is_replaced)
{
    run_n("one", 3, "ccxcc");
    run_n("one", 3, "ccycc");
    ck_assert_uint_eq(stats("one")->variants, 1);
    ck_assert_uint_eq(stats("one")->recordings, 2);
    ck_assert_uint_eq(swallowed_by("one", "ccycc"), 6);
    check_word();
}
END_TEST

/* Twenty-four calls in three chunks, and some more in the second. */
#define LONG  "cccccccc" "cccxcccc" "ccyccyccc"
#define MORE  "cccccccc" "cccxcyxcccc" "ccyccyccc"
#define FEWER "cccccccc" "ccccccc" "ccyccyccc"

START_TEST(an_insertion_costs_its_chunk_alone)
{
    run_n("r", 3, LONG);
    /* The first chunk is replayed; the run finds its way back to a later
     * one. */
    ck_assert_uint_ge(swallowed_by("r", MORE), CHUNK);
    check_word();
    ck_assert_uint_eq(stats("r")->recordings, 2);
    /* From then on both ways are whole. */
    ck_assert_uint_eq(swallowed_by("r", MORE), strlen(MORE) + 5);
    ck_assert_uint_eq(swallowed_by("r", LONG), strlen(LONG) + 3);
    ck_assert_uint_eq(swallowed_by("r", MORE), strlen(MORE) + 5);
    ck_assert_uint_eq(stats("r")->recordings, 2);
    check_word();
}
END_TEST

START_TEST(an_insertion_leads_back_to_what_was_recorded)
{
    uint64_t chunks;

    run_n("r", 3, LONG);
    chunks = stats("r")->chunks;
    run("r", MORE);
    /* Two chunks for the calls from the second one's on that are not as
     * before; what comes after them is there already. */
    ck_assert_uint_le(stats("r")->chunks, chunks + 2);
    check_word();
}
END_TEST

START_TEST(an_omission_is_a_variant)
{
    run_n("r", 3, LONG);
    run_n("r", 2, FEWER);
    ck_assert_uint_eq(swallowed_by("r", FEWER), strlen(FEWER) + 2);
    ck_assert_uint_eq(swallowed_by("r", LONG), strlen(LONG) + 3);
    check_word();
}
END_TEST

START_TEST(a_run_may_end_or_be_cut_anywhere)
{
    char     letters[32] = LONG;
    unsigned i, length = strlen(LONG);

    run_n("r", 2, LONG);
    for (i = 0; i < length; ++i) {
        memcpy(letters, LONG, sizeof(LONG));
        letters[i] = '\0';
        run("r", letters);
        check_word();
        letters[i] = '|';
        run("r", letters);
        check_word();
        run("r", LONG);
        check_word();
    }
}
END_TEST

START_TEST(a_grid_or_less_shared_memory_is_patched)
{
    uint32_t n = 64;
    unsigned i;

    for (i = 0; i < 6; ++i) {
        void *params[] = {&word, &n};

        n = 32 * (1 + i);
        enter("r");
        step(1);
        PRG_CHECK(cuLaunchKernel(prg_kernel(&core, "k_nothing"), 1 + i, 1, 1,
                                 32, 1, 1, 64 - i, core_stream, params,
                                 NULL));
        step(2);
        leave();
    }
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("r")->swallowed, 5 * 3);
    ck_assert_uint_eq(stats("r")->patched, 5);
    check_word();
}
END_TEST

/* What the driver refuses it refuses at once. */
START_TEST(a_grid_that_is_refused_is_refused_at_once)
{
    CUfunction nothing = prg_kernel(&core, "k_nothing");
    unsigned   i;

    for (i = 0; i < 4; ++i) {
        enter("r");
        step(1);
        ck_assert_int_eq(cuLaunchKernel(nothing, i < 3, 1, 1, 32, 1, 1, 0,
                                        core_stream, NULL, NULL),
                         i < 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
        step(2);
        leave();
        check_word();
    }
}
END_TEST

static CUresult launch_cooperative(unsigned grid)
{
    return cuLaunchCooperativeKernel(prg_kernel(&core, "k_nothing"), grid, 1,
                                     1, 32, 1, 1, 0, core_stream, NULL);
}

static CUresult launch_with(CUlaunchAttribute *attribute, unsigned grid,
                            unsigned block)
{
    CUlaunchConfig config = {
        .gridDimX = grid, .gridDimY = 1, .gridDimZ = 1,
        .blockDimX = block, .blockDimY = 1, .blockDimZ = 1,
        .hStream = core_stream, .attrs = attribute, .numAttrs = 1,
    };

    return cuLaunchKernelEx(&config, prg_kernel(&core, "k_nothing"), NULL,
                            NULL);
}

static CUresult launch_clusters_of(unsigned grid, unsigned block)
{
    CUlaunchAttribute attribute = {
        .id               = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        .value.clusterDim = {2, 1, 1},
    };

    return launch_with(&attribute, grid, block);
}

static CUresult launch_clusters(unsigned grid)
{
    return launch_clusters_of(grid, 32);
}

static CUresult launch_clusters_of_blocks(unsigned block)
{
    return launch_clusters_of(4, block);
}

static CUresult launch_cooperative_by_attribute(unsigned grid)
{
    CUlaunchAttribute attribute = {
        .id                = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
        .value.cooperative = 1,
    };

    return launch_with(&attribute, grid, 32);
}

/* Runs with a launch of this grid in the middle, and one with another grid.
 * @return how many calls of the last one were swallowed. */
static uint64_t change_grid(CUresult (*launch)(unsigned), unsigned grid,
                            unsigned last)
{
    CUresult plain = launch(last);
    uint64_t swallowed = 0;
    unsigned run;

    for (run = 0; run < 4; ++run) {
        swallowed = stats_or_zero("r");
        enter("r");
        step(1);
        ck_assert_int_eq(launch(run < 3 ? grid : last),
                         run < 3 ? CUDA_SUCCESS : plain);
        step(2);
        leave();
        check_word();
    }
    return stats("r")->swallowed - swallowed;
}

/* Not every grid of these can be launched, nor every block. */
START_TEST(grids_that_may_be_refused_are_not_patched)
{
    ck_assert_uint_eq(change_grid(launch_clusters, 4, 6), 3);
    ck_assert_uint_eq(change_grid(launch_clusters, 4, 5), 0);
    ck_assert_uint_eq(change_grid(launch_clusters_of_blocks, 64, 128), 0);
    ck_assert_uint_eq(change_grid(launch_cooperative, 4, 6), 0);
    ck_assert_uint_eq(change_grid(launch_cooperative_by_attribute, 4, 6), 0);
}
END_TEST

START_TEST(chunks_are_cut_as_the_rule_says)
{
    run_n("r", 3, LONG);
    ck_assert_uint_eq(stats("r")->chunks, (strlen(LONG) + 3 + 7) / CHUNK);
    run_n("whole", 3, LONG);
    ck_assert_uint_eq(stats("whole")->chunks, 1);
    check_word();
}
END_TEST

/* Where the program takes its time the device does not wait for it. */
START_TEST(a_chunk_ends_where_the_program_takes_its_time)
{
    unsigned run, i;

    for (run = 0; run < 3; ++run) {
        enter("auto");
        for (i = 0; i < 8; ++i) {
            if (i == 4) {
                usleep(20000);
            }
            step(i);
        }
        leave();
        check_word();
    }
    ck_assert_uint_ge(stats("auto")->chunks, 2);
    ck_assert_uint_gt(stats("auto")->swallowed, 0);
    check_word();
}
END_TEST

/* What a program does once is no measure: calls are timed again. */
START_TEST(a_pause_of_the_first_run_is_forgotten)
{
    unsigned run, i;

    for (run = 0; run < 12; ++run) {
        enter("auto");
        for (i = 0; i < 8; ++i) {
            if ((i == 4) && (run == 0)) {
                usleep(20000);
            }
            step(i);
        }
        leave();
        check_word();
    }
    ck_assert_uint_eq(stats("auto")->chunks, 1);
}
END_TEST

START_TEST(calls_are_timed_where_that_matters)
{
    unsigned run, num_auto = 0;

    for (run = 0; run < 12; ++run) {
        run_n("auto", 1, "ccc");
        num_auto += cgs_region_find("auto")->cursor.timed;
        run_n("r", 1, "ccc");
        ck_assert(!cgs_region_find("r")->cursor.timed);
    }
    ck_assert_uint_gt(num_auto, 0);
}
END_TEST

/* Who does not wait for the device does not mind when it starts. */
START_TEST(a_program_that_stops_waiting_gets_larger_graphs)
{
    unsigned run;

    for (run = 0; run < 8; ++run) {
        run_steps("auto", 1, 200);
        PRG_CHECK(cuStreamSynchronize(core_stream));
    }
    ck_assert_uint_gt(stats("auto")->chunks, 1);
    for (run = 0; run < 60; ++run) {
        run_steps("auto", 1, 200);
    }
    ck_assert_uint_eq(stats("auto")->chunks, 1);
    for (run = 0; run < 60; ++run) {
        run_steps("auto", 1, 200);
        PRG_CHECK(cuStreamSynchronize(core_stream));
    }
    ck_assert_uint_gt(stats("auto")->chunks, 1);
    check_word();
}
END_TEST

START_TEST(a_recapture_replaces)
{
    run_n("recapture", 2, "ccc");
    enter("recapture");
    step(1);
    step(5);
    step(3);
    leave();
    ck_assert_uint_eq(stats("recapture")->variants, 1);
    check_word();
}
END_TEST

/* What was recorded goes while its calls are still held against the new ones. */
START_TEST(a_recapture_may_differ_for_long)
{
    run_times("recapture", 2, 1, 3 * CHUNK);
    run_times("recapture", 2, 1000, 3 * CHUNK);
    ck_assert_uint_eq(stats("recapture")->recordings, 2);
    check_word();
}
END_TEST

/* The way that is tried next has four calls, and there is one with the first
 * two. */
static void run_long_and_short(void)
{
    run_n("r", 3, "cccc");
    run_n("r", 3, "cc");
    run_n("r", 3, "xcc");
}

/* A chunk that turns out to be whole at the end of a run is launched in its own
 * context. */
START_TEST(a_shorter_variant_may_end_without_a_context)
{
    uint64_t launches;

    run_long_and_short();
    launches = stats("r")->launches;
    enter("r");
    step(7);
    step(8);
    PRG_CHECK(cuCtxSetCurrent(NULL));
    leave();
    PRG_CHECK(cuCtxSetCurrent(core.context));
    ck_assert_uint_eq(stats("r")->launches, launches + 1);
    check_word();
}
END_TEST

static void *end_range_3(void *arg)
{
    cgs_ranges_sink.end(3);
    return arg;
}

START_TEST(a_shorter_variant_may_end_in_a_thread_without_a_context)
{
    pthread_t thread;
    uint64_t  launches;

    run_long_and_short();
    launches = stats("r")->launches;
    cgs_ranges_sink.start(NULL, "r", 3);
    step(7);
    step(8);
    ck_assert_int_eq(pthread_create(&thread, NULL, end_range_3, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(stats("r")->launches, launches + 1);
    step(9);
    check_word();
}
END_TEST

/* Steps on one stream and then, after a while in the first run, as many on
 * another one. */
static void run_on_two(CUstream first, CUstream second, unsigned number)
{
    unsigned i;

    enter("auto_one");
    for (i = 0; i < 8; ++i) {
        if ((i == 4) && (number == 0)) {
            usleep(20000);
        }
        step_there(i < 4 ? first : second, i);
    }
    leave();
}

/* Chunks are put together only where they were recorded as one. */
START_TEST(what_took_the_place_of_a_chunk_stays_by_itself)
{
    CUstream blocking;
    unsigned i;

    PRG_CHECK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    for (i = 0; i < 24; ++i) {
        run_on_two(blocking, i < 2 ? blocking : NULL, i);
        check_word();
    }
    ck_assert_uint_eq(stats("auto_one")->recordings, 2);
}
END_TEST

START_TEST(no_more_streams_are_put_together_than_a_chunk_has)
{
    static const unsigned which[] = {0, 1, 2, 3, 4, 0};
    CUstream              streams[10];
    unsigned              run, i;

    for (i = 0; i < 10; ++i) {
        PRG_CHECK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
    for (run = 0; run < 24; ++run) {
        enter("auto_one");
        for (i = 0; i < 12; ++i) {
            if ((i == 6) && (run == 0)) {
                usleep(20000);
            }
            PRG_CHECK(cuMemsetD8Async(
                other, 7, 4, streams[which[i % 6] + ((i >= 6) && (run >= 2) ?
                                                     5 : 0)]));
        }
        leave();
    }
    ck_assert_uint_eq(stats("auto_one")->recordings, 2);
    PRG_CHECK(cuCtxSynchronize());
}
END_TEST

/* Leave so many bytes of the budget. @return what was taken. */
static size_t leave_budget(size_t bytes)
{
    size_t taken = 0;
    size_t unit;

    for (unit = 1u << 20; unit > 0; unit /= 2) {
        while (cgs_budget_take(unit)) {
            taken += unit;
        }
    }
    cgs_budget_give(bytes);
    return taken - bytes;
}

/* What could not be cut is no part of what comes after it. */
START_TEST(what_found_no_memory_to_be_cut_stays_by_itself)
{
    cgs_chunk_t *half;
    CUstream    blocking;
    size_t      taken = 0;
    unsigned    run, i;

    PRG_CHECK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    for (run = 0; run < 16; ++run) {
        if (run == 1) {
            half  = cgs_chunk_copy(cgs_variant_chunk(
                        cgs_region_find("auto")->recording.first->current),
                        0, 4);
            taken = cgs_chunk_bytes(half);
            cgs_chunk_destroy(half);
            /* Memory for the first half alone */
            taken = leave_budget(taken + taken / 2);
        }
        enter("auto");
        if (run == 1) {
            cgs_budget_give(taken);
        }
        for (i = 0; i < 8; ++i) {
            if ((i == 4) && (run == 0)) {
                usleep(20000);
            }
            step_there(blocking, i);
        }
        for (i = 0; i < 4; ++i) {
            step_there(NULL, i);
        }
        leave();
        check_word();
    }
    ck_assert_uint_eq(stats("auto")->recordings, 1);
}
END_TEST

START_TEST(destroying_in_a_run_leaves_nothing)
{
    cgs_region_t *region;

    run_n("r", 3, LONG);
    run("r", MORE);
    region = cgs_region_find("r");
    enter("r");
    step(1);
    cgs_region_destroy(region, "a test");
    step(2);
    leave();
    ck_assert_ptr_null(region->recording.all);
    ck_assert_uint_eq(region->recording.num_variants, 0);
    run_n("r", 3, MORE);
    check_word();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("variants");
    TCase *tests = tcase_create("variants");

    tcase_add_checked_fixture(tests, variants_open, NULL);
    tcase_add_test(tests, two_ways_are_both_replayed);
    tcase_add_test(tests, values_move_with_the_run);
    tcase_add_test(tests, staged_copies_move_without_their_source);
    tcase_add_test(tests, no_more_variants_are_kept_than_the_rule_says);
    tcase_add_test(tests, one_variant_is_replaced);
    tcase_add_test(tests, an_insertion_costs_its_chunk_alone);
    tcase_add_test(tests, an_insertion_leads_back_to_what_was_recorded);
    tcase_add_test(tests, an_omission_is_a_variant);
    tcase_add_test(tests, a_run_may_end_or_be_cut_anywhere);
    tcase_add_test(tests, a_grid_or_less_shared_memory_is_patched);
    tcase_add_test(tests, a_grid_that_is_refused_is_refused_at_once);
    tcase_add_test(tests, grids_that_may_be_refused_are_not_patched);
    tcase_add_test(tests, chunks_are_cut_as_the_rule_says);
    if (!ALL_TAKES_ITS_TIME) {
        tcase_add_test(tests, a_chunk_ends_where_the_program_takes_its_time);
    }
    if (!ALL_TAKES_ITS_TIME) {
        tcase_add_test(tests, a_pause_of_the_first_run_is_forgotten);
    }
    tcase_add_test(tests, calls_are_timed_where_that_matters);
    if (!ALL_TAKES_ITS_TIME) {
        tcase_add_test(tests, a_program_that_stops_waiting_gets_larger_graphs);
    }
    tcase_add_test(tests, a_recapture_replaces);
    tcase_add_test(tests, a_recapture_may_differ_for_long);
    tcase_add_test(tests, a_shorter_variant_may_end_without_a_context);
    tcase_add_test(tests,
                   a_shorter_variant_may_end_in_a_thread_without_a_context);
    tcase_add_test(tests, what_took_the_place_of_a_chunk_stays_by_itself);
    tcase_add_test(tests, no_more_streams_are_put_together_than_a_chunk_has);
    tcase_add_test(tests, what_found_no_memory_to_be_cut_stays_by_itself);
    tcase_add_test(tests, destroying_in_a_run_leaves_nothing);
    suite_add_tcase(suite, tests);
    return core_run(suite);
}
