/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that the driver works on and graphs that are verified: never both at
 * a time, for what a call writes while a graph is verified would be undone.
 *
 * Kept only where the configuration asks for verifying; then every call takes
 * a look, also where no region is open.
 */
#ifndef CGS_TURNS_H
#define CGS_TURNS_H

#include <stdbool.h>

#include "thread.h"

/** Whether turns are kept. Constant once the configuration was read. */
extern bool cgs_turns_kept;

/** Keep turns from here on. Before any call of the program's. */
void cgs_turns_start(void);

/** What the next three do where turns are kept. @{ */
void cgs_turns_begin_call(void);
void cgs_turns_end_call(void);
void cgs_turns_wait_for_verifier(void);
/** @} */

/** Around each call of the program's that puts work on a stream or copies
 *  memory, and around the issuing of what was held back. Waits while a graph is
 *  verified. They nest. Any thread. @{ */
static inline void cgs_turns_begin(void)
{
    if (__builtin_expect(cgs_turns_kept, 0)) {
        cgs_turns_begin_call();
    }
}

static inline void cgs_turns_end(void)
{
    if (__builtin_expect(cgs_turns_kept, 0)) {
        cgs_turns_end_call();
    }
}
/** @} */

/** Before any other call: waits while a graph is verified. Any thread. */
static inline void cgs_turns_wait(void)
{
    if (__builtin_expect(cgs_turns_kept, 0)) {
        cgs_turns_wait_for_verifier();
    }
}

/**
 * Have other threads' calls wait, and wait for those that are being made. Not
 * between cgs_turns_begin() and cgs_turns_end(). Where two threads verify, one
 * waits for the other.
 *
 * @return false if some did not end in a second, or had not the last time and
 *         there was always one since. The turn is taken even so.
 */
bool cgs_turns_take(void);

/** The graph is verified. */
void cgs_turns_give(void);

#endif
