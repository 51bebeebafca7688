/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's activity API, by dlopen. Its records are read in the callback that
 * returns a buffer, and what is needed of them is copied to two lists.
 *
 * CUPTI of CUDA 12 and 13 write longer and longer records for the same kind;
 * what is read here lies at the same place in all of them.
 */
#define _GNU_SOURCE
#include "profile_cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include <cupti.h>

#include "clock.h"
#include "log.h"
#include "op.h"

/* Records of a kind: 28 MB of calls and of work each. */
#define MAX_RECORDS  (1u << 19)
#define MAX_NAMES    8192
#define MAX_NAME     512
#define BUFFER_BYTES (1u << 20)
/* Readings of two clocks, the closest of which counts. */
#define CLOCK_TRIES  16

#define FUNCTIONS(_needed, _wanted) \
    _needed(cuptiActivityRegisterCallbacks) \
    _needed(cuptiActivityEnable) \
    _needed(cuptiActivityDisable) \
    _needed(cuptiActivityFlushAll) \
    _needed(cuptiActivityGetNextRecord) \
    _wanted(cuptiActivityGetNumDroppedRecords) \
    _wanted(cuptiActivityRegisterTimestampCallback) \
    _wanted(cuptiActivityEnableDriverApi) \
    _wanted(cuptiGetTimestamp) \
    _wanted(cuptiGetResultString) \
    _wanted(cuptiSetThreadIdType) \
    _wanted(cuptiSubscribe)

static struct {
#define DECLARE(_name) __typeof__(&_name) _name;
    FUNCTIONS(DECLARE, DECLARE)
#undef DECLARE
} cupti;

static const struct {
    const char *name;
    size_t     offset;
    bool       is_needed;
} functions[] = {
#define NEEDED(_name) {#_name, offsetof(__typeof__(cupti), _name), true},
#define WANTED(_name) {#_name, offsetof(__typeof__(cupti), _name), false},
    FUNCTIONS(NEEDED, WANTED)
#undef NEEDED
#undef WANTED
};

/* The driver functions that are recorded. Of those that exist twice the one
 * for the per-thread default stream is the second. */
#define CBID(_name) CUPTI_DRIVER_TRACE_CBID_##_name
#define TWINS(_name, _suffix, _class) \
    {CBID(_name), _class}, {CBID(_name##_suffix), _class}

static const struct {
    CUpti_CallbackId cbid;
    uint8_t          class;
} recorded[] = {
    TWINS(cuLaunchKernel, _ptsz, CGS_CALL_LAUNCH),
    TWINS(cuLaunchKernelEx, _ptsz, CGS_CALL_LAUNCH),
    TWINS(cuLaunchCooperativeKernel, _ptsz, CGS_CALL_LAUNCH),
    TWINS(cuGraphLaunch, _ptsz, CGS_CALL_GRAPH),
    TWINS(cuMemcpyAsync, _ptsz, CGS_CALL_COPY),
    TWINS(cuMemcpyHtoDAsync_v2, _ptsz, CGS_CALL_COPY),
    TWINS(cuMemcpyDtoHAsync_v2, _ptsz, CGS_CALL_COPY),
    TWINS(cuMemcpyDtoDAsync_v2, _ptsz, CGS_CALL_COPY),
    TWINS(cuMemcpyHtoAAsync_v2, _ptsz, CGS_CALL_COPY),
    TWINS(cuMemcpyAtoHAsync_v2, _ptsz, CGS_CALL_COPY),
    TWINS(cuMemcpy2DAsync_v2, _ptsz, CGS_CALL_COPY),
    TWINS(cuMemcpy3DAsync_v2, _ptsz, CGS_CALL_COPY),
    TWINS(cuMemcpyPeerAsync, _ptsz, CGS_CALL_COPY),
    TWINS(cuMemcpy3DPeerAsync, _ptsz, CGS_CALL_COPY),
    TWINS(cuMemcpyDtoD_v2, _ptds, CGS_CALL_COPY),
    TWINS(cuMemcpy, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpyHtoD_v2, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpyDtoH_v2, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpyDtoA_v2, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpyAtoD_v2, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpyHtoA_v2, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpyAtoH_v2, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpyAtoA_v2, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpy2D_v2, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpy2DUnaligned_v2, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpy3D_v2, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpyPeer, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemcpy3DPeer, _ptds, CGS_CALL_SYNC_COPY),
    TWINS(cuMemsetD8Async, _ptsz, CGS_CALL_SET),
    TWINS(cuMemsetD16Async, _ptsz, CGS_CALL_SET),
    TWINS(cuMemsetD32Async, _ptsz, CGS_CALL_SET),
    TWINS(cuMemsetD2D8Async, _ptsz, CGS_CALL_SET),
    TWINS(cuMemsetD2D16Async, _ptsz, CGS_CALL_SET),
    TWINS(cuMemsetD2D32Async, _ptsz, CGS_CALL_SET),
    TWINS(cuMemsetD8_v2, _ptds, CGS_CALL_SET),
    TWINS(cuMemsetD16_v2, _ptds, CGS_CALL_SET),
    TWINS(cuMemsetD32_v2, _ptds, CGS_CALL_SET),
    TWINS(cuMemsetD2D8_v2, _ptds, CGS_CALL_SET),
    TWINS(cuMemsetD2D16_v2, _ptds, CGS_CALL_SET),
    TWINS(cuMemsetD2D32_v2, _ptds, CGS_CALL_SET),
    TWINS(cuStreamSynchronize, _ptsz, CGS_CALL_WAIT),
    {CBID(cuEventSynchronize), CGS_CALL_WAIT},
    {CBID(cuCtxSynchronize), CGS_CALL_WAIT},
};

#define NUM_RECORDED (sizeof(recorded) / sizeof(recorded[0]))

typedef struct {
    char           *text;
    uint32_t       index;
    UT_hash_handle hh;
} name_t;

/* What CUPTI's clock shows more than ours, at a time of ours. */
typedef struct {
    uint64_t at_ns;
    int64_t  ahead_ns;
} offset_t;

static struct {
    bool                  attached, by_kind;
    bool                  own_clock; /* the records have our times already */
    offset_t              first, last;
    CUpti_SubscriberHandle subscriber;
    uint8_t               classes[CUPTI_DRIVER_TRACE_CBID_SIZE];

    pthread_mutex_t       mutex; /* for all below */
    cgs_profile_records_t records;
    size_t                calls_capacity, works_capacity;
    bool                  full, closed;
    name_t                *names;
    const char            *name[MAX_NAMES];
    uint32_t              num_names;
} self = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
};

/* ---- Loading ---- */

static const char *const file_names[] = {
    "libcupti.so.13", "libcupti.so.12", "libcupti.so",
};

#define NUM_FILE_NAMES (sizeof(file_names) / sizeof(file_names[0]))

static void *open_in(const char *directory, const char *below)
{
    char   path[PATH_MAX];
    void   *handle = NULL;
    size_t i;

    for (i = 0; (i < NUM_FILE_NAMES) && (handle == NULL); ++i) {
        if (snprintf(path, sizeof(path), "%s/%s%s", directory, below,
                     file_names[i]) < (int)sizeof(path)) {
            handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return handle;
}

/* Keep the directory of cudart, without its own name. */
static int note_cudart(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *slash = strrchr(info->dlpi_name, '/');

    (void)size;
    if ((slash == NULL) || (strncmp(slash + 1, "libcudart.so", 12) != 0) ||
        (slash - info->dlpi_name >= PATH_MAX)) {
        return 0;
    }
    memcpy(arg, info->dlpi_name, (size_t)(slash - info->dlpi_name));
    ((char *)arg)[slash - info->dlpi_name] = '\0';
    return 1;
}

/* The one that is there already, what the loader finds, the toolkit's, what
 * lies beside cudart (as a Python package too). */
static void *open_cupti(void)
{
    static const char *const in_toolkit[] = {"extras/CUPTI/lib64/", "lib64/"};
    static const char *const by_cudart[]  = {
        "", "../extras/CUPTI/lib64/", "../../cuda_cupti/lib/",
    };
    const char *toolkit       = getenv("CUDA_HOME");
    char       path[PATH_MAX] = "";
    void       *handle        = NULL;
    size_t     i;

    for (i = 0; (i < 2 * NUM_FILE_NAMES) && (handle == NULL); ++i) {
        handle = dlopen(file_names[i % NUM_FILE_NAMES], RTLD_NOW | RTLD_LOCAL |
                        (i < NUM_FILE_NAMES ? RTLD_NOLOAD : 0));
    }
    for (i = 0; (i < 2) && (toolkit != NULL) && (handle == NULL); ++i) {
        handle = open_in(toolkit, in_toolkit[i]);
    }
    if ((handle == NULL) && dl_iterate_phdr(note_cudart, path)) {
        for (i = 0; (i < 3) && (handle == NULL); ++i) {
            handle = open_in(path, by_cudart[i]);
        }
    }
    return handle;
}

const char *cgs_profile_cupti_load(void)
{
    static char problem[128];
    void        *handle = open_cupti();
    void        *found;
    size_t      i;

    if (handle == NULL) {
        return "CUPTI was not found (libcupti.so.13, .12 or libcupti.so, on "
               "LD_LIBRARY_PATH, in CUDA_HOME or beside libcudart)";
    }
    for (i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
        found = dlsym(handle, functions[i].name);
        memcpy((char *)&cupti + functions[i].offset, &found, sizeof(found));
        if ((found == NULL) && functions[i].is_needed) {
            snprintf(problem, sizeof(problem), "CUPTI lacks %s",
                     functions[i].name);
            return problem;
        }
    }
    if ((cupti.cuptiActivityRegisterTimestampCallback == NULL) &&
        (cupti.cuptiGetTimestamp == NULL)) {
        return "CUPTI lacks cuptiGetTimestamp";
    }
    return NULL;
}

/* ---- Records ---- */

/* Make room for one more. Under the lock. */
static bool reserve(void **list, size_t num, size_t *capacity, size_t size)
{
    size_t more = *capacity > 0 ? 2 * *capacity : 4096;
    void   *grown;

    if (num < *capacity) {
        return true;
    }
    grown = num < MAX_RECORDS ? realloc(*list, more * size) : NULL;
    if (grown == NULL) {
        __atomic_store_n(&self.full, true, __ATOMIC_RELAXED);
        ++self.records.left_out;
        return false;
    }
    *list     = grown;
    *capacity = more;
    return true;
}

/* Under the lock. */
static uint32_t intern(const char *text)
{
    char   cut[MAX_NAME];
    name_t *name;

    snprintf(cut, sizeof(cut), "%s", text != NULL ? text : "?");
    HASH_FIND_STR(self.names, cut, name);
    if (name != NULL) {
        return name->index;
    }
    if (self.num_names + 1 >= MAX_NAMES) {
        return 0;
    }
    name = calloc(1, sizeof(*name));
    if (name == NULL) {
        return 0;
    }
    name->text  = strdup(cut);
    name->index = self.num_names + 1;
    if (name->text != NULL) {
        HASH_ADD_KEYPTR(hh, self.names, name->text, strlen(name->text), name);
    }
    if ((name->text == NULL) || (name->hh.tbl == NULL)) {
        free(name->text);
        free(name);
        return 0;
    }
    self.name[name->index] = name->text;
    ++self.num_names;
    return name->index;
}

const char *cgs_profile_cupti_name(uint32_t name)
{
    return (name < MAX_NAMES) && (self.name[name] != NULL) ? self.name[name] :
                                                             "?";
}

/* Work that has not ended when it is asked for has no times. */
static void add_work(const cgs_profile_work_t *work)
{
    if ((work->began_ns == 0) || (work->ended_ns < work->began_ns)) {
        ++self.records.left_out;
    } else if (reserve((void **)&self.records.works, self.records.num_works,
                       &self.works_capacity, sizeof(*work))) {
        self.records.works[self.records.num_works++] = *work;
    }
}

static void add_kernel(const CUpti_ActivityKernel9 *kernel)
{
    const struct {
        uint32_t name, grid[3], block[3], shared;
    } shape = {
        intern(kernel->name),
        {(uint32_t)kernel->gridX, (uint32_t)kernel->gridY,
         (uint32_t)kernel->gridZ},
        {(uint32_t)kernel->blockX, (uint32_t)kernel->blockY,
         (uint32_t)kernel->blockZ},
        (uint32_t)kernel->dynamicSharedMemory,
    };

    add_work(&(cgs_profile_work_t){
        .began_ns    = kernel->start,
        .ended_ns    = kernel->end,
        .shape       = cgs_op_hash_bytes(&shape, sizeof(shape), 1),
        .correlation = kernel->correlationId,
        .name        = shape.name,
        .stream      = kernel->streamId + (kernel->contextId << 20),
        .run         = -1,
    });
}

static void add_transfer(const char *name, uint64_t kind, uint64_t bytes,
                         cgs_profile_work_t work)
{
    const uint64_t shape[] = {kind, bytes};

    work.name  = intern(name);
    work.shape = cgs_op_hash_bytes(shape, sizeof(shape), 2);
    work.run   = -1;
    add_work(&work);
}

static void add_copy(const CUpti_ActivityMemcpy5 *copy)
{
    add_transfer("[copy]", copy->copyKind, copy->bytes, (cgs_profile_work_t){
        .began_ns    = copy->start,
        .ended_ns    = copy->end,
        .correlation = copy->correlationId,
        .stream      = copy->streamId + (copy->contextId << 20),
    });
}

static void add_set(const CUpti_ActivityMemset3 *set)
{
    add_transfer("[set]", 256, set->bytes, (cgs_profile_work_t){
        .began_ns    = set->start,
        .ended_ns    = set->end,
        .correlation = set->correlationId,
        .stream      = set->streamId + (set->contextId << 20),
    });
}

static void add_call(const CUpti_ActivityAPI *call)
{
    uint8_t class = call->cbid < CUPTI_DRIVER_TRACE_CBID_SIZE ?
                    self.classes[call->cbid] : CGS_CALL_NONE;

    if ((class == CGS_CALL_NONE) || (call->end == 0) ||
        !reserve((void **)&self.records.calls, self.records.num_calls,
                 &self.calls_capacity, sizeof(cgs_profile_call_t))) {
        return;
    }
    self.records.calls[self.records.num_calls++] = (cgs_profile_call_t){
        .began_ns    = call->start,
        .ended_ns    = call->end,
        .thread      = call->threadId,
        .correlation = call->correlationId,
        .run         = -1,
        .class       = class,
    };
}

static void add_record(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        add_kernel((const CUpti_ActivityKernel9 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        add_copy((const CUpti_ActivityMemcpy5 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        add_set((const CUpti_ActivityMemset3 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_DRIVER:
        add_call((const CUpti_ActivityAPI *)record);
        break;
    default:
        break;
    }
}

/* ---- What CUPTI calls ---- */

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size,
                                      size_t *max_records)
{
    void *memory = NULL;

    /* Without a buffer CUPTI drops records and counts them. */
    if (posix_memalign(&memory, 8, BUFFER_BYTES) != 0) {
        memory = NULL;
    }
    *buffer      = memory;
    *size        = memory != NULL ? BUFFER_BYTES : 0;
    *max_records = 0;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream,
                                      uint8_t *buffer, size_t size,
                                      size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t         dropped = 0;

    (void)size;
    pthread_mutex_lock(&self.mutex);
    while ((valid > 0) && !self.closed &&
           (cupti.cuptiActivityGetNextRecord(buffer, valid, &record) ==
            CUPTI_SUCCESS)) {
        add_record(record);
    }
    if ((cupti.cuptiActivityGetNumDroppedRecords != NULL) &&
        (cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) ==
         CUPTI_SUCCESS)) {
        self.records.left_out += dropped;
    }
    pthread_mutex_unlock(&self.mutex);
    free(buffer);
}

static uint64_t CUPTIAPI tell_time(void)
{
    return cgs_clock_ns();
}

/* Nothing is subscribed to: it keeps other tools away, and is refused where
 * there is one. */
static void CUPTIAPI hear_nothing(void *data, CUpti_CallbackDomain domain,
                                  CUpti_CallbackId id, const void *info)
{
    (void)data;
    (void)domain;
    (void)id;
    (void)info;
}

/* ---- Switching ---- */

static const char *result_text(const char *what, CUptiResult result)
{
    static char text[256];
    const char  *name = NULL;

    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
        return "another tool uses CUPTI in this process";
    }
    if (cupti.cuptiGetResultString != NULL) {
        cupti.cuptiGetResultString(result, &name);
    }
    snprintf(text, sizeof(text), "%s: %s (%d)", what,
             name != NULL ? name : "an error", (int)result);
    return text;
}

/* The reading of both clocks that took least. */
static void read_offset(offset_t *offset)
{
    uint64_t best = UINT64_MAX;
    uint64_t before, after, theirs;
    int      i;

    for (i = 0; i < CLOCK_TRIES; ++i) {
        before = cgs_clock_ns();
        if (cupti.cuptiGetTimestamp(&theirs) != CUPTI_SUCCESS) {
            return;
        }
        after = cgs_clock_ns();
        if (after - before < best) {
            best             = after - before;
            offset->at_ns    = before + best / 2;
            offset->ahead_ns = (int64_t)(theirs - offset->at_ns);
        }
    }
}

static void set_clock(void)
{
    self.own_clock =
        (cupti.cuptiActivityRegisterTimestampCallback != NULL) &&
        (cupti.cuptiActivityRegisterTimestampCallback(tell_time) ==
         CUPTI_SUCCESS);
    if (!self.own_clock && (cupti.cuptiGetTimestamp != NULL)) {
        read_offset(&self.first);
    }
}

static const char *attach(void)
{
    CUptiResult result = CUPTI_SUCCESS;
    size_t      i;

    if (cupti.cuptiSubscribe != NULL) {
        result = cupti.cuptiSubscribe(&self.subscriber, hear_nothing, NULL);
    }
    if (result != CUPTI_SUCCESS) {
        return result_text("cuptiSubscribe", result);
    }
    set_clock();
    if (!self.own_clock && (self.first.at_ns == 0)) {
        return "CUPTI does not tell the time";
    }
    result = cupti.cuptiActivityRegisterCallbacks(buffer_requested,
                                                  buffer_completed);
    if (result != CUPTI_SUCCESS) {
        return result_text("cuptiActivityRegisterCallbacks", result);
    }
    self.records.by_pthread =
        (cupti.cuptiSetThreadIdType == NULL) ||
        (cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) !=
         CUPTI_SUCCESS);
    for (i = 0; i < NUM_RECORDED; ++i) {
        self.classes[recorded[i].cbid] = recorded[i].class;
    }
    self.by_kind  = cupti.cuptiActivityEnableDriverApi == NULL;
    self.attached = true;
    return NULL;
}

/* Only the calls that count, where CUPTI can do that: a framework makes a
 * hundred others for each. */
static CUptiResult switch_calls(bool on)
{
    CUptiResult result = CUPTI_SUCCESS;
    size_t      i;

    for (i = 0; (i < NUM_RECORDED) && !self.by_kind; ++i) {
        result = cupti.cuptiActivityEnableDriverApi(recorded[i].cbid, on);
        if (result != CUPTI_SUCCESS) {
            self.by_kind = on;
            break;
        }
    }
    if (self.by_kind) {
        result = on ? cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER) :
                      cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER);
    }
    return result;
}

const char *cgs_profile_cupti_switch(bool on)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET,
    };
    const char  *problem = self.attached ? NULL : attach();
    CUptiResult result;
    size_t      i;

    if (problem != NULL) {
        return problem;
    }
    /* Work goes on when calls do first, so that none of it lacks its call. */
    result = on ? CUPTI_SUCCESS : switch_calls(false);
    for (i = 0; (i < sizeof(kinds) / sizeof(kinds[0])) &&
                (result == CUPTI_SUCCESS); ++i) {
        result = on ? cupti.cuptiActivityEnable(kinds[i]) :
                      cupti.cuptiActivityDisable(kinds[i]);
    }
    if (on && (result == CUPTI_SUCCESS)) {
        result = switch_calls(true);
    }
    if (result == CUPTI_SUCCESS) {
        return NULL;
    }
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        cupti.cuptiActivityDisable(kinds[i]);
    }
    return result_text(on ? "cuptiActivityEnable" : "cuptiActivityDisable",
                       result);
}

bool cgs_profile_cupti_is_full(void)
{
    return __atomic_load_n(&self.full, __ATOMIC_RELAXED);
}

/* ---- The end ---- */

/* A time of CUPTI's as one of ours; the clocks drift apart. */
static uint64_t to_our_time(uint64_t theirs)
{
    const offset_t *first = &self.first, *last = &self.last;
    uint64_t       ours   = theirs - (uint64_t)first->ahead_ns;
    double         part;

    if (last->at_ns <= first->at_ns) {
        return ours;
    }
    part = ((double)ours - (double)first->at_ns) /
           (double)(last->at_ns - first->at_ns);
    return ours - (uint64_t)(int64_t)
           (part * (double)(last->ahead_ns - first->ahead_ns));
}

static void translate_times(void)
{
    size_t i;

    read_offset(&self.last);
    for (i = 0; i < self.records.num_calls; ++i) {
        cgs_profile_call_t *call = &self.records.calls[i];

        call->began_ns = to_our_time(call->began_ns);
        call->ended_ns = to_our_time(call->ended_ns);
    }
    for (i = 0; i < self.records.num_works; ++i) {
        cgs_profile_work_t *work = &self.records.works[i];

        work->began_ns = to_our_time(work->began_ns);
        work->ended_ns = to_our_time(work->ended_ns);
    }
}

const cgs_profile_records_t *cgs_profile_cupti_finish(void)
{
    if (self.attached) {
        cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        pthread_mutex_lock(&self.mutex);
        self.closed = true; /* the lists are the caller's to read */
        if (!self.own_clock) {
            translate_times();
        }
        pthread_mutex_unlock(&self.mutex);
    }
    return &self.records;
}
