package scenarios

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/acp-test/acp-test/transcript"
)

// trouble is a tool call that failed, or of whose success the agent told nothing, with the words
// of its result.
type trouble struct {
	seq  int
	says string
}

// asking is a model request with the results of tool calls.
type asking struct {
	seq     int
	results []string
	// completed are the calls that the agent reported as completed.
	completed map[string]bool
	// since is the Seq of the model request before it, denied that of the editor's last
	// refusal.
	since, denied int
}

// troubles are the results of calls that the agent did not report as completed.
func (a *asking) troubles() (found []trouble) {
	if len(a.completed) >= len(a.results) || a.denied > a.since {
		return nil
	}
	for _, text := range a.results {
		found = append(found, trouble{a.seq, text})
	}
	return found
}

// troubles returns the tool calls that did not work although the editor did not stand
// against them, whatever their words. The report that a call was completed may be logged
// after the model request that followed, but before all else that the agent says.
func (r *run) troubles() []trouble {
	var found []trouble
	next := map[string]*asking{} // what is known of a session's next model request
	last := map[string]*asking{} // its last one, as long as the agent says nothing else
	of := func(session string) *asking {
		if next[session] == nil {
			next[session] = &asking{completed: map[string]bool{}}
		}
		return next[session]
	}
	settle := func(session string) {
		if a := last[session]; a != nil {
			found = append(found, a.troubles()...)
			delete(last, session)
		}
	}
	denied := 0
	for e := range r.t.All() {
		news, text := r.protocol().ToolNews(r.t, e)
		if e.Kind == transcript.ModelRequest || e.Source == transcript.Agent && news != ToolCompleted {
			settle(e.Session)
		}
		switch news {
		case ToolDenied:
			denied = e.Seq
		case ToolFailed:
			if denied <= of(e.Session).since {
				found = append(found, trouble{e.Seq, text})
			}
		case ToolCompleted:
			a := cmp.Or(last[e.Session], of(e.Session))
			a.completed[text] = true
		}
		if e.Kind == transcript.ModelRequest {
			a := of(e.Session)
			a.seq, a.denied = e.Seq, denied
			for text := range e.JSON().Get("results").Items() {
				a.results = append(a.results, text.Str())
			}
			last[e.Session], next[e.Session] = a, &asking{since: e.Seq, completed: map[string]bool{}}
		}
	}
	for session := range last {
		settle(session)
	}
	slices.SortStableFunc(found, func(a, b trouble) int { return a.seq - b.seq })
	return found
}

// excuse returns why a miss of what was to come of a tool call says nothing about
// the agent's duties: a tool call failed before the next prompt that the script sent
// after the miss. It is "" if nothing excuses the miss.
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
	all := r.troubles()
	if len(all) == 0 || all[0].seq > end {
		return ""
	}
	t := all[0]
	return fmt.Sprintf("the tool call that was to do this failed: %q (#%d)", transcript.Clip(r.Plain(t.says), 300), t.seq)
}

// passedOn says that an error with which a turn ended is one that the editor gave to
// a request of the agent in that turn: an agent may fail a tool call with it, or the
// prompt.
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

// retrying returns why a wait that ran out says nothing of the agent: since the
// editor's last word, which was a prompt, it has asked the model for the same reply
// again, and may pause ever longer before it gives up. It is "" if it has not.
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
	return fmt.Sprintf("the agent was still asking the model for the same reply: %d times since #%d", same+1, last.Seq)
}
