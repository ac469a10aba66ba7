import { h, fill, ms, verdict, diff, folded, button, clock, copy } from "./dom.js";
import { apply, keys } from "./filter.js";
import { Table } from "./table.js";
import { spanKinds } from "./spans.js";
import { Timeline } from "./timeline.js";
import { Causes } from "./causes.js";
import { Detail } from "./detail.js";
import { Conversation } from "./conversation.js";
import { State } from "./state.js";
import { compare } from "./compare.js";
import { perform, result, frames, report } from "./actions.js";
import { Scratch } from "./scratch.js";
import { link, problems, shown, outcome } from "./findings.js";
import { Proof } from "./proof.js";
import { Moment } from "./moment.js";
import { edge, setting } from "./panes.js";

const views = ["entries", "time line", "conversation", "state", "compare", "files"];
const places = ["frames", "timeline", "conversation", "state", "compare", "files"]; // in addresses

// Scenario is one transcript: in the middle its time line and a view, at the side what was found and the selected
// entry. What is selected, the view and the filter are in the address.
export class Scenario {
  // same is told of a cause whose scenarios somebody wants to see.
  constructor(c, data, same) {
    Object.assign(this, { c, data, marks: new Map(), key: c.key, shownRows: null });
    this.run = (data.runs.find(r => r.cases.includes(c)) || {}).run || {};
    this.place = h("div", { class: "work" }, h("p", { class: "dim" }, "opening…"));
    this.proof = new Proof({
      c,
      run: this.run,
      same,
      link: i => this.link(i),
      shortId: id => this.short(id),
    });
    this.scratch =
      data.actions.includes("scratch") &&
      c.scratch &&
      new Scratch(
        () => ({ trace: this.trace, at: this.at }),
        () => data.fields(c),
      );
    this.below = h("div", { class: "lower" });
    this.middle = [this.head(), this.place];
    const upper = h("div", { class: "upper" }, this.scratch && this.scratch.element, this.proof.element);
    this.side = h(
      "div",
      { class: "halves" },
      upper,
      edge({
        label: "height of the finding",
        key: "upper",
        across: true,
        grows: 1,
        least: 60,
        size: () => upper.getBoundingClientRect().height,
        sized: px => this.side && this.side.style.setProperty("--upper", px + "px"),
        folds: () => this.side.classList.toggle("no-upper"),
      }),
      this.below,
    );
    if (setting("upper")) this.side.style.setProperty("--upper", setting("upper") + "px");
    this.found = problems(c.result);
    this.showProblems();
  }
  head() {
    const r = this.c.result,
      told = outcome(this.c) || {};
    return h(
      "header",
      { class: "head" },
      h(
        "h1",
        {},
        (this.word = h("span", {}, verdict(shown(outcome(this.c))))),
        " ",
        told.title || (this.c.scratch ? "By hand" : this.c.key),
      ),
      h(
        "div",
        { class: "dim facts" },
        [
          told.title && this.c.key,
          r && !r.file.includes(r.id) && r.file,
          this.c.last && this.c.last.result && "before: " + this.c.last.result.verdict,
          r && ms(r.duration_ns),
        ]
          .filter(Boolean)
          .join(" · "),
        r &&
          (r.tags || []).length > 0 &&
          h("span", { title: "acp-test run --tag takes scenarios by these" }, " · tags: " + r.tags.join(", ")),
      ),
      (this.tools = h("div", { class: "bar" })),
    );
  }
  showProblems() {
    this.marks.clear();
    for (const p of this.found)
      for (const seq of p.entries) this.marks.set(seq - 1, [...(this.marks.get(seq - 1) || []), p]);
    this.proof.show(this.found, this.proof.at);
  }
  // short is the id of a check without that of this scenario.
  short(id) {
    return this.c.result ? id.replace(this.c.result.id + "#", "") : id;
  }
  link(i, more) {
    return link(this.c.key, (more || {}).view || this.view || "frames", i >= 0 ? i + 1 : 0, {
      filter: this.filter,
      with: this.other,
      zoom: this.zoom,
      ...(more || {}),
      view: "",
    });
  }

  leave() {
    this.left = true;
    if (this.trace) this.trace.listeners.delete(this.heard);
    if (this.c.close) this.c.close();
  }
  async open() {
    let t;
    try {
      t = await this.c.trace();
    } catch (e) {
      return fill(this.place, h("p", { class: "error" }, "The transcript cannot be opened: " + e.message));
    }
    if (this.left) return;
    this.trace = t;
    const select = i => {
      location.hash = this.link(i);
    };
    const made = { trace: t, marks: this.marks, link: i => this.link(i), select };
    this.timeline = new Timeline({ ...made, moved: zoom => this.zoomed(zoom) });
    this.causesOf = new Causes(t);
    this.detail = new Detail({
      ...made,
      about: () => this.data.fields(this.c),
      causes: i => this.causesOf.of(i),
      cancel: i => this.cancelAt(i),
    });
    this.conversation = new Conversation(made);
    this.conversation.follows = this.c.live;
    this.state = new State(made);
    this.moment = new Moment({ ...made, spans: this.timeline.spans });
    fill(this.below, this.moment.element, this.detail.element);
    this.table = new Table({ label: "entries", height: 26, row: k => this.row(k) });
    this.table.following = this.c.live;
    this.table.ended = this.c.fresh || this.c.scratch; // a recording is read from its beginning
    this.table.element.addEventListener("keydown", e => this.keyed(e));
    this.query = h("input", {
      type: "search",
      id: "filter",
      "aria-label": "filter entries",
      placeholder: "from:agent method:session/update text~word session:s1",
      spellcheck: "false",
      onchange: () => this.refilter(),
      oninput: () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.refilter(), 250);
      },
    });
    this.size = h("span", { class: "dim", role: "status" });
    this.wrong = h("span", { class: "error", role: "alert" });
    this.body = h("div", { class: "view" });
    this.tabs = h("nav", { class: "tabs", "aria-label": "views" });
    const help = h(
      "details",
      { class: "help" },
      h("summary", {}, "filter language"),
      h(
        "dl",
        {},
        Object.entries(keys).map(([k, v]) => [h("dt", {}, k + ":"), h("dd", {}, v)]),
        h("dt", {}, "text~"),
        h("dd", {}, "words in the message; a word alone is the same. - in front negates, commas list, * is anything"),
      ),
    );
    fill(
      this.place,
      t.problem && h("p", { class: "warn" }, t.problem),
      this.timeline.element,
      edge({
        label: "height of the time line",
        key: "plot",
        across: true,
        grows: 1,
        least: 90,
        size: () => this.timeline.plot.getBoundingClientRect().height,
        sized: px => this.place.style.setProperty("--plot", px + "px"),
        folds: () => this.timeline.element.classList.toggle("folded"),
      }),
      this.tabs,
      this.body,
    );
    this.framesView = [h("div", { class: "tools" }, this.query, this.size, help, this.wrong), this.table.element];
    this.buttons();
    this.heard = what => {
      if (what === "texts") {
        this.timeline.draw(); // the names of gates
        return this.table.refresh(e => e.classList.contains("waits"));
      }
      this.grown();
    };
    t.listeners.add(this.heard);
    this.grown();
    this.to(this.asked);
  }
  async grown() {
    if (this.scratch) this.scratch.refresh();
    this.timeline.grown();
    this.proof.ready(this.trace, this.timeline.spans);
    if (this.filter) await this.runFilter(true);
    else this.sized();
    // Now there is what was asked for.
    if (this.asked.seq > this.at + 1 && this.at + 1 < this.trace.n) this.to(this.asked);
    this.later();
    if (!this.c.result && this.c.judged && !this.trace.more) {
      clearTimeout(this.judging);
      this.judging = setTimeout(() => this.judge(), 1000);
    }
  }
  // later shows what is folded of all entries, some times a second while they come.
  later() {
    if (!["conversation", "state"].includes(this.view) || this.folding) return;
    this.folding = setTimeout(
      () => {
        this.folding = 0;
        if (this.view === "conversation") this.conversation.show(this.at);
        if (this.view === "state") this.state.show(this.at);
      },
      this.trace.more || this.c.live ? 300 : 0,
    );
  }
  async judge() {
    if (this.trace.n > 60000) return; // it takes too long to be done again and again
    try {
      const r = await this.c.judged();
      this.found = problems(r);
      const ran = !this.c.scratch || this.timeline.spans.has("turn");
      if (!ran)
        fill(this.word, verdict("unjudged")); // before a prompt there is nothing to judge
      else if (!this.c.told) fill(this.word, verdict(r.verdict)); // the map of a sweep knows what the checks said too
      this.showProblems();
      this.proof.turn(this.at);
      this.timeline.draw();
      this.table.refresh();
    } catch {
      /* a transcript that is not whole yet is judged when it has grown */
    }
  }
  buttons() {
    const selection = () => this.shownRows || Uint32Array.from({ length: Math.min(this.trace.n, 2000) }, (_, i) => i);
    const can = name => this.data.actions.includes(name),
      r = this.c.result,
      about = { source: this.c.source, file: this.c.file };
    const [a, b] = [() => this.timeline.inView()[0] + 1, () => this.timeline.inView()[1]];
    fill(
      this.tools,
      button("copy frames", async () => copy(await frames(this.trace, selection()), "frames"), {
        title: "the frames among the entries that the filter takes",
      }),
      button("bug report", async () => result("Bug report", await report(this.c, this.trace, this.found))),
      r && r.rerun && button("copy command", () => copy(r.rerun, "the command")),
      can("scenario") &&
        button("make a scenario", () => perform("scenario", { ...about, from: a(), to: b() }), {
          title: "of the turns that the time line shows",
        }),
      can("rerun") && r && r.rerun && button("run again", () => perform("rerun", { ...about, id: r.id, path: r.file })),
      can("reduce") && this.found.length > 0 && button("reduce", () => perform("reduce", about)),
      can("update") &&
        r &&
        r.golden &&
        r.golden.state === "differs" &&
        button("update the golden", () => perform("update", { ...about, id: r.id, path: r.file })),
    );
  }

  // cancelAt is what makes a scenario that cancels at an entry; null where no turn is open.
  cancelAt(i) {
    const t = this.trace,
      spans = this.timeline.spans;
    let open = false;
    spans.within(i, i, s => {
      open ||=
        spanKinds[spans.kind[s]] === "turn" &&
        spans.from[s] <= i &&
        i < spans.to[s] &&
        (!t.session[i] || t.session[i] === t.session[spans.from[s]]);
    });
    return open && this.data.actions.includes("cancel")
      ? () => perform("cancel", { source: this.c.source, file: this.c.file, at: i + 1 })
      : null;
  }

  // named writes the addresses of the views.
  named() {
    fill(
      this.tabs,
      places.map((v, k) =>
        h("a", { href: this.link(this.at, { view: v }), "aria-current": v === this.view ? "page" : null }, views[k]),
      ),
    );
    const now = this.tabs.querySelector("[aria-current]"); // it is in sight, also where not all of them are
    this.tabs.scrollLeft = now.offsetLeft + now.offsetWidth / 2 - this.tabs.clientWidth / 2;
  }
  zoomed(zoom) {
    if (this.left) return;
    this.zoom = this.asked.zoom = zoom;
    history.replaceState(null, "", this.link(this.at));
    [...this.tabs.children].forEach((a, k) => {
      a.href = this.link(this.at, { view: places[k] });
    }); // who has the focus keeps it
  }

  // to shows what an address asks for.
  to({ view, seq, filter, other, zoom }) {
    this.asked = { view, seq, filter, other, zoom };
    if (!this.trace) return;
    const was = this.view;
    this.view = places.includes(view) ? view : "frames";
    this.at = seq ? Math.min(seq, this.trace.n) - 1 : -1;
    const changed = this.filter !== (filter || "") || this.other !== (other || "");
    ((this.filter = filter || ""), (this.other = other || ""));
    this.timeline.element.classList.toggle("tall", this.view === "timeline");
    this.place.classList.toggle("tall", this.view === "timeline");
    if (was !== this.view || changed) this.switch(changed || was !== this.view);
    if (changed || !was) {
      if (document.activeElement !== this.query) this.query.value = this.filter;
      this.runFilter();
    }
    if (zoom && zoom !== this.zoom) this.timeline.show(zoom);
    else if (!was && this.at >= 0) this.timeline.around(this.at);
    this.zoom = zoom || this.zoom || "";
    this.named();
    if (this.zoom && !zoom) history.replaceState(null, "", this.link(this.at)); // what is in view stays so
    this.timeline.choose(this.at);
    this.follow();
    this.proof.turn(this.at);
    this.moment.show(this.at);
    this.detail.show(this.at);
    this.choose();
    if (this.view === "conversation") this.conversation.show(this.at);
    if (this.view === "state") this.state.show(this.at);
  }
  // follow shows in the time line what the selected entry follows from, and what follows from it.
  async follow() {
    const at = this.at,
      causes = at >= 0 && at < this.trace.n ? await this.causesOf.of(at) : null;
    if (at === this.at && !this.left) this.timeline.follow(at, causes);
  }
  switch() {
    switch (this.view) {
      case "frames":
        fill(this.body, this.framesView);
        this.table.measure();
        break;
      case "timeline":
        fill(this.body);
        break;
      case "conversation":
        fill(this.body, this.conversation.element);
        break;
      case "state":
        fill(this.body, this.state.element);
        break;
      case "compare":
        fill(
          this.body,
          compare({
            here: this.c,
            run: this.run,
            others: this.data.cases.filter(c => c !== this.c && c.file !== null),
            live: this.data.live,
            chosen: this.other,
            choose: key => {
              location.hash = this.link(this.at, { with: key });
            },
          }),
        );
        break;
      case "files":
        this.files();
    }
  }
  async files() {
    const t = this.trace,
      list = [];
    for (let i = 0; i < t.n && list.length < 2000; i++) if (t.name("source", i) === "stderr") list.push(i);
    const stderr = (await t.rows(list)).map(r => r.raw).join(""),
      [rendered, workspace] = [await this.c.text("rendered"), await this.c.text("workspace")];
    fill(
      this.body,
      h(
        "section",
        { class: "files", "aria-label": "files", tabindex: 0 },
        folded("stderr", stderr),
        folded("workspace, before and after", workspace, diff),
        folded("as a golden", rendered),
        !stderr && !rendered && !workspace && h("p", { class: "dim" }, "The run kept no more than the transcript."),
      ),
    );
    for (const d of this.body.querySelectorAll("details")) d.open = true;
  }
  refilter() {
    clearTimeout(this.typing);
    if (this.query.value.trim() === this.filter) return;
    history.replaceState(null, "", link(this.c.key, "frames", this.at + 1, { filter: this.query.value.trim() }));
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
  async runFilter(grown) {
    const asked = this.filter;
    try {
      const taken = await apply(asked, this.trace, this.marks, grown && this.taken);
      if (asked !== this.filter) return;
      ((this.taken = taken), (this.shownRows = taken && taken.rows));
      fill(this.wrong);
    } catch (e) {
      fill(this.wrong, e.message);
      return;
    }
    if (!grown) this.table.refresh();
    this.sized();
    if (!grown) this.choose();
  }
  sized() {
    const n = this.shownRows ? this.shownRows.length : this.trace.n;
    this.table.setCount(n);
    this.table.element.style.setProperty("--num", Math.max(3, String(this.trace.n).length) + "ch");
    this.size.textContent =
      (this.shownRows ? n.toLocaleString("en") + " of " : "") +
      this.trace.n.toLocaleString("en") +
      (this.trace.more && this.data.live ? " so far" : this.trace.n === 1 ? " entry" : " entries");
    this.size.title = "of which those of editor and agent are frames: is:frame";
  }
  index(k) {
    return this.shownRows ? this.shownRows[k] : k;
  }
  rowOf(i) {
    if (!this.shownRows) return i;
    let a = 0,
      b = this.shownRows.length;
    while (a < b) {
      const m = (a + b) >> 1;
      if (this.shownRows[m] < i) a = m + 1;
      else b = m;
    }
    return a;
  }
  row(k) {
    const i = this.index(k),
      t = this.trace,
      text = t.row(i),
      source = t.name("source", i),
      hits = this.marks.get(i) || [];
    const arrow = source === "editor" ? "→" : source === "agent" ? "←" : "·";
    return h(
      "div",
      {
        class: `row ${source} ${hits.length ? hits[0].cls : ""}${i === this.at ? " at" : ""}${text ? "" : " waits"}`,
        id: "f" + (i + 1),
        role: "row",
        "aria-rowindex": k + 1,
        "aria-selected": i === this.at,
        onclick: () => {
          location.hash = this.link(i);
        },
      },
      h("span", { class: "num", role: "gridcell" }, String(i + 1)),
      h("time", { role: "gridcell" }, clock(t.at[i])),
      h("span", { class: "who", role: "gridcell" }, source),
      h("span", { class: "sess", role: "gridcell" }, t.sessionName(i)),
      h(
        "span",
        { class: "msg", role: "gridcell" },
        h("i", { "aria-hidden": "true" }, arrow),
        text ? t.short(text.line).replace(/^(-->|<--) /, "") : t.name("label", i) + " …",
      ),
      h(
        "span",
        { class: "pin", role: "gridcell" },
        hits.length ? "▲ " + hits.map(p => this.short(p.id || p.title)).join(", ") : "",
      ),
    );
  }
  choose() {
    if (!this.table) return;
    for (const e of this.table.body.children) {
      const at = e.id === "f" + (this.at + 1);
      e.classList.toggle("at", at);
      e.setAttribute("aria-selected", at);
    }
    if (this.at >= 0) {
      this.table.show(this.rowOf(this.at));
      this.table.element.setAttribute("aria-activedescendant", "f" + (this.at + 1));
    }
  }
  keyed(e) {
    const k = this.at < 0 ? -1 : this.rowOf(this.at),
      last = this.table.count - 1,
      page = Math.floor(this.table.visible()) - 1;
    const next = {
      ArrowDown: k + 1,
      j: k + 1,
      ArrowUp: k - 1,
      k: k - 1,
      PageDown: k + page,
      PageUp: k - page,
      Home: 0,
      End: last,
    }[e.key];
    if (next === undefined || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    e.stopPropagation();
    history.replaceState(null, "", this.link(this.index(Math.max(0, Math.min(next, last)))));
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
  // problem goes to the next entry with a finding, or by -1 to the one before, and says whether there is one.
  problem(by) {
    const all = [...this.marks.keys()].sort((a, b) => by * (a - b)),
      to = all.find(i => by * (i - this.at) > 0);
    if (to !== undefined) location.hash = this.link(to);
    return to !== undefined;
  }
}
