"""A GPT from scratch that trains within a memory budget: the only change is the backend and its budget.
Usage: python examples/train_gpt.py [BUDGET] [STEPS]      (default: 50% of what keep-all needs, 20 steps)"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

import remat
import remat.torch


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary=256, width=64, heads=4, layers=6, length=128):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def main():
    budget, steps = sys.argv[1] if len(sys.argv) > 1 else "50%", int(sys.argv[2]) if len(sys.argv) > 2 else 20
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # it learns its own source
    text = torch.frombuffer(bytearray(open(__file__, "rb").read()), dtype=torch.uint8).long().to(device)
    model = GPT().to(device)
    compiled = torch.compile(model, backend="remat", options={"budget": budget})
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for step in range(steps):
        starts = torch.randint(0, len(text) - 128, (8,))
        loss = compiled(torch.stack([text[i : i + 128] for i in starts]))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 0:
            report = remat.torch.last_report()
            print(
                f"budget {remat.size_text(report['budget_bytes'])}, peak {remat.size_text(report['peak_bytes'])} of {remat.size_text(report['keep_all_peak_bytes'])}, "
                f"{report['recomputed_ops']} ops run again, {100 * report['overhead']:.1f} % more (modelled) time"
            )
        if step % 5 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
