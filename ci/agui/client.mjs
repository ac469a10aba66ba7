// Says what the official client makes of an endpoint. Of each URL on standard input it writes one line: "success", or
// the error that a run of HttpAgent gives.
import { createInterface } from 'node:readline';
import { HttpAgent } from '@ag-ui/client';

console.warn = console.error = () => {}; // it warns of what it leaves out
for await (const url of createInterface({ input: process.stdin })) {
  const agent = new HttpAgent({ url, threadId: 't', initialMessages: [{ id: 'u', role: 'user', content: 'Hi.' }] });
  console.log(await agent.runAgent({ runId: 'r' }).then(() => 'success', (e) => JSON.stringify(e.message)));
}
