// A small front end on the official client, for acp-test editors. It begins, answers calls of its tools and interrupts,
// goes on once, and says what became of each run and what it has in the end. Where the agent says CUSTOM please.stop it
// stops the run, as a user does.
import { HttpAgent } from '@ag-ui/client';

console.warn = console.error = () => {}; // it warns of what it leaves out
const agent = new HttpAgent({ url: process.argv[2], threadId: 'thread-1' });
const tools = ['pick_date', 'show_map'].map((name) => ({ name, description: name, parameters: { type: 'object' } }));
let runs = 0, failed;
const watch = {
  onCustomEvent: ({ event }) => void (event.name === 'please.stop' && agent.abortRun()),
  onRunErrorEvent: ({ event }) => void (failed = event.message),
};

async function run(parameters = {}) {
  failed = undefined;
  const outcome = await agent.runAgent({ tools, ...parameters }, watch).then(
    () => (failed === undefined ? 'success' : `error ${failed}`), (e) => `error ${e.message}`);
  console.log(`run ${++runs}: ${outcome.replace(/\s+/g, ' ')}`);
}

async function ask(content) {
  agent.addMessage({ id: `user-${runs + 1}`, role: 'user', content });
  await run();
  for (let round = 0; round < 3; round++) {
    const answered = agent.messages.filter((m) => m.role === 'tool').map((m) => m.toolCallId);
    const open = agent.messages.flatMap((m) => m.toolCalls ?? []).filter((c) => !answered.includes(c.id));
    const mine = open.filter((c) => tools.some((t) => t.name === c.function.name));
    if (agent.pendingInterrupts?.length) {
      await run({ resume: agent.pendingInterrupts.map((i) => ({ interruptId: i.id, status: 'resolved', payload: { approved: true } })) });
    } else if (mine.length) {
      for (const c of mine) agent.addMessage({ id: `answer-${c.id}`, role: 'tool', toolCallId: c.id, content: 'The ninth.' });
      await run();
    } else return;
  }
}

await ask('Begin.');
await ask('Go on.');
console.log('state: ' + JSON.stringify(agent.state));
console.log('messages: ' + agent.messages.map((m) => m.role + (m.content ? ' ' + JSON.stringify(m.content) : '')).join(', '));
