import { h, fill, button, parsed } from "./dom.js";

// A request is composed by hand of what its schema knows: what it must have is there, the rest is put in by a click.
const ofAgents = /^(fs|terminal|mcp|elicitation)\/|request_permission|session\/update/; // what only an agent sends

export class Compose {
  // area holds the message, as text; known are values of members, such as the id of the session.
  constructor({ area, fields, known, next }) {
    Object.assign(this, { area, fields, known, next });
    this.method = h("select", { "aria-label": "method of the request", onchange: () => this.take() });
    this.parts = h("div", { class: "parts" });
    this.said = h("div", { class: "about" });
    this.element = h("div", { class: "compose" }, h("label", {}, "request ", this.method), this.parts, this.said);
  }
  // open lists the methods, when it is looked at for the first time.
  async open() {
    if (this.table) return;
    this.table = await this.fields();
    const all = Object.keys(this.table.calls)
      .filter(m => !ofAgents.test(m))
      .sort();
    fill(
      this.method,
      h("option", { value: "" }, "choose …"),
      all.map(m => h("option", { value: m }, m)),
    );
  }
  take() {
    const method = this.method.value;
    fill(this.said);
    if (!method) return fill(this.parts);
    const [params, result] = this.table.calls[method],
      id = result ? { id: "by-hand-" + this.next() } : {};
    this.write({ jsonrpc: "2.0", ...id, method, params: params ? this.table.example(params, this.known()) : {} });
    const members = params ? this.table.members(params) : [];
    fill(
      this.parts,
      members.length > 0 &&
        h(
          "dl",
          {},
          members.map(f => {
            const tell = () => fill(this.said, this.table.describe(method, undefined, ["params", f.name]));
            return [
              h(
                "dt",
                { onmouseenter: tell },
                f.optional ? button("+ " + f.name, () => this.put(f), { onfocus: tell }) : f.name,
              ),
              h("dd", { onmouseenter: tell }, h("code", {}, f.type), h("span", { class: "dim" }, this.about(f))),
            ];
          }),
        ),
    );
  }
  about(f) {
    const type = this.table.types[f.type.replace(/\|null$|\[\+?\]|\{\}/g, "")] || {};
    return [
      f.optional ? "" : " · required",
      f.unstable ? " · unstable" : "",
      type.values ? " · " + type.values.join(", ") : "",
    ].join("");
  }
  // put adds a member to the message.
  put(f) {
    const message = parsed(this.area.value);
    if (!message) return;
    message.params = { ...message.params, [f.name]: this.known()[f.name] ?? this.table.example(f.type, this.known()) };
    this.write(message);
  }
  write(message) {
    this.area.value = JSON.stringify(message, null, 2);
    this.area.rows = Math.min(24, this.area.value.split("\n").length);
  }
}
