/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the recorded calls of a region use, for who asks.
 *
 * All functions are called under the lock of the recording's region, and call
 * the driver.
 */
#ifndef CGS_BUFFERS_H
#define CGS_BUFFERS_H

#include "recording.h"

/** Allocations in the order of first use; all zero is the empty list. */
typedef struct {
    cgshim_buffer_t *buffer; /**< `size` is not set */
    size_t          num, capacity;
    bool            failed;  /**< memory ran out: they are not all */
} cgs_buffers_t;

/** What an address is. */
typedef enum {
    CGS_BUFFER_NONE,   /**< not one of memory that the driver knows */
    CGS_BUFFER_FOUND,
    CGS_BUFFER_UNTOLD  /**< the driver does not say, or not how large it is */
} cgs_buffer_found_t;

/**
 * Find the allocation that the driver knows at an address.
 *
 * @param ctx    Context of who uses the address.
 * @param buffer Its base, bytes and memory are set.
 * @param device Set to the device that it is on.
 */
cgs_buffer_found_t cgs_buffers_look_up(uint64_t address, CUcontext ctx,
                                       cgshim_buffer_t *buffer, int *device);

/** Add the allocations that the calls use. */
void cgs_buffers_collect(const cgs_recording_t *recording,
                         cgs_buffers_t *buffers);

/** Free the list; it is the empty one after that. */
void cgs_buffers_release(cgs_buffers_t *buffers);

/**
 * Find the allocation that one argument of one call lies in.
 *
 * @param name     Of a kernel or of a kind of op.
 * @param which    Of the calls of that name, from 0.
 * @param argument As in cgs_op_use_t.
 * @param buffer   Set to it, all but `size`.
 *
 * @return false where there is no such call, or no address in the argument.
 */
bool cgs_buffers_find(const cgs_recording_t *recording, const char *name,
                      size_t which, int argument, cgshim_buffer_t *buffer);

/** How many calls of that name there are. */
size_t cgs_buffers_count_calls(const cgs_recording_t *recording,
                               const char *name);

#endif
