"""The budget in an ordinary training loop: short batches, orders of calls, graph breaks, one graph run many times;
every step's real peak is held against it.
"""

import copy
import gc
import warnings

import pytest
from conftest import ROOT  # noqa: F401  (puts the package on the path)

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import remat  # noqa: E402
import remat.torch  # noqa: E402

SEARCH = {"cache": False, "work": 100000}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    remat.torch.steps.forget()
    remat.torch.reporting._warned.clear()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
    gc.collect()


def mlp(depth=6, width=64):
    return nn.Sequential(*(layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU())))


def measured(step):
    """The most that was in memory while `step` ran, of what its graphs took and made; and what it returned."""
    meter = remat.torch.lower.Meter()
    remat.torch.lower.meter[:] = [meter]
    try:
        result = step()
    finally:
        remat.torch.lower.meter.clear()
    return meter.peak_bytes, result


def trained(model, run, batches):
    """Losses, gradients and the peak of each step."""
    losses, peaks = [], []
    for x in batches:
        model.zero_grad()

        def step():
            loss = run(x).square().mean()
            loss.backward()
            return loss.item()

        peak, loss = measured(step)
        losses.append(loss)
        peaks.append(peak)
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
    return losses, [p.grad.clone() for p in model.parameters()], peaks


def compare(model, batches, budget, compile=None):
    """Trains a copy eagerly and one under the budget; the peaks of the latter."""
    batches = list(batches)
    plain, twin = copy.deepcopy(model), copy.deepcopy(model)
    run = (compile or (lambda m: torch.compile(m, backend="remat", options={"budget": budget, **SEARCH})))(twin)
    expected, found = trained(plain, plain, batches), trained(twin, run, batches)
    assert all(abs(a - b) < 1e-6 for a, b in zip(expected[0], found[0])) and all(
        torch.allclose(a, b, atol=1e-6) for a, b in zip(expected[1], found[1])
    )
    return found[2]


@pytest.mark.parametrize("budget", ["60%", "bytes"])
def test_a_short_last_batch_leaves_the_budget_as_it_was(budget):
    sizes = [512, 512, 100] * 3
    if budget == "bytes":
        budget = 1200000
    peaks = compare(mlp(), (torch.randn(n, 64) for n in sizes), budget)
    reports = [r for r in remat.torch.reports() if r["planned"]]
    limit = budget if isinstance(budget, int) else reports[-1]["budget_bytes"]
    assert all(peak <= limit for peak in peaks), (peaks, limit)


def test_sizes_that_grow_are_planned_again_and_smaller_ones_run_the_same_plan():
    before = len(remat.torch.reports())
    peaks = compare(mlp(), (torch.randn(n, 64) for n in (100, 120, 80, 300, 200, 300)), 700000)
    assert all(peak <= 700000 for peak in peaks), peaks
    assert 2 <= len(remat.torch.reports()) - before <= 4


def test_a_later_step_that_does_not_fit_warns_and_goes_on():
    with pytest.warns(UserWarning, match="nothing fits|does not fit"):
        compare(mlp(), (torch.randn(n, 64) for n in (64, 64, 2048)), 300000)
    torch._dynamo.reset()
    with pytest.raises((remat.BudgetError, torch._dynamo.exc.BackendCompilerFailed), match="nothing fits"):
        compare(
            mlp(),
            (torch.randn(n, 64) for n in (64, 64, 2048)),
            None,
            lambda m: torch.compile(m, backend="remat", options={"budget": 300000, "strict": True, **SEARCH}),
        )


LATER = [
    ((64, 80, 300), 1, "larger sizes"),
    ((64, 64), 1, "the step was not planned"),
    ((64, 64), 2, "one more run of a graph"),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("sizes, runs, said", LATER)
def test_what_cannot_be_planned_any_more_never_ends_the_training(monkeypatch, sizes, runs, said, strict):
    """A first plan is there: it goes on, for larger sizes, too, behind gradients that exist before the step, and where
    a graph runs twice in it. It ends where it was asked to be strict.
    """
    accumulates = runs == 1 and len(set(sizes)) == 1
    model = mlp()
    twin = copy.deepcopy(model)
    run = torch.compile(model, backend="remat", dynamic=None, options={"budget": "80%", "strict": strict, **SEARCH})

    def refuse(*_, **__):
        raise remat.torch.Unsupported("an operator that is new")

    def train():
        for i, size in enumerate(sizes):
            x = torch.randn(size, 64)
            if not accumulates:
                model.zero_grad()
                twin.zero_grad()
            n = runs if i == len(sizes) - 1 else 1
            for compiled in (run, twin):
                sum(compiled(x) for _ in range(n)).square().mean().backward()
            if i == len(sizes) - 2:
                monkeypatch.setattr(remat.torch.planning.Work, "solve", refuse)

    if strict:
        with pytest.raises(remat.torch.Unsupported, match="an operator that is new"):
            train()
    else:
        with pytest.warns(UserWarning, match=f"{said}.*an operator that is new"):
            train()
        assert all(torch.equal(a.grad, b.grad) for a, b in zip(model.parameters(), twin.parameters()))


@pytest.mark.parametrize("budget", ["80%", "min"])
def test_gradients_may_be_dropped_between_forward_and_backward(budget):
    model, x = mlp(), torch.randn(512, 64)
    run = torch.compile(model, backend="remat", options={"budget": budget, **SEARCH})
    for _ in range(5):
        loss = run(x).square().mean()
        model.zero_grad()
        loss.backward()
    last = remat.torch.last_report()
    gradients = sum(p.numel() * 4 for p in model.parameters())
    assert last["existing_gradient_bytes"] == gradients
    if budget == "80%":
        assert (
            last["peak_bytes"] <= last["budget_bytes"]
            and last["resident_bytes"] < remat.torch.reports()[-2]["resident_bytes"]
        )


def test_gradients_that_accumulate_are_counted_and_never_end_the_training():
    model, x = mlp(), torch.randn(128, 64)
    run = torch.compile(model, backend="remat", options={"budget": "100%", **SEARCH})
    run(x).square().mean().backward()
    budget = remat.torch.last_report()["budget_bytes"]
    with pytest.warns(UserWarning, match="gradients exist before the step"):
        for _ in range(3):
            run(x).square().mean().backward()
    assert remat.torch.last_report()["budget_bytes"] == budget


class Broken(nn.Module):
    """Two graphs in one step."""

    def __init__(self):
        super().__init__()
        self.first, self.second = mlp(6), mlp(4)

    def forward(self, x):
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.second(x)


@pytest.mark.parametrize("budget", ["75%", "50%"])
def test_a_percentage_is_of_the_step(budget):
    peaks = compare(Broken(), [torch.randn(512, 64)] * 4, budget)
    last = remat.torch.last_report()
    assert last["graphs"] == 2 and last["budget_bytes"] == last["step_keep_all_bytes"] * int(budget[:-1]) // 100
    assert max(peaks[2:]) <= last["step_peak_bytes"] <= last["budget_bytes"]


def test_a_first_step_without_a_backward_pass_does_not_lose_the_plan_of_the_step():
    model, x = Broken(), torch.randn(256, 64)
    run = torch.compile(model, backend="remat", options={"budget": "70%", **SEARCH})
    run(x)
    for _ in range(3):
        model.zero_grad()
        run(x).square().mean().backward()
    assert remat.torch.last_report()["graphs"] == 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = mlp(2)

    def forward(self, x):
        return self.layers(x)


@pytest.mark.parametrize("budget", ["70%", "55%"])
def test_a_graph_that_runs_many_times_is_planned_for_all_its_runs(budget):
    """Regional compilation: every block is compiled by itself, and all share one graph."""
    model = nn.Sequential(*(Block() for _ in range(5)))

    def compile(m):
        for block in m:
            block.compile(backend="remat", options={"budget": budget, **SEARCH})
        return m

    peaks = compare(model, [torch.randn(512, 64)] * 4, budget, compile)
    last = remat.torch.last_report()
    assert last["graphs"] == 5 and max(peaks[2:]) <= last["step_peak_bytes"] <= last["budget_bytes"]
    assert last["budget_bytes"] == last["step_keep_all_bytes"] * int(budget[:-1]) // 100


def test_models_that_share_an_options_dict_are_not_charged_for_each_other():
    options = {"budget": "80%", **SEARCH}
    models, x = [mlp(), mlp(4)], torch.randn(256, 64)
    alone = []
    for model in models:
        torch.compile(model, backend="remat", options=dict(options))(x).square().mean().backward()
        alone.append(remat.torch.last_report())
        model.zero_grad()
    torch._dynamo.reset()
    runs = [torch.compile(model, backend="remat", options=options) for model in models]
    found = []
    for run, model in zip(runs, models):
        run(x).square().mean().backward()
        found.append(remat.torch.last_report())
    assert [r["peak_bytes"] for r in found] == [r["peak_bytes"] for r in alone]


def test_a_retained_graph_and_a_new_plan_live_side_by_side():
    model, x = mlp(), torch.randn(256, 64)
    plain = copy.deepcopy(model)

    def train(run):
        first = run(x)
        first.square().mean().backward(retain_graph=True)
        second = run(x)  # gradients exist: planned again
        first.sum().backward()
        second.sum().backward()

    train(plain)
    train(torch.compile(model, backend="remat", options={"budget": "60%", **SEARCH}))
    assert all(torch.allclose(p.grad, q.grad, atol=1e-6) for p, q in zip(plain.parameters(), model.parameters()))


def test_budgets_come_from_the_environment_and_from_a_context(monkeypatch):
    x = torch.randn(64, 64)

    def planned():
        torch._dynamo.reset()
        torch.compile(mlp(2), backend="remat", options=SEARCH)(x)
        return remat.torch.last_report()["budget_bytes"]

    assert planned() is None
    monkeypatch.setenv("REMAT_BUDGET", "10MB")
    assert planned() == 10_000_000
    with remat.torch.budget("12MB"):
        assert planned() == 12_000_000
    with pytest.raises(remat.Error):
        with remat.torch.budget("lots"):
            pass


def test_nothing_is_said_twice():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            compare(Broken(), [torch.randn(128, 64)] * 3, "80%")
    lines = [str(w.message) for w in caught if str(w.message).startswith("remat")]
    assert len(lines) == len(set(lines))


def pending():
    return remat.torch.steps.of(torch.device("cpu")).pending()


def test_a_forward_pass_that_raises_leaves_no_trace():
    class Picky(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.layers = nn.Embedding(8, 64), mlp()

        def forward(self, tokens):
            return self.layers(self.embed(tokens))

    model = Picky()
    run = torch.compile(model, backend="remat", options={"budget": "100%", **SEARCH})
    good = torch.randint(0, 8, (256,))
    run(good).square().mean().backward()
    with pytest.raises((IndexError, RuntimeError)):
        run(good + 100)
    model.zero_grad()
    before = len(remat.torch.reports())
    for _ in range(2):
        run(good).square().mean().backward()
        model.zero_grad()
    assert not pending() and len(remat.torch.reports()) == before


def test_a_number_that_no_size_depends_on_is_not_planned_for():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = mlp(3)

        def forward(self, x, step):
            return self.layers(x) * (1 + 0.1 * step)

    model, x = Counts(), torch.randn(64, 64)
    run = torch.compile(model, backend="remat", options={"budget": "90%", **SEARCH}, dynamic=True)
    for step in range(2, 8):
        model.zero_grad()
        run(x, step).square().mean().backward()
    assert len([r for r in remat.torch.reports()[-6:] if r["digest"] == remat.torch.last_report()["digest"]]) <= 2


def test_results_that_are_held_do_not_hold_up_the_steps():
    model, x = mlp(), torch.randn(256, 64)
    run = torch.compile(model, backend="remat", options={"budget": "100%", **SEARCH})
    held = run(x)
    with pytest.warns(UserWarning, match="held without a backward pass"):
        for _ in range(4):
            model.zero_grad()
            run(x).square().mean().backward()
    assert held.requires_grad and len(remat.torch.steps.of(torch.device("cpu")).runs) == 1


def test_a_module_that_runs_more_often_than_before_is_within_the_budget_one_step_later():
    block = Block()

    class Repeats(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = block

        def forward(self, x, n):
            for _ in range(n):
                x = self.block(x)
            return x

    block.compile(backend="remat", options={"budget": 1_600_000, **SEARCH})
    model, x, peaks = Repeats(), torch.randn(512, 64), []
    for n in (1, 3, 3, 4, 4, 2):
        model.zero_grad()
        peaks.append(measured(lambda: model(x, n).square().mean().backward())[0])
    assert all(peaks[i] <= 1_600_000 for i in (0, 2, 4, 5)), peaks


def test_two_threads_train_two_models():
    """Compiled one after the other (torch refuses to run a compiled function while another thread traces), then at
    the same time.
    """
    import threading

    models, x, errors = [mlp(3), mlp(4)], torch.randn(128, 64), []
    compiling, ready = threading.Lock(), threading.Barrier(2)

    def train(model):
        try:
            run = torch.compile(model, backend="remat", options={"budget": "90%", **SEARCH})
            with compiling:
                for _ in range(4):  # gradients accumulate: planned again
                    run(x).square().mean().backward()
            ready.wait()
            for _ in range(30):
                model.zero_grad()
                run(x).square().mean().backward()
        except BaseException as error:  # whatever it is
            errors.append(error)

    threads = [threading.Thread(target=train, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_the_report_names_modules_and_tensors():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(4))

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    torch.compile(Net(), backend="remat", options={"budget": "70%", **SEARCH})(
        torch.randn(512, 64)
    ).square().mean().backward()
    text, last = remat.torch.report(), remat.torch.last_report()
    lines = text.splitlines()
    assert remat.size_text(last["peak_bytes"]) in lines[0] and f"{last['recomputed_ops']} ops run again" in lines[0]
    assert any("blocks." in line for line in lines[1:]) and any(line.startswith("at the peak") for line in lines)
    assert (
        sum(
            int(line.split(": ")[1].split()[0])
            for line in lines
            if line.startswith("  blocks") and line.endswith("ops")
        )
        == last["recomputed_ops"]
    )


def test_a_step_like_the_last_one_looks_at_no_parameter_and_no_plan_again(monkeypatch):
    """Both are long lists, and nothing runs on the device while the host goes through them. Another parameter in its
    place is seen.
    """
    model, x = mlp(2, 16), torch.randn(4, 16)
    compiled = torch.compile(model, backend="remat", options={"budget": "100%", **SEARCH})
    policy, planning, looked = remat.torch.policy, remat.torch.planning, []
    for step in range(3):
        if step == 2:  # the gradients that exist were seen in the step before
            reads = policy.Training.reads
            monkeypatch.setattr(
                policy.Training,
                "reads",
                lambda self, parameters: (looked.append("parameters"), reads(self, parameters)),
            )
            monkeypatch.setattr(planning.Solution, "code", property(lambda self: looked.append("plan")))
        compiled(x).sum().backward()
    assert looked == []
    monkeypatch.undo()
    model[0].weight = other = nn.Parameter(model[0].weight.detach().clone())
    compiled(x).sum().backward()
    assert other.grad is not None and any(leaf is other for leaf in policy._trainings[model[0].bias].leaves())


def test_a_profile_shows_what_runs_again_by_module():
    model = torch.compile(
        nn.Sequential(Block(), Block(), Block()), backend="remat", options={"budget": "min", **SEARCH}
    )
    x = torch.randn(512, 64)
    model(x).square().mean().backward()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        model(x).square().mean().backward()
    marks = [event.name for event in profile.events() if event.name.startswith("remat: ")]
    assert len(marks) == remat.torch.last_report()["recomputed_ops"] > 0
    assert all(mark.split()[1][0] in "012" for mark in marks)


def test_the_budget_auto_is_what_is_free_less_what_an_optimizer_will_take(monkeypatch):
    mib, device = 1 << 20, torch.device("cuda", 0)

    def there_is(free, reserved, allocated):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free * mib, 9999 * mib))
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: reserved * mib)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: allocated * mib)

    free_budget = remat.torch.measuring.free_budget
    weight, other = nn.Parameter(torch.zeros(mib)), nn.Parameter(torch.zeros(mib))
    there_is(1000, 200, 100)
    assert free_budget(device, [weight]) == int(0.95 * 1100 * mib) - 2 * 4 * mib
    there_is(10, 0, 0)
    assert free_budget(device, [weight]) == free_budget(device, []) == int(0.95 * 1100 * mib) - 2 * 4 * mib  # fixed
    there_is(8, 0, 0)
    with pytest.raises(remat.UsageError, match="nothing is left of 8.00 MiB"):
        free_budget(device, [other])
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="only on CUDA"):
        torch.compile(Block(), backend="remat", options={"budget": "auto"})(torch.randn(8, 64))
