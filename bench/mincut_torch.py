#!/usr/bin/env python3
"""The flow problems of torch's own min-cut partitioner: captured, solved by networkx and by `remat maxflow`, compared and timed.

Usage: bench/mincut_torch.py PROGRAM FOLDER [OUTPUT]
A process per model compiles a training step up to the partitioner's minimum cut, whose network it writes to FOLDER (kept: a second run
starts from there). Then, in this process, with Python's collector off and nothing of torch loaded: networkx and remat on every
network. Both must find the same value and the same partition (each takes the cut nearest the sink). Models are built from
configurations; nothing is downloaded and no step is run."""

import gc
import json
import os
import pathlib
import pickle
import platform
import statistics
import subprocess
import sys
import time

MODELS = ["unet", "convnext_tiny", "gpt2", "bert_base", "resnet50", "llama32"]
# torch 2.15's own Dinic (pure Python) on such networks, in seconds, as once measured on another machine: not of this run.
RECORDED_2_15 = {
    "unet": 0.008,
    "convnext_tiny": 0.011,
    "gpt2": 0.025,
    "bert_base": 0.029,
    "resnet50": 0.032,
    "llama32": 0.094,
}


# ---- capture: runs in a process of its own ----


def unet(torch):
    """Four levels down and up, two convolutions each, with batch norm."""
    nn = torch.nn

    def block(n_in, n_out):
        layers = []
        for i in range(2):
            layers += [nn.Conv2d(n_in if i == 0 else n_out, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self, width=64, levels=4):
            super().__init__()
            sizes = [width << i for i in range(levels + 1)]
            self.down = nn.ModuleList([block(3 if i == 0 else sizes[i - 1], sizes[i]) for i in range(levels + 1)])
            self.up = nn.ModuleList(
                [nn.ConvTranspose2d(sizes[i + 1], sizes[i], 2, stride=2) for i in reversed(range(levels))]
            )
            self.join = nn.ModuleList([block(2 * sizes[i], sizes[i]) for i in reversed(range(levels))])
            self.last = nn.Conv2d(width, 2, 1)

        def forward(self, x):
            kept = []
            for i, stage in enumerate(self.down):
                x = stage(x if i == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for up, join, skip in zip(self.up, self.join, reversed(kept[:-1])):
                x = join(torch.cat([skip, up(x)], 1))
            return self.last(x)

    model = UNet()
    return lambda x, y: nn.functional.cross_entropy(model(x), y), (
        torch.randn(8, 3, 256, 256),
        torch.zeros(8, 256, 256, dtype=torch.long),
    )


def model_and_inputs(name, torch):
    import transformers as t

    if name == "unet":
        return unet(torch)
    if name in ("resnet50", "convnext_tiny"):
        model = (
            t.ResNetForImageClassification(t.ResNetConfig())
            if name == "resnet50"
            else t.ConvNextForImageClassification(t.ConvNextConfig())
        )
        return lambda x, y: torch.nn.functional.cross_entropy(model(pixel_values=x).logits, y), (
            torch.randn(32, 3, 224, 224),
            torch.zeros(32, dtype=torch.long),
        )
    if name == "gpt2":
        model, batch, length = t.GPT2LMHeadModel(t.GPT2Config()), 4, 512
    elif name == "bert_base":
        model, batch, length = t.BertForMaskedLM(t.BertConfig()), 8, 512
    else:
        config = t.LlamaConfig(
            hidden_size=256,
            intermediate_size=688,
            num_hidden_layers=32,
            num_attention_heads=8,
            num_key_value_heads=8,
            vocab_size=4096,
        )
        model, batch, length = t.LlamaForCausalLM(config), 2, 256
    model.train()
    ids = torch.zeros(batch, length, dtype=torch.long)
    more = {} if name == "bert_base" else {"use_cache": False}
    return lambda x: torch.nn.functional.cross_entropy(model(input_ids=x, **more).logits.flatten(0, 1), x.flatten()), (
        ids,
    )


def capture(name, path):
    import networkx
    import torch
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    import torch._inductor.lowering  # some decompositions need it
    from torch._inductor.decomposition import select_decomp_table

    seen = []

    class Captured(Exception):
        pass

    def record(graph, source, sink):
        seen.append([(u, v, data.get("capacity")) for u, v, data in graph.edges(data=True)])
        raise Captured

    networkx.minimum_cut = record
    loss, inputs = model_and_inputs(name, torch)
    backend = aot_autograd(
        fw_compiler=lambda module, example: module,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=select_decomp_table(),
    )
    try:
        torch.compile(loss, backend=backend, fullgraph=True)(*inputs)
    except Exception:  # dynamo wraps ours in its own
        if not seen:
            raise
    path.write_bytes(pickle.dumps({"torch": torch.__version__, "edges": seen[0]}))


# ---- comparison ----


def is_infinite(capacity):
    return capacity is None or capacity == float("inf")


def write_dimacs(edges, path):
    """Vertex i of the file is names[i - 1]. Infinite is 1 + the sum of the finite capacities."""
    names = list(dict.fromkeys(v for u, w, _ in edges for v in (u, w)))
    index = {v: i + 1 for i, v in enumerate(names)}
    infinite = 1 + sum(int(c) for _, _, c in edges if not is_infinite(c))
    with open(path, "w") as f:
        f.write(f"p max {len(names)} {len(edges)}\nn {index['source']} s\nn {index['sink']} t\n")
        for u, v, c in edges:
            f.write(f"a {index[u]} {index[v]} {infinite if is_infinite(c) else int(c)}\n")
    return names


def solve_networkx(edges, runs=3):
    import networkx

    graph = networkx.DiGraph()
    for u, v, c in edges:
        graph.add_edge(u, v, **({} if is_infinite(c) else {"capacity": int(c)}))
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        value, (source_side, _) = networkx.minimum_cut(graph, "source", "sink")
        times.append(time.perf_counter() - begin)
    return value, set(source_side), statistics.median(times)


def solve_remat(program, path, names, runs=9):
    times = []
    for _ in range(runs):
        answer = json.loads(
            subprocess.run([program, "maxflow", path, "--json"], check=True, capture_output=True, text=True).stdout
        )
        times.append(answer["seconds"])
    return answer["value"], {names[i - 1] for i in answer["source_side"]}, statistics.median(times)


def machine():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    out = open(sys.argv[3], "w") if len(sys.argv) > 3 else sys.stdout
    folder.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        if not (folder / f"{name}.pickle").exists():
            print(f"capturing {name}", file=sys.stderr)
            subprocess.run([sys.executable, __file__, "--capture", name, str(folder / f"{name}.pickle")], check=True)
    import networkx

    gc.disable()
    rows, differing = [], []
    for name in MODELS:
        captured = pickle.loads((folder / f"{name}.pickle").read_bytes())
        edges, dimacs = captured["edges"], folder / f"{name}.max"
        names = write_dimacs(edges, dimacs)
        value, side, slow = solve_networkx(edges)
        ours, our_side, fast = solve_remat(program, str(dimacs), names)
        same = ours == value and our_side == side
        differing += [] if same else [name]
        rows.append(
            f"| {name} | {len(names)} / {len(edges)} | {value} | {'same' if same else f'DIFFERS: {ours}'} | {slow:.3f} | {fast * 1e3:.3f} | {slow / fast:.0f}x "
            f"| {RECORDED_2_15[name]:.3f} |"
        )
        print(rows[-1], file=sys.stderr)
    print(
        f"""# The min-cut networks of torch {captured["torch"]}

Made by `make bench-mincut` on {machine()}, {os.cpu_count()} cores; Python {platform.python_version()}, networkx {networkx.__version__}. One run, one thread; medians
of 3 (networkx's `minimum_cut`, collector off, no torch in the process) and of 9 (`remat maxflow`: the solver alone, its arrays built from the
edge list included). "cut" compares value and partition. The last column is not of this run: torch 2.15's Dinic in Python, recorded once
on another machine on networks of the same models (sizes differ a little).

| model | vertices / edges | cut value | cut | networkx s | remat ms | ratio | torch 2.15's Dinic s (recorded) |
|---|---|---|---|---|---|---|---|""",
        file=out,
    )
    print("\n".join(rows), file=out)
    if differing:
        sys.exit(f"cuts differ: {', '.join(differing)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--capture"]:
        capture(sys.argv[2], pathlib.Path(sys.argv[3]))
    elif len(sys.argv) < 3:
        sys.exit(__doc__)
    else:
        main()
