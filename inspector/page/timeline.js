import { h, button, lasting, visible } from "./dom.js";
import { Spans, spanKinds, isFile, isTerminal } from "./spans.js";

// The timeline draws what is in view: single frames with arrows where there is room, else how many there
// are. It goes to scale, or one step for each entry, which shows what came before what.
const lanes = ["editor", "agent", "model", "terminal", "files", "process"];

// laneOf says from which lane to which an entry goes; one that goes nowhere has one lane.
function laneOf(source, kind, method) {
  const side = isFile(method) ? 4 : isTerminal(method) ? 3 : 0;
  switch (source) {
    case "editor":
      return [kind === "written" ? 0 : side, kind === "written" ? 0 : 1];
    case "agent":
      return [1, side];
    case "stderr":
      return [1, 1];
    case "model":
      return kind === "model-request" || kind === "model-aborted"
        ? [1, 2]
        : kind === "model-chunk" || kind === "model-done"
          ? [2, 1]
          : [2, 2];
    case "terminal":
      return [3, 3];
    case "process":
      return [5, 5];
  }
  return kind === "file" ? [4, 4] : [-1, -1];
}

// The lane and the colour of each kind of span.
const looks = {
  turn: [1, "turn"],
  permission: [0, "wait"],
  request: [1, "request"],
  model: [2, "model"],
  gate: [2, "gate"],
  cancel: [0, "cancel"],
  terminal: [3, "terminal"],
  file: [4, "file"],
  process: [5, "process"],
};

export class Timeline {
  // select is told of the entry that a click chose, moved of the part that somebody chose to see, as show takes it.
  constructor({ trace, marks, select, moved, tall }) {
    Object.assign(this, {
      trace,
      marks,
      select,
      moved,
      causal: false,
      byLane: [],
      done: 0,
      spans: new Spans(trace),
      at: -1,
    });
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "img",
      "aria-label": "timeline: arrow keys pan, plus and minus zoom, 0 shows all",
    });
    this.tip = h("div", { class: "tip", hidden: true });
    this.where = h("span", { class: "dim" });
    this.mode = button("causal order", () => this.setCausal(!this.causal), {
      "aria-pressed": "false",
      title: "one step for each entry, not to scale",
    });
    this.element = h(
      "section",
      { class: "timeline" + (tall ? " tall" : ""), "aria-label": "timeline" },
      h(
        "div",
        { class: "bar" },
        button("−", () => this.zoom(2), { title: "zoom out" }),
        button("+", () => this.zoom(0.5), { title: "zoom in" }),
        button("all", () => this.all()),
        this.mode,
        this.where,
      ),
      h("div", { class: "plot" }, this.canvas, this.tip),
    );
    this.context = this.canvas.getContext("2d");
    for (let k = 0; k < lanes.length; k++) this.byLane.push({ list: new Uint32Array(64), n: 0 });
    this.listen();
    new ResizeObserver(() => this.measure()).observe(this.canvas.parentElement);
  }
  x(i) {
    return this.causal ? i : this.trace.at[i];
  }
  total() {
    return Math.max(1, this.causal ? this.trace.n : this.trace.end());
  }

  // grown takes in what the trace has got.
  grown() {
    const t = this.trace,
      follows = this.to === undefined || (!this.asked && this.to >= this.was);
    if (t.n < this.done)
      ((this.done = 0),
        this.spans.clear(),
        this.byLane.forEach(l => {
          l.n = 0;
        }));
    for (; this.done < t.n; this.done++) this.note(this.done);
    if (follows) {
      this.from = this.to === undefined ? 0 : this.from;
      this.to = this.total() * 1.02;
    }
    this.was = this.total();
    this.draw();
  }
  note(i) {
    const t = this.trace,
      source = t.name("source", i),
      kind = t.name("kind", i),
      method = t.name("method", i);
    for (const k of new Set(laneOf(source, kind, method))) {
      if (k < 0) continue;
      const l = this.byLane[k];
      if (l.n === l.list.length) {
        const next = new Uint32Array(2 * l.n);
        next.set(l.list);
        l.list = next;
      }
      l.list[l.n++] = i;
    }
    this.spans.note(i, source, kind, method);
  }

  measure() {
    const box = this.canvas.parentElement.getBoundingClientRect(),
      ratio = devicePixelRatio || 1;
    ((this.width = box.width), (this.tallness = box.height));
    ((this.canvas.width = Math.round(box.width * ratio)), (this.canvas.height = Math.round(box.height * ratio)));
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.colours = null;
    this.draw();
  }
  left() {
    return this.width < 500 ? 62 : 76;
  }
  px(x) {
    return this.left() + ((x - this.from) / (this.to - this.from)) * (this.width - this.left() - 8);
  }
  unpx(p) {
    return this.from + ((p - this.left()) / (this.width - this.left() - 8)) * (this.to - this.from);
  }
  draw() {
    if (!this.due)
      this.due = requestAnimationFrame(() => {
        this.due = 0;
        this.paint();
      });
  }
  colour(name) {
    if (!this.colours) {
      const style = getComputedStyle(document.documentElement),
        probe = h("i");
      this.canvas.parentElement.append(probe);
      this.colours = {};
      for (const c of [
        "fg",
        "dim",
        "line",
        "bg",
        "box",
        "fail",
        "link",
        "editor",
        "agent",
        "model",
        "terminal",
        "files",
        "process",
        "turn",
        "wait",
        "request",
        "gate",
        "cancel",
        "file",
      ]) {
        probe.style.color = style.getPropertyValue("--" + c);
        this.colours[c] = getComputedStyle(probe).color;
      }
      probe.remove();
    }
    return this.colours[name];
  }
  paint() {
    if (!this.width || this.to === undefined) return;
    const shown = lanes.map((_, k) => k).filter(k => k < 2 || this.byLane[k].n),
      place = lanes.map((_, k) => shown.indexOf(k));
    const c = this.context,
      left = this.left(),
      axis = 18,
      laneHeight = (this.tallness - axis) / shown.length;
    const y = k => axis + (place[k] + 0.5) * laneHeight;
    Object.assign(this, { laneHeight, axis, shown });
    c.clearRect(0, 0, this.width, this.tallness);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (const k of shown) {
      c.fillStyle = this.colour("line");
      c.fillRect(left, Math.round(y(k)), this.width - left, 1);
      c.fillStyle = this.colour(lanes[k]);
      c.fillText(lanes[k], 8, y(k));
    }
    this.ticks(c, left, axis);
    c.save();
    c.beginPath();
    c.rect(left, 0, this.width - left, this.tallness);
    c.clip();
    const [a, b] = this.inView();
    this.paintSpans(c, y, laneHeight, a, b);
    if (b - a <= 1500) for (let i = a; i < b; i++) this.paintEntry(c, i, y, b - a);
    else this.paintDensity(c, y, laneHeight);
    this.paintCauses(c, y, a, b);
    c.fillStyle = this.colour("fail");
    for (const i of this.marks.keys()) {
      const p = this.px(this.x(i));
      if (p < left - 4 || p > this.width) continue;
      c.beginPath();
      c.moveTo(p, axis + 5);
      c.lineTo(p - 5, axis - 4);
      c.lineTo(p + 5, axis - 4);
      c.fill();
      c.globalAlpha = 0.35;
      c.fillRect(p - 0.5, axis, 1, this.tallness);
      c.globalAlpha = 1;
    }
    if (this.at >= 0 && this.at < this.trace.n) {
      c.fillStyle = this.colour("link");
      c.fillRect(this.px(this.x(this.at)) - 1, axis - 6, 2, this.tallness);
    }
    c.restore();
    const range = this.rounded(this.to) - this.rounded(this.from);
    this.where.textContent = this.causal ? Math.round(range) + " entries in view" : lasting(range) + " in view";
    this.painted = (this.painted || 0) + 1;
  }
  ticks(c, left, axis) {
    const range = this.to - this.from,
      rough = range / Math.max(2, (this.width - left) / 110);
    const step = [1, 2, 5, 10].map(m => m * 10 ** Math.floor(Math.log10(rough))).find(s => s >= rough);
    c.fillStyle = this.colour("dim");
    for (let x = Math.ceil(this.from / step) * step; x <= this.to; x += step) {
      const p = this.px(x);
      c.fillRect(p, axis - 4, 1, 4);
      c.fillText(this.causal ? "#" + Math.round(x + 1) : lasting(x), p + 3, axis / 2 - 1);
    }
  }
  // inView gives the indexes of the first entry in view and of the first behind it.
  inView() {
    const search = x => {
      let a = 0,
        b = this.trace.n;
      while (a < b) {
        const m = (a + b) >> 1;
        if (this.x(m) < x) a = m + 1;
        else b = m;
      }
      return a;
    };
    return [search(this.from), search(this.to)];
  }
  // paintSpans draws those in view. What has less than a pixel is drawn once for each pixel.
  paintSpans(c, y, laneHeight, first, last) {
    const spans = this.spans,
      now = this.total(),
      drawn = new Float64Array(spanKinds.length).fill(-1),
      named = new Map(); // where a lane's last name ends
    spans.within(Math.max(0, first - 1), last, s => {
      const open = spans.isOpen(s),
        a = this.x(spans.from[s]),
        b = open ? now : this.x(spans.to[s]);
      if (b < this.from || a > this.to) return;
      const kind = spanKinds[spans.kind[s]],
        p = Math.max(this.px(a), -10),
        w = Math.max(1, Math.min(this.px(b), this.width + 10) - p);
      if (w < 2 && (kind === "request" || p < drawn[spans.kind[s]])) return;
      if (w < 2) drawn[spans.kind[s]] = p + 1;
      const [lane, colour] = looks[kind],
        hgt = laneHeight * (kind === "turn" || kind === "process" ? 0.7 : kind === "cancel" ? 0.8 : 0.45);
      c.globalAlpha = kind === "gate" || kind === "cancel" ? 0.45 : 0.22;
      c.fillStyle = this.colour(colour);
      c.fillRect(p, y(lane) - hgt / 2, w, hgt);
      c.globalAlpha = 1;
      if (open) {
        c.strokeStyle = this.colour(colour);
        c.setLineDash([3, 3]);
        c.strokeRect(p, y(lane) - hgt / 2, w, hgt);
        c.setLineDash([]);
      }
      const at = Math.max(p, this.left()) + 4,
        row = lane + (kind === "gate" ? 0.5 : 0); // gates have theirs below
      if (w > 90 && laneHeight > 34 && kind !== "process" && at >= (named.get(row) ?? -1)) {
        const text = spans.text(s);
        c.fillStyle = this.colour("fg");
        c.fillText(text, at, y(lane) + (kind === "gate" ? 1 : -1) * (hgt / 2 - 7));
        named.set(row, at + c.measureText(text).width + 6);
      }
    });
  }
  paintEntry(c, i, y, many) {
    const t = this.trace,
      source = t.name("source", i),
      [a, b] = laneOf(source, t.name("kind", i), t.name("method", i)),
      p = this.px(this.x(i));
    if (a < 0) {
      c.fillStyle = this.colour("dim");
      c.globalAlpha = 0.4;
      c.fillRect(p, this.axis, 1, this.tallness);
      c.globalAlpha = 1;
      return;
    }
    const colour = this.colour(
      source === "editor" ? "editor" : source === "stderr" ? "wait" : lanes[Math.max(a, 1)] || "agent",
    );
    c.fillStyle = c.strokeStyle = colour;
    if (a === b) {
      c.beginPath();
      c.arc(p, y(a), 2.5, 0, 7);
      c.fill();
      return;
    }
    const from = y(a),
      to = y(b),
      sign = Math.sign(to - from);
    c.fillRect(p - 0.5, Math.min(from, to), 1, Math.abs(to - from));
    c.beginPath();
    c.moveTo(p, to);
    c.lineTo(p - 3, to - 6 * sign);
    c.lineTo(p + 3, to - 6 * sign);
    c.fill();
    if (many < 12 && this.laneHeight > 22) {
      c.fillStyle = this.colour("fg");
      c.fillText(t.name("label", i), p + 5, (from + to) / 2);
    }
  }
  // paintCauses draws an arc from each request to what answers it, where there are few; and of the selected entry what
  // it follows from and what follows from it, in a lighter tone what is before and behind these. An arrow ends in the
  // lane where an entry begins, and leaves there too if the other one touches it, else where that arrives.
  paintCauses(c, y, a, b) {
    const t = this.trace,
      lanesOf = i => laneOf(t.name("source", i), t.name("kind", i), t.name("method", i));
    const curve = (p, q, top, bottom, width) => {
      if (Math.max(p, q) < this.left() || Math.min(p, q) > this.width || (top === bottom && q - p < 1)) return;
      const up = Math.min(this.laneHeight * 0.45, 26),
        middle = (p + q) / 2,
        flat = top === bottom;
      c.lineWidth = width;
      c.beginPath();
      c.moveTo(p, top);
      if (flat) c.bezierCurveTo(p, top - up, q, top - up, q, bottom);
      else c.bezierCurveTo(middle, top, middle, bottom, q, bottom);
      c.stroke();
      // The head points the way that the curve ends.
      const angle = flat ? Math.PI / 2 : q - p < 2 ? (Math.sign(bottom - top) * Math.PI) / 2 : 0,
        size = 4 + width;
      c.beginPath();
      c.moveTo(q, bottom);
      for (const turn of [0.45, -0.45])
        c.lineTo(q - size * Math.cos(angle + turn), bottom - size * Math.sin(angle + turn));
      c.fill();
      c.lineWidth = 1;
    };
    const arrow = ({ from, to }, width) => {
      const end = lanesOf(to)[0],
        start = lanesOf(from).includes(end) ? end : lanesOf(from).at(-1);
      if (start >= 0 && end >= 0) curve(this.px(this.x(from)), this.px(this.x(to)), y(start), y(end), width);
    };
    c.strokeStyle = c.fillStyle = this.colour("dim");
    if (b - a <= 150)
      for (let i = a; i < b; i++)
        if (t.ref[i] && t.name("kind", i) !== "written") {
          const k = lanesOf(i).at(-1);
          curve(this.px(this.x(t.ref[i] - 1)), this.px(this.x(i)), y(k), y(k), 1);
        }
    if (!this.causes || this.causes.at !== this.at) return;
    c.strokeStyle = c.fillStyle = this.colour("link");
    c.globalAlpha = 0.4;
    for (const l of this.causes.chain) arrow(l, 1);
    c.globalAlpha = 1;
    for (const l of [...this.causes.before, ...this.causes.after]) arrow(l, 2);
  }
  paintDensity(c, y, laneHeight) {
    this.byLane.forEach((l, k) => {
      c.fillStyle = this.colour(lanes[k]);
      const search = x => {
        let a = 0,
          b = l.n;
        while (a < b) {
          const m = (a + b) >> 1;
          if (this.x(l.list[m]) < x) a = m + 1;
          else b = m;
        }
        return a;
      };
      let before = search(this.from);
      const end = this.width - 8,
        most = Math.log2(2 + l.n / 40);
      for (let p = this.left(); p < end && before < l.n; p += 2) {
        const next = search(this.unpx(p + 2)),
          n = next - before;
        if (n) {
          const tall = Math.max(2, Math.min(1, Math.log2(1 + n) / most) * laneHeight * 0.8);
          c.fillRect(p, y(k) - tall / 2, 2, tall);
        }
        before = next;
      }
    });
  }

  setView(from, to) {
    const total = this.total(),
      least = this.causal ? 4 : 1,
      range = Math.min(Math.max(to - from, least), total * 1.1);
    const middle = (from + to) / 2;
    ((this.from = Math.min(Math.max(middle - range / 2, -total * 0.02), total * 1.05 - range * 0.05)),
      (this.to = this.from + range));
    this.asked = false;
    this.draw();
  }
  // rounded is an end of what is in view as an address has it, and so as it is said.
  rounded(x) {
    return this.causal ? Math.round(x) : Number(x.toFixed(this.to - this.from < 100 ? 2 : 0));
  }
  // move is setView by hand: the part that is then in view is worth an address. all needs none.
  move(from, to, all = false) {
    this.setView(from, to);
    clearTimeout(this.settled);
    const end = x => this.rounded(x) + (this.causal ? "" : "us");
    this.settled = setTimeout(
      () => this.moved(all ? (this.causal ? "order" : "") : end(this.from) + ".." + end(this.to)),
      250,
    );
  }
  // show is what an address asks for: 120us..480us, 12..40 for entries in causal order, or order for all in it. What
  // it asks for may still come.
  show(zoom) {
    const m = /^(-?[\d.]+)(us)?\.\.(-?[\d.]+)(us)?$/.exec(zoom),
      causal = zoom === "order" || Boolean(m && !m[2]);
    if ((!m && !causal) || (m && (m[2] !== m[4] || !(Number(m[1]) < Number(m[3]))))) return;
    this.causal = causal;
    this.mode.setAttribute("aria-pressed", causal);
    this.setView(0, this.total() * 1.02);
    if (m) ((this.from = Number(m[1])), (this.to = Number(m[3])), (this.asked = true));
  }
  all() {
    this.move(0, this.total() * 1.02, true);
  }
  zoom(by, x = (this.from + this.to) / 2) {
    this.move(x - (x - this.from) * by, x + (this.to - x) * by);
  }
  setCausal(on) {
    const i = this.inView();
    this.causal = on;
    this.mode.setAttribute("aria-pressed", on);
    if (this.trace.n)
      this.move(this.x(Math.min(i[0], this.trace.n - 1)), this.x(Math.min(Math.max(i[1], i[0] + 1), this.trace.n - 1)));
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
      room = 0.2 * (b - a);
    if (b - a < this.total() / 2) this.setView(a - room, b + room);
  }
  // nearest is the entry of a lane that is nearest to a point, -1 if none is near.
  nearest(px, py) {
    const l = this.byLane[this.shown ? this.shown[Math.floor((py - this.axis) / this.laneHeight)] : -1];
    if (!l || !l.n) return -1;
    const x = this.unpx(px);
    let a = 0,
      b = l.n;
    while (a < b) {
      const m = (a + b) >> 1;
      if (this.x(l.list[m]) < x) a = m + 1;
      else b = m;
    }
    const near = [a - 1, a]
      .filter(j => j >= 0 && j < l.n)
      .map(j => l.list[j])
      .sort((i, j) => Math.abs(this.px(this.x(i)) - px) - Math.abs(this.px(this.x(j)) - px))[0];
    return Math.abs(this.px(this.x(near)) - px) < 8 ? near : -1;
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
      drag = { x: e.offsetX, from: this.from, to: this.to, moved: false };
      this.canvas.setPointerCapture(e.pointerId);
    });
    this.canvas.addEventListener("pointermove", e => {
      if (drag && Math.abs(e.offsetX - drag.x) > 3) {
        drag.moved = true;
        const by = ((drag.x - e.offsetX) / (this.width - this.left() - 8)) * (drag.to - drag.from);
        this.move(drag.from + by, drag.to + by);
      } else if (!drag) this.hint(e.offsetX, e.offsetY);
    });
    this.canvas.addEventListener("pointerup", e => {
      if (drag && !drag.moved) {
        const i = this.nearest(e.offsetX, e.offsetY);
        if (i >= 0) this.select(i);
      }
      drag = null;
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
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
  hint(px, py) {
    const i = this.nearest(px, py);
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
