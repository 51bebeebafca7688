/* SPDX-License-Identifier: Apache-2.0 */
/* A random program as text: its steps in the order of their effects. */
#include <string.h>

#include "random.h"


void rnd_range_name(const rnd_program_t *p, uint32_t name, char *text,
                    size_t size)
{
    /* What is left open holds its name for the rest of the process. */
    if (p->leaves_open) {
        snprintf(text, size, "%llu left %u", (unsigned long long)p->seed,
                 name);
    } else {
        snprintf(text, size, "loop %u", name);
    }
}

static void rnd_print_buffer(FILE *file, unsigned buffer)
{
    if (buffer < RND_PINNED) {
        fprintf(file, "device[%u]", buffer);
    } else if (buffer < RND_MANAGED) {
        fprintf(file, "pinned[%u]", buffer - RND_PINNED);
    } else if (buffer < RND_FLAG) {
        fprintf(file, "managed");
    } else {
        fprintf(file, "flag[%u]", buffer - RND_FLAG);
    }
}

static void rnd_print_stream(FILE *file, unsigned slot)
{
    if (rnd_is_created(slot)) {
        fprintf(file, "stream[%u]", slot);
    } else {
        fputs(slot == RND_LEGACY ? "legacy" : "per_thread", file);
    }
}

static void rnd_print_grid(FILE *file, const rnd_op_t *op)
{
    rnd_grid_t grid = rnd_grid(op->shape);

    fprintf(file, "%ux%ux%u blocks of %ux%ux%u, %u bytes shared",
            grid.grid[0], grid.grid[1], grid.grid[2], grid.block[0],
            grid.block[1], grid.block[2], grid.shared_bytes);
}

/* Whatever a % in a kind's text stands for. */
static void rnd_print_part(const rnd_program_t *p, FILE *file,
                           const rnd_op_t *op, char what)
{
    char name[64];

    switch (what) {
    case 's': rnd_print_stream(file, op->slot); break;
    case 't': rnd_print_buffer(file, op->to); break;
    case 'a': rnd_print_buffer(file, op->from[0]); break;
    case 'b': rnd_print_buffer(file, op->from[1]); break;
    case 'c': rnd_print_buffer(file, op->from[2]); break;
    case 'v': fprintf(file, "%u", op->value); break;
    case 'w': fprintf(file, "%u", op->words); break;
    case 'e': fprintf(file, "event[%u]", op->event[0]); break;
    case 'f': fprintf(file, "event[%u]", op->event[1]); break;
    case 'g': rnd_print_grid(file, op); break;
    case 'm': fprintf(file, "module[%u]", op->module); break;
    case 'r': fprintf(file, "%u", op->range); break;
    case 'n':
        rnd_range_name(p, op->name, name, sizeof(name));
        fprintf(file, "\"%s\"", name);
        break;
    default: fputc('%', file); break;
    }
}

static void rnd_print_step(const rnd_program_t *p, FILE *file, unsigned index)
{
    const rnd_step_t *step = &p->step[index];
    const char *text       = rnd_kinds[step->op.kind].text;
    const char *separator  = "";
    unsigned i;

    fprintf(file, "    /* %4u, thread %u */ ", index, step->op.thread);
    for (i = 0; i < p->num_threads; ++i) {
        if (step->after[i] > 0) {
            fprintf(file, "after(%u, %u); ", i, step->after[i]);
        }
    }
    for (; *text != '\0'; ++text) {
        if (*text == '%') {
            rnd_print_part(p, file, &step->op, *++text);
        } else {
            fputc(*text, file);
        }
    }
    fputs(";", file);
    if (step->look != 0) {
        fputs(" look(", file);
        for (i = 0; i < RND_BUFFERS; ++i) {
            if (step->look & (1u << i)) {
                fputs(separator, file);
                rnd_print_buffer(file, i);
                separator = ", ";
            }
        }
        fputs(");", file);
    }
    if (step->is_added) {
        fprintf(file, "    /* for the order */\n");
    } else {
        fprintf(file, "    /* operation %u: loop %u, repetition %u */\n",
                step->number, step->op.loop, step->op.repeat);
    }
}

void rnd_list(const rnd_program_t *p, FILE *file)
{
    unsigned loop = 0;
    unsigned i;

    fprintf(file, "/* Seed %llu: %u threads. after(THREAD, NUMBER) waits for "
            "so many steps of a thread. */\n", (unsigned long long)p->seed,
            p->num_threads);
    for (i = 0; i < RND_LEGACY; ++i) {
        fprintf(file, "cuStreamCreate(&stream[%u], %s);\n", i,
                p->stream_flags[i] == CU_STREAM_DEFAULT ?
                "CU_STREAM_DEFAULT" : "CU_STREAM_NON_BLOCKING");
    }
    for (i = 0; i < p->num_steps; ++i) {
        while (i == p->loop_end[loop]) {
            ++loop;
            fprintf(file, "    /* the other threads end */\n");
        }
        rnd_print_step(p, file, i);
    }
}

void rnd_list_places(const rnd_program_t *p, FILE *file)
{
    unsigned i;

    for (i = 0; i < p->num_ops; ++i) {
        if (!p->dropped[i]) {
            fprintf(file, "%u %u %u %u %u\n", p->first_number + i,
                    p->first_number / RND_NUMBERS, p->op[i].loop,
                    p->op[i].repeat, p->op[i].body);
        }
    }
}
