// A Scale says where on the time line an entry stands: by its time, with idle stretches folded to a mark, or one step
// an entry. Idle is a pause that lasts longer than all that happens around it.
const pauses = 64, // pauses that are looked at
  share = 12, // a pause is idle that lasts longer than this part of the rest, and than so many usual pauses
  shortest = 2e4; // µs

export class Scale {
  constructor(trace) {
    Object.assign(this, { trace, causal: false, folding: true, folds: [], gaps: [], least: shortest, seen: 1 });
  }
  // grown looks for pauses among new entries.
  grown() {
    const at = this.trace.at,
      n = this.trace.n;
    if (n < this.seen) Object.assign(this, { gaps: [], least: shortest, seen: 1 });
    for (let i = this.seen; i < n; i++) if (at[i] - at[i - 1] > this.least) this.keep(i, at[i] - at[i - 1]);
    this.seen = Math.max(1, n);
    this.fold();
  }
  keep(i, long) {
    this.gaps.push({ i, long });
    if (this.gaps.length <= pauses) return;
    this.gaps.sort((a, b) => b.long - a.long).pop();
    this.least = this.gaps.at(-1).long;
  }
  fold() {
    const at = this.trace.at,
      total = this.trace.end();
    const long = [...this.gaps].sort((a, b) => b.long - a.long),
      steps = this.trace.n - 1;
    let rest = total,
      active = total,
      n = 0;
    long.forEach((g, k) => {
      rest -= g.long; // what is shorter; and at least half of all pauses are usual
      const others = steps - k - 1;
      if (2 * (k + 1) > steps || g.long <= share * Math.max(rest / share / share, rest / others)) return;
      ((n = k + 1), (active = rest));
    });
    const idle = long.slice(0, n);
    const width = Math.max(1, active) * 0.06;
    let saved = 0;
    this.folds = idle
      .sort((a, b) => a.i - b.i)
      .map(({ i, long }) => {
        const fold = { from: at[i - 1], to: at[i], x: at[i - 1] - saved, width: Math.min(width, long), long };
        saved += long - fold.width;
        return fold;
      });
  }
  folded() {
    return this.folding && !this.causal ? this.folds : [];
  }
  // near is the last fold that begins before a place, by its time or by its x.
  near(by, place) {
    const folds = this.folded();
    let a = 0,
      b = folds.length;
    while (a < b) {
      const m = (a + b) >> 1;
      if (folds[m][by] <= place) a = m + 1;
      else b = m;
    }
    return folds[a - 1];
  }
  x(time) {
    const f = this.near("from", time);
    if (!f) return time;
    return time >= f.to ? f.x + f.width + time - f.to : f.x + ((time - f.from) / f.long) * f.width;
  }
  time(x) {
    const f = this.near("x", x);
    if (!f) return x;
    return x >= f.x + f.width ? f.to + x - f.x - f.width : f.from + ((x - f.x) / f.width) * f.long;
  }
  of(i) {
    return this.causal ? i : this.x(this.trace.at[i]);
  }
  total() {
    return Math.max(1, this.causal ? this.trace.n : this.x(this.trace.end()));
  }
  // first is the index of the first entry of a list, or of all, that stands at a place or behind it.
  first(x, list, n = this.trace.n) {
    const limit = this.causal ? x : this.time(x),
      at = this.trace.at;
    let a = 0,
      b = n;
    while (a < b) {
      const m = (a + b) >> 1,
        i = list ? list[m] : m;
      if ((this.causal ? i : at[i]) < limit) a = m + 1;
      else b = m;
    }
    return a;
  }
}
