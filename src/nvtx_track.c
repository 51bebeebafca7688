/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which NVTX ranges are open.
 */
#include "nvtx_track.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CGS_NVTX_DEPTHS  16u  /* domains whose depth needs no allocation */
#define CGS_NVTX_BUCKETS 256u

/* Keys of a place without an open range.  Any number may be a tool's range
 * id, zero included, so these two are ones that no counter reaches. */
#define CGS_NVTX_KEY_FREE UINT64_C(0xd1b54a32d192ed03)
#define CGS_NVTX_KEY_BUSY UINT64_C(0xd1b54a32d192ed04)

/* Owned by its thread.  Small enough for the static TLS block, which spares
 * each push a call. */
static __thread struct {
    uint32_t depth[CGS_NVTX_DEPTHS];
    uint32_t *more;   /* of the domains after those in `depth` */
    uint32_t num_more;
} cgs_nvtx_thread __attribute__((tls_model("initial-exec")));

static pthread_once_t cgs_nvtx_thread_once = PTHREAD_ONCE_INIT;
static pthread_key_t  cgs_nvtx_thread_key;
static bool           cgs_nvtx_thread_key_valid; /* written in the once */

/* Places are added, filled and emptied, but never leave their list. */
static _Atomic(cgs_nvtx_range_t *) cgs_nvtx_ranges[CGS_NVTX_BUCKETS];

static void cgs_nvtx_thread_exit(void *more)
{
    /* Destructors that run after this one may still push. */
    cgs_nvtx_thread.more     = NULL;
    cgs_nvtx_thread.num_more = 0;
    free(more);
}

static void cgs_nvtx_thread_init(void)
{
    cgs_nvtx_thread_key_valid =
        (pthread_key_create(&cgs_nvtx_thread_key, cgs_nvtx_thread_exit) == 0);
}

static int cgs_nvtx_thread_grow(uint32_t index)
{
    uint32_t num_more = 2 * CGS_NVTX_DEPTHS;
    uint32_t *more;

    while (num_more <= index) {
        num_more *= 2;
    }

    pthread_once(&cgs_nvtx_thread_once, cgs_nvtx_thread_init);
    more = calloc(num_more, sizeof(*more));
    if (more == NULL) {
        return -ENOMEM;
    }
    if (!cgs_nvtx_thread_key_valid ||
        (pthread_setspecific(cgs_nvtx_thread_key, more) != 0)) {
        free(more); /* rather not counted than lost at the thread's end */
        return -ENOMEM;
    }

    if (cgs_nvtx_thread.more != NULL) {
        memcpy(more, cgs_nvtx_thread.more,
               cgs_nvtx_thread.num_more * sizeof(*more));
        free(cgs_nvtx_thread.more);
    }
    cgs_nvtx_thread.more     = more;
    cgs_nvtx_thread.num_more = num_more;
    return 0;
}

/* NULL where the calling thread has no counter for this domain yet. */
static uint32_t *cgs_nvtx_depth(uint32_t domain)
{
    if (domain < CGS_NVTX_DEPTHS) {
        return &cgs_nvtx_thread.depth[domain];
    }
    domain -= CGS_NVTX_DEPTHS;
    return (domain < cgs_nvtx_thread.num_more) ?
           &cgs_nvtx_thread.more[domain] : NULL;
}

int cgs_nvtx_depth_push(uint32_t domain)
{
    uint32_t *depth = cgs_nvtx_depth(domain);
    int status;

    if (depth == NULL) {
        status = cgs_nvtx_thread_grow(domain - CGS_NVTX_DEPTHS);
        if (status != 0) {
            return status;
        }
        depth = cgs_nvtx_depth(domain);
    }
    ++*depth;
    return 0;
}

bool cgs_nvtx_depth_pop(uint32_t domain)
{
    uint32_t *depth = cgs_nvtx_depth(domain);

    if ((depth == NULL) || (*depth == 0)) {
        return false;
    }
    --*depth;
    return true;
}

static _Atomic(cgs_nvtx_range_t *) *cgs_nvtx_range_head(uint64_t key)
{
    return &cgs_nvtx_ranges[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 56];
}

_Static_assert(CGS_NVTX_BUCKETS == 1u << (64 - 56),
               "cgs_nvtx_range_head takes the upper bits");

cgs_nvtx_range_t *cgs_nvtx_range_claim(uint64_t key)
{
    _Atomic(cgs_nvtx_range_t *) *head = cgs_nvtx_range_head(key);
    cgs_nvtx_range_t *range;
    uint64_t expected;

    for (range = atomic_load_explicit(head, memory_order_acquire);
         range != NULL; range = range->next) {
        expected = CGS_NVTX_KEY_FREE;
        if (atomic_compare_exchange_strong_explicit(&range->key, &expected,
                                                    CGS_NVTX_KEY_BUSY,
                                                    memory_order_acquire,
                                                    memory_order_relaxed)) {
            return range;
        }
    }

    range = malloc(sizeof(*range));
    if (range == NULL) {
        return NULL;
    }
    atomic_init(&range->key, CGS_NVTX_KEY_BUSY);
    range->next = atomic_load_explicit(head, memory_order_acquire);
    while (!atomic_compare_exchange_weak_explicit(head, &range->next, range,
                                                  memory_order_release,
                                                  memory_order_acquire)) {
    }
    return range;
}

void cgs_nvtx_range_publish(cgs_nvtx_range_t *range, uint64_t key)
{
    atomic_store_explicit(&range->key, key, memory_order_release);
}

int cgs_nvtx_range_take(uint64_t key, uint64_t *id_p, bool *ours_p)
{
    cgs_nvtx_range_t *range;
    uint64_t expected;

    if ((key == CGS_NVTX_KEY_FREE) || (key == CGS_NVTX_KEY_BUSY)) {
        return -ENOENT;
    }

    for (range = atomic_load_explicit(cgs_nvtx_range_head(key),
                                      memory_order_acquire);
         range != NULL; range = range->next) {
        expected = key;
        if (atomic_compare_exchange_strong_explicit(&range->key, &expected,
                                                    CGS_NVTX_KEY_BUSY,
                                                    memory_order_acquire,
                                                    memory_order_relaxed)) {
            *id_p   = range->id;
            *ours_p = range->ours;
            atomic_store_explicit(&range->key, CGS_NVTX_KEY_FREE,
                                  memory_order_release);
            return 0;
        }
    }
    return -ENOENT;
}
