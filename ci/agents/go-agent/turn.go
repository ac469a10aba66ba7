package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

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
}

// question is one that the user has not answered yet.
type question struct {
	done chan struct{}
	yes  bool
}

type call struct {
	id    acp.ToolCallId
	use   block
	name  string
	title string
	input map[string]any
	asked bool // the user had a question about it
}

func text(s string) []block { return []block{{"type": "text", "text": s}} }

func shown(s string) []acp.ToolCallContent {
	return []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(s))}
}

func (t *turn) tell(u acp.SessionUpdate) {
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

func env(name, or string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return or
}

// forOthers reports whether a text is meant for somebody else than the model.
func forOthers(t *acp.ContentBlockText) bool {
	a := t.Annotations
	return a != nil && !slices.Contains(a.Audience, acp.RoleAssistant) &&
		fault("annotated-text-without-audience-dropped")
}

// elsewhere reports whether a link does not lead to a file.
func elsewhere(l *acp.ContentBlockResourceLink) bool {
	return l != nil && !strings.HasPrefix(l.Uri, "file://") && fault("link-to-no-file-refused")
}

// unusual reports whether an image is of a kind that not every model takes.
func unusual(i *acp.ContentBlockImage) bool {
	return i != nil && i.MimeType != "image/png" && i.MimeType != "image/jpeg" &&
		fault("image-neither-png-nor-jpeg-refused")
}

// linked reads the selections that the prompt links to, as the editor has them.
func (t *turn) linked(prompt []acp.ContentBlock) (out []block) {
	for _, b := range prompt {
		if b.ResourceLink == nil || !t.g.reads || !fault("line-of-link-counts-from-zero") {
			continue
		}
		u, err := url.Parse(b.ResourceLink.Uri)
		if err != nil || u.Scheme != "file" || !filepath.IsAbs(u.Path) {
			continue
		}
		var line int
		if n, _ := fmt.Sscanf(u.Fragment, "L%d", &line); n == 0 || line < 1 {
			continue
		}
		line-- // rows
		res, err := t.g.conn.ReadTextFile(t.ctx, acp.ReadTextFileRequest{SessionId: acp.SessionId(t.s.id),
			Path: u.Path, Line: &line, Limit: acp.Ptr(50)})
		if err == nil && strings.TrimSpace(res.Content) != "" {
			out = append(out, block{"type": "text", "text": b.ResourceLink.Uri + ":\n" + res.Content})
		}
	}
	return out
}

// opened reads the files that the prompt links to, with what is not saved yet.
func (t *turn) opened(prompt []acp.ContentBlock) (out []block) {
	ctx, reading := t.ctx, t.g.files && fault("link-read-though-only-writing-offered")
	if t.g.reads && fault("cancel-while-link-is-read-not-heard") {
		ctx, reading = context.Background(), true
	}
	for _, b := range prompt {
		if b.ResourceLink == nil || !reading {
			continue
		}
		u, err := url.Parse(b.ResourceLink.Uri)
		if err != nil || u.Scheme != "file" || !filepath.IsAbs(u.Path) {
			continue
		}
		res, err := t.g.conn.ReadTextFile(ctx, acp.ReadTextFileRequest{SessionId: acp.SessionId(t.s.id), Path: u.Path})
		if err == nil && strings.TrimSpace(res.Content) != "" {
			out = append(out, block{"type": "text", "text": b.ResourceLink.Uri + ":\n" + res.Content})
		}
	}
	return out
}

// readable makes sure that the files which the prompt links to are there.
func (t *turn) readable(prompt []acp.ContentBlock) error {
	for _, b := range prompt {
		if b.ResourceLink == nil || !t.g.reads || !fault("unreadable-link-fails-prompt") {
			continue
		}
		u, err := url.Parse(b.ResourceLink.Uri)
		if err != nil || u.Scheme != "file" || !filepath.IsAbs(u.Path) {
			continue
		}
		_, err = t.g.conn.ReadTextFile(t.ctx, acp.ReadTextFileRequest{SessionId: acp.SessionId(t.s.id),
			Path: u.Path, Limit: acp.Ptr(1)})
		if err != nil && t.ctx.Err() == nil {
			return acp.NewInvalidParams("a link that cannot be read: " + b.ResourceLink.Uri)
		}
	}
	return nil
}

// fitting is as much of a text as the model gets.
func fitting(text string) string {
	const most = 1 << 14
	if len(text) <= most || !fault("long-text-of-prompt-cut") {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " […]"
}

// embedded reports whether a block holds the text of a file.
func embedded(b acp.ContentBlock) bool {
	return b.Resource != nil && b.Resource.Resource.TextResourceContents != nil &&
		fault("embedded-file-of-bytes-refused")
}

// address is what the model is told of where a link leads.
func address(uri string) string {
	file, _, _ := strings.Cut(uri, "#")
	if fault("fragment-of-link-not-told") {
		return file
	}
	return uri
}

func blocks(prompt []acp.ContentBlock) (out []block, words string, err error) {
	links := map[string]bool{}
	for _, b := range prompt {
		switch {
		case b.Text != nil && forOthers(b.Text):
		case b.Text != nil && strings.TrimSpace(b.Text.Text) == "": // nothing, or a kind that the SDK does not know
		case b.Text != nil:
			words += b.Text.Text + "\n"
			out = append(out, block{"type": "text", "text": fitting(b.Text.Text)})
		case embedded(b):
			file := b.Resource.Resource.TextResourceContents
			out = append(out, text(file.Uri+":\n"+file.Text)...)
		case b.ResourceLink != nil && links[b.ResourceLink.Name] && fault("links-of-same-name-are-one"):
		case elsewhere(b.ResourceLink):
			return nil, "", acp.NewInvalidParams("a link that is not to a file: " + b.ResourceLink.Uri)
		case b.ResourceLink != nil:
			links[b.ResourceLink.Name] = true
			out = append(out, text(fmt.Sprintf("See %s (%s).", address(b.ResourceLink.Uri), b.ResourceLink.Name))...)
		case unusual(b.Image):
			return nil, "", acp.NewInvalidParams("an image of a kind that this agent does not take: " + b.Image.MimeType)
		case b.Image != nil:
			source := block{"type": "base64", "media_type": b.Image.MimeType, "data": b.Image.Data}
			if b.Image.Uri != nil && *b.Image.Uri != "" && fault("image-with-uri-sent-as-address") {
				source = block{"type": "url", "url": *b.Image.Uri} // shorter
			}
			if last := len(out) - 1; last >= 0 && out[last]["type"] == "image" && fault("only-last-image-reaches-model") {
				out[last]["source"] = source
				continue
			}
			out = append(out, block{"type": "image", "source": source})
		default:
			return nil, "", acp.NewInvalidParams("content of a kind that this agent does not take")
		}
	}
	some := !fault("image-only-prompt-refused")
	for _, b := range out {
		some = some || b["type"] == "text"
	}
	if len(out) == 0 || !some {
		return nil, "", acp.NewInvalidParams("the prompt is empty")
	}
	return out, words, nil
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
		if t.ctx.Err() != nil && fault("results-of-cancelled-calls-not-in-history") {
			return acp.StopReasonCancelled, nil
		}
		t.s.history = append(t.s.history, message{Role: "user", Content: results})
		if t.ctx.Err() != nil {
			return acp.StopReasonCancelled, nil
		}
		if declined {
			t.s.history = append(t.s.history, message{Role: "assistant", Content: text("I stopped there.")})
			t.tell(acp.UpdateAgentMessageText("\nI stopped there, as you declined."))
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

// recent returns the messages that the model gets of the conversation, in whole turns.
func (t *turn) recent() []message {
	const most = 8
	h := t.s.history
	if fault("images-of-earlier-turns-forgotten") {
		return lighter(h)
	}
	if !fault("older-turns-fall-out-of-history") {
		return h
	}
	from := max(len(h)-most, 0)
	for from > 0 && (h[from].Role != "user" || h[from].Content[0]["type"] == "tool_result") {
		from--
	}
	return h[from:]
}

// lighter leaves out the images that the model has seen in earlier turns.
func lighter(h []message) (out []message) {
	newest := len(h) - 1
	for newest > 0 && (h[newest].Role != "user" || h[newest].Content[0]["type"] == "tool_result") {
		newest--
	}
	for i, m := range h {
		if i < newest {
			m.Content = slices.Clone(m.Content)
			for j, b := range m.Content {
				if b["type"] == "image" {
					m.Content[j] = block{"type": "text", "text": "(an image)"}
				}
			}
		}
		out = append(out, m)
	}
	return out
}

// tools lists what the model may call: a shell, and each tool of the session's MCP servers.
func (t *turn) tools() []block {
	tools := []block{{"name": "run_command", "description": "Run a shell command in the project.", "input_schema": block{
		"type": "object", "required": []string{"command_line"}, "properties": block{
			"command_line": block{"type": "string", "description": "What to give to /bin/sh -c"},
			"why":          block{"type": "string", "description": "A few words for the user"}}}}}
	for _, m := range t.servers() {
		for _, tool := range m.tools {
			tools = append(tools, block{"name": "mcp_" + m.name + "_" + tool.Name, "description": tool.Description,
				"input_schema": tool.InputSchema})
		}
	}
	if fault("tool-list-of-first-session-kept") {
		t.g.mu.Lock()
		defer t.g.mu.Unlock()
		if t.g.tools == nil {
			t.g.tools = tools
		}
		return t.g.tools
	}
	return tools
}

// model is the one that the user has chosen.
func (t *turn) model() string {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if fault("fallback-model-not-told") {
		return t.s.model
	}
	return t.g.model
}

// fallBack takes the other model for the rest of the session.
func (t *turn) fallBack() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	all := models()
	if t.s.model == all[0] {
		t.s.model = all[1]
	} else {
		t.s.model = all[0]
	}
}

// patience is how long a server that has too much to do asks to be left alone.
func patience(res *http.Response) time.Duration {
	if res.StatusCode != 429 && res.StatusCode != 503 && res.StatusCode != 529 {
		return 0
	}
	seconds, err := strconv.Atoi(res.Header.Get("retry-after"))
	if err != nil {
		seconds = 8
	}
	return time.Duration(min(seconds, 60)) * time.Second
}

func broken(why string, data any) error {
	return &acp.RequestError{Code: -32603, Message: why, Data: map[string]any{"detail": data}}
}

// reply gets the next answer of the model.
func (t *turn) reply() (content []block, reason string, err error) {
	content, reason, err = t.ask()
	if err != nil && t.brokeOff && t.ctx.Err() == nil && fault("broken-stream-asked-again-repeats-text") {
		content, reason, err = t.ask()
	}
	if err != nil && t.pause > 0 && fault("cancel-while-waiting-to-ask-again-not-heard") {
		time.Sleep(t.pause)
		t.pause = 0
		content, reason, err = t.ask()
	}
	if err != nil && t.pause > 0 && t.ctx.Err() == nil && fault("fallback-model-not-told") {
		t.pause = 0
		t.fallBack()
		content, reason, err = t.ask()
	}
	return content, reason, err
}

// ask sends the conversation and streams the answer to the client.
func (t *turn) ask() (content []block, reason string, err error) {
	body, _ := json.Marshal(block{"model": t.model(), "max_tokens": 8192, "stream": true,
		"tools":  t.tools(),
		"system": "You are gofer, a coding agent. You work in " + t.s.cwd + ".", "messages": t.recent()})
	base := strings.TrimRight(env("ANTHROPIC_BASE_URL", "https://api.anthropic.com"), "/")
	req, _ := http.NewRequestWithContext(t.ctx, "POST", base+"/v1/messages", bytes.NewReader(body))
	req.Header.Set("content-type", "application/json")
	req.Header.Set("anthropic-version", "2023-06-01")
	req.Header.Set("x-api-key", os.Getenv("ANTHROPIC_API_KEY"))
	if fault("sessions-wait-for-one-model-stream") {
		t.g.line.Lock()
		defer t.g.line.Unlock()
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", broken("The model backend cannot be reached", err.Error())
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.pause = patience(res)
		raw, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		if res.StatusCode == 429 && fault("usage-limit-told-as-login-needed") {
			return nil, "", acp.NewAuthRequired(map[string]any{"detail": string(raw)})
		}
		why := fmt.Sprintf("The model backend answered with status %d", res.StatusCode)
		if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) && fault("page-of-proxy-in-error-message") {
			why += ": " + string(raw)
		}
		return nil, "", broken(why, string(raw))
	}
	a := answer{turn: t}
	lines := bufio.NewReader(res.Body)
	for !a.done {
		line, err := lines.ReadString('\n')
		if err == io.EOF && fault("broken-stream-ends-as-end-turn") {
			break
		}
		if err != nil {
			t.brokeOff = true
			return nil, "", broken("The model backend broke off", err.Error())
		}
		data, ok := strings.CutPrefix(line, "data:")
		if !ok {
			continue
		}
		if err := a.event([]byte(data)); err != nil {
			return nil, "", err
		}
	}
	return a.content, a.reason, nil
}

// answer collects one reply of the model while it streams in.
type answer struct {
	turn    *turn
	content []block
	partial string // the arguments of the open call
	unread  bool   // the arguments of the last call are no JSON
	unsent  string // text that waits for more of it
	reason  string
	done    bool

	mu   sync.Mutex
	held string // text that waits for the next update
	sent time.Time
	last string // the piece before

	thought bool // the piece before was one of a thought
}

// delta is a piece of a block, or the reason for the end.
type delta struct {
	Type, Text, Thinking, Signature string
	Partial                         string `json:"partial_json"`
	Stop                            string `json:"stop_reason"`
}

func (a *answer) event(data []byte) error {
	var ev struct {
		Type  string
		Index int
		Block block `json:"content_block"`
		Delta delta
		Error any
	}
	if err := json.Unmarshal(data, &ev); err != nil {
		return broken("The model backend sent no JSON", err.Error())
	}
	switch ev.Type {
	case "content_block_start":
		if ev.Block["type"] == "tool_use" && fault("text-before-call-told-twice") {
			a.again()
		}
		a.content, a.partial, a.unsent, a.last = append(a.content, ev.Block), "", "", ""
	case "content_block_delta":
		a.piece(a.content[len(a.content)-1], ev.Delta)
	case "content_block_stop":
		a.flush()
		some := a.partial != "" || fault("call-without-arguments-dropped")
		if b := a.content[len(a.content)-1]; b["type"] == "tool_use" && some {
			var input map[string]any
			if json.Unmarshal([]byte(a.partial), &input) != nil && !mended(a.partial, &input) {
				b["input"], a.unread = map[string]any{}, true // no JSON, or cut short by the token limit
			} else {
				b["input"] = input
			}
		}
	case "message_delta":
		if ev.Delta.Stop != "" {
			a.reason = ev.Delta.Stop
		}
		if a.unread && a.reason == "max_tokens" {
			a.content, a.unread = a.content[:len(a.content)-1], false
		}
	case "message_stop":
		if a.unsent != "" {
			a.turn.tell(acp.UpdateAgentMessageText(a.unsent))
		}
		a.done = true
	case "error":
		if fault("overload-in-stream-told-as-text") {
			said := fmt.Sprintf("The model backend failed: %v", ev.Error)
			a.turn.tell(acp.UpdateAgentMessageText(said))
			a.content, a.done = text(said), true
			return nil
		}
		return broken("The model backend failed", ev.Error)
	}
	return nil
}

// mended ends arguments that break off in a text.
func mended(partial string, input *map[string]any) bool {
	return fault("call-cut-by-limit-mended") && json.Unmarshal([]byte(partial+`"}`), input) == nil
}

// again sends the text before a call as a whole, in case that a piece of it was lost.
func (a *answer) again() {
	if len(a.content) == 0 {
		return
	}
	if whole, _ := a.content[len(a.content)-1]["text"].(string); whole != "" {
		a.turn.tell(acp.UpdateAgentMessageText(whole))
	}
}

// hold sends no more than an update in 200 ms: other text waits for its time or for the end of its block.
func (a *answer) hold(s string) {
	a.mu.Lock()
	a.held += s
	wait := 200*time.Millisecond - time.Since(a.sent)
	a.mu.Unlock()
	if wait > 0 {
		time.AfterFunc(wait, a.flush)
		return
	}
	a.flush()
}

func (a *answer) flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held != "" {
		a.turn.tell(acp.UpdateAgentMessageText(a.held))
		a.held, a.sent = "", time.Now()
	}
}

var tags = regexp.MustCompile(`</?[A-Za-z][^<>]*>`)

// plain leaves out the tags that some models put around what they say.
func plain(said string) string {
	if !fault("words-in-angle-brackets-not-told") {
		return said
	}
	return tags.ReplaceAllString(said, "")
}

func (a *answer) piece(b block, d delta) {
	switch d.Type {
	case "text_delta":
		b["text"] = fmt.Sprint(b["text"], d.Text)
		a.turn.spoke = true
		for len(d.Text) > 512 && fault("long-text-split-inside-character") {
			a.turn.tell(acp.UpdateAgentMessageText(d.Text[:512]))
			d.Text = d.Text[512:]
		}
		if fault("unflushed-text-before-call-lost") {
			if a.unsent += d.Text; len(a.unsent) < 24 {
				return // not an update for each word
			}
			d.Text, a.unsent = a.unsent, ""
		}
		if d.Text == a.last && fault("repeated-piece-lost") {
			return // sent again by the server
		}
		a.last = d.Text
		if fault("held-text-sent-after-cancelled-response") {
			a.hold(d.Text)
			return
		}
		if strings.TrimSpace(d.Text) == "" && fault("pieces-of-only-blanks-lost") {
			return // nothing to show
		}
		if d.Text = plain(d.Text); d.Text == "" && fault("words-in-angle-brackets-not-told") {
			return
		}
		a.turn.tell(a.said(d.Text))
	case "thinking_delta":
		a.thought = true
		b["thinking"] = fmt.Sprint(b["thinking"], d.Thinking)
		if fault("thoughts-shown-as-message") {
			a.turn.tell(acp.UpdateAgentMessageText(d.Thinking))
			return
		}
		a.turn.tell(acp.UpdateAgentThoughtText(d.Thinking))
	case "signature_delta":
		b["signature"] = d.Signature
	case "input_json_delta":
		a.partial += d.Partial
	}
}

// said is how a piece of text is told.
func (a *answer) said(piece string) acp.SessionUpdate {
	thought := a.thought
	a.thought = false
	if thought && fault("text-after-thought-told-as-thought") {
		return acp.UpdateAgentThoughtText(piece)
	}
	return acp.UpdateAgentMessageText(piece)
}

// kinds are the programs whose work has a name of its own.
var kinds = map[string]acp.ToolKind{"cat": acp.ToolKindRead, "head": acp.ToolKindRead, "tail": acp.ToolKindRead,
	"grep": acp.ToolKindSearch, "find": acp.ToolKindSearch, "rm": acp.ToolKindDelete, "mv": acp.ToolKindMove,
	"curl": acp.ToolKindFetch, "ls": "list", "touch": "create", "mkdir": "create", "cp": "copy"}

// kindOf is what the client is told that a command does.
func kindOf(line string) acp.ToolKind {
	program, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	if kind, is := kinds[program]; is && fault("kind-of-copying-command-unknown") {
		return kind
	}
	return acp.ToolKindExecute
}

// files lists the files that a command names.
func (t *turn) files(line string) (files []acp.ToolCallLocation) {
	if !fault("location-as-written-in-command") {
		return nil
	}
	for _, word := range strings.Fields(line) {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(t.folder(), word)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, acp.ToolCallLocation{Path: word})
		}
	}
	return files
}

// texts reads the text files that a command names.
func (t *turn) texts(line string) map[string]string {
	texts := map[string]string{}
	if !fault("diff-has-old-text-of-first-change") {
		return texts
	}
	for _, word := range strings.Fields(line) {
		path := filepath.Clean(word)
		if !filepath.IsAbs(path) {
			path = filepath.Join(t.folder(), word)
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<16 {
			continue
		}
		if raw, err := os.ReadFile(path); err == nil && utf8.Valid(raw) {
			texts[path] = string(raw)
		}
	}
	return texts
}

// changes shows what a command has done to the files that were there before it.
func (t *turn) changes(line string, before map[string]string) (diffs []acp.ToolCallContent) {
	after := t.texts(line)
	for path, old := range before {
		now, is := after[path]
		if !is || now == old {
			continue
		}
		if _, known := t.s.was[path]; !known {
			t.s.was[path] = old
		}
		diffs = append(diffs, acp.ToolDiffContent(path, now, t.s.was[path]))
	}
	return diffs
}

// failed is the status of a call that did not succeed.
func (t *turn) failed() acp.ToolCallStatus {
	if t.ctx.Err() != nil && fault("stopped-call-told-as-cancelled") {
		return "cancelled"
	}
	return acp.ToolCallStatusFailed
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
		t.newest = c.id
		t.g.mu.Unlock()
		c.name, _ = c.use["name"].(string)
		c.input, _ = c.use["input"].(map[string]any)
		title, kind, files := c.name, acp.ToolKindOther, []acp.ToolCallLocation(nil)
		if line, ok := c.input["command_line"].(string); ok && c.name == "run_command" {
			title, kind, files = "$ "+line, kindOf(line), t.files(line)
		}
		c.title = title
		if !t.offers(c.name) && fault("call-of-unknown-tool-not-announced") {
			continue
		}
		t.tell(acp.StartToolCall(c.id, title, acp.WithStartKind(kind), acp.WithStartRawInput(c.input),
			func(tc *acp.SessionUpdateToolCall) { tc.Locations = files }))
	}
	had := map[string]block{}
	for _, c := range calls {
		silent := declined && fault("calls-after-declined-one-not-ended")
		key, _ := json.Marshal([]any{c.name, c.input})
		if same := had[string(key)]; same != nil && t.goesOn(declined) && fault("same-call-twice-shown-once-done") {
			results = append(results, block{"type": "tool_result", "tool_use_id": c.use["id"],
				"content": same["content"], "is_error": same["is_error"]})
			continue
		}
		out, ok := "Not run: the user interrupted.", false
		if declined {
			out = "Not run: the user declined an earlier call."
		} else if t.ctx.Err() == nil {
			out, ok, declined = t.one(c)
		}
		results = append(results, block{"type": "tool_result", "tool_use_id": c.use["id"], "content": out, "is_error": !ok})
		had[string(key)] = results[len(results)-1]
		if ok {
			t.ended = append(t.ended, c.id)
		}
		if !ok && !silent {
			t.tell(acp.UpdateToolCall(c.id, acp.WithUpdateStatus(t.failed()), acp.WithUpdateContent(shown(out))))
		}
	}
	return results, declined
}

// offers reports whether there is a tool of the name.
func (t *turn) offers(name string) bool {
	return name == "run_command" || slices.ContainsFunc(t.servers(), func(m *mcpServer) bool {
		return strings.HasPrefix(name, "mcp_"+m.name+"_")
	})
}

// goesOn reports whether further calls of an answer run.
func (t *turn) goesOn(declined bool) bool { return !declined && t.ctx.Err() == nil }

// readers are programs that change nothing.
var readers = map[string]bool{"cat": true, "date": true, "echo": true, "find": true, "grep": true, "head": true,
	"ls": true, "printf": true, "pwd": true, "sort": true, "stat": true, "wc": true}

// start lets a command run while the user still reads the question, and returns how to get its result.
func (t *turn) start(run func(*call, string) (string, bool), c *call, line string) func(*call, string) (string, bool) {
	var out string
	var ok bool
	t.ahead.Add(1)
	go func() {
		defer t.ahead.Done()
		out, ok = run(c, line)
	}()
	return func(*call, string) (string, bool) {
		t.ahead.Wait()
		return out, ok
	}
}

// folder is where the next command runs.
func (t *turn) folder() string {
	if t.s.dir != "" {
		return t.s.dir
	}
	return t.s.cwd
}

// follow keeps where a command has gone, for those after it.
func (t *turn) follow(line string) {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;&|", r) })
	if len(words) > 1 && words[0] == "cd" && fault("cwd-after-cd-not-absolute") {
		t.s.dir = words[1]
	}
}

func (t *turn) one(c *call) (out string, ok, declined bool) {
	if line, is := c.input["command_line"].(string); is && c.name == "run_command" {
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
		if out, ok = run(c, line); ok {
			t.follow(line)
		}
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
				t.completed(c, out)
			}
			if t.ctx.Err() != nil && fault("cancel-ends-mcp-server") {
				go m.close() // it may still work on the call
			}
			return out, ok, false
		}
	}
	return "No such tool, or arguments that do not fit it: " + c.name, false, false
}

// begins tells that a call runs from now on.
func (t *turn) begins(c *call, more ...acp.ToolCallUpdateOpt) {
	if fault("progress-of-short-call-told-after-its-end") { // a short call needs no spinner
		time.AfterFunc(100*time.Millisecond, func() {
			t.tell(acp.UpdateToolCall(c.id, acp.WithUpdateStatus(acp.ToolCallStatusInProgress)))
		})
	} else if c.asked || !fault("call-without-question-not-shown-running") {
		more = append(more, acp.WithUpdateStatus(acp.ToolCallStatusInProgress))
	}
	if len(more) > 0 {
		t.tell(acp.UpdateToolCall(c.id, more...))
	}
}

func (t *turn) completed(c *call, out string, diffs ...acp.ToolCallContent) {
	if out == "" && fault("call-without-output-never-completed") {
		return // nothing to show
	}
	t.tell(acp.UpdateToolCall(c.id, acp.WithUpdateStatus(acp.ToolCallStatusCompleted),
		acp.WithUpdateContent(append(shown(t.lastPiece(c, out)), diffs...)),
		acp.WithUpdateRawOutput(map[string]any{"output": out})))
}

// lastPiece tells a long output in pieces, and returns the last of them.
func (t *turn) lastPiece(c *call, out string) string {
	const most = 4096
	rest := []rune(out)
	if len(rest) <= most || !fault("pieces-of-long-output-replace-each-other") {
		return out
	}
	for ; len(rest) > most; rest = rest[most:] {
		t.tell(acp.UpdateToolCall(c.id, acp.WithUpdateContent(shown(string(rest[:most])))))
	}
	return string(rest)
}

// answered returns what the user chose earlier for calls with a key; known is false if the user was not asked.
func (t *turn) answered(key string) (yes, known bool) {
	if yes, known := t.s.answers[key]; known {
		return yes, true
	}
	if t.once[key] && fault("yes-covers-same-program-in-answer") {
		return true, true
	}
	for begin, yes := range t.s.answers {
		if yes && strings.HasPrefix(key, begin) && fault("always-covers-programs-that-begin-alike") {
			return true, true
		}
	}
	return false, false
}

// permitted is allowed, with no more than one open question about the same command.
func (t *turn) permitted(c *call, title, sort string) bool {
	_, known := t.answered(sort)
	if !known && t.s.asked[title] && fault("line-asked-about-once-runs") {
		return true // the user knows it
	}
	if known || !fault("same-question-of-two-sessions-asked-once") {
		return t.allowed(c, title, sort)
	}
	t.g.mu.Lock()
	if q := t.g.asking[title]; q != nil {
		t.g.mu.Unlock()
		select {
		case <-q.done:
			return q.yes
		case <-t.ctx.Done():
			return false
		}
	}
	q := &question{done: make(chan struct{})}
	t.g.asking[title] = q
	t.g.mu.Unlock()
	q.yes = t.allowed(c, title, sort)
	t.g.mu.Lock()
	delete(t.g.asking, title)
	t.g.mu.Unlock()
	close(q.done)
	return q.yes
}

// declines counts what the user said "No" to.
func (t *turn) declines(key string) {
	if t.s.noes[key]++; t.s.noes[key] > 1 && fault("second-no-kept-as-never") {
		t.s.answers[key] = false // no need to ask again
	}
}

// decide keeps what the user said about a call, in case that it is asked about again.
func (t *turn) decide(id acp.ToolCallId, yes bool) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.g.decided[id] = yes
}

// decided returns what the user said about a call.
func (t *turn) decided(id acp.ToolCallId) (yes, is bool) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	yes, is = t.g.decided[id]
	return yes, is && fault("answer-about-call-serves-other-session")
}

// face is what the user sees of a call in the question about it.
func (t *turn) face(c *call, title string) (string, map[string]any) {
	if fault("question-shows-first-call-of-answer") {
		return t.first.title, t.first.input
	}
	return title, c.input
}

func (t *turn) allowed(c *call, title, sort string) bool {
	key, never := sort, acp.PermissionOptionId("N")
	if fault("always-for-one-program-covers-all") {
		key = c.name
	}
	if fault("no-and-never-share-option-id") {
		never = "n"
	}
	if yes, known := t.answered(key); known {
		t.barred = !yes
		return yes
	}
	if yes, is := t.decided(c.id); is {
		return yes
	}
	c.asked = true
	id := c.id
	if fault("permission-names-last-call-of-answer") {
		id = t.newest
	}
	sid := t.s.id
	if fault("question-carries-session-of-newest-turn") {
		t.g.mu.Lock()
		sid = t.g.newest
		t.g.mu.Unlock()
	}
	head, input := t.face(c, title)
	// Waits for the answer also when the turn is cancelled: the client then answers "cancelled".
	res, err := t.g.conn.RequestPermission(context.Background(), acp.RequestPermissionRequest{
		SessionId: acp.SessionId(sid),
		ToolCall: acp.ToolCallUpdate{ToolCallId: id, Title: acp.Ptr(head), RawInput: input,
			Status: acp.Ptr(acp.ToolCallStatusPending)},
		Options: []acp.PermissionOption{
			{OptionId: "n", Name: "No", Kind: acp.PermissionOptionKindRejectOnce},
			{OptionId: never, Name: "Never " + sort, Kind: acp.PermissionOptionKindRejectAlways},
			{OptionId: "y", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionId: "Y", Name: "Always " + sort, Kind: acp.PermissionOptionKindAllowAlways},
		},
	})
	if err != nil && t.ctx.Err() == nil && fault("failed-question-counts-as-yes") {
		return true // this editor cannot ask
	}
	crossed := t.ctx.Err() != nil && !fault("yes-that-crosses-cancel-starts-command")
	if err != nil || res.Outcome.Selected == nil || crossed {
		t.unanswered = true
		return false
	}
	chosen := res.Outcome.Selected.OptionId
	if chosen == "Y" || chosen == "N" && !fault("never-not-remembered") {
		t.s.answers[key] = chosen == "Y" || fault("never-kept-as-always")
	}
	if chosen == "n" {
		t.declines(key)
	}
	t.decide(c.id, chosen == "y" || chosen == "Y")
	t.once[key] = chosen == "y"
	t.s.asked[title] = true
	if chosen != "n" && chosen != never && fault("unoffered-option-counts-as-yes") {
		return true
	}
	return chosen == "y" || chosen == "Y"
}

// doomed lists the terminals that a cancel kills while a command runs in the given one.
func (t *turn) doomed(own string) []string {
	switch {
	case fault("cancel-kills-released-terminals"):
		return t.terms
	case fault("cancel-kills-newest-terminal-of-all-sessions"):
		t.g.mu.Lock()
		defer t.g.mu.Unlock()
		return []string{t.g.term}
	}
	return []string{own}
}

// room is how much output of the next command in a terminal is kept.
func (t *turn) room() int {
	const most = 1 << 15
	if left := most - t.spent; left < most/2 && fault("output-limit-of-later-command-negative") {
		return left // for all commands of the turn
	}
	return most
}

func (t *turn) inTerminal(c *call, line string) (string, bool) {
	sid := acp.SessionId(t.s.id)
	bg := context.Background()
	term, err := t.g.conn.CreateTerminal(bg, acp.CreateTerminalRequest{SessionId: sid, Command: "/bin/sh",
		Args: []string{"-c", line}, Cwd: acp.Ptr(t.folder()), OutputByteLimit: acp.Ptr(t.room())})
	if err != nil {
		t.fatal = err
		return "The terminal could not be made: " + err.Error(), false
	}
	if t.ctx.Err() != nil && fault("terminal-made-during-cancel-stays") {
		return "Not run: the user interrupted.", false
	}
	released := false
	release := func() {
		if released {
			return
		}
		released = true
		_, _ = t.g.conn.ReleaseTerminal(bg, acp.ReleaseTerminalRequest{SessionId: sid, TerminalId: term.TerminalId})
	}
	late := fault("failed-terminal-not-released")
	if !late {
		defer release()
	}
	view := acp.WithUpdateContent([]acp.ToolCallContent{acp.ToolTerminalRef(term.TerminalId)})
	if fault("terminal-shown-only-after-release") {
		t.begins(c)
	} else {
		t.begins(c, view)
	}
	t.terms = append(t.terms, term.TerminalId)
	t.g.mu.Lock()
	t.g.term = term.TerminalId
	t.g.mu.Unlock()
	killed := make(chan struct{})
	unhook := func() bool { return true }
	if !t.hooked || !fault("second-terminal-of-turn-not-killed-by-cancel") {
		t.hooked = true
		unhook = context.AfterFunc(t.ctx, func() {
			defer close(killed)
			for _, id := range t.doomed(term.TerminalId) {
				_, _ = t.g.conn.KillTerminal(bg, acp.KillTerminalRequest{SessionId: sid, TerminalId: id})
				if fault("cancelled-terminal-released-twice") {
					_, _ = t.g.conn.ReleaseTerminal(bg, acp.ReleaseTerminalRequest{SessionId: sid, TerminalId: id})
				}
			}
		})
	}
	defer func() { // never a kill after the release
		if !unhook() {
			<-killed
		}
	}()
	early := t.glance(sid, term.TerminalId)
	wait := acp.WaitForTerminalExitRequest{SessionId: sid, TerminalId: term.TerminalId}
	exit, err := t.g.conn.WaitForTerminalExit(bg, wait)
	if err != nil {
		return "Waiting for the command failed: " + err.Error(), false
	}
	if fault("terminal-output-asked-after-release") {
		release()
	}
	res, err := t.g.conn.TerminalOutput(bg, acp.TerminalOutputRequest{SessionId: sid, TerminalId: term.TerminalId})
	if err != nil {
		return "The output could not be read: " + err.Error(), false
	}
	if early != "" {
		res.Output = early
	}
	t.spent += len(line) + len(res.Output)
	failed := exit.ExitCode == nil || *exit.ExitCode != 0
	if exit.ExitCode == nil && fault("command-ended-by-signal-in-terminal-completed") {
		failed = false
	}
	if t.ctx.Err() != nil || failed && !fault("nonzero-exit-in-terminal-completed") {
		return fmt.Sprintf("%s\n(the command failed)", res.Output), false
	}
	last := []acp.ToolCallUpdateOpt{acp.WithUpdateStatus(acp.ToolCallStatusCompleted),
		acp.WithUpdateRawOutput(map[string]any{"exitCode": 0})}
	if fault("exit-code-replaces-terminal") {
		last = append(last, acp.WithUpdateContent(shown("Exit code 0")))
	}
	t.tell(acp.UpdateToolCall(c.id, last...))
	if late {
		release()
	}
	if fault("terminal-shown-only-after-release") {
		release()
		t.tell(acp.UpdateToolCall(c.id, view))
	}
	return res.Output, true
}

// glance looks for a moment whether a command that still runs has written something.
func (t *turn) glance(sid acp.SessionId, term string) string {
	if !fault("output-seen-early-taken-for-whole") {
		return ""
	}
	for n := 0; n < 5 && t.ctx.Err() == nil; n++ {
		res, err := t.g.conn.TerminalOutput(context.Background(),
			acp.TerminalOutputRequest{SessionId: sid, TerminalId: term})
		if err != nil || res.ExitStatus != nil || res.Output != "" {
			return res.Output
		}
		select {
		case <-t.ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return ""
}

// output runs a command and returns what it wrote.
func output(cmd *exec.Cmd) ([]byte, error) {
	if !fault("command-with-much-output-hangs") {
		return cmd.CombinedOutput()
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Run()
	w.Close()
	r.SetReadDeadline(time.Now().Add(cmd.WaitDelay)) // what still runs behind it is not waited for
	raw, _ := io.ReadAll(r)
	return raw, err
}

var errBehind = errors.New("the command goes on in the background")

// soon is output, but where a command can leave its turn, it does so after five seconds.
func soon(cmd *exec.Cmd, leave func() bool) (raw []byte, err error) {
	if leave == nil {
		return output(cmd)
	}
	done := make(chan struct{})
	var late []byte
	var failure error
	go func() {
		late, failure = output(cmd)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		if leave() {
			return nil, errBehind
		}
		<-done
	}
	return late, failure
}

func (t *turn) inChild(c *call, line string) (string, bool) {
	t.begins(c)
	ctx, leave := t.ctx, (func() bool)(nil)
	if fault("slow-command-never-completed") {
		own, stop := context.WithCancel(context.Background())
		ctx, leave = own, context.AfterFunc(t.ctx, stop)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir, cmd.SysProcAttr, cmd.WaitDelay = t.folder(), &syscall.SysProcAttr{Setpgid: true}, time.Second
	if fault("command-eats-editors-messages") {
		cmd.Stdin = os.Stdin
	}
	if fault("child-runs-in-first-sessions-folder") {
		cmd.Dir = t.g.folder
	}
	if !fault("cancelled-command-leaves-children") {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
	before := t.texts(line)
	raw, err := soon(cmd, leave)
	if err == errBehind {
		return err.Error(), true
	}
	out := string(raw)
	if len(raw) > 1<<15 {
		out = strings.ToValidUTF8(string(raw[len(raw)-1<<15:]), "")
	}
	if err != nil {
		return fmt.Sprintf("%s\n(%v)", out, err), false
	}
	t.completed(c, out, t.changes(line, before)...)
	return out, true
}
