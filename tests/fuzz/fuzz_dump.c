/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dumps of graphs: the name of the region up to a NUL, then for each call a
 * byte for its kind, its numbers, and the name of its kernel up to a NUL.
 *
 * Whatever regions and kernels are called, the picture is what Graphviz reads
 * (strings end where they should, each node and edge is a line), the list has
 * a line for each thing, and the name of the file is a safe one.
 */
/* Both are printed by what is static there. */
#include "../../src/dump.c"

#include "fuzz.h"

#define MAX_OPS   64
#define MAX_PARAM 4

/* ---- The driver and the kinds of ops, as far as dumps ask them ---- */

void *cgs_real[CGS_NUM_ENTRIES + CGS_NUM_SPARE];

static const cgs_op_kind_t kinds[] = {
    [CGS_OP_KERNEL] = {.name = "kernel"},
    [CGS_OP_COPY]   = {.name = "copy"},
    [CGS_OP_SET]    = {.name = "set"},
    [CGS_OP_HOST]   = {.name = "host function"},
    [CGS_OP_FREE]   = {.name = "free"},
    [CGS_OP_RECORD] = {.name = "event record"},
    [CGS_OP_WAIT]   = {.name = "event wait"},
};

const cgs_op_kind_t *const cgs_op_kinds[CGS_OP_NUM_KINDS] = {
    [CGS_OP_KERNEL] = &kinds[CGS_OP_KERNEL],
    [CGS_OP_COPY]   = &kinds[CGS_OP_COPY],
    [CGS_OP_SET]    = &kinds[CGS_OP_SET],
    [CGS_OP_HOST]   = &kinds[CGS_OP_HOST],
    [CGS_OP_FREE]   = &kinds[CGS_OP_FREE],
    [CGS_OP_RECORD] = &kinds[CGS_OP_RECORD],
    [CGS_OP_WAIT]   = &kinds[CGS_OP_WAIT],
};

/* Functions are the addresses of their names; one has none. */
static CUresult function_name(const char **name, CUfunction function)
{
    *name = (const char *)function;
    return CUDA_SUCCESS;
}

static CUresult no_kernel(const char **name, CUkernel kernel)
{
    (void)name;
    (void)kernel;
    return CUDA_ERROR_INVALID_HANDLE;
}

/* A chain of all nodes: node n is at the address n + 1. */
static size_t num_nodes;

static CUresult edges_of(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                         CUgraphEdgeData *data, size_t *num)
{
    size_t i;

    (void)graph;
    (void)data;
    *num = num_nodes > 0 ? num_nodes - 1 : 0;
    for (i = 0; (from != NULL) && (i < *num); ++i) {
        from[i] = (CUgraphNode)(uintptr_t)(i + 1);
        to[i]   = (CUgraphNode)(uintptr_t)(i + 2);
    }
    return CUDA_SUCCESS;
}

/* ---- Chunks ---- */

/* A chunk, and what it points to. */
typedef struct {
    cgs_chunk_t chunk;
    cgs_op_t    ops[MAX_OPS];
    char        *names[MAX_OPS];
    char        args[8 * MAX_PARAM + MAX_BYTES];
    size_t      lines; /* that the list is to have */
} made_t;

static void make_kernel(fuzz_input_t *input, made_t *made, cgs_op_t *op)
{
    uint32_t     num = fuzz_byte(input) % (MAX_PARAM + 1), i;
    cgs_layout_t *layout;

    layout = calloc(1, sizeof(*layout) + num * sizeof(layout->param[0]));
    FUZZ_CHECK(layout != NULL, "no memory");
    layout->num = num;
    for (i = 0; i < num; ++i) {
        layout->param[i].offset = 8 * i;
        layout->param[i].size   = fuzz_byte(input) % (MAX_BYTES + 1);
    }
    op->kernel.layout             = layout;
    op->kernel.args               = made->args;
    op->kernel.shape.grid[0]      = (unsigned)fuzz_number(input);
    op->kernel.shape.block[1]     = (unsigned)fuzz_number(input);
    op->kernel.shape.shared_bytes = (unsigned)fuzz_number(input);
    made->names[op - made->ops]   = fuzz_string_or_null(input);
    op->kernel.shape.function     =
        (CUfunction)made->names[op - made->ops];
    made->lines += num;
}

static void make_op(fuzz_input_t *input, made_t *made)
{
    uint32_t index = made->chunk.num_ops++;
    cgs_op_t *op   = &made->ops[index];

    op->kind = (uint8_t)(fuzz_byte(input) % CGS_OP_NUM_KINDS);
    op->lane = (uint8_t)(fuzz_byte(input) % CGS_MAX_LANES);
    ++made->lines;
    switch (op->kind) {
    case CGS_OP_KERNEL:
        make_kernel(input, made, op);
        break;
    case CGS_OP_COPY:
        op->copy.copy.width_bytes = fuzz_number(input);
        op->copy.copy.height      = fuzz_number(input);
        op->copy.copy.src.y       = fuzz_number(input);
        op->copy.src_type         = (CUmemorytype)fuzz_byte(input);
        made->lines              += 2;
        break;
    case CGS_OP_RECORD:
        op->event.is_earlier = fuzz_byte(input) & 1;
        made->lines         += op->event.is_earlier;
        break;
    case CGS_OP_WAIT:
        op->event.distance = fuzz_byte(input) % (index + 1);
        ++made->lines;
        break;
    default:
        ++made->lines;
        break;
    }
    if ((op->kind != CGS_OP_FREE) && (op->kind != CGS_OP_WAIT) &&
        ((op->kind != CGS_OP_RECORD) || !op->event.is_earlier)) {
        op->node = (CUgraphNode)(uintptr_t)++num_nodes;
    }
}

static void release(made_t *made)
{
    uint32_t i;

    for (i = 0; i < made->chunk.num_ops; ++i) {
        if (made->ops[i].kind == CGS_OP_KERNEL) {
            free(made->ops[i].kernel.layout);
        }
        free(made->names[i]);
    }
    free(made);
}

/* ---- What is printed ---- */

static size_t count_lines(const cgs_text_t *text)
{
    size_t num = 0, i;

    for (i = 0; i < text->length; ++i) {
        num += text->data[i] == '\n';
    }
    return num;
}

/* The end of a quoted string of DOT, or NULL. In it a backslash and a letter
 * are an escape, of which only \l, \\ and \" are ours, and an ampersand begins
 * an entity. */
static const char *end_of_quoted(const char *at)
{
    for (++at; *at != '"'; ++at) {
        if (*at == '\\') {
            ++at;
            if (strchr("l\\\"", *at) == NULL) {
                return NULL;
            }
        } else if ((*at == '&') && (strncmp(at, "&amp;", 5) != 0)) {
            return NULL;
        }
        if ((*at == '\0') || (*at == '\n')) {
            return NULL;
        }
    }
    return at + 1;
}

/* One node or edge on each line. */
static bool is_statement(const char *line)
{
    unsigned   from, to;
    int        length = 0;
    const char *end;

    if ((sscanf(line, "  n%u -> n%u;%n", &from, &to, &length) == 2) &&
        (length > 0)) {
        return line[length] == '\0';
    }
    if ((sscanf(line, "  n%u [label=%n", &from, &length) != 1) ||
        (length == 0) || (line[length] != '"')) {
        return false;
    }
    end = end_of_quoted(line + length);
    return (end != NULL) && (strcmp(end, "];") == 0);
}

static void check_picture(const cgs_text_t *text)
{
    char       *copy = strndup(text->data, text->length);
    char       *line, *rest = copy;
    const char *end;
    size_t     num = 0;

    FUZZ_CHECK(copy != NULL, "no memory");
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (num == 0) {
            FUZZ_CHECK(strcmp(line, "digraph cgshim {") == 0, "%s", line);
        } else if (num == 1) {
            FUZZ_CHECK(strncmp(line, "  label=\"", 9) == 0, "%s", line);
            end = end_of_quoted(line + 8);
            FUZZ_CHECK((end != NULL) && (strcmp(end, ";") == 0), "%s", line);
        } else if ((num > 2) && (strcmp(line, "}") != 0) && (*line != '\0')) {
            FUZZ_CHECK(is_statement(line), "%s", line);
        }
        ++num;
    }
    /* Three at the beginning, one at the end, and "" behind it. */
    FUZZ_CHECK(num == 5 + num_nodes + (num_nodes > 0 ? num_nodes - 1 : 0),
               "%zu", num);
    free(copy);
}

static void check_name(const char *region)
{
    char   name[MAX_NAME + 1];
    size_t length;

    safe_name(region, name);
    length = strlen(name);
    FUZZ_CHECK((length > 0) && (length <= MAX_NAME) && (name[0] != '.') &&
               (name[0] != '-'), "%s", name);
    FUZZ_CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-"
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == length, "%s", name);
}

static void check_printed(const made_t *made, const char *region)
{
    cgs_text_t text = {0};

    print_dot(&text, &made->chunk, region, 1);
    FUZZ_CHECK(!text.failed && fuzz_are_lines(text.data, text.length), "%.*s",
               (int)text.length, text.data);
    check_picture(&text);
    cgs_text_release(&text);
    print_list(&text, &made->chunk, region, 1);
    FUZZ_CHECK(!text.failed && fuzz_are_lines(text.data, text.length), "%.*s",
               (int)text.length, text.data);
    FUZZ_CHECK(count_lines(&text) == made->lines + 1, "%zu of %zu in %.*s",
               count_lines(&text), made->lines + 1, (int)text.length,
               text.data);
    cgs_text_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input_t input   = {data, data + size};
    char         *region = fuzz_string(&input);
    made_t       *made   = calloc(1, sizeof(*made));

    FUZZ_CHECK(made != NULL, "no memory");
    cgs_real[CGS_INDEX_cuFuncGetName]      = (void *)function_name;
    cgs_real[CGS_INDEX_cuKernelGetName]    = (void *)no_kernel;
    cgs_real[CGS_INDEX_cuGraphGetEdges_v2] = (void *)edges_of;
    made->chunk.ops = made->ops;
    num_nodes       = 0;
    while ((input.at < input.end) && (made->chunk.num_ops < MAX_OPS)) {
        make_op(&input, made);
    }
    if (made->chunk.num_ops > 0) {
        check_printed(made, region);
    }
    check_name(region);
    release(made);
    free(region);
    return 0;
}
