package recordings

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// byHand finds the requests of the agent that the scenario's editor would answer in another way, or at another time,
// than the recorded editor. The script holds these requests and answers them itself.
func (c *converter) byHand() {
	c.hand = map[int]string{}
	methods := map[string]bool{}
	open := map[int]transcript.Entry{}
	crossed := map[int]bool{} // whether the editor has acted in the session since the request
	disk := c.disk()
	for e := range replay.Frames(c.t) {
		switch {
		case e.Source == transcript.Agent && e.Kind == transcript.Request:
			open[e.Seq] = e
		case e.Source == transcript.Editor && e.Kind != transcript.Response:
			for seq, q := range open {
				crossed[seq] = crossed[seq] || q.Session == e.Session || e.Session == ""
			}
		case e.Source == transcript.Editor && e.Ref > 0:
			q := c.t.At(e.Ref)
			_, first := open[e.Ref]
			delete(open, e.Ref)
			if q.Source == transcript.Agent && (!first || c.needsHand(q, e, crossed[q.Seq], disk)) {
				c.hand[q.Seq] = fmt.Sprintf("Q%d", q.Seq)
				methods[q.Method] = true
			}
		}
	}
	delete(methods, "session/request_permission")
	delete(methods, "elicitation/create")
	c.holds = slices.Sorted(maps.Keys(methods))
	// The editor holds all requests of a method, so the script must answer all of them.
	c.asked("", func(q transcript.Entry) {
		if _, answered := c.answers[q.Seq]; answered && methods[q.Method] {
			c.hand[q.Seq] = fmt.Sprintf("Q%d", q.Seq)
		}
	})
}

// needsHand reports whether the scenario's editor would by itself answer the request q in another way or at another
// time than the recorded answer a. crossed says that the editor acted between q and a.
func (c *converter) needsHand(q, a transcript.Entry, crossed bool, disk *disk) bool {
	v := a.JSON()
	code, failed := v.Path("error.code").Text(), v.Get("error").Exists()
	p := q.JSON().Get("params")
	switch q.Method {
	case "session/request_permission":
		outcome := v.Path("result.outcome.outcome")
		return !failed && !outcome.Is("cancelled") && (crossed || c.v2 && !outcome.Is("selected"))
	case "elicitation/create":
		return code != "-32800" && (failed || crossed || !plainElicitation(v.Get("result"))) // -32800: cancelled by the agent
	case "fs/read_text_file":
		return crossed || disk.differs(p, v)
	case "fs/write_text_file":
		if !failed {
			disk.write(p.Get("path").Str(), p.Get("content").Str())
		}
		return crossed || failed
	case "terminal/create":
		return failed
	case "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release":
		return false
	}
	return !failed || code != "-32601"
}

// plainElicitation reports whether the scenario's editor can give this answer to an elicitation: accept, or else
// decline or cancel without further members.
func plainElicitation(result wire.Value) bool {
	action := result.Get("action")
	return action.Is("accept") || result.Len() == 1 && (action.Is("decline") || action.Is("cancel"))
}

// disk has the content of the workspace files as the scenario's editor would read them, by path.
type disk struct {
	work  string
	files map[string]string
}

func (c *converter) disk() *disk {
	d := &disk{c.out.work, map[string]string{}}
	if !c.noted {
		for name, data := range Files(c.t) {
			d.files[path.Join(d.work, name)] = string(data)
		}
		return d
	}
	for _, f := range c.places.Files {
		if f.Text != nil {
			d.files[path.Join(d.work, f.Path)] = *f.Text
		}
	}
	return d
}

func (d *disk) write(name, text string) { d.files[path.Clean(name)] = text }

// read returns what the scenario's editor answers to a request to read a file. known is false if the recording does
// not show the content of the file.
func (d *disk) read(p wire.Value) (text string, known bool) {
	text, known = d.files[path.Clean(p.Get("path").Str())]
	line, from := p.Get("line").Int()
	limit, cut := p.Get("limit").Int()
	if !known || !from && !cut {
		return text, known
	}
	lines := strings.SplitAfter(text, "\n")
	lines = lines[min(max(int(line)-1, 0), len(lines)):]
	if cut {
		lines = lines[:min(max(int(limit), 0), len(lines))]
	}
	return strings.Join(lines, ""), true
}

// differs reports whether the scenario's editor would answer a request to read a file in another way than the recorded
// answer.
func (d *disk) differs(p, answer wire.Value) bool {
	text, known := d.read(p)
	if failure := answer.Get("error"); failure.Exists() {
		return known || failure.Get("code").Text() != "-32002"
	}
	return !known || answer.Path("result.content").Str() != text
}

// asks adds a line that awaits the request q, which the script answers.
func (c *converter) asks(q transcript.Entry) {
	ref := c.hand[q.Seq]
	if ref == "" {
		return
	}
	c.awaitSeen(q.Session)
	pattern := "request " + q.Method
	switch q.Method {
	case "session/request_permission":
		pattern = "permission"
	case "elicitation/create":
		pattern = "elicitation"
	}
	l := script.New("await "+pattern+" %s", c.of(q.Session))
	l.As = script.Text(ref)
	c.lines = append(c.lines, l)
}

// answersByHand adds the line for an answer of the editor, if the script must give this answer. It returns false for
// other answers.
func (c *converter) answersByHand(e transcript.Entry) bool {
	ref := c.hand[e.Ref]
	if ref == "" {
		return false
	}
	v := e.JSON()
	option := script.Option("result", c.json(string(v.Get("result").Raw())))
	if failure := v.Get("error"); failure.Exists() {
		option = script.Option("error", c.json(string(failure.Raw())))
	}
	c.line("answer %s %s", ref, option)
	return true
}
