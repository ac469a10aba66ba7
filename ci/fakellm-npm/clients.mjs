// Holds one conversation with a fake model server through each vendor's own
// client, streamed and whole, and checks what the client made of the answers.
// usage: node clients.mjs BASE_URL [held]
// With held it asks once, and the answer is "one two" however long that takes.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";

const base = process.argv[2];
const apiKey = "sk-test";
const model = "fake-model";
const schema = { type: "object", properties: { path: { type: "string" }, content: { type: "string" } }, required: ["path"] };
const toolNames = ["write_file", "read_file"];

// A conversation is a list of {user}, {model: what ask returned}, {results}.
const clients = {
  async "openai-chat"(run, lines, stream) {
    const client = new OpenAI({ apiKey, baseURL: `${base}/run/${run}/v1` });
    const messages = [];
    let calls = [];
    for (const line of lines) {
      if (line.user) messages.push({ role: "user", content: line.user });
      if (line.model) {
        calls = line.model.calls;
        const tool_calls = calls.map((c) => ({ id: c.id, type: "function", function: { name: c.name, arguments: JSON.stringify(c.args) } }));
        messages.push({ role: "assistant", content: line.model.text, ...(calls.length ? { tool_calls } : {}) });
      }
      line.results?.forEach((r, i) => messages.push({ role: "tool", tool_call_id: calls[i].id, content: r }));
    }
    const tools = toolNames.map((name) => ({ type: "function", function: { name, parameters: schema } }));
    let full, thinking = "";
    if (stream) {
      const s = client.chat.completions.stream({ model, messages, tools, stream_options: { include_usage: true } });
      for await (const chunk of s) thinking += chunk.choices[0]?.delta.reasoning_content ?? "";
      full = await s.finalChatCompletion();
    } else {
      full = await client.chat.completions.create({ model, messages, tools });
      thinking = full.choices[0].message.reasoning_content ?? "";
    }
    const { message, finish_reason } = full.choices[0];
    return {
      text: message.content ?? "", thinking, stop: finish_reason,
      calls: (message.tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, args: JSON.parse(c.function.arguments) })),
      usage: [full.usage.prompt_tokens, full.usage.completion_tokens],
    };
  },

  async "openai-responses"(run, lines, stream) {
    const client = new OpenAI({ apiKey, baseURL: `${base}/run/${run}/v1` });
    let input = [], previous_response_id, calls = [];
    for (const line of lines) {
      if (line.user) input.push({ role: "user", content: line.user });
      if (line.model) {
        input = [];
        calls = line.model.calls;
        previous_response_id = line.model.id;
      }
      line.results?.forEach((r, i) => input.push({ type: "function_call_output", call_id: calls[i].id, output: r }));
    }
    const tools = toolNames.map((name) => ({ type: "function", name, parameters: schema, strict: false }));
    const params = { model, input, tools, previous_response_id };
    const full = stream ? await client.responses.stream(params).finalResponse() : await client.responses.create(params);
    return {
      id: full.id, text: full.output_text,
      stop: [full.status, full.incomplete_details?.reason].filter(Boolean).join(" "),
      thinking: full.output.filter((o) => o.type === "reasoning").map((o) => o.summary[0].text).join(""),
      calls: full.output.filter((o) => o.type === "function_call").map((o) => ({ id: o.call_id, name: o.name, args: JSON.parse(o.arguments) })),
      usage: [full.usage.input_tokens, full.usage.output_tokens],
    };
  },

  async anthropic(run, lines, stream) {
    const client = new Anthropic({ apiKey, baseURL: `${base}/run/${run}` });
    const messages = [];
    let calls = [];
    for (const line of lines) {
      if (line.user) messages.push({ role: "user", content: line.user });
      if (line.model) {
        calls = line.model.calls;
        const content = line.model.text ? [{ type: "text", text: line.model.text }] : [];
        for (const c of calls) content.push({ type: "tool_use", id: c.id, name: c.name, input: c.args });
        messages.push({ role: "assistant", content });
      }
      if (line.results) messages.push({ role: "user", content: line.results.map((r, i) => ({ type: "tool_result", tool_use_id: calls[i].id, content: r })) });
    }
    const tools = toolNames.map((name) => ({ name, input_schema: schema }));
    const params = { model, max_tokens: 100, messages, tools };
    const full = stream ? await client.messages.stream(params).finalMessage() : await client.messages.create(params);
    const of = (type) => full.content.filter((b) => b.type === type);
    return {
      text: of("text").map((b) => b.text).join(""), thinking: of("thinking").map((b) => b.thinking).join(""), stop: full.stop_reason,
      calls: of("tool_use").map((b) => ({ id: b.id, name: b.name, args: b.input })),
      usage: [full.usage.input_tokens, full.usage.output_tokens],
    };
  },

  async gemini(run, lines, stream) {
    const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: `${base}/run/${run}`, retryOptions: { attempts: 3 } } });
    const contents = [];
    let calls = [];
    for (const line of lines) {
      if (line.user) contents.push({ role: "user", parts: [{ text: line.user }] });
      if (line.model) {
        calls = line.model.calls;
        const parts = line.model.text ? [{ text: line.model.text }] : [];
        for (const c of calls) parts.push({ functionCall: { name: c.name, args: c.args } });
        contents.push({ role: "model", parts });
      }
      if (line.results) contents.push({ role: "user", parts: line.results.map((r, i) => ({ functionResponse: { name: calls[i].name, response: { output: r } } })) });
    }
    const config = { tools: [{ functionDeclarations: toolNames.map((name) => ({ name, parametersJsonSchema: schema })) }] };
    const out = { text: "", thinking: "", calls: [], stop: "", usage: [] };
    const take = (r) => {
      out.usage = [r.usageMetadata.promptTokenCount, r.usageMetadata.candidatesTokenCount];
      const candidate = r.candidates[0];
      if (candidate.finishReason) out.stop = candidate.finishReason;
      for (const part of candidate.content?.parts ?? []) {
        if (part.functionCall) out.calls.push({ id: part.functionCall.id, name: part.functionCall.name, args: part.functionCall.args });
        else if (part.thought) out.thinking += part.text;
        else out.text += part.text;
      }
    };
    if (stream) for await (const r of await client.models.generateContentStream({ model, contents, config })) take(r);
    else take(await client.models.generateContent({ model, contents, config }));
    return out;
  },
};

// The words of each API for end, length, refusal and tool.
const stops = {
  "openai-chat": ["stop", "length", "content_filter", "tool_calls"],
  "openai-responses": ["completed", "incomplete max_output_tokens", "incomplete content_filter", "completed"],
  anthropic: ["end_turn", "max_tokens", "refusal", "tool_use"],
  gemini: ["STOP", "MAX_TOKENS", "SAFETY", "STOP"],
};

async function talk(name, stream) {
  const [end, length, refusal, tool] = stops[name];
  const lines = [{ user: "Please say hello to me" }];
  const ask = () => clients[name](`${name}-${stream}`, lines, stream);
  const next = async () => {
    const got = await ask();
    lines.push({ model: got });
    lines.push(got.calls.length ? { results: ["one", "two"].slice(0, got.calls.length) } : { user: "go on" });
    return got;
  };
  let got = await next();
  assert.equal(got.text, "Hello, world ✓.");
  assert.equal(got.thinking, "Let me see.");
  assert.equal(got.stop, end);
  assert.deepEqual(got.usage, [30, 7]);

  got = await next();
  assert.equal(got.text, "I will write.");
  assert.equal(got.stop, tool);
  assert.deepEqual(got.calls.map((c) => [c.name, c.args]), [["write_file", { path: "/a", content: "x\n" }]]);

  got = await next();
  assert.deepEqual(got.calls.map((c) => [c.name, c.args]), [["write_file", { path: "/a" }], ["read_file", { path: "/b" }]]);

  assert.equal((await next()).text, "All done.");
  got = await next();
  assert.deepEqual([got.text, got.stop], ["cut o", length]);
  assert.equal((await next()).stop, refusal);
  assert.equal((await next()).text, "after a retry");
  await assert.rejects(ask);
}

// held is a conversation of one answer that a gate holds open for minutes. A
// client that lost patience and asked again would be seen by the server.
async function held(name, stream) {
  const got = await clients[name](`${name}-${stream}`, [{ user: "Please take your time" }], stream);
  assert.equal(got.text, "one two");
}

const act = process.argv[3] === "held" ? held : talk;
const pairs = Object.keys(clients).flatMap((name) => [true, false].map((stream) => [name, stream]));
await Promise.all(pairs.map(async ([name, stream]) => {
  try {
    await act(name, stream);
    console.log(`ok ${name} stream=${stream}`);
  } catch (e) {
    console.log(`not ok ${name} stream=${stream}: ${e.stack}`);
    process.exitCode = 1;
  }
}));
