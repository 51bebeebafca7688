/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demonstration: heat spreads on a square plate, a source wanders over it.
 *
 *     heat [--small] [--size N] [--steps N] [--tile N] [--time] [FILE.pgm]
 *
 * A step is a few hundred small launches, one a tile, between two buffers that
 * change places: far more time goes into launching than into computing. Now and
 * then the program looks how far the plate is from rest. The residuals and a
 * checksum go to stdout, the plate as a picture to FILE, and with --time the
 * seconds that the steps took to stderr.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    HEAT_TILE_BLOCK = 8,      /* threads in a block, in each direction */
    HEAT_RADIUS     = 3,      /* of the source, in points */
    HEAT_LOOKS      = 10      /* residuals in a run */
};


typedef struct heat_options {
    uint32_t   size;          /* points on a side of the plate */
    uint32_t   steps;
    uint32_t   tile;          /* points on a side of a tile */
    int        print_time;
    const char *picture;
} heat_options_t;


typedef struct heat_plate {
    uint32_t    size;
    uint32_t    tile;
    CUstream    stream;
    CUdeviceptr field[2];     /* [0] is the newer one */
    CUdeviceptr rows;         /* each row's part of the residual */
    float       *rows_host;   /* pinned */
    CUfunction  source;
    CUfunction  stencil;
    CUfunction  residual;
} heat_plate_t;


static void heat_plate_create(heat_plate_t *plate, const prg_context_t *prg,
                              const heat_options_t *options)
{
    uint32_t points = options->size * options->size;
    size_t row      = options->size * sizeof(float);

    plate->size     = options->size;
    plate->tile     = options->tile;
    plate->source   = prg_kernel(prg, "k_heat_source");
    plate->stencil  = prg_kernel(prg, "k_stencil");
    plate->residual = prg_kernel(prg, "k_residual");

    PRG_CHECK(cuStreamCreate(&plate->stream, CU_STREAM_DEFAULT));
    PRG_CHECK(cuMemAlloc(&plate->field[0], points * sizeof(float)));
    PRG_CHECK(cuMemAlloc(&plate->field[1], points * sizeof(float)));
    PRG_CHECK(cuMemAlloc(&plate->rows, row));
    PRG_CHECK(cuMemAllocHost((void**)&plate->rows_host, row));
    PRG_CHECK(cuMemsetD32Async(plate->field[0], 0, points, plate->stream));
    PRG_CHECK(cuMemsetD32Async(plate->field[1], 0, points, plate->stream));
}

static void heat_plate_destroy(heat_plate_t *plate)
{
    PRG_CHECK(cuMemFreeHost(plate->rows_host));
    PRG_CHECK(cuMemFree(plate->rows));
    PRG_CHECK(cuMemFree(plate->field[1]));
    PRG_CHECK(cuMemFree(plate->field[0]));
    PRG_CHECK(cuStreamDestroy(plate->stream));
}

/* Where the source is: it goes round a square about the middle of the plate. */
static void heat_source_place(uint32_t size, uint32_t step, uint32_t *x_p,
                              uint32_t *y_p)
{
    uint32_t side = size / 2;
    uint32_t low  = size / 4;
    uint32_t way  = step % side;

    switch ((step / side) % 4) {
    case 0:
        *x_p = low + way;
        *y_p = low;
        break;
    case 1:
        *x_p = low + side;
        *y_p = low + way;
        break;
    case 2:
        *x_p = low + side - way;
        *y_p = low + side;
        break;
    default:
        *x_p = low;
        *y_p = low + side - way;
        break;
    }
}

static void heat_launch_source(heat_plate_t *plate, uint32_t step)
{
    uint32_t radius = HEAT_RADIUS;
    float heat      = 1.0f + 0.125f * (float)(step % 8);
    uint32_t x, y;

    heat_source_place(plate->size, step, &x, &y);
    PRG_CHECK(cuLaunchKernel(plate->source, 1, 1, 1, HEAT_TILE_BLOCK,
                             HEAT_TILE_BLOCK, 1, 0, plate->stream,
                             (void*[]){ &plate->field[0], &plate->size,
                                        &plate->size, &x, &y, &radius, &heat },
                             NULL));
}

static void heat_launch_tile(heat_plate_t *plate, uint32_t left, uint32_t top)
{
    unsigned blocks = (plate->tile + HEAT_TILE_BLOCK - 1) / HEAT_TILE_BLOCK;
    float rate      = 0.2f;

    PRG_CHECK(cuLaunchKernel(plate->stencil, blocks, blocks, 1, HEAT_TILE_BLOCK,
                             HEAT_TILE_BLOCK, 1, 0, plate->stream,
                             (void*[]){ &plate->field[1], &plate->field[0],
                                        &plate->size, &plate->size, &left, &top,
                                        &rate }, NULL));
}

static void heat_step(heat_plate_t *plate, uint32_t step)
{
    CUdeviceptr older;
    uint32_t x, y;

    nvtxRangePushA("step");
    heat_launch_source(plate, step);
    for (y = 0; y < plate->size; y += plate->tile) {
        for (x = 0; x < plate->size; x += plate->tile) {
            heat_launch_tile(plate, x, y);
        }
    }
    nvtxRangePop();

    older           = plate->field[0];
    plate->field[0] = plate->field[1];
    plate->field[1] = older;
}

static double heat_residual(heat_plate_t *plate)
{
    double sum = 0.0;
    uint32_t y;

    nvtxRangePushA("residual");
    PRG_LAUNCH(plate->residual, plate->stream, plate->size, &plate->rows,
               &plate->field[0], &plate->field[1], &plate->size, &plate->size);
    PRG_CHECK(cuMemcpyDtoHAsync(plate->rows_host, plate->rows,
                                plate->size * sizeof(float), plate->stream));
    nvtxRangePop();
    PRG_CHECK(cuStreamSynchronize(plate->stream));

    for (y = 0; y < plate->size; ++y) {
        sum += plate->rows_host[y];
    }
    return sum;
}

static void heat_run(heat_plate_t *plate, const heat_options_t *options)
{
    uint32_t every = options->steps / HEAT_LOOKS;
    struct timespec begin, end;
    uint32_t step;

    PRG_CHECK(cuStreamSynchronize(plate->stream));
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (step = 1; step <= options->steps; ++step) {
        heat_step(plate, step);
        if (every != 0 && step % every == 0) {
            printf("step %u residual %.9e\n", step, heat_residual(plate));
        }
    }
    PRG_CHECK(cuStreamSynchronize(plate->stream));
    clock_gettime(CLOCK_MONOTONIC, &end);

    if (options->print_time) {
        fprintf(stderr, "%.6f seconds for %u steps\n",
                (double)(end.tv_sec - begin.tv_sec) +
                1e-9 * (double)(end.tv_nsec - begin.tv_nsec), options->steps);
    }
}

/* A grey picture, the hottest point white. */
static void heat_write_picture(const char *name, const float *field,
                               uint32_t size)
{
    FILE *file  = fopen(name, "wb");
    size_t n    = (size_t)size * size;
    float hot   = 0.0f;
    size_t i;

    if (file == NULL) {
        perror(name);
        exit(EXIT_FAILURE);
    }
    for (i = 0; i < n; ++i) {
        hot = field[i] > hot ? field[i] : hot;
    }
    fprintf(file, "P5\n%u %u\n255\n", size, size);
    for (i = 0; i < n; ++i) {
        putc(hot > 0.0f ? (int)(255.0f * field[i] / hot) : 0, file);
    }
    if (ferror(file) | fclose(file)) {
        perror(name);
        exit(EXIT_FAILURE);
    }
}

static void heat_show(heat_plate_t *plate, const char *picture)
{
    size_t bytes = (size_t)plate->size * plate->size * sizeof(float);
    float *field = malloc(bytes);

    if (field == NULL) {
        perror("heat");
        exit(EXIT_FAILURE);
    }
    PRG_CHECK(cuMemcpyDtoH(field, plate->field[0], bytes));
    printf("checksum %016llx\n",
           (unsigned long long)prg_hash_host(field, bytes));
    if (picture != NULL) {
        heat_write_picture(picture, field, plate->size);
    }
    free(field);
}

static uint32_t heat_parse_number(const char *name, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    if (*text < '1' || *text > '9' || *end != '\0' || number > 16384) {
        fprintf(stderr, "heat: --%s takes a whole number from 1 to 16384\n",
                name);
        exit(EXIT_FAILURE);
    }
    return (uint32_t)number;
}

static void heat_parse(int argc, char **argv, heat_options_t *options)
{
    static const struct option names[] = {
        { "small", no_argument,       NULL, 'S' },
        { "size",  required_argument, NULL, 's' },
        { "steps", required_argument, NULL, 'n' },
        { "tile",  required_argument, NULL, 't' },
        { "time",  no_argument,       NULL, 'T' },
        { NULL,    0,                 NULL, 0 }
    };
    int c;

    *options = (heat_options_t){ .size = 512, .steps = 400, .tile = 32 };
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (c) {
        case 'S':
            options->size  = 32;
            options->steps = 60;
            options->tile  = 8;
            break;
        case 's':
            options->size = heat_parse_number("size", optarg);
            break;
        case 'n':
            options->steps = heat_parse_number("steps", optarg);
            break;
        case 't':
            options->tile = heat_parse_number("tile", optarg);
            break;
        case 'T':
            options->print_time = 1;
            break;
        default:
            exit(EXIT_FAILURE);
        }
    }
    if (options->size < 4) {
        fprintf(stderr, "heat: --size takes 4 points at least\n");
        exit(EXIT_FAILURE);
    }
    options->picture = argv[optind];
}

int main(int argc, char **argv)
{
    heat_options_t options;
    heat_plate_t plate;
    prg_context_t prg;

    heat_parse(argc, argv, &options);
    prg_open(&prg);
    heat_plate_create(&plate, &prg, &options);
    heat_run(&plate, &options);
    heat_show(&plate, options.picture);
    heat_plate_destroy(&plate);
    prg_close(&prg);
    return EXIT_SUCCESS;
}
