/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what the device executed, as CUPTI's activity records tell it: each
 * kernel by name, copies by kind, sets. The driver loads this library where
 * CUDA_INJECTION64_PATH names it, and the counts are written at exit to the
 * file that CUPTI_COUNT_FILE names, sorted, so that two runs can be compared
 * with cmp. Kernels of a graph are recorded one by one, as launched ones are.
 */
#include <cupti.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUPTI_COUNT_BUFFER (4u << 20)
#define CUPTI_COUNT_SLOTS  8192u /* names; a power of two */

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 cupti_count_kernel_t;
typedef CUpti_ActivityMemcpy6  cupti_count_copy_t;
#else
typedef CUpti_ActivityKernel9  cupti_count_kernel_t;
typedef CUpti_ActivityMemcpy5  cupti_count_copy_t;
#endif

typedef struct cupti_count_entry {
    char     *name;
    uint64_t count;
} cupti_count_entry_t;

int InitializeInjection(void);

/* Guards the table: CUPTI may hand over buffers from several threads. */
static pthread_mutex_t     cupti_count_lock = PTHREAD_MUTEX_INITIALIZER;
static cupti_count_entry_t cupti_count_table[CUPTI_COUNT_SLOTS];
static uint64_t            cupti_count_lost; /* records or names without room */

/* Adds one to a name's count. Called with the lock held. */
static void cupti_count_add(const char *name)
{
    uint32_t hash = 2166136261u;
    const unsigned char *c;
    uint32_t i, slot;

    for (c = (const unsigned char*)name; *c != '\0'; ++c) {
        hash = (hash ^ *c) * 16777619u;
    }
    for (i = 0; i < CUPTI_COUNT_SLOTS; ++i) {
        slot = (hash + i) & (CUPTI_COUNT_SLOTS - 1);
        if (cupti_count_table[slot].name == NULL) {
            cupti_count_table[slot].name = strdup(name);
        }
        if (cupti_count_table[slot].name == NULL) {
            break;
        }
        if (!strcmp(cupti_count_table[slot].name, name)) {
            ++cupti_count_table[slot].count;
            return;
        }
    }
    ++cupti_count_lost;
}

static void cupti_count_record(const CUpti_Activity *record)
{
    const char *name;
    char text[64];

    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        name = ((const cupti_count_kernel_t*)record)->name;
        cupti_count_add((name != NULL) ? name : "(kernel without a name)");
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        snprintf(text, sizeof(text), "[copy kind %u]",
                 (unsigned)((const cupti_count_copy_t*)record)->copyKind);
        cupti_count_add(text);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        cupti_count_add("[set]");
        break;
    default:
        break;
    }
}

static void CUPTIAPI cupti_count_requested(uint8_t **buffer, size_t *size,
                                           size_t *max_records)
{
    void *memory = NULL;

    /* a NULL buffer makes CUPTI drop records and say so */
    if (posix_memalign(&memory, 8, CUPTI_COUNT_BUFFER) != 0) {
        memory = NULL;
    }
    *buffer      = memory;
    *size        = (memory != NULL) ? CUPTI_COUNT_BUFFER : 0;
    *max_records = 0;
}

static void CUPTIAPI cupti_count_completed(CUcontext context, uint32_t stream,
                                           uint8_t *buffer, size_t size,
                                           size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t dropped         = 0;

    (void)size;
    pthread_mutex_lock(&cupti_count_lock);
    while ((valid > 0) && (cuptiActivityGetNextRecord(buffer, valid, &record) ==
                           CUPTI_SUCCESS)) {
        cupti_count_record(record);
    }
    if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) ==
        CUPTI_SUCCESS) {
        cupti_count_lost += dropped;
    }
    pthread_mutex_unlock(&cupti_count_lock);
    free(buffer);
}

static int cupti_count_compare(const void *a, const void *b)
{
    const cupti_count_entry_t *x = a, *y = b;

    if ((x->name == NULL) || (y->name == NULL)) {
        return (x->name == NULL) - (y->name == NULL);
    }
    return strcmp(x->name, y->name);
}

static void cupti_count_write(void)
{
    const char *name = getenv("CUPTI_COUNT_FILE");
    FILE *file;
    uint32_t i;

    cuptiActivityFlushAll(1);
    file = (name != NULL) ? fopen(name, "w") : NULL;
    if (file == NULL) {
        fprintf(stderr, "cupti_count: CUPTI_COUNT_FILE cannot be written\n");
        return;
    }
    pthread_mutex_lock(&cupti_count_lock);
    qsort(cupti_count_table, CUPTI_COUNT_SLOTS, sizeof(*cupti_count_table),
          cupti_count_compare);
    for (i = 0; i < CUPTI_COUNT_SLOTS; ++i) {
        if (cupti_count_table[i].name != NULL) {
            fprintf(file, "%s %llu\n", cupti_count_table[i].name,
                    (unsigned long long)cupti_count_table[i].count);
        }
    }
    if (cupti_count_lost > 0) {
        fprintf(file, "(lost) %llu\n", (unsigned long long)cupti_count_lost);
    }
    pthread_mutex_unlock(&cupti_count_lock);
    fclose(file);
}

/**
 * What the driver calls once while it initialises.
 *
 * @return 1, also where CUPTI cannot be had: the program is to run all the
 *         same, and the missing file of counts tells.
 */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET
    };
    CUptiResult result;
    const char *text;
    size_t i;

    result = cuptiActivityRegisterCallbacks(cupti_count_requested,
                                            cupti_count_completed);
    for (i = 0; (result == CUPTI_SUCCESS) &&
                (i < sizeof(kinds) / sizeof(kinds[0])); ++i) {
        result = cuptiActivityEnable(kinds[i]);
    }
    if (result != CUPTI_SUCCESS) {
        text = "unknown error";
        cuptiGetResultString(result, &text);
        fprintf(stderr, "cupti_count: CUPTI: %s\n", text);
        return 1;
    }
    atexit(cupti_count_write);
    return 1;
}
