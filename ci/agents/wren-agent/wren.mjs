#!/usr/bin/env node
// wren: a small coding agent for the Agent Client Protocol, version 1. Plain Node.js, no packages.
import { spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import fs from "node:fs";
import fsp from "node:fs/promises";
import os from "node:os";
import path from "node:path";

const VERSION = "0.3.0";
const env = process.env;
const BASE = (env.WREN_API_BASE || env.OPENAI_BASE_URL || "https://api.openai.com/v1").replace(/\/+$/, "");
const KEY = env.WREN_API_KEY || env.OPENAI_API_KEY || "";
const MODEL = env.WREN_MODEL || "gpt-4o-mini";
const MAX_REQUESTS = Math.max(1, Number(env.WREN_MAX_REQUESTS) || 30);
const KNOWN_WINDOWS = {
  "gpt-4o": 128000,
  "gpt-4o-mini": 128000,
  "gpt-4.1": 1047576,
  "gpt-4.1-mini": 1047576,
  "gpt-5-mini": 400000,
};
const WINDOW =
  Number(env.WREN_CONTEXT_WINDOW) > 0 ? Math.floor(Number(env.WREN_CONTEXT_WINDOW)) : KNOWN_WINDOWS[MODEL] || 0;
const STORE = path.join(env.HOME || os.homedir(), ".wren-agent", "sessions");
const PAGE = 6;

const log = (...a) => {
  try {
    process.stderr.write("wren: " + a.join(" ") + "\n");
  } catch {
    /* nobody listens */
  }
};
const isObj = v => typeof v === "object" && v !== null && !Array.isArray(v);
const sleep = (ms, signal) =>
  new Promise(ok => {
    if (signal?.aborted) return ok();
    const done = () => {
      clearTimeout(t);
      signal?.removeEventListener("abort", done);
      ok();
    };
    const t = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
const oneLine = (t, n = 80) => {
  const l = String(t).replace(/\s+/g, " ").trim();
  return l.length > n
    ? l
        .slice(0, n - 1)
        .toWellFormed()
        .replace(/\ufffd$/, "") + "…"
    : l;
};

// ------------------------------------------------------------------ JSON-RPC
class RpcErr extends Error {
  constructor(code, message, data) {
    super(message);
    this.code = code;
    this.data = data;
  }
}
class ToolFail extends Error {}
class Aborted extends Error {}
const bad = (message, data) => new RpcErr(-32602, message, data);

let gone = false; // the client closed our input
function out(msg) {
  let line = JSON.stringify(msg);
  if (/\\ud[89a-f]/.test(line)) line = JSON.stringify(msg, (k, v) => (typeof v === "string" ? v.toWellFormed() : v));
  try {
    process.stdout.write(line + "\n");
  } catch {
    /* gone */
  }
}
const note = (method, params) => out({ jsonrpc: "2.0", method, params });

let nextAsk = 0;
const asks = new Map(); // id -> {ok, no}
/** A request to the client. With `signal`, an abort waits shortly for the answer, then asks to cancel, then gives up. */
function ask(method, params, { signal, force, timeout, late } = {}) {
  if (gone) return Promise.reject(new Aborted("client is gone"));
  if (signal?.aborted && !force) return Promise.reject(new Aborted());
  const id = --nextAsk; // negative numbers, so that logs tell the two directions apart
  return new Promise((ok, no) => {
    const timers = [];
    let given = false;
    const end = (f, v) => {
      if (given) {
        if (f === ok && late) late(v);
        return;
      }
      given = true;
      timers.forEach(clearTimeout);
      signal?.removeEventListener("abort", onAbort);
      f(v);
    };
    const abandon = why => {
      if (given) return;
      given = true;
      timers.forEach(clearTimeout);
      signal?.removeEventListener("abort", onAbort);
      no(why);
    };
    const onAbort = () => {
      if (force) return;
      timers.push(setTimeout(() => note("$/cancel_request", { requestId: id }), 350));
      timers.push(setTimeout(() => abandon(new Aborted()), 1600));
    };
    if (timeout) timers.push(setTimeout(() => abandon(new Aborted("no answer in time")), timeout));
    signal?.addEventListener("abort", onAbort);
    asks.set(id, { ok: v => end(ok, v), no: e => end(no, e), drop: () => abandon(new Aborted("client is gone")) });
    out({ jsonrpc: "2.0", id, method, params });
  });
}

const methods = Object.create(null);
const notices = Object.create(null);
let inFlight = 0;

function take(line) {
  let msg;
  try {
    msg = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(line));
  } catch {
    return out({ jsonrpc: "2.0", id: null, error: { code: -32700, message: "Line is not valid JSON" } });
  }
  const idOk = v => typeof v === "string" || v === null || Number.isSafeInteger(v);
  const refuse = text =>
    out({
      jsonrpc: "2.0",
      id: isObj(msg) && "id" in msg && idOk(msg.id) ? msg.id : null,
      error: { code: -32600, message: text },
    });
  if (!isObj(msg)) return refuse("A message must be one JSON object");
  if (!("method" in msg) && "id" in msg && ("result" in msg || "error" in msg)) {
    const a = asks.get(msg.id);
    if (!a) return;
    asks.delete(msg.id);
    if ("error" in msg && msg.error !== undefined && msg.error !== null) {
      const e = isObj(msg.error) ? msg.error : {};
      a.no(
        new RpcErr(
          Number.isInteger(e.code) ? e.code : -32603,
          typeof e.message === "string" ? e.message : "The client reported an error",
          e.data,
        ),
      );
    } else a.ok(msg.result);
    return;
  }
  if (typeof msg.method !== "string") return refuse("Message has no method");
  if (!("id" in msg)) {
    // a notification is never answered
    if (msg.jsonrpc !== "2.0") return;
    try {
      if (notices[msg.method] && isObj(msg.params)) notices[msg.method](msg.params);
    } catch (e) {
      log("notification", msg.method, e?.stack);
    }
    return;
  }
  if (!idOk(msg.id)) return refuse("Request id must be a string, an integer or null");
  if (msg.jsonrpc !== "2.0") return refuse("Member jsonrpc must be 2.0");
  const { id, method } = msg;
  const fail = e => {
    if (!(e instanceof RpcErr)) {
      log(method, e?.stack || e);
      e = new RpcErr(-32603, "Internal error", { detail: oneLine(e?.message ?? e, 300) });
    }
    out({
      jsonrpc: "2.0",
      id,
      error: { code: e.code, message: oneLine(e.message, 200), ...(e.data === undefined ? {} : { data: e.data }) },
    });
  };
  if (!methods[method]) return fail(new RpcErr(-32601, "Method not found", { method }));
  if (!client && method !== "initialize") return fail(new RpcErr(-32600, "Call initialize first"));
  const params = msg.params ?? {};
  if (!isObj(params)) return fail(bad("Member params must be an object"));
  let p,
    after = [];
  try {
    p = methods[method](params, id, f => after.push(f));
  } catch (e) {
    return fail(e);
  }
  const done = r => {
    out({ jsonrpc: "2.0", id, result: r });
    for (const f of after) f();
  };
  if (!(p instanceof Promise)) return done(p);
  inFlight++;
  p.then(done, fail).finally(() => {
    inFlight--;
  });
}

// ------------------------------------------------------------------ initialize
let client = null; // what the client can do
methods.initialize = p => {
  if (!Number.isInteger(p.protocolVersion) || p.protocolVersion < 0 || p.protocolVersion > 65535)
    throw bad("protocolVersion must be an integer from 0 to 65535");
  const c = isObj(p.clientCapabilities) ? p.clientCapabilities : {};
  const on = v => isObj(v);
  client = {
    read: c.fs?.readTextFile === true,
    write: c.fs?.writeTextFile === true,
    terminal: c.terminal === true,
    bool: on(c.session?.configOptions?.boolean),
    notices: on(c.session?.notices),
  };
  return {
    protocolVersion: 1,
    agentInfo: { name: "wren", title: "Wren", version: VERSION },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: false, audio: false, embeddedContext: true },
      mcpCapabilities: { http: true, sse: false },
      sessionCapabilities: {
        list: {},
        resume: {},
        close: {},
        delete: {},
        additionalDirectories: {},
        systemPrompt: { mode: { override: {} } },
      },
    },
    authMethods: [],
  };
};
methods.authenticate = p => {
  if (typeof p.methodId !== "string") throw bad("methodId must be a string");
  throw bad("There is no such login method", { methodId: p.methodId });
};

// ------------------------------------------------------------------ sessions
const MODES = [
  { id: "careful", name: "Careful", description: "Asks before files are changed and commands are run" },
  { id: "trusting", name: "Trusting", description: "Changes files and runs commands without asking" },
  { id: "look", name: "Look only", description: "Neither changes files nor runs commands" },
];
const live = new Map();
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/;
const B32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
let lastStamp = 0;
function newId() {
  // ULID: sorts by time of making
  lastStamp = Math.max(Date.now(), lastStamp + 1);
  let t = lastStamp,
    head = "";
  for (let i = 0; i < 10; i++) {
    head = B32[t % 32] + head;
    t = Math.floor(t / 32);
  }
  return head + [...randomBytes(16)].map(b => B32[b & 31]).join("");
}
const fileOf = id => path.join(STORE, id + ".json");

class Session {
  constructor(id, cwd, extra) {
    Object.assign(this, {
      id,
      cwd,
      extra,
      mode: "careful",
      detail: "full",
      meter: true,
      title: null,
      updatedAt: new Date().toISOString(),
      prompts: 0,
      history: [],
      events: [],
      allowed: [],
      calls: 0,
      used: null,
      plan: null,
      mcp: [],
      mcpNews: [],
      system: null,
      queue: [],
      current: null,
      closing: false,
      silent: false,
      deleted: false,
      saved: false,
      kids: new Set(),
    });
  }
  save() {
    if (this.deleted) return;
    const file = fileOf(this.id);
    try {
      if (this.saved && !fs.existsSync(file)) {
        this.deleted = true;
        return;
      } // removed by another process
      fs.mkdirSync(STORE, { recursive: true, mode: 0o700 });
      const {
        id,
        cwd,
        extra,
        mode,
        detail,
        meter,
        title,
        updatedAt,
        prompts,
        history,
        events,
        allowed,
        calls,
        used,
        plan,
      } = this;
      const tmp = `${file}.${process.pid}.tmp`;
      fs.writeFileSync(
        tmp,
        JSON.stringify({
          id,
          cwd,
          extra,
          mode,
          detail,
          meter,
          title,
          updatedAt,
          prompts,
          history,
          events,
          allowed,
          calls,
          used,
          plan,
        }),
        { mode: 0o600 },
      );
      fs.renameSync(tmp, file);
      this.saved = true;
    } catch (e) {
      log("cannot save session:", e.message);
    }
  }
  static read(id) {
    if (!ID.test(id)) return null;
    try {
      const d = JSON.parse(fs.readFileSync(fileOf(id), "utf8"));
      return d && d.id === id && typeof d.cwd === "string" ? d : null;
    } catch {
      return null;
    }
  }
  tell(sessionUpdate, fields) {
    if (!this.silent) note("session/update", { sessionId: this.id, update: { sessionUpdate, ...fields } });
  }
  get roots() {
    return [this.cwd, ...this.extra];
  }
  modes() {
    return { currentModeId: this.mode, availableModes: MODES };
  }
  options() {
    const list = [
      {
        id: "conduct",
        name: "Conduct",
        description: "How freely the agent acts",
        category: "mode",
        type: "select",
        currentValue: this.mode,
        options: MODES.map(m => ({ value: m.id, name: m.name, description: m.description })),
      },
      {
        id: "detail",
        name: "Tool output",
        description: "How much of a long tool output is kept",
        category: "_wren_detail",
        type: "select",
        currentValue: this.detail,
        options: [
          { group: "usual", name: "Usual", options: [{ value: "full", name: "Up to 16000 characters" }] },
          { group: "thrifty", name: "Thrifty", options: [{ value: "brief", name: "Up to 2000 characters" }] },
        ],
      },
    ];
    if (client.bool) list.push({ id: "meter", name: "Show context use", type: "boolean", currentValue: this.meter });
    return list;
  }
  commands() {
    const list = [
      { name: "status", description: "Show folder, mode and tool servers", input: null },
      { name: "explain", description: "Explain something to a newcomer", input: { hint: "file, function or idea" } },
    ];
    if (this.mode !== "look")
      list.push({
        name: "run",
        description: "Run one shell command without the model",
        input: { hint: "command line" },
      });
    return list;
  }
  tellCommands() {
    this.tell("available_commands_update", { availableCommands: this.commands() });
  }
  tellUsage() {
    if (WINDOW && this.meter && Number.isInteger(this.used))
      this.tell("usage_update", { used: this.used, size: WINDOW });
  }
}

function absPath(v, what) {
  if (typeof v !== "string" || !path.isAbsolute(v)) throw bad(`${what} must be an absolute path`);
  return v.length > 1 ? path.normalize(v).replace(/(.)\/+$/, "$1") : v;
}
function setupParams(p, needServers) {
  const cwd = absPath(p.cwd, "cwd");
  let extra = [];
  if ("additionalDirectories" in p) {
    if (!Array.isArray(p.additionalDirectories)) throw bad("additionalDirectories must be a list");
    extra = p.additionalDirectories.map(d => absPath(d, "An entry of additionalDirectories"));
    for (const d of extra)
      try {
        fs.readdirSync(d);
      } catch {
        throw bad("An entry of additionalDirectories cannot be opened", { path: d });
      }
  }
  if (p.mcpServers === undefined ? needServers : !Array.isArray(p.mcpServers)) throw bad("mcpServers must be a list");
  const servers = (p.mcpServers ?? []).map(m => {
    const strs = v => Array.isArray(v) && v.every(x => typeof x === "string");
    const pairs = v =>
      Array.isArray(v) && v.every(x => isObj(x) && typeof x.name === "string" && typeof x.value === "string");
    if (!isObj(m) || typeof m.name !== "string") throw bad("An MCP server needs a name");
    if (m.type === "http") {
      if (typeof m.url !== "string" || !/^https?:/i.test(m.url) || !pairs(m.headers))
        throw bad("An http MCP server needs url and headers");
      return { kind: "http", name: m.name, url: m.url, headers: m.headers };
    }
    if (m.type === "sse" || m.type === "acp") throw bad("This MCP transport is not offered", { type: m.type });
    if (typeof m.command !== "string" || !m.command || !strs(m.args) || !pairs(m.env))
      throw bad("A stdio MCP server needs command, args and env");
    return { kind: "stdio", name: m.name, command: m.command, args: m.args, env: m.env };
  });
  let system = null;
  if (p.systemPrompt !== undefined && p.systemPrompt !== null) {
    const y = p.systemPrompt;
    if (!isObj(y) || (y.mode !== "append" && y.mode !== "override"))
      throw bad("systemPrompt mode must be append or override");
    if (
      !Array.isArray(y.content) ||
      !y.content.length ||
      !y.content.every(b => isObj(b) && b.type === "text" && typeof b.text === "string")
    )
      throw bad("systemPrompt takes text blocks only");
    system = { mode: y.mode, text: y.content.map(b => b.text).join("\n") };
  }
  return { cwd, extra, servers, system };
}
function idParam(p) {
  if (typeof p.sessionId !== "string") throw bad("sessionId must be a string");
  return p.sessionId;
}
const noSession = id => new RpcErr(-32002, "No such session", { sessionId: id });
function liveSession(p) {
  const s = live.get(idParam(p));
  if (!s || s.closing) throw noSession(p.sessionId);
  return s;
}
function announce(s) {
  setImmediate(() => {
    s.tellCommands();
    if (client.notices)
      for (const t of s.mcpNews.splice(0))
        s.tell("notice", { severity: "warning", title: "A tool server is missing", description: t });
  });
}

methods["session/new"] = async (p, id, after) => {
  const { cwd, extra, servers, system } = setupParams(p, true);
  const s = new Session(newId(), cwd, extra);
  s.system = system;
  await connectAll(s, servers);
  live.set(s.id, s);
  s.save();
  after(() => announce(s));
  return { sessionId: s.id, modes: s.modes(), configOptions: s.options() };
};

async function reopen(p, needServers) {
  const id = idParam(p);
  const { cwd, extra, servers, system } = setupParams(p, needServers);
  let s = live.get(id);
  if (s?.closing) {
    await s.closed;
    s = null;
  }
  if (s && (s.current || s.queue.length || s.busyOpening))
    throw new RpcErr(-32600, "The session is busy", { sessionId: id });
  if (!s) {
    const d = Session.read(id);
    if (!d) throw noSession(id);
    s = Object.assign(new Session(id, cwd, extra), d);
    s.saved = true;
    mend(s);
    live.set(id, s);
  }
  Object.assign(s, { cwd, extra, system });
  freeResources(s);
  s.busyOpening = true;
  try {
    await connectAll(s, servers);
  } finally {
    s.busyOpening = false;
  }
  if (s.closing) {
    freeResources(s);
    throw noSession(id);
  }
  return s;
}
/** A process that was killed in the middle of a turn leaves calls without results. */
function mend(s) {
  const whole = [];
  for (let i = 0; i < s.history.length; i++) {
    const m = s.history[i];
    whole.push(m);
    if (!m.tool_calls) continue;
    const due = new Set(m.tool_calls.map(c => c.id));
    while (s.history[i + 1]?.role === "tool") {
      whole.push(s.history[++i]);
      due.delete(s.history[i].tool_call_id);
    }
    for (const id of due)
      whole.push({ role: "tool", tool_call_id: id, content: "The agent was stopped before this call ended." });
  }
  s.history = whole;
  for (const e of s.events) if (e.t === "tool" && e.call.status !== "completed") e.call.status = "failed";
}
methods["session/load"] = async (p, id, after) => {
  const s = await reopen(p, true);
  replay(s);
  after(() => {
    announce(s);
    s.tellUsage();
  });
  return { modes: s.modes(), configOptions: s.options() };
};
methods["session/resume"] = async (p, id, after) => {
  const s = await reopen(p, false);
  after(() => {
    announce(s);
    s.tellUsage();
  });
  return { modes: s.modes(), configOptions: s.options() };
};
function replay(s) {
  for (const e of s.events) {
    if (e.t === "user") for (const b of e.blocks) s.tell("user_message_chunk", { content: b, messageId: e.id });
    else if (e.t === "text")
      s.tell("agent_message_chunk", { content: { type: "text", text: e.text }, messageId: e.id });
    else if (e.t === "thought")
      s.tell("agent_thought_chunk", { content: { type: "text", text: e.text }, messageId: e.id });
    else if (e.t === "tool") {
      const { past, ...c } = e.call;
      const content = (c.content ?? []).filter(x => x.type !== "terminal");
      if (past && content.length !== (c.content ?? []).length)
        content.unshift({ type: "content", content: { type: "text", text: past } });
      s.tell("tool_call", { ...c, content, status: c.status === "completed" ? "completed" : "failed" });
    }
  }
  if (s.plan) s.tell("plan", { entries: restPlan(s.plan) });
}
const restPlan = entries => entries.map(e => (e.status === "in_progress" ? { ...e, status: "pending" } : e));

methods["session/list"] = p => {
  let cwd = null,
    from = null;
  if (p.cwd !== undefined && p.cwd !== null) cwd = absPath(p.cwd, "cwd");
  if (p.cursor !== undefined && p.cursor !== null) {
    from = typeof p.cursor === "string" ? Buffer.from(p.cursor, "base64url").toString() : "";
    if (!from.startsWith("before ") || !ID.test((from = from.slice(7)))) throw bad("The cursor is not valid");
  }
  let ids = [];
  try {
    ids = fs
      .readdirSync(STORE)
      .filter(f => f.endsWith(".json"))
      .map(f => f.slice(0, -5))
      .filter(i => ID.test(i));
  } catch {
    /* none yet */
  }
  ids.sort().reverse();
  const sessions = [];
  let nextCursor;
  for (const i of ids) {
    if (from && i >= from) continue;
    const d = Session.read(i);
    if (!d || !d.prompts || (cwd && d.cwd !== cwd)) continue;
    if (sessions.length === PAGE) {
      nextCursor = Buffer.from("before " + sessions[PAGE - 1].sessionId).toString("base64url");
      break;
    }
    sessions.push({
      sessionId: i,
      cwd: d.cwd,
      ...(d.extra?.length ? { additionalDirectories: d.extra } : {}),
      ...(d.title ? { title: d.title } : {}),
      updatedAt: d.updatedAt,
    });
  }
  return { sessions, ...(nextCursor ? { nextCursor } : {}) };
};

function freeResources(s) {
  const pids = [...s.kids];
  for (const m of s.mcp.splice(0)) {
    m.close();
    if (m.kid?.pid) pids.push(m.kid.pid);
  }
  for (const pid of s.kids) hunt(pid);
  s.kids.clear();
  return pids;
}
const groupLives = pid => {
  try {
    process.kill(-pid, 0);
    return true;
  } catch {
    groups.delete(pid);
    return false;
  }
};
async function shut(s, how) {
  s.closing = true;
  const jobs = [s.current, ...s.queue].filter(Boolean);
  s.closed = (async () => {
    stopJobs(s, how);
    await Promise.all(jobs.map(j => j.done));
    await new Promise(ok => setImmediate(ok)); // their answers are out
    s.silent = true;
    const pids = freeResources(s);
    for (let i = 0; i < 50 && pids.some(groupLives); i++) await sleep(20);
    live.delete(s.id);
  })();
  await s.closed;
}
methods["session/close"] = p => {
  const id = idParam(p);
  const s = live.get(id);
  if (s?.closing) return s.closed.then(() => ({}));
  if (!s) {
    if (Session.read(id)) return {};
    throw noSession(id);
  }
  return shut(s, "cancel").then(() => ({}));
};
methods["session/delete"] = async p => {
  const id = idParam(p);
  const s = live.get(id);
  if (s) {
    s.deleted = true;
    if (s.closing) await s.closed;
    else await shut(s, "drop");
  }
  if (ID.test(id))
    try {
      fs.unlinkSync(fileOf(id));
    } catch (e) {
      if (e.code !== "ENOENT") throw e;
    }
  return {};
};

function setMode(s, mode) {
  const before = s.mode;
  s.mode = mode;
  s.save();
  return before !== mode;
}
methods["session/set_mode"] = (p, id, after) => {
  const s = liveSession(p);
  if (typeof p.modeId !== "string" || !MODES.some(m => m.id === p.modeId))
    throw bad("There is no such mode", { modeId: p.modeId });
  if (setMode(s, p.modeId))
    after(() => {
      s.tell("config_option_update", { configOptions: s.options() });
      s.tellCommands();
    });
  return {};
};
methods["session/set_config_option"] = (p, id, after) => {
  const s = liveSession(p);
  if (typeof p.configId !== "string") throw bad("configId must be a string");
  const o = s.options().find(x => x.id === p.configId);
  if (!o) throw bad("There is no such option", { configId: p.configId });
  if (o.type === "boolean") {
    if (p.type !== "boolean" || typeof p.value !== "boolean") throw bad("This option takes a boolean");
    s.meter = p.value;
    s.save();
  } else {
    const values = o.options.flatMap(x => (x.options ? x.options : [x])).map(x => x.value);
    if (p.type === "boolean" || !values.includes(p.value))
      throw bad("This option has no such value", { value: p.value });
    if (o.id === "conduct") {
      if (setMode(s, p.value))
        after(() => {
          s.tell("current_mode_update", { currentModeId: s.mode });
          s.tellCommands();
        });
    } else {
      s.detail = p.value;
      s.save();
    }
  }
  return { configOptions: s.options() };
};

// ------------------------------------------------------------------ prompts
function checkBlocks(list) {
  if (!Array.isArray(list) || !list.length) throw bad("prompt must be a list with at least one block");
  for (const b of list) {
    if (!isObj(b)) throw bad("A prompt block must be an object");
    if (b.type === "text") {
      if (typeof b.text !== "string") throw bad("A text block needs text");
    } else if (b.type === "resource_link") {
      if (typeof b.uri !== "string" || typeof b.name !== "string") throw bad("A resource_link needs name and uri");
    } else if (b.type === "resource") {
      const r = b.resource;
      if (!isObj(r) || typeof r.uri !== "string" || (typeof r.text !== "string" && typeof r.blob !== "string"))
        throw bad("A resource needs uri and text or blob");
    } else throw bad("This kind of prompt block is not offered", { type: b.type });
  }
}
function asModelText(blocks) {
  return blocks
    .map(b => {
      if (b.type === "text") return b.text;
      if (b.type === "resource_link")
        return `[Linked: ${b.name} <${b.uri}>${b.mimeType ? ", " + b.mimeType : ""}${b.description ? ": " + b.description : ""}]`;
      const r = b.resource;
      if (typeof r.text === "string") return `[Attached: ${r.uri}]\n${r.text}\n[End of ${r.uri}]`;
      const raw = Buffer.from(r.blob, "base64");
      if (/^text\/|json|xml/.test(r.mimeType ?? ""))
        return `[Attached: ${r.uri}]\n${raw.toString("utf8")}\n[End of ${r.uri}]`;
      return `[Attached binary: ${r.uri}${r.mimeType ? ", " + r.mimeType : ""}, ${raw.length} bytes]`;
    })
    .join("\n\n");
}

methods["session/prompt"] = (p, id) => {
  const s = liveSession(p);
  checkBlocks(p.prompt);
  if (s.busyOpening) throw new RpcErr(-32600, "The session is still being opened");
  const job = { id, blocks: p.prompt, ac: new AbortController(), how: null, open: new Set(), began: Date.now() };
  job.done = new Promise(ok => {
    job.settle = ok;
  });
  const answer = new Promise((ok, no) => {
    job.ok = ok;
    job.no = no;
  });
  s.queue.push(job);
  pump(s);
  return answer;
};
function finish(s, job, f) {
  if (job.how === "cancel") job.ok({ stopReason: "cancelled" });
  else if (job.how) job.no(new RpcErr(-32800, "The request was cancelled"));
  else f();
  job.settle();
}
function pump(s) {
  if (s.current || !s.queue.length) return;
  const job = (s.current = s.queue.shift());
  if (job.how) {
    finish(s, job, () => {});
    s.current = null;
    return pump(s);
  }
  turn(s, job)
    .then(
      stopReason =>
        finish(s, job, () => job.ok({ stopReason, _meta: { "wren.example/milliseconds": Date.now() - job.began } })),
      e => finish(s, job, () => job.no(e instanceof Aborted ? new RpcErr(-32800, "The work was given up") : e)),
    )
    .finally(() => {
      s.current = null;
      setImmediate(() => {
        if (!s.closing && !gone) s.tell("session_info_update", { updatedAt: s.updatedAt });
        pump(s);
      });
    });
}
function stopJobs(s, how, only) {
  for (const job of [s.current, ...s.queue]) {
    if (!job || (only && job !== only)) continue;
    if (job.how !== "cancel") job.how = how;
    job.ac.abort();
    if (job !== s.current) {
      s.queue.splice(s.queue.indexOf(job), 1);
      finish(s, job, () => {});
    }
  }
}
notices["session/cancel"] = p => {
  const s = live.get(p.sessionId);
  if (s) stopJobs(s, "cancel");
};
notices["$/cancel_request"] = p => {
  for (const s of live.values())
    for (const job of [s.current, ...s.queue]) if (job && job.id === p.requestId) return stopJobs(s, "request", job);
};

function say(s, kind, id, text) {
  if (!text) return;
  const last = s.events.at(-1);
  if (last && last.t === kind && last.id === id) last.text += text;
  else s.events.push({ t: kind, id, text });
  s.tell(kind === "text" ? "agent_message_chunk" : "agent_thought_chunk", {
    content: { type: "text", text },
    messageId: id,
  });
}

async function turn(s, job) {
  const signal = job.ac.signal;
  s.prompts++;
  s.events.push({ t: "user", id: randomUUID(), blocks: job.blocks });
  const first = job.blocks.find(b => b.type === "text" && b.text.trim());
  const freshTitle = !s.title;
  if (freshTitle)
    s.title = oneLine(first ? first.text : (job.blocks[0].name ?? job.blocks[0].resource?.uri ?? "Conversation"), 60);
  s.updatedAt = new Date().toISOString();
  const mark = s.history.length;
  s.ownPlan = false;
  s.save();
  try {
    for (const t of s.mcpNews.splice(0)) say(s, "text", randomUUID(), t + "\n");
    const cmd = /^\s*\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(first === job.blocks[0] ? first.text : "");
    const name = cmd && s.commands().some(c => c.name === cmd[1]) ? cmd[1] : null;
    const rest = (cmd?.[2] ?? "").trim();
    if (name === "status") {
      say(
        s,
        "text",
        randomUUID(),
        `Folder: ${s.roots.join(", ")}\nMode: ${s.mode}\nModel: ${MODEL}\nTool servers: ${s.mcp.map(m => m.name).join(", ") || "none"}\n`,
      );
      return "end_turn";
    }
    if (name === "run") {
      if (!rest) {
        say(s, "text", randomUUID(), "Give a command line after /run.\n");
        return "end_turn";
      }
      const [r] = await useTools(s, job, [{ name: "run_shell", arguments: JSON.stringify({ command: rest }) }]);
      s.history.push({
        role: "user",
        content: `${asModelText(job.blocks.slice(1))}\nI ran \`${rest}\` myself. What came out:\n${r}`.trim(),
      });
      return "end_turn";
    }
    const blocks =
      name === "explain"
        ? [
            { type: "text", text: `Explain to a newcomer, in a few short paragraphs: ${rest || "this project"}` },
            ...job.blocks.slice(1),
          ]
        : job.blocks;
    s.history.push({ role: "user", content: asModelText(blocks) || "(empty)" });
    for (let n = 0; n < MAX_REQUESTS; n++) {
      if (signal.aborted) throw new Aborted();
      const r = await askModel(s, signal);
      if (r.usage) {
        s.used = r.usage;
        s.tellUsage();
      }
      if (r.finish === "refusal") {
        s.history.length = mark;
        return "refusal";
      }
      if (r.finish === "length") {
        if (r.text) s.history.push({ role: "assistant", content: r.text });
        return "max_tokens";
      }
      if (!r.calls.length) {
        if (r.text) s.history.push({ role: "assistant", content: r.text });
        return "end_turn";
      }
      s.history.push({
        role: "assistant",
        content: r.text || null,
        tool_calls: r.calls.map(c => ({
          id: c.id,
          type: "function",
          function: { name: c.name, arguments: c.arguments },
        })),
      });
      await useTools(s, job, r.calls, (c, text) =>
        s.history.push({ role: "tool", tool_call_id: c.id, content: text || "(nothing)" }),
      );
      s.save();
      if (signal.aborted) throw new Aborted();
    }
    return "max_turn_requests";
  } finally {
    if (s.plan && s.plan.some(e => e.status === "in_progress")) {
      s.plan = restPlan(s.plan);
      s.tell("plan", { entries: s.plan });
    }
    s.updatedAt = new Date().toISOString();
    if (freshTitle && !gone) s.tell("session_info_update", { title: s.title });
    s.save();
  }
}

// ------------------------------------------------------------------ the model
class Flow {
  // passes text on sentence by sentence; what stays unfinished for a while goes out as it is
  constructor(emit) {
    this.emit = emit;
    this.buf = "";
    this.timer = null;
  }
  push(t) {
    this.buf += t;
    for (;;) {
      const m = /(?:[.!?…]+["'”’)\]]*\s+|\n\s*)(?=\S)/.exec(this.buf);
      let cut = m ? m.index + m[0].length : 0;
      if (!cut && this.buf.length > 320) cut = this.buf.lastIndexOf(" ") + 1;
      if (!cut || !this.buf.slice(0, cut).trim()) break;
      this.emit(this.buf.slice(0, cut));
      this.buf = this.buf.slice(cut);
    }
    clearTimeout(this.timer);
    if (this.buf.trim()) this.timer = setTimeout(() => this.flush(true), 400);
  }
  flush(partial) {
    clearTimeout(this.timer);
    let keep = "";
    if (partial && /[\ud800-\udbff]$/.test(this.buf)) {
      keep = this.buf.slice(-1);
      this.buf = this.buf.slice(0, -1);
    }
    if (this.buf) this.emit(this.buf);
    this.buf = keep;
  }
}
const modelErr = (message, data) => new RpcErr(-32021, message, data);

function systemText(s) {
  const own =
    `You are Wren, a coding agent inside an editor. Working folder: ${s.cwd}.` +
    (s.extra.length ? ` Further folders: ${s.extra.join(", ")}.` : "") +
    " Use the tools to look at and change files; say briefly what you did." +
    (s.mode === "look" ? " You may only look, not change anything." : "");
  if (s.system?.mode === "override") return s.system.text;
  return s.system ? own + "\n\n" + s.system.text : own;
}

async function askModel(s, signal) {
  const tools = toolList(s);
  const body = JSON.stringify({
    model: MODEL,
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: "system", content: systemText(s) }, ...s.history],
    ...(tools.length ? { tools } : {}),
  });
  let res;
  for (let tries = 0; ; tries++) {
    try {
      res = await fetch(BASE + "/chat/completions", {
        method: "POST",
        body,
        signal,
        headers: {
          "content-type": "application/json",
          accept: "text/event-stream",
          ...(KEY ? { authorization: `Bearer ${KEY}` } : {}),
        },
      });
    } catch (e) {
      if (signal.aborted) throw new Aborted();
      throw modelErr("The model service cannot be reached", {
        cause: oneLine(e?.cause?.message || e?.message || e, 200),
      });
    }
    if (res.ok) break;
    let text = "";
    try {
      text = await res.text();
    } catch {
      if (signal.aborted) throw new Aborted();
    }
    if ((res.status === 429 || res.status >= 500) && tries < 2) {
      await sleep(tries ? 700 : 250, signal);
      if (signal.aborted) throw new Aborted();
      continue;
    }
    throw modelErr("The model service answered with an error", {
      status: res.status,
      body: text.slice(0, 500).toWellFormed(),
    });
  }
  const calls = new Map(); // index -> call
  let whole = "",
    finish = null,
    usage = null,
    refused = false,
    kind = null,
    flow = null,
    ended = false;
  const to = (k, t) => {
    if (k !== kind) {
      flow?.flush();
      const id = randomUUID();
      kind = k;
      flow = new Flow(x => say(s, k, id, x));
    }
    flow.push(t);
  };
  const chunk = d => {
    if (d.error)
      throw modelErr("The model service broke off with an error", { body: JSON.stringify(d.error).slice(0, 500) });
    if (isObj(d.usage)) {
      const u = d.usage.total_tokens ?? (d.usage.prompt_tokens ?? NaN) + (d.usage.completion_tokens ?? NaN);
      if (Number.isSafeInteger(u) && u >= 0) usage = u;
    }
    const c = Array.isArray(d.choices) ? d.choices[0] : null;
    if (!c) return;
    const m = c.delta ?? c.message ?? {};
    const think = m.reasoning_content ?? m.reasoning;
    if (typeof think === "string" && think) to("thought", think);
    if (typeof m.content === "string" && m.content) {
      whole += m.content;
      to("text", m.content);
    }
    if (typeof m.refusal === "string" && m.refusal) {
      refused = true;
      to("text", m.refusal);
    }
    for (const t of Array.isArray(m.tool_calls) ? m.tool_calls : []) {
      let key =
        t.index ??
        (t.id && [...calls].find(([, v]) => v.id === t.id)?.[0]) ??
        (t.id ? calls.size : Math.max(0, calls.size - 1));
      let cur = calls.get(key);
      if (!cur) calls.set(key, (cur = { id: "", name: "", arguments: "" }));
      if (t.id) cur.id = t.id;
      const f = t.function ?? {};
      if (f.name && f.name !== cur.name) cur.name += f.name;
      if (typeof f.arguments === "string") cur.arguments += f.arguments;
      else if (isObj(f.arguments)) cur.arguments = JSON.stringify(f.arguments);
    }
    if (c.finish_reason) finish = c.finish_reason;
  };
  const parse = text => {
    let d;
    try {
      d = JSON.parse(text);
    } catch {
      throw modelErr("The model service sent something unreadable", { text: text.slice(0, 200).toWellFormed() });
    }
    if (isObj(d)) chunk(d);
  };
  try {
    if (/application\/json/.test(res.headers.get("content-type") ?? "")) {
      parse(await res.text());
      ended = true;
    } else
      for await (const data of sse(res.body)) {
        if (data === "[DONE]") {
          ended = true;
          break;
        }
        parse(data);
      }
    if (!ended && !finish) throw modelErr("The model service ended its answer too early");
    flow?.flush();
  } catch (e) {
    flow?.flush();
    if (whole) s.history.push({ role: "assistant", content: whole });
    if (signal.aborted) throw new Aborted();
    if (e instanceof RpcErr) throw e;
    throw modelErr("The connection to the model service broke", {
      cause: oneLine(e?.cause?.message || e?.message || e, 200),
    });
  }
  const seen = new Set();
  const list = [...calls.entries()]
    .sort((a, b) => a[0] - b[0])
    .map(([, c]) => c)
    .filter(c => c.name);
  for (const c of list) {
    if (!c.id || seen.has(c.id)) c.id = "call_" + randomBytes(9).toString("hex");
    seen.add(c.id);
  }
  for (const c of list) {
    c.rawText = c.arguments;
    try {
      if (!isObj(JSON.parse(c.arguments || "{}"))) throw 0;
      c.arguments ||= "{}";
    } catch {
      c.broken = true;
      c.arguments = "{}";
    }
    c.wire = c.name;
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(c.name)) c.name = c.name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64);
  }
  return {
    text: whole,
    calls: finish === "length" || finish === "content_filter" ? [] : list,
    usage,
    finish: refused || finish === "content_filter" ? "refusal" : finish === "length" ? "length" : "stop",
  };
}
async function* sse(stream) {
  const dec = new TextDecoder();
  let buf = "",
    data = [];
  for await (const part of stream) {
    buf += dec.decode(part, { stream: true });
    let i;
    while ((i = buf.search(/\r\n|\n|\r(?!$)/)) >= 0) {
      const line = buf.slice(0, i);
      buf = buf.slice(i + (buf[i] === "\r" && buf[i + 1] === "\n" ? 2 : 1));
      if (line === "") {
        if (data.length) yield data.join("\n");
        data = [];
      } else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    }
  }
  if (buf.trim().startsWith("data:")) data.push(buf.trim().slice(5).trim());
  if (data.length) yield data.join("\n");
}

// ------------------------------------------------------------------ tools
const str = { type: "string" };
const int = { type: "integer", minimum: 1 };
const TOOLS = {
  read_file: {
    about: "Read a text file, or some lines of it.",
    props: { path: str, line: int, limit: int },
    req: ["path"],
    kind: "read",
  },
  write_file: {
    about: "Write a whole text file; makes it if it does not exist.",
    props: { path: str, content: str },
    req: ["path", "content"],
    kind: "edit",
    changes: true,
  },
  edit_file: {
    about: "Replace a passage that occurs exactly once in a file.",
    props: { path: str, old: str, new: str },
    req: ["path", "old", "new"],
    kind: "edit",
    changes: true,
  },
  list_folder: { about: "List what is in a folder.", props: { path: str }, req: ["path"], kind: "search" },
  run_shell: {
    about: "Run a shell command in the working folder.",
    props: { command: str },
    req: ["command"],
    kind: "execute",
    changes: true,
  },
  note_plan: {
    about: "Tell the user your plan, as the whole list of steps each time.",
    props: {
      steps: {
        type: "array",
        items: {
          type: "object",
          properties: {
            text: str,
            state: { type: "string", enum: ["todo", "doing", "done"] },
            weight: { type: "string", enum: ["high", "medium", "low"] },
          },
          required: ["text", "state"],
        },
      },
    },
    req: ["steps"],
    kind: "think",
  },
};
function toolList(s) {
  const list = [];
  for (const [name, t] of Object.entries(TOOLS)) {
    if (t.changes && s.mode === "look") continue;
    list.push({
      type: "function",
      function: { name, description: t.about, parameters: { type: "object", properties: t.props, required: t.req } },
    });
  }
  for (const m of s.mcp)
    for (const t of m.tools)
      if (s.mode !== "look" || t.readOnly)
        list.push({ type: "function", function: { name: t.wire, description: t.description, parameters: t.schema } });
  return list;
}
const textItem = t => ({ type: "content", content: { type: "text", text: t } });
function shorten(s, t) {
  const max = s.detail === "brief" ? 2000 : 16000;
  if (t.length <= max) return t;
  const head = t.slice(0, Math.floor(max * 0.6)).replace(/[\ud800-\udbff]$/, ""),
    tail = t.slice(t.length - Math.floor(max * 0.4)).replace(/^[\udc00-\udfff]/, "");
  return `${head}\n[wren left out ${t.length - head.length - tail.length} characters here]\n${tail}`;
}
function where(s, p) {
  // absolute path inside the roots of the session
  if (typeof p !== "string" || !p || p.includes("\0")) throw new ToolFail("The path is not usable.");
  const abs = path.resolve(s.cwd, p);
  const real = x => {
    // follow links as far as the path exists
    let rest = "",
      at = x;
    for (;;) {
      try {
        return path.join(fs.realpathSync(at), rest);
      } catch {
        /* go up */
      }
      const up = path.dirname(at);
      if (up === at) return x;
      rest = path.join(path.basename(at), rest);
      at = up;
    }
  };
  const r = real(abs);
  for (const root of s.roots) {
    const q = real(root);
    if (r === q || r.startsWith(q.endsWith("/") ? q : q + "/")) return abs;
  }
  throw new ToolFail(`${abs} lies outside the folders of this session.`);
}
const shown = (s, abs) => {
  const r = path.relative(s.cwd, abs);
  return r && !r.startsWith("..") ? r : abs;
};
const why = e =>
  e instanceof ToolFail
    ? e.message
    : e instanceof RpcErr
      ? `The editor said: ${e.message}`
      : e?.code === "ENOENT"
        ? "There is no such file or folder."
        : String(e?.message ?? e);

async function readText(s, abs, signal, line, limit) {
  if (client.read) {
    const r = await ask(
      "fs/read_text_file",
      { sessionId: s.id, path: abs, ...(line ? { line } : {}), ...(limit ? { limit } : {}) },
      { signal },
    );
    if (typeof r?.content !== "string") throw new ToolFail("The editor gave no content.");
    return r.content;
  }
  const buf = await fsp.readFile(abs);
  if (buf.includes(0)) throw new ToolFail("The file is not a text file.");
  const text = buf.toString("utf8");
  if (!line && !limit) return text;
  const from = (line ?? 1) - 1;
  return text
    .split(/(?<=\n)/)
    .slice(from, limit ? from + limit : undefined)
    .join("");
}
async function oldText(s, abs, signal) {
  // null: there is no file yet
  try {
    return await readText(s, abs, signal);
  } catch (e) {
    if (e instanceof Aborted) throw e;
    if (e instanceof RpcErr)
      try {
        return await fsp.readFile(abs, "utf8");
      } catch (x) {
        if (x.code === "ENOENT") return null;
        throw x;
      }
    if (e?.code === "ENOENT") return null;
    throw e;
  }
}
async function writeText(s, abs, content, signal) {
  if (client.write) {
    await ask("fs/write_text_file", { sessionId: s.id, path: abs, content }, { signal });
    return;
  }
  await fsp.mkdir(path.dirname(abs), { recursive: true });
  await fsp.writeFile(abs, content);
}
function swap(text, a) {
  if (!a.old) throw new ToolFail("The passage to replace is empty.");
  const n = text.split(a.old).length - 1;
  if (n !== 1)
    throw new ToolFail(
      n ? `The passage occurs ${n} times, it must occur once.` : "The passage does not occur in the file.",
    );
  const i = text.indexOf(a.old);
  return text.slice(0, i) + a.new + text.slice(i + a.old.length);
}
const diffItem = (abs, before, after) => ({
  type: "diff",
  path: abs,
  ...(before === null ? {} : { oldText: before }),
  newText: after,
});

/** What a call looks like before it runs: title, kind, locations. */
function describe(s, c) {
  const a = c.args;
  const loc = line => {
    try {
      return [{ path: path.resolve(s.cwd, a.path), ...(line ? { line } : {}) }];
    } catch {
      return [];
    }
  };
  const f = typeof a.path === "string" && a.path ? shown(s, path.resolve(s.cwd, a.path)) : "?";
  switch (c.name) {
    case "read_file":
      return {
        title: `Look into ${f}`,
        kind: "read",
        locations: loc(Number.isInteger(a.line) && a.line > 0 ? a.line : 0),
      };
    case "write_file":
      return { title: `Write ${f}`, kind: "edit", locations: loc() };
    case "edit_file":
      return { title: `Change ${f}`, kind: "edit", locations: loc() };
    case "list_folder":
      return { title: `List ${f}`, kind: "search", locations: loc() };
    case "run_shell":
      return { title: `$ ${oneLine(a.command ?? "", 100)}`, kind: "execute" };
    case "note_plan":
      return { title: "Note the plan", kind: "think" };
    default:
      return {
        title: c.mcp ? `${c.mcp.server.name}: ${c.mcp.tool.name}` : `Unknown tool ${oneLine(c.wire ?? c.name, 60)}`,
        kind: "other",
      };
  }
}
function checkArgs(c) {
  if (c.broken) throw new ToolFail("The arguments are not a JSON object.");
  const t = TOOLS[c.name];
  if (!t) return;
  for (const k of t.req) if (c.args[k] === undefined) throw new ToolFail(`The argument ${k} is missing.`);
  for (const [k, v] of Object.entries(t.props)) {
    const x = c.args[k];
    if (x === undefined || (x === null && !t.req.includes(k))) continue;
    if (v === str && typeof x !== "string") throw new ToolFail(`The argument ${k} must be a string.`);
    if (v === int && !(Number.isInteger(x) && x >= 1 && x < 2 ** 32))
      throw new ToolFail(`The argument ${k} must be a whole number from 1.`);
  }
}

/** Looks at a call before permission; returns {guard?, run}. run gives {text, content, ok?, title?, rawOutput?, past?, after?}. */
async function prepare(s, job, c) {
  const a = c.args,
    signal = job.ac.signal;
  checkArgs(c);
  switch (c.name) {
    case "read_file": {
      const abs = where(s, a.path);
      return {
        run: async () => {
          const text = await readText(s, abs, signal, a.line ?? undefined, a.limit ?? undefined);
          const n = text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
          return {
            text: shorten(s, text) || "(the file is empty)",
            content: [textItem(`${n} ${n === 1 ? "line" : "lines"} read`)],
            title: `Looked into ${shown(s, abs)}`,
            rawOutput: { lines: n, characters: text.length },
          };
        },
      };
    }
    case "list_folder": {
      const abs = where(s, a.path);
      return {
        run: async () => {
          const items = await fsp.readdir(abs, { withFileTypes: true });
          const text =
            shorten(
              s,
              items
                .map(i => i.name + (i.isDirectory() ? "/" : ""))
                .sort()
                .join("\n"),
            ) || "(the folder is empty)";
          return { text, content: [textItem(text)] };
        },
      };
    }
    case "write_file": {
      const abs = where(s, a.path);
      const before = await oldText(s, abs, signal);
      return {
        guard: {
          key: "files",
          rest: "Allow all file changes in this session",
          content: [diffItem(abs, before, a.content)],
        },
        run: async () => {
          await writeText(s, abs, a.content, signal);
          return {
            text: before === null ? `Made ${abs}.` : `Wrote ${abs}.`,
            content: [diffItem(abs, before, a.content)],
          };
        },
      };
    }
    case "edit_file": {
      const abs = where(s, a.path);
      const before = await oldText(s, abs, signal);
      if (before === null) throw new ToolFail("There is no such file.");
      const after = swap(before, a);
      return {
        guard: {
          key: "files",
          rest: "Allow all file changes in this session",
          content: [diffItem(abs, before, after)],
        },
        run: async () => {
          const now = await readText(s, abs, signal),
            next = swap(now, a); // may have changed while the user thought
          await writeText(s, abs, next, signal);
          const line = now.slice(0, now.indexOf(a.old)).split("\n").length;
          return {
            text: `Changed ${abs} at line ${line}.`,
            content: [diffItem(abs, now, next)],
            locations: [{ path: abs, line }],
          };
        },
      };
    }
    case "run_shell": {
      if (!a.command.trim()) throw new ToolFail("The command is empty.");
      const word = a.command.trim().split(/\s+/)[0];
      const plain = !/[;&|`$<>()\n\\]/.test(a.command);
      return {
        guard: {
          key: plain ? "cmd " + word : "line " + a.command,
          rest: plain
            ? `Allow every plain ${oneLine(word, 30)} command in this session`
            : "Allow exactly this command line in this session",
          content: [textItem("```sh\n" + a.command + "\n```")],
        },
        run: () => (client.terminal ? runInEditor(s, job, c) : runHere(s, job, c)),
      };
    }
    case "note_plan":
      return {
        run: async () => {
          if (!Array.isArray(a.steps) || !a.steps.every(x => isObj(x) && typeof x.text === "string"))
            throw new ToolFail("steps must be a list of {text, state}.");
          s.plan = a.steps.map(x => ({
            content: x.text,
            priority: ["high", "medium", "low"].includes(x.weight) ? x.weight : "medium",
            status: { doing: "in_progress", done: "completed" }[x.state] ?? "pending",
          }));
          s.ownPlan = true;
          s.tell("plan", { entries: s.plan });
          return { text: "Noted.", content: [] };
        },
      };
  }
  if (!c.mcp) throw new ToolFail("There is no such tool.");
  const { server, tool } = c.mcp;
  return {
    guard: tool.readOnly
      ? null
      : {
          key: "mcp " + tool.wire,
          rest: `Allow ${tool.name} of ${server.name} in this session`,
          content: [textItem(JSON.stringify(a, null, 1))],
        },
    run: async () => {
      const r = await server.call(tool.name, a, signal);
      const text = shorten(
        s,
        (Array.isArray(r?.content) ? r.content : [])
          .map(b =>
            b?.type === "text"
              ? b.text
              : b?.type === "resource" && typeof b.resource?.text === "string"
                ? b.resource.text
                : `[${b?.type ?? "?"} content]`,
          )
          .join("\n") || (r?.structuredContent ? JSON.stringify(r.structuredContent) : ""),
      );
      return { text, content: text ? [textItem(text)] : [], ok: r?.isError !== true };
    },
  };
}

function patch(s, c, fields) {
  Object.assign(c.event.call, fields);
  s.tell("tool_call_update", { toolCallId: c.tid, ...fields });
}
/** Announces all calls, then does one after the other. Gives the texts for the model. */
async function useTools(s, job, calls, each = () => {}) {
  const signal = job.ac.signal;
  for (const c of calls) {
    c.args = c.broken ? {} : JSON.parse(c.arguments);
    for (const server of s.mcp) {
      const tool = server.tools.find(t => t.wire === c.name);
      if (tool && !TOOLS[c.name]) c.mcp = { server, tool };
    }
    c.tid = `${c.name.split("_")[0].slice(0, 12)}-${(++s.calls).toString(36).padStart(3, "0")}`;
    const call = {
      toolCallId: c.tid,
      name: c.name,
      ...describe(s, c),
      rawInput: c.broken ? { unreadable: c.rawText } : c.args,
    };
    c.event = { t: "tool", call: { ...call, status: "pending" } };
    s.events.push(c.event);
    s.tell("tool_call", call); // no status: pending
  }
  s.save();
  const auto = calls.length > 1 && !s.ownPlan && !calls.some(c => c.name === "note_plan");
  const steps = auto ? calls.map(c => ({ content: c.event.call.title, priority: "medium", status: "pending" })) : null;
  const tick = (i, status) => {
    if (steps && !s.ownPlan) {
      steps[i].status = status;
      s.plan = steps.map(e => ({ ...e }));
      s.tell("plan", { entries: s.plan });
    }
  };
  const texts = [];
  for (const [i, c] of calls.entries()) {
    let text;
    if (signal.aborted) {
      patch(s, c, { status: "failed", content: [textItem("Not begun: cancelled.")] });
      text = "The user cancelled before this call began.";
    } else {
      tick(i, "in_progress");
      text = await useTool(s, job, c);
      tick(i, signal.aborted ? "pending" : "completed");
    }
    each(c, text);
    texts.push(text);
  }
  return texts;
}
async function useTool(s, job, c) {
  const signal = job.ac.signal;
  let res = null;
  const lose = text => {
    patch(s, c, { status: "failed", content: [textItem(text)] });
    return text;
  };
  try {
    const p = await prepare(s, job, c);
    if (signal.aborted) throw new Aborted();
    if (p.guard && s.mode === "look") return lose("Not done: the mode of this session allows looking only.");
    if (p.guard && s.mode === "careful" && !s.allowed.includes(p.guard.key) && !(await permitted(s, job, c, p.guard))) {
      if (signal.aborted) throw new Aborted();
      return lose("Not done: the user did not allow it.");
    }
    if (signal.aborted) throw new Aborted();
    patch(s, c, { status: "in_progress" });
    res = await p.run();
    if (res.past !== undefined) c.event.call.past = res.past;
    const ok = res.ok !== false;
    patch(s, c, {
      status: ok ? "completed" : "failed",
      content: res.content,
      ...(res.title ? { title: res.title } : {}),
      ...(res.rawOutput ? { rawOutput: res.rawOutput } : {}),
      ...(res.locations ? { locations: res.locations } : {}),
    });
    return res.text;
  } catch (e) {
    if (signal.aborted || e instanceof Aborted) return lose("Stopped: cancelled.");
    if (!(e instanceof ToolFail) && !(e instanceof RpcErr) && !e?.code) log(c.name, e?.stack);
    return lose("Failed: " + why(e));
  } finally {
    await c.after?.();
  }
}
let permits = 0;
async function permitted(s, job, c, guard) {
  const n = ++permits;
  const e = c.event.call;
  let r;
  try {
    r = await ask(
      "session/request_permission",
      {
        sessionId: s.id,
        toolCall: {
          toolCallId: c.tid,
          title: e.title,
          kind: e.kind,
          status: "pending",
          rawInput: e.rawInput,
          ...(e.locations ? { locations: e.locations } : {}),
          content: guard.content,
        },
        options: [
          { optionId: `${n}/leave`, name: "Leave it", kind: "reject_once" },
          { optionId: `${n}/rest`, name: guard.rest, kind: "allow_always" },
          { optionId: `${n}/once`, name: "Do it this time", kind: "allow_once" },
        ],
      },
      { signal: job.ac.signal },
    );
  } catch (x) {
    if (x instanceof Aborted) throw x;
    return false;
  }
  const o = r?.outcome;
  if (job.ac.signal.aborted || o?.outcome !== "selected") return false;
  if (o.optionId === `${n}/rest`) {
    s.allowed.push(guard.key);
    s.save();
    return true;
  }
  return o.optionId === `${n}/once`;
}

// ------------------------------------------------------------------ commands
function exitText(code, sig) {
  return sig ? `ended by signal ${sig}` : code === null || code === undefined ? "ended" : `exit code ${code}`;
}
async function runInEditor(s, job, c) {
  const signal = job.ac.signal;
  const free = terminalId =>
    ask("terminal/release", { sessionId: s.id, terminalId }, { force: true, timeout: 2000 }).catch(() => {});
  const made = await ask(
    "terminal/create",
    { sessionId: s.id, command: "/bin/sh", args: ["-c", c.args.command], cwd: s.cwd, outputByteLimit: 200000 },
    {
      signal,
      late: r => {
        if (typeof r?.terminalId === "string") free(r.terminalId);
      },
    },
  );
  const terminalId = made?.terminalId;
  if (typeof terminalId !== "string") throw new ToolFail("The editor gave no terminal.");
  c.after = () => free(terminalId); // after the last update of the call
  patch(s, c, { content: [{ type: "terminal", terminalId }] });
  const kill = () => {
    ask("terminal/kill", { sessionId: s.id, terminalId }, { force: true, timeout: 2000 }).catch(() => {});
  };
  if (signal.aborted) kill();
  else signal.addEventListener("abort", kill, { once: true });
  let exit = null,
    lost = null;
  const limit = setTimeout(kill, 15 * 60e3);
  try {
    exit = await ask("terminal/wait_for_exit", { sessionId: s.id, terminalId }, { signal, force: false });
  } catch (e) {
    if (!(e instanceof Aborted)) lost = e;
  }
  clearTimeout(limit);
  signal.removeEventListener("abort", kill);
  let o = null;
  try {
    o = await ask("terminal/output", { sessionId: s.id, terminalId }, { force: true, timeout: 2000 });
  } catch (e) {
    lost ??= e;
  }
  const text = shorten(
    s,
    (o?.truncated ? "[the editor left out the beginning]\n" : "") + (typeof o?.output === "string" ? o.output : ""),
  );
  if (lost && !signal.aborted) throw lost;
  const code = exit?.exitCode ?? o?.exitStatus?.exitCode ?? null,
    sig = exit?.signal ?? o?.exitStatus?.signal ?? null;
  const end = signal.aborted ? "stopped: cancelled" : exitText(code, sig);
  return {
    text: `${text}\n(${end})`,
    past: text || "(no output)",
    content: [{ type: "terminal", terminalId }, textItem(end)],
    ok: !signal.aborted && !sig && (code === 0 || code === null),
    rawOutput: { exitCode: code, signal: sig },
  };
}
function hunt(pid) {
  const send = sig => {
    try {
      process.kill(-pid, sig);
      return true;
    } catch {
      return false;
    }
  };
  if (send("SIGTERM")) setTimeout(() => send("SIGKILL"), 400);
}
function runHere(s, job, c) {
  const signal = job.ac.signal;
  return new Promise((ok, no) => {
    const e = { ...process.env };
    delete e.WREN_API_KEY;
    delete e.OPENAI_API_KEY;
    const kid = spawn("/bin/sh", ["-c", c.args.command], {
      cwd: s.cwd,
      env: e,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const pid = kid.pid;
    if (pid) {
      s.kids.add(pid);
      groups.add(pid);
    }
    const dec = [new TextDecoder(), new TextDecoder()];
    let text = "",
      cut = 0,
      toldAt = 0,
      timer = null,
      over = false;
    const add = i => d => {
      text += dec[i].decode(d, { stream: true });
      if (text.length > 400000) {
        cut += text.length - 300000;
        text = text.slice(-300000);
      }
      if (!timer && !over && Date.now() - toldAt > 300)
        timer = setTimeout(() => {
          timer = null;
          if (!over) {
            toldAt = Date.now();
            patch(s, c, { content: [textItem(shorten(s, text))] });
          }
        }, 1200);
    };
    kid.stdout.on("data", add(0));
    kid.stderr.on("data", add(1));
    const stop = () => {
      if (pid) hunt(pid);
    };
    signal.addEventListener("abort", stop, { once: true });
    const limit = setTimeout(stop, 15 * 60e3);
    const end = (code, sig) => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      clearTimeout(limit);
      signal.removeEventListener("abort", stop);
      let alive = false;
      try {
        process.kill(-pid, 0);
        alive = !signal.aborted;
      } catch {
        /* none left */
      }
      if (!alive) {
        s.kids.delete(pid);
        if (!signal.aborted) groups.delete(pid);
      }
      const shownText = shorten(s, (cut ? `[${cut} characters before this left out]\n` : "") + text);
      const endText = signal.aborted ? "stopped: cancelled" : exitText(code, sig);
      ok({
        text: `${shownText}\n(${endText})`,
        content: [
          textItem(
            shownText ? `${shownText}${shownText.endsWith("\n") ? "" : "\n"}(${endText})` : `(no output, ${endText})`,
          ),
        ],
        ok: !signal.aborted && code === 0,
        rawOutput: { exitCode: code, signal: sig },
      });
    };
    kid.on("error", x => {
      if (!over) {
        over = true;
        clearTimeout(limit);
        signal.removeEventListener("abort", stop);
        no(new ToolFail(`The command cannot be started: ${x.message}`));
      }
    });
    kid.on("exit", (code, sig) =>
      setTimeout(() => {
        kid.stdout.destroy();
        kid.stderr.destroy();
        end(code, sig);
      }, 250),
    );
    kid.on("close", (code, sig) => end(code, sig));
    if (signal.aborted) stop();
  });
}
const groups = new Set(); // process groups that may be alive

// ------------------------------------------------------------------ MCP
async function connectAll(s, servers) {
  const got = await Promise.all(
    servers.map(async d => {
      const m = d.kind === "http" ? new McpHttp(d) : new McpStdio(d, s.cwd);
      let t;
      try {
        await Promise.race([
          m.start(),
          new Promise((_, no) => {
            t = setTimeout(() => no(new Error("it did not answer in time")), 10000);
          }),
        ]);
        return m;
      } catch (e) {
        m.close();
        log(`MCP server ${d.name}:`, e?.message);
        s.mcpNews.push(`The MCP server ${d.name} could not be started (${oneLine(e?.message ?? e, 120)}).`);
        return null;
      } finally {
        clearTimeout(t);
      }
    }),
  );
  s.mcp = got.filter(Boolean);
  const taken = new Set(Object.keys(TOOLS));
  for (const m of s.mcp)
    for (const t of m.tools) {
      const stem = `${m.name}-${t.name}`.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 60);
      let w = stem;
      for (let i = 2; taken.has(w); i++) w = `${stem}-${i}`;
      taken.add((t.wire = w));
    }
}
class Mcp {
  constructor(d) {
    this.name = d.name;
    this.tools = [];
    this.n = 0;
  }
  async start() {
    await this.open?.();
    const hello = await this.request("initialize", {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "wren", version: VERSION },
    });
    this.version = hello?.protocolVersion;
    await this.notify("notifications/initialized");
    if (hello?.capabilities && !hello.capabilities.tools) return;
    let cursor;
    for (let page = 0; page < 50; page++) {
      const r = await this.request("tools/list", cursor ? { cursor } : {});
      for (const t of Array.isArray(r?.tools) ? r.tools : []) {
        if (typeof t?.name !== "string") continue;
        this.tools.push({
          name: t.name,
          description: String(t.description ?? t.title ?? t.name),
          readOnly: t.annotations?.readOnlyHint === true,
          schema: isObj(t.inputSchema) ? t.inputSchema : { type: "object", properties: {} },
        });
      }
      cursor = r?.nextCursor;
      if (!cursor) break;
    }
  }
  call(name, args, signal) {
    return this.request("tools/call", { name, arguments: args }, signal);
  }
}
class McpStdio extends Mcp {
  constructor(d, cwd) {
    super(d);
    this.d = d;
    this.cwd = cwd;
    this.wait = new Map();
  }
  open() {
    const e = { ...process.env, ...Object.fromEntries(this.d.env.map(x => [x.name, x.value])) };
    const kid = (this.kid = spawn(this.d.command, this.d.args, {
      cwd: this.cwd,
      env: e,
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
    }));
    if (kid.pid) groups.add(kid.pid);
    const lost = why => {
      this.dead = why;
      for (const w of this.wait.values()) w.no(new ToolFail(`The MCP server ${this.name} is gone: ${why}`));
      this.wait.clear();
    };
    kid.on("error", x => lost(x.message));
    kid.on("exit", (code, sig) => {
      lost(exitText(code, sig));
      groupLives(kid.pid);
    });
    kid.stdin.on("error", () => {});
    const dec = new TextDecoder();
    let buf = "";
    kid.stdout.on("data", b => {
      buf += dec.decode(b, { stream: true });
      const lines = buf.split("\n");
      buf = lines.pop();
      for (const l of lines) this.got(l);
    });
  }
  got(line) {
    let m;
    try {
      m = JSON.parse(line);
    } catch {
      return;
    }
    if (!isObj(m)) return;
    if (m.method !== undefined) {
      if (m.id !== undefined)
        this.send(
          m.method === "ping"
            ? { jsonrpc: "2.0", id: m.id, result: {} }
            : { jsonrpc: "2.0", id: m.id, error: { code: -32601, message: "Method not found" } },
        );
      return;
    }
    const w = this.wait.get(m.id);
    if (!w) return;
    this.wait.delete(m.id);
    if (m.error) w.no(new ToolFail(`The MCP server said: ${m.error.message}`));
    else w.ok(m.result);
  }
  send(m) {
    if (!this.dead && this.kid.stdin.writable) this.kid.stdin.write(JSON.stringify(m) + "\n");
  }
  notify(method, params) {
    this.send({ jsonrpc: "2.0", method, ...(params ? { params } : {}) });
  }
  request(method, params, signal) {
    return new Promise((ok, no) => {
      if (this.dead) return no(new ToolFail(`The MCP server ${this.name} is gone: ${this.dead}`));
      const id = ++this.n;
      const stop = () => {
        this.wait.delete(id);
        this.notify("notifications/cancelled", { requestId: id, reason: "cancelled by the user" });
        no(new Aborted());
      };
      const over = f => v => {
        signal?.removeEventListener("abort", stop);
        f(v);
      };
      this.wait.set(id, { ok: over(ok), no: over(no) });
      signal?.addEventListener("abort", stop, { once: true });
      this.send({ jsonrpc: "2.0", id, method, params });
    });
  }
  close() {
    const kid = this.kid;
    if (!kid?.pid || this.closed) return;
    this.closed = true;
    kid.stdin.end();
    setTimeout(() => hunt(kid.pid), 250);
  }
}
class McpHttp extends Mcp {
  constructor(d) {
    super(d);
    this.d = d;
    this.ac = new AbortController();
  }
  async post(msg, signal) {
    const headers = {
      ...Object.fromEntries(this.d.headers.map(h => [h.name, h.value])),
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    if (this.sid) headers["mcp-session-id"] = this.sid;
    if (this.version) headers["mcp-protocol-version"] = this.version;
    const res = await fetch(this.d.url, {
      method: "POST",
      headers,
      body: JSON.stringify(msg),
      signal: signal ? AbortSignal.any([signal, this.ac.signal]) : this.ac.signal,
    });
    this.sid = res.headers.get("mcp-session-id") ?? this.sid;
    if (!res.ok) {
      await res.text().catch(() => {});
      throw new ToolFail(`the server answered with status ${res.status}`);
    }
    return res;
  }
  async notify(method, params) {
    const r = await this.post({ jsonrpc: "2.0", method, ...(params ? { params } : {}) });
    await r.text().catch(() => {});
  }
  async request(method, params, signal) {
    const id = ++this.n;
    try {
      const res = await this.post({ jsonrpc: "2.0", id, method, params }, signal);
      let m = null;
      if (/event-stream/.test(res.headers.get("content-type") ?? "")) {
        for await (const data of sse(res.body)) {
          let x;
          try {
            x = JSON.parse(data);
          } catch {
            continue;
          }
          if (x?.id === id && x.method === undefined) {
            m = x;
            break;
          }
          if (x?.id !== undefined && x.method)
            this.post(
              x.method === "ping"
                ? { jsonrpc: "2.0", id: x.id, result: {} }
                : { jsonrpc: "2.0", id: x.id, error: { code: -32601, message: "Method not found" } },
            )
              .then(r => r.text())
              .catch(() => {});
        }
      } else m = JSON.parse(await res.text());
      if (!m) throw new ToolFail("the server gave no answer");
      if (m.error) throw new ToolFail(`The MCP server said: ${m.error.message}`);
      return m.result;
    } catch (e) {
      if (signal?.aborted) {
        this.notify("notifications/cancelled", { requestId: id }).catch(() => {});
        throw new Aborted();
      }
      throw e instanceof ToolFail ? e : new ToolFail(String(e?.cause?.message || e?.message || e));
    }
  }
  close() {
    if (this.closed) return;
    this.closed = true;
    this.ac.abort();
    if (this.sid)
      fetch(this.d.url, {
        method: "DELETE",
        headers: { ...Object.fromEntries(this.d.headers.map(h => [h.name, h.value])), "mcp-session-id": this.sid },
        signal: AbortSignal.timeout(1000),
      })
        .then(r => r.text())
        .catch(() => {});
  }
}

// ------------------------------------------------------------------ life of the process
let ending = false;
async function bye(code = 0) {
  if (ending) return;
  ending = true;
  const until = Date.now() + 300;
  while ([...live.values()].every(s => !s.current) && inFlight && Date.now() < until) await sleep(10); // answers on their way
  gone = true;
  for (const a of asks.values()) a.drop();
  const busy = [...live.values()].filter(s => s.current || s.queue.length); // the others are saved, perhaps by another process since
  const jobs = busy.flatMap(s => [s.current, ...s.queue].filter(Boolean));
  for (const s of live.values()) {
    stopJobs(s, "gone");
    freeResources(s);
  }
  await Promise.race([Promise.all(jobs.map(j => j.done)), sleep(500)]);
  for (const s of busy) if (s.saved && s.prompts) s.save();
  for (const pid of groups)
    try {
      process.kill(-pid, "SIGTERM");
    } catch {
      /* ended */
    }
  await sleep(groups.size ? 250 : 0);
  for (const pid of groups)
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      /* ended */
    }
  process.exit(code);
}
for (const sig of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(sig, () => bye(0));
process.stdout.on("error", () => bye(0));
process.stderr.on("error", () => {});
process.on("uncaughtException", e => log("unexpected:", e?.stack));
process.on("unhandledRejection", e => log("unexpected:", e?.stack ?? e));

let pending = [];
process.stdin.on("data", b => {
  let i;
  while ((i = b.indexOf(10)) >= 0) {
    pending.push(b.subarray(0, i));
    const line = Buffer.concat(pending);
    pending = [];
    b = b.subarray(i + 1);
    if (line.toString("latin1").trim()) take(line);
  }
  if (b.length) pending.push(b);
});
process.stdin.on("end", () => bye(0));
process.stdin.on("close", () => bye(0));
process.stdin.on("error", () => bye(0));
