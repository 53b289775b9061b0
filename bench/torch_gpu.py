"""On a GPU, eager kernels: predicted peak against torch.cuda.max_memory_allocated, gradients bit by bit, step time beside plain eager and eager with
gradient checkpointing (torch.utils.checkpoint around every block, or the model's own switch), at several budgets and at the peak of gradient checkpointing.
GPT-2 b16 t1024 (bf16 autocast), ResNet-50 b256, U-Net b32 256x256, ViT-B/16 b128 (timm), BERT b32 t512 and GPT-2 of transformers (bf16 autocast; two graphs
where Dynamo breaks it).
Usage: PYTHONPATH=python python bench/torch_gpu.py [gpt2|resnet50|unet|vit|bert|hf-gpt2 ...] [--small] [--costs measure|roofline] [--out FILE.md] [--seconds S]"""

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # wanted by deterministic algorithms
import torch
import torch.nn.functional as F
from torch import nn

from resnet import ResNet50Layers
from torch.utils.checkpoint import checkpoint

import remat
import remat.torch

PER_BLOCK = False  # checkpoint every block, for the comparison


def through(block, x):
    return checkpoint(block, x, use_reentrant=False) if PER_BLOCK and torch.is_grad_enabled() else block(x)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out, self.drop = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Dropout(0.1)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(y.transpose(1, 2).reshape(batch, length, width)))
        return x + self.mlp(self.norm2(x))


class GPT2(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, vocabulary=50257, length=1024):
        super().__init__()
        self.tokens, self.places, self.drop = (
            nn.Embedding(vocabulary, width),
            nn.Embedding(length, width),
            nn.Dropout(0.1),
        )
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        with torch.autocast(tokens.device.type, dtype=torch.bfloat16):
            x = self.drop(self.tokens(tokens) + self.places.weight[: tokens.shape[1]])
            for block in self.blocks:
                x = through(block, x)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


class ResNet50(ResNet50Layers):
    def forward(self, x, labels):
        x = self.stem(x)
        for block in self.blocks:
            x = through(block, x)
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


def gpt2(device, small):
    model = GPT2(layers=2, width=64, heads=2, vocabulary=500, length=64) if small else GPT2()
    return model.to(device), (
        torch.randint(0, 500 if small else 50257, (2, 64) if small else (16, 1024), device=device),
    )


def resnet50(device, small):
    batch, size = (4, 32) if small else (256, 224)
    model = ResNet50((1, 1, 1, 1) if small else (3, 4, 6, 3)).to(device)
    return model, (torch.randn(batch, 3, size, size, device=device), torch.randint(0, 1000, (batch,), device=device))


class UNet(nn.Module):
    def __init__(self, width=64, depth=4, classes=2):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(double(a, b) for a, b in zip([3, *widths[:-1]], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * b, b, 2, 2) for b in reversed(widths[:-1]))
        self.join = nn.ModuleList(double(2 * b, b) for b in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x, labels):
        kept = []
        for i, block in enumerate(self.down):
            x = through(block, F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = through(join, torch.cat([up(x), kept.pop()], 1))
        # the loss of images has no deterministic kernel
        return F.cross_entropy(self.head(x).permute(0, 2, 3, 1).flatten(0, 2), labels.flatten())


def double(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, 1, 1, bias=False),
        nn.BatchNorm2d(b),
        nn.ReLU(),
        nn.Conv2d(b, b, 3, 1, 1, bias=False),
        nn.BatchNorm2d(b),
        nn.ReLU(),
    )


def unet(device, small):
    batch, size = (2, 32) if small else (32, 256)
    model = UNet(8 if small else 64).to(device)
    return model, (
        torch.randn(batch, 3, size, size, device=device),
        torch.randint(0, 2, (batch, size, size), device=device),
    )


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            return F.cross_entropy(self.model(x), labels)


def vit(device, small):
    import timm

    model = timm.create_model("vit_tiny_patch16_224" if small else "vit_base_patch16_224", num_classes=1000)
    model.set_grad_checkpointing(PER_BLOCK)
    batch = 2 if small else 128
    return WithLoss(model).to(device), (
        torch.randn(batch, 3, 224, 224, device=device),
        torch.randint(0, 1000, (batch,), device=device),
    )


class Transformers(nn.Module):
    """A model of transformers in its own forward, so that Dynamo breaks the graph where it does for everybody."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        if PER_BLOCK:
            model.gradient_checkpointing_enable({"use_reentrant": False})

    def forward(self, tokens):
        with torch.autocast(tokens.device.type, dtype=torch.bfloat16):
            return self.model(input_ids=tokens, labels=tokens).loss


def without_masks(model):
    """Attention without padding needs no mask. In eager code transformers finds that out by itself; while torch.compile traces (torch before 2.14) it makes a mask of
    zeros and ones, with which torch cannot use flash attention. So no mask is made in either."""
    import transformers
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    transformers.AttentionInterface.register("sdpa_unmasked", sdpa_attention_forward)
    transformers.AttentionMaskInterface.register("sdpa_unmasked", lambda *_args, **_more: None)
    model.set_attn_implementation("sdpa_unmasked")
    return model


def transformers_model(kind, device, small, batch, length, **config):
    import transformers

    sizes = (
        {
            "GPT2": dict(n_layer=2, n_embd=64, n_head=2),
            "Bert": dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=2, intermediate_size=128),
        }[kind]
        if small
        else {}
    )
    made = getattr(transformers, f"{kind}Config")(**sizes, **config)
    made.use_cache = False
    model = getattr(transformers, {"GPT2": "GPT2LMHeadModel", "Bert": "BertForMaskedLM"}[kind])(made).train()
    model = without_masks(model) if hasattr(transformers, "AttentionMaskInterface") else model
    batch, length = (2, 32) if small else (batch, length)
    return Transformers(model).to(device), (torch.randint(0, 30000, (batch, length), device=device),)


def bert(device, small):
    return transformers_model("Bert", device, small, 32, 512)


def hf_gpt2(device, small):
    return transformers_model("GPT2", device, small, 16, 1024)


MODELS = {"gpt2": gpt2, "resnet50": resnet50, "unet": unet, "vit": vit, "bert": bert, "hf-gpt2": hf_gpt2}


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def run(device, make, small, compile, repeat, per_block=False):
    """Gradients and buffers of one step from fixed seeds, milliseconds of a step, and the peak of a step in bytes (CUDA)."""
    global PER_BLOCK
    PER_BLOCK = per_block
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, args = make(device, small)
    step = compile(model)
    torch.manual_seed(1)
    step(*args).backward()
    found = {f"gradient of {n}": p.grad.clone().cpu() for n, p in model.named_parameters()} | {
        f"buffer {n}": b.clone().cpu() for n, b in model.named_buffers()
    }
    times, peak = [], 0
    for i in range(-2, repeat):  # the second step may be planned again
        model.zero_grad(set_to_none=True)
        synchronize(device)
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        loss = step(*args)
        loss.backward()
        synchronize(device)
        if i >= 0:
            times.append(1e3 * (time.perf_counter() - start))
        if device == "cuda" and i >= 0:
            peak = max(peak, torch.cuda.max_memory_allocated())
        del loss
    del model, step, args
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    return found, statistics.median(times), peak


def same(a, b):
    return [key for key in a if not remat.torch.checking.same_bits(a[key], b.get(key))]


class Table:
    """Rows of results: printed and written to a file as they come. Rows that the file has already are not measured again, and none is begun after `seconds`."""

    def __init__(self, path, title, seconds):
        self.path, self.ends, self.left_out = path, time.monotonic() + seconds, set()
        lines = open(path).read().splitlines() if path and os.path.exists(path) else []
        self.known = {tuple(cell.strip() for cell in line.split("|")[1:3]) for line in lines if line.startswith("|")}
        if not lines:
            self._write(
                f"# {title}\n\n| model | variant | budget MiB | predicted MiB | measured MiB | error | ms / step | gradients and buffers |\n|---|---|---|---|---|---|---|---|"
            )

    def _write(self, text):
        print(text, flush=True)
        if self.path:
            with open(self.path, "a") as file:
                file.write(text + "\n")

    def wants(self, model, variant):
        if (model, variant) in self.known:
            return False
        if time.monotonic() > self.ends:
            self.left_out.add((model, variant))
        return time.monotonic() <= self.ends

    def row(self, *cells):
        self._write("| " + " | ".join(map(str, cells)) + " |")


def mib(n_bytes):
    return f"{n_bytes / (1 << 20):.0f}"


def baselines(table, model, device, small, repeat):
    """Plain eager and gradient checkpointing; returns the peak of the latter, which is measured where it is not known but asked for."""
    make, peak = MODELS[model], 0
    for variant, per_block in (("plain eager", False), ("eager, gradient checkpointing", True)):
        if table.wants(model, variant):
            _, ms, peak = run(device, make, small, lambda m: m, repeat, per_block=per_block)
            table.row(model, variant, "", "", mib(peak), "", f"{ms:.1f}", "")
        elif per_block and table.wants(model, "remat checkpointing"):
            _, _, peak = run(device, make, small, lambda m: m, 1, per_block=True)
    return peak


def planned(table, model, label, budget, device, options, kept, cache):
    """One row: a training within a budget."""
    try:
        found, ms, peak = run(
            device,
            MODELS[model],
            options.small,
            lambda m: torch.compile(
                m, backend="remat", dynamic=False, options={"budget": budget, "costs": options.costs, "cache": cache}
            ),
            options.repeat,
        )
    except Exception as error:
        table.row(
            model,
            label,
            "",
            "",
            "",
            "",
            "",
            f"{type(error).__name__}: {str(getattr(error, 'inner_exception', error))[:200]}",
        )
        return
    report = remat.torch.last_report()
    if not report["planned"]:
        table.row(model, label, "", "", mib(peak), "", f"{ms:.1f}", "not planned: " + report["reason"])
        return
    different, predicted = same(kept, found), report["step_peak_bytes"]
    note = f", {report['graphs']} graphs" if report["graphs"] > 1 else ""
    table.row(
        model,
        label,
        mib(report["budget_bytes"] or predicted),
        mib(predicted),
        mib(peak),
        f"{100 * (predicted / peak - 1):+.1f} %" if peak else "",
        f"{ms:.1f}",
        ("bit-identical" if not different else f"{len(different)} of {len(kept)} differ: {different[:2]}") + note,
    )


def measure(table, model, device, options, cache):
    per_block = baselines(table, model, device, options.small, options.repeat)
    keep_all = lambda m: torch.compile(m, backend="aot_eager_default_partitioner", dynamic=False)  # noqa: E731
    # on a CPU nothing is measured
    budgets = [budget for budget in options.budgets.split(",") if budget != "checkpointing" or per_block]
    wanted = [budget for budget in budgets if table.wants(model, f"remat {budget}")]
    reference = table.wants(model, "AOTAutograd keep-all")
    if not reference and not wanted:
        return
    kept, ms, peak = run(device, MODELS[model], options.small, keep_all, options.repeat)
    if reference:
        again, _, _ = run(device, MODELS[model], options.small, keep_all, 1)
        table.row(
            model,
            "AOTAutograd keep-all",
            "",
            "",
            mib(peak),
            "",
            f"{ms:.1f}",
            "reference; again: " + ("same bits" if not same(kept, again) else f"{len(same(kept, again))} differ"),
        )
    for budget in wanted:
        if table.wants(model, f"remat {budget}"):
            planned(
                table,
                model,
                f"remat {budget}",
                per_block if budget == "checkpointing" else budget,
                device,
                options,
                kept,
                cache,
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--small", action="store_true", help="tiny models: tries the program, measures nothing")
    parser.add_argument("--costs", choices=["measure", "roofline"])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument(
        "--budgets",
        default="100%,80%,60%,40%,checkpointing,min",
        help="`checkpointing`: the peak of gradient checkpointing",
    )
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="begin no row after that; run again with the same --out for the rest"
    )
    parser.add_argument("--out")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.use_deterministic_algorithms(True)  # with warn_only=True flash attention is not
    torch.backends.cudnn.benchmark = False
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    table = Table(
        options.out, f"Eager kernels on {name}, torch {torch.__version__}, deterministic algorithms", options.seconds
    )
    with tempfile.TemporaryDirectory() as fresh:
        cache = os.environ.get("REMAT_CACHE_DIR", fresh)  # times of ops, measured once a model; plans
        for model in options.models:
            measure(table, model, device, options, cache)
    print(f"{len(table.left_out)} rows are left" if table.left_out else "all rows are there")
    return 0


if __name__ == "__main__":
    sys.exit(main())
