/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls and graphs cost, in nanoseconds: measured on one H200 (driver
 * 580.159, CUDA 13.0), and shown in README under "Measured". The cutting of
 * chunks and the profile's forecast go by them.
 */
#ifndef CGS_COSTS_H
#define CGS_COSTS_H

/** What a call costs the program when it is swallowed, cudart's own work
 *  included. */
#define CGS_COST_SWALLOW_NS 60
/** What a launch costs the program more when it is made. */
#define CGS_COST_LAUNCH_NS  3000
/** The launch of a graph. */
#define CGS_COST_GRAPH_NS   1200
/** A kernel of a graph takes at least so long on the device, for the choice of
 *  chunks. */
#define CGS_COST_KERNEL_NS  1000
/** What one graph more costs the device. */
#define CGS_COST_NEXT_GRAPH_NS 1250

/** A tiny kernel in a chain that is a graph: 237.5 us for 256 of them, where
 *  nothing changes and where all pointers do. */
#define CGS_COST_TINY_KERNEL_NS 930
/** What a wait after each run adds to a run: 22.7 against 15.8, 67.2 against
 *  59.8 and 245.0 against 236.5 us for 16, 64 and 256 kernels. */
#define CGS_COST_WAIT_NS    7400

/** The part of what a row of calls gains that may be lost by launching its
 *  graphs late: half where the program waits in each run, and all where it does
 *  not, since it may do so now and then. */
#define CGS_COST_LATENESS   2

#endif
