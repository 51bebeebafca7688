/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions as ops: the program's function is a node, called by the
 * driver when the work before it is done. Its data pointer is compared and
 * patched like any argument; what it points to is the program's affair.
 */
#define _GNU_SOURCE
#include "op.h"

#include <string.h>

void cgs_call_host(cgs_call_t *call, CUhostFn function, void *data)
{
    call->kind          = CGS_OP_HOST;
    call->host.function = function;
    call->host.data     = data;
    if (function == NULL) {
        call->refused = true;
        call->reason  = "a call without its parameters";
    }
}

static bool host_admit(cgs_call_t *call)
{
    (void)call;
    return true;
}

static cgs_match_t host_compare(const cgs_op_t *op, cgs_call_t *call)
{
    if (op->host.function != call->host.function) {
        return CGS_MATCH_OTHER;
    }
    return op->host.data == call->host.data ? CGS_MATCH_SAME :
                                              CGS_MATCH_CHANGED;
}

static int host_take(cgs_op_t *op, const cgs_call_t *call, cgs_arena_t *arena)
{
    (void)arena;
    op->host.function = call->host.function;
    op->host.data     = call->host.data;
    return 0;
}

static void host_recall(const cgs_op_t *op, cgs_call_t *call)
{
    call->host.function = op->host.function;
    call->host.data     = op->host.data;
}

static uint64_t host_hash(const cgs_op_t *op, uint64_t hash)
{
    return cgs_op_hash_bytes(&op->host.data, sizeof(op->host.data), hash);
}

static CUresult host_issue(const cgs_op_t *op, CUstream stream)
{
    return CGS_REAL(cuLaunchHostFunc)(stream, op->host.function,
                                      op->host.data);
}

static void host_describe(const cgs_op_t *op, CUcontext ctx,
                          CUgraphNodeParams *params)
{
    (void)ctx;
    params->type          = CU_GRAPH_NODE_TYPE_HOST;
    params->host.fn       = op->host.function;
    params->host.userData = op->host.data;
}

static void host_explain(const cgs_op_t *op, const cgs_call_t *call,
                         cgs_divergence_t *divergence)
{
    bool       function = op->host.function != call->host.function;
    const void *from    = function ? (const void *)op->host.function :
                          op->host.data;
    const void *to      = function ? (const void *)call->host.function :
                          call->host.data;

    divergence->what      = function ? "function" : "data pointer";
    divergence->size      = sizeof(from);
    divergence->num_bytes = sizeof(from);
    memcpy(divergence->old_bytes, &from, sizeof(from));
    memcpy(divergence->new_bytes, &to, sizeof(to));
}

const cgs_op_kind_t cgs_op_host = {
    .name     = "host function",
    .admit    = host_admit,
    .compare  = host_compare,
    .take     = host_take,
    .recall   = host_recall,
    .hash     = host_hash,
    .issue    = host_issue,
    .describe = host_describe,
    .explain  = host_explain,
};
