"""A 7B Llama, traced with fake tensors and planned at half its memory: seconds and peak resident memory of the whole process.
Usage: python bench/torch_llama7b.py [--transformers]"""

import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

import remat
import remat.torch


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, RMSNorm(width), RMSNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up, self.down = (
            nn.Linear(width, hidden, bias=False),
            nn.Linear(width, hidden, bias=False),
            nn.Linear(hidden, width, bias=False),
        )

    def forward(self, x, cos, sin):
        batch, length, width = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(batch, length, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))

        def turn(t):
            a, b = t.chunk(2, -1)
            return t * cos + torch.cat([-b, a], -1) * sin

        y = F.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers=32, width=4096, heads=32, hidden=11008, vocabulary=32000):
        super().__init__()
        self.embed, self.norm, self.head = (
            nn.Embedding(vocabulary, width),
            RMSNorm(width),
            nn.Linear(width, vocabulary, bias=False),
        )
        self.blocks = nn.ModuleList(Block(width, heads, hidden) for _ in range(layers))
        self.turn = width // heads

    def forward(self, tokens):
        x = self.embed(tokens)
        rates = 1.0 / 10000 ** (torch.arange(0, self.turn, 2, device=tokens.device) / self.turn)
        angles = torch.outer(torch.arange(tokens.shape[1], device=tokens.device), rates).repeat(1, 2)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        return F.cross_entropy(self.head(self.norm(x))[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten())


def main():
    start = time.perf_counter()
    with torch.device("meta"):
        if "--transformers" in sys.argv:
            import transformers

            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(use_cache=False)).to(torch.bfloat16)
            inputs = {
                "input_ids": torch.zeros(4, 2048, dtype=torch.long),
                "labels": torch.zeros(4, 2048, dtype=torch.long),
            }
        else:
            model, inputs = Llama().to(torch.bfloat16), {"tokens": torch.zeros(4, 2048, dtype=torch.long)}
    built = time.perf_counter()
    graph = remat.torch.trace(model, name="llama7b", batch_dim=None, **inputs)
    traced = time.perf_counter()
    plan = graph.prepare("roofline:h100").plan("50%")
    planned = time.perf_counter()
    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"{parameters / 1e9:.2f} billion parameters, {graph.n_ops} ops: built in {built - start:.1f} s, traced in {traced - built:.1f} s, planned in "
        f"{planned - traced:.1f} s, {planned - start:.1f} s in all ({time.process_time():.1f} s of processor time, imports included); peak RSS {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB"
    )
    print(
        f"keep-all {remat.size_text(plan.keep_all_peak_bytes)}, budget {remat.size_text(plan.budget_bytes)}, peak {remat.size_text(plan.peak_bytes)}, "
        f"overhead {100 * plan.overhead:.2f} %, gap {100 * (plan.gap or 0):.2f} %"
    )


if __name__ == "__main__":
    main()
