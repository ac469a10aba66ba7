import { isFile, isTerminal } from "./spans.js";

// Lanes are who takes part: editor, agent, model, terminals, files and processes; and where there are several sessions,
// each of them in place of the agent.
export const actors = ["editor", "agent", "model", "terminal", "files", "process"];
const mostSessions = 8;

export class Lanes {
  constructor(trace) {
    this.trace = trace;
    this.folded = false; // sessions are shown in the lane of the one that they descend from
    this.clear();
  }
  clear() {
    Object.assign(this, { sessions: new Map(), parents: new Map(), lists: [] });
    for (let k = 0; k < actors.length + mostSessions; k++) this.lists.push({ list: new Uint32Array(64), n: 0 });
  }
  // agent is the lane of the agent in the session of an entry.
  agent(i) {
    const session = this.trace.session[i];
    if (!session) return 1;
    if (!this.sessions.has(session) && this.sessions.size < mostSessions)
      this.sessions.set(session, actors.length + this.sessions.size);
    return this.sessions.get(session) || 1;
  }
  // pair says from which lane to which an entry goes; one that goes nowhere has one lane, or none (-1).
  pair(i) {
    const t = this.trace,
      kind = t.name("kind", i),
      method = t.name("method", i),
      side = isFile(method) ? 4 : isTerminal(method) ? 3 : 0,
      agent = this.agent(i);
    switch (t.name("source", i)) {
      case "editor":
        return [kind === "written" ? 0 : side, kind === "written" ? 0 : agent];
      case "agent":
        return [agent, side];
      case "stderr":
        return [agent, agent];
      case "model":
        return kind === "model-request" || kind === "model-aborted"
          ? [agent, 2]
          : kind === "model-chunk" || kind === "model-done"
            ? [2, agent]
            : [2, 2];
      case "terminal":
        return [3, 3];
      case "process":
        return [5, 5];
    }
    return kind === "file" ? [4, 4] : [-1, -1];
  }
  note(i) {
    for (const k of new Set(this.pair(i))) {
      if (k < 0) continue;
      const l = this.lists[k];
      if (l.n === l.list.length) {
        const next = new Uint32Array(2 * l.n);
        next.set(l.list);
        l.list = next;
      }
      l.list[l.n++] = i;
    }
  }
  // families are the lanes of sessions, those of a family together where families are folded.
  families() {
    const found = new Map();
    for (const [session, lane] of this.sessions) {
      let id = this.trace.names[session];
      for (let k = 0; this.folded && this.parents.has(id) && k < mostSessions; k++) id = this.parents.get(id);
      found.set(id, [...(found.get(id) || []), lane]);
    }
    return [...found.values()];
  }
  // rows are the lanes that are shown, each with those that are shown in it.
  rows() {
    const several = this.sessions.size > 1,
      own = this.families(),
      agent = several ? [[1], ...own] : [[1, ...own.flat()]];
    return [[0], ...agent, [2], [3], [4], [5]].filter(
      lanes => (lanes[0] < 2 && !(several && lanes[0] === 1)) || lanes.some(k => this.lists[k].n),
    );
  }
  actor(k) {
    return actors[k] || "agent";
  }
  name(k) {
    if (k < actors.length) return actors[k];
    const known = this.trace.sessions(),
      called = id => "s" + (known.indexOf(id) + 1),
      id = this.trace.names[[...this.sessions].find(([, lane]) => lane === k)[0]],
      parent = this.parents.get(id);
    return called(id) + (parent ? " of " + called(parent) : "");
  }
}
