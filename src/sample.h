/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What something takes, from a few of its times that chance has chosen: a mean
 * that single long ones, such as a pause of the program, do not spoil.
 */
#ifndef CGS_SAMPLE_H
#define CGS_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/** Times that are kept. */
#define CGS_SAMPLE_SIZE 32

/** All zero is the empty one. Owned by whoever adds to it. */
typedef struct {
    uint64_t num;    /**< times that were added */
    uint32_t chance; /**< state of the generator */
    uint64_t ns[CGS_SAMPLE_SIZE];
} cgs_sample_t;

/** Add a time; each one so far is then kept with the same chance. */
void cgs_sample_add(cgs_sample_t *sample, uint64_t ns);

/**
 * The mean of the middle half of what is kept.
 *
 * @param least Times that must have been added.
 * @param ns    Set to the mean.
 *
 * @return false where there are fewer; then nothing is set.
 */
bool cgs_sample_mean(const cgs_sample_t *sample, uint64_t least,
                     uint64_t *ns);

#endif
