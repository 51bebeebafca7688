/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads from PTX text what the simulated driver needs: the entries with their
 * parameters, and the variables of the module.
 */
#include "sim.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A place in the text, always at a token or at the end. */
typedef struct {
    const char *at;
    bool        bad;
} sim_ptx_t;

static void sim_ptx_skip(sim_ptx_t *ptx)
{
    const char *end;

    for (;;) {
        while (isspace((unsigned char)*ptx->at)) {
            ++ptx->at;
        }
        if ((ptx->at[0] == '/') && (ptx->at[1] == '/')) {
            ptx->at += strcspn(ptx->at, "\n");
        } else if ((ptx->at[0] == '/') && (ptx->at[1] == '*')) {
            end     = strstr(ptx->at, "*/");
            ptx->at = (end != NULL) ? end + 2 : ptx->at + strlen(ptx->at);
        } else {
            return;
        }
    }
}

static bool sim_ptx_is_word(char c)
{
    return isalnum((unsigned char)c) || (c == '_') || (c == '$') ||
           (c == '%') || (c == '.');
}

static size_t sim_ptx_length(const sim_ptx_t *ptx)
{
    size_t length = 0;

    if (*ptx->at == '"') {
        length = 1 + strcspn(ptx->at + 1, "\"");
        return length + (ptx->at[length] == '"');
    }
    while (sim_ptx_is_word(ptx->at[length])) {
        ++length;
    }
    return (length > 0) ? length : (*ptx->at != '\0');
}

static void sim_ptx_next(sim_ptx_t *ptx)
{
    ptx->at += sim_ptx_length(ptx);
    sim_ptx_skip(ptx);
}

/* Takes the token if it is word. */
static bool sim_ptx_take(sim_ptx_t *ptx, const char *word)
{
    size_t length = sim_ptx_length(ptx);

    if ((length != strlen(word)) || (strncmp(ptx->at, word, length) != 0)) {
        return false;
    }
    sim_ptx_next(ptx);
    return true;
}

static void sim_ptx_expect(sim_ptx_t *ptx, const char *word)
{
    if (!sim_ptx_take(ptx, word)) {
        ptx->bad = true;
    }
}

static size_t sim_ptx_number(sim_ptx_t *ptx)
{
    char  *end;
    size_t value;

    /* 0f3f800000 and 0d3ff0000000000000 are the bits of a float. */
    if ((ptx->at[0] == '0') && (strchr("fFdD", ptx->at[1]) != NULL) &&
        isxdigit((unsigned char)ptx->at[1])) {
        value = strtoull(ptx->at + 2, &end, 16);
    } else {
        value = strtoull(ptx->at, &end, 0);
    }
    if (end == ptx->at) {
        ptx->bad = true;
    }
    sim_ptx_next(ptx);
    return value;
}

static char *sim_ptx_name(sim_ptx_t *ptx)
{
    size_t length = sim_ptx_length(ptx);
    char  *name   = sim_alloc(length + 1);

    memcpy(name, ptx->at, length);
    if ((length == 0) || !sim_ptx_is_word(*ptx->at)) {
        ptx->bad = true;
    }
    sim_ptx_next(ptx);
    return name;
}

/* The bytes of a type such as .u64, 0 when the token is none. */
static size_t sim_ptx_type(const sim_ptx_t *ptx)
{
    const char *digits = ptx->at + 2;
    long        bits;

    if ((ptx->at[0] != '.') || (strchr("bsuf", ptx->at[1]) == NULL) ||
        !isdigit((unsigned char)*digits)) {
        return 0;
    }
    bits = strtol(digits, NULL, 10);
    return (bits < 8) ? 0 : (size_t)bits / 8;
}

/* What stands between .param or .global and ; , ) or =. */
typedef struct {
    size_t size, align;
    size_t element;
    char  *name;
} sim_ptx_decl_t;

static void sim_ptx_decl(sim_ptx_t *ptx, sim_ptx_decl_t *decl)
{
    size_t count = 1;

    memset(decl, 0, sizeof(*decl));
    while ((*ptx->at == '.') && !ptx->bad) {
        if (sim_ptx_type(ptx) != 0) {
            decl->element = sim_ptx_type(ptx);
            decl->align   = (decl->align == 0) ? decl->element : decl->align;
            sim_ptx_next(ptx);
        } else if (sim_ptx_take(ptx, ".align")) {
            /* After .ptr it speaks of what is pointed at. */
            count = sim_ptx_number(ptx);
            if (decl->element == 0) {
                decl->align = count;
            }
            count = 1;
        } else {
            sim_ptx_next(ptx);
        }
    }
    decl->name = sim_ptx_name(ptx);
    while (sim_ptx_take(ptx, "[")) {
        count *= (*ptx->at == ']') ? 0 : sim_ptx_number(ptx);
        sim_ptx_expect(ptx, "]");
    }
    decl->size = decl->element * count;
    if ((decl->element == 0) || (decl->align == 0)) {
        ptx->bad = true;
    }
}

/* ---------------------------------------------------------- entries */

static void sim_ptx_param(sim_ptx_t *ptx, sim_entry_t *entry)
{
    sim_ptx_decl_t decl;
    size_t         max = entry->max_params;

    sim_ptx_expect(ptx, ".param");
    sim_ptx_decl(ptx, &decl);
    free(decl.name);
    if (ptx->bad) {
        return;
    }

    entry->offsets = sim_grow(entry->offsets, entry->num_params, &max,
                              sizeof(size_t));
    entry->sizes   = sim_grow(entry->sizes, entry->num_params,
                              &entry->max_params, sizeof(size_t));
    entry->args_size = (entry->args_size + decl.align - 1) / decl.align *
                       decl.align;
    entry->offsets[entry->num_params] = entry->args_size;
    entry->sizes[entry->num_params]   = decl.size;
    entry->args_size                 += decl.size;
    ++entry->num_params;
}

/* Directives between the parameters and the body. */
static void sim_ptx_limits(sim_ptx_t *ptx, sim_entry_t *entry)
{
    while ((*ptx->at != '\0') && (*ptx->at != '{') && (*ptx->at != ';')) {
        if (sim_ptx_take(ptx, ".maxntid") || sim_ptx_take(ptx, ".reqntid")) {
            entry->max_threads = 1;
            do {
                entry->max_threads *= (unsigned)sim_ptx_number(ptx);
            } while (!ptx->bad && sim_ptx_take(ptx, ","));
        } else {
            sim_ptx_next(ptx);
        }
    }
}

static void sim_ptx_entry(sim_ptx_t *ptx, sim_image_t *image)
{
    sim_entry_t *entry;
    char         symbol[512];

    image->entries = sim_grow(image->entries, image->num_entries,
                              &image->max_entries, sizeof(*entry));
    entry          = &image->entries[image->num_entries++];
    memset(entry, 0, sizeof(*entry));
    entry->max_threads = 1024;
    entry->name        = sim_ptx_name(ptx);
    if (sim_ptx_take(ptx, "(") && !sim_ptx_take(ptx, ")")) {
        do {
            sim_ptx_param(ptx, entry);
        } while (!ptx->bad && sim_ptx_take(ptx, ","));
        sim_ptx_expect(ptx, ")");
    }
    sim_ptx_limits(ptx, entry);

    snprintf(symbol, sizeof(symbol), "simk_%s", entry->name);
    entry->body = (simk_body_t)dlsym(RTLD_DEFAULT, symbol);
}

/* ---------------------------------------------------------- variables */

static void sim_ptx_initial(sim_ptx_t *ptx, sim_var_t *var, size_t element)
{
    size_t at    = 0;
    bool   braced = sim_ptx_take(ptx, "{");

    do {
        bool               minus = sim_ptx_take(ptx, "-");
        unsigned long long value = sim_ptx_number(ptx);

        value = minus ? 0 - value : value;
        if (at + element <= var->size) {
            memcpy(var->initial + at, &value, (element < 8) ? element : 8);
        }
        at += element;
    } while (!ptx->bad && braced && sim_ptx_take(ptx, ","));
    if (braced) {
        sim_ptx_expect(ptx, "}");
    }
}

static void sim_ptx_var(sim_ptx_t *ptx, sim_image_t *image, bool is_extern)
{
    sim_ptx_decl_t decl;
    sim_var_t     *var;
    char           symbol[512];

    sim_ptx_decl(ptx, &decl);
    if (ptx->bad || is_extern || (decl.size == 0)) {
        free(decl.name);
        return;
    }
    image->vars = sim_grow(image->vars, image->num_vars, &image->max_vars,
                           sizeof(*var));
    var         = &image->vars[image->num_vars++];
    memset(var, 0, sizeof(*var));
    var->name    = decl.name;
    var->size    = decl.size;
    var->align   = decl.align;
    var->initial = sim_alloc(decl.size);
    if (sim_ptx_take(ptx, "=")) {
        sim_ptx_initial(ptx, var, decl.element);
    }

    snprintf(symbol, sizeof(symbol), "simg_%s", var->name);
    var->place = dlsym(RTLD_DEFAULT, symbol);
}

/* Steps over a body: names in there are not of interest. */
static void sim_ptx_body(sim_ptx_t *ptx)
{
    unsigned depth = 0;

    do {
        depth += (*ptx->at == '{');
        depth -= (*ptx->at == '}');
        sim_ptx_next(ptx);
    } while ((depth > 0) && (*ptx->at != '\0'));
    if (depth > 0) {
        ptx->bad = true;
    }
}

CUresult sim_ptx_parse(const char *text, sim_image_t **image_p)
{
    sim_ptx_t    ptx = {.at = text};
    sim_image_t *image;
    bool         is_extern = false;

    sim_ptx_skip(&ptx);
    if (!sim_ptx_take(&ptx, ".version")) {
        return CUDA_ERROR_INVALID_IMAGE;
    }

    image       = sim_alloc(sizeof(*image));
    image->refs = 1;
    while ((*ptx.at != '\0') && !ptx.bad) {
        if (sim_ptx_take(&ptx, ".entry")) {
            sim_ptx_entry(&ptx, image);
        } else if (sim_ptx_take(&ptx, ".global") ||
                   sim_ptx_take(&ptx, ".const")) {
            sim_ptx_var(&ptx, image, is_extern);
        } else if (sim_ptx_take(&ptx, ".extern")) {
            is_extern = true;
            continue;
        } else if (*ptx.at == '{') {
            sim_ptx_body(&ptx);
        } else {
            sim_ptx_next(&ptx);
        }
        is_extern = false;
    }
    if (ptx.bad) {
        sim_image_unref(image);
        return CUDA_ERROR_INVALID_PTX;
    }
    *image_p = image;
    return CUDA_SUCCESS;
}

void sim_image_unref(sim_image_t *image)
{
    size_t i;

    if ((image == NULL) || (--image->refs > 0)) {
        return;
    }
    for (i = 0; i < image->num_entries; ++i) {
        free(image->entries[i].name);
        free(image->entries[i].offsets);
        free(image->entries[i].sizes);
    }
    for (i = 0; i < image->num_vars; ++i) {
        free(image->vars[i].name);
        free(image->vars[i].initial);
    }
    free(image->entries);
    free(image->vars);
    free(image);
}
