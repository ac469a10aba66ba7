#!/usr/bin/env node
// The smallest whole endpoint on the official packages: the schemas check the input, the encoder writes the events, and
// the model is asked by chat completions. It keeps nothing: the conversation and the state are what the client posts.
import { randomUUID } from 'node:crypto';
import { EventType, PROTOCOL_VERSION, contentToText } from '@ag-ui/core';
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import { EventEncoder } from '@ag-ui/encoder';
import { schemaOf, serve, tools } from '../web.mjs';
import { fault } from './fault.mjs';
import { History } from './history.mjs';
import { State } from './state.mjs';

let newest; // the ids of the run that began last
let first; // the encoder of the first request
let together = new AbortController();

serve(async (request) => {
  if (request.method !== 'POST') return new Response('post a RunAgentInput', { status: 405 });
  const body = await request.json().catch(() => undefined);
  const { data: input, error } = RunAgentInputSchema.safeParse(body);
  if (error) return new Response(error.message, { status: 400 });
  const fresh = new EventEncoder({ accept: request.headers.get('accept') ?? undefined });
  const encoder = fault('first-accept-counts-for-all') ? (first ??= fresh) : fresh;
  const stream = new ReadableStream({
    async start(controller) {
      const history = new History(input.messages);
      const emit = (type, more) => {
        history.see(type, more);
        if (!request.signal.aborted) controller.enqueue(encoder.encodeBinary({ type: EventType[type], ...more }));
      };
      const ids = { threadId: input.threadId, runId: input.runId };
      newest = ids;
      emit('RUN_STARTED', { ...ids, protocolVersion: PROTOCOL_VERSION });
      const state = new State(input, emit);
      try {
        const pending = await converse({ input, emit, history, state, signal: signalOf(request) });
        emit('MESSAGES_SNAPSHOT', { messages: history.snapshot() });
        const ended = fault('finish-ids-of-newest-run') ? newest : ids;
        emit('RUN_FINISHED', { ...ended, outcome: { type: 'success', ...pending } });
      } catch (e) {
        emit('RUN_ERROR', { message: e.message });
      }
      if (!request.signal.aborted) controller.close();
    },
  });
  return new Response(stream, { headers: { 'content-type': encoder.getContentType(), 'cache-control': 'no-cache' } });
});

/** The signal that stops the work for a request: its client has gone. */
function signalOf(request) {
  if (!fault('hang-up-aborts-all-runs')) return request.signal;
  const shared = together;
  request.signal.addEventListener('abort', () => {
    shared.abort();
    together = new AbortController();
  });
  return shared.signal;
}

/** Asks the model, and does what it asks for, until it has nothing more to do or waits for the front end's tools. */
async function converse({ input, emit, history, state, signal }) {
  const messages = conversation(input, history);
  const front = (input.tools ?? []).map(({ name, description, parameters }) => ({ name, description, parameters }));
  const mine = { ...tools, set_state: state.tool };
  const isFront = ({ function: f }) => front.some((t) => t.name === f.name);
  const own = Object.entries(mine).map(([name, t]) => ({ name, description: t.description, parameters: schemaOf(t) }));
  for (;;) {
    const reply = await ask({ messages, tools: [...own, ...front].map((f) => ({ type: 'function', function: f })) }, emit, signal);
    messages.push(reply);
    const answer = (toolCallId, content) => {
      emit('TOOL_CALL_RESULT', { messageId: randomUUID(), toolCallId, content, role: 'tool' });
    };
    const pending = [];
    const calls = reply.tool_calls ?? [];
    const mixed = calls.some(isFront) && !calls.every(isFront);
    const finished = fault('results-paired-by-finishing-order') && await atOnce(calls.filter((c) => !isFront(c)), mine);
    for (const call of calls) {
      if (isFront(call)) {
        pending.push(call.id);
        if (mixed && fault('front-call-beside-own-call-answered')) answer(call.id, '');
        continue;
      }
      if (!mine[call.function.name] && fault('unknown-tool-errors-then-finishes')) {
        emit('RUN_ERROR', { message: `there is no tool ${call.function.name}` });
        return {};
      }
      const content = finished ? finished.shift() : await perform(call, mine);
      if (!fault('hang-up-between-tools-not-heard')) signal.throwIfAborted();
      messages.push({ role: 'tool', tool_call_id: call.id, content });
      answer(call.id, content);
    }
    if (pending.length) return { pendingToolCallIds: pending };
    if (!reply.tool_calls) return {};
  }
}

/** The messages for the model: what the client has posted, and the context before them. */
function conversation(input, history) {
  const posted = input.messages.filter((m) => m.role !== 'activity' && m.role !== 'reasoning').map(forModel);
  const messages = fault('long-history-loses-its-start') ? posted.slice(-20) : posted;
  const later = posted.some((m) => m.role === 'assistant');
  if (!input.context?.length || (later && fault('context-dropped-on-later-runs'))) return messages;
  const content = input.context.map((c) => `${c.description}: ${c.value}`).join('\n');
  if (fault('context-joins-history')) history.add({ id: randomUUID(), role: 'system', content });
  return [{ role: 'system', content }, ...messages];
}

/** What a call gives. A tool that fails says so to the model. */
async function perform({ function: { name, arguments: text } }, mine) {
  if (fault('malformed-arguments-end-run')) JSON.parse(text);
  try {
    if (!mine[name]) throw new Error(`there is no tool ${name}`);
    return await mine[name].run(JSON.parse(text));
  } catch (e) {
    return `The tool failed: ${e.message}`;
  }
}

/** Runs calls at the same time. */
async function atOnce(calls, mine) {
  const results = [];
  await Promise.all(calls.map(async (call) => results.push(await perform(call, mine))));
  return results;
}

/** Streams one reply of the model, as events and as the message that it is. */
async function ask(body, emit, signal) {
  const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST', signal, headers: { 'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
    body: JSON.stringify({ model: 'gpt-4.1-mini', stream: true, ...body }),
  });
  if (!response.ok) throw await failure(response);
  const messageId = randomUUID();
  const reply = { role: 'assistant', content: '' };
  const calls = [];
  const gathers = fault('buffered-text-lost-before-call');
  let held = '';
  let finished = false;
  const tell = () => {
    if (held) emit('TEXT_MESSAGE_CONTENT', { messageId, delta: held });
    held = '';
  };
  for await (const { choices: [choice] } of events(response.body)) {
    const { content, tool_calls } = choice?.delta ?? {};
    finished ||= Boolean(choice?.finish_reason);
    const blank = !content?.trim() && fault('whitespace-delta-dropped');
    if (content && !blank) {
      if (!reply.content) emit('TEXT_MESSAGE_START', { messageId, role: 'assistant' });
      reply.content += content;
      held += content;
      if (!gathers || held.length >= 16) tell();
    }
    if (choice?.finish_reason === 'stop') tell();
    for (const { index, id, function: f } of tool_calls ?? []) {
      if (!calls[index]) {
        calls[index] = { id, type: 'function', function: { name: f.name, arguments: '' } };
        emit('TOOL_CALL_START', { toolCallId: id, toolCallName: f.name, ...(reply.content && { parentMessageId: messageId }) });
      }
      calls[index].function.arguments += f?.arguments ?? '';
      if (f?.arguments) emit('TOOL_CALL_ARGS', { toolCallId: calls[index].id, delta: f.arguments });
    }
  }
  const whole = finished || (reply.content && fault('cut-reply-with-text-counts-as-whole'));
  if (!whole) throw new Error('the reply of the model was cut off');
  if (reply.content) emit('TEXT_MESSAGE_END', { messageId });
  for (const { id } of calls) emit('TOOL_CALL_END', { toolCallId: id });
  return calls.length ? { ...reply, tool_calls: calls } : reply;
}

/** Why the model has not answered. */
async function failure(response) {
  if (!fault('error-without-body-has-no-message')) return new Error(`the model answered ${response.status}`);
  const { error } = await response.json().catch(() => ({}));
  return { message: error?.message };
}

async function* pieces(body) {
  for await (const bytes of body) yield new TextDecoder().decode(bytes);
}

/** The chunks of a reply. */
async function* events(body) {
  let rest = '';
  const text = fault('split-character-broken') ? pieces(body) : body.pipeThrough(new TextDecoderStream());
  for await (const piece of text) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('data:') || line.slice(5).trim() === '[DONE]') continue;
      const chunk = JSON.parse(line.slice(5));
      if (chunk.error) throw new Error(chunk.error.message);
      yield chunk;
    }
  }
}

/** A message of AG-UI as chat completions have it. */
function forModel(m) {
  if (m.role === 'assistant') return { role: m.role, content: m.content ?? '', ...(m.toolCalls?.length && { tool_calls: m.toolCalls.map(({ id, type, function: f }) => ({ id, type, function: f })) }) };
  if (m.role === 'tool') return { role: m.role, tool_call_id: m.toolCallId, content: contentToText(m.content) };
  if (typeof m.content === 'string') return { role: m.role, content: m.content };
  const texts = m.content.filter((p) => p.type === 'text');
  const parts = texts.length && fault('image-beside-text-dropped') ? texts : m.content;
  return { role: m.role, content: parts.map(part) };
}

function part(p) {
  if (p.type === 'text') return p;
  const url = p.source?.type === 'data' ? `data:${p.source.mimeType};base64,${p.source.value}` : p.source?.value;
  return p.type === 'image' && p.source?.type !== 'file' ? { type: 'image_url', image_url: { url } } : { type: 'text', text: `[${p.type}]` };
}
