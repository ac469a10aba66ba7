import { h, fill, visible } from "./dom.js";
import { setting, setUp } from "./panes.js";
import { outcome, shown, problems, causeOf, headline, opened } from "./findings.js";

// The list of all scenarios, what failed first, by the cause of that or by suite.
const signs = { error: "‼", fail: "✗", inconclusive: "?", known: "~", skip: "–", pass: "✓", unjudged: "·" };
const kinds = Object.keys(signs);
const called = {
  known: "Known failures",
  skip: "Skipped",
  pass: "Passed",
  unjudged: "No verdict yet",
};
const many = 60; // that pass are folded
export const sign = v => h("span", { class: "v sign " + v, role: "img", "aria-label": v, title: v }, signs[v] || "·");
const suiteOf = c => ((c.result && c.result.id) || c.key).split("/").slice(0, -1).join("/") || "by itself";

export class Cases {
  // view is what is asked for: text, only, cause, at; rows are those that it takes.
  constructor(data, view, chosen) {
    Object.assign(this, { view, chosen, texts: new Map(), runs: new Map(), closed: new Map() });
    this.list = h("div", { id: "scenarios" });
    this.size = h("span", { class: "dim", role: "status" });
    this.search = h("input", {
      type: "search",
      id: "search",
      placeholder: "sentence, id, rule, text",
      "aria-label": "search scenarios",
      oninput: e => {
        view.text = e.target.value;
        this.changed();
      },
    });
    this.chips = h("div", { class: "chips" });
    this.same = h("p", { class: "same-cause" });
    this.by = h(
      "select",
      {
        "aria-label": "group scenarios",
        onchange: () => {
          setUp("group", this.by.value);
          this.show();
        },
      },
      ["cause", "suite"].map(v => h("option", { value: v, selected: setting("group") === v }, "by " + v)),
    );
    this.element = [
      h("div", { class: "tools" }, this.search, this.chips, h("div", { class: "bar" }, this.by, this.size)),
      this.same,
      this.list,
    ];
    this.take(data);
  }
  // take shows the scenarios of other data.
  take(data) {
    this.all = data.cases.filter(c => !c.hidden);
    this.data = data;
    this.texts.clear();
    for (const r of data.runs) for (const c of r.cases) this.runs.set(c, r.run);
    const number = v => this.all.filter(c => shown(outcome(c)) === v).length;
    fill(
      this.chips,
      kinds
        .filter(v => number(v))
        .map(v =>
          h(
            "button",
            {
              type: "button",
              class: v,
              "data-kind": v,
              onclick: () => {
                this.view.only = this.view.only === v ? "" : v;
                this.changed();
              },
            },
            number(v) + " " + v,
          ),
        ),
    );
    this.show();
  }
  changed() {
    this.view.at = 0;
    this.show();
    this.view.remember();
  }
  haystack(c) {
    if (!this.texts.has(c)) {
      const r = outcome(c) || {},
        found = problems(outcome(c)).flatMap(p => [p.id, p.title, ...p.requirements, ...(p.checks || [])]);
      const words = [c.key, r.title, r.reason, shown(outcome(c)), ...((c.result && c.result.tags) || []), ...found];
      this.texts.set(c, words.join(" ").toLowerCase());
    }
    return this.texts.get(c);
  }
  // groupOf is where a scenario stands: the cause of its verdict, or what the verdict is.
  groupOf(c) {
    const v = shown(outcome(c));
    if (this.by.value === "suite") return suiteOf(c);
    if (called[v]) return called[v];
    const p = headline(outcome(c)),
      cause = p && causeOf(this.runs.get(c), c.result, p);
    return cause ? cause.title : p ? p.title : v;
  }
  show() {
    const { view } = this,
      words = view.text.toLowerCase().split(/\s+/).filter(Boolean),
      rank = c => kinds.indexOf(shown(outcome(c)));
    const cause =
      view.cause && this.data.runs.flatMap(x => x.run.causes || []).find(c => (c.id || c.title) === view.cause);
    const rows = this.all.filter(
      c =>
        (!cause || (c.result && cause.scenarios.includes(c.result.id))) &&
        (!view.only || shown(outcome(c)) === view.only) &&
        words.every(w => this.haystack(c).includes(w)),
    );
    const groups = [
      ...Map.groupBy(
        rows.sort((a, b) => rank(a) - rank(b)),
        c => this.groupOf(c),
      ),
    ];
    view.rows = groups.flatMap(([, list]) => list);
    if (this.search.value !== view.text) this.search.value = view.text;
    const asked = words.length || view.only || cause;
    fill(
      this.list,
      groups.map(([name, list]) => this.group(name, list, asked || groups.length === 1)),
      !rows.length &&
        h("p", { class: "dim" }, this.all.length ? "No scenario fits." : "There is no transcript here yet."),
    );
    this.size.textContent = rows.length + " of " + this.all.length;
    for (const chip of this.chips.children) chip.setAttribute("aria-pressed", view.only === chip.dataset.kind);
    const all = h("button", { type: "button", onclick: () => this.only("") }, "show all");
    fill(this.same, cause && ["Those with this cause: ", h("b", {}, cause.title), " ", all]);
    view.at = Math.min(view.at, Math.max(view.rows.length - 1, 0));
    this.mark();
  }
  // only shows those with a cause.
  only(cause) {
    this.view.cause = cause;
    this.changed();
  }
  // group makes a group, and its rows when it is opened.
  group(name, list, asked) {
    const v = shown(outcome(list[0])),
      bad = list.filter(c => ["error", "fail", "inconclusive"].includes(shown(outcome(c)))).length,
      rows = h("ul");
    const box = h(
      "details",
      { class: "group" },
      h(
        "summary",
        {},
        h("span", { class: "group-name", title: visible(name) }, name),
        h("span", { class: "dim" }, bad && bad < list.length ? `${bad} of ${list.length}` : String(list.length)),
      ),
      rows,
    );
    const make = () =>
      rows.childNodes.length ||
      fill(
        rows,
        list.map(c => this.row(c)),
      );
    box.open = Boolean(asked || (this.closed.get(name) ?? (bad || v === "unjudged" || list.length < many)));
    if (box.open) make();
    box.firstChild.addEventListener("click", () => this.closed.set(name, !box.open));
    box.addEventListener("toggle", () => {
      if (box.open) make();
      this.mark();
    });
    return box;
  }
  row(c) {
    const r = outcome(c) || {},
      last = c.last && c.last.result,
      inside = [
        sign(shown(outcome(c))),
        h("span", { class: "what" }, r.title || (c.scratch ? "By hand" : c.key)),
        h("span", { class: "dim mono id" }, r.title ? c.key : "", last && " · before: " + last.verdict),
      ];
    return h(
      "li",
      { class: "case", "data-key": c.key },
      c.file === null ? inside : h("a", { href: opened(c) }, inside),
    );
  }
  // mark shows which scenario is open, and where the keys have gone.
  mark() {
    for (const e of this.list.querySelectorAll(".case")) {
      const key = e.dataset.key,
        is = key === this.chosen();
      if (e.firstChild.href) {
        if (is) e.firstChild.setAttribute("aria-current", "page");
        else e.firstChild.removeAttribute("aria-current");
      }
      const at = Boolean(this.view.moved) && (this.view.rows[this.view.at] || {}).key === key;
      e.classList.toggle("at", at);
      if (at || (is && this.seen !== key)) e.scrollIntoView({ block: "nearest" });
    }
    this.seen = this.chosen();
  }
  // next is the next or the previous failure behind a scenario.
  next(key, by) {
    const rows = this.view.rows,
      now = rows.findIndex(c => c.key === key),
      bad = rows
        .map((c, i) => [c, i])
        .filter(([c]) => ["fail", "error"].includes(shown(outcome(c))) && c.file !== null);
    const to = by > 0 ? bad.find(([, i]) => i > now) || bad[0] : bad.findLast(([, i]) => i < now) || bad.at(-1);
    return to && to[0];
  }
}
