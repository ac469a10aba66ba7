import { h, fill, count, lasting, parsed } from "./dom.js";

// The state is what was so at the selected moment: folded from all entries up to it.
export class State {
  constructor({ trace, link }) {
    Object.assign(this, { trace, link });
    this.element = h("section", { class: "state-view", "aria-label": "state at the selected moment", tabindex: 0 });
  }
  async show(i) {
    const t = this.trace,
      at = i < 0 ? t.n - 1 : i;
    this.at = at;
    const open = [],
      sessions = new Map(),
      calls = [],
      special = [];
    let processes = 0,
      turns = 0;
    const session = k => {
      const s = t.name("session", k);
      if (s && !sessions.has(s)) sessions.set(s, { name: t.sessionName(k), since: k, turn: -1, turns: 0, mode: "" });
      return sessions.get(s);
    };
    // What an entry means here goes by its kind and its label, which are numbers of names.
    const kinds = t.names.map(n =>
      ["request", "started", "exit"].includes(n)
        ? n
        : /^(gate|gate-released|model-request|model-done|model-aborted|model-fault|term-started|term-exit)$/.test(n)
          ? "special"
          : "",
    );
    const tells = t.names.map(n => /^(tool_call|tool_call_update|current_mode_update|plan)$/.test(n)),
      known = new Set();
    for (let k = 0; k <= at; k++) {
      if (!known.has(t.session[k])) {
        known.add(t.session[k]);
        session(k);
      }
      if (tells[t.label[k]]) {
        calls.push(k);
        continue;
      }
      switch (kinds[t.kind[k]]) {
        case "request": {
          const s = session(k),
            answer = t.answer(k),
            over = answer && answer <= at;
          if (!over) open.push(k);
          if (t.name("method", k) === "session/prompt" && s) {
            s.turns++;
            turns++;
            s.turn = over ? -1 : k;
            if (over) s.ended = answer;
          }
          break;
        }
        case "started":
          processes++;
          break;
        case "exit":
          processes--;
          break;
        case "special":
          special.push(k);
      }
    }
    const last = 3000,
      few = calls.slice(-last),
      other = special.slice(-last);
    const rows = await t.rows([...few, ...other]);
    if (this.at !== at) return;
    const tools = new Map(),
      gates = new Map(),
      models = new Map(),
      terminals = new Map();
    few.forEach((k, n) => {
      const u = ((parsed(rows[n].raw) || {}).params || {}).update || {},
        s = session(k);
      if (u.sessionUpdate === "current_mode_update" && s) s.mode = u.currentModeId;
      if (!u.toolCallId) return;
      const c = tools.get(t.name("session", k) + u.toolCallId) || { first: k, session: t.sessionName(k) };
      tools.set(
        t.name("session", k) + u.toolCallId,
        Object.assign(c, {
          last: k,
          title: u.title || c.title,
          status: u.status || c.status || "pending",
          sort: u.kind || c.sort,
        }),
      );
    });
    other.forEach((k, n) => {
      const m = parsed(rows[few.length + n].raw) || {};
      switch (t.name("kind", k)) {
        case "gate":
          gates.set(m.n + " " + m.gate, [k, m.gate]);
          break;
        case "gate-released":
          for (const [key, [, name]] of gates)
            if (name === m.gate) {
              gates.delete(key);
              break;
            }
          break;
        case "model-request":
          models.set(m.n, [k, m.user || m.model || ""]);
          break;
        case "model-done":
        case "model-aborted":
        case "model-fault":
          models.delete(m.n);
          for (const key of gates.keys()) if (key.startsWith(m.n + " ")) gates.delete(key);
          break;
        case "term-started":
          terminals.set(m.terminal, [k, [m.command, ...(m.args || [])].join(" ")]);
          break;
        case "term-exit":
          terminals.delete(m.terminal);
      }
    });
    const go = k => h("a", { href: this.link(k) }, "#" + (k + 1)),
      since = k => h("span", { class: "dim" }, " for " + lasting(t.at[at] - t.at[k]));
    const block = (title, list, none) =>
      h(
        "section",
        { class: "block" },
        h("h3", {}, title, " ", h("span", { class: "dim" }, String(list.length || ""))),
        list.length ? h("ul", {}, list) : h("p", { class: "dim" }, none),
      );
    fill(
      this.element,
      h(
        "p",
        { class: "lead" },
        `After #${at + 1}, ${lasting(t.at[at] || 0)} into the session: ` +
          `${count(Math.max(0, processes), "process", "processes")}, ${count(sessions.size, "session")}, ` +
          `${count(turns, "turn")} so far.`,
      ),
      h(
        "div",
        { class: "blocks" },
        block(
          "Sessions",
          [...sessions.values()]
            .slice(0, 200)
            .map(s =>
              h(
                "li",
                {},
                h("b", {}, s.name),
                s.mode && " mode " + s.mode,
                s.turn >= 0
                  ? [" in a turn ", go(s.turn), since(s.turn)]
                  : s.turns
                    ? [" idle, the last turn ended at ", go(s.ended)]
                    : " no turn yet",
              ),
            ),
          "none is open",
        ),
        block(
          "Open requests",
          open
            .slice(-200)
            .map(k =>
              h(
                "li",
                {},
                go(k),
                " ",
                t.name("method", k),
                h("span", { class: "dim" }, " of the " + t.name("source", k)),
                since(k),
              ),
            ),
          "every request has its answer",
        ),
        block(
          "Tool calls",
          [...tools.values()].map(c =>
            h(
              "li",
              {},
              go(c.first),
              " ",
              c.title || c.sort || "",
              " ",
              h("a", { class: "state " + c.status, href: this.link(c.last) }, c.status),
            ),
          ),
          "none",
        ),
        block(
          "Model",
          [
            ...[...models.values()].map(([k, user]) =>
              h("li", {}, go(k), " answers ", h("q", {}, user.slice(0, 80)), since(k)),
            ),
            ...[...gates.values()].map(([k, name]) =>
              h("li", {}, go(k), " is held at gate ", h("b", {}, name), since(k)),
            ),
          ],
          "no request is being answered",
        ),
        block(
          "Terminals",
          [...terminals.values()].map(([k, command]) => h("li", {}, go(k), " ", h("code", {}, command), since(k))),
          "none runs",
        ),
      ),
    );
  }
}
