// A client of ACP version 2 on the official TypeScript library: opens one session, prompts twice,
// and prints what the agent said. Permissions are answered with the first option that allows once.
// usage: node sdk-client-2.mjs AGENT [ARG…]
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";

const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => child.once("exit", resolve));

// What a user sees: messages by their ids, in their order, and titles of calls.
const shown = new Map();
let work = null; // of the prompt that is open
const text = (blocks) => (blocks ?? []).map((b) => b.text ?? "").join("");
function see(update) {
  switch (update.sessionUpdate) {
    case "agent_message":
      if (update.content !== undefined) shown.set(update.messageId, text(update.content));
      break;
    case "agent_message_chunk":
      shown.set(update.messageId, (shown.get(update.messageId) ?? "") + text([update.content]));
      break;
    case "tool_call_update":
      if (typeof update.title === "string") shown.set(update.toolCallId, update.title);
      break;
    case "state_update":
      if (!work) break;
      if (update.state !== "idle") work.began = true;
      else if (work.began) work.done(update.stopReason ?? "none");
  }
}
const app = acp
  .client({ name: "sdk-client-2" })
  .onRequest("session/request_permission", ({ params }) => {
    const option = params.options.find((o) => o.kind === "allow_once") ?? params.options[0];
    return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
  })
  .onNotification("session/update", ({ params }) => see(params.update));

// A turn that takes longer is cancelled, and then given up.
const patience = Number(process.env.PATIENCE_MS ?? 8000);
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const done = app.connectWith(stream, async (agent) => {
  const { protocolVersion } = await agent.request("initialize", {
    protocolVersion: 2,
    capabilities: {},
    info: { name: "sdk-client-2", version: "1" },
  });
  if (protocolVersion !== 2) throw new Error(`the agent speaks version ${protocolVersion}`);
  const { sessionId } = await agent.request("session/new", { cwd: process.cwd(), mcpServers: [] });
  for (const prompt of (process.env.PROMPTS ?? "Say hello.,Once more.").split(",")) {
    const reason = new Promise((resolve) => (work = { began: false, done: resolve }));
    const cancel = setTimeout(() => {
      agent.notify("session/cancel", { sessionId });
      setTimeout(() => child.kill("SIGKILL"), patience).unref();
    }, patience);
    const stop = await Promise.race([
      reason,
      agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: prompt }] }).then(() => reason, () => "refused"),
      ended.then(() => "exit"),
    ]);
    clearTimeout(cancel);
    work = null;
    console.log(`${stop}: ${[...shown.values()].join("\n")}`);
    shown.clear();
    if (stop === "exit") break;
  }
});
await done.catch((err) => {
  console.error(`sdk-client-2: ${err.message}`);
  process.exitCode = 1;
});
child.stdin.end();
const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
await ended;
clearTimeout(timer);
