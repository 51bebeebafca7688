/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that uses NVTX by a copy of its own.
 */
#include "user.h"

#include <nvtx3/nvToolsExt.h>
#if defined(__has_include) && __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>
#endif

int nvtx_user_push(const char *text)
{
    return nvtxRangePushA(text);
}

int nvtx_user_pop(void)
{
    return nvtxRangePop();
}

int nvtx_user_is_enabled(void)
{
#ifdef NVTX3EXT_CBID_nvtxDomainIsEnabled
    return nvtxDomainIsEnabled(NULL);
#else
    return -1;
#endif
}

int nvtx_user_push_payload(void)
{
#ifdef NVTX3EXT_CBID_nvtxRangePushPayload
    return nvtxRangePushPayload(NULL, NULL, 0);
#else
    return -1;
#endif
}
