"""examples/train_mlp and examples/train_gpt: networks trained in C on a budget. The losses are the same at every
budget and under poison, and the arena is what was planned.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest
from conftest import plain_build

EXAMPLES = pathlib.Path(
    os.environ.get("REMAT_EXAMPLES", pathlib.Path(os.environ.get("REMAT", "build/plain/remat")).parent / "examples")
)
# nothing here is a multiple of the kernels' tiles
SMALL = ("--budget", "60%", "--layers", "3", "--width", "40", "--heads", "5", "--length", "70", "--batch", "2")
TRAINERS = {"train_mlp": (), "train_gpt": SMALL}


def train(trainer, *args, code=0, threads="1"):
    done = subprocess.run(
        [str(EXAMPLES / trainer), "--steps", "3", *TRAINERS[trainer], *args],
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ, OMP_NUM_THREADS=threads),
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def numbers(text):
    """Losses, peak, resident, arena, waste, high water."""
    losses = re.findall(r"loss (\S+)", text)
    found = [
        int(re.search(pattern, text).group(1))
        for pattern in (r"peak (\d+)", r"which (\d+) are", r"arena (\d+)", r"wasted (\d+)", r"high water (\d+)")
    ]
    return losses, *found


@pytest.fixture(scope="module")
def whole():
    return {trainer: numbers(train(trainer, "--budget", "100%")) for trainer in TRAINERS}


LONG = [pytest.param(budget, ("--poison",), marks=plain_build) for budget in ("100%", "75%", "min")]


@pytest.mark.parametrize("budget, flags", [*LONG, ("60%", ("--poison",)), ("60%", ())])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_losses_are_identical(whole, trainer, budget, flags):
    """Without poison once: what is read behind its end may then be right by luck."""
    losses, peak, resident, arena, waste, high_water = numbers(train(trainer, "--budget", budget, *flags))
    assert losses == whole[trainer][0] and all(0 < float(loss) < 6 for loss in losses)
    assert arena == high_water == peak - resident + waste
    assert waste == 0 or budget == "min"
    if budget.endswith("%"):
        assert peak * 100 <= whole[trainer][1] * int(budget[:-1])
    else:
        assert peak < whole[trainer][1]


def test_threads_change_nothing(whole):
    assert numbers(train("train_gpt", threads="3"))[0] == whole["train_gpt"][0]


def test_trace(tmp_path):
    path = tmp_path / "trace.json"
    text = train("train_mlp", "--trace", str(path))
    events = json.loads(path.read_text())["traceEvents"]
    runs = [e for e in events if e["ph"] == "X"]
    assert len(runs) == int(re.search(r"in (\d+) steps", text).group(1))
    assert all(a["ts"] + a["dur"] <= b["ts"] + 0.002 for a, b in zip(runs, runs[1:]))
    assert max(e["args"]["bytes"] for e in events if e["ph"] == "C") == int(re.search(r"peak (\d+)", text).group(1))


def test_text_and_weights_of_a_file(tmp_path):
    """It learns a text that says the same again and again, and goes on from the weights that it has saved."""
    text, weights = tmp_path / "text", tmp_path / "weights"
    text.write_text("abcde" * 100)
    first = [
        float(x)
        for x in re.findall(
            r"loss (\S+)",
            train(
                "train_gpt", "--text", text, "--steps", "60", "--rate", "0.01", "--save", weights, "--budget", "100%"
            ),
        )
    ]
    assert first[0] > 5 and first[-1] < 0.1
    then = re.findall(
        r"loss (\S+)", train("train_gpt", "--text", text, "--steps", "1", "--load", weights, "--budget", "100%")
    )
    assert float(then[0]) < 0.1


def says(line, *words):
    """One line, with all of these words, and nothing of a usage."""
    assert line.count("\n") == 1 and "usage" not in line and all(word in line for word in words), line


@pytest.mark.parametrize("trainer", TRAINERS)
def test_mistakes(trainer):
    assert "nothing fits" in train(trainer, "--budget", "10KB", code=10)
    says(train(trainer, "--budget", code=1), "--budget", "needs a value")
    says(train(trainer, "--what", "1", code=1), "--what", "no flag")
    says(train(trainer, "--budget", "x", code=1), "'x'")
    done = subprocess.run([str(EXAMPLES / trainer), "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("usage") and done.stderr == ""


@pytest.mark.parametrize(
    "args",
    [
        ("--layers", "0"),
        ("--layers", "101"),
        ("--batch", "x"),
        ("--batch", ""),
        ("--length", "20000"),
        ("--steps", "-1"),
        ("--steps", "9" * 30),
        ("--rate", "nan"),
        ("--rate", "inf"),
        ("--rate", "-1"),
        ("--rate", "1e-3x"),
        ("--rate", ""),
    ],
)
def test_numbers_that_cannot_be(args):
    says(train("train_gpt", *args, code=1), args[0], f"'{args[1]}'")


def test_heads_that_do_not_fit():
    says(train("train_gpt", "--heads", "3", code=1), "40", "3 --heads")


def test_files_that_are_wrong(tmp_path):
    short, none = tmp_path / "short", tmp_path / "none"
    short.write_text("x" * 70)
    for args, word in (
        (("--text", short), "70 bytes"),
        (("--text", none), "cannot be read"),
        (("--text", tmp_path), "cannot be read"),
        (("--load", short), "no weights"),
        (("--load", none), "cannot be read"),
        (("--load", tmp_path), "no weights"),
    ):
        says(train("train_gpt", *args, code=2), word)
    # Before the training, which would be lost.
    says(train("train_gpt", "--budget", "1", "--save", tmp_path / "no" / "folder", code=3), "cannot be written")


@pytest.mark.parametrize("steps", ["-1", "0", "1x", "99999999999999999999", ""])
def test_numbers_of_steps_that_cannot_be(steps):
    says(train("train_mlp", "--steps", steps, code=1), "--steps", f"'{steps}'")


def test_a_trace_that_cannot_be_written(tmp_path):
    says(train("train_mlp", "--budget", "1", "--trace", str(tmp_path), code=3), f"{tmp_path}: cannot be written")
