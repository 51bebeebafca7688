/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs over the driver API: what the parts of random_ops share.
 *
 *   random_kinds.h  the kinds of operation, one entry each
 *   random_make.c   a seed becomes loops of operations (rnd_make)
 *   random_plan.c   what CUDA leaves open is ordered: the operations become
 *                   steps whose results no scheduler can change (rnd_plan)
 *   random_check.c  whether they left something open (rnd_check)
 *   random_list.c   the steps as text (rnd_list)
 *   random_c.c      the steps as C (rnd_print_c)
 *   random_run.c    the steps are made, by one to four threads (rnd_run)
 *
 * The order in which operations are made up is the order of their effects.
 * Where two that touch the same memory come from two threads, the later one
 * waits for the earlier one's call to return; where they are on streams that do
 * not wait for each other, a step is put in that orders the streams, or that
 * makes the host wait. Nothing else is ordered.
 */
#ifndef RND_RANDOM_H
#define RND_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "random_kinds.h"
#include "util.h"


enum {
    RND_WORDS      = 64,        /* in each buffer */
    RND_BYTES      = RND_WORDS * sizeof(uint32_t),
    RND_PITCH      = 32,        /* bytes in a row, for what has rows */

    /* What operations touch: buffers of three sorts, words that the host
     * polls, and, as if it were one, the module that is loaded anew. */
    RND_PINNED     = 6,         /* those before are device memory */
    RND_MANAGED    = 9,
    RND_FLAG       = 10,
    RND_BUFFERS    = 12,
    RND_MODULE     = 12,
    RND_RESOURCES  = 13,

    RND_THREADS    = 4,
    RND_LEGACY     = 6,         /* slots before are created streams */
    RND_PER_THREAD = 7,
    RND_OWN_EVENTS = 6,         /* the others order what must be ordered */
    RND_EVENTS     = 14,
    RND_RANGES     = 2,         /* start/end ranges */
    RND_SHAPES     = 288,       /* of launches: rnd_grid() */

    RND_LOOPS      = 4,
    RND_BODY       = 96,        /* operations in a loop's body */
    RND_LOOP       = 800,       /* in all its repetitions */
    RND_OPS        = RND_LOOPS * RND_LOOP,
    RND_STEPS      = 32768,
    RND_NUMBERS    = 3500       /* of operations, kept for each program */
};


/* How an operation uses a buffer or the module. */
typedef enum rnd_use {
    RND_UNUSED,
    RND_READ,                   /* by the device */
    RND_WRITE,
    RND_HOST_WRITE,             /* by the host, when all work on it is done */
    RND_HOST_ORDER              /* in a call that waits for work by itself */
} rnd_use_t;


/* Which buffers it may be. */
typedef enum rnd_sort {
    RND_ANY_MEMORY,
    RND_DEVICE_ONLY,
    RND_PINNED_ONLY,
    RND_FLAG_ONLY
} rnd_sort_t;


/* What kinds are chosen from. */
typedef enum rnd_group {
    RND_LAUNCHES,
    RND_WORK,                   /* other work on a stream */
    RND_EVENT_CALLS,
    RND_SYNCS,
    RND_LIVES,                  /* of memory, streams, events, modules */
    RND_EDGES,                  /* ranges, which the loop puts */
    RND_NUM_GROUPS
} rnd_group_t;


#define RND_KIND_NAME(_name, ...) RND_##_name,

/* The kinds of operation: random_kinds.h. */
typedef enum rnd_kind {
    RND_KINDS(RND_KIND_NAME)
    RND_NUM_KINDS
} rnd_kind_t;


enum {
    RND_ON_STREAM = 1 << 0,     /* uses its stream */
    RND_DEFAULT   = 1 << 1,     /* which is the legacy default stream */
    RND_RESULT    = 1 << 2,     /* has a result that is printed */
    RND_LOOKS     = 1 << 3      /* then the host looks at what is done */
};


typedef struct rnd_kind_info {
    const char  *text;
    rnd_group_t group;
    unsigned    weight;
    rnd_use_t   to;
    rnd_sort_t  to_sort;
    unsigned    num_from;
    rnd_sort_t  from_sort;
    unsigned    flags;
} rnd_kind_info_t;

extern const rnd_kind_info_t rnd_kinds[RND_NUM_KINDS];


/* How an operation's arguments go from one repetition to the next. */
typedef enum rnd_drift {
    RND_STAYS,
    RND_ALTERNATES,
    RND_PING_PONG,              /* places of buffers or events change */
    RND_DRIFTS,
    RND_RESHAPES,               /* another length by turns */
    RND_SHAPE_ALTERNATES,
    RND_SHAPE_DRIFTS
} rnd_drift_t;


typedef struct rnd_op {
    rnd_kind_t  kind;
    rnd_drift_t drift;
    unsigned    period;         /* of what goes by turns */
    unsigned    thread;
    unsigned    slot;           /* of the stream */
    unsigned    event[2];
    unsigned    to;
    unsigned    from[3];
    unsigned    module;
    unsigned    range;          /* number of a start/end range */
    uint32_t    name;           /* of a range */
    uint32_t    value;
    uint32_t    words;
    uint32_t    shape;          /* of a launch: rnd_grid() */
    uint32_t    shape_step;     /* from one to the next */
    uint32_t    luck;           /* for what the plan chooses on its behalf */

    unsigned    loop, repeat, body;     /* where it stands in the program:
                                           what comes and goes has places
                                           after the body's */
} rnd_op_t;


/* An operation in its place, or one that the plan has put in for the order. */
typedef struct rnd_step {
    rnd_op_t op;
    unsigned number;            /* of the operation in the program */
    bool     is_added;
    uint16_t place;             /* among its thread's steps, from 1 */
    uint16_t after[RND_THREADS];  /* the threads' steps that come before */
    uint16_t clock[RND_THREADS];  /* all that it is known to come after */
    uint32_t look;              /* buffers that the host reads then */
} rnd_step_t;


/* Of a launch. */
typedef struct rnd_grid {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
} rnd_grid_t;


typedef struct rnd_program {
    uint64_t   seed;
    unsigned   first_number;    /* of its operations in the process */
    uint64_t   state;           /* of the generator */
    unsigned   num_threads;
    unsigned   num_loops;
    bool       in_turn[RND_LOOPS];  /* each step waits for the one before */
    bool       leaves_open;     /* ranges, at the end of its threads */
    unsigned   stream_flags[RND_LEGACY];

    rnd_op_t   op[RND_OPS];
    bool       dropped[RND_OPS];
    unsigned   num_ops;

    rnd_step_t step[RND_STEPS];
    unsigned   num_steps;
    unsigned   loop_end[RND_LOOPS + 1];  /* in steps; the last is the end's */
} rnd_program_t;


/* Makes up a program: its operations. `index` is its place in the process. */
void rnd_make(rnd_program_t *program, uint64_t seed, unsigned index);

/* Puts the operations that are not dropped in order: its steps. */
void rnd_plan(rnd_program_t *program);

/* Looks for steps that nothing orders though they use the same: prints the
 * first two, and returns how many there are. */
unsigned rnd_check(const rnd_program_t *program, FILE *file);

/* Prints the steps, or which operations stand where. */
void rnd_list(const rnd_program_t *program, FILE *file);
void rnd_list_places(const rnd_program_t *program, FILE *file);

/* Prints the steps as functions in C, and then the main function that runs
 * those of all seeds. */
void rnd_print_c(const rnd_program_t *program, FILE *file);
void rnd_print_c_main(const uint64_t *seeds, unsigned num_seeds, FILE *file);

/* What the steps run on; made once in the process. */
typedef struct rnd_run rnd_run_t;

rnd_run_t *rnd_open(void);
void rnd_run(rnd_run_t *run, rnd_program_t *program);
void rnd_close(rnd_run_t *run);

/* The name of a range. */
void rnd_range_name(const rnd_program_t *program, uint32_t name, char *text,
                    size_t size);

/* A digit of the number for each part of a shape. */
static inline rnd_grid_t rnd_grid(uint32_t shape)
{
    return (rnd_grid_t){
        .grid         = {1 + shape % 4, 1 + shape / 36 % 2,
                         1 + shape / 72 % 2},
        .block        = {8u << shape / 4 % 3, 1 + shape / 144 % 2, 1},
        .shared_bytes = 64 * (shape / 12 % 3)
    };
}

/* Of relaxed, thread-local, global: the last would have the calls of other
 * threads fail. */
static inline unsigned rnd_capture_mode(const rnd_program_t *program,
                                        const rnd_op_t *op)
{
    return op->luck % (program->num_threads > 1 ? 2 : 3);
}

static inline bool rnd_is_created(unsigned slot)
{
    return slot < RND_LEGACY;
}

#endif
