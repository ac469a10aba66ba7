package replay

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Session is the log of one connection of an editor to our agent.
type Session struct {
	Log *transcript.Transcript
	// Left lists processes of our agent that were still running after the editor had ended.
	Left []string
	// Ended describes how the editor ended, if it may have left a turn open. It is "" if the editor ended properly or
	// the end is unknown.
	Ended string
	// Seen describes the editor's process. It is nil if acp-test did not start the editor.
	Seen *Seen
	// Account is the editor's report of what its user saw. Only the last of an editor's sessions has it; nil if the
	// editor wrote none.
	Account *Account
}

// Seen describes the behavior of an editor's process outside of its connections.
type Seen struct {
	Printed string // the editor's output on stdout
	Late    bool   // acp-test had to end it after the timeout
}

// Editor judges an editor by all its connections to our agent together. It applies the rules for clients, and the
// checks of the script if script is not nil.
func (j Judge) Editor(res results.Result, script *language.AgentScript, sessions []Session) results.Result {
	res.Verdict = results.Pass
	if len(sessions) == 0 {
		res.Verdict, res.Reason = results.Error,
			"the editor never started the agent: is {agent} or ACP_TEST_AGENT in its command line?"
		return res
	}
	said := 0
	for _, s := range sessions {
		c := rules.Config{Severity: j.Severity}
		if script != nil {
			c.Off = script.RulesOff
		}
		checker := j.Rules.NewChecker(c)
		told := j.telling(s.Log, checker.Observe)
		one := results.Result{Verdict: results.Pass}
		j.conclude(&one, s.Log, checker, rules.End{Clean: told.exited}, told, TheEditor)
		res.Findings = append(res.Findings, one.Findings...)
		res.Verdict = results.Worst(res.Verdict, one.Verdict)
		res.Frames += one.Frames
		if res.Evidence == nil {
			res.Evidence = map[string]int{}
		}
		for id, n := range one.Evidence {
			res.Evidence[id] += n
		}
		if s.Ended != "" && j.leftTurn(s.Log) {
			res.Verdict = results.Worst(res.Verdict, results.Inconclusive)
			one.Reason = cmp.Or(one.Reason, "the editor left during a turn that it had not cancelled: "+s.Ended)
		}
		res.Reason = cmp.Or(res.Reason, one.Reason)
		if said += told.said; res.AgentName == "" {
			res.AgentName, res.AgentVersion = one.AgentName, one.AgentVersion
		}
	}
	reached := 0
	if script == nil {
		script = &language.AgentScript{}
	}
	if why := inapplicable(sessions); why != "" {
		return unjudged(res, why)
	}
	for i := range script.Checks {
		k := j.check(res.ID, &script.Checks[i], sessions)
		if k.Verdict != results.Skip {
			reached++
		}
		res.Checks = append(res.Checks, k)
	}
	if a := sessions[len(sessions)-1].Account; a != nil {
		res.Checks = append(res.Checks, j.accounted(res.ID, a, sessions)...)
	}
	for _, k := range res.Checks {
		if k.Verdict != results.Skip {
			res.Verdict = results.Worst(res.Verdict, k.Verdict)
		}
	}
	switch {
	case res.Verdict != results.Pass:
	case said == 0:
		res.Verdict, res.Reason = results.Skip, "the editor sent nothing, so nothing was judged"
	case reached == 0 && len(script.Checks) > 0:
		res.Verdict, res.Reason = results.Skip, "the editor did nothing that the checks are about"
	}
	return res
}

func (j Judge) check(id string, c *language.AgentCheck, sessions []Session) results.Check {
	k := results.Check{ID: id + "#" + c.Slug, Slug: c.Slug, Line: c.Line, Title: c.Title, Requirements: c.Requirements,
		Class: results.ClassOf(j.Rules, c.Requirements), Verdict: results.Pass}
	for i := range c.Lines {
		observed, ok, applies := j.expect(&c.Lines[i], sessions)
		switch {
		case !applies:
			k.Verdict, k.Reason = results.Skip, observed
			return k
		case !ok:
			k.Verdict = k.Class
			k.Failure = &transcript.Failure{Expected: []string{c.Lines[i].Text}, Observed: observed, Tail: j.tail(sessions)}
			return k
		}
	}
	return k
}

// unjudged returns the result of an editor whom no check judges. The rules have judged it already.
func unjudged(res results.Result, why string) results.Result {
	if res.Verdict == results.Pass {
		res.Verdict, res.Reason = results.Skip, why
	}
	return res
}

// inapplicable returns why a scenario proves nothing about the editors of these sessions, or "" if it does.
func inapplicable(sessions []Session) string {
	for _, s := range sessions {
		for e := range s.Log.All() {
			if e.Kind == serve.Inapplicable {
				return e.JSON().Get("text").Str()
			}
		}
	}
	return ""
}

// expect judges one "expect" line of a script and describes what the editor did. applies is false if the editor never
// reached the situation of the line.
func (j Judge) expect(x *language.AgentExpectation, sessions []Session) (observed string, ok, applies bool) {
	switch x.What {
	case "shown", "ended":
		return j.ofItself(x, sessions)
	case "left-open":
		return j.leftOpen(x, sessions)
	case "left-running":
		return leftRunning(x, sessions)
	}
	c := counting{judge: j, of: x, granted: x.What != "answered" || x.Where == ""}
	for _, s := range sessions {
		for e := range s.Log.All() {
			c.see(s.Log, e)
		}
	}
	switch {
	case x.What == "answered" && !c.asked && slices.ContainsFunc(sessions, j.leftUnread):
		return "the editor stopped reading during a turn, before the agent could send request " + x.About, false, true
	case x.What == "answered" && !c.asked:
		return "the agent never sent request " + x.About, false, false
	case !c.granted:
		return "the editor did not grant request " + x.Where, false, false
	case x.What == "answered" && c.seen == 0 && c.gone:
		observed = "the editor closed the agent's input before it can have read request " + x.About
		return observed, false, false
	case c.seen == 0:
		observed = "there was none"
	case len(c.others) > 0:
		observed = strings.Join(c.others, "; ")
	default:
		observed = fmt.Sprintf("%d of %d match", c.matched, c.seen)
	}
	return observed, counted(x.Count, c.matched) != x.Negate, true
}

// counting counts the frames that match one expect line of a check.
type counting struct {
	judge Judge
	of    *language.AgentExpectation

	matched, seen int
	others        []string // texts of the first frames that do not fit
	values        []string // those at the path of "repeated"
	asked         bool     // our agent sent the request that the line names
	gone          bool     // the editor left before it could answer the request
	granted       bool     // the editor answered the request of where= with a result
}

// see counts one entry of a session's log, if the line is about entries of this kind.
func (c *counting) see(log *transcript.Transcript, e transcript.Entry) {
	x := c.of
	switch x.What {
	case "hung-up":
		if e.Kind == transcript.Ended {
			if c.seen++; e.JSON().Get("end").Is(serve.EndHungUp) {
				c.matched++
			}
		}
	case "answered":
		if v := e.JSON(); e.Source == transcript.Note && e.Kind == serve.Named && v.Get("name").Is(x.About) {
			seq, _ := v.Get("seq").Int()
			c.asked, c.gone = true, c.judge.leftAtOnce(log, int(seq))
		}
		if e.Source == transcript.Editor && e.Kind == transcript.Response {
			c.granted = c.granted || isAsked(log, x.Where, e.Ref) && e.JSON().Get("result").Exists()
			if isAsked(log, x.About, e.Ref) {
				c.fits(log, e)
			}
		}
	case "sent", "tried", "repeated":
		if e.Source == transcript.Editor && e.Kind != transcript.Response && e.Method == x.About {
			c.fits(log, e)
		}
		if x.What == "tried" && stopped(e, x.About) {
			c.seen++
			c.matched++
		}
	}
}

// stopped reports whether the network failed for a frame with this method, so that the agent did not get the frame.
func stopped(e transcript.Entry, method string) bool {
	v := e.JSON()
	return e.Kind == serve.Troubled && v.Get("message").Is(method) && v.Get("stopped").Exists()
}

// fits counts a frame that the line is about, and whether the frame meets the line's conditions. It keeps the texts
// of the first three frames that do not.
func (c *counting) fits(log *transcript.Transcript, e transcript.Entry) {
	c.seen++
	again := false
	if v, there := c.judge.field(c.of.Path, log, e); there && c.of.What == "repeated" {
		again = slices.Contains(c.values, v)
		c.values = append(c.values, v)
	}
	switch {
	case c.of.What == "repeated" && !again:
	case c.judge.matches(c.of, log, e):
		c.matched++
	case len(c.others) < 3:
		c.others = append(c.others, shorten(c.judge.Text.Line(e)))
	}
}

// leftOpen judges a line about requests of the editor that were unanswered when the editor left.
func (j Judge) leftOpen(x *language.AgentExpectation, sessions []Session) (observed string, ok, applies bool) {
	for _, s := range sessions {
		if open := j.openAtEnd(s.Log); len(open) > 0 {
			return "the editor left while " + strings.Join(open, ", ") + " was open", !x.Negate, true
		}
	}
	return "no request of the editor was open when it left", x.Negate, true
}

// leftRunning judges a line about processes of our agent that outlived the editor.
func leftRunning(x *language.AgentExpectation, sessions []Session) (observed string, ok, applies bool) {
	left := lists.Flat(sessions, func(s Session) []string { return s.Left })
	if len(left) == 0 {
		return "the editor left no process running", x.Negate, true
	}
	return "left running: " + strings.Join(left, "; "), !x.Negate, true
}

// counted reports whether the number got meets the script's condition want: "2", ">=2", "<=2", or "" for at least
// one.
func counted(want string, got int) bool {
	n, _ := strconv.Atoi(strings.TrimLeft(want, "<>=")) // the parser has validated want
	switch {
	case want == "":
		return got >= 1
	case strings.HasPrefix(want, ">="):
		return got >= n
	case strings.HasPrefix(want, "<="):
		return got <= n
	}
	return got == n
}

// ofItself judges a line about the editor's process instead of its connections: its output or its exit.
func (j Judge) ofItself(x *language.AgentExpectation, sessions []Session) (observed string, ok, applies bool) {
	seen := sessions[len(sessions)-1].Seen
	switch {
	case seen == nil:
		return "acp-test did not start the editor, so it saw no exit", false, false
	case x.What == "ended":
		if observed = "it ended by itself"; seen.Late {
			observed = "it still ran at its timeout"
		}
		return observed, seen.Late == x.Negate, true
	case slices.ContainsFunc(sessions, func(s Session) bool { return len(j.openAtEnd(s.Log)) > 0 }):
		return "the editor left before the agent had sent all of its messages", false, false
	}
	where, text := regexp.MustCompile(x.Where), regexp.MustCompile(x.About) // the parser has compiled both
	if seen.Printed == "" || !where.MatchString(seen.Printed) {
		return "the editor printed no line that matches " + x.Where, false, false
	}
	return "it printed " + strconv.Quote(shorten(seen.Printed)), text.MatchString(seen.Printed) != x.Negate, true
}

// requests tracks the unanswered requests of an editor, by their Seq.
type requests struct {
	methods map[int]string
	prompts map[int]bool // prompts that are completed by another frame than the response
	of      Protocol
}

func (j Judge) requests() *requests {
	return &requests{methods: map[int]string{}, prompts: map[int]bool{}, of: j.Protocol}
}

// see adds or removes requests according to an entry.
func (r *requests) see(e transcript.Entry) {
	switch {
	case e.Source == transcript.Editor && e.Kind == transcript.Request:
		r.methods[e.Seq] = e.Method
		_, later := r.of.(transcript.Completer)
		_, prompt := r.of.Prompt(e)
		r.prompts[e.Seq] = later && prompt
	case e.Source != transcript.Agent || e.Ref == 0:
	case e.Kind == transcript.Response && r.prompts[e.Ref] && !e.JSON().Get("error").Exists():
	default:
		delete(r.methods, e.Ref)
	}
}

// openAtEnd returns the methods of the editor's requests that were unanswered when the editor closed the agent's
// input. It returns nil if the editor did not close the input.
func (j Judge) openAtEnd(t *transcript.Transcript) []string {
	open := j.requests()
	for e := range t.All() {
		if e.Source == transcript.Process && e.Kind == transcript.StdinClosed {
			return slices.Sorted(maps.Values(open.methods))
		}
		open.see(e)
	}
	return nil
}

// leftTurn reports whether the editor closed the input of a running agent during a turn that the editor had not
// cancelled.
func (j Judge) leftTurn(t *transcript.Transcript) bool {
	open := j.requests()
	for e := range t.All() {
		switch e.Kind {
		case transcript.StdinClosed:
			return len(open.prompted(t, "")) > 0
		case transcript.Exited, serve.Shut, serve.Troubled:
			return false // the agent left before the editor, or the network failed
		}
		if open.see(e); j.Protocol.Cancels(e) {
			for _, seq := range open.prompted(t, e.Session) {
				delete(open.methods, seq)
			}
		}
	}
	return false
}

// prompted returns the Seqs of the unanswered prompts in one session. If session is "", it returns those of all
// sessions.
func (r *requests) prompted(t *transcript.Transcript, session string) (seqs []int) {
	for seq := range r.methods {
		if _, prompt := r.of.Prompt(t.At(seq)); prompt && (session == "" || t.At(seq).Session == session) {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// probe is the method prefix of requests by which our agent checks whether the connection is still open.
const probe = "_acp-test/"

// crossing is the longest time after an agent's request in which the editor may close the input without having seen
// the request. On a busy machine, the request and the close may cross.
const crossing = time.Second

// leftAtOnce reports whether the editor is excused for not answering the request seq, because it was leaving. That is
// so if the editor closed the agent's input before the request, or so soon after it that the two may have crossed. An
// editor without an unanswered request of its own may leave at any time before the agent's next frame. An editor with
// an open turn must answer a probe: it lost the connection if it left the turn open.
func (j Judge) leftAtOnce(t *transcript.Transcript, seq int) bool {
	open, asked, next := j.requests(), t.At(seq), false
	for e := range t.All() {
		switch {
		case e.Source == transcript.Process && e.Kind == transcript.StdinClosed:
			crossed := seq > 0 && (e.Seq < seq || e.At-asked.At < crossing) // 0: written after the editor stopped reading
			return len(open.methods) == 0 && !next || crossed && !strings.HasPrefix(asked.Method, probe)
		case e.Source == transcript.Editor && e.Ref > seq:
			return false // the editor has answered a later request, so it has read this one
		case e.Source == transcript.Agent && e.Seq > seq:
			next = true
		}
		open.see(e)
	}
	return false
}

// leftUnread reports whether the editor closed the agent's output while a request of the editor was unanswered.
func (j Judge) leftUnread(s Session) bool {
	open := j.requests()
	for e := range s.Log.All() {
		if e.Kind == serve.Unread {
			return len(open.methods) > 0
		}
		open.see(e)
	}
	return false
}

// isAsked reports whether the agent's request seq has this name in the script. The name is in a note that follows the
// request. isAsked searches the whole log, because the editor's response may come before the note.
func isAsked(t *transcript.Transcript, name string, seq int) bool {
	for e := range t.All() {
		if e.Source == transcript.Note && e.Kind == serve.Named && e.JSON().Get("name").Is(name) {
			if n, _ := e.JSON().Get("seq").Int(); int(n) == seq {
				return true
			}
		}
	}
	return false
}

func (j Judge) matches(x *language.AgentExpectation, t *transcript.Transcript, e transcript.Entry) bool {
	for _, f := range x.Fields {
		want, err := f.Value.Expand(func(name string) (string, error) { return "$" + name, nil })
		if err != nil {
			return false
		}
		got, there := j.field(f.Path, t, e)
		fits := false
		switch f.Operator {
		case "=", "!=":
			fits = there && slices.Contains(strings.Split(want, "|"), got)
		case "~", "!~":
			re, err := regexp.Compile(want)
			fits = err == nil && there && re.MatchString(got)
		}
		if fits == strings.HasPrefix(f.Operator, "!") {
			return false
		}
	}
	return true
}

// field returns the value at a path in an editor's frame. It reports false if the frame has no such value.
func (j Judge) field(path string, t *transcript.Transcript, e transcript.Entry) (string, bool) {
	v := e.JSON()
	if path == "error" {
		code := v.Path("error.code")
		return code.Text(), code.Exists()
	}
	if value, ok, known := j.Protocol.Answer(path, t.At(e.Ref), e); known {
		return value, ok
	}
	for _, root := range []wire.Value{v.Get("params"), v.Get("result"), v.Get("error"), v} {
		if found := root.Path(path); found.Exists() {
			return found.Text(), true
		}
	}
	return "", false
}

// tail returns the texts of the last frames of the last session.
func (j Judge) tail(sessions []Session) []string {
	t := sessions[len(sessions)-1].Log
	var lines []string
	for e := range Frames(t) {
		lines = append(lines, shorten(numbers([]int{e.Seq})+" "+j.Text.Line(e)))
		if len(lines) > 8 {
			lines = lines[1:]
		}
	}
	return lines
}
