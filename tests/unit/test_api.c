/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program may ask of the library: runs begun by name, recapture and
 * destroy, and what is told of regions, graphs and memory.
 */
#define _GNU_SOURCE 1
#include "cgshim.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels.h"
#include "life.h"
#include "region_run.h"

enum {
    STEPS = 5,
    RUNS  = 10,
    WORDS = 64
};

/* Before the library's own constructor keeps the environment. */
__attribute__((constructor(101))) static void configure(void)
{
    /* However slow the machine is: what belongs together stays together. */
    setenv("CGSHIM_DEFAULTS", "max_defer_us=1000000000 gate=off chunk=all", 1);
}

static void succeed(cgshim_error_t error)
{
    ck_assert_msg(error == CGSHIM_SUCCESS, "%s", cgshim_last_error_text());
}

/* It failed so, and the text says this. */
static void fails(cgshim_error_t error, cgshim_error_t expected,
                  const char *text)
{
    ck_assert_int_eq(error, expected);
    ck_assert_msg(strstr(cgshim_last_error_text(), text) != NULL, "%s",
                  cgshim_last_error_text());
}

static void begin(const char *name)
{
    succeed(cgshim_region_begin(name));
}

static void end(const char *name)
{
    succeed(cgshim_region_end(name));
}

static void steps(uint32_t first, unsigned num)
{
    unsigned i;

    for (i = 0; i < num; ++i) {
        step(first + i);
    }
}

static void begun_runs(const char *name, unsigned times)
{
    while (times-- > 0) {
        begin(name);
        steps(1, STEPS);
        end(name);
    }
}

static cgshim_region_info_t info_of(const char *name)
{
    cgshim_region_info_t info = {.size = sizeof(info)};

    succeed(cgshim_region_info(name, &info));
    ck_assert_uint_eq(info.size, sizeof(info));
    return info;
}

static uint64_t runs_of(const char *name)
{
    return info_of(name).runs;
}

/* Run a function in a thread of its own, with the context current. */
static void *thread_body(void *function)
{
    PRG_CHECK(cuCtxSetCurrent(core.context));
    ((void (*)(void))function)();
    return NULL;
}

static void in_another_thread(void (*function)(void))
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, thread_body,
                                    (void *)function), 0);
    pthread_join(thread, NULL);
}

/* ---- Runs ---- */

START_TEST(a_region_begun_by_name_is_recorded_and_replayed)
{
    cgshim_region_info_t info;

    begun_runs("r", RUNS);
    info = info_of("r");
    ck_assert_uint_eq(info.runs, RUNS);
    ck_assert_uint_eq(info.recordings, 1);
    ck_assert_uint_eq(info.replayed_runs, RUNS - 1);
    ck_assert_uint_eq(info.plain_runs, 0);
    ck_assert_uint_eq(info.calls, RUNS * STEPS);
    ck_assert_uint_eq(info.swallowed, (RUNS - 1) * STEPS);
    ck_assert_uint_eq(info.launches, RUNS - 1);
    ck_assert_uint_eq(info.patched, 0);
    ck_assert_uint_eq(info.variants, 1);
    ck_assert_uint_eq(info.chunks, 1);
    ck_assert_uint_eq(info.nodes, STEPS);
    ck_assert_uint_eq(info.builds, 1);
    ck_assert_uint_gt(info.build_ns, 0);
    ck_assert_uint_gt(info.host_bytes, 0);
    ck_assert_int_eq(info.state, CGSHIM_STATE_REPLAYING);
    ck_assert_str_eq(info.state_text, "replaying");
    ck_assert_ptr_null(info.last_fallback);
    check_word();
}
END_TEST

START_TEST(it_is_the_region_of_a_range_of_that_text)
{
    run_times("r", 3, 1, STEPS);
    begun_runs("r", 3);
    ck_assert_uint_eq(runs_of("r"), 6);
    ck_assert_uint_eq(info_of("r").replayed_runs, 5);
    check_word();
}
END_TEST

START_TEST(a_region_inside_another_belongs_to_it)
{
    unsigned run;

    for (run = 0; run < RUNS; ++run) {
        begin("outer");
        steps(1, 2);
        begin("inner");
        steps(3, 2);
        begin("outer");
        step(5);
        end("outer");
        end("inner");
        step(6);
        end("outer");
    }
    ck_assert_uint_eq(cgshim_region_count(), 1);
    ck_assert_uint_eq(runs_of("outer"), RUNS);
    ck_assert_uint_eq(info_of("outer").launches, RUNS - 1);
    check_word();
}
END_TEST

/* NVTX has a stack of its own: the two may cross. */
START_TEST(ranges_do_not_end_what_was_begun_and_the_other_way_round)
{
    begun_runs("r", 2);
    begin("r");
    enter("range");
    steps(1, 2);
    leave();
    leave();
    steps(3, 3);
    end("r");
    ck_assert_uint_eq(info_of("r").replayed_runs, 2);

    enter("range");
    begin("r");
    steps(1, STEPS);
    leave();
    ck_assert_uint_eq(runs_of("range"), 1);
    ck_assert_uint_eq(info_of("range").calls, STEPS);
    end("r");
    ck_assert_uint_eq(runs_of("r"), 3);
    check_word();
}
END_TEST

START_TEST(what_was_not_begun_last_cannot_be_ended)
{
    fails(cgshim_region_end("r"), CGSHIM_ERROR_UNBALANCED, "r");
    begin("r");
    begin("inner");
    fails(cgshim_region_end("r"), CGSHIM_ERROR_UNBALANCED, "is not r");
    end("inner");
    steps(1, STEPS);
    end("r");
    fails(cgshim_region_end("r"), CGSHIM_ERROR_UNBALANCED, "r");
    ck_assert_uint_eq(info_of("r").calls, STEPS);
}
END_TEST

static void end_r_as_it_was_not_begun_here(void)
{
    ck_assert_int_eq(cgshim_region_end("r"), CGSHIM_ERROR_UNBALANCED);
}

START_TEST(a_region_ends_in_its_own_thread)
{
    begin("r");
    in_another_thread(end_r_as_it_was_not_begun_here);
    step(1);
    end("r");
    ck_assert_uint_eq(info_of("r").calls, 1);
}
END_TEST

START_TEST(there_is_a_limit_to_nesting)
{
    unsigned i;

    for (i = 0; i < CGSHIM_MAX_NESTED; ++i) {
        begin("r");
    }
    fails(cgshim_region_begin("r"), CGSHIM_ERROR_LIMIT, "64");
    for (i = 0; i < CGSHIM_MAX_NESTED; ++i) {
        end("r");
    }
    begun_runs("r", 2);
    ck_assert_uint_eq(runs_of("r"), 3);
}
END_TEST

START_TEST(a_region_needs_a_name)
{
    fails(cgshim_region_begin(NULL), CGSHIM_ERROR_INVALID, "name");
    fails(cgshim_region_begin(""), CGSHIM_ERROR_INVALID, "name");
    fails(cgshim_region_end(NULL), CGSHIM_ERROR_INVALID, "name");
    fails(cgshim_region_destroy(NULL), CGSHIM_ERROR_INVALID, "name");
    fails(cgshim_region_recapture(""), CGSHIM_ERROR_INVALID, "name");
}
END_TEST

START_TEST(errno_is_left_alone)
{
    errno = EDOM;
    begun_runs("r", 3);
    ck_assert_int_eq(errno, EDOM);
}
END_TEST

/* ---- Recapture and destroy ---- */

START_TEST(recapture_records_the_next_run)
{
    begun_runs("r", 3);
    succeed(cgshim_region_recapture("r"));
    begun_runs("r", 3);
    ck_assert_uint_eq(info_of("r").recordings, 2);
    ck_assert_uint_eq(info_of("r").replayed_runs, 4);
    check_word();
}
END_TEST

START_TEST(destroy_frees_all_and_the_next_run_is_recorded)
{
    begun_runs("r", 3);
    succeed(cgshim_region_destroy("r"));
    ck_assert_int_eq(info_of("r").state, CGSHIM_STATE_ENDED);
    begun_runs("r", 3);
    ck_assert_uint_eq(info_of("r").recordings, 2);
    ck_assert_uint_eq(info_of("r").replayed_runs, 4);
    check_word();
}
END_TEST

static void destroy_r(void)
{
    succeed(cgshim_region_destroy("r"));
}

static void destroy_all(void)
{
    succeed(cgshim_destroy_all());
}

START_TEST(destroyed_while_open_the_run_goes_on_plain)
{
    void (*const ways[])(void) = {destroy_r, destroy_all};

    begun_runs("r", 3);
    begin("r");
    steps(1, 2);
    if (_i < 2) {
        in_another_thread(ways[_i]);
    } else {
        ways[_i - 2]();
    }
    steps(3, 3);
    end("r");
    ck_assert_uint_eq(info_of("r").replayed_runs, 2);
    ck_assert_str_eq(info_of("r").last_fallback,
                     "the program asked for it");
    begun_runs("r", 3);
    ck_assert_uint_eq(info_of("r").replayed_runs, 4);
    check_word();
}
END_TEST

START_TEST(destroy_all_is_for_all_regions)
{
    begun_runs("r", 2);
    begun_runs("other", 2);
    destroy_all();
    ck_assert_int_eq(info_of("r").state, CGSHIM_STATE_ENDED);
    ck_assert_int_eq(info_of("other").state, CGSHIM_STATE_ENDED);
}
END_TEST

/* ---- What there is ---- */

START_TEST(the_version_is_a_text_and_a_number)
{
    char text[32];
    int  number = cgshim_version_number();

    snprintf(text, sizeof(text), "%d.%d.%d", number / 10000,
             number / 100 % 100, number % 100);
    ck_assert_str_eq(cgshim_version(), text);
}
END_TEST

START_TEST(each_error_has_a_text)
{
    int error;

    for (error = CGSHIM_SUCCESS; error <= CGSHIM_ERROR_NO_MEMORY; ++error) {
        ck_assert_str_ne(cgshim_error_text((cgshim_error_t)error),
                         cgshim_error_text((cgshim_error_t)1000));
    }
}
END_TEST

START_TEST(regions_are_listed_in_order_of_appearance)
{
    ck_assert_uint_eq(cgshim_region_count(), 0);
    ck_assert_ptr_null(cgshim_region_name(0));
    begun_runs("first", 1);
    begun_runs("second", 1);
    begun_runs("first", 1);
    begun_runs("third", 1);
    ck_assert_uint_eq(cgshim_region_count(), 3);
    ck_assert_str_eq(cgshim_region_name(0), "first");
    ck_assert_str_eq(cgshim_region_name(1), "second");
    ck_assert_str_eq(cgshim_region_name(2), "third");
    ck_assert_ptr_null(cgshim_region_name(3));
    ck_assert_ptr_null(cgshim_region_name(SIZE_MAX));
}
END_TEST

START_TEST(an_unknown_name_is_answered_by_those_that_there_are)
{
    cgshim_region_info_t info = {.size = sizeof(info)};

    fails(cgshim_region_recapture("r"), CGSHIM_ERROR_UNKNOWN,
          "there is no region r; none was entered yet");
    begun_runs("first", 1);
    begun_runs("sec\nond", 1);
    fails(cgshim_region_info("r\t", &info), CGSHIM_ERROR_UNKNOWN,
          "there is no region r\\t; there are: first, sec\\nond");
    fails(cgshim_region_destroy("r"), CGSHIM_ERROR_UNKNOWN, "first");
    ck_assert_uint_eq(info.runs, 0);
}
END_TEST

START_TEST(a_list_of_names_that_is_too_long_is_cut)
{
    char name[200];
    int  i;

    for (i = 0; i < 20; ++i) {
        memset(name, 'a' + i, sizeof(name));
        name[sizeof(name) - 1] = '\0';
        begun_runs(name, 1);
    }
    ck_assert_int_eq(cgshim_region_recapture("r"), CGSHIM_ERROR_UNKNOWN);
    ck_assert_uint_lt(strlen(cgshim_last_error_text()), 512);
    ck_assert_ptr_nonnull(strstr(cgshim_last_error_text(), "..."));
}
END_TEST

static void check_no_error_here(void)
{
    ck_assert_str_eq(cgshim_last_error_text(), "");
}

START_TEST(an_error_is_told_in_its_thread)
{
    ck_assert_int_eq(cgshim_region_end("r"), CGSHIM_ERROR_UNBALANCED);
    ck_assert_str_ne(cgshim_last_error_text(), "");
    in_another_thread(check_no_error_here);
}
END_TEST

START_TEST(a_struct_says_how_large_it_is)
{
    struct {
        cgshim_region_info_t info;
        uint64_t             newer[4];
    } more;
    cgshim_region_info_t info = {.size = sizeof(info) - 1};

    begun_runs("r", 3);
    fails(cgshim_region_info("r", &info), CGSHIM_ERROR_INVALID, "size");
    ck_assert_uint_eq(info.runs, 0);
    fails(cgshim_region_info("r", NULL), CGSHIM_ERROR_INVALID, "answer");

    memset(&more, 0xff, sizeof(more));
    more.info.size = sizeof(more);
    succeed(cgshim_region_info("r", &more.info));
    ck_assert_uint_eq(more.info.size, sizeof(more));
    ck_assert_uint_eq(more.info.runs, 3);
    ck_assert_uint_eq(more.newer[0], 0);
    ck_assert_uint_eq(more.newer[3], 0);
}
END_TEST

START_TEST(the_last_reason_for_going_plain_is_told)
{
    begun_runs("r", 3);
    begin("r");
    step(1);
    end("r");
    ck_assert_str_eq(info_of("r").last_fallback,
                     "it ended before the recording did");
}
END_TEST

static cgshim_error_t look_at_r(int way)
{
    cgshim_region_info_t info  = {.size = sizeof(info)};
    cgshim_chunk_t       chunk = {.size = sizeof(chunk)};
    size_t               count = 0;

    switch (way) {
    case 0:
        return cgshim_region_info("r", &info);
    case 1:
        return cgshim_region_chunk("r", 0, &chunk);
    default:
        return cgshim_region_buffers("r", NULL, &count);
    }
}

START_TEST(a_region_that_is_busy_for_long_is_not_waited_for)
{
    cgs_region_t *region;

    begun_runs("r", 3);
    region = cgs_region_find("r");
    cgs_lock(&region->lock);
    fails(look_at_r(_i), CGSHIM_ERROR_BUSY, "at work");
    cgs_unlock(&region->lock);
    succeed(look_at_r(_i));
}
END_TEST

/* ---- Graphs ---- */

static size_t num_nodes(const cgshim_chunk_t *chunk)
{
    size_t num = 0;

    PRG_CHECK(cuGraphGetNodes((CUgraph)chunk->graph, NULL, &num));
    return num;
}

START_TEST(each_chunk_shows_its_graph)
{
    cgshim_chunk_t chunk = {.size = sizeof(chunk)};
    unsigned       run;

    for (run = 0; run < 3; ++run) {
        begin("r");
        steps(1, 2);
        PRG_CHECK(cuCtxSynchronize());
        steps(3, 3);
        end("r");
        if (run == 0) {
            succeed(cgshim_region_chunk("r", 0, &chunk));
            ck_assert_ptr_null(chunk.graph);
            ck_assert_ptr_null(chunk.exec);
        }
    }
    succeed(cgshim_region_chunk("r", 0, &chunk));
    ck_assert_uint_eq(chunk.size, sizeof(chunk));
    ck_assert_uint_eq(chunk.first_op, 0);
    ck_assert_uint_eq(chunk.num_ops, 2);
    ck_assert_uint_eq(num_nodes(&chunk), 2);
    ck_assert_ptr_nonnull(chunk.exec);
    succeed(cgshim_region_chunk("r", 1, &chunk));
    ck_assert_uint_eq(chunk.first_op, 2);
    ck_assert_uint_eq(chunk.num_ops, 3);
    ck_assert_uint_eq(num_nodes(&chunk), 3);
    fails(cgshim_region_chunk("r", 2, &chunk), CGSHIM_ERROR_UNKNOWN,
          "chunks of the region: 2");
    succeed(cgshim_region_destroy("r"));
    fails(cgshim_region_chunk("r", 0, &chunk), CGSHIM_ERROR_UNKNOWN, ": 0");
}
END_TEST

/* ---- Buffers ---- */

static CUdeviceptr x, y;
static uint32_t    *pinned;
static uint32_t    pageable[WORDS];

/* Calls that use memory of all kinds. */
static void buffers_open(void)
{
    region_open();
    x = core_alloc(WORDS * sizeof(uint32_t), 1);
    y = core_alloc(2 * WORDS * sizeof(uint32_t), 2);
    PRG_CHECK(cuMemAllocHost_v2((void **)&pinned, sizeof(pageable)));
}

static void run_with_buffers(void)
{
    CUdeviceptr inside = y + 16;
    CUfunction  axpy   = prg_kernel(&core, "k_axpy");
    uint32_t    n = 4, a = 3;

    begin("b");
    PRG_CHECK(cuMemsetD32Async(x, 7, WORDS, core_stream));
    PRG_CHECK(cuMemcpyHtoDAsync_v2(y + 32, pageable, sizeof(pageable),
                                   core_stream));
    PRG_CHECK(prg_launch(axpy, core_stream, 4,
                         (void *[]){&inside, &x, &n, &a}));
    step(1);
    step(2);
    PRG_CHECK(cuMemcpyDtoHAsync_v2(pinned, y, 64, core_stream));
    end("b");
    PRG_CHECK(cuCtxSynchronize());
}

static const cgshim_buffer_t *buffer_at(const cgshim_buffer_t *buffers,
                                        size_t num, uint64_t base)
{
    size_t i;

    for (i = 0; i < num; ++i) {
        if (buffers[i].base == base) {
            return &buffers[i];
        }
    }
    ck_abort_msg("there is no buffer at %#llx", (unsigned long long)base);
    return NULL;
}

static void check_buffer(const cgshim_buffer_t *buffer, uint64_t bytes,
                         uint64_t offset, uint64_t op, const char *kernel,
                         int argument, cgshim_memory_t memory,
                         unsigned access)
{
    ck_assert_uint_eq(buffer->size, sizeof(*buffer));
    ck_assert_uint_eq(buffer->bytes, bytes);
    ck_assert_uint_eq(buffer->offset, offset);
    ck_assert_uint_eq(buffer->op, op);
    ck_assert_str_eq(buffer->kernel, kernel);
    ck_assert_int_eq(buffer->argument, argument);
    ck_assert_uint_eq(buffer->argument_offset, 0);
    ck_assert_int_eq(buffer->memory, memory);
    ck_assert_uint_eq(buffer->access, access);
}

START_TEST(the_memory_that_calls_use_is_listed)
{
    cgshim_buffer_t buffers[8] = {{.size = sizeof(buffers[0])}};
    size_t          count      = 0;
    int             run;

    for (run = 0; run < 3; ++run) {
        run_with_buffers();
    }
    succeed(cgshim_region_buffers("b", NULL, &count));
    ck_assert_uint_eq(count, 5);
    count = 8;
    succeed(cgshim_region_buffers("b", buffers, &count));
    ck_assert_uint_eq(count, 5);

    ck_assert_uint_eq(buffers[0].base, x);
    check_buffer(&buffers[0], WORDS * 4, 0, 0, "set", 0, CGSHIM_MEMORY_DEVICE,
                 CGSHIM_ACCESS_WRITTEN | CGSHIM_ACCESS_UNKNOWN);
    check_buffer(buffer_at(buffers, count, y), WORDS * 8, 32, 1, "copy", 0,
                 CGSHIM_MEMORY_DEVICE, CGSHIM_ACCESS_READ |
                 CGSHIM_ACCESS_WRITTEN | CGSHIM_ACCESS_UNKNOWN);
    check_buffer(buffer_at(buffers, count, (uintptr_t)pageable),
                 sizeof(pageable), 0, 1, "copy", 1, CGSHIM_MEMORY_PAGEABLE,
                 CGSHIM_ACCESS_READ);
    check_buffer(buffer_at(buffers, count, word), 4, 0, 3, "k_chain", 0,
                 CGSHIM_MEMORY_DEVICE, CGSHIM_ACCESS_UNKNOWN);
    check_buffer(buffer_at(buffers, count, (uintptr_t)pinned),
                 sizeof(pageable), 0, 5, "copy", 0, CGSHIM_MEMORY_HOST,
                 CGSHIM_ACCESS_WRITTEN);
}
END_TEST

START_TEST(as_many_buffers_are_told_as_there_is_room_for)
{
    struct {
        cgshim_buffer_t buffer;
        uint64_t        newer;
    } more[3];
    size_t count = 2;

    run_with_buffers();
    memset(more, 0xff, sizeof(more));
    more[0].buffer.size = sizeof(more[0]);
    succeed(cgshim_region_buffers("b", &more[0].buffer, &count));
    ck_assert_uint_eq(count, 5);
    ck_assert_uint_eq(more[1].buffer.size, sizeof(more[1]));
    ck_assert_uint_eq(more[1].buffer.base, y);
    ck_assert_uint_eq(more[1].newer, 0);
    ck_assert_uint_eq(more[2].newer, UINT64_MAX);
    count = 3;
    more[0].buffer.size = 0;
    fails(cgshim_region_buffers("b", &more[0].buffer, &count),
          CGSHIM_ERROR_INVALID, "size");
    fails(cgshim_region_buffers("b", NULL, NULL), CGSHIM_ERROR_INVALID,
          "count");
}
END_TEST

static cgshim_buffer_t find_buffer(const char *kernel, size_t launch,
                                   int argument)
{
    cgshim_buffer_t buffer = {.size = sizeof(buffer)};

    succeed(cgshim_region_buffer("b", kernel, launch, argument, &buffer));
    return buffer;
}

START_TEST(the_memory_of_one_argument_is_found)
{
    cgshim_buffer_t buffer;

    run_with_buffers();
    buffer = find_buffer("k_axpy", 0, 0);
    ck_assert_uint_eq(buffer.base, y);
    check_buffer(&buffer, WORDS * 8, 16, 2, "k_axpy", 0, CGSHIM_MEMORY_DEVICE,
                 CGSHIM_ACCESS_UNKNOWN);
    buffer = find_buffer("k_axpy", 0, 1);
    ck_assert_uint_eq(buffer.base, x);
    buffer = find_buffer("k_chain", 1, 0);
    ck_assert_uint_eq(buffer.base, word);
    ck_assert_uint_eq(buffer.op, 4);
    buffer = find_buffer("copy", 1, 0);
    ck_assert_uint_eq(buffer.base, (uintptr_t)pinned);
    buffer = find_buffer("copy", 1, 1);
    check_buffer(&buffer, WORDS * 8, 0, 5, "copy", 1, CGSHIM_MEMORY_DEVICE,
                 CGSHIM_ACCESS_READ);
}
END_TEST

START_TEST(a_call_that_there_is_not_is_answered_by_those_that_there_are)
{
    cgshim_buffer_t buffer = {.size = sizeof(buffer)};

    run_with_buffers();
    fails(cgshim_region_buffer("b", "k_none", 0, 0, &buffer),
          CGSHIM_ERROR_UNKNOWN, "the region has no call of k_none; it has: "
          "set, copy, k_axpy, k_chain");
    fails(cgshim_region_buffer("b", "k_chain", 2, 0, &buffer),
          CGSHIM_ERROR_UNKNOWN, "calls of that name in the region: 2");
    fails(cgshim_region_buffer("b", "k_chain", 0, 1, &buffer),
          CGSHIM_ERROR_UNKNOWN, "argument 1");
    fails(cgshim_region_buffer("b", "k_chain", 0, -1, &buffer),
          CGSHIM_ERROR_UNKNOWN, "argument -1");
    fails(cgshim_region_buffer("none", "k_chain", 0, 0, &buffer),
          CGSHIM_ERROR_UNKNOWN, "there are: b");
    fails(cgshim_region_buffer("b", NULL, 0, 0, &buffer),
          CGSHIM_ERROR_INVALID, "name");
    ck_assert_uint_eq(buffer.base, 0);
    succeed(cgshim_region_destroy("b"));
    fails(cgshim_region_buffer("b", "k_chain", 0, 0, &buffer),
          CGSHIM_ERROR_UNKNOWN, "nothing of it is recorded");
}
END_TEST

START_TEST(an_address_in_a_structure_is_one_too)
{
    CUfunction      kernel = prg_kernel(&core, "k_struct");
    krn_shape_t     shape  = {.offset = x + 4};
    uint32_t        n      = 0;
    cgshim_buffer_t buffer;

    begin("b");
    PRG_CHECK(prg_launch(kernel, core_stream, 1,
                         (void *[]){&word, &shape, &n}));
    end("b");
    buffer = find_buffer("k_struct", 0, 1);
    ck_assert_uint_eq(buffer.base, x);
    ck_assert_uint_eq(buffer.offset, 4);
    ck_assert_uint_eq(buffer.argument_offset, offsetof(krn_shape_t, offset));
}
END_TEST

START_TEST(managed_memory_is_told_apart)
{
    CUdeviceptr managed;
    uint32_t    value = 1;

    PRG_CHECK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    begin("b");
    PRG_CHECK(prg_launch(chain, core_stream, 1, (void *[]){&managed, &value}));
    end("b");
    ck_assert_int_eq(find_buffer("k_chain", 0, 0).memory,
                     CGSHIM_MEMORY_MANAGED);
}
END_TEST

START_TEST(what_was_freed_is_left_out)
{
    cgshim_buffer_t buffer = {.size = sizeof(buffer)};
    size_t          count  = 0;

    run_with_buffers();
    PRG_CHECK(cuMemFree_v2(word));
    succeed(cgshim_region_buffers("b", NULL, &count));
    ck_assert_uint_eq(count, 4);
    ck_assert_int_eq(cgshim_region_buffer("b", "k_chain", 0, 0, &buffer),
                     CGSHIM_ERROR_UNKNOWN);
}
END_TEST

static void look_without_a_context(void)
{
    PRG_CHECK(cuCtxSetCurrent(NULL));
    ck_assert_uint_eq(find_buffer("k_chain", 0, 0).base, word);
}

START_TEST(no_context_need_be_current)
{
    run_with_buffers();
    in_another_thread(look_without_a_context);
}
END_TEST

START_TEST(the_arguments_are_those_of_the_last_run)
{
    CUdeviceptr first = word;

    begun_runs("b", 3);
    ck_assert_uint_eq(find_buffer("k_chain", 0, 0).base, first);
    word  = core_alloc(sizeof(uint32_t), 0);
    model = 0;
    begun_runs("b", 1);
    ck_assert_uint_eq(find_buffer("k_chain", STEPS - 1, 0).base, word);
    check_word();
}
END_TEST

START_TEST(a_look_while_the_region_is_open_disturbs_nothing)
{
    size_t count = 0;

    begun_runs("b", 3);
    begin("b");
    steps(1, 2);
    succeed(cgshim_region_buffers("b", NULL, &count));
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(held(cgs_region_find("b")), 2);
    steps(3, 3);
    end("b");
    ck_assert_uint_eq(info_of("b").replayed_runs, 3);
    check_word();
}
END_TEST

/* ---- Life ---- */

static int child(void)
{
    cgshim_region_info_t info  = {.size = sizeof(info)};
    cgshim_chunk_t       chunk = {.size = sizeof(chunk)};
    size_t               count = 0;

    alarm(3);
    return (cgshim_version() == NULL) && (cgshim_version_number() == 0) &&
           (cgshim_region_count() == 0) && (cgshim_region_name(0) == NULL) &&
           (cgshim_region_begin("r") == CGSHIM_ERROR_NOT_LOADED) &&
           (cgshim_region_end("r") == CGSHIM_ERROR_NOT_LOADED) &&
           (cgshim_region_recapture("r") == CGSHIM_ERROR_NOT_LOADED) &&
           (cgshim_region_destroy("r") == CGSHIM_ERROR_NOT_LOADED) &&
           (cgshim_destroy_all() == CGSHIM_ERROR_NOT_LOADED) &&
           (cgshim_region_info("r", &info) == CGSHIM_ERROR_NOT_LOADED) &&
           (cgshim_region_chunk("r", 0, &chunk) == CGSHIM_ERROR_NOT_LOADED) &&
           (cgshim_region_buffers("r", NULL, &count) ==
            CGSHIM_ERROR_NOT_LOADED);
}

START_TEST(to_the_child_of_a_fork_it_is_not_loaded)
{
    cgs_region_t *region;
    int          status = -1;
    pid_t        pid;

    begun_runs("r", 3);
    begin("r");
    step(1);
    region = cgs_region_find("r");
    cgs_lock(&region->lock);
    pid = fork();
    if (pid == 0) {
        _exit(child() ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    cgs_unlock(&region->lock);
    steps(2, 4);
    end("r");
    ck_assert_uint_eq(info_of("r").replayed_runs, 3);
    check_word();
}
END_TEST

START_TEST(a_child_that_has_no_driver_goes_on)
{
    int   status = -1;
    pid_t pid;

    begin("r");
    pid = fork();
    if (pid == 0) {
        alarm(3);
        _exit((cgshim_region_end("r") == CGSHIM_SUCCESS) &&
              (cgshim_region_begin("r") == CGSHIM_SUCCESS) ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    end("r");
}
END_TEST

START_TEST(what_was_begun_ends_also_once_it_is_off)
{
    begun_runs("r", 3);
    begin("r");
    steps(1, 2);
    cgs_life_stand_down("a reason");
    fails(cgshim_region_begin("r"), CGSHIM_ERROR_OFF, "a reason");
    steps(3, 3);
    end("r");
    ck_assert_int_eq(cgshim_region_end("r"), CGSHIM_ERROR_OFF);
    ck_assert_int_eq(cgshim_destroy_all(), CGSHIM_ERROR_OFF);
    check_word();
}
END_TEST

static TCase *runs(void)
{
    TCase *tests = tcase_create("runs");

    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_add_test(tests, a_region_begun_by_name_is_recorded_and_replayed);
    tcase_add_test(tests, it_is_the_region_of_a_range_of_that_text);
    tcase_add_test(tests, a_region_inside_another_belongs_to_it);
    tcase_add_test(tests,
                   ranges_do_not_end_what_was_begun_and_the_other_way_round);
    tcase_add_test(tests, what_was_not_begun_last_cannot_be_ended);
    tcase_add_test(tests, a_region_ends_in_its_own_thread);
    tcase_add_test(tests, there_is_a_limit_to_nesting);
    tcase_add_test(tests, a_region_needs_a_name);
    tcase_add_test(tests, errno_is_left_alone);
    tcase_add_test(tests, recapture_records_the_next_run);
    tcase_add_test(tests, destroy_frees_all_and_the_next_run_is_recorded);
    tcase_add_loop_test(tests, destroyed_while_open_the_run_goes_on_plain, 0,
                        4);
    tcase_add_test(tests, destroy_all_is_for_all_regions);
    return tests;
}

static TCase *looks(void)
{
    TCase *tests = tcase_create("looks");

    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_add_test(tests, the_version_is_a_text_and_a_number);
    tcase_add_test(tests, each_error_has_a_text);
    tcase_add_test(tests, regions_are_listed_in_order_of_appearance);
    tcase_add_test(tests, an_unknown_name_is_answered_by_those_that_there_are);
    tcase_add_test(tests, a_list_of_names_that_is_too_long_is_cut);
    tcase_add_test(tests, an_error_is_told_in_its_thread);
    tcase_add_test(tests, a_struct_says_how_large_it_is);
    tcase_add_test(tests, the_last_reason_for_going_plain_is_told);
    tcase_add_loop_test(tests, a_region_that_is_busy_for_long_is_not_waited_for,
                        0, 3);
    tcase_add_test(tests, each_chunk_shows_its_graph);
    return tests;
}

static TCase *buffers(void)
{
    TCase *tests = tcase_create("buffers");

    tcase_add_checked_fixture(tests, buffers_open, NULL);
    tcase_add_test(tests, the_memory_that_calls_use_is_listed);
    tcase_add_test(tests, as_many_buffers_are_told_as_there_is_room_for);
    tcase_add_test(tests, the_memory_of_one_argument_is_found);
    tcase_add_test(
        tests, a_call_that_there_is_not_is_answered_by_those_that_there_are);
    tcase_add_test(tests, an_address_in_a_structure_is_one_too);
    tcase_add_test(tests, managed_memory_is_told_apart);
    tcase_add_test(tests, what_was_freed_is_left_out);
    tcase_add_test(tests, no_context_need_be_current);
    tcase_add_test(tests, the_arguments_are_those_of_the_last_run);
    tcase_add_test(tests, a_look_while_the_region_is_open_disturbs_nothing);
    return tests;
}

static TCase *life(void)
{
    TCase *tests = tcase_create("life");

    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_add_test(tests, to_the_child_of_a_fork_it_is_not_loaded);
    tcase_add_test(tests, what_was_begun_ends_also_once_it_is_off);
    return tests;
}

static TCase *no_driver(void)
{
    TCase *tests = tcase_create("no driver");

    tcase_add_test(tests, a_child_that_has_no_driver_goes_on);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("api");

    suite_add_tcase(suite, runs());
    suite_add_tcase(suite, looks());
    suite_add_tcase(suite, buffers());
    suite_add_tcase(suite, life());
    suite_add_tcase(suite, no_driver());
    return core_run(suite);
}
