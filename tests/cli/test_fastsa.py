"""fastsa in the program: plans verify, same plan twice and with threads, offload and its units, order alone, odd
graphs and limits.
"""

import json

import pytest
from conftest import GRAPHS, SANITIZED, Remat

USAGE, INFEASIBLE, NOT_FOUND = 1, 10, 11
RESNET = GRAPHS / "resnet18.json.gz"
QUICK = ("--work", "200000", "--cost-model", "roofline:h100", "--dce", "--replay-random")


@pytest.mark.parametrize("strategy", ["fastsa", "fastsa-group", "fastsa-order", "fastsa-offload"])
def test_plans_verify(remat, strategy):
    path = remat.folder / "plan.json.gz"
    for graph, budget in ((RESNET, "60%"), (GRAPHS / "gpt2.json.gz", "40%"), ("zoo:random-layered?n=60", "80%")):
        offload = ("--offload", "100GB") if strategy in ("fastsa", "fastsa-offload") else ()
        made = remat.json(
            "plan",
            graph,
            "--strategy",
            strategy,
            "--budget",
            budget,
            *QUICK[:2],
            *offload,
            "-o",
            path,
            code=(0, NOT_FOUND),
        )
        verdict = remat.json("verify", graph, path)
        assert (
            verdict["valid"] is True and verdict["peak_bytes"] == made["peak_bytes"] and verdict["cost"] == made["cost"]
        )


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


def test_auto_obeys(remat):
    """auto, the default, obeys --offload and --order-only: as good as fastsa, and as itself without."""
    graph, path = "zoo:random-layered?n=60", remat.folder / "plan.json"
    order = remat.json("plan", graph, "--order-only", "--work", "100000", "-o", path)
    assert (
        order["strategy"] == "auto"
        and order["recomputed_ops"] == 0
        and order["peak_bytes"] < order["keep_all_peak_bytes"]
    )
    base = ("plan", graph, "--budget", "50%", "--work", "300000")
    moved, stayed = remat.json(*base, "--offload", "5GB", "-o", path), remat.json(*base, code=INFEASIBLE)
    assert moved["offloaded_bytes"] > 0 and moved["within_budget"] and not stayed["within_budget"]
    assert remat.json("verify", graph, path, "--bound")["cost"] == moved["cost"]


def test_a_bound_with_offload_allows_offload(remat):
    """A plan that moves nothing, made where values may be moved, is compared with plans that move them."""
    graph, path = RESNET, remat.folder / "plan.json"
    base = ("plan", graph, "--dce", "--replay-random", "--budget", "60%", "--work", "300000")
    made, alone = remat.json(*base, "--offload", "25GB/s", "-o", path), remat.json(*base)
    assert made["offloaded_bytes"] == 0 and made["bound_cost"] < alone["bound_cost"]
    remat.ok("verify", graph, path, "--bound")


@pytest.fixture(scope="module")
def one_op(tmp_path_factory):
    """A graph of one op, as a file."""
    return Remat(tmp_path_factory.mktemp("heeds")).file(
        "g.json",
        {
            "format": "remat-graph",
            "version": 1,
            "values": [{"size": 4}, {"size": 4}],
            "nodes": [{"in": [0], "out": [1], "cost": 1}],
            "outputs": [1],
        },
    )


@pytest.fixture(scope="module")
def heeded(one_op):
    """The table of plan --help: flags by strategy, of all strategies."""
    remat = Remat(None)
    lines = remat.ok("plan", "--help", columns="500").split("What strategies heed\n")[1].split("\n\n")[0].splitlines()
    table = {words[0]: words[1:] for words in map(str.split, lines)}
    assert {"auto", "fastsa", "rotor", "mincut"} <= set(table) and "keep-all" not in table
    rows = {
        row["strategy"]: row
        for row in json.loads(
            remat.run("compare", one_op, "--budget", "100%", "--offload", "1GB", "--work", "1000", "--json").stdout
        )
    }
    assert rows["auto"]["within_budget"] and rows["keep-all"]["within_budget"]
    assert rows["rotor"]["error"]["code"] == 6 and "offload" in rows["rotor"]["error"]["reason"]
    return {name: table.get(name, ()) for name in rows}


VALUES = {
    "--offload": ("1GB",),
    "--order-only": (),
    "--checkmate-plain": (),
    "--checkmate-order": ("0",),
    "--mip-gap": ("0",),
    "--group": ("1",),
    "--objective": ("0",),
    "--soft-peak": ("0",),
    "--host-bytes": ("1000000", "--offload", "1GB"),
    "--slots": ("60",),
    "--walkers": ("2",),
}


@pytest.mark.parametrize(
    "flag", [*VALUES, "--reweight", "--reduction-factor", "--max-slots", "--checkmate-entries", "--checkmate-splits"]
)
def test_a_flag_is_heeded_or_refused(remat, one_op, heeded, flag):
    """By each strategy; with sanitizers by those that heed it and one that does not: what is refused, is refused in
    one place.
    """
    users = [name for name in heeded if flag in heeded[name]]
    others = [name for name in heeded if name not in users]
    assert users and others
    for name in users + others[: 1 if SANITIZED else None]:
        words = (
            "plan",
            one_op,
            "--budget",
            "100%",
            "--work",
            "1000",
            "--strategy",
            name,
            flag,
            *VALUES.get(flag, ("1",)),
        )
        if name in users:
            assert remat.run(*words).returncode in (0, 6), name  # 6: no solver, or no chain
        else:
            refused = "--offload" if flag == "--host-bytes" else flag  # the first that is refused
            remat.fails(
                USAGE,
                *words,
                says=(refused, f"{name} does not heed it", "auto" if flag in heeded["auto"] else "checkmate"),
            )


def test_odd_graphs_and_limits(remat):
    one = {
        "format": "remat-graph",
        "version": 1,
        "values": [{"size": 4}, {"size": 4}],
        "nodes": [{"in": [0], "out": [1]}],
        "outputs": [1],
    }
    chain = {
        "format": "remat-graph",
        "version": 1,
        "values": [{"size": 8} for _ in range(6)],
        "nodes": [{"in": [i], "out": [i + 1], "pinned": True} for i in range(5)],
        "outputs": [5],
    }
    empty = {
        "format": "remat-graph",
        "version": 1,
        "values": [{"size": 0}, {"size": 0}],
        "nodes": [{"in": [0], "out": [1]}],
        "outputs": [],
    }
    for graph in (one, chain, empty):
        path = remat.file("g.json", graph)
        made = remat.json("plan", path, "--strategy", "fastsa", "--budget", "100%", "--work", "5000")
        assert made["outcome"] == "optimal" and made["overhead"] == 0
        remat.json("plan", path, "--strategy", "fastsa", "--budget", "min", "--time", "0")
    assert (
        remat.json("plan", remat.file("c.json", chain), "--strategy", "fastsa", "--budget", "23", code=INFEASIBLE)[
            "work"
        ]
        == 0
    )
    assert (
        remat.json("plan", RESNET, "--strategy", "fastsa", "--budget", "40%", "--work", "4000000000", code=INFEASIBLE)[
            "work"
        ]
        == 0
    )
    stopped = remat.json("plan", RESNET, "--strategy", "fastsa", "--budget", "60%", "--time", "0", code=(0, NOT_FOUND))
    assert stopped["stopped"] == "time"


def test_found_by_review(remat):
    # resident values behind the others: grouping once wrote past its marks
    late = {
        "format": "remat-graph",
        "version": 1,
        "values": [
            {"size": 10},
            {"size": 10},
            {"size": 4, "kind": "param"},
            {"size": 10},
            {"size": 4, "kind": "param"},
        ],
        "nodes": [
            {"in": [4], "out": [0], "cost": 1},
            {"in": [2], "out": [1], "cost": 1},
            {"in": [0, 1], "out": [3], "cost": 1},
        ],
        "outputs": [3],
    }
    assert (
        remat.json("plan", remat.file("late.json", late), "--budget", "45", "--strategy", "fastsa-group")["peak_bytes"]
        == 38
    )
    pinned = {
        "format": "remat-graph",
        "version": 1,  # what is pinned need not stay if it can be offloaded
        "values": [{"size": 100}, {"size": 1}, {"size": 1}, {"size": 1}],
        "nodes": [
            {"in": [], "out": [0], "cost": 1, "pinned": True},
            {"in": [0], "out": [1], "cost": 1},
            {"in": [1], "out": [2], "cost": 1, "workspace": 100},
            {"in": [0, 2], "out": [3], "cost": 1},
        ],
        "outputs": [3],
    }
    graph, path = remat.file("pinned.json", pinned), remat.folder / "pinned-plan.json"
    assert remat.json("plan", graph, "--budget", "150", "--strategy", "keep-all", code=INFEASIBLE)["need_bytes"] == 202
    made = remat.json(
        "plan",
        graph,
        "--budget",
        "150",
        "--strategy",
        "fastsa-offload",
        "--offload",
        "1GB",
        "--work",
        "20000",
        "-o",
        path,
    )
    assert made["within_budget"] and made["need_bytes"] == 102
    assert remat.json("verify", graph, path)["peak_bytes"] == 102
    assert (
        remat.json(
            "plan",
            GRAPHS / "llama7b.json.gz",
            "--budget",
            "50%",
            "--strategy",
            "fastsa",
            "--time",
            "0.001",
            code=(0, NOT_FOUND),
        )["stopped"]
        == "time"
    )
    remat.fails(
        USAGE, "plan", RESNET, "--budget", "60%", "--order-only", "--offload", "1GB", says=("--order-only", "--offload")
    )
    remat.fails(
        USAGE, "plan", RESNET, "--budget", "60%", "--fuse", "--class", "aten.mm=fusible", says=("class rules", "file")
    )
