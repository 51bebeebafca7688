/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated CUPTI (libcupti.so.13): activity records of what the simulated
 * driver tells. It finds that driver where the program has it already.
 *
 *   SIM_CUPTI=busy     another tool holds it
 *   SIM_CUPTI=denied   activities cannot be enabled
 *   SIM_CUPTI_NS=n     what each recorded call takes longer
 *
 * Built with SIM_CUPTI_OLD it lacks what older versions do, and its clock is
 * another one than the program's; with SIM_CUPTI_BROKEN it lacks what nobody
 * can do without.
 */
#define _GNU_SOURCE
#include <cupti.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim_observe.h"

#define EXPORT __attribute__((visibility("default")))
/* What the old one's clock is ahead. */
#define AHEAD_NS 1000000000000000u

#define CBID(_name) {#_name, CUPTI_DRIVER_TRACE_CBID_##_name}

static const struct {
    const char       *name;
    CUpti_CallbackId cbid;
} calls[] = {
    CBID(cuLaunchKernel), CBID(cuLaunchKernelEx),
    CBID(cuLaunchCooperativeKernel), CBID(cuGraphLaunch),
    CBID(cuMemcpyAsync), CBID(cuMemcpyHtoDAsync_v2),
    CBID(cuMemcpyDtoHAsync_v2), CBID(cuMemcpyDtoDAsync_v2),
    CBID(cuMemcpyHtoD_v2), CBID(cuMemcpyDtoH_v2), CBID(cuMemcpyDtoD_v2),
    CBID(cuMemsetD8Async), CBID(cuMemsetD16Async), CBID(cuMemsetD32Async),
    CBID(cuStreamSynchronize), CBID(cuEventSynchronize),
    CBID(cuCtxSynchronize), CBID(cuStreamCreate), CBID(cuCtxGetCurrent),
    CBID(cuEventRecord), CBID(cuMemAlloc_v2), CBID(cuMemFree_v2),
};

static struct {
    pthread_mutex_t                   mutex;
    CUpti_BuffersCallbackRequestFunc  request;
    CUpti_BuffersCallbackCompleteFunc complete;
    CUpti_TimestampCallbackFunc       clock;
    uint64_t                          ahead_ns; /* of that clock */
    uint8_t                           *buffer;
    size_t                            size, used;
    uint8_t is_on[CUPTI_ACTIVITY_KIND_COUNT];
    uint8_t is_call_on[CUPTI_DRIVER_TRACE_CBID_SIZE];
    size_t  dropped;
} self = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A time of the driver's, as records have it: all by one offset, so that
 * differences are exact. */
static uint64_t stamp(uint64_t ns)
{
    return ns + (self.clock != NULL ? self.ahead_ns : AHEAD_NS);
}

static int is_on(CUpti_ActivityKind kind)
{
    return __atomic_load_n(&self.is_on[kind], __ATOMIC_RELAXED);
}

static int is_set(const char *value)
{
    const char *text = getenv("SIM_CUPTI");

    return (text != NULL) && !strcmp(text, value);
}

static void spend(void)
{
    const char *text = getenv("SIM_CUPTI_NS");
    uint64_t   until = now_ns() + (text != NULL ? strtoull(text, NULL, 10) : 0);

    while (now_ns() < until) {
    }
}

/* ---- Buffers ---- */

static void deliver(void)
{
    uint8_t *buffer = self.buffer;
    size_t  size = self.size, used = self.used;

    self.buffer = NULL;
    if (buffer != NULL) {
        self.complete(NULL, 0, buffer, size, used);
    }
}

static void add(const void *record, size_t size)
{
    size_t max_records;

    size = (size + 7) & ~(size_t)7;
    pthread_mutex_lock(&self.mutex);
    if ((self.buffer != NULL) && (self.used + size > self.size)) {
        deliver();
    }
    if (self.buffer == NULL) {
        self.used = 0;
        self.request(&self.buffer, &self.size, &max_records);
    }
    if (self.buffer == NULL) {
        ++self.dropped;
    } else {
        memcpy(self.buffer + self.used, record, size);
        self.used += size;
    }
    pthread_mutex_unlock(&self.mutex);
}

/* Large enough that a copy of a rounded size reads nothing of others'. */
typedef union {
    CUpti_Activity        any;
    CUpti_ActivityKernel9 kernel;
    CUpti_ActivityMemcpy5 copy;
    CUpti_ActivityMemset3 set;
    CUpti_ActivityAPI     call;
    uint64_t              words[64];
} record_t;

static size_t size_of(const CUpti_Activity *record)
{
    size_t size = record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ?
                  sizeof(CUpti_ActivityKernel9) :
                  record->kind == CUPTI_ACTIVITY_KIND_MEMCPY ?
                  sizeof(CUpti_ActivityMemcpy5) :
                  record->kind == CUPTI_ACTIVITY_KIND_MEMSET ?
                  sizeof(CUpti_ActivityMemset3) : sizeof(CUpti_ActivityAPI);

    return (size + 7) & ~(size_t)7;
}

/* ---- What the driver tells ---- */

static void hear_call(const char *name, uint32_t correlation,
                      uint64_t began_ns, uint64_t ended_ns)
{
    record_t record = {.call = {.kind = CUPTI_ACTIVITY_KIND_DRIVER}};
    size_t   i;

    for (i = 0; i < sizeof(calls) / sizeof(calls[0]); ++i) {
        if (!strcmp(calls[i].name, name)) {
            break;
        }
    }
    if ((i == sizeof(calls) / sizeof(calls[0])) ||
        !(is_on(CUPTI_ACTIVITY_KIND_DRIVER) ||
          __atomic_load_n(&self.is_call_on[calls[i].cbid],
                          __ATOMIC_RELAXED))) {
        return;
    }
    record.call.cbid          = calls[i].cbid;
    record.call.start         = stamp(began_ns);
    record.call.end           = stamp(ended_ns);
#ifdef SIM_CUPTI_OLD
    record.call.threadId      = (uint32_t)pthread_self();
#else
    record.call.threadId      = (uint32_t)syscall(SYS_gettid);
#endif
    record.call.processId     = (uint32_t)getpid();
    record.call.correlationId = correlation;
    add(&record, size_of(&record.any));
}

/* Names outlive their modules. */
static const char *keep_name(const char *name)
{
    static const char *kept[256];
    size_t            i;

    for (i = 0; i + 1 < sizeof(kept) / sizeof(kept[0]); ++i) {
        if (kept[i] == NULL) {
            kept[i] = strdup(name);
        }
        if ((kept[i] == NULL) || !strcmp(kept[i], name)) {
            break;
        }
    }
    return kept[i];
}

static void hear_kernel(const cu_sim_work_t *work)
{
    record_t record = {
        .kernel = {
            .kind                = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
            .start               = stamp(work->began_ns),
            .end                 = stamp(work->ended_ns),
            .streamId            = work->stream,
            .contextId           = work->context,
            .correlationId       = work->correlation,
            .name                = keep_name(work->name),
            .gridX               = (int32_t)work->grid[0],
            .gridY               = (int32_t)work->grid[1],
            .gridZ               = (int32_t)work->grid[2],
            .blockX              = (int32_t)work->block[0],
            .blockY              = (int32_t)work->block[1],
            .blockZ              = (int32_t)work->block[2],
            .dynamicSharedMemory = (int32_t)work->shared,
        },
    };

    add(&record, size_of(&record.any));
}

static void hear_copy(const cu_sim_work_t *work)
{
    record_t record = {
        .copy = {
            .kind          = CUPTI_ACTIVITY_KIND_MEMCPY,
            .bytes         = work->bytes,
            .start         = stamp(work->began_ns),
            .end           = stamp(work->ended_ns),
            .streamId      = work->stream,
            .contextId     = work->context,
            .correlationId = work->correlation,
        },
    };

    add(&record, size_of(&record.any));
}

static void hear_set(const cu_sim_work_t *work)
{
    record_t record = {
        .set = {
            .kind          = CUPTI_ACTIVITY_KIND_MEMSET,
            .bytes         = work->bytes,
            .start         = stamp(work->began_ns),
            .end           = stamp(work->ended_ns),
            .streamId      = work->stream,
            .contextId     = work->context,
            .correlationId = work->correlation,
        },
    };

    add(&record, size_of(&record.any));
}

static void hear_work(const cu_sim_work_t *work)
{
    if ((work->kind == 'k') && is_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) {
        hear_kernel(work);
    } else if ((work->kind == 'c') && is_on(CUPTI_ACTIVITY_KIND_MEMCPY)) {
        hear_copy(work);
    } else if ((work->kind == 's') && is_on(CUPTI_ACTIVITY_KIND_MEMSET)) {
        hear_set(work);
    } else {
        return;
    }
    spend();
}

static const cu_sim_observer_t observer = {
    .call = hear_call,
    .work = hear_work,
};

/* ---- What CUPTI offers ---- */

EXPORT CUptiResult cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc request,
    CUpti_BuffersCallbackCompleteFunc complete)
{
    self.request  = request;
    self.complete = complete;
    return CUPTI_SUCCESS;
}

static CUptiResult observe(void)
{
    void (*set)(const cu_sim_observer_t *);

    *(void **)&set = dlsym(RTLD_DEFAULT, "cu_sim_observe");
    if (set == NULL) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

        *(void **)&set = driver != NULL ? dlsym(driver, "cu_sim_observe") :
                                          NULL;
    }
    if (set == NULL) {
        return CUPTI_ERROR_NOT_INITIALIZED;
    }
    set(&observer);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    if (is_set("denied")) {
        return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    }
    __atomic_store_n(&self.is_on[kind], 1, __ATOMIC_RELAXED);
    return observe();
}

EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    __atomic_store_n(&self.is_on[kind], 0, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
                                              CUpti_Activity **record)
{
    uint8_t *next = *record == NULL ? buffer :
                    (uint8_t *)*record + size_of(*record);

    if (next >= buffer + valid) {
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    }
    *record = (CUpti_Activity *)next;
    return CUPTI_SUCCESS;
}

#ifndef SIM_CUPTI_BROKEN
EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    pthread_mutex_lock(&self.mutex);
    deliver();
    pthread_mutex_unlock(&self.mutex);
    return CUPTI_SUCCESS;
}
#endif

EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context,
                                                     uint32_t stream,
                                                     size_t *dropped)
{
    (void)context;
    (void)stream;
    *dropped     = self.dropped;
    self.dropped = 0;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    *timestamp = stamp(now_ns());
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ?
            "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber,
                                  CUpti_CallbackFunc callback, void *data)
{
    (void)callback;
    (void)data;
    *subscriber = NULL;
    return is_set("busy") ? CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED :
                            CUPTI_SUCCESS;
}

#ifndef SIM_CUPTI_OLD
EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(
    CUpti_TimestampCallbackFunc clock)
{
    int64_t ahead = (int64_t)(clock() - now_ns());

    /* Two readings of the same clock are a little apart. */
    self.clock    = clock;
    self.ahead_ns = (ahead > -1000000) && (ahead < 1000000) ? 0 :
                    (uint64_t)ahead;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ?
           CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

EXPORT CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid,
                                                uint8_t enable)
{
    if (cbid >= CUPTI_DRIVER_TRACE_CBID_SIZE) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    __atomic_store_n(&self.is_call_on[cbid], enable, __ATOMIC_RELAXED);
    return observe();
}
#endif
