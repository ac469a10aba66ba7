package transport_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// agentScript answers every request with its own line, and asks something back after
// "ask"; it counts the lines it was sent on stderr.
const agentScript = `n=0; while read -r line; do n=$((n+1)); echo "line $n" >&2
case $line in
*'"ask"'*) echo '{"jsonrpc":"2.0","id":7,"method":"back"}';;
*'"id":0'*) echo '{"jsonrpc":"2.0","id":0,"result":{"n":'$n'}}';;
*'"id":1'*) echo '{"jsonrpc":"2.0","id":1,"result":{"n":'$n'}}';;
esac; done`

const greeting = `{"jsonrpc":"2.0","id":0,"method":"hello"}`

func begin(a *transport.Agent, line string) func() (transcript.Entry, bool) {
	return func() (transcript.Entry, bool) { return a.Append([]byte(line)), true }
}

// talk connects to a shared process, sends lines, waits for the answer to the last one,
// and returns what the transcript has of the agent and whether the process is fit.
func talk(t *testing.T, s *transport.Shared, before int, wait string, lines ...string) (heard string, fit bool) {
	t.Helper()
	log, err := transcript.New(transcript.Header{}, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	fitness := make(chan bool, 1)
	a := transport.Lend(log, 0, func(first []byte) (*transport.Shared, int, error) {
		if string(first) != greeting {
			t.Errorf("found by %s", first)
		}
		return s, before, nil
	}, func(_ *transport.Shared, fit bool) { fitness <- fit }, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, line := range append([]string{greeting}, lines...) {
		if _, err := a.Send(ctx, "\n", begin(a, line)); err != nil {
			t.Fatal(err)
		}
	}
	o := log.Await(ctx, 0, transcript.First(wait, func(e transcript.Entry) bool {
		return e.Source == transcript.Agent && strings.Contains(string(e.Raw), wait)
	}))
	if !o.Met() {
		t.Errorf("%s did not come", wait)
	}
	exit := a.Stop(ctx)
	if !exit.Exit.Closed {
		t.Errorf("it ended with %+v, not with its connection", exit.Exit)
	}
	for e := range log.All() {
		if e.Source == transcript.Agent {
			heard += string(e.Raw) + "\n"
		}
	}
	return heard, <-fitness
}

func TestSharedProcess(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no /bin/sh here")
	}
	s, err := transport.StartShared(t.Context(), transport.Command{Path: "/bin/sh", Args: []string{"-c", agentScript}},
		transcript.JSONRPC{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"x"}` }

	heard, fit := talk(t, s, 0, `"id":1`, ask("1"))
	if want := `{"jsonrpc":"2.0","id":0,"result":{"n":1}}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{"n":2}}` +
		"\n"; heard != want || !fit {
		t.Errorf("the first connection heard\n%sfit %v, want\n%s", heard, fit, want)
	}
	// The greeting is not sent again, its answer is given again.
	heard, fit = talk(t, s, 1, `"id":1`, ask("1"))
	if want := `{"jsonrpc":"2.0","id":0,"result":{"n":1}}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{"n":3}}` +
		"\n"; heard != want || !fit {
		t.Errorf("the second connection heard\n%sfit %v, want\n%s", heard, fit, want)
	}
	// Who leaves a request open leaves no process that others may have.
	if _, fit = talk(t, s, 2, `"back"`, `{"jsonrpc":"2.0","method":"ask"}`); fit {
		t.Error("the process is fit although a request of it is open")
	}
	if left := s.Stop(t.Context()); len(left) > 0 {
		t.Errorf("%v outlived it", left)
	}
	if s.Fit() {
		t.Error("a process that has ended is fit")
	}
}

func TestSharedProcessThatEnds(t *testing.T) {
	s, err := transport.StartShared(t.Context(), transport.Command{Path: "/bin/sh",
		Args: []string{"-c", `read -r line; echo '{"jsonrpc":"2.0","id":0,"result":{}}'; exit 3`}},
		transcript.JSONRPC{})
	if err != nil {
		t.Skip(err)
	}
	log, err := transcript.New(transcript.Header{}, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	fitness := make(chan bool, 1)
	a := transport.Lend(log, 0, func([]byte) (*transport.Shared, int, error) { return s, 0, nil },
		func(_ *transport.Shared, fit bool) { fitness <- fit }, nil)
	if _, err := a.Send(t.Context(), "\n", begin(a, greeting)); err != nil {
		t.Fatal(err)
	}
	<-a.Exited()
	if exit, _ := a.Exit(); exit.Code != 3 || log.At(log.Len()-1).Source == transcript.Agent && log.Len() < 3 {
		t.Errorf("it ended with %+v", exit)
	}
	if <-fitness {
		t.Error("a process that has ended is fit")
	}
	a.Stop(t.Context())
	s.Stop(t.Context())
}

// inSessions takes the session of each frame from its parameters.
type inSessions struct{ transcript.JSONRPC }

func (inSessions) Session(_ string, f wire.Frame) wire.Value { return f.Params.Get("sessionId") }

// What an agent still has to say of a session of an earlier connection is for nobody, unless
// this one speaks of that session as well.
func TestSharedProcessThatIsLate(t *testing.T) {
	const script = `while read -r line; do
case $line in *'"id":0'*) echo '{"jsonrpc":"2.0","id":0,"result":{}}';;
*'"id":1'*) echo '{"jsonrpc":"2.0","method":"of","params":{"sessionId":"a"}}'
echo '{"jsonrpc":"2.0","method":"of","params":{"sessionId":"b"}}'
echo '{"jsonrpc":"2.0","id":1,"result":{}}';;
esac; done`
	s, err := transport.StartShared(t.Context(), transport.Command{Path: "/bin/sh", Args: []string{"-c", script}},
		inSessions{})
	if err != nil {
		t.Skip(err)
	}
	defer s.Stop(t.Context())
	of := func(session string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"x","params":{"sessionId":"` + session + `"}}`
	}
	for i, c := range []struct{ session, first string }{{"a", "b"}, {"b", "a"}, {"a", "b"}} {
		heard, _ := talk(t, s, i, `"id":1`, of(c.session))
		other := strings.Contains(heard, `"sessionId":"`+c.first+`"`)
		if !strings.Contains(heard, `"sessionId":"`+c.session+`"`) || other != (i == 0) {
			t.Errorf("connection %d, which spoke of session %s, heard\n%s", i+1, c.session, heard)
		}
	}
}
