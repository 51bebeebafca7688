/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace and dump stay within their bounds, say so, and stop by themselves
 * where their files are taken away.
 */
#define _GNU_SOURCE 1
#include "trace.h"

#include "capture.h"
#include "dump.h"
#include "region_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_BYTES = 20000,
    EVENTS    = 5000,
    THREADS   = 4,
    MANY      = 700
};

static cgs_region_t region = {.name = (char *)"name"};
static char         text[1 << 20];

/* Before the library's own constructor keeps the environment. */
__attribute__((constructor(101))) static void configure(void)
{
    setenv("CGSHIM_DEFAULTS", "max_defer_us=1000000000 gate=off chunk=all", 1);
}

static void read_trace(const char *name)
{
    FILE   *file = fopen(name, "r");
    size_t length;

    ck_assert_ptr_nonnull(file);
    length       = fread(text, 1, sizeof(text) - 1, file);
    text[length] = '\0';
    fclose(file);
}

static unsigned count(const char *what)
{
    unsigned   num = 0;
    const char *at;

    for (at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) {
        ++num;
    }
    return num;
}

static void check_end(void)
{
    ck_assert_str_eq(text + strlen(text) - 4, "}\n]\n");
    ck_assert_int_eq(memcmp(text, "[\n{", 3), 0);
}

static void mark(unsigned times)
{
    while (times-- > 0) {
        cgs_trace_mark(CGS_TRACE_BARRIER, &region, "reason", 0);
    }
}

static void *mark_some(void *arg)
{
    mark(EVENTS);
    return arg;
}

static void run_threads(unsigned num, void *(*function)(void *))
{
    pthread_t thread[MANY];
    unsigned  i;

    for (i = 0; i < num; ++i) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, function, NULL), 0);
    }
    for (i = 0; i < num; ++i) {
        pthread_join(thread[i], NULL);
    }
}

START_TEST(nothing_is_traced_unless_asked_for)
{
    cgs_trace_start(NULL, MAX_BYTES);
    ck_assert(!cgs_trace_enabled());
    ck_assert_uint_eq(cgs_trace_begin(), 0);
    mark(1);
    cgs_trace_finish();
}
END_TEST

START_TEST(events_of_all_threads_are_written)
{
    char *scratch = scratch_enter();

    cgs_trace_start("trace", CGS_TRACE_MAX_BYTES);
    mark(3);
    run_threads(THREADS, mark_some);
    cgs_trace_finish();
    mark(1);
    cgs_trace_finish();
    ck_assert(!cgs_trace_enabled());
    ck_assert_int_eq(system("test $(grep -c reason trace) = 20003"), 0);
    scratch_leave(scratch);
}
END_TEST

START_TEST(the_file_is_never_larger_and_says_so)
{
    char *scratch = scratch_enter();

    cgs_trace_start("trace", MAX_BYTES);
    run_threads(THREADS, mark_some);
    ck_assert(!cgs_trace_enabled());
    cgs_trace_finish();
    read_trace("trace");
    ck_assert_uint_le(strlen(text), MAX_BYTES);
    ck_assert_uint_gt(strlen(text), MAX_BYTES - 1000);
    ck_assert_uint_eq(count("events are left out"), 1);
    check_end();
    scratch_leave(scratch);
}
END_TEST

static pthread_barrier_t all_begun;

static void *mark_and_wait(void *arg)
{
    mark(1);
    pthread_barrier_wait(&all_begun);
    return arg;
}

START_TEST(threads_beyond_the_limit_are_left_out)
{
    char *scratch = scratch_enter();

    pthread_barrier_init(&all_begun, NULL, MANY);
    cgs_trace_start("trace", CGS_TRACE_MAX_BYTES);
    run_threads(MANY, mark_and_wait);
    mark(1);
    cgs_trace_finish();
    read_trace("trace");
    ck_assert_uint_eq(count("\"reason\":\"reason\""), 512 + 1);
    ck_assert_uint_eq(count("or too many threads"), 1);
    check_end();
    scratch_leave(scratch);
}
END_TEST

/* A descriptor that the program has taken for something else is its own. */
START_TEST(a_closed_file_ends_the_trace)
{
    char      *scratch = scratch_enter();
    capture_t capture;
    int       fd, other = open("other", O_WRONLY | O_CREAT, 0644);

    cgs_trace_start("trace", CGS_TRACE_MAX_BYTES);
    for (fd = 100; fd < 110; ++fd) {
        dup2(other, fd);
    }
    capture_begin(&capture);
    mark(EVENTS);
    cgs_trace_finish();
    capture_expect(&capture, "cgshim: CGSHIM_TRACE=trace: the program has "
                   "closed the file; the trace ends there\n");
    ck_assert(!cgs_trace_enabled());
    read_trace("other");
    ck_assert_str_eq(text, "");
    scratch_leave(scratch);
}
END_TEST

START_TEST(a_child_of_fork_leaves_the_trace_alone)
{
    char *scratch = scratch_enter();

    cgs_trace_start("trace", CGS_TRACE_MAX_BYTES);
    mark(3);
    if (fork() == 0) {
        cgs_trace_abandon();
        mark(EVENTS);
        cgs_trace_finish();
        _exit(0);
    }
    wait(NULL);
    cgs_trace_finish();
    read_trace("trace");
    ck_assert_uint_eq(count("\"reason\":\"reason\""), 3);
    check_end();
    scratch_leave(scratch);
}
END_TEST

static unsigned count_files(const char *directory)
{
    DIR           *dir = opendir(directory);
    struct dirent *entry;
    unsigned      num  = 0;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL) {
        num += entry->d_name[0] != '.';
    }
    closedir(dir);
    return num;
}

START_TEST(graphs_beyond_the_limit_are_not_dumped)
{
    char      *scratch = scratch_enter();
    capture_t capture;

    region_open();
    ck_assert_int_eq(mkdir("dump", 0755), 0);
    cgs_dump_start("dump", 4);
    run_times("one", 2, 1, 4);
    run_times("../two", 2, 1, 4);
    ck_assert_uint_eq(count_files("dump"), 4);
    ck_assert_int_eq(access("dump/_._two-2.dot", F_OK), 0);
    capture_begin(&capture);
    run_times("three", 2, 1, 4);
    run_times("four", 2, 1, 4);
    capture_expect(&capture, "cgshim: CGSHIM_DUMP=dump: 4 files are enough; "
                   "no more graphs are written\n");
    ck_assert_uint_eq(count_files("dump"), 4);
    check_word();
    scratch_leave(scratch);
}
END_TEST

START_TEST(a_directory_that_is_gone_ends_the_dump)
{
    char      *scratch = scratch_enter();
    capture_t capture;

    region_open();
    ck_assert_int_eq(mkdir("dump", 0755), 0);
    cgs_dump_start("dump", 100);
    ck_assert_int_eq(rmdir("dump"), 0);
    capture_begin(&capture);
    run_times("one", 3, 1, 4);
    run_times("two", 3, 1, 4);
    capture_expect(&capture, "cgshim: CGSHIM_DUMP=dump: No such file or "
                   "directory; no more graphs are written\n");
    check_word();
    scratch_leave(scratch);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace");
    TCase *trace = tcase_create("trace");
    TCase *dump  = tcase_create("dump");

    tcase_set_timeout(trace, 60);
    tcase_add_test(trace, nothing_is_traced_unless_asked_for);
    tcase_add_test(trace, events_of_all_threads_are_written);
    tcase_add_test(trace, the_file_is_never_larger_and_says_so);
    tcase_add_test(trace, threads_beyond_the_limit_are_left_out);
    tcase_add_test(trace, a_closed_file_ends_the_trace);
    tcase_add_test(trace, a_child_of_fork_leaves_the_trace_alone);
    suite_add_tcase(suite, trace);
    tcase_add_test(dump, graphs_beyond_the_limit_are_not_dumped);
    tcase_add_test(dump, a_directory_that_is_gone_ends_the_dump);
    suite_add_tcase(suite, dump);
    return core_run(suite);
}
