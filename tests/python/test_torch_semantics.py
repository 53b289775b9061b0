"""What a training step means, where running ops again could change it: overwritten tensors, hidden state, version
checks, autocast, a second backward pass. Every case is compared with eager and with AOTAutograd's own partition, to
the bit, at the least memory that there is a plan for.
"""

import copy
import gc

import pytest
from conftest import ROOT  # noqa: F401  (puts the package on the path)

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.testing._internal.two_tensor import TwoTensor  # noqa: E402

import remat  # noqa: E402
import remat.torch  # noqa: E402

SEARCH = {"cache": False, "work": 200000, "budget": "min"}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    counter.clear()
    yield
    torch._dynamo.reset()
    gc.collect()


counter = []


def parts(value):
    """The plain tensors of a value."""
    if isinstance(value, TwoTensor):
        return [*parts(value.a), *parts(value.b)]
    return [] if value is None else [value.detach().clone()]


def trained(model, x, wrap, steps=2, backward=lambda loss: loss.backward()):
    """Everything that a training loop leaves behind: results, gradients, state, the generator."""
    torch._dynamo.reset()
    counter.clear()
    torch.manual_seed(1)
    model, x = copy.deepcopy(model), copy.deepcopy(x)
    run, found = wrap(model), []
    for _ in range(steps):
        y = run(x)
        backward(y.square().mean())
        found += parts(y)
        for p in model.parameters():
            found += parts(p.grad)
        for state in (*model.buffers(), *(v for v in vars(model).values() if isinstance(v, torch.Tensor)), x):
            found += parts(state)
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
    return [*found, torch.get_rng_state()]


def with_remat(**more):
    return lambda model: torch.compile(model, backend="remat", options={**SEARCH, **more})


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


def check(model, x, planned=True, strategy="auto", **how):
    """remat computes what eager code does, to the last bit; returns its report."""
    expected = trained(model, x, lambda m: m, **how)
    found = trained(model, x, with_remat(strategy=strategy), **how)
    report = remat.torch.last_report()
    assert report["planned"] == planned, report["reason"]
    assert same(found, expected)
    return report


class Stack(nn.Module):
    """Layers whose activations depend on a buffer, so that recomputation reads the buffer."""

    def __init__(self, buffer=None, depth=5, width=48):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.buffer = torch.randn(64, width) if buffer is None else buffer

    def read(self):
        return self.buffer * 1.0

    def body(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x)) * torch.sin(self.read())
        return x


class Overwrites(Stack):
    def forward(self, x):
        y = self.body(x)
        self.buffer.mul_(0.5)
        return y


@pytest.mark.parametrize("buffer", ["plain", "subclass", "transposed", "with gaps"])
def test_an_overwritten_input_is_read_as_it_was(buffer):
    made = {
        "plain": lambda: None,
        "subclass": lambda: TwoTensor(torch.randn(64, 48), torch.randn(64, 48)),
        "transposed": lambda: torch.randn(48, 64).t(),
        "with gaps": lambda: torch.randn(64, 96)[:, ::2],
    }[buffer]()
    assert check(Overwrites(made), torch.randn(64, 48))["recomputed_ops"] > 0


class ReadsBeside(Overwrites):
    """Reads by strides what lies beside the buffer in its storage: a copy of the buffer does not have that."""

    def __init__(self):
        super().__init__(torch.randn(64, 96)[:, :48])

    def read(self):
        return self.buffer.as_strided((64, 48), (96, 1), 24)


def test_an_overwritten_input_whose_storage_is_read_by_strides_is_left_to_torch():
    assert "share memory" in check(ReadsBeside(), torch.randn(64, 48), planned=False)["reason"]


class WriteBehind(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, buffer):
        ctx.buffer = buffer
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        ctx.buffer.copy_(gradient * 3)
        return gradient, None


class WritesBehind(Stack):
    """The write comes first in the backward pass; the layers before it are recomputed from what was there."""

    def forward(self, x):
        return WriteBehind.apply(self.body(x), self.buffer)


@pytest.mark.parametrize("strategy", ["auto", "fastsa-order", "fastsa"])
def test_a_buffer_written_in_backward_is_written_behind_all_that_read_it(strategy):
    assert (
        check(WritesBehind(), torch.randn(64, 48), strategy=strategy)["recomputed_ops"] > 0
        or strategy == "fastsa-order"
    )


library = torch.library.Library("remat_test", "DEF")
for name in ("stateful", "pure"):
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, lambda x: torch.empty_like(x), "Meta")
library.impl("stateful", lambda x: (counter.append(1), x * (1 + 0.1 * len(counter)))[1], "CompositeExplicitAutograd")
library.impl("pure", lambda x: (counter.append(1), x * 1.1)[1], "CompositeExplicitAutograd")


class Through(torch.autograd.Function):
    """Saves the result of a custom op."""

    @staticmethod
    def forward(ctx, x, op):
        y = op(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * torch.cos(y), None


class CustomOps(Stack):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def forward(self, x):
        for layer in self.layers:
            x = Through.apply(torch.tanh(layer(x)), self.op)
        return x


def test_custom_ops_run_once_and_in_order_unless_they_are_said_to_be_pure():
    stateful, pure = torch.ops.remat_test.stateful.default, torch.ops.remat_test.pure.default
    for op in (stateful, pure):
        assert check(CustomOps(op), torch.randn(64, 48))["pinned_ops"] >= 5
        assert len(counter) == 2 * 5
    model, x = CustomOps(pure), torch.randn(64, 48)
    expected = trained(model, x, lambda m: m)
    for said in (["remat_test::pure"], "remat_test::*"):
        assert same(trained(model, x, with_remat(recompute=said)), expected) and len(counter) > 2 * 5
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="names of ops"):
        trained(model, x, with_remat(recompute=["pure"]))


def test_an_op_can_be_said_to_be_pure_where_it_is_defined():
    @remat.torch.allow_recompute
    @torch.library.custom_op("remat_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        counter.append(1)
        return x * 2

    twice.register_fake(torch.empty_like)
    model, x = CustomOps(torch.ops.remat_test.twice.default), torch.randn(64, 48)
    assert same(trained(model, x, with_remat()), trained(model, x, lambda m: m))
    trained(model, x, with_remat())
    assert len(counter) > 2 * 5
    with pytest.raises(remat.UsageError):
        remat.torch.allow_recompute("twice")


class Stash(torch.autograd.Function):
    """Keeps one tensor on ctx, unchecked, and one by save_for_backward, checked."""

    @staticmethod
    def forward(ctx, x, checked, unchecked):
        ctx.save_for_backward(checked)
        ctx.unchecked = unchecked
        return x * checked * unchecked

    @staticmethod
    def backward(ctx, gradient):
        (checked,) = ctx.saved_tensors
        return gradient * checked * ctx.unchecked, None, None


class Stashes(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x, checked, unchecked):
        return self.last(Stash.apply(torch.tanh(self.first(x)), checked, unchecked))


@pytest.mark.parametrize("budget", [None, "min"])
@pytest.mark.parametrize("changed", ["checked", "unchecked", "weight"])
def test_what_is_changed_between_forward_and_backward_is_noticed_where_eager_does(budget, changed):
    def outcome(wrap):
        torch._dynamo.reset()
        torch.manual_seed(2)
        model, checked, unchecked = Stashes(), torch.randn(16, 32), torch.randn(16, 32)
        loss = wrap(model)(torch.randn(16, 32, requires_grad=True), checked, unchecked).square().mean()
        with torch.no_grad():
            {"checked": checked, "unchecked": unchecked, "weight": model.last.weight}[changed].mul_(2)
        try:
            loss.backward()
        except RuntimeError as error:
            assert "modified by an inplace operation" in str(error)
            return "noticed"
        return [p.grad for p in model.parameters()]

    eager, found = outcome(lambda m: m), outcome(with_remat(budget=budget))
    assert (eager == "noticed") == (changed != "unchecked")
    # at "min" what eager reads changed may have to be run again: then it is refused
    if budget is None or eager == "noticed":
        assert found == "noticed" if eager == "noticed" else same(found, eager)
    else:
        assert found == "noticed" or same(found, eager)


def test_a_backward_pass_under_autocast_recomputes_without_it():
    model = nn.Sequential(*(layer for _ in range(5) for layer in (nn.Linear(48, 48), nn.Tanh())))

    def backward(loss):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss.backward()

    assert check(model, torch.randn(64, 48), backward=backward)["recomputed_ops"] > 0


def test_a_graph_may_be_differentiated_again_after_a_plain_backward_pass():
    def twice(model, x, wrap):
        torch._dynamo.reset()
        run = wrap(model)
        run(x).square().mean().backward()  # torch compiles the backward pass for this one
        loss = run(x).square().mean()
        loss.backward(retain_graph=True)
        loss.backward()
        return [p.grad.clone() for p in model.parameters()]

    model, x = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32)), torch.randn(64, 32)
    assert same(twice(copy.deepcopy(model), x, with_remat()), twice(copy.deepcopy(model), x, lambda m: m))


class Forgetful(nn.Module):
    """Computes something else whenever it runs."""

    def forward(self, x):
        counter.append(1)
        return torch.sin(x * (1 + len(counter)))


def test_a_stage_that_was_measured_as_not_reproducible_runs_once():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(6)))
    model.insert(3, Forgetful())
    x = torch.randn(256, 64, requires_grad=True)
    wrapped = remat.torch.Checkpointable(copy.deepcopy(model), sample=x, budget="min")
    counter.clear()
    model(x).square().mean().backward()
    counter.clear()
    gradient, x.grad = x.grad, None
    wrapped(x).square().mean().backward()
    decision = wrapped._latest
    assert [g.reproducible for g in decision.groups].count(False) == 1 and decision.recomputed > 0
    assert len(counter) == 1 and torch.equal(gradient, x.grad)
    assert same([p.grad for p in wrapped.parameters()], [p.grad for p in model.parameters()])
    assert decision.cost < 10 * decision.keep_all_cost  # a penalty for its runs is not counted


# ---- loops that do more than forward and backward ----


def layers(depth=4, width=32):
    return nn.Sequential(*(layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.Tanh())))


def adversaries(wrap):
    """Two compiled models; the results of one wait while the other is trained, and are differentiated through its
    new weights.
    """
    maker, judge, found = layers(), nn.Sequential(layers(), nn.Linear(32, 1)), []
    make, score = wrap(maker), wrap(judge)
    optimizers = [torch.optim.SGD(model.parameters(), 0.1) for model in (judge, maker)]
    for _ in range(3):
        made = make(torch.randn(64, 32))
        for optimizer, loss in (
            (optimizers[0], lambda: (score(torch.randn(64, 32)) - score(made.detach())).mean()),
            (optimizers[1], lambda: score(made).mean()),
        ):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
        found += [p.detach().clone() for model in (maker, judge) for p in model.parameters()]
    return found


class FollowsSlowly(nn.Module):
    """The weights of a second network are moved towards those of the first in every forward pass."""

    def __init__(self):
        super().__init__()
        self.online, self.target = layers(), layers().requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.online.parameters()):
                slow.mul_(0.9).add_(fast, alpha=0.1)
            goal = self.target(x)
        return nn.functional.mse_loss(self.online(x), goal)


def slow_target(wrap):
    model, found = FollowsSlowly(), []
    run = wrap(model)
    for _ in range(3):
        run(torch.randn(64, 32)).backward()
        found += [t.detach().clone() for p in model.parameters() for t in (p, p.grad) if t is not None]
    return found


def checkpointed_from_outside(wrap):
    """The compiled function runs again in its own backward pass, with what it dropped, and its forward pass is
    forgotten in between.
    """
    from torch.utils.checkpoint import checkpoint

    model = nn.Sequential(layers(), nn.Dropout(0.3), layers())
    run = wrap(model)
    for _ in range(2):
        (
            checkpoint(run, torch.randn(64, 32), use_reentrant=False)
            + checkpoint(run, torch.randn(64, 32), use_reentrant=False)
        ).square().mean().backward()
    return [p.grad for p in model.parameters()]


def saved_elsewhere(wrap):
    """What is saved, the token too, is replaced by a copy."""
    model = nn.Sequential(layers(), nn.Dropout(0.3), layers())
    run = wrap(model)
    for _ in range(2):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            loss = run(torch.randn(64, 32)).square().mean()
        loss.backward()
    return [p.grad for p in model.parameters()]


class Broken(nn.Module):
    """Two graphs."""

    def __init__(self):
        super().__init__()
        self.first, self.second = layers(), layers()

    def forward(self, x):
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.second(x)


def optimized_in_backward(wrap):
    """Weights of the second graph change before the first one is differentiated."""
    model = Broken()

    def update(parameter):
        with torch.no_grad():
            parameter -= 0.1 * parameter.grad
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    run = wrap(model)
    for _ in range(3):
        run(torch.randn(64, 32)).square().mean().backward()
    return [p.detach() for p in model.parameters()]


@pytest.mark.parametrize(
    "loop", [adversaries, slow_target, checkpointed_from_outside, saved_elsewhere, optimized_in_backward]
)
def test_loops_that_do_more_than_forward_and_backward(loop):
    def outcome(wrap):
        torch._dynamo.reset()
        torch.manual_seed(3)
        return loop(wrap)

    before = len(remat.torch.reports())
    found = outcome(with_remat())
    reports = remat.torch.reports()[before:]
    assert (
        reports
        and all(report["planned"] for report in reports)
        and max(report["recomputed_ops"] for report in reports) > 0
    )
    kept = outcome(lambda model: torch.compile(model, backend="aot_eager_default_partitioner"))
    eager = outcome(lambda model: model)
    assert same(found, kept)
    # torch 2.11's AOTAutograd rounds otherwise than eager code here, with everything kept too
    assert same(found, eager) or torch.__version__.startswith("2.11")
