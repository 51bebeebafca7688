/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a unit test needs to look at stderr: it becomes a file for a while.
 * stdout becomes one too, as nothing of the library may ever go there.
 */
#ifndef CGS_TEST_CAPTURE_H
#define CGS_TEST_CAPTURE_H

#include <check.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    FILE *files[2]; /* of stdout, stderr */
    int  saved[2];
    char *text;     /* of stderr, after capture_end() */
} capture_t;

static inline void capture_begin(capture_t *capture)
{
    int i;

    fflush(NULL);
    capture->text = NULL;
    for (i = 0; i < 2; ++i) {
        capture->files[i] = tmpfile();
        ck_assert_ptr_nonnull(capture->files[i]);
        capture->saved[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 200);
        ck_assert_int_ge(capture->saved[i], 0);
        ck_assert_int_eq(dup2(fileno(capture->files[i]), i + 1), i + 1);
    }
}

static inline void capture_end(capture_t *capture)
{
    struct stat st[2];
    int         i;

    fflush(stdout);
    for (i = 0; i < 2; ++i) {
        dup2(capture->saved[i], i + 1);
        close(capture->saved[i]);
        ck_assert_int_eq(fstat(fileno(capture->files[i]), &st[i]), 0);
    }
    ck_assert_msg(st[0].st_size == 0, "something went to stdout");
    capture->text = calloc(1, (size_t)st[1].st_size + 1);
    ck_assert_ptr_nonnull(capture->text);
    ck_assert_int_eq(pread(fileno(capture->files[1]), capture->text,
                           (size_t)st[1].st_size, 0), st[1].st_size);
    fclose(capture->files[0]);
    fclose(capture->files[1]);
}

static inline void capture_release(capture_t *capture)
{
    free(capture->text);
}

/* Ends the capture, and stderr must have got just this */
static inline void capture_expect(capture_t *capture, const char *text)
{
    capture_end(capture);
    ck_assert_str_eq(capture->text, text);
    capture_release(capture);
}

/* A new directory, also the current one; to be left by scratch_leave() */
static inline char *scratch_enter(void)
{
    const char *base = getenv("TMPDIR");
    char       *name;

    ck_assert_int_ge(asprintf(&name, "%s/cgshim-test-XXXXXX",
                              base != NULL ? base : "/tmp"), 0);
    ck_assert_ptr_nonnull(mkdtemp(name));
    ck_assert_int_eq(chdir(name), 0);
    return name;
}

static inline void scratch_leave(char *name)
{
    char *command;

    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_ge(asprintf(&command, "rm -rf '%s'", name), 0);
    ck_assert_int_eq(system(command), 0);
    free(command);
    free(name);
}

/* The text of a file, to be freed */
static inline char *file_text(const char *name)
{
    struct stat st;
    char        *text;
    int         fd = open(name, O_RDONLY);

    ck_assert_msg(fd >= 0, "%s cannot be opened", name);
    ck_assert_int_eq(fstat(fd, &st), 0);
    text = calloc(1, (size_t)st.st_size + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(read(fd, text, (size_t)st.st_size), st.st_size);
    close(fd);
    return text;
}

/* Whether a file has this text somewhere */
static inline bool file_has(const char *name, const char *text)
{
    char *whole = file_text(name);
    bool found  = strstr(whole, text) != NULL;

    free(whole);
    return found;
}

static inline void file_write(const char *name, const void *data,
                              size_t length)
{
    FILE *file = fopen(name, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
}

#endif
