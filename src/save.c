/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rule for each region that was found by itself and replayed, those with
 * the most swallowed calls first: rules that come first count.
 */
#define _GNU_SOURCE
#include "save.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "file.h"
#include "log.h"
#include "marks.h"
#include "region.h"
#include "text.h"

/* A region, and what became of it. */
typedef struct {
    const cgs_region_t *region;
    uint64_t           calls, swallowed, runs;
} found_t;

static int compare(const void *a, const void *b)
{
    const found_t *first  = a;
    const found_t *second = b;

    return (first->swallowed < second->swallowed) -
           (first->swallowed > second->swallowed);
}

/* Whether a name can stand in a line of a file. */
static bool is_line(const char *name)
{
    for (; (*name != '\0') && (*name != '\n') && (*name != '\r'); ++name) {
    }
    return *name == '\0';
}

/* A glob for a name and no other, in quotes that are taken off. */
static void add_glob(cgs_text_t *text, const char *name)
{
    cgs_text_add(text, "'", 1);
    for (; *name != '\0'; ++name) {
        if (*name == '\'') {
            cgs_text_print(text, "'\"'\"'");
            continue;
        }
        cgs_text_add(text, "\\", strchr("*?[\\", *name) != NULL);
        cgs_text_add(text, name, 1);
    }
    cgs_text_add(text, "'", 1);
}

/* Whether a rule before that one begins at the same kernel: then that one never
 * comes first. */
static bool is_hidden(const found_t *all, const found_t *found)
{
    const char *name = found->region->begins_with;

    while ((all < found) && ((all->region->begins_with == NULL) ||
                             (strcmp(all->region->begins_with, name) != 0))) {
        ++all;
    }
    return all < found;
}

static void add_rule(cgs_text_t *text, const found_t *all,
                     const found_t *found)
{
    const cgs_region_t *region = found->region;
    char               *name   = cgs_text_demangle(region->begins_with);
    char               shown[256];

    cgs_text_escape(shown, sizeof(shown), name != NULL ? name :
                    region->begins_with != NULL ? region->begins_with :
                    "what is no kernel");
    cgs_text_print(text, "\n# %" PRIu32 " calls from %s; %" PRIu64 " of %" PRIu64
                   " calls in %" PRIu64 " runs were swallowed\n",
                   region->unit_calls, shown, found->swallowed, found->calls,
                   found->runs);
    free(name);
    if ((region->begins_with == NULL) || !is_line(region->begins_with) ||
        (region->begins_with[0] == '\0')) {
        cgs_text_print(text, "# (no rule says where it begins)\n");
    } else if (is_hidden(all, found)) {
        cgs_text_print(text, "# (a rule above begins at the same kernel)\n");
    } else {
        cgs_text_print(text, "CGSHIM_REGION_auto_%u=from=",
                       (unsigned)(found - all) + 1);
        add_glob(text, region->begins_with);
        cgs_text_print(text, " calls=%" PRIu32 "\n", region->unit_calls);
    }
}

static void add_rules(cgs_text_t *text, found_t *found, size_t num)
{
    char   shown[256];
    size_t i;

    qsort(found, num, sizeof(*found), compare);
    cgs_text_escape(shown, sizeof(shown), program_invocation_short_name);
    cgs_text_print(text, "# Regions that cgshim %s found in %s. With "
                   "CGSHIM_CONFIG=<this file>\n# they begin at once.\n",
                   PACKAGE_VERSION, shown);
    for (i = 0; (i < num) && (i < CGS_MARKS_RULES); ++i) {
        add_rule(text, found, &found[i]);
    }
    if (num == 0) {
        cgs_text_print(text, "\n# (none was replayed)\n");
    }
    if (i < num) {
        cgs_text_print(text, "\n# (%zu more; not more than %d are taken)\n",
                       num - i, CGS_MARKS_RULES);
    }
}

static size_t find_regions(found_t *found, size_t room)
{
    cgs_region_stats_t *stats = malloc(sizeof(*stats));
    cgs_region_t       *region;
    cgshim_state_t     state;
    size_t             num = 0;

    for (region = cgs_region_first();
         (stats != NULL) && (region != NULL) && (num < room);
         region = region->next) {
        if (!region->alone) {
            continue;
        }
        cgs_region_snapshot(region, stats, &state);
        if (stats->launches > 0) {
            found[num++] = (found_t){
                .region    = region,
                .calls     = stats->calls,
                .swallowed = stats->swallowed,
                .runs      = stats->runs,
            };
        }
    }
    free(stats);
    return num;
}

void cgs_save_write(void)
{
    const char   *target = cgs_config_get()->save;
    cgs_text_t   text    = {0};
    cgs_region_t *region;
    found_t      *found;
    size_t       num = 0;
    int          status;

    if (target == NULL) {
        return;
    }
    if (!cgs_config_get()->automatic) {
        cgs_log_complain("CGSHIM_SAVE=%s: takes effect with CGSHIM_AUTO=1 "
                         "alone; nothing is saved", target);
        return;
    }
    for (region = cgs_region_first(); region != NULL; region = region->next) {
        ++num;
    }
    found = calloc(num + 1, sizeof(*found));
    if (found == NULL) {
        return;
    }
    add_rules(&text, found, find_regions(found, num));
    status = cgs_file_deliver(&text, target);
    if (status != 0) {
        cgs_log_complain("CGSHIM_SAVE=%s: cannot be written (%s); nothing is "
                         "saved", target, strerror(-status));
    }
    free(found);
}
