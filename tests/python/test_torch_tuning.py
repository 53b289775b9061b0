"""remat.torch.curve and tune: measured on a small model; the model is left as it was."""

import pytest

torch = pytest.importorskip("torch")

import remat  # noqa: E402
import remat.torch  # noqa: E402
from torch import nn  # noqa: E402

# no compiler of kernels: what is measured is the same
FAST = {"kernels": "eager", "cache": False, "work": 50000, "steps": 2, "progress": False}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            *(
                nn.Sequential(nn.Linear(32, 128), nn.BatchNorm1d(128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 32))
                for _ in range(3)
            )
        )

    def forward(self, x):
        return self.layers(x).square().mean()


@pytest.fixture
def model():
    torch.manual_seed(0)
    made = Net()
    made(torch.randn(8, 32)).backward()  # gradients that exist
    return made


def test_a_curve_measures_and_leaves_the_model_as_it_was(model):
    before = [tensor.clone() for tensor in (*(p.grad for p in model.parameters()), *model.buffers())]
    state = torch.get_rng_state()
    found = remat.torch.curve(
        model, torch.randn(256, 32, generator=torch.Generator().manual_seed(1)), ["100%", "70%", 1], peers=(), **FAST
    )
    whole, less, none = found.points
    assert (
        whole.ms > 0
        and less.ms > 0
        and less.peak_bytes < whole.peak_bytes
        and less.peak_bytes <= 0.7 * whole.peak_bytes + 1
    )
    assert none.ms is None and "bytes" in none.reason and none.predicted_ms is None
    assert 0 < whole.predicted_ms < less.predicted_ms == remat.torch.last_report()["modelled_ms"]
    for a, b in zip(before, (*(p.grad for p in model.parameters()), *model.buffers())):
        assert torch.equal(a, b)
    assert torch.equal(state, torch.get_rng_state())
    lines = found.csv().splitlines()
    assert len(lines) == 4 and lines[0].startswith("variant,budget,ms") and lines[2].startswith("remat 70%,70%,")
    assert all(len(line) <= 80 for line in str(found).splitlines()) and "remat 70%" in str(found)


def test_curves_are_saved(model, tmp_path):
    found = remat.torch.curve(model, (torch.randn(64, 32),), ["100%"], peers=(), **FAST)
    found.save(tmp_path / "curve.csv")
    assert (tmp_path / "curve.csv").read_text() == found.csv()
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        with pytest.raises(remat.UsageError, match="matplotlib"):
            found.save(tmp_path / "curve.svg")
    else:
        found.save(tmp_path / "curve.svg")
        assert "<svg" in (tmp_path / "curve.svg").read_text()


def test_tune_takes_the_fastest_that_fits(model):
    x = torch.randn(256, 32)
    whole = remat.torch.tune(model, x, memory="1GiB", **FAST)
    assert whole.budget == "100%"
    limit = int(0.8 * whole.peak_bytes)
    found = remat.torch.tune(model, x, memory=limit, **FAST)
    assert isinstance(found.budget, int) and found.peak_bytes <= limit
    with pytest.raises(remat.Error, match="nothing fits"):
        remat.torch.tune(model, x, memory=1000, **FAST)


def test_usage():
    for call in (
        lambda: remat.torch.curve(Net(), torch.randn(8, 32), ["60%"], peers=["jax"]),
        lambda: remat.torch.curve(Net(), torch.randn(8, 32), ["sixty"]),
        lambda: remat.torch.curve(lambda x: x, torch.randn(8, 32), ["60%"]),
    ):
        with pytest.raises(remat.Error):
            call()
