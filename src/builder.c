/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts what was recorded into chunks, builds the graphs that they lack, and
 * keeps count.
 *
 * A region's first recording is built when the region is entered again: a
 * range whose name never comes back then costs no graph. Memory of a copy or a
 * set may have been freed by then; such chunks are tried again at the end of
 * that run. Where recordings do not last, a variant is built only once a run
 * has come its way again.
 */
#include "builder.h"

#include <stdlib.h>

#include "budget.h"
#include "clock.h"
#include "config.h"
#include "dump.h"
#include "graph.h"
#include "log.h"
#include "plan.h"
#include "reason.h"

/* A graph of one node is no gain over the call itself. */
#define MIN_OPS_FOR_GRAPH 2
/* Builds or launches of one chunk that may fail before it stays plain. */
#define MAX_FAILURES 3
/* Recordings without a full replay after which one has to prove its worth. */
#define MAX_UNPROVED 2
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

/* @param free_bytes_p What was free after the graph before, in a row of them,
 *                     or 0: it is asked for once for each graph. */
static void build_chunk(cgs_region_t *region, cgs_chunk_t *chunk,
                        size_t *free_bytes_p)
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
    before        = *free_bytes_p > 0 ? *free_bytes_p : free_device_memory();
    *free_bytes_p = 0;
    status = cgs_graph_build(chunk);
    if (status.result != CUDA_SUCCESS) {
        cgs_budget_give(wanted);
        ++chunk->failures;
        cgs_region_fallback(region, cgs_reason_driver(status.function,
                                                      status.result));
        cgs_log_often(CGS_LOG_WARN, "region %s: no graph: %s", region->name,
                      cgs_reason_driver(status.function, status.result));
        return;
    }
    after         = free_device_memory();
    *free_bytes_p = after;
    ++region->stats.builds;
    region->stats.build_ns += cgs_clock_ns() - begin;
    chunk->device_taken     = wanted;
    chunk->device_bytes     = before > after ? before - after : 0;
    settle_budget(chunk);
    cgs_trace_slice(CGS_TRACE_BUILD, region, begin, chunk->num_ops,
                    chunk->device_bytes);
    cgs_log_often(CGS_LOG_INFO, "region %s: graph of %u nodes built in %.3f "
                  "ms, %zu bytes of device memory", region->name,
                  chunk->num_ops, (double)(cgs_clock_ns() - begin) * 1e-6,
                  chunk->device_bytes);
    cgs_dump_graph(region->name, chunk);
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
        variant->last_run  = before->last_run;
        variant->is_wanted = before->is_wanted;
    }
    return variant;
}

static cgs_plan_rule_t plan_rule(const cgs_region_t *region)
{
    return (cgs_plan_rule_t){
        .limit  = region->rule->chunk,
        .synced = region->pace.for_synced,
    };
}

/* Without memory what is left stays in one piece. */
static void cut(cgs_region_t *region, cgs_variant_t *variant)
{
    cgs_plan_rule_t rule     = plan_rule(region);
    cgs_chunk_t     *raw     = cgs_variant_chunk(variant);
    cgs_place_t     *next    = cgs_place_hold(variant->next);
    cgs_variant_t   *last    = variant;
    bool            was_open = variant->is_open;
    uint32_t        *ends    = NULL;
    cgs_chunk_t     *first;
    uint32_t        num, i;

    num   = cgs_plan_chunks(raw, &rule, &ends);
    first = num > 1 ? cgs_chunk_copy(raw, 0, ends[0]) : NULL;
    for (i = 1; (i < num) && (first != NULL) && (last != NULL); ++i) {
        last->is_open = true;
        last = add_piece(region, last, cgs_chunk_copy(raw, ends[i - 1],
                                                      ends[i]));
    }
    if ((first == NULL) || (last == NULL)) {
        cgs_chunk_destroy(first);
        last             = variant;
        variant->is_open = was_open;
    } else {
        cgs_phases_release(&variant->phases);
        cgs_phases_init(&variant->phases, first);
    }
    cgs_variant_lead(&region->recording, last, next);
    cgs_place_release(&region->recording, next);
    free(ends);
}

/* Where an event could be destroyed meanwhile, the graph would hold a dead
 * one: some drivers crash on it. */
static void build_if_alive(cgs_region_t *region, cgs_chunk_t *chunk,
                           size_t *free_bytes_p)
{
    if (chunk->has_events) {
        cgs_events_hold();
    }
    if (cgs_chunk_refresh(chunk)) {
        build_chunk(region, chunk, free_bytes_p);
    }
    if (chunk->has_events) {
        cgs_events_release();
    }
}

/* @return whether a graph is still missing. */
static bool build_variant(cgs_region_t *region, cgs_variant_t *variant,
                          size_t *free_bytes_p)
{
    cgs_phases_t *phases  = &variant->phases;
    bool         missing  = false;
    cgs_chunk_t  *chunk;
    uint32_t     i;

    for (i = 0; variant->is_wanted && (i < phases->num); ++i) {
        chunk = phases->chunk[i];
        if (needs_build(chunk)) {
            build_if_alive(region, chunk, free_bytes_p);
            missing |= needs_build(chunk);
        }
    }
    return missing;
}

/* Whether a variant is followed by one that can be put together with it. */
static cgs_variant_t *continuation(const cgs_variant_t *variant)
{
    cgs_place_t *next = variant->next;

    return variant->is_open && !variant->is_raw && (next != NULL) &&
           (next->num == 1) && (next->refs == 1) ? next->variants[0] : NULL;
}

/* All ops of the variants in a row. */
static cgs_chunk_t *put_together(const cgs_variant_t *variant,
                                 const cgs_variant_t **last)
{
    const cgs_chunk_t *first = cgs_variant_chunk(variant);
    cgs_chunk_t       *whole = cgs_chunk_copy(first, 0, first->num_ops);

    *last = variant;
    while ((whole != NULL) && ((variant = continuation(variant)) != NULL)) {
        *last = variant;
        if (cgs_chunk_extend(whole, cgs_variant_chunk(variant)) != 0) {
            cgs_chunk_destroy(whole);
            return NULL;
        }
    }
    return whole;
}

/* Whether the variants in a row are cut as they would be now. */
static bool is_as_planned(const cgs_region_t *region,
                          const cgs_variant_t *variant,
                          const cgs_chunk_t *whole)
{
    cgs_plan_rule_t rule  = plan_rule(region);
    uint32_t        *ends = NULL;
    uint32_t        num   = cgs_plan_chunks(whole, &rule, &ends);
    uint32_t        begin = 0;
    uint32_t        i;

    for (i = 0; (i < num) && (variant != NULL); ++i) {
        if (cgs_variant_chunk(variant)->num_ops != ends[i] - begin) {
            break;
        }
        begin   = ends[i];
        variant = continuation(variant);
    }
    free(ends);
    return (i == num) && (variant == NULL);
}

static void plan_row_again(cgs_region_t *region, cgs_variant_t *variant)
{
    const cgs_variant_t *last;
    cgs_chunk_t         *whole = put_together(variant, &last);

    if ((whole == NULL) || is_as_planned(region, variant, whole)) {
        cgs_chunk_destroy(whole);
        return;
    }
    cgs_phases_release(&variant->phases);
    cgs_phases_init(&variant->phases, whole);
    variant->is_open = last->is_open;
    variant->is_raw  = true;
    cgs_variant_lead(&region->recording, variant, last->next);
    region->recording.has_work = true;
}

void cgs_builder_plan_again(cgs_region_t *region)
{
    cgs_place_t   *place = region->recording.first;
    cgs_variant_t *variant, *next;

    while ((place != NULL) && (place->current != NULL)) {
        variant = place->current;
        plan_row_again(region, variant);
        /* On to what comes after the row. */
        while ((next = continuation(variant)) != NULL) {
            variant = next;
        }
        place = variant->next;
    }
}

void cgs_builder_run(cgs_region_t *region)
{
    cgs_recording_t *recording = &region->recording;
    cgs_variant_t   *variant;
    size_t          free_bytes = 0;
    bool            missing = false;
    bool            lasting = region->wasted <= MAX_UNPROVED;

    if (!recording->has_work || (cgs_config_get()->mode != CGS_MODE_ON)) {
        return;
    }
    if (!region->pace.is_planned) {
        region->pace.is_planned = true;
        region->pace.for_synced = region->pace.synced >= 0;
    }
    for (variant = recording->all; variant != NULL;
         variant = variant->older) {
        if (variant->is_raw) {
            variant->is_raw     = false;
            variant->is_wanted |= lasting;
            cut(region, variant);
        }
    }
    for (variant = recording->all; variant != NULL;
         variant = variant->older) {
        missing |= build_variant(region, variant, &free_bytes);
    }
    recording->has_work = missing;
}
