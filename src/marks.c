/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One region of this kind is open in a thread at a time. It is entered before
 * its first call and left right after its last, or where the next one begins.
 */
#include "marks.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "doors.h"
#include "flow.h"
#include "function.h"
#include "life.h"
#include "log.h"
#include "region.h"
#include "text.h"
#include "watch.h"

/* Kernels whose rules a thread knows. */
#define MAX_KERNELS 256

/* Calls that are looked at only for the report. */
#define MAX_LOOKED_AT 65536u

/* What a function that nothing is held back across is to loops and spans. */
enum {
    UNKNOWN,
    ASKS,   /* whether work is done */
    WAITS,  /* for the device */
    NEITHER
};

/* Which rules begin and end at a kernel: a bit for each. */
typedef struct {
    CUfunction function;
    uint32_t   from, to;
} kernel_t;

/* Of one thread. */
typedef struct {
    cgs_region_t     *region; /* that is open, or NULL */
    const cgs_rule_t *rule;   /* that opened it; NULL: found by itself */
    bool             last;    /* the call that is made is its last */
    bool             passes;  /* until the next wait nothing begins */
    uint64_t         plain_calls; /* that are left of a run that the gate sends
                                     plain: such runs are as long as others */
    const cgs_rule_t *plain_to;  /* it ends where this rule's runs do; NULL */
    cgs_watch_t      *watch;  /* NULL: nothing is looked for */
    unsigned         forgot;  /* state of what is known of kernels */
    kernel_t         kernels[MAX_KERNELS];
} marks_t;

bool cgs_marks_on;

static struct {
    const cgs_rule_t *rules[CGS_MARKS_RULES];
    unsigned         num_rules;
    bool             automatic;
    bool             looks;   /* only, for the report */
    atomic_bool      looked;  /* enough */
    atomic_ullong    looked_at, repeating;
    atomic_uint      seen;    /* a bit for each rule with which a kernel has
                                 begun */
    pthread_key_t    key;
    atomic_uint      forgot; /* changes when handles may mean other kernels */
    cgs_lock_t       lock;    /* of the next two */
    char             *kernels[CGS_MARKS_KERNELS]; /* that are of no rule */
    unsigned         num_kernels;
} marks;

/* In the static TLS block: found without a call. */
static __thread marks_t *own
    __attribute__((tls_model("initial-exec")));
/* The thread ends: destructors of the program's may still make calls, and
 * nothing would free what these begin. */
static __thread bool ended
    __attribute__((tls_model("initial-exec")));

/* ---- Threads ---- */

/* The thread ends. Driver calls are no longer its to make: the timer's thread
 * ends the run. In the child of a fork nothing is to be ended, and a thread of
 * ours would keep the process alive. */
static void end_thread(void *arg)
{
    marks_t *thread = arg;

    if ((thread->region != NULL) && !cgs_life_is_child() &&
        (cgs_flow_own_region() == thread->region)) {
        cgs_region_abandon(thread->region);
        cgs_self.region = NULL;
    }
    cgs_watch_destroy(thread->watch);
    free(thread);
    own   = NULL;
    ended = true;
}

static marks_t *begin_thread(void)
{
    marks_t *thread = ended ? NULL : calloc(1, sizeof(*thread));

    if (thread == NULL) {
        return NULL;
    }
    if (marks.automatic || (marks.looks && !atomic_load(&marks.looked))) {
        thread->watch = cgs_watch_create();
    }
    if (pthread_setspecific(marks.key, thread) != 0) {
        cgs_watch_destroy(thread->watch);
        free(thread);
        return NULL;
    }
    own = thread;
    return thread;
}

void cgs_marks_start(void)
{
    const cgs_config_t *config = cgs_config_get();
    const cgs_rule_t   *rule;

    for (rule = config->rules; rule < config->rules + config->num_rules;
         ++rule) {
        if (((rule->from == NULL) && !rule->between) || !rule->enable) {
            continue;
        }
        if (marks.num_rules == CGS_MARKS_RULES) {
            cgs_log_complain("CGSHIM_REGION_%s: %d rules with from or between "
                             "are taken; this one and later ones are ignored",
                             rule->name, CGS_MARKS_RULES);
            break;
        }
        marks.rules[marks.num_rules++] = rule;
    }
    marks.automatic = config->automatic;
    marks.looks     = !marks.automatic && config->every_range &&
                      (config->mode == CGS_MODE_ON) && (config->report != NULL);
    if (((marks.num_rules == 0) && !marks.automatic && !marks.looks) ||
        cgs_life_has_no_regions() ||
        (pthread_key_create(&marks.key, end_thread) != 0)) {
        return;
    }
    __atomic_store_n(&cgs_marks_on, true, __ATOMIC_RELEASE);
    cgs_life_gate_add(1); /* for good: every call is looked at */
}

/* ---- Looking only ---- */

static void look_no_more(void)
{
    if (!atomic_exchange(&marks.looked, true)) {
        cgs_life_gate_add(-1);
    }
}

static bool looks_on(const marks_t *thread)
{
    return (thread != NULL) && (thread->watch != NULL) &&
           !atomic_load_explicit(&marks.looked, memory_order_relaxed);
}

static void look(marks_t *thread, const cgs_call_t *call)
{
    if (!looks_on(thread)) {
        return;
    }
    if ((cgs_flow_own_region() != NULL) || cgs_self.shut ||
        (atomic_load_explicit(&marks.looked_at, memory_order_relaxed) >=
         MAX_LOOKED_AT)) {
        look_no_more(); /* there are regions, or it is enough */
        return;
    }
    atomic_fetch_add_explicit(&marks.looked_at, 1, memory_order_relaxed);
    if (cgs_watch_see_call(thread->watch, call)) {
        atomic_fetch_add_explicit(&marks.repeating, 1, memory_order_relaxed);
    }
}

void cgs_marks_seen(cgs_marks_seen_t *seen)
{
    /* In the other order these could be more than all. */
    seen->repeating = atomic_load(&marks.repeating);
    seen->looked_at = atomic_load(&marks.looked_at);
    cgs_lock(&marks.lock);
    seen->num_kernels = marks.num_kernels;
    memcpy(seen->kernels, marks.kernels, sizeof(seen->kernels));
    cgs_unlock(&marks.lock);
}

/* ---- Rules ---- */

void cgs_marks_forget(void)
{
    atomic_fetch_add(&marks.forgot, 1);
}

static bool is_kernel(const char *glob, const char *mangled,
                      const char *demangled)
{
    return (glob != NULL) &&
           ((fnmatch(glob, mangled, 0) == 0) ||
            ((demangled != NULL) && (fnmatch(glob, demangled, 0) == 0)));
}

/* Keep the names of some kernels that no rule begins with. */
static void note_kernel(const char *name)
{
    unsigned i;

    cgs_lock(&marks.lock);
    for (i = 0; (i < marks.num_kernels) &&
                (strcmp(marks.kernels[i], name) != 0); ++i) {
    }
    if ((i == marks.num_kernels) && (i < CGS_MARKS_KERNELS)) {
        marks.kernels[i]   = strdup(name);
        marks.num_kernels += marks.kernels[i] != NULL;
    }
    cgs_unlock(&marks.lock);
}

static void ask_rules(kernel_t *kernel, CUfunction function)
{
    const char *mangled   = cgs_function_name(function);
    char       *demangled = cgs_text_demangle(mangled);
    unsigned   i;

    *kernel = (kernel_t){.function = function};
    for (i = 0; i < marks.num_rules; ++i) {
        kernel->from |= (uint32_t)is_kernel(marks.rules[i]->from, mangled,
                                            demangled) << i;
        kernel->to   |= (uint32_t)is_kernel(marks.rules[i]->to, mangled,
                                            demangled) << i;
    }
    atomic_fetch_or(&marks.seen, kernel->from);
    if (kernel->from == 0) {
        note_kernel(demangled != NULL ? demangled : mangled);
    }
    free(demangled);
}

static const kernel_t *find_kernel(marks_t *thread, const cgs_call_t *call)
{
    static const kernel_t no_kernel;
    CUfunction function = call->kernel.shape.function;
    unsigned   forgot   = atomic_load_explicit(&marks.forgot,
                                               memory_order_relaxed);
    kernel_t   *kernel;

    if ((call->kind != CGS_OP_KERNEL) || (function == NULL)) {
        return &no_kernel;
    }
    if (thread->forgot != forgot) {
        memset(thread->kernels, 0, sizeof(thread->kernels));
        thread->forgot = forgot;
    }
    kernel = &thread->kernels[((uintptr_t)function *
                               UINT64_C(0x9e3779b97f4a7c15)) >> 56];
    if (kernel->function != function) {
        ++cgs_self.guard;
        ask_rules(kernel, function);
        --cgs_self.guard;
    }
    return kernel;
}

_Static_assert(MAX_KERNELS == 256, "find_kernel() takes 8 bits");

/* ---- Entering and leaving ---- */

/* The call that it ends with, or NULL: the next one is not its own. */
static void leave(marks_t *thread, const cgs_call_t *call)
{
    cgs_region_t    *region = thread->region;
    cgs_watch_end_t end     = {0};
    bool            diverged;

    cgs_lock(&region->lock);
    end.calls = region->cursor.calls;
    end.call  = region->cursor.diverged ? call : NULL;
    cgs_unlock(&region->lock);
    cgs_region_leave(region);
    cgs_self.region = NULL;
    thread->region  = NULL;
    thread->last    = false;
    if (thread->rule == NULL) {
        cgs_lock(&region->lock);
        diverged = region->cursor.diverged;
        cgs_unlock(&region->lock);
        end.is_known = !diverged || (end.call != NULL);
        cgs_watch_left(thread->watch, &end);
    }
}

/* Whether the open run is of a region that was found by itself. */
static bool is_by_itself(const marks_t *thread)
{
    return (thread->region != NULL) && (thread->rule == NULL);
}

static uint64_t count_calls(cgs_region_t *region)
{
    uint64_t calls;

    cgs_lock(&region->lock);
    calls = region->cursor.calls;
    cgs_unlock(&region->lock);
    return calls;
}

/* Something else comes than what the region repeats. A recording of that is of
 * no use. */
static void leave_early(marks_t *thread)
{
    cgs_region_t *region  = thread->region;
    bool         recorded = atomic_load_explicit(&region->records_alone,
                                                 memory_order_relaxed);

    leave(thread, NULL);
    if (recorded) {
        cgs_region_recapture(region);
    }
}

static cgs_enter_t enter(marks_t *thread, cgs_region_t *region,
                         const cgs_rule_t *rule, uint64_t num_calls)
{
    cgs_enter_t entered = cgs_region_enter(region);

    if (entered == CGS_ENTERED) {
        cgs_lock(&region->lock);
        region->last_call = num_calls;
        cgs_unlock(&region->lock);
        thread->region  = region;
        thread->rule    = rule;
        cgs_self.marked = true;
    } else if (entered == CGS_ENTER_SHUT) {
        thread->plain_calls = num_calls > 0 ? num_calls - 1 : 0;
        thread->plain_to    = (rule != NULL) && (rule->to != NULL) ? rule :
                                                                     NULL;
    }
    return entered;
}

static unsigned number_of(const cgs_rule_t *rule)
{
    unsigned i = 0;

    while (marks.rules[i] != rule) {
        ++i;
    }
    return i;
}

/* Whether a call is the last one of the rule's region. */
static bool is_last(const cgs_rule_t *rule, const kernel_t *kernel)
{
    return (rule->to != NULL) && ((kernel->to >> number_of(rule)) & 1);
}

bool cgs_marks_has_seen(const cgs_rule_t *rule)
{
    unsigned i;

    for (i = 0; i < marks.num_rules; ++i) {
        if (marks.rules[i] == rule) {
            return ((atomic_load(&marks.seen) >> i) & 1) != 0;
        }
    }
    return false;
}

/* The first rule whose region begins with this call. */
static void begin_by_rule(marks_t *thread, const kernel_t *kernel)
{
    const cgs_rule_t *rule;
    cgs_region_t     *region;
    unsigned         i;

    for (i = 0; i < marks.num_rules; ++i) {
        rule = marks.rules[i];
        if (((kernel->from >> i) & 1) || (rule->between && !thread->passes)) {
            region = cgs_region_of_rule(rule);
            if ((region == NULL) ||
                (enter(thread, region, rule, rule->calls) != CGS_ENTERED)) {
                thread->passes |= rule->between;
            }
            if ((thread->plain_to == rule) && is_last(rule, kernel)) {
                thread->plain_to = NULL; /* it has one call */
            }
            return;
        }
    }
}

/* Whether the call belongs to a run that the gate sends plain. */
static bool is_plain(marks_t *thread, const cgs_call_t *call)
{
    if (thread->plain_to != NULL) {
        if (is_last(thread->plain_to, find_kernel(thread, call))) {
            thread->plain_to = NULL;
        }
    } else if (thread->plain_calls > 0) {
        --thread->plain_calls;
    } else {
        return false;
    }
    if (thread->watch != NULL) {
        cgs_watch_pass(thread->watch, call);
    }
    return true;
}

/* What the call means to the region that a rule has opened: the next one may
 * begin with it. */
static void go_on_by_rule(marks_t *thread, const kernel_t *kernel)
{
    const cgs_rule_t *rule = thread->rule;

    if ((thread->region != NULL) && (rule != NULL) && (rule->from != NULL) &&
        (rule->to == NULL) && (rule->calls == 0) &&
        ((kernel->from >> number_of(rule)) & 1)) {
        leave(thread, NULL);
    }
    if (thread->region == NULL) {
        begin_by_rule(thread, kernel);
    }
    thread->last = (thread->region != NULL) && (thread->rule != NULL) &&
                   is_last(thread->rule, kernel);
}

static void begin_by_itself(marks_t *thread, const cgs_call_t *call)
{
    cgs_region_t *region = cgs_watch_call(thread->watch, call);

    if (region != NULL) {
        cgs_watch_entered(thread->watch,
                          enter(thread, region, NULL,
                                cgs_watch_calls(thread->watch)));
    }
}

void cgs_marks_range(void)
{
    marks_t *thread = own;

    if ((thread != NULL) && is_by_itself(thread) &&
        (cgs_flow_own_region() == thread->region)) {
        leave_early(thread);
    }
}

/* Whether nothing may begin here; what is in between is seen by nobody. */
static bool is_elsewhere(marks_t *thread)
{
    const cgs_region_t *region = cgs_flow_own_region();

    if ((thread->region != NULL) && (thread->region != region)) {
        thread->region = NULL; /* another thread has ended it */
    }
    if (cgs_self.shut || cgs_life_has_no_regions() || cgs_flow_is_capturing() ||
        ((region != NULL) && (thread->region == NULL))) {
        thread->plain_calls = 0;
        thread->plain_to    = NULL;
        if (thread->watch != NULL) {
            cgs_watch_break(thread->watch);
        }
        return true;
    }
    return false;
}

void cgs_marks_before(const cgs_call_t *call)
{
    marks_t *thread = own != NULL ? own : begin_thread();

    if (cgs_self.rest > 0) {
        --cgs_self.rest;
        return;
    }
    if (marks.looks) {
        look(thread, call);
        return;
    }
    if ((thread == NULL) || is_elsewhere(thread) || is_plain(thread, call)) {
        return;
    }
    /* In a replay the cursor compares calls, and better. */
    if (is_by_itself(thread) &&
        atomic_load_explicit(&thread->region->records_alone,
                             memory_order_relaxed) &&
        !cgs_watch_expects_call(thread->watch, count_calls(thread->region),
                                call)) {
        leave_early(thread);
    }
    if (marks.num_rules > 0) {
        go_on_by_rule(thread, find_kernel(thread, call));
    }
    if ((thread->region == NULL) && (thread->watch != NULL)) {
        if ((thread->plain_calls > 0) || (thread->plain_to != NULL)) {
            cgs_watch_pass(thread->watch, call);
        } else {
            begin_by_itself(thread, call);
        }
        /* Rules look at each call. */
        if ((thread->region == NULL) && (marks.num_rules == 0)) {
            cgs_self.rest = cgs_watch_take_rest(thread->watch);
        }
    }
}

void cgs_marks_after(const cgs_call_t *call, bool over)
{
    marks_t *thread = own;

    if ((thread != NULL) && (thread->region != NULL) &&
        (thread->last || over)) {
        leave(thread, call);
    }
}

/* What a function is, by its name: how often a program asks is chance; a copy
 * that is not asynchronous waits for the device too. */
static unsigned classify(const char *name)
{
    if (strstr(name, "Query") != NULL) {
        return ASKS;
    }
    return (strstr(name, "Synchronize") != NULL) ||
           ((strncmp(name, "cuMemcpy", 8) == 0) &&
            (strstr(name, "Async") == NULL)) ? WAITS : NEITHER;
}

/* Made out when it is first called. */
static unsigned class_of(unsigned index)
{
    static atomic_uchar classes[CGS_NUM_ENTRIES + CGS_NUM_SPARE];
    unsigned            class = atomic_load_explicit(&classes[index],
                                                     memory_order_relaxed);

    if (class == UNKNOWN) {
        class = classify(cgs_door_name(index));
        atomic_store_explicit(&classes[index], (unsigned char)class,
                              memory_order_relaxed);
    }
    return class;
}

void cgs_marks_barrier(unsigned index)
{
    marks_t  *thread = own;
    unsigned class   = class_of(index);

    if (marks.looks) {
        if (looks_on(thread) && (class != ASKS)) {
            cgs_watch_see_barrier(thread->watch, index);
        }
        return;
    }
    if ((thread == NULL) || (cgs_self.rest > 0) || is_elsewhere(thread)) {
        return;
    }
    if (is_by_itself(thread) && (class != ASKS) &&
        !cgs_watch_expects_barrier(thread->watch,
                                   count_calls(thread->region), index)) {
        leave_early(thread);
    }
    if (class == WAITS) {
        thread->passes = false;
        if ((thread->region != NULL) && (thread->rule != NULL) &&
            thread->rule->between) {
            leave(thread, NULL);
        }
    }
    if ((thread->region == NULL) && (thread->watch != NULL) &&
        (class != ASKS)) {
        cgs_watch_barrier(thread->watch, index);
    }
}
