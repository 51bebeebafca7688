/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all recordings and graphs of the process may hold: host and device bytes
 * together, up to the `memory_mb` key of CGSHIM_DEFAULTS. Any thread.
 */
#ifndef CGS_BUDGET_H
#define CGS_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

/** Take so many bytes. @return false, and nothing taken, where they are more
 *  than is left. */
bool cgs_budget_take(size_t bytes);

/** Take them all the same, or give them back. @{ */
void cgs_budget_force(size_t bytes);
void cgs_budget_give(size_t bytes);
/** @} */

#endif
