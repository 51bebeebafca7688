/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of ours in a process that is the program's.
 */
#define _GNU_SOURCE 1
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "text.h"

/* Descriptors of ours begin here */
#define CGS_FILE_MIN_FD 100

/* The first descriptors belong to the program: a file opened while its 0, 1
 * or 2 is closed must not become them */
static int move_fd(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, CGS_FILE_MIN_FD);
    int status;

    if (moved < 0) {
        moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    }
    status = moved < 0 ? -errno : moved;
    close(fd);
    return status;
}

int cgs_file_open(const char *name, int flags, cgs_file_t *file)
{
    struct stat st;
    int         fd, status;

    /* O_NONBLOCK: a FIFO nobody reads must not stop the program */
    fd = open(name, flags | O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
              O_NOCTTY | O_NONBLOCK, 0644);
    if (fd < 0) {
        return -errno;
    }
    fd = move_fd(fd);
    if (fd < 0) {
        return fd;
    }
    if (fstat(fd, &st) != 0) {
        status = -errno;
        close(fd);
        return status;
    }
    file->fd   = fd;
    file->mode = st.st_mode;
    file->dev  = st.st_dev;
    file->ino  = st.st_ino;
    return 0;
}

bool cgs_file_is_ours(const cgs_file_t *file)
{
    struct stat st;

    return fstat(file->fd, &st) == 0 && st.st_dev == file->dev &&
           st.st_ino == file->ino;
}

/* ---- Whole files ---- */

/* A descriptor that is not 0, 1 or 2: the program may have closed those, and
 * what it prints in its last moments would land in it */
static int open_whole(const char *name, int flags)
{
    int fd = open(name, flags | O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY |
                  O_NONBLOCK, 0644);
    int moved, status;

    if (fd < 0) {
        return -errno;
    } else if (fd > STDERR_FILENO) {
        return fd;
    }
    moved  = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    status = moved < 0 ? -errno : moved;
    close(fd);
    return status;
}

static int write_whole(int fd, const void *data, size_t length)
{
    int status = cgs_log_write(fd, data, length);

    /* A file system may keep its refusal until now */
    if (close(fd) != 0 && status == 0) {
        status = -errno;
    }
    return status;
}

/* Under another name first, so that nobody reads half of it */
static int write_plain(const char *name, const void *data, size_t length)
{
    char temporary[PATH_MAX + 32];
    int  fd, status, attempt = 0;

    do {
        snprintf(temporary, sizeof(temporary), "%s.%d.%d.tmp", name,
                 (int)getpid(), attempt);
        fd = open_whole(temporary, O_CREAT | O_EXCL);
    } while (fd == -EEXIST && ++attempt < 100);
    if (fd < 0) {
        return fd;
    }
    status = write_whole(fd, data, length);
    if (status == 0 && rename(temporary, name) != 0) {
        status = -errno;
    }
    if (status != 0) {
        unlink(temporary);
    }
    return status;
}

int cgs_file_write(const char *target, const void *data, size_t length)
{
    char        name[PATH_MAX];
    struct stat st;
    int         fd, status;

    status = cgs_text_file_name(target, sizeof(name), name);
    if (status != 0) {
        return status;
    }
    if (lstat(name, &st) != 0 || S_ISREG(st.st_mode)) {
        return write_plain(name, data, length);
    }
    fd = open_whole(name, 0);
    return fd < 0 ? fd : write_whole(fd, data, length);
}

int cgs_file_deliver(cgs_text_t *text, const char *target)
{
    int saved_errno = errno;
    int cancel_state, status;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    if (text->failed) {
        status = -ENOMEM;
    } else if (strcmp(target, "stderr") == 0) {
        status = cgs_log_write(STDERR_FILENO, text->data, text->length);
    } else {
        status = cgs_file_write(target, text->data, text->length);
    }
    cgs_text_release(text);
    pthread_setcancelstate(cancel_state, NULL);
    errno = saved_errno;
    return status;
}
