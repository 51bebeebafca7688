/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads look functions up through every door, again and again: the
 * answers are always the same ones, and they work. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "door.h"


enum {
    THREADS_COUNT  = 8,
    THREADS_ROUNDS = 300,
    THREADS_NAMES  = 8
};


typedef CUresult (*threads_version_t)(int *version);
typedef CUresult (*threads_getproc_t)(const char *name, void **function,
                                      int version, cuuint64_t flags,
                                      CUdriverProcAddressQueryResult *status);


static const char *const threads_names[THREADS_NAMES] = {
    "cuInit", "cuDriverGetVersion", "cuLaunchKernel", "cuStreamSynchronize",
    "cuNoSuchFunction", "cuStreamCreate", "cuModuleLoadData", "cuDeviceGet"
};

static void *threads_driver;
static const char *threads_symbol_version;
static pthread_barrier_t threads_barrier;


/* What one thread saw: the answers of the first round, and how many later
 * answers differed. */
typedef struct threads_seen {
    void     *by_dlsym[THREADS_NAMES];
    void     *by_dlvsym[THREADS_NAMES];
    void     *by_getproc[THREADS_NAMES];
    unsigned changed;
    unsigned failed;
} threads_seen_t;


static void threads_round(threads_seen_t *seen, int first)
{
    threads_getproc_t getproc;
    threads_version_t version;
    unsigned i;
    int number;

    *(void**)&getproc = dlsym(threads_driver, "cuGetProcAddress_v2");
    for (i = 0; i < THREADS_NAMES; ++i) {
        const char *name = threads_names[i];
        void *by_dlsym   = dlsym(threads_driver, name);
        void *by_dlvsym  = dlvsym(threads_driver, name,
                                  threads_symbol_version);
        void *by_getproc = NULL;

        seen->failed += getproc(name, &by_getproc, 12000, 0, NULL) !=
                        CUDA_SUCCESS && i != 4;
        if (first) {
            seen->by_dlsym[i]   = by_dlsym;
            seen->by_dlvsym[i]  = by_dlvsym;
            seen->by_getproc[i] = by_getproc;
        }
        seen->changed += seen->by_dlsym[i] != by_dlsym;
        seen->changed += seen->by_dlvsym[i] != by_dlvsym;
        seen->changed += seen->by_getproc[i] != by_getproc;
    }
    *(void**)&version = dlsym(threads_driver, "cuDriverGetVersion");
    seen->failed += version == NULL || version(&number) != CUDA_SUCCESS;
}

static void *threads_run(void *arg)
{
    threads_seen_t *seen = arg;
    unsigned round;

    pthread_barrier_wait(&threads_barrier);
    for (round = 0; round < THREADS_ROUNDS; ++round) {
        threads_round(seen, round == 0);
    }
    return NULL;
}

int main(void)
{
    static threads_seen_t seen[THREADS_COUNT];
    pthread_t thread[THREADS_COUNT];
    unsigned i, k;

    threads_driver         = door_open_driver(RTLD_NOW);
    threads_symbol_version = getenv("DOOR_VERSION");
    if (threads_symbol_version == NULL) {
        threads_symbol_version = "V_1";
    }
    pthread_barrier_init(&threads_barrier, NULL, THREADS_COUNT);
    for (i = 0; i < THREADS_COUNT; ++i) {
        if (pthread_create(&thread[i], NULL, threads_run, &seen[i]) != 0) {
            perror("pthread_create");
            return EXIT_FAILURE;
        }
    }
    for (i = 0; i < THREADS_COUNT; ++i) {
        pthread_join(thread[i], NULL);
    }
    for (i = 0; i < THREADS_COUNT; ++i) {
        for (k = 0; k < THREADS_NAMES; ++k) {
            seen[i].changed += seen[i].by_dlsym[k] != seen[0].by_dlsym[k];
            seen[i].changed += seen[i].by_getproc[k] != seen[0].by_getproc[k];
        }
        printf("thread %u: %u changed, %u failed\n", i, seen[i].changed,
               seen[i].failed);
    }
    for (k = 0; k < THREADS_NAMES; ++k) {
        printf("%s: dlsym %d dlvsym %d getproc %d\n", threads_names[k],
               seen[0].by_dlsym[k] != NULL, seen[0].by_dlvsym[k] != NULL,
               seen[0].by_getproc[k] != NULL);
    }
    return 0;
}
