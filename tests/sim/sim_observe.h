/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated driver tells of its calls and of its work, for the
 * simulated CUPTI. Nobody else is told anything.
 */
#ifndef SIM_OBSERVE_H
#define SIM_OBSERVE_H

#include <stdint.h>

/* A kernel, a copy or a set, with the times that SIM_KERNEL_NS gives it. */
typedef struct {
    char     kind; /* 'k', 'c' or 's' */
    const char *name; /* of the kernel */
    unsigned grid[3], block[3], shared;
    uint64_t bytes;
    uint64_t began_ns, ended_ns; /* of the monotonic clock */
    uint32_t stream, context, correlation;
} cu_sim_work_t;

typedef struct {
    /* A call of the driver has ended, in the thread that made it. */
    void (*call)(const char *name, uint32_t correlation, uint64_t began_ns,
                 uint64_t ended_ns);
    /* Work was put on a stream, inside a call. */
    void (*work)(const cu_sim_work_t *work);
} cu_sim_observer_t;

/* From now on tell this one; NULL for nobody. The driver's lock is held while
 * it is called. */
void cu_sim_observe(const cu_sim_observer_t *observer);

#endif
