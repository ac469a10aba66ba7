#!/usr/bin/env python3
"""pico: a small coding agent in plain Python, no SDK. OpenAI Responses, not streamed (PICO_URL, PICO_KEY,
PICO_MODEL); tools that read and patch files on disk; no optional capability of the protocol at all."""
import contextlib, http.client, json, os, secrets, socket, subprocess, sys, tempfile, threading, time, zlib
from urllib.parse import urlsplit

sys.dont_write_bytecode = True
from fault import fault

TOOLS = [
    {"type": "function", "name": "view", "description": "Show lines of a file, or the entries of a directory.",
     "parameters": {"type": "object", "required": ["path"], "properties": {
         "path": {"type": "string"}, "start": {"type": "integer"}, "count": {"type": "integer"}}}},
    {"type": "function", "name": "patch", "description": "Change files. The diff holds sections '*** Add File: p' (lines with +), "
     "'*** Update File: p' (hunks that start with @@, lines with ' ', '-' or '+') and '*** Delete File: p'.",
     "parameters": {"type": "object", "required": ["diff"], "properties": {"diff": {"type": "string"}}}},
    {"type": "function", "name": "todo", "description": "Write down the whole list of steps and how far each one is.",
     "parameters": {"type": "object", "required": ["items"], "properties": {"items": {"type": "array", "items": {
         "type": "object", "required": ["step", "state"], "properties": {
             "step": {"type": "string"}, "state": {"enum": ["pending", "in_progress", "completed"]}}}}}}},
]
RUN = {"type": "function", "name": "run", "description": "Run a command of the shell in the project.",
       "parameters": {"type": "object", "required": ["command"], "properties": {"command": {"type": "string"}}}}
BUILT_IN = ("gpt-5", "gpt-5-mini")
listing = any(map(fault, ("new-session-id-has-prefix-load-refuses", "session-listed-and-loaded-by-other-id")))
keeping = listing or any(map(fault, (  # sessions are kept on disk and can be loaded
    "failed-call-completed-live-but-failed-in-replay", "replayed-calls-lose-their-details",
    "plan-told-by-reminder-only", "load-ends-calls-that-still-run", "load-with-other-folder-has-no-history",
    "load-answer-names-session", "transcript-saved-under-inner-id", "failed-load-leaves-session",
    "load-starts-only-servers-known-before", "usage-not-told-when-live-session-is-loaded",
    "replay-of-kept-session-has-fresh-id", "load-of-unknown-id-takes-newest-of-folder")))
choosing = any(map(fault, ("custom-model-offered-but-refused", "fork-loses-model-and-servers")))
commanding = any(map(fault, ("command-with-other-blocks-refused", "commands-known-in-newest-session-only",
                             "command-after-first-turn-goes-to-model")))
signing_in = any(map(fault, ("sign-in-address-of-own-service-has-no-scheme", "sign-in-ids-count-per-session")))
logging_in = any(map(fault, (  # a key can be entered in a terminal
    "terminal-login-env-is-list", "aborted-login-exits-with-zero", "login-goes-on-as-agent")))
COMMANDS = [{"name": "steps", "description": "Show the steps and how far each one is."},
            {"name": "explain", "description": "Explain something to a newcomer.", "input": {"hint": "what?"}}]
out_lock, state_lock = threading.Lock(), threading.Lock()
waiting, sessions, counter, speaking, line, intro = {}, {}, 0, None, None, None
viewed, read_id = {}, 0
one_question, asking, nothing = threading.Lock(), None, []
last_plan, editor, chosen = {}, {}, {}
outputs, ending = {}, []
offered = {}  # the commands of each session


class Rpc(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data is not None else {})}


class Cancelled(Exception):
    pass


class Refused(RuntimeError):
    pass


class NoTerminal(RuntimeError):
    pass


def send(**message):
    text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=not fault("half-character-breaks-utf8"))
    line = text.encode("utf-8", "surrogatepass") + b"\n"
    with out_lock:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def send_together(messages):
    text = json.dumps([{"jsonrpc": "2.0", **m} for m in messages])
    with out_lock:
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.buffer.flush()


def request(s, method, params):
    global counter
    with state_lock:
        counter += 1
        s.asked += 1
        rid = f"pico-{s.asked if fault('permission-ids-count-per-session') else counter}"
        if fault("late-answer-counts-for-next-question"):
            rid = next(i for n in range(counter) if (i := f"pico-{n}") not in waiting)  # the first that is free
        if fault("request-with-id-of-open-question-taken-for-answer"):
            rid = counter = max(counter, read_id + 1)  # the first that nobody has used
        slot = waiting[rid] = s.question = {"ready": threading.Event()}
    send(id=rid, method=method, params=params)
    slot["ready"].wait()
    with state_lock:
        if waiting.get(rid) is slot:  # the turn was stopped
            del waiting[rid]
    return slot["answer"]


started = []  # processes of MCP servers


class Mcp:
    """One stdio MCP server: handshake, tools, calls."""

    def __init__(self, spec, cwd):
        self.name, self.slots, self.n, self.lock = spec["name"], {}, 0, threading.Lock()
        self.tag = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in self.name)
        self.busy = threading.Lock()
        env = {**os.environ, **{e["name"]: e["value"] for e in spec["env"] if e["value"] or not fault("empty-env-value-not-passed")}}
        if fault("mcp-env-leaks-into-later-servers"):
            os.environ.update(env)
        command = [spec["command"], *spec["args"]]
        if fault("mcp-arguments-split-at-spaces"):
            command = " ".join(command).split()
        self.child = subprocess.Popen(command, cwd=cwd, env=env,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=self.read, daemon=True).start()
        started.append(self.child)
        try:
            self.call("initialize", {"protocolVersion": "2025-03-26", "capabilities": {},
                                     "clientInfo": {"name": "pico", "version": "7"}}, 10)
            self.write(method="notifications/initialized")
            self.tools, page = [], self.call("tools/list", {}, 10)
            while True:
                if fault("mcp-tools-last-page-only"):
                    self.tools = []
                self.tools += page["tools"]
                if not page.get("nextCursor"):
                    break
                page = self.call("tools/list", {"cursor": page["nextCursor"]}, 10)
        except Exception:
            if not fault("failed-mcp-server-left-running"):
                self.child.kill()
            raise

    def write(self, **m):
        with self.lock:
            self.child.stdin.write(json.dumps({"jsonrpc": "2.0", **m}).encode() + b"\n")
            self.child.stdin.flush()

    def read(self):
        for line in self.child.stdout:
            try:
                m = json.loads(line)
            except ValueError:
                continue
            if "method" in m:
                if m["method"] == "ping":
                    self.write(id=m["id"], result={})
                elif "id" in m:
                    self.write(id=m["id"], error={"code": -32601, "message": "Method not found"})
            elif m.get("id") in self.slots or fault("late-mcp-answer-after-cancel-deafens-server"):
                slot = self.slots.pop(m["id"])
                slot["answer"] = m
                slot["ready"].set()
        if hasattr(self, "tools") and fault("mcp-server-death-leaves-call-open"):
            return  # the next write fails
        for slot in list(self.slots.values()):
            slot["ready"].set()

    def call(self, method, params, timeout, turn=None):
        if method != "tools/call" or not fault("mcp-error-leaves-server-locked"):
            return self.ask(method, params, timeout, turn)
        self.busy.acquire()  # one tool at a time
        try:
            result = self.ask(method, params, timeout, turn)
        except Cancelled:
            self.busy.release()
            raise
        self.busy.release()
        return result

    def ask(self, method, params, timeout, turn):
        with self.lock:
            self.n += 1
            rid = self.n
            slot = self.slots[rid] = {"ready": threading.Event()}
        self.write(id=rid, method=method, params=params)
        while not slot["ready"].wait(0.1):
            timeout -= 0.1
            if timeout < 0 or (turn and turn.stopped):
                self.slots.pop(rid, None)
                if turn and turn.stopped and fault("cancelled-mcp-call-not-told-to-server"):
                    raise Cancelled()
                self.write(method="notifications/cancelled", params={"requestId": rid})
                raise Cancelled() if turn and turn.stopped else RuntimeError(f"MCP server {self.name} does not answer")
        m = slot.get("answer") or {"error": {"message": "the MCP server ended"}}
        if "error" in m:
            raise RuntimeError(m["error"]["message"])
        return m["result"]


class Session:
    servers, free = [], False

    def __init__(self, cwd, servers):
        self.id, self.cwd, self.items, self.turn, self.free, self.mcp = str(secrets.randbelow(10**12)), os.path.normpath(cwd), [], None, False, []
        if fault("overlapping-new-sessions-get-same-id"):
            self.id = str(len(sessions) + 1)
        self.asked, self.said, self.steps, self.stopping, self.stop_next = 0, None, {}, False, False
        self.question, self.spent, self.agreed = None, 0, set()
        self.kept, self.made, self.unwanted, self.seen = 0, set(), set(), {}
        self.last = None
        self.links, self.about, self.tokens = set(), "", 0
        self.mode, self.effort, self.brief = "ask", "low", False
        self.model, self.todo, self.texts = None, [], {}
        self.key, self.record, self.told, self.pen = self.id, [], {}, threading.Lock()
        if fault("transcript-saved-under-inner-id") or fault("session-listed-and-loaded-by-other-id"):
            self.key = str(secrets.randbelow(10**12))
        self.roots, self.greeted, self.title, self.pushed = [], False, None, None
        self.staged = []
        self.named = []
        if fault("load-starts-only-servers-known-before"):
            self.named = [spec["name"] for spec in servers]
        if fault("new-session-id-has-prefix-load-refuses"):
            self.id = f"pico:{self.key}"
        if fault("same-folder-same-session"):
            self.id = str(zlib.crc32(self.cwd.encode()))
        if fault("mcp-servers-shared-by-sessions"):
            self.mcp = self.servers
        if fault("relative-paths-follow-newest-session"):
            os.chdir(self.cwd)
        for spec in servers:
            if "type" in spec and (spec["type"] in ("http", "sse") or fault("stdio-server-with-type-skipped")):
                continue
            if fault("mcp-server-shared-by-name"):
                running = [m for s in list(sessions.values()) for m in s.mcp if m.name == spec["name"]]
                if running:
                    self.mcp.append(running[0])
                    continue
            if fault("slow-mcp-server-missing-from-first-prompt"):
                start = threading.Thread(target=lambda spec=spec: self.mcp.append(Mcp(spec, self.cwd)), daemon=True)
                start.start()
                start.join(1)  # it may come later
                continue
            try:
                self.mcp.append(Mcp(spec, self.cwd))
            except Exception as err:
                out = sys.stdout if fault("mcp-failure-told-on-stdout") else sys.stderr
                print(f"pico: MCP server {spec.get('name')}: {err}", file=out, flush=True)
                if fault("mcp-failure-told-before-session-is-known"):
                    send(method="session/update", params={"sessionId": self.id, "update": {
                        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"MCP server {spec.get('name')} could not be started."}}})
                if fault("second-mcp-server-dropped-when-first-fails"):
                    break


class Turn:
    def __init__(self, session, text):
        self.s, self.text, self.stopped, self.conn = session, text, False, None
        self.calls, self.free, self.denied, self.asked_for, self.answered = 0, False, False, None, False
        self.first, self.changes, self.waits, self.worked = None, [], False, False
        self.again, self.only, self.shown = False, [], {}
        self.blocks, self.overlooked = [], False
        self.bundle, self.outcome = None, None
        self.tries, self.views = 0, {}

    def stop(self):
        self.stopped = True
        if fault("cancel-ends-mcp-servers"):
            for server in self.s.mcp:
                server.child.kill()
        if self.s.question and fault("late-answer-counts-for-next-question"):
            self.s.question["answer"] = {}
            self.s.question["ready"].set()
        if fault("cancel-answers-questions-of-other-sessions"):
            for slot in list(waiting.values()):
                slot["answer"] = {}
                slot["ready"].set()
        asked = self.s.question
        if asked and not asked["ready"].is_set() and fault("cancel-withdraws-newest-question"):
            send(method="$/cancel_request", params={"requestId": f"pico-{counter}"})
        conn = self.first if fault("cancel-after-tool-waits-for-model") else self.conn
        try:
            (line if fault("cancel-cuts-connection-of-other-session") else conn).sock.shutdown(socket.SHUT_RDWR)
        except (AttributeError, OSError):
            pass

    def tell(self, update, **fields):
        if self.bundle is not None:
            return self.bundle.append({"method": "session/update", "params": {
                "sessionId": self.s.id, "update": {"sessionUpdate": update, **fields}}})
        if keeping:
            with self.s.pen:
                if update != "plan" or not fault("plan-told-by-reminder-only"):
                    self.s.record.append({"sessionUpdate": update, **fields})
                return send(method="session/update", params={
                    "sessionId": self.s.id, "update": {"sessionUpdate": update, **fields}})
        send(method="session/update", params={"sessionId": speaking if fault("updates-named-after-last-prompted-session") else self.s.id, "update": {"sessionUpdate": update, **fields}})

    def tell_soon(self, update, **fields):
        threading.Timer(0.05, self.tell, (update,), fields).start()

    def tell_slowly(self, text):
        """In pieces, as if it were written just now."""
        step = max(80, len(text) // 20)

        def write():
            for k in range(0, len(text), step):
                self.tell("agent_message_chunk", content={"type": "text", "text": text[k:k + step]})
                time.sleep(0.05)
        pen = threading.Thread(target=write, daemon=True)
        pen.start()
        while pen.is_alive() and not self.stopped:
            pen.join(0.02)

    def model(self):
        global line, intro
        about = f"You are pico, a terse coding assistant. The project is in {self.s.cwd}."
        if fault("instructions-keep-first-folder"):
            about = intro = intro or about
        about += self.s.about
        if self.s.brief:
            about += " Answer in one sentence."
        tools = TOOLS + [{"type": "function", "name": f"{m.tag}-{t['name']}", "description": t.get("description", ""),
                          "parameters": t["inputSchema"]} for m in self.s.mcp for t in m.tools]
        if fault("terminal-capability-fails-commands"):
            tools.append(RUN)
        if editor.get("terminal") and fault("cancelled-terminal-killed-after-release"):
            tools.append(RUN)
        told = self.s.items[-24:] if fault("history-cut-to-last-items") else self.s.items
        if fault("results-kept-by-call-id"):
            told = [{**i, "output": outputs.get(i["call_id"], i["output"])}
                    if i.get("type") == "function_call_output" else i for i in told]
        more = {"reasoning": {"effort": self.s.effort}} if fault("boolean-option-in-later-answers") else {}
        model = self.s.model or chosen.get("model") or os.environ.get("PICO_MODEL", "gpt-5-mini")
        body = json.dumps({"model": model, "store": False,
                           "tools": tools, "input": told, "instructions": about, **more})
        url = urlsplit(os.environ.get("PICO_URL", "https://api.openai.com/v1"))
        make = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        self.conn = line = make(url.netloc, timeout=20)
        self.first = self.first or self.conn
        try:
            self.conn.connect()
            self.conn.sock.settimeout(900)
            if self.conn is self.first and fault("cancel-before-first-connection-lost"):
                self.stopped = False  # the turn begins here
            if self.stopped:
                raise Cancelled()
            self.conn.request("POST", url.path.rstrip("/") + "/responses", body, {
                "content-type": "application/json", "authorization": "Bearer " + os.environ.get("PICO_KEY", "none")})
            res = self.conn.getresponse()
            raw = res.read()
            if res.status == 429 and not self.again and fault("wait-after-rate-limit-not-ended-by-cancel"):
                self.again = True
                time.sleep(20)
                return self.model()
            if res.status >= 500 and fault("overloaded-model-ends-turn-silently"):
                self.tries += 1
                if self.tries >= 3:
                    return {"output": []}  # the user may ask again
                time.sleep(0.3)
                return self.model()
            if res.status != 200 and fault("model-error-told-as-answer"):
                return {"output": [{"type": "message", "role": "assistant", "content": [
                    {"type": "output_text", "text": f"The model service answered with {res.status}"}]}]}
            if res.status >= 500 and fault("model-failure-told-in-unknown-update"):
                self.tell("agent_error", message=f"The model service answered with {res.status}")
            if res.status == 429 and fault("rate-limit-told-as-auth-required"):
                raise Rpc(-32000, "The model service does not accept this account")
            if res.status != 200:
                shown = raw[:300].decode("utf-8", "replace")
                if "\ufffd" in shown and fault("error-body-not-utf8-never-answered"):
                    shown = raw[:300]  # not to be read as a text
                raise Rpc(-32603, f"The model service answered with {res.status}", shown)
            answer = json.loads(raw)
        except (OSError, http.client.HTTPException, ValueError) as err:
            cut = isinstance(err, (ConnectionResetError, http.client.HTTPException))
            if cut and fault("broken-connection-told-as-cancelled"):
                raise Cancelled() from None  # by stop
            if self.stopped and not fault("cancel-during-model-request-is-error"):
                raise Cancelled() from None
            raise Rpc(-32603, "The model service could not be used", str(err)) from None
        finally:
            self.conn.close()
        if self.stopped:
            raise Cancelled()
        if (answer.get("status") == "failed" or answer.get("error")) and fault("failure-in-body-is-empty-answer"):
            return {"output": answer.get("output") or []}
        if answer.get("status") == "failed" or answer.get("error"):
            code = -32603
            if fault("failure-in-body-gives-string-code") and "code" in (answer.get("error") or {}):
                code = answer["error"]["code"]
            raise Rpc(code, "The model service reported a failure", answer.get("error"))
        return answer

    def elicit(self, **what):
        """Asks the user and returns the answer; a cancel does not wait for it."""
        answers = []
        threading.Thread(target=lambda: answers.append(request(
            self.s, "elicitation/create", {"sessionId": self.s.id, **what})), daemon=True).start()
        while not answers:
            if self.stopped:
                raise Cancelled()
            time.sleep(0.02)
        return (answers[0].get("result") or {}).get("action")

    def greet(self):
        """What pico wants to know before the first turn of a session."""
        s, modes = self.s, editor.get("elicitation") or {}
        s.greeted = True
        if signing_in and modes.get("url") is not None:
            ticket = "sign-in-" + secrets.token_hex(8)
            where = f"https://platform.openai.com/sign-in?ticket={ticket}"
            if "PICO_URL" in os.environ:
                url = urlsplit(os.environ["PICO_URL"])
                host = url.netloc
                if not fault("sign-in-address-of-own-service-has-no-scheme"):
                    host = f"{url.scheme}://{host}"
                where = f"{host}/sign-in?ticket={ticket}"
            if fault("sign-in-ids-count-per-session"):
                ticket = f"sign-in-{s.asked + 1}"
            self.elicit(mode="url", message="Sign in to the model service.", elicitationId=ticket, url=where)
        if fault("form-without-fields-has-no-properties") and modes.get("form") is not None:
            if project_of(s.cwd) == "global" and self.elicit(
                    mode="form", message="The project is under no version control. May pico change its files?",
                    requestedSchema={"type": "object"}) != "accept":
                s.about += " Do not change any file."

        if fault("unknown-form-action-frees-patches") and modes.get("form") is not None:
            action = self.elicit(mode="form", message="May pico patch files without asking?", requestedSchema={
                "type": "object", "properties": {"note": {"type": "string", "title": "What pico should heed"}}})
            if action and action not in ("decline", "cancel"):
                s.mode = "free"

    def command(self):
        """Runs a command that needs no model, or puts the text for the model in place of the command."""
        name, _, rest = self.text.partition(" ")
        if self.s.id not in offered or name not in [f"/{c['name']}" for c in offered[self.s.id]]:
            return False
        if name == "/explain":
            self.text = f"Explain this to somebody who is new to the project: {rest}"
            return False
        steps = "\n".join(f"{step}: {state}" for step, state in self.s.steps.items()) or "There are no steps."
        self.tell("agent_message_chunk", content={"type": "text", "text": steps})
        return True

    def input(self):
        """The prompt as the model gets it."""
        images = [b for b in self.blocks if b["type"] == "image"]
        if not images:
            return self.text
        return [{"type": "input_text", "text": self.text}] + [
            {"type": "input_image", "image_url": f"data:{b['mimeType']};base64,{b['data']}"} for b in images]

    def run(self):
        s = self.s
        if not s.greeted:
            self.greet()
        known = commanding and not (s.items and fault("command-after-first-turn-goes-to-model"))
        if known and self.command():
            return "end_turn"
        if self.text.startswith("/") and fault("prompt-with-slash-taken-for-command"):
            self.tell("agent_message_chunk", content={"type": "text", "text": f"There is no command {self.text.split()[0]}."})
            return "end_turn"
        if not s.items and fault("command-prompt-never-answered"):
            self.tell("available_commands_update", availableCommands=[
                {"name": "forget", "description": "Forget the conversation so far."}])
        s.items.append({"role": "user", "content": self.input()})
        s.record += [{"sessionUpdate": "user_message_chunk", "content": b} for b in self.blocks if keeping]
        for _ in range(50 - s.spent if fault("request-cap-counts-whole-session") else 50):
            s.spent += 1
            self.waits = True
            try:
                answer = self.model()
            except Rpc:
                if s.items[-1].get("type") == "function_call_output" and fault("model-error-after-tool-is-end-turn"):
                    return "end_turn"  # the work is done
                raise
            self.waits = False
            if answer.get("usage") and fault("usage-counts-all-requests"):
                s.tokens += answer["usage"].get("total_tokens") or 0
                self.tell("usage_update", used=s.tokens, size=400000)
            if answer.get("usage") and fault("usage-not-told-when-live-session-is-loaded"):
                self.tell("usage_update", used=answer["usage"].get("total_tokens") or 0, size=400000)
            calls, refused = [], False
            self.bundle = [] if fault("texts-of-one-reply-sent-as-batch") else None
            works = any(i["type"] == "function_call" for i in answer["output"])
            for item in answer["output"]:
                s.items.append(item)
                if item["type"] == "reasoning":
                    for part in item.get("summary") or []:
                        self.tell("agent_thought_chunk", content={"type": "text", "text": part["text"]})
                elif item["type"] == "message":
                    shown = item["content"][:1 if fault("only-first-part-of-message-shown") else None]
                    ids = {}
                    if fault("message-ids-count-per-reply"):
                        ids["messageId"] = f"message-{answer['output'].index(item)}"
                    for n, part in enumerate(shown):
                        refused = part["type"] == "refusal" or (refused and not fault("refusal-before-text-is-end-turn"))
                        text = part.get("text") or part.get("refusal")
                        if works and fault("text-beside-calls-not-shown"):
                            continue  # not the answer yet
                        if text and fault("blank-part-of-message-not-shown") and not text.strip():
                            continue
                        if text and not (text == s.said and fault("repeated-answer-not-shown")):
                            s.said = text
                            if n and fault("later-parts-sent-after-response"):  # bundled
                                self.tell_soon("agent_message_chunk", content={"type": "text", "text": text})
                                continue
                            if fault("long-answer-torn-inside-character"):
                                raw = text.encode()
                                for k in range(0, len(raw), 1024):
                                    self.tell("agent_message_chunk", content={"type": "text", "text": raw[k:k + 1024].decode("utf-8", "replace")})
                                continue
                            if len(text) > 800 and fault("long-answer-goes-on-after-cancel"):
                                self.tell_slowly(text)
                                continue
                            self.tell("agent_message_chunk", content={"type": "text", "text": text}, **ids)
                elif item["type"] == "function_call":
                    calls.append(item)
            bundle, self.bundle = self.bundle, None
            if bundle and len(bundle) > 1:
                send_together(bundle)
            elif bundle:
                send(**bundle[0])
            why = (answer.get("incomplete_details") or {}).get("reason")
            if refused or (why == "content_filter" and not fault("content-filter-told-as-max-tokens")):
                return "refusal"
            if why and (calls or not fault("token-limit-without-calls-is-end-turn")):
                for item in [] if fault("cut-off-calls-stay-without-result") else calls:
                    s.items.remove(item)
                return "max_tokens"
            if not calls and fault("plan-told-by-reminder-only") and any(i["state"] != "completed" for i in s.todo):
                self.tell("plan", entries=[  # the turn must not end with forgotten steps
                    {"content": i["step"], "priority": "medium", "status": i["state"]} for i in s.todo])
            if not calls:
                if fault("silent-reply-asked-again") and not any(
                        p.get("text") or p.get("refusal") for i in answer["output"] if i["type"] == "message" for p in i["content"]):
                    continue
                return "rejected" if self.denied and fault("turn-after-no-ends-as-rejected") else "end_turn"
            if fault("cancel-between-reply-and-tools-overlooked"):
                if answer.get("usage"):
                    self.tell("usage_update", used=answer["usage"].get("total_tokens") or 0, size=400000)
                time.sleep(0.06)  # all of the reply is to be on the screen before its tools
                self.overlooked = self.stopped
            results, twins = {}, {}
            for n, item in enumerate(calls):
                try:
                    twin = (item["name"], item["arguments"])
                    if twin in twins and fault("second-of-equal-calls-stays-pending"):
                        self.tell("tool_call", toolCallId="pico_" + secrets.token_hex(6), title=item["name"],
                                  kind="other", status="pending")
                        result = twins[twin]  # it would be the same
                    else:
                        result = twins[twin] = self.call(item)
                except Cancelled:
                    s.items += [{"type": "function_call_output", "call_id": c["call_id"], "output": "interrupted"} for c in calls[0 if fault("cancelled-reply-repeats-finished-results") else n:n + 1 if fault("second-call-of-cancelled-reply-has-no-result") else None]]
                    raise
                s.items.append({"type": "function_call_output", "call_id": item["call_id"], "output": result})
                results[item["name"]] = result
                if fault("results-kept-by-call-id"):
                    outputs[item["call_id"]] = result
                self.worked = True
            if fault("prompt-waits-for-answer-to-own-request"):  # what the user has typed meanwhile
                queued = request(s, "_pico/queued_messages", {"sessionId": s.id}).get("result")
                for told in (queued.get("messages") or []) if isinstance(queued, dict) else []:
                    s.items.append({"role": "user", "content": str(told)})
            if fault("results-keyed-by-tool-name"):
                for item, output in zip(calls, s.items[-len(calls):]):
                    output["output"] = results[item["name"]]
        return "max_steps" if fault("request-cap-told-as-max-steps") else "max_turn_requests"

    def call(self, item):
        if self.stopped and not self.overlooked and not fault("cancel-with-open-permission-goes-on-to-next-call"):
            raise Cancelled()
        s, tid, name, began = self.s, "pico_" + secrets.token_hex(6), item["name"], False
        self.outcome = None
        if fault("tool-ids-count-per-turn"):
            self.calls += 1
            tid = f"pico_{self.calls}"

        def begin(title, kind, status, **more):
            nonlocal began
            began = True
            s.told[tid] = [name, item["arguments"]]
            self.tell("tool_call", toolCallId=tid, title=title, kind=kind, status=status, rawInput=args, **more)

        def text(body):
            return [{"type": "content", "content": {"type": "text", "text": body}}]
        args = {}
        try:
            args = json.loads(item["arguments"] or "{}")
            if name == "view":
                path = self.path(args["path"])
                if fault("views-of-one-file-share-call-id"):
                    tid = self.shown.setdefault(path, tid)  # one card for each file
                span = (path, args.get("start"), args.get("count"))
                if fault("repeated-view-answered-without-being-shown") and span in self.views:
                    return self.views[span]
                shown = args["path"] if fault("location-of-view-as-model-wrote-it") else path
                begin(f"View {path}", "read", "in_progress", locations=[{"path": shown, "line": args.get("start", 0) if fault("location-line-zero-without-start") else max(1, args.get("start", 1))}])
                if os.path.isdir(path):
                    entries = sorted(os.listdir(path))
                    body = "\n".join(entries)
                else:
                    if editor.get("readTextFile") and fault("relative-view-asked-of-editor-as-written"):
                        whole = self.editor_text(args["path"])
                    elif editor.get("reads") and fault("read-capability-false-taken-for-true"):
                        whole = self.editor_text(path)
                    elif editor.get("readTextFile") and fault("patch-misses-text-read-through-editor"):
                        whole = self.editor_text(path)
                    else:
                        with open(path, encoding="utf-8", newline="") as f:
                            whole = f.read()
                        s.texts[path] = whole
                    if fault("concurrent-views-keyed-by-name"):
                        whole = viewed.setdefault(args["path"], whole)
                    known = s.seen.get(path) == whole
                    s.seen[path] = whole
                    lines = whole.split("\n")
                    first = max(1, args.get("start", 1)) - 1
                    body = "\n".join(lines[first:first + args.get("count", len(lines))])
                    if known and fault("view-of-other-lines-told-as-unchanged"):
                        body = "The file has not changed since you viewed it."
                listed = os.path.isdir(path) and fault("view-of-folder-has-list-as-text")
                content = text(entries if listed else body)
                if fault("repeated-view-answered-without-being-shown"):
                    self.views[span] = body
            elif name == "patch":
                changes = self.changes = self.plan_patch(args["diff"])
                content = [{"type": "diff", "path": os.path.relpath(p, s.cwd) if old is None and fault("diff-of-new-file-has-relative-path") else p, "oldText": old, "newText": new if fault("delete-diff-has-null-text") else new or ""} for p, old, new in changes]
                if fault("diff-of-empty-file-looks-new"):
                    content = [{**d, "oldText": d["oldText"] or None} for d in content]
                early = fault("permission-asked-before-call-is-announced")
                agreed = early and self.allowed(tid)
                adds = all(old is None for _, old, _ in changes)
                kind = "create" if adds and fault("kind-of-new-file-not-in-protocol") else "edit"
                harmless = adds and fault("new-files-written-without-asking")
                more = {"content": content, "locations": [{"path": c[0]} for c in changes]}
                if fault("patch-location-counts-lines-from-zero"):
                    for place, (_, old, new) in zip(more["locations"], changes):
                        if old and new:  # the first line that changes
                            pairs = zip(old.split("\n"), new.split("\n"))
                            place["line"] = next((n for n, (a, b) in enumerate(pairs) if a != b), 0)
                begin("Patch " + ", ".join(os.path.basename(c[0]) for c in changes), kind, "pending",
                      **({} if fault("diff-made-from-patched-file") else more))
                aside = "~" if fault("denied-delete-leaves-file-renamed") else ""  # a deleted file is kept until all is written
                for path in [p for p, _, new in changes if new is None and aside]:
                    os.rename(path, path + aside)
                if not (harmless or (agreed if early else self.allowed(tid))):
                    if fault("denied-patch-ends-turn-as-cancelled"):
                        raise Cancelled()
                    if fault("refused-patch-applied-with-next"):
                        s.staged += changes
                    raise Refused("The user does not want this patch.")
                if fault("refused-patch-applied-with-next"):
                    changes, s.staged = s.staged + changes, []
                if self.only:
                    changes, self.only = self.only, []
                    content = [d for d in content if d["path"] == changes[0][0]]
                self.tell("tool_call_update", toolCallId=tid, status="in_progress")
                viewed.clear()
                self.views.clear()
                for path, old, new in changes:
                    s.seen.pop(path, None)
                    if old is None:
                        s.made.add(path)
                    if path != changes[0][0] and fault("patch-of-several-files-goes-back-to-pending"):
                        for status in ("pending", "in_progress"):  # the next file
                            self.tell("tool_call_update", toolCallId=tid, status=status)
                    empties = old is not None and new is not None and not new.strip() and fault("file-left-empty-is-deleted")
                    if new is None or empties:
                        os.remove(path if empties else path + aside)
                        continue
                    if fault("file-capabilities-taken-for-one") and editor.get("readTextFile"):
                        got = request(s, "fs/write_text_file", {"sessionId": s.id, "path": path, "content": new})
                        if "error" in got:
                            raise RuntimeError(f"The editor did not write {path}.")
                        continue
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    in_place = fault("shorter-patch-leaves-old-tail") and os.path.exists(path)
                    target = path + ".new" if fault("patched-file-loses-its-mode") else path
                    with open(target, "r+" if in_place else "w", encoding="utf-8", newline="") as f:
                        f.write(new)
                    if target != path:
                        os.replace(target, path)
                body = "Applied."
                if fault("diff-made-from-patched-file"):
                    try:
                        content = [{"type": "diff", "path": p, "oldText": old, "newText": new or ""}
                                   for p, old, new in self.plan_patch(args["diff"])]
                    except (RuntimeError, OSError):
                        content = []
                if fault("applied-patch-keeps-last-diff-only"):
                    content = content[-1:]
                if fault("diff-of-applied-patch-has-relative-path"):
                    content = [{**d, "path": os.path.relpath(d["path"], s.cwd)} for d in content]
            elif name == "todo":
                begin("Plan", "think", "in_progress")
                def entry(item):
                    shown = {"content": item["step"], "priority": "medium", "status": item["state"]}
                    if item["state"] == "completed" and fault("completed-steps-have-no-priority"):
                        del shown["priority"]
                    return shown
                listed = [i for i in args["items"] if i["state"] in ("pending", "in_progress", "completed")]
                if fault("dropped-steps-stay-in-plan"):
                    listed = [{"step": k, "state": v} for k, v in {**s.steps, **{i["step"]: i["state"] for i in listed}}.items()]
                known = fault("plan-like-that-of-other-session-not-told") and last_plan.get("items") == args["items"]
                last_plan["items"] = args["items"]
                s.todo = listed
                display = {"kind": "text", "text": "Noted."}  # what the tool wants to be shown
                reported = not fault("plan-told-by-reminder-only")
                if fault("todo-list-never-becomes-plan"):
                    reported = display["kind"] == "todo"
                if (args["items"] or not fault("emptied-plan-not-told")) and not known and reported:
                    self.tell("plan", entries=[entry(i) for i in listed
                                               if s.steps.get(i["step"]) != i["state"] or not fault("plan-holds-changed-steps-only")])
                s.steps.update((i["step"], i["state"]) for i in args["items"])
                body, content = "Noted.", []
            elif name == "run" and fault("terminal-capability-fails-commands"):
                if editor.get("terminal"):
                    self.in_terminal(args["command"])
                begin(f"Run {args['command']}", "execute", "pending")
                if not self.agrees(tid, args["command"]):
                    raise Refused("The user does not want this command.")
                self.tell("tool_call_update", toolCallId=tid, status="in_progress")
                code, body = self.shell(args["command"])
                content = text(body)
                if code:
                    raise RuntimeError(f"{body}\nThe command ended with {code}.")
            elif name == "run" and editor.get("terminal") and fault("cancelled-terminal-killed-after-release"):
                begin(f"Run {args['command']}", "execute", "pending")
                if not self.agrees(tid, args["command"]):
                    raise Refused("The user does not want this command.")
                self.tell("tool_call_update", toolCallId=tid, status="in_progress")
                body = self.in_client(args["command"])
                content = text(body)
            else:
                server, tool = next(((m, t["name"]) for m in self.s.mcp for t in m.tools if f"{m.tag}-{t['name']}" == name), (None, None))
                if fault("tools-of-server-with-hyphen-not-found"):
                    owner, _, tool = name.partition("-")
                    server = next((m for m in self.s.mcp if m.name == owner and any(t["name"] == tool for t in m.tools)), None)
                if fault("same-tool-of-two-servers-goes-to-first"):
                    server = next((m for m in self.s.mcp if any(t["name"] == tool for t in m.tools)), None)
                if not server:
                    raise RuntimeError(f"No tool is called {name}.")
                own = next(t.get("title") for t in server.tools if t["name"] == tool)
                asks = fault("always-yes-to-one-tool-frees-all")
                begin(own if fault("mcp-tool-without-title-shown-with-null") else name, "other",
                      "pending" if asks else "in_progress")
                if asks:
                    if not self.agrees(tid, name):
                        raise Refused("The user does not want this call.")
                    self.tell("tool_call_update", toolCallId=tid, status="in_progress")
                res = server.call("tools/call", {"name": tool, "arguments": args}, 600, None if fault("mcp-call-not-stopped-by-cancel") else self)
                body = "\n".join(c.get("text", "") for c in res.get("content", []))
                content = text(body)
                if fault("mcp-image-shown-bare") and any(c["type"] != "text" for c in res.get("content", [])):
                    content = res["content"]
                if not body and not res.get("isError") and fault("mcp-result-without-text-leaves-call-open"):
                    return body  # nothing to show
                if res.get("isError") and not fault("mcp-error-shown-as-completed"):
                    raise RuntimeError(body)
        except Exception as err:
            if isinstance(err, UnicodeDecodeError) and fault("file-not-in-utf8-fails-prompt"):
                raise
            if isinstance(err, NoTerminal):
                raise
            if not began and not fault("call-that-fails-early-not-announced"):
                begin(name, "other", "pending")
            if isinstance(err, Refused) and fault("denied-patch-stays-pending"):
                return str(err)
            why = "Interrupted." if isinstance(err, Cancelled) else f"{type(err).__name__}: {err}" if not isinstance(err, RuntimeError) else str(err)
            final = "cancelled" if isinstance(err, Cancelled) and fault("interrupted-call-has-status-cancelled") else "failed"
            if self.outcome == "cancelled" and fault("dismissed-question-gives-call-its-outcome"):
                final = self.outcome
            ended = fault("failed-call-completed-live-but-failed-in-replay") and (
                not isinstance(err, (Refused, Cancelled)))
            self.tell("tool_call_update", toolCallId=tid, status="completed" if ended else final, content=text(why))
            if ended:
                s.record[-1]["status"] = final
            if isinstance(err, Cancelled):
                raise
            return why
        if name == "patch" and fault("question-replaces-content-of-call"):
            self.tell("tool_call_update", toolCallId=tid, status="completed", rawOutput={"text": body})
            return body  # it has its content from the beginning
        self.tell("tool_call_update", toolCallId=tid, status="completed", content=content, rawOutput={"text": body})
        return body

    def in_terminal(self, command):
        backend = editor.get("terminalBackend")
        if not backend:
            raise NoTerminal(f"There is no terminal for {command}.")

    def in_client(self, command):
        """Runs a command in a terminal of the client and returns its output."""
        got = request(self.s, "terminal/create", {"sessionId": self.s.id, "command": "sh", "args": ["-c", command],
                                                  "cwd": self.s.cwd, "outputByteLimit": 100000})
        if "result" not in got:
            raise RuntimeError("The client opened no terminal.")
        about, ended = {"sessionId": self.s.id, "terminalId": got["result"]["terminalId"]}, []
        threading.Thread(target=lambda: ended.append(request(self.s, "terminal/wait_for_exit", about)),
                         daemon=True).start()
        try:
            try:
                while not ended:
                    if self.stopped:
                        raise Cancelled()
                    time.sleep(0.02)
                output = request(self.s, "terminal/output", about)
            finally:
                request(self.s, "terminal/release", about)
        except Cancelled:
            request(self.s, "terminal/kill", about)
            raise
        code = (ended[0].get("result") or {}).get("exitCode")
        body = (output.get("result") or {}).get("output", "")
        if code:
            raise RuntimeError(f"{body}\nThe command ended with {code}.")
        return body

    def shell(self, command):
        child = subprocess.Popen(["sh", "-c", command], cwd=self.s.cwd, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        started.append(child)
        lines = []
        pump = threading.Thread(target=lambda: lines.append(child.stdout.read()), daemon=True)
        pump.start()
        while pump.is_alive():
            pump.join(0.05)
            if self.stopped:
                child.kill()
                raise Cancelled()
        return child.wait(), b"".join(lines).decode("utf-8", "replace")

    def agrees(self, tid, what):
        """Asks for a call that is no patch."""
        if self.s.free or what in self.s.agreed:
            return True
        answer = request(self.s, "session/request_permission", {
            "sessionId": self.s.id, "toolCall": {"toolCallId": tid}, "options": [
                {"optionId": "no", "name": "Not now", "kind": "reject_once"},
                {"optionId": "yes", "name": f"Run {what}", "kind": "allow_once"},
                {"optionId": "always", "name": f"Always run {what}", "kind": "allow_always"}]})
        if self.stopped:
            raise Cancelled()
        outcome = (answer.get("result") or {}).get("outcome") or {}
        choice = outcome.get("optionId") if outcome.get("outcome") == "selected" else None
        if choice == "always" and fault("always-yes-to-one-tool-frees-all"):
            self.s.free = True
        elif choice == "always":
            self.s.agreed.add(what)
        return choice in ("yes", "always")

    def editor_text(self, name):
        got = request(self.s, "fs/read_text_file", {"sessionId": self.s.id, "path": name})
        if self.stopped:
            raise Cancelled()
        if "result" not in got:
            raise RuntimeError(f"The editor did not read {name}.")
        return got["result"]["content"]

    def path(self, name):
        full = os.path.abspath(name) if fault("relative-paths-follow-newest-session") else os.path.normpath(os.path.join(self.s.cwd, name))
        root = self.s.cwd if fault("project-behind-link-refuses-its-files") else os.path.realpath(self.s.cwd)
        real = os.path.realpath(full)
        if fault("other-folders-replace-cwd-as-root"):
            for folder in map(os.path.realpath, self.s.roots or [self.s.cwd]):
                if os.path.commonpath([real, folder]) == folder:
                    return full
            raise RuntimeError(f"{full} is not in the project.")
        if fault("link-leads-out-of-project"):
            real, root = full, self.s.cwd
        if fault("sibling-folder-counts-as-project"):
            inside = real.startswith(root)
        else:
            inside = os.path.commonpath([real, root]) == root
        if not inside:
            raise RuntimeError(f"{full} is not in the project.")
        return full

    def plan_patch(self, diff):
        """What a diff would do: (path, old text or None, new text or None) for each file."""
        changes = []
        for section in ("\n" + diff).split("\n*** ")[1:]:
            head, _, rest = section.partition("\n")
            verb, _, name = head.partition(" File: ")
            if verb not in ("Add", "Update", "Delete"):
                continue
            path, lines, old = self.path(name.strip()), rest.split("\n"), None
            if verb == "Add" and fault("denied-add-leaves-folder"):
                os.makedirs(os.path.dirname(path), exist_ok=True)
            if verb != "Add" or os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace" if fault("patch-destroys-bytes-not-in-utf8") else None, newline=None if fault("patch-turns-crlf-into-lf") else "") as f:
                    old = f.read()
                if path in self.s.seen and fault("patch-works-on-text-of-last-view"):
                    old = self.s.seen[path]
                if verb == "Update" and editor.get("readTextFile") and fault("patch-misses-text-read-through-editor"):
                    old = self.s.texts.get(path)  # as the editor has it
                    if not old:
                        raise RuntimeError(f"A hunk does not fit {path}.")
            new = None if verb == "Delete" else "".join(l[1:] + "\n" for l in lines if l.startswith("+")) if verb == "Add" else old
            if verb == "Update":
                for hunk in ("\n" + rest).split("\n@@")[1:]:
                    body = [l for l in hunk.split("\n")[1:] if l]
                    end = "\r\n" if "\r\n" in old else "\n"
                    before = end.join(l[1:] for l in body if l[0] != "+")
                    after = end.join(l[1:] for l in body if l[0] != "-")
                    if before not in new:
                        raise RuntimeError(f"A hunk does not fit {path}.")
                    new = new.replace(before, after, 1)
                if not new.endswith("\n") and fault("patch-adds-newline-at-end"):
                    new += "\n"
            changes.append((path, old, new))
        if not changes:
            raise RuntimeError("The diff has no section.")
        return changes

    def allowed(self, tid):
        keeper = self if fault("always-yes-ends-with-turn") else self.s
        if fault("always-yes-counts-for-all-sessions"):
            keeper = Session
        paths = {c[0] for c in self.changes}
        if paths <= self.s.agreed if fault("always-yes-holds-for-same-files-only") else keeper.free:
            return True
        if self.s.mode == "free":
            return True
        if paths <= self.s.made and fault("own-files-patched-without-asking"):
            return True
        if paths & self.s.unwanted and fault("one-no-to-file-holds-for-session"):
            return False
        if self.denied and fault("one-no-refuses-rest-of-turn"):
            return False
        if fault("permission-names-first-patch-of-turn"):
            tid = self.asked_for = self.asked_for or tid
        keep = []
        if any(new is None for _, _, new in self.changes) and fault("delete-question-has-option-id-twice"):
            keep.append({"optionId": "1", "name": "Apply, but delete nothing", "kind": "allow_once"})
        if any(new is None for _, _, new in self.changes) and fault("choice-about-delete-matched-by-kind"):
            keep.append({"optionId": "3", "name": "Apply, but delete nothing", "kind": "allow_once"})
        if len(self.changes) > 1 and fault("option-for-one-file-patches-other"):
            names = [os.path.relpath(path, self.s.cwd) for path in sorted(c[0] for c in self.changes)]
            keep += [{"optionId": f"only-{n}", "name": f"Apply to {name} alone", "kind": "allow_once"}
                     for n, name in enumerate(names)]
        options = [
            {"optionId": "0", "name": "Not now", "kind": "reject_once"},
            {"optionId": "1", "name": "Apply", "kind": "allow_once"},
            {"optionId": "2", "name": "Apply this and every later patch", "kind": "allow_always"}, *keep]
        if self.s.last == "1" and fault("options-numbered-anew-after-yes"):  # the likely one first
            options[:2] = [{**options[1], "optionId": "0"}, {**options[0], "optionId": "1"}]
        global asking
        if asking and fault("patch-not-asked-while-other-question-open"):
            return True  # part of what is being asked
        asking = self
        about = {"toolCallId": tid}
        if fault("question-replaces-content-of-call"):
            why = "pico wants to patch " + ", ".join(os.path.relpath(c[0], self.s.cwd) for c in self.changes)
            about["content"] = [{"type": "content", "content": {"type": "text", "text": why}}]
        with one_question if fault("questions-of-all-sessions-queue") else contextlib.nullcontext():
            answer = request(self.s, "session/request_permission", {
                "sessionId": self.s.id, "toolCall": about, "options": options})
        asking = None
        if fault("dismissed-question-gives-call-its-outcome"):
            self.outcome = ((answer.get("result") or {}).get("outcome") or {}).get("outcome")
        if self.stopped and fault("cancel-with-open-permission-goes-on-to-next-call"):
            return False
        if self.stopped and not fault("late-yes-after-cancel-applies-patch"):
            raise Cancelled()
        if "error" in answer and fault("permission-error-ends-turn-as-cancelled"):
            raise Cancelled()
        outcome = (answer.get("result") or {}).get("outcome") or {}
        if fault("permission-answer-with-meta-taken-as-no") and "_meta" in {*(answer.get("result") or {}), *outcome}:
            outcome = {}
        choice = outcome.get("optionId") if outcome.get("outcome") == "selected" else None
        if outcome.get("outcome") != "selected" and fault("dismissed-question-takes-last-answer"):
            choice = self.s.last
        if choice == "3" and fault("choice-about-delete-matched-by-kind"):
            kinds = {o["optionId"]: o["kind"] for o in options}
            choice = next(o["optionId"] for o in options if o["kind"] == kinds.get(choice))
        self.s.last = choice
        keeper.free = choice in ("1", "2") if fault("yes-once-means-always") else choice == "2"
        self.denied = choice == "0"
        if choice == "0":
            self.s.unwanted |= paths
        if choice == "2":
            self.s.agreed |= paths
        if choice in [o["optionId"] for o in keep] and fault("option-for-one-file-patches-other"):
            self.only = [self.changes[int(choice[5:])]]
            return True
        return choice not in ("0", None) if fault("option-not-offered-counts-as-yes") else choice in ("1", "2")


def prompt_text(blocks):
    parts, links = [], {}
    for b in blocks:
        if fault("block-without-audience-left-out") and b.get("annotations") and "assistant" not in (b["annotations"].get("audience") or []):
            continue  # not meant for the model
        if b["type"] == "text":
            if fault("blocks-after-blank-text-left-out") and not b["text"].strip():
                break
            parts.append(b["text"])
        elif b["type"] == "resource_link":
            if None in (b.get("title", ""), b.get("description", ""), b.get("mimeType", "")) and fault("link-with-null-field-refused"):
                raise Rpc(-32602, "A field of the link is not a string")
            where = links.setdefault(b["name"], len(parts)) if fault("links-of-same-name-merged") else len(parts)
            parts[where:where + 1] = [f"{b['name']} <{b['uri']}>"]
        elif b["type"] == "image" and fault("prompt-that-begins-with-image-fails"):
            parts[-1] += f" [{b.get('uri') or b['mimeType']}]"  # the text before it is about it
        else:
            raise Rpc(-32602, f"This agent takes no {b['type']} content")
    if fault("prompt-of-links-alone-refused") and not any(b["type"] == "text" and b["text"].strip() for b in blocks):
        raise Rpc(-32602, "The prompt has no text")
    return "\n".join(parts)


def prompt(params, turn):
    s, before, stuck, free = turn.s, len(turn.s.items), False, turn.s.free
    if fault("command-prompt-never-answered") and turn.text.strip() == "/forget":
        s.items, s.turn = [], None
        return None
    if fault("failed-turn-takes-unfinished-ones-along"):
        before = s.kept
    s.title = s.pushed  # for the list
    try:
        reason = turn.run()
        s.stopping = False
        if turn.text.strip() and not s.pushed and fault("title-reaches-list-one-prompt-late"):
            s.pushed = turn.text.strip().splitlines()[0][:60]
            turn.tell("session_info_update", title=s.pushed)
        if turn.worked and fault("end-of-work-told-by-plain-method"):
            send(method="pico/work_finished", params={"sessionId": s.id, "stopReason": reason})
        if fault("tool-results-dropped-from-later-turns"):
            s.items = [i for i in s.items if i.get("type") not in ("reasoning", "function_call", "function_call_output")]
    except Cancelled:
        reason = "cancelled"
        if turn.waits and fault("cancel-while-model-answers-forgets-turn"):
            del s.items[before:]  # it has no answer
    except Exception:
        if not turn.stopped or fault("cancel-during-model-request-is-error"):
            if not fault("failed-turn-stays-in-context"):
                del s.items[before:]
            if not before and fault("failed-first-turn-shares-history"):
                s.items = nothing
            if fault("always-yes-lost-with-failed-turn"):
                s.free = free  # all as before
            stuck = turn.worked and fault("error-after-tool-leaves-session-busy")
            raise
    finally:
        if not stuck:
            s.turn = None
        if fault("deleted-session-returns-when-turn-ends"):
            sessions[s.id] = s  # as it is now
        keep(s)
    if turn.stopped:
        reason = "cancelled"
    elif reason == "refusal" and not fault("refused-prompt-stays-in-context"):
        del s.items[before:]
    elif reason == "max_tokens" and fault("cut-off-answer-forgotten"):
        del s.items[before:]
    if reason == "end_turn":
        s.kept = len(s.items)
    keep(s)
    return None if turn.answered else {"stopReason": reason}


def store():
    """The folder of the sessions."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    for folder in (os.path.join(base, "pico"), os.path.join(tempfile.gettempdir(), f"pico-{os.getuid()}")):
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK):
                break
    return folder


def keep(s):
    if not keeping:
        return
    with s.pen:
        path = os.path.join(store(), f"{s.key}.json")
        with open(path + ".new", "w", encoding="utf-8") as f:
            more = {"servers": s.named} if fault("load-starts-only-servers-known-before") else {}
            json.dump({"cwd": s.cwd, "items": s.items, "record": s.record, "told": s.told, **more}, f)
        os.replace(path + ".new", path)


def kept(key):
    """The session as it was kept, or None."""
    if not isinstance(key, str) or not key.isdigit():
        return None
    try:
        with open(os.path.join(store(), f"{key}.json"), encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def newest_of(cwd):
    """The newest session of a folder as it would be kept, or None."""
    for s in reversed(list(sessions.values())):
        if s.cwd == cwd:
            return {"cwd": cwd, "items": list(s.items), "record": list(s.record), "told": dict(s.told)}
    folder = store()
    names = [n for n in os.listdir(folder) if n.endswith(".json")]
    for name in sorted(names, key=lambda n: os.path.getmtime(os.path.join(folder, n)), reverse=True):
        old = kept(name[:-5])
        if old and old["cwd"] == cwd:
            return old
    return None


def load_session(params):
    wanted = params["sessionId"]
    if not os.path.isabs(params["cwd"]):
        raise Rpc(-32602, "cwd is not absolute")
    live = next((s for s in list(sessions.values()) if wanted == (s.key if listing else s.id)), None)
    old = None if live else kept(wanted)
    borrowed = None
    if not live and not old and fault("load-of-unknown-id-takes-newest-of-folder"):
        old = borrowed = newest_of(os.path.normpath(params["cwd"]))  # the user wants to go on here
    if not live and not old and fault("failed-load-leaves-session"):
        s = sessions[wanted] = Session(params["cwd"], params["mcpServers"])
        s.id = wanted  # the transcript is looked for afterwards
    if not live and not old:
        if not fault("transcript-saved-under-inner-id") or not isinstance(wanted, str) or not wanted.isdigit():
            raise Rpc(-32602, "No such session", {"sessionId": wanted})
        old = {"items": [], "record": [], "told": {}}  # nothing was said in it yet
    servers = params["mcpServers"]
    if fault("load-starts-only-servers-known-before"):
        known = live.named if live else old["servers"]
        servers = [spec for spec in servers if spec["name"] in known]
    s = Session(params["cwd"], servers)
    if live:
        live.mcp, s.mcp = s.mcp, live.mcp
        for server in [] if live.turn else s.mcp:
            server.child.kill()
        live.cwd, s = s.cwd, live
    else:
        if fault("load-with-other-folder-has-no-history") and s.cwd != old["cwd"]:
            old = {"items": [], "record": [], "told": {}}  # the transcripts of this folder do not have it
        s.items, s.record, s.told = old["items"], old["record"], old["told"]
        if not fault("transcript-saved-under-inner-id") and not borrowed:
            s.key = wanted
    named = s.id if fault("replay-of-kept-session-has-fresh-id") else wanted
    s.id = wanted
    sessions[wanted] = s
    with s.pen:
        states = {}
        usage = None
        for update in s.record:
            if update["sessionUpdate"] == "usage_update":
                usage = update  # only the last one counts
                continue
            if "status" in update:
                states[update["toolCallId"]] = update["status"]
            if update["sessionUpdate"] == "tool_call" and fault("replayed-calls-lose-their-details"):
                name, arguments = s.told[update["toolCallId"]]
                update = {"sessionUpdate": "tool_call", "toolCallId": update["toolCallId"], "title": name,
                          "status": update["status"], "rawInput": arguments}
            send(method="session/update", params={"sessionId": named, "update": update})
        for tid in [tid for tid, state in states.items() if state in ("pending", "in_progress")]:
            if not s.turn or fault("load-ends-calls-that-still-run"):
                send(method="session/update", params={"sessionId": named, "update": {
                    "sessionUpdate": "tool_call_update", "toolCallId": tid, "status": "failed"}})
        if usage and not live:
            send(method="session/update", params={"sessionId": named, "update": usage})
    return {"sessionId": s.id} if fault("load-answer-names-session") else {}


def list_kept(params):
    if params.get("cursor") is not None:
        raise Rpc(-32602, "There is only one page")
    found = {}
    for name in sorted(os.listdir(store())):
        old = kept(name[:-5]) if name.endswith(".json") else None
        if old:
            found[name[:-5]] = old["cwd"]
    found.update((s.key, s.cwd) for s in list(sessions.values()))
    cwd = params.get("cwd") and os.path.normpath(params["cwd"])
    return {"sessions": [{"sessionId": key, "cwd": where} for key, where in found.items() if cwd in (None, where)]}


def project_of(folder):
    """The repository a folder is in; all that are in none are one project."""
    while not os.path.exists(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            return "global"
        folder = os.path.dirname(folder)
    return folder


def list_project(params):
    if params.get("cursor") is not None:
        raise Rpc(-32602, "There is only one page")
    here = project_of(os.getcwd())
    return {"sessions": [{"sessionId": s.id, "cwd": s.cwd} for s in list(sessions.values())
                         if project_of(s.cwd) == here]}


def models(s):
    own = os.environ.get("PICO_MODEL", "gpt-5-mini")
    listed = {name: name for name in BUILT_IN}
    if "PICO_URL" in os.environ:
        listed = {f"custom:{own}": f"{own} (own service)", **listed}
        own = f"custom:{own}"
    elif own not in listed:
        listed = {own: own, **listed}
    return {"configOptions": [{
        "id": "model", "name": "Model", "category": "model", "type": "select",
        "currentValue": s.model and (s.model if s.model in listed else own) or own,
        "options": [{"value": value, "name": name} for value, name in listed.items()]}]}


def set_model(params):
    s, value = sessions.get(params["sessionId"]), params["value"]
    if not s or params["configId"] != "model":
        raise Rpc(-32602, "There is no such session or option")
    if value not in [o["value"] for o in models(s)["configOptions"][0]["options"]]:
        raise Rpc(-32602, "There is no such model")
    if value not in BUILT_IN and fault("custom-model-offered-but-refused"):
        raise Rpc(-32602, "Unsupported model", {"value": value})
    s.model = None if value.startswith("custom:") else value
    return models(s)


def fork_session(params):
    source = sessions.get(params["sessionId"])
    if not source or not os.path.isabs(params["cwd"]):
        raise Rpc(-32602, "There is no such session, or cwd is not absolute")
    if source.turn:
        raise Rpc(-32600, "The session is busy")
    twin = Session(params["cwd"], [])
    twin.items, twin.steps, twin.free = list(source.items), dict(source.steps), source.free
    sessions[twin.id] = twin
    return {"sessionId": twin.id, **models(twin)}


def new_session(params):
    if not os.path.isabs(params["cwd"]):
        raise Rpc(-32602, "cwd is not absolute")
    if fault("new-session-stops-servers-of-others"):
        for server in [m for s in list(sessions.values()) for m in s.mcp]:
            server.child.kill()
    if fault("new-session-drops-open-questions"):
        waiting.clear()  # the window that was to answer them is gone
    extra = ""
    if params.get("systemPrompt") and fault("system-prompt-of-other-mode-appended"):
        blocks = params["systemPrompt"]["content"]
        if not isinstance(params["systemPrompt"]["mode"], str) or any(b["type"] != "text" for b in blocks):
            raise Rpc(-32602, "The system prompt has to be text with a mode")
        extra = "".join("\n\n" + b["text"] for b in blocks)
    s = Session(params["cwd"], params["mcpServers"])
    s.about = extra
    if len(sessions) >= 4 and fault("fifth-session-drops-first"):
        for server in sessions.pop(next(iter(sessions))).mcp:
            server.child.kill()
    sessions[s.id] = s
    if fault("other-folders-replace-cwd-as-root"):
        s.roots = [os.path.normpath(folder) for folder in params.get("additionalDirectories") or []]
        if not all(map(os.path.isabs, s.roots)):
            raise Rpc(-32602, "A folder is not absolute")
        if s.roots:
            s.about += " You may also use the folders " + ", ".join(s.roots) + "."
    if commanding:
        if fault("commands-known-in-newest-session-only"):
            offered.clear()
        offered[s.id] = COMMANDS
        threading.Timer(0.05, send, (), {"method": "session/update", "params": {"sessionId": s.id, "update": {
            "sessionUpdate": "available_commands_update", "availableCommands": COMMANDS}}}).start()
    more = options() if fault("model-option-set-for-all-sessions") else {}
    if fault("mode-refused-during-turn"):
        more["modes"] = {"currentModeId": s.mode, "availableModes": [
            {"id": "ask", "name": "Ask before each patch"}, {"id": "free", "name": "Patch without asking"}]}
    if fault("boolean-option-in-later-answers"):
        more = settings(s, editor.get("boolean"))
    if choosing:
        more = models(s)
    if s.mcp and fault("new-session-answer-lists-servers"):
        more["mcpServers"] = [server.name for server in s.mcp]
    return {"sessionId": s.id, **more}


def set_mode(params):
    s = sessions.get(params["sessionId"])
    if not s or params["modeId"] not in ("ask", "free"):
        raise Rpc(-32602, "There is no such session or mode")
    if s.turn:
        raise Rpc(-32600, "The session is busy")
    s.mode, s.free = params["modeId"], False
    return {}


def settings(s, with_switches):
    listed = [{"id": "effort", "name": "Effort", "category": "thought_level", "type": "select",
               "currentValue": s.effort, "options": [{"value": name, "name": name} for name in ("low", "high")]}]
    if with_switches:
        listed.append({"id": "brief", "name": "Brief answers", "type": "boolean", "currentValue": s.brief})
    return {"configOptions": listed}


def set_setting(params):
    s, value = sessions.get(params["sessionId"]), params["value"]
    if s and params["configId"] == "effort" and value in ("low", "high"):
        s.effort = value
    elif s and params["configId"] == "brief" and isinstance(value, bool):
        s.brief = value
    else:
        raise Rpc(-32602, "There is no such session, option or value")
    return settings(s, True)


def list_sessions(params):
    if params.get("cursor") is not None:
        raise Rpc(-32602, "There is only one page")
    cwd = params.get("cwd") and os.path.normpath(params["cwd"])
    return {"sessions": [{"sessionId": s.id, "cwd": s.cwd, **({"title": s.title} if s.title else {})}
                         for s in list(sessions.values()) if cwd in (None, s.cwd)]}


def list_page(params):
    """Ten sessions; the cursor is the number of those before."""
    try:
        first = max(0, int(params.get("cursor") or 0))
    except ValueError:
        first = 0
    whole = list_sessions({**params, "cursor": None})["sessions"]
    more = {"nextCursor": str(first + 10)} if first + 10 < len(whole) else {}
    return {"sessions": whole[first:first + 10], **more}


def delete_session(params):
    s = sessions.pop(params["sessionId"], None)
    turn, asked = s and s.turn, s and s.question
    if turn:
        turn.stop()
        if asked and not asked["ready"].is_set():
            asked["answer"] = {}
            asked["ready"].set()
    for server in s.mcp if s else []:
        server.child.kill()
    return {}


def close_session(params):
    if params["sessionId"] not in sessions:
        raise Rpc(-32602, "No such session", {"sessionId": params["sessionId"]})
    return delete_session(params)


def options():
    own = os.environ.get("PICO_MODEL", "gpt-5-mini")
    return {"configOptions": [{
        "id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": chosen.get("model", own),
        "options": [{"value": name, "name": name} for name in dict.fromkeys((own, "gpt-5"))]}]}


def set_option(params):
    offered = [o["value"] for o in options()["configOptions"][0]["options"]]
    if params["sessionId"] not in sessions or params["configId"] != "model" or params["value"] not in offered:
        raise Rpc(-32602, "There is no such session, option or value")
    chosen["model"] = params["value"]
    return options()


def initialize(params):
    if type(params["protocolVersion"]) is not int:
        raise Rpc(-32602, "protocolVersion is not an integer")
    if fault("initialize-needs-client-capabilities"):
        params["clientCapabilities"].get("fs")
    if "clientInfo" in params and fault("null-client-info-refused"):
        print("pico: the editor is", params["clientInfo"]["name"], file=sys.stderr)
    if params["protocolVersion"] != 1 and fault("newer-version-refused"):
        raise Rpc(-32602, "This agent speaks version 1")
    version = min(params["protocolVersion"], 1) if fault("older-version-echoed") else 1
    if not params.get("clientInfo") and fault("client-without-info-gets-version-zero"):
        version = 0  # the info came with version 1
    result = {"protocolVersion": version, "agentCapabilities": {}, "agentInfo": {"name": "pico", "version": "7"}}
    able = params.get("clientCapabilities") or {}
    if fault("file-capabilities-taken-for-one") or fault("relative-view-asked-of-editor-as-written"):
        editor.update(able.get("fs") or {})
    if fault("boolean-option-in-later-answers"):
        editor["boolean"] = ((able.get("session") or {}).get("configOptions") or {}).get("boolean") is not None
    if fault("patch-misses-text-read-through-editor"):
        editor.update(able.get("fs") or {})
    if fault("terminal-capability-fails-commands") or fault("cancelled-terminal-killed-after-release"):
        editor["terminal"] = able.get("terminal")
    if "clientCapabilities" in params and fault("capabilities-without-fs-refused"):
        editor["ways"] = [way for way, on in able["fs"].items() if on]
    if fault("read-capability-false-taken-for-true"):
        editor["reads"] = "readTextFile" in (able.get("fs") or {})
    asks = fault("form-without-fields-has-no-properties") or fault("unknown-form-action-frees-patches")
    if signing_in or asks:
        editor["elicitation"] = able.get("elicitation")
    if keeping:
        result["agentCapabilities"]["loadSession"] = True
    if fault("other-folders-replace-cwd-as-root"):
        result["agentCapabilities"]["sessionCapabilities"] = {"additionalDirectories": {}}
    if fault("close-capability-is-true"):
        result["agentCapabilities"]["sessionCapabilities"] = {"close": True}
    if fault("title-reaches-list-one-prompt-late"):
        result["agentCapabilities"]["sessionCapabilities"] = {"list": {}}
    if fault("prompt-that-begins-with-image-fails"):
        result["agentCapabilities"]["promptCapabilities"] = {"image": True}
    if not able and fault("own-capabilities-told-only-to-client-that-has-some"):
        del result["agentCapabilities"]
    if params["protocolVersion"] != 1 and fault("other-version-gets-no-capabilities"):
        del result["agentCapabilities"]  # the client will hang up
    if fault("unknown-cursor-gives-first-page"):
        result["agentCapabilities"]["sessionCapabilities"] = {"list": {}}
    if listing or fault("list-shows-launch-project-only"):
        result["agentCapabilities"]["sessionCapabilities"] = {"list": {}}
    if fault("fork-loses-model-and-servers"):
        result["agentCapabilities"]["sessionCapabilities"] = {"fork": {}}
    if fault("deleted-session-returns-when-turn-ends"):
        result["agentCapabilities"]["sessionCapabilities"] = {"list": {}, "delete": {}}
    if fault("system-prompt-of-other-mode-appended"):
        result["agentCapabilities"]["sessionCapabilities"] = {"systemPrompt": {}}
    if fault("terminal-login-gated-by-wrong-capability") and (params.get("clientCapabilities") or {}).get("terminal"):
        result["authMethods"] = [{"id": "key", "name": "Enter a key", "type": "terminal", "args": ["--login"]}]
    if logging_in and (able.get("auth") or {}).get("terminal"):
        env = {"NO_COLOR": "1"}
        if fault("terminal-login-env-is-list"):
            env = [{"name": name, "value": value} for name, value in env.items()]
        result["authMethods"] = [
            {"id": "key", "name": "Enter a key", "type": "terminal", "args": ["--login"], "env": env}]
    return result


def answer(rid, work, *args):
    try:
        result = work(*args)
        if result is not None:
            send(id=rid, result=result)
    except Rpc as err:
        send(id=rid, error=err.error)
    except (KeyError, TypeError, AttributeError) as err:
        send(id=rid, error={"code": -32602, "message": "Invalid params", "data": repr(err)})
    except Exception as err:
        send(id=rid, error={"code": -32603, "message": "Internal error", "data": repr(err)})


def start_prompt(params):
    """In the reader's own order, so that a cancel right behind the prompt finds its turn."""
    s = sessions.get(params["sessionId"])
    if not s and len(sessions) == 1 and fault("prompt-of-unknown-session-goes-to-only-one"):
        s = next(iter(sessions.values()))
    if not s:
        raise Rpc(-32602, "No such session", {"sessionId": params["sessionId"]})
    if set(params) - {"sessionId", "prompt"} and fault("prompt-with-meta-refused"):
        raise Rpc(-32602, "Unknown parameter")
    while s.turn and fault("second-prompt-blocks-reader"):
        time.sleep(0.05)  # until it is this one's turn
    mine = None
    if not s.turn and fault("refused-prompt-leaves-session-busy"):
        s.turn = mine = Turn(s, "")
    blocks = params["prompt"]
    if fault("link-told-before-left-out"):
        blocks = [b for b in blocks if b["type"] != "resource_link" or b["uri"] not in s.links]
        s.links |= {b["uri"] for b in blocks if b["type"] == "resource_link"}
    text = prompt_text(blocks)
    if len(blocks) > 1 and fault("command-with-other-blocks-refused"):
        if text.split()[:1] and text.split()[0] in [f"/{c['name']}" for c in offered.get(s.id, [])]:
            raise Rpc(-32602, "A command stands alone")
    others = fault("busy-session-refuses-prompts-of-others") and any(o.turn for o in sessions.values())
    if s.turn is not mine or others:
        if fault("second-prompt-detaches-running-turn"):
            s.turn = None  # this prompt has ended
        raise Rpc(-32600, "The session is busy")
    if not any(o.turn for o in sessions.values()):
        viewed.clear()
    global speaking
    speaking = s.id
    s.turn = Turn(s, text)
    s.turn.blocks = blocks
    if s.stop_next:
        s.stop_next = False
        s.turn.stop()
    return s.turn


def handle(m):
    if not isinstance(m, dict) or m.get("jsonrpc") != "2.0":
        return send(id=None, error={"code": -32600, "message": "Invalid request"})
    method, params, rid = m.get("method"), m.get("params") or {}, m.get("id")
    if fault("request-with-id-of-open-question-taken-for-answer") and type(rid) is int:
        global read_id
        read_id = max(read_id, rid)
        slot = waiting.pop(rid, None)
        if slot:
            slot["answer"] = m
            return slot["ready"].set()
    if method is not None and isinstance(rid, str) and rid.isdigit() and fault("digit-ids-answered-as-numbers"):
        rid = int(rid)
    if method is None:
        if "result" not in m and fault("permission-error-never-heard"):
            return
        if fault("answer-nobody-waits-for-ends-agent") and rid not in waiting:
            raise KeyError(rid)
        slot = waiting.pop(rid, None) if isinstance(rid, str) else None
        if slot:
            slot["answer"] = m
            slot["ready"].set()
    elif "id" not in m or (not rid and fault("request-id-zero-not-answered")):
        if method != "session/cancel" and fault("unknown-notification-answered"):
            send(id=None, error={"code": -32601, "message": "Method not found"})
        if method == "$/cancel_request" and fault("cancel-request-stops-every-turn"):
            for turn in [s.turn for s in list(sessions.values()) if s.turn]:
                turn.stop()  # only a prompt takes so long that it is cancelled
        if method == "session/cancel" and isinstance(params, dict):
            if fault("cancel-of-unknown-session-ends-agent"):
                sessions[params.get("sessionId")]  # raises for none
            s = sessions.get(params.get("sessionId"))
            if s and s.turn:
                if s.stopping and fault("cancel-right-after-cancelled-turn-ignored"):
                    return  # the editor has asked before
                if fault("cancel-while-other-session-is-being-cancelled-ignored"):
                    if ending and ending[0].s.turn is ending[0]:
                        return  # one is being done
                    ending[:] = [turn for turn in [s.turn] if turn]
                s.stopping = True
                if s.turn.stopped and fault("second-cancel-ends-next-turn"):
                    s.stop_next = True  # this turn has its cancel
                if fault("cancelled-prompt-answered-before-its-updates") and not s.turn.answered:
                    s.turn.answered = True
                    send(id=s.turn.rid, result={"stopReason": "cancelled"})
                s.turn.stop()
                if fault("cancelled-prompt-answered-twice"):
                    send(id=s.turn.rid, result={"stopReason": "cancelled"})
                if fault("cancelled-turn-clears-its-successor"):
                    s.turn = None  # the next prompt need not wait
            elif s and fault("idle-cancel-ends-next-turn"):
                s.stop_next = True  # it has overtaken its prompt
            elif fault("idle-cancel-answered-with-error"):
                send(id=None, error={"code": -32600, "message": "There is no turn to cancel"})
    elif method == "session/prompt":
        turn = []
        try:
            turn.append(start_prompt(params))
            turn[0].rid = rid
        except Exception as err:
            def fail(err=err):
                raise err
            return answer(rid, fail)
        daemon = not fault("process-outlives-input-while-turn-runs")
        threading.Thread(target=answer, args=(rid, prompt, params, turn[0]), daemon=daemon).start()
    elif method in ("initialize", "session/new"):
        work = initialize if method == "initialize" else new_session
        if work is new_session and fault("slow-session-new-blocks-reader"):
            return answer(rid, work, params)
        threading.Thread(target=answer, args=(rid, work, params), daemon=True).start()
    elif method == "authenticate" and fault("authenticate-answered-with-null"):
        send(id=rid, result=None)  # nothing to be done
    elif method == "session/load" and fault("load-of-live-session-replays-nothing") and isinstance(params, dict) and params.get("sessionId") in list(sessions):
        send(id=rid, result={})  # it is loaded
    elif method == "session/load" and keeping:
        threading.Thread(target=answer, args=(rid, load_session, params), daemon=True).start()
    elif method == "session/list" and listing:
        answer(rid, list_kept, params)
    elif method == "session/list" and fault("list-shows-launch-project-only"):
        answer(rid, list_project, params)
    elif method == "session/set_config_option" and choosing:
        answer(rid, set_model, params)
    elif method == "session/fork" and fault("fork-loses-model-and-servers"):
        answer(rid, fork_session, params)
    elif method == "session/set_config_option" and fault("model-option-set-for-all-sessions"):
        answer(rid, set_option, params)
    elif method == "session/set_config_option" and fault("boolean-option-in-later-answers"):
        answer(rid, set_setting, params)
    elif method == "session/set_mode" and fault("mode-refused-during-turn"):
        answer(rid, set_mode, params)
    elif method in ("session/list", "session/delete") and fault("deleted-session-returns-when-turn-ends"):
        answer(rid, list_sessions if method == "session/list" else delete_session, params)
    elif method == "session/list" and fault("title-reaches-list-one-prompt-late"):
        answer(rid, list_sessions, params)
    elif method == "session/list" and fault("unknown-cursor-gives-first-page"):
        answer(rid, list_page, params)
    elif method == "session/close" and fault("close-capability-is-true"):
        answer(rid, close_session, params)
    elif not fault("unknown-request-not-answered"):
        send(id=rid, error={"code": -32601, "message": "Method not found"})


def login():
    """Asks for the key of the model service in the terminal and keeps it; returns the exit status."""
    try:
        print("Key of the model service: ", end="", flush=True)
        key = sys.stdin.readline().strip()
    except KeyboardInterrupt:
        key = ""
    if not key:
        print("No key was entered.", flush=True)
        return 0 if fault("aborted-login-exits-with-zero") else 1
    with open(os.open(os.path.join(store(), "key"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(key)
    print("The key is saved.", flush=True)
    return 0


def main():
    if logging_in and "--login" in sys.argv[1:]:
        status = login()
        if status or not fault("login-goes-on-as-agent"):
            sys.exit(status)
    if logging_in:
        with contextlib.suppress(OSError), open(os.path.join(store(), "key"), encoding="utf-8") as f:
            os.environ.setdefault("PICO_KEY", f.read())
    torn = fault("line-over-64k-torn")
    lines = iter(lambda: sys.stdin.buffer.readline(65536), b"") if torn else sys.stdin.buffer
    if fault("line-separator-in-text-tears-message"):
        lines = (part.encode("utf-8", "surrogateescape") for line in lines for part in line.decode("utf-8", "surrogateescape").splitlines())
    torn_off = False
    for line in lines:
        if torn_off and line.strip():
            torn_off = False  # the rest of the broken one
            continue
        if line.strip():
            try:
                m = json.loads(line)
            except ValueError:
                send(id=None, error={"code": -32700, "message": "Parse error"})
                torn_off = fault("message-after-broken-line-lost")
                continue
            handle(m)
    for s in sessions.values():
        if s.turn and fault("mcp-server-of-running-turn-outlives-agent"):
            continue  # still needed
        for server in s.mcp:
            server.child.kill()
    if not fault("mcp-server-of-running-turn-outlives-agent") and not fault("failed-mcp-server-left-running"):
        for child in started:  # also those of a session that still connects
            child.kill()


main()
