package words

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/remote"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
)

// onNetwork returns the step of a command that needs an agent on a network. If the agent uses stdin and stdout, the
// scenario is skipped.
func onNetwork(
	l *scenarios.Line, do func(ctx context.Context, b *scenarios.Branch, c *remote.Conn) error,
) scenarios.Step {
	return func(ctx context.Context, b *scenarios.Branch) error {
		if err := b.Launch(ctx); err != nil {
			return err
		}
		agent, err := b.Alive(l)
		if err != nil {
			return err
		}
		c, ok := agent.Transport().(*remote.Conn)
		if !ok {
			return &scenarios.Skipped{Reason: l.Name.Raw() + " does not apply: the agent is not on a network"}
		}
		return do(ctx, b, c)
	}
}

func compileHTTP(l *scenarios.Line) scenarios.Step {
	headers := l.Headers()
	opts := l.Options("expects", "has", "lacks", "connection", "session", "pad", "how")
	pad := padding(l, opts["pad"])
	raw, ways := remote.Raw{Method: remote.Upgrade}, []remote.How{remote.Unread}
	need := language.Need{What: "ws", Line: l.Number}
	var body script.Word
	if l.Name.Is("http") {
		ways = remote.Ways
		need.What, raw.Method = "http", l.One(0, "an HTTP method")
		if len(l.Rest) > 1 {
			body = l.Source(l.Rest[1])
		}
		l.AtMost(2, "quote the body")
	} else {
		l.AtMost(0)
	}
	raw.How = choice(l, "how", opts["how"], ways)
	if opts["expects"].Raw() == "" {
		l.Usage(l.End(), "expects= is missing: give the statuses that the response may have")
	}
	l.Scenario().Needs = append(l.Scenario().Needs, need)
	return onNetwork(l, func(ctx context.Context, b *scenarios.Branch, c *remote.Conn) error {
		r, err := dressed(b, c, raw, headers, opts)
		if err != nil {
			return l.Fault(err)
		}
		text, err := b.Content(l, body)
		if err != nil {
			return err
		}
		r.Body = []byte(text + pad)
		wait, cancel := b.StepTimeout(ctx, 0)
		defer cancel()
		b.Did(l) // effects of the request may come before its answer
		e, err := c.Do(wait, r)
		if err != nil {
			return b.Unsent(l, err)
		}
		b.Name(l.Alias, e)
		return statusOf(b, l, e, opts)
	})
}

// choice returns the value of an option that has one of the known values, or "" if it is not given.
func choice[T ~string](l *scenarios.Line, name string, w script.Word, known []T) T {
	value := T(w.Raw())
	if value != "" && !slices.Contains(known, value) {
		l.Usage(l.End(), "%s=%s: choose one of %v", name, value, known)
	}
	return value
}

// padding returns spaces that make a message longer. mebibytes says how many MiB of spaces; "" means none.
func padding(l *scenarios.Line, mebibytes script.Word) string {
	if mebibytes.Raw() == "" {
		return ""
	}
	n, err := strconv.Atoi(mebibytes.Raw())
	if err != nil || n < 1 || n > 1024 {
		l.Usage(l.End(), "pad=%s: give a number of MiB from 1 to 1024", mebibytes.Raw())
		return ""
	}
	return strings.Repeat(" ", n<<20)
}

// dressed returns raw with the headers that its method requires and those that the line gives.
func dressed(b *scenarios.Branch, c *remote.Conn, raw remote.Raw, headers []script.Word,
	opts map[string]script.Word) (remote.Raw, error) {
	raw.Header = map[string]string{}
	switch raw.Method {
	case "POST":
		raw.Header["Content-Type"] = "application/json"
	case "GET":
		raw.Header["Accept"] = "text/event-stream"
	}
	connection := c.Connection()
	if raw.Method == remote.Upgrade || raw.Method == "OPTIONS" {
		connection = ""
	}
	for name, value := range map[string]string{"connection": connection, "session": ""} {
		if w, given := opts[name]; given {
			text, err := b.Expand(w)
			if err != nil {
				return raw, err
			}
			value = text
		}
		if value != "" && value != "-" {
			raw.Header[map[string]string{"connection": remote.ConnectionID, "session": remote.SessionID}[name]] = value
		}
	}
	return raw, b.Dress(raw.Header, headers)
}

// statusOf returns an error if an HTTP response does not have the status and headers that a line expects.
func statusOf(b *scenarios.Branch, l *scenarios.Line, e transcript.Entry, opts map[string]script.Word) error {
	v := e.JSON()
	status, _ := v.Get("status").Int()
	want := strings.Split(opts["expects"].Raw(), ",")
	header := func(option string) (name string, there bool) {
		name = strings.ToLower(opts[option].Raw())
		return name, v.Get("headers").Get(name).Exists()
	}
	has, there := header("has")
	lacks, also := header("lacks")
	expected := ""
	switch {
	case !slices.Contains(want, strconv.FormatInt(status, 10)):
		expected = "status " + strings.Join(want, " or ")
	case has != "" && !there:
		expected = "the header " + has
	case lacks != "" && also:
		expected = "no header " + lacks
	default:
		return nil
	}
	f := b.Failure(l, transcript.Outcome{Verdict: transcript.Unmeetable, Entry: e})
	f.Expected, f.Observed = []string{expected}, fmt.Sprintf("#%d %s", e.Seq, b.Line(e))
	return &scenarios.Miss{Failure: f, Effect: true}
}

func compileAbandon(l *scenarios.Line) scenarios.Step {
	how := choice(l, "how", l.Options("how")["how"], []remote.How{remote.Half})
	ref := l.Ref(0)
	l.AtMost(1)
	return onNetwork(l, func(_ context.Context, b *scenarios.Branch, c *remote.Conn) error {
		e, err := b.Entry(l, ref)
		if err != nil {
			return err
		}
		b.Did(l)
		drop := c.HangUp
		if how == remote.Half {
			drop = c.HalfClose
		}
		if err := drop(e.Seq); err != nil {
			return l.Fault(err)
		}
		return nil
	})
}

func compileFrame(l *scenarios.Line) scenarios.Step {
	opts := l.Options("form", "pad")
	pad, form := padding(l, opts["pad"]), choice(l, "form", opts["form"], remote.Forms)
	ref := l.Ref(0)
	text := l.Source(l.Need(1, "the text to send"))
	l.AtMost(2, "quote the text")
	return onNetwork(l, func(ctx context.Context, b *scenarios.Branch, c *remote.Conn) error {
		e, err := b.Entry(l, ref)
		if err != nil {
			return err
		}
		what, err := b.Content(l, text)
		if err != nil {
			return err
		}
		b.Did(l)
		if err := c.Frame(ctx, e.Seq, []byte(what+pad), form); err != nil {
			return l.Fault(err)
		}
		return nil
	})
}

func compileTrouble(l *scenarios.Line) scenarios.Step {
	kind := remote.Trouble(l.One(0, "the kind of trouble"))
	if !slices.Contains(remote.Troubles(), kind) {
		l.Usage(l.End(), "%s is not a kind of trouble; choose one of %v", kind, remote.Troubles())
	}
	l.AtMost(1)
	l.Scenario().Needs = append(l.Scenario().Needs, language.Need{What: "http", Line: l.Number})
	return onNetwork(l, func(_ context.Context, b *scenarios.Branch, c *remote.Conn) error {
		b.Did(l)
		if err := c.Trouble(kind); errors.Is(err, remote.ErrNoCursors) {
			return &scenarios.Skipped{Reason: err.Error()}
		} else if err != nil {
			return l.Fault(err)
		}
		return nil
	})
}
