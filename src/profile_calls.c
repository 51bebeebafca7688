/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function for each driver function whose time counts, held against its type
 * in cuda.h, and a table of them. Our entries jump to what cgs_real names, so
 * that is where these are put.
 */
#include "profile_calls.h"

#include "clock.h"
#include "profile.h"

#define CLOCK_TRIES 64

__thread cgs_profile_thread_t cgs_profile_self;
cgs_profile_outside_t         cgs_profile_outside;
atomic_bool                   cgs_profile_is_slow;

static void note_stream(cgs_profile_owner_t *owner, CUstream stream)
{
    unsigned num = atomic_load_explicit(&owner->num_streams,
                                        memory_order_acquire);
    unsigned i;

    for (i = 0; i < num; ++i) {
        if (atomic_load_explicit(&owner->stream[i], memory_order_relaxed) ==
            stream) {
            return;
        }
    }
    /* Two threads at once may leave one of the two out. */
    if (num < CGS_PROFILE_STREAMS) {
        atomic_store_explicit(&owner->stream[num], stream,
                              memory_order_relaxed);
        atomic_store_explicit(&owner->num_streams, num + 1,
                              memory_order_release);
    }
}

static void add(atomic_ullong *count, uint64_t more)
{
    atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

static void note_work(CUstream stream, uint64_t ns)
{
    cgs_profile_thread_t *self = &cgs_profile_self;
    cgs_profile_owner_t  *owner;

    if (self->quiet > 0) {
        return;
    }
    if (self->owner != NULL) {
        ++self->in.calls;
        self->in.call_ns += ns;
        note_stream(self->owner, stream);
        return;
    }
    owner = cgs_profile_find_owner(stream);
    if (owner != NULL) {
        add(&owner->calls, 1);
        add(&owner->call_ns, ns);
        return;
    }
    ++self->after.calls;
    self->after.call_ns += ns;
    if (atomic_load_explicit(&cgs_profile_is_slow, memory_order_relaxed)) {
        add(&cgs_profile_outside.slow_calls, 1);
    } else {
        add(&cgs_profile_outside.calls, 1);
        add(&cgs_profile_outside.call_ns, ns);
    }
}

static void note_wait(CUstream stream, uint64_t ns)
{
    cgs_profile_thread_t *self = &cgs_profile_self;
    cgs_profile_counts_t *counts;

    (void)stream;
    if (self->quiet > 0) {
        return;
    }
    counts = self->owner != NULL ? &self->in : &self->after;
    ++counts->waits;
    counts->wait_ns += ns;
}

static CUstream config_stream(const CUlaunchConfig *config)
{
    return config != NULL ? config->hStream : NULL;
}

#define TIMED(_name, _note, _stream, _args, ...) \
    static __typeof__(&_name) real_##_name; \
    static CUresult timed_##_name(__VA_ARGS__) \
    { \
        uint64_t began_ns = cgs_clock_ns(); \
        CUresult result   = real_##_name _args; \
        \
        _note(_stream, cgs_clock_ns() - began_ns); \
        return result; \
    }

/* A function and its twin for the per-thread default stream. */
#define PAIR(_name, _suffix, _note, _stream, _args, ...) \
    TIMED(_name, _note, _stream, _args, __VA_ARGS__) \
    TIMED(_name##_suffix, _note, _stream, _args, __VA_ARGS__)
#define WORK(_name, _args, ...) \
    PAIR(_name, _ptsz, note_work, stream, _args, __VA_ARGS__)
#define DEFAULT_WORK(_name, _args, ...) \
    PAIR(_name, _ptds, note_work, CU_STREAM_LEGACY, _args, __VA_ARGS__)
#define DEFAULT_WAIT(_name, _args, ...) \
    PAIR(_name, _ptds, note_wait, NULL, _args, __VA_ARGS__)

WORK(cuLaunchKernel,
     (f, gx, gy, gz, bx, by, bz, shared_bytes, stream, params, extra),
     CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,
     void **params, void **extra)
WORK(cuLaunchCooperativeKernel,
     (f, gx, gy, gz, bx, by, bz, shared_bytes, stream, params),
     CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,
     void **params)
PAIR(cuLaunchKernelEx, _ptsz, note_work, config_stream(config),
     (config, f, params, extra), const CUlaunchConfig *config, CUfunction f,
     void **params, void **extra)
WORK(cuMemcpyAsync, (dst, src, bytes, stream), CUdeviceptr dst,
     CUdeviceptr src, size_t bytes, CUstream stream)
WORK(cuMemcpyDtoDAsync_v2, (dst, src, bytes, stream), CUdeviceptr dst,
     CUdeviceptr src, size_t bytes, CUstream stream)
WORK(cuMemcpyHtoDAsync_v2, (dst, src, bytes, stream), CUdeviceptr dst,
     const void *src, size_t bytes, CUstream stream)
WORK(cuMemcpyDtoHAsync_v2, (dst, src, bytes, stream), void *dst,
     CUdeviceptr src, size_t bytes, CUstream stream)
WORK(cuMemcpy2DAsync_v2, (copy, stream), const CUDA_MEMCPY2D *copy,
     CUstream stream)
WORK(cuMemcpy3DAsync_v2, (copy, stream), const CUDA_MEMCPY3D *copy,
     CUstream stream)

#define SET(_bits, _type) \
    WORK(cuMemsetD##_bits##Async, (dst, value, count, stream), \
         CUdeviceptr dst, _type value, size_t count, CUstream stream) \
    WORK(cuMemsetD2D##_bits##Async, (dst, pitch, value, width, height, \
                                     stream), \
         CUdeviceptr dst, size_t pitch, _type value, size_t width, \
         size_t height, CUstream stream) \
    DEFAULT_WORK(cuMemsetD##_bits##_v2, (dst, value, count), \
                 CUdeviceptr dst, _type value, size_t count)

SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned)
DEFAULT_WORK(cuMemcpyDtoD_v2, (dst, src, bytes), CUdeviceptr dst,
             CUdeviceptr src, size_t bytes)
WORK(cuLaunchHostFunc, (stream, function, data), CUstream stream,
     CUhostFn function, void *data)
WORK(cuEventRecord, (event, stream), CUevent event, CUstream stream)
WORK(cuEventRecordWithFlags, (event, stream, flags), CUevent event,
     CUstream stream, unsigned flags)
WORK(cuStreamWaitEvent, (stream, event, flags), CUstream stream, CUevent event,
     unsigned flags)

PAIR(cuStreamSynchronize, _ptsz, note_wait, stream, (stream), CUstream stream)
TIMED(cuEventSynchronize, note_wait, NULL, (event), CUevent event)
TIMED(cuCtxSynchronize, note_wait, NULL, (), void)
DEFAULT_WAIT(cuMemcpy, (dst, src, bytes), CUdeviceptr dst, CUdeviceptr src,
             size_t bytes)
DEFAULT_WAIT(cuMemcpyDtoH_v2, (dst, src, bytes), void *dst, CUdeviceptr src,
             size_t bytes)
DEFAULT_WAIT(cuMemcpyHtoD_v2, (dst, src, bytes), CUdeviceptr dst,
             const void *src, size_t bytes)

#define ROW(_name) \
    {CGS_INDEX_##_name, (void *)timed_##_name, (void **)&real_##_name}
#define ROWS(_name, _suffix) ROW(_name), ROW(_name##_suffix)
#define SET_ROWS(_bits) \
    ROWS(cuMemsetD##_bits##Async, _ptsz), \
    ROWS(cuMemsetD2D##_bits##Async, _ptsz), ROWS(cuMemsetD##_bits##_v2, _ptds)

static const struct {
    unsigned index;
    void     *timed;
    void     **real;
} rows[] = {
    ROWS(cuLaunchKernel, _ptsz), ROWS(cuLaunchKernelEx, _ptsz),
    ROWS(cuLaunchCooperativeKernel, _ptsz), ROWS(cuMemcpyAsync, _ptsz),
    ROWS(cuMemcpyDtoDAsync_v2, _ptsz), ROWS(cuMemcpyHtoDAsync_v2, _ptsz),
    ROWS(cuMemcpyDtoHAsync_v2, _ptsz), ROWS(cuMemcpy2DAsync_v2, _ptsz),
    ROWS(cuMemcpy3DAsync_v2, _ptsz), SET_ROWS(8), SET_ROWS(16), SET_ROWS(32),
    ROWS(cuMemcpyDtoD_v2, _ptds), ROWS(cuLaunchHostFunc, _ptsz),
    ROWS(cuEventRecord, _ptsz), ROWS(cuEventRecordWithFlags, _ptsz),
    ROWS(cuStreamWaitEvent, _ptsz), ROWS(cuStreamSynchronize, _ptsz),
    ROW(cuEventSynchronize), ROW(cuCtxSynchronize), ROWS(cuMemcpy, _ptds),
    ROWS(cuMemcpyDtoH_v2, _ptds), ROWS(cuMemcpyHtoD_v2, _ptds),
};

void cgs_profile_calls_install(void)
{
    void   *real;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        real = __atomic_load_n(&cgs_real[rows[i].index], __ATOMIC_ACQUIRE);
        if (real == (void *)cgs_missing) {
            continue;
        }
        *rows[i].real = real;
        __atomic_store_n(&cgs_real[rows[i].index], rows[i].timed,
                         __ATOMIC_RELEASE);
    }
}

uint64_t cgs_profile_clock_cost(void)
{
    uint64_t best  = UINT64_MAX;
    uint64_t began = cgs_clock_ns();
    uint64_t now;
    int      i;

    /* The least of several rows of readings. */
    for (i = 1; i <= CLOCK_TRIES * 8; ++i) {
        now = cgs_clock_ns();
        if (i % CLOCK_TRIES == 0) {
            best  = (now - began) / CLOCK_TRIES < best ?
                    (now - began) / CLOCK_TRIES : best;
            began = now;
        }
    }
    return best;
}
