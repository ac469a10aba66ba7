// A run as the client sees it. The middleware and the callbacks of one run share this, and nothing outlives it: two runs
// at a time cannot take each other's ids. It lives beside the graph's state, so no checkpoint has it.
import { randomUUID } from 'node:crypto';
import { PROTOCOL_VERSION } from '@ag-ui/core';
import patch from 'fast-json-patch';
import { fault } from './fault.mjs';

const defaults = {
  emitToolResults: true,
  emitStateSnapshots: 'initial', // initial, final, all or none
  emitActivities: false,
  maxUIPayloadSize: 50 * 1024, // bytes of a result that the client is shown
  chunkLargeResults: false, // a larger one in parts, in place of cutting it
  errorDetailLevel: 'message', // message, code, full or none
  threadIdOverride: undefined,
  runIdOverride: undefined,
  mapError: (e) => e, // what may be told of an error
  mapResult: (content) => content, // what may be shown of a result
};

const choices = { emitStateSnapshots: ['initial', 'final', 'all', 'none'], errorDetailLevel: ['message', 'code', 'full', 'none'] };

/** The options of a server, whole; a TypeError says which one is not known or has a value that it does not take. */
export function optionsOf(given = {}) {
  for (const [name, value] of Object.entries(given)) {
    if (!(name in defaults)) throw new TypeError(`there is no option ${name}`);
    const takes = choices[name]?.join(', ') ?? (name.endsWith('Override') ? 'string' : typeof defaults[name]);
    const fits = choices[name]?.includes(value) ?? typeof value === takes;
    if (!fits) throw new TypeError(`the option ${name} is ${JSON.stringify(value)}, and takes: ${takes}`);
  }
  return { ...defaults, ...given };
}

export class Run {
  #transport;
  #open = new Map(); // what is to be closed before the end: the closing event, by its id
  #started = false;
  #over = false;

  /** options are those of optionsOf. */
  constructor(input, transport, options) {
    if (typeof transport?.emit !== 'function') throw new TypeError('the transport of a run has a function emit');
    this.#transport = transport;
    this.options = options;
    this.input = input;
    this.ids = { threadId: this.options.threadIdOverride ?? input.threadId ?? randomUUID(), runId: this.options.runIdOverride ?? input.runId ?? randomUUID() };
    this.state = structuredClone(input.state ?? {});
    this.pending = []; // calls of the front end's tools
    this.said = false; // whether the client has seen text
    this.reason = undefined; // for which the model stopped last
  }

  /** Sends an event. A client that has gone must not end the agent's work with an error. */
  emit(type, more = {}) {
    if (this.#over) return;
    try {
      this.#transport.emit({ type, ...more });
    } catch (e) {
      this.#over = true;
      console.error(`the transport failed: ${e.message}`);
    }
  }

  open(type, id, more, closing, closed) {
    this.emit(type, more);
    this.#open.set(id, [closing, closed]);
  }

  close(id) {
    const closing = this.#open.get(id);
    if (closing && this.#open.delete(id)) this.emit(...closing);
  }

  start() {
    if (this.#started) return;
    this.#started = true;
    this.emit('RUN_STARTED', { ...this.ids, protocolVersion: PROTOCOL_VERSION });
    this.snapshot('initial');
  }

  snapshot(when) {
    if (this.options.emitStateSnapshots === when || this.options.emitStateSnapshots === 'all') this.emit('STATE_SNAPSHOT', { snapshot: this.state });
  }

  /** Changes the state that the client sees. */
  change(path, value) {
    const delta = [{ op: 'add', path, value }];
    const early = fault('delta-sent-before-it-is-checked');
    if (early) this.emit('STATE_DELTA', { delta });
    this.state = patch.applyPatch(this.state, delta, true, false).newDocument;
    if (!early) this.emit('STATE_DELTA', { delta });
  }

  finish(outcome) {
    this.#closeAll();
    this.snapshot('final');
    this.emit('RUN_FINISHED', { ...this.ids, outcome });
    this.#over = true;
  }

  fail(error) {
    this.start();
    this.#closeAll();
    const e = this.options.mapError(error);
    const code = e.status ? 'MODEL_INVOCATION_ERROR' : 'AGENT_EXECUTION_ERROR';
    const told = {
      none: { message: 'The run failed.' }, code: { message: 'The run failed.', code },
      message: { message: e.message, code }, full: { message: e.stack ?? e.message, code },
    };
    this.emit('RUN_ERROR', told[this.options.errorDetailLevel]);
    this.#over = true;
  }

  #closeAll() {
    for (const id of [...this.#open.keys()].reverse()) this.close(id);
  }

  /** A call that the model has made whole. */
  call({ id: toolCallId, name, args }) {
    this.emit('TOOL_CALL_START', { toolCallId, toolCallName: name });
    this.emit('TOOL_CALL_ARGS', { toolCallId, delta: JSON.stringify(args) });
    this.emit('TOOL_CALL_END', { toolCallId });
  }

  /** What a tool gave, as a message of its own; returns what of it the client is shown. */
  result(toolCallId, full) {
    const content = this.#fitting(this.options.mapResult(full));
    const messageId = randomUUID();
    if (this.options.emitToolResults) this.emit('TOOL_CALL_RESULT', { messageId, toolCallId, role: 'tool', content });
    return content;
  }

  #fitting(content) {
    const max = this.options.maxUIPayloadSize;
    const bytes = Buffer.from(content);
    if (bytes.length <= max) return content;
    const text = (from, size) => new TextDecoder('utf-8', { fatal: false }).decode(bytes.subarray(from, from + size), { stream: true });
    if (!this.options.chunkLargeResults) {
      const note = `\n[Truncated: ${bytes.length} bytes]`;
      return text(0, max - note.length) + note;
    }
    const parts = [];
    for (let at = 0; at < bytes.length; ) {
      const piece = text(at, max); // whole characters only
      parts.push({ type: 'text', text: piece });
      at += Buffer.byteLength(piece);
    }
    return parts;
  }
}
