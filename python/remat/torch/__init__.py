"""remat for PyTorch: trace a training step, plan it, run the plan exactly.

    model = torch.compile(model, backend="remat", options={"budget": "8GiB"})

docs/pytorch.md says what is supported.
"""

from .checkpointable import Checkpointable
from .compiler import backend
from .checking import CheckResult, check
from .joint import Unsupported, allow_recompute
from .options import budget
from .reporting import last_report, report, reports
from .tracing import TracedGraph, profile, trace
from .tuning import Curve, Point, curve, tune

__all__ = [
    "CheckResult",
    "Checkpointable",
    "Curve",
    "Point",
    "TracedGraph",
    "Unsupported",
    "allow_recompute",
    "backend",
    "budget",
    "check",
    "curve",
    "last_report",
    "profile",
    "report",
    "reports",
    "trace",
    "tune",
]


def _register() -> None:
    """The name "remat" for torch.compile where the package is not installed (an entry point does it where it is)."""
    from torch._dynamo import register_backend
    from torch._dynamo.backends import registry

    if "remat" not in registry._BACKENDS:
        register_backend(backend, name="remat")


_register()
