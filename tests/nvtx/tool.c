/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NVTX tool such as a user may have. Knows nothing of cgshim.
 */
#define _GNU_SOURCE
#include "tool.h"

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOOL_MAX_DSOS    64
#define TOOL_MAX_STRINGS 16

static tool_state_t tool; /* its counters by the atomic builtins only */

static atomic_uint       tool_num_dsos;
static NvtxFunctionTable tool_tables[TOOL_MAX_DSOS][2];
static unsigned          tool_sizes[TOOL_MAX_DSOS][2];

/* Handles of the tool are not addresses: whoever looks into one crashes. */
static atomic_uint tool_domains;
static bool        tool_reuse; /* the last domain was destroyed */

static bool tool_is(const char *word)
{
    const char *mode = getenv("TOOL_MODE");

    return (mode != NULL) && (strstr(mode, word) != NULL);
}

#define TOOL_COUNT(_name) (int)__atomic_add_fetch(&tool._name, 1, \
                                                  __ATOMIC_RELAXED)

static int tool_push(const char *text)
{
    (void)text;
    return TOOL_LEVEL + TOOL_COUNT(push);
}

static int tool_push_wide(const wchar_t *text)
{
    (void)text;
    return TOOL_LEVEL + TOOL_COUNT(push_wide);
}

static int tool_push_event(const nvtxEventAttributes_t *event)
{
    (void)event;
    return TOOL_LEVEL + TOOL_COUNT(push_event);
}

static int tool_pop(void)
{
    return TOOL_LEVEL + TOOL_COUNT(pop);
}

static nvtxRangeId_t tool_range(void)
{
    return (nvtxRangeId_t)TOOL_COUNT(start) - (tool_is("zero") ? 1 : 0);
}

static nvtxRangeId_t tool_start(const char *text)
{
    (void)text;
    return tool_range();
}

static nvtxRangeId_t tool_start_wide(const wchar_t *text)
{
    (void)text;
    return tool_range();
}

static nvtxRangeId_t tool_start_event(const nvtxEventAttributes_t *event)
{
    (void)event;
    return tool_range();
}

static void tool_end(nvtxRangeId_t id)
{
    __atomic_store_n(&tool.last_end, id, __ATOMIC_RELAXED);
    (void)TOOL_COUNT(end);
}

static void tool_mark(const char *text)
{
    (void)text;
    (void)TOOL_COUNT(mark);
}

static int tool_domain_push(nvtxDomainHandle_t domain,
                            const nvtxEventAttributes_t *event)
{
    (void)event;
    __atomic_store_n(&tool.last_domain, (void*)domain, __ATOMIC_RELAXED);
    return TOOL_LEVEL + TOOL_COUNT(domain_push);
}

static int tool_domain_pop(nvtxDomainHandle_t domain)
{
    __atomic_store_n(&tool.last_domain, (void*)domain, __ATOMIC_RELAXED);
    return TOOL_LEVEL + TOOL_COUNT(domain_pop);
}

static nvtxRangeId_t tool_domain_start(nvtxDomainHandle_t domain,
                                       const nvtxEventAttributes_t *event)
{
    (void)event;
    __atomic_store_n(&tool.last_domain, (void*)domain, __ATOMIC_RELAXED);
    return tool_range();
}

static void tool_domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    (void)domain;
    __atomic_store_n(&tool.last_end, id, __ATOMIC_RELAXED);
    (void)TOOL_COUNT(domain_end);
}

static nvtxDomainHandle_t tool_create(const char *text)
{
    (void)text;
    (void)TOOL_COUNT(create);
    if (tool_reuse) {
        tool_reuse = false;
        return (nvtxDomainHandle_t)(uintptr_t)atomic_load(&tool_domains);
    }
    return (nvtxDomainHandle_t)(uintptr_t)(atomic_fetch_add(&tool_domains, 1) +
                                           1);
}

static nvtxDomainHandle_t tool_create_wide(const wchar_t *text)
{
    (void)text;
    return tool_create("");
}

static void tool_destroy(nvtxDomainHandle_t domain)
{
    (void)domain;
    (void)TOOL_COUNT(destroy);
    tool_reuse = true;
}

/* Strings are numbered anew in each domain. */
static nvtxStringHandle_t
tool_register(nvtxDomainHandle_t domain, const char *text)
{
    static atomic_uint numbers[TOOL_MAX_STRINGS];
    atomic_uint *number = &numbers[(uintptr_t)domain % TOOL_MAX_STRINGS];

    (void)text;
    (void)TOOL_COUNT(strings);
    return (nvtxStringHandle_t)(uintptr_t)(atomic_fetch_add(number, 1) + 1);
}

static nvtxStringHandle_t
tool_register_wide(nvtxDomainHandle_t domain, const wchar_t *text)
{
    (void)text;
    return tool_register(domain, "");
}

static void
tool_domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    (void)domain;
    (void)event;
    (void)TOOL_COUNT(domain_mark);
}

static const struct {
    int                 module; /* 0 CORE, 1 CORE2 */
    bool                bare;
    unsigned            cbid;
    NvtxFunctionPointer function;
} tool_functions[] = {
#define TOOL_CORE(_bare, _name, _function) \
    {0, _bare, NVTX_CBID_CORE_##_name, (NvtxFunctionPointer)_function}
#define TOOL_CORE2(_bare, _name, _function) \
    {1, _bare, NVTX_CBID_CORE2_##_name, (NvtxFunctionPointer)_function}
    TOOL_CORE(true, RangePushA, tool_push),
    TOOL_CORE(true, RangePop, tool_pop),
    TOOL_CORE(true, RangeEnd, tool_end),
    TOOL_CORE2(true, DomainRangeEnd, tool_domain_end),
    TOOL_CORE2(true, DomainMarkEx, tool_domain_mark),
    TOOL_CORE(false, RangePushW, tool_push_wide),
    TOOL_CORE(false, RangePushEx, tool_push_event),
    TOOL_CORE(false, RangeStartA, tool_start),
    TOOL_CORE(false, RangeStartW, tool_start_wide),
    TOOL_CORE(false, RangeStartEx, tool_start_event),
    TOOL_CORE(false, MarkA, tool_mark),
    TOOL_CORE2(false, DomainRangePushEx, tool_domain_push),
    TOOL_CORE2(false, DomainRangePop, tool_domain_pop),
    TOOL_CORE2(false, DomainRangeStartEx, tool_domain_start),
    TOOL_CORE2(false, DomainCreateA, tool_create),
    TOOL_CORE2(false, DomainCreateW, tool_create_wide),
    TOOL_CORE2(false, DomainDestroy, tool_destroy),
    TOOL_CORE2(false, DomainRegisterStringA, tool_register),
    TOOL_CORE2(false, DomainRegisterStringW, tool_register_wide),
};

static void tool_fill_dso(unsigned dso)
{
    size_t i;

    for (i = 0; i < sizeof(tool_functions) / sizeof(*tool_functions); ++i) {
        if ((tool_functions[i].cbid < tool_sizes[dso][tool_functions[i].module])
            && (tool_functions[i].bare || !tool_is("bare"))) {
            __atomic_store_n(tool_tables[dso][tool_functions[i].module]
                                        [tool_functions[i].cbid],
                             tool_functions[i].function, __ATOMIC_RELAXED);
        }
    }
}

void tool_fill(void)
{
    unsigned dso;

    for (dso = 0; dso < atomic_load(&tool_num_dsos); ++dso) {
        tool_fill_dso(dso);
    }
}

tool_state_t *tool_get(void)
{
    return &tool;
}

static int tool_init(NvtxGetExportTableFunc_t export_table)
{
    const NvtxExportTableCallbacks *callbacks =
        export_table(NVTX_ETID_CALLBACKS);
    int init     = TOOL_COUNT(inits);
    unsigned dso = atomic_fetch_add(&tool_num_dsos, 1);

    if (tool_is("once") && (init > 1)) {
        return 0;
    }
    if ((dso >= TOOL_MAX_DSOS) ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE,
                                           &tool_tables[dso][0],
                                           &tool_sizes[dso][0]) ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2,
                                           &tool_tables[dso][1],
                                           &tool_sizes[dso][1])) {
        abort();
    }
    if (!tool_is("late")) {
        tool_fill_dso(dso);
    }
    return !tool_is("fail");
}

#ifndef TOOL_OLD
TOOL_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table);
TOOL_EXPORT int InitializeInjectionNvtxExtension(void *module);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table)
{
    return tool_init(table);
}

int InitializeInjectionNvtxExtension(void *module)
{
    (void)module;
    (void)TOOL_COUNT(extensions);
    return !tool_is("noext");
}
#endif

TOOL_EXPORT int InitializeInjectionNvtx(NvtxGetExportTableFunc_t table);

int InitializeInjectionNvtx(NvtxGetExportTableFunc_t table)
{
    return tool_init(table);
}

__attribute__((destructor)) static void tool_exit(void)
{
    const char *file = getenv("TOOL_FILE");
    char line[64];
    int length, fd;

    if (file != NULL) {
        length = snprintf(line, sizeof(line), "inits %u pushes %u\n",
                          tool.inits, tool.push);
        fd     = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
        (void)!write(fd, line, (size_t)length);
        close(fd);
    }
}
