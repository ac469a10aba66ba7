package invariants_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// importTrace reads a recorded run of a real agent: one object a line, with
// t in milliseconds, proc from 1, dir, and the frame.
func importTrace(path string) (*transcript.Transcript, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return traceOf(path, data)
}

// traceOf is importTrace of the text of a file.
func traceOf(path string, data []byte) (*transcript.Transcript, error) {
	now, begun := time.Unix(0, 0), time.Unix(0, 0)
	t, err := transcript.New(transcript.Header{},
		transcript.Options{Classifier: acpframe.Classifier{}, Now: func() time.Time { return now }})
	if err != nil {
		return nil, err
	}
	proc := 1
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var l struct {
			T     float64
			Proc  int
			Dir   string
			Frame json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if l.Proc != proc { // each process counts its time from 0
			proc, begun = l.Proc, now
		}
		now = begun.Add(time.Duration(l.T * float64(time.Millisecond)))
		conn := l.Proc - 1
		switch l.Dir {
		case "c2a":
			t.AppendFrame(conn, transcript.Editor, l.Frame, 0)
		case "a2c":
			t.AppendFrame(conn, transcript.Agent, l.Frame, 0)
		case "stderr":
			t.Append(transcript.Entry{Conn: conn, Source: transcript.Stderr, Kind: transcript.Chunk, Raw: l.Frame})
		case "note":
			kind := transcript.Noted
			if bytes.Contains(l.Frame, []byte("stdinClosed")) {
				kind = transcript.StdinClosed
			} else if bytes.HasPrefix(l.Frame, []byte(`{"exit"`)) {
				kind = transcript.Exited
			}
			t.Append(transcript.Entry{Conn: conn, Source: transcript.Process, Kind: kind, Raw: l.Frame})
		default:
			return nil, fmt.Errorf("%s: direction %q", path, l.Dir)
		}
	}
	return t, lines.Err()
}

const reviewedFile = "testdata/traces/reviewed.txt"

// reviewed is one entry of the file: findings somebody has looked at.
type reviewed struct {
	line    string
	runs    []string // AGENT/RUN
	what    string   // RULE/POINT CLASS
	message *regexp.Regexp
	seen    map[string]bool
}

// readReviewed reads the entries; their form is described in the file.
func readReviewed(text string, paths []string) []*reviewed {
	var all []*reviewed
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "~":
			all[len(all)-1].message = regexp.MustCompile(strings.Join(words[1:], " "))
		case !strings.HasPrefix(line, " "):
			Expect(len(words)).To(BeNumerically(">=", 4), "%s:%d", reviewedFile, n+1)
			r := &reviewed{line: line, what: strings.Join(words[len(words)-2:], " "), seen: map[string]bool{}}
			for _, run := range words[1 : len(words)-2] {
				for _, p := range paths {
					if name := nameOf(p); name == words[0]+"/"+run || run == "*" &&
						strings.HasPrefix(name, words[0]+"/") {
						r.runs = append(r.runs, name)
					}
				}
			}
			all = append(all, r)
		}
	}
	return all
}

func nameOf(path string) string {
	return strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(path), "testdata/traces/"), ".jsonl")
}

var _ = Describe("the runs of real agents", func() {
	It("show what the reviewed file lists, and nothing else", func() {
		paths, err := filepath.Glob("testdata/traces/*/*.jsonl")
		Expect(err).NotTo(HaveOccurred())
		Expect(len(paths)).To(BeNumerically(">=", 40))
		data, err := os.ReadFile(reviewedFile)
		Expect(err).NotTo(HaveOccurred())
		entries := readReviewed(string(data), paths)
		for _, path := range paths {
			t, err := importTrace(path)
			Expect(err).NotTo(HaveOccurred())
			checker := invariants.V1().NewChecker(rules.Config{})
			t.Observe(checker.Observe)
			for _, f := range checker.Finish(rules.End{Clean: true, Linger: 1500 * time.Millisecond}) {
				what := fmt.Sprintf("%s/%s %s", f.Rule, f.Point, f.Class)
				known := false
				for _, r := range entries {
					if r.what == what && slices.Contains(r.runs, nameOf(path)) && r.message.MatchString(f.Message) {
						known = true
						r.seen[nameOf(path)] = true
					}
				}
				Expect(known).To(BeTrue(), "not reviewed: %s %s %v: %s", nameOf(path), what, f.Entries, f.Message)
			}
		}
		for _, r := range entries {
			for _, run := range r.runs {
				Expect(r.seen).To(HaveKey(run), "stale: %s", r.line)
			}
		}
	})
})

// Of the last answer before the end of its input an agent need not have had the time.
var _ = Describe("an answer taken away from the run of a real agent", func() {
	It("is always told", func() {
		paths, err := filepath.Glob("testdata/traces/*/*.jsonl")
		Expect(err).NotTo(HaveOccurred())
		for _, path := range paths {
			whole, err := importTrace(path)
			Expect(err).NotTo(HaveOccurred())
			had, last := told(without(whole, 0)), map[int]int{}
			for e := range whole.All() {
				if e.Source == transcript.Agent && e.Kind == transcript.Response {
					last[e.Conn] = e.Seq
				}
			}
			for e := range whole.All() {
				if e.Source != transcript.Agent || e.Kind != transcript.Response || e.Ref == 0 {
					continue
				}
				found := slices.DeleteFunc(told(without(whole, e.Seq)),
					func(f string) bool { return slices.Contains(had, f) })
				wanted := "fail ONE-RESPONSE/unanswered|fail CANCEL-REASON/no-response"
				if last[e.Conn] == e.Seq || e.Method == "session/prompt" && !prompted(whole, e) {
					wanted = "inconclusive ONE-RESPONSE/unanswered-at-exit"
				}
				Expect(found).To(ContainElement(MatchRegexp(wanted)), "%s without #%d", nameOf(path), e.Seq)
			}
		}
	})
})

// prompted reports whether a session is prompted again after an entry, on the same connection.
func prompted(whole *transcript.Transcript, after transcript.Entry) bool {
	for e := range whole.Between(after.Seq, whole.Len()+1) {
		if e.Conn == after.Conn && e.Kind == transcript.Request && e.Method == "session/prompt" {
			return true
		}
	}
	return false
}

// without returns a transcript with all entries but one; nothing else changes.
func without(whole *transcript.Transcript, seq int) *transcript.Transcript {
	var now time.Time
	t, err := transcript.New(transcript.Header{},
		transcript.Options{Classifier: acpframe.Classifier{}, Now: func() time.Time { return now }})
	Expect(err).NotTo(HaveOccurred())
	for e := range whole.All() {
		now = time.Unix(0, 0).Add(e.At)
		switch {
		case e.Seq == seq:
		case e.Frame():
			t.AppendFrame(e.Conn, e.Source, e.Raw, 0)
		default:
			t.Append(e)
		}
	}
	return t
}

// told lists the class and point of what check finds about the agent.
func told(t *transcript.Transcript) (points []string) {
	checker := invariants.V1().NewChecker(rules.Config{})
	t.Observe(checker.Observe)
	for _, f := range checker.Finish(rules.End{Clean: true}) {
		if f.Side == rules.OfAgent {
			points = append(points, fmt.Sprintf("%s %s/%s", f.Class, f.Rule, f.Point))
		}
	}
	return points
}
