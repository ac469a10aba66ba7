// The conversation as the client has it after the events of a run. It is told whole at the run's end.
import { randomUUID } from 'node:crypto';
import { fault } from './fault.mjs';

export class History {
  #messages;
  #posted;
  #held; // a tool message that is not in the list yet

  constructor(posted) {
    this.#messages = structuredClone(posted);
    this.#posted = posted.length;
  }

  /** Follows an event as clients do: a call without a parent is a message of its own, a result follows its call. */
  see(type, event) {
    if (type.endsWith('_START')) this.#settle();
    if (type === 'TEXT_MESSAGE_START') this.add({ id: event.messageId, role: 'assistant', content: '' });
    if (type === 'TEXT_MESSAGE_CONTENT') this.#find((m) => m.id === event.messageId).content += event.delta;
    if (type === 'TOOL_CALL_START') this.#call(event);
    if (type === 'TOOL_CALL_ARGS') this.#args(event);
    if (type === 'TOOL_CALL_RESULT') this.#answer(event);
  }

  add(message) {
    this.#messages.push(message);
    return message;
  }

  /** All messages, those that the client has posted included. */
  snapshot() {
    this.#settle();
    return this.#messages.map((m, at) => {
      const renamed = at >= this.#posted && m.content && m.toolCalls && fault('snapshot-renames-text-beside-calls');
      return renamed ? { ...m, id: randomUUID() } : m;
    });
  }

  #find(is) {
    return this.#messages.findLast(is);
  }

  #call({ toolCallId: id, toolCallName: name, parentMessageId }) {
    const own = this.#messages.some((m) => m.id === id) ? randomUUID() : id;
    const owner = this.#find((m) => m.id === parentMessageId) ?? this.add({ id: own, role: 'assistant' });
    owner.toolCalls = [...(owner.toolCalls ?? []), { id, type: 'function', function: { name, arguments: '' } }];
  }

  #args({ toolCallId: id, delta }) {
    const { toolCalls } = this.#find((m) => m.toolCalls?.some((c) => c.id === id));
    toolCalls.findLast((c) => c.id === id).function.arguments += delta;
  }

  #answer({ messageId: id, toolCallId, content }) {
    this.#held = { id, role: 'tool', toolCallId, content };
    if (!fault('snapshot-has-one-result-per-reply')) this.#settle();
  }

  #settle() {
    if (!this.#held) return;
    let at = this.#messages.findLastIndex((m) => m.toolCalls?.some((c) => c.id === this.#held.toolCallId)) + 1;
    while (this.#messages[at]?.role === 'tool') at += 1;
    this.#messages.splice(at, 0, this.#held);
    this.#held = undefined;
  }
}
