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


# ---- hints and warnings ----


def test_a_hint_at_replay(remat):
    """GPT-2 at a quarter of its memory: dropout is why nothing fits, and the program says so, once it has tried."""
    graph = GRAPHS / "gpt2.json.gz"
    done = remat.run("plan", graph, "--budget", "25%", "--dce", "--work", "100000")
    lines = done.stderr.decode().splitlines()
    assert done.returncode == INFEASIBLE and len(lines) == 2
    assert "37 random ops are pinned" in lines[1] and "--replay-random" in lines[1] and "fits" in lines[1]
    assert remat.run("plan", graph, "--budget", "25%", "--dce", "--work", "100000", "--replay-random").returncode == 0
    done = remat.run("plan", graph, "--budget", "5%", "--dce", "--work", "100000")  # it would not help
    assert done.returncode == INFEASIBLE and b"--replay-random" not in done.stderr
    done = remat.run("plan", RESNET, "--budget", "5%")  # nothing is random
    assert done.returncode == INFEASIBLE and b"random" not in done.stderr


def warnings_of(remat, document, *flags):
    done = remat.run("info", remat.file("g.json", document), *flags)
    assert done.returncode == 0, done.stderr
    return [line.split(": warning: ")[1] for line in done.stderr.decode().splitlines()]


def test_one_warning_for_what_is_not_known(remat, small):
    assert warnings_of(remat, small) == []
    wrong = json.loads(json.dumps(small))
    wrong["output"] = wrong.pop("outputs")
    for node in wrong["nodes"]:
        node["cots"] = 1
    wrong["values"][0]["bytes"] = 4
    first, second = warnings_of(remat, wrong)
    for words in ('"output"', '"cots" in nodes', '"bytes" in values', "keys are not known"):
        assert words in first
    assert first.count("cots") == 1 and "no outputs" in second
    grows = dict(json.loads(json.dumps(small)), batch=4)
    grows["values"][0]["size_per_batch"] = 1
    grows["nodes"][0]["cost_per_batch"] = 1
    assert warnings_of(remat, grows) == []
    chain = {"format": "remat-chain", "version": 1, "stages": [{"a": 1, "abar": 2, "tf": 1, "tb": 1, "tx": 1}], "input": {"a": 1}}
    assert ['"tx" in stages' in line for line in warnings_of(remat, chain)] == [True]
    many = dict(small, **{f"k{i}": i for i in range(9)})
    assert ["k3" in line and "k4" not in line and "..." in line for line in warnings_of(remat, many)] == [True]


def test_one_warning_for_a_missing_cost(remat, small):
    del small["nodes"][2]["cost"]
    line, = warnings_of(remat, small)
    assert "1 of 5 ops have no cost, the first is op 2 g:" in line
    for node in small["nodes"]:
        node.pop("cost", None)
    assert warnings_of(remat, small) == []
    small["nodes"][0]["cost"] = 0  # says nothing that could be lost
    assert warnings_of(remat, small) == []


def test_warnings_are_said_once(remat, small):
    """maxbatch reads the file again and again."""
    small.update(batch=1, mine=1)
    for value in small["values"]:
        value["size_per_batch"] = 1
    done = remat.run("maxbatch", remat.file("g.json", small), "--budget", "1000", "--strategy", "keep-all,auto", "--work", "1000")
    assert done.returncode == 0 and done.stderr.decode().count("remat: warning: ") == 1


def test_info_shows_what_decides(remat, small):
    """Outputs, cost model, and how many ops are pinned and why."""
    small["nodes"][0]["class"], small["nodes"][2]["pinned"] = "random", True
    info = remat.json("info", remat.file("g.json", small))
    assert (info["outputs"], info["output_bytes"], info["cost_model"], info["pinned"], info["pinned_random"]) == (1, 4, "given", 2, 1)
    text = " ".join(remat.ok("info", remat.file("g.json", small)).split())
    assert "pinned 2 1 as the file says, 1 random (--replay-random frees them)" in text
    assert "outputs 1 4 B that are all in memory at the end" in text and "costs: given" in text
    info = remat.json("info", remat.file("g.json", small), "--replay-random")
    assert (info["pinned"], info["pinned_random"]) == (1, 0)
    assert "outputs" not in remat.json("info", "chain:toy") and remat.json("info", "chain:toy")["cost_model"] == "given"
