/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for people and files: escaping, names with %p and %h, growing text.
 */
#ifndef CGS_TEXT_H
#define CGS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/** Text that grows; all zero is the empty one. Owned by one thread. */
typedef struct {
    char   *data;    /**< not ended by NUL; NULL while nothing is in it */
    size_t length;   /**< bytes of text */
    size_t capacity; /**< bytes allocated */
    bool   failed;   /**< memory ran out: the text is not whole */
} cgs_text_t;

/** Have room for so many bytes more. @return 0, or -ENOMEM: the text is marked
 *  failed. */
int cgs_text_reserve(cgs_text_t *text, size_t length);

/** Append bytes. Where memory runs out the text is marked failed. */
void cgs_text_add(cgs_text_t *text, const char *data, size_t length);

/** Append as printf does. Where memory runs out the text is marked failed. */
void cgs_text_print(cgs_text_t *text, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** Append a string as JSON has it, quotes included; what is not UTF-8 becomes
 *  U+FFFD. Where memory runs out the text is marked failed. */
void cgs_text_add_json(cgs_text_t *text, const char *string);

/** Free the text; it is the empty one after that. */
void cgs_text_release(cgs_text_t *text);

/**
 * Length of the UTF-8 character at the start of a string that is not empty.
 * Any thread.
 *
 * @param string Ended by NUL.
 *
 * @return 1 to 4 bytes, or 0 if no well-formed character begins here.
 */
size_t cgs_text_utf8_length(const char *string);

/**
 * Copy a string so that a terminal shows it and does not obey it: control
 * characters and bytes that are not UTF-8 become \n, \t, \x1b and so on; a
 * copy that does not fit ends in "...". Any thread; allocates nothing.
 *
 * @param out  Set to the copy, ended by NUL.
 * @param size Bytes of out, at least 4.
 * @param in   String to copy; NULL is copied as "?".
 *
 * @return Length of the copy in bytes, less than size.
 */
size_t cgs_text_escape(char *out, size_t size, const char *in);

/**
 * Expand %p (process id of the caller), %h (name of the host) and %% in the
 * name of a file; other percent signs stay. Any thread; allocates nothing.
 *
 * @param name Name to expand.
 * @param size Bytes of out.
 * @param out  Set to the expanded name.
 *
 * @return 0, or -ENAMETOOLONG.
 */
int cgs_text_file_name(const char *name, size_t size, char *out);

/**
 * The name of a C++ function as people write it, where the program has the C++
 * runtime.
 *
 * @param name May be NULL.
 *
 * @return To be freed; NULL where it is no such name, or cannot be told.
 */
char *cgs_text_demangle(const char *name);

#endif
