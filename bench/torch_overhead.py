"""What our Python costs per step: GPT-2 with everything kept, against AOTAutograd's own eager backend, steps in turn in one process.
Processor time of a step (forward and backward), median and least. Usage: python bench/torch_overhead.py [WIDTH] [STEPS]"""

import copy
import statistics
import sys
import time

import torch
import transformers
from torch_models import HuggingFace

import remat
import remat.torch

width, steps = int(sys.argv[1]) if len(sys.argv) > 1 else 768, int(sys.argv[2]) if len(sys.argv) > 2 else 20
torch.set_num_threads(1)
torch.manual_seed(0)
config = transformers.GPT2Config(n_embd=width, use_cache=False)
model = HuggingFace(transformers.GPT2LMHeadModel(config)).train()
model.model.loss_type = "ForCausalLM"
tokens = torch.randint(0, config.vocab_size, (1, 64))
backends = {
    "aot_eager_default_partitioner": dict(backend="aot_eager_default_partitioner"),
    "remat": dict(backend="remat", options={"budget": "100%"}),
}
models = {name: copy.deepcopy(model) for name in backends}
compiled = {name: torch.compile(models[name], **options) for name, options in backends.items()}
times = {name: [] for name in backends}
for i in range(steps + 3):
    for name in backends:
        models[name].zero_grad(set_to_none=True)
        start = time.process_time()
        compiled[name](input_ids=tokens, labels=tokens).backward()
        if i >= 3:
            times[name].append(time.process_time() - start)
assert remat.torch.last_report()["recomputed_ops"] == 0
base, ours = (times[name] for name in backends)
print(f"GPT-2, width {width}, 12 layers, 64 tokens, {steps} steps, one thread, torch {torch.__version__}")
for name in backends:
    print(f"{name:32} median {1e3 * statistics.median(times[name]):8.2f} ms, least {1e3 * min(times[name]):8.2f} ms")
print(f"ratio of medians {statistics.median(ours) / statistics.median(base):.3f}, of least {min(ours) / min(base):.3f}")
