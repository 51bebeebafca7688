/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel launches as ops.
 *
 * Arguments are kept as one buffer laid out as the driver says; a launch that
 * passes them as pointers and one that passes an `extra` buffer then look the
 * same to compare and to the node.
 */
#define _GNU_SOURCE
#include "op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "function.h"

/* What becomes of a launch attribute. */
typedef enum {
    ATTR_REFUSED = 0, /* the launch is a barrier */
    ATTR_NODE,        /* set on the node */
    ATTR_EDGE         /* compared; the node's full edge serves for it */
} attr_use_t;

/*
 * Bytes of each attribute's value that mean something: the rest of the union
 * is whatever lay on the program's stack.
 *
 * Programmatic serialisation lets a kernel start before its predecessor ends;
 * a full edge is a stricter order that the program cannot tell from it.
 */
static const struct {
    attr_use_t use;
    uint8_t    size;
} attr_table[] = {
#define VALUE_SIZE(_field) sizeof(((CUlaunchAttributeValue *)0)->_field)
    [CU_LAUNCH_ATTRIBUTE_IGNORE]              = {ATTR_EDGE, 0},
    [CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW] = {ATTR_NODE, 28},
    [CU_LAUNCH_ATTRIBUTE_COOPERATIVE] = {ATTR_NODE, VALUE_SIZE(cooperative)},
    [CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION] =
        {ATTR_NODE, VALUE_SIZE(clusterDim)},
    [CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE] =
        {ATTR_NODE, VALUE_SIZE(clusterSchedulingPolicyPreference)},
    [CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION] =
        {ATTR_EDGE, VALUE_SIZE(programmaticStreamSerializationAllowed)},
    [CU_LAUNCH_ATTRIBUTE_PRIORITY] = {ATTR_NODE, VALUE_SIZE(priority)},
    [CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP] =
        {ATTR_NODE, VALUE_SIZE(memSyncDomainMap)},
    [CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN] =
        {ATTR_NODE, VALUE_SIZE(memSyncDomain)},
    [CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION] =
        {ATTR_NODE, VALUE_SIZE(preferredClusterDim)},
    [CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] =
        {ATTR_NODE, VALUE_SIZE(sharedMemCarveout)},
#undef VALUE_SIZE
};

static attr_use_t attr_use(CUlaunchAttributeID id)
{
    if ((unsigned)id >= sizeof(attr_table) / sizeof(attr_table[0])) {
        return ATTR_REFUSED;
    }
    return attr_table[id].use;
}

void cgs_call_launch(cgs_call_t *call, cgs_launch_api_t api, CUfunction f,
                     const unsigned grid[3], const unsigned block[3],
                     unsigned shared_bytes, void **params, void **extra,
                     const CUlaunchAttribute *attrs, unsigned num_attrs)
{
    size_t extra_size = 0;
    int    i;

    call->kind                      = CGS_OP_KERNEL;
    call->kernel.shape.function     = f;
    call->kernel.shape.shared_bytes = shared_bytes;
    call->kernel.shape.api          = api;
    call->kernel.shape.num_attrs    = attrs != NULL ? num_attrs : 0;
    memcpy(call->kernel.shape.grid, grid, sizeof(call->kernel.shape.grid));
    memcpy(call->kernel.shape.block, block, sizeof(call->kernel.shape.block));
    call->kernel.params = params;
    call->kernel.extra  = NULL;
    call->kernel.attrs  = attrs;

    for (i = 0; (extra != NULL) && (extra[i] != CU_LAUNCH_PARAM_END); i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            call->kernel.extra = extra[i + 1];
        } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            extra_size = *(size_t *)extra[i + 1];
        } else {
            extra_size = UINT32_MAX;
            break;
        }
    }
    if ((extra_size >= UINT32_MAX) ||
        ((extra != NULL) && (call->kernel.extra == NULL)) ||
        ((extra != NULL) && (extra_size == 0)) ||
        ((extra != NULL) && (params != NULL)) ||
        ((attrs == NULL) && (num_attrs > 0))) {
        call->refused = true;
        call->reason  = "a launch with options that are not known";
        extra_size    = 0;
    }
    call->kernel.shape.extra_size = extra_size;
}

static const char *call_argument(const cgs_call_t *call,
                                 const cgs_layout_t *layout, uint32_t i)
{
    return call->kernel.extra != NULL ?
           call->kernel.extra + layout->param[i].offset :
           (const char *)call->kernel.params[i];
}

static bool lacks_argument(const cgs_call_t *call,
                           const cgs_layout_t *layout)
{
    uint32_t i;

    for (i = 0; (call->kernel.params != NULL) && (i < layout->num); ++i) {
        if (call->kernel.params[i] == NULL) {
            return true;
        }
    }
    return false;
}

static bool kernel_admit(cgs_call_t *call)
{
    const cgs_layout_t *layout;
    uint32_t           i;

    for (i = 0; i < call->kernel.shape.num_attrs; ++i) {
        if (attr_use(call->kernel.attrs[i].id) == ATTR_REFUSED) {
            call->reason = "a launch attribute that no node can hold";
            return false;
        }
    }

    layout = cgs_function_layout(call->kernel.shape.function, &call->reason);
    if (layout == NULL) {
        return false;
    }
    if ((layout->num > 0) &&
        (call->kernel.extra != NULL ?
         layout->total > call->kernel.shape.extra_size :
         (call->kernel.params == NULL) || lacks_argument(call, layout))) {
        call->reason = "a launch with fewer arguments than the kernel has";
        return false;
    }
    call->kernel.layout = layout;
    return true;
}

/* Most arguments are pointers and small numbers; memcmp by size is slower. */
static inline bool same_bytes(const char *a, const char *b, uint32_t size)
{
    uint64_t a8, b8;
    uint32_t a4, b4;

    if (size == 8) {
        memcpy(&a8, a, 8);
        memcpy(&b8, b, 8);
        return a8 == b8;
    }
    if (size == 4) {
        memcpy(&a4, a, 4);
        memcpy(&b4, b, 4);
        return a4 == b4;
    }
    return memcmp(a, b, size) == 0;
}

bool cgs_op_is_launch(const cgs_op_t *op, const cgs_launch_shape_t *shape,
                      void **params)
{
    const cgs_layout_t *layout = op->kernel.layout;
    uint32_t           i;

    if ((memcmp(&op->kernel.shape, shape, sizeof(*shape)) != 0) ||
        ((params == NULL) && (layout->num > 0))) {
        return false;
    }
    for (i = 0; i < layout->num; ++i) {
        if ((params[i] == NULL) ||
            !same_bytes(op->kernel.pointers[i], params[i],
                        layout->param[i].size)) {
            return false;
        }
    }
    return true;
}

static bool same_attr(const CUlaunchAttribute *a, const CUlaunchAttribute *b)
{
    return (a->id == b->id) &&
           (attr_use(a->id) != ATTR_REFUSED) &&
           !memcmp(&a->value, &b->value, attr_table[a->id].size);
}

static int different_attr(const cgs_op_t *op, const cgs_call_t *call)
{
    uint32_t i;

    for (i = 0; i < op->kernel.shape.num_attrs; ++i) {
        if (!same_attr(&op->kernel.attrs[i], &call->kernel.attrs[i])) {
            return (int)i;
        }
    }
    return -1;
}

static int different_argument(const cgs_op_t *op, const cgs_call_t *call)
{
    const cgs_layout_t *layout = op->kernel.layout;
    uint32_t           i;

    for (i = 0; i < layout->num; ++i) {
        if (!same_bytes(op->kernel.args + layout->param[i].offset,
                        call_argument(call, layout, i),
                        layout->param[i].size)) {
            return (int)i;
        }
    }
    return -1;
}

/* Nothing says which arguments are addresses: each word may be one. */
static void kernel_uses(const cgs_op_t *op, cgs_op_use_fn_t tell, void *arg)
{
    const cgs_layout_t *layout = op->kernel.layout;
    cgs_op_use_t       use     = {.access = CGSHIM_ACCESS_UNKNOWN};
    uint32_t           i, word, offset;

    for (i = 0; i < layout->num; ++i) {
        offset = layout->param[i].offset;
        for (word = -offset % sizeof(use.address);
             word + sizeof(use.address) <= layout->param[i].size;
             word += sizeof(use.address)) {
            memcpy(&use.address, op->kernel.args + offset + word,
                   sizeof(use.address));
            use.argument = (int)i;
            use.offset   = word;
            tell(&use, arg);
        }
    }
}

/* Limits of all devices; a launch beyond them is for the driver to refuse. */
#define MAX_GRID_X  0x7fffffffu
#define MAX_GRID_YZ 65535u
#define MAX_BLOCK   1024u
#define MAX_BLOCK_Z 64u

static bool divides(unsigned part, unsigned whole)
{
    return (part > 0) && (whole % part == 0);
}

/* What of a launch's shape another launch of the kernel may have different. */
typedef enum {
    SHAPE_FREE,
    SHAPE_CLUSTERS, /* the grid, in whole clusters: there has to be room for
                       each of them, which a block or shared memory takes */
    SHAPE_FIXED     /* nothing */
} shape_rule_t;

/* @param cluster_p Set to the cluster's attribute where the grid is in those. */
static shape_rule_t shape_rule(const cgs_op_t *op,
                               const CUlaunchAttribute **cluster_p)
{
    const CUlaunchAttribute *attr = op->kernel.attrs;
    shape_rule_t            rule  = SHAPE_FREE;
    uint32_t                i;

    if (op->kernel.layout->fixed_grid ||
        (op->kernel.shape.api == CGS_LAUNCH_COOPERATIVE)) {
        return SHAPE_FIXED;
    }
    for (i = 0; i < op->kernel.shape.num_attrs; ++i) {
        if ((attr[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) ||
            (attr[i].id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)) {
            return SHAPE_FIXED;
        }
        if (attr[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            *cluster_p = &attr[i];
            rule       = SHAPE_CLUSTERS;
        }
    }
    return rule;
}

/* Whether the launch's grid may be like that. */
static bool is_grid_free(const cgs_op_t *op, const unsigned grid[3])
{
    const CUlaunchAttribute *cluster = NULL;

    if (!memcmp(op->kernel.shape.grid, grid, sizeof(op->kernel.shape.grid))) {
        return true;
    }
    switch (shape_rule(op, &cluster)) {
    case SHAPE_FREE:
        return true;
    case SHAPE_CLUSTERS:
        return divides(cluster->value.clusterDim.x, grid[0]) &&
               divides(cluster->value.clusterDim.y, grid[1]) &&
               divides(cluster->value.clusterDim.z, grid[2]);
    default:
        return false;
    }
}

/* Whether the launch's blocks may be like that. */
static bool is_block_free(const cgs_op_t *op, const cgs_launch_shape_t *now)
{
    const CUlaunchAttribute *cluster = NULL;
    const unsigned          *block   = now->block;

    if (!memcmp(op->kernel.shape.block, block,
                sizeof(op->kernel.shape.block)) &&
        (op->kernel.shape.shared_bytes == now->shared_bytes)) {
        return true;
    }
    return (shape_rule(op, &cluster) == SHAPE_FREE) && (block[0] - 1 < MAX_BLOCK) &&
           (block[1] - 1 < MAX_BLOCK) && (block[2] - 1 < MAX_BLOCK_Z) &&
           (now->shared_bytes <= op->kernel.limits.max_shared_bytes) &&
           (!memcmp(op->kernel.shape.block, block,
                    sizeof(op->kernel.shape.block)) ||
            (block[0] * block[1] * block[2] <=
             op->kernel.limits.max_threads));
}

/*
 * Whether a patch can make the op this launch: of the same kernel, with
 * another grid, block or amount of shared memory. The driver must be sure to
 * take it: what it refuses must be refused there and then.
 */
static bool can_reshape(const cgs_op_t *op, const cgs_launch_shape_t *now)
{
    cgs_launch_shape_t as_before = *now;

    memcpy(as_before.grid, op->kernel.shape.grid, sizeof(as_before.grid));
    memcpy(as_before.block, op->kernel.shape.block, sizeof(as_before.block));
    as_before.shared_bytes = op->kernel.shape.shared_bytes;
    return !memcmp(&as_before, &op->kernel.shape, sizeof(as_before)) &&
           (now->grid[0] - 1 < MAX_GRID_X) &&
           (now->grid[1] - 1 < MAX_GRID_YZ) &&
           (now->grid[2] - 1 < MAX_GRID_YZ) && is_block_free(op, now) &&
           is_grid_free(op, now->grid);
}

static cgs_match_t kernel_compare(const cgs_op_t *op, cgs_call_t *call)
{
    const cgs_launch_shape_t *now = &call->kernel.shape;
    bool same_shape = !memcmp(&op->kernel.shape, now, sizeof(*now));

    if ((!same_shape && !can_reshape(op, now)) ||
        (different_attr(op, call) >= 0)) {
        return CGS_MATCH_OTHER;
    }
    if ((call->kernel.params == NULL) && (call->kernel.extra == NULL) &&
        (op->kernel.layout->num > 0)) {
        return CGS_MATCH_OTHER;
    }
    if (lacks_argument(call, op->kernel.layout)) {
        return CGS_MATCH_OTHER;
    }
    call->kernel.layout = op->kernel.layout;
    return same_shape && (different_argument(op, call) < 0) ?
           CGS_MATCH_SAME : CGS_MATCH_CHANGED;
}

static cgs_layout_t *copy_layout(const cgs_layout_t *layout,
                                 cgs_arena_t *arena)
{
    size_t       bytes = sizeof(*layout) +
                         layout->num * sizeof(layout->param[0]);
    cgs_layout_t *copy = cgs_arena_take(arena, bytes);

    if (copy != NULL) {
        memcpy(copy, layout, bytes);
    }
    return copy;
}

/* Room for what the op will hold. */
static int kernel_prepare(cgs_op_t *op, const cgs_call_t *call,
                          cgs_arena_t *arena)
{
    const cgs_layout_t *layout = call->kernel.layout;
    uint32_t           i, bytes;

    bytes = layout->total > call->kernel.shape.extra_size ? layout->total :
            call->kernel.shape.extra_size;
    op->kernel.layout   = copy_layout(layout, arena);
    op->kernel.args     = cgs_arena_take(arena, bytes);
    op->kernel.pointers = cgs_arena_take(arena, (layout->num + 1) *
                                         sizeof(void *));
    op->kernel.attrs    = cgs_arena_take(arena, call->kernel.shape.num_attrs *
                                         sizeof(CUlaunchAttribute));
    if ((op->kernel.layout == NULL) || (op->kernel.args == NULL) ||
        (op->kernel.pointers == NULL) || (op->kernel.attrs == NULL)) {
        return -1;
    }
    for (i = 0; i < layout->num; ++i) {
        op->kernel.pointers[i] = op->kernel.args + layout->param[i].offset;
    }
    for (i = 0; i < call->kernel.shape.num_attrs; ++i) {
        op->kernel.attrs[i].id = call->kernel.attrs[i].id;
        memcpy(&op->kernel.attrs[i].value, &call->kernel.attrs[i].value,
               attr_table[call->kernel.attrs[i].id].size);
    }
    return 0;
}

static int kernel_take(cgs_op_t *op, const cgs_call_t *call,
                       cgs_arena_t *arena)
{
    uint32_t i;

    if (arena != NULL) {
        if (kernel_prepare(op, call, arena) != 0) {
            return -1;
        }
        op->kernel.limits = cgs_function_limits(op->kernel.layout,
                                                &call->kernel.shape);
        /* From now on a new attribute of the kernel matters. */
        cgs_function_recorded(call->kernel.shape.function);
    }
    op->kernel.shape = call->kernel.shape;
    if (call->kernel.extra != NULL) {
        memcpy(op->kernel.args, call->kernel.extra,
               op->kernel.shape.extra_size);
        return 0;
    }
    for (i = 0; i < op->kernel.layout->num; ++i) {
        memcpy(op->kernel.pointers[i], call->kernel.params[i],
               op->kernel.layout->param[i].size);
    }
    return 0;
}

static void kernel_recall(const cgs_op_t *op, cgs_call_t *call)
{
    bool has_extra = op->kernel.shape.extra_size > 0;

    call->kernel.shape  = op->kernel.shape;
    call->kernel.params = has_extra ? NULL : op->kernel.pointers;
    call->kernel.extra  = has_extra ? op->kernel.args : NULL;
    call->kernel.attrs  = op->kernel.attrs;
    call->kernel.layout = op->kernel.layout;
}

static uint64_t kernel_hash(const cgs_op_t *op, uint64_t hash)
{
    uint32_t i;

    hash = cgs_op_hash_bytes(&op->kernel.shape, sizeof(op->kernel.shape),
                             hash);
    for (i = 0; i < op->kernel.layout->num; ++i) {
        hash = cgs_op_hash_bytes(op->kernel.pointers[i],
                                 op->kernel.layout->param[i].size, hash);
    }
    return hash;
}

static CUresult kernel_issue(const cgs_op_t *op, CUstream stream)
{
    const cgs_launch_shape_t *s = &op->kernel.shape;
    size_t  extra_size = s->extra_size;
    void    *buffer[]  = {CU_LAUNCH_PARAM_BUFFER_POINTER, op->kernel.args,
                          CU_LAUNCH_PARAM_BUFFER_SIZE, &extra_size,
                          CU_LAUNCH_PARAM_END};
    void    **extra    = extra_size > 0 ? buffer : NULL;
    void    **params   = extra_size > 0 ? NULL : op->kernel.pointers;
    CUlaunchConfig config;

    switch ((cgs_launch_api_t)s->api) {
    case CGS_LAUNCH_EX:
        config = (CUlaunchConfig){
            .gridDimX = s->grid[0], .gridDimY = s->grid[1],
            .gridDimZ = s->grid[2], .blockDimX = s->block[0],
            .blockDimY = s->block[1], .blockDimZ = s->block[2],
            .sharedMemBytes = s->shared_bytes, .hStream = stream,
            .attrs = op->kernel.attrs, .numAttrs = s->num_attrs,
        };
        return CGS_REAL(cuLaunchKernelEx)(&config, s->function, params, extra);
    case CGS_LAUNCH_COOPERATIVE:
        return CGS_REAL(cuLaunchCooperativeKernel)(
            s->function, s->grid[0], s->grid[1], s->grid[2], s->block[0],
            s->block[1], s->block[2], s->shared_bytes, stream, params);
    case CGS_LAUNCH_PLAIN:
    default:
        return CGS_REAL(cuLaunchKernel)(
            s->function, s->grid[0], s->grid[1], s->grid[2], s->block[0],
            s->block[1], s->block[2], s->shared_bytes, stream, params, extra);
    }
}

static void kernel_describe(const cgs_op_t *op, CUcontext ctx,
                            CUgraphNodeParams *params)
{
    const cgs_launch_shape_t    *shape = &op->kernel.shape;
    CUDA_KERNEL_NODE_PARAMS_v3  *node  = &params->kernel;

    params->type          = CU_GRAPH_NODE_TYPE_KERNEL;
    node->gridDimX        = shape->grid[0];
    node->gridDimY        = shape->grid[1];
    node->gridDimZ        = shape->grid[2];
    node->blockDimX       = shape->block[0];
    node->blockDimY       = shape->block[1];
    node->blockDimZ       = shape->block[2];
    node->sharedMemBytes  = shape->shared_bytes;
    node->kernelParams    = op->kernel.pointers;
    if (op->kernel.layout->is_kernel) {
        /* In `func` such a handle is taken for something else. */
        node->kern = (CUkernel)shape->function;
        node->ctx  = ctx;
    } else {
        node->func = shape->function;
    }
}

static CUresult kernel_decorate(const cgs_op_t *op, CUgraphNode node)
{
    CUlaunchAttributeValue cooperative = {.cooperative = 1};
    CUresult               result;
    uint32_t               i;

    if (op->kernel.shape.api == CGS_LAUNCH_COOPERATIVE) {
        return CGS_REAL(cuGraphKernelNodeSetAttribute)(
            node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative);
    }
    for (i = 0; i < op->kernel.shape.num_attrs; ++i) {
        if (attr_use(op->kernel.attrs[i].id) != ATTR_NODE) {
            continue;
        }
        result = CGS_REAL(cuGraphKernelNodeSetAttribute)(
            node, op->kernel.attrs[i].id, &op->kernel.attrs[i].value);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

static const char *format_dims(const unsigned dims[3])
{
    char *text;

    return asprintf(&text, "%u x %u x %u", dims[0], dims[1], dims[2]) < 0 ?
           "?" : text;
}

static const char *format_number(unsigned long number)
{
    char *text;

    return asprintf(&text, "%lu", number) < 0 ? "?" : text;
}

/* `num` numbers, up to three. */
static void explain_numbers(const char *what, const unsigned *old,
                            const unsigned *now, unsigned num,
                            cgs_divergence_t *divergence)
{
    divergence->what = what;
    if (divergence->is_brief) {
        /* In so many bits that grids that grow are numbers that do. */
        uint64_t from = num == 1 ? old[0] : old[0] + ((uint64_t)old[1] << 32) +
                                            ((uint64_t)old[2] << 48);
        uint64_t to   = num == 1 ? now[0] : now[0] + ((uint64_t)now[1] << 32) +
                                            ((uint64_t)now[2] << 48);

        divergence->num_bytes = sizeof(to);
        memcpy(divergence->old_bytes, &from, sizeof(from));
        memcpy(divergence->new_bytes, &to, sizeof(to));
    } else if (num == 1) {
        divergence->old_text = format_number(old[0]);
        divergence->new_text = format_number(now[0]);
    } else {
        divergence->old_text = format_dims(old);
        divergence->new_text = format_dims(now);
    }
}

static void explain_shape(const cgs_launch_shape_t *old,
                          const cgs_launch_shape_t *now,
                          cgs_divergence_t *divergence)
{
    if (old->function != now->function) {
        divergence->what = "kernel";
        if (!divergence->is_brief) {
            divergence->old_text = cgs_function_name(old->function);
            divergence->new_text = cgs_function_name(now->function);
        }
    } else if (memcmp(old->grid, now->grid, sizeof(old->grid)) != 0) {
        explain_numbers("grid", old->grid, now->grid, 3, divergence);
    } else if (memcmp(old->block, now->block, sizeof(old->block)) != 0) {
        explain_numbers("block", old->block, now->block, 3, divergence);
    } else if (old->shared_bytes != now->shared_bytes) {
        explain_numbers("shared memory", &old->shared_bytes,
                        &now->shared_bytes, 1, divergence);
    } else if (old->num_attrs != now->num_attrs) {
        explain_numbers("number of attributes", &old->num_attrs,
                        &now->num_attrs, 1, divergence);
    } else {
        divergence->what = "way of launching";
    }
}

static void explain_argument(const cgs_op_t *op, const cgs_call_t *call,
                             int argument, cgs_divergence_t *divergence)
{
    const cgs_layout_t *layout = op->kernel.layout;
    uint32_t           size    = layout->param[argument].size;
    const char         *old    = op->kernel.pointers[argument];
    const char         *now    = call_argument(call, layout, argument);
    uint32_t           first   = 0;
    uint32_t           start;

    while ((first < size) && (old[first] == now[first])) {
        ++first;
    }
    /* A large argument is shown from the byte that differs. */
    start                 = size <= CGS_REPORT_MAX_BYTES ? 0 : first;
    divergence->what      = "argument";
    divergence->arg       = argument;
    divergence->offset    = first;
    divergence->size      = size;
    divergence->num_bytes = size - start < CGS_REPORT_MAX_BYTES ?
                            size - start : CGS_REPORT_MAX_BYTES;
    memcpy(divergence->old_bytes, old + start, divergence->num_bytes);
    memcpy(divergence->new_bytes, now + start, divergence->num_bytes);
}

static void kernel_explain(const cgs_op_t *op, const cgs_call_t *call,
                           cgs_divergence_t *divergence)
{
    int which;

    if (memcmp(&op->kernel.shape, &call->kernel.shape,
               sizeof(op->kernel.shape)) != 0) {
        explain_shape(&op->kernel.shape, &call->kernel.shape, divergence);
        return;
    }
    which = different_attr(op, call);
    if (which >= 0) {
        divergence->what = "attribute";
        if (!divergence->is_brief) {
            divergence->old_text = format_number(op->kernel.attrs[which].id);
            divergence->new_text = format_number(call->kernel.attrs[which].id);
        }
        return;
    }
    which = different_argument(op, call);
    if (which >= 0) {
        explain_argument(op, call, which, divergence);
    }
}

const cgs_op_kind_t cgs_op_kernel = {
    .name     = "kernel",
    .admit    = kernel_admit,
    .compare  = kernel_compare,
    .take     = kernel_take,
    .recall   = kernel_recall,
    .hash     = kernel_hash,
    .issue    = kernel_issue,
    .describe = kernel_describe,
    .decorate = kernel_decorate,
    .uses     = kernel_uses,
    .explain  = kernel_explain,
};
