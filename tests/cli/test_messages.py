"""What the program says is true: numbers in messages, hints, warnings, and habits of people."""
import json
import signal
import subprocess
import time

import pytest
from conftest import GRAPHS, PROGRAM

USAGE, INPUT, APPLIES, INFEASIBLE, NOT_FOUND, INTERRUPTED = 1, 2, 6, 10, 11, 130
RESNET = GRAPHS / "resnet18.json.gz"


# ---- numbers ----


def test_lower_c_counts_for_itself(remat, small):
    """A plan file need not have the numbers that the head of the C file shows."""
    graph, plan = remat.file("g.json", small), remat.folder / "plan.json"
    made = remat.json("plan", graph, "-o", plan)
    short = json.loads(plan.read_text())
    for key in ("peak_bytes", "peak_step", "within_budget"):
        del short[key]
    for source in (plan, remat.file("short.json", short)):
        head = remat.ok("lower", graph, source, "--format", "c").splitlines()[:2]
        assert head[0].startswith("/* A training step in 5 steps and 4 storages")
        assert head[1] == f" * At most {made['peak_bytes']} bytes at a time, 4 of them resident. */"


def test_a_boundary_moves_nothing(remat):
    """By a roofline remat.boundary is free, whatever it reads and makes."""
    graph = {"format": "remat-graph", "version": 1, "values": [{"size": 10**9}, {"size": 10**9}, {"size": 10**9}],
             "nodes": [{"op": "aten.relu.default", "in": [0], "out": [1], "flops": 1, "phase": "forward"},
                       {"op": "remat.boundary", "in": [1], "out": [2], "phase": "forward", "pinned": True}], "outputs": [2]}
    cost = remat.json("info", remat.file("g.json", graph), "--cost-model", "roofline:h100")["keep_all_cost"]
    assert cost == -(-2 * 10**9 * 10**9 // (3350 * 10**9))
    graph["nodes"][1]["op"] = "aten.relu.default"
    assert remat.json("info", remat.file("g.json", graph), "--cost-model", "roofline:h100")["keep_all_cost"] == 2 * cost


def test_verify_says_what_it_checked_of_the_bound(remat):
    plan, base = remat.folder / "plan.json", ("plan", RESNET, "--dce", "--replay-random", "--work", "100000")
    made = remat.json(*base, "--budget", "60%", "-o", plan)
    verdict = remat.json("verify", RESNET, plan, "--bound")
    assert (verdict["bound_cost"], verdict["bound_scope"], verdict["bound_checked"]) == (made["bound_cost"], "fixed-order", "certificate")
    text = " ".join(remat.ok("verify", RESNET, plan, "--bound").split())
    assert f"{made['bound_cost']} ns, no plan in this order of first runs costs less" in text and "proof checked by the certificate" in text
    assert "bound" not in remat.ok("verify", RESNET, plan) and "bound_cost" not in remat.json("verify", RESNET, plan)
    said = json.loads(plan.read_text())
    said["bound"]["method"] = "search"
    assert remat.json("verify", RESNET, remat.file("searched.json", said), "--bound")["bound_checked"] is None
    remat.ok(*base, "--budget", "100%", "-o", plan)
    assert remat.json("verify", RESNET, plan, "--bound")["bound_checked"] == "first-runs"


def test_limits_that_are_named_are_those_that_help(remat):
    """A program that is too large: what allows a larger one depends on what was given."""
    base = ("plan", RESNET, "--strategy", "checkmate", "--budget", "60%", "--json")
    reasons = []
    for flags in ((), ("--time", "5"), ("--checkmate-entries", "7")):
        done = remat.run(*base, *flags)
        reason = json.loads(done.stdout)["error"]["reason"] if done.returncode == APPLIES else ""
        if "needs a MILP solver" in reason:
            pytest.fail("no solver: REMAT_HIGHS names it")
        reasons.append(reason)
    assert "--time" in reasons[0] and "--time" not in reasons[1] and "--checkmate-entries allows more" in reasons[2]


def test_optimal_needs_no_limit(remat):
    """Where the plan is optimal, no limit kept it from being better."""
    base = ("plan", "zoo:random-layered?n=200&seed=2", "--budget", "70%")
    made = remat.json(*base)
    assert (made["outcome"], made["stopped"]) == ("optimal", "work")
    assert "limit" not in remat.ok(*base).splitlines()[0]


def test_an_interrupted_plan_is_130(remat):
    path = remat.folder / "plan.json"
    command = [PROGRAM, "plan", RESNET, "--dce", "--replay-random", "--budget", "70%", "--time", "100", "-o", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        text, message = process.communicate(timeout=100)
    assert process.returncode == INTERRUPTED and b"interrupted" in message and b"interrupted" in text
    assert remat.json("verify", RESNET, path)["valid"]
