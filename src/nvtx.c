/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVTX door: the injection library that NVTX loads.
 *
 * Each DSO of the program that uses NVTX has function tables of its own. At
 * its first NVTX call it opens what NVTX_INJECTION64_PATH names, which the
 * constructor made this library, and has InitializeInjectionNvtx2 write into
 * these tables. A tool that the user had named there is initialised first, on
 * shadow tables:
 *
 *   functions heard here (CGS_NVTX_HANDLED)   the tool writes into our record
 *                                             of the DSO; the DSO gets our
 *                                             function, which calls the tool's
 *   all others (marks, categories, names of   the tool writes into the DSO's
 *   objects, resources, user-defined sync)    own table
 *   extensions (payloads, counters, memory)   the tool's own initialisation;
 *                                             nothing is heard here
 *
 * The tool's writes are read at each call, since tools change them later too.
 *
 * Left alone on purpose: a payload extension range is no range here, and as
 * without a tool nvtxDomainIsEnabled() is 0 unless the user's tool says else.
 *
 * No lock in this part: initialisation runs foreign code that may load others.
 */
#include "nvtx.h"
#include "log.h"
#include "nvtx_chain.h"
#include "nvtx_names.h"
#include "nvtx_track.h"

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define CGS_NVTX_EXPORT __attribute__((visibility("default")))
#define CGS_NVTX_CBIDS  32 /* NVTX has 16 in each module since version 3 */
#define CGS_NVTX_DSOS   32 /* as many as CGS_NVTX_FOR_EACH_DSO */

/* Range ids of ours, where no tool gives one. They share their space with the
 * ids of a tool, whose counters start low. */
#define CGS_NVTX_FIRST_ID UINT64_C(0x6367730000000001)

/* The modules with functions that are heard. */
typedef enum {
    CGS_NVTX_CORE,
    CGS_NVTX_CORE2,
    CGS_NVTX_MODULE_LAST
} cgs_nvtx_module_t;

static const NvtxCallbackModule cgs_nvtx_modules[CGS_NVTX_MODULE_LAST] = {
    [CGS_NVTX_CORE]  = NVTX_CB_MODULE_CORE,
    [CGS_NVTX_CORE2] = NVTX_CB_MODULE_CORE2
};

/* One DSO of the program, as the user's tool sees it. Kept for good: the tool
 * may keep pointers to it. */
typedef struct cgs_nvtx_dso {
    /* The DSO's own; NULL while the record is free. */
    _Atomic(NvtxGetExportTableFunc_t) export_table;
    /* The DSO's own tables, to see that another DSO took its address. */
    _Atomic(NvtxFunctionTable)        tables[CGS_NVTX_MODULE_LAST];
    NvtxExportTableCallbacks          callbacks;
    /* What the tool gets as table, and what it writes for heard functions. */
    NvtxFunctionPointer               *shadow[CGS_NVTX_MODULE_LAST]
                                             [CGS_NVTX_CBIDS];
    NvtxFunctionPointer               next[CGS_NVTX_MODULE_LAST]
                                          [CGS_NVTX_CBIDS];
} cgs_nvtx_dso_t;

/* Record 0 is for every DSO without a tool and stays empty. */
static cgs_nvtx_dso_t cgs_nvtx_dsos[CGS_NVTX_DSOS];

/* Written by the constructor. */
static const cgs_range_sink_t *cgs_nvtx_sink;

static atomic_uint_least64_t cgs_nvtx_num_ranges;

static const cgs_nvtx_name_t cgs_nvtx_default_domain;

/* Hearing: what the program said, to the sink */

static const cgs_nvtx_name_t *cgs_nvtx_domain(nvtxDomainHandle_t domain)
{
    return (domain == NULL) ? &cgs_nvtx_default_domain :
           cgs_nvtx_handle_name(CGS_NVTX_DOMAIN, NULL, domain);
}

static const char *cgs_nvtx_domain_text(const cgs_nvtx_name_t *domain)
{
    return (domain == &cgs_nvtx_default_domain) ? NULL : domain->text;
}

static const char *cgs_nvtx_text(const char *text)
{
    return (text != NULL) ? text : "";
}

/* Only what `size` and `version` vouch for is read. */
static const char *cgs_nvtx_event_text(nvtxDomainHandle_t domain,
                                       const nvtxEventAttributes_t *event,
                                       cgs_nvtx_utf8_t *utf8)
{
    const size_t size = offsetof(nvtxEventAttributes_t, message) +
                        sizeof(event->message);
    const cgs_nvtx_name_t *name;

    cgs_nvtx_utf8_init(utf8);
    if ((event == NULL) || (event->version > NVTX_VERSION) ||
        (event->size < size)) {
        return "";
    }

    switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
        return cgs_nvtx_text(event->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
        return cgs_nvtx_utf8(utf8, event->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
        name = cgs_nvtx_handle_name(CGS_NVTX_STRING, domain,
                                    event->message.registered);
        return (name != NULL) ? name->text : "";
    default:
        return "";
    }
}

/* A domain handle that was not created here is not heard: the tool may have
 * given it by a way of its own. */
static void cgs_nvtx_hear_push(nvtxDomainHandle_t handle, const char *text)
{
    const cgs_nvtx_name_t *domain = cgs_nvtx_domain(handle);
    int error                     = errno;

    if ((domain != NULL) && (cgs_nvtx_depth_push(domain->index) == 0)) {
        cgs_nvtx_sink->push(cgs_nvtx_domain_text(domain), text);
    }
    errno = error;
}

static void cgs_nvtx_hear_pop(nvtxDomainHandle_t handle)
{
    const cgs_nvtx_name_t *domain = cgs_nvtx_domain(handle);
    int error                     = errno;

    if ((domain != NULL) && cgs_nvtx_depth_pop(domain->index)) {
        cgs_nvtx_sink->pop(cgs_nvtx_domain_text(domain));
    }
    errno = error;
}

/*
 * Returns what the program ends the range by: the tool's id, else one of ours,
 * where without cgshim it would get 0. It needs one to end this range and not
 * another, and nothing can be done with an id but to end it.
 */
static nvtxRangeId_t
cgs_nvtx_hear_start(nvtxDomainHandle_t handle, const char *text,
                    const nvtxRangeId_t *tool_id)
{
    const cgs_nvtx_name_t *domain = cgs_nvtx_domain(handle);
    int error                     = errno;
    nvtxRangeId_t id, key;
    cgs_nvtx_range_t *range;

    id    = CGS_NVTX_FIRST_ID + atomic_fetch_add(&cgs_nvtx_num_ranges, 1);
    key   = (tool_id != NULL) ? *tool_id : id;
    range = (domain != NULL) ? cgs_nvtx_range_claim(key) : NULL;
    if (range != NULL) {
        range->id   = id;
        range->ours = (tool_id == NULL);
        cgs_nvtx_sink->start(cgs_nvtx_domain_text(domain), text, id);
        cgs_nvtx_range_publish(range, key);
    }
    errno = error;
    return key;
}

/* Whether the tool may hear of this end. */
static bool cgs_nvtx_hear_end(nvtxRangeId_t key)
{
    int error = errno;
    uint64_t id;
    bool ours;

    if (cgs_nvtx_range_take(key, &id, &ours) != 0) {
        return true;
    }
    cgs_nvtx_sink->end(id);
    errno = error;
    return !ours;
}

/* Handled functions: each calls the tool's function, if it has one */

/* The entries of all DSOs are jumps to one copy. */
#define CGS_NVTX_SHARED __attribute__((noinline))

#define CGS_NVTX_NEXT(_dso, _module, _name) \
    ((nvtx##_name##_impl_fntype)__atomic_load_n( \
        &(_dso)->next[CGS_NVTX_##_module][NVTX_CBID_##_module##_##_name], \
        __ATOMIC_ACQUIRE))

static CGS_NVTX_SHARED int
cgs_nvtx_push_ascii(cgs_nvtx_dso_t *dso, const char *text)
{
    nvtxRangePushA_impl_fntype next = CGS_NVTX_NEXT(dso, CORE, RangePushA);
    int level = (next != NULL) ? next(text) : NVTX_NO_PUSH_POP_TRACKING;

    cgs_nvtx_hear_push(NULL, cgs_nvtx_text(text));
    return level;
}

static CGS_NVTX_SHARED int
cgs_nvtx_push_wide(cgs_nvtx_dso_t *dso, const wchar_t *text)
{
    nvtxRangePushW_impl_fntype next = CGS_NVTX_NEXT(dso, CORE, RangePushW);
    int level = (next != NULL) ? next(text) : NVTX_NO_PUSH_POP_TRACKING;
    cgs_nvtx_utf8_t utf8;

    cgs_nvtx_hear_push(NULL, cgs_nvtx_utf8(&utf8, text));
    cgs_nvtx_utf8_release(&utf8);
    return level;
}

static CGS_NVTX_SHARED int
cgs_nvtx_push_event(cgs_nvtx_dso_t *dso, const nvtxEventAttributes_t *event)
{
    nvtxRangePushEx_impl_fntype next = CGS_NVTX_NEXT(dso, CORE, RangePushEx);
    int level = (next != NULL) ? next(event) : NVTX_NO_PUSH_POP_TRACKING;
    cgs_nvtx_utf8_t utf8;

    cgs_nvtx_hear_push(NULL, cgs_nvtx_event_text(NULL, event, &utf8));
    cgs_nvtx_utf8_release(&utf8);
    return level;
}

static CGS_NVTX_SHARED int
cgs_nvtx_pop(cgs_nvtx_dso_t *dso)
{
    nvtxRangePop_impl_fntype next = CGS_NVTX_NEXT(dso, CORE, RangePop);

    cgs_nvtx_hear_pop(NULL);
    return (next != NULL) ? next() : NVTX_NO_PUSH_POP_TRACKING;
}

static CGS_NVTX_SHARED int
cgs_nvtx_domain_push_event(cgs_nvtx_dso_t *dso, nvtxDomainHandle_t domain,
                           const nvtxEventAttributes_t *event)
{
    nvtxDomainRangePushEx_impl_fntype next =
        CGS_NVTX_NEXT(dso, CORE2, DomainRangePushEx);
    int level = (next != NULL) ? next(domain, event) :
                                 NVTX_NO_PUSH_POP_TRACKING;
    cgs_nvtx_utf8_t utf8;

    cgs_nvtx_hear_push(domain, cgs_nvtx_event_text(domain, event, &utf8));
    cgs_nvtx_utf8_release(&utf8);
    return level;
}

static CGS_NVTX_SHARED int
cgs_nvtx_domain_pop(cgs_nvtx_dso_t *dso, nvtxDomainHandle_t domain)
{
    nvtxDomainRangePop_impl_fntype next =
        CGS_NVTX_NEXT(dso, CORE2, DomainRangePop);

    cgs_nvtx_hear_pop(domain);
    return (next != NULL) ? next(domain) : NVTX_NO_PUSH_POP_TRACKING;
}

static CGS_NVTX_SHARED nvtxRangeId_t
cgs_nvtx_start_ascii(cgs_nvtx_dso_t *dso, const char *text)
{
    nvtxRangeStartA_impl_fntype next = CGS_NVTX_NEXT(dso, CORE, RangeStartA);
    nvtxRangeId_t id = (next != NULL) ? next(text) : 0;

    return cgs_nvtx_hear_start(NULL, cgs_nvtx_text(text),
                               (next != NULL) ? &id : NULL);
}

static CGS_NVTX_SHARED nvtxRangeId_t
cgs_nvtx_start_wide(cgs_nvtx_dso_t *dso, const wchar_t *text)
{
    nvtxRangeStartW_impl_fntype next = CGS_NVTX_NEXT(dso, CORE, RangeStartW);
    nvtxRangeId_t id = (next != NULL) ? next(text) : 0;
    cgs_nvtx_utf8_t utf8;

    id = cgs_nvtx_hear_start(NULL, cgs_nvtx_utf8(&utf8, text),
                             (next != NULL) ? &id : NULL);
    cgs_nvtx_utf8_release(&utf8);
    return id;
}

static CGS_NVTX_SHARED nvtxRangeId_t
cgs_nvtx_start_event(cgs_nvtx_dso_t *dso, const nvtxEventAttributes_t *event)
{
    nvtxRangeStartEx_impl_fntype next = CGS_NVTX_NEXT(dso, CORE, RangeStartEx);
    nvtxRangeId_t id = (next != NULL) ? next(event) : 0;
    cgs_nvtx_utf8_t utf8;

    id = cgs_nvtx_hear_start(NULL, cgs_nvtx_event_text(NULL, event, &utf8),
                             (next != NULL) ? &id : NULL);
    cgs_nvtx_utf8_release(&utf8);
    return id;
}

static CGS_NVTX_SHARED void
cgs_nvtx_end(cgs_nvtx_dso_t *dso, nvtxRangeId_t id)
{
    nvtxRangeEnd_impl_fntype next = CGS_NVTX_NEXT(dso, CORE, RangeEnd);

    if (cgs_nvtx_hear_end(id) && (next != NULL)) {
        next(id);
    }
}

static CGS_NVTX_SHARED nvtxRangeId_t
cgs_nvtx_domain_start_event(cgs_nvtx_dso_t *dso, nvtxDomainHandle_t domain,
                            const nvtxEventAttributes_t *event)
{
    nvtxDomainRangeStartEx_impl_fntype next =
        CGS_NVTX_NEXT(dso, CORE2, DomainRangeStartEx);
    nvtxRangeId_t id = (next != NULL) ? next(domain, event) : 0;
    cgs_nvtx_utf8_t utf8;

    id = cgs_nvtx_hear_start(domain, cgs_nvtx_event_text(domain, event, &utf8),
                             (next != NULL) ? &id : NULL);
    cgs_nvtx_utf8_release(&utf8);
    return id;
}

static CGS_NVTX_SHARED void
cgs_nvtx_domain_end(cgs_nvtx_dso_t *dso, nvtxDomainHandle_t domain,
                    nvtxRangeId_t id)
{
    nvtxDomainRangeEnd_impl_fntype next =
        CGS_NVTX_NEXT(dso, CORE2, DomainRangeEnd);

    if (cgs_nvtx_hear_end(id) && (next != NULL)) {
        next(domain, id);
    }
}

/*
 * The handle that the program gets for a new name. With a tool it is the
 * tool's, or NULL where the tool gives none, as without cgshim: the tool could
 * not live with one of ours. Without a tool it is the name itself, where
 * without cgshim it would be NULL, since domains must be told apart.
 */
static void *
cgs_nvtx_handle(cgs_nvtx_dso_t *dso, cgs_nvtx_kind_t kind, const void *owner,
                void *tool_handle, const char *text)
{
    bool has_tool               = (dso != &cgs_nvtx_dsos[0]);
    void *handle                = tool_handle;
    int error                   = errno;
    const cgs_nvtx_name_t *name;

    if (has_tool && (tool_handle == NULL)) {
        return NULL;
    }

    name = cgs_nvtx_name_get(kind, text);
    if (!has_tool) {
        handle = (void*)name;
    }
    if ((name != NULL) &&
        (cgs_nvtx_handle_bind(kind, owner, handle, name) != 0) && !has_tool) {
        handle = NULL;
    }
    errno = error;
    return handle;
}

static CGS_NVTX_SHARED nvtxDomainHandle_t
cgs_nvtx_create_ascii(cgs_nvtx_dso_t *dso, const char *text)
{
    nvtxDomainCreateA_impl_fntype next =
        CGS_NVTX_NEXT(dso, CORE2, DomainCreateA);
    void *handle = (next != NULL) ? next(text) : NULL;

    return cgs_nvtx_handle(dso, CGS_NVTX_DOMAIN, NULL, handle, text);
}

static CGS_NVTX_SHARED nvtxDomainHandle_t
cgs_nvtx_create_wide(cgs_nvtx_dso_t *dso, const wchar_t *text)
{
    nvtxDomainCreateW_impl_fntype next =
        CGS_NVTX_NEXT(dso, CORE2, DomainCreateW);
    void *handle = (next != NULL) ? next(text) : NULL;
    cgs_nvtx_utf8_t utf8;

    handle = cgs_nvtx_handle(dso, CGS_NVTX_DOMAIN, NULL, handle,
                             cgs_nvtx_utf8(&utf8, text));
    cgs_nvtx_utf8_release(&utf8);
    return handle;
}

static CGS_NVTX_SHARED nvtxStringHandle_t
cgs_nvtx_register_ascii(cgs_nvtx_dso_t *dso, nvtxDomainHandle_t domain,
                        const char *text)
{
    nvtxDomainRegisterStringA_impl_fntype next =
        CGS_NVTX_NEXT(dso, CORE2, DomainRegisterStringA);
    void *handle = (next != NULL) ? next(domain, text) : NULL;

    return cgs_nvtx_handle(dso, CGS_NVTX_STRING, domain, handle, text);
}

static CGS_NVTX_SHARED nvtxStringHandle_t
cgs_nvtx_register_wide(cgs_nvtx_dso_t *dso, nvtxDomainHandle_t domain,
                       const wchar_t *text)
{
    nvtxDomainRegisterStringW_impl_fntype next =
        CGS_NVTX_NEXT(dso, CORE2, DomainRegisterStringW);
    void *handle = (next != NULL) ? next(domain, text) : NULL;
    cgs_nvtx_utf8_t utf8;

    handle = cgs_nvtx_handle(dso, CGS_NVTX_STRING, domain, handle,
                             cgs_nvtx_utf8(&utf8, text));
    cgs_nvtx_utf8_release(&utf8);
    return handle;
}

/*
 * Entries: what is written into a DSO's tables. NVTX passes no context, so
 * each DSO that has a tool gets functions of its own, which know its record.
 */

/* _H(dso, module, name, type, parameters, body) */
#define CGS_NVTX_HANDLED(_H, _n) \
    _H(_n, CORE, RangePushEx, int, (const nvtxEventAttributes_t *event), \
       return cgs_nvtx_push_event(&cgs_nvtx_dsos[_n], event)) \
    _H(_n, CORE, RangePushA, int, (const char *text), \
       return cgs_nvtx_push_ascii(&cgs_nvtx_dsos[_n], text)) \
    _H(_n, CORE, RangePushW, int, (const wchar_t *text), \
       return cgs_nvtx_push_wide(&cgs_nvtx_dsos[_n], text)) \
    _H(_n, CORE, RangePop, int, (void), \
       return cgs_nvtx_pop(&cgs_nvtx_dsos[_n])) \
    _H(_n, CORE, RangeStartEx, nvtxRangeId_t, \
       (const nvtxEventAttributes_t *event), \
       return cgs_nvtx_start_event(&cgs_nvtx_dsos[_n], event)) \
    _H(_n, CORE, RangeStartA, nvtxRangeId_t, (const char *text), \
       return cgs_nvtx_start_ascii(&cgs_nvtx_dsos[_n], text)) \
    _H(_n, CORE, RangeStartW, nvtxRangeId_t, (const wchar_t *text), \
       return cgs_nvtx_start_wide(&cgs_nvtx_dsos[_n], text)) \
    _H(_n, CORE, RangeEnd, void, (nvtxRangeId_t id), \
       cgs_nvtx_end(&cgs_nvtx_dsos[_n], id)) \
    _H(_n, CORE2, DomainRangePushEx, int, \
       (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event), \
       return cgs_nvtx_domain_push_event(&cgs_nvtx_dsos[_n], domain, event)) \
    _H(_n, CORE2, DomainRangePop, int, (nvtxDomainHandle_t domain), \
       return cgs_nvtx_domain_pop(&cgs_nvtx_dsos[_n], domain)) \
    _H(_n, CORE2, DomainRangeStartEx, nvtxRangeId_t, \
       (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event), \
       return cgs_nvtx_domain_start_event(&cgs_nvtx_dsos[_n], domain, event)) \
    _H(_n, CORE2, DomainRangeEnd, void, \
       (nvtxDomainHandle_t domain, nvtxRangeId_t id), \
       cgs_nvtx_domain_end(&cgs_nvtx_dsos[_n], domain, id)) \
    _H(_n, CORE2, DomainCreateA, nvtxDomainHandle_t, (const char *text), \
       return cgs_nvtx_create_ascii(&cgs_nvtx_dsos[_n], text)) \
    _H(_n, CORE2, DomainCreateW, nvtxDomainHandle_t, (const wchar_t *text), \
       return cgs_nvtx_create_wide(&cgs_nvtx_dsos[_n], text)) \
    _H(_n, CORE2, DomainRegisterStringA, nvtxStringHandle_t, \
       (nvtxDomainHandle_t domain, const char *text), \
       return cgs_nvtx_register_ascii(&cgs_nvtx_dsos[_n], domain, text)) \
    _H(_n, CORE2, DomainRegisterStringW, nvtxStringHandle_t, \
       (nvtxDomainHandle_t domain, const wchar_t *text), \
       return cgs_nvtx_register_wide(&cgs_nvtx_dsos[_n], domain, text))

#define CGS_NVTX_FOR_EACH_DSO(_F) \
    _F(0) _F(1) _F(2) _F(3) _F(4) _F(5) _F(6) _F(7) _F(8) _F(9) _F(10) \
    _F(11) _F(12) _F(13) _F(14) _F(15) _F(16) _F(17) _F(18) _F(19) _F(20) \
    _F(21) _F(22) _F(23) _F(24) _F(25) _F(26) _F(27) _F(28) _F(29) _F(30) \
    _F(31)

#define CGS_NVTX_HANDLER(_n, _module, _name, _type, _params, _body) \
    static _type NVTX_API cgs_nvtx_##_name##_##_n _params \
    { \
        _body; \
    } \
    _Static_assert(__builtin_types_compatible_p( \
                       __typeof__(&cgs_nvtx_##_name##_##_n), \
                       nvtx##_name##_impl_fntype), \
                   #_name " has another type in NVTX");

#define CGS_NVTX_DSO_ENTRIES(_n) \
    CGS_NVTX_HANDLED(CGS_NVTX_HANDLER, _n) \
    static const void *NVTX_API cgs_nvtx_export_table_##_n(uint32_t id) \
    { \
        return cgs_nvtx_shadow_export(&cgs_nvtx_dsos[_n], id); \
    } \
    static int NVTX_API \
    cgs_nvtx_module_table_##_n(NvtxCallbackModule module, \
                               NvtxFunctionTable *table_p, \
                               unsigned int *size_p) \
    { \
        return cgs_nvtx_shadow_module(&cgs_nvtx_dsos[_n], module, table_p, \
                                      size_p); \
    }

/* Places of the handled functions in cgs_nvtx_places and in entries. */
#define CGS_NVTX_PLACE_INDEX(_n, _module, _name, ...) CGS_NVTX_PLACE_##_name,
enum {
    CGS_NVTX_HANDLED(CGS_NVTX_PLACE_INDEX, 0)
    CGS_NVTX_PLACE_LAST
};

#define CGS_NVTX_PLACE(_n, _module, _name, ...) \
    {CGS_NVTX_##_module, NVTX_CBID_##_module##_##_name},
static const struct {
    unsigned char module;
    unsigned char cbid;
} cgs_nvtx_places[CGS_NVTX_PLACE_LAST] = {
    CGS_NVTX_HANDLED(CGS_NVTX_PLACE, 0)
};

typedef struct cgs_nvtx_entries {
    NvtxGetExportTableFunc_t export_table;
    int (NVTX_API *module_table)(NvtxCallbackModule module,
                                 NvtxFunctionTable *table_p,
                                 unsigned int *size_p);
    NvtxFunctionPointer      handlers[CGS_NVTX_PLACE_LAST];
} cgs_nvtx_entries_t;

/* Shadow tables: what the user's tool gets */

static const NvtxExportTableCallbacks *
cgs_nvtx_callbacks(NvtxGetExportTableFunc_t export_table)
{
    const NvtxExportTableCallbacks *callbacks =
        export_table(NVTX_ETID_CALLBACKS);

    return ((callbacks != NULL) &&
            (callbacks->struct_size >= sizeof(*callbacks))) ? callbacks : NULL;
}

static NvtxFunctionTable
cgs_nvtx_table(const NvtxExportTableCallbacks *callbacks,
               NvtxCallbackModule module, unsigned *size_p)
{
    NvtxFunctionTable table = NULL;

    *size_p = 0;
    return callbacks->GetModuleFunctionTable(module, &table, size_p) ? table :
                                                                       NULL;
}

static const void *cgs_nvtx_shadow_export(cgs_nvtx_dso_t *dso, uint32_t id)
{
    if (id == NVTX_ETID_CALLBACKS) {
        return &dso->callbacks;
    }
    return atomic_load(&dso->export_table)(id);
}

static int cgs_nvtx_shadow_module(cgs_nvtx_dso_t *dso,
                                  NvtxCallbackModule module,
                                  NvtxFunctionTable *table_p,
                                  unsigned int *size_p)
{
    const NvtxExportTableCallbacks *callbacks =
        cgs_nvtx_callbacks(atomic_load(&dso->export_table));
    int i, result;

    result = callbacks->GetModuleFunctionTable(module, table_p, size_p);
    for (i = 0; (i < CGS_NVTX_MODULE_LAST) && result; ++i) {
        if (module != cgs_nvtx_modules[i]) {
            continue;
        }
        if ((table_p != NULL) && (*table_p != NULL)) {
            *table_p = dso->shadow[i];
        }
        if ((size_p != NULL) && (*size_p > CGS_NVTX_CBIDS)) {
            *size_p = CGS_NVTX_CBIDS;
        }
    }
    return result;
}

CGS_NVTX_FOR_EACH_DSO(CGS_NVTX_DSO_ENTRIES)

#define CGS_NVTX_ADDRESS(_n, _module, _name, ...) \
    (NvtxFunctionPointer)cgs_nvtx_##_name##_##_n,
#define CGS_NVTX_ADDRESSES(_n) \
    {cgs_nvtx_export_table_##_n, cgs_nvtx_module_table_##_n, \
     {CGS_NVTX_HANDLED(CGS_NVTX_ADDRESS, _n)}},
static const cgs_nvtx_entries_t cgs_nvtx_entries[CGS_NVTX_DSOS] = {
    CGS_NVTX_FOR_EACH_DSO(CGS_NVTX_ADDRESSES)
};

static bool cgs_nvtx_is_handled(unsigned module, unsigned cbid)
{
    unsigned i;

    for (i = 0; i < CGS_NVTX_PLACE_LAST; ++i) {
        if ((cgs_nvtx_places[i].module == module) &&
            (cgs_nvtx_places[i].cbid == cbid)) {
            return true;
        }
    }
    return false;
}

/* All stores are atomic and give the same values again, since one DSO may be
 * initialised twice at once. */
static void cgs_nvtx_shadow_fill(cgs_nvtx_dso_t *dso, unsigned module,
                                 NvtxFunctionTable table, unsigned size)
{
    NvtxFunctionPointer *slot;
    unsigned i;

    if (atomic_exchange(&dso->tables[module], table) != table) {
        for (i = 0; i < CGS_NVTX_CBIDS; ++i) {
            __atomic_store_n(&dso->next[module][i], NULL, __ATOMIC_RELAXED);
        }
    }

    for (i = 0; i < CGS_NVTX_CBIDS; ++i) {
        slot = ((table != NULL) && (i < size)) ? table[i] : NULL;
        if ((slot != NULL) && cgs_nvtx_is_handled(module, i)) {
            slot = &dso->next[module][i];
        }
        __atomic_store_n(&dso->shadow[module][i], slot, __ATOMIC_RELAXED);
    }
}

/* Returns the record of the DSO, or 0 where all are taken. */
static unsigned cgs_nvtx_dso_claim(NvtxGetExportTableFunc_t export_table,
                                   const NvtxExportTableCallbacks *callbacks)
{
    NvtxGetExportTableFunc_t owner;
    unsigned n, module, size;
    NvtxFunctionTable table;

    for (n = 1; n < CGS_NVTX_DSOS; ++n) {
        owner = NULL;
        if (atomic_compare_exchange_strong(&cgs_nvtx_dsos[n].export_table,
                                           &owner, export_table) ||
            (owner == export_table)) {
            break;
        }
    }
    if (n == CGS_NVTX_DSOS) {
        return 0;
    }

    __atomic_store_n(&cgs_nvtx_dsos[n].callbacks.struct_size,
                     sizeof(NvtxExportTableCallbacks), __ATOMIC_RELAXED);
    __atomic_store_n(&cgs_nvtx_dsos[n].callbacks.GetModuleFunctionTable,
                     cgs_nvtx_entries[n].module_table, __ATOMIC_RELAXED);
    for (module = 0; module < CGS_NVTX_MODULE_LAST; ++module) {
        table = cgs_nvtx_table(callbacks, cgs_nvtx_modules[module], &size);
        cgs_nvtx_shadow_fill(&cgs_nvtx_dsos[n], module, table, size);
    }
    return n;
}

/* Initialisation */

/* Another thread of the DSO may already read the tables: NVTX leaves that to
 * the width of a pointer, and so does this. */
static void cgs_nvtx_install(const NvtxExportTableCallbacks *callbacks,
                             unsigned n)
{
    NvtxFunctionTable table[CGS_NVTX_MODULE_LAST];
    unsigned size[CGS_NVTX_MODULE_LAST];
    unsigned i, module, cbid;

    for (i = 0; i < CGS_NVTX_MODULE_LAST; ++i) {
        table[i] = cgs_nvtx_table(callbacks, cgs_nvtx_modules[i], &size[i]);
    }

    for (i = 0; i < CGS_NVTX_PLACE_LAST; ++i) {
        module = cgs_nvtx_places[i].module;
        cbid   = cgs_nvtx_places[i].cbid;
        if ((table[module] != NULL) && (cbid < size[module]) &&
            (table[module][cbid] != NULL)) {
            __atomic_store_n(table[module][cbid],
                             cgs_nvtx_entries[n].handlers[i],
                             __ATOMIC_RELEASE);
        }
    }
}

/* A tool that failed has no functions, as NVTX itself would have it. */
static void cgs_nvtx_uninstall(const NvtxExportTableCallbacks *callbacks)
{
    NvtxFunctionTable table;
    unsigned module, size, i;

    for (module = NVTX_CB_MODULE_CORE; module < NVTX_CB_MODULE_SIZE;
         ++module) {
        table = cgs_nvtx_table(callbacks, module, &size);
        for (i = 0; (table != NULL) && (i < size); ++i) {
            if (table[i] != NULL) {
                __atomic_store_n(table[i], NULL, __ATOMIC_RELEASE);
            }
        }
    }
}

CGS_NVTX_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table);
CGS_NVTX_EXPORT int InitializeInjectionNvtx(NvtxGetExportTableFunc_t table);
CGS_NVTX_EXPORT int InitializeInjectionNvtxExtension(void *module);

/* The tool's initialisation by the first name that it has, or NULL. */
static NvtxInitializeInjectionNvtxFunc_t
cgs_nvtx_tool_init(const char *name, const char *other_name)
{
    void *init;

    if (!cgs_nvtx_chain_open()) {
        return NULL;
    }

    init = cgs_nvtx_chain_symbol(name);
    if (init == NULL) {
        init = cgs_nvtx_chain_symbol(other_name);
    }
    if (init == NULL) {
        cgs_nvtx_chain_blame("is no NVTX tool");
    }
    /* A link to this library under another name. */
    if ((init == (void*)InitializeInjectionNvtx2) ||
        (init == (void*)InitializeInjectionNvtx)) {
        return NULL;
    }
    return (NvtxInitializeInjectionNvtxFunc_t)init;
}

static int cgs_nvtx_init(NvtxGetExportTableFunc_t export_table,
                         NvtxInitializeInjectionNvtxFunc_t tool_init)
{
    const NvtxExportTableCallbacks *callbacks = NULL;
    unsigned n                                = 0;

    if (cgs_nvtx_sink != NULL) {
        callbacks = cgs_nvtx_callbacks(export_table);
    }
    if ((callbacks != NULL) && (tool_init != NULL)) {
        n = cgs_nvtx_dso_claim(export_table, callbacks);
        if (n == 0) {
            cgs_log(CGS_LOG_WARN, "NVTX ranges of a further library are not "
                    "seen: only %d can be beside an NVTX tool",
                    CGS_NVTX_DSOS - 1);
            callbacks = NULL;
        }
    }
    if (callbacks == NULL) {
        return (tool_init != NULL) ? tool_init(export_table) : 0;
    }

    if (cgs_nvtx_sink->begin != NULL) {
        cgs_nvtx_sink->begin();
    }
    if ((n != 0) && (tool_init(cgs_nvtx_entries[n].export_table) == 0)) {
        cgs_nvtx_chain_blame("its initialisation failed");
        cgs_nvtx_uninstall(callbacks);
        n = 0;
    }
    cgs_nvtx_install(callbacks, n);
    return 1;
}

/* Called by NVTX 3, once for each DSO that uses it, by any thread. */
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table)
{
    return cgs_nvtx_init(export_table,
                         cgs_nvtx_tool_init("InitializeInjectionNvtx2",
                                            "InitializeInjectionNvtx"));
}

/* Called by libnvToolsExt.so of NVTX 1 and 2, whose tables are laid out as
 * those of NVTX 3 and hold the same functions but nvtxInitialize. */
int InitializeInjectionNvtx(NvtxGetExportTableFunc_t export_table)
{
    return cgs_nvtx_init(export_table,
                         cgs_nvtx_tool_init("InitializeInjectionNvtx",
                                            "InitializeInjectionNvtx2"));
}

/*
 * Called by an NVTX 3 extension. Without a tool it fails, which turns the
 * extension off as if there were no injection; a tool that knows no extensions
 * leaves its functions empty, which nvtxDomainIsEnabled() takes for enabled.
 */
int InitializeInjectionNvtxExtension(void *module)
{
    void *init;

    if (!cgs_nvtx_chain_open()) {
        return 0;
    }
    init = cgs_nvtx_chain_symbol("InitializeInjectionNvtxExtension");
    if (init == (void*)InitializeInjectionNvtxExtension) {
        return 0;
    }
    return (init != NULL) ? ((int (*)(void*))init)(module) : 1;
}

void cgs_nvtx_setup(const cgs_range_sink_t *sink)
{
    cgs_nvtx_sink = sink;
    cgs_nvtx_chain_setup();
}
