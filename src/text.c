/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for people and files: escaping, names with %p and %h, growing text.
 */
#define _GNU_SOURCE 1
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CGS_TEXT_MIN_CAPACITY 512

int cgs_text_reserve(cgs_text_t *text, size_t length)
{
    size_t capacity = text->capacity ? text->capacity : CGS_TEXT_MIN_CAPACITY;
    char   *data;

    while (capacity - text->length < length) {
        if (capacity > SIZE_MAX / 2) {
            goto err;
        }
        capacity *= 2;
    }
    if (capacity == text->capacity) {
        return 0;
    }
    data = realloc(text->data, capacity);
    if (data == NULL) {
        goto err;
    }
    text->data     = data;
    text->capacity = capacity;
    return 0;

err:
    text->failed = true;
    return -ENOMEM;
}

void cgs_text_add(cgs_text_t *text, const char *data, size_t length)
{
    if (length > 0 && cgs_text_reserve(text, length) == 0) {
        memcpy(text->data + text->length, data, length);
        text->length += length;
    }
}

void cgs_text_print(cgs_text_t *text, const char *fmt, ...)
{
    va_list ap;
    int     length;

    va_start(ap, fmt);
    length = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (length < 0) {
        text->failed = true;
        return;
    }
    /* One byte more, for the NUL that vsnprintf insists on */
    if (cgs_text_reserve(text, (size_t)length + 1) != 0) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(text->data + text->length, (size_t)length + 1, fmt, ap);
    va_end(ap);
    text->length += (size_t)length;
}

void cgs_text_release(cgs_text_t *text)
{
    free(text->data);
    memset(text, 0, sizeof(*text));
}

size_t cgs_text_utf8_length(const char *string)
{
    const unsigned char *s = (const unsigned char *)string;
    unsigned            low = 0x80, high = 0xbf; /* of the second byte */
    size_t              length, i;

    if (s[0] < 0x80) {
        return 1;
    } else if (s[0] < 0xc2 || s[0] > 0xf4) {
        return 0;
    }
    length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    /* Overlong forms, surrogates and what lies above U+10FFFF */
    if (s[0] == 0xe0) {
        low = 0xa0;
    } else if (s[0] == 0xed) {
        high = 0x9f;
    } else if (s[0] == 0xf0) {
        low = 0x90;
    } else if (s[0] == 0xf4) {
        high = 0x8f;
    }
    if (s[1] < low || s[1] > high) {
        return 0;
    }
    for (i = 2; i < length; ++i) {
        if (s[i] < 0x80 || s[i] > 0xbf) {
            return 0;
        }
    }
    return length;
}

void cgs_text_add_json(cgs_text_t *text, const char *string)
{
    size_t length;

    cgs_text_add(text, "\"", 1);
    while (*string != '\0') {
        length = cgs_text_utf8_length(string);
        if (length == 0) {
            cgs_text_print(text, "\\ufffd");
            length = 1;
        } else if ((unsigned char)*string < 0x20 || *string == 0x7f) {
            cgs_text_print(text, "\\u%04x", (unsigned char)*string);
        } else if (*string == '"' || *string == '\\') {
            cgs_text_print(text, "\\%c", *string);
        } else {
            cgs_text_add(text, string, length);
        }
        string += length;
    }
    cgs_text_add(text, "\"", 1);
}

/* One character of in as a terminal may see it: its bytes go to piece, what
 * is returned is how many bytes of in they stand for */
static size_t cgs_text_escape_one(const char *in, char piece[16])
{
    static const char named[] = "\a\b\t\n\v\f\r";
    const unsigned char *s    = (const unsigned char *)in;
    size_t              length = cgs_text_utf8_length(in);
    const char          *found;

    if (length == 2 && s[0] == 0xc2 && s[1] < 0xa0) {
        /* C1: to some terminals U+009B is what ESC [ is */
        snprintf(piece, 16, "\\x%02x\\x%02x", s[0], s[1]);
        return 2;
    } else if (length > 1) {
        memcpy(piece, in, length);
        piece[length] = '\0';
        return length;
    }
    found = memchr(named, s[0], sizeof(named) - 1);
    if (found != NULL) {
        snprintf(piece, 16, "\\%c", "abtnvfr"[found - named]);
    } else if (length == 0 || s[0] < 0x20 || s[0] == 0x7f) {
        snprintf(piece, 16, "\\x%02x", s[0]);
    } else {
        snprintf(piece, 16, "%c", s[0]);
    }
    return 1;
}

size_t cgs_text_escape(char *out, size_t size, const char *in)
{
    static const char dots[] = "...";
    size_t            length = 0, cut = 0, piece_length;
    char              piece[16];

    if (in == NULL) {
        in = "?";
    }
    while (*in != '\0') {
        in          += cgs_text_escape_one(in, piece);
        piece_length = strlen(piece);
        if (length + piece_length >= size) {
            memcpy(out + cut, dots, sizeof(dots));
            return cut + sizeof(dots) - 1;
        }
        memcpy(out + length, piece, piece_length);
        length += piece_length;
        if (length + sizeof(dots) <= size) {
            cut = length;
        }
    }
    out[length] = '\0';
    return length;
}

/* What stands for %c in the name of a file; NULL if nothing does */
static const char *cgs_text_expansion(char c, char *buffer, size_t size)
{
    char *slash;

    switch (c) {
    case 'p':
        snprintf(buffer, size, "%d", (int)getpid());
        return buffer;
    case 'h':
        if (gethostname(buffer, size) != 0) {
            return "localhost";
        }
        buffer[size - 1] = '\0';
        /* A host may be called anything, but the directory is the user's */
        while ((slash = strchr(buffer, '/')) != NULL) {
            *slash = '_';
        }
        return buffer;
    case '%':
        return "%";
    default:
        return NULL;
    }
}

int cgs_text_file_name(const char *name, size_t size, char *out)
{
    char       expanded[PATH_MAX], buffer[HOST_NAME_MAX + 1];
    size_t     length = 0, piece_length;
    const char *piece;

    for (; *name != '\0'; ++name) {
        piece = NULL;
        if (*name == '%') {
            piece = cgs_text_expansion(name[1], buffer, sizeof(buffer));
        }
        if (piece != NULL) {
            piece_length = strlen(piece);
            ++name;
        } else {
            piece        = name;
            piece_length = 1;
        }
        if (length + piece_length >= sizeof(expanded)) {
            return -ENAMETOOLONG;
        }
        memcpy(expanded + length, piece, piece_length);
        length += piece_length;
    }
    if (length >= size) {
        return -ENAMETOOLONG;
    }
    memcpy(out, expanded, length);
    out[length] = '\0';
    return 0;
}

/* Of the C++ runtime, where the program has it. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *length,
                            int *status) __attribute__((weak));

char *cgs_text_demangle(const char *name)
{
    int status = -1;

    return (__cxa_demangle != NULL) && (name != NULL) &&
           (strncmp(name, "_Z", 2) == 0) ?
           __cxa_demangle(name, NULL, NULL, &status) : NULL;
}
