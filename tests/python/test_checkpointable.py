"""Checkpointable against the plain Sequential: the same bits, a peak that stays within what was predicted, and clear
words where it cannot.
"""

import copy
import gc
import io
import pickle
import runpy
import sys

import pytest
from conftest import ROOT

torch = pytest.importorskip("torch")
import sequential_models  # noqa: E402
from torch import nn  # noqa: E402

import remat  # noqa: E402
from remat.torch import Checkpointable, Unsupported, stages  # noqa: E402
from remat.torch.checking import run_step, same_bits  # noqa: E402
from remat.torch.checkpointable import chain_curve  # noqa: E402

CPU = torch.device("cpu")


LOSS = 8  # bytes of the loss and of its gradient


@pytest.fixture(autouse=True)
def seeded():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def chain_of(depth=6, width=32, *extra):
    return nn.Sequential(*(layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.Tanh(), *extra)))


def loss_of(value):
    return stages.pack(value, "")[0][0].square().mean()


class Meeting(torch.autograd.Function):
    """A loss that takes no memory of its own: what is counted is the model's."""

    @staticmethod
    def forward(ctx, y):
        ctx.shape = y.shape
        return y.detach().sum()

    @staticmethod
    def backward(ctx, delta):
        return torch.full(ctx.shape, 0.5)


def trained(model, x, wrap=lambda m: m, steps=2, loss=loss_of):
    """Results, gradients, buffers and generators after some steps of wrap(a copy of the model)."""
    torch.manual_seed(1)
    return run_step(model, (x,), {}, loss, wrap, steps)


def different(a, b):
    assert a.keys() == b.keys()
    return [name for name in a if not same_bits(a[name], b[name])]


def differences(model, x, wrap, **how):
    """What is not the same to the last bit with the plain model and with wrap(model)."""
    return different(trained(model, x, **how), trained(model, x, wrap, **how))


def budgets_of(model, x, fractions):
    """Between the least and what keep-all takes, while gradients accumulate."""
    twin = copy.deepcopy(model)
    for p in twin.parameters():
        p.grad = torch.zeros_like(p)
    probe = Checkpointable(twin, None, x, reserve=LOSS)
    most = probe.predicted_bytes
    probe.budget = "min"
    probe._sequence(*stages.pack(x, ""))
    least = probe.predicted_bytes
    assert least < most
    return [int(least + f * (most - least)) for f in fractions]


def measured_peak(model, x, steps=2):
    """Storages counted in steps that accumulate gradients, with what was predicted for each; and what is left in the
    end besides what was there, gradients included.
    """
    gauge = stages.CountingGauge(CPU)
    gauge.take([*stages.held_by(model), *stages.pack(x, "")[0]])
    start, peaks = gauge.now(), []
    gc.disable()
    try:
        with gauge:
            for _ in range(steps):
                gauge.reset_peak()
                y = stages.pack(model(x), "")[0][0]
                Meeting.apply(y).backward()
                del y
                peaks.append((gauge.peak(), model.predicted_bytes))
    finally:
        gc.enable()
    return peaks, gauge.now() - start - sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", sequential_models.MODELS)
def test_bits_and_peak_at_four_budgets(name):
    model, x = sequential_models.MODELS[name]()
    plain = trained(model, x)
    for budget in budgets_of(model, x, (0, 0.3, 0.6, 0.9)):
        made = []

        def wrap(m):
            made.append(Checkpointable(m, budget, reserve=LOSS))
            return made[-1]

        assert different(plain, trained(model, x, wrap)) == []
        wrapped = made[0]
        assert wrapped._latest.recomputed > 0 and all(group.reproducible for group in wrapped._latest.groups)
        wrapped.zero_grad()
        peaks, left = measured_peak(wrapped, x)
        for peak, predicted in peaks:
            assert 0.6 * predicted < peak <= predicted <= budget
        assert left == 0  # nothing waits for the garbage collector


def test_everything_kept_is_the_plain_sequential():
    model, x = sequential_models.vgg()
    wrapped = Checkpointable(copy.deepcopy(model), "100%", x, reserve=LOSS)
    assert wrapped._latest.recomputed == 0 and wrapped.predicted_bytes == wrapped._latest.keep_all_peak_bytes
    assert "_Node" not in str(wrapped(x).grad_fn)
    assert all(peak <= predicted for peak, predicted in measured_peak(wrapped, x)[0])


def test_measuring_changes_nothing():
    model, x = sequential_models.buffers()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    state = torch.get_rng_state()
    Checkpointable(model, "min", x)
    assert torch.equal(state, torch.get_rng_state())
    assert all(same_bits(before[name], t) for name, t in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_the_decision_is_verified_and_explained():
    model, x = sequential_models.resnet()
    wrapped = Checkpointable(model, "70%", x)
    decision = wrapped._latest
    verdict = wrapped.chain.verify(decision.steps)
    assert verdict and verdict.peak_bytes == max(chain_curve(*decision.chain_stages, decision.steps))
    assert wrapped.predicted_bytes == max(decision.curve) <= decision.budget_bytes
    assert (
        decision.resident_bytes + verdict.peak_bytes
        <= wrapped.predicted_bytes
        <= decision.resident_bytes + verdict.peak_bytes + sum(decision.measured.gradient_bytes)
    )
    text = io.StringIO()
    wrapped.explain(text)
    lines = text.getvalue().splitlines()
    assert "budget" in lines[0] and "1.5" in text.getvalue() and any(line.endswith("peak") for line in lines)
    assert sum(line.split()[1:2] == ["B"] for line in lines) == wrapped.chain.n_stages + 1
    quiet = Checkpointable(model, "70%")
    quiet.explain(text)
    assert "nothing was measured" in text.getvalue()


def test_impossible_budgets_fail_at_once_with_the_least_that_would_do():
    model, x = sequential_models.vgg()
    with pytest.raises(remat.Infeasible, match="would do.*needed at") as caught:
        Checkpointable(model, "1%", x)
    least = caught.value.need_bytes
    assert Checkpointable(model, least, x).predicted_bytes <= least == Checkpointable(model, "min", x).predicted_bytes
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    with pytest.raises(remat.Infeasible, match="while gradients accumulate") as caught:
        Checkpointable(model, "1%", x)
    more = caught.value.need_bytes
    assert Checkpointable(model, more, x).predicted_bytes == more > least
    with pytest.raises(remat.Infeasible):
        Checkpointable(model, more - 1, x)
    with pytest.raises(remat.Infeasible):
        Checkpointable(model, more, x, reserve=1)
    late = Checkpointable(model, 1000)
    with pytest.raises(remat.Infeasible):
        late(x)
    with torch.no_grad():
        late(x)


@pytest.mark.parametrize("budget", ["lots", "-3", -3, 0.5, True, 2**70])
def test_budgets_that_are_none_are_refused(budget):
    with pytest.raises(remat.UsageError):
        Checkpointable(chain_of(), budget)


def test_what_is_not_a_plain_sequential_is_refused():
    class Own(nn.Sequential):
        def forward(self, x):
            return x

    for model, words in ((nn.Linear(3, 3), "not a Linear"), (Own(nn.Linear(3, 3)), "forward of its own")):
        with pytest.raises(remat.UsageError, match=words):
            Checkpointable(model, "min")


def test_a_second_backward_and_gradients_of_gradients_are_refused():
    model = Checkpointable(chain_of(), "min")
    x = torch.randn(64, 32)
    loss = loss_of(model(x))
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="second backward"):
        loss.backward()
    with pytest.raises(RuntimeError, match="create_graph"):
        torch.autograd.grad(loss_of(model(x)), list(model.parameters()), create_graph=True)


def test_no_grad_and_eval():
    plain, x = sequential_models.vgg()
    model = Checkpointable(copy.deepcopy(plain), "min")
    with torch.no_grad():
        torch.manual_seed(3)
        first = model(x)
        torch.manual_seed(3)
        assert same_bits(first, plain(x)) and model._latest is None
    with torch.inference_mode():
        model(x)
    assert differences(plain.eval(), x, lambda m: Checkpointable(m, "min")) == []
    assert differences(plain.train(), x, lambda m: Checkpointable(m, "min")) == []
    model.eval()
    assert not any(m.training for m in model.modules()) and not model._modules["0"][1].training
    assert all(not p.requires_grad for p in model.requires_grad_(False).parameters())
    assert not model(x).requires_grad


def test_inputs_that_require_gradients_and_gradients_by_autograd_grad():
    plain = chain_of(5, 32, nn.Dropout(0.1))
    model = Checkpointable(copy.deepcopy(plain), "min")
    results = []
    for m in (plain, model):
        torch.manual_seed(2)
        leaf = torch.randn(64, 32, requires_grad=True)
        x = leaf * 3
        results.append(torch.autograd.grad(loss_of(m(x)), [leaf, *m.parameters()]))
        assert all(p.grad is None for p in m.parameters())
        last = list(m.parameters())[-1]
        results[-1] += torch.autograd.grad(loss_of(m(x)), [last])  # not the whole way back
    assert all(same_bits(a, b) for a, b in zip(*results))


def test_values_that_are_not_one_tensor():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(32, 32)

        def forward(self, value):
            return {
                "x": torch.tanh(self.linear(value["x"]) * value["by"]),
                "by": value["by"],
                "ids": value["ids"],
                "no": None,
            }

    model = nn.Sequential(*(Scale() for _ in range(6)))
    x = {"x": torch.randn(128, 32), "by": 2, "ids": torch.arange(5), "no": None}

    def loss(value):
        assert value["by"] == 2 and value["no"] is None and not value["ids"].requires_grad
        return value["x"].square().mean()

    assert differences(model, x, lambda m: Checkpointable(m, "min"), loss=loss) == []


def test_values_that_cannot_be_kept_are_refused():
    class Odd(nn.Module):
        def forward(self, x):
            return type("Hidden", (), {"x": x})()

    with pytest.raises(Unsupported, match="Hidden"):
        Checkpointable(nn.Sequential(nn.Linear(4, 4), Odd()), "min", torch.randn(2, 4))
    with pytest.raises(Unsupported, match="inplace=False"):
        Checkpointable(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4)), "min", torch.randn(2, 4))


def test_changes_between_forward_and_backward_are_noticed():
    model = Checkpointable(chain_of(), "min")
    x = torch.randn(64, 32)
    loss = loss_of(model(x))
    with torch.no_grad():
        next(model.parameters()).add_(1)
    with pytest.raises(RuntimeError, match="parameter or buffer of stage 0 was modified"):
        loss.backward()
    loss = loss_of(model(x))
    x.zero_()
    with pytest.raises(RuntimeError, match="input was modified"):
        loss.backward()


def test_parameters_that_are_replaced_get_their_gradients():
    plain, x = chain_of(4), torch.randn(64, 32)
    model = Checkpointable(copy.deepcopy(plain), "min", x)
    others = plain.state_dict()
    for twin in (plain, model):
        loss_of(twin(x)).backward()
        twin.load_state_dict({name: (value * 0.5).requires_grad_() for name, value in others.items()}, assign=True)
        loss_of(twin(x)).backward()
    assert model._latest.recomputed > 0
    for a, b in zip(plain.parameters(), model.parameters()):
        assert a.grad is not None and torch.equal(a.grad, b.grad)
    substitutes = {name: value.detach().clone().requires_grad_() for name, value in plain.named_parameters()}
    loss = loss_of(torch.func.functional_call(model, substitutes, (x,)))
    with pytest.raises(RuntimeError, match="was replaced by another tensor"):  # which is gone when stages run again
        loss.backward()


def test_a_frozen_parameter_that_changes_between_forward_and_backward_is_noticed():
    plain, x = chain_of(4), torch.randn(64, 32)
    plain[2].requires_grad_(False)
    model = Checkpointable(plain, "min", x)
    loss = loss_of(model(x))
    with torch.no_grad():
        plain[2].bias.add_(1)
    with pytest.raises(RuntimeError, match="of stage 2 was modified"):
        loss.backward()


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.full((32,), 0.5))

    def forward(self, x):
        return x * self.factor


def test_a_buffer_that_changes_between_forward_and_backward_is_noticed():
    layers = [layer for i in range(4) for layer in (nn.Linear(32, 32), Scale())]
    plain, x = nn.Sequential(*layers), torch.randn(64, 32)
    model = Checkpointable(plain, "min", x)
    loss_of(model(x)).backward()  # as it is: fine
    loss = loss_of(model(x))
    plain[1].factor.mul_(2)
    with pytest.raises(RuntimeError, match="was modified in place between forward and backward"):
        loss.backward()


def test_state_dict_copies_and_pickles():
    plain, x = sequential_models.vgg()
    model = Checkpointable(plain, "min", x)
    assert list(model.state_dict()) == list(plain.state_dict()) and [n for n, _ in model.named_parameters()] == [
        n for n, _ in plain.named_parameters()
    ]
    assert next(model.parameters()) is next(plain.parameters())
    assert type(model[:1]) is nn.Sequential and model[:1][0] is plain[0] is model[0]
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        twin.load_state_dict(plain.state_dict())
        assert twin.budget == "min" and twin._latest is None
        torch.manual_seed(5)
        loss_of(twin(x)).backward()
        torch.manual_seed(5)
        loss_of(copy.deepcopy(plain)(x)).backward()
        assert twin._latest.recomputed > 0
    assert next(plain.parameters()).grad is None


def test_hooks_are_called_as_ever():
    def hooked(model):
        counts = {"grad": 0, "after": 0, "module": 0, "back": 0, "container": 0}

        def count(what, result=None):
            counts[what] += 1
            return result

        for parameter in model.parameters():
            parameter.register_hook(lambda g: count("grad", g * 0.5))
            parameter.register_post_accumulate_grad_hook(lambda p: count("after"))
        for module in model[0]:
            module.register_full_backward_hook(lambda *_: count("back"))
        model.register_forward_hook(lambda m, i, o: count("module", o * 2))
        model[1].register_forward_hook(lambda m, i, o: count("container", o + 1))
        return counts

    plain = nn.Sequential(chain_of(4), chain_of(2))
    twin = copy.deepcopy(plain)
    counts = hooked(plain), hooked(twin)
    model = Checkpointable(twin, "min", torch.randn(64, 32))
    decision = model._latest
    assert decision.runs[0] > 1 and len(decision.groups) == 9  # the container with a hook is one stage
    for c in counts:
        c.update(dict.fromkeys(c, 0))
    x = torch.randn(64, 32)
    for m in (plain, model):
        loss_of(m(x)).backward()
    for a, b in zip(plain.parameters(), twin.parameters()):
        assert same_bits(a.grad, b.grad)
    assert {**counts[1], "container": 1} == counts[0] and counts[1]["container"] == decision.runs[-1]


def test_an_optimizer_in_backward_and_shared_parameters():
    shared = nn.Linear(32, 32)
    model = nn.Sequential(*(layer for _ in range(4) for layer in (shared, nn.Tanh(), nn.Linear(32, 32), nn.GELU())))
    assert differences(model, torch.randn(64, 32), lambda m: Checkpointable(m, "min"), steps=1) == []
    assert differences(model, torch.randn(64, 32), lambda m: Checkpointable(m, "min"), steps=3) == []
    plain, twin = chain_of(), chain_of()
    twin.load_state_dict(plain.state_dict())

    def step(p):
        with torch.no_grad():
            p.sub_(p.grad)
        p.grad = None

    for m in (plain, twin):
        for p in m.parameters():
            p.register_post_accumulate_grad_hook(step)
    x = torch.randn(64, 32)
    for m in (plain, Checkpointable(twin, "min")):
        for _ in range(2):
            loss_of(m(x)).backward()
    assert all(same_bits(a, b) for a, b in zip(plain.parameters(), twin.parameters()))


def test_parameters_that_belong_to_no_module_get_their_gradients():
    weight = torch.randn(32, requires_grad=True)

    class Outside(nn.Module):
        def forward(self, x):
            return torch.tanh(x * weight)

    model = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(32, 32), Outside())))
    x, grads = torch.randn(64, 32), []
    for m in (model, Checkpointable(copy.deepcopy(model), "min")):
        loss_of(m(x)).backward()
        grads.append(weight.grad)
        weight.grad = None
    assert same_bits(*grads)


def test_frozen_stages():
    model = chain_of(8, 32, nn.Dropout(0.1))
    for p in list(model.parameters())[:6]:
        p.requires_grad_(False)
    made = []

    def wrap(m):
        made.append(Checkpointable(m, "min", reserve=LOSS))
        return made[-1]

    x = torch.randn(128, 32)
    assert differences(model, x, wrap) == []
    assert made[0]._latest.measured.first == 9 and made[0]._latest.recomputed > 0
    made[0].zero_grad()
    assert all(peak <= predicted for peak, predicted in measured_peak(made[0], x)[0])
    list(model.parameters())[0].requires_grad_(True)
    assert differences(model, x, wrap) == [] and made[1]._latest.measured.first == 0


@pytest.mark.parametrize("inside", [False, True])
def test_autocast(inside):
    model, x = sequential_models.mlp()
    results = []
    for make in (lambda m: m, lambda m: Checkpointable(m, "min")):
        torch.manual_seed(1)
        m = make(copy.deepcopy(model))
        with torch.autocast("cpu", torch.bfloat16):
            y = m(x)
            loss = loss_of(y)
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        assert y.dtype == torch.bfloat16
        results.append([y, *(p.grad for p in m.parameters())])
        if isinstance(m, Checkpointable):
            assert m._latest.recomputed > 0
    assert all(g is not None and same_bits(g, h) for g, h in zip(*results))


def test_weights_cast_by_autocast_do_not_outlive_their_stage():
    model, x = chain_of(), torch.randn(64, 32)
    gauge = stages.CountingGauge(CPU)
    gauge.take([*model.parameters(), x])
    start = gauge.now()
    with torch.autocast("cpu", torch.bfloat16), gauge:
        out, _ = stages.run_dropping(stages.Group("all", list(model)), [x], None, [False])
        assert gauge.now() - start == out[0].nbytes


def test_modules_that_compute_otherwise_without_autograd():
    layers = [nn.TransformerEncoderLayer(32, 2, 64, 0.1, batch_first=True) for _ in range(4)]
    model = nn.Sequential(*layers).eval()
    made = []

    def wrap(m):
        made.append(Checkpointable(m, "min"))
        return made[-1]

    x = torch.randn(4, 16, 32)
    assert differences(model, x, wrap) == []
    assert made[0]._latest.recomputed > 0 and all(g.reproducible for g in made[0]._latest.groups)
    assert differences(model.train(), x, wrap) == []


def test_several_forwards_before_backward():
    for name in ("vgg", "mlp"):
        plain, x = sequential_models.MODELS[name]()
        twin = copy.deepcopy(plain)
        for m in (plain, Checkpointable(twin, "min")):
            torch.manual_seed(4)
            first, second = m(x), m(x + 1)
            (first * second).mean().backward()
        assert all(same_bits(a.grad, b.grad) for a, b in zip(plain.parameters(), twin.parameters()))
        assert all(same_bits(a, b) for a, b in zip(plain.buffers(), twin.buffers()))


def test_every_kind_of_input_is_measured_once():
    model = Checkpointable(chain_of(), "min")
    for n in (64, 32, 64, 32):
        loss_of(model(torch.randn(n, 32))).backward()
    assert len(model._measured) == 2
    model.eval()
    loss_of(model(torch.randn(64, 32))).backward()
    assert len(model._measured) == 3
    model.budget = "100%"
    loss_of(model(torch.randn(64, 32))).backward()
    assert len(model._measured) == 3 and model._latest.recomputed == 0


def test_a_long_chain_is_planned_in_slots():
    model = Checkpointable(chain_of(60, 8, nn.Dropout(0.1)), "40%", torch.randn(256, 8))
    decision = model._latest
    assert (
        len(decision.groups) == 180 and decision.peak_bytes <= decision.budget_bytes and 0 < decision.recomputed < 360
    )
    assert loss_of(model(torch.randn(256, 8))).backward() is None


def test_training_for_a_while_gives_the_same_model():
    plain, x = sequential_models.resnet()
    twin = copy.deepcopy(plain)
    model = Checkpointable(twin, "75%")
    for m in (plain, model):
        torch.manual_seed(7)
        optimizer = torch.optim.Adam(m.parameters(), 1e-2)
        for _ in range(4):
            optimizer.zero_grad()
            nn.functional.cross_entropy(m(x + torch.randn_like(x)), torch.randint(10, (8,))).backward()
            optimizer.step()
    assert all(same_bits(a, b) for a, b in zip(plain.state_dict().values(), twin.state_dict().values()))


def test_the_example_trains_the_same_model(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train_resnet.py", "60%", "2"])
    try:
        runpy.run_path(str(ROOT / "examples" / "train_resnet.py"), run_name="__main__")
    finally:
        torch.use_deterministic_algorithms(False)
    said = capsys.readouterr().out
    assert "to the last bit: yes" in said and "forward runs more" in said
