#!/usr/bin/env node
// An endpoint made with Mastra: the official adapter makes events of an agent's stream, and the encoder sends them.
import { EventType } from '@ag-ui/client';
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import { EventEncoder } from '@ag-ui/encoder';
import { MastraAgent } from '@ag-ui/mastra';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { serve, tools } from '../web.mjs';

const own = Object.fromEntries(Object.entries(tools).map(([name, t]) => [name, createTool({
  id: name, description: t.description,
  inputSchema: z.object(Object.fromEntries(Object.entries(t.properties).map(([key, p]) => [key, z.string().describe(p.description)]))),
  execute: (args, { agent }) => {
    if (name !== 'run_shell' || agent.resumeData?.approved) return t.run(args);
    return agent.resumeData ? 'The user refuses this call.' : agent.suspend({ message: `May the agent run ${args.command}?` });
  },
  ...(name === 'run_shell' && { suspendSchema: z.object({ message: z.string() }), resumeSchema: z.object({ approved: z.boolean() }) }),
})]));
const assistant = new Agent({
  id: 'assistant', name: 'assistant', instructions: 'You are a helpful agent.', tools: own, maxRetries: 0,
  model: { id: 'openai/gpt-4.1-mini', url: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY },
});
const mastra = new Mastra({ agents: { assistant }, storage: new InMemoryStore(), logger: false });

serve(async (request) => {
  if (request.method !== 'POST') return new Response('post a RunAgentInput', { status: 405 });
  const { data: input, error } = RunAgentInputSchema.safeParse(await request.json().catch(() => undefined));
  if (error) return new Response(error.message, { status: 400 });
  const encoder = new EventEncoder({ accept: request.headers.get('accept') ?? undefined });
  const agent = new MastraAgent({ agent: mastra.getAgent('assistant'), resourceId: 'user' });
  const stream = new ReadableStream({
    start(controller) {
      const emit = (event) => request.signal.aborted || controller.enqueue(encoder.encodeBinary(event));
      const end = () => request.signal.aborted || controller.close();
      const events = agent.run({ tools: [], context: [], state: {}, forwardedProps: {}, ...input }).subscribe({
        next: emit, complete: end,
        // The adapter throws what goes wrong, and leaves it to the server to tell.
        error: (e) => (emit({ type: EventType.RUN_ERROR, message: e.message }), end()),
      });
      request.signal.addEventListener('abort', () => (agent.abortRun(), events.unsubscribe()));
    },
  });
  return new Response(stream, { headers: { 'content-type': encoder.getContentType(), 'cache-control': 'no-cache' } });
});
