/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the report and the log say of a call that was not as recorded.
 */
#define _GNU_SOURCE
#include "divergence.h"

#include <stdio.h>
#include <string.h>

#include "held.h"
#include "log.h"

/* The op under the cursor; NULL past the end. */
static const cgs_op_t *next_op(const cgs_region_t *region)
{
    return (region->cursor.variant != NULL) &&
           (region->cursor.op < cgs_cursor_chunk(region)->num_ops) ?
           &cgs_cursor_chunk(region)->ops[region->cursor.op] : NULL;
}

/* What differs, and no names where the divergence is to be brief. */
static void describe(const cgs_region_t *region, const cgs_op_t *op,
                     const cgs_call_t *call, cgs_divergence_t *divergence)
{
    divergence->run      = region->stats.runs;
    divergence->op_index = region->cursor.calls - (call != NULL);
    divergence->arg      = -1;
    if (call == NULL) {
        divergence->what = "missing call";
    } else if (op == NULL) {
        divergence->what = "extra call";
    } else if (op->kind != call->kind) {
        divergence->what = "call";
    } else {
        cgs_op_kinds[op->kind]->explain(op, call, divergence);
        divergence->what = divergence->what != NULL ? divergence->what :
                           "stream or context";
    }
}

/* The kind of what differs, and its name. */
static void name(const cgs_op_t *op, const cgs_call_t *call,
                 const char **kind, const char **kernel)
{
    *kind   = cgs_op_kinds[op != NULL ? op->kind : call->kind]->name;
    *kernel = op != NULL ? cgs_op_name(op) : cgs_op_call_name(call);
}

static const char *full_name(unsigned kind, const char *kernel)
{
    char *text;

    return (kind != CGS_OP_KERNEL) ||
           (asprintf(&text, "kernel %s", kernel) < 0) ? kernel : text;
}

/* For the report, the first time. */
static void note_first(cgs_region_t *region, const cgs_op_t *op,
                       const cgs_call_t *call)
{
    cgs_divergence_t *divergence = &region->stats.first_divergence;

    divergence->valid = true;
    describe(region, op, call, divergence);
    name(op, call, &divergence->call, &divergence->kernel);
    if ((op != NULL) && (call != NULL) && (op->kind != call->kind)) {
        divergence->old_text = full_name(op->kind, cgs_op_name(op));
        divergence->new_text = full_name(call->kind, cgs_op_call_name(call));
    }
}

static uint64_t value_of(const uint8_t *bytes, uint32_t num)
{
    uint64_t value = 0;

    if (num > sizeof(value)) {
        return cgs_op_hash_bytes(bytes, num, 0xcbf29ce484222325u);
    }
    memcpy(&value, bytes, num);
    return value;
}

/* Whether a value is an address of memory that the driver knows. */
static bool is_address(uint64_t value, uint32_t num_bytes)
{
    unsigned type = 0;

    return (num_bytes == sizeof(value)) && (value != 0) &&
           (CGS_REAL(cuPointerGetAttribute)(
                &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, value) ==
            CUDA_SUCCESS) && (type == CU_MEMORYTYPE_DEVICE);
}

/* For the statistics, in some runs. */
static void count(cgs_region_t *region, const cgs_op_t *op,
                  const cgs_call_t *call)
{
    cgs_divergence_t brief = {.is_brief = true};
    cgs_differing_t  differing;
    cgs_change_t     *added;

    describe(region, op, call, &brief);
    differing = (cgs_differing_t){
        .run       = brief.run,
        .op_index  = brief.op_index,
        .what      = brief.what,
        .arg       = brief.arg,
        .has_value = brief.num_bytes > 0,
        .old       = value_of(brief.old_bytes, brief.num_bytes),
        .now       = value_of(brief.new_bytes, brief.num_bytes),
    };
    added = cgs_changes_add(&region->stats.changes, &differing);
    if (added != NULL) {
        name(op, call, &added->call, &added->kernel);
        added->is_address = is_address(differing.now, brief.num_bytes);
    }
}

void cgs_divergence_note(cgs_region_t *region, const cgs_call_t *call)
{
    bool           is_first = !region->stats.first_divergence.valid;
    const cgs_op_t *op;

    if (!is_first && !region->cursor.is_watched) {
        return;
    }
    op = next_op(region);
    if ((op == NULL) && (call == NULL)) {
        return;
    }
    if (is_first) {
        note_first(region, op, call);
    }
    if (region->cursor.is_watched) {
        count(region, op, call);
    }
}

/* The report names the first such call; the log each one. */
void cgs_divergence_log(cgs_region_t *region, const cgs_call_t *call)
{
    const cgs_op_t *op = next_op(region);

    cgs_log_often(CGS_LOG_DEBUG, "region %s: run %llu, call %llu: recorded "
                  "%s%s on stream %p, called %s%s on stream %p%s",
                  region->name, (unsigned long long)region->stats.runs,
                  (unsigned long long)region->cursor.calls - 1,
                  (op != NULL) && (op->kind == CGS_OP_KERNEL) ? "kernel " : "",
                  op != NULL ? cgs_op_name(op) : "nothing",
                  op != NULL ?
                  (void *)cgs_cursor_chunk(region)->streams[op->lane] : NULL,
                  call->kind == CGS_OP_KERNEL ? "kernel " : "",
                  cgs_op_call_name(call), (void *)call->stream,
                  cgs_self.joined ? " by another thread" : "");
}
