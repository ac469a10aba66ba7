package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

func env(name, or string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return or
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

// tools returns the tools for the model: a shell, and the tools of the session's MCP servers.
func (t *turn) tools() []block {
	tools := []block{{"name": "run_command", "description": "Run a shell command in the project.", "input_schema": block{
		"type": "object", "required": []string{"command_line"}, "properties": block{
			"command_line": block{"type": "string", "description": "What to give to /bin/sh -c"},
			"why":          block{"type": "string", "description": "A few words for the user"}}}}}
	for _, m := range t.servers() {
		for _, tool := range m.tools {
			tools = append(tools, block{"name": m.prefix() + tool.Name, "description": tool.Description,
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
	if own() {
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
	defer func() { t.withdraw(content, err) }()
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
		"system": "You are gofer, a coding agent. You work in " + t.s.cwd + "." + t.also(), "messages": t.recent()})
	a, ctx := answer{turn: t}, t.ctx
	if fault("message-ids-begin-anew-after-load") {
		t.s.messages++
	}
	defer a.hush()
	if fault("cancel-during-thought-waits-for-its-end") {
		own, stop := context.WithCancel(context.Background())
		defer stop()
		defer a.think(false)
		defer context.AfterFunc(t.ctx, func() {
			a.mind.Lock() // a thought without its signature is of no use
			defer a.mind.Unlock()
			stop()
		})()
		ctx = own
	}
	base := strings.TrimRight(env("ANTHROPIC_BASE_URL", "https://api.anthropic.com"), "/")
	req, _ := http.NewRequestWithContext(ctx, "POST", base+"/v1/messages", bytes.NewReader(body))
	req.Header.Set("content-type", "application/json")
	req.Header.Set("anthropic-version", "2023-06-01")
	req.Header.Set("x-api-key", apiKey())
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
		t.pause, t.refused = patience(res), true
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
