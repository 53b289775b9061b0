"""--svg of plan, curve, compare and lower: valid XML whatever the names are, and pictures that say what --json says."""

import json
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import GRAPHS, PROGRAM, plain_build

USAGE = 1
SVG = "{http://www.w3.org/2000/svg}"
RESNET = ("zoo:resnet18", "--work", "300000")
HOSTILE = [
    "<script>alert(1)</script>",
    "]]><script/>",
    "&amp;&lt;&#60;",
    '"onload="alert(1)',
    "' onclick='x'",
    "<!--",
    "-->",
    "<?xml?>",
    "%s%n%d",
    "\x01\x1b[31m\x7f",
    "‮evil‬",
    "\ufffe\uffff\ufdd0",
    "é漢字🙂",
    "a" * 5000,
    "",
    " ",
    "</title></svg>",
    "url(#again)",
    "\\u003c",
    "&#x0;",
    "{}",
]
ELEMENTS = {"svg", "title", "desc", "style", "defs", "pattern", "rect", "text", "path", "circle"}
ATTRIBUTES = {
    "width",
    "height",
    "viewBox",
    "role",
    "class",
    "x",
    "y",
    "d",
    "cx",
    "cy",
    "r",
    "text-anchor",
    "id",
    "patternUnits",
    "patternTransform",
    "fill",
    "fill-opacity",
}


def drawn(text):
    """The picture, parsed; nothing is in it that could run or be fetched."""
    root = ElementTree.fromstring(text)
    for element in root.iter():
        assert element.tag.startswith(SVG) and element.tag[len(SVG) :] in ELEMENTS, element.tag
        assert set(element.keys()) <= ATTRIBUTES, element.keys()
    assert len(root.findall(SVG + "style")) == 1 and root[0].tag == SVG + "title"
    return root


def notes(root, tag):
    """(element, its note) of every element of that kind that has one."""
    return [(x, x.find(SVG + "title").text) for x in root.iter(SVG + tag) if x.find(SVG + "title") is not None]


def texts(root):
    return [x.text for x in root.iter(SVG + "text")]


def corners(path):
    """The points of a path of level and upright pieces."""
    x, y = map(float, re.match(r"M(\S+) ([^hvzL]+)", path.get("d")).groups())
    points = [(x, y)]
    for command, number in re.findall(r"([hv])(-?[0-9.]+)", path.get("d")):
        x, y = (x + float(number), y) if command == "h" else (x, y + float(number))
        points.append((x, y))
    return points


def painted(root, paint):
    return [x for x in root.iter(SVG + "path") if x.get("class") == paint]


def numbers_of(note):
    found = re.fullmatch(r"(\S+): budget (\d+), peak (\d+), cost (\d+), overhead (\S+)%", note)
    return found[1], int(found[2]), int(found[3]), int(found[4]), float(found[5]) / 100


def same_as(row):
    return (
        row["strategy"],
        row["budget_bytes"],
        row["peak_bytes"],
        row["cost"],
        pytest.approx(row["overhead"], rel=1e-8),
    )


def hostile_graph(name):
    values = [{"name": name, "size": 8}] + [{"name": name, "size": 8} for _ in range(4)]
    nodes = [
        {"name": name, "in": [i], "out": [i + 1], "phase": "forward" if i < 2 else "backward", "workspace": i}
        for i in range(4)
    ]
    nodes[3]["in"] = [3, 1]
    return {"format": "remat-graph", "version": 1, "name": name, "values": values, "nodes": nodes, "outputs": [4]}


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_becomes_markup(remat, name):
    graph = remat.file("g.json", hostile_graph(name))
    plan = remat.folder / "p.json"
    assert remat.run("plan", graph, "--budget", "100%", "-o", plan).returncode == 0
    for words in (
        ("plan", graph, "--budget", "100%"),
        ("compare", graph, "--budget", "100%", "--strategy", "keep-all,auto,rotor"),
        ("curve", graph, "--strategy", "keep-all,auto"),
        ("lower", graph, plan),
    ):
        root = drawn(remat.ok(*words, "--svg", "-"))
        shown = root[0].text or ""
        assert shown == "".join(c if c.isprintable() else "?" for c in name)[:200] + ("…" if len(name) > 200 else "")
    assert len(notes(root, "rect")) == 7  # four values, three workspaces


def test_plan_says_what_json_says(remat):
    told = remat.json("plan", *RESNET, "--budget", "60%", "--svg", remat.folder / "x.svg")
    root = drawn((remat.folder / "x.svg").read_text())
    before = remat.json("info", "zoo:resnet18")
    peaks = [
        tuple(map(int, re.fullmatch(r"peak (\d+) at step (\d+)", note).groups())) for _, note in notes(root, "circle")
    ]
    summary = remat.json(
        "verify", "zoo:resnet18", remat.file("p.json", remat.ok("plan", *RESNET, "--budget", "60%", "-o", "-"))
    )
    assert peaks == [
        (told["keep_all_peak_bytes"], before["keep_all_peak_step"]),
        (told["peak_bytes"], summary["peak_step"]),
    ]
    assert any(f"cost +{100 * told['overhead']:.2f}%" in text for text in texts(root))
    limits = [float(x.get("d").split()[0][1:].split("L")[0]) for x in painted(root, "limit")]
    assert len(limits) == 2
    # The height of the highest area against the line of the budget, in both panels.
    tops = [
        points
        for paint in ("resident", "forward", "backward", "again", "work")
        for points in map(corners, painted(root, paint))
    ]
    for line, bytes_there in zip(painted(root, "limit"), (told["keep_all_peak_bytes"], told["peak_bytes"])):
        y = float(re.match(r"M\S+ ([0-9.]+)L", line.get("d"))[1])
        panel = [points for points in tops if points[0][1] > y and points[0][1] - y < 170]
        floor = panel[0][0][1]
        assert floor - min(p[1] for points in panel for p in points) == pytest.approx(
            (floor - y) * bytes_there / told["budget_bytes"], abs=0.2
        )


def test_areas_are_the_memory_of_every_step(remat, small):
    """Few steps are all drawn: the outline is what lowering states, step by step."""
    graph = remat.file("g.json", small)
    root = drawn(remat.ok("plan", graph, "--budget", "100%", "--svg", "-"))
    memory = {}
    for s in remat.json("lower", graph):
        memory[s["step"]] = max(memory.get(s["step"], 0), s["memory_bytes"])
    outline = {}
    for paint in ("resident", "forward", "backward", "work"):
        for points in map(corners, painted(root, paint)[:1]):
            floor, left, width = points[0][1], points[0][0], points[-1][0] - points[0][0]
            for step in memory:
                middle = left + width * (step + 0.5) / len(memory)
                y = next(a[1] for a, b in zip(points, points[1:]) if a[0] <= middle < b[0])
                outline[step] = max(outline.get(step, 0), floor - y)
    scale = outline[0] / memory[0]
    assert outline == {step: pytest.approx(scale * bytes_there, abs=0.3) for step, bytes_there in memory.items()}


def test_curve_says_what_json_says(remat):
    words = ("curve", *RESNET, "--from", "55%", "--points", "5", "--strategy", "mincut,rotor,chen-greedy")
    rows = [row for row in remat.json(*words, "--svg", remat.folder / "x.svg") if row["within_budget"]]
    root = drawn((remat.folder / "x.svg").read_text())
    marks = notes(root, "path")
    assert sorted(numbers_of(note)[:4] for _, note in marks) == sorted(same_as(row)[:4] for row in rows)
    by_note = {numbers_of(note)[:2]: (mark, numbers_of(note)) for mark, note in marks}
    place = {}
    for row in rows:
        mark, numbers = by_note[row["strategy"], row["budget_bytes"]]
        assert numbers == same_as(row)
        x, y = map(float, re.match(r"M(\S+) ([0-9.]+)", mark.get("d")).groups())
        place[row["strategy"], row["budget_bytes"]] = x, y
    # Pixels are linear in bytes and in overhead.
    (x0, y0), (x1, y1) = place["chen-greedy", rows[0]["budget_bytes"]], place["mincut", rows[-1]["budget_bytes"]]
    dear, free = (
        next(r for r in rows if (r["strategy"], r["budget_bytes"]) == key)
        for key in (("chen-greedy", rows[0]["budget_bytes"]), ("mincut", rows[-1]["budget_bytes"]))
    )
    per_byte = (x1 - x0) / (free["budget_bytes"] - dear["budget_bytes"])
    per_overhead = (y1 - y0) / (free["overhead"] - dear["overhead"])
    for row in rows:
        x, y = place[row["strategy"], row["budget_bytes"]]
        assert (x, y) == (
            pytest.approx(x0 + (row["budget_bytes"] - dear["budget_bytes"]) * per_byte, abs=0.2),
            pytest.approx(y0 + (row["overhead"] - dear["overhead"]) * per_overhead, abs=0.2),
        )
    # The shade is as high as the bound just left of each budget, and no line is in it.
    (shade,) = painted(root, "never")
    stairs = corners(shade)
    for row in rows:
        x, y = place[row["strategy"], row["budget_bytes"]]
        bound = row["any_order_bound_cost"] / row["keep_all_cost"] - 1
        height = next(a[1] for a, b in zip(stairs, stairs[1:]) if a[0] < x - 0.3 <= b[0])
        assert height == pytest.approx(y1 + bound * per_overhead, abs=0.3) and height >= y - 0.3


@plain_build
def test_compare_says_what_json_says(remat):
    words = ("compare", *RESNET, "--budget", "60%", "--strategy", "mincut,rotor,chen-greedy,keep-all,checkmate")
    rows = remat.json(*words, "--svg", remat.folder / "x.svg")
    root = drawn((remat.folder / "x.svg").read_text())
    lengths = {}
    for bar, note in notes(root, "rect"):
        numbers = numbers_of(note)
        lengths.setdefault(numbers, {})[bar.get("class")] = float(bar.get("width"))
    fitting = [row for row in rows if row["within_budget"]]
    assert [numbers[:4] for numbers in lengths] == [same_as(row)[:4] for row in fitting] and 3 <= len(fitting) < len(
        rows
    )
    scale = sum(list(lengths.values())[0].values()) / fitting[0]["overhead"]
    for row, bar in zip(fitting, lengths.values()):
        assert sum(bar.values()) == pytest.approx(scale * row["overhead"], abs=0.1)
        assert bar["bar"] == pytest.approx(scale * (row["any_order_bound_cost"] / row["keep_all_cost"] - 1), abs=0.1)
    shown = texts(root)
    assert "keep-all" in shown and any(text.startswith("found nothing that fits: least peak") for text in shown)
    assert any(text.endswith(f"gap {100 * fitting[1]['any_order_gap']:.2f}%") for text in shown)


def test_large_schedules_give_small_files(remat):
    """Least and most of every pixel: the peak is drawn, whatever the number of steps."""
    graph = "zoo:random-layered?n=20000&width=8"
    told = remat.json("plan", graph, "--svg", remat.folder / "x.svg")
    text = (remat.folder / "x.svg").read_text()
    assert (
        len(text) < 120_000
        and f"peak {told['peak_bytes']} at step" in drawn(text).find(f".//{SVG}circle/{SVG}title").text
    )
    (area,) = [points for points in map(corners, painted(drawn(text), "forward")[:1])]
    assert min(y for _, y in area) == pytest.approx(50 + 170 - 170 / 1.06, abs=0.2)


def test_the_stack_of_a_chain(remat):
    """A chain's picture has the parts of a graph's: input, first forwards, gradients, later forwards, overheads. The
    highest stacks are the peaks.
    """
    words = ("plan", "chain:toy", "--budget", "9000", "--slots", "0")
    root = drawn(remat.ok(*words, "--svg", "-"))
    # keep-all makes nothing again
    assert [len(painted(root, paint)) for paint in ("resident", "forward", "backward", "again", "work")] == [
        2,
        2,
        2,
        1,
        2,
    ]
    tops = {
        paint: map(corners, painted(root, paint)[:2]) for paint in ("resident", "forward", "backward", "again", "work")
    }
    told = remat.json(*words)
    floors = [[(points[0][1], min(p[1] for p in points)) for points in list_] for list_ in tops.values()]
    heights = [
        max(floor - top for list_ in floors for floor, top in list_ if floor == ground)
        for ground in sorted({floor for list_ in floors for floor, _ in list_})
    ]
    assert heights[1] / heights[0] == pytest.approx(told["peak_bytes"] / told["keep_all_peak_bytes"], abs=0.003)


def test_chains_and_empty_graphs(remat):
    for words in (
        ("plan", "chain:toy", "--budget", "9000"),
        ("curve", "chain:toy", "--strategy", "rotor,periodic"),
        ("compare", "chain:toy", "--budget", "9000"),
    ):
        drawn(remat.ok(*words, "--svg", "-"))
    empty = remat.file("g.json", {"format": "remat-graph", "version": 1, "values": [], "nodes": []})
    for words in (
        ("plan", empty),
        ("curve", empty),
        ("compare", empty, "--budget", "1GiB", "--strategy", "keep-all,auto"),
        ("compare", empty, "--saved"),
    ):
        drawn(remat.ok(*words, "--svg", "-"))


def test_a_picture_does_not_depend_on_the_locale(remat, small):
    graph = remat.file("g.json", dict(small, name="é漢字"))
    pictures = {
        subprocess.run(
            [PROGRAM, "plan", graph, "--svg", "-"], capture_output=True, check=True, env=dict(os.environ, LC_ALL=name)
        ).stdout
        for name in ("C", "C.UTF-8")
    }
    assert len(pictures) == 1 and "é漢字" in pictures.pop().decode()


def test_where_the_picture_goes(remat, small):
    graph = remat.file("g.json", small)
    path = remat.folder / "x.svg"
    text = remat.ok("plan", graph, "--budget", "100%", "--svg", path)
    assert "outcome" in text and path.read_text() == remat.ok("plan", graph, "--budget", "100%", "--svg", "-")
    for words in (("plan", graph), ("curve", graph), ("compare", graph, "--budget", "100%"), ("lower", graph)):
        remat.fails(USAGE, *words, "--svg", "x.svg.gz", says=("--svg", "not compressed"))
    remat.fails(USAGE, "plan", graph, "-o", "-", "--svg", "-", says=("--svg", "standard output"))
    remat.fails(USAGE, "plan", graph, "--budget", "100%", "--mps", "x.mps", "--svg", "x.svg", says=("--svg", "--mps"))
    done = remat.run("plan", graph, "--budget", "3", "--svg", path)
    assert done.returncode == 10 and drawn(path.read_text()) is not None
    assert remat.run("plan", graph, "--svg", remat.folder / "no" / "x.svg").returncode == 3


def test_gpt2_is_small(remat):
    told = json.loads(remat.ok("plan", GRAPHS / "gpt2.json.gz", "--dce", "--json", "--svg", remat.folder / "x.svg"))
    text = (remat.folder / "x.svg").read_text()
    assert told["steps"] > 1500 and len(text) < 60_000
    drawn(text)
