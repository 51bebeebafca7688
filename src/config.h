/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: what the CGSHIM* variables and the file they name say.
 */
#ifndef CGS_CONFIG_H
#define CGS_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "log.h"

/** CGSHIM: what the library does in this process. */
typedef enum {
    CGS_MODE_ON,      /**< record and replay */
    CGS_MODE_OBSERVE, /**< count and report, change nothing */
    CGS_MODE_OFF      /**< nothing at all */
} cgs_mode_t;

/** on_change: what a changed address or value leads to. */
typedef enum {
    CGS_ON_CHANGE_PATCH,     /**< new parameters for the node */
    CGS_ON_CHANGE_RECAPTURE, /**< a new recording */
    CGS_ON_CHANGE_EAGER      /**< the rest of the run goes out plainly */
} cgs_on_change_t;

/** streams: what a call on another stream of the region leads to. */
typedef enum {
    CGS_STREAMS_JOIN,    /**< one graph for all of them */
    CGS_STREAMS_SEPARATE /**< a new chunk: no stream waits for another that
                              the program did not make it wait for */
} cgs_streams_t;

/** gate: whether a region that is slower replayed than plain goes plain. */
typedef enum {
    CGS_GATE_ON,
    CGS_GATE_OFF,
    CGS_GATE_RANDOM /**< for tests: chance decides for each run */
} cgs_gate_mode_t;

/** chunk: ops of one graph. */
#define CGS_CHUNK_AUTO 0u
#define CGS_CHUNK_ALL  UINT_MAX

/** One region as CGSHIM_REGION_<name> describes it. */
typedef struct {
    char            *name;        /**< of the region; NULL in the defaults */
    char            *nvtx_domain; /**< glob; "" is the default domain only,
                                       NULL any domain */
    char            *nvtx;        /**< glob for the text of the range; NULL:
                                       the text equals the name */
    char            *from, *to;   /**< globs for the kernels that the region
                                       begins and ends with; NULL */
    unsigned        calls;        /**< that it has, of those from `from`; 0:
                                       that is not known */
    bool            between;      /**< it is what is between two waits */
    unsigned        warmup;       /**< runs to let pass before recording */
    unsigned        max_defer_us; /**< longest time to hold work back
                                       while no further call comes */
    unsigned        variants;     /**< ways that are kept where runs differ */
    unsigned        chunk;        /**< most ops of a graph */
    unsigned        memory_mb;    /**< of the defaults: for all recordings and
                                       graphs of the process */
    unsigned        verify;       /**< every so many replayed runs are
                                       verified; 0: none */
    unsigned        verify_mb;    /**< of the defaults: host memory that this
                                       may take */
    cgs_on_change_t on_change;
    cgs_streams_t   streams;
    cgs_gate_mode_t gate;
    bool            enable;       /**< false: leave matching ranges alone */
} cgs_rule_t;

/** All of the configuration; constant once cgs_config_get() has returned. */
typedef struct {
    cgs_mode_t      mode;
    cgs_rule_t      defaults;    /**< built in, then CGSHIM_DEFAULTS */
    cgs_rule_t      *rules;      /**< in order of appearance, environment
                                      first, then the file */
    size_t          num_rules;
    bool            every_range; /**< no rule was given, not even one that was
                                      ignored: each outermost NVTX push/pop
                                      range is a region with the defaults */
    cgs_log_level_t log_level;
    char            *log_file;   /**< absolute, %p and %h not yet expanded;
                                      NULL for stderr */
    char            *report;     /**< "stderr", or as log_file; NULL: none */
    char            *trace;      /**< file, as log_file; NULL: none */
    bool            automatic;   /**< regions are found by themselves */
    char            *save;       /**< file for what was found, as log_file;
                                      NULL: none */
    char            *dump;       /**< directory, likewise */
    char            *profile;    /**< as report: the program is profiled and
                                      nothing is replayed */
} cgs_config_t;

/**
 * Keep a copy of the CGSHIM* strings of an environment, for the library's
 * constructor: the program may change its environment later. Reads nothing
 * else, prints nothing and parses nothing. Later calls change nothing.
 * Any thread.
 *
 * @param env Environment as execve(2) gives it, ended by NULL; may be NULL.
 */
void cgs_config_snapshot(char **env);

/**
 * The configuration of this process. The first call parses the snapshot (made
 * now if there is none), prints one line on stderr for each value that does
 * not parse, and sets up the log. Any thread; never fails: what cannot be
 * used is as if it were not there.
 *
 * @return The configuration, the same each time; never NULL.
 */
const cgs_config_t *cgs_config_get(void);

/** Whether runs of any region may be verified. Any thread. */
bool cgs_config_verifies(const cgs_config_t *config);

/**
 * The rule for an NVTX range. Any thread.
 *
 * @param config Configuration to look in.
 * @param domain Name of the range's domain, NULL for the default domain.
 * @param text   Text of the range, NULL for one without text.
 *
 * @return The first rule that matches, which may say enable=0, or NULL. The
 *         caller looks at cgs_config_t::every_range itself.
 */
const cgs_rule_t *cgs_config_match(const cgs_config_t *config,
                                   const char *domain, const char *text);

/**
 * Parse an environment; what cgs_config_get() does once, without the state of
 * the process. Prints one line on stderr for each value that does not parse.
 *
 * @param env    Strings VARIABLE=value, ended by NULL; those whose name does
 *               not begin with CGSHIM are skipped.
 * @param config Set whole, to be given to cgs_config_release().
 */
void cgs_config_parse(const char *const *env, cgs_config_t *config);

/**
 * Write to stderr what the snapshot comes to, if it has the variable by which
 * the wrapper asks for that: first a line for each value that does not parse,
 * then a comment with the version, then lines that a file for CGSHIM_CONFIG
 * may have. For the library's constructor, after cgs_config_snapshot().
 */
void cgs_config_answer(void);

/** Free what cgs_config_parse() put into a configuration. */
void cgs_config_release(cgs_config_t *config);

#endif
