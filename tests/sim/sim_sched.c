/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: tasks, what they wait for, and the seeded choice of when and
 * in which order ready ones run.
 */
#include "sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SIM_TASK_NS     1000 /* virtual time of a task */
#define SIM_CALLBACK_MS 200
#define SIM_DRAIN_MS    5000

/* How a seed likes to choose; picked anew every so many tasks. */
typedef enum {
    SIM_MOOD_FAIR,   /* any ready task */
    SIM_MOOD_NEWEST, /* the one that was submitted last */
    SIM_MOOD_OLDEST,
    SIM_MOOD_STARVE, /* one lane only when nothing else is ready */
    SIM_MOOD_LAST
} sim_mood_t;

/* All below is guarded by sim_lock. */
static struct {
    sim_task_t **ready;
    size_t       num_ready, max_ready;
    sim_task_t  *oldest, *newest; /* unfinished tasks by submission */
    unsigned     num_running;
    uint64_t     last_id;
    uint64_t     clock;

    sim_mood_t   mood;
    unsigned     mood_left;
    uint64_t     starved;
    unsigned     laziness; /* 0: runs a lot .. 3: never before it must */

    sim_task_t  *callback; /* handed to the callback thread */
    bool         has_callback_thread, has_worker, is_stopping;
    pthread_t    callback_thread, worker;
} sim_sched;

/* ---------------------------------------------------------- tasks */

sim_task_t *sim_task_new(sim_op_t *op, uint64_t ctx_uid, uint64_t lane)
{
    sim_task_t *task = sim_alloc(sizeof(*task));

    task->refs      = 2; /* the caller's, and the scheduler's until done */
    task->num_waits = 1; /* its submission */
    task->id        = ++sim_sched.last_id;
    task->ctx_uid   = ctx_uid;
    task->lane      = lane;
    task->op        = op;

    task->older = sim_sched.newest;
    if (sim_sched.newest != NULL) {
        sim_sched.newest->newer = task;
    } else {
        sim_sched.oldest = task;
    }
    sim_sched.newest = task;
    return task;
}

sim_task_t *sim_task_ref(sim_task_t *task)
{
    if (task != NULL) {
        ++task->refs;
    }
    return task;
}

void sim_task_unref(sim_task_t *task)
{
    if ((task != NULL) && (--task->refs == 0)) {
        free(task->after);
        sim_op_release(task->op);
        free(task);
    }
}

void sim_task_set(sim_task_t **place, sim_task_t *task)
{
    sim_task_t *old = *place;

    *place = sim_task_ref(task);
    sim_task_unref(old);
}

bool sim_task_is_done(const sim_task_t *task)
{
    return (task == NULL) || (task->state == SIM_TASK_DONE);
}

static void sim_task_ready(sim_task_t *task)
{
    sim_sched.ready = sim_grow(sim_sched.ready, sim_sched.num_ready,
                               &sim_sched.max_ready, sizeof(sim_task_t *));
    task->state       = SIM_TASK_READY;
    task->ready_index = sim_sched.num_ready;
    sim_sched.ready[sim_sched.num_ready++] = task;
}

static void sim_task_unready(sim_task_t *task)
{
    sim_task_t *moved = sim_sched.ready[--sim_sched.num_ready];

    sim_sched.ready[task->ready_index] = moved;
    moved->ready_index                 = task->ready_index;
}

static void sim_task_release_one(sim_task_t *task)
{
    if (--task->num_waits == 0) {
        sim_task_ready(task);
    }
}

void sim_task_after(sim_task_t *task, sim_task_t *earlier)
{
    if (sim_task_is_done(earlier) || (earlier == task)) {
        return;
    }
    earlier->after = sim_grow(earlier->after, earlier->num_after,
                              &earlier->max_after, sizeof(sim_task_t *));
    earlier->after[earlier->num_after++] = task;
    ++task->num_waits;
}

void sim_task_after_all(sim_task_t *task)
{
    sim_task_t *earlier;

    for (earlier = sim_sched.oldest; earlier != NULL;
         earlier = earlier->newer) {
        if (earlier->ctx_uid == task->ctx_uid) {
            sim_task_after(task, earlier);
        }
    }
}

void sim_task_submit(sim_task_t *task)
{
    sim_task_release_one(task);
    sim_lock_wake();
}

static void sim_task_complete(sim_task_t *task)
{
    size_t i;

    task->state      = SIM_TASK_DONE;
    sim_sched.clock += SIM_TASK_NS;
    task->done_clock = sim_sched.clock;
    if (task->op != NULL) {
        sim_op_count(task->op);
    }

    if (task->older != NULL) {
        task->older->newer = task->newer;
    } else {
        sim_sched.oldest = task->newer;
    }
    if (task->newer != NULL) {
        task->newer->older = task->older;
    } else {
        sim_sched.newest = task->older;
    }

    for (i = 0; i < task->num_after; ++i) {
        sim_task_release_one(task->after[i]);
    }
    free(task->after);
    task->after     = NULL;
    task->num_after = 0;
    sim_op_release(task->op);
    task->op = NULL;
    sim_lock_wake();
    sim_task_unref(task);
}

/* ---------------------------------------------------------- running */

static bool sim_task_is_host(const sim_task_t *task)
{
    return (task->op != NULL) && ((task->op->kind == SIM_OP_HOST) ||
                                  (task->op->kind == SIM_OP_CALLBACK));
}

static bool sim_task_can_run(const sim_task_t *task)
{
    if (sim_task_is_host(task) && (sim_sched.callback != NULL)) {
        return false;
    }
    return (task->op == NULL) || sim_op_can_run(task->op);
}

static void *sim_callback_main(void *arg)
{
    sim_task_t *task;

    (void)arg;
    sim_thread()->is_callback = true;
    sim_lock_take();
    while (!sim_sched.is_stopping) {
        task = sim_sched.callback;
        if ((task == NULL) || (task->state != SIM_TASK_READY)) {
            sim_lock_wait(1000);
            continue;
        }
        task->state = SIM_TASK_RUNNING;
        sim_lock_drop();
        sim_op_run(task->op);
        sim_lock_take();
        sim_sched.callback = NULL;
        --sim_sched.num_running;
        sim_task_complete(task);
    }
    sim_lock_drop();
    return NULL;
}

/* Host functions run on a thread of the driver, as the real one's do. Waited
 * for, because the order of work would otherwise not follow from the seed;
 * but not for ever, because it may need a lock that our caller holds. */
static void sim_task_run_host(sim_task_t *task)
{
    unsigned i;

    if (!sim_sched.has_callback_thread) {
        sim_sched.has_callback_thread = true;
        pthread_create(&sim_sched.callback_thread, NULL, sim_callback_main,
                       NULL);
    }
    sim_task_ref(task);
    ++sim_sched.num_running;
    sim_sched.callback = task;
    sim_lock_wake();
    for (i = 0; (i < SIM_CALLBACK_MS) && !sim_task_is_done(task); ++i) {
        sim_lock_wait(1);
    }
    sim_task_unref(task);
}

static void sim_task_run(sim_task_t *task)
{
    sim_task_unready(task);
    if (sim_task_is_host(task)) {
        sim_task_run_host(task);
        return;
    }

    task->state = SIM_TASK_RUNNING;
    if (task->op != NULL) {
        ++sim_sched.num_running;
        sim_mem_open();
        sim_lock_drop();
        sim_op_run(task->op);
        sim_lock_take();
        sim_mem_close();
        --sim_sched.num_running;
    }
    sim_task_complete(task);
}

/* ---------------------------------------------------------- choosing */

static void sim_mood_change(void)
{
    if (sim_sched.mood_left-- > 0) {
        return;
    }
    sim_sched.mood_left = 8 + sim_random(64);
    sim_sched.mood      = sim_random(SIM_MOOD_LAST);
    sim_sched.laziness  = sim_random(4);
    sim_sched.starved   = (sim_sched.num_ready == 0) ? 0 :
        sim_sched.ready[sim_random((uint32_t)sim_sched.num_ready)]->lane;
}

/* Whether a is the better choice in the present mood. */
static bool sim_mood_prefers(const sim_task_t *a, const sim_task_t *b)
{
    switch (sim_sched.mood) {
    case SIM_MOOD_NEWEST:
        return a->id > b->id;
    case SIM_MOOD_OLDEST:
        return a->id < b->id;
    case SIM_MOOD_STARVE:
        return (a->lane != sim_sched.starved) &&
               (b->lane == sim_sched.starved);
    default:
        return false;
    }
}

static sim_task_t *sim_sched_choose(void)
{
    sim_task_t *best = NULL;
    size_t      num  = sim_sched.num_ready;
    size_t      i, start;

    if (num == 0) {
        return NULL;
    }
    sim_mood_change();
    start = sim_random((uint32_t)num);
    for (i = 0; i < num; ++i) {
        sim_task_t *task = sim_sched.ready[(start + i) % num];

        if (((best == NULL) || sim_mood_prefers(task, best)) &&
            sim_task_can_run(task)) {
            best = task;
            if (sim_sched.mood == SIM_MOOD_FAIR) {
                break;
            }
        }
    }
    return best;
}

void sim_sched_step(void)
{
    static const unsigned most[] = {6, 3, 1, 0};
    unsigned              i, num;
    sim_task_t           *task;

    if (sim_sched.num_ready == 0) {
        return;
    }
    num = most[sim_sched.laziness];
    num = (num == 0) ? 0 : sim_random(num + 1);
    if (num == 0) {
        sim_mood_change();
    }
    for (i = 0; i < num; ++i) {
        task = sim_sched_choose();
        if (task == NULL) {
            break;
        }
        sim_task_run(task);
    }
}

void sim_sched_drain(void)
{
    sim_task_t *task;
    unsigned    waited = 0;

    /* Not for ever: a host function may wait for what comes after us. */
    while (waited < SIM_DRAIN_MS) {
        task = sim_sched_choose();
        if (task != NULL) {
            sim_task_run(task);
        } else if (sim_sched.num_running > 0) {
            sim_lock_wait(1);
            ++waited;
        } else {
            return;
        }
    }
}

void sim_task_wait(sim_task_t *task)
{
    sim_task_t *chosen;

    sim_task_ref(task);
    while (!sim_task_is_done(task)) {
        chosen = sim_sched_choose();
        if (chosen != NULL) {
            sim_task_run(chosen);
        } else {
            /* Another thread runs it, or must still bring it about. */
            sim_lock_wait(1);
        }
    }
    sim_task_unref(task);
}

void sim_sched_wait(uint64_t ctx_uid)
{
    uint64_t    last = sim_sched.last_id;
    sim_task_t *task;

    sim_time_wait(NULL);
    for (;;) {
        for (task = sim_sched.oldest; task != NULL; task = task->newer) {
            if ((task->id <= last) &&
                ((ctx_uid == 0) || (task->ctx_uid == ctx_uid))) {
                break;
            }
        }
        if (task == NULL) {
            return;
        }
        sim_task_wait(task);
    }
}

/* ---------------------------------------------------------- threads */

static void *sim_worker_main(void *arg)
{
    static const struct timespec pause = {0, 100000};
    sim_task_t                  *task;

    (void)arg;
    for (;;) {
        nanosleep(&pause, NULL);
        sim_lock_take();
        if (sim_sched.is_stopping) {
            break;
        }
        task = sim_sched_choose();
        if (task != NULL) {
            sim_task_run(task);
        }
        sim_lock_drop();
    }
    sim_lock_drop();
    return NULL;
}

void sim_sched_start(void)
{
    sim_sched.laziness = sim_random(4);
    if (sim_config()->worker && !sim_sched.has_worker) {
        sim_sched.has_worker = true;
        pthread_create(&sim_sched.worker, NULL, sim_worker_main, NULL);
    }
}

void sim_sched_stop(void)
{
    bool has_callback_thread, has_worker;

    sim_lock_take();
    sim_sched.is_stopping = true;
    has_callback_thread   = sim_sched.has_callback_thread;
    has_worker            = sim_sched.has_worker;
    sim_lock_wake();
    sim_lock_drop();
    /* exit() called by a host function finds itself on that thread. */
    if (has_callback_thread &&
        !pthread_equal(sim_sched.callback_thread, pthread_self())) {
        pthread_join(sim_sched.callback_thread, NULL);
    }
    if (has_worker) {
        pthread_join(sim_sched.worker, NULL);
    }
    free(sim_sched.ready);
    sim_sched.ready     = NULL;
    sim_sched.max_ready = sim_sched.num_ready = 0;
}
