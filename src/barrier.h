/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens before a driver function that has no meaning of its own here.
 */
#ifndef CGS_BARRIER_H
#define CGS_BARRIER_H

#include "entries.h"

/**
 * Issue what is held back, and do what the kind asks for. Any thread.
 *
 * @param index Entry of the function that is about to run.
 */
void cgs_barrier(unsigned index, cgs_kind_t kind);

#endif
