package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/wire"
)

// sizes are frames as they come, from a short chunk to a tool's output.
func sizes() map[string][]byte {
	chunk := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"0e31eb46-0cfe-422f-932c-5ff51c895ca4"` +
		`,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I'll rename it."}}}}`
	tool := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"0e31eb46-0cfe-422f-932c-5ff51c895ca4",` +
		`"update":{"sessionUpdate":"tool_call_update","toolCallId":"call_1","kind":"edit","status":"completed",` +
		`"locations":[{"path":"/home/user/project/main.go","line":12}],"content":[{"type":"diff",` +
		`"path":"/home/user/project/main.go","oldText":%s,"newText":%s}],"rawOutput":{"exitCode":0,"duration":1.25,` +
		`"lines":[1,2,3,4]}}}}`
	code := strings.Repeat("\tfmt.Println(\"hello, world\", i)\n", 12)
	text := strings.Repeat("日本語のテキスト und Straße. ", 30)
	quote := func(s string) string { return string(wire.AppendString(nil, s)) }
	return map[string][]byte{
		"chunk":  []byte(chunk),
		"diff":   fmt.Appendf(nil, tool, quote(code), quote(code+code)),
		"nonlat": fmt.Appendf(nil, tool, quote(text), quote("")),
		"64KiB":  fmt.Appendf(nil, tool, quote(strings.Repeat("plain text of a file ", 3000)), quote("")),
	}
}

func BenchmarkParse(b *testing.B) {
	for name, text := range sizes() {
		b.Run(fmt.Sprintf("%s-%d/wire", name, len(text)), func(b *testing.B) {
			var d wire.Doc
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%s-%d/json.Valid", name, len(text)), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if !json.Valid(text) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

func BenchmarkClassifyLine(b *testing.B) {
	text := sizes()["chunk"]
	var d wire.Doc
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if f := wire.ClassifyLine(&d, text); f.Kind != wire.Notification {
			b.Fatal(f.Problem)
		}
	}
}

func BenchmarkSplitter(b *testing.B) {
	line := append(sizes()["chunk"], '\n')
	text := strings.Repeat(string(line), 10_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s := wire.NewSplitter(strings.NewReader(text), 0)
		for {
			if _, err := s.Next(); err != nil {
				break
			}
		}
	}
}
