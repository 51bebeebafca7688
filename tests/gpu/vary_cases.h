/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cases of vary.cu: what each iteration of each case launches. A plan is a
 * function of the iteration and of the launch in it alone, so that the plain
 * way and the shim's way make the same calls.
 */
#ifndef VARY_CASES_H
#define VARY_CASES_H

#include "gpu_util.h"

#define VARY_BLOCKS    8  /* of a launch whose grid is not what varies */
#define VARY_BUFFERS   4
#define VARY_FUNCTIONS 4
#define VARY_EXTRA     8  /* launches that an insertion adds */

/* One launch of an iteration. */
typedef struct vary_step {
    int      function;
    unsigned grid;
    int      in, out; /* buffers, never the same */
    uint32_t scalar;
} vary_step_t;

/* What a case's graph written by hand is. */
typedef enum {
    VARY_HAND_NONE,
    VARY_HAND_SAME, /* the same work, so its memory is compared too */
    VARY_HAND_FIXED /* iteration 0 every time: how fast nothing varies */
} vary_hand_t;

/* Changes the step of a constant chain to what launch i of iteration n is. */
typedef void (*vary_plan_t)(uint32_t n, int i, vary_step_t *step);

/* How many launches iteration n has, of which `length` are the usual. */
typedef int (*vary_count_t)(uint32_t n, int length);

typedef struct vary_kind {
    const char   *name;
    int          length;    /* launches of an iteration */
    bool         sync;      /* the stream is waited for in each iteration */
    vary_hand_t  hand;
    vary_plan_t  plan;      /* NULL: a constant chain */
    vary_count_t count;     /* NULL: always `length` */
    int          period;    /* iterations after which it is the same again */
    double       host_us;   /* that the host is busy after each launch */
    double       kernel_us; /* that each kernel spins */
    int          bytes;     /* of a struct argument; 0: a few small arguments */
} vary_kind_t;

/* A number that looks random and is the same for the same n and i. */
static inline uint32_t vary_random(uint32_t n, int i)
{
    uint32_t x = n * 0x9e3779b9u + (uint32_t)i * 0x85ebca6bu + 1;

    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

static void vary_plan_swap(uint32_t n, int, vary_step_t *step)
{
    step->in  ^= n & 1;
    step->out ^= n & 1;
}

static void vary_plan_scalar(uint32_t n, int i, vary_step_t *step)
{
    step->scalar = n * 2654435761u + i;
}

static void vary_plan_shapes_2(uint32_t n, int, vary_step_t *step)
{
    step->grid = VARY_BLOCKS + n % 2;
}

static void vary_plan_shapes_3(uint32_t n, int, vary_step_t *step)
{
    step->grid = VARY_BLOCKS + n % 3;
}

/* Such as the kernels that go over a cache which is one longer each time. */
static void vary_plan_shapes_few(uint32_t n, int i, vary_step_t *step)
{
    step->grid = VARY_BLOCKS + ((i % 12 == 5) ? n : 0);
}

static void vary_plan_growing(uint32_t n, int, vary_step_t *step)
{
    step->grid = VARY_BLOCKS + n;
}

static int vary_count_insertion(uint32_t n, int length)
{
    return length + ((n % 10 == 9) ? VARY_EXTRA : 0);
}

static void vary_plan_insertion(uint32_t n, int i, vary_step_t *step)
{
    if ((n % 10 == 9) && (i >= 32) && (i < 32 + VARY_EXTRA)) {
        step->function = 1;
        step->scalar   = i;
    }
}

static int vary_count_skip(uint32_t n, int length)
{
    return (n % 7 == 6) ? length * 3 / 4 : length;
}

static void vary_plan_different(uint32_t n, int i, vary_step_t *step)
{
    uint32_t x = vary_random(n, i);

    step->function = x % VARY_FUNCTIONS;
    step->grid     = 1 + (x >> 4) % 32;
    step->in       = (x >> 12) % VARY_BUFFERS;
    step->out      = (step->in + 1 + (x >> 16) % (VARY_BUFFERS - 1)) %
                     VARY_BUFFERS;
    step->scalar   = x;
}

#define VARY_SIMPLE(_name, _length, _sync, _hand, _plan, _period) \
    { _name, _length, _sync, _hand, _plan, NULL, _period, 0, 0, 0 }
/* the host's and the kernel's time, with and without a sync */
#define VARY_HOST(_name, _host_us, _kernel_us) \
    { "host-" _name, 64, false, VARY_HAND_NONE, NULL, NULL, 1, _host_us, \
      _kernel_us, 0 }, \
    { "host-" _name "-sync", 64, true, VARY_HAND_NONE, NULL, NULL, 1, \
      _host_us, _kernel_us, 0 }
#define VARY_SHORT(_name, _length) \
    VARY_SIMPLE("short-" _name, _length, false, VARY_HAND_SAME, NULL, 1), \
    VARY_SIMPLE("short-" _name "-sync", _length, true, VARY_HAND_SAME, NULL, 1)

#define VARY_RECORDED "recorded"

static const vary_kind_t vary_kinds[] = {
    VARY_SIMPLE("constant", 64, false, VARY_HAND_SAME, NULL, 1),
    VARY_SIMPLE("swap", 64, false, VARY_HAND_FIXED, vary_plan_swap, 2),
    VARY_SIMPLE("scalar", 64, false, VARY_HAND_FIXED, vary_plan_scalar, 1),
    VARY_SIMPLE("shapes-2", 64, false, VARY_HAND_NONE, vary_plan_shapes_2, 2),
    VARY_SIMPLE("shapes-3", 64, false, VARY_HAND_NONE, vary_plan_shapes_3, 3),
    VARY_SIMPLE("shapes-few", 64, false, VARY_HAND_NONE, vary_plan_shapes_few,
                1),
    VARY_SIMPLE("growing", 64, false, VARY_HAND_NONE, vary_plan_growing, 1),
    { "insertion", 64, false, VARY_HAND_NONE, vary_plan_insertion,
      vary_count_insertion, 10, 0, 0, 0 },
    { "skip", 64, false, VARY_HAND_NONE, NULL, vary_count_skip, 7, 0, 0, 0 },
    VARY_SIMPLE("sync-16", 16, true, VARY_HAND_SAME, NULL, 1),
    VARY_SIMPLE("sync-64", 64, true, VARY_HAND_SAME, NULL, 1),
    VARY_SIMPLE("sync-256", 256, true, VARY_HAND_SAME, NULL, 1),
    VARY_SIMPLE("sync-1024", 1024, true, VARY_HAND_SAME, NULL, 1),
    VARY_HOST("5-short", 5, 2),
    VARY_HOST("5-long", 5, 5),
    VARY_HOST("20-short", 20, 2),
    VARY_HOST("20-long", 20, 20),
    VARY_HOST("100-short", 100, 2),
    VARY_HOST("100-long", 100, 100),
    { "long-kernels", 64, true, VARY_HAND_SAME, NULL, NULL, 1, 0, 50, 0 },
    VARY_SIMPLE("different", 64, false, VARY_HAND_NONE, vary_plan_different,
                1),
    /* each iteration is a region of its own, and so recorded */
    VARY_SIMPLE(VARY_RECORDED, 64, false, VARY_HAND_NONE, NULL, 1),
    VARY_SHORT("1", 1),
    VARY_SHORT("2", 2),
    VARY_SHORT("3", 3),
    VARY_SHORT("4", 4),
    { "args-1k", 64, false, VARY_HAND_FIXED, vary_plan_scalar, NULL, 1, 0, 0,
      1024 },
    { "args-4k", 64, false, VARY_HAND_FIXED, vary_plan_scalar, NULL, 1, 0, 0,
      4096 },
};

#define VARY_NUM_KINDS ((int)(sizeof(vary_kinds) / sizeof(vary_kinds[0])))

#endif
