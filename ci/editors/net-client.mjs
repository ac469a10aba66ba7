// A small client over HTTP, on fetch alone: opens a session, or loads the one that LOAD names, prompts once, prints the
// texts that it receives, and ends. If the network fails, it says so and ends. FAULT is what is wrong with it:
// resends       connects again and sends the prompt again
// storms        sends a refused message again and again
// doubles       sends a message twice after a refusal
// by-lines      takes a line for an event
// plain-forms   knows no line ends but LF
// drops-late    shows no history after the answer to session/load; drops-early none before it
// wants-history ends if the answer comes before the history; wants-answer if it comes after
// usage: node net-client.mjs URL
const [url] = process.argv.slice(2);
const { FAULT: fault, LOAD: old, PROMPT: text = "Say hello." } = process.env;

class Connection {
  id = 0;
  waiting = new Map();
  loaded = !old; // the session is open
  history = false; // a text came before that

  async post(message, session) {
    const headers = { "Content-Type": "application/json" };
    if (this.connection) headers["Acp-Connection-Id"] = this.connection;
    if (session) headers["Acp-Session-Id"] = session;
    const send = (m) => fetch(url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...m }) });
    for (let tries = 0; ; tries++) {
      const answer = await send(message).catch(() => undefined);
      if (answer?.ok && fault === "doubles" && tries > 0) await send({ ...message, id: this.id++ });
      if (answer?.ok) return answer;
      if (tries === ({ storms: 40, doubles: 1 }[fault] ?? 0)) throw new Error(`${message.method}: ${answer?.status}`);
    }
  }

  // call sends a request and returns the result, which a stream brings.
  async call(method, params) {
    const id = this.id++;
    const result = new Promise((done, fail) => this.waiting.set(id, { done, fail }));
    result.catch(() => {});
    await this.post({ id, method, params }, params.sessionId);
    return result;
  }

  async listen(session) {
    const headers = { Accept: "text/event-stream", "Acp-Connection-Id": this.connection };
    if (session) headers["Acp-Session-Id"] = session;
    const answer = await fetch(url, { headers });
    this.read(answer).catch((e) => {
      for (const { fail } of this.waiting.values()) fail(e);
    });
  }

  async read(answer) {
    let rest = "";
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
      rest += piece;
      if (fault !== "plain-forms") rest = rest.replace(/\r\n|\r(?!$)/g, "\n").replace(/\r$/, "\n");
      const parts = rest.split(fault === "by-lines" ? "\n" : "\n\n");
      rest = parts.pop();
      for (const event of parts) this.take(event);
    }
    throw new Error("the stream has ended");
  }

  take(event) {
    const lines = event.split("\n").filter((line) => line.startsWith("data:"));
    const data = lines.map((line) => line.slice(5)).join("\n").trim();
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      return; // no message
    }
    if (message.method === undefined) {
      const of = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error) of?.fail(new Error(message.error.message));
      else of?.done(message.result);
      if (message.id === this.loading) this.loaded = true;
    } else if (message.id !== undefined) {
      const error = { code: -32601, message: "unknown" };
      this.post({ id: message.id, error }, message.params?.sessionId).catch(() => {});
    } else this.show(message.params.update);
  }

  show({ content }) {
    this.history ||= !this.loaded;
    if (fault === "drops-late" && this.loaded && content.text.startsWith("An old")) return;
    if (fault === "drops-early" && !this.loaded) return;
    console.log(content.text);
  }

  async open() {
    const answer = await this.post({ id: this.id++, method: "initialize", params: { protocolVersion: 1 } });
    this.connection = answer.headers.get("Acp-Connection-Id");
    await answer.json();
    await this.listen();
    const place = { cwd: process.cwd(), mcpServers: [] };
    let session = old;
    if (old) {
      await this.listen(old);
      this.loading = this.id;
      await this.call("session/load", { sessionId: old, ...place });
      if (this.history ? fault === "wants-answer" : fault === "wants-history") throw new Error("the wrong order");
    } else {
      session = (await this.call("session/new", place)).sessionId;
      await this.listen(session);
    }
    const prompt = [{ type: "text", text }];
    console.log((await this.call("session/prompt", { sessionId: session, prompt })).stopReason);
    await fetch(url, { method: "DELETE", headers: { "Acp-Connection-Id": this.connection } });
  }
}

const attempt = () => new Connection().open();
await attempt()
  .catch((e) => (fault === "resends" ? attempt() : Promise.reject(e)))
  .catch((e) => console.log(`the network failed: ${e.message}`));
process.exit();
