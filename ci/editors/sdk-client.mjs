// A client on the official TypeScript library: opens one session, prompts, and
// prints what the agent said. Permissions are answered with the first option
// that allows once.
// usage: node sdk-client.mjs AGENT [ARG…], or with the URL of an agent, http or ws; PROMPT is the text of the prompt,
// LOAD the id of a session to load. ACP_TEST_SEEN is the
// file for an account of what a user would have seen, and FAULT what is wrong with that: last-lost,
// doubled, elsewhere, asks-unseen or calls-unseen; invents is one that chooses what was not offered,
// dies one that a request for a file ends.
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const [command, ...args] = process.argv.slice(2);
const child = /^(http|ws):/.test(command) ? null : spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => (child ? child.once("exit", resolve) : resolve()));
const stop = () => (child ? child.kill("SIGKILL") : process.exit(1));
let text = "";
const { ACP_TEST_SEEN: account, FAULT: fault } = process.env;
const seen = (line) => account && appendFileSync(account, JSON.stringify(line) + "\n");
seen({ tells: ["text", "calls", "asks"] });
let cancelled = false;
let held; // a piece that a client shows too late
function show(sessionId, { sessionUpdate, content, toolCallId }) {
  if (sessionUpdate === "tool_call" && fault !== "calls-unseen") seen({ session: sessionId, call: toolCallId });
  if (sessionUpdate !== "agent_message_chunk" || content.type !== "text") return;
  text += content.text;
  const shown = { session: fault === "elsewhere" ? "another" : sessionId };
  if (fault === "last-lost") [held, content] = [content, held];
  if (content) seen({ ...shown, text: content.text });
  if (fault === "doubled") seen({ ...shown, text: content.text });
}
const app = acp
  .client({ name: "sdk-client" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    if (fault !== "asks-unseen") seen({ session: params.sessionId, asks: params.toolCall.toolCallId });
    const option = params.options.find((o) => o.kind === "allow_once") ?? params.options[0];
    if (cancelled) return { outcome: { outcome: "cancelled" } };
    if (fault === "invents") return { outcome: { outcome: "selected", optionId: "invented" } };
    return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
  })
  .onRequest(acp.methods.client.fs.readTextFile, async ({ params }) => {
    if (fault === "dies") process.exit(1);
    return { content: part(await readFile(params.path, "utf8"), params.line, params.limit) };
  })
  .onRequest(acp.methods.client.fs.writeTextFile, async ({ params }) => {
    await writeFile(params.path, params.content).catch(() => {});
    return {};
  })
  .onNotification(acp.methods.client.session.update, ({ params }) => show(params.sessionId, params.update));

// part is the lines from a line on, which counts from 1, with their ends.
function part(content, line, limit) {
  const lines = content.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const from = Math.max((line ?? 1) - 1, 0);
  return lines.slice(from, limit == null ? undefined : from + limit).join("");
}

// A turn that takes longer is cancelled, and then given up.
const patience = Number(process.env.PATIENCE_MS ?? 8000);
const stream = child
  ? acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout))
  : command.startsWith("ws:")
    ? createWebSocketStream(command)
    : createHttpStream(command);
const done = app.connectWith(stream, async (agent) => {
  const { protocolVersion } = await agent.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
    clientInfo: { name: "sdk-client", version: "1" },
  });
  if (protocolVersion !== acp.PROTOCOL_VERSION) throw new Error(`the agent speaks version ${protocolVersion}`);
  const place = { cwd: process.cwd(), mcpServers: [] };
  const old = process.env.LOAD;
  const { sessionId } = old
    ? { sessionId: old, ...(await agent.request(acp.methods.agent.session.load, { sessionId: old, ...place })) }
    : await agent.request(acp.methods.agent.session.new, place);
  const cancel = setTimeout(() => {
    cancelled = true;
    agent.notify(acp.methods.agent.session.cancel, { sessionId });
    setTimeout(stop, patience).unref();
  }, patience);
  const { stopReason } = await agent.request(acp.methods.agent.session.prompt, {
    sessionId,
    prompt: [{ type: "text", text: process.env.PROMPT ?? "Say hello." }],
  });
  clearTimeout(cancel);
  console.log(JSON.stringify({ stopReason, text }));
});
await done.catch((err) => {
  console.error(`sdk-client: ${err.message}`);
  process.exitCode = 1;
});
child?.stdin.end();
const timer = setTimeout(stop, 5000);
await ended;
clearTimeout(timer);
