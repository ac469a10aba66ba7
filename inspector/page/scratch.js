import { h, fill, button, say, parsed } from "./dom.js";
import { act } from "./actions.js";
import { Compose } from "./compose.js";

// asLine is a message in one line, otherwise as it was typed: a line break in JSON stands outside of its texts.
const asLine = text =>
  parsed(text) === undefined
    ? text
    : text
        .split("\n")
        .map(l => l.trim())
        .join(" ");

// Scratch is the editor and the model that are played by hand.
export class Scratch {
  // shown gives the trace and the index of the selected entry, fields what the specification knows of messages.
  constructor(shown, fields) {
    const field = (label, attrs) =>
      h("label", { class: "field" }, h("span", {}, label), h("textarea", { rows: 2, spellcheck: "false", ...attrs }));
    const text = field("prompt", { id: "say" }),
      model = field("what the model says", { id: "model", placeholder: "Done.   or replies:   - - tool: read_file" }),
      raw = field("a line, sent as it is", { id: "raw" });
    const hold = h("input", { type: "checkbox", id: "hold" }),
      value = l => l.querySelector("textarea").value;
    this.edited = 0;
    this.now = h("div", { class: "bar", id: "now" });
    text.addEventListener("keydown", e => {
      if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) send();
    });
    const area = raw.querySelector("textarea"),
      take = message => {
        area.value = JSON.stringify(message, null, 2);
        area.rows = 12;
        area.focus();
      };
    const session = () => shown().trace.sessions()[0],
      folder = () => {
        const { trace } = shown();
        for (let i = 0; i < trace.n; i++)
          if (trace.name("method", i) === "session/new" && trace.name("kind", i) === "request")
            return ((parsed((trace.row(i) || {}).raw || "") || {}).params || {}).cwd;
        return undefined;
      },
      compose = new Compose({
        area,
        fields,
        next: () => ++this.edited,
        known: () => ({
          sessionId: session(),
          prompt: [{ type: "text", text: value(text) }],
          cwd: folder(),
          protocolVersion: 1,
        }),
      });
    const selected = async () => {
      const { trace, at } = shown();
      if (at < 0) return say("select an entry in the table first");
      const message = parsed((await trace.rows([at]))[0].raw);
      if (message) take(message);
    };
    const send = () => this.do({ Do: "prompt", Text: value(text), Model: value(model), Hold: hold.checked });
    this.element = h(
      "section",
      { class: "scratch", "aria-label": "scratch" },
      h("div", { class: "fields" }, text, model),
      h(
        "div",
        { class: "bar" },
        button("prompt", send, { class: "main" }),
        h("label", {}, hold, " hold the model at each step"),
        button("cancel the turn", () => this.do({ Do: "cancel" })),
      ),
      this.now,
      h(
        "details",
        { ontoggle: () => compose.open() },
        h("summary", {}, "any message, as JSON"),
        compose.element,
        raw,
        h(
          "div",
          { class: "bar" },
          button("send it", () => this.do({ Do: "raw", Text: asLine(value(raw)) })),
          button("take the prompt", () =>
            take({
              jsonrpc: "2.0",
              id: "by-hand-" + ++this.edited,
              method: "session/prompt",
              params: { sessionId: session(), prompt: [{ type: "text", text: value(text) }] },
            }),
          ),
          button("take a cancel", () =>
            take({ jsonrpc: "2.0", method: "session/cancel", params: { sessionId: session() } }),
          ),
          button("take the selected entry", selected),
        ),
      ),
    );
    this.do({});
  }
  async do(what) {
    try {
      this.show(await act("scratch", what));
    } catch (e) {
      say(e.message);
    }
  }
  refresh() {
    clearTimeout(this.due);
    this.due = setTimeout(() => this.do({}), 100);
  }
  show(now) {
    const told = JSON.stringify(now);
    if (told === this.told) return; // who is about to press one of its buttons keeps the focus
    this.told = told;
    fill(
      this.now,
      h(
        "span",
        { class: "dim" },
        now.gone ? "The agent has exited." : now.inTurn ? "A turn is going on." : "The agent waits for a prompt.",
      ),
      now.asked.map(a =>
        h(
          "span",
          { class: "asks" },
          h("b", {}, a.title || "permission"),
          " ",
          a.options.map(o => [
            button(o.name || o.id, () => this.do({ Do: "answer", Request: a.seq, Option: o.id })),
            " ",
          ]),
        ),
      ),
      now.held.map(g => button("go on: " + g, () => this.do({ Do: "release", Gate: g }))),
    );
  }
}
