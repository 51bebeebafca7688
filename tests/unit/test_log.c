/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line, one write, and no harm to the program in whatever state it is.
 */
#define _GNU_SOURCE 1
#include "log.h"

#include "capture.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NUM_THREADS 8
#define NUM_LINES   200

/* The state of the log is that of a process, so each test has its own, in
 * CK_FORK=no too. A child tells of an error by its exit status */
static void in_child(void (*function)(void))
{
    int   status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        function();
        exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "child ended with %#x", status);
}

/* As above, with what it wrote on stderr; to be released */
static capture_t in_captured_child(void (*function)(void))
{
    capture_t capture;

    capture_begin(&capture);
    in_child(function);
    capture_end(&capture);
    return capture;
}

#define child_assert(_condition) \
    do { \
        if (!(_condition)) { \
            dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #_condition); \
            _exit(1); \
        } \
    } while (0)

static unsigned count_lines(const char *text)
{
    unsigned count = 0;

    for (; *text != '\0'; ++text) {
        count += *text == '\n';
    }
    return count;
}

/* Without the process id, which is not known before */
static void expect_line(const char *text, const char *rest)
{
    int length = 0;

    ck_assert_msg(sscanf(text, "cgshim[%*d] %n", &length) == 0 && length > 0,
                  "%s", text);
    ck_assert_str_eq(text + length, rest);
}

/* ---- What is written ---- */

static int num_evaluated;

static int evaluated(void)
{
    return ++num_evaluated;
}

static void child_logs_before_setup(void)
{
    cgs_log(CGS_LOG_ERROR, "silent %d", evaluated());
    child_assert(num_evaluated == 0);
}

START_TEST(nothing_is_logged_before_setup)
{
    capture_t capture = in_captured_child(child_logs_before_setup);

    ck_assert_str_eq(capture.text, "");
    capture_release(&capture);
}
END_TEST

static void child_logs_all_levels(void)
{
    cgs_log_setup(CGS_LOG_WARN, NULL);
    cgs_log(CGS_LOG_ERROR, "%s %d", "one", evaluated());
    cgs_log(CGS_LOG_WARN, "two");
    cgs_log(CGS_LOG_INFO, "three %d", evaluated());
    cgs_log(CGS_LOG_DEBUG, "four %d", evaluated());
    child_assert(num_evaluated == 1);
    child_assert(cgs_log_enabled(CGS_LOG_WARN));
    child_assert(!cgs_log_enabled(CGS_LOG_INFO));
}

START_TEST(a_level_holds_those_before_it_and_no_other)
{
    capture_t capture = in_captured_child(child_logs_all_levels);
    char      *second = strchr(capture.text, '\n');

    ck_assert_ptr_nonnull(second);
    ck_assert_uint_eq(count_lines(capture.text), 2);
    expect_line(second + 1, "warn: two\n");
    second[1] = '\0';
    expect_line(capture.text, "error: one 1\n");
    capture_release(&capture);
}
END_TEST

static void child_logs_controls(void)
{
    cgs_log_setup(CGS_LOG_INFO, "stderr");
    cgs_log(CGS_LOG_INFO, "a\nb\x1b[31m%s", "\r\xff");
}

START_TEST(control_characters_are_escaped)
{
    capture_t capture = in_captured_child(child_logs_controls);

    expect_line(capture.text, "info: a\\nb\\x1b[31m\\r\\xff\n");
    capture_release(&capture);
}
END_TEST

static void child_complains(void)
{
    cgs_log_complain("%s: takes\n%d", "CGSHIM", 1);
}

START_TEST(a_complaint_is_printed_whatever_the_level)
{
    capture_t capture = in_captured_child(child_complains);

    ck_assert_str_eq(capture.text, "cgshim: CGSHIM: takes\\n1\n");
    capture_release(&capture);
}
END_TEST

/* A socket that keeps apart what was written apart */
static void child_logs_to_packets(void)
{
    char    packet[4096], text[4096];
    int     pair[2];
    ssize_t got;

    child_assert(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    child_assert(dup2(pair[1], 2) == 2);
    cgs_log_setup(CGS_LOG_INFO, NULL);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    cgs_log(CGS_LOG_INFO, "short");
    cgs_log(CGS_LOG_INFO, "%s", text);
    memset(text, '\n', sizeof(text) - 1);
    cgs_log(CGS_LOG_INFO, "%s", text);
    got = recv(pair[0], packet, sizeof(packet), MSG_DONTWAIT);
    child_assert(got > 6 && memcmp(packet + got - 6, "short\n", 6) == 0);
    got = recv(pair[0], packet, sizeof(packet), MSG_DONTWAIT);
    child_assert(got > 1000 && got <= 1024);
    child_assert(memcmp(packet + got - 5, "x...\n", 5) == 0);
    got = recv(pair[0], packet, sizeof(packet), MSG_DONTWAIT);
    child_assert(got > 1000 && got <= 1024);
    child_assert(memcmp(packet + got - 6, "\\n...\n", 6) == 0);
    child_assert(recv(pair[0], packet, sizeof(packet), MSG_DONTWAIT) < 0);
}

START_TEST(a_line_is_one_write_and_has_an_end)
{
    in_child(child_logs_to_packets);
}
END_TEST

/* ---- The file ---- */

static void child_logs_to_file(void)
{
    char name[64];
    int  fd, num_files = 0;

    cgs_log_setup(CGS_LOG_INFO, "log.%p");
    snprintf(name, sizeof(name), "log.%d", (int)getpid());
    file_write(name, "before\n", 7);
    cgs_log(CGS_LOG_INFO, "after");
    child_assert(file_has(name, "before\ncgshim["));
    child_assert(file_has(name, "] info: after\n"));
    for (fd = 3; fd < 1024; ++fd) {
        struct stat file, st;

        if (stat(name, &file) == 0 && fstat(fd, &st) == 0 &&
            st.st_ino == file.st_ino && st.st_dev == file.st_dev) {
            child_assert(fd >= 100);
            child_assert(fcntl(fd, F_GETFD) == FD_CLOEXEC);
            ++num_files;
        }
    }
    child_assert(num_files == 1);
    /* The forked child writes its own */
    if (fork() == 0) {
        cgs_log(CGS_LOG_INFO, "child");
        snprintf(name, sizeof(name), "log.%d", (int)getpid());
        child_assert(file_has(name, "info: child\n"));
        _exit(0);
    }
    child_assert(wait(&fd) > 0 && fd == 0);
    child_assert(!file_has(name, "child"));
}

START_TEST(the_file_is_appended_to_and_each_process_has_its_own)
{
    char      *scratch = scratch_enter();
    capture_t capture  = in_captured_child(child_logs_to_file);

    ck_assert_str_eq(capture.text, "");
    capture_release(&capture);
    scratch_leave(scratch);
}
END_TEST

static void child_logs_to_link(void)
{
    cgs_log_setup(CGS_LOG_INFO, "link");
    cgs_log(CGS_LOG_INFO, "first");
    cgs_log(CGS_LOG_INFO, "second");
}

START_TEST(a_symbolic_link_is_refused_once_and_stderr_used)
{
    char      *scratch = scratch_enter();
    capture_t capture;
    char      *text;

    file_write("victim", "kept", 4);
    ck_assert_int_eq(symlink("victim", "link"), 0);
    capture = in_captured_child(child_logs_to_link);
    ck_assert_uint_eq(count_lines(capture.text), 3);
    ck_assert_int_eq(strncmp(capture.text, "cgshim: CGSHIM_LOG_FILE=link: "
                             "cannot be opened (", 48), 0);
    ck_assert_ptr_nonnull(strstr(capture.text, "info: first\n"));
    ck_assert_ptr_nonnull(strstr(capture.text, "info: second\n"));
    text = file_text("victim");
    ck_assert_str_eq(text, "kept");
    free(text);
    capture_release(&capture);
    scratch_leave(scratch);
}
END_TEST

/* What a daemon does: it closes all it has not opened, and opens its own */
static void child_reuses_descriptors(void)
{
    struct stat st;
    int         fd, number;

    cgs_log_setup(CGS_LOG_INFO, "log");
    cgs_log(CGS_LOG_INFO, "first");
    for (fd = 3; fd < 1024; ++fd) {
        close(fd);
    }
    fd = open("data", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (number = 100; number < 110; ++number) {
        child_assert(dup2(fd, number) == number);
    }
    cgs_log(CGS_LOG_INFO, "second");
    child_assert(fstat(fd, &st) == 0 && st.st_size == 0);
    child_assert(file_has("log", "info: second\n"));
}

START_TEST(a_descriptor_the_program_has_reused_is_not_written_to)
{
    char *scratch = scratch_enter();

    in_child(child_reuses_descriptors);
    scratch_leave(scratch);
}
END_TEST

static void child_has_closed_the_first_descriptors(void)
{
    close(0);
    close(1);
    close(2);
    cgs_log_setup(CGS_LOG_INFO, "log");
    cgs_log(CGS_LOG_INFO, "line");
    if (fcntl(0, F_GETFD) >= 0 || fcntl(1, F_GETFD) >= 0 ||
        fcntl(2, F_GETFD) >= 0) {
        _exit(1);
    }
    _exit(0);
}

START_TEST(the_file_never_becomes_stdin_stdout_or_stderr)
{
    char *scratch = scratch_enter();
    char *text;

    in_child(child_has_closed_the_first_descriptors);
    text = file_text("log");
    ck_assert_ptr_nonnull(strstr(text, "info: line\n"));
    free(text);
    scratch_leave(scratch);
}
END_TEST

static void child_logs_to_fifo(void)
{
    cgs_log_setup(CGS_LOG_INFO, "fifo");
    cgs_log(CGS_LOG_INFO, "line");
}

START_TEST(a_fifo_without_a_reader_does_not_stop_the_program)
{
    char      *scratch = scratch_enter();
    capture_t capture;

    ck_assert_int_eq(mkfifo("fifo", 0644), 0);
    capture = in_captured_child(child_logs_to_fifo);
    ck_assert_ptr_nonnull(strstr(capture.text, "info: line\n"));
    capture_release(&capture);
    scratch_leave(scratch);
}
END_TEST

/* ---- No harm ---- */

static void child_has_no_stderr(void)
{
    close(2);
    cgs_log_setup(CGS_LOG_INFO, NULL);
    errno = EDOM;
    cgs_log(CGS_LOG_INFO, "lost");
    cgs_log_complain("lost");
    _exit(errno == EDOM && cgs_log_write(2, "x", 1) == -EBADF &&
          errno == EDOM ? 0 : 1);
}

START_TEST(without_stderr_lines_are_lost_and_errno_is_kept)
{
    in_child(child_has_no_stderr);
}
END_TEST

static void child_has_no_reader(void)
{
    sigset_t set, mask;
    int      ends[2];

    child_assert(pipe(ends) == 0);
    close(ends[0]);
    child_assert(dup2(ends[1], 2) == 2);
    cgs_log_setup(CGS_LOG_INFO, NULL);
    errno = EDOM;
    cgs_log(CGS_LOG_INFO, "lost");
    child_assert(errno == EDOM);
    child_assert(cgs_log_write(2, "x", 1) == -EPIPE);
    /* The program's own mask and pending signal are as before */
    sigprocmask(SIG_BLOCK, NULL, &mask);
    child_assert(!sigismember(&mask, SIGPIPE));
    child_assert(!sigismember(&mask, SIGXFSZ));
    sigaddset(&mask, SIGPIPE);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    sigpending(&set);
    child_assert(!sigismember(&set, SIGPIPE));
    raise(SIGPIPE);
    cgs_log(CGS_LOG_INFO, "lost");
    sigpending(&set);
    child_assert(sigismember(&set, SIGPIPE));
    _exit(0);
}

START_TEST(a_reader_that_went_away_raises_no_signal)
{
    in_child(child_has_no_reader);
}
END_TEST

static void child_has_a_size_limit(void)
{
    struct rlimit limit = {10, 10};

    cgs_log_setup(CGS_LOG_INFO, "log");
    child_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    cgs_log(CGS_LOG_INFO, "first");
    cgs_log(CGS_LOG_INFO, "second");
}

START_TEST(a_size_limit_raises_no_signal)
{
    char *scratch = scratch_enter();

    in_child(child_has_a_size_limit);
    scratch_leave(scratch);
}
END_TEST

static void child_has_a_full_pipe(void)
{
    struct timespec begin, end;
    char            bytes[4096] = {0};
    int             ends[2];

    child_assert(pipe2(ends, O_NONBLOCK) == 0);
    while (write(ends[1], bytes, sizeof(bytes)) > 0) {
    }
    child_assert(dup2(ends[1], 2) == 2);
    cgs_log_setup(CGS_LOG_INFO, NULL);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    cgs_log(CGS_LOG_INFO, "lost");
    clock_gettime(CLOCK_MONOTONIC, &end);
    child_assert(end.tv_sec - begin.tv_sec < 10);
}

START_TEST(a_full_pipe_that_does_not_block_loses_the_line)
{
    in_child(child_has_a_full_pipe);
}
END_TEST

static bool logged_to_the_end;

static void *log_while_cancelled(void *arg)
{
    (void)arg;
    pthread_cancel(pthread_self());
    cgs_log(CGS_LOG_INFO, "line");
    cgs_log_complain("line");
    logged_to_the_end = true;
    pthread_testcancel();
    return NULL;
}

static void child_cancels_a_thread(void)
{
    pthread_t thread;
    void      *result;

    cgs_log_setup(CGS_LOG_INFO, "log");
    child_assert(pthread_create(&thread, NULL, log_while_cancelled,
                                NULL) == 0);
    child_assert(pthread_join(thread, &result) == 0);
    child_assert(logged_to_the_end);
    child_assert(result == PTHREAD_CANCELED);
}

START_TEST(a_line_is_no_cancellation_point)
{
    char      *scratch = scratch_enter();
    capture_t capture  = in_captured_child(child_cancels_a_thread);

    ck_assert_str_eq(capture.text, "cgshim: line\n");
    capture_release(&capture);
    scratch_leave(scratch);
}
END_TEST

static void *log_many(void *arg)
{
    int i;

    for (i = 0; i < NUM_LINES; ++i) {
        cgs_log(CGS_LOG_INFO, "thread %c line %03d end", *(char *)arg, i);
    }
    return NULL;
}

static void child_logs_in_threads(void)
{
    static char names[] = "abcdefgh";
    pthread_t   threads[NUM_THREADS];
    int         i;

    cgs_log_setup(CGS_LOG_INFO, "log");
    for (i = 0; i < NUM_THREADS; ++i) {
        child_assert(pthread_create(&threads[i], NULL, log_many,
                                    &names[i]) == 0);
    }
    for (i = 0; i < NUM_THREADS; ++i) {
        child_assert(pthread_join(threads[i], NULL) == 0);
    }
}

START_TEST(lines_of_eight_threads_are_whole_and_in_order)
{
    char *scratch = scratch_enter();
    int  next[NUM_THREADS] = {0};
    char *text, *line, *rest, name, newline;
    int  number;

    in_child(child_logs_in_threads);
    text = rest = file_text("log");
    ck_assert_uint_eq(count_lines(text), NUM_THREADS * NUM_LINES);
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        ck_assert_int_eq(sscanf(line, "cgshim[%*d] info: thread %c line %d en"
                                "%c", &name, &number, &newline), 3);
        ck_assert_int_eq(number, next[name - 'a']++);
    }
    free(text);
    scratch_leave(scratch);
}
END_TEST

/* ---- Lines that come without end ---- */

static void log_often(unsigned times)
{
    for (; times > 0; --times) {
        cgs_log_often(CGS_LOG_INFO, "diverged %u", times);
        cgs_log_often(CGS_LOG_DEBUG, "never %d", evaluated());
    }
}

static void child_logs_without_end(void)
{
    struct timespec nearly = {1, 200000000};

    cgs_log_setup(CGS_LOG_INFO, NULL);
    log_often(100000);
    cgs_log(CGS_LOG_INFO, "another line");
    nanosleep(&nearly, NULL);
    log_often(1);
    cgs_log_settle();
    cgs_log_settle();
    child_assert(num_evaluated == 0);
}

/* Lines of `text` that hold a word, and the sum of the numbers in those that
 * tell of lines left out */
static unsigned count_holding(const char *text, const char *word,
                              unsigned *left_out)
{
    char     *copy = strdup(text), *rest = copy, *line;
    unsigned count = 0, number;

    while ((line = strsep(&rest, "\n")) != NULL) {
        count += strstr(line, word) != NULL;
        if (sscanf(line, "cgshim[%*d] info: %u more lines", &number) == 1) {
            *left_out += number;
        }
    }
    free(copy);
    return count;
}

START_TEST(lines_without_end_are_some_a_second_and_the_rest_is_counted)
{
    capture_t capture  = in_captured_child(child_logs_without_end);
    unsigned  left_out = 0, written, told;

    written = count_holding(capture.text, "info: diverged ", &left_out);
    told    = count_holding(capture.text, " more lines \"diverged %u...\" are "
                            "left out", &(unsigned){0});
    /* However slow the machine is: once more for each second */
    ck_assert_uint_ge(written, CGS_LOG_MAX_OFTEN + 1);
    ck_assert_uint_le(written, 60 * CGS_LOG_MAX_OFTEN);
    ck_assert_uint_eq(written + left_out, 100001);
    ck_assert_uint_ge(told, 1);
    ck_assert_ptr_nonnull(strstr(capture.text, "info: another line\n"));
    capture_release(&capture);
}
END_TEST

static void child_forks_after_many_lines(void)
{
    int status;

    cgs_log_setup(CGS_LOG_INFO, "log.%p");
    log_often(1000);
    if (fork() == 0) {
        cgs_log_setup(CGS_LOG_INFO, "child");
        log_often(2);
        cgs_log_settle();
        _exit(0);
    }
    child_assert(wait(&status) > 0 && status == 0);
}

START_TEST(a_child_tells_of_its_own_lines_alone)
{
    char     *scratch = scratch_enter();
    unsigned left_out = 0;
    char     *text;

    in_child(child_forks_after_many_lines);
    text = file_text("child");
    ck_assert_uint_eq(count_holding(text, "diverged", &left_out), 2);
    ck_assert_uint_eq(left_out, 0);
    free(text);
    scratch_leave(scratch);
}
END_TEST

static void *log_often_in_thread(void *arg)
{
    (void)arg;
    log_often(10000);
    return NULL;
}

static void child_logs_without_end_in_threads(void)
{
    pthread_t threads[NUM_THREADS];
    int       i;

    cgs_log_setup(CGS_LOG_INFO, NULL);
    for (i = 0; i < NUM_THREADS; ++i) {
        child_assert(pthread_create(&threads[i], NULL, log_often_in_thread,
                                    NULL) == 0);
    }
    for (i = 0; i < NUM_THREADS; ++i) {
        child_assert(pthread_join(threads[i], NULL) == 0);
    }
    cgs_log_settle();
}

START_TEST(none_of_many_threads_lines_is_lost_uncounted)
{
    capture_t capture =
        in_captured_child(child_logs_without_end_in_threads);
    unsigned  left_out = 0, written;

    written = count_holding(capture.text, "info: diverged ", &left_out);
    ck_assert_uint_eq(written + left_out, NUM_THREADS * 10000);
    capture_release(&capture);
}
END_TEST

static void log_at_exit(void)
{
    cgs_log(CGS_LOG_INFO, "at exit");
}

static void child_logs_at_exit(void)
{
    atexit(log_at_exit);
    cgs_log_setup(CGS_LOG_INFO, NULL);
}

START_TEST(a_line_can_be_written_during_exit)
{
    capture_t capture = in_captured_child(child_logs_at_exit);

    expect_line(capture.text, "info: at exit\n");
    capture_release(&capture);
}
END_TEST

int main(void)
{
    Suite   *suite  = suite_create("log");
    TCase   *tests  = tcase_create("log");
    SRunner *runner = srunner_create(suite);
    int     failed;

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, nothing_is_logged_before_setup);
    tcase_add_test(tests, a_level_holds_those_before_it_and_no_other);
    tcase_add_test(tests, control_characters_are_escaped);
    tcase_add_test(tests, a_complaint_is_printed_whatever_the_level);
    tcase_add_test(tests, a_line_is_one_write_and_has_an_end);
    tcase_add_test(tests,
                   the_file_is_appended_to_and_each_process_has_its_own);
    tcase_add_test(tests,
        lines_without_end_are_some_a_second_and_the_rest_is_counted);
    tcase_add_test(tests, a_child_tells_of_its_own_lines_alone);
    tcase_add_test(tests, none_of_many_threads_lines_is_lost_uncounted);
    tcase_add_test(tests, a_symbolic_link_is_refused_once_and_stderr_used);
    tcase_add_test(tests,
                   a_descriptor_the_program_has_reused_is_not_written_to);
    tcase_add_test(tests, the_file_never_becomes_stdin_stdout_or_stderr);
    tcase_add_test(tests, a_fifo_without_a_reader_does_not_stop_the_program);
    tcase_add_test(tests, without_stderr_lines_are_lost_and_errno_is_kept);
    tcase_add_test(tests, a_reader_that_went_away_raises_no_signal);
    tcase_add_test(tests, a_size_limit_raises_no_signal);
    tcase_add_test(tests, a_full_pipe_that_does_not_block_loses_the_line);
    tcase_add_test(tests, a_line_is_no_cancellation_point);
    tcase_add_test(tests, lines_of_eight_threads_are_whole_and_in_order);
    tcase_add_test(tests, a_line_can_be_written_during_exit);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
