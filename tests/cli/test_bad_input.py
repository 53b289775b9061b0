"""Bad input of every kind: one line that names file, place and reason, and the documented exit code. No crash, no
leak.
"""

import gzip
import json
import subprocess

import pytest
from conftest import PROGRAM, ROOT, SANITIZED

USAGE, INPUT, IO, PLAN, APPLIES, INFEASIBLE, NOT_FOUND = 1, 2, 3, 5, 6, 10, 11


def graph_with(small, path, value):
    """The small graph with one place changed: ("nodes", 2, "in", 0)."""
    at = small
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return small


BYTES = {
    "empty.json": (b"", ()),
    "blank.json": (b"  \n\t\n", ()),
    "truncated.json": (b'{"format":"remat-graph","version":1,"values":[{"size":', ("line 1",)),
    "not_an_object.json": (b"[1,2,3]", ()),
    "number.json": (b"17", ()),
    "binary.json": (bytes(range(256)) * 4, ()),
    "nul.json": (b'{"format":"remat-graph\x00","version":1}', ()),
    "bad_utf8.json": (b'{"format":"\xff\xfe"}', ()),
    "no_format.json": (b'{"version":1}', ()),
    "other_format.json": (b'{"format":"remat-soup","version":1}', ("format",)),
    "version_2.json": (b'{"format":"remat-graph","version":2,"values":[],"nodes":[]}', ("version",)),
    "deep.json": (b"[" * 100000, ()),
    "deep_key.json": (
        b'{"format":"remat-graph","version":1,"mine":' + b"[" * 50000 + b"]" * 50000 + b',"values":[],"nodes":[]}',
        (),
    ),
    "duplicate_key.json": (
        b'{"format":"remat-graph","version":1,"values":[{"size":1,"size":2}],"nodes":[]}',
        ("size",),
    ),
    "nan.json": (b'{"format":"remat-graph","version":1,"values":[{"size":NaN}],"nodes":[]}', ()),
    "overflow.json": (b'{"format":"remat-graph","version":1,"values":[{"size":1e400}],"nodes":[]}', ()),
    "infinity.json": (b'{"format":"remat-graph","version":1,"values":[{"size":-Infinity}],"nodes":[]}', ()),
    "half_gzip.json.gz": (gzip.compress(b'{"format":"remat-graph"}' * 40)[:40], ("gzip",)),
    "gzip_bad_crc.json.gz": (gzip.compress(b'{"format":"remat-graph"}' * 40)[:-8] + b"\0" * 8, ()),
    "only_gzip_magic.gz": (b"\x1f\x8b", ()),
    "unclosed.dot": (b"digraph g { a -> b", ()),
    "cycle.dot": (b"digraph g { node [size=1]; a -> b; b -> c; c -> a }", ("cycle",)),
    "self_loop.dot": (b"digraph g { node [size=1]; a -> a }", ("cycle",)),
    "no_size.dot": (b"digraph g { a -> b }", ("size",)),
    "no_size_nx.json": (b'{"nodes":[{"id":0}],"links":[]}', ("nodes[0]", "size")),
    "bad_size.dot": (b'digraph g { a [size="many"]; a -> b }', ("size",)),
    "negative_size.dot": (b"digraph g { a [size=-4]; a -> b }", ("size",)),
    "cycle_nx.json": (
        b'{"nodes":[{"id":0,"cost_ram":1},{"id":1,"cost_ram":1}],"links":[{"source":0,"target":1},{"source":1,"target":0}]}',
        ("cycle",),
    ),
    "unknown_node_nx.json": (
        b'{"nodes":[{"id":0,"cost_ram":1},{"id":1,"cost_ram":1}],"links":[{"source":0,"target":7}]}',
        ("links[0]",),
    ),
    "same_id_nx.json": (b'{"nodes":[{"id":0,"cost_ram":1},{"id":0,"cost_ram":1}],"links":[]}', ("nodes[1]",)),
    "negative_nx.json": (b'{"nodes":[{"id":0,"cost_ram":-1,"cost_cpu":1}],"links":[]}', ("nodes[0]",)),
    "bad_order_nx.json": (
        b'{"graph":{"order":[1,0]},"nodes":[{"id":0,"cost_ram":1},{"id":1,"cost_ram":1}],"links":[{"source":0,"target":1}]}',
        ("order",),
    ),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes(remat, name):
    content, says = BYTES[name]
    path = remat.folder / name
    path.write_bytes(content)
    for command in (("info", path), ("plan", path, "--budget", "50%"), ("import", path)):
        remat.fails(INPUT, *command, says=(name,) + says)


PLACES = [
    (("values", 1, "size"), -1, "values[1].size"),
    (("values", 1, "size"), 2**63, "values[1]"),
    (("values", 1, "size"), 2**62, "values[1].size"),
    (("values", 1, "size"), "8", "values[1].size"),
    (("values", 1, "size"), 8.5, "values[1].size"),
    (("values", 1, "size"), None, "values[1].size"),
    (("values", 1, "storage"), -3, "values[1].storage"),
    (("values", 1, "storage"), 2**61 * 2, "values[1].storage"),
    (("values", 2, "alias"), 3, "values[2].alias"),
    (("values", 2, "alias"), 2, "values[2].alias"),
    (("values", 2, "alias"), -1, "values[2].alias"),
    (("values", 2, "alias"), 2**32, "values[2].alias"),
    (("values", 2, "storage"), 8, "values[2].storage"),
    (("values", 1, "kind"), "soup", "values[1].kind"),
    (("values", 1), 5, "values[1]"),
    (("values",), {}, "values"),
    (("nodes",), None, "nodes"),
    (("nodes", 2, "in", 0), 99, "nodes[2].in[0]"),
    (("nodes", 2, "in", 0), -1, "nodes[2].in[0]"),
    (("nodes", 2, "in", 0), "a", "nodes[2].in[0]"),
    (("nodes", 2, "in", 0), 4, "nodes[2].in[0]"),
    (("nodes", 2, "in"), 3, "nodes[2].in"),
    (("nodes", 3, "out", 0), 3, "nodes[3].out[0]"),
    (("nodes", 3, "out", 0), 77, "nodes[3].out[0]"),
    (("nodes", 1, "in", 0), 0, "nodes[1].out[0]"),
    (("nodes", 2, "cost"), -2, "nodes[2].cost"),
    (("nodes", 2, "cost"), 2**63, "nodes[2]"),
    (("nodes", 2, "workspace"), -2, "nodes[2].workspace"),
    (("nodes", 2, "flops"), "lots", "nodes[2].flops"),
    (("nodes", 2, "phase"), "sideways", "nodes[2].phase"),
    (("nodes", 2, "class"), "upper", "nodes[2].class"),
    (("nodes", 2, "pinned"), "yes", "nodes[2].pinned"),
    (("nodes", 2, "inplace"), 3, "nodes[2].inplace"),
    (("nodes", 2, "inplace"), [3], "nodes[2].inplace[0]"),
    (("nodes", 2, "inplace"), [[0]], "nodes[2].inplace[0]"),
    (("nodes", 2, "inplace"), [[0, -1]], "nodes[2].inplace[0]"),
    (("nodes", 2, "inplace"), [[0, 7]], "nodes[2].inplace[0]"),
    (("nodes", 2, "inplace"), [[7, 0]], "nodes[2].inplace[0]"),
    (("nodes", 2, "inplace"), [[2**32, 0]], "nodes[2].inplace[0]"),
    (("outputs", 0), 99, "outputs[0]"),
    (("outputs",), 5, "outputs"),
]


@pytest.mark.parametrize("path,value,place", PLACES, ids=[f"{'.'.join(map(str, p))}={v}" for p, v, _ in PLACES])
def test_place(remat, small, path, value, place):
    name = remat.file("bad.json", graph_with(small, path, value))
    big = isinstance(value, int) and value >= 2**63  # the JSON reader refuses these by line and column
    remat.fails(INPUT, "info", name, says=("bad.json",) if big else ("bad.json", place))
    error = json.loads(remat.run("info", name, "--json").stdout)["error"]
    assert list(error) == ["code", "file", "place", "reason"]
    assert error["code"] == INPUT and error["file"].endswith("bad.json") and error["reason"]
    assert big or error["place"].startswith(place)


def test_missing_keys(remat, small):
    for key in ("in", "out"):
        del small["nodes"][2][key]
        remat.fails(INPUT, "info", remat.file("m.json", small), says=("m.json", "nodes[2]", key))
        small["nodes"][2][key] = [2] if key == "in" else [3]
    del small["values"][3]["size"]
    remat.fails(INPUT, "info", remat.file("m.json", small), says=("m.json", "values[3]", "size"))


def test_sizes_that_add_up(remat, small):
    for value in small["values"][3:5]:
        value["size"] = 2**61
    remat.fails(INPUT, "info", remat.file("sum.json", small), says=("sum.json", "2^62"))


def test_gzip_bomb(remat):
    """A gigabyte and a half of blanks in a small file. With sanitizers a tenth of that, and a limit that it exceeds."""
    pack = gzip.compress(b" " * (1 << 26), 9)
    path = remat.folder / "bomb.json.gz"
    path.write_bytes(pack * (2 if SANITIZED else 24))
    assert path.stat().st_size < 2 << 20
    remat.fails(INPUT, "info", path, *(("--max-input-bytes", 100 << 20) if SANITIZED else ()), says=("bomb.json.gz",))


def test_missing_file_and_folder(remat):
    remat.fails(IO, "info", remat.folder / "nowhere.json", says=("nowhere.json",))
    remat.fails(IO, "info", remat.folder, says=(str(remat.folder),))


def test_wrong_kind_of_file(remat, small):
    graph, plan = remat.file("g.json", small), remat.folder / "p.json"
    remat.ok("plan", graph, "-o", plan)
    remat.fails(INPUT, "plan", plan, "--budget", "50%", says=("p.json",))
    remat.fails(INPUT, "verify", graph, graph, says=("g.json",))


# ---- plans ----


def plan_of(remat, graph, *more):
    path = remat.folder / "plan.json"
    remat.ok("plan", graph, "-o", path, *more)
    return json.loads(path.read_text())


def test_plan_for_another_graph(remat, small):
    graph = remat.file("one.json", small)
    plan = remat.file("plan.json", plan_of(remat, graph))
    small["values"][1]["storage"] = 32
    other = remat.file("two.json", small)
    done = remat.run("verify", other, plan)
    assert done.returncode == PLAN and b"digest" in done.stderr or b"another" in done.stderr or b"graph" in done.stderr
    assert done.stderr.count(b"\n") == 1


BAD_PLANS = [
    ("reads what is not there", {"schedule": [0, 2, 1, 3, 4]}, 1),
    ("an op is missing", {"schedule": [0, 1, 2, 3]}, None),
    ("no such op", {"schedule": [0, 1, 2, 3, 4, 5]}, 5),
    ("empty", {"schedule": []}, None),
    ("fetch without offload", {"schedule": [0, {"fetch": 1}, 1, 2, 3, 4]}, 1),
    ("offload of a view", {"schedule": [0, 1, {"offload": 2}, 2, 3, 4]}, 2),
    ("offload of a resident", {"schedule": [{"offload": 0}, 0, 1, 2, 3, 4]}, 0),
    ("wrong peak", {"peak_bytes": 1}, None),
    ("wrong cost", {"cost": 1}, None),
    ("wrong keep-all peak", {"keep_all_peak_bytes": 1}, None),
]


@pytest.mark.parametrize("change,step", [row[1:] for row in BAD_PLANS], ids=[row[0] for row in BAD_PLANS])
def test_invalid_plan(remat, small, change, step):
    graph = remat.file("g.json", small)
    plan = plan_of(remat, graph)
    if "schedule" in change:
        plan = {key: plan[key] for key in ("format", "version", "kind", "graph")}
    path = remat.file("bad_plan.json", dict(plan, **change))
    done = remat.run("verify", graph, path)
    assert done.returncode == PLAN, done.stderr
    assert done.stderr.count(b"\n") == 1 and b"bad_plan.json" in done.stderr
    verdict = remat.json("verify", graph, path, code=PLAN)
    assert list(verdict)[:7] == ["valid", "peak_bytes", "peak_step", "peak_op", "cost", "first_bad_step", "reason"]
    assert verdict["valid"] is False and verdict["reason"]
    if "schedule" in change:
        assert verdict["first_bad_step"] == step


PLAN_FILES = [
    ({"schedule": [0, -1]}, "schedule[1]"),
    ({"schedule": [0, 1.5]}, "schedule[1]"),
    ({"schedule": [{"offload": "x"}]}, "schedule[0]"),
    ({"schedule": [{}]}, "schedule[0]"),
    ({"schedule": 7}, "schedule"),
    ({"kind": "soup"}, "kind"),
    ({"graph": {}}, "digest"),
    ({"version": 9}, "version"),
    ({"schedule": [2**32]}, "schedule[0]"),
    ({"peak_bytes": "much"}, "peak_bytes"),
    ({"outcome": "splendid"}, "outcome"),
]


@pytest.mark.parametrize("change,place", PLAN_FILES, ids=[json.dumps(c) for c, _ in PLAN_FILES])
def test_bad_plan_file(remat, small, change, place):
    graph = remat.file("g.json", small)
    path = remat.file("bad_plan.json", dict(plan_of(remat, graph), **change))
    remat.fails(INPUT, "verify", graph, path, says=("bad_plan.json", place))


# ---- the command line ----


def test_budgets(remat, small):
    graph = remat.file("g.json", small)
    for text in ("-5", "10XB", "", " 5GB", "1e", "8EB", "99999999999999999999"):
        remat.fails(USAGE, "plan", graph, f"--budget={text}")
    for source, strategy in ((graph, "keep-all"), ("zoo:mlp", "chen-sqrt"), ("zoo:mlp", "chen-greedy")):
        done = remat.run("plan", source, "--budget", "0", "--strategy", strategy)
        assert done.returncode == INFEASIBLE
        assert done.stderr.count(b"\n") == 1
        answer = remat.json("plan", source, "--budget", "0", "--strategy", strategy, code=INFEASIBLE)
        assert answer["outcome"] == "infeasible" and answer["within_budget"] is False
        place = answer["need_op"] or "the end of the step"
        assert answer["need_bytes"] > 0
        assert place.encode() in done.stderr and str(answer["need_bytes"]).encode() in done.stderr


def test_strategy_that_does_not_apply(remat, small):
    for node in small["nodes"]:
        del node["phase"]
    remat.fails(
        APPLIES,
        "plan",
        remat.file("g.json", small),
        "--budget",
        "100%",
        "--strategy",
        "chen-sqrt",
        says=("chen-sqrt", "phase"),
    )


def test_nothing_found(remat):
    """Above what is proved to be needed, below what the strategy can do: the plan is shown and written all the same."""
    path = remat.folder / "over.json"
    need = remat.json("info", "zoo:resnet18")["need_bytes"]
    answer = remat.json("plan", "zoo:resnet18", "--strategy", "keep-all", "--budget", need, "-o", path, code=NOT_FOUND)
    assert answer["outcome"] == "unknown" and answer["within_budget"] is False
    assert remat.json("verify", "zoo:resnet18", path)["valid"] is True


def test_usage(remat, small):
    graph = remat.file("g.json", small)
    remat.fails(USAGE, "plan", graph, "--strategy", "chen-sqr", says=("chen-sqr",))
    remat.fails(USAGE, "plan", graph, "--no-such-flag", says=("--no-such-flag",))
    remat.fails(USAGE, "plan", graph, "--cost-model", "roofline:abacus", says=("abacus",))
    remat.fails(USAGE, "plan", graph, "--cost-model", "soup", says=("soup",))
    remat.fails(USAGE, "plan")
    remat.fails(USAGE, "plan", graph, graph)
    remat.fails(USAGE, "soup", says=("soup",))
    remat.fails(USAGE, "plan", graph, "--seed", "x", says=("seed",))
    remat.fails(USAGE, "plan", graph, "--time", "-1", says=("time",))
    remat.fails(USAGE, "info", "zoo:soup", says=("soup", "gen --list"))
    remat.fails(USAGE, "info", "zoo:mlp?layers=0", says=("layers",))
    remat.fails(USAGE, "info", "zoo:mlp?sugar=1", says=("sugar",))
    remat.fails(USAGE, "info", "zoo:mlp?layers=99999999999999999999", says=("layers",))


@pytest.mark.parametrize(
    "words, meant",
    [
        (("inof", "zoo:mlp"), "info"),
        (("plan", "zoo:mlp", "--budgte", "50%"), "--budget"),
        (("plan", "zoo:mlp", "--strategy", "rotr"), "rotor"),
        (("info", "zoo:resnt50"), "resnet50"),
        (("info", "zoo:gtp?layers=2"), "gpt"),
        (("gen", "dense"), "densenet121"),
        (("plan", "chain:ty"), "toy"),
    ],
)
def test_misspelt(remat, words, meant):
    remat.fails(USAGE, *words, says=(f"did you mean '{meant}'?",))


def test_flags_belong_to_commands(remat, small):
    graph = remat.file("g.json", small)
    remat.fails(USAGE, "info", graph, "--slots", "5", says=("--slots", "plan compare curve"))
    remat.fails(USAGE, "plan", graph, "--time-ms", "5", says=("--time-ms",))  # --time owns that option
    remat.fails(USAGE, "plan", graph, "--bandwidth", "5", says=("--bandwidth",))  # --offload owns that option
    remat.fails(USAGE, "lower", graph, "--cost-model", "unit", says=("--cost-model",))
    remat.fails(USAGE, "gen", "mlp", "--list", says=("--list",))
    remat.fails(USAGE, "gen", "mlp", "--max-input-bytes", "5", says=("--max-input-bytes",))
    remat.fails(INPUT, "info", graph, "--max-input-bytes", "5", says=("g.json",))
    remat.fails(USAGE, "--version", "x", says=("x",))
    remat.fails(USAGE, "help", "foo", says=("foo",))
    remat.fails(USAGE, "info", "", says=("empty",))
    remat.fails(USAGE, "verify", graph, graph, "--budget", "min", says=("--budget", "min"))
    remat.fails(USAGE, "import", graph, "-o", remat.folder / "g.dot.gz", says=("-o", ".gz"))
    remat.fails(USAGE, "import", graph, "-o", remat.folder / "g.dot.gz", "--format", "dot", says=("-o", ".gz"))


def test_errors_of_flags_name_the_flag(remat, small):
    graph = remat.file("g.json", small)
    for flag, value in (("--budget", "12XB"), ("--cost-model", "soup")):
        error = remat.json("plan", graph, flag, value, code=USAGE)["error"]
        assert error["place"] == flag and error["file"] == ""
    assert remat.json("curve", graph, "--from", "9q", code=USAGE)["error"]["place"] == "--from"


def test_plan_with_a_bad_cost_model(remat, small):
    graph = remat.file("g.json", small)
    path = remat.file("bad_plan.json", dict(plan_of(remat, graph), cost_model="foo"))
    for command in (("verify", graph, path), ("lower", graph, path)):
        remat.fails(INPUT, *command, says=("bad_plan.json", "cost_model", "foo"))
    assert remat.json("verify", graph, path, code=INPUT)["error"]["place"] == "cost_model"


def test_the_line_of_exit_codes_10_and_11(remat):
    """Least budget, op and tensors on standard error, whatever the command and the format."""
    need = remat.json("info", "zoo:mlp")["need_bytes"]
    for command in (
        ("compare", "--budget", "0"),
        ("curve", "--from", "1%", "--to", "2%", "--points", "2"),
        ("plan", "--budget", "0"),
    ):
        for form in ((), ("--json",), ("--csv",)):
            if command[0] == "plan" and form == ("--csv",):
                continue
            done = remat.run(command[0], "zoo:mlp", *command[1:], *form)
            line = done.stderr.decode()
            assert done.returncode == INFEASIBLE and line.count("\n") == 1
            assert str(need) in line and "the end of the step" in line and "resident" in line
    for command in (
        ("compare", "--budget", need, "--strategy", "keep-all"),
        ("plan", "--budget", need, "--strategy", "keep-all"),
    ):
        done = remat.run(command[0], "zoo:mlp", *command[1:], "--json")
        assert done.returncode == INFEASIBLE and f"({need} bytes)".encode() in done.stderr  # looking back proves it


def test_output_is_replaced_at_the_end(remat, small):
    """A write that fails leaves the old file alone; a link and a pipe are written through."""
    graph, path = remat.file("g.json", small), remat.folder / "out.json"
    remat.ok("import", graph, "-o", path)
    old = path.read_bytes()
    path.chmod(0o640)
    done = subprocess.run(
        f"ulimit -f 1; '{PROGRAM}' gen resnet50 -o '{path}'", shell=True, capture_output=True, timeout=60
    )
    assert done.returncode == IO and done.stderr.count(b"\n") == 1 and b"out.json" in done.stderr
    assert path.read_bytes() == old and sorted(p.name for p in remat.folder.iterdir()) == ["g.json", "out.json"]
    link = remat.folder / "link.json"
    link.symlink_to(path)
    remat.ok("gen", "mlp", "-o", link)
    assert link.is_symlink() and path.read_bytes() != old and path.stat().st_mode & 0o777 == 0o640


def test_unwritable_output(remat, small):
    graph = remat.file("g.json", small)
    remat.fails(IO, "plan", graph, "-o", remat.folder / "no" / "such" / "folder.json", says=("folder.json",))
    remat.fails(IO, "plan", graph, "-o", remat.folder, says=(str(remat.folder),))
    remat.fails(IO, "import", graph, "-o", "/dev/full", says=("/dev/full",))


def test_full_disk(remat, small):
    graph = remat.file("g.json", small)
    for command in (
        ("info", graph),
        ("plan", graph),
        ("info", graph, "--json"),
        ("import", graph),
        ("lower", graph),
        ("--help",),
        ("completion", "bash"),
    ):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, *command], stdout=full, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == IO, command
        assert done.stderr.count(b"\n") == 1, done.stderr


def test_closed_pipe(remat):
    """The reader leaves at once: no signal, no hang, exit code 3."""
    graph = ROOT / "tests" / "data" / "graphs" / "llama7b.json.gz"  # far more text than a pipe holds
    process = subprocess.Popen([PROGRAM, "lower", graph], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    line = process.stderr.read()
    assert process.wait(timeout=60) == IO
    assert line.count(b"\n") <= 1


def test_closed_streams(remat, small):
    graph = remat.file("g.json", small)
    done = subprocess.run(f"'{PROGRAM}' info '{graph}' >&-", shell=True, capture_output=True, timeout=60)
    assert done.returncode == IO
    done = subprocess.run(f"'{PROGRAM}' info - <&-", shell=True, capture_output=True, timeout=60)
    assert done.returncode == IO and done.stdout == b""
