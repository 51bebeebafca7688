/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NVTX tool such as a user may have, which counts its calls.
 *
 * TOOL_MODE holds words: `fail` its initialisation fails after it has filled
 * the tables; `late` it fills them in tool_fill() only; `once` it knows the
 * first DSO only; `bare` it has RangePushA, RangePop and the ends, nothing
 * else; `zero` its range ids start at 0; `noext` it refuses extensions.
 * Under TOOL_FILE it writes `inits N pushes N` there at exit.
 */
#ifndef NVTX_TOOL_H
#define NVTX_TOOL_H

#include <stdint.h>

#define TOOL_EXPORT __attribute__((visibility("default")))

/** Its functions, and what it returns. */
typedef struct tool_state {
    unsigned   inits;
    unsigned   extensions;
    unsigned   push, push_wide, push_event, pop;
    unsigned   domain_push, domain_pop;
    unsigned   start, end, domain_end;
    unsigned   create, destroy, strings;
    unsigned   mark, domain_mark;
    uint64_t   last_end;
    const void *last_domain;
} tool_state_t;

/** What a push and a pop of the tool return, plus the number of the call. */
#define TOOL_LEVEL 1000

TOOL_EXPORT tool_state_t *tool_get(void);
TOOL_EXPORT void tool_fill(void);

#endif
