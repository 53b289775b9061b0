"use strict";
/* report.js: the other sections, and how the page is filled: each section has a function for the
 * plan that is shown; choosing another plan calls them anew. */

/* ---- timeline ---- */

function timelineCard(plan, heading, options) {
  const view = new Timeline(plan, {
    title:
      `Memory over the steps of ${plan.label}. Arrow keys move, plus and minus zoom, Enter pins`,
    ...options
  });
  const note = `peak ${bytes(plan.peak)} at step ${plan.peakStep}, ${plural(plan.n, "step")}`;
  const card = make("div", {className: "card"},
    make("div", {className: "tools"},
      make("h3", {}, heading, " ", make("span", {className: "soft small", text: note})),
      view.buttons()),
    view.element);
  return {view, card};
}

function showPinned(box, plan, t) {
  const live = plan.liveAt(t);
  const row =
    (x) => [x.tensor < 0 ? name(`workspace of ${plan.stepName(t)}`) : tensorButton(x.tensor),
      bytes(x.bytes), percent(plan.total[t] ? x.bytes / plan.total[t] : 0),
      make("span", {className: "legend"}, swatch(KINDS[x.kind]), kindWords(KINDS[x.kind])),
      x.tensor >= 0 && graph.isResident(x.tensor) ? "always" : `${x.begin} to ${x.end}`,
      x.tensor < 0 ? "" : graph.shape(x.tensor)];
  replace(box, make("h3", {text: "In memory at the pinned step"}),
    longTable(`${plan.label}, step ${t}, ${plan.stepName(t)}: ${plural(live.length, "tensor")}, ${
                bytes(plan.total[t])}, the largest first`,
      [
        ["tensor", false], ["bytes", true], ["of the memory", true], ["kind", false],
        ["steps", false], ["shape", false]
      ],
      live, row, 15));
}

/* The cursor of one picture marks in the other where the same op runs first. */
function echoEachOther(a, b) {
  const tell = (from, to) => (t) => {
    const op = from.plan.op[t];
    to.echo = op >= 0 ? to.plan.firstRun[op] : -1;
    to.paint();
  };
  a.onMove = tell(a, b);
  b.onMove = tell(b, a);
}

function fillTimeline() {
  const {plan} = state;
  const scale = state.sameScale ? Math.max(keepAll.peak, plan.peak) : 0;
  const pinned = make("div", {className: "card", id: "pinned"});
  const pin = (which) => (t) => showPinned(pinned, which, t);
  const options = (which) => ({onPin: pin(which), scale: scale || which.peak, budget: plan.budget});
  const cards = [timelineCard(keepAll, "Before: keep-all", options(keepAll))];
  if (plan !== keepAll) cards.push(timelineCard(plan, `After: ${plan.label}`, options(plan)));
  const same = make("label", {className: "small last"}, make("input", {
    type: "checkbox",
    checked: state.sameScale,
    onchange: () => {
      state.sameScale = !state.sameScale;
      fillTimeline();
      repaint();
    }
  }),
    " same scale");
  replace(section("timeline"), title("timeline", "Timeline"), make("p", {
    className: "lead",
    text:
      "Memory while each step runs, stacked by what it is for. Hover or use the arrow keys to read a step; click, or press Enter, to list what is in memory there."
  }),
    make("div", {className: "tools"}, legend(), plan !== keepAll ? same : null),
    cards.map(({card}) => card), make("p", {
      className: "hint",
      text:
        "Click a picture, then turn the wheel to zoom. Drag to pan, or to choose a range. Keys: ← → step, + − zoom, 0 all, P peak, Enter pin. A triangle marks where the op at the cursor of the other picture runs first."
    }),
    pinned);
  views.timeline = cards.map(({view}) => view);
  if (cards.length === 2) echoEachOther(...views.timeline);
  const last = cards[cards.length - 1].view;
  last.pinned = last.cursor;
  showPinned(pinned, last.plan, last.cursor);
}
const views = {}; /* what tests and other sections ask for */

/* ---- what runs again ---- */

/* Groups of ops with a bar each. */
function againTable(caption, word, groups) {
  const hasCosts = graph.ops.cost !== null;
  const weight = (group) => (hasCosts ? group.cost : group.runs);
  const most = groups.reduce((largest, group) => Math.max(largest, weight(group)), 0) || 1;
  const row = (group) => {
    const meter = make("span", {className: "meter", "aria-hidden": "true"});
    meter.style.width = `${(weight(group) / most) * 100}%`;
    return [
      name(group.key), count(group.ops), count(group.runs), hasCosts ? cost(group.cost, unit) : "?",
      make("span", {className: "gauge"}, meter)
    ];
  };
  return longTable(caption,
    [[word, false], ["ops", true], ["re-runs", true], ["cost of re-runs", true], ["", false]],
    groups, row, 12);
}

function fillAgain() {
  const groups = state.plan.again(graph.layerOf);
  if (!groups.length) {
    replace(section("again"));
    return;
  }
  const byLayer = againTable(`By ${graph.isChain ? "stage" : "layer"}, the dearest first`,
    graph.isChain ? "stage" : "layer", groups);
  const byTarget = () => againTable("By op, the dearest first", "op",
    state.plan.again((op) => graph.ops.target[op] || graph.opName(op)));
  replace(section("again"), title("again", "What runs again"), make("p", {
    className: "lead",
    text: graph.isChain ? `By ${graph.layerWord}.`
                        : `By ${graph.layerWord}; and by what the ops do.`
  }),
    graph.isChain ? byLayer : make("div", {className: "pair"}, byLayer, byTarget()));
}

/* ---- compare ---- */

function fillCompare() {
  const list = plans.filter((plan) => plan.role === "plan");
  if (list.length < 2) {
    replace(section("compare"));
    return;
  }
  state.pair = state.pair || [list[0], list[1]];
  const [a, b] = state.pair;
  const scale = Math.max(a.peak, b.peak);
  const cards =
    [a, b].map((plan, i) => timelineCard(plan, `${"AB"[i]}: ${plan.label}`,
                 {scale, budget: plan.budget, onPin: (t) => showPinned(pinned, plan, t)}));
  const pinned = make("div");
  views.compare = cards.map(({view}) => view);
  const choices = [0, 1].map(
    (i) => make("label", {className: "small"}, `${"AB"[i]} `, planSelect(state.pair[i], (plan) => {
      state.pair[i] = plan;
      fillCompare();
      repaint();
    })));
  const numbers =
    [
      ["peak", (p) => p.peak, bytes], ["cost", (p) => p.cost, (x) => cost(x, unit, 1)],
      ["steps", (p) => p.n, count],
      [`${graph.opWord}s run more than once`, (p) => p.report.recomputed_ops, count],
      ["kept from forward to backward", (p) => p.report.saved_bytes, bytes]
    ].filter(([, of]) => of(a) !== null || of(b) !== null)
      .map(([word, of, show]) => {
        const [p, q] = [of(a), of(b)];
        const known = p !== null && q !== null;
        return [
          word, show(p), show(q),
          known && p !== q ? `${q > p ? "+" : "−"}${show(Math.abs(q - p))}`
            : known ? "the same"
                    : "?"
        ];
      });
  const differing = [];
  for (let tensor = 0; tensor < graph.tensors.made; tensor++) {
    const [p, q] = [a.fate(tensor), b.fate(tensor)];
    if (p.word !== q.word) differing.push({tensor, p, q, weight: graph.tensors.bytes[tensor]});
  }
  differing.sort((u, v) => v.weight - u.weight || u.tensor - v.tensor);
  const row = ({tensor, p, q, weight}) => [tensorButton(tensor), bytes(weight), p.word,
    make("span", {className: "differs", text: q.word}), p.cost === null ? "?" : cost(p.cost, unit),
    q.cost === null ? "?" : cost(q.cost, unit)];
  replace(section("compare"), title("compare", "Compare"), make("p", {
    className: "lead",
    text: `Two plans side by side. They treat ${plural(differing.length, "tensor")} of ${
      count(graph.tensors.made)} in different ways.`
  }),
    make("div", {className: "tools"}, choices),
    make("div", {className: "pair"}, cards.map(({card}) => card)), pinned,
    table("Numbers", [["", false], ["A", true], ["B", true], ["B against A", true]], numbers),
    make("div", {className: "more"}),
    differing.length ? longTable("Tensors that differ, the largest first",
                         [
                           ["tensor", false], ["bytes", true], ["in A", false], ["in B", false],
                           ["costs in A", true], ["costs in B", true]
                         ],
                         differing, row, 20)
                     : null);
}

/* ---- addresses ---- */

function fillAddresses() {
  const {plan} = state;
  if (!plan.placement) {
    replace(section("addresses"));
    return;
  }
  const p = plan.placement;
  const wasted = p.arenaBytes - (plan.peak - graph.resident_bytes);
  const view =
    new Addresses(plan, {title: `Addresses over the steps of ${plan.label}`, onPin: () => {}});
  views.addresses = view;
  replace(section("addresses"), title("addresses", "Addresses"), make("p", {
    className: "lead",
    text:
      `One arena of ${bytes(p.arenaBytes)}, ${wasted > 0 ? bytes(wasted) : "not a byte"} more than
is in use at one time; offsets are multiples of ${count(p.align)}. Time runs across, addresses up.
Resident tensors lie elsewhere.`
  }),
    make("div", {className: "card"},
      make("div", {className: "tools"}, make("h3", {text: plan.label}), view.buttons()),
      view.element));
}

/* ---- about ---- */

function quoted(word) {
  return /^[\w./:=,%@+-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

function download(plan) {
  const link = make("a", {
    href:
      URL.createObjectURL(new Blob([`${JSON.stringify(plan.file)}\n`], {type: "application/json"})),
    download: "plan.json"
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function fillAbout() {
  const {plan} = state;
  const sizeWord = sizeUnit === null ? "bytes" : sizeUnit;
  const report = plan.report;
  const facts = [
    ["Command", make("code", {text: data.command.map(quoted).join(" ")})],
    ["Version", `remat ${data.remat}`],
    [graph.isChain ? "Chain" : "Graph", make("code", {text: `${graph.name}, ${graph.digest}`})],
    ["Costs", `${graph.cost_model}, in ${unit}`],
    [
      "Strategy",
      `${report.strategy}${report.seed === null ? "" : `, seed ${report.seed}`}, ended by: ${
        report.stopped}`
    ],
    [
      "Verdict",
      `${
        verdict(
          plan)[1]}. The plan was checked by the independent verifier before this page was written.`
    ],
    [
      "Bound",
      report.bound_cost === null
        ? "none"
        : `${cost(report.bound_cost, unit)} (${count(report.bound_cost)}) ${
            scopeWords(report.bound_scope)}, by ${report.bound_method}`
    ],
    [
      "Exact numbers",
      `peak ${count(plan.peak)} ${sizeWord}, cost ${count(report.cost)}, budget ${
        report.budget_bytes === null ? "none" : `${count(report.budget_bytes)} ${sizeWord}`}`
    ],
    [
      "This page",
      plans.every((each) => each.selfCheck())
        ? "what it draws sums up to the peaks that were verified"
        : "WRONG: what it draws does not sum up to the verified peak; please report it"
    ]
  ];
  for (const {strategy, reason} of data.refused) facts.push([`No plan of ${strategy}`, reason]);
  if (report.error) facts.push(["Why it does not fit", report.error.reason]);
  replace(section("about"), title("about", "About this report"),
    make("div", {className: "card"},
      make("dl", {className: "facts"},
        facts.flatMap(([term, text]) => [make("dt", {text: term}), make("dd", {}, text)])),
      make("p", {className: "more"},
        make("button",
          {type: "button", text: "Save the plan as a file", onclick: () => download(plan)}))));
}

/* ---- the page ---- */

/* What is seen first, and the rest. */
function fillTop() {
  for (const fill of [fillHead, fillAnswers, fillTimeline, fillNavigation]) fill();
  repaint();
}

function fillRest() {
  for (const fill of [fillOperations, fillAgain, fillTensors, fillCurve, fillCompare, fillAddresses,
         fillAbout, fillNavigation])
    fill();
  repaint();
}

function choose(plan) {
  state.plan = plan;
  fillTop();
  fillRest();
  section("timeline").scrollIntoView();
}

readPalette();
fillTop();
requestAnimationFrame(
  () => setTimeout(() => { /* after the first paint: a large graph has a long table */
    fillRest();
    document.documentElement.dataset.ready = "yes";
  }));
let resizing = 0;
window.addEventListener("resize", () => {
  cancelAnimationFrame(resizing);
  resizing = requestAnimationFrame(repaint);
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readPalette();
  repaint();
});
