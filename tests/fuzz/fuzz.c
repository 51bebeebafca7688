/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz targets share.
 */
#include "fuzz.h"

#include <sys/types.h>
#include <unistd.h>

/* ---- Input ---- */

unsigned fuzz_byte(fuzz_input_t *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

uint64_t fuzz_number(fuzz_input_t *input)
{
    static const uint64_t odd[] = {
        999, 1000, 1023, 1024, 65535, 65536, 99999, 100000, 999949, 999999,
        1000000, 9999999, 10000000, 999999999, 1000000000, INT32_MAX,
        UINT32_MAX, (uint64_t)UINT32_MAX + 1, INT64_MAX,
        (uint64_t)INT64_MAX + 1, UINT64_MAX - 1, UINT64_MAX,
    };
    unsigned byte = fuzz_byte(input);

    return byte < 128 ? byte : odd[byte % (sizeof(odd) / sizeof(odd[0]))];
}

char *fuzz_string(fuzz_input_t *input)
{
    size_t        left   = (size_t)(input->end - input->at);
    const uint8_t *end   = left > 0 ? memchr(input->at, 0, left) : NULL;
    size_t        length = end != NULL ? (size_t)(end - input->at) : left;
    char          *string = malloc(length + 1);

    FUZZ_CHECK(string != NULL, "no memory");
    if (length > 0) {
        memcpy(string, input->at, length);
    }
    string[length] = '\0';
    input->at     += length + (end != NULL);
    return string;
}

char *fuzz_string_or_null(fuzz_input_t *input)
{
    char *string = fuzz_string(input);

    if (strcmp(string, "-") == 0) {
        free(string);
        return NULL;
    }
    return string;
}

/* ---- What is written to stderr ---- */

ssize_t __real_write(int fd, const void *data, size_t length);
ssize_t __wrap_write(int fd, const void *data, size_t length);

static struct {
    bool   on;
    char   *text;
    size_t length, capacity;
} kept;

/* The linker's --wrap gives it the calls of what is tested. */
ssize_t __wrap_write(int fd, const void *data, size_t length)
{
    if (!kept.on || (fd != STDERR_FILENO)) {
        return __real_write(fd, data, length);
    }
    if (kept.length + length + 1 > kept.capacity) {
        kept.capacity = 2 * (kept.length + length + 1);
        kept.text     = realloc(kept.text, kept.capacity);
        FUZZ_CHECK(kept.text != NULL, "no memory");
    }
    memcpy(kept.text + kept.length, data, length);
    kept.length           += length;
    kept.text[kept.length] = '\0';
    return (ssize_t)length;
}

void fuzz_collect(void)
{
    kept.on     = true;
    kept.length = 0;
}

const char *fuzz_collected(size_t *length)
{
    kept.on = false;
    *length = kept.length;
    return kept.length > 0 ? kept.text : "";
}

/* ---- Text ---- */

size_t fuzz_decode(const char *string, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char         first   = (unsigned char)string[0];
    size_t                length  = 0, i;

    while ((length < 8) && (first & (0x80u >> length))) {
        ++length;
    }
    if (length == 0) {
        *code = first;
        return 1;
    } else if ((length == 1) || (length > 4)) {
        return 0;
    }
    *code = first & (0x7fu >> length);
    for (i = 1; i < length; ++i) {
        if (((unsigned char)string[i] & 0xc0) != 0x80) {
            return 0;
        }
        *code = *code << 6 | ((unsigned char)string[i] & 0x3f);
    }
    return (*code >= least[length]) && (*code <= 0x10ffff) &&
           ((*code < 0xd800) || (*code > 0xdfff)) ? length : 0;
}

bool fuzz_is_line(const char *text)
{
    size_t   length;
    uint32_t code;

    for (; *text != '\0'; text += length) {
        length = fuzz_decode(text, &code);
        if ((length == 0) || (code < 0x20) ||
            ((code >= 0x7f) && (code < 0xa0))) {
            return false;
        }
    }
    return true;
}

bool fuzz_are_lines(const char *text, size_t length)
{
    char   *copy = malloc(length + 1);
    char   *line, *end;
    bool   are;

    FUZZ_CHECK(copy != NULL, "no memory");
    memcpy(copy, text, length);
    copy[length] = '\0';
    are = (strlen(copy) == length) &&
          ((length == 0) || (copy[length - 1] == '\n'));
    for (line = copy; are && (*line != '\0'); line = end + 1) {
        end  = strchr(line, '\n');
        *end = '\0';
        are  = fuzz_is_line(line);
    }
    free(copy);
    return are;
}

char *fuzz_replaced(const char *string)
{
    char     *out   = malloc(3 * strlen(string) + 1);
    size_t   length = 0, of_one;
    uint32_t code;

    FUZZ_CHECK(out != NULL, "no memory");
    while (*string != '\0') {
        of_one = fuzz_decode(string, &code);
        if (of_one > 0) {
            memcpy(out + length, string, of_one);
            length += of_one;
        } else {
            memcpy(out + length, "\xef\xbf\xbd", 3);
            length += 3;
        }
        string += of_one > 0 ? of_one : 1;
    }
    out[length] = '\0';
    return out;
}

/* ---- JSON ---- */

typedef struct {
    const char     *at, *end;
    fuzz_json_fn_t *tell;
    void           *arg;
} json_t;

static bool read_value(json_t *json, const char *key);

static void skip_blanks(json_t *json)
{
    while ((json->at < json->end) &&
           (strchr(" \t\r\n", *json->at) != NULL) && (*json->at != '\0')) {
        ++json->at;
    }
}

static bool take(json_t *json, char c)
{
    if ((json->at < json->end) && (*json->at == c)) {
        ++json->at;
        return true;
    }
    return false;
}

/* \uXXXX; the writers make none of two halves. */
static bool read_unicode(json_t *json, char **out)
{
    char     digits[5] = "";
    uint32_t code;
    char     *end;

    if (json->end - json->at < 4) {
        return false;
    }
    memcpy(digits, json->at, 4);
    code = (uint32_t)strtoul(digits, &end, 16);
    if ((*end != '\0') || (digits[0] == '-') || (digits[0] == '+') ||
        (digits[0] == ' ') || ((code >= 0xd800) && (code <= 0xdfff))) {
        return false;
    }
    json->at += 4;
    if (code < 0x80) {
        *(*out)++ = (char)code;
    } else if (code < 0x800) {
        *(*out)++ = (char)(0xc0 | code >> 6);
        *(*out)++ = (char)(0x80 | (code & 0x3f));
    } else {
        *(*out)++ = (char)(0xe0 | code >> 12);
        *(*out)++ = (char)(0x80 | (code >> 6 & 0x3f));
        *(*out)++ = (char)(0x80 | (code & 0x3f));
    }
    return true;
}

static bool read_escape(json_t *json, char **out)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char        *found;
    char              c;

    if (json->at == json->end) {
        return false;
    }
    c = *json->at++;
    if (c == 'u') {
        return read_unicode(json, out);
    }
    found = memchr(names, c, sizeof(names) - 1);
    if (found == NULL) {
        return false;
    }
    *(*out)++ = means[found - names];
    return true;
}

/* To be freed; NULL where there is none. No string becomes longer. */
static char *read_string(json_t *json)
{
    char     *string = malloc((size_t)(json->end - json->at) + 1);
    char     *out    = string;
    uint32_t code;
    size_t   length;

    FUZZ_CHECK(string != NULL, "no memory");
    if (!take(json, '"')) {
        goto err;
    }
    while (!take(json, '"')) {
        if (json->at >= json->end) {
            goto err;
        }
        if (take(json, '\\')) {
            if (!read_escape(json, &out)) {
                goto err;
            }
            continue;
        }
        length = fuzz_decode(json->at, &code);
        if ((length == 0) || (code < 0x20)) {
            goto err;
        }
        memcpy(out, json->at, length);
        out      += length;
        json->at += length;
    }
    *out = '\0';
    return string;

err:
    free(string);
    return NULL;
}

static bool take_digits(json_t *json)
{
    const char *begin = json->at;

    while ((json->at < json->end) && (*json->at >= '0') &&
           (*json->at <= '9')) {
        ++json->at;
    }
    return json->at > begin;
}

static bool read_number(json_t *json)
{
    take(json, '-');
    if (!take(json, '0') && !take_digits(json)) {
        return false;
    }
    if (take(json, '.') && !take_digits(json)) {
        return false;
    }
    return (json->at == json->end) || (strchr("eE", *json->at) == NULL);
}

static bool read_word(json_t *json, const char *word)
{
    size_t length = strlen(word);

    if (((size_t)(json->end - json->at) < length) ||
        (strncmp(json->at, word, length) != 0)) {
        return false;
    }
    json->at += length;
    return true;
}

static bool read_member(json_t *json)
{
    char *key = read_string(json);
    bool good;

    skip_blanks(json);
    good = (key != NULL) && take(json, ':') && read_value(json, key);
    free(key);
    return good;
}

/* After the bracket, which `close` ends. */
static bool read_all(json_t *json, char close)
{
    skip_blanks(json);
    if (take(json, close)) {
        return true;
    }
    do {
        skip_blanks(json);
        if (!(close == '}' ? read_member(json) : read_value(json, NULL))) {
            return false;
        }
        skip_blanks(json);
    } while (take(json, ','));
    return take(json, close);
}

static bool read_value(json_t *json, const char *key)
{
    char *string;

    skip_blanks(json);
    if (take(json, '{')) {
        return read_all(json, '}');
    } else if (take(json, '[')) {
        return read_all(json, ']');
    } else if ((json->at < json->end) && (*json->at == '"')) {
        string = read_string(json);
        if ((string != NULL) && (json->tell != NULL)) {
            json->tell(key, string, json->arg);
        }
        free(string);
        return string != NULL;
    }
    return read_word(json, "null") || read_word(json, "true") ||
           read_word(json, "false") || read_number(json);
}

bool fuzz_is_json(const char *text, size_t length, fuzz_json_fn_t *tell,
                  void *arg)
{
    /* Ended by NUL, for fuzz_decode(). */
    char   *copy = malloc(length + 1);
    json_t json  = {copy, copy + length, tell, arg};
    bool   good;

    FUZZ_CHECK(copy != NULL, "no memory");
    memcpy(copy, text, length);
    copy[length] = '\0';
    good         = read_value(&json, NULL);
    skip_blanks(&json);
    good = good && (json.at == json.end);
    free(copy);
    return good;
}
