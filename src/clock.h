/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CGS_CLOCK_H
#define CGS_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Nanoseconds of the monotonic clock; no system call. */
static inline uint64_t cgs_clock_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#endif
