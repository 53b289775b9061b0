"""Pages of `remat report` in a browser: they load, answer, zoom, filter, compare; names stay text; large graphs stay
usable.
"""

import json
import re
import subprocess

import pytest

from conftest import GRAPHS, PROGRAM, ROOT

GPT2 = [GRAPHS / "gpt2.json.gz", "--budget", "25%", "--dce", "--replay-random"]
RESNET = [GRAPHS / "resnet50.json.gz", "--budget", "50%", "--dce", "--strategy", "auto,mincut", "--work", "300000"]


def text(page, selector):
    """As it is read: one space between words."""
    return re.sub(r"[ \n\t\u00a0]+", " ", page.locator(selector).inner_text().replace("\u202f", ""))


@pytest.fixture
def gpt2(report, open_page):
    return open_page(report(*GPT2))


# ---- what is on the page ----


def test_the_page_agrees_with_the_program(report, open_page):
    path = report(*GPT2)
    page = open_page(path)
    data = json.loads(page.evaluate("document.getElementById('data').textContent"))
    summary = data["reports"][1]
    assert page.evaluate("plans.every((plan) => plan.selfCheck())")
    assert page.evaluate("state.plan.peak") == summary["peak_bytes"]
    assert page.evaluate("state.plan.total[state.plan.peakStep]") == summary["peak_bytes"]
    assert page.evaluate("keepAll.peak") == summary["keep_all_peak_bytes"]
    assert page.evaluate("state.plan.again(() => 'all').map((x) => [x.ops, x.cost])") == [
        [summary["recomputed_ops"], summary["cost"] - summary["keep_all_cost"]]
    ]
    assert "fits 5.12 GiB" in text(page, "#head") and "sums up" not in text(page, "#head")
    assert "WRONG" not in text(page, "#about") and data["graph"]["digest"] in text(page, "#about")
    assert "remat report" in text(page, "#about") and page.title() == "gpt2 · remat report"


def test_memory_by_kind_is_the_program_s(report, open_page):
    """The live list of some steps, against the statements of `remat lower`."""
    page = open_page(report(*GPT2))
    memory = page.evaluate("Array.from(keepAll.total)")
    done = subprocess.run(
        [PROGRAM, "lower", GPT2[0], "--dce", "--replay-random", "--json"], capture_output=True, check=True
    )
    steps = [x["memory_bytes"] for x in json.loads(done.stdout) if x["statement"] == "compute"]
    assert memory == steps
    for step in (0, 100, 742, len(steps) - 1):
        live = page.evaluate("(t) => keepAll.liveAt(t).map((x) => x.bytes)", step)
        assert sum(live) == steps[step] and live == sorted(live, reverse=True)


def test_kinds_do_not_depend_on_where_the_backward_pass_begins(report, open_page):
    """mincut runs some ops of the backward pass first; what it saves is saved nevertheless."""
    page = open_page(report(*RESNET))
    for plan in (0, 1, 2):
        first, boundary = page.evaluate(
            """(i) => { const {op, boundary} = plans[i]; return [op.findIndex((x) => graph.ops.phase[x] === BACKWARD), boundary]; }""",
            plan,
        )
        saved, transient = page.evaluate("(i) => [1, 4].map((kind) => plans[i].memory[kind][plans[i].boundary])", plan)
        assert first <= boundary and 0 < boundary < page.evaluate("(i) => plans[i].n", plan) and saved > 2 * transient
    assert first < boundary  # of mincut


def test_saved_is_what_the_program_calls_saved(report, open_page):
    """Where the backward pass begins: to the byte, also for plans that change the order."""
    for args in (GPT2, RESNET):
        page = open_page(report(*args))
        for saved, said in page.evaluate(
            "plans.map((plan) => [plan.memory[1][plan.boundary], plan.report.saved_bytes])"
        ):
            assert saved == said > 0


def live_at(data, plan, step):
    """Names and bytes of what ops made and is in memory, the largest first; from the spans alone."""
    begin, found = 0, []
    for tensor, later, steps in zip(plan["spans"]["tensor"], plan["spans"]["later"], plan["spans"]["steps"]):
        begin += later
        if begin <= step < begin + steps:
            found.append((data["tensors"]["bytes"][tensor], data["tensors"]["name"][tensor]))
    return sorted(found, reverse=True)


def test_six_questions(report, open_page):
    """What a new user asks of the report of GPT-2 in a quarter of its memory; the answers are worked out here from
    the data.
    """
    page = open_page(report(*GPT2))
    data = json.loads(page.evaluate("document.getElementById('data').textContent"))
    answers, (keep_all, plan), (_, summary) = text(page, "#answers"), data["plans"], data["reports"]
    schedule, cost = plan["file"]["schedule"], data["ops"]["cost"]
    # 1: what filled the memory?
    assert "What filled the memory before? 20.5 GiB, most of it saved activations" in answers
    op = data["ops"]["name"][schedule[plan["file"]["peak_step"]]]
    assert f"at step {plan['file']['peak_step']} of {len(schedule)}: {op}" in answers  # 2: where is the peak now?
    size, name = live_at(data, plan, plan["file"]["peak_step"])[0]
    # 3: the largest tensor at the peak
    assert f"{name} {size / 2**30:.2f} GiB" in answers and f"made by {name}" in answers
    extra = summary["cost"] - summary["keep_all_cost"]
    # 4: what does it cost, and how good is it?
    assert f"{extra / 1e6:.1f} ms a step, {100 * summary['overhead']:.1f} %" in answers
    assert (
        f"at most {100 * summary['gap']:.2f} % above the best plan in its order" in answers
        and "Proved: the plan has a certificate" in answers
    )
    layers = {}
    for index, step in enumerate(schedule):
        if step in schedule[:index]:
            stage = sum(last < step for last in data["stages"])
            layers[stage] = layers.get(stage, 0) + cost[step]
    most = max(layers, key=layers.get)
    shown = re.search(r"Which layer is run again most\? stage (\d+), ends with (\S+)", answers)
    # 5
    assert (
        layers[int(shown.group(1)) - 1] == layers[most]
        and shown.group(2) == data["ops"]["name"][data["stages"][int(shown.group(1)) - 1]]
    )
    certificate, bound = plan["file"]["bound"]["certificate"], plan["file"]["bound"]["cost"]
    saved = summary["cost"] - (bound - 2**30 * sum(price for _, price in certificate["prices"]) / certificate["scale"])
    assert f"What would 1 GiB more save? at most {saved / 1e6:.2f} ms a step" in answers  # 6


def test_the_layer_that_runs_again_most_is_a_layer(report, open_page):
    """Ops without a layer in their name cost more here than those of any layer; they are no answer."""
    page = open_page(report("zoo:resnet50", "--budget", "50%", "--work", "1000000"))
    assert re.search(r"Which layer is run again most\? layer\d+_\d+ ", text(page, "#answers"))


def test_more_memory_is_not_underestimated(report, open_page):
    """A plan with one GiB more saves no more than the page calls the most."""
    page = open_page(report(*GPT2))
    most = page.evaluate("mostSaved(state.plan, 2 ** 30).most")
    cost, budget = page.evaluate("[state.plan.cost, state.plan.budget]")
    done = subprocess.run(
        [PROGRAM, "plan", *map(str, [GPT2[0], "--budget", budget + 2**30, "--dce", "--replay-random", "--json"])],
        capture_output=True,
        check=True,
    )
    assert 0 < cost - json.loads(done.stdout)["cost"] <= most


# ---- timeline ----


def canvas(page, which=1):
    return page.locator("#timeline canvas[role=slider]").nth(which)


def window(page, which=1):
    return page.evaluate(f"[views.timeline[{which}].from, views.timeline[{which}].to]")


def test_hover_tells_the_step(gpt2):
    box = canvas(gpt2)
    box.scroll_into_view_if_needed()
    box.hover(position={"x": 300, "y": 100})
    step = gpt2.evaluate("views.timeline[1].cursor")
    assert 0 < step < 718
    told = gpt2.locator("#timeline .readout").nth(1).inner_text()
    assert told.startswith(f"step {step} · ") and "in memory" in told
    assert gpt2.evaluate("state.plan.stepName(views.timeline[1].cursor)") in told
    assert box.get_attribute("aria-valuenow") == str(step) and "in memory" in box.get_attribute("aria-valuetext")


def test_pictures_echo_each_other(gpt2):
    canvas(gpt2).focus()
    gpt2.keyboard.press("p")
    gpt2.keyboard.press("ArrowLeft")
    op, echo = gpt2.evaluate("[state.plan.op[views.timeline[1].cursor], views.timeline[0].echo]")
    assert echo == gpt2.evaluate("(op) => keepAll.firstRun[op]", op) >= 0


def test_nothing_is_drawn_that_is_gone(gpt2):
    before = gpt2.evaluate("repaint() || repaints.length")
    for _ in range(3):
        gpt2.evaluate("choose(keepAll)")
        gpt2.evaluate("choose(plans[1])")
        gpt2.evaluate("views.timeline[1].pin(10)")
        gpt2.evaluate("views.timeline[1].pin(plans[1].peakStep)")
    assert gpt2.evaluate("repaint() || repaints.length") == before


def test_click_pins_the_list(gpt2):
    canvas(gpt2).scroll_into_view_if_needed()
    canvas(gpt2).click(position={"x": 300, "y": 100})
    step = gpt2.evaluate("views.timeline[1].pinned")
    assert f"step {step}," in text(gpt2, "#pinned caption")
    sizes = gpt2.evaluate("state.plan.liveAt(views.timeline[1].pinned).map((x) => bytes(x.bytes))")
    assert gpt2.locator("#pinned tbody tr td:nth-child(2)").all_inner_texts() == sizes[:15]
    gpt2.locator("#pinned button.more").click()
    assert gpt2.locator("#pinned tbody tr").count() == len(sizes)


def test_zoom_and_pan(gpt2):
    box = canvas(gpt2)
    box.scroll_into_view_if_needed()
    n = gpt2.evaluate("state.plan.n")
    box.hover(position={"x": 400, "y": 100})
    gpt2.mouse.wheel(0, -300)
    assert window(gpt2) == [0, n]  # it has no focus yet: the page scrolls
    box.focus()
    box.hover(position={"x": 400, "y": 100})
    under = gpt2.evaluate("views.timeline[1].cursor")
    gpt2.mouse.wheel(0, -400)
    gpt2.wait_for_function("views.timeline[1].to - views.timeline[1].from < state.plan.n / 2")
    first, last = window(gpt2)
    assert first < under < last
    area = box.bounding_box()
    gpt2.mouse.move(area["x"] + 600, area["y"] + 100)
    gpt2.mouse.down()
    gpt2.mouse.move(area["x"] + 500, area["y"] + 100, steps=4)
    gpt2.mouse.up()
    moved = window(gpt2)
    assert moved[0] > first and abs((moved[1] - moved[0]) - (last - first)) < 1e-6
    gpt2.locator("#timeline button[aria-label='Show all steps']").nth(1).click()
    assert window(gpt2) == [0, n]
    box.scroll_into_view_if_needed()
    area = box.bounding_box()
    gpt2.mouse.move(area["x"] + 300, area["y"] + 100)  # all is in view: a drag chooses a range
    gpt2.mouse.down()
    gpt2.mouse.move(area["x"] + 500, area["y"] + 100, steps=4)
    gpt2.mouse.up()
    first, last = window(gpt2)
    assert 0 < first < last < n and last - first < n / 4


def test_keyboard(gpt2):
    canvas(gpt2).focus()
    gpt2.keyboard.press("Home")
    assert gpt2.evaluate("views.timeline[1].cursor") == 0
    for _ in range(3):
        gpt2.keyboard.press("ArrowRight")
    assert gpt2.evaluate("views.timeline[1].cursor") == 3
    gpt2.keyboard.press("p")
    assert gpt2.evaluate("views.timeline[1].cursor") == gpt2.evaluate("state.plan.peakStep")
    for _ in range(5):
        gpt2.keyboard.press("+")
    first, last = window(gpt2)
    assert last - first < gpt2.evaluate("state.plan.n") / 20 and first <= gpt2.evaluate("state.plan.peakStep") < last
    gpt2.keyboard.press("End")
    assert window(gpt2)[1] == gpt2.evaluate("state.plan.n")
    gpt2.keyboard.press("Enter")
    assert f"step {gpt2.evaluate('state.plan.n') - 1}," in text(gpt2, "#pinned caption")
    gpt2.keyboard.press("0")
    assert window(gpt2) == [0, gpt2.evaluate("state.plan.n")]


def test_touch(report, open_page):
    page = open_page(report(*GPT2), width=400, height=800, touch=True)
    box = canvas(page)
    box.scroll_into_view_if_needed()
    box.tap(position={"x": 200, "y": 100})
    assert page.evaluate("views.timeline[1].pinned") == page.evaluate("views.timeline[1].cursor")
    pinch = """(canvas) => { const area = canvas.getBoundingClientRect();
      const send = (type, id, x) => canvas.dispatchEvent(new PointerEvent(type, {pointerId: id, pointerType: "touch", clientX: area.left + x, clientY: area.top + 100, bubbles: true}));
      canvas.setPointerCapture = () => {};
      send("pointerdown", 11, 180); send("pointerdown", 12, 220); send("pointermove", 12, 320); send("pointerup", 12, 320); send("pointerup", 11, 180); }"""
    box.evaluate(pinch)
    first, last = window(page)
    assert last - first < page.evaluate("state.plan.n") / 2


def test_down_sampling_keeps_the_extremes(gpt2):
    """Each column shows the highest of its steps and knows the lowest; zoomed in, each column is one step."""
    check = """() => { const view = views.timeline[1]; const columns = view.columns(); const n = columns.length; const per = (view.to - view.from) / n;
      const {total} = view.plan; let top = 0; let wrong = 0;
      columns.forEach((column, i) => { const first = Math.floor(view.from + i * per); const last = Math.max(first, Math.ceil(view.from + (i + 1) * per) - 1);
        const middle = Math.floor(view.from + (i + 0.5) * per); const part = per < 1 ? [total[middle]] : Array.from(total.slice(first, last + 1)); top = Math.max(top, total[column.step]);
        if (total[column.step] !== Math.max(...part) || column.least !== Math.min(...part)) wrong++; });
      return [wrong, top === Math.max(...total), Math.max(...columns.map((c) => total[c.step] - c.least))]; }"""
    assert gpt2.evaluate(check)[:2] == [0, True]
    gpt2.evaluate("views.timeline[1].show(700, 740)")
    assert gpt2.evaluate(check) == [0, True, 0]


def test_tables_behind_pictures(gpt2):
    gpt2.locator("#timeline details").nth(1).locator("summary").click()
    rows = gpt2.locator("#timeline details").nth(1).locator("tbody tr")
    rows.first.wait_for()
    assert rows.count() == 100
    assert gpt2.evaluate("bytes(state.plan.peak)") in rows.nth(35).inner_text()
    gpt2.evaluate("views.timeline[1].show(700, 720)")
    assert rows.count() == 20


# ---- tensors ----


def test_sort_and_filter(gpt2):
    table = gpt2.locator("#tensors .scroll table")
    status = gpt2.locator("#tensors [role=status]")
    assert table.locator("tbody tr").count() == 25
    assert gpt2.evaluate("bytes(Math.max(...graph.tensors.bytes))") in table.locator("tbody tr").first.inner_text()
    table.locator("th button", has_text="bytes").click()
    assert table.locator("th[aria-sort=ascending]").count() == 1
    gpt2.locator("#tensors select").select_option("again")
    again = gpt2.evaluate("state.plan.tensor.length - new Set(state.plan.tensor).size")
    assert again > 0 and "made again" in table.locator("tbody tr").first.inner_text()
    assert int(status.inner_text().split(" ")[0]) == gpt2.evaluate(
        "new Set([...state.plan.tensor.keys()].filter((i) => state.plan.spansOf[state.plan.tensor[i]][0] !== i).map((i) => state.plan.tensor[i])).size"
    )
    gpt2.locator("#tensors input[type=search]").fill("_softmax")
    assert all("_softmax" in row for row in table.locator("tbody tr").all_inner_texts())
    gpt2.locator("#tensors input[type=search]").fill("no such tensor")
    assert status.inner_text().startswith("0 tensors") and table.locator("tbody tr").count() == 0
    gpt2.locator("#tensors input[type=search]").fill("")
    gpt2.locator("#tensors select").select_option("")
    gpt2.locator("#tensors button.more").click()
    assert table.locator("tbody tr").count() == 125


def test_why(gpt2):
    gpt2.locator("#tensors select").select_option("again")
    gpt2.locator("#tensors .scroll tbody button").first.click()
    why = text(gpt2, "#why")
    assert "Not in memory from step" in why and "would have to give" in why and "Making it again costs" in why
    gpt2.locator("#tensors select").select_option("resident")
    gpt2.locator("#tensors .scroll tbody button").first.click()
    assert "It is resident (parameter)" in text(gpt2, "#why")
    gpt2.locator("#pinned tbody button").nth(4).click()
    assert "Kept. It lies idle longest" in text(gpt2, "#why")


# ---- compare, curve, addresses ----


def test_compare(report, open_page):
    page = open_page(report(*RESNET))
    assert "A: auto" in text(page, "#compare") and "B: mincut" in text(page, "#compare")
    differing = page.evaluate("""() => { const [a, b] = state.pair; let n = 0;
      for (let t = 0; t < graph.tensors.made; t++) if (a.fate(t).word !== b.fate(t).word) n++; return n; }""")
    assert differing > 0 and f"They treat {differing} tensor" in text(page, "#compare .lead")
    assert page.locator("#compare .differs").count() == min(20, differing)
    cost = page.evaluate("state.pair[1].cost > state.pair[0].cost")
    assert ("+" if cost else "−") in page.locator("#compare table tr", has_text="cost").first.inner_text()
    page.locator("#compare select").nth(1).select_option("0")
    assert "B: keep-all" in text(page, "#compare")


def test_plan_files_side_by_side(report, open_page, tmp_path):
    graph = GRAPHS / "resnet18.json.gz"
    for budget in (90, 70):
        subprocess.run(
            [PROGRAM, "plan", graph, "--budget", f"{budget}%", "--work", "50000", "-o", tmp_path / f"{budget}.json"],
            check=True,
            capture_output=True,
        )
    page = open_page(report(graph, tmp_path / "90.json", tmp_path / "70.json"))
    assert "90.json" in text(page, "#compare") and "70.json" in text(page, "#compare")
    page.locator("nav select").select_option(label=page.evaluate("plans[2].label"))
    assert "70.json" in text(page, "#head")


def test_curve(report, open_page):
    page = open_page(
        report(
            GRAPHS / "resnet50.json.gz",
            "--budget",
            "50%",
            "--dce",
            "--curve",
            "--points",
            "4",
            "--from",
            "45%",
            "--to",
            "54%",
            "--strategy",
            "auto,mincut",
            "--work",
            "200000",
        )
    )
    points = page.locator("#curve .point")
    assert points.count() == page.evaluate("plans.filter((plan) => plan !== keepAll && plan.isWithin).length") >= 6
    assert page.locator("#curve tbody tr").count() == page.evaluate("plans.length") - 1
    below = page.evaluate("""() => { const steps = provedSteps(plans.filter((plan) => plan !== keepAll));
      return plans.filter((plan) => plan.isWithin && plan !== keepAll && steps.some(([budget, share]) => plan.peak <= budget && overheadOf(plan) < share - 1e-12)).length; }""")
    assert below == 0  # no plan lies in the shaded region
    points.first.focus()
    page.keyboard.press("Enter")
    chosen = page.evaluate("state.plan.label")
    assert f"After: {chosen}".replace("\u00a0", " ") in text(page, "#timeline")
    points.last.click()
    assert page.evaluate("state.plan.label") != chosen
    page.locator("nav select").select_option("1")
    assert "Found: " in text(page, "#answers")


def test_chain(report, open_page):
    """The page of a chain is that of a graph, and has its operations."""
    args = ["chain:toy", "--budget", "9000", "--slots", "0", "--strategy", "rotor,periodic"]
    page = open_page(report(*args))
    done = subprocess.run([PROGRAM, "plan", *args[:-1], "rotor"], capture_output=True, check=True, text=True)
    sequence = done.stdout.strip().split("\n")[-1]
    assert sequence.startswith("Fck1 ") and sequence in text(page, "#operations")
    assert "3 stages of 7 run more than once" in text(page, "#head") and "in the chain model" in text(page, "#head")
    assert "fc2" in page.locator("#answers .card", has_text="run again most").inner_text()
    assert page.evaluate("plans.every((plan) => plan.selfCheck())") and "WRONG" not in text(page, "#about")
    page.locator("#operations canvas[role=slider]").focus()
    page.keyboard.press("Home")
    assert "Fck fc1" in text(page, "#operations .readout") and page.evaluate("views.operations.cursor") == 0
    page.locator("#operations summary").click()
    page.locator("#operations tbody tr").first.wait_for()
    rows = page.locator("#operations tbody tr").all_inner_texts()
    assert len(rows) == len(sequence.split()) and "forward, its input stays stored" in rows[0]
    assert "A: rotor" in text(page, "#compare") and "periodic" in text(page, "#compare")


def test_sizes_in_a_unit_of_their_own(report, open_page, tmp_path):
    chain = tmp_path / "chain.json"
    chain.write_text(
        json.dumps(
            {
                "format": "remat-chain",
                "version": 1,
                "name": "pages",
                "size_unit": "pages",
                "cost_unit": "ticks",
                "input": {"a": 2},
                "stages": [{"name": f"s{i}", "a": 2, "abar": 5, "tf": 3, "tb": 6} for i in range(6)],
            }
        )
    )
    page = open_page(report(chain, "--budget", "80%"))
    assert re.search(r"Peak memory \d+ pages", text(page, "#head")) and "ticks" in text(page, "#head")
    assert "B " not in text(page, "#timeline .readout >> nth=0").replace("B s", "") and "undefined" not in text(
        page, "body"
    )


def test_addresses(report, open_page):
    page = open_page(report(GRAPHS / "resnet18.json.gz", "--budget", "80%", "--dce", "--place", "--work", "50000"))
    box = page.locator("#addresses canvas[role=slider]")
    box.scroll_into_view_if_needed()
    box.hover(position={"x": 500, "y": 300})
    assert "step" in text(page, "#addresses .readout")
    overlaps = page.evaluate("""() => { const {tensor, begin, end, placement, graph} = state.plan; const sizes = graph.tensors.bytes; let n = 0;
      for (let i = 0; i < tensor.length; i++) for (let k = 0; k < i; k++) if (begin[i] <= end[k] && begin[k] <= end[i] &&
        placement.offsets[i] < placement.offsets[k] + sizes[tensor[k]] && placement.offsets[k] < placement.offsets[i] + sizes[tensor[i]]) n++;
      return n; }""")
    assert overlaps == 0
    page.locator("#addresses details summary").click()
    page.locator("#addresses tbody tr").first.wait_for()  # it is filled when it has opened
    assert page.locator("#addresses tbody tr").count() == 100


# ---- every size and every graph ----


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_fits_the_screen(report, open_page, width, scheme):
    page = open_page(report(*RESNET), width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width  # nothing scrolls sideways but tables
    painted = page.evaluate("""() => { const canvas = document.querySelector("#timeline canvas[role=slider]"); const c = canvas.getContext("2d");
      return new Set(c.getImageData(0, 0, canvas.width, canvas.height).data).size; }""")
    assert painted > 10
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 20, 24)"
    assert dark == (scheme == "dark")


@pytest.mark.parametrize(
    "args",
    [
        ["zoo:f1"],
        ["zoo:f1", "--curve"],
        ["zoo:mlp", "--budget", "60%"],
        [ROOT / "docs" / "five-ops.json", "--budget", "20"],
        ["zoo:random-layered?n=60", "--budget", "70%"],
        ["chain:figure4", "--budget", "15", "--slots", "0"],
        ["chain:resnet?n=30", "--budget", "30%", "--curve", "--strategy", "auto,periodic"],
        [GRAPHS / "vgg16.json.gz", "--budget", "30%"],
        [GRAPHS / "gpt2.json.gz", "--budget", "50%", "--fuse", "--work", "200000"],
        [GRAPHS / "gpt2.json.gz", "--budget", "40%", "--dce", "--offload", "50000GB/s", "--work", "300000"],
    ],
    ids=lambda args: str(args[0]).split("/")[-1],
)
def test_other_graphs(report, open_page, args):
    page = open_page(report(*args))
    assert "WRONG" not in text(page, "#about")
    for word in ("NaN", "undefined", "Infinity", "[object"):
        assert word not in text(page, "body")
    for tensor in range(min(40, page.evaluate("graph.nTensors"))):
        page.evaluate("(tensor) => explain(tensor, false)", tensor)
    assert "NaN" not in text(page, "#why")


@pytest.mark.parametrize(
    "nodes", [[], [{"name": "a", "in": [], "out": [0], "cost": 0}]], ids=["no op", "nothing costs anything"]
)
def test_almost_nothing(report, open_page, tmp_path, nodes):
    graph = tmp_path / "graph.json"
    graph.write_text(
        json.dumps(
            {
                "format": "remat-graph",
                "version": 1,
                "name": "least",
                "values": [{"name": "w", "size": 0, **({} if nodes else {"kind": "param"})}],
                "nodes": nodes,
                "outputs": [0],
            }
        )
    )
    page = open_page(report(graph, "--budget", "100%"))
    canvas(page, 0).focus()
    for key in ("ArrowRight", "+", "End", "Enter", "-", "0", "p"):
        page.keyboard.press(key)
    canvas(page, 0).click(position={"x": 200, "y": 100})
    page.locator("#timeline details summary").first.click()
    page.evaluate("explain(0, true)")
    for word in ("NaN", "undefined", "Infinity", "[object", "WRONG"):
        assert word not in text(page, "body")


def test_hostile_names(report, open_page, tmp_path):
    names = [
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<!--",
        "\u2028\u2029",
        "\"'`\\",
        "${alert(1)}",
        "&lt;b&gt;",
        "__proto__",
        "constructor",
        "toString",
        "javascript:alert(1)",
        "\u202eevil",
        "x" * 3000,
        " ",
        "<svg/onload=alert(1)>",
    ]
    n = len(names)
    values = [{"name": "w", "size": 4, "kind": "param"}] + [
        {"name": name, "size": 1000 + i, "dtype": name, "shape": [1]} for i, name in enumerate(names)
    ]
    nodes = [
        {
            "name": name,
            "op": name,
            "in": [i, 0] if i else [0],
            "out": [i + 1],
            "cost": 1,
            "phase": "forward" if i < n // 2 else "backward",
        }
        for i, name in enumerate(names)
    ]
    nodes[-1]["in"] = [n - 1, 1, 2, 3]
    graph = tmp_path / "hostile.json"
    graph.write_text(
        json.dumps(
            {
                "format": "remat-graph",
                "version": 1,
                "name": names[0] + names[1],
                "values": values,
                "nodes": nodes,
                "outputs": [n],
            }
        )
    )
    page = open_page(report(graph, "--budget", "75%"))
    elements = page.evaluate("[...new Set([...document.querySelectorAll('*')].map((x) => x.localName))]")
    assert not {"img", "iframe", "object", "embed", "link"} & set(elements) and page.locator("script").count() == 2
    assert page.locator("h1").evaluate("(x) => x.textContent") == names[0] + names[1]
    shown = page.locator("#tensors tbody button").evaluate_all("(list) => list.map((x) => x.textContent)")
    assert set(names) <= set(shown)
    for tensor in range(n + 1):
        page.evaluate("(tensor) => explain(tensor, true)", tensor)
    canvas(page).hover(position={"x": 300, "y": 100})
    page.locator("#timeline details summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == 1280


def test_policy_stops_foreign_script(report, open_page, tmp_path, browser):
    """Were there a hole, the policy of the page would stop what came through it."""
    raw = (
        report("zoo:f1")
        .read_text()
        .replace(
            '<main id="main">',
            "<main id=\"main\"><img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>",
        )
    )
    path = tmp_path / "broken.html"
    path.write_text(raw)
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    assert page.title() == "f1 · remat report"
    page.close()


def test_fifty_thousand_ops(report, open_page, capsys):
    path = report("zoo:random-layered?n=50000&width=200&density=1")
    size = path.stat().st_size
    assert size < 10_000_000
    page = open_page(path)
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)")
    with capsys.disabled():
        print(f"\n50,000 ops: {size / 1e6:.1f} MB, first paint after {paint} ms")
    assert page.evaluate("keepAll.n") >= 50000 and page.evaluate("keepAll.selfCheck()")
    canvas(page, 0).focus()
    page.keyboard.press("+")
    page.keyboard.press("p")
    assert window(page, 0)[1] - window(page, 0)[0] <= 25001
    page.locator("#tensors input[type=search]").fill("4999")
    assert page.locator("#tensors tbody tr").count() > 0


# ---- for everybody ----

EVERYTHING = [
    GRAPHS / "resnet18.json.gz",
    "--budget",
    "80%",
    "--dce",
    "--strategy",
    "auto,mincut",
    "--curve",
    "--points",
    "2",
    "--from",
    "80%",
    "--place",
    "--work",
    "50000",
]
TOY = ["chain:toy", "--budget", "9000", "--slots", "0", "--strategy", "rotor,periodic", "--curve", "--points", "3"]


def test_answers_are_on_the_first_screen(report, open_page):
    """Six questions and their answers, at 1280 x 900 and on a phone; there the rest is behind a button."""
    for width, height in ((1280, 900), (400, 800)):
        page = open_page(report(*GPT2), width=width, height=height)
        cards = page.locator("#answers .card")
        assert cards.count() == 6
        for i in range(6):
            box = cards.nth(i).locator(".answer").bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= height, i
        assert "above the best plan" in text(page, "#head")  # is it proved?
    assert not cards.nth(5).locator(".rest").is_visible()
    cards.nth(5).locator("button.unfold").focus()
    page.keyboard.press("Enter")
    assert "prices of the bound's certificate" in text(page, "#answers .rest >> nth=5")


def test_a_plan_that_misses_says_why_at_once(report, open_page):
    page = open_page(report(GRAPHS / "vgg16.json.gz", "--budget", "30%"))
    head, answers = text(page, "#head"), text(page, "#answers")
    assert (
        "proved: nothing fits 5.57 GiB" in head
        and "no plan fits 5.57 GiB" in head
        and "convolution_backward_11 needs 9.85 GiB" in head
    )
    assert "and it does not fit" in answers and "costs less than" not in answers


def test_every_control_is_reached_by_keyboard(report, open_page):
    """Tab stops at each of them, in the order of the page, and is seen to."""
    page = open_page(report(*TOY))
    wanted = page.evaluate("""() => { const list = [...document.querySelectorAll("a[href], button, select, input, summary, [role=slider], [role=button], .scroll")]
      .filter((x) => x.checkVisibility()); window.stops = [];
      document.addEventListener("focusin", ({target}) => window.stops.push([list.indexOf(target), getComputedStyle(target).outlineStyle !== "none"])); return list.length; }""")
    for _ in range(wanted):
        page.keyboard.press("Tab")
    assert page.evaluate("window.stops") == [[i, True] for i in range(wanted)] and wanted > 40


def test_a_table_behind_every_picture(report, open_page):
    for args in (EVERYTHING, TOY):
        page = open_page(report(*args))
        pictures = page.locator("canvas[role=slider]")
        assert pictures.count() >= 3
        for i in range(pictures.count()):
            behind = pictures.nth(i).locator("xpath=following-sibling::details")
            behind.locator("summary").click()
            behind.locator("tbody tr").first.wait_for()
            assert behind.locator("tbody tr").count() > 0 and behind.locator("caption").inner_text()
            assert pictures.nth(i).get_attribute("aria-label") and pictures.nth(i).get_attribute("aria-valuetext")
        for id_ in page.evaluate(
            "[...document.querySelectorAll('section')].filter((x) => x.childElementCount).map((x) => x.getAttribute('aria-labelledby'))"
        ):
            assert page.locator(f"#{id_}").count() == 1
    assert (
        page.locator("#curve svg[role=group] ~ *").count() == 0 and page.locator("#curve table tbody tr").count() == 8
    )
    for image in page.locator("canvas[role=img]").all():  # the bars of the answers: a list of the same numbers follows
        assert image.locator("xpath=following-sibling::ul[1]/li").count() > 1


def test_readable_without_colour(report, open_page):
    """Kinds differ in their patterns, strategies in their marks, and text has the contrast that WCAG asks for (4.5)."""
    for scheme in ("light", "dark"):
        page = open_page(report(*RESNET), scheme=scheme)
        marks = page.evaluate("""() => KINDS.map((kind) => { const c = swatch(kind).getContext("2d").getImageData(0, 0, 16, 16).data; const count = new Map();
          const pixels = Array.from({length: 256}, (_, i) => c.slice(4 * i, 4 * i + 3).join()); pixels.forEach((x) => count.set(x, (count.get(x) || 0) + 1));
          const ground = [...count].sort((a, b) => b[1] - a[1])[0][0]; return pixels.map((x) => (x === ground ? 0 : 1)).join(""); })""")
        assert len(set(marks)) == 6
        ratios = page.evaluate("""() => { const style = getComputedStyle(document.documentElement); const rgb = (key) => { const hex = style.getPropertyValue(`--${key}`).trim().slice(1);
            return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)); };
          const light = (key) => rgb(key).reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
          return [["ink", "paper"], ["ink", "card"], ["soft", "paper"], ["soft", "card"], ["soft", "hover"], ["accent", "card"], ["accent", "hover"], ["bad", "card"], ["good", "good-paper"],
            ["bad", "bad-paper"], ["accent", "accent-paper"], ["again-ink", "card"], ["moved-ink", "card"], ["ink", "accent-paper"]].map(([a, b]) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
            return [a, b, (x + 0.05) / (y + 0.05)]; }); }""")
        assert [(a, b, round(ratio, 2)) for a, b, ratio in ratios if ratio < 4.5] == []
    assert page.evaluate("new Set(SHAPES.map((shape) => shape(8, 8).outerHTML)).size === SHAPES.length")
