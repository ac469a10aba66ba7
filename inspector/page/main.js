import { h, fill, put } from "./dom.js";
import { open } from "./source.js";
import { link, outcome, problems, firstFrame, opened } from "./findings.js";
import { Bench } from "./panes.js";
import { overview } from "./overview.js";
import { requirements, sweep, isExplored } from "./tables.js";
import { Cases } from "./cases.js";
import { Scenario } from "./scenario.js";

const app = document.getElementById("app");
const view = {
  text: "",
  only: "",
  cause: "",
  at: 0,
  rows: [],
  // remember keeps in the address of the index what is searched for.
  remember() {
    if (here || place().what) return;
    const q = new URLSearchParams(
      Object.entries({ search: view.text, only: view.only, cause: view.cause }).filter(([, v]) => v),
    ).toString();
    history.replaceState(null, "", "#/" + (q ? "?" + q : ""));
  },
};
let data,
  cases,
  here = null;
const bench = new Bench(),
  top = h("nav", { class: "main", "aria-label": "pages" });

const keyNames = [
  ["/", "search"],
  ["j k", "next, previous entry or scenario"],
  ["Enter", "open"],
  ["n p", "next, previous finding, then failure"],
  ["u", "the run as a whole"],
  ["1 … 6", "views of a transcript"],
  ["[ ]", "fold a pane"],
];

// mapped is what the map of a sweep is called.
const mapped = () => (data.runs.some(r => r.run.sweep && isExplored(r.run.sweep)) ? "Explored" : "Sweep");

function navigation(at) {
  if (navigation.at === at && navigation.of === data) return;
  Object.assign(navigation, { at, of: data });
  const to = (hash, text) => h("a", { href: hash, "aria-current": at === hash ? "page" : null }, text);
  const has = what => data.runs.some(r => r.run[what]);
  fill(
    top,
    bench.folders.list,
    h("a", { class: "name", href: "#/" }, "acp-test"),
    to("#/", "Run"),
    has("conformance") && to("#/requirements", "Requirements"),
    has("sweep") && to("#/sweep", mapped()),
    h("span", { class: "space" }),
    h(
      "details",
      { class: "keys" },
      h("summary", {}, "keys"),
      h(
        "dl",
        {},
        keyNames.map(([k, what]) => [h("dt", {}, h("kbd", {}, k)), h("dd", {}, what)]),
      ),
    ),
    bench.folders.side,
  );
}

// place is what the address asks for: #/s/KEY/VIEW/SEQ?filter=…&zoom=…
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?"),
    parts = path.split("/"),
    q = new URLSearchParams(query || "");
  const known = text => {
    try {
      return decodeURIComponent(text || "");
    } catch {
      return text;
    }
  };
  return {
    what: parts[0],
    key: known(parts[1]),
    view: parts[2],
    seq: Number(parts[3]) || 0,
    filter: q.get("filter"),
    other: q.get("with"),
    zoom: q.get("zoom"),
    q,
  };
}

function show() {
  goTo();
  listen();
}
function leave() {
  if (here) here.leave();
  here = null;
}
function goTo() {
  const p = place(),
    only = data.cases.length === 1 && data.cases[0].file !== null;
  // What there is only one of is shown at once; u leads to the overview.
  if (!location.hash && only && !data.runs.some(r => r.run.conformance || r.run.sweep)) {
    const seq = firstFrame(problems(data.cases[0].result));
    return location.replace(link(data.cases[0].key, "frames", seq));
  }
  if (here && (p.what !== "s" || here.key !== p.key)) leave();
  if (p.what === "s") scenario(p);
  else whole(p);
  cases.mark();
}

// scenario shows a transcript, where the address asks for it.
function scenario(p) {
  const c = data.cases.find(x => x.key === p.key);
  navigation("");
  if (!c || c.file === null) {
    bench.has({ list: "scenarios", middle: "transcript" }, false);
    bench.see("middle");
    const none = c ? `The run kept no transcript of ${p.key}.` : `There is no scenario ${p.key} in this run.`;
    return fill(bench.middle, h("p", {}, none));
  }
  document.title = c.key + " · acp-test";
  const names = { list: "scenarios", middle: "transcript", side: c.scratch ? "by hand" : "finding" };
  if (here) {
    if (here.at !== p.seq - 1 && here.view === "frames" && p.view === "frames") bench.see("side"); // it was chosen
    return here.to(p);
  }
  here = new Scenario(c, data, alike);
  here.asked = p;
  bench.has(names, true);
  bench.see(c.scratch || (p.seq && (!p.view || p.view === "frames")) ? "side" : "middle");
  fill(bench.middle, here.middle);
  fill(bench.side, here.side);
  bench.side.scrollTop = 0;
  return here.open();
}

// whole shows what is of the run as a whole.
function whole(p) {
  if (p.q.has("search") || p.q.has("only"))
    ((view.text = p.q.get("search") || ""), (view.only = p.q.get("only") || ""));
  if (!p.what) view.cause = p.q.get("cause") || "";
  document.title = "acp-test";
  const at = ["requirements", "sweep"].includes(p.what) ? "#/" + p.what : "#/";
  navigation(at);
  const middle = { sweep: mapped().toLowerCase(), requirements: "requirements" }[p.what] || "run";
  bench.has({ list: "scenarios", middle }, false);
  bench.see(at === "#/" ? "list" : "middle");
  fill(
    bench.middle,
    h(
      "div",
      { class: "whole" },
      at === "#/requirements" ? requirements(data) : at === "#/sweep" ? sweep(data) : overview(data, alike),
    ),
  );
  fill(bench.side);
  bench.middle.scrollTop = 0;
  cases.show();
}

// alike lists the scenarios with a cause, beside what is open.
function alike(e, cause) {
  e.preventDefault();
  Object.assign(view, { text: "", only: "" });
  cases.only(cause.id || cause.title);
  if (bench.folded("list")) bench.fold("list", false);
  bench.see("list");
}

// listen hears of new runs, on the index; the stream of a transcript tells of them too. A browser has few connections.
let stream = null;
function listen() {
  if (!data.live) return;
  if (here && stream) {
    stream.close();
    stream = null;
  }
  if (!here && !stream) {
    stream = new EventSource("events?" + new URLSearchParams({ state: data.state }));
    stream.addEventListener("runs", () => dispatchEvent(new Event("runs")));
  }
}

// further goes to the next finding of a transcript, and behind the last to the next failure.
function further(by) {
  if (here && here.trace && here.problem(by)) return;
  const to = cases.next(here ? here.key : "", by);
  if (to) location.hash = link(to.key, "frames", firstFrame(problems(to.result)));
}

function key(e) {
  if (["INPUT", "SELECT", "TEXTAREA"].includes(e.target.tagName)) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
  const by = { n: 1, j: 1, p: -1, k: -1 }[e.key];
  if (e.key === "/") {
    const s = here ? app.querySelector("#filter") || cases.search : cases.search;
    if (bench.folded("list") && s === cases.search) bench.fold("list", false);
    s.focus();
    e.preventDefault();
  } else if (e.key === "u") location.hash = "#/";
  else if (e.key === "[") bench.fold("list", !bench.folded("list"));
  else if (e.key === "]") bench.fold("side", !bench.folded("side"));
  else if (here && here.tabs && e.key >= "1" && e.key <= "6") here.tabs.children[e.key - 1].click();
  else if (e.key === "n" || e.key === "p") further(by);
  else if (here && by && here.table) here.keyed(e);
  else if (!here && by) {
    view.at = Math.max(0, Math.min(view.rows.length - 1, view.at + (view.moved ? by : 0)));
    view.moved = true;
    cases.mark();
  } else if (e.key === "Enter" && !here && e.target === document.body && view.rows[view.at])
    location.hash = opened(view.rows[view.at]);
}

async function start() {
  try {
    data = await open();
  } catch (e) {
    return fill(app, h("p", { class: "error" }, "This page cannot be shown: " + e.message));
  }
  document.body.classList.add("at-work");
  cases = new Cases(data, view, () => here && here.key);
  fill(app, top, bench.element, bench.bar);
  fill(bench.list, cases.element);
  addEventListener("hashchange", show);
  addEventListener("keydown", key);
  if (data.live) {
    let asked = 0;
    addEventListener("runs", async () => {
      const mine = ++asked,
        read = await open();
      if (mine !== asked) return; // one that was asked for later knows more
      data = read;
      cases.take(data);
      const now = here && data.cases.find(c => c.key === here.key);
      if (!here) show();
      else if (now && (now.source !== here.c.source || Boolean(outcome(now)) !== Boolean(outcome(here.c)))) {
        // a newer run of it, or its verdict
        leave();
        show();
      } else here.data = data;
    });
  }
  show();
}
put(app, ["opening…"]);
start();
