"""remat curve: several strategies at the same budgets, one bound for all rows, and a sentence where there is little
to see.
"""

import csv
import io
import itertools

from conftest import PLAN_FIELDS, plain_build

USAGE, APPLIES, INFEASIBLE = 1, 6, 10
RESNET = ("curve", "zoo:resnet18", "--points", "5", "--work", "300000")


def by_strategy(rows):
    return {name: list(group) for name, group in itertools.groupby(rows, key=lambda row: row["strategy"])}


def test_several_strategies_plan_at_the_same_budgets(remat):
    lines = by_strategy(remat.json(*RESNET, "--strategy", "mincut,rotor,chen-greedy"))
    assert list(lines) == ["mincut", "rotor", "chen-greedy"]
    budgets = [row["budget_bytes"] for row in lines["mincut"]]
    assert len(budgets) == 5 and budgets == sorted(set(budgets))
    least = min(
        remat.json("plan", "zoo:resnet18", "--budget", "min", "--strategy", name)["peak_bytes"] for name in lines
    )
    assert budgets[0] == least and budgets[-1] == lines["rotor"][0]["keep_all_peak_bytes"]
    for rows in lines.values():
        assert [row["budget_bytes"] for row in rows] == budgets and all(set(PLAN_FIELDS) <= set(row) for row in rows)
        costs = [row["cost"] for row in rows if row["within_budget"]]
        assert costs and costs == sorted(costs, reverse=True)


def test_one_strategy_prints_what_it_printed(remat):
    rows = remat.json(*RESNET, "--strategy", "rotor")
    assert [row["strategy"] for row in rows] == ["rotor"] * 5 and all(set(PLAN_FIELDS) <= set(row) for row in rows)


def test_rows_share_the_best_bound_of_any_order(remat):
    """A bound that is proved at a budget holds at every smaller one, whoever proves it."""
    layered = ("curve", "zoo:random-layered?n=20&width=4&seed=6", "--from", "65%", "--points", "4", "--work", "1000000")
    alone = [row for name in ("fastsa", "exact") for row in remat.json(*layered, "--strategy", name)]
    rows = remat.json(*layered, "--strategy", "fastsa,exact")
    assert len(rows) == len(alone) == 8
    for row in rows:
        known = [
            one["any_order_bound_cost"]
            for one in alone
            if one["within_budget"] and one["budget_bytes"] >= row["budget_bytes"]
        ]
        assert row["any_order_bound_cost"] >= max(known)
        assert row["cost"] >= row["any_order_bound_cost"] and row["any_order_gap"] >= 0
    for other in rows:  # the same at one budget, and never more with more room
        for row in rows:
            if row["budget_bytes"] <= other["budget_bytes"]:
                assert row["any_order_bound_cost"] >= other["any_order_bound_cost"]
    assert any(row["any_order_bound_cost"] > one["any_order_bound_cost"] for row, one in zip(rows, alone))
    best = remat.json("compare", layered[1], "--budget", "70%", "--work", "1000000", "--strategy", "fastsa,exact")
    assert best[0]["any_order_bound_cost"] == best[1]["any_order_bound_cost"]


def test_what_meets_the_shared_bound_is_optimal(remat):
    rows = remat.json("compare", "zoo:resnet18", "--budget", "100%", "--strategy", "keep-all,auto")
    assert [(row["outcome"], row["bound_scope"], row["gap"]) for row in rows] == [("optimal", "any-order", 0)] * 2


@plain_build
def test_table_and_plot_name_every_strategy(remat):
    for columns in ("80", "60"):
        text = remat.ok(*RESNET, "--strategy", "mincut,rotor,chen-greedy,periodic,chen-sqrt,revolve", columns=columns)
        assert all(len(line) <= int(columns) for line in text.splitlines())
        head, plot = text.split("overhead against budget")
        for name in ("mincut", "rotor", "chen-greedy", "periodic", "chen-sqrt", "revolve"):
            assert name in head and name in plot
        assert "at least" in head
    assert "proved: no plan is here" in remat.ok(*RESNET, "--from", "55%", "--strategy", "mincut")


def test_csv_has_the_strategy(remat):
    rows = list(csv.DictReader(io.StringIO(remat.ok(*RESNET, "--strategy", "mincut,rotor", "--csv"))))
    assert [row["strategy"] for row in rows] == ["mincut"] * 5 + ["rotor"] * 5


def test_strategies_that_do_not_apply(remat, small):
    graph = remat.file("g.json", dict(small, nodes=[dict(op, phase="none") for op in small["nodes"]]))
    rows = remat.json("curve", graph, "--strategy", "keep-all,mincut")
    assert rows[-1]["strategy"] == "mincut" and rows[-1]["error"]["code"] == APPLIES and "error" not in rows[0]
    assert "do not apply" in remat.ok("curve", graph, "--strategy", "keep-all,mincut")
    assert remat.json("curve", graph, "--strategy", "mincut", code=APPLIES)["error"]["code"] == APPLIES
    remat.fails(APPLIES, "curve", graph, "--strategy", "mincut,rotor", says=("none of the strategies applies",))
    remat.fails(USAGE, "curve", graph, "--strategy", "auto,rotr", says=("rotor",))


def test_a_range_with_little_to_see_says_why(remat):
    tiny = remat.ok("curve", "zoo:mlp", "--points", "3", "--strategy", "auto", "--work", "20000")
    assert " ".join(tiny.split()).find("keep-all needs 68.1 MiB and nothing") > 0 and "the range is" in tiny
    free = remat.ok("curve", "zoo:resnet18", "--from", "100%", "--to", "110%", "--points", "3")
    assert "keep-all fits them all" in " ".join(free.split())
    flat = remat.ok("curve", "zoo:resnet18", "--from", "70%", "--to", "71%", "--points", "2", "--strategy", "periodic")
    assert "All budgets of this range cost the same" in " ".join(flat.split())
    assert "the range is" not in remat.ok(*RESNET, "--strategy", "rotor")


def test_nothing_fits_at_the_largest_budget(remat):
    done = remat.run(
        "curve", "zoo:resnet18", "--from", "1%", "--to", "2%", "--points", "2", "--strategy", "rotor,mincut"
    )
    assert done.returncode == INFEASIBLE and b"no plan fits" in done.stderr
