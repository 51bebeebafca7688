/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Priority, access-policy window and memory-sync domain of streams.
 */
#include "stream.h"

#include <string.h>

static const CUlaunchMemSyncDomainMap default_map = {
    CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT, CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE
};

size_t cgs_stream_attr_size(CUstreamAttrID id)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        return sizeof(int);
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return 28; /* the rest is padding */
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return sizeof(CUlaunchMemSyncDomain);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return sizeof(CUlaunchMemSyncDomainMap);
    default:
        return 0;
    }
}

static bool ask(CUstream stream, CUstreamAttrID id, CUstreamAttrValue *value)
{
    memset(value, 0, sizeof(*value));
    return CGS_REAL(cuStreamGetAttribute)(stream, id, value) == CUDA_SUCCESS;
}

void cgs_stream_ask(CUstream stream, cgs_stream_attrs_t *attrs)
{
    CUstreamAttrValue value;

    memset(attrs, 0, sizeof(*attrs));
    attrs->domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
    attrs->map    = default_map;
    if (ask(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value)) {
        attrs->priority = value.priority;
    }
    if (ask(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value)) {
        attrs->window = value.accessPolicyWindow;
    }
    if (ask(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value)) {
        attrs->domain = value.memSyncDomain;
    }
    if (ask(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value) &&
        (value.memSyncDomainMap.default_ != value.memSyncDomainMap.remote)) {
        attrs->map = value.memSyncDomainMap;
    }
}

static CUresult tell(CUgraphNode node, CUlaunchAttributeID id,
                     const CUlaunchAttributeValue *value)
{
    return CGS_REAL(cuGraphKernelNodeSetAttribute)(node, id, value);
}

CUresult cgs_stream_decorate(const cgs_stream_attrs_t *attrs,
                             CUgraphNode node)
{
    CUlaunchAttributeValue value;
    CUresult               result = CUDA_SUCCESS;

    memset(&value, 0, sizeof(value));
    if (attrs->priority != 0) {
        value.priority = attrs->priority;
        result         = tell(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    }
    if ((result == CUDA_SUCCESS) && (attrs->window.num_bytes > 0)) {
        value.accessPolicyWindow = attrs->window;
        result = tell(node, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
    }
    if ((result == CUDA_SUCCESS) &&
        (attrs->domain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT)) {
        value.memSyncDomain = attrs->domain;
        result = tell(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value);
    }
    if ((result == CUDA_SUCCESS) &&
        ((attrs->map.default_ != default_map.default_) ||
         (attrs->map.remote != default_map.remote))) {
        value.memSyncDomainMap = attrs->map;
        result = tell(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value);
    }
    return result;
}
