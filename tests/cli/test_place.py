"""remat place, and lower --place, --format csv, --format remat-plan and --svg: offsets are checked here by looking
at all pairs.
"""

import csv
import io
import json
import pathlib
import xml.etree.ElementTree

import pytest

from conftest import GRAPHS, schema, small_graph

USAGE, INPUT, IO, PLAN, INFEASIBLE, NOT_FOUND = 1, 2, 3, 5, 10, 11
PLACEMENT = GRAPHS.parent / "placement"
TIGHT = "id,lower,upper,size\na,0,1,2\nb,0,6,2\nc,1,9,2\nd,6,11,1\ne,6,10,1\nf,9,10,1\ng,9,12,1\nh,10,14,2\ni,11,12,1\nj,12,13,2\n"


def rows(text):
    return [
        {key: value if key == "id" else int(value) for key, value in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]


def height(spans):
    """Of spans that must not overlap."""
    for i, a in enumerate(spans):
        for b in spans[:i]:
            in_time = a["lower"] < b["upper"] and b["lower"] < a["upper"]
            assert not (in_time and a["offset"] < b["offset"] + b["size"] and b["offset"] < a["offset"] + a["size"]), (
                a,
                b,
            )
    assert all(span["offset"] >= 0 for span in spans)
    return max(span["offset"] + span["size"] for span in spans)


def load(spans):
    return max(sum(b["size"] for b in spans if b["lower"] <= a["lower"] < b["upper"]) for a in spans)


@pytest.mark.parametrize("name", ["A", "C", "G", "K"])
def test_public_instances(remat, name):
    path, out = PLACEMENT / f"{name}.1048576.csv", remat.folder / "placed.csv"
    answer = remat.json("place", path, "--capacity", "1MiB", "--work", "16000000", "-o", out)
    placed = rows(out.read_text())
    assert [{k: row[k] for k in ("id", "lower", "upper", "size")} for row in placed] == rows(path.read_text())
    assert height(placed) == answer["height"] <= answer["capacity"] == 1048576
    assert answer["load"] == load(placed) <= answer["bound"] <= answer["height"]
    assert answer["outcome"] == ("optimal" if answer["bound"] == answer["height"] else "feasible")
    again = [remat.json("place", file, "--work", "100000")["height"] for file in (path, out)]
    assert again[0] == again[1]  # offsets are not looked at
    assert remat.json("place", path, "--capacity", answer["load"] - 1, code=INFEASIBLE)["outcome"] == "infeasible"


def test_waste_is_proved(remat):
    path = remat.file("tight.csv", TIGHT)
    answer = remat.json("place", path)
    assert (answer["load"], answer["bound"], answer["height"], answer["outcome"], answer["capacity"]) == (
        4,
        5,
        5,
        "optimal",
        None,
    )
    assert remat.json("place", path, "--capacity", 4, code=INFEASIBLE)["bound"] == 5
    done = remat.run("place", "-", "--capacity", "4", input=TIGHT.encode())
    assert (
        done.returncode == INFEASIBLE
        and done.stderr == b"remat: proved: nothing fits 4 bytes; 5 are needed\n"
        and b"infeasible" in done.stdout
    )
    assert height(rows(remat.ok("place", path, "-o", "-"))) == 5
    assert "optimal" in remat.ok("place", remat.file("tight.csv.gz", TIGHT))


def test_not_found(remat):
    done = remat.run("place", PLACEMENT / "K.1048576.csv", "--capacity", "1048576", "--work", "1")
    assert done.returncode == NOT_FOUND and done.stderr.count(b"\n") == 1 and b"unknown" in done.stdout


@pytest.mark.parametrize(
    "text,says",
    [
        ("id,lower,upper\na,0,1\n", ("line 1", "'size'")),
        ("id,lower,upper,size\na,1,1,4\n", ("line 2", "upper is not above lower")),
        ("id,lower,upper,size\na,3,1,4\n", ("line 2", "upper is not above lower")),
        ("id,lower,upper,size\na,0,1,0\n", ("line 2", "size")),
        ("id,lower,upper,size\na,0,1,4611686018427387904\n", ("line 2", "2^62")),
        ("id,lower,upper,size\na,-1,1,4\n", ("line 2", "lower")),
        ("id,lower,upper,size\na,0,1,4\na,1,2,4\n", ("line 3", "twice")),
        ("id,lower,upper,size\n\x1b[31m,0,1,x\n", ("line 2", "size")),
        ("lower upper\n", ("neither",)),
        ("", ("empty",)),
    ],
)
def test_bad_input(remat, text, says):
    remat.fails(INPUT, "place", remat.file("bad.csv", text), says=("bad.csv", *says))


def test_mistakes(remat):
    path = remat.file("tight.csv", TIGHT)
    for capacity in ("-1", "x", "50%", "min", "1e-3"):
        remat.fails(USAGE, "place", path, "--capacity", capacity, says=("--capacity", capacity))
    remat.fails(USAGE, "place", path, "-o", "x.csv.gz", says=("-o",))
    assert remat.json("place", path, "-o", "-", code=USAGE)["error"]["place"] == "--json"
    remat.fails(INPUT, "place", GRAPHS / "resnet18.json.gz", says=("a graph, where a list of spans is needed",))
    remat.fails(INPUT, "info", path, says=("spans",))
    remat.fails(IO, "place", remat.folder / "none.csv")
    for align in ("3", "0", "-4"):
        remat.fails(USAGE, "lower", "zoo:mlp", "--align", align, says=("--align", "power of two"))
    remat.fails(USAGE, "lower", "zoo:mlp", "--align", "0x10", says=("--align",))
    remat.fails(USAGE, "lower", "zoo:mlp", "--align", "0", says=("--align", "power of two"))
    assert remat.json("lower", "zoo:mlp", "--format", "csv", code=USAGE)["error"]["place"] == "--json"


@pytest.mark.parametrize("align", [1, 512])
@pytest.mark.parametrize(
    "graph,budget,more",
    [
        ("resnet18", "60%", ()),
        ("distilbert", "50%", ()),
        ("resnet50", "50%", ("--strategy", "fastsa", "--offload", "50GB")),
    ],
)
def test_offsets_of_a_plan(remat, graph, budget, more, align):
    graph, plan = GRAPHS / f"{graph}.json.gz", remat.folder / "p.json"
    made = json.loads(
        remat.run(
            "plan", graph, "--budget", budget, "--replay-random", *more, "--work", "200000", "-o", plan, "--json"
        ).stdout
    )
    answer = remat.json("lower", graph, plan, "--place", "--align", align)
    spans = rows(remat.ok("lower", graph, plan, "--format", "csv", "--align", align))
    assert height(spans) == answer["arena_bytes"] == answer["load_bytes"] + answer["waste_bytes"]
    assert all(span["offset"] % align == 0 and span["size"] % align == 0 for span in spans)
    assert load(spans) == answer["load_bytes"] >= made["peak_bytes"] - made["resident_bytes"]
    if align == 1:
        assert answer["load_bytes"] == made["peak_bytes"] - made["resident_bytes"]
    by_id = {span["id"]: span["offset"] for span in spans}
    for s in answer["statements"]:
        if s["statement"] == "allocate" and s["bytes"]:
            assert by_id[f"r{s['reg']}"] == s["offset"]
        elif s["statement"] in ("compute", "offload", "fetch"):
            assert by_id.get(f"w{s['step']}") == s["offset"]
        else:
            assert "offset" not in s or s["bytes"] == 0


def test_offsets_that_a_plan_has(remat):
    plan = remat.folder / "p.json"
    remat.ok("lower", "zoo:mlp", "--format", "remat-plan", "--align", 64, "-o", plan)
    moved = json.loads(plan.read_text())
    for item in moved["placement"]["storages"] + moved["placement"]["workspaces"]:
        item["offset"] += 640
    moved["placement"]["arena_bytes"] += 640
    plan.write_text(json.dumps(moved))
    answer = remat.json("lower", "zoo:mlp", plan, "--place")
    assert (
        answer["align"] == 64
        and answer["waste_bytes"] == 640
        and answer["outcome"] == "feasible"
        and answer["work"] == 0
    )
    assert min(s["offset"] for s in answer["statements"] if s.get("offset") is not None and s["bytes"]) == 640
    remat.ok("lower", "zoo:mlp", plan, "--format", "remat-plan", "-o", remat.folder / "q.json")
    assert json.loads((remat.folder / "q.json").read_text())["placement"] == moved["placement"]
    assert remat.json("lower", "zoo:mlp", plan, "--align", 64)["waste_bytes"] == 0
    remat.fails(
        USAGE, "report", "zoo:mlp", plan, "--align", 64, "-o", remat.folder / "r.html", says=("--align", "p.json")
    )


def test_picture(remat):
    value = {"name": 'a<b&"c\x01é', "size": 8}
    graph = remat.file(
        "g.json",
        {
            "format": "remat-graph",
            "version": 1,
            "name": "<&>",
            "values": [value, dict(value), dict(value), dict(value)],
            "nodes": [
                {"name": "f", "in": [0], "out": [1], "workspace": 4},
                {"name": "g", "in": [1], "out": [2]},
                {"name": "h", "in": [1, 2], "out": [3]},
            ],
            "outputs": [3],
        },
    )
    plan = remat.file(
        "p.json",
        {
            "format": "remat-plan",
            "version": 1,
            "kind": "graph",
            "graph": {"digest": json.loads(remat.ok("info", graph, "--json"))["digest"]},
            "schedule": [0, 1, 0, 2],
        },
    )
    picture = xml.etree.ElementTree.fromstring(remat.ok("lower", graph, plan, "--svg", "-"))
    drawn = [r for r in picture.iter("{http://www.w3.org/2000/svg}rect") if len(r)]
    assert len(drawn) == 6  # two of f, g, h; and a workspace for each f
    assert sum("again" in r.get("class") for r in drawn) == 1
    text = remat.ok("lower", graph, plan, "--svg", remat.folder / "x.svg", "--place")
    assert "wasted" in text and (remat.folder / "x.svg").read_text().startswith("<svg")


def test_sizes_are_rounded_before_planning(remat):
    graph, plan = GRAPHS / "resnet18.json.gz", remat.folder / "p.json"
    plain, made = remat.json("info", graph), remat.json("info", graph, "--align", 4096)
    assert plain["keep_all_peak_bytes"] < made["keep_all_peak_bytes"] and plain["digest"] == made["digest"]
    made = remat.json("plan", graph, "--align", 4096, "--budget", "60%", "-o", plan)
    assert json.loads(plan.read_text())["options"]["align"] == 4096
    assert remat.json("verify", graph, plan)["peak_bytes"] == made["peak_bytes"]
    answer = remat.json("lower", graph, plan, "--place")
    assert answer["align"] == 4096 and answer["load_bytes"] == made["peak_bytes"] - made["resident_bytes"]
    assert answer["waste_bytes"] == 0 and all(
        s.get("offset") is None or s["offset"] % 4096 == 0 for s in answer["statements"]
    )
    for wrong in (0, 3, -4, 1 << 31):
        remat.fails(USAGE, "plan", graph, "--align", wrong, says=("--align", "power of two"))
    remat.fails(USAGE, "plan", "chain:toy", "--align", 8, "--budget", "min", says=("--align", "chain"))
    broken = json.loads(plan.read_text())
    for wrong in (0, 3, -4, 1 << 31, "8"):
        broken["options"]["align"] = wrong
        remat.fails(INPUT, "verify", graph, remat.file("broken.json", broken), says=("options.align",))


def test_a_graph_without_ops(remat):
    graph = remat.file("g.json", {"format": "remat-graph", "version": 1, "values": [], "nodes": []})
    assert remat.json("lower", graph, "--place")["arena_bytes"] == 0
    assert remat.ok("lower", graph, "--format", "csv") == "id,lower,upper,size,offset\n"
    xml.etree.ElementTree.fromstring(remat.ok("lower", graph, "--svg", "-"))


@pytest.mark.parametrize(
    "name, change, says",
    [
        ("overlap", lambda p: p["storages"][1].update(offset=p["storages"][0]["offset"]), "overlaps"),
        ("alignment", lambda p: p["storages"][0].update(offset=p["storages"][0]["offset"] + 1), "is not aligned"),
        ("beyond", lambda p: p.update(arena_bytes=p["arena_bytes"] - 512), "reaches beyond"),
        ("too large", lambda p: p.update(arena_bytes=p["arena_bytes"] + 512), "the height is"),
        ("twice", lambda p: p["storages"].append(p["storages"][0]), "is placed twice"),
        ("missing", lambda p: p["storages"].pop(), "has no place in the arena"),
        ("workspace", lambda p: p["workspaces"].pop(), "its workspace has no place"),
        ("no such step", lambda p: p["workspaces"].append({"step": 10**6, "offset": 0}), "is nothing that it needs"),
        (
            "no such value",
            lambda p: p["storages"].append({"value": 10**6, "instance": 0, "offset": 0}),
            "is nothing that it needs",
        ),
    ],
)
def test_offsets_in_a_plan_file_are_checked(remat, name, change, says):
    """A plan file with a placement verifies; with a false one it does not, and the message says why."""
    graph, plan = remat.file("graph.json", small_graph()), str(remat.folder / "plan.json")
    remat.ok("lower", graph, "--format", "remat-plan", "--align", "512", "-o", plan)
    document = json.loads(pathlib.Path(plan).read_text())
    schema("remat-plan.schema.json").validate(document)
    placement = document["placement"]
    assert placement["align"] == 512 and len(placement["workspaces"]) == 1
    assert remat.json("verify", graph, plan)["arena_bytes"] == placement["arena_bytes"]
    assert "no two storages overlap" in remat.ok("verify", graph, plan)
    change(placement)
    verdict = remat.json("verify", graph, remat.file("changed.json", document), code=PLAN)
    assert not verdict["valid"] and says in verdict["reason"] and "arena_bytes" not in verdict


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda p: p.update(align=3), "placement.align"),
        (lambda p: p.pop("align"), "placement.align"),
        (lambda p: p.pop("workspaces"), "placement.workspaces"),
        (lambda p: p.pop("arena_bytes"), "placement.arena_bytes"),
        (lambda p: p["storages"][0].pop("value"), "placement.storages[0]"),
        (lambda p: p["storages"][0].update(offset=-1), "placement.storages[0]"),
        (lambda p: p["storages"][0].update(instance=1.5), "placement.storages[0]"),
        (lambda p: p["storages"].append(7), "placement.storages[4]"),
        (lambda p: p["workspaces"][0].update(offset=2**62), "placement.workspaces[0]"),
    ],
)
def test_placements_that_cannot_be_read(remat, change, says):
    graph, plan = remat.file("graph.json", small_graph()), str(remat.folder / "plan.json")
    remat.ok("lower", graph, "--format", "remat-plan", "-o", plan)
    document = json.loads(pathlib.Path(plan).read_text())
    change(document["placement"])
    remat.fails(INPUT, "verify", graph, remat.file("changed.json", document), says=(says,))
