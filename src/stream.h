/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What work takes from its stream without being told: a node of a graph has no
 * stream, so it must be told.
 */
#ifndef CGS_STREAM_H
#define CGS_STREAM_H

#include <stdbool.h>

#include "entries.h"

typedef struct {
    int                      priority;
    CUaccessPolicyWindow     window; /**< of no bytes where there is none */
    CUlaunchMemSyncDomain    domain;
    CUlaunchMemSyncDomainMap map;
} cgs_stream_attrs_t;

/** Ask a stream that is alive. What it does not tell is as by default. */
void cgs_stream_ask(CUstream stream, cgs_stream_attrs_t *attrs);

/** Bytes that mean something in an attribute that nodes hold as well, 0 for any
 *  other. */
size_t cgs_stream_attr_size(CUstreamAttrID id);

/** Tell a kernel node. */
CUresult cgs_stream_decorate(const cgs_stream_attrs_t *attrs,
                             CUgraphNode node);

#endif
