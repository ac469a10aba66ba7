// The wrapper, which runs an agent with both producers and tells its end, and the endpoint around it.
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import { EventEncoder } from '@ag-ui/encoder';
import { Command, MemorySaver } from '@langchain/langgraph';
import { AguiCallbacks } from './hooks.mjs';
import { fromInput } from './messages.mjs';
import { Run } from './run.mjs';

const saver = new MemorySaver();
const waiting = new Map(); // by thread: the graph that an interrupt stopped, and what it waits for

const toClient = ({ id, value }) => ({
  id, reason: 'tool_call', toolCallId: value.toolCallId, message: `May the agent use ${value.name}?`,
  responseSchema: { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] },
});

/** Runs build(run, checkpointer), an agent, for a run. It never throws: what fails is told to the client. */
export async function runAgent(build, run, signal) {
  try {
    run.start();
    const stopped = waiting.get(run.ids.threadId);
    for (const { interruptId, status, payload } of run.input.resume ?? []) {
      if (stopped?.asked.some((i) => i.id === interruptId)) stopped.answers[interruptId] = status === 'resolved' ? payload : { approved: false };
    }
    const open = stopped?.asked.filter((i) => !(i.id in stopped.answers)) ?? [];
    if (open.length) return run.finish({ type: 'interrupt', interrupts: open.map(toClient) });
    waiting.delete(run.ids.threadId);
    const thread = stopped?.thread ?? `${run.ids.threadId} ${run.ids.runId}`;
    const config = { configurable: { thread_id: thread }, callbacks: [new AguiCallbacks(run)], signal, recursionLimit: 200 };
    const result = await build(run, saver).invoke(stopped ? new Command({ resume: stopped.answers }) : { messages: fromInput(run.input) }, config);
    if (result.__interrupt__?.length) {
      waiting.set(run.ids.threadId, { thread, asked: result.__interrupt__, answers: {} });
      return run.finish({ type: 'interrupt', interrupts: result.__interrupt__.map(toClient) });
    }
    await saver.deleteThread(thread);
    // The list has all calls without a result, and some have none that the client is not shown.
    run.finish({ type: 'success', ...(run.pending.length && run.options.emitToolResults && { pendingToolCallIds: run.pending }) });
  } catch (e) {
    run.fail(e);
  }
}

/** A fetch handler that serves an agent. */
export const endpoint = (build, options) => async (request) => {
  if (request.method !== 'POST') return new Response('post a RunAgentInput', { status: 405 });
  const { data: input, error } = RunAgentInputSchema.safeParse(await request.json().catch(() => undefined));
  if (error) return new Response(error.message, { status: 400 });
  const encoder = new EventEncoder({ accept: request.headers.get('accept') ?? undefined });
  const stream = new ReadableStream({
    async start(controller) {
      await runAgent(build, new Run(input, { emit: (event) => controller.enqueue(encoder.encodeBinary(event)) }, options), request.signal);
      if (!request.signal.aborted) controller.close();
    },
  });
  return new Response(stream, { headers: { 'content-type': encoder.getContentType(), 'cache-control': 'no-cache' } });
};
