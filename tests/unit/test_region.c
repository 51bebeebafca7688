/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of a region: what is recorded, replayed, issued and given up, as its
 * counters tell it, and that memory is as if all had been eager.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "function.h"
#include "life.h"
#include "region_run.h"

enum {
    STEPS = 5
};

static const char empty_module[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n";

/* Before the library's own constructor keeps the environment. */
__attribute__((constructor(101))) static void configure(void)
{
    /* However slow the machine is: what is held stays held. */
    setenv("CGSHIM_DEFAULTS", "max_defer_us=1000000000 gate=off chunk=all", 1);
    setenv("CGSHIM_REGION_r", "", 1);
    setenv("CGSHIM_REGION_other", "", 1);
    setenv("CGSHIM_REGION_warm", "warmup=3", 1);
    setenv("CGSHIM_REGION_recapture", "on_change=recapture", 1);
    setenv("CGSHIM_REGION_eager", "on_change=eager", 1);
    setenv("CGSHIM_REGION_disabled", "enable=0", 1);
    setenv("CGSHIM_REGION_short", "max_defer_us=2000", 1);
    setenv("CGSHIM_REGION_domain", "nvtx=dom:both", 1);
    setenv("CGSHIM_REGION_gated", "gate=on", 1);
}

static cgs_region_t *region(const char *name)
{
    cgs_region_t *region = cgs_region_find(name);

    ck_assert_ptr_nonnull(region);
    cgs_region_measure(region);
    return region;
}

static const cgs_region_stats_t *stats(const char *name)
{
    return &region(name)->stats;
}

/* How often a reason that begins so was noted. */
static uint64_t reasons(const char *name, const char *reason)
{
    const cgs_region_stats_t *stats = &region(name)->stats;
    uint64_t                 count  = 0;
    size_t                   i;

    for (i = 0; i < stats->fallbacks.num; ++i) {
        if (!strncmp(stats->fallbacks.entry[i].reason, reason,
                     strlen(reason))) {
            count += stats->fallbacks.entry[i].count;
        }
    }
    return count;
}

/* Run a function in a thread of its own, with the context current. */
static void *thread_body(void *function)
{
    PRG_CHECK(cuCtxSetCurrent(core.context));
    ((void (*)(void))function)();
    return NULL;
}

static void in_another_thread(void (*function)(void))
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, thread_body,
                                    (void *)function), 0);
    pthread_join(thread, NULL);
}

/* ---- Recording and replaying ---- */

START_TEST(the_first_run_is_recorded_and_the_others_replayed)
{
    run_times("r", 10, 1, STEPS);
    ck_assert_uint_eq(stats("r")->runs, 10);
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("r")->replayed_runs, 9);
    ck_assert_uint_eq(stats("r")->launches, 9);
    ck_assert_uint_eq(stats("r")->builds, 1);
    ck_assert_uint_eq(stats("r")->calls, 10 * STEPS);
    ck_assert_uint_eq(stats("r")->swallowed, 9 * STEPS);
    ck_assert_uint_eq(stats("r")->patched, 0);
    ck_assert_uint_eq(stats("r")->fallbacks.num, 0);
    ck_assert(!stats("r")->first_divergence.valid);
    check_word();
}
END_TEST

START_TEST(calls_are_held_back_until_the_last_and_then_launched)
{
    cgs_region_t *r;
    unsigned     i;

    run_times("r", 2, 1, STEPS);
    r = region("r");
    enter("r");
    for (i = 0; i + 1 < STEPS; ++i) {
        step(1 + i);
        ck_assert_uint_eq(held(r), i + 1);
        ck_assert_uint_eq(r->stats.launches, 1);
    }
    step(STEPS);
    ck_assert_uint_eq(held(r), 0);
    ck_assert_uint_eq(r->stats.launches, 2);
    leave();
    check_word();
}
END_TEST

START_TEST(a_region_of_one_call_stays_plain)
{
    run_times("r", 5, 1, 1);
    ck_assert_uint_eq(stats("r")->builds, 0);
    ck_assert_uint_eq(stats("r")->swallowed, 0);
    ck_assert_uint_eq(stats("r")->nodes, 0);
    check_word();
}
END_TEST

START_TEST(a_region_that_never_comes_back_costs_no_graph)
{
    run_steps("r", 1, STEPS);
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("r")->builds, 0);
    check_word();
}
END_TEST

START_TEST(changed_arguments_are_patched)
{
    unsigned i;

    for (i = 0; i < 9; ++i) {
        run_steps("r", i < 3 ? 1 : 10 * i, STEPS);
    }
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("r")->replayed_runs, 8);
    ck_assert_uint_eq(stats("r")->patched, 6 * STEPS);
    ck_assert(stats("r")->first_divergence.valid);
    ck_assert_uint_eq(stats("r")->first_divergence.run, 4);
    ck_assert_uint_eq(stats("r")->first_divergence.op_index, 0);
    ck_assert_str_eq(stats("r")->first_divergence.what, "argument");
    ck_assert_int_eq(stats("r")->first_divergence.arg, 1);
    check_word();
}
END_TEST

START_TEST(only_what_changed_is_patched_and_once)
{
    unsigned run, i;

    for (run = 0; run < 12; ++run) {
        enter("r");
        for (i = 0; i < STEPS; ++i) {
            step(i == run % STEPS && run > 4 ? 1000 + run : i);
        }
        leave();
    }
    /* One changes, and from the next run on one more goes back. */
    ck_assert_uint_eq(stats("r")->patched, 1 + 2 * 6);
    check_word();
}
END_TEST

/* ---- Mismatch ---- */

static CUfunction scale;

static void scale_word(void)
{
    uint32_t n = 1, factor = 3;

    if (scale == NULL) {
        scale = prg_kernel(&core, "k_scale");
    }
    PRG_CHECK(prg_launch(scale, core_stream, 1,
                         (void *[]){&word, &n, &factor}));
    model = model * 3 + 1;
}

/* Another kernel in the place of one of the steps. */
static void run_with_other(unsigned place)
{
    unsigned i;

    enter("r");
    for (i = 0; i < STEPS; ++i) {
        if (i == place) {
            scale_word();
        } else {
            step(1 + i);
        }
    }
    leave();
}

START_TEST(mismatch_issues_prefix_in_order_and_records_anew)
{
    unsigned place = (unsigned)_i;
    const cgs_divergence_t *divergence;

    run_times("r", 3, 1, STEPS);
    run_with_other(place);
    check_word();
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(reasons("r", "a call was not as recorded"), 1);
    divergence = &stats("r")->first_divergence;
    ck_assert(divergence->valid);
    ck_assert_uint_eq(divergence->run, 4);
    ck_assert_uint_eq(divergence->op_index, place);
    ck_assert_str_eq(divergence->kernel, "k_chain");
    ck_assert_str_eq(divergence->what, "kernel");
    ck_assert_str_eq(divergence->new_text, "k_scale");
    run_with_other(place);
    run_with_other(place);
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(stats("r")->swallowed, 4 * STEPS);
    check_word();
}
END_TEST

START_TEST(a_changed_prefix_is_issued_with_its_new_arguments)
{
    unsigned i;

    run_times("r", 3, 1, STEPS);
    enter("r");
    step(77);
    step(78);
    scale_word();
    leave();
    check_word();
    for (i = 0; i < 3; ++i) {
        enter("r");
        step(77);
        step(78 + i);
        scale_word();
        leave();
    }
    check_word();
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(stats("r")->replayed_runs, 5);
}
END_TEST

START_TEST(a_shorter_run_issues_what_it_held)
{
    run_times("r", 3, 1, STEPS);
    run_steps("r", 1, STEPS - 2);
    check_word();
    ck_assert_uint_eq(held(region("r")), 0);
    ck_assert_str_eq(stats("r")->first_divergence.what, "missing call");
    ck_assert_uint_eq(stats("r")->first_divergence.op_index, STEPS - 2);
    ck_assert_uint_eq(reasons("r", "it ended before the recording did"), 1);
    run_times("r", 3, 1, STEPS - 2);
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(stats("r")->swallowed, 2 * STEPS + 3 * (STEPS - 2));
    ck_assert_uint_eq(stats("r")->nodes, STEPS + STEPS - 2);
    check_word();
}
END_TEST

START_TEST(a_longer_run_is_recorded_further)
{
    run_times("r", 3, 1, STEPS);
    run_steps("r", 1, STEPS + 3);
    check_word();
    ck_assert_str_eq(stats("r")->first_divergence.what, "extra call");
    ck_assert_uint_eq(stats("r")->first_divergence.op_index, STEPS);
    run_times("r", 3, 1, STEPS + 3);
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_ge(stats("r")->swallowed, 3 * (STEPS + 3));
    check_word();
}
END_TEST

START_TEST(an_empty_run_changes_nothing)
{
    run_times("r", 3, 1, STEPS);
    enter("r");
    leave();
    run_times("r", 3, 1, STEPS);
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("r")->replayed_runs, 5);
    check_word();
}
END_TEST

START_TEST(another_context_is_another_call)
{
    CUdeviceptr set = core_alloc(64, 0);
    CUcontext   ctx, old;
    unsigned    run;

    for (run = 0; run < 5; ++run) {
        enter("r");
        if (run == 3) {
            PRG_CHECK(cuCtxCreate_v2(&ctx, 0, core.device));
        }
        PRG_CHECK(cuMemsetD32Async(set, 1, 4, NULL));
        PRG_CHECK(cuMemsetD32Async(set, 2, 4, NULL));
        leave();
        if (run == 3) {
            ck_assert_str_eq(stats("r")->first_divergence.what,
                             "stream or context");
            ck_assert_uint_eq(stats("r")->swallowed, 4);
            ck_assert_uint_eq(stats("r")->recordings, 2);
            PRG_CHECK(cuCtxSynchronize());
            PRG_CHECK(cuCtxPopCurrent_v2(&old));
        }
    }
    /* Back in the first one it is the first recording again. */
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(stats("r")->swallowed, 6);
    ck_assert_uint_eq(core_word(set), 2);
}
END_TEST

START_TEST(the_same_call_on_another_stream_is_another)
{
    CUstream second;
    unsigned run, i;

    PRG_CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    for (run = 0; run < 5; ++run) {
        enter("r");
        for (i = 0; i < STEPS; ++i) {
            if ((run == 3) && (i == STEPS - 1)) {
                PRG_CHECK(cuCtxSynchronize());
                PRG_CHECK(step_on(second, 1 + i));
                PRG_CHECK(cuCtxSynchronize());
                model = model * 1664525u + 1 + i;
            } else {
                step(1 + i);
            }
        }
        leave();
        check_word();
    }
    ck_assert_uint_eq(stats("r")->swallowed / STEPS, 2);

    /* With nothing else between. */
    run_times("other", 3, 1, STEPS);
    enter("other");
    for (i = 0; i < STEPS; ++i) {
        PRG_CHECK(step_on(second, 1 + i));
        model = model * 1664525u + 1 + i;
    }
    leave();
    ck_assert_str_eq(stats("other")->first_divergence.what,
                     "stream or context");
    ck_assert_uint_eq(stats("other")->first_divergence.op_index, 0);
}
END_TEST

START_TEST(a_context_made_current_outside_is_noticed)
{
    CUdeviceptr set = core_alloc(64, 0);
    CUcontext   ctx;
    unsigned    run;

    for (run = 0; run < 4; ++run) {
        if (run == 3) {
            PRG_CHECK(cuCtxCreate_v2(&ctx, 0, core.device));
        }
        enter("r");
        PRG_CHECK(cuMemsetD32Async(set, 1, 4, NULL));
        PRG_CHECK(cuMemsetD32Async(set, 2, 4, NULL));
        leave();
    }
    ck_assert_str_eq(stats("r")->first_divergence.what, "stream or context");
    ck_assert_uint_eq(stats("r")->replayed_runs, 2);
}
END_TEST

START_TEST(a_context_created_inside_is_noticed)
{
    CUdeviceptr         set = core_alloc(64, 0);
    const cgs_variant_t *first;
    CUcontext           ctx;

    enter("r");
    PRG_CHECK(cuMemsetD32Async(set, 1, 4, NULL));
    PRG_CHECK(cuMemsetD32Async(set, 2, 4, NULL));
    PRG_CHECK(cuCtxCreate_v2(&ctx, 0, core.device));
    PRG_CHECK(cuMemsetD32Async(set, 3, 4, NULL));
    PRG_CHECK(cuMemsetD32Async(set, 4, 4, NULL));
    leave();
    ck_assert_uint_eq(region("r")->recording.num_variants, 2);
    first = region("r")->recording.first->current;
    ck_assert_ptr_eq(cgs_variant_chunk(first)->ctx, core.context);
    ck_assert_ptr_eq(cgs_variant_chunk(first->next->current)->ctx, ctx);
}
END_TEST

START_TEST(a_context_that_changes_in_each_run_is_a_cut)
{
    CUdeviceptr set = core_alloc(64, 0);
    CUcontext   other;
    unsigned    run, i;

    PRG_CHECK(cuCtxCreate_v2(&other, 0, core.device));
    for (run = 0; run < 4; ++run) {
        enter("r");
        for (i = 0; i < 4; ++i) {
            PRG_CHECK(cuCtxSetCurrent(i < 2 ? core.context : other));
            PRG_CHECK(cuMemsetD32Async(set, i, 4, NULL));
        }
        leave();
        PRG_CHECK(cuCtxSetCurrent(core.context));
    }
    ck_assert_uint_eq(stats("r")->chunks, 2);
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("r")->launches, 6);
}
END_TEST

/* Its record is in a graph of another context. */
START_TEST(a_wait_in_another_context_is_a_cut)
{
    CUdeviceptr set = core_alloc(64, 0);
    CUcontext   other;
    CUevent     event;
    CUstream    stream;
    unsigned    run, i;

    PRG_CHECK(cuCtxCreate_v2(&other, 0, core.device));
    PRG_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuCtxSetCurrent(core.context));
    PRG_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (run = 0; run < 4; ++run) {
        enter("r");
        step(run);
        PRG_CHECK(cuMemsetD32Async(set, 10 * run, 4, core_stream));
        PRG_CHECK(cuEventRecord(event, core_stream));
        PRG_CHECK(cuCtxSetCurrent(other));
        PRG_CHECK(cuStreamWaitEvent(stream, event, 0));
        for (i = 1; i < 4; ++i) {
            PRG_CHECK(cuMemsetD32Async(set, 10 * run + i, 4, stream));
        }
        leave();
        PRG_CHECK(cuStreamSynchronize(stream));
        PRG_CHECK(cuCtxSetCurrent(core.context));
        ck_assert_uint_eq(core_word(set), 10 * run + 3);
    }
    ck_assert_uint_eq(stats("r")->barriers, 4);
    ck_assert_uint_eq(stats("r")->recordings, 1);
    check_word();
}
END_TEST

START_TEST(the_per_thread_default_stream_is_not_the_legacy_one)
{
    CUdeviceptr set = core_alloc(64, 0);
    unsigned    run;

    for (run = 0; run < 4; ++run) {
        enter("r");
        PRG_CHECK(cuMemsetD32Async(set, 1, 4, NULL));
        PRG_CHECK(run < 3 ? cuMemsetD32Async(set, 2, 4, NULL) :
                            cuMemsetD32Async_ptsz(set, 2, 4, NULL));
        leave();
    }
    ck_assert_uint_eq(stats("r")->replayed_runs, 2);
    ck_assert_uint_eq(core_word(set), 2);

    /* Nothing is held back there: its handle is another thread's stream too. */
    for (run = 0; run < 4; ++run) {
        enter("other");
        PRG_CHECK(cuMemsetD32Async_ptsz(set, 3, 4, NULL));
        PRG_CHECK(cuMemsetD32Async(set, 4, 4, CU_STREAM_PER_THREAD));
        leave();
    }
    ck_assert_uint_eq(stats("other")->swallowed, 0);
    ck_assert_uint_eq(core_word(set), 4);
}
END_TEST

/* Ways of changing the current context in the middle of a run. */
enum {
    BY_SET,
    BY_PUSH,
    BY_POP,
    NUM_WAYS
};

START_TEST(a_context_made_current_inside_is_noticed)
{
    CUdeviceptr set = core_alloc(64, 0);
    CUcontext   ctx, other;
    unsigned    run;

    PRG_CHECK(cuCtxCreate_v2(&other, 0, core.device));
    PRG_CHECK(cuCtxSetCurrent(core.context));
    for (run = 0; run < 4; ++run) {
        if (_i == BY_POP) {
            PRG_CHECK(cuCtxPushCurrent_v2(other));
        }
        enter("r");
        PRG_CHECK(cuMemsetD32Async(set, 1, 4, NULL));
        if (run == 3) {
            switch (_i) {
            case BY_SET: PRG_CHECK(cuCtxSetCurrent(other)); break;
            case BY_PUSH: PRG_CHECK(cuCtxPushCurrent_v2(other)); break;
            default: PRG_CHECK(cuCtxPopCurrent_v2(&ctx)); break;
            }
        }
        PRG_CHECK(cuMemsetD32Async(set, 2, 4, NULL));
        leave();
        PRG_CHECK(cuCtxSetCurrent(core.context));
    }
    ck_assert(stats("r")->first_divergence.valid);
    ck_assert_uint_eq(stats("r")->first_divergence.op_index, 1);
    ck_assert_str_eq(stats("r")->first_divergence.what, "stream or context");
    ck_assert_uint_eq(stats("r")->swallowed, 4);
    ck_assert_uint_eq(stats("r")->recordings, 2);
}
END_TEST

START_TEST(another_stream_is_of_the_same_graph)
{
    CUstream    other;
    CUdeviceptr second = core_alloc(4, 0);
    uint32_t    value  = 1;
    unsigned    run;

    PRG_CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    for (run = 0; run < 4; ++run) {
        enter("r");
        step(1);
        step(2);
        PRG_CHECK(prg_launch(chain, other, 1, (void *[]){&second, &value}));
        PRG_CHECK(prg_launch(chain, other, 1, (void *[]){&second, &value}));
        step(3);
        step(4);
        leave();
    }
    ck_assert_uint_eq(stats("r")->chunks, 1);
    ck_assert_uint_eq(stats("r")->launches, 3);
    ck_assert_uint_eq(stats("r")->recordings, 1);
    check_word();
}
END_TEST

static CUgraphNode first_node(const char *name)
{
    cgs_region_t *region = cgs_region_find(name);

    return cgs_variant_chunk(region->recording.first->current)->ops[0].node;
}

START_TEST(what_a_stream_says_of_its_work_is_said_to_the_nodes)
{
    CUstreamAttrValue      set;
    CUlaunchAttributeValue value;
    CUstream               urgent;
    unsigned               run;

    memset(&set, 0, sizeof(set));
    set.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    PRG_CHECK(cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING,
                                         -3));
    for (run = 0; run < 6; ++run) {
        if (run >= 3) { /* a new value once, then the same */
            PRG_CHECK(cuStreamSetAttribute(
                urgent, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &set));
        }
        enter("r");
        PRG_CHECK(step_on(urgent, 1));
        PRG_CHECK(step_on(urgent, 2));
        leave();
    }
    PRG_CHECK(cuStreamSynchronize(urgent));
    PRG_CHECK(cuGraphKernelNodeGetAttribute(
        first_node("r"), CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    ck_assert_int_eq(value.priority, -3);
    PRG_CHECK(cuGraphKernelNodeGetAttribute(
        first_node("r"), CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
    ck_assert_int_eq(value.memSyncDomain, CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(stats("r")->replayed_runs, 4);
}
END_TEST

START_TEST(windows_and_domain_maps_of_a_stream_are_those_of_the_nodes)
{
    static const struct {
        CUstreamAttrID id;
        size_t         size; /* without padding */
    } ids[] = {
        {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, 28},
        {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 2},
    };
    CUstreamAttrValue      set[2];
    CUlaunchAttributeValue value;
    unsigned               run, i;

    memset(set, 0, sizeof(set));
    set[0].accessPolicyWindow.base_ptr  = (void *)core_alloc(256, 0);
    set[0].accessPolicyWindow.num_bytes = 256;
    set[0].accessPolicyWindow.hitRatio  = 0.5f;
    set[0].accessPolicyWindow.hitProp   = CU_ACCESS_PROPERTY_PERSISTING;
    set[1].memSyncDomainMap.default_    = 1;
    set[1].memSyncDomainMap.remote      = 2;
    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuStreamSetAttribute(core_stream, ids[i].id, &set[i]));
    }
    for (run = 0; run < 3; ++run) {
        enter("r");
        step(1);
        step(2);
        leave();
    }
    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuGraphKernelNodeGetAttribute(first_node("r"), ids[i].id,
                                                &value));
        ck_assert_msg(memcmp(&value, &set[i], ids[i].size) == 0,
                      "attribute %d", (int)ids[i].id);
    }
    ck_assert_uint_eq(stats("r")->replayed_runs, 2);
}
END_TEST

START_TEST(a_call_that_failed_is_told_and_not_recorded)
{
    unsigned run;

    for (run = 0; run < 6; ++run) {
        enter("r");
        step(1);
        step(2);
        ck_assert_int_eq(cuLaunchKernel(chain, 0, 1, 1, 64, 1, 1, 0,
                                        core_stream,
                                        (void *[]){&word, &run}, NULL),
                         CUDA_ERROR_INVALID_VALUE);
        step(3);
        step(4);
        leave();
    }
    ck_assert_uint_eq(stats("r")->chunks, 2);
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("r")->swallowed, 5 * 4);
    check_word();
}
END_TEST

START_TEST(a_call_that_fails_once_does_not_end_the_recording)
{
    unsigned run;

    for (run = 0; run < 6; ++run) {
        enter("r");
        step(1);
        step(2);
        if (run == 3) {
            ck_assert_int_eq(cuLaunchKernel(chain, 1, 1, 1, 4096, 1, 1, 0,
                                            core_stream,
                                            (void *[]){&word, &run}, NULL),
                             CUDA_ERROR_INVALID_VALUE);
        }
        step(3);
        step(4);
        leave();
    }
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("r")->swallowed, 4 * 4);
    check_word();
}
END_TEST

/* ---- Barriers ---- */

START_TEST(a_barrier_that_was_recorded_costs_a_cut)
{
    unsigned run;

    for (run = 0; run < 5; ++run) {
        enter("r");
        step(1);
        step(2);
        check_word(); /* synchronises and copies */
        step(3);
        step(4);
        leave();
    }
    ck_assert_uint_eq(stats("r")->chunks, 2);
    ck_assert_uint_eq(stats("r")->launches, 8);
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("r")->replayed_runs, 4);
    ck_assert_uint_ge(stats("r")->barriers, 5);
    check_word();
}
END_TEST

START_TEST(a_barrier_that_was_not_recorded_sees_what_was_called_before_it)
{
    unsigned place;

    run_times("r", 2, 1, STEPS);
    for (place = 1; place < STEPS; ++place) {
        unsigned i;

        enter("r");
        for (i = 0; i < STEPS; ++i) {
            if (i == place) {
                check_word();
            }
            step(1 + i);
        }
        leave();
    }
    ck_assert_uint_ge(reasons("r", "a cut that was not recorded: "
                                   "cuCtxSynchronize"), 1);
    check_word();
}
END_TEST

START_TEST(a_cut_learned_in_a_replay_is_replayed)
{
    unsigned run;

    for (run = 0; run < 8; ++run) {
        enter("r");
        step(1);
        step(2);
        if (run > 2) {
            PRG_CHECK(cuStreamSynchronize(core_stream));
        }
        step(3);
        step(4);
        leave();
    }
    /* The one without the cut is kept. */
    ck_assert_uint_eq(stats("r")->chunks, 1 + 2);
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(stats("r")->replayed_runs, 2 + 4);
    check_word();
}
END_TEST

static uint32_t seen_by_other;

static void look_at_word(void)
{
    seen_by_other = core_word(word);
}

START_TEST(another_threads_barrier_flushes_and_the_run_goes_on)
{
    unsigned run;

    for (run = 0; run < 5; ++run) {
        enter("r");
        step(1);
        step(2);
        if (run == 3) {
            in_another_thread(look_at_word);
            ck_assert_uint_eq(seen_by_other, model);
            ck_assert_uint_eq(held(region("r")), 0);
        }
        step(3);
        step(4);
        leave();
    }
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("r")->swallowed, 3 * 4);
    ck_assert_uint_eq(reasons("r", "another thread's call came in between"),
                      1);
    check_word();
}
END_TEST

static CUstream other_stream;

static void launch_on_other_stream(void)
{
    uint32_t value = 1;

    PRG_CHECK(prg_launch(prg_kernel(&core, "k_global"), other_stream, 1,
                         (void *[]){&value}));
}

START_TEST(another_threads_work_flushes_where_streams_meet)
{
    CUstream streams[4];
    bool     meets[4] = {false, true, true, true};
    int      i;

    PRG_CHECK(cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
    streams[1] = core_stream;
    streams[2] = NULL;
    streams[3] = CU_STREAM_LEGACY;
    run_times("r", 3, 1, STEPS);
    for (i = 0; i < 4; ++i) {
        enter("r");
        step(1);
        step(2);
        other_stream = streams[i];
        ck_assert_uint_eq(held(region("r")), 2);
        in_another_thread(launch_on_other_stream);
        ck_assert_msg((held(region("r")) == 0) == meets[i], "stream %d", i);
        step(3);
        step(4);
        step(5);
        leave();
    }
    check_word();
}
END_TEST

START_TEST(work_on_the_legacy_stream_meets_that_on_any_other)
{
    static CUstream const names[] = {NULL, CU_STREAM_LEGACY};
    unsigned              run;

    PRG_CHECK(cuStreamCreate(&other_stream, CU_STREAM_DEFAULT));
    for (run = 0; run < 6; ++run) {
        enter("r");
        PRG_CHECK(step_on(names[run % 2], 1));
        PRG_CHECK(step_on(names[run / 2 % 2], 2));
        if (run == 4) {
            in_another_thread(launch_on_other_stream);
            ck_assert_uint_eq(held(region("r")), 0);
        }
        PRG_CHECK(step_on(names[run % 2], 3));
        leave();
    }
    /* Whichever of its names it is called by. */
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("r")->chunks, 1);
    ck_assert_uint_eq(stats("r")->swallowed, 4 * 3);
}
END_TEST

/* Run a function in a thread that has no context, or another one. */
static void *bare_thread_body(void *with_context)
{
    CUcontext ctx;

    if (with_context != NULL) {
        PRG_CHECK(cuCtxCreate_v2(&ctx, 0, core.device));
    }
    cuCtxSynchronize();
    return NULL;
}

START_TEST(a_flush_is_made_in_the_context_of_the_run)
{
    pthread_t thread;
    unsigned  run;

    run_times("r", 3, 1, STEPS);
    for (run = 0; run < 2; ++run) {
        enter("r");
        step(1);
        step(2);
        ck_assert_int_eq(pthread_create(&thread, NULL, bare_thread_body,
                                        run == 0 ? NULL : &run), 0);
        pthread_join(thread, NULL);
        ck_assert_uint_eq(held(region("r")), 0);
        step(3);
        step(4);
        step(5);
        leave();
        check_word();
    }
    ck_assert_uint_eq(stats("r")->recordings, 1);
}
END_TEST

static void host_function(void *arg)
{
    (void)arg;
}

static void stream_callback(CUstream stream, CUresult status, void *arg)
{
    (void)stream;
    (void)status;
    (void)arg;
}

/* Driver functions by number, for the two tests below. */
typedef struct {
    CUdeviceptr device;
    void        *pinned;
    char        pageable[64];
    CUstream    stream;
    CUevent     event;
    CUgraph     graph;
    CUgraphExec exec;
} things_t;

static void new_things(things_t *t)
{
    memset(t, 0, sizeof(*t));
    t->device = core_alloc(64, 0);
    PRG_CHECK(cuMemHostAlloc(&t->pinned, 64, 0));
    PRG_CHECK(cuStreamCreate(&t->stream, CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuEventCreate(&t->event, CU_EVENT_DEFAULT));
    PRG_CHECK(cuEventRecord(t->event, t->stream));
    PRG_CHECK(cuGraphCreate(&t->graph, 0));
    PRG_CHECK(cuGraphInstantiateWithFlags(&t->exec, t->graph, 0));
}

/* The function of a number, false past the last. */
static bool call_barrier(unsigned number, things_t *t)
{
    CUDA_MEMCPY2D flat = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = t->device,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = t->device + 32,
        .WidthInBytes = 8, .Height = 1,
    };
    float time;

    switch (number) {
    case 0: cuStreamSynchronize(core_stream); return true;
    case 1: cuStreamQuery(core_stream); return true;
    case 2: cuCtxSynchronize(); return true;
    case 3: cuEventRecord(t->event, core_stream); return true;
    case 4: cuEventDestroy_v2(t->event); return true;
    case 5: cuMemHostUnregister(t->pageable); return true;
    case 6: cuEventElapsedTime(&time, t->event, t->event); return true;
    case 7: cuStreamWaitEvent(core_stream, t->event, 0); return true;
    case 8: cuLaunchHostFunc(core_stream, host_function, NULL); return true;
    case 9: cuStreamAddCallback(core_stream, stream_callback, NULL, 0);
        return true;
    case 10: cuGraphLaunch(t->exec, core_stream); return true;
    case 11: cuMemcpyDtoH_v2(t->pageable, t->device, 8); return true;
    case 12: cuMemcpyHtoD_v2(t->device, t->pageable, 8); return true;
    case 13: cuMemcpyDtoD_v2(t->device, t->device + 32, 8); return true;
    case 14: cuMemcpy(t->device, t->device + 32, 8); return true;
    case 15: cuMemsetD8_v2(t->device, 1, 8); return true;
    case 16: cuMemsetD32_v2(t->device, 1, 8); return true;
    case 17: cuMemFree_v2(t->device); return true;
    case 18: cuMemFreeAsync(t->device, core_stream); return true;
    case 19: cuMemFreeHost(t->pinned); return true;
    case 20: cuStreamDestroy_v2(t->stream); return true;
    case 21: cuEventDestroy_v2(t->event); return true;
    case 22: cuGraphExecDestroy(t->exec); return true;
    case 23: cuMemcpyHtoDAsync_v2(t->device, t->pageable, 8, core_stream);
        return true;
    case 24: cuMemcpyDtoHAsync_v2(t->pageable, t->device, 8, core_stream);
        return true;
    case 25: cuMemcpyDtoDAsync_v2(t->device, t->device + 32, 0, core_stream);
        return true;
    case 26: cuMemsetD8Async(t->device, 0, 0, core_stream); return true;
    case 27: cuMemsetD8Async_ptsz(t->device, 0, 8, NULL); return true;
    case 28: cuMemsetD8Async(t->device, 0, 8, CU_STREAM_PER_THREAD);
        return true;
    case 29: cuLaunchKernelEx(NULL, chain, NULL, NULL); return true;
    case 30: cuMemcpy2DAsync_v2(NULL, core_stream); return true;
    case 31: cuMemcpy3DAsync_v2(NULL, core_stream); return true;
    case 32: cuStreamBeginCapture_v2(t->stream,
                                     CU_STREAM_CAPTURE_MODE_RELAXED);
        return true;
    case 33: cuStreamSynchronize_ptsz(core_stream); return true;
    case 34: cuMemcpyDtoH_v2_ptds(t->pageable, t->device, 8); return true;
    case 35: cuMemcpy2D_v2(&flat); return true;
    case 36: cuMemcpyPeerAsync(t->device, core.context, t->device + 32,
                               core.context, 8, core_stream);
        return true;
    case 37: cuStreamWriteValue32_v2(core_stream, t->device, 1, 0);
        return true;
    case 38: cuEventElapsedTime_v2(&time, t->event, t->event); return true;
    case 39: cuMemPrefetchAsync_v2(t->device, 8,
                                   (CUmemLocation){.type = 0}, 0,
                                   core_stream);
        return true;
    case 40: cuMemUnmap(t->device, 64); return true;
    default: return false;
    }
}

START_TEST(what_looks_elsewhere_issues_nothing)
{
    things_t things;

    run_times("r", 2, 1, STEPS);
    new_things(&things);
    enter("r");
    step(1);
    step(2);
    cuEventQuery(things.event);
    cuEventSynchronize(things.event);
    cuStreamQuery(things.stream);
    cuStreamSynchronize(things.stream);
    ck_assert_uint_eq(held(region("r")), 2);
    step(3);
    step(4);
    step(5);
    leave();
    ck_assert_uint_eq(stats("r")->replayed_runs, 2);
    check_word();
}
END_TEST

START_TEST(what_looks_at_work_or_puts_other_work_there_is_a_barrier)
{
    things_t things;
    bool     more = true;
    unsigned i;

    run_times("r", 2, 1, STEPS);
    for (i = 0; more; ++i) {
        CUgraph captured;

        new_things(&things);
        cgs_region_recapture(region("r"));
        run_times("r", 2, 1, STEPS);
        enter("r");
        step(1);
        step(2);
        ck_assert_uint_eq(held(region("r")), 2);
        more = call_barrier(i, &things);
        ck_assert_msg((held(region("r")) == 0) == more, "number %u", i);
        cuStreamEndCapture(things.stream, &captured);
        step(3);
        step(4);
        step(5);
        leave();
        check_word();
    }
    ck_assert_uint_ge(i, 30);
}
END_TEST

START_TEST(questions_and_allocations_are_no_barriers)
{
    things_t               t;
    CUstreamCaptureStatus  capture;
    CUdeviceptr            address;
    CUcontext              ctx;
    CUdevice               device;
    CUevent                event;
    CUmodule               module;
    CUfunction             f;
    const char             *name;
    size_t                 bytes, total;
    void                   *host;
    int                    value;

    new_things(&t);
    run_times("r", 2, 1, STEPS);
    enter("r");
    step(1);
    step(2);
    PRG_CHECK(cuCtxGetCurrent(&ctx));
    PRG_CHECK(cuCtxSetCurrent(ctx));
    PRG_CHECK(cuCtxPushCurrent_v2(ctx));
    PRG_CHECK(cuCtxPopCurrent_v2(&ctx));
    PRG_CHECK(cuCtxGetDevice(&device));
    PRG_CHECK(cuDeviceGetAttribute(&value, 1, device));
    PRG_CHECK(cuGetErrorName(CUDA_SUCCESS, &name));
    PRG_CHECK(cuFuncGetAttribute(&value, 0, chain));
    PRG_CHECK(cuModuleGetFunction(&f, core.module, "k_fill"));
    PRG_CHECK(cuModuleLoadData(&module, empty_module));
    PRG_CHECK(cuMemAlloc_v2(&address, 64));
    PRG_CHECK(cuMemHostAlloc(&host, 64, 0));
    PRG_CHECK(cuMemGetInfo_v2(&bytes, &total));
    PRG_CHECK(cuPointerGetAttribute(&value,
                                    CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    t.device));
    PRG_CHECK(cuStreamIsCapturing(core_stream, &capture));
    PRG_CHECK(cuEventCreate(&event, 0));
    ck_assert_uint_eq(held(region("r")), 2);
    step(3);
    step(4);
    step(5);
    leave();
    ck_assert_uint_eq(stats("r")->replayed_runs, 2);
    check_word();
}
END_TEST

static void wait_for_stream(void)
{
    PRG_CHECK(cuStreamSynchronize(core_stream));
}

START_TEST(a_thread_that_waits_for_the_stream_waits_for_what_is_held)
{
    run_times("r", 3, 1, STEPS);
    enter("r");
    step(1);
    step(2);
    ck_assert_uint_eq(held(region("r")), 2);
    in_another_thread(wait_for_stream);
    ck_assert_uint_eq(held(region("r")), 0);
    step(3);
    step(4);
    step(5);
    leave();
    check_word();
}
END_TEST

static CUevent inner_event;

static void wait_for_event(void)
{
    PRG_CHECK(cuEventSynchronize(inner_event));
}

START_TEST(a_thread_that_waits_for_an_event_waits_for_what_is_held)
{
    unsigned run;

    PRG_CHECK(cuEventCreate(&inner_event, CU_EVENT_DEFAULT));
    for (run = 0; run < 5; ++run) {
        enter("r");
        step(1);
        PRG_CHECK(cuEventRecord(inner_event, core_stream));
        step(2);
        if (run == 3) {
            ck_assert_uint_gt(held(region("r")), 0);
            in_another_thread(wait_for_event);
            ck_assert_uint_eq(held(region("r")), 0);
        }
        step(3);
        leave();
    }
    ck_assert_uint_eq(stats("r")->recordings, 1);
    check_word();
}
END_TEST

START_TEST(work_is_not_held_back_for_long_if_no_call_follows)
{
    unsigned waits = 0;

    run_times("short", 3, 1, STEPS);
    enter("short");
    step(1);
    step(2);
    while ((held(region("short")) > 0) && (waits++ < 3000)) {
        usleep(1000);
    }
    ck_assert_uint_eq(held(region("short")), 0);
    step(3);
    step(4);
    step(5);
    leave();
    check_word();
    ck_assert_uint_eq(stats("short")->recordings, 1);
}
END_TEST

/* The first call of each chunk wakes who will issue it. */
START_TEST(a_single_call_is_not_held_back_for_long)
{
    unsigned waits = 0;
    unsigned run, i;

    for (run = 0; run < 10; ++run) {
        enter("short");
        for (i = 0; i < 2 * STEPS; ++i) {
            if (i == STEPS) {
                PRG_CHECK(cuStreamSynchronize(core_stream));
                usleep(run < 9 ? 0 : 100000);
            }
            step(1 + i);
            while ((run == 9) && (i == STEPS) && (held(region("short")) > 0) &&
                   (waits++ < 2000)) {
                usleep(1000);
            }
            ck_assert((run < 9) || (i != STEPS) ||
                      (held(region("short")) == 0));
        }
        leave();
        check_word();
    }
    ck_assert_uint_gt(waits, 0);
}
END_TEST

static void step_in_other_region(void)
{
    enter("other");
    step(50);
    leave();
}

START_TEST(work_in_another_threads_region_comes_after_earlier_calls)
{
    unsigned run, i;

    run_times("r", 2, 1, STEPS);
    for (run = 0; run < 4; ++run) {
        enter("r");
        for (i = 0; i < STEPS; ++i) {
            if (i == 1 + run) {
                in_another_thread(step_in_other_region);
                ck_assert_uint_eq(held(region("r")), 0);
            }
            step(1 + i);
        }
        leave();
        check_word();
    }
    ck_assert_uint_eq(stats("r")->recordings, 1);
    ck_assert_uint_eq(stats("other")->runs, 4);
}
END_TEST

/* ---- Driver functions that are not as they should be ---- */

/* For the driver, which reads its environment at its first call. */
static void open_failing(const char *what)
{
    setenv("SIM_FAIL", what, 1);
    region_open();
}

START_TEST(a_region_that_cannot_be_built_stays_plain)
{
    static const char *const functions[] = {
        "cuGraphCreate:1+", "cuGraphAddNode:1+",
        "cuGraphInstantiateWithFlags:1+",
        "cuThreadExchangeStreamCaptureMode:1+",
    };

    open_failing(functions[_i]);
    run_times("r", 20, 1, STEPS);
    ck_assert_uint_eq(stats("r")->swallowed, 0);
    ck_assert_uint_eq(stats("r")->builds, 0);
    ck_assert_uint_eq(stats("r")->nodes, 0);
    ck_assert_uint_eq(stats("r")->fallbacks.num, 1);
    /* It is tried again, but not for ever. */
    ck_assert_uint_eq(stats("r")->fallbacks.entry[0].count, 3);
    ck_assert_ptr_nonnull(strstr(stats("r")->fallbacks.entry[0].reason,
                                 ": CUDA_ERROR_"));
    check_word();
}
END_TEST

START_TEST(a_build_that_fails_once_is_tried_again)
{
    static const char *const functions[] = {
        "cuGraphCreate:1", "cuGraphAddNode:3", "cuGraphInstantiateWithFlags:1",
        "cuGraphUpload:1",
    };

    open_failing(functions[_i]);
    run_times("r", 6, 1, STEPS);
    ck_assert_uint_eq(stats("r")->fallbacks.num, 1);
    ck_assert_uint_eq(stats("r")->fallbacks.entry[0].count, 1);
    ck_assert_uint_ge(stats("r")->swallowed, 3 * STEPS);
    check_word();
}
END_TEST

/* In the middle of a graph, past the runs whose calls are timed, there is a
 * short way for launches that are as before: not for those without arguments. */
static void check_refused(const char *name, void **params)
{
    CUresult plain = prg_launch(chain, core_stream, 1, params);
    unsigned i;

    ck_assert_int_ne(plain, CUDA_SUCCESS);
    run_times(name, 20, 1, STEPS);
    enter(name);
    step(1);
    step(2);
    ck_assert_uint_eq(held(region(name)), 2);
    ck_assert_int_eq(prg_launch(chain, core_stream, 1, params), plain);
    for (i = 3; i <= STEPS; ++i) {
        step(i);
    }
    leave();
    check_word();
}

START_TEST(a_launch_without_arguments_is_refused_as_ever)
{
    check_refused("r", NULL);
    check_refused("other", (void *[]){&word, NULL});
}
END_TEST

/* The timer's thread has no context of its own. */
START_TEST(what_is_held_is_issued_where_no_context_can_be_pushed)
{
    unsigned waits = 0;

    open_failing("cuCtxPushCurrent:1+");
    run_times("short", 3, 1, STEPS);
    enter("short");
    step(1);
    step(2);
    while ((held(region("short")) > 0) && (waits++ < 3000)) {
        usleep(1000);
    }
    ck_assert_uint_eq(held(region("short")), 0);
    step(3);
    leave();
    check_word();
}
END_TEST

START_TEST(a_launch_that_fails_is_made_eagerly)
{
    open_failing("cuGraphLaunch:2");
    run_times("r", 6, 1, STEPS);
    ck_assert_uint_eq(reasons("r", "cuGraphLaunch: "), 1);
    ck_assert_uint_eq(stats("r")->swallowed, 4 * STEPS);
    check_word();
}
END_TEST

START_TEST(launches_that_always_fail_are_given_up)
{
    open_failing("cuGraphLaunch:1+");
    run_times("r", 20, 1, STEPS);
    ck_assert_uint_eq(reasons("r", "cuGraphLaunch: "), 3);
    ck_assert_uint_eq(stats("r")->swallowed, 0);
    check_word();
}
END_TEST

START_TEST(a_patch_that_fails_loses_no_argument)
{
    char     what[64];
    unsigned i;

    snprintf(what, sizeof(what), "cuGraphExecNodeSetParams:%d", _i);
    open_failing(what);
    for (i = 0; i < 12; ++i) {
        run_steps("r", 10 * i, STEPS);
        check_word();
    }
    ck_assert_uint_eq(reasons("r", "cuGraphExecNodeSetParams: "), 1);
    ck_assert_uint_eq(stats("r")->recordings, 1);
}
END_TEST

START_TEST(an_error_of_a_held_back_call_is_told_at_the_next)
{
    CUresult result;
    char     what[64];

    /* The first, second or third that is issued, after the recording. */
    snprintf(what, sizeof(what), "cuLaunchKernel:%d:719", STEPS + _i);
    open_failing(what);
    run_times("r", 2, 1, STEPS);
    enter("r");
    PRG_CHECK(step_on(core_stream, 1));
    PRG_CHECK(step_on(core_stream, 2));
    PRG_CHECK(step_on(core_stream, 3));
    /* Not as recorded: what is held back is issued, and one call fails. */
    result = cuLaunchKernel(prg_kernel(&core, "k_nothing"), 1, 1, 1, 1, 1, 1,
                            0, core_stream, NULL, NULL);
    ck_assert_int_eq(result, 719);
    ck_assert_int_eq(step_on(core_stream, 4), CUDA_SUCCESS);
    leave();
}
END_TEST

START_TEST(the_error_of_a_swallowed_call_is_told_once)
{
    CUresult results[4];
    unsigned i;

    /* Recording takes four; the launch of the first segment fails, then the
     * first of its calls. */
    setenv("SIM_FAIL", "cuGraphLaunch:1,cuLaunchKernel:5:719", 1);
    region_open();
    for (i = 0; i < 2; ++i) {
        enter("r");
        results[0] = step_on(core_stream, 1);
        results[1] = step_on(core_stream, 2);
        PRG_CHECK(cuStreamSynchronize(core_stream));
        results[2] = step_on(core_stream, 3);
        results[3] = step_on(core_stream, 4);
        leave();
    }
    /* The first call had been answered already. */
    ck_assert_int_eq(results[0], CUDA_SUCCESS);
    ck_assert_int_eq(results[1], 719);
    ck_assert_int_eq(results[2], CUDA_SUCCESS);
    ck_assert_int_eq(results[3], CUDA_SUCCESS);
}
END_TEST

/* Driver functions that the library calls, with something done before. */
static struct {
    void     *create, *destroy, *instantiate, *launch;
    unsigned created, destroyed, called_back;
    CUcontext built_in;
} hooked;

static CUresult count_create(CUgraph *graph, unsigned flags)
{
    CUresult result;

    result = ((__typeof__(&cuGraphCreate))hooked.create)(graph, flags);
    hooked.created += result == CUDA_SUCCESS;
    PRG_CHECK(cuCtxGetCurrent(&hooked.built_in));
    return result;
}

static CUresult count_destroy(CUgraph graph)
{
    ++hooked.destroyed;
    return ((__typeof__(&cuGraphDestroy))hooked.destroy)(graph);
}

/* As a tool may that hears of each call. */
static void call_back(void)
{
    static CUdeviceptr address;

    if (address == 0) {
        PRG_CHECK(cuMemAlloc_v2(&address, 64));
    }
    PRG_CHECK(cuMemsetD8Async(address, 1, 64, core_stream));
    PRG_CHECK(cuStreamSynchronize(core_stream));
    PRG_CHECK(cuCtxSynchronize());
    ++hooked.called_back;
}

static CUresult call_back_and_instantiate(CUgraphExec *exec, CUgraph graph,
                                          unsigned long long flags)
{
    call_back();
    return ((__typeof__(&cuGraphInstantiateWithFlags))hooked.instantiate)(
        exec, graph, flags);
}

static CUresult call_back_and_launch(CUgraphExec exec, CUstream stream)
{
    call_back();
    return ((__typeof__(&cuGraphLaunch))hooked.launch)(exec, stream);
}

static void hook(void)
{
    cuGraphCreate(NULL, 0); /* the table is filled now */
    hooked.create      = cgs_real[CGS_INDEX_cuGraphCreate];
    hooked.destroy     = cgs_real[CGS_INDEX_cuGraphDestroy];
    hooked.instantiate = cgs_real[CGS_INDEX_cuGraphInstantiateWithFlags];
    hooked.launch      = cgs_real[CGS_INDEX_cuGraphLaunch];
    cgs_real[CGS_INDEX_cuGraphCreate]  = (void *)count_create;
    cgs_real[CGS_INDEX_cuGraphDestroy] = (void *)count_destroy;
}

START_TEST(what_was_built_of_a_graph_that_failed_is_destroyed)
{
    static const char *const functions[] = {
        "cuGraphAddNode:3", "cuGraphInstantiateWithFlags:1", "cuGraphUpload:1",
        "cuGraphLaunch:2", "cuGraphExecNodeSetParams:2",
    };
    unsigned i;

    open_failing(functions[_i]);
    hook();
    for (i = 0; i < 6; ++i) {
        run_steps("r", 10 * i, STEPS);
    }
    cgs_region_destroy(region("r"), "a test");
    ck_assert_uint_ge(hooked.created, 2);
    ck_assert_uint_eq(hooked.created, hooked.destroyed);
    check_word();
}
END_TEST

START_TEST(a_tool_that_calls_the_driver_within_our_calls_is_let_through)
{
    hook();
    cgs_real[CGS_INDEX_cuGraphInstantiateWithFlags] =
        (void *)call_back_and_instantiate;
    cgs_real[CGS_INDEX_cuGraphLaunch] = (void *)call_back_and_launch;
    run_times("r", 4, 1, STEPS);
    ck_assert_uint_eq(stats("r")->builds, 1);
    ck_assert_uint_eq(stats("r")->replayed_runs, 3);
    ck_assert_uint_eq(stats("r")->calls, 4 * STEPS);
    ck_assert_uint_eq(hooked.called_back, 1 + 3);
    check_word();
}
END_TEST

START_TEST(building_leaves_context_and_capture_mode_as_they_were)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    CUcontext           ctx;

    hook();
    PRG_CHECK(cuThreadExchangeStreamCaptureMode(&mode));
    run_steps("r", 1, STEPS);
    PRG_CHECK(cuCtxSetCurrent(NULL));
    enter("r");
    ck_assert_uint_eq(hooked.created, 1);
    ck_assert_ptr_eq(hooked.built_in, core.context);
    PRG_CHECK(cuCtxGetCurrent(&ctx));
    ck_assert_ptr_null(ctx);
    PRG_CHECK(cuThreadExchangeStreamCaptureMode(&mode));
    ck_assert_int_eq(mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    leave();
}
END_TEST

/* ---- Children ---- */

/* In the child: our locks may be held by a thread that it does not have. */
static void child(void)
{
    CUmodule module = NULL;

    alarm(3);
    ck_assert(cgs_life_is_child());
    step_on(core_stream, 9);
    cuStreamSynchronize(core_stream);
    cuMemsetD8Async(word, 1, 4, core_stream);
    cuMemFree_v2(word);
    cuModuleUnload(module);
    cuFuncSetAttribute(chain, 8, 0);
    cuKernelSetAttribute(8, 0, (CUkernel)chain, 0);
    enter("r");
    enter("other");
    leave();
    leave();
    leave();
    cgs_ranges_sink.start(NULL, "other", 5);
    cgs_ranges_sink.end(5);
    _exit(held(cgs_region_find("r")) == 2 ? 0 : 1);
}

START_TEST(a_child_touches_nothing_of_its_parent)
{
    cgs_region_t *r;
    int          status = -1;
    pid_t        pid;

    run_times("r", 3, 1, STEPS);
    r = region("r");
    enter("r");
    step(1);
    step(2);
    cgs_lock(&r->lock);
    pid = fork();
    if (pid == 0) {
        child();
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    cgs_unlock(&r->lock);
    step(3);
    step(4);
    step(5);
    leave();
    ck_assert_uint_eq(stats("r")->replayed_runs, 3);
    check_word();
}
END_TEST

/* ---- Recapture, destroy ---- */

START_TEST(recapture_records_the_next_run)
{
    run_times("r", 4, 1, STEPS);
    cgs_region_recapture(region("r"));
    run_times("r", 4, 1, STEPS);
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(stats("r")->replayed_runs, 3 + 3);
    ck_assert_uint_eq(stats("r")->builds, 2);
    check_word();
}
END_TEST

START_TEST(recapture_inside_a_run_lets_it_end)
{
    run_times("r", 4, 1, STEPS);
    enter("r");
    step(1);
    step(2);
    cgs_region_recapture(region("r"));
    step(3);
    step(4);
    step(5);
    leave();
    ck_assert_uint_eq(stats("r")->replayed_runs, 4);
    run_times("r", 3, 1, STEPS);
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(stats("r")->replayed_runs, 6);
    check_word();
}
END_TEST

START_TEST(destroy_frees_all_and_the_next_run_is_recorded)
{
    run_times("r", 4, 1, STEPS);
    cgs_region_destroy(region("r"), "a test");
    ck_assert(stats("r")->destroyed);
    ck_assert_uint_eq(stats("r")->chunks, 0);
    ck_assert_uint_eq(stats("r")->nodes, 0);
    ck_assert_uint_eq(stats("r")->host_bytes, 0);
    run_times("r", 4, 1, STEPS);
    ck_assert(!stats("r")->destroyed);
    ck_assert_uint_eq(stats("r")->recordings, 2);
    ck_assert_uint_eq(stats("r")->replayed_runs, 6);
    check_word();
}
END_TEST

static void destroy_r(void)
{
    cgs_region_destroy(cgs_region_find("r"), "a test");
}

static void destroy_all(void)
{
    cgs_region_destroy_all("a test");
}

static void other_destroys_r(void)
{
    in_another_thread(destroy_r);
}

static void other_destroys_all(void)
{
    in_another_thread(destroy_all);
}

START_TEST(destroy_inside_a_run_issues_what_is_held)
{
    static void (*const ways[])(void) = {
        destroy_r, destroy_all, other_destroys_r, other_destroys_all
    };
    unsigned place;

    for (place = 0; place <= STEPS; ++place) {
        unsigned i;

        run_times("r", 2, 1, STEPS);
        enter("r");
        for (i = 0; i < STEPS; ++i) {
            if (i == place) {
                ways[_i]();
                ck_assert_uint_eq(held(region("r")), 0);
            }
            step(1 + i);
        }
        if (i == place) {
            ways[_i]();
        }
        leave();
        check_word();
    }
    run_times("r", 2, 1, STEPS);
    ck_assert_uint_eq(stats("r")->nodes, STEPS);
    ck_assert_uint_ge(stats("r")->replayed_runs, STEPS);
    ck_assert_uint_eq(reasons("r", "a test"), STEPS + 1);
    check_word();
}
END_TEST

START_TEST(destroy_while_recording_keeps_no_half)
{
    unsigned i;

    enter("r");
    for (i = 0; i < STEPS; ++i) {
        if (i == 2) {
            destroy_r();
        }
        step(1 + i);
    }
    leave();
    ck_assert_uint_eq(stats("r")->chunks, 0);
    run_times("r", 3, 1, STEPS);
    ck_assert_uint_eq(stats("r")->nodes, STEPS);
    ck_assert_uint_eq(stats("r")->replayed_runs, 2);
    check_word();
}
END_TEST

START_TEST(destroy_all_is_for_all_regions)
{
    run_times("r", 2, 1, STEPS);
    run_times("other", 2, 1, STEPS);
    cgs_region_destroy_all("a test");
    ck_assert(stats("r")->destroyed && stats("other")->destroyed);
    ck_assert_uint_eq(stats("r")->chunks + stats("other")->chunks, 0);
    check_word();
}
END_TEST

static void unload_module(void)
{
    CUmodule module;

    PRG_CHECK(cuModuleLoadData(&module, empty_module));
    ck_assert(!stats("r")->destroyed);
    PRG_CHECK(cuModuleUnload(module));
}

static void unload_library(void)
{
    CUlibrary library;

    PRG_CHECK(cuLibraryLoadData(&library, empty_module, NULL, NULL, 0, NULL,
                                NULL, 0));
    ck_assert(!stats("r")->destroyed);
    PRG_CHECK(cuLibraryUnload(library));
}

static void destroy_context(void)
{
    CUcontext ctx;

    PRG_CHECK(cuCtxCreate_v2(&ctx, 0, core.device));
    ck_assert(!stats("r")->destroyed);
    PRG_CHECK(cuCtxDestroy_v2(ctx));
    PRG_CHECK(cuCtxSetCurrent(core.context));
}

static void release_primary(void)
{
    CUcontext ctx;

    PRG_CHECK(cuDevicePrimaryCtxRetain(&ctx, core.device));
    ck_assert(!stats("r")->destroyed);
    PRG_CHECK(cuDevicePrimaryCtxRelease_v2(core.device));
}

static void set_limit(void)
{
    cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048);
}

static void set_cache_config(void)
{
    cuFuncSetCacheConfig(chain, CU_FUNC_CACHE_PREFER_L1);
}

START_TEST(what_a_graph_holds_ends_with_all_graphs)
{
    static void (*const ways[])(void) = {
        unload_module, unload_library, destroy_context, release_primary,
        set_limit, set_cache_config
    };

    run_times("r", 2, 1, STEPS);
    ways[_i]();
    ck_assert(stats("r")->destroyed);
    run_times("r", 2, 1, STEPS);
    ck_assert_uint_eq(stats("r")->recordings, 2);
    check_word();
}
END_TEST

START_TEST(all_that_a_reset_of_the_context_ends_is_forgotten)
{
    run_times("r", 2, 1, STEPS);
    PRG_CHECK(cuDevicePrimaryCtxReset_v2(core.device));
    ck_assert(stats("r")->destroyed);
    region_open();
    run_times("r", 3, 1, STEPS);
    ck_assert_uint_eq(stats("r")->recordings, 2);
    check_word();
}
END_TEST

START_TEST(a_new_attribute_of_a_kernel_in_use_ends_all_graphs)
{
    const CUfunction_attribute shared =
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CUfunction unused = prg_kernel(&core, "k_turn");

    PRG_CHECK(cuFuncSetAttribute(chain, shared, 50000));
    run_times("r", 2, 1, STEPS);
    PRG_CHECK(cuFuncSetAttribute(chain, shared, 50000));
    PRG_CHECK(cuFuncSetAttribute(unused, shared, 60000));
    ck_assert(!stats("r")->destroyed);
    ck_assert_int_ne(cuFuncSetAttribute(chain, shared, 1 << 30),
                     CUDA_SUCCESS);
    run_times("r", 2, 1, STEPS);
    PRG_CHECK(cuFuncSetAttribute(chain, shared, 60000));
    ck_assert(stats("r")->destroyed);
    run_times("r", 2, 1, STEPS);
    ck_assert_uint_ge(stats("r")->recordings, 2);
    check_word();
}
END_TEST

/* ---- Rules ---- */

START_TEST(runs_of_the_warm_up_are_plain)
{
    run_times("warm", 3, 1, STEPS);
    ck_assert_uint_eq(stats("warm")->plain_runs, 3);
    ck_assert_uint_eq(stats("warm")->recordings, 0);
    ck_assert_uint_eq(stats("warm")->host_bytes, 0);
    run_times("warm", 3, 1, STEPS);
    ck_assert_uint_eq(stats("warm")->plain_runs, 3);
    ck_assert_uint_eq(stats("warm")->recordings, 1);
    ck_assert_uint_eq(stats("warm")->replayed_runs, 2);
    check_word();
}
END_TEST

START_TEST(on_change_recapture_records_anew)
{
    run_times("recapture", 3, 1, STEPS);
    run_times("recapture", 3, 50, STEPS);
    ck_assert_uint_eq(stats("recapture")->patched, 0);
    ck_assert_uint_eq(stats("recapture")->recordings, 2);
    ck_assert_uint_eq(stats("recapture")->replayed_runs, 4);
    check_word();
}
END_TEST

START_TEST(on_change_eager_lets_the_run_pass_and_keeps_the_recording)
{
    run_times("eager", 3, 1, STEPS);
    run_times("eager", 3, 50, STEPS);
    ck_assert_uint_eq(stats("eager")->recordings, 1);
    ck_assert_uint_eq(stats("eager")->swallowed, 2 * STEPS);
    run_times("eager", 3, 1, STEPS);
    ck_assert_uint_eq(stats("eager")->patched, 0);
    ck_assert_uint_eq(stats("eager")->recordings, 1);
    ck_assert_uint_eq(stats("eager")->replayed_runs, 5);
    ck_assert_uint_eq(reasons("eager", "a call was not as recorded"), 3);
    check_word();
}
END_TEST

START_TEST(a_disabled_region_and_a_range_without_rule_are_left_alone)
{
    run_times("disabled", 4, 1, STEPS);
    run_times("no such rule", 4, 1, STEPS);
    ck_assert_ptr_null(cgs_region_of_range(NULL, "disabled", false));
    ck_assert_ptr_null(cgs_region_of_range(NULL, "no such rule", false));
    ck_assert_ptr_null(cgs_region_first());
    check_word();
}
END_TEST

START_TEST(a_sequence_that_changes_in_each_run_is_recorded_less_and_less)
{
    unsigned i;

    for (i = 0; i < 300; ++i) {
        run_steps("recapture", STEPS * i, STEPS);
    }
    ck_assert_uint_gt(stats("recapture")->recordings, 3);
    ck_assert_uint_lt(stats("recapture")->recordings, 16);
    check_word();

    /* But it is not given up. */
    run_times("recapture", 1200, 1, STEPS);
    ck_assert_uint_gt(stats("recapture")->replayed_runs, 0);
    i = (unsigned)stats("recapture")->replayed_runs;
    run_times("recapture", 50, 1, STEPS);
    ck_assert_uint_eq(stats("recapture")->replayed_runs, i + 50);

    /* And is as ready as before for a change. */
    i = (unsigned)stats("recapture")->recordings;
    run_times("recapture", 3, 7, STEPS);
    ck_assert_uint_eq(stats("recapture")->recordings, i + 1);
    check_word();
}
END_TEST

/* ---- Ranges ---- */

START_TEST(the_outermost_range_counts)
{
    unsigned run;

    for (run = 0; run < 4; ++run) {
        enter("r");
        step(1);
        enter("other");
        step(2);
        enter("r");
        step(3);
        leave();
        leave();
        step(4);
        leave();
        step(5); /* outside */
    }
    ck_assert_uint_eq(stats("r")->runs, 4);
    ck_assert_uint_eq(stats("r")->calls, 4 * 4);
    ck_assert_ptr_null(cgs_region_find("other"));
    check_word();
}
END_TEST

START_TEST(a_pop_of_another_domain_ends_nothing)
{
    run_times("r", 2, 1, STEPS);
    enter("r");
    step(1);
    cgs_ranges_sink.push("domain", "x");
    cgs_ranges_sink.pop("domain");
    cgs_ranges_sink.pop("another domain");
    ck_assert_uint_eq(held(region("r")), 1);
    step(2);
    step(3);
    step(4);
    step(5);
    leave();
    ck_assert_uint_eq(stats("r")->replayed_runs, 2);
    check_word();
}
END_TEST

static void end_range_7(void)
{
    cgs_ranges_sink.end(7);
}

START_TEST(a_started_range_may_end_in_another_thread)
{
    run_times("r", 2, 1, STEPS);
    cgs_ranges_sink.start(NULL, "r", 7);
    step(1);
    step(2);
    ck_assert_uint_eq(held(region("r")), 2);
    cgs_ranges_sink.pop(NULL);
    cgs_ranges_sink.end(8);
    ck_assert_uint_eq(held(region("r")), 2);
    in_another_thread(end_range_7);
    ck_assert_uint_eq(held(region("r")), 0);
    step(3); /* outside */
    ck_assert_uint_eq(stats("r")->calls, 2 * STEPS + 2);
    check_word();
    cgs_ranges_sink.start(NULL, "r", 9);
    step(1);
    step(2);
    cgs_ranges_sink.end(9);
    ck_assert_uint_eq(stats("r")->runs, 4);
    check_word();
}
END_TEST

static void run_r_in_passing(void)
{
    enter("r");
    PRG_CHECK(cuCtxGetCurrent(&(CUcontext){NULL}));
    leave();
}

START_TEST(a_region_is_open_in_one_thread_at_a_time)
{
    run_times("r", 2, 1, STEPS);
    enter("r");
    step(1);
    in_another_thread(run_r_in_passing);
    ck_assert_uint_eq(stats("r")->runs, 3);
    ck_assert_uint_eq(reasons("r", "it was open in another thread"), 1);
    ck_assert_uint_eq(held(region("r")), 1);
    step(2);
    step(3);
    step(4);
    step(5);
    leave();
    ck_assert_uint_eq(stats("r")->replayed_runs, 2);
    in_another_thread(run_r_in_passing);
    ck_assert_uint_eq(stats("r")->runs, 4);
    check_word();
}
END_TEST

START_TEST(outside_of_regions_calls_take_the_short_way)
{
    ck_assert_int_eq(cgs_gate, 0);
    enter("r");
    ck_assert_int_eq(cgs_gate, 1);
    step(1);
    leave();
    ck_assert_int_eq(cgs_gate, 0);
    cgs_ranges_sink.start(NULL, "r", 3);
    ck_assert_int_eq(cgs_gate, 1);
    cgs_ranges_sink.end(3);
    ck_assert_int_eq(cgs_gate, 0);
    enter("disabled");
    ck_assert_int_eq(cgs_gate, 0);
    leave();
}
END_TEST

START_TEST(a_rule_of_one_domain_is_not_for_the_other)
{
    const cgs_region_t *first, *second;

    first  = cgs_region_of_range(_i == 0 ? NULL : "dom", "both", false);
    second = cgs_region_of_range(_i == 0 ? "dom" : NULL, "both", false);
    ck_assert_ptr_null(_i == 0 ? first : second);
    ck_assert_ptr_nonnull(_i == 0 ? second : first);
}
END_TEST

START_TEST(a_rule_without_domain_is_for_all)
{
    ck_assert_ptr_nonnull(cgs_region_of_range(NULL, "r", false));
    ck_assert_ptr_eq(cgs_region_of_range(NULL, "r", false),
                     cgs_region_of_range("domain", "r", true));
}
END_TEST

/* ---- Captures and contexts ---- */

START_TEST(everything_passes_while_the_program_captures)
{
    CUgraph     graph;
    CUgraphExec exec;
    CUstream    side;
    uint32_t    value = 9;

    PRG_CHECK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    run_times("r", 3, 1, STEPS);
    enter("r");
    step(1);
    step(2);
    PRG_CHECK(cuStreamBeginCapture_v2(side, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ck_assert_uint_eq(held(region("r")), 0);
    PRG_CHECK(prg_launch(chain, side, 1, (void *[]){&word, &value}));
    step(3);
    PRG_CHECK(cuStreamEndCapture(side, &graph));
    leave();
    check_word();
    ck_assert_uint_eq(reasons("r", "a stream capture of the program's own"),
                      1);

    /* A run within a capture is captured as it is, then launched. */
    PRG_CHECK(cuStreamBeginCapture_v2(core_stream,
                                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    run_steps("r", 1, STEPS);
    PRG_CHECK(cuStreamEndCapture(core_stream, &graph));
    PRG_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    PRG_CHECK(cuGraphLaunch(exec, core_stream));
    check_word();

    /* Where a capture did not begin or is over, replays go on. */
    ck_assert_int_ne(cuStreamBeginCapture_v2(CU_STREAM_LEGACY,
                                             CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
    ck_assert_int_ne(cuStreamEndCapture(core_stream, &graph), CUDA_SUCCESS);
    run_times("r", 2, 1, STEPS);
    value = (uint32_t)stats("r")->replayed_runs;
    run_times("r", 4, 1, STEPS);
    ck_assert_uint_eq(stats("r")->replayed_runs, value + 4);
    check_word();
}
END_TEST

START_TEST(an_invalidated_capture_is_over)
{
    CUgraph  graph;
    CUstream side;

    PRG_CHECK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    run_times("r", 3, 1, STEPS);
    PRG_CHECK(cuStreamBeginCapture_v2(side,
                                      CU_STREAM_CAPTURE_MODE_RELAXED));
    ck_assert_int_ne(cuStreamSynchronize(side), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamEndCapture(side, &graph),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    run_times("r", 3, 1, STEPS);
    ck_assert_uint_eq(stats("r")->replayed_runs, 5);
    check_word();
}
END_TEST

START_TEST(what_is_held_is_issued_in_its_own_context)
{
    CUcontext ctx;

    run_times("r", 3, 1, STEPS);
    enter("r");
    step(1);
    step(2);
    PRG_CHECK(cuCtxSetCurrent(NULL));
    leave();
    PRG_CHECK(cuCtxGetCurrent(&ctx));
    ck_assert_ptr_null(ctx);
    PRG_CHECK(cuCtxSetCurrent(core.context));
    check_word();

    /* Graphs are built at the start of a run, whatever is current there. */
    cgs_region_recapture(region("r"));
    run_steps("r", 1, STEPS);
    PRG_CHECK(cuCtxSetCurrent(NULL));
    enter("r");
    PRG_CHECK(cuCtxGetCurrent(&ctx));
    ck_assert_ptr_null(ctx);
    PRG_CHECK(cuCtxSetCurrent(core.context));
    step(1);
    step(2);
    step(3);
    step(4);
    step(5);
    leave();
    check_word();
    ck_assert_uint_eq(reasons("r", "cu"), 0);
}
END_TEST

static TCase *runs(void)
{
    TCase *tests = tcase_create("runs");

    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_add_test(tests, the_first_run_is_recorded_and_the_others_replayed);
    tcase_add_test(tests,
                   calls_are_held_back_until_the_last_and_then_launched);
    tcase_add_test(tests, a_region_of_one_call_stays_plain);
    tcase_add_test(tests, a_region_that_never_comes_back_costs_no_graph);
    tcase_add_test(tests, changed_arguments_are_patched);
    tcase_add_test(tests, a_launch_without_arguments_is_refused_as_ever);
    tcase_add_test(tests, only_what_changed_is_patched_and_once);
    tcase_add_loop_test(tests,
                        mismatch_issues_prefix_in_order_and_records_anew, 0,
                        STEPS);
    tcase_add_test(tests, a_changed_prefix_is_issued_with_its_new_arguments);
    tcase_add_test(tests, a_shorter_run_issues_what_it_held);
    tcase_add_test(tests, a_longer_run_is_recorded_further);
    tcase_add_test(tests, an_empty_run_changes_nothing);
    tcase_add_test(tests, another_context_is_another_call);
    tcase_add_test(tests, a_context_that_changes_in_each_run_is_a_cut);
    tcase_add_test(tests, a_wait_in_another_context_is_a_cut);
    tcase_add_test(tests, the_same_call_on_another_stream_is_another);
    tcase_add_test(tests, a_context_made_current_outside_is_noticed);
    tcase_add_test(tests, a_context_created_inside_is_noticed);
    tcase_add_test(tests, the_per_thread_default_stream_is_not_the_legacy_one);
    tcase_add_loop_test(tests, a_context_made_current_inside_is_noticed, 0,
                        NUM_WAYS);
    tcase_add_test(tests, another_stream_is_of_the_same_graph);
    tcase_add_test(tests,
                   what_a_stream_says_of_its_work_is_said_to_the_nodes);
    tcase_add_test(tests,
                   windows_and_domain_maps_of_a_stream_are_those_of_the_nodes);
    tcase_add_test(tests, a_call_that_failed_is_told_and_not_recorded);
    tcase_add_test(tests, a_call_that_fails_once_does_not_end_the_recording);
    return tests;
}

static TCase *barriers(void)
{
    TCase *tests = tcase_create("barriers");

    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_add_test(tests, a_barrier_that_was_recorded_costs_a_cut);
    tcase_add_test(
        tests, a_barrier_that_was_not_recorded_sees_what_was_called_before_it);
    tcase_add_test(tests, a_cut_learned_in_a_replay_is_replayed);
    tcase_add_test(tests,
                   another_threads_barrier_flushes_and_the_run_goes_on);
    tcase_add_test(tests, another_threads_work_flushes_where_streams_meet);
    tcase_add_test(tests, work_on_the_legacy_stream_meets_that_on_any_other);
    tcase_add_test(tests, a_flush_is_made_in_the_context_of_the_run);
    tcase_add_test(tests,
                   a_thread_that_waits_for_the_stream_waits_for_what_is_held);
    tcase_add_test(tests,
                   a_thread_that_waits_for_an_event_waits_for_what_is_held);
    tcase_add_test(tests, work_is_not_held_back_for_long_if_no_call_follows);
    tcase_add_test(tests, a_single_call_is_not_held_back_for_long);
    tcase_add_test(tests,
                   what_looks_elsewhere_issues_nothing);
    tcase_add_test(tests,
                   what_looks_at_work_or_puts_other_work_there_is_a_barrier);
    tcase_add_test(tests, questions_and_allocations_are_no_barriers);
    tcase_add_test(
        tests, work_in_another_threads_region_comes_after_earlier_calls);
    return tests;
}

static TCase *faults(void)
{
    TCase *tests = tcase_create("faults");

    tcase_add_loop_test(tests, a_region_that_cannot_be_built_stays_plain, 0,
                        4);
    tcase_add_loop_test(tests, a_build_that_fails_once_is_tried_again, 0, 4);
    tcase_add_test(tests,
                   what_is_held_is_issued_where_no_context_can_be_pushed);
    tcase_add_test(tests, a_launch_that_fails_is_made_eagerly);
    tcase_add_test(tests, launches_that_always_fail_are_given_up);
    tcase_add_loop_test(tests, a_patch_that_fails_loses_no_argument, 1,
                        3 * STEPS);
    tcase_add_loop_test(tests, an_error_of_a_held_back_call_is_told_at_the_next,
                        1, 4);
    tcase_add_test(tests, the_error_of_a_swallowed_call_is_told_once);
    tcase_add_loop_test(tests,
                        what_was_built_of_a_graph_that_failed_is_destroyed, 0,
                        5);
    return tests;
}

static TCase *endings(void)
{
    TCase *tests = tcase_create("recapture and destroy");

    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_add_test(tests, recapture_records_the_next_run);
    tcase_add_test(tests, recapture_inside_a_run_lets_it_end);
    tcase_add_test(tests, destroy_frees_all_and_the_next_run_is_recorded);
    tcase_add_loop_test(tests, destroy_inside_a_run_issues_what_is_held, 0, 4);
    tcase_add_test(tests, destroy_while_recording_keeps_no_half);
    tcase_add_test(tests, destroy_all_is_for_all_regions);
    tcase_add_test(tests, a_child_touches_nothing_of_its_parent);
    tcase_add_loop_test(tests, what_a_graph_holds_ends_with_all_graphs, 0, 6);
    tcase_add_test(tests, all_that_a_reset_of_the_context_ends_is_forgotten);
    tcase_add_test(tests, a_new_attribute_of_a_kernel_in_use_ends_all_graphs);
    return tests;
}

static TCase *rules_and_ranges(void)
{
    TCase *tests = tcase_create("rules and ranges");

    tcase_add_checked_fixture(tests, region_open, NULL);
    tcase_add_test(tests, runs_of_the_warm_up_are_plain);
    tcase_add_test(tests, on_change_recapture_records_anew);
    tcase_add_test(tests,
                   on_change_eager_lets_the_run_pass_and_keeps_the_recording);
    tcase_add_test(tests,
                   a_disabled_region_and_a_range_without_rule_are_left_alone);
    tcase_add_test(
        tests, a_sequence_that_changes_in_each_run_is_recorded_less_and_less);
    tcase_add_test(tests, the_outermost_range_counts);
    tcase_add_test(tests, a_pop_of_another_domain_ends_nothing);
    tcase_add_test(tests, a_started_range_may_end_in_another_thread);
    tcase_add_test(tests, a_region_is_open_in_one_thread_at_a_time);
    tcase_add_test(tests, a_rule_without_domain_is_for_all);
    tcase_add_loop_test(tests, a_rule_of_one_domain_is_not_for_the_other, 0,
                        2);
    tcase_add_test(tests, outside_of_regions_calls_take_the_short_way);
    tcase_add_test(tests, everything_passes_while_the_program_captures);
    tcase_add_test(tests, an_invalidated_capture_is_over);
    tcase_add_test(tests, what_is_held_is_issued_in_its_own_context);
    tcase_add_test(tests,
                   building_leaves_context_and_capture_mode_as_they_were);
    tcase_add_test(
        tests, a_tool_that_calls_the_driver_within_our_calls_is_let_through);
    return tests;
}

/* ---- What is measured for the report ---- */

START_TEST(a_trial_times_the_drivers_calls_in_its_first_plain_run)
{
    const cgs_region_stats_t *gated = NULL;
    unsigned                 i;

    region_open();
    for (i = 0; i < 300; ++i) {
        run_steps("gated", 0, STEPS);
        gated = stats("gated");
        if (gated->times.watched) {
            break;
        }
    }
    ck_assert(gated->times.watched);
    ck_assert_uint_eq(gated->plain_runs, 1);
    ck_assert_uint_eq(gated->times.plain_calls.num, STEPS);
    /* Counted as little as the other runs that the gate sends plain. */
    ck_assert_uint_eq(gated->calls, (gated->runs - 1) * STEPS);
    ck_assert_uint_eq(region("gated")->counts[CGS_OP_KERNEL], gated->calls);
    ck_assert_uint_eq(reasons("gated", "it is no faster replayed"), 1);
    /* The next ones of the trial go unseen. */
    run_times("gated", 40, 0, STEPS);
    ck_assert_uint_ge(stats("gated")->plain_runs, 7);
    ck_assert_uint_eq(stats("gated")->unseen_runs, stats("gated")->plain_runs);
    ck_assert_uint_eq(reasons("gated", "it is no faster replayed"),
                      stats("gated")->unseen_runs);
    ck_assert_uint_eq(stats("gated")->times.plain_calls.num, STEPS);
    check_word();
}
END_TEST

START_TEST(first_launches_are_no_measure_of_a_call)
{
    region_open();
    run_steps("r", 0, STEPS);
    ck_assert_uint_eq(stats("r")->times.plain_calls.num, STEPS - 1);
    run_steps("other", 0, STEPS);
    ck_assert_uint_eq(stats("other")->times.plain_calls.num, STEPS);
}
END_TEST

START_TEST(what_differs_is_counted_by_place_and_value)
{
    const cgs_change_t *change;
    unsigned           i;

    region_open();
    for (i = 0; i < 20; ++i) {
        enter("r");
        step(1);
        step(2 + i);
        leave();
    }
    ck_assert_uint_eq(stats("r")->changes.watched, 19);
    ck_assert_uint_eq(stats("r")->changes.num, 1);
    change = &stats("r")->changes.entry[0];
    ck_assert_uint_eq(change->op_index, 1);
    ck_assert_str_eq(change->call, "kernel");
    ck_assert_str_eq(change->kernel, "k_chain");
    ck_assert_int_eq(change->arg, 1);
    ck_assert_uint_eq(change->runs, 19);
    ck_assert(!change->is_address);
    ck_assert_int_eq(cgs_change_pattern(change), CGS_PATTERN_GROWS);
    check_word();
}
END_TEST

START_TEST(a_buffer_that_is_new_each_time_is_told_from_a_value)
{
    const cgs_change_t *change;
    CUdeviceptr        buffer;
    uint32_t           value = 1;
    unsigned           i;

    region_open();
    for (i = 0; i < 20; ++i) {
        buffer = core_alloc(sizeof(uint32_t), 0);
        enter("r");
        step(1);
        PRG_CHECK(prg_launch(chain, core_stream, 1,
                             (void *[]){&buffer, &value}));
        leave();
    }
    change = &stats("r")->changes.entry[0];
    ck_assert_uint_eq(change->op_index, 1);
    ck_assert_int_eq(change->arg, 0);
    ck_assert(change->is_address);
    ck_assert_int_eq(cgs_change_pattern(change), CGS_PATTERN_NEW);
}
END_TEST

static TCase *times(void)
{
    TCase *tests = tcase_create("times");

    tcase_add_test(tests,
                   a_trial_times_the_drivers_calls_in_its_first_plain_run);
    tcase_add_test(tests, first_launches_are_no_measure_of_a_call);
    tcase_add_test(tests, what_differs_is_counted_by_place_and_value);
    tcase_add_test(tests, a_buffer_that_is_new_each_time_is_told_from_a_value);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("region");

    suite_add_tcase(suite, runs());
    suite_add_tcase(suite, barriers());
    suite_add_tcase(suite, faults());
    suite_add_tcase(suite, endings());
    suite_add_tcase(suite, rules_and_ranges());
    suite_add_tcase(suite, times());
    return core_run(suite);
}
