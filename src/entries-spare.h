/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the entry table that C and assembly share. */
#ifndef CGS_ENTRIES_SPARE_H
#define CGS_ENTRIES_SPARE_H

#include "entries-count.h" /* CGS_NUM_ENTRIES, made from cuda.h */

/* Entries for driver functions that this cuda.h does not know. */
#define CGS_NUM_SPARE  512
/* Bytes of code between one spare entry and the next. */
#if defined(__aarch64__)
#define CGS_SPARE_SIZE 64
#else
#define CGS_SPARE_SIZE 32
#endif

#endif
