# SPDX-License-Identifier: Apache-2.0
"""AdamW steps of a small model, in the first half of the run each step in one
NVTX range, in the second forward and backward+step in ranges of their own.
Prints every loss and a hash of all parameters to the last bit: a
run under the shim has to print what a run without it prints. Half of the
launches come from the autograd thread."""

import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import hashlib
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from torch_infer import Layer, WIDTH, to_bytes

STEPS, VOCABULARY, BATCH, LENGTH = 200, 128, 4, 32


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.Sequential(Layer(), Layer())
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens)))


def whole_step(model, optimiser, tokens):
    torch.cuda.nvtx.range_push("train-step")
    optimiser.zero_grad(set_to_none=True)
    logits = model(tokens[:, :-1])
    loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY),
                                    tokens[:, 1:].reshape(-1))
    loss.backward()
    optimiser.step()
    torch.cuda.nvtx.range_pop()
    return loss.item()


def step(model, optimiser, tokens, number):
    nvtx = torch.cuda.nvtx
    optimiser.zero_grad(set_to_none=True)
    nvtx.range_push("train-forward")
    logits = model(tokens[:, :-1])
    loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY),
                                    tokens[:, 1:].reshape(-1))
    nvtx.range_pop()
    nvtx.range_push("train-backward-step")
    loss.backward()
    optimiser.step()
    # a wait in the region in some steps, after it in the others
    value = loss.item() if number % 4 == 3 else None
    nvtx.range_pop()
    return loss.item() if value is None else value


def main():
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.manual_seed(1)
    model = Model().to("cuda")
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = [torch.randint(VOCABULARY, (BATCH, LENGTH)).to("cuda")
               for _ in range(4)]
    with sdpa_kernel(SDPBackend.MATH):
        for i in range(STEPS):
            tokens = batches[i % len(batches)]
            if i < STEPS // 2:
                loss = whole_step(model, optimiser, tokens)
            else:
                loss = step(model, optimiser, tokens, i)
            print(f"step {i} loss {float(loss).hex()}")
    torch.cuda.synchronize()
    data = to_bytes(*[p.detach() for p in model.parameters()])
    print("parameters", hashlib.sha256(data).hexdigest())
    return 0


if __name__ == "__main__":
    sys.exit(main())
