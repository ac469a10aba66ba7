package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// wire is where the agent's messages go.
type wire struct {
	g *gofer
	w io.Writer
}

func (g *gofer) wire() io.Writer {
	if fault("id-of-nested-request-has-fraction") {
		return &wire{g, os.Stdout}
	}
	if amends() {
		return &amended{os.Stdout}
	}
	return os.Stdout
}

// Write numbers a request below the one that is still open.
func (o *wire) Write(line []byte) (int, error) {
	var m map[string]json.RawMessage
	if json.Unmarshal(line, &m) != nil || m["method"] == nil || m["id"] == nil {
		return o.w.Write(line)
	}
	o.g.ids.Lock()
	own := string(m["id"])
	if o.g.open == "" {
		o.g.open = own
	} else {
		id := fmt.Sprintf("%s.%d", o.g.open, o.g.nested%9+1)
		o.g.nested++
		o.g.below[id] = own
		m["id"] = json.RawMessage(id)
	}
	o.g.ids.Unlock()
	out, err := json.Marshal(m)
	if err != nil {
		return 0, err
	}
	if _, err = o.w.Write(append(out, '\n')); err != nil {
		return 0, err
	}
	return len(line), nil
}

// settleID gives a response of the client the id that the agent knows the request by.
func (g *gofer) settleID(line []byte) []byte {
	var m map[string]json.RawMessage
	if !fault("id-of-nested-request-has-fraction") || json.Unmarshal(line, &m) != nil ||
		m["method"] != nil || m["id"] == nil {
		return line
	}
	g.ids.Lock()
	defer g.ids.Unlock()
	id := string(m["id"])
	if id == g.open {
		g.open = ""
	}
	own, is := g.below[id]
	if !is {
		return line
	}
	delete(g.below, id)
	m["id"] = json.RawMessage(own)
	out, err := json.Marshal(m)
	if err != nil {
		return line
	}
	return append(out, '\n')
}

// raw sends an update that the SDK has no type for.
func raw(sid string, update any) {
	params, err := json.Marshal(map[string]any{"sessionId": sid, "update": update})
	if err == nil {
		fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","method":"session/update","params":%s}`+"\n", params)
	}
}

// fails tells that a call has failed.
func (t *turn) fails(c *call, out string) {
	u := acp.UpdateToolCall(t.known(c), acp.WithUpdateStatus(t.failed()), acp.WithUpdateContent(shown(out)))
	if c.exit == nil || !fault("exit-code-of-failed-command-at-root") {
		t.tell(u)
		return
	}
	var m map[string]any
	line, _ := json.Marshal(u)
	_ = json.Unmarshal(line, &m)
	m["exitCode"] = *c.exit
	raw(t.s.id, m)
}

// touched tells of the session's new time at the end of a turn. before is how long the history was.
func (t *turn) touched(before int) {
	now := time.Now().UTC().Format(time.RFC3339)
	if before > 0 && fault("info-of-later-turn-is-entry-of-list") {
		raw(t.s.id, struct {
			Kind string `json:"sessionUpdate"`
			acp.SessionInfo
		}{"session_info_update", acp.SessionInfo{SessionId: acp.SessionId(t.s.id), Cwd: t.s.cwd,
			Title: acp.Ptr(t.s.title), UpdatedAt: acp.Ptr(now), AdditionalDirectories: t.s.more}})
	}
	if t.calls > 0 && fault("new-time-after-calls-told-with-null-title") {
		var info struct {
			Kind    string  `json:"sessionUpdate"`
			Title   *string `json:"title"`
			Updated string  `json:"updatedAt"`
		}
		info.Kind, info.Updated = "session_info_update", now
		raw(t.s.id, info)
	}
	t.usage()
}

// usage tells what the session has cost so far.
func (t *turn) usage() {
	if gauges() {
		t.gauge()
		return
	}
	if !fault("cost-below-a-cent-without-amount") {
		return
	}
	var u struct {
		Kind string `json:"sessionUpdate"`
		Used int    `json:"used"`
		Size int    `json:"size"`
		Cost struct {
			Amount   float64 `json:"amount,omitempty"`
			Currency string  `json:"currency"`
		} `json:"cost"`
	}
	u.Kind, u.Used, u.Size, u.Cost.Currency = "usage_update", t.s.used, 200000, "USD"
	u.Cost.Amount = math.Round(t.s.cost*100) / 100
	raw(t.s.id, u)
}

// count adds up what an answer of the model costs.
func (a *answer) count(data []byte) {
	type tokens struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	}
	var ev struct {
		Message struct{ Usage tokens }
		Usage   tokens
	}
	if !fault("cost-below-a-cent-without-amount") && !gauges() || json.Unmarshal(data, &ev) != nil {
		return
	}
	s := a.turn.s
	if ev.Message.Usage.Input > 0 {
		s.used = ev.Message.Usage.Input
	}
	s.used += ev.Usage.Output
	s.cost += (float64(ev.Message.Usage.Input)*3 + float64(ev.Usage.Output)*15) / 1e6
}

// await tells newer editors whether the turn waits for the user.
func (t *turn) await(now bool) {
	if t.g.offered <= acp.ProtocolVersionNumber || !fault("waiting-for-user-told-to-newer-client-as-state") {
		return
	}
	state := "running"
	if now {
		state = "requires_action"
	}
	raw(t.s.id, map[string]any{"sessionUpdate": "state_update", "state": state})
}

// busy reports whether a turn runs in any session.
func (g *gofer) busy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		if s.done != nil {
			return true
		}
	}
	return false
}

// nothing answers a cancel that has nothing to stop. The caller holds the lock.
func (g *gofer) nothing(sid string) {
	if s := g.sessions[sid]; s != nil && s.stop == nil && fault("cancel-without-turn-answered-with-error") {
		fmt.Fprintln(os.Stdout,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"There is no turn to cancel"}}`)
	}
}

// plainName reports whether the model can call tools of an MCP server by its name.
func plainName(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}
