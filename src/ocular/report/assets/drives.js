// Drives on their map, one canvas a method, speed as colour; a chosen drive can be played.
const player = { episode: null, time: null, timer: null };
const unpacked = new Map();
const MARGIN = { left: 34, bottom: 34, top: 4, right: 9 };

function unpack(drive) {
  if (!unpacked.has(drive)) {
    const bytes = Uint8Array.from(atob(drive.data), (c) => c.charCodeAt(0));
    const n = drive.steps + 1;
    const [x, y, speed, scale] = [0, 1, 2, 3].map((i) => new Uint16Array(bytes.buffer, 2 * i * n, n));
    unpacked.set(drive, { x, y, speed, scale });
  }
  return unpacked.get(drive);
}

const drivesHere = () => world().drives && world().drives.maps[state.map];

function episodes(here) {
  const every = Object.values(here.methods).flat().map((drive) => drive.episode);
  return [...new Set(every)].sort((a, b) => a - b);
}

function drawDrives() {
  const block = document.getElementById(state.world + "-drives");
  if (!block) return;
  const here = drivesHere();
  block.querySelector(".none").hidden = Boolean(here);
  block.querySelector(".player").hidden = !here;
  const grid = block.querySelector(".grid-drives");
  if (!here) { grid.replaceChildren(); block.querySelector(".series").replaceChildren(); return; }
  const known = episodes(here);
  if (!known.includes(player.episode)) player.episode = null;
  const select = block.querySelector("select");
  select.replaceChildren(make("option", { value: "" }, "all drives"), ...known.map((e) => make("option", { value: e }, `drive ${e}`)));
  select.value = player.episode === null ? "" : player.episode;
  block.querySelector(".ramp").style.background = `linear-gradient(90deg, ${report.speeds.join(",")})`;
  block.querySelector(".fastest").textContent = here.fastest.toFixed(1) + " m/s";
  const methods = Object.keys(here.methods).filter(shown);
  while (grid.children.length > methods.length) grid.lastChild.remove();
  while (grid.children.length < methods.length) {
    const canvas = make("canvas", { role: "img" });
    canvas.onclick = nearest;
    grid.append(make("figure", { class: "panel" }, make("figcaption"), canvas));
  }
  methods.forEach((method, i) => {
    const drives = here.methods[method];
    const caption = grid.children[i].querySelector("figcaption");
    const arrived = drives.filter((d) => d.outcome === "success").length;
    const result = make("span", { class: "result" }, ` ${arrived} of ${drives.length} arrive`);
    caption.replaceChildren(mark(report.looks[method]), " ", report.looks[method].name, result);
    const canvas = grid.children[i].querySelector("canvas");
    canvas.dataset.method = method;
    canvas.setAttribute("aria-label", `${report.looks[method].name} on map ${state.map}: ${arrived} of ${drives.length} drives arrive`);
    paint(canvas, here, drives);
  });
  series(block, here, methods, known);
}

const pictures = new Map();
function picture(source) {
  if (!pictures.has(source)) {
    const image = new Image();
    image.onload = () => drawDrives();
    image.src = source;
    pictures.set(source, image);
  }
  return pictures.get(source);
}

function paint(canvas, here, drives) {
  const [x0, x1, y0, y1] = here.box, ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, plotWidth = width - MARGIN.left - MARGIN.right;
  const plotHeight = plotWidth * (y1 - y0) / (x1 - x0), height = plotHeight + MARGIN.top + MARGIN.bottom;
  canvas.style.height = height + "px";
  canvas.width = width * ratio; canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.fillStyle = "#f2f0ea";
  pen.fillRect(MARGIN.left, MARGIN.top, plotWidth, plotHeight);
  if (here.ground) {
    const image = picture(here.ground);
    pen.imageSmoothingEnabled = false;
    if (image.complete) pen.drawImage(image, MARGIN.left, MARGIN.top, plotWidth, plotHeight);
  }
  axes(pen, here.box, plotWidth, plotHeight);
  const px = (v) => MARGIN.left + v / 65535 * plotWidth, py = (v) => MARGIN.top + (1 - v / 65535) * plotHeight;
  pen.save();
  pen.beginPath(); pen.rect(MARGIN.left, MARGIN.top, plotWidth, plotHeight); pen.clip();
  subgoals(pen, here, plotWidth, plotHeight);
  const chosen = player.episode;
  for (const drive of drives) if (drive.episode !== chosen) line(pen, drive, here, px, py, chosen === null ? 1.4 : 0.8, chosen === null ? 0.9 : 0.18);
  for (const drive of drives) if (drive.episode === chosen) line(pen, drive, here, px, py, 2.6, 1);
  pen.restore();
  for (const drive of drives) if (chosen === null || drive.episode === chosen) end(pen, drive, px, py);
}

function subgoals(pen, { box: [x0, x1, y0, y1], route }, width, height) {
  pen.strokeStyle = report.outcomes.success; pen.lineWidth = 1;
  for (const [x, y] of route.slice(1)) {
    pen.beginPath();
    pen.arc(MARGIN.left + (x - x0) / (x1 - x0) * width, MARGIN.top + (1 - (y - y0) / (y1 - y0)) * height, 3.5, 0, 2 * Math.PI);
    pen.stroke();
  }
}

function axes(pen, [x0, x1, y0, y1], width, height) {
  const step = [0.5, 1, 2, 5, 10, 20].find((s) => (x1 - x0) / s <= 6) || 50;
  pen.fillStyle = css("--soft"); pen.font = "11px system-ui, sans-serif"; pen.textBaseline = "top"; pen.textAlign = "center";
  for (let v = Math.ceil(x0 / step) * step; v <= x1 + 1e-9; v += step) pen.fillText(+v.toFixed(1), MARGIN.left + (v - x0) / (x1 - x0) * width, MARGIN.top + height + 4);
  pen.fillText("x [m]", MARGIN.left + width / 2, MARGIN.top + height + 18);
  pen.textBaseline = "middle"; pen.textAlign = "right";
  for (let v = Math.ceil(y0 / step) * step; v <= y1 + 1e-9; v += step) pen.fillText(+v.toFixed(1), MARGIN.left - 5, MARGIN.top + (1 - (v - y0) / (y1 - y0)) * height);
  pen.save(); pen.translate(9, MARGIN.top + height / 2); pen.rotate(-Math.PI / 2); pen.textAlign = "center";
  pen.fillText("y [m]", 0, 0); pen.restore();
}

function line(pen, drive, here, px, py, width, opacity) {
  const { x, y, speed } = unpack(drive), bins = report.speeds.length;
  const last = player.time !== null && drive.episode === player.episode ? Math.min(player.time, drive.steps) : drive.steps;
  pen.globalAlpha = opacity; pen.lineWidth = width; pen.lineCap = "round";
  const colour = (i) => Math.min(bins - 1, Math.floor(speed[i] / 1000 / here.fastest * bins));
  for (let i = 0; i < last;) {
    const now = colour(i);
    pen.strokeStyle = report.speeds[now];
    pen.beginPath(); pen.moveTo(px(x[i]), py(y[i]));
    for (; i < last && colour(i) === now; i++) pen.lineTo(px(x[i + 1]), py(y[i + 1]));
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

function end(pen, drive, px, py) {
  const { x, y } = unpack(drive);
  const playing = player.time !== null && player.time < drive.steps;
  const i = playing ? player.time : drive.steps, r = 4.5, cx = px(x[i]), cy = py(y[i]);
  pen.fillStyle = playing ? "#111" : report.outcomes[drive.outcome];
  pen.strokeStyle = playing ? "#fff" : report.outcomes[drive.outcome];
  pen.lineWidth = playing ? 1.5 : 3;
  pen.beginPath();
  if (!playing && drive.outcome === "collision") {
    pen.moveTo(cx - r, cy - r); pen.lineTo(cx + r, cy + r); pen.moveTo(cx + r, cy - r); pen.lineTo(cx - r, cy + r); pen.stroke();
  } else if (!playing && drive.outcome === "timeout") pen.fillRect(cx - r, cy - r, 2 * r, 2 * r);
  else { pen.arc(cx, cy, r, 0, 2 * Math.PI); pen.fill(); if (playing) pen.stroke(); }
}

function nearest(event) {
  const canvas = event.currentTarget, here = drivesHere(), box = canvas.getBoundingClientRect();
  const x = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right) * 65535;
  const y = (1 - (event.clientY - box.top - MARGIN.top) / (box.height - MARGIN.top - MARGIN.bottom)) * 65535;
  let best = Infinity, found = null;
  for (const drive of here.methods[canvas.dataset.method]) {
    const p = unpack(drive);
    for (let i = 0; i <= drive.steps; i++) {
      const far = (p.x[i] - x) ** 2 + (p.y[i] - y) ** 2;
      if (far < best) { best = far; found = drive.episode; }
    }
  }
  choose(found === player.episode ? null : found);
}

function choose(episode) {
  stop();
  player.episode = episode; player.time = null;
  drawDrives();
}

function series(block, here, methods, known) {
  const episode = player.episode === null ? known[0] : player.episode;
  const drives = methods.map((m) => [m, here.methods[m].find((d) => d.episode === episode)]).filter((pair) => pair[1]);
  const period = world().drives.period;
  const longest = Math.max(1, ...drives.map(([, d]) => d.steps));
  const slider = block.querySelector("input[type=range]");
  slider.max = longest;
  slider.value = player.time === null ? longest : player.time;
  block.querySelector("output").textContent = (slider.value * period).toFixed(2) + " s";
  const holder = block.querySelector(".series");
  const trace = (method, drive, values) => ({
    type: "scatter", mode: "lines", name: report.looks[method].name, line: { color: report.looks[method].colour, dash: report.looks[method].dash, width: 2 },
    x: values.map((_, i) => +(i * period).toFixed(3)), y: values, hovertemplate: "%{x:.2f} s: %{y:.2f}",
  });
  const now = player.time === null ? [] : [{ type: "line", x0: player.time * period, x1: player.time * period, y0: 0, y1: 1, yref: "paper", line: { width: 1, color: css("--text") } }];
  const x = { title: { text: "time [s]" }, zeroline: false, range: [0, longest * period] };
  const panels = [
    { title: `Drive ${episode}: speed`, y: { title: { text: "speed [m/s]" }, rangemode: "tozero", zeroline: false }, of: (d) => Array.from(unpack(d).speed, (v) => v / 1000) },
    { title: `Drive ${episode}: scale`, y: { title: { text: "ξ, factor on the covariance" }, type: "log", tickvals: [0.5, 1, 2, 5, 10, 20, 50], zeroline: false }, of: (d) => Array.from(unpack(d).scale.subarray(0, d.steps), (v) => (v ? v / 1000 : null)) },
  ];
  fill(holder, panels.length);
  panels.forEach((panel, i) => {
    holder.children[i].querySelector("figcaption").textContent = panel.title;
    plot(holder.children[i].querySelector(".plot"), { data: drives.map(([m, d]) => trace(m, d, panel.of(d))), layout: { shapes: now, xaxis: x, yaxis: panel.y } });
  });
}

function stop() {
  clearInterval(player.timer);
  player.timer = null;
  for (const button of document.querySelectorAll("button.play")) button.textContent = "▶ Play";
}

function play(block) {
  if (player.timer) return stop();
  const here = drivesHere();
  if (player.episode === null) player.episode = episodes(here)[0];
  const longest = Math.max(...Object.keys(here.methods).filter(shown).map((m) => (here.methods[m].find((d) => d.episode === player.episode) || { steps: 0 }).steps));
  player.time = player.time === null || player.time >= longest ? 0 : player.time;
  block.querySelector("button.play").textContent = "❚❚ Pause";
  const period = world().drives.period, skip = Math.max(1, Math.round(0.1 / period));
  player.timer = setInterval(() => {
    player.time = Math.min(player.time + skip, longest);
    drawDrives();
    if (player.time >= longest) stop();
  }, 1000 * period * skip);
}

for (const block of document.querySelectorAll("[id$=-drives]")) {
  block.querySelector("select").onchange = (event) => choose(event.target.value === "" ? null : +event.target.value);
  block.querySelector("button.play").onclick = () => play(block);
  block.querySelector("input[type=range]").oninput = (event) => {
    stop();
    if (player.episode === null) player.episode = episodes(drivesHere())[0];
    player.time = +event.target.value;
    drawDrives();
  };
}
let resizing = null;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(drawDrives, 150); });
theme(prefersDark.matches);
draw();
