/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVTX handles stand for: lists that only grow, with atomic heads.
 */
#include "nvtx_names.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CGS_NVTX_NAME_BUCKETS   1024u
#define CGS_NVTX_HANDLE_BUCKETS 4096u
#define CGS_NVTX_REPLACEMENT    0xfffdu

typedef struct cgs_nvtx_handle {
    struct cgs_nvtx_handle           *next;
    const void                       *owner;
    const void                       *handle;
    /* Changes where a tool gives the handle of a destroyed domain again. */
    _Atomic(const cgs_nvtx_name_t *) name;
} cgs_nvtx_handle_t;

typedef _Atomic(cgs_nvtx_name_t *)   cgs_nvtx_name_head_t;
typedef _Atomic(cgs_nvtx_handle_t *) cgs_nvtx_handle_head_t;

/* Written by one thread at a time through compare-and-exchange; an element
 * never changes its place once it is in a list. */
static struct {
    cgs_nvtx_name_head_t   names[CGS_NVTX_NAME_BUCKETS];
    cgs_nvtx_handle_head_t handles[CGS_NVTX_HANDLE_BUCKETS];
    atomic_uint            count;
} cgs_nvtx_kinds[CGS_NVTX_KIND_LAST];

static uint32_t cgs_nvtx_text_hash(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *text != '\0'; ++text) {
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    }
    return hash;
}

static cgs_nvtx_name_t *
cgs_nvtx_name_find(cgs_nvtx_name_t *name, uint32_t hash, const char *text)
{
    while ((name != NULL) &&
           ((name->hash != hash) || (strcmp(name->text, text) != 0))) {
        name = name->next;
    }
    return name;
}

const cgs_nvtx_name_t *cgs_nvtx_name_get(cgs_nvtx_kind_t kind,
                                         const char *text)
{
    cgs_nvtx_name_t *name = NULL;
    cgs_nvtx_name_t *first, *found;
    cgs_nvtx_name_head_t *head;
    uint32_t hash;
    size_t size;

    text  = (text != NULL) ? text : "";
    hash  = cgs_nvtx_text_hash(text);
    head  = &cgs_nvtx_kinds[kind].names[hash % CGS_NVTX_NAME_BUCKETS];
    first = atomic_load_explicit(head, memory_order_acquire);

    for (;;) {
        found = cgs_nvtx_name_find(first, hash, text);
        if (found != NULL) {
            free(name); /* another thread was faster */
            return found;
        }

        if (name == NULL) {
            size = strlen(text) + 1;
            name = malloc(sizeof(*name) + size);
            if (name == NULL) {
                return NULL;
            }
            memcpy(name->text, text, size);
            name->hash  = hash;
            name->index = atomic_fetch_add(&cgs_nvtx_kinds[kind].count, 1) + 1;
        }

        name->next = first;
        if (atomic_compare_exchange_weak_explicit(head, &first, name,
                                                  memory_order_release,
                                                  memory_order_acquire)) {
            return name;
        }
    }
}

static cgs_nvtx_handle_head_t *
cgs_nvtx_handle_head(cgs_nvtx_kind_t kind, const void *handle)
{
    uint64_t mixed = (uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15);

    return &cgs_nvtx_kinds[kind].handles[mixed >> 52];
}

_Static_assert(CGS_NVTX_HANDLE_BUCKETS == 1u << (64 - 52),
               "cgs_nvtx_handle_head takes the upper bits");

static cgs_nvtx_handle_t *
cgs_nvtx_handle_find(cgs_nvtx_handle_head_t *head, const void *owner,
                     const void *handle, cgs_nvtx_handle_t **other_p)
{
    cgs_nvtx_handle_t *entry;

    *other_p = NULL;
    for (entry = atomic_load_explicit(head, memory_order_acquire);
         entry != NULL; entry = entry->next) {
        if (entry->handle == handle) {
            if (entry->owner == owner) {
                return entry;
            }
            *other_p = (*other_p == NULL) ? entry : *other_p;
        }
    }
    return NULL;
}

int cgs_nvtx_handle_bind(cgs_nvtx_kind_t kind, const void *owner,
                         const void *handle, const cgs_nvtx_name_t *name)
{
    cgs_nvtx_handle_head_t *head = cgs_nvtx_handle_head(kind, handle);
    cgs_nvtx_handle_t *entry, *other;

    entry = cgs_nvtx_handle_find(head, owner, handle, &other);
    if (entry != NULL) {
        atomic_store_explicit(&entry->name, name, memory_order_release);
        return 0;
    }

    entry = malloc(sizeof(*entry));
    if (entry == NULL) {
        return -ENOMEM;
    }
    entry->owner  = owner;
    entry->handle = handle;
    atomic_init(&entry->name, name);

    /* Two threads that bind one handle at once leave two entries: the newer
     * one is found, and the other costs its bytes only. */
    entry->next = atomic_load_explicit(head, memory_order_acquire);
    while (!atomic_compare_exchange_weak_explicit(head, &entry->next, entry,
                                                  memory_order_release,
                                                  memory_order_acquire)) {
    }
    return 0;
}

const cgs_nvtx_name_t *cgs_nvtx_handle_name(cgs_nvtx_kind_t kind,
                                            const void *owner,
                                            const void *handle)
{
    cgs_nvtx_handle_head_t *head = cgs_nvtx_handle_head(kind, handle);
    cgs_nvtx_handle_t *entry, *other;

    entry = cgs_nvtx_handle_find(head, owner, handle, &other);
    entry = (entry != NULL) ? entry : other;
    return (entry == NULL) ? NULL :
           atomic_load_explicit(&entry->name, memory_order_acquire);
}

/* Returns the length; writes only where `out` is not NULL. */
static size_t cgs_nvtx_utf8_put(uint32_t code, char *out)
{
    static const unsigned char lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    size_t length, i;

    if ((code > 0x10ffff) || ((code >= 0xd800) && (code <= 0xdfff))) {
        code = CGS_NVTX_REPLACEMENT;
    }
    length = (code < 0x80) ? 1 : (code < 0x800) ? 2 : (code < 0x10000) ? 3 : 4;

    for (i = length - 1; (out != NULL) && (i > 0); --i) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    if (out != NULL) {
        out[0] = (char)(lead[length] | code);
    }
    return length;
}

const char *cgs_nvtx_utf8(cgs_nvtx_utf8_t *utf8, const wchar_t *wide)
{
    size_t room   = sizeof(utf8->inline_text);
    size_t length = 0;
    const wchar_t *w;
    char *out;

    cgs_nvtx_utf8_init(utf8);
    wide = (wide != NULL) ? wide : L"";
    for (w = wide; *w != L'\0'; ++w) {
        length += cgs_nvtx_utf8_put((uint32_t)*w, NULL);
    }

    if (length >= room) {
        utf8->heap = malloc(length + 1);
        room       = (utf8->heap != NULL) ? length + 1 : room;
    }

    out    = (utf8->heap != NULL) ? utf8->heap : utf8->inline_text;
    length = 0;
    for (w = wide; *w != L'\0'; ++w) {
        if (length + cgs_nvtx_utf8_put((uint32_t)*w, NULL) >= room) {
            break;
        }
        length += cgs_nvtx_utf8_put((uint32_t)*w, out + length);
    }
    out[length] = '\0';
    return out;
}

void cgs_nvtx_utf8_release(cgs_nvtx_utf8_t *utf8)
{
    free(utf8->heap);
    errno = utf8->error;
}
