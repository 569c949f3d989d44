// Elements and charts. A chart is plain SVG, drawn anew each time; its table holds the same numbers.

const SVG = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function shape(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

export const percent = share => share === null || share === undefined ? "–" : (share * 100).toFixed(1) + " %";
export const number = (value, digits = 0) => value === null || value === undefined ? "–"
  : value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
export const compact = value => value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });
export const clock = time => new Date(time * 1000).toLocaleTimeString("en-GB");

/** A table: columns of [heading, isNumber], rows of texts or elements. */
export function fillTable(table, caption, columns, rows) {
  const head = columns.map(([heading, isNumber]) => element("th", { scope: "col", class: isNumber ? "number" : null }, heading));
  const body = rows.map(row => element("tr", {}, ...row.map((cell, index) =>
    element("td", { class: columns[index][1] ? "number" : columns[index][2] }, cell))));
  table.replaceChildren(element("caption", { hidden: "" }, caption), element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...body));
}

/** A chart is drawn for the room that there is, so that text keeps its size and nothing lies beyond the edge. */
export const ordinary = 560, wide = 1160, narrowest = 240;

/** As much of a name as fits, its end: what differs between URLs stands there. */
function fitting(name, pixels) {
  if (length(name) <= pixels) return name;
  let end = [...name];
  while (end.length > 1 && length("…" + end.join("")) > pixels) end = end.slice(1);
  return "…" + end.join("");
}

/** About how long a text is in a chart, in pixels: Chinese characters are as wide as they are high. */
const length = name => [...name].reduce((sum, letter) => sum + (letter > "\u2e7f" ? 12.5 : letter >= "A" && letter <= "Z" ? 8.4 : 6.8), 0);

function canvas(label, width, height, shapes) {
  return shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...shapes);
}

const text = (x, y, words, attributes = {}) => shape("text", { x, y, ...attributes }, words);
const rule = (x1, y1, x2, y2, kind) => shape("line", { x1, y1, x2, y2, class: kind });

/** Values over time, 0 to 1. Series: { name, kind, values }; gaps stay gaps. */
export function shareOverTime(label, times, series, width = ordinary) {
  const [height, left, right, top, bottom] = [230, 48, 84, 10, 26];
  const x = index => left + (width - left - right) * (times.length < 2 ? 1 : index / (times.length - 1));
  const y = share => top + (height - top - bottom) * (1 - share);
  const shapes = [0, .25, .5, .75, 1].flatMap(share => [rule(left, y(share), width - right, y(share), "grid"),
    text(left - 6, y(share) + 4, share * 100 + " %", { "text-anchor": "end", class: "soft" })]);
  if (times.length) shapes.push(text(left, height - 6, clock(times[0]), { class: "soft" }),
    text(width - right, height - 6, clock(times.at(-1)), { class: "soft", "text-anchor": "end" }));
  const labels = [];
  for (const { name, kind, values } of series) {
    let path = "", drawn = false, last = null;
    values.forEach((share, index) => {
      if (share === null) { drawn = false; return; }
      path += `${drawn ? "L" : "M"}${x(index).toFixed(1)} ${y(share).toFixed(1)}`;
      if (!drawn) path += "h.1";
      [drawn, last] = [true, share];
    });
    if (last === null) continue;
    shapes.push(shape("path", { d: path, class: `line ${kind}` }));
    labels.push({ at: y(last), words: `${name} ${percent(last)}`, kind });
  }
  return canvas(label, width, height, [...shapes, ...apart(labels, width - right + 6, top, height - bottom)]);
}

/** Labels at the ends of lines, moved apart so that none covers another. */
function apart(labels, x, top, bottom) {
  labels.sort((a, b) => a.at - b.at);
  labels.forEach((label, index) => {
    label.at = Math.max(label.at, index ? labels[index - 1].at + 30 : top + 6);
  });
  const over = labels.length ? Math.max(0, labels.at(-1).at + 14 - bottom) : 0;
  return labels.flatMap(({ at, words, kind }) => {
    const [name, ...figure] = words.split(" ");
    return [text(x, at - over, name, { class: kind }), text(x, at - over + 14, figure.join(" "), { class: kind })];
  });
}

/** How much has happened by when: for each group, buckets of [upper bound in ms or null, count]. */
export function distribution(label, groups, width = ordinary) {
  const [height, left, right, top, bottom] = [230, 48, 84, 10, 26];
  const used = groups.flatMap(({ buckets }) => buckets.filter(([bound, count]) => bound && count).map(([bound]) => bound));
  const [least, most] = [Math.min(...used, 100) / 4, Math.max(...used, 1000)];
  const x = bound => left + (width - left - right) * Math.min(1, Math.max(0, Math.log(bound / least) / Math.log(most / least)));
  const y = share => top + (height - top - bottom) * (1 - share);
  const shapes = [0, .25, .5, .75, 1].flatMap(share => [rule(left, y(share), width - right, y(share), "grid"),
    text(left - 6, y(share) + 4, share * 100 + " %", { "text-anchor": "end", class: "soft" })]);
  for (const tick of [1, 10, 100, 1000, 10000, 100000].filter(tick => tick >= least && tick <= most)) {
    shapes.push(rule(x(tick), top, x(tick), height - bottom, "grid"),
      text(x(tick), height - 6, tick < 1000 ? tick + " ms" : tick / 1000 + " s", { "text-anchor": "middle", class: "soft" }));
  }
  const labels = [];
  groups.forEach(({ name, kind, count, buckets, p50_ms }) => {
    let [sum, path] = [0, `M${left} ${y(0)}`];
    for (const [bound, within] of buckets) {
      sum += within;
      path += `L${x(bound ?? most).toFixed(1)} ${y(sum / count).toFixed(1)}`;
    }
    shapes.push(shape("path", { d: path, class: `line ${kind}` }));
    labels.push({ at: top + 14 + labels.length * 34, words: `${name} ${number(p50_ms)} ms`, kind });
  });
  return canvas(label, width, height, [...shapes, ...apart(labels, width - right + 8, top, height - bottom)]);
}

/** A row per instance: its share in each of the last 30 spans as a cell, and on the right the whole, against its fair share. */
export function shareMap(label, rows, words, width = wide) {
  const [left, bars, step, top] = [Math.min(180, width * .34), Math.min(250, width * .36), 24, 6];
  const columns = 30;
  const cell = (width - left - bars - 20) / columns;
  const height = top + rows.length * step + 22;
  const most = Math.max(.01, ...rows.flatMap(row => [row.share ?? 0, row.fair])) * 1.25;
  const x = share => width - bars + (bars - 60) * share / most;
  const between = Math.min(1, cell / 6);
  const shapes = rows.flatMap((row, index) => {
    const y = top + index * step;
    const first = columns - row.cells.length;
    const cells = row.cells.map((share, at) => share === null
      ? shape("rect", { x: left + (first + at) * cell, y, width: cell - between, height: step - 3, class: "gone" })
      : shape("rect", { x: left + (first + at) * cell, y, width: cell - between, height: step - 3, class: "cell",
          fill: "var(--hit)", "fill-opacity": (.06 + .94 * Math.min(1, share / (2 * row.fair))).toFixed(2) }));
    const bar = row.share === null ? [] : [
      shape("rect", { x: x(0), y: y + 2, width: Math.max(1, x(row.share) - x(0)), height: step - 7, class: "bar" }),
      text(x(Math.max(row.share, row.fair)) + 8, y + 15, percent(row.share))];
    return [text(left - 8, y + 15, fitting(row.name, left - 8), { "text-anchor": "end" }), ...cells, ...bar,
      rule(x(row.fair), y, x(row.fair), y + step - 1, "bound")];
  });
  shapes.push(text(width - 4, height - 5, rows[0].fairName, { "text-anchor": "end", class: "soft" }));
  if (width > 500) shapes.push(text(left, height - 5, words.minutes_ago, { class: "soft" }),
    text(left + columns * cell, height - 5, words.now, { "text-anchor": "end", class: "soft" }));
  return canvas(label, width, height, shapes);
}

/** A bar for each row: { name, value, words, full, gone }, with a line at the bound if there is one. */
export function bars(label, rows, bound, boundName, width = ordinary) {
  const longest = Math.max(...rows.map(row => length(row.name))) + 16;
  // Where names would leave no room for bars, they stand above them.
  const above = longest > width * .45;
  const [left, right, step, top] = [above ? 2 : Math.max(longest, width * .2), Math.min(90, width * .24), above ? 42 : 26, 6];
  const height = top + rows.length * step + (bound ? 20 : 4);
  const most = Math.max(1e-9, bound ?? 0, ...rows.map(row => row.value)) * 1.05;
  const x = value => left + (width - left - right) * value / most;
  const shapes = rows.flatMap((row, index) => {
    const y = top + index * step + (above ? 16 : 0);
    return [above ? text(left, y - 4, fitting(row.name, width)) : text(left - 8, y + 15, row.name, { "text-anchor": "end" }),
      shape("rect", { x: left, y: y + 2, width: Math.max(1, x(row.value) - left), height: 17,
        class: row.gone ? "gone" : row.full ? "bar full" : "bar" }),
      text(x(Math.max(row.value, 0)) + (bound && row.value < bound && x(bound) - x(row.value) < 70 ? x(bound) - x(row.value) : 0) + 8,
        y + 15, row.words)];
  });
  if (bound) shapes.push(rule(x(bound), top - 2, x(bound), height - 18, "bound"),
    text(x(bound), height - 4, `${boundName} ${bound}`, { "text-anchor": "middle", class: "soft" }));
  return canvas(label, width, height, shapes);
}

/** A row per prefix: how large it is, which instances hold it (the stronger, the more), and how much it is asked for. */
export function prefixMap(label, rows, instances, words, width = ordinary) {
  const [left, bars, step, top] = [Math.min(150, width * .42), Math.min(150, width * .28), 24, 22];
  const cell = Math.min(60, (width - left - bars - 14) / Math.max(1, instances.length));
  const height = top + rows.length * step + 4;
  const from = left + cell * instances.length + 14, most = Math.max(.01, ...rows.map(row => row.share));
  const x = share => from + (width - from - 58) * share / most;
  const shapes = [text(left - 8, 14, words.size, { "text-anchor": "end", class: "soft" }),
    width < 400 ? text(width - 2, 14, words.share, { "text-anchor": "end", class: "soft" }) : text(from, 14, words.heat, { class: "soft" })];
  // Where columns are wide enough, the ends of their instances' names tell them apart; a pointer tells the whole name.
  if (cell < 36) shapes.push(text(left, 14, words.held, { class: "soft" }));
  else shapes.push(...instances.map((instance, at) => text(left + (at + .5) * cell - 1, 14, instance.split(/[-:/]/).at(-1).slice(-6),
    { "text-anchor": "middle", class: "soft" })));
  rows.forEach((row, index) => {
    const y = top + index * step;
    shapes.push(text(left - 8, y + 15, row.name, { "text-anchor": "end" }));
    instances.forEach((instance, at) => {
      const part = row.holders.get(instance) ?? 0;
      shapes.push(shape("rect", { x: left + at * cell, y: y + 1, width: cell - 2, height: step - 4, class: part ? "cell" : "gone",
        fill: part ? "var(--hit)" : null, "fill-opacity": part ? (.15 + .85 * part).toFixed(2) : null },
      shape("title", {}, `${instance}: ${percent(part)}`)));
    });
    shapes.push(shape("rect", { x: from, y: y + 2, width: Math.max(1, x(row.share) - from), height: step - 7, class: "bar" }),
      text(x(row.share) + 6, y + 15, percent(row.share)));
  });
  return canvas(label, width, height, shapes);
}

/** From where to where: pairs of { from, to, count }; the thicker, the more. */
export function flows(label, pairs, width = ordinary) {
  const names = Math.min(180, width * .36);
  const [left, right, step, top] = [names, names, 30, 8];
  const side = name => [...new Set(pairs.map(pair => pair[name]))].sort();
  const [sources, targets] = [side("from"), side("to")];
  const height = top + Math.max(sources.length, targets.length) * step + 6;
  const most = Math.max(...pairs.map(pair => pair.count));
  const y = (names, name) => top + (names.indexOf(name) + .5) * step;
  const shapes = pairs.map(({ from, to, count }) => {
    const [a, b, middle] = [y(sources, from), y(targets, to), width / 2];
    return shape("path", { d: `M${left} ${a}C${middle} ${a} ${middle} ${b} ${width - right} ${b}`, class: "flow",
      "stroke-width": (1.5 + 12 * count / most).toFixed(1) });
  });
  const total = (name, whose) => pairs.filter(pair => pair[whose] === name).reduce((sum, pair) => sum + pair.count, 0);
  shapes.push(...sources.map(name => text(left - 8, y(sources, name) + 4, `${fitting(name, left - 36)} −${total(name, "from")}`, { "text-anchor": "end" })),
    ...targets.map(name => text(width - right + 8, y(targets, name) + 4, `+${total(name, "to")} ${fitting(name, right - 36)}`)));
  return canvas(label, width, height, shapes);
}

/** A line without axes. */
export function spark(values) {
  const known = values.filter(value => value !== null);
  const most = Math.max(1e-9, ...known);
  const points = values.map((value, index) => value === null ? null
    : `${(index / Math.max(1, values.length - 1) * 120).toFixed(1)},${(26 - value / most * 24).toFixed(1)}`);
  return shape("svg", { viewBox: "0 0 120 28", preserveAspectRatio: "none", "aria-hidden": "true" },
    shape("polyline", { points: points.filter(point => point).join(" "), class: "line hit" }));
}
