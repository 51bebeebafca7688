/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the core share: the parts of the library are linked into
 * the test, which so calls the driver through the library's entries, on the
 * simulated driver. The driver is touched only in the process that Check makes
 * for one test, so that each test finds it fresh.
 */
#ifndef CGS_TEST_CORE_H
#define CGS_TEST_CORE_H

#include "entries.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

static prg_context_t core;
static CUstream      core_stream;

/* Set-up of each test */
static void core_open(void)
{
    prg_open(&core);
    PRG_CHECK(cuStreamCreate(&core_stream, CU_STREAM_NON_BLOCKING));
}

/* Device memory of some bytes, each of this value */
static inline CUdeviceptr core_alloc(size_t bytes, unsigned char value)
{
    CUdeviceptr address;

    PRG_CHECK(cuMemAlloc_v2(&address, bytes));
    /* Such a set is not waited for by streams that are non-blocking. */
    PRG_CHECK(cuMemsetD8_v2(address, value, bytes));
    PRG_CHECK(cuCtxSynchronize());
    return address;
}

static inline uint32_t core_word(CUdeviceptr address)
{
    uint32_t word;

    PRG_CHECK(cuCtxSynchronize());
    PRG_CHECK(cuMemcpyDtoH_v2(&word, address, sizeof(word)));
    return word;
}

static inline int core_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int     failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
