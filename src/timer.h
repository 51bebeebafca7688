/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets nothing wait for long: a thread of ours that issues work which has been
 * held back for max_defer_us, even if the program never calls CUDA again.
 */
#ifndef CGS_TIMER_H
#define CGS_TIMER_H

#include <stdatomic.h>

/** Not 0 while the thread sleeps, or was never started. */
extern atomic_int cgs_timer_asleep;

/** Wake the thread; the first time, start it. Any thread. */
void cgs_timer_wake(void);

/** Work begins to be held back. Any thread. The store that says so must come
 *  before, in sequentially consistent order. */
static inline void cgs_timer_arm(void)
{
    if (__builtin_expect(atomic_load(&cgs_timer_asleep), 0)) {
        cgs_timer_wake();
    }
}

/** Issue nothing more from the thread; waits for no driver call for long. For
 *  exit. */
void cgs_timer_stop(void);

#endif
