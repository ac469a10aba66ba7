package agui_test

import (
	"fmt"
	"testing"

	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// play is what a front end, a server and its model do, in the order of their entries.
type play struct{ *transcript.Transcript }

func (p play) add(from transcript.Source, kind transcript.Kind, method string, ref int, body string,
	values ...any) int {
	return p.Append(transcript.Entry{Source: from, Kind: kind, Method: method, Session: "t", Ref: ref,
		Raw: fmt.Appendf(nil, body, values...)}).Seq
}

// post begins a run.
func (p play) post() int {
	ref := p.add(transcript.Editor, transcript.Request, "run", 0,
		`{"threadId":"t","runId":"r","messages":[],"tools":[]}`)
	p.add(transcript.Agent, transcript.Notification, "RUN_STARTED", ref,
		`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`)
	return ref
}

// leave is a run whose stream the front end leaves before its end.
func (p play) leave() {
	p.add(transcript.Agent, transcript.Ended, "run", p.post(), `{"end":"hung up"}`)
}

// keepBack is a run that shows nothing of what the model says.
func (p play) keepBack() {
	ref := p.post()
	p.add(transcript.Model, transcript.ModelRequest, "", 0, `{"n":%d,"lane":"main","prompt":%[1]d,"step":1}`, ref)
	p.add(transcript.Model, transcript.ModelChunk, "", 0, `{"n":%d,"says":"text","data":"The answer."}`, ref)
	p.add(transcript.Model, transcript.ModelDone, "", 0, `{"n":%d,"status":200,"stop":"end"}`, ref)
	p.add(transcript.Agent, transcript.Notification, "RUN_FINISHED", ref,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`)
	p.add(transcript.Agent, transcript.Ended, "run", ref, `{"end":"closed","last":"RUN_FINISHED"}`)
}

// What a run that was left asks of the model may come in any run after it: its text is owed by none.
func TestTextOfALeftRunIsOwedByNone(t *testing.T) {
	for _, left := range []bool{false, true} {
		log, err := transcript.New(transcript.Header{}, transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := play{log}
		if left {
			p.leave()
		}
		p.keepBack()
		p.keepBack()
		c := agui.V1().Rules.NewChecker(rules.Config{})
		for e := range log.All() {
			c.Observe(e)
		}
		missed := 0
		for _, f := range c.Finish(rules.End{}) {
			if f.Rule == "MODEL-TEXT" {
				missed += f.Count
			}
		}
		if left != (missed == 0) || !left && missed != 2 {
			t.Errorf("behind a run that was left (%t) the text of %d runs is missed", left, missed)
		}
	}
}
