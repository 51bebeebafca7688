# SPDX-License-Identifier: Apache-2.0
"""PyTorch inference of a few transformer layers and elementwise loops with
out=, in NVTX ranges: the same bits as outside of them."""

import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import sys

import torch
from torch import nn
from torch.nn import functional

import gpu_bench

WIDTH, HEADS, LAYERS, BATCH, LENGTH = 256, 4, 4, 4, 64


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(
            batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


def to_bytes(*tensors):
    return b"".join(t.contiguous().view(torch.uint8).cpu().numpy().tobytes()
                    for t in tensors)


class Transformer:
    """Another input every pass: an output of an earlier pass would show."""

    def __init__(self, dtype):
        torch.manual_seed(1)
        self.model = nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.model = self.model.to("cuda", dtype).eval()
        self.inputs = [torch.randn(BATCH, LENGTH, WIDTH).to("cuda", dtype)
                       for _ in range(3)]

    def make(self):
        return {"y": None}

    def run(self, state, i):
        state["y"] = self.model(self.inputs[i % len(self.inputs)])

    def result(self, state):
        return to_bytes(state["y"])


class InPlace:
    """100 times into the same tensor: the same launch every time."""

    def make(self):
        torch.manual_seed(2)
        return torch.randn(4096).to("cuda")

    def run(self, state, i):
        for _ in range(50):
            torch.mul(state, 1.0009765625, out=state)
            torch.mul(state, 0.9990234375, out=state)

    def result(self, state):
        return to_bytes(state)


class PingPong:
    """Two tensors in turn, their roles swapped every pass, and a factor that
    changes from pass to pass."""

    def make(self):
        torch.manual_seed(3)
        return [torch.randn(4096).to("cuda"), torch.zeros(4096).to("cuda")]

    def run(self, state, i):
        factor = 1.0 + ((i % 7) - 3) / 1024.0
        for k in range(100):
            source, target = state[(i + k) & 1], state[(i + k + 1) & 1]
            torch.mul(source, factor, out=target)

    def result(self, state):
        return to_bytes(*state)


class Mixed:
    """Elementwise work whose temporaries come from the caching allocator; a
    chaotic map, so that one wrong bit spreads and no pass repeats another."""

    def make(self):
        torch.manual_seed(4)
        return {"x": torch.rand(64, 64).to("cuda")}

    def run(self, state, i):
        x = state["x"]
        for _ in range(20):
            x = 1.0 - 1.9 * (x * x)
        state["x"] = x

    def result(self, state):
        return to_bytes(state["x"])


def main():
    args = gpu_bench.arguments(__doc__)
    bench = gpu_bench.Bench(args, torch.cuda.nvtx.range_push,
                            torch.cuda.nvtx.range_pop,
                            lambda states: torch.cuda.synchronize())
    with torch.inference_mode():
        bench.case("torch-mul-inplace", InPlace())
        bench.case("torch-mul-pingpong", PingPong())
        bench.case("torch-elementwise", Mixed())
        for name, dtype in (("fp32", torch.float32), ("fp16", torch.float16),
                            ("bf16", torch.bfloat16)):
            bench.case(f"torch-transformer-{name}", Transformer(dtype))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
