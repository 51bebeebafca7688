/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs: loops over random sequences of launches, copies, sets, host
 * functions, events, syncs and reallocations, on streams of all sorts, by one
 * to four threads, in ranges entered and left at random.
 *
 *     random_ops SEED [COUNT]      programs SEED, SEED + 1, ... (COUNT of them)
 *     random_ops -l SEED [COUNT]   prints the programs instead
 *     random_ops -c SEED [COUNT]   prints them in C, without their beginning:
 *                                  tests/random-c.sh prints the whole file
 *     random_ops -r SEED [COUNT]   looks for races: pairs of steps that use the
 *                                  same, and nothing says which one is first;
 *                                  status 1 if there are any
 *     random_ops -p SEED [COUNT]   prints where operations stand, in lines
 *                                  NUMBER PROGRAM LOOP REPETITION PLACE
 *
 * RANDOM_DROP="N N-N ..." leaves operations out, by their numbers; a program
 * without any is none.
 *
 * RANDOM_LOOSE=N leaves out every Nth step that was put in for the order (it
 * becomes one that orders nothing), to see who notices.
 *
 * What it prints depends on the seed alone: all that it looks at is ordered.
 */
#include <stdlib.h>
#include <string.h>

#include "random.h"


static int rnd_usage(void)
{
    fprintf(stderr, "usage: random_ops [-l | -c | -r | -p] SEED [COUNT]\n");
    return EXIT_FAILURE;
}

/* Drops the operations whose numbers are in the text. */
static void rnd_drop(rnd_program_t *p, const char *text)
{
    unsigned long end_number = p->first_number + p->num_ops;
    unsigned long first, last;
    char *end;

    for (; text != NULL; text = end) {
        first = last = strtoul(text, &end, 10);
        if (end == text) {
            return;
        }
        if (*end == '-') {
            last = strtoul(end + 1, &end, 10);
        }
        first = first < p->first_number ? p->first_number : first;
        for (; first <= last && first < end_number; ++first) {
            p->dropped[first - p->first_number] = true;
        }
    }
}

/* Undoes every so many of the plan's steps. */
static void rnd_loosen(rnd_program_t *p, unsigned every)
{
    unsigned num = 0;
    unsigned i;

    for (i = 0; i < p->num_steps; ++i) {
        if (p->step[i].is_added && ++num % every == 0) {
            p->step[i].op.kind = RND_ASK;
            p->step[i].op.slot = RND_LEGACY;
            p->step[i].look    = 0;
        }
    }
}

static bool rnd_is_empty(const rnd_program_t *p)
{
    unsigned i;

    for (i = 0; i < p->num_ops; ++i) {
        if (!p->dropped[i]) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static rnd_program_t program;
    unsigned long long seed;
    unsigned count, i;
    unsigned num_seeds = 0;
    unsigned num_racy  = 0;
    uint64_t *seeds;
    rnd_run_t *run = NULL;
    char how       = '\0';
    const char *loose = getenv("RANDOM_LOOSE");

    if (argc > 1 && (!strcmp(argv[1], "-l") || !strcmp(argv[1], "-c") ||
                     !strcmp(argv[1], "-r") || !strcmp(argv[1], "-p"))) {
        how = (*++argv)[1];
        --argc;
    }
    if (argc < 2 || argc > 3) {
        return rnd_usage();
    }
    seed  = strtoull(argv[1], NULL, 10);
    count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;

    seeds = calloc(count + 1, sizeof(*seeds));
    if (seeds == NULL) {
        perror("calloc");
        return EXIT_FAILURE;
    }
    if (how == '\0') {
        run = rnd_open();
    }
    for (i = 0; i < count; ++i) {
        rnd_make(&program, seed + i, i);
        rnd_drop(&program, getenv("RANDOM_DROP"));
        if (rnd_is_empty(&program)) {
            continue;
        }
        rnd_plan(&program);
        if (loose != NULL && atoi(loose) > 0) {
            rnd_loosen(&program, (unsigned)atoi(loose));
        }
        if (how == 'l') {
            rnd_list(&program, stdout);
        } else if (how == 'c') {
            rnd_print_c(&program, stdout);
            seeds[num_seeds++] = program.seed;
        } else if (how == 'r') {
            num_racy += rnd_check(&program, stdout) > 0;
        } else if (how == 'p') {
            rnd_list_places(&program, stdout);
        } else {
            rnd_run(run, &program);
        }
    }
    if (how == 'c') {
        rnd_print_c_main(seeds, num_seeds, stdout);
    }
    if (run != NULL) {
        rnd_close(run);
    }
    free(seeds);
    if (how == 'r') {
        printf("%u of %u programs have races\n", num_racy, count);
    }
    return num_racy == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
