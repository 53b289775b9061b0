"""examples/train_mlp: a network trained in C on a budget. The losses are the same at every budget and under poison, and the arena is what was planned."""
import json
import os
import pathlib
import re
import subprocess

import pytest

TRAINER = pathlib.Path(os.environ.get("REMAT_EXAMPLES", pathlib.Path(os.environ.get("REMAT", "build/plain/remat")).parent / "examples")) / "train_mlp"


def train(*args, code=0):
    done = subprocess.run([str(TRAINER), "--steps", "3", *args], capture_output=True, text=True, timeout=120, env=dict(os.environ, OMP_NUM_THREADS="1"))
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def numbers(text):
    """Losses, peak, resident, arena, waste, high water."""
    losses = re.findall(r"loss (\S+)", text)
    found = [int(re.search(pattern, text).group(1)) for pattern in
             (r"peak (\d+)", r"which (\d+) are", r"arena (\d+)", r"wasted (\d+)", r"high water (\d+)")]
    return losses, *found


@pytest.fixture(scope="module")
def whole():
    return numbers(train("--budget", "100%"))


@pytest.mark.parametrize("flags", [(), ("--poison",)])
@pytest.mark.parametrize("budget", ["100%", "75%", "60%", "min"])
def test_losses_are_identical(whole, budget, flags):
    losses, peak, resident, arena, waste, high_water = numbers(train("--budget", budget, *flags))
    assert losses == whole[0] and len(losses) == 1 and 0 < float(losses[0]) < 2
    assert arena == high_water == peak - resident + waste
    assert waste == 0
    if budget.endswith("%"):
        assert peak * 100 <= whole[1] * int(budget[:-1])
    else:
        assert peak < whole[1]


def test_trace(tmp_path):
    path = tmp_path / "trace.json"
    text = train("--trace", str(path))
    events = json.loads(path.read_text())["traceEvents"]
    runs = [e for e in events if e["ph"] == "X"]
    assert len(runs) == int(re.search(r"in (\d+) steps", text).group(1))
    assert all(a["ts"] + a["dur"] <= b["ts"] + 0.002 for a, b in zip(runs, runs[1:]))
    assert max(e["args"]["bytes"] for e in events if e["ph"] == "C") == int(re.search(r"peak (\d+)", text).group(1))


def test_mistakes():
    assert "nothing fits" in train("--budget", "10KB", code=10)
    assert "usage" in train("--budget", code=1)
    assert train("--budget", "x", code=1).count("\n") == 1
