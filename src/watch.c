/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit is a block of tokens that has come twice in a row. It becomes a
 * region that is entered where the tokens before are those that were before it
 * the last times, and that ends after as many calls.
 *
 * While a run of it is open nobody is told of calls; when it has ended as it
 * always did, its tokens are added all at once.
 *
 * Where nothing comes again watching would be all cost, so it rests: in the end
 * it looks at an eighth of the calls.
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
/* Places where units are known to begin, by the tokens before: sets of a few,
 * as one may follow the other or itself. */
#define NUM_SETS   128
#define SET_STARTS 4
/* Fewer calls are not worth a region: a unit is several blocks then. */
#define MIN_CALLS 16
/* Regions of one name: other loops, or other threads at the same time. */
#define MAX_NAMESAKES 16
/* Runs in a row that were not whole, after which a unit has to wait. */
#define MAX_MISSES 3
/* The longest wait is 16 << this, in times that it could begin. */
#define MAX_SHIFT 12
/* How many tokens were replayed is known at every so manieth, that many times
 * back. */
#define PAST_STEP 64u
#define PASTS     1024u

/* Tokens after which the use of the watch is looked at: the longest unit comes
 * twice in them. */
#define JUDGED (UINT64_C(3) * CGS_REPEATS_MAX)
/* Where less than one token in so many was one of a run, the watch rests; for
 * so many tokens at most, times that. */
#define LEAST_USE 16u
#define MAX_REST  7u

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
    start_t       starts[NUM_SETS][SET_STARTS];
    unsigned      next_start; /* of a set, to be overwritten */
    loop_t        loops[CGS_REPEATS_LEVELS];
    bool          in_loop;   /* one of these is */
    uint32_t      last_id;
    uint64_t      now;       /* counts runs */
    unit_t        *open;     /* whose run is open, or is to be */
    start_t       *by;       /* start that it was entered by */
    uint64_t      token;     /* of the call that opens it */
    uint32_t      barriers;  /* of the open run */
    uint64_t      covered;   /* tokens in runs so far */
    uint64_t      past[PASTS]; /* what that was */
    uint64_t      judged;    /* tokens up to the last time that its use was
                                looked at */
    uint64_t      used;      /* what `covered` was then, and the units that
                                were made since */
    uint64_t      rested;    /* how long after that, times JUDGED */
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

static start_t *starts_at(cgs_watch_t *watch, uint64_t gram)
{
    return watch->starts[(gram * MULTIPLIER) >> 57];
}

_Static_assert(NUM_SETS == 128, "starts_at() takes 7 bits");

static void add_start(cgs_watch_t *watch, uint64_t gram, const unit_t *unit,
                      bool is_own)
{
    start_t *set = starts_at(watch, gram);
    start_t *start = &set[watch->next_start++ % SET_STARTS];
    int     i;

    for (i = 0; i < SET_STARTS; ++i) {
        if ((set[i].gram == gram) && (set[i].id == unit->id)) {
            return; /* its own one is the stricter, or it is known */
        }
        start = set[i].id == 0 ? &set[i] : start;
    }
    if (gram != 0) {
        *start = (start_t){.gram = gram, .id = unit->id, .is_own = is_own};
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
    watch->used -= num;
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

/* Whether a loop, perhaps one around others, gains by being a unit: its recording is one round
 * in which nothing is replayed, and it will come as often again as it has come
 * so far. */
static bool gains(const cgs_watch_t *watch, uint32_t period, uint64_t length)
{
    uint64_t count   = cgs_repeats_count(watch->repeats);
    uint64_t begin   = (count - period) / PAST_STEP;
    uint64_t covered = watch->covered - watch->past[begin % PASTS];
    uint64_t rounds  = length / period + 1;

    return rounds * (count - begin * PAST_STEP - covered) >= covered;
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
         !is_barrier(cgs_repeats_token(watch->repeats, 0))) ||
        !gains(watch, period, length)) {
        return;
    }
    known = find_equal(watch, cgs_repeats_hash(watch->repeats, 0, loop->num),
                       loop->num);
    if ((known == NULL) && (loop->waited++ < loop->num) &&
        has_length(watch, loop->num)) {
        return; /* it may be one that begins elsewhere in the loop */
    }
    loop->done = true;
    if (known != NULL) {
        add_start(watch, gram_before(watch, 0), known, true);
    } else {
        make_unit(watch, loop->num);
    }
}

/* @return whether the sequence is in a loop. */
static bool add_token(cgs_watch_t *watch, uint64_t token)
{
    uint64_t count = cgs_repeats_count(watch->repeats);

    if (count % PAST_STEP == 0) {
        watch->past[count / PAST_STEP % PASTS] = watch->covered;
    }
    return cgs_repeats_add(watch->repeats, token);
}

static void add(cgs_watch_t *watch, uint64_t token)
{
    int level;

    if (!add_token(watch, token)) {
        if (watch->in_loop) {
            memset(watch->loops, 0, sizeof(watch->loops));
            watch->in_loop = false;
        }
        return;
    }
    watch->in_loop = true;
    for (level = CGS_REPEATS_LEVELS - 1; level >= 0; --level) {
        consider(watch, level);
    }
}

/* ---- Runs ---- */

/* Whether a unit may begin here with a call of that token. */
static bool begins(const cgs_watch_t *watch, const start_t *start,
                   const unit_t *unit, uint64_t token)
{
    return (unit != NULL) && (unit->tokens[0] == token) &&
           (!start->is_own || (cgs_repeats_hash(watch->repeats, 0,
                                                unit->num) == unit->hash));
}

/* The longest unit that begins with the next call, if it is this one. */
static unit_t *find_start(cgs_watch_t *watch, uint64_t token)
{
    uint64_t gram  = cgs_repeats_gram(watch->repeats);
    start_t  *set  = starts_at(watch, gram);
    unit_t   *best = NULL;
    unit_t   *unit;
    int      i;

    for (i = 0; (gram != 0) && (i < SET_STARTS); ++i) {
        if (set[i].gram != gram) {
            continue;
        }
        unit = find_unit(watch, set[i].id);
        if (!begins(watch, &set[i], unit, token)) {
            continue;
        }
        if (unit->skip > 0) {
            --unit->skip;
        } else if ((best == NULL) || (unit->num > best->num)) {
            best      = unit;
            watch->by = &set[i];
        }
    }
    if ((best != NULL) && watch->by->is_own) {
        /* What it followed this time it may follow again. */
        add_start(watch, gram_before(watch, best->num), best, false);
    }
    return best;
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
    if (region != NULL) {
        region->begins_with = call->kind == CGS_OP_KERNEL ? kernel : NULL;
        region->unit_calls  = unit->num_calls;
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

void cgs_watch_pass(cgs_watch_t *watch, const cgs_call_t *call)
{
    add(watch, token_of(call));
}

bool cgs_watch_see_call(cgs_watch_t *watch, const cgs_call_t *call)
{
    return add_token(watch, token_of(call));
}

uint32_t cgs_watch_calls(const cgs_watch_t *watch)
{
    return watch->open->num_calls;
}

void cgs_watch_entered(cgs_watch_t *watch, cgs_enter_t entered)
{
    unit_t *unit = watch->open;

    if (entered == CGS_ENTERED) {
        unit->used      = ++watch->now;
        watch->barriers = 0;
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

/* The first tokens of a unit, up to before the call of that number, or to the
 * last call. */
static uint32_t tokens_before(const unit_t *unit, uint64_t call)
{
    uint32_t num  = 0;
    uint64_t seen = 0;

    while ((num < unit->num - unit->num_tail) &&
           ((seen < call) || is_barrier(unit->tokens[num]))) {
        seen += !is_barrier(unit->tokens[num++]);
    }
    return num;
}

/* Catch up on what the run has done. */
static void add_run(cgs_watch_t *watch, const unit_t *unit,
                    const cgs_watch_end_t *end)
{
    uint64_t calls = end->call != NULL ? end->calls - 1 : end->calls;
    uint32_t num   = tokens_before(unit, calls);
    uint32_t i;

    if (!end->is_known || (num - calls != watch->barriers)) {
        cgs_watch_break(watch);
        return;
    }
    for (i = 0; i < num; ++i) {
        add_token(watch, unit->tokens[i]);
        ++watch->covered;
    }
    if (end->call != NULL) {
        add(watch, token_of(end->call));
    }
}

void cgs_watch_left(cgs_watch_t *watch, const cgs_watch_end_t *end)
{
    unit_t *unit = watch->open;

    watch->open = NULL;
    if (unit == NULL) {
        return;
    }
    if (end->is_known && (end->call == NULL) &&
        (end->calls == unit->num_calls)) {
        unit->misses = 0;
        unit->shift  = 0;
    } else {
        if (!watch->by->is_own) {
            *watch->by = (start_t){0};
        }
        count_miss(unit);
    }
    add_run(watch, unit, end);
}

static uint64_t token_of_barrier(unsigned index)
{
    return finish(mix(index, MULTIPLIER), true);
}

/* Whether that is the next token of the run, which has made so many calls. */
static bool expects(const cgs_watch_t *watch, uint64_t calls, uint64_t token)
{
    uint64_t place = calls + watch->barriers;

    return (watch->open != NULL) && (place < watch->open->num) &&
           (watch->open->tokens[place] == token);
}

bool cgs_watch_expects_call(const cgs_watch_t *watch, uint64_t calls,
                            const cgs_call_t *call)
{
    return expects(watch, calls, token_of(call));
}

bool cgs_watch_expects_barrier(cgs_watch_t *watch, uint64_t calls,
                               unsigned index)
{
    bool is_next = expects(watch, calls, token_of_barrier(index));

    watch->barriers += is_next;
    return is_next;
}

bool cgs_watch_see_barrier(cgs_watch_t *watch, unsigned index)
{
    return add_token(watch, token_of_barrier(index));
}

void cgs_watch_barrier(cgs_watch_t *watch, unsigned index)
{
    add(watch, token_of_barrier(index));
}

uint64_t cgs_watch_take_rest(cgs_watch_t *watch)
{
    uint64_t count = cgs_repeats_count(watch->repeats);
    uint64_t used  = watch->covered - watch->used;

    if (count - watch->judged < JUDGED) {
        return 0;
    }
    watch->judged = count;
    watch->used   = watch->covered;
    if (used * LEAST_USE >= JUDGED) {
        watch->rested = 0;
        return 0;
    }
    watch->rested = 2 * watch->rested + 1;
    watch->rested = watch->rested < MAX_REST ? watch->rested : MAX_REST;
    cgs_watch_break(watch);
    return watch->rested * JUDGED;
}

void cgs_watch_break(cgs_watch_t *watch)
{
    cgs_repeats_break(watch->repeats);
}
