"use strict";
/* curve.js: overhead against budget, with the region that no plan can enter. A bound that is proved
 * at a budget holds at every smaller one, so the region falls in steps. */

const SHAPES = [
  (x, y) => draw("circle", {cx: x, cy: y, r: 5.5}),
  (x, y) => draw("rect", {x: x - 5, y: y - 5, width: 10, height: 10}),
  (x, y) => draw("path", {d: `M${x} ${y - 6.5}L${x + 6} ${y + 5}L${x - 6} ${y + 5}Z`}),
  (x, y) => draw("path", {d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z`}),
  (x, y) => draw("path", {d: `M${x} ${y + 6.5}L${x + 6} ${y - 5}L${x - 6} ${y - 5}Z`}),
];
const overheadOf = (plan) => (keepAll.cost ? plan.cost / keepAll.cost - 1 : 0);

/* The proved bound as overhead at each budget, falling: a bound at a budget holds at every smaller
 * one. */
function provedSteps(list) {
  const points =
    list.filter((plan) => plan.budget !== null && plan.report.any_order_bound_cost !== null)
      .map((plan) => [plan.budget,
             keepAll.cost ? plan.report.any_order_bound_cost / keepAll.cost - 1 : 0])
      .sort((a, b) => b[0] - a[0]);
  let best = 0;
  return points
    .map(([budget, share]) => {
      best = Math.max(best, share);
      return [budget, best];
    })
    .reverse();
}

/* Where budgets and overheads lie in a picture of that width. Where some plans cost more than twice
 * as much, the others decide the height; those stand at the upper edge, with their number. */
function curveScale(fitting, width) {
  const box = {width, height: 340, left: 64, right: 16, top: 24, bottom: 44};
  const shares = fitting.map(overheadOf);
  const usual = shares.filter((share) => share <= 1);
  const low = Math.min(graph.need_bytes, ...fitting.map((plan) => plan.budget));
  const high = Math.max(keepAll.peak, ...fitting.map((plan) => plan.budget));
  const margin = (high - low || 1) * 0.03;
  const tall = Math.max(0.01, ...(usual.some((share) => share > 0) ? usual : shares)) * 1.15;
  const across = (budget) => box.left +
    ((budget - low + margin) / (high - low + margin || 1)) * (width - box.left - box.right);
  const up = (share) =>
    box.height - box.bottom - (Math.min(share, tall) / tall) * (box.height - box.top - box.bottom);
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
  const share = roundStep(tall, 5);
  for (let at = 0; at <= tall * (1 + 1e-9); at += share) {
    const line = draw("line", {x1: left, x2: width - right, y1: y(at), y2: y(at)});
    line.style.stroke = "var(--line)";
    parts.push(line,
      draw("text", {x: left - 8, y: y(at) + 4, "text-anchor": "end", text: `+${percent(at)}`}));
  }
  const sizes = roundSizes(high).filter((size) => size >= low);
  const every = width < 600 ? 2 : 1;
  sizes.filter((_, i) => i % every === 0).forEach((size) => parts.push(draw("text", {
    x: x(size),
    y: height - bottom + 18,
    "text-anchor": x(size) > width - right - 30 ? "end" : "middle",
    text: bytes(size)
  })));
  parts.push(
    draw("text",
      {x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle", text: "budget"}),
    draw("text", {x: left, y: 12, text: "overhead"}));
  return parts;
}

const CURVE_COLOURS = ["--saved", "--made-again", "--gradient", "--transient", "--workspace"];

/* A strategy: its points, and the line that falls from one to the next. */
function curveLine(scale, line, k) {
  const {x, y, tall, top} = scale;
  const colour = `var(${CURVE_COLOURS[k % CURVE_COLOURS.length]})`;
  const trace = draw("path", {
    d: line
         .map((plan, i) =>
                `${i ? `H${x(plan.budget)}V` : `M${x(plan.budget)} `}${y(overheadOf(plan))}`)
         .join(""),
    fill: "none",
    "stroke-width": 1.5
  });
  trace.style.stroke = colour;
  const marks = line.flatMap((plan) => {
    const share = overheadOf(plan);
    const label = `${plan.label}: ${percent(share)} overhead, peak ${bytes(plan.peak)}`;
    const mark = SHAPES[k % SHAPES.length](x(plan.budget), y(share));
    furnish(mark, {
      class: `point${plan === state.plan ? " chosen" : ""}`,
      tabindex: 0,
      role: "button",
      "aria-label": `Show ${label}`,
      onclick: () => choose(plan),
      onkeydown: (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          choose(plan);
        }
      }
    },
      [draw("title", {text: label})]);
    mark.style.fill = colour;
    return share > tall
      ? [mark, draw("text", {x: x(plan.budget) + 10, y: top + 18, text: `↑ ${percent(share)}`})]
      : [mark];
  });
  return [trace, ...marks];
}

function curveRows(list) {
  const row = (plan) => [make("button", {
    type: "button",
    className: "link",
    text: plan.report.strategy,
    onclick: () => choose(plan)
  }),
    bytes(plan.budget), bytes(plan.peak), plan.isWithin ? `+${percent(overheadOf(plan))}` : "–",
    plan.isWithin                            ? plan.report.outcome
      : plan.report.outcome === "infeasible" ? "proved: nothing fits"
                                             : "not found",
    plan.report.any_order_bound_cost === null ? ""
                                              : cost(plan.report.any_order_bound_cost, unit, 1),
    gapWords(plan.report)];
  return table("The points",
    [
      ["strategy", false], ["budget", true], ["peak", true], ["overhead", true], ["outcome", false],
      ["no plan below", true], ["how good", false]
    ],
    list.map(row));
}

function fillCurve() {
  if (!plans.some((plan) => plan.role === "curve")) {
    replace(section("curve"));
    return;
  }
  /* Made with the same options, so that the bound of one holds for all; a file may have others. */
  const list =
    plans.filter((plan) => plan !== keepAll && plan.budget !== null && plan.report.plan === null)
      .sort((a, b) => a.budget - b.budget);
  const fitting = list.filter((plan) => plan.isWithin);
  const names = [...new Set(list.map((plan) => plan.report.strategy))];
  const key = make("ul", {className: "legend"}, names.map((strategy, k) => {
    const mark = SHAPES[k % SHAPES.length](8, 8);
    mark.style.fill = `var(${CURVE_COLOURS[k % CURVE_COLOURS.length]})`;
    return make(
      "li", {}, draw("svg", {width: 16, height: 16, "aria-hidden": "true"}, mark), strategy);
  }),
    make("li", {}, make("span", {className: "swatch shaded"}), "proved: no plan can be here"));
  const box = make("div");
  const paint = () => {
    const scale = curveScale(fitting, Math.max(300, box.clientWidth));
    const picture = draw("svg", {
      width: scale.width,
      height: scale.height,
      role: "group",
      "aria-label": "Overhead against budget. The table below has the numbers"
    },
      curveRegion(scale, list), curveAxes(scale),
      names.flatMap((strategy, k) => curveLine(
                      scale, fitting.filter((plan) => plan.report.strategy === strategy), k)));
    replace(box, picture);
  };
  onRepaint(box, paint);
  replace(section("curve"), title("curve", "Curve"), make("p", {
    className: "lead",
    text:
      "What each budget costs. A point is a plan; choose one to see its timeline. No plan can lie in the shaded region: below the bound, or in less memory than one op needs."
  }),
    make("div", {className: "card"}, key, box), make("div", {className: "more"}), curveRows(list));
}
