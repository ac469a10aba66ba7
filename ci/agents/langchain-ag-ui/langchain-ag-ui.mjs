#!/usr/bin/env node
// LangChain's createAgent behind AG-UI. AGUI_OPTIONS are the options of the middleware, as JSON.
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent } from 'langchain';
import { schemaOf, serve, tools } from '../web.mjs';
import { endpoint } from './endpoint.mjs';
import { fault } from './fault.mjs';
import { aguiMiddleware } from './hooks.mjs';

let newest;

function build(run, checkpointer) {
  newest = run;
  const own = Object.entries(tools).map(([name, t]) => tool(t.run, { name, description: t.description, schema: schemaOf(t) }));
  const setState = ({ path, value }) => {
    (fault('set-state-changes-newest-run') ? newest : run).change(path, value);
    return `The state has ${path}.`;
  };
  const change = tool(setState, {
    name: 'set_state', description: 'Changes the state that the user sees',
    schema: { type: 'object', properties: { path: { type: 'string', description: 'A JSON pointer' }, value: {} }, required: ['path', 'value'] },
  });
  const front = (run.input.tools ?? []).map((t) => tool(() => '', { name: t.name, description: t.description, schema: t.parameters ?? { type: 'object', properties: {} } }));
  const disableStreaming = front.length > 0 && fault('front-tools-turn-streaming-off');
  return createAgent({
    model: new ChatOpenAI({ model: 'gpt-4.1-mini', maxRetries: 0, disableStreaming }),
    tools: [...own, change, ...front], checkpointer,
    middleware: [aguiMiddleware(run, (name) => name === 'run_shell')],
  });
}

serve(endpoint(build, JSON.parse(process.env.AGUI_OPTIONS ?? '{}')));
