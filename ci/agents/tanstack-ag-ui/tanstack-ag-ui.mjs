#!/usr/bin/env node
// An endpoint made with TanStack AI, as its guide says: chat() gives events, toServerSentEventsResponse() sends them.
import { chat, chatParamsFromRequest, mergeAgentTools, toServerSentEventsResponse, toolDefinition } from '@tanstack/ai';
import { createOpenaiChat } from '@tanstack/ai-openai';
import { z } from 'zod';
import { serve, tools } from '../web.mjs';

const own = Object.entries(tools).map(([name, t]) => toolDefinition({
  name, description: t.description, needsApproval: name === 'run_shell',
  inputSchema: z.object(Object.fromEntries(Object.entries(t.properties).map(([key, p]) => [key, z.string().describe(p.description)]))),
}).server(t.run));

serve(async (request) => {
  if (request.method !== 'POST') return new Response('post a RunAgentInput', { status: 405 });
  let params;
  try {
    params = await chatParamsFromRequest(request);
  } catch (refusal) {
    return refusal; // it throws a Response
  }
  const abortController = new AbortController();
  request.signal.addEventListener('abort', () => abortController.abort());
  const stream = chat({
    adapter: createOpenaiChat('gpt-4.1-mini', process.env.OPENAI_API_KEY, { baseURL: process.env.OPENAI_BASE_URL, maxRetries: 0 }),
    messages: params.messages,
    systemPrompts: params.aguiContext.map((c) => `${c.description}: ${c.value}`),
    tools: mergeAgentTools(own, params.tools),
    threadId: params.threadId, runId: params.runId, parentRunId: params.parentRunId, state: params.state, resume: params.resume,
    abortController,
  });
  return toServerSentEventsResponse(stream, { abortController });
});
