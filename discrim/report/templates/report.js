(() => {
"use strict";
const values = JSON.parse(document.getElementById("values").textContent);
const root = document.documentElement;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
// The first colours are Okabe and Ito's, a little deeper on white and lighter on black, for readers of any colour vision
const COLOURS = {
  light: ["#0072b2", "#d55e00", "#008f68", "#b8589a", "#c98a00", "#3b9fd8", "#5b5b5b", "#7a3b00", "#6a4fb3", "#7d8f00",
    "#c2185b", "#004d73", "#00a3a3", "#8c6d31", "#e377c2", "#2e5e1e", "#9c27b0", "#b71c1c", "#4e79f0", "#a0a8b0"],
  dark: ["#56a8e0", "#f0824a", "#3cc79a", "#e39ccb", "#f0b93a", "#9bd3f7", "#b5b5b5", "#c99a6b", "#b29cf0", "#c5d44a",
    "#ff6f9f", "#2f86b8", "#3fd6d6", "#d6bd7f", "#ffb3e6", "#7fc061", "#d67be8", "#ff6b6b", "#8fa8ff", "#dfe4ea"],
};
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down", "pentagon", "hexagram"];
// The only buttons a chart has. None of them leaves the page: a picture goes to a file, the others change the view.
const BUTTONS = ["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"];
let printing = false;

// ------------------------------------------------------------------ words and colours

// Plotly reads tags and entities in its texts: a name must come out as it is. Signs that turn the direction of
// writing are kept inside their name.
function text(name, most = 26) {
  const signs = Array.from(name);
  const tail = Math.floor(most / 4); // long names often differ at their end
  const cut = signs.length > most ? signs.slice(0, most - 1 - tail).join("") + "…" + signs.slice(-tail).join("") : name;
  const safe = cut.replace(/[\r\n\t]+/g, " ").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  return /[\u200e\u200f\u202a-\u202e\u2066-\u2069\u0590-\u08ff]/.test(safe) ? "\u2068" + safe + "\u2069" : safe;
}
const word = (number, most) => text(values.words[number], most);
// A long name on two lines, broken at the blank that is nearest to its middle; each line is cut by itself.
function twoLines(number, most) {
  const name = values.words[number];
  if (Array.from(name).length <= most) return text(name, most);
  const blanks = [...name.matchAll(/\s+/g)].map((found) => found.index);
  if (!blanks.length) return text(name, most);
  const at = blanks.reduce((best, one) => (Math.abs(one - name.length / 2) < Math.abs(best - name.length / 2) ? one : best));
  return `${text(name.slice(0, at), most)}<br>${text(name.slice(at).trim(), most)}`;
}
function theme() {
  if (printing) return "light";
  return root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}
const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const colour = (at) => (typeof at === "number" ? COLOURS[theme()][at % 20] : css(`--${at}`));
const colours = (given) => (Array.isArray(given) ? given.map(colour) : colour(given));
// where colours come again, symbols differ
const symbol = (at) => (at === "|" ? "line-ns" : SYMBOLS[(at + Math.floor(at / 20)) % 10]);

// ------------------------------------------------------------------ a chart, as described, for plotly

// A chart of three dimensions as it is seen from there: its shadow on the plane of the view.
function seenFrom(mark, azimuth, elevation = 20) {
  const [a, e] = [azimuth, elevation].map((angle) => (angle * Math.PI) / 180);
  const x = mark.x.map((one, at) => one * Math.cos(a) - mark.y[at] * Math.sin(a));
  const y = mark.z.map((one, at) => one * Math.cos(e) + (mark.x[at] * Math.sin(a) + mark.y[at] * Math.cos(a)) * Math.sin(e));
  return { ...mark, x, y };
}

// Tooltip: our own text with {x} and {y}, or the texts of the row; never a name as code.
function pointing(mark) {
  if (mark.hover) {
    const own = "name" in mark ? `<b>${word(mark.name, 60)}</b><br>` : "";
    const tips = mark.x.map((_, at) => own + Object.entries(mark.hover).map(([label, of]) => `${label} ${word(of[at], 60)}`).join("<br>"));
    return { hovertext: tips, hovertemplate: "%{hovertext}<extra></extra>" };
  }
  if (!mark.tip) return { hoverinfo: "skip" };
  return { hovertemplate: mark.tip.replace(/\{/g, "%{") + ("legend" in mark ? "" : "<extra></extra>") };
}

const ANCHORS = { start: "middle right", end: "middle left" };
const TRACES = {
  points: (mark) => ({ mode: "markers", marker: { size: mark.size, symbol: symbol(mark.symbol), color: colours(mark.colour), opacity: mark.opacity,
    line: { color: colours(mark.colour), width: mark.symbol === "|" ? 2.5 : 0 } } }),
  line: (mark) => ({ mode: "symbol" in mark ? "lines+markers" : "lines", opacity: mark.opacity, line: { color: colour(mark.colour), width: mark.size, dash: mark.dash },
    marker: { size: 7, symbol: symbol(mark.symbol ?? 0), color: colour(mark.colour) } }),
  area: (mark) => ({ mode: "lines", fill: "toself", line: { width: 0 }, fillcolor: faint(colour(mark.colour), mark.opacity) }),
  bars: (mark) => ({ type: "bar", orientation: "h", width: mark.size, base: mark.base, x: mark.base ? mark.x.map((one, at) => one - mark.base[at]) : mark.x,
    marker: { color: colours(mark.colour), opacity: mark.opacity } }),
  columns: (mark) => ({ type: "bar", width: mark.size, marker: { color: colours(mark.colour), opacity: mark.opacity } }),
  text: (mark, narrow) => ({ mode: "text", text: mark.texts.map((one) => word(one, narrow ? 22 : 30)), textposition: ANCHORS[mark.anchor] ?? "middle center",
    textfont: { size: narrow ? 10 : 12, color: colour(mark.colour) }, cliponaxis: false }),
};
function faint(hex, alpha) {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${parts.join(",")},${alpha})`;
}
function trace(mark, narrow) {
  return { type: "scatter", x: mark.x, y: mark.y, name: "legend" in mark ? word(mark.legend, 36) : "", legendgroup: "name" in mark ? String(mark.name) : undefined,
    showlegend: "legend" in mark, visible: mark.hidden ? "legendonly" : true, ...pointing(mark), ...TRACES[mark.kind](mark, narrow) };
}
function rule(mark) {
  const across = mark.kind === "level";
  const [at, whole] = across ? [mark.y[0], "x"] : [mark.x[0], "y"];
  const place = across ? { x0: 0, x1: 1, y0: at, y1: at } : { x0: at, x1: at, y0: 0, y1: 1 };
  return { type: "line", ...place, [`${whole}ref`]: `${whole} domain`, line: { color: colour(mark.colour), width: 1, dash: mark.dash } };
}
function arrows(mark) {
  return mark.x.map((x, at) => ({ x, y: mark.y[at], ax: 0, ay: 0, xref: "x", yref: "y", axref: "x", ayref: "y", text: "", showarrow: true,
    arrowhead: 2, arrowwidth: mark.size, arrowcolor: colour(mark.colour) }));
}
function axis(given, narrow) {
  const found = { title: { text: narrow ? twoLines(given.title, 26) : word(given.title, 90), standoff: 8, font: { size: 13 } }, gridcolor: css("--line"), linecolor: css("--line"), zeroline: false, ticks: "",
    automargin: true, visible: !given.hidden };
  if (given.log) found.type = "log";
  if (given.limits) found.range = given.log ? given.limits.map(Math.log10) : given.limits;
  if (given.ticks) Object.assign(found, { tickvals: given.ticks[0], ticktext: given.ticks[1].map((one) => twoLines(one, narrow ? 20 : 36)), showgrid: false });
  if (found.ticktext?.some((one) => one.includes("<br>"))) found.tickfont = { size: 10 };
  if (given.whole) {
    const most = given.limits ? given.limits[1] - given.limits[0] : 10;
    Object.assign(found, { dtick: most > 12 ? Math.ceil(most / 8) : 1, showgrid: false });
  }
  return found;
}
// in pixels; where a unit is as long upwards as across, as high as the width asks for
function tall(chart, width) {
  if (!chart.equal) return Math.round(Math.max(92 * chart.height, 260));
  if (!chart.x.limits) return Math.round(Math.min(640, 0.8 * width + 80));
  const [across, up] = [chart.x, chart.y].map(({ limits }) => Math.abs(limits[1] - limits[0]));
  return Math.round(Math.min(640, ((width - 70) * up) / across + 80));
}
function plotted(chart, width, azimuth) {
  const narrow = width < 560;
  const marks = chart.turns ? chart.marks.map((mark) => seenFrom(mark, azimuth)) : chart.marks;
  const of = (...kinds) => marks.filter((mark) => kinds.includes(mark.kind));
  const [across, yaxis] = [axis(chart.x, narrow), axis(chart.y, narrow)];
  if (chart.equal) Object.assign(yaxis, { scaleanchor: "x", scaleratio: 1 });
  const named = marks.filter((mark) => "legend" in mark && mark.kind in TRACES);
  const key = (chart.key ?? "").replace("\n", narrow ? "<br>" : " ");
  const height = tall(chart, width) + (narrow ? 20 * Math.ceil(named.length / 3) : 0);
  const layout = {
    height, autosize: true,
    margin: { l: 10, r: 10, t: 26, b: 10 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: FONT, size: 13, color: css("--ink") },
    hovermode: "closest", dragmode: chart.turns ? false : "zoom", barmode: "overlay", xaxis: across, yaxis,
    shapes: of("upright", "level").map(rule), annotations: of("arrows").flatMap(arrows),
    legend: { orientation: "h", y: -(across.title.text.includes("<br>") ? 74 : 58) / (height - 100), yanchor: "top", x: 0, font: { size: 12 }, itemsizing: named.every((mark) => mark.kind === "points") ? "constant" : "trace",
      title: { text: key, side: narrow || key.length > 30 ? "top" : "left", font: { size: 12, color: css("--soft") } } },
    hoverlabel: { bgcolor: css("--raised"), bordercolor: css("--line"), font: { family: FONT, color: css("--ink") }, namelength: 30, align: "left" },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--ink") },
  };
  return [marks.filter((mark) => mark.kind in TRACES).map((mark) => trace(mark, narrow)), layout];
}

// ------------------------------------------------------------------ figures and their menus

const menus = (figure) => [...figure.querySelectorAll("[data-control]")];
const blockOf = (element) => values.blocks[Number(element.closest("[data-block]")?.dataset.block ?? 0)];
const chartsOf = (element) => (element.dataset.chart === "ranks" ? values.ranks : blockOf(element).figures[element.dataset.chart]);
function choiceOf(element) {
  const named = (element.dataset.menus ?? "").split(" ").filter(Boolean);
  return named.map((name) => element.closest("figure").querySelector(`[data-control="${name}"]`).value).join(",");
}

// A menu offers what there is for the choices before it; the first where its own choice is not among them.
function offer(figure) {
  const chart = figure.querySelector(".chart");
  if (!chart) return;
  const keys = Object.keys(chartsOf(chart)).map((key) => key.split(","));
  const before = [];
  menus(figure).forEach((menu, place) => {
    const there = new Set(keys.filter((key) => before.every((one, at) => key[at] === one)).map((key) => key[place]));
    [...menu.options].forEach((option) => { option.hidden = option.disabled = !there.has(option.value); });
    if (!there.has(menu.value)) menu.value = [...there][0] ?? "0";
    menu.parentElement.hidden = there.size < 2 && place > 0;
    before.push(menu.value);
  });
  figure.querySelectorAll("[data-when]").forEach((part) => {
    const [name, ...wanted] = part.dataset.when.split(" ");
    const at = menus(figure).findIndex((menu) => menu.dataset.control === name);
    part.hidden = !wanted.includes(menus(figure)[at].value);
  });
}

// Long names at arrows leave no space for the arrows on a narrow screen; the bars above them tell the same.
const crowded = (chart) => chart.marks.some((mark) => mark.kind === "arrows")
  && chart.marks.some((mark) => mark.texts?.some((one) => values.words[one].trim().length > 18));

function draw(element) {
  const figure = element.closest("figure");
  const chosen = chartsOf(element)[choiceOf(element)];
  const chart = chosen && figure.clientWidth < 560 && crowded(chosen) ? undefined : chosen;
  element.hidden = !chart;
  figure.querySelectorAll(`[data-of="${element.dataset.chart}"]`).forEach((part) => { part.hidden = !chart; });
  if (!chart) return;
  const turn = figure.querySelector("[data-turn]");
  if (turn) turn.parentElement.hidden = !chart.turns;
  const [traces, layout] = plotted(chart, element.clientWidth, Number(turn?.value ?? 35));
  const caption = figure.querySelector("[data-caption]");
  if (caption && !("quiet" in element.dataset)) caption.textContent = chart.caption ? chart.caption.replace(/\.?$/, ".") : "";
  element.style.minHeight = `${layout.height}px`;
  Plotly.react(element, traces, layout, { responsive: true, displaylogo: false, displayModeBar: matchMedia("(hover: none)").matches ? false : "hover", modeBarButtons: [BUTTONS],
    scrollZoom: false, plotlyServerURL: "", showSendToCloud: false, showEditInChartStudio: false, showLink: false });
  element.dataset.drawn = "yes";
}

// With the keys: arrows move the view, + and − change its size, 0 is the whole again; a chart in depth is turned.
function byKey(element, event) {
  const turn = element.closest("figure").querySelector("[data-turn]");
  const sign = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
  if (event.ctrlKey || event.metaKey || event.altKey || !element.dataset.drawn) return;
  if (turn && !turn.parentElement.hidden) {
    if (!sign) return;
    turn.value = (Number(turn.value) + 5 * sign + 360) % 360;
    draw(element);
  } else if (sign || "+-".includes(event.key)) {
    const moved = {};
    const zoom = { "+": 0.8, "-": 1.25 }[event.key];
    ["xaxis", "yaxis"].forEach((name) => {
      const [low, high] = element._fullLayout[name].range;
      const along = (name === "xaxis") === /Left|Right/.test(event.key);
      const middle = (low + high) / 2 + (sign && along ? (sign * (high - low)) / 10 : 0);
      const half = ((high - low) / 2) * (zoom ?? 1);
      moved[`${name}.range`] = [middle - half, middle + half];
    });
    Plotly.relayout(element, moved);
  } else if (event.key === "0") draw(element);
  else return;
  event.preventDefault();
}

// ------------------------------------------------------------------ all features, by their names

function search(figure) {
  const [box, table] = [figure.querySelector("[data-search]"), figure.querySelector("[data-found]")];
  if (!box) return;
  const { names, methods, left } = blockOf(figure).features;
  const [method, , kind] = menus(figure).map((menu) => Number(menu.value));
  const of = methods[method];
  const values = of && of[kind === 1 ? "loadings" : "structure"];
  const wanted = box.value.trim().toLowerCase();
  const found = [];
  if (wanted && values) names.forEach((name, at) => { if (name.toLowerCase().includes(wanted)) found.push(at); });
  const size = (at) => Math.max(...values.map((row) => Math.abs(row[at])));
  found.sort((a, b) => size(b) - size(a));
  const cell = (tag, words) => { const made = document.createElement(tag); made.textContent = words; if (tag === "td") made.className = "number"; return made; };
  const row = (tags, list) => { const made = document.createElement("tr"); made.append(...list.map((words, at) => cell(tags[at] ?? tags[1], words))); return made; };
  table.hidden = !found.length;
  if (found.length) {
    table.tHead.replaceChildren(row(["th", "th"], ["feature", ...of.components]));
    table.tBodies[0].replaceChildren(...found.slice(0, 20).map((at) => row(["th", "td"], [names[at], ...values.map((one) => one[at].toFixed(3))])));
  }
  figure.querySelector("[data-count]").textContent = !values ? "there is not enough space on this page for all features of this method"
    : !wanted ? `${names.length} feature${names.length === 1 ? "" : "s"}${left ? ` (the most important; ${left} are left out)` : ""}`
    : `${found.length} found${found.length > 20 ? ", the 20 largest are shown" : ""}`;
}

// ------------------------------------------------------------------ the page

// The library takes longer to start than all the rest: the words are there first, and it starts when nothing else waits.
function started() {
  if (!window.Plotly) {
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotly").textContent;
    document.head.append(script);
  }
}
const charts = [...document.querySelectorAll(".chart")];
const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
  if (entry.isIntersecting && !entry.target.dataset.drawn) draw(entry.target);
}), { rootMargin: "400px" });
const begin = () => { started(); charts.forEach((chart) => seen.observe(chart)); };
addEventListener("load", () => (window.requestIdleCallback || setTimeout)(begin));
const inView = (chart) => chart.parentElement.offsetParent;
const redraw = () => charts.filter((chart) => chart.dataset.drawn && inView(chart)).forEach(draw);

document.querySelectorAll("figure").forEach((figure) => {
  offer(figure);
  search(figure);
  const drawAll = () => { if (window.Plotly) figure.querySelectorAll(".chart").forEach((chart) => { if (inView(chart)) draw(chart); }); };
  figure.addEventListener("change", (event) => {
    if (!event.target.dataset.control) return;
    offer(figure);
    search(figure);
    drawAll();
  });
  figure.addEventListener("input", (event) => {
    if ("search" in event.target.dataset) search(figure);
    if ("turn" in event.target.dataset) requestAnimationFrame(drawAll);
  });
});
charts.forEach((chart) => {
  chart.addEventListener("keydown", (event) => byKey(chart, event));
  chart.addEventListener("pointermove", (event) => { // a chart in depth is turned by dragging
    const turn = chart.closest("figure").querySelector("[data-turn]");
    if (!event.buttons || !event.movementX || !turn || turn.parentElement.hidden) return;
    turn.value = (Number(turn.value) + event.movementX / 2 + 360) % 360;
    requestAnimationFrame(() => draw(chart));
  });
});
document.getElementById("block")?.addEventListener("change", (event) => {
  document.querySelectorAll(".block").forEach((block) => { block.hidden = block.dataset.block !== event.target.value; });
  redraw();
});
document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = theme() === "dark" ? "light" : "dark";
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redraw(); } });

// A print is light, as wide as the paper, and has every chart of the data set that is shown.
addEventListener("beforeprint", () => {
  started();
  printing = true;
  root.classList.add("printing");
  charts.filter(inView).forEach(draw);
});
addEventListener("afterprint", () => { printing = false; root.classList.remove("printing"); redraw(); });

document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", async () => {
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch { // where a page may not write there: the words are marked, and the browser's own copying is asked for
    getSelection().selectAllChildren(code);
    document.execCommand("copy");
  }
  button.textContent = "copied";
  setTimeout(() => { button.textContent = "copy"; }, 1500);
}));

document.querySelectorAll("th button[data-sort]").forEach((button) => button.addEventListener("click", () => {
  const heading = button.closest("th");
  const body = heading.closest("table").tBodies[0];
  const column = heading.cellIndex;
  const number = button.dataset.sort === "number";
  const up = heading.hasAttribute("aria-sort") ? heading.getAttribute("aria-sort") === "descending" : !number;
  const value = (row) => {
    const cell = row.cells[column];
    if (!number) return cell.textContent.trim();
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  };
  const rows = [...body.rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null); // rows without a number stay last
    return (number ? x - y : x.localeCompare(y, undefined, { numeric: true })) * (up ? 1 : -1);
  });
  heading.parentElement.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.replaceChildren(...rows);
}));
})();
