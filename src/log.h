/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line, one write(2), to stderr or to CGSHIM_LOG_FILE.
 */
#ifndef CGS_LOG_H
#define CGS_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/** How much is logged; each level holds all before it. */
typedef enum {
    CGS_LOG_OFF,   /**< nothing, the default */
    CGS_LOG_ERROR, /**< something of ours failed, the program goes on */
    CGS_LOG_WARN,  /**< something costs the program speed */
    CGS_LOG_INFO,  /**< what a user wants to know of a region */
    CGS_LOG_DEBUG  /**< what a developer wants to know of a call */
} cgs_log_level_t;

/**
 * The level that is logged. Only cgs_log_setup() writes it; it is visible
 * only so that cgs_log() costs one load where nothing is logged.
 */
extern cgs_log_level_t cgs_log_threshold;

/** Whether a line of this level would be written. Any thread. */
#define cgs_log_enabled(_level) \
    (__builtin_expect((_level) <= __atomic_load_n(&cgs_log_threshold, \
                                                  __ATOMIC_RELAXED), 0))

/**
 * Log one line, `cgshim[pid] level: text`. The arguments are not evaluated
 * where the level is not logged.
 *
 * Any thread, after fork and during exit too. Keeps errno, raises no signal,
 * is no cancellation point. A line that cannot be written is lost.
 *
 * @param _level CGS_LOG_ERROR to CGS_LOG_DEBUG.
 * @param _fmt   printf format without the newline; control characters in the
 *               result are escaped.
 */
#define cgs_log(_level, _fmt, ...) \
    do { \
        if (cgs_log_enabled(_level)) { \
            cgs_log_line(_level, _fmt, ##__VA_ARGS__); \
        } \
    } while (0)

/** Lines of one place in the code that are written within a second. */
#define CGS_LOG_MAX_OFTEN 32

/** A place in the code whose lines may come without end; all zero at first,
 *  there for good. */
typedef struct cgs_log_place {
    atomic_ullong        second;   /**< that is counted in, of the monotonic
                                        clock and the process id */
    atomic_uint          num;      /**< lines of it, left out ones too */
    atomic_ullong        left_out; /**< and not told of yet */
    atomic_bool          listed;   /**< is one of those with such lines */
    cgs_log_level_t      level;    /**< of its lines, and what they begin with,
                                        once it is listed */
    const char           *fmt;
    struct cgs_log_place *next;
} cgs_log_place_t;

/**
 * The same for a line that may come in each run or call of a program: of each
 * place no more than CGS_LOG_MAX_OFTEN are written in a second. A line before
 * the next one that is, or at the end, says how many were left out.
 */
#define cgs_log_often(_level, _fmt, ...) \
    do { \
        static cgs_log_place_t cgs_log_place_; \
        if (cgs_log_enabled(_level) && \
            cgs_log_admits(&cgs_log_place_, _level, _fmt)) { \
            cgs_log_line(_level, _fmt, ##__VA_ARGS__); \
        } \
    } while (0)

/** What cgs_log_often() asks: whether the line is to be written. */
bool cgs_log_admits(cgs_log_place_t *place, cgs_log_level_t level,
                    const char *fmt);

/** Say how many lines were left out and not told of; before the process ends.
 *  Any thread. */
void cgs_log_settle(void);

/** What cgs_log() calls once the level is tested. */
void cgs_log_line(cgs_log_level_t level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/**
 * Print one line, `cgshim: text`, on stderr whatever the level is. For
 * configuration that cannot be followed: a user who set something must hear
 * that it does nothing. Same promises as cgs_log().
 */
void cgs_log_complain(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

/**
 * Set the level and the file of the log; before it the level is off. To be
 * called once, while no other thread logs.
 *
 * @param level What to log.
 * @param file  Name of the file to append to, with %p and %h, or NULL for
 *              stderr. Opened by the first line of each process; copied.
 */
void cgs_log_setup(cgs_log_level_t level, const char *file);

/**
 * Write bytes to a descriptor and survive what may happen to it: a signal in
 * between, a reader that went away (no SIGPIPE), a size limit (no SIGXFSZ).
 * Any thread; no cancellation point.
 *
 * @return 0, or -errno.
 */
int cgs_log_write(int fd, const void *data, size_t length);

#endif
