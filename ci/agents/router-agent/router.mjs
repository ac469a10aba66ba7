#!/usr/bin/env node
// A small coding agent on the router of the official TypeScript SDK: versions 1 and 2 of ACP on one connection.
import { randomUUID } from 'node:crypto';
import { Readable, Writable } from 'node:stream';
import * as one from '@agentclientprotocol/sdk';
import * as two from '@agentclientprotocol/sdk/experimental/v2';
import { optionsOf, setOption } from './options.mjs';
import { begin, cancel, cancelAll, close, find, fresh, known, page, save } from './sessions.mjs';
import { textOf, work } from './turn.mjs';
import { voiceOf } from './voice.mjs';

const { RequestError } = one;
const me = { name: 'sdk-router', version: '0.1.0' };

// insert takes a prompt into its session, which is at work from then on.
function insert({ sessionId, prompt }) {
  const s = find(sessionId);
  if (s.work) throw RequestError.invalidRequest(undefined, 'the session is at work');
  prompt.forEach(textOf);
  const user = { type: 'user', id: randomUUID(), content: prompt };
  s.log.push(user);
  s.work = { stop: new AbortController() };
  s.used = new Date().toISOString();
  save(s);
  return { s, user };
}

// settle waits for the end of the work, after which the session takes the next prompt.
async function settle(s, ends) {
  try {
    return await ends;
  } finally {
    s.work = null;
    save(s);
  }
}

// set changes an option and gives them all.
function set(version, params) {
  const s = find(params.sessionId);
  setOption(s, params);
  save(s);
  return { configOptions: optionsOf(version, s) };
}

const first = one.agent({ name: me.name })
  .onRequest('initialize', () => ({
    protocolVersion: 1, agentInfo: me,
    agentCapabilities: { loadSession: true, sessionCapabilities: { list: {}, resume: {}, close: {} } },
  }))
  .onRequest('session/new', ({ params, client }) => {
    const s = fresh(params, client);
    return { sessionId: s.id, configOptions: optionsOf(1, s) };
  })
  .onRequest('session/load', async ({ params, client }) => {
    const s = begin(known(params.sessionId), params, client);
    await voiceOf(1, s).replay(s.log);
    return { configOptions: optionsOf(1, s) };
  })
  .onRequest('session/resume', ({ params, client }) => {
    const s = begin(known(params.sessionId), params, client);
    return { configOptions: optionsOf(1, s) };
  })
  .onRequest('session/list', ({ params }) => page(params))
  .onRequest('session/close', async ({ params }) => {
    await close(params.sessionId);
    return {};
  })
  .onRequest('session/set_config_option', ({ params }) => set(1, params))
  .onRequest('session/prompt', async ({ params }) => {
    const { s } = insert(params);
    const ends = settle(s, work(s, s.work, params.prompt, voiceOf(1, s)));
    s.turn = ends.catch(() => {}); // the prompt tells of it
    return { stopReason: await ends };
  })
  .onNotification('session/cancel', ({ params }) => cancel(params.sessionId));

// told is one turn of version 2, which is told of in updates from its prompt to its end.
async function told(s, user, voice) {
  await voice.user(user);
  await voice.state({ state: 'running' });
  const end = await settle(s, work(s, s.work, user.content, voice)).then((stopReason) => ({ stopReason }),
    (err) => ({ stopReason: 'error', error: { code: err.code, message: err.message } }));
  await voice.state({ state: 'idle', ...end });
}

const second = two.agent({ name: me.name })
  .onRequest('initialize', () => ({ protocolVersion: 2, info: me, capabilities: { session: {} } }))
  .onRequest('session/new', ({ params, client }) => {
    two.assertSupportedMcpServers(params.mcpServers, {});
    const s = fresh(params, client);
    return { sessionId: s.id, configOptions: optionsOf(2, s) };
  })
  .onRequest('session/list', ({ params }) => page(params))
  .onRequest('session/resume', async ({ params, client }) => {
    const s = known(params.sessionId), { replayFrom } = params;
    if (replayFrom && replayFrom.type !== 'start') throw RequestError.invalidParams({ replayFrom });
    two.assertSupportedMcpServers(params.mcpServers, {});
    begin(s, params, client);
    const state = { state: !s.work ? 'idle' : s.work.asks ? 'requires_action' : 'running' };
    await voiceOf(2, s).replay(replayFrom ? s.log : [], state);
    return { configOptions: optionsOf(2, s) };
  })
  .onRequest('session/close', async ({ params }) => {
    await close(params.sessionId);
    return {};
  })
  .onRequest('session/set_config_option', ({ params }) => set(2, params))
  .onRequest('session/prompt', ({ params }) => {
    const { s, user } = insert(params);
    s.turn = told(s, user, voiceOf(2, s)).catch(() => {}); // the editor is gone
    return { messageId: user.id };
  })
  .onNotification('session/cancel', ({ params }) => cancel(params.sessionId));

two.agentProtocolRouter().withV1(first).withV2(second)
  .connect(one.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)))
  .closed.then(() => {
    cancelAll();
    process.exit(0);
  });
