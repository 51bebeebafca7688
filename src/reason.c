/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small table of strings, only ever added to: there are as many reasons as
 * there are ways to fail, not as there are failures.
 */
#define _GNU_SOURCE
#include "reason.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thread.h"

#define MAX_REASONS 256
#define MAX_LENGTH  256

static struct {
    cgs_lock_t lock;
    unsigned   num;
    char       *text[MAX_REASONS];
} reasons;

static const char *intern(const char *text)
{
    const char *found = "another reason";
    unsigned   i;

    cgs_lock(&reasons.lock);
    for (i = 0; (i < reasons.num) && (strcmp(reasons.text[i], text) != 0);
         ++i) {
    }
    if ((i == reasons.num) && (i < MAX_REASONS)) {
        reasons.text[i] = strdup(text);
        reasons.num    += reasons.text[i] != NULL;
    }
    if (i < reasons.num) {
        found = reasons.text[i];
    }
    cgs_unlock(&reasons.lock);
    return found;
}

const char *cgs_reason_driver(const char *function, CUresult result)
{
    const char *name = NULL;
    char       text[MAX_LENGTH];

    if ((CGS_REAL(cuGetErrorName)(result, &name) == CUDA_SUCCESS) &&
        (name != NULL)) {
        snprintf(text, sizeof(text), "%s: %s", function, name);
    } else {
        snprintf(text, sizeof(text), "%s: error %d", function, (int)result);
    }
    return intern(text);
}

const char *cgs_reason_join(const char *first, const char *second)
{
    char text[MAX_LENGTH];

    snprintf(text, sizeof(text), "%s %s", first, second);
    return intern(text);
}
