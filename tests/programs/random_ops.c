/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs: loops over random sequences of launches, copies, sets, syncs
 * and reallocations on one to three streams, in ranges entered and left at
 * random, with sequences that change a little from one repetition to the next.
 *
 *     random_ops SEED [COUNT]      programs SEED, SEED + 1, ... (COUNT of them)
 *
 * Each program prints hashes of all memory at its syncs and at its end. They
 * depend on the seed alone: whenever an operation touches memory that another
 * stream touched last, it waits for that stream, by an event where the streams
 * do not wait for each other by themselves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "kernels.h"
#include "util.h"


enum {
    RANDOM_WORDS   = 64,        /* in each buffer */
    RANDOM_BYTES   = RANDOM_WORDS * sizeof(uint32_t),
    RANDOM_BUFFERS = 5,         /* of device memory; pinned ones follow */
    RANDOM_PINNED  = 2,
    RANDOM_ALL     = RANDOM_BUFFERS + RANDOM_PINNED,
    RANDOM_STREAMS = 3,
    RANDOM_OPS     = 40,
    RANDOM_NOBODY  = -1         /* touched by no stream since the last sync */
};


typedef enum random_kind {
    RANDOM_AXPY,
    RANDOM_SCALE,
    RANDOM_HASH,
    RANDOM_ADD3,
    RANDOM_CHAIN,
    RANDOM_STRUCT,
    RANDOM_TURN,
    RANDOM_LAST_LAUNCH = RANDOM_TURN,
    RANDOM_SET8,
    RANDOM_SET16,
    RANDOM_SET32,
    RANDOM_SET_2D,
    RANDOM_COPY,
    RANDOM_COPY_ANY,
    RANDOM_COPY_2D,
    RANDOM_FROM_PINNED,
    RANDOM_FROM_PAGEABLE,
    RANDOM_TO_PINNED,
    RANDOM_LAST_WORK = RANDOM_TO_PINNED,
    RANDOM_BAD_LAUNCH,
    RANDOM_ASK,
    RANDOM_QUERY,
    RANDOM_SYNC_STREAM,
    RANDOM_SYNC_CONTEXT,
    RANDOM_LOOK,
    RANDOM_REPLACE,
    RANDOM_REPLACE_ASYNC,
    RANDOM_LAST
} random_kind_t;


typedef struct random_op {
    random_kind_t kind;
    unsigned      stream;
    unsigned      to;
    unsigned      from[2];
    unsigned      pinned;
    uint32_t      value;
    uint32_t      words;
} random_op_t;


typedef struct random_program {
    prg_context_t prg;
    uint64_t      state;                    /* of the generator */
    unsigned      num_streams;
    CUstream      stream[RANDOM_STREAMS];
    int           waits_for_legacy[RANDOM_STREAMS];
    CUevent       event;
    CUdeviceptr   address[RANDOM_ALL];
    uint32_t      *pinned[RANDOM_PINNED];
    int           pooled[RANDOM_BUFFERS];   /* from cuMemAllocAsync */
    int           toucher[RANDOM_ALL];      /* stream that touched it last */
    CUfunction    axpy, scale, hash, add3, chain, shape, turn;
} random_program_t;


static uint32_t random_next(random_program_t *p, uint32_t below)
{
    p->state = p->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((p->state >> 33) % below);
}

static int random_chance(random_program_t *p, uint32_t percent)
{
    return random_next(p, 100) < percent;
}

static void random_wait_all(random_program_t *p)
{
    unsigned i;

    for (i = 0; i < RANDOM_ALL; ++i) {
        p->toucher[i] = RANDOM_NOBODY;
    }
}

/* Orders the stream after whoever touched the buffer last. */
static void random_touch(random_program_t *p, unsigned stream, unsigned buffer)
{
    int last = p->toucher[buffer];

    p->toucher[buffer] = (int)stream;
    if (last == RANDOM_NOBODY || last == (int)stream) {
        return;
    }
    if ((p->stream[last] == NULL && p->waits_for_legacy[stream]) ||
        (p->stream[stream] == NULL && p->waits_for_legacy[last])) {
        return;
    }
    PRG_CHECK(cuEventRecord(p->event, p->stream[last]));
    PRG_CHECK(cuStreamWaitEvent(p->stream[stream], p->event, 0));
}

static void random_print(random_program_t *p)
{
    uint64_t hash = 0;
    unsigned i;

    PRG_CHECK(cuCtxSynchronize());
    random_wait_all(p);
    for (i = 0; i < RANDOM_BUFFERS; ++i) {
        hash = hash * 1099511628211u + prg_hash(p->address[i], RANDOM_WORDS);
    }
    for (i = 0; i < RANDOM_PINNED; ++i) {
        hash = hash * 1099511628211u +
               prg_hash_host(p->pinned[i], RANDOM_BYTES);
    }
    printf("%016llx\n", (unsigned long long)hash);
}

static void random_launch(random_program_t *p, const random_op_t *op)
{
    CUstream stream   = p->stream[op->stream];
    CUdeviceptr to    = p->address[op->to];
    CUdeviceptr a     = p->address[op->from[0]];
    CUdeviceptr b     = p->address[op->from[1]];
    uint32_t n        = op->words;
    uint32_t value    = op->value;
    unsigned block    = n >= 32 ? 32 : 16;
    krn_shape_t shape;

    switch (op->kind) {
    case RANDOM_AXPY:
        PRG_LAUNCH(p->axpy, stream, n, &to, &a, &n, &value);
        break;
    case RANDOM_SCALE:
        PRG_LAUNCH(p->scale, stream, n, &to, &n, &value);
        break;
    case RANDOM_HASH:
        PRG_LAUNCH(p->hash, stream, n, &to, &n, &value);
        break;
    case RANDOM_ADD3:
        PRG_LAUNCH(p->add3, stream, n, &to, &a, &b, &n);
        break;
    case RANDOM_CHAIN:
        PRG_LAUNCH(p->chain, stream, 1, &to, &value);
        break;
    case RANDOM_STRUCT:
        memset(&shape, 0, sizeof(shape));
        shape.width    = value;
        shape.flags[1] = (uint8_t)value;
        shape.rounds   = 3;
        PRG_LAUNCH(p->shape, stream, n, &to, &shape, &n);
        break;
    case RANDOM_TURN:
        PRG_CHECK(cuLaunchKernel(p->turn, n / block, 1, 1, block, 1, 1,
                                 block * sizeof(uint32_t), stream,
                                 (void*[]){ &to, &n }, NULL));
        break;
    default:        /* RANDOM_BAD_LAUNCH */
        printf("%s\n", prg_error_name(cuLaunchKernel(
                           p->scale, 1, 1, 1, 5000, 1, 1, 0, stream,
                           (void*[]){ &to, &n, &value }, NULL)));
        break;
    }
}

static void random_set(random_program_t *p, const random_op_t *op)
{
    CUstream stream = p->stream[op->stream];
    CUdeviceptr to  = p->address[op->to];

    switch (op->kind) {
    case RANDOM_SET8:
        PRG_CHECK(cuMemsetD8Async(to, (unsigned char)op->value, op->words,
                                  stream));
        break;
    case RANDOM_SET16:
        PRG_CHECK(cuMemsetD16Async(to, (unsigned short)op->value, op->words,
                                   stream));
        break;
    case RANDOM_SET32:
        PRG_CHECK(cuMemsetD32Async(to, op->value, op->words, stream));
        break;
    default:
        PRG_CHECK(cuMemsetD2D32Async(to, 32, op->value, 1 + op->words % 7, 5,
                                     stream));
        break;
    }
}

static void random_copy_2d(random_program_t *p, const random_op_t *op)
{
    CUDA_MEMCPY2D copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice     = p->address[op->from[0]];
    copy.srcPitch      = 32;
    copy.srcY          = op->value % 3;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice     = p->address[op->to];
    copy.dstPitch      = 32;
    copy.WidthInBytes  = 4 + op->words % 28;
    copy.Height        = 4;
    PRG_CHECK(cuMemcpy2DAsync(&copy, p->stream[op->stream]));
}

static void random_copy(random_program_t *p, const random_op_t *op)
{
    CUstream stream  = p->stream[op->stream];
    CUdeviceptr to   = p->address[op->to];
    CUdeviceptr from = p->address[op->from[0]];
    size_t bytes     = op->words * sizeof(uint32_t);
    uint32_t pageable[RANDOM_WORDS];
    unsigned i;

    switch (op->kind) {
    case RANDOM_COPY:
        PRG_CHECK(cuMemcpyDtoDAsync(to, from, bytes, stream));
        break;
    case RANDOM_COPY_ANY:
        PRG_CHECK(cuMemcpyAsync(to, from, bytes, stream));
        break;
    case RANDOM_COPY_2D:
        random_copy_2d(p, op);
        break;
    case RANDOM_FROM_PINNED:
        PRG_CHECK(cuMemcpyHtoDAsync(to, p->pinned[op->pinned], bytes, stream));
        break;
    case RANDOM_FROM_PAGEABLE:
        for (i = 0; i < RANDOM_WORDS; ++i) {
            pageable[i] = op->value + i * i;
        }
        PRG_CHECK(cuMemcpyHtoDAsync(to, pageable, bytes, stream));
        memset(pageable, 0, sizeof(pageable));
        break;
    default:
        PRG_CHECK(cuMemcpyDtoHAsync(p->pinned[op->pinned], to, bytes, stream));
        break;
    }
}

/* The buffer is freed and made anew, maybe at the same address. */
static void random_replace(random_program_t *p, const random_op_t *op)
{
    CUstream stream      = p->stream[op->stream];
    CUdeviceptr *address = &p->address[op->to];
    size_t bytes         = op->value % 2 ? RANDOM_BYTES : 4096;

    /* Only pooled memory may be freed in stream order. */
    if (op->kind == RANDOM_REPLACE || !p->pooled[op->to]) {
        PRG_CHECK(cuMemFree(*address));
    } else {
        PRG_CHECK(cuMemFreeAsync(*address, stream));
    }
    p->pooled[op->to] = op->kind == RANDOM_REPLACE_ASYNC;
    if (p->pooled[op->to]) {
        PRG_CHECK(cuMemAllocAsync(address, bytes, stream));
    } else {
        PRG_CHECK(cuMemAlloc(address, bytes));
    }
    PRG_CHECK(cuMemsetD32Async(*address, op->value, RANDOM_WORDS, stream));
}

static void random_sync(random_program_t *p, const random_op_t *op)
{
    CUstreamCaptureStatus status;
    CUcontext context;
    unsigned i;

    switch (op->kind) {
    case RANDOM_ASK:        /* what touches no work */
        PRG_CHECK(cuCtxGetCurrent(&context));
        PRG_CHECK(cuStreamIsCapturing(p->stream[op->stream], &status));
        break;
    case RANDOM_QUERY:
        (void)cuStreamQuery(p->stream[op->stream]);
        break;
    case RANDOM_SYNC_STREAM:
        PRG_CHECK(cuStreamSynchronize(p->stream[op->stream]));
        for (i = 0; i < RANDOM_ALL; ++i) {
            if (p->toucher[i] == (int)op->stream) {
                p->toucher[i] = RANDOM_NOBODY;
            }
        }
        break;
    case RANDOM_SYNC_CONTEXT:
        PRG_CHECK(cuCtxSynchronize());
        random_wait_all(p);
        break;
    default:
        random_print(p);
        for (i = 0; i < RANDOM_WORDS; ++i) {    /* ours again after the sync */
            p->pinned[op->pinned][i] += op->value + i;
        }
        break;
    }
}

static void random_issue(random_program_t *p, const random_op_t *op)
{
    if (op->kind > RANDOM_BAD_LAUNCH && op->kind < RANDOM_REPLACE) {
        random_sync(p, op);
        return;
    }

    random_touch(p, op->stream, op->to);
    random_touch(p, op->stream, op->from[0]);
    random_touch(p, op->stream, op->from[1]);
    random_touch(p, op->stream, RANDOM_BUFFERS + op->pinned);
    if (op->kind >= RANDOM_REPLACE) {
        random_replace(p, op);
    } else if (op->kind <= RANDOM_LAST_LAUNCH || op->kind == RANDOM_BAD_LAUNCH) {
        random_launch(p, op);
    } else if (op->kind <= RANDOM_SET_2D) {
        random_set(p, op);
    } else {
        random_copy(p, op);
    }
}

/* Buffer 0 gathers: nothing overwrites it, so that an effect which reached it
 * is seen at the end. No operation reads what it writes. */
static void random_settle(random_op_t *op)
{
    unsigned i;

    if (op->kind > RANDOM_LAST_LAUNCH && op->to == 0) {
        op->to = 1 + op->value % (RANDOM_BUFFERS - 1);
    }
    for (i = 0; i < 2; ++i) {
        if (op->from[i] == op->to) {
            op->from[i] = (op->to + 1) % RANDOM_BUFFERS;
        }
    }
}

/* Mostly work, now and then something that cuts a region; mostly launches,
 * which keep a trace of what was there before, in one stream. */
static void random_make_op(random_program_t *p, random_op_t *op,
                           unsigned percent_work)
{
    if (!random_chance(p, percent_work)) {
        op->kind = random_next(p, RANDOM_LAST);
    } else if (random_chance(p, 70)) {
        op->kind = random_next(p, RANDOM_LAST_LAUNCH + 1);
    } else {
        op->kind = random_next(p, RANDOM_LAST_WORK + 1);
    }
    op->stream  = random_chance(p, 90) ? 0 : random_next(p, p->num_streams);
    op->to      = random_chance(p, 30) ? 0 : random_next(p, RANDOM_BUFFERS);
    op->from[0] = random_next(p, RANDOM_BUFFERS);
    op->from[1] = random_next(p, RANDOM_BUFFERS);
    op->pinned  = random_next(p, RANDOM_PINNED);
    op->value   = random_next(p, 1000);
    op->words   = 16u << random_next(p, 3);
    random_settle(op);
}

/* What is different in one repetition; the next one starts from the loop. */
static void random_change(random_program_t *p, random_op_t *ops,
                          unsigned *num_ops_p, unsigned repetition)
{
    unsigned i = random_next(p, *num_ops_p);
    unsigned k;

    switch (random_next(p, 8)) {
    case 0:             /* one value */
        ops[i].value += repetition;
        break;
    case 1:             /* every value */
        for (k = 0; k < *num_ops_p; ++k) {
            ops[k].value += repetition;
        }
        break;
    case 2:             /* one buffer */
        ops[i].to = random_next(p, RANDOM_BUFFERS);
        break;
    case 3:             /* another operation */
        random_make_op(p, &ops[i], 80);
        break;
    case 4:             /* a shorter sequence */
        *num_ops_p = i + 1;
        break;
    case 5:             /* a longer sequence */
        if (*num_ops_p < RANDOM_OPS) {
            random_make_op(p, &ops[(*num_ops_p)++], 90);
        }
        break;
    case 6:             /* another length */
        ops[i].words = 16u << random_next(p, 3);
        break;
    default:            /* another stream */
        ops[i].stream = random_next(p, p->num_streams);
        break;
    }
    random_settle(&ops[i]);
}

static void random_loop(random_program_t *p, unsigned index)
{
    unsigned num_ops     = 1 + random_next(p, RANDOM_OPS - 5);
    unsigned repetitions = 3 + random_next(p, 8);
    unsigned work        = random_chance(p, 50) ? 100 : 92;
    unsigned change      = 10 * random_next(p, 10);
    int inside           = random_chance(p, 85);
    unsigned begin       = random_chance(p, 70) ? 0 : random_next(p, num_ops);
    int nested           = random_chance(p, 20);
    random_op_t loop[RANDOM_OPS], ops[RANDOM_OPS];
    unsigned run, i, num;
    char name[20];

    snprintf(name, sizeof(name), "loop %u", index % 3);
    for (i = 0; i < num_ops; ++i) {
        random_make_op(p, &loop[i], work);
    }
    for (run = 0; run < repetitions; ++run) {
        memcpy(ops, loop, sizeof(ops));
        num = num_ops;
        while (random_chance(p, change)) {
            random_change(p, ops, &num, run);
        }
        for (i = 0; i < num; ++i) {
            if (inside && i == (begin < num ? begin : 0)) {
                nvtxRangePushA(name);
            }
            if (nested && i == num / 2) {
                nvtxRangePushA("nested");
            }
            random_issue(p, &ops[i]);
        }
        if (nested) {
            nvtxRangePop();
        }
        if (inside) {
            nvtxRangePop();
        }
        if (random_chance(p, 30)) {
            random_print(p);
        }
    }
}

static void random_open(random_program_t *p, uint64_t seed)
{
    unsigned flags, i;

    p->state       = seed * 2654435761u + 12345;
    p->num_streams = 1 + random_next(p, RANDOM_STREAMS);
    for (i = 0; i < p->num_streams; ++i) {
        p->stream[i]           = NULL;
        p->waits_for_legacy[i] = 1;
        if (random_chance(p, 75)) {
            p->waits_for_legacy[i] = random_chance(p, 50);
            flags = p->waits_for_legacy[i] ? CU_STREAM_DEFAULT
                                           : CU_STREAM_NON_BLOCKING;
            PRG_CHECK(cuStreamCreate(&p->stream[i], flags));
        }
    }
    PRG_CHECK(cuEventCreate(&p->event, CU_EVENT_DISABLE_TIMING));
    for (i = 0; i < RANDOM_BUFFERS; ++i) {
        p->address[i] = prg_alloc(&p->prg, RANDOM_WORDS, i * 1000);
        p->pooled[i]  = 0;
    }
    for (i = 0; i < RANDOM_PINNED; ++i) {
        PRG_CHECK(cuMemAllocHost((void**)&p->pinned[i], RANDOM_BYTES));
        memset(p->pinned[i], (int)i + 1, RANDOM_BYTES);
    }
    random_wait_all(p);
}

static void random_close(random_program_t *p)
{
    unsigned i;

    for (i = 0; i < RANDOM_PINNED; ++i) {
        PRG_CHECK(cuMemFreeHost(p->pinned[i]));
    }
    for (i = 0; i < RANDOM_BUFFERS; ++i) {
        PRG_CHECK(cuMemFree(p->address[i]));
    }
    PRG_CHECK(cuEventDestroy(p->event));
    for (i = 0; i < p->num_streams; ++i) {
        if (p->stream[i] != NULL) {
            PRG_CHECK(cuStreamDestroy(p->stream[i]));
        }
    }
}

static void random_run(random_program_t *p, uint64_t seed)
{
    unsigned i, num_loops;

    random_open(p, seed);
    num_loops = 1 + random_next(p, 4);
    printf("seed %llu: %u streams, %u loops\n", (unsigned long long)seed,
           p->num_streams, num_loops);
    for (i = 0; i < num_loops; ++i) {
        random_loop(p, i);
    }
    random_print(p);
    random_close(p);
}

int main(int argc, char **argv)
{
    static random_program_t program;
    unsigned long long seed, count, i;

    if (argc < 2) {
        fprintf(stderr, "usage: random_ops SEED [COUNT]\n");
        return EXIT_FAILURE;
    }
    seed  = strtoull(argv[1], NULL, 10);
    count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

    prg_open(&program.prg);
    program.axpy  = prg_kernel(&program.prg, "k_axpy");
    program.scale = prg_kernel(&program.prg, "k_scale");
    program.hash  = prg_kernel(&program.prg, "k_hash");
    program.add3  = prg_kernel(&program.prg, "k_add3");
    program.chain = prg_kernel(&program.prg, "k_chain");
    program.shape = prg_kernel(&program.prg, "k_struct");
    program.turn  = prg_kernel(&program.prg, "k_turn");
    for (i = 0; i < count; ++i) {
        random_run(&program, seed + i);
    }
    prg_close(&program.prg);
    return EXIT_SUCCESS;
}
