import { h, fill, button, count, lasting, parsed } from "./dom.js";

// The conversation is what a user would have seen. fold makes its items of entries; each has the index of
// its first and last entry.
const shows = new RegExp(
  "^(session/(prompt|cancel|load|new|request_permission)|request_permission|user_message.*|agent_message.*|" +
    "agent_thought.*|tool_call.*|plan.*|current_mode_update|.*(TEXT_MESSAGE|TOOL_CALL|RUN_).*)$",
);
const asText = c =>
  !c
    ? ""
    : typeof c === "string"
      ? c
      : Array.isArray(c)
        ? c.map(asText).join("")
        : c.type === "text"
          ? c.text || ""
          : c.type === "content"
            ? asText(c.content)
            : c.uri
              ? `[${c.type} ${c.uri}]`
              : `[${c.type || "content"}]`;

export function fold(trace, list, rows) {
  const items = [],
    calls = new Map(),
    permissions = new Map();
  let last = null;
  const add = (i, item) => {
    items.push((last = { from: i, to: i, session: trace.sessionName(i), ...item }));
    return last;
  };
  const more = (i, kind, id, text) => {
    if (last && last.kind === kind && last.session === trace.sessionName(i) && (!id || !last.id || last.id === id)) {
      last.text += text;
      last.to = i;
      last.id = last.id || id;
    } else add(i, { kind, id, text });
  };
  list.forEach((i, k) => {
    const m = parsed(rows[k].raw);
    if (!m) return;
    const method = trace.name("method", i),
      kind = trace.name("kind", i),
      u = (m.params || {}).update || m.params || m;
    if (kind === "response") {
      if (method === "session/prompt")
        add(i, { kind: "end", text: m.error ? "error: " + m.error.message : (m.result || {}).stopReason || "ended" });
      else if (/request_permission/.test(method)) {
        const p = permissions.get(trace.ref[i] - 1),
          o = (m.result || {}).outcome || {};
        if (p) {
          p.chosen = o.optionId || o.outcome || (m.error ? "error: " + m.error.message : "");
          p.to = i;
        }
      }
      return;
    }
    if (method === "session/prompt") return add(i, { kind: "user", text: asText((m.params || {}).prompt) });
    if (method === "session/cancel") return add(i, { kind: "end", text: "the user cancels" });
    if (/request_permission/.test(method)) {
      const p = add(i, {
        kind: "permission",
        text: ((m.params || {}).toolCall || {}).title || "",
        options: (m.params || {}).options || [],
      });
      permissions.set(i, p);
      return p;
    }
    switch (u.sessionUpdate || u.type) {
      case "user_message_chunk":
      case "user_message":
        return more(i, "user", u.messageId, asText(u.content));
      case "agent_message_chunk":
      case "agent_message":
        return more(i, "agent", u.messageId, asText(u.content));
      case "agent_thought_chunk":
      case "agent_thought":
        return more(i, "thought", u.messageId, asText(u.content));
      case "TEXT_MESSAGE_CONTENT":
      case "TEXT_MESSAGE_CHUNK":
        return more(i, "agent", u.messageId, u.delta || "");
      case "RUN_FINISHED":
      case "RUN_ERROR":
        return add(i, { kind: "end", text: u.type + (u.message ? ": " + u.message : "") });
      case "plan":
        return add(i, { kind: "plan", entries: u.entries || [] });
      case "current_mode_update":
        return add(i, { kind: "end", text: "mode " + u.currentModeId });
      case "TOOL_CALL_START":
        u.title = u.toolCallName;
      // falls through: the rest is as in other protocols
      case "tool_call":
      case "tool_call_update": {
        const id = trace.sessionName(i) + " " + u.toolCallId,
          call = calls.get(id) || add(i, { kind: "tool", id: u.toolCallId, states: [] });
        calls.set(id, call);
        last = null;
        for (const f of ["title", "kind", "content", "locations", "rawInput"])
          if (u[f] !== undefined && u[f] !== null) call[f === "kind" ? "sort" : f] = u[f];
        if (u.status) call.states.push([u.status, i]);
        call.to = i;
      }
    }
  });
  return items;
}

function content(c) {
  if (c.type === "diff") {
    const cut = t => (t || "").split("\n");
    const old = cut(c.oldText),
      now = cut(c.newText);
    let a = 0,
      z = 0;
    while (a < old.length && a < now.length && old[a] === now[a]) a++;
    while (z < old.length - a && z < now.length - a && old.at(-1 - z) === now.at(-1 - z)) z++;
    const line = (cls, t) => h("span", { class: cls }, t || " ");
    return h(
      "figure",
      {},
      h("figcaption", { class: "mono" }, c.path),
      h(
        "pre",
        { class: "diff", tabindex: 0 },
        now.slice(Math.max(0, a - 2), a).map(t => line("", "  " + t)),
        c.oldText === null || c.oldText === undefined
          ? []
          : old.slice(a, old.length - z).map(t => line("del", "- " + t)),
        now.slice(a, now.length - z).map(t => line("add", "+ " + t)),
        now.slice(now.length - z, now.length - z + 2).map(t => line("", "  " + t)),
      ),
    );
  }
  if (c.type === "terminal") return h("p", { class: "mono" }, "terminal " + c.terminalId);
  const t = asText(c);
  return t ? h("pre", { tabindex: 0 }, t) : null;
}

export function card(item, link, trace) {
  const at = h(
    "a",
    { class: "at", href: link(item.from), title: `entries ${item.from + 1} to ${item.to + 1}` },
    lasting(trace.at[item.from]),
  );
  const box = (cls, who, ...inside) =>
    h(
      "article",
      { class: "card " + cls, "data-from": item.from, "data-to": item.to },
      h("header", {}, h("b", {}, who), h("span", { class: "dim" }, item.session), at),
      inside,
    );
  switch (item.kind) {
    case "user":
      return box("user", "user", h("p", { class: "words" }, item.text));
    case "agent":
      return box("agent", "agent", h("p", { class: "words" }, item.text));
    case "thought":
      return box("thought", "thought", h("p", { class: "words dim" }, item.text));
    case "plan":
      return box(
        "plan",
        "plan",
        h(
          "ul",
          { class: "plan" },
          item.entries.map(e =>
            h("li", { class: e.status }, { completed: "✓ ", in_progress: "▸ " }[e.status] || "○ ", e.content),
          ),
        ),
      );
    case "permission":
      return box(
        "permission",
        "permission",
        h("p", { class: "words" }, item.text),
        h(
          "div",
          { class: "bar" },
          item.options.map(o =>
            h("span", { class: "option" + (o.optionId === item.chosen ? " chosen" : "") }, o.name || o.optionId),
          ),
        ),
        h("p", { class: "dim" }, item.chosen ? "answered: " + item.chosen : "no answer"),
      );
    case "tool":
      return box(
        "tool " + (item.states.length ? item.states.at(-1)[0] : ""),
        item.sort || "tool",
        h(
          "p",
          { class: "words" },
          item.title || "",
          " ",
          item.states.map(([s, i]) => [h("a", { class: "state " + s, href: link(i) }, s), " "]),
        ),
        (item.locations || []).map(l => h("p", { class: "mono dim" }, l.path + (l.line ? ":" + l.line : ""))),
        (Array.isArray(item.content) ? item.content : []).map(content),
      );
  }
  return h(
    "p",
    { class: "milestone", "data-from": item.from, "data-to": item.to },
    h("a", { href: link(item.from) }, item.text),
    " ",
    h("span", { class: "dim" }, lasting(trace.at[item.from])),
  );
}

// Conversation shows some thousands of entries at a time, those around the selected one.
const most = 4000;
export class Conversation {
  constructor({ trace, link }) {
    Object.assign(this, { trace, link, at: 0 });
    this.element = h("section", { class: "conversation", "aria-label": "conversation", tabindex: 0 });
  }
  async show(i) {
    this.at = i;
    const t = this.trace,
      yes = t.names.map(n => shows.test(n)),
      list = [];
    for (let k = 0; k < t.n; k++) if (yes[t.label[k]] || yes[t.method[k]]) list.push(k);
    let first = 0;
    if (list.length > most) {
      const here = i < 0 ? (this.follows ? -1 : 0) : list.findIndex(k => k >= i);
      first = Math.max(0, Math.min((here < 0 ? list.length : here) - most / 2, list.length - most));
    }
    const part = list.slice(first, first + most),
      key = `${first} ${part.length} ${t.generation} ${t.n > most ? first : t.n}`;
    if (key !== this.key) {
      this.key = key;
      const rows = await t.rows(part);
      if (this.key !== key) return;
      const items = fold(t, part, rows),
        to = (k, text) =>
          button(text, () => {
            location.hash = this.link(list[k]);
          });
      fill(
        this.element,
        first > 0 && h("p", {}, to(Math.max(0, first - most / 2), `${count(first, "entry", "entries")} before`)),
        items.map(x => card(x, this.link, t)),
        !items.length && h("p", { class: "dim" }, "Nobody has said anything."),
        first + most < list.length &&
          h(
            "p",
            {},
            to(
              Math.min(list.length - 1, first + most * 1.5),
              `${count(list.length - first - most, "entry", "entries")} after`,
            ),
          ),
      );
    }
    let best = null;
    for (const e of this.element.querySelectorAll("[data-from]")) {
      const hit = i >= Number(e.dataset.from) && i <= Number(e.dataset.to);
      e.classList.toggle("at-it", hit);
      if (hit && !best) best = e;
    }
    if (best) best.scrollIntoView({ block: "nearest" });
  }
}
