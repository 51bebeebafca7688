/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entering and leaving the simulated driver: the lock, counts of calls,
 * injected errors, handles, per-thread state, process life.
 */
#include "sim.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SIM_HANDLE_STEP 16u

/* Count of the calls of one function in all its versions. */
typedef struct sim_bare {
    struct sim_bare *next;
    char             name[64];
    uint64_t         count;
} sim_bare_t;

/* One entry of SIM_FAIL. */
typedef struct sim_failure {
    struct sim_failure *next;
    char                name[64];
    uint64_t            first;
    bool                ever_after;
    CUresult            code;
} sim_failure_t;

struct sim_counter {
    struct sim_counter *next;
    char               *name;
    uint64_t            count;
};

typedef struct {
    void   **slots;
    size_t   num, max;
    size_t  *freed; /* a stack of slots */
    size_t   num_freed, max_freed;
} sim_registry_t;

/* All below is guarded by sim_lock, but for the atomics. */
static pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  sim_cond;
static sim_site_t     *sim_sites;
static sim_bare_t     *sim_bares;
static sim_failure_t  *sim_failures;
static sim_counter_t  *sim_kernels;
static uint64_t        sim_copies, sim_sets;
static sim_registry_t  sim_registries[SIM_KIND_LAST];
static uint64_t        sim_random_state;
static bool            sim_is_init;
static atomic_bool     sim_is_exiting;
static atomic_bool     sim_is_forked;
static atomic_uint_fast64_t sim_last_uid;

static pthread_once_t  sim_config_once = PTHREAD_ONCE_INIT;
static sim_config_t    sim_config_value;
static pthread_key_t   sim_thread_key;

static __thread sim_thread_t sim_thread_state;

/* ---------------------------------------------------------- memory */

void *sim_alloc(size_t size)
{
    void *result = calloc(1, size ? size : 1);

    if (result == NULL) {
        fprintf(stderr, "simulated driver: out of memory\n");
        abort();
    }
    return result;
}

void *sim_copy_of(const void *data, size_t size)
{
    void *result = sim_alloc(size);

    if (size > 0) {
        memcpy(result, data, size);
    }
    return result;
}

void *sim_grow(void *array, size_t num, size_t *max, size_t element)
{
    void *result;

    if (num < *max) {
        return array;
    }

    *max   = (*max == 0) ? 8 : *max * 2;
    result = realloc(array, *max * element);
    if (result == NULL) {
        fprintf(stderr, "simulated driver: out of memory\n");
        abort();
    }
    return result;
}

uint64_t sim_uid(void)
{
    return atomic_fetch_add(&sim_last_uid, 1) + 1;
}

/* SplitMix64: good enough spread from any seed, zero included. */
uint32_t sim_random(uint32_t below)
{
    uint64_t z;

    z = (sim_random_state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z = z ^ (z >> 31);
    return (uint32_t)((z >> 32) % below);
}

/* ---------------------------------------------------------- environment */

static long long sim_env_number(const char *name, long long otherwise)
{
    const char *text = getenv(name);
    char       *end;
    long long   value;

    if ((text == NULL) || (*text == '\0')) {
        return otherwise;
    }

    value = strtoll(text, &end, 0);
    if (*end != '\0') {
        fprintf(stderr, "simulated driver: %s=%s is not a number\n", name,
                text);
        return otherwise;
    }
    return value;
}

/* One fn:n[+][:code] of SIM_FAIL. */
static void sim_failure_parse(char *item)
{
    sim_failure_t *failure = sim_alloc(sizeof(*failure));
    char          *colon   = strchr(item, ':');
    char          *end;

    failure->first = 1;
    failure->code  = CUDA_ERROR_OUT_OF_MEMORY;
    if (colon != NULL) {
        *colon         = '\0';
        failure->first = strtoull(colon + 1, &end, 10);
        if (*end == '+') {
            failure->ever_after = true;
            ++end;
        }
        if (*end == ':') {
            failure->code = (CUresult)strtol(end + 1, &end, 10);
        }
        if (*end != '\0') {
            fprintf(stderr, "simulated driver: SIM_FAIL: what is '%s'?\n",
                    end);
        }
    }
    snprintf(failure->name, sizeof(failure->name), "%s", item);
    failure->next = sim_failures;
    sim_failures  = failure;
}

static void sim_failures_parse(const char *text)
{
    char *copy, *item, *place;

    copy = sim_copy_of(text, strlen(text) + 1);
    for (item = strtok_r(copy, ",", &place); item != NULL;
         item = strtok_r(NULL, ",", &place)) {
        sim_failure_parse(item);
    }
    free(copy);
}

static void sim_config_read(void)
{
    sim_config_t       *config = &sim_config_value;
    pthread_condattr_t  attr;
    long long           devices;

    config->seed           = (uint64_t)sim_env_number("SIM_SEED", 1);
    config->eager          = sim_env_number("SIM_EAGER", 0) != 0;
    config->worker         = sim_env_number("SIM_WORKER", 0) != 0;
    config->poison         = sim_env_number("SIM_POISON", 0) != 0;
    config->protect        = sim_env_number("SIM_PROTECT", 0) != 0;
    config->self_dlsym     = sim_env_number("SIM_SELF_DLSYM", 0) != 0;
    config->driver_version = (int)sim_env_number("SIM_DRIVER_VERSION", 13000);
    config->memory = (size_t)sim_env_number("SIM_MEMORY_MB", 4096) << 20;
    config->launch_ns = (uint64_t)sim_env_number("SIM_LAUNCH_NS", 0);
    config->stall_ns = (uint64_t)sim_env_number("SIM_STALL_NS", 0);
    config->kernel_ns = (uint64_t)sim_env_number("SIM_KERNEL_NS", 0);
    config->report = getenv("SIM_REPORT");
    config->plant  = getenv("SIM_PLANT");
    config->export_table = getenv("SIM_EXPORT_TABLE");

    devices             = sim_env_number("SIM_DEVICES", 1);
    config->num_devices = (devices < 0) ? 0 :
                          (devices > SIM_MAX_DEVICES) ? SIM_MAX_DEVICES :
                                                        (int)devices;
    if (getenv("SIM_FAIL") != NULL) {
        sim_failures_parse(getenv("SIM_FAIL"));
    }

    sim_random_state = config->seed * 0x2545f4914f6cdd1dull;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&sim_cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool sim_is_planted(const char *what)
{
    return (sim_config()->plant != NULL) && !strcmp(sim_config()->plant, what);
}

const sim_config_t *sim_config(void)
{
    pthread_once(&sim_config_once, sim_config_read);
    return &sim_config_value;
}

void *sim_self(const char *name, void *fn)
{
    static _Atomic(void *) self;
    void                  *handle;
    Dl_info                info;
    void                  *found;

    if (!sim_config()->self_dlsym) {
        return fn;
    }

    handle = atomic_load(&self);
    if (handle == NULL) {
        if (dladdr((void *)&sim_self, &info) == 0) {
            return fn;
        }
        handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        atomic_store(&self, handle);
    }
    found = (handle != NULL) ? dlsym(handle, name) : NULL;
    return (found != NULL) ? found : fn;
}

/* ---------------------------------------------------------- lock */

/* A child made by fork may find the lock taken for ever; what it may still
 * call needs no lock, since it has one thread and no tasks. */
void sim_lock_take(void)
{
    if (!atomic_load(&sim_is_forked)) {
        pthread_mutex_lock(&sim_lock);
    }
}

void sim_lock_drop(void)
{
    if (!atomic_load(&sim_is_forked)) {
        pthread_mutex_unlock(&sim_lock);
    }
}

void sim_lock_wait(unsigned ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec  += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&sim_cond, &sim_lock, &until);
}

void sim_lock_wake(void)
{
    pthread_cond_broadcast(&sim_cond);
}

/* ---------------------------------------------------------- threads */

static void sim_thread_end(void *arg)
{
    sim_thread_t *thread = arg;

    if (atomic_load(&sim_is_exiting) || atomic_load(&sim_is_forked)) {
        return;
    }
    sim_lock_take();
    sim_stream_thread_end(thread->uid);
    sim_lock_drop();
}

sim_thread_t *sim_thread(void)
{
    sim_thread_t *thread = &sim_thread_state;

    if (thread->uid == 0) {
        thread->uid          = sim_uid();
        thread->capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        pthread_setspecific(sim_thread_key, thread);
    }
    return thread;
}

/* ---------------------------------------------------------- handles */

/* A real driver may crash where a handle is dead; so does this one if asked to,
 * and gives no handle a second time then. */
static bool sim_is_strict(void)
{
    static int strict = -1;

    if (strict < 0) {
        strict = getenv("SIM_STRICT") != NULL;
    }
    return strict;
}

void sim_handle_is_dead(const char *what)
{
    if (sim_is_strict()) {
        fprintf(stderr, "sim: %s is dead\n", what);
        abort();
    }
}

/* Values of no kind look like those of another or like an address, so that
 * whoever mixes them up, or reads through one, is found out. */
static uintptr_t sim_handle_base(sim_kind_t kind)
{
    return (uintptr_t)0x00c0000000000000ull + ((uintptr_t)(kind + 1) << 40);
}

void *sim_handle_new(sim_kind_t kind, void *object)
{
    sim_registry_t *registry = &sim_registries[kind];
    size_t          slot;

    if ((registry->num_freed > 0) && !sim_is_strict()) {
        slot = registry->freed[--registry->num_freed];
    } else {
        registry->slots = sim_grow(registry->slots, registry->num,
                                   &registry->max, sizeof(void *));
        slot            = registry->num++;
    }
    registry->slots[slot] = object;
    return (void *)(sim_handle_base(kind) + (slot + 1) * SIM_HANDLE_STEP);
}

static bool sim_handle_slot(sim_kind_t kind, const void *handle, size_t *slot)
{
    uintptr_t offset = (uintptr_t)handle - sim_handle_base(kind);

    if ((offset % SIM_HANDLE_STEP != 0) || (offset == 0) ||
        (offset / SIM_HANDLE_STEP > sim_registries[kind].num)) {
        return false;
    }
    *slot = offset / SIM_HANDLE_STEP - 1;
    return true;
}

void *sim_handle_get(sim_kind_t kind, const void *handle)
{
    size_t slot;

    if (!sim_handle_slot(kind, handle, &slot)) {
        return NULL;
    }
    if ((sim_registries[kind].slots[slot] == NULL) && sim_is_strict()) {
        fprintf(stderr, "sim: a dead handle of kind %d: %p\n", (int)kind,
                handle);
        abort();
    }
    return sim_registries[kind].slots[slot];
}

void sim_handle_free(sim_kind_t kind, const void *handle)
{
    sim_registry_t *registry = &sim_registries[kind];
    size_t          slot;

    if (!sim_handle_slot(kind, handle, &slot) ||
        (registry->slots[slot] == NULL)) {
        return;
    }
    registry->slots[slot] = NULL;
    registry->freed       = sim_grow(registry->freed, registry->num_freed,
                                     &registry->max_freed, sizeof(size_t));
    registry->freed[registry->num_freed++] = slot;
}

size_t sim_handle_slots(sim_kind_t kind)
{
    return sim_registries[kind].num;
}

void *sim_handle_at(sim_kind_t kind, size_t slot)
{
    return sim_registries[kind].slots[slot];
}

/* ---------------------------------------------------------- counts */

void sim_count_copy(void)
{
    ++sim_copies;
}

void sim_count_set(void)
{
    ++sim_sets;
}

sim_counter_t *sim_count_kernel_get(const char *name)
{
    sim_counter_t **place;

    /* Kept in order of names, as the report has them. */
    for (place = &sim_kernels; *place != NULL; place = &(*place)->next) {
        int order = strcmp((*place)->name, name);

        if (order == 0) {
            return *place;
        } else if (order > 0) {
            break;
        }
    }

    sim_counter_t *counter = sim_alloc(sizeof(*counter));

    counter->name = sim_copy_of(name, strlen(name) + 1);
    counter->next = *place;
    *place        = counter;
    return counter;
}

void sim_count_kernel(sim_counter_t *counter)
{
    ++counter->count;
}

/* The name without _v2, _ptsz, _ptds. */
static void sim_bare_name(const char *name, char *bare, size_t size)
{
    char  *end;
    size_t length;

    snprintf(bare, size, "%s", name);
    length = strlen(bare);
    if ((length > 5) && ((strcmp(bare + length - 5, "_ptsz") == 0) ||
                         (strcmp(bare + length - 5, "_ptds") == 0))) {
        bare[length - 5] = '\0';
    }
    end = strrchr(bare, '_');
    if ((end != NULL) && (end[1] == 'v')) {
        *end = '\0';
    }
}

static void sim_site_register(sim_site_t *site)
{
    char        name[64];
    sim_bare_t *bare;
    sim_site_t **place;

    sim_bare_name(site->name, name, sizeof(name));
    for (bare = sim_bares; bare != NULL; bare = bare->next) {
        if (strcmp(bare->name, name) == 0) {
            break;
        }
    }
    if (bare == NULL) {
        bare = sim_alloc(sizeof(*bare));
        memcpy(bare->name, name, sizeof(name));
        bare->next = sim_bares;
        sim_bares  = bare;
    }
    site->bare = bare;

    for (place = &sim_sites; *place != NULL; place = &(*place)->next) {
        if (strcmp((*place)->name, site->name) > 0) {
            break;
        }
    }
    site->next = *place;
    *place     = site;
}

static CUresult sim_site_count(sim_site_t *site)
{
    const sim_failure_t *failure;
    uint64_t             n;

    if (site->bare == NULL) {
        sim_site_register(site);
    }
    ++site->count;
    n = ++site->bare->count;
    for (failure = sim_failures; failure != NULL; failure = failure->next) {
        if ((strcmp(failure->name, site->bare->name) == 0) &&
            ((failure->first == n) ||
             (failure->ever_after && (n > failure->first)))) {
            return failure->code;
        }
    }
    return CUDA_SUCCESS;
}

/* ---------------------------------------------------------- entries */

static CUresult sim_enter_check(unsigned needs)
{
    sim_ctx_t *ctx;
    CUresult   status;

    if (needs & SIM_ANYTIME) {
        return CUDA_SUCCESS;
    } else if (atomic_load(&sim_is_exiting)) {
        return CUDA_ERROR_DEINITIALIZED;
    } else if (!sim_is_init) {
        return CUDA_ERROR_NOT_INITIALIZED;
    } else if (sim_thread()->is_callback) {
        return CUDA_ERROR_NOT_PERMITTED;
    }

    sim_sched_step();
    if (needs & SIM_CTX) {
        status = sim_ctx_current(&ctx);
        if (status != CUDA_SUCCESS) {
            return status;
        }
    }
    return (needs & SIM_UNSAFE) ? sim_capture_check_unsafe() : CUDA_SUCCESS;
}

CUresult sim_enter(sim_site_t *site, unsigned needs)
{
    CUresult status;

    if (atomic_load(&sim_is_forked)) {
        return (needs & SIM_ANYTIME) ? CUDA_SUCCESS :
                                       CUDA_ERROR_NOT_INITIALIZED;
    }

    sim_time_stall(sim_config()->stall_ns, site->name);
    sim_lock_take();
    status = sim_site_count(site);
    if (status == CUDA_SUCCESS) {
        status = sim_enter_check(needs);
    }
    if (status != CUDA_SUCCESS) {
        sim_lock_drop();
    } else {
        sim_time_enter(site->name);
    }
    return status;
}

CUresult sim_leave(CUresult status)
{
    if (sim_config()->eager && sim_is_init && !sim_thread()->is_callback &&
        !atomic_load(&sim_is_forked)) {
        sim_sched_drain();
    }
    sim_time_leave();
    sim_lock_drop();
    return status;
}

/* ---------------------------------------------------------- life */

static void sim_forked_child(void)
{
    atomic_store(&sim_is_forked, true);
}

/* Registered by cuInit: what registered later may still use the driver. */
static void sim_at_exit(void)
{
    if (atomic_load(&sim_is_forked)) {
        return;
    }
    sim_lock_take();
    if (!sim_thread()->is_callback) {
        sim_sched_drain();
    }
    atomic_store(&sim_is_exiting, true);
    sim_lock_drop();
    sim_sched_stop();
}

static CUresult sim_init(unsigned flags)
{
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (atomic_load(&sim_is_exiting)) {
        return CUDA_ERROR_DEINITIALIZED;
    } else if (sim_config()->num_devices == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }

    if (!sim_is_init) {
        sim_is_init = true;
        pthread_atfork(NULL, NULL, sim_forked_child);
        atexit(sim_at_exit);
        sim_sched_start();
    }
    return CUDA_SUCCESS;
}

SIM_API CUresult CUDAAPI cuInit(unsigned int Flags)
{
    static sim_site_t site = {.name = "cuInit"};
    CUresult          status;
    int               version;
    CUresult (*get)(int *);

    /* Forked before the parent's cuInit, a child is as good as any process;
     * afterwards CUDA is lost to it. */
    if (atomic_load(&sim_is_forked)) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (sim_config()->self_dlsym) {
        get = (CUresult (*)(int *))sim_self("cuDriverGetVersion",
                                                 (void *)cuDriverGetVersion);
        get(&version);
    }
    status = sim_enter(&site, SIM_ANYTIME);
    return (status == CUDA_SUCCESS) ? sim_leave(sim_init(Flags)) : status;
}

static void sim_report_name(const char *pattern, char *name, size_t size)
{
    const char *percent = strstr(pattern, "%p");

    if (percent == NULL) {
        snprintf(name, size, "%s", pattern);
    } else {
        snprintf(name, size, "%.*s%ld%s", (int)(percent - pattern), pattern,
                 (long)getpid(), percent + 2);
    }
}

static void sim_report_write(void)
{
    const sim_site_t    *site;
    const sim_counter_t *kernel;
    char                 name[4096];
    FILE                *file;

    sim_report_name(sim_config()->report, name, sizeof(name));
    file = fopen(name, "w");
    if (file == NULL) {
        fprintf(stderr, "simulated driver: %s: %s\n", name, strerror(errno));
        return;
    }
    for (site = sim_sites; site != NULL; site = site->next) {
        fprintf(file, "call %s %" PRIu64 "\n", site->name, site->count);
    }
    fprintf(file, "copy %" PRIu64 "\n", sim_copies);
    fprintf(file, "graphs %zu\n", sim_exec_most());
    for (kernel = sim_kernels; kernel != NULL; kernel = kernel->next) {
        if (kernel->count > 0) {
            fprintf(file, "kernel %s %" PRIu64 "\n", kernel->name,
                    kernel->count);
        }
    }
    fprintf(file, "set %" PRIu64 "\n", sim_sets);
    fclose(file);
}

static void sim_lists_free(void)
{
    while (sim_failures != NULL) {
        sim_failure_t *next = sim_failures->next;

        free(sim_failures);
        sim_failures = next;
    }
}

static void __attribute__((constructor)) sim_load(void)
{
    pthread_key_create(&sim_thread_key, sim_thread_end);
}

static void __attribute__((destructor)) sim_unload(void)
{
    if (atomic_load(&sim_is_forked)) {
        return;
    }
    atomic_store(&sim_is_exiting, true);
    pthread_key_delete(sim_thread_key);
    sim_lock_take();
    if (sim_config()->report != NULL) {
        sim_report_write();
    }
    sim_lists_free();
    sim_lock_drop();
}
