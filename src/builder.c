/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts what was recorded into chunks, builds the graphs that they lack, and
 * keeps count.
 *
 * A region's first recording is built when the region is entered again: a
 * range whose name never comes back then costs no graph. Memory of a copy or a
 * set may have been freed by then; such chunks are tried again at the end of
 * that run. Later recordings are built at the end of their own run.
 */
#include "builder.h"

#include <stdlib.h>

#include "budget.h"
#include "clock.h"
#include "config.h"
#include "graph.h"
#include "log.h"
#include "plan.h"
#include "reason.h"

/* A graph of one node is no gain over the call itself. */
#define MIN_OPS_FOR_GRAPH 2
/* Builds or launches of one chunk that may fail before it stays plain. */
#define MAX_FAILURES 3
/* More than the driver was seen to take for a graph, by node. */
#define BYTES_PER_NODE 6144

static size_t free_device_memory(void)
{
    size_t bytes = 0, total;

    if (CGS_REAL(cuMemGetInfo_v2)(&bytes, &total) != CUDA_SUCCESS) {
        return 0;
    }
    return bytes;
}

static bool needs_build(const cgs_chunk_t *chunk)
{
    return (chunk->exec == NULL) && (chunk->failures < MAX_FAILURES) &&
           (chunk->num_ops >= MIN_OPS_FOR_GRAPH);
}

/* What the budget was asked for is more than most graphs take. */
static void settle_budget(cgs_chunk_t *chunk)
{
    size_t bytes = chunk->device_bytes;

    if (bytes > chunk->device_taken) {
        cgs_budget_force(bytes - chunk->device_taken);
        chunk->device_taken = bytes;
    } else if (bytes > 0) {
        cgs_budget_give(chunk->device_taken - bytes);
        chunk->device_taken = bytes;
    }
}

static void build_chunk(cgs_region_t *region, cgs_chunk_t *chunk)
{
    size_t             wanted = (size_t)chunk->num_ops * BYTES_PER_NODE;
    uint64_t           begin  = cgs_clock_ns();
    size_t             before, after;
    cgs_graph_status_t status;

    if (!cgs_budget_take(wanted)) {
        region->wants_memory = true;
        cgs_region_fallback(region, cgs_no_budget);
        return;
    }
    before = free_device_memory();
    status = cgs_graph_build(chunk);
    if (status.result != CUDA_SUCCESS) {
        cgs_budget_give(wanted);
        ++chunk->failures;
        cgs_region_fallback(region, cgs_reason_driver(status.function,
                                                      status.result));
        cgs_log(CGS_LOG_WARN, "region %s: no graph: %s", region->name,
                cgs_reason_driver(status.function, status.result));
        return;
    }
    after = free_device_memory();
    ++region->stats.builds;
    region->stats.build_ns += cgs_clock_ns() - begin;
    chunk->device_taken     = wanted;
    chunk->device_bytes     = before > after ? before - after : 0;
    settle_budget(chunk);
    cgs_log(CGS_LOG_INFO, "region %s: graph of %u nodes built in %.3f ms, "
            "%zu bytes of device memory", region->name, chunk->num_ops,
            (double)(cgs_clock_ns() - begin) * 1e-6, chunk->device_bytes);
}

/* Put a piece of a raw chunk where the variant before it leads to. */
static cgs_variant_t *add_piece(cgs_region_t *region, cgs_variant_t *before,
                                cgs_chunk_t *piece)
{
    cgs_place_t   *place = piece != NULL ? cgs_place_create() : NULL;
    cgs_variant_t *variant;

    if (place == NULL) {
        cgs_chunk_destroy(piece);
        return NULL;
    }
    cgs_variant_lead(&region->recording, before, place);
    cgs_place_release(&region->recording, place);
    variant = cgs_recording_add(&region->recording, place, piece);
    if (variant != NULL) {
        variant->last_run = before->last_run;
    }
    return variant;
}

/* Without memory what is left stays in one piece. */
static void cut(cgs_region_t *region, cgs_variant_t *variant)
{
    cgs_chunk_t   *raw   = cgs_variant_chunk(variant);
    cgs_place_t   *next  = cgs_place_hold(variant->next);
    cgs_variant_t *last  = variant;
    uint32_t      *ends  = NULL;
    uint32_t      num    = cgs_plan_chunks(raw, region->rule->chunk, &ends);
    cgs_chunk_t   *first = num > 1 ? cgs_chunk_copy(raw, 0, ends[0]) : NULL;
    uint32_t      i;

    for (i = 1; (i < num) && (first != NULL) && (last != NULL); ++i) {
        last = add_piece(region, last, cgs_chunk_copy(raw, ends[i - 1],
                                                      ends[i]));
    }
    if ((first == NULL) || (last == NULL)) {
        cgs_chunk_destroy(first);
        last = variant;
    } else {
        cgs_phases_release(&variant->phases);
        cgs_phases_init(&variant->phases, first);
    }
    cgs_variant_lead(&region->recording, last, next);
    cgs_place_release(&region->recording, next);
    free(ends);
}

/* @return whether a graph is still missing. */
static bool build_variant(cgs_region_t *region, cgs_variant_t *variant)
{
    cgs_phases_t *phases  = &variant->phases;
    bool         missing  = false;
    cgs_chunk_t  *chunk;
    uint32_t     i;

    for (i = 0; i < phases->num; ++i) {
        chunk = phases->chunk[i];
        if (needs_build(chunk)) {
            if (cgs_chunk_refresh(chunk)) {
                build_chunk(region, chunk);
            }
            missing |= needs_build(chunk);
        }
    }
    return missing;
}

void cgs_builder_run(cgs_region_t *region)
{
    cgs_recording_t *recording = &region->recording;
    cgs_variant_t   *variant;
    bool            missing = false;

    if (!recording->has_work || (cgs_config_get()->mode != CGS_MODE_ON)) {
        return;
    }
    for (variant = recording->all; variant != NULL;
         variant = variant->older) {
        if (variant->is_raw) {
            variant->is_raw = false;
            cut(region, variant);
        }
    }
    for (variant = recording->all; variant != NULL;
         variant = variant->older) {
        missing |= build_variant(region, variant);
    }
    recording->has_work = missing;
}
