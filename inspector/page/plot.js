import { h, lasting, parsed } from "./dom.js";
import { spanKinds } from "./spans.js";

// The plot draws what is in view: single entries with arrows where there is room, else how many there are; below it all
// of them in small.
const small = 16; // the height of that
const axis = 18; // and of the axis above
const highest = 130; // of a lane

// The lane and the colour of each kind of span, how much of the height it takes, and where it lies above (-1) or below
// the middle.
const looks = {
  turn: [1, "turn", 0.7],
  permission: [0, "wait", 0.45],
  request: [1, "request", 0.45],
  model: [2, "model", 0.45, -1],
  gate: [2, "gate", 0.45, 1],
  cancel: [0, "cancel", 0.8],
  terminal: [3, "terminal", 0.45],
  file: [4, "file", 0.45],
  process: [5, "process", 0.7],
};

// fitted is as much of a text as has room.
function fitted(c, text, room) {
  if (c.measureText(text).width <= room) return text;
  let n = Math.floor((text.length * room) / c.measureText(text).width);
  while (n > 1 && c.measureText(text.slice(0, n) + "…").width > room) n--;
  return text.slice(0, n) + "…";
}

export class Plot {
  x(i) {
    return this.scale.of(i);
  }
  total() {
    return this.scale.total();
  }
  left() {
    return this.width < 500 ? 62 : 80;
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
    const rows = this.lanes.rows(),
      c = this.context,
      left = this.left(),
      bottom = this.tallness - small,
      laneHeight = Math.min(highest, (bottom - axis) / rows.length),
      place = new Map(rows.flatMap((lanes, k) => lanes.map(lane => [lane, k]))),
      y = lane => axis + ((place.get(lane) ?? place.get(6) ?? 1) + 0.5) * laneHeight;
    Object.assign(this, { laneHeight, rows, bottom, axis });
    c.clearRect(0, 0, this.width, this.tallness);
    c.font = this.font;
    c.textBaseline = "middle";
    for (const [lane] of rows) {
      c.fillStyle = this.colour("line");
      c.fillRect(left, Math.round(y(lane)), this.width - left, 1);
      c.fillStyle = this.colour(this.lanes.actor(lane));
      c.fillText(this.lanes.name(lane), 8, y(lane));
    }
    c.save();
    c.beginPath();
    c.rect(left, 0, this.width - left, bottom);
    c.clip();
    this.ticks(c, left);
    this.names = []; // they stand above all else
    this.paintIdle(c);
    const [a, b] = this.inView();
    this.paintSpans(c, y, a, b);
    if (b - a <= 1500) for (let i = a; i < b; i++) this.paintEntry(c, i, y, b - a);
    else this.paintDensity(c, y);
    this.paintCauses(c, y, a, b);
    this.paintNames(c);
    this.paintMarks(c, left);
    c.restore();
    this.paintSmall(c, left);
    const [from, to] = this.ends();
    this.where.textContent = this.scale.causal
      ? Math.round(to - from) + " entries in view"
      : lasting(to - from) + " in view";
    this.painted = (this.painted || 0) + 1;
  }
  paintNames(c) {
    c.strokeStyle = this.colour("bg");
    c.fillStyle = this.colour("fg");
    c.lineWidth = 3;
    c.lineJoin = "round";
    for (const [text, x, y, turned] of this.names) {
      c.save();
      c.translate(x, y);
      if (turned) c.rotate(-Math.PI / 2);
      c.strokeText(text, 0, 0);
      c.fillText(text, 0, 0);
      c.restore();
    }
    c.lineWidth = 1;
  }
  // paintMarks draws the findings, and the playhead.
  paintMarks(c, left) {
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
      c.fillRect(p - 0.5, axis, 1, this.bottom);
      c.globalAlpha = 1;
    }
    if (this.at < 0 || this.at >= this.trace.n) return;
    const p = this.px(this.x(this.at));
    c.fillStyle = this.colour("link");
    c.fillRect(p - 1, axis - 8, 2, this.bottom);
    c.fillRect(p - 5, axis - 12, 10, 6);
  }
  // paintIdle marks the pauses that are folded, with how long they were, written upwards: a mark is narrow.
  paintIdle(c) {
    for (const f of this.scale.folded()) {
      const p = this.px(f.x),
        q = this.px(f.x + f.width);
      if (q < this.left() || p > this.width) continue;
      c.fillStyle = this.colour("box");
      c.fillRect(p, axis, q - p, this.bottom);
      c.strokeStyle = this.colour("dim");
      for (const edge of [p, q]) {
        c.beginPath();
        for (let y = axis; y < this.bottom + 6; y += 6) c.lineTo(edge + (y % 12 ? 2 : -2), y);
        c.stroke();
      }
      const text = "idle " + lasting(f.long),
        long = c.measureText(text).width,
        [a, b] = [Math.max(p, this.left()), Math.min(q, this.width)];
      if (b - a > 11 && this.bottom - axis > long) this.names.push([text, (a + b) / 2, this.bottom - 4, true]);
    }
  }
  // paintSmall draws all that there is, and where in it the view lies.
  paintSmall(c, left) {
    const total = this.total() * 1.02,
      wide = this.width - left - 8,
      y = this.bottom + 1,
      tall = small - 2,
      px = x => left + (Math.max(0, Math.min(x, total)) / total) * wide;
    const key = [this.trace.n, this.width, this.scale.causal, this.scale.folding, total].join();
    if (this.smallKey !== key) {
      this.smallKey = key;
      const at = Array.from({ length: Math.max(2, Math.ceil(wide / 2)) + 1 }, (_, k) =>
        this.scale.first((k * 2 * total) / wide),
      );
      this.counts = at.slice(1).map((n, k) => n - at[k]);
    }
    const most = Math.log2(1 + Math.max(1, ...this.counts));
    c.fillStyle = this.colour("box");
    c.fillRect(left, y, wide, tall);
    c.fillStyle = this.colour("dim");
    this.counts.forEach((n, k) => {
      const high = n && Math.max(2, (Math.log2(1 + n) / most) * (tall - 3));
      if (n) c.fillRect(left + 2 * k, y + tall - high, 1, high);
    });
    c.fillStyle = this.colour("fail");
    for (const i of this.marks.keys()) c.fillRect(px(this.x(i)) - 1, y, 2, tall);
    c.strokeStyle = c.fillStyle = this.colour("fg");
    if (this.at >= 0 && this.at < this.trace.n) c.fillRect(px(this.x(this.at)), y, 1, tall);
    c.strokeRect(px(this.from) + 0.5, y + 0.5, Math.max(3, px(this.to) - px(this.from)) - 1, tall - 1);
  }
  ticks(c, left) {
    const range = this.to - this.from,
      rough = range / Math.max(2, (this.width - left) / 110);
    const step = [1, 2, 5, 10].map(m => m * 10 ** Math.floor(Math.log10(rough))).find(s => s >= rough);
    c.fillStyle = this.colour("dim");
    let free = left;
    for (let x = Math.ceil(this.from / step) * step; x <= this.to; x += step) {
      const p = this.px(x),
        text = this.scale.causal ? "#" + Math.round(x + 1) : lasting(this.scale.time(x));
      c.fillRect(p, axis - 4, 1, 4);
      if (p < free || p + 3 + c.measureText(text).width > this.width) continue;
      c.fillText(text, p + 3, axis / 2 - 1);
      free = p + c.measureText(text).width + 12;
    }
  }
  // inView gives the indexes of the first entry in view and of the first behind it.
  inView() {
    return [this.scale.first(this.from), this.scale.first(this.to)];
  }
  // paintSpans draws those in view. What has less than a pixel is drawn once for each pixel.
  paintSpans(c, y, first, last) {
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
      const [own, colour, part, side = 0] = looks[kind],
        lane = own === 1 ? this.lanes.agent(spans.from[s]) : own,
        high = this.laneHeight * part,
        top = y(lane) - high / 2 + (side * high) / 2;
      c.fillStyle = c.strokeStyle = this.colour(colour);
      this.shape(c, kind, p, top, w, high, open);
      const row = lane + (kind === "gate" ? 0.5 : 0), // gates have theirs below
        at = Math.max(p + 4, this.left() + 4, named.get(row) ?? 0),
        room = p + w - at - 2;
      if (room < 34 || high < 11 || kind === "process") return;
      const text = fitted(c, this.name(s), room);
      this.names.push([text, at, top + Math.min(8, high / 2)]);
      named.set(row, at + c.measureText(text).width + 6);
    });
  }
  // shape draws a span: what it is shows in the form too. A gate is barred, a cancel hatched, a turn has a bold edge,
  // a question is a frame, a process a line; a dashed edge has no end.
  shape(c, kind, p, top, w, high, open) {
    if (kind === "process") return c.fillRect(p, top + high / 2 - 1, w, 3);
    c.globalAlpha = kind === "gate" || kind === "cancel" ? 0.3 : 0.2;
    c.fillRect(p, top, w, high);
    c.globalAlpha = 1;
    if (w < 4) return;
    c.save();
    c.beginPath();
    c.rect(p, top, w, high);
    c.clip();
    c.globalAlpha = 0.7;
    c.beginPath();
    const slant = kind === "cancel" ? high : 0;
    if (kind === "gate" || slant)
      for (let x = p - slant; x < p + w; x += 7) {
        c.moveTo(x, top + high);
        c.lineTo(x + slant, top);
      }
    c.stroke();
    c.globalAlpha = 1;
    if (kind === "turn") c.fillRect(p, top, 3, high);
    if (kind === "permission" || open) {
      if (open) c.setLineDash([3, 3]);
      c.lineWidth = 2;
      c.strokeRect(p, top, w, high);
    }
    c.restore();
  }
  paintEntry(c, i, y, many) {
    const t = this.trace,
      source = t.name("source", i),
      [a, b] = this.lanes.pair(i),
      p = this.px(this.x(i));
    if (a < 0) {
      c.fillStyle = this.colour("dim");
      c.globalAlpha = 0.4;
      c.fillRect(p, axis, 1, this.bottom);
      c.globalAlpha = 1;
      return;
    }
    const colour = this.colour(
      source === "editor" ? "editor" : source === "stderr" ? "wait" : this.lanes.actor(Math.max(a, 1)),
    );
    c.fillStyle = c.strokeStyle = colour;
    if (a === b) {
      c.beginPath();
      if (source === "stderr") {
        c.moveTo(p - 3, y(a) - 3);
        c.lineTo(p + 3, y(a) + 3);
        c.moveTo(p + 3, y(a) - 3);
        c.lineTo(p - 3, y(a) + 3);
        c.stroke();
      } else c.arc(p, y(a), 2.5, 0, 7);
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
      lanesOf = i => this.lanes.pair(i);
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
    this.paintOver(c, y, curve);
    if (!this.causes || this.causes.at !== this.at) return;
    c.strokeStyle = c.fillStyle = this.colour("link");
    c.globalAlpha = 0.4;
    for (const l of this.causes.chain) arrow(l, 1);
    c.globalAlpha = 1;
    for (const l of [...this.causes.before, ...this.causes.after]) arrow(l, 2);
  }
  // paintOver joins what the pointer is on with what it answers, or what answers it.
  paintOver(c, y, curve) {
    const t = this.trace,
      i = this.over,
      one = i >= 0 && i < t.n ? (t.ref[i] ? t.ref[i] - 1 : i) : -1,
      other = one < 0 ? 0 : t.ref[i] ? i : t.answer(i);
    if (!other) return;
    const k = this.lanes.pair(other).at(-1);
    if (k >= 0) curve(this.px(this.x(one)), this.px(this.x(other)), y(k), y(k), 3);
  }
  paintDensity(c, y) {
    this.lanes.lists.forEach((l, k) => {
      if (!l.n) return;
      c.fillStyle = this.colour(this.lanes.actor(k));
      const search = x => this.scale.first(x, l.list, l.n);
      let before = search(this.from);
      const end = this.width - 8,
        most = Math.log2(2 + l.n / 40);
      for (let p = this.left(); p < end && before < l.n; p += 2) {
        const next = search(this.unpx(p + 2)),
          n = next - before;
        if (n) {
          const tall = Math.max(2, Math.min(1, Math.log2(1 + n) / most) * this.laneHeight * 0.8);
          c.fillRect(p, y(k) - tall / 2, 2, tall);
        }
        before = next;
      }
    });
  }
  // ends are the ends of what is in view, as an address has them: in time, or numbers of entries.
  ends() {
    if (this.scale.causal) return [Math.round(this.from), Math.round(this.to)];
    const all = [this.scale.time(this.from), this.scale.time(this.to)],
      digits = all[1] - all[0] < 100 ? 2 : 0;
    return all.map(x => Number(x.toFixed(digits)));
  }
  // name is what a span is called.
  name(s) {
    const { spans, trace } = this,
      from = spans.from[s],
      kind = spanKinds[spans.kind[s]];
    if (kind === "gate") {
      const row = trace.row(from);
      return "gate " + ((row && (parsed(row.raw) || {}).gate) || "");
    }
    const plain = { cancel: "cancel window", model: "model request", turn: "turn", permission: "permission" };
    return plain[kind] || trace.name("method", from) || kind;
  }
}
