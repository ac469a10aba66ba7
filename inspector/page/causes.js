import { parsed } from "./dom.js";

// Causes are what follows from what, as far as the log proves it: by the id of a request, a call, a terminal or a
// gate, by the same text in the same place, or because within one turn of one session only one thing can be meant.
// What the log leaves open has no cause.

// links finds the causes within a row of entries, as from, to (indexes) and why. An entry has i, source, kind, method,
// label, session, ref (the index of what it completes, -1 for nothing), origin, raw and, if raw is JSON, message.
export function links(entries) {
  const found = new Links();
  for (const e of entries) found.note(e);
  return found.list;
}

const endOfReply = /^model-(done|aborted|fault)$/;
const prompts = ["session/prompt", "run"];
const isCall = e =>
  e.source === "agent" &&
  (/^tool_call(_update|_content_chunk)?$/.test(e.label) ||
    e.method === "session/request_permission" ||
    /^TOOL_CALL_/.test(e.method));
const sorted = v =>
  v === null || typeof v !== "object"
    ? v
    : Array.isArray(v)
      ? v.map(sorted)
      : Object.fromEntries(
          Object.keys(v)
            .sort()
            .map(k => [k, sorted(v[k])]),
        );
const same = (a, b) => a !== undefined && b !== undefined && JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
const numbered = (raw, key) => Number((new RegExp(`^\\{"${key}":(\\d+)`).exec(raw) || [])[1]); // also of what is cut

class Links {
  constructor() {
    Object.assign(this, {
      list: [],
      known: new Set(),
      turns: new Map(),
      requests: new Map(),
      terminals: new Map(),
      gates: new Map(),
      replies: new Map(),
      input: new Map(),
    });
  }
  put(from, to, why) {
    const key = from + " " + to;
    if (from === undefined || from < 0 || from >= to || this.known.has(key)) return;
    this.known.add(key);
    this.list.push({ from, to, why });
  }
  note(e) {
    const m = e.message || {};
    if (["response", "written", "ended"].includes(e.kind))
      this.put(
        e.ref,
        e.i,
        e.kind === "response"
          ? "request and answer"
          : e.kind === "ended"
            ? "request and the end of its answer"
            : "frame and the end of its write",
      );
    if (e.source === "model") this.model(e, m);
    else if (e.source === "terminal") this.terminal(e, m);
    else if (e.source === "process") this.process(e);
    else if (e.kind === "request" && prompts.includes(e.method)) this.begin(e);
    else if (e.source === "editor" && e.kind === "notification") this.cancel(e, m);
    if (isCall(e)) this.call(e, m);
    if (e.kind === "request") this.asked(e, m);
    if (e.kind === "response") this.answer(e, m);
    if (e.source === "agent") {
      this.says(e, m);
      this.ends(e, m);
    }
  }

  begin(e) {
    const before = this.turns.get(e.session);
    // Which of several prompts is worked on is not told.
    if (before && !before.over) return Object.assign(before, { prompt: undefined });
    this.turns.set(e.session, { prompt: e.i, over: false, replies: [], tools: [], calls: new Map(), results: [] });
  }
  ends(e, m) {
    const t = this.turns.get(e.session);
    if (!t) return;
    if (e.method === "RUN_STARTED") this.put(e.ref, e.i, "the run that begins");
    const update = (m.params || {}).update || {},
      result = m.result || {};
    const stop =
      e.method === "session/prompt" && e.kind === "response"
        ? m.error
          ? "error"
          : result.stopReason
        : update.state === "idle"
          ? update.stopReason || "idle"
          : /^RUN_(FINISHED|ERROR)$/.test(e.method)
            ? e.method
            : undefined;
    if (e.kind === "ended") {
      this.put(t.last, e.i, "the last event of the run");
      if (m.end === "hung up") t.cancel = e.i;
      t.over = true;
    }
    if (stop === undefined || t.over) return;
    if (e.method !== "session/prompt") this.put(t.prompt, e.i, "the turn ends");
    if (stop === "cancelled") this.put(t.cancel, e.i, "the cancelled turn ends");
    const reply = t.replies.at(-1);
    if (reply && reply.end !== undefined && !reply.askedTool)
      this.put(reply.end, e.i, "after the last reply of the turn");
    ((t.over = true), (t.last = e.i));
  }
  cancel(e, m) {
    const id = (m.params || {}).requestId,
      t = this.turns.get(e.session);
    if (e.method === "session/cancel" && t && !t.over) {
      t.cancel = e.i;
      for (const r of this.requests.values())
        if (r.session === e.session && r.source === "agent" && !r.answered) r.cancel = e.i;
    } else if (id !== undefined) {
      for (const [i, r] of this.requests)
        if (r.source === e.source && !r.answered && r.id === id) {
          r.cancelled = e.i;
          const own = this.turns.get(r.session);
          if (own && own.prompt === i) own.cancel = e.i;
        }
    }
  }
  asked(e, m) {
    const r = { i: e.i, source: e.source, session: e.session, method: e.method, id: m.id, params: m.params || {} };
    this.requests.set(e.i, r);
    if (e.source !== "agent") return;
    const t = this.terminals.get(r.params.terminalId);
    if (t) this.put(t.created, e.i, "the same terminal");
    r.call = (t || {}).call;
    if (/permission/.test(e.method)) r.call = this.mentioned;
    else if (!t && /^(fs|terminal)\//.test(e.method)) this.runs(e, r);
  }
  // runs finds the call that a request for a file or a terminal belongs to.
  runs(e, r) {
    const t = this.turns.get(e.session),
      running = t ? [...t.calls.values()].filter(c => !c.done && !c.waits) : [];
    const named = running.filter(c => r.params.path && c.paths.has(r.params.path)),
      is = named.length === 1 ? named : running;
    if (is.length !== 1) return;
    r.call = is[0];
    this.put(is[0].last, e.i, named.length === 1 ? "the call of the same path" : "the only call that runs");
  }
  answer(e, m) {
    const r = this.requests.get(e.ref);
    if (!r || r.answered) return;
    r.answered = true;
    this.put(r.cancelled, e.i, "the request that was cancelled");
    if (((m.result || {}).outcome || {}).outcome === "cancelled" || (m.result || {}).action === "cancel")
      this.put(r.cancel, e.i, "asked in the turn that was cancelled");
    if (r.method === "terminal/create" && (m.result || {}).terminalId) {
      const t = this.terminals.get(m.result.terminalId) || {};
      this.put(r.i, t.started, "the terminal that it starts");
      this.put(t.started, e.i, "the terminal that it names");
      this.terminals.set(m.result.terminalId, Object.assign(t, { created: e.i, call: r.call }));
    }
    if (r.method === "terminal/wait_for_exit")
      this.put((this.terminals.get(r.params.terminalId) || {}).exit, e.i, "the exit that it waits for");
    if (r.call) {
      r.call.answer = e.i;
      r.call.waits = false;
    }
  }
  terminal(e, m) {
    const t = this.terminals.get(m.terminal) || {};
    this.terminals.set(m.terminal, t);
    if (e.kind === "term-started") {
      t.started = e.i;
      return;
    }
    const method = { "term-exit": "terminal/kill", "term-released": "terminal/release" }[e.kind];
    const by =
      method &&
      [...this.requests.values()]
        .filter(
          r =>
            !r.answered &&
            r.params.terminalId === m.terminal &&
            (r.method === method || r.method === "terminal/release"),
        )
        .at(-1);
    if (by) this.put(by.i, e.i, e.kind === "term-exit" ? "the terminal that it ends" : "the terminal that it releases");
    else this.put(t.started, e.i, "the same terminal");
    if (e.kind === "term-exit") t.exit = e.i;
  }
  process(e) {
    if (e.kind === "stdin-closed" || e.kind === "signal") this.input.set(e.origin, e.i);
    else if (e.kind === "exit") this.put(this.input.get(e.origin), e.i, "the process that was asked to end");
  }

  // call notes what an agent says of a tool call.
  call(e, m) {
    const p = m.params || {},
      u = p.update || p.toolCall || (p.subject || {}).toolCall || m,
      id = u.toolCallId,
      t = this.turns.get(e.session);
    this.mentioned = undefined;
    if (!id || !t) return;
    const c = t.calls.get(id) || { paths: new Set() },
      isNew = c.last === undefined;
    t.calls.set(id, c);
    if (!isNew) this.put(c.last, e.i, "the same tool call");
    const args = e.method === "TOOL_CALL_ARGS" ? parsed((c.text = (c.text || "") + m.delta)) : u.rawInput;
    if (c.from === undefined) this.wanted(e.i, t, c, args, isNew);
    if (c.answer !== undefined) this.put(c.answer, e.i, "the call goes on");
    c.answer = undefined;
    for (const part of Array.isArray(u.content) ? u.content : []) {
      if (part && part.path) c.paths.add(part.path);
      const its = part && this.terminals.get(part.terminalId);
      if (its) this.put(its.created, e.i, "the same terminal");
    }
    for (const l of [...(u.locations || []), u.rawInput || {}]) if (l && l.path) c.paths.add(l.path);
    if (/permission/.test(e.method)) c.waits = true;
    c.last = e.i;
    const was = c.done;
    c.done = /^(completed|failed|cancelled)$/.test(u.status || "") || e.method === "TOOL_CALL_RESULT" || Boolean(was);
    if (c.done && !was) t.results.push(e.i);
    this.mentioned = c;
  }
  // wanted finds the part of a reply that asked for a call: by its arguments, or where only one can be it.
  wanted(i, t, c, args, isNew) {
    const left = t.tools.filter(x => !x.taken),
      like = left.filter(x => same(x.args, args)),
      is = like.length ? like : args === undefined && isNew ? left : [];
    if (is.length !== 1) return;
    ((is[0].taken = true), (c.from = is[0].i));
    this.put(is[0].i, i, like.length ? "the same arguments" : "the only call that was asked for");
  }

  model(e, m) {
    const n = numbered(e.raw, "n"),
      t = this.turns.get(e.session);
    if (e.kind === "gate" || e.kind === "gate-released") return this.gate(e, m, n);
    if (e.kind === "model-request") {
      const r = {
        i: e.i,
        origin: e.i,
        turn: t,
        said: { text: "", thinking: "" },
        pieces: { text: [], thinking: [] },
        carried: { text: 0, thinking: 0 },
        more: "",
      };
      this.replies.set(n, r);
      if (!t) return;
      const before = t.replies.at(-1);
      if (!before) this.put(t.prompt, e.i, "the first request of the turn");
      else if (/"results":\[/.test(e.raw) && t.results.length) {
        for (const i of t.results) this.put(i, e.i, "the result that the model is given");
        t.results = [];
      } else if (before.failed) this.put(before.end, e.i, "asked again");
      t.replies.push(r);
      return;
    }
    const r = this.replies.get(n);
    if (!r) return;
    if (e.kind === "model-answer") {
      this.put(r.i, e.i, "what is said to the request");
      r.origin = e.i;
      return;
    }
    if (e.kind === "model-chunk") {
      this.put(r.origin, e.i, "a piece of the reply");
      this.piece(e, m, r);
    } else if (endOfReply.test(e.kind)) {
      this.put(r.origin, e.i, "the end of the reply");
      if (e.kind === "model-aborted" && r.turn) this.put(r.turn.cancel, e.i, "aborted after the cancel");
      ((r.end = e.i), (r.failed = e.kind === "model-fault"));
    }
    if (r.let !== undefined) {
      this.put(r.let, e.i, "let go on");
      r.let = undefined;
    }
  }
  // piece takes in a chunk, or several that left together.
  piece(e, m, r) {
    for (const data of [m.data].flat()) {
      if (m.says === "tool" && r.turn) {
        r.more = (m.step === r.step ? r.more : "") + data;
        ((r.step = m.step), (r.askedTool = true));
        const args = parsed(r.more);
        if (args === undefined) continue;
        r.turn.tools.push({ i: e.i, args });
        r.more = "";
      } else if (r.said[m.says] !== undefined) {
        const from = r.said[m.says].length;
        r.said[m.says] += data;
        r.pieces[m.says].push({ i: e.i, from, to: r.said[m.says].length });
      }
    }
  }
  gate(e, m, n) {
    const held = this.gates.get(m.gate) || [];
    this.gates.set(m.gate, held);
    const r = this.replies.get(n);
    if (e.kind === "gate") {
      if (r) this.put(r.origin, e.i, "a gate in the reply");
      held.push({ i: e.i, n });
      return;
    }
    for (const g of held) {
      this.put(g.i, e.i, "the gate that is released");
      const of = this.replies.get(g.n);
      if (of && of.end === undefined) of.let = e.i;
    }
    this.gates.delete(m.gate);
  }

  // says finds the pieces of a reply whose text a message of the agent carries: the same, in the same place.
  says(e, m) {
    const u = (m.params || {}).update || {},
      t = this.turns.get(e.session);
    const kind = {
      agent_message_chunk: "text",
      agent_thought_chunk: "thinking",
      TEXT_MESSAGE_CONTENT: "text",
      TEXT_MESSAGE_CHUNK: "text",
      REASONING_MESSAGE_CONTENT: "thinking",
      REASONING_MESSAGE_CHUNK: "thinking",
      THINKING_TEXT_MESSAGE_CONTENT: "thinking",
    }[e.label];
    const text = kind && (u.content ? u.content.text : m.delta);
    if (!t || typeof text !== "string" || text === "") return;
    const fits = t.replies.filter(r => r.said[kind].startsWith(text, r.carried[kind]));
    if (fits.length !== 1) return;
    const r = fits[0],
      from = r.carried[kind],
      to = from + text.length;
    for (const p of r.pieces[kind]) if (p.from < to && p.to > from) this.put(p.i, e.i, "the same text");
    r.carried[kind] = to;
  }
}

// How far before and after an entry its turn is read, up to the next thousand; and what says nothing of causes.
const stride = 1000;
const mute = ["stderr", "note"];

// Causes finds the causes of entries of a trace, for which it reads the turn that one lies in.
export class Causes {
  constructor(trace) {
    this.trace = trace;
  }
  // stretch is the turn that an entry lies in, with what follows up to the next one of its session; of an entry
  // without a session up to the next of any. cut is whether there is more of it.
  stretch(i) {
    const t = this.trace,
      least = Math.max(0, Math.floor((i - 5 * stride) / stride) * stride),
      most = Math.min(t.n, Math.ceil((i + 1) / stride + 1) * stride);
    const begins = k =>
      t.name("kind", k) === "request" &&
      prompts.includes(t.name("method", k)) &&
      (!t.session[i] || t.session[k] === t.session[i]);
    let from = i,
      to = i + 1;
    while (from > least && !begins(from)) from--;
    while (to < most && !begins(to)) to++;
    return { from, to, cut: (from > 0 && !begins(from)) || (to < t.n && !begins(to)) };
  }
  // of tells what an entry follows from, what follows from it, and in chain all that is before and behind these.
  async of(i) {
    const { from, to, cut } = this.stretch(i),
      key = [from, to, this.trace.generation].join();
    if (this.key !== key) ((this.key = key), (this.found = this.read(from, to)));
    const t = this.trace,
      all = [...(await this.found)],
      answers = k => ["response", "written", "ended"].includes(t.name("kind", k));
    // What an entry answers may be farther away.
    for (const [a, b] of [
      [t.ref[i] - 1, i],
      [i, t.answer(i)],
    ])
      if (a >= 0 && b > a && answers(b) && !all.some(l => l.from === a && l.to === b))
        all.push({ from: a, to: b, why: "request and answer" });
    const before = all.filter(l => l.to === i),
      after = all.filter(l => l.from === i),
      chain = new Set();
    for (const [list, end, start] of [
      [before, "from", "to"],
      [after, "to", "from"],
    ]) {
      const seen = new Set([i]);
      for (const next = list.map(l => l[end]); next.length;) {
        const at = next.pop();
        if (seen.has(at)) continue;
        seen.add(at);
        for (const l of all)
          if (l[start] === at) {
            chain.add(l);
            next.push(l[end]);
          }
      }
    }
    return { before, after, chain: [...chain], cut };
  }
  async read(from, to) {
    const t = this.trace,
      list = [],
      sessions = t.sessions(),
      only = sessions.length === 1 ? sessions[0] : "";
    for (let i = from; i < to; i++) if (!mute.includes(t.name("source", i))) list.push(i);
    const rows = await t.rows(list);
    return links(
      list.map((i, k) => ({
        i,
        source: t.name("source", i),
        kind: t.name("kind", i),
        method: t.name("method", i),
        label: t.name("label", i),
        session: t.name("session", i) || only,
        ref: t.ref[i] - 1,
        origin: t.origin[i],
        raw: rows[k].raw,
        message: parsed(rows[k].raw),
      })),
    );
  }
}
