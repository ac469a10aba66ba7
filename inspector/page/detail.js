import { h, fill, button, copy, lasting, clock, count, parsed, verdict } from "./dom.js";

// tree shows JSON as a tree whose branches are made when they are opened. told gets the path of what
// the pointer or the focus is on.
export function tree(value, told, path = [], open = 2) {
  const label = path.length ? h("span", { class: "key" }, path.at(-1) + ": ") : "";
  if (value === null || typeof value !== "object") {
    const kind = value === null ? "null" : typeof value;
    return h(
      "div",
      { class: "leaf", tabindex: -1, onmouseenter: () => told(path), onfocus: () => told(path) },
      label,
      h("span", { class: "j-" + kind }, kind === "string" ? JSON.stringify(value) : String(value)),
    );
  }
  const list = Array.isArray(value),
    keys = Object.keys(value);
  const short = list ? `[${keys.length}]` : `{${keys.slice(0, 4).join(", ")}${keys.length > 4 ? ", …" : ""}}`;
  const box = h(
    "details",
    { class: "branch" },
    h(
      "summary",
      { onmouseenter: () => told(path), onfocus: () => told(path) },
      label,
      h("span", { class: "dim" }, short),
    ),
  );
  let made = false;
  const make = () => {
    if (made) return;
    made = true;
    for (const k of keys.slice(0, 500)) box.append(tree(value[k], told, [...path, k], open - 1));
    if (keys.length > 500) box.append(h("div", { class: "dim" }, `and ${keys.length - 500} more`));
  };
  box.addEventListener("toggle", () => box.open && make());
  if (open > 0 || (keys.length < 4 && path.length < 4)) {
    make();
    box.open = true;
  }
  return box;
}

// step moves the focus up and down a tree with the arrow keys.
function step(e) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (!by) return;
  const all = [...e.currentTarget.querySelectorAll("summary, .leaf")].filter(x => x.checkVisibility()),
    next = all[all.indexOf(document.activeElement) + by];
  if (next) {
    next.focus();
    e.preventDefault();
    e.stopPropagation();
  }
}

function dump(bytes) {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, 16 << 10); at += 16) {
    const part = Array.from(bytes.slice(at, at + 16));
    lines.push(
      at.toString(16).padStart(6, "0") +
        "  " +
        part
          .map(b => b.toString(16).padStart(2, "0"))
          .join(" ")
          .padEnd(48) +
        "  " +
        part.map(b => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join(""),
    );
  }
  if (bytes.length > 16 << 10) lines.push(`… ${bytes.length} bytes`);
  return lines.join("\n");
}

// Detail is the pane that shows one entry: what it is, what is wrong with it, its JSON and its bytes.
export class Detail {
  // cancel makes a scenario that cancels at an entry; it is undefined where that cannot be done.
  constructor({ trace, marks, link, about, causes, cancel }) {
    Object.assign(this, { trace, marks, link, about, causes, cancel, how: "tree" });
    this.element = h(
      "section",
      { class: "detail", "aria-label": "the selected entry" },
      h("p", { class: "dim" }, "Select an entry to see all of it."),
    );
  }
  async show(i) {
    this.at = i;
    const t = this.trace;
    if (i < 0 || i >= t.n) return fill(this.element, h("p", { class: "dim" }, "Select an entry to see all of it."));
    const [row] = await t.rows([i]);
    if (this.at !== i) return;
    let raw = row.raw;
    if (row.cut) {
      raw = new TextDecoder().decode(await t.raw(i));
      if (this.at !== i) return;
    }
    const value = parsed(raw),
      where = h("output", { class: "path dim" });
    const about = h("div", { class: "about" });
    const told = async path => {
      where.textContent = path.join(".") || "the whole message";
      const fields = await this.about();
      if (where.isConnected) fill(about, fields.describe(t.name("method", i), value, path));
    };
    const body = h("div", { class: "json", onkeydown: step });
    const show = async how => {
      this.how = how;
      for (const [k, b] of Object.entries(tabs)) b.setAttribute("aria-pressed", k === how);
      if (how === "tree") fill(body, value === undefined ? h("pre", { tabindex: 0 }, raw) : tree(value, told));
      else if (how === "raw") fill(body, h("pre", { tabindex: 0 }, raw));
      else fill(body, h("pre", { tabindex: 0 }, dump(await t.raw(i))));
    };
    const tabs = Object.fromEntries(
      [
        ["tree", "JSON"],
        ["raw", "raw"],
        ["bytes", "bytes"],
      ].map(([k, text]) => [k, button(text, () => show(k))]),
    );
    const found = this.marks.get(i) || [],
      causes = h("section", { class: "causes", "aria-label": "causes" });
    fill(
      this.element,
      h(
        "h2",
        {},
        h("a", { href: this.link(i), title: "the address of this entry" }, "#" + (i + 1)),
        " ",
        t.name("label", i) || t.name("kind", i),
      ),
      h(
        "p",
        { class: "dim" },
        [
          t.name("source", i) + " · " + t.name("kind", i),
          clock(t.at[i]) + " ms",
          t.size[i] + " bytes",
          t.sessionName(i),
          t.origin[i] ? "process " + t.origin[i] : "",
        ]
          .filter(Boolean)
          .join(" · "),
      ),
      found.length > 0 &&
        h(
          "p",
          {},
          "▲ ",
          found.map((p, k) => [k ? ", " : "", verdict(p.cls), p.id || p.title]),
        ),
      causes,
      h(
        "div",
        { class: "bar" },
        Object.values(tabs),
        button("copy", () => copy(raw, "the entry")),
        this.cancel &&
          this.cancel(i) &&
          button("cancel here", this.cancel(i), {
            title: "make a scenario that goes up to this entry and cancels the turn",
          }),
      ),
      body,
      h("footer", { class: "field-of" }, where, about),
    );
    show(this.how);
    const known = await this.causes(i);
    if (this.at === i)
      fill(
        causes,
        this.follows("caused by", known.before, "from", i),
        this.follows("led to", known.after, "to", i),
        known.cut && h("p", { class: "dim" }, "More of this turn lies farther away than causes are looked for."),
      );
  }
  // follows lists what an entry follows from, or what follows from it: which frame, why that is known, how long
  // before or later.
  follows(title, list, end, i) {
    if (!list.length) return null;
    const t = this.trace,
      few = 8,
      one = l =>
        h(
          "li",
          {},
          h(
            "a",
            { href: this.link(l[end]) },
            "#" + (l[end] + 1) + " " + (t.name("label", l[end]) || t.name("kind", l[end])),
          ),
          " ",
          l.why,
          h(
            "span",
            { class: "dim" },
            " · " + lasting(Math.abs(t.at[l[end]] - t.at[i])) + (end === "from" ? " before" : " later"),
          ),
        );
    return [
      h("h3", {}, title),
      h("ul", {}, list.slice(0, few).map(one)),
      list.length > few &&
        h(
          "details",
          {},
          h("summary", {}, count(list.length - few, "more", "more")),
          h("ul", {}, list.slice(few, 500).map(one)),
        ),
    ];
  }
}
