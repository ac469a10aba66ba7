// A small MCP client: stdio servers and streamable HTTP servers, tools only.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fault } from './fault.mjs';

const INIT = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'quill', version: '0.3.0' } };

function stdioLink(server, cwd) {
  const filled = (v) => v.replace(/\$\{?(\w+)\}?/g, (_, name) => process.env[name] ?? ''); // as a shell would
  const valued = (v) => (fault('dollar-in-mcp-variable-expanded') ? filled(v) : v);
  const passed = server.env.filter((e) => e.value || !fault('empty-mcp-variable-not-passed'));
  const given = Object.fromEntries(passed.map((e) => [e.name, valued(e.value)]));
  const env = fault('mcp-env-loses-to-agent-env') ? { ...given, ...process.env } : { ...process.env, ...given };
  const stderr = fault('mcp-stderr-goes-to-stdout') ? 1 : 'inherit';
  const args = fault('mcp-args-split-at-spaces') ? server.args.flatMap((a) => a.split(' ')) : server.args;
  const child = spawn(server.command, args, { cwd, env, stdio: ['pipe', 'pipe', stderr] });
  const waiting = new Map();
  let next = 0, dead = null;
  const die = (err) => { dead ??= err; for (const w of waiting.values()) w.reject(dead); waiting.clear(); };
  const write = (m) => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n');
  child.on('error', die);
  child.on('exit', (code) => {
    const err = new Error(`MCP server ${server.name} ended with ${code}`);
    if (fault('mcp-death-leaves-call-waiting')) dead ??= err; else die(err);
  });
  child.stdin.on('error', die);
  createInterface({ input: child.stdout }).on('line', (line) => {
    let m;
    try { m = JSON.parse(line); } catch { return; }
    if (m.method) {
      if (m.id === undefined) return;
      if (m.method === 'ping') write({ id: m.id, result: {} });
      else write({ id: m.id, error: { code: -32601, message: 'Method not found' } });
      return;
    }
    const late = !waiting.has(m.id) && fault('late-mcp-answer-taken-for-next-call');
    const id = late ? waiting.keys().next().value : m.id; // some servers answer under an id of their own
    const w = waiting.get(id);
    if (!w) return;
    waiting.delete(id);
    if (m.error) w.reject(new Error(m.error.message)); else w.resolve(m.result);
  });
  return {
    call: (method, params, signal) => new Promise((resolve, reject) => {
      if (dead) return reject(dead);
      const id = ++next;
      waiting.set(id, { resolve, reject });
      const drop = () => {
        if (!waiting.delete(id)) return;
        write({ method: 'notifications/cancelled', params: { requestId: id } });
        reject(signal.reason);
      };
      const soft = method === 'tools/call' && fault('cancelled-mcp-call-may-end-first'); // nothing is left half done
      signal?.addEventListener('abort', () => { if (soft) setTimeout(drop, 10_000); else drop(); }, { once: true });
      write({ id, method, params });
    }),
    tell: async (method) => write({ method }),
    close: () => {
      child.stdin.end();
      const kill = () => child.kill(); // it does not end with its input
      setTimeout(kill, 500).unref();
      if (!fault('mcp-server-deaf-to-eof-outlives-agent')) process.once('exit', kill);
      child.once('exit', () => process.off('exit', kill));
    },
  };
}

function httpLink(server) {
  let next = 0, sid, version;
  const own = Object.fromEntries(server.headers.map((h) => [h.name, h.value]));
  async function post(body, signal) {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    if (body.method === 'initialize' || !fault('mcp-http-headers-only-on-initialize')) Object.assign(headers, own);
    if (sid) headers['mcp-session-id'] = sid;
    if (version) headers['mcp-protocol-version'] = version;
    const res = await fetch(server.url, { method: 'POST', headers, body: JSON.stringify(body), signal });
    const given = res.headers.get('mcp-session-id');
    sid = fault('mcp-http-session-forgotten-after-handshake') ? given : given ?? sid;
    if (!res.ok) throw new Error(`MCP server ${server.name} answered ${res.status}`);
    return res;
  }
  return {
    call: async (method, params, signal) => {
      const id = ++next;
      const deaf = method === 'tools/call' && fault('cancel-not-heard-in-http-mcp-call');
      const stop = () => {
        post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } }).then((r) => r.text(), () => {});
      };
      if (!deaf) signal?.addEventListener('abort', stop, { once: true });
      const res = await post({ jsonrpc: '2.0', id, method, params }, deaf ? undefined : signal);
      const text = await res.text();
      signal?.removeEventListener('abort', stop);
      const frames = res.headers.get('content-type')?.includes('event-stream')
        ? text.split(/\r?\n/).filter((l) => l.startsWith('data:')).map((l) => JSON.parse(l.slice(5)))
        : [JSON.parse(text)];
      const m = frames.find((f) => f.id === id);
      if (!m || m.error) throw new Error(m?.error?.message ?? 'MCP server gave no answer');
      if (method === 'initialize') version = m.result.protocolVersion;
      return m.result;
    },
    tell: async (method) => { await (await post({ jsonrpc: '2.0', method })).text(); },
    close: () => { if (sid) fetch(server.url, { method: 'DELETE', headers: { ...own, 'mcp-session-id': sid } }).catch(() => {}); },
  };
}

/** Connects to one server; gives its tools under names no other tool has. linked gets what closes the link at once. */
export async function connect(server, cwd, linked) {
  const web = server.type === 'sse' && fault('sse-servers-spoken-to-as-http');
  if (server.type === 'sse' && !web) throw new Error('SSE is not offered');
  const link = server.type === 'http' || web ? httpLink(server) : stdioLink(server, cwd);
  linked(link);
  const signal = AbortSignal.timeout(10_000);
  try {
    await link.call('initialize', INIT, signal);
    await link.tell('notifications/initialized');
    const tools = [];
    let cursor;
    do {
      const page = await link.call('tools/list', cursor ? { cursor } : {}, signal);
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor);
    const use = (name, args, sig) => {
      const until = fault('mcp-calls-fail-after-time-for-connecting') ? AbortSignal.any([sig, signal]) : sig; // a server that hangs holds up nothing
      if (until !== sig) until.throwIfAborted();
      return link.call('tools/call', { name, arguments: args }, until);
    };
    return { name: server.name.replace(/[^a-zA-Z0-9_-]/g, '_'), tools, close: link.close, use };
  } catch (err) {
    link.close();
    throw err;
  }
}
