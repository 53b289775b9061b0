"use strict";
/* answers.js: the head of the page, and what a reader asks first. Each answer says where it comes
 * from: from a plan of this page, or from a proof. */

const section = (id) => document.getElementById(id);
const title = (id, text) => make("h2", {id: `${id}-title`, text});
const kindWords = (kind) => KIND_WORDS[kind];
const scopeWords = (scope) => SCOPES[scope] || scope;

function legend() {
  const used = KINDS.filter(
    (kind, k) => [keepAll, state.plan].some((plan) => plan.memory[k].some((amount) => amount > 0)));
  return make("ul", {className: "legend"},
    used.map((kind) => make("li", {}, swatch(kind), KIND_NAMES[kind])));
}

/* ---- head ---- */

/* "optimal in any order", "gap at most 0.37 % in its order, 1.10 % in any". */
function gapWords(report) {
  if (!report.within_budget || report.gap === null)
    return report.within_budget ? "no bound is known" : "";
  const scope = scopeWords(report.bound_scope);
  if (report.any_order_bound_cost === report.cost)
    return "optimal: no plan in any order costs less";
  const own = report.outcome === "optimal"
    ? `optimal ${scope}`
    : `at most ${percent(report.gap)} above the best plan ${scope}`;
  return report.bound_scope === "any-order" || report.any_order_gap === null
    ? own
    : `${own}, ${percent(report.any_order_gap)} above the best in any order`;
}

/* Why a plan misses its budget: what the program says. */
function missWords(report) { return report.error ? report.error.reason : ""; }

function verdict(plan) {
  const report = plan.report;
  if (plan.role === "keep-all" || report.budget_bytes === null) return ["plain", "no budget"];
  if (report.within_budget) return ["good", `fits ${bytes(report.budget_bytes)}`];
  return [
    "bad",
    report.outcome === "infeasible" ? `proved: nothing fits ${bytes(report.budget_bytes)}`
                                    : `over the budget of ${bytes(report.budget_bytes)}`
  ];
}

function figure(term, value, note) {
  return make("div", {className: "figure"}, make("dt", {text: term}),
    make("dd", {}, value, make("small", {text: note})));
}

function fillHead() {
  const {plan} = state;
  const report = plan.report;
  const [tone, words] = verdict(plan);
  const extra = report.cost - keepAll.cost;
  const share = keepAll.peak ? plan.peak / keepAll.peak : 0;
  document.title = `${graph.name} · remat report`;
  replace(section("head"), make("p", {className: "kicker", text: "Training memory, step by step"}),
    make("h1", {text: graph.name}),
    make("div", {className: "verdict"}, make("span", {className: `badge ${tone}`, text: words}),
      make("span", {text: plan.label}),
      make("span", {className: "soft", text: gapWords(report) || missWords(report)})),
    make("dl", {className: "figures"},
      figure("Peak memory", bytes(plan.peak),
        plan === keepAll ? "with nothing run twice"
                         : `${percent(share)} of ${bytes(keepAll.peak)}`),
      figure("Cost of a step", cost(report.cost, unit),
        plan === keepAll ? `costs: ${graph.cost_model}`
                         : `${cost(keepAll.cost, unit)} and ${
                             percent(keepAll.cost ? extra / keepAll.cost : 0)} more`),
      figure("Steps", count(plan.n),
        report.recomputed_ops ? `${plural(report.recomputed_ops, graph.opWord)} of ${
                                  count(graph.nOps)} run more than once`
                              : `every ${graph.opWord} runs once`),
      figure("Least memory", bytes(graph.need_bytes),
        `no plan needs less${graph.need_op ? `: ${graph.need_op}` : ""}`)));
}

function fillNavigation() {
  const links = [
    ["answers", "Answers"], ["timeline", "Timeline"], ["operations", "Operations"],
    ["again", "What runs again"], ["tensors", "Tensors"], ["curve", "Curve"],
    ["compare", "Compare"], ["addresses", "Addresses"], ["about", "About"]
  ].filter(([id]) => section(id).childElementCount > 0);
  const choice = plans.length < 3 ? null
                                  : make("label", {className: "small"}, "Plan shown ",
                                      planSelect(state.plan, (plan) => choose(plan)));
  replace(section("sections"),
    make(
      "span", {className: "links"}, links.map(([id, text]) => make("a", {href: `#${id}`, text}))),
    choice);
}

function planSelect(chosen, onChange) {
  const select = make("select", {onchange: () => onChange(plans[Number(select.value)])},
    plans.map(
      (plan) => make("option", {value: plan.index, text: plan.label, selected: plan === chosen})));
  return select;
}

/* ---- answers ---- */

/* A question, its answer in a line, and what is behind it: on a narrow screen that is unfolded by a
 * button, so that all answers are on the first screen. */
function answer(question, text, ...rest) {
  const card =
    make("article", {className: "card"}, make("p", {className: "question", text: question}),
      make("p", {className: "answer"}, text), make("div", {className: "rest"}, rest.flat()));
  const button = make("button", {
    type: "button",
    className: "unfold",
    text: "more",
    "aria-label": `More: ${question}`,
    "aria-expanded": "false",
    onclick: () => {
      const isOpen = card.classList.toggle("open");
      button.setAttribute("aria-expanded", String(isOpen));
      button.textContent = isOpen ? "less" : "more";
      repaint();
    }
  });
  if (rest.flat().some(Boolean)) card.append(button);
  return card;
}

function stackBar(plan, t) {
  const box = make("canvas", {
    className: "canvas bar",
    role: "img",
    "aria-label": "Memory at the peak by kind; the list below has the numbers"
  });
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
  onRepaint(box, paint);
  requestAnimationFrame(paint);
  return box;
}

function peakAnswer(plan, question) {
  const t = plan.peakStep;
  const list = KINDS.map((kind, k) => [kind, plan.memory[k][t]])
                 .filter(([, amount]) => amount > 0)
                 .sort((a, b) => b[1] - a[1]);
  return answer(question,
    `${bytes(plan.peak)}, most of it ${list.length ? kindWords(list[0][0]) : "nothing"}`,
    stackBar(plan, t),
    make("ul", {className: "legend"},
      list.map(([kind, amount]) => make(
                 "li", {}, swatch(kind), make("b", {text: bytes(amount)}), ` ${kindWords(kind)}`))),
    make("p", {className: "soft small"}, `at step ${t} of ${plan.n}: `, name(plan.stepName(t))));
}

function tensorButton(tensor) {
  return make("button", {
    type: "button",
    className: "link",
    text: graph.tensorName(tensor),
    title: graph.tensorName(tensor),
    onclick: () => explain(tensor, true)
  });
}

function largestAnswer(plan) {
  const live = plan.liveAt(plan.peakStep);
  if (!live.length) return null;
  const [first] = live;
  const rest = live.slice(1, 4).filter((x) => x.tensor >= 0);
  const what = first.tensor < 0 ? "the workspace of the op" : tensorButton(first.tensor);
  const maker = first.tensor < 0 ? -1 : graph.maker[first.tensor];
  const about = first.tensor < 0 ? "" : [
    graph.shape(first.tensor), kindWords(KINDS[first.kind]),
    maker >= 0 ? `made by ${graph.opName(maker)}` : ""
  ].filter(Boolean).join(", ");
  return answer("What is the largest tensor at the peak?",
    make("span", {}, what, ` ${bytes(first.bytes)}`),
    make("p", {className: "soft small", text: about}),
    rest.length
      ? make("p", {className: "small"}, "Then ",
          rest.flatMap((x, i) => [i ? ", " : "", tensorButton(x.tensor), ` ${bytes(x.bytes)}`]))
      : null);
}

function againAnswer(plan) {
  const groups = plan.again(graph.layerOf); // "others" is no layer: it comes last
  groups.sort((a, b) => (a.key === "others") - (b.key === "others"));
  if (!groups.length)
    return answer("Which layer is run again most?", `none: every ${graph.opWord} runs once`);
  const total = groups.reduce((sum, group) => sum + group.cost, 0);
  const costWords = (group) =>
    (graph.ops.cost === null ? plural(group.runs, "re-run")
                             : `${cost(group.cost, unit)} in ${plural(group.runs, "re-run")}`);
  return answer("Which layer is run again most?", groups[0].key, make("p", {
    className: "small",
    text: `${costWords(groups[0])}${total ? `; all re-runs: ${cost(total, unit)}` : ""}`
  }),
    make("p", {
      className: "soft small",
      text: groups.slice(1, 4).map((group) => `${group.key}: ${costWords(group)}`).join("; ")
    }));
}

/* One GiB, or a tenth of a small model's peak. */
function moreMemory() {
  return keepAll.peak >= 4 * KIB ** 3 ? KIB ** 3 : Math.max(1, Math.round(keepAll.peak / 10));
}

function moreAnswer(plan) {
  const more = moreMemory();
  const question = `What would ${bytes(more)} more save?`;
  if (plan.budget === null || plan === keepAll) return null;
  if (!plan.isWithin) return answer(question, "not known: this plan does not fit its budget");
  const proved = mostSaved(plan, more);
  const found =
    plans.filter((other) => other.peak <= plan.budget + more && other.cost < plan.cost && other.n)
      .sort((a, b) => a.cost - b.cost)[0];
  const lines = [];
  if (found)
    lines.push(`Found: ${found.label} has a peak of ${bytes(found.peak)} and costs ${
      cost(found.cost, unit)}, ${percent((plan.cost - found.cost) / plan.cost)} less.`);
  if (proved)
    lines.push(`Proved: at most ${cost(proved.most, unit)} of ${cost(plan.cost, unit)}, for plans ${
      scopeWords(
        proved
          .scope)}. This follows from the prices of the bound's certificate: a byte more lowers the bound by their sum.`);
  if (!found && proved)
    lines.push(
      "No cheaper plan of up to that size is in this report: --curve with --points adds some.");
  const head = found ? `${cost(plan.cost - found.cost, unit)} a step`
    : proved ? `at most ${cost(proved.most, unit)} a step`
             : "not known: no prices, and no plan with more memory";
  return answer(question, head, lines.map((text) => make("p", {className: "soft small", text})));
}

/* Where the bound comes from, and who has checked it. */
function proofWords(plan) {
  const {bound_cost: bound, bound_method: method} = plan.report;
  if (bound === null || !plan.isWithin) return "";
  if (plan.prices) return "Proved: the plan has a certificate, which remat verify --bound checks.";
  if (method === "first-runs") return `Proved: every ${graph.opWord} runs at least once.`;
  return `Claimed by ${method}, which leaves nothing to check.`;
}

function qualityAnswer(plan) {
  if (plan === keepAll) return null;
  const report = plan.report;
  const extra = report.cost - keepAll.cost;
  const question = "What does the plan cost, and is that proved?";
  const head = extra > 0
    ? `${cost(extra, unit)} a step, ${percent(extra / (keepAll.cost || 1))} more`
    : "nothing";
  const line = (className, text) => (text ? make("p", {className, text}) : null);
  if (!plan.isWithin)
    return answer(question, `${head}, and it does not fit`, line("small", missWords(report)));
  return answer(question, head, line("small", gapWords(report)), line("small", proofWords(plan)),
    line("soft small",
      report.bound_cost === null
        ? ""
        : `No plan ${scopeWords(report.bound_scope)} within the budget costs less than ${
            cost(report.bound_cost, unit, 2)}; this one costs ${cost(report.cost, unit, 2)}.`));
}

function fillAnswers() {
  const {plan} = state;
  const cards =
    plan === keepAll ? [peakAnswer(keepAll, "What fills the memory?"), largestAnswer(keepAll)] : [
      peakAnswer(keepAll, "What filled the memory before?"), peakAnswer(plan, "What fills it now?"),
      largestAnswer(plan), qualityAnswer(plan), againAnswer(plan), moreAnswer(plan)
    ];
  replace(section("answers"), title("answers", "Answers"), make("div", {className: "grid"}, cards));
}
