// A client on the official TypeScript library that does what another editor says: it
// plays the agent to that editor, and the editor to the agent. So each message is read,
// checked and written by the library, on its way there and on its way back.
// usage: node sdk-relay.mjs AGENT [ARG…]
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { TransformStream } from "node:stream/web";
import * as acp from "@agentclientprotocol/sdk";

const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? (signal ? 1 : 0))));

let toEditor, toAgent;
const client = acp.client({ name: "sdk-relay" });
relay(client, acp.methods.client, ["session/update", "elicitation/complete"], () => toEditor);
const agent = acp.agent({ name: "sdk-relay" });
relay(agent, acp.methods.agent, ["session/cancel"], () => toAgent);

const editorSide = agent.connect(inOrder(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin))));
const agentSide = client.connect(inOrder(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout))));
toEditor = editorSide.client;
toAgent = agentSide.agent;

// relay hands on what arrives at one side: what the library knows, with its types, and
// anything else as it is.
function relay(side, methods, notifications, peer) {
  for (const method of [...names(methods).filter((name) => !notifications.includes(name)), "*"]) {
    side.onRequest(method, (cx) => peer().request(cx.method, cx.params, { cancellationSignal: cx.signal }));
  }
  for (const method of [...notifications, "*"]) {
    side.onNotification(method, (cx) => peer().notify(cx.method, cx.params));
  }
}

// names are the methods in a tree of them.
function names(methods) {
  return Object.values(methods).flatMap((m) => (typeof m === "string" ? [m] : names(m)));
}

// inOrder gives the library one message in each round of the event loop, so that no
// message overtakes another one while handlers are looked for.
function inOrder({ readable, writable }) {
  const paced = new TransformStream({
    async transform(message, out) {
      out.enqueue(message);
      await new Promise(setImmediate);
    },
  });
  return { readable: readable.pipeThrough(paced), writable };
}

// A side that ends ends the other one.
editorSide.closed.then(() => child.stdin.end());
process.exitCode = await exited;
await agentSide.closed;
process.stdin.destroy();
