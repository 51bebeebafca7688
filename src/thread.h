/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shim knows of the calling thread, and the small lock that guards
 * what threads share.
 */
#ifndef CGS_THREAD_H
#define CGS_THREAD_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "entries.h"

struct cgs_region;

/** State of one thread; only that thread touches it. */
typedef struct {
    struct cgs_region *region;    /**< whose run is open here, or NULL */
    bool              marked;     /**< the run began at a call, not by a
                                       range */
    bool              joined;     /**< the run was opened by another thread */
    uint64_t          run_serial; /**< that run's number: another thread may
                                       have ended it */
    bool              shut;       /**< inside a range of a region that goes
                                       plain */
    uint32_t          shut_depth; /**< ranges nested in it, same domain */
    uint64_t          shut_domain; /**< hash of its domain, 0 for none */
    int               guard;      /**< > 0 inside a driver call of ours */
    unsigned          turns;      /**< > 0 inside a call that turns.h counts */
    uint64_t          rest;       /**< calls that nobody has to look at, where
                                       none other than marks.c would */
    bool              ctx_known;  /**< ctx and device are up to date */
    CUcontext         ctx;        /**< current context */
    CUdevice          device;     /**< its device */
} cgs_thread_t;

extern __thread cgs_thread_t cgs_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/**
 * A lock for short work. Held across no call that may wait for another
 * thread's use of the shim; taking a free one costs one atomic exchange.
 */
typedef atomic_int cgs_lock_t;

static inline bool cgs_lock_try(cgs_lock_t *lock)
{
    return atomic_exchange_explicit(lock, 1, memory_order_acquire) == 0;
}

static inline void cgs_lock(cgs_lock_t *lock)
{
    while (!cgs_lock_try(lock)) {
        sched_yield();
    }
}

/** Take the lock, or give up after about so many milliseconds: during exit the
 *  thread that holds it may never come back. */
static inline bool cgs_lock_for(cgs_lock_t *lock, int milliseconds)
{
    while (!cgs_lock_try(lock)) {
        if (milliseconds-- <= 0) {
            return false;
        }
        usleep(1000);
    }
    return true;
}

static inline void cgs_unlock(cgs_lock_t *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

#endif
