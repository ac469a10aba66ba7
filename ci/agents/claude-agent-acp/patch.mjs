// Changes modules of the installed adapter as Node loads them, if FAULT names an entry of faults.mjs. To be loaded
// before the agent. Every anchor is looked up at the start, so that a version of the package that no longer has it is
// noticed at once and not when the code runs.
import { readFileSync } from 'node:fs';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { faults } from './faults.mjs';

/** How far `find` may be from `near`, so that it is not found in another function. */
const FAR = 3000;

const name = process.env.FAULT ?? '';
// The model's program and the MCP servers are started with this environment, and none of it is meant for them.
delete process.env.FAULT;

if (name) {
  if (!Object.hasOwn(faults, name)) give(`there is no fault ${name}`);
  if (!module.registerHooks) give('the faults need Node.js 22.15 or newer');
  const main = module.createRequire(import.meta.url).resolve('@agentclientprotocol/claude-agent-acp/dist/index.js');
  const changed = new Map();
  for (const edit of faults[name]) {
    const file = join(dirname(main), edit.file);
    const url = pathToFileURL(file).href;
    changed.set(url, change(changed.get(url) ?? readFileSync(file, 'utf8'), edit));
  }
  module.registerHooks({
    load(url, context, next) {
      const source = changed.get(url);
      return source === undefined ? next(url, context) : { format: 'module', source, shortCircuit: true };
    },
  });
}

/** Replaces `find`: the only one in the text, or the first after `near`, which there has to be once. */
function change(text, { file, near, find, put }) {
  let from = 0;
  if (near !== undefined) {
    once(text, near, file);
    from = text.indexOf(near) + near.length;
    if (!text.slice(from, from + FAR).includes(find)) {
      give(`${file} has no ${JSON.stringify(find)} soon after ${JSON.stringify(near)}`);
    }
  } else {
    once(text, find, file);
  }
  const at = text.indexOf(find, from);
  return text.slice(0, at) + put + text.slice(at + find.length);
}

function once(text, part, file) {
  const times = text.split(part).length - 1;
  if (times !== 1) give(`${file} has ${JSON.stringify(part)} ${times} times, not once`);
}

function give(problem) {
  console.error(`claude-agent-acp-faulty: ${name}: ${problem}`);
  process.exit(2);
}
