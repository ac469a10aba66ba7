package rules_test

import (
	"fmt"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// shout is a rule of a protocol whose agents must not shout.
var shout = rules.Rule{
	ID: "SHOUT", Sentence: "An agent does not shout.",
	Points: []rules.Point{{ID: "loud", Class: rules.Fail, Says: "a message is called shout"}},
}

// listener watches a transcript for the rule.
type listener struct{ watch *rules.Watch }

func (l listener) Observe(e transcript.Entry) {
	if e.Source != transcript.Agent || !e.Frame() {
		return
	}
	l.watch.Saw("loud")
	if e.Method == "shout" {
		l.watch.Report("loud", e.Conn, e.Session, e.Method, []int{e.Seq}, "The agent shouts.")
	}
}

func (listener) Finish(rules.End) {}

// Rules are judged while a transcript grows.
func Example() {
	set, err := rules.New(rules.Definition{
		Rules: []rules.Rule{shout},
		Watch: func(c *rules.Checker) rules.Observer { return listener{c.Watch(shout)} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := transcript.New(transcript.Header{}, transcript.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	checker := set.NewChecker(rules.Config{})
	log.Observe(checker.Observe)
	for _, method := range []string{"whisper", "shout", "shout"} {
		log.AppendFrame(0, transcript.Agent, []byte(`{"jsonrpc":"2.0","method":"`+method+`"}`), 0)
	}
	for _, f := range checker.Finish(rules.End{Clean: true}) {
		fmt.Println(f.Rule, f.Class, "times", f.Count, "at", f.Entries, f.Message)
	}
	// Output:
	// SHOUT fail times 2 at [2 3] The agent shouts.
}
