import { h, button, lasting, parsed, visible } from "./dom.js";
import { Spans } from "./spans.js";
import { Scale } from "./scale.js";
import { Lanes } from "./lanes.js";
import { setting, setUp } from "./panes.js";
import { Plot } from "./plot.js";

// The time line is a plot that one moves: by wheel, pointer and keys, and by the entry that is selected.
export class Timeline extends Plot {
  // select is told of the entry that a click chose, moved of the part that somebody chose to see, as show takes it.
  constructor({ trace, marks, select, moved }) {
    super();
    Object.assign(this, {
      trace,
      marks,
      select,
      moved,
      done: 0,
      spans: new Spans(trace),
      scale: new Scale(trace),
      lanes: new Lanes(trace),
      at: -1,
      over: -1,
    });
    this.scale.folding = setting("idle") !== false;
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "img",
      "aria-label": "time line: arrow keys pan, plus and minus zoom, 0 shows all",
    });
    this.tip = h("div", { class: "tip", hidden: true });
    this.where = h("span", { class: "dim" });
    this.mode = button("causal order", () => this.setCausal(!this.scale.causal), {
      "aria-pressed": "false",
      title: "one step for each entry, not to scale",
    });
    this.idle = button("idle folded", () => this.setFolding(!this.scale.folding), {
      "aria-pressed": this.scale.folding,
      title: "pauses are as short as a mark that says how long they were",
    });
    this.family = button("families folded", () => this.setFamilies(!this.lanes.folded), {
      "aria-pressed": "false",
      hidden: true,
      title: "a session and its subagents in one lane",
    });
    this.element = h(
      "section",
      { class: "timeline", "aria-label": "time line" },
      h(
        "div",
        { class: "bar" },
        button("−", () => this.zoom(2), { title: "zoom out" }),
        button("+", () => this.zoom(0.5), { title: "zoom in" }),
        button("all", () => this.all()),
        this.mode,
        this.idle,
        this.family,
        this.where,
      ),
      (this.plot = h("div", { class: "plot" }, this.canvas, this.tip)),
    );
    this.context = this.canvas.getContext("2d");
    this.listen();
    new ResizeObserver(() => this.measure()).observe(this.canvas.parentElement);
  }

  // grown takes in what the trace has got.
  grown() {
    const t = this.trace,
      follows = this.to === undefined || (!this.asked && this.to >= this.was);
    if (t.n < this.done) {
      this.done = 0;
      this.spans.clear();
      this.lanes.clear();
    }
    for (; this.done < t.n; this.done++) {
      const i = this.done;
      this.lanes.note(i);
      this.spans.note(i, t.name("source", i), t.name("kind", i), t.name("method", i));
    }
    this.keeping(() => this.scale.grown());
    if (follows) {
      this.from = this.to === undefined ? 0 : this.from;
      this.to = this.total() * 1.02;
    }
    this.was = this.total();
    this.families();
    this.draw();
  }
  // keeping does what changes the scale and shows the same time as before.
  keeping(change) {
    if (this.to === undefined || this.scale.causal) return change();
    const [a, b] = [this.scale.time(this.from), this.scale.time(this.to)];
    change();
    ((this.from = this.scale.x(a)), (this.to = this.scale.x(b)));
  }
  // families finds which session is the child of which.
  async families() {
    const t = this.trace,
      label = t.names.indexOf("subagent_update"),
      list = [];
    if (label < 0 || this.familyOf === t.n) return;
    this.familyOf = t.n;
    for (let i = 0; i < t.n && list.length < 200; i++) if (t.label[i] === label) list.push(i);
    (await t.rows(list)).forEach((row, k) => {
      const child = (((parsed(row.raw) || {}).params || {}).update || {}).sessionId;
      if (child && !this.lanes.parents.has(child)) this.lanes.parents.set(child, t.name("session", list[k]));
    });
    this.family.hidden = !this.lanes.parents.size;
    this.draw();
  }
  setFamilies(on) {
    this.lanes.folded = on;
    this.family.setAttribute("aria-pressed", on);
    this.draw();
  }

  measure() {
    const box = this.canvas.parentElement.getBoundingClientRect(),
      style = getComputedStyle(this.canvas),
      ratio = devicePixelRatio || 1;
    this.font = style.fontSize + " " + style.fontFamily;
    ((this.width = box.width), (this.tallness = box.height));
    ((this.canvas.width = Math.round(box.width * ratio)), (this.canvas.height = Math.round(box.height * ratio)));
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.colours = null;
    this.draw();
  }

  setView(from, to) {
    const total = this.total(),
      least = this.scale.causal ? 4 : 1,
      range = Math.min(Math.max(to - from, least), total * 1.1);
    const middle = (from + to) / 2;
    ((this.from = Math.min(Math.max(middle - range / 2, -total * 0.02), total * 1.05 - range * 0.05)),
      (this.to = this.from + range));
    this.asked = false;
    this.draw();
  }
  // move is setView by hand: the part that is then in view is worth an address. all needs none.
  move(from, to, all = false) {
    this.setView(from, to);
    clearTimeout(this.settled);
    this.settled = setTimeout(() => {
      const unit = this.scale.causal ? "" : "us";
      this.moved(
        all
          ? unit
            ? ""
            : "order"
          : this.ends()
              .map(x => x + unit)
              .join(".."),
      );
    }, 250);
  }
  // show is what an address asks for: 120us..480us, 12..40 for entries in causal order, or order for all in it. What
  // it asks for may still come.
  show(zoom) {
    const m = /^(-?[\d.]+)(us)?\.\.(-?[\d.]+)(us)?$/.exec(zoom),
      causal = zoom === "order" || Boolean(m && !m[2]);
    if ((!m && !causal) || (m && (m[2] !== m[4] || !(Number(m[1]) < Number(m[3]))))) return;
    this.scale.causal = causal;
    this.mode.setAttribute("aria-pressed", causal);
    this.setView(0, this.total() * 1.02);
    if (!m) return;
    [this.from, this.to] = [m[1], m[3]].map(x => (causal ? Number(x) : this.scale.x(Number(x))));
    this.asked = true;
  }
  all() {
    this.move(0, this.total() * 1.02, true);
  }
  zoom(by, x = (this.from + this.to) / 2) {
    this.move(x - (x - this.from) * by, x + (this.to - x) * by);
  }
  setCausal(on) {
    const i = this.inView();
    this.scale.causal = on;
    this.mode.setAttribute("aria-pressed", on);
    if (this.trace.n)
      this.move(this.x(Math.min(i[0], this.trace.n - 1)), this.x(Math.min(Math.max(i[1], i[0] + 1), this.trace.n - 1)));
  }
  setFolding(on) {
    setUp("idle", on);
    this.idle.setAttribute("aria-pressed", on);
    this.keeping(() => {
      this.scale.folding = on;
    });
    this.draw();
  }
  // choose shows an entry: in the middle if it is not in view.
  choose(i) {
    this.at = i;
    if (i >= 0 && i < this.trace.n && this.to !== undefined) {
      const x = this.x(i),
        range = this.to - this.from;
      if (x < this.from || x > this.to) return this.setView(x - range / 2, x + range / 2);
    }
    this.draw();
  }
  // follow draws the causes of an entry, as Causes tells them, for as long as that is the selected one.
  follow(at, causes) {
    this.causes = causes && { ...causes, at };
    this.draw();
  }
  // around shows the turn in which an entry lies, where all would be too much.
  around(i) {
    const s = this.spans.around(i, "turn");
    if (s < 0) return;
    const a = this.x(this.spans.from[s]),
      b = this.spans.isOpen(s) ? this.total() : this.x(this.spans.to[s]),
      room = 0.08 * (b - a);
    if (b > a) this.setView(a - room, b + room);
  }
  // nearest is the entry of a lane that is nearest to a point, of all in the axis above; -1 if none is near.
  nearest(px, py) {
    const lists =
        py < this.axis
          ? [{ list: null, n: this.trace.n }]
          : ((this.rows || [])[Math.floor((py - this.axis) / this.laneHeight)] || []).map(k => this.lanes.lists[k]),
      far = i => Math.abs(this.px(this.x(i)) - px);
    const near = lists.flatMap(({ list, n }) => {
      const a = this.scale.first(this.unpx(px), list, n);
      return [a - 1, a].filter(j => j >= 0 && j < n).map(j => (list ? list[j] : j));
    });
    near.sort((i, j) => far(i) - far(j));
    return near.length && (py < this.axis || far(near[0]) < 8) ? near[0] : -1;
  }
  // overview moves the view to a place in the small picture of all.
  overview(px) {
    const x = ((px - this.left()) / (this.width - this.left() - 8)) * this.total() * 1.02,
      half = (this.to - this.from) / 2;
    this.move(x - half, x + half);
  }
  listen() {
    let drag = null;
    this.canvas.addEventListener(
      "wheel",
      e => {
        e.preventDefault();
        const range = this.to - this.from;
        if (Math.abs(e.deltaX) > Math.abs(e.deltaY))
          this.move(this.from + (range * e.deltaX) / this.width, this.to + (range * e.deltaX) / this.width);
        else this.zoom(1.0018 ** Math.max(-400, Math.min(400, e.deltaY)), this.unpx(e.offsetX));
      },
      { passive: false },
    );
    this.canvas.addEventListener("pointerdown", e => {
      const part = e.offsetY < this.axis ? "head" : e.offsetY > this.bottom ? "small" : "";
      drag = { x: e.offsetX, from: this.from, to: this.to, moved: false, part };
      this.canvas.setPointerCapture(e.pointerId);
      this.drawn(part, e);
    });
    this.canvas.addEventListener("pointermove", e => {
      if (drag && drag.part) this.drawn(drag.part, e);
      else if (drag && Math.abs(e.offsetX - drag.x) > 3) {
        drag.moved = true;
        const by = ((drag.x - e.offsetX) / (this.width - this.left() - 8)) * (drag.to - drag.from);
        this.move(drag.from + by, drag.to + by);
      } else if (!drag) this.hint(e.offsetX, e.offsetY);
    });
    this.canvas.addEventListener("pointerup", e => {
      if (drag && !drag.moved && !drag.part) {
        const i = this.nearest(e.offsetX, e.offsetY);
        if (i >= 0) this.select(i);
      }
      drag = null;
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
      this.over = -1;
      this.draw();
    });
    this.canvas.addEventListener("dblclick", e => this.zoom(0.2, this.unpx(e.offsetX)));
    this.canvas.addEventListener("keydown", e => {
      const range = this.to - this.from,
        keys = {
          ArrowLeft: () => this.move(this.from - range / 5, this.to - range / 5),
          ArrowRight: () => this.move(this.from + range / 5, this.to + range / 5),
          "+": () => this.zoom(0.5),
          "=": () => this.zoom(0.5),
          "-": () => this.zoom(2),
          0: () => this.all(),
        };
      if (keys[e.key]) {
        keys[e.key]();
        e.preventDefault();
        e.stopPropagation();
      }
    });
  }
  // drawn is told of the pointer that draws the playhead, or the view in the small picture.
  drawn(part, e) {
    if (part === "small") return this.overview(e.offsetX);
    const i = part ? this.nearest(e.offsetX, 0) : -1;
    if (i >= 0 && i !== this.at) this.select(i);
  }
  hint(px, py) {
    const i = this.nearest(px, py);
    if (i !== this.over) {
      this.over = i;
      this.draw();
    }
    this.tip.hidden = i < 0;
    if (i < 0) return;
    const t = this.trace,
      text = t.row(i);
    const shown = text ? visible(text.line.slice(0, 160)) : t.name("label", i);
    this.tip.textContent = `#${i + 1}  ${lasting(t.at[i])}  ${shown}`;
    this.tip.style.left = Math.min(px + 12, this.width - 260) + "px";
    this.tip.style.top = Math.min(py + 14, this.tallness - 24) + "px";
  }
}
