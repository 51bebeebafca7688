/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of ours in a process that is the program's.
 */
#define _GNU_SOURCE 1
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
