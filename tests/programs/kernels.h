/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs and the kernels they launch agree on: the structs that are
 * passed by value.
 */
#ifndef KRN_KERNELS_H
#define KRN_KERNELS_H

#include <stdint.h>


/* Holes between the members on purpose: padding is argument bytes too. */
typedef struct krn_shape {
    uint32_t width;
    uint64_t offset;
    double   factor;
    uint8_t  flags[3];
    uint16_t rounds;
} krn_shape_t;


enum {
    KRN_TABLE_WORDS = 512
};


/* 2 KB, half of what a kernel of the older architectures may take. */
typedef struct krn_table {
    uint32_t word[KRN_TABLE_WORDS];
} krn_table_t;

#endif
