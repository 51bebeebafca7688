/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts a random program's operations in an order that leaves CUDA no choice.
 *
 * Time is counted in steps of each thread: a clock holds, for every thread, how
 * many of its steps are known to be over. Each thread has one; so has, as seen
 * by each thread, the work of every stream that the host has waited for
 * (`done`), and the work of every stream that comes before what is next on
 * another one (`before`). An operation that touches memory is held against the
 * last one that wrote it, and against those that have read it since, and what
 * is lacking is put in.
 *
 * Streams and the legacy stream wait for each other by themselves, but for what
 * a GPU was seen to take more loosely (an H200 with driver 580): a copy on the
 * per-thread stream read pinned memory before a kernel had written it that was
 * launched on the legacy stream before. So what is between these two streams,
 * and what copies host memory, is ordered by events.
 */
#include <stdlib.h>
#include <string.h>

#include "random.h"


enum {
    RND_HOST_LANE  = 0,              /* the lane of what the host does itself */
    RND_LANES = 64
};


typedef uint16_t rnd_clock_t[RND_THREADS];

/* A step; place 0 is none. */
typedef struct rnd_touch {
    unsigned lane;
    unsigned thread;
    unsigned place;
} rnd_touch_t;

/* Who has used a buffer. */
typedef struct rnd_memory {
    rnd_touch_t writer;
    uint16_t    reader[RND_LANES][RND_THREADS];     /* since then */
} rnd_memory_t;

typedef struct rnd_event {
    rnd_touch_t record;         /* or its creation */
    bool        is_recorded;
    rnd_clock_t clock;          /* on the lane of the record */
    rnd_clock_t before[RND_LANES];
    rnd_clock_t users;          /* who look at it since */
} rnd_event_t;

/* A stream from its creation to its end. */
typedef struct rnd_lane {
    bool     is_gone;
    bool     waits_for_legacy;
    bool     is_created;        /* by the program: its handle is everyone's */
    unsigned slot;
    unsigned thread;            /* of a per-thread stream */
} rnd_lane_t;

typedef struct rnd_plan {
    rnd_program_t *program;
    rnd_op_t     *current;      /* the operation that is being placed */
    unsigned     number;
    uint32_t     luck;

    unsigned     count[RND_THREADS];
    rnd_clock_t  pending[RND_THREADS];  /* of each thread's next step */
    rnd_clock_t  clock[RND_THREADS];
    rnd_clock_t  done[RND_THREADS][RND_LANES];
    rnd_clock_t  before[RND_THREADS][RND_LANES][RND_LANES];
    uint16_t     index[RND_THREADS][RND_STEPS + 1];

    rnd_lane_t   lane[RND_LANES];
    unsigned     num_lanes;
    unsigned     lane_of[RND_LEGACY + 1];
    unsigned     own_lane[RND_THREADS];
    rnd_touch_t  created[RND_LEGACY];
    rnd_clock_t  users[RND_LEGACY];     /* of a stream's handle */
    rnd_touch_t  world;         /* that no other thread may disturb */

    rnd_memory_t memory[RND_RESOURCES];
    bool         is_pooled[RND_BUFFERS];    /* allocated in stream order */
    rnd_event_t  event[RND_EVENTS];
    uint32_t     token[RND_BUFFERS];    /* last word written to a flag */
    uint32_t     last_token;
    rnd_touch_t  range[RND_RANGES];     /* its start or end */
    bool         is_open[RND_RANGES];
    bool         allows_big;    /* kernels of the second module have the
                                   shared memory that RND_TURN_BIG asks for */
} rnd_plan_t;


static void rnd_place(rnd_plan_t *plan, rnd_op_t *op);

static uint32_t rnd_luck(rnd_plan_t *plan, uint32_t below)
{
    plan->luck = plan->luck * 1664525u + 1013904223u;
    return (plan->luck >> 8) % below;
}

static void rnd_join_clock(rnd_clock_t clock, const rnd_clock_t other)
{
    unsigned i;

    for (i = 0; i < RND_THREADS; ++i) {
        clock[i] = clock[i] > other[i] ? clock[i] : other[i];
    }
}

/* What one thread knows of streams, another one does as well. */
static void rnd_join_knowledge(rnd_plan_t *plan, unsigned thread,
                               unsigned other)
{
    unsigned i, k;

    for (i = 0; i < plan->num_lanes; ++i) {
        rnd_join_clock(plan->done[thread][i], plan->done[other][i]);
        for (k = 0; k < plan->num_lanes; ++k) {
            rnd_join_clock(plan->before[thread][i][k],
                           plan->before[other][i][k]);
        }
    }
}

/* The thread's next step comes after a call of another thread. */
static void rnd_after(rnd_plan_t *plan, unsigned thread, unsigned other,
                      unsigned place)
{
    if (plan->clock[thread][other] >= place) {
        return;
    }
    plan->pending[thread][other] = (uint16_t)place;
    rnd_join_clock(plan->clock[thread],
                   plan->program->step[plan->index[other][place]].clock);
    if (place == plan->count[other]) {
        rnd_join_knowledge(plan, thread, other);
    }
}

static void rnd_after_touch(rnd_plan_t *plan, unsigned thread,
                            const rnd_touch_t *touch)
{
    rnd_after(plan, thread, touch->thread, touch->place);
}

static void rnd_after_clock(rnd_plan_t *plan, unsigned thread,
                            const rnd_clock_t clock)
{
    unsigned i;

    for (i = 0; i < RND_THREADS; ++i) {
        rnd_after(plan, thread, i, clock[i]);
    }
}

/* Of all streams: the thread's own one has a lane for each thread. */
static unsigned rnd_lane_of(const rnd_plan_t *plan, const rnd_op_t *op)
{
    return op->slot == RND_PER_THREAD ? plan->own_lane[op->thread] :
                                        plan->lane_of[op->slot];
}

static unsigned rnd_new_lane(rnd_plan_t *plan, unsigned slot, unsigned thread,
                             bool waits_for_legacy)
{
    plan->lane[plan->num_lanes] = (rnd_lane_t){
        .waits_for_legacy = waits_for_legacy,
        .is_created       = slot < RND_LEGACY,
        .slot             = slot,
        .thread           = thread,
    };
    return plan->num_lanes++;
}

/* While a stream is captured, other threads may only launch elsewhere. */
static bool rnd_is_harmless(const rnd_plan_t *plan, const rnd_op_t *op)
{
    return rnd_kinds[op->kind].group == RND_LAUNCHES &&
           rnd_is_created(op->slot) &&
           !plan->lane[plan->lane_of[op->slot]].waits_for_legacy &&
           plan->lane_of[op->slot] != plan->world.lane;
}

static rnd_step_t *rnd_emit(rnd_plan_t *plan, const rnd_op_t *op)
{
    rnd_program_t *p = plan->program;
    rnd_step_t *step = &p->step[p->num_steps];
    unsigned t       = op->thread;

    if (!rnd_is_harmless(plan, op)) {
        rnd_after_touch(plan, t, &plan->world);
    }
    if (p->in_turn[plan->current->loop] && p->num_steps > 0) {
        rnd_after(plan, t, step[-1].op.thread, step[-1].place);
    }
    memset(step, 0, sizeof(*step));
    step->op       = *op;
    step->number   = plan->number;
    step->is_added = op != plan->current;
    step->place    = (uint16_t)++plan->count[t];

    plan->clock[t][t]            = step->place;
    plan->index[t][step->place]  = (uint16_t)p->num_steps++;
    memcpy(step->clock, plan->clock[t], sizeof(step->clock));
    memcpy(step->after, plan->pending[t], sizeof(step->after));
    memset(plan->pending[t], 0, sizeof(plan->pending[t]));
    return step;
}

/* A step for the order's sake. */
static void rnd_add(rnd_plan_t *plan, rnd_kind_t kind, unsigned thread,
                    unsigned lane, unsigned event)
{
    rnd_op_t op;

    memset(&op, 0, sizeof(op));
    op.kind     = kind;
    op.thread   = thread;
    op.slot     = plan->lane[lane].slot;
    op.event[0] = event;
    op.loop     = plan->current->loop;
    rnd_place(plan, &op);
}

/* An event that was recorded after the touch on its stream, or RND_EVENTS. */
static unsigned rnd_find_event(rnd_plan_t *plan, const rnd_touch_t *touch)
{
    const rnd_event_t *event;
    unsigned start = rnd_luck(plan, RND_EVENTS);
    unsigned i;

    for (i = 0; i < RND_EVENTS; ++i) {
        event = &plan->event[(start + i) % RND_EVENTS];
        if (event->is_recorded && event->record.lane == touch->lane &&
            event->clock[touch->thread] >= touch->place) {
            return (start + i) % RND_EVENTS;
        }
    }
    return RND_EVENTS;
}

/* One that is recorded now, by whoever can. */
static unsigned rnd_record_event(rnd_plan_t *plan, unsigned thread,
                                 const rnd_touch_t *touch)
{
    const rnd_lane_t *lane = &plan->lane[touch->lane];
    unsigned event         = RND_OWN_EVENTS + (plan->current->body +
                             rnd_luck(plan, 2)) %
                             (RND_EVENTS - RND_OWN_EVENTS);

    if (lane->slot == RND_PER_THREAD) {
        thread = lane->thread;
    } else if (rnd_luck(plan, 2) == 0) {
        thread = touch->thread;
    }
    rnd_after_touch(plan, thread, touch);
    rnd_add(plan, RND_RECORD, thread, touch->lane, event);
    return event;
}

static bool rnd_can_name(const rnd_plan_t *plan, unsigned thread,
                         unsigned lane)
{
    return !plan->lane[lane].is_gone &&
           (plan->lane[lane].slot != RND_PER_THREAD ||
            plan->lane[lane].thread == thread);
}

/* The host has the work of a touch behind it. */
static void rnd_complete(rnd_plan_t *plan, unsigned thread,
                         const rnd_touch_t *touch)
{
    unsigned event, choice;

    rnd_after_touch(plan, thread, touch);
    if (touch->lane == RND_HOST_LANE ||
        plan->done[thread][touch->lane][touch->thread] >= touch->place) {
        return;
    }
    event  = rnd_find_event(plan, touch);
    choice = rnd_luck(plan, 16);
    if (event == RND_EVENTS && plan->lane[touch->lane].is_gone) {
        choice = 0;
    }
    if (choice < 2) {
        rnd_add(plan, RND_CONTEXT_SYNC, thread, RND_HOST_LANE, 0);
    } else if (choice < 8 && rnd_can_name(plan, thread, touch->lane)) {
        rnd_add(plan, choice < 5 ? RND_STREAM_SYNC : RND_STREAM_POLL, thread,
                touch->lane, 0);
    } else {
        event = event < RND_EVENTS ? event :
                rnd_record_event(plan, thread, touch);
        rnd_add(plan, choice % 2 ? RND_EVENT_SYNC : RND_EVENT_POLL, thread,
                RND_HOST_LANE, event);
    }
}

/* Whether work on the one stream waits for that on the other by itself. Nothing
 * says that the legacy stream waits for what a destroyed one has left. */
static bool rnd_waits_by_itself(const rnd_lane_t *mine,
                                const rnd_lane_t *other)
{
    return (mine->slot == RND_LEGACY && other->waits_for_legacy &&
            !other->is_gone) ||
           (other->slot == RND_LEGACY && mine->waits_for_legacy);
}

/* What is next on the lane comes after the work of a touch; `by_event` if that
 * one stream waits for the other by itself does not do. */
static void rnd_order(rnd_plan_t *plan, unsigned thread, unsigned lane,
                      const rnd_touch_t *touch, bool by_event)
{
    const rnd_lane_t *mine, *other;
    unsigned event;

    rnd_after_touch(plan, thread, touch);
    mine  = &plan->lane[lane];
    other = &plan->lane[touch->lane];
    if (touch->place == 0 || touch->lane == RND_HOST_LANE ||
        touch->lane == lane ||
        (!by_event && rnd_waits_by_itself(mine, other)) ||
        plan->done[thread][touch->lane][touch->thread] >= touch->place ||
        plan->before[thread][lane][touch->lane][touch->thread] >=
        touch->place) {
        return;
    }
    event = rnd_find_event(plan, touch);
    if (rnd_luck(plan, 12) == 0 ||
        (event == RND_EVENTS && other->is_gone)) {
        rnd_complete(plan, thread, touch);
        return;
    }
    if (event == RND_EVENTS || rnd_luck(plan, 8) == 0) {
        event = other->is_gone ? event : rnd_record_event(plan, thread, touch);
    }
    rnd_add(plan, RND_WAIT, thread, lane, event);
}

/* The same for everyone who has used a buffer: with `lane` RND_HOST_LANE the
 * work must be done, with `lane` RND_LANES the calls must be over. */
static void rnd_order_one(rnd_plan_t *plan, unsigned thread, unsigned lane,
                          const rnd_touch_t *touch, bool by_event)
{
    if (touch->place == 0) {
        return;
    }
    if (lane == RND_HOST_LANE) {
        rnd_complete(plan, thread, touch);
    } else if (lane == RND_LANES) {
        rnd_after_touch(plan, thread, touch);
    } else {
        rnd_order(plan, thread, lane, touch, by_event);
    }
}

static void rnd_order_readers(rnd_plan_t *plan, unsigned thread, unsigned lane,
                              const rnd_memory_t *memory, bool by_event)
{
    rnd_touch_t touch;

    for (touch.lane = 0; touch.lane < plan->num_lanes; ++touch.lane) {
        for (touch.thread = 0; touch.thread < RND_THREADS; ++touch.thread) {
            touch.place = memory->reader[touch.lane][touch.thread];
            rnd_order_one(plan, thread, lane, &touch, by_event);
        }
    }
}

static void rnd_order_all(rnd_plan_t *plan, unsigned thread, unsigned lane,
                          const rnd_memory_t *memory, bool by_event)
{
    rnd_touch_t writer = memory->writer;

    rnd_order_one(plan, thread, lane, &writer, by_event);
    rnd_order_readers(plan, thread, lane, memory, by_event);
}

static void rnd_note_writer(rnd_memory_t *memory, unsigned lane,
                            const rnd_step_t *step)
{
    memset(memory, 0, sizeof(*memory));
    memory->writer = (rnd_touch_t){lane, step->op.thread, step->place};
}

/* How it uses the buffer that it writes; a call that fails uses none. */
static rnd_use_t rnd_use(const rnd_plan_t *plan, const rnd_op_t *op)
{
    return op->kind == RND_TURN_BIG && !plan->allows_big ?
           RND_UNUSED : rnd_kinds[op->kind].to;
}

static bool rnd_copies_host_memory(const rnd_op_t *op, unsigned buffer)
{
    return rnd_kinds[op->kind].group == RND_WORK &&
           rnd_kinds[op->kind].num_from > 0 && buffer >= RND_PINNED;
}

/* Before an operation: its memory. */
static void rnd_order_memory(rnd_plan_t *plan, const rnd_op_t *op,
                             unsigned lane)
{
    const rnd_kind_info_t *info = &rnd_kinds[op->kind];
    rnd_use_t use               = rnd_use(plan, op);
    rnd_touch_t writer;
    unsigned i;

    for (i = 0; i < info->num_from; ++i) {
        writer = plan->memory[op->from[i]].writer;
        rnd_order_one(plan, op->thread, lane, &writer,
                      rnd_copies_host_memory(op, op->from[i]));
    }
    if (use != RND_UNUSED) {
        rnd_order_all(plan, op->thread,
                      use == RND_HOST_WRITE ? RND_HOST_LANE :
                      use == RND_HOST_ORDER ? RND_LANES : lane,
                      &plan->memory[op->to],
                      rnd_copies_host_memory(op, op->to));
    }
    if (info->group == RND_LAUNCHES && op->module == 1) {
        rnd_after_touch(plan, op->thread, &plan->memory[RND_MODULE].writer);
    }
}

/* And after it. */
static void rnd_note_memory(rnd_plan_t *plan, const rnd_step_t *step,
                            unsigned lane)
{
    const rnd_op_t *op          = &step->op;
    const rnd_kind_info_t *info = &rnd_kinds[op->kind];
    rnd_use_t use               = rnd_use(plan, op);
    unsigned i;

    for (i = 0; i < info->num_from; ++i) {
        plan->memory[op->from[i]].reader[lane][op->thread] = step->place;
    }
    if (use != RND_UNUSED) {
        rnd_note_writer(&plan->memory[op->to],
                        use == RND_HOST_WRITE ? RND_HOST_LANE : lane, step);
    }
    if (info->group == RND_LAUNCHES && op->module == 1) {
        plan->memory[RND_MODULE].reader[lane][op->thread] = step->place;
    }
}

/* What the host can see now and nobody writes meanwhile. */
static void rnd_look(rnd_plan_t *plan, rnd_step_t *step)
{
    unsigned t = step->op.thread;
    const rnd_touch_t *writer;
    unsigned i;

    for (i = step->op.kind == RND_DUMP ? 0 : RND_PINNED; i < RND_FLAG; ++i) {
        writer = &plan->memory[i].writer;
        if (writer->place > 0 &&
            (plan->clock[t][writer->thread] < writer->place ||
             (writer->lane != RND_HOST_LANE &&
              plan->done[t][writer->lane][writer->thread] < writer->place))) {
            continue;
        }
        step->look |= 1u << i;
        plan->memory[i].reader[RND_HOST_LANE][t] = step->place;
    }
}

/* The host knows that a stream's work up to a clock is done, and with it what
 * that waited for. */
static void rnd_note_done(rnd_plan_t *plan, unsigned thread, unsigned lane,
                          rnd_clock_t clock, rnd_clock_t *before)
{
    unsigned i;

    rnd_join_clock(plan->done[thread][lane], clock);
    for (i = 0; i < plan->num_lanes; ++i) {
        rnd_join_clock(plan->done[thread][i], before[i]);
    }
}

static void rnd_note_event(rnd_plan_t *plan, const rnd_step_t *step,
                           unsigned lane, unsigned which)
{
    unsigned t         = step->op.thread;
    rnd_event_t *event = &plan->event[step->op.event[which]];
    unsigned i;

    switch (step->op.kind) {
    case RND_RECORD:
    case RND_EVENT_ANEW:
        event->record      = (rnd_touch_t){lane, t, step->place};
        event->is_recorded = step->op.kind == RND_RECORD;
        memset(event->users, 0, sizeof(event->users));
        memcpy(event->clock, step->clock, sizeof(event->clock));
        memcpy(event->before, plan->before[t][lane], sizeof(event->before));
        return;
    case RND_WAIT:
        for (i = 0; event->is_recorded && i < plan->num_lanes; ++i) {
            rnd_join_clock(plan->before[t][lane][i], event->before[i]);
        }
        if (event->is_recorded) {
            rnd_join_clock(plan->before[t][lane][event->record.lane],
                           event->clock);
        }
        break;
    case RND_EVENT_SYNC:
    case RND_EVENT_POLL:
    case RND_ELAPSED:
        if (event->is_recorded) {
            rnd_note_done(plan, t, event->record.lane, event->clock,
                          event->before);
        }
        break;
    default:
        break;
    }
    event->users[t] = step->place;
}

static void rnd_order_event(rnd_plan_t *plan, const rnd_op_t *op,
                            unsigned which)
{
    const rnd_event_t *event = &plan->event[op->event[which]];

    rnd_after_touch(plan, op->thread, &event->record);
    if (op->kind == RND_RECORD || op->kind == RND_EVENT_ANEW) {
        rnd_after_clock(plan, op->thread, event->users);
    }
}

static void rnd_anew_stream(rnd_plan_t *plan, const rnd_step_t *step)
{
    unsigned slot = step->op.slot;

    plan->lane[plan->lane_of[slot]].is_gone = true;
    plan->lane_of[slot] = rnd_new_lane(plan, slot, 0, step->op.value % 2 == 0);
    plan->created[slot] = (rnd_touch_t){RND_HOST_LANE, step->op.thread,
                                        step->place};
    memset(plan->users[slot], 0, sizeof(plan->users[slot]));
}

/* Whether it makes sense where it stands. */
static bool rnd_is_possible(const rnd_plan_t *plan, const rnd_op_t *op)
{
    if (plan->program->num_steps > RND_STEPS - 200) {
        return false;
    }
    switch (op->kind) {
    case RND_CAPTURE:
        return rnd_is_created(op->slot) &&
               !plan->lane[plan->lane_of[op->slot]].waits_for_legacy;
    case RND_STREAM_ANEW:
        /* Some are left for the threads' own. */
        return rnd_is_created(op->slot) &&
               plan->num_lanes < RND_LANES - RND_LOOPS * RND_THREADS;
    case RND_POLL_FLAG:
        return plan->token[op->to] != 0;
    case RND_START:
        return !plan->is_open[op->range];
    case RND_END:
        return plan->is_open[op->range];
    default:
        return true;
    }
}

/* What a kind needs beside its stream, memory and events. */
static void rnd_prepare(rnd_plan_t *plan, rnd_op_t *op)
{
    unsigned i;

    switch (op->kind) {
    case RND_BAD_LAUNCH:
    case RND_TURN_BIG:
        /* This one's address is always the same. */
        op->to = rnd_use(plan, op) == RND_UNUSED ? 0 : op->to;
        break;
    case RND_SET_FLAG:
    case RND_SET_FLAG_HOST:
        op->value = ++plan->last_token;
        break;
    case RND_POLL_FLAG:
        op->value = plan->token[op->to];
        rnd_after_touch(plan, op->thread, &plan->memory[op->to].writer);
        break;
    case RND_DUMP:
        for (i = 0; i < RND_FLAG; ++i) {
            rnd_after_touch(plan, op->thread, &plan->memory[i].writer);
        }
        break;
    case RND_STREAM_ANEW:
        rnd_after_clock(plan, op->thread, plan->users[op->slot]);
        break;
    case RND_MODULE_ANEW:
        rnd_order_all(plan, op->thread, RND_HOST_LANE,
                      &plan->memory[RND_MODULE], false);
        break;
    case RND_FUNCTION_LIMIT:
        rnd_order_all(plan, op->thread, RND_LANES, &plan->memory[RND_MODULE],
                      false);
        break;
    case RND_REPLACE:
        /* cuMemFree() waits for the work on memory of cuMemAlloc() only. */
        if (plan->is_pooled[op->to]) {
            rnd_order_all(plan, op->thread, RND_HOST_LANE,
                          &plan->memory[op->to], false);
        }
        break;
    case RND_CAPTURE:
        for (i = 0; i < RND_THREADS; ++i) {
            rnd_after(plan, op->thread, i, plan->count[i]);
        }
        break;
    case RND_START:
    case RND_END:
        rnd_after_touch(plan, op->thread, &plan->range[op->range]);
        break;
    default:
        break;
    }
}

static void rnd_note(rnd_plan_t *plan, rnd_step_t *step, unsigned lane)
{
    rnd_op_t *op     = &step->op;
    unsigned t       = op->thread;
    rnd_touch_t self = {RND_HOST_LANE, t, step->place};
    rnd_touch_t flag;
    unsigned i;

    switch (op->kind) {
    case RND_STREAM_SYNC:
    case RND_STREAM_POLL:
        rnd_note_done(plan, t, lane, step->clock, plan->before[t][lane]);
        break;
    case RND_CONTEXT_SYNC:
    case RND_DUMP:
        for (i = 0; i < plan->num_lanes; ++i) {
            rnd_join_clock(plan->done[t][i], step->clock);
        }
        break;
    case RND_SET_FLAG:
    case RND_SET_FLAG_HOST:
        plan->token[op->to] = op->value;
        break;
    case RND_POLL_FLAG:
        flag = plan->memory[op->to].writer;
        rnd_join_clock(plan->done[t][flag.lane],
                       plan->program->step[plan->index[flag.thread]
                                                      [flag.place]].clock);
        plan->memory[op->to].reader[RND_HOST_LANE][t] = step->place;
        break;
    case RND_STREAM_ANEW:
        rnd_anew_stream(plan, step);
        break;
    case RND_MODULE_ANEW:
        rnd_note_writer(&plan->memory[RND_MODULE], RND_HOST_LANE, step);
        plan->allows_big = false;
        break;
    case RND_FUNCTION_LIMIT:
        plan->memory[RND_MODULE].writer = self;
        plan->allows_big                = op->value % 2;
        break;
    case RND_REPLACE:
    case RND_REPLACE_ASYNC:
        plan->is_pooled[op->to] = op->kind == RND_REPLACE_ASYNC;
        break;
    case RND_CAPTURE:
        plan->world      = self;
        plan->world.lane = lane;
        break;
    case RND_START:
    case RND_END:
        plan->range[op->range]   = self;
        plan->is_open[op->range] = op->kind == RND_START;
        break;
    default:
        break;
    }
}

static unsigned rnd_num_events(rnd_kind_t kind)
{
    switch (kind) {
    case RND_RECORD:
    case RND_WAIT:
    case RND_EVENT_QUERY:
    case RND_EVENT_ANEW:
    case RND_EVENT_SYNC:
    case RND_EVENT_POLL:
        return 1;
    case RND_ELAPSED:
        return 2;
    default:
        return 0;
    }
}

static void rnd_place(rnd_plan_t *plan, rnd_op_t *op)
{
    const rnd_kind_info_t *info = &rnd_kinds[op->kind];
    unsigned lane               = RND_HOST_LANE;
    bool is_created             = false;
    rnd_step_t *step;
    unsigned i;

    if (!rnd_is_possible(plan, op)) {
        return;
    }
    if (info->flags & RND_ON_STREAM) {
        lane       = rnd_lane_of(plan, op);
        is_created = rnd_is_created(op->slot);
    }
    if (is_created) {
        rnd_after_touch(plan, op->thread, &plan->created[op->slot]);
    }
    rnd_order_memory(plan, op, lane);
    for (i = 0; i < rnd_num_events(op->kind); ++i) {
        rnd_order_event(plan, op, i);
    }
    rnd_prepare(plan, op);
    step = rnd_emit(plan, op);
    if (is_created) {
        plan->users[op->slot][op->thread] = step->place;
    }
    rnd_note_memory(plan, step, lane);
    for (i = 0; i < rnd_num_events(op->kind); ++i) {
        rnd_note_event(plan, step, lane, i);
    }
    rnd_note(plan, step, lane);
    if (info->flags & RND_LOOKS) {
        rnd_look(plan, step);
    }
}

/* A loop begins: the threads of the one before have ended. */
static void rnd_begin_loop(rnd_plan_t *plan)
{
    unsigned i, k;

    for (i = 0; i < RND_THREADS; ++i) {
        for (k = 0; k < RND_THREADS; ++k) {
            plan->clock[i][k] = (uint16_t)plan->count[k];
        }
        memset(plan->pending[i], 0, sizeof(plan->pending[i]));
    }
    for (i = 1; i < RND_THREADS; ++i) {
        rnd_join_knowledge(plan, 0, i);
        plan->lane[plan->own_lane[i]].is_gone = true;
        plan->own_lane[i] = rnd_new_lane(plan, RND_PER_THREAD, i, false);
    }
    for (i = 1; i < RND_THREADS; ++i) {
        rnd_join_knowledge(plan, i, 0);
    }
}

static void rnd_begin(rnd_plan_t *plan, rnd_program_t *p)
{
    unsigned i;

    memset(plan, 0, sizeof(*plan));
    plan->program   = p;
    plan->num_lanes = RND_HOST_LANE + 1;
    plan->lane[RND_HOST_LANE].slot = RND_LEGACY + 2;     /* no stream at all */
    for (i = 0; i <= RND_LEGACY; ++i) {
        plan->lane_of[i] = rnd_new_lane(
            plan, i, 0, i < RND_LEGACY &&
            p->stream_flags[i] == CU_STREAM_DEFAULT);
    }
    for (i = 0; i < RND_THREADS; ++i) {
        plan->own_lane[i] = rnd_new_lane(plan, RND_PER_THREAD, i, false);
    }
}

void rnd_plan(rnd_program_t *p)
{
    static rnd_plan_t plan;
    rnd_op_t last = {.kind = RND_DUMP};
    unsigned loop, i;

    rnd_begin(&plan, p);
    p->num_steps = 0;
    i            = 0;
    for (loop = 0; loop < p->num_loops; ++loop) {
        rnd_begin_loop(&plan);
        for (; i < p->num_ops && p->op[i].loop == loop; ++i) {
            plan.current = &p->op[i];
            plan.number  = p->first_number + i;
            plan.luck    = p->op[i].luck;
            if (!p->dropped[i]) {
                rnd_place(&plan, &p->op[i]);
            }
        }
        p->loop_end[loop] = p->num_steps;
    }
    rnd_begin_loop(&plan);
    plan.current = &last;
    rnd_place(&plan, &last);
    p->loop_end[loop] = p->num_steps;
}
