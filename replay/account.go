package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Sight describes the part of an agent's frame that an editor shows to its user. The zero Sight means that the editor
// shows nothing.
type Sight struct {
	Text string // a piece of the agent's text, unchanged
	Call string // the id of a new tool call
	Ask  string // the id of the tool call that needs permission
}

// EnvSeen is the environment variable with the path of an editor's account.
const EnvSeen = "ACP_TEST_SEEN"

// Account is an editor's report of what its user saw. The format is JSON Lines, described in docs/editors.md.
type Account struct {
	tells      map[string]bool
	text       map[string]string // the text shown in each session, without white space
	call, asks map[[2]string]bool
}

// accounts lists the kinds of statements in an account, each with the title of its check.
var accounts = []struct{ kind, title string }{
	{"text", "A user sees what the agent says, whole, in its order and in its session."},
	{"calls", "A user sees each tool call in its session."},
	{"asks", "A user sees each permission request that is answered, unless a setting decides it."},
}

// AccountIn reads the account in a file. It returns nil if the file does not exist.
func AccountIn(file string) (*Account, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := ReadAccount(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", EnvSeen, file, err)
	}
	return a, nil
}

// ReadAccount reads an account. The error names the first line that is not a valid statement.
func ReadAccount(r io.Reader) (*Account, error) {
	a := &Account{map[string]bool{}, map[string]string{}, map[[2]string]bool{}, map[[2]string]bool{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		v, err := wire.Parse(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if !a.read(v) {
			return nil, fmt.Errorf("line %d: want tells, or session and one of text, call, asks, decides; got %s", n,
				wire.Clip(lines.Text(), 80))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(a.tells) == 0 {
		return nil, errors.New("no line has tells, the list of the kinds that the account reports")
	}
	return a, nil
}

// read adds a line to the account and reports whether the line is valid.
func (a *Account) read(v wire.Value) bool {
	for kind := range v.Get("tells").Items() {
		if !slices.ContainsFunc(accounts, func(x struct{ kind, title string }) bool { return kind.Is(x.kind) }) {
			return false
		}
		a.tells[kind.Str()] = true
	}
	session, known := v.Get("session").Str(), v.Get("tells").Exists()
	note := func(key string, do func(text string)) {
		if text := v.Get(key); session != "" && text.Kind() == wire.String {
			known = true
			do(text.Str())
		}
	}
	note("text", func(text string) { a.text[session] += dense(text) })
	note("call", func(id string) { a.call[[2]string{session, id}] = true })
	note("asks", func(id string) { a.asks[[2]string{session, id}] = true })
	note("decides", func(id string) { a.asks[[2]string{session, id}] = true })
	return known
}

// dense returns a text without white space, because editors wrap and trim text.
func dense(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// due is a text, tool call or permission request of the agent that the editor should have shown to its user.
type due struct {
	session, what string
	log           *transcript.Transcript
	seq           int
	optional      bool
}

// dues returns all texts, tool calls or permission requests (kind) that the editor should have shown, from all
// sessions. An item is optional if it came outside of a turn or load, or after the turn was cancelled, or if the
// network failed in the session. left reports whether the editor or the agent exited during a turn.
func (j Judge) dues(sessions []Session, kind string) (all []due, left bool) {
	for _, s := range sessions {
		open := j.requests()
		failed := lists.Any(s.Log.All(), func(e transcript.Entry) bool { return e.Kind == serve.Troubled })
		for e := range s.Log.All() {
			if open.see(e); e.Source == transcript.Editor && j.Protocol.Cancels(e) {
				for _, seq := range open.prompted(s.Log, e.Session) {
					delete(open.methods, seq)
				}
			}
			sight, what := j.Protocol.Sight(e), ""
			optional := e.Ref == 0 && !lists.Any(maps.Keys(open.methods),
				func(seq int) bool { return s.Log.At(seq).Session == e.Session })
			switch kind {
			case "text":
				what = dense(sight.Text)
			case "calls":
				what = sight.Call
			case "asks":
				what = sight.Ask
				optional = !answered(s.Log, e.Seq)
			}
			if what != "" {
				all = append(all, due{e.Session, what, s.Log, e.Seq, optional || failed})
			}
		}
		left = left || len(j.openAtEnd(s.Log)) > 0 || j.unended(s.Log)
	}
	return all, left
}

// unended reports whether a turn was still running at the end of the log.
func (j Judge) unended(t *transcript.Transcript) bool {
	open := j.requests()
	for e := range t.All() {
		open.see(e)
	}
	return len(open.prompted(t, "")) > 0
}

// answered reports whether the editor answered the agent's request seq with a result instead of an error.
func answered(t *transcript.Transcript, seq int) bool {
	return lists.Any(t.All(), func(e transcript.Entry) bool {
		return e.Source == transcript.Editor && e.Ref == seq && e.JSON().Get("result").Exists()
	})
}

// accounted returns the checks that compare an account with the agent's frames. It makes no check for a kind of
// statement that the account does not declare.
func (j Judge) accounted(id string, a *Account, sessions []Session) (checks []results.Check) {
	for _, x := range accounts {
		if !a.tells[x.kind] {
			continue
		}
		k := results.Check{ID: id + "#seen-" + x.kind, Slug: "seen-" + x.kind, Title: x.title, Class: results.Fail,
			Verdict: results.Pass}
		all, left := j.dues(sessions, x.kind)
		missed, observed := a.missed(x.kind, all, left)
		if len(all) == 0 && observed == "" {
			continue // the agent sent nothing of this kind
		}
		if observed != "" {
			k.Verdict, k.Failure = results.Fail, &transcript.Failure{Expected: []string{x.title}, Observed: observed}
			if missed.seq > 0 {
				k.Failure.Tail = around(j.Text, missed.log, []int{missed.seq})
			}
		}
		checks = append(checks, k)
	}
	return checks
}

// missed returns the first due that the user did not see as the agent sent it. It also describes what the user saw
// instead. The description is "" if the user saw everything.
func (a *Account) missed(kind string, all []due, left bool) (due, string) {
	seen, rest := map[string]map[[2]string]bool{"calls": a.call, "asks": a.asks}[kind], map[string]string{}
	if kind == "text" {
		rest = maps.Clone(a.text)
	}
	for _, d := range all {
		after, shown := strings.CutPrefix(rest[d.session], d.what)
		switch {
		case seen != nil && (seen[[2]string{d.session, d.what}] || d.optional || left):
		case seen != nil:
			return d, fmt.Sprintf("in session %s the user did not see %s", d.session, d.what)
		case shown:
			rest[d.session] = after
		case d.optional || left && rest[d.session] == "":
		case rest[d.session] == "":
			return d, fmt.Sprintf("in session %s the text ends before %q", d.session, wire.Clip(d.what, 60))
		default:
			return d, fmt.Sprintf("in session %s the text goes on with %q instead of %q", d.session,
				wire.Clip(rest[d.session], 60), wire.Clip(d.what, 60))
		}
	}
	for session, text := range rest {
		if text != "" && slices.ContainsFunc(all, func(d due) bool { return d.session == session }) {
			return due{}, fmt.Sprintf("session %s shows %s more than the agent said in it: %q", session,
				printable.Plural(len(text), "byte", "bytes"), wire.Clip(text, 60))
		}
	}
	return due{}, ""
}
