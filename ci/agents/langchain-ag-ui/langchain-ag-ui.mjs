#!/usr/bin/env node
// LangChain's createAgent behind AG-UI. AGUI_OPTIONS are the options of the middleware, as JSON.
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent } from 'langchain';
import { schemaOf, serve, tools } from '../web.mjs';
import { endpoint } from './endpoint.mjs';
import { aguiMiddleware } from './hooks.mjs';

function build(run, checkpointer) {
  const own = Object.entries(tools).map(([name, t]) => tool(t.run, { name, description: t.description, schema: schemaOf(t) }));
  const change = tool(({ path, value }) => (run.change(path, value), `The state has ${path}.`), {
    name: 'set_state', description: 'Changes the state that the user sees',
    schema: { type: 'object', properties: { path: { type: 'string', description: 'A JSON pointer' }, value: {} }, required: ['path', 'value'] },
  });
  const front = (run.input.tools ?? []).map((t) => tool(() => '', { name: t.name, description: t.description, schema: t.parameters ?? { type: 'object', properties: {} } }));
  return createAgent({
    model: new ChatOpenAI({ model: 'gpt-4.1-mini', maxRetries: 0 }),
    tools: [...own, change, ...front], checkpointer,
    middleware: [aguiMiddleware(run, (name) => name === 'run_shell')],
  });
}

serve(endpoint(build, JSON.parse(process.env.AGUI_OPTIONS ?? '{}')));
