/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record per kernel handle, found by its value. A value can come to mean
 * another kernel once a module was unloaded, so each record carries the
 * number of unloads at which it was true.
 */
#include "function.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* else it would end the process */
#include <uthash.h>

#include "thread.h"

#define NUM_ATTRIBUTES 16

typedef struct {
    CUfunction         handle;
    uint64_t           generation; /* records of another one mean nothing */
    const cgs_layout_t *layout;    /* NULL: not asked yet */
    bool               recorded;
    CUfunction         twin;       /* another handle of the same kernel, or
                                      NULL */
    uint32_t           attributes_set; /* bit by attribute */
    int                value[NUM_ATTRIBUTES];
    CUdevice           device[NUM_ATTRIBUTES];
    UT_hash_handle     hh;
} function_t;

/* Kernels share layouts, and few are different: each is kept for good, so that
 * a thread may look at one while another thread unloads the module. */
typedef struct {
    cgs_layout_t   *layout;
    UT_hash_handle hh;
} known_layout_t;

/* Kept for good likewise: the driver's own string goes with its module. */
typedef struct {
    char           *text;
    UT_hash_handle hh;
} known_name_t;

static struct {
    cgs_lock_t     lock;
    function_t     *all;     /* uthash by handle */
    known_layout_t *layouts; /* uthash by the layout's bytes */
    known_name_t   *names;   /* uthash by text */
    uint64_t       generation;
} functions;

/* Under the lock. A record of an earlier generation is made blank. */
static function_t *find(CUfunction handle)
{
    function_t *function;

    HASH_FIND_PTR(functions.all, &handle, function);
    if ((function != NULL) && (function->generation != functions.generation)) {
        function->layout         = NULL;
        function->recorded       = false;
        function->twin           = NULL;
        function->attributes_set = 0;
        function->generation     = functions.generation;
    }
    return function;
}

static function_t *find_or_add(CUfunction handle)
{
    function_t *function = find(handle);

    if (function == NULL) {
        function = calloc(1, sizeof(*function));
        if (function == NULL) {
            return NULL;
        }
        function->handle     = handle;
        function->generation = functions.generation;
        HASH_ADD_PTR(functions.all, handle, function);
        if (function->hh.tbl == NULL) {
            free(function);
            return NULL;
        }
    }
    return function;
}

typedef CUresult (*param_info_t)(void *handle, size_t index, size_t *offset,
                                 size_t *size);

static CUresult ask_function(void *handle, size_t index, size_t *offset,
                             size_t *size)
{
    return CGS_REAL(cuFuncGetParamInfo)(handle, index, offset, size);
}

static CUresult ask_kernel(void *handle, size_t index, size_t *offset,
                           size_t *size)
{
    return CGS_REAL(cuKernelGetParamInfo)(handle, index, offset, size);
}

static bool ask_attribute(CUfunction handle, bool is_kernel,
                          CUfunction_attribute attribute, int *value)
{
    CUfunction function = handle;

    return (!is_kernel ||
            (CGS_REAL(cuKernelGetFunction)(&function, (CUkernel)handle) ==
             CUDA_SUCCESS)) &&
           (CGS_REAL(cuFuncGetAttribute)(value, attribute, function) ==
            CUDA_SUCCESS);
}

/* Whether the kernel was compiled for clusters, which have to fit into the
 * grid; where the driver does not tell, it may have been. */
static bool has_clusters(CUfunction handle, bool is_kernel)
{
    int width = 0;

    return !ask_attribute(handle, is_kernel,
                          CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &width) ||
           (width > 0);
}

cgs_function_limits_t cgs_function_limits(const cgs_layout_t *layout,
                                          const cgs_launch_shape_t *shape)
{
    const unsigned        *block  = shape->block;
    cgs_function_limits_t limits  = {.max_shared_bytes = shape->shared_bytes};
    unsigned              threads = block[0] * block[1] * block[2];
    int                   value   = 0;

    /* A kernel that was compiled for one block size has that as its limit;
     * whether it was is not told. */
    if (ask_attribute(shape->function, layout->is_kernel,
                      CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &value) &&
        (threads < (unsigned)value)) {
        limits.max_threads = (unsigned)value;
    }
    if (ask_attribute(shape->function, layout->is_kernel,
                      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                      &value) &&
        ((unsigned)value > limits.max_shared_bytes)) {
        limits.max_shared_bytes = (unsigned)value;
    }
    return limits;
}

/* The driver answers INVALID_VALUE past the last argument. */
static cgs_layout_t *ask_layout(CUfunction handle, const char **reason)
{
    param_info_t ask      = ask_function;
    size_t       capacity = 8;
    cgs_layout_t *layout, *grown;
    size_t       offset, size, end;
    CUresult     result;

    layout = calloc(1, sizeof(*layout) + capacity * sizeof(layout->param[0]));
    if (layout == NULL) {
        goto err_memory;
    }

    for (;;) {
        result = ask(handle, layout->num, &offset, &size);
        if ((result == CUDA_ERROR_INVALID_HANDLE) && (layout->num == 0) &&
            (ask == ask_function)) {
            ask               = ask_kernel;
            layout->is_kernel = true;
            continue;
        }
        if (result != CUDA_SUCCESS) {
            break;
        }
        if (layout->num == capacity) {
            capacity *= 2;
            grown     = realloc(layout, sizeof(*layout) +
                                capacity * sizeof(layout->param[0]));
            if (grown == NULL) {
                goto err_free;
            }
            layout = grown;
        }
        layout->param[layout->num].offset = offset;
        layout->param[layout->num].size   = size;
        end                               = offset + size;
        layout->total = end > layout->total ? end : layout->total;
        ++layout->num;
    }
    if (result != CUDA_ERROR_INVALID_VALUE) {
        *reason = "the driver does not tell a kernel's arguments";
        free(layout);
        return NULL;
    }
    layout->fixed_grid = has_clusters(handle, layout->is_kernel);
    return layout;

err_free:
    free(layout);
err_memory:
    *reason = "out of host memory";
    return NULL;
}

/* Under the lock. The layout that is kept of all that are equal to this one,
 * which is given up if it is not the first; NULL if memory ran out. */
static const cgs_layout_t *keep_layout(cgs_layout_t *layout)
{
    size_t         bytes = sizeof(*layout) +
                           layout->num * sizeof(layout->param[0]);
    known_layout_t *known;

    HASH_FIND(hh, functions.layouts, layout, bytes, known);
    if (known != NULL) {
        free(layout);
        return known->layout;
    }
    known = calloc(1, sizeof(*known));
    if (known != NULL) {
        known->layout = layout;
        HASH_ADD_KEYPTR(hh, functions.layouts, layout, bytes, known);
        if (known->hh.tbl != NULL) {
            return layout;
        }
    }
    free(known);
    free(layout);
    return NULL;
}

const cgs_layout_t *cgs_function_layout(CUfunction handle,
                                        const char **reason)
{
    const cgs_layout_t *layout = NULL;
    cgs_layout_t       *answer;
    function_t         *function;

    cgs_lock(&functions.lock);
    function = find(handle);
    if (function != NULL) {
        layout = function->layout;
    }
    cgs_unlock(&functions.lock);
    if (layout != NULL) {
        return layout;
    }

    answer = ask_layout(handle, reason);
    if (answer == NULL) {
        return NULL;
    }

    cgs_lock(&functions.lock);
    layout   = keep_layout(answer);
    function = layout != NULL ? find_or_add(handle) : NULL;
    if (function != NULL) {
        function->layout = layout;
    } else {
        layout  = NULL;
        *reason = "out of host memory";
    }
    cgs_unlock(&functions.lock);
    return layout;
}

static void mark_recorded(CUfunction handle)
{
    function_t *function;

    cgs_lock(&functions.lock);
    function = find_or_add(handle);
    if (function != NULL) {
        function->recorded = true;
    }
    cgs_unlock(&functions.lock);
}

/* Under both of its handles: attributes may be set through either. */
void cgs_function_recorded(CUfunction handle)
{
    const cgs_layout_t *layout = NULL;
    bool               known;
    function_t         *function;
    CUfunction         alias;

    cgs_lock(&functions.lock);
    function = find(handle);
    known    = (function != NULL) && function->recorded;
    layout   = function != NULL ? function->layout : NULL;
    cgs_unlock(&functions.lock);
    if (known) {
        return;
    }

    mark_recorded(handle);
    if ((layout != NULL) && layout->is_kernel &&
        (CGS_REAL(cuKernelGetFunction)(&alias, (CUkernel)handle) ==
         CUDA_SUCCESS)) {
        mark_recorded(alias);
    }
}

/* Under the lock. @return NULL without memory. */
static const char *keep_name(const char *text)
{
    known_name_t *name;

    HASH_FIND_STR(functions.names, text, name);
    if (name != NULL) {
        return name->text;
    }
    name = calloc(1, sizeof(*name));
    if (name == NULL) {
        return NULL;
    }
    name->text = strdup(text);
    if (name->text != NULL) {
        HASH_ADD_KEYPTR(hh, functions.names, name->text, strlen(name->text),
                        name);
        if (name->hh.tbl != NULL) {
            return name->text;
        }
    }
    free(name->text);
    free(name);
    return NULL;
}

const char *cgs_function_name(CUfunction handle)
{
    const char *name = NULL;

    if ((CGS_REAL(cuFuncGetName)(&name, handle) != CUDA_SUCCESS) &&
        (CGS_REAL(cuKernelGetName)(&name, (CUkernel)handle) !=
         CUDA_SUCCESS)) {
        return "a kernel";
    }
    if (name != NULL) {
        cgs_lock(&functions.lock);
        name = keep_name(name);
        cgs_unlock(&functions.lock);
    }
    return name != NULL ? name : "a kernel";
}

void cgs_function_link(CUfunction handle, CUfunction twin)
{
    function_t *function, *other;

    cgs_lock(&functions.lock);
    function = find_or_add(handle);
    other    = find_or_add(twin);
    if ((function != NULL) && (other != NULL)) {
        function->twin = twin;
        other->twin    = handle;
    }
    cgs_unlock(&functions.lock);
}

static bool is_recorded(CUfunction handle)
{
    function_t *function = find(handle);

    return (function != NULL) && function->recorded;
}

bool cgs_function_was_recorded(CUfunction handle)
{
    bool recorded;

    cgs_lock(&functions.lock);
    recorded = is_recorded(handle);
    cgs_unlock(&functions.lock);
    return recorded;
}

cgs_attribute_change_t cgs_function_attribute(CUfunction handle,
                                              CUfunction alias,
                                              CUfunction_attribute attribute,
                                              int value, CUdevice device)
{
    cgs_attribute_change_t change;
    function_t             *function;

    cgs_lock(&functions.lock);
    function = find(handle);
    if ((function != NULL) && ((unsigned)attribute < NUM_ATTRIBUTES) &&
        (function->attributes_set & (1u << attribute)) &&
        (function->value[attribute] == value) &&
        (function->device[attribute] == device)) {
        change = CGS_ATTRIBUTE_SAME;
    } else if (is_recorded(handle) ||
               ((alias != NULL) && is_recorded(alias))) {
        change = CGS_ATTRIBUTE_IN_USE;
    } else {
        change = CGS_ATTRIBUTE_UNUSED;
    }
    cgs_unlock(&functions.lock);
    return change;
}

void cgs_function_set_attribute(CUfunction handle,
                                CUfunction_attribute attribute, int value,
                                CUdevice device)
{
    function_t *function, *twin;

    if ((unsigned)attribute >= NUM_ATTRIBUTES) {
        return;
    }
    cgs_lock(&functions.lock);
    function = find_or_add(handle);
    if (function != NULL) {
        function->attributes_set   |= 1u << attribute;
        function->value[attribute]  = value;
        function->device[attribute] = device;
    }
    twin = (function != NULL) && (function->twin != NULL) ?
           find(function->twin) : NULL;
    if (twin != NULL) {
        /* What was set through the other handle holds no more. */
        twin->attributes_set &= ~(1u << attribute);
    }
    cgs_unlock(&functions.lock);
}

void cgs_function_forget_all(void)
{
    cgs_lock(&functions.lock);
    ++functions.generation;
    cgs_unlock(&functions.lock);
}
