// A client on the official TypeScript library that takes one turn and prints
// how many updates it saw and how many milliseconds the turn took.
// usage: node burst.mjs AGENT [ARG…]
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../editors/package.json", import.meta.url));
const acp = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk")).href);

const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => child.once("exit", resolve));
let seen = 0;
const app = acp.client({ name: "burst" }).onNotification(acp.methods.client.session.update, () => {
  seen++;
});
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
await app.connectWith(stream, async (agent) => {
  await agent.request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
  const started = performance.now();
  await agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "Say hello." }] });
  console.log(seen, performance.now() - started);
});
child.stdin.end();
await ended;
