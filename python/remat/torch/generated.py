"""What Inductor made of a half of a plan, read from the code that it generated: which buffers are in memory when, and
how many library kernels run.

Problem. A plan says what is in memory at each step; Inductor fuses, reorders and reuses buffers, and may undo it.
Whether it did is in the code: every buffer is allocated, renamed and deleted by a line of Python.

Method. The lines of `call` are read in order. A line that allocates says shape, strides and dtype; one that reuses
gives a buffer another name; `del` drops a name, and a buffer is freed with its last name. What a library kernel returns
is as large as the assertion behind it says, with the dtype of its first argument; where it returns several tensors, they
are picked, and their sizes said, behind the lines that delete what it read, and yet both were in memory together.
Arguments are freed if they are the caller's last reference: what was saved is, parameters and inputs are not.

What a library takes for itself while it runs is in no line: the caller says what each op of a name takes, in the order
of the plan, which is that of the code unless Inductor found another order of less memory. Where the code has another
number of them, each may take the most.

Lines that are not understood allocate nothing, so the peak is a lower limit; sizes that are not numbers (dynamic
shapes) give none at all. Cost: linear in the code."""

from __future__ import annotations

import re
from collections import Counter
from typing import Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set

import torch
from torch import fx

from .joint import CUDA_ALIGN, hint, storage_key

ALLOCATES = re.compile(r"(\w+) = empty_strided\w*\((\([^()]*\)), (\([^()]*\)), torch\.(\w+)")
RENAMES = re.compile(r"(\w+) = (?:reinterpret_tensor\()?(\w+)\b[^;]*; del \2\b")
PICKS = re.compile(r"(\w+) = (\w+)\[\d+\]$")
CALLS = re.compile(r"(\w+) = ((?:extern_kernels|torch\.ops|aten)\.[\w.]+)\(")
LIBRARY = re.compile(r"(?:\w+ = )?(?:extern_kernels|torch\.ops\.aten|aten)\.(\w+)")
SIZES = re.compile(r"assert_size_stride\((\w+), (\([^()]*\)), (\([^()]*\))")
DROPS = re.compile(r"del (\w+)$")
BEHIND = re.compile(rf"assert_|{PICKS.pattern}|{DROPS.pattern}")  # lines that still belong to the call before them
PRODUCTS = re.compile(
    r"extern_kernels\.(?:mm|addmm|bmm|baddbmm|convolution|_mm_plus_mm)\b|triton_tem_\w*\.run|torch\.ops\.aten\.(?:_scaled_dot_product|(?:convolution|mm|addmm|bmm)\b)|mkldnn\.\w*(?:linear|convolution)"
)


class Argument(NamedTuple):
    """What a half of a step is called with: bytes of the tensor, of one element, and whether it is freed once it is
    not read any more.
    """

    n_bytes: int
    item_bytes: int
    owned: bool


class Generated(NamedTuple):
    peak_bytes: Optional[int]  # without arguments that are not owned; None: sizes are not numbers, or it is no Python
    products: int  # matrix products, convolutions and attentions
    at: str = ""  # the buffer that was allocated last at the peak


def _numbers(text: str) -> Optional[List[int]]:
    parts = [part for part in text.strip("() ").replace(" ", "").split(",") if part]
    return [int(part) for part in parts] if all(part.isdigit() for part in parts) else None


def _n_bytes(shape: str, stride: str, item_bytes: int, align: int) -> Optional[int]:
    sizes, strides = _numbers(shape), _numbers(stride)
    if sizes is None or strides is None:
        return None
    elements = 0 if 0 in sizes else 1 + sum((n - 1) * step for n, step in zip(sizes, strides))
    return -(-elements * item_bytes // align) * align


class _Memory:
    """Buffers by name, while the code is read."""

    def __init__(self, arguments: Dict[str, Argument]):
        self.item = {name: argument.item_bytes for name, argument in arguments.items()}
        self.size = {name: argument.n_bytes for name, argument in arguments.items() if argument.owned}
        self.names: Dict[str, str] = {name: name for name in self.size}  # buffer of each name
        self.live = sum(self.size.values())
        self.peak, self.at = self.live, ""
        self.workspace = 0  # of the library kernel that runs
        self.unread: List[str] = []  # names that are deleted behind it

    def allocate(self, name: str, n_bytes: int, item_bytes: int) -> None:
        self.drop(name)
        self.names[name], self.item[name], self.size[name] = name, item_bytes, n_bytes
        self.live += n_bytes
        self.look(name)

    def end_call(self) -> None:
        """What a call returned is there, and what is deleted behind it goes."""
        self.workspace = 0
        for name in self.unread:
            self.drop(name)
        self.unread.clear()

    def look(self, name: str) -> None:
        if self.live + self.workspace > self.peak:
            self.peak, self.at = self.live + self.workspace, name

    def rename(self, new: str, old: str) -> None:
        self.item[new] = self.item.get(old, 0)
        if old in self.names:
            self.names[new] = self.names.pop(old)

    def drop(self, name: str) -> None:
        buffer = self.names.pop(name, None)
        if buffer is not None and buffer not in self.names.values():
            self.live -= self.size[buffer]


def _body(source: str) -> List[str]:
    """The statements of the function that runs the kernels, without comments."""
    lines = source.splitlines()
    starts = [i for i, line in enumerate(lines) if re.match(r"\s*def call\(", line)]
    if not starts:
        return []
    indent = len(lines[starts[-1]]) - len(lines[starts[-1]].lstrip())
    found = []
    for line in lines[starts[-1] + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        found.append(line.split("  #")[0].strip())
    return [line for line in found if line]


def _in_order(body: List[str], workspaces: Mapping[str, Sequence[int]]) -> Dict[str, Iterator[int]]:
    """What the calls of each name take, one after the other."""
    calls = Counter(match[1] for match in map(LIBRARY.match, body) if match)
    return {
        name: iter(workspaces[name] if len(workspaces[name]) == n else [max(workspaces[name])] * n)
        for name, n in calls.items()
        if any(workspaces.get(name, ()))
    }


def read(
    source: str, arguments: Dict[str, Argument], device_type: str, workspaces: Mapping[str, Sequence[int]] = {}
) -> Generated:
    """The peak of the code's buffers, of the arguments that are owned and of `workspaces` (bytes by name of the op, one
    for each of its runs), and how many products it runs.
    """
    align = CUDA_ALIGN if device_type == "cuda" else 1
    memory, products, body = _Memory(arguments), 0, _body(source)
    if not body:
        return Generated(None, 0)
    taken = _in_order(body, workspaces)
    returned: Dict[str, int] = {}  # by library kernels: bytes of an element, until the size is known
    for line in body:
        products += bool(PRODUCTS.search(line)) and not line.startswith("assert_")  # which says what made the tensor
        if not BEHIND.match(line):
            memory.end_call()
        if match := LIBRARY.match(line):
            memory.workspace = next(taken[match[1]]) if match[1] in taken else 0
            memory.look(match[1])
        if match := ALLOCATES.match(line):
            item = torch.empty(0, dtype=getattr(torch, match[4])).element_size()
            n_bytes = _n_bytes(match[2], match[3], item, align)
            if n_bytes is None:
                return Generated(None, products)
            memory.allocate(match[1], n_bytes, item)
        elif match := RENAMES.match(line):
            memory.rename(match[1], match[2])
        elif match := PICKS.match(line):
            returned[match[1]] = memory.item.get(match[2], 0)
        elif match := CALLS.match(line):
            read_first = next(
                (memory.item[name] for name in re.findall(r"\b\w+\b", line[match.end() :]) if memory.item.get(name)), 0
            )
            returned[match[1]] = memory.item[match[1]] = read_first
        elif (match := SIZES.match(line)) and match[1] in returned:
            n_bytes = _n_bytes(match[2], match[3], returned[match[1]], align)
            if n_bytes is None:
                return Generated(None, products)
            memory.allocate(match[1], n_bytes, returned.pop(match[1]))
        elif match := DROPS.match(line):
            memory.unread.append(match[1])
    return Generated(memory.peak, products, memory.at)


def arguments_of(
    half: fx.GraphModule, residents: Collection[str], strides: Mapping[str, Sequence[int]] = {}
) -> Dict[str, Argument]:
    """The tensors that a half is called with, by the names that the code has for them; `residents` are not freed by
    it. Where the code of the other half returns an argument with other `strides`, it is a copy of what is resident.
    """
    found: Dict[str, Argument] = {}
    counted: Set[int] = set()  # storages: several views of one may be saved
    for node in half.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            is_copy = any(
                hint(n) > 1 and hint(a) != hint(b)
                for n, a, b in zip(value.shape, value.stride(), strides.get(node.name, ()))
            )
            n_bytes = 0 if storage_key(value) in counted else hint(value.untyped_storage().nbytes())
            counted.add(storage_key(value))
            found[node.name] = Argument(n_bytes, value.element_size(), node.name not in residents or is_copy)
    return found
