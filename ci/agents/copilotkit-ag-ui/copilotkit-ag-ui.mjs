#!/usr/bin/env node
// An endpoint made with the built-in agent of CopilotKit, which makes events of the AI SDK; the encoder sends them.
import { EventType } from '@ag-ui/core';
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import { EventEncoder } from '@ag-ui/encoder';
import { createOpenAI } from '@ai-sdk/openai';
import { BuiltInAgent, defineTool } from '@copilotkit/runtime/v2';
import { z } from 'zod';
import { serve, tools } from '../web.mjs';

const own = Object.entries(tools).map(([name, t]) => defineTool({
  name, description: t.description, execute: t.run,
  parameters: z.object(Object.fromEntries(Object.entries(t.properties).map(([key, p]) => [key, z.string().describe(p.description)]))),
}));
const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });

serve(async (request) => {
  if (request.method !== 'POST') return new Response('post a RunAgentInput', { status: 405 });
  const { data: input, error } = RunAgentInputSchema.safeParse(await request.json().catch(() => undefined));
  if (error) return new Response(error.message, { status: 400 });
  const encoder = new EventEncoder({ accept: request.headers.get('accept') ?? undefined });
  const agent = new BuiltInAgent({
    model: openai.chat('gpt-4.1-mini'), tools: own, maxSteps: 20, maxRetries: 0,
    forwardSystemMessages: true, forwardDeveloperMessages: true,
  });
  const stream = new ReadableStream({
    start(controller) {
      const emit = (event) => request.signal.aborted || controller.enqueue(encoder.encodeBinary(event));
      const end = () => request.signal.aborted || controller.close();
      let failed = false;
      agent.run({ tools: [], context: [], state: {}, forwardedProps: {}, ...input }).subscribe({
        next: (event) => (emit(event), (failed ||= event.type === EventType.RUN_ERROR)), complete: end,
        error: (e) => (failed || emit({ type: EventType.RUN_ERROR, message: e.message }), end()),
      });
      request.signal.addEventListener('abort', () => agent.abortRun());
    },
  });
  return new Response(stream, { headers: { 'content-type': encoder.getContentType(), 'cache-control': 'no-cache' } });
});
