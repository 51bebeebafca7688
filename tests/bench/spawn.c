/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What preloading a library costs a program that has nothing to do with CUDA.
 *
 *     spawn LIBRARY COUNT PROGRAM [ARGUMENT...]
 *
 * Runs the program COUNT times without and COUNT times with the library, in
 * turn, and prints the medians from spawn to exit, ms.
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


static double spawn_now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static int spawn_compare(const void *a, const void *b)
{
    double x = *(const double*)a, y = *(const double*)b;

    return (x > y) - (x < y);
}

/* ms of one run, whose environment is this process' own. */
static double spawn_one(char **command)
{
    double start = spawn_now_ms();
    int status;
    pid_t pid;

    if (posix_spawn(&pid, command[0], NULL, NULL, command, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "spawn: %s could not be run\n", command[0]);
        exit(EXIT_FAILURE);
    }
    return spawn_now_ms() - start;
}

static void spawn_set(const char *library)
{
    if (library == NULL) {
        unsetenv("LD_PRELOAD");
    } else if (setenv("LD_PRELOAD", library, 1) != 0) {
        perror("spawn");
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv)
{
    size_t count   = argc > 3 ? (size_t)atoi(argv[2]) : 0;
    double *times  = malloc((2 * count + 1) * sizeof(*times));
    double *plain  = times, *loaded;
    size_t i;

    if (count == 0 || times == NULL) {
        fprintf(stderr, "usage: spawn LIBRARY COUNT PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    loaded = times + count;
    for (i = 0; i < count; ++i) {
        spawn_set(NULL);
        plain[i] = spawn_one(argv + 3);
        spawn_set(argv[1]);
        loaded[i] = spawn_one(argv + 3);
    }
    qsort(plain, count, sizeof(*plain), spawn_compare);
    qsort(loaded, count, sizeof(*loaded), spawn_compare);
    printf("plain %.3f preloaded %.3f difference %.3f\n", plain[count / 2],
           loaded[count / 2], loaded[count / 2] - plain[count / 2]);
    free(times);
    return EXIT_SUCCESS;
}
