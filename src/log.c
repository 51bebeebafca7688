/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line, one write(2), to stderr or to CGSHIM_LOG_FILE.
 *
 * A line may be written by any thread, in a forked child, during exit. So
 * there is no lock, and no descriptor is ever closed here: a thread may be
 * writing to it.
 */
#define _GNU_SOURCE 1
#include "log.h"

#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A line is cut there; what a pipe takes in one piece is not less */
#define CGS_LOG_MAX_LINE 1024
/* Descriptors of ours begin here, away from those that programs count on */
#define CGS_LOG_MIN_FD 100
/* How long a full pipe that does not block is waited for */
#define CGS_LOG_WAIT_MS 100

/* The file as one process has opened it; constant once published */
typedef struct cgs_log_open {
    pid_t               pid;
    int                 fd; /* -1: cannot be opened, stderr is used */
    dev_t               dev;
    ino_t               ino;
    struct cgs_log_open *older; /* keeps it reachable, nothing more */
} cgs_log_open_t;

cgs_log_level_t cgs_log_threshold = CGS_LOG_OFF;

/* Written by cgs_log_setup() before the threshold lets anyone read it */
static char *cgs_log_file;

/* Replaced by compare and exchange, no lock */
static cgs_log_open_t *cgs_log_opened;

static const char *const cgs_log_level_names[] = {
    [CGS_LOG_OFF]   = "off",
    [CGS_LOG_ERROR] = "error",
    [CGS_LOG_WARN]  = "warn",
    [CGS_LOG_INFO]  = "info",
    [CGS_LOG_DEBUG] = "debug",
};

static int cgs_log_write_all(int fd, const char *data, size_t length)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    ssize_t       written;

    while (length > 0) {
        written = write(fd, data, length);
        if (written >= 0) {
            data   += written;
            length -= (size_t)written;
        } else if (errno == EAGAIN) {
            if (poll(&room, 1, CGS_LOG_WAIT_MS) <= 0) {
                return -EAGAIN;
            }
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

/* Take back the signal that our own write has raised */
static void cgs_log_consume(int signo, const sigset_t *pending)
{
    static const struct timespec now = {0, 0};
    sigset_t                     set;

    if (!sigismember(pending, signo)) {
        sigemptyset(&set);
        sigaddset(&set, signo);
        while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR) {
        }
    }
}

int cgs_log_write(int fd, const void *data, size_t length)
{
    int      saved_errno = errno;
    sigset_t raised, pending, old_mask;
    int      cancel_state, status;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    sigemptyset(&raised);
    sigaddset(&raised, SIGPIPE);
    sigaddset(&raised, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &raised, &old_mask);
    sigpending(&pending);

    status = cgs_log_write_all(fd, data, length);

    if (status == -EPIPE) {
        cgs_log_consume(SIGPIPE, &pending);
    } else if (status == -EFBIG) {
        cgs_log_consume(SIGXFSZ, &pending);
    }
    pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
    pthread_setcancelstate(cancel_state, NULL);
    errno = saved_errno;
    return status;
}

/* The first descriptors belong to the program: a file opened while its 0, 1
 * or 2 is closed must not become them */
static int cgs_log_move_fd(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, CGS_LOG_MIN_FD);
    int status;

    if (moved < 0) {
        moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    }
    status = moved < 0 ? -errno : moved;
    close(fd);
    return status;
}

static int cgs_log_open_file(cgs_log_open_t *file)
{
    char        name[PATH_MAX];
    struct stat st;
    int         fd, status;

    status = cgs_text_file_name(cgs_log_file, sizeof(name), name);
    if (status != 0) {
        return status;
    }
    /* O_NONBLOCK: a FIFO nobody reads must not stop the program */
    fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
              O_NOCTTY | O_NONBLOCK, 0644);
    if (fd < 0) {
        return -errno;
    }
    fd = cgs_log_move_fd(fd);
    if (fd < 0) {
        return fd;
    }
    if (fstat(fd, &st) != 0) {
        status = -errno;
        close(fd);
        return status;
    }
    file->fd  = fd;
    file->dev = st.st_dev;
    file->ino = st.st_ino;
    return 0;
}

/* Whether the descriptor is still the file it was. Programs close all that
 * they have not opened, and then the number is that of a file of theirs */
static bool cgs_log_is_ours(const cgs_log_open_t *file)
{
    struct stat st;

    return fstat(file->fd, &st) == 0 && st.st_dev == file->dev &&
           st.st_ino == file->ino;
}

static int cgs_log_open_fd(cgs_log_open_t *older)
{
    cgs_log_open_t *file = malloc(sizeof(*file));
    int            status;

    if (file == NULL) {
        return STDERR_FILENO;
    }
    file->pid   = getpid();
    file->fd    = -1;
    file->older = older;
    status      = cgs_log_open_file(file);
    if (!__atomic_compare_exchange_n(&cgs_log_opened, &older, file, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        /* Another thread was first; nobody else has seen our descriptor */
        if (file->fd >= 0) {
            close(file->fd);
        }
        free(file);
        return older->fd >= 0 ? older->fd : STDERR_FILENO;
    }
    if (status != 0) {
        cgs_log_complain("CGSHIM_LOG_FILE=%s: cannot be opened (%s); the log "
                         "goes to stderr", cgs_log_file, strerror(-status));
        return STDERR_FILENO;
    }
    return file->fd;
}

/* Where the line of this process goes */
static int cgs_log_fd(void)
{
    cgs_log_open_t *file;

    if (cgs_log_file == NULL) {
        return STDERR_FILENO;
    }
    file = __atomic_load_n(&cgs_log_opened, __ATOMIC_ACQUIRE);
    if (file == NULL || file->pid != getpid()) {
        return cgs_log_open_fd(file);
    } else if (file->fd < 0) {
        return STDERR_FILENO;
    }
    return cgs_log_is_ours(file) ? file->fd : cgs_log_open_fd(file);
}

/* One line of prefix and text to fd */
static void cgs_log_put(int fd, const char *prefix, const char *fmt,
                        va_list ap)
{
    char   text[CGS_LOG_MAX_LINE], line[CGS_LOG_MAX_LINE + 1];
    size_t length = strlen(prefix);

    if (vsnprintf(text, sizeof(text), fmt, ap) < 0) {
        return;
    }
    /* The prefix is not empty, so a text that was cut above is cut here too
     * and gets its dots */
    memcpy(line, prefix, length);
    length += cgs_text_escape(line + length, sizeof(line) - 1 - length, text);
    line[length++] = '\n';
    cgs_log_write(fd, line, length);
}

void cgs_log_line(cgs_log_level_t level, const char *fmt, ...)
{
    int     saved_errno = errno;
    int     cancel_state;
    char    prefix[64];
    va_list ap;

    /* cgs_log() has looked, but not so that the file must be seen as well */
    if (level > __atomic_load_n(&cgs_log_threshold, __ATOMIC_ACQUIRE)) {
        return;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    snprintf(prefix, sizeof(prefix), "cgshim[%d] %s: ", (int)getpid(),
             cgs_log_level_names[level]);
    va_start(ap, fmt);
    cgs_log_put(cgs_log_fd(), prefix, fmt, ap);
    va_end(ap);
    pthread_setcancelstate(cancel_state, NULL);
    errno = saved_errno;
}

void cgs_log_complain(const char *fmt, ...)
{
    int     saved_errno = errno;
    va_list ap;

    va_start(ap, fmt);
    cgs_log_put(STDERR_FILENO, "cgshim: ", fmt, ap);
    va_end(ap);
    errno = saved_errno;
}

void cgs_log_setup(cgs_log_level_t level, const char *file)
{
    if (file != NULL && strcmp(file, "stderr") != 0) {
        cgs_log_file = strdup(file);
        if (cgs_log_file == NULL) {
            cgs_log_complain("CGSHIM_LOG_FILE=%s: out of memory; the log goes "
                             "to stderr", file);
        }
    }
    __atomic_store_n(&cgs_log_threshold, level, __ATOMIC_RELEASE);
}
