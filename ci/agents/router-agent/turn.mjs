// One turn of a session: the model is asked, and its tools are run, until it has said its last.
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import * as one from '@agentclientprotocol/sdk';
import { fault } from './fault.mjs';
import { ask } from './model.mjs';
import { argumentsOf, tools } from './tools.mjs';

const { RequestError } = one;
const STOPS = { stop: 'end_turn', length: 'max_tokens', content_filter: 'refusal' };
const REQUESTS = 25;
const NO = 'The user refused this call.', CANCELLED = 'The user cancelled this call.';

/** Gives the text of a block of a prompt, or refuses it. */
export const textOf = (b) => b.text ?? b.uri ?? (() => { throw RequestError.invalidParams({ type: b.type }); })();

/** Works at a prompt, and returns why the turn has ended, or throws. */
export async function work(s, w, prompt, voice) {
  const start = s.messages.length;
  let reply = null;
  s.messages.push({ role: 'user', content: prompt.map(textOf).join('\n') });
  try {
    for (let n = 0; n < REQUESTS; n++) {
      if (n && fault('idle-told-between-tool-rounds')) await voice.state({ state: 'running' });
      reply = { type: 'agent', id: randomUUID(), text: '' };
      const { calls, end } = await ask(s.messages, w, (text) => say(s, w, reply, text, voice));
      w.stop.signal.throwIfAborted();
      if (end === 'content_filter') { // the model is not to see what it refused
        s.messages.length = start;
        return 'refusal';
      }
      const goesOn = calls.length && end !== 'length';
      s.messages.push({ role: 'assistant', content: reply.text, ...(goesOn && { tool_calls: calls }) });
      reply = null;
      if (!goesOn) return STOPS[end] ?? 'end_turn';
      if (fault('idle-told-between-tool-rounds')) await voice.state({ state: 'idle', stopReason: 'end_turn' });
      for (const call of calls) {
        s.messages.push({ role: 'tool', tool_call_id: call.id, content: await carryOut(s, w, call, voice) });
      }
      w.stop.signal.throwIfAborted();
    }
    return 'max_turn_requests';
  } catch (err) {
    if (w.stop.signal.aborted) {
      if (reply?.text) s.messages.push({ role: 'assistant', content: reply.text });
      return 'cancelled';
    }
    s.messages.length = start;
    if (err instanceof RequestError) throw err;
    throw new RequestError(-32603, `The model could not be reached: ${err.message}`);
  }
}

// say shows a piece of a reply.
function say(s, w, reply, text, voice) {
  const kept = fault('replay-joins-messages-around-tools') ? w.kept ??= { ...reply } : reply;
  if (!kept.text) s.log.push(kept);
  reply.text += text;
  if (kept !== reply) kept.text += text;
  return voice.said(reply, text);
}

// carryOut runs one call of a tool, and returns what the model is told of it.
async function carryOut(s, w, { function: { name, arguments: json } }, voice) {
  if (w.stop.signal.aborted) return CANCELLED;
  const tool = tools[name];
  let args = {}, wrong = null;
  try {
    if (!tool) throw new Error(`There is no tool ${name}.`);
    args = argumentsOf(tool, json);
  } catch (err) {
    wrong = err;
  }
  const e = {
    type: 'tool', id: `call-${++s.calls}`, name, kind: tool?.kind ?? 'other', status: 'pending', input: args,
    title: wrong ? name : tool.title(args), locations: args.path ? [{ path: resolve(s.cwd, args.path) }] : [],
  };
  const become = (status, output) => {
    const unkept = status === 'cancelled' && fault('replayed-cancelled-tool-stays-in-progress');
    return voice.progress(Object.assign(unkept ? { ...e } : e, { status, output }));
  };
  s.log.push(e);
  await voice.announce(e);
  try {
    if (wrong) throw wrong;
    if (!await allowed(s, w, tool, args, e, voice)) {
      await become('failed', NO);
      return NO;
    }
    await become('in_progress');
    w.runs = true;
    const out = await tool.run(args, s.cwd, w.stop.signal);
    await become('completed', out);
    return out;
  } catch (err) {
    const told = w.stop.signal.aborted ? CANCELLED : err.message;
    await become(w.stop.signal.aborted ? 'cancelled' : 'failed', told);
    return told;
  } finally {
    w.runs = false;
  }
}

// allowed asks the user about a call that needs it, and remembers an "always".
async function allowed(s, w, tool, args, e, voice) {
  const key = tool.key?.(args);
  if (!key || s.mode === 'auto' || s.always.includes(key)) return true;
  const options = [
    { optionId: 'once', name: 'Allow', kind: 'allow_once' },
    { optionId: 'always', name: tool.always, kind: 'allow_always' },
    { optionId: 'no', name: 'Reject', kind: 'reject_once' },
  ];
  const chosen = await choice(w, e, options, voice);
  if (chosen === 'always') s.always.push(key);
  return chosen === 'once' || chosen === 'always';
}

// choice waits for what the user chooses, and takes whatever is not an option for a no.
async function choice(w, e, options, voice) {
  let chosen = 'no';
  w.asks = true;
  await voice.state({ state: 'requires_action' });
  try {
    const { outcome } = await Promise.race([voice.permit(e, options), aborted(w.stop.signal)]);
    if (outcome.outcome === 'selected') chosen = outcome.optionId;
    return chosen;
  } finally {
    w.asks = false;
    w.withdrawn = w.stop.signal.aborted;
    const waits = chosen === 'no' && fault('requires-action-stays-after-no');
    if (!w.withdrawn && !waits) await voice.state({ state: 'running' });
  }
}

// aborted never comes to an end, but for a cancel.
const aborted = (signal) => new Promise((_, reject) => {
  const stop = () => reject(signal.reason);
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
});
