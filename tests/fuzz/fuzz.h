/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz targets share: reading their input, what is written to stderr,
 * and plain slow ways to tell whether text is what it should be.
 *
 * A target is one LLVMFuzzerTestOneInput(). libFuzzer calls it with what it
 * makes up (`make fuzz`), replay.c with the files of the corpus (`make check`).
 */
#ifndef CGS_FUZZ_H
#define CGS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Ends the process with a message where a promise does not hold. */
#define FUZZ_CHECK(_holds, ...) \
    do { \
        if (!(_holds)) { \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #_holds); \
            fprintf(stderr, __VA_ARGS__); \
            fprintf(stderr, "\n"); \
            abort(); \
        } \
    } while (0)

/** What is left of an input; zeros and empty strings where nothing is. */
typedef struct {
    const uint8_t *at, *end;
} fuzz_input_t;

/** The next byte. */
unsigned fuzz_byte(fuzz_input_t *input);

/** A number that the next byte stands for: small, or one where something
 *  may go wrong. */
uint64_t fuzz_number(fuzz_input_t *input);

/** The bytes up to the next NUL, which is taken too. To be freed. */
char *fuzz_string(fuzz_input_t *input);

/** The same, or NULL where the string is "-". */
char *fuzz_string_or_null(fuzz_input_t *input);

/** Nothing is written to stderr from here on; it is kept instead. */
void fuzz_collect(void);

/** What was kept, ended by NUL, until fuzz_collect() is called again. */
const char *fuzz_collected(size_t *length);

/** Length of the character at the start of a string, decoded by its meaning;
 *  0 where there is none. */
size_t fuzz_decode(const char *string, uint32_t *code);

/** Whether text is whole lines that a terminal shows and does not obey. */
bool fuzz_are_lines(const char *text, size_t length);

/** Whether it is one such line, without its end. */
bool fuzz_is_line(const char *text);

/** Copy of a string with U+FFFD for each byte that is no UTF-8. To be
 *  freed. */
char *fuzz_replaced(const char *string);

/** Called for each string in JSON that is the value of a key. */
typedef void fuzz_json_fn_t(const char *key, const char *value, void *arg);

/** Whether text is one value in JSON, to the letter of RFC 8259. */
bool fuzz_is_json(const char *text, size_t length, fuzz_json_fn_t *tell,
                  void *arg);

#endif
