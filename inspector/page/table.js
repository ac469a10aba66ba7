import { h } from "./dom.js";

// A table of any number of rows of one height: only those that are seen exist. With following it stays at its
// end while rows come, until somebody goes elsewhere. Browsers do not scroll more than some million pixels, so
// beyond that the bar moves by more than it shows and the wheel by rows.
const tallest = 8e6;

export class Table {
  constructor({ label, height, row }) {
    Object.assign(this, { height, row, count: 0, top: 0, made: new Map(), ended: true });
    this.body = h("div", { class: "t-window", role: "rowgroup" });
    this.spacer = h("div", { class: "t-spacer", role: "presentation" });
    this.element = h(
      "div",
      { class: "t-scroll", role: "grid", tabindex: 0, "aria-label": label },
      this.body,
      this.spacer,
    );
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.element.addEventListener("wheel", e => this.wheeled(e), { passive: false });
    this.resized = new ResizeObserver(() => this.measure());
    this.resized.observe(this.element);
  }
  visible() {
    return this.view / this.height;
  }
  last() {
    return Math.max(0, this.count - this.visible());
  }
  measure() {
    this.view = this.element.clientHeight || 400;
    const full = Math.min(this.count * this.height, tallest);
    this.body.style.height = this.view + "px";
    this.spacer.style.height = Math.max(0, full - this.view) + "px";
    this.reach = Math.max(1, full - this.view);
    this.element.setAttribute("aria-rowcount", this.count);
    this.go(this.following && this.ended ? this.last() : this.top);
  }
  setCount(n) {
    this.count = n;
    this.measure();
  }
  go(top) {
    this.top = Math.max(0, Math.min(top, this.last()));
    this.place = Math.round(this.last() ? (this.top / this.last()) * this.reach : 0);
    if (Math.abs(this.element.scrollTop - this.place) > 1) this.element.scrollTop = this.place;
    this.draw();
  }
  scrolled() {
    const at = this.element.scrollTop;
    if (Math.abs(at - this.place) <= 1) return;
    this.place = at;
    this.top = Math.max(0, Math.min((at / this.reach) * this.last(), this.last()));
    this.ended = this.top >= this.last() - 1.5;
    this.draw();
  }
  wheeled(e) {
    if (this.count * this.height <= tallest || e.ctrlKey) return;
    e.preventDefault();
    this.go(this.top + (e.deltaMode ? e.deltaY : e.deltaY / this.height));
    this.ended = this.top >= this.last() - 1.5;
  }
  show(i) {
    this.ended = i >= this.count - 1;
    if (i < this.top || i > this.top + this.visible() - 1)
      this.go(i - this.visible() / 4); // where it is seen, also if the table goes beyond the window
    else this.draw();
  }
  draw() {
    if (this.due) return;
    this.due = requestAnimationFrame(() => {
      this.due = 0;
      this.paint();
    });
  }
  // refresh makes the rows anew, or those of which that can be told to be due.
  refresh(due = () => true) {
    for (const [i, e] of this.made)
      if (due(e)) {
        e.remove();
        this.made.delete(i);
      }
    this.draw();
  }
  paint() {
    const from = Math.floor(this.top),
      to = Math.min(this.count, Math.ceil(this.top + this.visible()) + 1);
    for (const [i, e] of this.made)
      if (i < from || i >= to) {
        e.remove();
        this.made.delete(i);
      }
    for (let i = from; i < to; i++) {
      let e = this.made.get(i);
      if (!e) {
        e = this.row(i);
        this.made.set(i, e);
        this.body.append(e);
      }
      e.style.transform = `translateY(${(i - this.top) * this.height}px)`;
    }
  }
}
