"use strict";
/* base.js: numbers for people, and elements without markup.
 *
 * Names come from files that anybody may have written. Nothing in these scripts makes markup of
 * text: elements are made by `make`, and text is set as text. The Content-Security-Policy of the
 * page allows no other script, so that a mistake here would still run nothing. */

const KIB = 1024;
const JOIN = "\u00a0"; /* between a number and its unit: no line ends there */

/* Three digits, or one more: 20.5, 5.12, 742, 171.8. */
function short(x, more = 0) {
  const size = Math.abs(x);
  if (Number.isInteger(x)) return String(x);
  return x.toFixed((size >= 100 ? 0 : size >= 10 ? 1 : 2) + more);
}

/* Sizes of a chain may have a unit of their own; null: they are bytes. */
let sizeUnit = null;

function bytes(n) {
  if (n === null || n === undefined) return "?";
  if (sizeUnit !== null) return `${count(n)}${sizeUnit ? JOIN + sizeUnit : ""}`;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  let x = n;
  while (Math.abs(x) >= 999.5 && unit + 1 < units.length) {
    x /= KIB;
    unit++;
  }
  return `${short(x)}${JOIN}${units[unit]}`;
}

/* Costs in ns are told as times. */
function cost(n, unit, more = 0) {
  if (n === null || n === undefined) return "?";
  if (unit !== "ns") return `${count(n)}${unit && unit !== "given" ? JOIN + unit : ""}`;
  const units = ["ns", "µs", "ms", "s"];
  let at = 0;
  let x = n;
  while (Math.abs(x) >= 999.5 && at + 1 < units.length) {
    x /= 1000;
    at++;
  }
  return `${short(x, more)}${JOIN}${units[at]}`;
}

function count(n) { return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f"); }
function percent(share) {
  const x = 100 * share;
  return `${Math.abs(x) < 10 ? x.toFixed(2) : x.toFixed(1)}${JOIN}%`;
}
/* 1, 2 or 5 times a power of ten, so that at most `most` of them make `size`. */
function roundStep(size, most) {
  const power = 10 ** Math.floor(Math.log10(size / most));
  return power * [1, 2, 5, 10].find((digit) => power * digit * most >= size * (1 - 1e-9));
}

/* Round sizes from 0 up to `size`, at most five of them and 0. */
function roundSizes(size) {
  const unit =
    sizeUnit === null ? KIB ** Math.max(0, Math.floor(Math.log(size) / Math.log(KIB) + 1e-9)) : 1;
  const step = Math.max(1, roundStep(size / unit, 5) * unit);
  return Array.from({length: Math.floor(size / step + 1e-9) + 1}, (_, i) => i * step);
}

function plural(n, word) { return `${count(n)} ${word}${n === 1 ? "" : "s"}`; }

/* An element. Properties are set, "on..." are listeners, "aria-..." and the like attributes;
 * children are elements or text. */
function make(tag, properties, ...children) {
  return furnish(document.createElement(tag), properties, children);
}

function draw(tag, properties, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function furnish(element, properties, children) {
  for (const [key, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "text") element.textContent = value;
    else if (key in element && !(element instanceof SVGElement) && !key.includes("-"))
      element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function name(text) { return make("span", {className: "name", text, title: text}); }

function replace(element, ...children) {
  element.replaceChildren(...children.flat().filter(Boolean));
}

/* A table with a heading; columns are [title, is a number]; rows are arrays of text or elements. */
function table(caption, columns, rows) {
  const heads = columns.map(([title, isNumber]) => make("th",
                              {scope: "col", className: isNumber ? "number" : "", text: title}));
  const body =
    rows.map((row) => make("tr", {},
               row.map((cell, i) => make("td", {className: columns[i][1] ? "number" : ""}, cell))));
  return make("div", {className: "scroll", tabIndex: 0, role: "region", "aria-label": caption},
    make("table", {}, make("caption", {}, make("span", {text: caption})),
      make("thead", {}, make("tr", {}, heads)), make("tbody", {}, body)));
}

/* The same for many rows: the first of them, and a button. Rows are made when they are shown. */
function longTable(caption, columns, items, toRow, first) {
  const box = make("div");
  const fill = (n) => replace(box, table(caption, columns, items.slice(0, n).map(toRow)),
    items.length > n ? make("button", {
      type: "button",
      className: "more",
      text: `Show ${count(items.length - n)} more`,
      onclick: () => fill(items.length)
    })
                     : null);
  fill(first);
  return box;
}

/* A table behind a picture, made when it is opened. */
function tableBehind(label, build) {
  const box = make("details", {}, make("summary", {text: label}));
  let shown = null;
  const refresh = () => {
    if (!box.open) return;
    const fresh = build();
    if (shown) shown.replaceWith(fresh);
    else box.append(fresh);
    shown = fresh;
  };
  box.addEventListener("toggle", refresh);
  box.refresh = refresh;
  return box;
}
