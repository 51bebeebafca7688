/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hears the NVTX ranges of the program: the injection that NVTX loads, and the
 * chain to the tool that the user had named there.
 */
#ifndef CGS_NVTX_H
#define CGS_NVTX_H

#include <stdint.h>

/**
 * Where the ranges go.  Every member but `begin` must be set.
 *
 * Each is called in the thread that made the NVTX call, with no lock of this
 * part held, so that it may block, call the driver or make NVTX calls of its
 * own; errno is kept for it.  All strings are valid during the call only.  A
 * `domain` of NULL is NVTX's default domain, a `text` is never NULL ("" if
 * there is none).  Wide text comes as UTF-8, other text byte for byte as the
 * program gave it.
 *
 * A range is pushed or started in the user's own NVTX tool before it is here,
 * and popped or ended here before it is there: what is issued at its end still
 * lies within it.
 */
typedef struct cgs_range_sink {
    /**
     * A library of the program is about to use NVTX: comes once or more before
     * its first range.  May be NULL.
     */
    void (*begin)(void);

    /** A thread opened a range, whether nested in another one or not. */
    void (*push)(const char *domain, const char *text);

    /**
     * The thread closed its innermost open range of this domain.  Comes at
     * most once for each push of the same thread and domain: a stray pop of
     * the program ends here and is not passed on.
     */
    void (*pop)(const char *domain);

    /**
     * A range began that any thread may end.  `id` is unique in the process
     * and never 0.
     */
    void (*start)(const char *domain, const char *text, uint64_t id);

    /** A started range ended: comes at most once for each `id`. */
    void (*end)(uint64_t id);
} cgs_range_sink_t;

/**
 * Make NVTX load this library: remember the tool that NVTX_INJECTION64_PATH
 * names and name ourselves there instead.  A child process that starts from
 * this environment finds the same tool again, in _CGSHIM_NVTX_CHAIN.
 *
 * Costs one copy of the environment's pointers: nothing is opened here.  To be
 * called once, from the library's constructor, before a second thread exists.
 * Where it is not called, a program that names this library in
 * NVTX_INJECTION64_PATH gets the tool of _CGSHIM_NVTX_CHAIN as if directly.
 *
 * @param sink  where ranges go; must live as long as the process.
 */
void cgs_nvtx_setup(const cgs_range_sink_t *sink);

#endif /* CGS_NVTX_H */
