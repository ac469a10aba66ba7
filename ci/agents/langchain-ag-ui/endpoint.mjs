// The wrapper, which runs an agent with both producers and tells its end, and the endpoint around it.
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import { EventEncoder } from '@ag-ui/encoder';
import { Command, MemorySaver } from '@langchain/langgraph';
import { fault } from './fault.mjs';
import { AguiCallbacks } from './hooks.mjs';
import { fromInput } from './messages.mjs';
import { Run, optionsOf } from './run.mjs';

const saver = new MemorySaver();
const waiting = new Map(); // by thread: the graph that an interrupt stopped, and what it waits for
const busy = new Set(); // threads

const toClient = ({ id, value }) => ({
  id, reason: 'tool_call', toolCallId: value.toolCallId, message: `May the agent use ${value.name}?`,
  responseSchema: { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] },
});

/** Runs an agent if its thread is free. */
async function runAlone(build, run, signal) {
  const { threadId } = run.ids;
  if (busy.has(threadId)) return run.fail(new Error('The thread has a run already.'));
  busy.add(threadId);
  await runAgent(build, run, signal);
  if (!signal.aborted) busy.delete(threadId);
}

/** Runs build(run, checkpointer), an agent, for a run. It never throws: what fails is told to the client. */
export async function runAgent(build, run, signal) {
  run.signal = signal;
  try {
    run.start();
    const stopped = waiting.get(run.ids.threadId);
    for (const { interruptId, status, payload } of run.input.resume ?? []) {
      if (!stopped?.asked.some((i) => i.id === interruptId)) continue;
      stopped.answers[interruptId] = status === 'resolved' ? payload : { approved: false };
      if (fault('cancelled-approval-runs-tool')) stopped.answers[interruptId] = payload ?? { approved: true };
      if (fault('one-answer-counts-for-all-interrupts')) {
        for (const { id } of stopped.asked) stopped.answers[id] ??= stopped.answers[interruptId];
      }
    }
    const open = stopped?.asked.filter((i) => !(i.id in stopped.answers)) ?? [];
    if (open.length) return run.finish({ type: 'interrupt', interrupts: open.map(toClient) });
    waiting.delete(run.ids.threadId);
    const thread = stopped?.thread ?? `${run.ids.threadId} ${run.ids.runId}`;
    const config = { configurable: { thread_id: thread }, callbacks: [new AguiCallbacks(run)], recursionLimit: 200 };
    if (!fault('hang-up-heard-between-steps-only')) config.signal = signal;
    const result = await build(run, saver).invoke(stopped ? new Command({ resume: stopped.answers }) : { messages: fromInput(run.input) }, config);
    if (result.__interrupt__?.length) {
      if (fault('interrupts-kept-for-newest-thread-only')) waiting.clear();
      waiting.set(run.ids.threadId, { thread, asked: result.__interrupt__, answers: {} });
      return run.finish({ type: 'interrupt', interrupts: result.__interrupt__.map(toClient) });
    }
    await saver.deleteThread(thread);
    // The list has all calls without a result, and some have none that the client is not shown.
    run.finish({ type: 'success', ...(run.pending.length && run.options.emitToolResults && { pendingToolCallIds: run.pending }) });
  } catch (e) {
    if (run.said && fault('failure-after-text-ends-as-success')) return run.finish({ type: 'success' });
    run.fail(e);
  }
}

/** A fetch handler that serves an agent; wrong options are a TypeError at once. */
export const endpoint = (build, given) => {
  const options = optionsOf(given);
  return (request) => answer(build, options, request);
};

async function answer(build, options, request) {
  if (request.method !== 'POST') return new Response('post a RunAgentInput', { status: 405 });
  const { data: input, error } = RunAgentInputSchema.safeParse(await request.json().catch(() => undefined));
  if (error) return new Response(error.message, { status: 400 });
  const encoder = new EventEncoder({ accept: request.headers.get('accept') ?? undefined });
  const stream = new ReadableStream({
    async start(controller) {
      const run = new Run(input, { emit: (event) => controller.enqueue(encoder.encodeBinary(event)) }, options);
      const serveRun = fault('hung-up-run-leaves-thread-busy') ? runAlone : runAgent;
      await serveRun(build, run, request.signal);
      if (!request.signal.aborted) controller.close();
    },
  });
  return new Response(stream, { headers: { 'content-type': encoder.getContentType(), 'cache-control': 'no-cache' } });
}
