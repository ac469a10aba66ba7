package transcript_test

import (
	"bytes"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// asks is a protocol of JSON lines that is not JSON-RPC: {"ask":…,"n":1,"to":…},
// {"event":…,"to":…} and {"end":1}.
type asks struct{}

func (asks) Frame(_ transcript.Source, line []byte, v wire.Value, err error) wire.Frame {
	n := wire.ID(v.Get("n").Raw())
	switch {
	case err != nil:
		return wire.Frame{Problem: wire.WhyNotJSON(line, err)}
	case v.Get("ask").Exists():
		return wire.Frame{Kind: wire.Request, ID: n, Method: v.Get("ask").Str(), Params: v}
	case v.Get("event").Exists():
		return wire.Frame{Kind: wire.Notification, Method: v.Get("event").Str(), Params: v}
	case v.Get("end").Exists():
		return wire.Frame{Kind: wire.Response, ID: wire.ID(v.Get("end").Raw()), Result: v}
	}
	return wire.Frame{Problem: "neither ask nor event nor end"}
}

func (asks) Session(_ string, f wire.Frame) wire.Value { return f.Params.Get("to") }

var _ = Describe("a Classifier", func() {
	It("makes requests, notifications and responses of lines that are no JSON-RPC", func() {
		t := with(transcript.Options{Classifier: asks{}, Memory: 1000})
		DeferCleanup(t.Close)
		editor(t, `{"ask":"weather","n":1,"to":"a"}`)
		agent(t, `{"event":"word","to":"a"}`)
		agent(t, `{"end":1}`)
		agent(t, `{"other":1}`)
		agent(t, `no JSON`)
		agent(t, `{"jsonrpc":"2.0","method":"m"}`)
		for range 20 { // until the first ones are only on disk
			agent(t, `{"event":"word","to":"b"}`)
		}
		got := func(t *transcript.Transcript) (rows [][]any) {
			for e := range t.Between(1, 6) {
				rows = append(rows, []any{e.Kind, e.Method, e.Session, e.Ref, e.Problem != "", e.Message().Kind})
			}
			return rows
		}
		want := [][]any{
			{transcript.Request, "weather", "a", 0, false, wire.Request},
			{transcript.Notification, "word", "a", 0, false, wire.Notification},
			{transcript.Response, "weather", "a", 1, false, wire.Response},
			{transcript.Malformed, "", "", 0, true, wire.Malformed},
			{transcript.Malformed, "", "", 0, true, wire.Malformed},
			{transcript.Malformed, "", "", 0, true, wire.Malformed},
		}
		Expect(got(t)).To(Equal(want))
		var file bytes.Buffer
		Expect(t.Save(&file)).To(Succeed())
		back, err := transcript.Load(&file, asks{})
		Expect(err).NotTo(HaveOccurred())
		Expect(got(back)).To(Equal(want))
	})

	It("is JSON-RPC without sessions where none is given", func() {
		t, err := transcript.New(transcript.Header{}, transcript.Options{})
		Expect(err).NotTo(HaveOccurred())
		e := agent(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":{"sessionId":"s"}}`)
		Expect([]any{e.Kind, e.Method, e.Session, e.Message().Kind}).
			To(Equal([]any{transcript.Request, "m", "", wire.Request}))
		Expect(transcript.Entry{Raw: []byte("{}")}.Message().Kind).To(Equal(wire.Malformed))
	})
})
