/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: what the CGSHIM* variables and the file they name say.
 *
 * Environment and file become one list of items {variable, value, where it
 * stands}. One table holds each variable, another each key of a rule; both
 * are tables of fields, so a new variable or key is a new line in a table
 * (and its place in cgs_config_t or cgs_rule_t). Whatever cannot be followed
 * is one line on stderr and is then as if it were not there.
 *
 * The same tables answer `cgshim check-config`, so that what it says is what
 * counts.
 */
#define _GNU_SOURCE 1
#include "config.h"

#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define CGS_CONFIG_PREFIX "CGSHIM"
#define CGS_CONFIG_REGION "CGSHIM_REGION_"
/* Set by the wrapper alone, for a program that does nothing */
#define CGS_CONFIG_CHECK  "CGSHIM_CHECK_CONFIG"
#define CGS_CONFIG_BLANKS " \t\r\n\v\f"
/* A file larger than this was not written for us */
#define CGS_CONFIG_MAX_FILE (1024L * 1024)
/* Of a value or a name in a message, more helps nobody */
#define CGS_CONFIG_MAX_SHOWN 80

/* VARIABLE=value, and where it stands */
typedef struct {
    char       *name; /* allocated, and value is in the same block */
    char       *value;
    const char *file; /* NULL: the environment */
    unsigned   line;
} cgs_config_item_t;

/* A configuration while it is made */
typedef struct {
    cgs_config_t      config;
    bool              excluded; /* by CGSHIM_EXCLUDE */
    char              *file;    /* CGSHIM_CONFIG */
    cgs_config_item_t *items;   /* the first of a name counts */
    size_t            num_items;
} cgs_config_build_t;

/* Where a key has a meaning; of no concern to variables */
typedef enum {
    CGS_CONFIG_ANYWHERE,
    CGS_CONFIG_IN_RULES,   /* not in CGSHIM_DEFAULTS */
    CGS_CONFIG_IN_DEFAULTS /* nowhere else */
} cgs_config_scope_t;

/* One thing with a name and a value: a variable, or a key of a rule */
typedef struct cgs_config_field {
    const char        *name;
    /* Puts the value at offset in base, 0 or -errno with nothing changed */
    int               (*parse)(const struct cgs_config_field *field,
                               const char *value, void *base);
    size_t            offset;
    cgs_config_scope_t scope;
    const char *const *words;    /* in the order of the enumeration */
    const char        *takes;    /* follows "takes" in a message */
} cgs_config_field_t;

/* One key=value of a rule */
typedef struct {
    char *key;
    char *value; /* NULL: there is no '=' */
} cgs_config_word_t;

/* The strings of the environment, ended by NULL; set once, by compare and
 * exchange, no lock */
static char **cgs_config_env;

/* Written under the once */
static pthread_once_t cgs_config_once = PTHREAD_ONCE_INIT;
static cgs_config_t   cgs_config_current;

static const char *const cgs_config_mode_words[] = {
    [CGS_MODE_ON]      = "on",
    [CGS_MODE_OBSERVE] = "observe",
    [CGS_MODE_OFF]     = "off",
    NULL
};

static const char *const cgs_config_level_words[] = {
    [CGS_LOG_OFF]   = "off",
    [CGS_LOG_ERROR] = "error",
    [CGS_LOG_WARN]  = "warn",
    [CGS_LOG_INFO]  = "info",
    [CGS_LOG_DEBUG] = "debug",
    NULL
};

static const char *const cgs_config_change_words[] = {
    [CGS_ON_CHANGE_PATCH]     = "patch",
    [CGS_ON_CHANGE_RECAPTURE] = "recapture",
    [CGS_ON_CHANGE_EAGER]     = "eager",
    NULL
};

static const char *const cgs_config_streams_words[] = {
    [CGS_STREAMS_JOIN]     = "join",
    [CGS_STREAMS_SEPARATE] = "separate",
    NULL
};

static const char *const cgs_config_gate_words[] = {
    [CGS_GATE_ON]     = "on",
    [CGS_GATE_OFF]    = "off",
    [CGS_GATE_RANDOM] = "random",
    NULL
};

/* ---- Messages ---- */

/* Say that an item, or the part of it in word, is not followed. What comes of
 * it is in otherwise */
static void cgs_config_reject(const cgs_config_item_t *item,
                              const cgs_config_word_t *word,
                              const char *problem, const char *takes,
                              const char *otherwise)
{
    const cgs_config_word_t none = {NULL, NULL};
    char where[CGS_CONFIG_MAX_SHOWN + 16] = "";
    char name[CGS_CONFIG_MAX_SHOWN], key[CGS_CONFIG_MAX_SHOWN];
    char value[CGS_CONFIG_MAX_SHOWN];
    size_t length;

    if (item->file != NULL) {
        length = cgs_text_escape(where, CGS_CONFIG_MAX_SHOWN, item->file);
        snprintf(where + length, sizeof(where) - length, ":%u: ", item->line);
    }
    word = word != NULL ? word : &none;
    cgs_text_escape(name, sizeof(name), item->name);
    cgs_text_escape(key, sizeof(key), word->key);
    cgs_text_escape(value, sizeof(value), word->value);
    cgs_log_complain("%s%s%s%s%s%s: %s%s%s; %s", where, name,
                     word->key != NULL ? ": " : "",
                     word->key != NULL ? key : "",
                     word->value != NULL ? "=" : "",
                     word->value != NULL ? value : "", problem,
                     takes != NULL ? "takes " : "",
                     takes != NULL ? takes : "", otherwise);
}

static bool cgs_config_in_scope(const cgs_config_field_t *field, bool rule)
{
    return field->scope != (rule ? CGS_CONFIG_IN_DEFAULTS :
                                   CGS_CONFIG_IN_RULES);
}

/* The names in a table of fields, for the message about one not in it */
static const char *cgs_config_names(const cgs_config_field_t *fields,
                                    bool rule, char *out, size_t size)
{
    size_t length = 0;

    out[0] = '\0';
    for (; fields->name != NULL && length < size; ++fields) {
        if (cgs_config_in_scope(fields, rule)) {
            length += (size_t)snprintf(out + length, size - length, "%s%s",
                                       length > 0 ? ", " : "", fields->name);
        }
    }
    return out;
}

/* ---- Values ---- */

static void *cgs_config_at(const cgs_config_field_t *field, void *base)
{
    return (char *)base + field->offset;
}

/* Puts a string in the place of another */
static void cgs_config_replace(char **string, char *value)
{
    free(*string);
    *string = value;
}

static int cgs_config_parse_unsigned(const cgs_config_field_t *field,
                                     const char *value, void *base)
{
    unsigned long long number = 0;

    /* strtoull takes blanks, signs and "" */
    if (*value == '\0') {
        return -EINVAL;
    }
    for (; *value != '\0'; ++value) {
        if (*value < '0' || *value > '9') {
            return -EINVAL;
        }
        number = number * 10 + (unsigned)(*value - '0');
        if (number > UINT_MAX) {
            return -ERANGE;
        }
    }
    *(unsigned *)cgs_config_at(field, base) = (unsigned)number;
    return 0;
}

static int cgs_config_parse_variants(const cgs_config_field_t *field,
                                     const char *value, void *base)
{
    unsigned before = *(unsigned *)cgs_config_at(field, base);
    unsigned number;
    int      status = cgs_config_parse_unsigned(field, value, base);

    number = *(unsigned *)cgs_config_at(field, base);
    if ((status == 0) && ((number < 1) || (number > 64))) {
        *(unsigned *)cgs_config_at(field, base) = before;
        status = -ERANGE;
    }
    return status;
}

static int cgs_config_parse_chunk(const cgs_config_field_t *field,
                                  const char *value, void *base)
{
    unsigned *chunk = cgs_config_at(field, base);

    if (strcmp(value, "auto") == 0) {
        *chunk = CGS_CHUNK_AUTO;
        return 0;
    }
    if (strcmp(value, "all") == 0) {
        *chunk = CGS_CHUNK_ALL;
        return 0;
    }
    /* 0 would be auto */
    return strspn(value, "0") == strlen(value) ? -EINVAL :
           cgs_config_parse_unsigned(field, value, base);
}

static int cgs_config_parse_bool(const cgs_config_field_t *field,
                                 const char *value, void *base)
{
    if ((value[0] != '0' && value[0] != '1') || value[1] != '\0') {
        return -EINVAL;
    }
    *(bool *)cgs_config_at(field, base) = value[0] == '1';
    return 0;
}

static int cgs_config_parse_word(const cgs_config_field_t *field,
                                 const char *value, void *base)
{
    unsigned i;

    for (i = 0; field->words[i] != NULL; ++i) {
        if (strcmp(field->words[i], value) == 0) {
            /* Our enumerations have no negative member, so each is unsigned */
            *(unsigned *)cgs_config_at(field, base) = i;
            return 0;
        }
    }
    return -EINVAL;
}

_Static_assert(sizeof(cgs_mode_t) == sizeof(unsigned) &&
               sizeof(cgs_log_level_t) == sizeof(unsigned) &&
               sizeof(cgs_on_change_t) == sizeof(unsigned) &&
               sizeof(cgs_streams_t) == sizeof(unsigned) &&
               sizeof(cgs_gate_mode_t) == sizeof(unsigned),
               "cgs_config_parse_word() writes enumerations as unsigned");

/* The colon between domain and glob: the first that is not escaped and not in
 * brackets, where it belongs to a class as in [[:digit:]] */
static const char *cgs_config_find_colon(const char *glob)
{
    const char *end;

    for (; *glob != '\0' && *glob != ':'; ++glob) {
        if (*glob == '\\' && glob[1] != '\0') {
            ++glob;
        } else if (*glob == '[') {
            /* A first ] is a member, the ] of [:class:] ends the class only */
            end = glob + 1;
            end += *end == '!' || *end == '^';
            end += *end == ']';
            while (*end != '\0' && *end != ']') {
                if (end[0] == '[' && end[1] == ':' &&
                    strstr(end + 2, ":]") != NULL) {
                    end = strstr(end + 2, ":]") + 1;
                }
                ++end;
            }
            /* Brackets without end stand for themselves */
            glob = *end == ']' ? end : glob;
        }
    }
    return *glob == ':' ? glob : NULL;
}

static int cgs_config_parse_string(const cgs_config_field_t *field,
                                   const char *value, void *base)
{
    char *copy;

    if (*value == '\0') {
        return -EINVAL;
    }
    copy = strdup(value);
    if (copy == NULL) {
        return -ENOMEM;
    }
    cgs_config_replace(cgs_config_at(field, base), copy);
    return 0;
}

static int cgs_config_parse_nvtx(const cgs_config_field_t *field,
                                 const char *value, void *base)
{
    cgs_rule_t *rule   = base;
    const char *colon  = cgs_config_find_colon(value);
    const char *text   = colon != NULL ? colon + 1 : value;
    char       *domain = NULL, *copy;

    (void)field;
    if (*text == '\0') {
        return -EINVAL;
    }
    copy = strdup(text);
    if (copy == NULL) {
        goto err;
    }
    if (colon != NULL) {
        domain = strndup(value, (size_t)(colon - value));
        if (domain == NULL) {
            goto err_free_copy;
        }
    }
    cgs_config_replace(&rule->nvtx, copy);
    cgs_config_replace(&rule->nvtx_domain, domain);
    return 0;

err_free_copy:
    free(copy);
err:
    return -ENOMEM;
}

/* Of its own for the sake of how it is shown */
static int cgs_config_parse_calls(const cgs_config_field_t *field,
                                  const char *value, void *base)
{
    return cgs_config_parse_unsigned(field, value, base);
}

static int cgs_config_parse_between(const cgs_config_field_t *field,
                                    const char *value, void *base)
{
    if (strcmp(value, "sync") != 0) {
        return -EINVAL;
    }
    *(bool *)cgs_config_at(field, base) = true;
    return 0;
}

/* Words that turn other programs' outputs on or off: nobody means a file of
 * that name, who could say ./1 */
static const char *const cgs_config_on_words[] = {
    "1", "2", "on", "yes", "true", "stdout", NULL
};
static const char *const cgs_config_off_words[] = {
    "0", "off", "no", "false", "none", NULL
};

static bool cgs_config_is_one_of(const char *const *words, const char *value)
{
    while (*words != NULL && strcasecmp(*words, value) != 0) {
        ++words;
    }
    return *words != NULL;
}

/* The name as it will be understood after a chdir of the program. The %p and
 * %h in it are expanded later, so a percent sign of the directory is doubled */
static int cgs_config_parse_file(const cgs_config_field_t *field,
                                 const char *value, void *base)
{
    cgs_text_t path = {0};
    char       cwd[PATH_MAX];
    const char *c;

    if (*value == '\0' ||
        cgs_config_is_one_of(cgs_config_on_words, value) ||
        cgs_config_is_one_of(cgs_config_off_words, value)) {
        return -EINVAL;
    }
    if (*value != '/' && strcmp(value, "stderr") != 0 &&
        getcwd(cwd, sizeof(cwd)) != NULL) {
        for (c = cwd; *c != '\0'; ++c) {
            cgs_text_add(&path, "%%", *c == '%' ? 2 : 0);
            cgs_text_add(&path, c, *c != '%');
        }
        cgs_text_add(&path, "/", 1);
    }
    cgs_text_add(&path, value, strlen(value) + 1);
    if (path.failed) {
        cgs_text_release(&path);
        return -ENOMEM;
    }
    cgs_config_replace(cgs_config_at(field, base), path.data);
    return 0;
}

/* The same where stderr would make no sense */
static int cgs_config_parse_path(const cgs_config_field_t *field,
                                 const char *value, void *base)
{
    return strcmp(value, "stderr") == 0 ? -EINVAL :
           cgs_config_parse_file(field, value, base);
}

static bool cgs_config_is_program(const char *glob)
{
    char       path[PATH_MAX];
    const char *slash;
    ssize_t    length;

    if (fnmatch(glob, program_invocation_short_name, 0) == 0) {
        return true;
    }
    /* A script's program is its interpreter, and argv[0] may be anything */
    length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length <= 0) {
        return false;
    }
    path[length] = '\0';
    slash        = strrchr(path, '/');
    return fnmatch(glob, slash != NULL ? slash + 1 : path, 0) == 0;
}

/* An empty list is one of no program, so no value is wrong */
static int cgs_config_parse_exclude(const cgs_config_field_t *field,
                                    const char *value, void *base)
{
    char *globs = strdup(value);
    char *glob, *rest;

    if (globs == NULL) {
        return -ENOMEM;
    }
    for (glob = strtok_r(globs, ",", &rest); glob != NULL;
         glob = strtok_r(NULL, ",", &rest)) {
        glob += strspn(glob, CGS_CONFIG_BLANKS);
        glob[strcspn(glob, CGS_CONFIG_BLANKS)] = '\0';
        if (*glob != '\0' && cgs_config_is_program(glob)) {
            *(bool *)cgs_config_at(field, base) = true;
        }
    }
    free(globs);
    return 0;
}

/* ---- Rules ---- */

/* Each key of a rule. A row of this table is all that parsing, messages and
 * CGSHIM_DEFAULTS need to know of a key */
static const cgs_config_field_t cgs_config_keys[] = {
    {"nvtx", cgs_config_parse_nvtx, 0, CGS_CONFIG_IN_RULES, NULL,
     "the text of a range or a glob for it, after domain: for a domain"},
    {"from", cgs_config_parse_string, offsetof(cgs_rule_t, from),
     CGS_CONFIG_IN_RULES, NULL, "a glob for the name of a kernel"},
    {"to", cgs_config_parse_string, offsetof(cgs_rule_t, to),
     CGS_CONFIG_IN_RULES, NULL, "a glob for the name of a kernel"},
    {"calls", cgs_config_parse_calls, offsetof(cgs_rule_t, calls),
     CGS_CONFIG_IN_RULES, NULL, "a whole number from 0 to 4294967295"},
    {"between", cgs_config_parse_between, offsetof(cgs_rule_t, between),
     CGS_CONFIG_IN_RULES, NULL, "sync"},
    {"warmup", cgs_config_parse_unsigned, offsetof(cgs_rule_t, warmup),
     CGS_CONFIG_ANYWHERE, NULL, "a whole number from 0 to 4294967295"},
    {"on_change", cgs_config_parse_word, offsetof(cgs_rule_t, on_change),
     CGS_CONFIG_ANYWHERE, cgs_config_change_words, "patch, recapture or eager"},
    {"max_defer_us", cgs_config_parse_unsigned,
     offsetof(cgs_rule_t, max_defer_us), CGS_CONFIG_ANYWHERE, NULL,
     "microseconds, a whole number from 0 to 4294967295"},
    {"streams", cgs_config_parse_word, offsetof(cgs_rule_t, streams),
     CGS_CONFIG_ANYWHERE,
     cgs_config_streams_words, "join or separate"},
    {"variants", cgs_config_parse_variants, offsetof(cgs_rule_t, variants),
     CGS_CONFIG_ANYWHERE, NULL, "a whole number from 1 to 64"},
    {"chunk", cgs_config_parse_chunk, offsetof(cgs_rule_t, chunk),
     CGS_CONFIG_ANYWHERE, NULL, "auto, all or a whole number from 1"},
    {"gate", cgs_config_parse_word, offsetof(cgs_rule_t, gate),
     CGS_CONFIG_ANYWHERE, cgs_config_gate_words, "on or off"},
    {"verify", cgs_config_parse_unsigned, offsetof(cgs_rule_t, verify),
     CGS_CONFIG_ANYWHERE, NULL, "a whole number from 0 to 4294967295"},
    {"memory_mb", cgs_config_parse_unsigned, offsetof(cgs_rule_t, memory_mb),
     CGS_CONFIG_IN_DEFAULTS, NULL,
     "megabytes, a whole number from 0 to 4294967295"},
    {"verify_mb", cgs_config_parse_unsigned, offsetof(cgs_rule_t, verify_mb),
     CGS_CONFIG_IN_DEFAULTS, NULL,
     "megabytes, a whole number from 0 to 4294967295"},
    {"enable", cgs_config_parse_bool, offsetof(cgs_rule_t, enable),
     CGS_CONFIG_ANYWHERE, NULL, "0 or 1"},
    {NULL, NULL, 0, CGS_CONFIG_ANYWHERE, NULL, NULL}
};

#define CGS_CONFIG_NUM_KEYS \
    (sizeof(cgs_config_keys) / sizeof(cgs_config_keys[0]) - 1)

static const cgs_rule_t cgs_config_built_in = {
    .on_change = CGS_ON_CHANGE_PATCH,
    .max_defer_us = 1000,
    .variants  = 8,
    .chunk     = CGS_CHUNK_AUTO,
    .memory_mb = 256,
    .verify_mb = 1024,
    .enable    = true,
};

/* Take the quotes out of a word in place, as a shell does, up to its end.
 * Returns where the word ends, NULL if a quote does not */
static char *cgs_config_unquote(char *word)
{
    char *out = word, quote = '\0';

    for (; *word != '\0'; ++word) {
        if (quote != '\0') {
            if (*word == quote) {
                quote = '\0';
                continue;
            }
        } else if (*word == '"' || *word == '\'') {
            quote = *word;
            continue;
        } else if (strchr(CGS_CONFIG_BLANKS, *word) != NULL) {
            break;
        }
        *out++ = *word;
    }
    if (*word != '\0') {
        ++word;
    }
    *out = '\0';
    return quote == '\0' ? word : NULL;
}

/* The next key=value of a rule. Returns 1, 0 at the end, or -EINVAL for a
 * quote without end (with the word set) */
static int cgs_config_next_word(char **rest, cgs_config_word_t *word)
{
    char *next;

    word->key = *rest + strspn(*rest, CGS_CONFIG_BLANKS);
    if (*word->key == '\0') {
        return 0;
    }
    word->value = word->key + strcspn(word->key, "=" CGS_CONFIG_BLANKS);
    if (*word->value != '=') {
        next        = word->value + (*word->value != '\0');
        *word->value = '\0';
        word->value = NULL;
    } else {
        *word->value++ = '\0';
        next           = cgs_config_unquote(word->value);
    }
    if (next == NULL) {
        return -EINVAL;
    }
    *rest = next;
    return 1;
}

static bool cgs_config_same_letter(char a, char b)
{
    return toupper((unsigned char)a) == toupper((unsigned char)b);
}

/* Whether so many edits (a letter more, less, or another, or two that changed
 * places) make a name another, or, with is_prefix, one that begins with it */
static bool cgs_config_is_near(const char *name, const char *other,
                               bool is_prefix, unsigned edits)
{
    while (*other != '\0' && cgs_config_same_letter(*name, *other)) {
        ++name;
        ++other;
    }
    if (*other == '\0' && (is_prefix || *name == '\0')) {
        return true;
    } else if (edits == 0) {
        return false;
    }
    --edits;
    return (*name != '\0' &&
            cgs_config_is_near(name + 1, other, is_prefix, edits)) ||
           (*other != '\0' &&
            cgs_config_is_near(name, other + 1, is_prefix, edits)) ||
           (*name != '\0' && *other != '\0' &&
            (cgs_config_is_near(name + 1, other + 1, is_prefix, edits) ||
             (cgs_config_same_letter(name[0], other[1]) &&
              cgs_config_same_letter(name[1], other[0]) &&
              cgs_config_is_near(name + 2, other + 2, is_prefix, edits))));
}

/* The key that a wrong one was meant to be, or NULL */
static const char *cgs_config_nearest_key(const char *name, bool rule)
{
    unsigned                 most = strlen(name) > 4 ? 2 : 1;
    const cgs_config_field_t *key;
    unsigned                 edits;

    for (edits = 0; edits <= most; ++edits) {
        for (key = cgs_config_keys; key->name != NULL; ++key) {
            if (cgs_config_in_scope(key, rule) &&
                cgs_config_is_near(name, key->name, false, edits)) {
                return key->name;
            }
        }
    }
    return NULL;
}

/* Put one word into a rule, or say why not. seen has a flag for each key */
static int cgs_config_apply_word(const cgs_config_item_t *item,
                                 const cgs_config_word_t *word, bool rule_item,
                                 bool *seen, cgs_rule_t *rule,
                                 const char *otherwise)
{
    const cgs_config_field_t *key = cgs_config_keys;
    const char               *nearest;
    char                     names[512], problem[64];
    int                      status;

    while (key->name != NULL && (strcmp(key->name, word->key) != 0 ||
                                 !cgs_config_in_scope(key, rule_item))) {
        ++key;
    }
    if (key->name == NULL) {
        nearest = cgs_config_nearest_key(word->key, rule_item);
        snprintf(problem, sizeof(problem), "not a key here%s%s%s, ",
                 nearest != NULL ? " (" : "", nearest != NULL ? nearest : "",
                 nearest != NULL ? " is)" : "");
        cgs_config_names(cgs_config_keys, rule_item, names, sizeof(names));
        cgs_config_reject(item, word, problem, names, otherwise);
        return -EINVAL;
    }
    if (word->value == NULL) {
        cgs_config_reject(item, word, "has no value, ", key->takes, otherwise);
        return -EINVAL;
    }
    if (seen[key - cgs_config_keys]) {
        cgs_config_reject(item, word, "given twice, ", key->takes, otherwise);
        return -EINVAL;
    }
    seen[key - cgs_config_keys] = true;
    status = key->parse(key, word->value, rule);
    if (status == -ENOMEM) {
        cgs_config_reject(item, word, "out of memory", NULL, otherwise);
    } else if (status != 0) {
        cgs_config_reject(item, word, "", key->takes, otherwise);
    }
    return status;
}

/* Put all words of an item into a rule. At the first that cannot be followed
 * says so and stops */
static int cgs_config_apply_words(const cgs_config_item_t *item,
                                  bool rule_item, cgs_rule_t *rule,
                                  const char *otherwise)
{
    bool              seen[CGS_CONFIG_NUM_KEYS] = {false};
    char              *words = strdup(item->value), *rest = words;
    cgs_config_word_t word;
    int               status;

    if (words == NULL) {
        cgs_config_reject(item, NULL, "out of memory", NULL, otherwise);
        return -ENOMEM;
    }
    while ((status = cgs_config_next_word(&rest, &word)) > 0) {
        status = cgs_config_apply_word(item, &word, rule_item, seen, rule,
                                       otherwise);
        if (status != 0) {
            goto out;
        }
    }
    if (status < 0) {
        cgs_config_reject(item, &word, "", "a closing quote", otherwise);
    }
out:
    free(words);
    return status;
}

static void cgs_config_release_rule(cgs_rule_t *rule)
{
    free(rule->name);
    free(rule->nvtx_domain);
    free(rule->nvtx);
    free(rule->from);
    free(rule->to);
}

static void cgs_config_apply_defaults(const cgs_config_item_t *item,
                                      cgs_config_t *config)
{
    cgs_rule_t rule = cgs_config_built_in;

    if (cgs_config_apply_words(item, false, &rule, "the defaults stay those "
                               "built in") == 0) {
        config->defaults = rule;
    }
}

/* What keys of a rule go together. Returns what a wrong rule takes, or NULL */
static const char *cgs_config_check_rule(const cgs_rule_t *rule)
{
    if ((rule->nvtx != NULL) + (rule->from != NULL) + rule->between > 1) {
        return "one of nvtx, from and between, not more";
    }
    if (rule->from == NULL && (rule->to != NULL || rule->calls > 0)) {
        return "to and calls beside from alone";
    }
    return rule->to != NULL && rule->calls > 0 ?
           "one of to and calls, not both" : NULL;
}

static void cgs_config_apply_region(const cgs_config_item_t *item,
                                    cgs_config_t *config)
{
    static const char ignored[] = "this rule is ignored";
    const char *name = item->name + sizeof(CGS_CONFIG_REGION) - 1;
    cgs_rule_t rule  = config->defaults;
    cgs_rule_t *rules;
    const char *takes;

    config->every_range = false;
    if (*name == '\0') {
        cgs_config_reject(item, NULL, "", "the name of a region after it",
                          ignored);
        return;
    }
    if (cgs_config_apply_words(item, true, &rule, ignored) != 0) {
        goto err;
    }
    takes = cgs_config_check_rule(&rule);
    if (takes != NULL) {
        cgs_config_reject(item, NULL, "", takes, ignored);
        goto err;
    }
    rule.name = strdup(name);
    rules     = realloc(config->rules,
                        (config->num_rules + 1) * sizeof(*rules));
    if (rules != NULL) {
        config->rules = rules;
    }
    if (rule.name == NULL || rules == NULL) {
        cgs_config_reject(item, NULL, "out of memory", NULL, ignored);
        goto err;
    }
    rules[config->num_rules++] = rule;
    return;

err:
    cgs_config_release_rule(&rule);
}

/* ---- Variables ---- */

/* The wrapper's own, which mean nothing here */
static const char *const cgs_config_wrapper_names[] = {
    CGS_CONFIG_CHECK, "CGSHIM_LIB", NULL
};

/* Each variable. Those without a parser are applied by functions of their
 * own, in an order that matters */
static const cgs_config_field_t cgs_config_variables[] = {
    {CGS_CONFIG_PREFIX, cgs_config_parse_word,
     offsetof(cgs_config_build_t, config.mode), CGS_CONFIG_ANYWHERE, cgs_config_mode_words,
     "on, observe or off"},
    {CGS_CONFIG_REGION "<name>", NULL, 0, CGS_CONFIG_ANYWHERE, NULL, NULL},
    {"CGSHIM_DEFAULTS", NULL, 0, CGS_CONFIG_ANYWHERE, NULL, NULL},
    {"CGSHIM_CONFIG", NULL, offsetof(cgs_config_build_t, file), CGS_CONFIG_ANYWHERE, NULL,
     "the name of a file with lines VARIABLE=value"},
    {"CGSHIM_EXCLUDE", cgs_config_parse_exclude,
     offsetof(cgs_config_build_t, excluded), CGS_CONFIG_ANYWHERE, NULL,
     "globs of program names with commas between"},
    {"CGSHIM_AUTO", cgs_config_parse_bool,
     offsetof(cgs_config_build_t, config.automatic), CGS_CONFIG_ANYWHERE, NULL,
     "0 or 1"},
    {"CGSHIM_SAVE", cgs_config_parse_path,
     offsetof(cgs_config_build_t, config.save), CGS_CONFIG_ANYWHERE, NULL,
     "the name of a file"},
    {"CGSHIM_LOG", cgs_config_parse_word,
     offsetof(cgs_config_build_t, config.log_level), CGS_CONFIG_ANYWHERE,
     cgs_config_level_words, "off, error, warn, info or debug"},
    {"CGSHIM_LOG_FILE", cgs_config_parse_file,
     offsetof(cgs_config_build_t, config.log_file), CGS_CONFIG_ANYWHERE, NULL,
     "stderr or the name of a file"},
    {"CGSHIM_REPORT", cgs_config_parse_file,
     offsetof(cgs_config_build_t, config.report), CGS_CONFIG_ANYWHERE, NULL,
     "stderr or the name of a file"},
    {"CGSHIM_TRACE", cgs_config_parse_path,
     offsetof(cgs_config_build_t, config.trace), CGS_CONFIG_ANYWHERE, NULL,
     "the name of a file"},
    {"CGSHIM_DUMP", cgs_config_parse_path,
     offsetof(cgs_config_build_t, config.dump), CGS_CONFIG_ANYWHERE, NULL,
     "the name of a directory"},
    {"CGSHIM_PROFILE", cgs_config_parse_file,
     offsetof(cgs_config_build_t, config.profile), CGS_CONFIG_ANYWHERE, NULL,
     "stderr or the name of a file"},
    {NULL, NULL, 0, CGS_CONFIG_ANYWHERE, NULL, NULL}
};

static const cgs_config_field_t *cgs_config_find_variable(const char *name)
{
    const cgs_config_field_t *field = cgs_config_variables;

    while (field->name != NULL && strcmp(field->name, name) != 0) {
        ++field;
    }
    return field->name != NULL ? field : NULL;
}

static bool cgs_config_is_wrapper_name(const char *name)
{
    unsigned i;

    for (i = 0; cgs_config_wrapper_names[i] != NULL; ++i) {
        if (strcmp(cgs_config_wrapper_names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* The variable that a wrong name was meant to be, or NULL. The shorter the
 * name, the less a likeness means */
static const char *cgs_config_nearest(const char *name)
{
    unsigned                 most = strlen(name) > sizeof("CGSHIM_LOG_") ?
                                    2 : 1;
    const cgs_config_field_t *field;
    unsigned                 edits;
    bool                     near;

    for (edits = 0; edits <= most; ++edits) {
        for (field = cgs_config_variables; field->name != NULL; ++field) {
            near = strchr(field->name, '<') != NULL ?
                   cgs_config_is_near(name, CGS_CONFIG_REGION, true, edits) :
                   cgs_config_is_near(name, field->name, false, edits);
            if (near) {
                return field->name;
            }
        }
    }
    return NULL;
}

static void cgs_config_reject_name(const cgs_config_item_t *item)
{
    const char *nearest = cgs_config_nearest(item->name);
    char       names[512], problem[128];

    snprintf(problem, sizeof(problem), "not a variable of cgshim%s%s%s, which ",
             nearest != NULL ? " (" : "", nearest != NULL ? nearest : "",
             nearest != NULL ? " is)" : "");
    cgs_config_names(cgs_config_variables, true, names, sizeof(names));
    cgs_config_reject(item, NULL, problem, names, "it is ignored");
}

static void cgs_config_apply_variable(const cgs_config_item_t *item,
                                      const cgs_config_field_t *field,
                                      cgs_config_build_t *build)
{
    const cgs_config_word_t word = {NULL, item->value};
    int status = field->parse(field, item->value, build);

    if (status == -EINVAL && field->parse == cgs_config_parse_file &&
        cgs_config_is_one_of(cgs_config_on_words, item->value)) {
        /* Asked for, and not worth losing */
        cgs_config_reject(item, &word, "", field->takes, "it goes to stderr");
        field->parse(field, "stderr", build);
    } else if (status != 0) {
        cgs_config_reject(item, &word,
                          status == -ENOMEM ? "out of memory" : "",
                          status == -ENOMEM ? NULL : field->takes,
                          "this variable is ignored");
    }
}

static void cgs_config_apply_item(const cgs_config_item_t *item,
                                  cgs_config_build_t *build)
{
    const cgs_config_field_t *field = cgs_config_find_variable(item->name);

    if (strncmp(item->name, CGS_CONFIG_REGION,
                sizeof(CGS_CONFIG_REGION) - 1) == 0) {
        cgs_config_apply_region(item, &build->config);
    } else if (field == NULL) {
        cgs_config_reject_name(item);
    } else if (field->parse != NULL) {
        cgs_config_apply_variable(item, field, build);
    }
}

static cgs_config_item_t *cgs_config_find_item(const cgs_config_build_t *build,
                                               const char *name)
{
    size_t i;

    for (i = 0; i < build->num_items; ++i) {
        if (strcmp(build->items[i].name, name) == 0) {
            return &build->items[i];
        }
    }
    return NULL;
}

/* Append a copy of an item */
static int cgs_config_add_item(cgs_config_build_t *build,
                               const cgs_config_item_t *item)
{
    size_t            name_size  = strlen(item->name) + 1;
    size_t            value_size = strlen(item->value) + 1;
    char              *block     = malloc(name_size + value_size);
    cgs_config_item_t *items;

    if (block == NULL) {
        goto err;
    }
    items = realloc(build->items, (build->num_items + 1) * sizeof(*items));
    if (items == NULL) {
        goto err_free_block;
    }
    build->items                  = items;
    items[build->num_items]       = *item;
    items[build->num_items].name  = memcpy(block, item->name, name_size);
    items[build->num_items].value = memcpy(block + name_size, item->value,
                                           value_size);
    ++build->num_items;
    return 0;

err_free_block:
    free(block);
err:
    cgs_config_reject(item, NULL, "out of memory", NULL, "it is ignored");
    return -ENOMEM;
}

static void cgs_config_add_environment(cgs_config_build_t *build,
                                       const char *const *env)
{
    cgs_config_item_t item = {NULL, NULL, NULL, 0};
    const char        *equals;

    for (; env != NULL && *env != NULL; ++env) {
        equals = strchr(*env, '=');
        if (equals == NULL || strncmp(*env, CGS_CONFIG_PREFIX,
                                      sizeof(CGS_CONFIG_PREFIX) - 1) != 0) {
            continue;
        }
        item.name = strndup(*env, (size_t)(equals - *env));
        if (item.name == NULL) {
            cgs_log_complain("%s: out of memory; it is ignored", *env);
            continue;
        }
        item.value = (char *)equals + 1;
        /* Of two with one name getenv(3) finds the first */
        if (!cgs_config_is_wrapper_name(item.name) &&
            cgs_config_find_item(build, item.name) == NULL) {
            cgs_config_add_item(build, &item);
        }
        free(item.name);
    }
}

/* ---- File ---- */

/* Take the blanks off both ends, in place */
static char *cgs_config_trim(char *text)
{
    size_t length;

    text  += strspn(text, CGS_CONFIG_BLANKS);
    length = strlen(text);
    while (length > 0 && strchr(CGS_CONFIG_BLANKS, text[length - 1]) != NULL) {
        --length;
    }
    text[length] = '\0';
    return text;
}

/* A line copied from a shell has its value in quotes. Takes them off in
 * place; NULL if the second is missing */
static char *cgs_config_trim_quotes(char *value)
{
    size_t length = strlen(value);

    if (*value != '"' && *value != '\'') {
        return value;
    }
    if (length < 2 || value[length - 1] != *value) {
        return NULL;
    }
    value[length - 1] = '\0';
    return value + 1;
}

static void cgs_config_add_line(cgs_config_build_t *build, char *text,
                                unsigned line)
{
    static const char ignored[] = "this line is ignored";
    cgs_config_item_t item      = {NULL, NULL, build->file, line};
    cgs_config_item_t *other;
    char              *equals;

    item.name = cgs_config_trim(text);
    if (*item.name == '\0' || *item.name == '#') {
        return;
    }
    equals = strchr(item.name, '=');
    if (equals == NULL || strncmp(item.name, CGS_CONFIG_PREFIX,
                                  sizeof(CGS_CONFIG_PREFIX) - 1) != 0) {
        cgs_config_reject(&item, NULL, "", "CGSHIM...=value", ignored);
        return;
    }
    *equals    = '\0';
    item.name  = cgs_config_trim(item.name);
    item.value = cgs_config_trim_quotes(cgs_config_trim(equals + 1));
    other      = cgs_config_find_item(build, item.name);
    if (strcmp(item.name, "CGSHIM_CONFIG") == 0) {
        cgs_config_reject(&item, NULL, "not in a file, ", "its place in the "
                          "environment", ignored);
    } else if (item.value == NULL) {
        cgs_config_reject(&item, NULL, "", "a closing quote", ignored);
    } else if (other == NULL) {
        cgs_config_add_item(build, &item);
    } else if (other->file != NULL) {
        cgs_config_reject(&item, NULL, "given twice, ", "one line", ignored);
    }
}

static int cgs_config_check_file(int fd, size_t *size)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return -errno;
    } else if (S_ISDIR(st.st_mode)) {
        return -EISDIR;
    } else if (!S_ISREG(st.st_mode)) {
        return -EINVAL;
    } else if (st.st_size > CGS_CONFIG_MAX_FILE) {
        return -EFBIG;
    }
    *size = (size_t)st.st_size;
    return 0;
}

/* The file's text, ended by NUL; to be freed */
static int cgs_config_read(const char *name, char **text)
{
    size_t  size = 0, length = 0;
    ssize_t got;
    char    *data;
    int     fd, status;

    /* O_NONBLOCK: a FIFO would be waited for */
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    status = cgs_config_check_file(fd, &size);
    if (status != 0) {
        goto out_close;
    }
    data = malloc(size + 1);
    if (data == NULL) {
        status = -ENOMEM;
        goto out_close;
    }
    do {
        got     = read(fd, data + length, size - length);
        length += got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    if (got < 0) {
        status = -errno;
        goto err_free_data;
    }
    if (memchr(data, '\0', length) != NULL) {
        status = -EILSEQ;
        goto err_free_data;
    }
    data[length] = '\0';
    *text        = data;
    goto out_close;

err_free_data:
    free(data);
out_close:
    close(fd);
    return status;
}

static void cgs_config_add_file(cgs_config_build_t *build,
                                const cgs_config_item_t *item)
{
    static const char       ignored[] = "no file is read";
    const cgs_config_word_t word      = {NULL, item->value};
    const cgs_config_field_t *field   = cgs_config_find_variable(item->name);
    char                    *text     = NULL;
    unsigned                number    = 0;
    char                    problem[128], *line, *rest;
    int                     status;

    status = cgs_config_parse_string(field, item->value, build);
    if (status == 0) {
        status = cgs_config_read(item->value, &text);
    }
    if (status != 0) {
        snprintf(problem, sizeof(problem), "%s, ", strerror(-status));
        cgs_config_reject(item, &word, *item->value == '\0' ? "" : problem,
                          field->takes, ignored);
        return;
    }
    for (rest = text; (line = strsep(&rest, "\n")) != NULL;) {
        cgs_config_add_line(build, line, ++number);
    }
    free(text);
}

/* ---- All of it ---- */

/* All but what the program's name does to it */
static void cgs_config_make(const char *const *env, cgs_config_build_t *build)
{
    const cgs_config_item_t *item;
    size_t                  i;

    memset(build, 0, sizeof(*build));
    build->config.defaults    = cgs_config_built_in;
    build->config.every_range = true;
    cgs_config_add_environment(build, env);
    item = cgs_config_find_item(build, "CGSHIM_CONFIG");
    if (item != NULL) {
        /* The list moves as the file's lines join it */
        const cgs_config_item_t file_item = *item;

        cgs_config_add_file(build, &file_item);
    }
    item = cgs_config_find_item(build, "CGSHIM_DEFAULTS");
    if (item != NULL) {
        cgs_config_apply_defaults(item, &build->config);
    }
    for (i = 0; i < build->num_items; ++i) {
        cgs_config_apply_item(&build->items[i], build);
    }
}

/* What is not the configuration itself */
static void cgs_config_release_build(cgs_config_build_t *build)
{
    size_t i;

    for (i = 0; i < build->num_items; ++i) {
        free(build->items[i].name);
    }
    free(build->items);
    free(build->file);
}

void cgs_config_parse(const char *const *env, cgs_config_t *config)
{
    cgs_config_build_t build;

    cgs_config_make(env, &build);
    if (build.excluded) {
        build.config.mode = CGS_MODE_OFF;
    }
    *config = build.config;
    cgs_config_release_build(&build);
}

void cgs_config_release(cgs_config_t *config)
{
    size_t i;

    for (i = 0; i < config->num_rules; ++i) {
        cgs_config_release_rule(&config->rules[i]);
    }
    free(config->rules);
    free(config->log_file);
    free(config->report);
    free(config->trace);
    free(config->dump);
    free(config->save);
    free(config->profile);
    memset(config, 0, sizeof(*config));
}

/* One block: the array, then the strings. Static where there are none, or no
 * memory: what the user wants is not known then, and off is safe */
static char **cgs_config_copy_env(char **env)
{
    static char *none[] = {NULL}, *off[] = {"CGSHIM=off", NULL};
    size_t count = 0, bytes = 0;
    char   **copy, *string, **from;

    for (from = env; from != NULL && *from != NULL; ++from) {
        if (strncmp(*from, CGS_CONFIG_PREFIX,
                    sizeof(CGS_CONFIG_PREFIX) - 1) == 0) {
            bytes += strlen(*from) + 1;
            ++count;
        }
    }
    if (count == 0) {
        return none;
    }
    copy = malloc((count + 1) * sizeof(*copy) + bytes);
    if (copy == NULL) {
        return off;
    }
    string = (char *)(copy + count + 1);
    for (from = env, count = 0; *from != NULL; ++from) {
        if (strncmp(*from, CGS_CONFIG_PREFIX,
                    sizeof(CGS_CONFIG_PREFIX) - 1) == 0) {
            copy[count++] = string;
            string        = stpcpy(string, *from) + 1;
        }
    }
    copy[count] = NULL;
    return copy;
}

void cgs_config_snapshot(char **env)
{
    char **unset = NULL;

    if (__atomic_load_n(&cgs_config_env, __ATOMIC_ACQUIRE) != NULL) {
        return;
    }
    /* Two at once are a matter of some bytes that the second does not free */
    __atomic_compare_exchange_n(&cgs_config_env, &unset,
                                cgs_config_copy_env(env), CGS_CONFIG_ANYWHERE,
                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void cgs_config_init(void)
{
    const char *const *env;

    /* Whoever runs a program with another's rights must not choose files
     * that it writes */
    if (getauxval(AT_SECURE)) {
        cgs_config_current.mode = CGS_MODE_OFF;
        return;
    }
    /* A constructor of another library may call CUDA before ours has run */
    cgs_config_snapshot(environ);
    env = (const char *const *)__atomic_load_n(&cgs_config_env,
                                               __ATOMIC_ACQUIRE);
    cgs_config_parse(env, &cgs_config_current);
    cgs_log_setup(cgs_config_current.log_level, cgs_config_current.log_file);
}

const cgs_config_t *cgs_config_get(void)
{
    pthread_once(&cgs_config_once, cgs_config_init);
    return &cgs_config_current;
}

/* ---- The answer to cgshim check-config ---- */

static void cgs_config_show_unsigned(cgs_text_t *text,
                                     const cgs_config_field_t *field,
                                     const void *base)
{
    cgs_text_print(text, "%u", *(const unsigned *)cgs_config_at(field,
                                                               (void *)base));
}

static void cgs_config_show_chunk(cgs_text_t *text,
                                  const cgs_config_field_t *field,
                                  const void *base)
{
    unsigned chunk = *(const unsigned *)cgs_config_at(field, (void *)base);

    if (chunk == CGS_CHUNK_AUTO || chunk == CGS_CHUNK_ALL) {
        cgs_text_print(text, "%s", chunk == CGS_CHUNK_AUTO ? "auto" : "all");
    } else {
        cgs_text_print(text, "%u", chunk);
    }
}

static void cgs_config_show_bool(cgs_text_t *text,
                                 const cgs_config_field_t *field,
                                 const void *base)
{
    cgs_text_print(text, "%d", *(const bool *)cgs_config_at(field,
                                                           (void *)base));
}

static void cgs_config_show_word(cgs_text_t *text,
                                 const cgs_config_field_t *field,
                                 const void *base)
{
    cgs_text_print(text, "%s",
                   field->words[*(const unsigned *)cgs_config_at(
                       field, (void *)base)]);
}

static void cgs_config_show_string(cgs_text_t *text,
                                   const cgs_config_field_t *field,
                                   const void *base)
{
    const char *string = *(char **)cgs_config_at(field, (void *)base);

    cgs_text_print(text, "%s", string != NULL ? string : "");
}

/* In quotes that cgs_config_unquote() takes off: a " stands in '...' */
static void cgs_config_show_quoted(cgs_text_t *text, const char *string)
{
    for (; *string != '\0'; ++string) {
        cgs_text_print(text, *string == '"' ? "\"'\"'\"" : "%c", *string);
    }
}

static void cgs_config_show_nvtx(cgs_text_t *text,
                                 const cgs_config_field_t *field,
                                 const void *base)
{
    const cgs_rule_t *rule = base;

    (void)field;
    if (rule->nvtx == NULL) {
        return;
    }
    cgs_text_print(text, "\"");
    if (rule->nvtx_domain != NULL) {
        cgs_config_show_quoted(text, rule->nvtx_domain);
        cgs_text_print(text, ":");
    }
    cgs_config_show_quoted(text, rule->nvtx);
    cgs_text_print(text, "\"");
}

static void cgs_config_show_glob(cgs_text_t *text,
                                 const cgs_config_field_t *field,
                                 const void *base)
{
    const char *glob = *(char **)cgs_config_at(field, (void *)base);

    if (glob != NULL) {
        cgs_text_print(text, "\"");
        cgs_config_show_quoted(text, glob);
        cgs_text_print(text, "\"");
    }
}

static void cgs_config_show_calls(cgs_text_t *text,
                                  const cgs_config_field_t *field,
                                  const void *base)
{
    const cgs_rule_t *rule = base;

    if (rule->calls > 0) {
        cgs_config_show_unsigned(text, field, base);
    }
}

static void cgs_config_show_between(cgs_text_t *text,
                                    const cgs_config_field_t *field,
                                    const void *base)
{
    const cgs_rule_t *rule = base;

    (void)field;
    if (rule->between) {
        cgs_text_print(text, "sync");
    }
}

/* The globs are not kept: what is shown is what was given */
static void cgs_config_show_exclude(cgs_text_t *text,
                                    const cgs_config_field_t *field,
                                    const void *base)
{
    const cgs_config_item_t *item = cgs_config_find_item(base, field->name);

    cgs_text_print(text, "%s", item != NULL ? item->value : "");
}

/* How what each parser has parsed is written. Nothing written: it is not set */
static const struct {
    int  (*parse)(const cgs_config_field_t *field, const char *value,
                  void *base);
    void (*show)(cgs_text_t *text, const cgs_config_field_t *field,
                 const void *base);
} cgs_config_shows[] = {
    {cgs_config_parse_unsigned, cgs_config_show_unsigned},
    {cgs_config_parse_variants, cgs_config_show_unsigned},
    {cgs_config_parse_chunk, cgs_config_show_chunk},
    {cgs_config_parse_bool, cgs_config_show_bool},
    {cgs_config_parse_word, cgs_config_show_word},
    {cgs_config_parse_nvtx, cgs_config_show_nvtx},
    {cgs_config_parse_string, cgs_config_show_glob},
    {cgs_config_parse_calls, cgs_config_show_calls},
    {cgs_config_parse_between, cgs_config_show_between},
    {cgs_config_parse_exclude, cgs_config_show_exclude},
    {cgs_config_parse_file, cgs_config_show_string},
    {cgs_config_parse_path, cgs_config_show_string},
};

static void cgs_config_show_field(cgs_text_t *text,
                                  const cgs_config_field_t *field,
                                  const void *base)
{
    size_t i;

    for (i = 0; i < sizeof(cgs_config_shows) / sizeof(cgs_config_shows[0]);
         ++i) {
        if (cgs_config_shows[i].parse == field->parse) {
            cgs_config_shows[i].show(text, field, base);
        }
    }
}

/* The text from start on as a terminal may see it, and the end of the line */
static void cgs_config_end_line(cgs_text_t *text, size_t start)
{
    size_t size;
    char   *line, *escaped;

    cgs_text_add(text, "", 1);
    if (text->failed) {
        return;
    }
    /* No byte becomes more than four */
    size    = (text->length - start) * 4 + 4;
    line    = strdup(text->data + start);
    escaped = malloc(size);
    if (line != NULL && escaped != NULL) {
        text->length = start;
        cgs_text_add(text, escaped, cgs_text_escape(escaped, size, line));
        cgs_text_add(text, "\n", 1);
    } else {
        text->failed = true;
    }
    free(line);
    free(escaped);
}

static void cgs_config_show_rule(cgs_text_t *text, const cgs_rule_t *rule,
                                 bool is_rule)
{
    size_t                   start = text->length, before, value;
    const cgs_config_field_t *key;

    cgs_text_print(text, is_rule ? CGS_CONFIG_REGION "%s=" :
                                   "CGSHIM_DEFAULTS=", rule->name);
    for (key = cgs_config_keys; key->name != NULL; ++key) {
        if (cgs_config_in_scope(key, is_rule)) {
            before = text->length;
            cgs_text_print(text, "%s%s=", text->data != NULL &&
                           text->data[before - 1] != '=' ? " " : "",
                           key->name);
            value = text->length;
            cgs_config_show_field(text, key, rule);
            text->length = text->length > value ? text->length : before;
        }
    }
    cgs_config_end_line(text, start);
}

static void cgs_config_show_rules(cgs_text_t *text, const cgs_config_t *config)
{
    size_t i;

    for (i = 0; i < config->num_rules; ++i) {
        cgs_config_show_rule(text, &config->rules[i], true);
    }
    if (config->num_rules == 0) {
        cgs_text_print(text, "# %s\n", config->every_range ?
                       "no rule: each outermost push/pop range is a region" :
                       "no rule that counts: no range is a region");
    }
}

/* Whether a value would be another one in a file, where blanks around it and a
 * pair of quotes are taken off */
static bool cgs_config_needs_quotes(const char *value, size_t length)
{
    static const char takes_off[] = "\"'" CGS_CONFIG_BLANKS;

    return length > 0 && (memchr(takes_off, value[0],
                                 sizeof(takes_off) - 1) != NULL ||
                          memchr(takes_off, value[length - 1],
                                 sizeof(takes_off) - 1) != NULL);
}

static void cgs_config_show_variable(cgs_text_t *text,
                                     const cgs_config_field_t *field,
                                     const cgs_config_build_t *build)
{
    size_t     start = text->length;
    cgs_text_t value = {0};
    const char *quote;

    cgs_config_show_field(&value, field, build);
    if (value.length > 0) {
        quote = cgs_config_needs_quotes(value.data, value.length) ? "\"" : "";
        cgs_text_print(text, "%s=%s%.*s%s", field->name, quote,
                       (int)value.length, value.data, quote);
        cgs_config_end_line(text, start);
    } else {
        cgs_text_print(text, "# %s is not set\n", field->name);
    }
    text->failed = text->failed || value.failed;
    cgs_text_release(&value);
}

/* Lines that are a file for CGSHIM_CONFIG again; what is not set, or may not
 * stand in one, is a comment */
static void cgs_config_show(cgs_text_t *text, const cgs_config_build_t *build)
{
    const cgs_config_field_t *field = cgs_config_variables;
    size_t                   start;

    cgs_text_print(text, "# cgshim " PACKAGE_VERSION "\n");
    for (; field->name != NULL; ++field) {
        if (field->parse != NULL) {
            cgs_config_show_variable(text, field, build);
        } else if (strcmp(field->name, "CGSHIM_DEFAULTS") == 0) {
            cgs_config_show_rule(text, &build->config.defaults, false);
        } else if (strcmp(field->name, "CGSHIM_CONFIG") == 0) {
            start = text->length;
            cgs_text_print(text, "# CGSHIM_CONFIG%s%s",
                           build->file != NULL ? "=" : " is not set",
                           build->file != NULL ? build->file : "");
            cgs_config_end_line(text, start);
        } else {
            cgs_config_show_rules(text, &build->config);
        }
    }
}

void cgs_config_answer(void)
{
    char               **env = __atomic_load_n(&cgs_config_env,
                                               __ATOMIC_ACQUIRE);
    cgs_text_t         text  = {0};
    cgs_config_build_t build;

    for (; env != NULL && *env != NULL &&
           strcmp(*env, CGS_CONFIG_CHECK "=1") != 0; ++env) {
    }
    if (env == NULL || *env == NULL || getauxval(AT_SECURE)) {
        return;
    }
    cgs_config_make((const char *const *)cgs_config_env, &build);
    cgs_config_show(&text, &build);
    if (text.failed) {
        cgs_log_complain("out of memory; there is no answer");
    } else {
        cgs_log_write(STDERR_FILENO, text.data, text.length);
    }
    cgs_text_release(&text);
    cgs_config_release_build(&build);
    cgs_config_release(&build.config);
}

static bool cgs_config_rule_matches(const cgs_rule_t *rule, const char *domain,
                                    const char *text)
{
    if ((rule->from != NULL) || rule->between) {
        return false;
    }
    if (rule->nvtx == NULL) {
        return strcmp(rule->name, text) == 0;
    }
    return fnmatch(rule->nvtx, text, 0) == 0 &&
           (rule->nvtx_domain == NULL ||
            fnmatch(rule->nvtx_domain, domain, 0) == 0);
}

bool cgs_config_verifies(const cgs_config_t *config)
{
    bool   verifies = config->defaults.verify > 0;
    size_t i;

    for (i = 0; i < config->num_rules; ++i) {
        verifies |= config->rules[i].verify > 0;
    }
    return verifies;
}

const cgs_rule_t *cgs_config_match(const cgs_config_t *config,
                                   const char *domain, const char *text)
{
    size_t i;

    domain = domain != NULL ? domain : "";
    text   = text != NULL ? text : "";
    for (i = 0; i < config->num_rules; ++i) {
        if (cgs_config_rule_matches(&config->rules[i], domain, text)) {
            return &config->rules[i];
        }
    }
    return NULL;
}
