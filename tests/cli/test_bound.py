"""Bounds: their fields, their certificates in plan files, and what the program says where nothing fits."""

import json

import pytest
from conftest import GRAPHS, schema

BOUND_FIELDS = """graph budget_bytes keep_all_peak_bytes need_bytes need_op bound_cost cost_unit keep_all_cost overhead bound_scope
bound_method rules outcome seconds any_order_bound_cost""".split()


def pinned_order():
    """What A made must be kept while B runs, since A is pinned; B first would need less."""
    return {
        "format": "remat-graph",
        "version": 1,
        "name": "pinned",
        "outputs": [],
        "values": [{"name": "held", "size": 5}, {"name": "c", "size": 3}],
        "nodes": [
            {"name": "A", "in": [], "out": [0], "cost": 1, "pinned": True},
            {"name": "B", "in": [], "out": [1], "cost": 1},
            {"name": "C", "in": [0], "out": [], "cost": 1},
        ],
    }


def test_fields_and_known_bounds(remat):
    graph = GRAPHS / "resnet50.json.gz"
    flags = ("--dce", "--replay-random", "--cost-model", "unit")
    bound = remat.json("bound", graph, "--budget", "50%", *flags)
    assert list(bound) == BOUND_FIELDS
    # a chain of blocks: one path has it all
    assert (bound["bound_scope"], bound["bound_method"], bound["keep_all_cost"]) == ("any-order", "flow", 406)
    assert bound["bound_cost"] >= 406 + 27  # 6.7 % in the prototype
    assert bound["rules"] and set(bound["rules"]) <= {"single readers", "fan-out", "regions", "side outputs", "holders"}
    base = remat.json("bound", graph, "--budget", "50%", *flags, "--bound-rules", "0")
    assert 406 < base["bound_cost"] <= bound["bound_cost"] and base["rules"] == []
    loose = remat.json("bound", graph, "--budget", "100%", *flags)
    assert (loose["bound_cost"], loose["bound_scope"], loose["overhead"]) == (406, "any-order", 0)
    assert "no plan below" in remat.ok("bound", graph, "--budget", "50%")


@pytest.mark.parametrize("strategy", ["rotor", "chen-sqrt"])
def test_plans_carry_certificates(remat, strategy):
    graph, path = GRAPHS / "resnet18.json.gz", remat.folder / "plan.json"
    made = remat.json("plan", graph, "--budget", "70%", "--strategy", strategy, "-o", path, "--dce")
    assert (
        made["bound_scope"] == "fixed-order"
        and made["keep_all_cost"] < made["bound_cost"] <= made["cost"]
        and made["gap"] >= 0
    )
    plan = json.loads(path.read_text())
    schema("remat-plan.schema.json").validate(plan)
    remat.ok("verify", graph, path, "--bound")
    for change in ({"cost": plan["bound"]["cost"] + 1}, {"certificate": None}):
        other = dict(plan, bound=dict(plan["bound"], **change))
        assert remat.run("verify", graph, remat.file("other.json", other), "--bound").returncode == 5
    certificate = plan["bound"]["certificate"]
    for change in (
        {"scale": certificate["scale"] // 2},
        {"prices": certificate["prices"][1:]},
        {"heirs": []},
        {"prices": [[op, 2 * price] for op, price in certificate["prices"]]},
    ):
        other = dict(plan, bound=dict(plan["bound"], certificate=dict(certificate, **change)))
        # with or without --bound
        assert remat.run("verify", graph, remat.file("other.json", other)).returncode == 5, change


def test_certificates_are_read_with_care(remat):
    graph, path = GRAPHS / "resnet18.json.gz", remat.folder / "plan.json"
    remat.json("plan", graph, "--budget", "70%", "--strategy", "rotor", "-o", path, "--dce")
    plan = json.loads(path.read_text())
    good = plan["bound"]["certificate"]
    bad = [
        7,
        {},
        dict(good, scale=0),
        dict(good, scale="1"),
        dict(good, prices=7),
        dict(good, prices=[7]),
        dict(good, prices=[[1, -1]]),
        dict(good, prices=[[-1, 1]]),
        dict(good, prices=[[1, 2, 3]]),
        dict(good, heirs=[[1, 2.5]]),
        dict(good, heirs=[[1, 2**40]]),
    ]
    for certificate in bad:
        other = dict(plan, bound=dict(plan["bound"], certificate=certificate))
        done = remat.run("verify", graph, remat.file("other.json", other))
        assert (
            done.returncode == 2 and "certificate" in done.stderr.decode() and done.stderr.decode().count("\n") == 1
        ), certificate


def test_nothing_fits(remat):
    done = remat.run("bound", GRAPHS / "vgg16.json.gz", "--budget", "25%", "--json")
    bound = json.loads(done.stdout)
    assert (
        done.returncode == 10
        and bound["outcome"] == "infeasible"
        and bound["bound_cost"] is None
        and bound["bound_scope"] == "any-order"
    )
    assert bound["need_op"] in done.stderr.decode()
    graph = remat.file("pinned.json", pinned_order())
    done = remat.run("bound", graph, "--budget", "7")
    assert done.returncode == 10 and done.stderr.decode() == (
        "remat: no plan in this order of first runs fits 7 bytes: op B needs 8 bytes: held 5 B, c 3 B\n"
    )
    assert remat.run("bound", graph, "--budget", "8").returncode == 0


def test_usage(remat):
    for arguments in ((), ("--budget", "min"), ("--budget", "-1"), ("--budget", "50%", "--strategy", "rotor")):
        assert remat.run("bound", "zoo:mlp", *arguments).returncode == 1
    assert remat.run("bound", "chain:toy", "--budget", "50").returncode == 6


def test_a_search_is_not_taken_for_a_certificate(remat):
    graph, path = GRAPHS / "resnet18.json.gz", remat.folder / "plan.json"
    flags = ("--dce", "--fold-identity", "--no-alias", "--cost-model", "node", "--bound-rules", "31")
    made = remat.json("plan", graph, "--budget", "50%", "--strategy", "exact", "--work", "1000000", "-o", path, *flags)
    assert (made["cost"], made["bound_cost"], made["bound_scope"], made["outcome"]) == (
        179,
        179,
        "fixed-order",
        "optimal",
    )
    plan = json.loads(path.read_text())
    schema("remat-plan.schema.json").validate(plan)
    assert plan["bound"]["method"] == "search" and plan["bound"]["certificate"]["cost"] == 178
    assert remat.run("verify", graph, path).stderr == b""
    checked = remat.run("verify", graph, path, "--bound")
    assert (
        checked.returncode == 0
        and b"the plan's bound 179 comes from a search and is not checked; 178 is proved" in checked.stderr
    )
    bare = dict(plan, bound=dict(plan["bound"], certificate=None))
    checked = remat.run("verify", graph, remat.file("bare.json", bare), "--bound")
    assert checked.returncode == 0 and b"171 is proved" in checked.stderr


WIDE = "zoo:random-layered?n=20&width=4&seed=6"


def test_a_scope_with_every_number(remat):
    """ "optimal" alone means in any order; a gap says in which scope; rows of one budget are held against one bound."""
    words = ("compare", WIDE, "--budget", "70%", "--work", "1000000", "--strategy")
    rows = remat.json(*words, "exact,auto,fastsa")
    fitting = [row for row in rows if row["within_budget"]]
    assert len(fitting) == 3
    for row in fitting:
        assert row["any_order_bound_cost"] <= row["bound_cost"] <= row["cost"]
        assert row["bound_scope"] in ("any-order", "fixed-order") and row["any_order_gap"] >= row["gap"] >= 0
        assert (row["outcome"] == "optimal") == (row["cost"] == row["bound_cost"])
        best_known = max(other["any_order_bound_cost"] for other in fitting)
        assert all(other["cost"] >= best_known for other in fitting)
    text = remat.run(*words, "exact,auto,fastsa").stdout.decode()
    for row in fitting:
        line = next(line for line in text.splitlines() if line.startswith(row["strategy"] + " "))
        is_best = row["cost"] == max(other["any_order_bound_cost"] for other in fitting)
        assert ("optimal" in line) == is_best and ("its order" in line or "any order" in line)
    head = remat.run(*words, "rotor,keep-all", "--csv").stdout.decode().splitlines()[0].split(",")
    assert "bound_scope" in head and "any_order_bound_cost" in head


def test_bounds_name_their_order(remat):
    text = remat.run("bound", WIDE, "--budget", "70%").stdout.decode()
    assert "no plan in this order below" in text and "any-order" in text
    plan = remat.run("plan", WIDE, "--budget", "70%", "--strategy", "exact").stdout.decode()
    assert "optimal in its order" in plan or "optimal in any order" in plan


def test_rows_where_nothing_fits(remat):
    rows = remat.json(
        "curve", "zoo:mlp", "--from", "10%", "--to", "100%", "--points", "3", "--strategy", "mincut", code=(0, 10, 11)
    )
    assert rows[0]["outcome"] == "infeasible" and rows[0]["cost"] is None and rows[0]["overhead"] is None
    assert rows[-1]["cost"] == rows[-1]["keep_all_cost"]


def test_the_least_peak_is_found_by_looking_back(remat):
    """op 7 reads v6 and v3, 13 bytes with what it makes; but whichever of them is made last is made beside the
    other, from 4 bytes or more: 15.
    """
    sizes = [5, 4, 5, 7, 2, 2, 4, 2]
    reads = [[], [0], [0], [1], [1], [4], [5, 2], [6, 3]]
    (remat.folder / "g.json").write_text(
        json.dumps(
            {
                "format": "remat-graph",
                "version": 1,
                "name": "back",
                "outputs": [],
                "values": [{"name": f"v{i}", "size": n} for i, n in enumerate(sizes)],
                "nodes": [
                    {"name": f"op{i}", "in": read, "out": [i], "cost": 1, "workspace": {4: 7, 5: 9}.get(i, 0)}
                    for i, read in enumerate(reads)
                ],
            }
        )
    )
    least = remat.json("plan", remat.folder / "g.json", "--budget", "min")
    assert (least["need_bytes"], least["least_peak_bound"], least["peak_bytes"]) == (13, 15, 15)
    assert remat.json("plan", remat.folder / "g.json", "--budget", "14", code=10)["outcome"] == "infeasible"


TWO_ORDERS = {
    "format": "remat-graph",
    "version": 1,
    "name": "two-orders",
    "outputs": [1, 2],
    "values": [{"name": "x", "size": 10}, {"name": "y", "size": 1}, {"name": "z", "size": 1}],
    "nodes": [
        {"name": "A", "in": [], "out": [0], "cost": 5},
        {"name": "B", "in": [], "out": [1], "cost": 1, "workspace": 10},
        {"name": "C", "in": [0], "out": [2], "cost": 1},
    ],
}


@pytest.mark.parametrize(
    "scope,method,changed,says",
    [
        ("any-order", "flow", {}, "other orders than its own"),
        ("any-order", "flow", {"any_order_bound": {"cost": 7, "method": "first-runs"}}, "other orders than its own"),
        ("checkmate", "flow", {}, "other orders than its own"),
        ("any-order", "first-runs", {"cost": None, "outcome": None}, "not what running every op once costs"),
    ],
)
def test_a_bound_of_one_order_is_not_taken_for_one_of_all(remat, scope, method, changed, says):
    """A B A C costs 12, and nothing with A before B is cheaper: a certificate proves that. B A C costs 7."""
    graph, plan = remat.folder / "g.json", remat.folder / "p.json"
    graph.write_text(json.dumps(TWO_ORDERS))
    assert remat.json("plan", graph, "--budget", "12")["cost"] == 7
    file = {
        "format": "remat-plan",
        "version": 1,
        "kind": "graph",
        "graph": {"digest": remat.json("info", graph)["digest"]},
        "budget_bytes": 12,
        "schedule": [0, 1, 0, 2],
        "outcome": "optimal",
        "cost": 12,
        "bound": {
            "cost": 12,
            "scope": "fixed-order",
            "method": "flow",
            "certificate": {"scale": 2, "prices": [[1, 1]], "heirs": []},
        },
    }
    plan.write_text(json.dumps(file))
    assert remat.json("verify", graph, plan, "--bound")["bound_cost"] == 12
    file["bound"].update(scope=scope, method=method)
    file.update(changed)
    plan.write_text(json.dumps({key: value for key, value in file.items() if value is not None}))
    for flags in ((), ("--bound",)):
        assert says in remat.run("verify", graph, plan, *flags).stderr.decode()
        assert remat.json("verify", graph, plan, *flags, code=5)["valid"] is False
