package mockclient

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
)

// The kinds of permission options (ACP v1, PermissionOptionKind).
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// Policy decides permission requests in advance. The first matching rule decides. If no rule matches, the answer is
// reject_once, else reject_always, else cancelled, with a Note. A Policy counts matches, so it must not be copied,
// and each connection needs its own.
type Policy struct {
	Rules []Rule
	// Remember makes the editor remember the choice of an *_always option. Later requests in the same session then
	// get the same answer, with a Note, and the rules are not used. RememberTool applies the choice to tools of the
	// same kind, RememberSession to all tools. By default, remembering is left to the agent.
	Remember Memory

	mu      sync.Mutex
	matched counts
	always  map[[2]string]string // session and tool kind to the kind of the chosen option
}

// Memory is the scope in which a Policy remembers an *_always answer.
type Memory int

// The scopes in which a Policy remembers answers.
const (
	RememberNothing Memory = iota
	RememberTool
	RememberSession
)

// key returns the key under which the answer to a request is remembered.
func (m Memory) key(a ask) [2]string {
	if m == RememberSession {
		return [2]string{a.session}
	}
	return [2]string{a.session, a.kind}
}

// Rule is one rule of a Policy. An empty condition matches everything.
type Rule struct {
	// Kind is the tool's kind: "edit", "execute", … If the request contains no kind, the kind in the tool call's
	// announcement is used.
	Kind string
	// Title is a glob over the tool call's title (* and ?), or a regular
	// expression between slashes.
	Title string
	// About is a regular expression over everything that the agent sent about the tool call, in the request or
	// before: its title, paths and input.
	About string
	// Offers is the kind or the id of an option. The request must offer such an option.
	Offers string
	// Nth selects only the n-th request that meets the other conditions, counted from 1; 0 selects all.
	Nth int
	// After skips the first n requests that meet the other conditions.
	After int

	Answer Answer
}

// Answer is the answer to a permission request. Exactly one of the first seven fields should be set; otherwise the
// first of them counts.
type Answer struct {
	// Never leaves the request open forever; not even a cancel answers it.
	Never bool
	// Hold leaves the request open until Editor.Answer is called. If the turn is cancelled first, the answer is
	// cancelled, unless AfterCancel is set.
	Hold bool
	// Error answers with an error.
	Error *RPCError
	// Result is sent as the result. It may be any JSON, even if it is invalid for ACP.
	Result any
	// Cancelled answers with the outcome cancelled.
	Cancelled bool
	// Option chooses an option by its id, even if the request does not offer it.
	Option string
	// Kind chooses the first option of a kind. If the kind is not offered, AllowOnce falls back to AllowAlways and
	// RejectOnce to RejectAlways, with a Note. If the replacement is not offered either, the answer is cancelled,
	// with an inconclusive Note.
	Kind string

	// Delay is the time before the answer.
	Delay time.Duration
	// AfterCancel keeps the request open when the turn is cancelled, so that the chosen answer is sent too late.
	AfterCancel bool
	// Twice sends the answer twice, which violates the protocol.
	Twice bool
}

// Always returns a policy that gives every request the same answer.
func Always(a Answer) *Policy { return &Policy{Rules: []Rule{{Answer: a}}} }

// Allow returns a policy that answers every request with allow_once.
func Allow() *Policy { return Always(Answer{Kind: AllowOnce}) }

// Reject returns a policy that answers every request with reject_once.
func Reject() *Policy { return Always(Answer{Kind: RejectOnce}) }

// Scripted returns a policy that answers the first request with the first answer, the second request with the second
// answer, and so on. Requests after the last answer are rejected, as without a rule.
func Scripted(answers ...Answer) *Policy {
	p := &Policy{}
	for i, a := range answers {
		p.Rules = append(p.Rules, Rule{Nth: i + 1, Answer: a})
	}
	return p
}

// ParseAnswer reads an answer in the notation of scenarios: an option kind, cancelled, hold, never, error,
// error:CODE, or option:ID. The option ID need not be offered.
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
		word = fmt.Sprintf("error:%d", codeInternal)
	}
	if id, ok := strings.CutPrefix(word, "option:"); ok && id != "" {
		return Answer{Option: id}, nil
	}
	if text, ok := strings.CutPrefix(word, "error:"); ok {
		code, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return Answer{}, fmt.Errorf("answer %q: %q is not an error code", word, text)
		}
		return Answer{Error: &RPCError{Code: code, Message: "the client failed, as the scenario says"}}, nil
	}
	return Answer{}, fmt.Errorf("unknown answer %q: want allow_once, allow_always, reject_once, reject_always, "+
		"cancelled, hold, never, error, error:CODE or option:ID", word)
}

// Check returns an error if a regular expression of the rule is invalid.
func (r Rule) Check() error {
	if _, err := regexp.Compile(r.About); err != nil {
		return fmt.Errorf("about %q: %w", r.About, err)
	}
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

// ask contains the parts of a permission request that a policy looks at.
type ask struct {
	session string
	kind    string
	title   string
	said    string // JSON of everything that the agent sent about the tool call
	options []option
}

type option struct{ id, kind string }

func (r Rule) matches(a ask) bool {
	return (r.Kind == "" || r.Kind == a.kind) && (r.Title == "" || titleMatches(r.Title, a.title)) &&
		(r.About == "" || matches(r.About, a.said)) &&
		(r.Offers == "" || slices.ContainsFunc(a.options, func(o option) bool {
			return o.kind == r.Offers || o.id == r.Offers
		}))
}

func titleMatches(pattern, title string) bool {
	if text, ok := slashed(pattern); ok {
		return matches(text, title)
	}
	return glob.Text(pattern, title)
}

func matches(expression, text string) bool {
	re, err := regexp.Compile(expression)
	return err == nil && re.MatchString(text)
}

// literal returns a title pattern that matches exactly this title, or "" if the title is empty.
func literal(title string) string {
	if title == "" {
		return ""
	}
	return "/^" + regexp.QuoteMeta(title) + "$/"
}

// decision is an answer, with a note on how it was chosen.
type decision struct {
	Answer
	chosen string // id of the chosen option, if an option is chosen
	note   *Note
}

// decide returns the answer to a request and the id of the option that it chooses.
func (p *Policy) decide(a ask) decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind := p.always[p.Remember.key(a)]; p.Remember != RememberNothing && kind != "" {
		d := choose(Answer{Kind: kind}, a)
		d.note = cmp.Or(d.note, noted("remembered", "", kind, "answered by an earlier choice of the user for always"))
		return d
	}
	found := p.matched.first(len(p.Rules), func(i int) (bool, int, int) {
		r := p.Rules[i]
		return r.matches(a), r.Nth, r.After
	})
	if found < 0 {
		return reject(a)
	}
	d := choose(p.Rules[found].Answer, a)
	if p.Remember != RememberNothing && d.chosen != "" {
		if kind := a.kindOf(d.chosen); strings.HasSuffix(kind, "_always") {
			if p.always == nil {
				p.always = map[[2]string]string{}
			}
			p.always[p.Remember.key(a)] = kind
		}
	}
	return d
}

// recall copies the remembered answers from the connection's previous policy, if it has the same Remember.
func (p *Policy) recall(before *Policy) {
	if p == before || p.Remember != before.Remember {
		return
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	p.always = maps.Clone(before.always)
}

// counts contains, for each rule of a list, the number of its matches.
type counts []int

// first counts a match for each of n rules that matches the request. It returns the index of the first rule that
// answers, or -1. A matching rule answers only if this is its nth match (nth 0 means any), and if the rule has had
// more than after matches.
func (c *counts) first(n int, match func(rule int) (matches bool, nth, after int)) int {
	found := -1
	for i := range n {
		if i == len(*c) {
			*c = append(*c, 0)
		}
		matches, nth, after := match(i)
		if !matches {
			continue
		}
		(*c)[i]++
		if times := (*c)[i]; found < 0 && (nth == 0 || nth == times) && times > after {
			found = i // continue, because later rules count this match too
		}
	}
	return found
}

func (a ask) kindOf(id string) string {
	return lists.First(a.options, func(o option) bool { return o.id == id }).kind
}

func (a ask) first(kind string) (string, bool) {
	o, ok := lists.Find(a.options, func(o option) bool { return o.kind == kind })
	return o.id, ok
}

// reject returns the decision for a request that no rule matches: it rejects the request, or cancels if no option
// rejects.
func reject(a ask) decision {
	for _, kind := range []string{RejectOnce, RejectAlways} {
		if id, ok := a.first(kind); ok {
			return decision{Answer{Option: id}, id,
				noted("default", "", kind, "no rule for this permission request; it was answered with "+kind)}
		}
	}
	return decision{Answer: Answer{Cancelled: true}, note: noted("default", "", "cancelled",
		"no rule for this permission request and no way to reject it; it was answered with cancelled")}
}

// noted returns a Note about a permission request: the wanted kind of answer, the chosen kind, and the text. why is
// the end of its Code.
func noted(why, wanted, chosen, text string) *Note {
	return &Note{Code: "permission-" + why, Wanted: wanted, Chosen: chosen, Text: text}
}

// fallbacks maps a kind of option to the stronger kind that replaces it if it is not offered.
var fallbacks = map[string]string{AllowOnce: AllowAlways, RejectOnce: RejectAlways}

func choose(answer Answer, a ask) decision {
	d := decision{Answer: answer}
	switch {
	case answer.Never, answer.Hold, answer.Error != nil, answer.Result != nil, answer.Cancelled:
	case answer.Option != "":
		d.chosen = answer.Option
		if a.kindOf(answer.Option) == "" {
			d.note = noted("unknown-option", answer.Option, "",
				fmt.Sprintf("answered with option %q, which is not offered", answer.Option))
		}
	default:
		id, ok := a.first(answer.Kind)
		stronger := fallbacks[answer.Kind]
		if !ok && stronger != "" {
			if id, ok = a.first(stronger); ok {
				d.note = noted("fallback", answer.Kind, stronger,
					fmt.Sprintf("%s is not offered; %s was chosen", answer.Kind, stronger))
			}
		}
		if !ok {
			d.Cancelled = true
			d.note = noted("not-offered", answer.Kind, "cancelled", answer.Kind+" is not offered, and no substitute "+
				"for it either; the request was answered with cancelled")
			d.note.Inconclusive = true
			break
		}
		d.Option, d.chosen = id, id
	}
	return d
}

// Recorded returns a policy that repeats the answers in a recording. Requests are matched by the tool's kind and
// title: the n-th request gets the answer of the n-th recorded one. A request that was never answered is left open.
// Options are chosen by their kind, because ids may change between runs. If the recorded answer chose an option that
// was not offered, the policy chooses it by its id.
func Recorded(entries iter.Seq[transcript.Entry]) *Policy {
	type open struct {
		rule int
		ask  ask
	}
	p := &Policy{}
	requests := map[int]open{}
	seen := map[[2]string]int{}
	names := newToolNames(0)
	for e := range entries {
		names.conn = e.Conn
		names.observe(e)
		if e.Method != "session/request_permission" {
			continue
		}
		switch {
		case e.Kind == transcript.Request && e.Source == transcript.Agent:
			a := names.ask(e.Session, e.JSON().Get("params"))
			key := [2]string{a.kind, a.title}
			seen[key]++
			requests[e.Seq] = open{len(p.Rules), a}
			p.Rules = append(p.Rules, Rule{Kind: a.kind, Title: literal(a.title), Nth: seen[key], Answer: Answer{Hold: true}})
		case e.Kind == transcript.Response && e.Source == transcript.Editor:
			o, ok := requests[e.Ref]
			if !ok {
				continue
			}
			delete(requests, e.Ref) // only the first answer counts
			v := e.JSON()
			answer := Answer{}
			switch chosen := v.Path("result.outcome.optionId").Str(); {
			case errorOf(e) != nil:
				answer.Error = errorOf(e)
				answer.Error.Data = nil
			case v.Path("result.outcome.outcome").Is("selected"):
				if answer.Kind = o.ask.kindOf(chosen); answer.Kind == "" {
					answer.Option = chosen
				}
			default:
				answer.Cancelled = true
			}
			p.Rules[o.rule].Answer = answer
		}
	}
	return p
}
