/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: environment strings, one a line (\001 stands for a
 * newline in one), and after an empty line the file that CGSHIM_CONFIG=@ names.
 *
 * Whatever they are, what is printed is whole lines, the configuration keeps
 * to its bounds, ranges are matched as a plain matcher of globs does, and the
 * answer to check-config is a file that means the same again.
 */
/* The answer is made of what is static there. */
#include "../../src/config.c"

#include "fuzz.h"

#include <sys/mman.h>

#define MAX_STRINGS 256

/* A file that only its descriptor leads to; `name` is set to its name. */
static int make_file(const char *text, size_t length, char name[32])
{
    int fd = memfd_create("config", MFD_CLOEXEC);

    FUZZ_CHECK(fd >= 0, "no memory");
    FUZZ_CHECK(write(fd, text, length) == (ssize_t)length, "no memory");
    snprintf(name, 32, "/proc/self/fd/%d", fd);
    return fd;
}

/* ---- Globs ---- */

/* Whether a glob without brackets matches; what stands in brackets is left to
 * fnmatch(3). A backslash at the end matches nothing there. */
static bool matches(const char *glob, const char *text)
{
    if (*glob == '*') {
        return matches(glob + 1, text) ||
               ((*text != '\0') && matches(glob, text + 1));
    } else if (*glob == '\0') {
        return *text == '\0';
    } else if (*text == '\0') {
        return false;
    } else if (*glob == '?') {
        return matches(glob + 1, text + 1);
    }
    glob += *glob == '\\';
    return (*glob == *text) && (*glob != '\0') && matches(glob + 1, text + 1);
}

static bool is_plain_glob(const char *glob)
{
    return (glob == NULL) ||
           ((strchr(glob, '[') == NULL) && (strlen(glob) < 24));
}

static bool rule_matches(const cgs_rule_t *rule, const char *domain,
                         const char *text)
{
    if ((rule->from != NULL) || rule->between) {
        return false;
    }
    if (rule->nvtx == NULL) {
        return strcmp(rule->name, text) == 0;
    }
    return matches(rule->nvtx, text) &&
           ((rule->nvtx_domain == NULL) ||
            matches(rule->nvtx_domain, domain));
}

/* Each rule's own texts are tried on all rules. */
static void check_match(const cgs_config_t *config, const char *domain,
                        const char *text)
{
    const cgs_rule_t *expected = NULL;
    const cgs_rule_t *rule;

    if ((strlen(text) >= 24) || (strlen(domain) >= 24)) {
        return;
    }
    for (rule = config->rules; (expected == NULL) &&
         (rule < config->rules + config->num_rules); ++rule) {
        if (!is_plain_glob(rule->nvtx) || !is_plain_glob(rule->nvtx_domain)) {
            cgs_config_match(config, domain, text);
            return;
        }
        expected = rule_matches(rule, domain, text) ? rule : NULL;
    }
    FUZZ_CHECK(cgs_config_match(config, domain, text) == expected,
               "domain %s, text %s", domain, text);
}

static void check_matches(const cgs_config_t *config)
{
    const cgs_rule_t *rule;
    size_t           i;

    FUZZ_CHECK(cgs_config_match(config, NULL, NULL) ==
               cgs_config_match(config, "", ""), "no text");
    for (i = 0; (i < config->num_rules) && (i < 8); ++i) {
        rule = &config->rules[i];
        check_match(config, "", rule->name);
        check_match(config, rule->name, rule->nvtx != NULL ? rule->nvtx : "");
        check_match(config, rule->nvtx_domain != NULL ? rule->nvtx_domain : "",
                    rule->nvtx != NULL ? rule->nvtx : rule->name);
        check_match(config, "", "abcabc");
    }
}

/* ---- Bounds ---- */

static void check_rule(const cgs_rule_t *rule)
{
    FUZZ_CHECK((rule->variants >= 1) && (rule->variants <= 64), "%u",
               rule->variants);
    FUZZ_CHECK(rule->on_change <= CGS_ON_CHANGE_EAGER, "%u", rule->on_change);
    FUZZ_CHECK(rule->streams <= CGS_STREAMS_SEPARATE, "%u", rule->streams);
    FUZZ_CHECK(rule->gate <= CGS_GATE_RANDOM, "%u", rule->gate);
    FUZZ_CHECK((rule->nvtx != NULL) || (rule->nvtx_domain == NULL), "nvtx");
    FUZZ_CHECK((rule->nvtx != NULL) + (rule->from != NULL) + rule->between <=
               1, "one of three");
    FUZZ_CHECK((rule->from != NULL) || ((rule->to == NULL) &&
                                        (rule->calls == 0)), "from");
}

static void check_config(const cgs_config_t *config)
{
    const char *const files[] = {config->log_file, config->report,
                                 config->trace, config->save, config->dump,
                                 config->profile};
    size_t     i;

    check_rule(&config->defaults);
    FUZZ_CHECK(config->defaults.name == NULL, "a name");
    FUZZ_CHECK(config->mode <= CGS_MODE_OFF, "%u", config->mode);
    FUZZ_CHECK(config->log_level <= CGS_LOG_DEBUG, "%u", config->log_level);
    FUZZ_CHECK(!config->every_range || (config->num_rules == 0), "rules");
    for (i = 0; i < config->num_rules; ++i) {
        check_rule(&config->rules[i]);
        FUZZ_CHECK((config->rules[i].name != NULL) &&
                   (config->rules[i].name[0] != '\0'), "no name");
    }
    for (i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
        FUZZ_CHECK((files[i] == NULL) || (files[i][0] == '/') ||
                   (strcmp(files[i], "stderr") == 0), "%s", files[i]);
    }
}

/* ---- The answer ---- */

static void show(const char *const *env, cgs_text_t *text, bool *is_whole)
{
    cgs_config_build_t build;

    cgs_config_make(env, &build);
    cgs_config_show(text, &build);
    *is_whole = (build.config.num_rules > 0) || build.config.every_range;
    cgs_config_release_build(&build);
    cgs_config_release(&build.config);
    FUZZ_CHECK(!text->failed, "no memory");
    FUZZ_CHECK(fuzz_are_lines(text->data, text->length), "%.*s",
               (int)text->length, text->data);
}

/* Text without the line that names the file, ended by NUL. To be freed. */
static char *without_file(const cgs_text_t *text)
{
    static const char begin[] = "\n# CGSHIM_CONFIG";
    char              *copy   = strndup(text->data, text->length);
    char              *line, *end;

    FUZZ_CHECK(copy != NULL, "no memory");
    line = strstr(copy, begin);
    FUZZ_CHECK(line != NULL, "%s", copy);
    end = strchr(line + 1, '\n');
    memmove(line, end, strlen(end) + 1);
    return copy;
}

/* A name that ends in a blank cannot stand in a file, and what is no text does
 * not come back from an answer. */
static bool can_come_back(const char *const *env, const char *file)
{
    const char *equals;

    for (; *env != NULL; ++env) {
        equals = strchr(*env, '=');
        if (!fuzz_is_line(*env) || (equals == NULL) || (equals == *env) ||
            (equals[-1] == ' ')) {
            return false;
        }
    }
    for (; *file != '\0'; ++file) {
        if ((*file != '\n') && (((unsigned char)*file < ' ') ||
                                ((unsigned char)*file > '~'))) {
            return false;
        }
    }
    return true;
}

static void check_answer(const char *const *env, const char *file)
{
    cgs_text_t first = {0}, second = {0};
    char       name[32], variable[64], *before, *after;
    const char *again[] = {variable, NULL};
    const char *printed;
    size_t     length;
    bool       is_whole, ignored;
    int        fd;

    fuzz_collect();
    show(env, &first, &is_whole);
    fuzz_collected(&length);
    if (is_whole && can_come_back(env, file)) {
        fd = make_file(first.data, first.length, name);
        snprintf(variable, sizeof(variable), "CGSHIM_CONFIG=%s", name);
        fuzz_collect();
        show(again, &second, &ignored);
        printed = fuzz_collected(&length);
        FUZZ_CHECK(length == 0, "%s", printed);
        before = without_file(&first);
        after  = without_file(&second);
        FUZZ_CHECK(strcmp(before, after) == 0, "\n%s\n---\n%s", before, after);
        free(before);
        free(after);
        close(fd);
    }
    cgs_text_release(&first);
    cgs_text_release(&second);
}

/* ---- Input ---- */

static char *next_line(fuzz_input_t *input)
{
    size_t     left = (size_t)(input->end - input->at);
    const char *end = left > 0 ? memchr(input->at, '\n', left) : NULL;
    char       *line, *c;
    size_t     length = end != NULL ? (size_t)(end - (const char *)input->at) :
                                      left;

    if (left == 0) {
        return NULL;
    }
    line = strndup((const char *)input->at, length);
    FUZZ_CHECK(line != NULL, "no memory");
    input->at += length + (end != NULL);
    for (c = line; *c != '\0'; ++c) {
        *c = *c == '\001' ? '\n' : *c;
    }
    return line;
}

/* @return how many there are. */
static size_t read_env(fuzz_input_t *input, char *env[MAX_STRINGS + 1])
{
    size_t num = 0;
    char   *line;

    while ((num < MAX_STRINGS) && ((line = next_line(input)) != NULL)) {
        if (*line == '\0') {
            free(line);
            break;
        }
        env[num++] = line;
    }
    env[num] = NULL;
    return num;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input_t input = {data, data + size};
    char         *env[MAX_STRINGS + 1];
    const char   *const *given = (const char *const *)env;
    size_t       num = read_env(&input, env), i, length;
    char         name[32], variable[64], *file;
    cgs_config_t config;
    const char   *printed;
    int          fd;

    fd = make_file((const char *)input.at, (size_t)(input.end - input.at),
                   name);
    file = strndup((const char *)input.at, (size_t)(input.end - input.at));
    FUZZ_CHECK(file != NULL, "no memory");
    snprintf(variable, sizeof(variable), "CGSHIM_CONFIG=%s", name);
    for (i = 0; i < num; ++i) {
        if (strcmp(env[i], "CGSHIM_CONFIG=@") == 0) {
            free(env[i]);
            env[i] = strdup(variable);
            FUZZ_CHECK(env[i] != NULL, "no memory");
        } else if (strncmp(env[i], "CGSHIM_CONFIG=", 14) == 0) {
            env[i][7] = 'c'; /* no other file is to be read */
        }
    }

    fuzz_collect();
    cgs_config_parse(given, &config);
    printed = fuzz_collected(&length);
    FUZZ_CHECK(fuzz_are_lines(printed, length), "%s", printed);
    for (i = 0; i < length; i += strcspn(printed + i, "\n") + 1) {
        FUZZ_CHECK(strncmp(printed + i, "cgshim: ", 8) == 0, "%s", printed);
    }
    check_config(&config);
    check_matches(&config);
    cgs_config_release(&config);
    check_answer(given, file);

    for (i = 0; i < num; ++i) {
        free(env[i]);
    }
    free(file);
    close(fd);
    return 0;
}
