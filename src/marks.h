/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions that begin and end at calls of the program, without NVTX: by rules
 * (`from`, `to`, `calls`, `between`), and those that are found by themselves
 * (CGSHIM_AUTO, watch.c).
 *
 * Ranges of NVTX come first: while one is open that is a region, or that the
 * gate sends plain, nothing here begins.
 *
 * Where a report is asked for and no region, the first calls are looked at too,
 * so that the report can say what automatic regions would come to.
 */
#ifndef CGS_MARKS_H
#define CGS_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "op.h"

/** Rules with `from` or `between` that are taken. */
#define CGS_MARKS_RULES 32

/** Kernels that are named where no rule begins with them. */
#define CGS_MARKS_KERNELS 6

/** Whether the configuration asks for such regions; constant after
 *  cgs_marks_start(), which other threads' calls may come during. */
extern bool cgs_marks_on;

static inline bool cgs_marks_are_on(void)
{
    return __builtin_expect(__atomic_load_n(&cgs_marks_on, __ATOMIC_ACQUIRE),
                            0);
}

/** After a successful cuInit. */
void cgs_marks_start(void);

/** Before a call that puts work on a stream is looked at: it may be the first
 *  of a region of this thread, or the first after one. */
void cgs_marks_before(const cgs_call_t *call);

/** The call has been dealt with.
 *  @param over The open run has had its last call, or is no longer replayed. */
void cgs_marks_after(const cgs_call_t *call, bool over);

/** Before a call that nothing may be held back across. */
void cgs_marks_barrier(unsigned index);

/** A range of NVTX begins: what was found by itself ends. */
void cgs_marks_range(void);

/** What was seen, for the report. */
typedef struct {
    uint64_t looked_at; /**< calls, where nobody asked for automatic regions */
    uint64_t repeating; /**< of these, those of loops */
    size_t   num_kernels;
    char     *kernels[CGS_MARKS_KERNELS]; /**< that no rule begins with; live
                                               on */
} cgs_marks_seen_t;

/** Whether a kernel came with which a rule begins. Any thread. */
bool cgs_marks_has_seen(const cgs_rule_t *rule);

/** Any thread. */
void cgs_marks_seen(cgs_marks_seen_t *seen);

/** What is known of kernels by their handles is to be forgotten. Any thread. */
void cgs_marks_forget(void);

#endif
