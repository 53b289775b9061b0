"""Chains in the program: files and embedded ones, the same commands, JSON and exit codes as for graphs."""

import json
import signal
import subprocess
import time

import pytest
from conftest import GRAPHS, INFO_FIELDS, PLAN_FIELDS, PROGRAM, VERIFY_FIELDS, schema

USAGE, INPUT, PLAN, APPLIES, INFEASIBLE, NOT_FOUND = 1, 2, 5, 6, 10, 11


def pages():
    """Sizes in a unit of its own; the first forward needs much, so slots that are too coarse find nothing."""
    stage = {"a": 5, "abar": 9, "tf": 1, "tb": 2}
    return {
        "format": "remat-chain",
        "version": 1,
        "name": "pages",
        "size_unit": "pages",
        "cost_unit": "ticks",
        "input": {"a": 2},
        "stages": [dict(stage, name="s1", of=20), stage, stage],
    }


def test_json_fields(remat):
    info = remat.json("info", "chain:toy")
    assert list(info)[: len(INFO_FIELDS)] == INFO_FIELDS
    assert (info["ops"], info["values"], info["keep_all_peak_bytes"], info["keep_all_cost"], info["need_bytes"]) == (
        7,
        None,
        10699,
        3738,
        8212,
    )
    assert [s["name"] for s in info["stages"]][1:7] == ["fc1", "fc2", "fc3", "fc4", "fc5", "fc6"] and len(
        info["stages"]
    ) == 8
    made = remat.json("plan", "chain:toy", "--budget", "9000", "--slots", "0")
    assert list(made)[: len(PLAN_FIELDS)] == PLAN_FIELDS
    assert (made["strategy"], made["cost"], made["peak_bytes"], made["ops"], made["steps"]) == (
        "auto",
        4742,
        8675,
        7,
        19,
    )
    assert (made["need_op"], made["bound_scope"], made["recomputed_ops"]) == ("fc3", "chain", 3)
    for rows in (
        remat.json("compare", "chain:toy", "--budget", "100%"),
        remat.json("curve", "chain:toy", "--points", "3"),
    ):
        assert all(list(row)[: len(PLAN_FIELDS)] == PLAN_FIELDS for row in rows)
    assert remat.json("plan", "chain:figure4", "--budget", "1", code=INFEASIBLE)["need_op"].startswith("stage ")


def test_sequence_and_plan_files(remat):
    path = remat.folder / "plan.json.gz"
    text = remat.ok("plan", "chain:toy", "--budget", "9000", "--slots", "0", "-o", path)
    assert "Fck1 Fnone2-3 Fall4-7 B7-4 Fck1 Fnone2 Fall3 B3 Fall1-2 B2-1" in text
    verdict = remat.json("verify", "chain:toy", path)
    assert list(verdict)[: len(VERIFY_FIELDS)] == VERIFY_FIELDS
    assert verdict["valid"] and (verdict["peak_bytes"], verdict["peak_op"], verdict["cost"]) == (8675, "fc5", 4742)
    over = remat.json("verify", "chain:toy", path, "--budget", "8000", code=PLAN)
    assert over["first_bad_step"] == 8 and not over["valid"]  # the first step above it, not the peak at step 9
    for other in ("chain:resnet", "zoo:resnet18"):
        assert remat.json("verify", other, path, code=PLAN)["reason"].startswith("the plan is for another")
    about = remat.json("info", path)
    assert (about["strategy"], about["cost"], about["steps"], about["plan"]) == ("auto", 4742, 19, str(path))
    assert remat.run("lower", "chain:toy").returncode == INPUT


@pytest.mark.parametrize(
    "strategy", ["keep-all", "periodic", "chen-sqrt", "chen-greedy", "revolve", "rotor", "rotor-float"]
)
def test_plans_verify(remat, strategy):
    path = remat.folder / "plan.json"
    for source in ("chain:random?n=12&seed=3", "chain:resnet?n=4", "chain:partition?x=3,5,2,4"):
        for budget in ("min", "80%"):
            done = remat.run("plan", source, "--strategy", strategy, "--budget", budget, "-o", path, "--json")
            assert done.returncode in (0, INFEASIBLE, NOT_FOUND), done.stderr
            made = json.loads(done.stdout)
            assert made["within_budget"] == (done.returncode == 0)
            schema("remat-plan.schema.json").validate(json.loads(path.read_text()))
            assert remat.json("verify", source, path)["peak_bytes"] == made["peak_bytes"] >= made["need_bytes"]


def test_budgets_and_units(remat):
    chain = remat.file("pages.json", pages())
    made = remat.json("plan", chain, "--budget", "36", "--slots", "0")
    assert made["budget_bytes"] == 36 and made["cost_unit"] == "ticks"
    text = (
        remat.ok("plan", chain, "--budget", "36", "--slots", "0")
        + remat.ok("info", chain)
        + remat.ok("curve", chain, "--slots", "0")
    )
    assert "36 pages" in text and "ticks" in text and " B " not in text and "KiB" not in text
    assert (
        remat.json("plan", chain, "--budget", "100%")["budget_bytes"]
        == remat.json("info", chain)["keep_all_peak_bytes"]
    )
    remat.fails(USAGE, "plan", chain, "--budget", "2GiB", says=("--budget", "pages"))
    for flag in ("--dce", "--cost-model=unit"):
        remat.fails(USAGE, "plan", chain, flag, says=(flag.split("=")[0], "chain"))


def test_exit_codes(remat):
    chain = remat.file("pages.json", pages())
    least = remat.json("plan", chain, "--budget", "min", "--slots", "0", "--strategy", "rotor")["peak_bytes"]
    need = remat.json("info", chain)["need_bytes"]
    assert need < least
    proved = (("--budget", need - 1), str(need)), (("--budget", least - 1), str(least))
    for flags, number in proved:
        done = remat.run("plan", chain, "--strategy", "rotor", "--slots", "0", *flags)
        line = done.stderr.decode()
        assert (
            done.returncode == INFEASIBLE
            and line.count("\n") == 1
            and number + " pages" in line
            and ("s1" in line or "stage" in line)
        )
    done = remat.run("plan", chain, "--strategy", "rotor", "--slots", "3", "--budget", least)
    assert done.returncode == NOT_FOUND and b"--slots 0" in done.stderr
    assert remat.json("plan", chain, "--strategy", "rotor", "--slots", "0", "--budget", least)["within_budget"]


def test_curve_never_rises(remat):
    for source in ("chain:random?n=15&seed=1", "chain:resnet"):
        for strategy in ("rotor", "periodic", "revolve"):
            rows = remat.json(
                "curve",
                source,
                "--strategy",
                strategy,
                "--points",
                "9",
                *(() if strategy == "periodic" else ("--slots", "60")),
            )
            assert [r["budget_bytes"] for r in rows] == sorted(r["budget_bytes"] for r in rows)
            costs = [r["cost"] for r in rows if r["within_budget"]]
            assert costs and costs == sorted(costs, reverse=True)
            assert all(r["gap"] is None or r["gap"] >= 0 for r in rows)


def test_chain_of_a_graph(remat):
    graph, chain = GRAPHS / "resnet18.json.gz", remat.folder / "chain.json"
    remat.ok("import", graph, "--chain", "-o", chain)
    schema("remat-chain.schema.json").validate(json.loads(chain.read_text()))
    stages = [remat.json("info", *source)["stages"][:-1] for source in ((chain,), (graph, "--chain"))]
    assert stages[0] == stages[1] and len(stages[0]) > 10
    head = next(line for line in remat.ok("info", graph, "--chain").splitlines() if line.startswith("stage "))
    assert head.split() == "stage name a abar delta keep of ob tf tb".split()
    made = remat.json("plan", chain, "--budget", "80%", "-o", remat.folder / "plan.json")
    assert made["within_budget"] and remat.json("verify", chain, remat.folder / "plan.json")["valid"]
    for command in ("info", "import"):
        remat.fails(APPLIES, command, "zoo:random-layered", "--chain", says=("zoo:random-layered", "phases"))


def test_default_strategy(remat):
    """auto everywhere with a budget; a strategy that was asked for and does not apply is exit code 6."""
    for source in ("zoo:resnet18", "zoo:random-layered", "chain:toy"):
        assert remat.json("plan", source, "--budget", "90%", "--work", "100000")["strategy"] == "auto"
    assert remat.json("curve", "zoo:random-layered", "--work", "1000")[0]["strategy"] == "auto"
    remat.fails(
        APPLIES, "plan", "zoo:random-layered", "--budget", "100%", "--strategy", "rotor", says=("rotor", "phases")
    )


def test_embedded_chains(remat):
    listed = remat.ok("gen", "--list")
    for name in ("chain:toy", "chain:figure4", "chain:partition", "chain:random", "chain:resnet"):
        assert name in listed
        path = remat.folder / "chain.json"
        remat.ok("gen", name, "-o", path)
        assert remat.json("info", path)["digest"] == remat.json("info", name)["digest"]
    costs = {
        s: remat.json("plan", "chain:figure4?n=6", "--budget", "15", "--strategy", s, "--slots", "0")["cost"]
        for s in ("rotor", "rotor-float")
    }
    assert costs == {"rotor": 16, "rotor-float": 14}
    for spec, word in (
        ("toys", "toy"),
        ("toy?n=1", "n"),
        ("figure4?n=2", "n"),
        ("random?n=5&n=5", "twice"),
        ("partition?x=1,2", "even"),
        ("resnet?n=x", "n"),
    ):
        remat.fails(USAGE, "info", "chain:" + spec, says=("chain:" + spec, word))


def test_proofs_are_kept(remat):
    """auto runs every chain strategy: what one proves stands, though the next proves nothing. `min` proves as its
    budget in bytes does.
    """
    for budget in ("14", "min"):
        for strategy in ("auto", "rotor-float"):
            plan = remat.json("plan", "chain:figure4", "--budget", budget, "--strategy", strategy)
            assert (plan["outcome"], plan["cost"], plan["budget_bytes"], plan["gap"]) == ("optimal", 16, 14, 0)
    assert remat.json("plan", "chain:figure4", "--budget", "min", "--strategy", "rotor")["outcome"] == "feasible"


def test_interrupt(remat):
    """Ctrl-C: what is there is printed, exit code 130; ignored if it was ignored at the start."""
    slow = [
        "compare",
        "chain:random?n=330",
        "--slots",
        "2000",
        "--budget",
        "60%",
        "--json",
        "--strategy",
        "keep-all,rotor,rotor-float",
    ]
    with subprocess.Popen([PROGRAM, *slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=100)
    assert process.returncode == 130, err
    assert json.loads(out)[0]["strategy"] == "keep-all" and b"interrupted" in err
    quick = [PROGRAM, "curve", "chain:random?n=40", "--slots", "1000", "--json"]  # about a second
    with subprocess.Popen(
        quick, stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    ) as process:
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=100)
    assert process.returncode == 0 and len(json.loads(out)) == 12
