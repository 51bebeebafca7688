/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of ours in a process that is the program's: no link is followed, none
 * of its descriptors is taken, and nothing is written to one that it has
 * closed and opened for something else.
 */
#ifndef CGS_FILE_H
#define CGS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "text.h"

/** An open file. */
typedef struct {
    int    fd;
    mode_t mode; /**< as stat(2) says, for S_ISREG() */
    dev_t  dev;
    ino_t  ino;
} cgs_file_t;

/**
 * Open a file for writing; made with mode 0644 where it is not there. Never
 * waits for a FIFO's reader. Its descriptor is closed on exec. Any thread.
 *
 * @param flags More flags of open(2): O_APPEND, O_EXCL.
 * @param file  Set on success.
 *
 * @return 0, or -errno.
 */
int cgs_file_open(const char *name, int flags, cgs_file_t *file);

/** Whether the descriptor is still the file that was opened. Programs close
 *  all that they have not opened. Any thread. */
bool cgs_file_is_ours(const cgs_file_t *file);

/**
 * Write a whole file, under another name first, so that nobody reads half of
 * it; what is there already and no regular file is written to. Any thread.
 *
 * @param target Name of the file, with %p and %h.
 *
 * @return 0, or -errno.
 */
int cgs_file_write(const char *target, const void *data, size_t length);

/**
 * Write a text to stderr, or as cgs_file_write() does, and free it. The thread
 * is not cancelled meanwhile. Any thread. Keeps errno.
 *
 * @param target "stderr", or the name of a file.
 *
 * @return 0, or -errno.
 */
int cgs_file_deliver(cgs_text_t *text, const char *target);

#endif
