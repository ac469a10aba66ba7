package mockclient

import (
	"iter"

	"github.com/acp-test/acp-test/transcript"
)

// Recorded is the policy of a recording: its n-th permission request of a tool
// kind and title is answered as the recorded one was. What was never answered
// is held. A choice is remembered by the option's kind, because ids may change
// between runs; a choice that was not on offer is repeated by its id.
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
			delete(requests, e.Ref) // the first answer counts
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
