// Asks the router for its overview again and again, and shows it.

import {
  bars, clock, compact, distribution, element, fillTable, flows, narrowest, number, ordinary, percent, prefixMap, shareMap,
  shareOverTime, spark, wide,
} from "./draw.js";
import { alertSaid, noteSaid, outcomeSaid, placeSaid, problemSaid } from "./sentences.js";
import { languages } from "./words.js";

const EVERY = 2000, LONGEST_WAIT = 30000, STALE_AFTER = 12, OUTCOMES = ["hit", "miss", "spill", "unknown"];
const find = id => document.getElementById(id);

let language = "en", words = languages.en, overview = null, kept = null, analysis = null, told = null, answered = 0, paused = false, wait = EVERY, timer = null, chosen = null;
// The token stays in this tab: other tabs, and this one once it is closed, do not have it.
let token = sessionStorage.getItem("isotherm-token");

async function ask(path, options = {}) {
  return fetch(path, { ...options, headers: { authorization: `Bearer ${token}` }, cache: "no-store" });
}

async function look() {
  clearTimeout(timer);
  if (!token) return signIn("");
  if (!paused && !document.hidden) {
    try {
      const verdict = find("verdict").value;
      const [answer, listed] = await Promise.all([ask("api/overview?points=180&requests=50"),
        ask(`api/requests?limit=50${verdict ? `&verdict=${verdict}` : ""}`)]);
      if (answer.status === 401) return signIn(words.token_wrong);
      if (!answer.ok) throw new Error(`${answer.status}`);
      [overview, answered, wait] = [await answer.json(), Date.now(), EVERY];
      kept = listed.ok ? await listed.json() : null;
      find("trouble").hidden = true;
      show();
    } catch (problem) {
      wait = Math.min(LONGEST_WAIT, wait * 2);
      find("trouble").textContent = words.trouble(problem.message);
      find("trouble").hidden = false;
      say(words.offline, false);
    }
  }
  timer = setTimeout(look, wait);
}

function signIn(problem) {
  token = null;
  sessionStorage.removeItem("isotherm-token");
  find("board").hidden = true;
  find("sign-in").hidden = false;
  find("token-path").firstElementChild.textContent = `$XDG_RUNTIME_DIR/isotherm/admin-${location.port}.token`;
  find("token-problem").textContent = problem;
  find("token").focus();
}

function translate() {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const spoken of document.querySelectorAll("[data-say]")) spoken.textContent = words[spoken.dataset.say];
  const verdict = find("verdict"), asked = verdict.value;
  verdict.replaceChildren(...["", "hit", "miss", "unknown", "failed"].map(value =>
    element("option", { value }, value ? words.verdicts[value] : words.all)));
  verdict.value = asked;
  find("pause").textContent = paused ? words.resume : words.pause;
}

function show() {
  const signedIn = !find("sign-in").hidden;
  find("sign-in").hidden = true;
  find("board").hidden = false;
  // What had the focus is gone.
  if (signedIn) find("main").focus({ preventScroll: true });
  const variant = chooseVariant();
  showState();
  showAlerts();
  if (!variant) return;
  find("routing").textContent =
    words.routing(variant.strategy, variant.prefix_length, variant.concurrency_threshold, variant.rollout);
  showTiles(variant);
  showCharts(variant);
  showPrefixes(variant);
  showMoves();
  showRivals(variant);
  showInstances(variant);
  showRouting(variant);
  showEndpoints();
  showVerdicts();
  showTold();
  showAnalysis();
  showRequests();
}

/** What other strategies would have had of the same requests, and what the one in force saves. */
function showRivals({ shadow }) {
  const rivals = shadow?.strategies ?? [];
  const named = one => one.strategy + (one.prefix_length ? ` ${one.prefix_length}` : "") + (one.in_force ? ` (${words.in_force})` : "");
  const saved = shadow?.saved && words.saves(compact(shadow.saved.tokens_per_hour),
    shadow.saved.instance_seconds_per_hour === null ? null : compact(shadow.saved.instance_seconds_per_hour),
    shadow.saved.money_per_hour === null ? null : number(shadow.saved.money_per_hour, 2));
  const better = shadow?.better && words.better(shadow.better.strategy, percent(shadow.better.hit_rate_gain));
  chart("rivals", words.rivals_title, [better, saved, words.rivals_note].filter(Boolean).join(" "),
    rivals.length ? bars(words.rivals_title, rivals.map(one => ({ name: named(one), value: one.hit_rate ?? 0, words: percent(one.hit_rate) })),
      null, null, room("rivals")) : null,
    [[words.strategy], [words.length, true], [words.threshold_title, true], [words.hit_rate, true], [words.busiest, true]],
    () => rivals.map(one => [one.in_force ? `${one.strategy} (${words.in_force})` : one.strategy, number(one.prefix_length),
      number(one.concurrency_threshold), percent(one.hit_rate), percent(one.busiest_share)]), kept?.on ? words.waiting_rivals : words.empty_rivals);
}

/** Why each of the last requests hit or missed, where they are kept as hashes. */
function showVerdicts() {
  const focused = document.activeElement?.dataset?.request;
  const own = (kept?.requests ?? []).filter(one => `${one.endpoint}/${one.variant}` === chosen);
  find("analyse").disabled = find("ask-request").disabled = !kept?.on;
  if (!own.length) return find("verdicts").replaceChildren(emptyBody(kept?.on ? words.empty_requests : words.empty_verdicts));
  fillTable(find("verdicts"), words.verdicts_title,
    [[words.ended, true], [words.request, false, "key"], [words.verdict], [words.why], [words.instance], [words.tokens, true], [words.cached, true],
      [words.here, true], [words.best], [words.nearest]],
    own.map(one => [ago(one.time), askButton(one), verdictTag(one), why(one), one.placed ? short(one.placed.instance) : "–", number(one.prompt_tokens), number(one.cached_tokens), number(one.here_tokens),
      one.best ? `${short(one.best.instance)}: ${number(one.best.tokens)}` : "–",
      nearest(one)]));
  if (focused) [...document.querySelectorAll("[data-request]")].find(one => one.dataset.request === focused)?.focus();
}

const VERDICTS = { hit: "good", miss: "other", failed: "bad" };
const ago = time => `${Math.max(0, Math.round(overview.time - time))} ${words.seconds_ago}`;
const verdictTag = one => element("span", { class: `tag ${VERDICTS[one.verdict] ?? ""}` }, words.verdicts[one.verdict]);
const why = one => one.verdict === "under_way" ? "–" : (words.reasons[one.reason] ?? one.reason) + (one.place ? words.at(placeSaid(language, one.place) ?? one.part) : "");
const nearest = one => one.nearest
  ? words.before(one.nearest.request_id.slice(0, 8), number(one.nearest.seconds_before, 1), number(one.nearest.shared_tokens)) : "–";

/** A request's id, which tells all of it when it is pressed. */
function askButton({ request_id }) {
  const button = element("button", { type: "button", class: "link", "data-request": request_id, title: request_id },
    request_id.slice(0, 8));
  button.addEventListener("click", () => tell(request_id));
  return button;
}

/** Asks why one request hit or missed. */
async function tell(id) {
  find("request-id").value = id;
  const answer = await ask(`api/requests/${encodeURIComponent(id)}`), said = await answer.json();
  told = answer.ok ? { request: said } : { problem: said.error };
  showTold();
}

function showTold() {
  if (!told) return find("told").replaceChildren();
  if (told.problem) return find("told").replaceChildren(element("p", { class: "problem" }, spoken(told.problem)));
  const one = told.request, { placed } = one;
  const share = one.prompt_tokens && one.cached_tokens !== null ? percent(one.cached_tokens / one.prompt_tokens) : "–";
  const rows = [
    [words.request, element("code", {}, one.request_id)],
    [words.verdict, element("span", {}, verdictTag(one), " ", why(one))],
    [words.actual, words.reported_tokens(number(one.cached_tokens), number(one.prompt_tokens), share)],
    [words.believed, placed?.expected_cached_tokens === null || !placed ? words.nothing_believed : number(placed.expected_cached_tokens)],
    [words.here, number(one.here_tokens)],
    [words.best, one.best ? `${one.best.instance}: ${number(one.best.tokens)}` : "–"],
    [words.went_to, placed ? `${placed.instance} (${words.reason_names[placed.reason] ?? placed.reason}${placed.cause
      ? `, ${words.cause_names[placed.cause] ?? placed.cause}` : ""}), ${words.in_flight_there(number(placed.in_flight))}` : "–"],
    [words.home, placed?.home ? `${placed.home}, ${words.in_flight_there(number(placed.home_in_flight))}` : "–"],
    [words.prefix, element("code", {}, placed?.key ?? "–")],
    [words.nearest, one.nearest ? `${nearest(one)}, ${one.nearest.instance ?? "–"}` : "–"],
    ["TTFT", one.ttft_ms === null ? "–" : `${number(one.ttft_ms, 1)} ms`],
  ];
  find("told").replaceChildren(element("dl", { class: "told" }, ...rows.flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, value)])));
}

/** What the last requests share, when it was asked for. */
function showAnalysis() {
  if (!analysis) return find("analysis").replaceChildren();
  const { requests, sharing, reported_hit_rate, notes } = analysis.findings;
  const lines = [words.analysed(number(requests), sharing ? percent(sharing.infinite_hit_rate.value) : "–", percent(reported_hit_rate))];
  if (sharing) lines.push(words.shared(number(sharing.shared_lengths.p50), number(sharing.shared_lengths.p90)));
  if (sharing?.reuse_seconds) lines.push(words.reused(number(sharing.reuse_seconds.p50, 1), number(sharing.reuse_seconds.p90, 1)));
  const table = element("table");
  fillTable(table, words.curve, [[words.cache_size, true], [words.hit_rate, true]],
    (sharing?.curve ?? []).map(point => [number(point.cache_tokens), percent(point.hit_rate.value)]));
  find("analysis").replaceChildren(...lines.map(line => element("p", {}, line)),
    ...(sharing?.curve.length ? [element("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": words.curve }, table)] : []),
    ...analysis.notes.map((note, at) => element("p", { class: "note" }, inOurs(noteSaid(language, note), notes[at]))));
}

function chooseVariant() {
  const names = overview.variants.map(variant => `${variant.endpoint}/${variant.variant}`);
  const select = find("variant");
  if ([...select.options].map(option => option.value).join() !== names.join()) {
    select.replaceChildren(...names.map(name => element("option", { value: name }, name)));
  }
  if (!names.includes(chosen)) chosen = names[0];
  select.value = chosen;
  return overview.variants[names.indexOf(chosen)];
}

function showState() {
  say(overview.draining ? words.draining : overview.ready ? words.ready : words.not_ready, overview.ready && !overview.draining);
  showAge();
}

/** How the router does. Set only when it changes, so that screen readers speak of changes alone. */
function say(said, good) {
  if (find("state").textContent !== said) find("state").textContent = said;
  find("state").className = `state ${good ? "good" : "bad"}`;
}

function showAlerts() {
  const alerts = overview.alerts ?? [];
  find("alerts").hidden = alerts.length === 0;
  const row = one => element("li", { title: one.alert },
    element("span", { class: `tag ${one.state === "firing" ? "bad" : "other"}` }, words.alert_states[one.state]), " ",
    element("strong", {}, words.alert_names[one.alert] ?? one.alert),
    words.alert_head(words.severities[one.severity] ?? one.severity, clock(one.since)),
    inOurs(alertSaid(language, one), `${one.summary}. ${one.description}`));
  find("alerts-list").replaceChildren(...alerts.map(row));
}

function showAge() {
  if (!overview) return;
  const seconds = Math.round((Date.now() - answered) / 1000);
  const stale = seconds > STALE_AFTER && !paused;
  find("age").textContent = paused ? words.paused : stale ? words.stale(seconds) : words.updated(seconds);
  find("age").className = stale ? "age stale" : "age";
}

const milliseconds = value => value === null ? "–" : `${number(value)} ms`;

function showTiles({ minute, quarter_hour, series, instances, in_flight, waiting, shadow }) {
  const [own, random] = [shadow?.strategies.find(one => one.in_force), shadow?.strategies.find(one => one.strategy === "RANDOM")]
    .map(one => one?.hit_rate ?? null);
  const gain = own === null || random === null ? null : (own - random) * 100;
  const hottest = overview.hot_prefixes.find(prefix => `${prefix.endpoint}/${prefix.variant}` === chosen);
  const [cause] = Object.entries(minute.spills).sort((a, b) => b[1] - a[1])[0] ?? [null];
  const up = instances.filter(one => one.availability === "up").length;
  const tiles = [
    [words.requests_rate, number(minute.requests_per_second, 1), spark(series.requests_per_second)],
    [words.hit_rate, percent(minute.hit_rate), minute.expected_hit_rate === null ? null : `${words.expected} ${percent(minute.expected_hit_rate)}`,
      spark(series.hit_rate)],
    [words.gain, gain === null ? "–" : `${gain < 0 ? "−" : "+"}${number(Math.abs(gain), 1)}`,
      gain === null ? (kept?.on ? null : words.gain_off) : words.random_would(percent(random))],
    [words.first_token, milliseconds(minute.ttft.all.p50_ms), `${words.p99} ${milliseconds(minute.ttft.all.p99_ms)}`],
    [words.spills, percent(minute.spill_rate), cause && words.mostly(words.cause_names[cause] ?? cause), spark(series.spill_rate)],
    [words.errors, percent(minute.error_rate), `${number(minute.errors)}`],
    [words.flight, number(in_flight), `${words.waiting} ${waiting}`],
    [words.instances_up, `${up} ${words.of} ${instances.length}`],
    [words.hottest, hottest ? percent(hottest.share) : "–", hottest && words.of_requests(hottest.key.slice(0, 8))],
    [words.saved, compact(quarter_hour.cached_tokens), words.in_quarter],
  ];
  find("tiles").replaceChildren(...tiles.map(([name, figure, ...more]) => element("div", { class: "tile" },
    element("dt", {}, name), element("dd", {}, figure), ...more.filter(one => one).map(one => element("dd", { class: "more" }, one)))));
}

function showCharts(variant) {
  const { series, instances, quarter_hour } = variant;
  const groups = OUTCOMES.map(kind => ({ kind, name: words[kind], ...quarter_hour.ttft[kind] })).filter(group => group.count);
  chart("ttft", words.ttft_title, words.ttft_note, groups.length ? distribution(words.ttft_title, groups, room("ttft")) : null,
    [[words.outcome], [words.count, true], ["P50 ms", true], ["P90 ms", true], ["P95 ms", true], ["P99 ms", true]],
    () => groups.map(group => [group.name, number(group.count), ...["p50_ms", "p90_ms", "p95_ms", "p99_ms"].map(name => number(group[name], 1))]));

  const rates = [{ name: words.actual, kind: "hit", values: series.hit_rate },
    { name: words.expected, kind: "miss", values: series.expected_hit_rate }];
  const known = series.hit_rate.some(rate => rate !== null);
  chart("hit", words.hit_title, words.hit_note, known ? shareOverTime(words.hit_title, series.time, rates, room("hit")) : null,
    [[words.time], [words.actual, true], [words.expected, true]],
    () => series.time.map((time, index) => [clock(time), percent(series.hit_rate[index]), percent(series.expected_hit_rate[index])]).reverse());

  const rows = shareRows(instances, series.time.length);
  const served = instances.some(one => one.requests > 0);
  chart("shares", words.shares_title, words.shares_note, served ? shareMap(words.shares_title, rows, words, room("shares")) : null,
    [[words.instance], [words.share, true], [words.fair, true], [words.count, true]],
    () => instances.map(one => [one.id, percent(one.share), percent(one.fair_share), number(one.requests)]));

  const bound = variant.concurrency_threshold;
  const flight = instances.map(one => ({ name: short(one.id), value: one.in_flight, words: `${one.in_flight}`,
    full: bound && one.in_flight >= bound, gone: one.availability !== "up" }));
  chart("flight", words.flight_title, bound ? words.flight_note : words.no_threshold, bars(words.flight_title, flight, bound, words.threshold, room("flight")),
    [[words.instance], [words.flight, true], [words.threshold, true]],
    () => instances.map(one => [one.id, number(one.in_flight), number(bound)]));

  const causes = Object.entries(quarter_hour.spills).map(([cause, count]) =>
    [`${words.full_by} ${words.cause_names[cause] ?? cause}`, count, true]).sort((a, b) => b[1] - a[1]);
  const decided = Object.entries(quarter_hour.reasons).map(([reason, count]) =>
    [words.reason_names[reason] ?? reason, count, reason === "spill" || reason === "saturated"]).sort((a, b) => b[1] - a[1]);
  const reasons = [...decided, ...causes];
  const all = quarter_hour.requests;
  chart("reasons", words.reasons_title, words.reasons_note, reasons.length ? bars(words.reasons_title, reasons.map(([name, value, full]) =>
    ({ name, value, words: percent(value / all), full })), null, null, room("reasons")) : null,
    [[words.reason], [words.count, true], [words.share, true]],
    () => reasons.map(([name, count]) => [name, number(count), percent(count / all)]));
}

/** Shares within spans of six steps: half a minute. */
function shareRows(instances, steps) {
  const span = 6, spans = Math.ceil(steps / span);
  const sums = instances.map(one => Array.from({ length: spans }, (_, at) => {
    const requests = one.series.requests, end = requests.length - (spans - 1 - at) * span;
    return end <= 0 ? null : requests.slice(Math.max(0, end - span), end).reduce((sum, count) => sum + count, 0);
  }));
  const totals = Array.from({ length: spans }, (_, at) => sums.reduce((sum, row) => sum + (row[at] ?? 0), 0));
  const equal = instances.every(one => one.fair_share === instances[0].fair_share);
  return instances.map((one, index) => ({ name: short(one.id), share: one.share, fair: one.fair_share,
    fairName: equal ? `1/${instances.length} = ${percent(one.fair_share)}` : words.fair,
    cells: sums[index].map((sum, at) => sum === null || totals[at] === 0 ? null : sum / totals[at]) }));
}

/** How wide a chart may be drawn: for a narrow card at its own width, else as its kind is and scaled. */
function room(name) {
  const card = document.querySelector(`[data-chart=${name}]`), usual = card.classList.contains("wide") ? wide : ordinary;
  const inner = card.clientWidth - 34;
  return inner > 0 && inner < usual * .8 ? Math.max(narrowest, inner) : usual;
}

/** Fills a chart's card; the table is filled while it is open. */
function chart(name, title, note, drawing, columns, rows, empty = words.empty_chart) {
  const card = document.querySelector(`[data-chart=${name}]`);
  if (!card.firstChild) {
    const id = `chart-${name}`;
    card.setAttribute("aria-labelledby", id);
    const table = element("div", { class: "scroll", role: "group", tabindex: "0", "aria-labelledby": id }, element("table"));
    const details = element("details", {}, element("summary"), table);
    details.addEventListener("toggle", show);
    card.append(element("h2", { id }), element("p", { class: "note" }),
      element("figure", { role: "group", tabindex: "0", "aria-labelledby": id }), details);
  }
  const [heading, remark, figure, details] = card.children;
  [heading.textContent, remark.textContent, details.firstChild.textContent] = [title, note, words.table];
  figure.replaceChildren(drawing ?? element("p", { class: "empty" }, empty));
  if (details.open) fillTable(details.querySelector("table"), title, columns, rows());
}

const TAGS = { up: "good", down: "bad", ejected: "bad", draining: "other" };

function showInstances({ endpoint, variant, instances, concurrency_threshold }) {
  const focused = document.activeElement?.dataset?.drain;
  fillTable(find("instances"), words.instances_title,
    [[words.instance], [words.state], [words.flight, true], [words.share, true], [words.fair, true], [words.hit_rate, true],
      [words.expected, true], [words.engine_queue, true], [words.kv_cache, true], [words.upstream_errors, true], [words.origin], [words.action]],
    instances.map(one => [one.id, element("span", { class: `tag ${TAGS[one.availability]}`, title: one.problem_detail && (problemSaid(language, one.problem_detail) ?? one.problem) }, words.states[one.availability]),
      number(one.in_flight) + (concurrency_threshold ? ` / ${concurrency_threshold}` : ""), percent(one.share), percent(one.fair_share),
      percent(one.hit_rate), percent(one.expected_hit_rate), number(one.engine?.waiting), percent(one.engine?.kv_cache_usage), number(one.upstream_errors), words.origins[one.origin] ?? one.origin, drainButton(endpoint, variant, one)]));
  if (focused) document.querySelector(`[data-drain="${CSS.escape(focused)}"]`)?.focus();
}

function drainButton(endpoint, variant, one) {
  const draining = one.availability === "draining";
  const says = draining ? words.undo : words.drain;
  const button = element("button", { type: "button", "data-drain": one.id, "aria-label": `${says}: ${one.id}` }, says);
  button.addEventListener("click", async () => {
    if (!draining && !confirm(words.drain_ask(one.id))) return;
    const place = new URLSearchParams({ endpoint, variant });
    const answer = await ask(`api/instances/${encodeURIComponent(one.id)}/drain?${place}`, { method: draining ? "DELETE" : "POST" });
    find("done").replaceChildren(answer.ok ? (draining ? words.undone : words.drained)(one.id) : spoken((await answer.json()).error));
    look();
  });
  return button;
}

function showPrefixes({ instances }) {
  const prefixes = overview.hot_prefixes.filter(prefix => `${prefix.endpoint}/${prefix.variant}` === chosen);
  const rows = prefixes.slice(0, 12).map(({ key, share, prompt_tokens, holders }) => ({ share,
    name: `${key.slice(0, 8)} · ${prompt_tokens === null ? "–" : compact(prompt_tokens)}`,
    holders: new Map(holders.map(holder => [holder.instance, holder.share])) }));
  chart("prefixes", words.prefixes_title, words.prefixes_note,
    rows.length ? prefixMap(words.prefixes_title, rows, instances.slice(0, 16).map(one => one.id), words, room("prefixes")) : null,
    [[words.prefix, false, "key"], [words.share, true], [words.hit_rate, true], [words.tokens, true], [words.holders]],
    () => prefixes.map(prefix => [prefix.key.slice(0, 16), percent(prefix.share), percent(prefix.hit_rate), number(prefix.prompt_tokens),
      prefix.holders.map(holder => `${short(holder.instance)} ${percent(holder.share)}`).join(", ")]), words.empty_prefixes);
}

/** Which of the hot prefixes got another home when instances came or went: the last change as a picture, all as a table. */
function showMoves() {
  const changes = overview.fleet_changes.filter(change => `${change.endpoint}/${change.variant}` === chosen);
  const last = changes.find(change => change.moves.length);
  const pairs = new Map();
  for (const { from, to } of last?.moves ?? []) {
    const name = `${from}\n${to}`;
    pairs.set(name, { from: short(from), to: short(to), count: (pairs.get(name)?.count ?? 0) + 1 });
  }
  const named = ids => ids.map(short).join(", ") || "–";
  const note = last ? words.moves_last(clock(last.time), named(last.came), named(last.went), last.moved, last.followed) : words.moves_note;
  chart("moves", words.moves_title, note, pairs.size ? flows(words.moves_title, [...pairs.values()], room("moves")) : null,
    [[words.time], [words.came], [words.went], [words.moved, true], [words.followed, true], [words.where]],
    () => changes.map(change => [clock(change.time), named(change.came), named(change.went), number(change.moved), number(change.followed),
      change.moves.map(({ key, from, to }) => `${key.slice(0, 8)}: ${short(from)} → ${short(to)}`).join("; ")]),
    changes.length ? words.moves_none : words.empty_moves);
}

function showEndpoints() {
  fillTable(find("endpoints"), words.endpoints_title,
    [[words.endpoint], [words.variant], [words.traffic, true], [words.strategy], [words.instances_up, true], [words.components]],
    overview.endpoints.flatMap(({ name, managed, variants, components }) => variants.map(one => [
      managed ? `${name} (${words.managed})` : name, one.shadow ? `${one.name} (${words.shadow})` : one.name, percent(one.traffic),
      one.strategy, `${one.available} / ${one.instances}`, components.join(", ") || "–"])));
  const under = overview.deployments;
  if (!under.length) return find("deployments").replaceChildren();
  const table = element("table");
  fillTable(table, words.deployments_title, [[words.endpoint], [words.state], [words.configuration], [words.failure]],
    under.map(one => [one.endpoint, element("span", { class: `tag ${one.status.includes("Fail") ? "bad" : "other"}` }, one.status),
      one.config, one.failure ? inOurs(null, one.failure) : "–"]));
  find("deployments").replaceChildren(element("h3", { id: "deployments-title" }, words.deployments_title),
    element("div", { class: "scroll", role: "group", tabindex: "0", "aria-labelledby": "deployments-title" }, table));
}

/** Fills the form with what is in force, unless somebody is at it. */
function showRouting(variant) {
  const form = find("route");
  if (form.closest("details").open) return;
  for (const name of ["strategy", "prefix_length", "concurrency_threshold", "rollout"]) {
    form.elements[name].value = variant[name] ?? "";
  }
}

function showRequests() {
  const requests = overview.requests.filter(request => `${request.endpoint}/${request.variant}` === chosen);
  if (!requests.length) return find("requests").replaceChildren(emptyBody(words.empty_requests));
  fillTable(find("requests"), words.requests_title,
    [[words.ended, true], [words.prefix, false, "key"], [words.reason], [words.instance], [words.home], [words.alternatives], [words.place, true],
      [words.flight, true], ["TTFT ms", true], [words.duration + " ms", true], [words.tokens, true], [words.cached, true],
      [words.expected, true], [words.outcome_status, true]],
    requests.map(request => [ago(request.time), request.key?.slice(0, 8) ?? "–",
      words.reason_names[request.reason] ?? request.reason,
      short(request.instance), request.home ? short(request.home) + (request.home_in_flight !== null ? ` (${request.home_in_flight})` : "") : "–",
      alternatives(request), request.place === null ? "–" : `${request.place} / ${request.eligible}`, number(request.in_flight), number(request.ttft_ms, 1),
      number(request.duration_ms), number(request.prompt_tokens), number(request.cached_tokens), number(request.expected_cached_tokens),
      `${request.status}${request.outcome === "ok" ? "" : " " + outcomeSaid(language, request.outcome)}`]));
}

/** Where else its key would have led: the first in its order, with what they have in flight now. */
const alternatives = ({ order, instance }) => order.filter(one => one.instance !== instance)
  .map(one => `${short(one.instance)} (${one.eligible ? one.in_flight : words.passed_over})`).join(", ") || "–";

/** Sends a change and says what came of it. */
async function send(path, method, body, said) {
  const answer = await ask(path, { method, body: JSON.stringify(body) });
  find("done").replaceChildren(answer.ok ? said : spoken((await answer.json()).error));
  if (answer.ok) look();
  return answer.ok;
}

const given = form => Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== "")
  .map(([name, value]) => [name, form.elements[name].type === "number" ? Number(value) : value]));

const emptyBody = said => element("tbody", {}, element("tr", {}, element("td", { class: "empty" }, said)));
/** What is said in our language, else as the router says it, which is English. */
const inOurs = (said, english) => said ?? element("span", { lang: "en" }, english);
const spoken = problem => inOurs(problemSaid(language, problem), problem.message);
const short = id => id.replace(/^https?:\/\//, "").slice(-24);

find("sign-in").addEventListener("submit", event => {
  event.preventDefault();
  token = find("token").value.trim();
  find("token").value = "";
  sessionStorage.setItem("isotherm-token", token);
  look();
});
find("add").addEventListener("submit", async event => {
  event.preventDefault();
  const [endpoint, variant] = chosen.split("/"), added = given(event.target);
  if (await send("api/instances", "POST", { ...added, endpoint, variant }, words.added(added.url))) event.target.reset();
});
find("route").addEventListener("submit", async event => {
  event.preventDefault();
  const [endpoint, variant] = chosen.split("/").map(encodeURIComponent), change = given(event.target);
  if (!confirm(words.route_ask(change.strategy))) return;
  const done = await send(`api/endpoints/${endpoint}/variants/${variant}/routing`, "PUT", change, words.routed(change.strategy));
  if (done) event.target.closest("details").open = false;
});
find("pause").addEventListener("click", () => {
  paused = !paused;
  find("pause").setAttribute("aria-pressed", paused);
  translate();
  showAge();
  if (!paused) look();
});
find("verdict").addEventListener("change", look);
find("ask").addEventListener("submit", event => {
  event.preventDefault();
  tell(find("request-id").value.trim());
});
addEventListener("resize", () => { if (overview && token) show(); });
find("analyse").addEventListener("click", async () => {
  find("analysis").replaceChildren(element("p", { class: "note" }, words.analysing));
  const answer = await ask("api/analysis"), told = await answer.json();
  analysis = answer.ok ? told : null;
  if (answer.ok) showAnalysis();
  else find("analysis").replaceChildren(element("p", { class: "problem" }, spoken(told.error)));
});
find("variant").addEventListener("change", event => { chosen = event.target.value; show(); });
find("language").addEventListener("change", event => speak(event.target.value));
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });

function speak(next) {
  [language, words] = [next, languages[next]];
  find("language").value = language;
  localStorage.setItem("isotherm-language", language);
  translate();
  if (overview && token) show();
}

speak(localStorage.getItem("isotherm-language") ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
setInterval(showAge, 1000);
look();
