package prompt

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Outputs returns the allowed values of Screen.Output.
func Outputs() []string { return []string{"text", "simple", "jsonl"} }

// Screen is where the output of a session goes.
type Screen struct {
	// Output is one of Outputs().
	Output string
	// Out receives the agent's text. Err receives lines about the agent's acts.
	Out, Err io.Writer
	// Paint returns a text in a colour, given as an SGR code. It returns the text unchanged if Err shows no colours.
	Paint func(code, text string) string
	// Secrets are removed from all output; nil removes nothing.
	Secrets *secret.Finder

	both bool // Out and Err are the same terminal or file
}

// clean returns a screen whose writers remove secrets.
func (to Screen) clean() Screen {
	to.both = sameFile(to.Out, to.Err)
	if to.Secrets != nil {
		to.Out, to.Err = to.Secrets.Writer(to.Out), to.Secrets.Writer(to.Err)
	}
	return to
}

// screen shows a running session. A goroutine of the screen reads the transcript, so that slow output does not delay
// the agent or a cancel.
type screen struct {
	Screen
	log    *transcript.Transcript
	work   string // the folder of the session
	asks   bool   // the user is asked for permissions
	calls  *callBook
	wake   chan struct{}
	quit   chan struct{}
	done   chan struct{}
	failed error // error of writing to Out; read only after done is closed
	broke  bool  // a tool call failed; read only after done is closed

	mu      sync.Mutex // for lines on Err
	reasons map[int]string
	shown   int // Seq of the last entry that is shown or skipped
	waiting map[int][]chan struct{}
	// differed has the changes of files that were already shown, for example in a question.
	differed map[mockclient.FileDiff]bool

	// Only the screen's goroutine uses the fields below.
	prompted  bool
	session   string
	message   string // id of the last message
	thought   strings.Builder
	plan      string   // the latest plan, one entry per line
	offered   []string // names of the agent's slash commands
	listed    []string // names that were shown last
	terminals map[string]terminal
	broken    bool     // something other than message text has come since the last chunk
	open      []string // ids of tool calls of this turn that have no line yet
	told      []string // ids of tool calls of this turn that have a line
	midLine   bool
	children  map[string]*child // by session
	indent    string            // indent of the next aside
}

// watch returns a screen that shows new entries of a transcript.
func (to Screen) watch(log *transcript.Transcript, work string, asks bool) *screen {
	s := &screen{
		Screen: to, log: log,
		calls: &callBook{known: map[[2]string]*toolCall{}}, reasons: map[int]string{}, waiting: map[int][]chan struct{}{},
		terminals: map[string]terminal{}, children: map[string]*child{},
		differed: map[mockclient.FileDiff]bool{}, work: work, asks: asks,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	log.Observe(func(e transcript.Entry) {
		s.calls.observe(e)
		select {
		case s.wake <- struct{}{}:
		default:
		}
	})
	go s.follow()
	return s
}

func (s *screen) follow() {
	defer close(s.done)
	for next := 1; ; {
		for ; next <= s.log.Len(); next++ {
			s.show(s.log.At(next))
			s.reached(next)
		}
		select {
		case <-s.wake:
			continue
		case <-s.quit:
		}
		if next > s.log.Len() {
			s.breakLine()
			return
		}
	}
}

// reached records that an entry is shown, and wakes the goroutines that wait for this.
func (s *screen) reached(seq int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = seq
	for _, w := range s.waiting[seq] {
		close(w)
	}
	delete(s.waiting, seq)
}

// await waits until an entry and all earlier ones are shown, or until ctx ends.
func (s *screen) await(ctx context.Context, seq int) {
	s.mu.Lock()
	if s.shown >= seq {
		s.mu.Unlock()
		return
	}
	w := make(chan struct{})
	s.waiting[seq] = append(s.waiting[seq], w)
	s.mu.Unlock()
	select {
	case <-w:
	case <-ctx.Done():
	case <-s.done:
	}
}

// finish waits until everything is shown. It gives up when ctx ends, because perhaps nobody reads the output.
func (s *screen) finish(ctx context.Context) error {
	close(s.quit)
	select {
	case <-s.done:
		return s.failed
	default:
	}
	select {
	case <-s.done:
		return s.failed
	case <-ctx.Done():
		return nil
	}
}

// tell writes a line to Err. what is a word for the subject of the line.
func (s *screen) tell(what, line string) {
	s.beside("", what, line)
}

// beside is like tell, but writes indent before the line.
func (s *screen) beside(indent, what, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.Err, indent+s.Paint(faint, "["+what+"] "+line))
}

// because stores the reason why a permission request is rejected.
func (s *screen) because(request int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reasons[request] = why
}

func (s *screen) put(text []byte) {
	if s.failed == nil && len(text) > 0 {
		_, s.failed = s.Out.Write(text)
		s.midLine = text[len(text)-1] != '\n'
	}
}

func (s *screen) endLine() {
	if s.midLine {
		s.put([]byte("\n"))
	}
}

// breakLine ends an unfinished thought and an unfinished line of the agent's text.
func (s *screen) breakLine() {
	s.endThought()
	s.endLine()
}

// aside shows a line about an act of the agent.
func (s *screen) aside(what, line string) {
	if s.Output != "text" {
		return
	}
	s.endThought()
	if s.both {
		s.endLine()
	}
	s.beside(s.indent, what, line)
}

func (s *screen) show(e transcript.Entry) {
	if s.Output == "jsonl" {
		if e.Frame() {
			s.put(append(slices.Clone(e.Raw), '\n'))
		}
		return
	}
	switch {
	case e.Source == transcript.Editor && e.Kind == transcript.Request && e.Method == "session/prompt":
		s.prompted, s.session, s.open, s.told = true, e.Session, nil, nil // earlier calls belong to the history
		s.commands()
	case e.Method == "session/update" && e.JSON().Path("params.update.sessionUpdate").Is("available_commands_update"):
		s.offered = lists.Collect(e.JSON().Path("params.update.availableCommands").Items(), func(c wire.Value) string {
			return "/" + c.Get("name").Str()
		})
		s.commands()
	case !s.prompted:
	case e.Source == transcript.Agent:
		s.ofAgent(e)
	case e.Source == transcript.Editor && e.Kind == transcript.Response && e.Method == "session/request_permission":
		s.permission(e)
	case strings.HasPrefix(e.Method, "terminal/"):
		s.terminal(e)
	case e.Source == transcript.Note && e.Kind == transcript.Noted:
		if r := e.JSON(); r.Get("refused").Exists() {
			s.aside("refused", OneLine(r.Get("refused").Str())+": "+r.Get("text").Str())
		}
	}
}

// commands shows the names of the slash commands at the first prompt, and whenever they change.
func (s *screen) commands() {
	if s.prompted && !slices.Equal(s.offered, s.listed) {
		s.listed = s.offered
		s.aside("commands", OneLine(strings.Join(s.offered, " ")))
	}
}

// ofAgent shows a frame of the agent.
func (s *screen) ofAgent(e transcript.Entry) {
	switch {
	case e.Kind == transcript.Notification && e.Method == "session/update":
		u := e.JSON().Path("params.update")
		if c := s.children[e.Session]; c != nil {
			s.ofChild(e.Session, c, u)
		} else if e.Session == s.session {
			s.update(u)
		}
	case e.Kind == transcript.Response && e.Method == "session/prompt":
		for _, id := range s.open {
			s.tool(id, "")
		}
		s.open = nil
		s.breakLine()
	case s.asks && e.Kind == transcript.Request && e.Method == "session/request_permission":
		s.breakLine() // ends the line before the question
	case strings.HasPrefix(e.Method, "terminal/"):
		s.terminal(e)
	}
}

func (s *screen) update(u wire.Value) {
	switch u.Get("sessionUpdate").Str() {
	case "agent_message_chunk":
		s.say(u.Get("messageId").Str(), u.Get("content"))
	case "agent_thought_chunk":
		s.broken = true
		s.think(u.Get("content").Get("text").Str())
	case "user_message_chunk":
		s.broken = true
	case "plan":
		s.broken = true
		s.showPlan(u.Get("entries"))
	case "subagent_update":
		s.announce(0, u)
	case "notice":
		s.aside(OneLine(u.Get("severity").Str()), OneLine(u.Get("title").Str()+" "+u.Get("description").Str()))
	case "current_mode_update":
		s.aside("mode", OneLine(u.Get("currentModeId").Str()))
	case "tool_call", "tool_call_update":
		id := u.Get("toolCallId").Str()
		if slices.Contains(s.told, id) {
			return
		}
		// The agent may never have announced a call for which it asked permission.
		if !slices.Contains(s.open, id) {
			s.broken = true
			s.open = append(s.open, id)
		}
		if status := u.Get("status").Str(); status == "completed" || status == "failed" {
			s.open = slices.DeleteFunc(s.open, func(o string) bool { return o == id })
			s.told = append(s.told, id)
			s.tool(id, status)
			s.broke = s.broke || status == "failed"
		}
	}
}

// say shows a chunk of a message. A new message begins on a new line.
func (s *screen) say(id string, content wire.Value) {
	s.endThought()
	other := s.broken
	if id != "" && s.message != "" {
		other = id != s.message
	}
	if other {
		s.endLine()
	}
	s.message, s.broken = id, false
	if !content.Get("type").Is("text") {
		what := cmp.Or(content.Get("uri").Str(), content.Path("resource.uri").Str(), content.Get("mimeType").Str())
		s.aside(OneLine(content.Get("type").Str()), OneLine(what))
		return
	}
	text := content.Get("text").Str()
	s.put([]byte(printable.Text(text)))
}

// tool shows a tool call as one line, and then its changes of files. If status is "", the latest status is shown.
func (s *screen) tool(id, status string) {
	c := s.calls.get(s.session, id)
	s.aside("tool", c.line(status))
	for _, d := range c.diffs {
		s.diff(d)
	}
}

func (s *screen) permission(e transcript.Entry) {
	asked := s.log.At(e.Ref).JSON().Get("params")
	c := s.calls.get(e.Session, asked.Path("toolCall.toolCallId").Str())
	answer := e.JSON().Path("result.outcome")
	said := "cancelled"
	o := asked.Get("options").Find("optionId", answer.Get("optionId").Str())
	if o.Exists() && answer.Get("outcome").Is("selected") {
		said = map[string]string{mockclient.AllowOnce: "allowed once", mockclient.AllowAlways: "allowed for always",
			mockclient.RejectOnce: "rejected", mockclient.RejectAlways: "rejected for always"}[o.Get("kind").Str()]
	}
	s.mu.Lock()
	if why := s.reasons[e.Ref]; why != "" {
		said += ", " + OneLine(why)
	}
	s.mu.Unlock()
	s.aside("permission", fmt.Sprintf("%s (%s): %s", OneLine(cmp.Or(c.title, c.id)), OneLine(c.kind), said))
}

func sameFile(a, b io.Writer) bool {
	f, ok := a.(*os.File)
	g, too := b.(*os.File)
	if !ok || !too {
		return false
	}
	one, err1 := f.Stat()
	other, err2 := g.Stat()
	return err1 == nil && err2 == nil && os.SameFile(one, other)
}

// OneLine returns a text as a single line that is safe to print, at most 200 characters long.
func OneLine(text string) string {
	return printable.Line(strings.Join(strings.Fields(text), " "), 200)
}
