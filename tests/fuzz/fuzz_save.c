/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CGSHIM_SAVE writes: the name of the program, then for each region a byte
 * for its number of calls and the name of the kernel that it begins with, each
 * name up to a NUL.
 *
 * Whatever they are called, the file is one for CGSHIM_CONFIG, and each rule's
 * glob is for its own kernel and no other.
 */
/* The rules are made by what is static there. */
#include "../../src/save.c"

#include "fuzz.h"

#include <fnmatch.h>

/* All that saving asks of other parts. */
cgs_region_t *cgs_region_first(void)
{
    return NULL;
}

bool cgs_region_snapshot(cgs_region_t *region, cgs_region_stats_t *stats,
                         cgshim_state_t *state)
{
    (void)region;
    (void)stats;
    (void)state;
    return false;
}

/* As strings of the environment, the lines of a file. */
static size_t read_file(char *file, const char **env, size_t room)
{
    char   *line;
    size_t num = 0;

    while ((line = strsep(&file, "\n")) != NULL) {
        if ((*line != '\0') && (*line != '#')) {
            FUZZ_CHECK(num < room, "%s", line);
            FUZZ_CHECK(strncmp(line, "CGSHIM_REGION_auto_", 19) == 0, "%s",
                       line);
            env[num++] = line;
        }
    }
    env[num] = NULL;
    return num;
}

/* One byte of the name is another one. */
static void check_others(const char *glob, const char *name)
{
    char   *other = strdup(name);
    size_t i;

    FUZZ_CHECK(other != NULL, "no memory");
    for (i = 0; (other[i] != '\0') && (i < 64); ++i) {
        other[i] = other[i] == 'x' ? 'y' : 'x';
        FUZZ_CHECK(fnmatch(glob, other, 0) != 0, "%s is for %s too", glob,
                   other);
        other[i] = name[i];
    }
    free(other);
}

/* The first rule for a kernel takes all, so there is one for each. */
static bool came_before(const found_t *found, size_t number)
{
    const char *name = found[number].region->begins_with;
    size_t     i;

    for (i = 0; i < number; ++i) {
        if ((found[i].region->begins_with != NULL) &&
            (strcmp(found[i].region->begins_with, name) == 0)) {
            return true;
        }
    }
    return false;
}

static void check_rules(const found_t *found, size_t num, char *file)
{
    const char   *env[CGS_MARKS_RULES + 1];
    size_t       num_rules = read_file(file, env, CGS_MARKS_RULES), i, rule;
    cgs_config_t config;
    const char   *printed, *name;
    size_t       length;

    fuzz_collect();
    cgs_config_parse(env, &config);
    printed = fuzz_collected(&length);
    FUZZ_CHECK(length == 0, "%s", printed);
    FUZZ_CHECK(config.num_rules == num_rules, "%zu of %zu", config.num_rules,
               num_rules);
    for (i = 0, rule = 0; (i < num) && (rule < num_rules); ++i) {
        name = found[i].region->begins_with;
        if ((name == NULL) || (*name == '\0') ||
            (strpbrk(name, "\r\n") != NULL) || came_before(found, i)) {
            continue;
        }
        FUZZ_CHECK(fnmatch(config.rules[rule].from, name, 0) == 0,
                   "%s is not for %s", config.rules[rule].from, name);
        check_others(config.rules[rule].from, name);
        FUZZ_CHECK(config.rules[rule].calls == found[i].region->unit_calls,
                   "%u", config.rules[rule].calls);
        ++rule;
    }
    FUZZ_CHECK(rule == num_rules, "%zu", rule);
    cgs_config_release(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input_t input    = {data, data + size};
    char         *program = fuzz_string(&input), *before, *file;
    cgs_region_t *regions = calloc(CGS_MARKS_RULES, sizeof(*regions));
    found_t      *found   = calloc(CGS_MARKS_RULES, sizeof(*found));
    cgs_text_t   text     = {0};
    size_t       num      = 0, i;

    FUZZ_CHECK((regions != NULL) && (found != NULL), "no memory");
    for (; (input.at < input.end) && (num < CGS_MARKS_RULES); ++num) {
        regions[num].unit_calls  = 1 + fuzz_byte(&input);
        regions[num].begins_with = fuzz_string_or_null(&input);
        /* In the order in which they are written. */
        found[num].swallowed     = CGS_MARKS_RULES - num;
        found[num].region        = &regions[num];
    }
    before = program_invocation_short_name;
    program_invocation_short_name = program;
    add_rules(&text, found, num);
    program_invocation_short_name = before;

    file = strndup(text.data, text.length);
    FUZZ_CHECK(!text.failed && (file != NULL), "no memory");
    check_rules(found, num, file);
    for (i = 0; i < num; ++i) {
        free((char *)regions[i].begins_with);
    }
    cgs_text_release(&text);
    free(file);
    free(program);
    free(regions);
    free(found);
    return 0;
}
