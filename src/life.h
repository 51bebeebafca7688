/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the library in a process: load, first use, stand-down, fork,
 * exit.
 */
#ifndef CGS_LIFE_H
#define CGS_LIFE_H

#include <stdbool.h>

/**
 * Whether calls need a look: not 0 while a region is open or a call must be
 * counted. Assembly tests it. Changed by cgs_life_gate_add() alone.
 */
extern int cgs_gate;

/** The same for C. Who finds the gate closed may make its call at once: what
 *  was issued before it was closed must be seen by then, so this acquires. */
static inline bool cgs_gate_is_open(void)
{
    return __builtin_expect(__atomic_load_n(&cgs_gate, __ATOMIC_ACQUIRE) != 0,
                            0);
}

/** Open (+1) or close (-1) the gate once. Any thread. */
void cgs_life_gate_add(int delta);

/** Read the configuration, at the first sight of CUDA or NVTX. Any thread. */
void cgs_life_start(void);

/** Have the report written at exit; after a successful cuInit. Any thread. */
void cgs_life_driver_ready(void);

/** Whether the shim does nothing more in this process. Any thread. */
bool cgs_life_is_off(void);

/** Whether ranges open no region: it does nothing, or the program is profiled
 *  instead. Any thread. */
bool cgs_life_has_no_regions(void);

/** Whether the report was written and the program is about to end. */
bool cgs_life_has_ended(void);

/** Whether this process is the child of a fork: touch nothing of ours. */
bool cgs_life_is_child(void);

/**
 * Issue what is held back and do nothing more in this process.
 *
 * @param reason One line for the report, a string that lives on.
 */
void cgs_life_stand_down(const char *reason);

/** Open no more regions; those that are open go on to their end. Any thread,
 *  with any lock held. The reason is as above. */
void cgs_life_refuse(const char *reason);

/** Why nothing is replayed in this process, or NULL. Any thread. */
const char *cgs_life_note(void);

#endif
