package scenarios

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/transcript"
)

// refusal is how an agent words that its tool does not do what the model asked for,
// whatever the workspace holds: there is no such tool, it wants other arguments, it
// has conditions of its own, or a rule of the agent stands against it. That a file or
// a passage is not there is no refusal: what the scenario put there is there.
var refusal = lazy.Regexp(`(?i)` + strings.Join([]string{
	`\b(unknown|no such|invalid|unrecognized|unsupported|unavailable) (tool|function)`,
	`\bno (tool|function)\b`,
	`\b(tool|function)\b.{0,60}\b(unknown|unavailable|not (exist|available|supported|enabled|registered|(be )?found))`,
	`\binvalid (tool )?(argument|input|param|request|option|type|value|json)`,
	`\bvalidation (error|fail)|\bunrecognized key|\bunexpected (property|key|argument|keyword)`,
	`\bmissing (required )?(argument|param|property|field|key)|\brequired (property|param|field|argument|key)`,
	`\b(argument|param|property|field|input)s?\b.{0,60}\b(required|missing|must be|must have|expected)`,
	`\balready exists`,
	`\b(folder|directory)\b[^\n]{0,300}\b(does not|doesn't) exist`,
	`\b(not|hasn't|never) (yet )?(been )?read\b|\bmust (first )?(be )?read\b`,
	`\bread (it|the file|this file) (first|before)`,
	`\bmodified since`,
	`\btoo (large|big|long)\b`,
	`\bnot (supported|implemented|enabled)\b|\bdisabled\b`,
	`\b(blocked|forbidden|prevented|disallowed|not (allowed|permitted)) (by|in|outside|while|during)\b`,
	`\b(plan|read-?only|sandbox)(ed)? (mode|policy)`,
}, "|"))

// denial is how an agent words that the user refused.
var denial = lazy.Regexp(`(?i)\buser\b.{0,40}\b(reject|den(y|ied)|declin|refus|disallow|cancel)` +
	`|\b(reject|denied|declin|refus|disallow|cancel)\w* by (the )?user|permission (was )?(denied|refused|rejected)`)

// cutOff is how an agent words that its tool did not reach another host.
var cutOff = lazy.Regexp(`(?i)\b(fetch failed|network|proxy|forbidden|status( code)?:? 403|connection refused` +
	`|econn\w+|enotfound|eai_again|getaddrinfo|could not resolve)\b`)

// refusals tells which texts are those of tools that did not do what the model asked for,
// by the hosts that the proxy has refused so far.
type refusals struct {
	hosts []string
	last  int // Seq of the last refusal
}

// match reports whether a text is one, of a tool that ran after an entry.
func (f *refusals) match(text string, since int) bool {
	return refusal().MatchString(text) || f.last > since && cutOff().MatchString(text) ||
		slices.ContainsFunc(f.hosts, func(host string) bool { return strings.Contains(text, host) })
}

// see notes a host that the proxy refused.
func (f *refusals) see(e transcript.Entry) {
	if e.Kind == fakellm.Egress {
		host := e.JSON().Get("host").Str()
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		f.hosts, f.last = append(f.hosts, host), e.Seq
	}
}

// trouble is a tool call that an agent did not carry out for a reason of its own.
type trouble struct {
	seq  int
	says string
}

// asking is a model request with what stands against the calls whose results it has.
type asking struct {
	seq     int
	results []string
	// completed are the calls that the agent told to be completed.
	completed map[string]bool
	// since is the Seq of the model request before it, granted and denied are those of
	// the editor's last answers.
	since, granted, denied int
}

// troubles are those of the results with which the agent's own tools refused.
func (a *asking) troubles(refused *refusals) (found []trouble) {
	for _, text := range a.results {
		if len(a.completed) < len(a.results) && refused.match(text, a.since) && a.denied <= a.since &&
			!(a.granted > a.since && denial().MatchString(text)) {
			found = append(found, trouble{a.seq, text})
		}
	}
	return found
}

// troubles returns the tool calls that the agent's own tools refused although nothing
// of the editor's stood against them. A call that the editor granted and that the
// agent says the user refused is none: then the agent went against the answer. Nor is
// what a call brought that was completed: it may hold any words. That it was may be
// read after the model request that followed, but before all else that the agent says.
func (r *run) troubles() []trouble {
	var found []trouble
	var refused refusals
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
			found = append(found, a.troubles(&refused)...)
			delete(last, session)
		}
	}
	granted, denied := 0, 0
	for e := range r.t.All() {
		refused.see(e)
		news, text := r.protocol().ToolNews(r.t, e)
		if e.Kind == transcript.ModelRequest || e.Source == transcript.Agent && news != ToolCompleted {
			settle(e.Session)
		}
		switch news {
		case ToolGranted:
			granted = e.Seq
		case ToolDenied:
			denied = e.Seq
		case ToolFailed:
			failed := asking{e.Seq, []string{text}, nil, of(e.Session).since, granted, denied}
			found = append(found, failed.troubles(&refused)...)
		case ToolCompleted:
			a := cmp.Or(last[e.Session], of(e.Session))
			a.completed[text] = true
		}
		if e.Kind == transcript.ModelRequest {
			a := of(e.Session)
			a.seq, a.granted, a.denied = e.Seq, granted, denied
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
// the agent's duties: its own tool refused a call, before the next prompt that the
// script sent after the miss. It is "" if nothing excuses the miss.
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
	return fmt.Sprintf("the agent's own tool refused what the model asked for: %q (#%d)",
		transcript.Clip(r.Plain(t.says), 300), t.seq)
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
