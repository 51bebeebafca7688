/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows. At first CUPTI is off. When a region has been timed for some runs
 * it is switched on, at the start of a run; and off again when the regions that
 * come by have been recorded for some runs. What a region does while it is
 * switched counts for nothing. In a program without regions a thread of ours
 * switches it on for a while.
 *
 * The lock guards all windows and runs. It is not held while CUPTI is
 * switched, which calls the driver and takes long.
 */
#define _GNU_SOURCE
#include "profile.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "life.h"
#include "log.h"
#include "profile_calls.h"
#include "profile_cupti.h"
#include "profile_join.h"
#include "profile_print.h"
#include "profile_region.h"
#include "region.h"

/* Runs of a region that are timed before it is recorded: so many, or fewer of
 * longer ones. */
#define PLAIN_RUNS     16
#define FEW_PLAIN_RUNS 7 /* of which some warm up */
#define FEW_PLAIN_NS   20000000u
/* Runs that are recorded, likewise. */
#define RECORD_RUNS     64
#define FEW_RECORD_RUNS 8
#define FEW_RECORD_NS   1000000000u
/* A window in which other regions still want to be recorded. */
#define MAX_WINDOW_NS   2000000000u
/* Without a region: the time before the window, its length, calls that are seen
 * in both at least, and how often a thread looks. */
#define IDLE_PLAIN_NS  300000000u
#define IDLE_RECORD_NS 1000000000u
#define IDLE_CALLS     500
#define IDLE_LOOK_US   10000
/* Runs that are open at once, and that are kept. */
#define MAX_OPEN     256
#define MAX_PROFILED 65536
/* How long exit waits for a thread that switches CUPTI. */
#define EXIT_WAIT_MS 2000

/* An open run. */
typedef struct {
    cgs_profile_region_t *region; /* NULL: free */
    uint64_t             serial;  /* another one for each run */
    uint64_t             range_id, began_ns, window;
    uint32_t             thread, pthread;
    bool                 is_timed; /* by what its thread counts */
} open_t;

static struct {
    atomic_bool          on;
    const char           *target;
    uint64_t             clock_ns;   /* a reading of the clock */
    atomic_uint          num_open;   /* for other threads' calls */

    pthread_mutex_t      mutex;      /* for all below */
    bool                 is_recording, is_switching, was_loaded;
    bool                 has_ended, gave_up;
    uint64_t             window;     /* another number for each */
    uint64_t             window_ns;  /* when it began */
    uint64_t             began_ns;   /* the whole */
    uint64_t             plain_ns, recorded_ns; /* in windows of both kinds */
    uint64_t             serial;
    cgs_profile_region_t *regions;
    open_t               open[MAX_OPEN];
    cgs_profile_run_t    *runs;
    size_t               num_runs, runs_capacity;
    uint64_t             runs_left_out;
} profile = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
};

/* The run that the calling thread has open. */
static __thread struct {
    open_t   *open;
    uint64_t serial;
    uint64_t domain; /* hash of the range's, 0 for none */
    uint32_t depth;  /* ranges nested in it, same domain */
} self;

bool cgs_profile_is_on(void)
{
    return atomic_load_explicit(&profile.on, memory_order_acquire) &&
           !cgs_life_is_child();
}

/* ---- Windows ---- */

/* Under the lock, when CUPTI has been switched. */
static void begin_window(bool is_recording)
{
    uint64_t now_ns = cgs_clock_ns();

    *(profile.is_recording ? &profile.recorded_ns : &profile.plain_ns) +=
        now_ns - profile.window_ns;
    profile.is_recording = is_recording;
    profile.window_ns    = now_ns;
    ++profile.window;
    atomic_store(&cgs_profile_is_slow, is_recording);
}

/* Under the lock, which is not held meanwhile. */
static void switch_to(bool recording)
{
    const char *problem;

    profile.is_switching = true;
    /* Its beginning is not a plain time any more. */
    atomic_store(&cgs_profile_is_slow, true);
    pthread_mutex_unlock(&profile.mutex);
    ++cgs_profile_self.quiet;
    problem = cgs_profile_cupti_switch(recording);
    --cgs_profile_self.quiet;
    pthread_mutex_lock(&profile.mutex);
    profile.is_switching = false;
    profile.gave_up     |= problem != NULL;
    if (recording && !profile.was_loaded && (problem == NULL)) {
        profile.was_loaded = true;
        /* Before what CUPTI may have registered. */
        atexit(cgs_profile_finish);
    }
    begin_window(recording && (problem == NULL));
    if (problem != NULL) {
        cgs_log_complain("CGSHIM_PROFILE=%s: %s; %s", profile.target, problem,
                         profile.was_loaded ? "the profile ends here" :
                                              "there is no profile");
    }
}

static bool was_timed(const cgs_profile_region_t *region, uint64_t now_ns)
{
    uint64_t runs = region->samples[0] + region->samples[1];

    return (runs >= PLAIN_RUNS) ||
           ((runs >= FEW_PLAIN_RUNS) &&
            (now_ns - region->first_ns >= FEW_PLAIN_NS));
}

static bool was_recorded(const cgs_profile_region_t *region, uint64_t now_ns)
{
    return (region->profiled >= RECORD_RUNS) ||
           ((region->profiled >= FEW_RECORD_RUNS) && profile.is_recording &&
            (now_ns - profile.window_ns >= FEW_RECORD_NS));
}

/* Whether another region that comes by is still to be recorded. */
static bool others_want(uint64_t now_ns)
{
    const cgs_profile_region_t *region;

    if (now_ns - profile.window_ns > MAX_WINDOW_NS) {
        return false;
    }
    for (region = profile.regions; region != NULL; region = region->next) {
        if ((region->window + 1 >= profile.window) &&
            was_timed(region, now_ns) && !was_recorded(region, now_ns)) {
            return true;
        }
    }
    return false;
}

/* A run of the region is about to start. Under the lock. */
static void choose_window(const cgs_profile_region_t *region)
{
    uint64_t now_ns = cgs_clock_ns();

    if (profile.is_switching || profile.has_ended || profile.gave_up) {
        return;
    }
    if (profile.is_recording) {
        if (cgs_profile_cupti_is_full() ||
            (was_recorded(region, now_ns) && !others_want(now_ns))) {
            switch_to(false);
        }
    } else if ((region->profiled < FEW_RECORD_RUNS) &&
               was_timed(region, now_ns) && !cgs_profile_cupti_is_full()) {
        switch_to(true);
    }
}

/* Under the lock: whether the thread's window begins, or ends. */
static bool is_time_to_record(void)
{
    return !profile.is_recording && !profile.is_switching &&
           (cgs_clock_ns() - profile.began_ns >= IDLE_PLAIN_NS) &&
           (atomic_load(&cgs_profile_outside.calls) >= IDLE_CALLS);
}

static bool is_time_to_stop(void)
{
    return profile.is_recording && !profile.is_switching &&
           (cgs_profile_cupti_is_full() ||
            ((cgs_clock_ns() - profile.window_ns >= IDLE_RECORD_NS) &&
             (atomic_load(&cgs_profile_outside.slow_calls) >= IDLE_CALLS)));
}

/* Until a region comes, or the program without one has been recorded. Under the
 * lock. @return whether there is more to do. */
static bool watch_once(void)
{
    if ((profile.regions != NULL) || profile.has_ended || profile.gave_up) {
        return false;
    }
    if (is_time_to_record()) {
        switch_to(true);
    } else if (is_time_to_stop()) {
        switch_to(false);
        return false;
    }
    return true;
}

static void *watch(void *arg)
{
    bool more = true;

    (void)arg;
    pthread_setname_np(pthread_self(), "cgshim-profile");
    while (more) {
        usleep(IDLE_LOOK_US);
        pthread_mutex_lock(&profile.mutex);
        more = watch_once();
        pthread_mutex_unlock(&profile.mutex);
    }
    return NULL;
}

static void start_watch(void)
{
    sigset_t  all, before;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, watch, NULL) == 0) {
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- Runs ---- */

cgs_profile_owner_t *cgs_profile_find_owner(CUstream stream)
{
    cgs_profile_owner_t *owner;
    unsigned            i, k;

    if (atomic_load_explicit(&profile.num_open, memory_order_relaxed) == 0) {
        return NULL;
    }
    /* Regions live on; a run that has just ended gets a call too many. */
    for (i = 0; i < MAX_OPEN; ++i) {
        owner = (cgs_profile_owner_t *)
                __atomic_load_n(&profile.open[i].region, __ATOMIC_ACQUIRE);
        for (k = 0; (owner != NULL) && (k < atomic_load(&owner->num_streams));
             ++k) {
            if (atomic_load(&owner->stream[k]) == stream) {
                return owner;
            }
        }
    }
    return NULL;
}

/* Under the lock. @return NULL without memory. */
static cgs_profile_region_t *get_region(cgs_region_t *range)
{
    cgs_profile_region_t *region = range->profile;

    if (region != NULL) {
        return region;
    }
    region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return NULL;
    }
    region->name     = range->name;
    region->has_rule = range->rule->name != NULL;
    region->first_ns = cgs_clock_ns();
    region->next     = profile.regions;
    profile.regions  = region;
    range->profile   = region;
    return region;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* The time from the region's last start to now. Under the lock. */
static void add_sample(cgs_profile_region_t *region, uint64_t now_ns)
{
    const cgs_profile_counts_t *in    = &region->in;
    const cgs_profile_counts_t *after = &cgs_profile_self.after;
    cgs_profile_sample_t       *sample;
    uint64_t                   calls, call_ns, all;
    int                        kind   = profile.was_loaded;

    calls   = in->calls + atomic_exchange(&region->owner.calls, 0);
    call_ns = in->call_ns + atomic_exchange(&region->owner.call_ns, 0);
    if (!region->is_pending || profile.is_recording || profile.is_switching ||
        (region->began_window != profile.window) ||
        (region->thread != (int)syscall(SYS_gettid))) {
        return;
    }
    if (region->sample[kind] == NULL) {
        region->sample[kind] = calloc(CGS_PROFILE_SAMPLES, sizeof(*sample));
        if (region->sample[kind] == NULL) {
            return;
        }
    }
    /* Without what the readings of the clock took. */
    all    = calls + after->calls + in->waits + after->waits;
    sample = &region->sample[kind][region->samples[kind]++ %
                                   CGS_PROFILE_SAMPLES];
    sample->run_ns   = less(now_ns - region->began_ns,
                            2 * all * profile.clock_ns);
    sample->calls    = calls;
    sample->call_ns  = less(call_ns, calls * profile.clock_ns);
    sample->waits    = in->waits + after->waits;
    sample->wait_ns  = less(in->wait_ns + after->wait_ns,
                            sample->waits * profile.clock_ns);
    sample->waits_in = in->waits;
}

/* Under the lock. @return NULL where too many are open. */
static open_t *take_open(void)
{
    unsigned i;

    for (i = 0; i < MAX_OPEN; ++i) {
        if (profile.open[i].region == NULL) {
            profile.open[i].serial = ++profile.serial;
            return &profile.open[i];
        }
    }
    return NULL;
}

/* Under the lock. */
static open_t *begin_run(cgs_profile_region_t *region, uint64_t range_id)
{
    uint64_t now_ns = cgs_clock_ns();
    open_t   *open;

    /* Of runs that overlap there is no time from start to start. */
    if (region->num_open > 0) {
        region->is_pending = false;
    }
    add_sample(region, now_ns);
    choose_window(region);
    open = take_open();
    ++region->runs;
    if (region->window != profile.window) {
        region->window    = profile.window;
        region->in_window = 0;
    }
    ++region->in_window;
    region->is_pending = false;
    if (open == NULL) {
        return NULL;
    }
    open->range_id = range_id;
    open->began_ns = cgs_clock_ns();
    open->window   = profile.window;
    open->thread   = (uint32_t)syscall(SYS_gettid);
    open->pthread  = (uint32_t)pthread_self();
    open->is_timed = region->num_open == 0;
    __atomic_store_n(&open->region, region, __ATOMIC_RELEASE);
    ++region->num_open;
    atomic_fetch_add(&profile.num_open, 1);
    return open;
}

/* Under the lock. */
static void keep_profiled(const open_t *open)
{
    size_t            more = profile.runs_capacity > 0 ?
                             2 * profile.runs_capacity : 256;
    cgs_profile_run_t *grown;

    if (profile.num_runs == profile.runs_capacity) {
        grown = profile.num_runs < MAX_PROFILED ?
                realloc(profile.runs, more * sizeof(*grown)) : NULL;
        if (grown == NULL) {
            ++profile.runs_left_out;
            return;
        }
        profile.runs          = grown;
        profile.runs_capacity = more;
    }
    profile.runs[profile.num_runs++] = (cgs_profile_run_t){
        .region   = open->region,
        .began_ns = open->began_ns,
        .ended_ns = cgs_clock_ns(),
        .thread   = open->thread,
        .pthread  = open->pthread,
    };
    ++open->region->profiled;
}

/* Under the lock.
 * @param counts What its thread has counted, NULL where another one ends it. */
static void end_run(open_t *open, const cgs_profile_counts_t *counts)
{
    cgs_profile_region_t *region = open->region;
    bool                 is_whole = (open->window == profile.window) &&
                                    !profile.is_switching;

    if (profile.is_recording && is_whole && !profile.has_ended) {
        keep_profiled(open);
    }
    region->is_pending = is_whole && open->is_timed &&
                         (region->num_open == 1) && (counts != NULL);
    if (region->is_pending) {
        region->began_ns     = open->began_ns;
        region->began_window = open->window;
        region->thread       = (int)open->thread;
        region->in           = *counts;
    }
    --region->num_open;
    atomic_fetch_sub(&profile.num_open, 1);
    __atomic_store_n(&open->region, NULL, __ATOMIC_RELEASE);
}

/* ---- Ranges ---- */

static uint64_t hash_domain(const char *domain)
{
    return domain != NULL ? cgs_op_hash_bytes(domain, strlen(domain), 1) : 0;
}

/* Whether the thread's run is open still; another thread may have ended it.
 * Under the lock. */
static bool is_open(void)
{
    return (self.open != NULL) && (self.open->serial == self.serial) &&
           (self.open->region != NULL);
}

static void forget_run(void)
{
    self.open              = NULL;
    cgs_profile_self.owner = NULL;
}

static void open_run(const char *domain, const char *text, uint64_t id)
{
    cgs_region_t         *range  = cgs_region_of_range(domain, text, id != 0);
    cgs_profile_region_t *region = NULL;

    if (range == NULL) {
        return;
    }
    pthread_mutex_lock(&profile.mutex);
    if (!profile.has_ended) {
        region = get_region(range);
    }
    self.open = region != NULL ? begin_run(region, id) : NULL;
    if (self.open != NULL) {
        self.serial            = self.open->serial;
        self.domain            = hash_domain(domain);
        self.depth             = 0;
        cgs_profile_self.owner = &region->owner;
        cgs_profile_self.in    = (cgs_profile_counts_t){0};
        cgs_profile_self.after = (cgs_profile_counts_t){0};
    }
    pthread_mutex_unlock(&profile.mutex);
}

/* Whether the thread has a run open. */
static bool has_run(void)
{
    bool open;

    if (self.open == NULL) {
        return false;
    }
    pthread_mutex_lock(&profile.mutex);
    open = is_open();
    pthread_mutex_unlock(&profile.mutex);
    if (!open) {
        forget_run();
    }
    return open;
}

static void close_run(void)
{
    pthread_mutex_lock(&profile.mutex);
    if (is_open()) {
        end_run(self.open, &cgs_profile_self.in);
    }
    pthread_mutex_unlock(&profile.mutex);
    forget_run();
}

void cgs_profile_push(const char *domain, const char *text)
{
    if (!cgs_profile_is_on()) {
        return;
    }
    if (!has_run()) {
        open_run(domain, text, 0);
    } else if ((self.open->range_id == 0) &&
               (self.domain == hash_domain(domain))) {
        ++self.depth;
    }
}

void cgs_profile_pop(const char *domain)
{
    if (!cgs_profile_is_on() || !has_run() || (self.open->range_id != 0) ||
        (self.domain != hash_domain(domain))) {
        return;
    }
    if (self.depth > 0) {
        --self.depth;
    } else {
        close_run();
    }
}

void cgs_profile_start(const char *domain, const char *text, uint64_t id)
{
    if (cgs_profile_is_on() && !has_run()) {
        open_run(domain, text, id);
    }
}

void cgs_profile_end(uint64_t id)
{
    unsigned i;

    if (!cgs_profile_is_on()) {
        return;
    }
    if (has_run() && (self.open->range_id == id)) {
        close_run();
        return;
    }
    pthread_mutex_lock(&profile.mutex);
    for (i = 0; i < MAX_OPEN; ++i) {
        if ((profile.open[i].region != NULL) &&
            (profile.open[i].range_id == id)) {
            end_run(&profile.open[i], NULL);
            break;
        }
    }
    pthread_mutex_unlock(&profile.mutex);
}

/* ---- Begin and end ---- */

void cgs_profile_begin(const char *target)
{
    const char *problem = cgs_profile_cupti_load();

    if (problem != NULL) {
        cgs_log_complain("CGSHIM_PROFILE=%s: %s; there is no profile", target,
                         problem);
        return;
    }
    profile.target    = target;
    profile.clock_ns  = cgs_profile_clock_cost();
    profile.began_ns  = cgs_clock_ns();
    profile.window_ns = profile.began_ns;
    profile.window    = 2; /* no region was in one before */
    cgs_profile_calls_install();
    atomic_store(&profile.on, true);
    atexit(cgs_profile_finish);
    start_watch();
}

/* The thread that has the lock, or switches, may never come back. */
static bool lock_at_exit(void)
{
    int milliseconds = EXIT_WAIT_MS;

    for (;;) {
        if (pthread_mutex_trylock(&profile.mutex) == 0) {
            if (!profile.is_switching) {
                return true;
            }
            pthread_mutex_unlock(&profile.mutex);
        }
        if (milliseconds-- <= 0) {
            return false;
        }
        usleep(1000);
    }
}

static void write_profile(void)
{
    cgs_profile_source_t source = {
        .clock_ns      = profile.clock_ns,
        .regions       = profile.regions,
        .runs          = profile.runs,
        .num_runs      = profile.num_runs,
        .runs_left_out = profile.runs_left_out,
        .elapsed_ns    = cgs_clock_ns() - profile.began_ns,
        .plain_ns      = profile.plain_ns,
        .recorded_ns   = profile.recorded_ns,
        .was_recorded  = profile.was_loaded,
    };
    cgs_profile_t result;
    int           status = -ENOMEM;

    source.records = cgs_profile_cupti_finish();
    if (cgs_profile_join(&source, &result) == 0) {
        status = cgs_profile_print(&result, profile.target);
    }
    cgs_profile_release(&result);
    if (status != 0) {
        cgs_log_complain("CGSHIM_PROFILE=%s: cannot be written (%s); there is "
                         "no profile", profile.target, strerror(-status));
    }
}

void cgs_profile_finish(void)
{
    bool is_first;

    if (!cgs_profile_is_on() || !lock_at_exit()) {
        return;
    }
    is_first = !profile.has_ended;
    if (is_first) {
        begin_window(profile.is_recording);
        profile.has_ended = true;
    }
    pthread_mutex_unlock(&profile.mutex);
    /* Where it never began a line has said so. */
    if (is_first && (profile.was_loaded || !profile.gave_up)) {
        ++cgs_profile_self.quiet;
        write_profile();
        --cgs_profile_self.quiet;
    }
}
