"""remat without torch: read, build, plan, verify, bound, curve; errors, progress, Ctrl-C; the wheel."""

import copy
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from conftest import GRAPHS, ROOT

import remat


def test_a_traced_graph_is_read_planned_verified_and_written(tmp_path):
    file = remat.load(GRAPHS / "resnet18.json.gz")
    graph = file.prepare(dce=True)
    plan = graph.plan("60%", work=20000)
    assert (
        plan.within_budget
        and plan.outcome == "feasible"
        and plan.peak_bytes <= plan.budget_bytes < plan.keep_all_peak_bytes
    )
    verdict = graph.verify(plan)
    assert verdict and (verdict.peak_bytes, verdict.cost) == (plan.peak_bytes, plan.cost)
    assert plan.bound_cost <= plan.cost and 0 <= plan.gap < 0.2
    plan.save(tmp_path / "plan.json.gz")
    again = remat.load(tmp_path / "plan.json.gz")
    assert again.steps == plan.steps and again.peak_bytes == plan.peak_bytes
    file.save(tmp_path / "graph.json")
    assert remat.load(tmp_path / "graph.json").digest == file.digest == graph.digest
    assert sorted(os.listdir(tmp_path)) == ["graph.json", "plan.json.gz"]


def test_a_schedule_of_ones_own_is_a_plan(tmp_path):
    graph = remat.load("zoo:resnet18").prepare(dce=True)
    made = graph.plan("70%", "rotor")
    given = graph.plan_of(made.steps, made.budget_bytes, strategy="mine")
    assert given.strategy == "mine" and given.seed is None and given.steps == made.steps
    assert (given.peak_bytes, given.cost, given.bound_cost, given.outcome) == (
        made.peak_bytes,
        made.cost,
        made.bound_cost,
        made.outcome,
    )
    assert max(graph.memory(given)) == made.peak_bytes and len(graph.memory(given.steps)) == len(made.steps)
    given.save(tmp_path / "mine.json")
    assert graph.verify(remat.load(tmp_path / "mine.json"))
    over = graph.plan_of(made.steps, made.peak_bytes - 1)
    assert not over.within_budget and over.status == 11 and over.outcome == "unknown"
    with pytest.raises(remat.InvalidPlan, match="never runs"):
        graph.plan_of([step for step in made.steps if step.index != made.steps[-1].index])
    moved = ["offload", "fetch"]
    raw = remat.load("zoo:resnet18")
    steps = [0, *((kind, raw.op(0)["out"][0]) for kind in moved), *range(1, raw.n_ops)]
    free, paid = raw.verify(steps), raw.verify(steps, bandwidth=1 << 30)
    assert free and paid and free.cost < paid.cost == raw.plan_of(steps, bandwidth=1 << 30).cost


def test_a_plan_that_says_little_can_be_shown():
    graph = remat.load("zoo:f")
    bare = {
        "format": "remat-plan",
        "version": 1,
        "kind": "graph",
        "graph": {"digest": graph.digest},
        "budget_bytes": 1 << 40,
        "schedule": [0],
    }
    plan = remat.parse(json.dumps(bare))
    assert plan.status == 11 and not plan.within_budget  # nothing says that it fits
    assert plan.peak_bytes is None and plan.overhead is None and plan.gap is None and "not known" in repr(plan)


def test_bound_curve_and_lowering_agree_with_the_plan():
    graph = remat.load("zoo:resnet18").prepare(dce=True)
    plans = graph.curve(["80%", "60%", "1%"], "chen-greedy")
    assert [p.within_budget for p in plans] == [True, True, False]
    assert graph.bound(plans[1].budget_bytes).cost <= plans[1].cost
    assert graph.bound("1%").infeasible
    statements = graph.lower(plans[1])
    assert max(s.memory_bytes for s in statements) == plans[1].peak_bytes
    assert [s.step.index for s in statements if s.kind == "compute"] == [step.index for step in plans[1].steps]


def test_a_built_graph_says_what_was_put_in():
    b = remat.Builder("g", cost_unit="tick")
    x = b.value("x", 100, kind="param", dtype="float32", shape=[5, 5])
    y = b.value("y", 40, storage=64)
    z = b.view("z", 40, of=y)
    op = b.op(
        "f",
        [x],
        [y],
        target="aten.f",
        cost=7,
        flops=50,
        workspace=9,
        phase="forward",
        op_class="random",
        replay=True,
        kernel=3,
    )
    b.op("v", [y], [z], cost=0, op_class="view", phase="backward")
    over = b.op("over", [y], [b.value("w", 64)], cost=0, inplace=[(0, 0)])
    b.output(z)
    graph = b.finish()
    assert graph.op(over)["inplace"] == [(0, 0)]
    assert graph.op(op) == {
        "name": "f",
        "target": "aten.f",
        "in": [x],
        "out": [y],
        "inplace": [],
        "cost": 7,
        "flops": 50,
        "workspace": 9,
        "phase": "forward",
        "class": "random",
        "pinned": False,
        "replay": True,
        "kernel": 3,
        "given_cost": 7,
    }
    assert graph.value(z) == {
        "name": "z",
        "size": 40,
        "storage": 64,
        "alias": y,
        "kind": "temporary",
        "root": y,
        "producer": 1,
        "dtype": "",
        "shape": [],
    }
    assert (graph.value(x)["dtype"], graph.value(x)["shape"]) == ("float32", [5, 5]) and graph.cost_unit == "tick"
    assert graph.value(x)["producer"] is None and graph.outputs == [z]
    assert graph.plan().peak_bytes == 100 + 64 + 64  # z is an output, so that nothing takes its storage
    with pytest.raises(IndexError):
        graph.op(3)


def test_copies_and_pickles_have_their_own_memory():
    graph, chain = remat.load("zoo:resnet18"), remat.load("chain:toy")
    plan = graph.plan("70%", "rotor")
    for thing in (graph, chain, plan):
        assert copy.copy(thing) is thing and copy.deepcopy([thing])[0] is thing
        twin = pickle.loads(pickle.dumps(thing))
        assert type(twin) is type(thing) and twin.handle != thing.handle and twin.to_bytes() == thing.to_bytes()
    assert pickle.loads(pickle.dumps(graph)).verify(plan).cost == plan.cost


def test_errors_carry_the_library_s_line(tmp_path):
    (tmp_path / "bad.json").write_text('{"format":"remat-graph","version":1,"values":[],"nodes":[{"in":[7],"out":[]}]}')
    with pytest.raises(remat.InputError) as caught:
        remat.load(tmp_path / "bad.json")
    assert (
        caught.value.place == "nodes[0].in[0]"
        and caught.value.file.endswith("bad.json")
        and caught.value.reason in str(caught.value)
    )
    with pytest.raises(remat.FileError):
        remat.load(tmp_path / "absent.json")
    graph = remat.load("zoo:fig4")
    for call in (
        lambda: graph.plan("x"),
        lambda: graph.plan("1GiB", "no-such"),
        lambda: graph.plan("1GiB", nonsense=1),
        lambda: graph.plan(-1),
        lambda: graph.plan("1GiB", seed="a"),
        lambda: graph.prepare(nonsense=True),
        lambda: graph.plan("1GiB", seed=-1),
    ):
        with pytest.raises(remat.UsageError):
            call()
    with pytest.raises(remat.NotApplicable):
        remat.load("zoo:random-layered").plan("90%", "rotor")
    with pytest.raises(remat.Infeasible) as caught:
        graph.plan(1)
    assert caught.value.need_bytes == graph.info()["need_bytes"] and not caught.value.plan.within_budget
    b = remat.Builder()
    b.op("f", [9], [])
    with pytest.raises(remat.Error):
        b.finish()


def test_progress_is_reported_and_may_raise():
    graph, seen = remat.load(GRAPHS / "gpt2.json.gz"), []
    graph.plan("50%", work=2000000, progress=seen.append)
    assert seen and all(0 <= p.permille <= 1000 and p.strategy for p in seen) and seen[-1].cost is not None

    def stop(_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        graph.plan("50%", progress=stop, time=100)


def test_control_c_ends_the_search_with_the_best_plan_so_far():
    graph, signals = remat.load(GRAPHS / "gpt2.json.gz"), []

    def interrupt(progress):
        if progress.cost is not None and not signals:
            signals.append(1)
            os.kill(os.getpid(), signal.SIGINT)

    plan = graph.plan("50%", time=500, progress=interrupt)
    assert signals and plan.stopped == "signal" and plan.within_budget


def test_planning_on_another_thread():
    found = []
    worker = threading.Thread(target=lambda: found.append(remat.load("zoo:resnet18").plan("80%", work=1000)))
    worker.start()
    worker.join()
    assert found[0].within_budget


def test_a_wheel_runs_where_nothing_else_is_installed(tmp_path):
    """Built as `pip install .` builds it, but for the optimiser (most of the time), unpacked into an empty folder,
    run by an interpreter that sees nothing else.
    """
    run = dict(check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--disable-pip-version-check",
            "-w",
            str(tmp_path),
            "--config-settings",
            f"build-dir={tmp_path}/build",
            "--config-settings",
            "cmake.build-type=Debug",
            str(ROOT),
        ],
        env=dict(os.environ, CMAKE_BUILD_PARALLEL_LEVEL="2"),
        **{**run, "check": False},
    )
    assert built.returncode == 0, built.stdout
    (wheel,) = tmp_path.glob("*.whl")
    assert "-py3-none-" in wheel.name
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(tmp_path / "site")], **run)
    needed = subprocess.run(["ldd", str(tmp_path / "site" / "remat" / "libremat.so")], **run).stdout
    if any(
        pathlib.Path(folder, "libz.a").exists()
        for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")
    ):
        assert "libz" not in needed
    script = textwrap.dedent("""
        import sys; sys.path.insert(0, sys.argv[1])
        import remat
        assert remat._native.lib.path.startswith(sys.argv[1]), remat._native.lib.path
        print(remat.load(sys.argv[2]).plan("70%", work=1000).within_budget, "torch" in sys.modules)
    """)
    environment = {key: value for key, value in os.environ.items() if key != "REMAT_LIBRARY"}
    done = subprocess.run(
        [sys.executable, "-S", "-c", script, str(tmp_path / "site"), str(GRAPHS / "resnet18.json.gz")],
        env=environment,
        **run,
    )
    assert done.stdout.split() == ["True", "False"]
