import { h, fill, button, say } from "./dom.js";
import { act } from "./actions.js";

// Scratch is the editor and the model that are played by hand.
export class Scratch {
  constructor() {
    const field = (label, attrs) => h("label", { class: "field" }, h("span", {}, label), h("textarea", { rows: 2, spellcheck: "false", ...attrs }));
    const text = field("prompt", { id: "say" }), model = field("what the model says", { id: "model", placeholder: "Done.   or replies:   - - tool: read_file" }), raw = field("a line, sent as it is", { id: "raw" });
    const hold = h("input", { type: "checkbox", id: "hold" }), value = l => l.querySelector("textarea").value;
    this.now = h("div", { class: "bar", id: "now" });
    text.addEventListener("keydown", e => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) send(); });
    const send = () => this.do({ Do: "prompt", Text: value(text), Model: value(model), Hold: hold.checked });
    this.element = h("section", { class: "scratch", "aria-label": "scratch" }, h("div", { class: "fields" }, text, model),
      h("div", { class: "bar" }, button("prompt", send, { class: "main" }), h("label", {}, hold, " hold the model at each step"), button("cancel the turn", () => this.do({ Do: "cancel" }))), this.now,
      h("details", {}, h("summary", {}, "send raw JSON"), raw, h("div", { class: "bar" }, button("send it", () => this.do({ Do: "raw", Text: value(raw) })))));
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
    fill(this.now, h("span", { class: "dim" }, now.gone ? "The agent has exited." : now.inTurn ? "A turn is going on." : "The agent waits for a prompt."),
      now.asked.map(a => h("span", { class: "asks" }, h("b", {}, a.title || "permission"), " ", a.options.map(o => [button(o.name || o.id, () => this.do({ Do: "answer", Request: a.seq, Option: o.id })), " "]))),
      now.held.map(g => button("go on: " + g, () => this.do({ Do: "release", Gate: g }))));
  }
}
