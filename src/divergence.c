/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the report and the log say of a call that was not as recorded.
 */
#include "divergence.h"

#include "held.h"
#include "log.h"

/* The op under the cursor; NULL past the end. */
static const cgs_op_t *next_op(const cgs_region_t *region)
{
    return (region->cursor.variant != NULL) &&
           (region->cursor.op < cgs_cursor_chunk(region)->num_ops) ?
           &cgs_cursor_chunk(region)->ops[region->cursor.op] : NULL;
}

/* The first call that was not as the op under the cursor; `call` is NULL where
 * the run ended instead. */
void cgs_divergence_note(cgs_region_t *region, const cgs_call_t *call)
{
    cgs_divergence_t *divergence = &region->stats.first_divergence;
    const cgs_op_t   *op;

    if (divergence->valid) {
        return;
    }
    op = next_op(region);
    divergence->valid    = true;
    divergence->arg      = -1;
    divergence->run      = region->stats.runs;
    divergence->op_index = region->cursor.calls - (call != NULL);
    divergence->kernel   = op != NULL ? cgs_op_name(op) :
                           cgs_op_call_name(call);
    if (call == NULL) {
        divergence->what = "missing call";
    } else if (op == NULL) {
        divergence->what = "extra call";
    } else if (op->kind != call->kind) {
        divergence->what     = "call";
        divergence->old_text = divergence->kernel;
        divergence->new_text = cgs_op_call_name(call);
    } else {
        cgs_op_kinds[op->kind]->explain(op, call, divergence);
        divergence->what = divergence->what != NULL ? divergence->what :
                           "stream or context";
    }
}

/* The report names the first such call; the log each one. */
void cgs_divergence_log(cgs_region_t *region, const cgs_call_t *call)
{
    const cgs_op_t *op;

    if (!cgs_log_enabled(CGS_LOG_DEBUG)) {
        return;
    }
    op = next_op(region);
    cgs_log_line(CGS_LOG_DEBUG, "region %s: run %llu, call %llu: recorded %s "
                 "on stream %p, called %s on stream %p%s", region->name,
                 (unsigned long long)region->stats.runs,
                 (unsigned long long)region->cursor.calls,
                 op != NULL ? cgs_op_name(op) : "nothing",
                 op != NULL ?
                 (void *)cgs_cursor_chunk(region)->streams[op->lane] : NULL,
                 cgs_op_call_name(call), (void *)call->stream,
                 cgs_self.joined ? " by another thread" : "");
}
