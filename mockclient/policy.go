package mockclient

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/glob"
)

// The kinds of permission options (ACP v1, PermissionOptionKind).
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// Policy decides permission requests before the act. The first rule that
// matches decides; without one the request is rejected (reject_once, else
// reject_always, else cancelled), and a Remark says so. A Policy counts: do not
// copy it, and use one for each connection.
type Policy struct {
	Rules []Rule
	// Remember makes the user's "always" hold: once an *_always option was
	// chosen for a tool kind in a session, later requests for that kind get
	// the same answer without looking at the rules, and a Remark says so. By
	// default remembering is the agent's part.
	Remember bool

	mu      sync.Mutex
	matched []int
	always  map[[2]string]string // session and tool kind to option kind
}

// Rule is one line of a Policy. Empty conditions match everything.
type Rule struct {
	// Kind is the tool's kind: "edit", "execute", … A request that does not
	// name it has the kind its tool call was announced with.
	Kind string
	// Title is a glob over the tool call's title (* and ?), or a regular
	// expression between slashes.
	Title string
	// Offers is an option kind or id that must be on offer.
	Offers string
	// Nth is the n-th request that meets the other conditions, from 1; 0 is
	// every one.
	Nth int
	// After skips the first n requests that meet the other conditions.
	After int

	Answer Answer
}

// Answer is what to do with a permission request. Exactly one of the first
// seven fields should be set; the first that is set counts.
type Answer struct {
	// Never leaves the request open for good; not even a cancel answers it.
	Never bool
	// Hold leaves the request open for Editor.Answer. A cancel of the turn
	// answers it with cancelled, unless AfterCancel.
	Hold bool
	// Error answers with an error.
	Error *RPCError
	// Result answers with any JSON, on purpose.
	Result any
	// Cancelled answers with the outcome cancelled.
	Cancelled bool
	// Option chooses an option id, offered or not.
	Option string
	// Kind chooses the first option of a kind. AllowOnce may use AllowAlways
	// and RejectOnce may use RejectAlways if nothing better is offered, with
	// a Remark; without that the answer is cancelled, with a Remark that is
	// inconclusive.
	Kind string

	// Delay is waited before the answer.
	Delay time.Duration
	// AfterCancel keeps the request open when the turn is cancelled, so that
	// the answer comes late, on purpose.
	AfterCancel bool
	// Twice sends the answer two times, on purpose.
	Twice bool
}

// Always is a policy of one rule for every request.
func Always(a Answer) *Policy { return &Policy{Rules: []Rule{{Answer: a}}} }

// Allow is the policy that allows everything once.
func Allow() *Policy { return Always(Answer{Kind: AllowOnce}) }

// Reject is the policy that rejects everything once.
func Reject() *Policy { return Always(Answer{Kind: RejectOnce}) }

// Scripted answers the first request with the first answer, and so on; later
// requests fall to the default.
func Scripted(answers ...Answer) *Policy {
	p := &Policy{}
	for i, a := range answers {
		p.Rules = append(p.Rules, Rule{Nth: i + 1, Answer: a})
	}
	return p
}

// ParseAnswer reads an answer as scenarios write it: an option kind, cancelled,
// hold, never, error, error:CODE, or option:ID for an option id, offered or
// not.
func ParseAnswer(word string) (Answer, error) {
	switch word {
	case AllowOnce, AllowAlways, RejectOnce, RejectAlways:
		return Answer{Kind: word}, nil
	case "cancelled":
		return Answer{Cancelled: true}, nil
	case "hold":
		return Answer{Hold: true}, nil
	case "never":
		return Answer{Never: true}, nil
	case "error":
		return Answer{Error: &RPCError{Code: codeInternal, Message: "the client failed, as the scenario says"}}, nil
	}
	if id, ok := strings.CutPrefix(word, "option:"); ok && id != "" {
		return Answer{Option: id}, nil
	}
	if text, ok := strings.CutPrefix(word, "error:"); ok {
		code, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return Answer{}, fmt.Errorf("answer %q: %q is no error code", word, text)
		}
		return Answer{Error: &RPCError{Code: code, Message: "the client failed, as the scenario says"}}, nil
	}
	return Answer{}, fmt.Errorf("unknown answer %q: want allow_once, allow_always, reject_once, reject_always, cancelled, hold, never, error, error:CODE or option:ID", word)
}

// Check says what is wrong with the rule: a title that is no regular expression.
func (r Rule) Check() error {
	if text, ok := slashed(r.Title); ok {
		if _, err := regexp.Compile(text); err != nil {
			return fmt.Errorf("title %q: %w", r.Title, err)
		}
	}
	return nil
}

func slashed(title string) (string, bool) {
	if len(title) < 2 || title[0] != '/' || title[len(title)-1] != '/' {
		return "", false
	}
	return title[1 : len(title)-1], true
}

// ask is a permission request, as a policy sees it.
type ask struct {
	session string
	kind    string
	title   string
	options []option
}

type option struct{ id, kind string }

func (r Rule) matches(a ask) bool {
	if r.Kind != "" && r.Kind != a.kind {
		return false
	}
	if r.Title != "" && !titleMatches(r.Title, a.title) {
		return false
	}
	if r.Offers != "" {
		for _, o := range a.options {
			if o.kind == r.Offers || o.id == r.Offers {
				return true
			}
		}
		return false
	}
	return true
}

func titleMatches(pattern, title string) bool {
	if text, ok := slashed(pattern); ok {
		re, err := regexp.Compile(text)
		return err == nil && re.MatchString(title)
	}
	return glob.Text(pattern, title)
}

// literal is the title pattern that matches this title alone; "" if there is no
// title.
func literal(title string) string {
	if title == "" {
		return ""
	}
	return "/^" + regexp.QuoteMeta(title) + "$/"
}

// decision is an answer and what should be noted about how it came to be.
type decision struct {
	Answer
	chosen string // option id, for a choice
	remark *Remark
}

// decide finds the answer to a request and settles which option it means.
func (p *Policy) decide(a ask) decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind := p.always[[2]string{a.session, a.kind}]; p.Remember && kind != "" {
		d := choose(Answer{Kind: kind}, a)
		if d.remark == nil {
			d.remark = &Remark{Code: "permission-remembered", Text: "answered as the user always does since an earlier request", Chosen: kind}
		}
		return d
	}
	for len(p.matched) < len(p.Rules) {
		p.matched = append(p.matched, 0)
	}
	var found *Rule
	for i := range p.Rules {
		r := &p.Rules[i]
		if !r.matches(a) {
			continue
		}
		p.matched[i]++
		n := p.matched[i]
		if found == nil && (r.Nth == 0 || r.Nth == n) && n > r.After {
			found = r // go on: later rules count too
		}
	}
	if found == nil {
		return reject(a)
	}
	d := choose(found.Answer, a)
	if p.Remember && d.chosen != "" {
		if kind := a.kindOf(d.chosen); strings.HasSuffix(kind, "_always") {
			if p.always == nil {
				p.always = map[[2]string]string{}
			}
			p.always[[2]string{a.session, a.kind}] = kind
		}
	}
	return d
}

func (a ask) kindOf(id string) string {
	for _, o := range a.options {
		if o.id == id {
			return o.kind
		}
	}
	return ""
}

func (a ask) first(kind string) (string, bool) {
	for _, o := range a.options {
		if o.kind == kind {
			return o.id, true
		}
	}
	return "", false
}

// reject is the default: a user who looks away allows nothing.
func reject(a ask) decision {
	for _, kind := range []string{RejectOnce, RejectAlways} {
		if id, ok := a.first(kind); ok {
			return decision{
				Answer: Answer{Option: id}, chosen: id,
				remark: &Remark{Code: "permission-default", Text: "no rule for this permission request; it was answered with " + kind, Chosen: kind},
			}
		}
	}
	return decision{
		Answer: Answer{Cancelled: true},
		remark: &Remark{Code: "permission-default", Text: "no rule for this permission request and no way to reject it; it was answered with cancelled", Chosen: "cancelled"},
	}
}

// fallbacks are the stronger options that may stand in for a weaker one.
var fallbacks = map[string]string{AllowOnce: AllowAlways, RejectOnce: RejectAlways}

func choose(answer Answer, a ask) decision {
	d := decision{Answer: answer}
	switch {
	case answer.Never, answer.Hold, answer.Error != nil, answer.Result != nil, answer.Cancelled:
	case answer.Option != "":
		d.chosen = answer.Option
		if a.kindOf(answer.Option) == "" {
			d.remark = &Remark{Code: "permission-unknown-option", Text: fmt.Sprintf("answered with option %q, which is not offered", answer.Option), Wanted: answer.Option}
		}
	default:
		id, ok := a.first(answer.Kind)
		if !ok {
			if stronger := fallbacks[answer.Kind]; stronger != "" {
				if id, ok = a.first(stronger); ok {
					d.remark = &Remark{Code: "permission-fallback", Text: fmt.Sprintf("%s is not offered; %s was chosen", answer.Kind, stronger), Wanted: answer.Kind, Chosen: stronger}
				}
			}
		}
		if !ok {
			d.Cancelled = true
			d.remark = &Remark{Code: "permission-not-offered", Text: fmt.Sprintf("%s is not offered, nor anything that may stand in for it; the request was answered with cancelled", answer.Kind), Wanted: answer.Kind, Chosen: "cancelled", Inconclusive: true}
			break
		}
		d.Option, d.chosen = id, id
	}
	return d
}
