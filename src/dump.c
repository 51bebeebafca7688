/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <region>-<number>.dot and .txt, numbered as the process builds its graphs.
 * Files that are there are left alone: their numbers are passed over.
 *
 * The edges are those that the driver tells, not those that we believe to have
 * made.
 */
#define _GNU_SOURCE
#include "dump.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "log.h"
#include "text.h"

/* Bytes of a region's name in that of a file, and of a kernel's in a node. */
#define MAX_NAME    80
#define MAX_LABEL   120
/* Bytes of a name that is shown whole, and that the demangler is asked for. */
#define MAX_KERNEL  4096
/* Bytes of one argument that are shown. */
#define MAX_BYTES   256
/* Calls of one graph that are shown. */
#define MAX_SHOWN   65536
/* Numbers that are tried for one graph. */
#define MAX_TRIES   10000

bool cgs_dump_on;

static struct {
    const char  *shown; /* name as the user gave it */
    char        directory[PATH_MAX];
    unsigned    max_files;
    atomic_uint number; /* of the last graph */
    atomic_uint num_files;
} dump;

/* ---- Names ---- */

/* Of a kernel, for people; to be freed, or NULL. */
static char *kernel_name(CUfunction function)
{
    const char *name = NULL;
    char       *demangled;

    if ((CGS_REAL(cuFuncGetName)(&name, function) != CUDA_SUCCESS) &&
        (CGS_REAL(cuKernelGetName)(&name, (CUkernel)function) !=
         CUDA_SUCCESS)) {
        return NULL;
    }
    if (name == NULL) {
        return NULL;
    }
    demangled = strlen(name) < MAX_KERNEL ? cgs_text_demangle(name) : NULL;
    return demangled != NULL ? demangled : strdup(name);
}

/* At most so many bytes of a name, on one line. */
static void add_kernel(cgs_text_t *text, const cgs_op_t *op, size_t size)
{
    char   *name = kernel_name(op->kernel.shape.function);
    char   shown[MAX_KERNEL];
    size_t length;

    length = cgs_text_escape(shown, size < sizeof(shown) ? size :
                             sizeof(shown), name != NULL ? name : "a kernel");
    cgs_text_add(text, shown, length);
    free(name);
}

static bool is_safe(char c)
{
    return ((c >= 'a') && (c <= 'z')) || ((c >= 'A') && (c <= 'Z')) ||
           ((c >= '0') && (c <= '9')) || (c == '-') || (c == '_') ||
           (c == '.');
}

/* A region may be called anything; no name begins with a dot or a dash. */
static void safe_name(const char *region, char out[MAX_NAME + 1])
{
    size_t i;

    for (i = 0; (i < MAX_NAME) && (region[i] != '\0'); ++i) {
        out[i] = '_';
        if (is_safe(region[i])) {
            out[i] = region[i];
        }
    }
    if ((i == 0) || (out[0] == '.') || (out[0] == '-')) {
        out[0] = '_';
    }
    out[i > 0 ? i : 1] = '\0';
}

/* ---- Ops ---- */

static const char *memory_name(CUmemorytype type)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        return "pinned host";
    case CU_MEMORYTYPE_DEVICE:
        return "device";
    case CU_MEMORYTYPE_ARRAY:
        return "array";
    default:
        return "pageable host";
    }
}

static void print_shape(cgs_text_t *text, const cgs_launch_shape_t *shape,
                        const char *separator)
{
    cgs_text_print(text, "grid %ux%ux%u%sblock %ux%ux%u%sshared %u bytes",
                   shape->grid[0], shape->grid[1], shape->grid[2], separator,
                   shape->block[0], shape->block[1], shape->block[2],
                   separator, shape->shared_bytes);
}

static void print_copy(cgs_text_t *text, const cgs_op_t *op)
{
    const cgs_copy_t *copy = &op->copy.copy;

    cgs_text_print(text, "%zu bytes", copy->width_bytes);
    if ((copy->height > 1) || (copy->depth > 1)) {
        cgs_text_print(text, " x %zu x %zu", copy->height, copy->depth);
    }
    cgs_text_print(text, ", %s to %s", memory_name(op->copy.src_type),
                   memory_name(op->copy.dst_type));
}

static void print_set(cgs_text_t *text, const cgs_set_t *set)
{
    cgs_text_print(text, "%zu x %zu elements of %u bytes to 0x%x", set->width,
                   set->height, set->element_size, set->value);
}

/* What a call does, on one line or one for each part. */
static void print_op(cgs_text_t *text, const cgs_op_t *op,
                     const char *separator, size_t name_size)
{
    switch (op->kind) {
    case CGS_OP_KERNEL:
        add_kernel(text, op, name_size);
        cgs_text_print(text, "%s", separator);
        print_shape(text, &op->kernel.shape, separator);
        break;
    case CGS_OP_COPY:
        print_copy(text, op);
        break;
    case CGS_OP_SET:
        print_set(text, &op->set.set);
        break;
    case CGS_OP_HOST:
        cgs_text_print(text, "function %p", (void *)op->host.function);
        break;
    case CGS_OP_FREE:
        cgs_text_print(text, "0x%llx, %zu bytes",
                       (unsigned long long)op->free.address, op->free.bytes);
        break;
    case CGS_OP_RECORD:
    case CGS_OP_WAIT:
        cgs_text_print(text, "event %p", (void *)op->event.event);
        break;
    default:
        break;
    }
}

/* Bytes of an argument: a number where they have the size of one, in the
 * order of memory otherwise. */
static void print_bytes(cgs_text_t *text, const char *bytes, uint32_t size)
{
    uint64_t value = 0;
    uint32_t i;

    if ((size == 1) || (size == 2) || (size == 4) || (size == 8)) {
        memcpy(&value, bytes, size);
        cgs_text_print(text, "0x%0*" PRIx64, (int)size * 2, value);
        return;
    }
    for (i = 0; (i < size) && (i < MAX_BYTES); ++i) {
        cgs_text_print(text, "%s%02x", i > 0 ? " " : "",
                       (unsigned char)bytes[i]);
    }
    cgs_text_print(text, "%s", i < size ? " ..." : "");
}

/* ---- The list ---- */

static void list_arguments(cgs_text_t *text, const cgs_op_t *op)
{
    const cgs_layout_t *layout = op->kernel.layout;
    uint32_t           i;

    for (i = 0; i < layout->num; ++i) {
        cgs_text_print(text, "    argument %u, %u bytes at %u: ", i,
                       layout->param[i].size, layout->param[i].offset);
        print_bytes(text, op->kernel.args + layout->param[i].offset,
                    layout->param[i].size);
        cgs_text_print(text, "\n");
    }
}

static void list_end(cgs_text_t *text, const char *what,
                     const cgs_copy_end_t *end)
{
    cgs_text_print(text, "    %s 0x%" PRIx64, what, end->address);
    if ((end->x_bytes > 0) || (end->y > 0) || (end->z > 0) ||
        (end->pitch > 0)) {
        cgs_text_print(text, ", at %zu x %zu x %zu, pitch %zu, height %zu",
                       end->x_bytes, end->y, end->z, end->pitch, end->height);
    }
    cgs_text_print(text, "\n");
}

/* What print_op() leaves out. */
static void list_details(cgs_text_t *text, const cgs_chunk_t *chunk,
                         uint32_t index)
{
    const cgs_op_t *op = &chunk->ops[index];

    switch (op->kind) {
    case CGS_OP_KERNEL:
        list_arguments(text, op);
        break;
    case CGS_OP_COPY:
        list_end(text, "from", &op->copy.copy.src);
        list_end(text, "to  ", &op->copy.copy.dst);
        break;
    case CGS_OP_SET:
        cgs_text_print(text, "    at 0x%llx, pitch %zu\n",
                       (unsigned long long)op->set.set.dst,
                       op->set.set.pitch);
        break;
    case CGS_OP_HOST:
        cgs_text_print(text, "    data %p\n", op->host.data);
        break;
    case CGS_OP_FREE:
        cgs_text_print(text, "    no node: called after the graph\n");
        break;
    case CGS_OP_RECORD:
        if (op->event.is_earlier) {
            cgs_text_print(text, "    no node: recorded again later\n");
        }
        break;
    case CGS_OP_WAIT:
        cgs_text_print(text, "    no node: an edge from what call %u "
                       "records\n", index - op->event.distance);
        break;
    default:
        break;
    }
}

static uint32_t num_shown(const cgs_chunk_t *chunk)
{
    return chunk->num_ops < MAX_SHOWN ? chunk->num_ops : MAX_SHOWN;
}

static void print_list(cgs_text_t *text, const cgs_chunk_t *chunk,
                       const char *region, unsigned number)
{
    const cgs_op_t *op;
    char           shown[MAX_KERNEL];
    uint32_t       i;

    cgs_text_escape(shown, sizeof(shown), region);
    cgs_text_print(text, "region %s, graph %u, %u calls\n", shown, number,
                   chunk->num_ops);
    for (i = 0; i < chunk->num_streams; ++i) {
        cgs_text_print(text, "lane %u: stream %p\n", i,
                       (void *)chunk->streams[i]);
    }
    for (i = 0; i < num_shown(chunk); ++i) {
        op = &chunk->ops[i];
        cgs_text_print(text, "%u: lane %u, %s, ", i, op->lane,
                       cgs_op_kinds[op->kind]->name);
        print_op(text, op, ", ", MAX_KERNEL);
        cgs_text_print(text, "\n");
        list_details(text, chunk, i);
    }
    if (i < chunk->num_ops) {
        cgs_text_print(text, "%u more are left out\n", chunk->num_ops - i);
    }
}

/* ---- The picture ---- */

/* Text without control characters, in a quoted string of DOT. There a
 * backslash begins an escape and an ampersand an entity; our newlines end
 * lines that are aligned to the left. */
static void quote(cgs_text_t *out, const cgs_text_t *text)
{
    size_t i;
    char   c;

    cgs_text_add(out, "\"", 1);
    for (i = 0; i < text->length; ++i) {
        c = text->data[i];
        if (c == '\n') {
            cgs_text_add(out, "\\l", 2);
        } else if (c == '&') {
            cgs_text_add(out, "&amp;", 5);
        } else {
            if ((c == '"') || (c == '\\')) {
                cgs_text_add(out, "\\", 1);
            }
            cgs_text_add(out, &c, 1);
        }
    }
    cgs_text_add(out, "\"", 1);
    out->failed = out->failed || text->failed;
}

static void draw_node(cgs_text_t *text, const cgs_chunk_t *chunk,
                      uint32_t index)
{
    const cgs_op_t *op   = &chunk->ops[index];
    cgs_text_t     label = {0};

    cgs_text_print(&label, "%u: %s, lane %u\n", index,
                   cgs_op_kinds[op->kind]->name, op->lane);
    print_op(&label, op, "\n", MAX_LABEL);
    cgs_text_print(&label, "\n");
    cgs_text_print(text, "  n%u [label=", index);
    quote(text, &label);
    cgs_text_print(text, "];\n");
    cgs_text_release(&label);
}

typedef struct {
    CUgraphNode node;
    uint32_t    index;
} place_t;

static int compare_places(const void *a, const void *b)
{
    uintptr_t left  = (uintptr_t)((const place_t *)a)->node;
    uintptr_t right = (uintptr_t)((const place_t *)b)->node;

    return left < right ? -1 : left > right;
}

/* The ops that are nodes, by these. To be freed. */
static place_t *sort_nodes(const cgs_chunk_t *chunk, size_t *num)
{
    place_t  *places = malloc(((size_t)chunk->num_ops + 1) *
                               sizeof(*places));
    uint32_t i;

    *num = 0;
    for (i = 0; (places != NULL) && (i < num_shown(chunk)); ++i) {
        if (chunk->ops[i].node != NULL) {
            places[(*num)++] = (place_t){chunk->ops[i].node, i};
        }
    }
    if (places != NULL) {
        qsort(places, *num, sizeof(*places), compare_places);
    }
    return places;
}

typedef struct {
    CUgraphNode     *from, *to;
    CUgraphEdgeData *data;
    size_t          num;
} edges_t;

static void release_edges(edges_t *edges)
{
    free(edges->from);
    free(edges->to);
    free(edges->data);
}

static bool ask_edges(CUgraph graph, edges_t *edges)
{
    *edges = (edges_t){0};
    if (CGS_REAL(cuGraphGetEdges_v2)(graph, NULL, NULL, NULL, &edges->num) !=
        CUDA_SUCCESS) {
        return false;
    }
    if (edges->num == 0) {
        return true;
    }
    edges->from = calloc(edges->num, sizeof(*edges->from));
    edges->to   = calloc(edges->num, sizeof(*edges->to));
    edges->data = calloc(edges->num, sizeof(*edges->data));
    return (edges->from != NULL) && (edges->to != NULL) &&
           (edges->data != NULL) &&
           (CGS_REAL(cuGraphGetEdges_v2)(graph, edges->from, edges->to,
                                         edges->data, &edges->num) ==
            CUDA_SUCCESS);
}

static void draw_edge(cgs_text_t *text, const place_t *places, size_t num,
                      CUgraphNode from, CUgraphNode to)
{
    place_t       wanted_from = {.node = from};
    place_t       wanted_to   = {.node = to};
    const place_t *first, *second;

    first  = bsearch(&wanted_from, places, num, sizeof(*places),
                     compare_places);
    second = bsearch(&wanted_to, places, num, sizeof(*places),
                     compare_places);
    if ((first != NULL) && (second != NULL)) {
        cgs_text_print(text, "  n%u -> n%u;\n", first->index, second->index);
    }
}

static void draw_edges(cgs_text_t *text, const cgs_chunk_t *chunk)
{
    place_t *places;
    edges_t edges;
    size_t  num, i;

    places = sort_nodes(chunk, &num);
    if (!ask_edges(chunk->graph, &edges)) {
        cgs_text_print(text, "  // the driver does not tell the edges\n");
        edges.num = 0;
    }
    for (i = 0; (places != NULL) && (i < edges.num); ++i) {
        draw_edge(text, places, num, edges.from[i], edges.to[i]);
    }
    release_edges(&edges);
    free(places);
}

static void print_dot(cgs_text_t *text, const cgs_chunk_t *chunk,
                      const char *region, unsigned number)
{
    cgs_text_t title = {0};
    char       shown[MAX_KERNEL];
    uint32_t   i;

    cgs_text_escape(shown, sizeof(shown), region);
    cgs_text_print(&title, "region %s, graph %u, %u calls\n", shown, number,
                   chunk->num_ops);
    if (num_shown(chunk) < chunk->num_ops) {
        cgs_text_print(&title, "%u of them are left out\n",
                       chunk->num_ops - num_shown(chunk));
    }
    cgs_text_print(text, "digraph cgshim {\n  label=");
    quote(text, &title);
    cgs_text_release(&title);
    cgs_text_print(text, ";\n  node [shape=box, fontname=\"monospace\"];\n");
    for (i = 0; i < num_shown(chunk); ++i) {
        if (chunk->ops[i].node != NULL) {
            draw_node(text, chunk, i);
        }
    }
    draw_edges(text, chunk);
    cgs_text_print(text, "}\n");
}

/* ---- Files ---- */

static void stop(const char *format, ...) __attribute__((format(printf, 1,
                                                                2)));

/* Say why once; who else finds it out is silent. */
static void stop(const char *format, ...)
{
    char    problem[PATH_MAX + 128];
    va_list ap;

    if (!__atomic_exchange_n(&cgs_dump_on, false, __ATOMIC_ACQ_REL)) {
        return;
    }
    va_start(ap, format);
    vsnprintf(problem, sizeof(problem), format, ap);
    va_end(ap);
    cgs_log_complain("CGSHIM_DUMP=%s: %s; no more graphs are written",
                     dump.shown, problem);
}

static int open_file(const char *name, unsigned number, const char *end,
                     char path[PATH_MAX], cgs_file_t *file)
{
    int length = snprintf(path, PATH_MAX, "%s/%s-%u.%s", dump.directory, name,
                          number, end);

    return length >= PATH_MAX ? -ENAMETOOLONG :
           cgs_file_open(path, O_EXCL, file);
}

/* Two new files, with the next number for which neither is there. */
static int open_files(const char *name, cgs_file_t *dot, cgs_file_t *list,
                      unsigned *number)
{
    char     dot_path[PATH_MAX], list_path[PATH_MAX];
    int      status = -EEXIST;
    unsigned i;

    for (i = 0; (i < MAX_TRIES) && (status == -EEXIST); ++i) {
        *number = atomic_fetch_add(&dump.number, 1) + 1;
        status  = open_file(name, *number, "dot", dot_path, dot);
        if (status != 0) {
            continue;
        }
        status = open_file(name, *number, "txt", list_path, list);
        if (status != 0) {
            close(dot->fd);
            unlink(dot_path);
        }
    }
    return status;
}

static int write_text(const cgs_file_t *file, cgs_text_t *text)
{
    int status = text->failed ? -ENOMEM :
                 cgs_log_write(file->fd, text->data, text->length);

    if ((close(file->fd) != 0) && (status == 0)) {
        status = -errno;
    }
    cgs_text_release(text);
    return status;
}

static int write_files(const char *region, const cgs_chunk_t *chunk)
{
    char       name[MAX_NAME + 1];
    cgs_file_t dot, list;
    cgs_text_t text = {0};
    unsigned   number;
    int        status, second;

    safe_name(region, name);
    status = open_files(name, &dot, &list, &number);
    if (status != 0) {
        return status;
    }
    print_dot(&text, chunk, region, number);
    status = write_text(&dot, &text);
    print_list(&text, chunk, region, number);
    second = write_text(&list, &text);
    return status != 0 ? status : second;
}

void cgs_dump_write(const char *region, const cgs_chunk_t *chunk)
{
    int saved_errno = errno;
    int status;

    if (atomic_fetch_add(&dump.num_files, 2) + 2 > dump.max_files) {
        stop("%u files are enough", dump.max_files);
        return;
    }
    status = write_files(region, chunk);
    if (status != 0) {
        stop("%s", strerror(-status));
    }
    errno = saved_errno;
}

/* Whether there is such a directory: 0 or -errno. */
static int check_directory(const char *name)
{
    struct stat st;

    if (stat(name, &st) != 0) {
        return -errno;
    }
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

void cgs_dump_start(const char *directory, unsigned max_files)
{
    int status;

    if (directory == NULL) {
        return;
    }
    status = cgs_text_file_name(directory, sizeof(dump.directory),
                                dump.directory);
    if (status == 0) {
        status = check_directory(dump.directory);
    }
    if (status != 0) {
        cgs_log_complain("CGSHIM_DUMP=%s: cannot be written to (%s); no "
                         "graphs are written", directory, strerror(-status));
        return;
    }
    dump.shown     = directory;
    dump.max_files = max_files;
    __atomic_store_n(&cgs_dump_on, true, __ATOMIC_RELEASE);
}
