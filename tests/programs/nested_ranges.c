/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges in ranges: nested push/pop, start/end that cross each other and end in
 * another order, domains, registered and wide strings, ranges without work, and
 * pops that nothing was pushed for.
 */
#include <stdio.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    NESTED_WORDS = 64,
    NESTED_RUNS  = 8
};


typedef struct nested_state {
    CUstream    stream;
    uint32_t    n;
    CUdeviceptr x;
    CUdeviceptr word;
    CUfunction  scale;
    CUfunction  chain;
} nested_state_t;


static void nested_work(nested_state_t *state, uint32_t value)
{
    PRG_LAUNCH(state->scale, state->stream, state->n, &state->x, &state->n,
               &value);
    PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &value);
}

static void nested_print(nested_state_t *state, const char *name)
{
    PRG_CHECK(cuStreamSynchronize(state->stream));
    prg_print_hash(name, state->word, 1);
}

static nvtxEventAttributes_t nested_text(const char *text)
{
    nvtxEventAttributes_t attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.version       = NVTX_VERSION;
    attributes.size          = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType   = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = text;
    return attributes;
}

static void nested_push_pop(nested_state_t *state)
{
    unsigned run, i;

    for (run = 0; run < NESTED_RUNS; ++run) {
        nested_work(state, 1);
        nvtxRangePushA("outer");
        nested_work(state, 2);
        for (i = 0; i < 1 + run / 4; ++i) {
            nvtxRangePushA("inner");
            nested_work(state, 3);
            nvtxRangePushA("innermost");
            nested_work(state, 4);
            nvtxRangePop();
            nvtxRangePop();
        }
        nested_work(state, run);
        nvtxRangePop();
        nvtxRangePushA("inner");
        nested_work(state, 5);
        nvtxRangePop();
        nvtxRangePop();         /* one too many */
    }
    nested_print(state, "push and pop");
}

/* The range that starts first ends first, or last. */
static void nested_start_end(nested_state_t *state)
{
    unsigned run;

    for (run = 0; run < NESTED_RUNS; ++run) {
        nvtxRangeId_t first, second;

        first = nvtxRangeStartA("first");
        nested_work(state, 1);
        second = nvtxRangeStartA("second");
        nested_work(state, 2);
        nvtxRangeEnd(run % 2 ? first : second);
        nested_work(state, 3);
        nvtxRangeEnd(run % 2 ? second : first);
        nvtxRangePushA("pushed");
        first = nvtxRangeStartA("first");
        nested_work(state, 4);
        nvtxRangePop();
        nested_work(state, 5);
        nvtxRangeEnd(first);
    }
    nested_print(state, "start and end");
}

static void nested_domains(nested_state_t *state)
{
    nvtxDomainHandle_t domain       = nvtxDomainCreateA("domain");
    nvtxEventAttributes_t attribute = nested_text("by text");
    nvtxEventAttributes_t registered;
    unsigned run;

    memset(&registered, 0, sizeof(registered));
    registered.version            = NVTX_VERSION;
    registered.size               = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    registered.messageType        = NVTX_MESSAGE_TYPE_REGISTERED;
    registered.message.registered = nvtxDomainRegisterStringA(domain,
                                                              "registered");
    for (run = 0; run < NESTED_RUNS; ++run) {
        nvtxRangeId_t id;

        nvtxDomainRangePushEx(domain, &attribute);
        nested_work(state, 1);
        nvtxRangePushA("default domain");
        nested_work(state, 2);
        nvtxDomainRangePop(domain);     /* they need not nest */
        nested_work(state, 3);
        nvtxRangePop();
        id = nvtxDomainRangeStartEx(domain, &registered);
        nested_work(state, 4);
        nvtxDomainRangeEnd(domain, id);
        nvtxDomainRangePushEx(domain, &registered);
        nested_work(state, run);
        nvtxDomainRangePop(domain);
    }
    nvtxDomainDestroy(domain);
    nested_print(state, "domains");
}

static void nested_texts(nested_state_t *state)
{
    nvtxEventAttributes_t nothing;
    char text[20];
    unsigned run;

    memset(&nothing, 0, sizeof(nothing));
    nothing.version = NVTX_VERSION;
    nothing.size    = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    for (run = 0; run < NESTED_RUNS; ++run) {
        nvtxRangePushW(L"wide \u00e4\u20ac");
        nested_work(state, 1);
        nvtxRangePop();
        nvtxRangePushEx(&nothing);
        nested_work(state, 2);
        nvtxRangePop();
        nvtxRangePushA("");
        nested_work(state, 3);
        nvtxRangePop();
        /* A name of its own in every run: never a second run of a region. */
        snprintf(text, sizeof(text), "number %u", run);
        nvtxRangePushA(text);
        memset(text, 0, sizeof(text));
        nested_work(state, 4);
        nvtxRangePop();
        nvtxRangePushA("no work");
        nvtxMarkA("mark");
        nvtxRangePop();
    }
    nested_print(state, "texts");
}

int main(void)
{
    nested_state_t state = { .n = NESTED_WORDS };
    prg_context_t prg;

    nvtxRangePushA("before the driver");
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePushA("all");      /* its runs are one, so nothing repeats in it */
    prg_open(&prg);
    state.scale = prg_kernel(&prg, "k_scale");
    state.chain = prg_kernel(&prg, "k_chain");
    state.x     = prg_alloc(&prg, state.n, 4);
    state.word  = prg_alloc(&prg, 1, 1);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));
    nested_work(&state, 1);
    nvtxRangePop();

    nested_push_pop(&state);
    nested_start_end(&state);
    nested_domains(&state);
    nested_texts(&state);
    prg_print_hash("x", state.x, state.n);

    nvtxRangePushA("left open");
    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&prg);
    return 0;
}
