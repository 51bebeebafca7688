/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of regions for the tests: launches on one word of memory whose value
 * tells which of them ran and in which order, and a model of it on the host.
 */
#ifndef CGS_TEST_REGION_RUN_H
#define CGS_TEST_REGION_RUN_H

#include "core.h"

#include "ranges.h"
#include "region.h"

static CUfunction  chain;
static CUdeviceptr word;
static uint32_t    model;

static void region_open(void)
{
    core_open();
    chain = prg_kernel(&core, "k_chain");
    word  = core_alloc(sizeof(uint32_t), 0);
    model = 0;
}

static CUresult step_on(CUstream stream, uint32_t value)
{
    return prg_launch(chain, stream, 1, (void *[]){&word, &value});
}

/* One launch, here and in the model */
static void step(uint32_t value)
{
    PRG_CHECK(step_on(core_stream, value));
    model = model * 1664525u + value;
}

static inline void check_word(void)
{
    ck_assert_uint_eq(core_word(word), model);
}

/* For a look while a range is open: nothing is issued for its sake */
static inline uint32_t held(const cgs_region_t *region)
{
    return atomic_load(&region->held);
}

static void enter(const char *name)
{
    cgs_ranges_sink.push(NULL, name);
}

static void leave(void)
{
    cgs_ranges_sink.pop(NULL);
}

/* A run of steps with the values first, first + 1, ... */
static inline void run_steps(const char *name, uint32_t first, unsigned num)
{
    unsigned i;

    enter(name);
    for (i = 0; i < num; ++i) {
        step(first + i);
    }
    leave();
}

static inline void run_times(const char *name, unsigned times, uint32_t first,
                      unsigned num)
{
    while (times-- > 0) {
        run_steps(name, first, num);
    }
}

#endif
