/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of a trace: first the name of a thread, then for each event a byte
 * for its kind, one for each number, and the name of the region and a text,
 * each up to a NUL.
 *
 * Whatever regions are called, the file is an array in JSON whose events have
 * the names that they were given, and all that are there count.
 */
/* Events are printed by what is static there. */
#include "../../src/trace.c"

#include "fuzz.h"

#define MAX_OF_INPUT 200

/* All that the trace asks of other parts. */
cgs_region_t *cgs_region_first(void)
{
    return NULL;
}

typedef struct {
    char   *name[2 * MAX_OF_INPUT + 2];
    size_t num, seen;
} names_t;

static void expect(names_t *names, const char *name)
{
    names->name[names->num++] = fuzz_replaced(name);
}

static void look_at(const char *key, const char *value, void *arg)
{
    names_t *names = arg;

    if ((key != NULL) && ((strcmp(key, "name") == 0))) {
        FUZZ_CHECK(names->seen < names->num, "%s", value);
        FUZZ_CHECK(strcmp(names->name[names->seen], value) == 0, "%s is %s",
                   names->name[names->seen], value);
        ++names->seen;
    }
}

static void add_event(fuzz_input_t *input, names_t *names)
{
    char    *region = fuzz_string(input);
    char    *text   = fuzz_string_or_null(input);
    event_t event   = {
        .began_ns = fuzz_number(input),
        .ended_ns = fuzz_number(input),
        .region   = region,
        .text     = text,
        .number   = {fuzz_number(input), fuzz_number(input),
                     fuzz_number(input)},
        .tid      = (int32_t)fuzz_byte(input),
    };
    const char *name;

    event.kind     = (uint8_t)(fuzz_byte(input) % CGS_TRACE_NUM_KINDS);
    event.has_left = fuzz_byte(input) & 1;
    name           = kinds[event.kind].name;
    expect(names, name != NULL ? name : region);
    if (!kinds[event.kind].is_mark && event.has_left) {
        expect(names, name != NULL ? name : region);
    }
    print_all(&event);
    free(region);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input_t input = {data, data + size};
    char         *thread = fuzz_string(&input);
    names_t      names = {.num = 0};
    unsigned     num   = 0;
    size_t       i;

    trace.pid = 1;
    cgs_text_print(&trace.text, "[\n");
    print_name("thread_name", 1, thread);
    expect(&names, "thread_name");
    expect(&names, thread);
    while ((input.at < input.end) && (num++ < MAX_OF_INPUT)) {
        add_event(&input, &names);
    }
    cgs_text_print(&trace.text, "\n]\n");
    FUZZ_CHECK(!trace.text.failed, "no memory");
    FUZZ_CHECK(fuzz_is_json(trace.text.data, trace.text.length, look_at,
                            &names), "%.*s", (int)trace.text.length,
               trace.text.data);
    FUZZ_CHECK(names.seen == names.num, "%zu of %zu", names.seen, names.num);

    cgs_text_release(&trace.text);
    for (i = 0; i < names.num; ++i) {
        free(names.name[i]);
    }
    free(thread);
    return 0;
}
