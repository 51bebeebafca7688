/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program may ask of the library it runs under: the exported functions
 * of include/cgshim.h.
 *
 * Ranges of a domain of their own begin and end regions, so that they nest with
 * the program's NVTX ranges and are no part of NVTX's own stack. All else is a
 * look at the regions, or what the driver's own events do to them.
 */
#include "cgshim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "life.h"
#include "ranges.h"
#include "region.h"
#include "text.h"
#include "verify.h"

/* How long a question waits for those who change a region. */
#define LOCK_WAIT_MS 1000
/* Names of kernels that an error tells; each once. */
#define MAX_TOLD 16

static const char domain[] = "cgshim";

/* What this thread has begun and not ended, and its last error. */
static __thread struct {
    unsigned num;
    uint64_t name_hash[CGSHIM_MAX_NESTED];
    char     text[512];
} self;

/* Errors */

static cgshim_error_t fail(cgshim_error_t error, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static cgshim_error_t fail(cgshim_error_t error, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(self.text, sizeof(self.text), fmt, args);
    va_end(args);
    return error;
}

/* Add a name to the text. @return false where it is full. */
static bool tell_name(const char *before, const char *name)
{
    size_t length = strlen(self.text);
    size_t left   = sizeof(self.text) - length;
    size_t used   = strlen(before);
    /* The copy ends in "..." where it is cut, so one more does not fit. */
    const size_t least = 8;

    if (left < used + least) {
        return false;
    }
    memcpy(self.text + length, before, used);
    cgs_text_escape(self.text + length + used, left - used, name);
    return true;
}

static cgshim_error_t fail_region(const char *name)
{
    size_t num = cgshim_region_count();
    size_t i;

    fail(CGSHIM_ERROR_UNKNOWN, "there is no region ");
    tell_name("", name);
    for (i = 0; (i < num) && tell_name(i == 0 ? "; there are: " : ", ",
                                       cgshim_region_name(i)); ++i) {
    }
    if (num == 0) {
        tell_name("", "; none was entered yet");
    }
    return CGSHIM_ERROR_UNKNOWN;
}

static bool is_among(const char *const *names, unsigned num, const char *name)
{
    unsigned i;

    for (i = 0; (i < num) && (names[i] != name); ++i) {
    }
    return i < num;
}

/* Say which names the recorded calls have. */
static cgshim_error_t fail_call(const cgs_region_t *region, const char *kernel)
{
    cgs_walk_t walk = cgs_walk_begin(&region->recording);
    const char *told[MAX_TOLD];
    const char *name;
    unsigned   num = 0;

    fail(CGSHIM_ERROR_UNKNOWN, "the region has no call of ");
    tell_name("", kernel);
    while ((num < MAX_TOLD) && cgs_walk_next(&walk)) {
        name = cgs_op_name(walk.op);
        if (is_among(told, num, name)) {
            continue;
        }
        if (!tell_name(num == 0 ? "; it has: " : ", ", name)) {
            break;
        }
        told[num++] = name;
    }
    if (num == 0) {
        tell_name("", "; nothing of it is recorded");
    }
    return CGSHIM_ERROR_UNKNOWN;
}

/* Whether there is anything to be done in this process. */
static cgshim_error_t check_life(void)
{
    if (cgs_life_is_child()) {
        return fail(CGSHIM_ERROR_NOT_LOADED, "cgshim does nothing in the "
                    "child of a fork");
    }
    cgs_life_start();
    if (cgs_life_has_ended()) {
        return fail(CGSHIM_ERROR_OFF, "the program is about to end");
    }
    if (cgs_life_is_off()) {
        return fail(CGSHIM_ERROR_OFF, "cgshim does nothing in this process: "
                    "%s", cgs_life_note() != NULL ? cgs_life_note() :
                    "CGSHIM=off");
    }
    return CGSHIM_SUCCESS;
}

static cgshim_error_t check_name(const char *name)
{
    cgshim_error_t error = check_life();

    if ((error == CGSHIM_SUCCESS) && ((name == NULL) || (name[0] == '\0'))) {
        return fail(CGSHIM_ERROR_INVALID, "a region needs a name");
    }
    return error;
}

/* Each struct that the caller gives begins with its size. */
static cgshim_error_t check_size(const void *out, size_t needed)
{
    size_t size;

    if (out == NULL) {
        return fail(CGSHIM_ERROR_INVALID, "there is no place for the answer");
    }
    memcpy(&size, out, sizeof(size));
    if (size < needed) {
        return fail(CGSHIM_ERROR_INVALID, "size is %zu, not %zu or more: it "
                    "must be set to that of the struct", size, needed);
    }
    return CGSHIM_SUCCESS;
}

/* Fill in the caller's struct, which may be one with more members. */
static void answer(void *out, const void *from, size_t known)
{
    size_t size;

    memcpy(&size, out, sizeof(size));
    memset(out, 0, size);
    memcpy(out, from, known);
    memcpy(out, &size, sizeof(size));
}

static cgshim_error_t find_region(const char *name, cgs_region_t **region)
{
    cgshim_error_t error = check_name(name);

    if (error != CGSHIM_SUCCESS) {
        return error;
    }
    *region = cgs_region_find(name);
    return *region != NULL ? CGSHIM_SUCCESS : fail_region(name);
}

static cgshim_error_t fail_busy(void)
{
    return fail(CGSHIM_ERROR_BUSY, "another thread is at work on the region");
}

/* Find a region and lock it. */
static cgshim_error_t open_region(const char *name, cgs_region_t **region)
{
    cgshim_error_t error = find_region(name, region);

    if (error != CGSHIM_SUCCESS) {
        return error;
    }
    if (!cgs_lock_for(&(*region)->lock, LOCK_WAIT_MS)) {
        return fail_busy();
    }
    ++cgs_self.guard;
    return CGSHIM_SUCCESS;
}

static void close_region(cgs_region_t *region)
{
    --cgs_self.guard;
    cgs_unlock(&region->lock);
}

/* The library */

const char *cgshim_version(void)
{
    return cgs_life_is_child() ? NULL : PACKAGE_VERSION;
}

int cgshim_version_number(void)
{
    const char *text  = PACKAGE_VERSION;
    int        number = 0;
    int        i;
    char       *end;

    for (i = 0; (i < 3) && !cgs_life_is_child(); ++i) {
        number = 100 * number + (int)strtol(text, &end, 10);
        text   = end + (*end == '.');
    }
    return number;
}

const char *cgshim_error_text(cgshim_error_t error)
{
    return cgshim_text_of_(error);
}

const char *cgshim_last_error_text(void)
{
    return self.text;
}

/* Runs */

static uint64_t hash_name(const char *name)
{
    return cgs_op_hash_bytes(name, strlen(name), 1);
}

cgshim_error_t cgshim_region_begin(const char *name)
{
    int            keep  = errno;
    cgshim_error_t error = check_name(name);

    if (error != CGSHIM_SUCCESS) {
        return error;
    }
    if (self.num == CGSHIM_MAX_NESTED) {
        return fail(CGSHIM_ERROR_LIMIT, "%d regions are open in each other",
                    CGSHIM_MAX_NESTED);
    }
    self.name_hash[self.num++] = hash_name(name);
    cgs_ranges_sink.push(domain, name);
    errno = keep;
    return CGSHIM_SUCCESS;
}

cgshim_error_t cgshim_region_end(const char *name)
{
    int            keep  = errno;
    cgshim_error_t error = check_name(name);

    if ((error == CGSHIM_ERROR_NOT_LOADED) || (error == CGSHIM_ERROR_INVALID) ||
        (name == NULL)) {
        return error;
    }
    /* What was begun before the library stood down still has to end. */
    if ((self.num > 0) && (self.name_hash[self.num - 1] == hash_name(name))) {
        --self.num;
        cgs_ranges_sink.pop(domain);
        errno = keep;
        return CGSHIM_SUCCESS;
    }
    if (error != CGSHIM_SUCCESS) {
        return error;
    }
    fail(CGSHIM_ERROR_UNBALANCED, "the region that this thread began last and "
         "did not end is not ");
    tell_name("", name);
    return CGSHIM_ERROR_UNBALANCED;
}

cgshim_error_t cgshim_region_recapture(const char *name)
{
    cgs_region_t   *region;
    cgshim_error_t error = find_region(name, &region);

    if (error == CGSHIM_SUCCESS) {
        cgs_region_recapture(region);
    }
    return error;
}

cgshim_error_t cgshim_region_destroy(const char *name)
{
    cgs_region_t   *region;
    cgshim_error_t error = find_region(name, &region);

    if (error == CGSHIM_SUCCESS) {
        cgs_region_destroy(region, "the program asked for it");
    }
    return error;
}

cgshim_error_t cgshim_destroy_all(void)
{
    cgshim_error_t error = check_life();
    cgs_region_t   *region;

    if (error != CGSHIM_SUCCESS) {
        return error;
    }
    for (region = cgs_region_first(); region != NULL; region = region->next) {
        cgs_region_destroy(region, "the program asked for it");
    }
    return CGSHIM_SUCCESS;
}

/* The list, which grows at its head */

static size_t count_from(const cgs_region_t *region)
{
    size_t num = 0;

    for (; region != NULL; region = region->next) {
        ++num;
    }
    return num;
}

size_t cgshim_region_count(void)
{
    return cgs_life_is_child() ? 0 : count_from(cgs_region_first());
}

const char *cgshim_region_name(size_t index)
{
    const cgs_region_t *region = cgs_region_first();
    size_t             num;

    if (cgs_life_is_child()) {
        return NULL;
    }
    num = count_from(region);
    if (index >= num) {
        return NULL;
    }
    for (; num > index + 1; --num) {
        region = region->next;
    }
    return region->name;
}

/* Looks at one region */

cgshim_error_t cgshim_region_info(const char *name, cgshim_region_info_t *info)
{
    cgs_region_stats_t stats;
    cgs_region_t       *region;
    cgshim_state_t     state;
    cgshim_error_t     error = find_region(name, &region);

    if (error == CGSHIM_SUCCESS) {
        error = check_size(info, sizeof(*info));
    }
    if (error != CGSHIM_SUCCESS) {
        return error;
    }
    if (!cgs_region_snapshot(region, &stats, &state)) {
        return fail_busy();
    }
    answer(info, &(cgshim_region_info_t){
        .state         = state,
        .state_text    = cgs_region_state_name(state),
        .last_fallback = stats.fallbacks.last,
        .runs          = stats.runs,
        .replayed_runs = stats.replayed_runs,
        .plain_runs    = stats.plain_runs,
        .recordings    = stats.recordings,
        .calls         = stats.calls,
        .swallowed     = stats.swallowed,
        .launches      = stats.launches,
        .patched       = stats.patched,
        .variants      = stats.variants,
        .chunks        = stats.chunks,
        .nodes         = stats.nodes,
        .host_bytes    = stats.host_bytes,
        .device_bytes  = stats.device_bytes,
        .builds        = stats.builds,
        .build_ns      = stats.build_ns,
    }, sizeof(*info));
    return CGSHIM_SUCCESS;
}

/* The chunk of that number on the way that runs take.
 * @return false, and `index` set to how many there are. */
static bool find_chunk(const cgs_region_t *region, size_t *index,
                       cgshim_chunk_t *found)
{
    cgs_walk_t        walk  = cgs_walk_begin(&region->recording);
    const cgs_chunk_t *last = NULL;
    size_t            num   = 0;

    while (cgs_walk_next(&walk)) {
        if (walk.chunk == last) {
            continue;
        }
        last = walk.chunk;
        if (num++ == *index) {
            *found = (cgshim_chunk_t){
                .graph        = last->exec != NULL ? last->graph : NULL,
                .exec         = last->exec,
                .first_op     = walk.num - 1,
                .num_ops      = last->num_ops,
                .device_bytes = last->device_bytes,
            };
            return true;
        }
    }
    *index = num;
    return false;
}

cgshim_error_t cgshim_region_chunk(const char *name, size_t index,
                                   cgshim_chunk_t *chunk)
{
    cgs_region_t   *region;
    cgshim_chunk_t found;
    cgshim_error_t error = check_size(chunk, sizeof(*chunk));

    if (error == CGSHIM_SUCCESS) {
        error = open_region(name, &region);
    }
    if (error != CGSHIM_SUCCESS) {
        return error;
    }
    if (find_chunk(region, &index, &found)) {
        answer(chunk, &found, sizeof(found));
    } else {
        error = fail(CGSHIM_ERROR_UNKNOWN, "chunks of the region: %zu", index);
    }
    close_region(region);
    return error;
}

static void answer_all(cgshim_buffer_t *out, size_t room,
                       const cgs_buffers_t *buffers)
{
    size_t stride = out->size;
    char   *at    = (char *)out;
    size_t i;

    for (i = 0; (i < room) && (i < buffers->num); ++i, at += stride) {
        memcpy(at, &stride, sizeof(stride));
        answer(at, &buffers->buffer[i], sizeof(buffers->buffer[i]));
    }
}

cgshim_error_t cgshim_region_buffers(const char *name,
                                     cgshim_buffer_t *buffers, size_t *count)
{
    cgs_buffers_t  found = {0};
    cgs_region_t   *region;
    cgshim_error_t error;
    size_t         i;

    if (count == NULL) {
        return fail(CGSHIM_ERROR_INVALID, "there is no place for the count");
    }
    error = (buffers != NULL) && (*count > 0) ?
            check_size(buffers, sizeof(*buffers)) : CGSHIM_SUCCESS;
    if (error == CGSHIM_SUCCESS) {
        error = open_region(name, &region);
    }
    if (error != CGSHIM_SUCCESS) {
        return error;
    }
    cgs_buffers_collect(&region->recording, &found);
    for (i = 0; i < found.num; ++i) {
        cgs_verify_mark(region, &found.buffer[i]);
    }
    close_region(region);
    if (found.failed) {
        error = fail(CGSHIM_ERROR_NO_MEMORY, "out of host memory");
    } else {
        if ((buffers != NULL) && (*count > 0)) {
            answer_all(buffers, *count, &found);
        }
        *count = found.num;
    }
    cgs_buffers_release(&found);
    return error;
}

/* Say which part of the question has no answer. */
static cgshim_error_t fail_buffer(const cgs_region_t *region,
                                  const char *kernel, size_t launch,
                                  int argument)
{
    size_t num = cgs_buffers_count_calls(&region->recording, kernel);

    if (num == 0) {
        return fail_call(region, kernel);
    }
    if (launch >= num) {
        return fail(CGSHIM_ERROR_UNKNOWN, "calls of that name in the region: "
                    "%zu", num);
    }
    return fail(CGSHIM_ERROR_UNKNOWN, "the driver knows no memory at an "
                "address in argument %d of that call", argument);
}

cgshim_error_t cgshim_region_buffer(const char *name, const char *kernel,
                                    size_t launch, int argument,
                                    cgshim_buffer_t *buffer)
{
    cgs_region_t    *region;
    cgshim_buffer_t found;
    cgshim_error_t  error = check_size(buffer, sizeof(*buffer));

    if ((error == CGSHIM_SUCCESS) && (kernel == NULL)) {
        error = fail(CGSHIM_ERROR_INVALID, "a call needs a name");
    }
    if (error == CGSHIM_SUCCESS) {
        error = open_region(name, &region);
    }
    if (error != CGSHIM_SUCCESS) {
        return error;
    }
    if (cgs_buffers_find(&region->recording, kernel, launch, argument,
                         &found)) {
        cgs_verify_mark(region, &found);
        answer(buffer, &found, sizeof(found));
    } else {
        error = fail_buffer(region, kernel, launch, argument);
    }
    close_region(region);
    return error;
}
