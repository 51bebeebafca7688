/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of the test programs (kernels.cu includes this file).
 *
 * Results have to be bit-equal from run to run: arithmetic is on integers, or
 * on floats in a fixed order without fused multiply-add, and nothing is atomic.
 * Most kernels mix what was there before into what they write, so that a launch
 * dropped, doubled or moved shows in the result.
 */
#include "kernels.h"
#include "kernels_lang.h"


KRN_DEVICE uint32_t krn_mix(uint32_t value)
{
    value ^= value >> 16;
    value *= 0x7feb352du;
    value ^= value >> 15;
    value *= 0x846ca68bu;
    return value ^ (value >> 16);
}

/* A variable of the module, for kernels that reach memory by no argument. */
KRN_GLOBAL(uint32_t, krn_global)

KRN_KERNEL_VOID(k_nothing)
{
}

KRN_KERNEL(k_fill, (uint32_t *, out), (uint32_t, n), (uint32_t, value))
{
    KRN_FOR(i, n) {
        out[i] = value + i;
    }
}

KRN_KERNEL(k_copy, (uint32_t *, out), (const uint32_t *, in), (uint32_t, n))
{
    KRN_FOR(i, n) {
        out[i] = in[i];
    }
}

KRN_KERNEL(k_scale, (uint32_t *, x), (uint32_t, n), (uint32_t, factor))
{
    KRN_FOR(i, n) {
        x[i] = x[i] * factor + 1;
    }
}

KRN_KERNEL(k_axpy, (uint32_t *, y), (const uint32_t *, x), (uint32_t, n),
           (uint32_t, a))
{
    KRN_FOR(i, n) {
        y[i] = y[i] * 3 + a * x[i];
    }
}

KRN_KERNEL(k_add3, (uint32_t *, out), (const uint32_t *, a),
           (const uint32_t *, b), (uint32_t, n))
{
    KRN_FOR(i, n) {
        out[i] = out[i] * 5 + a[i] + 7 * b[i];
    }
}

KRN_KERNEL(k_hash, (uint32_t *, x), (uint32_t, n), (uint32_t, seed))
{
    KRN_FOR(i, n) {
        x[i] = krn_mix(x[i] ^ (seed + i * 0x9e3779b9u));
    }
}

/* As many pointers as a kernel of these has. */
KRN_KERNEL(k_add4, (uint32_t *, out), (const uint32_t *, a),
           (const uint32_t *, b), (const uint32_t *, c), (uint32_t, n))
{
    KRN_FOR(i, n) {
        out[i] = out[i] * 3 + a[i] + 5 * b[i] + 11 * c[i];
    }
}

/* One thread: the order of all launches on one word. */
KRN_KERNEL(k_chain, (uint32_t *, word), (uint32_t, value))
{
    if (KRN_X == 0) {
        *word = *word * 1664525u + value;
    }
}

/* A word that the host polls: when it sees the value, it sees what was written
 * before on the stream as well. */
KRN_KERNEL(k_signal, (uint32_t *, word), (uint32_t, value))
{
    if (KRN_X == 0) {
        KRN_FENCE_SYSTEM();
        *word = value;
    }
}

/* As long as it is told. */
KRN_KERNEL(k_spin, (uint32_t, ns))
{
    if (KRN_X == 0) {
        KRN_SPIN(ns);
    }
}

KRN_KERNEL(k_global, (uint32_t, value))
{
    if (KRN_X == 0) {
        KRN_VARIABLE(krn_global) = KRN_VARIABLE(krn_global) * 3 + value;
    }
}

/* A thread sums every KRN_SIZE_X-th word, in order. */
KRN_KERNEL(k_partial, (uint32_t *, out), (const uint32_t *, in), (uint32_t, n))
{
    uint32_t sum = 0;

    KRN_FOR(i, n) {
        sum = sum * 31 + in[i];
    }
    out[KRN_X] = sum;
}

KRN_KERNEL(k_struct, (uint32_t *, out), (krn_shape_t, shape), (uint32_t, n))
{
    KRN_FOR(i, n) {
        out[i] = out[i] * 3 + shape.width + (uint32_t)shape.offset +
                 (uint32_t)(shape.offset >> 32) +
                 (uint32_t)(int32_t)(shape.factor * 1024.0) +
                 shape.flags[i % 3] * shape.rounds;
    }
}

KRN_KERNEL(k_mixed, (char, a), (uint32_t *, out), (short, b), (double, c),
           (uint32_t, n), (uint8_t, d))
{
    KRN_FOR(i, n) {
        out[i] = out[i] * 3 + (uint32_t)(int32_t)a * 7u +
                 (uint32_t)(int32_t)b * 11u +
                 (uint32_t)(int32_t)(c * 16.0) + d + i;
    }
}

/* Every block turns its part round, through its dynamic shared memory. */
KRN_KERNEL_PHASES(k_turn, 2, (uint32_t *, x), (uint32_t, n))
{
    KRN_SHARED(uint32_t, part);

    KRN_PHASE(0) {
        part[KRN_LOCAL_X] = KRN_X < n ? x[KRN_X] : 0;
    }
    KRN_NEXT_PHASE();
    KRN_PHASE(1) {
        if (KRN_X < n) {
            x[KRN_X] = part[KRN_BLOCK_X - 1 - KRN_LOCAL_X] + KRN_LOCAL_X;
        }
    }
}

/* All of its launch's shape goes into every word. */
KRN_KERNEL(k_grid, (uint32_t *, x), (uint32_t, n))
{
    uint32_t shape = KRN_GRID(x);

    shape = shape * 31 + KRN_GRID(y);
    shape = shape * 31 + KRN_GRID(z);
    shape = shape * 31 + KRN_BLOCK(x);
    shape = shape * 31 + KRN_BLOCK(y);
    shape = shape * 31 + KRN_BLOCK(z);
    shape = shape * 31 + KRN_SHARED_BYTES();
    if (KRN_INDEX(y) != 0 || KRN_INDEX(z) != 0) {
        return;
    }
    KRN_FOR(i, n) {
        x[i] = krn_mix(x[i] + shape);
    }
}

KRN_KERNEL(k_many, (uint32_t *, out), (uint32_t, n), (uint8_t, a),
           (uint64_t, b), (uint16_t, c), (uint32_t, d), (uint8_t, e),
           (uint8_t, f), (uint64_t, g), (uint16_t, h), (uint16_t, i0),
           (uint32_t, j), (uint32_t, k), (uint64_t, l), (uint8_t, m),
           (double, o), (float, p), (uint32_t, q), (const uint32_t *, r),
           (uint8_t, s))
{
    KRN_FOR(i, n) {
        uint32_t x = out[i];

        x = x * 3 + a;
        x = x * 3 + (uint32_t)b + (uint32_t)(b >> 32);
        x = x * 3 + c;
        x = x * 3 + d;
        x = x * 3 + e;
        x = x * 3 + f;
        x = x * 3 + (uint32_t)g + (uint32_t)(g >> 32);
        x = x * 3 + h;
        x = x * 3 + i0;
        x = x * 3 + j;
        x = x * 3 + k;
        x = x * 3 + (uint32_t)l + (uint32_t)(l >> 32);
        x = x * 3 + m;
        x = x * 3 + (uint32_t)(int32_t)(o * 8.0);
        x = x * 3 + (uint32_t)(int32_t)(p * 8.0f);
        x = x * 3 + q;
        x = x * 3 + r[i];
        out[i] = x * 3 + s;
    }
}

KRN_KERNEL(k_table, (uint32_t *, out), (krn_table_t, table), (uint32_t, n))
{
    KRN_FOR(i, n) {
        out[i] = out[i] * 3 + table.word[i % KRN_TABLE_WORDS];
    }
}

/* One explicit step of the heat equation on a tile: five points, and a border
 * of the field that keeps its value. */
KRN_KERNEL(k_stencil, (float *, out), (const float *, in), (uint32_t, width),
           (uint32_t, height), (uint32_t, left), (uint32_t, top),
           (float, rate))
{
    uint32_t x = left + KRN_X;
    uint32_t y = top + KRN_Y;
    uint32_t i = y * width + x;
    float around;

    if (x >= width || y >= height) {
        return;
    }
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        out[i] = in[i];
        return;
    }
    around = (in[i - 1] + in[i + 1]) + (in[i - width] + in[i + width]);
    out[i] = in[i] + rate * (around - 4.0f * in[i]);
}

/* Heat that comes into the square of 2 * radius + 1 points about (x0, y0). */
KRN_KERNEL(k_heat_source, (float *, field), (uint32_t, width),
           (uint32_t, height), (uint32_t, x0), (uint32_t, y0),
           (uint32_t, radius), (float, heat))
{
    uint32_t x = x0 + KRN_X;
    uint32_t y = y0 + KRN_Y;

    if (KRN_X > 2 * radius || KRN_Y > 2 * radius || x < radius || y < radius) {
        return;
    }
    x -= radius;
    y -= radius;
    if (x < width && y < height) {
        field[y * width + x] += heat;
    }
}

/* A row's sum of squared differences, in order of the columns. */
KRN_KERNEL(k_residual, (float *, out), (const float *, a), (const float *, b),
           (uint32_t, width), (uint32_t, height))
{
    KRN_FOR(y, height) {
        float sum = 0.0f;

        for (uint32_t x = 0; x < width; ++x) {
            float d = a[y * width + x] - b[y * width + x];
            sum += d * d;
        }
        out[y] = sum;
    }
}
