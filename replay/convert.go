package replay

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// Convert makes a scenario of a recording: its prompts with what each waited
// for, its permission answers, its cancels, the files that were read, and the
// model's script, if there is one. Title is its first line. The error says what
// of the recording a scenario cannot say.
func Convert(t *transcript.Transcript, title string, model []byte) ([]byte, error) {
	c := &converter{t: t, names: map[string]string{}}
	c.work, c.home = directories(t)
	c.permissions()
	if err := c.acts(); err != nil {
		return nil, err
	}
	head := "# " + title + "\n"
	if c.loads {
		head += "needs agent:loadSession\n"
	}
	archive := &txtar.Archive{Comment: []byte(head + strings.Join(c.setup, "") + strings.Join(c.lines, "") + "\n")}
	files := Files(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: files[name]})
	}
	if model != nil {
		archive.Files = append(archive.Files, txtar.File{Name: "llm.yaml", Data: []byte(c.model(string(model)))})
	}
	text := txtar.Format(archive)
	if _, err := scenarios.Parse("recorded", "recorded.txtar", text); err != nil {
		return nil, fmt.Errorf("the scenario made of the recording is wrong: %w", err)
	}
	return text, nil
}

type converter struct {
	t            *transcript.Transcript
	work, home   string
	setup, lines []string
	names        map[string]string // of sessions, in the scenario
	seen         map[string]string // the newest content of the open turn, by session
	loads        bool
	cancels      bool
	checked      bool
}

func (c *converter) line(format string, a ...any) {
	c.lines = append(c.lines, fmt.Sprintf(format, a...)+"\n")
}

// word is a text as one word of a script, with the workspace as a variable.
func (c *converter) word(s string) string {
	var out []string
	for i, part := range strings.Split(s, c.work) {
		if i > 0 && c.work != "" {
			out = append(out, "$WORK")
		}
		if part != "" || s == "" {
			out = append(out, "'"+strings.ReplaceAll(part, "'", "''")+"'")
		}
	}
	return strings.Join(out, "")
}

// permissions makes one line for each recorded answer.
func (c *converter) permissions() {
	answers := map[int]transcript.Entry{}
	var asked []transcript.Entry
	for e := range Frames(c.t) {
		if e.Method != "session/request_permission" {
			continue
		}
		if e.Kind == transcript.Request {
			asked = append(asked, e)
		} else if _, again := answers[e.Ref]; !again {
			answers[e.Ref] = e
		}
	}
	for i, q := range asked {
		a, ok := answers[q.Seq]
		v := a.JSON()
		choice := "hold"
		switch {
		case !ok:
		case v.Get("error").Exists():
			choice = "error:" + v.Path("error.code").Text()
		case v.Path("result.outcome.outcome").Is("selected"):
			id := v.Path("result.outcome.optionId").Str()
			if choice, _ = kindOf(q.JSON().Get("params"), id); choice == "" {
				choice = "option:" + id
			}
		default:
			if !c.cancelledBefore(q, a) {
				choice = "cancelled"
			}
		}
		c.setup = append(c.setup, fmt.Sprintf("permit %s nth=%d\n", choice, i+1))
	}
}

// cancelledBefore reports whether a turn was cancelled while a request was open:
// the editor answers it then by itself.
func (c *converter) cancelledBefore(q, a transcript.Entry) bool {
	for e := range c.t.Between(q.Seq, a.Seq) {
		if e.Method == "session/cancel" && e.Session == q.Session {
			return true
		}
	}
	return false
}

func (c *converter) name(session string) string {
	n, ok := c.names[session]
	if !ok {
		n = "main"
		if len(c.names) > 0 {
			n = fmt.Sprintf("s%d", len(c.names)+1)
		}
		c.names[session] = n
	}
	return n
}

func (c *converter) acts() error {
	c.seen = map[string]string{}
	for e := range Frames(c.t) {
		if e.Conn > 0 {
			return errors.New("the recording has several agent processes; a scenario of it must be written by hand")
		}
		v := e.JSON()
		switch {
		case e.Source == transcript.Agent && e.Kind == transcript.Response:
			c.response(e)
		case e.Source == transcript.Agent && e.Method == "session/request_permission":
			c.seen[e.Session] = "permission"
		case e.Source == transcript.Agent && e.Update() != "" && !isState(e.Update()):
			c.seen[e.Session] = strings.TrimSuffix(e.Update(), "_chunk")
		case e.Source != transcript.Editor || e.Kind == transcript.Response:
		case e.Method == "session/prompt":
			if !c.checked {
				c.checked = true
				c.line("\ncheck recorded")
			}
			delete(c.seen, e.Session)
			c.line("prompt %s %s", c.name(e.Session), c.word(promptText(e)))
		case e.Method == "session/cancel":
			c.cancels = true
			if what := c.seen[e.Session]; what != "" {
				c.line("await %s", what)
			}
			c.line("cancel %s", c.name(e.Session))
		case e.Method == "session/load" || e.Method == "session/resume":
			c.loads = c.loads || e.Method == "session/load"
			if _, ok := c.names[e.Session]; !ok {
				return fmt.Errorf("#%d loads a session that the recording did not open: record both in one process", e.Seq)
			}
			c.line("session %s %s", strings.TrimPrefix(e.Method, "session/"), c.name(e.Session))
		case e.Method == "session/close":
			c.line("session close %s", c.name(e.Session))
		case e.Method == "session/set_mode":
			c.line("set-mode %s %s", c.name(e.Session), c.word(v.Path("params.modeId").Str()))
		case e.Method == "authenticate":
			c.line("authenticate %s", c.word(v.Path("params.methodId").Str()))
		case e.Method == "initialize", e.Method == "session/new":
		case e.Kind == transcript.Request:
			c.line("request %s %s", e.Method, c.word(string(v.Get("params").Raw())))
		case e.Kind == transcript.Notification && e.Method != "$/cancel_request":
			c.line("notify %s %s", e.Method, c.word(string(v.Get("params").Raw())))
		}
	}
	return nil
}

// response makes the line for an answer of the agent.
func (c *converter) response(e transcript.Entry) {
	v := e.JSON()
	switch e.Method {
	case "session/new":
		if v.Get("result").Exists() {
			c.line("session new %s", c.name(e.Session))
		}
	case "session/prompt":
		stop := v.Path("result.stopReason").Str()
		if stop == "" {
			stop = "error"
		}
		c.line("await turn %s", stop)
	}
}

var brokenOff = regexp.MustCompile(`fail: \{disconnect: now\}`)

// model is the model's script for the scenario's workspace. What was broken off
// in a session with a cancel was broken off by the agent: the model would have
// gone on.
func (c *converter) model(script string) string {
	if c.work != "" {
		script = replacePath(script, c.work, "$WORK")
	}
	if c.cancels {
		script = brokenOff.ReplaceAllString(script, "fail: {hang: true}")
	}
	return script
}
