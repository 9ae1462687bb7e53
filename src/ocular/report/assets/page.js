"use strict";
// The page's choices (world, map, methods, light or dark) and its plots; drives.js draws the drives.
const report = JSON.parse(document.getElementById("data").textContent);
const state = { world: report.order[0], map: null, hidden: new Set() };
const root = document.documentElement;

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const world = () => report.worlds[state.world];
const section = () => document.getElementById("world-" + state.world);
const shown = (method) => !state.hidden.has(method);

const SYMBOLS = {
  x: "M3 3L11 11M11 3L3 11", square: "M3 3H11V11H3Z", diamond: "M7 1.5L12.5 7L7 12.5L1.5 7Z",
  circle: "M7 2A5 5 0 1 0 7 12A5 5 0 1 0 7 2Z", cross: "M7 1.5V12.5M1.5 7H12.5",
  star: "M7 1L8.7 5.2L13 5.4L9.6 8.2L10.8 12.6L7 10.1L3.2 12.6L4.4 8.2L1 5.4L5.3 5.2Z",
};
function mark(look) {
  const path = SYMBOLS[look.symbol] || SYMBOLS.circle;
  const line = look.symbol === "x" || look.symbol === "cross";
  const span = make("span");
  span.innerHTML = `<svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true"><path d="${path}" ` +
    (line ? `stroke="${look.colour}" stroke-width="3"` : `fill="${look.colour}"`) + "/></svg>";
  return span.firstChild;
}

function picks(holder, name, values, current, choose) {
  holder.replaceChildren();
  if (values.length < 2 && holder.id === "world-choice") return;
  holder.append(make("span", { class: "name" }, name));
  for (const [value, text] of values) {
    const button = make("button", { class: "pick", type: "button", "aria-pressed": value === current, "data-value": value }, text);
    button.onclick = () => choose(value);
    holder.append(button);
  }
}

function bar() {
  picks(document.getElementById("world-choice"), "World", report.order.map((w) => [w, report.worlds[w].title]),
    state.world, (w) => { state.world = w; state.map = null; draw(); });
  picks(document.getElementById("map-choice"), "Map", world().maps.map((m) => [m, m]), state.map,
    (m) => { state.map = m; draw(); });
  const holder = document.getElementById("method-choice");
  const at = holder.scrollLeft;
  holder.replaceChildren();
  for (const method of world().methods) {
    const look = report.looks[method];
    const chip = make("button", { class: "chip", type: "button", "aria-pressed": shown(method), "data-method": method },
      mark(look), look.name);
    chip.onclick = () => {
      if (shown(method)) state.hidden.add(method); else state.hidden.delete(method);
      draw();
    };
    holder.append(chip);
  }
  holder.scrollLeft = at;
}

function plot(div, spec) {
  const soft = css("--soft"), grid = css("--grid");
  const axis = (a) => ({ gridcolor: grid, linecolor: grid, automargin: true, fixedrange: true, ...a,
    title: { ...a.title, font: { size: 12 }, standoff: 8 } });
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest",
    font: { family: "system-ui, sans-serif", size: 12, color: soft }, margin: { l: 52, r: 10, t: 8, b: 44 },
    showlegend: false,
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--text") } },
    shapes: spec.layout.shapes, xaxis: axis(spec.layout.xaxis), yaxis: axis(spec.layout.yaxis),
  };
  const traces = spec.data.filter((trace) => !trace.meta || shown(trace.meta));
  Plotly.react(div, traces, layout, { displayModeBar: false, responsive: true });
}

function figures() {
  for (const [key, figure] of Object.entries(world().figures)) {
    const block = document.getElementById(`${state.world}-${key}`);
    const panels = (figure[state.map] || []).filter((p) => !p.method || shown(p.method));
    const holder = block.querySelector(".panels");
    block.querySelector(".none").hidden = panels.length > 0;
    while (holder.children.length > panels.length) {
      Plotly.purge(holder.lastChild.querySelector(".plot"));
      holder.lastChild.remove();
    }
    fill(holder, panels.length);  // all of them before the first plot: it measures the room that it has
    panels.forEach((panel, i) => {
      holder.children[i].querySelector("figcaption").textContent = panel.title;
      plot(holder.children[i].querySelector(".plot"), panel);
    });
  }
}

function fill(holder, count) {
  while (holder.children.length < count) {
    holder.append(make("figure", { class: "panel" }, make("figcaption"), make("div", { class: "plot" })));
  }
}

function draw() {
  if (!world().maps.includes(state.map)) state.map = world().maps[0];
  for (const name of report.order) document.getElementById("world-" + name).hidden = name !== state.world;
  bar();
  for (const row of section().querySelectorAll("tr[data-method]")) row.hidden = !shown(row.dataset.method);
  for (const cell of section().querySelectorAll("[data-map-name]")) cell.textContent = state.map;
  figures();
  drawDrives();
}

function explain(cell) {
  const table = cell.closest(".compared");
  for (const other of table.querySelectorAll("td.chosen")) other.classList.remove("chosen");
  cell.classList.add("chosen");
  table.querySelector(".why").textContent = cell.dataset.why;
}

function theme(dark) {
  root.dataset.theme = dark ? "dark" : "light";
}

for (const span of document.querySelectorAll(".mark")) {
  span.prepend(mark({ symbol: span.dataset.symbol, colour: span.dataset.colour }));
}
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
prefersDark.addEventListener("change", (event) => { theme(event.matches); draw(); });
document.getElementById("theme").onclick = () => { theme(root.dataset.theme !== "dark"); draw(); };
document.addEventListener("click", (event) => {
  const cell = event.target.closest && event.target.closest("td[data-why]");
  if (cell) explain(cell);
});
document.addEventListener("focusin", (event) => { if (event.target.matches("td[data-why]")) explain(event.target); });
