/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and libraries of the simulated driver, their functions and kernels.
 *
 * A function lives in the module of one context. A kernel lives in a library;
 * the library is loaded as a module into each context that uses it.
 */
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    CUmodule      handle;
    uint64_t      ctx_uid;
    CUcontext     ctx;
    CUlibrary     library; /* loaded for one, or NULL */
    sim_image_t  *image;
    sim_func_t  **funcs; /* by entry, made when asked for */
    CUdeviceptr  *vars;
} sim_module_t;

typedef struct sim_kernel {
    CUkernel     handle;
    CUlibrary    library;
    sim_entry_t *entry;
    int          attrs[SIM_MAX_DEVICES][CU_FUNC_ATTRIBUTE_MAX];
} sim_kernel_t;

typedef struct {
    CUlibrary      handle;
    sim_image_t   *image;
    sim_kernel_t **kernels; /* by entry, made when asked for */
} sim_library_t;

/* Fixed answers; those not here are kept per function. */
static int sim_attr_default(CUfunction_attribute id)
{
    switch (id) {
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        return 32;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        return 75;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        return 90;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return SIM_SHARED_DEFAULT;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return -1;
    default:
        return 0;
    }
}

static void sim_attrs_init(int *attrs, const sim_entry_t *entry)
{
    int i;

    for (i = 0; i < CU_FUNC_ATTRIBUTE_MAX; ++i) {
        attrs[i] = sim_attr_default((CUfunction_attribute)i);
    }
    attrs[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = (int)entry->max_threads;
}

/* ---------------------------------------------------------- functions */

void sim_func_unref(sim_func_t *func)
{
    if (--func->refs == 0) {
        sim_image_unref(func->image);
        free(func);
    }
}

static sim_func_t *sim_func_get(sim_module_t *module, size_t index)
{
    sim_func_t *func = module->funcs[index];

    if (func == NULL) {
        func          = sim_alloc(sizeof(*func));
        func->refs    = 1;
        func->module  = module->handle;
        func->ctx_uid = module->ctx_uid;
        func->ctx     = module->ctx;
        func->image   = module->image;
        func->entry   = &module->image->entries[index];
        func->handle  = sim_handle_new(SIM_KIND_FUNC, func);
        ++func->image->refs;
        sim_attrs_init(func->attrs, func->entry);
        module->funcs[index] = func;
    }
    return func;
}

static bool sim_entry_find(const sim_image_t *image, const char *name,
                           size_t *index)
{
    size_t i;

    for (i = 0; i < image->num_entries; ++i) {
        if (strcmp(image->entries[i].name, name) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------- modules */

static CUresult sim_module_vars(sim_module_t *module, sim_ctx_t *ctx)
{
    size_t   i;
    CUresult status = CUDA_SUCCESS;

    for (i = 0; (status == CUDA_SUCCESS) && (i < module->image->num_vars);
         ++i) {
        const sim_var_t *var = &module->image->vars[i];

        status = sim_mem_global(ctx, var->size, var->place,
                                &module->vars[i]);
        if (status == CUDA_SUCCESS) {
            sim_mem_open();
            memcpy((void *)(uintptr_t)module->vars[i], var->initial,
                   var->size);
            sim_mem_close();
        }
    }
    return status;
}

static void sim_module_free(sim_module_t *module)
{
    size_t i;

    for (i = 0; i < module->image->num_entries; ++i) {
        sim_func_t *func = module->funcs[i];

        if (func != NULL) {
            func->dead = true;
            sim_handle_free(SIM_KIND_FUNC, func->handle);
            sim_func_unref(func);
        }
    }
    for (i = 0; i < module->image->num_vars; ++i) {
        sim_mem_global_free(module->vars[i]);
    }
    sim_handle_free(SIM_KIND_MODULE, module->handle);
    sim_image_unref(module->image);
    free(module->funcs);
    free(module->vars);
    free(module);
}

/* Takes over the reference to image. */
static CUresult sim_module_make(sim_ctx_t *ctx, sim_image_t *image,
                                CUlibrary library, sim_module_t **module_p)
{
    sim_module_t *module = sim_alloc(sizeof(*module));
    CUresult      status;
    size_t        i;

    for (i = 0; i < image->num_entries; ++i) {
        image->entries[i].counter =
            sim_count_kernel_get(image->entries[i].name);
    }
    module->ctx_uid = ctx->uid;
    module->ctx     = ctx->handle;
    module->library = library;
    module->image   = image;
    module->funcs   = sim_alloc(image->num_entries * sizeof(sim_func_t *));
    module->vars    = sim_alloc(image->num_vars * sizeof(CUdeviceptr));
    module->handle  = sim_handle_new(SIM_KIND_MODULE, module);
    status          = sim_module_vars(module, ctx);
    if (status != CUDA_SUCCESS) {
        sim_module_free(module);
        return status;
    }
    *module_p = module;
    return CUDA_SUCCESS;
}

void sim_modules_destroy(sim_ctx_t *ctx)
{
    size_t i;

    for (i = 0; i < sim_handle_slots(SIM_KIND_MODULE); ++i) {
        sim_module_t *module = sim_handle_at(SIM_KIND_MODULE, i);

        if ((module != NULL) && (module->ctx_uid == ctx->uid)) {
            sim_module_free(module);
        }
    }
}

static CUresult sim_module_load(CUmodule *handle, const void *text)
{
    sim_ctx_t    *ctx;
    sim_module_t *module;
    sim_image_t  *image;
    CUresult      status;

    if ((handle == NULL) || (text == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* dlsym takes the loader's lock; a constructor that calls us holds it. */
    sim_lock_drop();
    status = sim_ptx_parse(text, &image);
    sim_lock_take();
    if (status != CUDA_SUCCESS) {
        return status;
    }
    status = sim_ctx_current(&ctx);
    if (status != CUDA_SUCCESS) {
        sim_image_unref(image);
        return status;
    }
    status = sim_module_make(ctx, image, NULL, &module);
    if (status == CUDA_SUCCESS) {
        *handle = module->handle;
    }
    return status;
}
SIM_ENTRY(cuModuleLoadData, (CUmodule *module, const void *image),
          SIM_CTX | SIM_UNSAFE, sim_module_load(module, image))
SIM_ENTRY(cuModuleLoadDataEx,
          (CUmodule *module, const void *image, unsigned int numOptions,
           CUjit_option *options, void **optionValues), SIM_CTX | SIM_UNSAFE,
          ((numOptions != 0) &&
           ((options == NULL) || (optionValues == NULL))) ?
          CUDA_ERROR_INVALID_VALUE : sim_module_load(module, image))

static char *sim_file_read(const char *name)
{
    FILE  *file = fopen(name, "rb");
    char  *text = NULL;
    size_t num = 0, max = 0;
    int    c;

    if (file == NULL) {
        return NULL;
    }
    do {
        c           = fgetc(file);
        text        = sim_grow(text, num, &max, 1);
        text[num++] = (c == EOF) ? '\0' : (char)c;
    } while (c != EOF);
    fclose(file);
    return text;
}

static CUresult sim_module_load_file(CUmodule *handle, const char *name)
{
    char    *text = sim_file_read(name);
    CUresult status;

    if (text == NULL) {
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    status = sim_module_load(handle, text);
    free(text);
    return status;
}
SIM_ENTRY(cuModuleLoad, (CUmodule *module, const char *fname),
          SIM_CTX | SIM_UNSAFE, sim_module_load_file(module, fname))

static CUresult sim_module_unload(CUmodule handle)
{
    sim_module_t *module = sim_handle_get(SIM_KIND_MODULE, handle);

    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (module->library != NULL) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    sim_sched_wait(module->ctx_uid);
    if (sim_handle_get(SIM_KIND_MODULE, handle) != module) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_module_free(module);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuModuleUnload, (CUmodule hmod), SIM_UNSAFE,
          sim_module_unload(hmod))

static CUresult sim_module_function(CUfunction *func, CUmodule handle,
                                    const char *name)
{
    sim_module_t *module = sim_handle_get(SIM_KIND_MODULE, handle);
    size_t        index;

    if ((func == NULL) || (name == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (!sim_entry_find(module->image, name, &index)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    *func = sim_func_get(module, index)->handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuModuleGetFunction,
          (CUfunction *hfunc, CUmodule hmod, const char *name), SIM_CTX,
          sim_module_function(hfunc, hmod, name))

static CUresult sim_module_functions(unsigned *count, CUfunction *funcs,
                                     unsigned max, CUmodule handle)
{
    sim_module_t *module = sim_handle_get(SIM_KIND_MODULE, handle);
    size_t        i;

    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (count != NULL) {
        *count = (unsigned)module->image->num_entries;
    }
    for (i = 0; (i < max) && (i < module->image->num_entries); ++i) {
        funcs[i] = sim_func_get(module, i)->handle;
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuModuleGetFunctionCount, (unsigned int *count, CUmodule mod),
          SIM_CTX, sim_module_functions(count, NULL, 0, mod))
SIM_ENTRY(cuModuleEnumerateFunctions,
          (CUfunction *functions, unsigned int numFunctions, CUmodule mod),
          SIM_CTX, sim_module_functions(NULL, functions, numFunctions, mod))

static CUresult sim_module_global(CUdeviceptr *address, size_t *size,
                                  const sim_module_t *module,
                                  const char *name)
{
    size_t i;

    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < module->image->num_vars; ++i) {
        if (strcmp(module->image->vars[i].name, name) == 0) {
            if (address != NULL) {
                *address = module->vars[i];
            }
            if (size != NULL) {
                *size = module->image->vars[i].size;
            }
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}
SIM_ENTRY(cuModuleGetGlobal_v2,
          (CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name),
          SIM_CTX, sim_module_global(dptr, bytes,
                                     sim_handle_get(SIM_KIND_MODULE, hmod),
                                     name))

static CUresult sim_module_global_v1(CUdeviceptr_v1 *address, unsigned *size,
                                     CUmodule handle, const char *name)
{
    CUdeviceptr wide_address;
    size_t      wide_size;
    CUresult    status;

    status = sim_module_global(&wide_address, &wide_size,
                               sim_handle_get(SIM_KIND_MODULE, handle), name);
    if (status != CUDA_SUCCESS) {
        return status;
    } else if (wide_address > UINT32_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = (CUdeviceptr_v1)wide_address;
    *size    = (unsigned)wide_size;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuModuleGetGlobal,
          (CUdeviceptr_v1 *dptr, unsigned int *bytes, CUmodule hmod,
           const char *name), SIM_CTX,
          sim_module_global_v1(dptr, bytes, hmod, name))

static CUresult sim_module_loading_mode(CUmoduleLoadingMode *mode)
{
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuModuleGetLoadingMode, (CUmoduleLoadingMode *mode), 0,
          sim_module_loading_mode(mode))

/* ---------------------------------------------------------- libraries */

static CUresult sim_library_load(CUlibrary *handle, const void *text)
{
    sim_library_t *library;
    sim_image_t   *image;
    CUresult       status;

    if ((handle == NULL) || (text == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock_drop();
    status = sim_ptx_parse(text, &image);
    sim_lock_take();
    if (status != CUDA_SUCCESS) {
        return status;
    }
    library          = sim_alloc(sizeof(*library));
    library->image   = image;
    library->kernels = sim_alloc(image->num_entries * sizeof(sim_kernel_t *));
    library->handle  = sim_handle_new(SIM_KIND_LIBRARY, library);
    *handle          = library->handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuLibraryLoadData,
          (CUlibrary *library, const void *code, CUjit_option *jitOptions,
           void **jitOptionsValues, unsigned int numJitOptions,
           CUlibraryOption *libraryOptions, void **libraryOptionValues,
           unsigned int numLibraryOptions), SIM_UNSAFE,
          ((numJitOptions != 0) && ((jitOptions == NULL) ||
                                    (jitOptionsValues == NULL))) ||
          ((numLibraryOptions != 0) && ((libraryOptions == NULL) ||
                                        (libraryOptionValues == NULL))) ?
          CUDA_ERROR_INVALID_VALUE : sim_library_load(library, code))

static CUresult sim_library_unload(CUlibrary handle)
{
    sim_library_t *library = sim_handle_get(SIM_KIND_LIBRARY, handle);
    size_t         i;

    if (library == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_sched_wait(0);
    if (sim_handle_get(SIM_KIND_LIBRARY, handle) != library) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (i = 0; i < sim_handle_slots(SIM_KIND_MODULE); ++i) {
        sim_module_t *module = sim_handle_at(SIM_KIND_MODULE, i);

        if ((module != NULL) && (module->library == handle)) {
            sim_module_free(module);
        }
    }
    for (i = 0; i < library->image->num_entries; ++i) {
        if (library->kernels[i] != NULL) {
            sim_handle_free(SIM_KIND_KERNEL, library->kernels[i]->handle);
            free(library->kernels[i]);
        }
    }
    sim_handle_free(SIM_KIND_LIBRARY, handle);
    sim_image_unref(library->image);
    free(library->kernels);
    free(library);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuLibraryUnload, (CUlibrary library), SIM_UNSAFE,
          sim_library_unload(library))

/* The module that a library is in a context; loaded when first needed. */
static CUresult sim_library_module(CUlibrary handle, sim_ctx_t *ctx,
                                   sim_module_t **module_p)
{
    sim_library_t *library = sim_handle_get(SIM_KIND_LIBRARY, handle);
    size_t         i;

    if (library == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (i = 0; i < sim_handle_slots(SIM_KIND_MODULE); ++i) {
        sim_module_t *module = sim_handle_at(SIM_KIND_MODULE, i);

        if ((module != NULL) && (module->library == handle) &&
            (module->ctx_uid == ctx->uid)) {
            *module_p = module;
            return CUDA_SUCCESS;
        }
    }
    ++library->image->refs;
    return sim_module_make(ctx, library->image, handle, module_p);
}

static sim_kernel_t *sim_kernel_get(sim_library_t *library, size_t index)
{
    sim_kernel_t *kernel = library->kernels[index];
    int           device;

    if (kernel == NULL) {
        kernel          = sim_alloc(sizeof(*kernel));
        kernel->library = library->handle;
        kernel->entry   = &library->image->entries[index];
        kernel->handle  = sim_handle_new(SIM_KIND_KERNEL, kernel);
        for (device = 0; device < SIM_MAX_DEVICES; ++device) {
            sim_attrs_init(kernel->attrs[device], kernel->entry);
        }
        library->kernels[index] = kernel;
    }
    return kernel;
}

static CUresult sim_library_kernel(CUkernel *kernel, CUlibrary handle,
                                   const char *name)
{
    sim_library_t *library = sim_handle_get(SIM_KIND_LIBRARY, handle);
    size_t         index;

    if ((kernel == NULL) || (name == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (library == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (!sim_entry_find(library->image, name, &index)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    *kernel = sim_kernel_get(library, index)->handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuLibraryGetKernel,
          (CUkernel *pKernel, CUlibrary library, const char *name), 0,
          sim_library_kernel(pKernel, library, name))

static CUresult sim_library_kernels(unsigned *count, CUkernel *kernels,
                                    unsigned max, CUlibrary handle)
{
    sim_library_t *library = sim_handle_get(SIM_KIND_LIBRARY, handle);
    size_t         i;

    if (library == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (count != NULL) {
        *count = (unsigned)library->image->num_entries;
    }
    for (i = 0; (i < max) && (i < library->image->num_entries); ++i) {
        kernels[i] = sim_kernel_get(library, i)->handle;
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuLibraryGetKernelCount, (unsigned int *count, CUlibrary lib), 0,
          sim_library_kernels(count, NULL, 0, lib))
SIM_ENTRY(cuLibraryEnumerateKernels,
          (CUkernel *kernels, unsigned int numKernels, CUlibrary lib), 0,
          sim_library_kernels(NULL, kernels, numKernels, lib))

static CUresult sim_library_as_module(CUlibrary handle, sim_module_t **module)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_current(&ctx);

    return (status != CUDA_SUCCESS) ? status :
           sim_library_module(handle, ctx, module);
}

static CUresult sim_library_get_module(CUmodule *handle, CUlibrary library)
{
    sim_module_t *module;
    CUresult      status = sim_library_as_module(library, &module);

    if (status == CUDA_SUCCESS) {
        *handle = module->handle;
    }
    return status;
}
SIM_ENTRY(cuLibraryGetModule, (CUmodule *pMod, CUlibrary library), SIM_CTX,
          sim_library_get_module(pMod, library))

static CUresult sim_library_global(CUdeviceptr *address, size_t *size,
                                   CUlibrary library, const char *name)
{
    sim_module_t *module;
    CUresult      status = sim_library_as_module(library, &module);

    return (status != CUDA_SUCCESS) ? status :
           sim_module_global(address, size, module, name);
}
SIM_ENTRY(cuLibraryGetGlobal,
          (CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
           const char *name), SIM_CTX,
          sim_library_global(dptr, bytes, library, name))

/* ---------------------------------------------------------- kernels */

bool sim_kernel_exists(const void *handle)
{
    return sim_handle_get(SIM_KIND_KERNEL, handle) != NULL;
}

CUresult sim_func_of_kernel(CUkernel handle, sim_ctx_t *ctx,
                            sim_func_t **func_p)
{
    sim_kernel_t *kernel = sim_handle_get(SIM_KIND_KERNEL, handle);
    sim_module_t *module;
    sim_func_t   *func;
    CUresult      status;

    if (kernel == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    status = sim_library_module(kernel->library, ctx, &module);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    func = module->funcs[kernel->entry - module->image->entries];
    if (func == NULL) {
        func = sim_func_get(module, (size_t)(kernel->entry -
                                             module->image->entries));
        memcpy(func->attrs, kernel->attrs[ctx->device], sizeof(func->attrs));
    }
    *func_p = func;
    return CUDA_SUCCESS;
}

CUresult sim_func_find(CUfunction handle, bool any_kind, sim_ctx_t *ctx,
                       sim_func_t **func_p)
{
    sim_func_t *func = sim_handle_get(SIM_KIND_FUNC, handle);

    if (func != NULL) {
        *func_p = func;
        return CUDA_SUCCESS;
    }
    return any_kind ? sim_func_of_kernel((CUkernel)handle, ctx, func_p) :
                      CUDA_ERROR_INVALID_HANDLE;
}

static CUresult sim_kernel_function(CUfunction *handle, CUkernel kernel)
{
    sim_ctx_t  *ctx;
    sim_func_t *func;
    CUresult    status = sim_ctx_current(&ctx);

    if (status == CUDA_SUCCESS) {
        status = sim_func_of_kernel(kernel, ctx, &func);
    }
    if (status == CUDA_SUCCESS) {
        *handle = func->handle;
    }
    return status;
}
SIM_ENTRY(cuKernelGetFunction, (CUfunction *pFunc, CUkernel kernel), SIM_CTX,
          sim_kernel_function(pFunc, kernel))

static CUresult sim_kernel_library(CUlibrary *library, CUkernel handle)
{
    sim_kernel_t *kernel = sim_handle_get(SIM_KIND_KERNEL, handle);

    if (kernel == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *library = kernel->library;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuKernelGetLibrary, (CUlibrary *pLib, CUkernel kernel), 0,
          sim_kernel_library(pLib, kernel))

static CUresult sim_attr_check_set(CUfunction_attribute id, int value)
{
    switch (id) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return ((value < 0) || (value > (int)SIM_SHARED_MAX)) ?
               CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return ((value < -1) || (value > 100)) ? CUDA_ERROR_INVALID_VALUE :
                                                 CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult sim_kernel_attr(int *get, CUfunction_attribute id, int set,
                                CUkernel handle, CUdevice device)
{
    sim_kernel_t *kernel = sim_handle_get(SIM_KIND_KERNEL, handle);
    CUresult      status = sim_device_check(device);
    size_t        i;

    if (kernel == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (status != CUDA_SUCCESS) {
        return status;
    } else if ((unsigned)id >= CU_FUNC_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (get != NULL) {
        *get = kernel->attrs[device][id];
        return CUDA_SUCCESS;
    }

    status = sim_attr_check_set(id, set);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    kernel->attrs[device][id] = set;
    for (i = 0; i < sim_handle_slots(SIM_KIND_FUNC); ++i) {
        sim_func_t *func = sim_handle_at(SIM_KIND_FUNC, i);
        sim_ctx_t  *ctx;

        if ((func == NULL) || (func->entry != kernel->entry)) {
            continue;
        }
        ctx = sim_ctx_by_uid(func->ctx_uid);
        if ((ctx != NULL) && (ctx->device == device)) {
            func->attrs[id] = set;
        }
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuKernelGetAttribute,
          (int *pi, CUfunction_attribute attrib, CUkernel kernel,
           CUdevice dev), 0, (pi == NULL) ? CUDA_ERROR_INVALID_VALUE :
          sim_kernel_attr(pi, attrib, 0, kernel, dev))
SIM_ENTRY(cuKernelSetAttribute,
          (CUfunction_attribute attrib, int val, CUkernel kernel,
           CUdevice dev), 0,
          sim_kernel_attr(NULL, attrib, val, kernel, dev))

static CUresult sim_kernel_cache(CUkernel handle, CUdevice device)
{
    return sim_kernel_exists(handle) ? sim_device_check(device) :
                                       CUDA_ERROR_INVALID_HANDLE;
}
SIM_ENTRY(cuKernelSetCacheConfig,
          (CUkernel kernel, CUfunc_cache config, CUdevice dev), 0,
          ((void)config, sim_kernel_cache(kernel, dev)))

static CUresult sim_entry_param(const sim_entry_t *entry, size_t index,
                                size_t *offset, size_t *size)
{
    if ((offset == NULL) || (index >= entry->num_params)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *offset = entry->offsets[index];
    if (size != NULL) {
        *size = entry->sizes[index];
    }
    return CUDA_SUCCESS;
}

static CUresult sim_kernel_about(CUkernel handle, const char **name,
                                 size_t index, size_t *offset, size_t *size)
{
    sim_kernel_t *kernel = sim_handle_get(SIM_KIND_KERNEL, handle);

    if (kernel == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (name != NULL) {
        *name = kernel->entry->name;
        return CUDA_SUCCESS;
    }
    return sim_entry_param(kernel->entry, index, offset, size);
}
SIM_ENTRY(cuKernelGetName, (const char **name, CUkernel hfunc), 0,
          (name == NULL) ? CUDA_ERROR_INVALID_VALUE :
          sim_kernel_about(hfunc, name, 0, NULL, NULL))
SIM_ENTRY(cuKernelGetParamInfo,
          (CUkernel kernel, size_t paramIndex, size_t *paramOffset,
           size_t *paramSize), 0,
          sim_kernel_about(kernel, NULL, paramIndex, paramOffset, paramSize))

/* ---------------------------------------------------------- of functions */

static CUresult sim_func_about(CUfunction handle, const char **name,
                               CUmodule *module, size_t index, size_t *offset,
                               size_t *size)
{
    /* A CUkernel is refused here although launches take one. */
    sim_func_t *func = sim_handle_get(SIM_KIND_FUNC, handle);

    if (func == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (name != NULL) {
        *name = func->entry->name;
        return CUDA_SUCCESS;
    } else if (module != NULL) {
        *module = func->module;
        return CUDA_SUCCESS;
    }
    return sim_entry_param(func->entry, index, offset, size);
}
SIM_ENTRY(cuFuncGetName, (const char **name, CUfunction hfunc), 0,
          (name == NULL) ? CUDA_ERROR_INVALID_VALUE :
          sim_func_about(hfunc, name, NULL, 0, NULL, NULL))
SIM_ENTRY(cuFuncGetModule, (CUmodule *hmod, CUfunction hfunc), 0,
          (hmod == NULL) ? CUDA_ERROR_INVALID_VALUE :
          sim_func_about(hfunc, NULL, hmod, 0, NULL, NULL))
SIM_ENTRY(cuFuncGetParamInfo,
          (CUfunction func, size_t paramIndex, size_t *paramOffset,
           size_t *paramSize), 0,
          sim_func_about(func, NULL, NULL, paramIndex, paramOffset,
                         paramSize))

static CUresult sim_func_attr(int *get, CUfunction_attribute id, int set,
                              CUfunction handle)
{
    sim_ctx_t  *ctx;
    sim_func_t *func;
    CUresult    status = sim_ctx_current(&ctx);

    if (status == CUDA_SUCCESS) {
        status = sim_func_find(handle, true, ctx, &func);
    }
    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((unsigned)id >= CU_FUNC_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (get != NULL) {
        *get = func->attrs[id];
        return CUDA_SUCCESS;
    }
    status = sim_attr_check_set(id, set);
    if (status == CUDA_SUCCESS) {
        func->attrs[id] = set;
    }
    return status;
}
SIM_ENTRY(cuFuncGetAttribute,
          (int *pi, CUfunction_attribute attrib, CUfunction hfunc), SIM_CTX,
          (pi == NULL) ? CUDA_ERROR_INVALID_VALUE :
          sim_func_attr(pi, attrib, 0, hfunc))
SIM_ENTRY(cuFuncSetAttribute,
          (CUfunction hfunc, CUfunction_attribute attrib, int value), SIM_CTX,
          sim_func_attr(NULL, attrib, value, hfunc))

static CUresult sim_func_exists(CUfunction handle)
{
    return ((sim_handle_get(SIM_KIND_FUNC, handle) != NULL) ||
            sim_kernel_exists(handle)) ? CUDA_SUCCESS :
                                         CUDA_ERROR_INVALID_HANDLE;
}
SIM_ENTRY(cuFuncSetCacheConfig, (CUfunction hfunc, CUfunc_cache config),
          SIM_CTX, ((void)config, sim_func_exists(hfunc)))
SIM_ENTRY(cuFuncLoad, (CUfunction function), SIM_CTX,
          sim_func_exists(function))

static CUresult sim_func_is_loaded(CUfunctionLoadingState *state,
                                   CUfunction handle)
{
    CUresult status = sim_func_exists(handle);

    if (status == CUDA_SUCCESS) {
        *state = CU_FUNCTION_LOADING_STATE_LOADED;
    }
    return status;
}
SIM_ENTRY(cuFuncIsLoaded,
          (CUfunctionLoadingState *state, CUfunction function), SIM_CTX,
          sim_func_is_loaded(state, function))

static CUresult sim_occupancy(int *blocks, CUfunction handle, int threads,
                              size_t dynamic)
{
    CUresult status = sim_func_exists(handle);
    size_t   by_shared;

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((blocks == NULL) || (threads <= 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *blocks = 2048 / ((threads + 31) / 32 * 32);
    *blocks = (*blocks > 32) ? 32 : *blocks;
    if (dynamic > 0) {
        by_shared = (228u * 1024u) / (dynamic + 1024u);
        *blocks   = ((size_t)*blocks > by_shared) ? (int)by_shared : *blocks;
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor,
          (int *numBlocks, CUfunction func, int blockSize,
           size_t dynamicSMemSize), SIM_CTX,
          sim_occupancy(numBlocks, func, blockSize, dynamicSMemSize))
SIM_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
          (int *numBlocks, CUfunction func, int blockSize,
           size_t dynamicSMemSize, unsigned int flags), SIM_CTX,
          (flags > 1) ? CUDA_ERROR_INVALID_VALUE :
          sim_occupancy(numBlocks, func, blockSize, dynamicSMemSize))
