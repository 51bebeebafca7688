/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steers its regions through cgshim.h where the library is preloaded, and does
 * the same work where it is not. What the library answers is checked and not
 * printed, since plain it says that it is not loaded. C++ as well as C.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgshim.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "util.h"
#ifdef __cplusplus
}
#endif

#define USER_CHECK(_condition) \
    user_check(_condition, #_condition, __LINE__)


enum {
    USER_WORDS = 64,
    USER_STEPS = 6,
    USER_RUNS  = 8
};


typedef struct user_state {
    CUstream    stream;
    CUfunction  axpy;
    CUdeviceptr x;
    CUdeviceptr y;
} user_state_t;


static int user_loaded;


static void user_check(int holds, const char *condition, int line)
{
    if (!holds) {
        fprintf(stderr, "line %d: %s: %s\n", line, condition,
                cgshim_last_error_text());
        exit(1);
    }
}

/* The answer is this one under the library, and plain that there is none. */
static int user_is(cgshim_error_t error, cgshim_error_t expected)
{
    return error == (user_loaded ? expected : CGSHIM_ERROR_NOT_LOADED);
}

static void user_run(user_state_t *state, uint32_t factor)
{
    uint32_t n     = USER_WORDS;
    void *params[] = { &state->y, &state->x, &n, &factor };
    unsigned i;

    USER_CHECK(user_is(cgshim_region_begin("step"), CGSHIM_SUCCESS));
    for (i = 0; i < USER_STEPS; ++i) {
        PRG_CHECK(prg_launch(state->axpy, state->stream, n, params));
    }
    USER_CHECK(user_is(cgshim_region_end("step"), CGSHIM_SUCCESS));
}

static cgshim_region_info_t user_info(void)
{
    cgshim_region_info_t info;

    memset(&info, 0, sizeof(info));
    info.size = sizeof(info);
    USER_CHECK(user_is(cgshim_region_info("step", &info), CGSHIM_SUCCESS));
    return info;
}

/* New data for a buffer that is found by the kernel that takes it. */
static void user_refill(user_state_t *state)
{
    static uint32_t data[USER_WORDS];
    cgshim_buffer_t buffer;
    unsigned i;

    memset(&buffer, 0, sizeof(buffer));
    buffer.size = sizeof(buffer);
    USER_CHECK(user_is(cgshim_region_buffer("step", "k_axpy", 0, 1, &buffer),
                       CGSHIM_SUCCESS));
    if (!user_loaded) {
        buffer.base = state->x;
    }
    USER_CHECK(buffer.base == state->x);
    for (i = 0; i < USER_WORDS; ++i) {
        data[i] = 1000 + i;
    }
    PRG_CHECK(cuStreamSynchronize(state->stream));
    PRG_CHECK(cuMemcpyHtoD((CUdeviceptr)buffer.base, data, sizeof(data)));
    PRG_CHECK(cuCtxSynchronize()); /* the stream does not wait for the copy */
}

/* What a verified run was seen to write is known: that is with `verify=1`. */
static void user_look_at_access(void)
{
    unsigned access[2] = { CGSHIM_ACCESS_UNKNOWN, CGSHIM_ACCESS_UNKNOWN };
    cgshim_buffer_t buffer;
    int i;

    for (i = 0; i < 2; ++i) {
        memset(&buffer, 0, sizeof(buffer));
        buffer.size = sizeof(buffer);
        USER_CHECK(user_is(cgshim_region_buffer("step", "k_axpy", 0, i,
                                                &buffer), CGSHIM_SUCCESS));
        access[i] = user_loaded ? buffer.access : access[i];
    }
    USER_CHECK(access[0] == (getenv("USER_VERIFIES") == NULL ?
                             (unsigned)CGSHIM_ACCESS_UNKNOWN :
                             (unsigned)CGSHIM_ACCESS_UNKNOWN |
                             (unsigned)CGSHIM_ACCESS_WRITTEN));
    USER_CHECK(access[1] == CGSHIM_ACCESS_UNKNOWN);
}

static void user_look(void)
{
    cgshim_chunk_t chunk;
    size_t count = 0;

    memset(&chunk, 0, sizeof(chunk));
    chunk.size = sizeof(chunk);
    USER_CHECK(user_is(cgshim_region_chunk("step", 0, &chunk),
                       CGSHIM_SUCCESS));
    USER_CHECK(user_is(cgshim_region_buffers("step", NULL, &count),
                       CGSHIM_SUCCESS));
    USER_CHECK(count == (user_loaded ? 2u : 0u));
    USER_CHECK(cgshim_region_count() == (user_loaded ? 1u : 0u));
    USER_CHECK(!user_loaded || !strcmp(cgshim_region_name(0), "step"));
    USER_CHECK(user_is(cgshim_region_destroy("nothing"),
                       CGSHIM_ERROR_UNKNOWN));
    USER_CHECK(strlen(cgshim_last_error_text()) > 0);
    USER_CHECK(user_is(cgshim_region_end("step"), CGSHIM_ERROR_UNBALANCED));
}

static void user_steer(user_state_t *state)
{
    cgshim_region_info_t info;
    uint32_t run;

    for (run = 0; run < USER_RUNS; ++run) {
        user_run(state, 3);
    }
    info = user_info();
    USER_CHECK(info.runs == (user_loaded ? USER_RUNS : 0));
    user_look();
    user_look_at_access();
    user_refill(state);
    user_run(state, 5);
    USER_CHECK(user_is(cgshim_region_recapture("step"), CGSHIM_SUCCESS));
    user_run(state, 5);
    user_run(state, 7);
    USER_CHECK(user_is(cgshim_region_destroy("step"), CGSHIM_SUCCESS));
    for (run = 0; run < USER_RUNS; ++run) {
        user_run(state, run);
    }
    info = user_info();
    USER_CHECK(info.recordings >= (user_loaded ? 3u : 0u));
    USER_CHECK(user_is(cgshim_destroy_all(), CGSHIM_SUCCESS));
}

/* A child of this process has no cgshim. */
static void user_fork(void)
{
    int status = 1;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        _exit((cgshim_region_begin("step") == CGSHIM_ERROR_NOT_LOADED) &&
              (cgshim_destroy_all() == CGSHIM_ERROR_NOT_LOADED) ? 0 : 1);
    }
    USER_CHECK(waitpid(pid, &status, 0) == pid);
    USER_CHECK(status == 0);
}

/* Registered before cuInit, so called when cgshim has ended. */
static void user_at_exit(void)
{
    if (!user_is(cgshim_region_begin("step"), CGSHIM_ERROR_OFF) ||
        !user_is(cgshim_destroy_all(), CGSHIM_ERROR_OFF)) {
        fputs("cgshim is still at work at exit\n", stderr);
    }
}

int main(void)
{
    user_state_t state;
    prg_context_t prg;

    user_loaded = cgshim_version() != NULL;
    USER_CHECK(user_loaded == (cgshim_version_number() > 0));
    USER_CHECK(strlen(cgshim_error_text(CGSHIM_ERROR_NOT_LOADED)) > 0);
    atexit(user_at_exit);
    prg_open(&prg);
    state.axpy = prg_kernel(&prg, "k_axpy");
    state.x    = prg_alloc(&prg, USER_WORDS, 3);
    state.y    = prg_alloc(&prg, USER_WORDS, 5);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));
    user_steer(&state);
    PRG_CHECK(cuStreamSynchronize(state.stream));
    prg_print_hash("y", state.y, USER_WORDS);
    user_fork();
    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.y));
    prg_close(&prg);
    return 0;
}
