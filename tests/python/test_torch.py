"""Training steps under a budget: the same numbers to the last bit, the predicted peak to the last byte; what is
refused, and how.
"""

import copy
import gc
import gzip
import json
import os
import subprocess
import sys
import warnings

import pytest
from conftest import ROOT

torch = pytest.importorskip("torch")
sys.path.insert(0, str(ROOT / "bench"))
import torch_models  # noqa: E402
from torch import nn  # noqa: E402

import remat  # noqa: E402
import remat.torch  # noqa: E402

SEARCH = {"cache": False, "work": 200000}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
    gc.collect()


def mlp(depth=6, width=32, dropout=0.0):
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU(), nn.Dropout(dropout))]
    return nn.Sequential(*layers)


def square(y):
    return y.square().mean()


@pytest.mark.parametrize(
    "name, smaller, budget",
    [
        ("densenet", {"blocks": (2, 2)}, "45%"),
        ("mixer", {}, "60%"),
        ("lstm", {"length": 4}, "70%"),
        ("dropout1", {}, "60%"),
        ("dropout8", {}, "50%"),
    ],
)
def test_gradients_buffers_and_generators_are_identical_and_the_peak_is_the_plan_s(name, smaller, budget):
    model, args, keywords = torch_models.MODELS[name](**smaller)
    result = remat.torch.check(model, *args, keywords=keywords, budget=budget, verbose=False, **SEARCH)
    assert result.planned and result.different == []
    assert result.measured_bytes == result.predicted_bytes < result.keep_all_bytes
    report = remat.torch.last_report()
    assert report["recomputed_ops"] > 0 and report["peak_bytes"] <= report["budget_bytes"]


def test_several_steps_update_running_statistics_once_each_and_draw_the_same_random_numbers():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Conv2d(8, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Conv2d(8, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
    )
    result = remat.torch.check(
        model, torch.randn(8, 3, 16, 16), budget="min", loss=square, steps=3, verbose=False, **SEARCH
    )
    assert result and result.reports[-1]["recomputed_ops"] > 0


def test_random_ops_can_be_pinned():
    model = mlp(8, 128, 0.3)
    result = remat.torch.check(
        model, torch.randn(512, 128), budget="min", loss=square, verbose=False, random="pin", **SEARCH
    )
    assert result and result.reports[-1]["replayed_ops"] == 0 and result.reports[-1]["pinned_ops"] >= 8
    replayed = remat.torch.check(model, torch.randn(512, 128), budget="min", loss=square, verbose=False, **SEARCH)
    assert replayed and replayed.reports[-1]["replayed_ops"] > 0 and replayed.predicted_bytes < result.predicted_bytes


def step(model, x, **options):
    compiled = torch.compile(model, backend="remat", options={**SEARCH, **options})
    return compiled, square(compiled(x))


def test_a_budget_below_the_least_is_refused_before_training_with_what_would_do():
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught:
        step(mlp(), torch.randn(64, 32), budget="1%")
    assert isinstance(caught.value.inner_exception, remat.Infeasible)
    line = str(caught.value.inner_exception)
    assert "at least" in line and "the least that was found to do" in line and "needed at" in line
    assert [frame.name for frame in caught.traceback][-1] == "backend"  # nothing of what is below it
    wide = nn.Sequential(nn.Linear(16, 512), nn.Tanh(), nn.Linear(512, 16))
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="needed at tanh_backward in 1 "):  # the module
        step(wide, torch.randn(512, 16), budget="1%")
    with pytest.raises(remat.Infeasible):
        remat.torch.check(mlp(), torch.randn(64, 32), budget=1000, loss=square, **SEARCH)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"budget": "lots"}, "lots"),
        ({"budjet": 1}, "budjet"),
        ({"kernels": "fused"}, "inductor"),
        ({"random": "maybe"}, "replay"),
        ({"strategy": "guess"}, "guess"),
        ({"reserve": "50%"}, "bytes"),
        ({"budget": -5}, "-5"),
        ({"budget": 0.5}, "0.5 is not a number of bytes"),
        ({"budget": True}, "True is not"),
        ({"budget": 2**70}, "too many"),
        ({"reserve": 1.5}, "1.5 is not"),
        ({"budget": "90%", "time": "x"}, "'x' is not a number of seconds"),
    ],
)
def test_wrong_options_are_named(options, says):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=says):
        step(mlp(2), torch.randn(4, 32), **options)


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y, x)
        return y

    @staticmethod
    def backward(ctx, gradient):
        y, x = ctx.saved_tensors
        return gradient * y * 0.5 + x


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = Exp.apply(torch.tanh(layer(x)))
        return x


def test_a_budget_that_the_least_fits_is_met():
    model, x = Custom(), torch.randn(128, 64)
    least = remat.torch.trace(model, x).plan("min", work=SEARCH["work"]).peak_bytes
    for more in (0, 4000, 16000, 30000):  # a search for the budget alone misses one of them
        result = remat.torch.check(model, x, loss=square, budget=least + more, verbose=False, **SEARCH)
        assert result and result.reports[-1]["budget_bytes"] == least + more >= result.measured_bytes


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(8, 4, sparse=True), nn.Linear(4, 4)

    def forward(self, tokens):
        return self.head(self.embed(tokens)).sin()


class Writing(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = mlp(4)

    def forward(self, x):
        return self.layers(x.add_(1))


def test_check_leaves_inputs_alone_and_says_what_it_cannot_check():
    x = torch.randn(64, 32)
    before = x.clone()
    assert remat.torch.check(Writing(), x, budget="90%", loss=square, steps=2, verbose=False, **SEARCH) and torch.equal(
        x, before
    )
    assert remat.torch.check(
        torch.compile(mlp(4), backend="remat"), x, budget="90%", loss=square, verbose=False, **SEARCH
    )
    result = remat.torch.check(Sparse(), torch.arange(8), budget="90%", loss=square, steps=2, verbose=False, **SEARCH)
    assert result.identical and not result.planned and "sparse" in str(result)
    model = Sparse()
    model(torch.arange(8)).sum().backward()
    step(model, torch.arange(8), budget="90%")[1].backward()  # beside a sparse gradient that exists
    result = remat.torch.check(
        nn.LSTM(4, 4), torch.randn(3, 2, 4), budget="90%", loss=lambda y: square(y[0]), verbose=False, **SEARCH
    )
    assert result.identical and not result.planned and "Dynamo compiled nothing" in str(result)
    for model in (mlp(2).requires_grad_(False), lambda y: y):
        with pytest.raises(remat.UsageError):
            remat.torch.check(model, x, budget="90%", verbose=False)


def test_trace_and_profile_refuse_in_one_line():
    x = torch.randn(8, 32)
    graph = remat.torch.trace(torch.compile(mlp(2), backend="remat"), x, loss=square)
    assert graph.digest == remat.torch.trace(mlp(2), x, loss=square).digest
    for arguments, says in (((graph, "tpu"), "no device 'tpu'"), ((remat.load("zoo:f"), "cpu"), "remat.torch.trace")):
        with pytest.raises(remat.UsageError, match=says):
            remat.torch.profile(*arguments)
    with pytest.raises(remat.UsageError, match="repeat=0"):
        remat.torch.profile(graph, "cpu", repeat=0)


def test_eval_mode_and_no_gradients_run_as_they_are():
    model, x = mlp(3, dropout=0.5).eval(), torch.randn(8, 32)
    compiled = torch.compile(model, backend="remat", options={"budget": "50%"})
    with torch.no_grad():
        assert torch.equal(compiled(x), model(x))
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    assert torch.equal(compiled(x), model(x)) and not compiled(x).requires_grad


def test_retain_graph_second_backward_and_double_backward():
    model, x = mlp(4, 32, 0.2), torch.randn(256, 32)
    compiled, loss = step(model, x, budget="80%")
    loss.backward(retain_graph=True)
    once = [p.grad.clone() for p in model.parameters()]
    loss.backward()
    assert all(torch.equal(p.grad, 2 * g) for p, g in zip(model.parameters(), once))
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    with pytest.raises(RuntimeError, match="double backward"):
        torch.autograd.grad(square(compiled(x)), list(model.parameters()), create_graph=True)[0].sum().backward()


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = x + nn.functional.dropout(
                nn.functional.gelu(nn.functional.layer_norm(layer(x), (64,)).repeat(1, 4)), 0.3
            ).view(-1, 4, 64).sum(1)
        return x


def test_a_retained_graph_keeps_its_backward_when_the_plan_changes():
    def train(model, compiled, x):
        torch.manual_seed(1)
        first = compiled(x)
        square(first).backward(retain_graph=True)
        # what is saved is another tensor then
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            second = compiled(x)  # gradients exist now: planned again
        first.sum().backward()
        second.sum().backward()
        return [p.grad for p in model.parameters()]

    model, x = Wide(), torch.randn(128, 64)
    plain = train(twin := copy.deepcopy(model), twin, x)
    before = len(remat.torch.reports())
    found = train(model, torch.compile(model, backend="remat", options={"budget": "60%", **SEARCH}), x)
    first, second = remat.torch.reports()[before:]
    assert first["saved_bytes"] != second["saved_bytes"] and all(map(torch.equal, plain, found))


def test_gradients_accumulate_and_inputs_get_theirs():
    model = mlp(4)
    square(model(torch.randn(16, 32))).backward()
    x = torch.randn(256, 32, requires_grad=True)
    assert remat.torch.check(model, x, budget="80%", loss=square, steps=2, verbose=False, **SEARCH)


def test_nested_compile():
    inner = torch.compile(mlp(3), backend="remat", options={"budget": None})

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.head = inner, nn.Linear(32, 4)

        def forward(self, x):
            return self.head(self.inner(x))

    model = Outer()
    compiled, loss = step(model, torch.randn(128, 32), budget="95%")
    loss.backward()
    assert all(p.grad is not None for p in model.parameters())


def test_dynamic_shapes_are_planned_at_the_sizes_at_hand():
    model = mlp(6, 32, 0.2)
    remat.torch.reporting._warned.clear()
    compiled = torch.compile(model, backend="remat", options={"budget": "70%", **SEARCH}, dynamic=True)
    reference = torch.compile(model, backend="aot_eager_default_partitioner", dynamic=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in (256, 100, 300):
            x, found = torch.randn(n, 32), []
            for step in (reference, compiled):
                torch.manual_seed(n)
                model.zero_grad()
                square(step(x)).backward()
                found.append([p.grad.clone() for p in model.parameters()])
            assert all(torch.equal(a, b) for a, b in zip(*found))
    assert sum("dynamic shapes: planned for the sizes at hand" in str(w.message) for w in caught) == 1
    report = remat.torch.last_report()
    assert report["planned"] and report["recomputed_ops"] > 0 and report["peak_bytes"] <= report["budget_bytes"]


def test_a_batch_size_that_changes_is_planned_again_without_being_asked():
    model = mlp(6, 32)
    compiled = torch.compile(model, backend="remat", options={"budget": "70%", **SEARCH})
    for n in (256, 100, 300):
        model.zero_grad()
        x = torch.randn(n, 32)
        square(compiled(x)).backward()
        ours = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        square(model(x)).backward()
        assert all(torch.allclose(p.grad, g, atol=1e-6) for p, g in zip(model.parameters(), ours))
    assert remat.torch.last_report()["planned"]


def test_what_is_not_understood_gets_torch_s_partition_and_one_warning():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    module_fails = remat.torch.joint.Joint

    def refuse(*args, **kwargs):
        raise remat.torch.Unsupported("something new")

    remat.torch.reporting._warned.clear()
    remat.torch.planning.Joint = refuse
    try:
        compiled = torch.compile(model, backend="remat", options={"budget": "99%"}, dynamic=False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for n in (5, 6, 7):
                square(compiled(torch.randn(n, 8))).backward()
    finally:
        remat.torch.planning.Joint = module_fails
    lines = [str(w.message) for w in caught if "remat" in str(w.message)]
    assert len(lines) == 1 and "something new" in lines[0] and "torch's own partition" in lines[0]
    assert remat.torch.last_report()["planned"] is False
    assert all(p.grad.abs().sum() > 0 for p in model.parameters())


def test_a_torch_that_describes_its_graphs_otherwise_keeps_its_own_partition(monkeypatch):
    monkeypatch.setitem(remat.torch.joint.KNOWN, "backward result", ("SomethingElse",))
    with pytest.warns(UserWarning, match="a backward result of kind GradAOTOutput"):
        _, loss = step(mlp(2), torch.randn(64, 32), budget="50%")
    loss.backward()
    report = remat.torch.last_report()
    assert report["planned"] is False and report.keys() == remat.torch.reporting.EMPTY.keys()
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="not planned"):
        step(mlp(2), torch.randn(64, 32), budget="50%", strict=True)


def test_plans_are_cached_on_disk_and_bad_files_are_not_trusted(tmp_path):
    model, x = mlp(6, 64), torch.randn(512, 64)
    options = {"budget": "70%", "cache": str(tmp_path), "work": 1000}
    for expected in (False, True):
        torch._dynamo.reset()
        torch.compile(model, backend="remat", options=options)(x)
        assert remat.torch.last_report()["cached"] is expected
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"not a plan")
    torch._dynamo.reset()
    torch.compile(model, backend="remat", options=options)(x)
    assert remat.torch.last_report()["cached"] is False


def test_reserve_counts_against_the_budget():
    x = torch.randn(256, 32)
    step(mlp(), x, budget=None)
    keep_all = remat.torch.last_report()["keep_all_peak_bytes"]
    torch._dynamo.reset()
    step(mlp(), x, budget=keep_all + 4096, reserve=4096)
    assert (
        remat.torch.last_report()["recomputed_ops"] == 0 and remat.torch.last_report()["peak_bytes"] == keep_all + 4096
    )
    torch._dynamo.reset()
    step(mlp(), x, budget=keep_all + 4095, reserve="4KiB")
    assert remat.torch.last_report()["peak_bytes"] <= keep_all + 4095


def test_a_trace_needs_no_memory_scales_with_the_batch_and_is_a_file_for_the_program(tmp_path):
    with torch.device("meta"):
        model = mlp(4, 4096, 0.1)
        x = torch.empty(64, 4096)
    graph = remat.torch.trace(model, x, loss=square, name="wide")
    assert graph.info()["resident_bytes"] == 4 * (4096 * 4096 + 4096) * 4 + x.numel() * 4
    assert graph.document["batch"] == 64
    larger = remat.torch.trace(model, torch.empty(96, 4096, device="meta"), loss=square)
    grown = [(v["storage"] + 32 * v.get("storage_per_batch", 0)) for v in graph.document["values"] if "storage" in v]
    assert grown == [v["storage"] for v in larger.document["values"] if "storage" in v]
    graph.save(tmp_path / "wide.json.gz")
    assert remat.load(tmp_path / "wide.json.gz").digest == graph.digest
    written = json.loads(gzip.decompress((tmp_path / "wide.json.gz").read_bytes()))
    assert written["batch"] == 64 and any("size_per_batch" in value for value in written["values"])
    program = os.environ.get("REMAT", str(ROOT / "build" / "plain" / "remat"))
    done = subprocess.run(
        [program, "plan", str(tmp_path / "wide.json.gz"), "--budget", "min", "--work", "20000", "--json"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert {node["op"] for node in graph.document["nodes"]} >= {"remat.boundary", "remat.rng_state"}
    assert all(p.device.type == "meta" for p in model.parameters())


def test_a_traced_graph_is_the_one_that_is_run():
    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(3, 8, 3),
                nn.BatchNorm2d(8),
                nn.ReLU(inplace=True),
                nn.Dropout(0.1),
                nn.Conv2d(8, 8, 3),
                nn.Flatten(),
            )

        def forward(self, x):
            return square(self.layers(x))

    model, x = Step(), torch.randn(4, 3, 16, 16)
    traced = remat.torch.trace(model, x, batch_dim=None)
    result = remat.torch.check(model, x, budget=None, verbose=False)
    assert result.keep_all_bytes == traced.info()["keep_all_peak_bytes"] == result.measured_bytes


def test_a_plan_can_use_measured_costs():
    result = remat.torch.check(
        mlp(6, 64, 0.1), torch.randn(512, 64), budget="60%", loss=square, verbose=False, costs="measure", **SEARCH
    )
    assert result and result.reports[-1]["cost_model"] == "given" and result.measured_bytes == result.predicted_bytes


def test_a_profile_has_a_time_for_every_op_that_makes_something():
    model = mlp(3)
    graph = remat.torch.trace(model, torch.randn(64, 32), loss=square, batch_dim=None)
    timed = remat.torch.profile(graph, "cpu", repeat=1)
    ops = [timed.op(i) for i in range(timed.n_ops)]
    assert timed.cost_model == "given" and all(
        (op["cost"] > 0) == (op["class"] != "view" and op["target"][:6] != "remat.") for op in ops
    )
    with pytest.raises(remat.UsageError, match="no result needs a gradient|nothing to plan"):
        remat.torch.trace(model.requires_grad_(False), torch.randn(4, 32), loss=square)


class TwoGraphs(nn.Module):
    """A graph break in the middle: two graphs in one step."""

    def __init__(self):
        super().__init__()
        self.first, self.second = mlp(6, 64, 0.1), mlp(3, 64)

    def forward(self, x):
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.second(x)


def test_graphs_of_one_step_share_the_budget():
    model, x = TwoGraphs(), torch.randn(512, 64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        remat.torch.reporting._warned.clear()
        result = remat.torch.check(model, x, budget="60%", loss=square, steps=3, verbose=False, **SEARCH)
    assert result.identical and result.planned
    assert sum("2 graphs: planned together" in str(w.message) for w in caught) == 1
    first, second = [r for r in result.reports if r.get("graphs") == 2][:2]
    assert first["step_peak_bytes"] <= first["budget_bytes"] == first["step_keep_all_bytes"] * 60 // 100
    assert first["later_bytes"] > 0 and first["recomputed_ops"] > 0 and second["graph_index"] == 1


def test_the_peak_of_a_step_of_two_graphs_is_never_above_what_was_predicted():
    model, x = TwoGraphs(), torch.randn(512, 64)
    compiled = torch.compile(model, backend="remat", options={"budget": "50%", **SEARCH})
    for _ in range(2):
        model.zero_grad()
        square(compiled(x)).backward()
    model.zero_grad()
    meter = remat.torch.lower.Meter()
    remat.torch.lower.meter[:] = [meter]
    try:
        square(compiled(x)).backward()
    finally:
        remat.torch.lower.meter.clear()
    predicted = remat.torch.reports()[-2]["step_peak_bytes"]
    # what the first graph returned counts to the end, whoever holds it
    assert 0.85 * predicted < meter.peak_bytes <= predicted


def test_gradients_that_exist_before_the_step_are_counted():
    model, x = mlp(6, 64), torch.randn(512, 64)
    compiled, loss = step(model, x, budget="70%")
    alone = remat.torch.last_report()
    loss.backward()
    square(compiled(x)).backward()
    counted = remat.torch.last_report()
    gradients = sum(p.grad.untyped_storage().nbytes() for p in model.parameters())
    assert (
        counted["existing_gradient_bytes"] == gradients
        and counted["resident_bytes"] == alone["resident_bytes"] + gradients
    )
    assert counted["peak_bytes"] <= counted["budget_bytes"]


def test_forward_passes_without_a_backward_are_forgotten():
    model, x = mlp(4, 64), torch.randn(256, 64)
    compiled, loss = step(model, x, budget="80%")
    for _ in range(5):
        compiled(x)
    loss.backward()
    square(compiled(x)).backward()
    assert len(remat.torch.steps.of(torch.device("cpu")).pending()) == 0


class Mixed(nn.Module):
    """Tied weights, a frozen layer, channels last, autocast, an in-place op, two results."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(32, 16), nn.Linear(16, 32, bias=False)
        self.head.weight = self.embed.weight
        self.frozen = nn.Linear(16, 16).requires_grad_(False)
        self.conv = nn.Sequential(
            *(nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(inplace=True)) for _ in range(4))
        )

    def forward(self, tokens):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = self.frozen(self.embed(tokens))
            y = self.conv(x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)).permute(0, 2, 3, 1)
            return self.head(y).float().logsumexp(-1).mean(), y


def test_tied_and_frozen_weights_channels_last_autocast_and_two_results():
    result = remat.torch.check(Mixed(), torch.randint(0, 32, (4, 16, 16)), budget="85%", verbose=False, **SEARCH)
    assert result.different == [] and result.planned and result.measured_bytes <= result.predicted_bytes


def test_ops_that_write_fall_back_and_are_run_once():
    calls = []
    with torch.library._scoped_library("remat_test", "FRAGMENT"):

        @torch.library.custom_op("remat_test::count", mutates_args=("log",))
        def count(x: torch.Tensor, log: torch.Tensor) -> torch.Tensor:
            log += 1
            calls.append(1)
            return x * 2

        count.register_fake(lambda x, log: torch.empty_like(x))
        model, log, x = mlp(3), torch.zeros(1), torch.randn(64, 32)

        class Counting(nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, x, log):
                return self.model(count(x, log))

        compiled = torch.compile(Counting(), backend="remat", options={"budget": "80%", **SEARCH})
        square(compiled(x, log)).backward()
        assert log.item() == 1 and len(calls) == 1
        expected = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        square(model(x * 2)).backward()
        assert all(torch.allclose(p.grad, g) for p, g in zip(model.parameters(), expected))


def fake_graph(*devices):
    """A joint graph over fake tensors on these devices: one addition each, one result."""
    from torch._functorch._aot_autograd.descriptors import GradAOTOutput, PlainAOTInput, PlainAOTOutput, TangentAOTInput
    from torch._subclasses.fake_tensor import FakeTensorMode

    graph = torch.fx.Graph()
    with FakeTensorMode():
        values = [torch.empty(8, device=device) for device in devices]
        nodes = []
        for i, value in enumerate(values):
            node = graph.placeholder(f"primals_{i + 1}")
            node.meta.update(val=value, desc=PlainAOTInput(i))
            nodes.append(node)
        made = graph.call_function(torch.ops.aten.mul.Tensor, (nodes[0], nodes[0]))
        made.meta["val"] = torch.empty_like(values[0])
        tangent = torch.empty_like(values[0])
    tangents = graph.placeholder("tangents_1")
    tangents.meta.update(val=tangent, desc=TangentAOTInput(PlainAOTOutput(0)))
    graph.output(([made, made],)).meta["desc"] = [PlainAOTOutput(0), GradAOTOutput(PlainAOTInput(0))]
    return torch.fx.GraphModule({}, graph)


def test_memory_of_the_accelerator_is_what_counts_and_two_of_them_are_refused():
    try:
        module = fake_graph("cuda:0", "cpu")
    except (RuntimeError, AssertionError) as error:
        pytest.skip(f"no fake CUDA tensors in this build: {error}")
    joint = remat.torch.joint.Joint(module, 1)
    assert joint.device.type == "cuda"
    # rounded as the allocator does; the CPU's memory is not planned
    assert [v["storage"] for v in joint.document["values"][:2]] == [512, 0]
    with pytest.raises(remat.torch.Unsupported, match="several accelerators"):
        remat.torch.joint.Joint(fake_graph("cuda:0", "cuda:1"), 1)
