"""The joint graph as a fusing compiler runs it: the tensors that it materialises are the values, and what makes one of
them from others is an op.

Problem. Inductor fuses: most nodes of a joint graph never see memory, and computing such a node again inside a kernel
that reads its inputs anyway costs nothing. A plan over nodes counts memory that is never taken and saves what a
backward kernel has for free (the fp32 copy of bf16 logits, say).

Method. The joint graph that is planned is torch's own partition, both halves in one graph, nodes that torch computes
again behind the boundary included (`stitched`). In it a node is *inlined* if it is a view, or pointwise with readers
that all inline what they read, within its half of the step. Every other node is *materialised*: matrix products,
convolutions and whatever has a kernel of its own, reductions, what such kernels read, what crosses the boundary,
results. One op for each materialised node, with the inlined nodes between it and the materialised tensors that it
reads; inlined nodes may belong to several ops. Keep-all of this graph is torch's own partition, so a plan begins where
torch stops, and everything that it runs again is what a kernel would have to do.

Invariant: every value of the document is a materialised tensor, or a tuple's part of one; an op reads what its inlined
nodes read. Costs are those of the roofline (the bytes that an op reads and writes), or measured for kernels of
libraries. A pointwise kernel of the backward pass that is the last reader of a tensor of the same layout writes into
it, as Inductor does.

Cost: linear in nodes and edges, but for sets of what inlined nodes read, at most MOST_READS each.
"""

from __future__ import annotations

import operator
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import torch
from torch import fx

from .joint import Entry, Joint, Unsupported, hint, is_scalar, storage_key, tensors_of

# Inductor's own limits (realize_reads_threshold, realize_acc_reads_threshold, realize_opcount_threshold): what exceeds
# them is materialised.
READS_IF_SHARED, MOST_READS, NODES_IF_SHARED = 4, 8, 30

LAUNCH_NS = 2000  # the least that a kernel takes on a GPU
# of one random number: ten rounds of Philox in integers; on an H200 a kernel with a mask takes 10 to 20 us longer for
# 12.6 million of them
RANDOM_FLOPS = 80

# read a part of their first argument
INDEXED = ("aten::embedding", "aten::index", "aten::gather", "aten::index_select", "aten::slice", "aten::select")
INLINED = (
    "prims::inductor_random",
    "prims::inductor_randint",
    "prims::inductor_lookup_seed",
    "prims::iota",
    "aten::embedding",
    "aten::full",
    "aten::clone",
)
READ_INLINED = (
    "aten::cat",
    "aten::sum",
    "aten::mean",
    "aten::var_mean",
    "aten::amax",
    "aten::amin",
    "prims::prepare_softmax_online",
)


def schema_name(node: fx.Node) -> str:
    return node.target._schema.name if isinstance(node.target, torch._ops.OpOverload) else ""


class Fusion:
    """What Inductor fuses, by torch's own lists, which its partitioner goes by too."""

    def __init__(self) -> None:
        from torch._functorch.partitioners import get_default_op_list

        self._fusible = get_default_op_list().fusible_ops

    def reads_inlined(self, node: fx.Node) -> bool:
        """Whether a node computes what it reads inside its own kernel."""
        return (
            getattr(node.target, "overloadpacket", None) in self._fusible
            or schema_name(node) in READ_INLINED
            or schema_name(node) in INLINED
        )

    def is_pointwise(self, node: fx.Node) -> bool:
        """Whether a node can be computed inside its readers' kernels: one tensor, made element by element."""
        value = node.meta.get("val")
        if (
            not isinstance(value, torch.Tensor)
            or schema_name(node) not in INLINED
            and getattr(node.target, "overloadpacket", None) not in self._fusible
        ):
            return False
        if getattr(torch.Tag, "reduction", None) in node.target.tags:
            return False
        largest = max(
            (hint(t.numel()) for n in node.all_input_nodes for _, t in tensors_of(n.meta.get("val"))), default=0
        )
        return hint(value.numel()) >= largest or schema_name(node) in INDEXED


def stitched(fw: fx.GraphModule, bw: fx.GraphModule, num_fwd_outputs: int) -> fx.GraphModule:
    """Both halves of torch's partition as one joint graph. What runs in both is there twice, the second time with
    tensors of its own.
    """
    graph, known = fx.Graph(), {}
    owned: Set[int] = set()
    for node in fw.graph.nodes:
        if node.op != "output":
            known[node] = graph.node_copy(node, known.__getitem__)
            known[node].meta["partitioner_tag"] = "is_forward"
            _refresh(known[node], owned)
    (returned,) = fw.graph.find_nodes(op="output")[0].args
    inputs = _arguments(returned[num_fwd_outputs:], bw)
    second: Dict[fx.Node, fx.Node] = {}
    for node in bw.graph.nodes:
        if node in inputs:
            second[node] = known[inputs[node]]
        elif node.op != "output":
            made = second[node] = graph.node_copy(node, second.__getitem__)
            made.meta["partitioner_tag"] = "is_backward"
            _refresh(made, owned)
    (gradients,) = bw.graph.find_nodes(op="output")[0].args
    results = [known[n] if isinstance(n, fx.Node) else n for n in returned[:num_fwd_outputs]] + [
        second[n] if isinstance(n, fx.Node) else n for n in gradients
    ]
    described = [
        list(torch.utils._pytree.arg_tree_leaves(module.graph.find_nodes(op="output")[0].meta.get("desc", [])))
        for module in (fw, bw)
    ]
    graph.output(tuple(results)).meta["desc"] = described[0][:num_fwd_outputs] + described[1]
    _tangents_behind_primals(graph)
    held = {
        node.target: operator.attrgetter(node.target)(module)
        for module in (fw, bw)
        for node in module.graph.find_nodes(op="get_attr")
    }
    return fx.GraphModule(held, graph, "Stitched")


def _arguments(saved: Sequence[Any], bw: fx.GraphModule) -> Dict[fx.Node, fx.Node]:
    """Which node of the forward half each argument of the backward half is: torch hands over sizes first, then
    tensors, then gradients.
    """
    if any(
        not isinstance(n, fx.Node) or not is_scalar(n) and not isinstance(n.meta.get("val"), torch.Tensor)
        for n in saved
    ):
        raise Unsupported("something saved that is no tensor and no size")
    placeholders = [node for node in bw.graph.nodes if node.op == "placeholder"]
    ordered = [n for n in saved if is_scalar(n)] + [n for n in saved if not is_scalar(n)]
    if len(placeholders) < len(ordered) or any(is_scalar(a) != is_scalar(b) for a, b in zip(ordered, placeholders)):
        raise Unsupported("a backward half whose arguments are not those of its forward half")
    return dict(zip(placeholders, ordered))


def _refresh(made: fx.Node, owned: Set[int]) -> None:
    """Gives a node a tensor of its own where the one it has is another node's: what runs in both halves has the
    first one's, and torch's passes over a graph leave behind tensors of nodes that they replaced. `owned`: the
    storages of all nodes before it.
    """
    values = tensors_of(made.meta.get("val"))
    keys = {storage_key(tensor) for _, tensor in values}
    read = {storage_key(tensor) for n in made.all_input_nodes for _, tensor in tensors_of(n.meta.get("val"))}
    view = isinstance(made.target, torch._ops.OpOverload) and any(
        result.alias_info for result in made.target._schema.returns
    )
    modes = [tensor.fake_mode for _, tensor in values if hasattr(tensor, "fake_mode")]
    if made.op == "call_function" and modes and (keys & owned - read or view and not keys & read):
        untold = [n for n in made.all_input_nodes if "val" not in n.meta]
        if untold:  # torch runs a random op again with its generator's state
            raise Unsupported(f"the operator {untold[0].target}")
        args, kwargs = fx.map_arg((made.args, made.kwargs), lambda n: n.meta["val"])
        with modes[0]:
            made.meta["val"] = made.target(*args, **kwargs)
    owned.update(storage_key(tensor) for _, tensor in tensors_of(made.meta.get("val")))


def _tangents_behind_primals(graph: fx.Graph) -> None:
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for after, node in zip(placeholders, placeholders[1:]):
        after.append(node)


class KernelJoint(Joint):
    """A joint graph whose ops are what a fusing compiler runs. `module` is `stitched`; random ops that are no
    functions of a seed run once.
    """

    writes_forward = True
    _sources: Dict[fx.Node, List[int]] = {}  # of inlined nodes: the materialised values behind them

    def __init__(
        self,
        module: fx.GraphModule,
        num_fwd_outputs: int,
        static_inputs: Optional[Sequence[int]] = None,
        *,
        roofline: str,
        ns_per_byte: float = 0.0,
        **more: Any,
    ):
        costs = more.pop("costs", None)
        more.update(replay=False, states_of=set(), copies_of=set(), pin_readers=True)
        super().__init__(module, num_fwd_outputs, static_inputs, **more)
        self.fusion = Fusion()
        self._contract()
        self._price(roofline, costs or {}, ns_per_byte)
        self._write_in_place()
        self.document.update(values=self._documents, nodes=self._nodes, outputs=self._outputs)

    # ---- which nodes are inlined ----

    def _contract(self) -> None:
        """The document once more, with materialised tensors for values."""
        self._maker: Dict[int, int] = {value: op for op, row in enumerate(self._nodes) for value in row["out"]}
        self._find_inlined()
        fine, entries, documents = self._nodes, self.ops, self._documents
        index: Dict[int, int] = {}
        kept_values = [v for v in range(len(documents)) if self._maker.get(v) not in self._inlined]
        for value in kept_values:
            index[value] = len(index)
        self._documents = [dict(documents[v]) for v in kept_values]
        for row in self._documents:
            if "alias" in row:
                row["alias"] = index[self._base(row["alias"], documents)]
        self._members: List[List[fx.Node]] = []
        self._nodes, self.ops = [], []
        for op, (entry, row) in enumerate(zip(entries, fine)):
            if op in self._inlined:
                continue
            if entry.kind == "boundary":
                self.boundary = len(self.ops)
            members = self._cone(op, fine)
            reads = dict.fromkeys(index[v] for value in row["in"] for v in self._resolved[value])
            flops = sum(self._flops(entries[m], fine[m]) for m in [op, *members])
            fused = (
                entry.node is not None
                and entry.kind == "node"
                and self.fusion.reads_inlined(entry.node)
                and not row.get("pinned")
            )
            self.ops.append(Entry("kernel", entry.node) if fused else entry)
            self._nodes.append({**row, "in": list(reads), "out": [index[v] for v in row["out"]], "flops": flops})
            self._members.append([entries[m].node for m in members])  # type: ignore[misc]
        self._outputs = list(dict.fromkeys(index[v] for value in self._outputs for v in self._resolved[value]))
        self._sources = {
            node: [index[v] for v in self._resolved[value]]
            for (node, position), value in self.values.items()
            if position == 0 and self._maker.get(value) in self._inlined
        }
        self._inlined_before = {entries[m].node: [entries[n].node for n in self._cone(m, fine)] for m in self._inlined}
        self.values = {key: index[value] for key, value in self.values.items() if value in index}

    @staticmethod
    def _flops(entry: Entry, row: Dict[str, Any]) -> int:
        random = entry.node is not None and schema_name(entry.node) in (
            "prims::inductor_random",
            "prims::inductor_randint",
        )
        return row["flops"] * (RANDOM_FLOPS if random else 1)

    @staticmethod
    def _base(value: int, documents: List[Dict[str, Any]]) -> int:
        return documents[value].get("alias", value)

    def _find_inlined(self) -> None:
        """`_inlined`: ops that no kernel writes to memory; `_resolved`: the materialised values behind each value."""
        real = self._must_be_real()
        self._inlined: Set[int] = set()
        self._resolved: Dict[int, Tuple[int, ...]] = {v: (v,) for v in range(len(self._documents))}
        readers = [0] * len(self._documents)
        for row in self._nodes:
            for value in row["in"]:
                readers[value] += 1
        size: Dict[int, int] = {}
        for op, (entry, row) in enumerate(zip(self.ops, self._nodes)):
            if real[op]:
                continue
            reads = tuple(dict.fromkeys(v for value in row["in"] for v in self._resolved[value]))
            view = row["class"] == "view"
            size[op] = (0 if view else 1) + sum(size.get(self._maker.get(value, -1), 0) for value in row["in"])
            shared = readers[row["out"][0]] > 1
            if not view and (
                len(reads) > MOST_READS or shared and (len(reads) > READS_IF_SHARED or size[op] > NODES_IF_SHARED)
            ):
                del size[op]
                continue
            self._inlined.add(op)
            self._resolved[row["out"][0]] = reads

    def _must_be_real(self) -> List[bool]:
        """By op: whether something needs what it makes in memory. Seen from the last op: a view is needed for what
        is read of it.
        """
        real = [True] * len(self._nodes)
        wanted = set(self._outputs)
        for op in range(len(self._nodes) - 1, -1, -1):
            entry, row = self.ops[op], self._nodes[op]
            node = entry.node
            simple = (
                entry.kind == "node"
                and len(row["out"]) == 1
                and not row.get("pinned")
                and isinstance(node.meta.get("val"), torch.Tensor)
            )  # type: ignore[union-attr]
            view = simple and row["class"] == "view"
            needed = False
            if simple and (view or self.fusion.is_pointwise(node)):  # type: ignore[arg-type]
                needed = row["out"][0] in wanted or any(is_scalar(user) for user in node.users)  # type: ignore[union-attr]
                real[op] = needed and not view
            for value in row["in"]:
                maker = self._maker.get(value)
                crosses = maker is not None and self._nodes[maker]["phase"] != row["phase"]
                inlines = entry.kind == "node" and (
                    not real[op] if row["class"] == "view" else self.fusion.reads_inlined(node)
                )  # type: ignore[arg-type]
                if crosses or not inlines or view and needed:
                    wanted.add(value)
        return real

    def _cone(self, op: int, fine: List[Dict[str, Any]]) -> List[int]:
        """The inlined ops between an op and the materialised values that it reads, in the graph's order."""
        found: Set[int] = set()
        stack = [op]
        while stack:
            for value in fine[stack.pop()]["in"]:
                maker = self._maker.get(value)
                if maker in self._inlined and maker not in found:
                    found.add(maker)  # type: ignore[arg-type]
                    stack.append(maker)  # type: ignore[arg-type]
        return sorted(found)

    # ---- what ops cost and take ----

    def _price(self, roofline: str, measured: Dict[str, int], ns_per_byte: float) -> None:
        """By the roofline; as measured for kernels of libraries, and by the measured bandwidth for fused ones."""
        self.document.update(
            values=self._documents,
            nodes=[{k: v for k, v in row.items() if k != "cost"} for row in self._nodes],
            outputs=self._outputs,
        )
        graph = self.graph().prepare(roofline)
        for op, (entry, row) in enumerate(zip(self.ops, self._nodes)):
            cost = graph.op(op)["cost"]
            if entry.kind == "kernel" and cost and ns_per_byte:
                cost = max(cost, LAUNCH_NS + int(ns_per_byte * self._traffic(row)))
            elif entry.kind == "node" and entry.node is not None:
                cost = measured.get(entry.node.name, cost)
            row["cost"] = row.get("cost", cost)

    def _traffic(self, row: Dict[str, Any]) -> int:
        """Bytes that a kernel reads and writes."""
        return sum(
            min(self._documents[v]["size"], self._documents[self.root(v)].get("storage", self._documents[v]["size"]))
            for v in [*row["in"], *row["out"]]
        )

    def _write_in_place(self) -> None:
        """A pointwise kernel of the backward pass writes into a tensor that nothing reads any more."""
        last: Dict[int, int] = {}
        for op, row in enumerate(self._nodes):
            for value in row["in"]:
                last[self.root(value)] = op
        made = {value for row in self._nodes for value in row["out"]}
        held = (
            {self.root(v) for v in self._outputs}
            | {self.root(v) for v in self._nodes[self.boundary]["in"]}
            | set(self._nodes[self.boundary]["out"])
        )
        tensors = {
            value: tensors_of(node.meta.get("val"))[0][1]
            for (node, position), value in self.values.items()
            if isinstance(node.meta.get("val"), torch.Tensor)
        }
        for op in range(self.boundary + 1, len(self._nodes)):
            entry, row = self.ops[op], self._nodes[op]
            if (
                entry.kind != "kernel"
                or not self.fusion.is_pointwise(entry.node)
                or "storage" not in self._documents[row["out"][0]]
            ):  # type: ignore[arg-type]
                continue
            out = row["out"][0]
            for value in row["in"]:
                root = self.root(value)
                if (
                    root in made
                    and root not in held
                    and last[root] == op
                    and value in tensors
                    and _same_layout(tensors[value], tensors[out])
                ):
                    last[root] = max(last.get(out, op), op)
                    self._alias(out, root)
                    if out in held:
                        held.add(root)
                    break

    def _alias(self, value: int, root: int) -> None:
        self._documents[value].pop("storage")
        self._documents[value]["alias"] = root
        for row in self._documents:
            if row.get("alias") == value:
                row["alias"] = root

    # ---- for lowering ----

    def members(self, op: int) -> List[fx.Node]:
        return self._members[op]

    def inlined(self, node: fx.Node) -> Optional[List[fx.Node]]:
        return self._inlined_before.get(node)

    def sources(self, node: fx.Node) -> List[int]:
        return self._sources[node] if node in self._sources else [self.value(node)]


def _same_layout(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether element i of one may lie where element i of the other lies."""

    def layout(t: torch.Tensor) -> List[Tuple[int, int]]:
        return [(hint(n), hint(step)) for n, step in zip(t.shape, t.stride()) if hint(n) != 1]

    def dense(t: torch.Tensor) -> bool:
        expected = 1
        for n, step in reversed(layout(t)):
            if step != expected:
                return False
            expected *= n
        return True

    return a.element_size() == b.element_size() and (
        layout(a) == layout(b) or dense(a) and dense(b) and hint(a.numel()) == hint(b.numel())
    )
