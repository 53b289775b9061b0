"""What Inductor would compile, run node by node in its place: whether a plan's halves compute the right numbers is
asked of many models so, in a second each. Random numbers are a function of their seed, as in Inductor's code.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List
from unittest import mock

import torch
from torch import fx
from torch._inductor import compile_fx
from torch._inductor.output_code import OutputCode


class Nodes(fx.Interpreter):
    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target is torch.ops.prims.inductor_random.default:
            size, seed, mode = args
            generator = torch.Generator().manual_seed(int(seed) & 0x7FFFFFFF)
            return (torch.rand if mode == "rand" else torch.randn)(size, generator=generator)
        return super().call_function(target, args, kwargs)


class Code(OutputCode):
    def __init__(self, half: fx.GraphModule):
        self._boxed_call, self.source_code = True, None
        self.current_callable = lambda args: Nodes(half).run(*args, enable_io_processing=False)

    def __call__(self, args: Any) -> Any:
        return self.current_callable(list(args))


@contextlib.contextmanager
def in_place_of_code() -> Iterator[Dict[bool, List[fx.GraphModule]]]:
    """Gives the halves that Inductor would have compiled, by whether they are backward ones."""
    found: Dict[bool, List[fx.GraphModule]] = {}

    def inner(half: fx.GraphModule, _inputs: Any, **more: Any) -> Code:
        found.setdefault(bool(more.get("is_backward")), []).append(half)
        return Code(half)

    with mock.patch.object(compile_fx, "compile_fx_inner", inner):
        yield found
