// What the editor is told of a session, in the words of version 1 or 2 of the protocol.
import { fault } from './fault.mjs';

const textOf = (text) => [{ type: 'content', content: { type: 'text', text } }];
const message = (who, messageId, content) => ({ sessionUpdate: `${who}_message`, messageId, content });
const chunk = (who, messageId, content) => ({ sessionUpdate: `${who}_message_chunk`, messageId, content });

// call tells all of a tool call, change only what becomes of it.
const call = (e) => ({
  toolCallId: e.id, title: e.title, kind: e.kind, status: e.status, rawInput: e.input, locations: e.locations,
  ...(e.output && { content: textOf(e.output) }),
});
const change = (e) => ({ toolCallId: e.id, status: e.status, ...(e.output && { content: textOf(e.output) }) });

const forms = {
  1: {
    user: () => [], // the editor shows a prompt itself
    announce: (e) => ({ sessionUpdate: 'tool_call', ...call(known1(e)) }),
    progress: (e) => ({ sessionUpdate: 'tool_call_update', ...change(known1(e)) }),
    state: () => [],
    permission: (e, options) => ({ toolCall: call(known1(e)), options }),
    replay: (e) => (e.type === 'user' ? e.content.map((block) => chunk('user', e.id, block))
      : e.type === 'agent' ? [chunk('agent', e.id, { type: 'text', text: e.text })] : [forms[1].announce(e)]),
  },
  2: {
    user: (e) => [message('user', e.id, e.content)],
    announce: (e) => ({ sessionUpdate: 'tool_call_update', name: e.name, ...call(e) }),
    progress: (e) => ({ sessionUpdate: 'tool_call_update', ...change(e) }),
    state: (state) => [{ sessionUpdate: 'state_update', ...state }],
    permission: (e, options) => ({
      title: `${e.title}?`, options, subject: { type: 'tool_call', toolCall: { toolCallId: e.id } },
    }),
    replay: (e) => (e.type === 'user' ? forms[2].user(e)
      : e.type === 'agent' ? [message('agent', e.id, [{ type: 'text', text: e.text }])] : [forms[2].announce(e)]),
  },
};
// known1 gives a call that was cancelled the only status that version 1 has for it.
const known1 = (e) => (e.status !== 'cancelled' || fault('v1-cancelled-tool-has-v2-status') ? e
  : { ...e, status: 'failed' });

// isNew reports whether the editor has yet to be told of a state.
function isNew(s, { state, stopReason }) {
  if (!fault('running-not-told-after-cancel')) return true;
  const before = s.told;
  if (stopReason !== 'cancelled') s.told = state;
  return state !== before;
}

/** Speaks of one session to its editor. What is told at once stays together. */
export function voiceOf(version, s) {
  const { client, id: sessionId } = s, form = forms[version];
  const notify = (update) => client.notify('session/update', { sessionId, update });
  const tell = (updates) => Promise.all(updates.map(notify));
  const times = fault('updates-doubled-after-resume') ? s.heard : 1;
  const now = (updates) => tell(updates.flatMap((update) => Array(times).fill(update)));
  return {
    user: (e) => now(form.user(e)),
    said: (e, text) => now([chunk('agent', e.id, { type: 'text', text })]),
    announce: (e) => now([form.announce(e)]),
    progress: (e) => now([form.progress(e)]),
    state: (state) => (isNew(s, state) ? now(form.state(state)) : undefined),
    replay: (log, state) => tell([...log.flatMap(form.replay), ...(state ? form.state(state) : [])]),
    permit: (e, options) => client.request('session/request_permission', { sessionId, ...form.permission(e, options) }),
  };
}
