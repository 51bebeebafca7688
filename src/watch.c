/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit is a block of tokens that has come twice in a row. It becomes a
 * region that is entered where the tokens before are those that were before it
 * the last times, and that ends after as many calls.
 *
 * While a run of it is open nobody is told of calls; when it has ended as it
 * always did, its tokens are added all at once.
 */
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "repeats.h"

/* Units of a thread; for one more the one goes that was not used for
 * longest. */
#define MAX_UNITS 32
/* Places where units are known to begin, by the tokens before. */
#define MAX_STARTS 256
/* Fewer calls are not worth a region: a unit is several blocks then. */
#define MIN_CALLS 16
/* Regions of one name: other loops, or other threads at the same time. */
#define MAX_NAMESAKES 16
/* Runs in a row that were not whole, after which a unit has to wait. */
#define MAX_MISSES 3
/* The longest wait is 16 << this, in times that it could begin. */
#define MAX_SHIFT 12
/* A loop around a loop is of no use where so many percent are replayed
 * already. */
#define ENOUGH 95

#define MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

typedef struct {
    uint32_t     id;        /* 0: unused */
    cgs_region_t *region;   /* NULL: not yet entered */
    uint64_t     *tokens;   /* of the block */
    uint32_t     num;       /* tokens */
    uint32_t     num_tail;  /* last ones that are barriers */
    uint32_t     num_calls; /* tokens that are not */
    uint64_t     hash;      /* of the block */
    uint64_t     used;      /* when it was entered */
    uint32_t     misses;    /* runs in a row that were not whole */
    uint32_t     shift;     /* how long it had to wait the last time */
    uint32_t     skip;      /* times that it does not begin */
} unit_t;

/* The tokens before a unit; of its own block, which has to be all there, or of
 * something else that it was seen to follow. */
typedef struct {
    uint64_t gram;
    uint32_t id;
    bool     is_own;
} start_t;

/* What is known of the loop that the sequence is in. */
typedef struct {
    uint32_t period;
    uint32_t num;     /* tokens that its unit has or would have, 0: none */
    bool     ends_at_barrier; /* the unit does */
    bool     done;    /* there is a unit, or will be none */
    uint32_t waited;  /* tokens since there could be one */
} loop_t;

struct cgs_watch {
    cgs_repeats_t *repeats;
    unit_t        units[MAX_UNITS];
    start_t       starts[MAX_STARTS];
    loop_t        loops[CGS_REPEATS_LEVELS];
    uint32_t      last_id;
    uint64_t      now;       /* counts runs */
    unit_t        *open;     /* whose run is open, or is to be */
    start_t       *by;       /* start that it was entered by */
    uint64_t      token;     /* of the call that opens it */
    uint64_t      total, covered; /* tokens since a break, and of these in
                                     runs */
};

/* ---- Tokens ---- */

/* The lowest bit says what is a barrier. */
static uint64_t finish(uint64_t hash, bool is_barrier)
{
    hash ^= hash >> 29;
    return ((hash * MULTIPLIER) & ~UINT64_C(1)) | is_barrier;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * MULTIPLIER;
    return hash ^ (hash >> 32);
}

static uint64_t token_of(const cgs_call_t *call)
{
    uint64_t hash = mix((uint64_t)call->kind + 1, (uintptr_t)call->stream);

    switch (call->kind) {
    case CGS_OP_KERNEL:
        hash = mix(hash, (uintptr_t)call->kernel.shape.function);
        hash = mix(hash, call->kernel.shape.api);
        break;
    case CGS_OP_COPY:
        hash = mix(hash, call->copy.copy.api);
        break;
    case CGS_OP_SET:
        hash = mix(hash, call->set.set.element_size);
        break;
    case CGS_OP_HOST:
        hash = mix(hash, (uintptr_t)call->host.function);
        break;
    default:
        break;
    }
    return finish(hash, false);
}

static bool is_barrier(uint64_t token)
{
    return (token & 1) != 0;
}

/* ---- Units ---- */

static void release_unit(unit_t *unit)
{
    if (unit->region != NULL) {
        cgs_region_give_back(unit->region);
    }
    free(unit->tokens);
    *unit = (unit_t){0};
}

cgs_watch_t *cgs_watch_create(void)
{
    cgs_watch_t *watch = calloc(1, sizeof(*watch));

    if (watch == NULL) {
        return NULL;
    }
    watch->repeats = cgs_repeats_create();
    if (watch->repeats == NULL) {
        free(watch);
        return NULL;
    }
    return watch;
}

void cgs_watch_destroy(cgs_watch_t *watch)
{
    int i;

    if (watch == NULL) {
        return;
    }
    for (i = 0; i < MAX_UNITS; ++i) {
        release_unit(&watch->units[i]);
    }
    cgs_repeats_destroy(watch->repeats);
    free(watch);
}

static unit_t *find_unit(cgs_watch_t *watch, uint32_t id)
{
    int i;

    for (i = 0; (id != 0) && (i < MAX_UNITS); ++i) {
        if (watch->units[i].id == id) {
            return &watch->units[i];
        }
    }
    return NULL;
}

static unit_t *find_equal(cgs_watch_t *watch, uint64_t hash, uint32_t num)
{
    int i;

    for (i = 0; i < MAX_UNITS; ++i) {
        if ((watch->units[i].id != 0) && (watch->units[i].hash == hash) &&
            (watch->units[i].num == num)) {
            return &watch->units[i];
        }
    }
    return NULL;
}

static bool has_length(const cgs_watch_t *watch, uint32_t num)
{
    int i;

    for (i = 0; i < MAX_UNITS; ++i) {
        if ((watch->units[i].id != 0) && (watch->units[i].num == num)) {
            return true;
        }
    }
    return false;
}

/* Room for one more: what was not used for longest goes. */
static unit_t *find_room(cgs_watch_t *watch)
{
    unit_t *oldest = &watch->units[0];
    int    i;

    for (i = 0; (i < MAX_UNITS) && (oldest->id != 0); ++i) {
        if ((watch->units[i].id == 0) ||
            (watch->units[i].used < oldest->used)) {
            oldest = &watch->units[i];
        }
    }
    if (oldest->region != NULL) {
        cgs_region_destroy(oldest->region, "what it repeated comes no more");
    }
    release_unit(oldest);
    return oldest;
}

static start_t *start_at(cgs_watch_t *watch, uint64_t gram)
{
    return &watch->starts[(gram * MULTIPLIER) >> 56];
}

_Static_assert(MAX_STARTS == 256, "start_at() takes 8 bits");

static void add_start(cgs_watch_t *watch, uint64_t gram, const unit_t *unit,
                      bool is_own)
{
    if (gram != 0) {
        *start_at(watch, gram) = (start_t){
            .gram   = gram,
            .id     = unit->id,
            .is_own = is_own,
        };
    }
}

static uint64_t gram_before(const cgs_watch_t *watch, uint64_t back)
{
    return cgs_repeats_hash(watch->repeats, back, CGS_REPEATS_GRAM);
}

/* The last `num` tokens are a unit from now on. */
static void make_unit(cgs_watch_t *watch, uint32_t num)
{
    uint64_t *tokens = malloc(num * sizeof(*tokens));
    unit_t   *unit;
    uint32_t i;

    if (tokens == NULL) {
        return;
    }
    unit         = find_room(watch);
    unit->id     = ++watch->last_id;
    unit->tokens = tokens;
    unit->num    = num;
    unit->hash   = cgs_repeats_hash(watch->repeats, 0, num);
    unit->used   = ++watch->now;
    for (i = 0; i < num; ++i) {
        tokens[i]        = cgs_repeats_token(watch->repeats, num - 1 - i);
        unit->num_calls += !is_barrier(tokens[i]);
        unit->num_tail   = is_barrier(tokens[i]) ? unit->num_tail + 1 : 0;
    }
    add_start(watch, gram_before(watch, 0), unit, true);
}

static uint32_t count_calls(const cgs_watch_t *watch, uint32_t num)
{
    uint32_t i, calls = 0;

    for (i = 0; i < num; ++i) {
        calls += !is_barrier(cgs_repeats_token(watch->repeats, i));
    }
    return calls;
}

static void look_at_loop(const cgs_watch_t *watch, loop_t *loop,
                         uint32_t period)
{
    uint32_t calls = count_calls(watch, period);
    uint32_t times = calls > 0 ? (MIN_CALLS + calls - 1) / calls : 0;

    loop->period          = period;
    loop->num             = times * period <= CGS_REPEATS_MAX ?
                            times * period : 0;
    loop->ends_at_barrier = calls < period;
    loop->done            = loop->num == 0;
}

/* In a loop. Where it has barriers a unit ends with one; so nothing is held
 * back across the end of a run but what has to be. */
static void consider(cgs_watch_t *watch, int level)
{
    loop_t   *loop = &watch->loops[level];
    uint64_t length;
    uint32_t period = cgs_repeats_period(watch->repeats, level, &length);
    unit_t   *known;

    if (period != loop->period) {
        *loop = (loop_t){0};
        if (period != 0) {
            look_at_loop(watch, loop, period);
        }
    }
    if ((period == 0) || loop->done ||
        (length + period < 2 * (uint64_t)loop->num) ||
        (loop->ends_at_barrier &&
         !is_barrier(cgs_repeats_token(watch->repeats, 0)))) {
        return;
    }
    known = find_equal(watch, cgs_repeats_hash(watch->repeats, 0, loop->num),
                       loop->num);
    if ((known == NULL) && (loop->waited++ < loop->num) &&
        has_length(watch, loop->num)) {
        return; /* it may be one that begins elsewhere in the loop */
    }
    loop->done = true;
    if ((level > 0) && (watch->covered * 100 >= watch->total * ENOUGH)) {
        return;
    }
    if (known != NULL) {
        add_start(watch, gram_before(watch, 0), known, true);
    } else {
        make_unit(watch, loop->num);
    }
}

static void add(cgs_watch_t *watch, uint64_t token)
{
    int level;

    cgs_repeats_add(watch->repeats, token);
    ++watch->total;
    for (level = CGS_REPEATS_LEVELS - 1; level >= 0; --level) {
        consider(watch, level);
    }
}

/* ---- Runs ---- */

/* The unit that begins with the next call, if it is this one. */
static unit_t *find_start(cgs_watch_t *watch, uint64_t token)
{
    uint64_t gram  = gram_before(watch, 0);
    start_t  *start = start_at(watch, gram);
    unit_t   *unit;

    if ((start->gram != gram) || (gram == 0)) {
        return NULL;
    }
    unit = find_unit(watch, start->id);
    if ((unit == NULL) || (unit->tokens[0] != token)) {
        return NULL;
    }
    if (start->is_own) {
        if (cgs_repeats_hash(watch->repeats, 0, unit->num) != unit->hash) {
            return NULL;
        }
        /* What it followed this time it may follow again. */
        add_start(watch, gram_before(watch, unit->num), unit, false);
        start = start_at(watch, gram);
    }
    watch->by = start;
    if (unit->skip > 0) {
        --unit->skip;
        return NULL;
    }
    return unit;
}

/* A region of that name that nobody else has. */
static cgs_region_t *find_region(const unit_t *unit, const cgs_call_t *call)
{
    const char   *kernel = cgs_op_call_name(call);
    cgs_region_t *region = NULL;
    char         name[512];
    int          i;

    for (i = 1; (i <= MAX_NAMESAKES) && (region == NULL); ++i) {
        snprintf(name, sizeof(name), i > 1 ? "auto:%.480s:%u#%d" :
                 "auto:%.480s:%u", kernel, unit->num_calls, i);
        region = cgs_region_automatic(name, unit->hash);
    }
    return region;
}

cgs_region_t *cgs_watch_call(cgs_watch_t *watch, const cgs_call_t *call)
{
    uint64_t token = token_of(call);

    watch->token = token;
    watch->open  = find_start(watch, token);
    if (watch->open == NULL) {
        add(watch, token);
        return NULL;
    }
    if (watch->open->region == NULL) {
        watch->open->region = find_region(watch->open, call);
    }
    if (watch->open->region == NULL) {
        watch->open->skip = 16u << MAX_SHIFT;
        watch->open       = NULL;
        add(watch, token);
        return NULL;
    }
    return watch->open->region;
}

uint32_t cgs_watch_calls(const cgs_watch_t *watch)
{
    return watch->open->num_calls;
}

void cgs_watch_entered(cgs_watch_t *watch, cgs_enter_t entered)
{
    unit_t *unit = watch->open;

    if (entered == CGS_ENTERED) {
        unit->used = ++watch->now;
        return;
    }
    watch->open = NULL;
    add(watch, watch->token);
}

static void count_miss(unit_t *unit)
{
    if (++unit->misses < MAX_MISSES) {
        return;
    }
    unit->misses = 0;
    unit->skip   = 16u << unit->shift;
    unit->shift += unit->shift < MAX_SHIFT;
    cgs_region_recapture(unit->region);
}

void cgs_watch_left(cgs_watch_t *watch, bool whole)
{
    unit_t   *unit = watch->open;
    uint32_t i;

    if (unit == NULL) {
        return;
    }
    watch->open = NULL;
    if (!whole) {
        if (!watch->by->is_own) {
            *watch->by = (start_t){0};
        }
        count_miss(unit);
        cgs_watch_break(watch);
        return;
    }
    unit->misses = 0;
    unit->shift  = 0;
    for (i = 0; i < unit->num - unit->num_tail; ++i) {
        cgs_repeats_add(watch->repeats, unit->tokens[i]);
    }
    watch->total   += i;
    watch->covered += i;
}

void cgs_watch_barrier(cgs_watch_t *watch, unsigned index)
{
    add(watch, finish(mix(index, MULTIPLIER), true));
}

void cgs_watch_break(cgs_watch_t *watch)
{
    cgs_repeats_break(watch->repeats);
    watch->total   = 0;
    watch->covered = 0;
}
