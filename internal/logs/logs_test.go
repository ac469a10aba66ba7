package logs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/acp-test/acp-test/internal/logs"
	"github.com/acp-test/acp-test/wire"
)

// FuzzRead reads any text: each message that is found is one line of JSON, and lines count up.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("../../replay/testdata/logs/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{"{", `"{\"`, "b'{'", "-> {\n", "{\"a\":\n{\"jsonrpc\":1}",
		"[[[[[[{\"jsonrpc\":1}]]]]]]", "\x1b]0;{", "{}'", "b'{}'"} {
		f.Add([]byte(text))
	}
	dialect := logs.Dialect{
		Message:  func(v wire.Value) bool { return v.Get("jsonrpc").Exists() },
		Bare:     func(v wire.Value) bool { return v.Get("method").Exists() },
		Complete: func(raw []byte) []byte { return raw },
		Sender:   func(wire.Value) logs.Side { return logs.Unknown },
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		log, err := logs.Read(text, dialect)
		if (err != nil) != (len(log.Messages) == 0) {
			t.Fatalf("%d messages: %v", len(log.Messages), err)
		}
		line := 0
		for _, m := range log.Messages {
			if !json.Valid(m.Raw) || m.Line < line {
				t.Fatalf("line %d: %q", m.Line, m.Raw)
			}
			line = m.Line
		}
	})
}
