# SPDX-License-Identifier: Apache-2.0
"""JAX: a jitted step in an NVTX range, XLA's own command buffers off: the same
bits as outside of it. Autotuning is off, so that two processes choose the same
kernels."""

import os

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_gpu_enable_command_buffer="
    " --xla_gpu_autotune_level=0").strip()
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import sys

import jax
import jax.numpy as jnp
import numpy

import gpu_bench


@jax.jit
def step(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w) + 0.5 * x
        x = x - x.mean(axis=1, keepdims=True)
    return x, jnp.sort(x[0]), jnp.cumsum(x[:, 0])


class Step:
    """Every output is the next pass' input, so each pointer alternates."""

    def __init__(self):
        random = numpy.random.default_rng(1)
        self.weights = [jnp.asarray(random.standard_normal((128, 128)) * 0.25,
                                    dtype=jnp.float32) for _ in range(8)]
        self.start = random.standard_normal((32, 128))

    def make(self):
        return {"out": (jnp.asarray(self.start, dtype=jnp.float32),)}

    def run(self, state, i):
        x = state["out"][0]
        for _ in range(4):
            out = step(self.weights, x)
            x = out[0]
        state["out"] = out

    def result(self, state):
        return b"".join(numpy.asarray(a).tobytes() for a in state["out"])


def main():
    if jax.default_backend() != "gpu":
        sys.exit("JAX sees no GPU")
    push, pop = gpu_bench.ctypes_ranges()
    bench = gpu_bench.Bench(
        gpu_bench.arguments(__doc__), push, pop,
        lambda states: jax.block_until_ready([s["out"] for s in states]))
    bench.case("jax-step", Step())
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
