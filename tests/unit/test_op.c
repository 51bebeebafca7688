/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of each kind of op, on the simulated driver: what is compared, what
 * is kept, and that issuing a kept call and running its node do what the
 * program's own call does.
 */
#define _GNU_SOURCE 1
#include "op.h"

#include <stdio.h>

#include "core.h"
#include "function.h"
#include "simkernel.h"

#define MAX_BYTES 4096
#define COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

static const cgs_op_kind_t *kernel_kind, *copy_kind, *set_kind;

static void open_all(void)
{
    core_open();
    kernel_kind = cgs_op_kinds[CGS_OP_KERNEL];
    copy_kind   = cgs_op_kinds[CGS_OP_COPY];
    set_kind    = cgs_op_kinds[CGS_OP_SET];
}

static cgs_call_t new_call(void)
{
    cgs_call_t call;

    memset(&call, 0, sizeof(call));
    call.stream = core_stream;
    call.device = core.device;
    return call;
}

/* ---- Launches ---- */

static cgs_call_t launch_with(CUfunction f, void **params, void **extra,
                              const CUlaunchAttribute *attrs, unsigned num)
{
    static const unsigned grid[3] = {2, 1, 1}, block[3] = {64, 1, 1};
    cgs_call_t            call    = new_call();

    cgs_call_launch(&call, attrs != NULL ? CGS_LAUNCH_EX : CGS_LAUNCH_PLAIN,
                    f, grid, block, 0, params, extra, attrs, num);
    return call;
}

static cgs_call_t launch(CUfunction f, void **params)
{
    return launch_with(f, params, NULL, NULL, 0);
}

/* The op of an admitted call. */
static cgs_op_t take(cgs_call_t *call, cgs_arena_t *arena)
{
    cgs_op_t op;

    memset(&op, 0, sizeof(op));
    op.kind = call->kind;
    ck_assert(!call->refused);
    ck_assert_msg(cgs_op_kinds[call->kind]->admit(call), "%s", call->reason);
    ck_assert_int_eq(cgs_op_kinds[call->kind]->take(&op, call, arena), 0);
    return op;
}

static cgs_divergence_t explain(const cgs_op_t *op, const cgs_call_t *call)
{
    cgs_divergence_t divergence;

    memset(&divergence, 0, sizeof(divergence));
    divergence.arg = -1;
    cgs_op_kinds[op->kind]->explain(op, call, &divergence);
    ck_assert_ptr_nonnull(divergence.what);
    return divergence;
}

/* Arguments of k_many and the bytes that each has. */
typedef struct {
    unsigned char value[20][8];
    void          *params[20];
    size_t        size[20];
} many_t;

static const uint8_t many_sizes[20] = {
    8, 4, 1, 8, 2, 4, 1, 1, 8, 2, 2, 4, 4, 8, 1, 8, 4, 4, 8, 1
};

static void many_fill(many_t *many)
{
    unsigned i, j;

    for (i = 0; i < 20; ++i) {
        many->params[i] = many->value[i];
        many->size[i]   = many_sizes[i];
        for (j = 0; j < 8; ++j) {
            many->value[i][j] = (unsigned char)(i * 8 + j);
        }
    }
}

START_TEST(each_byte_of_each_argument_is_compared)
{
    CUfunction       f     = prg_kernel(&core, "k_many");
    cgs_arena_t      arena = {0};
    cgs_divergence_t divergence;
    cgs_call_t       call;
    cgs_op_t         op;
    many_t           many;
    unsigned         i, j;

    many_fill(&many);
    call = launch(f, many.params);
    op   = take(&call, &arena);
    ck_assert_uint_eq(op.kernel.layout->num, 20);
    for (i = 0; i < 20; ++i) {
        ck_assert_uint_eq(op.kernel.layout->param[i].size, many.size[i]);
        for (j = 0; j < many.size[i]; ++j) {
            many.value[i][j] ^= 0x80;
            call              = launch(f, many.params);
            ck_assert_msg(kernel_kind->compare(&op, &call) ==
                          CGS_MATCH_CHANGED, "argument %u, byte %u", i, j);
            divergence = explain(&op, &call);
            ck_assert_str_eq(divergence.what, "argument");
            ck_assert_int_eq(divergence.arg, (int)i);
            ck_assert_uint_eq(divergence.offset, j);
            ck_assert_uint_eq(divergence.size, many.size[i]);
            ck_assert_uint_eq(divergence.num_bytes, many.size[i]);
            ck_assert_uint_eq(divergence.new_bytes[j], many.value[i][j]);
            ck_assert_uint_eq(divergence.old_bytes[j],
                              many.value[i][j] ^ 0x80);
            many.value[i][j] ^= 0x80;
        }
        for (; j < 8; ++j) {
            many.value[i][j] ^= 0x80; /* behind the argument */
        }
        call = launch(f, many.params);
        ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_SAME);
    }
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(a_changed_argument_is_kept_and_hashed)
{
    CUfunction  f     = prg_kernel(&core, "k_many");
    cgs_arena_t arena = {0};
    uint64_t    before;
    size_t      held;
    cgs_call_t  call;
    cgs_op_t    op;
    many_t      many;
    unsigned    i;

    many_fill(&many);
    call = launch(f, many.params);
    op   = take(&call, &arena);
    held = arena.bytes;
    ck_assert_uint_eq(kernel_kind->hash(&op, 5), kernel_kind->hash(&op, 5));
    ck_assert_uint_ne(kernel_kind->hash(&op, 5), kernel_kind->hash(&op, 6));
    for (i = 0; i < 20; ++i) {
        before                             = kernel_kind->hash(&op, 5);
        many.value[i][many.size[i] - 1]   ^= 1;
        call                               = launch(f, many.params);
        ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_CHANGED);
        ck_assert_int_eq(kernel_kind->take(&op, &call, NULL), 0);
        ck_assert_msg(kernel_kind->hash(&op, 5) != before, "argument %u", i);
        call = launch(f, many.params);
        ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_SAME);
        ck_assert_int_eq(memcmp(op.kernel.pointers[i], many.value[i],
                                many.size[i]), 0);
    }
    ck_assert_uint_eq(arena.bytes, held);
    cgs_arena_release(&arena);
}
END_TEST

/* The argument of the last launch of k_bytes, which is as large as its module
 * says. */
static unsigned char seen_bytes[MAX_BYTES];
static size_t        seen_size;

void simk_k_bytes(const simk_grid_t *grid, void *const *params);
void simk_k_bytes(const simk_grid_t *grid, void *const *params)
{
    (void)grid;
    memcpy(seen_bytes, params[0], seen_size);
}

static CUfunction bytes_kernel(size_t size, CUmodule *module)
{
    char       text[512];
    CUfunction f;

    snprintf(text, sizeof(text), ".version 7.0\n.target sm_75\n"
             ".address_size 64\n.visible .entry k_bytes(\n"
             ".param .align 1 .b8 k_bytes_param_0[%zu]\n)\n{\nret;\n}\n",
             size);
    PRG_CHECK(cuModuleLoadData(module, text));
    PRG_CHECK(cuModuleGetFunction(&f, *module, "k_bytes"));
    return f;
}

static CUresult run_node(const cgs_op_t *op)
{
    CUgraphNodeParams params;
    CUgraph           graph;
    CUgraphExec       exec;
    CUgraphNode       node;

    memset(&params, 0, sizeof(params));
    cgs_op_kinds[op->kind]->describe(op, core.context, &params);
    PRG_CHECK(cuGraphCreate(&graph, 0));
    PRG_CHECK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    if (cgs_op_kinds[op->kind]->decorate != NULL) {
        PRG_CHECK(cgs_op_kinds[op->kind]->decorate(op, node));
    }
    PRG_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    PRG_CHECK(cuGraphLaunch(exec, core_stream));
    PRG_CHECK(cuStreamSynchronize(core_stream));
    PRG_CHECK(cuGraphExecDestroy(exec));
    PRG_CHECK(cuGraphDestroy(graph));
    return CUDA_SUCCESS;
}

static void check_size(size_t size)
{
    unsigned char bytes[MAX_BYTES], copy[MAX_BYTES];
    void          *params[] = {bytes};
    cgs_arena_t   arena     = {0};
    CUmodule      module;
    CUfunction    f         = bytes_kernel(size, &module);
    size_t        places[]  = {0, size / 2, size - 1};
    cgs_divergence_t divergence;
    cgs_call_t    call;
    cgs_op_t      op;
    size_t        i;

    cgs_function_forget_all(); /* the handle may be that of the module before */
    for (i = 0; i < size; ++i) {
        bytes[i] = (unsigned char)(i * 31 + size);
    }
    memcpy(copy, bytes, size);
    call = launch(f, params);
    op   = take(&call, &arena);
    for (i = 0; i < COUNT(places); ++i) {
        bytes[places[i]] ^= 4;
        call              = launch(f, params);
        ck_assert_msg(kernel_kind->compare(&op, &call) == CGS_MATCH_CHANGED,
                      "byte %zu of %zu", places[i], size);
        divergence = explain(&op, &call);
        ck_assert_uint_eq(divergence.offset, places[i]);
        ck_assert_uint_ge(divergence.num_bytes, 1);
        ck_assert_uint_le(divergence.num_bytes, CGS_REPORT_MAX_BYTES);
        ck_assert_int_ne(memcmp(divergence.old_bytes, divergence.new_bytes,
                                divergence.num_bytes), 0);
        bytes[places[i]] ^= 4;
    }
    memset(bytes, 0, sizeof(bytes));
    seen_size = size;
    memset(seen_bytes, 0, sizeof(seen_bytes));
    ck_assert_int_eq(kernel_kind->issue(&op, core_stream), CUDA_SUCCESS);
    PRG_CHECK(cuStreamSynchronize(core_stream));
    ck_assert_msg(!memcmp(seen_bytes, copy, size), "issued, size %zu", size);
    memset(seen_bytes, 0, sizeof(seen_bytes));
    run_node(&op);
    ck_assert_msg(!memcmp(seen_bytes, copy, size), "node, size %zu", size);
    cgs_arena_release(&arena);
    PRG_CHECK(cuModuleUnload(module));
}

START_TEST(arguments_of_1_to_4096_bytes_are_compared_and_kept)
{
    size_t size;

    for (size = 1; size <= 130; ++size) {
        check_size(size);
    }
    for (; size < MAX_BYTES; size += 149) {
        check_size(size);
    }
    check_size(MAX_BYTES);
}
END_TEST

/* The arguments of k_many in one buffer, what lies between them set to a
 * value. */
static size_t many_pack(const many_t *many, const cgs_layout_t *layout,
                        char *buffer, int between)
{
    unsigned i;

    memset(buffer, between, 256);
    for (i = 0; i < 20; ++i) {
        memcpy(buffer + layout->param[i].offset, many->value[i],
               many->size[i]);
    }
    return layout->total;
}

START_TEST(padding_between_arguments_is_not_compared)
{
    CUfunction         f     = prg_kernel(&core, "k_many");
    const char         *why  = NULL;
    const cgs_layout_t *layout;
    char               buffer[256];
    size_t             size;
    void               *extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
        &size, CU_LAUNCH_PARAM_END
    };
    cgs_arena_t arena = {0};
    uint64_t    hash;
    cgs_call_t  call;
    cgs_op_t    op;
    many_t      many;

    many_fill(&many);
    layout = cgs_function_layout(f, &why);
    ck_assert_ptr_nonnull(layout);
    size = many_pack(&many, layout, buffer, 0x00);
    call = launch_with(f, NULL, extra, NULL, 0);
    op   = take(&call, &arena);
    hash = kernel_kind->hash(&op, 1);

    many_pack(&many, layout, buffer, 0xff);
    call = launch_with(f, NULL, extra, NULL, 0);
    ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_SAME);
    ck_assert_int_eq(kernel_kind->take(&op, &call, NULL), 0);
    ck_assert_uint_eq(kernel_kind->hash(&op, 1), hash);

    many.value[19][0] ^= 1;
    many_pack(&many, layout, buffer, 0x00);
    call = launch_with(f, NULL, extra, NULL, 0);
    ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_CHANGED);
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(an_extra_buffer_is_kept_and_issued_whole)
{
    CUfunction f    = prg_kernel(&core, "k_chain");
    CUdeviceptr word = core_alloc(4, 0);
    struct {
        CUdeviceptr word;
        uint32_t    value;
        char        more[20];
    } buffer         = {word, 7, "more than is asked"};
    size_t size      = sizeof(buffer);
    void   *extra[]  = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
        &size, CU_LAUNCH_PARAM_END
    };
    cgs_arena_t arena = {0};
    cgs_call_t  call  = launch_with(f, NULL, extra, NULL, 0);
    cgs_op_t    op    = take(&call, &arena);

    ck_assert_uint_eq(op.kernel.shape.extra_size, sizeof(buffer));
    ck_assert_int_eq(memcmp(op.kernel.args, &buffer, sizeof(buffer)), 0);
    memset(&buffer, 0xff, sizeof(buffer));
    ck_assert_int_eq(kernel_kind->issue(&op, core_stream), CUDA_SUCCESS);
    ck_assert_uint_eq(core_word(word), 7);
    run_node(&op);
    ck_assert_uint_eq(core_word(word), 7 * 1664525u + 7);

    /* Another size of the buffer, or none, is another way of launching. */
    buffer.word  = word;
    buffer.value = 7;
    size         = 12;
    call         = launch_with(f, NULL, extra, NULL, 0);
    ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_OTHER);
    call = launch(f, (void *[]){&buffer.word, &buffer.value});
    ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_OTHER);
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(an_extra_buffer_that_is_not_understood_is_refused)
{
    CUfunction f        = prg_kernel(&core, "k_chain");
    char       buffer[16];
    size_t     size     = sizeof(buffer);
    void       *unknown = (void *)0x77;
    void       *both[]  = {buffer, buffer};
    void       *extras[][5] = {
        {CU_LAUNCH_PARAM_END},
        {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END},
        {unknown, buffer, CU_LAUNCH_PARAM_END},
        {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, unknown, &size,
         CU_LAUNCH_PARAM_END},
    };
    cgs_call_t call;
    size_t     i;

    for (i = 0; i < COUNT(extras); ++i) {
        call = launch_with(f, NULL, extras[i], NULL, 0);
        ck_assert_msg(call.refused && (call.reason != NULL), "case %zu", i);
    }
    extras[0][0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    extras[0][1] = buffer;
    extras[0][2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    extras[0][3] = &size;
    extras[0][4] = CU_LAUNCH_PARAM_END;
    call = launch_with(f, both, extras[0], NULL, 0);
    ck_assert(call.refused);
    call = launch_with(f, NULL, extras[0], NULL, 0);
    ck_assert(!call.refused && kernel_kind->admit(&call));
    for (size = 0; size < 12; ++size) {
        call = launch_with(f, NULL, extras[0], NULL, 0);
        ck_assert_msg(call.refused || !kernel_kind->admit(&call),
                      "%zu bytes", size);
        ck_assert_ptr_nonnull(call.reason);
    }
}
END_TEST

START_TEST(a_launch_without_its_arguments_is_no_op)
{
    cgs_call_t call;

    call = launch(prg_kernel(&core, "k_chain"), NULL);
    ck_assert(!kernel_kind->admit(&call));
    ck_assert_ptr_nonnull(call.reason);
    call = launch(prg_kernel(&core, "k_nothing"), NULL);
    ck_assert(kernel_kind->admit(&call));
    call = launch((CUfunction)0x1234567, NULL);
    ck_assert(!kernel_kind->admit(&call));
    ck_assert_ptr_nonnull(call.reason);
}
END_TEST

START_TEST(arguments_that_are_gone_are_not_looked_at)
{
    CUdeviceptr word  = core_alloc(4, 0);
    uint32_t    value = 1;
    cgs_arena_t arena = {0};
    CUfunction  f     = prg_kernel(&core, "k_chain");
    cgs_call_t  call  = launch(f, (void *[]){&word, &value});
    cgs_op_t    op    = take(&call, &arena);

    call = launch(f, NULL);
    ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_OTHER);
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(what_is_no_argument_makes_another_shape)
{
    static const struct {
        unsigned    number;
        unsigned    value;
        const char  *what;
        cgs_match_t match;
    } cases[] = {
        {0, 1, "grid", CGS_MATCH_CHANGED},
        {0, 0x7fffffff, "grid", CGS_MATCH_CHANGED},
        {0, 0x80000000, "grid", CGS_MATCH_OTHER},
        {0, 0, "grid", CGS_MATCH_OTHER},
        {1, 65535, "grid", CGS_MATCH_CHANGED},
        {1, 65536, "grid", CGS_MATCH_OTHER},
        {1, 0, "grid", CGS_MATCH_OTHER},
        {2, 65535, "grid", CGS_MATCH_CHANGED},
        {2, 65536, "grid", CGS_MATCH_OTHER},
        {3, 4, "block", CGS_MATCH_CHANGED},
        {3, 0, "block", CGS_MATCH_OTHER},
        {3, 1024, "block", CGS_MATCH_OTHER},
        {4, 5, "block", CGS_MATCH_CHANGED},
        {5, 8, "block", CGS_MATCH_CHANGED},
        {5, 65, "block", CGS_MATCH_OTHER},
        {6, 7, "shared memory", CGS_MATCH_CHANGED},
        {6, 0, "shared memory", CGS_MATCH_CHANGED},
        {6, 0x10000000, "shared memory", CGS_MATCH_OTHER}
    };
    CUfunction  f          = prg_kernel(&core, "k_nothing");
    unsigned    shape[7]   = {2, 3, 4, 5, 6, 7, 8};
    cgs_arena_t arena      = {0};
    cgs_call_t  call       = new_call();
    unsigned    before;
    cgs_op_t    op;
    size_t      i;

    cgs_call_launch(&call, CGS_LAUNCH_PLAIN, f, shape, shape + 3, shape[6],
                    NULL, NULL, NULL, 0);
    op = take(&call, &arena);
    for (i = 0; i < COUNT(cases); ++i) {
        before                 = shape[cases[i].number];
        shape[cases[i].number] = cases[i].value;
        call                   = new_call();
        cgs_call_launch(&call, CGS_LAUNCH_PLAIN, f, shape, shape + 3,
                        shape[6], NULL, NULL, NULL, 0);
        ck_assert_msg(kernel_kind->compare(&op, &call) == cases[i].match,
                      "case %zu", i);
        ck_assert_str_eq(explain(&op, &call).what, cases[i].what);
        ck_assert_str_ne(explain(&op, &call).old_text,
                         explain(&op, &call).new_text);
        shape[cases[i].number] = before;
    }
    call = new_call();
    cgs_call_launch(&call, CGS_LAUNCH_COOPERATIVE, f, shape, shape + 3,
                    shape[6], NULL, NULL, NULL, 0);
    ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_OTHER);
    ck_assert_str_eq(explain(&op, &call).what, "way of launching");
    call = new_call();
    cgs_call_launch(&call, CGS_LAUNCH_PLAIN, prg_kernel(&core, "k_chain"),
                    shape, shape + 3, shape[6], NULL, NULL, NULL, 0);
    ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_OTHER);
    ck_assert_str_eq(explain(&op, &call).what, "kernel");
    ck_assert_str_eq(explain(&op, &call).old_text, "k_nothing");
    ck_assert_str_eq(explain(&op, &call).new_text, "k_chain");
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(attributes_are_compared_by_the_bytes_that_mean_something)
{
    static const struct {
        CUlaunchAttributeID id;
        size_t              size;
    } cases[] = {
        {CU_LAUNCH_ATTRIBUTE_IGNORE, 0},
        {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, 28},
        {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 4},
        {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 12},
        {CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 4},
        {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 4},
        {CU_LAUNCH_ATTRIBUTE_PRIORITY, 4},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 2},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 4},
        {CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, 12},
        {CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 4},
    };
    CUfunction        f = prg_kernel(&core, "k_nothing");
    CUlaunchAttribute attribute;
    unsigned char     *bytes = (unsigned char *)&attribute;
    size_t            value  = offsetof(CUlaunchAttribute, value);
    cgs_arena_t       arena  = {0};
    cgs_call_t        call;
    cgs_op_t          op;
    size_t            i, j;
    bool              means;

    for (i = 0; i < COUNT(cases); ++i) {
        memset(&attribute, 0xa5, sizeof(attribute));
        attribute.id = cases[i].id;
        call         = launch_with(f, NULL, NULL, &attribute, 1);
        op           = take(&call, &arena);
        for (j = sizeof(attribute.id); j < sizeof(attribute); ++j) {
            bytes[j] ^= 0x40;
            means     = (j >= value) && (j < value + cases[i].size);
            call      = launch_with(f, NULL, NULL, &attribute, 1);
            ck_assert_msg(kernel_kind->compare(&op, &call) ==
                          (means ? CGS_MATCH_OTHER : CGS_MATCH_SAME),
                          "attribute %d, byte %zu", (int)cases[i].id, j);
            if (means) {
                ck_assert_str_eq(explain(&op, &call).what, "attribute");
            }
            bytes[j] ^= 0x40;
        }
        attribute.id = (cases[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY) ?
                       CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN :
                       CU_LAUNCH_ATTRIBUTE_PRIORITY;
        call = launch_with(f, NULL, NULL, &attribute, 1);
        ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_OTHER);
    }
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(the_number_of_attributes_is_compared)
{
    CUfunction        f = prg_kernel(&core, "k_nothing");
    CUlaunchAttribute attributes[2];
    cgs_arena_t       arena = {0};
    cgs_call_t        call;
    cgs_op_t          op;

    memset(attributes, 0, sizeof(attributes));
    call = launch_with(f, NULL, NULL, attributes, 1);
    op   = take(&call, &arena);
    call = launch_with(f, NULL, NULL, attributes, 2);
    ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_OTHER);
    ck_assert_str_eq(explain(&op, &call).what, "number of attributes");
    call = launch_with(f, NULL, NULL, attributes, 0);
    ck_assert_int_eq(kernel_kind->compare(&op, &call), CGS_MATCH_OTHER);
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(attributes_that_no_node_can_hold_are_not_admitted)
{
    static const int ids[] = {
        CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
        CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
        CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 15, 16, 17, 100,
        -1
    };
    CUfunction        f = prg_kernel(&core, "k_nothing");
    CUlaunchAttribute attributes[2];
    cgs_call_t        call;
    size_t            i;

    memset(attributes, 0, sizeof(attributes));
    for (i = 0; i < COUNT(ids); ++i) {
        attributes[1].id = (CUlaunchAttributeID)ids[i];
        call             = launch_with(f, NULL, NULL, attributes, 2);
        ck_assert_msg(!kernel_kind->admit(&call), "attribute %d", ids[i]);
        ck_assert_ptr_nonnull(call.reason);
    }
}
END_TEST

static void reset_words(CUdeviceptr words, size_t num)
{
    PRG_CHECK(cuMemsetD32_v2(words, 0x1234, num));
    PRG_CHECK(cuCtxSynchronize());
}

/* What kernels leave in memory, asked three ways: by the program's own call, by
 * issuing the op, and by its node. */
static void check_launch(cgs_call_t *call, CUdeviceptr words, size_t num,
                         CUresult (*direct)(CUfunction f, void **params))
{
    cgs_arena_t arena = {0};
    cgs_op_t    op    = take(call, &arena);
    uint64_t    expected;

    reset_words(words, num);
    PRG_CHECK(direct(call->kernel.shape.function, call->kernel.params));
    PRG_CHECK(cuStreamSynchronize(core_stream));
    expected = prg_hash(words, num);
    reset_words(words, num);
    PRG_CHECK(kernel_kind->issue(&op, core_stream));
    PRG_CHECK(cuStreamSynchronize(core_stream));
    ck_assert_uint_eq(prg_hash(words, num), expected);
    reset_words(words, num);
    run_node(&op);
    ck_assert_uint_eq(prg_hash(words, num), expected);
    cgs_arena_release(&arena);
}

static CUresult turn_directly(CUfunction f, void **params)
{
    return cuLaunchKernel(f, 2, 1, 1, 64, 1, 1, 512, core_stream, params,
                          NULL);
}

static CUresult spread_directly(CUfunction f, void **params)
{
    return cuLaunchKernel(f, 2, 3, 4, 4, 2, 3, 0, core_stream, params, NULL);
}

START_TEST(issued_and_as_a_node_a_launch_does_what_it_did)
{
    const unsigned turn_grid[3] = {2, 1, 1}, turn_block[3] = {64, 1, 1};
    const unsigned grid[3]      = {2, 3, 4}, block[3]      = {4, 2, 3};
    CUdeviceptr    words        = core_alloc(1024, 0);
    uint32_t       n            = 128, rest = 9;
    void           *turn[]      = {&words, &n};
    void           *chain[]     = {&words, &rest};
    cgs_call_t     call         = new_call();
    int            api;

    for (api = CGS_LAUNCH_PLAIN; api <= CGS_LAUNCH_COOPERATIVE; ++api) {
        call = new_call();
        cgs_call_launch(&call, (cgs_launch_api_t)api,
                        prg_kernel(&core, "k_turn"), turn_grid, turn_block,
                        512, turn, NULL, NULL, 0);
        check_launch(&call, words, 128, turn_directly);
        call = new_call();
        cgs_call_launch(&call, (cgs_launch_api_t)api,
                        prg_kernel(&core, "k_chain"), grid, block, 0, chain,
                        NULL, NULL, 0);
        check_launch(&call, words, 128, spread_directly);
    }
}
END_TEST

static simk_grid_t seen_grid;

void simk_k_shape(const simk_grid_t *grid, void *const *params);
void simk_k_shape(const simk_grid_t *grid, void *const *params)
{
    (void)params;
    seen_grid = *grid;
}

START_TEST(a_launch_keeps_its_whole_shape)
{
    static const char text[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry k_shape()\n{\nret;\n}\n";
    const simk_grid_t expected = {{2, 3, 4}, {5, 6, 7}, 1000};
    cgs_arena_t       arena    = {0};
    cgs_call_t        call;
    CUmodule          module;
    CUfunction        f;
    cgs_op_t          op;
    int               api;

    PRG_CHECK(cuModuleLoadData(&module, text));
    PRG_CHECK(cuModuleGetFunction(&f, module, "k_shape"));
    for (api = CGS_LAUNCH_PLAIN; api <= CGS_LAUNCH_COOPERATIVE; ++api) {
        call = new_call();
        cgs_call_launch(&call, (cgs_launch_api_t)api, f, expected.grid,
                        expected.block, expected.shared_bytes, NULL, NULL,
                        NULL, 0);
        op = take(&call, &arena);
        memset(&seen_grid, 0, sizeof(seen_grid));
        PRG_CHECK(kernel_kind->issue(&op, core_stream));
        PRG_CHECK(cuStreamSynchronize(core_stream));
        ck_assert_int_eq(memcmp(&seen_grid, &expected, sizeof(expected)), 0);
        memset(&seen_grid, 0, sizeof(seen_grid));
        run_node(&op);
        ck_assert_int_eq(memcmp(&seen_grid, &expected, sizeof(expected)), 0);
    }
    cgs_arena_release(&arena);
}
END_TEST

START_TEST(attributes_and_cooperation_are_set_on_the_node)
{
    CUlaunchAttribute      attributes[3];
    CUlaunchAttributeValue value;
    CUgraphNodeParams      params;
    cgs_arena_t            arena = {0};
    CUfunction             f     = prg_kernel(&core, "k_nothing");
    const unsigned         one[3] = {2, 1, 1};
    cgs_call_t             call;
    CUgraphNode            node;
    CUgraph                graph;
    cgs_op_t               op;

    memset(attributes, 0, sizeof(attributes));
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[0].value.programmaticStreamSerializationAllowed = 1;
    attributes[1].id                 = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[1].value.priority     = -1;
    attributes[2].id                 = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[2].value.clusterDim.x = 2;
    attributes[2].value.clusterDim.y = 1;
    attributes[2].value.clusterDim.z = 1;
    PRG_CHECK(cuGraphCreate(&graph, 0));

    call = launch_with(f, NULL, NULL, attributes, 3);
    op   = take(&call, &arena);
    memset(attributes, 0xff, sizeof(attributes));
    memset(&params, 0, sizeof(params));
    kernel_kind->describe(&op, core.context, &params);
    PRG_CHECK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    PRG_CHECK(kernel_kind->decorate(&op, node));
    PRG_CHECK(cuGraphKernelNodeGetAttribute(
        node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    ck_assert_int_eq(value.priority, -1);
    PRG_CHECK(cuGraphKernelNodeGetAttribute(
        node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    ck_assert_uint_eq(value.clusterDim.x, 2);

    call = new_call();
    cgs_call_launch(&call, CGS_LAUNCH_COOPERATIVE, f, one, one, 0, NULL, NULL,
                    NULL, 0);
    op = take(&call, &arena);
    memset(&params, 0, sizeof(params));
    kernel_kind->describe(&op, core.context, &params);
    PRG_CHECK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    PRG_CHECK(kernel_kind->decorate(&op, node));
    PRG_CHECK(cuGraphKernelNodeGetAttribute(
        node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    ck_assert_int_eq(value.cooperative, 1);
    cgs_arena_release(&arena);
}
END_TEST

/* The node that a captured call becomes says how it was made. */
static CUgraphNode capture_issued(const cgs_op_t *op)
{
    CUgraphNode node;
    CUgraph     graph;
    size_t      num = 1;

    PRG_CHECK(cuStreamBeginCapture_v2(core_stream,
                                      CU_STREAM_CAPTURE_MODE_RELAXED));
    PRG_CHECK(kernel_kind->issue(op, core_stream));
    PRG_CHECK(cuStreamEndCapture(core_stream, &graph));
    PRG_CHECK(cuGraphGetNodes(graph, &node, &num));
    ck_assert_uint_eq(num, 1);
    return node;
}

START_TEST(a_launch_is_issued_with_its_attributes_and_cooperation)
{
    CUlaunchAttribute      attributes[2];
    CUlaunchAttributeValue value;
    CUfunction             f      = prg_kernel(&core, "k_nothing");
    const unsigned         one[3] = {1, 1, 1};
    cgs_arena_t            arena  = {0};
    cgs_call_t             call;
    CUgraphNode            node;
    cgs_op_t               op;

    memset(attributes, 0, sizeof(attributes));
    attributes[0].id                = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[0].value.priority    = -1;
    attributes[1].id                = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[1].value.cooperative = 1;
    call = launch_with(f, NULL, NULL, attributes, 2);
    op   = take(&call, &arena);
    memset(attributes, 0, sizeof(attributes));
    node = capture_issued(&op);
    PRG_CHECK(cuGraphKernelNodeGetAttribute(
        node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    ck_assert_int_eq(value.priority, -1);
    PRG_CHECK(cuGraphKernelNodeGetAttribute(
        node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    ck_assert_int_eq(value.cooperative, 1);

    call = new_call();
    cgs_call_launch(&call, CGS_LAUNCH_COOPERATIVE, f, one, one, 0, NULL, NULL,
                    NULL, 0);
    op   = take(&call, &arena);
    node = capture_issued(&op);
    PRG_CHECK(cuGraphKernelNodeGetAttribute(
        node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    ck_assert_int_eq(value.cooperative, 1);
    cgs_arena_release(&arena);
}
END_TEST

/* Of any kind: what recall gives is the call that take was given. */
static void check_recall(cgs_call_t *call)
{
    const cgs_op_kind_t *kind   = cgs_op_kinds[call->kind];
    cgs_arena_t         arena   = {0}, other = {0};
    cgs_op_t            op      = take(call, &arena);
    cgs_call_t          again;
    cgs_op_t            copy;

    memset(&again, 0xee, sizeof(again));
    again.kind = op.kind;
    kind->recall(&op, &again);
    memset(&copy, 0, sizeof(copy));
    copy.kind = op.kind;
    ck_assert_int_eq(kind->take(&copy, &again, &other), 0);
    ck_assert_uint_eq(kind->hash(&op, 3), kind->hash(&copy, 3));
    if (call->kind == CGS_OP_KERNEL) {
        /* What lies between and behind the arguments too. */
        ck_assert_int_eq(memcmp(op.kernel.args, copy.kernel.args,
                                op.kernel.shape.extra_size), 0);
    }
    cgs_arena_release(&arena);
    ck_assert_int_eq(kind->compare(&copy, call), CGS_MATCH_SAME);
    cgs_arena_release(&other);
}

START_TEST(a_recalled_call_is_the_one_that_was_taken)
{
    CUdeviceptr       from = core_alloc(64, 1), to = core_alloc(64, 2);
    uint32_t          value = 5;
    void              *params[] = {&to, &value};
    CUlaunchAttribute attribute = {
        .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 1
    };
    struct {
        CUdeviceptr word;
        uint32_t    value, more;
    } buffer         = {to, 6, 7};
    size_t size      = sizeof(buffer);
    void   *extra[]  = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
        &size, CU_LAUNCH_PARAM_END
    };
    CUfunction f = prg_kernel(&core, "k_chain");
    cgs_call_t call;

    call = launch(f, params);
    check_recall(&call);
    call = launch_with(f, params, NULL, &attribute, 1);
    check_recall(&call);
    call = launch_with(f, NULL, extra, NULL, 0);
    check_recall(&call);
    call = new_call();
    cgs_call_copy(&call, CGS_COPY_DTOD, CU_MEMORYTYPE_DEVICE, to,
                  CU_MEMORYTYPE_DEVICE, from, 64);
    check_recall(&call);
    call = new_call();
    cgs_call_set(&call, to, 0, 5, 4, 3, 1, false, false);
    check_recall(&call);
}
END_TEST

/* ---- Layouts ---- */

START_TEST(a_kernel_of_a_library_is_known_by_its_own_handle)
{
    static const char text[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry k_chain(.param .u64 p0, .param .u32 p1)\n{\nret;\n}\n";
    CUdeviceptr        word  = core_alloc(4, 0);
    uint32_t           value = 3;
    void               *params[] = {&word, &value};
    const char         *why  = NULL;
    cgs_arena_t        arena = {0};
    CUlibrary          library;
    CUkernel           kernel;
    const cgs_layout_t *layout;
    cgs_call_t         call;
    cgs_op_t           op;

    PRG_CHECK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL,
                                0));
    PRG_CHECK(cuLibraryGetKernel(&kernel, library, "k_chain"));
    layout = cgs_function_layout((CUfunction)kernel, &why);
    ck_assert_ptr_nonnull(layout);
    ck_assert(layout->is_kernel);
    ck_assert_uint_eq(layout->num, 2);
    ck_assert_uint_eq(layout->total, 12);
    ck_assert_str_eq(cgs_function_name((CUfunction)kernel), "k_chain");

    call = launch((CUfunction)kernel, params);
    op   = take(&call, &arena);
    PRG_CHECK(kernel_kind->issue(&op, core_stream));
    ck_assert_uint_eq(core_word(word), 3);
    run_node(&op);
    ck_assert_uint_eq(core_word(word), 3 * 1664525u + 3);
    cgs_arena_release(&arena);
    ck_assert(!cgs_function_layout(prg_kernel(&core, "k_chain"),
                                   &why)->is_kernel);
}
END_TEST

START_TEST(nothing_is_known_of_what_an_unloaded_module_had)
{
    CUfunction         f          = prg_kernel(&core, "k_chain");
    uint64_t           generation = cgs_memory_generation();
    const char         *why       = NULL;
    const cgs_layout_t *layout;

    layout = cgs_function_layout(f, &why);
    ck_assert_ptr_eq(cgs_function_layout(f, &why), layout);
    PRG_CHECK(cuModuleUnload(core.module));
    ck_assert_uint_ne(cgs_memory_generation(), generation);
    ck_assert_ptr_null(cgs_function_layout(f, &why));
    ck_assert_ptr_nonnull(why);
}
END_TEST

START_TEST(an_attribute_that_changes_a_kernel_in_use_matters)
{
    const CUfunction_attribute shared =
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CUfunction  f     = prg_kernel(&core, "k_chain");
    CUfunction  other = prg_kernel(&core, "k_fill");
    CUdeviceptr word  = core_alloc(4, 0);
    uint32_t    value = 1;
    cgs_arena_t arena = {0};
    cgs_call_t  call  = launch(f, (void *[]){&word, &value});

    ck_assert_int_eq(cgs_function_attribute(f, NULL, shared, 4, -1),
                     CGS_ATTRIBUTE_UNUSED);
    cgs_function_set_attribute(f, shared, 4, -1);
    ck_assert_int_eq(cgs_function_attribute(f, NULL, shared, 4, -1),
                     CGS_ATTRIBUTE_SAME);
    ck_assert_int_eq(cgs_function_attribute(f, NULL, shared, 5, -1),
                     CGS_ATTRIBUTE_UNUSED);
    take(&call, &arena);
    ck_assert_int_eq(cgs_function_attribute(f, NULL, shared, 4, -1),
                     CGS_ATTRIBUTE_SAME);
    ck_assert_int_eq(cgs_function_attribute(f, NULL, shared, 5, -1),
                     CGS_ATTRIBUTE_IN_USE);
    ck_assert_int_eq(cgs_function_attribute(f, NULL, shared, 4, 0),
                     CGS_ATTRIBUTE_IN_USE);
    ck_assert_int_eq(cgs_function_attribute(f, NULL, shared - 1, 4, -1),
                     CGS_ATTRIBUTE_IN_USE);
    ck_assert_int_eq(cgs_function_attribute(f, NULL, 100, 4, -1),
                     CGS_ATTRIBUTE_IN_USE);
    ck_assert_int_eq(cgs_function_attribute(other, NULL, shared, 5, -1),
                     CGS_ATTRIBUTE_UNUSED);
    ck_assert_int_eq(cgs_function_attribute(other, f, shared, 5, -1),
                     CGS_ATTRIBUTE_IN_USE);
    cgs_function_forget_all();
    ck_assert_int_eq(cgs_function_attribute(f, NULL, shared, 4, -1),
                     CGS_ATTRIBUTE_UNUSED);
    cgs_arena_release(&arena);
}
END_TEST

/* ---- Copies ---- */

typedef struct {
    CUdeviceptr device[2];
    char        *pinned[2];
    char        *pageable;
    CUdeviceptr managed;
} places_t;

enum {
    PLACE_BYTES = 4096
};

static places_t new_places(void)
{
    places_t places;
    int      i;

    for (i = 0; i < 2; ++i) {
        places.device[i] = core_alloc(PLACE_BYTES, 0);
        PRG_CHECK(cuMemHostAlloc((void **)&places.pinned[i], PLACE_BYTES, 0));
    }
    PRG_CHECK(cuMemAllocManaged(&places.managed, PLACE_BYTES,
                                CU_MEM_ATTACH_GLOBAL));
    places.pageable = malloc(PLACE_BYTES);
    ck_assert_ptr_nonnull(places.pageable);
    return places;
}

/* Memory that is different in each byte. */
static void fill_places(const places_t *places)
{
    char bytes[PLACE_BYTES];
    int  i, j;

    for (j = 0; j < 2; ++j) {
        for (i = 0; i < PLACE_BYTES; ++i) {
            bytes[i] = (char)(i * 7 + i / 256 + j * 100);
        }
        PRG_CHECK(cuMemcpyHtoD_v2(places->device[j], bytes, PLACE_BYTES));
        for (i = 0; i < PLACE_BYTES; ++i) {
            bytes[i] = (char)(i * 11 + i / 256 + j * 50);
        }
        memcpy(places->pinned[j], bytes, PLACE_BYTES);
    }
    PRG_CHECK(cuCtxSynchronize());
}

static uint64_t hash_places(const places_t *places)
{
    uint64_t hash = 1;
    int      i;

    PRG_CHECK(cuCtxSynchronize());
    for (i = 0; i < 2; ++i) {
        hash = hash * 31 + prg_hash(places->device[i], PLACE_BYTES / 4);
        hash = hash * 31 + prg_hash_host(places->pinned[i], PLACE_BYTES);
    }
    return hash;
}

static cgs_call_t copy_call(cgs_copy_api_t api, CUmemorytype dst_type,
                            uint64_t dst, CUmemorytype src_type, uint64_t src,
                            size_t bytes)
{
    cgs_call_t call = new_call();

    cgs_call_copy(&call, api, dst_type, dst, src_type, src, bytes);
    return call;
}

static cgs_call_t dtod(uint64_t dst, uint64_t src, size_t bytes)
{
    return copy_call(CGS_COPY_DTOD, CU_MEMORYTYPE_DEVICE, dst,
                     CU_MEMORYTYPE_DEVICE, src, bytes);
}

/* The places after the program's call must be as after issuing its op, and as
 * after running its node; and the call must have changed something. */
static void check_work(const places_t *places, cgs_call_t *call,
                       uint64_t expected, const char *name)
{
    cgs_arena_t arena = {0};
    cgs_op_t    op    = take(call, &arena);

    fill_places(places);
    ck_assert_msg(expected != hash_places(places), "%s does nothing", name);
    PRG_CHECK(cgs_op_kinds[op.kind]->issue(&op, core_stream));
    ck_assert_msg(hash_places(places) == expected, "%s issued", name);
    fill_places(places);
    run_node(&op);
    ck_assert_msg(hash_places(places) == expected, "%s as a node", name);
    cgs_arena_release(&arena);
}

static void check_flat_copy(const places_t *places, cgs_copy_api_t api,
                            CUmemorytype dst_type, uint64_t dst,
                            CUmemorytype src_type, uint64_t src,
                            const char *name)
{
    const bool unified = api == CGS_COPY_ANY;
    cgs_call_t call;

    call = copy_call(api, unified ? CU_MEMORYTYPE_UNIFIED : dst_type, dst,
                     unified ? CU_MEMORYTYPE_UNIFIED : src_type, src, 777);
    fill_places(places);
    switch (api) {
    case CGS_COPY_DTOD:
        PRG_CHECK(cuMemcpyDtoDAsync_v2(dst, src, 777, core_stream));
        break;
    case CGS_COPY_HTOD:
        PRG_CHECK(cuMemcpyHtoDAsync_v2(dst, (void *)src, 777, core_stream));
        break;
    case CGS_COPY_DTOH:
        PRG_CHECK(cuMemcpyDtoHAsync_v2((void *)dst, src, 777, core_stream));
        break;
    default:
        PRG_CHECK(cuMemcpyAsync(dst, src, 777, core_stream));
        break;
    }
    check_work(places, &call, hash_places(places), name);
}

START_TEST(issued_and_as_a_node_a_copy_does_what_it_did)
{
    const CUmemorytype device = CU_MEMORYTYPE_DEVICE;
    const CUmemorytype host   = CU_MEMORYTYPE_HOST;
    places_t           p      = new_places();
    uint64_t           pinned = (uint64_t)p.pinned[0] + 5;

    check_flat_copy(&p, CGS_COPY_DTOD, device, p.device[0] + 3, device,
                    p.device[1] + 9, "DtoD");
    check_flat_copy(&p, CGS_COPY_HTOD, device, p.device[0] + 3, host, pinned,
                    "HtoD");
    check_flat_copy(&p, CGS_COPY_DTOH, host, pinned, device, p.device[1] + 9,
                    "DtoH");
    check_flat_copy(&p, CGS_COPY_ANY, device, p.device[0] + 3, device,
                    p.device[1] + 9, "any, DtoD");
    check_flat_copy(&p, CGS_COPY_ANY, device, p.device[0] + 3, host, pinned,
                    "any, HtoD");
    check_flat_copy(&p, CGS_COPY_ANY, host, pinned, device, p.device[1] + 9,
                    "any, DtoH");
}
END_TEST

static CUDA_MEMCPY3D solid_copy(const places_t *places)
{
    CUDA_MEMCPY3D copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcXInBytes   = 3;
    copy.srcY          = 2;
    copy.srcZ          = 1;
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice     = places->device[0];
    copy.srcPitch      = 64;
    copy.srcHeight     = 9;
    copy.dstXInBytes   = 5;
    copy.dstY          = 1;
    copy.dstZ          = 2;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost       = places->pinned[0];
    copy.dstPitch      = 80;
    copy.dstHeight     = 8;
    copy.WidthInBytes  = 33;
    copy.Height        = 5;
    copy.Depth         = 3;
    return copy;
}

static CUDA_MEMCPY2D flat_of(const CUDA_MEMCPY3D *copy)
{
    return (CUDA_MEMCPY2D){
        .srcXInBytes = copy->srcXInBytes, .srcY = copy->srcY,
        .srcMemoryType = copy->srcMemoryType, .srcHost = copy->srcHost,
        .srcDevice = copy->srcDevice, .srcArray = copy->srcArray,
        .srcPitch = copy->srcPitch, .dstXInBytes = copy->dstXInBytes,
        .dstY = copy->dstY, .dstMemoryType = copy->dstMemoryType,
        .dstHost = copy->dstHost, .dstDevice = copy->dstDevice,
        .dstArray = copy->dstArray, .dstPitch = copy->dstPitch,
        .WidthInBytes = copy->WidthInBytes, .Height = copy->Height,
    };
}

static void check_solid_copy(const places_t *places,
                             const CUDA_MEMCPY3D *copy, const char *name)
{
    const CUDA_MEMCPY2D flat = flat_of(copy);
    cgs_call_t          call;

    call = new_call();
    cgs_call_copy_3d(&call, copy);
    fill_places(places);
    PRG_CHECK(cuMemcpy3DAsync_v2(copy, core_stream));
    check_work(places, &call, hash_places(places), name);
    call = new_call();
    cgs_call_copy_2d(&call, &flat);
    fill_places(places);
    PRG_CHECK(cuMemcpy2DAsync_v2(&flat, core_stream));
    check_work(places, &call, hash_places(places), name);
}

START_TEST(issued_and_as_a_node_a_copy_of_more_dimensions_does_what_it_did)
{
    places_t      places = new_places();
    CUDA_MEMCPY3D copy   = solid_copy(&places), other;

    check_solid_copy(&places, &copy, "device to host");
    other               = copy;
    other.srcMemoryType = CU_MEMORYTYPE_HOST;
    other.srcHost       = places.pinned[1];
    other.srcDevice     = 0;
    other.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    other.dstDevice     = places.device[1];
    other.dstHost       = NULL;
    check_solid_copy(&places, &other, "host to device");
    other.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    other.srcDevice     = places.device[0];
    other.srcHost       = NULL;
    other.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    check_solid_copy(&places, &other, "unified");
}
END_TEST

START_TEST(copies_of_memory_that_a_node_cannot_copy_are_not_admitted)
{
    const CUmemorytype any = CU_MEMORYTYPE_UNIFIED;
    places_t           p   = new_places();
    uint64_t           d   = p.device[0], h = (uint64_t)p.pinned[0];
    struct {
        CUmemorytype dst_type;
        uint64_t     dst;
        CUmemorytype src_type;
        uint64_t     src;
        bool         good;
    } cases[] = {
        {any, d, any, p.device[1], true},
        {any, d, any, h, true},
        {any, h, any, d, true},
        {any, d, any, (uint64_t)p.pageable, false},
        {any, (uint64_t)p.pageable, any, d, false},
        {any, d, any, p.managed, false},
        {any, p.managed, any, d, false},
        {any, h, any, (uint64_t)p.pinned[1], false},
        {CU_MEMORYTYPE_DEVICE, h, CU_MEMORYTYPE_DEVICE, d, false},
        {CU_MEMORYTYPE_DEVICE, d, CU_MEMORYTYPE_DEVICE, h, false},
        {CU_MEMORYTYPE_HOST, d, CU_MEMORYTYPE_DEVICE, d, false},
        {any, 0, any, d, false},
        {any, d, any, 0, false},
    };
    cgs_call_t call;
    size_t     i;

    for (i = 0; i < COUNT(cases); ++i) {
        call = copy_call(CGS_COPY_ANY, cases[i].dst_type, cases[i].dst,
                         cases[i].src_type, cases[i].src, 8);
        ck_assert_msg(copy_kind->admit(&call) == cases[i].good, "case %zu",
                      i);
        ck_assert_msg(cases[i].good || (call.reason != NULL), "case %zu", i);
        call        = copy_call(CGS_COPY_ANY, cases[i].dst_type, cases[i].dst,
                                cases[i].src_type, cases[i].src, 8);
        call.device = core.device + 1; /* memory is of another device */
        ck_assert_msg(!copy_kind->admit(&call), "case %zu", i);
    }
}
END_TEST

START_TEST(copies_and_sets_of_nothing_are_refused)
{
    places_t      places = new_places();
    CUDA_MEMCPY3D copy;
    CUDA_MEMCPY2D flat;
    cgs_call_t    call;
    int           i;

    call = dtod(places.device[0], places.device[1], 0);
    ck_assert(call.refused && (call.reason != NULL));
    for (i = 0; i < 4; ++i) {
        copy               = solid_copy(&places);
        copy.WidthInBytes *= i != 0;
        copy.Height       *= i != 1;
        copy.Depth        *= i != 2;
        flat               = flat_of(&copy);
        call               = new_call();
        cgs_call_copy_3d(&call, &copy);
        ck_assert_int_eq(call.refused, i < 3);
        call = new_call();
        cgs_call_copy_2d(&call, &flat);
        ck_assert_int_eq(call.refused, i < 2);
        call = new_call();
        cgs_call_set(&call, places.device[0], 64, 1, 1, i != 0, i != 1, true,
                     false);
        ck_assert_int_eq(call.refused, i < 2);
    }
}
END_TEST

START_TEST(a_copy_of_one_dimension_may_change_all_but_its_kind)
{
    const CUmemorytype any   = CU_MEMORYTYPE_UNIFIED;
    places_t           p     = new_places();
    uint64_t           h     = (uint64_t)p.pinned[0];
    cgs_arena_t        arena = {0};
    cgs_call_t         call  = copy_call(CGS_COPY_ANY, any, p.device[0], any,
                                         p.device[1], 100);
    cgs_op_t           op    = take(&call, &arena);
    struct {
        uint64_t    dst, src;
        size_t      bytes;
        cgs_match_t match;
        const char  *what;
    } cases[] = {
        {p.device[0], p.device[1], 100, CGS_MATCH_SAME, NULL},
        {p.device[0] + 1, p.device[1], 100, CGS_MATCH_CHANGED, "destination"},
        {p.device[0], p.device[1] + 1, 100, CGS_MATCH_CHANGED, "source"},
        {p.device[0], p.device[1], 99, CGS_MATCH_CHANGED, "bytes"},
        {p.device[0], h, 100, CGS_MATCH_OTHER, "source"},
        {h, p.device[1], 100, CGS_MATCH_OTHER, "destination"},
        {p.device[0], (uint64_t)p.pageable, 100, CGS_MATCH_OTHER, "source"},
        {p.device[0], p.managed, 100, CGS_MATCH_OTHER, "source"},
    };
    uint64_t hash = copy_kind->hash(&op, 1);
    size_t   i;

    for (i = 0; i < COUNT(cases); ++i) {
        call = copy_call(CGS_COPY_ANY, any, cases[i].dst, any, cases[i].src,
                         cases[i].bytes);
        ck_assert_msg(copy_kind->compare(&op, &call) == cases[i].match,
                      "case %zu", i);
        if (cases[i].what != NULL) {
            ck_assert_str_eq(explain(&op, &call).what, cases[i].what);
        }
        if (cases[i].match == CGS_MATCH_CHANGED) {
            cgs_op_t other = op;

            ck_assert_int_eq(copy_kind->take(&other, &call, NULL), 0);
            ck_assert_uint_ne(copy_kind->hash(&other, 1), hash);
            ck_assert_int_eq(copy_kind->compare(&other, &call),
                             CGS_MATCH_SAME);
        }
    }
    call = dtod(p.device[0], p.device[1], 100);
    ck_assert_int_eq(copy_kind->compare(&op, &call), CGS_MATCH_OTHER);
    ck_assert_str_eq(explain(&op, &call).what, "way of copying");
}
END_TEST

START_TEST(a_copy_of_more_dimensions_is_the_same_or_another)
{
    places_t      places = new_places();
    cgs_arena_t   arena  = {0};
    CUDA_MEMCPY3D copy   = solid_copy(&places);
    size_t        *numbers[] = {
        &copy.srcXInBytes, &copy.srcY, &copy.srcZ, &copy.srcLOD,
        &copy.srcPitch, &copy.srcHeight, &copy.dstXInBytes, &copy.dstY,
        &copy.dstZ, &copy.dstLOD, &copy.dstPitch, &copy.dstHeight,
        &copy.WidthInBytes, &copy.Height, &copy.Depth,
        (size_t *)&copy.srcDevice, (size_t *)&copy.dstHost
    };
    cgs_call_t call = new_call();
    cgs_op_t   op;
    size_t     i;

    cgs_call_copy_3d(&call, &copy);
    op = take(&call, &arena);
    for (i = 0; i < COUNT(numbers); ++i) {
        *numbers[i] += 1;
        call         = new_call();
        cgs_call_copy_3d(&call, &copy);
        ck_assert_msg(copy_kind->compare(&op, &call) == CGS_MATCH_OTHER,
                      "number %zu", i);
        explain(&op, &call);
        *numbers[i] -= 1;
    }
    call = new_call();
    cgs_call_copy_3d(&call, &copy);
    ck_assert_int_eq(copy_kind->compare(&op, &call), CGS_MATCH_SAME);
    cgs_memory_changed();
    ck_assert_int_eq(copy_kind->compare(&op, &call), CGS_MATCH_OTHER);
    ck_assert_str_eq(explain(&op, &call).what, "memory freed since");
}
END_TEST

START_TEST(after_a_free_the_same_address_is_asked_about_again)
{
    places_t    p     = new_places();
    cgs_arena_t arena = {0};
    cgs_call_t  call  = dtod(p.device[0], p.device[1], 100), set = new_call();
    cgs_op_t    op, set_op;

    cgs_call_set(&set, p.device[0], 0, 1, 1, 10, 1, false, false);
    op     = take(&call, &arena);
    set_op = take(&set, &arena);
    cgs_memory_changed();
    ck_assert_int_eq(copy_kind->compare(&op, &call), CGS_MATCH_CHANGED);
    ck_assert_str_eq(explain(&op, &call).what, "memory freed since");
    ck_assert_int_eq(copy_kind->take(&op, &call, NULL), 0);
    ck_assert_int_eq(copy_kind->compare(&op, &call), CGS_MATCH_SAME);
    ck_assert_int_eq(set_kind->compare(&set_op, &set), CGS_MATCH_CHANGED);
    ck_assert_str_eq(explain(&set_op, &set).what, "memory freed since");
    ck_assert_int_eq(set_kind->take(&set_op, &set, NULL), 0);
    ck_assert_int_eq(set_kind->compare(&set_op, &set), CGS_MATCH_SAME);

    PRG_CHECK(cuMemFree_v2(p.device[0])); /* tells of the change by itself */
    ck_assert_int_eq(copy_kind->compare(&op, &call), CGS_MATCH_OTHER);
    ck_assert_int_eq(set_kind->compare(&set_op, &set), CGS_MATCH_OTHER);
}
END_TEST

/* ---- Sets ---- */

static CUresult set_directly(const cgs_set_t *set)
{
    CUstream    s = core_stream;
    CUdeviceptr d = set->dst;

    switch (set->element_size + 8 * set->is_2d) {
    case 1:
        return cuMemsetD8Async(d, set->value, set->width, s);
    case 2:
        return cuMemsetD16Async(d, set->value, set->width, s);
    case 4:
        return cuMemsetD32Async(d, set->value, set->width, s);
    case 9:
        return cuMemsetD2D8Async(d, set->pitch, set->value, set->width,
                                 set->height, s);
    case 10:
        return cuMemsetD2D16Async(d, set->pitch, set->value, set->width,
                                  set->height, s);
    default:
        return cuMemsetD2D32Async(d, set->pitch, set->value, set->width,
                                  set->height, s);
    }
}

START_TEST(issued_and_as_a_node_a_set_does_what_it_did)
{
    places_t   places = new_places();
    unsigned   size, is_2d, height;
    cgs_call_t call;

    for (size = 1; size <= 4; size *= 2) {
        for (is_2d = 0; is_2d < 2; ++is_2d) {
            for (height = 1; height <= (is_2d ? 3 : 1); ++height) {
                call = new_call();
                cgs_call_set(&call, places.device[0] + 8, is_2d ? 128 : 0,
                             0x81828384u >> (32 - 8 * size), size, 13, height,
                             is_2d, false);
                fill_places(&places);
                PRG_CHECK(set_directly(&call.set.set));
                check_work(&places, &call, hash_places(&places), "set");
            }
        }
    }
}
END_TEST

START_TEST(a_set_of_one_dimension_may_change_all_but_its_element)
{
    places_t    p     = new_places();
    cgs_arena_t arena = {0};
    cgs_call_t  call  = new_call();
    struct {
        uint64_t    dst;
        unsigned    value, size;
        size_t      width;
        cgs_match_t match;
        const char  *what;
    } cases[] = {
        {p.device[0], 5, 2, 9, CGS_MATCH_SAME, NULL},
        {p.device[1], 5, 2, 9, CGS_MATCH_CHANGED, "destination"},
        {p.device[0], 6, 2, 9, CGS_MATCH_CHANGED, "value"},
        {p.device[0], 5, 2, 8, CGS_MATCH_CHANGED, "width"},
        {p.device[0], 5, 4, 9, CGS_MATCH_OTHER, "shape"},
        {p.device[0], 5, 1, 9, CGS_MATCH_OTHER, "shape"},
        {p.managed, 5, 2, 9, CGS_MATCH_OTHER, "destination"},
        {(uint64_t)p.pinned[0], 5, 2, 9, CGS_MATCH_OTHER, "destination"},
        {(uint64_t)p.pageable, 5, 2, 9, CGS_MATCH_OTHER, "destination"},
    };
    uint64_t hash;
    cgs_op_t op, other;
    size_t   i;

    cgs_call_set(&call, p.device[0], 0, 5, 2, 9, 1, false, false);
    op   = take(&call, &arena);
    hash = set_kind->hash(&op, 1);
    for (i = 0; i < COUNT(cases); ++i) {
        call = new_call();
        cgs_call_set(&call, cases[i].dst, 0, cases[i].value, cases[i].size,
                     cases[i].width, 1, false, false);
        ck_assert_msg(set_kind->compare(&op, &call) == cases[i].match,
                      "case %zu", i);
        if (cases[i].what != NULL) {
            ck_assert_str_eq(explain(&op, &call).what, cases[i].what);
        }
        if (cases[i].match == CGS_MATCH_CHANGED) {
            other = op;
            ck_assert_int_eq(set_kind->take(&other, &call, NULL), 0);
            ck_assert_uint_ne(set_kind->hash(&other, 1), hash);
        }
    }
    call = new_call();
    cgs_call_set(&call, p.device[0], 0, 5, 2, 9, 1, true, false);
    ck_assert_int_eq(set_kind->compare(&op, &call), CGS_MATCH_OTHER);
}
END_TEST

START_TEST(a_set_of_two_dimensions_is_the_same_or_another)
{
    places_t    p     = new_places();
    cgs_arena_t arena = {0};
    cgs_call_t  call  = new_call();
    size_t      n[5]  = {p.device[0], 64, 5, 9, 3};
    cgs_op_t    op;
    int         i;

    cgs_call_set(&call, n[0], n[1], (unsigned)n[2], 4, n[3], n[4], true, false);
    op = take(&call, &arena);
    for (i = 0; i < 5; ++i) {
        n[i] += 4;
        call  = new_call();
        cgs_call_set(&call, n[0], n[1], (unsigned)n[2], 4, n[3], n[4], true,
                     false);
        ck_assert_msg(set_kind->compare(&op, &call) == CGS_MATCH_OTHER,
                      "number %d", i);
        n[i] -= 4;
    }
    call = new_call();
    cgs_call_set(&call, n[0], n[1], (unsigned)n[2], 4, n[3], n[4], true, false);
    ck_assert_int_eq(set_kind->compare(&op, &call), CGS_MATCH_SAME);
}
END_TEST

/* ---- All kinds ---- */

START_TEST(a_hash_sees_each_byte_and_its_place)
{
    unsigned char bytes[40] = {0};
    uint64_t      seen[81];
    size_t        i, j, num = 0;

    seen[num++] = cgs_op_hash_bytes(bytes, sizeof(bytes), 1);
    for (i = 0; i < sizeof(bytes); ++i) {
        bytes[i]    = 1;
        seen[num++] = cgs_op_hash_bytes(bytes, sizeof(bytes), 1);
        bytes[i]    = 0x80;
        seen[num++] = cgs_op_hash_bytes(bytes, sizeof(bytes), 1);
        bytes[i]    = 0;
    }
    for (i = 0; i < num; ++i) {
        for (j = 0; j < i; ++j) {
            ck_assert_msg(seen[i] != seen[j], "%zu and %zu", j, i);
        }
    }
}
END_TEST

START_TEST(each_call_has_a_name)
{
    places_t   p = new_places();
    cgs_call_t call;

    call = launch(prg_kernel(&core, "k_nothing"), NULL);
    ck_assert_str_eq(cgs_op_call_name(&call), "k_nothing");
    call = dtod(p.device[0], p.device[1], 8);
    ck_assert_str_eq(cgs_op_call_name(&call), "copy");
    call = new_call();
    cgs_call_set(&call, p.device[0], 0, 5, 2, 9, 1, false, false);
    ck_assert_str_eq(cgs_op_call_name(&call), "set");
}
END_TEST

static TCase *launches(void)
{
    TCase *tests = tcase_create("launches");

    tcase_add_checked_fixture(tests, open_all, NULL);
    tcase_add_test(tests, each_byte_of_each_argument_is_compared);
    tcase_add_test(tests, a_changed_argument_is_kept_and_hashed);
    tcase_add_test(tests, arguments_of_1_to_4096_bytes_are_compared_and_kept);
    tcase_add_test(tests, padding_between_arguments_is_not_compared);
    tcase_add_test(tests, an_extra_buffer_is_kept_and_issued_whole);
    tcase_add_test(tests, an_extra_buffer_that_is_not_understood_is_refused);
    tcase_add_test(tests, a_launch_without_its_arguments_is_no_op);
    tcase_add_test(tests, arguments_that_are_gone_are_not_looked_at);
    tcase_add_test(tests, what_is_no_argument_makes_another_shape);
    tcase_add_test(tests,
                   attributes_are_compared_by_the_bytes_that_mean_something);
    tcase_add_test(tests, the_number_of_attributes_is_compared);
    tcase_add_test(tests, attributes_that_no_node_can_hold_are_not_admitted);
    tcase_add_test(tests, issued_and_as_a_node_a_launch_does_what_it_did);
    tcase_add_test(tests, a_launch_keeps_its_whole_shape);
    tcase_add_test(tests, attributes_and_cooperation_are_set_on_the_node);
    tcase_add_test(tests,
                   a_launch_is_issued_with_its_attributes_and_cooperation);
    tcase_add_test(tests, a_recalled_call_is_the_one_that_was_taken);
    tcase_add_test(tests, a_kernel_of_a_library_is_known_by_its_own_handle);
    tcase_add_test(tests,
                   nothing_is_known_of_what_an_unloaded_module_had);
    tcase_add_test(tests, an_attribute_that_changes_a_kernel_in_use_matters);
    return tests;
}

static TCase *copies_and_sets(void)
{
    TCase *tests = tcase_create("copies and sets");

    tcase_add_checked_fixture(tests, open_all, NULL);
    tcase_add_test(tests, issued_and_as_a_node_a_copy_does_what_it_did);
    tcase_add_test(
        tests, issued_and_as_a_node_a_copy_of_more_dimensions_does_what_it_did);
    tcase_add_test(tests,
                   copies_of_memory_that_a_node_cannot_copy_are_not_admitted);
    tcase_add_test(tests, copies_and_sets_of_nothing_are_refused);
    tcase_add_test(tests, a_copy_of_one_dimension_may_change_all_but_its_kind);
    tcase_add_test(tests, a_copy_of_more_dimensions_is_the_same_or_another);
    tcase_add_test(tests, after_a_free_the_same_address_is_asked_about_again);
    tcase_add_test(tests, issued_and_as_a_node_a_set_does_what_it_did);
    tcase_add_test(tests,
                   a_set_of_one_dimension_may_change_all_but_its_element);
    tcase_add_test(tests, a_set_of_two_dimensions_is_the_same_or_another);
    tcase_add_test(tests, a_hash_sees_each_byte_and_its_place);
    tcase_add_test(tests, each_call_has_a_name);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("op");

    suite_add_tcase(suite, launches());
    suite_add_tcase(suite, copies_and_sets());
    return core_run(suite);
}
