/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lookups answer: an entry of ours for each function of the driver, the
 * one of the same version and stream flavour, and nothing for what the driver
 * lacks.
 */
#define _GNU_SOURCE 1
#include "doors.h"

#include <dlfcn.h>
#include <stdarg.h>

#include "region_run.h"

#define COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

/* Before the library's own constructor keeps the environment. */
__attribute__((constructor(101))) static void configure(void)
{
    setenv("CGSHIM_DEFAULTS", "max_defer_us=1000000000 gate=off chunk=all", 1);
}

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

/* Numbers of 128 bits, as the registers for floats have. */
typedef double pair_t __attribute__((vector_size(16)));

/* Returned in memory, which the caller names in a register. */
typedef struct {
    uint64_t number[10];
    pair_t   pair[10];
    float    single;
} seen_t;

typedef seen_t (*many_t)(uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                         uint64_t e, uint64_t f, uint64_t g, uint64_t h,
                         uint64_t i, uint64_t j, pair_t k, pair_t l, pair_t m,
                         pair_t n, pair_t o, pair_t p, pair_t q, pair_t r,
                         pair_t s, pair_t t, float u);

/* More than there are registers of either kind. */
static seen_t see(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                  uint64_t f, uint64_t g, uint64_t h, uint64_t i, uint64_t j,
                  pair_t k, pair_t l, pair_t m, pair_t n, pair_t o, pair_t p,
                  pair_t q, pair_t r, pair_t s, pair_t t, float u)
{
    return (seen_t){.number = {a, b, c, d, e, f, g, h, i, j},
                    .pair   = {k, l, m, n, o, p, q, r, s, t},
                    .single = u};
}

static pair_t pair(double first, double second)
{
    return (pair_t){first, second};
}

static seen_t call_many(many_t many, uint64_t n, double x)
{
    return many(n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8,
                n + 9, pair(x, x + 0.5), pair(x + 1, x + 1.5),
                pair(x + 2, x + 2.5), pair(x + 3, x + 3.5),
                pair(x + 4, x + 4.5), pair(x + 5, x + 5.5),
                pair(x + 6, x + 6.5), pair(x + 7, x + 7.5),
                pair(x + 8, x + 8.5), pair(x + 9, x + 9.5), (float)x + 10);
}

/* Of a call with variable arguments too. */
static double see_listed(int num, ...)
{
    va_list list;
    double  all = 0;
    int     i;

    va_start(list, num);
    for (i = 0; i < num; ++i) {
        all = 2 * all + va_arg(list, double);
    }
    va_end(list);
    return all;
}

#ifdef __x86_64__
/* How many registers for floats such a call says that it uses, in rax. */
__attribute__((naked)) static void see_count(void)
{
    __asm__("movzbl %al, %eax\n\tret");
}
#endif

static many_t volatile see_again = see;
static void            *real_launch;
static unsigned        num_spoilt;

/* The driver is called by the shim on the slow way: leaves other arguments in
 * the registers than it found. */
static CUresult spoil(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                      unsigned bx, unsigned by, unsigned bz,
                      unsigned shared_bytes, CUstream stream, void **params,
                      void **extra)
{
    seen_t seen = call_many(see_again, 0xbad0000000000000u, -1e9);

    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
    (void)shared_bytes, (void)stream, (void)params, (void)extra;
    num_spoilt += seen.number[9] > 0;
    return CUDA_SUCCESS;
}

/* Hold back launches, which the next barrier has to make. */
static void hold_back_spoilers(const char *name)
{
    cgs_real[CGS_INDEX_cuLaunchKernel] = real_launch;
    run_times(name, 3, 1, 4);
    enter(name);
    step(1);
    step(2);
    ck_assert_uint_eq(held(cgs_region_find(name)), 2);
    cgs_real[CGS_INDEX_cuLaunchKernel] = (void *)spoil;
    num_spoilt = 0;
}

static void check_many(const char *name, void *entry)
{
    many_t many = (many_t)entry;
    seen_t seen;
    int    i;

    hold_back_spoilers(name);
    seen = call_many(many, 100, 7);
    ck_assert_uint_eq(num_spoilt, 2);
    for (i = 0; i < 10; ++i) {
        ck_assert_msg(seen.number[i] == 100u + (unsigned)i, "number %d", i);
        ck_assert_msg(seen.pair[i][0] == 7 + i, "first of pair %d", i);
        ck_assert_msg(seen.pair[i][1] == 7.5 + i, "second of pair %d", i);
    }
    ck_assert(seen.single == 17);
    leave();
}

START_TEST(the_slow_way_keeps_all_arguments)
{
    const char *const name = "cuSimUnknownWork";
    double   (*listed)(int num, ...);
    unsigned (*count)(int num, ...) __attribute__((unused));
    void     *unknown;
    int      i;

    real_launch = cgs_real[CGS_INDEX_cuLaunchKernel];
    unknown     = dlsym(driver(), name);
    ck_assert_ptr_nonnull(unknown);
    cgs_real[CGS_INDEX_cuArrayCreate]  = (void *)see;
    cgs_real[CGS_INDEX_cuMemFree_v2]   = (void *)see;
    cgs_real[CGS_INDEX_cuArrayDestroy] = (void *)see_listed;
    for (i = 0; i < CGS_NUM_SPARE; ++i) {
        cgs_real[CGS_NUM_ENTRIES + i] = (void *)see;
    }
    check_many("barrier", (void *)cuArrayCreate);
    check_many("free", (void *)cuMemFree_v2);
    check_many("spare", unknown);

    hold_back_spoilers("listed");
    listed = (double (*)(int, ...))(void *)cuArrayDestroy;
    ck_assert(listed(10, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0) ==
              731);
    ck_assert_uint_eq(num_spoilt, 2);
    leave();

#ifdef __x86_64__
    hold_back_spoilers("counted");
    cgs_real[CGS_INDEX_cuArrayDestroy] = (void *)see_count;
    count = (unsigned (*)(int, ...))(void *)cuArrayDestroy;
    ck_assert_uint_eq(count(1, 1.0, 2.0, 3.0), 3);
    ck_assert_uint_eq(num_spoilt, 2);
    leave();
#endif
}
END_TEST

START_TEST(a_closed_gate_keeps_all_arguments)
{
    seen_t seen;

    cgs_real[CGS_INDEX_cuArrayCreate] = (void *)see;
    seen = call_many((many_t)(void *)cuArrayCreate, 100, 7);
    ck_assert_uint_eq(seen.number[0], 100);
    ck_assert_uint_eq(seen.number[9], 109);
    ck_assert(seen.pair[0][1] == 7.5);
    ck_assert(seen.pair[9][1] == 16.5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("doors");
    TCase *tests = tcase_create("doors");


    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_add_test(
        tests, each_door_gives_the_entry_of_the_function_that_the_driver_gave);
    tcase_add_test(tests,
                   an_unknown_function_of_the_driver_gets_an_entry_of_its_own);
    tcase_add_test(tests, what_the_driver_lacks_stays_missing);
    tcase_add_test(tests,
                   outputs_that_the_program_does_not_want_are_not_touched);
    tcase_add_test(tests, an_address_that_is_not_the_drivers_is_given_back);
    tcase_add_test(tests, the_slow_way_keeps_all_arguments);
    tcase_add_test(tests, a_closed_gate_keeps_all_arguments);
    suite_add_tcase(suite, tests);
    return core_run(suite);
}
