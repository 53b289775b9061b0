"""Measured memory over what was predicted, event by event: one training step of a model of bench/torch_gpu.py on a GPU, with the backend `remat`.

Usage: PYTHONPATH=python python bench/torch_timeline.py record MODEL BUDGET FILE.json.gz    (GPU and torch; `make python-library` first)
       PYTHONPATH=python python bench/torch_timeline.py draw FILE.json.gz PICTURE.png       (matplotlib)

`record` trains three steps, so that everything is compiled and planned, and records torch's memory history of a fourth. `draw` needs no GPU."""

import gzip
import json
import sys


def record(name, budget, path):
    import torch
    import torch_gpu

    from remat.torch import reporting

    model, inputs = getattr(torch_gpu, name)("cuda", False)
    step = torch.compile(model, backend="remat", dynamic=False, options={"budget": budget})
    for i in range(4):
        model.zero_grad(set_to_none=True)
        if i == 3:
            torch.cuda.memory._record_memory_history(context=None)
            torch.cuda.reset_peak_memory_stats()
        step(*inputs).backward()
        torch.cuda.synchronize()
    snapshot, stats = torch.cuda.memory._snapshot(), torch.cuda.memory_stats()
    (solution,) = reporting._last  # these models have one graph
    events = [
        {key: event[key] for key in ("action", "addr", "size", "time_us")} for event in snapshot["device_traces"][0]
    ]
    segments = [{key: segment[key] for key in ("device", "requested_size")} for segment in snapshot["segments"]]
    about = {
        "model": name,
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "budget_bytes": solution.plan.budget_bytes,
        "predicted": solution.graph.memory(solution.schedule),
        "allocated_peak": stats["allocated_bytes.all.peak"],
        "requested_peak": stats["requested_bytes.all.peak"],
        "snapshot": {"segments": segments, "device_traces": [events]},
    }
    with gzip.open(path, "wt") as file:
        json.dump(about, file)
    print(
        name,
        "predicted",
        max(about["predicted"]),
        "requested",
        about["requested_peak"],
        "allocated",
        about["allocated_peak"],
        len(events),
        "events",
    )


def draw(path, picture):
    import matplotlib

    matplotlib.use("Agg")
    import remat.plot

    with gzip.open(path, "rt") as file:
        about = json.load(file)
    axes = remat.plot.measured(about["snapshot"], about["predicted"], about["budget_bytes"])
    axes.set_xlabel(f"part of the step; {about['model']} on {about['device']}, torch {about['torch']}")
    axes.figure.savefig(picture, dpi=110)
    print(
        "predicted",
        max(about["predicted"]),
        "measured",
        max(y for _, y in remat.plot.memory_of_snapshot(about["snapshot"])),
        "torch says",
        about["requested_peak"],
    )


if __name__ == "__main__":
    {"record": record, "draw": draw}[sys.argv[1]](*sys.argv[2:])
