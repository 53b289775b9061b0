"""Trace a model that need not fit anywhere, save the step, and plan it at several budgets: no memory, no GPU.
Usage: python examples/trace_offline.py [FILE.json.gz]"""

import sys

import torch
from torch import nn

import remat
import remat.torch

path = sys.argv[1] if len(sys.argv) > 1 else "encoder.json.gz"
with torch.device("meta"):  # 12 layers of width 8192: ten billion parameters, none of them in memory
    model = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8192, 64, 32768, batch_first=True, device="meta"), 12, enable_nested_tensor=False
    )
    x = torch.empty(4, 1024, 8192)
graph = remat.torch.trace(model, x, loss=lambda y: y.float().square().mean(), name="encoder")
graph.save(path)
print(
    f"{sum(p.numel() for p in model.parameters()) / 1e9:.1f} billion parameters, {graph.n_ops} ops, written to {path}"
)
for plan in graph.prepare("roofline:h100").curve(["90%", "80%", "min"]):
    print(
        f"{remat.size_text(plan.budget_bytes):>10}: peak {remat.size_text(plan.peak_bytes)}, {100 * plan.overhead:.2f} % more time, at most {100 * (plan.gap or 0):.2f} % from the best"
    )
print(f"the same from a shell: remat plan {path} --budget 80%")
