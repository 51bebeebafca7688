/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile of a program that is not replayed (CGSHIM_PROFILE): whether it is
 * bound by launching, and what replaying it would give.
 *
 * This part decides when CUPTI is on. CUPTI makes calls slower, so the times
 * of runs are taken while it is off, and first of all before it was ever
 * loaded; what the device does is recorded in a number of runs of each region.
 */
#ifndef CGS_PROFILE_H
#define CGS_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#ifndef HAVE_CUPTI
#define HAVE_CUPTI 0
#endif

#if HAVE_CUPTI

/** Whether this process is profiled. */
bool cgs_profile_is_on(void);

/** Begin, after cuInit; prints a line where that cannot be. Once.
 *  @param target As CGSHIM_PROFILE says. */
void cgs_profile_begin(const char *target);

/** Ranges of the program, as cgs_range_sink_t has them. @{ */
void cgs_profile_push(const char *domain, const char *text);
void cgs_profile_pop(const char *domain);
void cgs_profile_start(const char *domain, const char *text, uint64_t id);
void cgs_profile_end(uint64_t id);
/** @} */

/** Write the profile; at exit. Only the first call does anything. */
void cgs_profile_finish(void);

#else

static inline bool cgs_profile_is_on(void)
{
    return false;
}

static inline void cgs_profile_push(const char *domain, const char *text)
{
    (void)domain;
    (void)text;
}

static inline void cgs_profile_pop(const char *domain)
{
    (void)domain;
}

static inline void cgs_profile_start(const char *domain, const char *text,
                                     uint64_t id)
{
    (void)domain;
    (void)text;
    (void)id;
}

static inline void cgs_profile_end(uint64_t id)
{
    (void)id;
}

#endif

#endif
