/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace: what became of each run, build and launch, and when, as a file
 * for Perfetto (CGSHIM_TRACE). Nothing is traced for a single call.
 *
 * What happens goes into a buffer of the thread's own; full ones are written
 * under a lock that nothing else takes. Memory and file are bounded: what is
 * beyond is left out, and an event says so.
 */
#ifndef CGS_TRACE_H
#define CGS_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

struct cgs_region;

/** Bytes that a trace may have. */
#define CGS_TRACE_MAX_BYTES (256ull << 20)

/** What happens; how each is written is in one table, in trace.c. */
typedef enum {
    CGS_TRACE_RUN,       /**< of a region; by cgs_trace_run_ends() alone */
    CGS_TRACE_SHUT_RUN,  /**< that the gate sends plain */
    CGS_TRACE_BUILD,     /**< of a graph: calls in it, device bytes */
    CGS_TRACE_LAUNCH,    /**< of a graph: calls in it, nodes patched */
    CGS_TRACE_ISSUE,     /**< of what is held back: calls */
    CGS_TRACE_RECORDED,  /**< a run was: variants of the region */
    CGS_TRACE_BARRIER,   /**< reason */
    CGS_TRACE_FALLBACK,  /**< reason */
    CGS_TRACE_GATE,      /**< state; by cgs_trace_gate() alone */
    CGS_TRACE_DESTROYED, /**< reason */
    CGS_TRACE_LEFT_OUT,  /**< reason; by trace.c alone */
    CGS_TRACE_NUM_KINDS
} cgs_trace_kind_t;

/** What is kept of a region's open run. */
typedef struct {
    uint64_t began_ns; /**< 0: it is not traced, or none is open */
    int      tid;      /**< thread that it began in */
    unsigned gate;     /**< state that was traced last */
} cgs_trace_run_t;

/** Whether events are wanted; changed by trace.c alone. */
extern bool cgs_trace_on;

static inline bool cgs_trace_enabled(void)
{
    return __builtin_expect(__atomic_load_n(&cgs_trace_on, __ATOMIC_ACQUIRE),
                            0);
}

/** The time at which a slice begins, 0 where none is wanted. */
static inline uint64_t cgs_trace_begin(void)
{
    return cgs_trace_enabled() ? cgs_clock_ns() : 0;
}

/**
 * Note what has just happened in a region. The arguments are not evaluated
 * where nothing is traced. Any thread, with any lock held but those of
 * trace.c; keeps errno.
 *
 * @param _text   A string that lives on, or NULL. @{
 */
#define cgs_trace_mark(_kind, _region, _text, _number) \
    do { \
        if (cgs_trace_enabled()) { \
            cgs_trace_add_mark(_kind, (_region)->name, _text, _number); \
        } \
    } while (0)
/** The same of what began at a time, as cgs_trace_begin() says. */
#define cgs_trace_slice(_kind, _region, _began_ns, _first, _second) \
    do { \
        if (cgs_trace_enabled()) { \
            cgs_trace_add_slice(_kind, (_region)->name, _began_ns, _first, \
                                _second); \
        } \
    } while (0)
/** @} */

void cgs_trace_add_mark(cgs_trace_kind_t kind, const char *region,
                        const char *text, uint64_t number);
void cgs_trace_add_slice(cgs_trace_kind_t kind, const char *region,
                         uint64_t began_ns, uint64_t first, uint64_t second);

/** A run of a region begins in this thread, or ends and is as its cursor says.
 *  Under the region's lock. @{ */
#define cgs_trace_run_begins(_region) \
    do { \
        if (cgs_trace_enabled()) { \
            cgs_trace_add_begin(_region); \
        } \
    } while (0)
#define cgs_trace_run_ends(_region) \
    do { \
        if (cgs_trace_enabled()) { \
            cgs_trace_add_run(_region); \
        } \
    } while (0)
/** @} */

void cgs_trace_add_begin(struct cgs_region *region);
void cgs_trace_add_run(struct cgs_region *region);

/** The gate was asked: note its state if it is a new one. Under the region's
 *  lock. */
#define cgs_trace_gate(_region) \
    do { \
        if (cgs_trace_enabled()) { \
            cgs_trace_add_gate(_region); \
        } \
    } while (0)

void cgs_trace_add_gate(struct cgs_region *region);

/** A run that the gate sends plain begins or ends in this thread. No lock is
 *  held. @{ */
#define cgs_trace_shut_begins(_region) \
    do { \
        if (cgs_trace_enabled()) { \
            cgs_trace_add_shut((_region)->name); \
        } \
    } while (0)
#define cgs_trace_shut_ends() \
    do { \
        if (cgs_trace_enabled()) { \
            cgs_trace_add_shut(NULL); \
        } \
    } while (0)
/** @} */

void cgs_trace_add_shut(const char *region);

/** A good moment to write what this thread has noted: no lock is held. */
#define cgs_trace_settle() \
    do { \
        if (cgs_trace_enabled()) { \
            cgs_trace_write_some(); \
        } \
    } while (0)

void cgs_trace_write_some(void);

/**
 * Open the file and trace from now on. Once, while no lock is held. Prints a
 * line where it cannot be.
 *
 * @param file      Name of the file, with %p and %h, or NULL for no trace.
 * @param max_bytes The file's largest size.
 */
void cgs_trace_start(const char *file, uint64_t max_bytes);

/** Write all that is left, and the end; at exit. Waits for no thread for
 *  long. */
void cgs_trace_finish(void);

/** This is a child of fork: write nothing to the parent's file. */
void cgs_trace_abandon(void);

#endif
