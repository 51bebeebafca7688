/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region: a named span of the program, its recording, and the run that is
 * open now.
 */
#ifndef CGS_REGION_H
#define CGS_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1 /* else it would end the process */
#include <uthash.h>

#include "cgshim.h"
#include "changes.h"
#include "config.h"
#include "gate.h"
#include "recording.h"
#include "report.h"
#include "thread.h"
#include "times.h"
#include "trace.h"

/** The reason that `memory_mb` is used up. */
extern const char *const cgs_no_budget;

/** The reason that the gate sends runs plain. */
extern const char *const cgs_by_gate;

/** Streams of one region that other threads may join it on. */
#define CGS_MAX_STREAMS 16

/** Reasons for going out plainly that one region tells apart. */
#define CGS_MAX_FALLBACKS 16

/** What the open run does with calls. */
typedef enum {
    CGS_RUN_PLAIN,  /**< lets them pass */
    CGS_RUN_RECORD, /**< lets them pass and appends them */
    CGS_RUN_REPLAY  /**< holds them against the recording */
} cgs_run_mode_t;

/** The way back from a recording to the older one that it left. */
typedef struct {
    cgs_place_t *place;  /**< where they may meet, held; NULL: nowhere */
    uint32_t    skip;    /**< calls that the older one had before it */
    uint32_t    match;   /**< last calls that were as the place's first ones */
    uint32_t    waited;  /**< calls that did not meet it */
} cgs_rejoin_t;

/** Where the open run stands. */
typedef struct {
    cgs_run_mode_t mode;
    cgs_place_t    *place;   /**< replay: where the run stands, NULL past the
                                  end. Record: where the next variant begins,
                                  NULL after the present one */
    cgs_variant_t  *variant; /**< that is followed, or appended to; NULL */
    uint32_t       op;       /**< next op to compare with; of a recording how
                                  many there are, 0 where the next one begins
                                  a chunk */
    cgs_variant_t  *last;    /**< the one before it in this run, or NULL */
    bool           through;  /**< this chunk goes out call by call */
    bool           may_record;   /**< a mismatch may begin a recording */
    bool           has_recorded; /**< this run appended ops */
    bool           diverged;     /**< this run was not as recorded */
    bool           moved;        /**< it went from one variant to another */
    bool           launched;     /**< this run launched a graph */
    bool           timed;        /**< its calls are timed */
    bool           verifies;     /**< its graphs are verified */
    bool           watches;      /**< it is plain, and the driver's calls are
                                      timed */
    bool           is_watched;   /**< what differs in it is counted */
    uint64_t       calls;        /**< ops called so far */
    uint64_t       patched_before, builds_before; /**< the region's counts at
                                                       the start */
    uint64_t       called_ns, left_ns; /**< while recording or watching: when
                                            the last call came in (0: that is
                                            not known) and went out */
    cgs_rejoin_t   rejoin;
} cgs_cursor_t;

/** Reasons, and how often each came up. */
typedef struct {
    cgs_fallback_t entry[CGS_MAX_FALLBACKS];
    size_t         num;
    const char     *last; /**< the reason that came up last, or NULL */
} cgs_reasons_t;

/** Most allocations of a region that are known as written. */
#define CGS_MAX_WRITTEN 256

/** Allocations that verified runs were seen to write, while no memory was
 *  given back since. */
typedef struct {
    uint64_t generation; /**< of memory */
    uint64_t base[CGS_MAX_WRITTEN];
    uint32_t num;
} cgs_written_t;

/** What is learned of the program's pace, for the cutting of chunks. */
typedef struct {
    unsigned waits;      /**< cgs_flow_waits when the last run began */
    int      synced;     /**< > 0: the program waits between two runs, as far
                              as was seen of late */
    bool     is_planned; /**< chunks were cut, */
    bool     for_synced; /**< for a program that waits */
    uint64_t timed_run;  /**< first of the runs whose calls are timed */
} cgs_pace_t;

/** Counters of a region, for the report. */
typedef struct {
    uint64_t         verified; /**< launches of graphs that left what their
                                    calls leave */
    cgs_mistake_t    mistake;  /**< of one that did not */
    cgs_reasons_t    unverified; /**< why graphs could not be verified */
    uint64_t         runs, replayed_runs, recordings, plain_runs;
    uint64_t         unseen_runs; /**< of the plain ones: the gate's, whose
                                       calls nobody looks at */
    uint64_t         calls, swallowed, launches, patched, barriers;
    uint64_t         swallowed_launches; /**< of kernels, of the swallowed */
    uint64_t         builds, build_ns;
    uint64_t         variants, chunks, nodes; /**< held now, or when they
                                                   were */
    uint64_t         host_bytes, device_bytes; /**< destroyed */
    bool             destroyed; /**< the recording, since the last one */
    cgs_reasons_t    fallbacks, cuts;
    cgs_divergence_t first_divergence;
    cgs_changes_t    changes;
    cgs_times_t      times;
} cgs_region_stats_t;

typedef struct cgs_region {
    /* Constant. */
    struct cgs_region *next; /**< in the list of all */
    UT_hash_handle    hh;    /**< in the table by name */
    char              *name;
    const cgs_rule_t  *rule;

    struct cgs_profile_region *profile; /**< what profile.c keeps, by its lock;
                                             NULL where nothing is */

    /* The open run. Another thread may end it, or issue what it holds back;
     * `busy` is taken by the thread that enters. */
    atomic_bool      busy;
    atomic_ullong    run_serial; /**< changes when a run begins or ends */
    atomic_uint      held;       /**< ops that were swallowed and not issued */
    atomic_bool      held_events; /**< some of them record an event */
    atomic_ullong    hold_serial; /**< counts beginnings to hold back */

    /* Streams that ops of this region were recorded on: other threads' calls
     * on them join the run. Only added to during a run. */
    _Atomic(CUstream) streams[CGS_MAX_STREAMS];
    atomic_uint       num_streams;

    atomic_ullong range_id;      /**< of the start/end range, or 0; set under
                                      the lock */
    atomic_uint   shut;          /**< runs that go plain without a question */
    atomic_bool   has_recording;

    /* Of a region that was found by itself. */
    bool          alone;         /**< it is that; calls of other threads do
                                      not belong to its runs. Constant */
    atomic_bool   claimed;       /**< a thread's, which may enter it */
    const char    *begins_with;  /**< kernel, or NULL: no kernel; lives on */
    uint32_t      unit_calls;    /**< of a run */
    uint64_t      unit;          /**< hash of what it repeats; the claimer's */
    atomic_bool   records_alone; /**< a run that is recorded ends a chunk where
                                      another thread's call comes */
    atomic_bool   abandoned;     /**< the thread of the open run has ended */
    atomic_ullong entered, entered_before; /**< the last two runs' numbers, of
                                                all regions' runs */

    /* The timer's alone. */
    uint64_t seen_serial, seen_us;
    unsigned seen_held;

    /* Under the lock. */
    cgs_lock_t         lock;
    cgs_cursor_t       cursor;
    cgs_recording_t    recording;
    cgs_gate_t         gate;
    bool               events_vary; /**< which records are of one event is
                                         not the same in all runs */
    uint64_t           last_call;  /**< the run ends with so many calls; 0:
                                        that is not known */
    bool               recapture;  /**< record anew at the next run */
    bool               watch;      /**< have the next run plain, and time the
                                        driver's calls in it */
    cgs_pace_t         pace;
    cgs_trace_run_t    trace;
    uint64_t           replays;    /**< runs that were begun as replays */
    cgs_written_t      written;    /**< by verified runs */
    bool               wants_memory; /**< the budget has not sufficed */
    uint32_t           wasted;     /**< recordings since the last full replay */
    uint64_t           record_run; /**< no recording before this run */
    CUresult           pending;    /**< error that a swallowed call had */
    char               *domain;    /**< of the push/pop range, NULL default */
    uint32_t           depth;      /**< ranges nested in it, same domain */
    uint64_t           counts[CGS_OP_NUM_KINDS]; /**< calls by kind */
    cgs_region_stats_t stats;
} cgs_region_t;

/**
 * The region that a range opens, made at first sight. Any thread.
 *
 * @param domain     NVTX domain, NULL for the default one.
 * @param text       Text of the range.
 * @param start_end  A start/end range: only a rule makes it a region.
 *
 * @return A region, or NULL: the range is to be left alone.
 */
cgs_region_t *cgs_region_of_range(const char *domain, const char *text,
                                  bool start_end);

/** The region of a rule that needs no range, made at first sight. Any thread.
 *  @return A region, or NULL: there are too many. */
cgs_region_t *cgs_region_of_rule(const cgs_rule_t *rule);

/**
 * Claim a region for what a thread found to repeat, made at first sight. What
 * it holds of another unit is destroyed. Any thread.
 *
 * @param unit Hash of what it repeats.
 *
 * @return A region, to be given back by cgs_region_give_back(), or NULL: it is
 *         claimed already, or there are too many.
 */
cgs_region_t *cgs_region_automatic(const char *name, uint64_t unit);
void cgs_region_give_back(cgs_region_t *region);

/** The thread of the open run ends: another one is to end the run. */
void cgs_region_abandon(cgs_region_t *region);

/** Whether the open run has had its last call, or is not what the region
 *  repeats. Under the region's lock. */
static inline bool cgs_region_is_over(const cgs_region_t *region)
{
    return (region->last_call > 0) &&
           ((region->cursor.calls >= region->last_call) ||
            (region->alone && region->cursor.diverged));
}

/** What came of entering a region. */
typedef enum {
    CGS_ENTERED,
    CGS_ENTER_REFUSED, /**< the range is to be left alone */
    CGS_ENTER_SHUT     /**< the run goes plain: the range counts, its calls do
                            not */
} cgs_enter_t;

/** Begin a run in this thread. Builds what was recorded before. */
cgs_enter_t cgs_region_enter(cgs_region_t *region);

/** End the open run, from any thread. */
void cgs_region_leave(cgs_region_t *region);

/** Whether the region's ops were recorded on this stream. Any thread. */
bool cgs_region_owns_stream(const cgs_region_t *region, CUstream stream);

/**
 * Texts of ranges that no rule matches, in the order in which they came. Any
 * thread.
 *
 * @return How many were put into `texts`, which live on.
 */
size_t cgs_region_unmatched(const char **texts, size_t max);

/** Note that they are, or forget all of them. Under the region's lock. */
void cgs_region_own_stream(cgs_region_t *region, CUstream stream);
void cgs_region_disown_streams(cgs_region_t *region);

/** Note why calls go out plainly. Under the region's lock.
 *  @param reason A string that lives on. */
void cgs_region_fallback(cgs_region_t *region, const char *reason);

/** Note why a graph could not be verified. Likewise. */
void cgs_region_leave_unverified(cgs_region_t *region, const char *reason);

/** Note what cuts a recording in two. Likewise. */
void cgs_region_cut(cgs_region_t *region, const char *reason);

/** Count what the region holds into its counters. Under its lock. */
void cgs_region_measure(cgs_region_t *region);

/**
 * Copy the region's counters as they are now. Any thread. Waits for the lock
 * for no longer than a second: at exit a thread may hold it for ever.
 *
 * @return false where it could not be had; what is copied may then be of
 *         different moments.
 */
bool cgs_region_snapshot(cgs_region_t *region, cgs_region_stats_t *stats,
                         cgshim_state_t *state);

/** A state in a word. */
const char *cgs_region_state_name(cgshim_state_t state);

/** Whether no lock of the regions is held and no region is open, for the
 *  child of a fork: what is not quiet then will never be. */
bool cgs_region_is_quiet(void);

/** All regions, linked by `next`. Any thread. */
cgs_region_t *cgs_region_first(void);

/** A region by name, or NULL. Any thread. */
cgs_region_t *cgs_region_find(const char *name);

/** Record the region anew at its next run. Any thread. */
void cgs_region_recapture(cgs_region_t *region);

/** Destroy a region's graphs and recording; what is held back is issued
 *  first. It is recorded again at its next run. Any thread.
 *  @return whether there was anything to destroy. */
bool cgs_region_destroy(cgs_region_t *region, const char *reason);

/** The same for all regions. */
void cgs_region_destroy_all(const char *reason);

/** The same, for want of memory: they are not recorded again for a while.
 *  @return whether there was anything to destroy. */
bool cgs_region_give_up_memory(const char *reason);

#endif
