/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One counter.
 */
#include "budget.h"

#include <stdatomic.h>
#include <stdint.h>

#include "config.h"

static atomic_size_t used;

static size_t limit(void)
{
    return (size_t)cgs_config_get()->defaults.memory_mb << 20;
}

bool cgs_budget_take(size_t bytes)
{
    size_t before = atomic_fetch_add_explicit(&used, bytes,
                                              memory_order_relaxed);

    if ((before > limit()) || (bytes > limit() - before)) {
        cgs_budget_give(bytes);
        return false;
    }
    return true;
}

void cgs_budget_force(size_t bytes)
{
    atomic_fetch_add_explicit(&used, bytes, memory_order_relaxed);
}

void cgs_budget_give(size_t bytes)
{
    atomic_fetch_sub_explicit(&used, bytes, memory_order_relaxed);
}
