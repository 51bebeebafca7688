/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the program waits for the device in each run, two costs count. A chunk
 * keeps the device waiting for as long as the program takes to make its calls:
 * the first one is small, and each of the next may last as long as the device
 * is surely busy with the one before. And at the end of the row the device is
 * late by one chunk: none lasts longer than a part of what all the row gains.
 * Where it does not wait in each run, the first does not count, and the second
 * less.
 */
#include "plan.h"

#include <stdlib.h>

#include "config.h"
#include "costs.h"

/* Ops of the smallest first chunk, and the largest growth to the next. */
#define FIRST_OPS  8
#define MAX_GROWTH 16
/* More in a graph save nothing. */
#define MAX_OPS    2048
typedef struct {
    const cgs_chunk_t *chunk;
    uint32_t          *reach; /* by op: the first one that it or any after it
                                 refers to */
    uint64_t          late_ns; /* longest chunk */
} plan_t;

/* A wait is an edge from its record: both are in one graph. */
static void find_reach(plan_t *plan)
{
    const cgs_chunk_t *chunk = plan->chunk;
    uint32_t          reach  = chunk->num_ops;
    uint32_t          i;

    for (i = chunk->num_ops; i-- > 0;) {
        if ((chunk->ops[i].kind == CGS_OP_WAIT) &&
            (i - chunk->ops[i].event.distance < reach)) {
            reach = i - chunk->ops[i].event.distance;
        }
        plan->reach[i] = reach;
    }
}

/* Graphs in a row are ordered on their first streams: several streams are cut
 * only where the first one goes on alone. */
static bool can_cut(const plan_t *plan, uint32_t before)
{
    const cgs_op_t *op = plan->chunk->ops;

    return (plan->reach[before] >= before) &&
           ((plan->chunk->num_streams == 1) ||
            ((op[before - 1].lane == 0) && (op[before].lane == 0)));
}

/* The end of the chunk that begins at an op and may have so many. */
static uint32_t find_end(const plan_t *plan, uint32_t begin, uint64_t limit)
{
    const cgs_chunk_t *chunk  = plan->chunk;
    uint64_t          host_ns = CGS_COST_SWALLOW_NS;
    uint32_t          i;

    for (i = begin + 1; i < chunk->num_ops; ++i) {
        host_ns += chunk->ops[i].gap_ns + CGS_COST_SWALLOW_NS;
        if (((i - begin >= limit) || (host_ns > plan->late_ns)) &&
            can_cut(plan, i)) {
            return i;
        }
    }
    return chunk->num_ops;
}

static uint32_t plan_fixed(plan_t *plan, unsigned limit, uint32_t *ends)
{
    uint32_t num = 0;
    uint32_t end = 0;

    plan->late_ns = UINT64_MAX;
    while (end < plan->chunk->num_ops) {
        end         = find_end(plan, end, limit);
        ends[num++] = end;
    }
    return num;
}

/* The program's own time before a call: most of it, whatever pauses there
 * are. */
static uint64_t usual_gap(const cgs_chunk_t *chunk)
{
    uint64_t sum = 0;
    uint32_t num = 0;
    uint32_t i;

    for (i = 1; i < chunk->num_ops; ++i) {
        if ((num == 0) || (chunk->ops[i].gap_ns <= 4 * (sum / num) + 100)) {
            sum += chunk->ops[i].gap_ns;
            ++num;
        }
    }
    return num > 0 ? sum / num : 0;
}

/* Sizes that grow: the first, and what each is multiplied by for the next. */
typedef struct {
    uint64_t first, growth;
} sizes_t;

static uint64_t next_size(uint64_t size, uint64_t growth)
{
    return size * growth < MAX_OPS ? size * growth : MAX_OPS;
}

/* When the device is done with so many ops, cut like this, after the program
 * has made the first of its calls. */
static uint64_t done_ns(uint64_t num_ops, uint64_t call_ns, sizes_t sizes)
{
    uint64_t size      = sizes.first;
    uint64_t host_ns   = 0;
    uint64_t device_ns = 0;
    uint64_t num;

    for (; num_ops > 0; num_ops -= num) {
        num        = size < num_ops ? size : num_ops;
        host_ns   += num * call_ns + CGS_COST_GRAPH_NS;
        device_ns  = (host_ns > device_ns ? host_ns : device_ns) +
                     num * CGS_COST_KERNEL_NS + CGS_COST_NEXT_GRAPH_NS;
        size       = next_size(size, sizes.growth);
    }
    return device_ns;
}

static sizes_t best_sizes(uint64_t num_ops, uint64_t call_ns)
{
    uint64_t most    = num_ops < MAX_OPS ? num_ops : MAX_OPS;
    sizes_t  best    = {most, 1};
    uint64_t best_ns = done_ns(num_ops, call_ns, best);
    sizes_t  sizes;
    uint64_t ns;

    for (sizes.first = FIRST_OPS; sizes.first < most;
         sizes.first += sizes.first / 3) {
        for (sizes.growth = 1; sizes.growth <= MAX_GROWTH;
             sizes.growth *= 2) {
            ns = done_ns(num_ops, call_ns, sizes);
            if (ns < best_ns) {
                best_ns = ns;
                best    = sizes;
            }
        }
    }
    return best;
}

static uint32_t plan_auto(plan_t *plan, bool synced, uint32_t *ends)
{
    uint32_t num_ops = plan->chunk->num_ops;
    uint64_t call_ns = CGS_COST_SWALLOW_NS + usual_gap(plan->chunk);
    sizes_t  sizes   = {MAX_OPS, 1};
    uint32_t num     = 0;
    uint32_t end     = 0;
    uint32_t begin;

    if (synced) {
        sizes = best_sizes(num_ops, call_ns);
    }
    plan->late_ns = (uint64_t)num_ops * CGS_COST_LAUNCH_NS /
                    (synced ? CGS_COST_LATENESS : 1);
    while (end < num_ops) {
        begin       = end;
        end         = find_end(plan, begin, sizes.first);
        ends[num++] = end;
        if (end - begin >= sizes.first) {
            sizes.first = next_size(sizes.first, sizes.growth);
        }
    }
    return num;
}

uint32_t cgs_plan_chunks(const cgs_chunk_t *chunk,
                         const cgs_plan_rule_t *rule, uint32_t **ends_p)
{
    plan_t   plan  = {.chunk = chunk};
    uint32_t *ends = malloc((chunk->num_ops + 1) * sizeof(*ends));
    uint32_t num   = 0;

    plan.reach = malloc((chunk->num_ops + 1) * sizeof(*plan.reach));
    if ((ends != NULL) && (plan.reach != NULL)) {
        find_reach(&plan);
        num = rule->limit == CGS_CHUNK_AUTO ?
              plan_auto(&plan, rule->synced, ends) :
              plan_fixed(&plan, rule->limit, ends);
        *ends_p = ends;
        ends    = NULL;
    }
    free(ends);
    free(plan.reach);
    return num;
}
