package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/refagent/mutation"
	"github.com/acp-test/acp-test/refagent/webagent"
)

// Hooks returns new hooks for one run of an ACP agent.
func (f Fault) Hooks() refagent.Hooks {
	var h refagent.Hooks
	if f.acp != nil {
		h = f.acp()
	}
	if !f.Mutation.Empty() {
		(&tap{player: f.Mutation.Player()}).install(&h)
	}
	return h
}

// tap applies a mutation to both directions of one connection. One lock guards both.
type tap struct {
	mu     sync.Mutex
	player *mutation.Player
	port   *refagent.Port
}

func (t *tap) install(h *refagent.Hooks) {
	h.Start = func(p *refagent.Port) {
		t.port = p
		t.deliver(t.play(t.player.Begin))
	}
	h.Receive = func(_ *refagent.Port, line []byte) {
		t.deliver(t.play(func() []mutation.Output { return t.player.Play(mutation.Client, line, nil) }))
	}
	h.Send = func(_ *refagent.Port, f refagent.Frame) {
		lines := t.play(func() []mutation.Output { return t.player.PlayMessage(mutation.Agent, f.Message, nil) })
		if len(lines) > 0 { // in a goroutine, because the agent holds locks while it sends
			t.port.After(0, func() { t.deliver(lines) })
		}
	}
	h.End = func(context.Context) { t.play(t.player.End) }
}

// play calls do, carries out the player's outputs, and returns the lines to deliver to the agent.
func (t *tap) play(do func() []mutation.Output) (lines [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, out := range do() {
		switch {
		case out.Exit:
			t.port.Exit()
		case out.Wait != nil:
			t.port.After(out.Delay, func() {
				t.deliver(t.play(func() []mutation.Output { return t.player.Wake(out.Wait) }))
			})
		case out.To == mutation.Agent && out.Raw != nil:
			lines = append(lines, bytes.Clone(out.Raw))
		case out.To == mutation.Agent:
			lines = append(lines, bytes.TrimSpace(out.Message.Encode()))
		case out.Message != nil:
			t.port.Emit(out.Message)
		default:
			t.port.Write(out.Raw)
		}
	}
	return lines
}

func (t *tap) deliver(lines [][]byte) {
	for _, line := range lines {
		t.port.Deliver(line)
	}
}

// Web returns new hooks for one AG-UI server.
func (f Fault) Web() webagent.Hooks {
	var h webagent.Hooks
	if f.web != nil {
		h = f.web()
	}
	if f.Mutation.Empty() {
		return h
	}
	h.Parse = func(body []byte, in *webagent.Input, err error) (*webagent.Input, error) {
		if err != nil {
			return in, err
		}
		player := f.Mutation.Player()
		whole := mutation.Decode(body)
		whole["type"] = "RunAgentInput"
		for _, out := range player.PlayMessage(mutation.Client, whole, nil) {
			in, err = webagent.Parse(out.Message.Encode())
		}
		if in != nil {
			in.Notes["player"] = player
		}
		return in, err
	}
	h.Send = func(p *webagent.Port, e webagent.Event) {
		raw, err := json.Marshal(e)
		if err != nil {
			return // the server reports the error when it writes the event
		}
		web(p, player(p).PlayMessage(mutation.Agent, mutation.Decode(raw), nil))
	}
	h.End = func(p *webagent.Port) { web(p, player(p).End()) }
	return h
}

// player returns the mutation's player for a run.
func player(p *webagent.Port) *mutation.Player {
	made, _ := p.Input.Notes["player"].(*mutation.Player)
	return made
}

// web carries out the outputs of a player: it sends, writes or breaks off.
func web(p *webagent.Port, list []mutation.Output) {
	for _, out := range list {
		switch {
		case out.Exit:
			p.Break()
		case out.Message != nil:
			p.Emit(webagent.Event(out.Message))
		default:
			p.Write(string(out.Raw))
		}
	}
}
