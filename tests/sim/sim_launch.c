/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel launches: what a launch may look like, and its arguments.
 */
#include "sim.h"

#include <string.h>

/* ---------------------------------------------------------- attributes */

bool sim_attr_is_of_node(CUlaunchAttributeID id)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    default:
        return false;
    }
}

static bool sim_attrs_has(const sim_attrs_t *attrs, CUlaunchAttributeID id)
{
    return (attrs != NULL) && (attrs->mask & (1u << id));
}

static CUresult sim_cluster_check(const sim_op_kernel_t *kernel,
                                  const CUlaunchAttributeValue *value)
{
    unsigned x   = value->clusterDim.x;
    unsigned y   = value->clusterDim.y;
    unsigned z   = value->clusterDim.z;
    unsigned max = kernel->func->attrs[
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] ? 16 : 8;

    if ((x == 0) || (y == 0) || (z == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if ((size_t)x * y * z > max) {
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    return ((kernel->grid[0] % x != 0) || (kernel->grid[1] % y != 0) ||
            (kernel->grid[2] % z != 0)) ? CUDA_ERROR_INVALID_VALUE :
                                          CUDA_SUCCESS;
}

static CUresult sim_cooperative_check(const sim_op_kernel_t *kernel)
{
    size_t threads = (size_t)kernel->block[0] * kernel->block[1] *
                     kernel->block[2];
    size_t blocks  = (size_t)kernel->grid[0] * kernel->grid[1] *
                     kernel->grid[2];
    size_t fit     = 2048 / ((threads + 31) / 32 * 32);

    fit = (fit > 32) ? 32 : fit;
    return (blocks > fit * SIM_NUM_SMS) ?
           CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

CUresult sim_kernel_check_attrs(const sim_op_kernel_t *kernel,
                                const sim_attrs_t *attrs)
{
    CUresult status = CUDA_SUCCESS;

    if (sim_attrs_has(attrs, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)) {
        status = sim_cluster_check(
            kernel, &attrs->value[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION]);
    }
    if ((status == CUDA_SUCCESS) &&
        sim_attrs_has(attrs, CU_LAUNCH_ATTRIBUTE_COOPERATIVE) &&
        attrs->value[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative) {
        status = sim_cooperative_check(kernel);
    }
    return status;
}

/* ---------------------------------------------------------- arguments */

static CUresult sim_extra_read(void **extra, size_t size, const void **buffer)
{
    size_t given = 0;
    size_t i;

    *buffer = NULL;
    for (i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            *buffer = extra[i + 1];
        } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            given = *(const size_t *)extra[i + 1];
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return (((*buffer == NULL) && (size > 0)) || (given < size)) ?
           CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult sim_args_take(sim_op_kernel_t *kernel, void **params,
                              void **extra)
{
    const sim_entry_t *entry = kernel->func->entry;
    const void        *buffer;
    CUresult           status;
    size_t             i;

    kernel->args   = sim_alloc(entry->args_size);
    kernel->params = sim_alloc(entry->num_params * sizeof(void *));
    for (i = 0; i < entry->num_params; ++i) {
        kernel->params[i] = kernel->args + entry->offsets[i];
    }

    if ((params != NULL) && (extra != NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (extra != NULL) {
        status = sim_extra_read(extra, entry->args_size, &buffer);
        if ((status == CUDA_SUCCESS) && (entry->args_size > 0)) {
            memcpy(kernel->args, buffer, entry->args_size);
        }
        return status;
    } else if ((params == NULL) && (entry->num_params > 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < entry->num_params; ++i) {
        if (params[i] == NULL) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        memcpy(kernel->params[i], params[i], entry->sizes[i]);
    }
    return CUDA_SUCCESS;
}

static CUresult sim_shape_check(const sim_op_kernel_t *kernel)
{
    const unsigned *grid = kernel->grid, *block = kernel->block;
    size_t          threads = (size_t)block[0] * block[1] * block[2];

    if ((grid[0] == 0) || (grid[1] == 0) || (grid[2] == 0) ||
        (threads == 0) || (threads > kernel->func->entry->max_threads) ||
        (block[0] > 1024) || (block[1] > 1024) || (block[2] > 64) ||
        (grid[0] > 0x7fffffffu) || (grid[1] > 65535) || (grid[2] > 65535)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return (kernel->shared > (unsigned)kernel->func->attrs[
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES]) ?
           CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* Which function is meant. Launches take a kernel for a function; nodes want
 * each in its own member. */
static CUresult sim_kernel_func(const CUDA_KERNEL_NODE_PARAMS_v3 *params,
                                sim_ctx_t *ctx, bool is_node,
                                sim_func_t **func)
{
    CUresult status;

    if (params->func == NULL) {
        return (!is_node || (params->kern == NULL)) ?
               CUDA_ERROR_INVALID_VALUE :
               sim_func_of_kernel(params->kern, ctx, func);
    } else if (is_node && sim_kernel_exists(params->func)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    status = sim_func_find(params->func, !is_node, ctx, func);
    if ((status == CUDA_SUCCESS) && !is_node &&
        ((*func)->ctx_uid != ctx->uid)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return status;
}

CUresult sim_kernel_op(const CUDA_KERNEL_NODE_PARAMS_v3 *params,
                       sim_ctx_t *ctx, bool is_node,
                       const sim_attrs_t *attrs, sim_op_t **op_p)
{
    sim_func_t      *func;
    sim_op_t        *op;
    sim_op_kernel_t *kernel;
    CUresult         status;

    status = sim_kernel_func(params, ctx, is_node, &func);
    if (status != CUDA_SUCCESS) {
        return status;
    }

    op          = sim_op_new(SIM_OP_KERNEL, NULL);
    op->ctx_uid = func->ctx_uid;
    op->ctx     = func->ctx;
    kernel      = &op->kernel;
    ++func->refs;
    kernel->func        = func;
    kernel->func_handle = params->func;
    kernel->kern_handle = (params->func == NULL) ? params->kern : NULL;
    memcpy(kernel->grid, &params->gridDimX, sizeof(kernel->grid));
    memcpy(kernel->block, &params->blockDimX, sizeof(kernel->block));
    kernel->shared = params->sharedMemBytes;

    status = sim_shape_check(kernel);
    if (status == CUDA_SUCCESS) {
        status = sim_kernel_check_attrs(kernel, attrs);
    }
    if (status == CUDA_SUCCESS) {
        status = sim_args_take(kernel, params->kernelParams, params->extra);
    }
    if ((status == CUDA_SUCCESS) && (func->entry->body == NULL)) {
        status = CUDA_ERROR_NOT_FOUND;
    }
    if (status != CUDA_SUCCESS) {
        sim_op_release(op);
        return status;
    }
    if ((attrs != NULL) && (attrs->mask != 0)) {
        kernel->attrs = sim_copy_of(attrs, sizeof(*attrs));
    }
    *op_p = op;
    return CUDA_SUCCESS;
}

/* ---------------------------------------------------------- launching */

/* What a launch asks for beside its node attributes. */
typedef struct {
    sim_attrs_t  attrs;
    sim_event_t *events[2]; /* to record with it */
    unsigned     num_events;
} sim_launch_t;

static CUresult sim_launch_event(sim_launch_t *launch, CUevent handle)
{
    sim_event_t *event = sim_event_find(handle);

    if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (!(event->flags & CU_EVENT_DISABLE_TIMING) ||
               (launch->num_events == SIM_ARRAY_SIZE(launch->events))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    launch->events[launch->num_events++] = event;
    return CUDA_SUCCESS;
}

static CUresult sim_launch_attr(sim_launch_t *launch,
                                const CUlaunchAttribute *attr,
                                const sim_stream_t *stream)
{
    switch (attr->id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        /* Permits an overlap and demands none. */
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        return (stream->capture != NULL) ? CUDA_ERROR_NOT_SUPPORTED :
               sim_launch_event(launch, attr->value.programmaticEvent.event);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return (stream->capture != NULL) ? CUDA_ERROR_NOT_SUPPORTED :
               sim_launch_event(launch,
                                attr->value.launchCompletionEvent.event);
    default:
        if (!sim_attr_is_of_node(attr->id)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        launch->attrs.value[attr->id] = attr->value;
        launch->attrs.mask           |= 1u << attr->id;
        return CUDA_SUCCESS;
    }
}

static CUresult sim_launch(const CUlaunchConfig *config, CUfunction func,
                           void **params, void **extra, int twin)
{
    CUDA_KERNEL_NODE_PARAMS_v3 node   = {.func = func};
    sim_launch_t               launch = {.num_events = 0};
    sim_stream_t              *stream;
    sim_task_t                *task;
    sim_op_t                  *op;
    CUresult                   status;
    unsigned                   i;

    if ((config == NULL) ||
        ((config->numAttrs > 0) && (config->attrs == NULL))) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (func == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    status = sim_stream_find(config->hStream, twin, &stream);
    for (i = 0; (status == CUDA_SUCCESS) && (i < config->numAttrs); ++i) {
        status = sim_launch_attr(&launch, &config->attrs[i], stream);
    }
    if (status != CUDA_SUCCESS) {
        return status;
    }

    memcpy(&node.gridDimX, &config->gridDimX, 3 * sizeof(unsigned));
    memcpy(&node.blockDimX, &config->blockDimX, 3 * sizeof(unsigned));
    node.sharedMemBytes = config->sharedMemBytes;
    node.kernelParams   = params;
    node.extra          = extra;
    status = sim_kernel_op(&node, stream->ctx, false, &launch.attrs, &op);
    if (status == CUDA_SUCCESS) {
        status = sim_stream_submit(stream, op, &task);
    }
    if ((status == CUDA_SUCCESS) && (task != NULL)) {
        for (i = 0; i < launch.num_events; ++i) {
            sim_event_record(launch.events[i], task);
        }
        sim_task_unref(task);
    }
    return status;
}

SIM_ENTRY_PTSZ(cuLaunchKernelEx,
               (const CUlaunchConfig *config, CUfunction f,
                void **kernelParams, void **extra), SIM_CTX,
               sim_launch(config, f, kernelParams, extra, twin))

typedef CUresult (*sim_launch_ex_t)(const CUlaunchConfig *, CUfunction,
                                    void **, void **);

/* The driver's own way from one launch function to the other: a call if it
 * is to look itself up. */
static CUresult sim_launch_via(sim_site_t *site, const CUlaunchConfig *config,
                               CUfunction func, void **params, void **extra,
                               int twin)
{
    CUresult        status = sim_enter(site, SIM_CTX);
    sim_launch_ex_t ex     = twin ? cuLaunchKernelEx_ptsz : cuLaunchKernelEx;
    const char     *name   = twin ? "cuLaunchKernelEx_ptsz" :
                                    "cuLaunchKernelEx";

    if (status != CUDA_SUCCESS) {
        return status;
    } else if (!sim_config()->self_dlsym) {
        return sim_leave(sim_launch(config, func, params, extra, twin));
    }
    sim_leave(CUDA_SUCCESS);
    ex = (sim_launch_ex_t)sim_self(name, (void *)ex);
    return ex(config, func, params, extra);
}

#define SIM_LAUNCH_CONFIG(_attrs, _num) \
    { \
        .gridDimX = gridDimX, .gridDimY = gridDimY, .gridDimZ = gridDimZ, \
        .blockDimX = blockDimX, .blockDimY = blockDimY, \
        .blockDimZ = blockDimZ, .sharedMemBytes = sharedMemBytes, \
        .hStream = hStream, .attrs = _attrs, .numAttrs = _num \
    }

#define SIM_LAUNCH_ENTRY(_name, _twin) \
    SIM_API CUresult CUDAAPI _name( \
        CUfunction f, unsigned int gridDimX, unsigned int gridDimY, \
        unsigned int gridDimZ, unsigned int blockDimX, \
        unsigned int blockDimY, unsigned int blockDimZ, \
        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, \
        void **extra) \
    { \
        static sim_site_t site   = {.name = #_name}; \
        CUlaunchConfig    config = SIM_LAUNCH_CONFIG(NULL, 0); \
        \
        return sim_launch_via(&site, &config, f, kernelParams, extra, \
                              _twin); \
    }

SIM_LAUNCH_ENTRY(cuLaunchKernel, 0)
SIM_LAUNCH_ENTRY(cuLaunchKernel_ptsz, 1)

#define SIM_COOPERATIVE_ENTRY(_name, _twin) \
    SIM_API CUresult CUDAAPI _name( \
        CUfunction f, unsigned int gridDimX, unsigned int gridDimY, \
        unsigned int gridDimZ, unsigned int blockDimX, \
        unsigned int blockDimY, unsigned int blockDimZ, \
        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams) \
    { \
        static sim_site_t site   = {.name = #_name}; \
        CUlaunchAttribute attr   = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, \
                                    .value = {.cooperative = 1}}; \
        CUlaunchConfig    config = SIM_LAUNCH_CONFIG(&attr, 1); \
        \
        return sim_launch_via(&site, &config, f, kernelParams, NULL, \
                              _twin); \
    }

SIM_COOPERATIVE_ENTRY(cuLaunchCooperativeKernel, 0)
SIM_COOPERATIVE_ENTRY(cuLaunchCooperativeKernel_ptsz, 1)
