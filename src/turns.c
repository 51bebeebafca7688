/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call counts itself and then looks for a verifier; a verifier shows itself
 * and then looks at the count. One of them sees the other.
 */
#include "turns.h"

#include <pthread.h>
#include <time.h>

#include "clock.h"
#include "life.h"

/* The longest wait for calls: one may wait for what the program has yet to
 * do. */
#define MAX_WAIT_NS 1000000000u
/* Between two looks. */
#define LOOK_NS 20000

bool cgs_turns_kept;

static struct {
    atomic_uint calls;  /* that are being made */
    atomic_bool taken;  /* a graph is verified */
    atomic_bool stuck;  /* a call did not end in time, and there was no moment
                           without calls since */
} turns;

/* A thread that is cancelled here may hold a region's lock. */
static void sleep_a_little(void)
{
    struct timespec time = {.tv_nsec = LOOK_NS};
    int             cancel_state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    nanosleep(&time, NULL);
    pthread_setcancelstate(cancel_state, NULL);
}

void cgs_turns_start(void)
{
    cgs_turns_kept = true;
    cgs_life_gate_add(1); /* for good */
}

void cgs_turns_begin_call(void)
{
    if (cgs_self.turns++ > 0) {
        return;
    }
    atomic_fetch_add(&turns.calls, 1);
    while (atomic_load(&turns.taken)) {
        atomic_fetch_sub(&turns.calls, 1);
        sleep_a_little();
        atomic_fetch_add(&turns.calls, 1);
    }
}

void cgs_turns_end_call(void)
{
    if ((--cgs_self.turns == 0) && (atomic_fetch_sub(&turns.calls, 1) == 1)) {
        atomic_store_explicit(&turns.stuck, false, memory_order_relaxed);
    }
}

void cgs_turns_wait_for_verifier(void)
{
    while ((cgs_self.turns == 0) && atomic_load(&turns.taken)) {
        sleep_a_little();
    }
}

bool cgs_turns_take(void)
{
    uint64_t began_ns;
    unsigned calls;

    while (atomic_exchange(&turns.taken, true)) {
        sleep_a_little();
    }
    ++cgs_self.turns; /* the verifier's own calls wait for nobody */
    began_ns = cgs_clock_ns();
    while (((calls = atomic_load(&turns.calls)) > 0) &&
           !atomic_load_explicit(&turns.stuck, memory_order_relaxed) &&
           (cgs_clock_ns() - began_ns < MAX_WAIT_NS)) {
        sleep_a_little();
    }
    /* Nobody waits twice for a call that may wait for the waiting thread. */
    atomic_store_explicit(&turns.stuck, calls > 0, memory_order_relaxed);
    return calls == 0;
}

void cgs_turns_give(void)
{
    --cgs_self.turns;
    atomic_store(&turns.taken, false);
}
