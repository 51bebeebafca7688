/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the NVTX part promises, seen from a program that uses NVTX: this one,
 * with the part in libnvtxprobe.so. Each test is a process of its own, whose
 * NVTX is not initialised yet.
 *
 * The libraries of tests/nvtx lie beside libnvtxprobe.so; NVTX_RANGES names
 * the program of tests/programs, else it is looked for there too.
 */
#define _GNU_SOURCE
#include "probe.h"
#include "tool.h"
#include "user.h"

#include <nvtx3/nvToolsExt.h>

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUM_THREADS 8
#define NUM_PUSHES  2000
#define NUM_DOMAINS 40

static char scratch[PATH_MAX / 2]; /* a directory of the test's own */
static char libraries[PATH_MAX / 2];

static const char *library(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", libraries, name);
    return path;
}

static const char *scratch_file(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    return path;
}

static const char *file_text(const char *path)
{
    static char text[4096];
    FILE *file    = fopen(path, "r");
    size_t length = 0;

    if (file != NULL) {
        length = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
    }
    text[length] = '\0';
    return text;
}

static void create_scratch(void)
{
    Dl_info info;

    ck_assert_int_ne(dladdr((void*)probe_setup, &info), 0);
    snprintf(libraries, sizeof(libraries), "%.*s",
             (int)(strrchr(info.dli_fname, '/') - info.dli_fname),
             info.dli_fname);
    snprintf(scratch, sizeof(scratch), "/tmp/test_nvtx.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    unsetenv("NVTX_INJECTION64_PATH");
    unsetenv("_CGSHIM_NVTX_CHAIN");
}

static void remove_scratch(void)
{
    char command[PATH_MAX];

    snprintf(command, sizeof(command), "rm -rf '%s'", scratch);
    ck_assert_int_eq(system(command), 0);
}

/* As if the program had been started with this tool. */
static void start_under_tool(const char *name, const char *mode)
{
    setenv("NVTX_INJECTION64_PATH", library(name), 1);
    setenv("TOOL_MODE", mode, 1);
    probe_log_to(scratch_file("log"));
    probe_setup();
}

static tool_state_t *tool(void)
{
    void *handle = dlopen(library("libnvtxtool.so"), RTLD_LAZY | RTLD_NOLOAD);
    tool_state_t *(*get)(void);

    ck_assert_ptr_nonnull(handle);
    get = (tool_state_t *(*)(void))dlsym(handle, "tool_get");
    ck_assert_ptr_nonnull(get);
    return get();
}

static nvtxEventAttributes_t event(int32_t type, const void *message)
{
    nvtxEventAttributes_t attributes = {0};

    attributes.version       = NVTX_VERSION;
    attributes.size          = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType   = type;
    attributes.message.ascii = message;
    return attributes;
}

static int push_ascii(nvtxDomainHandle_t domain, const char *text)
{
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_ASCII, text);

    return nvtxDomainRangePushEx(domain, &attributes);
}

static int push_registered(nvtxDomainHandle_t domain, nvtxStringHandle_t text)
{
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_REGISTERED,
                                             text);

    return nvtxDomainRangePushEx(domain, &attributes);
}

static void run_threads(void *(*body)(void *), void *arg)
{
    pthread_t threads[NUM_THREADS];
    int i;

    for (i = 0; i < NUM_THREADS; ++i) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, body, arg), 0);
    }
    for (i = 0; i < NUM_THREADS; ++i) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
}

START_TEST(pushes_and_pops_arrive_nested_and_in_order)
{
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_ASCII, "c");

    probe_setup();
    nvtxRangePushA("a");
    nvtxRangePushA(NULL);
    nvtxRangePop();
    nvtxRangePushEx(&attributes);
    nvtxRangePop();
    nvtxRangePop();
    ck_assert_str_eq(probe_take(), "push - a\npush - \npop -\npush - c\n"
                                   "pop -\npop -\n");
    ck_assert_uint_eq(probe_begins(), 1);
}
END_TEST

START_TEST(program_gets_what_it_gets_without_a_tool)
{
    nvtxDomainHandle_t domain;

    probe_setup();
    errno = ENOTTY;
    ck_assert_int_eq(nvtxRangePushA("a"), NVTX_NO_PUSH_POP_TRACKING);
    errno = ENOTTY;
    ck_assert_int_eq(nvtxRangePushW(L"a"), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_int_eq(nvtxRangePop(), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_int_eq(nvtxRangePop(), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_int_eq(nvtxRangePop(), NVTX_NO_PUSH_POP_TRACKING);

    domain = nvtxDomainCreateA("d");
    ck_assert_int_eq(push_ascii(domain, "a"), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_int_eq(nvtxDomainRangePop(domain), NVTX_NO_PUSH_POP_TRACKING);
    nvtxMarkA("m");
    nvtxNameCategoryA(1, "c");
    nvtxRangeEnd(nvtxRangeStartA("r"));
    ck_assert_int_eq(errno, ENOTTY);
}
END_TEST

START_TEST(stray_pops_are_not_passed_on)
{
    nvtxDomainHandle_t domain;

    probe_setup();
    domain = nvtxDomainCreateA("d");
    nvtxRangePop();
    nvtxDomainRangePop(domain);
    nvtxRangePushA("a");
    nvtxDomainRangePop(domain);
    nvtxRangePop();
    nvtxRangePop();
    ck_assert_str_eq(probe_take(), "push - a\npop -\n");
}
END_TEST

static void *pop_once(void *arg)
{
    nvtxRangePop();
    return arg;
}

START_TEST(threads_do_not_close_each_others_ranges)
{
    probe_setup();
    nvtxRangePushA("a");
    run_threads(pop_once, NULL);
    ck_assert_str_eq(probe_take(), "push - a\n");
    nvtxRangePop();
    ck_assert_str_eq(probe_take(), "pop -\n");
}
END_TEST

START_TEST(domains_are_told_apart)
{
    nvtxDomainHandle_t one, two;

    probe_setup();
    one = nvtxDomainCreateA("one");
    two = nvtxDomainCreateW(L"tw\u00f6");
    push_ascii(one, "a");
    push_ascii(two, "b");
    push_ascii(NULL, "c");
    nvtxDomainRangePop(one);
    nvtxDomainRangePop(two);
    nvtxRangePop();
    ck_assert_str_eq(probe_take(), "push one a\npush tw\u00f6 b\npush - c\n"
                                   "pop one\npop tw\u00f6\npop -\n");
}
END_TEST

static void *use_many_domains(void *arg)
{
    char name[16];
    nvtxDomainHandle_t domains[NUM_DOMAINS];
    int i;

    for (i = 0; i < NUM_DOMAINS; ++i) {
        snprintf(name, sizeof(name), "d%d", i);
        domains[i] = nvtxDomainCreateA(name);
        push_ascii(domains[i], "a");
    }
    for (i = 0; i < NUM_DOMAINS; ++i) {
        nvtxDomainRangePop(domains[i]);
        nvtxDomainRangePop(domains[i]); /* stray */
    }
    return arg;
}

START_TEST(any_number_of_domains_is_counted)
{
    probe_setup();
    probe_count(true);
    run_threads(use_many_domains, NULL);
    ck_assert_uint_eq(probe_count(true), 2 * NUM_DOMAINS * NUM_THREADS);
}
END_TEST

START_TEST(wide_text_arrives_as_utf8)
{
    static wchar_t wide[3001];
    nvtxEventAttributes_t attributes =
        event(NVTX_MESSAGE_TYPE_UNICODE, L"x\u00e9\u20ac\U0001f600");
    static const wchar_t broken[] = {L'a', 0xd800, L'b', 0x110000, 0};
    const char *line;

    probe_setup();
    nvtxRangePushEx(&attributes);
    nvtxRangePushW(broken);
    nvtxRangePushW(NULL);
    ck_assert_str_eq(probe_take(), "push - x\u00e9\u20ac\U0001f600\n"
                                   "push - a\ufffdb\ufffd\npush - \n");

    wmemset(wide, 0x20ac, 3000);
    nvtxRangePushW(wide);
    line = probe_take();
    ck_assert_uint_eq(strlen(line), strlen("push - \n") + 3 * 3000);
    ck_assert_int_eq(strncmp(line, "push - \u20ac\u20ac", 13), 0);
}
END_TEST

START_TEST(registered_strings_are_resolved)
{
    nvtxDomainHandle_t domain;
    nvtxStringHandle_t text;
    nvtxEventAttributes_t attributes;

    probe_setup();
    domain = nvtxDomainCreateA("d");
    text   = nvtxDomainRegisterStringA(domain, "step");
    ck_assert_ptr_eq(text, nvtxDomainRegisterStringA(domain, "step"));
    push_registered(domain, text);
    push_registered(domain, nvtxDomainRegisterStringW(domain, L"\u00fc"));

    attributes = event(NVTX_MESSAGE_TYPE_REGISTERED,
                       nvtxDomainRegisterStringA(NULL, "global"));
    nvtxRangePushEx(&attributes);
    attributes.message.registered = NULL;
    nvtxRangePushEx(&attributes);
    ck_assert_str_eq(probe_take(), "push d step\npush d \u00fc\n"
                                   "push - global\npush - \n");
}
END_TEST

START_TEST(attributes_are_read_as_far_as_they_go)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_ASCII, "a");
    const uint16_t size = offsetof(nvtxEventAttributes_t, message);
    char *memory, *at_end;

    /* A read past `size` would fault. */
    memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    ck_assert_int_eq(mprotect(memory + page, page, PROT_NONE), 0);
    attributes.size = size;
    at_end          = memory + page - size;
    memcpy(at_end, &attributes, size);

    probe_setup();
    nvtxRangePushEx((nvtxEventAttributes_t*)at_end);
    ck_assert_str_eq(probe_take(), "push - \n");

    attributes.size = 8;
    at_end          = memory + page - 8;
    memcpy(at_end, &attributes, 8);
    nvtxRangePushEx((nvtxEventAttributes_t*)at_end);
    ck_assert_str_eq(probe_take(), "push - \n");

    attributes.size    = NVTX_EVENT_ATTRIB_STRUCT_SIZE + 8;
    attributes.version = 1;
    nvtxRangePushEx(&attributes);
    ck_assert_str_eq(probe_take(), "push - a\n");

    attributes.version = NVTX_VERSION + 1;
    nvtxRangePushEx(&attributes);
    nvtxRangePushEx(NULL);
    ck_assert_str_eq(probe_take(), "push - \npush - \n");
    ck_assert_int_eq(munmap(memory, 2 * page), 0);
}
END_TEST

static void *end_range(void *id)
{
    nvtxRangeEnd(*(nvtxRangeId_t*)id);
    return NULL;
}

START_TEST(started_range_ends_once_in_any_thread)
{
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_ASCII, "b");
    nvtxDomainHandle_t domain;
    nvtxRangeId_t one, two;

    probe_setup();
    domain = nvtxDomainCreateA("d");
    one    = nvtxRangeStartA("a");
    two    = nvtxDomainRangeStartEx(domain, &attributes);
    ck_assert_uint_ne(one, 0);
    ck_assert_uint_ne(one, two);

    run_threads(end_range, &one);
    nvtxRangeEnd(0);
    nvtxRangeEnd(~UINT64_C(0));
    nvtxDomainRangeEnd(domain, two);
    nvtxDomainRangeEnd(domain, two);
    nvtxRangeEnd(nvtxRangeStartW(L"c"));
    ck_assert_str_eq(probe_take(), "start - a #1\nstart d b #2\nend #1\n"
                                   "end #2\nstart - c #3\nend #3\n");
}
END_TEST

static void *start_and_end_many(void *arg)
{
    nvtxRangeId_t ids[4] = {0};
    int i;

    for (i = 0; i < NUM_PUSHES; ++i) {
        nvtxRangeEnd(ids[i % 4]);
        ids[i % 4] = nvtxRangeStartA("a");
    }
    for (i = 0; i < 4; ++i) {
        nvtxRangeEnd(ids[i]);
    }
    return arg;
}

START_TEST(no_start_or_end_is_lost_among_threads)
{
    probe_setup();
    probe_count(true);
    run_threads(start_and_end_many, NULL);
    ck_assert_uint_eq(probe_count(true), 2 * NUM_PUSHES * NUM_THREADS);
}
END_TEST

START_TEST(handles_outlive_their_domain_harmlessly)
{
    nvtxDomainHandle_t domain;
    nvtxStringHandle_t text;

    probe_setup();
    domain = nvtxDomainCreateA("d");
    text   = nvtxDomainRegisterStringA(domain, "s");
    push_registered(domain, text);
    nvtxDomainDestroy(domain);
    nvtxDomainRangePop(domain);
    push_registered(domain, text);
    nvtxDomainDestroy(domain);
    ck_assert_str_eq(probe_take(), "push d s\npop d\npush d s\n");

    push_ascii((nvtxDomainHandle_t)&domain, "never created");
    nvtxDomainRangePop((nvtxDomainHandle_t)&domain);
    ck_assert_str_eq(probe_take(), "");
}
END_TEST

START_TEST(without_memory_ranges_are_missed_and_nothing_breaks)
{
    nvtxDomainHandle_t domains[NUM_DOMAINS], domain;
    static wchar_t wide[1001];
    char name[16];
    int i;

    probe_setup();
    for (i = 0; i < NUM_DOMAINS; ++i) {
        snprintf(name, sizeof(name), "d%d", i);
        domains[i] = nvtxDomainCreateA(name);
    }
    domain = domains[NUM_DOMAINS - 1];

    errno = ENOTTY;
    probe_starve(true);
    ck_assert_ptr_null(nvtxDomainCreateA("new"));
    ck_assert_ptr_null(nvtxDomainRegisterStringA(domain, "new"));
    push_ascii(domain, "not counted");
    nvtxDomainRangePop(domain);
    nvtxRangeEnd(nvtxRangeStartA("not counted"));
    nvtxRangePushA("a");
    ck_assert_str_eq(probe_take(), "push - a\n");

    wmemset(wide, 0x20ac, 1000);
    nvtxRangePushW(wide);
    ck_assert_int_eq(errno, ENOTTY);
    ck_assert_uint_eq(strlen(probe_take()), strlen("push - \n") + 3 * 170);

    probe_starve(false);
    push_ascii(domain, "b");
    nvtxDomainRangePop(domain);
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePop();
    ck_assert_str_eq(probe_take(), "push d39 b\npop d39\npop -\npop -\n");
}
END_TEST

START_TEST(without_memory_setup_leaves_the_users_tool)
{
    setenv("NVTX_INJECTION64_PATH", library("libnvtxtool.so"), 1);
    probe_starve(true);
    probe_setup();
    probe_starve(false);
    ck_assert_ptr_null(getenv("_CGSHIM_NVTX_CHAIN"));
    ck_assert_int_eq(nvtxRangePushA("a"), TOOL_LEVEL + 1);
    ck_assert_str_eq(probe_take(), "");
}
END_TEST

static void *push_and_pop_many(void *arg)
{
    pthread_barrier_t *together = arg;
    nvtxDomainHandle_t domain;
    int i;

    pthread_barrier_wait(together);
    for (i = 0; i < NUM_PUSHES; ++i) {
        nvtxRangePushA("a");
        domain = nvtxDomainCreateA("d");
        push_registered(domain, nvtxDomainRegisterStringA(domain, "s"));
        nvtx_user_push("b");
        nvtx_user_pop();
        nvtxDomainRangePop(domain);
        nvtxRangePop();
    }
    return NULL;
}

static void run_together(void)
{
    pthread_barrier_t together;

    ck_assert_int_eq(pthread_barrier_init(&together, NULL, NUM_THREADS), 0);
    run_threads(push_and_pop_many, &together);
    ck_assert_int_eq(pthread_barrier_destroy(&together), 0);
}

START_TEST(nothing_is_lost_when_eight_threads_initialise_at_once)
{
    probe_setup();
    probe_count(true);
    run_together();
    ck_assert_uint_eq(probe_count(true), 6 * NUM_PUSHES * NUM_THREADS);
    ck_assert_uint_eq(probe_begins(), 2);
}
END_TEST

START_TEST(nothing_is_lost_beside_a_tool_when_eight_threads_initialise)
{
    start_under_tool("libnvtxtool.so", "");
    probe_count(true);
    run_together();
    ck_assert_uint_eq(probe_count(true), 6 * NUM_PUSHES * NUM_THREADS);
    ck_assert_uint_eq(tool()->inits, 2);
    ck_assert_uint_eq(tool()->push, 2 * NUM_PUSHES * NUM_THREADS);
    ck_assert_uint_eq(tool()->domain_pop, NUM_PUSHES * NUM_THREADS);
}
END_TEST

START_TEST(each_dso_with_nvtx_of_its_own_is_heard)
{
    probe_setup();
    nvtxRangePushA("program");
    nvtx_user_push("library");
    nvtxRangePop();
    nvtx_user_pop();
    ck_assert_str_eq(probe_take(), "push - program\npush - library\n"
                                   "pop -\npop -\n");
    ck_assert_uint_eq(probe_begins(), 2);
}
END_TEST

START_TEST(forked_child_is_heard)
{
    nvtxDomainHandle_t domain;
    pid_t child;
    int status;

    probe_setup();
    nvtxRangePushA("parent");
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        domain = nvtxDomainCreateA("child");
        push_ascii(domain, "a");
        nvtxDomainRangePop(domain);
        nvtxRangePop();
        _exit(strcmp(probe_take(), "push - parent\npush child a\n"
                                   "pop child\npop -\n") != 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(older_nvtx_finds_its_initialisation)
{
    int (*init)(NvtxGetExportTableFunc_t);

    probe_setup();
    init = (int (*)(NvtxGetExportTableFunc_t))
        dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx");
    ck_assert_ptr_nonnull(init);
    ck_assert_int_ne(init(NVTX_VERSIONED_IDENTIFIER(nvtxGetExportTable)), 0);
    nvtxRangePushA("a");
    ck_assert_str_eq(probe_take(), "push - a\n");
}
END_TEST

START_TEST(extensions_stay_off_without_a_tool)
{
    probe_setup();
    ck_assert_int_le(nvtx_user_is_enabled(), 0);
    nvtx_user_push_payload();
    ck_assert_str_eq(probe_take(), "");
}
END_TEST

START_TEST(tool_gets_every_call_and_the_program_its_values)
{
    nvtxDomainHandle_t domain;
    nvtxRangeId_t id;

    start_under_tool("libnvtxtool.so", "");
    ck_assert_int_eq(nvtxRangePushA("a"), TOOL_LEVEL + 1);
    ck_assert_int_eq(nvtxRangePushW(L"b"), TOOL_LEVEL + 1);
    ck_assert_int_eq(nvtxRangePop(), TOOL_LEVEL + 1);
    ck_assert_int_eq(nvtxRangePop(), TOOL_LEVEL + 2);
    ck_assert_int_eq(nvtxRangePop(), TOOL_LEVEL + 3); /* stray */

    domain = nvtxDomainCreateA("d");
    ck_assert_uint_eq((uintptr_t)domain, 1);
    ck_assert_int_eq(push_ascii(domain, "c"), TOOL_LEVEL + 1);
    ck_assert_ptr_eq(tool()->last_domain, domain);
    ck_assert_int_eq(nvtxDomainRangePop(domain), TOOL_LEVEL + 1);

    id = nvtxRangeStartA("e");
    ck_assert_uint_eq(id, 1);
    nvtxRangeEnd(id);
    nvtxRangeEnd(77);
    ck_assert_uint_eq(tool()->end, 2);
    ck_assert_uint_eq(tool()->last_end, 77);

    nvtxMarkA("m");
    nvtxDomainMarkEx(domain, NULL);
    nvtxDomainDestroy(domain);
    ck_assert_uint_eq(tool()->mark, 1);
    ck_assert_uint_eq(tool()->domain_mark, 1);
    ck_assert_uint_eq(tool()->destroy, 1);
    ck_assert_str_eq(probe_take(),
                     "push - a\npush - b\npop -\npop -\npush d c\npop d\n"
                     "start - e #1\nend #1\n");
    ck_assert_str_eq(file_text(scratch_file("log")), "");
}
END_TEST

START_TEST(handles_of_the_tool_are_resolved)
{
    nvtxDomainHandle_t one, two;
    nvtxStringHandle_t text_one, text_two;

    start_under_tool("libnvtxtool.so", "zero");
    one      = nvtxDomainCreateA("one");
    two      = nvtxDomainCreateW(L"two");
    text_one = nvtxDomainRegisterStringA(one, "a");
    text_two = nvtxDomainRegisterStringW(two, L"b");
    ck_assert_ptr_eq(text_one, text_two); /* numbered anew in each domain */
    push_registered(one, text_one);
    push_registered(two, text_two);

    nvtxDomainDestroy(two);
    ck_assert_ptr_eq(nvtxDomainCreateA("three"), two);
    push_registered(two, nvtxDomainRegisterStringA(two, "c"));

    ck_assert_uint_eq(nvtxRangeStartA("d"), 0);
    nvtxRangeEnd(0);
    ck_assert_str_eq(probe_take(), "push one a\npush two b\npush three c\n"
                                   "start - d #1\nend #1\n");
}
END_TEST

START_TEST(functions_that_a_tool_lacks_are_as_without_cgshim)
{
    nvtxRangeId_t id;

    start_under_tool("libnvtxtool.so", "bare");
    ck_assert_ptr_null(nvtxDomainCreateA("d"));
    ck_assert_ptr_null(nvtxDomainRegisterStringA(NULL, "s"));
    ck_assert_int_eq(nvtxRangePushW(L"a"), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_int_eq(nvtxRangePop(), TOOL_LEVEL + 1);

    id = nvtxRangeStartA("b");
    nvtxRangeEnd(id);
    ck_assert_uint_eq(tool()->end, 0); /* no id of the tool's */
    nvtxRangeEnd(id);
    ck_assert_uint_eq(tool()->end, 1);
    ck_assert_str_eq(probe_take(), "push - a\npop -\nstart - b #1\nend #1\n");
}
END_TEST

START_TEST(tool_may_take_functions_later)
{
    void (*fill)(void);

    start_under_tool("libnvtxtool.so", "late");
    ck_assert_int_eq(nvtxRangePushA("a"), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_int_eq(nvtx_user_push("b"), NVTX_NO_PUSH_POP_TRACKING);
    fill = (void (*)(void))dlsym(dlopen(library("libnvtxtool.so"), RTLD_LAZY),
                                 "tool_fill");
    fill();
    ck_assert_int_eq(nvtxRangePushA("c"), TOOL_LEVEL + 1);
    ck_assert_int_eq(nvtx_user_push("d"), TOOL_LEVEL + 2);
    ck_assert_str_eq(probe_take(), "push - a\npush - b\npush - c\npush - d\n");
}
END_TEST

START_TEST(tool_of_older_nvtx_is_served)
{
    start_under_tool("libnvtxoldtool.so", "");
    ck_assert_int_eq(nvtxRangePushA("a"), TOOL_LEVEL + 1);
    ck_assert_str_eq(probe_take(), "push - a\n");
}
END_TEST

START_TEST(tool_that_fails_is_left_out)
{
    nvtxDomainHandle_t domain;

    start_under_tool("libnvtxtool.so", "fail");
    ck_assert_int_eq(nvtxRangePushA("a"), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_int_eq(nvtx_user_push("b"), NVTX_NO_PUSH_POP_TRACKING);
    nvtxMarkA("m");
    domain = nvtxDomainCreateA("d");
    push_ascii(domain, "c");
    nvtxDomainDestroy(domain);
    ck_assert_uint_eq(tool()->push, 0);
    ck_assert_uint_eq(tool()->mark, 0);
    ck_assert_uint_eq(tool()->destroy, 0);
    ck_assert_str_eq(probe_take(), "push - a\npush - b\npush d c\n");

    /* One line, though both DSOs were refused. */
    ck_assert_ptr_nonnull(strstr(file_text(scratch_file("log")),
                                 "initialisation failed"));
    ck_assert_ptr_eq(strchr(file_text(scratch_file("log")), '\n') + 1,
                     strchr(file_text(scratch_file("log")), '\0'));
}
END_TEST

START_TEST(tool_that_knows_one_dso_gets_that_one)
{
    start_under_tool("libnvtxtool.so", "once");
    ck_assert_int_eq(nvtxRangePushA("a"), TOOL_LEVEL + 1);
    ck_assert_int_eq(nvtx_user_push("b"), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_uint_eq(tool()->push, 1);
    ck_assert_str_eq(probe_take(), "push - a\npush - b\n");
}
END_TEST

static void assert_going_on_without(const char *reason)
{
    ck_assert_int_eq(nvtxRangePushA("a"), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_int_eq(nvtx_user_push("b"), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_str_eq(probe_take(), "push - a\npush - b\n");
    ck_assert_ptr_nonnull(strstr(file_text(scratch_file("log")), reason));
    ck_assert_ptr_eq(strchr(file_text(scratch_file("log")), '\n') + 1,
                     strchr(file_text(scratch_file("log")), '\0'));
}

START_TEST(tool_that_is_missing_costs_one_line)
{
    start_under_tool("libnvtxmissing.so", "");
    assert_going_on_without("libnvtxmissing.so");
}
END_TEST

START_TEST(library_that_is_no_tool_costs_one_line)
{
    start_under_tool("libnvtxuser.so", "");
    assert_going_on_without("is no NVTX tool");
}
END_TEST

START_TEST(cgshim_under_another_name_is_no_tool)
{
    char link_path[PATH_MAX];

    snprintf(link_path, sizeof(link_path), "%s", scratch_file("other.so"));
    ck_assert_int_eq(symlink(library("libnvtxprobe.so"), link_path), 0);
    setenv("NVTX_INJECTION64_PATH", link_path, 1);
    probe_setup();
    ck_assert_int_eq(nvtxRangePushA("a"), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_int_le(nvtx_user_is_enabled(), 0);
    ck_assert_str_eq(probe_take(), "push - a\n");
}
END_TEST

START_TEST(extensions_are_the_tools)
{
    start_under_tool("libnvtxtool.so", "");
    if (nvtx_user_is_enabled() < 0) {
        return; /* headers older than the extension */
    }
    ck_assert_int_eq(nvtx_user_is_enabled(), 1);
    ck_assert_uint_eq(tool()->extensions, 1);
}
END_TEST

START_TEST(extensions_that_the_tool_refuses_are_off)
{
    start_under_tool("libnvtxtool.so", "noext");
    ck_assert_int_le(nvtx_user_is_enabled(), 0);
}
END_TEST

START_TEST(tool_without_extensions_leaves_domains_enabled)
{
    start_under_tool("libnvtxoldtool.so", "");
    ck_assert_int_ne(nvtx_user_is_enabled(), 0);
}
END_TEST

/* Each copy of the library is a further DSO. */
static void copy_library(const char *name)
{
    char command[3 * PATH_MAX];

    snprintf(command, sizeof(command), "cp '%s/libnvtxuser.so' '%s/%s'",
             libraries, scratch, name);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(tool_sees_more_dsos_than_can_be_heard)
{
    const int num_dsos = 40;
    int (*push)(const char *);
    char name[16];
    void *handle;
    int i;

    start_under_tool("libnvtxtool.so", "");
    for (i = 0; i < num_dsos; ++i) {
        snprintf(name, sizeof(name), "u%d.so", i);
        copy_library(name);
        handle = dlopen(scratch_file(name), RTLD_NOW);
        ck_assert_ptr_nonnull(handle);
        push = (int (*)(const char *))dlsym(handle, "nvtx_user_push");
        ck_assert_int_eq(push("a"), TOOL_LEVEL + i + 1);
        ck_assert_int_eq(push("a"), TOOL_LEVEL + i + 2);
        tool()->push = (unsigned)i + 1;
    }
    ck_assert_uint_eq(tool()->inits, num_dsos);
    ck_assert_uint_eq(probe_count(true), 2 * 31);
    ck_assert_ptr_nonnull(strstr(file_text(scratch_file("log")),
                                 "not seen"));
}
END_TEST

START_TEST(without_setup_the_tool_is_reached_directly)
{
    setenv("NVTX_INJECTION64_PATH", library("libnvtxprobe.so"), 1);
    setenv("_CGSHIM_NVTX_CHAIN", library("libnvtxtool.so"), 1);
    ck_assert_int_eq(nvtxRangePushA("a"), TOOL_LEVEL + 1);
    ck_assert_str_eq(probe_take(), "");
}
END_TEST

START_TEST(without_setup_and_tool_nvtx_is_off)
{
    setenv("NVTX_INJECTION64_PATH", library("libnvtxprobe.so"), 1);
    ck_assert_int_eq(nvtxRangePushA("a"), NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_ptr_null(nvtxDomainCreateA("d"));
    ck_assert_str_eq(probe_take(), "");
}
END_TEST

START_TEST(setup_changes_two_variables_and_no_other)
{
    setenv("NVTX_TEST_OTHER", "kept", 1);
    setenv("_CGSHIM_NVTX_CHAIN", "stale", 1);
    probe_setup();
    ck_assert_str_eq(getenv("NVTX_TEST_OTHER"), "kept");
    ck_assert_str_eq(getenv("NVTX_INJECTION64_PATH"),
                     library("libnvtxprobe.so"));
    ck_assert_ptr_null(getenv("_CGSHIM_NVTX_CHAIN"));
    setenv("NVTX_TEST_MORE", "set", 1);
    ck_assert_str_eq(getenv("NVTX_TEST_MORE"), "set");
}
END_TEST

START_TEST(setup_keeps_the_tool_that_a_parent_found)
{
    /* As under another copy of cgshim, which is no tool either. */
    setenv("NVTX_INJECTION64_PATH", "/elsewhere/libnvtxprobe.so", 1);
    setenv("_CGSHIM_NVTX_CHAIN", library("libnvtxtool.so"), 1);
    probe_setup();
    ck_assert_str_eq(getenv("NVTX_INJECTION64_PATH"),
                     library("libnvtxprobe.so"));
    ck_assert_str_eq(getenv("_CGSHIM_NVTX_CHAIN"), library("libnvtxtool.so"));
    ck_assert_int_eq(nvtxRangePushA("a"), TOOL_LEVEL + 1);
    ck_assert_str_eq(probe_take(), "push - a\n");
}
END_TEST

START_TEST(setup_never_chains_to_cgshim)
{
    setenv("NVTX_INJECTION64_PATH", "/elsewhere/libnvtxprobe.so", 1);
    setenv("_CGSHIM_NVTX_CHAIN", library("libnvtxprobe.so"), 1);
    probe_setup();
    ck_assert_ptr_null(getenv("_CGSHIM_NVTX_CHAIN"));
    nvtxRangePushA("a");
    ck_assert_str_eq(probe_take(), "push - a\n");
}
END_TEST

/* Processes of their own, under LD_PRELOAD */

static void run_ranges(const char *environment, const char *before)
{
    const char *program = getenv("NVTX_RANGES");
    char command[4 * PATH_MAX];

    snprintf(command, sizeof(command),
             "cd '%s' && env %s sh -c '%s \"%s/nvtx_ranges\" 3' > out",
             scratch, environment, before, libraries);
    if (program != NULL) {
        snprintf(command, sizeof(command),
                 "cd '%s' && env %s sh -c '%s \"%s\" 3' > out", scratch,
                 environment, before, program);
    }
    ck_assert_int_eq(system(command), 0);
}

static unsigned count_lines(const char *text, const char *line)
{
    unsigned count = 0;

    while ((text = strstr(text, line)) != NULL) {
        text += strlen(line);
        ++count;
    }
    return count;
}

START_TEST(executed_programs_are_heard_and_print_the_same)
{
    char environment[2 * PATH_MAX];
    static char plain[4096];

    run_ranges("", "");
    snprintf(plain, sizeof(plain), "%s", file_text(scratch_file("out")));
    ck_assert_uint_eq(count_lines(plain, "stray pop -2\n"), 6);

    snprintf(environment, sizeof(environment),
             "LD_PRELOAD='%s' PROBE_AUTO=1 PROBE_FILE=heard",
             library("libnvtxprobe.so"));
    run_ranges(environment, "");
    ck_assert_str_eq(file_text(scratch_file("out")), plain);
    ck_assert_uint_eq(count_lines(file_text(scratch_file("heard")),
                                  "push solver step\n"), 3);
}
END_TEST

START_TEST(executed_programs_find_the_users_tool)
{
    char environment[4 * PATH_MAX];
    int length;

    length = snprintf(environment, sizeof(environment),
                      "LD_PRELOAD='%s' PROBE_AUTO=1 PROBE_FILE=heard "
                      "TOOL_FILE=\"$PWD/tool\" ", library("libnvtxprobe.so"));
    snprintf(environment + length, sizeof(environment) - (size_t)length,
             "NVTX_INJECTION64_PATH='%s'", library("libnvtxtool.so"));
    run_ranges(environment, "");
    ck_assert_uint_eq(count_lines(file_text(scratch_file("out")),
                                  "stray pop 1001\n"), 3);
    ck_assert_uint_eq(count_lines(file_text(scratch_file("heard")),
                                  "push solver step\n"), 3);
    /* Only the last of three processes that exec each other exits. */
    ck_assert_str_eq(file_text(scratch_file("tool")), "inits 1 pushes 1\n");

    /* A child without LD_PRELOAD, or with cgshim off, keeps the tool. */
    run_ranges(environment, "env -u LD_PRELOAD -u PROBE_AUTO");
    ck_assert_uint_eq(count_lines(file_text(scratch_file("out")),
                                  "stray pop 1001\n"), 3);
}
END_TEST

static void add_tests(TCase *one, TCase *processes)
{
    tcase_add_test(one, pushes_and_pops_arrive_nested_and_in_order);
    tcase_add_test(one, program_gets_what_it_gets_without_a_tool);
    tcase_add_test(one, stray_pops_are_not_passed_on);
    tcase_add_test(one, threads_do_not_close_each_others_ranges);
    tcase_add_test(one, domains_are_told_apart);
    tcase_add_test(one, any_number_of_domains_is_counted);
    tcase_add_test(one, wide_text_arrives_as_utf8);
    tcase_add_test(one, registered_strings_are_resolved);
    tcase_add_test(one, attributes_are_read_as_far_as_they_go);
    tcase_add_test(one, started_range_ends_once_in_any_thread);
    tcase_add_test(one, no_start_or_end_is_lost_among_threads);
    tcase_add_test(one, handles_outlive_their_domain_harmlessly);
    tcase_add_test(one, without_memory_ranges_are_missed_and_nothing_breaks);
    tcase_add_test(one, without_memory_setup_leaves_the_users_tool);
    tcase_add_test(one, nothing_is_lost_when_eight_threads_initialise_at_once);
    tcase_add_test(one,
                   nothing_is_lost_beside_a_tool_when_eight_threads_initialise);
    tcase_add_test(one, each_dso_with_nvtx_of_its_own_is_heard);
    tcase_add_test(one, forked_child_is_heard);
    tcase_add_test(one, older_nvtx_finds_its_initialisation);
    tcase_add_test(one, extensions_stay_off_without_a_tool);
    tcase_add_test(one, tool_gets_every_call_and_the_program_its_values);
    tcase_add_test(one, handles_of_the_tool_are_resolved);
    tcase_add_test(one, functions_that_a_tool_lacks_are_as_without_cgshim);
    tcase_add_test(one, tool_may_take_functions_later);
    tcase_add_test(one, tool_of_older_nvtx_is_served);
    tcase_add_test(one, tool_that_fails_is_left_out);
    tcase_add_test(one, tool_that_knows_one_dso_gets_that_one);
    tcase_add_test(one, tool_that_is_missing_costs_one_line);
    tcase_add_test(one, library_that_is_no_tool_costs_one_line);
    tcase_add_test(one, cgshim_under_another_name_is_no_tool);
    tcase_add_test(one, extensions_are_the_tools);
    tcase_add_test(one, extensions_that_the_tool_refuses_are_off);
    tcase_add_test(one, tool_without_extensions_leaves_domains_enabled);
    tcase_add_test(one, tool_sees_more_dsos_than_can_be_heard);
    tcase_add_test(one, without_setup_the_tool_is_reached_directly);
    tcase_add_test(one, without_setup_and_tool_nvtx_is_off);
    tcase_add_test(one, setup_changes_two_variables_and_no_other);
    tcase_add_test(one, setup_keeps_the_tool_that_a_parent_found);
    tcase_add_test(one, setup_never_chains_to_cgshim);
    tcase_add_test(processes, executed_programs_are_heard_and_print_the_same);
    tcase_add_test(processes, executed_programs_find_the_users_tool);
}

int main(void)
{
    Suite *suite     = suite_create("nvtx");
    TCase *one       = tcase_create("one process");
    TCase *processes = tcase_create("processes");
    SRunner *runner  = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(one, create_scratch, remove_scratch);
    tcase_add_checked_fixture(processes, create_scratch, remove_scratch);
    tcase_set_timeout(one, 60);
    tcase_set_timeout(processes, 60);
    add_tests(one, processes);
    suite_add_tcase(suite, one);
    suite_add_tcase(suite, processes);

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return (failed == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
