"""The program's contract: the order of JSON fields, round trips, schemas, determinism, help, the man page."""

import contextlib
import json
import os
import pathlib
import pty
import random
import re
import shutil
import subprocess

import jsonschema
import pytest
from conftest import GRAPHS, INFO_FIELDS, PLAN_FIELDS, PROGRAM, ROOT, SANITIZED, VERIFY_FIELDS, schema

COMMANDS = """info plan bound verify compare curve maxbatch fuse lower place gen import report maxflow
completion""".split()


def test_json_fields(remat, small):
    graph, plan = remat.file("g.json", small), remat.folder / "plan.json"
    info = remat.json("info", graph)
    assert list(info)[: len(INFO_FIELDS)] == INFO_FIELDS
    assert (info["ops"], info["values"], info["storages"], info["views"], info["resident_bytes"]) == (5, 6, 5, 1, 4)
    assert info["keep_all_cost"] == 8
    made = remat.json("plan", graph, "-o", plan)
    assert list(made)[: len(PLAN_FIELDS)] == PLAN_FIELDS
    assert made["budget_bytes"] is None and made["strategy"] == "keep-all" and made["overhead"] == 0
    assert made["gap"] is None or made["gap"] >= 0
    assert (made["steps"], made["ops"], made["recomputed_ops"]) == (5, 5, 0)
    assert made["peak_bytes"] == info["keep_all_peak_bytes"] and made["plan"] == str(plan)
    verdict = remat.json("verify", graph, plan)
    assert list(verdict)[: len(VERIFY_FIELDS)] == VERIFY_FIELDS
    assert (
        verdict["valid"] is True and verdict["first_bad_step"] is None and verdict["peak_bytes"] == made["peak_bytes"]
    )
    for rows in (
        remat.json("compare", graph, "--budget", "100%"),
        remat.json("curve", "zoo:mlp", "--points", "3", "--work", "20000"),
    ):
        assert isinstance(rows, list) and rows
        assert all(list(row)[: len(PLAN_FIELDS)] == PLAN_FIELDS for row in rows)


def test_a_plan_without_its_peak_is_not_known_to_fit(remat, small):
    graph, plan = remat.file("g.json", small), remat.folder / "plan.json"
    remat.ok("plan", graph, "--budget", "100%", "-o", plan)
    said = json.loads(plan.read_text())
    assert remat.json("info", plan)["within_budget"] is True
    for key in ("peak_bytes", "peak_step", "within_budget"):
        del said[key]
    short = remat.file("short.json", said)
    assert remat.json("info", short)["within_budget"] is None
    assert "fits" not in remat.ok("info", short) and "over the budget" not in remat.ok("info", short)
    assert remat.json("verify", graph, short)["valid"] is True


FLAGS = [
    (),
    ("--dce", "--fold-identity"),
    ("--no-alias", "--cost-model", "node"),
    ("--replay-random", "--cost-model", "flops"),
]
STRATEGIES = ["keep-all", "periodic", "chen-sqrt", "chen-greedy", "save-layers", "mincut"]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("source", ["resnet18", "gpt2", "zoo:mlp?layers=6"])
def test_plans_verify(remat, strategy, source):
    """Through files. Each set of flags with one of two budgets, the other one with the next strategy (prop_plan
    tries all pairs); with sanitizers half of that.
    """
    graph = source if source.startswith("zoo:") else GRAPHS / f"{source}.json.gz"
    path, first = remat.folder / "plan.json.gz", STRATEGIES.index(strategy)
    for i, flags in enumerate(FLAGS):
        if SANITIZED and (i + first) % 4 > 1:
            continue
        budget = ("min", "70%")[(i + first) % 2]
        done = remat.run("plan", graph, "--strategy", strategy, "--budget", budget, "-o", path, "--json", *flags)
        assert done.returncode in (0, 10, 11), done.stderr
        made = json.loads(done.stdout)
        assert made["within_budget"] == (done.returncode == 0)
        assert made["overhead"] >= 0 and made["peak_bytes"] >= made["need_bytes"] >= made["resident_bytes"]
        assert remat.json("verify", graph, path)["peak_bytes"] == made["peak_bytes"]


def test_same_plan_twice(remat):
    graph = GRAPHS / "resnet50.json.gz"
    texts = []
    for name in ("one.json", "two.json"):
        remat.ok("plan", graph, "--budget", "60%", "--work", "300000", "-o", remat.folder / name)
        texts.append((remat.folder / name).read_bytes())
    assert texts[0] == texts[1]
    for word in (b"seconds", b"date", b"host", str(remat.folder).encode()):
        assert word not in texts[0]


def test_round_trips(remat, small):
    small["mine"] = {"kept": [1, 2.5, None, "é"]}
    small["nodes"][2]["note"] = "kept too"
    first = remat.file("g.json", small)
    digest = remat.json("info", first)["digest"]
    for name in ("h.json", "h.json.gz"):
        path = remat.folder / name
        remat.ok("import", first, "-o", path)
        assert remat.json("info", path)["digest"] == digest
        again = remat.folder / ("again_" + name)
        remat.ok("import", path, "-o", again)
        assert again.read_bytes() == path.read_bytes()
    written = json.loads((remat.folder / "h.json").read_text())
    assert written["mine"] == small["mine"] and written["nodes"][2]["note"] == "kept too"
    assert [v["size"] for v in written["values"]] == [v["size"] for v in small["values"]]
    text = (remat.folder / "h.json").read_bytes()
    assert remat.json("info", "-", input=text)["digest"] == digest
    dot = remat.ok("import", first, "--format", "dot")
    assert dot.lstrip().startswith("digraph")
    assert remat.json("info", remat.file("g.dot", dot))["ops"] >= 4


def random_json(r, depth):
    """Any JSON value; integers fit into 64 bits."""
    kind = r.randrange(8 if depth else 5)
    if kind == 0:
        return r.choice([None, True, False])
    if kind == 1:
        return r.randrange(-(2**63), 2**63) >> r.randrange(64)
    if kind == 2:
        return r.random() * 10.0 ** r.randrange(-300, 300)
    if kind <= 4:
        return "".join(r.choice('aé\u20ac\U0001f600"\\/\n\t\x7f{}[]:,') for _ in range(r.randrange(20)))
    if kind <= 6:
        return [random_json(r, depth - 1) for _ in range(r.randrange(5))]
    return {
        random_json(r, 0) if r.random() < 0.1 else f"k{i}": random_json(r, depth - 1) for i in range(r.randrange(20))
    }


def test_unknown_keys_survive(remat, small):
    """Python's JSON module against ours, both ways of writing characters."""
    r = random.Random(1)
    for round in range(20):
        small["mine"] = json.loads(json.dumps([random_json(r, 4) for _ in range(20)]))
        small["nodes"][1]["note"] = small["values"][1]["note"] = json.loads(json.dumps({"x": random_json(r, 3)}))
        small["nodes"][0]["name"] = name = 'n\u00e9\n\U0001f600"' + str(round)
        path, written = remat.folder / "g.json", remat.folder / "h.json"
        path.write_text(json.dumps(small, ensure_ascii=bool(round % 2), indent=round % 3 or None))
        remat.ok("import", path, "-o", written)
        read = json.loads(written.read_text())
        assert (
            read["mine"] == small["mine"]
            and read["nodes"][1]["note"] == small["nodes"][1]["note"] == read["values"][1]["note"]
        )
        assert read["nodes"][0]["name"] == name


def test_digest_ignores_names_and_costs(remat, small):
    digest = remat.json("info", remat.file("a.json", small))["digest"]
    for node in small["nodes"]:
        node.update(name="other", cost=77)
    assert remat.json("info", remat.file("b.json", small))["digest"] == digest
    small["nodes"][2]["workspace"] = 4
    assert remat.json("info", remat.file("c.json", small))["digest"] != digest


def test_schemas(remat, small):
    names = sorted(p.name for p in (ROOT / "docs" / "schema").glob("*.json"))
    assert names, "docs/schema is empty"
    kinds = {kind: [n for n in names if kind in n] for kind in ("graph", "plan", "chain")}
    assert all(kinds.values()), names
    graph = remat.file("g.json", small)
    written = remat.folder / "out.json"
    for source in (graph, "zoo:mlp", GRAPHS / "vgg11.json.gz"):
        remat.ok("import", source, "-o", written) if not str(source).startswith("zoo:") else remat.ok(
            "gen", source, "-o", written
        )
        schema(kinds["graph"][0]).validate(json.loads(written.read_text()))
        remat.ok("plan", source, "-o", written)
        schema(kinds["plan"][0]).validate(json.loads(written.read_text()))
    toy = {
        "format": "remat-chain",
        "version": 1,
        "name": "toy",
        "input": {"a": 8},
        "stages": [{"a": 1, "abar": 2, "tf": 1, "tb": 1}],
    }
    schema(kinds["chain"][0]).validate(toy)
    remat.ok("import", remat.file("toy.json", toy), "-o", written)
    schema(kinds["chain"][0]).validate(json.loads(written.read_text()))
    bad = dict(small, nodes=[{"in": "x"}])
    with pytest.raises(jsonschema.ValidationError):
        schema(kinds["graph"][0]).validate(bad)


def test_zoo_and_gen(remat):
    listed = remat.ok("gen", "--list")
    for name in ("resnet50", "gpt", "mlp"):
        assert name in listed
    path = remat.folder / "mlp.json.gz"
    remat.ok("gen", "zoo:mlp?layers=3", "-o", path)
    assert remat.json("info", path)["digest"] == remat.json("info", "zoo:mlp?layers=3")["digest"]


def test_chain_file(remat):
    toy = {
        "format": "remat-chain",
        "version": 1,
        "name": "toy",
        "input": {"a": 8},
        "stages": [{"name": "fc", "a": 5, "abar": 2, "tf": 1, "tb": 1}],
    }
    done = remat.run("info", remat.file("toy.json", toy))
    assert done.returncode == 0 and b"fc" in done.stdout
    assert done.stderr.count(b"\n") == 1 and b"abar" in done.stderr  # smaller than a: one warning
    for change, place in (
        ({"a": -1}, "stages[0].a"),
        ({"tf": None}, "stages[0].tf"),
        ({"abar": 2**62}, "stages[0].abar"),
    ):
        bad = dict(toy, stages=[dict(toy["stages"][0], **change)])
        remat.fails(2, "info", remat.file("bad.json", bad), says=("bad.json", place))


def test_help_and_version(remat):
    header = (ROOT / "include" / "remat.h").read_text()
    parts = [header.split(f"REMAT_VERSION_{part} ")[1].split()[0] for part in ("MAJOR", "MINOR", "PATCH")]
    assert remat.ok("--version").splitlines()[0] == "remat " + ".".join(parts)
    overview = remat.ok("--help")
    for command in COMMANDS:
        assert command in overview
        text = remat.ok(command, "--help")
        assert "remat " + command in text and "\x1b" not in text
        assert text.startswith("  remat " + command)  # examples first
    usual, everything = remat.ok("plan", "--help"), remat.ok("plan", "--help-all")
    assert "(1 to 64, default 1)" in " ".join(everything.split())  # of --threads
    for flag in ("--budget", "--strategy", "--time", "--output", "--replay-random", "--help-all"):
        assert f"{flag} " in usual.split("What strategies heed")[0]
    for flag in ("--threads", "--mps", "--checkmate-plain", "--walkers"):
        assert f"  {flag} " not in usual and f"  {flag} " in everything
    assert len(usual.splitlines()) < len(everything.splitlines()) - 30


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions(remat, shell):
    text = remat.ok("completion", shell)
    assert "plan" in text and "chen-sqrt" in text
    path = remat.file("completion", text)
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed, so it cannot check the syntax of its completions")
    subprocess.run([shell, "-n", path], check=True, timeout=60)


def test_bash_completes(remat):
    """Library options, lists of strategies, models behind a colon."""
    path = remat.file("completion", remat.ok("completion", "bash"))
    for line, words in (
        ("plan g --sl", "--slots"),
        ("compare g --strategy keep-all,ro", "keep-all,rotor keep-all,rotor-float"),
        ("info chain:to", "toy"),
        ("help cost", "cost-models"),
        ("info g --slo", ""),
    ):
        script = (
            f"source '{path}'; COMP_LINE='remat {line}'; " + "COMP_POINT=${#COMP_LINE}; COMP_WORDS=($COMP_LINE); "
            "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _remat; echo ${COMPREPLY[*]}"
        )
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
        assert done.stdout.strip() == words, (line, done.stdout, done.stderr)


def test_no_color_and_no_control_characters(remat, small):
    small["nodes"][0]["name"] = "evil\x1b[31m\nname"
    small["name"] = "g\x07\u202e"
    graph = remat.file("g.json", small)
    for command in ("info", "plan", "lower"):
        text = remat.ok(command, graph)
        assert "\x1b" not in text and "\x07" not in text


def test_unnamed_ops_and_values(remat):
    graph = remat.file(
        "g.json",
        {
            "format": "remat-graph",
            "version": 1,
            "values": [{"size": 4}, {"size": 8}],
            "nodes": [{"in": [0], "out": [1]}],
            "outputs": [1],
        },
    )
    assert "op 0" in remat.ok("info", graph) and "value 1" in remat.ok("info", graph)
    assert "allocate value 1 8" in remat.ok("lower", graph) and "compute op 0" in remat.ok("lower", graph)
    assert remat.json("plan", graph, "--budget", "1", code=10)["need_op"] == "op 0"
    empty = remat.file("e.json", {"format": "remat-graph", "version": 1, "values": [], "nodes": []})
    assert remat.json("info", empty)["keep_all_peak_step"] is None


def test_width(remat, small):
    """Titles keep to the width however long a name is; help wraps to narrow terminals."""
    small["name"] = "n" * 300
    graph = remat.file("g.json", small)
    for command in (
        ("info", graph),
        ("plan", graph, "--budget", "200"),
        ("compare", graph, "--budget", "200"),
        ("curve", graph),
    ):
        assert max(map(len, remat.ok(*command).splitlines())) <= 80
    for width in (20, 33, 60):
        lines = remat.ok("plan", "--help-all", columns=str(width)).splitlines()
        assert max(len(line) for line in lines if not line.startswith("  remat ")) <= max(width, 24)
        lines = remat.ok("plan", graph, "--budget", "200", columns=str(width)).splitlines()
        assert max(len(line) for line in lines if "│" in line or "─" in line) <= width


def test_from_and_to(remat):
    curve = ("curve", "zoo:resnet18", "--points", "3", "--strategy", "chen-sqrt")
    one = remat.json(*curve, "--from", "80%", "--to", "90%")
    peak = one[0]["keep_all_peak_bytes"]
    two = remat.json(*curve, "--from", peak * 80 // 100, "--to", peak * 90 // 100)  # bytes, as in plan
    assert [r["budget_bytes"] for r in one] == [r["budget_bytes"] for r in two]
    for words in ((*curve, "--from", "80"), ("plan", "zoo:resnet18", "--budget", "80")):
        remat.fails(1, *words, says=("80 would be bytes", "80%"))
    assert one[0]["budget_bytes"] == peak * 80 // 100 and one[-1]["budget_bytes"] == peak * 90 // 100


def test_cost_units(remat):
    """A file without a unit has plain numbers; a device is explained in one place."""
    graph = remat.file(
        "nx.json",
        {
            "nodes": [{"id": 0, "cost_ram": 1, "cost_cpu": 2000}, {"id": 1, "cost_ram": 1, "cost_cpu": 3}],
            "links": [{"source": 0, "target": 1}],
        },
    )
    assert "2003  costs: given" in remat.ok("info", graph)
    assert "h200" in remat.ok("help", "cost-models") and "h200" not in remat.ok("plan", "--help")


def test_man_page():
    page = ROOT / "docs" / "remat.1"
    text = page.read_text()
    for command in COMMANDS:
        assert command in text
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed, so the man page is not linted")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_paths_of_ours():
    """Nothing in the tree refers to where it was written."""
    words = ["/work" + "/", ".." + "/shared", "shared" + "/graphs"]
    skip = {".git", "build", ".venv", ".venv-web", "__pycache__", ".ruff_cache", ".pytest_cache"}
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in skip]
        for name in set(files) - skip:  # in a worktree .git is a file
            path = pathlib.Path(folder, name)
            if path.suffix in (".gz", ".png", ".svg"):
                continue
            text = path.read_bytes()
            found += [f"{path}: {word}" for word in words if word.encode() in text]
    assert not found


def on_terminal(args, graph, after=""):
    """What the program writes to a terminal, where the graph comes to its standard input once `after` was seen; and
    its exit code.
    """
    master, slave = pty.openpty()
    env = dict(os.environ, LC_ALL="C.UTF-8", TERM="xterm", COLUMNS="80")
    with subprocess.Popen([PROGRAM, *args], stdin=subprocess.PIPE, stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        text = b""
        while after.encode() not in text:
            text += os.read(master, 4096)
        process.stdin.write(graph)
        process.stdin.close()
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(master, 4096):
                text += part
    os.close(master)
    return text.decode(), process.returncode


def test_seconds_on_a_terminal(small):
    """What takes over a second shows the seconds, and takes them away before anything else is printed."""
    for graph, code, begins in (
        (json.dumps(small).encode(), 0, "\x1b[1m memory in bytes"),
        (b"{", 2, "remat: standard input: line 1"),
    ):
        text, returned = on_terminal(["lower", "-"], graph, after="lower: 1 s")
        shown, _, rest = text.rpartition("\r\x1b[K")
        assert returned == code and re.fullmatch(r"(\r\x1b\[Klower: \d+ s)+", shown) and rest.startswith(begins), text
