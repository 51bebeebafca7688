/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of the simulated device: each stream is busy for SIM_KERNEL_NS with
 * each kernel, and a call that puts work on a stream takes SIM_LAUNCH_NS at
 * least, so that programs are bound by the one or by the other. Work itself
 * runs when the scheduler likes; who waits for it waits for these times too.
 *
 * Without these variables nothing takes any time, and without an observer
 * nothing is told.
 */
#include "sim.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim_observe.h"

#define SIM_TIME_DEFAULT_NS 1000
#define SIM_TIME_COPY_NS    2000

static _Atomic(const cu_sim_observer_t *) sim_observer;
static atomic_uint                        sim_correlation;
static uint64_t                           sim_busy_until; /* by sim_lock */

/* The call that the thread is in. */
static __thread struct {
    const char *name;
    uint64_t    began_ns;
    uint32_t    correlation;
} sim_call;

SIM_API void cu_sim_observe(const cu_sim_observer_t *observer)
{
    atomic_store(&sim_observer, observer);
}

static uint64_t sim_time_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sim_time_enter(const char *name)
{
    if (atomic_load(&sim_observer) != NULL) {
        sim_call.name        = name;
        sim_call.correlation = atomic_fetch_add(&sim_correlation, 1) + 1;
        sim_call.began_ns    = sim_time_now();
    }
}

void sim_time_leave(void)
{
    const cu_sim_observer_t *observer = atomic_load(&sim_observer);

    if ((observer != NULL) && (sim_call.name != NULL)) {
        observer->call(sim_call.name, sim_call.correlation, sim_call.began_ns,
                       sim_time_now());
    }
    sim_call.name = NULL;
}

static void sim_time_tell(const sim_stream_t *stream, const sim_op_t *op,
                          uint64_t began_ns, uint64_t ended_ns)
{
    const cu_sim_observer_t *observer = atomic_load(&sim_observer);
    cu_sim_work_t            work     = {
        .began_ns    = began_ns,
        .ended_ns    = ended_ns,
        .stream      = (uint32_t)stream->uid,
        .context     = (uint32_t)stream->ctx->uid,
        .correlation = sim_call.correlation,
    };
    unsigned                 i;

    if ((observer == NULL) || (sim_call.name == NULL)) {
        return;
    }
    switch (op->kind) {
    case SIM_OP_KERNEL:
        work.kind   = 'k';
        work.name   = op->kernel.func->entry->name;
        work.shared = op->kernel.shared;
        for (i = 0; i < 3; ++i) {
            work.grid[i]  = op->kernel.grid[i];
            work.block[i] = op->kernel.block[i];
        }
        break;
    case SIM_OP_COPY:
        work.kind  = 'c';
        work.bytes = op->copy.desc.WidthInBytes * op->copy.desc.Height *
                     op->copy.desc.Depth;
        break;
    default:
        work.kind  = 's';
        work.bytes = op->set.params.width * op->set.params.elementSize *
                     op->set.params.height;
        break;
    }
    observer->work(&work);
}

void sim_time_stall(uint64_t stall_ns, const char *name)
{
    struct timespec time = {.tv_sec  = (time_t)(stall_ns / 1000000000),
                            .tv_nsec = (long)(stall_ns % 1000000000)};

    if ((stall_ns > 0) && (gettid() != getpid()) &&
        (!strncmp(name, "cuLaunch", 8) || !strncmp(name, "cuMemcpy", 8))) {
        nanosleep(&time, NULL);
    }
}

void sim_time_submit(sim_stream_t *stream, const sim_op_t *op)
{
    const sim_config_t *config = sim_config();
    uint64_t            until, began;

    if ((op == NULL) || ((op->kind != SIM_OP_KERNEL) &&
                         (op->kind != SIM_OP_COPY) &&
                         (op->kind != SIM_OP_SET))) {
        return;
    }
    until = sim_time_now() + config->launch_ns;
    while ((config->launch_ns > 0) && (sim_time_now() < until)) {
    }
    began = sim_time_now();
    if (began < stream->busy_until) {
        began = stream->busy_until;
    }
    stream->busy_until = began + (op->kind != SIM_OP_KERNEL ?
                                  SIM_TIME_COPY_NS : config->kernel_ns > 0 ?
                                  config->kernel_ns : SIM_TIME_DEFAULT_NS);
    if (stream->busy_until > sim_busy_until) {
        sim_busy_until = stream->busy_until;
    }
    sim_time_tell(stream, op, began, stream->busy_until);
}

void sim_time_wait(const sim_stream_t *stream)
{
    uint64_t until = stream != NULL ? stream->busy_until : sim_busy_until;
    uint64_t now;
    struct timespec rest;

    if (sim_config()->kernel_ns == 0) {
        return;
    }
    while ((now = sim_time_now()) < until) {
        rest.tv_sec  = (time_t)((until - now) / 1000000000u);
        rest.tv_nsec = (long)((until - now) % 1000000000u);
        sim_lock_drop();
        nanosleep(&rest, NULL);
        sim_lock_take();
    }
}
