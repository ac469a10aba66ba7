package sabotage_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/sabotage"
	"github.com/acp-test/acp-test/wire"
)

// Each mutation says what it breaks, in a requirement that there is, or that it is legal.
func TestTable(t *testing.T) {
	list := sabotage.All()
	held := 0
	for _, m := range list {
		if m.Held {
			held++
		}
		_, known := invariants.V1().Requirement(m.Breaks)
		switch told := m.Has("told"); {
		case m.Breaks != "" && !known:
			t.Errorf("%s breaks %s, which mutations.txt takes for a requirement", m.Name, m.Breaks)
		case m.Legal == (m.Breaks != "" || told):
			t.Errorf("%s: say in mutations.txt what it breaks, or told, or legal", m.Name)
		}
	}
	if len(list) < 80 || held*3 < len(list) {
		t.Errorf("%d mutations, %d of them held: 80 and a third are wanted", len(list), held)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := write("one.txt", "a: shouts\n  <-- update *\n    drop\n")
	two := write("two.txt", "a: shouts\n  <-- update *\n    drop\nb: whispers\n  <-- update *\n    double\n")
	for name, want := range map[string]string{
		"drop-answer": "drop-answer", one: "a", two + ":b": "b", two: "!a, b: name one of them, as in " + two + ":a",
		two + ":c": "!has the mutations a, b", "drop-anser": "!drop-answer",
		write("none.txt", "a: nothing\n"):                         "!changes nothing",
		write("bad.txt", "a: odd\n  <-- update *\n    explode\n"): "!bad.txt:3",
	} {
		m, err := sabotage.Find(name)
		said, wrong := strings.CutPrefix(want, "!")
		if wrong != (err != nil) || wrong && !strings.Contains(err.Error(), said) || !wrong && m.Name != want {
			t.Errorf("%s: got %q, %v", name, m.Name, err)
		}
	}
}

// wired is a transport whose agent says lines and keeps what it hears.
type wired struct {
	says   chan string
	heard  chan string
	closed chan struct{}
}

func (w *wired) Send(b []byte) (bool, error) { w.heard <- string(b); return false, nil }
func (w *wired) Receive() (wire.Line, error) {
	line, ok := <-w.says
	if !ok {
		return wire.Line{}, io.EOF
	}
	return wire.Line{Bytes: []byte(line), Terminated: true}, nil
}
func (w *wired) CloseSend() error                        { close(w.closed); return nil }
func (w *wired) Close() error                            { return nil }
func (w *wired) Unread() (int, bool)                     { return 0, true }
func (w *wired) Drained() (done <-chan struct{}, _ bool) { return nil, false }

func between(t *testing.T, rules string) (*sabotage.Saboteur, *wired, func() string, func(string)) {
	path := filepath.Join(t.TempDir(), "m.txt")
	if err := os.WriteFile(path, []byte("m: something\n"+rules), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := sabotage.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	s, agent := &sabotage.Saboteur{Mutation: m}, &wired{says: make(chan string, 9), heard: make(chan string, 9),
		closed: make(chan struct{})}
	b := s.Between(agent)
	receive := func() string {
		line, err := b.Receive()
		if err != nil {
			return err.Error()
		}
		return string(line.Bytes)
	}
	return s, agent, receive, func(text string) {
		if _, err := b.Send([]byte(text)); err != nil {
			t.Error(err)
		}
	}
}

const (
	chunk = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",` +
		`"update":{"sessionUpdate":"agent_message_chunk","n":1}}}`
	prompt = `{"jsonrpc":"2.0", "id":1,"method":"session/prompt","params":{"sessionId":"s"}}`
	answer = `{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`
)

// What no rule changes passes byte for byte, also in pieces, and a line that is not a message.
func TestBetweenPasses(t *testing.T) {
	s, agent, receive, send := between(t, "  <-- update plan\n    drop\n")
	send(prompt[:20])
	send(prompt[20:] + "\n")
	if got := <-agent.heard; got != prompt+"\n" {
		t.Errorf("the agent heard %q", got)
	}
	for _, line := range []string{chunk, "no message", answer} {
		agent.says <- line
		if got := receive(); got != line {
			t.Errorf("got %q", got)
		}
	}
	close(agent.says)
	if got := receive(); got != io.EOF.Error() {
		t.Errorf("behind the end came %q", got)
	}
	if n, on := s.Acted(); n != 0 || on != 0 {
		t.Errorf("%d messages were changed on %d connections", n, on)
	}
}

// A message is held until another one comes, each side hears what is meant for it, and the end is one.
func TestBetweenChanges(t *testing.T) {
	s, agent, receive, send := between(t, "  <-- result session/prompt\n    pass\n    release late\n"+
		"  --> notification session/cancel\n    send {\"told\":true}\n    later 1ms wake\n    drop\n"+
		"  timer wake\n    give {\"woken\":true}\n    exit\n  <-- update agent_message_chunk\n    hold late\n")
	send(prompt + "\n")
	<-agent.heard
	agent.says <- chunk
	agent.says <- answer
	if first, second := receive(), receive(); first != answer || second != chunk {
		t.Errorf("got %q, then %q", first, second)
	}
	send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}` + "\n")
	if told, end, woken := receive(), receive(), <-agent.heard; !strings.Contains(told, "told") ||
		!strings.Contains(woken, "woken") || end != io.EOF.Error() {
		t.Errorf("got %q and %q, and the agent %q", told, end, woken)
	}
	if n, on := s.Acted(); n != 1 || on != 1 {
		t.Errorf("%d messages were changed on %d connections", n, on)
	}
	<-agent.closed
	if send(prompt + "\n"); len(agent.heard) > 0 {
		t.Error("behind its end the agent was sent something")
	}
}
