/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the CUDA C++ programs of tests/gpu share: error checks, a clock,
 * medians, a hash of memory and the JSON they leave for scripts/gpu-check.
 * Nothing here knows of cgshim: the programs run the same with and without.
 */
#ifndef GPU_UTIL_H
#define GPU_UTIL_H

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GPU_CHECK(_call)                                                       \
    do {                                                                       \
        cudaError_t _err = (_call);                                            \
        if (_err != cudaSuccess) {                                             \
            fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #_call,\
                    cudaGetErrorName(_err), cudaGetErrorString(_err));         \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

#define GPU_FNV_START 0xcbf29ce484222325ull

/** Microseconds of a clock that never steps back. */
static inline double gpu_now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1e6 + ts.tv_nsec * 1e-3;
}

/** FNV-1a of @a size bytes, going on from @a hash. */
static inline uint64_t gpu_fnv(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *byte = (const unsigned char*)data;
    size_t i;

    for (i = 0; i < size; ++i) {
        hash = (hash ^ byte[i]) * 0x100000001b3ull;
    }
    return hash;
}

/** Next number of a fixed sequence: the same data in every process. */
static inline uint32_t gpu_lcg(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static inline int gpu_compare_doubles(const void *a, const void *b)
{
    double x = *(const double*)a, y = *(const double*)b;

    return (x > y) - (x < y);
}

/** Median of @a count values, which are left in their order. */
static inline double gpu_median(const double *values, size_t count)
{
    double *sorted = (double*)malloc(count * sizeof(*sorted));
    double median;

    if ((sorted == NULL) || (count == 0)) {
        free(sorted);
        return 0;
    }
    memcpy(sorted, values, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), gpu_compare_doubles);
    median = (count % 2) ? sorted[count / 2] :
             0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
    free(sorted);
    return median;
}

static inline double gpu_min(const double *values, size_t count)
{
    double least = count ? values[0] : 0;
    size_t i;

    for (i = 1; i < count; ++i) {
        least = (values[i] < least) ? values[i] : least;
    }
    return least;
}

/** Median of a[i] / b[i]: what two things timed in turn differ by. */
static inline double gpu_median_ratio(const double *a, const double *b,
                                      size_t count)
{
    double *ratio = (double*)malloc(count * sizeof(*ratio));
    double median;
    size_t i;

    if (ratio == NULL) {
        return 0;
    }
    for (i = 0; i < count; ++i) {
        ratio[i] = a[i] / b[i];
    }
    median = gpu_median(ratio, count);
    free(ratio);
    return median;
}

/** The file of results, or NULL where none is asked for; exits on failure. */
static inline FILE *gpu_json_open(const char *name)
{
    FILE *file;

    if (name == NULL) {
        return NULL;
    }
    file = fopen(name, "w");
    if (file == NULL) {
        perror(name);
        exit(1);
    }
    return file;
}

/** Closes what gpu_json_open gave; exits when the results did not arrive. */
static inline void gpu_json_close(FILE *file, const char *name)
{
    if ((file != NULL) && (fclose(file) != 0)) {
        perror(name);
        exit(1);
    }
}

#endif
