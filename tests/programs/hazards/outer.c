/* SPDX-License-Identifier: Apache-2.0 */
/* Hazards of what others see: other APIs, other processes, the terminal. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "hazards.h"
#include "simkernel.h"

/* A stream signals to another API, which signals back: what was called before
 * the first signal is done by then. */
static void external_semaphores(hzd_state_t *state)
{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC what;
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait;
    CUstream a = state->other[0], b = state->other[1];
    CUexternalSemaphore semaphore;
    unsigned run;

    if (!hzd_is_simulated()) {
        hzd_skip("there is no other API to share a semaphore with");
    }
    memset(&what, 0, sizeof(what));
    memset(&signal, 0, sizeof(signal));
    memset(&wait, 0, sizeof(wait));
    what.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
    PRG_CHECK(cuImportExternalSemaphore(&semaphore, &what));
    for (run = 0; run < HZD_RUNS; ++run) {
        signal.params.fence.value = wait.params.fence.value = run + 1;
        nvtxRangePushA("semaphores");
        hzd_hash(state, a, state->x, run / 3);
        hzd_axpy(state, a, state->y, state->x);
        PRG_CHECK(cuSignalExternalSemaphoresAsync(&semaphore, &signal, 1, a));
        hzd_hash(state, a, state->x, 1);
        hzd_hash(state, a, state->x, 2);
        PRG_CHECK(cuWaitExternalSemaphoresAsync(&semaphore, &wait, 1, b));
        hzd_axpy(state, b, state->z, state->y);
        hzd_hash(state, b, state->z, 3);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(b));
        PRG_CHECK(cuStreamSynchronize(a));
    }
    PRG_CHECK(cuDestroyExternalSemaphore(semaphore));
}

typedef CUresult (CUDAAPI *outer_waits_t)(CUstream stream,
                                          const CUipcEventHandle *handle);

/* The program tells another process, by no call of CUDA, that an event of both
 * has been recorded: it must have been. */
static void event_of_another_process(hzd_state_t *state)
{
    CUstream a = state->other[0], b = state->other[1];
    outer_waits_t waits = NULL;
    CUipcEventHandle handle;
    CUevent event;
    unsigned run;
    void *library;

    library = dlopen("libcuda.so.1", RTLD_LAZY);
    if (library != NULL) {
        *(void**)&waits = dlsym(library, "cu_sim_other_process_waits");
    }
    if (waits == NULL) {
        hzd_skip("it takes two processes");
    }
    PRG_CHECK(cuEventCreate(&event, CU_EVENT_INTERPROCESS |
                                    CU_EVENT_DISABLE_TIMING));
    PRG_CHECK(cuIpcGetEventHandle(&handle, event));
    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("other process");
        hzd_hash(state, a, state->x, run / 3);
        hzd_axpy(state, a, state->y, state->x);
        PRG_CHECK(cuEventRecord(event, a));
        PRG_CHECK(waits(b, &handle));
        hzd_hash(state, a, state->x, 1);
        hzd_hash(state, a, state->x, 2);
        nvtxRangePop();
        hzd_axpy(state, b, state->z, state->y);
        PRG_CHECK(cuStreamSynchronize(b));
        PRG_CHECK(cuStreamSynchronize(a));
    }
    PRG_CHECK(cuEventDestroy(event));
}

static const char outer_print_ptx[] =
    ".version 7.0\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".extern .func (.param .b32 func_retval0) vprintf\n"
    "(\n"
    "    .param .b64 vprintf_param_0,\n"
    "    .param .b64 vprintf_param_1\n"
    ")\n"
    ";\n"
    ".global .align 1 .b8 k_print_text[20] = {116, 104, 101, 32, 100, 101,\n"
    "    118, 105, 99, 101, 32, 115, 97, 121, 115, 32, 37, 117, 10};\n"
    ".visible .entry k_print(\n"
    "    .param .u32 k_print_param_0\n"
    ")\n"
    "{\n"
    "    .local .align 8 .b8 place[8];\n"
    "    .reg .b32 %value, %result;\n"
    "    .reg .b64 %local, %generic, %text;\n"
    "    mov.u64 %local, place;\n"
    "    cvta.local.u64 %generic, %local;\n"
    "    ld.param.u32 %value, [k_print_param_0];\n"
    "    st.local.u32 [%local], %value;\n"
    "    mov.u64 %text, k_print_text;\n"
    "    cvta.global.u64 %text, %text;\n"
    "    {\n"
    "    .param .b64 param0;\n"
    "    .param .b64 param1;\n"
    "    .param .b32 retval0;\n"
    "    st.param.b64 [param0+0], %text;\n"
    "    st.param.b64 [param1+0], %generic;\n"
    "    call.uni (retval0), vprintf, (param0, param1);\n"
    "    ld.param.b32 %result, [retval0+0];\n"
    "    }\n"
    "    ret;\n"
    "}\n";

/* The body that the simulated driver runs. */
void simk_k_print(const simk_grid_t *grid, void *const *params);
void simk_k_print(const simk_grid_t *grid, void *const *params)
{
    uint32_t value;

    (void)grid;
    memcpy(&value, params[0], sizeof(value));
    printf("the device says %u\n", value);
}

/* What kernels print comes when the host waits, before what the host prints
 * then. */
static void device_printf(hzd_state_t *state)
{
    CUfunction print;
    CUmodule module;
    uint32_t value;
    unsigned run;

    PRG_CHECK(cuModuleLoadData(&module, outer_print_ptx));
    PRG_CHECK(cuModuleGetFunction(&print, module, "k_print"));
    for (run = 0; run < HZD_RUNS; ++run) {
        value = run;
        nvtxRangePushA("printf");
        hzd_hash(state, state->stream, state->x, run / 3);
        PRG_CHECK(cuLaunchKernel(print, 1, 1, 1, 1, 1, 1, 0, state->stream,
                                 (void*[]){ &value }, NULL));
        hzd_hash(state, state->stream, state->x, 1);
        PRG_CHECK(cuCtxSynchronize());
        printf("the host says %u\n", run);
        fflush(stdout);
        hzd_hash(state, state->stream, state->x, 2);
        hzd_hash(state, state->stream, state->x, 3);
        nvtxRangePop();
    }
    PRG_CHECK(cuModuleUnload(module));
}

/* Memory of one size, mapped at an address. */
static CUmemGenericAllocationHandle outer_map(const hzd_state_t *state,
                                              CUdeviceptr address, size_t size)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties;
    CUmemAccessDesc access;

    memset(&properties, 0, sizeof(properties));
    properties.type          = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id   = state->prg.device;
    access.location          = properties.location;
    access.flags             = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    PRG_CHECK(cuMemCreate(&handle, size, &properties, 0));
    PRG_CHECK(cuMemMap(address, size, 0, handle, 0));
    PRG_CHECK(cuMemSetAccess(address, size, &access, 1));
    return handle;
}

/* The same address, now and then over other memory. */
static void address_unmapped_and_mapped_again(hzd_state_t *state)
{
    CUmemGenericAllocationHandle handle[2];
    CUmemAllocationProp properties;
    CUdeviceptr own;
    unsigned run;
    size_t size;

    memset(&properties, 0, sizeof(properties));
    properties.type          = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id   = state->prg.device;
    PRG_CHECK(cuMemGetAllocationGranularity(
        &size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    PRG_CHECK(cuMemAddressReserve(&own, size, 0, 0, 0));
    handle[0] = outer_map(state, own, size);
    for (run = 0; run < 2 * HZD_RUNS; ++run) {
        nvtxRangePushA("mapped");
        hzd_hash(state, state->stream, state->x, run / 4);
        PRG_CHECK(cuMemsetD32Async(own, run, HZD_WORDS, state->stream));
        PRG_CHECK(cuMemcpyDtoDAsync(own + HZD_BYTES, state->x, HZD_BYTES,
                                    state->stream));
        hzd_axpy(state, state->stream, state->y, own);
        hzd_axpy(state, state->stream, state->z, own + HZD_BYTES);
        if (run % 4 == 3) {
            PRG_CHECK(cuStreamSynchronize(state->stream));
            PRG_CHECK(cuMemUnmap(own, size));
            handle[1] = outer_map(state, own, size);
            PRG_CHECK(cuMemsetD32Async(own, 9, HZD_WORDS, state->stream));
            PRG_CHECK(cuMemcpyDtoDAsync(own + HZD_BYTES, state->y, HZD_BYTES,
                                        state->stream));
            hzd_axpy(state, state->stream, state->x, own + HZD_BYTES);
            PRG_CHECK(cuStreamSynchronize(state->stream));
            PRG_CHECK(cuMemRelease(handle[0]));
            handle[0] = handle[1];
        }
        hzd_hash(state, state->stream, state->y, 1);
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(state->stream));
    PRG_CHECK(cuMemUnmap(own, size));
    PRG_CHECK(cuMemRelease(handle[0]));
    PRG_CHECK(cuMemAddressFree(own, size));
}

const hzd_hazard_t hzd_outer[] = {
    { "external_semaphores", external_semaphores },
    { "event_of_another_process", event_of_another_process },
    { "device_printf", device_printf },
    { "address_unmapped_and_mapped_again", address_unmapped_and_mapped_again },
    { NULL, NULL }
};
