/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the variables of the configuration mean, and what is said of those
 * that mean nothing.
 */
#define _GNU_SOURCE 1
#include "config.h"

#include "capture.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUM_THREADS 8

/* The linker's --wrap gives these the calls of the code under test */
static unsigned      fail_allocation; /* the n-th from now, 0: none */
static bool          is_secure;
void                 *__real_malloc(size_t size);
void                 *__real_realloc(void *block, size_t size);
char                 *__real_strdup(const char *string);
char                 *__real_strndup(const char *string, size_t length);
unsigned long        __real_getauxval(unsigned long type);
void                 *__wrap_malloc(size_t size);
void                 *__wrap_realloc(void *block, size_t size);
char                 *__wrap_strdup(const char *string);
char                 *__wrap_strndup(const char *string, size_t length);
unsigned long        __wrap_getauxval(unsigned long type);

static bool allocation_fails(void)
{
    return fail_allocation > 0 && --fail_allocation == 0;
}

void *__wrap_malloc(size_t size)
{
    return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return allocation_fails() ? NULL : __real_realloc(block, size);
}

char *__wrap_strdup(const char *string)
{
    return allocation_fails() ? NULL : __real_strdup(string);
}

char *__wrap_strndup(const char *string, size_t length)
{
    return allocation_fails() ? NULL : __real_strndup(string, length);
}

unsigned long __wrap_getauxval(unsigned long type)
{
    return type == AT_SECURE && is_secure ? 1 : __real_getauxval(type);
}

/* ---- Helpers ---- */

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Parse, and stderr must get just the messages */
static void parse(const char *const *env, const char *messages,
                  cgs_config_t *config)
{
    capture_t capture;

    capture_begin(&capture);
    cgs_config_parse(env, config);
    capture_expect(&capture, messages);
}

/* The region of a range with these rules, "" if none */
static const char *region_of(const cgs_config_t *config, const char *domain,
                             const char *text)
{
    const cgs_rule_t *rule = cgs_config_match(config, domain, text);

    return rule != NULL ? rule->name : "";
}

/* What belongs to one process happens in one */
static void in_child(void (*function)(void))
{
    int   status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        function();
        exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "child ended with %d", status);
}

#define child_assert(_condition) \
    do { \
        if (!(_condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #_condition); \
            _exit(1); \
        } \
    } while (0)

/* ---- Values ---- */

START_TEST(without_variables_all_is_built_in)
{
    cgs_config_t config;

    parse(ENV("PATH=/bin", "CGSHI=1", "XCGSHIM=1"), "", &config);
    ck_assert_int_eq(config.mode, CGS_MODE_ON);
    ck_assert_int_eq(config.log_level, CGS_LOG_OFF);
    ck_assert_ptr_null(config.log_file);
    ck_assert_ptr_null(config.report);
    ck_assert_ptr_null(config.trace);
    ck_assert_ptr_null(config.dump);
    ck_assert(config.every_range);
    ck_assert_uint_eq(config.num_rules, 0);
    ck_assert_uint_eq(config.defaults.warmup, 0);
    ck_assert_int_eq(config.defaults.on_change, CGS_ON_CHANGE_PATCH);
    ck_assert(config.defaults.enable);
    cgs_config_release(&config);
}
END_TEST

START_TEST(each_word_of_a_variable_is_taken)
{
    static const char *const modes[]  = {"on", "observe", "off"};
    static const char *const levels[] = {"off", "error", "warn", "info",
                                         "debug"};
    cgs_config_t config;
    char         text[64];
    int          i;

    for (i = 0; i < 3; ++i) {
        snprintf(text, sizeof(text), "CGSHIM=%s", modes[i]);
        parse(ENV(text), "", &config);
        ck_assert_int_eq(config.mode, i);
        cgs_config_release(&config);
    }
    for (i = 0; i < 5; ++i) {
        snprintf(text, sizeof(text), "CGSHIM_LOG=%s", levels[i]);
        parse(ENV(text), "", &config);
        ck_assert_int_eq(config.log_level, i);
        cgs_config_release(&config);
    }
}
END_TEST

START_TEST(each_key_of_a_rule_is_taken)
{
    static const char *const changes[] = {"patch", "recapture", "eager"};
    cgs_config_t config;
    cgs_rule_t   *rule;
    char         text[128];
    int          i;

    for (i = 0; i < 3; ++i) {
        snprintf(text, sizeof(text), "CGSHIM_REGION_step=  nvtx=dom*:st?p\t"
                 "warmup=4294967295 on_change=%s enable=%d ", changes[i],
                 i % 2);
        parse(ENV(text), "", &config);
        ck_assert(!config.every_range);
        ck_assert_uint_eq(config.num_rules, 1);
        rule = &config.rules[0];
        ck_assert_str_eq(rule->name, "step");
        ck_assert_str_eq(rule->nvtx_domain, "dom*");
        ck_assert_str_eq(rule->nvtx, "st?p");
        ck_assert_uint_eq(rule->warmup, 4294967295u);
        ck_assert_int_eq(rule->on_change, i);
        ck_assert_int_eq(rule->enable, i % 2);
        cgs_config_release(&config);
    }
}
END_TEST

START_TEST(quoted_values_hold_blanks)
{
    cgs_config_t config;

    parse(ENV("CGSHIM_REGION_a=nvtx='my \"step' warmup=1",
              "CGSHIM_REGION_b=warmup='2' nvtx=\"x y\"':z  'w"), "", &config);
    ck_assert_uint_eq(config.num_rules, 2);
    ck_assert_str_eq(config.rules[0].nvtx, "my \"step");
    ck_assert_uint_eq(config.rules[0].warmup, 1);
    ck_assert_str_eq(config.rules[1].nvtx_domain, "x y");
    ck_assert_str_eq(config.rules[1].nvtx, "z  w");
    ck_assert_uint_eq(config.rules[1].warmup, 2);
    cgs_config_release(&config);
}
END_TEST

START_TEST(defaults_hold_for_rules_that_say_nothing)
{
    cgs_config_t config;

    parse(ENV("CGSHIM_REGION_a=", "CGSHIM_REGION_b=warmup=1 enable=1",
              "CGSHIM_DEFAULTS=warmup=7 on_change=eager enable=0"), "",
          &config);
    ck_assert_uint_eq(config.defaults.warmup, 7);
    ck_assert_uint_eq(config.rules[0].warmup, 7);
    ck_assert(!config.rules[0].enable);
    ck_assert_uint_eq(config.rules[1].warmup, 1);
    ck_assert(config.rules[1].enable);
    ck_assert_int_eq(config.rules[1].on_change, CGS_ON_CHANGE_EAGER);
    cgs_config_release(&config);
}
END_TEST

START_TEST(defaults_alone_leave_every_range_a_region)
{
    cgs_config_t config;

    parse(ENV("CGSHIM_DEFAULTS=warmup=7"), "", &config);
    ck_assert(config.every_range);
    cgs_config_release(&config);
}
END_TEST

START_TEST(of_two_variables_with_one_name_the_first_counts)
{
    cgs_config_t config;

    parse(ENV("CGSHIM=off", "CGSHIM=on"), "", &config);
    ck_assert_int_eq(config.mode, CGS_MODE_OFF);
    cgs_config_release(&config);
}
END_TEST

START_TEST(file_names_are_absolute_and_keep_their_percents)
{
    char         *scratch = scratch_enter();
    cgs_config_t config;
    char         expected[512];

    ck_assert_int_eq(mkdir("100%p", 0755), 0);
    ck_assert_int_eq(chdir("100%p"), 0);
    parse(ENV("CGSHIM_LOG_FILE=a.%p", "CGSHIM_REPORT=/b/%h"), "", &config);
    snprintf(expected, sizeof(expected), "%s/100%%%%p/a.%%p", scratch);
    ck_assert_str_eq(config.log_file, expected);
    ck_assert_str_eq(config.report, "/b/%h");
    cgs_config_release(&config);
    parse(ENV("CGSHIM_TRACE=t.%p", "CGSHIM_DUMP=/d"), "", &config);
    snprintf(expected, sizeof(expected), "%s/100%%%%p/t.%%p", scratch);
    ck_assert_str_eq(config.trace, expected);
    ck_assert_str_eq(config.dump, "/d");
    cgs_config_release(&config);
    parse(ENV("CGSHIM_REPORT=stderr", "CGSHIM_PROFILE=/p"), "", &config);
    ck_assert_str_eq(config.report, "stderr");
    ck_assert_str_eq(config.profile, "/p");
    cgs_config_release(&config);
    scratch_leave(scratch);
}
END_TEST

START_TEST(an_excluded_program_is_left_alone)
{
    static const struct {
        const char *variable;
        cgs_mode_t mode;
    } cases[] = {
        {"CGSHIM_EXCLUDE=bash,python*", CGS_MODE_ON},
        {"CGSHIM_EXCLUDE=", CGS_MODE_ON},
        {"CGSHIM_EXCLUDE=,", CGS_MODE_ON},
        {"CGSHIM_EXCLUDE=called so", CGS_MODE_ON},
        {"CGSHIM_EXCLUDE=bash , called* ", CGS_MODE_OFF},
        {"CGSHIM_EXCLUDE=*test_config,bash", CGS_MODE_OFF},
        {"CGSHIM_EXCLUDE=*[t]est_config*", CGS_MODE_OFF},
        {"CGSHIM_EXCLUDE=*/*", CGS_MODE_ON},
    };
    char         *saved = program_invocation_short_name;
    cgs_config_t config;
    size_t       i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        program_invocation_short_name = "called_so";
        cgs_config_parse(ENV(cases[i].variable), &config);
        program_invocation_short_name = saved;
        ck_assert_msg(config.mode == cases[i].mode, "%s", cases[i].variable);
        cgs_config_release(&config);
    }
}
END_TEST

/* ---- Matching ---- */

START_TEST(a_rule_without_glob_matches_its_own_name)
{
    cgs_config_t config;

    parse(ENV("CGSHIM_REGION_st*p="), "", &config);
    ck_assert_str_eq(region_of(&config, NULL, "st*p"), "st*p");
    ck_assert_str_eq(region_of(&config, "any", "st*p"), "st*p");
    ck_assert_str_eq(region_of(&config, NULL, "step"), "");
    ck_assert_str_eq(region_of(&config, NULL, NULL), "");
    cgs_config_release(&config);
}
END_TEST

START_TEST(the_first_rule_that_matches_counts)
{
    cgs_config_t config;

    parse(ENV("CGSHIM_REGION_one=nvtx=step1 enable=0",
              "CGSHIM_REGION_all=nvtx=step*", "CGSHIM_REGION_two=nvtx=step2"),
          "", &config);
    ck_assert_str_eq(region_of(&config, NULL, "step1"), "one");
    ck_assert(!cgs_config_match(&config, NULL, "step1")->enable);
    ck_assert_str_eq(region_of(&config, NULL, "step2"), "all");
    ck_assert_str_eq(region_of(&config, NULL, "other"), "");
    cgs_config_release(&config);
}
END_TEST

START_TEST(a_glob_may_name_the_domain)
{
    static const struct {
        const char *glob;
        const char *domain;
        const char *text;
        bool       matches;
    } cases[] = {
        {"step", NULL, "step", true},
        {"step", "torch", "step", true},
        {"torch:step", "torch", "step", true},
        {"torch:step", NULL, "step", false},
        {"torch:step", "other", "step", false},
        {"torch:step", "torch", "other", false},
        {"t*:*", "torch", "anything", true},
        {":step", NULL, "step", true},
        {":step", "torch", "step", false},
        {"*:step", NULL, "step", true},
        {"*:step", "torch", "step", true},
        {"*:a::b", NULL, "a::b", true},
        {"a::b", NULL, "a::b", false},
        {"a\\:\\:b", NULL, "a::b", true},
        {"step[[:digit:]]", "torch", "step7", true},
        {"step[[:digit:]]", NULL, "stepx", false},
        {"t[[:alpha:]]rch:s[]:]p", "torch", "s:p", true},
        {"s[:x]y", NULL, "s:y", true},
        {"s[^:]y", NULL, "sxy", true},
        {"s[:y", "s[", "y", true},
        {"*", NULL, NULL, true},
    };
    cgs_config_t config;
    char         text[128];
    size_t       i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        snprintf(text, sizeof(text), "CGSHIM_REGION_r=nvtx='%s'",
                 cases[i].glob);
        parse(ENV(text), "", &config);
        ck_assert_msg((cgs_config_match(&config, cases[i].domain,
                                        cases[i].text) != NULL) ==
                      cases[i].matches, "%s with %s:%s", cases[i].glob,
                      cases[i].domain, cases[i].text);
        cgs_config_release(&config);
    }
}
END_TEST

/* ---- What cannot be followed ---- */

#define NUMBER "takes a whole number from 0 to 4294967295"
#define CHANGE "takes patch, recapture or eager"
#define GLOB \
    "takes the text of a range or a glob for it, after domain: for a domain"
#define KEYS "takes nvtx, from, to, calls, between, warmup, on_change, " \
    "max_defer_us, streams, variants, " \
    "chunk, gate, verify, enable"

START_TEST(a_wrong_rule_is_one_line_and_ignored)
{
    static const struct {
        const char *rule;
        const char *says;
    } cases[] = {
        {"warmup=abc", "warmup=abc: " NUMBER},
        {"warmup=-1", "warmup=-1: " NUMBER},
        {"warmup=+1", "warmup=+1: " NUMBER},
        {"warmup=' 1'", "warmup= 1: " NUMBER},
        {"warmup=0x10", "warmup=0x10: " NUMBER},
        {"warmup=1.5", "warmup=1.5: " NUMBER},
        {"warmup=4294967296", "warmup=4294967296: " NUMBER},
        {"warmup=18446744073709551617", "warmup=18446744073709551617: "
         NUMBER},
        {"warmup=12junk", "warmup=12junk: " NUMBER},
        {"warmup=", "warmup=: " NUMBER},
        {"warmup=''", "warmup=: " NUMBER},
        {"warmup", "warmup: has no value, " NUMBER},
        {"warmup = 1", "warmup: has no value, " NUMBER},
        {"warmup=1 enable=1 warmup=1", "warmup=1: given twice, " NUMBER},
        {"on_change=Patch", "on_change=Patch: " CHANGE},
        {"on_change=patchy", "on_change=patchy: " CHANGE},
        {"on_change=", "on_change=: " CHANGE},
        {"on_change", "on_change: has no value, " CHANGE},
        {"on_change=patch on_change=eager", "on_change=eager: given twice, "
         CHANGE},
        {"enable=2", "enable=2: takes 0 or 1"},
        {"enable=10", "enable=10: takes 0 or 1"},
        {"enable=yes", "enable=yes: takes 0 or 1"},
        {"enable=", "enable=: takes 0 or 1"},
        {"nvtx=", "nvtx=: " GLOB},
        {"nvtx=domain:", "nvtx=domain:: " GLOB},
        {"nvtx", "nvtx: has no value, " GLOB},
        {"nvtx=a nvtx=b", "nvtx=b: given twice, " GLOB},
        {"nvtx='a b", "nvtx=a b: takes a closing quote"},
        {"nvtx=a warmup=\"1", "warmup=1: takes a closing quote"},
        {"nvtx=a wramup=1", "wramup=1: not a key here (warmup is), " KEYS},
        {"Warmup=1", "Warmup=1: not a key here (warmup is), " KEYS},
        {"variant=4", "variant=4: not a key here (variants is), " KEYS},
        {"tp=k", "tp=k: not a key here (to is), " KEYS},
        {"memory_mb=4", "memory_mb=4: not a key here, " KEYS},
        {"nvtx=a from=b", "takes one of nvtx, from and between, not more"},
        {"between=sync from=b", "takes one of nvtx, from and between, not "
         "more"},
        {"nvtx=a to=b", "takes to and calls beside from alone"},
        {"calls=3", "takes to and calls beside from alone"},
        {"from=a to=b calls=3", "takes one of to and calls, not both"},
        {"=1", "=1: not a key here, " KEYS},
        {"junk warmup=x", "junk: not a key here, " KEYS},
        {"warmup=\x1b[31m", "warmup=\\x1b[31m: " NUMBER},
    };
    cgs_config_t config;
    char         variable[256], line[512];
    size_t       i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        snprintf(variable, sizeof(variable), "CGSHIM_REGION_step=%s",
                 cases[i].rule);
        snprintf(line, sizeof(line), "cgshim: CGSHIM_REGION_step: %s; this "
                 "rule is ignored\n", cases[i].says);
        parse(ENV("CGSHIM_REGION_a=warmup=3", variable,
                  "CGSHIM_REGION_z=warmup=4"), line, &config);
        ck_assert_uint_eq(config.num_rules, 2);
        ck_assert_str_eq(config.rules[0].name, "a");
        ck_assert_str_eq(config.rules[1].name, "z");
        cgs_config_release(&config);
    }
}
END_TEST

START_TEST(a_report_that_is_switched_on_goes_to_stderr)
{
    static const char *const on[] = {
        "1", "on", "YES", "true", "stdout", "2", NULL
    };
    static const char *const off[] = {"0", "off", "No", "false", "none", NULL};
    const char   *takes = "takes stderr or the name of a file";
    cgs_config_t config;
    char         variable[64], line[256];
    int          i;

    for (i = 0; on[i] != NULL; ++i) {
        snprintf(variable, sizeof(variable), "CGSHIM_REPORT=%s", on[i]);
        snprintf(line, sizeof(line), "cgshim: %s: %s; it goes to stderr\n",
                 variable, takes);
        parse(ENV(variable), line, &config);
        ck_assert_str_eq(config.report, "stderr");
        cgs_config_release(&config);
    }
    for (i = 0; off[i] != NULL; ++i) {
        snprintf(variable, sizeof(variable), "CGSHIM_REPORT=%s", off[i]);
        snprintf(line, sizeof(line), "cgshim: %s: %s; this variable is "
                 "ignored\n", variable, takes);
        parse(ENV(variable), line, &config);
        ck_assert_ptr_null(config.report);
        cgs_config_release(&config);
    }
    parse(ENV("CGSHIM_TRACE=1"), "cgshim: CGSHIM_TRACE=1: takes the name of a "
          "file; this variable is ignored\n", &config);
    ck_assert_ptr_null(config.trace);
    cgs_config_release(&config);
    parse(ENV("CGSHIM_REPORT=./1"), "", &config);
    ck_assert_ptr_nonnull(strstr(config.report, "/./1"));
    cgs_config_release(&config);
}
END_TEST

START_TEST(a_wrong_rule_does_not_make_every_range_a_region)
{
    cgs_config_t config;

    parse(ENV("CGSHIM_REGION_step=warmup=x"), "cgshim: CGSHIM_REGION_step: "
          "warmup=x: " NUMBER "; this rule is ignored\n", &config);
    ck_assert_uint_eq(config.num_rules, 0);
    ck_assert(!config.every_range);
    cgs_config_release(&config);
}
END_TEST

START_TEST(wrong_defaults_stay_those_built_in)
{
    static const struct {
        const char *variable;
        const char *says;
    } cases[] = {
        {"CGSHIM_DEFAULTS=warmup=5 on_change=x", "on_change=x: " CHANGE},
        {"CGSHIM_DEFAULTS=warmup=5 nvtx=a", "nvtx=a: not a key here, takes "
         "warmup, on_change, max_defer_us, streams, variants, chunk, gate, "
         "verify, memory_mb, verify_mb, enable"},
        {"CGSHIM_DEFAULTS=warmup=5 'a", "'a: not a key here, takes warmup, "
         "on_change, max_defer_us, streams, variants, chunk, gate, "
         "verify, memory_mb, verify_mb, enable"},
    };
    cgs_config_t config;
    char         line[512];
    size_t       i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        snprintf(line, sizeof(line), "cgshim: CGSHIM_DEFAULTS: %s; the "
                 "defaults stay those built in\n", cases[i].says);
        parse(ENV(cases[i].variable, "CGSHIM_REGION_a="), line, &config);
        ck_assert_uint_eq(config.defaults.warmup, 0);
        ck_assert_uint_eq(config.num_rules, 1);
        ck_assert_uint_eq(config.rules[0].warmup, 0);
        cgs_config_release(&config);
    }
}
END_TEST

START_TEST(a_wrong_variable_is_one_line_and_ignored)
{
    static const struct {
        const char *variable;
        const char *says;
    } cases[] = {
        {"CGSHIM=maybe", "CGSHIM=maybe: takes on, observe or off; this "
         "variable is ignored"},
        {"CGSHIM=", "CGSHIM=: takes on, observe or off; this variable is "
         "ignored"},
        {"CGSHIM_LOG=all", "CGSHIM_LOG=all: takes off, error, warn, info or "
         "debug; this variable is ignored"},
        {"CGSHIM_LOG_FILE=", "CGSHIM_LOG_FILE=: takes stderr or the name of "
         "a file; this variable is ignored"},
        {"CGSHIM_REPORT=", "CGSHIM_REPORT=: takes stderr or the name of a "
         "file; this variable is ignored"},
        {"CGSHIM_TRACE=stderr", "CGSHIM_TRACE=stderr: takes the name of a "
         "file; this variable is ignored"},
        {"CGSHIM_PROFILE=", "CGSHIM_PROFILE=: takes stderr or the name of a "
         "file; this variable is ignored"},
        {"CGSHIM_DUMP=", "CGSHIM_DUMP=: takes the name of a directory; this "
         "variable is ignored"},
        {"CGSHIM_CONFIG=", "CGSHIM_CONFIG=: takes the name of a file with "
         "lines VARIABLE=value; no file is read"},
        {"CGSHIM_REGION_=warmup=1", "CGSHIM_REGION_: takes the name of a "
         "region after it; this rule is ignored"},
        {"CGSHIM_LGO=info", "CGSHIM_LGO: not a variable of cgshim (CGSHIM_LOG "
         "is), which takes CGSHIM, CGSHIM_REGION_<name>, CGSHIM_DEFAULTS, "
         "CGSHIM_CONFIG, CGSHIM_EXCLUDE, CGSHIM_AUTO, CGSHIM_SAVE, "
         "CGSHIM_LOG, CGSHIM_LOG_FILE, CGSHIM_REPORT, CGSHIM_TRACE, "
         "CGSHIM_DUMP, CGSHIM_PROFILE; it is ignored"},
    };
    cgs_config_t config;
    char         line[512];
    size_t       i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        snprintf(line, sizeof(line), "cgshim: %s\n", cases[i].says);
        parse(ENV(cases[i].variable), line, &config);
        ck_assert_int_eq(config.mode, CGS_MODE_ON);
        ck_assert_int_eq(config.log_level, CGS_LOG_OFF);
        ck_assert_ptr_null(config.log_file);
        ck_assert_ptr_null(config.report);
        ck_assert_uint_eq(config.num_rules, 0);
        cgs_config_release(&config);
    }
}
END_TEST

START_TEST(a_message_stays_one_line_whatever_the_value)
{
    cgs_config_t config;
    capture_t    capture;
    char         *variable = malloc(100000);
    size_t       length;

    ck_assert_ptr_nonnull(variable);
    length = (size_t)sprintf(variable, "CGSHIM_REGION_a\nb=warmup='");
    memset(variable + length, '\n', 99000);
    variable[length + 99000] = '\0';
    capture_begin(&capture);
    cgs_config_parse(ENV(variable), &config);
    capture_end(&capture);
    length = strlen(capture.text);
    ck_assert_uint_lt(length, 400);
    ck_assert_ptr_eq(strchr(capture.text, '\n'), capture.text + length - 1);
    ck_assert_ptr_nonnull(strstr(capture.text, "CGSHIM_REGION_a\\nb: warmup="));
    ck_assert_ptr_nonnull(strstr(capture.text, "takes a closing quote"));
    capture_release(&capture);
    cgs_config_release(&config);
    free(variable);
}
END_TEST

/* ---- File ---- */

/* What a file with this text gives, with the environment "CGSHIM_LOG=warn" */
static void parse_file(const char *text, const char *messages,
                       cgs_config_t *config)
{
    file_write("conf", text, strlen(text));
    parse(ENV("CGSHIM_LOG=warn", "CGSHIM_CONFIG=conf"), messages, config);
}

START_TEST(a_file_holds_the_same_variables)
{
    char         *scratch = scratch_enter();
    cgs_config_t config;

    parse_file("# a comment\n\n   # CGSHIM=off\n"
               "CGSHIM_REGION_a=nvtx='x y' warmup=1\r\n"
               "  CGSHIM_REGION_b = \"nvtx='x z' warmup=2\"  \n"
               "CGSHIM_DEFAULTS='on_change=eager'\n"
               "CGSHIM_REGION_c=\n"
               "CGSHIM=observe", "", &config);
    ck_assert_int_eq(config.mode, CGS_MODE_OBSERVE);
    ck_assert_uint_eq(config.num_rules, 3);
    ck_assert_str_eq(config.rules[0].nvtx, "x y");
    ck_assert_uint_eq(config.rules[0].warmup, 1);
    ck_assert_str_eq(config.rules[1].name, "b");
    ck_assert_str_eq(config.rules[1].nvtx, "x z");
    ck_assert_uint_eq(config.rules[1].warmup, 2);
    ck_assert_str_eq(config.rules[2].name, "c");
    ck_assert_int_eq(config.rules[2].on_change, CGS_ON_CHANGE_EAGER);
    cgs_config_release(&config);
    scratch_leave(scratch);
}
END_TEST

START_TEST(the_environment_wins_over_the_file)
{
    char         *scratch = scratch_enter();
    cgs_config_t config;
    const char   *text    = "CGSHIM_REGION_a=nvtx=*\nCGSHIM_REGION_b=warmup=1\n"
                            "CGSHIM=off\nCGSHIM_LOG=nonsense\n";

    file_write("conf", text, strlen(text));
    parse(ENV("CGSHIM_LOG=info", "CGSHIM_REGION_b=warmup=2",
              "CGSHIM_CONFIG=conf"), "", &config);
    ck_assert_int_eq(config.mode, CGS_MODE_OFF);
    ck_assert_int_eq(config.log_level, CGS_LOG_INFO);
    ck_assert_uint_eq(config.num_rules, 2);
    ck_assert_str_eq(config.rules[0].name, "b");
    ck_assert_uint_eq(config.rules[0].warmup, 2);
    ck_assert_str_eq(region_of(&config, NULL, "b"), "b");
    ck_assert_str_eq(region_of(&config, NULL, "x"), "a");
    cgs_config_release(&config);
    scratch_leave(scratch);
}
END_TEST

START_TEST(a_wrong_line_of_a_file_is_one_line_with_its_number)
{
    static const struct {
        const char *line;
        const char *says;
    } cases[] = {
        {"junk", "junk: takes CGSHIM...=value; this line is ignored"},
        {"=", "=: takes CGSHIM...=value; this line is ignored"},
        {"PATH=/bin", "PATH=/bin: takes CGSHIM...=value; this line is "
         "ignored"},
        {"CGSHIM_CONFIG=other", "CGSHIM_CONFIG: not in a file, takes its "
         "place in the environment; this line is ignored"},
        {"CGSHIM='off", "CGSHIM: takes a closing quote; this line is "
         "ignored"},
        {"CGSHIM_REGION_a=", "CGSHIM_REGION_a: given twice, takes one line; "
         "this line is ignored"},
        {"CGSHIM_REGION_b=enable=x", "CGSHIM_REGION_b: enable=x: takes 0 or "
         "1; this rule is ignored"},
        {"CGSHIM=x", "CGSHIM=x: takes on, observe or off; this variable is "
         "ignored"},
    };
    char         *scratch = scratch_enter();
    cgs_config_t config;
    char         text[256], message[256];
    size_t       i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        snprintf(text, sizeof(text), "CGSHIM_REGION_a=warmup=1\n\n%s\n",
                 cases[i].line);
        snprintf(message, sizeof(message), "cgshim: conf:3: %s\n",
                 cases[i].says);
        parse_file(text, message, &config);
        ck_assert_int_eq(config.mode, CGS_MODE_ON);
        ck_assert_uint_eq(config.num_rules, 1);
        ck_assert_uint_eq(config.rules[0].warmup, 1);
        cgs_config_release(&config);
    }
    scratch_leave(scratch);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_one_line)
{
    static const struct {
        const char *name;
        int        error;
    } cases[] = {
        {"missing", ENOENT}, {"dir", EISDIR}, {"fifo", EINVAL},
        {"binary", EILSEQ}, {"huge", EFBIG},
    };
    char         *scratch = scratch_enter();
    cgs_config_t config;
    char         variable[64], message[256];
    size_t       i;

    ck_assert_int_eq(mkdir("dir", 0755), 0);
    ck_assert_int_eq(mkfifo("fifo", 0644), 0);
    file_write("binary", "CGSHIM=off\n\0x", 13);
    file_write("huge", "CGSHIM=off\n", 11);
    ck_assert_int_eq(truncate("huge", 1L << 32), 0);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        snprintf(variable, sizeof(variable), "CGSHIM_CONFIG=%s",
                 cases[i].name);
        snprintf(message, sizeof(message), "cgshim: %s: %s, takes the name of "
                 "a file with lines VARIABLE=value; no file is read\n",
                 variable, strerror(cases[i].error));
        parse(ENV(variable, "CGSHIM_REGION_a="), message, &config);
        ck_assert_int_eq(config.mode, CGS_MODE_ON);
        ck_assert_uint_eq(config.num_rules, 1);
        cgs_config_release(&config);
    }
    scratch_leave(scratch);
}
END_TEST

/* ---- Memory ---- */

START_TEST(without_memory_a_rule_is_ignored_and_said_so)
{
    const char   *text    = "CGSHIM_REGION_c=nvtx=d:c\nCGSHIM_REGION_d=\n";
    char         *scratch = scratch_enter();
    cgs_config_t config;
    capture_t    capture;
    unsigned     n;
    bool         failed;

    file_write("conf", text, strlen(text));
    for (n = 1;; ++n) {
        capture_begin(&capture);
        fail_allocation = n;
        cgs_config_parse(ENV("CGSHIM_REGION_a=nvtx=x:y warmup=1",
                             "CGSHIM_REGION_b=", "CGSHIM_CONFIG=conf",
                             "CGSHIM_DEFAULTS=warmup=2", "CGSHIM_REPORT=r",
                             "CGSHIM_EXCLUDE=none", "CGSHIM_LOG_FILE=l",
                             "CGSHIM_TRACE=t", "CGSHIM_DUMP=d",
                             "CGSHIM_PROFILE=p"),
                         &config);
        failed          = fail_allocation == 0;
        fail_allocation = 0;
        capture_end(&capture);
        ck_assert_int_eq(config.mode, CGS_MODE_ON);
        if (!failed) {
            break;
        }
        /* One line, and at most what the one failure was about is missing */
        ck_assert_ptr_eq(strchr(capture.text, '\n'),
                         capture.text + strlen(capture.text) - 1);
        ck_assert_ptr_nonnull(strcasestr(capture.text, "memory"));
        ck_assert_uint_ge(config.num_rules,
                          strstr(capture.text, "CONFIG") != NULL ? 2 : 3);
        capture_release(&capture);
        cgs_config_release(&config);
    }
    ck_assert_str_eq(capture.text, "");
    ck_assert_uint_eq(config.num_rules, 4);
    ck_assert_uint_gt(n, 20);
    capture_release(&capture);
    cgs_config_release(&config);
    scratch_leave(scratch);
}
END_TEST

/* ---- The process ---- */

static void child_changes_its_environment(void)
{
    char region[] = "CGSHIM_REGION_a=warmup=9", other[] = "OTHER=1";
    char *env[]   = {other, region, NULL}, *later[] = {other, NULL};

    cgs_config_snapshot(env);
    memset(region, 'x', sizeof(region) - 1);
    cgs_config_snapshot(later);
    child_assert(cgs_config_get()->num_rules == 1);
    child_assert(strcmp(cgs_config_get()->rules[0].name, "a") == 0);
    child_assert(cgs_config_get()->rules[0].warmup == 9);
}

START_TEST(the_snapshot_is_what_counts_whatever_comes_later)
{
    in_child(child_changes_its_environment);
}
END_TEST

static void child_has_no_snapshot(void)
{
    setenv("CGSHIM", "observe", 1);
    child_assert(cgs_config_get()->mode == CGS_MODE_OBSERVE);
}

START_TEST(without_a_snapshot_the_environment_is_read)
{
    in_child(child_has_no_snapshot);
}
END_TEST

static void child_snapshots_without_memory(void)
{
    char *env[] = {"CGSHIM_REGION_a=", NULL};

    fail_allocation = 1;
    cgs_config_snapshot(env);
    child_assert(fail_allocation == 0);
    child_assert(cgs_config_get()->mode == CGS_MODE_OFF);
}

START_TEST(a_snapshot_without_memory_turns_all_off)
{
    in_child(child_snapshots_without_memory);
}
END_TEST

static void *get_in_thread(void *arg)
{
    (void)arg;
    return (void *)cgs_config_get();
}

static void child_gets_in_threads(void)
{
    char      *env[] = {"CGSHIM_REGION_a=warmup=x", "CGSHIM_REGION_b=", NULL};
    pthread_t threads[NUM_THREADS];
    void      *config;
    int       i;

    cgs_config_snapshot(env);
    for (i = 0; i < NUM_THREADS; ++i) {
        child_assert(pthread_create(&threads[i], NULL, get_in_thread,
                                    NULL) == 0);
    }
    for (i = 0; i < NUM_THREADS; ++i) {
        child_assert(pthread_join(threads[i], &config) == 0);
        child_assert(config == cgs_config_get());
    }
    child_assert(cgs_config_get()->num_rules == 1);
}

START_TEST(eight_threads_get_one_configuration_and_one_line)
{
    capture_t capture;

    capture_begin(&capture);
    in_child(child_gets_in_threads);
    capture_expect(&capture, "cgshim: CGSHIM_REGION_a: warmup=x: " NUMBER
                   "; this rule is ignored\n");
}
END_TEST

static void child_is_secure(void)
{
    char *env[] = {"CGSHIM=on", "CGSHIM_REGION_a=warmup=x",
                   "CGSHIM_REPORT=/r", NULL};

    is_secure = true;
    cgs_config_snapshot(env);
    child_assert(cgs_config_get()->mode == CGS_MODE_OFF);
    child_assert(cgs_config_get()->report == NULL);
    child_assert(cgs_config_get()->num_rules == 0);
    child_assert(!cgs_config_get()->every_range);
}

START_TEST(a_program_with_another_users_rights_ignores_all)
{
    capture_t capture;

    capture_begin(&capture);
    in_child(child_is_secure);
    capture_expect(&capture, "");
}
END_TEST

static void child_logs(void)
{
    char *env[] = {"CGSHIM_LOG=info", "CGSHIM_LOG_FILE=log", NULL};

    cgs_config_snapshot(env);
    cgs_log(CGS_LOG_INFO, "too early");
    cgs_config_get();
    child_assert(chdir("/") == 0);
    cgs_log(CGS_LOG_INFO, "in time");
}

START_TEST(the_log_is_set_up_with_the_configuration)
{
    char      *scratch = scratch_enter();
    capture_t capture;
    char      *text;

    capture_begin(&capture);
    in_child(child_logs);
    capture_expect(&capture, "");
    text = file_text("log");
    ck_assert_ptr_nonnull(strstr(text, "info: in time\n"));
    ck_assert_ptr_null(strstr(text, "too early"));
    free(text);
    scratch_leave(scratch);
}
END_TEST

int main(void)
{
    Suite   *suite  = suite_create("config");
    TCase   *tests  = tcase_create("config");
    SRunner *runner = srunner_create(suite);
    int     failed;

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, without_variables_all_is_built_in);
    tcase_add_test(tests, each_word_of_a_variable_is_taken);
    tcase_add_test(tests, each_key_of_a_rule_is_taken);
    tcase_add_test(tests, quoted_values_hold_blanks);
    tcase_add_test(tests, defaults_hold_for_rules_that_say_nothing);
    tcase_add_test(tests, defaults_alone_leave_every_range_a_region);
    tcase_add_test(tests, of_two_variables_with_one_name_the_first_counts);
    tcase_add_test(tests, file_names_are_absolute_and_keep_their_percents);
    tcase_add_test(tests, an_excluded_program_is_left_alone);
    tcase_add_test(tests, a_rule_without_glob_matches_its_own_name);
    tcase_add_test(tests, the_first_rule_that_matches_counts);
    tcase_add_test(tests, a_glob_may_name_the_domain);
    tcase_add_test(tests, a_wrong_rule_is_one_line_and_ignored);
    tcase_add_test(tests, a_report_that_is_switched_on_goes_to_stderr);
    tcase_add_test(tests, a_wrong_rule_does_not_make_every_range_a_region);
    tcase_add_test(tests, wrong_defaults_stay_those_built_in);
    tcase_add_test(tests, a_wrong_variable_is_one_line_and_ignored);
    tcase_add_test(tests, a_message_stays_one_line_whatever_the_value);
    tcase_add_test(tests, a_file_holds_the_same_variables);
    tcase_add_test(tests, the_environment_wins_over_the_file);
    tcase_add_test(tests, a_wrong_line_of_a_file_is_one_line_with_its_number);
    tcase_add_test(tests, a_file_that_cannot_be_read_is_one_line);
    tcase_add_test(tests, without_memory_a_rule_is_ignored_and_said_so);
    tcase_add_test(tests, the_snapshot_is_what_counts_whatever_comes_later);
    tcase_add_test(tests, without_a_snapshot_the_environment_is_read);
    tcase_add_test(tests, a_snapshot_without_memory_turns_all_off);
    tcase_add_test(tests, eight_threads_get_one_configuration_and_one_line);
    tcase_add_test(tests, a_program_with_another_users_rights_ignores_all);
    tcase_add_test(tests, the_log_is_set_up_with_the_configuration);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
