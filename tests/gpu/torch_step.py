# SPDX-License-Identifier: Apache-2.0
"""PyTorch training steps and a loop that is waited for, in NVTX ranges: the
same bits as outside of them. The plain way and the shim's train a model of
their own from the same start."""

import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import sys

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import gpu_bench
from torch_infer import to_bytes
from torch_train import BATCH, LENGTH, VOCABULARY, Model


class Step:
    """A step of training; half of its launches come from the autograd
    thread. The losses are kept on the device, or asked for in each step."""

    def __init__(self, optimiser, item):
        self.optimiser, self.item = optimiser, item

    def make(self):
        torch.manual_seed(1)
        model = Model().to("cuda")
        batches = [torch.randint(VOCABULARY, (BATCH, LENGTH)).to("cuda")
                   for _ in range(4)]
        return {"model": model, "batches": batches, "losses": [],
                "optimiser": self.optimiser(model.parameters())}

    def run(self, state, i):
        tokens = state["batches"][i % len(state["batches"])]
        state["optimiser"].zero_grad(set_to_none=True)
        logits = state["model"](tokens[:, :-1])
        loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY),
                                        tokens[:, 1:].reshape(-1))
        loss.backward()
        state["optimiser"].step()
        loss = loss.detach()
        state["losses"] = state["losses"][-3:] + [
            loss.item() if self.item else loss]

    def result(self, state):
        losses = " ".join(float(loss).hex() for loss in state["losses"])
        return losses.encode() + to_bytes(
            *[p.detach() for p in state["model"].parameters()])


class InPlaceSync:
    """100 times into the same tensor, and then a wait for it."""

    def make(self):
        torch.manual_seed(2)
        return torch.randn(4096).to("cuda")

    def run(self, state, i):
        for _ in range(50):
            torch.mul(state, 1.0009765625, out=state)
            torch.mul(state, 0.9990234375, out=state)
        torch.cuda.synchronize()

    def result(self, state):
        return to_bytes(state)


def main():
    torch.use_deterministic_algorithms(True, warn_only=True)
    # nothing reads what was not written, and programs do not fill it
    torch.utils.deterministic.fill_uninitialized_memory = False
    bench = gpu_bench.Bench(gpu_bench.arguments(__doc__),
                            torch.cuda.nvtx.range_push,
                            torch.cuda.nvtx.range_pop,
                            lambda states: torch.cuda.synchronize())
    bench.case("torch-mul-sync", InPlaceSync())
    with sdpa_kernel(SDPBackend.MATH):
        bench.case("torch-adamw", Step(
            lambda parameters: torch.optim.AdamW(parameters, lr=1e-3), False))
        bench.case("torch-adamw-single", Step(
            lambda parameters: torch.optim.AdamW(parameters, lr=1e-3,
                                                 foreach=False), False))
        bench.case("torch-sgd-item", Step(
            lambda parameters: torch.optim.SGD(parameters, lr=1e-2), True))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
