// Package toy_test is a second protocol, as small as one can be: lines of JSON
// that are no JSON-RPC, a question and a stream of events. That the engine, the
// rules, goldens, the sweep and the replay serve it as they serve ACP shows that
// they know no protocol.
//
//	{"ask":1,"to":"a","text":"…"}   the client asks
//	{"word":"…","to":"a"}           the agent says a word
//	{"end":1,"why":"done"}          the agent has answered
//	{"stop":true,"to":"a"}          the client wants no more
package toy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// frames takes the lines apart.
type frames struct{}

func (frames) Frame(_ transcript.Source, line []byte, v wire.Value, err error) wire.Frame {
	switch {
	case err != nil:
		return wire.Frame{Problem: wire.WhyNotJSON(line, err)}
	case v.Get("ask").Exists():
		return wire.Frame{Kind: wire.Request, Method: "ask", ID: wire.ID(v.Get("ask").Raw()), Params: v}
	case v.Get("end").Exists():
		return wire.Frame{Kind: wire.Response, ID: wire.ID(v.Get("end").Raw()), Result: v}
	case v.Get("word").Exists():
		return wire.Frame{Kind: wire.Notification, Method: "word", Params: v}
	case v.Get("stop").Exists():
		return wire.Frame{Kind: wire.Notification, Method: "stop", Params: v}
	}
	return wire.Frame{Problem: "neither ask nor word, end or stop"}
}

func (frames) Session(_ string, f wire.Frame) wire.Value { return f.Params.Get("to") }

// text writes entries.
type text struct{}

func (text) Line(e transcript.Entry) string {
	v := e.JSON()
	switch e.Kind {
	case transcript.Request:
		return "--> ask " + golden.Quote(v.Get("text").Str())
	case transcript.Response:
		return "<-- end " + v.Get("why").Str()
	}
	return e.Method + " " + v.Get(e.Method).Text()
}

func (t text) Render(entries iter.Seq[transcript.Entry], _ golden.Options) string {
	var b strings.Builder
	for e := range entries {
		if e.Frame() {
			b.WriteString(t.Line(e) + "\n")
		}
	}
	return b.String()
}

// late is the one rule: no word comes after the end.
var late = rules.Rule{ID: "LATE", Sentence: "No word comes after the end.",
	Points: []rules.Point{{ID: "word", Class: rules.Fail, Says: "a word after the end"}}}

type observer struct {
	watch *rules.Watch
	ended bool
}

func (o *observer) Observe(e transcript.Entry) {
	switch {
	case e.Kind == transcript.Response:
		o.ended = true
	case e.Method == "ask":
		o.ended = false
	case e.Method == "word":
		if o.watch.Saw("word"); o.ended {
			o.watch.Report("word", e.Conn, e.Session, "", []int{e.Seq}, "a word came after the end")
		}
	}
}

func (*observer) Finish(rules.End) {}

// client asks and stops.
type client struct {
	agent *transport.Agent
	asked int
}

func (c *client) Connect(a *transport.Agent, _ []string, _ string, _ bool) {
	c.agent = a
	a.Receive(func(transcript.Entry) {})
}

func (c *client) send(frame any) (transcript.Entry, error) {
	raw, err := json.Marshal(frame)
	if err != nil {
		return transcript.Entry{}, err
	}
	return c.Send(raw)
}

func (c *client) Send(raw []byte) (transcript.Entry, error) {
	return c.agent.Send(context.Background(), "\n",
		func() (transcript.Entry, bool) { return c.agent.Append(raw), true })
}

func (*client) Greet(_ context.Context, b *scenarios.Branch, _ *scenarios.Line) error {
	return b.Greeted()
}
func (*client) Disconnect()                       {}
func (*client) Settle(context.Context)            {}
func (*client) Advertises(string) (bool, bool)    { return false, true }
func (*client) AgentInfo() (name, version string) { return "toy", "1" }
func (*client) Ports() ([]isolate.Port, error)    { return nil, nil }
func (*client) Masks() map[string]string          { return nil }
func (c *client) Close() error                    { return nil }

func words() []*scenarios.Command {
	return []*scenarios.Command{
		{Name: "ask", Group: "acts", Args: "TEXT", Captures: true, Summary: "ask the agent",
			Compile: func(l *scenarios.Line) scenarios.Step {
				w := l.Need(0, "the question")
				return func(ctx context.Context, b *scenarios.Branch) error {
					if err := b.Begin(ctx); err != nil {
						return err
					}
					c := b.Client().(*client)
					s := b.Session()
					if s == nil {
						s = b.NewSession("main", "")
						s.ID = "a"
						b.Opened(s)
					}
					c.asked++
					e, err := c.send(map[string]any{"ask": c.asked, "to": s.ID, "text": w.Raw()})
					b.Prompted(s, e)
					b.Acted(s, e)
					b.Name(l.Alias, e)
					return err
				}
			}},
		{Name: "stop", Group: "acts", Cuts: true, Summary: "want no more", Compile: scenarios.Plain(
			func(_ context.Context, b *scenarios.Branch, _ *scenarios.Line) error {
				e, err := b.Client().(*client).send(map[string]any{"stop": true, "to": "a"})
				b.Acted(b.Session(), e)
				return err
			})},
	}
}

func toy(t *testing.T) *scenarios.Protocol {
	set, err := rules.New(rules.Definition{Rules: []rules.Rule{late}, Watch: func(c *rules.Checker) rules.Observer {
		return &observer{watch: c.Watch(late)}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return scenarios.Complete(&scenarios.Protocol{
		Version: "toy", Classifier: frames{}, Rules: set, Canonical: text{},
		Dialect: scenarios.Dialect{Words: words(), StopReasons: []string{"done", "stopped"},
			Kinds: []language.Kind{{Name: "word", Help: "a word of the agent", Inner: true,
				Match: func(_ language.Bound, e transcript.Entry, own bool) bool {
					return own && e.Method == "word"
				}}}},
		Client:  func() scenarios.Client { return &client{} },
		Prompts: func(e transcript.Entry) bool { return e.Source == transcript.Editor && e.Method == "ask" },
		TurnEnd: func(e transcript.Entry) (string, bool) {
			return e.JSON().Get("why").Str(), e.Kind == transcript.Response
		},
		Said: func(e transcript.Entry) string { return e.JSON().Get("word").Str() },
	})
}

// planner asks once more after the last turn.
func planner() *sweep.Planner {
	acts := (&sweep.Acts[*sweep.Builder]{}).Read("act 'ask again' {\n\tdo ask more\n\tdo await turn done\n}\n")
	return acts.Plan(sweep.Planner{
		Turns: func(s *sweep.Script) []string {
			s.Turns = []sweep.Turn{{}}
			return nil
		},
		Look: func(*sweep.Script, sweep.Turn, *transcript.Transcript, []sweep.Effect) (*sweep.Seen, bool) {
			return &sweep.Seen{}, true
		},
		Points: func(sweep.Observed, []*sweep.Script, *rand.Rand) ([]sweep.Point, int) {
			return []sweep.Point{{Name: "the end", State: "idle"}}, 0
		},
	}, func(b *sweep.Builder) *sweep.Builder { return b },
		func(b *sweep.Builder) { b.Lines = append(b.Lines, b.Script.Lines...) })
}

// recordings says what frames mean to a replay; what else a protocol may say of
// them, this one has no use for.
type recordings struct{ replay.Protocol }

func (recordings) Frame(from transcript.Source, line []byte, v wire.Value, err error) wire.Frame {
	return frames{}.Frame(from, line, v, err)
}
func (recordings) Session(method string, f wire.Frame) wire.Value {
	return frames{}.Session(method, f)
}
func (recordings) Prompt(e transcript.Entry) (string, bool) {
	return e.JSON().Get("text").Str(), e.Method == "ask" && e.Kind == transcript.Request
}
func (recordings) Cancels(e transcript.Entry) bool { return e.Method == "stop" }
func (recordings) Facts(e transcript.Entry) replay.Facts {
	f := replay.Facts{Shows: e.JSON().Get("word").Str()}
	if e.Source == transcript.Editor {
		f.Lane = e.Session
	}
	return f
}
func (recordings) Editor(a *transport.Agent, _ []string) replay.Editor {
	p := player{&client{}}
	p.Connect(a, nil, "", false)
	return p
}

type player struct{ *client }

func (p player) Close(ctx context.Context) transport.Shutdown { return p.agent.Stop(ctx) }

// agent answers a question word by word. After the word "slow" it waits for the
// client to stop it. A broken one says one more word after its second answer.
func agent(broken bool) func(ctx context.Context, in io.Reader, out io.Writer) error {
	return func(_ context.Context, in io.Reader, out io.Writer) error {
		lines, answers := bufio.NewScanner(in), 0
		for lines.Scan() {
			v, err := wire.Parse(lines.Bytes())
			if err != nil || !v.Get("ask").Exists() {
				continue
			}
			why := "done"
			for _, w := range strings.Fields(v.Get("text").Str()) {
				fmt.Fprintf(out, "{\"word\":%q,\"to\":\"a\"}\n", w)
				if w == "slow" && lines.Scan() {
					why = "stopped"
				}
			}
			fmt.Fprintf(out, "{\"end\":%s,\"why\":%q}\n", v.Get("ask").Raw(), why)
			if answers++; broken && answers == 2 {
				fmt.Fprintln(out, `{"word":"more","to":"a"}`)
			}
		}
		return lines.Err()
	}
}
