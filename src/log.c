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

#include "file.h"
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
#include <time.h>
#include <unistd.h>

/* A line is cut there; what a pipe takes in one piece is not less */
#define CGS_LOG_MAX_LINE 1024
/* How long a full pipe that does not block is waited for */
#define CGS_LOG_WAIT_MS 100

/* The file as one process has opened it; constant once published */
typedef struct cgs_log_open {
    pid_t               pid;
    cgs_file_t          file;   /* fd -1: cannot be opened, stderr is used */
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

static int cgs_log_open_file(cgs_log_open_t *opened)
{
    char name[PATH_MAX];
    int  status = cgs_text_file_name(cgs_log_file, sizeof(name), name);

    return status != 0 ? status :
           cgs_file_open(name, O_APPEND, &opened->file);
}

static int cgs_log_open_fd(cgs_log_open_t *older)
{
    cgs_log_open_t *opened = malloc(sizeof(*opened));
    int            status;

    if (opened == NULL) {
        return STDERR_FILENO;
    }
    opened->pid     = getpid();
    opened->file.fd = -1;
    opened->older   = older;
    status          = cgs_log_open_file(opened);
    if (!__atomic_compare_exchange_n(&cgs_log_opened, &older, opened, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        /* Another thread was first; nobody else has seen our descriptor */
        if (opened->file.fd >= 0) {
            close(opened->file.fd);
        }
        free(opened);
        return older->file.fd >= 0 ? older->file.fd : STDERR_FILENO;
    }
    if (status != 0) {
        cgs_log_complain("CGSHIM_LOG_FILE=%s: cannot be opened (%s); the log "
                         "goes to stderr", cgs_log_file, strerror(-status));
        return STDERR_FILENO;
    }
    return opened->file.fd;
}

/* Where the line of this process goes */
static int cgs_log_fd(void)
{
    cgs_log_open_t *opened;

    if (cgs_log_file == NULL) {
        return STDERR_FILENO;
    }
    opened = __atomic_load_n(&cgs_log_opened, __ATOMIC_ACQUIRE);
    if (opened == NULL || opened->pid != getpid()) {
        return cgs_log_open_fd(opened);
    } else if (opened->file.fd < 0) {
        return STDERR_FILENO;
    }
    return cgs_file_is_ours(&opened->file) ? opened->file.fd :
           cgs_log_open_fd(opened);
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

/* Places with lines that were left out; only ever added to. */
static _Atomic(cgs_log_place_t *) cgs_log_places;

static void cgs_log_leave_out(cgs_log_place_t *place, cgs_log_level_t level,
                              const char *fmt)
{
    cgs_log_place_t *first;

    atomic_fetch_add(&place->left_out, 1);
    if (atomic_exchange(&place->listed, true)) {
        return;
    }
    place->level = level;
    place->fmt   = fmt;
    first        = atomic_load(&cgs_log_places);
    do {
        place->next = first;
    } while (!atomic_compare_exchange_weak(&cgs_log_places, &first, place));
}

static void cgs_log_tell_left_out(cgs_log_place_t *place,
                                  cgs_log_level_t level, const char *fmt)
{
    unsigned long long count = atomic_exchange(&place->left_out, 0);

    if (count > 0) {
        cgs_log_line(level, "%llu more lines \"%.40s...\" are left out, no "
                     "more than %d a second are written", count, fmt,
                     CGS_LOG_MAX_OFTEN);
    }
}

bool cgs_log_admits(cgs_log_place_t *place, cgs_log_level_t level,
                    const char *fmt)
{
    struct timespec    now;
    unsigned long long second, before;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    second = (unsigned long long)getpid() << 40 | (unsigned long)now.tv_sec;
    before = atomic_exchange(&place->second, second);
    if (before != second) {
        /* A thread that counts meanwhile may be counted in either. */
        atomic_store(&place->num, 0);
    }
    if (before >> 40 != second >> 40) {
        /* The child of a fork tells of its own lines alone. */
        atomic_store(&place->left_out, 0);
    }
    if (atomic_fetch_add(&place->num, 1) >= CGS_LOG_MAX_OFTEN) {
        cgs_log_leave_out(place, level, fmt);
        return false;
    }
    cgs_log_tell_left_out(place, level, fmt);
    return true;
}

void cgs_log_settle(void)
{
    cgs_log_place_t *place;

    for (place = atomic_load(&cgs_log_places); place != NULL;
         place = place->next) {
        cgs_log_tell_left_out(place, place->level, place->fmt);
    }
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
