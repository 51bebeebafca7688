/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One short program for each hazard of the design's table, named after it:
 * `hazards NAME`. Each does in a region, many times, what a shim that handles
 * the hazard wrongly would get wrong, and prints what came of it.
 *
 * tests/hazards.sh says which hazard is shown by which program, and how it is
 * run.
 */
#ifndef HZD_HAZARDS_H
#define HZD_HAZARDS_H

#include <stdbool.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"

enum {
    HZD_WORDS = 64,
    HZD_BYTES = HZD_WORDS * sizeof(uint32_t),
    HZD_RUNS  = 10
};

typedef struct hzd_state {
    prg_context_t prg;
    CUstream      stream;   /* blocking */
    CUstream      other[2]; /* non-blocking */
    uint32_t      n;        /* HZD_WORDS */
    CUdeviceptr   x, y, z;  /* n words */
    CUdeviceptr   word;
    uint32_t      *pinned[2];
    uint32_t      *pageable;
    CUfunction    hash, axpy, chain, fill;
} hzd_state_t;

/* The name and the body of a program. */
typedef struct hzd_hazard {
    const char *name;
    void       (*play)(hzd_state_t *state);
} hzd_hazard_t;

/* Those of each file, ended by one without a name. */
extern const hzd_hazard_t hzd_memory[];
extern const hzd_hazard_t hzd_streams[];
extern const hzd_hazard_t hzd_launches[];
extern const hzd_hazard_t hzd_life[];
extern const hzd_hazard_t hzd_outer[];

/* Everything above, made in the primary context. */
void hzd_open(hzd_state_t *state);

/* x = a hash of x; the order of two of them matters. */
void hzd_hash(hzd_state_t *state, CUstream stream, CUdeviceptr x,
              uint32_t seed);

/* y = 3 * y + 5 * x */
void hzd_axpy(hzd_state_t *state, CUstream stream, CUdeviceptr y,
              CUdeviceptr x);

/* Fill n words of host memory with what depends on the value. */
void hzd_scribble(uint32_t *host, uint32_t value);

/* A hash of n words of host memory, one line. */
void hzd_print_host(const char *name, const uint32_t *host);

/* Wait for the device, then hashes of x, y, z and the word. */
void hzd_print(hzd_state_t *state);

/* Run in a thread of its own, in the same context, and wait for its end. */
void hzd_in_thread(hzd_state_t *state, void (*play)(hzd_state_t *state));

/* Whether the driver is the simulated one, which knows no faults of kernels
 * and too little memory for a GPU. */
bool hzd_is_simulated(void);

/* End the program: the driver here cannot show this. */
void hzd_skip(const char *why);

#endif
