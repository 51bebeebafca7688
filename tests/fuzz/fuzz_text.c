/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for people and files: one byte for a size, then the text.
 *
 * What is escaped is one line that a terminal shows and does not obey, what is
 * JSON means the text, names are expanded by the letter, and wide text becomes
 * UTF-8.
 */
#define _GNU_SOURCE 1
#include "log.h"
#include "nvtx_names.h"
#include "text.h"

#include "fuzz.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

/* All of a string, escaped. To be freed. */
static char *escaped_whole(const char *string)
{
    /* No byte becomes more than four. */
    size_t size = 4 * strlen(string) + 4;
    char   *out = malloc(size);
    size_t length;

    FUZZ_CHECK(out != NULL, "no memory");
    length = cgs_text_escape(out, size, string);
    FUZZ_CHECK(length == strlen(out), "%s", out);
    FUZZ_CHECK(fuzz_is_line(out), "%s", out);
    return out;
}

static void check_escape(const char *string, size_t size)
{
    char   *whole = escaped_whole(string);
    char   *again = escaped_whole(whole);
    char   *out   = malloc(size);
    size_t length;

    FUZZ_CHECK(out != NULL, "no memory");
    FUZZ_CHECK(strcmp(whole, again) == 0, "%s, then %s", whole, again);
    length = cgs_text_escape(out, size, string);
    FUZZ_CHECK((length < size) && (length == strlen(out)), "%zu of %zu",
               length, size);
    FUZZ_CHECK(fuzz_is_line(out), "%s", out);
    if (strlen(whole) < size) {
        FUZZ_CHECK(strcmp(whole, out) == 0, "%s is %s", whole, out);
    } else {
        FUZZ_CHECK((length >= 3) && (strcmp(out + length - 3, "...") == 0),
                   "%s", out);
        FUZZ_CHECK(strncmp(whole, out, length - 3) == 0, "%s is %s", whole,
                   out);
    }
    free(whole);
    free(again);
    free(out);
}

static void check_value(const char *key, const char *value, void *arg)
{
    (void)key;
    FUZZ_CHECK(strcmp(value, arg) == 0, "%s is %s", (char *)arg, value);
}

static void check_json(const char *string)
{
    cgs_text_t text     = {0};
    char       *expected = fuzz_replaced(string);

    cgs_text_add_json(&text, string);
    FUZZ_CHECK(fuzz_is_json(text.data, text.length, check_value, expected),
               "%.*s", (int)text.length, text.data);
    cgs_text_release(&text);
    free(expected);
}

static void check_file_name(const char *name, size_t size)
{
    char       *out     = malloc(size);
    cgs_text_t expected = {0};
    char       host[HOST_NAME_MAX + 1];
    const char *c;
    int        status;

    FUZZ_CHECK(out != NULL, "no memory");
    FUZZ_CHECK(gethostname(host, sizeof(host)) == 0, "no host");
    for (c = name; *c != '\0'; ++c) {
        if ((c[0] == '%') && (c[1] == 'p')) {
            cgs_text_print(&expected, "%d", (int)getpid());
            ++c;
        } else if ((c[0] == '%') && (c[1] == 'h')) {
            cgs_text_print(&expected, "%s", host);
            ++c;
        } else {
            cgs_text_add(&expected, c, 1);
            c += (c[0] == '%') && (c[1] == '%');
        }
    }
    status = cgs_text_file_name(name, size, out);
    if ((expected.length < size) && (expected.length < PATH_MAX)) {
        FUZZ_CHECK((status == 0) && (strlen(out) == expected.length) &&
                   ((expected.length == 0) ||
                    (memcmp(out, expected.data, expected.length) == 0)),
                   "%s becomes %s", name, out);
    } else {
        FUZZ_CHECK(status == -ENAMETOOLONG, "%d", status);
    }
    cgs_text_release(&expected);
    free(out);
}

static void check_log(const char *string)
{
    const char *line;
    size_t     length;

    fuzz_collect();
    cgs_log_complain("%s", string);
    line = fuzz_collected(&length);
    FUZZ_CHECK(fuzz_are_lines(line, length) &&
               (strchr(line, '\n') == line + length - 1) &&
               (strncmp(line, "cgshim: ", 8) == 0), "%s", line);
}

/* Up to three bytes are one wide character. */
static void check_wide(const uint8_t *data, size_t size)
{
    size_t          num  = size / 3, i, of_one;
    wchar_t         *wide = malloc((num + 1) * sizeof(*wide));
    cgs_nvtx_utf8_t utf8;
    const char      *out;
    uint32_t        code, expected;

    FUZZ_CHECK(wide != NULL, "no memory");
    for (i = 0; i < num; ++i) {
        wide[i] = (wchar_t)((uint32_t)data[3 * i] << 16 |
                            (uint32_t)data[3 * i + 1] << 8 | data[3 * i + 2]);
        wide[i] = data[3 * i] == 0xff ? -wide[i] : wide[i];
    }
    wide[num] = L'\0';
    out       = cgs_nvtx_utf8(&utf8, wide);
    for (i = 0; wide[i] != L'\0'; ++i, out += of_one) {
        expected = (uint32_t)wide[i];
        if ((expected > 0x10ffff) ||
            ((expected >= 0xd800) && (expected <= 0xdfff))) {
            expected = 0xfffd;
        }
        of_one = fuzz_decode(out, &code);
        FUZZ_CHECK((of_one > 0) && (code == expected), "%x is %x", expected,
                   code);
    }
    FUZZ_CHECK(*out == '\0', "%s", out);
    cgs_nvtx_utf8_release(&utf8);
    free(wide);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input_t input  = {data, data + size};
    size_t       room   = 4 + fuzz_byte(&input);
    char         *string;

    check_wide(input.at, (size_t)(input.end - input.at));
    while (input.at < input.end) {
        string = fuzz_string(&input);
        check_escape(string, room);
        check_json(string);
        check_file_name(string, room);
        check_log(string);
        free(string);
    }
    return 0;
}
