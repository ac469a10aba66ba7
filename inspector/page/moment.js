import { h, fill, lasting, parsed } from "./dom.js";
import { spanKinds } from "./spans.js";
import { fold, card } from "./conversation.js";

// The moment is what was so at the selected entry, in a few lines: what the model had said, what held it,
// who was alive.
const pieces = 300; // pieces of a reply that are read
const longest = 280; // letters of it that are shown

// said is what the model has said in its reply, up to an entry.
async function said(t, from, upTo) {
  const list = [];
  for (let k = upTo; k > from && list.length < pieces; k--) if (t.name("kind", k) === "model-chunk") list.unshift(k);
  const rows = await t.rows(list);
  let text = "";
  for (const row of rows) {
    const m = parsed(row.raw) || {};
    for (const data of [m.data].flat()) if (typeof data === "string" && m.says !== "tool") text += data;
  }
  return text.length > longest ? "… " + text.slice(-longest) : text;
}

// call is the tool call that an entry is about, as the conversation shows it, of the entries around.
const around = 2000;
async function call(t, i) {
  const { params, ...plain } = parsed((await t.rows([i]))[0].raw) || {},
    m = params || plain,
    id = (m.update || m.toolCall || m).toolCallId,
    list = [];
  if (!id) return null;
  for (let k = Math.max(0, i - around); k < Math.min(t.n, i + around); k++)
    if (/^tool_?call/i.test(t.name("label", k)) && t.session[k] === t.session[i]) list.push(k);
  return fold(t, list, await t.rows(list)).find(item => item.id === id);
}

export class Moment {
  constructor({ trace, link, spans }) {
    Object.assign(this, { trace, link, spans });
    this.element = h("section", { class: "moment", "aria-label": "at that moment" });
  }
  // reply is the last request to the model before an entry, of its session if it has one.
  reply(i) {
    const t = this.trace,
      first = Math.max(0, i - 20000);
    for (let k = i; k >= first; k--)
      if (t.name("kind", k) === "model-request" && (!t.session[i] || t.session[k] === t.session[i])) return k;
    return -1;
  }
  async show(i) {
    this.at = i;
    const t = this.trace;
    if (i < 0 || i >= t.n) return fill(this.element);
    const go = k => h("a", { href: this.link(k) }, "#" + (k + 1)),
      since = k => [" since ", go(k), h("span", { class: "dim" }, " (" + lasting(t.at[i] - t.at[k]) + ")")],
      alive = [],
      held = [];
    this.spans.within(i, i, s => {
      const from = this.spans.from[s],
        kind = spanKinds[this.spans.kind[s]];
      if (from > i || (!this.spans.isOpen(s) && this.spans.to[s] < i)) return;
      if (kind === "process" && alive.length < 8) alive.push([from, "agent process " + t.origin[from]]);
      if (kind === "terminal" && t.name("source", from) === "terminal" && alive.length < 8)
        alive.push([from, "terminal"]);
      if (kind === "gate" && held.length < 4) held.push(from);
    });
    const asked = this.reply(i),
      [words, gates, tool] = [asked < 0 ? "" : await said(t, asked, i), await t.rows(held), await call(t, i)];
    if (this.at !== i) return;
    fill(
      this.element,
      h("h2", {}, "At that moment"),
      h(
        "dl",
        {},
        asked >= 0 && [
          h("dt", {}, "model"),
          h("dd", {}, words ? ["had said ", h("q", { class: "said" }, words)] : "had said nothing", " to ", go(asked)),
        ],
        held.map((k, n) => [
          h("dt", {}, "held"),
          h("dd", {}, "at gate ", h("b", {}, (parsed(gates[n].raw) || {}).gate || ""), since(k)),
        ]),
        h("dt", {}, "alive"),
        h("dd", {}, alive.length ? alive.map(([k, what], n) => [n ? ", " : "", what, since(k)]) : "no process"),
      ),
      tool && card(tool, this.link, t),
    );
  }
}
