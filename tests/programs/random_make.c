/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seed becomes a program: loops over random sequences of operations that are
 * a little different in some repetitions, by one thread or several, in ranges
 * that begin and end in odd places.
 */
#include <string.h>

#include "random.h"


enum {
    RND_LENGTH   = 60,          /* of a body, as it is made first */
    RND_FEW      = 4,           /* operations that come and go together */
    RND_PATTERNS = 2
};


/* What some repetitions have and others have not. */
typedef enum rnd_when {
    RND_EVERY,                  /* every so many repetitions */
    RND_AT_RANDOM
} rnd_when_t;

typedef enum rnd_what {
    RND_INSERTS,                /* more operations */
    RND_OMITS,
    RND_EXCHANGES               /* others in their place */
} rnd_what_t;

typedef struct rnd_pattern {
    rnd_when_t when;
    rnd_what_t what;
    unsigned   period, phase;
    unsigned   at;              /* place in the body */
    unsigned   num_old, num_new;
    rnd_op_t   op[RND_FEW];     /* the new ones */
} rnd_pattern_t;


/* What is the same in all of a loop. */
typedef struct rnd_loop {
    unsigned index;
    unsigned owner;             /* thread that makes most operations */
    unsigned others;            /* percent that other threads make */
    unsigned slot;              /* of the stream that has most of them */
    unsigned side;              /* and of the next one */
    unsigned straying;          /* percent on other streams than the first */
    unsigned sharing;           /* percent that touch other threads' memory */
    unsigned work;              /* percent of launches, copies and sets */
    unsigned drifting;          /* percent of which arguments change */
    unsigned change;            /* percent of repetitions that differ */
    rnd_op_t body[RND_BODY];
    unsigned length;
    unsigned repeats;
    rnd_pattern_t pattern[RND_PATTERNS];    /* the last place first */
    unsigned num_patterns;
} rnd_loop_t;


#define RND_KIND_INFO(_name, _group, _weight, _to, _to_sort, _num_from, \
                      _from_sort, _flags, _text) \
    [RND_##_name] = { \
        _text, RND_##_group, _weight, RND_##_to, RND_##_to_sort, _num_from, \
        RND_##_from_sort, _flags \
    },

const rnd_kind_info_t rnd_kinds[RND_NUM_KINDS] = {
    RND_KINDS(RND_KIND_INFO)
};


static uint32_t rnd_next(rnd_program_t *p, uint32_t below)
{
    p->state = p->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((p->state >> 33) % below);
}

static bool rnd_chance(rnd_program_t *p, uint32_t percent)
{
    return rnd_next(p, 100) < percent;
}

/* One digit of a shape, or two. */
static uint32_t rnd_choose_shape_step(rnd_program_t *p)
{
    static const uint32_t digits[] = {1, 4, 12, 36, 72, 144};
    uint32_t step = digits[rnd_next(p, PRG_COUNT_OF(digits))];

    return rnd_chance(p, 75) ? step :
           step + digits[rnd_next(p, PRG_COUNT_OF(digits))];
}

static rnd_kind_t rnd_choose_kind(rnd_program_t *p, rnd_group_t group)
{
    unsigned total = 0;
    unsigned kind, pick;

    for (kind = 0; kind < RND_NUM_KINDS; ++kind) {
        total += rnd_kinds[kind].group == group ? rnd_kinds[kind].weight : 0;
    }
    pick = rnd_next(p, total);
    for (kind = 0; kind < RND_NUM_KINDS; ++kind) {
        if (rnd_kinds[kind].group != group) {
            continue;
        }
        if (pick < rnd_kinds[kind].weight) {
            break;
        }
        pick -= rnd_kinds[kind].weight;
    }
    return (rnd_kind_t)kind;
}

/* Mostly device memory, and with several threads mostly the thread's own. */
static unsigned rnd_choose_buffer(rnd_program_t *p, const rnd_loop_t *loop,
                                  unsigned thread, rnd_sort_t sort)
{
    unsigned first  = 0;
    unsigned number = RND_PINNED;
    unsigned buffer;

    if (sort == RND_FLAG_ONLY) {
        return RND_FLAG + rnd_next(p, RND_BUFFERS - RND_FLAG);
    }
    if (sort == RND_PINNED_ONLY) {
        first  = RND_PINNED;
        number = RND_MANAGED - RND_PINNED;
    } else if (sort == RND_ANY_MEMORY && rnd_chance(p, 20)) {
        number = RND_MANAGED + 1;
    }
    buffer = rnd_next(p, number);
    if (p->num_threads > 1 && !rnd_chance(p, loop->sharing)) {
        buffer -= buffer % p->num_threads;
        buffer  = (buffer + thread) % number;
    }
    return first + buffer;
}

/* Buffer 0 gathers: only launches write to it, and they keep a trace of what
 * was there. No operation reads what it writes. */
static void rnd_settle(rnd_op_t *op)
{
    const rnd_kind_info_t *info = &rnd_kinds[op->kind];
    unsigned i;

    if (info->group != RND_LAUNCHES && op->to == 0) {
        op->to = 1 + op->value % (RND_PINNED - 1);
    }
    if (op->kind == RND_KERNEL_COPY && op->to == 0) {
        op->to = 1;
    }
    for (i = 0; i < info->num_from; ++i) {
        if (op->from[i] == op->to) {
            op->from[i] = info->from_sort == RND_PINNED_ONLY ?
                          RND_PINNED + (op->to + 1 - RND_PINNED) %
                          (RND_MANAGED - RND_PINNED) :
                          (op->to + 1) % RND_PINNED;
        }
    }
    if (info->flags & RND_DEFAULT) {
        op->slot = RND_LEGACY;
    }
}

static unsigned rnd_choose_slot(rnd_program_t *p)
{
    return rnd_chance(p, 80) ? rnd_next(p, RND_LEGACY) :
                               RND_LEGACY + rnd_next(p, 2);
}

static void rnd_choose_stream(rnd_program_t *p, const rnd_loop_t *loop,
                              rnd_op_t *op)
{
    op->slot = loop->slot;
    if (rnd_chance(p, loop->straying)) {
        op->slot = rnd_chance(p, 70) ? loop->side : rnd_choose_slot(p);
    }
}

static void rnd_fill_op(rnd_program_t *p, const rnd_loop_t *loop, rnd_op_t *op,
                        rnd_kind_t kind)
{
    const rnd_kind_info_t *info = &rnd_kinds[kind];
    unsigned i;

    memset(op, 0, sizeof(*op));
    op->kind   = kind;
    op->thread = loop->owner;
    if (p->num_threads > 1 && rnd_chance(p, loop->others)) {
        op->thread = rnd_next(p, p->num_threads);
    }
    rnd_choose_stream(p, loop, op);
    op->event[0] = rnd_next(p, kind == RND_EVENT_ANEW ? RND_EVENTS :
                                                        RND_OWN_EVENTS);
    op->event[1] = rnd_next(p, RND_OWN_EVENTS);
    op->to       = rnd_choose_buffer(p, loop, op->thread, info->to_sort);
    for (i = 0; i < info->num_from; ++i) {
        op->from[i] = rnd_choose_buffer(p, loop, op->thread, info->from_sort);
    }
    op->module = info->group == RND_LAUNCHES &&
                 (kind == RND_TURN_BIG || rnd_chance(p, 15));
    op->range  = rnd_next(p, RND_RANGES);
    op->value      = rnd_next(p, 1000);
    op->words      = 16u << rnd_next(p, 3);
    op->shape      = rnd_next(p, RND_SHAPES);
    op->shape_step = rnd_choose_shape_step(p);
    op->luck       = rnd_next(p, 1u << 30);
    op->period     = rnd_chance(p, 60) ? 2 : 3 + rnd_next(p, 3);
    if (rnd_chance(p, loop->drifting)) {
        op->drift = kind == RND_GRID || kind == RND_GRID_EX ?
                    RND_SHAPE_ALTERNATES + rnd_next(p, 2) :
                    RND_ALTERNATES + rnd_next(p, RND_RESHAPES);
    }
    rnd_settle(op);
}

/* Mostly work, now and then something that cuts a region. */
static void rnd_make_op(rnd_program_t *p, const rnd_loop_t *loop, rnd_op_t *op)
{
    rnd_group_t group;

    if (!rnd_chance(p, loop->work)) {
        group = RND_SYNCS + rnd_chance(p, 25);
    } else if (rnd_chance(p, 60)) {
        group = RND_LAUNCHES;
    } else {
        group = rnd_chance(p, 75) ? RND_WORK : RND_EVENT_CALLS;
    }
    rnd_fill_op(p, loop, op, rnd_choose_kind(p, group));
}

static void rnd_insert(rnd_loop_t *loop, unsigned at, const rnd_op_t *op)
{
    if (loop->length == RND_BODY) {
        return;
    }
    at = at < loop->length ? at : loop->length;
    memmove(&loop->body[at + 1], &loop->body[at],
            (loop->length - at) * sizeof(loop->body[0]));
    loop->body[at] = *op;
    ++loop->length;
}

/* One range of a thread, or one that may end in another thread. */
static void rnd_add_range(rnd_program_t *p, rnd_loop_t *loop, unsigned thread,
                          uint32_t name, unsigned begin, unsigned end)
{
    bool by_handle = rnd_chance(p, 20);
    rnd_op_t op;

    rnd_fill_op(p, loop, &op, by_handle ? RND_END : RND_POP);
    op.thread = thread;
    op.name   = name;
    op.range  = name % RND_RANGES;
    if (by_handle && rnd_chance(p, 40)) {
        op.thread = rnd_next(p, p->num_threads);
    }
    if (!rnd_chance(p, 3)) {
        rnd_insert(loop, end, &op);
    }
    op.kind   = by_handle ? RND_START : RND_PUSH;
    op.thread = thread;
    rnd_insert(loop, begin, &op);
}

/* The host waits for a word to be written, and asks for nothing. */
static void rnd_add_flag(rnd_program_t *p, rnd_loop_t *loop)
{
    unsigned at = rnd_next(p, loop->length);
    rnd_op_t op;

    rnd_fill_op(p, loop, &op, RND_POLL_FLAG);
    rnd_insert(loop, at + rnd_next(p, 4), &op);
    op.kind   = rnd_chance(p, 60) ? RND_SET_FLAG : RND_SET_FLAG_HOST;
    op.thread = loop->owner;
    rnd_insert(loop, at, &op);
}

/* An event that a kernel's launch is followed by and somebody looks at; often
 * it is another one under the same handle in the next repetition. */
static void rnd_add_event(rnd_program_t *p, rnd_loop_t *loop)
{
    static const rnd_kind_t looks[] = {RND_WAIT, RND_WAIT, RND_EVENT_SYNC,
                                       RND_EVENT_POLL, RND_ELAPSED};
    unsigned at = rnd_next(p, loop->length);
    rnd_op_t op;

    rnd_fill_op(p, loop, &op, looks[rnd_next(p, PRG_COUNT_OF(looks))]);
    rnd_insert(loop, at + rnd_next(p, 6), &op);
    op.kind   = RND_RECORD;
    op.thread = loop->owner;
    rnd_choose_stream(p, loop, &op);
    rnd_insert(loop, at, &op);
    if (rnd_chance(p, 50)) {
        op.kind = RND_EVENT_ANEW;
        rnd_insert(loop, rnd_chance(p, 50) ? 0 : RND_BODY, &op);
    }
}

/* The host does something else for so long that what is held back may have
 * to go. */
static void rnd_add_pause(rnd_program_t *p, rnd_loop_t *loop)
{
    rnd_op_t op;

    rnd_fill_op(p, loop, &op, RND_PAUSE);
    op.value = rnd_next(p, 300);
    rnd_insert(loop, rnd_next(p, loop->length), &op);
}

static void rnd_add_pattern(rnd_program_t *p, rnd_loop_t *loop)
{
    rnd_pattern_t *pattern = &loop->pattern[loop->num_patterns++];
    unsigned i;

    pattern->when    = rnd_chance(p, 60) ? RND_EVERY : RND_AT_RANDOM;
    pattern->what    = (rnd_what_t)rnd_next(p, RND_EXCHANGES + 1);
    pattern->period  = 2 + rnd_next(p, 6);
    pattern->phase   = rnd_next(p, pattern->period);
    pattern->at      = rnd_next(p, loop->length);
    pattern->num_old = pattern->what == RND_INSERTS ? 0 :
                       1 + rnd_next(p, RND_FEW);
    pattern->num_new = pattern->what == RND_OMITS ? 0 :
                       1 + rnd_next(p, RND_FEW);
    for (i = 0; i < pattern->num_new; ++i) {
        rnd_make_op(p, loop, &pattern->op[i]);
        pattern->op[i].body = RND_BODY + loop->num_patterns * RND_FEW + i;
    }
    if (loop->num_patterns > 1 && pattern->at > pattern[-1].at) {
        rnd_pattern_t other = pattern[-1];

        pattern[-1] = *pattern;
        *pattern    = other;
    }
}

static void rnd_make_body(rnd_program_t *p, rnd_loop_t *loop)
{
    unsigned length = 1 + rnd_next(p, rnd_chance(p, 85) ? RND_LENGTH / 3 :
                                                          RND_LENGTH);
    unsigned begin  = rnd_chance(p, 70) ? 0 : rnd_next(p, length);
    unsigned i;
    rnd_op_t op;

    for (i = 0; i < length; ++i) {
        rnd_make_op(p, loop, &op);
        rnd_insert(loop, i, &op);
    }
    while (rnd_chance(p, 12)) {
        rnd_add_flag(p, loop);
    }
    while (rnd_chance(p, 25)) {
        rnd_add_event(p, loop);
    }
    if (rnd_chance(p, 10)) {
        rnd_add_pause(p, loop);
    }
    if (rnd_chance(p, 20)) {
        rnd_add_range(p, loop, loop->owner, 10 + loop->index, length / 2,
                      rnd_chance(p, 50) ? length : begin);
    }
    for (i = 0; i < p->num_threads; ++i) {
        if (rnd_chance(p, i == loop->owner ? 90 : 20)) {
            rnd_add_range(p, loop, i,
                          loop->index % 3 + (i == loop->owner ? 0 : 4 * i),
                          begin, loop->length);
        }
    }
}

/* Nothing comes after so many operations but the ends of ranges. */
static void rnd_shorten(rnd_op_t *ops, unsigned *num_ops_p, unsigned length)
{
    unsigned num = length;
    unsigned i;

    for (i = length; i < *num_ops_p; ++i) {
        if (rnd_kinds[ops[i].kind].group == RND_EDGES) {
            ops[num++] = ops[i];
        }
    }
    *num_ops_p = num;
}

/* What is different in one repetition; the next one starts from the loop. */
static void rnd_change(rnd_program_t *p, const rnd_loop_t *loop, rnd_op_t *ops,
                       unsigned *num_ops_p, unsigned repeat)
{
    unsigned i     = rnd_next(p, *num_ops_p);
    unsigned place = ops[i].body;
    unsigned k;

    switch (rnd_next(p, 9)) {
    case 0:             /* one value */
        ops[i].value += repeat;
        break;
    case 1:             /* every value */
        for (k = 0; k < *num_ops_p; ++k) {
            ops[k].value += repeat;
        }
        break;
    case 2:             /* one buffer */
        ops[i].to = rnd_choose_buffer(p, loop, ops[i].thread,
                                      rnd_kinds[ops[i].kind].to_sort);
        break;
    case 3:             /* another operation */
        if (rnd_kinds[ops[i].kind].group != RND_EDGES) {
            rnd_make_op(p, loop, &ops[i]);
            ops[i].body = place;
        }
        break;
    case 4:             /* a shorter sequence */
        rnd_shorten(ops, num_ops_p, i + 1);
        break;
    case 5:             /* a longer sequence */
        if (*num_ops_p < RND_BODY) {
            rnd_make_op(p, loop, &ops[*num_ops_p]);
            ops[(*num_ops_p)++].body = RND_BODY;
        }
        break;
    case 6:             /* another length */
        ops[i].words = 16u << rnd_next(p, 3);
        break;
    case 7:             /* another shape */
        ops[i].shape += rnd_choose_shape_step(p);
        break;
    default:            /* another stream */
        ops[i].slot = rnd_choose_slot(p);
        break;
    }
    rnd_settle(&ops[i]);
}

/* Ends of ranges stay. */
static void rnd_omit(rnd_op_t *ops, unsigned *num_ops_p, unsigned at,
                     unsigned count)
{
    unsigned end = at + count < *num_ops_p ? at + count : *num_ops_p;
    unsigned num = at;
    unsigned i;

    for (i = at; i < *num_ops_p; ++i) {
        if (i >= end || rnd_kinds[ops[i].kind].group == RND_EDGES) {
            ops[num++] = ops[i];
        }
    }
    *num_ops_p = num;
}

static void rnd_apply(rnd_program_t *p, const rnd_pattern_t *pattern,
                      rnd_op_t *ops, unsigned *num_ops_p, unsigned repeat)
{
    unsigned at  = pattern->at;
    unsigned num = pattern->num_new;

    if (pattern->when == RND_EVERY ?
        repeat % pattern->period != pattern->phase : rnd_chance(p, 50)) {
        return;
    }
    rnd_omit(ops, num_ops_p, at, pattern->num_old);
    if (*num_ops_p + num <= RND_BODY) {
        memmove(&ops[at + num], &ops[at], (*num_ops_p - at) * sizeof(ops[0]));
        memcpy(&ops[at], pattern->op, num * sizeof(ops[0]));
        *num_ops_p += num;
    }
}

static void rnd_drift(rnd_op_t *op, unsigned repeat)
{
    unsigned turn  = repeat % op->period;
    unsigned to    = op->to;
    unsigned event = op->event[0];

    switch (op->drift) {
    case RND_ALTERNATES:
        op->value += turn;
        break;
    case RND_PING_PONG:
        if (repeat % 2 && rnd_kinds[op->kind].num_from > 0 &&
            rnd_kinds[op->kind].to_sort == rnd_kinds[op->kind].from_sort) {
            op->to      = op->from[0];
            op->from[0] = to;
        }
        if (repeat % 2) {
            op->event[0] = op->event[1];
            op->event[1] = event;
        }
        break;
    case RND_DRIFTS:
        op->value += repeat;
        break;
    case RND_RESHAPES:
        op->words = 64u >> turn % 3;
        break;
    case RND_SHAPE_ALTERNATES:
        op->shape += turn * op->shape_step;
        break;
    case RND_SHAPE_DRIFTS:
        op->shape += repeat * op->shape_step;
        break;
    default:
        break;
    }
    rnd_settle(op);
}

/* Few repetitions of which many differ, or many of which few do. */
static void rnd_choose_repeats(rnd_program_t *p, rnd_loop_t *loop)
{
    bool is_long = rnd_chance(p, 15);

    loop->repeats = is_long ? 20 + rnd_next(p, 41) : 3 + rnd_next(p, 8);
    loop->change  = rnd_chance(p, 40) ? 0 :
                    is_long           ? 2 + rnd_next(p, 8) :
                                        10 * rnd_next(p, 8);
    while (loop->num_patterns < RND_PATTERNS &&
           rnd_chance(p, is_long ? 60 : 30)) {
        rnd_add_pattern(p, loop);
    }
}

static void rnd_make_repeat(rnd_program_t *p, const rnd_loop_t *loop,
                            unsigned repeat)
{
    unsigned num = loop->length;
    rnd_op_t ops[RND_BODY];
    unsigned i;

    memcpy(ops, loop->body, sizeof(ops));
    for (i = 0; i < loop->num_patterns; ++i) {
        rnd_apply(p, &loop->pattern[i], ops, &num, repeat);
    }
    for (i = 0; i < num; ++i) {
        rnd_drift(&ops[i], repeat);
    }
    while (num > 0 && rnd_chance(p, loop->change)) {
        rnd_change(p, loop, ops, &num, repeat);
    }
    for (i = 0; i < num; ++i) {
        ops[i].loop   = loop->index;
        ops[i].repeat = repeat;
        p->op[p->num_ops++] = ops[i];
    }
}

static void rnd_make_loop(rnd_program_t *p, unsigned index)
{
    unsigned begin = p->num_ops;
    unsigned repeat, i;
    rnd_loop_t loop;

    memset(&loop, 0, sizeof(loop));
    loop.index    = index;
    loop.owner    = rnd_next(p, p->num_threads);
    loop.others   = rnd_chance(p, 25) ? 0 : 10 + rnd_next(p, 50);
    loop.slot     = rnd_choose_slot(p);
    loop.side     = rnd_choose_slot(p);
    loop.straying = rnd_chance(p, 25) ? 0 : 5 + rnd_next(p, 45);
    loop.sharing  = 5 + rnd_next(p, 40);
    loop.work     = rnd_chance(p, 50) ? 100 : 90;
    loop.drifting = rnd_chance(p, 50) ? 0 : rnd_next(p, 60);
    p->in_turn[index] = rnd_chance(p, 50);
    rnd_make_body(p, &loop);
    for (i = 0; i < loop.length; ++i) {
        loop.body[i].body = i;
    }
    rnd_choose_repeats(p, &loop);
    for (repeat = 0; repeat < loop.repeats &&
         p->num_ops + RND_BODY <= begin + RND_LOOP; ++repeat) {
        rnd_make_repeat(p, &loop, repeat);
    }
}

void rnd_make(rnd_program_t *p, uint64_t seed, unsigned index)
{
    unsigned i;

    memset(p->dropped, 0, sizeof(p->dropped));
    p->seed         = seed;
    p->first_number = index * RND_NUMBERS;
    p->state        = seed * 2654435761u + 12345;
    p->num_ops      = 0;
    p->num_threads  = rnd_chance(p, 50) ? 1 :
                      2 + rnd_next(p, RND_THREADS - 1);
    p->leaves_open  = rnd_chance(p, 8);
    for (i = 0; i < RND_LEGACY; ++i) {
        p->stream_flags[i] = rnd_chance(p, 50) ? CU_STREAM_NON_BLOCKING :
                                                 CU_STREAM_DEFAULT;
    }
    p->num_loops = 1 + rnd_next(p, RND_LOOPS);
    for (i = 0; i < p->num_loops; ++i) {
        rnd_make_loop(p, i);
    }
}
