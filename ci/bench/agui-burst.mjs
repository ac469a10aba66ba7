// The official client of AG-UI takes one run and prints how many pieces of text it saw, and how many milliseconds the
// run took; after a minute it stops, with what it has seen.
// usage: node agui-burst.mjs URL
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(new URL('../agui/package.json', import.meta.url));
const { HttpAgent } = await import(pathToFileURL(require.resolve('@ag-ui/client')).href);
const agent = new HttpAgent({ url: process.argv[2], threadId: 't', initialMessages: [{ id: 'u', role: 'user', content: 'Go.' }] });
let seen = 0;
const started = performance.now();
const say = () => console.log(seen, performance.now() - started);
setTimeout(() => (say(), process.exit()), 60_000).unref();
await agent.runAgent({ runId: 'r' }, { onTextMessageContentEvent: () => void seen++ });
say();
