package transcript_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing/iotest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// entries are any that can be appended, with any bytes in them.
func entries() *rapid.Generator[transcript.Entry] {
	return rapid.Custom(func(r *rapid.T) transcript.Entry {
		text := rapid.OneOf(
			rapid.Just(""), rapid.String(),
			rapid.SampledFrom([]string{"\x00", "\u2028", "\"\\", "\ufeff", "é", "\U0001F600"}))
		raw := rapid.OneOf(
			rapid.Just(""), rapid.StringOf(rapid.SampledFrom([]rune("{}[]\",:\\ \n\r\t0\x00é"))),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.SampledFrom([]string{
				update(1), "{\"a\":\n1}", "{\"a\": 1}\r", " {}", "3", "null", `{"a":1,"a":"\ud800"}`,
				`{"raw64":"x","msg":1}`,
				strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
				strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
				strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999), "[" + strings.Repeat("{},", 10_000) + "1]",
				strings.Repeat("\x00", 5000),
			}))
		return transcript.Entry{
			Conn: rapid.IntRange(0, 3).Draw(r, "conn"),
			Source: rapid.SampledFrom([]transcript.Source{transcript.Agent, transcript.Editor, transcript.Stderr,
				transcript.Process, transcript.Model, "later"}).Draw(r, "source"),
			Kind: rapid.SampledFrom([]transcript.Kind{transcript.Request, transcript.Response,
				transcript.Notification, transcript.Malformed, transcript.Written, transcript.Chunk, transcript.Started,
				transcript.Exited, "later"}).Draw(r, "kind"),
			ID:       wire.ID(rapid.SampledFrom([]string{"", "7", `"7"`, "null", "no JSON"}).Draw(r, "id")),
			Method:   text.Draw(r, "method"),
			Session:  text.Draw(r, "session"),
			Ref:      rapid.SampledFrom([]int{0, 0, 1, 99, -3}).Draw(r, "ref"),
			Problem:  text.Draw(r, "problem"),
			Size:     rapid.SampledFrom([]int{0, 0, 1 << 40}).Draw(r, "size"),
			Redacted: rapid.SampledFrom([][]string{nil, {"a.b"}, {"a", "\""}}).Draw(r, "redacted"),
			Raw:      []byte(raw.Draw(r, "raw")),
		}
	})
}

// same compares entries as users see them: no bytes are no bytes.
func same(got, want transcript.Entry) error {
	if len(got.Raw) == 0 && len(want.Raw) == 0 {
		got.Raw, want.Raw = nil, nil
	}
	if ok, _ := Equal(want).Match(got); !ok {
		return fmt.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.JSON().Exists() != want.JSON().Exists() {
		return fmt.Errorf("got JSON %q, want %q", got.JSON().Raw(), want.JSON().Raw())
	}
	return nil
}

var _ = Describe("The file form", func() {
	It("is a header and one line an entry", func() {
		t, err := transcript.New(transcript.Header{
			Tool: "acp-test 1.0", Agent: "reference", Scenario: "cancel/idle", Protocol: "1", Seed: 7,
		}, transcript.Options{Classifier: acpframe.Classifier{}, Now: ticks(1500 * time.Microsecond)})
		Expect(err).NotTo(HaveOccurred())
		editor(t, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`)
		agent(t, `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1"}}`)
		agent(t, "Loaded \"it\".\r")
		t.Append(transcript.Entry{Source: transcript.Stderr, Kind: transcript.Chunk, Raw: []byte("{}\n\xff")})
		t.Append(transcript.Entry{Conn: 1, Source: transcript.Model, Kind: transcript.ModelRequest,
			Redacted: []string{"headers.Authorization"}, Raw: []byte(`{"n":1}`)})
		Expect(string(saved(t))).To(Equal(`{"acp-test":3,"tool":"acp-test 1.0","agent":"reference",` +
			`"scenario":"cancel/idle","protocol":"1","seed":7,"started":"2026-01-02T03:04:05.0015Z"}
{"seq":1,"ms":1.500,"from":"editor","kind":"request","id":1,"method":"session/new","msg":{"jsonrpc":"2.0","id":1,` +
			`"method":"session/new","params":{}}}
{"seq":2,"ms":3,"from":"agent","kind":"response","id":1,"method":"session/new","session":"s1","ref":1,` +
			`"msg":{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1"}}}
{"seq":3,"ms":4.500,"from":"agent","kind":"malformed","problem":"the line is not JSON but other text; log lines ` +
			`belong on stderr: Loaded \"it\".","text":"Loaded \"it\".\r"}
{"seq":4,"ms":6,"from":"stderr","kind":"chunk","raw64":"e30K/w=="}
{"seq":5,"ms":7.500,"conn":1,"from":"model","kind":"model-request","redacted":["headers.Authorization"],"msg":{"n":1}}
`))
	})

	It("brings back every byte of every entry", func() {
		rapid.Check(GinkgoTB(), func(r *rapid.T) {
			t, _ := transcript.New(transcript.Header{Seed: rapid.Int64().Draw(r, "seed")},
				transcript.Options{Classifier: acpframe.Classifier{}, Now: ticks(777 * time.Microsecond)})
			for _, e := range rapid.SliceOfN(entries(), 0, 6).Draw(r, "entries") {
				t.Append(e)
			}
			for _, line := range rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 0, 3).Draw(r, "frames") {
				t.AppendFrame(0, transcript.Agent, line, 0)
			}
			text := saved(t)
			back, err := transcript.Load(bytes.NewReader(text), acpframe.Classifier{})
			if err != nil {
				r.Fatal(err)
			}
			if back.Len() != t.Len() || back.Torn() {
				r.Fatalf("got %d entries, torn %v, want %d", back.Len(), back.Torn(), t.Len())
			}
			for e := range t.All() {
				if err := same(back.At(e.Seq), e); err != nil {
					r.Fatal(err)
				}
			}
			if again := saved(back); !bytes.Equal(again, text) {
				r.Fatalf("saved again, got\n%s\nwant\n%s", again, text)
			}
		})
	})

	It("is valid up to the last whole line, wherever it is cut", func() {
		t := empty()
		for i := range 3 {
			editor(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"é"}`, i))
			t.Append(transcript.Entry{Source: transcript.Stderr, Kind: transcript.Chunk, Raw: []byte("\xff\n")})
		}
		text := saved(t)
		lines := bytes.SplitAfter(text, []byte("\n"))
		for n := range len(text) + 1 {
			whole, torn, end := -1, false, 0 // the header is no entry
			for _, line := range lines {
				if n >= end+len(line)-1 && len(line) > 0 {
					whole++
				} else if n > end {
					torn = true
				}
				end += len(line)
			}
			back, err := transcript.Load(bytes.NewReader(text[:n]), acpframe.Classifier{})
			if whole < 0 {
				Expect(err).To(MatchError(ContainSubstring("line 1 of the transcript: not a transcript")))
				continue
			}
			Expect(err).NotTo(HaveOccurred())
			Expect([]any{back.Len(), back.Torn()}).To(Equal([]any{whole, torn}), "cut at %d", n)
		}
	})

	DescribeTable("says which line is wrong",
		func(text, want string) {
			_, err := transcript.Load(strings.NewReader(text), acpframe.Classifier{})
			Expect(err).To(MatchError(ContainSubstring(want)))
			var bad *transcript.FormatError
			Expect(errors.As(err, &bad)).To(BeTrue())
		},
		Entry("nothing", "", `line 1 of the transcript: not a transcript`),
		Entry("something else", "{\"version\":3}\n",
			`line 1 of the transcript: not a transcript: the first line should be a header`),
		Entry("newer", "{\"acp-test\":4}\n",
			`line 1 of the transcript: format 4 is newer than 3, the newest this program reads`),
		Entry("no JSON", "{\"acp-test\":1}\nx\n{\"from\":\"note\",\"kind\":\"note\"}\n",
			`line 2 of the transcript: invalid character 'x'`),
		Entry("no object", "{\"acp-test\":1}\n3\n", `line 2 of the transcript: an entry must be a JSON object`),
		Entry("no kind", "{\"acp-test\":1}\n{\"from\":\"note\",\"kind\":\"note\"}\n{\"from\":\"note\"}\n",
			`line 3 of the transcript: an entry needs "from" and "kind"`),
		Entry("bad base64", "{\"acp-test\":1}\n{\"from\":\"stderr\",\"kind\":\"chunk\",\"raw64\":\"*\"}\n",
			`line 2 of the transcript: raw64: illegal base64`),
	)

	It("passes on why a file cannot be read", func() {
		why := errors.New("the tape is torn")
		_, err := transcript.Load(iotest.ErrReader(why), acpframe.Classifier{})
		Expect(err).To(MatchError(why))
		_, err = transcript.Load(io.MultiReader(strings.NewReader("{\"acp-test\":1}\n{\"fr"), iotest.ErrReader(why)),
			acpframe.Classifier{})
		Expect(err).To(MatchError("reading the transcript: the tape is torn"))
		Expect(empty().Save(failingWriter{})).To(MatchError("saving the transcript: no room"))
	})

	It("loads what was taken out of a longer file, with references that follow", func() {
		t := empty()
		note(t, "noise")
		editor(t, `{"jsonrpc":"2.0","id":1,"method":"m"}`)
		note(t, "noise")
		agent(t, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		agent(t, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		var kept []string
		for line := range strings.Lines(string(saved(t))) {
			if !strings.Contains(line, "noise") {
				kept = append(kept, line)
			}
		}
		back, err := transcript.Load(strings.NewReader(strings.Join(kept, "")), acpframe.Classifier{})
		Expect(err).NotTo(HaveOccurred())
		Expect([]int{back.Len(), back.At(2).Seq, back.At(2).Ref, back.At(3).Ref}).To(Equal([]int{3, 2, 1, 1}))
		back, err = transcript.Load(strings.NewReader(kept[0]+kept[2]), acpframe.Classifier{})
		Expect(err).NotTo(HaveOccurred())
		Expect(back.At(1).Ref).To(Equal(0))
	})

	It("prints by its length, since its fields change meanwhile", func() {
		t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		t.AppendFrame(0, transcript.Agent, []byte("{}"), 0)
		Expect(fmt.Sprintf("%v %#v", t, t)).To(Equal("transcript of 1 entries transcript of 1 entries"))
	})

	It("can be written by hand, and goes on from there", func() {
		t, err := transcript.Load(strings.NewReader(`{"acp-test":1,"new":true}
{"from":"process","kind":"started","msg":{"pid":7},"later":[1]}
{"ms":5000,"from":"editor","kind":"request","id":1,"method":"m","msg":{"jsonrpc":"2.0","id":1,"method":"m"}}
{"ms":-5,"from":"process","kind":"exit"}
{"ms":1e300,"from":"agent","kind":"response","ref":2}`), acpframe.Classifier{})
		Expect(err).NotTo(HaveOccurred())
		Expect(t.Header()).To(Equal(transcript.Header{Format: 1}))
		Expect([]any{t.Len(), t.Torn(), t.At(2).At, t.At(3).At, t.At(4).Ref}).
			To(Equal([]any{4, false, 5 * time.Second, time.Duration(0), 2}))
		Expect(t.Await(over(), 0, a("x")).Verdict).To(Equal(transcript.Unmeetable))
		late := agent(t, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		Expect([]any{late.Ref, late.At >= 5*time.Second}).To(Equal([]any{2, true}))
	})
})

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no room") }
