/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is held back moves with the cursor: the values of this run's calls are
 * copied from the ops of the one variant to those of the other.
 */
#include "branch.h"

#include "held.h"

static void see_whether_through(cgs_region_t *region)
{
    region->cursor.through = cgs_cursor_chunk(region)->exec == NULL;
}

void cgs_branch_enter(cgs_region_t *region, cgs_place_t *place)
{
    cgs_cursor_t *cursor = &region->cursor;

    cursor->place   = place;
    cursor->op      = 0;
    cursor->variant = place != NULL ? place->current : NULL;
    if (cursor->variant != NULL) {
        cgs_phases_advance(&cursor->variant->phases);
        see_whether_through(region);
    }
}

void cgs_branch_leave(cgs_region_t *region)
{
    cgs_variant_t *variant = region->cursor.variant;

    if (!variant->is_wanted) {
        variant->is_wanted         = true;
        region->recording.has_work = true;
    }
    variant->last_run       = region->stats.runs;
    variant->place->current = variant;
    region->cursor.last     = variant;
    cgs_branch_enter(region, variant->next);
}

cgs_match_t cgs_branch_compare(const cgs_chunk_t *chunk, uint32_t index,
                               cgs_call_t *call, CUcontext ctx)
{
    const cgs_op_t *op = &chunk->ops[index];

    if ((op->kind != call->kind) ||
        (chunk->streams[op->lane] != call->stream) || (chunk->ctx != ctx)) {
        return CGS_MATCH_OTHER;
    }
    return cgs_op_kinds[op->kind]->compare(op, call);
}

bool cgs_branch_accepts(const cgs_region_t *region, cgs_match_t match)
{
    return (match != CGS_MATCH_OTHER) &&
           ((match != CGS_MATCH_CHANGED) ||
            (region->rule->on_change == CGS_ON_CHANGE_PATCH));
}

/* Bring an op to this run's values. Memory that was staged cannot be read
 * again: it went out already, or has to now. */
static bool bring(cgs_chunk_t *to, uint32_t index, const cgs_call_t *call)
{
    cgs_op_t *op = &to->ops[index];

    if (cgs_op_staged_bytes(op) > 0) {
        return true;
    }
    if (cgs_op_kinds[op->kind]->take(op, call, NULL) != 0) {
        return false;
    }
    cgs_chunk_touch(to, index);
    return true;
}

/* Whether the first calls of one chunk are those of another; these have their
 * values then. */
static bool bring_prefix(const cgs_region_t *region, const cgs_chunk_t *from,
                         cgs_chunk_t *to, uint32_t num)
{
    cgs_match_t match;
    cgs_call_t  call;
    uint32_t    i;

    for (i = 0; i < num; ++i) {
        cgs_chunk_recall(from, i, &call);
        match = cgs_branch_compare(to, i, &call, from->ctx);
        if (!cgs_branch_accepts(region, match) ||
            ((match != CGS_MATCH_SAME) && !bring(to, i, &call))) {
            return false;
        }
    }
    return true;
}

static bool has_staged(const cgs_chunk_t *chunk, uint32_t num)
{
    uint32_t i;

    for (i = 0; (chunk->staging != NULL) && (i < num); ++i) {
        if (cgs_op_staged_bytes(&chunk->ops[i]) > 0) {
            return true;
        }
    }
    return false;
}

static void move_to(cgs_region_t *region, cgs_variant_t *variant)
{
    cgs_cursor_t *cursor = &region->cursor;
    cgs_chunk_t  *to     = cgs_variant_chunk(variant);

    if ((to->exec == NULL) ||
        ((cursor->op > 0) && has_staged(cgs_cursor_chunk(region),
                                        cursor->op))) {
        cgs_held_issue(region);
    }
    cursor->variant = variant;
    cursor->moved   = true;
    if (cursor->op == 0) {
        see_whether_through(region);
    }
}

/* A first look at whether a call is an op. What a wait waits for is known only
 * when the records before it have this run's events. */
static bool may_be_next(const cgs_chunk_t *to, uint32_t index,
                        cgs_call_t *call, CUcontext ctx, cgs_match_t worst)
{
    if (call == NULL) {
        return to->num_ops == index;
    }
    return (to->num_ops > index) &&
           ((call->kind == CGS_OP_WAIT) ?
            (to->ops[index].kind == CGS_OP_WAIT) :
            (cgs_branch_compare(to, index, call, ctx) <= worst));
}

/* Whether the calls of this run, up to this one, are a variant's. */
static bool leads_on(cgs_region_t *region, cgs_variant_t *variant,
                     cgs_call_t *call, CUcontext ctx, cgs_match_t worst)
{
    const cgs_cursor_t *cursor = &region->cursor;
    cgs_chunk_t        *to     = cgs_variant_chunk(variant);

    return may_be_next(to, cursor->op, call, ctx, worst) &&
           ((cursor->op == 0) ||
            bring_prefix(region, cgs_cursor_chunk(region), to, cursor->op)) &&
           ((call == NULL) ||
            (cgs_branch_compare(to, cursor->op, call, ctx) <= worst));
}

static bool follow(cgs_region_t *region, cgs_call_t *call, CUcontext ctx,
                   cgs_match_t worst)
{
    cgs_cursor_t  *cursor = &region->cursor;
    cgs_variant_t *variant;
    uint32_t      i;

    for (i = 0; i < cursor->place->num; ++i) {
        variant = cursor->place->variants[i];
        if (variant == cursor->variant) {
            continue;
        }
        if ((cursor->op == 0) && (call != NULL)) {
            cgs_phases_choose(&variant->phases, call);
        }
        if (leads_on(region, variant, call, ctx, worst)) {
            move_to(region, variant);
            return true;
        }
    }
    return false;
}

bool cgs_branch_follow(cgs_region_t *region, cgs_call_t *call, CUcontext ctx)
{
    if ((region->cursor.place == NULL) || (region->cursor.variant == NULL) ||
        (region->cursor.place->num < 2)) {
        return false;
    }
    /* First one that need not be patched for it. */
    return follow(region, call, ctx, CGS_MATCH_STAGED) ||
           (cgs_branch_accepts(region, CGS_MATCH_CHANGED) && (call != NULL) &&
            follow(region, call, ctx, CGS_MATCH_CHANGED));
}
