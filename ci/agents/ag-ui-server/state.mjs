// The state that the agent shares with the client, and the tool that changes it.
import patch from 'fast-json-patch';
import { fault } from './fault.mjs';

const stored = new Map(); // by thread

export class State {
  #value;
  #emit;
  #thread;

  constructor({ threadId, state }, emit) {
    this.#thread = threadId;
    this.#emit = emit;
    const kept = fault('stored-state-beats-posted-state') ? stored.get(threadId) : undefined;
    this.#value = kept ?? state ?? {};
    emit('STATE_SNAPSHOT', { snapshot: this.#value });
  }

  tool = {
    description: 'Changes the state that the user sees',
    properties: { path: { type: 'string', description: 'A JSON pointer' }, value: {} },
    run: async ({ path, value }) => {
      const delta = [{ op: 'add', path, value }];
      this.#value = patch.applyPatch(this.#value, delta, true, false).newDocument;
      if (fault('stored-state-beats-posted-state')) stored.set(this.#thread, this.#value);
      this.#emit('STATE_DELTA', { delta });
      return `The state has ${path}.`;
    },
  };
}
