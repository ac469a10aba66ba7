import { h, fill, button } from "./dom.js";

// The panes of the work place: their sizes, which are folded, and which one is seen where there is room for one.

// What a reader has set up stays so. A server has another port each time, so a cookie keeps it; a file has none.
const keeper = "acp-test-panes";
const settings = (() => {
  try {
    const cookie = /(?:^|; )acp-test-panes=([^;]*)/.exec(document.cookie);
    return JSON.parse(cookie ? decodeURIComponent(cookie[1]) : localStorage.getItem(keeper)) || {};
  } catch {
    return {};
  }
})();
export const setting = key => settings[key];
export function setUp(key, value) {
  settings[key] = value;
  const text = JSON.stringify(settings);
  try {
    if (location.protocol === "file:") localStorage.setItem(keeper, text);
    else document.cookie = `${keeper}=${encodeURIComponent(text)}; path=/; max-age=31536000; samesite=strict`;
  } catch {
    /* then it is as it was the next time */
  }
}

// edge is what sizes a pane by pointer or arrow keys, and folds it by Enter or a double click. grows is 1 where the
// pane lies before it, -1 where it lies behind; sized is told the size in pixels.
export function edge({ label, key, across, grows, least, size, sized, folds }) {
  const limit = () => (across ? innerHeight : innerWidth) * 0.7,
    set = px => {
      const to = Math.round(Math.max(least, Math.min(px, limit())));
      setUp(key, to);
      sized(to);
      show();
    };
  const e = h("div", {
    class: "edge" + (across ? " across" : ""),
    role: "separator",
    tabindex: 0,
    "aria-label": label,
    "aria-orientation": across ? "horizontal" : "vertical",
    title: "drag, or arrow keys; Enter folds",
  });
  const show = () => {
    e.setAttribute("aria-valuenow", Math.round(size()));
    e.setAttribute("aria-valuemin", least);
    e.setAttribute("aria-valuemax", Math.max(least, Math.round(limit())));
  };
  let from = null;
  e.addEventListener("pointerdown", p => {
    from = { at: across ? p.clientY : p.clientX, size: size() };
    e.setPointerCapture(p.pointerId);
    p.preventDefault();
    e.focus();
  });
  e.addEventListener("pointermove", p => {
    const by = from && (across ? p.clientY : p.clientX) - from.at;
    if (from && Math.abs(by) > 2) set(from.size + grows * by);
  });
  for (const end of ["pointerup", "pointercancel"]) e.addEventListener(end, () => (from = null));
  e.addEventListener("dblclick", folds);
  e.addEventListener("focus", show);
  e.addEventListener("keydown", k => {
    const by = across ? { ArrowUp: -24, ArrowDown: 24 }[k.key] : { ArrowLeft: -24, ArrowRight: 24 }[k.key];
    if (k.key === "Enter") folds();
    else if (by) set(size() + grows * by);
    else return;
    k.preventDefault();
    k.stopPropagation();
  });
  if (setting(key)) sized(setting(key));
  show();
  return e;
}

const order = ["list", "middle", "side"];

// Bench is the three panes. A narrow screen shows one of them, and a bar below to choose it.
export class Bench {
  constructor() {
    this.list = h("aside", { class: "pane list", "aria-label": "scenarios" });
    this.middle = h("main", { class: "pane middle" });
    this.side = h("aside", { class: "pane side", "aria-label": "finding and entry" });
    const side = (pane, key, label, grows) =>
      edge({
        label,
        key,
        grows,
        least: 200,
        size: () => pane.getBoundingClientRect().width,
        sized: px => this.element.style.setProperty("--" + key, px + "px"),
        folds: () => this.fold(key, !this.folded(key)),
      });
    this.element = h("div", { class: "bench" });
    fill(
      this.element,
      this.list,
      side(this.list, "list", "width of the list of scenarios", 1),
      this.middle,
      side(this.side, "side", "width of the pane of the finding", -1),
      this.side,
    );
    this.bar = h("nav", { class: "below", "aria-label": "panes" });
    this.folders = Object.fromEntries(
      [
        ["list", "◧", "list of scenarios"],
        ["side", "◨", "finding and entry"],
      ].map(([key, sign, label]) => [
        key,
        button(sign, () => this.fold(key, !this.folded(key)), { class: "folder", title: label, "aria-label": label }),
      ]),
    );
    addEventListener("resize", () => this.settle());
  }
  // folded says whether a pane is; the list is at first where there is little room and a transcript to show.
  folded(key) {
    const set = setting("fold " + key);
    return set === undefined ? key === "list" && this.open && innerWidth < 1180 : set;
  }
  fold(key, on) {
    setUp("fold " + key, on);
    this.settle();
  }
  // has says what is in the middle and whether there is something beside it.
  has(names, side) {
    Object.assign(this, { names, open: side });
    this.settle();
  }
  see(pane) {
    this.seen = pane;
    this.settle();
  }
  settle() {
    if (!this.names) return;
    if (!this.open && this.seen === "side") this.seen = "middle";
    this.element.classList.toggle("alone", !this.open);
    for (const key of ["list", "side"]) {
      const off = this.folded(key) || (key === "side" && !this.open);
      this.element.classList.toggle("no-" + key, off);
      this.folders[key].setAttribute("aria-pressed", !off);
      this.folders[key].hidden = key === "side" && !this.open;
    }
    this.element.dataset.seen = this.seen || "list";
    fill(
      this.bar,
      order
        .filter(p => p !== "side" || this.open)
        .map(p => button(this.names[p], () => this.see(p), { "aria-pressed": p === (this.seen || "list") })),
    );
  }
}
