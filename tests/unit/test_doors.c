/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lookups answer: an entry of ours for each function of the driver, the
 * one of the same version and stream flavour, and nothing for what the driver
 * lacks.
 */
#define _GNU_SOURCE 1
#include "doors.h"

#include <dlfcn.h>

#include "core.h"

#define COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

static void *driver(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    ck_assert_ptr_nonnull(handle);
    return handle;
}

static void *ask(const char *name, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status;
    void                           *pfn = NULL;

    if (cuGetProcAddress_v2(name, &pfn, version, flags, &status) !=
        CUDA_SUCCESS) {
        return NULL;
    }
    return pfn;
}

static const struct {
    const char *name;
    int        version;
    cuuint64_t flags;
    void       *entry;
    const char *symbol;
} names[] = {
    {"cuLaunchKernel", 4000, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
     (void *)cuLaunchKernel, "cuLaunchKernel"},
    {"cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
     (void *)cuLaunchKernel_ptsz, "cuLaunchKernel_ptsz"},
    {"cuMemcpyDtoDAsync", 3020, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
     (void *)cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync_v2"},
    {"cuStreamSynchronize", 2000, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
     (void *)cuStreamSynchronize, "cuStreamSynchronize"},
    {"cuStreamSynchronize", 12000,
     CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
     (void *)cuStreamSynchronize_ptsz, "cuStreamSynchronize_ptsz"},
    {"cuMemFree", 3020, CU_GET_PROC_ADDRESS_DEFAULT, (void *)cuMemFree_v2,
     "cuMemFree_v2"},
    {"cuInit", 2000, CU_GET_PROC_ADDRESS_DEFAULT, (void *)cuInit, "cuInit"},
    {"cuGetProcAddress", 12000, CU_GET_PROC_ADDRESS_DEFAULT,
     (void *)cuGetProcAddress_v2, "cuGetProcAddress_v2"},
};

START_TEST(each_door_gives_the_entry_of_the_function_that_the_driver_gave)
{
    void   *pfn;
    size_t i;

    for (i = 0; i < COUNT(names); ++i) {
        ck_assert_msg(ask(names[i].name, names[i].version, names[i].flags) ==
                      names[i].entry, "v2: %s", names[i].symbol);
        pfn = NULL;
        ck_assert_int_eq(cuGetProcAddress(names[i].name, &pfn,
                                          names[i].version, names[i].flags),
                         CUDA_SUCCESS);
        ck_assert_msg(pfn == names[i].entry, "v1: %s", names[i].symbol);
        ck_assert_msg(dlsym(driver(), names[i].symbol) == names[i].entry,
                      "dlsym: %s", names[i].symbol);
    }
}
END_TEST

/* A function that cuda.h does not know. */
START_TEST(an_unknown_function_of_the_driver_gets_an_entry_of_its_own)
{
    const char *const name = "cuSimUnknownWork";
    CUresult (*work)(CUstream stream, CUdeviceptr address, unsigned value);
    CUdeviceptr address = core_alloc(16, 0);
    Dl_info     own, its;

    *(void **)&work = dlsym(driver(), name);
    ck_assert_ptr_nonnull(work);
    ck_assert_ptr_eq(ask(name, 13000, 0), *(void **)&work);
    ck_assert_int_ne(dladdr((void *)cuInit, &own), 0);
    ck_assert_int_ne(dladdr(*(void **)&work, &its), 0);
    ck_assert_ptr_eq(its.dli_fbase, own.dli_fbase);
    ck_assert_int_eq(work(core_stream, address, 7), CUDA_SUCCESS);
    ck_assert_uint_eq(core_word(address), 7);
}
END_TEST

START_TEST(what_the_driver_lacks_stays_missing)
{
    void *pfn = (void *)1;

    ck_assert_ptr_null(dlsym(driver(), "cuNoSuchFunction"));
    ck_assert_ptr_nonnull(dlerror());
    /* We have it, the driver does not. */
    ck_assert_ptr_null(dlsym(driver(), "cuCoredumpSetAttributeGlobal"));
    ck_assert_ptr_nonnull(dlerror());
    ck_assert_ptr_null(ask("cuNoSuchFunction", 13000, 0));
    ck_assert_int_eq(cuGetProcAddress("cuNoSuchFunction", &pfn, 13000, 0),
                     CUDA_ERROR_NOT_FOUND);
    ck_assert_int_eq(cuCoredumpSetAttributeGlobal(0, NULL, NULL),
                     CUDA_ERROR_NOT_FOUND);
}
END_TEST

/* Whatever a driver says to that. */
static CUresult accept_all(const char *name, void **pfn, int version,
                           cuuint64_t flags,
                           CUdriverProcAddressQueryResult *status)
{
    (void)name;
    (void)pfn;
    (void)version;
    (void)flags;
    (void)status;
    return CUDA_SUCCESS;
}

static CUresult accept_all_v1(const char *name, void **pfn, int version,
                              cuuint64_t flags)
{
    return accept_all(name, pfn, version, flags, NULL);
}

START_TEST(outputs_that_the_program_does_not_want_are_not_touched)
{
    void *pfn = NULL;

    cgs_real[CGS_INDEX_cuGetProcAddress_v2] = (void *)accept_all;
    cgs_real[CGS_INDEX_cuGetProcAddress]    = (void *)accept_all_v1;
    ck_assert_int_eq(cuGetProcAddress_v2("cuInit", NULL, 2000, 0, NULL),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuGetProcAddress("cuInit", NULL, 2000, 0),
                     CUDA_SUCCESS);
    /* Nothing is put in the place of nothing. */
    ck_assert_int_eq(cuGetProcAddress_v2("cuInit", &pfn, 2000, 0, NULL),
                     CUDA_SUCCESS);
    ck_assert_ptr_null(pfn);
}
END_TEST

START_TEST(an_address_that_is_not_the_drivers_is_given_back)
{
    int here;

    ck_assert_ptr_eq(cgs_door_map(&here, "cuInit"), &here);
    ck_assert_ptr_eq(cgs_door_map((void *)strlen, "cuInit"), (void *)strlen);
    ck_assert_ptr_null(cgs_door_map(NULL, "cuInit"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("doors");
    TCase *tests = tcase_create("doors");

    tcase_add_checked_fixture(tests, core_open, NULL);
    tcase_add_test(
        tests, each_door_gives_the_entry_of_the_function_that_the_driver_gave);
    tcase_add_test(tests,
                   an_unknown_function_of_the_driver_gets_an_entry_of_its_own);
    tcase_add_test(tests, what_the_driver_lacks_stays_missing);
    tcase_add_test(tests,
                   outputs_that_the_program_does_not_want_are_not_touched);
    tcase_add_test(tests, an_address_that_is_not_the_drivers_is_given_back);
    suite_add_tcase(suite, tests);
    return core_run(suite);
}
