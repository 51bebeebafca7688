/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of all regions, for the report at exit.
 */
#define _GNU_SOURCE
#include "summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "entries.h"
#include "flow.h"
#include "life.h"
#include "log.h"
#include "marks.h"
#include "region.h"
#include "report.h"

/* Times of fewer runs or calls say little. */
#define LEAST_TIMES 4

static cgs_figure_t mean_of(const cgs_sample_t *sample)
{
    uint64_t ns = 0;
    bool     known = cgs_sample_mean(sample, LEAST_TIMES, &ns);

    return (cgs_figure_t){.known = known, .value = (int64_t)ns};
}

/* What the driver would have taken for the calls that it was spared, less what
 * was done in their place. */
static cgs_figure_t host_saved(const cgs_region_stats_t *stats,
                               cgs_figure_t plain_call_ns)
{
    return (cgs_figure_t){
        .known = plain_call_ns.known || (stats->swallowed == 0),
        .value = (int64_t)stats->swallowed * plain_call_ns.value -
                 (int64_t)(stats->times.graph_ns + stats->build_ns),
    };
}

/* The region as the report shows it. Its counters are copied to `stats`, which
 * the report refers to, and its calls are added to `counts`. */
static void snapshot_region(cgs_region_t *region, cgs_region_report_t *out,
                            cgs_region_stats_t *stats, uint64_t *counts)
{
    cgshim_state_t state;
    int            kind;

    cgs_region_snapshot(region, stats, &state);
    for (kind = 0; kind < CGS_OP_NUM_KINDS; ++kind) {
        counts[kind] += region->counts[kind];
    }
    *out = (cgs_region_report_t){
        .name             = region->name,
        .state            = cgs_region_state_name(state),
        .runs             = stats->runs,
        .replayed_runs    = stats->replayed_runs,
        .recordings       = stats->recordings,
        .plain_runs       = stats->plain_runs,
        .unseen_runs      = stats->unseen_runs,
        .calls            = stats->calls,
        .seen_launches    = region->counts[CGS_OP_KERNEL],
        .swallowed        = stats->swallowed,
        .launches         = stats->launches,
        .patched          = stats->patched,
        .barriers         = stats->barriers,
        .variants         = stats->variants,
        .chunks           = stats->chunks,
        .nodes            = stats->nodes,
        .builds           = stats->builds,
        .build_ns         = stats->build_ns,
        .device_bytes     = stats->device_bytes,
        .host_bytes       = stats->host_bytes,
        .fallbacks        = stats->fallbacks.entry,
        .num_fallbacks    = stats->fallbacks.num,
        .cuts             = stats->cuts.entry,
        .num_cuts         = stats->cuts.num,
        .first_divergence = stats->first_divergence,
        .verifies         = region->rule->verify > 0,
        .verified         = stats->verified,
        .unverified       = stats->unverified.entry,
        .num_unverified   = stats->unverified.num,
        .mistake          = stats->mistake,
        .changes          = &stats->changes,
        .swallowed_launches = stats->swallowed_launches,
        .graph_ns         = stats->times.graph_ns,
        .plain_call_ns    = mean_of(&stats->times.plain_calls),
        .plain_run_ns     = mean_of(&stats->times.plain_runs),
        .replayed_run_ns  = mean_of(&stats->times.replayed_runs),
    };
    out->host_saved_ns = host_saved(stats, out->plain_call_ns);
}

/* Rules that nothing has matched. */
static size_t find_strays(cgs_stray_t *strays)
{
    const cgs_config_t *config = cgs_config_get();
    const cgs_rule_t   *rule;
    cgs_region_t       *region;
    size_t             num = 0;

    for (rule = config->rules; rule < config->rules + config->num_rules;
         ++rule) {
        for (region = cgs_region_first();
             (region != NULL) && (region->rule != rule);
             region = region->next) {
        }
        if ((region == NULL) && rule->enable && !rule->between) {
            strays[num++] = (cgs_stray_t){
                .name      = rule->name,
                .is_kernel = rule->from != NULL,
                .is_hidden = (rule->from != NULL) && cgs_marks_has_seen(rule),
            };
        }
    }
    return num;
}

void cgs_summary_write(void)
{
    static const char *const modes[] = {
        [CGS_MODE_ON]      = "on",
        [CGS_MODE_OBSERVE] = "observe",
        [CGS_MODE_OFF]     = "off",
    };
    const cgs_config_t  *config  = cgs_config_get();
    cgs_region_report_t *regions = NULL;
    cgs_report_t        report   = {
        .version = PACKAGE_VERSION,
        .program = program_invocation_name,
        .pid     = getpid(),
        .mode    = modes[config->mode],
        .note    = cgs_life_note(),
    };
    cgs_region_stats_t  *stats   = NULL;
    cgs_stray_t         *strays  = NULL;
    const char          *ranges[CGS_MARKS_KERNELS];
    cgs_marks_seen_t    seen;
    uint64_t            counts[CGS_OP_NUM_KINDS];
    cgs_region_t        *region;
    size_t              num = 0;
    int                 kind, status;

    if (config->report == NULL) {
        return;
    }
    for (region = cgs_region_first(); region != NULL; region = region->next) {
        ++num;
    }
    regions = calloc(num + 1, sizeof(*regions));
    stats   = calloc(num + 1, sizeof(*stats));
    strays  = calloc(config->num_rules + 1, sizeof(*strays));
    if ((regions == NULL) || (stats == NULL) || (strays == NULL)) {
        goto out;
    }
    for (kind = 0; kind < CGS_OP_NUM_KINDS; ++kind) {
        counts[kind] = atomic_load(&cgs_flow_counts.calls[kind]);
    }
    /* The list grows at its head, and was made in order of appearance. */
    report.num_regions = num;
    for (region = cgs_region_first(); (region != NULL) && (num > 0);
         region = region->next) {
        --num;
        snapshot_region(region, &regions[num], &stats[num], counts);
    }
    CGS_REAL(cuDriverGetVersion)(&report.driver_version);
    report.launches = counts[CGS_OP_KERNEL];
    report.copies   = counts[CGS_OP_COPY];
    report.sets     = counts[CGS_OP_SET];
    report.regions  = regions;
    cgs_marks_seen(&seen);
    report.looked_at   = seen.looked_at;
    report.repeating   = seen.repeating;
    report.strays      = strays;
    report.num_strays  = find_strays(strays);
    report.ranges      = ranges;
    report.num_ranges  = cgs_region_unmatched(ranges, CGS_MARKS_KERNELS);
    report.kernels     = (const char *const *)seen.kernels;
    report.num_kernels = seen.num_kernels;
    status = cgs_report_write(&report, config->report);
    if (status != 0) {
        cgs_log_complain("CGSHIM_REPORT=%s: cannot be written (%s); there is "
                         "no report", config->report, strerror(-status));
    }
out:
    free(strays);
    free(stats);
    free(regions);
}
