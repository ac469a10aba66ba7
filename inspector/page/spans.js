// Spans are what lasts: turns, requests, permissions, what the model is asked, the gates that hold it, the
// window between a cancel and the end of its turn, terminals and processes. They are numbers in arrays, in the
// order in which they begin, so that a million frames have room for theirs.
export const isFile = m => m.startsWith("fs/");
export const isTerminal = m => m.startsWith("terminal/");
export const spanKinds = ["turn", "permission", "request", "model", "gate", "cancel", "terminal", "file", "process"];
const group = 512;
const never = 0x7fffffff;

export class Spans {
  constructor(trace) {
    this.trace = trace;
    this.clear();
  }
  clear() {
    Object.assign(this, {
      n: 0,
      kind: new Uint8Array(64),
      from: new Uint32Array(64),
      to: new Int32Array(64),
      open: new Map(),
      queue: { gate: [], model: [], terminal: [] },
    });
  }
  begin(key, kind, i) {
    if (this.n === this.from.length)
      for (const c of ["kind", "from", "to"]) {
        const next = new this[c].constructor(2 * this.n);
        next.set(this[c]);
        this[c] = next;
      }
    ((this.kind[this.n] = spanKinds.indexOf(kind)), (this.from[this.n] = i), (this.to[this.n] = never));
    this.open.set(key, this.n++);
  }
  close(key, i) {
    const s = this.open.get(key);
    if (s === undefined) return;
    this.to[s] = i;
    this.open.delete(key);
  }
  first(queue, i) {
    const key = this.queue[queue].shift();
    if (key !== undefined) this.close(key, i);
  }
  // note takes in an entry.
  note(i, source, kind, method) {
    const t = this.trace;
    const queued = (queue, key) => {
      this.begin(key, queue, i);
      this.queue[queue].push(key);
    };
    if (kind === "request")
      this.begin(
        "r" + i,
        method === "session/prompt"
          ? "turn"
          : /permission/.test(method)
            ? "permission"
            : isFile(method)
              ? "file"
              : isTerminal(method)
                ? "terminal"
                : "request",
        i,
      );
    else if (t.ref[i] && kind !== "written") {
      this.close("r" + (t.ref[i] - 1), i);
      this.close("c" + (t.ref[i] - 1), i);
    }
    if (source === "editor" && kind === "notification" && /cancel/.test(method)) {
      for (const s of this.open.values())
        if (spanKinds[this.kind[s]] === "turn" && t.session[this.from[s]] === t.session[i]) {
          this.begin("c" + this.from[s], "cancel", i);
          break;
        }
    }
    if (kind === "gate") queued("gate", "g" + i);
    else if (kind === "gate-released") this.first("gate", i);
    else if (kind === "model-request") queued("model", "m" + i);
    else if (/^model-(done|aborted|fault)$/.test(kind)) {
      this.first("model", i);
      // None of them holds anything any more.
      if (!this.queue.model.length) while (this.queue.gate.length) this.first("gate", i);
    } else if (kind === "term-started") queued("terminal", "t" + i);
    else if (kind === "term-exit") this.first("terminal", i);
    else if (kind === "started") this.begin("p" + t.origin[i], "process", i);
    else if (kind === "exit") this.close("p" + t.origin[i], i);
  }
  has(kind) {
    return this.kind.subarray(0, this.n).includes(spanKinds.indexOf(kind));
  }
  isOpen(s) {
    return this.to[s] === never;
  }
  // around is the innermost span of a kind that an entry lies in, -1 if there is none.
  around(i, kind) {
    const k = spanKinds.indexOf(kind);
    let a = 0,
      b = this.n;
    while (a < b) {
      const m = (a + b) >> 1;
      if (this.from[m] <= i) a = m + 1;
      else b = m;
    }
    for (let s = a - 1; s >= 0; s--) if (this.kind[s] === k && this.to[s] >= i) return s;
    return -1;
  }
  // within tells of the spans that touch the entries from a up to b. What ends before is left out by groups.
  within(a, b, tell) {
    if (this.reachTo !== this.n || this.open.size) this.reach();
    for (let s = 0; s < this.n && this.from[s] <= b; s++) {
      if (s % group === 0 && this.ends[s / group] < a) {
        s += group - 1;
        continue;
      }
      if (this.to[s] >= a) tell(s);
    }
  }
  reach() {
    const groups = Math.ceil(this.n / group);
    if (!this.ends || this.ends.length < groups || this.reachTo > this.n) {
      this.ends = new Int32Array(2 * groups + 1);
      this.settled = 0;
    }
    // A group in which nothing is open does not change any more.
    for (let k = this.settled || 0; k < groups; k++) {
      let most = -1;
      for (let s = k * group; s < Math.min(this.n, (k + 1) * group); s++) most = Math.max(most, this.to[s]);
      this.ends[k] = most;
      if (k === (this.settled || 0) && most !== never && (k + 1) * group <= this.n) this.settled = k + 1;
    }
    this.reachTo = this.n;
  }
}
