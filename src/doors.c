/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds libcuda, fills the entry table with its functions, and answers
 * lookups with our entries in place of them.
 *
 * The map goes by address, never by name alone: one name means several
 * functions by version and stream flavour, and only the driver knows which it
 * gave out. An address of libcuda that the table does not know gets a spare
 * entry, which is a barrier.
 *
 * Nothing here looks up a cu* name in the global scope: our own exported
 * entries come first there.
 */
#define _GNU_SOURCE
#include "doors.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* else it would end the process */
#include <uthash.h>

#include "barrier.h"
#include "config.h"
#include "entries.h"
#include "life.h"
#include "log.h"

#define ENTRY_NONE (-1)

/* On functions that run before a sanitizer has its memory in place. */
#define EARLY \
    __attribute__((no_sanitize("address"), no_sanitize("thread"), \
                   no_sanitize("undefined")))

typedef void *(*dlsym_t)(void *handle, const char *name);
typedef void *(*dlvsym_t)(void *handle, const char *name, const char *version);

/* Assembly jumps through these two; cgs_door_find_libc() sets them. */
extern void *cgs_libc_dlsym;
extern void *cgs_libc_dlvsym;

/* Answer of the lookups below: ask libc in the program's own name. */
char cgs_door_forward;

/* The exported entries, and the first spare one. */
#define CGS_ENTRY(_index, _name, _kind) \
    extern void cgs_entry_##_index(void) __asm__(#_name);
#include "entries.def"
#undef CGS_ENTRY
extern char cgs_spare_entries[];

static void *const entry_code[CGS_NUM_ENTRIES] = {
#define CGS_ENTRY(_index, _name, _kind) (void *)cgs_entry_##_index,
#include "entries.def"
#undef CGS_ENTRY
};

static const struct {
    const char *name;
    cgs_kind_t kind;
} entry_info[CGS_NUM_ENTRIES] = {
#define CGS_ENTRY(_index, _name, _kind) {#_name, CGS_KIND_##_kind},
#include "entries.def"
#undef CGS_ENTRY
};

/* A driver function's address and the entry that stands for it. */
typedef struct {
    void           *address;
    int            index;
    UT_hash_handle hh;
} address_t;

/* libcuda, once found; written under the lock, `found` last. */
static struct {
    pthread_mutex_t lock;
    atomic_bool     found;
    void            *handle;
    uintptr_t       begin, end;  /* its load segments */
    address_t       *addresses;  /* uthash by address */
    unsigned        num_spare;   /* spare entries given out */
    const char      *spare_names[CGS_NUM_SPARE];
} driver = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

static void *libc_dlsym(void *handle, const char *name)
{
    return ((dlsym_t)cgs_libc_dlsym)(handle, name);
}

/*
 * libc's own dlvsym cannot be had by name: the name is ours. It is read from
 * the symbol table of the object that defines it.
 *
 * The first to ask may be a sanitizer that is just setting out: its versions of
 * strcmp, dl_iterate_phdr and the like are not ready yet. So no function that
 * might be another's is called on the way there, and nothing is instrumented.
 */
typedef struct {
    const char *name;
    void       *address; /* out */
} libc_symbol_t;

EARLY static size_t num_dynamic_symbols(const ElfW(Word) *hash,
                                        const uint32_t *gnu_hash)
{
    uint32_t       num_buckets, first, last = 0, i;
    const uint32_t *buckets, *chain;

    if (hash != NULL) {
        return hash[1];
    }

    num_buckets = gnu_hash[0];
    first       = gnu_hash[1];
    buckets     = (const uint32_t *)((const ElfW(Addr) *)(gnu_hash + 4) +
                                     gnu_hash[2]);
    chain       = buckets + num_buckets;
    for (i = 0; i < num_buckets; ++i) {
        last = buckets[i] > last ? buckets[i] : last;
    }
    if (last < first) {
        return first;
    }
    while (!(chain[last - first] & 1)) {
        ++last;
    }
    return last + 1;
}

/* Whether a string begins with a prefix. */
EARLY static bool begins_with(const char *string, const char *prefix)
{
    while ((*prefix != '\0') && (*string == *prefix)) {
        ++string;
        ++prefix;
    }
    return *prefix == '\0';
}

EARLY static const char *base_name(const char *path)
{
    const char *base = path;

    for (; *path != '\0'; ++path) {
        if (*path == '/') {
            base = path + 1;
        }
    }
    return base;
}

/* Tables of a loaded object; glibc has made most of these pointers absolute. */
EARLY static const void *dynamic_pointer(const struct link_map *object,
                                         const ElfW(Dyn) *entry)
{
    ElfW(Addr) value = entry->d_un.d_ptr;

    return (const void *)(value < object->l_addr ? value + object->l_addr :
                                                   value);
}

EARLY static void find_symbol(const struct link_map *object,
                              libc_symbol_t *symbol)
{
    const ElfW(Sym)  *symbols  = NULL;
    const char       *strings  = NULL;
    const ElfW(Word) *hash     = NULL;
    const uint32_t   *gnu_hash = NULL;
    const ElfW(Dyn)  *entry;
    size_t           i, num;

    for (entry = object->l_ld; entry->d_tag != DT_NULL; ++entry) {
        switch (entry->d_tag) {
        case DT_SYMTAB:
            symbols = dynamic_pointer(object, entry);
            break;
        case DT_STRTAB:
            strings = dynamic_pointer(object, entry);
            break;
        case DT_HASH:
            hash = dynamic_pointer(object, entry);
            break;
        case DT_GNU_HASH:
            gnu_hash = dynamic_pointer(object, entry);
            break;
        default:
            break;
        }
    }
    if ((symbols == NULL) || (strings == NULL) ||
        ((hash == NULL) && (gnu_hash == NULL))) {
        return;
    }

    num = num_dynamic_symbols(hash, gnu_hash);
    for (i = 0; i < num; ++i) {
        if ((symbols[i].st_shndx != SHN_UNDEF) &&
            (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC) &&
            begins_with(strings + symbols[i].st_name, symbol->name) &&
            begins_with(symbol->name, strings + symbols[i].st_name)) {
            symbol->address = (void *)(object->l_addr + symbols[i].st_value);
            return;
        }
    }
}

/* libc was there before any thread, so the list stands still up to it. */
EARLY static void find_in_libc(libc_symbol_t *symbol)
{
    const struct link_map *object;
    const char            *name;

    for (object = _r_debug.r_map;
         (object != NULL) && (symbol->address == NULL);
         object = object->l_next) {
        name = base_name(object->l_name);
        /* Before glibc 2.34 the dl functions lived in a library of their
         * own. */
        if (begins_with(name, "libc.so.") || begins_with(name, "libdl.so.")) {
            find_symbol(object, symbol);
        }
    }
}

/* Called by assembly before the first jump to libc's dlsym or dlvsym. */
void cgs_door_find_libc(void);
EARLY void cgs_door_find_libc(void)
{
    static const char *const versions[] = {
#if defined(__aarch64__)
        "GLIBC_2.34", "GLIBC_2.17", NULL
#else
        "GLIBC_2.34", "GLIBC_2.2.5", NULL
#endif
    };
    libc_symbol_t symbol     = {.name = "dlvsym"};
    void          *dlsym_p   = NULL;
    void          *dlvsym_p  = NULL;
    dlvsym_t      find;
    int           i;

    find_in_libc(&symbol);
    if (symbol.address == NULL) {
        abort(); /* no lookup of the program could ever be answered */
    }

    /* By RTLD_NEXT, so that another preloaded hook behind us is heard. */
    find = (dlvsym_t)symbol.address;
    for (i = 0; (versions[i] != NULL) && (dlsym_p == NULL); ++i) {
        dlsym_p  = find(RTLD_NEXT, "dlsym", versions[i]);
        dlvsym_p = find(RTLD_NEXT, "dlvsym", versions[i]);
    }
    if (dlsym_p == NULL) {
        symbol = (libc_symbol_t){.name = "dlsym"};
        find_in_libc(&symbol);
        dlsym_p = symbol.address;
    }
    if (dlsym_p == NULL) {
        abort();
    }
    __atomic_store_n(&cgs_libc_dlvsym, dlvsym_p != NULL ? dlvsym_p :
                     (void *)find, __ATOMIC_RELEASE);
    __atomic_store_n(&cgs_libc_dlsym, dlsym_p, __ATOMIC_RELEASE);
}

static void ensure_libc(void)
{
    /* The stub in assembly finds libc on any call, so make a harmless one
     * where C is about to use the pointers. */
    static atomic_bool done;

    if (!atomic_load_explicit(&done, memory_order_acquire)) {
        cgs_door_find_libc();
        atomic_store_explicit(&done, true, memory_order_release);
    }
}

/* The object that holds an address. */
typedef struct {
    uintptr_t  address;
    uintptr_t  begin, end; /* out */
    const char *path;      /* out: NULL if no object holds it */
} object_t;

static int visit_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    object_t  *object = arg;
    uintptr_t begin   = UINTPTR_MAX;
    uintptr_t end     = 0;
    bool      inside  = false;
    int       i;

    (void)size;
    for (i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t        first   = info->dlpi_addr + header->p_vaddr;

        if (header->p_type != PT_LOAD) {
            continue;
        }
        begin  = first < begin ? first : begin;
        end    = first + header->p_memsz > end ? first + header->p_memsz : end;
        inside = inside || ((object->address >= first) &&
                            (object->address < first + header->p_memsz));
    }
    if (!inside) {
        return 0;
    }
    object->begin = begin;
    object->end   = end;
    object->path  = info->dlpi_name;
    return 1;
}

static bool find_object(const void *address, object_t *object)
{
    *object = (object_t){.address = (uintptr_t)address};
    return dl_iterate_phdr(visit_object, object) == 1;
}

static bool is_libcuda(const object_t *object)
{
    return begins_with(base_name(object->path), "libcuda.so");
}

/* Under the lock, or once `found` was seen. */
static bool in_segments(const void *address)
{
    return ((uintptr_t)address >= driver.begin) &&
           ((uintptr_t)address < driver.end);
}

static bool in_driver(const void *address)
{
    return atomic_load_explicit(&driver.found, memory_order_acquire) &&
           in_segments(address);
}

/* Two names may share one function; the one that says more about it wins. */
static void add_address(void *address, int index)
{
    address_t *item;

    HASH_FIND_PTR(driver.addresses, &address, item);
    if (item != NULL) {
        if ((index < CGS_NUM_ENTRIES) && (item->index < CGS_NUM_ENTRIES) &&
            (entry_info[index].kind == CGS_KIND_WRAP)) {
            item->index = index;
        }
        return;
    }
    item = malloc(sizeof(*item));
    if (item == NULL) {
        return;
    }
    item->address = address;
    item->index   = index;
    HASH_ADD_PTR(driver.addresses, address, item);
    if (item->hh.tbl == NULL) {
        free(item);
    }
}

/* What libcuda has under each name of the table. Outside the lock: the
 * loader has a lock of its own, and constructors that run under it look up
 * driver functions too. */
static void *ask_loader(const object_t *object,
                        void *address[CGS_NUM_ENTRIES])
{
    void *handle = dlopen(object->path, RTLD_LAZY | RTLD_NOLOAD);
    int  i;

    for (i = 0; (handle != NULL) && (i < CGS_NUM_ENTRIES); ++i) {
        address[i] = libc_dlsym(handle, entry_info[i].name);
    }
    return handle;
}

/* Fill the table from libcuda. Called once, under the lock. */
static void learn(const object_t *object, void *handle,
                  void *const address[CGS_NUM_ENTRIES])
{
    int i;

    driver.handle = handle;
    driver.begin  = object->begin;
    driver.end    = object->end;
    for (i = 0; i < CGS_NUM_ENTRIES; ++i) {
        if ((address[i] == NULL) || !in_segments(address[i])) {
            __atomic_store_n(&cgs_real[i], (void *)cgs_missing,
                             __ATOMIC_RELAXED);
            continue;
        }
        __atomic_store_n(&cgs_real[i], address[i], __ATOMIC_RELAXED);
        add_address(address[i], i);
    }
    atomic_store_explicit(&driver.found, true, memory_order_release);
    cgs_log(CGS_LOG_DEBUG, "driver found in %s", object->path);
}

/* Learn libcuda from one of its addresses; false where it is not libcuda's. */
static bool learn_from(const void *address)
{
    void     *found[CGS_NUM_ENTRIES];
    object_t object;
    void     *handle;

    if (atomic_load_explicit(&driver.found, memory_order_acquire)) {
        return in_driver(address);
    }
    if (!find_object(address, &object) || !is_libcuda(&object)) {
        return false;
    }

    /* Outside the lock: reads files and may print. */
    cgs_life_start();
    handle = ask_loader(&object, found);
    if (handle == NULL) {
        cgs_life_stand_down("libcuda could not be opened");
        return false;
    }
    pthread_mutex_lock(&driver.lock);
    if (!atomic_load_explicit(&driver.found, memory_order_relaxed)) {
        learn(&object, handle, found);
        handle = NULL;
    }
    pthread_mutex_unlock(&driver.lock);
    if (handle != NULL) {
        dlclose(handle); /* another thread was first */
    }
    return in_driver(address);
}

/* A spare entry for an address of libcuda that the table does not know. */
static int take_spare(void *address, const char *name)
{
    unsigned n = driver.num_spare;

    if (n == CGS_NUM_SPARE) {
        return ENTRY_NONE;
    }
    driver.num_spare      = n + 1;
    driver.spare_names[n] = strdup(name);
    __atomic_store_n(&cgs_real[CGS_NUM_ENTRIES + n], address,
                     __ATOMIC_RELEASE);
    add_address(address, CGS_NUM_ENTRIES + (int)n);
    cgs_log(CGS_LOG_DEBUG, "%s is not in the table: treated as a barrier",
            name);
    return CGS_NUM_ENTRIES + (int)n;
}

void *cgs_door_map(void *address, const char *name)
{
    address_t *item;
    int       index;

    if ((address == NULL) || cgs_life_is_off() || !learn_from(address) ||
        cgs_life_is_off()) {
        return address;
    }

    pthread_mutex_lock(&driver.lock);
    HASH_FIND_PTR(driver.addresses, &address, item);
    index = item != NULL ? item->index : take_spare(address, name);
    pthread_mutex_unlock(&driver.lock);

    if (index == ENTRY_NONE) {
        /* Its calls would be seen by nobody, so nothing may be held back. */
        cgs_life_stand_down("the driver has more unknown functions than there "
                            "are spare entries");
        return address;
    }
    if (index < CGS_NUM_ENTRIES) {
        return entry_code[index];
    }
    return cgs_spare_entries +
           (size_t)(index - CGS_NUM_ENTRIES) * CGS_SPARE_SIZE;
}

bool cgs_door_has_driver(void)
{
    return atomic_load_explicit(&driver.found, memory_order_acquire);
}

bool cgs_door_has(unsigned index)
{
    return __atomic_load_n(&cgs_real[index], __ATOMIC_RELAXED) !=
           (void *)cgs_missing;
}

const char *cgs_door_name(unsigned index)
{
    const char *name;

    if (index < CGS_NUM_ENTRIES) {
        return entry_info[index].name;
    }
    name = driver.spare_names[index - CGS_NUM_ENTRIES];
    return name != NULL ? name : "?";
}

/* A driver function called through our exported symbol before any lookup:
 * the program is linked to libcuda. */
void *cgs_door_resolve(unsigned index);
void *cgs_door_resolve(unsigned index)
{
    void *handle, *address = NULL;

    ensure_libc();
    handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (handle != NULL) {
        address = libc_dlsym(handle, entry_info[index].name);
        if (address == NULL) {
            /* Any function will do to learn where libcuda is. */
            learn_from(libc_dlsym(handle, "cuInit"));
        }
        dlclose(handle);
    } else {
        address = libc_dlsym(RTLD_NEXT, entry_info[index].name);
    }
    if (address != NULL) {
        learn_from(address);
        return address;
    }
    return (void *)cgs_missing;
}

/* Every entry that is not PASS or WRAP comes here while something is open. */
void *cgs_door_barrier(unsigned index);
void *cgs_door_barrier(unsigned index)
{
    cgs_kind_t kind = index < CGS_NUM_ENTRIES ? entry_info[index].kind :
                                                CGS_KIND_BARRIER;

    cgs_barrier(index, kind);
    return __atomic_load_n(&cgs_real[index], __ATOMIC_ACQUIRE);
}

/* Whether libcuda itself asks, by the return address of its call: it must get
 * its own functions, or its inner calls would be taken for the program's. */
static bool asked_by_driver(const void *caller)
{
    object_t object;

    if (atomic_load_explicit(&driver.found, memory_order_acquire)) {
        return in_driver(caller);
    }
    return find_object(caller, &object) && is_libcuda(&object);
}

static bool is_own(const void *address)
{
    object_t own, other;

    return find_object((const void *)cgs_spare_entries, &own) &&
           find_object(address, &other) && (own.begin == other.begin);
}

static bool is_exported(const char *name)
{
    int low = 0, high = CGS_NUM_ENTRIES - 1;
    int middle, order;

    while (low <= high) {
        middle = (low + high) / 2;
        order  = strcmp(name, entry_info[middle].name);
        if (order == 0) {
            return true;
        }
        if (order < 0) {
            high = middle - 1;
        } else {
            low = middle + 1;
        }
    }
    return false;
}

/*
 * A lookup in the global scope finds our own exported symbol, whether libcuda
 * is there or not. The answer without us comes from the objects behind us,
 * else from the caller's own dependencies. Names that we do not export are
 * libc's business, with its error text.
 */
static void *lookup_default(const char *name, const void *caller)
{
    void    *address = libc_dlsym(RTLD_DEFAULT, name);
    void    *handle;
    Dl_info info;

    if ((address != NULL) && !is_own(address)) {
        return address; /* of the program, or of a library before us */
    }
    address = libc_dlsym(RTLD_NEXT, name);
    if (address != NULL) {
        return address;
    }
    if (!is_exported(name)) {
        return &cgs_door_forward;
    }
    if (!dladdr(caller, &info) || (info.dli_fname == NULL)) {
        return NULL;
    }
    handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != NULL) {
        address = libc_dlsym(handle, name);
        dlclose(handle);
    }
    if ((address == NULL) || is_own(address)) {
        /* Leaves an error in dlerror(), though one that names us. */
        address = libc_dlsym(RTLD_NEXT, name);
    }
    return address;
}

/*
 * RTLD_NEXT: the objects after the caller's. Where the first of them that has
 * the name is libcuda, the answer is our entry; everything else is libc's
 * business. Our own definitions come first for a library before us, and are
 * what it should get.
 */
static void *lookup_next(const char *name, const void *caller)
{
    libc_symbol_t         symbol = {.name = name};
    const struct link_map *object;
    struct link_map       *map;
    Dl_info               info;
    object_t              found;

    if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP)) {
        return &cgs_door_forward;
    }
    for (object = map->l_next; (object != NULL) && (symbol.address == NULL);
         object = object->l_next) {
        find_symbol(object, &symbol);
    }
    if ((symbol.address == NULL) || !find_object(symbol.address, &found) ||
        !is_libcuda(&found)) {
        return &cgs_door_forward;
    }
    return symbol.address;
}

/* Our entry for what a lookup found. */
static void *answer(void *address, const char *name, const void *caller)
{
    return asked_by_driver(caller) || (address == &cgs_door_forward) ?
           address : cgs_door_map(address, name);
}

/* dlsym for names that begin with cu[A-Z], called from assembly. */
void *cgs_door_dlsym(void *handle, const char *name, const void *caller);
void *cgs_door_dlsym(void *handle, const char *name, const void *caller)
{
    void *address, *entry;

    ensure_libc();
    if (handle == RTLD_NEXT) {
        return answer(lookup_next(name, caller), name, caller);
    }
    if (handle == RTLD_DEFAULT) {
        return answer(lookup_default(name, caller), name, caller);
    }

    address = libc_dlsym(handle, name);
    if (address == NULL) {
        return NULL;
    }
    if (!in_driver(address) && is_own(address)) {
        /* The handle of the whole program. */
        return answer(lookup_default(name, caller), name, caller);
    }
    entry = answer(address, name, caller);
    if (entry != address) {
        libc_dlsym(handle, name); /* no error is left of mapping */
    }
    return entry;
}

/* dlvsym likewise. */
void *cgs_door_dlvsym(void *handle, const char *name, const char *version,
                      const void *caller);
void *cgs_door_dlvsym(void *handle, const char *name, const char *version,
                      const void *caller)
{
    void *address, *entry;

    ensure_libc();
    if (handle == RTLD_NEXT) {
        return &cgs_door_forward;
    }
    address = ((dlvsym_t)cgs_libc_dlvsym)(handle == RTLD_DEFAULT ? RTLD_NEXT :
                                          handle, name, version);
    if (address == NULL) {
        return is_exported(name) ? NULL : &cgs_door_forward;
    }
    if (!in_driver(address) && is_own(address)) {
        return ((dlvsym_t)cgs_libc_dlvsym)(RTLD_NEXT, name, version);
    }
    entry = answer(address, name, caller);
    if (entry != address) {
        ((dlvsym_t)cgs_libc_dlvsym)(handle, name, version);
    }
    return entry;
}
