/* SPDX-License-Identifier: Apache-2.0 */
/* Counting allocations: functions of a library that may be preloaded. */
#ifndef ALC_ALLOCATIONS_H
#define ALC_ALLOCATIONS_H

/* Begins to count at zero. */
void alc_begin(void);

/* How many there were; on stderr where the first of them was made. */
unsigned long alc_end(void);

#endif
