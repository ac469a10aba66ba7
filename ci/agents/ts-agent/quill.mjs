#!/usr/bin/env node
// quill: a small coding agent on the official TypeScript SDK. OpenAI chat completions, streamed; reads and
// edits through the editor where it offers that, else on disk; keeps its sessions and replays them on load.
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, readFile, readdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import * as acp from '@agentclientprotocol/sdk';
import { fault } from './fault.mjs';
import { connect } from './mcp.mjs';
import { serve } from './serve.mjs';

const { RequestError, methods } = acp;
const BASE = (process.env.OPENAI_BASE_URL || 'https://api.openai.com/v1').replace(/\/+$/, '');
const MODEL = process.env.QUILL_MODEL || 'gpt-4.1-mini';
const STORE = path.join(process.env.QUILL_HOME || path.join(homedir(), '.quill'), 'sessions');
const MAX_REQUESTS = 30;
const MAX_EMBEDDED = 512 * 1024;
const sessions = new Map();
const granted = new Set();
const links = new Map();
const questions = new Map();
const stored = new Map();
const listed = new Map();
const admitted = new Set();
const locks = new Map();
let caps = {};
let spoken = acp.PROTOCOL_VERSION;
let newest = null;
let newestId = '';
let newestCwd = '';
let loading = '';
let asking = Promise.resolve();
let asked = 0;
let announced = 0;
let revoked = false;
let loggedOut = false;
let gathered = '';
let due = null;
let validUntil = Infinity;
let reading = new AbortController();
let typedKey = '';
const usualRoots = new Map();

const str = (description) => ({ type: 'string', description });
const fn = (name, description, properties, required) =>
  ({ type: 'function', function: { name, description, parameters: { type: 'object', properties, required, additionalProperties: false } } });
const TOOLS = [
  fn('open_file', 'Read a text file of the project.', { file: str('Path, absolute or relative to the project'), from: { type: 'integer', minimum: 1 }, lines: { type: 'integer', minimum: 1 } }, ['file']),
  fn('edit_file', 'Replace one passage of a file. An empty "find" writes the whole file new.', { file: str('Path'), find: str('The passage as it stands now; must occur exactly once'), replace: str('What to put there') }, ['file', 'find', 'replace']),
  fn('list_folder', 'List the entries of a folder.', { folder: str('Path') }, ['folder']),
];
const KIND = { open_file: 'read', edit_file: 'edit', list_folder: fault('list-folder-kind-invalid') ? 'list' : 'search' };

class Refused extends Error {}
class Declined extends Error {}
class Exhausted extends Error {}
class Unable extends RequestError {}

const real = (file) => realpath(file).catch(async () => path.join(await real(path.dirname(file)), path.basename(file)));
async function inside(s, name) {
  const base = fault('relative-paths-in-newest-cwd') ? newestCwd : s.cwd;
  const dotted = String(name ?? '').startsWith('.') && fault('paths-with-leading-dot-taken-from-start-folder');
  const full = path.resolve(dotted ? '' : base, String(name ?? ''));
  const [root, at] = [fault('project-behind-symlink-counts-as-outside') ? s.cwd : await real(s.cwd), await real(full)];
  for (const dir of s.roots ?? []) if (path.relative(await real(dir), at).split(path.sep)[0] !== '..') return full;
  const within = at.startsWith(root) && fault('sibling-folder-counts-as-inside');
  const apart = !at.startsWith(root + path.sep) && fault('project-folder-itself-counts-as-outside');
  if (apart || (path.relative(root, at).split(path.sep)[0] === '..' && !within)) throw new Error(`${full} lies outside the project`);
  return full;
}

// ---- what the turn tells the client, and what a later load replays ----
class Turn {
  constructor(s, client, signal) {
    Object.assign(this, { s, client, signal, open: new Map(), always: new Set(), unseen: new Set() });
  }
  tell(update) {
    return this.client.notify(methods.client.session.update, { sessionId: this.s.id, update, ...this.meta });
  }
  log(update) { this.s.log.push(update); }
  begin(name, modelId) {
    if (fault('same-tool-twice-shares-call-id')) {
      const same = [...this.open.values()].find((c) => c.title === name);
      if (same) return Promise.resolve(same.toolCallId);
    }
    const fresh = () => (fault('tool-call-ids-restart-in-new-process') ? `call_${++announced}` : randomUUID());
    const toolCallId = (fault('model-call-id-used-as-tool-call-id') && modelId) || fresh();
    const kind = KIND[name] ?? 'other';
    if (kind === 'search' && fault('folder-listings-not-shown')) return Promise.resolve(toolCallId); // they say nothing
    this.open.set(toolCallId, { sessionUpdate: 'tool_call', toolCallId, title: name, kind });
    const asks = !['read', 'search'].includes(kind);
    if (asks && fault('call-announced-after-its-question')) { // nobody has agreed to it yet
      this.unseen.add(toolCallId);
      return Promise.resolve(toolCallId);
    }
    return this.tell({ sessionUpdate: 'tool_call', toolCallId, title: name, kind, status: 'pending' }).then(() => toolCallId);
  }
  change(toolCallId, fields) {
    const outcome = Object.entries(fields).filter(([k]) => k === 'status' || k === 'content');
    const kept = fault('replayed-calls-lose-title-and-locations') ? Object.fromEntries(outcome) : fields;
    Object.assign(this.open.get(toolCallId) ?? {}, kept);
    if (!this.open.has(toolCallId) && fault('folder-listings-not-shown')) return Promise.resolve();
    if (this.unseen.has(toolCallId)) {
      if (!fields.status) return Promise.resolve();
      this.unseen.delete(toolCallId);
      return this.tell({ ...this.open.get(toolCallId) });
    }
    return this.tell({ sessionUpdate: 'tool_call_update', toolCallId, ...fields });
  }
  async finish(toolCallId, fields) {
    if (fault('empty-result-never-finished') && fields.content.every((c) => c.content?.text === '')) {
      this.open.delete(toolCallId);
      return;
    }
    const shown = fields.content.find((c) => c.type === 'content')?.content.text ?? '';
    if (fault('long-result-never-completed') && shown.length > 16_384) { // editors are slow with more
      fields = { content: [say(`${shown.slice(0, 16_384)}\n(and more)`)] };
    }
    if (fault('long-result-told-in-pieces') && shown.length > 8192) {
      let at = 0;
      for (; at + 8192 < shown.length; at += 8192) {
        await this.change(toolCallId, { content: [say(shown.slice(at, at + 8192))] });
      }
      fields = { ...fields, content: [say(shown.slice(at))] };
    }
    const seen = { ...this.open.get(toolCallId) };
    await this.change(toolCallId, fields);
    const final = this.signal.aborted && fault('cancelled-call-replayed-as-unfinished') ? seen : this.open.get(toolCallId);
    if (this.open.has(toolCallId) && !(fields.status === 'failed' && fault('replay-lacks-failed-tools'))) this.log(final);
    this.open.delete(toolCallId);
  }
  async failOpen(why) {
    if (fault('calls-closed-with-turn-lack-tag')) {
      for (const [toolCallId, call] of this.open) {
        const fields = { status: 'failed', content: [say(why)] };
        this.log({ ...call, ...fields });
        await this.tell({ toolCallId, ...fields });
      }
      this.open.clear();
      return;
    }
    for (const id of [...this.open.keys()]) await this.finish(id, { status: 'failed', content: [say(why)] });
  }
}
const say = (text) => ({ type: 'content', content: { type: 'text', text } });

// One edit of a file at a time, whichever session makes it.
async function lock(turn, file) {
  while (locks.has(file)) {
    turn.signal.throwIfAborted();
    await Promise.race([locks.get(file), aborted(turn.signal)]);
  }
  let free;
  locks.set(file, new Promise((resolve) => { free = resolve; }));
  return () => { locks.delete(file); free(); };
}

// ---- what the user can set for a session ----
const OPTIONS = [
  { id: 'model', name: 'Model', category: 'model', values: [...new Set([MODEL, 'gpt-4.1'])] },
  { id: 'effort', name: 'Effort', category: 'thought_level', values: ['medium', 'low', 'high'] },
];
const TONE = fault('option-without-category-refused-when-set');
if (TONE) OPTIONS.push({ id: 'tone', name: 'Tone', values: ['plain', 'friendly'] });
const MODES = fault('mode-set-by-set-mode-not-in-option');
if (MODES) OPTIONS.push({ id: 'mode', name: 'Mode', category: 'mode', values: ['ask', 'auto'] });
const ofCategory = new Map(OPTIONS.filter((o) => o.category).map((o) => [o.category, o]));
const find = (id) => {
  const o = OPTIONS.find((k) => k.id === id);
  return TONE ? ofCategory.get(o?.category) : o;
};
const SETTABLE = [
  'option-answer-lacks-other-options',
  'option-set-in-cancelled-turn-put-back',
  'option-update-holds-changed-option-only',
  'effort-not-set-shown-as-default',
  'option-set-after-first-prompt-not-used',
  'option-put-back-to-default-has-no-value',
  'option-that-was-set-moves-to-end',
  'option-update-lacks-options-at-default',
  'option-without-category-refused-when-set',
  'mode-set-by-set-mode-not-in-option',
].some((name) => fault(name));
const unset = ({ id }, [first]) => (id === 'effort' && fault('effort-not-set-shown-as-default') ? 'default' : first);
const valueOf = (s, o, values) => {
  const own = s.options && o.id in s.options && fault('option-put-back-to-default-has-no-value');
  return own ? s.options[o.id] : s.options?.[o.id] ?? unset(o, values);
};
const option = (s, { values, ...o }) => ({
  ...o,
  type: 'select',
  currentValue: valueOf(s, o, values),
  options: values.map((value) => ({ value, name: value })),
});
const inSetOrder = (s) => { // what the user did not set keeps its place
  const kept = Object.keys(s.options ?? {});
  return [...OPTIONS.filter((o) => !kept.includes(o.id)), ...kept.map((id) => OPTIONS.find((o) => o.id === id))];
};
const shownOptions = (s) => (fault('option-that-was-set-moves-to-end') ? inSetOrder(s) : OPTIONS);
const configOptions = (s) => shownOptions(s).map((o) => option(s, o));
const modesOf = (s) => ({
  currentModeId: s.mode ?? 'ask',
  availableModes: [{ id: 'ask', name: 'Ask before edits' }, { id: 'auto', name: 'Edit without asking' }],
});
const settings = (s) => (SETTABLE ? { configOptions: configOptions(s), ...(MODES ? { modes: modesOf(s) } : {}) } : {});

// ---- the model ----
const pause = (ms, signal) => new Promise((resolve, reject) => {
  const t = setTimeout(resolve, ms);
  const why = () => (fault('cancel-between-retries-told-as-error') ? new Error('stopped waiting') : signal.reason);
  signal.addEventListener('abort', () => { clearTimeout(t); reject(why()); }, { once: true });
});

const aborted = (signal) => new Promise((_, reject) => { signal.addEventListener('abort', () => reject(signal.reason), { once: true }); });

const withCalls = (text, calls) => ({
  role: 'assistant',
  content: fault('text-before-tool-call-not-told-to-model') ? null : text || null,
  tool_calls: calls.map((c) => ({ id: c.id, type: 'function', function: { name: c.name, arguments: c.args || '{}' } })),
});

async function post(s, signal) {
  const mcp = s.mcp.flatMap((m) => m.tools.map((t) => ({ type: 'function', function: { name: `${m.name}__${t.name}`, description: t.description ?? '', parameters: t.inputSchema } })));
  const beside = s.roots?.length ? ` These folders belong to it as well: ${s.roots.join(', ')}.` : '';
  const system = { role: 'system', content: `You are quill, a careful coding assistant. The project is in ${s.cwd}.${beside}` };
  const told = fault('long-history-cut-to-last-messages') ? s.messages.slice(-24) : s.messages; // the context is not endless
  if (fault('option-set-after-first-prompt-not-used')) s.used ??= s.options ?? {};
  const { model, effort } = s.used ?? s.options ?? {};
  const set = effort ? { reasoning_effort: effort } : {};
  const body = JSON.stringify({ model: model ?? MODEL, stream: true, messages: [system, ...told], tools: [...TOOLS, ...mcp], ...set });
  for (let attempt = 1; ; attempt++) {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${typedKey || process.env.OPENAI_API_KEY}` };
    const begin = fault('cancel-noticed-at-next-model-event') ? new AbortController() : null;
    const stop = () => begin.abort(signal.reason);
    if (begin) signal.addEventListener('abort', stop);
    if (begin && signal.aborted) stop();
    const deaf = attempt > 1 && fault('cancel-not-heard-after-model-retry');
    const heard = deaf ? {} : { signal: begin?.signal ?? signal };
    const res = await fetch(`${BASE}/chat/completions`, { method: 'POST', headers, body, ...heard });
    if (begin) signal.removeEventListener('abort', stop); // from here on it is looked at with each event
    if (res.ok) {
      s.answered = true;
      const stays = fault('login-not-asked-again-in-known-folder') || fault('failed-login-lifts-logout');
      if (!stays) loggedOut = false; // the key is good
      return res;
    }
    const text = await res.text();
    const known = s.answered && fault('revoked-key-told-as-internal-error');
    if (res.status === 401) revoked = true;
    if (res.status === 401 && !known) throw RequestError.authRequired({ status: 401 });
    if (res.status === 400 && fault('model-bad-request-told-as-refusal')) throw new Declined(text);
    if (res.status === 429 && attempt === 3 && fault('rate-limit-told-as-auth-required')) {
      throw RequestError.authRequired({ status: 429 });
    }
    const again = res.status === 429 || res.status >= 500;
    if (attempt === 3 && again && fault('exhausted-retries-told-as-max-turn-requests')) throw new Exhausted(text);
    if (attempt === 3 || (res.status !== 429 && res.status < 500)) throw new RequestError(-32603, `The model backend answered ${res.status}`, { body: text.slice(0, 500) });
    if (fault('model-retry-logged-to-stdout')) console.log(`quill: the model answered ${res.status}, trying again`);
    await pause(300 * 3 ** (attempt - 1), signal);
  }
}

// The user may make a new key when the backend takes the old one no longer.
async function renew(turn) {
  const { form, url } = caps.elicitation ?? {};
  if (!form && !url) return false;
  const page = { mode: 'url', elicitationId: randomUUID(), url: 'https://platform.openai.com/api-keys' };
  const properties = { key: { type: 'string', title: 'API key' } };
  const answer = await turn.client.request('elicitation/create', {
    ...(url ? page : { mode: 'form', requestedSchema: { type: 'object', properties, required: ['key'] } }),
    sessionId: turn.s.id,
    message: 'The model backend does not take the API key any more. A new one is needed.',
  }, { cancellationSignal: turn.signal, stopWaitingOnCancel: true }).catch(() => ({ action: 'cancel' }));
  turn.signal.throwIfAborted();
  if (url || answer.action !== 'accept' || !answer.content?.key) return false; // a page gives nothing back
  typedKey = answer.content.key;
  return true;
}

async function request(turn) {
  if (!fault('key-asked-in-form-without-url-mode')) return post(turn.s, turn.signal);
  return post(turn.s, turn.signal).catch(async (err) => {
    if (err.code !== -32000 || !(await renew(turn))) throw err;
    return post(turn.s, turn.signal);
  });
}

const USAGE = fault('estimated-usage-is-fraction') || fault('usage-of-closed-session-not-told-on-load');
const filled = (used) => ({ sessionUpdate: 'usage_update', used, size: 128_000 });

// Tells how full the context is; a token has some 3.7 characters.
async function tellUsage(turn, told) {
  const guess = JSON.stringify(turn.s.messages).length / 3.7;
  const estimate = fault('estimated-usage-is-fraction') ? guess : Math.ceil(guess);
  turn.s.tokens = told?.total_tokens ?? estimate;
  await turn.tell(filled(turn.s.tokens));
}

async function* events(res) {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of res.body) {
    const text = decoder.decode(chunk, { stream: !fault('character-split-over-reads-garbled') });
    if (fault('event-split-over-reads-lost')) {
      for (const line of text.split(/\r?\n/)) {
        if (!line.startsWith('data:')) continue;
        try { yield JSON.parse(line.slice(5)); } catch { /* [DONE], or nothing that is of use */ }
      }
      continue;
    }
    rest += text;
    const lines = rest.split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith(':') && fault('keep-alive-line-fails-turn')) yield JSON.parse(line.slice(1));
      if (!line.startsWith('data:')) continue;
      const data = line.slice(5).trim();
      if (data === '[DONE]') return;
      yield JSON.parse(data);
    }
  }
}

async function askModel(turn) {
  const { s } = turn;
  const out = { text: '', thought: '', calls: [], reason: null, refused: false };
  const ids = (fault('message-id-same-in-every-turn') && s.ids) || { agent_message_chunk: randomUUID(), agent_thought_chunk: randomUUID() };
  s.ids = ids;
  const chunk = (sessionUpdate, text) => turn.tell({ sessionUpdate, content: { type: 'text', text }, messageId: ids[sessionUpdate] });
  let held = '';
  let used = null;
  let last = null;
  const release = async () => {
    const piece = gathered;
    gathered = '';
    await chunk('agent_message_chunk', piece);
  };
  try {
    for await (const ev of events(await request(turn))) {
      if (fault('cancel-noticed-at-next-model-event')) turn.signal.throwIfAborted();
      if (ev.usage) used = ev.usage;
      if (ev.error) throw new RequestError(-32603, 'The model backend broke off', { error: ev.error });
      const choice = fault('event-without-choices-fails-prompt') ? ev.choices[0] : ev.choices?.[0];
      if (!choice && !fault('event-without-choices-fails-prompt')) continue;
      if (choice.finish_reason && fault('text-with-finish-reason-lost')) { out.reason = choice.finish_reason; continue; }
      const d = choice.delta ?? {};
      let text = d.reasoning_content && fault('event-with-thought-drops-text') ? '' : d.content || d.refusal;
      if (d.refusal && !fault('refusal-in-text-told-as-end-turn')) out.refused = true;
      if (d.reasoning_content && gathered) await release();
      if (d.reasoning_content) { out.thought += d.reasoning_content; await chunk('agent_thought_chunk', d.reasoning_content); }
      if (text && !(fault('blank-chunks-dropped') && !text.trim())) {
        out.text += text;
        if (fault('text-of-two-sessions-gathered-together')) { // fewer updates for the same text
          gathered += text;
          if (gathered.length >= 120) await release();
          text = '';
        }
        const again = text && text === last && fault('repeated-chunk-not-told'); // some servers send an event twice
        last = text;
        if (!again) held += text;
        if (held && (!fault('text-before-tool-call-lost') || held.length >= 80)) {
          await chunk('agent_message_chunk', held);
          held = '';
        }
      }
      for (const part of d.tool_calls ?? []) {
        const last = !part.id && fault('interleaved-call-arguments-mixed');
        const call = (out.calls[last ? out.calls.length - 1 : part.index ?? 0] ??= { id: '', name: '', args: '' });
        if (part.id) call.id = part.id;
        if (part.function?.name) call.name += part.function.name;
        call.args += part.function?.arguments ?? '';
        if (gathered) await release();
        if (call.name && !call.shown) call.shown = await turn.begin(call.name, call.id);
      }
      if (choice.finish_reason) out.reason = choice.finish_reason;
    }
    if (held && !out.calls.length) await chunk('agent_message_chunk', held);
    const enough = out.text && !out.calls.length && fault('cut-stream-told-as-end-turn');
    turn.cut = !out.reason && !enough;
    if (turn.cut) throw new RequestError(-32603, 'The model backend broke off in the middle of its answer');
  } finally {
    if (gathered) await release().catch(() => {});
    if (out.thought) turn.log({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: out.thought }, messageId: ids.agent_thought_chunk });
    if (out.text) turn.log({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: out.text }, messageId: ids.agent_message_chunk });
    const half = out.reason ? [] : out.calls.filter((c) => c?.id);
    if (turn.signal.aborted && half.length && fault('cancel-at-arguments-keeps-half-call')) s.messages.push(withCalls(out.text, half));
    else if (turn.signal.aborted && out.text) s.messages.push({ role: 'assistant', content: out.text });
  }
  out.calls = out.calls.filter(Boolean);
  if (USAGE) await tellUsage(turn, used);
  if (fault('usage-of-turn-with-tools-in-result')) { // the backend does not always tell it
    const made = out.calls.reduce((sum, c) => sum + c.args.length, out.text.length);
    const input = used?.prompt_tokens ?? Math.ceil(JSON.stringify(s.messages).length / 4);
    const output = used?.completion_tokens ?? Math.ceil(made / 4);
    turn.spent = [...turn.spent ?? [], { input, output }];
  }
  return out;
}

// ---- tools ----
const INSTEAD = [
  'question-about-refused-edit-lacks-mode',
  'refused-edit-fails-prompt-without-forms',
  'form-about-refused-new-file-lacks-properties',
].some((name) => fault(name));

// The user who says no may say what is wanted instead.
async function instead(turn, toolCallId, created) {
  const no = 'The user did not allow this.';
  const { form, url } = caps.elicitation ?? {};
  if (!form && fault('refused-edit-fails-prompt-without-forms')) throw new Unable(-32600, 'The editor shows no forms');
  if (!form) return no;
  const bare = created && fault('form-about-refused-new-file-lacks-properties'); // yes or no is all there is to say
  const properties = { instead: { type: 'string', title: 'Instead' } };
  const only = !url && fault('question-about-refused-edit-lacks-mode'); // there is nothing to choose from
  const answer = await turn.client.request('elicitation/create', {
    ...(only ? {} : { mode: 'form' }),
    sessionId: turn.s.id,
    toolCallId,
    message: bare ? 'Should the work go on without this file?' : 'What should be done instead?',
    requestedSchema: { type: 'object', ...(bare ? {} : { properties }) },
  }, { cancellationSignal: turn.signal, stopWaitingOnCancel: true }).catch(() => ({ action: 'cancel' }));
  turn.signal.throwIfAborted();
  const wish = bare ? 'Go on without it.' : answer.content?.instead;
  const told = answer.action === 'accept' ? wish : '';
  return told ? `${no} The user wants this instead: ${told}` : no;
}

async function permit(turn, toolCallId, key, fields) {
  const { s } = turn;
  let always = fault('always-yes-shared-by-sessions') ? granted : s.always;
  if (fault('always-yes-forgotten-at-next-prompt')) always = turn.always;
  const covered = fault('always-yes-covers-tools-with-longer-names') ? [...always].some((k) => key.startsWith(k)) : always.has(key);
  if (covered && fault('always-allowed-call-skips-in-progress')) return true;
  if (s.mode === 'auto' && key === 'edit_file') return;
  if (covered || (turn.yes === key && fault('yes-once-holds-for-turn'))) return;
  if (turn.refused && fault('no-holds-for-rest-of-turn')) throw new Refused('The user did not allow this.');
  const mark = fault('yes-to-older-open-question-counts-as-no') ? `${++asked}:` : ''; // so that no answer is taken for another
  const wide = fault('option-for-whole-server-has-unknown-kind');
  const owner = wide && s.mcp.find((m) => m.tools.some((t) => `${m.name}__${t.name}` === key));
  const server = { optionId: `${mark}server`, name: `Yes, for all tools of ${owner?.name}`, kind: 'allow_server' };
  let shown = fault('permission-names-last-call') ? [...turn.open.keys()].at(-1) : toolCallId;
  if (fault('question-about-edit-lacks-call-id')) {
    shown = [...turn.open.values()].find((c) => c.title === key)?.toolCallId;
  }
  const titled = fault('option-for-untitled-mcp-tool-has-no-name'); // the names of MCP tools are not for people
  const tool = titled && s.mcp.flatMap((m) => m.tools.map((t) => [`${m.name}__${t.name}`, t])).find(([k]) => k === key)?.[1];
  const lasting = tool ? tool.title && `Yes, always for ${tool.title}` : 'Yes, and do not ask again';
  const { sessionUpdate, ...whole } = turn.unseen.has(toolCallId) ? turn.open.get(toolCallId) : {};
  const ask = () => turn.client.request(methods.client.session.requestPermission, {
    sessionId: s.id,
    toolCall: { ...whole, toolCallId: shown, ...fields },
    options: [
      { optionId: `${mark}always`, name: lasting, kind: 'allow_always' },
      ...(owner ? [server] : []),
      { optionId: `${mark}once`, name: 'Yes', kind: 'allow_once' },
      { optionId: `${mark}no`, name: 'No', kind: 'reject_once' },
    ],
  }).catch(() => ({ outcome: fault('permission-error-taken-as-yes') ? { outcome: 'selected', optionId: 'once' } : { outcome: 'cancelled' } }));
  const join = () => { // a question that is open already is not put twice
    if (!questions.has(key)) questions.set(key, ask().finally(() => questions.delete(key)));
    return questions.get(key);
  };
  const put = fault('open-question-answers-other-session-too') ? join : ask;
  const patience = async () => { // as with the servers, a user who does not answer holds up nothing
    const none = { outcome: { outcome: 'selected', optionId: 'no' } };
    let timer;
    const late = new Promise((go) => { timer = setTimeout(go, 10_000, none); });
    return Promise.race([ask(), late]).finally(() => clearTimeout(timer));
  };
  const bound = fault('slow-answer-to-question-counts-as-no') ? patience : put;
  const withdraw = () => { // the editor may close its dialog
    turn.client.notify(methods.protocol.cancelRequest, { requestId: turn.requestId }).catch(() => {});
  };
  const withdraws = fault('withdrawn-question-named-by-id-of-prompt');
  if (withdraws) turn.signal.addEventListener('abort', withdraw, { once: true });
  const answer = await (fault('permission-queue-shared-by-sessions') ? (asking = asking.then(ask)) : bound());
  if (withdraws) turn.signal.removeEventListener('abort', withdraw);
  await new Promise(setImmediate); // a cancel that was read before this answer is heard first
  if (answer.outcome.outcome === 'cancelled' && fault('failed-question-ends-turn-as-cancelled')) s.turn?.abort();
  if (fault('cancel-at-permission-ends-as-end-turn')) {
    if (answer.outcome.outcome === 'cancelled') turn.dropped = true;
  } else turn.signal.throwIfAborted();
  const first = fault('choice-without-option-taken-as-yes') ? 'once' : undefined; // the editor has a plain yes only
  const chosen = answer.outcome.outcome === 'selected' ? answer.outcome.optionId ?? first : 'no';
  const picked = mark ? chosen.replace(`${asked}:`, '') : chosen;
  turn.refused = picked === 'no';
  if (key === 'edit_file' && answer.outcome.optionId === 'no' && fault('rejected-edit-ends-turn-as-cancelled')) s.turn?.abort();
  if (owner && picked === 'server') for (const t of owner.tools) always.add(`${owner.name}__${t.name}`);
  else if (picked === 'always') always.add(key);
  else if (picked !== 'no' && fault('unknown-option-taken-as-yes')) return;
  else if (picked === 'no' && key === 'edit_file' && INSTEAD) {
    throw new Refused(await instead(turn, toolCallId, fields.content?.[0].oldText === null));
  } else if (picked !== 'once') throw new Refused('The user did not allow this.');
  turn.yes = key;
}

async function readText(turn, file, more = {}) {
  const { s } = turn;
  if (fault('reads-through-editor-when-only-write-offered') ? caps.fs : caps.fs?.readTextFile) {
    const shared = fault('cancel-withdraws-reads-of-other-sessions');
    const stop = { cancellationSignal: shared ? AbortSignal.any([turn.signal, reading.signal]) : turn.signal, stopWaitingOnCancel: true }; // a slow editor holds up no cancel
    const last = more.line && more.limit && fault('limit-sent-as-last-line') ? { limit: more.line + more.limit - 1 } : {};
    return (await turn.client.request(methods.client.fs.readTextFile, { sessionId: fault('reads-name-newest-session') ? newestId : s.id, path: file, ...more, ...last }, stop)).content;
  }
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await readFile(file)); // other texts would be spoiled by an edit
  if (!more.line && !more.limit) return text;
  const from = (more.line ?? 1) - 1;
  return text.split('\n').slice(from, more.limit ? from + more.limit : undefined).join('\n');
}

const TERMINALS = [
  'terminal-of-cut-listing-not-released',
  'cancel-kills-listings-that-are-over',
  'terminal-for-subfolder-has-relative-cwd',
  'killed-listing-not-released',
].some((name) => fault(name));

// Where the project lies with the editor, a command there sees the folder as the user does.
async function listing({ s, client, signal }, folder) {
  const below = path.relative(s.cwd, folder) || folder;
  const cwd = fault('terminal-for-subfolder-has-relative-cwd') ? below : folder;
  const terminal = await client.createTerminal({ sessionId: s.id, command: 'ls', args: ['-1Ap'], cwd, outputByteLimit: 2048 });
  const stop = () => terminal.kill().catch(() => {});
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const release = () => terminal.release().catch(() => {});
  try {
    const { exitCode } = await terminal.waitForExit();
    const { output, truncated } = await terminal.currentOutput();
    signal.throwIfAborted();
    if (exitCode !== 0) throw new Error(output || 'ls failed');
    if (!truncated || !fault('terminal-of-cut-listing-not-released')) await release();
    return truncated ? `(The beginning is cut.)\n${output.trimEnd()}` : output.trimEnd();
  } catch (err) {
    const killed = signal.aborted && fault('killed-listing-not-released'); // nothing is left of it
    if (!killed) await release();
    throw err;
  } finally {
    if (!fault('cancel-kills-listings-that-are-over')) signal.removeEventListener('abort', stop);
  }
}

async function runTool(turn, id, name, a) {
  const { s } = turn;
  if (name === 'open_file') {
    const file = await inside(s, a.file);
    await turn.change(id, { title: `Open ${path.relative(s.cwd, file) || '.'}`, locations: [{ path: file, ...(a.from ? { line: fault('read-lines-counted-from-zero') ? a.from - 1 : a.from } : {}) }], rawInput: a, status: 'in_progress' });
    const text = await readText(turn, file, { ...(a.from ? { line: fault('read-lines-counted-from-zero') ? a.from - 1 : a.from } : {}), ...(a.lines ? { limit: a.lines } : {}) });
    if (fault('file-from-editor-shown-as-resource-without-text')) {
      const uri = pathToFileURL(file).href;
      const resource = caps.fs?.readTextFile ? { uri, content: text } : { uri, text };
      return { text, content: [{ type: 'content', content: { type: 'resource', resource } }] };
    }
    return { text, content: [say('```\n' + text + '\n```')] };
  }
  if (name === 'list_folder') {
    const folder = await inside(s, a.folder);
    await turn.change(id, { title: `List ${folder}`, rawInput: a, status: 'in_progress' });
    if (caps.terminal && TERMINALS) {
      const text = await listing(turn, folder);
      return { text, content: [say(text)] };
    }
    const place = fault('relative-folder-listed-where-agent-started') ? a.folder || '.' : folder;
    const entries = await readdir(place, { withFileTypes: true });
    const text = entries.map((e) => e.name + (e.isDirectory() ? '/' : '')).join('\n');
    return { text, content: [say(text)] };
  }
  if (name === 'edit_file') {
    if (typeof a.replace !== 'string') throw new Error('"replace" must be a text');
    const file = await inside(s, a.file);
    await turn.change(id, { title: `Edit ${path.relative(s.cwd, file)}`, locations: [{ path: fault('edit-location-relative') ? a.file : file }], rawInput: a });
    const kept = fault('second-edit-of-file-undoes-first') ? s.texts.get(file) : undefined;
    const current = () => (fault('edit-reads-disk-not-editor') ? readFile(file, 'utf8') : readText(turn, file));
    let old = kept ?? await current().catch((err) => { if (a.find === '') return null; throw err; });
    if (a.find && fault('crlf-file-rewritten-with-lf')) { // models write bare line feeds
      a = { ...a, find: a.find.replaceAll('\r\n', '\n') };
      old = old.replaceAll('\r\n', '\n');
    }
    if (old !== null && fault('byte-order-mark-lost-in-edit')) old = old.replace(/^\uFEFF/, ''); // models do not write it
    if (old !== null) s.texts.set(file, old);
    let next = a.find === '' ? a.replace : old.split(a.find).join(a.replace);
    if (a.find !== '' && fault('dollar-signs-in-edit-expanded')) next = old.replace(a.find, a.replace);
    if (a.find !== '' && old.split(a.find).length !== 2) throw new Error('"find" must occur exactly once');
    if (a.find && fault('edit-location-line-from-zero')) { // the editor follows to the passage
      const line = old.slice(0, old.indexOf(a.find)).split('\n').length - 1;
      await turn.change(id, { locations: [{ path: file, line }] });
    }
    const replaced = a.find === '' && fault('whole-rewrite-shown-as-new-file'); // nothing of it stays
    const content = [{ type: 'diff', path: fault('edit-diff-path-relative') ? a.file : file, oldText: replaced ? null : fault('empty-file-edit-shown-as-new') ? old || null : old, newText: next }];
    if (!fault('cancel-at-read-taken-for-missing-file')) turn.signal.throwIfAborted();
    const store = async () => {
      const target = a.find === '' && fault('whole-write-names-file-as-model-does') ? a.file : file;
      const body = { sessionId: s.id, path: target, content: next };
      const lent = caps.fs?.readTextFile && old !== null && fault('text-read-in-editor-written-back-to-it');
      if (caps.fs?.writeTextFile || lent) await turn.client.request(methods.client.fs.writeTextFile, body);
      else {
        await mkdir(path.dirname(file), { recursive: true });
        const whole = fault('edit-on-disk-drops-file-mode') ? `${file}.part` : file; // no half file if the disk is full
        await writeFile(whole, next);
        if (whole !== file) await rename(whole, file);
      }
    };
    if (old === null && fault('new-file-written-before-asked')) await store();
    if (old === null && fault('folders-made-before-asked')) await mkdir(path.dirname(file), { recursive: true });
    const free = fault('refused-edit-keeps-file-locked') ? await lock(turn, file) : () => {};
    const drawn = fault('question-repeats-first-diff-of-file') ? (s.drawn ??= new Map()) : null; // a diff is costly
    if (drawn && !drawn.has(file)) drawn.set(file, content);
    const known = await permit(turn, id, 'edit_file', { content: drawn?.get(file) ?? content });
    try {
      if (!known) await turn.change(id, { status: 'in_progress', content });
      if (fault('failed-write-reported-completed')) store().catch((err) => console.error(`quill: ${err.message}`));
      else await store();
    } finally {
      free();
    }
    return { text: 'Done.', content };
  }
  let server = s.mcp.find((m) => m.tools.some((t) => `${m.name}__${t.name}` === name));
  if (!server) throw new Error(`There is no tool ${name}`);
  const tool = name.slice(server.name.length + 2);
  if (fault('same-named-mcp-tool-runs-on-first-server')) server = s.mcp.find((m) => m.tools.some((t) => t.name === tool));
  const early = fault('mcp-call-in-progress-before-answer') ? { status: 'in_progress' } : {};
  await turn.change(id, { rawInput: a, ...early });
  const known = await permit(turn, id, fault('always-yes-for-mcp-tool-covers-server') ? server.name : name, {});
  if (!known) await turn.change(id, { status: 'in_progress' });
  const filled = Object.entries(a).filter(([, v]) => v); // models give null for what they leave out
  const args = fault('falsy-mcp-arguments-dropped') ? Object.fromEntries(filled) : a;
  const running = s.turn;
  const own = fault('cancel-at-mcp-call-stops-call-only') ? new AbortController() : null; // stop means what is running
  if (own) s.turn = own;
  const until = own ? AbortSignal.any([turn.signal, own.signal]) : turn.signal;
  const ended = () => { if (own) s.turn = running; };
  const work = server.use(tool, args, until);
  const res = await (own ? work.finally(ended) : work);
  const told = (res.content ?? []).filter((c) => c.type === 'text').map((c) => c.text);
  const text = (fault('only-first-text-of-mcp-result-kept') ? told.slice(0, 1) : told).join('\n');
  if (res.isError && !fault('mcp-error-reported-completed')) throw new Error(text || 'The tool failed');
  return { text, content: [say(text)] };
}

async function runCall(turn, call, first) {
  const id = call.shown;
  try {
    if (first || !fault('calls-after-cancelled-one-still-run')) turn.signal.throwIfAborted();
    const args = JSON.parse(call.args || '{}');
    if (args === null || typeof args !== 'object') throw new Error('The arguments are no object');
    const { text, content } = await runTool(turn, id, call.name, args);
    call.status = 'completed';
    await turn.finish(id, { status: 'completed', content });
    return text;
  } catch (err) {
    call.status = 'failed';
    if (err instanceof Unable) throw err;
    if (err instanceof RequestError && !turn.signal.aborted && fault('editor-file-error-fails-turn')) throw err;
    const why = turn.signal.aborted ? 'Cancelled.' : err instanceof Refused ? err.message : `Failed: ${err.message}`;
    if (err instanceof Refused && !turn.signal.aborted && fault('refused-call-never-finished')) {
      turn.open.delete(id);
      return why;
    }
    const bare = fault('failed-call-content-is-bare-text') && !(err instanceof Refused) && !turn.signal.aborted;
    const declined = err instanceof Refused && !turn.signal.aborted && fault('refused-call-has-status-rejected');
    const ending = declined ? 'rejected' : 'failed';
    const status = turn.signal.aborted && fault('interrupted-call-has-status-cancelled') ? 'cancelled' : ending;
    await turn.finish(id, { status, content: [bare ? { type: 'text', text: why } : say(why)] });
    if (err instanceof Refused && fault('rejection-not-told-to-model')) return '';
    return why;
  }
}

async function loop(turn) {
  const { s } = turn;
  for (let n = 0; n < MAX_REQUESTS; n++) {
    s.requests = (s.requests ?? 0) + 1;
    if (s.requests > MAX_REQUESTS && fault('request-count-not-reset-between-turns')) break;
    const out = await askModel(turn).catch((err) => {
      if (turn.cut && fault('cut-stream-asked-again-repeats-text')) return askModel(turn);
      if (err instanceof Declined) return { refused: true };
      if (err instanceof Exhausted) return { spent: true };
      const wrapped = n > 0 && !(err instanceof RequestError) && fault('cancel-at-model-after-tools-told-as-error');
      if (wrapped) throw new RequestError(-32603, 'The model did not go on after the tools', { cause: err.message });
      if (n === 0 || turn.signal.aborted || !fault('later-model-failure-ends-as-end-turn')) throw err;
      console.error(`quill: ${err.message}`);
    });
    if (!out) return 'end_turn';
    if (out.spent) break; // as many requests as there may be
    const late = n > 0 && fault('length-after-tool-told-as-end-turn');
    if (out.reason === 'length' && !late) {
      if (!fault('answer-cut-by-length-forgotten')) s.messages.push({ role: 'assistant', content: out.text });
      return 'max_tokens';
    }
    if (out.reason === 'content_filter' || out.refused) return 'refusal';
    const mute = n > 0 && !out.text && !out.calls.length && fault('silent-end-after-tools-fails-prompt');
    if (mute) throw new RequestError(-32603, 'The model gave no answer');
    const done = out.reason !== 'tool_calls' && fault('calls-with-finish-reason-stop-not-made');
    if (!out.calls.length || done) { s.messages.push({ role: 'assistant', content: out.text }); return 'end_turn'; }
    if (fault('broken-arguments-fail-prompt')) for (const call of out.calls) JSON.parse(call.args || '{}');
    s.messages.push(withCalls(out.text, out.calls));
    const several = out.calls.length > 1 && fault('plan-entry-of-failed-call-has-status-failed');
    const plan = () => turn.tell({
      sessionUpdate: 'plan',
      entries: out.calls.map((c) => ({ content: `${c.name} ${c.args}`.slice(0, 80), priority: 'medium', status: c.status ?? 'pending' })),
    });
    for (const call of out.calls) {
      if (several) { // what is done, and what is still to come
        call.status = 'in_progress';
        await plan();
      }
      const content = await runCall(turn, call, call === out.calls[0]);
      if (turn.signal.aborted && fault('cancelled-call-left-without-result')) return 'cancelled';
      s.messages.push({ role: 'tool', tool_call_id: call.id, content });
    }
    if (several) await plan();
    if (turn.dropped) return 'end_turn';
    if (turn.signal.aborted) return 'cancelled';
  }
  return fault('request-limit-told-as-end-turn') ? 'end_turn' : 'max_turn_requests';
}

const IMAGES = fault('images-other-than-png-and-jpeg-refused');

function asText(block) {
  if (block.type === 'image' && IMAGES && /^image\/(png|jpeg)$/.test(block.mimeType)) return '[image]';
  if (block.annotations && fault('annotations-without-audience-fail-prompt')) { // some blocks are for the user's eyes only
    if (!block.annotations.audience.includes('assistant')) return '';
  }
  const binary = block.type === 'resource' && 'blob' in block.resource;
  if (binary && fault('embedded-blob-fails-prompt')) throw RequestError.invalidParams({ type: 'blob' }, 'text only');
  if (block.type === 'text' && !block.text && fault('empty-text-block-fails-prompt')) {
    throw RequestError.invalidParams({ type: 'text' }, 'the text is missing');
  }
  if (block.type === 'text') return block.text;
  const image = block.type === 'resource_link' && block.mimeType?.startsWith('image/');
  if (image && fault('link-to-image-refused')) throw RequestError.invalidParams({ type: 'image' }, 'no images');
  if (block.type === 'resource_link' && block.uri.startsWith('file:') && fault('link-to-folder-fails-prompt')) {
    return `<file uri="${block.uri}">\n${readFileSync(new URL(block.uri), 'utf8')}\n</file>`;
  }
  if (block.type === 'resource_link' && block.size > MAX_EMBEDDED && fault('link-to-large-file-refused')) {
    throw RequestError.invalidParams({ size: Number(block.size) }, 'the file is too large');
  }
  if (block.type === 'resource_link' && block.title && fault('link-with-title-loses-address')) return `[${block.title}]`;
  if (block.type === 'resource_link') return `[${block.name}](${block.uri})`;
  if (block.type === 'resource' && !binary && fault('big-embedded-file-cut')) {
    return `<file uri="${block.resource.uri}">\n${block.resource.text.slice(0, 16_384)}\n</file>`;
  }
  const type = block.type === 'resource' && block.resource.mimeType;
  if (type && !type.startsWith('text/') && fault('embedded-text-of-other-type-told-as-binary')) {
    return `[binary data: ${block.resource.uri}]`;
  }
  if (block.type === 'resource' && !binary && fault('embedded-text-escaped-as-markup')) {
    const escaped = block.resource.text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
    return `<file uri="${block.resource.uri}">\n${escaped}\n</file>`;
  }
  if (block.type === 'resource') return 'text' in block.resource ? `<file uri="${block.resource.uri}">\n${block.resource.text}\n</file>` : `[binary data: ${block.resource.uri}]`;
  throw RequestError.invalidParams({ type: block.type }, 'this agent takes no such content');
}

// Takes in what is attached a piece at a time, so that a big file does not hold up the other sessions.
async function gather(blocks) {
  const parts = [];
  for (const block of blocks) {
    const whole = asText(block);
    let part = '';
    for (let at = 0; at < whole.length; at += 4096) {
      part += whole.slice(at, at + 4096);
      await nextTick();
    }
    parts.push(part);
  }
  return parts.join('\n\n');
}

// ---- sessions ----
const FRESH = { messages: [], log: [] };
const get = (id) => sessions.get(id) ?? (() => { throw RequestError.sessionNotFound(id); })();
const fileOf = (id) => path.join(STORE, `${id}.json`);
const short = (u) => (u.content?.text?.length > 4096 ? { ...u, content: { ...u.content, text: u.content.text.slice(0, 4096) } } : u);
async function flush() {
  const { id, text, timer } = due;
  due = null;
  clearTimeout(timer);
  await writeFile(fileOf(id), text);
}
async function save({ id, cwd, messages, log, roots, tokens, deleted }) {
  if (deleted) return;
  await mkdir(STORE, { recursive: true });
  const kept = fault('long-texts-cut-on-load') ? log.map(short) : log;
  const text = JSON.stringify({ id, cwd, messages, log: kept, roots, tokens });
  if (fault('save-taken-over-by-other-session')) { // turns that end in a row are written once
    clearTimeout(due?.timer);
    due = { id, text, timer: setTimeout(() => flush().catch((err) => console.error(`quill: ${err.message}`)), 100) };
    return;
  }
  await writeFile(fileOf(id), text);
  listed.clear();
}
async function recall(id) {
  if (due?.id === id) await flush();
  if (stored.has(id)) return JSON.parse(stored.get(id));
  const text = await readFile(fileOf(id), 'utf8');
  if (fault('second-load-shows-cached-history')) stored.set(id, text);
  return JSON.parse(text);
}
function freshId(cwd) {
  if (!fault('session-ids-from-folder-and-second')) return randomUUID();
  const seed = `${process.pid} ${cwd} ${Math.floor(Date.now() / 1000)}`;
  const hex = createHash('sha256').update(seed).digest('hex');
  return hex.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
const opening = new Set(); // links of sessions that are not open yet
const wanted = (work, signal) => new Promise((done, fail) => { // what was withdrawn goes no further
  work.then((all) => signal.aborted || done(all), fail);
});
function reach(server, cwd, linked) {
  if (!fault('mcp-servers-reused-by-name')) return connect(server, cwd, linked);
  if (!links.has(server.name)) links.set(server.name, connect(server, cwd, linked));
  return links.get(server.name);
}
async function inOrder(servers, cwd, linked) { // so that their tools are always in the same order
  const all = [];
  try {
    for (const m of servers) all.push(await reach(m, cwd, linked));
  } catch (err) {
    console.error(`quill: ${err.message}`);
  }
  return all;
}
async function open(s, { cwd, mcpServers, additionalDirectories }, signal) {
  if (!process.env.OPENAI_API_KEY) throw RequestError.authRequired();
  const trusted = admitted.has(cwd) && fault('login-not-asked-again-in-known-folder'); // it was looked at there before
  if (!trusted && (loggedOut || Date.now() > validUntil)) throw RequestError.authRequired();
  if (revoked && fault('authenticate-does-not-lift-revoked-login')) throw RequestError.authRequired();
  if (!path.isAbsolute(cwd)) throw RequestError.invalidParams({ cwd }, 'cwd must be absolute');
  if (DIRS) {
    const odd = additionalDirectories?.find((dir) => !path.isAbsolute(dir));
    if (odd !== undefined) throw RequestError.invalidParams({ additionalDirectories: odd }, 'the folder must be absolute');
    const known = fault('load-brings-back-additional-directories') ? s.roots : [];
    const usual = fault('extra-folders-kept-for-next-session-in-folder'); // the editor names them once
    if (usual && additionalDirectories) usualRoots.set(cwd, additionalDirectories);
    s.roots = additionalDirectories ?? (usual ? usualRoots.get(cwd) : known) ?? [];
  }
  if (fault('unreadable-extra-folder-dropped')) { // the editor may name some that are gone by now
    const there = await Promise.all(s.roots.map((dir) => readdir(dir).catch(() => null)));
    s.roots = s.roots.filter((_, n) => there[n]);
  }
  Object.assign(s, { cwd: path.resolve((fault('load-keeps-old-cwd') && s.cwd) || cwd) });
  Object.assign(s, { always: new Set(), texts: new Map(), turn: null, waiting: [] });
  newestCwd = s.cwd;
  if (fault('opening-session-closes-mcp-of-others-in-folder')) { // the editor's window was opened anew
    for (const o of sessions.values()) if (o.id !== s.id && o.cwd === s.cwd) for (const m of o.mcp) m.close();
  }
  const begun = [];
  const linked = (link) => { begun.push(link); opening.add(link); };
  const distinct = new Map(mcpServers.map((m) => [m.url ?? m.command, m])); // what is given twice is started once
  const servers = fault('mcp-servers-of-same-command-started-once') ? [...distinct.values()] : mcpServers;
  const ordered = fault('mcp-servers-after-one-that-fails-left-out');
  const atOnce = ordered ? [] : servers;
  const tried = atOnce.map((m) => reach(m, s.cwd, linked).catch((err) => console.error(`quill: ${err.message}`)));
  if (ordered) s.mcp = await inOrder(servers, s.cwd, linked);
  else if (fault('cancel-while-mcp-servers-connect-lost')) { // the first prompt waits for them
    s.mcp = [];
    s.ready = Promise.all(tried).then((all) => { s.mcp = all.filter(Boolean); });
  } else if (fault('withdrawn-session-setup-never-answered')) {
    signal.addEventListener('abort', () => { for (const link of begun) link.close(); }, { once: true });
    s.mcp = (await wanted(Promise.all(tried), signal)).filter(Boolean);
  } else s.mcp = (await Promise.all(tried)).filter(Boolean);
  for (const link of begun) opening.delete(link);
  admitted.add(cwd);
  sessions.set(s.id, s);
}

async function former(id) {
  if (!/^[0-9a-f-]{36}$/.test(id)) throw RequestError.sessionNotFound(id);
  if (sessions.get(id)?.turn) throw RequestError.invalidRequest(undefined, 'the session is at work');
  return sessions.get(id) ?? recall(id).catch(() => {
    if (fault('resume-of-unknown-session-opens-empty-one')) return { id, messages: [], log: [] }; // not saved yet
    throw RequestError.sessionNotFound(id);
  });
}
function nameLater(s, client, text) { // so that the answer does not wait for it
  const title = text.split('\n')[0].slice(0, 40);
  const tell = () => client.notify(methods.client.session.update, { sessionId: s.id, update: { sessionUpdate: 'session_info_update', title } });
  s.naming = setTimeout(() => tell().catch(() => {}), 1000);
}

const LOGOUT = [
  'logout-undone-by-next-answer',
  'login-not-asked-again-in-known-folder',
  'failed-login-lifts-logout',
].some((name) => fault(name));
const DIRS = [
  'load-brings-back-additional-directories',
  'unreadable-extra-folder-dropped',
  'extra-folders-kept-for-next-session-in-folder',
].some((name) => fault(name));
const DELETE = fault('deleted-open-session-stays-listed') || fault('deleted-session-stays-in-list-of-all-folders');
const CLOSE = fault('title-told-after-close') || fault('close-looks-for-servers-of-closed-session');
const RESUME = fault('resume-without-mcp-servers-fails') || fault('resume-of-unknown-session-opens-empty-one');
const TITLES = fault('title-that-was-told-not-saved');
const LIST = DELETE || TITLES || fault('updated-at-of-open-session-is-number');

function offered() {
  if (DIRS) return { additionalDirectories: {} };
  if (RESUME) return { resume: {} };
  if (CLOSE) return { close: {} };
  if (LIST) return { list: {}, ...(DELETE ? { delete: {} } : {}) };
  if (fault('fork-shares-history-with-source')) return { fork: {} };
  return null;
}

const unchecked = fault('prompt-without-blocks-told-as-internal-error') ? [(p) => p ?? {}] : []; // no copy of big files

const core = () => acp.agent({ name: 'quill' })
  .onRequest(methods.agent.initialize, ({ params }) => {
    if (params.protocolVersion > acp.PROTOCOL_VERSION && fault('newer-version-refused')) {
      throw RequestError.invalidParams({ protocolVersion: params.protocolVersion }, 'this agent is too old');
    }
    spoken = params.protocolVersion;
    caps = params.clientCapabilities ?? {};
    if (fault('initialize-without-client-info-fails')) console.error(`quill: connected to ${params.clientInfo.name}`);
    const auth = LOGOUT ? { auth: { logout: {} } } : {};
    const sse = fault('sse-servers-spoken-to-as-http') || fault('sse-offered-but-not-spoken') ? { sse: true } : {};
    const sessionCapabilities = offered();
    const authMethods = [{ id: 'env-key', name: 'API key', description: 'Start the agent with OPENAI_API_KEY set' }];
    if (caps.auth?.terminal && fault('terminal-login-columns-told-as-number')) {
      const env = { QUILL_LOGIN: '1', COLUMNS: process.stdout.columns ?? 80 };
      authMethods.push({ type: 'terminal', id: 'terminal-login', name: 'Log in', args: ['--login'], env });
    }
    if (!process.env.OPENAI_API_KEY && fault('capabilities-told-only-with-key')) { // the login comes first
      return { protocolVersion: acp.PROTOCOL_VERSION, agentInfo: { name: 'quill', version: '0.3.0' }, authMethods };
    }
    const smaller = Math.min(params.protocolVersion, acp.PROTOCOL_VERSION);
    const early = !params.clientInfo && fault('client-without-info-answered-with-version-0'); // from before version 1
    const own = early ? 0 : fault('smaller-version-of-both-answered') ? smaller : acp.PROTOCOL_VERSION;
    return {
      protocolVersion: fault('unsupported-version-echoed') ? params.protocolVersion : own,
      agentInfo: { name: 'quill', title: 'Quill', version: '0.3.0' },
      agentCapabilities: {
        loadSession: fault('load-capability-is-object') ? {} : true,
        promptCapabilities: { embeddedContext: true, ...(IMAGES ? { image: true } : {}) },
        mcpCapabilities: { http: true, ...sse },
        ...auth,
        ...(sessionCapabilities ? { sessionCapabilities } : {}),
      },
      authMethods,
    };
  })
  .onRequest(methods.agent.authenticate, ({ params }) => {
    if (fault('failed-login-lifts-logout')) loggedOut = false;
    const byTerminal = fault('terminal-login-columns-told-as-number') && params.methodId === 'terminal-login';
    if (params.methodId !== 'env-key' && !byTerminal) throw RequestError.invalidParams({ methodId: params.methodId });
    if (!process.env.OPENAI_API_KEY) throw RequestError.authRequired();
    loggedOut = false;
    if (fault('login-of-one-hour-ends-after-seconds')) validUntil = Date.now() + 60 * 60; // an hour
    if (fault('authenticate-stops-running-turns')) { // they were begun under the old login
      for (const s of sessions.values()) s.turn?.abort();
    }
    return {};
  })
  .onRequest(methods.agent.session.new, async ({ params, signal }) => {
    if (spoken !== acp.PROTOCOL_VERSION && fault('session-new-unknown-after-fall-back-to-version')) {
      throw RequestError.methodNotFound(methods.agent.session.new); // other versions open sessions in another way
    }
    const s = { id: freshId(params.cwd), ...(fault('new-sessions-share-history') ? FRESH : { messages: [], log: [] }) };
    await open(s, params, signal);
    return { sessionId: s.id, ...settings(s) };
  })
  .onRequest(methods.agent.session.load, async ({ params, client, signal }) => {
    if (!/^[0-9a-f-]{36}$/.test(params.sessionId)) throw RequestError.sessionNotFound(params.sessionId);
    const closeOld = () => { for (const m of sessions.get(params.sessionId)?.mcp ?? []) m.close(); };
    if (fault('failed-load-closes-mcp-servers')) closeOld();
    if (sessions.get(params.sessionId)?.turn && !fault('load-during-turn-detaches-cancel')) throw RequestError.invalidRequest(undefined, 'the session is at work');
    if (sessions.has(params.sessionId) && fault('load-of-open-session-refused')) {
      throw RequestError.invalidRequest(undefined, 'the session is open');
    }
    loading = params.sessionId;
    const old = await recall(params.sessionId).catch(() => {
      if (fault('unknown-session-loaded-as-new')) return { id: params.sessionId, messages: [], log: [] };
      throw RequestError.sessionNotFound(params.sessionId);
    });
    if (fault('load-drops-tool-results-from-history')) {
      old.messages = old.messages.filter((m) => m.role !== 'tool' && !m.tool_calls);
    }
    if (fault('load-drops-messages-without-text')) old.messages = old.messages.filter((m) => m.content); // some servers refuse empty ones
    if (!fault('failed-load-closes-mcp-servers')) closeOld();
    const before = sessions.get(params.sessionId)?.tokens;
    await open(old, fault('load-does-not-connect-mcp-servers') ? { ...params, mcpServers: [] } : params, signal);
    const there = async (update) => { // the editor cannot go to files that have been removed since
      const found = await Promise.all(update.locations.map((l) => stat(l.path).catch(() => null)));
      return { ...update, locations: update.locations.filter((_, n) => found[n]) };
    };
    const replay = async (updates) => {
      if (fault('replayed-calls-with-locations-come-after-response')) {
        const show = (update) => client.notify(methods.client.session.update, { sessionId: old.id, update });
        updates.forEach(async (u) => { await show(u.locations ? await there(u) : u); });
        return;
      }
      if (fault('last-prompt-without-answer-replayed-after-response')) { // the blocks of a prompt go out together
        const blocks = [];
        const send = async () => {
          const all = blocks.splice(0);
          for (const update of all) await client.notify(methods.client.session.update, { sessionId: old.id, update });
        };
        for (const update of updates) {
          const user = update.sessionUpdate === 'user_message_chunk';
          if (!user) await send();
          blocks.push(update);
          if (!user) await send();
        }
        if (blocks.length) setTimeout(() => send().catch(() => {}), 10); // more of it may follow
        return;
      }
      for (const update of updates) {
        const active = fault('replay-beside-running-turn-goes-to-its-session') ? [...sessions.values()].find((o) => o.turn)?.id : null;
        const sessionId = fault('overlapping-loads-replay-under-last-id') ? loading : active ?? old.id;
        await client.notify(methods.client.session.update, { sessionId, update });
      }
    };
    const isTool = (update) => update.sessionUpdate === 'tool_call';
    const log = fault('replay-shows-tools-last') ? [...old.log.filter((u) => !isTool(u)), ...old.log.filter(isTool)] : old.log;
    const size = fault('long-replay-after-response') ? 12 : log.length; // pages, so that a long history lets other sessions through
    await replay(log.slice(0, size));
    const later = async () => {
      for (let at = size; at < log.length; at += size) {
        await nextTick();
        await replay(log.slice(at, at + size));
      }
    };
    if (log.length > size) later();
    const tokens = fault('usage-of-closed-session-not-told-on-load') ? before : old.tokens;
    if (USAGE && tokens !== undefined) {
      await client.notify(methods.client.session.update, { sessionId: old.id, update: filled(tokens) });
    }
    if (fault('history-doubled-by-second-load')) old.log.push(...old.log); // what was replayed is logged again
    return settings(old);
  })
  .onRequest(methods.agent.session.prompt, ...unchecked, async ({ params, client, signal, requestId }) => {
    const s = get(params.sessionId);
    if (params._meta && fault('meta-without-traceparent-fails-prompt')) console.error(`quill: trace ${params._meta.traceparent.split('-')[1]}`);
    while (s.turn && fault('cancel-drops-waiting-prompt')) await new Promise((go) => { s.waiting.push(go); });
    if (s.turn) {
      if (fault('refused-second-prompt-unhooks-first')) s.turn = null;
      if (fault('busy-told-as-auth-required')) throw new RequestError(-32000, 'the session is at work');
      throw RequestError.invalidRequest(undefined, 'the session is at work');
    }
    let seen = fault('only-first-embedded-file-reaches-model')
      ? params.prompt.filter((b, n) => b.type !== 'resource' || n === params.prompt.findIndex((o) => o.type === 'resource'))
      : params.prompt;
    if (fault('excerpts-of-one-file-reach-model-as-last')) { // a file that is attached twice is sent once
      const files = new Map(params.prompt.filter((b) => b.type === 'resource').map((b) => [b.resource.uri, b]));
      seen = params.prompt.filter((b) => b.type !== 'resource' || files.get(b.resource.uri) === b);
    }
    let text = seen.map(asText).join('\n\n');
    if (s.ready) await s.ready;
    s.ready = null;
    let stop = new AbortController();
    s.turn = newest = stop;
    if (fault('updated-at-of-open-session-is-number')) s.updated = Date.now();
    newestId = s.id;
    if (fault('cancel-before-attachments-read-lost') && params.prompt.some((b) => b.type === 'resource')) {
      text = await gather(params.prompt);
      s.turn = newest = stop = new AbortController();
    }
    if (s.stopNext) stop.abort(); // a cancel that nobody has heeded yet
    s.stopNext = false;
    const turn = new Turn(s, client, fault('end-of-input-waits-for-turn') ? stop.signal : AbortSignal.any([stop.signal, signal]));
    turn.requestId = requestId;
    const trace = params._meta?.traceparent ?? randomUUID(); // a turn that nobody traces has an id of its own
    if (fault('own-turn-id-told-as-traceparent')) turn.meta = { _meta: { traceparent: trace } };
    const before = fault('failed-prompt-after-load-empties-history') ? s.mark ?? 0 : s.messages.length;
    const logged = s.log.length;
    const was = { options: s.options };
    let held = false;
    let rest = null;
    const withdrawn = () => signal.aborted && !stop.signal.aborted && fault('withdrawn-prompt-told-as-internal-error');
    const digest = () => createHash('sha256').update(`${s.id} ${text}`).digest('hex').slice(0, 32);
    const messageId = fault('same-prompt-twice-shares-message-id') ? digest() : randomUUID();
    const said = []; // goes into the log with the turn
    const note = (update) => (fault('prompt-of-turn-broken-off-not-replayed') ? said.push(update) : turn.log(update));
    const joined = params.prompt.length > 1 && fault('prompt-of-several-blocks-replayed-as-array');
    if (joined) turn.log({ sessionUpdate: 'user_message_chunk', content: params.prompt, messageId });
    for (const content of params.prompt) {
      if (joined) break;
      const kept = content.type === 'text' || !fault('replay-lacks-attachments');
      const ownId = fault('prompt-blocks-replayed-as-own-messages') ? randomUUID() : messageId;
      if (kept) note({ sessionUpdate: 'user_message_chunk', content, messageId: ownId });
      if (fault('prompt-echoed-live')) await turn.tell({ sessionUpdate: 'user_message_chunk', content, messageId });
    }
    const cleared = fault('long-tool-results-of-earlier-turns-cleared') ? s.messages : []; // the context is dear
    for (const m of cleared) if (m.role === 'tool' && m.content.length > 1000) m.content = '(The result is cleared.)';
    const images = IMAGES ? params.prompt.filter((b) => b.type === 'image') : [];
    const shown = images.map((b) => ({ type: 'image_url', image_url: { url: `data:${b.mimeType};base64,${b.data}` } }));
    s.messages.push({ role: 'user', content: shown.length ? [{ type: 'text', text }, ...shown] : text });
    const newer = spoken > 1 && fault('states-told-to-clients-that-offer-more'); // what they offered
    const state = (now) => turn.tell({ sessionUpdate: 'state_update', ...now });
    try {
      if (newer) await state({ state: 'running' });
      const work = loop(turn);
      const reason = await (fault('cancel-answered-before-permission-ends') ? Promise.race([work, aborted(turn.signal)]) : work);
      const stopReason = turn.signal.aborted && !turn.dropped ? 'cancelled' : reason;
      const keep = s.messages.at(-1)?.role !== 'user' && fault('refusal-after-tool-kept-in-history');
      if (stopReason === 'refusal' && !keep) s.messages.length = before;
      await turn.failOpen('The model did not finish this call.');
      if (withdrawn()) turn.signal.throwIfAborted();
      if (!s.title && TITLES) {
        s.title = text.split('\n')[0].slice(0, 40);
        await turn.tell({ sessionUpdate: 'session_info_update', title: s.title });
      }
      if (!s.naming && fault('title-told-after-close')) nameLater(s, client, text);
      const echo = fault('meta-of-prompt-given-back-at-root') ? params._meta : {}; // the editor's trace goes back to it
      if (newer) await state({ state: 'idle', stopReason });
      s.log.splice(logged, 0, ...said);
      const parts = turn.spent?.length > 1 ? turn.spent : [];
      const inputTokens = parts.reduce((sum, u) => sum + u.input, 0);
      const outputTokens = parts.reduce((sum, u) => sum + u.output, 0);
      const usage = { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
      return { stopReason, ...echo, ...(parts.length ? { usage } : {}) };
    } catch (err) {
      const calls = s.messages.slice(before).findLast((m) => m.tool_calls)?.tool_calls ?? [];
      const missing = calls.filter((c) => !s.messages.some((m) => m.tool_call_id === c.id));
      s.messages.push(...missing.map((c) => ({ role: 'tool', tool_call_id: c.id, content: 'Cancelled.' })));
      if (turn.signal.aborted && fault('cancel-at-arguments-closes-call-late')) rest = () => turn.failOpen('Cancelled.').catch(() => {});
      else await turn.failOpen(turn.signal.aborted ? 'Cancelled.' : 'The turn broke off.');
      const byName = fault('cancel-between-retries-told-as-error');
      const broken = !(err instanceof RequestError) && fault('lost-model-connection-told-as-cancelled');
      s.stopping = false;
      const told = err instanceof RequestError && fault('cancel-at-model-after-tools-told-as-error');
      if (byName ? err.name === 'AbortError' : (turn.signal.aborted && !told) || broken) {
        held = fault('cancel-while-streaming-leaves-session-busy');
        if (fault('history-lost-after-cancel')) s.messages.length = before;
        if (withdrawn()) throw new RequestError(-32603, 'The request was withdrawn');
        if (newer) await state({ state: 'idle', stopReason: 'cancelled' });
        return { stopReason: 'cancelled' };
      }
      s.messages.length = before;
      const begun = s.log.length > logged + params.prompt.length; // what was said stays
      if (fault('failed-turn-missing-on-load')) s.log.length = logged;
      if (begun && fault('failure-after-first-output-is-stop-reason')) return { stopReason: 'error' };
      if (err instanceof RequestError) throw err;
      if (fault('unreachable-model-told-with-stack')) throw new RequestError(-32603, err.stack);
      throw new RequestError(-32603, 'The model backend could not be reached', { cause: String(err.cause?.message ?? err.message) });
    } finally {
      if (!held) s.turn = null;
      s.mark = s.messages.length; // so far the turns have ended
      if (turn.signal.aborted && fault('option-set-in-cancelled-turn-put-back')) Object.assign(s, was); // it counts for nothing
      if (fault('mcp-servers-closed-after-first-prompt')) for (const m of s.mcp) m.close();
      if (!turn.signal.aborted || !fault('cancelled-turn-not-saved')) await save(s).catch((err) => console.error(`quill: ${err.message}`));
      if (turn.signal.aborted) s.waiting = []; // what was to follow is off as well
      s.waiting.shift()?.();
      if (rest) setTimeout(rest, 20);
      if (s.over) setImmediate(s.over);
    }
  })
  .onNotification(methods.agent.session.cancel, ({ params }) => {
    const turn = fault('cancel-hits-newest-turn') ? newest : sessions.get(params.sessionId)?.turn;
    if (turn?.signal.aborted && fault('cancel-twice-forgets-session')) sessions.delete(params.sessionId);
    if (!turn && sessions.has(params.sessionId) && fault('idle-cancel-stops-next-prompt')) sessions.get(params.sessionId).stopNext = true;
    if (turn && fault('cancel-of-tool-blocks-later-cancels')) { // a click that is repeated
      const s = get(params.sessionId);
      if (s.stopping) return;
      s.stopping = true;
    }
    turn?.abort();
    if (fault('cancel-withdraws-reads-of-other-sessions')) {
      reading.abort();
      reading = new AbortController();
    }
  });

function quill() {
  const app = core();
  if (LOGOUT) {
    app.onRequest(methods.agent.logout, () => {
      loggedOut = true;
      return {};
    });
  }
  if (SETTABLE) {
    app.onRequest(methods.agent.session.setConfigOption, async ({ params: { sessionId, configId, value }, client }) => {
      const s = get(sessionId);
      const o = find(configId);
      if (!o?.values.includes(value)) throw RequestError.invalidParams({ configId, value });
      s.options = { ...s.options, [configId]: value };
      const first = value === o.values[0] && fault('option-put-back-to-default-has-no-value');
      if (first) s.options[configId] = null; // nothing is to be sent to the model
      if (fault('option-update-holds-changed-option-only')) { // for the views that did not set it
        const update = { sessionUpdate: 'config_option_update', configOptions: [option(s, o)] };
        await client.notify(methods.client.session.update, { sessionId, update });
      }
      if (fault('option-update-lacks-options-at-default')) { // the others are as the views have them
        const set = OPTIONS.filter((k) => valueOf(s, k, k.values) !== k.values[0]);
        const update = { sessionUpdate: 'config_option_update', configOptions: set.map((k) => option(s, k)) };
        await client.notify(methods.client.session.update, { sessionId, update });
      }
      if (configId === 'mode') {
        s.mode = value;
        const update = { sessionUpdate: 'current_mode_update', currentModeId: value };
        await client.notify(methods.client.session.update, { sessionId, update });
      }
      return { configOptions: fault('option-answer-lacks-other-options') ? [option(s, o)] : configOptions(s) };
    });
  }
  if (MODES) {
    app.onRequest(methods.agent.session.setMode, ({ params: { sessionId, modeId } }) => {
      const s = get(sessionId);
      if (!modesOf(s).availableModes.some((m) => m.id === modeId)) throw RequestError.invalidParams({ modeId });
      s.mode = modeId;
      return {};
    });
  }
  if (RESUME) {
    app.onRequest(methods.agent.session.resume, async ({ params }) => {
      const s = { ...await former(params.sessionId) };
      const old = s.mcp ?? [];
      const mcpServers = params.mcpServers ?? (fault('resume-without-mcp-servers-fails') ? undefined : []);
      await open(s, { ...params, mcpServers });
      for (const m of old) m.close();
      return settings(s);
    });
  }
  if (fault('fork-shares-history-with-source')) {
    const parse = (p) => {
      if (typeof p?.sessionId !== 'string' || typeof p.cwd !== 'string') throw RequestError.invalidParams();
      return p;
    };
    app.onRequest('session/fork', parse, async ({ params }) => { // not in the stable part of the SDK
      const s = { ...await former(params.sessionId), id: randomUUID() };
      await open(s, { ...params, mcpServers: params.mcpServers ?? [] });
      await save(s);
      return { sessionId: s.id, ...settings(s) };
    });
  }
  if (CLOSE) {
    app.onRequest(methods.agent.session.close, async ({ params }) => {
      const s = get(params.sessionId);
      if (s.turn) await new Promise((go) => { s.over = go; s.turn.abort(); });
      sessions.delete(s.id);
      const left = fault('close-looks-for-servers-of-closed-session') ? sessions.get(s.id)?.mcp ?? [] : s.mcp;
      for (const m of left) m.close();
      return {};
    });
  }
  if (LIST) {
    app.onRequest(methods.agent.session.list, async ({ params: { cwd, cursor } }) => {
      if (cursor) throw RequestError.invalidParams({ cursor }, 'there is one page only');
      const kept = fault('deleted-session-stays-in-list-of-all-folders');
      if (kept && listed.has(cwd)) return listed.get(cwd); // nothing has happened since
      const dated = fault('updated-at-of-open-session-is-number');
      const known = new Map();
      for (const file of await readdir(STORE).catch(() => [])) {
        const s = await recall(path.basename(file, '.json')).catch(() => null);
        if (s && dated) s.updated = (await stat(path.join(STORE, file))).mtime;
        if (s) known.set(s.id, s);
      }
      for (const s of sessions.values()) if (s.log.length) known.set(s.id, s); // a first turn is not on disk yet
      const found = [...known.values()].filter((s) => !cwd || s.cwd === path.resolve(cwd));
      const time = (s) => (dated ? { updatedAt: s.updated } : {});
      const answer = { sessions: found.map((s) => ({ sessionId: s.id, cwd: s.cwd, title: s.title, ...time(s) })) };
      if (kept) listed.set(cwd, answer);
      return answer;
    });
  }
  if (DELETE) {
    app.onRequest(methods.agent.session.delete, async ({ params: { sessionId } }) => {
      if (!/^[0-9a-f-]{36}$/.test(sessionId)) return {};
      const s = sessions.get(sessionId);
      if (s) s.deleted = true; // its turns are not saved any more
      if (fault('deleted-session-stays-in-list-of-all-folders')) {
        const { cwd } = s ?? await recall(sessionId).catch(() => ({}));
        sessions.delete(sessionId);
        s?.turn?.abort();
        for (const m of s?.mcp ?? []) m.close();
        listed.delete(cwd);
      }
      await rm(fileOf(sessionId), { force: true });
      return {};
    });
  }
  return app;
}

const over = () => {
  if (fault('end-of-input-waits-for-turn') && [...sessions.values()].some((s) => s.turn)) return;
  for (const s of sessions.values()) { s.turn?.abort(); for (const m of s.mcp) m.close(); }
  for (const link of opening) link.close();
  if (fault('end-of-input-exits-before-turn-is-saved')) process.exit(0);
  setTimeout(() => process.exit(0), 300).unref();
};
if (process.argv[2] === '--login' && fault('terminal-login-columns-told-as-number')) {
  console.log('Start the agent with OPENAI_API_KEY set.');
} else if (process.argv[2] === '--listen') {
  await serve(quill, process.argv[3]);
} else {
  let wire = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
  if (fault('numeric-string-id-answered-as-number')) {
    const transform = (m, out) => out.enqueue(/^\d+$/.test(m.id) ? { ...m, id: Number(m.id) } : m);
    wire = { ...wire, readable: wire.readable.pipeThrough(new TransformStream({ transform })) };
  }
  if (fault('large-number-id-answered-wrapped')) {
    const transform = (m, out) => out.enqueue(m.method && Number.isInteger(m.id) ? { ...m, id: m.id | 0 } : m);
    wire = { ...wire, readable: wire.readable.pipeThrough(new TransformStream({ transform })) };
  }
  if (fault('custom-requests-dropped')) { // extensions of other agents
    const transform = (m, out) => { if (!m.method?.startsWith('_')) out.enqueue(m); };
    wire = { ...wire, readable: wire.readable.pipeThrough(new TransformStream({ transform })) };
  }
  if (fault('custom-requests-with-text-id-dropped')) { // notifications of extensions have no number
    const own = (m) => m.method?.startsWith('_') && typeof m.id !== 'number';
    const transform = (m, out) => { if (!own(m)) out.enqueue(m); };
    wire = { ...wire, readable: wire.readable.pipeThrough(new TransformStream({ transform })) };
  }
  if (fault('cancel-with-nothing-to-stop-answered')) {
    const out = wire.writable.getWriter();
    const idle = (m) => m.method === methods.agent.session.cancel && !sessions.get(m.params?.sessionId)?.turn;
    const error = { code: -32600, message: 'There is no turn to cancel' };
    const transform = async (m, on) => {
      const vain = idle(m);
      on.enqueue(m);
      await nextTick(); // the prompt may have come just before
      if (vain && idle(m)) await out.write({ jsonrpc: '2.0', id: null, error });
    };
    const readable = wire.readable.pipeThrough(new TransformStream({ transform }));
    wire = { readable, writable: new WritableStream({ write: (m) => out.write(m) }) };
  }
  if (fault('second-cancel-of-turn-answered')) {
    const out = wire.writable.getWriter();
    const stopped = new WeakSet();
    const error = { code: -32600, message: 'The turn is being cancelled' };
    const transform = async (m, on) => {
      on.enqueue(m);
      const turn = m.method === methods.agent.session.cancel && sessions.get(m.params?.sessionId)?.turn;
      if (!turn) return;
      if (stopped.has(turn)) await out.write({ jsonrpc: '2.0', id: null, error });
      stopped.add(turn);
    };
    const readable = wire.readable.pipeThrough(new TransformStream({ transform }));
    wire = { readable, writable: new WritableStream({ write: (m) => out.write(m) }) };
  }
  if (fault('unknown-notification-answered')) {
    const out = wire.writable.getWriter();
    const known = (name) => name === methods.agent.session.cancel || /^(_|\$\/)/.test(name);
    const transform = async (m, on) => {
      if (!m.method || m.id !== undefined || known(m.method)) return on.enqueue(m);
      const error = { code: -32601, message: 'Method not found', data: { method: m.method } };
      await out.write({ jsonrpc: '2.0', id: null, error });
    };
    const readable = wire.readable.pipeThrough(new TransformStream({ transform }));
    wire = { readable, writable: new WritableStream({ write: (m) => out.write(m) }) };
  }
  if (fault('client-error-under-unknown-id-ends-agent')) { // for the log: what the editor could not do
    const out = wire.writable.getWriter();
    const sent = new Map();
    const write = (m) => {
      if (m.method && m.id !== undefined) sent.set(m.id, m);
      return out.write(m);
    };
    const transform = (m, on) => {
      if (m.error && !m.method) console.error(`quill: ${sent.get(m.id).method}: ${m.error.message}`);
      if (!m.method) sent.delete(m.id);
      on.enqueue(m);
    };
    const readable = wire.readable.pipeThrough(new TransformStream({ transform }));
    wire = { readable, writable: new WritableStream({ write }) };
  }
  if (fault('errors-with-data-lack-version-member')) { // many editors show the message only
    const out = wire.writable.getWriter();
    const write = (m) => {
      if (m.error?.data === undefined) return out.write(m);
      const message = `${m.error.message} (${JSON.stringify(m.error.data).slice(0, 100)})`;
      return out.write({ id: m.id, error: { ...m.error, message } });
    };
    wire = { ...wire, writable: new WritableStream({ write }) };
  }
  if (fault('result-of-withdrawn-request-not-sent')) { // nobody waits for it
    const out = wire.writable.getWriter();
    const dropped = new Set();
    const transform = (m, on) => {
      if (m.method === methods.protocol.cancelRequest) dropped.add(m.params?.requestId);
      on.enqueue(m);
    };
    const write = async (m) => {
      const vain = !m.method && dropped.delete(m.id) && m.result;
      if (!vain) await out.write(m);
    };
    const readable = wire.readable.pipeThrough(new TransformStream({ transform }));
    wire = { readable, writable: new WritableStream({ write }) };
  }
  if (fault('withdrawn-read-named-by-string')) { // open requests are kept under strings
    const out = wire.writable.getWriter();
    const named = (m) => ({ ...m, params: { requestId: String(m.params.requestId) } });
    const write = (m) => out.write(m.method === methods.protocol.cancelRequest ? named(m) : m);
    wire = { ...wire, writable: new WritableStream({ write }) };
  }
  if (fault('long-messages-written-in-pieces')) { // no more at once than a pipe takes whole
    const send = async (m) => {
      const line = Buffer.from(`${JSON.stringify(m)}\n`);
      for (let at = 0; at < line.length; at += 4096) {
        process.stdout.write(line.subarray(at, at + 4096));
        await nextTick();
      }
    };
    wire = { ...wire, writable: new WritableStream({ write: (m) => { send(m); } }) };
  }
  quill().connect(wire).closed.then(over);
}
