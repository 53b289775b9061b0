"""remat.torch.Checkpointable against torch.utils.checkpoint.checkpoint_sequential with every segment count: time and peak of a training step.

    make && python bench/checkpointable_gpu.py                      # H200: under 6 minutes
    python bench/checkpointable_gpu.py --device cpu --batch 4 --image 64 --repeats 1    # does it run?

ResNet-101 and DenseNet-121 as flat Sequentials, one module a block, float32 without TF32 as in the Rotor paper. Peak is torch.cuda.max_memory_allocated
over a step from no gradients (on CPU: counted storages); time the median of some steps behind a warm-up. `reserve` is what else the allocator holds
(labels, library workspaces), so that budgets and peaks mean the same. Two questions: four budgets, each against the fastest segment count that needs
no more than we do; and every segment count that no other beats in both time and peak, against a budget of its peak. One segment is the plain
Sequential: shown, not counted as a comparison. Prints Markdown.
"""

import argparse
import os
import pathlib
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint_sequential  # noqa: E402

import remat  # noqa: E402
from remat.torch import Checkpointable, stages  # noqa: E402
from remat.torch.checking import run_step, same_bits  # noqa: E402


class Bottleneck(nn.Module):
    def __init__(self, c_in, width, stride):
        super().__init__()
        c_out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(c_in, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, c_out, 1, bias=False),
            nn.BatchNorm2d(c_out),
        )
        self.shortcut = (
            nn.Identity()
            if c_in == c_out and stride == 1
            else nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))
        )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))


def resnet101():
    layers, c_in = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for width, depth, stride in ((64, 3, 1), (128, 4, 2), (256, 23, 2), (512, 3, 2)):
        for i in range(depth):
            layers.append(Bottleneck(c_in, width, stride if i == 0 else 1))
            c_in = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c_in, 1000))


class DenseLayer(nn.Module):
    def __init__(self, c_in, growth=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(c_in),
            nn.ReLU(inplace=True),
            nn.Conv2d(c_in, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth),
            nn.ReLU(inplace=True),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


def densenet121():
    layers, channels = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for block, depth in enumerate((6, 12, 24, 16)):
        for _ in range(depth):
            layers.append(DenseLayer(channels))
            channels += 32
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
        if block < 3:
            layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
            channels //= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


MODELS = {"ResNet-101": resnet101, "DenseNet-121": densenet121}


class Bench:
    def __init__(self, name, options):
        self.name, self.device, self.repeats = name, torch.device(options.device), options.repeats
        torch.manual_seed(0)
        self.model = MODELS[name]().to(self.device)
        self.x = torch.randn(options.batch, 3, options.image, options.image, device=self.device)
        self.labels = torch.randint(1000, (options.batch,), device=self.device)

    def sync(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def step(self, run):
        nn.functional.cross_entropy(run(self.x), self.labels).backward()

    def measure(self, run):
        """Milliseconds and peak bytes of a step; None: out of memory."""
        times, peak = [], 0
        try:
            for i in range(1 + self.repeats):
                self.model.zero_grad(set_to_none=True)
                self.sync()
                if self.device.type == "cuda":
                    torch.cuda.reset_peak_memory_stats()
                began = time.perf_counter()
                self.step(run)
                self.sync()
                times.append(1e3 * (time.perf_counter() - began))
                if self.device.type == "cuda" and i:  # the first one may bring workspaces with it
                    peak = max(peak, torch.cuda.max_memory_allocated())
            if self.device.type != "cuda":
                gauge = stages.CountingGauge(self.device)
                self.model.zero_grad(set_to_none=True)
                gauge.take([*stages.held_by(self.model), self.x, self.labels])
                with gauge:
                    self.step(run)
                peak = gauge.peak()
        except torch.OutOfMemoryError:
            return None
        finally:
            self.model.zero_grad(set_to_none=True)
        return sorted(times[1:])[self.repeats // 2], peak

    def reserve(self):
        """What the allocator holds besides what a budget counts; on CPU the loss and its softmax."""
        loss = 4 * self.x.shape[0] * 1000 * 4  # logits, log-probabilities and their gradients
        if self.device.type != "cuda":
            return self.labels.nbytes + loss
        round_up = stages.AllocatorGauge(self.device).round_up
        ours = stages.bytes_of_storages([*stages.held_by(self.model), self.x], stages.AllocatorGauge(self.device))
        return max(0, torch.cuda.memory_allocated() - ours) + round_up(loss)


def mib(n_bytes):
    return f"{n_bytes / 2**20:.0f}"


def identical(name, device, image):
    """Plain against plain, and Checkpointable against plain, on a small batch with deterministic algorithms."""
    torch.manual_seed(0)
    model = MODELS[name]().to(device)
    x = torch.randn(8, 3, image, image, device=device)
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        runs = []
        for wrap in (lambda m: m, lambda m: m, lambda m: Checkpointable(m, "min")):
            torch.manual_seed(1)
            runs.append(run_step(model, (x,), {}, lambda y: y.square().mean(), wrap, 2))
    finally:
        torch.use_deterministic_algorithms(False)

    def said(a, b):
        different = [key for key in a if not same_bits(a[key], b[key])]
        return (
            f"all {len(a)} tensors identical"
            if not different
            else f"{len(different)} of {len(a)} tensors differ, the first is {different[0]}"
        )

    return f"Two steps, batch 8, deterministic algorithms: plain twice: {said(runs[0], runs[1])}; Checkpointable at the least budget and plain: {said(runs[0], runs[2])}."


def compare(name, options, deadline):
    bench = Bench(name, options)
    n_modules = len(bench.model)
    plain = bench.measure(bench.model)
    print(f"\n## {name}, batch {options.batch}, {options.image} x {options.image}, {n_modules} modules\n")
    print("plain: " + (f"{plain[0]:.1f} ms, {mib(plain[1])} MiB" if plain else "out of memory"))
    reserve = bench.reserve()
    began = time.perf_counter()
    ours = Checkpointable(bench.model, None, bench.x, reserve=reserve)
    keep_all = ours.predicted_bytes
    ours.budget = "min"
    ours._sequence([bench.x], None)
    least = ours.predicted_bytes
    print(
        f"measured and planned in {time.perf_counter() - began:.1f} s: keep-all predicted {mib(keep_all)} MiB, least {mib(least)} MiB, reserve {mib(reserve)} MiB\n"
    )

    def at(budget):
        ours.budget = budget
        try:
            ours._sequence([bench.x], None)
        except remat.Infeasible:
            return None
        found = bench.measure(ours)
        return None if found is None else (*found, ours.predicted_bytes, ours._latest.recomputed)

    fractions = (0.05, 0.25, 0.5, 0.75)
    budgets = [int(least + f * (keep_all - least)) for f in fractions]
    rows = [at(budget) for budget in budgets]
    segments, left_out = {}, []
    for k in range(1, n_modules + 1):
        if time.monotonic() > deadline:
            left_out.append(k)
            continue
        found = bench.measure(lambda x: checkpoint_sequential(bench.model, k, x, use_reentrant=options.reentrant))
        if found:
            segments[k] = found
    if left_out:
        print(f"**No time was left for {len(left_out)} segment counts from {left_out[0]} on.**\n")
    print(
        "| budget MiB | predicted | peak | ms | forward runs more | fastest segment count with no more peak | its peak | its ms | its time / ours |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    slower = 0
    for budget, row in zip(budgets, rows):
        if row is None:
            print(f"| {mib(budget)} | does not fit | | | | | | | |")
            continue
        ms, peak, predicted, more = row
        fitting = [(segments[k][0], k) for k in segments if segments[k][1] <= peak]
        text = "| none | | | |"
        if fitting:
            best, k = min(fitting)
            slower += best < ms and k > 1
            text = f"| {k} | {mib(segments[k][1])} | {best:.1f} | {best / ms:.3f} |"
        print(
            f"| {mib(budget)} | {mib(predicted)} | {mib(peak)}{'' if peak <= budget else ' (over)'} | {ms:.1f} | {more} {text}"
        )
    front = [
        k
        for k in segments
        if not any(
            o != k
            and segments[o][0] <= segments[k][0]
            and segments[o][1] <= segments[k][1]
            and segments[o] != segments[k]
            for o in segments
        )
    ]
    print("\n| segment count (not beaten by another) | peak | ms | our peak within that | our ms | its time / ours |")
    print("|---|---|---|---|---|---|")
    for k in sorted(front, key=lambda k: segments[k][1]):
        row = at(segments[k][1])
        if row is None:
            print(f"| {k} | {mib(segments[k][1])} | {segments[k][0]:.1f} | does not fit | | |")
            slower += k > 1
            continue
        slower += row[0] > segments[k][0] and k > 1
        print(
            f"| {k} | {mib(segments[k][1])} | {segments[k][0]:.1f} | {mib(row[1])}{'' if row[1] <= segments[k][1] else ' (over)'} | {row[0]:.1f} | {segments[k][0] / row[0]:.3f} |"
        )
    print(f"\nSlower than a segment count with equal or less peak, or no plan where one fits: {slower} times.\n")
    print(
        "All segment counts (peak MiB / ms): "
        + ", ".join(f"{k}: {mib(peak)} / {ms:.1f}" for k, (ms, peak) in segments.items())
        + "\n"
    )
    del ours, bench


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=330, help="no segment count is begun later than that")
    parser.add_argument("--reentrant", action="store_true", help="checkpoint_sequential with use_reentrant=True")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if options.device == "cpu":
        torch.set_num_threads(1)
    where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    began = time.monotonic()
    print(
        f"# Checkpointable and checkpoint_sequential\n\n{where}, torch {torch.__version__}, remat {remat.__version__}, float32 without TF32; median of {options.repeats} steps; "
        f"checkpoint_sequential with use_reentrant={options.reentrant}"
    )
    for i, name in enumerate(options.models, 1):
        compare(name, options, began + options.seconds * i / len(options.models))
        if options.device == "cuda":
            torch.cuda.empty_cache()
        print(identical(name, torch.device(options.device), min(options.image, 96)), flush=True)
    print(f"\n{time.monotonic() - began:.0f} s in all")


if __name__ == "__main__":
    main()
