"""remat: make a training step fit a memory budget. This package calls libremat (C) and needs nothing else;
`remat.torch` needs torch.

>>> import remat
>>> graph = remat.load("zoo:resnet50?batch=32")
>>> plan = graph.plan("50%")
>>> 0 < plan.overhead < 0.2
True
"""

from .core import (
    Bound,
    Builder,
    Chain,
    Graph,
    Plan,
    Progress,
    Stage,
    Statement,
    Step,
    Verdict,
    devices,
    load,
    options,
    parse,
    strategies,
    version,
    zoo,
)
from .errors import (
    BudgetError,
    Bug,
    Error,
    FileError,
    Infeasible,
    InputError,
    InvalidPlan,
    NoMemory,
    NotApplicable,
    NotFound,
    UsageError,
    size_text,
)

__version__ = version()
__all__ = [
    "Bound",
    "BudgetError",
    "Bug",
    "Builder",
    "Chain",
    "Error",
    "FileError",
    "Graph",
    "Infeasible",
    "InputError",
    "InvalidPlan",
    "NoMemory",
    "NotApplicable",
    "NotFound",
    "Plan",
    "Progress",
    "Stage",
    "Statement",
    "Step",
    "UsageError",
    "Verdict",
    "devices",
    "load",
    "options",
    "parse",
    "size_text",
    "strategies",
    "version",
    "zoo",
]
