/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges for Python programs whose framework has none to offer: built as
 * a shared library, loaded through ctypes by gpu_bench.py.
 */
#include <nvtx3/nvToolsExt.h>

int gpu_range_push(const char *name);
int gpu_range_pop(void);

int gpu_range_push(const char *name)
{
    return nvtxRangePushA(name);
}

int gpu_range_pop(void)
{
    return nvtxRangePop();
}
