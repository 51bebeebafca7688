/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outermost matching range of a thread opens its region; ranges nested in
 * it are only counted, to know which pop is its own.
 *
 * NVTX keeps a stack per thread and domain, so ranges of another domain need
 * not be counted. A start/end range may end in another thread.
 */
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

#include "flow.h"
#include "life.h"
#include "marks.h"
#include "profile.h"
#include "region.h"

/* Start/end ranges that are open as regions. */
static atomic_uint num_started;

static bool same_domain(const char *a, const char *b)
{
    return (a == b) || ((a != NULL) && (b != NULL) && !strcmp(a, b));
}

/* The domain of a range that is shut may be gone before its pop. */
static uint64_t hash_domain(const char *domain)
{
    return domain != NULL ? cgs_op_hash_bytes(domain, strlen(domain), 1) : 0;
}

static void range_push(const char *domain, const char *text)
{
    cgs_region_t *region;
    cgs_enter_t  entered;

    if (cgs_life_has_no_regions()) {
        cgs_profile_push(domain, text);
        return;
    }
    if (cgs_self.shut) {
        cgs_self.shut_depth += hash_domain(domain) == cgs_self.shut_domain;
        return;
    }
    region = cgs_flow_own_region();
    if ((region != NULL) && cgs_self.marked &&
        (cgs_region_of_range(domain, text, false) != NULL)) {
        cgs_marks_range();
        region = cgs_flow_own_region();
    }
    if (region != NULL) {
        /* Ranges of a thread that has joined are its own affair. */
        if (!cgs_self.joined && !cgs_self.marked && (region->range_id == 0) &&
            same_domain(region->domain, domain)) {
            ++region->depth;
        }
        return;
    }
    region  = cgs_region_of_range(domain, text, false);
    entered = region != NULL ? cgs_region_enter(region) : CGS_ENTER_REFUSED;
    if (entered == CGS_ENTER_SHUT) {
        cgs_self.shut        = true;
        cgs_self.shut_depth  = 0;
        cgs_self.shut_domain = hash_domain(domain);
        cgs_trace_shut_begins(region);
    } else if (entered == CGS_ENTERED) {
        region->depth = 0;
        if (!same_domain(region->domain, domain)) {
            free(region->domain);
            region->domain = domain != NULL ? strdup(domain) : NULL;
        }
    }
}

static void range_pop(const char *domain)
{
    cgs_region_t *region;

    if (cgs_self.shut) {
        if ((hash_domain(domain) == cgs_self.shut_domain) &&
            (cgs_self.shut_depth-- == 0)) {
            cgs_self.shut = false;
            cgs_trace_shut_ends();
        }
        return;
    }
    region = cgs_flow_own_region();
    if (region == NULL) {
        cgs_profile_pop(domain);
        return;
    }
    if (cgs_self.joined || cgs_self.marked || (region->range_id != 0) ||
        !same_domain(region->domain, domain) || cgs_life_is_child()) {
        return;
    }
    if (region->depth > 0) {
        --region->depth;
        return;
    }
    cgs_region_leave(region);
    cgs_self.region = NULL;
}

static void range_start(const char *domain, const char *text, uint64_t id)
{
    cgs_region_t *region;

    if (cgs_life_has_no_regions()) {
        cgs_profile_start(domain, text, id);
        return;
    }
    if (cgs_self.shut) {
        return;
    }
    region = cgs_region_of_range(domain, text, true);
    if ((region != NULL) && cgs_self.marked) {
        cgs_marks_range();
    }
    if ((region != NULL) && (cgs_flow_own_region() == NULL) &&
        (cgs_region_enter(region) == CGS_ENTERED)) {
        cgs_lock(&region->lock);
        region->range_id = id;
        cgs_unlock(&region->lock);
        atomic_fetch_add(&num_started, 1);
    }
}

static void range_end(uint64_t id)
{
    cgs_region_t *region;
    bool         found;

    if (cgs_life_is_child() || (atomic_load(&num_started) == 0)) {
        cgs_profile_end(id);
        return;
    }
    for (region = cgs_region_first(); region != NULL; region = region->next) {
        cgs_lock(&region->lock);
        found = region->range_id == id;
        cgs_unlock(&region->lock);
        if (found) {
            atomic_fetch_sub(&num_started, 1);
            cgs_region_leave(region);
            return;
        }
    }
}

const cgs_range_sink_t cgs_ranges_sink = {
    .begin = cgs_life_start,
    .push  = range_push,
    .pop   = range_pop,
    .start = range_start,
    .end   = range_end,
};
