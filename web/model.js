"use strict";
/* model.js: what the data of a page mean. docs/report.md describes them.
 *
 * A plan has steps, and spans: a tensor in memory from one step to another. From these follow the
 * memory of every step by kind, the fate of every tensor, and what runs again. The program that
 * wrote the page has checked the plan; here nothing is decided anew. Memory is summed up from the
 * spans, and selfCheck compares it with the peak that the program found. */

const KINDS = ["resident", "saved", "gradient", "made-again", "transient", "workspace"];
const KIND_WORDS = {
  resident: "resident",
  saved: "saved activations",
  gradient: "gradients",
  "made-again": "made again",
  transient: "transients",
  workspace: "workspace"
};
const KIND_NAMES = {
  resident: "resident: parameters, buffers, inputs",
  saved: "saved activations: made by the forward pass, read by the backward pass or for a re-run",
  gradient: "gradients: all that the backward pass makes",
  "made-again": "made again, or fetched",
  transient: "transients: other results of the forward pass",
  workspace: "workspace of the op",
};
const RESIDENT = 0, SAVED = 1, GRADIENT = 2, MADE_AGAIN = 3, TRANSIENT = 4, WORKSPACE = 5;
const FORWARD = 1, BACKWARD = 2;
const RESIDENT_KINDS = ["resident", "parameter", "buffer", "input", "constant"];
/* Which plans a bound is about. */
const SCOPES = {
  "any-order": "in any order",
  "fixed-order": "in its order",
  checkmate: "of Checkmate's form",
  chain: "in the chain model"
};
/* The operations of a chain, in the words of docs/model.md. */
const OPERATIONS = {
  Fall: "forward, all that the backward needs is stored",
  Fck: "forward, its input stays stored",
  Fnone: "forward, its input is dropped",
  B: "backward"
};

class Graph {
  constructor(data) {
    Object.assign(this, data.graph);
    this.unit = data.graph.cost_unit;
    this.isChain = data.graph.kind === "chain";
    this.nOps = data.graph.ops; /* without those that were dropped */
    this.ops = data.ops;
    this.tensors = data.tensors;
    this.nTensors = data.tensors.name.length;
    this.stages = data.stages;
    this.hasPhases = data.ops.phase.some((phase) => phase === BACKWARD);
    this.maker = new Int32Array(this.nTensors).fill(-1);
    this.readers = Array.from({length: this.nTensors}, () => []);
    data.ops.makes.forEach((list, op) => list.forEach((tensor) => {
      if (this.maker[tensor] < 0) this.maker[tensor] = op;
    }));
    data.ops.reads.forEach((list, op) => list.forEach((tensor) => this.readers[tensor].push(op)));
    this.ofValue = new Map(data.tensors.value.map((value, tensor) => [value, tensor]));
    this.outputs = new Set(data.tensors.outputs);
    this.layerOf = this.findLayers();
  }

  isResident(tensor) { return tensor >= this.tensors.made; }
  tensorName(tensor) { return this.tensors.name[tensor]; }
  opName(op) { return op < 0 ? "" : this.ops.name[op]; }
  opCost(op) { return this.ops.cost === null || op < 0 ? null : this.ops.cost[op]; }
  get opWord() { return this.isChain ? "stage" : "op"; }

  /* Of a chain with n stages, the loss counted: ops are the forwards of the stages 1 to n, then the
   * backwards of n to 1. */
  opOf(operation, stage) { return operation === "B" ? this.ops.name.length - stage : stage - 1; }

  /* 1 for the first. */
  stageOf(op) { return op < this.ops.name.length / 2 ? op + 1 : this.ops.name.length - op; }
  stageName(stage) { return this.ops.name[stage - 1]; }

  shape(tensor) {
    const shape = this.tensors.shape[tensor];
    const type = this.tensors.dtype[tensor];
    return `${type}${shape.length ? `[${shape.join(", ")}]` : ""}`;
  }

  kindWord(tensor) { return RESIDENT_KINDS[this.tensors.kind[tensor]] || "resident"; }

  /* The layer of an op, by the path in its name (h.0.attn.q, layer1_0_conv1) if most names have
   * one; else by the stage of the forward pass that it stands in. */
  findLayers() {
    const names = this.ops.name;
    if (this.isChain) {
      this.layerWord = "stages of the chain";
      return (op) => this.stageName(this.stageOf(op));
    }
    const path = (text) => {
      const dotted = /^(.*\d.*?)[./][^./]*$/.exec(text) || /^(.+)[./][^./]+$/.exec(text);
      const words = dotted || /^((?:grad_)?[A-Za-z]+\d+(?:_\d+)*)_[A-Za-z]/.exec(text);
      return words ? words[1].replace(/^grad_/, "") : null;
    };
    const withPath = names.filter((text) => path(text) !== null).length;
    if (withPath * 2 > names.length) {
      this.layerWord = "layers, by the names of ops";
      return (op) => path(names[op]) || "others";
    }
    if (this.stages.length > 1) {
      this.layerWord =
        "stages of the forward pass: what lies between two places that one tensor alone crosses";
      return (op) => {
        let low = 0, high = this.stages.length;
        while (low < high) {
          const middle = (low + high) >> 1;
          if (this.stages[middle] < op) low = middle + 1;
          else high = middle;
        }
        return low === this.stages.length
          ? "behind the forward pass"
          : `stage ${low + 1}, ends with ${names[this.stages[low]]}`;
      };
    }
    this.layerWord = "kinds of ops: names show no layers, and the graph is no chain of stages";
    return (op) => this.ops.target[op] || "others";
  }
}

class Plan {
  constructor(graph, entry, report, index) {
    this.graph = graph;
    this.role = entry.role;
    this.report = report;
    this.file = entry.file;
    this.index = index;
    this.readSteps(entry.file.schedule);
    this.readSpans(entry.spans);
    this.budget = report.budget_bytes;
    this.cost = report.cost;
  }

  get label() {
    if (this.role === "keep-all") return "keep-all";
    const at = this.budget === null ? "" : ` at ${bytes(this.budget)}`;
    const from = this.role === "plan" && this.report.plan ? ` (${this.report.plan})` : "";
    return `${this.report.strategy}${at}${from}`;
  }

  get isWithin() { return this.report.within_budget; }

  readSteps(schedule) {
    this.n = schedule.length;
    this.op = new Int32Array(this.n).fill(-1);
    this.moves = new Map(); /* by step: {offload: tensor} or {fetch: tensor} */
    this.operation = [];    /* of a chain, by step: Fall, Fck, Fnone or B */
    this.runs = new Uint32Array(this.graph.ops.name.length);
    this.firstRun = new Int32Array(this.graph.ops.name.length).fill(-1);
    schedule.forEach((step, t) => {
      if (typeof step === "number" || Array.isArray(step)) {
        const op = Array.isArray(step) ? this.graph.opOf(...step) : step;
        if (Array.isArray(step)) [this.operation[t]] = step;
        this.op[t] = op;
        if (this.runs[op]++ === 0) this.firstRun[op] = t;
      } else {
        const verb = "offload" in step ? "offload" : "fetch";
        this.moves.set(t, {verb, tensor: this.graph.ofValue.get(step[verb])});
      }
    });
  }

  /* Where the backward pass begins: before this step ops of the forward pass run for the first
   * time, behind it those of the backward pass, but for as few as possible. -1: there is no such
   * place. */
  findBoundary() {
    if (!this.graph.hasPhases) return -1;
    let [wrong, least, at] = [0, 0, 0]; /* with the boundary before step 0, less a constant */
    for (let t = 0; t < this.n; t++) {
      const op = this.op[t];
      if (op < 0 || this.firstRun[op] !== t) continue;
      wrong += this.graph.ops.phase[op] === BACKWARD ? 1 : -1;
      if (wrong < least) [least, at] = [wrong, t + 1];
    }
    return at;
  }

  stepName(t) {
    const move = this.moves.get(t);
    if (t >= this.n) return "nothing runs";
    if (this.operation[t])
      return `${this.operation[t]} ${this.graph.stageName(this.graph.stageOf(this.op[t]))}`;
    return move ? `${move.verb} ${this.graph.tensorName(move.tensor)}`
                : this.graph.opName(this.op[t]);
  }

  /* What kind of op a step runs. */
  stepNote(t) {
    if (this.operation[t]) return OPERATIONS[this.operation[t]];
    return this.op[t] >= 0 ? this.graph.ops.target[this.op[t]] : "";
  }

  readSpans(spans) {
    const n = spans.tensor.length;
    this.tensor = Int32Array.from(spans.tensor);
    this.begin = new Int32Array(n);
    this.end = new Int32Array(n); /* the last step with it */
    this.kind = new Uint8Array(n);
    this.spansOf = Array.from({length: this.graph.nTensors}, () => []);
    for (let i = 0, begin = 0; i < n; i++) {
      begin += spans.later[i];
      this.begin[i] = begin;
      this.end[i] = begin + spans.steps[i] - 1;
      this.spansOf[this.tensor[i]].push(i);
    }
    const isReadLater = this.spansReadLater();
    for (let i = 0; i < n; i++) this.kind[i] = this.kindOf(i, isReadLater);
    this.boundary = this.findBoundary();
    this.sumUp();
    this.placement = this.file.placement ? this.readPlacement(this.file.placement) : null;
  }

  /* Offsets by span; what has no bytes may have none. */
  readPlacement({align, arena_bytes: arenaBytes, storages, workspaces}) {
    const offsets = new Float64Array(this.tensor.length);
    for (const {value, instance, offset} of storages)
      offsets[this.spansOf[this.graph.ofValue.get(value)][instance]] = offset;
    return {
      align,
      arenaBytes,
      offsets,
      workspaces: workspaces.map(({step, offset}) => [step, offset])
    };
  }

  /* By span: does an op of the backward pass read it, or an op that runs again? */
  spansReadLater() {
    const {phase, reads} = this.graph.ops;
    const isRead = new Uint8Array(this.tensor.length);
    const newest = new Int32Array(this.graph.nTensors).fill(-1);
    for (let t = 0, next = 0; t < this.n; t++) {
      const op = this.op[t];
      if (op >= 0 && (phase[op] === BACKWARD || this.firstRun[op] !== t))
        for (const tensor of reads[op])
          if (newest[tensor] >= 0 && this.end[newest[tensor]] >= t) isRead[newest[tensor]] = 1;
      for (; next < this.tensor.length && this.begin[next] <= t; next++)
        newest[this.tensor[next]] = next;
    }
    return isRead;
  }

  /* By a step that fetches, or an op that ran before? */
  isMadeAgain(i) {
    const op = this.op[this.begin[i]];
    return op < 0 || this.firstRun[op] !== this.begin[i];
  }

  kindOf(i, isReadLater) {
    if (this.graph.maker[this.tensor[i]] < 0) return RESIDENT; /* the input of a chain */
    if (this.isMadeAgain(i)) return MADE_AGAIN;
    if (this.graph.ops.phase[this.op[this.begin[i]]] === BACKWARD) return GRADIENT;
    return isReadLater[i] ? SAVED : TRANSIENT;
  }

  sumUp() {
    const {tensors, ops} = this.graph;
    this.memory = KINDS.map(() => new Float64Array(this.n + 1));
    for (let i = 0; i < this.tensor.length; i++) {
      const size = tensors.bytes[this.tensor[i]];
      this.memory[this.kind[i]][this.begin[i]] += size;
      this.memory[this.kind[i]][this.end[i] + 1] -= size;
    }
    this.total = new Float64Array(this.n);
    this.peakStep = 0;
    for (let k = RESIDENT; k < WORKSPACE; k++)
      for (let t = 1; t <= this.n; t++) this.memory[k][t] += this.memory[k][t - 1];
    for (let t = 0; t < this.n; t++) {
      this.memory[RESIDENT][t] += this.graph.resident_bytes;
      this.memory[WORKSPACE][t] = this.op[t] >= 0 ? ops.workspace[this.op[t]] : 0;
      for (const column of this.memory) this.total[t] += column[t];
      if (this.total[t] > this.total[this.peakStep]) this.peakStep = t;
    }
    this.peak = this.n ? this.total[this.peakStep] : this.graph.resident_bytes;
  }

  /* Do the spans of the page give the peak that the program found? */
  selfCheck() { return this.report.peak_bytes === null || this.report.peak_bytes === this.peak; }

  /* What is in memory at a step, the largest first: {tensor, bytes, kind, begin, end}. */
  liveAt(t) {
    const {tensors} = this.graph;
    const list = [];
    for (let i = 0; i < this.tensor.length; i++) {
      if (this.begin[i] > t || this.end[i] < t) continue;
      list.push({
        tensor: this.tensor[i],
        bytes: tensors.bytes[this.tensor[i]],
        kind: this.kind[i],
        begin: this.begin[i],
        end: this.end[i]
      });
    }
    for (let tensor = tensors.made; tensor < this.graph.nTensors; tensor++)
      list.push({tensor, bytes: tensors.bytes[tensor], kind: RESIDENT, begin: 0, end: this.n - 1});
    const workspace = this.memory[WORKSPACE][t];
    if (workspace > 0) list.push({tensor: -1, bytes: workspace, kind: WORKSPACE, begin: t, end: t});
    return list.sort((a, b) => b.bytes - a.bytes || a.tensor - b.tensor);
  }

  /* {word, again, steps: in which it is not there although it is needed later, cost: of running it
   * again} */
  fate(tensor) {
    if (this.graph.isResident(tensor)) return {word: "resident", again: 0, steps: 0, cost: 0};
    const spans = this.spansOf[tensor];
    const op = this.graph.maker[tensor];
    let steps = 0;
    for (let i = 1; i < spans.length; i++)
      steps += Math.max(0, this.begin[spans[i]] - this.end[spans[i - 1]] - 1);
    const fetched = spans.filter((i) => this.moves.has(this.begin[i])).length;
    const again = op < 0 ? 0 : spans.filter((i) => this.isMadeAgain(i)).length - fetched;
    const each = op >= 0 ? this.graph.opCost(op) : 0;
    const words = [];
    if (again > 0) words.push(`made again ${again}×`);
    if (fetched > 0) words.push(`offloaded, fetched ${fetched}×`);
    if (!words.length) words.push(spans.length ? "kept" : "not made");
    return {
      word: words.join(", "),
      again,
      fetched,
      steps,
      cost: each === null ? null : again * each
    };
  }

  /* The steps at which a tensor is read or made, ascending. */
  uses(tensor) {
    const ops = new Set(this.graph.readers[tensor]);
    ops.add(this.graph.maker[tensor]);
    const isThere = (t) => this.spansOf[tensor].some((i) => this.begin[i] <= t && t <= this.end[i]);
    const list = [];
    for (let t = 0; t < this.n; t++) {
      const move = this.moves.get(t);
      if ((move ? move.tensor === tensor : ops.has(this.op[t])) && isThere(t)) list.push(t);
    }
    return list;
  }

  /* What runs again, by a key of the op: [{key, runs, cost, ops}], the dearest first. */
  again(keyOf) {
    const groups = new Map();
    for (let op = 0; op < this.runs.length; op++) {
      if (this.runs[op] < 2) continue;
      const key = keyOf(op);
      if (!groups.has(key)) groups.set(key, {key, runs: 0, cost: 0, ops: 0});
      const group = groups.get(key);
      group.ops++;
      group.runs += this.runs[op] - 1;
      group.cost += (this.runs[op] - 1) * (this.graph.opCost(op) || 0);
    }
    return [...groups.values()].sort((a, b) => b.cost - a.cost || b.runs - a.runs);
  }

  /* The prices of the certificate: {scope, bound, perByte: their sum, at: [{op, step, price}]};
   * null: there is none. Prices are in cost units a byte. */
  get prices() {
    if (this.knownPrices !== undefined) return this.knownPrices;
    const own = this.file.bound && this.file.bound.certificate;
    const any = this.file.any_order_bound && this.file.any_order_bound.certificate;
    const certificate = own || any;
    this.knownPrices = null;
    if (!certificate) return null;
    const bound = own ? this.file.bound : this.file.any_order_bound;
    const at = certificate.prices.filter(([, price]) => price > 0).map(([op,
      price]) => ({op, step: this.firstRun[op], price: price / certificate.scale}));
    this.knownPrices = {
      scope: own ? this.file.bound.scope : "any-order",
      bound: certificate.cost === undefined || certificate.cost === null ? bound.cost
                                                                         : certificate.cost,
      perByte: at.reduce((sum, x) => sum + x.price, 0),
      at,
    };
    return this.knownPrices;
  }
}

function greatestCommonDivisor(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

/* What `more` bytes would save at most: {most, scope}; null: nothing is proved. By the theorem of
 * docs/bound.md the same prices hold at every budget, and the bound falls by their sum for every
 * byte. The bound was rounded up to what re-runs cost multiples of, which is taken back first. It
 * is that of the budget in the plan's file; a curve may carry a plan on to a larger one. */
function mostSaved(plan, more) {
  const prices = plan.prices;
  if (!prices || plan.budget === null || !plan.isWithin || plan.graph.ops.cost === null)
    return null;
  let step = 0;
  for (let op = 0; op < plan.runs.length; op++)
    if (plan.runs[op] > 1) step = greatestCommonDivisor(step, plan.graph.opCost(op));
  const bytesMore = plan.budget + more - plan.file.budget_bytes;
  const bound =
    Math.max(prices.bound - step - bytesMore * prices.perByte, plan.report.keep_all_cost);
  return {most: Math.max(0, plan.cost - bound), scope: prices.scope};
}

/* ---- the page that this script is part of ---- */

const data = JSON.parse(document.getElementById("data").textContent);
sizeUnit = data.graph.size_unit;
const graph = new Graph(data);
const plans = data.plans.map((entry, i) => new Plan(graph, entry, data.reports[i], i));
const keepAll = plans[0];
const unit = graph.unit;
const state = {
  plan: plans[1] || keepAll,
  tensor: -1,
  sameScale: true
}; /* what is shown */
