# SPDX-License-Identifier: Apache-2.0
"""Triton: a loop of launches by its own launcher, which links to
cuLaunchKernelEx directly, in an NVTX range: the same bits as outside of it."""

import sys

import torch
import triton
import triton.language as tl

import gpu_bench

SIZE, BLOCK = 4096, 256


@triton.jit
def triton_step(source, target, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(source + at, mask=inside)
    old = tl.load(target + at, mask=inside)
    tl.store(target + at, old * 1664525 + (value ^ factor), mask=inside)


class Loop:
    """Two buffers in turn, their roles swapped and the factor another one
    every pass."""

    def make(self):
        start = torch.arange(SIZE, dtype=torch.int32)
        return [start.to("cuda"), (start * 7).to("cuda")]

    def run(self, state, i):
        for k in range(64):
            source, target = state[(i + k) & 1], state[(i + k + 1) & 1]
            # from 32 on: Triton makes other kernels for 1 and multiples of 16
            triton_step[(SIZE // BLOCK,)](source, target, 33 + 2 * (i % 64),
                                          SIZE, BLOCK=BLOCK)

    def result(self, state):
        return b"".join(t.cpu().numpy().tobytes() for t in state)


def main():
    bench = gpu_bench.Bench(gpu_bench.arguments(__doc__),
                            *gpu_bench.ctypes_ranges(),
                            lambda states: torch.cuda.synchronize())
    bench.case("triton-loop", Loop())
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
