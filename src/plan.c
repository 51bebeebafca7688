/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the program waits for the device in each run, two costs count. A chunk
 * keeps the device waiting for as long as the program takes to make its calls:
 * the first one is small, and each of the next may last as long as the device
 * is surely busy with the one before. And at the end of the row the device is
 * late by one chunk: none lasts longer than a part of what all the row gains.
 * Where it does not wait, nobody feels either, and graphs are as large as they
 * may be.
 */
#include "plan.h"

#include <stdlib.h>

#include "config.h"

/* What a call costs the program when it is swallowed, what a launch costs it
 * more, and the launch of a graph; a kernel takes at least so long. */
#define SWALLOW_NS 60
#define LAUNCH_NS  3000
#define GRAPH_NS   1200
#define KERNEL_NS  1000

/* Ops of the first chunk; a smaller one costs more than it gives. */
#define FIRST_OPS 8
/* More in a graph save nothing. */
#define MAX_OPS   2048
/* A rest that is smaller is no chunk of its own: a graph more costs the device
 * some 1.2 us. */
#define MIN_REST  24
/* The part of the gain that may be lost by lateness. */
#define LATENESS  3

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
    uint64_t          host_ns = SWALLOW_NS;
    uint32_t          i;

    for (i = begin + 1; i < chunk->num_ops; ++i) {
        host_ns += chunk->ops[i].gap_ns + SWALLOW_NS;
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

static uint32_t plan_auto(plan_t *plan, bool synced, uint32_t *ends)
{
    uint32_t num_ops = plan->chunk->num_ops;
    uint64_t call_ns = SWALLOW_NS + usual_gap(plan->chunk);
    uint64_t limit   = synced ? FIRST_OPS : MAX_OPS;
    uint32_t num     = 0;
    uint32_t begin   = 0;
    uint32_t end;
    uint64_t next;

    plan->late_ns = synced ? (uint64_t)num_ops * LAUNCH_NS / LATENESS :
                    UINT64_MAX;
    while (begin < num_ops) {
        end = find_end(plan, begin, limit);
        if ((end - begin >= limit) && (num_ops - end < MIN_REST)) {
            /* No gain from this cut; there may be one for lateness. */
            end = find_end(plan, begin, limit + MIN_REST);
        }
        /* The next one's calls take as long as this one's kernels. */
        next  = ((uint64_t)(end - begin) * KERNEL_NS - GRAPH_NS) / call_ns;
        limit = end - begin > 1 && next > limit ? next : limit;
        limit = limit < MAX_OPS ? limit : MAX_OPS;
        ends[num++] = end;
        begin       = end;
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
