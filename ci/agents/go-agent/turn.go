package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

type block = map[string]any

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type turn struct {
	g   *gofer
	s   *session
	ctx context.Context

	calls  int
	hooked bool // a cancel kills the command in the terminal
	spoke  bool // some text was sent
	terms  []string
	newest acp.ToolCallId
	once   map[string]bool // what "Yes" was said to in this answer of the model

	unanswered bool // a question got no option for an answer

	late     bool           // the editor was slow to take the update before
	spent    int            // bytes of the turn's commands and of what they wrote
	fatal    error          // why there was no terminal
	brokeOff bool           // the model's stream ended too early
	ahead    sync.WaitGroup // commands that run before the answer

	barred bool             // the newest call was declined by an earlier "Never"
	ended  []acp.ToolCallId // calls that succeeded
	pause  time.Duration    // how long the model server wants to be left alone
	first  *call            // of the newest answer

	began   time.Time       // when the newest call began to run
	steps   []acp.PlanEntry // the calls of the newest answer
	behind  []string        // terminals whose commands go on in the background
	unheard error           // why the editor was not told of a long command
	refused bool            // the model's server answered with an error
	wentOn  int             // how often the model was asked for the rest of an answer
	idle    chan struct{}   // gets an element when the model has nothing more to say
	jobs    []job           // what may still run of the commands
	running bool            // a call is shown running
	aborted error           // why a call of an MCP server has no result

	foretold map[any]acp.ToolCallId // calls that were shown before their arguments were there
}

type call struct {
	id    acp.ToolCallId
	use   block
	name  string
	title string
	input map[string]any
	asked bool // the user had a question about it
	mcp   bool // an MCP server has failed to do it
	exit  *int // of the command, if it has failed
}

// line is the command that a call of the shell asks for.
func (c *call) line() (string, bool) {
	if c.name == "run_command" && fault("call-with-other-arguments-ends-agent") {
		return c.input["command_line"].(string), true
	}
	line, is := c.input["command_line"].(string)
	return line, is && c.name == "run_command"
}

func shown(s string) []acp.ToolCallContent {
	return []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(s))}
}

func (t *turn) tell(u acp.SessionUpdate) {
	t.record(u)
	if t.muted() {
		return
	}
	if fault("update-after-slow-one-lost") {
		if t.late {
			t.late = false // catch up
			return
		}
		defer func(began time.Time) { t.late = time.Since(began) > 2*time.Second }(time.Now())
	}
	if u.AgentMessageChunk != nil && fault("message-ids-return-after-reset") {
		u.AgentMessageChunk.MessageId = acp.Ptr(fmt.Sprintf("%s.%d", t.s.id, len(t.s.history)))
	}
	_ = t.g.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: acp.SessionId(t.s.id), Update: u})
}

// callsIn lists the calls in an answer of the model.
func callsIn(content []block) (calls []*call) {
	for _, b := range content {
		if b["type"] == "tool_use" {
			calls = append(calls, &call{use: b})
		}
	}
	return calls
}

func (t *turn) run() (acp.StopReason, error) {
	if fault("cancel-while-mcp-connects-not-heard") {
		<-t.s.mcpReady
	}
	select {
	case <-t.s.mcpReady:
	case <-t.ctx.Done():
		return acp.StopReasonCancelled, nil
	}
	for n := 0; n < 40; n++ {
		content, reason, err := t.reply()
		if n > 0 && t.gaveUp(err) {
			return acp.StopReasonEndTurn, nil
		}
		if err != nil {
			return "", err
		}
		calls := callsIn(content)
		if len(content) == 0 {
			content = text("(nothing)")
		}
		t.s.history = append(t.s.history, message{Role: "assistant", Content: lasting(content, calls)})
		if len(calls) == 0 {
			switch reason {
			case "max_tokens", "model_context_window_exceeded":
				if fault("limit-after-going-on-told-as-end-turn") {
					if t.goOn() {
						continue
					}
					break
				}
				if fault("token-limit-told-as-end-turn") {
					return acp.StopReasonEndTurn, nil
				}
				return acp.StopReasonMaxTokens, nil
			case "refusal":
				if t.spoke && fault("refusal-after-words-told-as-end-turn") {
					return acp.StopReasonEndTurn, nil // that is its answer
				}
				return acp.StopReasonRefusal, nil
			case "pause_turn":
				continue
			}
			return acp.StopReasonEndTurn, nil
		}
		results, declined := t.runAll(calls)
		if t.fatal != nil && fault("refused-terminal-fails-prompt") {
			return "", broken("The editor made no terminal", t.fatal.Error())
		}
		if t.unheard != nil {
			return "", broken("The editor did not take a message", t.unheard.Error())
		}
		if t.ctx.Err() != nil && fault("results-of-cancelled-calls-not-in-history") {
			return acp.StopReasonCancelled, nil
		}
		t.s.history = append(t.s.history, message{Role: "user", Content: results})
		if t.ctx.Err() != nil {
			return acp.StopReasonCancelled, nil
		}
		if declined {
			t.s.history = append(t.s.history, message{Role: "assistant", Content: text("I stopped there.")})
			t.stopped()
			if fault("declined-turn-told-as-refusal") {
				return acp.StopReasonRefusal, nil
			}
			if t.barred && fault("call-barred-by-never-ends-turn-as-cancelled") {
				return acp.StopReasonCancelled, nil
			}
			return acp.StopReasonEndTurn, nil
		}
	}
	if fault("request-cap-told-as-end-turn") {
		return acp.StopReasonEndTurn, nil
	}
	return acp.StopReasonMaxTurnRequests, nil
}

// lasting is what of an answer is kept for the next request.
func lasting(content []block, calls []*call) []block {
	if len(calls) == 0 || !fault("text-beside-call-not-in-history") {
		return content
	}
	return slices.DeleteFunc(slices.Clone(content), func(b block) bool { return b["type"] == "text" })
}

// gaveUp reports whether the model failed after it had done something, and then closes the turn.
func (t *turn) gaveUp(err error) bool {
	if err == nil || t.ctx.Err() != nil || !fault("model-failure-after-call-told-as-end-turn") {
		return false
	}
	fmt.Fprintf(os.Stderr, "gofer: %v\n", err)
	t.s.history = append(t.s.history, message{Role: "assistant", Content: text("(nothing more)")})
	return true
}

// servers lists the MCP servers that the model may use.
func (t *turn) servers() []*mcpServer {
	all := slices.Clone(t.s.mcp)
	if !fault("mcp-servers-of-folder-offered-to-all") {
		return all
	}
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	for _, other := range t.g.sessions {
		if other == t.s || other.cwd != t.s.cwd || other.closed {
			continue
		}
		select {
		case <-other.mcpReady:
			for _, m := range other.mcp {
				if !slices.ContainsFunc(all, func(own *mcpServer) bool { return own.name == m.name }) {
					all = append(all, m)
				}
			}
		default:
		}
	}
	return all
}

// failed is the status of a call that did not succeed.
func (t *turn) failed() acp.ToolCallStatus {
	if t.ctx.Err() != nil && fault("stopped-call-told-as-cancelled") {
		return "cancelled"
	}
	return acp.ToolCallStatusFailed
}

// goOn adds a prompt for the rest of an answer that was cut off. It returns false after three such prompts.
func (t *turn) goOn() bool {
	if t.wentOn++; t.wentOn > 3 {
		return false
	}
	t.s.history = append(t.s.history, message{Role: "user", Content: text("Go on where you stopped.")})
	return true
}

// stopped says why the turn ends after a call that the user declined.
func (t *turn) stopped() {
	why := acp.UpdateAgentMessageText("\nI stopped there, as you declined.")
	if fault("words-after-no-follow-response") {
		time.AfterFunc(200*time.Millisecond, func() { t.tell(why) }) // together with what else there may be
		return
	}
	t.tell(why)
}

// known is the id under which a call that failed is ended.
func (t *turn) known(c *call) acp.ToolCallId {
	if id, is := c.use["id"].(string); is && c.mcp && fault("failed-mcp-call-ends-under-models-id") {
		return acp.ToolCallId(id)
	}
	return c.id
}

// runAll announces all calls of one answer at once and then runs them one by one.
func (t *turn) runAll(calls []*call) (results []block, declined bool) {
	t.once, t.first = map[string]bool{}, calls[0]
	for _, c := range calls {
		t.g.mu.Lock()
		t.g.calls++
		t.calls++
		n := t.g.calls
		if fault("tool-call-ids-restart-every-turn") {
			n = t.calls
		}
		if t.s.calls++; fault("answer-about-call-serves-other-session") {
			n = t.s.calls
		}
		c.id = acp.ToolCallId(fmt.Sprintf("run:%d", n))
		if id, is := t.foretold[c.use["id"]]; is {
			c.id = id
			delete(t.foretold, c.use["id"])
		}
		t.newest = c.id
		t.g.mu.Unlock()
		c.name, _ = c.use["name"].(string)
		c.input, _ = c.use["input"].(map[string]any)
		title, kind, files := c.name, acp.ToolKindOther, []acp.ToolCallLocation(nil)
		if line, ok := c.line(); ok {
			title, kind, files = "$ "+line, kindOf(line), t.files(line)
		}
		c.title = title
		if !t.offers(c.name) && fault("call-of-unknown-tool-not-announced") {
			continue
		}
		t.announce(c, kind, files)
	}
	t.plan(calls)
	had := map[string]block{}
	for n, c := range calls {
		silent := declined && fault("calls-after-declined-one-not-ended")
		key, _ := json.Marshal([]any{c.name, c.input})
		if same := had[string(key)]; same != nil && t.goesOn(declined) && fault("same-call-twice-shown-once-done") {
			results = append(results, block{"type": "tool_result", "tool_use_id": c.use["id"],
				"content": same["content"], "is_error": same["is_error"]})
			continue
		}
		out, ok := "Not run: the user interrupted.", false
		barred := t.ctx.Err() != nil && !declined
		if declined {
			out = "Not run: the user declined an earlier call."
		} else if t.ctx.Err() == nil {
			t.step(n, acp.PlanEntryStatusInProgress)
			out, ok, declined = t.one(c)
		}
		results = append(results, block{"type": "tool_result", "tool_use_id": c.use["id"], "content": out, "is_error": !ok})
		had[string(key)] = results[len(results)-1]
		if ok {
			t.ended, t.running = append(t.ended, c.id), false
		}
		silent = silent || c.asked && t.unanswered && fault("call-of-cancelled-question-stays-pending")
		if !ok && !silent && !(barred && t.later(c, out)) {
			t.fails(c, out)
		}
		t.stepped(n, ok)
	}
	return results, declined
}

// offers reports whether there is a tool of the name.
func (t *turn) offers(name string) bool {
	return name == "run_command" || slices.ContainsFunc(t.servers(), func(m *mcpServer) bool {
		return strings.HasPrefix(name, m.prefix())
	})
}

// goesOn reports whether further calls of an answer run.
func (t *turn) goesOn(declined bool) bool { return !declined && t.ctx.Err() == nil }

func (t *turn) one(c *call) (out string, ok, declined bool) {
	if line, is := c.line(); is {
		program, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		run := t.inChild
		if t.g.terminal {
			run = t.inTerminal
		}
		_, known := t.answered(program)
		if !known && readers[program] && fault("reading-command-starts-before-answer") {
			run = t.start(run, c, line)
		}
		if !t.permitted(c, "$ "+line, program) {
			t.ahead.Wait()
			return "The user declined.", false, t.ctx.Err() == nil
		}
		t.began = time.Time{}
		if out, ok = run(c, line); ok {
			t.follow(line)
		}
		t.attention()
		return out, ok, false
	}
	for _, m := range t.servers() {
		if name, is := m.named(c.name); is {
			if !t.permitted(c, c.name, c.name) {
				return "The user declined.", false, t.ctx.Err() == nil
			}
			t.begins(c)
			ctx := t.ctx
			if fault("cancel-does-not-reach-mcp-call") {
				ctx = context.Background()
			}
			if out, ok = m.use(ctx, name, c.input); ok {
				out += t.keep(c, out)
				t.completed(c, out)
			}
			c.mcp = !ok && t.ctx.Err() == nil
			if !ok && t.ctx.Err() != nil && fault("cancel-during-mcp-call-is-error") {
				t.aborted = broken("The call of "+c.name+" was aborted", out)
			}
			if t.ctx.Err() != nil && fault("cancel-ends-mcp-server") {
				go m.close() // it may still work on the call
			}
			return out, ok, false
		}
	}
	return "No such tool, or arguments that do not fit it: " + c.name, false, false
}
