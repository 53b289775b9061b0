"""remat.plot: what is drawn is what plans say, whatever the names are; plans as tables in notebooks."""

import html.parser
import json
import subprocess
import sys

import matplotlib
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

import remat  # noqa: E402
import remat.plot  # noqa: E402

HOSTILE = [
    "<script>alert(1)</script>",
    "&amp;<b>",
    "$\\frac{$",
    "$x$",
    "_hidden",
    "\x01\x1b[31m",
    "\"'>",
    "</table><img src=x onerror=alert(1)>",
    "",
]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def resnet():
    return remat.load("zoo:resnet18").prepare(dce=True)


def named(name):
    builder = remat.Builder(name)
    values = [builder.value("x", 8, kind="input")] + [builder.value(f"v{i}", 8) for i in range(3)]
    for i in range(3):
        builder.op(f"o{i}", [values[i]], [values[i + 1]], cost=1)
    builder.output(values[3])
    return builder.finish()


def stairs(axes, label):
    (found,) = [patch for patch in axes.patches if patch.get_label().startswith(label)]
    return list(found.get_data().values), list(found.get_data().edges)


def test_timeline_is_the_memory_of_every_step(resnet):
    plan = resnet.plan("70%", "rotor")
    axes = remat.plot.timeline(resnet, plan)
    assert stairs(axes, "rotor") == (resnet.memory(plan), list(range(len(plan.steps) + 1)))
    assert stairs(axes, "keep-all")[0] == resnet.memory(resnet.plan())
    (budget,) = [line for line in axes.lines if line.get_label().startswith("budget")]
    assert set(budget.get_ydata()) == {plan.budget_bytes}
    own = pyplot.subplots()[1]
    assert remat.plot.timeline(resnet, plan.steps, own, keep_all=False) is own and len(own.patches) == 1
    axes.figure.canvas.draw()
    assert any("GiB" in label.get_text() for label in axes.get_yticklabels())


def rows_of(resnet, name, budgets):
    return resnet.curve(budgets, name)


def test_curve_draws_every_point_and_no_line_in_the_shade(resnet):
    budgets = ["50%", "65%", "80%", "100%"]
    plans = rows_of(resnet, "mincut", budgets) + rows_of(resnet, "chen-greedy", budgets)
    axes = remat.plot.curve(plans)
    for line in axes.lines:
        own = [plan for plan in plans if plan.strategy == line.get_label() and plan.within_budget]
        assert list(line.get_xdata()) == [plan.budget_bytes for plan in own] and list(line.get_ydata()) == [
            plan.overhead for plan in own
        ]
        assert line.get_drawstyle() == "steps-post"
    (shade,) = axes.collections
    top = {}
    for x, y in shade.get_paths()[0].vertices:
        top[x] = max(y, top.get(x, 0))
    for plan in plans:  # at a budget: the bound of this budget or of the one before it, which is higher
        least = (
            max(
                other.any_order_cost
                for other in plans
                if other.within_budget and other.budget_bytes >= plan.budget_bytes
            )
            / plan.keep_all_cost
            - 1
        )
        assert top[plan.budget_bytes] >= least - 1e-12
        if plan.within_budget:
            assert plan.overhead >= least - 1e-12
    assert top[min(plan.budget_bytes for plan in plans)] == pytest.approx(
        max(plan.any_order_cost for plan in plans if plan.within_budget) / plans[0].keep_all_cost - 1
    )


def test_rows_may_be_what_the_program_prints(resnet):
    plans = resnet.curve(["70%", "90%"], "mincut")
    rows = [
        {
            "strategy": p.strategy,
            "budget_bytes": p.budget_bytes,
            "peak_bytes": p.peak_bytes,
            "cost": p.cost,
            "keep_all_cost": p.keep_all_cost,
            "within_budget": p.within_budget,
            "need_bytes": p.need_bytes,
            "any_order_bound_cost": p.any_order_cost,
        }
        for p in plans
    ]
    one, other = remat.plot.curve(plans), remat.plot.curve(json.loads(json.dumps(rows)))
    assert list(one.lines[0].get_ydata()) == list(other.lines[0].get_ydata())
    assert (one.collections[0].get_paths()[0].vertices == other.collections[0].get_paths()[0].vertices).all()
    with pytest.raises(remat.UsageError, match="keep_all_cost"):
        remat.plot.curve([{"strategy": "x"}])
    with pytest.raises(remat.UsageError, match="no row"):
        remat.plot.curve([])


def test_compare_draws_overheads_and_gaps(resnet):
    plans = [resnet.plan("60%", name, strict=False) for name in ("mincut", "rotor", "keep-all")]
    axes = remat.plot.compare(plans)
    bound = max(plan.any_order_cost for plan in plans[:2]) / plans[0].keep_all_cost - 1
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(
        [bound, plans[0].overhead - bound, bound, plans[1].overhead - bound]
    )
    assert [text.get_text() for text in axes.texts][2].startswith(" does not fit: least peak")
    with pytest.raises(remat.UsageError, match="curve"):
        remat.plot.compare([resnet.plan("70%", "rotor"), resnet.plan("80%", "rotor")])


def snapshot_of(events, requested):
    return {
        "segments": [{"device": 0, "requested_size": requested}, {"device": 1, "requested_size": 999}],
        "device_traces": [events, []],
    }


def test_a_snapshot_of_torch_is_played(resnet):
    """What was there before the recording counts, frees that were only requested do not, and other devices are not
    ours.
    """
    events = [
        {"action": "segment_alloc", "addr": 0, "size": 4096, "time_us": 1},
        {"action": "alloc", "addr": 512, "size": 100, "time_us": 2},
        {"action": "free_requested", "addr": 0, "size": 64, "time_us": 3},
        {"action": "free_completed", "addr": 0, "size": 64, "time_us": 4},
        {"action": "alloc", "addr": 0, "size": 30, "time_us": 6},
        {"action": "free_completed", "addr": 512, "size": 512, "time_us": 8},
    ]
    samples = remat.plot.memory_of_snapshot(snapshot_of(events, 40 + 30))
    # 104 before: 64 that were freed and 40 that stay
    assert samples == [(2e-6, 204), (4e-6, 140), (6e-6, 170), (8e-6, 70)]
    with pytest.raises(remat.UsageError, match="_record_memory_history"):
        remat.plot.memory_of_snapshot(snapshot_of(events, 70), device=1)
    plan = resnet.plan("70%", "rotor")
    axes = remat.plot.measured(snapshot_of(events, 70), resnet.memory(plan), plan.budget_bytes)
    (line,) = [line for line in axes.lines if line.get_label().startswith("measured")]
    assert list(line.get_ydata()) == [204, 140, 170, 70] and list(line.get_xdata()) == pytest.approx(
        [0, 1 / 3, 2 / 3, 1]
    )
    assert stairs(axes, "predicted")[0] == resnet.memory(plan)


def test_measured_without_a_prediction():
    axes = remat.plot.measured([(10, 5), (20, 7), (40, 1)])
    assert list(axes.lines[0].get_xdata()) == pytest.approx([0, 1 / 3, 1]) and not axes.patches
    with pytest.raises(remat.UsageError, match="no sample"):
        remat.plot.measured([])


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.data = set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.data.append(data)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_becomes_markup_or_a_formula(name):
    graph = named(name)
    plan = graph.plan_of(range(3), "100%", strategy=name or "x")
    for axes in (
        remat.plot.timeline(graph, plan),
        remat.plot.curve([plan]),
        remat.plot.compare([plan]),
        remat.plot.measured([(0, 1)], graph.memory(plan)),
    ):
        axes.figure.canvas.draw()
    told = Tags()
    told.feed(plan._repr_html_())
    assert told.tags == {"table", "caption", "tr", "th", "td"} and not told.attributes
    assert "".join(c if c.isprintable() else "?" for c in name or "x") in told.data


def test_a_plan_is_a_table_in_a_notebook(resnet):
    plan = resnet.plan("70%", "rotor")
    text = plan._repr_html_()
    for number in (
        remat.size_text(plan.peak_bytes),
        str(plan.cost),
        f"+{100 * plan.overhead:.2f} %",
        f"gap {100 * plan.gap:.2f} %",
        str(len(plan.steps)),
    ):
        assert number in text
    bare = {"format": "remat-plan", "version": 1, "kind": "graph", "graph": {"digest": resnet.digest}, "schedule": [0]}
    assert "not known" in remat.parse(json.dumps(bare))._repr_html_()
    assert remat.load("chain:figure4").plan("100%")._repr_html_().startswith("<table>")


def test_without_matplotlib_the_error_says_what_to_do():
    code = (
        "import sys; sys.modules['matplotlib'] = None; import remat, remat.plot; graph = remat.load('zoo:f'); "
        "remat.plot.timeline(graph, graph.plan())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (
        done.returncode == 1
        and "ImportError: remat.plot draws with matplotlib" in done.stderr
        and "pip install matplotlib" in done.stderr
    )
