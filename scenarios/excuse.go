package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/transcript"
)

// refusal is how an agent words that its tool does not do what the model asked for,
// whatever the workspace holds: there is no such tool, it wants other arguments, it
// has conditions of its own, or a rule of the agent stands against it. That a file or
// a passage is not there is no refusal: what the scenario put there is there.
var refusal = lazy.Regexp(`(?i)` + strings.Join([]string{
	`\b(unknown|no such|invalid|unrecognized|unsupported) (tool|function)`,
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

// trouble is a tool call that an agent did not carry out for a reason of its own.
type trouble struct {
	seq  int
	says string
}

// troubles returns the tool calls that the agent's own tools refused although nothing
// of the editor's stood against them. A call that the editor granted and that the
// agent says the user refused is none: then the agent went against the answer. Nor is
// what a call brought that was completed: it may hold any words.
func (r *run) troubles() []trouble {
	var found []trouble
	granted, denied := 0, 0
	asked := map[string]int{}                 // the last model request of a session
	completed := map[string]map[string]bool{} // the calls of a session that were completed since
	for e := range r.t.All() {
		var texts []string
		if e.Kind == transcript.ModelRequest {
			results := e.JSON().Get("results")
			for text := range results.Items() {
				if len(completed[e.Session]) < results.Len() {
					texts = append(texts, text.Str())
				}
			}
			completed[e.Session] = nil
		}
		switch news, text := r.protocol().ToolNews(r.t, e); news {
		case ToolGranted:
			granted = e.Seq
		case ToolDenied:
			denied = e.Seq
		case ToolFailed:
			texts = append(texts, text)
		case ToolCompleted:
			if completed[e.Session] == nil {
				completed[e.Session] = map[string]bool{}
			}
			completed[e.Session][text] = true
		}
		since := asked[e.Session]
		for _, text := range texts {
			if refusal().MatchString(text) && denied <= since && !(granted > since && denial().MatchString(text)) {
				found = append(found, trouble{e.Seq, text})
			}
		}
		if e.Kind == transcript.ModelRequest {
			asked[e.Session] = e.Seq
		}
	}
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
