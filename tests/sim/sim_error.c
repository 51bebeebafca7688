/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and texts of the errors.
 */
#include "sim.h"

#define SIM_ERROR(_code, _text) {_code, #_code, _text},

static const struct {
    CUresult    code;
    const char *name, *text;
} sim_errors[] = {
    SIM_ERROR(CUDA_SUCCESS, "no error")
    SIM_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument")
    SIM_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")
    SIM_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error")
    SIM_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down")
    SIM_ERROR(CUDA_ERROR_PROFILER_DISABLED, "profiler disabled")
    SIM_ERROR(CUDA_ERROR_PROFILER_NOT_INITIALIZED, "profiler not initialized")
    SIM_ERROR(CUDA_ERROR_PROFILER_ALREADY_STARTED, "profiler already started")
    SIM_ERROR(CUDA_ERROR_PROFILER_ALREADY_STOPPED, "profiler already stopped")
    SIM_ERROR(CUDA_ERROR_STUB_LIBRARY, "stub library")
    SIM_ERROR(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
              "call requires newer driver")
    SIM_ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "device unavailable")
    SIM_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected")
    SIM_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal")
    SIM_ERROR(CUDA_ERROR_DEVICE_NOT_LICENSED, "device not licensed")
    SIM_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid")
    SIM_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context")
    SIM_ERROR(CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "context already current")
    SIM_ERROR(CUDA_ERROR_MAP_FAILED, "map failed")
    SIM_ERROR(CUDA_ERROR_UNMAP_FAILED, "unmap failed")
    SIM_ERROR(CUDA_ERROR_ARRAY_IS_MAPPED, "array is mapped")
    SIM_ERROR(CUDA_ERROR_ALREADY_MAPPED, "already mapped")
    SIM_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no binary for gpu")
    SIM_ERROR(CUDA_ERROR_ALREADY_ACQUIRED, "already acquired")
    SIM_ERROR(CUDA_ERROR_NOT_MAPPED, "not mapped")
    SIM_ERROR(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "not mapped as array")
    SIM_ERROR(CUDA_ERROR_NOT_MAPPED_AS_POINTER, "not mapped as pointer")
    SIM_ERROR(CUDA_ERROR_ECC_UNCORRECTABLE, "ecc uncorrectable")
    SIM_ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "unsupported limit")
    SIM_ERROR(CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "context already in use")
    SIM_ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access unsupported")
    SIM_ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed")
    SIM_ERROR(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "invalid graphics context")
    SIM_ERROR(CUDA_ERROR_NVLINK_UNCORRECTABLE, "nvlink uncorrectable")
    SIM_ERROR(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "jit compiler not found")
    SIM_ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "unsupported ptx version")
    SIM_ERROR(CUDA_ERROR_JIT_COMPILATION_DISABLED, "jit compilation disabled")
    SIM_ERROR(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
              "unsupported exec affinity")
    SIM_ERROR(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "unsupported devside sync")
    SIM_ERROR(CUDA_ERROR_CONTAINED, "contained")
    SIM_ERROR(CUDA_ERROR_INVALID_SOURCE, "invalid source")
    SIM_ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found")
    SIM_ERROR(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
              "shared object symbol not found")
    SIM_ERROR(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
              "shared object init failed")
    SIM_ERROR(CUDA_ERROR_OPERATING_SYSTEM, "operating system")
    SIM_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")
    SIM_ERROR(CUDA_ERROR_ILLEGAL_STATE,
              "the operation cannot be performed in the present state")
    SIM_ERROR(CUDA_ERROR_LOSSY_QUERY, "lossy query")
    SIM_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found")
    SIM_ERROR(CUDA_ERROR_NOT_READY, "device not ready")
    SIM_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS,
              "an illegal memory access was encountered")
    SIM_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
              "too many resources requested for launch")
    SIM_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "launch timeout")
    SIM_ERROR(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING,
              "launch incompatible texturing")
    SIM_ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
              "peer access already enabled")
    SIM_ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access not enabled")
    SIM_ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "primary context active")
    SIM_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")
    SIM_ERROR(CUDA_ERROR_ASSERT, "assert")
    SIM_ERROR(CUDA_ERROR_TOO_MANY_PEERS, "too many peers")
    SIM_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
              "part or all of the requested memory range is already "
              "mapped")
    SIM_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
              "pointer does not correspond to a registered memory region")
    SIM_ERROR(CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error")
    SIM_ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "illegal instruction")
    SIM_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address")
    SIM_ERROR(CUDA_ERROR_INVALID_ADDRESS_SPACE, "invalid address space")
    SIM_ERROR(CUDA_ERROR_INVALID_PC, "invalid pc")
    SIM_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure")
    SIM_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
              "too many blocks in cooperative launch")
    SIM_ERROR(CUDA_ERROR_TENSOR_MEMORY_LEAK, "tensor memory leak")
    SIM_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted")
    SIM_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported")
    SIM_ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not ready")
    SIM_ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system driver mismatch")
    SIM_ERROR(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
              "compat not supported on device")
    SIM_ERROR(CUDA_ERROR_MPS_CONNECTION_FAILED, "mps connection failed")
    SIM_ERROR(CUDA_ERROR_MPS_RPC_FAILURE, "mps rpc failure")
    SIM_ERROR(CUDA_ERROR_MPS_SERVER_NOT_READY, "mps server not ready")
    SIM_ERROR(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "mps max clients reached")
    SIM_ERROR(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED,
              "mps max connections reached")
    SIM_ERROR(CUDA_ERROR_MPS_CLIENT_TERMINATED, "mps client terminated")
    SIM_ERROR(CUDA_ERROR_CDP_NOT_SUPPORTED, "cdp not supported")
    SIM_ERROR(CUDA_ERROR_CDP_VERSION_MISMATCH, "cdp version mismatch")
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              "operation not permitted when stream is capturing")
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
              "operation failed due to a previous error during capture")
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE,
              "operation would result in a merge of separate capture "
              "sequences")
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
              "capture was not ended in the same stream as it began")
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
              "capturing stream has unjoined work")
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
              "dependency created on uncaptured work in another stream")
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
              "operation would make the legacy stream depend on a "
              "capturing blocking stream")
    SIM_ERROR(CUDA_ERROR_CAPTURED_EVENT,
              "operation not permitted on an event last recorded in a "
              "capturing stream")
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
              "attempt to terminate a thread-local capture sequence from "
              "another thread")
    SIM_ERROR(CUDA_ERROR_TIMEOUT, "timeout")
    SIM_ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
              "the graph update was not performed because it included "
              "changes which violated constraints specific to "
              "instantiated graph update")
    SIM_ERROR(CUDA_ERROR_EXTERNAL_DEVICE, "external device")
    SIM_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, "cluster misconfiguration")
    SIM_ERROR(CUDA_ERROR_FUNCTION_NOT_LOADED, "function not loaded")
    SIM_ERROR(CUDA_ERROR_INVALID_RESOURCE_TYPE, "invalid resource type")
    SIM_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
              "invalid resource configuration")
    SIM_ERROR(CUDA_ERROR_KEY_ROTATION, "key rotation")
    SIM_ERROR(CUDA_ERROR_UNKNOWN, "unknown error")
};

/* Whichever of name and text is asked for. */
static CUresult sim_error_find(CUresult code, const char **name,
                               const char **text)
{
    const char **place = (name != NULL) ? name : text;
    size_t       i;

    if (place == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < SIM_ARRAY_SIZE(sim_errors); ++i) {
        if (sim_errors[i].code == code) {
            *place = (name != NULL) ? sim_errors[i].name :
                                      sim_errors[i].text;
            return CUDA_SUCCESS;
        }
    }
    *place = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
SIM_ENTRY(cuGetErrorName, (CUresult error, const char **pStr), SIM_ANYTIME,
          sim_error_find(error, pStr, NULL))
SIM_ENTRY(cuGetErrorString, (CUresult error, const char **pStr), SIM_ANYTIME,
          sim_error_find(error, NULL, pStr))
