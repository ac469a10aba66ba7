package transcript_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

var _ = Describe("Appending", func() {
	It("numbers entries from 1 and gives them a time that never goes back", func() {
		clock := []time.Duration{0, 0, 5 * time.Millisecond, 3 * time.Millisecond, 7*time.Millisecond + 1234}
		start := time.Now()
		t := with(transcript.Options{Now: func() time.Time {
			at := start.Add(clock[0])
			clock = clock[1:]
			return at
		}})
		var at []time.Duration
		for i := 1; i <= 3; i++ {
			e := note(t, "x")
			Expect(e.Seq).To(Equal(i))
			at = append(at, e.At)
		}
		Expect(at).To(Equal([]time.Duration{5 * time.Millisecond, 5 * time.Millisecond, 7*time.Millisecond + 1000}))
		Expect(t.Len()).To(Equal(3))
		Expect(t.At(2).At).To(Equal(at[1]))
		Expect(t.At(0)).To(BeZero())
		Expect(t.At(4)).To(BeZero())
	})

	It("yields entries from a place on, also those that come during the loop", func() {
		t := empty()
		note(t, "a")
		note(t, "b")
		var got []string
		for e := range t.From(2) {
			got = append(got, e.Method)
			if len(got) == 1 {
				note(t, "c")
			}
		}
		Expect(got).To(Equal([]string{"b", "c"}))
		got = nil
		for e := range t.Between(0, 2) {
			got = append(got, e.Method)
		}
		Expect(got).To(Equal([]string{"a", "b"}))
	})

	It("marshals the details of events, and says what cannot be marshalled", func() {
		t := empty()
		e := t.Event(2, transcript.Model, transcript.Gate, "s1", map[string]any{"n": 1, "gate": "mid"})
		Expect(string(e.Raw)).To(Equal(`{"gate":"mid","n":1}`))
		Expect([]any{e.Conn, e.Session, e.JSON().Get("gate").Str()}).To(Equal([]any{2, "s1", "mid"}))
		e = t.Event(0, transcript.Note, transcript.Noted, "", make(chan int))
		Expect(e.JSON().Get("error").Str()).To(ContainSubstring("chan int"))
	})
})

var _ = Describe("AppendFrame", func() {
	var t *transcript.Transcript
	BeforeEach(func() { t = empty() })

	It("classifies what crosses the wire and keeps its bytes", func() {
		for _, c := range []struct {
			line    string
			kind    transcript.Kind
			id      wire.ID
			method  string
			session string
		}{
			{`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s\u0031"}}`, transcript.Request,
				`7`, "session/prompt", "s1"},
			{`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1",` +
				`"update":{"sessionUpdate":"plan"}}}`, transcript.Notification, ``, "session/update", "s1"},
			{`{"jsonrpc":"2.0","id":"x","result":{}}`, transcript.Response, `"x"`, "", ""},
			{"  {\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"sessionId\":4}}\r", transcript.Notification, ``,
				"m", ""},
			{`Debugger attached.`, transcript.Malformed, ``, "", ""},
			{``, transcript.Malformed, ``, "", ""},
			{"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}", transcript.Malformed, ``, "", ""},
			{`{"jsonrpc":"2.0","id":1,"method":3}`, transcript.Malformed, `1`, "", ""},
		} {
			e := agent(t, c.line)
			Expect([]any{e.Kind, e.ID, e.Method, e.Session, string(e.Raw)}).
				To(Equal([]any{c.kind, c.id, c.method, c.session, c.line}), c.line)
			Expect(e.Problem != "").To(Equal(c.kind == transcript.Malformed), c.line)
			Expect(e.Frame()).To(BeTrue())
			Expect(t.At(e.Seq)).To(Equal(e))
		}
		Expect(acpframe.Update(t.At(2))).To(Equal("plan"))
		Expect(acpframe.Update(t.At(1))).To(BeEmpty())
		Expect(t.At(5).JSON().Exists()).To(BeFalse())
	})

	It("keeps the head of a line that is too long", func() {
		e := t.AppendFrame(0, transcript.Agent, []byte(`{"jsonrpc":"2.0"}`), 50_000_000)
		Expect([]any{e.Kind, e.Size, e.JSON().Exists()}).To(Equal([]any{transcript.Malformed, 50_000_000, false}))
		Expect(e.Problem).To(Equal("the line is 50000000 bytes long, more than the limit; the first 17 are kept"))
	})

	It("finds the request of a response, in both directions", func() {
		editor(t, `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"a"}}`)
		agent(t, `{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"b"}}`)
		answer := editor(t, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		Expect([]any{answer.Ref, answer.Method, answer.Session}).To(Equal([]any{2, "fs/read_text_file", "b"}))
		end := agent(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"?"}}`)
		Expect([]any{end.Ref, end.Method, end.Session}).To(Equal([]any{1, "session/prompt", "a"}))
	})

	It("tells ids of different types and connections apart", func() {
		editor(t, `{"jsonrpc":"2.0","id":1,"method":"m"}`)
		Expect(agent(t, `{"jsonrpc":"2.0","id":"1","result":0}`).Ref).To(Equal(0))
		Expect(t.AppendFrame(1, transcript.Agent, []byte(`{"jsonrpc":"2.0","id":1,"result":0}`), 0).Ref).To(Equal(0))
		Expect(agent(t, `{"jsonrpc":"2.0","id":1,"result":0}`).Ref).To(Equal(1))
		editor(t, `{"jsonrpc":"2.0","id":"\u0031","method":"n"}`)
		Expect(agent(t, `{"jsonrpc":"2.0","id":"1","result":0}`).Method).To(Equal("n"))
	})

	It("attributes a second answer, and a reused id to its last request", func() {
		editor(t, `{"jsonrpc":"2.0","id":1,"method":"a"}`)
		Expect(agent(t, `{"jsonrpc":"2.0","id":1,"result":0}`).Ref).To(Equal(1))
		Expect(agent(t, `{"jsonrpc":"2.0","id":1,"result":0}`).Ref).To(Equal(1))
		editor(t, `{"jsonrpc":"2.0","id":1,"method":"b"}`)
		Expect(agent(t, `{"jsonrpc":"2.0","id":1,"result":0}`).Method).To(Equal("b"))
	})

	It("forgets answered requests only after thousands of others, open ones never", func() {
		editor(t, `{"jsonrpc":"2.0","id":"open","method":"open"}`)
		editor(t, `{"jsonrpc":"2.0","id":0,"method":"a"}`)
		agent(t, `{"jsonrpc":"2.0","id":0,"result":0}`)
		for i := 1; i <= 5000; i++ {
			editor(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"a"}`, i))
			agent(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":0}`, i))
			if i == 1000 {
				Expect(agent(t, `{"jsonrpc":"2.0","id":0,"result":0}`).Ref).To(Equal(2))
			}
		}
		Expect(agent(t, `{"jsonrpc":"2.0","id":0,"result":0}`).Ref).To(Equal(0))
		Expect(agent(t, `{"jsonrpc":"2.0","id":"open","result":0}`).Ref).To(Equal(1))
	})

	It("gives the answer to session/new the session it made", func() {
		editor(t, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}`)
		Expect(t.At(1).Session).To(BeEmpty())
		Expect(agent(t, `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"new"}}`).Session).To(Equal("new"))
		editor(t, `{"jsonrpc":"2.0","id":2,"method":"session/fork","params":{"sessionId":"new"}}`)
		Expect(agent(t, `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"fork"}}`).Session).To(Equal("fork"))
		editor(t, `{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"old"}}`)
		Expect(agent(t, `{"jsonrpc":"2.0","id":3,"result":{"sessionId":"other"}}`).Session).To(Equal("old"))
	})

	It("does not let invented session ids fill memory", func() {
		long := strings.Repeat("x", 1000)
		for range 2 {
			e := agent(t, `{"jsonrpc":"2.0","method":"m","params":{"sessionId":"`+long+`"}}`)
			Expect(e.Session).To(Equal(long))
		}
		for i := range 20_000 {
			e := agent(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"m","params":{"sessionId":"%d"}}`, i))
			Expect(e.Session == fmt.Sprint(i)).To(BeTrue())
		}
	})
})

var _ = Describe("Observe", func() {
	It("shows all entries once, in order, past ones first", func() {
		t := empty()
		note(t, "a")
		var got []int
		t.Observe(func(e transcript.Entry) { got = append(got, e.Seq) })
		note(t, "b")
		agent(t, update(1))
		Expect(got).To(Equal([]int{1, 2, 3}))
	})

	It("shows parsed entries, and an entry that was kept stays right", func() {
		t := empty()
		var kept, texts []string
		var entries []transcript.Entry
		text := func(e transcript.Entry) string {
			return e.JSON().Path("params.update.content.text").Str() + e.JSON().Get("gate").Str()
		}
		agent(t, update(0))
		t.Observe(func(e transcript.Entry) {
			entries = append(entries, e)
			texts = append(texts, text(e))
		})
		agent(t, update(1))
		t.Event(0, transcript.Model, transcript.Gate, "", map[string]string{"gate": "mid"})
		agent(t, "no JSON")
		agent(t, update(2))
		for _, e := range entries {
			kept = append(kept, text(e))
		}
		Expect(texts).To(Equal([]string{"chunk 0 of the answer ", "chunk 1 of the answer ", "mid", "",
			"chunk 2 of the answer "}))
		Expect(kept).To(Equal(texts))
	})

	It("may hand a detached entry to another goroutine", func() {
		t := empty()
		entries, texts := make(chan transcript.Entry, 100), make(chan string, 100)
		go func() {
			defer close(texts)
			for e := range entries {
				texts <- e.JSON().Path("params.update.content.text").Str()
			}
		}()
		t.Observe(func(e transcript.Entry) { entries <- e.Detached() })
		for i := range 100 {
			agent(t, update(i))
		}
		close(entries)
		i := 0
		for text := range texts {
			Expect(text).To(Equal(fmt.Sprintf("chunk %d of the answer ", i)))
			i++
		}
		Expect(i).To(Equal(100))
	})
})
