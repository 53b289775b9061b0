"""The package is taken from the source tree; REMAT_LIBRARY (set by ctest) names the library that was built."""

import gc
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
GRAPHS = ROOT / "tests" / "data" / "graphs"


@pytest.fixture(autouse=True, scope="session")
def frozen(request):
    """What torch loads for a first step stays for good: collections, in tests and by themselves, need not walk
    through it. They take a fifth of a second else.
    """
    if not any(hasattr(item.module, "torch") for item in request.session.items if hasattr(item, "module")):
        return
    import torch

    import remat.torch  # noqa: F401  (a backend of torch.compile)

    torch.compile(torch.nn.Linear(1, 1), backend="remat", options={"cache": False, "work": 1})(
        torch.ones(1, 1)
    ).sum().backward()
    torch._dynamo.reset()
    gc.collect()
    gc.freeze()
