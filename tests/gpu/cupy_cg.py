# SPDX-License-Identifier: Apache-2.0
"""CuPy: conjugate gradients on a 2-D Laplacian and an elementwise loop, in
NVTX ranges: the same bits as outside of them."""

import sys

import cupy
import numpy

import gpu_bench

SIZE, ITERATIONS = 64, 10


def ranges():
    try:
        from cupy.cuda import nvtx
        nvtx.RangePush("cupy-probe")
        nvtx.RangePop()
        return nvtx.RangePush, nvtx.RangePop
    except Exception:  # built without NVTX
        return gpu_bench.ctypes_ranges()


def laplacian(x):
    y = 4 * x
    y[1:, :] -= x[:-1, :]
    y[:-1, :] -= x[1:, :]
    y[:, 1:] -= x[:, :-1]
    y[:, :-1] -= x[:, 1:]
    return y


class ConjugateGradients:
    """Some iterations a pass, another right-hand side every pass."""

    def make(self):
        random = numpy.random.default_rng(1)
        sides = [cupy.asarray(random.standard_normal((SIZE, SIZE)))
                 for _ in range(3)]
        return {"sides": sides, "x": cupy.zeros((SIZE, SIZE)), "rr": None}

    def run(self, state, i):
        x = state["x"] * 0.5
        r = state["sides"][i % 3] - laplacian(x)
        p, rr = r.copy(), (r * r).sum()
        for _ in range(ITERATIONS):
            q = laplacian(p)
            alpha = rr / (p * q).sum()
            x += alpha * p
            r -= alpha * q
            before, rr = rr, (r * r).sum()
            p = r + (rr / before) * p
        state["x"], state["rr"] = x, rr

    def result(self, state):
        return (cupy.asnumpy(state["x"]).tobytes() +
                cupy.asnumpy(state["rr"]).tobytes())


class Elementwise:
    """A chaotic map: one wrong bit spreads, and no pass repeats another."""

    def make(self):
        return {"x": cupy.linspace(-1, 1, 4096, dtype=cupy.float32),
                "y": cupy.zeros(4096, dtype=cupy.float32)}

    def run(self, state, i):
        x, y = state["x"], state["y"]
        for k in range(33):
            cupy.multiply(x, x, out=y)
            cupy.multiply(y, numpy.float32(1.75 + (i + k) % 5 / 32), out=y)
            cupy.subtract(numpy.float32(1), y, out=x)

    def result(self, state):
        return (cupy.asnumpy(state["x"]).tobytes() +
                cupy.asnumpy(state["y"]).tobytes())


def main():
    push, pop = ranges()
    stream = cupy.cuda.get_current_stream()
    bench = gpu_bench.Bench(gpu_bench.arguments(__doc__), push, pop,
                            lambda states: stream.synchronize())
    bench.case("cupy-elementwise", Elementwise())
    bench.case("cupy-cg", ConjugateGradients())
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
