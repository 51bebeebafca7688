/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regions of the process: which range is which, and entering and leaving
 * them.
 */
#define _GNU_SOURCE
#include "region.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cursor.h"
#include "flow.h"
#include "function.h"
#include "graph.h"
#include "life.h"
#include "log.h"
#include "marks.h"
#include "timer.h"

/* Ranges and regions that are remembered; later names are left alone. */
#define MAX_RANGES  65536
#define MAX_REGIONS 4096
/* Ranges that each thread finds without a search. */
#define SEEN_RANGES 16
/* Host memory for recordings of regions that were entered only once; most of
 * those never come again ("step 1", "step 2", ...). */
#define MAX_FIRST_BYTES (64u << 20)
/* A variant that was not followed for so many runs may go. */
#define IDLE_RUNS 64
/* How long a look at the counters waits for those who change them. */
#define LOOK_WAIT_MS 1000
/* Runs without a recording after one had to be given up for its memory. */
#define RUNS_WITHOUT_MEMORY 100

const char *const cgs_no_budget = "memory_mb is used up";
const char *const cgs_by_gate   = "it is no faster replayed than plain, or "
                                  "that is tried";

/* What a range turned out to be. */
typedef struct {
    char           *key; /* domain, newline, text */
    cgs_region_t   *region; /* NULL: to be left alone */
    UT_hash_handle hh;
} range_t;

static struct {
    cgs_lock_t              lock;
    range_t                 *push_ranges;  /* uthash by key */
    range_t                 *start_ranges; /* of start/end ranges */
    _Atomic(cgs_region_t *) first;         /* only ever added to */
    unsigned                num_regions;
    cgs_region_t            *names;        /* uthash by name */
    atomic_size_t           first_bytes;   /* of recordings entered once */
    atomic_ullong           entered;       /* runs of all regions */
} regions;

cgs_region_t *cgs_region_first(void)
{
    return atomic_load_explicit(&regions.first, memory_order_acquire);
}

bool cgs_region_is_quiet(void)
{
    cgs_region_t *region;
    bool         quiet = atomic_load(&regions.lock) == 0;

    for (region = cgs_region_first(); region != NULL; region = region->next) {
        quiet = quiet && (atomic_load(&region->lock) == 0) &&
                (!atomic_load(&region->busy) || (region == cgs_self.region));
    }
    return quiet;
}

cgs_region_t *cgs_region_find(const char *name)
{
    cgs_region_t *region;

    for (region = cgs_region_first();
         (region != NULL) && (strcmp(region->name, name) != 0);
         region = region->next) {
    }
    return region;
}

/* Under the lock. */
static cgs_region_t *add_region(const char *name, const cgs_rule_t *rule,
                                bool alone)
{
    cgs_region_t *region;

    HASH_FIND_STR(regions.names, name, region);
    if (region != NULL) {
        return region->alone == alone ? region : NULL;
    }
    if (regions.num_regions == MAX_REGIONS) {
        cgs_log_often(CGS_LOG_WARN, "more than %d regions: %s is left alone",
                      MAX_REGIONS, name);
        return NULL;
    }
    region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return NULL;
    }
    region->name  = strdup(name);
    region->rule  = rule;
    region->alone = alone;
    if (region->name == NULL) {
        free(region);
        return NULL;
    }
    HASH_ADD_KEYPTR(hh, regions.names, region->name, strlen(region->name),
                    region);
    if (region->hh.tbl == NULL) {
        free(region->name);
        free(region);
        return NULL;
    }
    region->next = cgs_region_first();
    atomic_store_explicit(&regions.first, region, memory_order_release);
    ++regions.num_regions;
    return region;
}

static cgs_region_t *decide(const char *domain, const char *text,
                            bool start_end)
{
    const cgs_config_t *config = cgs_config_get();
    const cgs_rule_t   *rule   = cgs_config_match(config, domain, text);

    if (config->mode == CGS_MODE_OFF) {
        return NULL;
    }
    if (rule != NULL) {
        return rule->enable ? add_region(rule->name, rule, false) : NULL;
    }
    return config->every_range && config->defaults.enable && !start_end ?
           add_region(text, &config->defaults, false) : NULL;
}

/* Remember what a range turned out to be. Under the lock. @return NULL where
 * there is no room. */
static range_t *add_range(range_t **ranges, const char *key, unsigned length,
                          cgs_region_t *region)
{
    range_t *range;

    if (HASH_COUNT(*ranges) >= MAX_RANGES) {
        return NULL;
    }
    range = calloc(1, sizeof(*range));
    if (range == NULL) {
        return NULL;
    }
    range->region = region;
    range->key    = strdup(key);
    if (range->key != NULL) {
        HASH_ADD_KEYPTR(hh, *ranges, range->key, length, range);
        if (range->hh.tbl != NULL) {
            return range;
        }
    }
    free(range->key);
    free(range);
    return NULL;
}

/* Whether a range is of that domain and text. */
static bool is_range(const range_t *range, const char *domain,
                     const char *text)
{
    size_t length = 0;

    if (domain != NULL) {
        length = strlen(domain);
        if (strncmp(range->key, domain, length) != 0) {
            return false;
        }
    }
    return (range->key[length] == '\n') &&
           !strcmp(range->key + length + 1, text);
}

static cgs_region_t *find_region(const char *domain, const char *text,
                                 bool start_end, range_t **seen)
{
    range_t      **ranges = start_end ? &regions.start_ranges :
                                        &regions.push_ranges;
    cgs_region_t *region;
    range_t      *range;
    char         key[512];
    int          length;

    length = snprintf(key, sizeof(key), "%s\n%s",
                      domain != NULL ? domain : "", text);
    if (length >= (int)sizeof(key)) {
        return NULL; /* no name that anybody would give to a region */
    }

    cgs_config_get(); /* may print, so not under the lock */
    cgs_lock(&regions.lock);
    HASH_FIND_STR(*ranges, key, range);
    if (range != NULL) {
        region = range->region;
    } else {
        region = decide(domain, text, start_end);
        range  = add_range(ranges, key, (unsigned)length, region);
    }
    cgs_unlock(&regions.lock);
    *seen = range;
    return region;
}

cgs_region_t *cgs_region_of_range(const char *domain, const char *text,
                                  bool start_end)
{
    /* What this thread saw last, by where the text lies: a program says the
     * same from the same place. What lies there is compared all the same. */
    static __thread range_t *seen[SEEN_RANGES];
    range_t                 **slot = &seen[(((uintptr_t)text >> 3) ^
                                            ((uintptr_t)text >> 9)) %
                                           SEEN_RANGES];
    range_t                 *ignored;

    if (start_end) {
        return find_region(domain, text, true, &ignored);
    }
    if ((*slot != NULL) && is_range(*slot, domain, text)) {
        return (*slot)->region;
    }
    return find_region(domain, text, false, slot);
}

size_t cgs_region_unmatched(const char **texts, size_t max)
{
    range_t *range;
    size_t  num = 0;

    cgs_lock(&regions.lock);
    for (range = regions.push_ranges; (range != NULL) && (num < max);
         range = range->hh.next) {
        if (range->region == NULL) {
            texts[num++] = strchr(range->key, '\n') + 1;
        }
    }
    cgs_unlock(&regions.lock);
    return num;
}

cgs_region_t *cgs_region_of_rule(const cgs_rule_t *rule)
{
    cgs_region_t *region;

    cgs_lock(&regions.lock);
    region = add_region(rule->name, rule, false);
    cgs_unlock(&regions.lock);
    return region;
}

cgs_region_t *cgs_region_automatic(const char *name, uint64_t unit)
{
    const cgs_rule_t *rule = &cgs_config_get()->defaults;
    cgs_region_t     *region;

    cgs_lock(&regions.lock);
    region = add_region(name, rule, true);
    cgs_unlock(&regions.lock);
    if ((region == NULL) || atomic_exchange(&region->claimed, true)) {
        return NULL;
    }
    if (region->unit != unit) {
        cgs_region_destroy(region, "it is to repeat something else");
        region->unit = unit;
    }
    return region;
}

void cgs_region_give_back(cgs_region_t *region)
{
    atomic_store(&region->claimed, false);
}

void cgs_region_abandon(cgs_region_t *region)
{
    atomic_store(&region->abandoned, true);
    cgs_timer_arm();
}

bool cgs_region_owns_stream(const cgs_region_t *region, CUstream stream)
{
    unsigned num = atomic_load_explicit(&region->num_streams,
                                        memory_order_acquire);
    unsigned i;

    for (i = 0; i < num; ++i) {
        if (atomic_load_explicit(&region->streams[i], memory_order_relaxed) ==
            stream) {
            return true;
        }
    }
    return false;
}

void cgs_region_own_stream(cgs_region_t *region, CUstream stream)
{
    unsigned num = atomic_load_explicit(&region->num_streams,
                                        memory_order_relaxed);

    if ((num < CGS_MAX_STREAMS) && !cgs_region_owns_stream(region, stream)) {
        atomic_store_explicit(&region->streams[num], stream,
                              memory_order_relaxed);
        atomic_store_explicit(&region->num_streams, num + 1,
                              memory_order_release);
    }
}

void cgs_region_disown_streams(cgs_region_t *region)
{
    atomic_store_explicit(&region->num_streams, 0, memory_order_release);
}

/* Runs that the gate sends plain are counted before they come, and may not. */
static void recount_gate(cgs_region_stats_t *stats)
{
    size_t i;

    for (i = 0; i < stats->fallbacks.num; ++i) {
        if (stats->fallbacks.entry[i].reason == cgs_by_gate) {
            stats->fallbacks.entry[i].count = stats->unseen_runs;
        }
    }
}

/* Whether the next run is replayed or recorded at all; else it is over. */
static bool pass_gate(cgs_region_t *region)
{
    cgs_times_t *times = &region->stats.times;
    uint64_t    now_ns;
    uint32_t    shut;

    if ((cgs_config_get()->mode != CGS_MODE_ON) || region->recapture ||
        (region->stats.runs < region->rule->warmup) ||
        cgs_recording_is_empty(&region->recording)) {
        cgs_times_break(times);
        return true;
    }
    now_ns = cgs_clock_ns();
    cgs_times_start(times, &region->gate, now_ns);
    /* What is verified takes its time. */
    if (cgs_gate_enter(&region->gate, region->rule->verify > 0 ?
                       CGS_GATE_OFF : region->rule->gate, now_ns)) {
        return true;
    }
    if (cgs_gate_is_untimed(&region->gate)) {
        region->watch = true;
        return true;
    }
    shut = cgs_gate_take_closed(&region->gate);
    cgs_times_skip(times, shut);
    atomic_store_explicit(&region->shut, shut, memory_order_relaxed);
    region->stats.runs        += 1 + shut;
    region->stats.plain_runs  += 1 + shut;
    region->stats.unseen_runs += 1 + shut;
    cgs_region_fallback(region, cgs_by_gate);
    recount_gate(&region->stats);
    cgs_gate_leave(&region->gate, CGS_PATH_PLAIN);
    return false;
}

static void note_entered(cgs_region_t *region)
{
    atomic_store_explicit(&region->entered_before,
                          atomic_load_explicit(&region->entered,
                                               memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&region->entered,
                          atomic_fetch_add_explicit(&regions.entered, 1,
                                                    memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

cgs_enter_t cgs_region_enter(cgs_region_t *region)
{
    cgs_thread_t *self = &cgs_self;
    unsigned     shut  = atomic_load_explicit(&region->shut,
                                              memory_order_relaxed);
    bool         open;

    while (shut > 0) {
        if (atomic_compare_exchange_weak(&region->shut, &shut, shut - 1)) {
            return CGS_ENTER_SHUT;
        }
    }
    if (atomic_exchange_explicit(&region->busy, true, memory_order_acquire)) {
        cgs_lock(&region->lock);
        cgs_region_fallback(region, "it was open in another thread");
        cgs_unlock(&region->lock);
        return CGS_ENTER_REFUSED;
    }
    ++self->guard;
    cgs_lock(&region->lock);
    open = pass_gate(region);
    cgs_trace_gate(region);
    if (!open) {
        cgs_unlock(&region->lock);
        --self->guard;
        atomic_store_explicit(&region->busy, false, memory_order_release);
        return CGS_ENTER_SHUT;
    }
    note_entered(region);
    cgs_trace_run_begins(region);
    cgs_cursor_start(region);
    self->region     = region;
    self->joined     = false;
    self->marked     = false;
    self->run_serial = atomic_fetch_add(&region->run_serial, 1) + 1;
    self->ctx_known  = false;
    cgs_unlock(&region->lock);
    --self->guard;

    if (!cgs_flow_open(region)) {
        self->region = NULL;
        atomic_store_explicit(&region->busy, false, memory_order_release);
        return CGS_ENTER_REFUSED;
    }
    cgs_life_gate_add(1);
    return CGS_ENTERED;
}

/* A region that has run once is the first to go: it may never come again, and
 * is recorded anew if it does. */
static void forget_first_runs(void)
{
    cgs_region_t *region;

    atomic_store(&regions.first_bytes, 0);
    for (region = cgs_region_first(); region != NULL; region = region->next) {
        if (atomic_exchange(&region->busy, true)) {
            continue;
        }
        cgs_lock(&region->lock);
        if (region->stats.runs == 1) {
            cgs_recording_release(&region->recording);
            atomic_store_explicit(&region->has_recording, false,
                                  memory_order_relaxed);
        }
        cgs_unlock(&region->lock);
        atomic_store(&region->busy, false);
    }
}

static void count_first_run(cgs_region_t *region)
{
    size_t bytes = 0;

    cgs_lock(&region->lock);
    if (region->stats.runs == 1) {
        bytes = cgs_recording_bytes(&region->recording);
    }
    cgs_unlock(&region->lock);
    if ((bytes > 0) &&
        (atomic_fetch_add(&regions.first_bytes, bytes) + bytes >
         MAX_FIRST_BYTES)) {
        forget_first_runs();
    }
}

/* The region that was not entered for longest, and not since this one's last
 * run but one: what is used by turns is kept, whoever came first. */
static cgs_region_t *find_idle(const cgs_region_t *wanting)
{
    uint64_t     limit   = atomic_load(&wanting->entered_before);
    cgs_region_t *oldest = NULL;
    cgs_region_t *region;

    for (region = cgs_region_first(); region != NULL; region = region->next) {
        if ((region != wanting) && !atomic_load(&region->busy) &&
            atomic_load(&region->has_recording) &&
            (atomic_load(&region->entered) < limit) &&
            ((oldest == NULL) || (atomic_load(&region->entered) <
                                  atomic_load(&oldest->entered)))) {
            oldest = region;
        }
    }
    return oldest;
}

/* Give up what was not used for longest, here or elsewhere, so that the region
 * finds memory in its next run. */
static void make_room(cgs_region_t *wanting)
{
    cgs_region_t *idle = find_idle(wanting);

    if ((idle == NULL) || atomic_exchange(&idle->busy, true)) {
        return;
    }
    cgs_region_destroy(idle, "its memory was wanted elsewhere");
    atomic_store(&idle->busy, false);
}

/* Variants of the region's own that were not followed for many runs. */
static void drop_old_variants(cgs_region_t *region)
{
    cgs_variant_t *variant = region->recording.all;
    cgs_variant_t *older;

    for (; variant != NULL; variant = older) {
        older = variant->older;
        if ((variant->place->num > 1) &&
            (variant->last_run + IDLE_RUNS < region->stats.runs)) {
            cgs_recording_remove(&region->recording, variant);
            /* It may have led to the next one in the list. */
            older = region->recording.all;
        }
    }
}

void cgs_region_leave(cgs_region_t *region)
{
    bool wants_memory;

    ++cgs_self.guard;
    cgs_lock(&region->lock);
    cgs_cursor_finish(region);
    wants_memory         = region->wants_memory;
    region->wants_memory = false;
    if (wants_memory) {
        drop_old_variants(region);
    }
    atomic_store_explicit(&region->has_recording,
                          !cgs_recording_is_empty(&region->recording),
                          memory_order_relaxed);
    atomic_fetch_add(&region->run_serial, 1);
    region->range_id  = 0;
    region->last_call = 0;
    atomic_store_explicit(&region->records_alone, false, memory_order_relaxed);
    cgs_unlock(&region->lock);
    --cgs_self.guard;

    cgs_flow_close(region);
    cgs_life_gate_add(-1);
    count_first_run(region);
    if (wants_memory) {
        make_room(region);
    }
    atomic_store_explicit(&region->busy, false, memory_order_release);
    cgs_trace_settle();
}

/* Count a reason; true if it is new. */
static bool count_reason(cgs_reasons_t *reasons, const char *reason)
{
    size_t i;

    reasons->last = reason;
    for (i = 0; i < reasons->num; ++i) {
        if (reasons->entry[i].reason == reason) {
            ++reasons->entry[i].count;
            return false;
        }
    }
    if (reasons->num == CGS_MAX_FALLBACKS) {
        return false;
    }
    reasons->entry[reasons->num++] = (cgs_fallback_t){
        .reason = reason,
        .count  = 1,
    };
    return true;
}

void cgs_region_fallback(cgs_region_t *region, const char *reason)
{
    cgs_trace_mark(CGS_TRACE_FALLBACK, region, reason, 0);
    if (count_reason(&region->stats.fallbacks, reason)) {
        cgs_log_often(CGS_LOG_INFO, "region %s: plain in run %llu: %s",
                      region->name, (unsigned long long)region->stats.runs,
                      reason);
    }
}

void cgs_region_leave_unverified(cgs_region_t *region, const char *reason)
{
    if (count_reason(&region->stats.unverified, reason)) {
        cgs_log(CGS_LOG_INFO, "region %s: not verified in run %llu: %s",
                region->name, (unsigned long long)region->stats.runs, reason);
    }
}

void cgs_region_cut(cgs_region_t *region, const char *reason)
{
    if (count_reason(&region->stats.cuts, reason)) {
        cgs_log_often(CGS_LOG_INFO, "region %s: cut in run %llu: %s",
                      region->name, (unsigned long long)region->stats.runs,
                      reason);
    }
}

static void measure_chunk(cgs_region_stats_t *stats, const cgs_chunk_t *chunk)
{
    ++stats->chunks;
    if (chunk->exec != NULL) {
        stats->nodes        += chunk->num_ops;
        stats->device_bytes += chunk->device_bytes;
    }
}

void cgs_region_measure(cgs_region_t *region)
{
    cgs_region_stats_t  *stats = &region->stats;
    const cgs_variant_t *variant;
    uint32_t            i;

    stats->variants     = region->recording.num_variants;
    stats->chunks       = 0;
    stats->nodes        = 0;
    stats->host_bytes   = cgs_recording_bytes(&region->recording);
    stats->device_bytes = 0;
    for (variant = region->recording.all; variant != NULL;
         variant = variant->older) {
        for (i = 0; i < variant->phases.num; ++i) {
            measure_chunk(stats, variant->phases.chunk[i]);
        }
    }
}

static cgshim_state_t state_of(const cgs_region_t *region)
{
    const cgs_region_stats_t *stats = &region->stats;

    if (stats->runs <= region->rule->warmup) {
        return CGSHIM_STATE_WARM_UP;
    }
    if (stats->destroyed) {
        return CGSHIM_STATE_ENDED;
    }
    if (stats->chunks == 0) {
        return CGSHIM_STATE_PLAIN;
    }
    return stats->nodes > 0 ? CGSHIM_STATE_REPLAYING :
           stats->builds == 0 ? CGSHIM_STATE_RECORDED : CGSHIM_STATE_PLAIN;
}

const char *cgs_region_state_name(cgshim_state_t state)
{
    static const char *const names[] = {
        [CGSHIM_STATE_WARM_UP]   = "warm-up",
        [CGSHIM_STATE_PLAIN]     = "plain",
        [CGSHIM_STATE_RECORDED]  = "recorded",
        [CGSHIM_STATE_REPLAYING] = "replaying",
        [CGSHIM_STATE_ENDED]     = "ended",
    };

    return names[state];
}

bool cgs_region_snapshot(cgs_region_t *region, cgs_region_stats_t *stats,
                         cgshim_state_t *state)
{
    bool     locked = cgs_lock_for(&region->lock, LOOK_WAIT_MS);
    unsigned shut;

    /* Without the lock, look at nothing that is being changed. */
    if (locked && !region->stats.destroyed) {
        cgs_region_measure(region);
    }
    /* Those that were counted before they come. */
    shut                = atomic_load(&region->shut);
    *state              = state_of(region);
    *stats              = region->stats;
    stats->runs        -= shut;
    stats->plain_runs  -= shut;
    stats->unseen_runs -= shut;
    recount_gate(stats);
    if (locked) {
        cgs_unlock(&region->lock);
    }
    return locked;
}

/* Runs that were to go plain without a question, and were counted. */
static void ask_gate_again(cgs_region_t *region)
{
    unsigned shut = atomic_exchange(&region->shut, 0);

    cgs_times_break(&region->stats.times);
    region->stats.runs        -= shut;
    region->stats.plain_runs  -= shut;
    region->stats.unseen_runs -= shut;
    recount_gate(&region->stats);
}

void cgs_region_recapture(cgs_region_t *region)
{
    cgs_lock(&region->lock);
    region->recapture           = true;
    region->stats.mistake.valid = false;
    ask_gate_again(region);
    cgs_unlock(&region->lock);
}

bool cgs_region_destroy(cgs_region_t *region, const char *reason)
{
    bool found;

    ++cgs_self.guard;
    cgs_lock(&region->lock);
    found = !cgs_recording_is_empty(&region->recording);
    if (found) {
        cgs_log_often(CGS_LOG_INFO, "region %s: destroyed: %s", region->name,
                      reason);
        cgs_trace_mark(CGS_TRACE_DESTROYED, region, reason, 0);
        cgs_region_measure(region);
        region->stats.destroyed = true;
        cgs_region_disown_streams(region);
        cgs_cursor_go_plain(region, reason);
        cgs_recording_release(&region->recording);
        atomic_store_explicit(&region->has_recording, false,
                              memory_order_relaxed);
        ask_gate_again(region);
    }
    cgs_unlock(&region->lock);
    --cgs_self.guard;
    return found;
}

bool cgs_region_give_up_memory(const char *reason)
{
    cgs_region_t *region;
    bool         found = false;

    for (region = cgs_region_first(); region != NULL; region = region->next) {
        if (cgs_region_destroy(region, reason)) {
            found = true;
            cgs_lock(&region->lock);
            region->record_run = region->stats.runs + RUNS_WITHOUT_MEMORY;
            cgs_unlock(&region->lock);
        }
    }
    return found;
}

void cgs_region_destroy_all(const char *reason)
{
    cgs_region_t *region;

    for (region = cgs_region_first(); region != NULL; region = region->next) {
        cgs_region_destroy(region, reason);
    }
    cgs_function_forget_all();
    cgs_marks_forget();
}
