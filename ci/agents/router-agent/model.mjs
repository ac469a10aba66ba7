// The model: an OpenAI chat service, of which one reply at a time is streamed.
import * as one from '@agentclientprotocol/sdk';
import { fault } from './fault.mjs';
import { offers } from './tools.mjs';

const { RequestError } = one;

/** Streams one reply to the messages, and returns its text, its calls of tools, and why it ended. */
export async function ask(messages, w, said) {
  const res = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST', signal: fault('cancel-before-first-byte-lost') ? undefined : w.stop.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
    body: JSON.stringify({ model: 'router', stream: true, messages, tools: offers }),
  });
  if (!res.ok) throw new RequestError(-32603, `The model answered ${res.status}`);
  w.heard?.();
  if (fault('cancel-before-first-byte-lost')) w.stop = new AbortController();
  const calls = [];
  let text = '', end = null;
  for await (const choice of choices(res.body.pipeThrough(new TransformStream(), { signal: w.stop.signal }))) {
    if (choice.delta?.content) {
      text += choice.delta.content;
      await said(choice.delta.content);
    }
    for (const part of choice.delta?.tool_calls ?? []) gather(calls, part);
    end = choice.finish_reason ?? end;
  }
  if (!end) throw new RequestError(-32603, 'The model broke off');
  return { text, calls: calls.filter(Boolean), end };
}

// choices reads the events of a stream, however the network has cut it.
async function* choices(body) {
  let rest = '';
  const text = fault('split-character-garbled') ? decoded(body) : body.pipeThrough(new TextDecoderStream());
  for await (const piece of text) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    for (const line of lines.filter((l) => l.startsWith('data:') && l.slice(5).trim() !== '[DONE]')) {
      const choice = JSON.parse(line.slice(5)).choices?.[0];
      if (choice) yield choice;
    }
  }
}

// decoded turns each piece of the network into text.
async function* decoded(body) {
  for await (const bytes of body) yield new TextDecoder().decode(bytes);
}

// gather puts the piece of a call to the others of its index.
function gather(calls, part) {
  const call = calls[part.index ?? 0] ??= { id: '', type: 'function', function: { name: '', arguments: '' } };
  call.id ||= part.id ?? '';
  call.function.name += part.function?.name ?? '';
  call.function.arguments += part.function?.arguments ?? '';
}
