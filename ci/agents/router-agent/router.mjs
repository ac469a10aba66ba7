#!/usr/bin/env node
// A small coding agent on the router of the official TypeScript SDK: versions 1 and 2 of ACP on one connection.
import { createHash, randomUUID } from 'node:crypto';
import { Readable, Writable } from 'node:stream';
import * as one from '@agentclientprotocol/sdk';
import * as two from '@agentclientprotocol/sdk/experimental/v2';
import { fault } from './fault.mjs';
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
  const user = { type: 'user', id: messageIdOf(s, prompt), content: prompt };
  s.log.push(user);
  s.work = { stop: new AbortController() };
  s.used = new Date().toISOString();
  save(s);
  return { s, user };
}

// messageIdOf gives a prompt its id.
function messageIdOf(s, prompt) {
  if (!fault('same-prompt-same-message-id')) return randomUUID();
  return createHash('sha256').update(s.id + JSON.stringify(prompt)).digest('hex').slice(0, 32);
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

// reopened gives the options of a session that was there before.
const reopened = (version, s) => ({
  configOptions: optionsOf(version, fault('resume-tells-default-mode') ? { mode: 'ask' } : s),
});

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
    return reopened(1, s);
  })
  .onRequest('session/resume', ({ params, client }) => reopened(1, begin(known(params.sessionId), params, client)))
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
  const w = s.work;
  await voice.user(user);
  await voice.state({ state: 'running' });
  const end = await settle(s, work(s, w, user.content, voice)).then((stopReason) => {
    w.heard?.();
    return { stopReason };
  }, (err) => {
    w.failed?.(err);
    return { stopReason: 'error', error: { code: err.code, message: err.message } };
  });
  if (w.withdrawn && fault('cancel-at-permission-never-idle')) return;
  await voice.state({ state: 'idle', ...end });
}

// byteOf waits for the model's first byte, or for its failure.
const byteOf = (w) => new Promise((heard, failed) => { Object.assign(w, { heard, failed }); });

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
    return reopened(2, s);
  })
  .onRequest('session/close', async ({ params }) => {
    await close(params.sessionId);
    return {};
  })
  .onRequest('session/set_config_option', ({ params }) => set(2, params))
  .onRequest('session/prompt', async ({ params }) => {
    const { s, user } = insert(params);
    const byte = fault('early-model-failure-fails-inserted-prompt') ? byteOf(s.work) : undefined;
    s.turn = told(s, user, voiceOf(2, s)).catch(() => {}); // the editor is gone
    await byte;
    return { messageId: user.id };
  })
  .onNotification('session/cancel', ({ params }) => cancel(params.sessionId));

two.agentProtocolRouter().withV1(first).withV2(second)
  .connect(one.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)))
  .closed.then(() => {
    cancelAll();
    process.exit(0);
  });
