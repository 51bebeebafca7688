/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to preload that spoils a program the way a wrong shim would, so
 * that pair_sees.sh can prove that run-pair.sh sees it. PAIR_BREAK says how:
 *
 *     drop      the 38th launch is not made
 *     double    it is made twice
 *     swap      it is made after the 39th
 *     stdout    a line on stdout at the first launch
 *     stderr    a line on stderr
 *     status    the program's exit status is 1
 *     nothing   all is passed on
 *
 * PAIR_BREAK_LAUNCH=N makes it the Nth launch instead of the 38th.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


enum {
    BREAKER_LAUNCH = 38,         /* the last of a run of changing_args */
    BREAKER_PARAMS = 4,         /* of the kernels launched there, at most */
    BREAKER_BYTES  = 8
};


typedef CUresult (*breaker_launch_t)(CUfunction f, unsigned gx, unsigned gy,
                                     unsigned gz, unsigned bx, unsigned by,
                                     unsigned bz, unsigned shared,
                                     CUstream stream, void **params,
                                     void **extra);


/* The launch that is made late; for programs of one thread. */
static struct {
    CUfunction    f;
    unsigned      gx, bx;
    CUstream      stream;
    unsigned char bytes[BREAKER_PARAMS][BREAKER_BYTES];
} breaker_late;


static int breaker_is(const char *what)
{
    const char *how = getenv("PAIR_BREAK");

    return how != NULL && !strcmp(how, what);
}

/* Which launch is to be broken. */
static unsigned breaker_number(void)
{
    const char *number = getenv("PAIR_BREAK_LAUNCH");

    return number != NULL ? (unsigned)strtoul(number, NULL, 10) :
                            BREAKER_LAUNCH;
}

static void breaker_keep(CUfunction f, unsigned gx, unsigned bx,
                         CUstream stream, void **params, size_t num_params)
{
    size_t i;

    breaker_late.f      = f;
    breaker_late.gx     = gx;
    breaker_late.bx     = bx;
    breaker_late.stream = stream;
    for (i = 0; i < num_params; ++i) {
        memcpy(breaker_late.bytes[i], params[i], BREAKER_BYTES);
    }
}

static CUresult breaker_make_late(breaker_launch_t launch)
{
    void *params[BREAKER_PARAMS];
    size_t i;

    for (i = 0; i < BREAKER_PARAMS; ++i) {
        params[i] = breaker_late.bytes[i];
    }
    return launch(breaker_late.f, breaker_late.gx, 1, 1, breaker_late.bx, 1, 1,
                  0, breaker_late.stream, params, NULL);
}

static void breaker_exit(void)
{
    if (breaker_is("status")) {
        fflush(NULL);
        _exit(1);
    }
}

__attribute__((visibility("default")))
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream stream, void **params, void **extra)
{
    static unsigned count;
    unsigned number = breaker_number();
    breaker_launch_t launch;
    CUresult result;

    *(void**)&launch = dlsym(RTLD_NEXT, "cuLaunchKernel");
    if (launch == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (++count == 1) {
        atexit(breaker_exit);
        if (breaker_is("stdout") || breaker_is("stderr")) {
            fprintf(breaker_is("stdout") ? stdout : stderr, "broken\n");
        }
    }
    if (count == number && breaker_is("drop")) {
        return CUDA_SUCCESS;
    }
    if (count == number && breaker_is("swap")) {
        breaker_keep(f, gx, bx, stream, params, BREAKER_PARAMS);
        return CUDA_SUCCESS;
    }
    result = launch(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
    if (count == number && breaker_is("double")) {
        result = launch(f, gx, gy, gz, bx, by, bz, shared, stream, params,
                        extra);
    }
    if (count == number + 1 && breaker_is("swap")) {
        result = breaker_make_late(launch);
    }
    return result;
}
