"""remat fuse, --fuse, and the examples of the min-cut paper."""

import json
import pathlib

import pytest

from conftest import GRAPHS, schema

USAGE, INPUT, PLAN, APPLIES = 1, 2, 5, 6
TRAFFIC = "groups group_read_bytes group_written_bytes other_read_bytes other_written_bytes traffic_bytes".split()
FIELDS = "graph ops unfused before after rounds copies stopped seconds file kernels".split()


@pytest.mark.parametrize(
    "name, naive, best, capacity", [("f", 7, 5, 1), ("f1", 11, 9, 2), ("f2", 18, 18, 2), ("gelu", 13, 5, 1)]
)
def test_paper_examples(remat, name, naive, best, capacity):
    """Tensors read and written, as the paper counts them; bytes an element for f2."""
    assert remat.json("plan", f"zoo:{name}", "--strategy", "keep-all")["traffic_bytes"] == naive
    plan = remat.json("plan", f"zoo:{name}", "--strategy", "mincut")
    assert (plan["traffic_bytes"], plan["cut_capacity"]) == (best, capacity)
    assert f"{best} B" in remat.ok("plan", f"zoo:{name}", "--strategy", "mincut")


def test_figure_4(remat):
    found = remat.json("fuse", "zoo:fig4")
    assert list(found) == FIELDS and list(found["before"]) == TRAFFIC
    assert [found[when][key] for when in ("before", "after") for key in TRAFFIC[1:3]] == [4, 4, 3, 2]
    assert found["copies"] == 2 and found["stopped"] == "done" and found["file"] is None
    assert [k["ops"] for k in found["kernels"]] == [[0, 1, 2], [3], [4, 5, 6]]
    assert sum(k["read_bytes"] + k["written_bytes"] for k in found["kernels"]) == found["after"]["traffic_bytes"] == 7
    summed = remat.json("fuse", "zoo:fig4?k=1000")
    assert [summed[when][key] for when in ("before", "after") for key in TRAFFIC[1:3]] == [1003, 4, 1002, 3]
    text = remat.ok("fuse", "zoo:fig4")
    assert "fig4" in text and "2 copies" in text and "b.again c.again f" in text


def test_program_file(remat):
    path = str(remat.folder / "program.json")
    assert f"graph written to {path}" in remat.ok("fuse", "zoo:fig4", "-o", path, columns="160")
    program = json.loads(pathlib.Path(path).read_text())
    schema("remat-graph.schema.json").validate(program)
    assert [node.get("kernel") for node in program["nodes"]] == [0, 0, 0, None, 2, 2, 2]
    assert remat.json("plan", path)["traffic_bytes"] == 7
    again = remat.json("fuse", path)
    assert again["copies"] == 0 and again["before"]["traffic_bytes"] == again["after"]["traffic_bytes"] == 7
    assert remat.ok("import", path) == pathlib.Path(path).read_text()
    done = remat.run("fuse", "zoo:fig4", "-o", "-", "--json")
    assert json.loads(done.stdout) == program and json.loads(done.stderr)["copies"] == 2
    assert remat.json("fuse", "zoo:fig4", "-o", path + ".gz")["file"] == path + ".gz"


@pytest.mark.parametrize("strategy", ["keep-all", "mincut", "chen-sqrt"])
def test_of_a_plan(remat, strategy):
    graph, path = GRAPHS / "resnet18.json.gz", str(remat.folder / "plan.json")
    plan = remat.json("plan", graph, "--dce", "--strategy", strategy, "-o", path)
    fused = remat.json("fuse", graph, path)
    assert fused["before"]["traffic_bytes"] == plan["traffic_bytes"] >= fused["after"]["traffic_bytes"]
    assert fused["before"]["traffic_bytes"] < fused["unfused"]["traffic_bytes"]


def test_kernels_as_ops(remat):
    graph, path = GRAPHS / "distilbert.json.gz", str(remat.folder / "plan.json")
    ops = remat.json("plan", graph, "--dce", "--strategy", "keep-all")
    kernels = remat.json("plan", graph, "--dce", "--fuse", "--strategy", "keep-all", "-o", path)
    assert (
        kernels["ops"] < ops["ops"]
        and kernels["traffic_bytes"] == ops["traffic_bytes"]
        and kernels["cost"] < ops["cost"]
    )
    written = json.loads(pathlib.Path(path).read_text())
    assert written["options"]["fuse"] is True
    schema("remat-plan.schema.json").validate(written)
    assert remat.json("verify", graph, path)["valid"] is True
    assert remat.json("verify", graph, path, "--dce", code=PLAN)["valid"] is False
    assert remat.json("info", graph, "--fuse")["ops"] < remat.json("info", graph)["ops"]
    assert "allocate" in remat.ok("lower", graph, path)
    half = remat.json(
        "plan", graph, "--dce", "--fuse", "--replay-random", "--budget", "50%", "--strategy", "rotor", "-o", path
    )
    assert half["within_budget"] and remat.json("verify", graph, path)["peak_bytes"] == half["peak_bytes"]


def test_bad_input(remat, small):
    graph = remat.file("small.json", small)
    remat.fails(INPUT, "fuse", "chain:figure4", says=("chain:figure4", "graph is needed"))
    remat.fails(USAGE, "fuse", graph, "--fuse", says=("--fuse",))
    remat.fails(USAGE, "fuse", "-", "-", says=("fuse", "standard input"))
    remat.fails(INPUT, "fuse", graph, graph, says=("small.json", "is a graph, where a plan is needed"))
    digest = remat.json("info", graph)["digest"]

    def plan(schedule):
        return remat.file(
            "p.json",
            {"format": "remat-plan", "version": 1, "kind": "graph", "graph": {"digest": digest}, "schedule": schedule},
        )

    remat.fails(PLAN, "fuse", graph, plan([1, 0, 2, 3, 4]), says=("p.json", "step 0"))
    remat.fails(
        APPLIES,
        "fuse",
        graph,
        plan([0, {"offload": 1}, {"fetch": 1}, 1, 2, 3, 4]),
        says=("p.json", "step 1", "transfer"),
    )
    for kernel, reason in ((-1, "negative"), ("f", "integer"), (2**32 - 1, "below")):
        small["nodes"][4]["kernel"] = kernel
        remat.fails(INPUT, "info", remat.file("k.json", small), says=("nodes[4].kernel", reason))
    small["nodes"][4]["kernel"] = 3
    assert json.loads(remat.ok("import", remat.file("k.json", small)))["nodes"][4]["kernel"] == 3


def test_without_phases_and_classes(remat):
    found = remat.json("fuse", "zoo:random-layered?n=50")
    assert (
        found["before"]["groups"] == 0
        and found["before"]["traffic_bytes"] == found["after"]["traffic_bytes"] == found["unfused"]["traffic_bytes"]
    )
    empty = remat.file("empty.json", {"format": "remat-graph", "version": 1, "values": [], "nodes": [], "outputs": []})
    assert remat.json("fuse", empty)["kernels"] == []


def test_costs_of_fused_kernels(remat):
    """By fused:h100 keep-all costs what its kernels take, and a plan for them has faster kernels than one for single ops."""
    graph, plan = GRAPHS / "densenet121.json.gz", str(remat.folder / "plan.json")
    flags = ("--dce", "--replay-random")

    def kernels_ns():
        lowered = remat.file("lowered.json", remat.json("lower", graph, plan, "--format", "graph"))
        return remat.json("info", lowered, "--fuse", *flags[1:], "--cost-model", "roofline:h100")["keep_all_cost"]

    def planned(model):
        found = remat.json(
            "plan", graph, *flags, "--budget", "50%", "--work", "400000", "--cost-model", model, "-o", plan
        )
        assert found["within_budget"] and remat.json("verify", graph, plan, "--bound")["valid"]
        return found, kernels_ns()

    single, fused = planned("roofline:h100"), planned("fused:h100")
    keep_all = remat.json("info", graph, *flags, "--fuse", "--cost-model", "roofline:h100")["keep_all_cost"]
    assert abs(fused[0]["keep_all_cost"] - keep_all) < 0.005 * keep_all and keep_all < single[0]["keep_all_cost"]
    assert keep_all < fused[1] < single[1]
    assert abs(fused[0]["cost"] - fused[1]) < 0.02 * keep_all
    assert json.loads(pathlib.Path(plan).read_text())["cost_model"] == "fused:h100"
    remat.fails(USAGE, "plan", graph, "--cost-model", "fused:abacus", says=("abacus",))
    classes = ("--class", "aten.cat=fusible")  # its plan could not be verified: it has no place for classes
    remat.fails(USAGE, "plan", graph, "--cost-model", "fused:h100", *classes, says=("class rules", "file"))
