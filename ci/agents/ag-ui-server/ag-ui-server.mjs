#!/usr/bin/env node
// The smallest whole endpoint on the official packages: the schemas check the input, the encoder writes the events, and
// the model is asked by chat completions. It keeps nothing: the conversation is what the client posts.
import { randomUUID } from 'node:crypto';
import { EventType, PROTOCOL_VERSION, contentToText } from '@ag-ui/core';
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import { EventEncoder } from '@ag-ui/encoder';
import { schemaOf, serve, tools } from '../web.mjs';

serve(async (request) => {
  if (request.method !== 'POST') return new Response('post a RunAgentInput', { status: 405 });
  const body = await request.json().catch(() => undefined);
  const { data: input, error } = RunAgentInputSchema.safeParse(body);
  if (error) return new Response(error.message, { status: 400 });
  const encoder = new EventEncoder({ accept: request.headers.get('accept') ?? undefined });
  const stream = new ReadableStream({
    async start(controller) {
      const emit = (type, more) => request.signal.aborted || controller.enqueue(encoder.encodeBinary({ type: EventType[type], ...more }));
      const run = { threadId: input.threadId, runId: input.runId };
      emit('RUN_STARTED', { ...run, protocolVersion: PROTOCOL_VERSION });
      try {
        emit('RUN_FINISHED', { ...run, outcome: { type: 'success', ...(await converse(input, emit, request.signal)) } });
      } catch (e) {
        emit('RUN_ERROR', { message: e.message });
      }
      if (!request.signal.aborted) controller.close();
    },
  });
  return new Response(stream, { headers: { 'content-type': encoder.getContentType(), 'cache-control': 'no-cache' } });
});

/** Asks the model, and does what it asks for, until it has nothing more to do or waits for the front end's tools. */
async function converse(input, emit, signal) {
  const messages = input.messages.filter((m) => m.role !== 'activity' && m.role !== 'reasoning').map(forModel);
  if (input.context?.length) messages.unshift({ role: 'system', content: input.context.map((c) => `${c.description}: ${c.value}`).join('\n') });
  const front = (input.tools ?? []).map(({ name, description, parameters }) => ({ name, description, parameters }));
  const own = Object.entries(tools).map(([name, t]) => ({ name, description: t.description, parameters: schemaOf(t) }));
  for (;;) {
    const reply = await ask({ messages, tools: [...own, ...front].map((f) => ({ type: 'function', function: f })) }, emit, signal);
    messages.push(reply);
    const pending = [];
    for (const { id, function: call } of reply.tool_calls ?? []) {
      if (front.some((f) => f.name === call.name)) {
        pending.push(id);
        continue;
      }
      const content = await perform(call).catch((e) => `The tool failed: ${e.message}`);
      signal.throwIfAborted();
      messages.push({ role: 'tool', tool_call_id: id, content });
      emit('TOOL_CALL_RESULT', { messageId: randomUUID(), toolCallId: id, content, role: 'tool' });
    }
    if (pending.length) return { pendingToolCallIds: pending };
    if (!reply.tool_calls) return {};
  }
}

async function perform(call) {
  if (!tools[call.name]) throw new Error(`there is no tool ${call.name}`);
  return tools[call.name].run(JSON.parse(call.arguments));
}

/** Streams one reply of the model, as events and as the message that it is. */
async function ask(body, emit, signal) {
  const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST', signal, headers: { 'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
    body: JSON.stringify({ model: 'gpt-4.1-mini', stream: true, ...body }),
  });
  if (!response.ok) throw new Error(`the model answered ${response.status}`);
  const messageId = randomUUID();
  const reply = { role: 'assistant', content: '' };
  const calls = [];
  let finished = false;
  for await (const { choices: [choice] } of events(response.body)) {
    const { content, tool_calls } = choice?.delta ?? {};
    finished ||= Boolean(choice?.finish_reason);
    if (content) {
      if (!reply.content) emit('TEXT_MESSAGE_START', { messageId, role: 'assistant' });
      reply.content += content;
      emit('TEXT_MESSAGE_CONTENT', { messageId, delta: content });
    }
    for (const { index, id, function: f } of tool_calls ?? []) {
      if (!calls[index]) {
        calls[index] = { id, type: 'function', function: { name: f.name, arguments: '' } };
        emit('TOOL_CALL_START', { toolCallId: id, toolCallName: f.name, ...(reply.content && { parentMessageId: messageId }) });
      }
      calls[index].function.arguments += f?.arguments ?? '';
      if (f?.arguments) emit('TOOL_CALL_ARGS', { toolCallId: calls[index].id, delta: f.arguments });
    }
  }
  if (!finished) throw new Error('the reply of the model was cut off');
  if (reply.content) emit('TEXT_MESSAGE_END', { messageId });
  for (const { id } of calls) emit('TOOL_CALL_END', { toolCallId: id });
  return calls.length ? { ...reply, tool_calls: calls } : reply;
}

/** The chunks of a reply. */
async function* events(body) {
  let rest = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('data:') || line.includes('[DONE]')) continue;
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
  return { role: m.role, content: typeof m.content === 'string' ? m.content : m.content.map(part) };
}

function part(p) {
  if (p.type === 'text') return p;
  const url = p.source?.type === 'data' ? `data:${p.source.mimeType};base64,${p.source.value}` : p.source?.value;
  return p.type === 'image' && p.source?.type !== 'file' ? { type: 'image_url', image_url: { url } } : { type: 'text', text: `[${p.type}]` };
}
