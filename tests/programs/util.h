/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the test programs share: checked driver calls, the module of kernels,
 * hashes of device memory. A program prints to stdout nothing that may differ
 * from run to run: no address, no handle, no time.
 */
#ifndef PRG_UTIL_H
#define PRG_UTIL_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#define PRG_COUNT_OF(_array) (sizeof(_array) / sizeof((_array)[0]))

/* Ends the program if the call fails, with the error's name and the line. */
#define PRG_CHECK(_call) prg_check(_call, #_call, __FILE__, __LINE__)

/* A launch of at least _n threads in one dimension. The arguments are given by
 * address, as cuLaunchKernel takes them. */
#define PRG_LAUNCH(_kernel, _stream, _n, ...) \
    PRG_CHECK(prg_launch(_kernel, _stream, _n, (void*[]){ __VA_ARGS__ }))


enum {
    PRG_BLOCK      = 64,      /* threads in a block of prg_launch() */
    PRG_EXIT_SKIP  = 77       /* the exit status for "no device here" */
};


typedef struct prg_context {
    CUdevice  device;
    CUcontext context;
    CUmodule  module;
} prg_context_t;


void prg_check(CUresult result, const char *call, const char *file, int line);

/* The name of an error, for programs that print errors they expect. */
const char *prg_error_name(CUresult result);

/* cuInit, device 0, its primary context made current, the module loaded. */
void prg_open(prg_context_t *prg);

/* Unloads the module and releases the primary context. */
void prg_close(prg_context_t *prg);

CUfunction prg_kernel(const prg_context_t *prg, const char *name);

CUresult prg_launch(CUfunction kernel, CUstream stream, unsigned n,
                    void **params);

/* Device memory of n words, each set to value + its index. */
CUdeviceptr prg_alloc(const prg_context_t *prg, size_t n, uint32_t value);

/* A hash of the words at the device's address, read by a synchronous copy. */
uint64_t prg_hash(CUdeviceptr address, size_t n);

/* A hash of host memory. */
uint64_t prg_hash_host(const void *data, size_t size);

/* "name hash", one line on stdout. */
void prg_print_hash(const char *name, CUdeviceptr address, size_t n);

#endif
