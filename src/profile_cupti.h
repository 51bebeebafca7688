/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI: finds it, switches it on and off, and keeps what its activity records
 * say in little memory. Nothing of it is loaded unless a profile is wanted.
 */
#ifndef CGS_PROFILE_CUPTI_H
#define CGS_PROFILE_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a driver function is to the profile. */
typedef enum {
    CGS_CALL_NONE,
    CGS_CALL_LAUNCH,
    CGS_CALL_COPY,
    CGS_CALL_SET,
    CGS_CALL_WAIT, /**< waits for the device */
    CGS_CALL_SYNC_COPY, /**< a copy that the program waits for */
    CGS_CALL_GRAPH, /**< launches a graph of the program's own */
    CGS_CALL_NUM
} cgs_call_class_t;

/** A driver call of the program, by the clock of clock.h. */
typedef struct {
    uint64_t began_ns, ended_ns;
    uint32_t thread;
    uint32_t correlation;
    int32_t  run;   /**< for who joins: index of a run, or -1 */
    uint8_t  class; /**< cgs_call_class_t */
} cgs_profile_call_t;

/** What the device did: a kernel, a copy or a set. */
typedef struct {
    uint64_t began_ns, ended_ns;
    uint64_t shape;  /**< equal where kernel, grid, block and shared memory
                          are, or kind and bytes */
    uint32_t correlation;
    uint32_t name;   /**< of cgs_profile_cupti_name() */
    uint32_t stream; /**< context and stream, mixed */
    int32_t  run;    /**< as above */
} cgs_profile_work_t;

/** All that was recorded; owned by profile_cupti.c. */
typedef struct {
    cgs_profile_call_t *calls;
    size_t             num_calls;
    cgs_profile_work_t *works;
    size_t             num_works;
    uint64_t           left_out; /**< records that there was no room for, that
                                      CUPTI dropped, or that have no times */
    bool               by_pthread; /**< threads are pthread_self(), cut to 32
                                        bits, and not what gettid() says */
} cgs_profile_records_t;

/** Load the library. Once. @return NULL, or why there is none. */
const char *cgs_profile_cupti_load(void);

/**
 * Switch the records on or off. One thread at a time; calls the driver.
 *
 * @return NULL, or why not: it stays off then.
 */
const char *cgs_profile_cupti_switch(bool on);

/** Whether no more records fit. Any thread. */
bool cgs_profile_cupti_is_full(void);

/** Have all records delivered, and give them. At the end. */
const cgs_profile_records_t *cgs_profile_cupti_finish(void);

/** A name: of a kernel, or [copy] or [set]. */
const char *cgs_profile_cupti_name(uint32_t name);

#endif
