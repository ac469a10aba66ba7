package prompt

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// These are SGR codes for the colours of lines about the agent's acts.
const (
	faint = "2"
	red   = "31"
	green = "32"
)

// most is the maximum number of lines shown of a diff or of a terminal's output.
const most = 40

// think collects the text of a thought, and shows each line when it is complete.
func (s *screen) think(text string) {
	if s.Output != "text" {
		return
	}
	s.thought.WriteString(printable.Text(text))
	if at := strings.LastIndexByte(s.thought.String(), '\n'); at >= 0 {
		whole, rest := s.thought.String()[:at], s.thought.String()[at+1:]
		s.thought.Reset()
		s.lines("thought", whole)
		s.thought.WriteString(rest)
	}
}

func (s *screen) endThought() {
	if rest := s.thought.String(); rest != "" {
		s.thought.Reset()
		s.lines("thought", rest)
	}
}

// lines shows each line of a text as an aside, except empty ones.
func (s *screen) lines(what, text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \r\n"); line != "" {
			s.aside(what, line)
		}
	}
}

// showPlan shows the entries of a plan that are new or have changed.
func (s *screen) showPlan(entries wire.Value) {
	lines := lists.Collect(entries.Items(), func(e wire.Value) string {
		return OneLine(e.Get("status").Str() + ": " + e.Get("content").Str())
	})
	now := strings.Join(lines, "\n") + "\n"
	for _, line := range lines {
		if !strings.Contains("\n"+s.plan, "\n"+line+"\n") {
			s.aside("plan", line)
		}
	}
	s.plan = now
}

// diff shows a change of a file by a tool call, with the numbers of removed and added lines. It shows the same change
// only once.
func (s *screen) diff(d mockclient.FileDiff) {
	s.mu.Lock()
	again := s.differed[d]
	s.differed[d] = true
	s.mu.Unlock()
	if again || s.Output != "text" {
		return
	}
	_, changes, _ := strings.Cut(golden.Diff(d.OldText, d.NewText), "\n") // the first line only explains - and +
	lines := strings.Split(strings.TrimSuffix(changes, "\n"), "\n")
	in, out := 0, 0
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "+"):
			in++
		case strings.HasPrefix(line, "-"):
			out++
		}
	}
	s.aside("diff", fmt.Sprintf("%s, +%d -%d", OneLine(under(s.work, d.Path)), in, out))
	s.block(lines)
}

// block shows lines below an aside. It colours the lines of a diff.
func (s *screen) block(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, line := range lines {
		if i == most {
			fmt.Fprintln(s.Err, s.Paint(faint, fmt.Sprintf("  … %d more lines", len(lines)-most)))
			return
		}
		colour := faint
		switch {
		case strings.HasPrefix(line, "+"):
			colour = green
		case strings.HasPrefix(line, "-"):
			colour = red
		}
		fmt.Fprintln(s.Err, s.Paint(colour, "  "+printable.Line(line, 300)))
	}
}

// terminal shows a command when it starts. It shows the output and the exit status when the agent has released the
// terminal.
func (s *screen) terminal(e transcript.Entry) {
	switch {
	case e.Source == transcript.Agent && e.Kind == transcript.Request && e.Method == "terminal/create":
		p := e.JSON().Get("params")
		words := []string{p.Get("command").Str()}
		words = append(words, lists.Collect(p.Get("args").Items(), wire.Value.Str)...)
		s.aside("terminal", "$ "+OneLine(strings.Join(words, " ")))
	case e.Source == transcript.Editor && e.Kind == transcript.Response:
		id, r := s.log.At(e.Ref).JSON().Path("params.terminalId").Str(), e.JSON().Get("result")
		t := s.terminals[id]
		if text := r.Get("output"); text.Exists() {
			t.output = text.Str()
		}
		how := r.Get("exitStatus")
		if e.Method == "terminal/wait_for_exit" {
			how = r
		}
		if how.Kind() == wire.Object && !t.ended {
			t.ended = true
			s.aside("terminal", ending(how))
		}
		if text := strings.TrimRight(t.output, "\r\n"); text != "" && t.ended && !t.printed && s.Output == "text" {
			t.printed = true
			s.block(strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n"))
		}
		s.terminals[id] = t
	}
}

// terminal is the data about one terminal of the editor that the screen needs.
type terminal struct {
	output         string // output as last read
	ended, printed bool
}

// ending describes how a command ended.
func ending(status wire.Value) string {
	if signal := status.Get("signal"); signal.Kind() == wire.String {
		return "ended by " + OneLine(signal.Str())
	}
	return "ended with status " + string(status.Get("exitCode").Raw())
}

// under returns the path relative to dir if path lies in dir, else path unchanged.
func under(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// child is a subagent. Its text is shown below the session that delegates to it.
type child struct {
	depth int // 1 for a child of the prompted session, 2 for a child of that child
	title string
	text  strings.Builder // text that no line shows yet
}

// announce shows an update about a child. depth is the depth of the session that sends the update.
func (s *screen) announce(depth int, u wire.Value) {
	id := u.Get("sessionId").Str()
	c := s.children[id]
	if c == nil {
		c = &child{depth: depth + 1}
		s.children[id] = c
	}
	c.title = cmp.Or(u.Get("title").Str(), c.title, id)
	s.flush(c)
	if state := u.Get("state"); state.Get("state").Exists() {
		how := strings.TrimSpace(state.Get("state").Str() + " " + state.Get("stopReason").Str())
		s.below(c.depth, "subagent", OneLine(c.title)+": "+OneLine(how))
	}
}

// ofChild shows an update of a child's session: text in complete lines, and tool calls that have ended.
func (s *screen) ofChild(session string, c *child, u wire.Value) {
	switch u.Get("sessionUpdate").Str() {
	case "agent_message_chunk":
		c.text.WriteString(u.Path("content.text").Str())
	case "subagent_update":
		s.announce(c.depth, u)
	case "tool_call", "tool_call_update":
		if status := u.Get("status").Str(); status == "completed" || status == "failed" {
			s.flush(c)
			s.below(c.depth, "tool", s.calls.get(session, u.Get("toolCallId").Str()).line(status))
		}
	}
}

// flush shows the text of a child that no line shows yet.
func (s *screen) flush(c *child) {
	for line := range strings.Lines(c.text.String()) {
		s.below(c.depth, OneLine(c.title), OneLine(line))
	}
	c.text.Reset()
}

// below shows an aside, indented by depth.
func (s *screen) below(depth int, what, line string) {
	s.indent = strings.Repeat("  ", depth)
	s.aside(what, line)
	s.indent = ""
}
