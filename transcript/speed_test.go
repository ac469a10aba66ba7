package transcript_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

// BenchmarkAppendFrame is the hot path: a burst of updates into a transcript
// with a file and one observer that looks at each frame. BenchmarkValid is the
// bare loop it is measured beside.
func BenchmarkAppendFrame(b *testing.B) {
	t, err := transcript.New(transcript.Header{},
		transcript.Options{Classifier: acpframe.Classifier{}, Path: filepath.Join(b.TempDir(), "t")})
	if err != nil {
		b.Fatal(err)
	}
	defer t.Close()
	texts := 0
	t.Observe(func(e transcript.Entry) {
		if e.JSON().Get("params").Get("update").Get("sessionUpdate").Is("agent_message_chunk") {
			texts++
		}
	})
	line := []byte(update(1))
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		t.AppendFrame(0, transcript.Agent, line, 0)
	}
}

func BenchmarkValid(b *testing.B) {
	line := []byte(update(1))
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		json.Valid(line)
	}
}

func BenchmarkLoad(b *testing.B) {
	t, _ := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	for i := range 10_000 {
		agent(t, update(i))
	}
	var text bytes.Buffer
	if err := t.Save(&text); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := transcript.Load(bytes.NewReader(text.Bytes()), acpframe.Classifier{}); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("{\"acp-test\":1}\n{\"from\":\"agent\",\"kind\":\"malformed\",\"text\":\"x\\r\"}\n"))
	f.Add([]byte("{\"acp-test\":1,\"seed\":3}\n{\"seq\":4,\"ms\":1.001,\"from\":\"editor\",\"kind\":\"request\"," +
		"\"id\":1,\"msg\":{\"a\":[1]}}\n{\"seq\":9,\"from\":\"agent\",\"kind\":\"response\",\"ref\":4," +
		"\"raw64\":\"/w==\"}\n{\"fr"))
	f.Add([]byte("{\"acp-test\":1}\n{\"from\":\"process\",\"kind\":\"exit\",\"size\":-1,\"redacted\":[1,\"a\"]," +
		"\"msg\":3}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := transcript.Load(bytes.NewReader(text), acpframe.Classifier{})
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		if err := x.Save(&first); err != nil {
			t.Fatal(err)
		}
		y, err := transcript.Load(bytes.NewReader(first.Bytes()), acpframe.Classifier{})
		if err != nil {
			t.Fatalf("%v in\n%s", err, first.Bytes())
		}
		if x.Len() != y.Len() || y.Torn() {
			t.Fatalf("got %d entries, torn %v, want %d", y.Len(), y.Torn(), x.Len())
		}
		for e := range x.All() {
			if err := same(y.At(e.Seq), e); err != nil {
				t.Fatal(err)
			}
		}
		if err := y.Save(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("saved again (%v), got\n%s\nwant\n%s", err, second.Bytes(), first.Bytes())
		}
		x.AppendFrame(0, transcript.Agent, []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`), 0)
	})
}
