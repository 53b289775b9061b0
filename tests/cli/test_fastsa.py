"""fastsa in the program: plans verify, same plan twice and with threads, offload and its units, order alone, odd graphs and limits."""
import json

import pytest
from conftest import GRAPHS

USAGE, INFEASIBLE, NOT_FOUND = 1, 10, 11
RESNET = GRAPHS / "resnet18.json.gz"
QUICK = ("--work", "200000", "--cost-model", "roofline:h100", "--dce", "--replay-random")


@pytest.mark.parametrize("strategy", ["fastsa", "fastsa-group", "fastsa-order", "fastsa-offload"])
def test_plans_verify(remat, strategy):
    path = remat.folder / "plan.json.gz"
    for graph, budget in ((RESNET, "60%"), (GRAPHS / "gpt2.json.gz", "40%"), ("zoo:random-layered?n=60", "80%")):
        made = remat.json("plan", graph, "--strategy", strategy, "--budget", budget, *QUICK[:2], "--offload", "100GB", "-o", path, code=(0, NOT_FOUND))
        verdict = remat.json("verify", graph, path)
        assert verdict["valid"] is True and verdict["peak_bytes"] == made["peak_bytes"] and verdict["cost"] == made["cost"]


def test_same_plan(remat):
    plans = [remat.folder / f"{i}.json" for i in range(3)]
    for path, flags in zip(plans, ((), (), ("--threads", "2"))):
        remat.json("plan", RESNET, "--strategy", "fastsa", "--budget", "60%", "--seed", "3", *QUICK, *flags, "-o", path)
    first = json.loads(plans[0].read_text())
    assert all(json.loads(path.read_text()) == first for path in plans[1:])


def test_offload_units(remat):
    base = ("plan", RESNET, "--strategy", "fastsa", "--budget", "60%", "--work", "1000")
    remat.fails(USAGE, *base, "--cost-model", "unit", "--offload", "50GB/s", says=("--offload", "ns"))
    remat.fails(USAGE, *base, "--offload", "fast", says=("--offload", "fast"))
    remat.fails(USAGE, *base, "--offload", "50%", says=("--offload",))
    remat.fails(USAGE, *base, "--offload", "0", says=("--offload",))
    assert remat.json(*base, "--cost-model", "unit", "--offload", "50GB", code=(0, NOT_FOUND))["offloaded_bytes"] >= 0
    assert remat.json("plan", RESNET, "--strategy", "fastsa-offload", "--budget", "60%", code=6)["error"]["code"] == 6


def test_order_only(remat):
    made = remat.json("plan", "zoo:random-layered?n=60", "--strategy", "fastsa", "--order-only", "--work", "100000")
    assert made["overhead"] == 0 and made["recomputed_ops"] == 0 and made["peak_bytes"] < made["keep_all_peak_bytes"]


def test_odd_graphs_and_limits(remat):
    one = {"format": "remat-graph", "version": 1, "values": [{"size": 4}, {"size": 4}], "nodes": [{"in": [0], "out": [1]}], "outputs": [1]}
    chain = {"format": "remat-graph", "version": 1, "values": [{"size": 8} for _ in range(6)],
             "nodes": [{"in": [i], "out": [i + 1], "pinned": True} for i in range(5)], "outputs": [5]}
    empty = {"format": "remat-graph", "version": 1, "values": [{"size": 0}, {"size": 0}], "nodes": [{"in": [0], "out": [1]}], "outputs": []}
    for graph in (one, chain, empty):
        path = remat.file("g.json", graph)
        made = remat.json("plan", path, "--strategy", "fastsa", "--budget", "100%", "--work", "5000")
        assert made["outcome"] == "optimal" and made["overhead"] == 0
        remat.json("plan", path, "--strategy", "fastsa", "--budget", "min", "--time", "0")
    assert remat.json("plan", remat.file("c.json", chain), "--strategy", "fastsa", "--budget", "23", code=INFEASIBLE)["work"] == 0
    assert remat.json("plan", RESNET, "--strategy", "fastsa", "--budget", "40%", "--work", "4000000000", code=INFEASIBLE)["work"] == 0
    stopped = remat.json("plan", RESNET, "--strategy", "fastsa", "--budget", "60%", "--time", "0", code=(0, NOT_FOUND))
    assert stopped["stopped"] == "time"
