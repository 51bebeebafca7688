/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels with many and with large arguments, of all sizes and alignments; one
 * of them changes from run to run, each in its turn.
 */
#include <stdio.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "kernels.h"
#include "util.h"


enum {
    MANY_WORDS = 64,
    MANY_ARGS  = 20,
    MANY_RUNS  = 24
};


typedef struct many_state {
    CUstream    stream;
    CUfunction  many;
    CUfunction  table;
    uint32_t    n;
    CUdeviceptr x;
    CUdeviceptr y;
} many_state_t;


/* The arguments of k_many, in order; r gets the state's second buffer. */
typedef struct many_args {
    CUdeviceptr out;
    uint32_t    n;
    uint8_t     a;
    uint64_t    b;
    uint16_t    c;
    uint32_t    d;
    uint8_t     e;
    uint8_t     f;
    uint64_t    g;
    uint16_t    h;
    uint16_t    i0;
    uint32_t    j;
    uint32_t    k;
    uint64_t    l;
    uint8_t     m;
    double      o;
    float       p;
    uint32_t    q;
    CUdeviceptr r;
    uint8_t     s;
} many_args_t;


static void many_launch(many_state_t *state, many_args_t *args)
{
    void *params[MANY_ARGS] = {
        &args->out, &args->n, &args->a, &args->b, &args->c, &args->d, &args->e,
        &args->f, &args->g, &args->h, &args->i0, &args->j, &args->k, &args->l,
        &args->m, &args->o, &args->p, &args->q, &args->r, &args->s
    };

    PRG_CHECK(prg_launch(state->many, state->stream, state->n, params));
}

/* Changes one argument that is neither an address nor a length. */
static void many_change(many_args_t *args, unsigned which)
{
    switch (which % 17) {
    case 0:  ++args->a;                     break;
    case 1:  args->b += 1ull << 40;         break;
    case 2:  ++args->c;                     break;
    case 3:  ++args->d;                     break;
    case 4:  ++args->e;                     break;
    case 5:  ++args->f;                     break;
    case 6:  ++args->g;                     break;
    case 7:  args->h += 256;                break;
    case 8:  ++args->i0;                    break;
    case 9:  args->j += 1u << 31;           break;
    case 10: ++args->k;                     break;
    case 11: args->l += 1ull << 56;         break;
    case 12: ++args->m;                     break;
    case 13: args->o += 0.5;                break;
    case 14: args->p -= 1.5f;               break;
    case 15: ++args->q;                     break;
    default: ++args->s;                     break;
    }
}

static void many_scalars(many_state_t *state)
{
    many_args_t args;
    unsigned run;

    memset(&args, 0, sizeof(args));
    args.n = state->n;
    for (run = 0; run < MANY_RUNS; ++run) {
        args.out = run % 5 ? state->x : state->y;
        args.r   = run % 5 ? state->y : state->x;
        nvtxRangePushA("many");
        many_launch(state, &args);
        many_change(&args, run);
        many_launch(state, &args);
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(state->stream));
    prg_print_hash("many x", state->x, state->n);
    prg_print_hash("many y", state->y, state->n);
}

/* 2 KB by value: one byte of it changes, at the ends and within. */
static void many_table(many_state_t *state)
{
    static krn_table_t table;
    unsigned char *byte = (unsigned char*)&table;
    size_t run;

    for (run = 0; run < MANY_RUNS; ++run) {
        nvtxRangePushA("table");
        PRG_LAUNCH(state->table, state->stream, state->n, &state->x, &table,
                   &state->n);
        ++byte[run * 13 % 256];
        PRG_LAUNCH(state->table, state->stream, state->n, &state->y, &table,
                   &state->n);
        nvtxRangePop();
        byte[sizeof(table) - 1] ^= 1;   /* too far for n words to notice */
    }
    PRG_CHECK(cuStreamSynchronize(state->stream));
    prg_print_hash("table x", state->x, state->n);
    prg_print_hash("table y", state->y, state->n);
}

int main(void)
{
    many_state_t state = { .n = MANY_WORDS };
    prg_context_t prg;

    prg_open(&prg);
    state.many  = prg_kernel(&prg, "k_many");
    state.table = prg_kernel(&prg, "k_table");
    state.x     = prg_alloc(&prg, state.n, 5);
    state.y     = prg_alloc(&prg, state.n, 50);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_DEFAULT));

    many_scalars(&state);
    many_table(&state);

    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.y));
    prg_close(&prg);
    return 0;
}
