/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the graphs that a region's recording lacks, and keeps count.
 *
 * A region's first recording is built when the region is entered again: a
 * range whose name never comes back then costs no graph. Memory of a copy or a
 * set may have been freed by then; such segments are tried again at the end of
 * that run. Later recordings are built at the end of their own run.
 */
#include "builder.h"

#include <time.h>

#include "config.h"
#include "graph.h"
#include "log.h"
#include "reason.h"

/* A graph of one node is no gain over the call itself. */
#define MIN_OPS_FOR_GRAPH 2
/* Builds or launches of one segment that may fail before it stays plain. */
#define MAX_FAILURES 3

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static size_t free_device_memory(void)
{
    size_t bytes = 0, total;

    if (CGS_REAL(cuMemGetInfo_v2)(&bytes, &total) != CUDA_SUCCESS) {
        return 0;
    }
    return bytes;
}

static bool needs_build(const cgs_segment_t *segment)
{
    return (segment->exec == NULL) && (segment->failures < MAX_FAILURES) &&
           (segment->num_ops >= MIN_OPS_FOR_GRAPH);
}

static void build_segment(cgs_region_t *region, cgs_segment_t *segment)
{
    uint64_t           begin  = now_ns();
    size_t             before = free_device_memory();
    size_t             after;
    cgs_graph_status_t status = cgs_graph_build(segment);

    if (status.result != CUDA_SUCCESS) {
        ++segment->failures;
        cgs_region_fallback(region, cgs_reason_driver(status.function,
                                                      status.result));
        cgs_log(CGS_LOG_WARN, "region %s: no graph: %s", region->name,
                cgs_reason_driver(status.function, status.result));
        return;
    }
    after = free_device_memory();
    ++region->stats.builds;
    region->stats.build_ns += now_ns() - begin;
    segment->device_bytes   = before > after ? before - after : 0;
    cgs_log(CGS_LOG_INFO, "region %s: graph of %u nodes built in %.3f ms, "
            "%zu bytes of device memory", region->name, segment->num_ops,
            (double)(now_ns() - begin) * 1e-6, segment->device_bytes);
}

void cgs_builder_run(cgs_region_t *region)
{
    cgs_recording_t *current = cgs_phases_current(&region->phases);
    uint32_t        i;

    if (cgs_config_get()->mode != CGS_MODE_ON) {
        return;
    }
    for (i = 0; i < current->num_segments; ++i) {
        if (needs_build(&current->segments[i]) &&
            cgs_recording_refresh(&current->segments[i])) {
            build_segment(region, &current->segments[i]);
        }
    }
}
