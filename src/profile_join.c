/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists are sorted and walked side by side: calls and runs by thread and time,
 * then calls by correlation id to find the call of some work, then work and
 * calls by run. Figures of a region are medians over its runs.
 */
#define _GNU_SOURCE
#include "profile_join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "costs.h"
#include "op.h"

/* Runs that may be open at the start of another, of other threads. */
#define MAX_OVERLAP 64
/* Streams of one run that are told apart. */
#define MAX_STREAMS 16
/* Of a region's first timed runs, those that warm it up; and how many there
 * must be then. */
#define WARM_UP     2
#define MIN_SAMPLES 5

/* A number of some run, to find the median. */
typedef struct {
    uint64_t *value;
    size_t   num;
} numbers_t;

/* What one run came to, of those that were recorded. */
typedef struct {
    uint64_t launches, copies, sets, busy_ns, idle_ns, graph_ns;
    uint64_t order; /* hash of its kernels' names, one after the other */
} run_figures_t;

typedef struct {
    const cgs_profile_source_t *source;
    cgs_profile_run_t  *runs;
    size_t             num_runs;
    cgs_profile_call_t *calls;
    size_t             num_calls;
    cgs_profile_work_t *works;
    size_t             num_works;
    uint64_t           excess_ns; /* by which CUPTI shows kernels longer */
    size_t             *by_time;  /* runs by their start */
    run_figures_t      *figures;  /* of each run */
    uint64_t           *hashes;   /* of rows of calls, for one region */
    uint64_t           *lengths;
    uint64_t           *numbers;  /* to sort */
} join_t;

/* ---- Order ---- */

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_value(const void *a, const void *b)
{
    return compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

static int runs_by_thread(const void *a, const void *b)
{
    const cgs_profile_run_t *x = a, *y = b;
    int                     order = compare(x->thread, y->thread);

    return order != 0 ? order : compare(x->began_ns, y->began_ns);
}

static int calls_by_thread(const void *a, const void *b)
{
    const cgs_profile_call_t *x = a, *y = b;
    int                      order = compare(x->thread, y->thread);

    return order != 0 ? order : compare(x->began_ns, y->began_ns);
}

static int calls_by_correlation(const void *a, const void *b)
{
    const cgs_profile_call_t *x = a, *y = b;

    return compare(x->correlation, y->correlation);
}

static int works_by_correlation(const void *a, const void *b)
{
    const cgs_profile_work_t *x = a, *y = b;

    return compare(x->correlation, y->correlation);
}

static int works_by_run(const void *a, const void *b)
{
    const cgs_profile_work_t *x = a, *y = b;
    int                      order = (x->run > y->run) - (x->run < y->run);

    return order != 0 ? order : compare(x->began_ns, y->began_ns);
}

/* The value in the middle; the list is sorted. */
static uint64_t median(uint64_t *value, size_t num)
{
    if (num == 0) {
        return 0;
    }
    qsort(value, num, sizeof(*value), by_value);
    return num % 2 ? value[num / 2] :
                     (value[num / 2 - 1] + value[num / 2]) / 2;
}

/* ---- Whose run a call belongs to ---- */

static void assign_own(join_t *join)
{
    size_t run = 0;
    size_t i;

    for (i = 0; i < join->num_calls; ++i) {
        cgs_profile_call_t *call = &join->calls[i];

        while ((run < join->num_runs) &&
               ((join->runs[run].thread < call->thread) ||
                ((join->runs[run].thread == call->thread) &&
                 (join->runs[run].ended_ns < call->began_ns)))) {
            ++run;
        }
        if ((run < join->num_runs) &&
            (join->runs[run].thread == call->thread) &&
            (join->runs[run].began_ns <= call->began_ns)) {
            call->run = (int32_t)run;
        }
    }
}

/* Calls are sorted by correlation id, and so is the work. A graph's launch has
 * much work, other calls one piece. */
static void assign_works(join_t *join)
{
    size_t call = 0;
    size_t i;

    for (i = 0; i < join->num_works; ++i) {
        cgs_profile_work_t *work = &join->works[i];

        while ((call < join->num_calls) &&
               (join->calls[call].correlation < work->correlation)) {
            ++call;
        }
        if ((call < join->num_calls) &&
            (join->calls[call].correlation == work->correlation)) {
            work->run = join->calls[call].run;
        }
    }
}

/* Whether a run's region had work on a stream. */
typedef struct {
    const cgs_profile_region_t *region;
    uint32_t                   stream[MAX_STREAMS];
    unsigned                   num;
} owner_t;

static owner_t *find_owner(owner_t *owners, size_t num,
                           const cgs_profile_region_t *region)
{
    size_t i;

    for (i = 0; (i < num) && (owners[i].region != region); ++i) {
    }
    return i < num ? &owners[i] : NULL;
}

static bool has_stream(const owner_t *owner, uint32_t stream)
{
    unsigned i;

    for (i = 0; (owner != NULL) && (i < owner->num); ++i) {
        if (owner->stream[i] == stream) {
            return true;
        }
    }
    return false;
}

/* The run of another thread that was open at a time and has the stream. */
static int32_t find_foreign(const join_t *join, owner_t *owners,
                            size_t num_owners, uint64_t ns, uint32_t stream)
{
    const cgs_profile_run_t *run;
    size_t                  low = 0, high = join->num_runs;
    size_t                  middle, tries;

    while (low < high) {
        middle = low + (high - low) / 2;
        if (join->runs[join->by_time[middle]].began_ns <= ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (tries = 0; (low-- > 0) && (tries < MAX_OVERLAP); ++tries) {
        run = &join->runs[join->by_time[low]];
        if ((run->ended_ns >= ns) &&
            has_stream(find_owner(owners, num_owners, run->region), stream)) {
            return (int32_t)join->by_time[low];
        }
    }
    return -1;
}

static int indices_by_time(const void *a, const void *b, void *arg)
{
    const cgs_profile_run_t *runs = arg;

    return compare(runs[*(const size_t *)a].began_ns,
                   runs[*(const size_t *)b].began_ns);
}

static void sort_by_time(join_t *join)
{
    size_t i;

    for (i = 0; i < join->num_runs; ++i) {
        join->by_time[i] = i;
    }
    qsort_r(join->by_time, join->num_runs, sizeof(*join->by_time),
            indices_by_time, join->runs);
}

/* Work of threads without a run of their own, on streams that a region has in
 * its own thread: as in a replay it belongs to the run that is open. */
static int assign_foreign(join_t *join)
{
    const cgs_profile_region_t *region;
    cgs_profile_call_t         *call;
    cgs_profile_work_t         *work;
    owner_t                    *owners, *owner;
    size_t                     num = 0, at = 0;
    size_t                     i;

    for (region = join->source->regions; region != NULL;
         region = region->next) {
        ++num;
    }
    owners = calloc(num + 1, sizeof(*owners));
    if (owners == NULL) {
        return -ENOMEM;
    }
    for (region = join->source->regions, i = 0; region != NULL;
         region = region->next, ++i) {
        owners[i].region = region;
    }
    for (i = 0; i < join->num_works; ++i) {
        work  = &join->works[i];
        owner = work->run < 0 ? NULL :
                find_owner(owners, num, join->runs[work->run].region);
        if ((owner != NULL) && (owner->num < MAX_STREAMS) &&
            !has_stream(owner, work->stream)) {
            owner->stream[owner->num++] = work->stream;
        }
    }
    sort_by_time(join);
    for (i = 0; i < join->num_works; ++i) {
        work = &join->works[i];
        while ((at < join->num_calls) &&
               (join->calls[at].correlation < work->correlation)) {
            ++at;
        }
        call = at < join->num_calls ? &join->calls[at] : NULL;
        if ((work->run >= 0) || (call == NULL) ||
            (call->correlation != work->correlation)) {
            continue;
        }
        if (call->run < 0) {
            call->run = find_foreign(join, owners, num, call->began_ns,
                                     work->stream);
        }
        work->run = call->run;
    }
    free(owners);
    return 0;
}

/* ---- What the device did ---- */

/* A kernel that does next to nothing takes a graph's chain less than CUPTI
 * says it to take. By how much, the shortest one that there was tells, if it
 * is such a kernel. */
static void find_excess(join_t *join)
{
    uint64_t least = UINT64_MAX;
    uint64_t ns;
    size_t   i;

    for (i = 0; i < join->num_works; ++i) {
        ns = join->works[i].ended_ns - join->works[i].began_ns;
        if ((cgs_profile_cupti_name(join->works[i].name)[0] != '[') &&
            (ns < least)) {
            least = ns;
        }
    }
    if ((least > CGS_COST_TINY_KERNEL_NS) &&
        (least / 2 < CGS_COST_TINY_KERNEL_NS)) {
        join->excess_ns = least - CGS_COST_TINY_KERNEL_NS;
    }
}

/* The longest ones, the longest first. */
static void add_gap(cgs_profile_figures_t *figures, uint64_t ns,
                    const cgs_profile_work_t *before,
                    const cgs_profile_work_t *after)
{
    cgs_profile_gap_t gap = {
        .ns     = ns,
        .before = cgs_profile_cupti_name(before->name),
        .after  = cgs_profile_cupti_name(after->name),
    };
    cgs_profile_gap_t other;
    unsigned          i;

    for (i = 0; i < CGS_PROFILE_GAPS; ++i) {
        if (gap.ns > figures->gap[i].ns) {
            other           = figures->gap[i];
            figures->gap[i] = gap;
            gap             = other;
        }
    }
}

/* The most work that is on one stream. */
static uint64_t longest_stream(const cgs_profile_work_t *work, size_t num)
{
    uint32_t stream[MAX_STREAMS];
    uint64_t count[MAX_STREAMS];
    unsigned streams = 0;
    uint64_t longest = 0;
    unsigned k;
    size_t   i;

    for (i = 0; i < num; ++i) {
        for (k = 0; (k < streams) && (stream[k] != work[i].stream); ++k) {
        }
        if (k == streams) {
            if (streams == MAX_STREAMS) {
                continue;
            }
            stream[k]  = work[i].stream;
            count[k]   = 0;
            ++streams;
        }
        if (++count[k] > longest) {
            longest = count[k];
        }
    }
    return longest;
}

/* Work in order of its beginning: the union of its times. */
static void measure_device(const join_t *join, const cgs_profile_work_t *work,
                           size_t num, run_figures_t *run,
                           cgs_profile_figures_t *figures)
{
    uint64_t busy_until = 0, graph_until = 0;
    uint64_t began, ended, least;
    size_t   last = 0;
    size_t   i;

    for (i = 0; i < num; ++i) {
        began = work[i].began_ns;
        ended = work[i].ended_ns;
        if ((i > 0) && (began > busy_until)) {
            run->idle_ns += began - busy_until;
            add_gap(figures, began - busy_until, &work[last], &work[i]);
        }
        if (ended > busy_until) {
            run->busy_ns += ended - (began > busy_until ? began : busy_until);
            busy_until    = ended;
            last          = i;
        }
        ended = ended - began > join->excess_ns ? ended - join->excess_ns :
                                                  began;
        if (ended > graph_until) {
            run->graph_ns += ended - (began > graph_until ? began :
                                                            graph_until);
            graph_until    = ended;
        }
    }
    least = longest_stream(work, num) * CGS_COST_TINY_KERNEL_NS;
    if (run->graph_ns < least) {
        run->graph_ns = least;
    }
}

static void count_call(run_figures_t *run, const cgs_profile_call_t *call)
{
    run->launches += call->class == CGS_CALL_LAUNCH;
    run->copies   += (call->class == CGS_CALL_COPY) ||
                     (call->class == CGS_CALL_SYNC_COPY);
    run->sets     += call->class == CGS_CALL_SET;
}

/* ---- Rows of calls between two waits ---- */

static bool is_wait(const cgs_profile_call_t *call)
{
    return (call->class == CGS_CALL_WAIT) ||
           (call->class == CGS_CALL_SYNC_COPY);
}

/* The work of a call, or NULL. Work is sorted by correlation id. */
static const cgs_profile_work_t *work_of(const join_t *join,
                                         const cgs_profile_call_t *call)
{
    cgs_profile_work_t key = {.correlation = call->correlation};

    return join->num_works == 0 ? NULL :
           bsearch(&key, join->works, join->num_works, sizeof(key),
                   works_by_correlation);
}

static void end_row(join_t *join, size_t *num, uint64_t *hash,
                    uint64_t *length)
{
    if (*length > 0) {
        join->hashes[*num]  = *hash;
        join->lengths[*num] = *length;
        ++*num;
    }
    *hash   = 1;
    *length = 0;
}

typedef struct {
    uint64_t hash, length;
} row_t;

static int rows_by_hash(const void *a, const void *b)
{
    return compare(((const row_t *)a)->hash, ((const row_t *)b)->hash);
}

static void count_rows(join_t *join, size_t num,
                       cgs_profile_figures_t *figures)
{
    row_t  *row = malloc((num + 1) * sizeof(*row));
    size_t same = 0;
    size_t i;

    if (row == NULL) {
        return;
    }
    for (i = 0; i < num; ++i) {
        row[i] = (row_t){join->hashes[i], join->lengths[i]};
    }
    qsort(row, num, sizeof(*row), rows_by_hash);
    figures->sequences = num;
    for (i = 0; i < num; ++i) {
        same = (i > 0) && (row[i].hash == row[i - 1].hash) ? same + 1 : 1;
        figures->distinct += same == 1;
        if (same > figures->commonest) {
            figures->commonest = same;
            figures->length    = row[i].length;
        }
    }
    free(row);
}

/* Of a region, or with NULL of what is outside. Calls are sorted by thread. */
static void find_rows(join_t *join, const cgs_profile_region_t *region,
                      cgs_profile_figures_t *figures)
{
    const cgs_profile_call_t   *call, *last = NULL;
    const cgs_profile_region_t *its;
    const cgs_profile_work_t   *work;
    uint64_t                   hash = 1, length = 0;
    size_t                     num = 0;
    size_t                     i;

    for (i = 0; i < join->num_calls; ++i) {
        call = &join->calls[i];
        its  = call->run < 0 ? NULL : join->runs[call->run].region;
        if (its != region) {
            continue;
        }
        if ((last != NULL) && ((last->run != call->run) ||
                               (last->thread != call->thread))) {
            end_row(join, &num, &hash, &length);
        }
        last = call;
        work = work_of(join, call);
        if (call->class != CGS_CALL_WAIT) {
            hash = cgs_op_hash_bytes(&call->class, sizeof(call->class), hash);
            if (work != NULL) {
                hash = cgs_op_hash_bytes(&work->shape, sizeof(work->shape),
                                         hash);
            }
            ++length;
        }
        if (is_wait(call)) {
            end_row(join, &num, &hash, &length);
        }
    }
    end_row(join, &num, &hash, &length);
    count_rows(join, num, figures);
}

/* ---- A region ---- */

/* What of the samples says how long a run takes when CUPTI is off: not those
 * of the beginning, and of those before it was loaded and after it was switched
 * off again the ones that are shorter. */
static void choose_samples(const cgs_profile_region_t *region, int *kind,
                           size_t *first, size_t *num, uint64_t *numbers)
{
    uint64_t best = UINT64_MAX;
    uint64_t middle;
    size_t   from, to, i;
    int      k;

    *num = 0;
    for (k = 0; k < 2; ++k) {
        to   = region->samples[k] < CGS_PROFILE_SAMPLES ?
               region->samples[k] : CGS_PROFILE_SAMPLES;
        from = to >= MIN_SAMPLES + WARM_UP ? WARM_UP : 0;
        if ((region->sample[k] == NULL) || (to <= from) ||
            ((to - from < MIN_SAMPLES) && (*num >= MIN_SAMPLES))) {
            continue;
        }
        for (i = from; i < to; ++i) {
            numbers[i - from] = region->sample[k][i].run_ns;
        }
        middle = median(numbers, to - from);
        if ((middle < best) || (*num < MIN_SAMPLES)) {
            best   = middle;
            *kind  = k;
            *first = from;
            *num   = to - from;
        }
    }
}

static uint64_t sample_median(const cgs_profile_sample_t *sample, size_t num,
                              size_t offset, uint64_t *numbers)
{
    size_t i;

    for (i = 0; i < num; ++i) {
        memcpy(&numbers[i], (const char *)&sample[i] + offset,
               sizeof(numbers[i]));
    }
    return median(numbers, num);
}

#define SAMPLE(_member) \
    sample_median(sample, num, offsetof(cgs_profile_sample_t, _member), numbers)

static void measure_plain(const cgs_profile_region_t *region,
                          cgs_profile_figures_t *figures)
{
    uint64_t                   numbers[CGS_PROFILE_SAMPLES];
    const cgs_profile_sample_t *sample;
    size_t                     first = 0, num = 0;
    int                        kind  = 0;

    choose_samples(region, &kind, &first, &num, numbers);
    figures->plain_runs = region->samples[0] + region->samples[1];
    figures->is_timed   = num > 0;
    if (num == 0) {
        return;
    }
    sample            = region->sample[kind] + first;
    figures->run_ns   = SAMPLE(run_ns);
    figures->calls    = SAMPLE(calls);
    figures->call_ns  = SAMPLE(call_ns);
    figures->waits    = SAMPLE(waits);
    figures->wait_ns  = SAMPLE(wait_ns);
    figures->waits_in = SAMPLE(waits_in);
}

static uint64_t run_median(const join_t *join,
                           const cgs_profile_region_t *region, size_t offset,
                           uint64_t *num_p)
{
    size_t num = 0;
    size_t i;

    for (i = 0; i < join->num_runs; ++i) {
        if (join->runs[i].region == region) {
            memcpy(&join->numbers[num++], (const char *)&join->figures[i] +
                   offset, sizeof(uint64_t));
        }
    }
    *num_p = num;
    return median(join->numbers, num);
}

#define RUN(_member) \
    run_median(join, region, offsetof(run_figures_t, _member), \
               &figures->profiled_runs)

/* Recorded runs whose kernels came in that order in another one too. */
static unsigned percent_alike(const join_t *join,
                              const cgs_profile_region_t *region)
{
    size_t num = 0, alike = 0;
    size_t i;

    for (i = 0; i < join->num_runs; ++i) {
        if (join->runs[i].region == region) {
            join->numbers[num++] = join->figures[i].order;
        }
    }
    qsort(join->numbers, num, sizeof(uint64_t), by_value);
    for (i = 0; i < num; ++i) {
        alike += ((i > 0) && (join->numbers[i] == join->numbers[i - 1])) ||
                 ((i + 1 < num) && (join->numbers[i] == join->numbers[i + 1]));
    }
    return num > 0 ? (unsigned)(alike * 100 / num) : 0;
}

static void measure_region(join_t *join, const cgs_profile_region_t *region,
                           cgs_profile_figures_t *figures)
{
    figures->name     = region->name;
    figures->has_rule = region->has_rule;
    figures->runs     = region->runs;
    measure_plain(region, figures);
    if (region->profiled == 0) {
        return;
    }
    figures->launches      = RUN(launches);
    figures->copies        = RUN(copies);
    figures->sets          = RUN(sets);
    figures->busy_ns       = RUN(busy_ns);
    figures->idle_ns       = RUN(idle_ns);
    figures->graph_ns      = RUN(graph_ns);
    figures->is_profiled   = figures->profiled_runs > 0;
    figures->alike_percent = percent_alike(join, region);
    find_rows(join, region, figures);
}

/* ---- What is outside ---- */

static uint64_t mean(uint64_t sum, uint64_t num)
{
    return num > 0 ? sum / num : 0;
}

/* All that is outside as one run, where there is nothing else: its time is that
 * of the windows with CUPTI, without what CUPTI made its calls take longer. */
static void time_outside(join_t *join, bool has_regions,
                         cgs_profile_figures_t *figures)
{
    uint64_t before  = atomic_load(&cgs_profile_outside.calls);
    uint64_t each_ns = mean(atomic_load(&cgs_profile_outside.call_ns), before);
    uint64_t slow_ns = 0;
    size_t   i;

    for (i = 0; i < join->num_calls; ++i) {
        const cgs_profile_call_t *call = &join->calls[i];
        uint64_t                 ns    = call->ended_ns - call->began_ns;

        if (call->run >= 0) {
            continue;
        }
        if (is_wait(call)) {
            ++figures->waits;
            figures->wait_ns += ns;
        } else {
            ++figures->calls;
            slow_ns += ns;
        }
    }
    if (has_regions || (before == 0) || (figures->calls == 0)) {
        figures->waits = figures->wait_ns = figures->calls = 0;
        return;
    }
    each_ns = each_ns > join->source->clock_ns ?
              each_ns - join->source->clock_ns : 0;
    figures->is_timed = true;
    figures->waits_in = figures->waits;
    figures->call_ns  = figures->calls * each_ns;
    figures->run_ns   = join->source->recorded_ns -
                        (slow_ns > figures->call_ns ?
                         slow_ns - figures->call_ns : 0);
}

static void measure_outside(join_t *join, const run_figures_t *run,
                            bool has_regions, cgs_profile_figures_t *figures)
{
    figures->is_profiled = join->source->was_recorded;
    figures->launches    = run->launches;
    figures->copies      = run->copies;
    figures->sets        = run->sets;
    figures->busy_ns     = run->busy_ns;
    figures->idle_ns     = run->idle_ns;
    figures->graph_ns    = run->graph_ns;
    time_outside(join, has_regions, figures);
    find_rows(join, NULL, figures);
    /* What would be replayed if it were marked. */
    figures->alike_percent = figures->sequences > 0 ?
        (unsigned)((figures->sequences - figures->distinct) * 100 /
                   figures->sequences) : 0;
}

/* ---- All of it ---- */

static cgs_profile_figures_t *figures_of(cgs_profile_t *result,
                                         const cgs_profile_region_t *regions,
                                         const cgs_profile_region_t *region)
{
    size_t i = result->num_regions;

    for (; regions != NULL; regions = regions->next) {
        --i;
        if (regions == region) {
            return &result->region[i];
        }
    }
    return &result->outside;
}

/* Each run's figures, from work and calls that know their run. The order of
 * kernels is that in which they began. */
static void measure_runs(join_t *join, cgs_profile_t *result,
                         run_figures_t *outside)
{
    const cgs_profile_region_t *region;
    run_figures_t              *run;
    size_t                     i, end, k;

    for (i = 0; i < join->num_calls; ++i) {
        k = (size_t)join->calls[i].run;
        count_call(join->calls[i].run < 0 ? outside : &join->figures[k],
                   &join->calls[i]);
    }
    for (i = 0; i < join->num_works; i = end) {
        for (end = i + 1; (end < join->num_works) &&
             (join->works[end].run == join->works[i].run); ++end) {
        }
        region = join->works[i].run < 0 ? NULL :
                 join->runs[join->works[i].run].region;
        run    = region == NULL ? outside :
                 &join->figures[join->works[i].run];
        measure_device(join, &join->works[i], end - i, run,
                       figures_of(result, join->source->regions, region));
        for (k = i; k < end; ++k) {
            run->order = cgs_op_hash_bytes(&join->works[k].name,
                                           sizeof(join->works[k].name),
                                           run->order);
        }
    }
}

static int prepare(join_t *join, const cgs_profile_source_t *source)
{
    size_t num;

    *join = (join_t){
        .source    = source,
        .runs      = source->runs,
        .num_runs  = source->num_runs,
        .calls     = source->records->calls,
        .num_calls = source->records->num_calls,
        .works     = source->records->works,
        .num_works = source->records->num_works,
    };
    num           = join->num_calls > join->num_runs ? join->num_calls :
                                                       join->num_runs;
    join->by_time = calloc(join->num_runs + 1, sizeof(*join->by_time));
    join->figures = calloc(join->num_runs + 1, sizeof(*join->figures));
    join->hashes  = calloc(join->num_calls + 1, sizeof(*join->hashes));
    join->lengths = calloc(join->num_calls + 1, sizeof(*join->lengths));
    join->numbers = calloc(num + 1, sizeof(*join->numbers));
    return (join->by_time != NULL) && (join->figures != NULL) &&
           (join->hashes != NULL) && (join->lengths != NULL) &&
           (join->numbers != NULL) ? 0 : -ENOMEM;
}

static void finish(join_t *join)
{
    free(join->by_time);
    free(join->figures);
    free(join->hashes);
    free(join->lengths);
    free(join->numbers);
}

static void sort(void *list, size_t num, size_t size,
                 int (*order)(const void *, const void *))
{
    if (num > 1) {
        qsort(list, num, size, order);
    }
}

static int assign_all(join_t *join)
{
    size_t i;

    for (i = 0; (i < join->num_runs) && join->source->records->by_pthread;
         ++i) {
        join->runs[i].thread = join->runs[i].pthread;
    }
    sort(join->runs, join->num_runs, sizeof(*join->runs), runs_by_thread);
    sort(join->calls, join->num_calls, sizeof(*join->calls), calls_by_thread);
    assign_own(join);
    sort(join->calls, join->num_calls, sizeof(*join->calls),
         calls_by_correlation);
    sort(join->works, join->num_works, sizeof(*join->works),
         works_by_correlation);
    assign_works(join);
    return assign_foreign(join);
}

/* In the order that each of these wants. */
static void measure_all(join_t *join, cgs_profile_t *result)
{
    run_figures_t              outside  = {0};
    bool                       has_runs = false;
    const cgs_profile_region_t *region;
    size_t                     i = result->num_regions;

    find_excess(join);
    sort(join->works, join->num_works, sizeof(*join->works), works_by_run);
    measure_runs(join, result, &outside);
    sort(join->calls, join->num_calls, sizeof(*join->calls), calls_by_thread);
    sort(join->works, join->num_works, sizeof(*join->works),
         works_by_correlation);
    for (region = join->source->regions; region != NULL;
         region = region->next) {
        has_runs = has_runs || (region->runs > 0);
        measure_region(join, region, &result->region[--i]);
        cgs_profile_judge(&result->region[i]);
    }
    measure_outside(join, &outside, has_runs, &result->outside);
    cgs_profile_judge(&result->outside);
}

int cgs_profile_join(const cgs_profile_source_t *source,
                     cgs_profile_t *result)
{
    const cgs_profile_region_t *region;
    join_t                     join;
    int                        status;

    *result = (cgs_profile_t){
        .elapsed_ns   = source->elapsed_ns,
        .recorded_ns  = source->recorded_ns,
        .left_out     = source->records->left_out + source->runs_left_out,
        .was_recorded = source->was_recorded,
    };
    for (region = source->regions; region != NULL; region = region->next) {
        ++result->num_regions;
    }
    result->region = calloc(result->num_regions + 1, sizeof(*result->region));
    status         = prepare(&join, source);
    if (result->region == NULL) {
        status = -ENOMEM;
    }
    if (status == 0) {
        status = assign_all(&join);
    }
    if (status == 0) {
        measure_all(&join, result);
    }
    finish(&join);
    return status;
}

void cgs_profile_release(cgs_profile_t *result)
{
    free(result->region);
    result->region = NULL;
}
