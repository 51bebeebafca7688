/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load: keep the environment's CGSHIM* strings and have NVTX find us; nothing
 * else, since LD_PRELOAD reaches every shell and every child (but an answer to
 * the wrapper, where it asks what the configuration is). First use: read the
 * configuration. Exit: issue what is held back and write the report.
 *
 * A child of fork cannot use its parent's CUDA, and our locks may have been
 * held by a thread that it does not have. One flag, tested before any lock,
 * makes the child plain; a child made before libcuda was found is like any
 * other process.
 */
#define _GNU_SOURCE
#include "life.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "config.h"
#include "doors.h"
#include "dump.h"
#include "entries.h"
#include "flow.h"
#include "log.h"
#include "marks.h"
#include "nvtx.h"
#include "profile.h"
#include "ranges.h"
#include "save.h"
#include "summary.h"
#include "timer.h"
#include "trace.h"
#include "turns.h"

/* cuFuncGetParamInfo came with it: without the arguments' layout nothing can
 * be compared. */
#define MIN_DRIVER_VERSION 12040

int cgs_gate;

static struct {
    pthread_once_t start;
    pthread_once_t ready;
    atomic_bool    off;
    atomic_bool    no_regions; /* off, or profiled */
    atomic_bool    child;
    atomic_bool    ended;
    _Atomic(const char *) note;
} life = {
    .start = PTHREAD_ONCE_INIT,
    .ready = PTHREAD_ONCE_INIT,
};

void cgs_life_gate_add(int delta)
{
    __atomic_fetch_add(&cgs_gate, delta, __ATOMIC_RELEASE);
}

bool cgs_life_is_off(void)
{
    return atomic_load_explicit(&life.off, memory_order_relaxed);
}

bool cgs_life_has_no_regions(void)
{
    return atomic_load_explicit(&life.no_regions, memory_order_relaxed);
}

bool cgs_life_is_child(void)
{
    return atomic_load_explicit(&life.child, memory_order_relaxed);
}

bool cgs_life_has_ended(void)
{
    return atomic_load_explicit(&life.ended, memory_order_relaxed);
}

const char *cgs_life_note(void)
{
    return atomic_load(&life.note);
}

static void go_off(void)
{
    atomic_store(&life.off, true);
    atomic_store(&life.no_regions, true);
}

void cgs_life_refuse(const char *reason)
{
    const char *none = NULL;

    atomic_compare_exchange_strong(&life.note, &none, reason);
    go_off();
    cgs_log_often(CGS_LOG_WARN, "standing down: %s", reason);
}

void cgs_life_stand_down(const char *reason)
{
    cgs_life_refuse(reason);
    if (cgs_door_has_driver()) {
        cgs_region_destroy_all(reason);
    }
}

static void start(void)
{
    const cgs_config_t *config = cgs_config_get();

    if (config->mode == CGS_MODE_OFF) {
        go_off();
    } else if (config->profile != NULL) {
        atomic_store(&life.no_regions, true);
    } else if (config->mode == CGS_MODE_OBSERVE) {
        cgs_life_gate_add(1); /* for good: every call is counted */
    } else if (cgs_config_verifies(config)) {
        cgs_turns_start();
    }
}

void cgs_life_start(void)
{
    pthread_once(&life.start, start);
}

static void at_exit(void)
{
    if (cgs_life_is_child()) {
        return;
    }
    cgs_timer_stop();
    if (!cgs_life_is_off()) {
        cgs_flow_issue_at_exit();
    }
    cgs_trace_finish();
    cgs_summary_write();
    cgs_save_write();
    cgs_log_settle();
    atomic_store(&life.ended, true);
}

static void check_driver(void)
{
    static const unsigned needed[] = {
        CGS_INDEX_cuFuncGetParamInfo, CGS_INDEX_cuKernelGetParamInfo,
        CGS_INDEX_cuGraphAddNode_v2,  CGS_INDEX_cuGraphExecNodeSetParams,
        CGS_INDEX_cuGraphInstantiateWithFlags,
        CGS_INDEX_cuThreadExchangeStreamCaptureMode,
    };
    int      version = 0;
    unsigned i;

    CGS_REAL(cuDriverGetVersion)(&version);
    if (version < MIN_DRIVER_VERSION) {
        cgs_life_stand_down("the driver is older than CUDA 12.4");
    }
    for (i = 0; i < sizeof(needed) / sizeof(needed[0]); ++i) {
        if (!cgs_door_has(needed[i])) {
            cgs_life_stand_down("the driver lacks a function that graphs "
                                "need");
        }
    }
}

static void begin_profile(const char *target)
{
#if HAVE_CUPTI
    cgs_profile_begin(target);
#else
    cgs_log_complain("CGSHIM_PROFILE=%s: this cgshim was built without the "
                     "headers of CUPTI; there is no profile", target);
#endif
}

static void driver_ready(void)
{
    const cgs_config_t *config = cgs_config_get();

    if (cgs_life_is_off()) {
        return;
    }
    if (config->profile != NULL) {
        if ((config->report != NULL) || config->automatic) {
            cgs_log_complain("CGSHIM_PROFILE=%s: nothing is replayed "
                             "meanwhile, so CGSHIM_REPORT and CGSHIM_AUTO are "
                             "ignored", config->profile);
        }
        begin_profile(config->profile);
        return;
    }
    /* After cuInit, so that it runs before the driver's own handlers. */
    atexit(at_exit);
    cgs_trace_start(config->trace, CGS_TRACE_MAX_BYTES);
    cgs_dump_start(config->dump, CGS_DUMP_MAX_FILES);
    check_driver();
    cgs_marks_start();
}

void cgs_life_driver_ready(void)
{
    cgs_life_start();
    pthread_once(&life.ready, driver_ready);
}

static void after_fork_in_child(void)
{
    /* Without CUDA a child goes on like any other process, unless a thread
     * that it does not have was among the regions. */
    if (!cgs_door_has_driver() && cgs_region_is_quiet()) {
        return;
    }
    cgs_trace_abandon();
    atomic_store(&life.child, true);
    go_off();
    __atomic_store_n(&cgs_gate, 0, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void load(void)
{
    cgs_config_snapshot(environ);
    cgs_config_answer();
    cgs_nvtx_setup(&cgs_ranges_sink);
    pthread_atfork(NULL, NULL, after_fork_in_child);
}
