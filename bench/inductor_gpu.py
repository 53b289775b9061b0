"""On a GPU, Inductor's kernels: what a training step takes and needs with torch.compile, with what people tune by hand, and with remat's plans at budgets and at each
peer's peak; forward and backward pass, bf16 autocast, gradients dropped after each step.

Every variant is a process of its own with a fresh cache of code. Processes compile side by side, `--jobs` at a time; each waits until all of its batch have compiled, and is then timed alone, under a
lock: timing several at once gave errors of 2x. Peaks are torch.cuda.max_memory_allocated. What was measured so far is written after every result, so that a
call that is cut short loses nothing; `--known FILE.json` adds results of an earlier call, which are not run again.

Usage: PYTHONPATH=python python bench/inductor_gpu.py [--models gpt,vit,resnet50,unet,gpt1b] [--variants NAME,...] [--at PEER,...] [--jobs 8] [--seconds 520] [--out DIR]
Variants: compile, aggressive, budget:0.7, sac, sac2, ckpt:50, remat:60%, remat:min, remat:4000 (MiB); gpt/remat:4000: of that model only."""

import argparse
import fcntl
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import torch
import torch.nn.functional as F
from torch import nn

from resnet import ResNet50Layers

MIB = 1 << 20
PEERS = [
    "compile",
    "aggressive",
    "budget:0.7",
    "budget:0.5",
    "budget:0.3",
    "sac",
    "sac2",
    "ckpt:25",
    "ckpt:50",
    "ckpt:75",
    "ckpt:100",
]
OURS = [f"remat:{share}" for share in ("100%", "85%", "70%", "60%", "50%", "40%", "30%", "min")]


# ---- models: (model, step(compiled) -> loss, places of the blocks) ----


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(
            F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(batch, length, width)
        )


class Block(nn.Module):
    def __init__(self, width, heads, causal, dropout):
        super().__init__()
        self.norm1, self.norm2, self.attention = (
            nn.LayerNorm(width),
            nn.LayerNorm(width),
            Attention(width, heads, causal),
        )
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(approximate="tanh" if causal else "none"),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, vocabulary=50304, length=1024):
        super().__init__()
        self.tokens, self.places, self.drop = (
            nn.Embedding(vocabulary, width),
            nn.Embedding(length, width),
            nn.Dropout(0.1),
        )
        self.blocks = nn.ModuleList(Block(width, heads, True, 0.1) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x):
        h = self.drop(self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device)))
        for block in self.blocks:
            h = block(h)
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), x.flatten())


class ViT(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, size=224, patch=16):
        super().__init__()
        self.patches, self.token = nn.Conv2d(3, width, patch, patch), nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, False, 0.0) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(len(h), -1, -1), h], 1) + self.places
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h)[:, 0])


class ResNet50(ResNet50Layers):
    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


def double(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1),
        nn.BatchNorm2d(b),
        nn.ReLU(),
        nn.Conv2d(b, b, 3, padding=1),
        nn.BatchNorm2d(b),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, width=64, depth=4, classes=2):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.blocks = nn.ModuleList(
            [
                *(double(a, b) for a, b in zip([3, *widths[:-1]], widths)),
                *(double(2 * b, b) for b in reversed(widths[:-1])),
            ]
        )
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * b, b, 2, 2) for b in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept, depth = [], len(self.up)
        for i in range(depth + 1):
            x = self.blocks[i](F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.blocks[depth + 1 :]):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.head(x)


def build(name, device, small):
    """A model and its batch; the loss is the result, or the mean of it."""
    if name in ("gpt", "gpt1b"):
        sizes = (
            dict(layers=3, width=96, heads=4, vocabulary=512, length=64)
            if small
            else dict(layers=24, width=2048, heads=16)
            if name == "gpt1b"
            else {}
        )
        batch = (2, 64) if small else (8 if name == "gpt1b" else 16, 1024)
        return GPT(**sizes).to(device), torch.randint(0, 500, batch, device=device)
    if name == "vit":
        model = ViT(2, 64, 4, 32, 8) if small else ViT()
        return model.to(device), torch.randn(*((2, 3, 32, 32) if small else (128, 3, 224, 224)), device=device)
    if name == "resnet50":
        model = (ResNet50((1, 1, 1, 1)) if small else ResNet50()).to(device, memory_format=torch.channels_last)
        return model, torch.randn(*((2, 3, 64, 64) if small else (256, 3, 224, 224)), device=device).to(
            memory_format=torch.channels_last
        )
    if name == "unet":
        return (UNet(8, 2) if small else UNet()).to(device), torch.randn(
            *((2, 3, 32, 32) if small else (16, 3, 416, 608)), device=device
        )
    raise SystemExit(f"no model {name}")


# ---- variants ----

A = torch.ops.aten
PRODUCTS = {A.mm.default, A.addmm.default, A.convolution.default}
SAVED = PRODUCTS | {
    A.bmm.default,
    A._scaled_dot_product_flash_attention.default,
    A._scaled_dot_product_efficient_attention.default,
    A._scaled_dot_product_cudnn_attention.default,
}


def selective(every):
    """Selective checkpointing: products, convolutions and attention are saved; with 2, every second product only."""
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    count = {False: 0, True: 0}

    def policy(context, op, *_args, **_keywords):
        if op in PRODUCTS:
            count[context.is_recompute] += 1
        saved = op in SAVED and not (op in PRODUCTS and every == 2 and count[context.is_recompute] % 2 == 0)
        return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE

    def contexts():
        count[False] = count[True] = 0
        return create_selective_checkpoint_contexts(policy)

    return contexts


def checkpointed(model, share, **more):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper

    for i in range(round(share * len(model.blocks))):
        model.blocks[i] = checkpoint_wrapper(model.blocks[i], checkpoint_impl=CheckpointImpl.NO_REENTRANT, **more)


def measure_alone(lock):
    """Ops and the bandwidth are measured by one process at a time; the others find what it measured."""
    import remat.torch.measuring as measuring

    def alone(function):
        def locked(*args, **keywords):
            with open(lock, "w") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                return function(*args, **keywords)

        return locked

    measuring.measured, measuring.ns_per_byte = alone(measuring.measured), alone(measuring.ns_per_byte)


def keep_code(folder, name, variant):
    """What Inductor generated, to be read by people: FOLDER/MODEL.VARIANT.N.py.gz, of every variant the function that runs the kernels."""
    import gzip

    from torch._inductor.graph import GraphLowering

    n = [0]

    def kept(source):
        n[0] += 1
        path = pathlib.Path(folder) / f"{name}.{variant.replace(':', '.').replace('%', '')}.{n[0]}.py.gz"
        start = source.rfind("def call(")
        # lines have their numbers
        path.write_bytes(gzip.compress(("\n" * source.count("\n", 0, start) + source[start:]).encode()))

    GraphLowering.save_output_code = staticmethod(kept)


def kernels(step):
    """Microseconds and runs of each kernel in one step, by name, the longest first; and microseconds in which none
    ran, with the kernels before and behind.
    """
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        step()
        torch.cuda.synchronize()
    rows = [
        (round(getattr(row, "device_time_total", 0) or getattr(row, "cuda_time_total", 0)), row.count, row.key[:120])
        for row in found.key_averages()
    ]
    events = sorted(
        (event.time_range.start, event.time_range.end, event.name[:80])
        for event in found.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
    )
    gaps, until, before = [], events[0][0], ""
    for start, end, name in events:
        if start > until:
            gaps.append((round(start - until), before, name))
        if end > until:
            until, before = end, name
    return sorted((row for row in rows if row[0]), reverse=True), sorted(gaps, reverse=True)


def at_the_peak(step):
    """What a step has allocated where it has most: MiB and where in the code, the largest first."""
    torch.cuda.memory._record_memory_history(context="alloc", stacks="python")
    step()
    torch.cuda.synchronize()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    live, n_bytes, most, peak = {}, 0, 0, []
    for event in events:
        if event["action"] == "alloc":
            frame = next(iter(event["frames"]), {"filename": "", "line": 0, "name": ""})
            live[event["addr"]] = (
                event["size"],
                f"{os.path.basename(frame['filename'])}:{frame['line']} {frame['name']}",
            )
            n_bytes += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in live:
            n_bytes -= live.pop(event["addr"])[0]
        if n_bytes > most:
            most, peak = n_bytes, list(live.values())
    return [[round(size / MIB, 1), where] for size, where in sorted(peak, reverse=True) if size >= MIB]


# what was read of code before a plan was chosen: predicted and needed MiB, milliseconds by the code, ops run again,
# whether it is the one
LOOKS = []
CANDIDATES = []  # within the whole budget: predicted MiB, modelled milliseconds, ops run again


def keep_looks():
    from remat.torch import fitting

    run = fitting.Fit.run

    def kept(fit, first):
        found = run(fit, first)
        LOOKS.extend(
            [
                round(look.solution.verdict.peak_bytes / MIB),
                round(look.needs_bytes / MIB),
                round(look.ns / 1e6, 2),
                look.solution.again,
                look is found,
            ]
            for look in fit.looks
        )
        CANDIDATES.extend(
            [round(plan.verdict.peak_bytes / MIB), round(plan.verdict.cost / 1e6, 2), plan.again]
            for plan in fit._plan(fit.limit)
        )
        return found

    fitting.Fit.run = kept


def compiled(model, name, variant, small, lock):
    import torch._functorch.config as functorch

    kind, _, value = variant.partition(":")
    if kind == "aggressive":
        functorch.aggressive_recomputation = True
    elif kind == "budget":
        functorch.activation_memory_budget = float(value)
    elif kind in ("sac", "sac2"):
        checkpointed(model, 1, context_fn=selective(2 if kind == "sac2" else 1))
    elif kind == "ckpt":
        checkpointed(model, float(value) / 100)
    elif kind == "remat":
        import remat.torch

        measure_alone(lock)
        keep_looks()
        budget = int(value) * MIB if value.isdigit() else value
        return torch.compile(
            model,
            backend="remat",
            dynamic=False,
            options={"kernels": "inductor", "budget": budget, "time": 2 if small else 4},
        )
    elif kind != "compile":
        raise SystemExit(f"no variant {variant}")
    return torch.compile(model, dynamic=False)


def one(name, variant, small, ready, batch):
    """One variant in this process; prints a line of JSON."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    model, x = build(name, device, small)
    model.train()
    parameters = list(model.parameters())
    if os.environ.get("REMAT_CODE"):
        keep_code(os.environ["REMAT_CODE"], name, variant)
    function = compiled(model, name, variant, small, ready + ".lock")

    def step():
        with torch.autocast(device, dtype=torch.bfloat16):
            result = function(x)
            loss = result if result.dim() == 0 else result.float().mean()
        loss.backward()
        for parameter in parameters:
            parameter.grad = None
        return loss

    began = time.monotonic()
    step()
    seconds = time.monotonic() - began
    step()
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    open(f"{ready}/{name}.{variant.replace(':', '.')}", "w").close()
    while len(os.listdir(ready)) < batch and time.time() < float(os.environ["REMAT_TIMING_FROM"]):
        time.sleep(0.2)
    with open(ready + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        times, peak = timed(step, cuda)
        allocated = torch.cuda.memory_stats()["num_device_alloc"] if cuda else 0
        profiled, gaps, peak_of = (
            (*kernels(step), at_the_peak(step)) if cuda and os.environ.get("REMAT_CODE") else (None, None, None)
        )
    found = {
        "model": name,
        "variant": variant,
        "ms": round(times[len(times) // 2], 2),
        "least_ms": round(times[0], 2),
        "peak_mib": round(peak / MIB),
        "compile_s": round(seconds, 1),
    }
    if variant.startswith("remat"):
        import remat.torch

        last = remat.torch.last_report()
        found.update(
            predicted_mib=round((last["step_peak_bytes"] or 0) / MIB),
            keep_all_mib=round((last["step_keep_all_bytes"] or 0) / MIB),
            budget_mib=round((last["budget_bytes"] or 0) / MIB),
            overhead=round(last["overhead"], 4),
            again=last["recomputed_ops"],
            ops=last["ops"],
            planned=last["planned"],
            reason=last["reason"],
            generated_mib=round((last.get("generated_peak_bytes") or 0) / MIB),
            looks=LOOKS,
            candidates=CANDIDATES,
        )
    if profiled:
        found["kernel_ms"] = round(sum(row[0] for row in profiled) / 1e3, 2)
        found["idle_ms"] = round(sum(gap[0] for gap in gaps) / 1e3, 2)
        found["device_allocs"] = torch.cuda.memory_stats()["num_device_alloc"] - allocated
        path = (
            pathlib.Path(os.environ["REMAT_CODE"]) / f"{name}.{variant.replace(':', '.').replace('%', '')}.kernels.json"
        )
        path.write_text(json.dumps(profiled, indent=0))
        path.with_suffix("").with_suffix(".peak.json").write_text(json.dumps(peak_of, indent=0))
        path.with_suffix("").with_suffix(".gaps.json").write_text(json.dumps(gaps[:100], indent=0))
    print(json.dumps(found), flush=True)


def timed(step, cuda, n=15):
    """Milliseconds of n steps, sorted, and the peak in bytes."""
    for _ in range(3):
        step()
    if not cuda:
        times = []
        for _ in range(3):
            began = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - began))
        return sorted(times), 0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(n):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        step()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last))
    return sorted(times), torch.cuda.max_memory_allocated()


# ---- all of them ----


def run_one(name, variant, folder, ready, n, deadline, small):
    """A process for one variant: its result, or why there is none."""
    cache = os.path.join(folder, f"{name}.{variant}".replace(":", "."))
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": cache,
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "TORCHINDUCTOR_COMPILE_THREADS": "2",
        "REMAT_CACHE_DIR": os.path.join(folder, "remat"),
        # then those that are ready are timed, whoever still compiles
        "REMAT_TIMING_FROM": str(time.time() + 0.65 * max(1, deadline - time.monotonic())),
    }
    command = [sys.executable, __file__, "--one", name, variant, ready, str(n)] + (["--small"] if small else [])
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=max(1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += "\nout of time"
    lines = [line for line in out.splitlines() if line.startswith("{")]
    warned = [line.partition("UserWarning: ")[2] for line in err.splitlines() if "UserWarning: remat" in line]
    if lines:
        return {**json.loads(lines[-1]), **({"warned": warned} if warned else {})}
    open(f"{ready}/{name}.{variant}.failed", "w").close()  # the others need not wait for it
    return {
        "model": name,
        "variant": variant,
        "failed": " / ".join([line for line in err.strip().splitlines() if line.strip()][-4:])[-700:],
    }


def run_batch(jobs, deadline, small):
    """Compiles side by side, times one by one; yields what came out, as it comes."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(jobs)) as pool:
        ready = os.path.join(folder, "ready")
        os.mkdir(ready)
        running = [
            pool.submit(run_one, name, variant, folder, ready, len(jobs), deadline, small) for name, variant in jobs
        ]
        for future in as_completed(running):
            yield future.result()


def table(results):
    lines = []
    for name in dict.fromkeys(result["model"] for result in results):
        lines += [
            f"\n## {name}\n",
            "| variant | ms (median) | least ms | peak MiB | predicted MiB | from the code MiB | modelled overhead % | run again | compile s |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for r in sorted(
            (r for r in results if r["model"] == name),
            key=lambda r: (r["variant"].startswith("remat"), -r.get("peak_mib", 0)),
        ):
            if "failed" in r:
                lines.append(f"| {r['variant']} | {r['failed'][:160].replace('|', '/')} | | | | | | | |")
                continue
            ours = (
                [r["predicted_mib"], r["generated_mib"], round(100 * r["overhead"], 1), r["again"]]
                if "predicted_mib" in r
                else [""] * 4
            )
            note = "" if r.get("planned", True) else f" (not planned: {r['reason']})"
            lines.append(
                "| "
                + " | ".join(
                    map(
                        str,
                        [
                            r["variant"] + (f" ({r['beside']})" if "beside" in r else "") + note,
                            r["ms"],
                            r["least_ms"],
                            r["peak_mib"],
                            *ours,
                            r["compile_s"],
                        ],
                    )
                )
                + " |"
            )
    return "\n".join(lines)


def save(results, errors, out):
    out.mkdir(parents=True, exist_ok=True)
    (out / "inductor-gpu.json").write_text(json.dumps(results, indent=1))
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    (out / "inductor-gpu.md").write_text(
        f"# Inductor's kernels within a budget\n\n{device}, torch {torch.__version__}; `{' '.join(['bench/inductor_gpu.py', *sys.argv[1:]])}`\n"
        + table(results)
        + "\n"
        + "".join(f"\n    {error}" for error in errors)
        + "\n"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="gpt,vit,resnet50,unet")
    parser.add_argument("--variants", default=",".join(PEERS + OURS))
    parser.add_argument(
        "--at",
        default="sac,ckpt:50,ckpt:75,ckpt:100,aggressive",
        help="remat at the peaks of these peers, once they are known; empty: none",
    )
    parser.add_argument("--known", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=520)
    parser.add_argument(
        "--code",
        action="store_true",
        help="keep what was generated under OUT/code, with the times of kernels and what is in memory at the peak",
    )
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(os.environ.get("OUT", "build/inductor-gpu")))
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return one(options.one[0], options.one[1], options.small, options.one[2], int(options.one[3]))
    deadline = time.monotonic() + options.seconds
    if options.code:
        os.environ["REMAT_CODE"] = str(options.out / "code")
        (options.out / "code").mkdir(parents=True, exist_ok=True)
    results = [r for path in options.known for r in json.loads(pathlib.Path(path).read_text()) if "failed" not in r]
    errors = []
    done = {(r["model"], r["variant"]) for r in results}
    asked = [
        (name, *variant.rpartition("/")[::2])
        for name in options.models.split(",")
        for variant in options.variants.split(",")
        if variant
    ]
    jobs = [(name, variant) for name, only, variant in asked if only in ("", name) and (name, variant) not in done]

    def work(jobs):
        for start in range(0, len(jobs), options.jobs):
            if deadline - time.monotonic() < 45:
                errors.append(f"out of time: {len(jobs) - start} variants not run")
                return
            for result in run_batch(jobs[start : start + options.jobs], deadline, options.small):
                results.append(result)
                print(json.dumps(result), flush=True)
                save(results, errors, options.out)

    work(jobs)
    peaks = {(r["model"], r["variant"]): r["peak_mib"] for r in results if "failed" not in r}
    beside = {
        (name, f"remat:{peaks[name, peer]}"): peer
        for name in options.models.split(",")
        for peer in options.at.split(",")
        if peaks.get((name, peer))
    }
    work([job for job in beside if job not in done])
    for result in results:
        peer = beside.get((result["model"], result["variant"]))
        if peer:
            result["beside"] = f"peak of {peer}"
    save(results, errors, options.out)
    print("\n".join(errors))


if __name__ == "__main__":
    main()
