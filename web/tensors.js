"use strict";
/* tensors.js: the table of tensors, and why one of them is kept or not.
 *
 * Why: a plan keeps what is worth its room. The time in which a tensor is away has a fullest step;
 * keeping it would take its bytes there from something else. The certificate of the bound has
 * prices of memory, by step: their sum over that time is what the room is worth, to be held against
 * a re-run. */

const FIRST_ROWS = 25, MORE_ROWS = 100;

/* ---- tensors ---- */

const TENSOR_COLUMNS = [
  {key: "name", title: "tensor", of: (x) => x.name, cell: (x) => tensorButton(x.tensor)},
  {key: "bytes", title: "bytes", isNumber: true, of: (x) => x.bytes, cell: (x) => bytes(x.bytes)},
  {
    key: "fate",
    title: "in the plan",
    of: (x) => x.fate.again * 1e6 + x.fate.steps,
    cell: (x) => make("span", {
      className: `fate ${
        x.fate.fetched   ? "moved"
          : x.fate.again ? "again"
                         : ""}`,
      text: x.fate.word
    })
  },
  {
    key: "saves",
    title: "away for",
    isNumber: true,
    of: (x) => x.bytes * x.fate.steps,
    cell: (x) => (x.fate.steps ? plural(x.fate.steps, "step") : "")
  },
  {
    key: "costs",
    title: "costs",
    isNumber: true,
    of: (x) => x.fate.cost || 0,
    cell: (x) => (x.fate.cost ? cost(x.fate.cost, unit) : "")
  },
  {key: "maker", title: "made by", of: (x) => x.maker, cell: (x) => name(x.maker)},
  {
    key: "readers",
    title: "read by",
    of: (x) => x.readers.length,
    cell: (x) => make("span", {
      className: "readers",
      title: x.readers.slice(0, 20).map((op) => graph.opName(op)).join(", ")
    },
      readersText(x.readers))
  },
  {
    key: "before",
    title: "keep-all steps",
    isNumber: true,
    of: (x) => x.before[0],
    cell: (x) => range(x.before, x.tensor)
  },
  {
    key: "after",
    title: "plan steps",
    isNumber: true,
    of: (x) => x.after[0],
    cell: (x) => range(x.after, x.tensor)
  },
];

function range([first, last], tensor) {
  if (first < 0) return graph.isResident(tensor) ? "always" : "never";
  return `${first} to ${last}`;
}

function readersText(readers) {
  if (!readers.length) return "nobody";
  return readers.length === 1
    ? graph.opName(readers[0])
    : `${graph.opName(readers[0])} and ${plural(readers.length - 1, "other")}`;
}

function makerText(tensor) {
  if (graph.isResident(tensor)) return graph.kindWord(tensor);
  return graph.maker[tensor] < 0 ? "input" : graph.opName(graph.maker[tensor]);
}

function lifeOf(plan, tensor) {
  const spans = plan.spansOf[tensor];
  return spans.length ? [plan.begin[spans[0]], plan.end[spans[spans.length - 1]]] : [-1, -1];
}

function tensorRows(plan) {
  return Array.from({length: graph.nTensors}, (_, tensor) => ({
    tensor,
    name: graph.tensorName(tensor),
    bytes: graph.tensors.bytes[tensor],
    fate: plan.fate(tensor),
    readers: graph.readers[tensor],
    maker: makerText(tensor),
    before: lifeOf(keepAll, tensor),
    after: lifeOf(plan, tensor),
  }));
}

class TensorTable {
  constructor(plan) {
    this.rows = tensorRows(plan);
    this.sort = {key: "bytes", falling: true};
    this.limit = FIRST_ROWS;
    this.search = make("input", {
      type: "search",
      placeholder: "name of a tensor or an op",
      "aria-label": "Filter by name",
      oninput: () => {
        this.limit = FIRST_ROWS;
        this.fill();
      }
    });
    this.fates = make("select", {
      "aria-label": "Filter by fate",
      onchange: () => {
        this.limit = FIRST_ROWS;
        this.fill();
      }
    },
      [
        ["", "all tensors"], ["again", "made again"], ["moved", "offloaded"], ["kept", "kept"],
        ["resident", "resident"]
      ].map(([value, text]) => make("option", {value, text})));
    this.status = make("span", {className: "soft small", role: "status"});
    this.box = make("div");
    this.element = make(
      "div", {}, make("div", {className: "tools"}, this.search, this.fates, this.status), this.box);
    this.fill();
  }

  isShown(row) {
    const word = this.search.value.toLowerCase();
    const fate = this.fates.value;
    if (word && !row.name.toLowerCase().includes(word) && !row.maker.toLowerCase().includes(word))
      return false;
    if (fate === "again") return row.fate.again > 0;
    if (fate === "moved") return row.fate.fetched > 0;
    return !fate || row.fate.word === fate;
  }

  fill() {
    const column = TENSOR_COLUMNS.find(({key}) => key === this.sort.key);
    const sign = this.sort.falling ? -1 : 1;
    const shown = this.rows.filter((row) => this.isShown(row));
    const keys = new Map(shown.map((row) => [row, column.of(row)]));
    shown.sort((a, b) => {
      const [p, q] = [keys.get(a), keys.get(b)];
      return sign * (p < q ? -1 : p > q ? 1 : 0) || a.tensor - b.tensor;
    });
    const sum = shown.reduce((total, row) => total + row.bytes, 0);
    this.status.textContent = `${plural(shown.length, "tensor")}, ${bytes(sum)} together`;
    const heads = TENSOR_COLUMNS.map(
      ({key, title: text, isNumber}) => make("th", {
        scope: "col",
        className: isNumber ? "number" : "",
        "aria-sort": key === this.sort.key ? (this.sort.falling ? "descending" : "ascending") : null
      },
        make("button", {
          type: "button",
          text: text + (key === this.sort.key ? (this.sort.falling ? " ▾" : " ▴") : ""),
          onclick: () => this.sortBy(key)
        })));
    const body =
      shown.slice(0, this.limit)
        .map((row) => make("tr", {className: row.tensor === state.tensor ? "chosen" : ""},
               TENSOR_COLUMNS.map(({cell, isNumber}) =>
                                    make("td", {className: isNumber ? "number" : ""}, cell(row)))));
    const left = shown.length - body.length;
    replace(this.box,
      make("div", {className: "scroll", tabIndex: 0, role: "region", "aria-label": "Tensors"},
        make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, body))),
      left > 0 ? make("button", {
        type: "button",
        className: "more",
        text: `Show ${count(Math.min(left, MORE_ROWS))} of ${count(left)} more`,
        onclick: () => {
          this.limit += MORE_ROWS;
          this.fill();
        }
      })
               : null);
  }

  sortBy(key) {
    const column = TENSOR_COLUMNS.find((x) => x.key === key);
    this.sort = {
      key,
      falling: this.sort.key === key ? !this.sort.falling
                                     : Boolean(column.isNumber) || key === "fate"
    };
    this.fill();
    const at = TENSOR_COLUMNS.indexOf(column);
    this.box.querySelectorAll("th button")[at].focus();
  }
}

function fillTensors() {
  const why = make("div", {id: "why", tabIndex: -1, "aria-live": "polite"});
  views.tensors = new TensorTable(state.plan);
  replace(section("tensors"), title("tensors", "Tensors"), make("p", {
    className: "lead",
    text:
      "Every storage of the step. “Away for” is what the plan saves: for how many steps its bytes are free between two uses; it sorts by bytes times steps. “Costs” is what running the op again costs; an op that makes several tensors is counted at each. Choose a tensor to see why."
  }),
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
  if (!met.length)
    return [
      `The bound (${scope}) puts no price on memory between these steps: it is scarce elsewhere.`
    ];
  const dearest = met.reduce((a, b) => (b.price > a.price ? b : a));
  return [
    `The bound (${scope}) prices memory at ${plural(met.length, "step")} in between, most at step ${
      dearest.step} (`,
    name(graph.opName(dearest.op)),
    `), ${cost(dearest.price * KIB ** 3, unit)} for a GiB. To keep these ${
      bytes(size)} takes room worth ${cost(worth, unit)}.`
  ];
}

/* A time in which the tensor is not in memory: what would have to give. */
function holeWords(plan, tensor, from, to) {
  const size = graph.tensors.bytes[tensor];
  const limit = plan.budget === null ? plan.peak : plan.budget;
  let tight = from + 1;
  for (let t = from + 1; t < to; t++)
    if (plan.total[t] > plan.total[tight]) tight = t;
  const room = limit - plan.total[tight];
  const each = graph.opCost(graph.maker[tensor]);
  const used = new Set(plan.op[tight] >= 0
      ? [...graph.ops.reads[plan.op[tight]], ...graph.ops.makes[plan.op[tight]]]
      : []);
  const others = plan.liveAt(tight)
                   .filter((x) => x.tensor >= 0 && x.kind !== RESIDENT && !used.has(x.tensor))
                   .slice(0, 5);
  const lines = [make("p", {},
    `Not in memory from step ${from + 1} to ${to - 1}. To keep it takes ${
      bytes(
        size)} at each of these ${plural(to - from - 1, "step")}. The fullest is step ${tight} (`,
    name(plan.stepName(tight)),
    room >= size ? `), with ${bytes(room)} to spare: there is room. Other plans may use it better.`
                 : `), with ${bytes(Math.max(0, room))} to spare: ${
                     bytes(size - Math.max(0, room))} of something else would have to give.`)];
  if (room < size && others.length)
    lines.push(make("p", {}, "The largest there that the step does not use: ",
      others.flatMap((x, i) => [i ? ", " : "", tensorButton(x.tensor), ` ${bytes(x.bytes)}`]),
      "."));
  lines.push(make("p", {}, priceWords(plan, tensor, from, to),
    each === null ? "" : ` Making it again costs ${cost(each, unit)} (one run of `,
    each === null ? "" : name(graph.opName(graph.maker[tensor])), each === null ? "" : ")."));
  return lines;
}

/* The longest time in which a tensor that is kept is not used. */
function idleWords(plan, tensor) {
  const uses = plan.uses(tensor);
  let [from, to] = [0, 0];
  for (let i = 1; i < uses.length; i++)
    if (uses[i] - uses[i - 1] > to - from) [from, to] = [uses[i - 1], uses[i]];
  if (to - from < 2)
    return [make("p", {
      text:
        "It is used at every step of its life, or directly after it was made: there is nothing to save."
    })];
  const each = graph.opCost(graph.maker[tensor]);
  return [
    make("p", {},
      `${plan.fate(tensor).again ? "Made again once" : "Kept"}. It lies idle longest from step ${
        from + 1} to ${to - 1}. To drop it there would free ${
        bytes(graph.tensors.bytes[tensor])} for ${plural(to - from - 1, "step")}, and `,
      name(graph.opName(graph.maker[tensor])),
      each === null ? " would have to run again."
                    : ` would have to run again, for ${
                        cost(each, unit)} or more: what it reads must be there.`),
    make("p", {}, priceWords(plan, tensor, from, to))
  ];
}

function whyWords(plan, tensor) {
  if (graph.isResident(tensor))
    return [make("p", {
      text: `It is resident (${
        graph.kindWord(tensor)}): in memory before the first step, and never freed.`
    })];
  const spans = plan.spansOf[tensor];
  if (!spans.length) return [make("p", {text: "This plan does not make it."})];
  if (graph.maker[tensor] < 0)
    return [make("p", {
      text: "It is the input: in memory from the first step on, until the first stage ran backward."
    })];
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
  const facts =
    [
      bytes(graph.tensors.bytes[tensor]), graph.shape(tensor), fate.word,
      graph.outputs.has(tensor) ? `an output of the ${graph.kind}` : ""
    ].filter(Boolean)
      .join(", ");
  replace(box,
    make("div", {className: "card why"}, make("h3", {}, "Why: ", name(graph.tensorName(tensor))),
      make("p", {className: "soft small", text: facts}),
      maker >= 0 ? make("p", {className: "soft small"}, "Made by ", name(graph.opName(maker)),
                     ` (${graph.ops.target[maker] || "op"}), read by `,
                     readersText(graph.readers[tensor]), ".")
                 : null,
      whyWords(plan, tensor)),
    make("div", {className: "more"}));
  if (!go) return;
  views.tensors.fill();
  box.focus({preventScroll: true}); /* the button that was pressed may be gone */
  box.scrollIntoView({block: "center"});
}
