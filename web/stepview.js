"use strict";
/* stepview.js: pictures over the steps of a plan, on a canvas: what they share (a window of steps,
 * zoom, pan, a cursor), and the two of them.
 *
 * Mouse: hover moves the cursor, a click pins, a drag pans; where all is in view, it chooses a
 * range. The wheel zooms once the picture has the focus, so that it never catches a page that
 * scrolls by. Touch: one finger pans, two zoom. Keyboard: arrows, Home, End, page keys, + - 0, P,
 * Enter. To a screen reader a picture is a slider whose value is the step.
 *
 * Down-sampling: where a column of pixels stands for several steps, the stack of its highest step
 * is drawn, and what lies above the column's lowest step is pale. So no peak is ever lost, and from
 * one step a pixel on the picture is exact. Cost: one pass over the steps in view for each drawing.
 */

const PATTERN = {
  resident: null,
  saved: "/",
  gradient: "-",
  "made-again": "\\",
  transient: ".",
  workspace: "x"
};
let palette = {};

/* The colours in effect, and a pattern for each kind. */
function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (key) => style.getPropertyValue(`--${key}`).trim();
  palette = {patterns: {}};
  for (const key of ["paper", "card", "ink", "soft", "line", "accent", "bad", ...KINDS])
    palette[key] = colour(key);
  for (const kind of KINDS)
    palette.patterns[kind] = patternOf(palette[kind], PATTERN[kind], palette.card);
}

function patternOf(colour, mark, ink) {
  const tile = make("canvas", {width: 8, height: 8});
  const c = tile.getContext("2d");
  c.fillStyle = colour;
  c.fillRect(0, 0, 8, 8);
  c.strokeStyle = c.fillStyle = ink;
  c.globalAlpha = mark === "\\" ? 0.55 : 0.3;
  c.lineWidth = mark === "\\" ? 1.6 : 1;
  c.beginPath();
  if (mark === "/" || mark === "x") {
    c.moveTo(-1, 9);
    c.lineTo(9, -1);
    c.moveTo(-1, 1);
    c.lineTo(1, -1);
    c.moveTo(7, 9);
    c.lineTo(9, 7);
  }
  if (mark === "\\" || mark === "x") {
    c.moveTo(-1, -1);
    c.lineTo(9, 9);
    c.moveTo(7, -1);
    c.lineTo(9, 1);
    c.moveTo(-1, 7);
    c.lineTo(1, 9);
  }
  if (mark === "-") {
    c.moveTo(0, 2.5);
    c.lineTo(8, 2.5);
    c.moveTo(0, 6.5);
    c.lineTo(8, 6.5);
  }
  c.stroke();
  if (mark === ".") {
    c.fillRect(1, 1, 1.5, 1.5);
    c.fillRect(5, 5, 1.5, 1.5);
  }
  return c.createPattern(tile, "repeat");
}

function swatch(kind) {
  const box = make("canvas", {className: "swatch", width: 28, height: 28, "aria-hidden": "true"});
  const paint = () => {
    const c = box.getContext("2d");
    c.setTransform(2, 0, 0, 2, 0, 0);
    c.fillStyle = palette.patterns[kind];
    c.fillRect(0, 0, 14, 14);
  };
  paint();
  onRepaint(box, paint);
  return box;
}

/* What a change of colours or of size draws again, as long as its element is in the page. */
let repaints = [];

function onRepaint(element, paint) { repaints.push({element, paint}); }

function repaint() {
  repaints = repaints.filter(({element}) => element.isConnected);
  for (const {paint} of repaints) paint();
}

class StepView {
  constructor(plan, {height, title, onPin, onMove}) {
    this.plan = plan;
    this.height = height;
    this.left = 64;
    this.right = 12;
    this.onPin = onPin || (() => {});
    this.onMove = onMove || (() => {});
    this.from = 0;
    this.to = plan.n;
    this.cursor = plan.peakStep;
    this.pinned = -1;
    this.echo = -1; /* where the op runs first that the cursor of another picture is at */
    this.pointers = new Map();
    this.canvas = make("canvas",
      {className: "canvas", tabIndex: 0, role: "slider", "aria-label": title, "aria-valuemin": 0});
    this.readout = make("p", {className: "readout", "aria-live": "polite"});
    this.behind = tableBehind("Table of what is in view", () => this.table());
    this.listen();
    this.element = make("div", {}, this.canvas, this.readout, this.behind);
  }

  buttons() {
    const button = (text, label, act) =>
      make("button", {type: "button", text, "aria-label": label, title: label, onclick: act});
    return make("span", {className: "zoom"}, button("−", "Zoom out", () => this.zoom(2)),
      button("+", "Zoom in", () => this.zoom(0.5)),
      button("All", "Show all steps", () => this.show(0, this.plan.n)),
      button("Peak", "Zoom to the peak", () => this.zoomTo(this.plan.peakStep)));
  }

  /* ---- window and cursor ---- */

  get width() { return this.canvas.clientWidth || 600; }
  get inner() { return this.width - this.left - this.right; }
  x(step) { return this.left + ((step - this.from) / (this.to - this.from)) * this.inner; }
  stepAt(x) { return this.from + ((x - this.left) / this.inner) * (this.to - this.from); }
  clamp(step) { return Math.max(0, Math.min(this.plan.n - 1, Math.floor(step))); }

  show(from, to) {
    const least = Math.min(8, this.plan.n);
    const size = Math.max(least, Math.min(this.plan.n, to - from));
    this.from = Math.max(0, Math.min(this.plan.n - size, from));
    this.to = this.from + size;
    this.paint();
    this.behind.refresh();
  }

  zoom(factor, around = this.cursor + 0.5) {
    const share =
      (Math.max(this.from, Math.min(this.to, around)) - this.from) / (this.to - this.from);
    const size = (this.to - this.from) * factor;
    this.show(around - share * size, around + (1 - share) * size);
  }

  zoomTo(step) {
    const size = Math.max(24, this.plan.n / 20);
    this.setCursor(step);
    this.show(step + 0.5 - size / 2, step + 0.5 + size / 2);
  }

  setCursor(step) {
    if (!this.plan.n) return;
    this.cursor = this.clamp(step);
    this.tell();
    this.paint();
    this.onMove(this.cursor);
  }

  /* The cursor, and the window behind it if it leaves. */
  moveTo(step) {
    this.setCursor(step);
    const size = this.to - this.from;
    if (this.cursor < this.from) this.show(this.cursor, this.cursor + size);
    else if (this.cursor + 1 > this.to) this.show(this.cursor + 1 - size, this.cursor + 1);
  }

  pin(step = this.cursor) {
    this.pinned = this.clamp(step);
    this.setCursor(this.pinned);
    this.onPin(this.pinned);
  }

  tell() {
    replace(this.readout, this.words(this.cursor));
    this.canvas.setAttribute("aria-valuemax", String(Math.max(0, this.plan.n - 1)));
    this.canvas.setAttribute("aria-valuenow", String(this.cursor));
    this.canvas.setAttribute("aria-valuetext", this.readout.textContent);
  }

  /* ---- listeners ---- */

  listen() {
    const c = this.canvas;
    c.addEventListener("keydown", (event) => this.onKey(event));
    c.addEventListener("wheel", (event) => this.onWheel(event), {passive: false});
    c.addEventListener("pointerdown", (event) => this.onDown(event));
    c.addEventListener("pointermove", (event) => this.onMoved(event));
    c.addEventListener("pointerup", (event) => this.onUp(event));
    c.addEventListener("pointercancel", (event) => {
      this.pointers.delete(event.pointerId);
      this.drag = null;
    });
    c.addEventListener("dblclick", () => this.zoom(0.25));
    onRepaint(c, () => this.paint());
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.round((this.to - this.from) / 10));
    const one = event.shiftKey ? page : 1;
    const act = {
      ArrowLeft: () => this.moveTo(this.cursor - one),
      ArrowRight: () => this.moveTo(this.cursor + one),
      PageUp: () => this.moveTo(this.cursor - page),
      PageDown: () => this.moveTo(this.cursor + page),
      Home: () => this.moveTo(0),
      End: () => this.moveTo(this.plan.n - 1),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      0: () => this.show(0, this.plan.n),
      p: () => this.moveTo(this.plan.peakStep),
      P: () => this.moveTo(this.plan.peakStep),
      Enter: () => this.pin(),
      " ": () => this.pin(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  onWheel(event) {
    if (document.activeElement !== this.canvas && !event.ctrlKey) return;
    event.preventDefault();
    const size = this.to - this.from;
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY))
      this.show(
        this.from + (sideways / this.inner) * size, this.to + (sideways / this.inner) * size);
    else this.zoom(Math.exp(event.deltaY * 0.002), this.stepAt(this.at(event)));
  }

  at(event) { return event.clientX - this.canvas.getBoundingClientRect().left; }

  onDown(event) {
    this.pointers.set(event.pointerId, this.at(event));
    this.canvas.setPointerCapture(event.pointerId);
    const isAll = this.to - this.from >= this.plan.n;
    this.drag = {
      x: this.at(event),
      from: this.from,
      to: this.to,
      moved: false,
      range: isAll && event.pointerType === "mouse"
    };
  }

  onMoved(event) {
    const x = this.at(event);
    if (this.pointers.size === 2 && this.pointers.has(event.pointerId)) {
      this.pinch(event.pointerId, x);
      return;
    }
    if (!this.drag || !this.pointers.has(event.pointerId)) {
      this.setCursor(this.stepAt(x));
      return;
    }
    if (Math.abs(x - this.drag.x) > 4) this.drag.moved = true;
    if (!this.drag.moved) return;
    if (this.drag.range) {
      this.selection = [this.drag.x, x];
      this.paint();
      return;
    }
    const steps = ((this.drag.x - x) / this.inner) * (this.drag.to - this.drag.from);
    this.show(this.drag.from + steps, this.drag.to + steps);
  }

  pinch(id, x) {
    const [other] = [...this.pointers].filter(([key]) => key !== id).map(([, at]) => at);
    const before = Math.abs(this.pointers.get(id) - other);
    const after = Math.abs(x - other);
    this.pointers.set(id, x);
    if (this.drag) this.drag.moved = true;
    if (before > 8 && after > 8) this.zoom(before / after, this.stepAt((x + other) / 2));
  }

  onUp(event) {
    const x = this.at(event);
    const drag = this.drag;
    this.pointers.delete(event.pointerId);
    this.drag = null;
    if (drag && !drag.moved) this.pin(this.stepAt(x));
    if (drag && drag.moved && drag.range) {
      const [a, b] = [drag.x, x].map((at) => this.stepAt(at)).sort((p, q) => p - q);
      this.selection = null;
      this.show(a, b);
    }
  }

  /* ---- drawing ---- */

  paint() {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.width, this.height];
    const c = this.canvas.getContext("2d");
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.font = "12px system-ui, sans-serif";
    this.c = c;
    if (!this.plan.n) return;
    this.paintGrid();
    c.save();
    c.beginPath();
    c.rect(this.left, 0, this.inner, height);
    c.clip();
    this.paintBody();
    c.restore();
    this.paintMarks();
  }

  get top() { return 36; }
  get bottom() { return this.height - 22; }
  y(amount) { return this.bottom - (amount / this.scale) * (this.bottom - this.top); }

  text(string, x, y, align = "left", colour = palette.soft) {
    this.c.textAlign = align;
    this.c.fillStyle = colour;
    this.c.fillText(string, x, y);
  }

  /* Text with the colour of the card behind it. */
  label(string, x, y, align, colour) {
    const width = this.c.measureText(string).width;
    const left = align === "center" ? x - width / 2 : align === "right" ? x - width : x;
    this.c.globalAlpha = 0.85;
    this.c.fillStyle = palette.card;
    this.c.fillRect(left - 3, y - 11, width + 6, 15);
    this.c.globalAlpha = 1;
    this.text(string, x, y, align, colour);
  }

  rule(x1, y1, x2, y2, colour, dash = []) {
    const c = this.c;
    c.strokeStyle = colour;
    c.setLineDash(dash);
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
    c.stroke();
    c.setLineDash([]);
  }

  /* Where lines cross the picture, and what stands beside them. */
  levels() { return roundSizes(this.scale).map((amount) => [amount, bytes(amount)]); }

  paintGrid() {
    for (const [amount, text] of this.levels()) {
      const y = Math.round(this.y(amount)) + 0.5;
      this.rule(this.left, y, this.left + this.inner, y, palette.line);
      this.text(text, this.left - 8, y + 4, "right");
    }
    const every =
      Math.max(1, roundStep(this.to - this.from, Math.max(2, Math.floor(this.inner / 90))));
    const right = this.left + this.inner;
    let word = "step ";
    for (let step = Math.ceil(this.from / every) * every; step + 0.5 < this.to; step += every) {
      const x = this.x(step + 0.5);
      if (x < this.left + 24) this.text(word + step, this.left, this.height - 6, "left");
      else if (x > right - 24) this.text(word + step, right, this.height - 6, "right");
      else this.text(word + step, x, this.height - 6, "center");
      word = "";
    }
  }

  /* How high the lines of cursor and pin reach. */
  lineTop() { return this.top; }

  paintMarks() {
    const {c, plan} = this;
    const inView = (step) => step >= this.from && step < this.to;
    const middle = (step) => this.x(step + 0.5);
    if (plan.boundary > this.from && plan.boundary < this.to) {
      const x = Math.round(this.x(plan.boundary)) + 0.5;
      this.rule(x, 2, x, this.bottom, palette.soft, [2, 3]);
      if (x - this.left > 70) this.text("forward", x - 6, 12, "right");
      if (this.left + this.inner - x > 76) this.text("backward", x + 6, 12, "left");
    }
    if (this.echo >= 0 && inView(this.echo)) {
      const x = middle(this.echo);
      c.fillStyle = palette.accent;
      c.beginPath();
      c.moveTo(x - 5, this.top - 8);
      c.lineTo(x + 5, this.top - 8);
      c.lineTo(x, this.top);
      c.fill();
    }
    if (this.pinned >= 0 && inView(this.pinned))
      this.rule(middle(this.pinned), this.lineTop(this.pinned), middle(this.pinned), this.bottom,
        palette.accent);
    if (inView(this.cursor))
      this.rule(middle(this.cursor), this.lineTop(this.cursor), middle(this.cursor), this.bottom,
        palette.ink, [1, 2]);
    if (this.selection) {
      c.globalAlpha = 0.15;
      c.fillStyle = palette.accent;
      c.fillRect(Math.min(...this.selection), this.top,
        Math.abs(this.selection[1] - this.selection[0]), this.bottom - this.top);
      c.globalAlpha = 1;
    }
  }
}

/* Memory over steps, stacked by kind. */
class Timeline extends StepView {
  constructor(plan, options) {
    super(plan, {height: 250, ...options});
    this.scale = options.scale || plan.peak || 1;
    this.budget = options.budget === undefined ? plan.budget : options.budget;
    this.tell();
  }

  words(t) {
    const {plan} = this;
    if (!plan.n) return [make("span", {text: "no steps"})];
    const parts = KINDS.map((kind, k) => [kind, plan.memory[k][t]])
                    .filter(([, amount]) => amount > 0)
                    .sort((a, b) => b[1] - a[1]);
    const note = plan.stepNote(t);
    return [make("span", {}, "step ", make("b", {text: String(t)}), " · ", name(plan.stepName(t)),
      note ? ` ${note}` : "", " · ", make("b", {text: bytes(plan.total[t])}), " in memory: ",
      parts.map(([kind, amount]) => `${bytes(amount)} ${KIND_WORDS[kind]}`).join(", "))];
  }

  /* Not above the stack: there a line would look like memory. */
  lineTop(t) { return this.y(this.plan.total[t]); }

  /* By column of pixels: the step with the most memory, and the least memory of its steps. */
  columns() {
    const ratio = window.devicePixelRatio || 1;
    const n = Math.max(1, Math.round(this.inner * ratio));
    const per = (this.to - this.from) / n;
    const columns = [];
    for (let i = 0; i < n; i++) {
      const first = this.clamp(this.from + (per < 1 ? i + 0.5 : i) * per);
      const last =
        per < 1 ? first : Math.max(first, this.clamp(Math.ceil(this.from + (i + 1) * per) - 1));
      let most = first;
      let least = this.plan.total[first];
      for (let t = first + 1; t <= last; t++) {
        if (this.plan.total[t] > this.plan.total[most]) most = t;
        if (this.plan.total[t] < least) least = this.plan.total[t];
      }
      columns.push({x: this.left + i / ratio, width: 1 / ratio, step: most, least});
    }
    return columns;
  }

  paintBody() {
    const {c, plan} = this;
    const columns = this.columns();
    const base = new Float64Array(columns.length);
    const edge = (i, amount) => {
      const y = this.y(amount);
      c.lineTo(columns[i].x, y);
      c.lineTo(columns[i].x + columns[i].width, y);
    };
    KINDS.forEach((kind, k) => {
      c.beginPath();
      c.moveTo(columns[0].x, this.y(base[0]));
      columns.forEach((column, i) => edge(i, base[i] + plan.memory[k][column.step]));
      for (let i = columns.length - 1; i >= 0; i--) {
        c.lineTo(columns[i].x + columns[i].width, this.y(base[i]));
        c.lineTo(columns[i].x, this.y(base[i]));
      }
      c.fillStyle = palette.patterns[kind];
      c.fill();
      columns.forEach((column, i) => { base[i] += plan.memory[k][column.step]; });
    });
    c.globalAlpha = 0.5;
    c.fillStyle = palette.card;
    columns.forEach((column, i) => {
      if (column.least < base[i])
        c.fillRect(column.x, this.y(base[i]), column.width, this.y(column.least) - this.y(base[i]));
    });
    c.globalAlpha = 1;
    c.strokeStyle = palette.ink;
    c.lineWidth = 1;
    c.beginPath();
    columns.forEach((column, i) => edge(i, base[i]));
    c.globalAlpha = 0.6;
    c.stroke();
    c.globalAlpha = 1;
  }

  paintMarks() {
    super.paintMarks();
    const {plan} = this;
    const right = this.left + this.inner;
    if (this.budget !== null && this.budget <= this.scale * 1.001) {
      const y = Math.round(this.y(this.budget)) + 0.5;
      this.rule(this.left, y, right, y, palette.bad, [6, 4]);
      const onLeft =
        this.x(plan.peakStep) > this.left + this.inner / 2; /* not where the peak has its label */
      this.label(`budget ${bytes(this.budget)}`, onLeft ? this.left + 6 : right - 6, y - 5,
        onLeft ? "left" : "right", palette.bad);
    }
    if (plan.peakStep >= this.from && plan.peakStep < this.to) {
      const x = this.x(plan.peakStep + 0.5);
      const y = this.y(plan.peak);
      this.c.fillStyle = palette.ink;
      this.c.beginPath();
      this.c.arc(x, y, 3.5, 0, 7);
      this.c.fill();
      const align = x > right - 90 ? "right" : x < this.left + 90 ? "left" : "center";
      this.label(`peak ${bytes(plan.peak)}`,
        x +
          (align === "left"       ? 8
              : align === "right" ? -8
                                  : 0),
        align === "center" ? Math.max(27, y - 8) : y + 4, align, palette.ink);
    }
  }

  /* Up to 100 rows: the step with the most memory of each hundredth of what is in view. */
  table() {
    const {plan} = this;
    const size = (this.to - this.from) / Math.min(100, this.to - this.from);
    const rows = [];
    for (let at = this.from; at < this.to - 1e-6; at += size) {
      let most = this.clamp(at);
      for (let t = most; t <= this.clamp(at + size - 1e-6); t++)
        if (plan.total[t] > plan.total[most]) most = t;
      rows.push([
        String(most), name(plan.stepName(most)), bytes(plan.total[most]),
        ...KINDS.map((kind, k) => bytes(plan.memory[k][most]))
      ]);
    }
    const columns = [
      ["step", true], ["op", false], ["in memory", true],
      ...KINDS.map((kind) => [KIND_WORDS[kind], true])
    ];
    return table(`${plan.label}: steps ${this.clamp(this.from)} to ${
                   this.clamp(this.to - 1)}, the highest of each part`,
      columns, rows);
  }
}

/* Where everything lies in the arena of a placed plan: time across, addresses up. */
class Addresses extends StepView {
  constructor(plan, options) {
    super(plan, {height: 380, ...options});
    this.scale = plan.placement.arenaBytes || 1;
    this.workspaces = new Map(plan.placement.workspaces);
    this.pointed = -1;
    this.canvas.addEventListener("pointermove", (event) => {
      const y = event.clientY - this.canvas.getBoundingClientRect().top;
      this.address = ((this.bottom - y) / (this.bottom - this.top)) * this.scale;
      this.tell();
    });
    this.tell();
  }

  spanAt(t, address) {
    const {plan} = this;
    for (let i = 0; i < plan.tensor.length; i++) {
      const offset = plan.placement.offsets[i];
      if (plan.begin[i] <= t && plan.end[i] >= t && offset <= address &&
        address < offset + plan.graph.tensors.bytes[plan.tensor[i]])
        return i;
    }
    return -1;
  }

  words(t) {
    const {plan} = this;
    const found = this.address === undefined ? -1 : this.spanAt(t, this.address);
    const what = found < 0 ? [] : [
      " · ", name(plan.graph.tensorName(plan.tensor[found])),
      `: ${bytes(plan.graph.tensors.bytes[plan.tensor[found]])} at ${
        count(plan.placement.offsets[found])}, steps ${plan.begin[found]} to ${plan.end[found]}, ` +
        KIND_WORDS[KINDS[plan.kind[found]]]
    ];
    return [make(
      "span", {}, "step ", make("b", {text: String(t)}), " · ", name(plan.stepName(t)), what)];
  }

  block(begin, end, offset, size, kind) {
    const {c} = this;
    const x = this.x(begin);
    const width = Math.max(0.5, this.x(end + 1) - x);
    const y = this.y(offset + size);
    const height = Math.max(0.5, this.y(offset) - y);
    c.fillStyle = palette.patterns[KINDS[kind]];
    c.fillRect(x, y, width, height);
    if (width > 3 && height > 3) {
      c.strokeStyle = palette.card;
      c.lineWidth = 0.5;
      c.strokeRect(x, y, width, height);
    }
  }

  paintBody() {
    const {plan} = this;
    const sizes = plan.graph.tensors.bytes;
    for (let i = 0; i < plan.tensor.length; i++) {
      if (plan.end[i] < this.from || plan.begin[i] >= this.to) continue;
      this.block(
        plan.begin[i], plan.end[i], plan.placement.offsets[i], sizes[plan.tensor[i]], plan.kind[i]);
    }
    for (const [step, offset] of this.workspaces)
      if (step >= this.from && step < this.to)
        this.block(step, step, offset, plan.memory[WORKSPACE][step], WORKSPACE);
    this.c.lineWidth = 1;
  }

  /* The 100 largest in view. */
  table() {
    const {plan} = this;
    const sizes = plan.graph.tensors.bytes;
    const list = [...plan.tensor.keys()]
                   .filter((i) => plan.end[i] >= this.from && plan.begin[i] < this.to)
                   .sort((a, b) => sizes[plan.tensor[b]] - sizes[plan.tensor[a]])
                   .slice(0, 100);
    return table("The largest in view",
      [
        ["tensor", false], ["bytes", true], ["offset", true], ["from step", true],
        ["to step", true], ["kind", false]
      ],
      list.map((i) => [name(plan.graph.tensorName(plan.tensor[i])), count(sizes[plan.tensor[i]]),
                 count(plan.placement.offsets[i]), String(plan.begin[i]), String(plan.end[i]),
                 KIND_WORDS[KINDS[plan.kind[i]]]]));
  }
}
