// The two producers of a run's events: a middleware, which sees the agent's life, and callbacks, which see its tokens.
import { randomUUID } from 'node:crypto';
import { BaseCallbackHandler } from '@langchain/core/callbacks/base';
import { AIMessage, ToolMessage } from '@langchain/core/messages';
import { interrupt, isGraphBubbleUp } from '@langchain/langgraph';
import { createMiddleware } from 'langchain';
import { fault } from './fault.mjs';

/** guarded says which tools the user has to approve. */
export function aguiMiddleware(run, guarded = () => false) {
  const front = new Set((run.input.tools ?? []).map((t) => t.name));
  return createMiddleware({
    name: 'AguiMiddleware',
    beforeAgent: () => run.start(),
    beforeModel: {
      canJumpTo: ['end'],
      hook: () => {
        if (fault('hang-up-heard-between-steps-only') && run.signal.aborted) throw new Error('the client has gone');
        return run.pending.length ? { jumpTo: 'end' } : undefined;
      },
    },
    wrapModelCall: async (request, handler) => {
      const stepName = `model-${randomUUID()}`; // another model call may run beside it
      run.open('STEP_STARTED', stepName, { stepName }, 'STEP_FINISHED', { stepName });
      run.reason = undefined;
      const reply = await handler(request); // what is open when it fails is closed with the run
      if (!run.reason) throw new Error('The reply of the model broke off.');
      run.close(stepName);
      run.snapshot('checkpoint');
      return reply;
    },
    wrapToolCall: async (request, handler) => {
      const { name, id } = request.toolCall;
      if (front.has(name)) {
        run.pending.push(id);
        return new ToolMessage({ tool_call_id: id, name, content: '' });
      }
      if (fault('own-tool-skipped-beside-front-tool')) {
        const { tool_calls: siblings } = request.state.messages.findLast((m) => AIMessage.isInstance(m));
        if (siblings.some((c) => front.has(c.name))) return new ToolMessage({ tool_call_id: id, name, content: '' });
      }
      const approved = !guarded(name) || interrupt({ toolCallId: id, name })?.approved === true;
      if (guarded(name) && fault('resume-repeats-call-events')) run.call(request.toolCall);
      if (!approved) {
        const refused = new ToolMessage({ tool_call_id: id, name, status: 'error', content: 'The user refuses this call.' });
        run.result(id, refused.text);
        return refused;
      }
      const messageId = `activity-${id}`;
      const activityType = 'tool';
      if (run.options.emitActivities) run.emit('ACTIVITY_SNAPSHOT', { messageId, activityType, content: { tool: name, status: 'running' } });
      let result;
      try {
        result = await handler(request);
      } catch (e) {
        if (isGraphBubbleUp(e) || request.runtime.signal?.aborted) throw e;
        result = new ToolMessage({ tool_call_id: id, name, status: 'error', content: `The tool failed: ${e.message}` });
      }
      const untold = result.status === 'error' && fault('failed-tool-has-no-result');
      const shown = untold ? result.text : run.result(id, result.text);
      if (fault('large-result-cut-for-model-too')) {
        result = new ToolMessage({ tool_call_id: id, name, status: result.status, content: shown });
      }
      if (run.options.emitActivities) run.emit('ACTIVITY_DELTA', { messageId, activityType, patch: [{ op: 'replace', path: '/status', value: result.status ?? 'success' }] });
      run.snapshot('checkpoint');
      return result;
    },
  });
}

/** Tokens as events. A message has one id, its calls name it, and a piece of arguments may have none: providers send it once. */
export class AguiCallbacks extends BaseCallbackHandler {
  name = 'agui';
  lc_prefer_streaming = true;
  awaitHandlers = true; // the run must not end before its last token
  #replies = new Map(); // by LangChain's id of the model call
  #count = 0;

  constructor(run) {
    super();
    this.run = run;
  }

  handleLLMNewToken(token, _index, of, _parent, _tags, fields) {
    const reply = this.#reply(of);
    this.run.reason = fields?.chunk?.generationInfo?.finish_reason ?? this.run.reason;
    const { additional_kwargs: extra, tool_call_chunks: pieces } = fields?.chunk?.message ?? {};
    if (extra?.reasoning_content) this.#think(reply, extra.reasoning_content);
    const again = token === reply.last && fault('repeated-token-dropped');
    if (token && !again) this.#say(reply, token);
    if (token) reply.last = token;
    for (const { index, id, name, args } of pieces ?? []) {
      reply.calls[index] ??= this.#call(reply, id, name);
      const toolCallId = reply.calls[fault('args-of-parallel-calls-go-to-first') ? 0 : index];
      if (args) this.run.emit('TOOL_CALL_ARGS', { toolCallId, delta: args });
    }
  }

  handleLLMEnd({ generations }, of) {
    const reply = this.#reply(of);
    const { message, generationInfo } = generations.flat()[0] ?? {};
    this.run.reason ??= generationInfo?.finish_reason;
    if (!reply.said && message?.text) this.#say(reply, message.text); // a model that does not stream
    for (const call of message?.tool_calls ?? []) {
      if (reply.calls.includes(call.id)) continue;
      reply.calls.push(this.#call(reply, call.id, call.name));
      this.run.emit('TOOL_CALL_ARGS', { toolCallId: call.id, delta: JSON.stringify(call.args) });
    }
    this.#thought(reply);
    for (const id of [reply.id, ...reply.calls]) this.run.close(id);
    this.#replies.delete(of);
  }

  #reply(of) {
    if (!this.#replies.has(of)) {
      const id = fault('message-ids-count-per-run') ? `message-${++this.#count}` : randomUUID();
      const thought = fault('reasoning-shares-id-with-text') ? id : `thought-${randomUUID()}`;
      this.#replies.set(of, { id, thought, said: false, thinks: false, calls: [] });
    }
    return this.#replies.get(of);
  }

  #say(reply, delta) {
    this.#thought(reply);
    if (!reply.said) this.run.open('TEXT_MESSAGE_START', reply.id, { messageId: reply.id, role: 'assistant' }, 'TEXT_MESSAGE_END', { messageId: reply.id });
    reply.said = true;
    this.run.said = true;
    this.run.emit('TEXT_MESSAGE_CONTENT', { messageId: reply.id, delta });
  }

  #call(reply, id, name) {
    this.#thought(reply);
    if (fault('text-after-call-sent-into-closed-message')) this.run.close(reply.id);
    const parent = reply.said ? { parentMessageId: reply.id } : {};
    this.run.open('TOOL_CALL_START', id, { toolCallId: id, toolCallName: name, ...parent }, 'TOOL_CALL_END', { toolCallId: id });
    return id;
  }

  #think(reply, delta) {
    const messageId = reply.thought;
    if (!reply.thinks) {
      this.run.open('REASONING_START', `${messageId}-span`, { messageId }, 'REASONING_END', { messageId });
      this.run.open('REASONING_MESSAGE_START', messageId, { messageId, role: 'reasoning' }, 'REASONING_MESSAGE_END', { messageId });
    }
    reply.thinks = true;
    this.run.emit('REASONING_MESSAGE_CONTENT', { messageId, delta });
  }

  #thought(reply) {
    if (!reply.thinks) return;
    reply.thinks = false;
    this.run.close(reply.thought);
    this.run.close(`${reply.thought}-span`);
  }
}
