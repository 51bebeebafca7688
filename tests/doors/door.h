/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of the doors share: each finds the driver's functions in
 * its own way, and then does the same work with what it found.
 */
#ifndef DOOR_H
#define DOOR_H

#include <stddef.h>

#define DOOR_COUNT_OF(_array) (sizeof(_array) / sizeof((_array)[0]))


/* A function by its exported name, and as cuGetProcAddress knows it. */
typedef struct door_name {
    const char *exported;
    const char *name;
    int        version;         /* of CUDA, the lowest that means this one */
} door_name_t;


/* Returns the function, or NULL. */
typedef void *(*door_find_t)(const door_name_t *name);


/* Runs kernels, copies and sets with the functions found, in a range, and
 * prints a hash of the results. Ends the program when anything fails. */
void door_exercise(const char *title, door_find_t find);

/* Opens libcuda.so.1, or ends the program with status 77. */
void *door_open_driver(int flags);

/* cuInit(0), found in the driver opened by door_open_driver(). */
void door_init(void *driver);

/* Prints whether it is there, and what dlerror() says. */
void door_print_lookup(const char *what, const char *name, void *address);

#endif
