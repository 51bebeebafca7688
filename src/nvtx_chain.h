/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVTX tool of the user's own: which one it is, in this process and in
 * those that it starts, and its library.
 */
#ifndef CGS_NVTX_CHAIN_H
#define CGS_NVTX_CHAIN_H

#include <stdbool.h>

/**
 * Take the place of the user's tool in the environment, for this process and
 * its children. Once, before a second thread exists; changes nothing where
 * there is no memory for it.
 */
void cgs_nvtx_chain_setup(void);

/**
 * Open the tool, if there is one. Any thread; runs its constructors.
 *
 * @return whether it is open.
 */
bool cgs_nvtx_chain_open(void);

/** A symbol of the tool, or NULL. To be called once it is open. */
void *cgs_nvtx_chain_symbol(const char *name);

/** Log that there is something wrong with the tool: one line a process. */
void cgs_nvtx_chain_blame(const char *reason);

#endif /* CGS_NVTX_CHAIN_H */
