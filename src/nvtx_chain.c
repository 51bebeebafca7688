/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVTX tool of the user's own.
 *
 * The environment of a process under cgshim names cgshim as NVTX tool, and
 * the user's in a variable of our own, so that a child finds both: under
 * cgshim as here, and without it through the initialisation in nvtx.c.
 */
#define _GNU_SOURCE
#include "nvtx_chain.h"
#include "log.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CGS_NVTX_PATH_NAME  "NVTX_INJECTION64_PATH"
#define CGS_NVTX_CHAIN_NAME "_CGSHIM_NVTX_CHAIN"

/* Written by the constructor. */
static bool       cgs_nvtx_chain_is_set_up;
static const char *cgs_nvtx_chain_path; /* NULL: there is no tool */
/* Read by leak checkers only: setenv() lets go of the array. */
static char       **cgs_nvtx_chain_environ __attribute__((used));

static _Atomic(void *) cgs_nvtx_chain_handle;
static atomic_bool     cgs_nvtx_chain_blamed;

static bool cgs_nvtx_env_is(const char *entry, const char *name)
{
    size_t length = strlen(name);

    return (strncmp(entry, name, length) == 0) && (entry[length] == '=');
}

/* NULL where it is not set. Programs with a getenv of their own, as shells
 * are, need not be ready for it while constructors run. */
static const char *cgs_nvtx_env_get(const char *name)
{
    char **entry;

    for (entry = environ; (entry != NULL) && (*entry != NULL); ++entry) {
        if (cgs_nvtx_env_is(*entry, name)) {
            return *entry + strlen(name) + 1;
        }
    }
    return NULL;
}

static char *cgs_nvtx_env_entry(const char *name, const char *value)
{
    size_t name_length = strlen(name);
    size_t value_size  = strlen(value) + 1;
    char *entry        = malloc(name_length + 1 + value_size);

    if (entry != NULL) {
        memcpy(entry, name, name_length);
        entry[name_length] = '=';
        memcpy(entry + name_length + 1, value, value_size);
    }
    return entry;
}

/*
 * Gives the process a new environment rather than calling setenv: shells
 * export a setenv of their own, which would run before their main.
 * `chain` may be NULL. Returns 0, or -ENOMEM.
 */
static int cgs_nvtx_env_replace(const char *path, const char *chain)
{
    size_t count = 0;
    char **old, **entries, *entry;

    for (old = environ; (old != NULL) && (*old != NULL); ++old) {
        ++count;
    }
    entries = malloc((count + 3) * sizeof(*entries));
    if (entries == NULL) {
        goto err;
    }

    count = 0;
    for (old = environ; (old != NULL) && (*old != NULL); ++old) {
        if (!cgs_nvtx_env_is(*old, CGS_NVTX_PATH_NAME) &&
            !cgs_nvtx_env_is(*old, CGS_NVTX_CHAIN_NAME)) {
            entries[count++] = *old;
        }
    }

    if (chain != NULL) {
        entry = cgs_nvtx_env_entry(CGS_NVTX_CHAIN_NAME, chain);
        if (entry == NULL) {
            goto err_free_entries;
        }
        cgs_nvtx_chain_path = entry + sizeof(CGS_NVTX_CHAIN_NAME);
        entries[count++]    = entry;
    }
    entry = cgs_nvtx_env_entry(CGS_NVTX_PATH_NAME, path);
    if (entry == NULL) {
        goto err_free_chain;
    }
    entries[count++] = entry;
    entries[count]   = NULL;

    cgs_nvtx_chain_environ = entries;
    environ                = entries;
    return 0;

err_free_chain:
    if (chain != NULL) {
        free(entries[count - 1]);
        cgs_nvtx_chain_path = NULL;
    }
err_free_entries:
    free(entries);
err:
    return -ENOMEM;
}

static const char *cgs_nvtx_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return (slash != NULL) ? slash + 1 : path;
}

/* By name, so that another copy of cgshim counts too: two that chain to each
 * other would never end. */
static bool cgs_nvtx_is_self(const char *path, const char *self)
{
    return strcmp(cgs_nvtx_base_name(path), cgs_nvtx_base_name(self)) == 0;
}

void cgs_nvtx_chain_setup(void)
{
    const char *path = cgs_nvtx_env_get(CGS_NVTX_PATH_NAME);
    char absolute[PATH_MAX];
    const char *self;
    Dl_info info;

    cgs_nvtx_chain_is_set_up = true;
    if ((dladdr((void*)cgs_nvtx_chain_setup, &info) == 0) ||
        (info.dli_fname == NULL)) {
        return;
    }

    /* A child may start in another directory. */
    self = info.dli_fname;
    if ((*self != '/') && (realpath(self, absolute) != NULL)) {
        self = absolute;
    }

    if ((path != NULL) && cgs_nvtx_is_self(path, self)) {
        path = cgs_nvtx_env_get(CGS_NVTX_CHAIN_NAME);
        if ((path != NULL) && cgs_nvtx_is_self(path, self)) {
            path = NULL;
        }
    }
    (void)cgs_nvtx_env_replace(self, path);
}

/* The user's tool, or NULL. One look at the environment where cgshim is off
 * in this process, whose parent's environment still names us. */
static const char *cgs_nvtx_chain_tool(void)
{
    const char *path = cgs_nvtx_chain_is_set_up ?
                       cgs_nvtx_chain_path :
                       cgs_nvtx_env_get(CGS_NVTX_CHAIN_NAME);

    return ((path != NULL) && (*path != '\0')) ? path : NULL;
}

void cgs_nvtx_chain_blame(const char *reason)
{
    const char *path = cgs_nvtx_chain_tool();

    if (!atomic_exchange(&cgs_nvtx_chain_blamed, true)) {
        cgs_log(CGS_LOG_WARN, "NVTX tool %s: %s; going on without it",
                (path != NULL) ? path : "", reason);
    }
}

/* Opened by every DSO that finds it closed, instead of under a lock: the
 * tool's constructors may use NVTX themselves, in threads of their own too. */
bool cgs_nvtx_chain_open(void)
{
    const char *path = cgs_nvtx_chain_tool();
    void *handle     = atomic_load(&cgs_nvtx_chain_handle);
    void *other      = NULL;
    const char *error;

    if ((handle != NULL) || (path == NULL)) {
        return handle != NULL;
    }

    handle = dlopen(path, RTLD_LAZY); /* as NVTX opens its tools */
    if (handle == NULL) {
        error = dlerror();
        cgs_nvtx_chain_blame((error != NULL) ? error : "cannot be opened");
        return false;
    }
    if (!atomic_compare_exchange_strong(&cgs_nvtx_chain_handle, &other,
                                        handle)) {
        dlclose(handle);
    }
    return true;
}

void *cgs_nvtx_chain_symbol(const char *name)
{
    return dlsym(atomic_load(&cgs_nvtx_chain_handle), name);
}
