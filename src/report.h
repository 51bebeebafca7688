/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report: what was seen and done in this process, as a table or as JSON.
 *
 * Whoever knows the figures fills these structs at one moment; the writers
 * hold no state and read nothing else.
 */
#ifndef CGS_REPORT_H
#define CGS_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "changes.h"

/** What the `schema` of the JSON report is: another one where a field has gone
 *  or means something else. */
#define CGS_REPORT_SCHEMA 1

/** Most bytes of an argument that a divergence shows. */
#define CGS_REPORT_MAX_BYTES 32

/** How often something happened for one reason. */
typedef struct {
    const char *reason;
    uint64_t   count;
} cgs_fallback_t;

/** The first call that was not as recorded. */
typedef struct {
    bool       valid;     /**< false: there was none */
    bool       is_brief;  /**< for who explains: it has no texts, but bytes
                               that are other ones where they would differ;
                               nothing is allocated */
    const char *call;     /**< what the recorded call is: "kernel", "copy",
                               "set", "event record", ... */
    uint64_t   run;       /**< run of the region, from 1 */
    uint64_t   op_index;  /**< call of the run, from 0 */
    const char *kernel;   /**< name of the recorded kernel; else as `call` */
    const char *what;     /**< "argument", "grid", "block", "shared memory",
                               "kernel", "attribute", "kind", "stream",
                               "missing call", "extra call", ... */
    int        arg;       /**< number of the argument from 0, or -1 */
    uint32_t   offset;    /**< first byte that differs, in the argument */
    uint32_t   size;      /**< bytes of the argument */
    uint8_t    old_bytes[CGS_REPORT_MAX_BYTES]; /**< as recorded */
    uint8_t    new_bytes[CGS_REPORT_MAX_BYTES]; /**< as called */
    uint32_t   num_bytes; /**< used in both arrays, 0 where texts say it */
    const char *old_text; /**< kernel name, grid, ... or NULL */
    const char *new_text; /**< kernel name, grid, ... or NULL */
} cgs_divergence_t;

/** A graph that did not leave what its calls leave. */
typedef struct {
    bool       valid;  /**< false: there was none */
    uint64_t   run;    /**< run of the region, from 1 */
    uint64_t   nodes;  /**< calls of the graph */
    uint64_t   base;   /**< address of the buffer */
    uint64_t   bytes;  /**< of the buffer */
    uint64_t   offset; /**< first byte that is another one */
    uint64_t   op;     /**< last call of the graph that takes the buffer, from
                            0 */
    const char *kernel; /**< its kernel's name, "copy" or "set" */
} cgs_mistake_t;

/** A figure that may not have been measured. */
typedef struct {
    bool    known;
    int64_t value;
} cgs_figure_t;

/** One region. */
typedef struct {
    const char           *name;
    const char           *state;        /**< what it does now, a word */
    uint64_t             runs;
    uint64_t             replayed_runs; /**< replayed from end to end */
    uint64_t             recordings;
    uint64_t             plain_runs;    /**< neither replayed nor recorded */
    uint64_t             unseen_runs;   /**< of these, those that the gate sent
                                             plain: their calls are not looked
                                             at */
    uint64_t             calls;         /**< ops the program called */
    uint64_t             seen_launches; /**< of kernels, of these */
    uint64_t             swallowed;     /**< of these, done by a graph */
    uint64_t             swallowed_launches; /**< of kernels, of these */
    uint64_t             launches;      /**< of graphs */
    uint64_t             graph_ns;      /**< patching and launching them */
    uint64_t             patched;       /**< nodes given new parameters */
    uint64_t             barriers;
    uint64_t             variants;
    uint64_t             chunks;
    uint64_t             nodes;
    uint64_t             builds;
    uint64_t             build_ns;      /**< all builds together */
    uint64_t             device_bytes;  /**< held by the graphs */
    uint64_t             host_bytes;    /**< held by the recordings */
    const cgs_fallback_t *fallbacks;
    size_t               num_fallbacks; /**< why calls went out plainly */
    const cgs_fallback_t *cuts;         /**< what cut the recording */
    size_t               num_cuts;
    cgs_figure_t         plain_call_ns;   /**< a call that the driver did
                                               plainly, the mean */
    cgs_figure_t         host_saved_ns;   /**< by all of its graphs */
    cgs_figure_t         plain_run_ns;    /**< from one start to the next, */
    cgs_figure_t         replayed_run_ns; /**< the means */
    cgs_divergence_t     first_divergence;
    bool                 verifies;      /**< runs of it are to be verified */
    uint64_t             verified;      /**< graphs that left what their calls
                                             leave */
    const cgs_fallback_t *unverified;   /**< why graphs were not verified */
    size_t               num_unverified;
    cgs_mistake_t        mistake;
    const cgs_changes_t  *changes;        /**< what differs often, or NULL */
} cgs_region_report_t;

/** A rule that nothing has matched. */
typedef struct {
    const char *name;
    bool       is_kernel; /**< it looks for kernels, else for ranges */
    bool       is_hidden; /**< another rule came first where it matches */
} cgs_stray_t;

/** The process. */
typedef struct {
    const char                *version;       /**< of cgshim */
    const char                *program;
    int                       pid;
    const char                *mode;          /**< "on", "observe" */
    int                       driver_version; /**< as cuDriverGetVersion says,
                                                   0 where not known */
    const char                *note;          /**< why nothing is replayed, one
                                                   line; NULL */
    uint64_t                  launches;       /**< of kernels, seen by us */
    uint64_t                  copies;         /**< seen by us */
    uint64_t                  sets;           /**< seen by us */
    uint64_t                  looked_at;      /**< calls, for what automatic
                                                   regions would come to */
    uint64_t                  repeating;      /**< of these, those of loops */
    const cgs_stray_t         *strays;        /**< rules without a region */
    size_t                    num_strays;
    const char *const         *ranges;        /**< some that no rule matches */
    size_t                    num_ranges;
    const char *const         *kernels;       /**< likewise */
    size_t                    num_kernels;
    const cgs_region_report_t *regions;
    size_t                    num_regions;
} cgs_report_t;

/**
 * Write a report: a table to stderr, or JSON to a file. A plain file appears
 * whole or not at all; a symbolic link is refused; other files (a FIFO, a
 * device) are written to as they are. Any thread, during exit too. Keeps
 * errno, prints no message of its own.
 *
 * @param report What to write; strings may be NULL and hold any byte.
 * @param target "stderr", or the name of a file where %p is the process id,
 *               %h the host's name and %% a percent sign.
 *
 * @return 0, or -errno.
 */
int cgs_report_write(const cgs_report_t *report, const char *target);

#endif
