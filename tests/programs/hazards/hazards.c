/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs for the hazards share, and finding the one to run. */
#include "hazards.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hzd_hash(hzd_state_t *state, CUstream stream, CUdeviceptr x,
              uint32_t seed)
{
    PRG_LAUNCH(state->hash, stream, state->n, &x, &state->n, &seed);
}

void hzd_axpy(hzd_state_t *state, CUstream stream, CUdeviceptr y,
              CUdeviceptr x)
{
    uint32_t factor = 5;

    PRG_LAUNCH(state->axpy, stream, state->n, &y, &x, &state->n, &factor);
}

void hzd_scribble(uint32_t *host, uint32_t value)
{
    uint32_t i;

    for (i = 0; i < HZD_WORDS; ++i) {
        host[i] = value * 2654435761u + i;
    }
}

void hzd_print_host(const char *name, const uint32_t *host)
{
    printf("%s %016llx\n", name,
           (unsigned long long)prg_hash_host(host, HZD_BYTES));
}

void hzd_print(hzd_state_t *state)
{
    PRG_CHECK(cuCtxSynchronize());
    prg_print_hash("x", state->x, state->n);
    prg_print_hash("y", state->y, state->n);
    prg_print_hash("z", state->z, state->n);
    prg_print_hash("word", state->word, 1);
}

/* What a thread is to do. */
typedef struct hzd_work {
    hzd_state_t *state;
    void        (*play)(hzd_state_t *state);
} hzd_work_t;

static void *hzd_thread(void *arg)
{
    hzd_work_t *work = arg;

    PRG_CHECK(cuCtxSetCurrent(work->state->prg.context));
    work->play(work->state);
    return NULL;
}

void hzd_in_thread(hzd_state_t *state, void (*play)(hzd_state_t *state))
{
    hzd_work_t work = { .state = state, .play = play };
    pthread_t thread;

    if (pthread_create(&thread, NULL, hzd_thread, &work) != 0) {
        perror("pthread_create");
        exit(EXIT_FAILURE);
    }
    pthread_join(thread, NULL);
}

bool hzd_is_simulated(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY);

    return library != NULL && dlsym(library, "cuSimUnknownWork") != NULL;
}

void hzd_skip(const char *why)
{
    fprintf(stderr, "not shown here: %s\n", why);
    exit(PRG_EXIT_SKIP);
}

static const hzd_hazard_t *hzd_find(const char *name)
{
    static const hzd_hazard_t *const all[] = {
        hzd_memory, hzd_streams, hzd_launches, hzd_life, hzd_outer
    };
    const hzd_hazard_t *hazard;
    size_t i;

    for (i = 0; i < PRG_COUNT_OF(all); ++i) {
        for (hazard = all[i]; hazard->name != NULL; ++hazard) {
            if (strcmp(hazard->name, name) == 0) {
                return hazard;
            }
        }
    }
    return NULL;
}

void hzd_open(hzd_state_t *state)
{
    unsigned i;

    prg_open(&state->prg);
    state->n        = HZD_WORDS;
    state->hash     = prg_kernel(&state->prg, "k_hash");
    state->axpy     = prg_kernel(&state->prg, "k_axpy");
    state->chain    = prg_kernel(&state->prg, "k_chain");
    state->fill     = prg_kernel(&state->prg, "k_fill");
    state->x        = prg_alloc(&state->prg, state->n, 1);
    state->y        = prg_alloc(&state->prg, state->n, 1000);
    state->z        = prg_alloc(&state->prg, state->n, 1000000);
    state->word     = prg_alloc(&state->prg, 1, 1);
    state->pageable = calloc(HZD_WORDS, sizeof(uint32_t));
    if (state->pageable == NULL) {
        perror("calloc");
        exit(EXIT_FAILURE);
    }
    PRG_CHECK(cuStreamCreate(&state->stream, CU_STREAM_DEFAULT));
    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuStreamCreate(&state->other[i], CU_STREAM_NON_BLOCKING));
        PRG_CHECK(cuMemAllocHost((void**)&state->pinned[i], HZD_BYTES));
        memset(state->pinned[i], 0, HZD_BYTES);
    }
}

static void hzd_close(hzd_state_t *state)
{
    unsigned i;

    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuMemFreeHost(state->pinned[i]));
        PRG_CHECK(cuStreamDestroy(state->other[i]));
    }
    PRG_CHECK(cuStreamDestroy(state->stream));
    PRG_CHECK(cuMemFree(state->x));
    PRG_CHECK(cuMemFree(state->y));
    PRG_CHECK(cuMemFree(state->z));
    PRG_CHECK(cuMemFree(state->word));
    prg_close(&state->prg);
    free(state->pageable);
}

int main(int argc, char **argv)
{
    const hzd_hazard_t *hazard = argc == 2 ? hzd_find(argv[1]) : NULL;
    hzd_state_t state;

    if (hazard == NULL) {
        fprintf(stderr, "usage: %s HAZARD\n", argv[0]);
        return EXIT_FAILURE;
    }
    hzd_open(&state);
    hazard->play(&state);
    hzd_print(&state);
    hzd_close(&state);
    return 0;
}
