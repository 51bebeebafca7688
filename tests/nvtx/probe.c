/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sink that writes down what it hears.
 */
#define _GNU_SOURCE
#include "probe.h"

#include "log.h"
#include "nvtx.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE_MAX_IDS 4096

/* Guards all below but the counters. */
static pthread_mutex_t probe_lock = PTHREAD_MUTEX_INITIALIZER;
static char            probe_lines[1 << 20];
static size_t          probe_length;
static char            probe_taken[1 << 20];
static uint64_t        probe_ids[PROBE_MAX_IDS];
static unsigned        probe_num_ids;

static atomic_ulong probe_events;
static atomic_uint  probe_num_begins;
static atomic_bool  probe_quiet;

/* The linker's --wrap gives these the calls of the code under test. */
static atomic_bool probe_starved;
void               *__real_malloc(size_t size);
void               *__real_calloc(size_t count, size_t size);
void               *__wrap_malloc(size_t size);
void               *__wrap_calloc(size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
    errno = ENOMEM;
    return atomic_load(&probe_starved) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    errno = ENOMEM;
    return atomic_load(&probe_starved) ? NULL : __real_calloc(count, size);
}

static void probe_line(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* With probe_lock held. */
static void probe_line(const char *format, ...)
{
    const char *file = getenv("PROBE_FILE");
    size_t start     = probe_length;
    va_list args;
    int fd;

    va_start(args, format);
    probe_length += (size_t)vsnprintf(probe_lines + start,
                                      sizeof(probe_lines) - start, format,
                                      args);
    va_end(args);
    if (probe_length >= sizeof(probe_lines)) {
        abort();
    }

    if (file != NULL) {
        fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        (void)!write(fd, probe_lines + start, probe_length - start);
        close(fd);
    }
}

static bool probe_hears(void)
{
    atomic_fetch_add_explicit(&probe_events, 1, memory_order_relaxed);
    if (atomic_load_explicit(&probe_quiet, memory_order_relaxed)) {
        return false;
    }
    errno = EDOM; /* a sink may leave anything there */
    return true;
}

static const char *probe_domain(const char *domain)
{
    return (domain != NULL) ? domain : "-";
}

/* With probe_lock held. */
static unsigned probe_id(uint64_t id)
{
    unsigned i;

    for (i = 0; i < probe_num_ids; ++i) {
        if (probe_ids[i] == id) {
            return i + 1;
        }
    }
    if (probe_num_ids == PROBE_MAX_IDS) {
        abort();
    }
    probe_ids[probe_num_ids] = id;
    return ++probe_num_ids;
}

static void probe_begin(void)
{
    atomic_fetch_add(&probe_num_begins, 1);
}

static void probe_push(const char *domain, const char *text)
{
    if (probe_hears()) {
        pthread_mutex_lock(&probe_lock);
        probe_line("push %s %s\n", probe_domain(domain), text);
        pthread_mutex_unlock(&probe_lock);
    }
}

static void probe_pop(const char *domain)
{
    if (probe_hears()) {
        pthread_mutex_lock(&probe_lock);
        probe_line("pop %s\n", probe_domain(domain));
        pthread_mutex_unlock(&probe_lock);
    }
}

static void probe_start(const char *domain, const char *text, uint64_t id)
{
    if (probe_hears()) {
        pthread_mutex_lock(&probe_lock);
        probe_line("start %s %s #%u\n", probe_domain(domain), text,
                   probe_id(id));
        pthread_mutex_unlock(&probe_lock);
    }
}

static void probe_end(uint64_t id)
{
    if (probe_hears()) {
        pthread_mutex_lock(&probe_lock);
        probe_line("end #%u\n", probe_id(id));
        pthread_mutex_unlock(&probe_lock);
    }
}

void probe_setup(void)
{
    static const cgs_range_sink_t sink = {
        .begin = probe_begin,
        .push  = probe_push,
        .pop   = probe_pop,
        .start = probe_start,
        .end   = probe_end
    };

    cgs_nvtx_setup(&sink);
}

const char *probe_take(void)
{
    pthread_mutex_lock(&probe_lock);
    memcpy(probe_taken, probe_lines, probe_length);
    probe_taken[probe_length] = '\0';
    probe_length              = 0;
    pthread_mutex_unlock(&probe_lock);
    return probe_taken;
}

unsigned long probe_count(bool quiet)
{
    atomic_store(&probe_quiet, quiet);
    return atomic_load(&probe_events);
}

unsigned probe_begins(void)
{
    return atomic_load(&probe_num_begins);
}

void probe_starve(bool starve)
{
    atomic_store(&probe_starved, starve);
}

void probe_log_to(const char *file)
{
    cgs_log_setup(CGS_LOG_WARN, file);
}

__attribute__((constructor)) static void probe_load(void)
{
    if (getenv("PROBE_AUTO") != NULL) {
        probe_setup();
    }
}
