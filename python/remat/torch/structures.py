"""What people checkpoint by hand, found in a joint graph: places to start a search from.

Problem. Hand-written checkpointing knows where the blocks of a model are: their inputs are kept, and inside a block
either everything runs again, or everything but attention, or but products, too (selective checkpointing). A search that moves
one value at a time from torch's own partition does not come there: half of the steps towards it cost more than they
give.

Method. A value through which the whole forward pass goes (no other large value lives across the position behind it) is
a *waist*: the residual stream before and behind attention, the result of a residual block. Every n-th waist that has
several readers, and the last one, is kept. Forward nodes before the last waist are tagged for torch's own partitioner:
kept ones must be saved, others run again; what is behind it is left to torch's rules. Attention is kept, too, or
products, attention and statistics (results much smaller than what they are computed from). Random ops and those that
are not torch's own are always kept.

Invariant: tags are all that changes; torch's partitioner decides, and puts what runs again in its own order. Cost:
linear in nodes and edges."""

from __future__ import annotations

import functools
import operator
from typing import Any, Dict, FrozenSet, List, Set

import torch
from torch import fx

from .joint import hint, is_of_seeds, is_random, is_scalar, tensors_of
from .kernels import schema_name

SMALL = 16  # a value that is so many times smaller than the median product is not large
STATISTICS = 4  # a result that is so many times smaller than what it is computed from


def _bytes(node: fx.Node) -> int:
    return sum(hint(t.numel()) * t.element_size() for _, t in tensors_of(node.meta.get("val")))


def is_view(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and any(
        result.alias_info for result in node.target._schema.returns
    )


def is_torchs(node: fx.Node) -> bool:
    """Whether an op is one of torch's own, which have no effects but their results: others run once."""
    target = node.target
    return (
        isinstance(target, torch._ops.OpOverload)
        and target.namespace in ("aten", "prims")
        and not target._schema.is_mutable
        or target is operator.getitem
    )


@functools.lru_cache(maxsize=None)
def _products() -> FrozenSet[Any]:
    """What torch's partitioner calls compute-intensive. It makes the list anew whenever it is asked."""
    from torch._functorch.partitioners import get_default_op_list

    return frozenset(get_default_op_list().compute_intensive_ops)


def _is_product(node: fx.Node) -> bool:
    return getattr(node.target, "overloadpacket", None) in _products()


def _is_attention(node: fx.Node) -> bool:
    """An op that may drop something, and does not (joint.is_random)."""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not is_random(node)


def forward_nodes(graph: fx.Graph, num_fwd_outputs: int) -> List[fx.Node]:
    """The nodes that the results of the forward pass are computed with, in order."""
    results = graph.find_nodes(op="output")[0].args[0]
    stack = [node for node in results[:num_fwd_outputs] if isinstance(node, fx.Node)]
    found: Set[fx.Node] = set()
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(node.all_input_nodes)
    return [node for node in graph.nodes if node in found and node.op == "call_function" and not is_scalar(node)]


def _base(node: fx.Node, bases: Dict[fx.Node, fx.Node]) -> fx.Node:
    """The node whose memory a view shows."""
    return (
        bases.get(node.all_input_nodes[0], node.all_input_nodes[0]) if is_view(node) and node.all_input_nodes else node
    )


def waists(forward: List[fx.Node]) -> List[fx.Node]:
    """The values with several readers that are the only large one behind some position of the forward pass before
    its last product, in order.
    """
    bases: Dict[fx.Node, fx.Node] = {}
    last: Dict[fx.Node, int] = {}
    for i, node in enumerate(forward):
        bases[node] = _base(node, bases)
        for read in node.all_input_nodes:
            last[bases.get(read, read)] = i
    products = sorted(_bytes(node) for node in forward if _is_product(node))
    large = products[len(products) // 2] // SMALL if products else 1
    live: Set[fx.Node] = set()
    dying: Dict[int, List[fx.Node]] = {}
    found: Dict[fx.Node, None] = {}
    # the loss has waists, too, and is no block
    end = max((i for i, node in enumerate(forward) if _is_product(node)), default=0)
    for i, node in enumerate(forward[:end]):
        if (
            bases[node] is node
            and isinstance(node.meta.get("val"), torch.Tensor)
            and _bytes(node) >= large
            and last.get(node, i) > i
        ):
            live.add(node)
            dying.setdefault(last[node], []).append(node)
        live.difference_update(dying.get(i, ()))
        if len(live) == 1:
            (alone,) = live
            if len({user for user in alone.users if user in bases}) > 1:
                found[alone] = None
    return list(found)


def look_up_seeds(module: fx.GraphModule) -> None:
    """A seed is looked up among all of them inside the kernel that wants it. To torch's cut 24 seeds are less than the
    tensor of 25; saved by itself, each has a kernel of its own that makes one number.
    """
    from torch.utils.checkpoint import CheckpointPolicy

    for node in module.graph.nodes:
        if schema_name(node) == "prims::inductor_lookup_seed" and "recompute" not in node.meta:
            node.meta["recompute"] = CheckpointPolicy.PREFER_RECOMPUTE


def tag(module: fx.GraphModule, num_fwd_outputs: int, every: int, keep: str) -> bool:
    """Tags a joint graph: every n-th waist is kept, and "products", "attention" or "nothing" besides. False: it has no
    waists to keep, tags of its own, or no attention to run again.
    """
    from torch.utils.checkpoint import CheckpointPolicy

    forward = forward_nodes(module.graph, num_fwd_outputs)
    through = waists(forward)
    if len(through) < 2 or any("recompute" in node.meta for node in module.graph.nodes):  # the user's own tags stand
        return False
    if keep == "nothing" and not any(map(_is_attention, forward)):  # then "attention" is the same
        return False
    kept = {*through[::every], through[-1]}
    for node in forward[: forward.index(through[-1]) + 1]:
        source: Any = node.args[0] if node.target is operator.getitem else node
        statistic = STATISTICS * _bytes(node) < sum(map(_bytes, source.all_input_nodes)) and not is_of_seeds(source)
        fixed = is_random(source) or not is_torchs(source) or keep != "nothing" and _is_attention(source)
        save = node in kept or fixed or keep == "products" and (_is_product(source) or statistic)
        node.meta["recompute"] = (
            CheckpointPolicy.MUST_SAVE if save and not is_view(node) else CheckpointPolicy.PREFER_RECOMPUTE
        )
    return True
