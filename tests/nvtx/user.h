/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that uses NVTX by a copy of its own, as each DSO of a program
 * does.
 */
#ifndef NVTX_USER_H
#define NVTX_USER_H

/** Push and pop; return what NVTX returns. */
__attribute__((visibility("default"))) int nvtx_user_push(const char *text);
__attribute__((visibility("default"))) int nvtx_user_pop(void);

/** nvtxDomainIsEnabled() of the payload extension; -1 where it is unknown. */
__attribute__((visibility("default"))) int nvtx_user_is_enabled(void);

/** nvtxRangePushPayload(); -1 where it is unknown. */
__attribute__((visibility("default"))) int nvtx_user_push_payload(void);

#endif
