package sabotage

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-test/acp-test/refagent/mutation"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// Saboteur applies one mutation to all connections of a run. It counts the changed messages.
type Saboteur struct {
	Mutation
	connections, acted atomic.Int64
}

// Acted returns the number of messages that the mutation has changed, and the number of connections on which it has
// done so.
func (s *Saboteur) Acted() (messages, connections int) {
	return int(s.acted.Load()), int(s.connections.Load())
}

// count records that a player has changed now messages so far; before is the result of the previous call. It returns
// now.
func (s *Saboteur) count(before, now int) int {
	if before == 0 && now > 0 {
		s.connections.Add(1)
	}
	s.acted.Add(int64(now - before))
	return now
}

// Between returns a transport that applies the mutation between an editor and the agent behind t. It forwards
// messages unchanged, except those that a rule changes.
func (s *Saboteur) Between(t transport.Transport) transport.Transport {
	b := &between{Transport: t, of: s, player: s.Player()}
	b.moved.L = &b.mu
	b.behind(b.player.Begin())
	return b
}

// between is a Transport that applies a mutation to another Transport. If the editor does not read, the agent blocks,
// as it would without the mutation. If the agent does not read, only the editor's Send blocks.
type between struct {
	transport.Transport
	of   *Saboteur
	read sync.Once
	send sync.Mutex // locked while lines are sent to the agent

	mu     sync.Mutex
	moved  sync.Cond
	player *mutation.Player
	acted  int         // number of changed messages that were added to of
	rest   []byte      // beginning of an incomplete line from the editor
	later  [][]byte    // lines for the agent that are not sent by a Send of the editor
	lines  []wire.Line // lines for the editor
	asks   bool        // the editor is waiting for a line
	err    error       // error to return after the last line
	gone   bool        // nothing is forwarded any more
}

// carry carries out the outputs of the player. It returns the lines to send to the agent. The caller holds mu, unless
// the transport is not in use yet.
func (b *between) carry(list []mutation.Output) (forAgent [][]byte) {
	for _, out := range list {
		raw := out.Raw
		if raw == nil && out.Message != nil {
			raw = out.Message.Encode()
		}
		switch {
		case out.Exit:
			b.gone, b.err = true, io.EOF
			go func() { _ = b.Transport.CloseSend() }() // in a goroutine, because CloseSend may wait for a Send
		case out.Wait != nil:
			time.AfterFunc(out.Delay, func() { b.wake(out.Wait) })
		case out.To == mutation.Agent:
			forAgent = append(forAgent, append(bytes.TrimRight(raw, "\n"), '\n'))
		default:
			for line := range bytes.Lines(raw) {
				b.lines = append(b.lines, wire.Line{Bytes: bytes.TrimRight(line, "\n"), Terminated: true})
			}
		}
	}
	b.acted = b.of.count(b.acted, b.player.Acted())
	b.moved.Broadcast()
	return forAgent
}

// behind is like carry, but sends the lines for the agent in the background, by the method give.
func (b *between) behind(list []mutation.Output) {
	more := b.carry(list)
	if len(more) == 0 {
		return
	}
	if b.later = append(b.later, more...); len(b.later) == len(more) {
		go b.give()
	}
}

// give sends the lines in later to the agent.
func (b *between) give() {
	b.send.Lock()
	defer b.send.Unlock()
	for {
		b.mu.Lock()
		if len(b.later) == 0 {
			b.mu.Unlock()
			return
		}
		next := b.later[0]
		b.mu.Unlock()
		_, err := b.Transport.Send(next) // if the agent is gone, Receive reports it
		b.mu.Lock()
		if b.later = b.later[1:]; err != nil || b.gone {
			b.later = nil
		}
		b.mu.Unlock()
	}
}

func (b *between) wake(w *mutation.Wait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.gone {
		b.behind(b.player.Wake(w))
	}
}

// Send implements transport.Transport. It buffers bytes until a line is complete.
func (b *between) Send(p []byte) (waited bool, err error) {
	b.mu.Lock()
	b.rest = append(b.rest, p...)
	var pass [][]byte
	for {
		line, rest, whole := bytes.Cut(b.rest, []byte("\n"))
		if !whole || b.gone {
			break
		}
		line, b.rest = bytes.Clone(line), rest
		pass = append(pass, b.carry(b.player.Play(mutation.Client, line, nil))...)
	}
	b.mu.Unlock()
	b.send.Lock()
	defer b.send.Unlock()
	for _, line := range pass {
		held, err := b.Transport.Send(line)
		if waited = waited || held; err != nil {
			return waited, err
		}
	}
	return waited, nil
}

// CloseSend implements transport.Transport.
func (b *between) CloseSend() error {
	b.mu.Lock()
	rest := b.rest
	b.rest = nil
	b.mu.Unlock()
	if len(rest) > 0 {
		b.send.Lock()
		_, _ = b.Transport.Send(rest) // the end of input follows anyway
		b.send.Unlock()
	}
	return b.Transport.CloseSend()
}

// Close implements transport.Transport.
func (b *between) Close() error {
	b.mu.Lock()
	b.gone = true
	b.moved.Broadcast()
	b.mu.Unlock()
	return b.Transport.Close()
}

// Receive implements transport.Transport.
func (b *between) Receive() (wire.Line, error) {
	b.read.Do(func() { go b.pump() })
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.lines) == 0 && b.err == nil {
		b.asks = true
		b.moved.Broadcast()
		b.moved.Wait()
	}
	b.asks = false
	if len(b.lines) == 0 {
		return wire.Line{}, b.err
	}
	line := b.lines[0]
	b.lines = b.lines[1:]
	return line, nil
}

// pump reads lines from the agent, each only when the editor is waiting for one. This way, the underlying transport
// knows which lines the editor has received.
func (b *between) pump() {
	for {
		b.mu.Lock()
		for !b.gone && (!b.asks || len(b.lines) > 0) {
			b.moved.Wait()
		}
		b.mu.Unlock()
		line, err := b.Transport.Receive()
		b.mu.Lock()
		switch {
		case err != nil:
			b.behind(b.player.End())
			if b.err == nil {
				b.err = err
			}
		case b.gone: // keep reading, so that the agent can end
		case !line.Terminated || line.Size > len(line.Bytes): // not a complete message
			line.Bytes = bytes.Clone(line.Bytes)
			b.lines = append(b.lines, line)
		default:
			b.behind(b.player.Play(mutation.Agent, bytes.Clone(line.Bytes), nil))
		}
		b.moved.Broadcast()
		b.mu.Unlock()
		if err != nil {
			return
		}
	}
}
