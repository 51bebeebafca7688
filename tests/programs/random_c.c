/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random program as C: its steps, one by one, for a file that begins with
 * random_head.h. tests/random-c.sh puts the file together.
 */
#include <string.h>

#include "random.h"


/* As in random_kinds.h; besides, %i is the step, %o the number of the buffer,
 * %g the shape of a launch, %u the operation's luck and %x the mode of a
 * capture. */
static const char *const rnd_c_text[RND_NUM_KINDS] = {
    [RND_AXPY]     = "LAUNCH(f[%m][K_AXPY], %s, &%t, &%a, U32(%w), U32(%v));",
    [RND_SCALE]    = "LAUNCH(f[%m][K_SCALE], %s, &%t, U32(%w), U32(%v));",
    [RND_HASH]     = "LAUNCH(f[%m][K_HASH], %s, &%t, U32(%w), U32(%v));",
    [RND_ADD3]     = "LAUNCH(f[%m][K_ADD3], %s, &%t, &%a, &%b, U32(%w));",
    [RND_ADD4]     = "LAUNCH(f[%m][K_ADD4], %s, &%t, &%a, &%b, &%c, U32(%w));",
    [RND_CHAIN]    = "LAUNCH(f[%m][K_CHAIN], %s, &%t, U32(%v));",
    [RND_STRUCT]   = "launch_shape(f[%m][K_STRUCT], %s, %t, %v, %w);",
    [RND_TABLE]    = "launch_table(f[%m][K_TABLE], %s, %t, %v, %w);",
    [RND_GRID]     = "launch_grid(f[%m][K_GRID], %s, %t, %w, %g);",
    [RND_GRID_EX]  = "launch_grid_ex(f[%m][K_GRID], %s, %t, %w, %g);",
    [RND_TURN]     = "result[%i] = launch_turn(f[%m][K_TURN], %s, %t, %w, 0);",
    [RND_TURN_BIG] =
        "result[%i] = launch_turn(f[%m][K_TURN], %s, %t, %w, 60000);",
    [RND_EXTRA]    = "launch_extra(f[%m][K_SCALE], %s, %t, %w, %v);",
    [RND_EX]       = "launch_ex(f[%m][K_SCALE], %s, %t, %w, %v, %u);",
    [RND_COOPERATIVE] =
        "CHECK(cuLaunchCooperativeKernel(f[%m][K_AXPY], 1, 1, 1, %w, 1, 1, 0, "
        "%s, PARAMS(&%t, &%a, U32(%w), U32(%v))));",
    [RND_KERNEL_COPY] = "LAUNCH(f[%m][K_COPY], %s, &%t, &%a, U32(%w));",
    [RND_BAD_LAUNCH] =
        "result[%i] = cuLaunchKernel(f[%m][K_SCALE], 1, 1, 1, 5000, 1, 1, 0, "
        "%s, PARAMS(&%t, U32(%w), U32(%v)), NULL);",
    [RND_SET8]     =
        "CHECK(cuMemsetD8Async(%t, (unsigned char)%v, %w, %s));",
    [RND_SET16]    =
        "CHECK(cuMemsetD16Async(%t, (unsigned short)%v, %w, %s));",
    [RND_SET32]    = "CHECK(cuMemsetD32Async(%t, %v, %w, %s));",
    [RND_SET_2D8]  = "CHECK(cuMemsetD2D8Async(%t, 32, (unsigned char)%v, "
        "%w %% 24, 5, %s));",
    [RND_SET_2D32] =
        "CHECK(cuMemsetD2D32Async(%t, 32, %v, 1 + %w %% 7, 5, %s));",
    [RND_SET8_NOW] = "CHECK(cuMemsetD8(%t, (unsigned char)%v, %w));",
    [RND_SET32_NOW] = "CHECK(cuMemsetD32(%t, %v, %w));",
    [RND_SET_2D_NOW] = "CHECK(cuMemsetD2D32(%t, 32, %v, 1 + %w %% 7, 5));",
    [RND_DTOD]     = "CHECK(cuMemcpyDtoDAsync(%t, %a, 4 * %w, %s));",
    [RND_DTOD_NOW] = "CHECK(cuMemcpyDtoD(%t, %a, 4 * %w));",
    [RND_ANY]      = "CHECK(cuMemcpyAsync(%t, %a, 4 * %w, %s));",
    [RND_ANY_NOW]  = "CHECK(cuMemcpy(%t, %a, 4 * %w));",
    [RND_COPY_2D]  = "copy_2d(%t, %a, 4 + %w %% 28, %v %% 3, false, %s);",
    [RND_COPY_2D_NOW] = "copy_2d(%t, %a, 4 + %w %% 28, %v %% 3, true, NULL);",
    [RND_COPY_3D]  = "copy_3d(%t, %a, 4 + %w %% 28, %s);",
    [RND_FROM_PINNED] = "CHECK(cuMemcpyHtoDAsync(%t, host(%a), 4 * %w, %s));",
    [RND_TO_PINNED] = "CHECK(cuMemcpyDtoHAsync(host(%t), %a, 4 * %w, %s));",
    [RND_FROM_PAGEABLE] = "from_pageable(%t, %v, %w, false, %s);",
    [RND_TO_PAGEABLE] = "result[%i] = to_pageable(%a, %w, false, %s);",
    [RND_FROM_PAGEABLE_NOW] = "from_pageable(%t, %v, %w, true, NULL);",
    [RND_TO_PAGEABLE_NOW] = "result[%i] = to_pageable(%a, %w, true, NULL);",
    [RND_HOST_MIX] = "CHECK(cuLaunchHostFunc(%s, mix_words, host(%t)));",
    [RND_HOST_VALUE] = "{ static cell_t cell; cell = (cell_t){ host(%t), %v }; "
        "CHECK(cuLaunchHostFunc(%s, mix_value, &cell)); }",
    [RND_CAPTURE]  = "capture(f[0][K_AXPY], f[0][K_HASH], %s, %t, %a, %w, %v, "
        "%x);",
    [RND_RECORD]   = "CHECK(cuEventRecord(%e, %s));",
    [RND_WAIT]     = "CHECK(cuStreamWaitEvent(%s, %e, 0));",
    [RND_EVENT_QUERY] = "(void)cuEventQuery(%e);",
    [RND_EVENT_ANEW] = "CHECK(cuEventDestroy(%e)); new_event(&%e, %v);",
    [RND_ELAPSED]  = "result[%i] = elapsed(%e, %f);",
    [RND_EVENT_SYNC] = "CHECK(cuEventSynchronize(%e));",
    [RND_EVENT_POLL] = "POLL(cuEventQuery(%e))",
    [RND_STREAM_SYNC] = "CHECK(cuStreamSynchronize(%s));",
    [RND_STREAM_POLL] = "POLL(cuStreamQuery(%s))",
    [RND_STREAM_QUERY] = "(void)cuStreamQuery(%s);",
    [RND_CONTEXT_SYNC] = "CHECK(cuCtxSynchronize());",
    [RND_DUMP]     = "CHECK(cuCtxSynchronize());",
    [RND_PINNED_WRITE] = "add(%t, %v);",
    [RND_ASK]      = "ask(%s);",
    [RND_REPLACE]  = "replace(%o, false, %v, %s);",
    [RND_REPLACE_ASYNC] = "replace(%o, true, %v, %s);",
    [RND_STREAM_ANEW] = "CHECK(cuStreamDestroy(%s)); "
        "CHECK(cuStreamCreateWithPriority(&%s, %v %% 2 ? "
        "CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT, -(%v / 2 %% 2)));",
    [RND_MODULE_ANEW] = "unload(); load(1, %v %% 2);",
    [RND_FUNCTION_LIMIT] = "limit(%v %% 2 ? 60000 : 40000);",
    [RND_SET_FLAG] = "LAUNCH(f[0][K_SIGNAL], %s, &%t, U32(%v));",
    [RND_SET_FLAG_HOST] = "{ static cell_t cell; "
        "cell = (cell_t){ host(%t), %v }; "
        "CHECK(cuLaunchHostFunc(%s, set_word, &cell)); }",
    [RND_POLL_FLAG] = "poll_flag(%t, %v);",
    [RND_PUSH]     = "nvtxRangePushA(%n);",
    [RND_PAUSE]    = "usleep(100 + %v);",
    [RND_POP]      = "nvtxRangePop();",
    [RND_START]    = "range[%r] = nvtxRangeStartA(%n);",
    [RND_END]      = "nvtxRangeEnd(range[%r]);"
};


static void rnd_c_grid(FILE *file, const rnd_op_t *op)
{
    rnd_grid_t grid = rnd_grid(op->shape);

    fprintf(file, "(grid_t){ {%u, %u, %u}, {%u, %u, %u}, %u }",
            grid.grid[0], grid.grid[1], grid.grid[2], grid.block[0],
            grid.block[1], grid.block[2], grid.shared_bytes);
}

/* Whatever a % in a text stands for. */
static void rnd_c_part(const rnd_program_t *p, FILE *file, unsigned index,
                       char what)
{
    static const char *const modes[] = {
        "CU_STREAM_CAPTURE_MODE_RELAXED",
        "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
        "CU_STREAM_CAPTURE_MODE_GLOBAL"
    };
    const rnd_op_t *op = &p->step[index].op;
    char name[64];

    switch (what) {
    case 's':
        if (rnd_is_created(op->slot)) {
            fprintf(file, "stream[%u]", op->slot);
        } else {
            fputs(op->slot == RND_LEGACY ? "NULL" : "CU_STREAM_PER_THREAD",
                  file);
        }
        break;
    case 't': fprintf(file, "buffer[%u]", op->to); break;
    case 'a': fprintf(file, "buffer[%u]", op->from[0]); break;
    case 'b': fprintf(file, "buffer[%u]", op->from[1]); break;
    case 'c': fprintf(file, "buffer[%u]", op->from[2]); break;
    case 'e': fprintf(file, "event[%u]", op->event[0]); break;
    case 'f': fprintf(file, "event[%u]", op->event[1]); break;
    case 'g': rnd_c_grid(file, op); break;
    case 'i': fprintf(file, "%u", index); break;
    case 'm': fprintf(file, "%u", op->module); break;
    case 'n':
        rnd_range_name(p, op->name, name, sizeof(name));
        fprintf(file, "\"%s\"", name);
        break;
    case 'o': fprintf(file, "%u", op->to); break;
    case 'r': fprintf(file, "%u", op->range); break;
    case 'u': fprintf(file, "%u", op->luck); break;
    case 'v': fprintf(file, "%u", op->value); break;
    case 'w': fprintf(file, "%u", op->words); break;
    case 'x': fputs(modes[rnd_capture_mode(p, op)], file); break;
    default: fputc('%', file); break;
    }
}

static void rnd_c_step(const rnd_program_t *p, FILE *file, unsigned index)
{
    const rnd_step_t *step = &p->step[index];
    const char *text       = rnd_c_text[step->op.kind];
    unsigned i;

    fputs("    ", file);
    for (i = 0; i < p->num_threads; ++i) {
        if (step->after[i] > 0) {
            fprintf(file, "after(%u, %u); ", i, step->after[i]);
        }
    }
    for (; *text != '\0'; ++text) {
        if (*text == '%') {
            rnd_c_part(p, file, index, *++text);
        } else {
            fputc(*text, file);
        }
    }
    if (step->look != 0) {
        fprintf(file, " result[%u] = look(0x%x);", index, step->look);
    }
    if (p->num_threads > 1) {
        fprintf(file, " reached(%u, %u);", step->op.thread, step->place);
    }
    fputs(step->is_added ? "    /* for the order */\n" : "\n", file);
}

static bool rnd_c_has_steps(const rnd_program_t *p, unsigned loop,
                            unsigned thread)
{
    unsigned i;

    for (i = loop == 0 ? 0 : p->loop_end[loop - 1]; i < p->loop_end[loop];
         ++i) {
        if (p->step[i].op.thread == thread) {
            return true;
        }
    }
    return false;
}

/* The steps of one thread in one loop, and the ends of its ranges. */
static void rnd_c_thread(const rnd_program_t *p, FILE *file, unsigned loop,
                         unsigned thread)
{
    unsigned depth = 0;
    unsigned i;

    if (!rnd_c_has_steps(p, loop, thread)) {
        return;
    }
    fprintf(file, "static void *seed_%llu_loop_%u_thread_%u(void *arg)\n{\n",
            (unsigned long long)p->seed, loop, thread);
    fputs("    CHECK(cuCtxSetCurrent(context));\n", file);
    for (i = loop == 0 ? 0 : p->loop_end[loop - 1]; i < p->loop_end[loop];
         ++i) {
        if (p->step[i].op.thread == thread) {
            rnd_c_step(p, file, i);
            depth += p->step[i].op.kind == RND_PUSH;
            depth -= p->step[i].op.kind == RND_POP && depth > 0;
        }
    }
    for (; depth > 0 && (thread == 0 || !p->leaves_open); --depth) {
        fputs("    nvtxRangePop();\n", file);
    }
    fputs("    return arg;\n}\n\n", file);
}

static void rnd_c_loop(const rnd_program_t *p, FILE *file, unsigned loop)
{
    unsigned long long seed = p->seed;
    unsigned i;

    for (i = 1; i < p->num_threads; ++i) {
        if (rnd_c_has_steps(p, loop, i)) {
            fprintf(file, "    start(&thread[%u], "
                    "seed_%llu_loop_%u_thread_%u);\n", i, seed, loop, i);
        }
    }
    if (rnd_c_has_steps(p, loop, 0)) {
        fprintf(file, "    seed_%llu_loop_%u_thread_0(NULL);\n", seed, loop);
    }
    for (i = 1; i < p->num_threads; ++i) {
        if (rnd_c_has_steps(p, loop, i)) {
            fprintf(file, "    pthread_join(thread[%u], NULL);\n", i);
        }
    }
}

/* The same lines as random_ops prints. */
static void rnd_c_print(const rnd_program_t *p, FILE *file)
{
    const rnd_step_t *step;
    unsigned i;

    fprintf(file, "    printf(\"seed %llu: %u threads, %u operations, %u "
            "steps\\n\");\n", (unsigned long long)p->seed, p->num_threads,
            p->num_ops, p->num_steps);
    for (i = 0; i < p->num_steps; ++i) {
        step = &p->step[i];
        if (step->look != 0 || rnd_kinds[step->op.kind].flags & RND_RESULT) {
            fprintf(file, "    printf(\"%u %%016llx\\n\", "
                    "(unsigned long long)result[%u]);\n", i, i);
        }
    }
}

/* Ranges that some thread has started and none has ended. */
static void rnd_c_end_ranges(const rnd_program_t *p, FILE *file)
{
    bool is_open[RND_RANGES] = {false};
    const rnd_op_t *op;
    unsigned i;

    for (i = 0; i < p->num_steps; ++i) {
        op = &p->step[i].op;
        if (op->kind == RND_START || op->kind == RND_END) {
            is_open[op->range] = op->kind == RND_START;
        }
    }
    for (i = 0; i < RND_RANGES; ++i) {
        if (is_open[i]) {
            fprintf(file, "    nvtxRangeEnd(range[%u]);\n", i);
        }
    }
}

void rnd_print_c(const rnd_program_t *p, FILE *file)
{
    unsigned loop, i;

    for (loop = 0; loop <= p->num_loops; ++loop) {
        for (i = 0; i < p->num_threads; ++i) {
            rnd_c_thread(p, file, loop, i);
        }
    }
    fprintf(file, "static void seed_%llu(void)\n{\n"
            "    static const unsigned flags[] = {\n",
            (unsigned long long)p->seed);
    for (i = 0; i < RND_LEGACY; ++i) {
        fprintf(file, "        %s%s\n",
                p->stream_flags[i] == CU_STREAM_DEFAULT ?
                "CU_STREAM_DEFAULT" : "CU_STREAM_NON_BLOCKING",
                i + 1 < RND_LEGACY ? "," : "");
    }
    fputs("    };\n    pthread_t thread[4] __attribute__((unused));\n\n"
          "    begin(flags);\n", file);
    for (loop = 0; loop <= p->num_loops; ++loop) {
        rnd_c_loop(p, file, loop);
    }
    rnd_c_end_ranges(p, file);
    fputs("    end();\n", file);
    rnd_c_print(p, file);
    fputs("}\n\n", file);
}

void rnd_print_c_main(const uint64_t *seeds, unsigned num_seeds, FILE *file)
{
    unsigned i;

    fputs("int main(void)\n{\n    open_all();\n", file);
    for (i = 0; i < num_seeds; ++i) {
        fprintf(file, "    seed_%llu();\n", (unsigned long long)seeds[i]);
    }
    fputs("    close_all();\n    return 0;\n}\n", file);
}
