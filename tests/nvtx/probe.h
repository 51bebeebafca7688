/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVTX part in a library of its own, with a sink that writes down what
 * it hears.
 */
#ifndef NVTX_PROBE_H
#define NVTX_PROBE_H

#include <stdbool.h>

#define PROBE_EXPORT __attribute__((visibility("default")))

/**
 * What the library's constructor does under LD_PRELOAD, where PROBE_AUTO is
 * set: cgs_nvtx_setup() with the environment as it is now.
 */
PROBE_EXPORT void probe_setup(void);

/**
 * What was heard since the last time, one line each:
 *
 *     push DOMAIN TEXT | pop DOMAIN | start DOMAIN TEXT #N | end #N
 *
 * DOMAIN is `-` for the default domain, N counts ids in their order. Valid
 * until the next call. Under PROBE_FILE every line is appended there too.
 */
PROBE_EXPORT const char *probe_take(void);

/** How much was heard in all; `quiet` from now on counts only. */
PROBE_EXPORT unsigned long probe_count(bool quiet);

/** How often the sink's `begin` came. */
PROBE_EXPORT unsigned probe_begins(void);

/** Whether the NVTX part gets no memory; linked with --wrap=malloc,calloc. */
PROBE_EXPORT void probe_starve(bool starve);

/** Log warnings to this file. */
PROBE_EXPORT void probe_log_to(const char *file);

#endif
