/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVTX handles stand for: names of domains and registered strings, each
 * kept once and for good, and the conversion of wide text.
 *
 * Nothing here takes a lock: names and bindings are only ever added, so
 * readers walk them freely and a forked child never meets a lock that a
 * thread of its parent held.
 */
#ifndef CGS_NVTX_NAMES_H
#define CGS_NVTX_NAMES_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/** What a name or a handle belongs to; the kinds do not see each other. */
typedef enum {
    CGS_NVTX_DOMAIN,
    CGS_NVTX_STRING,
    CGS_NVTX_KIND_LAST
} cgs_nvtx_kind_t;

/** One name.  Two equal names of one kind are the same object. */
typedef struct cgs_nvtx_name {
    struct cgs_nvtx_name *next;
    uint32_t             hash;
    uint32_t             index; /**< from 1, in the order of appearance */
    char                 text[];
} cgs_nvtx_name_t;

/** Room for one converted text, so that usual texts need no allocation. */
typedef struct cgs_nvtx_utf8 {
    char *heap;
    int  error; /**< errno as it was */
    char inline_text[512];
} cgs_nvtx_utf8_t;

/**
 * Find or add a name.  Any thread.
 *
 * @param kind  what it names.
 * @param text  UTF-8; copied.  NULL is the empty name.
 * @return the name, valid for the life of the process, or NULL where there is
 *         no memory for it.
 */
const cgs_nvtx_name_t *cgs_nvtx_name_get(cgs_nvtx_kind_t kind,
                                         const char *text);

/**
 * Say what a handle stands for from now on.  Any thread.
 *
 * @param kind    what the handle is.
 * @param owner   the domain within which it is one, or NULL: tools may number
 *                their strings anew in each domain.
 * @param handle  the handle; never looked into.
 * @param name    what it stands for.
 * @return 0, or -ENOMEM.
 */
int cgs_nvtx_handle_bind(cgs_nvtx_kind_t kind, const void *owner,
                         const void *handle, const cgs_nvtx_name_t *name);

/**
 * What a handle stands for.  Any thread.
 *
 * @return the name bound within this owner, else within any other one, else
 *         NULL.
 */
const cgs_nvtx_name_t *cgs_nvtx_handle_name(cgs_nvtx_kind_t kind,
                                            const void *owner,
                                            const void *handle);

/** For a text that may need no conversion: holds nothing. */
static inline void cgs_nvtx_utf8_init(cgs_nvtx_utf8_t *utf8)
{
    utf8->heap  = NULL;
    utf8->error = errno;
}

/**
 * Convert wide text.  What is no character becomes U+FFFD; where there is no
 * memory for a long text it is cut.
 *
 * @param utf8  holds the result until cgs_nvtx_utf8_release().
 * @param wide  NULL is the empty text.
 * @return the converted text, never NULL.
 */
const char *cgs_nvtx_utf8(cgs_nvtx_utf8_t *utf8, const wchar_t *wide);

/**
 * Give back what cgs_nvtx_utf8() may have allocated, and errno. Compilers take
 * malloc() for a function that leaves errno alone, so it is not given back in
 * the function that calls it.
 */
void cgs_nvtx_utf8_release(cgs_nvtx_utf8_t *utf8);

#endif /* CGS_NVTX_NAMES_H */
