"""What the program says is true: numbers in messages, hints, warnings, and habits of people."""

import json
import os
import pty
import re
import signal
import subprocess
import time

import pytest
from conftest import GRAPHS, PROGRAM

USAGE, INPUT, APPLIES, INFEASIBLE, NOT_FOUND, INTERRUPTED = 1, 2, 6, 10, 11, 130
RESNET = GRAPHS / "resnet18.json.gz"


# ---- numbers ----


def test_what_is_needed_may_not_be_enough(remat):
    """Where the need proves that nothing fits, the least peak that was found is named too, unless the need is that peak."""
    done = remat.run("plan", "zoo:mlp", "--budget", "50%", "--json")
    made, line = json.loads(done.stdout), done.stderr.decode()
    assert done.returncode == INFEASIBLE and made["peak_bytes"] > made["need_bytes"]
    assert f"({made['need_bytes']} bytes)" in line and line.endswith(
        f"; the least peak found is 68.1 MiB ({made['peak_bytes']} bytes)\n"
    )
    one = remat.file(
        "one.json",
        {
            "format": "remat-graph",
            "version": 1,
            "values": [{"size": 4}, {"size": 4}],
            "nodes": [{"in": [0], "out": [1]}],
            "outputs": [1],
        },
    )
    assert b"least peak" not in remat.run("plan", one, "--budget", "50%").stderr


def test_nothing_needs_no_share(remat):
    """A step without memory has a peak that is no percentage of anything."""
    empty = remat.file("e.json", {"format": "remat-graph", "version": 1, "values": [], "nodes": [], "outputs": []})
    assert re.search(r"^peak +0 B +0 B  fits 0 B$", remat.ok("plan", empty, "--budget", "50%"), re.M)


def test_optimal_of_a_chain_that_is_odd(remat):
    """A chain in which abar is smaller than a: only what runs nothing twice is called optimal, and the warning says so."""
    for budget, outcome in (("100%", "optimal"), ("9000", "feasible")):
        done = remat.run("plan", "chain:toy", "--budget", budget, "--slots", "0", "--json")
        assert json.loads(done.stdout)["outcome"] == outcome
        assert b"no plan that runs a stage forward again is called optimal" in done.stderr


def test_a_bar_has_whole_parts(remat):
    """What does not fit beside the bar is left out: half a number would be another one."""
    terminal, side = pty.openpty()
    env = dict(os.environ, COLUMNS="60", TERM="xterm", LC_ALL="C.UTF-8")
    with subprocess.Popen(
        [PROGRAM, "plan", "zoo:gpt", "--budget", "50%", "--time", "2", "--json"],
        stdout=subprocess.DEVNULL,
        stderr=side,
        env=env,
    ) as running:
        os.close(side)
        text = b""
        while True:
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            text += piece
        os.close(terminal)
        running.wait(60)
    bars = [line for line in text.decode().replace("\r", "").split("\x1b[K") if "[" in line]
    part = r"(  cost \S+ \w?s)?(  peak \S+ \w+)?(  bound \S+ \w?s)?(  \S+ M/s)?"
    assert bars and all(len(line) < 60 and re.fullmatch(r"auto \[[#.]+\] +\d+%" + part, line) for line in bars), bars


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
    graph = {
        "format": "remat-graph",
        "version": 1,
        "values": [{"size": 10**9}, {"size": 10**9}, {"size": 10**9}],
        "nodes": [
            {"op": "aten.relu.default", "in": [0], "out": [1], "flops": 1, "phase": "forward"},
            {"op": "remat.boundary", "in": [1], "out": [2], "phase": "forward", "pinned": True},
        ],
        "outputs": [2],
    }
    cost = remat.json("info", remat.file("g.json", graph), "--cost-model", "roofline:h100")["keep_all_cost"]
    assert cost == -(-2 * 10**9 * 10**9 // (3350 * 10**9))
    graph["nodes"][1]["op"] = "aten.relu.default"
    assert remat.json("info", remat.file("g.json", graph), "--cost-model", "roofline:h100")["keep_all_cost"] == 2 * cost


def test_verify_says_what_it_checked_of_the_bound(remat):
    plan, base = remat.folder / "plan.json", ("plan", RESNET, "--dce", "--replay-random", "--work", "100000")
    made = remat.json(*base, "--budget", "60%", "-o", plan)
    verdict = remat.json("verify", RESNET, plan, "--bound")
    assert (verdict["bound_cost"], verdict["bound_scope"], verdict["bound_checked"]) == (
        made["bound_cost"],
        "fixed-order",
        "certificate",
    )
    text = " ".join(remat.ok("verify", RESNET, plan, "--bound").split())
    assert (
        f"{made['bound_cost']} ns, no plan in this order of first runs costs less" in text
        and "proof checked by the certificate" in text
    )
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
    """Where no plan in any order is cheaper, no limit kept it from being better; where only its order is proved, one
    may have.
    """
    base = ("plan", "zoo:random-layered?n=200&seed=2", "--budget", "70%")
    made = remat.json(*base)
    assert (made["outcome"], made["bound_scope"], made["stopped"]) == ("optimal", "any-order", "done")
    assert "limit" not in remat.ok(*base).splitlines()[0]
    own = (
        "plan",
        RESNET,
        "--dce",
        "--fold-identity",
        "--no-alias",
        "--cost-model",
        "node",
        "--budget",
        "70%",
        "--strategy",
        "exact",
        "--work",
        "400000",
    )
    made = remat.json(*own)
    assert (made["outcome"], made["bound_scope"], made["stopped"]) == ("optimal", "fixed-order", "work")
    assert "work limit reached" in " ".join(remat.ok(*own).splitlines()[:3])


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
    chain = {
        "format": "remat-chain",
        "version": 1,
        "stages": [{"a": 1, "abar": 2, "tf": 1, "tb": 1, "tx": 1}],
        "input": {"a": 1},
    }
    assert ['"tx" in stages' in line for line in warnings_of(remat, chain)] == [True]
    many = dict(small, **{f"k{i}": i for i in range(9)})
    assert ["k3" in line and "k4" not in line and "..." in line for line in warnings_of(remat, many)] == [True]


def test_one_warning_for_a_missing_cost(remat, small):
    del small["nodes"][2]["cost"]
    (line,) = warnings_of(remat, small)
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
    done = remat.run(
        "maxbatch", remat.file("g.json", small), "--budget", "1000", "--strategy", "keep-all,auto", "--work", "1000"
    )
    assert done.returncode == 0 and done.stderr.decode().count("remat: warning: ") == 1


def test_info_of_a_plan_refuses_what_is_for_graphs(remat):
    plan = remat.folder / "plan.json"
    remat.ok("plan", "zoo:mlp", "-o", plan)
    for flag in ("--chain", "--classes"):
        remat.fails(USAGE, "info", plan, flag, says=(flag, "is for graphs: this is a plan"))


def test_info_shows_what_decides(remat, small):
    """Outputs, cost model, and how many ops are pinned and why."""
    small["nodes"][0]["class"], small["nodes"][2]["pinned"] = "random", True
    info = remat.json("info", remat.file("g.json", small))
    assert (info["outputs"], info["output_bytes"], info["cost_model"], info["pinned"], info["pinned_random"]) == (
        1,
        4,
        "given",
        2,
        1,
    )
    text = " ".join(remat.ok("info", remat.file("g.json", small)).split())
    assert "pinned 2 1 as the file says, 1 random (--replay-random frees them)" in text
    assert "outputs 1 4 B that are all in memory at the end" in text and "costs: given" in text
    info = remat.json("info", remat.file("g.json", small), "--replay-random")
    assert (info["pinned"], info["pinned_random"]) == (1, 0)
    assert "outputs" not in remat.json("info", "chain:toy") and remat.json("info", "chain:toy")["cost_model"] == "given"


# ---- habits ----


def test_the_schedule_is_in_the_json(remat, small):
    """plan --json has the steps as the file has them, of graphs and of chains, and the reason where nothing fits."""
    path = remat.folder / "plan.json"
    graph = remat.file("g.json", small)
    for words in (
        (graph, "--budget", "24"),
        ("chain:toy", "--budget", "min"),
        ("zoo:random-layered?n=60", "--budget", "50%", "--strategy", "fastsa", "--offload", "5GB", "--work", "300000"),
    ):
        made = remat.json("plan", *words, "-o", path, code=(0, NOT_FOUND, INFEASIBLE))
        assert made["schedule"] == json.loads(path.read_text())["schedule"] and len(made["schedule"]) == made["steps"]
        assert ("error" in made) != made["within_budget"]
    for source, budget, code, words in (
        (graph, "1", INFEASIBLE, "no plan fits 1 bytes"),
        ("zoo:resnet18?batch=8", "95%", NOT_FOUND, "found no plan within"),
    ):
        done = remat.run("plan", source, "--budget", budget, "--strategy", "keep-all", "--json")
        error = json.loads(done.stdout)["error"]
        assert done.returncode == error["code"] == code and words in error["reason"]
        assert done.stderr.decode() == f"remat: {error['reason']}\n"
    assert "schedule" not in remat.json("compare", graph, "--budget", "100%", "--strategy", "keep-all")[0]


def test_csv_names_its_graph(remat, small):
    small["name"] = 'a, "b"\n\x1b'
    import csv
    import io

    rows = list(
        csv.DictReader(
            io.StringIO(remat.ok("compare", remat.file("g.json", small), "--budget", "100%", "--csv", "--work", "1000"))
        )
    )
    keep_all = rows[0]
    assert keep_all["graph"] == 'a, "b"??' and (keep_all["steps"], float(keep_all["gap"])) == ("5", 0)
    assert all(None not in row and None not in row.values() for row in rows) and any(
        row["outcome"] == "does not apply" for row in rows
    )


def test_dot_has_no_control_characters(remat, small):
    small["nodes"][0]["name"], small["name"] = "evil\x1b[31m\x7f\u0085\u202e\nname", "g\u2066"
    dot = remat.ok("import", remat.file("g.json", small), "--format", "dot")
    assert "evil?[31m????name" in dot and 'digraph "g?"' in dot
    assert all(ord(c) >= 32 or c == "\n" for c in dot) and not set("\x7f\u0085\u202e\u2066") & set(dot)
    assert remat.json("info", remat.file("g.dot", dot))["ops"] == 5


def test_the_name_of_a_missing_solver(remat, monkeypatch):
    for name in ("foo", "/no/such/file"):
        monkeypatch.setenv("REMAT_HIGHS", name)
        assert f"REMAT_HIGHS={name}" in remat.ok("--version")
        reason = remat.json("plan", "zoo:mlp", "--strategy", "checkmate", "--budget", "99%", code=APPLIES)["error"][
            "reason"
        ]
        assert f"REMAT_HIGHS={name}" in reason


def test_costs_of_networkx_may_be_real(remat):
    """They are multiplied by one power of ten, the least that makes them whole in 12 digits; said once."""

    def costs(*numbers):
        nodes = [{"id": i, "size": 1, "duration": x} for i, x in enumerate(numbers)]
        path = remat.file("nx.json", {"nodes": nodes, "links": [{"source": 0, "target": 1}]})
        done = remat.run("import", path)
        return [node["cost"] for node in json.loads(done.stdout)["nodes"]], done.stderr.decode()

    assert costs(3, 4.0) == ([3, 4], "")
    found, said = costs(0.5, 1.25)
    assert found == [50, 125] and said.count("\n") == 1 and "multiplied by 10^2\n" in said
    found, said = costs(1 / 3, 2e-3)
    assert found == [333333333333, 2000000000] and "10^12 and rounded" in said
    found, said = costs(123456.75, 1e-9)
    assert found == [123456750000, 0] and "10^6 and rounded" in said
    assert costs(5e12, 0.5)[0] == [5 * 10**12, 1]
    remat.fails(
        INPUT,
        "info",
        remat.file("bad.json", {"nodes": [{"id": 0, "size": 1, "cost": -0.5}], "links": []}),
        says=("nodes[0].cost",),
    )
    remat.fails(
        INPUT, "info", remat.file("bad.json", {"nodes": [{"id": 0, "size": 1.5}], "links": []}), says=("nodes[0].size",)
    )
    remat.fails(
        INPUT,
        "info",
        remat.file("bad.json", {"nodes": [{"id": 0, "size": 1, "cost": 1e300}], "links": []}),
        says=("64 bits",),
    )


@pytest.mark.parametrize(
    "text, ms",
    [("1s", 1000), ("2.5", 2500), ("500ms", 500), ("2m", 120000), ("0.1h", 360000), (".5s", 500), ("0.0001", 1)],
)
def test_times(remat, small, text, ms):
    remat.ok("plan", remat.file("g.json", small), "--time", text)


def test_bad_times(remat, small):
    for text in ("s", "1 s", "1d", "-1", "1.2.3", "9" * 30):
        remat.fails(USAGE, "plan", remat.file("g.json", small), "--time", text, says=("--time",))
