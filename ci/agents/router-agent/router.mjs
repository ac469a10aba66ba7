#!/usr/bin/env node
// An agent of text alone, on the router of the official TypeScript SDK: versions 1 and 2 of ACP on one connection.
import { randomUUID } from 'node:crypto';
import { Readable, Writable } from 'node:stream';
import * as one from '@agentclientprotocol/sdk';
import * as two from '@agentclientprotocol/sdk/experimental/v2';

const { RequestError } = one;
const STOPS = { stop: 'end_turn', length: 'max_tokens', content_filter: 'refusal' };
const sessions = new Map(); // by id; those that are closed keep their history
const find = (id) => (sessions.get(id)?.open ? sessions.get(id) : (() => { throw RequestError.sessionNotFound(id); })());
const text = (b) => b.text ?? b.uri ?? (() => { throw RequestError.invalidParams({ type: b.type }); })();

function begin(s, params) {
  if (!params.cwd.startsWith('/')) throw RequestError.invalidParams({ cwd: params.cwd }, 'cwd must be absolute');
  sessions.set(s.id, Object.assign(s, { cwd: params.cwd, open: true }));
  return s;
}
const fresh = (params) => begin({ id: randomUUID(), messages: [], log: [], work: null }, params);

// ask streams one reply of the model and returns why it ended.
async function ask(s, signal, said) {
  const res = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST', signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
    body: JSON.stringify({ model: 'router', stream: true, messages: s.messages }),
  });
  if (!res.ok) throw new RequestError(-32603, `The model answered ${res.status}`);
  let rest = '', reply = '', end = null;
  for await (const piece of res.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    for (const line of lines.filter((l) => l.startsWith('data:') && !l.includes('[DONE]'))) {
      const choice = JSON.parse(line.slice(5)).choices?.[0];
      if (choice?.delta?.content) await said(choice.delta.content), reply += choice.delta.content;
      end = choice?.finish_reason ?? end;
    }
  }
  if (!end) throw new RequestError(-32603, 'The model broke off');
  if (end === 'content_filter') s.messages.pop(); // the model is not to see what it refused
  else s.messages.push({ role: 'assistant', content: reply });
  return STOPS[end] ?? 'end_turn';
}

// work is one turn: it tells chunks, and returns the reason of its end, or throws.
async function work(s, prompt, chunk) {
  const stop = new AbortController();
  s.work = { stop, done: null };
  s.messages.push({ role: 'user', content: prompt.map(text).join('\n') });
  try {
    return await ask(s, stop.signal, chunk);
  } catch (err) {
    if (stop.signal.aborted) return 'cancelled';
    throw err instanceof RequestError ? err : new RequestError(-32603, `The model could not be reached: ${err.message}`);
  } finally {
    s.work = null;
  }
}
const idle = (s) => { if (s.work) throw RequestError.invalidRequest(undefined, 'the session is at work'); };

const first = one.agent({ name: 'sdk-router' })
  .onRequest('initialize', () => ({ protocolVersion: 1, agentInfo: { name: 'sdk-router', version: '0.1.0' }, agentCapabilities: {} }))
  .onRequest('session/new', ({ params }) => ({ sessionId: fresh(params).id }))
  .onRequest('session/prompt', async ({ params: { sessionId, prompt }, client }) => {
    const s = find(sessionId), messageId = randomUUID();
    idle(s);
    const stopReason = await work(s, prompt, (t) => client.notify('session/update', { sessionId, update: {
      sessionUpdate: 'agent_message_chunk', messageId, content: { type: 'text', text: t } } }));
    return { stopReason };
  })
  .onNotification('session/cancel', ({ params }) => sessions.get(params.sessionId)?.work?.stop.abort());

const second = two.agent({ name: 'sdk-router' })
  .onRequest('initialize', () => ({ protocolVersion: 2, info: { name: 'sdk-router', version: '0.1.0' }, capabilities: { session: {} } }))
  .onRequest('session/new', ({ params }) => {
    two.assertSupportedMcpServers(params.mcpServers, {});
    return { sessionId: fresh(params).id };
  })
  .onRequest('session/list', ({ params: { cwd, cursor } }) => {
    if (cursor) throw RequestError.invalidParams({ cursor }, 'all are on one page');
    return { sessions: [...sessions.values()].filter((s) => !cwd || s.cwd === cwd).map((s) => ({ sessionId: s.id, cwd: s.cwd })) };
  })
  .onRequest('session/resume', async ({ params, client }) => {
    const s = sessions.get(params.sessionId);
    if (!s) throw RequestError.sessionNotFound(params.sessionId);
    if (params.replayFrom && params.replayFrom.type !== 'start') throw RequestError.invalidParams({ replayFrom: params.replayFrom });
    two.assertSupportedMcpServers(params.mcpServers, {});
    begin(s, params);
    for (const update of params.replayFrom ? s.log : []) await client.notify('session/update', { sessionId: s.id, update });
    await client.notify('session/update', { sessionId: s.id, update: { sessionUpdate: 'state_update', state: s.work ? 'running' : 'idle' } });
    return {};
  })
  .onRequest('session/close', async ({ params }) => {
    const s = sessions.get(params.sessionId);
    s?.work?.stop.abort();
    await s?.turn;
    if (s) s.open = false;
    return {};
  })
  .onRequest('session/prompt', async ({ params: { sessionId, prompt }, client }) => {
    const s = find(sessionId), messageId = randomUUID(), answerId = randomUUID();
    idle(s);
    const tell = (update) => client.notify('session/update', { sessionId, update });
    const reply = { sessionUpdate: 'agent_message', messageId: answerId, content: [{ type: 'text', text: '' }] };
    prompt.forEach(text);
    const user = { sessionUpdate: 'user_message', messageId, content: prompt };
    s.log.push(user);
    const turn = async () => {
      const ends = work(s, prompt, (t) => {
        if (!s.log.includes(reply)) s.log.push(reply);
        reply.content[0].text += t;
        return tell({ sessionUpdate: 'agent_message_chunk', messageId: answerId, content: { type: 'text', text: t } });
      });
      await tell(user);
      await tell({ sessionUpdate: 'state_update', state: 'running' });
      await tell({ sessionUpdate: 'state_update', state: 'idle', ...await ends.then((stopReason) => ({ stopReason }),
        (err) => ({ stopReason: 'error', error: { code: err.code, message: err.message } })) });
    };
    s.turn = turn().catch(() => {}); // the editor is gone
    return { messageId };
  })
  .onNotification('session/cancel', ({ params }) => sessions.get(params.sessionId)?.work?.stop.abort());

two.agentProtocolRouter().withV1(first).withV2(second)
  .connect(one.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)))
  .closed.then(() => process.exit(0));
