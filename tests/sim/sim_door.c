/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How others get at the functions of the driver: cuGetProcAddress and
 * cuGetExportTable.
 */
#include "sim.h"

#include <cudaProfiler.h>
#include <cudaTypedefs.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    int         version;
    int         twin;
    void       *fn;
    const char *symbol;
} sim_door_t;

CUresult CUDAAPI cuSimUnknownWork(CUstream stream, CUdeviceptr address,
                                  unsigned value);

/* Each function has the type that a caller will cast it to. */
#define SIM_DOOR(_name, _version, _type, _fn) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&_fn), \
                                                PFN_##_name##_##_type), \
                   "type of " #_fn);
#define SIM_DOOR_TWIN SIM_DOOR
#include "sim_door_list.h"
#undef SIM_DOOR
#undef SIM_DOOR_TWIN

#define SIM_DOOR(_name, _version, _type, _fn) \
    {#_name, _version, 0, (void *)_fn, #_fn},
#define SIM_DOOR_TWIN(_name, _version, _type, _fn) \
    {#_name, _version, 1, (void *)_fn, #_fn},

static const sim_door_t sim_doors[] = {
#include "sim_door_list.h"
    {"cuGraphInstantiate", 12000, 0, (void *)cuGraphInstantiateWithFlags,
     "cuGraphInstantiateWithFlags"},
    {"cuProfilerStart", 4000, 0, (void *)cuProfilerStart, "cuProfilerStart"},
    {"cuProfilerStop", 4000, 0, (void *)cuProfilerStop, "cuProfilerStop"},
    {"cuSimUnknownWork", 2000, 0, (void *)cuSimUnknownWork,
     "cuSimUnknownWork"},
};

/* The newest ABI of a name that a version knows. With a twin asked for, names
 * that have none are as good. */
static const sim_door_t *sim_door_find(const char *name, int version,
                                       bool twin, bool *exists)
{
    const sim_door_t *best = NULL;
    size_t            i;

    *exists = false;
    for (i = 0; i < SIM_ARRAY_SIZE(sim_doors); ++i) {
        const sim_door_t *door = &sim_doors[i];

        if ((strcmp(door->name, name) != 0) ||
            (door->version > sim_config()->driver_version)) {
            continue;
        }
        *exists = true;
        if ((door->version > version) || (door->twin && !twin)) {
            continue;
        }
        if ((best == NULL) || (door->twin > best->twin) ||
            ((door->twin == best->twin) && (door->version > best->version))) {
            best = door;
        }
    }
    return best;
}

static CUresult sim_door_ask(const char *name, void **fn, int version,
                             cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result)
{
    const cuuint64_t  per_thread =
        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const cuuint64_t  known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | per_thread;
    const sim_door_t *door;
    bool              exists;

    if ((name == NULL) || (fn == NULL) || (flags & ~known) ||
        (flags == known)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    door    = sim_door_find(name, version, (flags & per_thread) != 0,
                            &exists);
    *result = (door != NULL) ? CU_GET_PROC_ADDRESS_SUCCESS : exists ?
              CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT :
              CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    *fn     = NULL;
    if (door != NULL) {
        /* Looked up without the lock: dlsym may be somebody else's. */
        sim_lock_drop();
        *fn = sim_self(door->symbol, door->fn);
        sim_lock_take();
    }
    return CUDA_SUCCESS;
}

static CUresult sim_door_v1(const char *name, void **fn, int version,
                            cuuint64_t flags)
{
    CUdriverProcAddressQueryResult result;
    CUresult status = sim_door_ask(name, fn, version, flags, &result);

    return ((status == CUDA_SUCCESS) &&
            (result != CU_GET_PROC_ADDRESS_SUCCESS)) ? CUDA_ERROR_NOT_FOUND :
                                                       status;
}
SIM_ENTRY(cuGetProcAddress,
          (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags),
          SIM_ANYTIME, sim_door_v1(symbol, pfn, cudaVersion, flags))

static CUresult sim_door_v2(const char *name, void **fn, int version,
                            cuuint64_t flags,
                            CUdriverProcAddressQueryResult *result_p)
{
    CUdriverProcAddressQueryResult result;
    CUresult status = sim_door_ask(name, fn, version, flags, &result);

    if ((status == CUDA_SUCCESS) && (result_p != NULL)) {
        *result_p = result;
    }
    return status;
}
#ifdef SIM_WITHOUT_GETPROC_V2 /* an older driver: not exported */
#undef SIM_API
#define SIM_API __attribute__((visibility("hidden")))
#define cuGetProcAddress_v2 sim_getproc_v2
CUresult sim_getproc_v2(const char *, void **, int, cuuint64_t,
                        CUdriverProcAddressQueryResult *);
#endif
SIM_ENTRY(cuGetProcAddress_v2,
          (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
           CUdriverProcAddressQueryResult *symbolStatus), SIM_ANYTIME,
          sim_door_v2(symbol, pfn, cudaVersion, flags, symbolStatus))
#ifdef SIM_WITHOUT_GETPROC_V2
#undef SIM_API
#define SIM_API __attribute__((visibility("default")))
#undef cuGetProcAddress_v2
#endif

/* A table of no functions: its size is all that it holds. */
static const size_t sim_export_table[1] = {sizeof(sim_export_table)};

static CUresult sim_door_table(const void **table, const CUuuid *id)
{
    char     text[2 * sizeof(id->bytes) + 1];
    unsigned i;

    if ((table == NULL) || (id == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < sizeof(id->bytes); ++i) {
        snprintf(&text[2 * i], 3, "%02x", (unsigned char)id->bytes[i]);
    }
    if ((sim_config()->export_table == NULL) ||
        (strcmp(sim_config()->export_table, text) != 0)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    *table = sim_export_table;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGetExportTable,
          (const void **ppExportTable, const CUuuid *pExportTableId),
          SIM_ANYTIME, sim_door_table(ppExportTable, pExportTableId))
