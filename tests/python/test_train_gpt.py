"""examples/train_gpt.c reaches the losses that the same model reaches in torch, from the same weights, on the same
text, with the same AdamW.
"""

import os
import pathlib
import re
import subprocess

import pytest
from conftest import ROOT

torch = pytest.importorskip("torch")
import gpt_twin  # noqa: E402

TRAINER = pathlib.Path(os.environ.get("REMAT_EXAMPLES", ROOT / "build" / "plain" / "examples")) / "train_gpt"
SHAPE = gpt_twin.Shape(layers=3, width=48, heads=4, length=70, batch=3)


def train(*args):
    done = subprocess.run(
        [str(TRAINER), *SHAPE.arguments(), *map(str, args)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)]


def test_losses_are_those_of_torch(tmp_path):
    """Sums have another order, so losses differ in the last bits: in 20 steps by less than a hundred thousandth."""
    path, start = tmp_path / "text", tmp_path / "weights"
    path.write_bytes((ROOT / "README.md").read_bytes()[:5000])
    train("--steps", 0, "--save", start, "--budget", "100%")
    weights = torch.frombuffer(bytearray(start.read_bytes()), dtype=torch.float32)
    text = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8).long()
    ours = train("--text", path, "--load", start, "--steps", 20, "--budget", "60%")
    assert ours == pytest.approx(list(gpt_twin.train(SHAPE, text, 20, weights)), rel=1e-5)
    assert ours[-1] < ours[0] - 0.5
