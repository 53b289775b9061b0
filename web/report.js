"use strict";
/* report.js: the sections of the page. Each has a function that fills it for the plan that is shown; choosing another plan fills them anew. */

const data = JSON.parse(document.getElementById("data").textContent);
const graph = new Graph(data);
const plans = data.plans.map((entry, i) => new Plan(graph, entry, data.reports[i], i));
const keepAll = plans[0];
const unit = graph.unit;
const state = {plan: plans[1] || keepAll, tensor: -1, sameScale: true};
const FIRST_ROWS = 25, MORE_ROWS = 100; /* of the table of tensors */

const section = (id) => document.getElementById(id);
const title = (id, text) => make("h2", {id: `${id}-title`, text});
const kindWords = (kind) => KIND_WORDS[kind];
const scopeWords = (scope) => SCOPES[scope] || scope;

function legend() {
  const used = KINDS.filter((kind, k) => [keepAll, state.plan].some((plan) => plan.memory[k].some((amount) => amount > 0)));
  return make("ul", {className: "legend"}, used.map((kind) => make("li", {}, swatch(kind), KIND_NAMES[kind])));
}

/* ---- head ---- */

/* "optimal in any order", "gap at most 0.37 % in its order, 1.10 % in any". */
function gapWords(report) {
  if (!report.within_budget || report.gap === null) return report.within_budget ? "no bound is known" : "";
  const scope = scopeWords(report.bound_scope);
  if (report.any_order_bound_cost === report.cost) return "optimal: no plan in any order costs less";
  const own = report.outcome === "optimal" ? `optimal ${scope}` : `at most ${percent(report.gap)} above the best plan ${scope}`;
  return report.bound_scope === "any-order" || report.any_order_gap === null ? own : `${own}, ${percent(report.any_order_gap)} above the best in any order`;
}

function verdict(plan) {
  const report = plan.report;
  if (plan.role === "keep-all" || report.budget_bytes === null) return ["plain", "no budget"];
  if (report.within_budget) return ["good", `fits ${bytes(report.budget_bytes)}`];
  return ["bad", report.outcome === "infeasible" ? `proved: nothing fits ${bytes(report.budget_bytes)}` : `over the budget of ${bytes(report.budget_bytes)}`];
}

function figure(term, value, note) {
  return make("div", {className: "figure"}, make("dt", {text: term}), make("dd", {}, value, make("small", {text: note})));
}

function fillHead() {
  const {plan} = state;
  const report = plan.report;
  const [tone, words] = verdict(plan);
  const extra = report.cost - keepAll.cost;
  const share = keepAll.peak ? plan.peak / keepAll.peak : 0;
  document.title = `${graph.name} · remat report`;
  replace(section("head"),
    make("p", {className: "kicker", text: "Training memory, step by step"}),
    make("h1", {text: graph.name}),
    make("div", {className: "verdict"}, make("span", {className: `badge ${tone}`, text: words}), make("span", {text: plan.label}),
      make("span", {className: "soft", text: gapWords(report)})),
    make("dl", {className: "figures"},
      figure("Peak memory", bytes(plan.peak), plan === keepAll ? "with nothing run twice" : `${percent(share)} of ${bytes(keepAll.peak)}`),
      figure("Cost of a step", cost(report.cost, unit), plan === keepAll ? `costs: ${graph.cost_model}` : `${cost(keepAll.cost, unit)} and ${percent(keepAll.cost ? extra / keepAll.cost : 0)} more`),
      figure("Steps", count(plan.n), report.recomputed_ops ? `${plural(report.recomputed_ops, "op")} of ${count(graph.ops.name.length)} run more than once` : "every op runs once"),
      figure("Least memory", bytes(graph.need_bytes), `no plan needs less${graph.need_op ? `: ${graph.need_op}` : ""}`)));
}

function fillNavigation() {
  const links = [["answers", "Answers"], ["timeline", "Timeline"], ["again", "What runs again"], ["tensors", "Tensors"], ["curve", "Curve"], ["compare", "Compare"],
    ["addresses", "Addresses"], ["about", "About"]].filter(([id]) => section(id).childElementCount > 0);
  const choice = plans.length < 3 ? null : make("label", {className: "small"}, "Plan shown ", planSelect(state.plan, (plan) => choose(plan)));
  replace(section("sections"), links.map(([id, text]) => make("a", {href: `#${id}`, text})), choice);
}

function planSelect(chosen, onChange) {
  const select = make("select", {onchange: () => onChange(plans[Number(select.value)])},
    plans.map((plan) => make("option", {value: plan.index, text: plan.label, selected: plan === chosen})));
  return select;
}

/* ---- answers ---- */

function answer(question, text, ...rest) {
  return make("article", {className: "card"}, make("p", {className: "question", text: question}), make("p", {className: "answer"}, text), ...rest);
}

function stackBar(plan, t) {
  const box = make("canvas", {className: "canvas bar", role: "img", "aria-label": "Memory at the peak by kind; the list below has the numbers"});
  const paint = () => {
    const ratio = window.devicePixelRatio || 1;
    const width = box.clientWidth || 300;
    box.width = width * ratio;
    box.height = 18 * ratio;
    const c = box.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    let x = 0;
    KINDS.forEach((kind, k) => {
      const part = plan.total[t] ? (plan.memory[k][t] / plan.total[t]) * width : 0;
      c.fillStyle = palette.patterns[kind];
      c.fillRect(x, 0, part, 18);
      x += part;
    });
  };
  repaints.push(paint);
  requestAnimationFrame(paint);
  return box;
}

function peakAnswer(plan, question) {
  const t = plan.peakStep;
  const list = KINDS.map((kind, k) => [kind, plan.memory[k][t]]).filter(([, amount]) => amount > 0).sort((a, b) => b[1] - a[1]);
  return answer(question, `${bytes(plan.peak)}, most of it ${list.length ? kindWords(list[0][0]) : "nothing"}`, stackBar(plan, t),
    make("ul", {className: "legend"}, list.map(([kind, amount]) => make("li", {}, swatch(kind), make("b", {text: bytes(amount)}), ` ${kindWords(kind)}`))),
    make("p", {className: "soft small"}, `at step ${t} of ${plan.n}: `, name(plan.stepName(t))));
}

function tensorButton(tensor) {
  return make("button", {type: "button", className: "link", text: graph.tensorName(tensor), title: graph.tensorName(tensor), onclick: () => explain(tensor, true)});
}

function largestAnswer(plan) {
  const live = plan.liveAt(plan.peakStep);
  if (!live.length) return null;
  const [first] = live;
  const rest = live.slice(1, 4).filter((x) => x.tensor >= 0);
  const what = first.tensor < 0 ? "the workspace of the op" : tensorButton(first.tensor);
  const about = first.tensor < 0 ? "" : `${graph.shape(first.tensor)}, ${kindWords(KINDS[first.kind])}${graph.maker[first.tensor] >= 0 ? `, made by ${graph.opName(graph.maker[first.tensor])}` : ""}`;
  return answer("What is the largest tensor at the peak?", make("span", {}, what, ` ${bytes(first.bytes)}`), make("p", {className: "soft small", text: about}),
    rest.length ? make("p", {className: "small"}, "Then ", rest.flatMap((x, i) => [i ? ", " : "", tensorButton(x.tensor), ` ${bytes(x.bytes)}`])) : null);
}

function againAnswer(plan) {
  const groups = plan.again(graph.layerOf);
  if (!groups.length) return answer("Which layer is run again most?", "none: every op runs once");
  const total = groups.reduce((sum, group) => sum + group.cost, 0);
  const costWords = (group) => (graph.ops.cost === null ? plural(group.runs, "re-run") : `${cost(group.cost, unit)}, ${plural(group.runs, "re-run")}`);
  return answer("Which layer is run again most?", groups[0].key, make("p", {className: "small", text: `${costWords(groups[0])}${total ? ` of ${cost(total, unit)} in all` : ""}`}),
    make("p", {className: "soft small", text: groups.slice(1, 4).map((group) => `${group.key}: ${costWords(group)}`).join("; ")}));
}

/* One GiB, or a tenth of a small model's peak. */
function moreMemory() { return keepAll.peak >= 4 * KIB ** 3 ? KIB ** 3 : Math.max(1, Math.round(keepAll.peak / 10)); }

function moreAnswer(plan) {
  const more = moreMemory();
  const question = `What would ${bytes(more)} more save?`;
  if (plan.budget === null || plan === keepAll) return null;
  if (!plan.isWithin) return answer(question, "not known: this plan does not fit its budget");
  const proved = mostSaved(plan, more);
  const found = plans.filter((other) => other.peak <= plan.budget + more && other.cost < plan.cost && other.n).sort((a, b) => a.cost - b.cost)[0];
  const lines = [];
  if (found) lines.push(`Found: ${found.label} has a peak of ${bytes(found.peak)} and costs ${cost(found.cost, unit)}, ${percent((plan.cost - found.cost) / plan.cost)} less.`);
  if (proved) lines.push(`Proved: at most ${cost(proved.most, unit)} of ${cost(plan.cost, unit)}, for plans ${scopeWords(proved.scope)}. This follows from the prices of the bound's certificate: a byte more lowers the bound by their sum.`);
  if (!found && proved) lines.push("No plan of that size is in this report: --curve adds some.");
  const head = found ? `${cost(plan.cost - found.cost, unit)} a step` : proved ? `at most ${cost(proved.most, unit)} a step` : "not known: no prices, and no plan with more memory";
  return answer(question, head, lines.map((text) => make("p", {className: "soft small", text})));
}

function qualityAnswer(plan) {
  if (plan === keepAll) return null;
  const report = plan.report;
  const extra = report.cost - keepAll.cost;
  const head = extra > 0 ? `${cost(extra, unit)} a step, ${percent(extra / (keepAll.cost || 1))}` : "nothing";
  return answer("What does the plan cost, and how good is it?", head, make("p", {className: "small", text: gapWords(report) || "it does not fit the budget"}),
    make("p", {className: "soft small", text: report.bound_cost === null ? "" : `No plan ${scopeWords(report.bound_scope)} within the budget costs less than ${cost(report.bound_cost, unit, 2)}; this one costs ${cost(report.cost, unit, 2)}.`}));
}

function fillAnswers() {
  const {plan} = state;
  const cards = plan === keepAll ? [peakAnswer(keepAll, "What fills the memory?"), largestAnswer(keepAll)]
    : [peakAnswer(keepAll, "What filled the memory before?"), peakAnswer(plan, "What fills it now?"), largestAnswer(plan), qualityAnswer(plan), againAnswer(plan), moreAnswer(plan)];
  replace(section("answers"), title("answers", "Answers"), make("div", {className: "grid"}, cards));
}

/* ---- timeline ---- */

function timelineCard(plan, heading, options) {
  const view = new Timeline(plan, {title: `Memory over the steps of ${plan.label}. Arrow keys move, plus and minus zoom, Enter pins`, ...options});
  const note = `peak ${bytes(plan.peak)} at step ${plan.peakStep}, ${plural(plan.n, "step")}`;
  const card = make("div", {className: "card"}, make("div", {className: "tools"}, make("h3", {}, heading, " ", make("span", {className: "soft small", text: note})), view.buttons()), view.element);
  return {view, card};
}

function showPinned(box, plan, t) {
  const live = plan.liveAt(t);
  const row = (x) => [x.tensor < 0 ? name(`workspace of ${plan.stepName(t)}`) : tensorButton(x.tensor), bytes(x.bytes), percent(plan.total[t] ? x.bytes / plan.total[t] : 0),
    make("span", {className: "legend"}, swatch(KINDS[x.kind]), kindWords(KINDS[x.kind])), x.kind === RESIDENT ? "always" : `${x.begin} to ${x.end}`, x.tensor < 0 ? "" : graph.shape(x.tensor)];
  replace(box, make("h3", {text: "In memory at the pinned step"}),
    longTable(`${plan.label}, step ${t}, ${plan.stepName(t)}: ${plural(live.length, "tensor")}, ${bytes(plan.total[t])}, the largest first`,
      [["tensor", false], ["bytes", true], ["of the memory", true], ["kind", false], ["steps", false], ["shape", false]], live, row, 15));
}

function fillTimeline() {
  const {plan} = state;
  const scale = state.sameScale ? Math.max(keepAll.peak, plan.peak) : 0;
  const pinned = make("div", {className: "card", id: "pinned"});
  const pin = (which) => (t) => showPinned(pinned, which, t);
  const options = (which) => ({onPin: pin(which), scale: scale || which.peak, budget: plan.budget});
  const cards = [timelineCard(keepAll, "Before: keep-all", options(keepAll))];
  if (plan !== keepAll) cards.push(timelineCard(plan, `After: ${plan.label}`, options(plan)));
  const same = make("label", {className: "small last"}, make("input", {type: "checkbox", checked: state.sameScale, onchange: () => { state.sameScale = !state.sameScale; fillTimeline(); repaint(); }}), " same scale");
  replace(section("timeline"), title("timeline", "Timeline"),
    make("p", {className: "lead", text: "Memory while each step runs, stacked by what it is for. Hover or use the arrow keys to read a step; click, or press Enter, to list what is in memory there."}),
    make("div", {className: "tools"}, legend(), plan !== keepAll ? same : null), cards.map(({card}) => card),
    make("p", {className: "hint", text: "Click a picture, then turn the wheel to zoom. Drag to pan, or to choose a range. Keys: ← → step, + − zoom, 0 all, P peak, Enter pin."}), pinned);
  views.timeline = cards.map(({view}) => view);
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
    return [name(group.key), count(group.ops), count(group.runs), hasCosts ? cost(group.cost, unit) : "?", make("span", {className: "gauge"}, meter)];
  };
  return longTable(caption, [[word, false], ["ops", true], ["re-runs", true], ["cost of re-runs", true], ["", false]], groups, row, 12);
}

function fillAgain() {
  const groups = state.plan.again(graph.layerOf);
  if (!groups.length) { replace(section("again")); return; }
  const byTarget = state.plan.again((op) => graph.ops.target[op] || graph.opName(op));
  replace(section("again"), title("again", "What runs again"), make("p", {className: "lead", text: `By ${graph.layerWord}; and by what the ops do.`}),
    make("div", {className: "pair"}, againTable("By layer, the dearest first", "layer", groups), againTable("By op, the dearest first", "op", byTarget)));
}

/* ---- tensors ---- */

const TENSOR_COLUMNS = [
  {key: "name", title: "tensor", of: (x) => x.name, cell: (x) => tensorButton(x.tensor)},
  {key: "bytes", title: "bytes", isNumber: true, of: (x) => x.bytes, cell: (x) => bytes(x.bytes)},
  {key: "fate", title: "in the plan", of: (x) => x.fate.again * 1e6 + x.fate.steps, cell: (x) => make("span", {className: `fate ${x.fate.fetched ? "moved" : x.fate.again ? "again" : ""}`, text: x.fate.word})},
  {key: "saves", title: "away for", isNumber: true, of: (x) => x.bytes * x.fate.steps, cell: (x) => (x.fate.steps ? plural(x.fate.steps, "step") : "")},
  {key: "costs", title: "costs", isNumber: true, of: (x) => x.fate.cost || 0, cell: (x) => (x.fate.cost ? cost(x.fate.cost, unit) : "")},
  {key: "maker", title: "made by", of: (x) => x.maker, cell: (x) => name(x.maker)},
  {key: "readers", title: "read by", of: (x) => x.readers.length, cell: (x) => make("span", {className: "readers", title: x.readers.slice(0, 20).map((op) => graph.opName(op)).join(", ")}, readersText(x.readers))},
  {key: "before", title: "keep-all steps", isNumber: true, of: (x) => x.before[0], cell: (x) => range(x.before)},
  {key: "after", title: "plan steps", isNumber: true, of: (x) => x.after[0], cell: (x) => range(x.after)},
];

function range([first, last]) { return first < 0 ? "always" : `${first} to ${last}`; }

function readersText(readers) {
  if (!readers.length) return "nobody";
  return readers.length === 1 ? graph.opName(readers[0]) : `${graph.opName(readers[0])} and ${plural(readers.length - 1, "other")}`;
}

function lifeOf(plan, tensor) {
  const spans = plan.spansOf[tensor];
  return spans.length ? [plan.begin[spans[0]], plan.end[spans[spans.length - 1]]] : [-1, -1];
}

function tensorRows(plan) {
  return Array.from({length: graph.nTensors}, (_, tensor) => ({
    tensor, name: graph.tensorName(tensor), bytes: graph.tensors.bytes[tensor], fate: plan.fate(tensor), readers: graph.readers[tensor],
    maker: graph.isResident(tensor) ? graph.kindWord(tensor) : graph.opName(graph.maker[tensor]), before: lifeOf(keepAll, tensor), after: lifeOf(plan, tensor),
  }));
}

class TensorTable {
  constructor(plan) {
    this.rows = tensorRows(plan);
    this.sort = {key: "bytes", falling: true};
    this.limit = FIRST_ROWS;
    this.search = make("input", {type: "search", placeholder: "name of a tensor or an op", "aria-label": "Filter by name", oninput: () => { this.limit = FIRST_ROWS; this.fill(); }});
    this.fates = make("select", {"aria-label": "Filter by fate", onchange: () => { this.limit = FIRST_ROWS; this.fill(); }},
      [["", "all tensors"], ["again", "made again"], ["moved", "offloaded"], ["kept", "kept"], ["resident", "resident"]].map(([value, text]) => make("option", {value, text})));
    this.status = make("span", {className: "soft small", role: "status"});
    this.box = make("div");
    this.element = make("div", {}, make("div", {className: "tools"}, this.search, this.fates, this.status), this.box);
    this.fill();
  }

  isShown(row) {
    const word = this.search.value.toLowerCase();
    const fate = this.fates.value;
    if (word && !row.name.toLowerCase().includes(word) && !row.maker.toLowerCase().includes(word)) return false;
    if (fate === "again") return row.fate.again > 0;
    if (fate === "moved") return row.fate.fetched > 0;
    return !fate || row.fate.word === fate;
  }

  fill() {
    const column = TENSOR_COLUMNS.find(({key}) => key === this.sort.key);
    const sign = this.sort.falling ? -1 : 1;
    const shown = this.rows.filter((row) => this.isShown(row));
    const keys = new Map(shown.map((row) => [row, column.of(row)]));
    shown.sort((a, b) => { const [p, q] = [keys.get(a), keys.get(b)]; return sign * (p < q ? -1 : p > q ? 1 : 0) || a.tensor - b.tensor; });
    const sum = shown.reduce((total, row) => total + row.bytes, 0);
    this.status.textContent = `${plural(shown.length, "tensor")}, ${bytes(sum)} together`;
    const heads = TENSOR_COLUMNS.map(({key, title: text, isNumber}) => make("th", {scope: "col", className: isNumber ? "number" : "",
      "aria-sort": key === this.sort.key ? (this.sort.falling ? "descending" : "ascending") : null},
    make("button", {type: "button", text: text + (key === this.sort.key ? (this.sort.falling ? " ▾" : " ▴") : ""), onclick: () => this.sortBy(key)})));
    const body = shown.slice(0, this.limit).map((row) => make("tr", {className: row.tensor === state.tensor ? "chosen" : ""},
      TENSOR_COLUMNS.map(({cell, isNumber}) => make("td", {className: isNumber ? "number" : ""}, cell(row)))));
    const left = shown.length - body.length;
    replace(this.box, make("div", {className: "scroll", tabIndex: 0, role: "region", "aria-label": "Tensors"},
      make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, body))),
    left > 0 ? make("button", {type: "button", className: "more", text: `Show ${count(Math.min(left, MORE_ROWS))} of ${count(left)} more`, onclick: () => { this.limit += MORE_ROWS; this.fill(); }}) : null);
  }

  sortBy(key) {
    const column = TENSOR_COLUMNS.find((x) => x.key === key);
    this.sort = {key, falling: this.sort.key === key ? !this.sort.falling : Boolean(column.isNumber) || key === "fate"};
    this.fill();
    const at = TENSOR_COLUMNS.indexOf(column);
    this.box.querySelectorAll("th button")[at].focus();
  }
}

function fillTensors() {
  const why = make("div", {id: "why", "aria-live": "polite"});
  views.tensors = new TensorTable(state.plan);
  replace(section("tensors"), title("tensors", "Tensors"),
    make("p", {className: "lead", text: "Every storage of the step. “Away for” is what the plan saves: for how many steps its bytes are free between two uses; it sorts by bytes times steps. “Costs” is what running the op again costs; an op that makes several tensors is counted at each. Choose a tensor to see why."}),
    why, views.tensors.element);
  if (state.tensor >= 0) explain(state.tensor, false);
}

/* ---- why ---- */

/* What the certificate says of the bytes of a tensor between two steps. */
function priceWords(plan, tensor, from, to) {
  const prices = plan.prices;
  if (!prices) return ["The plan has no certificate with prices."];
  const size = graph.tensors.bytes[tensor];
  const met = prices.at.filter(({step}) => step > from && step < to);
  const worth = met.reduce((sum, {price}) => sum + price * size, 0);
  const scope = scopeWords(prices.scope);
  if (!met.length) return [`The bound (${scope}) puts no price on memory between these steps: it is scarce elsewhere.`];
  const dearest = met.reduce((a, b) => (b.price > a.price ? b : a));
  return [`The bound (${scope}) prices memory at ${plural(met.length, "step")} in between, most at step ${dearest.step} (`, name(graph.opName(dearest.op)),
    `), ${cost(dearest.price * KIB ** 3, unit)} for a GiB. To keep these ${bytes(size)} takes room worth ${cost(worth, unit)}.`];
}

/* A time in which the tensor is not in memory: what would have to give. */
function holeWords(plan, tensor, from, to) {
  const size = graph.tensors.bytes[tensor];
  const limit = plan.budget === null ? plan.peak : plan.budget;
  let tight = from + 1;
  for (let t = from + 1; t < to; t++) if (plan.total[t] > plan.total[tight]) tight = t;
  const room = limit - plan.total[tight];
  const each = graph.opCost(graph.maker[tensor]);
  const used = new Set(plan.op[tight] >= 0 ? [...graph.ops.reads[plan.op[tight]], ...graph.ops.makes[plan.op[tight]]] : []);
  const others = plan.liveAt(tight).filter((x) => x.tensor >= 0 && x.kind !== RESIDENT && !used.has(x.tensor)).slice(0, 5);
  const lines = [make("p", {}, `Not in memory from step ${from + 1} to ${to - 1}. To keep it takes ${bytes(size)} at each of these ${plural(to - from - 1, "step")}. The fullest is step ${tight} (`,
    name(plan.stepName(tight)), room >= size ? `), with ${bytes(room)} to spare: there is room. Other plans may use it better.` : `), with ${bytes(Math.max(0, room))} to spare: ${bytes(size - Math.max(0, room))} of something else would have to give.`)];
  if (room < size && others.length)
    lines.push(make("p", {}, "The largest there that the step does not use: ", others.flatMap((x, i) => [i ? ", " : "", tensorButton(x.tensor), ` ${bytes(x.bytes)}`]), "."));
  lines.push(make("p", {}, priceWords(plan, tensor, from, to), each === null ? "" : ` Making it again costs ${cost(each, unit)} (one run of `, each === null ? "" : name(graph.opName(graph.maker[tensor])), each === null ? "" : ")."));
  return lines;
}

/* The longest time in which a tensor that is kept is not used. */
function idleWords(plan, tensor) {
  const uses = plan.uses(tensor);
  let [from, to] = [0, 0];
  for (let i = 1; i < uses.length; i++) if (uses[i] - uses[i - 1] > to - from) [from, to] = [uses[i - 1], uses[i]];
  if (to - from < 2) return [make("p", {text: "It is used at every step of its life, or directly after it was made: there is nothing to save."})];
  const each = graph.opCost(graph.maker[tensor]);
  return [make("p", {}, `Kept. It lies idle longest from step ${from + 1} to ${to - 1}. To drop it there would free ${bytes(graph.tensors.bytes[tensor])} for ${plural(to - from - 1, "step")}, and `,
    name(graph.opName(graph.maker[tensor])), each === null ? " would have to run again." : ` would have to run again, for ${cost(each, unit)} or more: what it reads must be there.`),
  make("p", {}, priceWords(plan, tensor, from, to))];
}

function whyWords(plan, tensor) {
  if (graph.isResident(tensor)) return [make("p", {text: `It is resident (${graph.kindWord(tensor)}): in memory before the first step, and never freed.`})];
  const spans = plan.spansOf[tensor];
  const lines = [];
  for (let i = 1; i < spans.length; i++) {
    const [from, to] = [plan.end[spans[i - 1]], plan.begin[spans[i]]];
    if (to - from > 1 && lines.length < 6) lines.push(...holeWords(plan, tensor, from, to));
  }
  return lines.length ? lines : idleWords(plan, tensor);
}

function explain(tensor, go) {
  const {plan} = state;
  state.tensor = tensor;
  const box = document.getElementById("why");
  const fate = plan.fate(tensor);
  const maker = graph.maker[tensor];
  const facts = `${bytes(graph.tensors.bytes[tensor])}, ${graph.shape(tensor)}, ${fate.word}${graph.outputs.has(tensor) ? ", an output of the graph" : ""}`;
  replace(box, make("div", {className: "card why"}, make("h3", {}, "Why: ", name(graph.tensorName(tensor))), make("p", {className: "soft small", text: facts}),
    maker >= 0 ? make("p", {className: "soft small"}, "Made by ", name(graph.opName(maker)), ` (${graph.ops.target[maker] || "op"}), read by `, readersText(graph.readers[tensor]), ".") : null,
    whyWords(plan, tensor)), make("div", {className: "more"}));
  if (go) { views.tensors.fill(); box.scrollIntoView({block: "center"}); }
}

/* ---- curve ---- */

const SHAPES = [
  (x, y) => draw("circle", {cx: x, cy: y, r: 5.5}), (x, y) => draw("rect", {x: x - 5, y: y - 5, width: 10, height: 10}),
  (x, y) => draw("path", {d: `M${x} ${y - 6.5}L${x + 6} ${y + 5}L${x - 6} ${y + 5}Z`}), (x, y) => draw("path", {d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z`}),
  (x, y) => draw("path", {d: `M${x} ${y + 6.5}L${x + 6} ${y - 5}L${x - 6} ${y - 5}Z`}),
];
const overheadOf = (plan) => (keepAll.cost ? plan.cost / keepAll.cost - 1 : 0);

/* The proved bound as overhead at each budget, falling: a bound at a budget holds at every smaller one. */
function provedSteps(list) {
  const points = list.filter((plan) => plan.budget !== null && plan.report.any_order_bound_cost !== null)
    .map((plan) => [plan.budget, keepAll.cost ? plan.report.any_order_bound_cost / keepAll.cost - 1 : 0]).sort((a, b) => b[0] - a[0]);
  let best = 0;
  return points.map(([budget, share]) => { best = Math.max(best, share); return [budget, best]; }).reverse();
}

/* Where budgets and overheads lie in a picture of that width. Where some plans cost more than twice as much, the others decide the height; those stand at the
 * upper edge, with their number. */
function curveScale(fitting, width) {
  const box = {width, height: 340, left: 64, right: 16, top: 24, bottom: 44};
  const shares = fitting.map(overheadOf);
  const usual = shares.filter((share) => share <= 1);
  const low = Math.min(graph.need_bytes, ...fitting.map((plan) => plan.budget));
  const high = Math.max(keepAll.peak, ...fitting.map((plan) => plan.budget));
  const margin = (high - low || 1) * 0.03;
  const tall = Math.max(0.01, ...(usual.some((share) => share > 0) ? usual : shares)) * 1.15;
  const across = (budget) => box.left + ((budget - low + margin) / (high - low + margin || 1)) * (width - box.left - box.right);
  const up = (share) => box.height - box.bottom - (Math.min(share, tall) / tall) * (box.height - box.top - box.bottom);
  return {...box, low: low - margin, high, tall, x: across, y: up};
}

/* The region that no plan can enter: below the bound, and left of what one op needs. */
function curveRegion(scale, list) {
  const {x, y, tall, low} = scale;
  const steps = provedSteps(list).filter(([budget]) => budget >= graph.need_bytes);
  let path = `M${x(low)} ${y(0)}V${y(tall)}H${x(graph.need_bytes)}`;
  for (const [budget, share] of steps) path += `V${y(share)}H${x(budget)}`;
  const region = draw("path", {d: `${path}V${y(0)}Z`});
  region.style.fill = "var(--shade)";
  return region;
}

function curveAxes(scale) {
  const {x, y, tall, low, high, left, right, width, height, bottom} = scale;
  const parts = [];
  for (let i = 0; i <= 4; i++) {
    const at = (tall * i) / 4;
    const line = draw("line", {x1: left, x2: width - right, y1: y(at), y2: y(at)});
    line.style.stroke = "var(--line)";
    parts.push(line, draw("text", {x: left - 8, y: y(at) + 4, "text-anchor": "end", text: `+${percent(at)}`}));
  }
  const ticks = width < 600 ? 2 : 4;
  for (let i = 0; i <= ticks; i++) {
    const budget = low + ((high - low) * i) / ticks;
    parts.push(draw("text", {x: x(budget), y: height - bottom + 18, "text-anchor": i === 0 ? "start" : i === ticks ? "end" : "middle", text: bytes(Math.round(budget))}));
  }
  parts.push(draw("text", {x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle", text: "budget"}), draw("text", {x: left, y: 12, text: "overhead"}));
  return parts;
}

const CURVE_COLOURS = ["--saved", "--made-again", "--gradient", "--transient", "--workspace"];

/* A strategy: its points, and the line that falls from one to the next. */
function curveLine(scale, line, k) {
  const {x, y, tall, top} = scale;
  const colour = `var(${CURVE_COLOURS[k % CURVE_COLOURS.length]})`;
  const trace = draw("path", {d: line.map((plan, i) => `${i ? `H${x(plan.budget)}V` : `M${x(plan.budget)} `}${y(overheadOf(plan))}`).join(""), fill: "none", "stroke-width": 1.5});
  trace.style.stroke = colour;
  const marks = line.flatMap((plan) => {
    const share = overheadOf(plan);
    const label = `${plan.label}: ${percent(share)} overhead, peak ${bytes(plan.peak)}`;
    const mark = SHAPES[k % SHAPES.length](x(plan.budget), y(share));
    furnish(mark, {class: `point${plan === state.plan ? " chosen" : ""}`, tabindex: 0, role: "button", "aria-label": `Show ${label}`, onclick: () => choose(plan),
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(plan); } }}, [draw("title", {text: label})]);
    mark.style.fill = colour;
    return share > tall ? [mark, draw("text", {x: x(plan.budget) + 10, y: top + 18, text: `↑ ${percent(share)}`})] : [mark];
  });
  return [trace, ...marks];
}

function curveRows(list) {
  const row = (plan) => [make("button", {type: "button", className: "link", text: plan.report.strategy, onclick: () => choose(plan)}), bytes(plan.budget), bytes(plan.peak),
    plan.isWithin ? `+${percent(overheadOf(plan))}` : "–", plan.isWithin ? plan.report.outcome : plan.report.outcome === "infeasible" ? "proved: nothing fits" : "not found",
    plan.report.any_order_bound_cost === null ? "" : cost(plan.report.any_order_bound_cost, unit, 1), gapWords(plan.report)];
  return table("The points", [["strategy", false], ["budget", true], ["peak", true], ["overhead", true], ["outcome", false], ["no plan below", true], ["how good", false]], list.map(row));
}

function fillCurve() {
  if (!plans.some((plan) => plan.role === "curve")) { replace(section("curve")); return; }
  const list = plans.filter((plan) => plan !== keepAll && plan.budget !== null).sort((a, b) => a.budget - b.budget);
  const fitting = list.filter((plan) => plan.isWithin);
  const names = [...new Set(list.map((plan) => plan.report.strategy))];
  const key = make("ul", {className: "legend"}, names.map((strategy, k) => {
    const mark = SHAPES[k % SHAPES.length](8, 8);
    mark.style.fill = `var(${CURVE_COLOURS[k % CURVE_COLOURS.length]})`;
    return make("li", {}, draw("svg", {width: 16, height: 16, "aria-hidden": "true"}, mark), strategy);
  }), make("li", {}, make("span", {className: "swatch shaded"}), "proved: no plan can be here"));
  const box = make("div");
  const paint = () => {
    const scale = curveScale(fitting, Math.max(300, box.clientWidth));
    const picture = draw("svg", {width: scale.width, height: scale.height, role: "group", "aria-label": "Overhead against budget. The table below has the numbers"},
      curveRegion(scale, list), curveAxes(scale), names.flatMap((strategy, k) => curveLine(scale, fitting.filter((plan) => plan.report.strategy === strategy), k)));
    replace(box, picture);
  };
  repaints.push(paint);
  replace(section("curve"), title("curve", "Curve"), make("p", {className: "lead", text: "What each budget costs. A point is a plan; choose one to see its timeline. No plan can lie in the shaded region: below the bound, or in less memory than one op needs."}),
    make("div", {className: "card"}, key, box), make("div", {className: "more"}), curveRows(list));
}

/* ---- compare ---- */

function fillCompare() {
  const list = plans.filter((plan) => plan.role === "plan");
  if (list.length < 2) { replace(section("compare")); return; }
  state.pair = state.pair || [list[0], list[1]];
  const [a, b] = state.pair;
  const scale = Math.max(a.peak, b.peak);
  const cards = [a, b].map((plan, i) => timelineCard(plan, `${"AB"[i]}: ${plan.label}`, {scale, budget: plan.budget, onPin: (t) => showPinned(pinned, plan, t)}));
  const pinned = make("div");
  views.compare = cards.map(({view}) => view);
  const choices = [0, 1].map((i) => make("label", {className: "small"}, `${"AB"[i]} `, planSelect(state.pair[i], (plan) => { state.pair[i] = plan; fillCompare(); repaint(); })));
  const numbers = [["peak", (p) => p.peak, bytes], ["cost", (p) => p.cost, (x) => cost(x, unit)], ["steps", (p) => p.n, count], ["ops run more than once", (p) => p.report.recomputed_ops, count],
    ["kept from forward to backward", (p) => p.report.saved_bytes, bytes]]
    .map(([word, of, show]) => { const [p, q] = [of(a), of(b)]; const known = p !== null && q !== null;
      return [word, show(p), show(q), known && p !== q ? `${q > p ? "+" : "−"}${show(Math.abs(q - p))}` : known ? "the same" : "?"]; });
  const differing = [];
  for (let tensor = 0; tensor < graph.tensors.made; tensor++) {
    const [p, q] = [a.fate(tensor), b.fate(tensor)];
    if (p.word !== q.word) differing.push({tensor, p, q, weight: graph.tensors.bytes[tensor]});
  }
  differing.sort((u, v) => v.weight - u.weight || u.tensor - v.tensor);
  const row = ({tensor, p, q, weight}) => [tensorButton(tensor), bytes(weight), p.word, make("span", {className: "differs", text: q.word}),
    p.cost === null ? "?" : cost(p.cost, unit), q.cost === null ? "?" : cost(q.cost, unit)];
  replace(section("compare"), title("compare", "Compare"), make("p", {className: "lead", text: `Two plans side by side. They treat ${plural(differing.length, "tensor")} of ${count(graph.tensors.made)} in different ways.`}),
    make("div", {className: "tools"}, choices), make("div", {className: "pair"}, cards.map(({card}) => card)), pinned,
    table("Numbers", [["", false], ["A", true], ["B", true], ["B against A", true]], numbers),
    make("div", {className: "more"}),
    differing.length ? longTable("Tensors that differ, the largest first",
      [["tensor", false], ["bytes", true], ["in A", false], ["in B", false], ["costs in A", true], ["costs in B", true]], differing, row, 20) : null);
}

/* ---- addresses ---- */

function fillAddresses() {
  const {plan} = state;
  if (!plan.placement) { replace(section("addresses")); return; }
  const p = plan.placement;
  const view = new Addresses(plan, {title: `Addresses over the steps of ${plan.label}`, onPin: () => {}});
  views.addresses = view;
  replace(section("addresses"), title("addresses", "Addresses"),
    make("p", {className: "lead", text: `One arena of ${bytes(p.arena_bytes)}, ${bytes(p.arena_bytes - p.load_bytes)} more than is in use at most (${p.outcome}); offsets are multiples of ${count(p.align)}. Time runs across, addresses up. Resident tensors lie elsewhere.`}),
    make("div", {className: "card"}, make("div", {className: "tools"}, make("h3", {text: plan.label}), view.buttons()), view.element));
}

/* ---- about ---- */

function quoted(word) { return /^[\w./:=,%@+-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`; }

function download(plan) {
  const link = make("a", {href: URL.createObjectURL(new Blob([`${JSON.stringify(plan.file)}\n`], {type: "application/json"})), download: "plan.json"});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function fillAbout() {
  const {plan} = state;
  const report = plan.report;
  const facts = [["Command", make("code", {text: data.command.map(quoted).join(" ")})], ["Version", `remat ${data.remat}`], ["Graph", make("code", {text: `${graph.name}, ${graph.digest}`})],
    ["Costs", `${graph.cost_model}, in ${unit}`], ["Strategy", `${report.strategy}${report.seed === null ? "" : `, seed ${report.seed}`}, ended by: ${report.stopped}`],
    ["Verdict", `${verdict(plan)[1]}. The plan was checked by the independent verifier before this page was written.`],
    ["Bound", report.bound_cost === null ? "none" : `${cost(report.bound_cost, unit)} (${count(report.bound_cost)}) ${scopeWords(report.bound_scope)}, by ${report.bound_method}`],
    ["Exact numbers", `peak ${count(plan.peak)} bytes, cost ${count(report.cost)}, budget ${report.budget_bytes === null ? "none" : `${count(report.budget_bytes)} bytes`}`],
    ["This page", plans.every((each) => each.selfCheck()) ? "what it draws sums up to the peaks that were verified" : "WRONG: what it draws does not sum up to the verified peak; please report it"]];
  for (const {strategy, reason} of data.refused) facts.push([`No plan of ${strategy}`, reason]);
  if (report.error) facts.push(["Why it does not fit", report.error.reason]);
  replace(section("about"), title("about", "About this report"), make("div", {className: "card"}, make("dl", {className: "facts"}, facts.flatMap(([term, text]) => [make("dt", {text: term}), make("dd", {}, text)])),
    make("p", {className: "more"}, make("button", {type: "button", text: "Save the plan as a file", onclick: () => download(plan)}))));
}

/* ---- the page ---- */

/* What is seen first, and the rest. */
function fillTop() {
  repaints.length = 0;
  for (const fill of [fillHead, fillAnswers, fillTimeline, fillNavigation]) fill();
  repaint();
}

function fillRest() {
  for (const fill of [fillAgain, fillTensors, fillCurve, fillCompare, fillAddresses, fillAbout, fillNavigation]) fill();
  repaint();
}

function repaint() { for (const paint of repaints) paint(); }

function choose(plan) {
  state.plan = plan;
  fillTop();
  fillRest();
  section("timeline").scrollIntoView();
}

readPalette();
fillTop();
requestAnimationFrame(() => setTimeout(() => { /* after the first paint: a large graph has a long table */
  fillRest();
  document.documentElement.dataset.ready = "yes";
}));
let resizing = 0;
window.addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(repaint); });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readPalette(); repaint(); });
