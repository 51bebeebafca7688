/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for what CUDA leaves open in a random program: two uses of something of
 * which nothing says which one comes first.
 *
 * The rules are written down here once more, knowing nothing of random_plan.c
 * nor of the simulated driver:
 *
 * - The calls of a thread come one after the other; after[] says what they come
 *   after in other threads. Threads end with their loop.
 * - Work starts after its call. On a stream it starts after the work of calls
 *   that came before; calls of two threads that nothing orders have no order.
 * - Work on the legacy stream starts after what blocking streams were given
 *   before it, and what they are given later starts after it. Not counted: the
 *   per-thread stream, records and waits, streams that were destroyed, and
 *   copies of host memory. See random_plan.c about the first and the last.
 * - An event stands for the work that its stream was given before the record.
 *   Waiting for it orders a stream, and looking at it the host. Who looks at a
 *   stream looks at the work that it was given before, who looks at the context
 *   at everything, and who sees a flag at what comes before the flag.
 * - Copies to pageable memory are over when their call returns, and those from
 *   it have read it. All others are taken to run on, the synchronous ones too.
 * - cuMemFree() waits for the work on memory of cuMemAlloc(), where its calls
 *   came before. Memory from a pool is freed when it is not in use, or in stream
 *   order.
 * - Handles, addresses of buffers and attributes belong to calls, not to work:
 *   all that use one come before or after the call that changes it.
 *
 * Of asynchronous copies of pageable memory and of cuMemFree() CUDA's newer
 * references say only that they may be so; all drivers are, programs count on
 * it, and the shim has to keep it.
 *
 * A clock holds, for each thread, how many of its calls are over, and for each
 * thread and stream, which of the thread's work on it is.
 */
#include <stdlib.h>
#include <string.h>

#include "random.h"


enum {
    CHK_STREAMS = 96,           /* in a program, the destroyed ones too */
    CHK_SIZE    = RND_THREADS * (CHK_STREAMS + 1),
    CHK_CALLS   = 0             /* the stream of what the host does */
};


/* What is used: memory and modules by work, all others by calls. */
typedef enum chk_thing {
    CHK_MEMORY     = 0,
    CHK_MODULE     = CHK_MEMORY + RND_BUFFERS,
    CHK_ADDRESS,                /* of a buffer */
    CHK_MODULE_NAME = CHK_ADDRESS + RND_BUFFERS,    /* and its attributes */
    CHK_EVENT,
    CHK_STREAM     = CHK_EVENT + RND_EVENTS,
    CHK_RANGE      = CHK_STREAM + RND_LEGACY,
    CHK_THINGS     = CHK_RANGE + RND_RANGES
} chk_thing_t;


typedef struct chk_clock {
    int16_t at[CHK_SIZE];       /* signed: there are instructions for that */
} chk_clock_t;

typedef struct chk_use {
    uint16_t stream;            /* or CHK_CALLS */
    uint16_t thread;
    int16_t  place;             /* 0: none */
    unsigned step;
} chk_use_t;

/* The last change, and who looked since: the last one of each kind. */
typedef struct chk_uses {
    chk_use_t change;
    chk_use_t look[CHK_STREAMS][RND_THREADS];
} chk_uses_t;

typedef struct chk_stream {
    bool     is_blocking;       /* as far as it is counted */
    bool     is_gone;
    unsigned num[RND_THREADS];
    unsigned *given[RND_THREADS];       /* steps of each thread */
} chk_stream_t;

typedef struct chk {
    const rnd_program_t *program;
    FILE         *file;
    unsigned     num_found;
    chk_clock_t  host[RND_THREADS];
    int16_t      place[RND_THREADS];
    chk_clock_t  *call;         /* of each step: when it returns, */
    chk_clock_t  *work;         /* and when its work is done */
    unsigned     *step_of[RND_THREADS];
    chk_stream_t stream[CHK_STREAMS];
    unsigned     num_streams;
    unsigned     stream_of[RND_LEGACY + 1];
    unsigned     own_stream[RND_THREADS];
    unsigned     record[RND_EVENTS];    /* its step + 1, or 0 */
    unsigned     setter[RND_BUFFERS];   /* of a flag: its step */
    bool         is_pooled[RND_BUFFERS];
    bool         allows_big;
    chk_uses_t   uses[CHK_THINGS];
} chk_t;


static void *chk_alloc(size_t num, size_t size)
{
    void *memory = calloc(num, size);

    if (memory == NULL) {
        perror("calloc");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static void chk_join(chk_clock_t *clock, const chk_clock_t *other)
{
    unsigned i;

    for (i = 0; i < CHK_SIZE; ++i) {
        clock->at[i] = clock->at[i] > other->at[i] ? clock->at[i] :
                                                     other->at[i];
    }
}

static int16_t *chk_at(chk_clock_t *clock, unsigned stream, unsigned thread)
{
    return &clock->at[stream * RND_THREADS + thread];
}

static unsigned chk_new_stream(chk_t *chk, bool is_blocking)
{
    chk_stream_t *stream;
    unsigned i;

    if (chk->num_streams == CHK_STREAMS) {
        fprintf(stderr, "more than %d streams\n", CHK_STREAMS);
        exit(EXIT_FAILURE);
    }
    stream              = &chk->stream[chk->num_streams];
    stream->is_blocking = is_blocking;
    for (i = 0; i < RND_THREADS; ++i) {
        stream->given[i] = chk_alloc(chk->program->num_steps + 1,
                                     sizeof(*stream->given[i]));
    }
    return chk->num_streams++;
}

static unsigned chk_stream_of(const chk_t *chk, const rnd_op_t *op)
{
    return op->slot == RND_PER_THREAD ? chk->own_stream[op->thread] :
                                        chk->stream_of[op->slot];
}

/* Joins the work on a stream whose calls are over by `now`. */
static void chk_join_stream(const chk_t *chk, unsigned index,
                            const chk_clock_t *now, chk_clock_t *clock)
{
    const chk_stream_t *stream = &chk->stream[index];
    const rnd_step_t *step;
    unsigned i, k;

    for (i = 0; i < chk->program->num_threads; ++i) {
        for (k = stream->num[i]; k > 0; --k) {
            step = &chk->program->step[stream->given[i][k - 1]];
            if ((int16_t)step->place <= now->at[i]) {
                chk_join(clock, &chk->work[stream->given[i][k - 1]]);
                break;
            }
        }
    }
}

/* Uses */

static void chk_report(chk_t *chk, unsigned thing, const chk_use_t *a,
                       const chk_use_t *b)
{
    if (chk->num_found++ == 0) {
        fprintf(chk->file, "seed %llu: steps %u and %u use %s %u, and nothing "
                "says which one is first\n",
                (unsigned long long)chk->program->seed, a->step, b->step,
                thing < CHK_MODULE       ? "memory" :
                thing == CHK_MODULE      ? "the module" :
                thing < CHK_MODULE_NAME  ? "the address of buffer" :
                thing == CHK_MODULE_NAME ? "functions of the module" :
                thing < CHK_STREAM       ? "event" :
                thing < CHK_RANGE        ? "stream" : "range",
                thing < CHK_MODULE       ? thing :
                thing == CHK_MODULE      ? 1 :
                thing < CHK_MODULE_NAME  ? thing - CHK_ADDRESS :
                thing == CHK_MODULE_NAME ? 1 :
                thing < CHK_STREAM       ? thing - CHK_EVENT :
                thing < CHK_RANGE        ? thing - CHK_STREAM :
                                           thing - CHK_RANGE);
    }
}

/* With `calls`, it is enough that the call of the earlier use is over. */
static void chk_compare(chk_t *chk, unsigned thing, const chk_use_t *earlier,
                        const chk_use_t *use, chk_clock_t *clock, bool calls)
{
    if (earlier->place > *chk_at(clock, calls ? CHK_CALLS : earlier->stream,
                                 earlier->thread)) {
        chk_report(chk, thing, earlier, use);
    }
}

static void chk_use(chk_t *chk, unsigned thing, chk_use_t use,
                    chk_clock_t *clock, bool changes, bool calls)
{
    chk_uses_t *uses = &chk->uses[thing];
    unsigned i, k;

    chk_compare(chk, thing, &uses->change, &use, clock, calls);
    if (!changes) {
        uses->look[use.stream][use.thread] = use;
        return;
    }
    for (i = 0; i < chk->num_streams; ++i) {
        for (k = 0; k < chk->program->num_threads; ++k) {
            chk_compare(chk, thing, &uses->look[i][k], &use, clock, calls);
        }
    }
    memset(uses->look, 0, sizeof(uses->look));
    uses->change = use;
}

static chk_use_t chk_use_of(unsigned stream, const rnd_step_t *step,
                            unsigned index)
{
    return (chk_use_t){(uint16_t)stream, (uint16_t)step->op.thread,
                       (int16_t)step->place, index};
}

/* By the call, before its work, if any, is given to the device. */
static void chk_call(chk_t *chk, unsigned index, unsigned thing, bool changes)
{
    const rnd_step_t *step = &chk->program->step[index];

    chk_use(chk, thing, chk_use_of(CHK_CALLS, step, index),
            &chk->host[step->op.thread], changes, false);
}

static bool chk_is_copy(rnd_kind_t kind)
{
    return rnd_kinds[kind].group == RND_WORK && rnd_kinds[kind].num_from > 0;
}

/* Work */

static bool chk_changes(const chk_t *chk, const rnd_op_t *op)
{
    return rnd_kinds[op->kind].to == RND_WRITE &&
           (op->kind != RND_TURN_BIG || chk->allows_big);
}

/* The step gives work to a stream. */
static void chk_give(chk_t *chk, unsigned index)
{
    const rnd_step_t *step      = &chk->program->step[index];
    const rnd_op_t *op          = &step->op;
    const rnd_kind_info_t *info = &rnd_kinds[op->kind];
    chk_clock_t *host           = &chk->host[op->thread];
    chk_clock_t *work           = &chk->work[index];
    unsigned on                 = chk_stream_of(chk, op);
    unsigned legacy             = chk->stream_of[RND_LEGACY];
    chk_use_t use               = chk_use_of(on, step, index);
    bool is_mark                = op->kind == RND_RECORD ||
                                  op->kind == RND_WAIT;
    chk_clock_t before;
    unsigned i;

    *work = *host;
    chk_join_stream(chk, on, host, work);
    if (op->kind == RND_WAIT && chk->record[op->event[0]] > 0) {
        chk_join(work, &chk->work[chk->record[op->event[0]] - 1]);
    }
    before = *work;             /* without what the legacy stream orders */
    if (on != legacy && chk->stream[on].is_blocking) {
        chk_join_stream(chk, legacy, host, work);
    }
    for (i = 1; on == legacy && !is_mark && i < chk->num_streams; ++i) {
        if (chk->stream[i].is_blocking && !chk->stream[i].is_gone) {
            chk_join_stream(chk, i, host, work);
        }
    }

    for (i = 0; i < info->num_from; ++i) {
        chk_use(chk, CHK_MEMORY + op->from[i], use,
                chk_is_copy(op->kind) && op->from[i] >= RND_PINNED ? &before :
                                                                     work,
                false, false);
    }
    if (chk_changes(chk, op)) {
        chk_use(chk, CHK_MEMORY + op->to, use,
                chk_is_copy(op->kind) && op->to >= RND_PINNED ? &before : work,
                true, false);
    }
    if (info->to == RND_HOST_ORDER) {
        chk_use(chk, CHK_MEMORY + op->to, use, host, true,
                !chk->is_pooled[op->to]);
    }
    if (info->group == RND_LAUNCHES && op->module == 1) {
        chk_use(chk, CHK_MODULE, use, work, false, false);
    }

    *chk_at(work, on, op->thread) = (int16_t)step->place;
    chk->stream[on].given[op->thread][chk->stream[on].num[op->thread]++] =
        index;
}

static bool chk_gives(const rnd_op_t *op)
{
    switch (op->kind) {
    case RND_STREAM_SYNC:
    case RND_STREAM_POLL:
    case RND_STREAM_QUERY:
    case RND_STREAM_ANEW:
    case RND_ASK:
        return false;
    default:
        return (rnd_kinds[op->kind].flags & RND_ON_STREAM) != 0;
    }
}

/* The calls that a step makes: what they use beside memory. */
static void chk_note_calls(chk_t *chk, unsigned index)
{
    const rnd_op_t *op          = &chk->program->step[index].op;
    const rnd_kind_info_t *info = &rnd_kinds[op->kind];
    unsigned i;

    if ((info->flags & RND_ON_STREAM) && rnd_is_created(op->slot)) {
        chk_call(chk, index, CHK_STREAM + op->slot,
                 op->kind == RND_STREAM_ANEW || op->kind == RND_CAPTURE);
    }
    for (i = 0; i < info->num_from; ++i) {
        chk_call(chk, index, CHK_ADDRESS + op->from[i], false);
    }
    if (info->to != RND_UNUSED) {
        chk_call(chk, index, CHK_ADDRESS + op->to,
                 op->kind == RND_REPLACE || op->kind == RND_REPLACE_ASYNC);
    }
    if (info->group == RND_LAUNCHES && op->module == 1) {
        chk_call(chk, index, CHK_MODULE_NAME, false);
    }
    switch (op->kind) {
    case RND_RECORD:
    case RND_EVENT_ANEW:
        chk_call(chk, index, CHK_EVENT + op->event[0], true);
        break;
    case RND_ELAPSED:
        chk_call(chk, index, CHK_EVENT + op->event[1], false);
        chk_call(chk, index, CHK_EVENT + op->event[0], false);
        break;
    case RND_WAIT:
    case RND_EVENT_QUERY:
    case RND_EVENT_SYNC:
    case RND_EVENT_POLL:
        chk_call(chk, index, CHK_EVENT + op->event[0], false);
        break;
    case RND_MODULE_ANEW:
        chk_call(chk, index, CHK_MODULE, true);
        chk_call(chk, index, CHK_MODULE_NAME, true);
        break;
    case RND_FUNCTION_LIMIT:
        chk_call(chk, index, CHK_MODULE_NAME, true);
        break;
    case RND_PINNED_WRITE:
        chk_call(chk, index, CHK_MEMORY + op->to, true);
        break;
    case RND_START:
    case RND_END:
        chk_call(chk, index, CHK_RANGE + op->range, true);
        break;
    default:
        break;
    }
}

static void chk_look_at_event(chk_t *chk, const rnd_op_t *op, unsigned which)
{
    unsigned record = chk->record[op->event[which]];

    if (record > 0) {
        chk_join(&chk->host[op->thread], &chk->work[record - 1]);
    }
}

/* What the thread knows when the calls have returned. */
static void chk_note_return(chk_t *chk, unsigned index)
{
    const rnd_op_t *op = &chk->program->step[index].op;
    chk_clock_t *host  = &chk->host[op->thread];
    chk_clock_t now    = *host;
    unsigned i;

    switch (op->kind) {
    case RND_STREAM_SYNC:
    case RND_STREAM_POLL:
        chk_join_stream(chk, chk_stream_of(chk, op), &now, host);
        break;
    case RND_TO_PAGEABLE:
    case RND_TO_PAGEABLE_NOW:
        chk_join(host, &chk->work[index]);
        break;
    case RND_CONTEXT_SYNC:
    case RND_DUMP:
        for (i = 1; i < chk->num_streams; ++i) {
            chk_join_stream(chk, i, &now, host);
        }
        break;
    case RND_ELAPSED:
        chk_look_at_event(chk, op, 1);
        chk_look_at_event(chk, op, 0);
        break;
    case RND_EVENT_SYNC:
    case RND_EVENT_POLL:
        chk_look_at_event(chk, op, 0);
        break;
    case RND_POLL_FLAG:
        chk_join(host, &chk->work[chk->setter[op->to]]);
        chk_call(chk, index, CHK_MEMORY + op->to, false);
        break;
    default:
        break;
    }
}

/* What things are from now on. */
static void chk_change(chk_t *chk, unsigned index)
{
    const rnd_op_t *op = &chk->program->step[index].op;

    switch (op->kind) {
    case RND_RECORD:
        chk->record[op->event[0]] = index + 1;
        break;
    case RND_EVENT_ANEW:
        chk->record[op->event[0]] = 0;
        break;
    case RND_SET_FLAG:
    case RND_SET_FLAG_HOST:
        chk->setter[op->to] = index;
        break;
    case RND_REPLACE:
    case RND_REPLACE_ASYNC:
        chk->is_pooled[op->to] = op->kind == RND_REPLACE_ASYNC;
        break;
    case RND_FUNCTION_LIMIT:
        chk->allows_big = op->value % 2 != 0;
        break;
    case RND_MODULE_ANEW:
        chk->allows_big = false;
        break;
    case RND_STREAM_ANEW:
        chk->stream[chk->stream_of[op->slot]].is_gone = true;
        chk->stream_of[op->slot] = chk_new_stream(chk, op->value % 2 == 0);
        break;
    default:
        break;
    }
}

static void chk_step(chk_t *chk, unsigned index)
{
    const rnd_step_t *step = &chk->program->step[index];
    unsigned t             = step->op.thread;
    chk_clock_t *host      = &chk->host[t];
    unsigned i;

    for (i = 0; i < RND_THREADS; ++i) {
        if (step->after[i] > 0) {
            chk_join(host, &chk->call[chk->step_of[i][step->after[i]]]);
        }
    }
    chk_note_calls(chk, index);
    *chk_at(host, CHK_CALLS, t)   = (int16_t)step->place;
    chk->step_of[t][step->place] = index;
    if (chk_gives(&step->op)) {
        chk_give(chk, index);
    }
    chk_note_return(chk, index);
    for (i = 0; i < RND_BUFFERS; ++i) {
        if (step->look & (1u << i)) {
            chk_call(chk, index, CHK_MEMORY + i, false);
            chk_call(chk, index, CHK_ADDRESS + i, false);
        }
    }
    chk_change(chk, index);
    chk->call[index] = *host;
}

/* Threads end, and others begin. */
static void chk_begin_loop(chk_t *chk)
{
    unsigned i;

    for (i = 1; i < RND_THREADS; ++i) {
        chk_join(&chk->host[0], &chk->host[i]);
        chk->own_stream[i] = chk_new_stream(chk, false);
    }
    for (i = 1; i < RND_THREADS; ++i) {
        chk->host[i] = chk->host[0];
    }
}

static void chk_begin(chk_t *chk, const rnd_program_t *p)
{
    unsigned i;

    chk->program     = p;
    chk->num_streams = CHK_CALLS + 1;
    chk->call        = chk_alloc(p->num_steps, sizeof(*chk->call));
    chk->work        = chk_alloc(p->num_steps, sizeof(*chk->work));
    for (i = 0; i < RND_THREADS; ++i) {
        chk->step_of[i] = chk_alloc(p->num_steps + 1,
                                    sizeof(*chk->step_of[i]));
    }
    for (i = 0; i < RND_LEGACY; ++i) {
        chk->stream_of[i] =
            chk_new_stream(chk, p->stream_flags[i] == CU_STREAM_DEFAULT);
    }
    chk->stream_of[RND_LEGACY] = chk_new_stream(chk, false);
    chk->own_stream[0]         = chk_new_stream(chk, false);
}

static void chk_end(chk_t *chk)
{
    unsigned i, k;

    for (i = 0; i < RND_THREADS; ++i) {
        for (k = 0; k < chk->num_streams; ++k) {
            free(chk->stream[k].given[i]);
        }
        free(chk->step_of[i]);
    }
    free(chk->work);
    free(chk->call);
    free(chk);
}

unsigned rnd_check(const rnd_program_t *p, FILE *file)
{
    chk_t *chk    = chk_alloc(1, sizeof(*chk));
    unsigned loop = 0;
    unsigned i, num;

    chk->file = file;
    chk_begin(chk, p);
    chk_begin_loop(chk);
    for (i = 0; i < p->num_steps; ++i) {
        while (i == p->loop_end[loop]) {
            ++loop;
            chk_begin_loop(chk);
        }
        chk_step(chk, i);
    }
    num = chk->num_found;
    chk_end(chk);
    return num;
}
