"""remat report: one file that stands alone. What a browser makes of it is tested in web/tests; here: data, escapes,
policy, sizes, errors.
"""

import base64
import hashlib
import html.parser
import json
import re

import pytest

from conftest import GRAPHS, PLAN_FIELDS, plain_build

USAGE, INPUT, IO, PLAN, APPLIES, INFEASIBLE = 1, 2, 3, 5, 6, 10
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "<img src=x onerror=alert(1)>",
    "\u2028\u2029",
    "\"'`\\",
    "${alert(1)}",
    "&lt;&#60;&amp;",
    "a\tb\nc\rd\u0001\u001f\u007f",
    "\u202egpj\u202c",
    "javascript:alert(1)",
    "__proto__",
    "constructor",
    "\ufeff\u200b",
    "🙂é",
    "x" * 3000,
    " ",
    "'); DROP TABLE ops;--",
]


class Page(html.parser.HTMLParser):
    """The parts of a page: attributes of all elements, and the text of script and style."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.policy, self.inside = [], [], None, None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self.inside = (tag, attributes) if tag in ("script", "style") else None
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, text):
        if self.inside:
            self.texts.append((self.inside, text))

    def text(self, tag, kind=None):
        return "".join(
            text for (name, attributes), text in self.texts if name == tag and attributes.get("type") == kind
        )

    @property
    def data(self):
        return json.loads(self.text("script", "application/json"))


def report(remat, *args, code=0):
    path = remat.folder / "report.html"
    done = remat.run("report", *args, "-o", path)
    assert done.returncode == code, done.stderr.decode()
    return Page(path.read_bytes().decode())


def ops_of(data, plan):
    """The op of each step, of a chain too; None: an offload or a fetch."""
    n = len(data["ops"]["name"])  # of a chain: the forwards, then the backwards from the last stage on
    of = {"B": lambda stage: n - stage, "Fall": lambda stage: stage - 1}
    of["Fck"] = of["Fnone"] = of["Fall"]
    return [
        step if isinstance(step, int) else of[step[0]](step[1]) if isinstance(step, list) else None
        for step in plan["file"]["schedule"]
    ]


def memory(data, plan):
    """Bytes at each step, from the spans and the workspaces of the page."""
    spans, ops = plan["spans"], data["ops"]
    total = [data["graph"]["resident_bytes"] + (0 if op is None else ops["workspace"][op]) for op in ops_of(data, plan)]
    begin = 0
    for tensor, later, steps in zip(spans["tensor"], spans["later"], spans["steps"], strict=True):
        begin += later
        for t in range(begin, begin + steps):
            total[t] += data["tensors"]["bytes"][tensor]
    return total


def check(data):
    """What holds for every page."""
    n_ops, tensors = len(data["ops"]["name"]), data["tensors"]
    assert all(len(data["ops"][key]) == n_ops for key in ("target", "phase", "workspace", "reads", "makes"))
    assert all(len(tensors[key]) == len(tensors["name"]) for key in ("value", "bytes", "kind", "dtype", "shape"))
    assert sum(tensors["bytes"][tensors["made"] :]) == data["graph"]["resident_bytes"]
    for plan, summary in zip(data["plans"], data["reports"], strict=True):
        total = memory(data, plan)
        assert max(total) == summary["peak_bytes"] == plan["file"]["peak_bytes"]
        assert total[plan["file"]["peak_step"]] == summary["peak_bytes"]
        ops = ops_of(data, plan)
        if data["ops"]["cost"] is not None and None not in ops:
            assert sum(data["ops"]["cost"][op] for op in ops) == summary["cost"]
        assert set(PLAN_FIELDS) <= set(summary)


@pytest.mark.parametrize(
    "name, flags",
    [
        ("resnet18", ["--dce", "--inplace"]),
        ("gpt2", ["--dce", "--replay-random"]),
        ("mobilenetv3_large", []),
        ("distilbert", ["--no-alias", "--fold-identity"]),
        ("resnet50", ["--cost-model", "flops"]),
        ("densenet121", ["--fuse"]),
    ],
)
def test_data_are_true(remat, name, flags):
    page = report(remat, GRAPHS / f"{name}.json.gz", "--budget", "60%", "--strategy", "mincut", *flags)
    data = page.data
    check(data)
    assert [plan["role"] for plan in data["plans"]] == ["keep-all", "plan"]
    assert data["command"][:2] == ["remat", "report"] and data["format"] == "remat-report"
    assert (data["ops"]["cost"] is None) == ("--fuse" in flags)


def test_the_object_of_plan_json(remat):
    graph = GRAPHS / "resnet18.json.gz"
    flags = [graph, "--budget", "70%", "--dce", "--work", "100000"]
    summary = report(remat, *flags).data["reports"][1]
    planned = remat.json("plan", *flags)
    assert {**planned, "seconds": 0} == {**summary, "schedule": planned["schedule"], "seconds": 0}


def test_plan_files_and_what_reads_what(remat, small):
    graph = remat.file("small.json", small)
    remat.ok("plan", graph, "-o", remat.folder / "plan.json")
    data = report(remat, graph, remat.folder / "plan.json").data
    check(data)
    names = data["tensors"]["name"]
    assert names[: data["tensors"]["made"]] == ["a", "b", "db", "da"] and names[-1] == "x"
    reads = {op: [names[t] for t in list_] for op, list_ in zip(data["ops"]["name"], data["ops"]["reads"])}
    assert reads == {"f": ["x"], "t": ["a"], "g": ["a"], "g'": ["b"], "f'": ["db", "a"]}  # of the view: its storage
    assert data["tensors"]["bytes"][0] == 16 and data["ops"]["workspace"] == [0, 0, 3, 0, 0]
    assert data["plans"][1]["file"] == json.loads((remat.folder / "plan.json").read_text())


def test_two_plans_curve_and_placement(remat):
    graph = GRAPHS / "vgg11.json.gz"
    for budget in (90, 80):
        remat.ok("plan", graph, "--budget", f"{budget}%", "--work", "100000", "-o", remat.folder / f"{budget}.json")
    data = report(remat, graph, remat.folder / "90.json", remat.folder / "80.json", "--place").data
    check(data)
    assert [plan["role"] for plan in data["plans"]] == ["keep-all", "plan", "plan"]
    for plan in data["plans"]:
        placement, size = plan["file"]["placement"], dict(zip(data["tensors"]["value"], data["tensors"]["bytes"]))
        assert max(x["offset"] + size[x["value"]] for x in placement["storages"]) <= placement["arena_bytes"]
        assert len(placement["storages"]) == sum(data["tensors"]["bytes"][t] > 0 for t in plan["spans"]["tensor"])
    data = report(
        remat, graph, "--budget", "90%", "--curve", "--points", "3", "--strategy", "periodic,rotor", "--from", "80%"
    ).data
    check(data)
    assert [plan["role"] for plan in data["plans"]] == ["keep-all", *["plan"] * 2, *["curve"] * 6]
    assert [x["strategy"] for x in data["reports"]] == [
        "keep-all",
        "periodic",
        "rotor",
        *["periodic"] * 3,
        *["rotor"] * 3,
    ]


def test_a_plan_of_a_file_with_a_curve(remat):
    graph = GRAPHS / "vgg11.json.gz"
    remat.ok("plan", graph, "--budget", "90%", "--work", "50000", "-o", remat.folder / "p.json")
    data = report(
        remat, graph, remat.folder / "p.json", "--curve", "--points", "2", "--from", "85%", "--work", "50000"
    ).data
    check(data)
    assert [(plan["role"], summary["plan"] is None) for plan, summary in zip(data["plans"], data["reports"])] == [
        ("keep-all", True),
        ("plan", False),
        ("curve", True),
        ("curve", True),
    ]


def test_offload(remat):
    data = report(
        remat, GRAPHS / "gpt2.json.gz", "--budget", "40%", "--dce", "--offload", "50000GB/s", "--work", "300000"
    ).data
    check(data)
    assert any(isinstance(step, dict) for step in data["plans"][1]["file"]["schedule"])


@pytest.mark.parametrize(
    "chain, budget, flags",
    [
        ("chain:figure4", "15", ["--slots", "0"]),
        ("chain:resnet?n=6", "60%", []),
        ("chain:random?n=15&seed=4", "60%", []),
        ("chain:toy", "9000", []),
    ],
)
def test_chains(remat, chain, budget, flags):
    """The lives of what a chain stores sum up to the peaks that the verifier found, for every strategy; no forward
    is counted for a backward.
    """
    data = report(
        remat,
        chain,
        "--budget",
        budget,
        "--strategy",
        "rotor,rotor-float,revolve,chen-sqrt,periodic",
        "--curve",
        "--points",
        "3",
        *flags,
    ).data
    check(data)
    assert (
        data["graph"]["kind"] == "chain" and len(data["plans"]) == 1 + 5 + 15 and data["graph"]["resident_bytes"] == 0
    )
    n = len(data["ops"]["name"]) // 2
    assert data["ops"]["phase"] == [1] * n + [2] * n and data["ops"]["name"][n:] == [
        f"{name} backward" for name in reversed(data["ops"]["name"][:n])
    ]
    keep_all = data["plans"][0]["spans"]
    names = [data["tensors"]["name"][t] for t in keep_all["tensor"]]
    assert all(name == "input.a" or name.split(".")[-1] in ("abar", "delta", "keep") for name in names)  # it stores all


def test_a_plan_file_of_a_chain(remat):
    plan = remat.folder / "plan.json"
    remat.ok("plan", "chain:toy", "--budget", "9000", "--slots", "0", "-o", plan)
    data = report(remat, "chain:toy", plan).data
    check(data)
    assert data["plans"][1]["file"] == json.loads(plan.read_text()) and data["graph"]["size_unit"] is None
    wrong = json.loads(plan.read_text())
    wrong["schedule"][1], wrong["schedule"][2] = wrong["schedule"][2], wrong["schedule"][1]
    done = remat.run("report", "chain:toy", remat.file("wrong.json", wrong), "-o", remat.folder / "r.html")
    assert done.returncode == PLAN and b"wrong.json" in done.stderr


def hostile_graph():
    """A chain of ops whose names are the corpus; so are names of values, targets, types, and the name of the graph."""
    n = len(HOSTILE)
    values = [{"name": "x" + HOSTILE[0], "size": 4, "kind": "param"}]
    values += [{"name": name, "size": 8 + i, "dtype": name, "shape": [1, 2]} for i, name in enumerate(HOSTILE)]
    nodes = [
        {
            "name": name,
            "op": name,
            "in": [i, 0] if i else [0],
            "out": [i + 1],
            "cost": 1 + i,
            "phase": "forward" if i < n // 2 else "backward",
        }
        for i, name in enumerate(HOSTILE)
    ]
    nodes[-1]["in"] = [n - 1, 1, 2]
    return {
        "format": "remat-graph",
        "version": 1,
        "name": "".join(HOSTILE[:5]),
        "values": values,
        "nodes": nodes,
        "outputs": [n],
    }


def test_names_stay_data(remat):
    graph = remat.file("hostile.json", hostile_graph())
    plain = report(remat, "zoo:f1")
    page = report(remat, graph, "--budget", "100%")
    assert page.tags == plain.tags  # nothing in a name becomes an element or an attribute
    assert page.text("script") == plain.text("script") and page.text("style") == plain.text("style")
    raw = (remat.folder / "report.html").read_bytes().decode()
    block = raw.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert not set("<>&\u2028\u2029\r\ufeff") & set(block)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", block)
    assert json.loads(block)["ops"]["name"] == HOSTILE and json.loads(block)["ops"]["target"] == HOSTILE
    assert set(HOSTILE) <= set(json.loads(block)["tensors"]["name"])
    assert raw.count("<script") == raw.count("</script>") == 2


def test_names_of_stages_stay_data(remat):
    stages = [{"name": name, "a": 4, "abar": 9, "tf": 1, "tb": 2} for name in HOSTILE]
    chain = remat.file(
        "hostile.json",
        {
            "format": "remat-chain",
            "version": 1,
            "name": HOSTILE[0],
            "size_unit": HOSTILE[1],
            "cost_unit": HOSTILE[3],
            "input": {"a": 3},
            "stages": stages,
        },
    )
    page = report(remat, chain, "--budget", "90%")
    assert page.tags == report(remat, "zoo:f1").tags and page.data["ops"]["name"][: len(HOSTILE)] == HOSTILE
    assert page.data["graph"]["size_unit"] == HOSTILE[1] and f"{HOSTILE[0]}.abar" in page.data["tensors"]["name"]


def test_command_line_is_data(remat):
    path = remat.folder / "<script>alert(1)<" / "x.html"
    path.parent.mkdir()
    remat.ok("report", "zoo:f1", "-o", path)
    page = Page(path.read_text())
    assert page.data["command"] == ["remat", "report", "zoo:f1", "-o", str(path)]
    assert page.tags == report(remat, "zoo:f1").tags


def test_policy_allows_these_scripts_alone(remat):
    page = report(remat, "zoo:f1")

    def digest(text):
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "script-src": digest(page.text("script")),
        "style-src": digest(page.text("style")),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    attributes = [key for _, attributes in page.tags for key in attributes]
    assert not [key for key in attributes if key.startswith("on") or key in ("src", "style")]
    script = page.text("script")
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "DOMParser",
        "http://",
        "https://",
    ):
        assert script.count(word) == (1 if word == "http://" else 0)  # one name of a namespace
    assert "http://www.w3.org/2000/svg" in script


@plain_build
@pytest.mark.parametrize("name", sorted(path.name for path in GRAPHS.glob("*.json.gz")))
def test_small_pages(remat, name):
    path = remat.folder / "report.html"
    remat.ok("report", GRAPHS / name, "-o", path)
    n_ops = len(Page(path.read_text()).data["ops"]["name"])
    assert path.stat().st_size < (1_000_000 if n_ops <= 2000 else 500 * n_ops)


def test_large_page(remat):
    path = remat.folder / "report.html"
    remat.ok("report", "zoo:random-layered?n=50000&width=200&density=1", "-o", path)
    assert path.stat().st_size < 10_000_000
    assert len(Page(path.read_text()).data["ops"]["name"]) >= 50000


def test_a_budget_that_nothing_fits(remat):
    page = report(remat, GRAPHS / "vgg16.json.gz", "--budget", "30%", code=INFEASIBLE)
    check(page.data)
    assert (
        page.data["reports"][1]["outcome"] == "infeasible"
        and "no plan fits" in page.data["reports"][1]["error"]["reason"]
    )


def test_strategies_that_do_not_apply(remat):
    graph = "zoo:random-layered?n=30"
    remat.fails(
        APPLIES,
        "report",
        graph,
        "--budget",
        "90%",
        "--strategy",
        "rotor",
        "-o",
        remat.folder / "x.html",
        says=["rotor", "does not apply"],
    )
    assert not (remat.folder / "x.html").exists()
    data = report(remat, graph, "--budget", "100%", "--strategy", "rotor,auto").data
    assert [x["strategy"] for x in data["refused"]] == ["rotor"] and data["refused"][0]["reason"]
    assert [x["strategy"] for x in data["reports"]] == ["keep-all", "auto"]


def test_where_it_goes(remat):
    assert remat.ok("report", "zoo:f1", "-o", "-").startswith("<!DOCTYPE html>")
    path = remat.folder / "r.html"
    assert remat.ok("report", "zoo:f1", "-o", path).startswith("report written to ")
    assert [x["strategy"] for x in remat.json("report", "zoo:f1", "--budget", "100%", "-o", path)] == [
        "keep-all",
        "auto",
    ]
    first = path.read_bytes()
    remat.json("report", "zoo:f1", "--budget", "100%", "-o", path)
    assert re.sub(rb'"seconds":[^,]*', b"", first) == re.sub(rb'"seconds":[^,]*', b"", path.read_bytes())


def test_errors(remat, small):
    graph, path = remat.file("small.json", small), remat.folder / "r.html"
    remat.ok("plan", graph, "-o", remat.folder / "plan.json")
    plan = str(remat.folder / "plan.json")
    other = json.loads((remat.folder / "plan.json").read_text())
    other["schedule"] = other["schedule"][1:]
    wrong = remat.file("wrong.json", other)
    for code, args, words in [
        (USAGE, [graph], ["-o", "report.html"]),
        (USAGE, [graph, "-o", "r.html.gz"], ["-o", "not compressed"]),
        (USAGE, [graph, plan, "--budget", "90%", "-o", path], ["--budget", plan[:40]]),
        (USAGE, [graph, "--points", "4", "-o", path], ["--points", "--curve"]),
        (USAGE, [graph, "--strategy", "auto", "-o", path], ["--strategy", "--budget"]),
        (USAGE, [graph, "--curve", "--points", "1", "-o", path], ["--points", "1"]),
        (USAGE, [graph, "--budget", "90%", "--strategy", "auto,rotr", "-o", path], ["rotr", "rotor"]),
        (USAGE, ["-", "-", "-o", path], ["standard input"]),
        (USAGE, [graph, plan, plan, plan, "-o", path], ["too many"]),
        (USAGE, [graph, "--curve", "--from", "90%", "--to", "50%", "-o", path], ["--from", "above"]),
        (USAGE, ["chain:figure4", "--place", "-o", path], ["--place", "is a chain"]),
        (PLAN, ["chain:figure4", plan, "-o", path], ["plan.json"]),
        (PLAN, [graph, wrong, "-o", path], ["wrong.json"]),
        (PLAN, [graph, plan, wrong, "-o", path], ["wrong.json"]),
        (IO, [graph, "-o", remat.folder / "no" / "where.html"], ["where.html"]),
        (IO, [graph, "-o", "/dev/full"], ["/dev/full"]),
    ]:
        remat.fails(code, "report", *args, says=words)
    assert not path.exists()
