/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program's calls cost it: the slots of the driver functions that put
 * work on a stream or wait are led through functions that take the time. Two
 * readings of a clock are all that a profiled program pays for while CUPTI is
 * off; without a profile the slots are as they were.
 */
#ifndef CGS_PROFILE_CALLS_H
#define CGS_PROFILE_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "entries.h"

/** Streams of a region that other threads' calls may belong to it on. */
#define CGS_PROFILE_STREAMS 16

/** Calls and their time. */
typedef struct {
    uint64_t calls, call_ns; /**< that put work on a stream */
    uint64_t waits, wait_ns; /**< for the device */
} cgs_profile_counts_t;

/** What calls need to know of a region. */
typedef struct {
    _Atomic(CUstream) stream[CGS_PROFILE_STREAMS];
    atomic_uint       num_streams;
    atomic_ullong     calls, call_ns; /**< of threads that joined its run */
} cgs_profile_owner_t;

/** The calling thread's run, and its calls since that began. */
typedef struct {
    cgs_profile_owner_t  *owner; /**< NULL: no run is open here */
    cgs_profile_counts_t in;     /**< in the run */
    cgs_profile_counts_t after;  /**< since it ended */
    int                  quiet;  /**< > 0: its calls are ours */
} cgs_profile_thread_t;

extern __thread cgs_profile_thread_t cgs_profile_self
    __attribute__((visibility("hidden")));

/** Calls outside of runs. */
typedef struct {
    atomic_ullong calls, call_ns; /**< while CUPTI was off */
    atomic_ullong slow_calls;     /**< while it was on */
} cgs_profile_outside_t;

extern cgs_profile_outside_t cgs_profile_outside;

/** Whether CUPTI slows calls now, so that their times do not count. */
extern atomic_bool cgs_profile_is_slow;

/** Begin to take times; once libcuda is known. */
void cgs_profile_calls_install(void);

/** What one reading of the clock takes. */
uint64_t cgs_profile_clock_cost(void);

/** The open run's region that a stream belongs to, or NULL; by profile.c. */
cgs_profile_owner_t *cgs_profile_find_owner(CUstream stream);

#endif
