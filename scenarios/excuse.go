package scenarios

import (
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/transcript"
)

// denial matches an agent's statement that the user refused a tool call. Such a statement does not excuse a miss.
var denial = lazy.Regexp(`(?i)\buser\b.{0,40}\b(reject|den(y|ied)|declin|refus|disallow|cancel)` +
	`|\b(reject|denied|declin|refus|disallow|cancel)\w* by (the )?user`)

// trouble is a tool call that failed, or that the agent did not show to the editor. say is the agent's text about the
// call, for the editor or for the model.
type trouble struct {
	seq      int
	how, say string
	hidden   bool // the agent did not show the call
}

// calls tracks the tool calls of a session while the log is read.
type calls struct {
	shown   map[string]int // tool call -> Seq of its first update
	results int            // number of results that the agent sent to the model
	since   int            // Seq of the agent's latest model request
	unshown []trouble      // results in the latest model request, without calls that the editor refused

	replies []string        // steps of the model's replies since the latest prompt
	refused map[string]bool // replies whose calls the editor refused
}

// troubles returns the tool calls that failed or were not shown. It omits calls that the editor refused or that the
// agent reports as refused. It also omits a call that failed without a permission request, if the editor had refused
// the same reply of the model earlier. The update that shows a call may be logged later than the model request with
// the call's result, but not later than the following model request.
func (r *run) troubles() []trouble {
	var found []trouble
	sessions := map[string]*calls{}
	settle := func(c *calls) {
		if len(c.shown) < c.results {
			found = append(found, c.unshown...)
		}
		c.unshown = nil
	}
	denied := 0
	for e := range r.t.All() {
		c := sessions[e.Session]
		if c == nil {
			c = &calls{shown: map[string]int{}, refused: map[string]bool{}}
			sessions[e.Session] = c
		}
		stands := func(since int, text string) bool { return denied > since || denial().MatchString(text) }
		if e.Kind == transcript.ModelRequest {
			settle(c)
			c.told(e, stands)
			continue
		}
		switch {
		case r.protocol().Prompts(e):
			c.replies = nil
		case e.Kind == transcript.ModelAnswer:
			c.replies = append(c.replies, e.JSON().Get("steps").Text())
		}
		switch news := r.protocol().ToolNews(r.t, e); news.Kind {
		case ToolDenied:
			denied = e.Seq
			if n := len(c.replies); n > 0 {
				c.refused[c.replies[n-1]] = true
			}
		case ToolShown, ToolFailed:
			if c.shown[news.Call] == 0 {
				c.shown[news.Call] = e.Seq
			}
			if news.Kind == ToolFailed && !c.refusedBefore() && !stands(min(c.since, c.shown[news.Call]), news.Says) {
				found = append(found, trouble{e.Seq, "the tool call that was to do this failed", news.Says, false})
			}
		}
	}
	for _, c := range sessions {
		settle(c)
	}
	slices.SortStableFunc(found, func(a, b trouble) int { return a.seq - b.seq })
	return found
}

// refusedBefore reports whether the editor ever refused one of this turn's model replies. It compares all replies of
// the turn, because an agent's update may be logged after later replies.
func (c *calls) refusedBefore() bool {
	return slices.ContainsFunc(c.replies, func(reply string) bool { return c.refused[reply] })
}

// told counts the tool results in a model request. It adds those that are not excused to c.unshown. stands reports
// whether a result belongs to a refused call.
func (c *calls) told(e transcript.Entry, stands func(since int, text string) bool) {
	for text := range e.JSON().Get("results").Items() {
		c.results++
		if e.Session != "" && !stands(c.since, text.Str()) { // without a session, the call of the result is unknown
			c.unshown = append(c.unshown, trouble{e.Seq, "the agent showed no tool call that was to do this, " +
				"and told its model", text.Str(), true})
		}
	}
	c.since = e.Seq
}

// excuse returns the reason why a miss that depends on a tool call proves nothing: a tool call failed before the
// script's next prompt. It returns "" if there is no such reason.
func (r *run) excuse(m *Miss) string {
	if why := r.passedOn(m.by); why != "" {
		return why
	}
	if !m.ofTool {
		return ""
	}
	prompts := r.prompts()
	next, _ := slices.BinarySearch(prompts, m.at+1)
	end := r.t.Len()
	if next < len(prompts) {
		end = prompts[next]
	}
	all := slices.DeleteFunc(r.troubles(), func(t trouble) bool {
		return t.hidden && !m.Effect // the line is about the agent's updates, not the effect
	})
	if len(all) == 0 || all[0].seq > end {
		return ""
	}
	t := all[0]
	return fmt.Sprintf("%s: %q (#%d)", t.how, transcript.Clip(r.Plain(t.say), 300), t.seq)
}

// passedOn returns a reason if the turn ended with the same error code that the editor had sent in that turn, else
// "". An agent may fail the tool call or the whole prompt with the editor's error.
func (r *run) passedOn(end transcript.Entry) string {
	code := end.JSON().Path("error.code")
	if end.Source != transcript.Agent || !r.endsTurn(end) || !code.Exists() {
		return ""
	}
	for e := range r.t.Between(end.Ref, end.Seq) {
		given := e.JSON().Path("error.code")
		if e.Source == transcript.Editor && e.Session == end.Session && given.Exists() && given.Text() == code.Text() {
			return fmt.Sprintf("the agent ended the turn with the error that the editor gave to %s (#%d)", e.Method, e.Seq)
		}
	}
	return ""
}

// retrying returns the reason why a wait that timed out proves nothing: the agent has repeated the same model request
// since the last prompt. Before each further attempt, it may pause longer. retrying returns "" if the agent did not
// repeat a request, or if the editor has sent something since.
func (r *run) retrying() string {
	prompts := r.prompts()
	if len(prompts) == 0 {
		return ""
	}
	var last transcript.Entry
	same := 0
	for e := range r.t.From(prompts[len(prompts)-1] + 1) {
		switch {
		case e.Source == transcript.Editor && e.Kind != transcript.Response:
			return ""
		case e.Kind != transcript.ModelRequest || !e.JSON().Get("lane").Is("main"):
		case e.JSON().Get("step").Text() != last.JSON().Get("step").Text():
			last, same = e, 0
		default:
			same++
		}
	}
	if same == 0 {
		return ""
	}
	return fmt.Sprintf("the agent still requested the same reply from the model, %d times since #%d", same+1, last.Seq)
}
