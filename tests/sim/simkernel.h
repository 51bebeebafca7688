/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a program gives the simulated driver the bodies of its kernels.
 *
 * The simulated driver reads the names and parameters of kernels from PTX
 * text and looks for the body of kernel NAME as the global symbol simk_NAME,
 * so such a program is linked with -rdynamic. On a real driver nobody calls
 * these functions.
 *
 * A variable of the module (.global NAME) lives in the program's symbol
 * simg_NAME when there is one, so that a body can reach it by that name; if
 * not, in device memory of its own. Either way its PTX initial value is stored
 * when the module is loaded.
 */
#ifndef SIMKERNEL_H
#define SIMKERNEL_H

/** Shape of one launch. */
typedef struct {
    unsigned grid[3];      /**< blocks in x, y, z */
    unsigned block[3];     /**< threads of a block in x, y, z */
    unsigned shared_bytes; /**< dynamic shared memory of a block, bytes */
} simk_grid_t;

/**
 * Runs a whole grid: all threads of all blocks.
 *
 * @param grid   shape of the launch.
 * @param params params[i] points at the value of parameter i.
 *
 * Called from any thread, for several launches at once if no dependency
 * orders them. Must not call the driver.
 */
typedef void (*simk_body_t)(const simk_grid_t *grid, void *const *params);

#endif
