"use strict";
/* operations.js: the operations of a chain: time across, stages up. What a forward stores is a
 * pattern and, where there is room, a letter; a stage that runs forward again is seen again. */

const OPERATION_KINDS = {
  Fall: "saved",
  Fck: "transient",
  Fnone: "resident",
  B: "gradient"
};
const OPERATION_LETTERS = {
  Fall: "a",
  Fck: "c",
  Fnone: "n",
  B: "B"
};
const MOST_RUNS = 200, FIRST_RUNS = 40; /* of a table, of a line of text */

/* Operations in a row, stage by stage: [{operation, first, last: stages, from, to: steps}]. */
function operationRuns(plan, from = 0, to = plan.n) {
  const runs = [];
  for (let t = from; t < to; t++) {
    const operation = plan.operation[t];
    const stage = graph.stageOf(plan.op[t]);
    const run = runs[runs.length - 1];
    const next = operation === "B" ? -1 : 1;
    if (run && run.operation === operation && stage === run.last + next)
      [run.last, run.to] = [stage, t];
    else runs.push({operation, first: stage, last: stage, from: t, to: t});
  }
  return runs;
}

const runText = ({operation, first, last}) =>
  `${operation}${first}${last === first ? "" : `-${last}`}`;

class Operations extends StepView {
  constructor(plan, options) {
    super(plan, {height: 250, ...options});
    this.nStages = graph.ops.name.length / 2;
    this.scale = this.nStages;
    this.tell();
  }

  words(t) {
    const {plan} = this;
    if (!plan.n) return [make("span", {text: "no steps"})];
    const stage = graph.stageOf(plan.op[t]);
    return [make("span", {}, "step ", make("b", {text: String(t)}), " · ", name(plan.stepName(t)),
      ` · stage ${stage}, ${plan.stepNote(t)}${
        plan.firstRun[plan.op[t]] === t ? "" : ", run again"}`)];
  }

  /* In the middle of a stage's row: 1, and round numbers. */
  levels() {
    const every = Math.max(1, roundStep(this.nStages, 8));
    const list = [[0.5, "stage 1"]];
    for (let stage = every === 1 ? 2 : every; stage <= this.nStages; stage += every)
      list.push([stage - 0.5, String(stage)]);
    return list;
  }

  paintBody() {
    const {c, plan} = this;
    const height = this.y(0) - this.y(1);
    const width = this.x(1) - this.x(0);
    for (let t = this.clamp(this.from); t <= this.clamp(this.to - 1e-6); t++) {
      const operation = plan.operation[t];
      const y = this.y(graph.stageOf(plan.op[t]));
      c.fillStyle = palette.patterns[OPERATION_KINDS[operation]];
      c.fillRect(this.x(t), y, Math.max(1.5, width), Math.max(2, height));
      if (width >= 12 && height >= 13)
        this.label(
          OPERATION_LETTERS[operation], this.x(t + 0.5), y + height / 2 + 4, "center", palette.ink);
    }
  }

  table() {
    const runs = operationRuns(this.plan, this.clamp(this.from), this.clamp(this.to - 1e-6) + 1);
    return table(`Operations in view${runs.length > MOST_RUNS ? `, the first ${MOST_RUNS}` : ""}`,
      [["steps", true], ["operation", false], ["stages", false], ["what it does", false]],
      runs.slice(0, MOST_RUNS)
        .map((run) => [run.from === run.to ? String(run.from) : `${run.from} to ${run.to}`,
               run.operation,
               name(run.first === run.last
                   ? graph.stageName(run.first)
                   : `${graph.stageName(run.first)} to ${graph.stageName(run.last)}`),
               OPERATIONS[run.operation]]));
  }
}

function fillOperations() {
  if (!graph.isChain) {
    replace(section("operations"));
    return;
  }
  const {plan} = state;
  const view = new Operations(plan, {
    title: `Operations of ${plan.label}, a stage at each step. Arrow keys move, plus and minus zoom`
  });
  views.operations = view;
  const runs = operationRuns(plan);
  const shown = runs.slice(0, FIRST_RUNS).map(runText).join(" ");
  const left = runs.length - FIRST_RUNS;
  replace(section("operations"), title("operations", "Operations"), make("p", {
    className: "lead",
    text:
      "Which stage runs at each step, and what it stores. In the tables a is the output of a stage, abar all that its backward needs, delta the gradient of its output, keep what stays from its first forward to its backward."
  }),
    make("div", {className: "card"},
      make("div", {className: "tools"},
        make("ul", {className: "legend"}, Object.keys(OPERATIONS).map((operation) => {
          const letter = OPERATION_LETTERS[operation];
          return make("li", {}, swatch(OPERATION_KINDS[operation]),
            make("b", {text: operation === letter ? operation : `${operation} (${letter})`}),
            ` ${OPERATIONS[operation]}`);
        })),
        view.buttons()),
      view.element,
      make("p", {className: "more"}, make("code", {text: shown}),
        left > 0 ? ` and ${count(left)} more, which the table of what is in view has.` : null)));
}
