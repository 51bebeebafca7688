# SPDX-License-Identifier: Apache-2.0
"""Decoding by a small transformer in the manner of GPT-2, a token in each NVTX
range: the same bits as outside of them. The cache of keys and values is one
longer with each token, so that pointers, grids and at times kernels are others
in each range. The weights are random; no token is read by the host."""

import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import math
import sys

import torch
from torch import nn
from torch.nn import functional

import gpu_bench
from torch_infer import to_bytes

WIDTH, HEADS, LAYERS, VOCABULARY = 256, 4, 4, 512
PROMPT, LENGTH = 16, 128  # tokens at the start of a text, and at its end


class CatCache:
    """Keys and values in tensors that are made anew for each token."""

    def __init__(self, start):
        self.key, self.value = (t.clone() for t in start)

    def append(self, key, value, _length):
        self.key = torch.cat((self.key, key), dim=2)
        self.value = torch.cat((self.value, value), dim=2)
        return self.key, self.value


class InPlaceCache:
    """Keys and values in two tensors long enough, of which ever more is
    used."""

    def __init__(self, start):
        shape = (1, HEADS, LENGTH, WIDTH // HEADS)
        self.key, self.value = (torch.zeros(shape, device="cuda")
                                for _ in range(2))
        self.key[:, :, :PROMPT] = start[0]
        self.value[:, :, :PROMPT] = start[1]

    def append(self, key, value, length):
        self.key[:, :, length:length + 1] = key
        self.value[:, :, length:length + 1] = value
        return (self.key[:, :, :length + 1], self.value[:, :, :length + 1])


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, cache, length):
        q, k, v = self.qkv(self.norm1(x)).view(
            1, 1, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        key, value = cache.append(k, v, length)
        weights = (q @ key.transpose(2, 3)) / math.sqrt(WIDTH // HEADS)
        y = torch.softmax(weights, dim=-1) @ value
        x = x + self.out(y.transpose(1, 2).reshape(1, 1, WIDTH))
        return x + self.down(functional.gelu(self.up(self.norm2(x)),
                                             approximate="tanh"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, token, caches, length):
        x = self.token(token) + self.place.weight[length]
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache, length)
        return self.head(self.norm(x))


class Decode:
    """A token a pass; the text begins anew when it is full."""

    def __init__(self, cache):
        self.cache = cache
        torch.manual_seed(1)
        self.model = Model().to("cuda").eval()
        shape = (1, HEADS, PROMPT, WIDTH // HEADS)
        self.starts = [[torch.randn(shape).to("cuda") for _ in range(2)]
                       for _ in range(LAYERS)]

    def make(self):
        return {"token": torch.zeros((1, 1), dtype=torch.long, device="cuda"),
                "logits": torch.zeros(1, device="cuda"), "caches": None}

    def before(self, state, i):
        """Not in the range: what comes once a text is no step of it."""
        if i % (LENGTH - PROMPT) == 0:
            state["caches"] = [self.cache(start) for start in self.starts]
            state["token"] = state["token"] * 0 + i // (LENGTH - PROMPT)

    def run(self, state, i):
        length = PROMPT + i % (LENGTH - PROMPT)
        state["logits"] = self.model(state["token"], state["caches"], length)
        state["token"] = state["logits"][0].argmax(dim=-1, keepdim=True)

    def result(self, state):
        return to_bytes(state["token"], state["logits"],
                        *[t for c in state["caches"] for t in (c.key, c.value)])


def main():
    bench = gpu_bench.Bench(gpu_bench.arguments(__doc__),
                            torch.cuda.nvtx.range_push,
                            torch.cuda.nvtx.range_pop,
                            lambda states: torch.cuda.synchronize())
    with torch.inference_mode():
        for name, cache in (("cat", CatCache), ("inplace", InPlaceCache)):
            bench.case(f"torch-decode-{name}", Decode(cache),
                       passes=(LENGTH - PROMPT) // 4,
                       settle=LENGTH - PROMPT)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
