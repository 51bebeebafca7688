/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of each kernel handle: where its arguments lie, which
 * attributes the program has set, and whether a graph uses it.
 */
#ifndef CGS_FUNCTION_H
#define CGS_FUNCTION_H

#include <stdbool.h>

#include "op.h"

/**
 * Where a kernel's arguments lie. Asks the driver the first time. Any thread.
 *
 * @param function A CUfunction or a CUkernel.
 * @param reason   Set to why there is no answer.
 *
 * @return Layout, which is there for good, or NULL.
 */
const cgs_layout_t *cgs_function_layout(CUfunction function,
                                        const char **reason);

/**
 * The limits of launches as they are now; they change with the attributes that
 * cgs_function_attribute() is about. Calls the driver. Any thread.
 *
 * @param shape A launch that the driver has taken.
 */
cgs_function_limits_t cgs_function_limits(const cgs_layout_t *layout,
                                          const cgs_launch_shape_t *shape);

/** Note that a recording holds the kernel. Any thread. */
void cgs_function_recorded(CUfunction function);

/** Whether it was: then it is loaded, and its launches are as any. Any
 *  thread. */
bool cgs_function_was_recorded(CUfunction function);

/** Name of a kernel. Calls the driver. Any thread.
 *  @return A string that lives on, the same one for the same name. */
const char *cgs_function_name(CUfunction function);

/** What setting an attribute means to the graphs. */
typedef enum {
    CGS_ATTRIBUTE_SAME,   /**< it has this value already */
    CGS_ATTRIBUTE_UNUSED, /**< new, but no graph uses the kernel */
    CGS_ATTRIBUTE_IN_USE  /**< new, and a graph may use the kernel */
} cgs_attribute_change_t;

/**
 * What it would mean to set an attribute of a kernel. Any thread.
 *
 * @param function A CUfunction or a CUkernel.
 * @param alias    The CUfunction of a CUkernel, or NULL.
 * @param device   The device it is set for, or -1.
 */
cgs_attribute_change_t cgs_function_attribute(CUfunction function,
                                              CUfunction alias,
                                              CUfunction_attribute attribute,
                                              int value, CUdevice device);

/** Note that two handles, a CUkernel and its CUfunction, are of one kernel: an
 *  attribute may be set through either. Any thread. */
void cgs_function_link(CUfunction handle, CUfunction twin);

/** Remember that an attribute was set. Any thread. */
void cgs_function_set_attribute(CUfunction function,
                                CUfunction_attribute attribute, int value,
                                CUdevice device);

/** Forget all: handle values may mean other kernels now. Any thread. */
void cgs_function_forget_all(void);

#endif
