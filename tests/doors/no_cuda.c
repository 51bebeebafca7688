/* SPDX-License-Identifier: Apache-2.0 */
/* A program that has nothing to do with CUDA: it stays so. Prints nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>


static int no_cuda_loaded(const char *library)
{
    return dlopen(library, RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

int main(void)
{
    const char *(*get)(const char *);

    *(void**)&get = dlsym(RTLD_DEFAULT, "getenv");
    if (get == NULL || get("PATH") != getenv("PATH")) {
        return EXIT_FAILURE;
    }
    if (dlsym(RTLD_DEFAULT, "cuInit") != NULL) {
        return EXIT_FAILURE;
    }
    if (no_cuda_loaded("libcuda.so.1") || no_cuda_loaded("libcudart.so") ||
        no_cuda_loaded("libcupti.so")) {
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
