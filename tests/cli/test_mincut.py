"""mincut in the program: compare --saved, info --classes, --class, and maxflow with everything that can be wrong
with its file.
"""

import json

import pytest
from conftest import GRAPHS

NETWORK = "c small\np max 4 5\nn 1 s\nn 4 t\na 1 2 3\na 1 3 2\na 2 4 2\na 3 4 4\na 2 3 1\n"
TRACED = sorted(path.name for path in GRAPHS.glob("*.json.gz"))


@pytest.mark.parametrize("name", TRACED)
def test_saved(remat, name):
    rows = {row["strategy"]: row for row in remat.json("compare", GRAPHS / name, "--saved")}
    assert list(rows) == ["keep-all", "save-inputs", "save-layers", "mincut"]
    assert all(row["budget_bytes"] is None and row["within_budget"] for row in rows.values())
    assert 0 < rows["mincut"]["cut_capacity"] <= rows["keep-all"]["cut_capacity"]
    assert rows["mincut"]["saved_bytes"] <= rows["keep-all"]["saved_bytes"]
    assert rows["save-inputs"]["saved_bytes"] <= rows["save-layers"]["saved_bytes"]


def test_saved_csv_has_what_the_table_shows(remat):
    graph = GRAPHS / "resnet18.json.gz"
    lines = [line.split(",") for line in remat.ok("compare", graph, "--saved", "--csv").splitlines()]
    rows = {row["strategy"]: row for row in remat.json("compare", graph, "--saved")}
    assert len(lines) == 5 and all(len(line) == len(lines[0]) for line in lines)
    for line in lines[1:]:
        cells = dict(zip(lines[0], line))
        for key in ("saved_bytes", "cut_capacity", "traffic_bytes"):
            assert int(cells[key]) == rows[cells["strategy"]][key]


def test_saved_table(remat):
    graph = GRAPHS / "gpt2.json.gz"
    lines = remat.ok("compare", graph, "--saved").splitlines()
    head = next(line for line in lines if line.startswith("strategy"))
    assert head.split()[:4] == ["strategy", "saved", "crossing", "traffic"]
    assert [line.split()[0] for line in lines[lines.index(head) + 1 :]] == [
        "keep-all",
        "save-inputs",
        "save-layers",
        "mincut",
    ]
    assert "rotor" in remat.ok("compare", graph, "--saved", "--strategy", "rotor,mincut", "--budget", "60%")


@pytest.mark.parametrize("budget", ["min", "30%", "50%", "90%"])
@pytest.mark.parametrize("name", ["resnet50", "gpt2"])
def test_budgets(remat, name, budget):
    graph, path = GRAPHS / f"{name}.json.gz", remat.folder / "plan.json"
    done = remat.run("plan", graph, "--strategy", "mincut", "--budget", budget, "-o", path, "--json")
    made = json.loads(done.stdout)
    assert made["within_budget"] == (done.returncode == 0)
    assert remat.json("verify", graph, path)["peak_bytes"] == made["peak_bytes"]
    first = path.read_bytes()
    remat.run("plan", graph, "--strategy", "mincut", "--budget", budget, "-o", path)
    assert path.read_bytes() == first


def test_no_phases(remat, small):
    for node in small["nodes"]:
        del node["phase"]
    graph = remat.file("g.json", small)
    for strategy in ("mincut", "save-inputs", "save-layers"):
        remat.fails(6, "plan", graph, "--strategy", strategy, says=["phases"])
    remat.fails(6, "info", graph, "--classes", says=["phases"])


def test_classes(remat, small):
    graph = remat.file("g.json", small)
    rows = remat.json("info", graph, "--classes")["classes"]
    assert [set(row) for row in rows] == [{"name", "op", "class", "in_forward", "banned", "reason"}] * 5
    assert [row["name"] for row in rows] == ["f", "t", "g", "g'", "f'"]
    assert [row["class"] for row in rows] == ["compute", "view", "compute", "compute", "compute"]
    assert [row["in_forward"] for row in rows] == [True, True, True, False, False]
    assert [(row["banned"], row["reason"]) for row in rows[:2]] == [(True, "compute"), (False, None)]
    assert "may run again" in remat.ok("info", graph, "--classes")
    small["nodes"][0]["op"] = "mine.f.default"
    graph = remat.file("named.json", small)
    rows = remat.json("info", graph, "--classes", "--class", "mine.f=fusible,x=view")["classes"]
    # f' cannot be fused with it
    assert rows[0]["class"] == "fusible" and rows[0]["banned"] and "backward" in rows[0]["reason"]
    rows = remat.json("info", graph, "--classes", "--class", "mine=fusible")["classes"]
    assert rows[0]["class"] == "fusible"


@pytest.mark.parametrize(
    "text", ["x", "x=", "=fusible", "x=fuzible", "x=fusible,", ",", "x=fusible,y", "a" * 200 + "=view"]
)
def test_bad_class(remat, small, text):
    remat.fails(1, "info", remat.file("g.json", small), "--classes", "--class", text, says=["--class"])


def test_classes_of_chains(remat):
    remat.fails(1, "info", "chain:random", "--classes", says=["--classes"])


def test_maxflow(remat):
    answer = remat.json("maxflow", remat.file("n.max", NETWORK))
    assert list(answer) == ["value", "source_side", "seconds"]
    assert answer["value"] == 5 and answer["source_side"] == [1, 2] and answer["seconds"] >= 0
    assert "maximum flow 5" in remat.ok("maxflow", remat.file("n.max.gz", NETWORK))
    assert remat.run("maxflow", "-", "--json", input=NETWORK.encode()).returncode == 0


def test_maxflow_odd_networks(remat):
    def value(arcs, n=2):
        text = f"p max {n} {len(arcs)}\nn 1 s\nn {n} t\n" + "".join("a %d %d %d\n" % arc for arc in arcs)
        answer = remat.json("maxflow", remat.file("odd.max", text))
        return answer["value"], answer["source_side"]

    assert value([]) == (0, [1])
    assert value([(1, 1, 7), (2, 2, 9), (1, 2, 3)]) == (3, [1])  # loops carry nothing
    assert value([(1, 2, 3), (1, 2, 4), (2, 1, 100)]) == (7, [1])  # parallel arcs add up
    assert value([(1, 2, 0)]) == (0, [1])
    assert value([(1, 2, 2**62 - 1)]) == (2**62 - 1, [1])
    assert value([(1, 2, 5), (2, 3, 5)], 3) == (5, [1, 2])  # of two minimum cuts the one nearest the sink


@pytest.mark.parametrize(
    "text, says",
    [
        ("p max 2 1\nn 1 s\nn 2 t\na 1 2 4611686018427387904\n", ["line 4", "2^62"]),
        ("p max 2 1\nn 1 s\nn 2 t\na 1 2 99999999999999999999999999\n", ["line 4", "2^62"]),
        ("p max 2 2\nn 1 s\nn 2 t\na 1 2 4611686018427387903\na 1 2 1\n", ["line 5", "sum"]),
        ("p max 2 1\nn 1 s\nn 2 t\na 1 2 -1\n", ["line 4"]),
        ("p max 2 1\nn 1 s\nn 2 t\na 1 2 1.5\n", ["line 4"]),
        ("p max 2 1\nn 1 s\nn 2 t\na 1 3 1\n", ["line 4", "vertex", "3"]),
        ("p max 2 1\nn 1 s\nn 2 t\na 0 2 1\n", ["line 4", "vertex"]),
        ("p max 2 1\nn 1 s\nn 2 t\na 1 2\n", ["line 4", "a FROM TO CAPACITY"]),
        ("p max 2 1\nn 1 s\nn 2 t\na 1 2 3 4\n", ["line 4"]),
        ("p max 2 2\nn 1 s\nn 2 t\na 1 2 1\n", ["2 arcs", "1"]),
        ("p max 2 0\nn 1 s\nn 2 t\na 1 2 1\n", ["line 4", "more arcs"]),
        ("p max 2 0\np max 2 0\n", ["line 2"]),
        ("p min 2 0\n", ["line 1"]),
        ("p max 1 0\n", ["line 1", "vertices"]),
        ("p max 4000000000 0\n", ["line 1", "vertices"]),
        ("p max 2 0\nn 1 s\n", ["sink"]),
        ("p max 2 0\nn 1 t\n", ["source"]),
        ("p max 2 0\nn 1 s\nn 1 t\n", ["same"]),
        ("p max 2 0\nn 1 s\nn 2 s\n", ["line 3", "second source"]),
        ("p max 2 0\nn 1 x\n", ["line 2"]),
        ("c hello\na 1 2 3\n", ["line 2", "first"]),
        ("c only comments\n", ["p max"]),
        ("p max 2 0\nn 1 s\nn 2 t\nx 1\n", ["line 4", "'x'"]),
        ("nonsense", ["DIMACS"]),
        ("", ["empty"]),
    ],
)
def test_maxflow_bad_input(remat, text, says):
    remat.fails(2, "maxflow", remat.file("bad.max", text), says=["bad.max", *says])
    error = remat.json("maxflow", remat.file("bad.max", text), code=2)["error"]
    assert error["code"] == 2 and error["reason"]


def test_wrong_kind_of_file(remat, small):
    remat.fails(2, "maxflow", remat.file("g.json", small), says=["flow network"])
    remat.fails(2, "info", remat.file("n.max", NETWORK), says=["a flow network, where a graph is needed"])
    remat.fails(2, "plan", remat.file("n.max", NETWORK), says=["a graph is needed"])
    remat.fails(3, "maxflow", remat.folder / "none.max")
    remat.fails(1, "maxflow")
