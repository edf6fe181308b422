(() => {
"use strict";
const values = JSON.parse(document.getElementById("values").textContent);
const root = document.documentElement;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
// Okabe and Ito's colours, a little deeper on white and lighter on black, so that all readers can tell them apart
const COLOURS = {
  light: ["#0072b2", "#d55e00", "#008f68", "#b8589a", "#c98a00", "#3b9fd8", "#5b5b5b", "#7a3b00", "#6a4fb3", "#7d8f00"],
  dark: ["#56a8e0", "#f0824a", "#3cc79a", "#e39ccb", "#f0b93a", "#9bd3f7", "#b5b5b5", "#c99a6b", "#b29cf0", "#c5d44a"],
};
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down", "pentagon", "hexagram"];
const SYMBOLS_3D = ["circle", "square", "diamond", "cross", "x", "circle-open", "square-open", "diamond-open"];
const DASHES = ["solid", "solid", "solid", "solid", "dash", "dot", "dashdot", "longdash"]; // of curves that may coincide
let printing = false;

// ------------------------------------------------------------------ words and colours

// Plotly reads tags and entities in its texts: a name must come out as it is. Signs that turn the direction of
// writing are shut in with the name they came with.
function text(name, most = 26) {
  const signs = Array.from(name);
  const cut = signs.length > most ? signs.slice(0, most - 1).join("") + "…" : name;
  const safe = cut.replace(/[\r\n\t]+/g, " ").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  return /[\u200e\u200f\u202a-\u202e\u2066-\u2069\u0590-\u08ff]/.test(safe) ? "\u2068" + safe + "\u2069" : safe;
}
function theme() {
  if (printing) return "light";
  return root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}
const colour = (at) => COLOURS[theme()][at % 10];
const symbol = (at) => SYMBOLS[(at + Math.floor(at / 10)) % 10]; // where colours come again, symbols differ
const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
function faint(hex, alpha) {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${parts.join(",")},${alpha})`;
}
const sum = (list) => list.reduce((a, b) => a + b, 0);
const range = (n) => Array.from({ length: n }, (_, at) => at);

// ------------------------------------------------------------------ what every chart has

function axis(title, more = {}) {
  return {
    title: { text: title, standoff: 8 }, gridcolor: css("--line"), linecolor: css("--line"), zerolinecolor: css("--line"),
    zeroline: false, ticks: "", automargin: true, ...more,
  };
}
function layout(height, more = {}) {
  return {
    height, autosize: true, margin: { l: 10, r: 10, t: 30, b: 10 }, paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)", font: { family: FONT, size: 13, color: css("--ink") }, hovermode: "closest",
    legend: { orientation: "h", y: -0.16, yanchor: "top", x: 0, font: { size: 12 } },
    hoverlabel: { bgcolor: css("--raised"), bordercolor: css("--line"), font: { family: FONT, color: css("--ink") }, namelength: 30 },
    ...more,
  };
}
const heading = (words, x, y, xref = "paper", yref = "paper") => ({
  text: words, x, y, xref, yref, showarrow: false, xanchor: "left", yanchor: "bottom", font: { size: 13, color: css("--soft") },
});
const line = (x0, x1, y0, y1, more = {}) => ({
  type: "line", x0, x1, y0, y1, line: { color: css("--soft"), width: 1, dash: "dot" }, ...more,
});

// ------------------------------------------------------------------ the charts: (values, choice, narrow) → traces and layout

const CHARTS = {
  curves(block, choice, narrow) {
    const wanted = block.curves.filter((curve) => curve.classifier === block.classifiers[choice.classifier]);
    const counts = [...new Set(wanted.filter((one) => one.method !== "raw").flatMap((one) => one.k))].sort((a, b) => a - b);
    const ends = counts.length ? [counts[0], counts[counts.length - 1]] : [1, 2];
    if (ends[0] === ends[1]) ends[1] = ends[0] + 1;
    const traces = [];
    block.order.forEach((method, at) => {
      const curve = wanted.find((one) => one.method === method);
      if (!curve) return;
      const flat = method === "raw";
      const stretch = (list) => (flat ? [list[0], list[0]] : list);
      const x = flat ? ends : curve.k;
      const hue = flat ? css("--soft") : colour(at);
      const common = { legendgroup: method, visible: at < 8 || flat ? true : "legendonly" };
      if (!curve.low.includes(null)) {
        const [low, high] = [stretch(curve.low).map((one) => Math.max(one, 0)), stretch(curve.high).map((one) => Math.min(one, 100))];
        traces.push({ ...common, x: [...x, ...[...x].reverse()], y: [...high, ...[...low].reverse()], fill: "toself",
          fillcolor: faint(flat ? "#888888" : hue, flat ? 0.07 : 0.08), line: { width: 0 }, mode: "lines", hoverinfo: "skip", showlegend: false });
      }
      traces.push({ ...common, x, y: stretch(curve.mean), name: text(flat ? `raw, all ${curve.k[0]}` : method, 24),
        mode: flat ? "lines" : "lines+markers", marker: { size: 7, symbol: symbol(at), color: hue },
        line: { color: hue, width: 2, dash: flat ? "dash" : DASHES[at % 8] },
        hovertemplate: flat ? "%{y:.1f} %" : "K = %{x}: %{y:.1f} %" });
    });
    const across = axis("components K", { type: "log", tickvals: counts, ticktext: counts.map(String), showgrid: false });
    return [traces, layout(narrow ? 470 : 440, { xaxis: across, yaxis: axis("%", { title: { text: "" }, ticksuffix: " %" }),
      margin: { l: 10, r: 10, t: 10, b: 10 }, legend: { ...layout(1).legend, y: narrow ? -0.2 : -0.18 } })];
  },

  projection(block, choice, narrow, told) {
    const view = block.views[choice.method];
    const { classes, shares, train, test } = view.projection;
    const label = (at) => `component ${at + 1}` + (shares && shares[at] !== null ? ` (${(100 * shares[at]).toFixed(0)} %)` : "");
    const drawn = [train, test].map((part) => part.codes.length);
    told(train.n + test.n > sum(drawn) ? `Drawn are ${drawn[0]} of ${train.n} fitted and ${drawn[1]} of ${test.n} new rows, by chance.` : "");
    const titles = [`fitted: ${train.n} rows`, `new: ${test.n} rows, not used in fitting`];
    if (choice.view === 3 && train.scores.length >= 3) return space(view, choice, narrow, titles, label);
    const flat = train.scores.length < 2;
    const traces = [];
    [train, test].forEach((part, side) => classes.forEach((name, at) => {
      const mine = range(part.codes.length).filter((row) => part.codes[row] === at);
      const axes = { xaxis: side ? "x2" : "x", yaxis: side ? "y2" : "y", legendgroup: String(at) };
      const other = at >= train.means.length;
      const hue = other ? css("--line") : colour(at);
      const up = (row) => (flat ? at + 0.6 * (((row * 0.618034) % 1) - 0.5) : part.scores[choice.y][row]);
      traces.push({ ...axes, type: "scatter", mode: "markers", name: text(name), showlegend: side === 0,
        x: mine.map((row) => part.scores[flat ? 0 : choice.x][row]), y: mine.map(up),
        marker: { color: hue, symbol: symbol(at), size: part.codes.length > 600 ? 5 : 6.5, opacity: 0.75 },
        hovertemplate: flat ? "%{x:.3g}" : "%{x:.3g}, %{y:.3g}" });
      if (!flat && !other && train.means[at][0] !== null) {
        const outline = ellipse(train.means[at], train.covariances[at], choice.x, choice.y);
        traces.push({ ...axes, type: "scatter", mode: "lines", x: outline.x, y: outline.y, showlegend: false, hoverinfo: "skip",
          line: { color: hue, width: 1.5, dash: side ? "dot" : "solid" } });
      }
    }));
    const across = label(flat ? 0 : choice.x);
    const up = flat ? { tickvals: range(classes.length), ticktext: classes.map((name) => text(name, 14)), title: { text: "" } } : {};
    const [left, right] = narrow ? [[0, 1], [0, 1]] : [[0, 0.48], [0.52, 1]];
    const [top, bottom] = narrow ? [[0.56, 1], [0, 0.44]] : [[0, 1], [0, 1]];
    return [traces, layout(narrow ? 820 : 500, {
      xaxis: axis(narrow ? "" : across, { domain: left, anchor: "y" }), xaxis2: axis(across, { domain: right, anchor: "y2", matches: "x" }),
      yaxis: axis(flat ? "" : label(choice.y), { domain: top, ...up }),
      yaxis2: axis(flat || !narrow ? "" : label(choice.y), { domain: bottom, anchor: "x2", matches: "y", showticklabels: narrow, ...(flat ? up : {}) }),
      annotations: [heading(titles[0], 0, 1, "x domain", "y domain"), heading(titles[1], 0, 1, "x2 domain", "y2 domain")],
      legend: { ...layout(1).legend, y: narrow ? -0.1 : -0.18 },
    })];
  },

  margins(block, choice, narrow, told) {
    const { classes, before, after, right, n } = block.views[choice.method].margins;
    const k = block.views[choice.method].k;
    const parts = [["in the features", before, css("--soft"), "negative"], [`on ${k} component${k === 1 ? "" : "s"}`, after, colour(0), "positive"]];
    const traces = parts.flatMap(([name, lists, hue, side]) => lists.map((list, at) => ({
      type: "violin", orientation: "h", x: list, y: list.map(() => at), name, legendgroup: side, showlegend: at === 0, side,
      line: { color: hue, width: 1.5 }, fillcolor: faint(hue.startsWith("#") && hue.length === 7 ? hue : "#888888", 0.25), width: 0.9,
      spanmode: "hard", points: list.length < 25 ? "all" : false, pointpos: side === "positive" ? 0.3 : -0.3, jitter: 0.1,
      marker: { size: 4 }, meanline: { visible: true }, hoverinfo: "x", scalegroup: "all",
    })));
    told(`Above 0: ${right[0].toFixed(1)} % of new rows in the features, ${right[1].toFixed(1)} % on the components` +
      (n[0] < n[1] ? `; ${n[0]} of ${n[1]} rows, drawn by chance.` : "."));
    return [traces, layout(150 + 90 * Math.max(2, classes.length), {
      xaxis: axis("relative margin"), violinmode: "overlay", violingap: 0,
      yaxis: axis("", { tickvals: range(classes.length), ticktext: classes.map((name) => text(name, narrow ? 12 : 24)), range: [classes.length - 0.4, -0.6], showgrid: false }),
      shapes: [line(0, 0, 0, 1, { yref: "paper" })], legend: { ...layout(1).legend, y: 1.02, yanchor: "bottom" },
      margin: { l: 10, r: 10, t: 40, b: 10 },
    })];
  },

  bars(block, choice, narrow, told) {
    const { tops } = block.views[choice.method].loadings;
    const table = tops[choice.table] ? choice.table : "structure";
    told(table === choice.table ? "" : "This method has no loadings: structure coefficients are shown.");
    const [names, sizes] = tops[table][choice.x];
    return [[{ type: "bar", orientation: "h", x: sizes, y: range(names.length), text: names.map((name) => text(name, 60)), textposition: "none",
      marker: { color: sizes.map((size) => colour(size < 0 ? 1 : 0)) }, hovertemplate: "%{text}: %{x:.3g}<extra></extra>" }],
    layout(440, {
      xaxis: axis(table === "structure" ? "correlation with the component" : "loading", { zeroline: true, range: [1.05 * Math.min(0, ...sizes), 1.05 * Math.max(0, ...sizes)] }),
      yaxis: axis("", { tickvals: range(names.length), ticktext: names.map((name) => text(name, narrow ? 18 : 26)), autorange: "reversed", showgrid: false }),
      annotations: [heading(`component ${choice.x + 1}`, 0, 1)], showlegend: false, bargap: 0.35,
    })];
  },

  biplot(block, choice, narrow) {
    const view = block.views[choice.method];
    const { classes, test, train } = view.projection;
    const found = view.loadings.arrows[`${choice.x},${choice.y}`];
    if (!found) return [[], layout(440)]; // one component only
    const [names, x, y] = found;
    const reach = (at) => Math.max(...test.scores[at].map(Math.abs), 1e-300);
    const [sx, sy] = [reach(choice.x), reach(choice.y)];
    const traces = classes.map((name, at) => {
      const mine = range(test.codes.length).filter((row) => test.codes[row] === at);
      return { type: "scatter", mode: "markers", name: text(name), x: mine.map((row) => test.scores[choice.x][row] / sx),
        y: mine.map((row) => test.scores[choice.y][row] / sy), hoverinfo: "name",
        marker: { color: at < train.means.length ? colour(at) : css("--line"), symbol: symbol(at), size: 5, opacity: 0.5 } };
    });
    const labels = spread(x, y, narrow ? 0.2 : 0.17);
    const edge = 1.12;
    const beyond = narrow ? 2.6 : 2.5; // room for the labels
    const arrows = names.map((_, at) => ({ x: x[at], y: y[at], ax: 0, ay: 0, xref: "x", yref: "y", axref: "x", ayref: "y", text: "", showarrow: true,
      arrowhead: 2, arrowsize: 1, arrowwidth: 1.5, arrowcolor: css("--ink") }));
    const words = names.map((name, at) => ({ x: (x[at] < 0 ? -1 : 1) * edge, y: labels[at], text: text(name, narrow ? 16 : 24), showarrow: false,
      xanchor: x[at] < 0 ? "right" : "left", font: { size: 11 } }));
    const leaders = names.map((_, at) => line(x[at], (x[at] < 0 ? -1 : 1) * edge, y[at], labels[at], { layer: "below" }));
    const circle = { type: "circle", x0: -1, x1: 1, y0: -1, y1: 1, line: { color: css("--line"), width: 1 }, layer: "below" };
    return [traces, layout(440, {
      xaxis: axis(`component ${choice.x + 1}`, { range: [x.some((one) => one < 0) ? -beyond : -1.2, x.some((one) => one >= 0) ? beyond : 1.2], tickvals: [-1, 0, 1], showgrid: false, zeroline: true }),
      yaxis: axis(`component ${choice.y + 1}`, { range: [-1.25, 1.25], tickvals: [-1, 0, 1], showgrid: false, zeroline: true }),
      annotations: [...arrows, ...words], shapes: [circle, ...leaders], showlegend: classes.length <= 8,
    })];
  },

  spectrum(block, choice, narrow) {
    const view = block.views[choice.method];
    const { worth, is_share, scores, error, chosen } = view.spectrum;
    const ks = range(scores.length).map((at) => at + 1);
    const bars = (list, side) => ({ type: "bar", x: ks, y: list, xaxis: "x" + side, yaxis: "y" + side, showlegend: false,
      marker: { color: ks.map((k) => (k <= chosen ? colour(0) : faint(colour(0), 0.35))) }, hovertemplate: "component %{x}: %{y:.3g}<extra></extra>" });
    const traces = [...(worth ? [bars(worth, "")] : []), bars(scores, "2")];
    const dots = (x, y, name, hue, symbol) => ({ type: "scatter", mode: "lines+markers", x, y, name, xaxis: "x3", yaxis: "y3",
      line: { color: hue }, marker: { color: hue, symbol, size: 6 }, hovertemplate: "first %{x}: %{y:.2f} %" });
    traces.push(dots(ks, error, "predicted", colour(0), "circle"));
    const seen = block.metric === "accuracy" && block.curves.find((one) => one.method === view.method && one.classifier === view.classifier);
    if (seen) traces.push(dots(seen.k, seen.mean.map((one) => 100 - one), `on new rows, ${text(view.classifier, 14)}`, colour(1), "square"));
    const domains = narrow ? [[0.73, 1], [0.37, 0.63], [0, 0.26]] : [[0, 0.29], [0.355, 0.645], [0.71, 1]];
    const most = Math.max(3, ...ks, ...(seen ? seen.k : []));
    const whole = { dtick: most > 12 ? Math.ceil(most / 8) : 1, range: [0.4, most + 0.6], showgrid: false };
    const place = (at) => (narrow ? [{}, { domain: domains[at] }] : [{ domain: domains[at] }, {}]);
    const [x1, y1, x2, y2, x3, y3] = range(3).flatMap(place);
    const titles = [worth ? (is_share ? "share of the objective" : "eigenvalue") : "no eigenvalues", "Bayes-error score", "error %"];
    return [traces, layout(narrow ? 760 : 380, {
      xaxis: axis("component", { ...whole, ...x1 }), yaxis: axis("", { ...y1, rangemode: "tozero" }),
      xaxis2: axis("component", { ...whole, ...x2, anchor: "y2" }), yaxis2: axis("", { ...y2, anchor: "x2", rangemode: "tozero" }),
      xaxis3: axis("first k components", { ...whole, ...x3, anchor: "y3" }), yaxis3: axis("", { ...y3, anchor: "x3", rangemode: "tozero" }),
      annotations: titles.map((words, at) => heading(words, 0, 1, `x${at ? at + 1 : ""} domain`, `y${at ? at + 1 : ""} domain`)),
      shapes: [line(chosen, chosen, 0, 1, { xref: "x3", yref: "y3 domain" })], bargap: 0.3,
      legend: { ...layout(1).legend, x: narrow ? 0 : 0.71, y: narrow ? -0.1 : -0.25, orientation: "v" },
    })];
  },

  ranks(_, choice, narrow) {
    const { methods, ranks, critical, groups } = values.ranks[choice.classifier];
    const most = Math.max(...ranks) + 0.25;
    const dots = { type: "scatter", mode: "markers", x: ranks, y: range(methods.length), text: methods.map((name) => text(name, 60)),
      marker: { size: 10, color: colour(0) }, hovertemplate: "%{text}: mean rank %{x:.2f}<extra></extra>", showlegend: false };
    const bars = groups.map(([first, last], at) => line(most + 0.22 * at, most + 0.22 * at, first - 0.18, last + 0.18, { line: { color: css("--ink"), width: 5 } }));
    const ruler = line(1, 1 + critical, -0.8, -0.8, { line: { color: colour(1), width: 3 } });
    return [[dots], layout(110 + 34 * methods.length, {
      xaxis: axis("mean rank", { range: [0.8, Math.max(most + 0.22 * groups.length, 1 + critical) + 0.1] }), shapes: [ruler, ...bars],
      yaxis: axis("", { tickvals: range(methods.length), ticktext: methods.map((name) => text(name, narrow ? 16 : 28)), range: [methods.length - 0.4, -1.5] }),
      annotations: [{ ...heading(`critical difference ${critical.toFixed(2)}`, 1, -0.85, "x", "y"), font: { size: 12, color: colour(1) } }],
    })];
  },
};

// (z − m)ᵀS⁻¹(z − m) = −2 ln 0.05 on two components
function ellipse(mean, covariance, i, j) {
  const [a, b, c] = [covariance[i][i], covariance[i][j], covariance[j][j]];
  const scale = Math.sqrt(-2 * Math.log(0.05));
  const first = Math.sqrt(Math.max(a, 0));
  const slope = first > 0 ? b / first : 0;
  const rest = Math.sqrt(Math.max(c - slope * slope, 0)); // the Cholesky factor takes the circle to the ellipse
  const angles = range(61).map((at) => (2 * Math.PI * at) / 60);
  return {
    x: angles.map((t) => mean[i] + scale * first * Math.cos(t)),
    y: angles.map((t) => mean[j] + scale * (slope * Math.cos(t) + rest * Math.sin(t))),
  };
}

function space(view, choice, narrow, titles, label) {
  const { classes, train, test } = view.projection;
  const axes = [choice.x, choice.y, choice.z];
  const traces = [train, test].flatMap((part, side) => classes.map((name, at) => {
    const mine = range(part.codes.length).filter((row) => part.codes[row] === at);
    const [x, y, z] = axes.map((component) => mine.map((row) => part.scores[component][row]));
    return { type: "scatter3d", mode: "markers", scene: side ? "scene2" : "scene", x, y, z, name: text(name), legendgroup: String(at), showlegend: side === 0,
      marker: { size: 3, opacity: 0.8, color: at < train.means.length ? colour(at) : css("--line"), symbol: SYMBOLS_3D[at % 8] }, hovertemplate: "%{x:.3g}, %{y:.3g}, %{z:.3g}" };
  }));
  const limits = axes.map((component) => {
    const all = [...train.scores[component], ...test.scores[component]];
    const [low, high] = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
    return [low - 0.03 * (high - low), high + 0.03 * (high - low)];
  });
  const side = (at) => ({ range: limits[at], title: { text: `component ${axes[at] + 1}` }, gridcolor: css("--line"), zerolinecolor: css("--line"), backgroundcolor: "rgba(0,0,0,0)", tickfont: { size: 9 } });
  const scene = (x, y) => ({ domain: { x, y }, aspectmode: "cube", xaxis: side(0), yaxis: side(1), zaxis: side(2), dragmode: "turntable", camera: { eye: { x: 1.35, y: 1.35, z: 0.8 } } });
  const [one, two] = narrow ? [scene([0, 1], [0.53, 0.97]), scene([0, 1], [0, 0.44])] : [scene([0, 0.49], [0, 0.96]), scene([0.51, 1], [0, 0.96])];
  return [traces, layout(narrow ? 820 : 520, { scene: one, scene2: two, margin: { l: 0, r: 0, t: 30, b: 10 },
    annotations: [heading(titles[0], 0, 0.97), heading(titles[1], narrow ? 0 : 0.52, narrow ? 0.44 : 0.97)],
    legend: { ...layout(1).legend, y: -0.02, itemsizing: "constant" } })];
}

// heights of the labels at the sides, none nearer to the next than `gap`
function spread(x, y, gap) {
  const heights = [...y];
  [true, false].forEach((left) => {
    const mine = range(x.length).filter((at) => x[at] < 0 === left).sort((a, b) => y[a] - y[b]);
    mine.forEach((at, place) => { if (place) heights[at] = Math.max(heights[at], heights[mine[place - 1]] + gap); });
    const over = mine.length ? Math.max(0, heights[mine[mine.length - 1]] - 1.15) : 0;
    if (over) heights[mine[mine.length - 1]] -= over;
    for (let place = mine.length - 2; place >= 0 && over; place--) {
      heights[mine[place]] = Math.min(heights[mine[place]], heights[mine[place + 1]] - gap);
    }
  });
  return heights;
}

// ------------------------------------------------------------------ menus

const control = (figure, name) => figure.querySelector(`[data-control="${name}"]`);
const blockOf = (element) => values.blocks[Number(element.closest("[data-block]")?.dataset.block ?? 0)];

function choiceOf(figure) {
  const choice = {};
  figure.querySelectorAll("[data-control]").forEach((select) => {
    const value = select.value;
    choice[select.dataset.control] = /^\d+$/.test(value) ? Number(value) : value;
  });
  return choice;
}
// The menus of components follow the method that is chosen; no component stands in two of them at once.
function offerComponents(figure, changed) {
  const method = control(figure, "method");
  if (!method || !control(figure, "x")) return;
  const count = blockOf(figure).views[Number(method.value)].projection.train.scores.length;
  if (changed) changed.dataset.wish = changed.value;
  const menus = ["x", "y", "z"].map((name) => control(figure, name)).filter(Boolean);
  const taken = new Set();
  [...menus].sort((a, b) => (b === changed) - (a === changed)).forEach((menu) => {
    const place = menus.indexOf(menu);
    const free = range(count).filter((at) => !taken.has(at));
    const wish = Number(menu.dataset.wish ?? place);
    const at = free.includes(wish) ? wish : free.includes(place) ? place : free[0] ?? 0;
    taken.add(at);
    menu.replaceChildren(...range(count).map((number) => new Option(`component ${number + 1}`, String(number))));
    menu.value = String(at);
    menu.parentElement.hidden = place >= count || (place === 2 && control(figure, "view")?.value !== "3");
  });
  figure.querySelector(".pair")?.classList.toggle("single", count < 2);
  const view = control(figure, "view");
  if (view) view.parentElement.hidden = count < 3;
}

function draw(element) {
  const figure = element.closest("figure");
  const block = blockOf(element);
  const choice = choiceOf(figure);
  const told = (words) => {
    const place = figure.querySelector("[data-told]");
    if (place) place.textContent = words;
  };
  const [traces, shape] = CHARTS[element.dataset.chart](block, choice, element.clientWidth < 560, told);
  element.style.minHeight = `${shape.height}px`;
  Plotly.react(element, traces, shape, { responsive: true, displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "toggleSpikelines", "hoverClosestCartesian", "hoverCompareCartesian"] });
  element.dataset.drawn = "yes";
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
const redraw = () => charts.filter((chart) => chart.dataset.drawn && chart.offsetParent).forEach(draw);

document.querySelectorAll("figure").forEach((figure) => {
  offerComponents(figure);
  figure.addEventListener("change", (event) => {
    if (!event.target.dataset.control) return;
    offerComponents(figure, ["x", "y", "z"].includes(event.target.dataset.control) ? event.target : undefined);
    figure.querySelectorAll("[data-classifier]").forEach((table) => { table.hidden = table.dataset.classifier !== event.target.value; });
    figure.querySelectorAll(".chart").forEach((chart) => { if (chart.offsetParent) draw(chart); });
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
  charts.filter((chart) => chart.offsetParent).forEach(draw);
});
addEventListener("afterprint", () => { printing = false; root.classList.remove("printing"); redraw(); });

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
    return (number ? x - y : x.localeCompare(y)) * (up ? 1 : -1);
  });
  heading.parentElement.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.replaceChildren(...rows);
}));
})();
