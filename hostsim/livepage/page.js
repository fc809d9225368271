"use strict";
// All text that clients or plugins have chosen goes in by textContent; the page's policy allows nothing else.
const ROWS = 40, SESSIONS = 256, CHIPS = 24, PENDING = 60, FLIGHTS = 16, SILENCE = 6000;
const byId = id => document.getElementById(id);
const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};

// How a reason looks: a colour and a sign, so that none is told by colour alone. Any other plugin's reasons get a colour too.
const LOOKS = {
  __proto__: null, // or "constructor" would be found
  pinned: ["teal", "\u25CF"], placed: ["blue", "\u271A"], expired: ["amber", "\u21BB"], keyless: ["grey", "\u25CB"],
  failover_unhealthy: ["red", "\u25B2"], failover_removed: ["red", "\u25BC"], oversized: ["violet", "\u25A0"],
  table_full: ["violet", "\u25A0"], no_replica: ["red", "\u2715"], error: ["red", "\u2715"], local_reply: ["grey", "\u21A9"],
  overload: ["red", "\u2715"], no_healthy_upstream: ["red", "\u2715"], upstream_connection_failure: ["red", "\u2715"],
  upstream_reset_before_response_started: ["red", "\u2715"], request_payload_too_large: ["violet", "\u25A0"], stream_idle_timeout: ["amber", "\u25F7"],
};
const hueOf = text => {
  let h = 0;
  for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) >>> 0;
  return (h * 137) % 360;
};
function reason(name) {
  const [tone, sign] = LOOKS[name] || [["blue", "teal", "amber", "violet"][hueOf(name) % 4], "\u25C6"];
  const node = make("span", "reason", name || "not told");
  node.dataset.tone = name ? tone : "grey";
  node.dataset.sign = name ? sign : "\u2013";
  return node;
}

let instance = "", latest = null, drawn = false, paused = false, heard = 0;
let pending = [], flights = [], sessions = new Map(), rows = new Map();

function take(update) {
  heard = Date.now();
  if (update.instance !== instance || update.snapshot) {
    instance = update.instance;
    pending = [];
    sessions.clear();
    byId("decisions").tBodies[0].replaceChildren();
  }
  for (const d of update.decisions) {
    if (pending.push(d) > PENDING) pending.shift();
    if (!update.snapshot && !document.hidden && flights.length < FLIGHTS) flights.push(d);
  }
  for (const s of update.sessions.reverse()) {
    const before = sessions.get(s.name);
    sessions.delete(s.name);
    sessions.set(s.name, s); // the newest is the map's last
    s.came = !update.snapshot && (!before || before.home !== s.home);
    s.turned = !update.snapshot;
  }
  while (sessions.size > SESSIONS) sessions.delete(sessions.keys().next().value);
  latest = update;
  if (!drawn) { drawn = true; requestAnimationFrame(draw); }
}

function draw() {
  drawn = false;
  drawNow(latest);
  drawReplicas(latest.replicas, !latest.snapshot);
  drawReasons(latest.reasons);
  if (!paused) drawDecisions();
  byId("quiet").hidden = latest.count > 0;
  for (const s of sessions.values()) s.came = s.turned = false;
}

const openOf = r => {
  let sum = null;
  for (const [name, value] of Object.entries(r.gauges)) if (name.endsWith("_sessions")) sum = (sum || 0) + value;
  return sum;
};
const sumOf = (list, f) => list.reduce((n, x) => n + (f(x) || 0), 0);

function drawNow(u) {
  const recent = u.rates.slice(-5);
  const rate = sumOf(recent, n => n) / Math.max(1, recent.length);
  put(byId("rate"), rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString("en"));
  put(byId("running"), sumOf(u.replicas, r => r.running).toLocaleString("en"));
  put(byId("place"), u.gateway);
  put(byId("total"), u.count.toLocaleString("en"));
  const open = u.replicas.some(r => openOf(r) !== null), prompts = sumOf(u.replicas, r => r.promptTokens);
  byId("open-tile").hidden = !open;
  byId("hit-tile").hidden = !prompts;
  put(byId("open"), sumOf(u.replicas, openOf).toLocaleString("en"));
  put(byId("hit"), prompts ? (100 * sumOf(u.replicas, r => r.cached) / prompts).toFixed(0) + "%" : "");
  byId("replicas").classList.toggle("no-open", !open);
  byId("replicas").classList.toggle("no-hit", !prompts);
  const spark = byId("spark"), top = Math.max(4, ...u.rates);
  while (spark.childElementCount < u.rates.length) {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    bar.setAttribute("x", 4 * spark.childElementCount);
    bar.setAttribute("width", 3);
    spark.append(bar);
  }
  u.rates.forEach((n, i) => {
    const height = n ? Math.max(1.5, 40 * n / top) : .5;
    spark.children[i].setAttribute("height", height);
    spark.children[i].setAttribute("y", 40 - height);
  });
}

// meter is a cell with a number and a bar of it.
function meter(kind, className) {
  const cell = make("td", className), value = make("span", "value"), bar = make("span", "bar " + kind), fill = make("i");
  bar.setAttribute("aria-hidden", "true");
  bar.append(fill);
  cell.append(value, bar);
  return { cell, show: (text, share) => { put(value, text); fill.style.width = 100 * Math.min(1, share || 0) + "%"; } };
}

function newRow(r) {
  const line = make("tr"), head = make("th"), state = make("span", "state");
  head.scope = "row";
  head.append(make("span", "address mono", r.address), state);
  const open = meter("open", "has-open"), flight = meter("flight"), asked = meter("asked"), hit = meter("hit", "has-hit");
  const homes = make("td", "homes"), chips = make("div", "chips");
  homes.append(chips);
  line.append(head, open.cell, flight.cell, asked.cell, hit.cell, homes);
  byId("replicas").tBodies[0].append(line);
  return { line, head, homes, address: r.address, state, open, flight, asked, hit, chips, shown: new Map() };
}

function drawReplicas(list, live) {
  const present = new Set(), most = f => Math.max(1, ...list.map(f));
  const mostOpen = most(r => openOf(r) || 0), mostRunning = Math.max(4, most(r => r.running)), mostAsked = most(r => r.requests);
  const homes = new Map();
  for (const s of [...sessions.values()].reverse()) {
    if (!homes.has(s.home)) homes.set(s.home, []);
    homes.get(s.home).push(s);
  }
  const several = new Set(list.map(r => r.cluster)).size > 1;
  for (const r of list) {
    const key = r.cluster + " " + r.address;
    present.add(key);
    if (!rows.has(key)) rows.set(key, newRow(r));
    const row = rows.get(key), words = { ok: "answers", idle: "not asked yet", cooling: "cools down", failing: "no answer to the last " + r.failures };
    row.state.dataset.state = r.state;
    put(row.state, (words[r.state] || r.state) + (several ? ", cluster " + r.cluster : ""));
    const open = openOf(r);
    row.open.show(open === null ? "\u2013" : String(open), open / mostOpen);
    row.flight.show(String(r.running), r.running / mostRunning);
    row.asked.show(r.requests.toLocaleString("en"), r.requests / mostAsked);
    const hit = r.cached / r.promptTokens; // NaN of none
    row.hit.show(r.promptTokens ? (100 * hit).toFixed(1) + "%" : "\u2013", hit);
    drawChips(row, homes.get(r.address) || [], live);
  }
  flights.forEach((d, i) => {
    const row = [...rows.values()].find(row => row.address === d.upstream);
    if (row) fly(row, d, 220 * i / flights.length);
  });
  flights = [];
  for (const [key, row] of rows) if (!present.has(key)) { row.line.remove(); rows.delete(key); }
}

// fly shows a request on its way to the row's sessions.
function fly(row, d, delay) {
  if (row.head.querySelectorAll(".dot").length > FLIGHTS) return;
  const dot = make("span", "dot");
  dot.setAttribute("aria-hidden", "true");
  dot.style.color = "var(--" + reason(d.reason).dataset.tone + ")";
  dot.style.setProperty("--way", row.homes.offsetLeft + "px");
  dot.style.animationDelay = delay + "ms";
  dot.addEventListener("animationend", () => dot.remove());
  setTimeout(() => dot.remove(), 2000); // where nothing is animated
  row.head.append(dot);
}

// drawChips keeps a chip where it is as long as its session stays: a list that jumps cannot be read.
function drawChips(row, here, live) {
  const wanted = new Map(here.slice(0, CHIPS).map(s => [s.name, s]));
  for (const [name, chip] of row.shown) if (!wanted.has(name)) { chip.remove(); row.shown.delete(name); }
  for (const s of [...wanted.values()].reverse()) {
    let chip = row.shown.get(s.name);
    if (!chip) {
      chip = make("span", "chip", s.name);
      chip.style.setProperty("--hue", hueOf(s.name));
      row.shown.set(s.name, chip);
      row.chips.prepend(chip);
      if (live) chip.classList.add("came");
    } else if (s.turned) {
      chip.classList.remove("came", "turn");
      void chip.offsetWidth; // so that the animation begins anew
      chip.classList.add("turn");
    }
    chip.title = s.name + ": " + s.turns + (s.turns === 1 ? " turn" : " turns") + ", the last one at " + new Date(s.at).toLocaleTimeString();
  }
  let more = row.chips.querySelector(".more");
  if (here.length <= CHIPS) { if (more) more.remove(); return; }
  if (!more) { more = make("span", "more"); row.chips.append(more); }
  put(more, "and " + (here.length - CHIPS) + " more");
}

const lines = new Map();
function drawReasons(reasons) {
  const body = byId("reasons").tBodies[0], names = Object.keys(reasons), all = Math.max(1, sumOf(names, n => reasons[n]));
  for (const name of names) {
    if (!lines.has(name)) {
      const line = make("tr"), head = make("th"), share = meter("share");
      head.scope = "row";
      head.append(reason(name));
      line.dataset.reason = name;
      line.dataset.tone = head.firstChild.dataset.tone;
      line.append(head, share.cell);
      lines.set(name, { line, share });
      body.insertBefore(line, [...body.rows].find(r => r.dataset.reason > name) || null);
    }
    lines.get(name).share.show(reasons[name].toLocaleString("en"), reasons[name] / all);
  }
  for (const [name, l] of lines) if (!Object.hasOwn(reasons, name)) { l.line.remove(); lines.delete(name); }
  byId("no-reasons").hidden = names.length > 0 || !latest || latest.count === 0;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 1 });
function drawDecisions() {
  const body = byId("decisions").tBodies[0];
  for (const d of pending) {
    const line = make("tr"), why = make("td");
    why.append(reason(d.reason));
    line.append(make("td", "", clock.format(d.at)), make("td", "who", d.session || "\u2013"), why,
      make("td", "mono", (d.upstream || "\u2013") + (d.attempts > 1 ? " (attempt " + d.attempts + ")" : "")),
      make("td", "number", d.status ? String(d.status) : "none"), make("td", "number", d.millis < 10 ? d.millis.toFixed(1) + " ms" : Math.round(d.millis).toLocaleString("en") + " ms"));
    body.prepend(line);
  }
  pending = [];
  while (body.rows.length > ROWS) body.deleteRow(-1);
}

byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  if (!paused) drawDecisions();
});

// The link: a browser comes back by itself after a cut, but not after an answer that is no stream.
function tell(on, text) {
  byId("link").dataset.link = on ? "on" : "off";
  put(byId("link-text"), text);
}
let source = null;
function connect() {
  if (source) source.close();
  heard = Date.now();
  source = new EventSource("events");
  source.onmessage = m => { take(JSON.parse(m.data)); tell(true, "live"); };
  source.onerror = () => {
    tell(false, "reconnecting");
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
}
setInterval(() => { // of a link that is dead at its other end a browser hears nothing
  if (Date.now() - heard <= SILENCE) return;
  tell(false, "no news: reconnecting");
  connect();
}, 1000);
connect();
