/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread looks at the open runs a few times in each max_defer_us. A run
 * that holds back just what it did before has made no call since; no clock is
 * read on the program's way. While runs come and go it keeps
 * looking, so that the program need not wake it for each; when nothing has
 * moved for a few looks it sleeps without wake-ups.
 */
#include "timer.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "flow.h"
#include "life.h"
#include "log.h"
#include "thread.h"
#include "trace.h"

/* Driver calls are made on this stack. */
#define STACK_BYTES ((size_t)1024 * 1024)
/* Looks without anything new before sleep. */
#define IDLE_LOOKS 8
#define STOP_WAIT_MS 1000
/* The longest time between two looks. */
#define MAX_PERIOD_US 1000
#define MIN_PERIOD_US 20

atomic_int cgs_timer_asleep = 1;

static struct {
    pthread_once_t once;
    cgs_lock_t     lock;    /* held during a look */
    atomic_bool    stopped;
} timer = {
    .once = PTHREAD_ONCE_INIT,
};

static void futex(int operation, int value)
{
    syscall(SYS_futex, &cgs_timer_asleep, operation | FUTEX_PRIVATE_FLAG,
            value, NULL, NULL, 0);
}

static uint64_t now_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000u;
}

static bool look(cgs_flow_look_t *state)
{
    bool held = false;

    cgs_lock(&timer.lock);
    if (!atomic_load(&timer.stopped)) {
        held = cgs_flow_look(now_us(), state);
    }
    cgs_unlock(&timer.lock);
    cgs_trace_settle();
    return held;
}

static void rest(unsigned us)
{
    struct timespec time;

    us           = us < MIN_PERIOD_US ? MIN_PERIOD_US :
                   us > MAX_PERIOD_US ? MAX_PERIOD_US : us;
    time.tv_sec  = 0;
    time.tv_nsec = us * 1000L;
    nanosleep(&time, NULL);
}

static void *run(void *arg)
{
    cgs_flow_look_t state = {0};
    uint64_t        runs;
    int             idle  = 0;

    (void)arg;
    cgs_self.guard = 1; /* no driver call of this thread is the program's */
    prctl(PR_SET_NAME, "cgshim-timer");
    while (!atomic_load(&timer.stopped)) {
        runs = state.runs;
        if (look(&state) || (state.runs != runs)) {
            idle = 0;
        } else if (++idle >= IDLE_LOOKS) {
            /* Say so first, then look again: who begins to hold work back
             * after this look sees the word and wakes us. */
            atomic_store(&cgs_timer_asleep, 1);
            if (!look(&state)) {
                futex(FUTEX_WAIT, 1);
            }
            atomic_store(&cgs_timer_asleep, 0);
            idle = 0;
        }
        rest(state.period_us);
    }
    return NULL;
}

static void start(void)
{
    pthread_attr_t attr;
    pthread_t      thread;
    sigset_t       all, old;
    int            status;

    /* The program's signals are not for this thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    status = pthread_create(&thread, &attr, run, NULL);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (status != 0) {
        cgs_life_refuse("no thread could be started that issues work which "
                        "is held back for too long");
    }
}

void cgs_timer_wake(void)
{
    if (atomic_exchange(&cgs_timer_asleep, 0) != 0) {
        pthread_once(&timer.once, start);
        futex(FUTEX_WAKE, 1);
    }
}

void cgs_timer_stop(void)
{
    atomic_store(&timer.stopped, true);
    if (cgs_lock_for(&timer.lock, STOP_WAIT_MS)) {
        cgs_unlock(&timer.lock);
    }
}
