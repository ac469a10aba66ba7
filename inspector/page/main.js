import { h, fill, put } from "./dom.js";
import { open } from "./source.js";
import { overview, requirements, sweep, link, shown, outcome, problems, firstFrame } from "./overview.js";
import { Scenario } from "./scenario.js";

const app = document.getElementById("app");
const view = {
  text: "",
  only: "",
  cause: "",
  at: 0,
  rows: [],
  remember() {
    const q = new URLSearchParams(
      Object.entries({ search: view.text, only: view.only, cause: view.cause }).filter(([, v]) => v),
    ).toString();
    history.replaceState(null, "", "#/" + (q ? "?" + q : ""));
  },
};
let data,
  here = null;

function navigation(at) {
  const to = (hash, text) => h("a", { href: hash, "aria-current": at === hash ? "page" : null }, text);
  const has = what => data.runs.some(r => r.run[what]);
  return h(
    "nav",
    { class: "main", "aria-label": "pages" },
    h("a", { class: "name", href: "#/" }, "acp-test"),
    to("#/", "Scenarios"),
    has("conformance") && to("#/requirements", "Requirements"),
    has("sweep") && to("#/sweep", "Sweep"),
    h(
      "details",
      { class: "keys" },
      h("summary", {}, "keys"),
      h(
        "dl",
        {},
        [
          ["/", "search"],
          ["j k", "move"],
          ["Enter", "open"],
          ["n", "next failure, or next finding of a transcript"],
          ["u", "up to the index"],
          ["1 … 6", "views of a transcript"],
        ].map(([k, what]) => [h("dt", {}, h("kbd", {}, k)), h("dd", {}, what)]),
      ),
    ),
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
function goTo() {
  const p = place(),
    only = data.cases.length === 1 && data.cases[0].file !== null;
  // What there is only one of is shown at once; u leads to the overview.
  if (!location.hash && only && !data.runs.some(r => r.run.conformance || r.run.sweep)) {
    const seq = firstFrame(problems(data.cases[0].result));
    return location.replace(link(data.cases[0].key, "frames", seq));
  }
  if (here && (p.what !== "s" || here.key !== p.key)) {
    here.leave();
    here = null;
  }
  if (p.what === "s") {
    const c = data.cases.find(x => x.key === p.key);
    if (!c || c.file === null)
      return fill(
        app,
        navigation(""),
        h("p", {}, c ? `The run kept no transcript of ${p.key}.` : `There is no scenario ${p.key} in this run.`),
      );
    document.title = c.key + " · acp-test";
    if (here) return here.to(p);
    here = new Scenario(c, data, navigation);
    here.asked = p;
    fill(app, here.element);
    scrollTo(0, 0);
    return here.open();
  }
  if (p.q.has("search") || p.q.has("only")) {
    ((view.text = p.q.get("search") || ""), (view.only = p.q.get("only") || ""));
  }
  view.cause = p.q.get("cause") || "";
  fill(
    app,
    p.what === "requirements"
      ? requirements(data, navigation)
      : p.what === "sweep"
        ? sweep(data, navigation)
        : overview(data, view, navigation),
  );
  if (view.cause) app.querySelector("#list").scrollIntoView();
  else scrollTo(0, 0);
  mark();
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

function mark() {
  const rows = app.querySelectorAll("#scenarios tbody tr");
  rows.forEach((tr, i) => tr.classList.toggle("at", Boolean(view.moved) && i === view.at));
  if (view.moved && rows[view.at]) rows[view.at].scrollIntoView({ block: "nearest" });
}

function key(e) {
  if (["INPUT", "SELECT", "TEXTAREA"].includes(e.target.tagName)) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
  if (e.key === "/") {
    const s = app.querySelector("input[type=search]");
    if (s) {
      s.focus();
      e.preventDefault();
    }
  } else if (e.key === "u") location.hash = "#/";
  else if (here && here.tabs && e.key >= "1" && e.key <= "6") here.tabs.children[e.key - 1].click();
  else if (here && (e.key === "j" || e.key === "k") && here.table) here.keyed(e);
  else if (!here && (e.key === "j" || e.key === "k")) {
    view.at = Math.max(0, Math.min(view.rows.length - 1, view.at + (e.key === "j" ? 1 : -1)));
    view.moved = true;
    mark();
  } else if (e.key === "Enter" && !here && e.target === document.body && view.rows[view.at])
    location.hash = link(view.rows[view.at].key);
  else if (e.key === "n" && here && here.marks.size && [...here.marks.keys()].some(i => i > here.at)) here.problem();
  else if (e.key === "n") {
    const now = here ? data.cases.indexOf(here.c) : -1,
      bad = c => ["fail", "error"].includes(shown(outcome(c)));
    const to = data.cases.find((c, i) => i > now && bad(c)) || data.cases.find(bad);
    if (to) location.hash = link(to.key);
  }
}

async function start() {
  try {
    data = await open();
  } catch (e) {
    return fill(app, h("p", { class: "error" }, "This page cannot be shown: " + e.message));
  }
  addEventListener("hashchange", show);
  addEventListener("keydown", key);
  if (data.live) {
    let asked = 0;
    addEventListener("runs", async () => {
      const mine = ++asked,
        read = await open();
      if (mine !== asked) return; // one that was asked for later knows more
      data = read;
      const now = here && data.cases.find(c => c.key === here.key);
      if (!here) show();
      else if (now && (now.source !== here.c.source || Boolean(outcome(now)) !== Boolean(outcome(here.c)))) {
        // a newer run of it, or its verdict
        here.leave();
        here = null;
        show();
      } else here.data = data;
    });
  }
  show();
}
put(app, ["opening…"]);
start();
