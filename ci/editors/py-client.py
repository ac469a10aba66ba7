#!/usr/bin/env python3
"""A small editor for the Agent Client Protocol, version 1: py-client.py PROGRAM [ARG...]

Starts the agent, opens one session in the current folder and sends the prompts of $PROMPTS (one a line).
Threads: the main thread walks through the prompts, one thread reads the agent, one writes to it, one decides
on permissions, and each terminal has two of its own (one for its output, one for its end).
"""

import codecs
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

PROMPT_SECONDS = 20     # until a prompt is cancelled
CANCEL_SECONDS = 10     # from the cancel until the client goes on without an answer
GOODBYE_SECONDS = 5     # from closing the agent's stdin until it is killed
SETUP_SECONDS = 60      # for initialize and session/new
KEEP_BYTES = 16 << 20   # terminal output that is kept when the agent names no limit

NOT_FOUND = -32002
INVALID_REQUEST = -32600
NO_METHOD = -32601
BAD_PARAMS = -32602
INTERNAL = -32603
CANCELLED = -32800

PERMISSION_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")


class Refusal(Exception):
    """A request that gets an error as its answer."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class AgentGone(Exception):
    """The agent died, or said something that makes going on pointless."""


def note(text):
    """Oddities on the wire go to stderr; they are not for the user."""
    print(f"py-client: {text}", file=sys.stderr, flush=True)


def short(value, width=160):
    text = " ".join(str(value).split())
    return text if len(text) <= width else text[:width - 3] + "..."


# ---------------------------------------------------------------------------------------------- reading JSON

def forbid_constant(name):
    raise ValueError(f"{name} is not valid JSON")


DECODER = json.JSONDecoder(parse_constant=forbid_constant)
blanks = re.compile(r"[ \t\n\r]*").match


def id_as_written(text):
    """Returns the text of the top-level id, so that 1.0 or 1e3 goes back as it came. The object is known to parse."""
    at, found = text.index("{") + 1, None
    while True:
        at = blanks(text, at).end()
        if text[at] == "}":
            return found
        if text[at] == ",":
            at = blanks(text, at + 1).end()
        key, at = DECODER.raw_decode(text, at)
        start = blanks(text, blanks(text, at).end() + 1).end()      # + 1: the colon
        _, at = DECODER.raw_decode(text, start)
        if key == "id":
            found = text[start:at]


def same_json(one, other):
    """Compares ids with their type: 1 is neither "1" nor true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def need_text(params, key):
    value = params.get(key)
    if not isinstance(value, str):
        raise Refusal(BAD_PARAMS, f"{key} must be a string")
    return value


def count_or_none(params, key):
    """Optional numbers fall back to "not given" when they are malformed."""
    value = params.get(key)
    return value if type(value) is int and value >= 0 else None


def objects(value):
    """The objects of a list; anything else in it is dropped."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# ------------------------------------------------------------------------------------------------ the screen

class Screen:
    """Shows the user what happens: streamed text runs on, everything else gets lines of its own."""

    def __init__(self):
        self._lock = threading.RLock()
        self._stream = None     # what is streaming now: kind and message id
        self._column = 0
        self._tools = {}
        self._broken = False

    def _put(self, text):
        if self._broken or not text:
            return
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            self._broken = True
            sys.stdout = open(os.devnull, "w", encoding="utf-8")
        self._column = 0 if text.endswith("\n") else 1

    def line(self, text):
        with self._lock:
            self._put(("\n" if self._column else "") + text + "\n")
            self._stream = None

    def stream(self, kind, message_id, text):
        with self._lock:
            if self._stream != (kind, message_id):
                self._put("\n" if self._column else "")
                self._put({"thought": "(thinking) ", "user": "> "}.get(kind, ""))
                self._stream = (kind, message_id)
            self._put(text)

    # Each of the following takes one kind of session/update. A KeyError, TypeError or ValueError means: malformed.

    def update(self, update):
        kind = update.get("sessionUpdate")
        chunk = {"agent_message_chunk": "agent", "agent_thought_chunk": "thought", "user_message_chunk": "user"}
        show = {
            "tool_call": self._tool, "tool_call_update": self._tool, "plan": self._plan,
            "current_mode_update": lambda u: self.line(f"[mode] {short(u['currentModeId'])}"),
            "config_option_update": lambda u: self.options(u["configOptions"]),
            "available_commands_update": self._commands, "session_info_update": self._info,
            "usage_update": self._usage,
        }
        if not isinstance(kind, str):
            raise ValueError("no sessionUpdate")
        if kind in chunk:
            message_id = update.get("messageId")
            self.stream(chunk[kind], message_id if isinstance(message_id, str) else None, block(update["content"]))
        elif kind in show:
            show[kind](update)

    def _tool(self, update):
        tool_id = update["toolCallId"]
        known = self._tools.get(tool_id)
        if update["sessionUpdate"] == "tool_call":
            tool = {"title": update["title"], "kind": "other", "status": "pending"}
        else:
            tool = dict(known or {"title": tool_id, "kind": "other", "status": "pending"})
        for key in ("title", "kind", "status"):
            if isinstance(update.get(key), str):
                tool[key] = update[key]
        self._tools[tool_id] = tool
        if tool != known:
            self.line(f"[tool {short(tool_id, 40)}] {short(tool['title'])} ({tool['kind']}): {tool['status']}")
        for place in objects(update.get("locations")):
            line = place.get("line")
            self.line(f"    at {short(place.get('path'))}" + (f" line {line}" if isinstance(line, int) else ""))
        for item in objects(update.get("content")):
            if item.get("type") == "content":
                text = block(item.get("content") or {}, strict=False)
                for row in text.splitlines():
                    self.line("    " + row)
            elif item.get("type") == "diff":
                old, new = item.get("oldText"), item.get("newText")
                count = [len(t.splitlines()) if isinstance(t, str) else 0 for t in (old, new)]
                self.line(f"    diff {short(item.get('path'))}: -{count[0]} +{count[1]} lines")
            elif item.get("type") == "terminal":
                self.line(f"    terminal {short(item.get('terminalId'))}")

    def _plan(self, update):
        if not isinstance(update["entries"], list):
            raise ValueError("entries is no list")
        marks = {"completed": "x", "in_progress": "~"}
        rows = [f"    [{marks.get(str(e.get('status')), ' ')}] {short(e.get('content'))}"
                for e in objects(update["entries"])]
        self.line("\n".join(["[plan]"] + rows))

    def _commands(self, update):
        names = [f"/{short(c.get('name'), 40)}" for c in objects(update["availableCommands"])]
        self.line("[commands] " + " ".join(names))

    def _info(self, update):
        if "title" in update:
            self.line(f"[session title] {short(update['title'] or '')}")

    def _usage(self, update):
        cost = update.get("cost")
        price = f", {cost.get('amount')} {cost.get('currency')}" if isinstance(cost, dict) else ""
        self.line(f"[usage] {update['used']} of {update['size']} tokens{price}")

    def options(self, options):
        for option in objects(options):
            self.line(f"[option] {short(option.get('name'))} = {short(option.get('currentValue'))}")

    def modes(self, state):
        if isinstance(state, dict):
            names = [short(m.get("id"), 40) for m in objects(state.get("availableModes"))]
            self.line(f"[mode] {short(state.get('currentModeId'))} (of {', '.join(names)})")


def block(content, strict=True):
    """What one content block looks like to the user."""
    kind = content["type"] if strict else content.get("type")
    if kind == "text" and isinstance(content.get("text"), str):
        return content["text"]
    if kind in ("image", "audio"):
        return f"<{kind} {short(content.get('mimeType'))}>"
    if kind == "resource_link":
        return f"<{short(content.get('name'))}: {short(content.get('uri'))}>"
    if kind == "resource" and isinstance(content.get("resource"), dict):
        inner = content["resource"]
        return inner["text"] if isinstance(inner.get("text"), str) else f"<{short(inner.get('uri'))}>"
    if strict:
        raise ValueError("malformed content block")
    return ""


# -------------------------------------------------------------------------------------------------- the link

class Call:
    """A request of this client that waits for its answer."""

    def __init__(self, when_done=None):
        self.done = threading.Event()
        self.answer = None          # the whole response, None when the agent died before
        self.when_done = when_done  # run with the response by the reading thread, before it takes the next line


class Request:
    """A request of the agent. It is answered once, whoever comes first."""

    def __init__(self, link, raw_id, id_value, method, params):
        self.link, self.raw_id, self.id, self.method, self.params = link, raw_id, id_value, method, params

    def result(self, value):
        self.link.answer(self, "result", value)

    def error(self, code, message):
        self.link.answer(self, "error", {"code": code, "message": message})


class Link:
    """The agent's process and the two threads that talk to it."""

    def __init__(self, command, screen):
        self.screen = screen
        self.on_request = self.on_notification = None
        self._lock = threading.RLock()
        self._next_id = 1
        self._calls = {}
        self._open = []             # requests of the agent without an answer yet
        self._outbox = queue.SimpleQueue()
        self.dead = threading.Event()
        self.closing = False
        # The agent leads a group of its own, so that a wrapper script does not outlive it.
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        start_new_session=True)

    def start(self):
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._write, daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()

    # Sending: lines are queued under the lock, the writing thread may be held up by an agent that does not read.

    def _send(self, text):
        with self._lock:
            if not self.closing:
                self._outbox.put(text)

    def call(self, method, params, when_done=None):
        with self._lock:
            call, number = Call(when_done), self._next_id
            self._next_id += 1
            self._calls[number] = call
            self._send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
            if self.dead.is_set():
                call.done.set()
            return call

    def forget(self, call):
        """An answer that comes after all finds nobody."""
        with self._lock:
            self._calls = {number: other for number, other in self._calls.items() if other is not call}

    def notify(self, method, params):
        self._send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def answer(self, request, key, value):
        with self._lock:
            if request in self._open:
                self._open.remove(request)
                self._send('{"jsonrpc": "2.0", "id": %s, "%s": %s}' % (request.raw_id, key, json.dumps(value)))

    def unanswered(self, *methods):
        with self._lock:
            return [r for r in self._open if not methods or r.method in methods]

    def close_stdin(self):
        with self._lock:
            for request in self.unanswered():
                request.error(CANCELLED, "The client is about to end.")
            self.closing = True
            self._outbox.put(None)

    def _write(self):
        pipe = self.process.stdin
        try:
            while (text := self._outbox.get()) is not None:
                pipe.write(text.encode("utf-8", "replace") + b"\n")
                pipe.flush()
        except OSError as problem:
            if not self.closing:
                note(f"cannot write to the agent: {problem}")
        try:
            pipe.close()
        except OSError:
            pass

    # Receiving.

    def _read(self):
        for line in self.process.stdout:
            text = line.decode("utf-8", "replace")
            if not text.strip():
                continue
            try:
                message = DECODER.decode(text.strip(" \t\r\n"))
            except (ValueError, RecursionError):
                note(f"no JSON: {short(text)}")
                continue
            try:
                self._take(message, text)
            except Exception as problem:    # whatever the agent sent, the next line is read
                note(f"dropped a message: {problem!r}")
        self._lost()

    def _watch(self):
        """Children of a dead agent may keep its stdout open, so the end of the process counts as well."""
        self.process.wait()
        self._reader.join(1)
        self._lost()

    def _lost(self):
        with self._lock:
            self.dead.set()
            calls, self._calls = list(self._calls.values()), {}
        for call in calls:
            call.done.set()

    def _take(self, message, text):
        if not isinstance(message, dict):
            note(f"no message: {short(text)}")
        elif "method" in message:
            method, params = message["method"], message.get("params")
            if "id" not in message:
                if isinstance(method, str):
                    self.on_notification(method, params if isinstance(params, dict) else {})
                return
            request = Request(self, id_as_written(text), message["id"], method, params)
            with self._lock:
                if self.closing:
                    return      # nobody could read the answer
                self._open.append(request)
            if isinstance(method, str):
                self.on_request(request)
            else:
                request.error(INVALID_REQUEST, "method must be a string")
        elif "id" in message and ("result" in message or "error" in message):
            number = message["id"]
            with self._lock:
                call = self._calls.pop(number, None) if type(number) is int else None
            if call is None:
                note(f"a response nobody waits for: {short(text)}")
                return
            call.answer = message
            if call.when_done:
                call.when_done(message)
            call.done.set()
        else:
            note(f"neither request nor response: {short(text)}")

    # The end.

    def obituary(self):
        try:
            status = self.process.wait(1)
        except subprocess.TimeoutExpired:
            return "The agent closed its output."
        return f"The agent died ({'exit status' if status >= 0 else 'signal'} {abs(status)})."

    def end(self):
        """Closes the agent's stdin, waits, kills."""
        self.close_stdin()
        try:
            self.process.wait(GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            note("the agent does not end, killing it")
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except OSError:
                self.process.kill()
            self.process.wait()
        self._reader.join(1)    # what it said last is shown


# ------------------------------------------------------------------------------------------------- the files

class Files:
    """Serves fs/*, for text files below the session's folder only."""

    def __init__(self, root):
        self.root = Path(os.path.realpath(root))

    def _path(self, params):
        given = need_text(params, "path")
        if not os.path.isabs(given) or "\0" in given:
            raise Refusal(BAD_PARAMS, "path must be absolute")
        path = Path(os.path.realpath(given))
        if not path.is_relative_to(self.root):
            raise Refusal(BAD_PARAMS, f"{given} is outside the session's folder")
        return path

    def read(self, params):
        path = self._path(params)
        line, limit = count_or_none(params, "line"), count_or_none(params, "limit")
        if not path.exists():
            raise Refusal(NOT_FOUND, f"There is no file {path}")
        if not path.is_file():
            raise Refusal(BAD_PARAMS, f"{path} is no file")
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            raise Refusal(INTERNAL, f"{path} is not valid UTF-8 text") from None
        if line is not None or limit is not None:
            rows = re.findall(r"[^\n]*\n|[^\n]+", text)
            first = max(line or 1, 1) - 1
            text = "".join(rows[first:] if limit is None else rows[first:first + limit])
        return {"content": text}

    def write(self, params):
        path, content = self._path(params), need_text(params, "content")
        if path.exists() and not path.is_file():
            raise Refusal(BAD_PARAMS, f"{path} is no file")
        try:
            data = content.encode("utf-8")
        except UnicodeEncodeError:
            raise Refusal(BAD_PARAMS, "content is no Unicode text") from None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return {}


# --------------------------------------------------------------------------------------------- the terminals

class Terminal:
    """One command, its output so far and the requests that wait for its end."""

    def __init__(self, argv, env, cwd, limit):
        self.limit = KEEP_BYTES if limit is None else limit
        self.kept, self.truncated, self.status = bytearray(), False, None
        self.lock, self.over, self.waiting = threading.Lock(), threading.Event(), []
        self.process = subprocess.Popen(argv, env=env, cwd=cwd, start_new_session=True, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.pump = threading.Thread(target=self._pump, daemon=True)
        self.pump.start()
        threading.Thread(target=self._reap, daemon=True).start()

    def _pump(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while chunk := os.read(self.process.stdout.fileno(), 65536):
            self._keep(decoder.decode(chunk))
        self._keep(decoder.decode(b"", True))

    def _keep(self, text):
        """Keeps the tail; the cut moves on to the start of a character."""
        with self.lock:
            self.kept += text.encode("utf-8")
            cut = len(self.kept) - self.limit
            if cut > 0:
                while cut < len(self.kept) and self.kept[cut] & 0xC0 == 0x80:
                    cut += 1
                del self.kept[:cut]
                self.truncated = True

    def _reap(self):
        code = self.process.wait()
        self.pump.join(1)       # a grandchild may hold the pipe for ever
        with self.lock:
            if code >= 0:
                self.status = {"exitCode": code, "signal": None}
            else:
                try:
                    name = signal.Signals(-code).name
                except ValueError:
                    name = f"SIG{-code}"
                self.status = {"exitCode": None, "signal": name}
            waiting, self.waiting = self.waiting, []
            self.over.set()
        for request in waiting:
            request.result(self.status)

    def output(self):
        with self.lock:
            answer = {"output": self.kept.decode("utf-8"), "truncated": self.truncated}
            if self.status:
                answer["exitStatus"] = self.status
            return answer

    def wait(self, request):
        with self.lock:
            if not self.over.is_set():
                self.waiting.append(request)
                return
        request.result(self.status)

    def stop(self, *signals):
        """Sends the signals one after another, a second apart, until the command has ended."""
        for number in signals:
            if self.process.poll() is not None and not self.pump.is_alive():
                break
            try:
                os.killpg(self.process.pid, number)
            except OSError:
                pass
            self.over.wait(1)


class Terminals:
    """Serves terminal/*. Stopping takes time, so kill and release run beside the reading thread."""

    def __init__(self, root):
        self.root, self.count, self.live, self.lock = root, 0, {}, threading.Lock()

    def create(self, request):
        params = request.params
        command, cwd = need_text(params, "command"), params.get("cwd")
        args, env = params.get("args"), dict(os.environ)
        args = [a for a in args if isinstance(a, str)] if isinstance(args, list) else []
        for entry in objects(params.get("env")):
            if isinstance(entry.get("name"), str) and isinstance(entry.get("value"), str):
                env[entry["name"]] = entry["value"]
        if not isinstance(cwd, str):
            cwd = self.root
        if not command:
            raise Refusal(BAD_PARAMS, "command is empty")
        if not os.path.isabs(cwd):
            raise Refusal(BAD_PARAMS, "cwd must be absolute")
        try:
            if not os.path.isdir(cwd):
                raise Refusal(NOT_FOUND, f"There is no folder {cwd}")
            terminal = Terminal([command, *args], env, cwd, count_or_none(params, "outputByteLimit"))
        except FileNotFoundError:
            raise Refusal(NOT_FOUND, f"There is no program {command}") from None
        except ValueError as problem:
            raise Refusal(BAD_PARAMS, str(problem)) from None
        with self.lock:
            self.count += 1
            name = f"term-{self.count}"
            self.live[name] = terminal
        request.result({"terminalId": name})

    def _find(self, request, forget=False):
        name = need_text(request.params, "terminalId")
        with self.lock:
            terminal = self.live.pop(name, None) if forget else self.live.get(name)
        if terminal is None:
            raise Refusal(NOT_FOUND, f"There is no terminal {name}")
        return terminal

    def output(self, request):
        request.result(self._find(request).output())

    def wait_for_exit(self, request):
        self._find(request).wait(request)

    def kill(self, request):
        self._beside(request, self._find(request), signal.SIGTERM, signal.SIGKILL)

    def release(self, request):
        self._beside(request, self._find(request, forget=True), signal.SIGKILL)

    @staticmethod
    def _beside(request, terminal, *signals):
        def work():
            terminal.stop(*signals)
            request.result({})
        threading.Thread(target=work, daemon=True).start()

    def stop_all(self):
        with self.lock:
            left, self.live = list(self.live.values()), {}
        for terminal in left:
            terminal.stop(signal.SIGKILL)


# ------------------------------------------------------------------------------------------------ the editor

class Editor:
    """Puts the parts together: who answers what, and the course of the conversation."""

    def __init__(self, command):
        self.screen = Screen()
        self.cwd = os.path.abspath(os.getcwd())
        self.session = None
        self.files, self.terminals = Files(self.cwd), Terminals(self.cwd)
        self.turn = threading.Lock()    # held to send a cancel or to decide on a permission
        self.cancelling = False
        self.desk = queue.SimpleQueue()
        self.link = Link(command, self.screen)
        self.link.on_request, self.link.on_notification = self.serve, self.hear
        threading.Thread(target=self.decide, daemon=True).start()
        self.link.start()

    # Requests of the agent, in the reading thread.

    def serve(self, request):
        table = {
            "session/request_permission": self.permission,
            "fs/read_text_file": lambda r: r.result(self.files.read(r.params)),
            "fs/write_text_file": lambda r: r.result(self.files.write(r.params)),
            "terminal/create": self.terminals.create,
            "terminal/output": self.terminals.output,
            "terminal/wait_for_exit": self.terminals.wait_for_exit,
            "terminal/kill": self.terminals.kill,
            "terminal/release": self.terminals.release,
            "elicitation/create": self.no_elicitation,
        }
        try:
            if request.method not in table:
                raise Refusal(NO_METHOD, f"Method not found: {short(request.method, 80)}")
            if not isinstance(request.params, dict):
                raise Refusal(BAD_PARAMS, "params must be an object")
            if request.method != "elicitation/create":
                session = need_text(request.params, "sessionId")
                if session != self.session:
                    raise Refusal(BAD_PARAMS, f"There is no session {short(session, 80)}")
            table[request.method](request)
        except Refusal as refusal:
            request.error(refusal.code, str(refusal))
        except OSError as problem:
            request.error(INTERNAL, str(problem))
        except Exception as problem:
            note(f"{request.method} failed: {problem!r}")
            request.error(INTERNAL, "The client failed.")

    @staticmethod
    def no_elicitation(_request):
        raise Refusal(BAD_PARAMS, "This client advertised no elicitation mode")

    def permission(self, request):
        call, options = request.params.get("toolCall"), request.params.get("options")
        if not isinstance(call, dict):
            raise Refusal(BAD_PARAMS, "toolCall must be an object")
        need_text(call, "toolCallId")
        if not isinstance(options, list) or len(objects(options)) != len(options):
            raise Refusal(BAD_PARAMS, "options must be a list of objects")
        for option in options:
            need_text(option, "optionId")
            need_text(option, "name")
            if need_text(option, "kind") not in PERMISSION_KINDS:
                raise Refusal(BAD_PARAMS, f"{short(option['kind'], 40)} is no kind of option")
        self.desk.put(request)

    def decide(self):
        """The permission thread: allow once, else reject, else cancelled."""
        while True:
            request = self.desk.get()
            options = request.params["options"]
            chosen = next((o for o in options if o["kind"] == "allow_once"), None)
            chosen = chosen or next((o for o in options if o["kind"].startswith("reject_")), None)
            with self.turn:
                if self.cancelling or not chosen:
                    request.result({"outcome": {"outcome": "cancelled"}})
                    word = "cancelled"
                else:
                    request.result({"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}})
                    word = short(chosen["name"])
            call = request.params["toolCall"]
            title = call.get("title")
            self.screen.line(f"[permission] {short(title if isinstance(title, str) else call['toolCallId'])}: {word}")

    # Notifications of the agent, in the reading thread.

    def hear(self, method, params):
        if method == "session/update":
            if not isinstance(params.get("update"), dict):
                note("session/update without update")
            elif self.session is not None and params.get("sessionId") != self.session:
                note(f"update of a foreign session {short(params.get('sessionId'), 80)}")
            else:
                try:
                    self.screen.update(params["update"])
                except (KeyError, TypeError, ValueError, AttributeError) as problem:
                    note(f"malformed update: {problem!r}")
        elif method == "$/cancel_request":
            for request in self.link.unanswered("session/request_permission", "terminal/wait_for_exit"):
                if "requestId" in params and same_json(request.id, params["requestId"]):
                    request.error(CANCELLED, "Request cancelled")

    # The conversation, in the main thread.

    def setup(self, method, params, when_done=None):
        call = self.link.call(method, params, when_done)
        if not call.done.wait(SETUP_SECONDS):
            raise AgentGone(f"No answer to {method} within {SETUP_SECONDS} s.")
        if call.answer is None:
            raise AgentGone(self.link.obituary())
        error, result = call.answer.get("error"), call.answer.get("result")
        if error is not None:
            raise AgentGone(f"{method} failed: {describe(error)}")
        if not isinstance(result, dict):
            raise AgentGone(f"The answer to {method} is no object.")
        return result

    def greet(self):
        hello = self.setup("initialize", {
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True},
            "clientInfo": {"name": "py-client", "title": "Python client", "version": "1.0.0"},
        })
        if type(hello.get("protocolVersion")) is not int or hello["protocolVersion"] != 1:
            raise AgentGone(f"The agent speaks version {short(hello.get('protocolVersion'))}, not 1.")
        info = hello.get("agentInfo")
        if isinstance(info, dict):
            self.screen.line(f"[agent] {short(info.get('title') or info.get('name'))} {short(info.get('version'))}")

    def open_session(self):
        def learn(response):    # in the reading thread: the next line may already speak of the session
            result = response.get("result")
            if isinstance(result, dict) and isinstance(result.get("sessionId"), str):
                self.session = result["sessionId"]
        result = self.setup("session/new", {"cwd": self.cwd, "mcpServers": []}, learn)
        if self.session is None:
            raise AgentGone("The answer to session/new has no sessionId.")
        self.screen.modes(result.get("modes"))
        self.screen.options(result.get("configOptions"))

    def prompt(self, text):
        """Sends one prompt; true if it was answered."""
        def ended(_response):
            with self.turn:
                self.cancelling = False
        self.screen.line(f"> {text}")
        with self.turn:
            self.cancelling = False
            call = self.link.call("session/prompt", {"sessionId": self.session,
                                                     "prompt": [{"type": "text", "text": text}]}, ended)
        if not call.done.wait(PROMPT_SECONDS):
            self.screen.line(f"[no answer within {PROMPT_SECONDS} s, cancelling]")
            with self.turn:
                if not call.done.is_set():
                    self.cancelling = True
                    self.link.notify("session/cancel", {"sessionId": self.session})
                    for request in self.link.unanswered("session/request_permission"):
                        request.result({"outcome": {"outcome": "cancelled"}})
            if not call.done.wait(CANCEL_SECONDS):
                self.link.forget(call)
                if not call.done.is_set():
                    self.screen.line("[no answer after the cancel either, going on]")
                    return False
        if call.answer is None:
            raise AgentGone(self.link.obituary())
        if call.answer.get("error") is not None:
            self.screen.line(f"[error] {describe(call.answer['error'])}")
        else:
            result = call.answer.get("result")
            reason = result.get("stopReason") if isinstance(result, dict) else None
            self.screen.line(f"[turn ended: {short(reason) if isinstance(reason, str) else 'no reason given'}]")
        return True


def describe(error):
    if not isinstance(error, dict):
        return short(error)
    data = f" ({short(error['data'])})" if error.get("data") is not None else ""
    return f"{short(error.get('message'))} [{short(error.get('code'))}]{data}"


def prompts_to_send():
    lines = [line for line in os.environ.get("PROMPTS", "").split("\n") if line.strip()]
    return lines or ["Say hello.", "And once more."]


def terminate(_number, _frame):
    raise SystemExit(143)


def main():
    if len(sys.argv) < 2:
        print("usage: py-client.py PROGRAM [ARG...]", file=sys.stderr)
        return 2
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    signal.signal(signal.SIGTERM, terminate)
    try:
        editor = Editor(sys.argv[1:])
    except OSError as problem:
        print(f"The agent cannot be started: {problem}", flush=True)
        return 1
    try:
        editor.greet()
        editor.open_session()
        answered = [editor.prompt(text) for text in prompts_to_send()]
        editor.link.end()
        return 0 if all(answered) else 1
    except AgentGone as problem:
        editor.screen.line(str(problem))
        editor.link.end()
        return 1
    finally:
        editor.link.kill()
        editor.terminals.stop_all()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
