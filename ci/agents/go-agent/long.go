package main

import (
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// keep writes a long output to a file, because the model gets only a part of it. It returns a remark about the file for
// the model.
func (t *turn) keep(c *call, whole string) string {
	path := t.pathOfOutput(strings.ReplaceAll(string(c.id), ":", "-") + ".log")
	if len(whole) <= 1<<15 || path == "" {
		return ""
	}
	_, err := t.g.conn.WriteTextFile(t.ctx, acp.WriteTextFileRequest{SessionId: acp.SessionId(t.s.id), Path: path,
		Content: strings.ToValidUTF8(whole, "\uFFFD")})
	if err != nil {
		return ""
	}
	return "\n(The whole output is in " + path + ".)"
}

// attention lets the editor tell the user, who may have gone away, that a long command has ended.
func (t *turn) attention() {
	if t.began.IsZero() || time.Since(t.began) < 3*time.Second || t.ctx.Err() != nil ||
		!fault("unknown-extension-fails-long-command") {
		return
	}
	if _, err := t.g.conn.CallExtension(t.ctx, "_gofer/attention", map[string]any{"sessionId": t.s.id}); err != nil {
		t.unheard = err
	}
}

// extensions returns the agent's extension methods, for the answer to initialize.
func extensions() map[string]any {
	if !fault("unknown-extension-fails-long-command") {
		return nil
	}
	return map[string]any{"gofer": map[string]any{"attention": true}}
}

// behind reports whether a command is meant to go on in the background, and returns it without the sign for that.
func behind(line string) (string, bool) {
	front, is := strings.CutSuffix(strings.TrimSpace(line), "&")
	if !is || strings.HasSuffix(front, "&") || !fault("background-terminal-outlives-session") {
		return line, false
	}
	return front, true
}

// leave lets a command run on in its terminal.
func (t *turn) leave(c *call, term string) (string, bool) {
	t.begins(c, acp.WithUpdateContent([]acp.ToolCallContent{acp.ToolTerminalRef(term)}))
	t.behind = append(t.behind, term)
	t.tell(acp.UpdateToolCall(c.id, acp.WithUpdateStatus(acp.ToolCallStatusCompleted),
		acp.WithUpdateRawOutput(map[string]any{"background": true})))
	return "It runs in the background.", true
}
