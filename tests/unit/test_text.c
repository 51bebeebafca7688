/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Escaping, names of files and growing text.
 */
#define _GNU_SOURCE 1
#include "text.h"

#include "capture.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

START_TEST(only_well_formed_utf8_has_a_length)
{
    static const struct {
        const char *string;
        size_t     length;
    } cases[] = {
        {"a", 1}, {"\x7f", 1}, {"\xc3\xa9", 2}, {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x98\x80", 4}, {"\xf4\x8f\xbf\xbf", 4},
        {"\x80", 0}, {"\xc3", 0}, {"\xc3(", 0}, {"\xe2\x82", 0},
        {"\xf0\x9f\x98", 0}, {"\xc0\xaf", 0}, {"\xc1\xbf", 0},
        {"\xe0\x80\xaf", 0}, {"\xed\xa0\x80", 0}, {"\xf0\x80\x80\xaf", 0},
        {"\xf4\x90\x80\x80", 0}, {"\xf5\x80\x80\x80", 0}, {"\xff", 0},
    };
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        ck_assert_msg(cgs_text_utf8_length(cases[i].string) ==
                      cases[i].length, "case %zu", i);
    }
}
END_TEST

START_TEST(a_terminal_gets_nothing_it_would_obey)
{
    static const struct {
        const char *in;
        const char *out;
    } cases[] = {
        {"plain \"text\" \\ %s", "plain \"text\" \\ %s"},
        {"a\nb\rc\td", "a\\nb\\rc\\td"},
        {"\a\b\v\f", "\\a\\b\\v\\f"},
        {"\x1b[31m\x7f\x01", "\\x1b[31m\\x7f\\x01"},
        {"\xc3\xa9\xe2\x82\xac", "\xc3\xa9\xe2\x82\xac"},
        {"\xc2\x9b", "\\xc2\\x9b"},
        {"\xff\xc3(", "\\xff\\xc3("},
        {"", ""},
        {NULL, "?"},
    };
    char   out[64];
    size_t i, length;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        length = cgs_text_escape(out, sizeof(out), cases[i].in);
        ck_assert_str_eq(out, cases[i].out);
        ck_assert_uint_eq(length, strlen(out));
    }
}
END_TEST

START_TEST(what_does_not_fit_ends_in_dots_and_in_a_whole_character)
{
    static const char in[] = "ab\xe2\x82\xac\nz\x1b!";
    char              out[64], whole[64];
    size_t            size, length, kept;

    cgs_text_escape(whole, sizeof(whole), in);
    for (size = 4; size < 24; ++size) {
        memset(out, '#', sizeof(out));
        length = cgs_text_escape(out, size, in);
        ck_assert_uint_lt(length, size);
        ck_assert_uint_eq(strlen(out), length);
        ck_assert_int_eq(out[size], '#');
        if (size > strlen(whole)) {
            ck_assert_str_eq(out, whole);
            continue;
        }
        kept = length - 3;
        ck_assert_str_eq(out + kept, "...");
        ck_assert_int_eq(memcmp(out, whole, kept), 0);
        ck_assert_int_ne((unsigned char)whole[kept] & 0xc0, 0x80);
    }
}
END_TEST

START_TEST(pid_and_host_are_expanded_in_names)
{
    char host[HOST_NAME_MAX + 1], out[512], expected[512];

    ck_assert_int_eq(gethostname(host, sizeof(host)), 0);
    snprintf(expected, sizeof(expected), "/d/a%d.%s.%%.%%x.%d%%",
             (int)getpid(), host, (int)getpid());
    ck_assert_int_eq(cgs_text_file_name("/d/a%p.%h.%%.%x.%p%", sizeof(out),
                                        out), 0);
    ck_assert_str_eq(out, expected);
}
END_TEST

START_TEST(a_name_too_long_is_an_error_and_sets_nothing)
{
    char name[PATH_MAX + 10], out[8] = "before";

    ck_assert_int_eq(cgs_text_file_name("12345678", sizeof(out), out),
                     -ENAMETOOLONG);
    ck_assert_str_eq(out, "before");
    ck_assert_int_eq(cgs_text_file_name("1234567", sizeof(out), out), 0);
    ck_assert_str_eq(out, "1234567");
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_assert_int_eq(cgs_text_file_name(name, sizeof(out), out),
                     -ENAMETOOLONG);
    ck_assert_str_eq(out, "1234567");
}
END_TEST

START_TEST(text_grows_and_keeps_what_was_added)
{
    cgs_text_t text = {0};
    char       line[32];
    int        i;

    for (i = 0; i < 1000; ++i) {
        cgs_text_print(&text, "%07d", i);
        cgs_text_add(&text, "|", 1);
    }
    cgs_text_add(&text, NULL, 0);
    ck_assert(!text.failed);
    ck_assert_uint_eq(text.length, 8000);
    for (i = 0; i < 1000; ++i) {
        snprintf(line, sizeof(line), "%07d|", i);
        ck_assert_int_eq(memcmp(text.data + i * 8, line, 8), 0);
    }
    cgs_text_release(&text);
    ck_assert_ptr_null(text.data);
    ck_assert_uint_eq(text.length, 0);
}
END_TEST

START_TEST(text_without_memory_is_marked_failed)
{
    cgs_text_t text = {0};

    cgs_text_add(&text, "kept", 4);
    cgs_text_add(&text, "x", SIZE_MAX / 2);
    ck_assert(text.failed);
    ck_assert_uint_eq(text.length, 4);
    ck_assert_int_eq(memcmp(text.data, "kept", 4), 0);
    cgs_text_release(&text);
}
END_TEST

int main(void)
{
    Suite   *suite  = suite_create("text");
    TCase   *tests  = tcase_create("text");
    SRunner *runner = srunner_create(suite);
    int     failed;

    tcase_add_test(tests, only_well_formed_utf8_has_a_length);
    tcase_add_test(tests, a_terminal_gets_nothing_it_would_obey);
    tcase_add_test(tests,
                   what_does_not_fit_ends_in_dots_and_in_a_whole_character);
    tcase_add_test(tests, pid_and_host_are_expanded_in_names);
    tcase_add_test(tests, a_name_too_long_is_an_error_and_sets_nothing);
    tcase_add_test(tests, text_grows_and_keeps_what_was_added);
    tcase_add_test(tests, text_without_memory_is_marked_failed);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
