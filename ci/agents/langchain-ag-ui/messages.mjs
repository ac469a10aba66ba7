// The conversation that the client posts, as LangChain has it.
import { contentToText } from '@ag-ui/core';
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { fault } from './fault.mjs';

export function fromInput({ messages: posted, context }) {
  const messages = fault('repeated-user-message-deduplicated') ? posted.filter(isNew) : posted;
  const answered = new Set(messages.filter((m) => m.role === 'tool').map((m) => m.toolCallId));
  const known = (context ?? []).map((c) => `${c.description}: ${c.value}`).join('\n');
  return [...(known ? [new SystemMessage(known)] : []), ...messages.flatMap((m) => one(m, answered))];
}

/** Whether the user has not said the same before. */
function isNew(m, at, all) {
  return m.role !== 'user' || all.findIndex((o) => o.role === 'user' && o.content === m.content) === at;
}

function one(m, answered) {
  switch (m.role) {
    case 'user': return [new HumanMessage({ id: m.id, content: typeof m.content === 'string' ? m.content : m.content.map(part) })];
    case 'system': case 'developer': return [new SystemMessage({ id: m.id, content: m.content })];
    case 'tool': return [new ToolMessage({ tool_call_id: m.toolCallId, content: contentToText(m.content) })];
    case 'assistant':
      if (m.content && fault('unanswered-call-beside-text-not-repaired')) return [reply(m)];
      return [reply(m), ...unanswered(m, answered)];
    default: return []; // activities and reasoning are for the user
  }
}

function reply(m) {
  const calls = (m.toolCalls ?? []).map((c) => ({ type: 'tool_call', id: c.id, name: c.function.name, args: parsed(c.function.arguments) }));
  return new AIMessage({ id: m.id, content: m.content ?? '', tool_calls: calls });
}

/** A run that was left has calls without a result, which providers refuse. */
function unanswered(m, answered) {
  return (m.toolCalls ?? []).filter((c) => !answered.has(c.id)).map((c) => new ToolMessage({ tool_call_id: c.id, status: 'error', content: 'This call was given up.' }));
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {}; // the client left while it was streamed
  }
}

function part(p) {
  if (p.type === 'text') return p;
  const url = p.source?.type === 'data' ? `data:${p.source.mimeType};base64,${p.source.value}` : p.source?.value;
  return p.type === 'image' && p.source?.type !== 'file' ? { type: 'image_url', image_url: { url } } : { type: 'text', text: `[${p.type}, which this agent does not take]` };
}
